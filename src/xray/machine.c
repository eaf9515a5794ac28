/* machine.c - see machine.h */
#include "xray/machine.h"

#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/threads.h"

#define CPUS 1024u

/* The first CPU of the core that this CPU is on; -1: unknown. A list is "0,64" or "0-1". */
static int
core_of(const char *root, unsigned cpu)
{
	char path[PATH_MAX], line[64];
	FILE *file;
	int first = -1;

	if ((size_t)snprintf(path, sizeof path, "%s/sys/devices/system/cpu/cpu%u/topology/thread_siblings_list", root,
	                     cpu) >= sizeof path)
		return -1;
	file = fopen(path, "re");
	if (!file)
		return -1;
	if (fgets(line, sizeof line, file) && line[0] >= '0' && line[0] <= '9')
		first = (int)strtol(line, NULL, 10);
	fclose(file);
	return first >= 0 && first < (int)CPUS ? first : -1;
}

static unsigned
count_cores(const char *root, const cpu_set_t *set)
{
	bool seen[CPUS] = {0};
	unsigned cores = 0;

	for (unsigned cpu = 0; cpu < CPUS; cpu++) {
		int core = CPU_ISSET(cpu, set) ? core_of(root, cpu) : -1;

		if (CPU_ISSET(cpu, set) && core < 0)
			return 0;
		if (core >= 0 && !seen[core]) {
			seen[core] = true;
			cores++;
		}
	}
	return cores;
}

void
leat_machine(const char *root, struct leat_machine *machine)
{
	cpu_set_t set;

	*machine = (struct leat_machine){.cpus = leat_cpu_limit(root)};
	CPU_ZERO(&set);
	if (sched_getaffinity(0, sizeof set, &set) == 0) {
		machine->cores = count_cores(root, &set);
		machine->quota = machine->cpus < CPU_COUNT(&set);
	}
}
