/* test_limits.c - CPUs and RAM as control groups limit them, read from made-up file systems
 *
 * Each test builds proc and sys in a folder of its own, as a kind of machine or
 * container shows them, and asks what may be used. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/threads.h"
#include "xray/machine.h"

#define MIB ((size_t)1024 * 1024)
#define NO_LIMIT_V1 "9223372036854771712\n"

#define MOUNT_V2 "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
#define MOUNT_CPU_V1 "33 32 0:30 / /sys/fs/cgroup/cpu,cpuacct rw shared:10 - cgroup cgroup rw,cpu,cpuacct\n"
#define MOUNT_MEMORY_V1 "34 32 0:31 / /sys/fs/cgroup/memory rw shared:11 - cgroup cgroup rw,memory\n"
#define MOUNT_OTHERS                                                                                                   \
	"22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw,errors=remount-ro\n"                                             \
	"23 22 0:21 / /sys rw shared:7 - sysfs sysfs rw\n"                                                             \
	"35 32 0:32 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"                                            \
	"nonsense\n\n36 - cgroup2\n37 32 0:1 / /x rw - cgroup2\n"

struct machine {
	char root[64];
};

static void
write_file(const struct machine *machine, const char *path, const char *text)
{
	char full[PATH_MAX];
	FILE *file;

	snprintf(full, sizeof(full), "%s/%s", machine->root, path);
	for (char *slash = full + strlen(machine->root) + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
		*slash = '\0';
		if (mkdir(full, 0700) != 0)
			assert_int_equal(errno, EEXIST);
		*slash = '/';
	}
	file = fopen(full, "w");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static int
set_up(void **state)
{
	static struct machine machine;

	snprintf(machine.root, sizeof(machine.root), "/tmp/leat-test-XXXXXX");
	if (mkdtemp(machine.root) == NULL)
		return -1;
	write_file(&machine, "proc/meminfo",
	           "MemFree:         1000 kB\nMemTotal:       16777216 kB\nMemTotalX: 1 kB\n");
	*state = &machine;
	return 0;
}

static int
remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static int
tear_down(void **state)
{
	return nftw(((struct machine *)*state)->root, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

/* Tests of quotas above this cannot tell a quota from the number of CPUs there are: they check the smaller. */
static unsigned
cpus_here(void)
{
	cpu_set_t set;

	assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
	return (unsigned)CPU_COUNT(&set);
}

static void
assert_cpus(const struct machine *machine, unsigned quota)
{
	unsigned here = cpus_here();

	assert_int_equal(leat_cpus(machine->root), quota < here ? quota : here);
}

static void
assert_ram_mib(const struct machine *machine, size_t mib)
{
	assert_int_equal(leat_ram(machine->root), mib * MIB);
}

static void
without_control_groups_the_machine_counts(void **state)
{
	assert_cpus(*state, UINT_MAX);
	assert_ram_mib(*state, 16384);
	write_file(*state, "proc/self/cgroup", "0::/\n");
	write_file(*state, "proc/self/mountinfo", MOUNT_OTHERS);
	assert_cpus(*state, UINT_MAX);
	assert_ram_mib(*state, 16384);
}

static void
this_machine_can_be_asked(void **state)
{
	(void)state;
	assert_in_range(leat_cpus(""), 1, cpus_here());
	assert_true(leat_ram("") > MIB);
	assert_true(leat_ram("/nowhere") > MIB);
	assert_int_equal(leat_cpus("/nowhere"), cpus_here());
}

static void
version_2_limits_the_own_group(void **state)
{
	write_file(*state, "proc/self/cgroup", "0::/app\n");
	write_file(*state, "proc/self/mountinfo", MOUNT_OTHERS MOUNT_V2);
	write_file(*state, "sys/fs/cgroup/app/cpu.max", "100000 100000\n");
	write_file(*state, "sys/fs/cgroup/app/memory.max", "1073741824\n");
	assert_cpus(*state, 1);
	assert_ram_mib(*state, 1024);
}

static void
version_2_max_is_no_limit(void **state)
{
	write_file(*state, "proc/self/cgroup", "0::/app\n");
	write_file(*state, "proc/self/mountinfo", MOUNT_V2);
	write_file(*state, "sys/fs/cgroup/app/cpu.max", "max 100000\n");
	write_file(*state, "sys/fs/cgroup/app/memory.max", "max\n");
	assert_cpus(*state, UINT_MAX);
	assert_ram_mib(*state, 16384);
}

