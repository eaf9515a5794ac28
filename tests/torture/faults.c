/* faults.c - a command whose calls fail at random does its work, or fails with a sentence and harms nothing
 *
 * The same command runs undisturbed in one folder and under the shim in another. If it succeeds there, it must have
 * made the same; also with on_error=skip or replace, because no sample is damaged. If not, readers see what was there
 * before, or all of the new, or an error. Then the next run succeeds and leaves the same files. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "jobs.h"

#define WITHOUT_MEMORY "open+stat+read+write+map+name+sync+thread"

static const char *const calls[] = {
	"open", "stat",   "read",   "write",  "map",          "name",
	"sync", "thread", "memory", "memory", WITHOUT_MEMORY, "open+stat+read+write+map+name+sync+thread+memory",
};

enum { CALL_SETS = sizeof calls / sizeof *calls };

static void
choose_faults(struct torture *t, const char *set, unsigned count, const char *folder, char *out, size_t cap)
{
	unsigned how = torture_below(t, 5), n = 1 + torture_below(t, count + 1);
	int len = snprintf(out, cap, "seed=%u calls=%s folder=%s log=%s ", torture_below(t, 1u << 30), set, folder,
	                   torture_path(t, "faults.log"));

	if (how < 2)
		snprintf(out + len, cap - (size_t)len, "at=%u", n);
	else if (how == 2)
		snprintf(out + len, cap - (size_t)len, "from=%u", n);
	else
		snprintf(out + len, cap - (size_t)len, "odds=%u", 3 + torture_below(t, 6));
}

static void
compare_views(const char *seen, const char *old, const char *new, bool succeeded, const struct torture_command *c)
{
	if (succeeded ? strcmp(seen, new) != 0 : *seen && strcmp(seen, new) != 0 && strcmp(seen, old) != 0)
		fail_msg("%s\n%s, and readers see '%s'; before: '%s', undisturbed: '%s'\n%s", torture_text(c),
		         succeeded ? "succeeds" : "fails", seen, old, new, c->err);
}

void
torture_faults(struct torture *t)
{
	static struct torture_place calm, storm;
	static struct torture_job job;
	const char *set = calls[torture_below(t, CALL_SETS)];
	char settings[2000], old[300], new[300], *names;
	unsigned count;

	torture_draw_job(t, &job);
	/* DuckDB ends the process if malloc fails. */
	if (strstr(set, "memory") && strncmp(t->sources->one[job.source].name, "parquet", 7) == 0)
		set = WITHOUT_MEMORY;
	torture_place_job(t, &job, "calm", &calm);
	count = torture_run_counted(t, &job, &calm, set);
	snprintf(new, sizeof new, "%s", torture_view(t, &calm));
	assert_true(*new);
	torture_place_job(t, &job, "storm", &storm);
	snprintf(old, sizeof old, "%s", job.old_shards ? torture_view(t, &storm) : "");
	choose_faults(t, set, count, storm.folder, settings, sizeof settings);
	storm.command.faults = settings;
	if (torture_one_in(t, 20)) {
		storm.command.faults = NULL;
		storm.command.stdout_to = "/dev/full";
	}
	print_message("%s\n", torture_text(&storm.command));
	torture_run(t, &storm.command);
	if (torture_succeeded(&storm.command) && (storm.command.stdout_to || torture_is_refused(&job)))
		fail_msg("%s\nsucceeds", torture_text(&storm.command));
	compare_views(torture_view(t, &storm), old, new, torture_succeeded(&storm.command), &storm.command);
	if (torture_is_refused(&job)) { /* from now on it is not */
		torture_again(&calm);
		torture_run(t, &calm.command);
		snprintf(new, sizeof new, "%s", torture_view(t, &calm));
	}
	names = torture_names(&calm);
	torture_calm_down(t, &storm, new, names);
	free(names);
}
