/* test_golden.c - specs give what TensorFlow, torchvision, Pillow and NumPy gave (tests/golden/make_*.py)
 *
 * Cases marked exact agree in every bit, the others within 1e-5 of the value, or 1e-6 of the
 * largest: sums that come out small have been large. */
#include "support/bench.h"

#include <jansson.h>
#include <math.h>

static const char *folder; /* of the cases that run */

/* What numpy.save writes, version 1: magic, length of the header, the header's text, the data. */
static void
parse_npy(const unsigned char *bytes, size_t size, struct leat_datum *datum)
{
	static const struct {
		const char *descr;
		enum leat_dtype dtype;
	} types[] = {{"'|u1'", LEAT_U8}, {"'<f4'", LEAT_F32}, {"'<u2'", LEAT_F16}};
	size_t head = 10u + bytes[8] + 256u * bytes[9];
	char text[256];
	const char *at;
	size_t i = 0;

	assert_true(size >= head && head - 10 < sizeof(text) && !memcmp(bytes, "\x93NUMPY\1", 7));
	memcpy(text, bytes + 10, head - 10);
	text[head - 10] = '\0';
	while (strstr(text, types[i].descr) == NULL)
		assert_true(++i < sizeof(types) / sizeof(*types));
	*datum = (struct leat_datum){.dtype = types[i].dtype};
	for (at = strstr(text, "'shape': (") + 10; *at >= '0' && *at <= '9'; at += strspn(at, ", "))
		datum->shape[datum->ndim++] = strtol(at, (char **)&at, 10);
	assert_int_equal(size - head, leat_datum_bytes(datum));
	datum->data = (void *)(bytes + head); /* 64-byte aligned in the file */
}

static unsigned char *
read_golden(const char *name, size_t *size)
{
	char path[1000];

	snprintf(path, sizeof(path), GOLDEN "%s/%s", folder, name);
	return bench_read(path, size);
}

static void
put_input(struct bench *bench, const char *name)
{
	size_t size;
	unsigned char *bytes = read_golden(name, &size);
	struct leat_datum datum;

	if (strstr(name, ".npy") == NULL) {
		bench_put_bytes(bench, bytes, size);
	} else {
		parse_npy(bytes, size, &datum);
		bench_put(bench, datum.data, datum.dtype, datum.ndim, datum.shape,
		          datum.ndim == 3 ? LEAT_HWC : LEAT_LAYOUT_NONE);
	}
	free(bytes);
}

static bool
is_near(const struct leat_datum *got, const struct leat_datum *want)
{
	const float *a = got->data, *b = want->data;
	float largest = 1;

	for (int64_t i = 0; i < leat_datum_elements(want); i++)
		largest = fmaxf(largest, fabsf(b[i]));
	for (int64_t i = 0; i < leat_datum_elements(want); i++)
		if (!(fabsf(a[i] - b[i]) <= fmaxf(1e-6f * largest, 1e-5f * fabsf(b[i]))))
			return false;
	return true;
}

static bool
agrees(const struct leat_datum *got, const struct leat_datum *want, bool exact)
{
	if (leat_dtype_size(got->dtype) != leat_dtype_size(want->dtype) || got->ndim != want->ndim ||
	    memcmp(got->shape, want->shape, (size_t)want->ndim * sizeof(*want->shape)) != 0)
		return false;
	if (exact)
		return memcmp(got->data, want->data, leat_datum_bytes(want)) == 0;
	return got->dtype == LEAT_F32 && is_near(got, want);
}

static int
run_case(struct bench *bench, const json_t *entry)
{
	const char *name = json_string_value(json_object_get(entry, "name"));
	const char *spec = json_string_value(json_object_get(entry, "spec"));
	struct leat_datum want;
	size_t size;
	unsigned char *bytes = read_golden(json_string_value(json_object_get(entry, "out")), &size);
	int failed = 0;

	parse_npy(bytes, size, &want);
	put_input(bench, json_string_value(json_object_get(entry, "in")));
	if (bench_run(bench, spec) != LEAT_OK) {
		print_error("%s: %s: %s\n", name, spec, bench->err.text);
		failed = 1;
	} else if (!agrees(&bench->sample.field[0], &want, json_is_true(json_object_get(entry, "exact")))) {
		print_error("%s: %s differs\n", name, spec);
		failed = 1;
	}
	free(bytes);
	return failed;
}

