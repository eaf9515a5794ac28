/* bytes.c - hostile bytes in data, indexes, caches and checkpoints
 *
 * Nothing crashes, hangs or takes more memory than it may. Samples of files that were not touched stay as they are,
 * and which others are bad does not depend on threads. An index that was tampered with changes nothing: it is not
 * believed, or an error. */
#include <ctype.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "feed/feed.h"
#include "mutate.h"
#include "support/trace.h"

enum {
	MAX_SPEC = 2000,
	MAX_FILES = 2000,
	MAX_SAMPLES = 200,
	PICTURES = 8,
	INDEXED = 3, /* the sources that come first have indexes */
	MAX_TOUCHED = 3,
	MAX_PICTURE = 6000, /* bytes */
	MEMORY = 64 << 20,
	MAX_RSS_KIB = (MEMORY >> 10) + (160 << 10), /* also what the driver had when it forked */
};

enum what { DATA, INDEX, CACHE, CHECKPOINT };

struct victim {
	char folder[300]; /* of its data */
	char spec[MAX_SPEC];
	struct trace expected;
	char *file[MAX_SAMPLES]; /* of each sample in turn; NULL: none */
	char *touched[MAX_TOUCHED];
	size_t touched_count;
	bool planted; /* an index that it has to believe */
};

/* ---- files ---- */

/* nftw hands no argument on. */
static char *found[MAX_FILES];
static size_t found_count;
static bool (*wanted)(const char *path, const struct stat *st);

static int
find_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)ftw;
	if (type == FTW_F && wanted(path, st)) {
		assert_true(found_count < MAX_FILES);
		found[found_count] = strdup(path);
		assert_non_null(found[found_count++]);
	}
	return 0;
}

static int
by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void
find(const char *folder, bool (*want)(const char *path, const struct stat *st))
{
	found_count = 0;
	wanted = want;
	nftw(folder, find_one, 16, FTW_PHYS);
	qsort(found, found_count, sizeof *found, by_name);
}

static bool
ends_in(const char *path, const char *end)
{
	size_t len = strlen(path), tail = strlen(end);

	return len > tail && strcmp(path + len - tail, end) == 0;
}

static bool
is_data(const char *path, const struct stat *st)
{
	(void)st;
	return !ends_in(path, ".leatidx");
}

static bool
is_index(const char *path, const struct stat *st)
{
	(void)st;
	return ends_in(path, ".leatidx");
}

static bool
is_cache(const char *path, const struct stat *st)
{
	(void)st;
	return ends_in(path, ".leatcache");
}

static bool
is_picture(const char *path, const struct stat *st)
{
	return st->st_size <= MAX_PICTURE && (ends_in(path, ".png") || ends_in(path, ".jpg") || ends_in(path, ".webp"));
}

/* ---- running ---- */

static void
check_text(const char *text)
{
	for (; *text; text++)
		if (iscntrl((unsigned char)*text) && *text != '\n')
			fail_msg("a message has the character 0x%02x", (unsigned char)*text);
}

static void
check_memory(void)
{
	struct rusage usage;

	assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
	if (!TEST_SLOW && usage.ru_maxrss > MAX_RSS_KIB)
		fail_msg("%ld MiB resident with memory=%d MiB", usage.ru_maxrss >> 10, MEMORY >> 20);
}

/* Also with `json`, which may be damaged: then a feed that does not resume begins at the start. */
static void
run(struct trace *trace, const char *spec, const struct leat_options *options, const char *json)
{
	struct leat_feed *feed;
	struct leat_err err;

	*trace = (struct trace){0};
	trace->status = leat_open(spec, options, &feed, &trace->err);
	if (trace->status == LEAT_OK) {
		if (json && leat_restore(feed, json, &err) != LEAT_OK) {
			assert_true(err.text[0]);
			check_text(err.text);
		}
		trace_take(trace, feed, 0);
		for (uint64_t i = 0; i < leat_bad_count(feed); i++)
			check_text(leat_bad_at(feed, i)->reason);
		leat_close(feed);
	}
	print_message("%zu samples: %s\n", trace->samples, trace->err.text);
	if (trace->status == LEAT_INTERNAL || !trace->err.text[0])
		fail_msg("%s\n%s", spec, trace->err.text);
	check_text(trace->err.text);
	check_memory();
}

