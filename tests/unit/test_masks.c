/* test_masks.c - masks, 16-bit images and images of any shape in a feed: types known at open, fused ops, warnings
 *
 * tests/unit/test_golden.c compares the values with those of other libraries. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "feed/feed.h"
#include "support/logged.h"
#include "support/source.h"
#include "support/temp.h"
#include "support/trace.h"

enum { COPIES = 5 };

static struct temp temp;
static struct leat_options options; /* with the log */
static char text[2000];

static int
set_up(void **state)
{
	(void)state;
	temp_make(&temp);
	trace_options(&options);
	options.log = write_log;
	memset(&logged, 0, sizeof logged);
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	temp_remove(&temp);
	return 0;
}

/* A list of the file, several times, and a spec that reads it. */
static const char *
spec_of(const char *file, const char *ops)
{
	char list[4000] = "path\n";

	for (int i = 0; i < COPIES; i++)
		snprintf(list + strlen(list), sizeof list - strlen(list), GOLDEN "%s\n", file);
	temp_write(&temp, "list.csv", list, strlen(list));
	snprintf(text, sizeof text, "list('%s/list.csv', root='%s') | %s", temp.folder, GOLDEN, ops);
	return text;
}

/* Opens the feed, reads all of it, and expects this type and so many warnings. */
static void
expect(const char *file, const char *ops, const char *type, int warnings)
{
	char found[160];
	struct whole whole;

	memset(&logged, 0, sizeof logged);
	whole_open(&whole, spec_of(file, ops), &options);
	assert_int_equal(whole.count, COPIES);
	assert_string_equal(leat_field_format(leat_field_at(whole.feed, 0), found, sizeof found), type);
	whole_close(&whole);
	assert_int_equal(logged.warn, warnings);
}

static void
what_a_decode_loses_is_said_once_with_the_option_that_keeps_it(void **state)
{
	(void)state;
	expect("eval/gray16.png", "decode", "uint8[?, ?, 3]", 1);
	assert_string_equal(logged.warning,
	                    "decode: 16-bit PNG images become 8-bit; use decode(dtype=uint16) to keep all bits");
	expect("eval/gray16.png", "decode(dtype=uint16, channels=1)", "uint16[?, ?, 1]", 0);
	expect("eval/palette8.png", "decode(channels=1)", "uint8[?, ?, 1]", 1);
	assert_string_equal(logged.warning,
	                    "decode: PNG images with a palette become gray levels; use decode(raw=true) to keep the "
	                    "palette indices, as in segmentation masks");
	expect("eval/palette8.png", "decode(raw=true)", "uint8[?, ?, 1]", 0);
	expect("eval/palette8.png", "decode", "uint8[?, ?, 3]", 0);
	expect("tf/420.jpg", "decode(channels=1)", "uint8[?, ?, 1]", 0);
}

static void
types_and_shapes_are_known_at_open(void **state)
{
	(void)state;
	expect("eval/palette2.png", "decode(raw=true, dtype=uint16) | layout(chw)", "uint16[1, ?, ?]", 0);
	expect("eval/color2.png", "decode(dtype=uint16) | crop(1, 1, 4, 5) | cast(float32)", "float32[4, 5, 3]", 0);
	expect("eval/wide.png", "decode | resize(shorter=24)", "float32[?, ?, 3]", 0);
	expect("eval/wide.png", "decode | resize(shorter=24, mode=torch) | center_crop(20)", "uint8[20, 20, 3]", 0);
	expect("eval/wide.png", "decode | resize(10, 30) | resize(longer=60)", "float32[20, 60, 3]", 0);
	expect("eval/wide.png", "decode | resize(10, 30) | resize(shorter=15, mode=torch)", "float32[15, 45, 3]", 0);
}

/* Decoded as part of a pass, only where pixels are needed, or as a whole for the cache, with the ops on the copy. */
static void
ops_fused_with_the_decoder_give_what_they_give_on_pixels(void **state)
{
	static const char *const ops[] = {
		"flip | center_crop(7, 30)",
		"resize(9, 8, method=nearest) | flip(vertical) | crop(1, 2, 5, 5)",
		"pad(2, fill=300) | resize(shorter=5, method=nearest) | layout(chw)",
		"random_flip | random_crop(6, 7) | pad(1, mode=symmetric)",
		"random_resized_crop(6, 7, method=nearest) | cast(float32)",
	};

	(void)state;
	for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
		char spec[500];
		struct whole a, b;

		snprintf(spec, sizeof spec, "decode(channels=1, dtype=uint16) | %s", ops[i]);
		whole_open(&a, spec_of("eval/gray16.png", spec), &options);
		snprintf(spec, sizeof spec, "decode(channels=1, dtype=uint16) | cache | %s", ops[i]);
		whole_open(&b, spec_of("eval/gray16.png", spec), &options);
		assert_int_equal(a.count, b.count);
		for (int64_t k = 0; k < a.count; k++) {
			size_t size, want;
			const void *got = whole_row(&a, "image", k, &size), *one = whole_row(&b, "image", k, &want);

			assert_int_equal(size, want);
			assert_memory_equal(got, one, size);
		}
		whole_close(&a);
		whole_close(&b);
	}
}

