/* test_pass.c - fused ops give what they give one by one, in every bit */
#include "support/bench.h"

#include "image/pass.h"
#include "support/trace.h"

enum { MAX_CHAIN = 9, MAX_SIDE = 40, CHAINS = TEST_SLOW ? 1500 : 6000 };

/* What chains are made of beside the examples of all ops that can be fused. */
static const char *const more[] = {
	"resize(9, 13)",
	"resize(17, 8, mode=torch)",
	"resize(12, 12, method=nearest)",
	"resize(11, 30, method=nearest, mode=torch)",
	"resize(10, 7, antialias=true)",
	"resize(10, 7, mode=torch, antialias=true)",
	"resize(21, 19, method=bicubic)",
	"resize(8, 9, method=area)",
	"resize(14, 15, method=lanczos, mode=torch, antialias=true)",
	"random_resized_crop(10, 12)",
	"random_resized_crop(16, 8, mode=torch, antialias=true)",
	"crop(1, 2, 5, 4)",
	"crop(0, 0, 3, 3)",
	"center_crop(6, 7)",
	"center_crop(30, 9)",
	"random_crop(7, 6, pad_if_needed=true)",
	"random_crop(12, 9, padding=3, pad_if_needed=true, fill=7)",
	"pad(top=1, right=2, mode=edge)",
	"pad(all=3, fill=9)",
	"flip",
	"flip(vertical)",
	"random_flip(probability=1)",
	"random_flip(vertical)",
	"rotate(40deg, fill=3)",
	"random_rotate(90deg)",
	"scale(1/255)",
	"scale(3)",
	"normalize(mean=0.5, std=0.25)",
	"random_brightness(0.2)",
	"random_contrast(0.5, 1.5)",
	"cast(float32)",
	"cast(float16)",
	"cast(bfloat16)",
	"cast(uint8)",
	"layout(chw)",
	"layout(hwc)",
};

struct call {
	const char *text;
	struct leat_spec spec;
	const struct leat_op *op;
	void *params;
};

static struct bench alone, fused;
static struct leat_rng dice;
static const char *texts[256];
static int text_count;
static unsigned long settled, passes;

static int
set_up(void **state)
{
	(void)state;
	bench_open(&alone);
	bench_open(&fused);
	leat_rng_init(&dice, 5, 0, 0, 0);
	for (const struct leat_op *const *op = leat_ops; *op; op++)
		if (leat_op_can_fuse(*op))
			texts[text_count++] = (*op)->example;
	for (size_t i = 0; i < sizeof(more) / sizeof(*more); i++)
		texts[text_count++] = more[i];
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	bench_close(&alone);
	bench_close(&fused);
	return 0;
}

static int64_t
draw(int64_t below)
{
	return (int64_t)leat_rng_below(&dice, (uint64_t)below);
}

static void
prepare(struct call *call, const char *text)
{
	call->text = text;
	assert_int_equal(leat_spec_parse(&call->spec, text, &alone.mem, &alone.err), LEAT_OK);
	call->op = leat_op_find(call->spec.call[0].name);
	assert_non_null(call->op);
	call->params = leat_alloc(&alone.mem, call->op->params_size);
	assert_int_equal(
		leat_opts_set(call->op->opts, call->params, call->spec.call, call->spec.text, &alone.mem, &alone.err),
		LEAT_OK);
}

static void
discard(struct call *call)
{
	leat_opts_free(call->op->opts, call->params, &alone.mem);
	leat_free(&alone.mem, call->params);
	leat_spec_free(&call->spec);
}

/* One after the other; an op that does not fit what there is is left out. */
static enum leat_status
run_alone(struct call *chain, int *count)
{
	enum leat_status status = LEAT_OK;
	int kept = 0;

	for (int i = 0; i < *count && status == LEAT_OK; i++) {
		status = bench_run_op(&alone, chain[i].op, chain[i].params);
		if (status == LEAT_SPEC) {
			discard(&chain[i]);
			status = LEAT_OK;
			continue;
		}
		chain[kept++] = chain[i];
		if (status != LEAT_OK)
			for (int k = i + 1; k < *count; k++)
				discard(&chain[k]);
	}
	*count = kept;
	return status;
}

/* As the engine fuses them. */
static enum leat_status
run_joined(const struct call *chain, int count)
{
	enum leat_status status = LEAT_OK;
	struct leat_pass pass;
	bool open = false;

	for (int i = 0; i < count && status == LEAT_OK; i++) {
		const struct leat_op *op = chain[i].op;

		leat_rng_init(&fused.work.rng, 7, 0, fused.position, leat_stream(op->name, 0));
		if (open) {
			status = leat_fuse_add(op, chain[i].params, &fused.work, &pass, &fused.err);
		} else if (leat_op_can_start_fusion(op, fused.sample.field[0].dtype, fused.layout)) {
			open = true;
			status = leat_fuse_begin(op, chain[i].params, &fused.work, 0, &pass, &fused.err);
		} else {
			status = bench_run_op(&fused, op, chain[i].params);
		}
	}
	if (open && status == LEAT_OK)
		status = leat_fuse_finish(&pass, &fused.work, 0, &fused.err);
	if (open)
		leat_pass_drop(&pass);
	if (open && status == LEAT_OK) {
		passes++;
		settled += pass.passes - 1;
	}
	return status;
}

