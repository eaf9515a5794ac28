/* test_feed_limits.c - hostile samples are bad, at any memory, and the others come as they are
 *
 * Images that are larger than max_pixels, or that only claim to be large, and records longer than max_bytes, among good
 * ones. What is within the limits but too large for `memory` fails the feed: which samples are bad never depends on
 * memory or threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <zlib.h>

#include "base/rng.h"
#include "feed/pipeline.h"
#include "format/record.h"
#include "support/data.h"
#include "support/sources.h"
#include "support/temp.h"
#include "support/trace.h"

enum { MIB = 1 << 20, GOOD = 24, GIANT = 300 * 1000 * 1000 };

static struct temp temp;
static char spec[1000];

/* ---- files ---- */

struct bytes {
	unsigned char *data;
	size_t len, cap;
};

static unsigned char *
more(struct bytes *bytes, size_t len)
{
	while (bytes->cap - bytes->len < len) {
		bytes->cap = bytes->cap ? 2 * bytes->cap : 4096;
		bytes->data = realloc(bytes->data, bytes->cap);
		assert_non_null(bytes->data);
	}
	bytes->len += len;
	return bytes->data + bytes->len - len;
}

/* A compressor that is fed piece by piece: what it compresses need not fit in memory. */
struct packer {
	z_stream z;
	struct bytes *to;
};

static void
packer_begin(struct packer *packer, struct bytes *to, int window_bits)
{
	*packer = (struct packer){.to = to};
	assert_int_equal(deflateInit2(&packer->z, 1, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY), Z_OK);
}

static void
packer_add(struct packer *packer, const void *data, size_t len, int flush)
{
	packer->z.next_in = (void *)(uintptr_t)data;
	packer->z.avail_in = (unsigned)len;
	do {
		packer->z.next_out = more(packer->to, 65536);
		packer->z.avail_out = 65536;
		deflate(&packer->z, flush);
		packer->to->len -= packer->z.avail_out;
	} while (packer->z.avail_out == 0);
}

static void
packer_zeros(struct packer *packer, size_t len)
{
	static const unsigned char zeros[65536];

	for (size_t n; len; len -= n) {
		n = len < sizeof zeros ? len : sizeof zeros;
		packer_add(packer, zeros, n, Z_NO_FLUSH);
	}
}

static void
packer_end(struct packer *packer)
{
	packer_add(packer, NULL, 0, Z_FINISH);
	deflateEnd(&packer->z);
}

static void
put_be32(unsigned char *at, uint32_t number)
{
	for (int i = 0; i < 4; i++)
		at[i] = (unsigned char)(number >> (24 - 8 * i));
}

static void
add_chunk(struct bytes *png, const char *kind, const void *data, size_t len)
{
	unsigned char *at = more(png, len + 12);

	put_be32(at, (uint32_t)len);
	memcpy(at + 4, kind, 4);
	if (len)
		memcpy(at + 8, data, len);
	put_be32(at + 8 + len, (uint32_t)crc32(0, at + 4, (unsigned)len + 4));
}

/* A black PNG image in gray. `there`: rows that it really has. */
static void
make_png(struct bytes *png, uint32_t width, uint32_t height, uint32_t there)
{
	unsigned char header[13] = {[8] = 8};
	struct bytes data = {0};
	struct packer packer;

	*png = (struct bytes){0};
	memcpy(more(png, 8), "\x89PNG\r\n\x1a\n", 8);
	put_be32(header, width);
	put_be32(header + 4, height);
	add_chunk(png, "IHDR", header, sizeof header);
	packer_begin(&packer, &data, 15);
	packer_zeros(&packer, (size_t)there * (width + 1));
	packer_end(&packer);
	add_chunk(png, "IDAT", data.data, data.len);
	add_chunk(png, "IEND", NULL, 0);
	free(data.data);
}

static void
write_png(const char *name, uint32_t width, uint32_t height, uint32_t there)
{
	struct bytes png;

	make_png(&png, width, height, there);
	temp_write(&temp, name, png.data, png.len);
	free(png.data);
}

