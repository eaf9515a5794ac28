/* limits.c - how many CPUs and how much RAM this process may use
 *
 * In a container the machine's numbers are too high. The effective limit is the smallest
 * one set by any cgroup from the process's own up to the root of the mounted hierarchy.
 * cgroup v1 and v2 may be mounted at the same time. A missing or malformed file sets no limit.
 *
 * Nothing is cached; any thread may call. */
#include <limits.h>
#include <math.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/threads.h"

#define NO_LIMIT UINT64_MAX

/* Each function reads the limit set by the cgroup at `folder`. */
struct resource {
	const char *controller; /* its name in cgroup v1 */
	uint64_t (*version1)(const char *folder);
	uint64_t (*version2)(const char *folder);
};

struct mount {
	char *root;    /* the mounted cgroup */
	char *point;   /* mount point */
	char *type;    /* "cgroup", "cgroup2", or any other file system */
	char *options; /* of the file system: "rw,cpu,cpuacct" */
};

/* Reads the first line of folder/name without its newline. */
static bool
read_line(const char *folder, const char *name, char *line, int cap)
{
	char path[PATH_MAX];
	FILE *file;
	bool ok;

	if ((size_t)snprintf(path, sizeof(path), "%s/%s", folder, name) >= sizeof(path))
		return false;
	file = fopen(path, "re");
	if (file == NULL)
		return false;
	ok = fgets(line, cap, file) != NULL;
	fclose(file);
	if (ok)
		line[strcspn(line, "\n")] = '\0';
	return ok;
}

/* Parses a number and moves *text past it. False for "max" and "-1", which mean no limit. */
static bool
take_number(char **text, uint64_t *number)
{
	char *begin = *text + strspn(*text, " ");

	if (*begin < '0' || *begin > '9')
		return false;
	*number = strtoull(begin, text, 10);
	return true;
}

/* In thousandths of a CPU. */
static uint64_t
cpus_of(char *quota_text, char *period_text)
{
	uint64_t quota, period;

	if (!take_number(&quota_text, &quota) || !take_number(&period_text, &period) || period == 0)
		return NO_LIMIT;
	return quota / period > UINT32_MAX ? NO_LIMIT
	                                   : quota / period * 1000 + (quota % period * 1000 + period - 1) / period;
}

static uint64_t
cpus_version1(const char *folder)
{
	char quota[64], period[64];

	if (!read_line(folder, "cpu.cfs_quota_us", quota, sizeof(quota)) ||
	    !read_line(folder, "cpu.cfs_period_us", period, sizeof(period)))
		return NO_LIMIT;
	return cpus_of(quota, period);
}

/* cpu.max is "QUOTA PERIOD". */
static uint64_t
cpus_version2(const char *folder)
{
	char line[64];

	if (!read_line(folder, "cpu.max", line, sizeof(line)))
		return NO_LIMIT;
	return cpus_of(line, line + strcspn(line, " "));
}

static uint64_t
bytes_in(const char *folder, const char *name)
{
	char line[64], *text = line;
	uint64_t bytes;

	return read_line(folder, name, line, sizeof(line)) && take_number(&text, &bytes) ? bytes : NO_LIMIT;
}

static uint64_t
ram_version1(const char *folder)
{
	return bytes_in(folder, "memory.limit_in_bytes");
}

static uint64_t
ram_version2(const char *folder)
{
	return bytes_in(folder, "memory.max");
}

static const struct resource cpu_resource = {"cpu", cpus_version1, cpus_version2};
static const struct resource ram_resource = {"memory", ram_version1, ram_version2};

static bool
list_has(const char *list, const char *word)
{
	size_t len = strlen(word);

	for (;;) {
		size_t item = strcspn(list, ",");

		if (item == len && memcmp(list, word, len) == 0)
			return true;
		if (list[item] == '\0')
			return false;
		list += item + 1;
	}
}

/* mountinfo escapes spaces and backslashes in octal: \040. */
static void
undo_octal(char *text)
{
	char *to = text;

	for (; *text != '\0'; text++) {
		if (text[0] == '\\' && text[1] >= '0' && text[1] <= '3' && text[2] >= '0' && text[2] <= '7' &&
		    text[3] >= '0' && text[3] <= '7') {
			*to++ = (char)((text[1] - '0') << 6 | (text[2] - '0') << 3 | (text[3] - '0'));
			text += 3;
		} else {
			*to++ = *text;
		}
	}
	*to = '\0';
}

