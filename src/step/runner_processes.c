/* runner_processes.c - the processes of an action, read from /proc
 *
 * Descendants are found by /proc/PID/task/TID/children. A process whose parent has ended is adopted by this one, which
 * is a subreaper, and then belongs to the action whose LEAT_STEP is in its environment. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "step/runner_inside.h"
#include "trace/proc.h"

enum { TEXT = 8192, MAX_THREADS_SEEN = 512, KIB = 1024, LARGE_PROCESS = 32 << 20 };

/* ---- files of /proc ---- */

/* At most cap - 1 bytes, and a NUL. Returns the length; 0: it cannot be read. */
static size_t
read_proc(const char *path, char *text, size_t cap)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t len = 0;
	ssize_t n = 0;

	while (fd >= 0 && len < cap - 1 && (n = read(fd, text + len, cap - 1 - len)) > 0)
		len += (size_t)n;
	if (fd >= 0)
		close(fd);
	text[len] = '\0';
	return len;
}

struct proc_stat {
	char state;
	unsigned threads;
	uint64_t bytes; /* resident */
};

/* After the name, which ends at the last ')': the fields 3 (state), 20 (threads) and 24 (pages), see proc(5). */
static bool
parse_stat(const char *text, struct proc_stat *stat)
{
	const char *field = strrchr(text, ')');
	char *end;

	if (field == NULL || field[1] != ' ')
		return false;
	field += 2;
	stat->state = *field;
	for (int i = 3; i < 24; i++) {
		if (i == 20)
			stat->threads = (unsigned)strtoul(field, NULL, 10);
		field = strchr(field, ' ');
		if (field == NULL)
			return false;
		field++;
	}
	stat->bytes = strtoull(field, &end, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
	return end != field;
}

static bool
read_stat(pid_t pid, struct proc_stat *stat)
{
	char path[64], text[1024];

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	return read_proc(path, text, sizeof(text)) > 0 && parse_stat(text, stat);
}

/* ---- which processes ---- */

static void
add_children(struct leat_processes *p, pid_t pid, pid_t thread)
{
	char path[64], text[TEXT];
	const char *at = text, *end;
	int id;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)thread);
	end = text + read_proc(path, text, sizeof(text));
	while (p->count < LEAT_MAX_PROCESSES && (id = leat_proc_next_id(&at, end)) > 0)
		p->pid[p->count++] = id;
}

/* Children belong to the thread that forked them. */
static void
add_children_of_threads(struct leat_processes *p, pid_t pid)
{
	struct dirent *entry;
	char path[64];
	DIR *folder;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	folder = opendir(path);
	while (folder != NULL && (entry = readdir(folder)) != NULL)
		if (*entry->d_name != '.')
			add_children(p, pid, (pid_t)atoi(entry->d_name));
	if (folder != NULL)
		closedir(folder);
}

static void
add_descendants(struct leat_processes *p, size_t from)
{
	for (; from < p->count; from++) {
		struct proc_stat stat;

		if (!read_stat(p->pid[from], &stat))
			continue;
		if (stat.threads > 1)
			add_children_of_threads(p, p->pid[from]);
		else
			add_children(p, p->pid[from], p->pid[from]);
	}
}

/* Is there a variable that begins with the first `len` bytes of `text`? With its NUL, all of it must be equal. */
static bool
has_variable(pid_t pid, const char *text, size_t len)
{
	char path[64], *variable = NULL;
	bool found = false;
	size_t cap = 0;
	FILE *file;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
	file = fopen(path, "re");
	if (file == NULL)
		return false;
	while (!found && (n = getdelim(&variable, &cap, '\0', file)) > 0)
		found = (size_t)n >= len && memcmp(variable, text, len) == 0;
	free(variable);
	fclose(file);
	return found;
}

/* Adopted processes are children of the first thread; so is the leader, if that thread runs the action. */
static void
add_adopted(struct leat_processes *p, pid_t leader, const char *marker)
{
	size_t from = p->count, kept = p->count;

	add_children(p, getpid(), getpid());
	for (size_t i = from; i < p->count; i++)
		if (p->pid[i] != leader && has_variable(p->pid[i], marker, strlen(marker) + 1))
			p->pid[kept++] = p->pid[i];
	p->count = kept;
	add_descendants(p, from);
}

void
leat_processes_find(struct leat_processes *p, pid_t leader, const char *marker)
{
	p->count = 0;
	if (leader > 0) {
		p->pid[p->count++] = leader;
		add_descendants(p, 0);
	}
	add_adopted(p, leader, marker);
}

/* ---- what they use ---- */

