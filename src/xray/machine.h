/* machine.h - the CPUs of this process: how many, in cores, and whether a cgroup limits them
 *
 * Nothing is cached; any thread may call. */
#ifndef LEAT_XRAY_MACHINE_H
#define LEAT_XRAY_MACHINE_H

#include <stdbool.h>

struct leat_machine {
	double cpus;    /* min(affinity, cgroup quota): a fraction with a quota */
	unsigned cores; /* that the CPUs of the affinity mask share; 0: unknown */
	bool quota;     /* the quota is what limits `cpus` */
};

/* `root` is "", except in tests: see leat_cpus. */
void leat_machine(const char *root, struct leat_machine *machine);

#endif
