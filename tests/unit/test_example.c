/* test_example.c - tf.train.Example, read in place and written, and the op that makes fields of it */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/hash.h"
#include "feed/spec.h"
#include "format/example.h"
#include "format/source.h"
#include "format/tfrecord.h"
#include "op/op.h"
#include "temp.h"

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

/* ---- bytes, spelled out ---- */

struct bytes {
	unsigned char data[512];
	size_t len;
};

static struct bytes
raw(const char *text, size_t len)
{
	struct bytes bytes = {.len = len};

	assert_true(len <= sizeof(bytes.data));
	memcpy(bytes.data, text, len);
	return bytes;
}
#define RAW(literal) raw(literal, sizeof(literal) - 1)

static struct bytes
join(struct bytes a, struct bytes b)
{
	assert_true(a.len + b.len <= sizeof(a.data));
	memcpy(a.data + a.len, b.data, b.len);
	a.len += b.len;
	return a;
}

/* A field with a length, both below 128. */
static struct bytes
field(int number, struct bytes payload)
{
	struct bytes head = {.data = {(unsigned char)(number << 3 | 2), (unsigned char)payload.len}, .len = 2};

	if (payload.len >= 128) {
		head.data[1] |= 0x80;
		head.data[2] = (unsigned char)(payload.len >> 7);
		head.len = 3;
	}
	return join(head, payload);
}

static struct bytes
entry(const char *key, struct bytes feature)
{
	return field(1, join(field(1, raw(key, strlen(key))), field(2, feature)));
}

/* An Example of one feature `x`. */
static struct bytes
example_of(struct bytes feature)
{
	return field(1, entry("x", feature));
}

static enum leat_status
find_x(const struct bytes *record, struct leat_feature *feature)
{
	static struct leat_example_order order;
	struct leat_feature_key key = {"x", 1};

	leat_err_clear(&err);
	return leat_example_find(record->data, record->len, &key, 1, &order, feature, &err);
}

static void
check_int64s(struct bytes list, const int64_t *want, size_t count)
{
	struct bytes record = example_of(field(LEAT_FEATURE_INT64, list));
	struct leat_feature feature;
	int64_t values[8];
	size_t n;

	assert_int_equal(find_x(&record, &feature), LEAT_OK);
	assert_int_equal(feature.kind, LEAT_FEATURE_INT64);
	assert_int_equal(leat_feature_count(&feature, &n, &err), LEAT_OK);
	assert_int_equal(n, count);
	assert_int_equal(leat_feature_int64s(&feature, values, n, &err), LEAT_OK);
	assert_memory_equal(values, want, n * sizeof(*want));
}

static void
check_floats(struct bytes list, const float *want, size_t count)
{
	struct bytes record = example_of(field(LEAT_FEATURE_FLOAT, list));
	struct leat_feature feature;
	float values[8];
	size_t n;

	assert_int_equal(find_x(&record, &feature), LEAT_OK);
	assert_int_equal(leat_feature_count(&feature, &n, &err), LEAT_OK);
	assert_int_equal(n, count);
	assert_int_equal(leat_feature_floats(&feature, values, n, &err), LEAT_OK);
	assert_memory_equal(values, want, n * sizeof(*want));
}

static void
numbers_are_read_packed_and_not(void **state)
{
	static const int64_t ints[] = {1, 300, -1, INT64_MIN, INT64_MAX};
	static const float floats[] = {1.0f, -2.5f};
#define MINUS_ONE "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
#define LEAST "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01"
#define MOST "\xff\xff\xff\xff\xff\xff\xff\xff\x7f"
#define ONE_F "\x00\x00\x80\x3f"
#define OTHER_F "\x00\x00\x20\xc0"

	(void)state;
	check_int64s(field(1, RAW("\x01\xac\x02" MINUS_ONE LEAST MOST)), ints, 5);
	check_int64s(RAW("\x08\x01\x08\xac\x02\x08" MINUS_ONE "\x08" LEAST "\x08" MOST), ints, 5);
	check_int64s(join(RAW("\x08\x01"), field(1, RAW("\xac\x02"))), ints, 2); /* both in one list */
	check_int64s(RAW(""), NULL, 0);
	check_int64s(field(1, RAW("")), NULL, 0);
	check_floats(field(1, RAW(ONE_F OTHER_F)), floats, 2);
	check_floats(RAW("\x0d" ONE_F "\x0d" OTHER_F), floats, 2);
	check_floats(join(field(1, RAW(ONE_F)), RAW("\x0d" OTHER_F)), floats, 2);
	check_floats(RAW(""), NULL, 0);
}

