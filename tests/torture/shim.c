/* shim.c - torture_shim.so, preloaded: system calls and allocations that fail, fall short or kill, at chosen moments
 *
 * LEAT_TORTURE="seed=7 calls=read+write odds=6 folder=/tmp/x", with
 *	folder  what happens to files elsewhere is left alone
 *	calls   open, stat, read, write, map, name (rename, link, unlink), sync (and ftruncate), memory, thread
 *	odds    each such call fails or falls short with a probability of 1 in 2^odds
 *	at      the n-th such call of the process fails, the first being 1
 *	from    all of them from the n-th on
 *	kill    the n-th does not return: the process gets SIGKILL
 *	log     every fault becomes a line of this file
 *	count   their number is written to this file when the process exits
 *
 * Nothing happens before main. With `odds`, what a call meets depends on the seed, the thread's number and how many
 * calls it has made; threads are numbered in the order they are created. Files are reached by system calls directly,
 * so that nothing here needs memory. */
#undef _FILE_OFFSET_BITS /* both names of a call are defined here */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum call { OPEN, STAT, READ, WRITE, MAP, NAME, SYNC, MEMORY, THREAD, CALLS };
enum fault { NO_FAULT, FAIL, SHORT };
enum { MAX_FDS = 4096, MAX_THREADS = 1024, MAX_PATH = 600, ERRORS = 4 };

#define EXPORT __attribute__((visibility("default")))

static const char *const call_names[CALLS] = {"open", "stat", "read",   "write", "map",
                                              "name", "sync", "memory", "thread"};

/* What each of them may fail with. */
static const int errors[CALLS][ERRORS] = {
	[OPEN] = {EMFILE, ENFILE, ENOMEM, EIO},      [STAT] = {EIO, ENOMEM, EIO, EIO},
	[READ] = {EIO, EINTR, ENOMEM, EIO},          [WRITE] = {ENOSPC, EIO, EINTR, EDQUOT},
	[MAP] = {ENOMEM, EAGAIN, ENFILE, ENOMEM},    [NAME] = {EIO, ENOSPC, EPERM, EROFS},
	[SYNC] = {EIO, ENOSPC, EINTR, EDQUOT},       [MEMORY] = {ENOMEM, ENOMEM, ENOMEM, ENOMEM},
	[THREAD] = {EAGAIN, EAGAIN, ENOMEM, EAGAIN},
};

static struct {
	bool armed, calls[CALLS];
	uint64_t seed, odds, at, from, kill;
	char folder[MAX_PATH], log[MAX_PATH], count[MAX_PATH];
	atomic_ulong seen; /* calls that could have failed */
	atomic_uint threads;
	atomic_bool ours[MAX_FDS]; /* descriptors of files below the folder */
} shim;

static __thread struct {
	uint64_t number, calls;
} thread __attribute__((tls_model("initial-exec")));

/* ---- settings ---- */

static uint64_t
number_of(const char *settings, const char *name)
{
	const char *at = strstr(settings, name);

	return at ? strtoull(at + strlen(name), NULL, 10) : 0;
}

static void
path_of(const char *settings, const char *name, char out[MAX_PATH])
{
	const char *at = strstr(settings, name);

	if (at)
		snprintf(out, MAX_PATH, "%.*s", (int)strcspn(at + strlen(name), " "), at + strlen(name));
}

static void
calls_of(const char *settings)
{
	char names[MAX_PATH] = "";

	path_of(settings, "calls=", names);
	for (int i = 0; i < CALLS; i++) {
		const char *at = strstr(names, call_names[i]);
		size_t len = strlen(call_names[i]);

		shim.calls[i] = at && (at == names || at[-1] == '+') && (at[len] == '\0' || at[len] == '+');
	}
}

static void
arm(void)
{
	const char *settings = getenv("LEAT_TORTURE");

	if (!settings)
		return;
	shim.seed = number_of(settings, "seed=");
	shim.odds = number_of(settings, "odds=");
	shim.at = number_of(settings, "at=");
	shim.from = number_of(settings, "from=");
	shim.kill = number_of(settings, "kill=");
	path_of(settings, "folder=", shim.folder);
	path_of(settings, "log=", shim.log);
	path_of(settings, "count=", shim.count);
	calls_of(settings);
	shim.armed = true;
}

static void
append(const char *path, const char *text)
{
	long fd = syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);

	if (fd < 0)
		return;
	syscall(SYS_write, fd, text, strlen(text));
	syscall(SYS_close, fd);
}

__attribute__((destructor)) static void
write_count(void)
{
	char text[32];

	if (!shim.armed || !*shim.count)
		return;
	snprintf(text, sizeof text, "%lu\n", atomic_load(&shim.seen));
	append(shim.count, text);
}

