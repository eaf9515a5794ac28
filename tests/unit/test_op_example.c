/* test_op_example.c - the op that makes fields of a tf.train.Example */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "feed/spec.h"
#include "format/source.h"
#include "format/tfrecord.h"
#include "op/op.h"
#include "support/proto.h"
#include "support/temp.h"

static struct leat_mem mem;
static struct leat_err err;

static int
set_up(void **state)
{
	(void)state;
	leat_mem_init(&mem, SIZE_MAX);
	leat_err_clear(&err);
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	return mem.used != 0;
}

static const struct leat_op *op;
static struct leat_spec spec;
static void *params;
static struct leat_schema_entry entries[LEAT_MAX_FIELDS];
static struct leat_schema schema;
static struct leat_sample sample;
static struct leat_scratch scratch;

static enum leat_status
open_op(const char *text)
{
	enum leat_status status;

	op = leat_op_find("example");
	assert_non_null(op);
	leat_err_clear(&err);
	if (leat_spec_parse(&spec, text, &mem, &err) != LEAT_OK)
		fail_msg("%s", err.text);
	params = calloc(1, op->params_size);
	status = op->parse(params, &spec.call[0], spec.text, &mem, &err);
	if (status == LEAT_OK)
		return status;
	free(params);
	leat_spec_free(&spec);
	return status;
}

static void
must_open_op(const char *text)
{
	struct leat_field *record;

	if (open_op(text) != LEAT_OK)
		fail_msg("%s", err.text);
	schema = (struct leat_schema){.capacity = LEAT_MAX_FIELDS, .entry = entries};
	leat_schema_add(&schema, "before", LEAT_I32);
	record = leat_schema_add(&schema, "record", LEAT_U8);
	record->ndim = 1;
	record->shape[0] = -1;
	leat_schema_add(&schema, "behind", LEAT_I64);
	if (op->on_fields.infer(params, &schema, &err) != LEAT_OK)
		fail_msg("%s", err.text);
	assert_int_equal(leat_scratch_open(&scratch, &mem, 1 << 20), 0);
}

static void
close_op(void)
{
	leat_scratch_close(&scratch, &mem);
	op->params_free(params, &mem);
	free(params);
	leat_spec_free(&spec);
}

static enum leat_status
run_op(const void *record, size_t len)
{
	struct leat_work work = {.sample = &sample, .scratch = &scratch};
	enum leat_status status;

	leat_scratch_reset(&scratch);
	leat_err_clear(&err);
	memset(&sample, 0, sizeof(sample));
	sample.count = 3;
	sample.field[0] = (struct leat_datum){.data = &spec, .dtype = LEAT_I32};
	sample.field[1] =
		(struct leat_datum){.data = (void *)record, .dtype = LEAT_U8, .ndim = 1, .shape = {(int64_t)len}};
	sample.field[2] = (struct leat_datum){.data = &schema, .dtype = LEAT_I64};
	status = op->on_fields.run(params, &work, &err);
	assert_int_equal(status, err.status);
	if (status != LEAT_OK)
		return status;
	assert_ptr_equal(sample.field[0].data, &spec);
	assert_ptr_equal(sample.field[1].data, &schema);
	assert_int_equal(sample.count, schema.count);
	for (int i = 0; i < sample.count; i++) { /* what the schema said is what came */
		assert_int_equal(sample.field[i].dtype, schema.entry[i].field.dtype);
		assert_int_equal(sample.field[i].ndim, schema.entry[i].field.ndim);
		for (int k = 0; k < sample.field[i].ndim; k++)
			assert_true(schema.entry[i].field.shape[k] < 0 ||
			            schema.entry[i].field.shape[k] == sample.field[i].shape[k]);
	}
	return status;
}

static void
check_field(int i, const void *want, size_t len)
{
	assert_int_equal(leat_datum_bytes(&sample.field[i]), len);
	assert_memory_equal(sample.field[i].data, want, len);
}

