/* test_op_fields.c - ops on the set of fields: select, drop, rename */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "feed/pipeline.h"
#include "support/data.h"
#include "support/trace.h"

#define EXAMPLE "example(image=bytes, label=int64, tokens=int64[], box=float[4])"

static struct data data;
static char text[2000];

static int
set_up(void **state)
{
	static const size_t counts[] = {5};

	(void)state;
	data_make(&data, 1, counts, NULL);
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	data_remove(&data);
	return 0;
}

static const char *
spec(const char *ops)
{
	snprintf(text, sizeof text, "%s | " EXAMPLE " | %s | batch(2)", data_source(&data), ops);
	return text;
}

static struct leat_feed *
open_feed(const char *ops)
{
	struct leat_options options;

	trace_options(&options);
	options.threads = 2;
	return trace_open(spec(ops), &options);
}

static void
assert_fields(const char *ops, const char *want)
{
	struct leat_feed *feed = open_feed(ops);
	char got[500] = "", one[100];

	for (int i = 0; i < leat_field_count(feed); i++) {
		const struct leat_field *field = leat_field_at(feed, i);

		snprintf(got + strlen(got), sizeof got - strlen(got), "%s%s: %s", i ? ", " : "", field->name,
		         leat_field_format(field, one, sizeof one));
	}
	assert_string_equal(got, want);
	leat_close(feed);
}

/* Every batch of the two has the same bytes in field `a` of the one and field `b` of the other. */
static void
assert_same_values(const char *ops_a, const char *a, const char *ops_b, const char *b)
{
	struct leat_feed *feed[2] = {open_feed(ops_a), open_feed(ops_b)};
	const char *name[2] = {a, b};

	for (int batches = 0; batches < 3; batches++) {
		struct leat_batch *batch[2];
		struct leat_tensor tensor[2];
		struct leat_err err;

		for (int i = 0; i < 2; i++) {
			assert_int_equal(leat_next(feed[i], &batch[i], &err), LEAT_OK);
			assert_int_equal(leat_batch_field(batch[i], name[i], &tensor[i], &err), LEAT_OK);
		}
		assert_true(tensor[0].bytes > 0 || strcmp(a, "tokens") == 0);
		assert_int_equal(tensor[0].bytes, tensor[1].bytes);
		assert_memory_equal(tensor[0].data, tensor[1].data, tensor[0].bytes);
		leat_release(batch[0]);
		leat_release(batch[1]);
	}
	leat_close(feed[0]);
	leat_close(feed[1]);
}

static void
assert_refused(const char *ops, const char *sentence)
{
	struct leat_feed *feed = NULL;
	struct leat_err err;

	assert_int_equal(leat_open(spec(ops), NULL, &feed, &err), LEAT_SPEC);
	assert_null(feed);
	if (strncmp(err.text, sentence, strlen(sentence)) != 0 || err.text[strlen(sentence)] != '\n')
		fail_msg("%s:\n%s", ops, err.text);
	assert_non_null(strchr(strrchr(err.text, '\n'), '^')); /* it shows where */
}

static void
select_keeps_fields_in_the_order_they_are_named(void **state)
{
	(void)state;
	assert_fields("select(label, image)", "label: int64, image: uint8[?]");
	assert_fields("select([box])", "box: float32[4]");
	assert_same_values("select(label, box)", "label", "scale(1)", "label");
	assert_same_values("select(box, tokens)", "tokens", "scale(1)", "tokens");
	assert_same_values("decode | select(label, image)", "image", "decode", "image");
}

static void
drop_keeps_the_others_as_they_are(void **state)
{
	(void)state;
	assert_fields("drop(label)", "image: uint8[?], tokens: int64[?], box: float32[4]");
	assert_fields("drop(image, tokens, image)", "label: int64, box: float32[4]");
	assert_same_values("drop(image, label)", "box", "scale(1)", "box");
}

static void
rename_changes_names_alone(void **state)
{
	(void)state;
	assert_fields("rename(target='label')", "image: uint8[?], target: int64, tokens: int64[?], box: float32[4]");
	assert_same_values("rename(target=label)", "target", "scale(1)", "label");
	assert_same_values("decode | rename(picture=image) | resize(3, 4)", "picture", "decode | resize(3, 4)",
	                   "image");
}

