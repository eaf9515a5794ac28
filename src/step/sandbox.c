/* sandbox.c - see sandbox.h */
#include "step/sandbox.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static enum leat_status
join(char path[PATH_MAX], const char *folder, const char *name, struct leat_err *err)
{
	if (snprintf(path, PATH_MAX, "%s/%s", folder, name) >= PATH_MAX)
		return leat_fail(err, LEAT_LIMIT, "the path %s/%s is too long; move the project to a shorter one",
		                 folder, name);
	return LEAT_OK;
}

static enum leat_status
make_folder(const char *path, struct leat_err *err)
{
	return mkdir(path, 0777) == 0 ? LEAT_OK : leat_fail_errno(err, errno, "cannot make the sandbox %s", path);
}

static enum leat_status
make_link(const char *to, const char *path, struct leat_err *err)
{
	return symlink(to, path) == 0 ? LEAT_OK : leat_fail_errno(err, errno, "cannot make the link %s", path);
}

static enum leat_status
make_folders(struct leat_sandbox *s, struct leat_err *err)
{
	char path[PATH_MAX];
	enum leat_status status = make_folder(s->path, err);

	for (size_t i = 0; status == LEAT_OK && i < LEAT_SANDBOX_FOLDERS; i++) {
		status = join(path, s->path, leat_sandbox_folders[i], err);
		if (status == LEAT_OK)
			status = make_folder(path, err);
	}
	return status;
}

static enum leat_status
link_entries(struct leat_sandbox *s, const char *snapshot, DIR *folder, struct leat_err *err)
{
	char from[PATH_MAX], to[PATH_MAX];
	enum leat_status status = LEAT_OK;
	struct dirent *entry;

	while (status == LEAT_OK && (entry = readdir(folder)) != NULL) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		status = join(to, snapshot, entry->d_name, err);
		if (status == LEAT_OK)
			status = join(from, s->work, entry->d_name, err);
		if (status == LEAT_OK)
			status = make_link(to, from, err);
	}
	return status;
}

static enum leat_status
link_code(struct leat_sandbox *s, const char *snapshot, struct leat_err *err)
{
	enum leat_status status;
	DIR *folder;

	if (*snapshot == '\0')
		return LEAT_OK;
	folder = opendir(snapshot);
	if (folder == NULL)
		return leat_fail_errno(err, errno, "cannot read the snapshot of the code %s", snapshot);
	status = link_entries(s, snapshot, folder, err);
	closedir(folder);
	return status;
}

static enum leat_status
link_input(struct leat_sandbox *s, size_t i, struct leat_err *err)
{
	const struct leat_order_input *input = &s->order->input[i];
	char view[PATH_MAX];
	const char *to = input->path;

	if (to == NULL) {
		enum leat_status status = leat_cas_view(s->runner->cas, &input->content, view, err);

		if (status != LEAT_OK)
			return status;
		to = view;
	}
	s->link[i] = leat_asprintf(s->mem, "%s/in/%s%s", s->path, input->name, input->suffix);
	if (s->link[i] == NULL)
		return leat_fail_mem(err, s->mem, PATH_MAX, "the name of an input");
	return make_link(to, s->link[i], err);
}

enum leat_status
leat_sandbox_link_inputs(struct leat_sandbox *s, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	s->link = leat_alloc_array(s->mem, s->order->inputs, sizeof(*s->link));
	if (s->link == NULL)
		return leat_fail_mem(err, s->mem, s->order->inputs * sizeof(*s->link), "the inputs of an action");
	for (size_t i = 0; status == LEAT_OK && i < s->order->inputs; i++)
		status = link_input(s, i, err);
	return status;
}

static enum leat_status
name_paths(struct leat_sandbox *s, struct leat_err *err)
{
	const struct leat_order *order = s->order;

	if (snprintf(s->work, PATH_MAX, "%s/work", s->path) >= PATH_MAX ||
	    snprintf(s->out, PATH_MAX, "%s/out/%s%s", s->path, order->step, order->suffix) >= PATH_MAX)
		return leat_fail(err, LEAT_LIMIT, "the path %s is too long; move the project to a shorter one",
		                 s->path);
	return LEAT_OK;
}

/* One that was used before, or a new one. */
static enum leat_status
find_folder(struct leat_sandbox *s, struct leat_err *err)
{
	struct leat_sandbox_pool *pool = s->runner->pool;
	const char *snapshot = s->order->snapshot;
	bool linked = false, used = false;
	char view[PATH_MAX];
	enum leat_status status = LEAT_OK;

	if (snapshot == NULL) {
		status = leat_cas_view(s->runner->cas, &s->order->code, view, err);
		snapshot = view;
	}
	if (status != LEAT_OK)
		return status;
	if (pool != NULL)
		used = leat_sandbox_pool_take(pool, snapshot, s->path, &linked);
	if (!used)
		leat_cas_temp_path(s->runner->cas, s->path);
	status = name_paths(s, err);
	if (status == LEAT_OK && !used)
		status = make_folders(s, err);
	if (status == LEAT_OK && !linked)
		status = link_code(s, snapshot, err);
	if (status == LEAT_OK && pool != NULL && !linked)
		leat_sandbox_pool_note(pool, s->path, s->work, snapshot);
	return status;
}

enum leat_status
leat_sandbox_make(struct leat_sandbox *s, const struct leat_runner *runner, const struct leat_order *order,
                  struct leat_err *err)
{
	static enum leat_status (*const parts[])(struct leat_sandbox *, struct leat_err *) = {
		find_folder,
		leat_sandbox_link_inputs,
		leat_sandbox_open_checkpoint,
		leat_sandbox_set_environment,
		leat_sandbox_write_json,
	};
	enum leat_status status = LEAT_OK;

	s->mem = order->mem;
	s->runner = runner;
	s->order = order;
	s->checkpoint_fd = -1;
	leat_str_init(&s->feed, s->mem, 1 << 20);
	leat_str_init(&s->text, s->mem, 16 << 20);
	for (size_t i = 0; status == LEAT_OK && i < sizeof(parts) / sizeof(*parts); i++)
		status = parts[i](s, err);
	return status;
}

void
leat_sandbox_free(struct leat_sandbox *s)
{
	if (s->mem == NULL)
		return;
	for (size_t i = 0; s->link != NULL && i < s->order->inputs; i++)
		leat_free(s->mem, s->link[i]);
	leat_free(s->mem, s->link);
	leat_free(s->mem, s->checkpoint);
	if (s->checkpoint_fd >= 0)
		close(s->checkpoint_fd);
	leat_str_free(&s->feed);
	leat_str_free(&s->text);
	leat_free(s->mem, s->environment);
}