/* ---- which call fails ---- */

static uint64_t
mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

static bool
is_hit(uint64_t seen, uint64_t random)
{
	if (shim.at || shim.from)
		return seen == shim.at || (shim.from && seen >= shim.from);
	return shim.odds && !(random & ((UINT64_C(1) << shim.odds) - 1));
}

static void
tell(enum call call, uint64_t seen, const char *what, int error)
{
	char text[128];

	if (!*shim.log)
		return;
	snprintf(text, sizeof text, "%s, call %lu, thread %lu: %s %d\n", call_names[call], (unsigned long)seen,
	         (unsigned long)thread.number, what, error);
	append(shim.log, text);
}

/* Decides about a call that is ours, and sets errno if it is to fail. *random: for how much falls short. */
static enum fault
fault_of(enum call call, uint64_t *random)
{
	uint64_t seen;

	if (!shim.armed || !shim.calls[call])
		return NO_FAULT;
	seen = atomic_fetch_add(&shim.seen, 1) + 1;
	*random = mix(mix(shim.seed + 0x9e3779b97f4a7c15u * (thread.number + 1)) + ++thread.calls);
	if (seen == shim.kill) {
		tell(call, seen, "killed", 0);
		raise(SIGKILL);
	}
	if (!is_hit(seen, *random))
		return NO_FAULT;
	*random = mix(*random);
	if ((call == READ || call == WRITE) && *random & 1 && !shim.from) {
		tell(call, seen, "short", 0);
		*random >>= 1;
		return SHORT;
	}
	errno = errors[call][(shim.from ? mix(shim.seed) : *random >> 1) % ERRORS];
	/* Forever interrupted, nothing could go on. */
	if (shim.from && errno == EINTR)
		errno = EIO;
	tell(call, seen, "errno", errno);
	return FAIL;
}

static bool
fails(enum call call)
{
	uint64_t random;

	return fault_of(call, &random) == FAIL;
}

static bool
is_path_ours(const char *path)
{
	return shim.armed && (*path != '/' || strncmp(path, shim.folder, strlen(shim.folder)) == 0);
}

static bool
is_ours(int fd)
{
	return shim.armed && fd >= 0 && fd < MAX_FDS && atomic_load(&shim.ours[fd]);
}

static int
note(long fd, bool ours)
{
	if (fd >= 0 && fd < MAX_FDS)
		atomic_store(&shim.ours[fd], ours);
	return (int)fd;
}

/* ---- files ---- */

static int
open_at(int dir, const char *path, int flags, mode_t mode)
{
	bool ours = is_path_ours(path);

	if (ours && fails(OPEN))
		return -1;
	return note(syscall(SYS_openat, dir, path, flags, mode), ours);
}

#define MODE_OF(flags, mode)                                                                                           \
	mode_t mode = 0;                                                                                               \
	if ((flags) & (O_CREAT | O_TMPFILE)) {                                                                         \
		va_list args;                                                                                          \
		va_start(args, flags);                                                                                 \
		mode = va_arg(args, mode_t);                                                                           \
		va_end(args);                                                                                          \
	}

EXPORT int
open(const char *path, int flags, ...)
{
	MODE_OF(flags, mode)
	return open_at(AT_FDCWD, path, flags, mode);
}

EXPORT int
openat(int dir, const char *path, int flags, ...)
{
	MODE_OF(flags, mode)
	return open_at(dir, path, flags, mode);
}

EXPORT int
open64(const char *path, int flags, ...)
{
	MODE_OF(flags, mode)
	return open_at(AT_FDCWD, path, flags, mode);
}

EXPORT int
openat64(int dir, const char *path, int flags, ...)
{
	MODE_OF(flags, mode)
	return open_at(dir, path, flags, mode);
}

EXPORT int
close(int fd)
{
	note(fd, false);
	return (int)syscall(SYS_close, fd);
}

static int
stat_at(int dir, const char *path, struct stat *st, int flags)
{
	if (is_path_ours(path) && *path && fails(STAT))
		return -1;
	return (int)syscall(SYS_newfstatat, dir, path, st, flags);
}

EXPORT int
fstatat(int dir, const char *restrict path, struct stat *restrict st, int flags)
{
	return stat_at(dir, path, st, flags);
}

EXPORT int
fstatat64(int dir, const char *restrict path, struct stat64 *restrict st, int flags)
{
	return stat_at(dir, path, (struct stat *)st, flags);
}

EXPORT int
stat(const char *restrict path, struct stat *restrict st)
{
	return stat_at(AT_FDCWD, path, st, 0);
}

EXPORT int
stat64(const char *restrict path, struct stat64 *restrict st)
{
	return stat_at(AT_FDCWD, path, (struct stat *)st, 0);
}

