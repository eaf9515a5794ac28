/* sandbox_inputs.c - did a command write to what it read?
 *
 * Blobs are read-only, but not for root, or for a command that changes their mode. A blob keeps its time of last
 * change from before it was put, so one with a later time than the sandbox's is suspicious, and then hashed: two builds
 * may share a store, and the other may have made the blob again meanwhile. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "step/sandbox.h"

enum { MAX_NESTED = 64, MAX_TREE = 1 << 30 };

struct check {
	const struct leat_sandbox *sandbox;
	const struct leat_order_input *input;
	char path[PATH_MAX]; /* of what is looked at: the blob, or its link in the view of a folder */
	size_t len;
	unsigned depth;
};

/* Negative: it was last changed before the sandbox was made; 0: in the same tick of the clock. */
static int
compare_time(const struct stat *st, const struct timespec *begun)
{
	if (st->st_mtim.tv_sec != begun->tv_sec)
		return st->st_mtim.tv_sec < begun->tv_sec ? -1 : 1;
	return (st->st_mtim.tv_nsec > begun->tv_nsec) - (st->st_mtim.tv_nsec < begun->tv_nsec);
}

/* False: it cannot be read. */
static bool
hash_file(const char *path, struct leat_digest *digest)
{
	struct leat_sha256 *sha = leat_sha256_new();
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char buffer[16384];
	ssize_t n = -1;

	while (sha != NULL && fd >= 0 && (n = read(fd, buffer, sizeof(buffer))) > 0)
		leat_sha256_add(sha, buffer, (size_t)n);
	if (n == 0)
		leat_sha256_end(sha, digest->byte);
	leat_sha256_free(sha);
	if (fd >= 0)
		close(fd);
	return n == 0;
}

/* A view is made of links to blobs, and of copies where there cannot be links. */
static enum leat_status
fail_written(const struct check *check, const struct leat_content *content, const char *how, struct leat_err *err)
{
	struct leat_cas *cas = check->sandbox->runner->cas;
	struct leat_digest now;
	char blob[PATH_MAX];

	leat_cas_blob_path(cas, &content->digest, blob);
	if (content->kind != LEAT_CONTENT_FOLDER &&
	    !(hash_file(blob, &now) && leat_digest_equal(&now, &content->digest)))
		leat_cas_forget(cas, content);
	if (check->input->content.kind == LEAT_CONTENT_FOLDER)
		leat_cas_forget(cas, &check->input->content);
	return leat_fail(err, LEAT_DATA,
	                 "%s its input '%s', which other steps also read; copy it to $TMPDIR before changing it (the "
	                 "next build makes the input again)",
	                 how, check->input->name);
}

static enum leat_status
check_file(const struct check *check, const struct leat_content *content, struct leat_err *err)
{
	struct leat_digest now;
	struct stat st;

	if (stat(check->path, &st) != 0)
		return errno == ENOENT ? fail_written(check, content, "removed", err) : LEAT_OK;
	if ((uint64_t)st.st_size == content->bytes && compare_time(&st, &check->sandbox->begun) < 0)
		return LEAT_OK;
	if (hash_file(check->path, &now) && leat_digest_equal(&now, &content->digest))
		return LEAT_OK;
	return fail_written(check, content, "wrote to", err);
}

static enum leat_status check_folder(struct check *check, const struct leat_content *content, struct leat_err *err);

static enum leat_status
check_entry(void *arg, const char *name, const struct leat_content *content, const char *target, struct leat_err *err)
{
	struct check *check = arg;
	size_t len = check->len, room = PATH_MAX - len;
	enum leat_status status = LEAT_OK;

	if (target != NULL || (size_t)snprintf(check->path + len, room, "/%s", name) >= room)
		return LEAT_OK;
	check->len = strlen(check->path);
	if (content->kind != LEAT_CONTENT_FOLDER)
		status = check_file(check, content, err);
	else if (check->depth < MAX_NESTED)
		status = check_folder(check, content, err);
	check->len = len;
	check->path[len] = '\0';
	return status;
}

/* A view has a time that nothing else has; folders in it have that of their making. */
static bool
is_folder_touched(const struct check *check, const struct leat_content *content)
{
	struct stat st;

	if (check->depth == 0)
		return !leat_cas_view_is_untouched(check->sandbox->runner->cas, content);
	if (stat(check->path, &st) != 0)
		return errno == ENOENT;
	return compare_time(&st, &check->sandbox->begun) > 0;
}

/* The view of a folder must not have got new entries, either. */
static enum leat_status
check_folder(struct check *check, const struct leat_content *content, struct leat_err *err)
{
	struct leat_cas *cas = check->sandbox->runner->cas;
	struct leat_tree_reader reader = {.entry = check_entry, .arg = check};
	enum leat_status status;
	size_t len;
	char *tree;

	if (is_folder_touched(check, content))
		return fail_written(check, content, "added or removed files of", err);
	if (leat_cas_read(cas, &content->digest, MAX_TREE, &tree, &len, NULL) != LEAT_OK)
		return LEAT_OK;
	check->depth++;
	status = leat_tree_read(tree, len, &reader, err);
	check->depth--;
	leat_free(check->sandbox->mem, tree);
	return status;
}

/* The link in the sandbox is the command's to remove; what it leads to is not. */
static bool
is_dangling(const char *link)
{
	struct stat st;

	return lstat(link, &st) == 0 && S_ISLNK(st.st_mode) && stat(link, &st) != 0 && errno == ENOENT;
}

enum leat_status
leat_sandbox_check_inputs(const struct leat_sandbox *s, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	for (size_t i = 0; status == LEAT_OK && i < s->order->inputs; i++) {
		const struct leat_order_input *input = &s->order->input[i];
		struct check check = {.sandbox = s, .input = input};

		if (input->path != NULL)
			continue;
		if (realpath(s->link[i], check.path) == NULL) {
			if (is_dangling(s->link[i]))
				return fail_written(&check, &input->content, "removed", err);
			continue;
		}
		check.len = strlen(check.path);
		status = input->content.kind == LEAT_CONTENT_FOLDER ? check_folder(&check, &input->content, err)
		                                                    : check_file(&check, &input->content, err);
	}
	return status;
}
