/* make_cells.c - draws blood cells under a microscope, so that the demo needs no download
 *
 *	make_cells OUT [--count 2000] [--seed 1]
 *
 * Writes OUT/parasitized/NNNN.jpg and OUT/uninfected/NNNN.jpg, half of the count each: single
 * cells of a Giemsa-stained thin smear, cut out of their surroundings as in the malaria data
 * sets that people train on. Parasites are purple rings, dots or amoebae of any size, contrast
 * and place; specks of stain, platelets at the border, smudges and bright spots are in both
 * classes, so that neither "something dark" nor "something purple" is an answer.
 *
 * Each image is a function of (seed, its number): the same bytes every time, also when the count
 * differs. Of the maths library only sqrtf is used, which rounds the same everywhere. */
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

enum { SIDE_MIN = 100, SIDE_MAX = 160, JPEG_QUALITY = 90, HARMONICS = 6 };

/* ---- random numbers: splitmix64 ---- */

struct rng {
	uint64_t state;
};

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

static bool
chance(struct rng *rng, float share)
{
	return uniform(rng, 0, 1) < share;
}

static int
pick(struct rng *rng, int low, int high) /* both included */
{
	return low + (int)(next64(rng) % (uint64_t)(high - low + 1));
}

/* ---- shapes: a circle with waves on its outline ---- */

struct shape {
	float x, y, radius;
	float wave_x[HARMONICS + 1], wave_y[HARMONICS + 1]; /* of the k-th harmonic, k >= 2 */
};

static struct shape
make_shape(struct rng *rng, float x, float y, float radius, float irregular)
{
	struct shape s = {.x = x, .y = y, .radius = radius};

	for (int k = 2; k <= HARMONICS; k++) {
		float size = irregular * 2 / (float)k;

		s.wave_x[k] = uniform(rng, -size, size);
		s.wave_y[k] = uniform(rng, -size, size);
	}
	return s;
}

/* The outline's distance from the centre in the direction of the unit vector (ux, uy). Powers of
 * ux + i uy are the cosines and sines of the multiples of its angle. */
static float
outline(const struct shape *s, float ux, float uy)
{
	float re = ux, im = uy, sum = 1;

	for (int k = 2; k <= HARMONICS; k++) {
		float t = re * ux - im * uy;

		im = re * uy + im * ux;
		re = t;
		sum += s->wave_x[k] * re + s->wave_y[k] * im;
	}
	return s->radius * fmaxf(sum, 0.2f);
}

/* How many pixels (x, y) lies outside; negative inside. */
static float
outside(const struct shape *s, float x, float y)
{
	float dx = x - s->x, dy = y - s->y, d = sqrtf(dx * dx + dy * dy);

	return d < 1e-3f ? -s->radius : d - outline(s, dx / d, dy / d);
}

/* ---- a picture and what is put onto it ---- */

struct colour {
	float r, g, b;
};

struct picture {
	int width, height;
	struct colour at[SIDE_MAX * SIDE_MAX];
};

static float
clamp(float x, float low, float high)
{
	return fminf(fmaxf(x, low), high);
}

static struct colour
mix(struct colour a, struct colour b, float share)
{
	return (struct colour){a.r + (b.r - a.r) * share, a.g + (b.g - a.g) * share, a.b + (b.b - a.b) * share};
}

static struct colour
shade(struct colour c, float by)
{
	return (struct colour){c.r + by, c.g + by * 1.15f, c.b + by * 0.9f};
}

static struct colour
vary(struct rng *rng, struct colour c, float by)
{
	return (struct colour){c.r + uniform(rng, -by, by), c.g + uniform(rng, -by, by), c.b + uniform(rng, -by, by)};
}

struct ink {
	struct colour colour;
	float cover;  /* 0..1 */
	float soft;   /* pixels over which the edge fades */
	float line;   /* thickness of an outline, 0: the whole shape */
	float grainy; /* 0..1: share of the cover that differs from pixel to pixel */
};

