/* run.c - a process's run on a store, and what runs that died left behind
 *
 * RUN.open holds the boot id of the machine, and its process a lock on it. A file without a lock is of a run that died.
 * If its boot is this one, the kernel kept all that it wrote: only its temporary files have to go. If not, the machine
 * stopped, and what it wrote last may be lost or damaged (recover.c). */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "cas/inside.h"
#include "cas/recover.h"

enum { STAMP = 15 }; /* "20261117T201530" */

const char *
leat_boot_id(char id[64])
{
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? 0 : read(fd, id, 63);

	if (fd >= 0)
		close(fd);
	id[got > 0 ? got : 0] = '\0';
	id[strcspn(id, "\n")] = '\0';
	return id;
}

static bool
ends_with_open(const char *name)
{
	size_t len = strlen(name);

	return len > 5 && len < LEAT_RUN_NAME && !strcmp(name + len - 5, ".open");
}

/* The time of the newest run, if that is later than now: the clock may have been set back. */
static time_t
next_time(const struct leat_entries *runs)
{
	time_t now = time(NULL);
	struct tm newest = {0};

	for (size_t i = runs->count; i-- > 0;) { /* names sort by time */
		char stamp[STAMP + 1];
		const char *end;

		if (strlen(runs->name[i]) <= STAMP || runs->name[i][STAMP] != '-')
			continue;
		snprintf(stamp, sizeof(stamp), "%.*s", STAMP, runs->name[i]);
		end = strptime(stamp, "%Y%m%dT%H%M%S", &newest);
		if (!end || *end != '\0')
			continue;
		return timegm(&newest) >= now ? timegm(&newest) + 1 : now;
	}
	return now;
}