static void
byte_strings_stay_in_the_record(void **state)
{
	struct bytes record = example_of(field(LEAT_FEATURE_BYTES, join(field(1, RAW("abc")), field(1, RAW("")))));
	const unsigned char *bytes;
	struct leat_feature feature;
	size_t n, len;

	(void)state;
	assert_int_equal(find_x(&record, &feature), LEAT_OK);
	assert_int_equal(feature.kind, LEAT_FEATURE_BYTES);
	assert_int_equal(leat_feature_count(&feature, &n, &err), LEAT_OK);
	assert_int_equal(n, 2);
	assert_int_equal(leat_feature_bytes(&feature, &bytes, &len, &err), LEAT_OK);
	assert_int_equal(len, 3);
	assert_memory_equal(bytes, "abc", 3);
	assert_true(bytes > record.data && bytes < record.data + record.len);
	record = example_of(field(LEAT_FEATURE_BYTES, RAW("")));
	assert_int_equal(find_x(&record, &feature), LEAT_OK);
	assert_int_equal(leat_feature_bytes(&feature, &bytes, &len, &err), LEAT_DATA);
}

static struct bytes
one_int64(char value)
{
	return field(LEAT_FEATURE_INT64, field(1, raw(&value, 1)));
}

static int64_t
value_of_x(struct bytes record)
{
	struct leat_feature feature;
	int64_t value = -1;

	assert_int_equal(find_x(&record, &feature), LEAT_OK);
	if (feature.kind == LEAT_FEATURE_INT64)
		assert_int_equal(leat_feature_int64s(&feature, &value, 1, &err), LEAT_OK);
	return value;
}

static void
protobuf_is_read_as_protobuf_says(void **state)
{
	/* Unknown fields of all types, before, between and behind. */
	struct bytes unknown = RAW("\x20\x96\x01"
	                           "\x2a\x03"
	                           "abc"
	                           "\x35"
	                           "1234"
	                           "\x39"
	                           "12345678");
	struct bytes two = join(entry("x", one_int64(1)), entry("x", one_int64(2)));
	struct bytes parts = join(field(1, entry("x", one_int64(3))), field(1, entry("y", one_int64(4))));
	struct bytes turned = field(1, field(1, join(field(2, one_int64(5)), field(1, RAW("x")))));
	struct bytes deep = field(LEAT_FEATURE_INT64, join(unknown, field(1, RAW("\x06"))));

	(void)state;
	assert_int_equal(value_of_x(field(1, two)), 2); /* of a key that comes twice the last one counts */
	assert_int_equal(value_of_x(parts), 3);         /* a message in two parts is joined */
	assert_int_equal(value_of_x(turned), 5);        /* fields come in any order */
	assert_int_equal(
		value_of_x(join(unknown, field(1, join(unknown, entry("x", join(unknown, join(deep, unknown))))))), 6);
	assert_int_equal(value_of_x(RAW("")), -1); /* nothing at all is an Example */
	assert_int_equal(value_of_x(field(1, RAW(""))), -1);
	assert_int_equal(value_of_x(field(1, entry("x", RAW("")))), -1); /* a feature without a list is none */
	assert_int_equal(value_of_x(field(1, join(entry("x", one_int64(1)), entry("x", RAW(""))))), -1);
	assert_int_equal(value_of_x(field(1, field(1, RAW("")))), -1); /* an entry without key and feature */
	assert_int_equal(value_of_x(field(1, join(entry("xy", one_int64(1)), entry("", one_int64(1))))), -1);
	/* Lengths need not be written in the fewest bytes. */
	assert_int_equal(value_of_x(RAW("\x0a\x8c\x80\x00"
	                                "\x0a\x0a"
	                                "\x0a\x01x"
	                                "\x12\x05"
	                                "\x1a\x03"
	                                "\x0a\x01\x07")),
	                 7);
}

