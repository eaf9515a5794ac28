/* test_jpeg_reduced.c - JPEG images decoded at 1/2, 1/4 and 1/8: near to what the full ones show, the same bytes by any
 * processor and for any region */
#include "support/jpegs.h"

#include "image/jpeg.h"
#include "support/image.h"

enum { MAX_PIXELS = 1 << 16, KERNELS = 8 };

static const double pi = 3.14159265358979323846;

/* ---- blocks ---- */

static const struct kernel {
	int rows, columns;
} kernels[KERNELS] = {{1, 2}, {2, 1}, {2, 2}, {2, 4}, {4, 2}, {4, 4}, {4, 8}, {8, 4}};

struct pair {
	_Alignas(32) int16_t coefficient[LEAT_JPEG_PAIR];
	_Alignas(32) int16_t quant[LEAT_JPEG_PAIR];
};

static leat_jpeg_idct *
kernel_of(const struct leat_jpeg_kernels *all, const struct kernel *kernel)
{
	return all->reduced[__builtin_ctz((unsigned)kernel->rows)][__builtin_ctz((unsigned)kernel->columns)];
}

/* Sample (y, x) of block b: the lowest rows x columns coefficients as those of a DCT of that size. */
static double
exact(const struct pair *pair, int b, const struct kernel *kernel, int y, int x)
{
	double sum = 0;

	for (int v = 0; v < kernel->rows; v++)
		for (int u = 0; u < kernel->columns; u++) {
			double value = pair->coefficient[16 * v + u + 8 * b] * pair->quant[16 * v + u + 8 * b];

			value *= v ? sqrt(2) * cos((2 * y + 1) * v * pi / (2 * kernel->rows)) : 1;
			value *= u ? sqrt(2) * cos((2 * x + 1) * u * pi / (2 * kernel->columns)) : 1;
			sum += value / 8;
		}
	return fmin(fmax(sum + 128, 0), 255);
}

/* As encoders make them of pixels: smaller as the frequency grows. */
static void
draw_pair(struct pair *pair)
{
	for (int i = 0; i < LEAT_JPEG_PAIR; i++) {
		int most = 1 + 400 / (1 + i / 16 + i % 8);

		pair->quant[i] = (int16_t)(1 + draw(16));
		pair->coefficient[i] = (int16_t)((draw(2 * most) - most) / pair->quant[i]);
	}
}

static void
samples_are_those_of_real_numbers_but_for_rounding(void **state)
{
	const struct leat_jpeg_kernels *ways[] = {&leat_jpeg_plain, leat_jpeg_fastest()};
	double worst = 0, total = 0;
	long count = 0;

	(void)state;
	for (int n = 0; n < 4000; n++) {
		const struct kernel *kernel = &kernels[n % KERNELS];
		uint8_t out[2][64];
		struct pair pair;

		draw_pair(&pair);
		kernel_of(ways[n / KERNELS % 2], kernel)(pair.coefficient, pair.quant, out[0], 8, out[1], 8);
		for (int i = 0; i < 2 * kernel->rows * kernel->columns; i++) {
			int b = i % 2, y = i / 2 / kernel->columns, x = i / 2 % kernel->columns;
			double off = fabs(out[b][8 * y + x] - exact(&pair, b, kernel, y, x));

			worst = fmax(worst, off);
			total += off;
			count++;
		}
	}
	print_message("off by %.3f at most, %.3f on average\n", worst, total / (double)count);
	assert_true(worst < 0.7);                  /* half of it is rounding to bytes */
	assert_true(total / (double)count < 0.27); /* and 0.25 of this */
}

/* And nothing is written beside them. */
static void
wild_coefficients_give_the_same_on_any_processor(void **state)
{
	(void)state;
	for (int n = 0; n < 20000; n++) {
		const struct kernel *kernel = &kernels[n % KERNELS];
		uint8_t out[2][2][80];
		struct pair pair;
		int some = 1 + draw(12);

		for (int i = 0; i < LEAT_JPEG_PAIR; i++) {
			pair.quant[i] = (int16_t)(1 + draw(255));
			pair.coefficient[i] = (int16_t)(draw(some) ? 0 : draw(65536) - 32768);
		}
		memset(out, 77, sizeof(out));
		for (int k = 0; k < 2; k++)
			kernel_of(k ? leat_jpeg_fastest() : &leat_jpeg_plain, kernel)(pair.coefficient, pair.quant,
			                                                              out[k][0], 9, out[k][1], 10);
		assert_memory_equal(out[0], out[1], sizeof(out[0]));
		for (int i = 0; i < 80; i++) {
			if (i / 9 >= kernel->rows || i % 9 >= kernel->columns)
				assert_int_equal(out[1][0][i], 77);
			if (i / 10 >= kernel->rows || i % 10 >= kernel->columns)
				assert_int_equal(out[1][1][i], 77);
		}
	}
}

