/* remap.c - pixels that move without changing: flips, rotation to the nearest pixel
 *
 * The element type matters by its size alone. */
#include "image/pixel.h"

#include <math.h>
#include <string.h>

#include "image/cpu.h"
#include "image/plain.h"
#include "image/view.h"

static void
swap_bytes(unsigned char *restrict a, unsigned char *restrict b, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		unsigned char kept = a[i];

		a[i] = b[i];
		b[i] = kept;
	}
}

static inline void
mirror_row(unsigned char *row, size_t width, size_t pixel)
{
	unsigned char *left = row, *right = row + (width - 1) * pixel;

	for (; left < right; left += pixel, right -= pixel)
		swap_bytes(left, right, pixel);
}

/* Pixels [done, width - done) of a row. */
static void
mirror_rest(unsigned char *row, size_t width, size_t pixel, size_t done)
{
	row += done * pixel;
	width -= 2 * done;
	if (pixel == 3) /* lets the compiler unroll the usual ones */
		mirror_row(row, width, 3);
	else if (pixel == 12)
		mirror_row(row, width, 12);
	else
		mirror_row(row, width, pixel);
}

#if LEAT_X86
/* Pixels of 3 bytes, five from each end at a time: a vector holds them and a byte of a neighbor, which stays as it is.
 * The next ones are read before these are written: a read that meets half of a write just made waits long. Returns how
 * many are done at each end; fewer than half. */
LEAT_AVX2 static size_t
mirror_bytes_avx2(unsigned char *row, size_t width)
{
	const __m128i to_left = _mm_setr_epi8(13, 14, 15, 10, 11, 12, 7, 8, 9, 4, 5, 6, 1, 2, 3, -1);
	const __m128i to_right = _mm_setr_epi8(-1, 12, 13, 14, 9, 10, 11, 6, 7, 8, 3, 4, 5, 0, 1, 2);
	const __m128i first = _mm_setr_epi8(-1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
	const __m128i last = _mm_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, -1);
	unsigned char *left = row, *right = row + 3 * width - 16;
	__m128i next_l, next_r;
	size_t done = 0;

	if (width < 11)
		return 0;
	next_l = _mm_loadu_si128((const __m128i *)left);
	next_r = _mm_loadu_si128((const __m128i *)right);
	for (; width - 2 * done >= 11; done += 5, left += 15, right -= 15) { /* 33 bytes: the two do not meet */
		const __m128i l = next_l, r = next_r;
		__m128i new_left = _mm_or_si128(_mm_shuffle_epi8(r, to_left), _mm_and_si128(l, last));
		__m128i new_right = _mm_or_si128(_mm_shuffle_epi8(l, to_right), _mm_and_si128(r, first));

		next_l = _mm_loadu_si128((const __m128i *)(left + 15));
		next_r = _mm_loadu_si128((const __m128i *)(right - 15));
		_mm_storeu_si128((__m128i *)left, new_left);
		_mm_storeu_si128((__m128i *)right, new_right);
	}
	return done;
}

/* Pixels of 12 bytes, one from each end at a time, the same way. */
LEAT_AVX2 static size_t
mirror_words_avx2(unsigned char *row, size_t width)
{
	float *left = (float *)(void *)row, *right = left + 3 * width - 4;
	__m128 next_l, next_r;
	size_t done = 0;

	if (width < 3)
		return 0;
	next_l = _mm_loadu_ps(left);
	next_r = _mm_loadu_ps(right);
	for (; width - 2 * done >= 3; done++, left += 3, right -= 3) {
		const __m128 l = next_l, r = next_r;

		next_l = _mm_loadu_ps(left + 3);
		next_r = _mm_loadu_ps(right - 3);
		_mm_storeu_ps(left, _mm_blend_ps(_mm_permute_ps(r, _MM_SHUFFLE(0, 3, 2, 1)), l, 8));
		_mm_storeu_ps(right, _mm_blend_ps(_mm_permute_ps(l, _MM_SHUFFLE(2, 1, 0, 3)), r, 1));
	}
	return done;
}
#endif

static size_t
mirror_avx2(unsigned char *row, size_t width, size_t pixel)
{
#if LEAT_X86
	if (pixel == 3)
		return mirror_bytes_avx2(row, width);
	if (pixel == 12)
		return mirror_words_avx2(row, width);
#endif
	(void)row, (void)width, (void)pixel;
	return 0;
}

static void
flip_horizontal(const struct leat_datum *image, bool avx2)
{
	size_t height = (size_t)image->shape[0], width = (size_t)image->shape[1], pixel = leat_pixel_bytes(image);
	unsigned char *row = image->data;

	for (size_t y = 0; width && y < height; y++, row += width * pixel)
		mirror_rest(row, width, pixel, avx2 ? mirror_avx2(row, width, pixel) : 0);
}

