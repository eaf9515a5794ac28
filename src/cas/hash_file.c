/* hash_file.c - the content of files that belong to the user
 *
 * A file is read once: its hash is kept by device and inode, and holds while size, mtime and ctime are the same. A file
 * that changed in the last two seconds is not kept, because it may change again within the same tick of the clock.
 * Only ctime is asked for that: nobody can set it. A clock that was set back makes ctimes lie ahead, so such files are
 * read each time. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "cas/inside.h"

enum { BUFFER = 32 << 10, TRIES = 3 };
#define RACY_NS 2000000000

static bool
is_stopped(const struct leat_hashing *hashing)
{
	return hashing && hashing->stop && atomic_load_explicit(hashing->stop, memory_order_relaxed);
}

static void
add(atomic_ullong *count, uint64_t more)
{
	atomic_fetch_add_explicit(count, more, memory_order_relaxed);
}

enum leat_status
leat_hash_fd(int fd, struct leat_mem *mem, const char *path, struct leat_hashing *hashing, struct leat_digest *digest,
             uint64_t *bytes, struct leat_err *err)
{
	char buffer[BUFFER];
	struct leat_sha256 *sha = leat_sha256_new();
	ssize_t got;

	*bytes = 0;
	if (!sha)
		return leat_fail_mem(err, mem, BUFFER, "a hash");
	while (((got = read(fd, buffer, sizeof(buffer))) > 0 || (got < 0 && errno == EINTR)) && !is_stopped(hashing))
		if (got > 0) {
			leat_sha256_add(sha, buffer, (size_t)got);
			*bytes += (uint64_t)got;
			if (hashing)
				add(&hashing->bytes, (uint64_t)got);
		}
	if (got == 0)
		leat_sha256_end(sha, digest->byte);
	leat_sha256_free(sha);
	if (got != 0 && is_stopped(hashing))
		return LEAT_END;
	return got == 0 ? LEAT_OK : leat_fail_errno(err, errno, "cannot read '%s'", path);
}

/* One call: where it is, and what is asked for. */
struct visit {
	struct leat_cas *cas; /* NULL: stamps only */
	struct leat_stamp *stamp;
	struct leat_hashing *count; /* NULL, or only files are counted */
	const atomic_bool *stop;    /* of counting */
	char path[PATH_MAX];        /* for messages */
};

static int64_t
nanoseconds(struct timespec t)
{
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void
stamp_add(struct leat_stamp *stamp, uint64_t value)
{
	if (!stamp)
		return;
	stamp->value[0] = leat_mix64(stamp->value[0] ^ value);
	stamp->value[1] = leat_mix64(stamp->value[1] + (value ^ 0x9e3779b97f4a7c15u));
}

static void
stamp_file(struct leat_stamp *stamp, const struct stat *file)
{
	stamp_add(stamp, file->st_dev);
	stamp_add(stamp, file->st_ino);
	stamp_add(stamp, (uint64_t)file->st_size);
	stamp_add(stamp, (uint64_t)nanoseconds(file->st_mtim));
	stamp_add(stamp, (uint64_t)nanoseconds(file->st_ctim));
}

static struct leat_stat_value
value_of(const struct stat *file)
{
	return (struct leat_stat_value){.size = (uint64_t)file->st_size,
	                                .mtime_ns = nanoseconds(file->st_mtim),
	                                .ctime_ns = nanoseconds(file->st_ctim)};
}

static bool
is_same_file(const struct stat *a, const struct stat *b)
{
	struct leat_stat_value x = value_of(a), y = value_of(b);

	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && x.size == y.size && x.mtime_ns == y.mtime_ns &&
	       x.ctime_ns == y.ctime_ns;
}

static bool
is_settled(const struct stat *file)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return nanoseconds(now) - nanoseconds(file->st_ctim) > RACY_NS;
}