static void
check_damaged(struct bytes record, const char *part)
{
	struct leat_feature feature;
	int64_t ints[8];
	float floats[8];
	const unsigned char *bytes;
	size_t n = 0, len;
	enum leat_status status = find_x(&record, &feature);

	if (status == LEAT_OK && feature.kind != LEAT_FEATURE_NONE)
		status = leat_feature_count(&feature, &n, &err);
	if (status == LEAT_OK && feature.kind == LEAT_FEATURE_INT64)
		status = leat_feature_int64s(&feature, ints, n, &err);
	if (status == LEAT_OK && feature.kind == LEAT_FEATURE_FLOAT)
		status = leat_feature_floats(&feature, floats, n, &err);
	if (status == LEAT_OK && feature.kind == LEAT_FEATURE_BYTES)
		status = leat_feature_bytes(&feature, &bytes, &len, &err);
	assert_int_equal(status, LEAT_DATA);
	if (!strstr(err.text, "the record is no tf.train.Example") || !strstr(err.text, part))
		fail_msg("'%s' does not say '%s'", err.text, part);
}

static void
what_is_no_example_is_refused_with_the_reason(void **state)
{
	struct bytes long_number = field(1, RAW("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"));
	struct bytes longer_number = field(1, RAW("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00"));

	(void)state;
	check_damaged(RAW("\xff\xd8\xff\xe0\x00\x10JFIF"), "a ");
	check_damaged(RAW("\x0a"), "a number is cut off");
	check_damaged(RAW("\x0a\x05"), "a length is beyond the end");
	check_damaged(RAW("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), "a length is beyond the end");
	check_damaged(RAW("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"), "more than 64 bits");
	check_damaged(RAW("\x02\x00"), "no valid number");
	check_damaged(RAW("\x82\x80\x80\x80\x80\x80\x01\x00"), "no valid number");
	check_damaged(RAW("\x0b\x0c"), "no valid type");
	check_damaged(RAW("\x0e"), "no valid type");
	check_damaged(RAW("\x11"
	                  "1234"),
	              "a length is beyond the end");
	check_damaged(RAW("\x08\x01"), "its features have the wrong type");
	check_damaged(field(1, RAW("\x08\x01")), "a feature has the wrong type");
	check_damaged(field(1, field(1, RAW("\x08\x01"))), "a key or feature has the wrong type");
	check_damaged(field(1, field(1, join(field(1, RAW("x")), field(1, RAW("x"))))), "two keys");
	check_damaged(example_of(RAW("\x18\x01")), "a list has the wrong type");
	check_damaged(example_of(join(one_int64(1), one_int64(2))), "two lists");
	check_damaged(example_of(field(LEAT_FEATURE_INT64, long_number)), "more than 64 bits");
	check_damaged(example_of(field(LEAT_FEATURE_INT64, longer_number)), "more than 64 bits");
	check_damaged(example_of(field(LEAT_FEATURE_INT64, field(1, RAW("\x01\x80")))),
	              "a list of integers is cut off");
	check_damaged(example_of(field(LEAT_FEATURE_INT64, RAW("\x0d"
	                                                       "1234"))),
	              "a value has the wrong type");
	check_damaged(example_of(field(LEAT_FEATURE_FLOAT, field(1, RAW("12345")))), "a list of floats is cut off");
	check_damaged(example_of(field(LEAT_FEATURE_FLOAT, RAW("\x08\x01"))), "a value has the wrong type");
	check_damaged(example_of(field(LEAT_FEATURE_BYTES, RAW("\x08\x01"))), "a value has the wrong type");
	check_damaged(example_of(field(LEAT_FEATURE_BYTES, RAW(""))), "is empty");
}

/* ---- written and read, and the same by another program ---- */

static void
add_known(struct leat_example *example, int64_t i)
{
	unsigned char image[200];
	int64_t label = i % 2 ? -i * i : i * i, tokens[40];
	float box[] = {(float)i, (float)i / 4, -(float)i / 8, (float)i * 1024};

	for (int64_t k = 0; k < i * 5; k++)
		image[k] = (unsigned char)(i * 7 + k);
	for (int64_t k = 0; k < i; k++)
		tokens[k] = ((int64_t)1 << k) - i;
	leat_example_begin(example);
	if (i == 0)
		return;
	leat_example_add_bytes(example, "image", image, (size_t)(i * 5));
	leat_example_add_int64s(example, "label", &label, 1);
	leat_example_add_int64s(example, "tokens", tokens, (size_t)i);
	leat_example_add_floats(example, "box", box, 4);
}

static void
run(const char *command, const char *argument, const char *output)
{
	char line[1200];

	snprintf(line, sizeof(line), "python3 tests/tfrecord_oracle.py %s '%s' > '%s'", command, argument, output);
	assert_int_equal(system(line), 0);
}

static void
python_reads_what_we_write_and_wrote_the_same(void **state)
{
	struct leat_tfrecord_writer writer;
	struct leat_example example;
	struct temp temp;
	unsigned char *ours, *theirs;
	char one[200], two[200], out[200];
	size_t ours_len, theirs_len;

	(void)state;
	temp_make(&temp);
	strcpy(one, temp_path(&temp, "ours"));
	strcpy(two, temp_path(&temp, "theirs"));
	leat_example_init(&example, &mem, 1 << 20);
	assert_int_equal(leat_tfrecord_writer_open(&writer, one, &mem, &err), LEAT_OK);
	for (int64_t i = 0; i < 40; i++) {
		const void *record;
		size_t len;

		add_known(&example, i);
		assert_int_equal(leat_example_finish(&example, &record, &len, &err), LEAT_OK);
		assert_int_equal(leat_tfrecord_writer_append(&writer, record, len, &err), LEAT_OK);
	}
	leat_example_free(&example);
	assert_int_equal(leat_tfrecord_writer_close(&writer, &err), LEAT_OK);
	run("write", two, "/dev/null");
	strcpy(out, temp_path(&temp, "ours.txt"));
	run("dump", one, out);
	ours = temp_read(out, &ours_len);
	strcpy(out, temp_path(&temp, "theirs.txt"));
	run("dump", two, out);
	theirs = temp_read(out, &theirs_len);
	assert_int_equal(ours_len, theirs_len);
	assert_memory_equal(ours, theirs, ours_len);
	assert_true(ours_len > 5000);
	free(ours);
	free(theirs);
	temp_remove(&temp);
}

static void
an_example_that_is_too_long_is_refused(void **state)
{
	struct leat_example example;
	const void *record;
	size_t len;
	char big[200] = {0};

	(void)state;
	leat_example_init(&example, &mem, 100);
	leat_example_begin(&example);
	leat_example_add_bytes(&example, "x", big, sizeof(big));
	assert_int_equal(leat_example_finish(&example, &record, &len, &err), LEAT_LIMIT);
	leat_example_begin(&example); /* and can be used again */
	leat_example_add_bytes(&example, "x", big, 1);
	assert_int_equal(leat_example_finish(&example, &record, &len, &err), LEAT_OK);
	leat_example_free(&example);
}

/* ---- the op ---- */

static const struct leat_op *op;
static struct leat_spec spec;
static void *params;
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
	memset(&schema, 0, sizeof(schema));
	leat_schema_add(&schema, "before", LEAT_I32);
	record = leat_schema_add(&schema, "record", LEAT_U8);
	record->ndim = 1;
	record->shape[0] = -1;
	leat_schema_add(&schema, "behind", LEAT_I64);
	if (op->infer_all(params, &schema, &err) != LEAT_OK)
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
	status = op->run_all(params, &work, &err);
	assert_int_equal(status, err.status);
	if (status != LEAT_OK)
		return status;
	assert_ptr_equal(sample.field[0].data, &spec);
	assert_ptr_equal(sample.field[1].data, &schema);
	assert_int_equal(sample.count, schema.count);
	for (int i = 0; i < sample.count; i++) { /* what the schema said is what came */
		assert_int_equal(sample.field[i].dtype, schema.field[i].dtype);
		assert_int_equal(sample.field[i].ndim, schema.field[i].ndim);
		for (int k = 0; k < sample.field[i].ndim; k++)
			assert_true(schema.field[i].shape[k] < 0 ||
			            schema.field[i].shape[k] == sample.field[i].shape[k]);
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
	run("write", path, "/dev/null");
	source_params.patterns = (struct leat_strings){1, &path};
	must_open_op("example(tokens=int64[], image=bytes, box=float[2, 2], label=int64(default=-7), "
	             "none=float(default=0.5))");
	assert_int_equal(leat_source_open(&source, kind, &source_params, 1, &mem, NULL, &err), LEAT_OK);
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
		assert_int_equal(source.kind->unpack(&source, i, &extent, bytes, bytes + 12, bytes + extent.length - 4,
		                                     &record, &err),
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
	assert_string_equal(schema.field[0].name, "before");
	assert_string_equal(schema.field[1].name, "behind");
	assert_string_equal(schema.field[2].name, "image");
	assert_string_equal(leat_field_format(&schema.field[2], text, sizeof(text)), "uint8[?]");
	assert_string_equal(leat_field_format(&schema.field[3], text, sizeof(text)), "uint8[16]");
	assert_string_equal(leat_field_format(&schema.field[4], text, sizeof(text)), "int64");
	assert_string_equal(leat_field_format(&schema.field[5], text, sizeof(text)), "int64[?]");
	assert_string_equal(leat_field_format(&schema.field[6], text, sizeof(text)), "float32[4]");
	assert_string_equal(leat_field_format(&schema.field[7], text, sizeof(text)), "float32[2, 3, 1, 5]");
	close_op();
}

static void
a_pipeline_without_records_is_refused(void **state)
{
	(void)state;
	assert_int_equal(open_op("example(image=bytes)"), LEAT_OK);
	memset(&schema, 0, sizeof(schema));
	leat_schema_add(&schema, "record", LEAT_F32);
	assert_int_equal(op->infer_all(params, &schema, &err), LEAT_SPEC);
	assert_non_null(strstr(err.text, "needs a field 'record'"));
	leat_err_clear(&err);
	memset(&schema, 0, sizeof(schema));
	leat_schema_add(&schema, "image", LEAT_F32);
	leat_schema_add(&schema, "record", LEAT_U8)->ndim = 1;
	assert_int_equal(op->infer_all(params, &schema, &err), LEAT_SPEC);
	assert_non_null(strstr(err.text, "there is one already"));
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
	                "the record has no feature 'lable', did you mean 'label'? It has 'label', 'image/encoded'");
	check_run_fails("example(other=int64)", join(label, image),
	                "the record has no feature 'other', and no default is given; it has 'label', 'image/encoded'");
	check_run_fails("example(x=int64)", RAW(""),
	                "the record has no feature 'x', and no default is given; it has no features");
	check_run_fails("example(label=float)", label, "feature 'label' has 1 int64 value, expected 1 float value");
	check_run_fails("example(box=float)", floats, "feature 'box' has 2 float values, expected 1 float value");
	check_run_fails("example(box=float[4])", floats, "feature 'box' has 2 float values, expected 4 float values");
	check_run_fails("example(box=int64[])", floats,
	                "feature 'box' has 2 float values, expected any number of int64 values");
	check_run_fails("example(names=bytes)", names, "feature 'names' has 2 byte strings, expected 1 byte string");
	check_run_fails("example(a=bytes[4](key='image/encoded'))", image,
	                "feature 'image/encoded' has 3 bytes, expected 4");
	check_run_fails("example(label=int64)", RAW("\x0a\x7f"),
	                "the record is no tf.train.Example: a length is beyond the end");
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
	assert_non_null(strstr(err.text, "'a?b?'"));
	record.len = 0;
	for (char c = 'A'; c < 'A' + 30; c++)
		record = join(record, entry((char[]){c, c, c, '\0'}, RAW("")));
	record = field(1, record);
	assert_int_equal(run_op(record.data, record.len), LEAT_DATA);
	assert_non_null(strstr(err.text, "'XXX' and 6 more"));
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
	char text[2000] = "example(";

	(void)state;
	check_refused("example", "needs at least one feature");
	check_refused("example(bytes)", "a feature needs a name: write NAME=bytes");
	check_refused("example(image=byte)", "did you mean 'bytes'?");
	check_refused("example(image=string)", "must be bytes, int64 or float");
	check_refused("example(image='bytes')", "must be bytes, int64 or float");
	check_refused("example(a=int64, a=float)", "field 'a' is given twice");
	check_refused("example(a=bytes[])", "write bytes for a string of any length");
	check_refused("example(a=bytes[2,3])", "write bytes for a string of any length");
	check_refused("example(a=float[1,2,3,4,5])", "at most 4 dimensions");
	check_refused("example(a=float[0])", "a dimension must be a whole number from 1 on");
	check_refused("example(a=float[-1])", "a dimension must be a whole number from 1 on");
	check_refused("example(a=float[1.5])", "a dimension must be a whole number from 1 on");
	check_refused("example(a=float[4k])", "a dimension must be a whole number from 1 on");
	check_refused("example(a=float[n])", "a dimension must be a whole number from 1 on");
	check_refused("example(a=float[1000000000,1000000000])", "a dimension must be a whole number from 1 on");
	check_refused("example(a=float[100000,100000])", "values in all at most");
	check_refused("example(a=int64(defualt=1))", "did you mean 'default'?");
	check_refused("example(a=int64(5))", "takes default=... and key=...");
	check_refused("example(a=int64(default=1, default=2))", "'default' is given twice");
	check_refused("example(a=int64(key=b, key=c))", "'key' is given twice");
	check_refused("example(a=int64(key=5))", "a key must be a string");
	check_refused("example(a=int64(default=1.5))", "must be a whole number");
	check_refused("example(a=int64(default=9223372036854775808))", "must be a whole number below 2^63");
	check_refused("example(a=int64(default='1'))", "must be a whole number");
	check_refused("example(a=float(default=1e39))", "that a float can hold");
	check_refused("example(a=float(default=[1]))", "must be a number");
	check_refused("example(a=float[](default=1))", "must be a list");
	check_refused("example(a=float[3](default=[1, 2]))", "or a list with one for each");
	check_refused("example(a=float[2](default=[1, b]))", "that a float can hold");
	check_refused("example(a=bytes(default=5))", "must be a string in quotes");
	check_refused("example(a=bytes[2](default='abc'))", "has 3 bytes, not 2");
	check_refused("example(a123456789b123456789c123456789d123456789e123456789f123456789g123=int64)", "at most 63");
	for (int i = 0; i < 65; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "f%d=int64,", i);
	strcat(text, ")");
	check_refused(text, "takes 64 features at most");
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
		CASE(numbers_are_read_packed_and_not),
		CASE(byte_strings_stay_in_the_record),
		CASE(protobuf_is_read_as_protobuf_says),
		CASE(what_is_no_example_is_refused_with_the_reason),
		CASE(python_reads_what_we_write_and_wrote_the_same),
		CASE(an_example_that_is_too_long_is_refused),
		CASE(features_that_python_wrote_become_fields),
		CASE(fields_have_the_types_and_shapes_that_were_asked_for),
		CASE(a_pipeline_without_records_is_refused),
		CASE(defaults_stand_for_what_is_missing),
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
