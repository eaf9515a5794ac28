/* test_feed_dlpack.c - a batch's memory for other frameworks: the layout is DLPack's, and it outlives batch and feed */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dlpack/dlpack.h>

/* Ours under another name, to be compared with the original. */
#define DLManagedTensor leat_dl_managed_tensor
#include "feed/dlpack.h"
#undef DLManagedTensor

#include "leat.h"
#include "support/data.h"
#include "support/trace.h"

#define SAME_SIZE(a, b) _Static_assert(sizeof(a) == sizeof(b), #a " is as large as " #b)
#define SAME_PLACE(a, am, b, bm) _Static_assert(offsetof(a, am) == offsetof(b, bm), #am " lies where " #bm " lies")

SAME_SIZE(struct leat_dl_tensor, DLTensor);
SAME_PLACE(struct leat_dl_tensor, data, DLTensor, data);
SAME_PLACE(struct leat_dl_tensor, device.type, DLTensor, device.device_type);
SAME_PLACE(struct leat_dl_tensor, device.id, DLTensor, device.device_id);
SAME_PLACE(struct leat_dl_tensor, ndim, DLTensor, ndim);
SAME_PLACE(struct leat_dl_tensor, dtype.code, DLTensor, dtype.code);
SAME_PLACE(struct leat_dl_tensor, dtype.bits, DLTensor, dtype.bits);
SAME_PLACE(struct leat_dl_tensor, dtype.lanes, DLTensor, dtype.lanes);
SAME_PLACE(struct leat_dl_tensor, shape, DLTensor, shape);
SAME_PLACE(struct leat_dl_tensor, strides, DLTensor, strides);
SAME_PLACE(struct leat_dl_tensor, byte_offset, DLTensor, byte_offset);
SAME_SIZE(struct leat_dl_managed_tensor, struct DLManagedTensor);
SAME_PLACE(struct leat_dl_managed_tensor, tensor, struct DLManagedTensor, dl_tensor);
SAME_PLACE(struct leat_dl_managed_tensor, manager, struct DLManagedTensor, manager_ctx);
SAME_PLACE(struct leat_dl_managed_tensor, deleter, struct DLManagedTensor, deleter);
enum { DL_BOOL = 6 }; /* kDLBool, which headers before 0.8 lack */

_Static_assert((int)LEAT_DL_CPU == (int)kDLCPU, "the CPU's number");
_Static_assert((int)LEAT_DL_INT == (int)kDLInt && (int)LEAT_DL_UINT == (int)kDLUInt &&
                       (int)LEAT_DL_FLOAT == (int)kDLFloat && (int)LEAT_DL_BFLOAT == (int)kDLBfloat &&
                       (int)LEAT_DL_BOOL == DL_BOOL,
               "the types' numbers");

static const size_t counts[] = {30};
static struct data data;
static struct leat_options options;

static int
setup(void **state)
{
	(void)state;
	data_make(&data, 1, counts, NULL);
	trace_options(&options);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	data_remove(&data);
	return 0;
}

static struct leat_feed *
open_feed(const char *rest)
{
	char spec[800];

	snprintf(spec, sizeof spec, "%s | example(image=bytes, label=int64, tokens=int64[]) | %s", data_source(&data),
	         rest);
	return trace_open(spec, &options);
}

static struct DLManagedTensor *export(struct leat_batch *batch, const char *name, enum leat_part part)
{
	struct DLManagedTensor *tensor;
	struct leat_err err;

	if (leat_batch_dlpack(batch, name, part, &tensor, &err) != LEAT_OK)
		fail_msg("%s", err.text);
	assert_int_equal(tensor->dl_tensor.device.device_type, kDLCPU);
	assert_int_equal(tensor->dl_tensor.device.device_id, 0);
	assert_int_equal(tensor->dl_tensor.dtype.lanes, 1);
	assert_null(tensor->dl_tensor.strides); /* row by row without gaps */
	assert_int_equal(tensor->dl_tensor.byte_offset, 0);
	return tensor;
}

static void
check(struct DLManagedTensor *tensor, int code, int bits, int ndim, const int64_t *shape)
{
	assert_int_equal(tensor->dl_tensor.dtype.code, code);
	assert_int_equal(tensor->dl_tensor.dtype.bits, bits);
	assert_int_equal(tensor->dl_tensor.ndim, ndim);
	for (int i = 0; i < ndim; i++)
		assert_int_equal(tensor->dl_tensor.shape[i], shape[i]);
	tensor->deleter(tensor);
}

static void
tensors_say_what_they_hold(void **state)
{
	static const struct {
		const char *dtype;
		int code;
		int bits;
	} types[] = {{"uint8", kDLUInt, 8},     {"int32", kDLInt, 32},       {"int64", kDLInt, 64},
	             {"float16", kDLFloat, 16}, {"bfloat16", kDLBfloat, 16}, {"float32", kDLFloat, 32},
	             {"float64", kDLFloat, 64}, {"bool", DL_BOOL, 8},        {"int8", kDLInt, 8},
	             {"int16", kDLInt, 16},     {"uint16", kDLUInt, 16},     {"uint32", kDLUInt, 32},
	             {"uint64", kDLUInt, 64}};

	(void)state;
	for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
		struct leat_batch *batch;
		struct leat_feed *feed;
		char rest[200];

		snprintf(rest, sizeof rest, "decode | resize(5, 6) | cast(%s) | batch(7)", types[i].dtype);
		feed = open_feed(rest);
		assert_int_equal(leat_next(feed, &batch, NULL), LEAT_OK);
		check(export(batch, "image", LEAT_PART_DATA), types[i].code, types[i].bits, 4, (int64_t[]){7, 5, 6, 3});
		check(export(batch, "label", LEAT_PART_DATA), kDLInt, 64, 1, (int64_t[]){7});
		check(export(batch, "tokens", LEAT_PART_DATA), kDLInt, 64, 1, (int64_t[]){0 + 1 + 2 + 3 + 4 + 5 + 6});
		check(export(batch, "tokens", LEAT_PART_OFFSETS), kDLInt, 64, 1, (int64_t[]){8});
		leat_release(batch);
		leat_close(feed);
	}
}

