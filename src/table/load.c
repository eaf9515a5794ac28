/* load.c - see load.h */
#include "table/load.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "base/names.h"
#include "table/json_line.h"
#include "table/rejects.h"
#include "table/rows_write.h"
#include "table/text_input.h"

enum { MAX_CHUNK = 1 << 20 };

/* ---- options ---- */

enum leat_status
leat_reject_limit_read(struct leat_reject_limit *limit, const char *text, struct leat_err *err)
{
	size_t whole = strspn(text, "0123456789"), len = whole;
	double percent = 0, unit = 1;

	*limit = (struct leat_reject_limit){.share = -1};
	if (whole > 0 && whole <= 15 && !text[whole]) {
		limit->count = strtoull(text, NULL, 10);
		return LEAT_OK;
	}
	if (text[len] == '.')
		len += 1 + strspn(text + len + 1, "0123456789");
	if (whole == 0 || len > 20 || strcmp(text + len, "%") != 0)
		return leat_fail(err, LEAT_INVALID,
		                 "'%s' is no limit of rejects; write a share such as 0.1%%, or a number", text);
	for (size_t i = 0; i < len; i++) { /* in any locale */
		if (text[i] == '.')
			continue;
		percent = percent * 10 + (text[i] - '0');
		unit = i > whole ? unit * 10 : unit;
	}
	limit->share = percent / (unit * 100);
	return limit->share <= 1 ? LEAT_OK : leat_fail(err, LEAT_INVALID, "'%s' is more than 100%%", text);
}

bool
leat_reject_limit_holds(const struct leat_reject_limit *limit, uint64_t rejected, uint64_t read)
{
	return limit->share < 0 ? rejected <= limit->count : (double)rejected <= limit->share * (double)read;
}

enum leat_status
leat_delimiter_read(const char *text, char *delimiter, struct leat_err *err)
{
	*delimiter = !strcmp(text, "tab") || !strcmp(text, "\\t") ? '\t' : *text;
	if (*delimiter == '\t' || (strlen(text) == 1 && *text > ' ' && *text < 0x7f && *text != '"' && *text != '.' &&
	                           *text != '-' && *text != '+' && !strpbrk(text, "0123456789") &&
	                           !(*text >= 'a' && *text <= 'z') && !(*text >= 'A' && *text <= 'Z')))
		return LEAT_OK;
	return leat_fail(err, LEAT_INVALID, "'%s' is no delimiter; use one such as , ; | or tab", text);
}

/* ---- a file at a time ---- */

struct file_counts {
	uint64_t read, kept, rejected, empty_lines;
};

struct loader {
	const struct leat_load *load;
	const char *const *file;
	char **name;  /* in results: without folders, unless two would be the same */
	char **shown; /* in errors */
	struct file_counts *counts;
	size_t files, at; /* `at`: the file that is read */
	struct leat_mem *mem;
	struct leat_text_input *input;
	struct leat_csv_split split;
	bool is_open;
	size_t *column; /* by field of the file: index of the declared column */
	size_t *cell;   /* by declared column: its place in the output; SIZE_MAX: skipped */
	bool *one_line; /* by field of the file */
	bool is_json;   /* the file */
	struct leat_json_line json;
	bool *seen; /* by declared column: the object has it */
	struct leat_rejects rejects;
	struct leat_load_result *result;
	uint64_t total; /* bytes of all files */
};

static const struct leat_declared *
column_of(const struct loader *l, size_t field)
{
	return &l->load->columns->column[l->column[field]];
}

static void
close_file(struct loader *l)
{
	if (l->is_open) {
		l->counts[l->at].empty_lines = l->split.empty_lines;
		l->result->bytes += leat_text_input_offset(l->input);
	}
	leat_csv_split_close(&l->split);
	leat_text_input_close(l->input);
	l->input = NULL;
	l->is_open = false;
}

/* ---- the header ---- */

static enum leat_status
fail_header(const struct loader *l, const struct leat_csv_record *header, struct leat_err *err)
{
	if (header->raw_len >= 2 && (!memcmp(header->raw, "\xff\xfe", 2) || !memcmp(header->raw, "\xfe\xff", 2)))
		return leat_fail(err, LEAT_DATA, "'%s' is UTF-16; convert it first (iconv -f utf-16 -t utf-8)",
		                 l->shown[l->at]);
	return leat_fail(err, LEAT_DATA, "'%s', line %llu: the header cannot be read: %s", l->shown[l->at],
	                 (unsigned long long)header->line, leat_csv_fault_text(header->fault));
}

