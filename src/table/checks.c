/* checks.c - see checks.h; a list of checks, and their canonical texts */
#include "table/checks.h"

#include <string.h>

#include "base/array.h"
#include "base/names.h"
#include "base/opt.h"
#include "base/utf8.h"
#include "table/checks_inside.h"

void
leat_checks_init(struct leat_checks *checks, struct leat_mem *mem)
{
	*checks = (struct leat_checks){.mem = mem, .most = 1};
}

void
leat_check_free(struct leat_check *check, struct leat_mem *mem)
{
	for (size_t i = 0; i < check->values; i++)
		leat_free(mem, check->value[i]);
	leat_free(mem, check->value);
	leat_free(mem, check->name);
	leat_free(mem, check->column);
	leat_free(mem, check->low);
	leat_free(mem, check->high);
	leat_free(mem, check->text);
	leat_free(mem, check->table);
	leat_free(mem, check->other);
}

void
leat_checks_free(struct leat_checks *checks)
{
	for (size_t i = 0; i < checks->count; i++)
		leat_check_free(&checks->check[i], checks->mem);
	leat_free(checks->mem, checks->check);
	leat_checks_init(checks, checks->mem);
}

/* ---- as text ---- */

static void
print_quoted(struct leat_str *out, const char *word)
{
	leat_str_add(out, "\"");
	for (; *word; word++)
		leat_str_addn(out, *word == '"' ? "\"\"" : word, *word == '"' ? 2 : 1);
	leat_str_add(out, "\"");
}

/* In quotes if it would read as something else. */
static void
print_word(struct leat_str *out, const char *word, const char *ends)
{
	static const char spaces[] = " \t\r\n";
	size_t len = strlen(word);

	if (!len || strpbrk(word, ends) || *word == '"' || strchr(spaces, *word) || strchr(spaces, word[len - 1]))
		print_quoted(out, word);
	else
		leat_str_add(out, word);
}

static void
print_column(struct leat_str *out, const char *column)
{
	if (strcmp(column, "rows") == 0)
		print_quoted(out, column);
	else
		print_word(out, column, ":");
}

static void
print_values(struct leat_str *out, const struct leat_check *check, const char *separator, const char *end)
{
	for (size_t i = 0; i < check->values; i++) {
		leat_str_add(out, i ? separator : "");
		print_word(out, check->value[i], end);
	}
}

static void
print_range(struct leat_str *out, const struct leat_check *check)
{
	leat_str_addf(out, "%s..%s", check->low ? check->low : "", check->high ? check->high : "");
}

static void
print_table(struct leat_str *out, const struct leat_check *check)
{
	leat_str_add(out, check->table);
	if (!check->other)
		return;
	leat_str_add(out, ".");
	print_word(out, check->other, "");
}

/* "1..10", or "as events.id" */
static void
print_bounds(struct leat_str *out, const struct leat_check *check)
{
	if (!check->table) {
		print_range(out, check);
		return;
	}
	leat_str_add(out, check->up_to ? "up to " : "as ");
	print_table(out, check);
}

static void
print_check(struct leat_str *out, const struct leat_check *check)
{
	char number[32];

	switch (check->kind) {
	case LEAT_CHECK_NOT_NULL:
		leat_str_add(out, "not null");
		break;
	case LEAT_CHECK_NULLS:
		leat_str_add(out, "nulls up to ");
		leat_check_print_share(out, check->share);
		break;
	case LEAT_CHECK_UNIQUE:
		leat_str_add(out, check->values ? "unique with " : "unique");
		print_values(out, check, ", ", ",");
		break;
	case LEAT_CHECK_FINITE:
		leat_str_add(out, "finite");
		break;
	case LEAT_CHECK_LENGTH:
		leat_str_add(out, "length ");
		print_range(out, check);
		break;
	case LEAT_CHECK_ONE_OF:
		leat_str_add(out, "one of ");
		print_values(out, check, " | ", "|");
		break;
	case LEAT_CHECK_IN:
		leat_str_add(out, "in ");
		print_table(out, check);
		break;
	case LEAT_CHECK_DRIFT:
		leat_str_addf(out, "drift up to %s", leat_format_digits(number, sizeof(number), check->share, 15));
		break;
	case LEAT_CHECK_COUNT:
		leat_str_add(out, "count ");
		print_bounds(out, check);
		break;
	case LEAT_CHECK_MATCHES:
		leat_str_addf(out, "matches %s", check->text);
		break;
	case LEAT_CHECK_TYPE:
		leat_str_addf(out, "type %s", check->text);
		break;
	case LEAT_CHECK_RANGE:
	case LEAT_CHECK_ROWS:
		print_bounds(out, check);
		break;
	}
}

bool
leat_check_print(struct leat_check *check, struct leat_mem *mem)
{
	struct leat_str name;

	leat_str_init(&name, mem, SIZE_MAX);
	if (check->column)
		print_column(&name, check->column);
	else
		leat_str_add(&name, "rows");
	leat_str_add(&name, ": ");
	print_check(&name, check);
	check->name = leat_str_take(&name);
	leat_str_free(&name);
	return check->name != NULL;
}

/* ---- adding ---- */

static bool
is_utf8(const char *text)
{
	size_t len;

	for (; *text; text += len)
		if (!(len = leat_utf8_length(text)))
			return false;
	return true;
}