static void
flip_vertical(const struct leat_datum *image)
{
	size_t height = (size_t)image->shape[0], stride = (size_t)image->shape[1] * leat_pixel_bytes(image);
	unsigned char *data = image->data;

	for (size_t y = 0; y < height / 2; y++)
		swap_bytes(data + y * stride, data + (height - 1 - y) * stride, stride);
}

void
leat_flip(const struct leat_datum *image, enum leat_flip direction)
{
	if (direction == LEAT_FLIP_HORIZONTAL)
		flip_horizontal(image, leat_cpu_has_avx2());
	else
		flip_vertical(image);
}

void
leat_flip_plain(const struct leat_datum *image)
{
	flip_horizontal(image, false);
}

/* Where an output place comes from: x = xx * X + xy * Y + x0, the same for y. In float, in the order
 * that TensorFlow computes it. */
struct rotation {
	float xx, xy, x0, yx, yy, y0;
};

static struct rotation
rotation_about_centre(float radians, int64_t height, int64_t width)
{
	float c = cosf(radians), s = sinf(radians), right = (float)(width - 1), bottom = (float)(height - 1);

	return (struct rotation){
		.xx = c,
		.xy = -s,
		.x0 = (right - (c * right - s * bottom)) / 2,
		.yx = s,
		.yy = c,
		.y0 = (bottom - (s * right + c * bottom)) / 2,
	};
}

/* Half away from zero. Numbers too large for an int64_t cannot come up: |x| is at most the sum of the sides. */
static int64_t
nearest_place(float x)
{
	int64_t towards_zero = (int64_t)x;
	float rest = x - (float)towards_zero;

	return towards_zero + (rest >= 0.5f) - (rest <= -0.5f);
}

/* Part of row `i` of the result. */
static inline void
rotate_row(const struct leat_view *in, unsigned char *out, const struct rotation *r, const void *fill, size_t pixel,
           int64_t i, const struct leat_window *part)
{
	for (int64_t j = part->left; j < part->left + part->width; j++, out += pixel) {
		int64_t x = nearest_place(r->xx * (float)j + r->xy * (float)i + r->x0);
		int64_t y = nearest_place(r->yx * (float)j + r->yy * (float)i + r->y0);

		if (x >= 0 && x < in->width && y >= 0 && y < in->height)
			memcpy(out, in->data + (size_t)y * in->stride + (size_t)x * pixel, pixel);
		else
			memcpy(out, fill, pixel);
	}
}

static void
rotate_row_plain(const struct leat_view *in, unsigned char *out, const struct rotation *r, const void *fill, int64_t i,
                 const struct leat_window *part)
{
	const size_t pixel = in->channels * leat_dtype_size(in->dtype);

	if (pixel == 3)
		rotate_row(in, out, r, fill, 3, i, part);
	else if (pixel == 12)
		rotate_row(in, out, r, fill, 12, i, part);
	else
		rotate_row(in, out, r, fill, pixel, i, part);
}

#if LEAT_X86
/* Sides up to this keep every number below exact in float where it has to be; offsets fit into 31 bits. */
enum { MAX_SIDE = 1 << 14, EIGHT = 8 };

/* As nearest_place: halves go up with what is just below a half, as the sum is rounded, and nothing else does. */
LEAT_AVX2_INLINE __m256i
nearest_places(float by_column, __m256 columns, float by_row, float origin)
{
	const __m256 sign = _mm256_set1_ps(-0.0f), below_half = _mm256_set1_ps(0x1.fffffep-2f);
	__m256 x = _mm256_add_ps(_mm256_mul_ps(_mm256_set1_ps(by_column), columns), _mm256_set1_ps(by_row));

	x = _mm256_add_ps(x, _mm256_set1_ps(origin));
	return _mm256_cvttps_epi32(_mm256_add_ps(x, _mm256_or_ps(_mm256_and_ps(x, sign), below_half)));
}

/* Negative numbers are large ones without a sign. */
LEAT_AVX2_INLINE __m256i
is_inside(__m256i place, int side)
{
	return _mm256_cmpeq_epi32(_mm256_min_epu32(place, _mm256_set1_epi32(side - 1)), place);
}

/* Where eight columns of row i come from, from column j on, in bytes: returns a bit for each that lies inside. */
LEAT_AVX2_INLINE unsigned
find_eight(const struct rotation *r, int i, int j, const struct leat_view *in, int pixel, __m256i *offsets)
{
	const __m256i ahead = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
	const __m256 columns = _mm256_cvtepi32_ps(_mm256_add_epi32(_mm256_set1_epi32(j), ahead));
	__m256i x = nearest_places(r->xx, columns, r->xy * (float)i, r->x0);
	__m256i y = nearest_places(r->yx, columns, r->yy * (float)i, r->y0);
	__m256i inside = _mm256_and_si256(is_inside(x, (int)in->width), is_inside(y, (int)in->height));

	*offsets = _mm256_add_epi32(_mm256_mullo_epi32(y, _mm256_set1_epi32((int)in->stride)),
	                            _mm256_mullo_epi32(x, _mm256_set1_epi32(pixel)));
	return (unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(inside));
}