/* ---- images ---- */

static int
ceil_shift(int value, int halvings)
{
	return (value + (1 << halvings) - 1) >> halvings;
}

/* A part of the reduced image in memory of its very size, to be freed. */
static uint8_t *
reduced(const struct file *file, int channels, int halvings, struct leat_window part,
        const struct leat_jpeg_kernels *by)
{
	const size_t stride = (size_t)(part.width * channels);
	uint8_t *out = malloc(stride * (size_t)part.height), *copy = malloc(file->size);
	struct leat_jpeg_header header;

	memcpy(copy, file->bytes, file->size);
	leat_scratch_reset(&scratch);
	assert_true(leat_jpeg_header_read(&header, copy, file->size));
	assert_int_equal(leat_jpeg_baseline(&header, &(struct leat_decoding){.channels = channels}, halvings, &part,
	                                    out, stride, by, &scratch),
	                 LEAT_JPEG_DONE);
	assert_int_equal(scratch.used, 0);
	free(copy);
	return out;
}

/* By leat_decode_*; 0 halvings: in full. NULL: it fails. */
static uint8_t *
decoded_as(int mode, const struct file *file, int channels, int halvings)
{
	const struct leat_decoding how = {.channels = channels, .mode = mode, .fast = true};
	struct leat_window all;
	struct leat_decode image;
	enum leat_status status;
	uint8_t *out;

	leat_scratch_reset(&scratch);
	leat_err_clear(&err);
	if (leat_decode_begin(&image, file->bytes, file->size, &how, MAX_PIXELS, &scratch, &err) != LEAT_OK)
		return NULL;
	assert_true(image.reducible);
	all.top = all.left = 0;
	all.height = ceil_shift((int)image.height, halvings);
	all.width = ceil_shift((int)image.width, halvings);
	out = malloc((size_t)(all.height * all.width * channels));
	if (halvings)
		status = leat_decode_reduced(&image, halvings, &all, out, (size_t)(all.width * channels), &err);
	else
		status = decode_image(&image, out, &err);
	leat_decode_end(&image);
	if (status == LEAT_OK)
		return out;
	free(out);
	return NULL;
}

static uint8_t *
decoded(const struct file *file, int channels, int halvings)
{
	return decoded_as(LEAT_DECODE_TORCH, file, channels, halvings);
}

static bool
is_common(const struct file *file)
{
	struct leat_jpeg_header header;

	return leat_jpeg_header_read(&header, file->bytes, file->size);
}

static void
assert_parts_are_pieces(const struct file *file, int channels, int halvings)
{
	const int height = ceil_shift(file->height, halvings), width = ceil_shift(file->width, halvings);
	const struct leat_window all = {.height = height, .width = width};
	uint8_t *whole = reduced(file, channels, halvings, all, leat_jpeg_fastest());
	uint8_t *plain = reduced(file, channels, halvings, all, &leat_jpeg_plain);

	assert_memory_equal(whole, plain, (size_t)(height * width * channels));
	for (int i = 0; i < 4; i++) {
		const struct leat_window part = draw_part(height, width);
		uint8_t *piece =
			reduced(file, channels, halvings, part, i % 2 ? &leat_jpeg_plain : leat_jpeg_fastest());
		const size_t stride = (size_t)(part.width * channels);

		for (int64_t y = 0; y < part.height; y++)
			assert_memory_equal(piece + (size_t)y * stride,
			                    whole + ((part.top + y) * width + part.left) * channels, stride);
		free(piece);
	}
	free(whole);
	free(plain);
}

static void
images_of_all_kinds_and_sizes_are_the_same_by_any_way(void **state)
{
	(void)state;
	for (int i = 0; i < 1500; i++) {
		struct file file = encode_any(i);

		for (int halvings = 1; is_common(&file) && halvings <= LEAT_DECODE_HALVINGS; halvings++)
			for (int k = 0; k < 3; k++)
				assert_parts_are_pieces(&file, (const int[]){1, 3, 4}[k], halvings);
		free(file.bytes);
	}
}