static void
stamp(struct picture *p, struct rng *rng, const struct shape *s, const struct ink *ink)
{
	float reach = s->radius * 2 + ink->line + ink->soft;
	int x0 = (int)fmaxf(s->x - reach, 0), x1 = (int)fminf(s->x + reach, (float)(p->width - 1));
	int y0 = (int)fmaxf(s->y - reach, 0), y1 = (int)fminf(s->y + reach, (float)(p->height - 1));

	for (int y = y0; y <= y1; y++) {
		for (int x = x0; x <= x1; x++) {
			struct colour *c = &p->at[y * p->width + x];
			float d = outside(s, (float)x, (float)y);
			float cover;

			if (ink->line > 0)
				d = fabsf(d) - ink->line / 2;
			cover = ink->cover * clamp(0.5f - d / ink->soft, 0, 1);
			if (cover > 0 && ink->grainy > 0)
				cover *= 1 - uniform(rng, 0, ink->grainy);
			*c = mix(*c, ink->colour, cover);
		}
	}
}

/* ---- smooth noise: random values on a grid, smoothly joined ---- */

struct noise {
	float step;
	float at[24][24];
};

static void
make_noise(struct noise *n, struct rng *rng, float step)
{
	n->step = step; /* SIDE_MAX / step + 2 must fit the grid */
	for (int y = 0; y < 24; y++)
		for (int x = 0; x < 24; x++)
			n->at[y][x] = uniform(rng, -1, 1);
}

static float
noise_at(const struct noise *n, int px, int py)
{
	float x = (float)px / n->step, y = (float)py / n->step;
	int ix = (int)x, iy = (int)y;
	float fx = x - (float)ix, fy = y - (float)iy;
	const float *top = &n->at[iy][ix], *bottom = &n->at[iy + 1][ix];

	fx = fx * fx * (3 - 2 * fx);
	fy = fy * fy * (3 - 2 * fy);
	return (top[0] + (top[1] - top[0]) * fx) * (1 - fy) + (bottom[0] + (bottom[1] - bottom[0]) * fx) * fy;
}

/* ---- the cell and what is in it ---- */

/* Pink, unevenly stained, a little paler in the middle and darker at its rim. */
static void
draw_cell(struct picture *p, struct rng *rng, const struct shape *cell)
{
	struct colour pale = {230, 194, 188}, strong = {197, 150, 168};
	struct colour base = vary(rng, mix(pale, strong, uniform(rng, 0, 1)), 8);
	float uneven = uniform(rng, 4, 14), slope_x = uniform(rng, -0.2f, 0.2f), slope_y = uniform(rng, -0.2f, 0.2f);
	float pallor = uniform(rng, 0, 14), rim = uniform(rng, 4, 16), light = uniform(rng, -16, 10);
	struct noise stain, texture;

	make_noise(&stain, rng, 34);
	make_noise(&texture, rng, 8);
	for (int y = 0; y < p->height; y++) {
		for (int x = 0; x < p->width; x++) {
			float dx = (float)x - cell->x, dy = (float)y - cell->y;
			float far = (dx * dx + dy * dy) / (cell->radius * cell->radius);
			float by = light + slope_x * dx + slope_y * dy + pallor * (0.5f - far);

			by += uneven * noise_at(&stain, x, y) + 4 * noise_at(&texture, x, y);
			by -= rim * clamp(1 + outside(cell, (float)x, (float)y) / 5, 0, 1);
			p->at[y * p->width + x] = shade(base, by);
		}
	}
}

/* A place inside the cell, at most `share` of the way from its centre to its outline. */
static void
place_inside(struct rng *rng, const struct shape *cell, float share, float *x, float *y)
{
	float ux, uy, d, far;

	do {
		ux = uniform(rng, -1, 1);
		uy = uniform(rng, -1, 1);
		d = sqrtf(ux * ux + uy * uy);
	} while (d > 1 || d < 1e-3f);
	far = d * share * outline(cell, ux / d, uy / d);
	*x = cell->x + ux / d * far;
	*y = cell->y + uy / d * far;
}

static const struct colour chromatin = {104, 40, 118}, cytoplasm = {138, 96, 164};

