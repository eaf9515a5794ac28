/* file.c - local files: the list that patterns name, and reads by range
 *
 * Descriptors are opened at first use and kept, at most MAX_OPEN of them. Each file
 * has one word that holds its descriptor (plus one) in the upper and the number of
 * its readers in the lower half, so that a read costs two atomic additions and no
 * lock. A descriptor is closed only by swapping the word from "no reader" to zero,
 * under the lock: a reader that came in time keeps it, one that came late sees zero
 * and opens the file anew.
 *
 * Files of a list are opened for one read, below the descriptor of their folder. Also
 * that may wait for a device, so a read that must not wait opens from the kernel's
 * cache of names only.
 *
 * Threads: open and close by one, read by any. The lock guards the list of open files. */
#include "store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "store/pattern.h"

enum { MAX_OPEN = 256, PART_IOVS = 64 };

/* What reading without waiting means for a file. */
enum nowait {
	NOWAIT_ASK,   /* the kernel knows */
	NOWAIT_NEVER, /* the file system cannot tell: every read may wait */
	NOWAIT_FREE,  /* it lies in memory: no read waits */
};

struct handle {
	_Atomic uint64_t word; /* (descriptor + 1) << 32 | readers */
	atomic_uchar used;     /* since the clock hand passed */
	atomic_uchar nowait;   /* enum nowait */
};

struct leat_files {
	struct leat_mem *mem;
	struct leat_paths paths;
	struct leat_file *file;
	struct handle *handle;

	pthread_mutex_t lock;
	size_t *open; /* which files are open, in no order */
	size_t opened, max_open;
	size_t hand; /* of the clock that picks what to close */

	/* Of a list: */
	struct leat_file_list list;
	int folder;            /* its descriptor, or -1: no list */
	struct handle listed;  /* what is known of all of them */
	atomic_bool no_cached; /* the kernel cannot open from its cache alone */
};

/* A descriptor for the time of one read. */
struct held {
	int fd;
	bool loose; /* all that may be open are being read: closed right afterwards */
};

static void
close_handle(struct handle *handle)
{
	uint64_t word = atomic_load(&handle->word);

	if (word >> 32)
		close((int)(word >> 32) - 1);
}

void
leat_files_close(struct leat_files *files)
{
	if (!files)
		return;
	for (size_t i = 0; i < files->opened; i++)
		close_handle(&files->handle[files->open[i]]);
	if (files->folder >= 0)
		close(files->folder);
	pthread_mutex_destroy(&files->lock);
	leat_free(files->mem, files->open);
	leat_free(files->mem, files->handle);
	leat_free(files->mem, files->file);
	leat_paths_free(&files->paths, files->mem);
	leat_free(files->mem, files);
}

static enum leat_status
examine(struct leat_file *file, const char *path, struct leat_err *err)
{
	struct stat st;

	if (stat(path, &st) != 0)
		return leat_fail_errno(err, errno, "cannot open '%s'", path);
	if (S_ISDIR(st.st_mode))
		return leat_fail(err, LEAT_INVALID, "'%s' is a folder: name its files, as in '%s/*'", path, path);
	if (!S_ISREG(st.st_mode))
		return leat_fail(err, LEAT_INVALID, "'%s' is no regular file", path);
	if (faccessat(AT_FDCWD, path, R_OK, AT_EACCESS) != 0)
		return leat_fail_errno(err, errno, "cannot read '%s'", path);
	file->uri = path;
	file->size = (uint64_t)st.st_size;
	file->mtime_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
	return LEAT_OK;
}

/* Length of the folder, with its slash, that all paths share. */
static size_t
common_folder(const struct leat_paths *paths)
{
	const char *first = paths->path[0];
	const char *slash = strrchr(first, '/');
	size_t common = slash ? (size_t)(slash - first) + 1 : 0;

	for (size_t i = 1; i < paths->count && common; i++) {
		size_t same = 0, end = 0;

		for (; same < common && paths->path[i][same] == first[same]; same++)
			if (first[same] == '/')
				end = same + 1;
		common = end;
	}
	return common;
}

