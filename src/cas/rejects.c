/* rejects.c - the rows for which the last attempt of an action failed
 *
 * An action that failed has no manifest, so nothing can take its rows for a result. They are a blob, kept by a ref:
 *
 *	# 7
 *	file 1024 HEX
 *
 * The number is that of the action. There is one ref for each step and slice, replaced or removed by the next attempt;
 *gc drops it when it is old. The blob comes first and the ref is renamed into place, so kill -9 leaves the old one, or
 *a blob that gc removes. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cas/gc.h"
#include "cas/inside.h"

enum { NAME_BYTES = 16, MAX_REF = 4096 };

static void
ref_path(const char *step, const char *slice, char path[LEAT_CAS_NAME])
{
	uint8_t digest[LEAT_SHA256_BYTES];
	char of_step[2 * NAME_BYTES + 1], of_slice[2 * NAME_BYTES + 1];

	leat_sha256(step, strlen(step), digest);
	leat_hex(digest, NAME_BYTES, of_step);
	leat_sha256(slice, strlen(slice), digest);
	leat_hex(digest, NAME_BYTES, of_slice);
	snprintf(path, LEAT_CAS_NAME, "refs/" LEAT_REJECTS_REF "%s%s", of_step, of_slice);
}

enum leat_status
leat_rejects_keep(struct leat_cas *cas, const char *step, const char *slice, uint64_t number,
                  const struct leat_content *rows, struct leat_err *err)
{
	char path[LEAT_CAS_NAME], temp[LEAT_CAS_NAME], text[LEAT_CONTENT_TEXT + 64], content[LEAT_CONTENT_TEXT];
	enum leat_status status;

	snprintf(text, sizeof(text), "# %" PRIu64 "\n%s\n", number, leat_content_text(rows, content));
	ref_path(step, slice, path);
	status = leat_cas_write_temp(cas, text, strlen(text), temp, err);
	return status == LEAT_OK ? leat_cas_place(cas, cas->folder_fd, temp, path, true, err) : status;
}

void
leat_rejects_drop(struct leat_cas *cas, const char *step, const char *slice)
{
	char path[LEAT_CAS_NAME];

	ref_path(step, slice, path);
	unlinkat(cas->folder_fd, path, 0);
}

bool
leat_rejects_find(struct leat_cas *cas, const char *step, const char *slice, uint64_t *number,
                  struct leat_content *content)
{
	char path[LEAT_CAS_NAME], *text = NULL, *line;
	bool found = false;
	size_t len;

	ref_path(step, slice, path);
	if (leat_cas_read_name(cas, path, MAX_REF, &text, &len, NULL) != LEAT_OK)
		return false;
	line = strchr(text, '\n');
	if (line && !strncmp(text, "# ", 2)) {
		*line++ = '\0';
		line[strcspn(line, "\n")] = '\0';
		*number = strtoull(text + 2, NULL, 10);
		found = leat_content_parse(line, content, NULL) == LEAT_OK && content->kind == LEAT_CONTENT_FILE;
	}
	leat_free(cas->mem, text);
	return found;
}
