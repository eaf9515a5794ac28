/* kill_at.c - kills a program before its n-th change to the file system: LD_PRELOAD=kill_at.so KILL_AT=n
 *
 * Counted are calls that create, rename, link or remove a file, sync one or end its writing. With KILL_AT=0 nothing is
 * killed, and the number of calls goes to the file KILL_COUNT. */
#undef _FILE_OFFSET_BITS /* open and open64 are both there */
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static atomic_long calls;

static void
count_call(void)
{
	const char *at = getenv("KILL_AT");
	long n = atomic_fetch_add(&calls, 1) + 1;

	if (at && n == atol(at))
		kill(getpid(), SIGKILL);
}

__attribute__((destructor)) static void
tell(void)
{
	const char *path = getenv("KILL_COUNT");
	FILE *out = path ? fopen(path, "w") : NULL;

	if (out) {
		fprintf(out, "%ld\n", calls);
		fclose(out);
	}
}

#pragma GCC visibility push(default)
#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

#define COUNTED(name, params, args)                                                                                    \
	int name params                                                                                                \
	{                                                                                                              \
		count_call();                                                                                          \
		return NEXT(name) args;                                                                                \
	}

COUNTED(rename, (const char *from, const char *to), (from, to))
COUNTED(link, (const char *from, const char *to), (from, to))
COUNTED(unlink, (const char *path), (path))
COUNTED(mkdir, (const char *path, mode_t mode), (path, mode))
COUNTED(fsync, (int fd), (fd))

#define OPEN(name)                                                                                                     \
	int name(const char *path, int flags, ...)                                                                     \
	{                                                                                                              \
		mode_t mode = 0;                                                                                       \
		va_list ap;                                                                                            \
                                                                                                                       \
		if (flags & O_CREAT) {                                                                                 \
			va_start(ap, flags);                                                                           \
			mode = va_arg(ap, mode_t);                                                                     \
			va_end(ap);                                                                                    \
			count_call();                                                                                  \
		}                                                                                                      \
		return NEXT(name)(path, flags, mode);                                                                  \
	}

OPEN(open)
OPEN(open64)
