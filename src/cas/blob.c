/* blob.c - put blobs, and find and read them
 *
 * A blob is written whole under tmp/RUN and renamed, so what has a blob's name is the blob. One of the wrong size was
 * damaged from outside, and is replaced.
 *
 * Planning asks for the outputs of all actions. The first few blobs of a folder are looked up one by one; after that
 * the folder is listed once, which is cheaper than a system call for each. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "cas/inside.h"

enum { ASK_ONE_BY_ONE = 4 };

static size_t
slot_of(const struct leat_digests *set, const struct leat_digest *digest)
{
	size_t i = (size_t)leat_load64(digest->byte) & (set->cap - 1);

	while (set->used[i] && !leat_digest_equal(&set->slot[i], digest))
		i = (i + 1) & (set->cap - 1);
	return i;
}

bool
leat_digests_has(const struct leat_digests *set, const struct leat_digest *digest)
{
	return set->cap > 0 && set->used[slot_of(set, digest)];
}

static enum leat_status
enlarge(struct leat_digests *set, struct leat_mem *mem, struct leat_err *err)
{
	struct leat_digests larger = {.cap = set->cap ? set->cap * 2 : 64};

	larger.slot = leat_alloc_array(mem, larger.cap, sizeof(*larger.slot));
	larger.used = leat_alloc_array(mem, larger.cap, sizeof(*larger.used));
	if (!larger.slot || !larger.used) {
		leat_digests_free(&larger, mem);
		return leat_fail_mem(err, mem, set->cap * 2 * sizeof(*set->slot), "the list of blobs");
	}
	for (size_t i = 0; i < set->cap; i++)
		if (set->used[i])
			leat_digests_add(&larger, mem, &set->slot[i], err); /* has room */
	leat_digests_free(set, mem);
	*set = larger;
	return LEAT_OK;
}

enum leat_status
leat_digests_add(struct leat_digests *set, struct leat_mem *mem, const struct leat_digest *digest, struct leat_err *err)
{
	enum leat_status status = set->count * 3 >= set->cap * 2 ? enlarge(set, mem, err) : LEAT_OK;
	size_t i;

	if (status != LEAT_OK)
		return status;
	i = slot_of(set, digest);
	set->count += !set->used[i];
	set->used[i] = true;
	set->slot[i] = *digest;
	return LEAT_OK;
}

void
leat_digests_free(struct leat_digests *set, struct leat_mem *mem)
{
	leat_free(mem, set->slot);
	leat_free(mem, set->used);
	memset(set, 0, sizeof(*set));
}

void
leat_cas_temp_name(struct leat_cas *cas, char name[LEAT_CAS_NAME])
{
	snprintf(name, LEAT_CAS_NAME, "tmp/%s/%lu", cas->run, atomic_fetch_add(&cas->temps, 1));
}

void
leat_cas_temp_path(struct leat_cas *cas, char path[PATH_MAX])
{
	char name[LEAT_CAS_NAME];

	leat_cas_temp_name(cas, name);
	leat_cas_path(cas, name, path);
}

bool
leat_cas_write_all(int fd, const char *bytes, size_t len)
{
	while (len > 0) {
		ssize_t put = write(fd, bytes, len);

		if (put < 0 && errno == EINTR)
			continue;
		if (put < 0)
			return false;
		bytes += put;
		len -= (size_t)put;
	}
	return true;
}