static void
images_of_several_sizes_come_with_offsets_and_shapes(void **state)
{
	struct leat_feed *feed = open_feed("decode | batch(7)");
	struct leat_batch *batch;
	int64_t values = 0;

	(void)state;
	assert_int_equal(leat_next(feed, &batch, NULL), LEAT_OK);
	for (int64_t k = 0; k < 7; k++)
		values += (30 + k * 7 % 13) * (24 + k * 5 % 11) * 3;
	check(export(batch, "image", LEAT_PART_DATA), kDLUInt, 8, 1, &values);
	check(export(batch, "image", LEAT_PART_OFFSETS), kDLInt, 64, 1, (int64_t[]){8});
	check(export(batch, "image", LEAT_PART_SHAPES), kDLInt, 64, 2, (int64_t[]){7, 3});
	leat_release(batch);
	leat_close(feed);
}

static void
tensors_are_the_batch_s_own_memory(void **state)
{
	struct leat_feed *feed = open_feed("decode | batch(7)");
	struct DLManagedTensor *data_part, *offsets, *shapes;
	struct leat_tensor tensor;
	struct leat_batch *batch;

	(void)state;
	assert_int_equal(leat_next(feed, &batch, NULL), LEAT_OK);
	assert_int_equal(leat_batch_field(batch, "image", &tensor, NULL), LEAT_OK);
	data_part = export(batch, "image", LEAT_PART_DATA);
	offsets = export(batch, "image", LEAT_PART_OFFSETS);
	shapes = export(batch, "image", LEAT_PART_SHAPES);
	assert_ptr_equal(data_part->dl_tensor.data, tensor.data);
	assert_ptr_equal(offsets->dl_tensor.data, tensor.offsets);
	assert_ptr_equal(shapes->dl_tensor.data, tensor.sample_shapes);
	assert_int_equal(tensor.sample_shapes[3], 24 + 5);
	assert_int_equal(tensor.sample_shapes[4], 30 + 7);
	data_part->deleter(data_part);
	offsets->deleter(offsets);
	shapes->deleter(shapes);
	leat_release(batch);
	leat_close(feed);
}

static void *delete (void *arg)
{
	struct DLManagedTensor *tensor = arg;

	tensor->deleter(tensor);
	return NULL;
}

/* A framework may keep a tensor as long as it likes, and give it back in any thread. */
static void
tensors_outlive_batch_and_feed(void **state)
{
	struct leat_feed *feed = open_feed("decode | resize(5, 6) | batch(7)");
	struct DLManagedTensor *image, *label;
	struct leat_batch *batch, *other;
	pthread_t thread;
	float first[5 * 6 * 3];

	(void)state;
	assert_int_equal(leat_next(feed, &batch, NULL), LEAT_OK);
	image = export(batch, "image", LEAT_PART_DATA);
	label = export(batch, "label", LEAT_PART_DATA);
	memcpy(first, image->dl_tensor.data, sizeof first);
	leat_release(batch);
	for (int i = 0; i < 4; i++) { /* its memory is not used for others */
		assert_int_equal(leat_next(feed, &other, NULL), LEAT_OK);
		assert_ptr_not_equal(other, batch);
		leat_release(other);
	}
	assert_int_equal(((int64_t *)label->dl_tensor.data)[6], 6);
	leat_close(feed);
	label->deleter(label);
	assert_memory_equal(first, image->dl_tensor.data, sizeof first);
	memset(image->dl_tensor.data, 0, 7 * sizeof first); /* it is writable */
	assert_int_equal(pthread_create(&thread, NULL, delete, image), 0);
	pthread_join(thread, NULL);
}

static void
refused(struct leat_batch *batch, const char *name, enum leat_part part, const char *expected)
{
	struct DLManagedTensor *tensor;
	struct leat_err err;

	assert_int_equal(leat_batch_dlpack(batch, name, part, &tensor, &err), LEAT_INVALID);
	assert_null(tensor);
	assert_string_equal(err.text, expected);
}

static void
parts_that_are_not_there_are_refused(void **state)
{
	struct leat_feed *feed = open_feed("decode | resize(5, 6) | batch(7)");
	struct leat_batch *batch;

	(void)state;
	assert_int_equal(leat_next(feed, &batch, NULL), LEAT_OK);
	refused(batch, "lable", LEAT_PART_DATA, "a batch has no field 'lable', did you mean 'label'?");
	refused(batch, "image", LEAT_PART_OFFSETS, "field 'image' has no offsets: every sample has the same shape");
	refused(batch, "image", LEAT_PART_SHAPES, "field 'image' has no shapes: every sample has the same shape");
	refused(batch, "tokens", LEAT_PART_SHAPES, "field 'tokens' has no shapes: its offsets give its only dimension");
	refused(batch, "image", (enum leat_part)3, "a field has no part 3");
	leat_release(batch);
	leat_close(feed);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tensors_say_what_they_hold),
		cmocka_unit_test(images_of_several_sizes_come_with_offsets_and_shapes),
		cmocka_unit_test(tensors_are_the_batch_s_own_memory),
		cmocka_unit_test(tensors_outlive_batch_and_feed),
		cmocka_unit_test(parts_that_are_not_there_are_refused),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
