/* sampler.c - see sampler.h */
#include "trace/sampler.h"

#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "trace/figures.h"
#include "trace/proc.h"

/* The CPU's comes last: with its tracks of all threads, there may be more tracks than sinks have room for. */
static const struct leat_sampler *const kinds[] = {
	&leat_sampler_rss,      &leat_sampler_disk, &leat_sampler_network,
	&leat_sampler_throttle, &leat_sampler_gpu,  &leat_sampler_cpu,
};

enum { KINDS = sizeof(kinds) / sizeof(*kinds), ALIGN = 64 };

struct leat_samplers {
	struct leat_mem *mem;
	struct leat_sampling sampling;
	int tasks;        /* /proc/self/task; -1: there is none */
	uint64_t last_ns; /* of the last round; 0: none yet */
	bool on[KINDS];
	void *state[KINDS];
	char root[PATH_MAX];
	_Alignas(8) char text[LEAT_SAMPLER_TEXT];
};

/* ---- files ---- */

static int
open_path(const struct leat_sampling *sampling, int flags, const char *format, va_list ap)
{
	char path[PATH_MAX];
	int root = snprintf(path, sizeof(path), "%s", sampling->root);
	int rest = vsnprintf(path + root, sizeof(path) - (size_t)root, format, ap);

	return rest < 0 || (size_t)(root + rest) >= sizeof(path) ? -1 : open(path, flags | O_CLOEXEC);
}

int
leat_sampling_open(const struct leat_sampling *sampling, int flags, const char *format, ...)
{
	va_list ap;
	int fd;

	va_start(ap, format);
	fd = open_path(sampling, flags, format, ap);
	va_end(ap);
	return fd;
}

/* Files of /proc come in pieces if they are long. */
size_t
leat_sampling_read(struct leat_sampling *sampling, int fd)
{
	size_t len = 0;

	while (fd >= 0 && len < LEAT_SAMPLER_TEXT) {
		ssize_t got = pread(fd, sampling->text + len, LEAT_SAMPLER_TEXT - len, (off_t)len);

		if (got <= 0)
			break;
		len += (size_t)got;
	}
	return len;
}

size_t
leat_sampling_read_path(struct leat_sampling *sampling, const char *format, ...)
{
	va_list ap;
	size_t len;
	int fd;

	va_start(ap, format);
	fd = open_path(sampling, O_RDONLY, format, ap);
	va_end(ap);
	if (fd < 0)
		return 0;
	len = leat_sampling_read(sampling, fd);
	close(fd);
	return len;
}

/* ---- threads and child processes ---- */

/* An entry of a folder as the kernel gives it. opendir would allocate memory each time. */
struct entry {
	uint64_t inode, offset;
	unsigned short size; /* of the entry */
	unsigned char type;
	char name[]; /* ends with a NUL */
};

static void
add_threads(struct leat_sampling *s, size_t len)
{
	for (size_t at = 0; at + offsetof(struct entry, name) < len;) {
		const struct entry *entry = (const void *)(s->text + at);
		const char *name = entry->name;
		int id = leat_proc_next_id(&name, name + strlen(name));

		if (id > 0 && s->threads < LEAT_SAMPLER_THREADS)
			s->thread[s->threads++] = id;
		at += entry->size;
	}
}

static void
find_threads(struct leat_sampling *s, int tasks)
{
	long len;

	s->threads = 0;
	if (tasks < 0 || lseek(tasks, 0, SEEK_SET) < 0)
		return;
	while ((len = syscall(SYS_getdents64, tasks, s->text, LEAT_SAMPLER_TEXT)) > 0)
		add_threads(s, (size_t)len);
}

static void
add_children(struct leat_sampling *s, size_t len)
{
	const char *at = s->text, *end = s->text + len;
	int id;

	while (s->children < LEAT_SAMPLER_CHILDREN && (id = leat_proc_next_id(&at, end)) > 0)
		s->child[s->children++] = id;
}

/* A child belongs to the thread that started it. Of the children, only the main threads' are looked at: one of them may
 * be a server that starts the workers. */
