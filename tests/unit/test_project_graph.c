/* test_project_graph.c - drawings of projects: boxes that do not meet, lines that go right, few crossings, states */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include <jansson.h>

#include "base/hash.h"
#include "step/build.h"
#include "step/project_graph.h"
#include "step/project_layout.h"

static struct leat_mem mem;
static struct leat_project *project;

static int
setup(void **state)
{
	(void)state;
	leat_mem_init(&mem, SIZE_MAX);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	leat_project_close(project);
	project = NULL;
	assert_int_equal(mem.used, 0);
	return 0;
}

static void
parse(const char *text)
{
	struct leat_err err;

	leat_project_close(project);
	leat_err_clear(&err);
	if (leat_project_parse(&project, &mem, NULL, text, strlen(text), &err) != LEAT_OK)
		fail_msg("%s", err.text);
}

static const char eeg[] = "sources: {epochs: 'raw/{subject}.npy', notes: 'a<b>&\"c\".txt'}\n"
			  "steps:\n"
			  "  decode: {run: x, in: [epochs, notes], slices: {subject: 1..18, bin: 1..20}}\n"
			  "  group: {run: x, in: decode}\n"
			  "  plot: {run: x, in: [group, notes]}\n";

static void
make_layout(struct leat_layout *layout)
{
	struct leat_err err;

	leat_err_clear(&err);
	*layout = (struct leat_layout){.mem = &mem, .boxes = project->sources + project->steps};
	layout->box = leat_alloc_array(&mem, layout->boxes, sizeof(*layout->box));
	for (size_t i = 0; i < layout->boxes; i++) {
		layout->box[i].width = 50 + (double)(i * 37 % 90);
		layout->box[i].height = 40;
	}
	if (leat_layout_make(layout, project, &err) != LEAT_OK)
		fail_msg("%s", err.text);
}

static bool
meet(const struct leat_box *a, const struct leat_box *b)
{
	return a->x < b->x + b->width && b->x < a->x + a->width && a->y < b->y + b->height && b->y < a->y + a->height;
}

static void
check_layout(const struct leat_layout *l)
{
	for (size_t i = 0; i < l->boxes; i++) {
		const struct leat_box *box = &l->box[i];

		assert_true(box->x >= 0 && box->y >= -1e-6);
		assert_true(box->x + box->width <= l->width + 1e-6 && box->y + box->height <= l->height + 1e-6);
		for (size_t k = i + 1; k < l->boxes; k++)
			assert_false(meet(box, &l->box[k]));
		for (size_t k = 0; k < l->points; k++) /* lines pass between boxes */
			assert_false(l->point[k].left < box->x + box->width && box->x < l->point[k].right &&
			             l->point[k].y > box->y && l->point[k].y < box->y + box->height);
	}
	for (size_t i = 0; i < l->lines; i++)
		assert_true(l->box[l->line[i].from].x + l->box[l->line[i].from].width < l->box[l->line[i].to].x);
}

static void
every_step_is_right_of_what_it_reads(void **state)
{
	struct leat_layout layout;

	(void)state;
	parse(eeg);
	make_layout(&layout);
	assert_int_equal(layout.layers, 4);
	assert_int_equal(layout.lines, 5);
	assert_int_equal(layout.points, 2); /* of the line from notes to plot, past decode and group */
	check_layout(&layout);
	leat_layout_free(&layout);
}

static void
a_source_is_beside_its_first_reader(void **state)
{
	struct leat_layout layout;

	(void)state;
	parse("sources: {late: x}\nsteps:\n  a: {run: x}\n  b: {run: x, in: a}\n  c: {run: x, in: [b, late]}\n");
	make_layout(&layout);
	assert_int_equal(layout.box[0].layer, 1);
	leat_layout_free(&layout);
}

/* Where no two lines have to cross, none do. */
static void
lines_that_need_not_cross_do_not(void **state)
{
	struct leat_layout layout;

	(void)state;
	parse("steps:\n  a: {run: x}\n  b: {run: x}\n  c: {run: x}\n"
	      "  z: {run: x, in: c}\n  y: {run: x, in: a}\n  x: {run: x, in: b}\n");
	make_layout(&layout);
	for (size_t i = 0; i < layout.lines; i++)
		for (size_t k = 0; k < i; k++) {
			const struct leat_line *p = &layout.line[i], *q = &layout.line[k];

			assert_true((layout.box[p->from].y < layout.box[q->from].y) ==
			            (layout.box[p->to].y < layout.box[q->to].y));
		}
	leat_layout_free(&layout);
}

static void
random_graphs_are_drawn_without_boxes_that_meet(void **state)
{
	struct leat_layout layout;

	(void)state;
	for (uint64_t seed = 0; seed < 40; seed++) {
		size_t steps = 2 + seed * 2;
		struct leat_str text;

		leat_str_init(&text, &mem, SIZE_MAX);
		leat_str_add(&text, "sources: {s: x}\nsteps:\n");
		for (size_t i = 0; i < steps; i++) {
			leat_str_addf(&text, "  n%zu: {run: x, in: [s", i);
			for (size_t k = 0; k < i; k++)
				if (leat_mix64(seed << 32 | i << 16 | k) % (steps / 2 + 1) == 0)
					leat_str_addf(&text, ", n%zu", k);
			leat_str_add(&text, "]}\n");
		}
		parse(leat_str_text(&text));
		leat_str_free(&text);
		make_layout(&layout);
		check_layout(&layout);
		leat_layout_free(&layout);
	}
}

