/* bad_file.c - see bad_file.h */
#include "cli/bad_file.h"

#include <errno.h>
#include <inttypes.h>

enum { MAX_LINE = 1 << 16 };

void
leat_bad_add_json(const struct leat_bad *bad, struct leat_str *out)
{
	leat_str_addf(out, "{\"epoch\": %" PRIu64 ", \"position\": %" PRIu64 ", \"sample\": %" PRIu64 ", \"uri\": ",
	              bad->epoch, bad->position, bad->sample);
	leat_str_add_json(out, bad->uri);
	leat_str_addf(out, ", \"offset\": %" PRIu64 ", \"replaced\": %s, \"status\": \"%s\", \"reason\": ", bad->offset,
	              bad->replaced ? "true" : "false", leat_status_name(bad->status));
	leat_str_add_json(out, bad->reason);
	leat_str_add(out, "}");
}

static void
write_line(void *arg, const struct leat_bad *sample)
{
	struct leat_bad_file *bad = arg;
	struct leat_str line;

	leat_str_init(&line, bad->mem, MAX_LINE);
	leat_bad_add_json(sample, &line);
	leat_str_add(&line, "\n");
	errno = ENOMEM;
	if ((line.failed || fputs(leat_str_text(&line), bad->file) < 0) && !bad->failure)
		bad->failure = errno;
	leat_str_free(&line);
}

enum leat_status
leat_bad_file_open(struct leat_bad_file *bad, const char *path, struct leat_mem *mem, struct leat_options *options,
                   struct leat_err *err)
{
	*bad = (struct leat_bad_file){.path = path, .mem = mem};
	if (!path || !*path)
		return LEAT_OK;
	bad->file = fopen(path, "we");
	if (!bad->file)
		return leat_fail_errno(err, errno, "--bad: cannot write '%s'", path);
	setvbuf(bad->file, NULL, _IOLBF, BUFSIZ);
	options->bad = write_line;
	options->bad_arg = bad;
	return LEAT_OK;
}

enum leat_status
leat_bad_file_close(struct leat_bad_file *bad, struct leat_err *err)
{
	if (!bad->file)
		return LEAT_OK;
	if (fclose(bad->file) != 0 && !bad->failure)
		bad->failure = errno;
	bad->file = NULL;
	return bad->failure ? leat_fail_errno(err, bad->failure, "--bad: cannot write '%s'", bad->path) : LEAT_OK;
}