/* Reads the file. LEAT_AGAIN: it changed meanwhile; `file` is what it is now. */
static enum leat_status
read_file(struct visit *visit, int fd, struct stat *file, struct leat_content *content, struct leat_err *err)
{
	struct stat before = *file;
	enum leat_status status = leat_hash_fd(fd, visit->cas->mem, visit->path, visit->cas->hashing, &content->digest,
	                                       &content->bytes, err);

	if (status != LEAT_OK)
		return status;
	if (fstat(fd, file) != 0)
		return leat_fail_errno(err, errno, "cannot read '%s'", visit->path);
	return is_same_file(&before, file) && content->bytes == (uint64_t)file->st_size ? LEAT_OK : LEAT_AGAIN;
}

static enum leat_status
hash_new(struct visit *visit, int folder_fd, const char *name, struct stat *file, struct leat_content *content,
         struct leat_err *err)
{
	int fd = openat(folder_fd, name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	enum leat_status status = LEAT_AGAIN;

	if (fd < 0 || fstat(fd, file) != 0) {
		status = leat_fail_errno(err, errno, "cannot open '%s'", visit->path);
		if (fd >= 0)
			close(fd);
		return status;
	}
	posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	for (int tries = 0; tries < TRIES && status == LEAT_AGAIN; tries++) {
		if (lseek(fd, 0, SEEK_SET) != 0)
			status = leat_fail_errno(err, errno, "cannot read '%s'", visit->path);
		else
			status = read_file(visit, fd, file, content, err);
	}
	close(fd);
	if (status == LEAT_AGAIN)
		status = leat_fail(err, LEAT_DATA, "'%s' changes while it is read; build again when it is complete",
		                   visit->path);
	return status;
}

static enum leat_status
hash_regular(struct visit *visit, int folder_fd, const char *name, struct stat *file, struct leat_content *content,
             struct leat_err *err)
{
	const struct leat_stat_key key = {file->st_dev, file->st_ino};
	struct leat_stat_value value = value_of(file), kept;
	enum leat_status status = LEAT_OK;

	content->kind = file->st_mode & S_IXUSR ? LEAT_CONTENT_EXECUTABLE : LEAT_CONTENT_FILE;
	if (leat_index_stat(visit->cas, &key, &kept) && kept.size == value.size && kept.mtime_ns == value.mtime_ns &&
	    kept.ctime_ns == value.ctime_ns) {
		content->digest = kept.digest;
		content->bytes = value.size;
		if (visit->cas->hashing)
			add(&visit->cas->hashing->bytes, value.size);
		return LEAT_OK;
	}
	status = hash_new(visit, folder_fd, name, file, content, err);
	if (status == LEAT_OK && is_settled(file)) {
		const struct leat_stat_key now = {file->st_dev, file->st_ino};

		value = value_of(file);
		value.digest = content->digest;
		leat_index_stat_set(visit->cas, &now, &value);
	}
	return status;
}

static enum leat_status visit_entry(struct visit *visit, int folder_fd, const char *name, size_t depth,
                                    struct leat_content *content, struct leat_err *err);

static enum leat_status
visit_entries(struct visit *visit, int fd, const struct leat_entries *entries, size_t depth, struct leat_str *tree,
              uint64_t *bytes, struct leat_err *err)
{
	size_t len = strlen(visit->path);
	enum leat_status status = LEAT_OK;

	for (size_t i = 0; i < entries->count && status == LEAT_OK; i++) {
		struct leat_content content;

		snprintf(visit->path + len, sizeof(visit->path) - len, "/%s", entries->name[i]);
		stamp_add(visit->stamp, leat_hash64(entries->name[i]));
		status = visit_entry(visit, fd, entries->name[i], depth + 1, &content, err);
		if (status == LEAT_OK && visit->cas) {
			status = leat_tree_add(tree, entries->name[i], &content, err);
			*bytes += content.bytes;
		}
		visit->path[len] = '\0';
	}
	return status;
}

static enum leat_status
visit_folder(struct visit *visit, int folder_fd, const char *name, size_t depth, struct leat_content *content,
             struct leat_err *err)
{
	struct leat_mem plain, *mem = visit->cas ? visit->cas->mem : &plain;
	struct leat_entries entries = {0};
	struct leat_str tree;
	int fd = openat(folder_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	enum leat_status status;

	if (fd < 0)
		return leat_fail_errno(err, errno, "cannot open '%s'", visit->path);
	leat_mem_init(&plain, SIZE_MAX);
	leat_str_init(&tree, mem, LEAT_TREE_MAX);
	*content = (struct leat_content){.kind = LEAT_CONTENT_FOLDER};
	status = leat_entries_read(fd, mem, false, &entries, visit->path, err);
	if (status == LEAT_OK)
		status = visit_entries(visit, fd, &entries, depth, &tree, &content->bytes, err);
	if (status == LEAT_OK)
		leat_sha256(leat_str_text(&tree), tree.len, content->digest.byte);
	leat_str_free(&tree);
	leat_entries_free(&entries, mem);
	close(fd);
	return status;
}

static enum leat_status
visit_entry(struct visit *visit, int folder_fd, const char *name, size_t depth, struct leat_content *content,
            struct leat_err *err)
{
	struct stat file;

