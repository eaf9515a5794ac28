/* chrome.c - see chrome.h */
#include "support/chrome.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* In ns: doubles have room for that. */
struct interval {
	double thread, begin, end;
};

static const char *
text_of(json_t *event, const char *key)
{
	const char *text = json_string_value(json_object_get(event, key));

	if (!text)
		fail_msg("%s is no text in %s", key, json_dumps(event, 0));
	return text;
}

static double
number_of(json_t *event, const char *key)
{
	json_t *number = json_object_get(event, key);

	if (!json_is_number(number) || !isfinite(json_number_value(number)))
		fail_msg("%s is no number in %s", key, json_dumps(event, 0));
	return json_number_value(number);
}

static int
is_phase(json_t *event, const char *phase)
{
	return strcmp(text_of(event, "ph"), phase) == 0;
}

/* By thread, then by beginning; of two that begin together, the longer one first. */
static int
compare(const void *a, const void *b)
{
	const struct interval *x = a, *y = b;

	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	if (x->begin != y->begin)
		return x->begin < y->begin ? -1 : 1;
	return x->end > y->end ? -1 : x->end < y->end;
}

static int
is_named(json_t *trace, double thread)
{
	json_t *event;
	size_t i;

	json_array_foreach(trace, i, event) if (is_phase(event, "M") &&
	                                        strcmp(text_of(event, "name"), "thread_name") == 0 &&
	                                        number_of(event, "tid") == thread) return 1;
	return 0;
}

/* No two overlap without one holding the other. */
static void
check_nesting(json_t *trace, struct interval *spans, size_t count)
{
	struct interval *open = calloc(count + 1, sizeof *open);
	size_t depth = 0;

	qsort(spans, count, sizeof *spans, compare);
	for (size_t i = 0; i < count; i++) {
		if (i == 0 || spans[i].thread != spans[i - 1].thread) {
			depth = 0;
			if (!is_named(trace, spans[i].thread))
				fail_msg("thread %.0f has no name", spans[i].thread);
		}
		while (depth > 0 && open[depth - 1].end <= spans[i].begin)
			depth--;
		if (depth > 0 && spans[i].end > open[depth - 1].end)
			fail_msg("thread %.0f: %.0f to %.0f overlaps %.0f to %.0f", spans[i].thread, spans[i].begin,
			         spans[i].end, open[depth - 1].begin, open[depth - 1].end);
		open[depth++] = spans[i];
	}
	free(open);
}

static void
check_values(json_t *trace, const char *track)
{
	double last = 0;
	json_t *event;
	size_t i;

	json_array_foreach(trace, i, event) if (is_phase(event, "C") && strcmp(text_of(event, "name"), track) == 0)
	{
		assert_true(number_of(event, "ts") >= last);
		last = number_of(event, "ts");
	}
}

static void
check_event(json_t *event)
{
	assert_true(json_is_object(event));
	assert_int_equal(strlen(text_of(event, "ph")), 1);
	text_of(event, "name");
	assert_true(json_is_integer(json_object_get(event, "pid")));
	assert_true(json_is_integer(json_object_get(event, "tid")));
	assert_true(number_of(event, "ts") >= 0);
	if (is_phase(event, "X")) {
		assert_true(number_of(event, "dur") >= 0);
		text_of(event, "cat");
		assert_true(json_is_integer(json_object_get(json_object_get(event, "args"), "item")));
	} else if (is_phase(event, "C")) {
		assert_int_equal(json_object_size(json_object_get(event, "args")), 1);
		number_of(json_object_get(event, "args"), "value");
	} else if (is_phase(event, "M")) {
		assert_true(json_is_object(json_object_get(event, "args")));
	} else {
		assert_true(is_phase(event, "i"));
		text_of(event, "s");
	}
}

static void
check(json_t *trace)
{
	struct interval *spans = calloc(json_array_size(trace) + 1, sizeof *spans);
	size_t count = 0, i;
	json_t *event;

	assert_true(json_is_array(trace));
	json_array_foreach(trace, i, event)
	{
		check_event(event);
		if (is_phase(event, "X")) {
			double begin = round(number_of(event, "ts") * 1000);

			spans[count++] = (struct interval){number_of(event, "tid"), begin,
			                                   begin + round(number_of(event, "dur") * 1000)};
		}
	}
	check_nesting(trace, spans, count);
	check_values(trace, "batches ready");
	free(spans);
}

json_t *
chrome_read(const char *path)
{
	json_error_t error;
	json_t *trace = json_load_file(path, JSON_REJECT_DUPLICATES, &error);

	if (!trace)
		fail_msg("%s, line %d: %s", path, error.line, error.text);
	check(trace);
	return trace;
}

size_t
chrome_spans(json_t *trace, const char *tag, const char *name)
{
	size_t count = 0, i;
	json_t *event;

	json_array_foreach(trace, i, event) count += is_phase(event, "X") &&
	                                             (!tag || strcmp(text_of(event, "cat"), tag) == 0) &&
	                                             (!name || strcmp(text_of(event, "name"), name) == 0);
	return count;
}

size_t
chrome_values(json_t *trace, const char *track, double *last)
{
	size_t count = 0, i;
	json_t *event;

	json_array_foreach(trace, i, event) if (is_phase(event, "C") && strcmp(text_of(event, "name"), track) == 0)
	{
		count++;
		if (last)
			*last = number_of(json_object_get(event, "args"), "value");
	}
	return count;
}

const char *
chrome_text(json_t *trace, const char *what, const char *key)
{
	const char *text = "";
	json_t *event;
	size_t i;

	json_array_foreach(trace, i, event) if (is_phase(event, "M") && strcmp(text_of(event, "name"), what) == 0)
		text = text_of(json_object_get(event, "args"), key);
	return text;
}

int
chrome_has_lane(json_t *trace, const char *name)
{
	json_t *event;
	size_t i;

	json_array_foreach(trace, i,
	                   event) if (is_phase(event, "M") && strcmp(text_of(event, "name"), "thread_name") == 0 &&
	                              strcmp(text_of(json_object_get(event, "args"), "name"), name) == 0) return 1;
	return 0;
}
