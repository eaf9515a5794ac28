/* runner_inside.h - the parts of the runner, for runner*.c and their tests
 *
 * All of it belongs to the thread that runs the action. */
#ifndef LEAT_STEP_RUNNER_INSIDE_H
#define LEAT_STEP_RUNNER_INSIDE_H

#include <sys/resource.h>
#include <sys/types.h>

#include "step/sandbox.h"

/* ---- starting a process (runner_spawn.c) ---- */

struct leat_spawn {
	const char *command; /* for /bin/sh -c */
	char *const *environment;
	const char *folder; /* where it runs */
	int output;         /* its standard output and error; standard input is /dev/null */
	const char *cgroup; /* path of cgroup.procs to enter; NULL: none */
};

struct leat_process_id {
	pid_t pid; /* also of the process group */
	int pidfd; /* readable when the leader has ended */
};

/* *failed: what the new process could not do, as errno, with `what` it was; 0: the command runs. LEAT_IO: there is no
 * process. */
enum leat_status leat_spawn(const struct leat_spawn *spawn, struct leat_process_id *process, int *failed,
                            const char **what, struct leat_err *err);

/* ---- what it prints (runner_log.c) ---- */

/* The first half of the limit is kept, and the last half; what comes between is counted. */
struct leat_output {
	struct leat_mem *mem;
	char path[PATH_MAX];         /* file, made when something is printed */
	int read_fd, write_fd, file; /* of the pipe, and of `path`; -1: closed */
	uint64_t limit, bytes;       /* most to keep, all that came */
	uint64_t written;            /* in the file, before the ring */
	char *ring;                  /* the last bytes, once the file is half full; written at the end */
	size_t ring_size, ring_at;
	bool ring_full;
	char tail[1024]; /* the last bytes, for messages */
	size_t tail_len;
	int failed; /* errno of the first write that failed: no space */
};

enum { LEAT_OUTPUT_LIMIT = 64 << 20 };

enum leat_status leat_output_open(struct leat_output *output, struct leat_mem *mem, const char *folder, uint64_t limit,
                                  struct leat_err *err);
/* Reads what is there, once. False: nothing was, or all writers have closed it. */
bool leat_output_read(struct leat_output *output);
/* Ends the file, and puts it into the store. */
enum leat_status leat_output_keep(struct leat_output *output, struct leat_cas *cas, struct leat_digest *log,
                                  struct leat_err *err);
void leat_output_close(struct leat_output *output);
/* The last line with something in it; carriage returns end a line, too. Escape sequences are left out. */
void leat_last_line(const char *text, size_t len, char *line, size_t cap);
/* The last lines of what was printed, at most `count`, separated by " / ". */
void leat_output_last(const struct leat_output *output, unsigned count, char *lines, size_t cap);

/* ---- processes (runner_processes.c) ---- */

enum { LEAT_MAX_PROCESSES = 2048 };

/* The leader's descendants, and daemons that were adopted by this process; the leader itself first, while it is
 * there. */
struct leat_processes {
	pid_t pid[LEAT_MAX_PROCESSES];
	size_t count;
};

struct leat_process_use {
	uint64_t bytes;         /* resident */
	unsigned threads, busy; /* in all; running or ready to run */
};

static inline double
leat_cpu_seconds(const struct rusage *usage)
{
	return (double)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) +
	       1e-6 * (double)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec);
}

/* `marker`: "LEAT_STEP=PATH" as in the environment of all processes of the action. `leader` 0: it has been reaped. */
void leat_processes_find(struct leat_processes *processes, pid_t leader, const char *marker);
/* If there are more than `cpus` threads, counts those that are busy. If there are more than `limit` bytes in several
 * large processes, counts pages that they share once. */
void leat_processes_use(const struct leat_processes *processes, unsigned cpus, uint64_t limit,
                        struct leat_process_use *use);
/* Sends a signal to the group, and to those that left it. `led`: its leader has not been reaped. */
void leat_processes_signal(pid_t group, bool led, const char *marker, int sig);
/* Reaps what this process adopted of the group, and adds its CPU time. True: some are still there. */
bool leat_processes_remain(pid_t group, double *cpu_s);
/* Daemons that left the group are ended, too. */
void leat_processes_end_daemons(const char *marker);

/* ---- memory limit (runner_cgroup.c) ---- */

/* A cgroup v2 beside that of this process; `folder` is "" if none can be made. */
struct leat_cgroup {
	char folder[PATH_MAX], procs[PATH_MAX];
};

/* `root`: "", except in tests. */
void leat_cgroup_open(struct leat_cgroup *cgroup, const char *root, const char *name, uint64_t bytes);
/* The most that was used, and whether the kernel killed for it; 0 and false if there is no cgroup. */
uint64_t leat_cgroup_peak(const struct leat_cgroup *cgroup);
bool leat_cgroup_exceeded(const struct leat_cgroup *cgroup);
void leat_cgroup_close(struct leat_cgroup *cgroup); /* kills what is left in it */
/* Closes those that the process `pid` left, which was in the same cgroup as this one, and was killed. */
void leat_cgroups_close(const char *root, pid_t pid);

/* ---- waiting (runner_watch.c) ---- */

struct leat_watch {
	/* in */
	struct leat_process_id process;
	uint64_t begin; /* leat_now before it was started */
	struct leat_output *output;
	struct leat_cgroup *cgroup;
	struct leat_running *running;
	const char *marker, *progress; /* LEAT_STEP=..., and the path of progress */
	const atomic_bool *stop;
	double timeout_s, grace_s;
	uint64_t memory_bytes;
	unsigned cpus;
	/* out */
	enum leat_outcome outcome; /* LEAT_RAN: it ended by itself; LEAT_TIMED_OUT, LEAT_TOO_LARGE, LEAT_STOPPED */
	int status;                /* as of wait4 */
	double seconds, cpu_s;
	uint64_t peak_bytes;       /* 0: not known */
	unsigned samples, crowded; /* how often it was looked at; with clearly more busy threads than cpus */
	unsigned most_busy;
};

/* Until no process of the action is left, except zombies. */
void leat_watch(struct leat_watch *watch);

#endif