static void
note_files(struct victim *v, const struct leat_feed *feed)
{
	const struct leat_source *source = &feed->pipeline.source;
	char name[LEAT_URI];

	assert_true(source->count <= MAX_SAMPLES);
	for (uint64_t i = 0; i < source->count; i++) {
		struct leat_extent extent = {0};

		source->kind->locate(source, i, &extent);
		v->file[i] = strdup(leat_source_uri(source, extent.file, name));
		assert_non_null(v->file[i]);
	}
}

static void
run_clean(struct victim *v, const struct leat_options *options)
{
	struct leat_feed *feed = trace_open(v->spec, options);

	trace_take(&v->expected, feed, 0);
	if (options->on_error == LEAT_ON_ERROR_FAIL || leat_bad_count(feed) == 0)
		note_files(v, feed);
	leat_close(feed);
}

/* ---- victims ---- */

static void
make_pictures(struct torture *t, struct victim *v)
{
	char from[600], to[600], bytes[MAX_PICTURE];

	find(GOLDEN, is_picture);
	assert_true(found_count > 0);
	snprintf(v->folder, sizeof v->folder, "%s", torture_path(t, "data"));
	mkdir(v->folder, 0777);
	mkdir(torture_path(t, "data/class"), 0777);
	for (unsigned i = 0; i < PICTURES; i++) {
		FILE *in, *out;
		size_t len;

		snprintf(from, sizeof from, "%s", found[torture_below(t, (unsigned)found_count)]);
		snprintf(to, sizeof to, "%s/class/%u%s", v->folder, i, strrchr(from, '.'));
		in = fopen(from, "rb");
		out = fopen(to, "wb");
		assert_true(in && out);
		len = fread(bytes, 1, sizeof bytes, in);
		assert_int_equal(fwrite(bytes, 1, len, out), len);
		fclose(in);
		fclose(out);
	}
	snprintf(v->spec, sizeof v->spec, "folder('%s') | decode(channels=3)%s | batch(3)", v->folder,
	         torture_one_in(t, 2) ? " | resize(9, 7)" : "");
}

static void
copy_source(struct torture *t, bool indexed, struct victim *v)
{
	static struct sources copy;
	size_t i = torture_below(t, indexed ? INDEXED : (unsigned)t->sources->count);
	const char *name = t->sources->one[i].name;
	bool images = strncmp(name, "npy", 3) != 0 && strcmp(name, "tokens") != 0 && strncmp(name, "windows", 7) != 0 &&
	              !torture_one_in(t, 4);

	torture_copy_source(t, i, "data", &copy);
	snprintf(v->folder, sizeof v->folder, "%s", copy.folder);
	snprintf(v->spec, sizeof v->spec, "%s%s%s | batch(4)", copy.one[i].spec,
	         images && strncmp(name, "tfrecord", 8) == 0 ? " | example(image=bytes, label=int64, tokens=int64[])"
	                                                     : "",
	         images ? torture_one_in(t, 2) ? " | decode | resize(6, 5)" : " | decode" : "");
}

static void
insert_cache(struct torture *t, struct victim *v)
{
	char *batch = strstr(v->spec, " | batch("), rest[64];

	snprintf(rest, sizeof rest, "%s", batch);
	snprintf(batch, sizeof v->spec - (size_t)(batch - v->spec), " | cache(dir='%s', size=400KiB)%s",
	         torture_path(t, "cache"), rest);
}

static void
choose_victim(struct torture *t, enum what what, struct victim *v)
{
	*v = (struct victim){0};
	if (what == DATA && torture_one_in(t, 3))
		make_pictures(t, v);
	else
		copy_source(t, what == INDEX, v);
	if (what == CACHE)
		insert_cache(t, v);
}

/* ---- comparing ---- */

static bool
is_touched(const struct victim *v, size_t sample)
{
	for (size_t i = 0; i < v->touched_count; i++)
		if (strcmp(v->file[sample], v->touched[i]) == 0)
			return true;
	return false;
}

/* A list or a description decides about all samples. */
static bool
holds_samples(const struct victim *v, const char *path)
{
	for (size_t i = 0; i < v->expected.samples; i++)
		if (v->file[i] && strcmp(v->file[i], path) == 0)
			return true;
	return false;
}

/* Every sample of another file is there, in the same order. */
static void
check_untouched(const struct victim *v, const struct trace *got)
{
	size_t at = 0;

	for (size_t i = 0; i < v->touched_count; i++)
		if (!v->file[0] || !holds_samples(v, v->touched[i]))
			return;
	for (size_t i = 0; i < v->expected.samples; i++) {
		if (is_touched(v, i))
			continue;
		while (at < got->samples &&
		       memcmp(got->sample[at].hash, v->expected.sample[i].hash, LEAT_SHA256_BYTES) != 0)
			at++;
		if (at++ == got->samples)
			fail_msg("%s\nsample %zu in %s is not delivered or has other bytes, though its file was not "
			         "touched",
			         v->spec, i, v->file[i]);
	}
}