/* Records are those of sample i, drawn from its number, or zeros if they are long. */
static void
add_record(struct packer *packer, size_t i, size_t len)
{
	unsigned char head[LEAT_TFRECORD_HEAD], tail[LEAT_TFRECORD_TAIL], some[4096] = {0};
	uint32_t crc = 0;

	if (len <= sizeof some)
		for (size_t k = 0; k < len; k++)
			some[k] = (unsigned char)(i * 31 + k * k / 7);
	leat_store64(head, len);
	leat_store32(head + 8, leat_tfrecord_crc(head, 8));
	packer_add(packer, head, sizeof head, Z_NO_FLUSH);
	for (size_t n; len; len -= n) {
		n = len < sizeof some ? len : sizeof some;
		crc = leat_crc32c(crc, some, n);
		packer_add(packer, some, n, Z_NO_FLUSH);
	}
	leat_store32(tail, leat_crc32c_mask(crc));
	packer_add(packer, tail, sizeof tail, Z_NO_FLUSH);
}

/* A gzip TFRecord file of records of these lengths. */
static void
write_records(const char *name, const size_t *length, size_t count)
{
	struct bytes file = {0};
	struct packer packer;
	char index[300];

	packer_begin(&packer, &file, 15 + 16);
	for (size_t i = 0; i < count; i++)
		add_record(&packer, i, length[i]);
	packer_end(&packer);
	temp_write(&temp, name, file.data, file.len);
	snprintf(index, sizeof index, ".%s.leatidx", name);
	unlink(temp_path(&temp, index));
	free(file.data);
}

static const char *
of_folder(const char *source, const char *name, const char *rest)
{
	snprintf(spec, sizeof spec, "%s('%s/%s')%s", source, temp.folder, name, rest);
	return spec;
}

/* ---- what is bad ---- */

static size_t
list_bad(struct leat_feed *feed, char *text, size_t cap)
{
	size_t len = 0;

	text[0] = '\0';
	for (uint64_t i = 0; i < leat_bad_count(feed); i++) {
		const struct leat_bad *bad = leat_bad_at(feed, i);

		len += (size_t)snprintf(text + len, cap - len, "%" PRIu64 " %s %" PRIu64 " %s\n", bad->sample,
		                        strrchr(bad->uri, '/') + 1, bad->offset,
		                        strstr(bad->reason, "the ") ? strstr(bad->reason, "the ") : bad->reason);
		assert_true(len < cap);
	}
	return (size_t)leat_bad_count(feed);
}

/* The same samples and the same bad ones, those in `expected`, for any memory and any threads. */
static void
is_the_same_at_any_memory(const char *of, enum leat_on_error on_error, struct leat_options *options,
                          const char *expected)
{
	static char first_list[100000], list[100000];
	struct trace first = {0};
	bool done = false;

	options->on_error = on_error;
	for (unsigned threads = 1; threads <= 4; threads++) {
		size_t memory[3] = {0, (size_t)64 * MIB, (size_t)512 * MIB};

		options->threads = threads;
		memory[0] = trace_least_memory(of, options);
		assert_true(memory[0] < memory[1]);
		for (int i = 0; i < 3; i++) {
			struct trace trace = {0};
			struct leat_feed *feed;

			options->memory = memory[i];
			feed = trace_open(of, options);
			trace_take(&trace, feed, 0);
			if (trace.status != LEAT_DONE)
				fail_msg("%u threads, memory %zu: %s", threads, memory[i], trace.err.text);
			list_bad(feed, done ? list : first_list, sizeof list);
			leat_close(feed);
			if (done) {
				trace_compare(&first, &trace, of);
				assert_string_equal(list, first_list);
				trace_free(&trace);
			} else {
				first = trace;
				done = true;
				assert_string_equal(first_list, expected);
			}
		}
	}
	trace_free(&first);
}

/* ---- images ---- */

static void
make_images(void)
{
	char name[64];

	assert_int_equal(mkdir(temp_path(&temp, "i"), 0700), 0);
	assert_int_equal(mkdir(temp_path(&temp, "i/a"), 0700), 0);
	for (unsigned i = 0; i < GOOD; i++) {
		snprintf(name, sizeof name, "i/a/g%02u.png", i);
		write_png(name, 10 + i, 20 + i, 20 + i);
	}
}