static void
names_can_change_places(void **state)
{
	(void)state;
	assert_fields("select(label, box) | rename(box=label, label=box)", "box: int64, label: float32[4]");
	assert_same_values("rename(box=label, label=box)", "box", "scale(1)", "label");
}

static void
ops_on_images_work_before_and_behind(void **state)
{
	(void)state;
	assert_same_values("decode | resize(5, 7) | select(box, image) | flip | scale(1/255)", "image",
	                   "decode | resize(5, 7) | flip | scale(1/255)", "image");
	assert_same_values("decode | drop(tokens) | rename(x=image) | select(x, label) | resize(5, 7) | drop(label)",
	                   "x", "decode | resize(5, 7)", "image");
}

/* The stage that writes a field for the last time writes it into the batch. */
static void
fields_that_are_carried_along_are_not_copied(void **state)
{
	static struct leat_pipeline p;
	struct leat_mem mem;
	struct leat_err err;

	(void)state;
	leat_mem_init(&mem, SIZE_MAX);
	spec("decode | resize(5, 7) | drop(box) | rename(picture=image) | select(tokens, picture)");
	assert_int_equal(leat_pipeline_open(&p, text, LEAT_BATCH_OPTIONAL, 1, 1, NULL, NULL, NULL, &mem, NULL, &err),
	                 LEAT_OK);
	assert_string_equal(p.stage[1].op[1]->op->name, "resize"); /* fused with decode */
	assert_int_equal(p.stage[1].output_slot[0], 1);            /* picture is the second of the finished sample */
	assert_int_equal(p.stage[0].output_slot[2], 0);            /* tokens, straight from the record */
	assert_int_equal(p.stage[0].output_slot[3], -1);
	/* Scratch is for what is not final: the pixels have no fixed size, box and label have. Each of the four is
	 * aligned. */
	assert_int_equal(p.scratch.bytes, 4 * sizeof(float) + sizeof(int64_t) + 4 * 64);
	leat_pipeline_close(&p);
	assert_int_equal(mem.used, 0);
}

static void
unknown_names_are_refused_with_the_nearest(void **state)
{
	(void)state;
	assert_refused("select(imag, label)", "select: there is no field 'imag', did you mean 'image'?");
	assert_refused("drop(token)", "drop: there is no field 'token', did you mean 'tokens'?");
	assert_refused("rename(x=lable)", "rename: there is no field 'lable', did you mean 'label'?");
	assert_refused("select(weights)",
	               "select: there is no field 'weights'; the fields here are image, label, tokens, box");
}

static void
what_makes_no_sense_is_refused(void **state)
{
	(void)state;
	assert_refused("select(label, label)", "select: field 'label' is listed twice");
	assert_refused("select([])", "select: name the fields to keep, as in select(image, label)");
	assert_refused("drop([])", "drop: name the fields to drop, as in drop(tokens)");
	assert_refused("drop(image, label, tokens, box)", "drop: this would drop every field");
	assert_refused("rename", "'rename' takes 1 to 1024 arguments NEW=OLD, as in rename(target=label)");
	assert_refused("rename(label)", "write the new name in front: rename(NEW=label)");
	assert_refused("rename(target=3)", "expected a field name");
	assert_refused("rename(target=label[2])", "expected a field name");
	assert_refused("rename(a=label, a=box)", "two fields would be named 'a'");
	assert_refused("rename(a=label, b=label)", "field 'label' is renamed twice");
	assert_refused("rename(box=label)", "rename: there is already a field 'box'");
	assert_refused("rename(a123456789b123456789c123456789d123456789e123456789f123456789g123=label)",
	               "a field name can have at most 63 characters");
}

