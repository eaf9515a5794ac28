/* checks_parse.c - the text of one check, such as "0..1e6" or "unique with day"
 *
 * A text that begins with a digit, a sign or a dot is a range. Any other begins with one of `phrases`. */
#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "base/names.h"
#include "base/opt.h"
#include "table/checks_inside.h"

enum { MAX_NUMBER = 38, MAX_EXPONENT = 300 }; /* digits that a DECIMAL has; well below what a DOUBLE has */

#define SPACES " \t\r\n"

struct parser {
	const char *text;
	size_t at;
	struct leat_check *check;
	struct leat_mem *mem;
	struct leat_err *err;
};

static size_t
skip_spaces(const char *text, size_t at)
{
	return at + strspn(text + at, SPACES);
}

/* The end of the text from `at` on, without spaces. */
static size_t
trimmed_end(const char *text, size_t at, size_t end)
{
	while (end > at && strchr(SPACES, text[end - 1]))
		end--;
	return end;
}

static enum leat_status
fail_rest(const struct parser *p, const char *expected)
{
	size_t len = strlen(p->text + p->at);

	return leat_fail_at(p->err, p->text, p->at, len, "%s, not '%s'", expected, p->text + p->at);
}

static enum leat_status
expect_end(struct parser *p)
{
	p->at = skip_spaces(p->text, p->at);
	return p->text[p->at] ? fail_rest(p, "nothing may follow here") : LEAT_OK;
}

/* ---- names and values ---- */

/* From after the opening quote. */
static char *
quoted_word(const char *text, size_t *at, const char *what, struct leat_mem *mem, struct leat_err *err)
{
	size_t open = *at - 1, n = 0;
	char *word = leat_alloc(mem, strlen(text + *at) + 1);

	if (!word) {
		leat_fail_mem(err, mem, strlen(text), what);
		return NULL;
	}
	for (; text[*at]; ++*at) {
		if (text[*at] == '"' && text[++*at] != '"') {
			word[n] = '\0';
			return word;
		}
		word[n++] = text[*at];
	}
	leat_free(mem, word);
	leat_fail_at(err, text, open, 1, "the quote of %s is not closed", what);
	return NULL;
}

char *
leat_check_word(const char *text, size_t *at, const char *ends, const char *what, struct leat_mem *mem,
                struct leat_err *err)
{
	size_t begin = *at = skip_spaces(text, *at), stop;
	char *word;

	if (text[begin] == '"') {
		++*at;
		word = quoted_word(text, at, what, mem, err);
		if (!word)
			return NULL;
		*at = skip_spaces(text, *at);
		if (!text[*at] || strchr(ends, text[*at]))
			return word;
		leat_free(mem, word);
		leat_fail_at(err, text, *at, 1, "what follows the quotes does not belong to %s", what);
		return NULL;
	}
	*at += strcspn(text + begin, ends);
	stop = trimmed_end(text, begin, *at);
	if (stop == begin) {
		leat_fail_at(err, text, begin, 1, "%s is missing", what);
		return NULL;
	}
	word = leat_strndup(mem, text + begin, stop - begin);
	if (!word)
		leat_fail_mem(err, mem, stop - begin, what);
	return word;
}

static enum leat_status
add_value(struct parser *p, char *value)
{
	char **grown = leat_realloc(p->mem, p->check->value, (p->check->values + 1) * sizeof(*grown));

	if (!grown) {
		leat_free(p->mem, value);
		return leat_fail_mem(p->err, p->mem, sizeof(*grown), "a check");
	}
	p->check->value = grown;
	grown[p->check->values++] = value;
	return LEAT_OK;
}

/* One or more words with `separator` between them. */
static enum leat_status
parse_values(struct parser *p, char separator, const char *what)
{
	const char ends[] = {separator, '\0'};
	enum leat_status status = LEAT_OK;

	do {
		char *word = leat_check_word(p->text, &p->at, ends, what, p->mem, p->err);

		if (!word)
			return p->err->status;
		status = add_value(p, word);
	} while (status == LEAT_OK && p->text[p->at++] == separator);
	return status;
}

/* ---- ranges ---- */

static size_t
digits(const char *text)
{
	return strspn(text, "0123456789");
}

