/* test_store_planted.c - more planted bottlenecks, in runs that take minutes: two at once, a quota, and none
 *
 * Nothing here depends on how fast the machine is: what is measured first sets the times of the rest. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/threads.h"
#include "support/planted.h"
#include "support/store_mem.h"
#include "support/trace.h"

enum { SECONDS = 6, ATTEMPTS = 5 };

/* ---- two limits at once ---- */

/* The function is made to take as long as the storage does, by what was measured of both. */
static void
two_limits_at_once(void **state)
{
	struct leat_function f;
	unsigned us = 3000;
	struct leat_options o = planted_options(&f, planted_wait, &us);

	(void)state;
	store_mem_set(&(struct store_mem_settings){.latency_ns = 100000000, .shuffle = 1});
	for (int i = 0; i < ATTEMPTS; i++) {
		planted_examine(PLANTED " | shuffle | map(f, random=true) | batch(16)", &o, 0, SECONDS);
		if (planted.verdict.also[0])
			break;
		us = (unsigned)(us * planted.figures.now.rate / planted.figures.storage);
	}
	if (strcmp(planted.verdict.limit, "disk") == 0)
		assert_string_equal(planted.verdict.also, "map");
	else if (strcmp(planted.verdict.limit, "map") == 0)
		assert_string_equal(planted.verdict.also, "disk");
	else
		fail_msg("%s", planted.verdict.sentence);
	assert_non_null(strstr(planted.verdict.sentence, "both are limits"));
	assert_null(planted_helping(LEAT_REMEDY_THREADS));
}

/* ---- a quota of one and a half CPUs ---- */

/* The kernel makes the files of a group: where there are none, there is no group. */
static bool
write_text(const char *folder, const char *name, const char *text)
{
	char path[300];
	FILE *file;
	bool written;

	snprintf(path, sizeof path, "%s/%s", folder, name);
	file = fopen(path, "r+");
	if (!file)
		return false;
	written = fputs(text, file) >= 0;
	return fclose(file) == 0 && written;
}

/* A group with the quota, by the kernel's two versions of groups. False: groups need root, and a file system for them.
 */
