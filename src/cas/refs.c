/* refs.c - names of what gc keeps: files in .leat/refs, each with lines "key HEX", "file 1024 HEX" or "# comment" */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "cas/gc.h"
#include "cas/inside.h"

enum { REF_MAX = 1 << 20 };

static enum leat_status
ref_name(const char *name, char path[LEAT_CAS_NAME], struct leat_err *err)
{
	if (name[0] == '\0' || name[0] == '.' || strchr(name, '/') || strlen(name) > LEAT_CAS_NAME - 20)
		return leat_fail(err, LEAT_INVALID, "'%s' cannot be the name of a ref", name);
	snprintf(path, LEAT_CAS_NAME, "refs/%s", name);
	return LEAT_OK;
}

enum leat_status
leat_ref_set(struct leat_cas *cas, const char *name, const struct leat_digest *key, struct leat_err *err)
{
	char path[LEAT_CAS_NAME], temp[LEAT_CAS_NAME + 8], hex[LEAT_SHA256_HEX];
	enum leat_status status = ref_name(name, path, err);
	int fd, errnum = 0;

	if (status != LEAT_OK)
		return status;
	leat_hex(key->byte, sizeof(key->byte), hex);
	snprintf(temp, sizeof(temp), "refs/.%ld", (long)getpid());
	fd = openat(cas->folder_fd, temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd < 0)
		return leat_cas_full(err, cas, errno, "write a ref");
	if (dprintf(fd, "key %s\n", hex) < 0 || fsync(fd) != 0 ||
	    renameat(cas->folder_fd, temp, cas->folder_fd, path) != 0)
		errnum = errno;
	close(fd);
	return errnum ? leat_cas_full(err, cas, errnum, "write a ref") : LEAT_OK;
}

enum leat_status
leat_ref_remove(struct leat_cas *cas, const char *name, struct leat_err *err)
{
	char path[LEAT_CAS_NAME];
	enum leat_status status = ref_name(name, path, err);

	if (status == LEAT_OK && unlinkat(cas->folder_fd, path, 0) != 0)
		status = errno == ENOENT ? leat_fail(err, LEAT_INVALID, "there is no ref '%s'", name)
		                         : leat_cas_full(err, cas, errno, "remove a ref");
	return status;
}

static bool
parse_line(const char *line, struct leat_content *content)
{
	*content = (struct leat_content){.kind = LEAT_CONTENT_NONE};
	if (!strncmp(line, "key ", 4))
		return leat_digest_parse(line + 4, &content->digest);
	return leat_content_parse(line, content, NULL) == LEAT_OK;
}

static enum leat_status
read_ref(struct leat_cas *cas, const char *name,
         enum leat_status (*each)(void *arg, const char *name, const struct leat_content *content,
                                  struct leat_err *err),
         void *arg, struct leat_err *err)
{
	char path[NAME_MAX + 8], *text, *line, *rest;
	struct leat_content content;
	size_t len;
	enum leat_status status;

	snprintf(path, sizeof(path), "refs/%.*s", NAME_MAX, name);
	status = leat_cas_read_name(cas, path, REF_MAX, &text, &len, err);
	if (status != LEAT_OK)
		return status;
	for (line = strtok_r(text, "\n", &rest); line && status == LEAT_OK; line = strtok_r(NULL, "\n", &rest))
		status = *line == '#' ? LEAT_OK
		         : parse_line(line, &content)
		                 ? each(arg, name, &content, err)
		                 : leat_fail(err, LEAT_DATA, "the ref '%s/%s' is damaged; write it again, or remove it",
		                             cas->folder, path);
	leat_free(cas->mem, text);
	return status;
}

enum leat_status
leat_refs_each(struct leat_cas *cas,
               enum leat_status (*each)(void *arg, const char *name, const struct leat_content *content,
                                        struct leat_err *err),
               void *arg, struct leat_err *err)
{
	struct leat_entries refs;
	enum leat_status status = leat_cas_list(cas, "refs", &refs, err);

	if (status != LEAT_OK)
		return status;
	for (size_t i = 0; i < refs.count && status == LEAT_OK; i++)
		if (refs.name[i][0] != '.')
			status = read_ref(cas, refs.name[i], each, arg, err);
	leat_entries_free(&refs, cas->mem);
	return status;
}
