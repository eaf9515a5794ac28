/* test_feed_keep.c - a cache changes nothing but the speed: cold or warm, in memory or on disk, whoever runs it how
 *
 * Pipelines are drawn at random and get a cache at a random place. What has to come out is what comes out
 * of the same pipeline whose cache is too small to keep anything; and, where no random op stands before
 * the cache, of the pipeline without one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "feed/pipeline.h"
#include "support/data.h"
#include "support/specs.h"
#include "support/trace.h"
#include "support/temp.h"

enum { SPECS = TEST_SLOW ? 12 : 80, EPOCHS = 3, MAX_SPEC = 9000 };

static const size_t counts[] = {13, 0, 8, 19};
static struct data data;
static struct sources sources;
static struct temp temp;

static int
setup(void **state)
{
	(void)state;
	data_make(&data, sizeof counts / sizeof *counts, counts, NULL);
	sources_make(&sources);
	temp_make(&temp);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	data_remove(&data);
	sources_remove(&sources);
	temp_remove(&temp);
	return 0;
}

/* ---- specs with a cache ---- */

/* A drawn spec, cut in two where the cache goes. */
struct cut {
	char before[4096], behind[4096];
	bool frozen; /* random ops come before it */
};

static bool
draws_at_random(const char *spec)
{
	struct leat_pipeline *p = calloc(1, sizeof *p);
	struct leat_mem mem;
	struct leat_err err;
	bool random = false;

	assert_non_null(p);
	leat_mem_init(&mem, SIZE_MAX);
	assert_int_equal(leat_pipeline_open(p, spec, LEAT_BATCH_OPTIONAL, 1, 1, NULL, NULL, NULL, &mem, NULL, &err),
	                 LEAT_OK);
	for (int i = 0; i < p->ops; i++)
		random |= p->op[i].op->random;
	leat_pipeline_close(p);
	free(p);
	return random;
}

/* False: it has a cache already. */
static bool
cut(struct specs *specs, struct cut *c)
{
	const char *batch = strstr(specs->text, " | batch("), *at = strstr(specs->text, " | ");
	const char *places[64];
	unsigned count = 0;

	if (strstr(specs->text, " | cache("))
		return false;
	for (; at && at <= batch && count < 64; at = strstr(at + 1, " | "))
		places[count++] = at;
	assert_true(count > 0);
	at = places[specs_below(specs, count)];
	snprintf(c->before, sizeof c->before, "%.*s", (int)(at - specs->text), specs->text);
	snprintf(c->behind, sizeof c->behind, "%s", at);
	c->frozen = draws_at_random(c->before);
	return true;
}

static void
with_cache(const struct cut *c, const char *cache, char spec[MAX_SPEC])
{
	snprintf(spec, MAX_SPEC, "%s%s%s%s", c->before, *cache ? " | " : "", cache, c->behind);
}

/* ---- ways to run one ---- */

static void
run_ranks(struct trace *joined, const char *spec, const struct leat_options *options, int world)
{
	struct leat_options o = *options;

	*joined = (struct trace){0};
	for (o.rank = 0, o.world = world; o.rank < world; o.rank++) {
		struct trace trace;

		trace_run(&trace, spec, &o);
		trace_join(joined, &trace);
		trace_free(&trace);
	}
}

/* Stops after some batches, and goes on in another feed that was opened with another seed. */
static void
run_resumed(struct trace *trace, const char *spec, const struct leat_options *options, size_t batches)
{
	struct leat_feed *feed = trace_open(spec, options);
	struct leat_options o = *options;
	struct leat_err err;
	char *json;

	*trace = (struct trace){0};
	if (batches > 0)
		trace_take(trace, feed, batches);
	assert_int_equal(leat_save(feed, &json, &err), LEAT_OK);
	leat_close(feed);
	o.seed ^= 1;
	o.threads = 3;
	feed = trace_open(spec, &o);
	if (leat_restore(feed, json, &err) != LEAT_OK)
		fail_msg("%s\n%s", spec, err.text);
	free(json);
	trace_take(trace, feed, 0);
	leat_close(feed);
}

static void
run_some_way(struct specs *specs, struct trace *trace, const char *spec, const struct leat_options *options,
             size_t batches, char *way, size_t cap)
{
	static const unsigned threads[] = {1, 2, 7};
	struct leat_options o = *options;
	unsigned how = specs_below(specs, 4);

	o.threads = threads[specs_below(specs, 3)];
	snprintf(way, cap, "%s\n(threads %u, %s)", spec, o.threads,
	         how == 0   ? "two ranks"
	         : how == 1 ? "resumed"
	                    : "at once");
	if (how == 0)
		run_ranks(trace, spec, &o, 2);
	else if (how == 1)
		run_resumed(trace, spec, &o, specs_below(specs, (unsigned)batches));
	else
		trace_run(trace, spec, &o);
}