static enum leat_status
fail_names(const struct loader *l, const struct leat_csv_record *header, const char *missing, struct leat_err *err)
{
	struct leat_str list;
	enum leat_status status;

	leat_str_init(&list, l->mem, 300);
	for (size_t i = 0; i < header->fields; i++) {
		leat_str_add(&list, i ? ", " : "");
		leat_str_addn(&list, header->field[i].text, header->field[i].len);
	}
	status = leat_fail(err, LEAT_DATA,
	                   "'%s' has no column '%s'; its header names %s%s (if it has no header, say %s)",
	                   l->shown[l->at], missing, leat_str_text(&list), list.failed ? ", ..." : "",
	                   l->load->open ? "header=false" : "header: false or --no-header");
	leat_str_free(&list);
	return status;
}

/* The index of the declared column; columns->count: there is none. */
static size_t
find_column(const struct leat_declared_columns *columns, const struct leat_csv_field *field)
{
	size_t i = 0;

	while (i < columns->count && (strlen(columns->column[i].name) != field->len ||
	                              memcmp(columns->column[i].name, field->text, field->len) != 0))
		i++;
	return i;
}

static enum leat_status
match_header(struct loader *l, const struct leat_csv_record *header, struct leat_err *err)
{
	const struct leat_declared_columns *columns = l->load->columns;
	size_t matched = 0, extra = SIZE_MAX;

	for (size_t i = 0; i < columns->count; i++)
		l->column[i] = SIZE_MAX;
	for (size_t i = 0; i < header->fields; i++) {
		const struct leat_csv_field *field = &header->field[i];
		size_t column = find_column(columns, field);

		if (column == columns->count) {
			extra = extra == SIZE_MAX ? i : extra;
			continue;
		}
		for (size_t k = 0; k < matched; k++)
			if (l->column[k] == column)
				return leat_fail(err, LEAT_DATA, "'%s' has two columns '%s'", l->shown[l->at],
				                 columns->column[column].name);
		l->column[matched++] = column;
	}
	for (size_t i = 0; i < columns->count; i++) {
		size_t k = 0;

		while (k < matched && l->column[k] != i)
			k++;
		if (k == matched)
			return fail_names(l, header, columns->column[i].name, err);
	}
	if (extra != SIZE_MAX)
		return leat_fail(
			err, LEAT_DATA,
			"'%s' has a column '%.*s' that is not declared; add it with its type, or with 'skip' to leave "
			"it out",
			l->shown[l->at], (int)(header->field[extra].len < 100 ? header->field[extra].len : 100),
			header->field[extra].text);
	return LEAT_OK;
}

static enum leat_status
read_header(struct loader *l, struct leat_err *err)
{
	struct leat_csv_record header;
	enum leat_status status = leat_csv_split_next(&l->split, &header, err);

	if (status == LEAT_END)
		return leat_fail(err, LEAT_DATA, "'%s' is empty; expected a header with the names of its columns",
		                 l->shown[l->at]);
	if (status == LEAT_OK && header.fault != LEAT_FAULT_NONE)
		status = fail_header(l, &header, err);
	return status == LEAT_OK ? match_header(l, &header, err) : status;
}

static bool
ends_in(const char *name, size_t len, const char *end)
{
	return len > strlen(end) && !strncasecmp(name + len - strlen(end), end, strlen(end));
}

static bool
is_json(const struct leat_load *load, const char *name)
{
	size_t len = strlen(name);

	len -= ends_in(name, len, ".gz") ? 3 : ends_in(name, len, ".zst") ? 4 : 0;
	if (load->format != LEAT_LOAD_AUTO)
		return load->format == LEAT_LOAD_JSONL;
	return ends_in(name, len, ".jsonl") || ends_in(name, len, ".ndjson");
}