static unsigned
count_busy(pid_t pid)
{
	unsigned busy = 0, seen = 0;
	struct dirent *entry;
	char path[400], text[1024];
	DIR *folder;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	folder = opendir(path);
	while (folder != NULL && seen < MAX_THREADS_SEEN && (entry = readdir(folder)) != NULL) {
		struct proc_stat stat;

		if (*entry->d_name == '.')
			continue;
		seen++;
		snprintf(path, sizeof(path), "/proc/%d/task/%s/stat", (int)pid, entry->d_name);
		if (read_proc(path, text, sizeof(text)) > 0 && parse_stat(text, &stat))
			busy += stat.state == 'R';
	}
	if (folder != NULL)
		closedir(folder);
	return busy;
}

/* A page that n processes share counts 1/n for each. It takes the kernel a walk over all pages. */
static uint64_t
proportional_bytes(pid_t pid)
{
	char path[64], text[TEXT];
	struct proc_stat stat;
	uint64_t kib;
	size_t len;

	snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", (int)pid);
	len = read_proc(path, text, sizeof(text));
	if (leat_proc_find(text, len, "Pss", &kib))
		return kib * KIB;
	return read_stat(pid, &stat) ? stat.bytes : 0; /* not permitted; or it has just ended, and has none */
}

void
leat_processes_use(const struct leat_processes *p, unsigned cpus, uint64_t limit, struct leat_process_use *use)
{
	struct proc_stat stat;
	unsigned large = 0;

	memset(use, 0, sizeof(*use));
	for (size_t i = 0; i < p->count; i++)
		if (read_stat(p->pid[i], &stat)) {
			use->bytes += stat.bytes;
			use->threads += stat.threads;
			large += stat.bytes >= LARGE_PROCESS;
		}
	for (size_t i = 0; use->threads > cpus && i < p->count; i++)
		use->busy += count_busy(p->pid[i]);
	if (large < 2 || use->bytes <= limit)
		return;
	use->bytes = 0;
	for (size_t i = 0; i < p->count; i++)
		use->bytes += proportional_bytes(p->pid[i]);
}

/* ---- ending them ---- */

static void
signal_all(const struct leat_processes *p, int sig)
{
	for (size_t i = 0; i < p->count; i++)
		if (p->pid[i] > 1 && p->pid[i] != getpid())
			kill(p->pid[i], sig);
}

void
leat_processes_signal(pid_t group, bool led, const char *marker, int sig)
{
	struct leat_processes p;

	leat_processes_find(&p, led ? group : 0, marker);
	kill(-group, sig);
	signal_all(&p, sig);
}

bool
leat_processes_remain(pid_t group, double *cpu_s)
{
	for (;;) {
		struct rusage usage;
		pid_t pid = wait4(-group, NULL, WNOHANG, &usage);

		if (pid <= 0)
			return pid == 0;
		*cpu_s += leat_cpu_seconds(&usage);
	}
}

/* Reaps those that have ended, and forgets them. One whose parent was killed, too, becomes a child of this process. */
static void
reap(struct leat_processes *p)
{
	size_t left = 0;

	for (size_t i = 0; i < p->count; i++)
		if (waitpid(p->pid[i], NULL, WNOHANG) != p->pid[i] && kill(p->pid[i], 0) == 0)
			p->pid[left++] = p->pid[i];
	p->count = left;
}

/* A killed process may take a moment to end, above all one with much memory. It is found by its environment, which it
 * then has no more, so each is reaped before the next look. */
void
leat_processes_end_daemons(const char *marker)
{
	const struct timespec moment = {.tv_nsec = 1000000};
	struct leat_processes p;
	int moments = 1000;

	for (;;) {
		leat_processes_find(&p, 0, marker);
		if (p.count == 0 || moments <= 0)
			return;
		signal_all(&p, SIGKILL);
		for (reap(&p); p.count > 0 && moments-- > 0; reap(&p))
			nanosleep(&moment, NULL);
	}
}

/* ---- what a dead run left ---- */

static size_t
kill_marked(const char *marker)
{
	DIR *folder = opendir("/proc");
	struct dirent *entry;
	size_t killed = 0;

	while (folder != NULL && (entry = readdir(folder)) != NULL) {
		pid_t pid = (pid_t)atoi(entry->d_name), group;

		if (pid <= 1 || pid == getpid() || !has_variable(pid, marker, strlen(marker)))
			continue;
		killed++;
		group = getpgid(pid);
		if (group > 1 && group != getpgrp())
			kill(-group, SIGKILL); /* with those that have another environment */
		kill(pid, SIGKILL);
	}
	if (folder != NULL)
		closedir(folder);
	return killed;
}

void
leat_runner_kill_left(const char *folder)
{
	const struct timespec moment = {.tv_nsec = 2000000};
	char marker[PATH_MAX + 16];

	snprintf(marker, sizeof(marker), "LEAT_STEP=%s/", folder);
	for (int i = 0; i < 1000 && kill_marked(marker) > 0; i++) /* they may fork meanwhile */
		nanosleep(&moment, NULL);
}
