/* decode.c - how fast JPEG images are decoded, whole and in part, against a bare loop of libjpeg-turbo
 *
 *	bench_decode [FOLDER] [--json FILE] [--repeats N]
 *
 * One thread, images in memory: photographs of ImageNet's size and texture, larger ones, and cells of 130x130. Parts
 *are drawn as by random_resized_crop with its defaults, and also decoded as small as it needs them for 224x224, which
 *is decode(fast=true); the bare loop, which decodes whole images, keeps its decompressor from one image to the next, as
 *a loop of one's own would. FOLDER is not used: there is nothing to read. */
#include <err.h>
#include <getopt.h>
#include <math.h>
#include <stdlib.h>

#include "base/rng.h"
#include "bench.h"
#include "image/image.h"

#include <jpeglib.h>

enum { IMAGES = 24, SCRATCH = 4 << 20, MAX_PIXELS = 1 << 24, SIDE = 224 };

static const double target = 1.3;

struct kind {
	const char *name;
	int width, height, quality; /* the least; the most is 5 better */
	double noise;
	int rounds; /* that make one run long enough */
	int mode;   /* enum leat_decode_mode */
};

struct set {
	const struct kind *kind;
	unsigned char *bytes[IMAGES];
	unsigned long size[IMAGES];
	struct leat_window part[IMAGES];
	uint8_t *pixels;
	struct leat_scratch scratch;
	struct leat_decoding how;
	struct jpeg_decompress_struct cinfo;
	struct jpeg_error_mgr errors;
};

/* ---- images ---- */

/* Waves, a disk with stripes, and grain. */
static void
draw_row(JSAMPLE *row, const struct kind *kind, int y, const double *wave, struct leat_rng *rng)
{
	double dy = y - wave[2] * kind->height;

	for (int x = 0; x < kind->width; x++) {
		double dx = x - wave[3] * kind->width;
		double tone = 128 + 50 * sin(x * wave[0] / 10 + wave[4]) * cos(y * wave[1] / 12);
		double grain = kind->noise * (leat_rng_uniform(rng, -1, 1) + leat_rng_uniform(rng, -1, 1)) / 2;

		if (dx * dx + dy * dy < kind->width * kind->height / 9.0)
			tone += 30 * sin((x + y) / 7.0);
		for (int c = 0; c < 3; c++) {
			double value = tone + grain + 20 * sin(c * 2 + x / 60.0) +
			               kind->noise / 4 * leat_rng_uniform(rng, -1, 1);

			*row++ = (JSAMPLE)(value < 0 ? 0 : value > 255 ? 255 : value);
		}
	}
}

static void
encode(struct set *set, int i, struct leat_rng *rng)
{
	const struct kind *kind = set->kind;
	struct jpeg_compress_struct cinfo;
	struct jpeg_error_mgr errors;
	JSAMPROW row = bench_alloc((size_t)kind->width * 3);
	double wave[5];

	for (int k = 0; k < 5; k++)
		wave[k] = leat_rng_uniform(rng, 0, 1);
	cinfo.err = jpeg_std_error(&errors);
	jpeg_create_compress(&cinfo);
	jpeg_mem_dest(&cinfo, &set->bytes[i], &set->size[i]);
	cinfo.image_width = (JDIMENSION)kind->width;
	cinfo.image_height = (JDIMENSION)kind->height;
	cinfo.input_components = 3;
	cinfo.in_color_space = JCS_RGB;
	jpeg_set_defaults(&cinfo); /* 4:2:0 */
	jpeg_set_quality(&cinfo, kind->quality + i % 6, TRUE);
	jpeg_start_compress(&cinfo, TRUE);
	for (int y = 0; y < kind->height; y++) {
		draw_row(row, kind, y, wave, rng);
		jpeg_write_scanlines(&cinfo, &row, 1);
	}
	jpeg_finish_compress(&cinfo);
	jpeg_destroy_compress(&cinfo);
	free(row);
}

static struct leat_window
draw_part(const struct kind *kind, struct leat_rng *rng)
{
	double area = kind->width * kind->height * (double)leat_rng_uniform(rng, 0.08f, 1);
	double ratio = exp((double)leat_rng_uniform(rng, -0.2877f, 0.2877f)); /* 3/4 to 4/3 */
	struct leat_window part = {.height = lround(sqrt(area / ratio)), .width = lround(sqrt(area * ratio))};

	if (part.height > kind->height)
		part.height = kind->height;
	if (part.width > kind->width)
		part.width = kind->width;
	part.top = (int64_t)(leat_rng_uniform(rng, 0, 1) * (float)(kind->height - part.height));
	part.left = (int64_t)(leat_rng_uniform(rng, 0, 1) * (float)(kind->width - part.width));
	return part;
}

/* ---- the contenders ---- */

/* The part at the smallest size that is not below SIDE. */
static enum leat_status
decode_reduced(struct leat_decode *image, struct leat_window part, uint8_t *out)
{
	int halvings = 0;

	while (halvings < LEAT_DECODE_HALVINGS && part.height / 2 >= SIDE && part.width / 2 >= SIDE) {
		part = (struct leat_window){part.top / 2, part.left / 2, part.height / 2, part.width / 2};
		halvings++;
	}
	if (!halvings)
		return leat_decode_region(image, &part, out, (size_t)part.width * 3, NULL);
	return leat_decode_reduced(image, halvings, &part, out, (size_t)part.width * 3, NULL);
}