static enum leat_status
open_file(struct loader *l, struct leat_err *err)
{
	const struct leat_declared_columns *columns = l->load->columns;
	struct leat_csv_bytes bytes = {0};
	enum leat_status status;

	if (l->load->open)
		bytes = l->load->open(l->load->arg, l->at);
	status = bytes.read ? leat_text_input_open_bytes(&l->input, &bytes, l->shown[l->at], l->mem, err)
	                    : leat_text_input_open(&l->input, l->file[l->at], l->shown[l->at], l->mem, err);
	if (status == LEAT_OK)
		status = leat_csv_split_open(&l->split, &(struct leat_csv_bytes){leat_text_input_read, l->input},
		                             l->load->delimiter, l->load->max_record, l->mem, err);
	if (status != LEAT_OK)
		return status;
	l->is_open = true;
	l->is_json = is_json(l->load, l->name[l->at]);
	l->split.lines = l->is_json;
	for (size_t i = 0; i < columns->count; i++)
		l->column[i] = i;
	if (l->load->header && !l->is_json)
		status = read_header(l, err);
	for (size_t i = 0; i < columns->count && status == LEAT_OK; i++)
		l->one_line[i] = column_of(l, i)->kind != LEAT_COLUMN_TEXT;
	l->split.columns = columns->count;
	l->split.one_line = l->one_line;
	return status;
}

/* ---- rows ---- */

static enum leat_status
reject(struct loader *l, struct leat_reject *reject, size_t field, struct leat_err *err)
{
	reject->file = l->name[l->at];
	reject->expected = l->load->columns->count;
	if (field < l->load->columns->count && reject->record->fault != LEAT_FAULT_COLUMNS)
		reject->column = column_of(l, field)->name;
	l->counts[l->at].rejected++;
	return l->load->reject ? l->load->reject(l->load->arg, l->at, reject, err)
	                       : leat_rejects_add(&l->rejects, reject, err);
}

static bool
is_null(const struct loader *l, const struct leat_declared *column, const struct leat_csv_field *field)
{
	if (field->len == 0)
		return !field->quoted || column->kind != LEAT_COLUMN_TEXT;
	for (size_t i = 0; i < l->load->nulls && !field->quoted; i++)
		if (strlen(l->load->null[i]) == field->len && !memcmp(l->load->null[i], field->text, field->len))
			return true;
	return false;
}

/* Puts the values of a record into a row. NULL: all were fine; else why not, and *field. */
static const char *
put_row(struct loader *l, const struct leat_csv_record *record, struct leat_row_chunk *chunk, size_t row, size_t *at)
{
	for (size_t i = 0; i < record->fields; i++) {
		const struct leat_csv_field *field = &record->field[i];
		const struct leat_declared *column = column_of(l, i);
		size_t place = l->cell[l->column[i]];
		struct leat_cells *cells;
		const char *why;

		if (column->skip)
			continue;
		cells = &chunk->cells[place];
		if (is_null(l, column, field)) {
			leat_cell_set_null(cells, row);
			continue;
		}
		leat_cell_set_valid(cells, row);
		if (column->kind == LEAT_COLUMN_TEXT) {
			leat_cell_set_text(chunk, place, row, field->text, field->len);
			continue;
		}
		why = leat_value_parse(column, field->text, field->len,
		                       (char *)cells->values + row * leat_value_size(column));
		if (why) {
			*at = i;
			return why;
		}
	}
	return NULL;
}

/* ---- JSON ---- */

/* Columns usually come in the same order, so the search begins after the last one. */
static size_t
find_name(const struct leat_declared_columns *columns, const struct leat_json_member *member, size_t from)
{
	for (size_t n = 0; n < columns->count; n++) {
		size_t i = (from + n) % columns->count;
		const char *name = columns->column[i].name;

		if (strlen(name) == member->name_len && !memcmp(name, member->name, member->name_len))
			return i;
	}
	return columns->count;
}

