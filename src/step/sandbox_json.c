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

/* ,"name":"value", or without the comma if it is the first. */
static void
add_pair(struct leat_str *json, bool *first, const char *name, const char *value)
{
	leat_str_add(json, *first ? "" : ",");
	*first = false;
	leat_str_add_json(json, name);
	leat_str_add(json, ":");
	leat_str_add_json(json, value);
}

static void
add_slice(struct leat_str *json, const struct leat_slices *slices, size_t slice)
{
	bool first = true;

	leat_str_add(json, "{");
	for (size_t i = 0; i < slices->variables; i++)
		add_pair(json, &first, slices->variable[i].name, leat_slice_value(slices, slice, i));
	leat_str_add(json, "}");
}

static void
add_params(struct leat_str *json, const struct leat_step *step)
{
	bool first = true;

	leat_str_add(json, ",\"params\":{");
	for (size_t i = 0; i < step->params; i++)
		add_pair(json, &first, step->param[i].name, step->param[i].value);
	leat_str_add(json, "}");
}

static void
add_inputs(struct leat_str *json, const struct leat_sandbox *s)
{
	bool first = true;

	leat_str_add(json, ",\"inputs\":{");
	for (size_t i = 0; i < s->action->inputs; i++)
		add_pair(json, &first, s->action->input[i].name, s->link[i]);
	leat_str_add(json, "}");
}

/* A slice of an input, and where the name of its entry is. */
struct entry {
	size_t name;
	uint32_t slice;
};

/* 2 before 10. */
static int
by_name(const void *a, const void *b, void *names)
{
	const char *text = names;

	return strverscmp(text + ((const struct entry *)a)->name, text + ((const struct entry *)b)->name);
}

static void
add_entry(struct leat_str *json, const struct leat_input *input, uint32_t slice, const char *link, const char *name,
          struct leat_str *path)
{
	path->len = 0;
	leat_str_add(path, link);
	if (*name)
		leat_str_addf(path, "/%s", name);
	leat_str_add(json, "{\"path\":");
	leat_str_add_json(json, leat_str_text(path));
	leat_str_add(json, ",\"slice\":");
	add_slice(json, &input->step->slices, slice);
	leat_str_add(json, "}");
}

/* In the order of names: that of values in leat.yaml is not in the key, so a command must not see it. */
static void
add_entries(struct leat_str *json, const struct leat_input *input, const char *link, struct leat_mem *mem,
            struct leat_str *path)
{
	struct entry *entry = leat_alloc_array(mem, input->slices, sizeof(*entry));
	struct leat_str names;

	leat_str_init(&names, mem, MAX_JSON);
	for (size_t k = 0; entry != NULL && k < input->slices; k++) {
		entry[k] = (struct entry){names.len, input->slice[k]};
		if (input->use != NULL) {
			leat_slice_entry(&input->step->slices, input->slice[k], input->use, &names);
			leat_str_add(&names, input->step->suffix);
		}
		leat_str_addn(&names, "", 1);
	}
	json->failed |= entry == NULL || names.failed;
	if (!json->failed)
		qsort_r(entry, input->slices, sizeof(*entry), by_name, names.text);
	for (size_t k = 0; !json->failed && k < input->slices; k++) {
		leat_str_add(json, k > 0 ? "," : "");
		add_entry(json, input, entry[k].slice, link, names.text + entry[k].name, path);
	}
	leat_str_free(&names);
	leat_free(mem, entry);
}

static void
add_input_slices(struct leat_str *json, const struct leat_sandbox *s, struct leat_str *path)
{
	bool first = true;

	leat_str_add(json, ",\"input_slices\":{");
	for (size_t i = 0; i < s->action->inputs; i++) {
		const struct leat_input *input = &s->action->input[i];

		if (input->step == NULL || input->slices == 0)
			continue;
		leat_str_add(json, first ? "" : ",");
		first = false;
		leat_str_add_json(json, input->name);
		leat_str_add(json, ":[");
		add_entries(json, input, s->link[i], s->mem, path);
		leat_str_add(json, "]");
	}
	leat_str_add(json, "}");
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
add_all(struct leat_str *json, const struct leat_sandbox *s, struct leat_str *path)
{
	const struct leat_step *step = s->action->step;

	leat_str_add(json, "{\"step\":");
	leat_str_add_json(json, step->name);
	leat_str_add(json, ",\"slice\":");
	add_slice(json, &step->slices, s->action->slice);
	add_params(json, step);
	add_inputs(json, s);
	add_input_slices(json, s, path);
	add_paths(json, s);
	leat_str_addf(json, ",\"seed\":%llu,\"cpus\":%u}\n", (unsigned long long)step->seed, s->runner->cpus);
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
	struct leat_str json, path;
	enum leat_status status;

	leat_str_init(&json, s->mem, MAX_JSON);
	leat_str_init(&path, s->mem, 1 << 20);
	add_all(&json, s, &path);
	status = json.failed || path.failed ? leat_fail_mem(err, s->mem, json.len, "step.json")
	                                    : write_file(s, &json, err);
	leat_str_free(&json);
	leat_str_free(&path);
	return status;
}