/* Bytes of the number at `text`; 0: none. Its value is good enough to compare the ends of a range. */
static size_t
number_at(const char *text, double *value)
{
	bool negative = *text == '-';
	size_t n = negative || *text == '+', whole = digits(text + n), fraction = 0, power = 0;
	int exponent = 0;

	*value = 0;
	if (!whole)
		return 0;
	for (size_t i = n; i < n + whole; i++)
		*value = *value * 10 + (text[i] - '0');
	n += whole;
	if (text[n] == '.' && (fraction = digits(text + n + 1)) > 0) {
		for (size_t i = n + 1; i <= n + fraction; i++)
			*value = *value * 10 + (text[i] - '0');
		n += 1 + fraction;
	}
	if (text[n] == 'e' || text[n] == 'E') {
		size_t sign = text[n + 1] == '-' || text[n + 1] == '+';

		power = digits(text + n + 1 + sign);
		for (size_t i = 0; i < power && exponent < 10000; i++)
			exponent = exponent * 10 + (text[n + 1 + sign + i] - '0');
		if (!power || exponent > MAX_EXPONENT)
			return 0;
		if (text[n + 1] == '-')
			exponent = -exponent;
		n += 1 + sign + power;
	}
	if (whole + fraction > MAX_NUMBER)
		return 0;
	*value *= pow(10, exponent - (int)fraction) * (negative ? -1 : 1);
	return n;
}

/* Matches a pattern in which 0 stands for a digit. */
static bool
looks_like(const char *text, const char *pattern)
{
	for (; *pattern; pattern++, text++)
		if (*pattern == '0' ? *text < '0' || *text > '9' : *text != *pattern)
			return false;
	return true;
}

static int
two_digits(const char *text)
{
	return (text[0] - '0') * 10 + (text[1] - '0');
}

/* Bytes of the date, or date and time, at `text`; 0: none. */
static size_t
time_at(const char *text)
{
	size_t n = 10;
	int month, day;

	if (!looks_like(text, "0000-00-00"))
		return 0;
	month = two_digits(text + 5);
	day = two_digits(text + 8);
	if (month < 1 || month > 12 || day < 1 || day > (month == 2 ? 29 : 30 + ((month + (month > 7)) % 2)))
		return 0;
	if ((text[n] != ' ' && text[n] != 'T') || !looks_like(text + n + 1, "00:00"))
		return n;
	if (two_digits(text + n + 1) > 23 || two_digits(text + n + 4) > 59)
		return 0;
	n += 6;
	if (looks_like(text + n, ":00") && two_digits(text + n + 1) < 60) {
		n += 3;
		if (text[n] == '.' && digits(text + n + 1) && digits(text + n + 1) <= 6)
			n += 1 + digits(text + n + 1);
	}
	return n;
}

struct bound {
	char *text;
	double value; /* of a number */
	bool time;
};

/* A bound at the parser's place, or none: then text is NULL. */
static enum leat_status
parse_bound(struct parser *p, struct bound *bound)
{
	const char *from;
	size_t len;

	*bound = (struct bound){0};
	p->at = skip_spaces(p->text, p->at);
	from = p->text + p->at;
	if (!*from || strncmp(from, "..", 2) == 0)
		return LEAT_OK;
	len = time_at(from);
	bound->time = len > 0;
	if (!len)
		len = number_at(from, &bound->value);
	if (!len || (from[len] && !strchr(SPACES, from[len]) && strncmp(from + len, "..", 2) != 0))
		return fail_rest(p, "a range has numbers such as 0..1e6, or dates such as 2026-01-01..");
	bound->text = leat_strndup(p->mem, from, len);
	if (!bound->text)
		return leat_fail_mem(p->err, p->mem, len, "a check");
	if (bound->time && len > 10)
		bound->text[10] = ' ';
	p->at = skip_spaces(p->text, p->at + len);
	return LEAT_OK;
}

static bool
is_empty_range(const struct bound *low, const struct bound *high)
{
	if (!low->text || !high->text)
		return false;
	if (!low->time)
		return low->value > high->value;
	/* A date is all of its day, so 2026-01-02 10:00..2026-01-02 is not empty. */
	return strncmp(low->text, high->text, strlen(high->text)) > 0;
}

