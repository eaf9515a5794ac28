/* photos.c - draws pictures that cost a JPEG decoder what photographs cost it
 *
 *	images_photos OUT [--count 2000] [--seed 1] [--large]
 *
 * Writes OUT/NN/NNNN.jpg, ten classes, of about 469 x 387 pixels (the mean of ImageNet) or, large, of
 * 1600 x 1200, upright or across, in 4:2:0. A picture is smooth noise in octaves whose amplitude falls with their
 * frequency, as the spectrum of photographs does, with shapes that have edges, and with fine
 * texture that is strong here and weak there. Each picture's quality is the one that brings its
 * file closest to a length drawn from 75 to 110 KB (large: 470 to 660). Each is a function of (seed, its number). */
#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <jpeglib.h>

enum {
	WIDTH = 469,
	HEIGHT = 387,
	LARGE_WIDTH = 1600,
	LARGE_HEIGHT = 1200,
	LARGE_BYTES = 6, /* times those of the others */
	SIDE_MAX = 2112,
	CLASSES = 10,
	SHAPES = 12,
	QUALITY_MIN = 60,
	QUALITY_MAX = 98,
	LATTICE = SIDE_MAX / 2 + 3,
};

struct rng {
	uint64_t state;
};

/* splitmix64 */
static uint64_t
next64(struct rng *rng)
{
	uint64_t x = rng->state += 0x9e3779b97f4a7c15u;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

static float
uniform(struct rng *rng, float low, float high)
{
	return low + (high - low) * (float)(next64(rng) >> 40) * 0x1p-24f;
}

/* ---- planes of floats ---- */

struct plane {
	int width, height;
	float at[SIDE_MAX * SIDE_MAX];
};

struct picture {
	struct plane light, red, blue, texture; /* red and blue are differences from light */
};

/* Adds noise of one wavelength: random values on a lattice, linear between them. */
static void
add_octave(struct plane *p, struct rng *rng, int step, float amplitude)
{
	static float lattice[LATTICE * LATTICE];
	int across = p->width / step + 2, down = p->height / step + 2;

	for (int i = 0; i < across * down; i++)
		lattice[i] = uniform(rng, -amplitude, amplitude);
	for (int y = 0; y < p->height; y++) {
		const float *upper = lattice + y / step * across, *lower = upper + across;
		float v = (float)(y % step) / (float)step;

		for (int x = 0; x < p->width; x++) {
			int i = x / step;
			float u = (float)(x % step) / (float)step;
			float up = upper[i] + (upper[i + 1] - upper[i]) * u;
			float low = lower[i] + (lower[i + 1] - lower[i]) * u;

			p->at[y * p->width + x] += up + (low - up) * v;
		}
	}
}

/* From wavelength `from` down to `to`, halving; the amplitude falls as the wavelength does to `fall`. */
static void
add_octaves(struct plane *p, struct rng *rng, int from, int to, float amplitude, float fall)
{
	for (int step = from; step >= to; step /= 2) {
		add_octave(p, rng, step, amplitude);
		amplitude *= fall;
	}
}

static void
clear(struct plane *p, int width, int height, float value)
{
	p->width = width;
	p->height = height;
	for (int i = 0; i < width * height; i++)
		p->at[i] = value;
}

/* An ellipse or, where `bend` is 0, what lies on one side of a line: another colour behind an edge. */
static void
add_shape(struct picture *p, struct rng *rng)
{
	float x0 = uniform(rng, 0, (float)p->light.width), y0 = uniform(rng, 0, (float)p->light.height);
	float ux = uniform(rng, -1, 1), uy = uniform(rng, -1, 1), size = uniform(rng, 15, 140);
	float bend = uniform(rng, 0, 1) < 0.3f ? 0 : uniform(rng, 0.5f, 3), soft = uniform(rng, 0.7f, 2.5f);
	float light = uniform(rng, -55, 55), red = uniform(rng, -20, 20), blue = uniform(rng, -20, 20);
	float length = sqrtf(ux * ux + uy * uy) + 1e-6f;

	ux /= length;
	uy /= length;
	for (int y = 0; y < p->light.height; y++) {
		for (int x = 0; x < p->light.width; x++) {
			float dx = (float)x - x0, dy = (float)y - y0;
			float along = dx * ux + dy * uy, beside = bend * (dy * ux - dx * uy);
			float outside = bend > 0 ? sqrtf(along * along + beside * beside) - size : along;
			float share = fminf(fmaxf(0.5f - outside / soft, 0), 1);
			int i = y * p->light.width + x;

			p->light.at[i] += share * light;
			p->red.at[i] += share * red;
			p->blue.at[i] += share * blue;
		}
	}
}

static void
draw(struct picture *p, struct rng *rng, bool large)
{
	float zoom = uniform(rng, 0.85f, 1.15f), stretch = uniform(rng, 0.9f, 1.1f);
	int width = (int)((float)(large ? LARGE_WIDTH : WIDTH) * zoom * stretch);
	int height = (int)((float)(large ? LARGE_HEIGHT : HEIGHT) * zoom / stretch);
	int shapes = (int)uniform(rng, 3, SHAPES);

	if (uniform(rng, 0, 1) < 0.2f) {
		int t = width;

		width = height;
		height = t;
	}
	clear(&p->light, width, height, uniform(rng, 90, 150));
	clear(&p->red, width, height, uniform(rng, -15, 15));
	clear(&p->blue, width, height, uniform(rng, -15, 15));
	clear(&p->texture, width, height, 0.8f);
	add_octaves(&p->light, rng, 256, 4, 45, 0.55f);
	add_octaves(&p->red, rng, 256, 8, 18, 0.5f);
	add_octaves(&p->blue, rng, 256, 8, 18, 0.5f);
	add_octaves(&p->texture, rng, 128, 32, 0.6f, 0.6f);
	for (int i = 0; i < shapes; i++)
		add_shape(p, rng);
	for (int i = 0; i < width * height; i++)
		p->light.at[i] += fmaxf(p->texture.at[i], 0.05f) * uniform(rng, -14, 14);
}

/* ---- files ---- */

static JSAMPLE
sample(float x)
{
	return (JSAMPLE)(fminf(fmaxf(x, 0), 255) + 0.5f);
}

static void
encode(const struct picture *p, int quality, unsigned char **bytes, unsigned long *length)
{
	struct jpeg_compress_struct jpeg;
	struct jpeg_error_mgr errors;
	JSAMPLE line[SIDE_MAX * 3];
	JSAMPROW rows[1] = {line};

	jpeg.err = jpeg_std_error(&errors); /* prints and exits */
	jpeg_create_compress(&jpeg);
	jpeg_mem_dest(&jpeg, bytes, length);
	jpeg.image_width = (JDIMENSION)p->light.width;
	jpeg.image_height = (JDIMENSION)p->light.height;
	jpeg.input_components = 3;
	jpeg.in_color_space = JCS_RGB;
	jpeg_set_defaults(&jpeg); /* 4:2:0 */
	jpeg_set_quality(&jpeg, quality, TRUE);
	jpeg_start_compress(&jpeg, TRUE);
	for (int y = 0; y < p->light.height; y++) {
		for (int x = 0; x < p->light.width; x++) {
			int i = y * p->light.width + x;

			line[3 * x] = sample(p->light.at[i] + p->red.at[i]);
			line[3 * x + 1] = sample(p->light.at[i] - 0.5f * p->red.at[i] - 0.2f * p->blue.at[i]);
			line[3 * x + 2] = sample(p->light.at[i] + p->blue.at[i]);
		}
		jpeg_write_scanlines(&jpeg, rows, 1);
	}
	jpeg_finish_compress(&jpeg);
	jpeg_destroy_compress(&jpeg);
}

/* With the highest quality that keeps the file within `most` bytes. */
static void
write_jpeg(const struct picture *p, unsigned long most, const char *path)
{
	int low = QUALITY_MIN, high = QUALITY_MAX;
	unsigned char *bytes = NULL;
	unsigned long length = 0;
	FILE *file;

	while (low < high) {
		int middle = (low + high + 1) / 2;

		encode(p, middle, &bytes, &length);
		if (length <= most)
			low = middle;
		else
			high = middle - 1;
		free(bytes);
		bytes = NULL;
	}
	encode(p, low, &bytes, &length);
	file = fopen(path, "wb");
	if (!file || fwrite(bytes, 1, length, file) != length || fclose(file) != 0)
		err(1, "cannot write %s", path);
	free(bytes);
}

static void
make_folder(const char *path)
{
	if (mkdir(path, 0777) != 0 && errno != EEXIST)
		err(1, "cannot make the folder %s", path);
}

static void
make_photos(const char *out, uint64_t count, uint64_t seed, bool large)
{
	static struct picture picture;
	char path[4096];

	make_folder(out);
	for (int i = 0; i < CLASSES; i++) {
		snprintf(path, sizeof path, "%s/%02d", out, i);
		make_folder(path);
	}
	for (uint64_t i = 0; i < count; i++) {
		struct rng rng = {seed * 0xd1342543de82ef95u + i * 0x9fb21c651e98df25u};

		next64(&rng);
		draw(&picture, &rng, large);
		snprintf(path, sizeof path, "%s/%02d/%04llu.jpg", out, (int)(i % CLASSES),
		         (unsigned long long)(i / CLASSES));
		write_jpeg(&picture, (unsigned long)(uniform(&rng, 78e3f, 110e3f) * (large ? LARGE_BYTES : 1)), path);
	}
}

int
main(int argc, char **argv)
{
	static const struct option options[] = {{"count", required_argument, NULL, 'c'},
	                                        {"seed", required_argument, NULL, 's'},
	                                        {"large", no_argument, NULL, 'l'},
	                                        {NULL, 0, NULL, 0}};
	uint64_t count = 2000, seed = 1;
	bool large = false;

	for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
		if (c == 'c')
			count = strtoull(optarg, NULL, 10);
		else if (c == 's')
			seed = strtoull(optarg, NULL, 10);
		else if (c == 'l')
			large = true;
		else
			return 2;
	}
	if (optind + 1 != argc || strlen(argv[optind]) > 4000)
		errx(2, "usage: images_photos OUT [--count 2000] [--seed 1] [--large]");
	make_photos(argv[optind], count, seed, large);
	return 0;
}
