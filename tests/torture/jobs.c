/* jobs.c - see jobs.h */
#include "jobs.h"

#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/specs.h"

enum { MAX_NAMES = 1000, MAX_EPOCH = 100 /* samples */ };

/* ---- drawing ---- */

static size_t
draw_source(struct torture *t, const char *const *names, unsigned count)
{
	const char *name = names[torture_below(t, count)];
	size_t i = 0;

	while (i < t->sources->count && strcmp(t->sources->one[i].name, name) != 0)
		i++;
	assert_true(i < t->sources->count);
	return i;
}

static bool
is_from(const struct torture *t, const struct torture_job *job, const char *start)
{
	return strncmp(t->sources->one[job->source].name, start, strlen(start)) == 0;
}

/* Ops that every sample of the source passes. Fixed shapes, so that any format can hold the result. */
static void
choose_ops(struct torture *t, struct torture_job *job)
{
	bool images = !is_from(t, job, "npy") && !is_from(t, job, "tokens") && !is_from(t, job, "windows") &&
	              !is_from(t, job, "csv");
	const char *example = is_from(t, job, "tfrecord") ? " | example(image=bytes, label=int64)" : "";
	const char *name = t->sources->one[job->source].name;
	const char *shuffle = !torture_one_in(t, 2)                                        ? ""
	                      : strstr(name, "compressed") || strstr(name, "by row group") ? " | shuffle(13)"
	                                                                                   : " | shuffle";

	snprintf(job->ops, sizeof job->ops, "%s%s%s%s%s", shuffle, example, images ? " | decode | resize(6, 5)" : "",
	         is_from(t, job, "list") ? " | drop(name)" : "",
	         is_from(t, job, "parquet") ? " | drop(tokens, x)"
	         : is_from(t, job, "csv")   ? " | drop(name) | concat(image=[x])"
	                                    : "");
}

static void
draw_ops(struct torture *t, struct torture_job *job)
{
	static struct specs specs;
	char *batch;

	specs_init(&specs, t->sources, leat_rng_u64(&t->rng), MAX_EPOCH);
	specs_draw(&specs);
	specs_batch(&specs, 1 + torture_below(t, 9));
	job->source = specs.source;
	snprintf(job->ops, sizeof job->ops, "%s", specs.text + strlen(t->sources->one[specs.source].spec));
	batch = strstr(job->ops, " | batch(");
	assert_non_null(batch);
}

static void
draw_feed(struct torture *t, struct torture_job *job)
{
	if (torture_one_in(t, 2)) {
		draw_ops(t, job);
		return;
	}
	job->source = torture_below(t, (unsigned)t->sources->count);
	choose_ops(t, job);
	job->cached = torture_one_in(t, 3);
	strcat(job->ops, job->cached ? " | cache(dir='%s/cache', size=8MiB) | batch(5)" : " | batch(5)");
}

static void
draw_output(struct torture *t, struct torture_job *job)
{
	static const char *const packed[] = {"folder", "list"}, *const formats[] = {"tfrecord", "tar", "npy"};

	if (job->kind == JOB_PACK) {
		job->source = draw_source(t, packed, 2);
		snprintf(job->format, sizeof job->format, "%s", formats[torture_below(t, 2)]);
	} else {
		job->source = torture_below(t, (unsigned)t->sources->count);
		choose_ops(t, job);
		snprintf(job->format, sizeof job->format, "%s", formats[torture_below(t, 3)]);
	}
	job->shards = 1 + torture_below(t, 6);
	job->old_shards = torture_below(t, 3) ? 1 + torture_below(t, 6) : 0;
	job->overwrite = !torture_one_in(t, 8);
}

void
torture_draw_job(struct torture *t, struct torture_job *job)
{
	static const char *const indexed[] = {"tfrecord", "tfrecord, compressed", "tar"};

	*job = (struct torture_job){.kind = (enum torture_job_kind)torture_below(t, JOB_KINDS)};
	job->threads = torture_one_in(t, 2) ? 1 : 2 + torture_below(t, 2);
	job->seed = torture_below(t, 1000);
	job->on_error = torture_below(t, 3);
	job->epochs = 1 + torture_below(t, 2);
	if (job->kind == JOB_FEED)
		draw_feed(t, job);
	else if (job->kind == JOB_INDEX)
		job->source = draw_source(t, indexed, 3);
	else
		draw_output(t, job);
}

bool
torture_is_refused(const struct torture_job *job)
{
	return job->old_shards && !job->overwrite;
}

/* ---- command lines ---- */

__attribute__((format(printf, 2, 3))) static void
add(struct torture_place *place, const char *format, ...)
{
	va_list args;
	int i = 0;

	while (place->command.arg[i])
		i++;
	assert_true(i < 12);
	va_start(args, format);
	assert_true(vsnprintf(place->arg[i], sizeof place->arg[i], format, args) < (int)sizeof place->arg[i]);
	va_end(args);
	place->command.arg[i] = place->arg[i];
}

