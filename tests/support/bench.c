/* bench.c - see bench.h */
#include "bench.h"

#include "record.h"

void
bench_open(struct bench *bench)
{
	memset(bench, 0, sizeof(*bench));
	leat_mem_init(&bench->mem, SIZE_MAX);
	assert_int_equal(leat_scratch_open(&bench->scratch, &bench->mem, BENCH_SCRATCH), 0);
	bench->work = (struct leat_work){.sample = &bench->sample, .scratch = &bench->scratch, .max_pixels = 1 << 20};
}

void
bench_close(struct bench *bench)
{
	leat_scratch_close(&bench->scratch, &bench->mem);
	assert_int_equal(bench->mem.used, 0);
}

void
bench_put(struct bench *bench, const void *data, enum leat_dtype dtype, int ndim, const int64_t *shape,
          enum leat_layout layout)
{
	struct leat_datum *datum = &bench->sample.field[0];

	leat_scratch_reset(&bench->scratch);
	leat_err_clear(&bench->err);
	*datum = (struct leat_datum){.dtype = dtype, .ndim = ndim};
	memcpy(datum->shape, shape, (size_t)ndim * sizeof(*shape));
	datum->data = leat_scratch_alloc(&bench->scratch, leat_datum_bytes(datum));
	assert_non_null(datum->data);
	memcpy(datum->data, data, leat_datum_bytes(datum));
	bench->sample.count = 1;
	bench->layout = layout;
	bench->ragged = false;
}

void
bench_put_image(struct bench *bench, const void *data, enum leat_dtype dtype, int64_t height, int64_t width,
                int64_t channels)
{
	bench_put(bench, data, dtype, 3, (const int64_t[]){height, width, channels}, LEAT_HWC);
}

void
bench_put_bytes(struct bench *bench, const void *data, size_t size)
{
	bench_put(bench, data, LEAT_U8, 1, (const int64_t[]){(int64_t)size}, LEAT_LAYOUT_NONE);
	bench->ragged = true;
}

static struct leat_field
bench_field(const struct bench *bench)
{
	const struct leat_datum *datum = &bench->sample.field[0];
	struct leat_field field = {.name = "x", .dtype = datum->dtype, .ndim = datum->ndim};

	memcpy(field.shape, datum->shape, sizeof(field.shape));
	if (bench->ragged)
		field.shape[0] = -1;
	return field;
}

static void
bench_expect(const struct leat_datum *datum, const struct leat_field *field)
{
	assert_int_equal(datum->dtype, field->dtype);
	assert_int_equal(datum->ndim, field->ndim);
	for (int i = 0; i < field->ndim; i++)
		if (field->shape[i] >= 0)
			assert_int_equal(datum->shape[i], field->shape[i]);
}

enum leat_status
bench_run_op(struct bench *bench, const struct leat_op *op, void *params)
{
	struct leat_datum before = bench->sample.field[0];
	size_t bytes = leat_datum_bytes(&before);
	struct leat_field field = bench_field(bench);
	enum leat_layout layout = bench->layout;
	enum leat_status status = LEAT_OK;
	void *copy;

	if (op->check != NULL && (status = op->check(params, &bench->err)) != LEAT_OK)
		return status;
	if (!op->on_field.accepts(&field, layout))
		return leat_fail(&bench->err, LEAT_SPEC, "%s wants %s", op->name, op->on_field.wants);
	if (op->on_field.infer != NULL &&
	    (status = op->on_field.infer(params, &field, &layout, &bench->err)) != LEAT_OK)
		return status;

	leat_rng_init(&bench->work.rng, 7, 0, bench->position, leat_stream(op->name, 0));
	bench->work.layout = bench->layout;
	copy = malloc(bytes + 1);
	assert_non_null(copy);
	memcpy(copy, before.data, bytes);
	if (op->kind == LEAT_OP_POINTWISE) {
		struct leat_affine step[LEAT_MAX_AFFINE];
		struct leat_field whole = field;

		memcpy(whole.shape, before.shape, sizeof(whole.shape));
		int steps = op->on_field.fuse.affine(params, &bench->work.rng, (int)leat_field_channels(&whole, layout),
		                                     step);

		assert_in_range(steps, 1, LEAT_MAX_AFFINE);
		assert_null(op->on_field.run);
		status = leat_work_out(&bench->work, 0, LEAT_F32, before.ndim, before.shape, &bench->err);
		if (status == LEAT_OK)
			leat_affine_apply(&before, &bench->sample.field[0], layout, step, steps);
	} else {
		status = leat_op_run(op, params, &bench->work, 0, &bench->err);
	}
	if (op->on_field.in_place) {
		assert_ptr_equal(bench->sample.field[0].data, before.data);
	} else {
		assert_memory_equal(copy, before.data, bytes);
		if (status == LEAT_OK)
			assert_ptr_not_equal(bench->sample.field[0].data, before.data);
	}
	if (status == LEAT_OK) {
		bench_expect(&bench->sample.field[0], &field);
		bench->layout = layout;
		bench->ragged = false;
	}
	free(copy);
	return status;
}

enum leat_status
bench_run(struct bench *bench, const char *text)
{
	struct leat_spec spec = {0};
	enum leat_status status = leat_spec_parse(&spec, text, &bench->mem, &bench->err);

	record_bench(&bench->sample.field[0], bench->ragged, text);
	for (size_t i = 0; status == LEAT_OK && i < spec.calls; i++) {
		const struct leat_op *op = leat_op_find(spec.call[i].name);
		void *params;

		assert_non_null(op);
		params = leat_alloc(&bench->mem, op->params_size);
		status = leat_opts_set(op->opts, params, &spec.call[i], spec.text, &bench->mem, &bench->err);
		if (status == LEAT_OK) {
			status = bench_run_op(bench, op, params);
			leat_opts_free(op->opts, params, &bench->mem);
		}
		leat_free(&bench->mem, params);
	}
	leat_spec_free(&spec);
	return status;
}

unsigned char *
bench_read(const char *path, size_t *size)
{
	FILE *file = fopen(path, "rb");
	unsigned char *bytes;
	long length;

	if (file == NULL)
		fail_msg("%s cannot be opened", path);
	assert_int_equal(fseek(file, 0, SEEK_END), 0);
	length = ftell(file);
	assert_true(length >= 0);
	rewind(file);
	bytes = malloc((size_t)length + 1);
	assert_non_null(bytes);
	*size = fread(bytes, 1, (size_t)length, file);
	assert_int_equal(*size, length);
	fclose(file);
	return bytes;
}