static void
features_that_python_wrote_become_fields(void **state)
{
	const struct leat_source_kind *kind = leat_source_find("tfrecord");
	struct leat_tfrecord_params source_params = {.crc = true};
	struct leat_source source;
	struct temp temp;
	const char *path;

	(void)state;
	temp_make(&temp);
	path = temp_path(&temp, "x");
	run_oracle("write", path, "/dev/null");
	source_params.patterns = (struct leat_strings){1, &path};
	must_open_op("example(tokens=int64[], image=bytes, box=float[2, 2], label=int64(default=-7), "
	             "none=float(default=0.5))");
	assert_int_equal(leat_source_open(&source, kind, &source_params, 1, UINT64_MAX, NULL, &mem, NULL, &err),
	                 LEAT_OK);
	assert_int_equal(source.count, 40);
	for (uint64_t i = 0; i < source.count; i++) {
		const unsigned char *image = NULL;
		unsigned char bytes[4096];
		struct leat_extent extent;
		struct leat_sample record;
		struct iovec iov = {.iov_base = bytes};
		size_t got;

		source.kind->locate(&source, i, &extent);
		iov.iov_len = (size_t)extent.length;
		assert_int_equal(leat_files_read(source.files, 0, extent.offset, &iov, 1, 0, &got, &err), LEAT_OK);
		assert_int_equal(source.kind->unpack(&source,
		                                     &(struct leat_raw){.index = i,
		                                                        .extent = extent,
		                                                        .head = bytes,
		                                                        .payload = bytes + 12,
		                                                        .tail = bytes + extent.length - 4},
		                                     NULL, &record, &err),
		                 LEAT_OK);
		if (i == 0) { /* an Example without features */
			assert_int_equal(run_op(record.field[0].data, (size_t)record.field[0].shape[0]), LEAT_DATA);
			continue;
		}
		if (run_op(record.field[0].data, (size_t)record.field[0].shape[0]) != LEAT_OK)
			fail_msg("%s", err.text);
		assert_int_equal(sample.field[2].shape[0], i);
		for (uint64_t k = 0; k < i; k++)
			assert_int_equal(((int64_t *)sample.field[2].data)[k], ((int64_t)1 << k) - (int64_t)i);
		image = sample.field[3].data;
		assert_int_equal(sample.field[3].shape[0], 5 * i);
		assert_true(image > bytes && image < bytes + sizeof(bytes));
		for (uint64_t k = 0; k < 5 * i; k++)
			assert_int_equal(image[k], (unsigned char)(i * 7 + k));
		check_field(4, (float[]){(float)i, (float)i / 4, -(float)i / 8, (float)i * 1024}, 16);
		check_field(5, (int64_t[]){i % 2 ? -(int64_t)(i * i) : (int64_t)(i * i)}, 8);
		check_field(6, (float[]){0.5f}, 4);
	}
	leat_source_close(&source);
	close_op();
	temp_remove(&temp);
}

static void
fields_have_the_types_and_shapes_that_were_asked_for(void **state)
{
	char text[64];

	(void)state;
	must_open_op(
		"example(image=bytes, hash=bytes[16], label=int64, tokens=int64[], box=float[4], grid=float[2,3,1,5])");
	assert_int_equal(schema.count, 8);
	assert_string_equal(schema.entry[0].field.name, "before");
	assert_string_equal(schema.entry[1].field.name, "behind");
	assert_string_equal(schema.entry[2].field.name, "image");
	assert_string_equal(leat_field_format(&schema.entry[2].field, text, sizeof(text)), "uint8[?]");
	assert_string_equal(leat_field_format(&schema.entry[3].field, text, sizeof(text)), "uint8[16]");
	assert_string_equal(leat_field_format(&schema.entry[4].field, text, sizeof(text)), "int64");
	assert_string_equal(leat_field_format(&schema.entry[5].field, text, sizeof(text)), "int64[?]");
	assert_string_equal(leat_field_format(&schema.entry[6].field, text, sizeof(text)), "float32[4]");
	assert_string_equal(leat_field_format(&schema.entry[7].field, text, sizeof(text)), "float32[2, 3, 1, 5]");
	close_op();
}

static void
a_pipeline_without_records_is_refused(void **state)
{
	(void)state;
	assert_int_equal(open_op("example(image=bytes)"), LEAT_OK);
	schema = (struct leat_schema){.capacity = LEAT_MAX_FIELDS, .entry = entries};
	leat_schema_add(&schema, "record", LEAT_F32);
	assert_int_equal(op->on_fields.infer(params, &schema, &err), LEAT_SPEC);
	assert_non_null(strstr(err.text, "there is no field 'record' with bytes"));
	leat_err_clear(&err);
	schema = (struct leat_schema){.capacity = LEAT_MAX_FIELDS, .entry = entries};
	leat_schema_add(&schema, "image", LEAT_F32);
	leat_schema_add(&schema, "record", LEAT_U8)->ndim = 1;
	assert_int_equal(op->on_fields.infer(params, &schema, &err), LEAT_SPEC);
	assert_non_null(strstr(err.text, "it already exists"));
	memset(&scratch, 0, sizeof(scratch));
	close_op();
}