static void
the_mode_makes_no_difference(void **state)
{
	(void)state;
	for (int i = 0; i < 60; i++) {
		const struct style style = {.quality = 50 + draw(50), .noise = 50, .progressive = i % 2};
		const int width = 1 + draw(MAX_SIDE), height = 1 + draw(MAX_SIDE), halvings = 1 + i % 3;
		struct file file = encode_as(&style, width, height, false, 1 + i / 3 % 2, 1 + i / 6 % 2);
		uint8_t *tf = decoded_as(LEAT_DECODE_TF, &file, 3, halvings);
		uint8_t *torch = decoded_as(LEAT_DECODE_TORCH, &file, 3, halvings);

		assert_memory_equal(tf, torch,
		                    (size_t)(3 * ceil_shift(width, halvings) * ceil_shift(height, halvings)));
		free(tf);
		free(torch);
		free(file.bytes);
	}
}

/* Of the squares of a full image, cut at its edges. */
static double
mean_at(const uint8_t *full, const struct file *file, int channels, int side, int y, int x, int c)
{
	double sum = 0;
	int count = 0;

	for (int v = y * side; v < (y + 1) * side && v < file->height; v++)
		for (int u = x * side; u < (x + 1) * side && u < file->width; u++, count++)
			sum += full[(v * file->width + u) * channels + c];
	return sum / count;
}

/* Pixels at the right and lower edges stand for squares that the image ends in: what lies beyond is the encoder's. */
static void
assert_near_means(const struct file *file, int channels, int halvings, double average, double most)
{
	const int side = 1 << halvings, height = file->height >> halvings, width = file->width >> halvings;
	const int stride = ceil_shift(file->width, halvings);
	uint8_t *full = decoded(file, channels, 0), *few = decoded(file, channels, halvings);
	double off = 0, worst = 0;

	assert_non_null(full);
	assert_non_null(few);
	for (int i = 0; i < height * width * channels; i++) {
		const int c = i % channels, x = i / channels % width, y = i / channels / width;
		const double mean = mean_at(full, file, channels, side, y, x, c);

		off += fabs(mean - few[(y * stride + x) * channels + c]);
		worst = fmax(worst, fabs(mean - few[(y * stride + x) * channels + c]));
	}
	off /= fmax(height * width * channels, 1);
	if (off > average || worst > most)
		fail_msg("%dx%d at 1/%d, %d channels: off by %.2f on average, by %.2f at most", file->height,
		         file->width, side, channels, off, worst);
	free(full);
	free(few);
}

static void
smooth_images_are_near_to_the_means_of_squares(void **state)
{
	static const int sampling[][2] = {{1, 1}, {2, 1}, {1, 2}, {2, 2}};

	(void)state;
	for (int i = 0; i < 200; i++) {
		const struct style style = {.quality = 95, .smooth = true, .progressive = i % 4 == 3};
		struct file file = encode_as(&style, 100 + draw(100), 100 + draw(100), i % 5 == 4,
		                             sampling[i / 2 % 4][0], sampling[i / 2 % 4][1]);

		assert_int_equal(is_common(&file), !style.progressive);
		/* The library upsamples chroma that is coarser in one direction: at the edges and at 1/8 not smoothly.
		 */
		for (int halvings = 1; halvings <= LEAT_DECODE_HALVINGS; halvings++)
			assert_near_means(&file, file.gray ? 1 : 3, halvings, style.progressive ? 8 : 1,
			                  style.progressive ? 24 : 6);
		free(file.bytes);
	}
}