static void
check_way(struct specs *specs, const struct trace *expected, const char *spec, const struct leat_options *options)
{
	char way[MAX_SPEC + 100];
	struct trace got;

	run_some_way(specs, &got, spec, options, expected->batches, way, sizeof way);
	trace_compare_samples(expected, &got, way);
	trace_free(&got);
}

/* ---- what is promised ---- */

static void
forget_caches(void)
{
	temp_remove(&temp);
	assert_int_equal(mkdir(temp.folder, 0777), 0);
}

static void
check_spec(struct specs *specs, const struct cut *c, const struct leat_options *options)
{
	char spec[MAX_SPEC], cache[300];
	struct trace expected;

	with_cache(c, "cache(memory, size=1)", spec);
	trace_run(&expected, spec, options);
	if (expected.status != LEAT_DONE)
		fail_msg("%s\n%s", spec, expected.err.text);
	with_cache(c, "", spec);
	/* Behind a cache nothing tells decode(fast=true) how much is enough. */
	if (!c->frozen && !strstr(spec, "fast=true"))
		check_way(specs, &expected, spec, options);
	with_cache(c, "cache(memory)", spec);
	check_way(specs, &expected, spec, options);
	snprintf(cache, sizeof cache, "cache(memory, size=%uKiB)", 80 + specs_below(specs, 200));
	with_cache(c, cache, spec);
	check_way(specs, &expected, spec, options);
	forget_caches();
	for (int warm = 0; warm < 3; warm++) { /* twice in one folder; then one that cannot hold all */
		snprintf(cache, sizeof cache, "cache(dir='%s', size=%s)", temp.folder, warm < 2 ? "64MiB" : "96KiB");
		with_cache(c, cache, spec);
		check_way(specs, &expected, spec, options);
	}
	trace_free(&expected);
}

static void
a_cache_anywhere_changes_nothing(void **state)
{
	static struct specs specs;
	static struct cut c;
	struct leat_options options;
	int frozen = 0, checked = 0;

	(void)state;
	trace_options(&options);
	options.memory = (size_t)128 << 20; /* decoders of Parquet take some of it */
	options.epochs = EPOCHS;
	specs_init(&specs, &sources, 31, 150);
	while (checked < SPECS) {
		specs_draw(&specs);
		specs_batch(&specs, 4 * (1 + specs_below(&specs, 4)));
		if (!cut(&specs, &c))
			continue;
		options.seed = leat_rng_u64(&specs.rng);
		check_spec(&specs, &c, &options);
		checked++;
		frozen += c.frozen;
	}
	assert_true(frozen > 0 && frozen < checked);
}

/* Random ops before a cache draw by the sample: the same in every epoch, and at every place of it. */
static void
what_random_ops_draw_before_a_cache_stays(void **state)
{
	static const char *const caches[] = {"cache(memory, size=1)", "cache(memory)"};
	struct trace epochs[2];
	struct leat_options options;
	char spec[MAX_SPEC];

	(void)state;
	trace_options(&options);
	options.epochs = EPOCHS;
	for (int i = 0; i < 2; i++) {
		snprintf(spec, sizeof spec,
		         "%s | example(image=bytes, label=int64) | decode | scale(1/255) | random_flip | "
		         "random_brightness(0.5) | %s "
		         "| batch(8)",
		         data_source(&data), caches[i]);
		trace_run(&epochs[i], spec, &options);
		assert_int_equal(epochs[i].samples, EPOCHS * 40);
		for (size_t k = 40; k < epochs[i].samples; k++)
			assert_memory_equal(epochs[i].sample[k].hash, epochs[i].sample[k % 40].hash, LEAT_SHA256_BYTES);
	}
	trace_compare(&epochs[0], &epochs[1], spec);
	trace_free(&epochs[0]);
	trace_free(&epochs[1]);
	/* Behind it they draw anew. */
	snprintf(spec, sizeof spec,
	         "%s | example(image=bytes, label=int64) | decode | cache(memory) | scale(1/255) | "
	         "random_brightness(0.5) | batch(8)",
	         data_source(&data));
	trace_run(&epochs[0], spec, &options);
	for (size_t k = 40; k < epochs[0].samples; k++)
		assert_memory_not_equal(epochs[0].sample[k].hash, epochs[0].sample[k % 40].hash, LEAT_SHA256_BYTES);
	trace_free(&epochs[0]);
}

