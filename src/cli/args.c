/* args.c - parse a command line according to an option table */
#include "cli/args.h"

#include <string.h>

#include "base/mem.h"
#include "base/names.h"
#include "cli/print.h"

/* Short options are the same in every command that has the option. */
static const struct {
	char letter;
	const char *name;
} letters[] = {
	{'j', "threads"}, {'j', "jobs"},  {'k', "keep_going"}, {'n', "count"},
	{'o', "output"},  {'q', "quiet"}, {'s', "seed"},
};

enum { LETTERS = sizeof(letters) / sizeof(*letters), MAX_FLAG = 64 };

static char
letter_of(const struct leat_opt *opt)
{
	for (size_t i = 0; i < LETTERS; i++)
		if (strcmp(letters[i].name, opt->name) == 0)
			return letters[i].letter;
	return '\0';
}

static const struct leat_opt *
find_letter(const struct leat_opt *opts, char letter)
{
	for (; opts && opts->type != LEAT_OPT_NONE; opts++)
		if (letter_of(opts) == letter)
			return opts;
	return NULL;
}

/* Converts "shard-size", of length `len`, to the table's spelling "shard_size". */
static void
table_name(char name[MAX_FLAG], const char *flag, size_t len)
{
	if (len >= MAX_FLAG)
		len = MAX_FLAG - 1;
	for (size_t i = 0; i < len; i++)
		name[i] = flag[i] == '-' ? '_' : flag[i];
	name[len] = '\0';
}

static void
flag_name(char flag[MAX_FLAG], const char *name)
{
	snprintf(flag, MAX_FLAG, "--%s", name);
	for (char *s = flag + 2; *s; s++)
		if (*s == '_')
			*s = '-';
}

/* ---- parsing ---- */

struct reader {
	const struct leat_opt *opts;
	void *params;
	int argc, at;
	char *const *argv;
	uint64_t given;
	struct leat_mem *mem;
	struct leat_err *err;
};

/* The list ends with NULL. */
static enum leat_status
add_item(struct reader *r, const struct leat_opt *opt, const char *text)
{
	struct leat_strings *list = (struct leat_strings *)((char *)r->params + opt->offset);
	const char **grown = leat_realloc(r->mem, list->value, (list->count + 2) * sizeof(*grown));

	if (!grown)
		return leat_fail_mem(r->err, r->mem, (list->count + 2) * sizeof(*grown), "the options");
	grown[list->count++] = text;
	list->value = grown;
	return LEAT_OK;
}

static enum leat_status
put(struct reader *r, const struct leat_opt *opt, const char *text)
{
	struct leat_arg verbatim = {.type = LEAT_ARG_STRING, .text = text, .len = strlen(text)};
	struct leat_opt named = *opt;
	char flag[MAX_FLAG];
	enum leat_status status;

	r->given |= UINT64_C(1) << (opt - r->opts);
	if (opt->flags & LEAT_OPT_REPEATS)
		return add_item(r, opt, text);
	flag_name(flag, opt->name);
	named.name = flag;
	if (opt->type == LEAT_OPT_STRING || opt->type == LEAT_OPT_ENUM || opt->type == LEAT_OPT_BOOL)
		status = leat_opt_put(&named, r->params, &verbatim, text, NULL, r->mem, r->err);
	else
		status = leat_opt_put_text(&named, r->params, text, NULL, r->mem, r->err);
	return status == LEAT_OK ? LEAT_OK : leat_without_caret(r->err, status);
}

/* The value is attached (--name=VALUE, -nVALUE), or else the next argument. */
static enum leat_status
put_next(struct reader *r, const struct leat_opt *opt, const char *attached)
{
	char flag[MAX_FLAG];

	if (!attached && opt->type == LEAT_OPT_BOOL)
		attached = "true";
	if (!attached) {
		if (r->at == r->argc) {
			flag_name(flag, opt->name);
			return leat_fail(r->err, LEAT_INVALID, "option '%s' needs a value: %s", flag, opt->doc);
		}
		attached = r->argv[r->at++];
	}
	return put(r, opt, attached);
}