enum leat_status
leat_cas_write_temp(struct leat_cas *cas, const void *bytes, size_t len, char name[LEAT_CAS_NAME], struct leat_err *err)
{
	int fd, errnum = 0;

	leat_cas_temp_name(cas, name);
	fd = openat(cas->folder_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
	if (fd < 0)
		return leat_cas_full(err, cas, errno, "write a file");
	if (!leat_cas_write_all(fd, bytes, len))
		errnum = errno;
	if (close(fd) != 0 && !errnum)
		errnum = errno;
	if (!errnum)
		return LEAT_OK;
	unlinkat(cas->folder_fd, name, 0);
	return leat_cas_full(err, cas, errnum, "write a file");
}

/* Some file systems know no rename that spares what is there. */
static int
rename_new(int from_fd, const char *from, int to_fd, const char *to)
{
	if (renameat2(from_fd, from, to_fd, to, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -1;
	return linkat(from_fd, from, to_fd, to, 0) == 0 ? unlinkat(from_fd, from, 0) : -1;
}

enum leat_status
leat_cas_place(struct leat_cas *cas, int from_fd, const char *from, const char *to, bool replace, struct leat_err *err)
{
	char folder[LEAT_CAS_NAME];

	for (int tries = 0;; tries++) {
		if ((replace ? renameat(from_fd, from, cas->folder_fd, to)
		             : rename_new(from_fd, from, cas->folder_fd, to)) == 0) {
			leat_sync_mark(cas);
			return LEAT_OK;
		}
		if (errno == EEXIST)
			return LEAT_AGAIN;
		if (errno != ENOENT || tries > 0)
			return leat_cas_full(err, cas, errno, "rename a file");
		snprintf(folder, sizeof(folder), "%.*s", (int)(strrchr(to, '/') - to), to);
		if (mkdirat(cas->folder_fd, folder, 0777) != 0 && errno != EEXIST)
			return leat_cas_full(err, cas, errno, "make a folder");
	}
}

enum leat_status
leat_cas_place_blob(struct leat_cas *cas, int from_fd, const char *from, const struct leat_digest *digest,
                    uint64_t bytes, struct leat_err *err)
{
	char name[LEAT_CAS_NAME];
	struct stat there;
	enum leat_status status;

	leat_cas_name("cas", digest, name);
	status = leat_cas_place(cas, from_fd, from, name, false, err);
	if (status == LEAT_AGAIN) {
		if (fstatat(cas->folder_fd, name, &there, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(there.st_mode) &&
		    (uint64_t)there.st_size == bytes) {
			unlinkat(from_fd, from, 0);
			status = LEAT_OK;
		} else {
			status = leat_cas_place(cas, from_fd, from, name, true, err);
		}
	}
	if (status == LEAT_OK)
		leat_cas_found(cas, digest);
	return status;
}

static bool
is_there(struct leat_cas *cas, const struct leat_digest *digest, uint64_t bytes)
{
	char name[LEAT_CAS_NAME];
	struct stat there;

	leat_cas_name("cas", digest, name);
	return fstatat(cas->folder_fd, name, &there, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(there.st_mode) &&
	       (uint64_t)there.st_size == bytes;
}

enum leat_status
leat_cas_put_bytes(struct leat_cas *cas, const void *bytes, size_t len, struct leat_digest *digest,
                   struct leat_err *err)
{
	char temp[LEAT_CAS_NAME];
	enum leat_status status = leat_cas_need_run(cas, err);

	if (status != LEAT_OK)
		return status;
	leat_sha256(bytes, len, digest->byte);
	if (is_there(cas, digest, len)) {
		leat_cas_found(cas, digest);
		return LEAT_OK;
	}
	status = leat_cas_write_temp(cas, bytes, len, temp, err);
	return status == LEAT_OK ? leat_cas_place_blob(cas, cas->folder_fd, temp, digest, len, err) : status;
}

static enum leat_status
add_bytes(void *arg, const char *name, const struct leat_content *content, const char *target, struct leat_err *err)
{
	struct leat_content *folder = arg;

	(void)target;
	if (__builtin_add_overflow(folder->bytes, content->bytes, &folder->bytes))
		return leat_fail(err, LEAT_DATA, "the sizes in a folder are damaged at '%s'", name);
	return LEAT_OK;
}

enum leat_status
leat_cas_put_tree(struct leat_cas *cas, const struct leat_str *tree, struct leat_content *content, struct leat_err *err)
{
	const struct leat_tree_reader reader = {add_bytes, content};
	enum leat_status status;

	*content = (struct leat_content){.kind = LEAT_CONTENT_FOLDER};
	if (tree->failed)
		return leat_fail_mem(err, tree->mem, tree->len, "the list of a folder's entries");
	status = leat_tree_read(leat_str_text(tree), tree->len, &reader, err);
	return status == LEAT_OK ? leat_cas_put_bytes(cas, leat_str_text(tree), tree->len, &content->digest, err)
	                         : status;
}

void
leat_cas_found(struct leat_cas *cas, const struct leat_digest *digest)
{
	pthread_mutex_lock(&cas->seen.lock);
	leat_digests_add(&cas->seen.files, cas->mem, digest, NULL); /* without memory, it is looked up again */
	pthread_mutex_unlock(&cas->seen.lock);
}

void
leat_cas_unsee(struct leat_cas *cas)
{
	pthread_mutex_lock(&cas->seen.lock);
	leat_digests_free(&cas->seen.files, cas->mem);
	leat_digests_free(&cas->seen.folders, cas->mem);
	memset(cas->seen.asked, 0, sizeof(cas->seen.asked));
	pthread_mutex_unlock(&cas->seen.lock);
}

static enum leat_status
add_listed(void *arg, const struct leat_digest *digest, struct leat_err *err)
{
	struct leat_cas *cas = arg;

	return leat_digests_add(&cas->seen.files, cas->mem, digest, err);
}

/* Is it known, or in a folder that was not listed before? */
static bool
is_known(struct leat_cas *cas, const struct leat_digest *digest)
{
	uint8_t *asked = &cas->seen.asked[digest->byte[0]];
	bool known;

	pthread_mutex_lock(&cas->seen.lock);
	known = leat_digests_has(&cas->seen.files, digest);
	if (!known && *asked < ASK_ONE_BY_ONE && ++*asked == ASK_ONE_BY_ONE) {
		leat_cas_each_in(cas, "cas", digest->byte[0], add_listed, cas, NULL);
		known = leat_digests_has(&cas->seen.files, digest);
	}
	pthread_mutex_unlock(&cas->seen.lock);
	return known;
}

bool
leat_cas_has_blob(struct leat_cas *cas, const struct leat_digest *digest)
{
	char name[LEAT_CAS_NAME];

	if (is_known(cas, digest))
		return true;
	leat_cas_name("cas", digest, name);
	if (faccessat(cas->folder_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) != 0)
		return false;
	leat_cas_found(cas, digest);
	return true;
}

static bool has_folder(struct leat_cas *cas, const struct leat_digest *tree, size_t depth);

struct asked {
	struct leat_cas *cas;
	size_t depth;
};

static enum leat_status
must_have(void *arg, const char *name, const struct leat_content *content, const char *target, struct leat_err *err)
{
	const struct asked *asked = arg;

	(void)name, (void)err;
	if (target)
		return LEAT_OK;
	return (content->kind == LEAT_CONTENT_FOLDER ? has_folder(asked->cas, &content->digest, asked->depth + 1)
	                                             : leat_cas_has_blob(asked->cas, &content->digest))
	               ? LEAT_OK
	               : LEAT_END;
}

static bool
has_entries(struct leat_cas *cas, const struct leat_digest *tree, size_t depth)
{
	struct asked asked = {cas, depth};
	const struct leat_tree_reader reader = {must_have, &asked};
	char *text;
	size_t len;
	bool found;

	if (leat_cas_read(cas, tree, LEAT_TREE_MAX, &text, &len, NULL) != LEAT_OK)
		return false;
	found = leat_tree_read(text, len, &reader, NULL) == LEAT_OK;
	leat_free(cas->mem, text);
	return found;
}

static bool
has_folder(struct leat_cas *cas, const struct leat_digest *tree, size_t depth)
{
	bool found;

	pthread_mutex_lock(&cas->seen.lock);
	found = leat_digests_has(&cas->seen.folders, tree);
	pthread_mutex_unlock(&cas->seen.lock);
	if (found)
		return true;
	if (depth > LEAT_TREE_DEPTH || !leat_cas_has_blob(cas, tree))
		return false;
	if (!leat_index_holds(cas, tree, &found))
		found = has_entries(cas, tree, depth);
	if (!found)
		return false;
	pthread_mutex_lock(&cas->seen.lock);
	leat_digests_add(&cas->seen.folders, cas->mem, tree, NULL);
	pthread_mutex_unlock(&cas->seen.lock);
	return true;
}

bool
leat_cas_has(struct leat_cas *cas, const struct leat_content *content)
{
	if (content->kind == LEAT_CONTENT_NONE)
		return false;
	return content->kind == LEAT_CONTENT_FOLDER ? has_folder(cas, &content->digest, 0)
	                                            : leat_cas_has_blob(cas, &content->digest);
}

enum leat_status
leat_cas_read_name(struct leat_cas *cas, const char *name, size_t max, char **bytes, size_t *len, struct leat_err *err)
{
	int fd = openat(cas->folder_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat file;
	enum leat_status status = LEAT_OK;
	ssize_t got;

	*bytes = NULL;
	*len = 0;
	if (fd < 0)
		return errno == ENOENT ? leat_fail(err, LEAT_DATA, "'%s/%s' is not there", cas->folder, name)
		                       : leat_fail_errno(err, errno, "cannot open '%s/%s'", cas->folder, name);
	if (fstat(fd, &file) != 0 || !S_ISREG(file.st_mode))
		status = leat_fail(err, LEAT_DATA, "'%s/%s' is not a file", cas->folder, name);
	else if ((uint64_t)file.st_size > max)
		status = leat_fail(err, LEAT_LIMIT, "'%s/%s' has %lld bytes; at most %zu can be read", cas->folder,
		                   name, (long long)file.st_size, max);
	else if (!(*bytes = leat_alloc(cas->mem, (size_t)file.st_size + 1)))
		status = leat_fail_mem(err, cas->mem, (size_t)file.st_size + 1, "a file of the content store");
	while (status == LEAT_OK && *len < (size_t)file.st_size) {
		got = read(fd, *bytes + *len, (size_t)file.st_size - *len);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			status = got == 0 ? leat_fail(err, LEAT_DATA, "'%s/%s' became shorter", cas->folder, name)
			                  : leat_fail_errno(err, errno, "cannot read '%s/%s'", cas->folder, name);
		else
			*len += (size_t)got;
	}
	close(fd);
	if (status != LEAT_OK) {
		leat_free(cas->mem, *bytes);
		*bytes = NULL;
	}
	return status;
}

enum leat_status
leat_cas_read(struct leat_cas *cas, const struct leat_digest *digest, size_t max, char **bytes, size_t *len,
              struct leat_err *err)
{
	char name[LEAT_CAS_NAME];

	leat_cas_name("cas", digest, name);
	return leat_cas_read_name(cas, name, max, bytes, len, err);
}