static enum leat_status
make_run_file(struct leat_cas *cas, struct leat_err *err)
{
	struct leat_entries runs;
	char name[LEAT_CAS_NAME], boot[64];
	struct tm tm;
	time_t now;
	enum leat_status status = leat_cas_list(cas, "runs", &runs, err);

	if (status != LEAT_OK)
		return status;
	now = next_time(&runs);
	leat_entries_free(&runs, cas->mem);
	do { /* another process may be in a container, with the same number */
		gmtime_r(&now, &tm);
		snprintf(cas->run, sizeof(cas->run), "%04d%02d%02dT%02d%02d%02d-%ld", tm.tm_year + 1900, tm.tm_mon + 1,
		         tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, (long)getpid());
		snprintf(name, sizeof(name), "runs/%s.open", cas->run);
		cas->run_fd = openat(cas->folder_fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
		now++;
	} while (cas->run_fd < 0 && errno == EEXIST);
	if (cas->run_fd < 0)
		return leat_cas_full(err, cas, errno, "begin a run");
	if (flock(cas->run_fd, LOCK_EX) != 0 ||
	    dprintf(cas->run_fd, "%s %ld\n", leat_boot_id(boot), (long)getpid()) < 0)
		return leat_cas_full(err, cas, errno, "begin a run");
	return LEAT_OK;
}

enum leat_status
leat_cas_begin(struct leat_cas *cas, struct leat_err *err)
{
	char name[LEAT_CAS_NAME];
	enum leat_status status;

	if (cas->mode != LEAT_CAS_WRITE)
		return leat_fail(err, LEAT_INVALID, "the store '%s' is open for reading", cas->folder);
	if (cas->run_fd >= 0)
		return leat_fail(err, LEAT_INVALID, "run %s has begun already", cas->run);
	status = make_run_file(cas, err);
	if (status != LEAT_OK) {
		leat_run_end(cas);
		return status;
	}
	snprintf(name, sizeof(name), "tmp/%s", cas->run);
	if (mkdirat(cas->folder_fd, name, 0777) != 0) {
		status = leat_cas_full(err, cas, errno, "begin a run");
		leat_run_end(cas);
	}
	return status;
}

const char *
leat_cas_run(const struct leat_cas *cas)
{
	return cas->run_fd >= 0 ? cas->run : NULL;
}

enum leat_status
leat_cas_need_run(const struct leat_cas *cas, struct leat_err *err)
{
	return cas->run_fd >= 0 ? LEAT_OK : leat_fail(err, LEAT_INVALID, "the store '%s' has no run", cas->folder);
}

static void
remove_temp(struct leat_cas *cas, const char *run)
{
	char name[NAME_MAX + 8], path[PATH_MAX];

	snprintf(name, sizeof(name), "tmp/%.*s", NAME_MAX, run);
	leat_cas_path(cas, name, path);
	leat_remove_tree(path);
}

/* Makes a RUN.open look as one of another boot. Its time stays: recovery takes it for the begin of the run. If this
 * fails, nothing can be done. */
static void
mark_suspect(int fd)
{
	struct stat file;
	bool has_time = fstat(fd, &file) == 0;

	if (pwrite(fd, "?", 1, 0) == 1 && has_time)
		futimens(fd, (const struct timespec[]){file.st_atim, file.st_mtim});
}

void
leat_run_end(struct leat_cas *cas)
{
	char name[LEAT_CAS_NAME];

	if (cas->run_fd < 0)
		return;
	if (cas->mode == LEAT_CAS_NODE) {
		leat_cas_leave(cas);
		return;
	}
	remove_temp(cas, cas->run);
	leat_index_flush(cas);
	snprintf(name, sizeof(name), "runs/%s.open", cas->run);
	if (leat_sync_end(cas) && !atomic_load(&cas->index_lags))
		unlinkat(cas->folder_fd, name, 0);
	else
		mark_suspect(cas->run_fd);
	close(cas->run_fd);
	cas->run_fd = -1;
	atomic_store(&cas->index_lags, false);
}

/* Did another boot of the machine, or a disk that failed or was full, end this run? */
static bool
is_suspect(struct leat_cas *cas, const char *file)
{
	char name[LEAT_CAS_NAME], text[128] = "", boot[64];
	bool suspect;
	ssize_t got;
	int fd;

	snprintf(name, sizeof(name), "runs/%s", file);
	fd = openat(cas->folder_fd, name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	got = read(fd, text, sizeof(text) - 1);
	text[got > 0 ? got : 0] = '\0';
	text[strcspn(text, " \n")] = '\0';
	suspect = (text[0] == '\0' || strcmp(text, leat_boot_id(boot)) != 0) && flock(fd, LOCK_SH | LOCK_NB) == 0;
	close(fd);
	return suspect;
}

bool
leat_cas_run_is_open(struct leat_cas *cas, const char *run)
{
	char name[LEAT_CAS_NAME];
	bool open;
	int fd;

	if (strlen(run) >= LEAT_RUN_NAME || strchr(run, '/'))
		return false;
	snprintf(name, sizeof(name), "runs/%s.open", run);
	fd = openat(cas->folder_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	open = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
	if (fd >= 0)
		close(fd);
	return open;
}

bool
leat_runs_suspect(struct leat_cas *cas)
{
	struct leat_entries runs;
	bool suspect = false;

	if (leat_cas_list(cas, "runs", &runs, NULL) != LEAT_OK)
		return false;
	for (size_t i = 0; i < runs.count && !suspect; i++)
		suspect = ends_with_open(runs.name[i]) && is_suspect(cas, runs.name[i]);
	leat_entries_free(&runs, cas->mem);
	return suspect;
}

static void
end_run_file(struct leat_cas *cas, const char *file, bool synced)
{
	char name[LEAT_CAS_NAME];
	int fd;

	snprintf(name, sizeof(name), "runs/%s", file);
	if (synced) {
		unlinkat(cas->folder_fd, name, 0);
		return;
	}
	fd = openat(cas->folder_fd, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0) {
		mark_suspect(fd);
		close(fd);
	}
}

/* What a killed run wrote may still be in memory only: RUN.open goes after it is on disk. */
static void
end_run_files(struct leat_cas *cas, const struct leat_entries *runs)
{
	bool asked = false, synced = false;

	for (size_t i = 0; i < runs->count; i++) {
		if (!ends_with_open(runs->name[i]))
			continue;
		if (!asked)
			synced = syncfs(cas->folder_fd) == 0;
		asked = true;
		end_run_file(cas, runs->name[i], synced);
	}
}

enum leat_status
leat_runs_recover(struct leat_cas *cas, struct leat_err *err)
{
	struct leat_entries runs = {0}, temps = {0};
	bool suspect = leat_runs_suspect(cas);
	enum leat_status status = leat_cas_list(cas, "tmp", &temps, err);

	for (size_t i = 0; i < temps.count; i++)
		remove_temp(cas, temps.name[i]);
	if (status == LEAT_OK)
		status = leat_cas_list(cas, "runs", &runs, err);
	for (size_t i = 0; i < runs.count; i++) /* a run that died, maybe with its disk */
		cas->doubts_index |= ends_with_open(runs.name[i]);
	if (status == LEAT_OK && suspect)
		status = leat_recover(cas, &runs, err);
	if (status == LEAT_OK)
		end_run_files(cas, &runs);
	leat_entries_free(&temps, cas->mem);
	leat_entries_free(&runs, cas->mem);
	return status;
}
