/* pictures.h - pictures of odd sizes on the bench, for tests of ops that move or resample pixels */
#ifndef LEAT_TESTS_PICTURES_H
#define LEAT_TESTS_PICTURES_H

#include "bench.h"

#include <math.h>

#include "image/image.h"

enum { PICTURE_SIDE = 24, PICTURE_MOST = PICTURE_SIDE * PICTURE_SIDE * 4 };

static const int64_t picture_sizes[][3] = {{1, 1, 1}, {1, 1, 3}, {1, 7, 4}, {8, 1, 3},  {2, 2, 2},
                                           {3, 5, 3}, {5, 4, 1}, {6, 9, 4}, {17, 16, 3}};
enum { PICTURES = sizeof(picture_sizes) / sizeof(*picture_sizes) };

static struct bench bench;
static uint8_t picture_bytes[PICTURE_MOST];
static float picture_floats[PICTURE_MOST];

static inline int
pictures_open(void **state)
{
	(void)state;
	bench_open(&bench);
	for (size_t i = 0; i < PICTURE_MOST; i++) {
		picture_bytes[i] = (uint8_t)(i * 151 + i / 7 * 29 + i / 256);
		picture_floats[i] = (float)picture_bytes[i] / 256 - 0.25f;
	}
	return 0;
}

static inline int
pictures_close(void **state)
{
	(void)state;
	bench_close(&bench);
	return 0;
}

/* All of them, in both types: for (struct picture p = {0}; next_picture(&p);) */
struct picture {
	int next;
	int64_t h, w, c;
	enum leat_dtype dtype;
};

static inline bool
next_picture(struct picture *p)
{
	const int64_t *size = picture_sizes[p->next / 2];

	if (p->next == 2 * PICTURES)
		return false;
	p->h = size[0];
	p->w = size[1];
	p->c = size[2];
	p->dtype = p->next++ % 2 ? LEAT_F32 : LEAT_U8;
	return true;
}

static inline void
put_picture(const struct picture *p)
{
	assert_true(p->h * p->w * p->c <= PICTURE_MOST);
	bench_put_image(&bench, p->dtype == LEAT_U8 ? (const void *)picture_bytes : picture_floats, p->dtype, p->h,
	                p->w, p->c);
}

static inline void
put_size(int64_t h, int64_t w, int64_t c, enum leat_dtype dtype)
{
	put_picture(&(struct picture){.h = h, .w = w, .c = c, .dtype = dtype});
}

/* What was put, as a number. */
static inline double
picture_at(const struct picture *p, int64_t y, int64_t x, int64_t c)
{
	size_t i = (size_t)((y * p->w + x) * p->c + c);

	return p->dtype == LEAT_U8 ? picture_bytes[i] : (double)picture_floats[i];
}

/* What came out. */
static inline double
result_at(int64_t y, int64_t x, int64_t c)
{
	const struct leat_datum *got = &bench.sample.field[0];
	size_t i = (size_t)((y * got->shape[1] + x) * got->shape[2] + c);

	return got->dtype == LEAT_U8 ? ((uint8_t *)got->data)[i] : (double)((float *)got->data)[i];
}

static inline void
run(const char *spec)
{
	if (bench_run(&bench, spec) != LEAT_OK)
		fail_msg("%s: %s", spec, bench.err.text);
}

static inline void __attribute__((format(printf, 1, 2))) runf(const char *fmt, ...)
{
	char spec[300];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(spec, sizeof(spec), fmt, ap);
	va_end(ap);
	run(spec);
}

static inline void
refuse(const char *spec, enum leat_status status, const char *words)
{
	assert_int_equal(bench_run(&bench, spec), status);
	if (strstr(bench.err.text, words) == NULL)
		fail_msg("%s: expected '%s' in: %s", spec, words, bench.err.text);
	leat_err_clear(&bench.err);
}

static inline void
assert_shape(int64_t height, int64_t width, int64_t channels)
{
	const struct leat_datum *got = &bench.sample.field[0];

	assert_int_equal(got->ndim, 3);
	assert_int_equal(got->shape[0], height);
	assert_int_equal(got->shape[1], width);
	assert_int_equal(got->shape[2], channels);
}

static inline void
assert_result(const void *want)
{
	const struct leat_datum *got = &bench.sample.field[0];

	assert_memory_equal(got->data, want, leat_datum_bytes(got));
}

/* The result, to be freed. */
static inline void *
keep_result(void)
{
	size_t bytes = leat_datum_bytes(&bench.sample.field[0]);
	void *copy = malloc(bytes);

	assert_non_null(copy);
	return memcpy(copy, bench.sample.field[0].data, bytes);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, pictures_open, pictures_close)

#endif
