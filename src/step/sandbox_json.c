/* sandbox_json.c - step.json, which tells leat.step in Python what the shell variables tell a command */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "step/sandbox.h"

enum { MAX_JSON = 256 << 20 };

/* ,"KEY":{"name":"value",...} */
static void
add_named(struct leat_str *json, const char *key, const struct leat_named *named, size_t count)
{
	leat_str_addf(json, ",\"%s\":{", key);
	for (size_t i = 0; i < count; i++) {
		leat_str_add(json, i > 0 ? "," : "");
		leat_str_add_json(json, named[i].name);
		leat_str_add(json, ":");
		leat_str_add_json(json, named[i].value);
	}
	leat_str_add(json, "}");
}

static void
add_inputs(struct leat_str *json, const struct leat_sandbox *s)
{
	leat_str_add(json, ",\"inputs\":{");
	for (size_t i = 0; i < s->order->inputs; i++) {
		leat_str_add(json, i > 0 ? "," : "");
		leat_str_add_json(json, s->order->input[i].name);
		leat_str_add(json, ":");
		leat_str_add_json(json, s->link[i]);
	}
	leat_str_addf(json, "},\"input_slices\":%s", s->order->input_slices);
}

static void
add_text(struct leat_str *json, const char *name, const char *value)
{
	leat_str_addf(json, ",\"%s\":", name);
	leat_str_add_json(json, value);
}

static void
add_paths(struct leat_str *json, const struct leat_sandbox *s)
{
	char path[PATH_MAX + 32];

	add_text(json, "out", s->out);
	snprintf(path, sizeof(path), "%s/metrics.json", s->path);
	add_text(json, "metrics", path);
	snprintf(path, sizeof(path), "%s/progress", s->path);
	add_text(json, "progress", path);
	if (s->feed.len > 0)
		add_text(json, "feed", leat_str_text(&s->feed));
	if (s->checkpoint != NULL)
		add_text(json, "checkpoint", s->checkpoint);
}

static void
add_all(struct leat_str *json, const struct leat_sandbox *s)
{
	const struct leat_order *order = s->order;

	leat_str_add(json, "{\"step\":");
	leat_str_add_json(json, order->step);
	add_named(json, "slice", order->slice, order->slices);
	add_named(json, "params", order->param, order->params);
	add_inputs(json, s);
	add_paths(json, s);
	if (order->last_profile != NULL) {
		add_text(json, "last_id", order->last_id);
		add_text(json, "last_profile", order->last_profile);
	}
	leat_str_addf(json, ",\"seed\":%llu,\"cpus\":%u}\n", (unsigned long long)order->seed, order->cpus);
}

static int
write_all(int fd, const char *text, size_t len)
{
	while (len > 0) {
		ssize_t n = write(fd, text, len);

		if (n < 0 && errno != EINTR)
			return errno;
		text += n < 0 ? 0 : n;
		len -= n < 0 ? 0 : (size_t)n;
	}
	return 0;
}

/* The file is the first thing that is written after the folder is complete, so its time is that of the begin. */
static enum leat_status
write_file(struct leat_sandbox *s, const struct leat_str *json, struct leat_err *err)
{
	char path[PATH_MAX + 32];
	struct stat st;
	int fd, failed;

	snprintf(path, sizeof(path), "%s/step.json", s->path);
	fd = open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
	if (fd < 0)
		return leat_fail_errno(err, errno, "cannot write %s", path);
	failed = write_all(fd, leat_str_text(json), json->len);
	/* Cutting it afterwards, not before: ext4 writes files at once that were cut to nothing. */
	if (failed == 0 && (ftruncate(fd, (off_t)json->len) != 0 || fstat(fd, &st) != 0))
		failed = errno;
	close(fd);
	if (failed != 0)
		return leat_fail_errno(err, failed, "cannot write %s", path);
	s->begun = st.st_mtim;
	return LEAT_OK;
}

enum leat_status
leat_sandbox_write_json(struct leat_sandbox *s, struct leat_err *err)
{
	struct leat_str json;
	enum leat_status status;

	leat_str_init(&json, s->mem, MAX_JSON);
	add_all(&json, s);
	status = json.failed ? leat_fail_mem(err, s->mem, json.len, "step.json") : write_file(s, &json, err);
	leat_str_free(&json);
	return status;
}