static void
hostile_images_are_bad_at_any_memory(void **state)
{
	static const char expected[] =
		"2 g02-boast.png 0 the image has 10000 x 10000 = 100000000 pixels, more than max_pixels=89478485 "
		"allows\n"
		"8 g07-empty.png 0 the PNG image is cut off: 8 bytes of data can't hold 9000 x 9000 pixels\n"
		"14 g12-huge.png 0 the image has 10000 x 10000 = 100000000 pixels, more than max_pixels=89478485 "
		"allows\n";
	struct leat_options options;

	(void)state;
	make_images();
	write_png("i/a/g02-boast.png", 10000, 10000, 0);
	write_png("i/a/g07-empty.png", 9000, 9000, 0);
	write_png("i/a/g12-huge.png", 10000, 10000, 10000);
	trace_options(&options);
	of_folder("folder", "i", " | decode | resize(8, 8) | batch(4)");
	is_the_same_at_any_memory(spec, LEAT_ON_ERROR_SKIP, &options, expected);
	is_the_same_at_any_memory(spec, LEAT_ON_ERROR_REPLACE, &options, expected);
	of_folder("folder", "i", " | decode(channels=1) | center_crop(4, 4) | batch(4)");
	is_the_same_at_any_memory(spec, LEAT_ON_ERROR_SKIP, &options, expected);
	of_folder("folder", "i", " | decode(raw=true, dtype=uint16) | resize(8, 8, method=nearest) | batch(4)");
	is_the_same_at_any_memory(spec, LEAT_ON_ERROR_SKIP, &options, expected);
}

/* A narrow image that is scaled up by its shorter side. */
static void
an_image_that_would_become_too_large_is_bad_at_any_memory(void **state)
{
	static const char expected[] =
		"2 g02-narrow.png 0 resize: an image of 300 x 1 pixels would become 60000 x 200, "
		"more than max_pixels=1000000 allows\n";
	struct leat_options options;

	(void)state;
	make_images();
	write_png("i/a/g02-narrow.png", 300, 1, 1);
	trace_options(&options);
	options.max_pixels = 1000 * 1000;
	of_folder("folder", "i", " | decode | resize(shorter=200) | center_crop(4, 4) | batch(4)");
	is_the_same_at_any_memory(spec, LEAT_ON_ERROR_SKIP, &options, expected);
}

/* The memory that an error recommends. */
static size_t
recommended(const char *text)
{
	static const char before[] = "raise memory= to ";
	const char *at = strstr(text, before);
	uint64_t bytes = 0;
	char size[64];

	if (!at)
		fail_msg("no memory is recommended: %s", text);
	at += sizeof before - 1;
	snprintf(size, sizeof size, "%.*s", (int)strcspn(at, ","), at);
	assert_int_equal(leat_parse_size(size, &bytes, NULL), LEAT_OK);
	return (size_t)bytes;
}

static void
an_allowed_image_too_large_for_memory_fails_the_feed_and_names_both_options(void **state)
{
	struct leat_options options;
	struct leat_feed *feed;
	struct trace trace = {0};

	(void)state;
	make_images();
	write_png("i/a/g05-large.png", 9000, 9900, 9900);
	trace_options(&options);
	options.on_error = LEAT_ON_ERROR_SKIP;
	options.memory = (size_t)64 * MIB;
	of_folder("folder", "i", " | decode(channels=1) | resize(8, 8) | batch(5)");
	feed = trace_open(spec, &options);
	trace_take(&trace, feed, 0);
	leat_close(feed);
	assert_int_equal(trace.status, LEAT_LIMIT);
	assert_non_null(strstr(trace.err.text, "g05-large.png at offset 0"));
	assert_non_null(strstr(trace.err.text,
	                       "or lower max_pixels=89478485 or max_bytes so that such a sample counts as bad"));
	options.memory = recommended(trace.err.text);
	trace_free(&trace);

	trace = (struct trace){0};
	feed = trace_open(spec, &options);
	trace_take(&trace, feed, 0);
	if (trace.status != LEAT_DONE)
		fail_msg("%s", trace.err.text);
	assert_int_equal(trace.samples, GOOD + 1);
	leat_close(feed);
	trace_free(&trace);

	/* The other remedy. */
	trace = (struct trace){0};
	options.memory = (size_t)64 * MIB;
	options.max_pixels = 10 * 1000 * 1000;
	feed = trace_open(spec, &options);
	trace_take(&trace, feed, 0);
	assert_int_equal(trace.status, LEAT_DONE);
	assert_int_equal(trace.samples, GOOD);
	assert_int_equal(leat_bad_count(feed), 1);
	leat_close(feed);
	trace_free(&trace);
}

static void
a_raised_limit_allows_images_beyond_100_megapixels(void **state)
{
	static const uint64_t limits[] = {12000 * 9000, UINT64_MAX};
	struct leat_options options;

	(void)state;
	assert_int_equal(mkdir(temp_path(&temp, "i"), 0700), 0);
	assert_int_equal(mkdir(temp_path(&temp, "i/a"), 0700), 0);
	write_png("i/a/large.png", 12000, 9000, 9000);
	trace_options(&options);
	options.memory = (size_t)1024 * MIB;
	of_folder("folder", "i", " | decode(channels=1) | resize(8, 8) | batch(1)");
	for (int i = 0; i < 2; i++) {
		struct trace trace = {0};

		options.max_pixels = limits[i];
		trace_run(&trace, spec, &options);
		assert_int_equal(trace.samples, 1);
		trace_free(&trace);
	}
}