static void
find_children(struct leat_sampling *s)
{
	s->children = 0;
	for (int i = 0; i < s->threads; i++)
		add_children(s, leat_sampling_read_path(s, "/proc/self/task/%d/children", s->thread[i]));
	for (int i = 0; i < s->children; i++) /* grows on the way */
		add_children(s, leat_sampling_read_path(s, "/proc/%d/task/%d/children", s->child[i], s->child[i]));
}

/* ---- all of them ---- */

enum leat_status
leat_samplers_open(struct leat_samplers **out, const char *root, struct leat_mem *mem, struct leat_err *err)
{
	size_t size = sizeof(struct leat_samplers);
	struct leat_samplers *s;
	char *state;

	for (int i = 0; i < KINDS; i++)
		size += (kinds[i]->size + ALIGN - 1) / ALIGN * ALIGN;
	s = leat_alloc(mem, size + ALIGN);
	*out = s;
	if (!s)
		return leat_fail_mem(err, mem, size + ALIGN, "the samplers");
	s->mem = mem;
	snprintf(s->root, sizeof(s->root), "%s", root);
	s->sampling.root = s->root;
	s->sampling.text = s->text;
	s->tasks = leat_sampling_open(&s->sampling, O_RDONLY | O_DIRECTORY, "/proc/self/task");
	pthread_mutex_init(&s->sampling.lock, NULL);
	state = (char *)(s + 1) + -(uintptr_t)(s + 1) % ALIGN;
	for (int i = 0; i < KINDS; i++) {
		s->state[i] = state;
		state += (kinds[i]->size + ALIGN - 1) / ALIGN * ALIGN;
		s->on[i] = kinds[i]->open(s->state[i], &s->sampling);
	}
	return LEAT_OK;
}

static void
put_nowhere(void *arg, const char *track, double value)
{
	(void)arg;
	(void)track;
	(void)value;
}

void
leat_samplers_take(struct leat_samplers *s, uint64_t now_ns, leat_put *put, void *arg)
{
	if (s->last_ns && now_ns <= s->last_ns)
		return;
	s->sampling.seconds = s->last_ns ? (double)(now_ns - s->last_ns) / 1e9 : 0;
	s->sampling.put = s->last_ns ? put : put_nowhere;
	s->sampling.arg = arg;
	s->last_ns = now_ns;
	find_threads(&s->sampling, s->tasks);
	find_children(&s->sampling);
	for (int i = 0; i < KINDS; i++)
		if (s->on[i])
			kinds[i]->take(s->state[i], &s->sampling);
}

bool
leat_samplers_device(struct leat_samplers *s, struct leat_device *device)
{
	uint64_t used;

	pthread_mutex_lock(&s->sampling.lock);
	*device = s->sampling.device;
	used = s->sampling.used;
	pthread_mutex_unlock(&s->sampling.lock);
	if (device->samples == 0)
		return false;
	device->utilization_used /= used ? (double)used : 1;
	device->utilization /= (double)device->samples;
	device->busy = (double)used / (double)device->samples;
	device->memory /= (double)device->samples;
	return true;
}

void
leat_device_add_json(const struct leat_device *device, struct leat_str *out)
{
	const struct {
		const char *name;
		double value;
		int digits;
	} members[] = {
		{"utilization", device->utilization, 1},
		{"utilization_used", device->utilization_used, 1},
		{"busy", device->busy, 3},
		{"memory_mb", device->memory / 1e6, 1},
		{"memory_peak_mb", device->memory_peak / 1e6, 1},
		{"memory_total_mb", device->memory_total / 1e6, 1},
	};

	leat_str_addf(out, "{\"devices\": %u, \"samples\": %llu", device->devices, (unsigned long long)device->samples);
	for (size_t i = 0; i < sizeof(members) / sizeof(*members); i++) {
		leat_str_addf(out, ", \"%s\": ", members[i].name);
		leat_figures_add_number(out, members[i].value, members[i].digits);
	}
	leat_str_add(out, "}");
}

void
leat_samplers_close(struct leat_samplers *s)
{
	if (!s)
		return;
	for (int i = 0; i < KINDS; i++)
		if (kinds[i]->close)
			kinds[i]->close(s->state[i]);
	if (s->tasks >= 0)
		close(s->tasks);
	pthread_mutex_destroy(&s->sampling.lock);
	leat_free(s->mem, s);
}
