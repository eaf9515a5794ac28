/* cache.c - `leat cache`: look at, clean and empty a disk cache of remote data */
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/size.h"
#include "cli/command.h"
#include "cli/print.h"
#include "store/disk_table.h"

struct cache {
	int64_t size;
	float days;
};

static const struct leat_opt options[] = {
	LEAT_SIZE(struct cache, size, "0", 0, 1e18, "gc: drop data until this much is left (0: no limit)"),
	LEAT_FLOAT(struct cache, days, "0", 0, 36500, "gc: drop data that was not used for this long (0: keep it)"),
	LEAT_OPT_END,
};

/* ---- ls ---- */

static void
add_age(struct leat_str *cell, uint32_t used_at)
{
	int64_t seconds = (int64_t)time(NULL) - used_at;

	if (seconds < 120)
		leat_str_add(cell, "now");
	else if (seconds < 2 * 3600)
		leat_str_addf(cell, "%lld min ago", (long long)seconds / 60);
	else if (seconds < 48 * 3600)
		leat_str_addf(cell, "%lld h ago", (long long)seconds / 3600);
	else
		leat_str_addf(cell, "%lld days ago", (long long)seconds / 86400);
}

static void
add_owner(struct leat_str *cell, uid_t owner)
{
	const struct passwd *user = getpwuid(owner);

	if (user)
		leat_str_add_shown(cell, user->pw_name);
	else
		leat_str_addf(cell, "%u", owner);
}

static enum leat_status
list(struct leat_disk_table *table, const struct leat_invocation *run, struct leat_err *err)
{
	struct leat_disk_usage usage;
	struct leat_table text;
	char size[32];

	leat_disk_usage(table, &usage);
	printf("%s in %llu pieces, used by %u process%s\n", leat_format_size(size, sizeof(size), usage.bytes),
	       (unsigned long long)usage.extents, usage.users, usage.users == 1 ? "" : "es");
	leat_table_init(&text, run->mem, 4);
	text.right[0] = true;
	for (unsigned i = 0; i < LEAT_DISK_SEGMENTS; i++) {
		struct leat_disk_segment_info info;

		if (!leat_disk_segment_info(table, i, &info))
			continue;
		leat_str_add(leat_table_cell(&text), leat_format_size(size, sizeof(size), info.bytes));
		add_age(leat_table_cell(&text), info.used_at);
		add_owner(leat_table_cell(&text), info.owner);
		leat_str_add(leat_table_cell(&text), info.in_use ? "in use" : "");
	}
	return leat_table_print(&text, stdout, err);
}

/* ---- gc and rm ---- */

static enum leat_status
fail_lock(const struct leat_invocation *run, struct leat_err *err)
{
	return leat_fail(err, LEAT_IO, "cannot lock the disk cache in '%s'; try again", run->operand[1]);
}

static void
print_freed(uint64_t before, uint64_t after)
{
	char freed[32], left[32];

	printf("freed %s, %s left\n", leat_format_size(freed, sizeof(freed), before > after ? before - after : 0),
	       leat_format_size(left, sizeof(left), after));
}

static enum leat_status
collect(struct leat_disk_table *table, const struct leat_invocation *run, struct leat_err *err)
{
	const struct cache *cache = run->params;
	uint64_t before = leat_disk_used(table);

	if (!leat_disk_lock(table))
		return fail_lock(run, err);
	leat_disk_repair(table);
	while (cache->days > 0 && leat_disk_evict(table, (uint32_t)(cache->days * 86400)))
		continue;
	while (cache->size > 0 && leat_disk_used(table) > (uint64_t)cache->size && leat_disk_evict(table, 0))
		continue;
	leat_disk_unlock(table);
	print_freed(before, leat_disk_used(table));
	return LEAT_OK;
}

static enum leat_status
empty(struct leat_disk_table *table, const struct leat_invocation *run, struct leat_err *err)
{
	uint64_t before = leat_disk_used(table);

	if (!leat_disk_lock(table))
		return fail_lock(run, err);
	leat_disk_clear(table);
	leat_disk_unlock(table);
	print_freed(before, leat_disk_used(table));
	return LEAT_OK;
}

/* ---- the command ---- */

static const struct action {
	const char *name;
	enum leat_status (*run)(struct leat_disk_table *table, const struct leat_invocation *run, struct leat_err *err);
} actions[] = {{"ls", list}, {"gc", collect}, {"rm", empty}};

/* Nothing is read from the cache, so it does not matter whom it belongs to. */
static enum leat_status
open_folder(struct leat_disk_table *table, const char *folder, struct leat_err *err)
{
	struct leat_disk_options o = {.folder = folder, .size = LEAT_DISK_MIN_SIZE, .existing = true};
	struct stat st;

	o.shared = stat(folder, &st) == 0 && (st.st_uid != geteuid() || (st.st_mode & S_IWGRP));
	return leat_disk_table_open(table, &o, err);
}

static enum leat_status
run_cache(const struct leat_invocation *run, struct leat_err *err)
{
	const struct action *action = NULL;
	struct leat_disk_table table;
	enum leat_status status;

	for (size_t i = 0; i < sizeof(actions) / sizeof(*actions); i++)
		if (strcmp(run->operand[0], actions[i].name) == 0)
			action = &actions[i];
	if (!action)
		return leat_fail(err, LEAT_INVALID, "cannot '%s' a cache; use ls, gc or rm", run->operand[0]);
	status = open_folder(&table, run->operand[1], err);
	if (status == LEAT_OK)
		status = action->run(&table, run, err);
	leat_disk_table_close(&table);
	return status;
}

const struct leat_command leat_command_cache = {
	.name = "cache",
	.summary = "List, clean or empty a disk cache of remote data",
	.operands = "ls|gc|rm FOLDER",
	.min_operands = 2,
	.max_operands = 2,
	.help = "Works on a folder that storage option disk_cache names (docs/REMOTE.md).\n"
		"ls shows the size of the cache and of its segments, and when each was last used.\n"
		"gc frees what killed processes left, and with --size or --days the data that was\n"
		"unused longest. rm empties the cache. All are safe while feeds use the folder: gc\n"
		"keeps what they have used in their current or previous epoch; after rm they fetch\n"
		"again.",
	.example = "leat cache ls ~/cache\n"
		   "leat cache gc ~/cache --size 50GB --days 30\n"
		   "leat cache rm ~/cache",
	.opts = options,
	.params_size = sizeof(struct cache),
	.run = run_cache,
};