static void
add_feed(const struct torture_job *job, const char *source, struct torture_place *place)
{
	static const char *const on_error[] = {"fail", "skip", "replace"};
	char ops[sizeof job->ops + 500];

	if (job->cached)
		snprintf(ops, sizeof ops, "%.*s%s%s", (int)(strstr(job->ops, "%s") - job->ops), job->ops, place->folder,
		         strstr(job->ops, "%s") + 2);
	else
		snprintf(ops, sizeof ops, "%s", job->ops);
	add(place, "feed");
	add(place, "%s%s", source, ops);
	add(place, "--checksum");
	add(place, "--memory=1GiB");
	add(place, "--epochs=%u", job->epochs);
	add(place, "--on-error=%s", on_error[job->on_error]);
}

/* The pattern is what the source has between quotes. */
static void
add_index(const char *source, struct torture_place *place)
{
	const char *pattern = strchr(source, '\'') + 1;

	add(place, "index");
	add(place, "%.*s", (int)strcspn(pattern, "'"), pattern);
	snprintf(place->view, sizeof place->view, "%s | batch(5)", source);
}

static void
set_view(const struct torture_job *job, const char *fields, struct torture_place *place)
{
	if (strcmp(job->format, "tfrecord") == 0)
		snprintf(place->view, sizeof place->view, "tfrecord('%s/out/p-*.tfrecord') | batch(5)", place->folder);
	else if (strcmp(job->format, "tar") == 0)
		snprintf(place->view, sizeof place->view, "tar('%s/out/p-*.tar', fields=[%s]) | batch(5)",
		         place->folder, fields);
	else
		snprintf(place->view, sizeof place->view, "npy(%s) | batch(5)", fields);
}

/* Two fields, so that files of different runs would be noticed. */
static void
fields_of(const struct torture *t, const struct torture_job *job, const struct torture_place *place, char *out,
          size_t cap)
{
	bool tokens = is_from(t, job, "tokens"), windows = is_from(t, job, "windows");
	const char *a = tokens ? "tokens" : windows ? "x" : "image", *b = tokens ? "targets" : "label";

	if (strcmp(job->format, "npy") == 0)
		snprintf(out, cap, "%s='%s/out/p/%s.npy', %s='%s/out/p/%s.npy'", a, place->folder, a, b, place->folder,
		         b);
	else if (tokens)
		snprintf(out, cap, "'tokens=tokens.npy:int32[12]', 'targets=targets.npy:int32[12]'");
	else if (windows)
		snprintf(out, cap, "'x=x.npy:%s', 'label=label.cls:int64'",
		         is_from(t, job, "windows of") ? "float32[5, 2]" : "int16[3, 12]");
	else
		snprintf(out, cap, "'image=%s', 'label=%s:int64'", job->kind == JOB_PACK ? "jpg" : "image.npy",
		         job->kind == JOB_PACK ? "cls" : "label.cls");
}

static void
add_output(const struct torture *t, const struct torture_job *job, const struct sources_one *source,
           struct torture_place *place)
{
	char fields[1000];

	add(place, job->kind == JOB_PACK ? "pack" : "convert");
	if (job->kind == JOB_CONVERT)
		add(place, "%s%s", source->spec, job->ops);
	else
		add(place, "%s%s", source->folder, is_from(t, job, "list") ? "/list.csv" : "");
	add(place, "--output=%s/out/p", place->folder);
	add(place, "--format=%s", job->format);
	if (strcmp(job->format, "npy") != 0)
		add(place, "--shards=%u", job->shards);
	fields_of(t, job, place, fields, sizeof fields);
	set_view(job, fields, place);
}

static void
build_command(const struct torture *t, const struct torture_job *job, const struct sources_one *source,
              struct torture_place *place)
{
	memset(place->command.arg, 0, sizeof place->command.arg);
	place->view[0] = '\0';
	if (job->kind == JOB_FEED)
		add_feed(job, source->spec, place);
	else if (job->kind == JOB_INDEX)
		add_index(source->spec, place);
	else
		add_output(t, job, source, place);
	add(place, "--threads=%u", job->threads);
	if (job->kind != JOB_INDEX)
		add(place, "--seed=%u", job->seed);
}

void
torture_place_job(struct torture *t, const struct torture_job *job, const char *name, struct torture_place *place)
{
	static struct sources copy;
	struct torture_job old = *job;

	memset(place, 0, sizeof *place);
	snprintf(place->folder, sizeof place->folder, "%s", torture_path(t, "%s", name));
	assert_int_equal(mkdir(place->folder, 0777), 0);
	snprintf(place->folder + strlen(place->folder), 8, "/data");
	torture_copy_source(t, job->source, place->folder + strlen(t->folder) + 1, &copy);
	place->folder[strlen(place->folder) - 5] = '\0';
	if (job->old_shards) { /* other samples: another order */
		old.shards = job->old_shards;
		old.seed += 1;
		if (job->kind == JOB_CONVERT)
			strcat(old.ops, " | skip(3)");
		build_command(t, &old, &copy.one[job->source], place);
		torture_run(t, &place->command);
		if (!torture_succeeded(&place->command))
			fail_msg("%s\n%s", torture_text(&place->command), place->command.err);
	}
	build_command(t, job, &copy.one[job->source], place);
	if (job->old_shards && job->overwrite)
		add(place, "--overwrite");
}