static void
the_smallest_limit_on_the_way_up_counts(void **state)
{
	write_file(*state, "proc/self/cgroup", "0::/slice/pod/app\n");
	write_file(*state, "proc/self/mountinfo", MOUNT_V2);
	write_file(*state, "sys/fs/cgroup/slice/pod/app/cpu.max", "max 100000\n");
	write_file(*state, "sys/fs/cgroup/slice/pod/app/memory.max", "4294967296\n");
	/* slice/pod sets nothing at all */
	write_file(*state, "sys/fs/cgroup/slice/cpu.max", "100000 100000\n");
	write_file(*state, "sys/fs/cgroup/slice/memory.max", "2147483648\n");
	write_file(*state, "sys/fs/cgroup/slice/other/memory.max", "1048576\n"); /* a sibling's: not ours */
	assert_cpus(*state, 1);
	assert_ram_mib(*state, 2048);
	write_file(*state, "sys/fs/cgroup/memory.max", "1073741824\n"); /* a container's root has limits too */
	assert_ram_mib(*state, 1024);
	write_file(*state, "sys/fs/memory.max", "1048576\n"); /* above the mount: no group */
	assert_ram_mib(*state, 1024);
}

static void
quotas_are_rounded_up_and_never_to_none(void **state)
{
	write_file(*state, "proc/self/cgroup", "0::/\n");
	write_file(*state, "proc/self/mountinfo", MOUNT_V2);
	write_file(*state, "sys/fs/cgroup/cpu.max", "1000 100000\n");
	assert_cpus(*state, 1);
	write_file(*state, "sys/fs/cgroup/cpu.max", "100001 100000\n");
	assert_cpus(*state, 2);
	write_file(*state, "sys/fs/cgroup/cpu.max", "0 100000\n");
	assert_cpus(*state, 1);
}

static void
version_1_has_a_hierarchy_per_controller(void **state)
{
	write_file(*state, "proc/self/cgroup",
	           "11:memory:/user/app\n4:cpuset:/\n3:cpu,cpuacct:/batch/app\n1:name=systemd:/user\n");
	write_file(*state, "proc/self/mountinfo", MOUNT_OTHERS MOUNT_CPU_V1 MOUNT_MEMORY_V1);
	write_file(*state, "sys/fs/cgroup/cpu,cpuacct/batch/app/cpu.cfs_quota_us", "-1\n");
	write_file(*state, "sys/fs/cgroup/cpu,cpuacct/batch/app/cpu.cfs_period_us", "100000\n");
	write_file(*state, "sys/fs/cgroup/cpu,cpuacct/batch/cpu.cfs_quota_us", "50000\n");
	write_file(*state, "sys/fs/cgroup/cpu,cpuacct/batch/cpu.cfs_period_us", "100000\n");
	write_file(*state, "sys/fs/cgroup/memory/user/app/memory.limit_in_bytes", NO_LIMIT_V1);
	write_file(*state, "sys/fs/cgroup/memory/user/memory.limit_in_bytes", "536870912\n");
	write_file(*state, "sys/fs/cgroup/memory/memory.limit_in_bytes", NO_LIMIT_V1);
	assert_cpus(*state, 1);
	assert_ram_mib(*state, 512);
}

