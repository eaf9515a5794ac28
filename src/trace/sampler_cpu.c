/* sampler_cpu.c - "cpu NAME %" per thread, "cpu process NAME %" per child process, and "cpu total %" of all
 *
 * 100 % is one CPU. Threads of the same name share a track, which is their sum: a program may start and end many, and
 * an interpreter gives most of its threads one name. The feed's threads are called as their lanes are. The total
 * includes threads that have ended. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "trace/proc.h"
#include "trace/sampler.h"

enum { MOST = LEAT_SAMPLER_THREADS + LEAT_SAMPLER_CHILDREN, TRACKS = 160 };

/* A thread or a child process. */
struct task {
	pid_t id;
	uint64_t start, ticks;
	unsigned round; /* in which it was seen last */
};

struct track {
	char name[LEAT_SAMPLER_TRACK];
	uint64_t ticks; /* of this round */
	bool seen;      /* in this round */
};

struct cpu {
	int fd;         /* of /proc/self/stat */
	double tick;    /* seconds */
	uint64_t ticks; /* of this process */
	unsigned round;
	struct task task[MOST];
	int tasks, next;            /* the next one to look at: they mostly come in the same order */
	struct track track[TRACKS]; /* all names so far */
	int tracks;
};

/* Threads of Leat, by the name of the group that they are started with. */
static const struct {
	const char *group, *lane;
} names[] = {
	{"leat-work-", "worker "},     {"leat-io-", "I/O "},         {"leat-net-", "network "},
	{"leat-disk-", "disk cache "}, {"leat-recor-", "recorder "},
};

static bool
cpu_open(void *state, struct leat_sampling *s)
{
	struct cpu *cpu = state;
	long hz = sysconf(_SC_CLK_TCK);

	cpu->tick = 1.0 / (double)(hz > 0 ? hz : 100);
	cpu->fd = leat_sampling_open(s, O_RDONLY, "/proc/self/stat");
	return cpu->fd >= 0;
}

static struct task *
find_task(struct cpu *cpu, pid_t id)
{
	for (int i = 0; i < cpu->tasks; i++) {
		int at = cpu->next + i < cpu->tasks ? cpu->next + i : cpu->next + i - cpu->tasks;

		if (cpu->task[at].id == id) {
			cpu->next = at + 1 < cpu->tasks ? at + 1 : 0;
			return &cpu->task[at];
		}
	}
	if (cpu->tasks == MOST)
		return NULL;
	cpu->task[cpu->tasks] = (struct task){.id = id};
	return &cpu->task[cpu->tasks++];
}

/* Ticks since the last round; of a task that is new, since it began. A task with another start is another one. */
static uint64_t
ticks_of(struct cpu *cpu, pid_t id, const struct leat_proc_stat *stat)
{
	struct task *task = find_task(cpu, id);
	uint64_t before;

	if (!task)
		return 0;
	before = task->start == stat->start && task->ticks <= stat->ticks ? task->ticks : 0;
	*task = (struct task){id, stat->start, stat->ticks, cpu->round};
	return stat->ticks - before;
}

static void
name_track(char *track, const char *kind, const char *name)
{
	const char *lane = "";

	for (size_t i = 0; i < sizeof(names) / sizeof(*names) && !*kind; i++) {
		size_t len = strlen(names[i].group);

		if (strncmp(name, names[i].group, len) == 0) {
			lane = names[i].lane;
			name += len;
			break;
		}
	}
	snprintf(track, LEAT_SAMPLER_TRACK, "cpu %s%s%s %%", kind, lane, name);
}

/* The track of that name. If there are too many, the last one is for the rest: a program may number its threads. */
static struct track *
find_track(struct cpu *cpu, const char *kind, const char *name)
{
	char track[LEAT_SAMPLER_TRACK];
	int i = 0;

	name_track(track, kind, name);
	while (i < cpu->tracks && strcmp(cpu->track[i].name, track) != 0)
		i++;
	if (i == TRACKS)
		return &cpu->track[TRACKS - 1];
	if (i == cpu->tracks) {
		strcpy(cpu->track[i].name, i < TRACKS - 1 ? track : "cpu others %");
		cpu->tracks++;
	}
	return &cpu->track[i];
}

static void
add_ticks(struct cpu *cpu, const char *kind, const char *name, uint64_t ticks)
{
	struct track *track = find_track(cpu, kind, name);

	track->ticks += ticks;
	track->seen = true;
}

static bool
read_stat(struct leat_sampling *s, size_t len, struct leat_proc_stat *stat)
{
	return leat_proc_parse_stat(s->text, len, stat);
}

static uint64_t
take_children(struct cpu *cpu, struct leat_sampling *s)
{
	struct leat_proc_stat stat;
	uint64_t sum = 0;

	for (int i = 0; i < s->children; i++) {
		if (read_stat(s, leat_sampling_read_path(s, "/proc/%d/stat", s->child[i]), &stat)) {
			uint64_t ticks = ticks_of(cpu, s->child[i], &stat);

			add_ticks(cpu, "process ", stat.name, ticks);
			sum += ticks;
		}
	}
	return sum;
}

static void
forget_ended(struct cpu *cpu)
{
	int kept = 0;

	for (int i = 0; i < cpu->tasks; i++)
		if (cpu->task[i].round == cpu->round)
			cpu->task[kept++] = cpu->task[i];
	cpu->tasks = kept;
	cpu->next = 0;
}

static void
cpu_take(void *state, struct leat_sampling *s)
{
	struct cpu *cpu = state;
	struct leat_proc_stat stat;
	double percent = s->seconds > 0 ? 100 * cpu->tick / s->seconds : 0;
	uint64_t total = 0;

	cpu->round++;
	if (read_stat(s, leat_sampling_read(s, cpu->fd), &stat)) {
		total = stat.ticks > cpu->ticks ? stat.ticks - cpu->ticks : 0;
		cpu->ticks = stat.ticks;
	}
	for (int i = 0; i < s->threads; i++)
		if (read_stat(s, leat_sampling_read_path(s, "/proc/self/task/%d/stat", s->thread[i]), &stat))
			add_ticks(cpu, "", stat.name, ticks_of(cpu, s->thread[i], &stat));
	total += take_children(cpu, s);
	forget_ended(cpu);
	leat_sampling_put(s, "cpu total %", (double)total * percent);
	for (int i = 0; i < cpu->tracks; i++) {
		struct track *track = &cpu->track[i];

		if (track->seen)
			leat_sampling_put(s, track->name, (double)track->ticks * percent);
		track->ticks = 0;
		track->seen = false;
	}
}

static void
cpu_close(void *state)
{
	struct cpu *cpu = state;

	if (cpu->fd >= 0)
		close(cpu->fd);
}

const struct leat_sampler leat_sampler_cpu = {sizeof(struct cpu), cpu_open, cpu_take, cpu_close};