/* ---- bytes ---- */

static void
a_giant_record_in_a_small_file_is_bad_at_any_memory(void **state)
{
	static const char reason[] = "the sample has 300000000 bytes, more than max_bytes=268435456 allows";
	size_t length[GOOD];
	struct leat_options options;
	char expected[500];
	struct stat info;
	uint64_t at = 0;

	(void)state;
	for (size_t i = 0; i < GOOD; i++)
		length[i] = i == 10 ? GIANT : 100 + i;
	for (size_t i = 0; i < 10; i++)
		at += length[i] + LEAT_TFRECORD_FRAME;
	write_records("x", length, GOOD);
	assert_int_equal(stat(temp_path(&temp, "x"), &info), 0);
	assert_true(info.st_size < 2 * MIB);
	snprintf(expected, sizeof expected, "10 x %" PRIu64 " %s\n", at, reason);
	trace_options(&options);
	is_the_same_at_any_memory(of_folder("tfrecord", "x", " | batch(5)"), LEAT_ON_ERROR_SKIP, &options, expected);
	is_the_same_at_any_memory(spec, LEAT_ON_ERROR_REPLACE, &options, expected);
}

static void
an_error_names_file_offset_and_both_numbers(void **state)
{
	static const size_t length[] = {10, 20000, 10};
	struct leat_options options;
	struct trace trace = {0};
	struct leat_feed *feed;

	(void)state;
	write_records("x", length, 3);
	trace_options(&options);
	options.max_bytes = 1000;
	feed = trace_open(of_folder("tfrecord", "x", " | batch(1)"), &options);
	trace_take(&trace, feed, 0);
	assert_int_equal(trace.status, LEAT_DATA);
	assert_non_null(
		strstr(trace.err.text,
	               "/x at inflated offset 26: the sample has 20000 bytes, more than max_bytes=1000 allows"));
	leat_close(feed);
	trace_free(&trace);
}

/* The samples that a feed of the same file without a limit delivers, but for those that are too long. */
static void
compare_with_unlimited(const size_t *length, size_t count, uint64_t max_bytes, const char *rest)
{
	struct trace all = {0}, some = {0};
	struct leat_options options;
	size_t kept = 0;

	trace_options(&options);
	options.on_error = LEAT_ON_ERROR_SKIP;
	options.memory = (size_t)2048 * MIB;
	of_folder("tfrecord", "x", rest);
	trace_run(&all, spec, &options);
	assert_int_equal(all.samples, count);
	options.max_bytes = max_bytes;
	options.memory = (size_t)64 * MIB;
	trace_run(&some, spec, &options);
	for (size_t i = 0; i < count; i++) {
		if (length[i] > max_bytes)
			continue;
		assert_true(kept < some.samples);
		assert_int_equal(some.sample[kept].position, i);
		assert_memory_equal(some.sample[kept].hash, all.sample[i].hash, LEAT_SHA256_BYTES);
		kept++;
	}
	assert_int_equal(kept, some.samples);
	trace_free(&all);
	trace_free(&some);
}

/* Units begin in, end in and have long records anywhere. */
static void
long_records_of_a_compressed_file_are_holes_in_its_units(void **state)
{
	enum { ROUNDS = TEST_SLOW ? 4 : 20, RECORDS = 60 };
	size_t length[RECORDS];
	struct leat_rng rng;

	(void)state;
	leat_rng_init(&rng, 7, 0, 0, 1);
	for (int round = 0; round < ROUNDS; round++) {
		for (size_t i = 0; i < RECORDS; i++) {
			uint64_t kind = leat_rng_below(&rng, 10);

			length[i] = kind == 0  ? leat_rng_below(&rng, 30 * MIB)
			            : kind < 4 ? 5 * 1000 + leat_rng_below(&rng, 3 * MIB)
			                       : leat_rng_below(&rng, 4000);
		}
		write_records("x", length, RECORDS);
		compare_with_unlimited(length, RECORDS, round % 2 ? 4000 : (uint64_t)MIB, " | batch(7)");
	}
}