static void
defaults_stand_for_what_is_missing(void **state)
{
	(void)state;
	must_open_op(
		"example(a=int64(default=-1), b=float[3](default=2), c=int64[2](default=[3, 4]), d=float[](default=[]),"
		" e=bytes(default='text'), f=int64[](default=[5]), g=bytes[2](default='ab'))");
	assert_int_equal(run_op("", 0), LEAT_OK);
	check_field(2, (int64_t[]){-1}, 8);
	check_field(3, (float[]){2, 2, 2}, 12);
	check_field(4, (int64_t[]){3, 4}, 16);
	check_field(5, "", 0);
	check_field(6, "text", 4);
	check_field(7, (int64_t[]){5}, 8);
	check_field(8, "ab", 2);
	/* Memory that a later op may write to is never that of the params. */
	memset(sample.field[6].data, 'x', 4);
	assert_int_equal(run_op("", 0), LEAT_OK);
	check_field(6, "text", 4);
	close_op();
}

static void
raw_pixels_become_an_image_that_lies_in_the_record(void **state)
{
	struct bytes record = field(1, entry("image", field(LEAT_FEATURE_BYTES, field(1, RAW("abcdefghijkl")))));

	(void)state;
	must_open_op("example(image=bytes[2, 2, 3])");
	assert_int_equal(schema.entry[2].layout, LEAT_HWC);
	assert_int_equal(run_op(record.data, record.len), LEAT_OK);
	check_field(2, "abcdefghijkl", 12);
	assert_true((unsigned char *)sample.field[2].data > record.data &&
	            (unsigned char *)sample.field[2].data < record.data + record.len);
	assert_true(sample.field[2].borrowed); /* an op that works in place has to leave the record as it is */
	close_op();
	must_open_op("example(image=float[2, 2, 4](default=0), grid=float[2, 2, 5](default=0))");
	assert_int_equal(schema.entry[2].layout, LEAT_HWC);
	assert_int_equal(schema.entry[3].layout, LEAT_LAYOUT_NONE);
	close_op();
	must_open_op("example(image=bytes[2, 3, 3])");
	assert_int_equal(run_op(record.data, record.len), LEAT_DATA);
	assert_string_equal(err.text, "feature 'image' has 12 bytes, expected 18");
	close_op();
}

static void
check_run_fails(const char *text, struct bytes features, const char *want)
{
	struct bytes record = field(1, features);

	must_open_op(text);
	assert_int_equal(run_op(record.data, record.len), LEAT_DATA);
	assert_string_equal(err.text, want);
	close_op();
}

static void
features_that_do_not_fit_are_told_in_words(void **state)
{
	struct bytes label = entry("label", one_int64(7));
	struct bytes image = entry("image/encoded", field(LEAT_FEATURE_BYTES, field(1, RAW("abc"))));
	struct bytes floats = entry("box", field(LEAT_FEATURE_FLOAT, field(1, RAW("12345678"))));
	struct bytes names = entry("names", field(LEAT_FEATURE_BYTES, join(field(1, RAW("a")), field(1, RAW("b")))));

	(void)state;
	check_run_fails("example(lable=int64)", join(label, image),
	                "the record has no feature 'lable', did you mean 'label'? (or give it a default=...)");
	check_run_fails("example(other=int64)", join(label, image),
	                "the record has no feature 'other'; it has label, image/encoded (or give it a default=...)");
	check_run_fails("example(x=int64)", RAW(""),
	                "the record has no feature 'x'; it has none (or give it a default=...)");
	check_run_fails("example(label=float)", label, "feature 'label' has 1 int64 value, expected 1 float value");
	check_run_fails("example(box=float)", floats, "feature 'box' has 2 float values, expected 1 float value");
	check_run_fails("example(box=float[4])", floats, "feature 'box' has 2 float values, expected 4 float values");
	check_run_fails("example(box=int64[])", floats,
	                "feature 'box' has 2 float values, expected any number of int64 values");
	check_run_fails("example(names=bytes)", names, "feature 'names' has 2 byte strings, expected 1 byte string");
	check_run_fails("example(a=bytes[4](key='image/encoded'))", image,
	                "feature 'image/encoded' has 3 bytes, expected 4");
	check_run_fails("example(label=int64)", RAW("\x0a\x7f"),
	                "the record is not a tf.train.Example: a length exceeds the message");
}