static void
draw_ring(struct picture *p, struct rng *rng, float x, float y, float scale, float contrast)
{
	struct shape ring = make_shape(rng, x, y, uniform(rng, 5, 10) * scale, 0.07f);
	struct ink line = {vary(rng, cytoplasm, 12), contrast * 0.85f, 1.6f, uniform(rng, 1.8f, 3.2f) * scale, 0.3f};
	struct ink dark = {vary(rng, chromatin, 12), fminf(contrast * 1.1f, 0.95f), 1.6f, 0, 0.15f};

	stamp(p, rng, &ring, &line);
	for (int dots = chance(rng, 0.25f) ? 2 : 1; dots > 0; dots--) {
		float ux = uniform(rng, -1, 1), uy = chance(rng, 0.5f) ? 1 - fabsf(ux) : fabsf(ux) - 1;
		float d = sqrtf(ux * ux + uy * uy), r = outline(&ring, ux / d, uy / d);
		struct shape dot =
			make_shape(rng, x + ux / d * r, y + uy / d * r, uniform(rng, 1.8f, 3.2f) * scale, 0.1f);

		stamp(p, rng, &dot, &dark);
	}
}

static void
draw_dot(struct picture *p, struct rng *rng, float x, float y, float scale, float contrast)
{
	struct shape dot = make_shape(rng, x, y, uniform(rng, 2.6f, 5) * scale, 0.12f);
	struct shape halo = dot;
	struct ink dark = {vary(rng, chromatin, 14), fminf(contrast * 1.05f, 0.95f), 2, 0, 0.2f};
	struct ink pale = {vary(rng, cytoplasm, 12), contrast * 0.45f, 4, 0, 0.3f};

	halo.radius *= 1.7f;
	stamp(p, rng, &halo, &pale);
	stamp(p, rng, &dot, &dark);
}

static void
draw_amoeba(struct picture *p, struct rng *rng, float x, float y, float scale, float contrast)
{
	float radius = uniform(rng, 8, 17) * scale;
	struct shape body = make_shape(rng, x, y, radius, 0.2f);
	struct ink plasma = {vary(rng, cytoplasm, 14), contrast * 0.75f, 3, 0, 0.35f};
	struct ink dark = {vary(rng, chromatin, 14), contrast * 0.9f, 2, 0, 0.2f};

	stamp(p, rng, &body, &plasma);
	for (int grains = pick(rng, 1, 5); grains > 0; grains--) {
		struct shape grain = make_shape(rng, 0, 0, uniform(rng, 1.5f, 4) * scale, 0.15f);

		place_inside(rng, &body, 0.75f, &grain.x, &grain.y);
		stamp(p, rng, &grain, &dark);
	}
}

static void
draw_parasites(struct picture *p, struct rng *rng, const struct shape *cell)
{
	float scale = cell->radius / 60;

	for (int left = chance(rng, 0.2f) ? pick(rng, 2, 3) : 1; left > 0; left--) {
		float contrast = uniform(rng, 0.4f, 0.9f), kind = uniform(rng, 0, 1), x, y;

		place_inside(rng, cell, 0.8f, &x, &y);
		if (kind < 0.45f)
			draw_ring(p, rng, x, y, scale, contrast);
		else if (kind < 0.7f)
			draw_dot(p, rng, x, y, scale, contrast);
		else
			draw_amoeba(p, rng, x, y, scale, contrast);
	}
}

/* Crumbs of stain: darker than a parasite, but tiny, and blackish or brown. */
static void
draw_specks(struct picture *p, struct rng *rng, const struct shape *cell)
{
	struct colour black = {92, 74, 96}, brown = {128, 92, 84};

	for (int left = pick(rng, 1, 3); left > 0; left--) {
		struct shape speck = make_shape(rng, 0, 0, uniform(rng, 0.7f, 1.7f), 0.1f);
		struct ink ink = {mix(black, brown, uniform(rng, 0, 1)), uniform(rng, 0.4f, 0.85f), 1.4f, 0, 0};

		place_inside(rng, cell, 0.95f, &speck.x, &speck.y);
		stamp(p, rng, &speck, &ink);
	}
}