/* Leaves most descriptors to the rest of the process. */
static size_t
open_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur / 4 >= MAX_OPEN)
		return MAX_OPEN;
	return limit.rlim_cur < 8 ? 2 : (size_t)limit.rlim_cur / 4;
}

static enum leat_status
make_files(struct leat_files **result, struct leat_mem *mem, struct leat_err *err)
{
	struct leat_files *files = leat_alloc(mem, sizeof(*files));

	*result = NULL;
	if (!files)
		return leat_fail_mem(err, mem, sizeof(*files), "the list of files");
	files->mem = mem;
	files->max_open = open_limit();
	files->folder = -1;
	pthread_mutex_init(&files->lock, NULL);
	*result = files;
	return LEAT_OK;
}

enum leat_status
leat_files_open(struct leat_files **result, const char *const *patterns, size_t count, struct leat_mem *mem,
                struct leat_err *err)
{
	struct leat_files *files;
	enum leat_status status = make_files(&files, mem, err);
	size_t n, folder;

	*result = NULL;
	if (status != LEAT_OK)
		return status;
	for (size_t i = 0; i < count && status == LEAT_OK; i++)
		status = leat_paths_add(&files->paths, patterns[i], mem, err);
	n = files->paths.count;
	if (status == LEAT_OK && n == 0)
		status = leat_fail(err, LEAT_INVALID, "no file name or pattern is given");
	if (status != LEAT_OK)
		goto out;

	if (files->max_open > n)
		files->max_open = n;
	files->file = leat_alloc_array(mem, n, sizeof(*files->file));
	files->handle = leat_alloc_array(mem, n, sizeof(*files->handle));
	files->open = leat_alloc_array(mem, files->max_open, sizeof(*files->open));
	if (!files->file || !files->handle || !files->open) {
		status = leat_fail_mem(err, mem, n * (sizeof(*files->file) + sizeof(*files->handle)),
		                       "the list of files");
		goto out;
	}
	folder = common_folder(&files->paths);
	for (size_t i = 0; i < n && status == LEAT_OK; i++) {
		status = examine(&files->file[i], files->paths.path[i], err);
		files->file[i].name = files->paths.path[i] + folder;
	}
out:
	if (status != LEAT_OK)
		leat_files_close(files);
	else
		*result = files;
	return status;
}

enum leat_status
leat_files_open_list(struct leat_files **result, const struct leat_file_list *list, struct leat_mem *mem,
                     struct leat_err *err)
{
	enum leat_status status = make_files(result, mem, err);
	struct leat_files *files = *result;