static void
names_in_messages_are_cut_and_cleaned(void **state)
{
	struct bytes record = {.len = 0};
	char longest[100] = "";

	(void)state;
	memset(longest, 'n', 80);
	record = field(1, join(entry(longest, one_int64(1)), entry("a\nb\x7f", one_int64(1))));
	must_open_op("example(x=int64)");
	assert_int_equal(run_op(record.data, record.len), LEAT_DATA);
	longest[63] = '\0';
	assert_non_null(strstr(err.text, longest));
	longest[63] = 'n';
	assert_null(strstr(err.text, longest));
	assert_non_null(strstr(err.text, ", a\\nb\\x7f "));
	record.len = 0;
	for (char c = 'A'; c < 'A' + 30; c++)
		record = join(record, entry((char[]){c, c, c, '\0'}, RAW("")));
	record = field(1, record);
	assert_int_equal(run_op(record.data, record.len), LEAT_DATA);
	assert_non_null(strstr(err.text, "WWW, XXX and 6 more"));
	close_op();
}

/* Whatever the order of the features, of earlier records too, each is found. */
static void
features_are_found_in_any_order(void **state)
{
	(void)state;
	must_open_op("example(a=int64, b=int64, c=int64)");
	for (unsigned turn = 0; turn < 60; turn++) {
		static const char order[6][4] = {"abc", "acb", "bac", "bca", "cab", "cba"};
		struct bytes record = {.len = 0};

		for (int k = 0; k < 3; k++) {
			char name = order[turn * 5 % 6][k];

			if (turn % 7 == 0)
				record = join(record, entry("other", one_int64(9)));
			record = join(record, entry((char[]){name, '\0'}, one_int64((char)(name - 'a' + 1))));
		}
		record = field(1, record);
		assert_int_equal(run_op(record.data, record.len), LEAT_OK);
		for (int k = 0; k < 3; k++)
			check_field(2 + k, (int64_t[]){k + 1}, 8);
	}
	close_op();
}

static void
a_record_cut_or_changed_anywhere_never_crashes(void **state)
{
	struct leat_example example;
	unsigned char copy[2048];
	const void *record;
	size_t len, bad = 0;

	(void)state;
	leat_example_init(&example, &mem, 1 << 20);
	add_known(&example, 20);
	assert_int_equal(leat_example_finish(&example, &record, &len, &err), LEAT_OK);
	assert_true(len < sizeof(copy));
	must_open_op("example(tokens=int64[], image=bytes, box=float[4], label=int64)");
	for (size_t cut = 0; cut < len; cut++) { /* in a block of its own, so that a sanitizer sees its end */
		unsigned char *part = malloc(cut + 1);

		memcpy(part + 1, record, cut);
		assert_int_equal(run_op(part + 1, cut), LEAT_DATA);
		free(part);
	}
	for (size_t bit = 0; bit < 8 * len; bit++) {
		memcpy(copy, record, len);
		copy[bit / 8] ^= (unsigned char)(1 << bit % 8);
		bad += run_op(copy, len) != LEAT_OK;
	}
	assert_true(bad > 0 && bad < 8 * len);
	close_op();
	leat_example_free(&example);
}

static void
check_prints(const char *text, const char *want)
{
	struct leat_str out;

	if (open_op(text) != LEAT_OK)
		fail_msg("%s", err.text);
	leat_str_init(&out, &mem, 4096);
	op->print(params, &out);
	assert_string_equal(leat_str_text(&out), want);
	leat_str_free(&out);
	op->params_free(params, &mem);
	free(params);
	leat_spec_free(&spec);
}

static void
arguments_print_as_they_read(void **state)
{
	(void)state;
	check_prints("example(image=bytes,label=int64( default = -1 ), tokens = int64[ ] , box=float[4],)",
	             "image=bytes, label=int64(default=-1), tokens=int64[], box=float[4]");
	check_prints("example(a=float[2,3](key=\"it's\", default=1/4), b=bytes[3](default='abc'))",
	             "a=float[2, 3](default=0.25, key='it\\'s'), b=bytes[3](default='abc')");
	check_prints("example(a=bytes[ 4,5 ,3])", "a=bytes[4, 5, 3]");
	check_prints(
		"example(a=int64[](default=[]), b=int64[](default=[7]), c=int64[2](default=[1,2]), "
		"d=int64[1](default=[3]))",
		"a=int64[](default=[]), b=int64[](default=[7]), c=int64[2](default=[1, 2]), d=int64[1](default=3)");
	check_prints("example(a=int64(default=-9223372036854775808, key=a), b=bytes(key=image.raw))",
	             "a=int64(default=-9223372036854775808), b=bytes(key='image.raw')");
}

static void
check_refused(const char *text, const char *part)
{
	assert_int_equal(open_op(text), LEAT_SPEC);
	if (!strstr(err.text, part))
		fail_msg("'%s' does not say '%s'", err.text, part);
	assert_int_equal(mem.used, 0);
}

