/* remap.c - pixels that change places: flips
 *
 * The element type matters by its size alone. */
#include "image/pixel.h"

#include <string.h>

#include "image/cpu.h"
#include "image/plain.h"

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