static void
version_1_without_limits_is_the_machine(void **state)
{
	write_file(*state, "proc/self/cgroup", "11:memory:/\n3:cpu,cpuacct:/\n");
	write_file(*state, "proc/self/mountinfo", MOUNT_CPU_V1 MOUNT_MEMORY_V1);
	write_file(*state, "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
	write_file(*state, "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
	write_file(*state, "sys/fs/cgroup/memory/memory.limit_in_bytes", NO_LIMIT_V1);
	assert_cpus(*state, UINT_MAX);
	assert_ram_mib(*state, 16384);
}

/* Docker with version 1: proc shows the host's path, and just that group is mounted. */
static void
a_group_mounted_as_root_is_found(void **state)
{
	write_file(*state, "proc/self/cgroup", "11:memory:/docker/abc\n3:cpu,cpuacct:/docker/abc/inner\n");
	write_file(*state, "proc/self/mountinfo",
	           "33 32 0:30 /docker/abc /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
	           "34 32 0:31 /docker/abc /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
	write_file(*state, "sys/fs/cgroup/memory/memory.limit_in_bytes", "268435456\n");
	write_file(*state, "sys/fs/cgroup/cpu/inner/cpu.cfs_quota_us", "100000\n");
	write_file(*state, "sys/fs/cgroup/cpu/inner/cpu.cfs_period_us", "100000\n");
	assert_cpus(*state, 1);
	assert_ram_mib(*state, 256);
}

/* "/docker/ab" is no part of "/docker/abc", and "/.." is outside of what a namespace shows. */
static void
a_group_that_cannot_be_seen_leaves_the_mounted_one(void **state)
{
	write_file(*state, "proc/self/cgroup", "11:memory:/docker/abc\n3:cpu:/../../other\n");
	write_file(*state, "proc/self/mountinfo",
	           "33 32 0:30 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
	           "34 32 0:31 /docker/ab /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
	write_file(*state, "sys/fs/cgroup/memory/memory.limit_in_bytes", "268435456\n");
	write_file(*state, "sys/fs/cgroup/memory/c/memory.limit_in_bytes", "1048576\n");
	write_file(*state, "sys/fs/cgroup/cpu/cpu.cfs_quota_us", "100000\n");
	write_file(*state, "sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
	assert_cpus(*state, 1);
	assert_ram_mib(*state, 256);
}

static void
both_versions_side_by_side_both_limit(void **state)
{
	write_file(*state, "proc/self/cgroup", "4:memory:/job\n1:cpu:/job\n0::/session\n");
	write_file(*state, "proc/self/mountinfo",
	           MOUNT_MEMORY_V1 "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n");
	write_file(*state, "sys/fs/cgroup/memory/job/memory.limit_in_bytes", "1073741824\n");
	write_file(*state, "sys/fs/cgroup/unified/session/cpu.max", "100000 100000\n");
	assert_cpus(*state, 1);
	assert_ram_mib(*state, 1024);
	write_file(*state, "sys/fs/cgroup/unified/session/memory.max", "536870912\n");
	assert_ram_mib(*state, 512);
}

static void
blanks_in_a_mount_point_are_understood(void **state)
{
	write_file(*state, "proc/self/cgroup", "0::/\n");
	write_file(*state, "proc/self/mountinfo", "30 23 0:26 / /sys/fs/c\\040\\134g rw - cgroup2 cgroup2 rw\n");
	write_file(*state, "sys/fs/c \\g/memory.max", "1073741824\n");
	assert_ram_mib(*state, 1024);
}

static void
nonsense_is_no_limit(void **state)
{
	write_file(*state, "proc/self/cgroup", "\nx\n0:\n0::/app\n");
	write_file(*state, "proc/self/mountinfo", MOUNT_OTHERS MOUNT_V2 MOUNT_CPU_V1);
	write_file(*state, "sys/fs/cgroup/app/cpu.max", "100000\n");
	write_file(*state, "sys/fs/cgroup/cpu.max", "100000 0\n");
	write_file(*state, "sys/fs/cgroup/app/memory.max", "");
	write_file(*state, "sys/fs/cgroup/memory.max", "lots\n");
	assert_cpus(*state, UINT_MAX);
	assert_ram_mib(*state, 16384);
}

static void
ram_above_the_machines_is_not_believed(void **state)
{
	write_file(*state, "proc/self/cgroup", "0::/\n");
	write_file(*state, "proc/self/mountinfo", MOUNT_V2);
	write_file(*state, "sys/fs/cgroup/memory.max", "99999999999999999999999\n");
	assert_ram_mib(*state, 16384);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

/* ---- for xray ---- */

static void
a_quota_is_a_fraction_for_xray(void **state)
{
	const struct machine *machine = *state;
	struct leat_machine m;

	write_file(machine, "proc/self/cgroup", "0::/box\n");
	write_file(machine, "proc/self/mountinfo", MOUNT_V2);
	write_file(machine, "sys/fs/cgroup/box/cpu.max", "50000 100000\n");
	assert_int_equal(leat_cpus(machine->root), 1);
	leat_machine(machine->root, &m);
	assert_float_equal(m.cpus, 0.5, 1e-9);
	assert_true(m.quota);
	write_file(machine, "sys/fs/cgroup/box/cpu.max", "150000 100000\n");
	assert_cpus(machine, 2);
}

static void
cpus_that_share_a_core_are_counted_once(void **state)
{
	const struct machine *machine = *state;
	struct leat_machine m;
	cpu_set_t set;

	leat_machine(machine->root, &m);
	assert_int_equal(m.cores, 0); /* unknown */
	assert_false(m.quota);
	assert_int_equal(sched_getaffinity(0, sizeof set, &set), 0);
	for (int i = 0; i < CPU_SETSIZE; i++) {
		char path[128];

		snprintf(path, sizeof path, "sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", i);
		if (CPU_ISSET((size_t)i, &set))
			write_file(machine, path, "0-1023\n");
	}
	leat_machine(machine->root, &m);
	assert_int_equal(m.cores, 1);
	assert_float_equal(m.cpus, cpus_here(), 1e-9);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		IN_FOLDER(without_control_groups_the_machine_counts),
		cmocka_unit_test(this_machine_can_be_asked),
		IN_FOLDER(version_2_limits_the_own_group),
		IN_FOLDER(version_2_max_is_no_limit),
		IN_FOLDER(the_smallest_limit_on_the_way_up_counts),
		IN_FOLDER(quotas_are_rounded_up_and_never_to_none),
		IN_FOLDER(version_1_has_a_hierarchy_per_controller),
		IN_FOLDER(version_1_without_limits_is_the_machine),
		IN_FOLDER(a_group_mounted_as_root_is_found),
		IN_FOLDER(a_group_that_cannot_be_seen_leaves_the_mounted_one),
		IN_FOLDER(both_versions_side_by_side_both_limit),
		IN_FOLDER(blanks_in_a_mount_point_are_understood),
		IN_FOLDER(nonsense_is_no_limit),
		IN_FOLDER(ram_above_the_machines_is_not_believed),
		IN_FOLDER(a_quota_is_a_fraction_for_xray),
		IN_FOLDER(cpus_that_share_a_core_are_counted_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