static enum leat_status
check_bounds(const struct parser *p, const struct bound *low, const struct bound *high, bool open)
{
	size_t len = strlen(p->text);

	if (!low->text && !high->text)
		return leat_fail_at(p->err, p->text, 0, len, "a range has a lower or an upper end, or both");
	if (low->text && high->text && low->time != high->time)
		return leat_fail_at(p->err, p->text, 0, len, "one end of the range is a date, the other is a number");
	if (is_empty_range(low, high))
		return leat_fail_at(p->err, p->text, 0, len, "nothing is between %s and %s", low->text, high->text);
	if (!open)
		return leat_fail_at(p->err, p->text, 0, len, "a range has two dots: '%s..' or '..%s'", low->text,
		                    low->text);
	return LEAT_OK;
}

/* From the parser's place to the end. `single`: one number alone is a range, too. */
static enum leat_status
parse_range(struct parser *p, bool single)
{
	struct bound low = {0}, high = {0};
	enum leat_status status = parse_bound(p, &low);
	bool dots = false;

	if (status == LEAT_OK && strncmp(p->text + p->at, "..", 2) == 0) {
		dots = true;
		p->at += 2;
		status = parse_bound(p, &high);
	}
	if (status == LEAT_OK)
		status = expect_end(p);
	if (status == LEAT_OK)
		status = check_bounds(p, &low, &high, dots || single);
	if (status == LEAT_OK && !dots && !(high.text = leat_strdup(p->mem, low.text)))
		status = leat_fail_mem(p->err, p->mem, strlen(low.text), "a check");
	p->check->times = low.time || high.time;
	p->check->low = low.text;
	p->check->high = high.text;
	return status;
}

/* Of rows or characters. */
static enum leat_status
parse_count(struct parser *p)
{
	enum leat_status status = parse_range(p, true);

	if (status != LEAT_OK)
		return status;
	for (int i = 0; i < 2; i++) {
		const char *end = i ? p->check->high : p->check->low;

		if (end && (strlen(end) > 18 || digits(end) != strlen(end)))
			return leat_fail_at(p->err, p->text, 0, strlen(p->text),
			                    "this is counted in whole numbers from 0 on, not '%s'", end);
	}
	return LEAT_OK;
}

/* ---- shares ---- */

enum leat_status
leat_check_share(const char *text, size_t at, double *share, struct leat_err *err)
{
	double value;
	size_t len;

	at = skip_spaces(text, at);
	len = number_at(text + at, &value);
	if (!len || text[at + len] != '%' || text[skip_spaces(text, at + len + 1)] || value < 0 || value > 100)
		return leat_fail_at(err, text, at, strlen(text + at),
		                    "a share is between 0%% and 100%%, such as 0.1%%, not '%s'", text + at);
	*share = value / 100;
	return LEAT_OK;
}

void
leat_check_print_share(struct leat_str *out, double share)
{
	char number[32];

	/* As it was written: 15 digits are enough to get rid of what dividing by 100 added. */
	leat_str_addf(out, "%s%%", leat_format_digits(number, sizeof(number), share * 100, 15));
}

/* ---- phrases ---- */

/* Bytes of `text` that are these words, with any spaces between them; 0: it begins with others. */
static size_t
begins_with(const char *text, const char *words)
{
	size_t n = 0;

	for (; *words; words++) {
		if (*words == ' ') {
			size_t spaces = strspn(text + n, SPACES);

			if (!spaces)
				return 0;
			n += spaces;
		} else if (text[n++] != *words) {
			return 0;
		}
	}
	return !text[n] || strchr(SPACES, text[n]) ? n : 0;
}

static enum leat_status
parse_nulls(struct parser *p)
{
	return leat_check_share(p->text, p->at, &p->check->share, p->err);
}

static enum leat_status
parse_unique(struct parser *p)
{
	p->at = skip_spaces(p->text, p->at);
	if (!p->text[p->at])
		return LEAT_OK;
	if (strncmp(p->text + p->at, "with", 4) != 0 || !strchr(SPACES "\"", p->text[p->at + 4]))
		return fail_rest(p, "only 'with COLUMN, COLUMN' may follow 'unique'");
	p->at += 4;
	return parse_values(p, ',', "the name of a column");
}

static enum leat_status
parse_one_of(struct parser *p)
{
	return parse_values(p, '|', "a value");
}

static bool
is_table_name(const char *name)
{
	return strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == strlen(name);
}