static void
decode(struct set *set, int i, const struct leat_window *part, bool reduced)
{
	struct leat_decode image;
	struct leat_window all;
	enum leat_status status;

	leat_scratch_reset(&set->scratch);
	if (leat_decode_begin(&image, set->bytes[i], set->size[i], &set->how, MAX_PIXELS, &set->scratch, NULL) !=
	    LEAT_OK)
		errx(1, "an image cannot be decoded");
	all = (struct leat_window){.height = image.height, .width = image.width};
	part = part ? part : &all;
	if (reduced)
		status = decode_reduced(&image, *part, set->pixels);
	else
		status = leat_decode_region(&image, part, set->pixels, (size_t)part->width * 3, NULL);
	if (status != LEAT_OK)
		errx(1, "an image cannot be decoded");
	leat_decode_end(&image);
}

static struct bench_time
run(struct set *set, bool parts, bool reduced)
{
	struct bench_clock clock = bench_begin();

	for (int i = 0; i < set->kind->rounds * IMAGES; i++)
		decode(set, i % IMAGES, parts ? &set->part[i % IMAGES] : NULL, reduced);
	return bench_end(clock);
}

static struct bench_time
run_parts(void *set)
{
	return run(set, true, false);
}

static struct bench_time
run_reduced(void *set)
{
	return run(set, true, true);
}

static struct bench_time
run_whole(void *set)
{
	return run(set, false, false);
}

static struct bench_time
run_bare(void *arg)
{
	struct set *set = arg;
	struct jpeg_decompress_struct *cinfo = &set->cinfo;
	struct bench_clock clock = bench_begin();

	for (int i = 0; i < set->kind->rounds * IMAGES; i++) {
		jpeg_mem_src(cinfo, set->bytes[i % IMAGES], set->size[i % IMAGES]);
		jpeg_read_header(cinfo, TRUE);
		cinfo->dct_method = set->how.mode == LEAT_DECODE_TORCH ? JDCT_ISLOW : JDCT_IFAST;
		jpeg_start_decompress(cinfo);
		while (cinfo->output_scanline < cinfo->output_height) {
			JSAMPROW row = set->pixels + (size_t)cinfo->output_scanline * cinfo->output_width * 3;

			jpeg_read_scanlines(cinfo, &row, 1);
		}
		jpeg_finish_decompress(cinfo);
	}
	return bench_end(clock);
}

/* ---- all of it ---- */

static json_t *
compare(const struct kind *kind, int repeats)
{
	struct set *set = bench_alloc(sizeof(*set));
	const struct bench_contender contender[] = {{"whole", run_whole, set},
	                                            {"parts", run_parts, set},
	                                            {"reduced", run_reduced, set},
	                                            {"libjpeg-turbo", run_bare, set}};
	struct bench_result result = {.name = kind->name, .items = kind->rounds * IMAGES};
	struct leat_mem mem;
	struct leat_rng rng;
	json_t *json;

	*set = (struct set){.kind = kind,
	                    .pixels = bench_alloc((size_t)(kind->width * kind->height) * 3),
	                    .how = {.channels = 3, .mode = kind->mode, .fast = true}};
	leat_rng_init(&rng, 1, 0, 0, 0);
	leat_mem_init(&mem, SIZE_MAX);
	if (leat_scratch_open(&set->scratch, &mem, SCRATCH) != 0)
		errx(1, "no memory");
	set->cinfo.err = jpeg_std_error(&set->errors);
	jpeg_create_decompress(&set->cinfo);
	for (int i = 0; i < IMAGES; i++) {
		encode(set, i, &rng);
		set->part[i] = draw_part(kind, &rng);
		result.bytes += (double)set->size[i] * kind->rounds;
	}
	bench_compare(&result, contender, sizeof(contender) / sizeof(*contender), repeats);
	bench_print(stdout, &result, target);
	json = bench_json(&result, target);
	jpeg_destroy_decompress(&set->cinfo);
	leat_scratch_close(&set->scratch, &mem);
	for (int i = 0; i < IMAGES; i++)
		free(set->bytes[i]);
	free(set->pixels);
	free(set);
	return json;
}

int
main(int argc, char **argv)
{
	static const struct kind kinds[] = {{"photographs 469x387", 469, 387, 90, 30, 4, LEAT_DECODE_TF},
	                                    {"cells 130x130", 130, 130, 85, 12, 40, LEAT_DECODE_TF},
	                                    {"photographs, mode=torch", 469, 387, 90, 30, 4, LEAT_DECODE_TORCH},
	                                    {"cells, mode=torch", 130, 130, 85, 12, 40, LEAT_DECODE_TORCH},
	                                    {"photographs 1600x1200", 1600, 1200, 85, 20, 1, LEAT_DECODE_TF}};
	static const struct option long_options[] = {
		{"json", required_argument, NULL, 'j'}, {"repeats", required_argument, NULL, 'r'}, {0}};
	const char *json_path = NULL;
	json_t *json = json_array();
	int repeats = 9, c;

	while ((c = getopt_long(argc, argv, "", long_options, NULL)) != -1)
		if (c == 'j')
			json_path = optarg;
		else if (c == 'r')
			repeats = atoi(optarg);
		else
			return 2;
	if (repeats < 1 || repeats > BENCH_REPEATS)
		errx(2, "--repeats is 1 to %d", BENCH_REPEATS);
	bench_print_head(stdout);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		json_array_append_new(json, compare(&kinds[i], repeats));
	bench_save(json, json_path);
	return 0;
}