EXPORT int
statx(int dir, const char *restrict path, int flags, unsigned mask, struct statx *restrict st)
{
	if (is_path_ours(path) && fails(STAT))
		return -1;
	return (int)syscall(SYS_statx, dir, path, flags, mask, st);
}

/* How many of `len` bytes to move; -1: fail. A call that moves one byte cannot fall short. */
static ssize_t
share_of(enum call call, int fd, size_t len)
{
	uint64_t random;
	enum fault fault = len && is_ours(fd) ? fault_of(call, &random) : NO_FAULT;

	return fault == FAIL ? -1 : fault == SHORT ? (ssize_t)(1 + random % len) : (ssize_t)len;
}

EXPORT ssize_t
read(int fd, void *bytes, size_t len)
{
	ssize_t n = share_of(READ, fd, len);

	return n < 0 ? -1 : syscall(SYS_read, fd, bytes, n);
}

EXPORT ssize_t
pread(int fd, void *bytes, size_t len, off_t offset)
{
	ssize_t n = share_of(READ, fd, len);

	return n < 0 ? -1 : syscall(SYS_pread64, fd, bytes, n, offset);
}

EXPORT ssize_t
pread64(int fd, void *bytes, size_t len, off64_t offset)
{
	return pread(fd, bytes, len, offset);
}

EXPORT ssize_t
write(int fd, const void *bytes, size_t len)
{
	ssize_t n = share_of(WRITE, fd, len);

	return n < 0 ? -1 : syscall(SYS_write, fd, bytes, n);
}

EXPORT ssize_t
pwrite(int fd, const void *bytes, size_t len, off_t offset)
{
	ssize_t n = share_of(WRITE, fd, len);

	return n < 0 ? -1 : syscall(SYS_pwrite64, fd, bytes, n, offset);
}

EXPORT ssize_t
pwrite64(int fd, const void *bytes, size_t len, off64_t offset)
{
	return pwrite(fd, bytes, len, offset);
}

/* With pieces, what falls short is the number of them, or the first piece. */
static ssize_t
moved(enum call call, long number, int fd, const struct iovec *piece, int pieces, off_t offset, int flags)
{
	struct iovec part = pieces > 0 ? *piece : (struct iovec){0};
	ssize_t n = pieces > 0 ? share_of(call, fd, part.iov_len) : 0;

	if (n < 0)
		return -1;
	if ((size_t)n < part.iov_len) {
		part.iov_len = (size_t)n;
		piece = &part;
		pieces = 1;
	}
	return syscall(number, fd, piece, pieces, offset, 0, flags);
}

EXPORT ssize_t
preadv2(int fd, const struct iovec *piece, int pieces, off_t offset, int flags)
{
	return moved(READ, SYS_preadv2, fd, piece, pieces, offset, flags);
}

EXPORT ssize_t
preadv64v2(int fd, const struct iovec *piece, int pieces, off64_t offset, int flags)
{
	return moved(READ, SYS_preadv2, fd, piece, pieces, offset, flags);
}

EXPORT ssize_t
pwritev(int fd, const struct iovec *piece, int pieces, off_t offset)
{
	return moved(WRITE, SYS_pwritev2, fd, piece, pieces, offset, 0);
}

EXPORT ssize_t
pwritev64(int fd, const struct iovec *piece, int pieces, off64_t offset)
{
	return moved(WRITE, SYS_pwritev2, fd, piece, pieces, offset, 0);
}

EXPORT void *
mmap(void *at, size_t len, int protection, int flags, int fd, off_t offset)
{
	if ((fd < 0 || is_ours(fd)) && fails(MAP))
		return MAP_FAILED;
	return (void *)syscall(SYS_mmap, at, len, protection, flags, fd, offset);
}

EXPORT void *
mmap64(void *at, size_t len, int protection, int flags, int fd, off64_t offset)
{
	return mmap(at, len, protection, flags, fd, offset);
}

