/* runner_cgroup.c - limit the memory of a command by a cgroup v2, where one can be made
 *
 * A cgroup that holds processes cannot have children with a memory limit, so the new one is made beside that of this
 * process: possible for root, and in the session of a user under systemd. Where it is not, the runner polls. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/threads.h"
#include "step/runner_inside.h"
#include "trace/proc.h"

/* Files of a cgroup are there once its folder is; O_CREAT is for tests, whose cgroups are plain folders. */
static bool
write_number(const char *folder, const char *name, uint64_t number)
{
	char path[PATH_MAX], text[24];
	int fd, len = snprintf(text, sizeof(text), "%llu", (unsigned long long)number);
	bool ok;

	if (snprintf(path, sizeof(path), "%s/%s", folder, name) >= PATH_MAX)
		return false;
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	ok = fd >= 0 && write(fd, text, (size_t)len) == len;
	if (fd >= 0)
		close(fd);
	return ok;
}

static size_t
read_text(const char *folder, const char *name, char *text, size_t cap)
{
	char path[PATH_MAX];
	ssize_t n = -1;
	int fd;

	if (snprintf(path, sizeof(path), "%s/%s", folder, name) >= PATH_MAX)
		return 0;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, text, cap - 1);
		close(fd);
	}
	text[n < 0 ? 0 : n] = '\0';
	return n < 0 ? 0 : (size_t)n;
}

/* Only a cgroup whose parent has the memory controller has this file. */
static bool
has_memory(const char *folder)
{
	char path[PATH_MAX];

	return snprintf(path, sizeof(path), "%s/memory.max", folder) < PATH_MAX && access(path, F_OK) == 0;
}

/* Where new ones are made: the folder of this process's cgroup. */
static bool
find_parent(const char *root, char parent[PATH_MAX])
{
	char *slash;

	if (!leat_own_cgroup(root, parent, PATH_MAX) || !has_memory(parent) || (slash = strrchr(parent, '/')) == NULL)
		return false;
	*slash = '\0';
	return true;
}

void
leat_cgroup_open(struct leat_cgroup *cgroup, const char *root, const char *name, uint64_t bytes)
{
	char parent[PATH_MAX];

	cgroup->folder[0] = '\0';
	if (bytes == 0 || !find_parent(root, parent))
		return;
	if (snprintf(cgroup->folder, PATH_MAX, "%s/leat-%d-%s", parent, (int)getpid(), name) >= PATH_MAX - 16 ||
	    mkdir(cgroup->folder, 0755) != 0) {
		cgroup->folder[0] = '\0';
		return;
	}
	strcat(strcpy(cgroup->procs, cgroup->folder), "/cgroup.procs");
	if (!write_number(cgroup->folder, "memory.max", bytes)) {
		leat_cgroup_close(cgroup);
		return;
	}
	(void)write_number(cgroup->folder, "memory.swap.max", 0);  /* there may be no swap */
	(void)write_number(cgroup->folder, "memory.oom.group", 1); /* all of it dies, not one worker of many */
}

uint64_t
leat_cgroup_peak(const struct leat_cgroup *cgroup)
{
	char text[64];

	if (cgroup->folder[0] == '\0' || read_text(cgroup->folder, "memory.peak", text, sizeof(text)) == 0)
		return 0;
	return strtoull(text, NULL, 10);
}

bool
leat_cgroup_exceeded(const struct leat_cgroup *cgroup)
{
	uint64_t kills = 0;
	char text[512];
	size_t len;

	if (cgroup->folder[0] == '\0')
		return false;
	len = read_text(cgroup->folder, "memory.events", text, sizeof(text));
	return leat_proc_find(text, len, "oom_kill", &kills) && kills > 0;
}

void
leat_cgroup_close(struct leat_cgroup *cgroup)
{
	const struct timespec moment = {.tv_nsec = 1000000};

	if (cgroup->folder[0] == '\0')
		return;
	for (int i = 0; i < 1000 && rmdir(cgroup->folder) != 0 && errno == EBUSY; i++) {
		(void)write_number(cgroup->folder, "cgroup.kill", 1);
		nanosleep(&moment, NULL);
	}
	cgroup->folder[0] = '\0';
}

void
leat_cgroups_close(const char *root, pid_t pid)
{
	char parent[PATH_MAX], prefix[32];
	struct leat_cgroup cgroup;
	struct dirent *entry;
	DIR *folder;

	folder = find_parent(root, parent) ? opendir(parent) : NULL;
	snprintf(prefix, sizeof(prefix), "leat-%d-", (int)pid);
	while (folder != NULL && (entry = readdir(folder)) != NULL)
		if (strncmp(entry->d_name, prefix, strlen(prefix)) == 0 &&
		    snprintf(cgroup.folder, PATH_MAX, "%s/%s", parent, entry->d_name) < PATH_MAX)
			leat_cgroup_close(&cgroup);
	if (folder != NULL)
		closedir(folder);
}
