/* jobs.h - random commands, each in a folder of its own, and what readers see of their results */
#ifndef TORTURE_JOBS_H
#define TORTURE_JOBS_H

#include "torture.h"

enum torture_job_kind { JOB_FEED, JOB_INDEX, JOB_PACK, JOB_CONVERT, JOB_KINDS };

struct torture_job {
	enum torture_job_kind kind;
	size_t source;   /* of t->sources */
	char ops[5000];  /* after the source */
	char format[16]; /* of the output */
	unsigned shards, threads, seed, on_error, epochs;
	unsigned old_shards; /* of an output that is there already; 0: none */
	bool overwrite;      /* that output */
	bool cached;         /* in a folder */
};

/* The job in one folder. */
struct torture_place {
	char folder[400];
	struct torture_command command;
	char arg[12][6000]; /* of the command */
	char view[2000];    /* spec that reads the output; "": the job prints what it reads */
};

void torture_draw_job(struct torture *t, struct torture_job *job);
/* Copies the data into a new folder and makes the old output. */
void torture_place_job(struct torture *t, const struct torture_job *job, const char *name, struct torture_place *place);
/* The same command again, replacing its own output. */
void torture_again(struct torture_place *place);
bool torture_is_refused(const struct torture_job *job); /* because there is an output */

/* Runs it undisturbed; how many of these calls it makes. */
unsigned torture_run_counted(struct torture *t, const struct torture_job *job, struct torture_place *place,
                             const char *calls);

/* What the job made or printed, as a checksum; "": an error. Valid for the next three calls. */
const char *torture_view(struct torture *t, const struct torture_place *place);
/* All names in the folder, sorted; to be freed. */
char *torture_names(const struct torture_place *place);

/* Once more, undisturbed: the result and the files have to be those of `calm`. */
void torture_calm_down(struct torture *t, struct torture_place *place, const char *expected, const char *names);

#endif