/* Options of other loaders, and where they are here. */
static const struct {
	const char *name, *instead;
} elsewhere[] = {
	{"batch_size", "add batch(N) to the spec"},
	{"batch", "add batch(N) to the spec"},
	{"shuffle", "add shuffle to the spec, before batch"},
	{"prefetch", "add prefetch(N) to the spec"},
	{"prefetch_factor", "add prefetch(N) to the spec"},
	{"cache", "add cache to the spec"},
	{"workers", "use --threads"},
	{"num_workers", "use --threads"},
	{"num_threads", "use --threads"},
	{"num_epochs", "use --epochs"},
	{"strict", "use --force to accept a changed pipeline"},
	{"endpoint", "use --storage endpoint=URL"},
	{"endpoint_url", "use --storage endpoint=URL"},
	{"region", "use --storage region=NAME"},
	{"profile", "use --storage profile=NAME"},
	{"disk_cache", "use --storage disk_cache=FOLDER"},
};

static enum leat_status
fail_unknown(const struct reader *r, const char *word, size_t len)
{
	char table[MAX_FLAG];
	struct leat_unknown unknown = {.what = "option", .prefix = "--"};
	char name[100], flags[LEAT_MAX_OPTS][MAX_FLAG];
	const char *known[LEAT_MAX_OPTS];

	for (; r->opts && r->opts[unknown.count].type != LEAT_OPT_NONE; unknown.count++) {
		flag_name(flags[unknown.count], r->opts[unknown.count].name);
		known[unknown.count] = flags[unknown.count] + 2;
	}
	table_name(table, word + 2, len - 2);
	for (size_t i = 0; i < sizeof(elsewhere) / sizeof(*elsewhere); i++)
		if (strcmp(elsewhere[i].name, table) == 0)
			return leat_fail(r->err, LEAT_INVALID, "there is no option '--%.*s': %s", (int)(len - 2),
			                 word + 2, elsewhere[i].instead);
	unknown.name = leat_show(name, sizeof(name), word + 2, len - 2);
	unknown.known = known;
	return leat_fail_unknown(r->err, LEAT_INVALID, &unknown);
}

static enum leat_status
read_long(struct reader *r, const char *word)
{
	size_t len = strcspn(word, "=");
	const char *value = word[len] ? word + len + 1 : NULL;
	const struct leat_opt *opt;
	char name[MAX_FLAG];

	table_name(name, word + 2, len - 2);
	opt = leat_opt_find(r->opts, name);
	if (opt)
		return put_next(r, opt, value);
	if (strncmp(name, "no_", 3) == 0 && !value) {
		opt = leat_opt_find(r->opts, name + 3);
		if (opt && opt->type == LEAT_OPT_BOOL)
			return put(r, opt, "false");
	}
	return fail_unknown(r, word, len);
}

static enum leat_status
read_letters(struct reader *r, const char *word)
{
	for (const char *s = word + 1; *s; s++) {
		const struct leat_opt *opt = find_letter(r->opts, *s);
		enum leat_status status;

		if (!opt)
			return leat_fail(r->err, LEAT_INVALID, "there is no option '-%c'", *s);
		if (opt->type != LEAT_OPT_BOOL)
			return put_next(r, opt, s[1] ? s + 1 : NULL);
		status = put(r, opt, "true");
		if (status != LEAT_OK)
			return status;
	}
	return LEAT_OK;
}

static enum leat_status
put_defaults(struct reader *r)
{
	enum leat_status status = LEAT_OK;
	char flag[MAX_FLAG];

	for (size_t i = 0; r->opts && r->opts[i].type != LEAT_OPT_NONE && status == LEAT_OK; i++) {
		if (r->given & (UINT64_C(1) << i) || r->opts[i].flags & LEAT_OPT_REPEATS)
			continue;
		flag_name(flag, r->opts[i].name);
		if (r->opts[i].def)
			status = leat_opt_put_default(&r->opts[i], r->params, NULL, r->mem, r->err);
		else
			status = leat_fail(r->err, LEAT_INVALID, "option '%s' is required: %s", flag, r->opts[i].doc);
	}
	return status;
}