/* Numbers are numbers, texts are texts, and dates are texts. Objects and arrays are texts of JSON. */
static const char *
put_json(struct leat_row_chunk *chunk, const struct leat_declared *column, size_t place, size_t row,
         const struct leat_json_member *member)
{
	bool is_text = member->kind == LEAT_JSON_TEXT;
	struct leat_cells *cells = &chunk->cells[place];

	if (member->kind == LEAT_JSON_NULL) {
		leat_cell_set_null(cells, row);
		return NULL;
	}
	leat_cell_set_valid(cells, row);
	if (column->kind == LEAT_COLUMN_TEXT) {
		if (!is_text && member->kind != LEAT_JSON_NESTED)
			return "no text";
		leat_cell_set_text(chunk, place, row, member->text, member->len);
		return NULL;
	}
	if (column->kind == LEAT_COLUMN_BOOL && member->kind != LEAT_JSON_BOOL)
		return "no bool: true or false";
	if ((column->kind == LEAT_COLUMN_DATE || column->kind == LEAT_COLUMN_TIMESTAMP) && !is_text)
		return "no text with a date";
	if (column->kind != LEAT_COLUMN_DATE && column->kind != LEAT_COLUMN_TIMESTAMP && is_text)
		return "a text, no number";
	return leat_value_parse(column, member->text, member->len,
	                        (char *)cells->values + row * leat_value_size(column));
}

/* Puts the members of an object into a row. NULL: all were fine; else why not, and of which value and column. */
static const char *
put_object(struct loader *l, struct leat_row_chunk *chunk, size_t row, struct leat_reject *bad)
{
	const struct leat_declared_columns *columns = l->load->columns;
	size_t next = 0;

	memset(l->seen, 0, columns->count * sizeof(*l->seen));
	for (size_t i = 0; i < l->json.members; i++, next++) {
		const struct leat_json_member *member = &l->json.member[i];
		const char *why = NULL;

		bad->value = member->name;
		bad->value_len = member->name_len;
		next = find_name(columns, member, next);
		if (next == columns->count)
			return "a name that is not declared";
		if (l->seen[next])
			return "a name that is there twice";
		l->seen[next] = true;
		if (!columns->column[next].skip)
			why = put_json(chunk, &columns->column[next], l->cell[next], row, member);
		if (!why)
			continue;
		bad->value = member->text;
		bad->value_len = member->len;
		bad->column = columns->column[next].name;
		return why;
	}
	for (size_t i = 0; i < columns->count; i++)
		if (!l->seen[i] && !columns->column[i].skip)
			leat_cell_set_null(&chunk->cells[l->cell[i]], row);
	return NULL;
}

static enum leat_status
take_line(struct loader *l, const struct leat_csv_record *record, struct leat_row_chunk *chunk, size_t *rows,
          struct leat_err *err)
{
	struct leat_reject bad = {.record = record};
	enum leat_status status = LEAT_OK;

	l->counts[l->at].read++;
	if (record->fault != LEAT_FAULT_NONE)
		bad.why = leat_csv_fault_text(record->fault);
	else
		status = leat_json_line_read(&l->json, record->raw, record->raw_len, &bad.why, err);
	if (status == LEAT_OK && !bad.why)
		bad.why = put_object(l, chunk, *rows, &bad);
	if (status != LEAT_OK)
		return status;
	if (bad.why)
		return reject(l, &bad, SIZE_MAX, err);
	l->counts[l->at].kept++;
	(*rows)++;
	return LEAT_OK;
}

/* ---- records ---- */

static enum leat_status
take_record(struct loader *l, const struct leat_csv_record *record, struct leat_row_chunk *chunk, size_t *rows,
            struct leat_err *err)
{
	struct leat_reject bad = {.record = record};
	size_t field = record->column;

	l->counts[l->at].read++;
	if (record->fault != LEAT_FAULT_NONE) {
		bad.why = leat_csv_fault_text(record->fault);
		return reject(l, &bad, field, err);
	}
	bad.why = put_row(l, record, chunk, *rows, &field);
	if (bad.why) {
		bad.value = record->field[field].text;
		bad.value_len = record->field[field].len;
		return reject(l, &bad, field, err);
	}
	l->counts[l->at].kept++;
	(*rows)++;
	return LEAT_OK;
}

static void
tell_progress(const struct loader *l)
{
	if (l->load->progress)
		l->load->progress(l->load->progress_arg,
		                  l->result->bytes + (l->is_open ? leat_text_input_offset(l->input) : 0), l->total);
}

static uint64_t
total_bytes(const char *const *files, size_t count)
{
	uint64_t total = 0;
	struct stat file;

	for (size_t i = 0; i < count; i++)
		total += stat(files[i], &file) == 0 ? (uint64_t)file.st_size : 0;
	return total;
}