static bool
make_group(char *folder, size_t cap)
{
	static const char *const roots[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/cpu"};

	for (size_t i = 0; i < sizeof roots / sizeof *roots; i++) {
		snprintf(folder, cap, "%s/leat-test-%d", roots[i], (int)getpid());
		if (mkdir(folder, 0700) != 0)
			continue;
		if (write_text(folder, "cpu.max", "150000 100000") ||
		    (write_text(folder, "cpu.cfs_period_us", "100000") &&
		     write_text(folder, "cpu.cfs_quota_us", "150000")))
			return true;
		rmdir(folder);
	}
	return false;
}

static const char *
why_not_to_add_threads(void)
{
	for (int i = 0; i < planted.remedies; i++)
		if (planted.remedy[i].kind == LEAT_REMEDY_THREADS)
			return planted.remedy[i].why;
	return "";
}

/* In a process of the group. */
static int
examine_in(const char *folder)
{
	struct leat_function f;
	unsigned us = 2000;
	struct leat_options o = planted_options(&f, planted_compute, &us);
	char pid[32];

	snprintf(pid, sizeof pid, "%d", (int)getpid());
	if (!write_text(folder, "cgroup.procs", pid))
		return 77;
	o.threads = 0;
	planted_examine(PLANTED " | shuffle | map(f, random=true) | batch(16)", &o, 0, SECONDS);
	if (planted.machine.quota && planted.machine.cpus == 1.5 && planted.figures.threads == 2 &&
	    strcmp(planted.verdict.limit, "map") == 0 && !planted_helping(LEAT_REMEDY_THREADS) &&
	    strcmp(why_not_to_add_threads(), "the quota of 1.5 CPUs is used up by 2 threads") == 0)
		return 0;
	fprintf(stderr, "%s; %g CPUs, %u threads: %s\n", planted.verdict.sentence, planted.machine.cpus,
	        planted.figures.threads, why_not_to_add_threads());
	return 1;
}

static void
a_quota_of_one_and_a_half_cpus(void **state)
{
	char folder[200];
	int status;
	pid_t child;

	(void)state;
	if (leat_cpu_limit("") < 1.6 || !make_group(folder, sizeof folder))
		skip();
	child = fork();
	assert_true(child >= 0);
	if (child == 0)
		_exit(examine_in(folder));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(rmdir(folder), 0);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* ---- nothing to gain ---- */

static const struct pipeline {
	const char *rest;
	unsigned us;      /* of the function */
	unsigned latency; /* of the store, in ms */
	unsigned threads;
	double longer; /* what the step takes, in times of the loader */
} balanced[] = {
	{" | shuffle | map(f, random=true) | batch(16)", 4000, 0, 2, 1.0},
	{" | shuffle | map(f, random=true) | batch(16)", 4000, 0, 2, 1.05},
	{" | shuffle | map(f, random=true) | batch(16)", 4000, 0, 2, 3},
	{" | shuffle | map(f, random=true) | batch(16)", 2000, 0, 1, 1.0},
	{" | map(f, random=true) | batch(64)", 1000, 0, 2, 1.02},
	{" | map(f, random=true) | shuffle | batch(8) | prefetch(4)", 4000, 0, 2, 1.02},
	{" | shuffle | batch(16)", 0, 100, 2, 1.02},
	{" | shuffle | map(f, random=true) | batch(16)", 1000, 100, 2, 1.02},
	{" | shuffle | cache(memory) | map(f, random=true) | batch(16)", 3000, 0, 2, 1.02},
	{" | map(f, random=true) | batch(4)", 10000, 20, 4, 1.02},
};

/* The step is made to take as long as the loader does, by what was measured of it. */
static bool
reach_balance(const struct pipeline *p, const char *spec, const struct leat_options *o)
{
	double rate;

	planted_examine(spec, o, 0, SECONDS);
	rate = planted.figures.whole;
	for (int i = 0; i < ATTEMPTS; i++) {
		planted_examine(spec, o, p->longer * planted.alternatives.batch * 1e3 / rate, SECONDS);
		rate = planted.verdict.rates.loader;
		if (rate >= 0.95 * planted.verdict.rates.consumer)
			return true;
	}
	return false;
}

static void
balanced_pipelines_get_no_advice(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof balanced / sizeof *balanced; i++) {
		const struct pipeline *p = &balanced[i];
		struct leat_function f;
		unsigned us = p->us;
		struct leat_options o = planted_options(&f, planted_wait, &us);
		char spec[200];

		o.threads = p->threads;
		store_mem_set(&(struct store_mem_settings){.latency_ns = p->latency * (uint64_t)1000000});
		snprintf(spec, sizeof spec, "%s%s", PLANTED, p->rest);
		if (!reach_balance(p, spec, &o))
			fail_msg("%s: the machine is too busy to tell", spec);
		for (int k = 0; k < planted.remedies; k++)
			if (planted.remedy[k].helps)
				fail_msg("%s: %s (%s)", spec, planted.remedy[k].what, planted.verdict.sentence);
	}
}

/* Each CPU has a thread that computes, and the first op is random. */
static void
busy_cpus_get_no_advice(void **state)
{
	struct leat_function f;
	unsigned us = 2000;
	struct leat_options o = planted_options(&f, planted_compute, &us);

	(void)state;
	o.threads = 0;
	planted_examine(PLANTED " | shuffle | map(f, random=true) | batch(16)", &o, 0, SECONDS);
	planted_expect_limit("map");
	planted_expect_no_advice();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		/* first: before the store has threads, which a new process would not have */
		cmocka_unit_test_setup_teardown(a_quota_of_one_and_a_half_cpus, planted_setup, planted_teardown),
		cmocka_unit_test_setup_teardown(two_limits_at_once, planted_setup, planted_teardown),
		cmocka_unit_test_setup_teardown(balanced_pipelines_get_no_advice, planted_setup, planted_teardown),
		cmocka_unit_test_setup_teardown(busy_cpus_get_no_advice, planted_setup, planted_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
