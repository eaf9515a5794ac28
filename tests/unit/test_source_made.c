/* test_source_made.c - a source needs no files, and units need no bytes */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "support/source.h"
#include "support/trace.h"

static void
every_number_comes_once_in_order(void **state)
{
	struct whole whole;
	struct leat_tensor tensor;

	(void)state;
	whole_open(&whole, "made(1050) | batch(1050)", NULL);
	tensor = whole_field(&whole, "number");
	for (int64_t i = 0; i < 1050; i++)
		assert_int_equal(((const int64_t *)tensor.data)[i], i);
	whole_close(&whole);
}

static void
the_same_for_any_threads(void **state)
{
	static const char spec[] = "made(1050) | shuffle(window=300) | batch(7)";
	struct leat_options options;
	struct trace one, many;

	(void)state;
	trace_options(&options);
	options.threads = 1;
	options.epochs = 2;
	trace_run(&one, spec, &options);
	assert_int_equal(one.samples, 2100);
	for (options.threads = 2; options.threads <= 5; options.threads++) {
		trace_run(&many, spec, &options);
		trace_compare(&one, &many, spec);
		trace_free(&many);
	}
	trace_free(&one);
}

static void
no_memory_is_an_error(void **state)
{
	(void)state;
	promise_memory_errors("made(300) | batch(4)", NULL);
}

static void
the_least_memory_is_enough(void **state)
{
	struct leat_options options;
	struct trace trace;

	(void)state;
	trace_options(&options);
	for (options.threads = 1; options.threads <= 4; options.threads++) {
		options.memory = trace_least_memory("made(1050) | shuffle(window=300) | batch(7)", &options);
		trace_run(&trace, "made(1050) | shuffle(window=300) | batch(7)", &options);
		assert_int_equal(trace.status, LEAT_DONE);
		assert_int_equal(trace.samples, 1050);
		trace_free(&trace);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_number_comes_once_in_order),
		cmocka_unit_test(the_same_for_any_threads),
		cmocka_unit_test(no_memory_is_an_error),
		cmocka_unit_test(the_least_memory_is_enough),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
