/* open.c - how long it takes from leat_open to the first batch, and to open a million samples
 *
 *	bench_open FOLDER [--json FILE] [--repeats N] [--samples N] [--only NAME]
 *
 * Indexes are made before, and the page cache is warm: what every run but the first one of a
 * training finds. The first part opens 10,000 records of 10 KB, and as many images in Examples,
 * prepared as in the demo, and waits for the first batch; the second opens a million tiny
 * samples (--samples) of each source, and does not read one. */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jpeglib.h>

#include "base/rng.h"
#include "bench.h"
#include "format/example.h"
#include "format/record.h"
#include "format/source.h"
#include "leat.h"
#include "many.h"

enum { CELLS = 10000, SIDE = 130 };

static const double first_batch_ms = 20, open_ms = 100;

struct choice {
	const char *only;
	int64_t samples;
	struct bench_common common;
	json_t *results;
};

/* ---- cells: noise that looks a little like them, as JPEG in Examples ---- */

static unsigned char *
draw_cell(uint64_t number, unsigned long *size)
{
	struct jpeg_compress_struct cinfo;
	struct jpeg_error_mgr errors;
	unsigned char *jpeg = NULL, row[SIDE * 3], *rows = row;

	cinfo.err = jpeg_std_error(&errors);
	jpeg_create_compress(&cinfo);
	jpeg_mem_dest(&cinfo, &jpeg, size);
	cinfo.image_width = cinfo.image_height = SIDE;
	cinfo.input_components = 3;
	cinfo.in_color_space = JCS_RGB;
	jpeg_set_defaults(&cinfo);
	jpeg_start_compress(&cinfo, TRUE);
	for (unsigned y = 0; y < SIDE; y++) {
		for (unsigned x = 0; x < SIDE * 3; x++)
			row[x] = (unsigned char)(96 + x % 3 * 40 + (x + y) / 16 +
			                         leat_mix64(number << 32 | y << 16 | x) % 24);
		jpeg_write_scanlines(&cinfo, &rows, 1);
	}
	jpeg_finish_compress(&cinfo);
	jpeg_destroy_compress(&cinfo);
	return jpeg;
}

static void
make_cells(const char *path)
{
	struct leat_tfrecord_writer writer;
	struct leat_example example;
	struct leat_mem mem;
	struct leat_err why;

	if (access(path, F_OK) == 0)
		return;
	leat_mem_init(&mem, SIZE_MAX);
	if (leat_tfrecord_writer_open(&writer, path, &mem, &why) != LEAT_OK)
		errx(1, "%s", why.text);
	leat_example_init(&example, &mem, 1 << 20);
	for (uint64_t i = 0; i < CELLS; i++) {
		unsigned long size = 0;
		unsigned char *jpeg = draw_cell(i, &size);
		int64_t label = (int64_t)(i % 2);
		const void *record;
		size_t len;

		leat_example_begin(&example);
		leat_example_add_bytes(&example, "image", jpeg, size);
		leat_example_add_int64s(&example, "label", &label, 1);
		if (leat_example_finish(&example, &record, &len, &why) != LEAT_OK ||
		    leat_tfrecord_writer_append(&writer, record, len, &why) != LEAT_OK)
			errx(1, "%s", why.text);
		free(jpeg);
	}
	leat_example_free(&example);
	if (leat_tfrecord_writer_close(&writer, &why) != LEAT_OK)
		errx(1, "%s", why.text);
}

/* ---- measuring ---- */

struct opened {
	const char *spec;
	bool batch;       /* wait for the first one */
	uint64_t samples; /* that there have to be */
};

static struct bench_time
run_open(void *arg)
{
	const struct opened *opened = arg;
	struct bench_clock begin = bench_begin();
	struct bench_time time;
	struct leat_feed *feed;
	struct leat_batch *batch;
	struct leat_err why;

	if (leat_open(opened->spec, NULL, &feed, &why) != LEAT_OK ||
	    (opened->batch && leat_next(feed, &batch, &why) != LEAT_OK))
		errx(1, "%s", why.text);
	time = bench_end(begin);
	if (leat_samples(feed) != opened->samples)
		errx(1, "%s has %llu samples, not %llu", opened->spec, (unsigned long long)leat_samples(feed),
		     (unsigned long long)opened->samples);
	if (opened->batch)
		leat_release(batch);
	leat_close(feed);
	return time;
}