/* The memory limit may end it. */
static void
compare_threads(struct victim *v, struct trace *one, const struct leat_options *options, const char *json)
{
	struct leat_options o = *options;
	struct trace many;

	o.threads = 3;
	run(&many, v->spec, &o, json);
	if (one->status != LEAT_LIMIT && many.status != LEAT_LIMIT) {
		if (one->status != many.status || strcmp(one->err.text, many.err.text) != 0)
			fail_msg("%s\n1 thread: %s\n3 threads: %s", v->spec, one->err.text, many.err.text);
		trace_compare(one, &many, v->spec);
	}
	trace_free(&many);
}

/* ---- a run ---- */

static void
forget_indexes(const struct victim *v)
{
	find(v->folder, is_index);
	for (size_t i = 0; i < found_count; i++)
		assert_int_equal(unlink(found[i]), 0);
}

static void
mutate_files(struct torture *t, struct victim *v)
{
	v->touched_count = found_count ? 1 + torture_below(t, MAX_TOUCHED) : 0;
	for (size_t i = 0; i < v->touched_count; i++) {
		const char *how;

		v->touched[i] = found[torture_below(t, (unsigned)found_count)];
		how = torture_mutate(t, v->touched[i]);
		v->planted |= strcmp(how, TORTURE_PLANTED) == 0;
		print_message("%s: %s\n", v->touched[i], how);
	}
}

/* After two batches. */
static char *
save(const struct victim *v, const struct leat_options *options)
{
	struct leat_feed *feed = trace_open(v->spec, options);
	struct trace trace = {0};
	char *json;

	trace_take(&trace, feed, 2);
	assert_int_equal(leat_save(feed, &json, NULL), LEAT_OK);
	trace_free(&trace);
	leat_close(feed);
	return json;
}

static char *
mutate_text(struct torture *t, char *text)
{
	const char *path = torture_path(t, "text");
	FILE *file = fopen(path, "w+");
	size_t len;

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
	free(text);
	print_message("checkpoint: %s\n", torture_mutate(t, path));
	file = fopen(path, "r");
	assert_non_null(file);
	text = calloc(1, 1 << 20);
	assert_non_null(text);
	len = fread(text, 1, (1 << 20) - 1, file);
	text[len] = '\0';
	fclose(file);
	return text;
}

static void
check_outcome(const struct victim *v, enum what what, enum leat_on_error on_error, const struct trace *got)
{
	if (what == INDEX && got->status == LEAT_DONE && !v->planted)
		trace_compare_samples(&v->expected, got, v->spec);
	if (what == DATA && got->status == LEAT_DONE && on_error != LEAT_ON_ERROR_FAIL)
		check_untouched(v, got);
	/* No sample may end the feed but by its size, if that is within what the options allow. */
	if (what == DATA && got->status == LEAT_LIMIT && on_error != LEAT_ON_ERROR_FAIL &&
	    !(strstr(got->err.text, "memory") && strstr(got->err.text, "max_")))
		fail_msg("%s\nfails though bad samples are skipped or replaced: %s", v->spec, got->err.text);
}

void
torture_bytes(struct torture *t)
{
	static struct victim v;
	struct leat_options options;
	struct trace got;
	enum what what = torture_one_in(t, 2) ? DATA : (enum what)torture_below(t, 4);
	char *json = NULL;

	choose_victim(t, what, &v);
	print_message("%s\n", v.spec);
	trace_options(&options);
	options.memory = MEMORY;
	options.threads = 1;
	options.on_error = LEAT_ON_ERROR_SKIP;
	run_clean(&v, &options);
	json = what == CHECKPOINT ? save(&v, &options) : NULL;
	if (what == DATA && torture_one_in(t, 2))
		forget_indexes(&v);
	find(what == CACHE ? torture_path(t, "cache") : v.folder, what == INDEX   ? is_index
	                                                          : what == CACHE ? is_cache
	                                                                          : is_data);
	if (json)
		json = mutate_text(t, json);
	else
		mutate_files(t, &v);
	options.on_error = (enum leat_on_error)torture_below(t, 3);
	run(&got, v.spec, &options, json);
	check_outcome(&v, what, options.on_error, &got);
	if (what != CACHE)
		compare_threads(&v, &got, &options, json);
	trace_free(&got);
}