/* The engine puts the op's name in front of what the op says, once. */
static void
errors_name_the_op_once(void **state)
{
	(void)state;
	assert_refused("decode | resize(4, 4) | normalize(mean=[1, 2], std=1)",
	               "normalize: mean has 2 numbers, expected 1 or 3, one per channel");
	assert_refused("shard(count=2, index=3)", "shard: index=3 is out of range for count=2: expected 0 to 1");
	assert_refused("shuffle(block=8)", "shuffle: block=8 needs a window, the number of blocks to mix: "
	                                   "shuffle(block=8, window=16)");
	assert_refused("batch(0)", "batch: give a size of 1 or more: batch(32), or batch(per_rank=32)");
	assert_refused(EXAMPLE, "example: there is no field 'record' with bytes, which the source tfrecord provides");
}

static void
errors_about_fields_say_what_there_is(void **state)
{
	(void)state;
	assert_refused("resize(4, 4, field=imag)", "resize: there is no field 'imag', did you mean 'image'?");
	assert_refused(
		"resize(4, 4, field=label)",
		"resize needs an image (height x width x channels, uint8, uint16 or float32), but field 'label' is "
		"int64");
	assert_refused(
		"resize(4, 4)",
		"resize needs an image (height x width x channels, uint8, uint16 or float32), but there is none; the "
		"fields here are image: uint8[?], label: int64, tokens: int64[?], box: float32[4]");
	assert_refused("drop(image) | rename(a=label) | cast(float32)",
	               "cast needs numbers, such as a decoded image or a label, and several fields fit: choose with "
	               "field=NAME; the fields here are a: int64, tokens: int64[?], box: float32[4]");
}

/* Batches of one sample would be slow, and never what was meant. */
static void
a_spec_without_batch_is_refused(void **state)
{
	struct leat_feed *feed = NULL;
	struct leat_err err;

	(void)state;
	snprintf(text, sizeof text, "%s | " EXAMPLE, data_source(&data));
	assert_int_equal(leat_open(text, NULL, &feed, &err), LEAT_SPEC);
	assert_null(feed);
	assert_string_equal(err.text, "the spec has no batch: add '| batch(32)' at the end, or '| batch(1)' for "
	                              "batches of one sample");
	/* What is wrong in the spec comes first; a source is not opened for one that lacks it. */
	assert_int_equal(leat_open("tfrecord('missing') | tkae(5)", NULL, &feed, &err), LEAT_SPEC);
	assert_non_null(strstr(err.text, "did you mean 'take'?"));
	assert_int_equal(leat_open("tfrecord(crc=5)", NULL, &feed, &err), LEAT_SPEC);
	assert_null(strstr(err.text, "no batch"));
	assert_int_equal(leat_open("tfrecord('missing')", NULL, &feed, &err), LEAT_SPEC);
	assert_non_null(strstr(err.text, "no batch"));
}

static void
the_canonical_text_opens_the_same(void **state)
{
	struct leat_feed *feed =
		open_feed("rename(target=label, picture='image') | select(target, picture) | drop(target)");
	char canonical[2000];

	(void)state;
	snprintf(canonical, sizeof canonical, "%s", leat_canonical(feed));
	assert_non_null(strstr(canonical, " | rename(target='label', picture='image')"
	                                  " | select(names=['target', 'picture']) | drop(names=['target']) | "));
	leat_close(feed);
	assert_int_equal(leat_open(canonical, NULL, &feed, NULL), LEAT_OK);
	assert_string_equal(leat_canonical(feed), canonical);
	leat_close(feed);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(select_keeps_fields_in_the_order_they_are_named),
		cmocka_unit_test(drop_keeps_the_others_as_they_are),
		cmocka_unit_test(rename_changes_names_alone),
		cmocka_unit_test(names_can_change_places),
		cmocka_unit_test(ops_on_images_work_before_and_behind),
		cmocka_unit_test(fields_that_are_carried_along_are_not_copied),
		cmocka_unit_test(unknown_names_are_refused_with_the_nearest),
		cmocka_unit_test(what_makes_no_sense_is_refused),
		cmocka_unit_test(errors_name_the_op_once),
		cmocka_unit_test(a_spec_without_batch_is_refused),
		cmocka_unit_test(errors_about_fields_say_what_there_is),
		cmocka_unit_test(the_canonical_text_opens_the_same),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