/* For leat_row_maker: fills a chunk, from as many files as it takes, or until it is large: texts may be long. */
static enum leat_status
make_rows(void *arg, struct leat_row_chunk *chunk, size_t *rows, struct leat_err *err)
{
	struct loader *l = arg;
	enum leat_status status = LEAT_OK;
	struct leat_csv_record record;
	size_t before = 0, bytes = 0;

	*rows = 0;
	if (l->load->stop && atomic_load(l->load->stop))
		return leat_fail(err, LEAT_CANCELLED, "interrupted");
	tell_progress(l);
	while (status == LEAT_OK && *rows < chunk->room && bytes < MAX_CHUNK && l->at < l->files) {
		if (!l->is_open)
			status = open_file(l, err);
		if (status == LEAT_OK)
			status = leat_csv_split_next(&l->split, &record, err);
		before = *rows;
		if (status == LEAT_OK)
			status = l->is_json ? take_line(l, &record, chunk, rows, err)
			                    : take_record(l, &record, chunk, rows, err);
		if (*rows > before) /* a chunk without rows would be the end */
			bytes += record.raw_len;
		if (status == LEAT_END) {
			close_file(l);
			l->at++;
			status = LEAT_OK;
		}
	}
	return status;
}

/* ---- counts ---- */

static void
add_counts(struct leat_str *json, const struct file_counts *counts)
{
	leat_str_addf(json, "\"read\":%llu,\"kept\":%llu,\"rejected\":%llu,\"empty_lines\":%llu",
	              (unsigned long long)counts->read, (unsigned long long)counts->kept,
	              (unsigned long long)counts->rejected, (unsigned long long)counts->empty_lines);
}

static void
print_counts(const struct loader *l, const struct file_counts *all, struct leat_str *json)
{
	char buffer[32];

	leat_str_add(json, "{");
	add_counts(json, all);
	leat_str_add(json, ",\"reasons\":{");
	for (size_t i = 0; i < l->rejects.reasons; i++) {
		leat_str_add(json, i ? "," : "");
		leat_str_add_json(json, l->rejects.reason[i].text);
		leat_str_addf(json, ":%llu", (unsigned long long)l->rejects.reason[i].count);
	}
	leat_str_add(json, "},\"columns\":{");
	for (size_t i = 0; i < l->load->columns->count; i++) {
		leat_str_add(json, i ? "," : "");
		leat_str_add_json(json, l->load->columns->column[i].name);
		leat_str_addf(json, ":\"%s\"", leat_declared_type(&l->load->columns->column[i], buffer));
	}
	leat_str_add(json, "},\"files\":[");
	for (size_t i = 0; i < l->files; i++) {
		leat_str_addf(json, "%s\n{\"file\":", i ? "," : "");
		leat_str_add_json(json, l->name[i]);
		leat_str_add(json, ",");
		add_counts(json, &l->counts[i]);
		leat_str_add(json, "}");
	}
	leat_str_add(json, "]}\n");
}

static enum leat_status
write_counts(const struct loader *l, const struct file_counts *all, const char *out, struct leat_err *err)
{
	char *path = leat_asprintf(l->mem, "%s/counts.json", out);
	enum leat_status status = LEAT_OK;
	struct leat_str json;
	FILE *file = NULL;
	bool written;

	leat_str_init(&json, l->mem, SIZE_MAX / 4);
	print_counts(l, all, &json);
	if (!path || json.failed)
		status = leat_fail_mem(err, l->mem, json.len, "counts");
	if (status == LEAT_OK && !(file = fopen(path, "we")))
		status = leat_fail_errno(err, errno, "cannot create '%s'", path);
	if (file) {
		written = fwrite(json.text, 1, json.len, file) == json.len;
		if (fclose(file) != 0 || !written)
			status = leat_fail_errno(err, errno, "cannot write '%s'", path);
	}
	leat_str_free(&json);
	leat_free(l->mem, path);
	return status;
}

