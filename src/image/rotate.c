/* rotate.c - rotate about the center, nearest neighbor
 *
 * Coordinates are computed in float, in the order of TensorFlow; with AVX2, eight at a time. A worker that rotates
 * images of one size by the same angle again and again caches where pixels come from and only copies. Only the size of
 * a pixel matters, not its type. */
#include "image/pixel.h"

#include <math.h>
#include <string.h>

#include "image/cpu.h"
#include "image/plain.h"
#include "image/view.h"

/* Output pixel (X, Y) comes from x = xx * X + xy * Y + x0, and likewise y. In float, in the order of TensorFlow. */
struct rotation {
	float xx, xy, x0, yx, yy, y0;
};

static struct rotation
rotation_about_center(float radians, int64_t height, int64_t width)
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

/* Ties away from zero. x fits in an int64_t: it is at most the sum of the sides. */
static int64_t
nearest_index(float x)
{
	int64_t towards_zero = (int64_t)x;
	float rest = x - (float)towards_zero;

	return towards_zero + (rest >= 0.5f) - (rest <= -0.5f);
}

/* The columns of `part` in output row `i`. */
static inline void
pick_pixels(const struct leat_view *in, unsigned char *out, const struct rotation *r, const void *fill, size_t pixel,
            int64_t i, const struct leat_window *part)
{
	for (int64_t j = part->left; j < part->left + part->width; j++, out += pixel) {
		int64_t x = nearest_index(r->xx * (float)j + r->xy * (float)i + r->x0);
		int64_t y = nearest_index(r->yx * (float)j + r->yy * (float)i + r->y0);

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
		pick_pixels(in, out, r, fill, 3, i, part);
	else if (pixel == 12)
		pick_pixels(in, out, r, fill, 12, i, part);
	else
		pick_pixels(in, out, r, fill, pixel, i, part);
}

#if LEAT_X86
/* Where eight neighboring pixels of an output row come from. */
enum { EIGHT = 8 };
struct octet {
	uint32_t offset[EIGHT]; /* in bytes, of those inside the image */
	uint8_t inside;         /* one bit each */
	bool can_overrun;       /* all are inside, and some bytes past each may be read, and written in the result */
};

/* What the offsets depend on. */
struct rotation_key {
	float radians;
	size_t stride, pixel;
	int64_t height, width;
	struct leat_window part; /* of the result */
};

static size_t
octets_per_row(const struct leat_window *part)
{
	return ((size_t)part->width + EIGHT - 1) / EIGHT;
}

/* Up to this size, coordinates are exact in float where they have to be, and fit in 32 bits. */
enum { MAX_SIDE = 1 << 14 };

/* As nearest_index. Adding the largest float below 0.5 rounds 0.5 up, because the sum is rounded, but nothing less. */
LEAT_AVX2_INLINE __m256i
nearest_indices(float by_column, __m256 columns, float by_row, float origin)
{
	const __m256 sign = _mm256_set1_ps(-0.0f), below_half = _mm256_set1_ps(0x1.fffffep-2f);
	__m256 x = _mm256_add_ps(_mm256_mul_ps(_mm256_set1_ps(by_column), columns), _mm256_set1_ps(by_row));

	x = _mm256_add_ps(x, _mm256_set1_ps(origin));
	return _mm256_cvttps_epi32(_mm256_add_ps(x, _mm256_or_ps(_mm256_and_ps(x, sign), below_half)));
}

/* Unsigned comparison: negative coordinates are large. */
LEAT_AVX2_INLINE __m256i
is_inside(__m256i index, int side)
{
	return _mm256_cmpeq_epi32(_mm256_min_epu32(index, _mm256_set1_epi32(side - 1)), index);
}

/* Eight columns of row i, starting at column j. `last` is the offset of the last pixel of the image. */
LEAT_AVX2_INLINE void
find_octet(struct octet *octet, const struct rotation_key *key, const struct rotation *r, int i, int j, int last)
{
	const __m256i ahead = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
	const __m256 columns = _mm256_cvtepi32_ps(_mm256_add_epi32(_mm256_set1_epi32(j), ahead));
	__m256i x = nearest_indices(r->xx, columns, r->xy * (float)i, r->x0);
	__m256i y = nearest_indices(r->yx, columns, r->yy * (float)i, r->y0);
	__m256i inside = _mm256_and_si256(is_inside(x, (int)key->width), is_inside(y, (int)key->height));
	__m256i offsets = _mm256_add_epi32(_mm256_mullo_epi32(y, _mm256_set1_epi32((int)key->stride)),
	                                   _mm256_mullo_epi32(x, _mm256_set1_epi32((int)key->pixel)));
	__m256i is_last = _mm256_cmpeq_epi32(offsets, _mm256_set1_epi32(last));

	_mm256_storeu_si256((__m256i *)(void *)octet->offset, offsets);
	octet->inside = (uint8_t)_mm256_movemask_ps(_mm256_castsi256_ps(inside));
	octet->can_overrun =
		octet->inside == 0xff && j + EIGHT < key->part.left + key->part.width && !_mm256_movemask_epi8(is_last);
}

/* `count` groups of eight columns in row y of the part, starting at group `first`. */
LEAT_AVX2 static void
find_octets(struct octet *octet, const struct rotation_key *key, const struct rotation *r, int64_t y, size_t first,
            size_t count)
{
	const int last = (int)((key->height - 1) * (int64_t)key->stride + (key->width - 1) * (int64_t)key->pixel);
	const int i = (int)(key->part.top + y), j = (int)key->part.left + (int)first * EIGHT;

	for (size_t k = 0; k < count; k++)
		find_octet(&octet[k], key, r, i, j + (int)k * EIGHT, last);
}

/* Copies `width` pixels of an output row. Where there is room, `copied` bytes per pixel are copied: the excess is
 * overwritten by the next pixel. */
static inline void
copy_pixels(const unsigned char *from, unsigned char *out, const struct octet *octet, const void *fill, size_t pixel,
            size_t copied, size_t width)
{
	for (size_t j = 0; j < width; j += EIGHT, out += EIGHT * pixel, octet++) {
		const size_t count = width - j < EIGHT ? width - j : EIGHT;

		if (octet->can_overrun)
			for (size_t k = 0; k < EIGHT; k++)
				memcpy(out + k * pixel, from + octet->offset[k], copied);
		else
			for (size_t k = 0; k < count; k++)
				memcpy(out + k * pixel, octet->inside >> k & 1 ? from + octet->offset[k] : fill, pixel);
	}
}

static void
copy_octets(const unsigned char *from, unsigned char *out, const struct octet *octet, const void *fill, size_t pixel,
            size_t width)
{
	if (pixel == 3)
		copy_pixels(from, out, octet, fill, 3, 4, width);
	else if (pixel == 12)
		copy_pixels(from, out, octet, fill, 12, 16, width);
	else
		copy_pixels(from, out, octet, fill, pixel, pixel, width);
}

/* Finds and copies some groups at a time. */
static void
rotate_row(const struct leat_view *in, const struct rotation_key *key, const struct rotation *r, const void *fill,
           int64_t y, unsigned char *out)
{
	enum { SOME = 32 };
	struct octet some[SOME];
	size_t left = (size_t)key->part.width;

	for (size_t first = 0; left; first += SOME) {
		const size_t width = left < SOME * EIGHT ? left : SOME * EIGHT;

		find_octets(some, key, r, y, first, (width + EIGHT - 1) / EIGHT);
		copy_octets(in->data, out, some, fill, key->pixel, width);
		out += width * key->pixel;
		left -= width;
	}
}

/* ---- the cache of a worker ---- */

enum { MAX_CACHE = 256 << 10 };

/* The last rotation, and where its pixels come from if it was used twice in a row. */
struct cache {
	struct rotation_key key;
	struct octet *octet; /* for all rows; NULL: not computed yet */
};

static void
end_cache(void *object, struct leat_mem *mem)
{
	struct cache *cache = object;

	leat_free(mem, cache->octet);
	leat_free(mem, cache);
}

static bool
is_same(const struct rotation_key *a, const struct rotation_key *b)
{
	return memcmp(&a->radians, &b->radians, sizeof(a->radians)) == 0 && a->stride == b->stride &&
	       a->pixel == b->pixel && a->height == b->height && a->width == b->width &&
	       memcmp(&a->part, &b->part, sizeof(a->part)) == 0;
}

/* The cached offsets of a repeated rotation; NULL: compute them row by row. */
static const struct octet *
cached_octets(const struct rotation_key *key, const struct rotation *r, struct leat_scratch *scratch)
{
	const size_t row = octets_per_row(&key->part), bytes = (size_t)key->part.height * row * sizeof(struct octet);
	struct cache *cache = bytes <= MAX_CACHE ? leat_scratch_keep_block(scratch, sizeof(*cache), end_cache) : NULL;

	if (!cache)
		return NULL;
	if (!is_same(&cache->key, key)) {
		leat_free(scratch->mem, cache->octet);
		*cache = (struct cache){.key = *key};
		return NULL;
	}
	if (cache->octet)
		return cache->octet;
	cache->octet = leat_alloc(scratch->mem, bytes);
	for (int64_t y = 0; cache->octet && y < key->part.height; y++)
		find_octets(cache->octet + (size_t)y * row, key, r, y, 0, row);
	return cache->octet;
}

static void
rotate_octets(const struct leat_view *in, const struct rotation_key *key, const struct rotation *r, const void *fill,
              const struct leat_sink *sink, struct leat_scratch *scratch)
{
	const struct octet *octet = scratch ? cached_octets(key, r, scratch) : NULL;

	for (int64_t y = 0; y < sink->part.height; y++) {
		unsigned char *out = leat_sink_row(sink, y);

		if (octet)
			copy_octets(in->data, out, octet + (size_t)y * octets_per_row(&key->part), fill, key->pixel,
			            (size_t)key->part.width);
		else
			rotate_row(in, key, r, fill, y, out);
		leat_sink_commit(sink, y);
	}
}

/* Do coordinates and offsets of this image fit in 32 bits? */
static bool
fits_32_bits(const struct leat_view *in)
{
	return in->height <= MAX_SIDE && in->width <= MAX_SIDE && in->height * (int64_t)in->stride <= INT32_MAX;
}
#endif

/* ---- any image ---- */

static void
rotate_plain(const struct leat_view *in, const struct rotation *r, const void *fill, const struct leat_sink *sink)
{
	for (int64_t y = 0; y < sink->part.height; y++) {
		rotate_row_plain(in, leat_sink_row(sink, y), r, fill, y + sink->part.top, &sink->part);
		leat_sink_commit(sink, y);
	}
}

static void
rotate(const struct leat_view *in, float radians, float fill, bool avx2, const struct leat_sink *sink,
       struct leat_scratch *scratch)
{
	const struct rotation r = rotation_about_center(radians, in->height, in->width);
	const struct leat_pixel color = leat_pixel_of(fill, in->dtype);

#if LEAT_X86
	if (avx2 && fits_32_bits(in)) {
		const struct rotation_key key = {.radians = radians,
		                                 .stride = in->stride,
		                                 .pixel = in->channels * leat_dtype_size(in->dtype),
		                                 .height = in->height,
		                                 .width = in->width,
		                                 .part = sink->part};

		rotate_octets(in, &key, &r, color.bytes, sink, scratch);
		return;
	}
#endif
	(void)avx2, (void)scratch; /* unused on other CPUs */
	rotate_plain(in, &r, color.bytes, sink);
}

void
leat_rotate_to(const struct leat_view *in, float radians, float fill, const struct leat_sink *sink,
               struct leat_scratch *scratch)
{
	rotate(in, radians, fill, leat_cpu_has_avx2(), sink, scratch);
}

void
leat_rotate_to_plain(const struct leat_view *in, float radians, float fill, const struct leat_sink *sink)
{
	rotate(in, radians, fill, false, sink, NULL);
}
