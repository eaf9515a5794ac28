/* feature_text.c - text to lists of tokens, and lists of one length: tokenize, pad
 *
 *	review: tokenize | vocab(min_count=5) | pad(128)
 *
 * Unicode rules are those of DuckDB: composed characters, lower case, and letters, marks and digits as words. */
#include "table/transform.h"

/* ---- tokenize ---- */

struct tokenize {
	int unit;
	int64_t ngrams;
	bool shorter;
};

enum { WORD, CHAR };

static const struct leat_opt tokenize_options[] = {
	LEAT_ENUM(struct tokenize, unit, "word", "word|char", "what tokens are made of: words or characters"),
	LEAT_INT(struct tokenize, ngrams, "1", 1, 16, "how many of them in a row make a token"),
	LEAT_BOOL(struct tokenize, shorter, "false", "also give the shorter n-grams, shortest first"),
	LEAT_OPT_END,
};

/* Words, or characters with each run of white space as one. */
static void
add_units(const struct tokenize *tokenize, const char *text, struct leat_str *sql)
{
	if (tokenize->unit == WORD)
		leat_str_addf(sql, "regexp_extract_all(lower(nfc_normalize(%s)), '[\\p{L}\\p{M}\\p{N}]+')", text);
	else
		leat_str_addf(sql,
		              "regexp_extract_all(regexp_replace(lower(nfc_normalize(%s)), '\\s+', ' ', 'g'), "
		              "'(?s).')",
		              text);
}

/* All n-grams of the list w. */
static void
add_ngrams(const struct tokenize *tokenize, int64_t n, struct leat_str *sql)
{
	if (n == 1)
		leat_str_add(sql, "w");
	else
		leat_str_addf(sql,
		              "list_transform(range(1, len(w) - %lld), lambda i: array_to_string(list_slice(w, i, i + "
		              "%lld), '%s'))",
		              (long long)n - 2, (long long)n - 1, tokenize->unit == WORD ? " " : "");
}

static enum leat_status
emit_tokenize(struct leat_emitting *e, struct leat_err *err)
{
	const struct tokenize *tokenize = e->params;
	int64_t first = tokenize->shorter ? 1 : tokenize->ngrams;

	(void)err;
	e->to = LEAT_VALUE_LIST;
	if (tokenize->ngrams == 1) {
		add_units(tokenize, e->value, e->sql);
		return LEAT_OK;
	}
	leat_str_add(e->sql, "list_transform([");
	add_units(tokenize, e->value, e->sql);
	leat_str_add(e->sql, "], lambda w: CASE WHEN w IS NOT NULL THEN flatten([");
	for (int64_t n = first; n <= tokenize->ngrams; n++) {
		leat_str_add(e->sql, n > first ? ", " : "");
		add_ngrams(tokenize, n, e->sql);
	}
	leat_str_add(e->sql, "]) END)[1]");
	return LEAT_OK;
}

const struct leat_transform leat_transform_tokenize = {
	.name = "tokenize",
	.doc = "List of the words of a text in lower case, without what is between them, or of n-grams of words or "
	       "characters. Follow it with vocab, hash or multihot.",
	.version = 1,
	.opts = tokenize_options,
	.params_size = sizeof(struct tokenize),
	.accepts = LEAT_VALUE_TEXT,
	.emit = emit_tokenize,
};

/* ---- pad ---- */

struct pad {
	int64_t length;
};

static const struct leat_opt pad_options[] = {
	LEAT_INT(struct pad, length, LEAT_REQUIRED, 1, 1e6, "length of all lists"),
	LEAT_OPT_END,
};

static enum leat_status
emit_pad(struct leat_emitting *e, struct leat_err *err)
{
	const struct pad *pad = e->params;

	(void)err;
	leat_str_addf(e->sql, "list_resize(coalesce(%s, CAST([] AS BIGINT[])), %lld, CAST(0 AS BIGINT))", e->value,
	              (long long)pad->length);
	return LEAT_OK;
}

const struct leat_transform leat_transform_pad = {
	.name = "pad",
	.doc = "Lists of one length: cut what is too long at its end, and fill up with 0 what is too short.",
	.version = 1,
	.opts = pad_options,
	.params_size = sizeof(struct pad),
	.accepts = LEAT_VALUE_IDS,
	.emit = emit_pad,
};