EXPORT int
rename(const char *from, const char *to)
{
	return is_path_ours(to) && fails(NAME) ? -1 : (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

EXPORT int
renameat(int from_dir, const char *from, int to_dir, const char *to)
{
	return is_path_ours(to) && fails(NAME) ? -1 : (int)syscall(SYS_renameat2, from_dir, from, to_dir, to, 0);
}

EXPORT int
link(const char *from, const char *to)
{
	return is_path_ours(to) && fails(NAME) ? -1 : (int)syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0);
}

EXPORT int
linkat(int from_dir, const char *from, int to_dir, const char *to, int flags)
{
	return is_path_ours(to) && fails(NAME) ? -1 : (int)syscall(SYS_linkat, from_dir, from, to_dir, to, flags);
}

/* Temporary files can be removed, unless the process is killed: nobody could clean up otherwise. */
static bool
unlink_fails(const char *path)
{
	const char *dot = strrchr(path, '.');
	bool temporary = dot && (strcmp(dot, ".tmp") == 0 || strcmp(dot, ".leatcache-new") == 0);

	return is_path_ours(path) && (shim.kill || !temporary) && fails(NAME);
}

EXPORT int
unlink(const char *path)
{
	return unlink_fails(path) ? -1 : (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}

EXPORT int
unlinkat(int dir, const char *path, int flags)
{
	return unlink_fails(path) ? -1 : (int)syscall(SYS_unlinkat, dir, path, flags);
}

EXPORT int
mkdir(const char *path, mode_t mode)
{
	return is_path_ours(path) && fails(NAME) ? -1 : (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
}

EXPORT int
fsync(int fd)
{
	return is_ours(fd) && fails(SYNC) ? -1 : (int)syscall(SYS_fsync, fd);
}

EXPORT int
fdatasync(int fd)
{
	return is_ours(fd) && fails(SYNC) ? -1 : (int)syscall(SYS_fdatasync, fd);
}

EXPORT int
ftruncate(int fd, off_t len)
{
	return is_ours(fd) && fails(SYNC) ? -1 : (int)syscall(SYS_ftruncate, fd, len);
}

EXPORT int
ftruncate64(int fd, off64_t len)
{
	return ftruncate(fd, len);
}

/* Returns the error, as the real one. */
EXPORT int
posix_fallocate(int fd, off_t offset, off_t len)
{
	if (is_ours(fd) && fails(SYNC))
		return errno;
	return syscall(SYS_fallocate, fd, 0, offset, len) == 0 ? 0 : errno;
}

EXPORT int
posix_fallocate64(int fd, off64_t offset, off64_t len)
{
	return posix_fallocate(fd, offset, len);
}

/* ---- memory: glibc's own functions, under the names it keeps for this ---- */

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

EXPORT void *
malloc(size_t size)
{
	return fails(MEMORY) ? NULL : __libc_malloc(size);
}

EXPORT void *
calloc(size_t count, size_t size)
{
	return fails(MEMORY) ? NULL : __libc_calloc(count, size);
}

EXPORT void *
realloc(void *block, size_t size)
{
	return fails(MEMORY) ? NULL : __libc_realloc(block, size);
}

EXPORT void *
aligned_alloc(size_t alignment, size_t size)
{
	return fails(MEMORY) ? NULL : __libc_memalign(alignment, size);
}

EXPORT int
posix_memalign(void **block, size_t alignment, size_t size)
{
	*block = aligned_alloc(alignment, size);
	return *block ? 0 : ENOMEM;
}

/* ---- threads and the start ---- */

static struct start {
	void *(*run)(void *arg);
	void *arg;
	uint64_t number;
} starts[MAX_THREADS];

static void *
start(void *arg)
{
	struct start *s = arg;

	thread.number = s->number;
	return s->run(s->arg);
}

EXPORT int
pthread_create(pthread_t *restrict id, const pthread_attr_t *restrict attributes, void *(*function)(void *),
               void *restrict arg)
{
	int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) =
		(int (*)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *))dlsym(RTLD_NEXT,
	                                                                                       "pthread_create");
	uint64_t number = atomic_fetch_add(&shim.threads, 1) + 1;

	if (fails(THREAD))
		return errno == ENOMEM ? EAGAIN : errno;
	if (number >= MAX_THREADS)
		return real(id, attributes, function, arg);
	starts[number] = (struct start){function, arg, number};
	return real(id, attributes, start, &starts[number]);
}

static int (*real_main)(int, char **, char **);

static int
armed_main(int argc, char **argv, char **environment)
{
	arm();
	return real_main(argc, argv, environment);
}

int __libc_start_main(int (*main)(int, char **, char **), int argc, char **argv, void (*init)(void), void (*fini)(void),
                      void (*rtld_fini)(void), void *stack_end);

EXPORT int
__libc_start_main(int (*main)(int, char **, char **), int argc, char **argv, void (*init)(void), void (*fini)(void),
                  void (*rtld_fini)(void), void *stack_end)
{
	int (*real)(int (*)(int, char **, char **), int, char **, void (*)(void), void (*)(void), void (*)(void),
	            void *) = (int (*)(int (*)(int, char **, char **), int, char **, void (*)(void), void (*)(void),
	                               void (*)(void), void *))dlsym(RTLD_NEXT, "__libc_start_main");

	real_main = main;
	return real(armed_main, argc, argv, init, fini, rtld_fini, stack_end);
}