/* A platelet that lies on the rim: purple as a parasite is, but pale, granular and at the border. */
static void
draw_platelet(struct picture *p, struct rng *rng, const struct shape *cell)
{
	struct colour violet = {164, 118, 172};
	struct shape body = make_shape(rng, 0, 0, uniform(rng, 5, 10), 0.12f);
	struct ink ink = {vary(rng, violet, 12), uniform(rng, 0.35f, 0.7f), 2.5f, 0, 0.6f};
	float ux, uy, far;

	place_inside(rng, cell, 1, &body.x, &body.y);
	ux = body.x - cell->x;
	uy = body.y - cell->y;
	far = sqrtf(ux * ux + uy * uy) + 1e-3f;
	ux /= far;
	uy /= far;
	far = outline(cell, ux, uy) * uniform(rng, 0.95f, 1.06f);
	body.x = cell->x + ux * far;
	body.y = cell->y + uy * far;
	stamp(p, rng, &body, &ink);
}

/* A wide stain in the cell's own pink. */
static void
draw_smudge(struct picture *p, struct rng *rng, const struct shape *cell)
{
	struct colour pink = {186, 116, 138};
	struct shape body = make_shape(rng, 0, 0, uniform(rng, 7, 16), 0.2f);
	struct ink ink = {vary(rng, pink, 10), uniform(rng, 0.15f, 0.4f), 6, 0, 0.2f};

	place_inside(rng, cell, 0.85f, &body.x, &body.y);
	stamp(p, rng, &body, &ink);
}

/* A bright spot within a faint dark line, as air and water leave: a ring, but no parasite's. */
static void
draw_bubble(struct picture *p, struct rng *rng, const struct shape *cell)
{
	struct colour bright = {240, 222, 220}, dark = {172, 128, 140};
	struct shape body = make_shape(rng, 0, 0, uniform(rng, 3, 8), 0.06f);
	struct ink inside = {bright, uniform(rng, 0.3f, 0.7f), 2.5f, 0, 0.1f};
	struct ink line = {dark, uniform(rng, 0.2f, 0.5f), 1.6f, 1.5f, 0.1f};

	place_inside(rng, cell, 0.85f, &body.x, &body.y);
	stamp(p, rng, &body, &inside);
	stamp(p, rng, &body, &line);
}

static void
draw_distractors(struct picture *p, struct rng *rng, const struct shape *cell, bool parasitized)
{
	float share = parasitized ? 0.2f : 0.4f; /* a cell without a parasite has to offer something else */

	if (chance(rng, share))
		draw_smudge(p, rng, cell);
	if (chance(rng, share))
		draw_bubble(p, rng, cell);
	if (chance(rng, share))
		draw_platelet(p, rng, cell);
	if (chance(rng, share))
		draw_specks(p, rng, cell);
}

/* Makes everything outside of the cell black, as a segmentation leaves it, or the smear's bright ground. */
static void
draw_surroundings(struct picture *p, struct rng *rng, const struct shape *cell)
{
	bool cut_out = chance(rng, 0.85f);
	struct colour ground = cut_out ? (struct colour){0, 0, 0} : vary(rng, (struct colour){236, 228, 230}, 8);
	float soft = cut_out ? 1.2f : 3;

	for (int y = 0; y < p->height; y++) {
		for (int x = 0; x < p->width; x++) {
			struct colour *c = &p->at[y * p->width + x];
			float grain = uniform(rng, -3, 3);

			*c = shade(*c, grain);
			*c = mix(*c, shade(ground, cut_out ? 0 : grain),
			         clamp(0.5f + outside(cell, (float)x, (float)y) / soft, 0, 1));
		}
	}
}

/* The cell's place in a picture that is just large enough for it. */
static struct shape
frame(struct picture *p, struct rng *rng)
{
	struct shape cell = make_shape(rng, 0, 0, uniform(rng, 49, 74), 0.035f);
	float left = 0, right = 0, up = 0, down = 0, ux = 1, uy = 0;
	const float turn_x = 0.98078528f, turn_y = 0.19509032f; /* 1/32 of a full turn */

	for (int i = 0; i < 32; i++) {
		float far = outline(&cell, ux, uy), t = ux * turn_x - uy * turn_y;

		left = fminf(left, ux * far);
		right = fmaxf(right, ux * far);
		up = fminf(up, uy * far);
		down = fmaxf(down, uy * far);
		uy = ux * turn_y + uy * turn_x;
		ux = t;
	}
	p->width = (int)clamp(right - left + 4, SIDE_MIN, SIDE_MAX);
	p->height = (int)clamp(down - up + 4, SIDE_MIN, SIDE_MAX);
	cell.x = ((float)p->width - left - right) / 2;
	cell.y = ((float)p->height - up - down) / 2;
	return cell;
}

