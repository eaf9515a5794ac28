/* test_feed_same.c - same seed, same bytes: whatever the threads, the prefetch, the memory, the index
 *
 * Pipelines are drawn at random from all sources and ops; each is run in several ways, and every
 * sample's fields have to come out the same, at the same place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/specs.h"
#include "support/trace.h"

enum { SPECS = TEST_SLOW ? 40 : 600, WAYS = 3 };

static struct sources sources;

static int
setup(void **state)
{
	(void)state;
	sources_make(&sources);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	sources_remove(&sources);
	return 0;
}

/* Another number of threads, depth, memory; now and then the index is made anew. */
static void
run_another_way(struct specs *specs, const char *spec, const struct leat_options *options, struct trace *trace,
                char *way, size_t cap)
{
	static const unsigned threads[] = {1, 2, 7};
	static const char *const prefetch[] = {"", " | prefetch(0)", " | prefetch(1)", " | prefetch(5)"};
	struct leat_options o = *options;
	size_t least;

	o.threads = threads[specs_below(specs, 3)];
	snprintf(way, cap, "%s%s", spec, prefetch[specs_below(specs, 4)]);
	least = trace_least_memory(way, &o);
	o.memory = specs_below(specs, 3) == 0 ? least : least + ((size_t)1 << (10 + specs_below(specs, 17)));
	if (specs->unbounded)
		o.memory += (size_t)256 << 20;
	if (specs_below(specs, 8) == 0) {
		sources_forget_indexes(&sources);
		o.memory += 2 << 20; /* for making them */
	}
	trace_run(trace, way, &o);
	snprintf(way + strlen(way), cap - strlen(way), " (threads %u, memory %zu, least %zu)", o.threads, o.memory,
	         least);
}

static void
drawn_pipelines_give_the_same_bytes_in_every_way(void **state)
{
	static struct specs specs;
	struct leat_options options;

	(void)state;
	trace_options(&options);
	options.epochs = 2;
	specs_init(&specs, &sources, 2025, 200);
	for (int i = 0; i < SPECS; i++) {
		char spec[sizeof specs.text + 64], way[sizeof spec + 200];
		struct trace first, other;

		specs_draw(&specs);
		specs_batch(&specs, 1 + specs_below(&specs, 13));
		snprintf(spec, sizeof spec, "%s", specs.text);
		options.seed = leat_rng_u64(&specs.rng);
		options.threads = 1;
		trace_run(&first, spec, &options);
		if (first.status != LEAT_DONE)
			fail_msg("%s\n%s", spec, first.err.text);
		assert_int_equal(first.samples, 2 * specs.size);
		for (int k = 0; k < WAYS; k++) {
			run_another_way(&specs, spec, &options, &other, way, sizeof way);
			trace_compare(&first, &other, way);
			trace_free(&other);
		}
		trace_free(&first);
	}
	if (!TEST_SLOW)
		specs_check_drawn(&specs);
}

/* Two stages would write to one place. */
static void
an_op_takes_a_field_once(void **state)
{
	struct leat_feed *feed;
	struct leat_err err;
	char spec[600];

	(void)state;
	snprintf(spec, sizeof spec, "%s | example(image=bytes) | decode | flip(field=[image, image]) | batch(1)",
	         sources.one[0].spec);
	assert_int_equal(leat_open(spec, NULL, &feed, &err), LEAT_SPEC);
	assert_non_null(strstr(err.text, "flip: field 'image' is listed twice"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(drawn_pipelines_give_the_same_bytes_in_every_way),
		cmocka_unit_test(an_op_takes_a_field_once),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