/* "users.id". `usage` is for the error. */
static enum leat_status
parse_table_column(struct parser *p, const char *usage)
{
	size_t from = p->at = skip_spaces(p->text, p->at);

	p->check->table = leat_check_word(p->text, &p->at, ".", "the name of a table", p->mem, p->err);
	if (!p->check->table)
		return p->err->status;
	if (p->text[p->at] != '.' || !is_table_name(p->check->table))
		return leat_fail_at(p->err, p->text, from, strlen(p->text + from), "%s", usage);
	p->at++;
	p->check->other = leat_check_word(p->text, &p->at, "", "the name of a column", p->mem, p->err);
	return p->check->other ? LEAT_OK : p->err->status;
}

static enum leat_status
parse_in(struct parser *p)
{
	return parse_table_column(p, "'in' is followed by a table and its column, as in 'in users.id'; "
	                             "for a list of values, write 'one of A | B'");
}

/* "as" or "up to", with what comes after it; false: neither. */
static bool
parse_compared(struct parser *p)
{
	size_t from = skip_spaces(p->text, p->at), as = begins_with(p->text + from, "as"),
	       up_to = begins_with(p->text + from, "up to");

	p->check->up_to = up_to > 0;
	p->at = from + as + up_to;
	return as || up_to;
}

static enum leat_status
parse_per_value(struct parser *p)
{
	return parse_compared(p) ? parse_table_column(p, "rows are counted per value of a table's column, as in "
	                                                 "'count as events.id'")
	                         : parse_count(p);
}

static enum leat_status
parse_drift(struct parser *p)
{
	size_t from = skip_spaces(p->text, p->at), len = number_at(p->text + from, &p->check->share);

	if (!len || p->text[skip_spaces(p->text, from + len)] || p->check->share <= 0 || p->check->share > 100)
		return leat_fail_at(p->err, p->text, from, strlen(p->text + from),
		                    "drift is limited by a PSI such as 0.25, not '%s'", p->text + from);
	return LEAT_OK;
}

static enum leat_status
parse_rows(struct parser *p)
{
	size_t from = skip_spaces(p->text, p->at), drift = begins_with(p->text + from, "drift up to");

	if (drift) {
		p->check->kind = LEAT_CHECK_DRIFT;
		p->at = from + drift;
		return parse_drift(p);
	}
	if (!parse_compared(p))
		return parse_count(p);
	from = p->at = skip_spaces(p->text, p->at);
	p->check->table = leat_check_word(p->text, &p->at, "", "the name of a table", p->mem, p->err);
	if (!p->check->table)
		return p->err->status;
	return is_table_name(p->check->table)
	               ? LEAT_OK
	               : leat_fail_at(p->err, p->text, from, strlen(p->text + from),
	                              "this is followed by the name of a table, as in 'rows: as events'");
}

static enum leat_status
parse_matches(struct parser *p)
{
	size_t end;

	p->at = skip_spaces(p->text, p->at);
	end = trimmed_end(p->text, p->at, strlen(p->text));
	if (end == p->at)
		return leat_fail_at(p->err, p->text, p->at, 1, "a regular expression is missing");
	p->check->text = leat_strndup(p->mem, p->text + p->at, end - p->at);
	return p->check->text ? LEAT_OK : leat_fail_mem(p->err, p->mem, end - p->at, "a check");
}

/* The names of leat.yaml, beside those of DuckDB. */
static const struct {
	const char *name, *sql;
} types[] = {
	{"bool", "BOOLEAN"},   {"int8", "TINYINT"},     {"int16", "SMALLINT"},
	{"int32", "INTEGER"},  {"int64", "BIGINT"},     {"int", "INTEGER"},
	{"uint8", "UTINYINT"}, {"uint16", "USMALLINT"}, {"uint32", "UINTEGER"},
	{"uint64", "UBIGINT"}, {"float", "FLOAT"},      {"float32", "FLOAT"},
	{"double", "DOUBLE"},  {"float64", "DOUBLE"},   {"text", "VARCHAR"},
	{"string", "VARCHAR"}, {"bytes", "BLOB"},       {"timestamptz", "TIMESTAMP WITH TIME ZONE"},
};