static void
draw(struct picture *p, uint64_t seed, uint64_t number, bool parasitized)
{
	struct rng rng = {seed};
	struct shape cell;

	rng.state = next64(&rng) ^ (number * 0xd1342543de82ef95u);
	next64(&rng);
	cell = frame(p, &rng);
	draw_cell(p, &rng, &cell);
	draw_distractors(p, &rng, &cell, parasitized);
	if (parasitized)
		draw_parasites(p, &rng, &cell);
	draw_surroundings(p, &rng, &cell);
}

/* ---- files ---- */

static JSAMPLE
sample(float x)
{
	return (JSAMPLE)(clamp(x, 0, 255) + 0.5f);
}

static void
write_jpeg(const struct picture *p, const char *path)
{
	struct jpeg_compress_struct jpeg;
	struct jpeg_error_mgr errors;
	JSAMPLE line[SIDE_MAX * 3];
	JSAMPROW rows[1] = {line};
	FILE *file = fopen(path, "wb");

	if (!file)
		err(1, "cannot write %s", path);
	jpeg.err = jpeg_std_error(&errors); /* prints and exits */
	jpeg_create_compress(&jpeg);
	jpeg_stdio_dest(&jpeg, file);
	jpeg.image_width = (JDIMENSION)p->width;
	jpeg.image_height = (JDIMENSION)p->height;
	jpeg.input_components = 3;
	jpeg.in_color_space = JCS_RGB;
	jpeg_set_defaults(&jpeg);
	jpeg_set_quality(&jpeg, JPEG_QUALITY, TRUE);
	jpeg_start_compress(&jpeg, TRUE);
	for (int y = 0; y < p->height; y++) {
		for (int x = 0; x < p->width; x++) {
			const struct colour *c = &p->at[y * p->width + x];

			line[3 * x] = sample(c->r);
			line[3 * x + 1] = sample(c->g);
			line[3 * x + 2] = sample(c->b);
		}
		jpeg_write_scanlines(&jpeg, rows, 1);
	}
	jpeg_finish_compress(&jpeg);
	jpeg_destroy_compress(&jpeg);
	if (fclose(file) != 0)
		err(1, "cannot write %s", path);
}

static void
make_folder(const char *path)
{
	if (mkdir(path, 0777) != 0 && errno != EEXIST)
		err(1, "cannot make the folder %s", path);
}

static const char *const classes[] = {"parasitized", "uninfected"};

static void
make_cells(const char *out, uint64_t count, uint64_t seed)
{
	static struct picture picture;
	char path[4096];

	make_folder(out);
	for (uint64_t i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/%s", out, classes[i]);
		make_folder(path);
	}
	for (uint64_t i = 0; i < count; i++) {
		draw(&picture, seed, i, i % 2 == 0);
		snprintf(path, sizeof(path), "%s/%s/%04llu.jpg", out, classes[i % 2], (unsigned long long)(i / 2));
		write_jpeg(&picture, path);
	}
}

static uint64_t
number(const char *option, const char *text)
{
	char *end;
	unsigned long long value;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno || end == text || *end || *text == '-')
		errx(2, "%s needs a whole number, not '%s'", option, text);
	return value;
}

int
main(int argc, char **argv)
{
	static const struct option options[] = {
		{"count", required_argument, NULL, 'c'}, {"seed", required_argument, NULL, 's'}, {NULL, 0, NULL, 0}};
	uint64_t count = 2000, seed = 1;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'c')
			count = number("--count", optarg);
		else if (c == 's')
			seed = number("--seed", optarg);
		else
			return 2;
	}
	if (optind + 1 != argc)
		errx(2, "usage: make_cells OUT [--count 2000] [--seed 1]");
	if (strlen(argv[optind]) > 4000)
		errx(2, "the name of the output folder is too long");
	make_cells(argv[optind], count, seed);
	return 0;
}