/* The rows that the Parquet file says it has. DuckDB takes names as patterns, so [ * and ? go into brackets. */
static enum leat_status
count_rows(const struct loader *l, struct leat_tables *tables, const char *path, int64_t *rows, struct leat_err *err)
{
	struct leat_str pattern, sql;
	enum leat_status status;

	leat_str_init(&pattern, l->mem, 1 << 16);
	leat_str_init(&sql, l->mem, 1 << 17);
	for (; *path; path++)
		leat_str_addf(&pattern, strchr("[*?", *path) ? "[%c]" : "%c", *path);
	leat_str_add(&sql, "SELECT count(*) FROM read_parquet(");
	leat_sql_quote(&sql, leat_str_text(&pattern), '\'');
	leat_str_add(&sql, ")");
	status = pattern.failed || sql.failed ? leat_fail_mem(err, l->mem, sql.len, "a statement")
	                                      : leat_query_int64(tables, leat_str_text(&sql), rows, err);
	leat_str_free(&pattern);
	leat_str_free(&sql);
	return status;
}

/* Adds up, and compares with what the Parquet file says about itself. */
static enum leat_status
check_counts(const struct loader *l, struct leat_tables *tables, const char *rows_path, struct file_counts *all,
             struct leat_err *err)
{
	enum leat_status status;
	int64_t rows = 0;

	for (size_t i = 0; i < l->files; i++) {
		all->read += l->counts[i].read;
		all->kept += l->counts[i].kept;
		all->rejected += l->counts[i].rejected;
		all->empty_lines += l->counts[i].empty_lines;
	}
	status = count_rows(l, tables, rows_path, &rows, err);
	if (status == LEAT_OK && ((uint64_t)rows != all->kept || all->read != all->kept + all->rejected))
		status = leat_fail(err, LEAT_INTERNAL,
		                   "%llu records were read, %llu kept and %llu rejected, but '%s' has %lld rows",
		                   (unsigned long long)all->read, (unsigned long long)all->kept,
		                   (unsigned long long)all->rejected, rows_path, (long long)rows);
	l->result->read = all->read;
	l->result->kept = all->kept;
	l->result->rejected = all->rejected;
	l->result->empty_lines = all->empty_lines;
	return status;
}

/* ---- all of it ---- */

static const char *
base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Files as results and errors name them. A link is named by what it leads to: steps read their files by links. */
static enum leat_status
name_file(struct loader *l, size_t i, struct leat_err *err)
{
	char *real = realpath(l->file[i], NULL);
	struct stat st;
	bool is_link = real && lstat(l->file[i], &st) == 0 && S_ISLNK(st.st_mode);

	l->name[i] = leat_strdup(l->mem, base_name(real ? real : l->file[i]));
	l->shown[i] = leat_strdup(l->mem, is_link ? real : l->file[i]);
	free(real);
	for (size_t k = 0; l->name[i] && k < i; k++)
		if (!strcmp(l->name[i], base_name(l->name[k]))) {
			leat_free(l->mem, l->name[i]);
			l->name[i] = leat_strdup(l->mem, l->file[i]);
			break;
		}
	return l->name[i] && l->shown[i] ? LEAT_OK
	                                 : leat_fail_mem(err, l->mem, strlen(l->file[i]), "the names of files");
}

static enum leat_status
prepare(struct loader *l, const char *out, struct leat_err *err)
{
	const struct leat_declared_columns *columns = l->load->columns;
	enum leat_status status = LEAT_OK;
	size_t cells = 0;

	l->name = leat_alloc_array(l->mem, l->files, sizeof(*l->name));
	l->shown = leat_alloc_array(l->mem, l->files, sizeof(*l->shown));
	l->counts = leat_alloc_array(l->mem, l->files, sizeof(*l->counts));
	l->column = leat_alloc_array(l->mem, columns->count, sizeof(*l->column));
	l->cell = leat_alloc_array(l->mem, columns->count, sizeof(*l->cell));
	l->one_line = leat_alloc_array(l->mem, columns->count, sizeof(*l->one_line));
	l->seen = leat_alloc_array(l->mem, columns->count, sizeof(*l->seen));
	if (!l->name || !l->shown || !l->counts || !l->column || !l->cell || !l->one_line || !l->seen)
		return leat_fail_mem(err, l->mem, l->files * sizeof(*l->counts), "loading files");
	for (size_t i = 0; i < columns->count; i++)
		l->cell[i] = columns->column[i].skip ? SIZE_MAX : cells++;
	for (size_t i = 0; i < l->files && status == LEAT_OK; i++)
		status = name_file(l, i, err);
	if (status == LEAT_OK && out)
		status = leat_rejects_open(&l->rejects, out, &l->result->examples, l->load->examples, l->mem, err);
	return status;
}

