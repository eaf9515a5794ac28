/* flip.c - mirror an image, or a row of one
 *
 * Pixels are taken from both ends of a row at a time, and both are read before either is written: the result may be
 * written over the row. Only the size of a pixel matters, not its type. Any thread. */
#include "image/pixel.h"

#include <string.h>

#include "image/cpu.h"
#include "image/plain.h"

enum { MAX_PIXEL = LEAT_MAX_CHANNELS * sizeof(double) };

static inline void
mirror_pairs(const unsigned char *from, unsigned char *to, size_t width, size_t pixel)
{
	for (size_t left = 0, right = width - 1; left < (width + 1) / 2; left++, right--) {
		unsigned char a[MAX_PIXEL], b[MAX_PIXEL];

		memcpy(a, from + left * pixel, pixel);
		memcpy(b, from + right * pixel, pixel);
		memcpy(to + left * pixel, b, pixel);
		memcpy(to + right * pixel, a, pixel);
	}
}

/* Pixels [done, width - done) of a row. */
static void
mirror_rest(const unsigned char *from, unsigned char *to, size_t width, size_t pixel, size_t done)
{
	from += done * pixel;
	to += done * pixel;
	width -= 2 * done;
	switch (pixel) { /* u8 and f32: the compiler knows the length of each copy */
	case 1:
		mirror_pairs(from, to, width, 1);
		break;
	case 2:
		mirror_pairs(from, to, width, 2);
		break;
	case 3:
		mirror_pairs(from, to, width, 3);
		break;
	case 4:
		mirror_pairs(from, to, width, 4);
		break;
	case 8:
		mirror_pairs(from, to, width, 8);
		break;
	case 12:
		mirror_pairs(from, to, width, 12);
		break;
	case 16:
		mirror_pairs(from, to, width, 16);
		break;
	default:
		mirror_pairs(from, to, width, pixel);
	}
}

#if LEAT_X86
/* Pixels of 3 bytes, five from each end at a time: a vector holds five and one byte of the next pixel, which is written
 * again later. The next vectors are read before these are written: a load that overlaps a store still in flight stalls.
 * Returns how many pixels are done at each end; fewer than half. */
LEAT_AVX2 static size_t
mirror_bytes_avx2(const unsigned char *from, unsigned char *to, size_t width)
{
	const __m128i to_left = _mm_setr_epi8(13, 14, 15, 10, 11, 12, 7, 8, 9, 4, 5, 6, 1, 2, 3, -1);
	const __m128i to_right = _mm_setr_epi8(-1, 12, 13, 14, 9, 10, 11, 6, 7, 8, 3, 4, 5, 0, 1, 2);
	const __m128i first = _mm_setr_epi8(-1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
	const __m128i last = _mm_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, -1);
	size_t left = 0, right = 3 * width - 16, done = 0;
	__m128i next_l, next_r;

	if (width < 11)
		return 0;
	next_l = _mm_loadu_si128((const __m128i *)from);
	next_r = _mm_loadu_si128((const __m128i *)(from + right));
	for (; width - 2 * done >= 11; done += 5, left += 15, right -= 15) { /* 33 bytes: the two do not meet */
		const __m128i l = next_l, r = next_r;
		__m128i new_left = _mm_or_si128(_mm_shuffle_epi8(r, to_left), _mm_and_si128(l, last));
		__m128i new_right = _mm_or_si128(_mm_shuffle_epi8(l, to_right), _mm_and_si128(r, first));

		next_l = _mm_loadu_si128((const __m128i *)(from + left + 15));
		next_r = _mm_loadu_si128((const __m128i *)(from + right - 15));
		_mm_storeu_si128((__m128i *)(to + left), new_left);
		_mm_storeu_si128((__m128i *)(to + right), new_right);
	}
	return done;
}

/* Pixels of 12 bytes, one from each end at a time, the same way. */
LEAT_AVX2 static size_t
mirror_words_avx2(const float *from, float *to, size_t width)
{
	size_t left = 0, right = 3 * width - 4, done = 0;
	__m128 next_l, next_r;

	if (width < 3)
		return 0;
	next_l = _mm_loadu_ps(from);
	next_r = _mm_loadu_ps(from + right);
	for (; width - 2 * done >= 3; done++, left += 3, right -= 3) {
		const __m128 l = next_l, r = next_r;

		next_l = _mm_loadu_ps(from + left + 3);
		next_r = _mm_loadu_ps(from + right - 3);
		_mm_storeu_ps(to + left, _mm_blend_ps(_mm_permute_ps(r, _MM_SHUFFLE(0, 3, 2, 1)), l, 8));
		_mm_storeu_ps(to + right, _mm_blend_ps(_mm_permute_ps(l, _MM_SHUFFLE(2, 1, 0, 3)), r, 1));
	}
	return done;
}
#endif

static void
mirror_row(const void *from, void *to, size_t width, size_t pixel, bool avx2)
{
	size_t done = 0;

#if LEAT_X86
	if (avx2 && pixel == 3)
		done = mirror_bytes_avx2(from, to, width);
	else if (avx2 && pixel == 12)
		done = mirror_words_avx2(from, to, width);
#endif
	(void)avx2; /* unused on other CPUs */
	mirror_rest(from, to, width, pixel, done);
}

void
leat_mirror_row(const void *from, void *to, size_t width, size_t pixel)
{
	mirror_row(from, to, width, pixel, leat_cpu_has_avx2());
}

static void
flip_horizontal(const struct leat_datum *image, bool avx2)
{
	size_t height = (size_t)image->shape[0], width = (size_t)image->shape[1], pixel = leat_pixel_bytes(image);
	unsigned char *row = image->data;

	for (size_t y = 0; width && y < height; y++, row += width * pixel)
		mirror_row(row, row, width, pixel, avx2);
}

static void
swap_bytes(unsigned char *restrict a, unsigned char *restrict b, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		unsigned char swapped = a[i];

		a[i] = b[i];
		b[i] = swapped;
	}
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