static void
run_cases(const char *which, size_t least)
{
	json_error_t error;
	json_t *golden, *entry;
	struct bench bench;
	char path[1000];
	size_t i;
	int failed = 0;

	folder = which;
	snprintf(path, sizeof(path), GOLDEN "%s/cases.json", folder);
	golden = json_load_file(path, 0, &error);
	assert_non_null(golden);
	assert_true(json_array_size(json_object_get(golden, "cases")) > least);
	bench_open(&bench);
	json_array_foreach(json_object_get(golden, "cases"), i, entry) failed += run_case(&bench, entry);
	bench_close(&bench);
	json_decref(golden);
	assert_int_equal(failed, 0);
}

static void
every_case_agrees_with_tensorflow(void **state)
{
	(void)state;
	run_cases("tf", 100);
}

static void
geometry_agrees_with_tensorflow_pillow_and_numpy(void **state)
{
	(void)state;
	run_cases("geometry", 80);
}

static void
colors_agree_with_torchvision(void **state)
{
	(void)state;
	run_cases("torch", 100);
}

static void
decoding_agrees_with_pillow(void **state)
{
	(void)state;
	run_cases("pillow", 30);
}

static void
evaluation_and_masks_agree_with_torchvision_tensorflow_and_pillow(void **state)
{
	(void)state;
	run_cases("eval", 90);
}

static void
webp_images_agree_with_pillow(void **state)
{
	(void)state;
	run_cases("webp", 20);
}

/* Which of the outputs the sample is now; -1: none. */
static int
find_output(const struct leat_datum *outputs, const struct leat_datum *sample)
{
	size_t bytes = leat_datum_bytes(sample);

	for (int64_t i = 0; i < outputs->shape[0]; i++)
		if (memcmp((const char *)outputs->data + (size_t)i * bytes, sample->data, bytes) == 0)
			return (int)i;
	return -1;
}

/* A spec gives each of its outputs, and no other, about as often as it should: within 5 standard deviations. */
static void
run_draws(struct bench *bench, const json_t *entry)
{
	enum { EACH = 60 };
	const char *spec = json_string_value(json_object_get(entry, "spec"));
	const json_t *weights = json_object_get(entry, "weights");
	double outcomes = json_number_value(json_object_get(entry, "outcomes")), draws = EACH * outcomes;
	int hits[200] = {0};
	struct leat_datum outputs;
	size_t size;
	unsigned char *bytes = read_golden(json_string_value(json_object_get(entry, "out")), &size);

	parse_npy(bytes, size, &outputs);
	assert_int_equal(outputs.shape[0], json_array_size(weights));
	assert_true(json_array_size(weights) <= 200);
	for (bench->position = 0; bench->position < (uint64_t)draws; bench->position++) {
		int which;

		put_input(bench, json_string_value(json_object_get(entry, "in")));
		if (bench_run(bench, spec) != LEAT_OK)
			fail_msg("%s: %s", spec, bench->err.text);
		which = find_output(&outputs, &bench->sample.field[0]);
		if (which < 0)
			fail_msg("%s gives at position %u what it should not", spec, (unsigned)bench->position);
		hits[which]++;
	}
	for (size_t i = 0; i < json_array_size(weights); i++) {
		double p = json_number_value(json_array_get(weights, i)) / outcomes, mean = draws * p;

		if (fabs(hits[i] - mean) > 5 * sqrt(mean * (1 - p)))
			fail_msg("%s gives output %zu %d times, expected about %g", spec, i, hits[i], mean);
	}
	bench->position = 0;
	free(bytes);
}

static void
augmentations_are_drawn_as_by_torchvision(void **state)
{
	json_t *golden = json_load_file(GOLDEN "torch/cases.json", 0, NULL), *entry;
	struct bench bench;
	size_t i;

	(void)state;
	folder = "torch";
	assert_int_equal(json_array_size(json_object_get(golden, "draws")), 3);
	bench_open(&bench);
	json_array_foreach(json_object_get(golden, "draws"), i, entry) run_draws(&bench, entry);
	bench_close(&bench);
	json_decref(golden);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_case_agrees_with_tensorflow),
		cmocka_unit_test(geometry_agrees_with_tensorflow_pillow_and_numpy),
		cmocka_unit_test(colors_agree_with_torchvision),
		cmocka_unit_test(decoding_agrees_with_pillow),
		cmocka_unit_test(webp_images_agree_with_pillow),
		cmocka_unit_test(evaluation_and_masks_agree_with_torchvision_tensorflow_and_pillow),
		cmocka_unit_test(augmentations_are_drawn_as_by_torchvision),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