static void
compare(const struct call *chain, int count, enum leat_status status)
{
	const struct leat_datum *a = &alone.sample.field[0], *b = &fused.sample.field[0];
	enum leat_status other = run_joined(chain, count);
	bool same = status == other;

	if (same && status == LEAT_OK)
		same = a->dtype == b->dtype && a->ndim == b->ndim &&
		       memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof(*a->shape)) == 0 &&
		       memcmp(a->data, b->data, leat_datum_bytes(a)) == 0;
	if (same)
		return;
	for (int i = 0; i < count; i++)
		print_message("%s%s", i ? " | " : "", chain[i].text);
	fail_msg(": fused they give something else (%d, %d: %s)", status, other, fused.err.text);
}

static void
put_same(const void *data, enum leat_dtype dtype, int64_t height, int64_t width, int64_t channels)
{
	bench_put_image(&alone, data, dtype, height, width, channels);
	bench_put_image(&fused, data, dtype, height, width, channels);
}

static void
put_random_image(void)
{
	static union {
		uint8_t bytes[MAX_SIDE * MAX_SIDE * 4];
		float floats[MAX_SIDE * MAX_SIDE * 4];
	} data;
	const int64_t height = 1 + draw(MAX_SIDE), width = 1 + draw(MAX_SIDE), channels = 1 + draw(4);
	const bool bytes = draw(3) > 0;

	for (int64_t i = 0; i < height * width * channels; i++) {
		if (bytes)
			data.bytes[i] = (uint8_t)draw(256);
		else
			data.floats[i] = leat_rng_uniform(&dice, -2, 300);
	}
	put_same(&data, bytes ? LEAT_U8 : LEAT_F32, height, width, channels);
}

/* Of files that other tests have in golden folders. */
static void
put_random_file(void)
{
	static const char *const paths[] = {GOLDEN "tf/420.jpg", GOLDEN "tf/444.jpg", GOLDEN "tf/gray.jpg",
	                                    GOLDEN "tf/gray-alpha.png"};
	unsigned char *bytes;
	size_t size;

	bytes = bench_read(paths[draw(4)], &size);
	bench_put_bytes(&alone, bytes, size);
	bench_put_bytes(&fused, bytes, size);
	free(bytes);
}

static void
random_chains_are_the_same_joined(void **state)
{
	(void)state;
	for (int n = 0; n < CHAINS; n++) {
		struct call chain[MAX_CHAIN] = {0};
		int count = 1 + (int)draw(MAX_CHAIN - 1), first = 0;
		enum leat_status status;

		alone.position = fused.position = (uint64_t)n;
		if (n % 3 == 0) {
			put_random_file();
			prepare(&chain[first++], draw(2) ? "decode" : "decode(mode=torch)");
		} else {
			put_random_image();
		}
		for (int i = first; i < count; i++)
			prepare(&chain[i], texts[draw(text_count)]);
		count = count > first ? count : first;
		status = run_alone(chain, &count);
		compare(chain, count, status);
		for (int i = 0; i < count; i++)
			discard(&chain[i]);
	}
	print_message("%lu fused, %lu of their results settled on the way\n", passes, settled);
	assert_true(passes > CHAINS / 2);
}

/* What people use must not fall apart into more passes. */
static unsigned
passes_of(const char *const *text, int count, const char *path)
{
	struct leat_pass pass;
	struct call call;
	unsigned char *bytes;
	size_t size;

	bytes = bench_read(path, &size);
	bench_put_bytes(&fused, bytes, size);
	free(bytes);
	for (int i = 0; i < count; i++) {
		prepare(&call, text[i]);
		leat_rng_init(&fused.work.rng, 7, 0, 0, leat_stream(call.op->name, 0));
		if (i == 0)
			assert_int_equal(leat_fuse_begin(call.op, call.params, &fused.work, 0, &pass, &fused.err),
			                 LEAT_OK);
		else
			assert_int_equal(leat_fuse_add(call.op, call.params, &fused.work, &pass, &fused.err), LEAT_OK);
		discard(&call);
	}
	assert_int_equal(leat_fuse_finish(&pass, &fused.work, 0, &fused.err), LEAT_OK);
	return pass.passes;
}

static void
usual_chains_are_one_pass(void **state)
{
	static const char *const crops[] = {"decode",
	                                    "random_resized_crop(8, 8, mode=torch, antialias=true)",
	                                    "random_flip",
	                                    "scale(1/255)",
	                                    "normalize(mean=0.5, std=0.25)",
	                                    "layout(chw)",
	                                    "cast(float16)"};
	static const char *const valid[] = {"decode", "resize(20, 20)", "center_crop(8, 8)", "scale(1/255)"};
	static const char *const cells[] = {"decode",
	                                    "resize(10, 10)",
	                                    "scale(1/255)",
	                                    "random_flip",
	                                    "rotate(40deg)",
	                                    "random_brightness(0.2)",
	                                    "random_contrast(0.8, 1.2)"};

	(void)state;
	assert_int_equal(passes_of(crops, 7, GOLDEN "tf/420.jpg"), 1);
	assert_int_equal(passes_of(valid, 4, GOLDEN "tf/420.jpg"), 1);
	assert_int_equal(passes_of(cells, 7, GOLDEN "tf/420.jpg"), 3);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_chains_are_the_same_joined),
		cmocka_unit_test(usual_chains_are_one_pass),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
