/* imports.c - the Python hook, and the records that it writes */
#include "step/imports.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "step/code.h"

extern const char leat_import_hook[]; /* imports_hook.py */

enum { MAX_TEXTS = 1024 };

enum leat_status
leat_paths_add(struct leat_paths *texts, const char *text, struct leat_mem *mem, struct leat_err *err)
{
	enum leat_status status =
		LEAT_GROW(mem, texts->path, texts->cap, texts->count + 1, SIZE_MAX, "a list of names", err);
	char *copy = status == LEAT_OK ? leat_strdup(mem, text) : NULL;

	if (status != LEAT_OK)
		return status;
	if (!copy)
		return leat_fail_mem(err, mem, strlen(text) + 1, "a list of names");
	texts->path[texts->count++] = copy;
	return LEAT_OK;
}

/* ---- records ---- */

enum leat_status
leat_records_parse(const char *bytes, size_t len, const struct leat_record_reader *reader, struct leat_err *err)
{
	const char *text[MAX_TEXTS], *end = bytes + len, *nul;
	enum leat_status status = LEAT_OK;
	size_t texts = 0;

	for (; status == LEAT_OK && (nul = memchr(bytes, '\0', (size_t)(end - bytes))) != NULL; bytes = nul + 1) {
		if (nul > bytes && texts < MAX_TEXTS) {
			text[texts++] = bytes;
		} else if (nul == bytes) {
			if (texts > 0)
				status = reader->record(reader->arg, text, texts, err);
			texts = 0;
		}
	}
	return status;
}

/* ---- the hook ---- */

static bool
is_there(const char *path, const char *text)
{
	size_t len = strlen(text), got = 0;
	FILE *file = fopen(path, "re");
	bool same = file != NULL;
	int c;

	while (same && (c = getc(file)) != EOF)
		same = got < len && (char)c == text[got++];
	if (file)
		fclose(file);
	return same && got == len;
}

/* Replaces the file at once: other builds may be reading it. */
static enum leat_status
write_text(struct leat_cas *cas, const char *path, const char *text, struct leat_err *err)
{
	char temp[PATH_MAX];
	FILE *file;
	bool good;

	leat_cas_temp_path(cas, temp);
	file = fopen(temp, "wxe");
	good = file && fputs(text, file) >= 0;
	if (file)
		good = fclose(file) == 0 && good;
	if (good && rename(temp, path) == 0)
		return LEAT_OK;
	leat_fail_errno(err, errno, "cannot write '%s'", path);
	unlink(temp);
	return err ? err->status : LEAT_IO;
}

enum leat_status
leat_code_hook(struct leat_cas *cas, char path[PATH_MAX], struct leat_err *err)
{
	char file[PATH_MAX];

	if (snprintf(path, PATH_MAX, "%s/hook", leat_cas_folder(cas)) >= PATH_MAX - 32)
		return leat_fail(err, LEAT_LIMIT, "the path of '%s' is too long", leat_cas_folder(cas));
	snprintf(file, sizeof(file), "%.*s/sitecustomize.py", PATH_MAX - 32, path);
	if (is_there(file, leat_import_hook))
		return LEAT_OK;
	if (mkdir(path, 0777) != 0 && errno != EEXIST)
		return leat_fail_errno(err, errno, "cannot make the folder '%s'", path);
	return write_text(cas, file, leat_import_hook, err);
}