enum leat_status
leat_args_read(const struct leat_opt *opts, void *params, int argc, char *const *argv, const char **operand,
               size_t *operands, bool *help, struct leat_mem *mem, struct leat_err *err)
{
	struct reader r = {.opts = opts, .params = params, .argc = argc, .argv = argv, .mem = mem, .err = err};
	enum leat_status status = LEAT_OK;

	*operands = 0;
	*help = false;
	leat_opts_clear(opts, params);
	while (r.at < argc && status == LEAT_OK) {
		const char *word = argv[r.at++];

		if (strcmp(word, "--") == 0) {
			while (r.at < argc)
				operand[(*operands)++] = argv[r.at++];
		} else if (strcmp(word, "-h") == 0 || strcmp(word, "--help") == 0) {
			*help = true;
			return LEAT_OK;
		} else if (word[0] == '-' && word[1] == '-') {
			status = read_long(&r, word);
		} else if (word[0] == '-' && word[1]) {
			status = read_letters(&r, word);
		} else {
			operand[(*operands)++] = word;
		}
	}
	return status == LEAT_OK ? put_defaults(&r) : status;
}

/* ---- help ---- */

/* "--shard-size SIZE" */
static void
add_usage(const struct leat_opt *opt, struct leat_str *out)
{
	static const char *const values[] = {
		[LEAT_OPT_INT] = "N",
		[LEAT_OPT_FLOAT] = "X",
		[LEAT_OPT_STRING] = "TEXT",
		[LEAT_OPT_SIZE] = "SIZE",
		[LEAT_OPT_ANGLE] = "ANGLE",
		[LEAT_OPT_FLOATS] = "[X, ...]",
		[LEAT_OPT_STRINGS] = "[TEXT, ...]",
		[LEAT_OPT_VALUES] = "[VALUE, ...]",
	};
	bool on = opt->type == LEAT_OPT_BOOL && opt->def && strcmp(opt->def, "true") == 0;
	char flag[MAX_FLAG], letter = letter_of(opt);

	flag_name(flag, opt->name);
	if (letter)
		leat_str_addf(out, "-%c, ", letter);
	else
		leat_str_add(out, "    ");
	leat_str_addf(out, "--%s%s", on ? "no-" : "", flag + 2);
	if (opt->type == LEAT_OPT_ENUM)
		leat_str_addf(out, " %s", opt->choices);
	else if (opt->flags & LEAT_OPT_REPEATS)
		leat_str_add(out, " NAME=VALUE");
	else if (opt->type != LEAT_OPT_BOOL)
		leat_str_addf(out, " %s", values[opt->type]);
}

enum leat_status
leat_args_help(const struct leat_opt *opts, FILE *out, struct leat_mem *mem, struct leat_err *err)
{
	struct leat_table table;

	leat_table_init(&table, mem, 2);
	for (; opts && opts->type != LEAT_OPT_NONE; opts++) {
		struct leat_str *cell = leat_table_cell(&table);

		add_usage(opts, cell);
		cell = leat_table_cell(&table);
		leat_str_add(cell, opts->doc);
		if (opts->was)
			leat_str_addf(cell, " (also --%s)", opts->was);
		if (!opts->def)
			leat_str_add(cell, " (required)");
		else if (opts->def[0] && opts->type != LEAT_OPT_BOOL)
			leat_str_addf(cell, " (default: %s)", opts->def);
	}
	leat_str_add(leat_table_cell(&table), "-h, --help");
	leat_str_add(leat_table_cell(&table), "show this help");
	return leat_table_print(&table, out, err);
}