	if (depth > LEAT_TREE_DEPTH)
		return leat_fail(err, LEAT_DATA,
		                 "'%s': folders are nested more than %d deep; is there a loop of symbolic links?",
		                 visit->path, LEAT_TREE_DEPTH);
	if ((visit->cas && is_stopped(visit->cas->hashing)) || (visit->stop && atomic_load(visit->stop)))
		return LEAT_END;
	if (fstatat(folder_fd, name, &file, 0) != 0)
		return leat_fail_errno_as(err, errno == ENOENT ? LEAT_DATA : leat_errno_status(errno), errno,
		                          "cannot read '%s'", visit->path);
	if (S_ISDIR(file.st_mode))
		return visit_folder(visit, folder_fd, name, depth, content, err);
	if (!S_ISREG(file.st_mode))
		return leat_fail(err, LEAT_DATA, "'%s' is neither a file nor a folder", visit->path);
	if (visit->cas) {
		enum leat_status status = hash_regular(visit, folder_fd, name, &file, content, err);

		if (status != LEAT_OK)
			return status;
		if (visit->cas->hashing)
			add(&visit->cas->hashing->files, 1);
	}
	if (visit->count) {
		add(&visit->count->all_files, 1);
		add(&visit->count->all_bytes, (uint64_t)file.st_size);
	}
	stamp_file(visit->stamp, &file);
	return LEAT_OK;
}

enum leat_status
leat_cas_hash(struct leat_cas *cas, const char *path, struct leat_content *content, struct leat_stamp *stamp,
              struct leat_err *err)
{
	struct visit visit = {.cas = cas, .stamp = stamp};

	if (stamp)
		*stamp = (struct leat_stamp){{0, 0}};
	snprintf(visit.path, sizeof(visit.path), "%s", path);
	return visit_entry(&visit, AT_FDCWD, path, 0, content, err);
}

void
leat_cas_watch_hashing(struct leat_cas *cas, struct leat_hashing *hashing)
{
	cas->hashing = hashing;
}

void
leat_cas_count(const char *path, struct leat_hashing *hashing, const atomic_bool *stop)
{
	struct visit visit = {.count = hashing, .stop = stop};
	struct leat_content content;

	snprintf(visit.path, sizeof(visit.path), "%s", path);
	visit_entry(&visit, AT_FDCWD, path, 0, &content, NULL);
}

enum leat_status
leat_cas_stamp(const char *path, struct leat_stamp *stamp, struct leat_err *err)
{
	struct visit visit = {.stamp = stamp};
	struct leat_content content;

	*stamp = (struct leat_stamp){{0, 0}};
	snprintf(visit.path, sizeof(visit.path), "%s", path);
	return visit_entry(&visit, AT_FDCWD, path, 0, &content, err);
}