static void
mistakes_in_the_arguments_are_shown(void **state)
{
	char text[16000] = "example(";

	(void)state;
	check_refused("example", "needs at least one feature");
	check_refused("example(bytes)", "a feature needs a name: write NAME=bytes");
	check_refused("example(image=byte)", "did you mean 'bytes'?");
	check_refused("example(image=string)",
	              "feature 'image': there is no type 'string'; the types here are bytes, float, int64");
	check_refused("example(image='bytes')", "must be bytes, int64 or float");
	check_refused("example(a=int64, a=float)", "field 'a' is given twice");
	check_refused("example(a=int64, b=float(key=a))", "feature 'a' is already used for field 'a'");
	check_refused("example(a=bytes[])", "write bytes for a string of any length");
	check_refused("example(a=bytes[1,2,3,4,5])", "at most 4 dimensions");
	check_refused("example(a=float[1,2,3,4,5])", "at most 4 dimensions");
	check_refused("example(a=float[0])", "a dimension must be a positive integer");
	check_refused("example(a=float[-1])", "a dimension must be a positive integer");
	check_refused("example(a=float[1.5])", "a dimension must be a positive integer");
	check_refused("example(a=float[4k])", "a dimension must be a positive integer");
	check_refused("example(a=float[n])", "a dimension must be a positive integer");
	check_refused("example(a=float[1000000000,1000000000])", "a dimension must be a positive integer");
	check_refused("example(a=float[100000,100000])", "values in total");
	check_refused("example(a=int64(defualt=1))", "did you mean 'default'?");
	check_refused("example(a=int64(5))", "takes default=... and key=...");
	check_refused("example(a=int64(default=1, default=2))", "'default' is given twice");
	check_refused("example(a=int64(key=b, key=c))", "'key' is given twice");
	check_refused("example(a=int64(key=5))", "a key must be a string");
	check_refused("example(a=int64(default=1.5))", "must be an integer");
	check_refused("example(a=int64(default=9223372036854775808))", "must be an integer below 2^63");
	check_refused("example(a=int64(default='1'))", "must be an integer");
	check_refused("example(a=float(default=1e39))", "within the range of float32");
	check_refused("example(a=float(default=[1]))", "must be a number");
	check_refused("example(a=float[](default=1))", "must be a list");
	check_refused("example(a=float[3](default=[1, 2]))", "or a list with one for each");
	check_refused("example(a=float[2](default=[1, b]))", "within the range of float32");
	check_refused("example(a=bytes(default=5))", "must be a string in quotes");
	check_refused("example(a=bytes[2](default='abc'))", "has 3 bytes, not 2");
	check_refused("example(a=bytes[2, 2](default='ab'))", "has 2 bytes, not 4");
	check_refused("example(a123456789b123456789c123456789d123456789e123456789f123456789g123=int64)", "at most 63");
	for (int i = 0; i <= LEAT_MAX_FIELDS; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "f%d=int64,", i);
	strcat(text, ")");
	check_refused(text, "takes at most 1024 features");
}

static void
every_failing_allocation_is_survived(void **state)
{
	long n = 0;

	(void)state;
	op = leat_op_find("example");
	assert_int_equal(
		leat_spec_parse(&spec, "example(a=int64(default=1), b=float[2](default=[1, 2]), c=bytes)", &mem, NULL),
		LEAT_OK);
	params = calloc(1, op->params_size);
	for (;; n++) {
		size_t used = mem.used;
		enum leat_status status;

		atomic_store(&mem.fail_after, n);
		leat_err_clear(&err);
		status = op->parse(params, &spec.call[0], spec.text, &mem, &err);
		atomic_store(&mem.fail_after, -1);
		if (status == LEAT_OK) {
			op->params_free(params, &mem);
			assert_int_equal(mem.used, used);
			break;
		}
		assert_int_equal(status, LEAT_NOMEM);
		assert_int_equal(mem.used, used);
	}
	assert_int_equal(n, 5);
	free(params);
	leat_spec_free(&spec);
}

int
main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(features_that_python_wrote_become_fields),
		CASE(fields_have_the_types_and_shapes_that_were_asked_for),
		CASE(a_pipeline_without_records_is_refused),
		CASE(defaults_stand_for_what_is_missing),
		CASE(raw_pixels_become_an_image_that_lies_in_the_record),
		CASE(features_that_do_not_fit_are_told_in_words),
		CASE(names_in_messages_are_cut_and_cleaned),
		CASE(features_are_found_in_any_order),
		CASE(a_record_cut_or_changed_anywhere_never_crashes),
		CASE(arguments_print_as_they_read),
		CASE(mistakes_in_the_arguments_are_shown),
		CASE(every_failing_allocation_is_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