static void
measure(const char *name, const struct opened *opened, double target_ms, const struct choice *choice)
{
	const struct bench_contender leat = {"leat", run_open, (void *)opened};
	struct bench_result result = {.name = name, .items = (double)opened->samples};
	double ms;
	json_t *json;

	if (choice->only && !strstr(name, choice->only))
		return;
	bench_compare(&result, &leat, 1, (int)choice->common.repeats);
	ms = result.wall[0].median * 1e3;
	printf("%-44s %9llu %8.2f (%.2f .. %.2f)", name, (unsigned long long)opened->samples, ms,
	       result.wall[0].low * 1e3, result.wall[0].high * 1e3);
	if (target_ms > 0)
		printf("   at most %.0f: %s", target_ms, ms <= target_ms ? "reached" : "MISSED");
	printf("\n");
	fflush(stdout);
	json = bench_json(&result, 0);
	if (target_ms > 0)
		json_object_set_new(json, "most_ms", json_real(target_ms));
	json_array_append_new(choice->results, json);
}

static void
measure_first_batches(const char *folder, const struct choice *choice)
{
	struct bench_data data = {.name = "10k", .length = 10000, .files = 4, .per_file = 2500};
	static const char *const rest[] = {"batch(256)", "shuffle | batch(256)"};
	char path[BENCH_PATH], spec[2 * BENCH_PATH];

	bench_data_make(&data, folder);
	for (size_t i = 0; i < sizeof rest / sizeof *rest; i++) {
		struct opened opened = {bench_data_spec(&data, rest[i]), true, bench_records(&data)};
		char name[80];

		snprintf(name, sizeof name, "first batch: tfrecord | %s", rest[i]);
		measure(name, &opened, first_batch_ms, choice);
		free((char *)opened.spec);
	}
	if (snprintf(path, sizeof path, "%s/cells.tfrecord", folder) >= (int)sizeof path)
		errx(1, "the path of %s is too long", folder);
	make_cells(path);
	snprintf(spec, sizeof spec,
	         "tfrecord('%s') | example(image=bytes, label=int64) | shuffle | decode | resize(100, 100) | "
	         "scale(1/255) | batch(256)",
	         path);
	measure("first batch: JPEG 130x130, decode | resize", &(struct opened){spec, true, CELLS}, 0, choice);
}

static void
measure_many(const char *folder, const struct choice *choice)
{
	for (size_t i = 0; leat_sources[i]; i++) {
		struct many many = {.source = leat_sources[i]->name, .samples = (uint64_t)choice->samples};
		char name[80], spec[BENCH_PATH + 100];

		if (choice->only && strcmp(choice->only, many.source) != 0)
			continue;
		if (!many_make(&many, folder)) {
			printf("%-44s is not measured: bench/many.c does not say how to make its data\n", many.source);
			continue;
		}
		snprintf(spec, sizeof spec, "%s | batch(256)", many.spec);
		snprintf(name, sizeof name, "open: %s", many.source);
		measure(name, &(struct opened){spec, false, many.samples}, open_ms, choice);
	}
}

int
main(int argc, char **argv)
{
	struct choice choice = {.common = {.repeats = 15}, .samples = 1000000, .results = json_array()};
	const struct bench_option options[] = {{"samples", NULL, &choice.samples}, {"only", &choice.only, NULL}, {0}};
	const char *folder =
		bench_arguments(argc, argv, "bench_open FOLDER [--json FILE] [--repeats N] [--samples N] [--only NAME]",
	                        &choice.common, options);

	if (choice.samples < 1000 || choice.samples % 1000)
		errx(2, "--samples is a multiple of 1000");
	printf("%-44s %9s %8s (quartiles)\n", "what", "samples", "ms");
	measure_first_batches(folder, &choice);
	measure_many(folder, &choice);
	bench_save(choice.results, choice.common.json);
	return 0;
}
