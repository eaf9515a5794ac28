/* test_describe.c - the tables of all sources and ops keep what their readers rely on */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "feed/describe.h"
#include "feed/spec.h"
#include "format/source.h"
#include "op/op.h"

static void
every_item_explains_itself(void **state)
{
	static struct leat_item item, other;

	(void)state;
	for (size_t i = 0; leat_item_at(i, &item); i++) {
		if (!item.name || !item.doc || !item.example || !*item.kind || item.version < 1)
			fail_msg("%s lacks a doc, example or version", item.name);
		if (item.doc[strlen(item.doc) - 1] != '.')
			fail_msg("the doc of %s is no sentence", item.name);
		for (const struct leat_opt *o = item.opts; o->type != LEAT_OPT_NONE; o++)
			if (!o->name || !o->doc || !*o->doc || leat_opt_find(item.opts, o->name) != o ||
			    (o->was && leat_opt_find(item.opts, o->was) != o))
				fail_msg("option %s of %s lacks a doc or is there twice", o->name, item.name);
		for (size_t k = 0; k < i; k++)
			if (leat_item_at(k, &other) && strcmp(item.name, other.name) == 0)
				fail_msg("there are two %s", item.name);
	}
}

/* Defaults are spec text but for strings, whose text stands as it is. */
static void
every_default_is_a_value_in_range(void **state)
{
	static struct leat_item item;
	struct leat_mem mem;
	struct leat_err err;
	char *params = malloc(1 << 16);

	(void)state;
	assert_non_null(params);
	leat_mem_init(&mem, SIZE_MAX);
	for (size_t i = 0; leat_item_at(i, &item); i++) {
		for (const struct leat_opt *o = item.opts; o->type != LEAT_OPT_NONE; o++) {
			const struct leat_opt alone[] = {*o, LEAT_OPT_END};

			if (!o->def)
				continue;
			leat_opts_clear(alone, params);
			leat_err_clear(&err);
			if (leat_opt_put_default(o, params, item.name, &mem, &err) != LEAT_OK)
				fail_msg("%s", err.text);
			if (o->type == LEAT_OPT_STRING && (o->def[0] == '\'' || o->def[0] == '"'))
				fail_msg("the default of %s in %s is quoted", o->name, item.name);
			leat_opts_free(alone, params, &mem);
		}
	}
	assert_int_equal(mem.used, 0);
	free(params);
}

/* Reads `call` by the table, the way the pipeline does. */
static void
take(const char *name, const struct leat_opt *opts, size_t params_size, const struct leat_spec *spec,
     const struct leat_call *call)
{
	struct leat_mem mem;
	struct leat_err err;
	void *params;

	leat_mem_init(&mem, SIZE_MAX);
	leat_err_clear(&err);
	params = leat_alloc(&mem, params_size);
	if (leat_opts_set(opts, params, call, spec->text, &mem, &err) != LEAT_OK)
		fail_msg("example of %s: %s", name, err.text);
	leat_opts_free(opts, params, &mem);
	leat_free(&mem, params);
	assert_int_equal(mem.used, 0);
}

static void
every_example_is_a_valid_spec(void **state)
{
	static struct leat_item item;
	struct leat_mem mem;
	struct leat_err err;
	struct leat_spec spec;

	(void)state;
	leat_mem_init(&mem, SIZE_MAX);
	for (size_t i = 0; leat_item_at(i, &item); i++) {
		bool uses_itself = false;

		leat_err_clear(&err);
		if (leat_spec_parse(&spec, item.example, &mem, &err) != LEAT_OK)
			fail_msg("example of %s: %s", item.name, err.text);
		for (size_t c = 0; c < spec.calls; c++) {
			const struct leat_op *op = leat_op_find(spec.call[c].name);
			const struct leat_source_kind *source = leat_source_find(spec.call[c].name);

			uses_itself |= strcmp(spec.call[c].name, item.name) == 0;
			if (!op && !source)
				fail_msg("example of %s: there is no %s", item.name, spec.call[c].name);
			if (source && !source->parse)
				take(item.name, source->opts, source->params_size, &spec, &spec.call[c]);
			else if (op && !op->parse)
				take(item.name, op->opts, op->params_size, &spec, &spec.call[c]);
		}
		if (!uses_itself)
			fail_msg("the example of %s does not show it", item.name);
		leat_spec_free(&spec);
	}
	assert_int_equal(mem.used, 0);
}

static void
the_json_holds_every_item(void **state)
{
	static struct leat_item item;
	char *text = leat_describe();
	json_error_t error;
	json_t *all = json_loads(text, 0, &error), *items = json_object_get(all, "items");
	size_t count = 0;

	(void)state;
	if (!all)
		fail_msg("%s in line %d", error.text, error.line);
	assert_string_equal(json_string_value(json_object_get(all, "version")), leat_version());
	for (; leat_item_at(count, &item); count++) {
		json_t *object = json_array_get(items, count);
		size_t options = 0;

		assert_string_equal(json_string_value(json_object_get(object, "name")), item.name);
		while (item.opts[options].type != LEAT_OPT_NONE)
			options++;
		assert_int_equal(json_array_size(json_object_get(object, "options")), options);
	}
	assert_true(count > 0);
	assert_int_equal(json_array_size(items), count);
	json_decref(all);
	free(text);
}

static void
ops_on_one_field_have_the_option_field(void **state)
{
	static struct leat_item item;

	(void)state;
	for (size_t i = 0; leat_item_at(i, &item); i++) {
		const struct leat_op *op = leat_op_find(item.name);
		bool works_on_one = op && leat_op_is_on_field(op) && strcmp(item.kind, "source") != 0;

		if ((leat_opt_find(item.opts, "field") != NULL) != works_on_one)
			fail_msg("%s %s the option field", item.name, works_on_one ? "lacks" : "has");
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_item_explains_itself),
		cmocka_unit_test(every_default_is_a_value_in_range),
		cmocka_unit_test(every_example_is_a_valid_spec),
		cmocka_unit_test(the_json_holds_every_item),
		cmocka_unit_test(ops_on_one_field_have_the_option_field),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