void
torture_again(struct torture_place *place)
{
	int i = 0;

	for (; place->command.arg[i]; i++)
		if (strcmp(place->command.arg[i], "--overwrite") == 0)
			return;
	if (strncmp(place->view, "", 1) != 0 && strcmp(place->command.arg[0], "index") != 0)
		add(place, "--overwrite");
}

/* ---- running ---- */

/* How many calls the shim counted. */
static unsigned
load_count(const char *path)
{
	FILE *file = fopen(path, "r");
	unsigned count = 0;

	assert_non_null(file);
	assert_int_equal(fscanf(file, "%u", &count), 1);
	fclose(file);
	return count;
}

unsigned
torture_run_counted(struct torture *t, const struct torture_job *job, struct torture_place *place, const char *calls)
{
	const char *count = torture_path(t, "count");
	char settings[2000];

	snprintf(settings, sizeof settings, "calls=%s count=%s folder=%s", calls, count, place->folder);
	place->command.faults = settings;
	torture_run(t, &place->command);
	place->command.faults = NULL;
	if (torture_succeeded(&place->command) == torture_is_refused(job))
		fail_msg("%s\n%s", torture_text(&place->command), place->command.err);
	return load_count(count);
}

/* ---- results ---- */

const char *
torture_view(struct torture *t, const struct torture_place *place)
{
	static struct torture_command command;
	static char seen[4][300];
	static unsigned turn;
	char *out = seen[turn++ % 4];

	if (!*place->view) {
		snprintf(out, sizeof *seen, "%s",
		         torture_succeeded(&place->command) ? torture_line(&place->command, "checksum ") : "");
		return out;
	}
	command = (struct torture_command){.arg = {"feed", place->view, "--checksum", "--threads=1"}};
	torture_run(t, &command);
	snprintf(out, sizeof *seen, "%s", torture_succeeded(&command) ? torture_line(&command, "checksum ") : "");
	return out;
}

/* nftw hands no argument on. */
static char *names[MAX_NAMES];
static size_t name_count, name_from;

static int
note(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	const char *dot = strrchr(path, '.');

	(void)st, (void)type;
	/* Whether there is an index depends on the age of the data, too. */
	if (ftw->level == 0 || (dot && strcmp(dot, ".leatidx") == 0))
		return 0;
	assert_true(name_count < MAX_NAMES);
	/* The name of a cache depends on times. */
	names[name_count] = strdup(dot && strcmp(dot, ".leatcache") == 0 ? "cache" : path + name_from);
	assert_non_null(names[name_count++]);
	return 0;
}

static int
by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

char *
torture_names(const struct torture_place *place)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	assert_non_null(out);
	name_count = 0;
	name_from = strlen(place->folder) + 1;
	assert_int_equal(nftw(place->folder, note, 16, FTW_PHYS), 0);
	qsort(names, name_count, sizeof *names, by_name);
	for (size_t i = 0; i < name_count; i++) {
		fprintf(out, "%s\n", names[i]);
		free(names[i]);
	}
	fclose(out);
	return text;
}

/* Appends the names of one list that are not in the other. */
static void
add_surplus(char *text, size_t cap, const char *what, const char *of, const char *other)
{
	char line[700];

	for (; *of; of += strcspn(of, "\n") + 1) {
		snprintf(line, sizeof line, "%.*s\n", (int)strcspn(of, "\n"), of);
		if (!strstr(other, line))
			snprintf(text + strlen(text), cap - strlen(text), "%s: %s", what, line);
	}
}

static void
compare_names(const struct torture_place *place, const char *expected)
{
	char *left = torture_names(place), text[2000] = "";

	add_surplus(text, sizeof text, "left over", left, expected);
	add_surplus(text, sizeof text, "missing", expected, left);
	free(left);
	if (*text)
		fail_msg("other files after the next run: %s\n%s", torture_text(&place->command), text);
}

void
torture_calm_down(struct torture *t, struct torture_place *place, const char *expected, const char *calm_names)
{
	const char *seen;

	place->command.faults = NULL;
	place->command.stdout_to = NULL;
	place->command.kill_after_us = 0;
	torture_again(place);
	torture_run(t, &place->command);
	if (!torture_succeeded(&place->command))
		fail_msg("the next run fails: %s\n%s", torture_text(&place->command), place->command.err);
	seen = torture_view(t, place);
	if (strcmp(seen, expected) != 0)
		fail_msg("the next run gives '%s' instead of '%s': %s", seen, expected, torture_text(&place->command));
	compare_names(place, calm_names);
}