/* Splits a line of mountinfo into its fields (proc(5)): id, parent, device, root, point, options, any number
 * of tags, "-", type, source, options. */
static bool
parse_mount(char *line, struct mount *mount)
{
	char *save = NULL, *word = strtok_r(line, " \n", &save);

	memset(mount, 0, sizeof(*mount));
	for (int i = 0; word != NULL && strcmp(word, "-") != 0; i++) {
		if (i == 3)
			mount->root = word;
		else if (i == 4)
			mount->point = word;
		word = strtok_r(NULL, " \n", &save);
	}
	if (word == NULL || mount->point == NULL)
		return false;
	mount->type = strtok_r(NULL, " \n", &save);
	if (strtok_r(NULL, " \n", &save) == NULL)
		return false;
	mount->options = strtok_r(NULL, " \n", &save);
	if (mount->options == NULL)
		return false;
	undo_octal(mount->root);
	undo_octal(mount->point);
	return true;
}

/* The process's cgroup in the v1 hierarchy of `controller`, or in v2 if that is "".
 * A line of proc/self/cgroup is "4:cpu,cpuacct:/path" or, for v2, "0::/path". */
static bool
own_group(const char *root, const char *controller, char *group, size_t cap)
{
	char path[PATH_MAX], *line = NULL;
	size_t line_cap = 0;
	bool found = false;
	FILE *file;

	if ((size_t)snprintf(path, sizeof(path), "%s/proc/self/cgroup", root) >= sizeof(path))
		return false;
	file = fopen(path, "re");
	if (file == NULL)
		return false;
	while (!found && getline(&line, &line_cap, file) > 0) {
		char *list = strchr(line, ':'), *name = list == NULL ? NULL : strchr(list + 1, ':');

		if (name == NULL)
			continue;
		*name++ = '\0';
		name[strcspn(name, "\n")] = '\0';
		found = list_has(list + 1, controller) && (size_t)snprintf(group, cap, "%s", name) < cap;
	}
	free(line);
	fclose(file);
	return found;
}

/* `group` relative to the mounted cgroup: "/a/b" below "/a" is "/b". A group outside the mount, as in
 * a container that shares the host's proc, is not visible: use the mounted one instead. */
static const char *
below(const char *group, const char *mounted)
{
	size_t len = strcmp(mounted, "/") == 0 ? 0 : strlen(mounted);

	if (strncmp(group, mounted, len) != 0 || (group[len] != '/' && group[len] != '\0') ||
	    strncmp(group, "/..", 3) == 0)
		return "";
	return group + len;
}

/* The smallest limit found so far. */
struct least {
	uint64_t limit;
	char folder[PATH_MAX]; /* of the cgroup that sets it; "": none */
};

/* Looks for a smaller limit from the cgroup at `folder` up to its ancestor, the first `top` characters of the path. */
static void
walk_up(char *folder, size_t top, uint64_t (*limit_of)(const char *folder), struct least *least)
{
	for (;;) {
		uint64_t limit = limit_of(folder);
		char *slash = strrchr(folder, '/');

		if (limit < least->limit) {
			least->limit = limit;
			strcpy(least->folder, folder); /* it fits: both have PATH_MAX */
		}
		if (slash == NULL || slash < folder + top)
			return;
		*slash = '\0';
	}
}

/* The folder of the process's cgroup in a hierarchy; `controller` is for v1. */
static bool
folder_in_mount(const char *root, const struct mount *mount, const char *controller, char folder[PATH_MAX])
{
	bool second = strcmp(mount->type, "cgroup2") == 0;
	char group[PATH_MAX];

	if (!second && (strcmp(mount->type, "cgroup") != 0 || !list_has(mount->options, controller)))
		return false;
	return own_group(root, second ? "" : controller, group, sizeof(group)) &&
	       snprintf(folder, PATH_MAX, "%s%s%s", root, mount->point, below(group, mount->root)) < PATH_MAX;
}

