/* rejects.c - see rejects.h */
#include "table/rejects.h"

#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"

enum { SHOWN_VALUE = 60, SHOWN_RAW = 100 };

const char *
leat_csv_fault_text(enum leat_csv_fault fault)
{
	switch (fault) {
	case LEAT_FAULT_NONE:
		break;
	case LEAT_FAULT_COLUMNS:
		return "wrong number of fields";
	case LEAT_FAULT_UNCLOSED:
		return "a quoted field is not closed";
	case LEAT_FAULT_AFTER:
		return "text after a closing quote";
	case LEAT_FAULT_INSIDE:
		return "a quote inside an unquoted field";
	case LEAT_FAULT_RETURN:
		return "a carriage return without a line feed";
	case LEAT_FAULT_BREAK:
		return "a line break in a column that cannot have one";
	case LEAT_FAULT_NUL:
		return "a NUL byte";
	case LEAT_FAULT_UTF8:
		return "invalid UTF-8";
	case LEAT_FAULT_LONG:
		return "longer than a record may be";
	}
	return "";
}

enum leat_status
leat_rejects_open(struct leat_rejects *rejects, const char *folder, struct leat_str *examples, unsigned most_examples,
                  struct leat_mem *mem, struct leat_err *err)
{
	*rejects = (struct leat_rejects){.mem = mem, .examples = examples, .most_examples = most_examples};
	leat_str_init(&rejects->line, mem, SIZE_MAX / 4);
	rejects->path = leat_asprintf(mem, "%s/rejects.jsonl", folder);
	if (!rejects->path)
		return leat_fail_mem(err, mem, strlen(folder), "the name of a file");
	rejects->file = fopen(rejects->path, "we");
	return rejects->file ? LEAT_OK : leat_fail_errno(err, errno, "cannot create '%s'", rejects->path);
}

void
leat_rejects_close(struct leat_rejects *rejects)
{
	if (!rejects->mem)
		return;
	if (rejects->file)
		fclose(rejects->file);
	leat_str_free(&rejects->line);
	leat_free(rejects->mem, rejects->path);
	*rejects = (struct leat_rejects){0};
}

/* ---- JSON ---- */

/* A character of `bytes` bytes, which is visible or at least UTF-8. */
static void
add_character(struct leat_str *line, const char *text, size_t bytes)
{
	unsigned char c = (unsigned char)*text;

	if (bytes == 1 && (c == '"' || c == '\\'))
		leat_str_addf(line, "\\%c", c);
	else if (bytes == 1 && c == '\n')
		leat_str_add(line, "\\n");
	else if (bytes == 1 && (c < 0x20 || c == 0x7f))
		leat_str_addf(line, "\\u%04x", c);
	else
		leat_str_addn(line, text, bytes);
}

/* Bytes that may be anything, in quotes. False: some were no UTF-8, or NUL, and were replaced. `text` is followed by a
 * byte that is in no character. */
static bool
add_bytes(struct leat_str *line, const char *text, size_t len)
{
	const char *end = text + len;
	bool exact = true;

	leat_str_add(line, "\"");
	while (text < end) {
		size_t bytes = leat_utf8_length(text);

		if (bytes == 0 || *text == '\0' || bytes > (size_t)(end - text)) {
			leat_str_add(line, "\\ufffd");
			exact = false;
			text++;
			continue;
		}
		add_character(line, text, bytes);
		text += bytes;
	}
	leat_str_add(line, "\"");
	return exact;
}

static void
add_hex(struct leat_str *line, const char *text, size_t len)
{
	leat_str_add(line, ",\"raw_hex\":\"");
	for (size_t i = 0; i < len; i++)
		leat_str_addf(line, "%02x", (unsigned char)text[i]);
	leat_str_add(line, "\"");
}

void
leat_reject_reason(struct leat_str *text, const struct leat_reject *reject)
{
	char shown[SHOWN_VALUE + 8];

	if (reject->record->fault == LEAT_FAULT_COLUMNS) {
		leat_str_addf(text, "%zu field%s instead of %zu", reject->record->fields,
		              leat_plural(reject->record->fields), reject->expected);
		return;
	}
	if (reject->value)
		leat_str_addf(text, "'%s' is ", leat_show(shown, sizeof(shown), reject->value, reject->value_len));
	leat_str_add(text, reject->why);
}

/* ---- adding ---- */

static void
count_reason(struct leat_rejects *rejects, const char *why)
{
	size_t i = 0;

	while (i < rejects->reasons && strcmp(rejects->reason[i].text, why) != 0)
		i++;
	if (i == LEAT_MAX_REASONS)
		return;
	if (i == rejects->reasons)
		rejects->reason[rejects->reasons++].text = why;
	rejects->reason[i].count++;
}

/* "events.csv, line 17, column 'amount': '12x' is no number: 7,2026-01-01,12x" */
static void
add_example(struct leat_rejects *rejects, const struct leat_reject *reject, const char *reason)
{
	char shown[SHOWN_RAW + 8];
	struct leat_str *out = rejects->examples;

	leat_str_add_shown(out, reject->file);
	leat_str_addf(out, ", line %llu", (unsigned long long)reject->record->line);
	if (reject->column) {
		leat_str_add(out, ", column '");
		leat_str_add_shown(out, reject->column);
		leat_str_add(out, "'");
	}
	leat_str_addf(out, ": %s: %s\n", reason,
	              leat_show(shown, sizeof(shown), reject->record->raw, reject->record->raw_len));
}

static void
add_line(struct leat_rejects *rejects, const struct leat_reject *reject, const char *reason)
{
	const struct leat_csv_record *record = reject->record;
	struct leat_str *line = &rejects->line;

	leat_str_add(line, "{\"file\":");
	add_bytes(line, reject->file, strlen(reject->file));
	leat_str_addf(line, ",\"line\":%llu,\"column\":", (unsigned long long)record->line);
	if (reject->column)
		add_bytes(line, reject->column, strlen(reject->column));
	else
		leat_str_add(line, "null");
	leat_str_add(line, ",\"reason\":");
	add_bytes(line, reason, strlen(reason));
	if (record->fault == LEAT_FAULT_LONG)
		leat_str_addf(line, ",\"bytes\":%zu", record->bytes);
	leat_str_add(line, ",\"raw\":");
	if (!add_bytes(line, record->raw, record->raw_len))
		add_hex(line, record->raw, record->raw_len);
	leat_str_add(line, "}\n");
}

enum leat_status
leat_rejects_add(struct leat_rejects *rejects, const struct leat_reject *reject, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;
	struct leat_str reason;

	leat_str_init(&reason, rejects->mem, 4096);
	leat_reject_reason(&reason, reject);
	count_reason(rejects, reject->why);
	if (rejects->count++ < rejects->most_examples)
		add_example(rejects, reject, leat_str_text(&reason));
	rejects->line.len = 0;
	add_line(rejects, reject, leat_str_text(&reason));
	if (rejects->line.failed || reason.failed)
		status = leat_fail_mem(err, rejects->mem, reject->record->raw_len, "a rejected record");
	else if (fwrite(rejects->line.text, 1, rejects->line.len, rejects->file) != rejects->line.len)
		status = leat_fail_errno(err, errno, "cannot write '%s'", rejects->path);
	leat_str_free(&reason);
	return status;
}

enum leat_status
leat_rejects_end(struct leat_rejects *rejects, struct leat_err *err)
{
	FILE *file = rejects->file;

	rejects->file = NULL;
	return fclose(file) == 0 ? LEAT_OK : leat_fail_errno(err, errno, "cannot write '%s'", rejects->path);
}