static void
free_loader(struct loader *l)
{
	close_file(l);
	leat_rejects_close(&l->rejects);
	for (size_t i = 0; l->name && l->shown && i < l->files; i++) {
		leat_free(l->mem, l->name[i]);
		leat_free(l->mem, l->shown[i]);
	}
	leat_free(l->mem, l->name);
	leat_free(l->mem, l->shown);
	leat_free(l->mem, l->counts);
	leat_free(l->mem, l->column);
	leat_free(l->mem, l->cell);
	leat_free(l->mem, l->one_line);
	leat_free(l->mem, l->seen);
	leat_json_line_free(&l->json);
}

static enum leat_status
run(struct loader *l, struct leat_tables *tables, const char *out, struct leat_err *err)
{
	char *path = leat_asprintf(l->mem, "%s/rows.parquet", out);
	struct file_counts all = {0};
	enum leat_status status;

	if (!path)
		return leat_fail_mem(err, l->mem, strlen(out), "the name of a file");
	status = leat_rows_write(tables, l->load->columns, &(struct leat_row_maker){make_rows, l}, path, l->mem, err);
	if (status == LEAT_OK && l->at < l->files)
		status = leat_fail(err, LEAT_INTERNAL, "'%s' was not read to its end", l->shown[l->at]);
	if (status == LEAT_OK)
		status = leat_rejects_end(&l->rejects, err);
	if (status == LEAT_OK)
		status = check_counts(l, tables, path, &all, err);
	if (status == LEAT_OK)
		status = write_counts(l, &all, out, err);
	if (status == LEAT_OK && l->load->written)
		l->load->written(tables, path, l->mem);
	leat_free(l->mem, path);
	return status;
}

enum leat_status
leat_load(const struct leat_load *load, const char *const *files, size_t count, const char *out,
          struct leat_load_result *result, struct leat_mem *mem, struct leat_err *err)
{
	struct loader l = {
		.load = load, .file = files, .files = count, .mem = mem, .json = {.mem = mem}, .result = result};
	struct leat_tables *tables = NULL;
	enum leat_status status;

	l.total = load->progress ? total_bytes(files, count) : 0;
	*result = (struct leat_load_result){0};
	leat_str_init(&result->examples, mem, 1 << 20);
	status = leat_tables_open(&tables, &(struct leat_tables_options){.threads = 1, .memory = load->memory}, err);
	if (status == LEAT_OK)
		status = prepare(&l, out, err);
	if (status == LEAT_OK)
		status = run(&l, tables, out, err);
	leat_tables_close(tables);
	free_loader(&l);
	return status;
}

/* ---- a row at a time ---- */

struct leat_load_reader {
	struct loader loader;
	struct leat_load_result result;
};

enum leat_status
leat_load_reader_open(struct leat_load_reader **out, const struct leat_load *load, const char *const *files,
                      size_t count, struct leat_mem *mem, struct leat_err *err)
{
	struct leat_load_reader *reader = *out = leat_alloc(mem, sizeof(*reader));
	enum leat_status status;

	if (!reader)
		return leat_fail_mem(err, mem, sizeof(*reader), "reading files");
	reader->loader = (struct loader){.load = load,
	                                 .file = files,
	                                 .files = count,
	                                 .mem = mem,
	                                 .json = {.mem = mem},
	                                 .result = &reader->result};
	status = prepare(&reader->loader, NULL, err);
	if (status != LEAT_OK) {
		leat_load_reader_close(reader);
		*out = NULL;
	}
	return status;
}

void
leat_load_reader_close(struct leat_load_reader *reader)
{
	if (!reader)
		return;
	free_loader(&reader->loader);
	leat_free(reader->loader.mem, reader);
}

enum leat_status
leat_load_reader_next(struct leat_load_reader *reader, struct leat_row_chunk *chunk, size_t *file, struct leat_err *err)
{
	enum leat_status status;
	size_t rows;

	status = make_rows(&reader->loader, chunk, &rows, err);
	*file = reader->loader.at;
	return status == LEAT_OK && !rows ? LEAT_END : status;
}