static void
limit_of_mount(const char *root, const struct mount *mount, const struct resource *resource, struct least *least)
{
	char folder[PATH_MAX];

	if (!folder_in_mount(root, mount, resource->controller, folder))
		return;
	walk_up(folder, strlen(root) + strlen(mount->point),
	        strcmp(mount->type, "cgroup2") == 0 ? resource->version2 : resource->version1, least);
}

static void
find_least(const char *root, const struct resource *resource, struct least *least)
{
	char path[PATH_MAX], *line = NULL;
	struct mount mount;
	size_t cap = 0;
	FILE *file;

	least->limit = NO_LIMIT;
	least->folder[0] = '\0';
	if ((size_t)snprintf(path, sizeof(path), "%s/proc/self/mountinfo", root) >= sizeof(path))
		return;
	file = fopen(path, "re");
	if (file == NULL)
		return;
	while (getline(&line, &cap, file) > 0)
		if (parse_mount(line, &mount))
			limit_of_mount(root, &mount, resource, least);
	free(line);
	fclose(file);
}

static uint64_t
group_limit(const char *root, const struct resource *resource)
{
	struct least least;

	find_least(root, resource, &least);
	return least.limit;
}

static uint64_t
affinity(void)
{
	unsigned long mask[65536 / CHAR_BIT / sizeof(unsigned long)]; /* cpu_set_t holds only 1024 CPUs */
	long online;

	memset(mask, 0, sizeof(mask));
	if (sched_getaffinity(0, sizeof(mask), (cpu_set_t *)mask) == 0)
		return (uint64_t)CPU_COUNT_S(sizeof(mask), (cpu_set_t *)mask);
	online = sysconf(_SC_NPROCESSORS_ONLN);
	return online < 1 ? 1 : (uint64_t)online;
}

double
leat_cpu_limit(const char *root)
{
	uint64_t cpus = 1000 * affinity(), quota = group_limit(root, &cpu_resource);

	return (double)(quota < cpus ? quota : cpus) / 1000;
}

unsigned
leat_cpus(const char *root)
{
	unsigned cpus = (unsigned)ceil(leat_cpu_limit(root));

	return cpus < 1 ? 1 : cpus;
}

bool
leat_cpu_quota_group(const char *root, char *folder, size_t cap)
{
	struct least least;

	find_least(root, &cpu_resource, &least);
	return least.folder[0] && (size_t)snprintf(folder, cap, "%s", least.folder + strlen(root)) < cap;
}

bool
leat_own_cgroup(const char *root, char *folder, size_t cap)
{
	char path[PATH_MAX], *line = NULL;
	struct mount mount;
	size_t line_cap = 0;
	bool found = false;
	FILE *file;

	if ((size_t)snprintf(path, sizeof(path), "%s/proc/self/mountinfo", root) >= sizeof(path))
		return false;
	file = fopen(path, "re");
	while (file != NULL && !found && getline(&line, &line_cap, file) > 0)
		found = parse_mount(line, &mount) && strcmp(mount.type, "cgroup2") == 0 &&
		        folder_in_mount(root, &mount, "", path) && (size_t)snprintf(folder, cap, "%s", path) < cap;
	free(line);
	if (file != NULL)
		fclose(file);
	return found;
}

/* "MemTotal:   24682416 kB" in proc/meminfo, in bytes; 0 if it cannot be read. */
static uint64_t
machine_ram(const char *root)
{
	char path[PATH_MAX], line[128];
	uint64_t kib = 0;
	FILE *file;

	if ((size_t)snprintf(path, sizeof(path), "%s/proc/meminfo", root) >= sizeof(path))
		return 0;
	file = fopen(path, "re");
	if (file == NULL)
		return 0;
	while (kib == 0 && fgets(line, sizeof(line), file) != NULL) {
		char *text = line + strlen("MemTotal:");

		if (strncmp(line, "MemTotal:", strlen("MemTotal:")) != 0 || !take_number(&text, &kib))
			kib = 0;
	}
	fclose(file);
	return kib > UINT64_MAX / 1024 ? 0 : kib * 1024;
}

size_t
leat_ram(const char *root)
{
	uint64_t ram = machine_ram(root), limit = group_limit(root, &ram_resource);

	if (ram == 0)
		ram = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
	if (limit < ram)
		ram = limit;
	return ram > SIZE_MAX ? SIZE_MAX : (size_t)ram;
}