static void
too_large_a_drawing_is_refused(void **state)
{
	struct leat_str text, svg;
	struct leat_err err;

	(void)state;
	leat_str_init(&text, &mem, SIZE_MAX);
	leat_str_init(&svg, &mem, SIZE_MAX);
	leat_str_add(&text, "steps:\n");
	for (int i = 0; i <= LEAT_LAYOUT_BOXES; i++)
		leat_str_addf(&text, "  n%d: {run: x}\n", i);
	parse(leat_str_text(&text));
	leat_err_clear(&err);
	assert_int_equal(leat_graph_svg(project, NULL, &svg, &err), LEAT_LIMIT);
	assert_string_equal(err.text, "a drawing has at most 2000 sources and steps; use --json");
	leat_str_free(&text);
	leat_str_free(&svg);
}

/* ---- texts ---- */

static size_t
count(const char *text, const char *what)
{
	size_t n = 0;

	for (text = strstr(text, what); text; text = strstr(text + 1, what))
		n++;
	return n;
}

static void
a_drawing_has_a_box_for_each_step_and_colours_for_dark_rooms(void **state)
{
	struct leat_str svg;

	(void)state;
	parse(eeg);
	leat_str_init(&svg, &mem, SIZE_MAX);
	assert_int_equal(leat_graph_svg(project, NULL, &svg, NULL), LEAT_OK);
	assert_int_equal(count(leat_str_text(&svg), "<rect class=\"box\""), 5);
	assert_int_equal(count(leat_str_text(&svg), "<path class=\"edge\""), 5);
	assert_int_equal(count(leat_str_text(&svg), "prefers-color-scheme:dark"), 1);
	assert_int_equal(count(leat_str_text(&svg), ">subject 18 x bin 20<"), 1);
	assert_int_equal(count(leat_str_text(&svg), "a&lt;b&gt;&amp;&quot;c&quot;.txt"), 2);
	leat_str_free(&svg);
}

static void
states_show_in_drawing_and_json(void **state)
{
	struct leat_step_status status[3] = {{.done = 340, .stale = 20}, {.waits = 1}, {.done = 0, .stale = 1}};
	struct leat_str text;
	json_t *json, *steps;

	(void)state;
	parse(eeg);
	snprintf(status[2].why, sizeof(status[2].why), "exited with \"2\"");
	leat_str_init(&text, &mem, SIZE_MAX);
	assert_int_equal(leat_graph_svg(project, status, &text, NULL), LEAT_OK);
	assert_int_equal(count(leat_str_text(&text), "<g class=\"stale\" data-name=\"decode\">"), 1);
	assert_int_equal(count(leat_str_text(&text), ">20 of 360 to run<"), 1);
	assert_int_equal(count(leat_str_text(&text), ">waits for its inputs<"), 1);
	assert_int_equal(count(leat_str_text(&text), "exited with &quot;2&quot;"), 1);
	leat_str_free(&text);
	leat_str_init(&text, &mem, SIZE_MAX);
	assert_int_equal(leat_graph_json(project, status, &text, NULL), LEAT_OK);
	json = json_loads(leat_str_text(&text), 0, NULL);
	steps = json_object_get(json, "steps");
	assert_int_equal(json_array_size(steps), 3);
	assert_int_equal(json_integer_value(json_object_get(json_array_get(steps, 0), "slices")), 360);
	assert_string_equal(json_string_value(json_object_get(json_array_get(steps, 0), "state")), "stale");
	assert_string_equal(json_string_value(json_object_get(json_array_get(steps, 2), "why")), "exited with \"2\"");
	assert_string_equal(
		json_string_value(json_object_get(json_array_get(json_object_get(json, "sources"), 1), "pattern")),
		"a<b>&\"c\".txt");
	json_decref(json);
	leat_str_free(&text);
}

static void
every_allocation_may_fail(void **state)
{
	enum leat_status status = LEAT_NOMEM;
	struct leat_err err;
	size_t used;
	long n = 0;

	(void)state;
	parse(eeg);
	used = mem.used;
	for (; status != LEAT_OK; n++) {
		struct leat_str svg;

		leat_err_clear(&err);
		atomic_store(&mem.fail_after, n);
		leat_str_init(&svg, &mem, SIZE_MAX);
		status = leat_graph_svg(project, NULL, &svg, &err);
		atomic_store(&mem.fail_after, -1);
		leat_str_free(&svg);
		assert_true(status == LEAT_OK || status == LEAT_NOMEM);
		assert_int_equal(mem.used, used);
		assert_true(n < 1000);
	}
	assert_true(n > 10);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(every_step_is_right_of_what_it_reads, setup, teardown),
		cmocka_unit_test_setup_teardown(a_source_is_beside_its_first_reader, setup, teardown),
		cmocka_unit_test_setup_teardown(lines_that_need_not_cross_do_not, setup, teardown),
		cmocka_unit_test_setup_teardown(random_graphs_are_drawn_without_boxes_that_meet, setup, teardown),
		cmocka_unit_test_setup_teardown(too_large_a_drawing_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(a_drawing_has_a_box_for_each_step_and_colours_for_dark_rooms, setup,
	                                        teardown),
		cmocka_unit_test_setup_teardown(states_show_in_drawing_and_json, setup, teardown),
		cmocka_unit_test_setup_teardown(every_allocation_may_fail, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