static int
compare_lengths(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Lengths of all samples as they are stored, and their median. */
static uint64_t
measure(const char *of, uint64_t *length, size_t count)
{
	uint64_t sorted[SOURCES_SAMPLES];
	struct leat_pipeline p;
	struct leat_mem mem;
	struct leat_err err;

	leat_mem_init(&mem, SIZE_MAX);
	if (leat_pipeline_open(&p, of, LEAT_BATCH_OPTIONAL, 0, 1, NULL, NULL, NULL, &mem, NULL, &err) != LEAT_OK)
		fail_msg("%s: %s", of, err.text);
	assert_int_equal(p.source.count, count);
	for (size_t i = 0; i < count; i++) {
		struct leat_extent e;

		p.source.kind->locate(&p.source, i, &e);
		sorted[i] = length[i] = e.length ? e.length - e.head - e.tail : e.lent;
	}
	leat_pipeline_close(&p);
	qsort(sorted, count, sizeof *sorted, compare_lengths);
	return sorted[count / 2];
}

static void
compare_limited(const char *of, const struct trace *all, const uint64_t *length, uint64_t max_bytes)
{
	static const size_t memory[] = {16 * MIB, 64 * MIB};
	struct leat_options options;

	trace_options(&options);
	options.on_error = LEAT_ON_ERROR_SKIP;
	options.max_bytes = max_bytes;
	for (int m = 0; m < 2; m++) {
		struct leat_feed *feed;
		struct trace some = {0};
		size_t kept = 0;

		options.memory = memory[m];
		feed = trace_open(of, &options);
		trace_take(&some, feed, 0);
		assert_int_equal(some.status, LEAT_DONE);
		for (size_t i = 0; i < all->samples; i++)
			if (length[i] <= max_bytes) {
				assert_true(kept < some.samples);
				assert_memory_equal(some.sample[kept++].hash, all->sample[i].hash, LEAT_SHA256_BYTES);
			}
		assert_int_equal(kept, some.samples);
		assert_int_equal(leat_bad_count(feed), all->samples - kept);
		for (uint64_t i = 0; i < leat_bad_count(feed); i++)
			assert_non_null(strstr(leat_bad_at(feed, i)->reason, "more than max_bytes="));
		leat_close(feed);
		trace_free(&some);
	}
}

/* A source that has to read a sample to know its fields says so at once. */
static void
all_are_too_long(const char *of, size_t count)
{
	struct leat_options options;
	struct leat_feed *feed;
	struct trace none = {0};
	struct leat_err err;

	trace_options(&options);
	options.on_error = LEAT_ON_ERROR_SKIP;
	options.max_bytes = 1;
	if (leat_open(of, &options, &feed, &err) != LEAT_OK) {
		assert_int_equal(err.status, LEAT_DATA);
		if (!strstr(err.text, "more than max_bytes=1 allows"))
			fail_msg("%s", err.text);
		return;
	}
	trace_take(&none, feed, 0);
	assert_int_equal(none.samples, 0);
	assert_int_equal(leat_bad_count(feed), count);
	leat_close(feed);
	trace_free(&none);
}

static void
long_samples_are_bad_in_every_source(void **state)
{
	struct sources sources;
	uint64_t length[SOURCES_SAMPLES];
	struct leat_options options;

	(void)state;
	sources_make(&sources);
	trace_options(&options);
	for (size_t i = 0; i < sources.count; i++) {
		struct trace all = {0};
		char of[500];

		/* Rows of a group are measured when it is decoded: test_parquet.c has that. */
		if (strcmp(sources.one[i].name, "parquet, by row group") == 0)
			continue;
		snprintf(of, sizeof of, "%s | batch(5)", sources.one[i].spec);
		trace_run(&all, of, &options);
		compare_limited(of, &all, length, measure(of, length, all.samples));
		all_are_too_long(of, all.samples);
		trace_free(&all);
	}
	sources_remove(&sources);
}

static int
setup(void **state)
{
	(void)state;
	temp_make(&temp);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	temp_remove(&temp);
	return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(hostile_images_are_bad_at_any_memory),
		TEST(an_image_that_would_become_too_large_is_bad_at_any_memory),
		TEST(an_allowed_image_too_large_for_memory_fails_the_feed_and_names_both_options),
		TEST(a_raised_limit_allows_images_beyond_100_megapixels),
		TEST(a_giant_record_in_a_small_file_is_bad_at_any_memory),
		TEST(an_error_names_file_offset_and_both_numbers),
		TEST(long_records_of_a_compressed_file_are_holes_in_its_units),
		TEST(long_samples_are_bad_in_every_source),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