	if (status != LEAT_OK)
		return status;
	files->list = *list;
	files->folder = open(list->folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (files->folder >= 0)
		return LEAT_OK;
	status = leat_fail_errno(err, errno, "cannot open the folder '%s'", list->folder);
	leat_files_close(files);
	*result = NULL;
	return status;
}

size_t
leat_files_count(const struct leat_files *files)
{
	return files->folder >= 0 ? files->list.count : files->paths.count;
}

const struct leat_file *
leat_files_at(const struct leat_files *files, size_t i)
{
	return &files->file[i];
}

/* "FOLDER/NAME" of a file of the list into `path`, and where NAME begins, which is also what is left of an
 * absolute one. False: it is too long, or what was in order when the list was opened no longer is. */
static bool
listed_path(const struct leat_files *files, size_t i, char path[LEAT_URI], const char **name)
{
	const struct leat_file_list *list = &files->list;
	uint64_t begin = list->name_at[i], end = list->name_at[i + 1], len = end - begin;
	size_t folder = strlen(list->folder);

	if (begin > end || end > list->names_len || folder + len + 2 > LEAT_URI)
		return false;
	if (len && list->names[begin] == '/')
		folder = 0;
	memcpy(path, list->folder, folder);
	if (folder && path[folder - 1] != '/')
		path[folder++] = '/';
	memcpy(path + folder, list->names + begin, (size_t)len);
	path[folder + len] = '\0';
	*name = path + folder;
	return strlen(*name) == len;
}

const char *
leat_files_uri(const struct leat_files *files, size_t i, char buf[LEAT_URI])
{
	const char *name;

	if (files->folder < 0)
		return files->file[i].uri;
	return listed_path(files, i, buf, &name) ? buf : files->list.folder;
}

/* Under the lock: takes a file that nobody reads, and was not read lately, off the list.
 * Gives its descriptor, to be closed without the lock, or -1. */
static int
evict(struct leat_files *files)
{
	for (size_t tries = 2 * files->opened; tries; tries--) {
		size_t place = files->hand = (files->hand + 1) % files->opened;
		struct handle *handle = &files->handle[files->open[place]];
		uint64_t word = atomic_load_explicit(&handle->word, memory_order_relaxed);

		if (atomic_exchange_explicit(&handle->used, 0, memory_order_relaxed))
			continue;
		word &= ~(uint64_t)UINT32_MAX;
		if (atomic_compare_exchange_strong(&handle->word, &word, 0)) {
			files->open[place] = files->open[--files->opened];
			return (int)(word >> 32) - 1;
		}
	}
	return -1;
}

static bool
evict_one(struct leat_files *files)
{
	int fd;

	pthread_mutex_lock(&files->lock);
	fd = evict(files);
	pthread_mutex_unlock(&files->lock);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static enum leat_status
open_file(struct leat_files *files, size_t i, int *fd, struct leat_err *err)
{
	for (;;) {
		*fd = open(files->file[i].uri, O_RDONLY | O_CLOEXEC);
		if (*fd >= 0)
			return LEAT_OK;
		if (errno == EINTR || ((errno == EMFILE || errno == ENFILE) && evict_one(files)))
			continue;
		return leat_fail_errno(err, errno, "cannot open '%s'", files->file[i].uri);
	}
}

/* The slow way to a descriptor: opens the file, and enters it in the list unless another thread did. */
static enum leat_status
open_and_hold(struct leat_files *files, size_t i, struct held *held, struct leat_err *err)
{
	struct handle *handle = &files->handle[i];
	enum leat_status status = open_file(files, i, &held->fd, err);
	int close_fd = -1;
	uint64_t word;

	if (status != LEAT_OK)
		return status;
	pthread_mutex_lock(&files->lock);
	word = atomic_load(&handle->word);
	if (word >> 32) { /* nobody closes it while we have the lock */
		atomic_fetch_add(&handle->word, 1);
		close_fd = held->fd;
		held->fd = (int)(word >> 32) - 1;
	} else {
		if (files->opened == files->max_open)
			close_fd = evict(files);
		held->loose = files->opened == files->max_open;
		if (!held->loose) {
			files->open[files->opened++] = i;
			atomic_store_explicit(&handle->used, 1, memory_order_relaxed);
			atomic_fetch_add(&handle->word, (uint64_t)(held->fd + 1) << 32 | 1);
		}
	}
	pthread_mutex_unlock(&files->lock);
	if (close_fd >= 0)
		close(close_fd);
	return LEAT_OK;
}

static enum leat_status
hold(struct leat_files *files, size_t i, struct held *held, struct leat_err *err)
{
	struct handle *handle = &files->handle[i];
	uint64_t word = atomic_fetch_add_explicit(&handle->word, 1, memory_order_acquire);

	held->loose = false;
	if (word >> 32) {
		held->fd = (int)(word >> 32) - 1;
		if (!atomic_load_explicit(&handle->used, memory_order_relaxed))
			atomic_store_explicit(&handle->used, 1, memory_order_relaxed);
		return LEAT_OK;
	}
	atomic_fetch_sub_explicit(&handle->word, 1, memory_order_relaxed);
	return open_and_hold(files, i, held, err);
}

static void
let_go(struct leat_files *files, size_t i, const struct held *held)
{
	if (held->loose)
		close(held->fd);
	else
		atomic_fetch_sub_explicit(&files->handle[i].word, 1, memory_order_release);
}

/* A walk over the iovs, for reads that come in parts. After advance it stands on an iov that lacks bytes. */
struct cursor {
	const struct iovec *iov;
	int iovs;
	size_t into; /* bytes of iov[0] that are there */
};

static void
advance(struct cursor *at, size_t bytes)
{
	at->into += bytes;
	while (at->iovs && at->into >= at->iov->iov_len) {
		at->into -= at->iov->iov_len;
		at->iov++;
		at->iovs--;
	}
}

/* One system call for as much as fits in it. */
static ssize_t
read_part(int fd, uint64_t offset, const struct cursor *at, int flags)
{
	struct iovec part[PART_IOVS];
	int parts = at->iovs < PART_IOVS ? at->iovs : PART_IOVS;

	if (at->into == 0 && at->iovs <= IOV_MAX)
		return preadv2(fd, at->iov, at->iovs, (off_t)offset, flags);
	memcpy(part, at->iov, (size_t)parts * sizeof(*part));
	part[0].iov_base = (char *)part[0].iov_base + at->into;
	part[0].iov_len -= at->into;
	return preadv2(fd, part, parts, (off_t)offset, flags);
}

static enum leat_status
read_all(const struct leat_file *file, int fd, uint64_t offset, struct cursor at, size_t want, size_t *got,
         struct leat_err *err)
{
	advance(&at, 0);
	while (*got < want) {
		ssize_t n = read_part(fd, offset + *got, &at, 0);

		if (n == 0)
			return leat_fail(err, LEAT_DATA,
			                 "'%s' ends before offset %llu, though it had %llu bytes when it was opened",
			                 file->uri, (unsigned long long)(offset + want),
			                 (unsigned long long)file->size);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return leat_fail_errno(err, errno, "cannot read '%s' at offset %llu", file->uri,
			                       (unsigned long long)(offset + *got));
		*got += (size_t)n;
		advance(&at, (size_t)n);
	}
	return LEAT_OK;
}

static enum nowait
what_nowait_means(int fd)
{
	struct statfs fs;

	if (fstatfs(fd, &fs) == 0 && (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC))
		return NOWAIT_FREE;
	return NOWAIT_NEVER;
}

/* What the page cache holds. The kernel gives a part, EAGAIN, or (some versions) 0 for what it lacks,
 * so that the end of a file cannot be told from it: the read that waits will. */
static enum leat_status
read_at_once(struct handle *handle, const struct leat_file *file, int fd, uint64_t offset, struct cursor at,
             size_t want, size_t *got, struct leat_err *err)
{
	enum nowait nowait = atomic_load_explicit(&handle->nowait, memory_order_relaxed);

	advance(&at, 0);
	while (nowait == NOWAIT_ASK && *got < want) {
		ssize_t n = read_part(fd, offset + *got, &at, RWF_NOWAIT);

		if (n > 0) {
			*got += (size_t)n;
			advance(&at, (size_t)n);
		} else if (n < 0 && (errno == EOPNOTSUPP || errno == ENOSYS || errno == EINVAL)) {
			nowait = what_nowait_means(fd);
			atomic_store_explicit(&handle->nowait, (unsigned char)nowait, memory_order_relaxed);
		} else if (n == 0 || errno != EINTR) {
			return LEAT_AGAIN;
		}
	}
	if (nowait == NOWAIT_NEVER)
		return LEAT_AGAIN;
	return read_all(file, fd, offset, at, want, got, err);
}

/* Opens a file of the list for one read. LEAT_AGAIN: not without waiting. */
static enum leat_status
open_listed(struct leat_files *files, const char *name, const char *uri, int flags, int *fd, struct leat_err *err)
{
	struct open_how how = {.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK, .resolve = RESOLVE_CACHED};

	*fd = -1;
	if ((flags & LEAT_READ_NOWAIT) && !atomic_load_explicit(&files->no_cached, memory_order_relaxed)) {
		*fd = (int)syscall(SYS_openat2, files->folder, name, &how, sizeof(how));
		if (*fd < 0 && errno == EAGAIN)
			return LEAT_AGAIN;
		if (*fd < 0 && (errno == ENOSYS || errno == EINVAL || errno == EPERM))
			atomic_store_explicit(&files->no_cached, true, memory_order_relaxed);
	}
	if (*fd < 0) /* not to be stopped by a pipe */
		*fd = openat(files->folder, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	return *fd >= 0 ? LEAT_OK : leat_fail_errno(err, errno, "cannot open '%s'", uri);
}

/* That a file is still what the list says: a part of what it is now would be no sample. */
static enum leat_status
check_listed(const struct leat_files *files, const struct leat_file *file, int fd, struct leat_err *err)
{
	struct stat st;

	if (fstat(fd, &st) != 0)
		return leat_fail_errno(err, errno, "cannot read '%s'", file->uri);
	if (!S_ISREG(st.st_mode))
		return leat_fail(err, LEAT_DATA, "'%s' is no regular file", file->uri);
	if ((uint64_t)st.st_size != file->size)
		return leat_fail(err, LEAT_DATA, "'%s' has %lld bytes, and had %llu before: %s", file->uri,
		                 (long long)st.st_size, (unsigned long long)file->size, files->list.remedy);
	return LEAT_OK;
}

static enum leat_status
read_listed(struct leat_files *files, size_t i, uint64_t offset, struct cursor at, size_t want, int flags, size_t *got,
            struct leat_err *err)
{
	struct leat_file file = {.size = files->list.size[i]};
	char path[LEAT_URI];
	enum leat_status status;
	int fd;

	if (!listed_path(files, i, path, &file.name))
		return leat_fail(err, LEAT_DATA, "the name of file %zu below '%s' is too long, or its list has changed",
		                 i, files->list.folder);
	file.uri = path;
	status = open_listed(files, file.name, file.uri, flags, &fd, err);
	if (status != LEAT_OK)
		return status;
	status = check_listed(files, &file, fd, err);
	if (status == LEAT_OK && (flags & LEAT_READ_NOWAIT))
		status = read_at_once(&files->listed, &file, fd, offset, at, want, got, err);
	else if (status == LEAT_OK)
		status = read_all(&file, fd, offset, at, want, got, err);
	close(fd);
	return status;
}

enum leat_status
leat_files_read(struct leat_files *files, size_t i, uint64_t offset, const struct iovec *iov, int iovs, int flags,
                size_t *got, struct leat_err *err)
{
	const struct leat_file *file;
	struct cursor at = {.iov = iov, .iovs = iovs};
	struct held held;
	enum leat_status status;
	size_t want = 0;
	char buf[LEAT_URI];

	*got = 0;
	for (int k = 0; k < iovs; k++)
		if (__builtin_add_overflow(want, iov[k].iov_len, &want))
			want = SIZE_MAX;
	if (offset > INT64_MAX || want > INT64_MAX - offset)
		return leat_fail(err, LEAT_INVALID, "'%s': offset %llu is beyond any file",
		                 leat_files_uri(files, i, buf), (unsigned long long)offset);
	if (files->folder >= 0)
		return read_listed(files, i, offset, at, want, flags, got, err);
	file = &files->file[i];
	status = hold(files, i, &held, err);
	if (status != LEAT_OK)
		return status;
	if (flags & LEAT_READ_NOWAIT)
		status = read_at_once(&files->handle[i], file, held.fd, offset, at, want, got, err);
	else
		status = read_all(file, held.fd, offset, at, want, got, err);
	let_go(files, i, &held);
	return status;
}
