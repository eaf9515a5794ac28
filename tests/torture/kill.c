/* kill.c - a command killed at any moment leaves all of the old, all of the new, or an error; the next run mends it
 *
 * The moment is the n-th of the calls that change files, so that a finding can be repeated, or a random time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "jobs.h"

static const char changing[] = "open+write+map+name+sync";

enum { MAX_US = 30000 };

static void
choose_moment(struct torture *t, unsigned count, struct torture_place *place, char *settings, size_t cap)
{
	snprintf(settings, cap, "calls=%s folder=%s log=%s kill=%u", changing, place->folder,
	         torture_path(t, "faults.log"), 1 + torture_below(t, count));
	place->command.faults = settings;
	if (torture_one_in(t, 4)) {
		place->command.faults = NULL;
		place->command.kill_after_us = 1 + torture_below(t, MAX_US);
	}
}

/* Killed again and again: what one leaves is what the next one finds. */
static void
kill_some(struct torture *t, struct torture_place *place, unsigned count, const char *old, const char *new)
{
	unsigned times = 1 + torture_below(t, 3);
	char settings[2000];

	for (unsigned i = 0; i < times; i++) {
		const char *seen;

		choose_moment(t, count, place, settings, sizeof settings);
		print_message("%s\n", torture_text(&place->command));
		torture_run(t, &place->command);
		seen = torture_view(t, place);
		if (*seen && strcmp(seen, old) != 0 && strcmp(seen, new) != 0)
			fail_msg("%s\nreaders see '%s'; before: '%s', undisturbed: '%s'", torture_text(&place->command),
			         seen, old, new);
		torture_again(place);
	}
}

void
torture_kill(struct torture *t)
{
	static struct torture_place calm, storm;
	static struct torture_job job;
	char old[300], new[300], *names;
	unsigned count;

	torture_draw_job(t, &job);
	job.overwrite = true;
	torture_place_job(t, &job, "calm", &calm);
	count = torture_run_counted(t, &job, &calm, changing);
	snprintf(new, sizeof new, "%s", torture_view(t, &calm));
	assert_true(*new);
	torture_place_job(t, &job, "storm", &storm);
	snprintf(old, sizeof old, "%s", job.old_shards ? torture_view(t, &storm) : "");
	kill_some(t, &storm, count + 1, old, new);
	names = torture_names(&calm);
	torture_calm_down(t, &storm, new, names);
	free(names);
}
