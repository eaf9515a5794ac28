/* text.c - see text.h */
#include "cli/text.h"

#include <errno.h>
#include <stdio.h>

#include "base/str.h"

enum { MOST = 16 << 20 };

enum leat_status
leat_read_text(const char *path, struct leat_mem *mem, char **text, struct leat_err *err)
{
	FILE *file = fopen(path, "rb");
	struct leat_str out;
	char chunk[4096];
	size_t got;
	int failed;

	*text = NULL;
	if (!file)
		return leat_fail_errno(err, errno, "%s cannot be read", path);
	leat_str_init(&out, mem, MOST);
	while ((got = fread(chunk, 1, sizeof chunk, file)) > 0)
		leat_str_addn(&out, chunk, got);
	failed = ferror(file);
	fclose(file);
	if (!failed)
		*text = leat_str_take(&out);
	leat_str_free(&out);
	if (failed)
		return leat_fail(err, LEAT_IO, "%s cannot be read", path);
	return *text ? LEAT_OK : leat_fail(err, LEAT_LIMIT, "%s is larger than 16 MiB", path);
}
