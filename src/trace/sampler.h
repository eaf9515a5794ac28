/* sampler.h - what the machine did: CPU, memory, disk, network, throttling and GPUs, as tracks
 *
 * A sampler reads a few small files and puts numbers on named tracks. The recorder's thread takes all of them twice a
 * second. What cannot be read here (no /proc, no quota, no GPU) has no track; nothing fails.
 *
 * There is one file per sampler, sampler_NAME.c, which defines leat_sampler_NAME; sampler.c lists them. After opening,
 * nothing is allocated.
 *
 * Threads: one at a time, except leat_samplers_device, which any thread may call until leat_samplers_close. */
#ifndef LEAT_TRACE_SAMPLER_H
#define LEAT_TRACE_SAMPLER_H

#include <pthread.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

/* Puts a value on a track, at the time of the call to leat_samplers_take. `track` is valid until it returns. */
typedef void leat_put(void *arg, const char *track, double value);

struct leat_samplers;

/* `root` is "", except in tests, where it is a folder with made-up proc and sys. */
enum leat_status leat_samplers_open(struct leat_samplers **samplers, const char *root, struct leat_mem *mem,
                                    struct leat_err *err);
/* The first call puts nothing, and only remembers what is needed to see changes. */
void leat_samplers_take(struct leat_samplers *samplers, uint64_t now_ns, leat_put *put, void *arg);
/* False: there is no GPU, or nothing was sampled yet. */
bool leat_samplers_device(struct leat_samplers *samplers, struct leat_device *device);
void leat_samplers_close(struct leat_samplers *samplers); /* accepts NULL */

/* sampler_sink.c: takes samples in the rounds of the recorder's thread. While the recorder is being opened. */
enum leat_status leat_samplers_attach(struct leat_recorder *recorder, struct leat_err *err);

/* Appends the figures of GPUs as a JSON object, with memory in MB. */
void leat_device_add_json(const struct leat_device *device, struct leat_str *out);

/* ---- inside ---- */

enum {
	LEAT_SAMPLER_TEXT = 64 * 1024, /* the most that is read of a file */
	LEAT_SAMPLER_THREADS = 1024,   /* further threads, and child processes, are not looked at */
	LEAT_SAMPLER_CHILDREN = 128,
	LEAT_SAMPLER_TRACK = 64, /* bytes of a track's name */
};

/* What samplers share. */
struct leat_sampling {
	const char *root;
	char *text;     /* of the file read last: LEAT_SAMPLER_TEXT bytes */
	double seconds; /* since the last round; 0 in the first, in which what is put goes nowhere */
	leat_put *put;
	void *arg;
	pid_t thread[LEAT_SAMPLER_THREADS];
	int threads;
	pid_t child[LEAT_SAMPLER_CHILDREN]; /* processes started by this one, and by these */
	int children;
	pthread_mutex_t lock;
	struct leat_device device; /* under the lock; means are sums over the samples */
	uint64_t used;             /* under the lock: samples with a utilisation of 1 % or more */
};

struct leat_sampler {
	size_t size; /* of its state, which is zeroed */
	/* False: there is nothing to sample here. `close` is called in any case. */
	bool (*open)(void *state, struct leat_sampling *sampling);
	void (*take)(void *state, struct leat_sampling *sampling);
	void (*close)(void *state); /* NULL: nothing to do */
};

extern const struct leat_sampler leat_sampler_cpu, leat_sampler_rss, leat_sampler_disk, leat_sampler_network,
	leat_sampler_throttle, leat_sampler_gpu;

/* Opens ROOT and PATH together; -1: it cannot be. */
int leat_sampling_open(const struct leat_sampling *sampling, int flags, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Reads an open file from its beginning into sampling->text. 0: it is empty or cannot be read. */
size_t leat_sampling_read(struct leat_sampling *sampling, int fd);
/* Opens, reads and closes. */
size_t leat_sampling_read_path(struct leat_sampling *sampling, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static inline void
leat_sampling_put(const struct leat_sampling *sampling, const char *track, double value)
{
	sampling->put(sampling->arg, track, value);
}

/* Change of a counter per second. A counter that went back was reset: no change. */
static inline double
leat_sampling_rate(const struct leat_sampling *sampling, uint64_t before, uint64_t now)
{
	return now > before && sampling->seconds > 0 ? (double)(now - before) / sampling->seconds : 0;
}

/* sampler_gpu.c: which GPUs this process uses, from CUDA_VISIBLE_DEVICES and LOCAL_RANK; each may be NULL. */
struct leat_gpu_choice {
	bool all;     /* of the machine's */
	bool by_rank; /* of these, only the one numbered `rank`, if there is one */
	unsigned rank;
	int count; /* if not `all`: this many */
	struct {
		unsigned index;
		char uuid[64]; /* "": by index */
	} gpu[16];
};
void leat_gpu_choose(struct leat_gpu_choice *choice, const char *visible, const char *local_rank);

#endif