static enum leat_status
parse_type(struct parser *p)
{
	size_t from = skip_spaces(p->text, p->at), end = trimmed_end(p->text, from, strlen(p->text));

	if (end == from || end - from >= 64)
		return leat_fail_at(p->err, p->text, from, 1, "the name of a type is missing, such as int64 or double");
	p->check->text = leat_strndup(p->mem, p->text + from, end - from);
	if (!p->check->text)
		return leat_fail_mem(p->err, p->mem, end - from, "a check");
	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
		if (strcasecmp(types[i].name, p->check->text) == 0) {
			leat_free(p->mem, p->check->text);
			p->check->text = leat_strdup(p->mem, types[i].sql);
			return p->check->text ? LEAT_OK : leat_fail_mem(p->err, p->mem, 64, "a check");
		}
	for (char *c = p->check->text; *c; c++)
		if (*c >= 'a' && *c <= 'z')
			*c = (char)(*c - 'a' + 'A');
	return LEAT_OK;
}

static const struct {
	const char *words;
	enum leat_check_kind kind;
	enum leat_status (*parse)(struct parser *p);
} phrases[] = {
	{"not null", LEAT_CHECK_NOT_NULL, expect_end},
	{"nulls up to", LEAT_CHECK_NULLS, parse_nulls},
	{"unique", LEAT_CHECK_UNIQUE, parse_unique},
	{"finite", LEAT_CHECK_FINITE, expect_end},
	{"length", LEAT_CHECK_LENGTH, parse_count},
	{"one of", LEAT_CHECK_ONE_OF, parse_one_of},
	{"in", LEAT_CHECK_IN, parse_in},
	{"count", LEAT_CHECK_COUNT, parse_per_value},
	{"drift up to", LEAT_CHECK_DRIFT, parse_drift},
	{"matches", LEAT_CHECK_MATCHES, parse_matches},
	{"type", LEAT_CHECK_TYPE, parse_type},
};

enum { PHRASES = sizeof(phrases) / sizeof(*phrases) };

static size_t
count_words(const char *phrase)
{
	size_t words = 1;

	for (; *phrase; phrase++)
		words += *phrase == ' ';
	return words;
}

static enum leat_status
fail_phrase(const struct parser *p)
{
	const char *known[PHRASES + 1], *near = NULL, *from = p->text + p->at;
	char words[64], message[LEAT_UNKNOWN_TEXT];
	size_t len = 0;

	for (size_t i = 0; i < PHRASES; i++)
		known[i] = phrases[i].words;
	known[PHRASES] = "LOW..HIGH";
	/* One, two or three words: as many as are near to a phrase of that many. */
	for (size_t end = 0, word = 0; word < 3 && from[end] && end < sizeof(words) - 1; word++) {
		const char *found;

		end += strspn(from + end, SPACES);
		end += strcspn(from + end, SPACES);
		if (end >= sizeof(words))
			break;
		memcpy(words, from, end);
		words[end] = '\0';
		found = leat_nearest(words, known, PHRASES);
		if (found && count_words(found) != word + 1)
			found = NULL;
		if (found || !len) {
			near = found ? found : near;
			len = end;
		}
	}
	if (!len)
		len = strlen(from);
	leat_show(words, sizeof(words), from, len < 60 ? len : 60);
	if (near)
		return leat_fail_at(p->err, p->text, p->at, len, "there is no check '%s', did you mean '%s'?", words,
		                    near);
	leat_unknown_text(&(struct leat_unknown){.what = "check", .name = words, .known = known, .count = PHRASES + 1},
	                  message);
	return leat_fail_at(p->err, p->text, p->at, len, "%s", message);
}

static enum leat_status
parse_phrase(struct parser *p)
{
	for (size_t i = 0; i < PHRASES; i++) {
		size_t len = begins_with(p->text + p->at, phrases[i].words);

		if (!len)
			continue;
		p->check->kind = phrases[i].kind;
		p->at += len;
		return phrases[i].parse(p);
	}
	return fail_phrase(p);
}

enum leat_status
leat_check_parse(struct leat_check *check, const char *text, struct leat_mem *mem, struct leat_err *err)
{
	struct parser p = {.text = text, .at = skip_spaces(text, 0), .check = check, .mem = mem, .err = err};

	if (!text[p.at])
		return leat_fail_at(err, text, 0, 1, "a check is missing, such as 'not null' or '0..100'");
	if (check->kind == LEAT_CHECK_ROWS)
		return parse_rows(&p);
	if (!strchr("+-.0123456789", text[p.at]))
		return parse_phrase(&p);
	check->kind = LEAT_CHECK_RANGE;
	return parse_range(&p, false);
}