static enum leat_status
check_text(const char *text, struct leat_err *err)
{
	if (strlen(text) > LEAT_CHECK_BYTES)
		return leat_fail(err, LEAT_SPEC, "a check has %zu bytes; at most %d are allowed", strlen(text),
		                 LEAT_CHECK_BYTES);
	return is_utf8(text) ? LEAT_OK : leat_fail_at(err, text, 0, 1, "a check must be UTF-8");
}

/* A column's name, or the word rows, which is the kind. */
static enum leat_status
parse_column(struct leat_check *check, const char *text, struct leat_mem *mem, struct leat_err *err)
{
	size_t at = 0;

	if (strcmp(text, "rows") == 0) {
		check->kind = LEAT_CHECK_ROWS;
		return LEAT_OK;
	}
	check->column = leat_check_word(text, &at, "", "the name of a column", mem, err);
	return check->column ? LEAT_OK : err->status;
}

static bool
has(const struct leat_checks *checks, const char *name)
{
	for (size_t i = 0; i < checks->count; i++)
		if (strcmp(checks->check[i].name, name) == 0)
			return true;
	return false;
}

enum leat_status
leat_checks_add(struct leat_checks *checks, const char *column, const char *text, struct leat_err *err)
{
	struct leat_check check = {0};
	struct leat_err why = {0};
	enum leat_status status = check_text(column, &why);

	if (status == LEAT_OK)
		status = check_text(text, &why);
	if (status == LEAT_OK)
		status = parse_column(&check, column, checks->mem, &why);
	if (status == LEAT_OK)
		status = leat_check_parse(&check, text, checks->mem, &why);
	if (status == LEAT_OK && !leat_check_print(&check, checks->mem))
		status = leat_fail_mem(&why, checks->mem, LEAT_CHECK_BYTES, "a check");
	if (status == LEAT_OK && !has(checks, check.name)) {
		status = LEAT_GROW(checks->mem, checks->check, checks->cap, checks->count + 1, LEAT_MAX_CHECKS,
		                   "the list of checks", &why);
		if (status == LEAT_OK) {
			checks->check[checks->count++] = check;
			return LEAT_OK;
		}
	}
	leat_check_free(&check, checks->mem);
	return status == LEAT_OK ? LEAT_OK : leat_fail_as(err, &why);
}

/* Length of the column's name at the beginning of a line: up to the colon. */
static size_t
column_length(const char *line)
{
	size_t n = strspn(line, " \t");

	if (line[n] != '"')
		return strcspn(line, ":");
	/* A doubled quote ends a part and begins another. */
	while (line[n] == '"') {
		n += 1 + strcspn(line + n + 1, "\"");
		n += line[n] == '"';
	}
	return n + strcspn(line + n, ":");
}

enum leat_status
leat_checks_add_line(struct leat_checks *checks, const char *line, struct leat_err *err)
{
	enum leat_status status = check_text(line, err);
	size_t len = column_length(line), end = len;
	char *column;

	if (status != LEAT_OK)
		return status;
	if (!line[len])
		return leat_fail_at(err, line, 0, strlen(line),
		                    "a check is a column, a colon and what must hold, as in 'amount: 0..100'");
	while (end > 0 && strchr(" \t\r\n", line[end - 1]))
		end--;
	len += 1 + strspn(line + len + 1, " \t\r\n");
	column = leat_strndup(checks->mem, line, end);
	if (!column)
		return leat_fail_mem(err, checks->mem, end, "a check");
	status = leat_checks_add(checks, column + strspn(column, " \t\r\n"), line + len, err);
	leat_free(checks->mem, column);
	return status;
}

/* ---- what to do ---- */

static const char *const actions[] = {"fail", "quarantine", "warn"};
enum { ACTIONS = sizeof(actions) / sizeof(*actions) };

/* "", or "up to 5%". */
static enum leat_status
parse_most(struct leat_checks *checks, const char *text, size_t at, struct leat_err *err)
{
	size_t from = at + strspn(text + at, " ");

	checks->most = 1;
	if (!text[from])
		return LEAT_OK;
	if (strncmp(text + from, "up to ", 6) != 0)
		return leat_fail_at(err, text, from, strlen(text + from),
		                    "only a share may follow, as in '%s up to 0.1%%'", actions[checks->what]);
	if (checks->what == LEAT_CHECKS_FAIL)
		return leat_fail_at(err, text, from, strlen(text + from),
		                    "'fail' is for any row that fails; use 'quarantine up to ...' or 'warn up to ...'");
	return leat_check_share(text, from + 6, &checks->most, err);
}

enum leat_status
leat_checks_set_action(struct leat_checks *checks, const char *text, struct leat_err *err)
{
	size_t from = strspn(text, " "), len = strcspn(text + from, " ");
	char message[LEAT_UNKNOWN_TEXT], word[32] = "";

	for (size_t i = 0; i < ACTIONS; i++)
		if (len == strlen(actions[i]) && strncmp(text + from, actions[i], len) == 0) {
			checks->what = (enum leat_checks_do)i;
			return parse_most(checks, text, from + len, err);
		}
	leat_show(word, sizeof(word), text + from, len < 30 ? len : 30);
	leat_unknown_text(&(struct leat_unknown){.what = "action", .name = word, .known = actions, .count = ACTIONS},
	                  message);
	return leat_fail_at(err, text, from, len, "%s", message);
}

void
leat_checks_action_text(const struct leat_checks *checks, struct leat_str *out)
{
	leat_str_add(out, actions[checks->what]);
	if (checks->what == LEAT_CHECKS_FAIL || checks->most >= 1)
		return;
	leat_str_add(out, " up to ");
	leat_check_print_share(out, checks->most);
}