static void
another_seed_is_another_cache_only_where_it_matters(void **state)
{
	struct leat_options options;
	struct trace cold, warm;
	char spec[MAX_SPEC], plain[MAX_SPEC];

	(void)state;
	trace_options(&options);
	forget_caches();
	for (int random = 0; random < 2; random++) {
		const char *op = random ? " | scale(1/255) | random_brightness(0.5)" : "";

		for (options.seed = 1; options.seed <= 2; options.seed++) {
			snprintf(plain, sizeof plain,
			         "%s | example(image=bytes, label=int64) | decode%s | cache(memory, size=1) | batch(8)",
			         data_source(&data), op);
			snprintf(spec, sizeof spec,
			         "%s | example(image=bytes, label=int64) | decode%s | cache(dir='%s') | batch(8)",
			         data_source(&data), op, temp.folder);
			trace_run(&cold, plain, &options);
			trace_run(&warm, spec, &options);
			trace_compare(&cold, &warm, spec);
			trace_free(&cold);
			trace_free(&warm);
		}
	}
	{
		int files = 0;
		DIR *list = opendir(temp.folder);

		assert_non_null(list);
		for (struct dirent *entry; (entry = readdir(list)) != NULL;)
			files += strstr(entry->d_name, ".leatcache") != NULL;
		closedir(list);
		assert_int_equal(files, 3); /* one for both seeds without random ops, one for each with */
	}
}

/* From the second epoch on nothing is read, and nothing before the cache is done. */
static void
a_warm_cache_reads_nothing(void **state)
{
	struct leat_options options;
	struct leat_stats first, second;
	struct leat_feed *feed;
	struct trace trace = {0};
	char spec[MAX_SPEC];

	(void)state;
	trace_options(&options);
	options.epochs = 2;
	forget_caches();
	for (int way = 0; way < 3; way++) {
		snprintf(spec, sizeof spec,
		         "%s | example(image=bytes, label=int64) | decode | cache(%s%s%s) | batch(8) | prefetch(0)",
		         data_source(&data), way ? "dir='" : "memory", way ? temp.folder : "", way ? "'" : "");
		feed = trace_open(spec, &options);
		trace_take(&trace, feed, 5);
		leat_stats(feed, &first);
		trace_take(&trace, feed, 0);
		leat_stats(feed, &second);
		assert_int_equal(second.samples, 80);
		assert_int_equal(second.bytes_read, first.bytes_read);
		assert_true(way == 2 || first.bytes_read > 0);
		if (way == 2) /* another feed has filled it */
			assert_int_equal(first.bytes_read, 0);
		leat_close(feed);
		trace_free(&trace);
		trace = (struct trace){0};
	}
}

/* ---- what is said ---- */

static struct {
	int warnings;
	char text[4096]; /* of all */
} said;

static void
listen(void *arg, enum leat_log_level level, const char *text)
{
	size_t len = strlen(said.text);

	(void)arg;
	if (level != LEAT_LOG_WARN)
		return;
	said.warnings++;
	snprintf(said.text + len, sizeof said.text - len, "%s\n", text);
}

static void
say(const char *ops, size_t memory)
{
	struct leat_options options;
	struct trace trace;
	char spec[MAX_SPEC];

	trace_options(&options);
	options.log = listen;
	if (memory)
		options.memory = memory;
	memset(&said, 0, sizeof said);
	snprintf(spec, sizeof spec, "%s | example(image=bytes, label=int64) | decode | resize(20, 20) | %s | batch(4)",
	         data_source(&data), ops);
	trace_run(&trace, spec, &options);
	assert_int_equal(trace.samples, 40);
	trace_free(&trace);
}

static void
warnings_name_the_ops_that_a_cache_freezes(void **state)
{
	(void)state;
	say("random_flip | scale(2) | random_brightness(0.1) | random_contrast(0.9, 1.1) | cache(memory)", 0);
	assert_int_equal(said.warnings, 3);
	assert_non_null(strstr(said.text, "random_flip comes before cache"));
	assert_non_null(strstr(said.text, "random_brightness comes before cache"));
	assert_non_null(strstr(said.text, "random_contrast comes before cache"));
	say("scale(2) | cache(memory) | random_flip | random_brightness(0.1)", 0);
	assert_int_equal(said.warnings, 0);
	say("shuffle | cache(memory)", 0); /* the order is not what is kept */
	assert_int_equal(said.warnings, 0);
}

static void
a_cache_that_has_no_room_says_so(void **state)
{
	(void)state;
	say("cache(memory, size=10)", 0);
	assert_int_equal(said.warnings, 1);
	assert_non_null(strstr(said.text, "nothing is cached"));
}

static void
two_caches_are_refused(void **state)
{
	struct leat_options options;
	struct leat_feed *feed;
	struct leat_err err;
	char spec[MAX_SPEC];

	(void)state;
	trace_options(&options);
	snprintf(spec, sizeof spec, "%s | cache | cache | batch(4)", data_source(&data));
	assert_int_equal(leat_open(spec, &options, &feed, &err), LEAT_SPEC);
	assert_non_null(strstr(err.text, "only one cache"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_cache_anywhere_changes_nothing),
		cmocka_unit_test(what_random_ops_draw_before_a_cache_stays),
		cmocka_unit_test(another_seed_is_another_cache_only_where_it_matters),
		cmocka_unit_test(a_warm_cache_reads_nothing),
		cmocka_unit_test(warnings_name_the_ops_that_a_cache_freezes),
		cmocka_unit_test(a_cache_that_has_no_room_says_so),
		cmocka_unit_test(two_caches_are_refused),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
