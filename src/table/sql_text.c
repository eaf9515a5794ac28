/* sql_text.c - text for SQL that Leat writes itself; see duckdb.h */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "table/duckdb.h"

void
leat_sql_quote(struct leat_str *sql, const char *text, char quote)
{
	leat_str_addn(sql, &quote, 1);
	for (; *text; text++) {
		if (*text == quote)
			leat_str_addn(sql, &quote, 1);
		leat_str_addn(sql, text, 1);
	}
	leat_str_addn(sql, &quote, 1);
}

/* ---- files ---- */

static const struct format {
	const char *extension, *reader, *options;
} formats[] = {
	{".parquet", "read_parquet", ", hive_partitioning = false"}, /* folders may be called x=1 */
	{".pq", "read_parquet", ", hive_partitioning = false"},
	{".csv", "read_csv", ", hive_partitioning = false"},
	{".tsv", "read_csv", ", hive_partitioning = false"},
	{".json", "read_json", ", hive_partitioning = false"},
	{".jsonl", "read_json", ", hive_partitioning = false"},
	{".ndjson", "read_json", ", hive_partitioning = false"},
};

/* Of a file name; compressed text keeps its format. */
static const struct format *
format_of(const char *name)
{
	static const char *const packed[] = {"", ".gz", ".zst"};
	size_t len = strlen(name);

	for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++)
		for (size_t k = 0; k < (strcmp(formats[i].reader, "read_parquet") ? 3 : 1); k++) {
			size_t a = strlen(formats[i].extension), b = strlen(packed[k]);

			if (len > a + b && !strncasecmp(name + len - a - b, formats[i].extension, a) &&
			    !strcasecmp(name + len - b, packed[k]))
				return &formats[i];
		}
	return NULL;
}

static bool
is_parquet(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char magic[4];
	bool is = fd >= 0 && pread(fd, magic, 4, 0) == 4 && !memcmp(magic, "PAR1", 4);

	if (fd >= 0)
		close(fd);
	return is;
}

/* The first entry, and its type; false: there is none. */
static bool
first_entry(const char *folder, char path[PATH_MAX], struct stat *st)
{
	DIR *entries = opendir(folder);
	char name[NAME_MAX + 1] = "";
	struct dirent *entry;

	while (entries && (entry = readdir(entries)) != NULL)
		if (*entry->d_name != '.' && (!*name || strcmp(entry->d_name, name) < 0))
			snprintf(name, sizeof(name), "%s", entry->d_name);
	if (entries)
		closedir(entries);
	return *name && snprintf(path, PATH_MAX, "%s/%s", folder, name) < PATH_MAX && !stat(path, st);
}

static void
add_reader(struct leat_str *sql, const struct format *format, const char *path)
{
	leat_str_addf(sql, "%s(", format->reader);
	leat_sql_quote(sql, path, '\'');
	leat_str_addf(sql, "%s)", format->options);
}

/* All files of a folder have the format of its first one. Folders in it, too: they are slices. */
static enum leat_status
add_texts(struct leat_str *sql, const char *path, struct leat_err *err)
{
	const struct format *format;
	char first[PATH_MAX], pattern[PATH_MAX + 64];
	const char *dot;
	struct stat st;
	bool deep = false;

	if (!first_entry(path, first, &st))
		return leat_fail(err, LEAT_DATA, "the folder '%s' is empty", path);
	if (S_ISDIR(st.st_mode)) {
		char outer[PATH_MAX];

		deep = true;
		memcpy(outer, first, sizeof(outer));
		if (!first_entry(outer, first, &st))
			return leat_fail(err, LEAT_DATA, "the folder '%s' is empty", outer);
	}
	format = format_of(first);
	if (!format)
		return leat_fail(
			err, LEAT_INVALID,
			"'%s' is not a table: its first file, '%s', is neither Parquet, CSV nor JSON by its name", path,
			first);
	dot = strcasestr(strrchr(first, '/'), format->extension);
	snprintf(pattern, sizeof(pattern), "%s/%s*%s", path, deep ? "*/" : "", dot);
	add_reader(sql, format, pattern);
	return LEAT_OK;
}

struct parquet_files {
	struct leat_str *sql;
	size_t count;
};

static enum leat_status
add_parquet(void *arg, const char *path, struct leat_err *err)
{
	struct parquet_files *files = arg;

	(void)err;
	leat_str_add(files->sql, files->count++ ? ", " : "read_parquet([");
	leat_sql_quote(files->sql, path, '\'');
	return LEAT_OK;
}

/* Parquet comes before what is beside it: a source that is loaded has counts and rejects in its folder. */
static enum leat_status
add_folder(struct leat_str *sql, const char *path, struct leat_err *err)
{
	struct parquet_files files = {.sql = sql};
	enum leat_status status = leat_table_files(path, add_parquet, &files, err);

	if (status != LEAT_OK)
		return status;
	if (!files.count)
		return add_texts(sql, path, err);
	leat_str_addf(sql, "]%s)", formats[0].options);
	return LEAT_OK;
}

static enum leat_status
not_a_table(const char *path, struct leat_err *err)
{
	return leat_fail(
		err, LEAT_INVALID,
		"'%s' is not a table; expected a name that ends in .parquet, .csv, .tsv, .json or .jsonl, or a "
		"folder of such files",
		path);
}

enum leat_status
leat_sql_add_files(struct leat_str *sql, char *const *path, size_t n, struct leat_err *err)
{
	const struct format *format = n ? format_of(path[0]) : NULL;

	if (!format)
		return not_a_table(n ? path[0] : "", err);
	leat_str_addf(sql, "%s([", format->reader);
	for (size_t i = 0; i < n; i++) {
		leat_str_add(sql, i ? ", " : "");
		leat_sql_quote(sql, path[i], '\'');
	}
	leat_str_addf(sql, "]%s)", format->options);
	return LEAT_OK;
}

enum leat_status
leat_sql_add_file(struct leat_str *sql, const char *path, struct leat_err *err)
{
	const struct format *format = format_of(path);
	struct stat st;
	bool exists = !stat(path, &st);

	if (!exists && !strpbrk(path, "*?["))
		return leat_fail_errno(err, errno, "cannot open '%s'", path);
	if (exists && S_ISDIR(st.st_mode))
		return add_folder(sql, path, err);
	if (!format && exists && is_parquet(path))
		format = &formats[0];
	if (!format)
		return not_a_table(path, err);
	add_reader(sql, format, path);
	return LEAT_OK;
}