/* Eight pixels that lie inside, `copied` bytes of each: what is too much is written over by the next one. */
LEAT_AVX2_INLINE void
copy_eight(const unsigned char *from, __m256i offsets, unsigned char *out, size_t pixel, size_t copied)
{
	uint32_t offset[EIGHT];

	_mm256_storeu_si256((__m256i *)offset, offsets);
	for (size_t k = 0; k < EIGHT; k++)
		memcpy(out + k * pixel, from + offset[k], copied);
}

LEAT_AVX2_INLINE void
copy_some(const unsigned char *from, __m256i offsets, unsigned inside, unsigned char *out, const void *fill,
          size_t pixel, size_t count)
{
	uint32_t offset[EIGHT];

	_mm256_storeu_si256((__m256i *)offset, offsets);
	for (size_t k = 0; k < count; k++)
		memcpy(out + k * pixel, inside >> k & 1 ? from + offset[k] : fill, pixel);
}

/* Neither the last eight of a row of the result, nor eight that have the image's last pixel among them, are copied
 * with more than their bytes: there may be nothing behind. */
LEAT_AVX2_INLINE void
rotate_eights(const struct leat_view *in, unsigned char *out, const struct rotation *r, const void *fill, size_t pixel,
              size_t copied, int64_t i, const struct leat_window *part)
{
	const int end = (int)(part->left + part->width);
	const __m256i last = _mm256_set1_epi32((int)((in->height - 1) * (int64_t)in->stride) +
	                                       (int)((in->width - 1) * (int64_t)pixel));

	for (int j = (int)part->left; j < end; j += EIGHT, out += EIGHT * pixel) {
		int count = end - j < EIGHT ? end - j : EIGHT;
		__m256i offsets;
		unsigned inside = find_eight(r, (int)i, j, in, (int)pixel, &offsets);

		if (inside == 0xff && j + EIGHT < end && !_mm256_movemask_epi8(_mm256_cmpeq_epi32(offsets, last)))
			copy_eight(in->data, offsets, out, pixel, copied);
		else
			copy_some(in->data, offsets, inside, out, fill, pixel, (size_t)count);
	}
}

LEAT_AVX2 static void
rotate_row_avx2(const struct leat_view *in, unsigned char *out, const struct rotation *r, const void *fill, int64_t i,
                const struct leat_window *part)
{
	const size_t pixel = in->channels * leat_dtype_size(in->dtype);

	if (pixel == 3)
		rotate_eights(in, out, r, fill, 3, 4, i, part);
	else if (pixel == 12)
		rotate_eights(in, out, r, fill, 12, 16, i, part);
	else
		rotate_eights(in, out, r, fill, pixel, pixel, i, part);
}
#endif

/* Can the places of this image be found in 32 bits, eight at a time? */
static bool
fits_eights(const struct leat_view *in)
{
#if LEAT_X86
	return in->height <= MAX_SIDE && in->width <= MAX_SIDE && in->height * (int64_t)in->stride <= INT32_MAX &&
	       leat_cpu_has_avx2();
#else
	(void)in;
	return false;
#endif
}

static void
rotate_rows(const struct leat_view *in, float radians, float fill, const struct leat_sink *sink, bool eights)
{
	const struct rotation r = rotation_about_centre(radians, in->height, in->width);
	const struct leat_pixel color = leat_pixel_of(fill, in->dtype);

	for (int64_t y = 0; y < sink->part.height; y++) {
		unsigned char *to = leat_sink_line(sink, y);

#if LEAT_X86
		if (eights)
			rotate_row_avx2(in, to, &r, color.bytes, y + sink->part.top, &sink->part);
		else
#endif
			rotate_row_plain(in, to, &r, color.bytes, y + sink->part.top, &sink->part);
		leat_sink_take(sink, y);
	}
	(void)eights;
}

void
leat_rotate_to(const struct leat_view *in, float radians, float fill, const struct leat_sink *sink)
{
	rotate_rows(in, radians, fill, sink, fits_eights(in));
}

void
leat_rotate(const struct leat_datum *in, const struct leat_datum *out, float radians, float fill)
{
	const struct leat_view view = leat_view_of(in, NULL);
	const struct leat_sink sink = leat_sink_for(out);

	leat_rotate_to(&view, radians, fill, &sink);
}

void
leat_rotate_plain(const struct leat_datum *in, const struct leat_datum *out, float radians, float fill)
{
	const struct leat_view view = leat_view_of(in, NULL);
	const struct leat_sink sink = leat_sink_for(out);

	rotate_rows(&view, radians, fill, &sink, false);
}
