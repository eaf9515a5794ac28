/* project_file.c - whole files: leat.yaml, and the files that slices name */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/size.h"
#include "step/project_read.h"

enum { PIECE = 64 * 1024 };

static enum leat_status
read_all(int fd, const char *path, struct leat_str *out, struct leat_err *err)
{
	char piece[4096];
	ssize_t n;

	while ((n = read(fd, piece, sizeof(piece))) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return leat_fail_errno(err, errno, "cannot read '%s'", path);
		leat_str_addn(out, piece, (size_t)n);
		if (out->failed)
			break;
	}
	return LEAT_OK;
}

static enum leat_status
check_size(const struct stat *st, const char *path, size_t max, struct leat_err *err)
{
	char limit[32];

	if (!S_ISREG(st->st_mode))
		return leat_fail(err, LEAT_DATA, "'%s' is not a file", path);
	if (st->st_size > 0 && (unsigned long long)st->st_size > max)
		return leat_fail(err, LEAT_LIMIT, "'%s' has more than %s", path,
		                 leat_format_size(limit, sizeof(limit), max));
	return LEAT_OK;
}

enum leat_status
leat_project_load(struct leat_mem *mem, const char *path, size_t max, char **text, size_t *len, struct leat_err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a fifo must not block before it is refused */
	enum leat_status status;
	struct leat_str out;
	struct stat st;

	*text = NULL;
	if (fd < 0)
		return leat_fail_errno(err, errno, "cannot open '%s'", path);
	leat_str_init(&out, mem, max);
	status = fstat(fd, &st) ? leat_fail_errno(err, errno, "cannot read '%s'", path)
	                        : check_size(&st, path, max, err);
	if (status == LEAT_OK)
		status = read_all(fd, path, &out, err);
	close(fd);
	*len = out.len;
	if (status == LEAT_OK && !(*text = leat_str_take(&out)))
		status = leat_fail_mem(err, mem, *len + PIECE, path);
	leat_str_free(&out);
	return status;
}