static void
what_cannot_be_done_is_said_at_open(void **state)
{
	(void)state;
	expect_refused(
		spec_of("eval/gray16.png", "decode(dtype=uint16) | resize(8, 8)"), LEAT_SPEC,
		"resize: on uint16 only method=nearest is supported; for other methods, put cast(float32) before");
	expect_refused(spec_of("eval/gray16.png", "decode(dtype=uint16) | random_resized_crop(8, 8)"), LEAT_SPEC,
	               "on uint16 only method=nearest");
	expect_refused(spec_of("eval/gray16.png", "decode(dtype=uint16) | scale(1/255)"), LEAT_SPEC,
	               "uint8 or float32");
	expect_refused(spec_of("eval/gray16.png", "decode(dtype=uint16) | rotate(3deg)"), LEAT_SPEC,
	               "uint8 or float32");
	expect_refused(spec_of("eval/gray16.png", "decode(raw=true, channels=4)"), LEAT_SPEC,
	               "raw=true gives one channel: leave out channels");
	expect_refused(spec_of("eval/wide.png", "decode | resize(256)"), LEAT_SPEC,
	               "needs height and width, both above 0; to keep the aspect ratio, use shorter=256 or longer=256");
	expect_refused(spec_of("eval/wide.png", "decode | resize(8, 8, shorter=8)"), LEAT_SPEC,
	               "write either height and width, or shorter, or longer");
	expect_refused(spec_of("eval/wide.png", "decode | resize(shorter=8, longer=8)"), LEAT_SPEC,
	               "write either height and width, or shorter, or longer");
}

static void
expect_bad(const char *file, const char *ops, const char *words)
{
	struct leat_err err = {0};
	struct leat_feed *feed;
	struct leat_batch *batch;
	char spec[500];

	snprintf(spec, sizeof spec, "%s | batch(2)", ops);
	assert_int_equal(leat_open(spec_of(file, spec), &options, &feed, &err), LEAT_OK);
	assert_int_equal(leat_next(feed, &batch, &err), LEAT_DATA);
	if (!strstr(err.text, words))
		fail_msg("expected '%s' in: %s", words, err.text);
	leat_close(feed);
}

static void
files_that_do_not_fit_the_options_are_bad_samples(void **state)
{
	(void)state;
	expect_bad("eval/wide.png", "decode(raw=true)",
	           "raw=true is for PNG images with a palette or in gray; this one is RGB");
	expect_bad("eval/gray16.png", "decode(raw=true)", "the PNG image has 16 bits: use raw=true with dtype=uint16");
	expect_bad("tf/420.jpg", "decode(raw=true)", "raw=true is for PNG images; this is not one");
	expect_bad("webp/lossy.webp", "decode(dtype=uint16)", "dtype=uint16 is for PNG images; this is not one");
	expect_bad("eval/thin.png", "decode | resize(shorter=65000)", "a side may have 65500");
}

/* Old checkpoints stay valid: their hash is that of the text without the options that were added. */
static void
new_options_are_in_the_canonical_text_only_if_they_are_used(void **state)
{
	struct whole whole;

	(void)state;
	whole_open(&whole, spec_of("eval/wide.png", "decode | resize(8, 9) | center_crop(5)"), &options);
	assert_non_null(
		strstr(leat_canonical(whole.feed),
	               " | decode(channels=3, mode=tf, fast=false) | resize(height=8, width=9, method=bilinear, "
	               "mode=tf, antialias=false) | center_crop(height=5, width=5)"));
	whole_close(&whole);
	whole_open(&whole,
	           spec_of("eval/palette8.png", "decode(raw=true, dtype=uint16) | resize(shorter=9, method=nearest)"),
	           &options);
	assert_non_null(strstr(leat_canonical(whole.feed),
	                       " | decode(channels=1, mode=tf, fast=false, dtype=uint16, raw=true) | "
	                       "resize(method=nearest, mode=tf, antialias=false, shorter=9)"));
	whole_close(&whole);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_a_decode_loses_is_said_once_with_the_option_that_keeps_it),
		TEST(types_and_shapes_are_known_at_open),
		TEST(ops_fused_with_the_decoder_give_what_they_give_on_pixels),
		TEST(what_cannot_be_done_is_said_at_open),
		TEST(files_that_do_not_fit_the_options_are_bad_samples),
		TEST(new_options_are_in_the_canonical_text_only_if_they_are_used),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