/* A single color stays what it is, up to the last pixel of any size. */
static void
one_color_stays_one_color(void **state)
{
	static const int sizes[][2] = {{1, 1}, {7, 9}, {9, 7}, {8, 8}, {16, 16}, {17, 15}, {1, 33}, {33, 1}, {31, 47}};
	static const int sampling[][2] = {{1, 1}, {2, 1}, {1, 2}, {2, 2}};

	(void)state;
	for (int i = 0; i < 9 * 4 * 2; i++) {
		const int *size = sizes[i / 8];
		const struct style style = {.quality = 100, .flat = true, .progressive = i % 2};
		struct file file =
			encode_as(&style, size[1], size[0], false, sampling[i / 2 % 4][0], sampling[i / 2 % 4][1]);

		for (int halvings = 1; halvings <= LEAT_DECODE_HALVINGS; halvings++) {
			uint8_t *out = decoded(&file, 3, halvings);

			assert_non_null(out);
			for (int k = 0; k < 3 * ceil_shift(size[0], halvings) * ceil_shift(size[1], halvings); k++)
				assert_in_range(out[k], flat_color[k % 3] - 2, flat_color[k % 3] + 2);
			free(out);
		}
		free(file.bytes);
	}
}

/* ---- damage ---- */

/* All rows are read: what the library refuses in full it refuses at any size. */
static void
damage_is_refused_at_any_size(void **state)
{
	int refused = 0;

	(void)state;
	for (int i = 0; i < 3000; i++) {
		struct file file = encode_any(i);
		uint8_t *full, *few;

		if (i % 2)
			file.size = 4 + (unsigned long)draw((int)file.size - 4);
		else
			for (int k = draw(4); k >= 0; k--)
				file.bytes[3 + draw((int)file.size - 3)] ^= (unsigned char)(1 << draw(8));
		full = decoded(&file, 3, 0);
		few = decoded(&file, 3, 1 + i % 3);
		assert_int_equal(full != NULL, few != NULL);
		refused += !full;
		free(full);
		free(few);
		free(file.bytes);
	}
	assert_in_range(refused, 1500, 2900);
}

/* Intervals that a region does not need may be anything. */
static void
a_region_passes_by_intervals_that_it_does_not_need(void **state)
{
	const struct leat_window bottom = {.top = 50, .left = 2, .height = 30, .width = 20};
	struct leat_jpeg_header header = {0};
	struct file file = {0};
	uint8_t *want, *got;

	(void)state;
	do {
		free(file.bytes);
		file = encode(64, 160, false, 2, 2);
		assert_true(leat_jpeg_header_read(&header, file.bytes, file.size));
	} while (!header.interval || header.interval > 6);
	want = reduced(&file, 3, 1, bottom, leat_jpeg_fastest());
	for (unsigned char *at = (unsigned char *)header.scan; *at != 0xff; at++)
		*at = 0x55;
	got = reduced(&file, 3, 1, bottom, leat_jpeg_fastest());
	assert_memory_equal(want, got, 30 * 20 * 3);
	free(want);
	free(got);
	free(file.bytes);
}

static void
too_little_scratch_is_an_error(void **state)
{
	struct file files[2] = {encode(64, 64, false, 2, 2), {0}};
	const struct leat_window all = {.height = 32, .width = 32};
	uint8_t out[32 * 32 * 3];

	(void)state;
	files[1] = encode_as(&(struct style){.quality = 80, .progressive = true}, 64, 64, false, 2, 2);
	for (int i = 0; i < 2; i++) {
		size_t enough = 0;

		for (size_t bytes = 512; !enough; bytes += 512) {
			const struct leat_decoding how = {.channels = 3, .fast = true};
			struct leat_scratch little;
			struct leat_decode image;
			enum leat_status status;

			assert_int_equal(leat_scratch_open(&little, &mem, bytes), 0);
			status = leat_decode_begin(&image, files[i].bytes, files[i].size, &how, MAX_PIXELS, &little,
			                           &err);
			if (status == LEAT_OK) {
				status = leat_decode_reduced(&image, 1, &all, out, 32 * 3, &err);
				leat_decode_end(&image);
			}
			if (status == LEAT_OK)
				enough = bytes;
			else
				assert_int_equal(status, LEAT_LIMIT);
			leat_err_clear(&err);
			leat_scratch_close(&little, &mem);
		}
		assert_true(enough > 1024);
		free(files[i].bytes);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(samples_are_those_of_real_numbers_but_for_rounding),
		TEST(wild_coefficients_give_the_same_on_any_processor),
		TEST(images_of_all_kinds_and_sizes_are_the_same_by_any_way),
		TEST(the_mode_makes_no_difference),
		TEST(smooth_images_are_near_to_the_means_of_squares),
		TEST(one_color_stays_one_color),
		TEST(damage_is_refused_at_any_size),
		TEST(a_region_passes_by_intervals_that_it_does_not_need),
		TEST(too_little_scratch_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
