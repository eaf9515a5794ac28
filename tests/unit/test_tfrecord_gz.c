/* test_tfrecord_gz.c - compressed TFRecord files give the records that they were made of, in any order, and what
 * cannot be inflated is told */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <zlib.h>

#include "base/rng.h"
#include "base/threads.h"
#include "format/record.h"
#include "format/source.h"
#include "format/tfrecord.h"
#include "support/logged.h"
#include "support/source.h"
#include "support/temp.h"
#include "support/trace.h"

static struct leat_mem mem;
static struct temp temp;
static struct leat_source source;
static struct leat_err err;

static int
set_up(void **state)
{
	(void)state;
	leat_mem_init(&mem, SIZE_MAX);
	temp_make(&temp);
	setenv("XDG_CACHE_HOME", temp_path(&temp, "cache"), 1);
	memset(&logged, 0, sizeof(logged));
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	temp_remove(&temp);
	return mem.used != 0;
}

/* ---- records ---- */

enum { GZIP = 15 + 16, ZLIB = 15 };

struct bytes {
	unsigned char *data;
	size_t len, cap;
};

static unsigned char *
more(struct bytes *bytes, size_t len)
{
	if (bytes->cap - bytes->len < len) {
		bytes->cap = 2 * (bytes->len + len);
		bytes->data = realloc(bytes->data, bytes->cap);
		assert_non_null(bytes->data);
	}
	bytes->len += len;
	return bytes->data + bytes->len - len;
}

/* What record `i` of `len` bytes holds: a part that can be compressed, and one that cannot. */
static void
fill(unsigned char *data, size_t i, size_t len)
{
	struct leat_rng rng;

	leat_rng_init(&rng, i, 0, 0, 1);
	for (size_t k = 0; k < len; k++)
		data[k] = k % 1000 < 500 ? (unsigned char)leat_rng_below(&rng, 256) : (unsigned char)(i + k / 100);
}

static void
add_record(struct bytes *bytes, size_t i, size_t len)
{
	unsigned char *at = more(bytes, len + LEAT_TFRECORD_FRAME);

	leat_store64(at, len);
	leat_store32(at + 8, leat_tfrecord_crc(at, 8));
	fill(at + LEAT_TFRECORD_HEAD, i, len);
	leat_store32(at + LEAT_TFRECORD_HEAD + len, leat_tfrecord_crc(at + LEAT_TFRECORD_HEAD, len));
}

/* Appends `data` as one member. */
static void
pack(struct bytes *to, const void *data, size_t len, int window_bits, int level)
{
	z_stream z = {0};

	assert_int_equal(deflateInit2(&z, level, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY), Z_OK);
	z.next_in = (void *)(uintptr_t)data;
	z.avail_in = (unsigned)len;
	z.avail_out = (unsigned)deflateBound(&z, len);
	z.next_out = more(to, z.avail_out);
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	to->len -= z.avail_out;
	deflateEnd(&z);
}

static void
put(const char *name, const struct bytes *bytes)
{
	char index[300];

	temp_write(&temp, name, bytes->data, bytes->len);
	snprintf(index, sizeof(index), ".%s.leatidx", name);
	unlink(temp_path(&temp, index));
}

/* ---- a source ---- */

static struct leat_tfrecord_params params;
static const char *pattern;
static struct leat_scratch scratch;
static _Thread_local struct leat_unit in; /* that a sample was read from last */

static enum leat_status
open_source(const char *name, unsigned threads)
{
	static char path[512];

	snprintf(path, sizeof(path), "%s/%s", temp.folder, name);
	pattern = path;
	params = (struct leat_tfrecord_params){.patterns = {1, &pattern}, .crc = true};
	leat_err_clear(&err);
	return leat_source_open(&source, leat_source_find("tfrecord"), &params, threads, UINT64_MAX, NULL, &mem,
	                        &log_all, &err);
}

static void
must_open(const char *name)
{
	if (open_source(name, 2) != LEAT_OK)
		fail_msg("%s", err.text);
	assert_int_equal(leat_scratch_open(&scratch, &mem, source.max_scratch + 4096), 0);
}

static void
close_source(void)
{
	free(in.bytes);
	in.bytes = NULL;
	leat_scratch_close(&scratch, &mem);
	leat_source_close(&source);
}

/* The unit of a sample, fetched and decoded for it alone; to be freed with its bytes. */
static enum leat_status
read_unit(const struct leat_source *of, const struct leat_extent *extent, struct leat_unit *unit,
          struct leat_scratch *s, struct leat_err *e)
{
	struct leat_extent bytes;
	struct iovec iov;
	enum leat_status status;
	size_t got;

	*unit = (struct leat_unit){.number = extent->unit, .bytes = malloc(of->max_unit + 1)};
	of->kind->unit(of, extent->unit, &bytes);
	iov = (struct iovec){malloc((size_t)bytes.length + 1), (size_t)bytes.length};
	status = leat_files_read(of->files, bytes.file, bytes.offset, &iov, 1, 0, &got, e);
	if (status == LEAT_OK)
		status = of->kind->decode(of, &bytes, iov.iov_base, unit, s, e);
	free(iov.iov_base);
	return status;
}

static enum leat_status
read_with(struct leat_scratch *s, uint64_t i, const struct leat_extent *extent, struct leat_sample *sample,
          struct leat_err *e)
{
	struct leat_raw raw = {.index = i, .extent = *extent};
	enum leat_status status = LEAT_OK;

	leat_scratch_reset(s);
	leat_err_clear(e);
	if (extent->in_unit && !(in.bytes && in.number == extent->unit)) {
		free(in.bytes);
		status = read_unit(&source, extent, &in, s, e);
	}
	if (extent->in_unit)
		raw.unit = &in;
	return status == LEAT_OK ? source.kind->unpack(&source, &raw, s, sample, e) : status;
}

static bool
is_record(const struct leat_sample *sample, size_t number, size_t len)
{
	unsigned char *want = malloc(len + 1);
	bool same;

	fill(want, number, len);
	same = sample->count == 1 && (size_t)sample->field[0].shape[0] == len &&
	       memcmp(sample->field[0].data, want, len) == 0;
	free(want);
	return same;
}

static void
check_record(uint64_t i, size_t number, size_t len)
{
	struct leat_extent extent;
	struct leat_sample sample;

	source.kind->locate(&source, i, &extent);
	assert_false(extent.damaged);
	assert_int_equal(extent.length, 0);
	assert_int_equal(extent.lent, len);
	if (read_with(&scratch, i, &extent, &sample, &err) != LEAT_OK)
		fail_msg("sample %llu: %s", (unsigned long long)i, err.text);
	assert_true(is_record(&sample, number, len));
}

static void
check_bad(uint64_t i, const char *part)
{
	struct leat_extent extent;
	struct leat_sample sample;

	source.kind->locate(&source, i, &extent);
	assert_int_equal(read_with(&scratch, i, &extent, &sample, &err), LEAT_DATA);
	if (!strstr(err.text, part))
		fail_msg("'%s' does not say '%s'", err.text, part);
}

/* ---- a file with some points ---- */

enum { LARGE = 150 };

static size_t
large_size(size_t i)
{
	return i % 10 == 3 ? 0 : i == 77 ? 6000000 : i * 7919 % 160000;
}

/* Some 18 MB of records, one longer than from point to point. `members`: how many gzip members; their
 * bounds lie inside records. */
static struct bytes
large_file(int window_bits, size_t members, int level)
{
	struct bytes plain = {0}, packed = {0};

	for (size_t i = 0; i < LARGE; i++)
		add_record(&plain, i, large_size(i));
	for (size_t m = 0; m < members; m++) {
		size_t begin = plain.len * m / members, end = plain.len * (m + 1) / members;

		pack(&packed, plain.data + begin, end - begin, window_bits, level);
	}
	free(plain.data);
	return packed;
}

static void
check_large(void)
{
	assert_int_equal(source.count, LARGE);
	for (uint64_t i = 0; i < LARGE; i++)
		check_record(i, i, large_size(i));
	for (uint64_t i = LARGE; i-- > 0;)
		check_record(i, i, large_size(i));
	for (uint64_t k = 0; k < LARGE; k++)
		check_record(k * 67 % LARGE, k * 67 % LARGE, large_size(k * 67 % LARGE));
}

static void
records_come_in_any_order_from_gzip_and_zlib(void **state)
{
	static const struct {
		int window_bits, level;
		size_t members;
	} ways[] = {{GZIP, 1, 1}, {ZLIB, 6, 1}, {GZIP, 0, 1}, {GZIP, 1, 7}, {ZLIB, 1, 3}};

	(void)state;
	for (size_t w = 0; w < (TEST_SLOW ? 2 : sizeof(ways) / sizeof(ways[0])); w++) {
		struct bytes packed = large_file(ways[w].window_bits, ways[w].members, ways[w].level);

		put("x", &packed);
		for (int again = 0; again < 2; again++) { /* the second time with the index that was kept */
			logged.info = 0;
			must_open("x");
			assert_int_equal(logged.info, !again);
			assert_int_equal(logged.warn, 0);
			assert_true(source.units > 0);
			check_large();
			close_source();
		}
		free(packed.data);
	}
}

static void
empty_members_and_empty_files_hold_nothing(void **state)
{
	struct bytes packed = {0}, plain = {0};

	(void)state;
	pack(&packed, "", 0, GZIP, 6);
	pack(&packed, "", 0, GZIP, 6);
	put("a", &packed);
	must_open("a");
	assert_int_equal(source.count, 0);
	close_source();
	add_record(&plain, 5, 30);
	pack(&packed, plain.data, 7, GZIP, 6);
	pack(&packed, "", 0, GZIP, 6);
	pack(&packed, plain.data + 7, plain.len - 7, GZIP, 6);
	pack(&packed, "", 0, GZIP, 6);
	put("a", &packed);
	must_open("a");
	assert_int_equal(source.count, 1);
	check_record(0, 5, 30);
	close_source();
	assert_int_equal(logged.warn, 0);
	free(packed.data);
	free(plain.data);
}

/* By tests/golden/make_tf.py. */
static void
files_of_tensorflow_are_read(void **state)
{
	static const char *const names[] = {"gzip.tfrecord", "zlib.tfrecord"};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct whole whole;
		char path[1000], spec[600];
		unsigned char *bytes;
		size_t len;

		snprintf(path, sizeof(path), GOLDEN "tf/%s", names[i]);
		bytes = temp_read(path, &len); /* a copy, because the index is made beside it */
		snprintf(spec, sizeof(spec), "tfrecord('%s')", temp_write(&temp, "x", bytes, len));
		free(bytes);
		whole_open(&whole, spec, NULL);
		assert_int_equal(whole.count, 20);
		for (int64_t k = 0; k < whole.count; k++) {
			char want[400] = "";

			for (int64_t n = 0; n < k; n++)
				snprintf(want + strlen(want), sizeof(want) - strlen(want), "record %lld, ",
				         (long long)k);
			whole_expect_text(&whole, "record", k, want);
		}
		whole_close(&whole);
	}
}

/* ---- feeds ---- */

static const char *
spec_of(const char *rest)
{
	static char spec[600];

	snprintf(spec, sizeof(spec), "tfrecord('%s/[xyz]')%s", temp.folder, rest);
	return spec;
}

/* A compressed, a plain and another compressed file. */
static void
put_mixed(void)
{
	struct bytes plain = {0}, small = {0}, packed = large_file(GZIP, 2, 1);

	put("x", &packed);
	for (size_t i = 0; i < 40; i++)
		add_record(&plain, i, i * 10);
	put("y", &plain);
	pack(&small, plain.data, plain.len, ZLIB, 9);
	put("z", &small);
	free(plain.data);
	free(small.data);
	free(packed.data);
}

static void
plain_and_compressed_files_go_together(void **state)
{
	struct leat_sample sample;
	struct leat_extent extent;

	(void)state;
	put_mixed();
	must_open("[xyz]");
	assert_int_equal(source.count, LARGE + 80);
	check_record(149, 149, large_size(149));
	source.kind->locate(&source, LARGE + 7, &extent);
	assert_int_equal(extent.length, 70 + LEAT_TFRECORD_FRAME);
	assert_int_equal(extent.file, 1);
	check_record(LARGE + 47, 7, 70);
	source.kind->locate(&source, 0, &extent);
	assert_int_equal(read_with(&scratch, 0, &extent, &sample, &err), LEAT_OK);
	close_source();
}

static void
feeds_give_the_same_with_any_threads_and_after_stopping(void **state)
{
	static const char *const orders[] = {"", "shuffle(window=20) | ", "shuffle(block=8, window=4) | ",
	                                     "interleave(3) | "};
	struct leat_options options;
	struct trace all, plain;

	(void)state;
	put_mixed();
	for (size_t o = 0; o < sizeof(orders) / sizeof(orders[0]); o++) {
		char rest[100];

		snprintf(rest, sizeof(rest), " | %sbatch(9)", orders[o]);
		trace_options(&options);
		options.memory = (size_t)512 << 20;
		options.epochs = 2;
		options.threads = 1;
		trace_run(&all, spec_of(rest), &options);
		assert_int_equal(all.status, LEAT_DONE);
		assert_int_equal(all.samples, 2 * (LARGE + 80));
		for (size_t stop = 0; stop < all.batches; stop += 17) {
			struct leat_feed *feed;
			char *json;

			options.threads = 4;
			plain = (struct trace){0};
			feed = trace_open(spec_of(rest), &options);
			if (stop)
				trace_take(&plain, feed, stop);
			assert_int_equal(leat_save(feed, &json, &err), LEAT_OK);
			leat_close(feed);
			options.threads = 3;
			feed = trace_open(spec_of(rest), &options);
			assert_int_equal(leat_restore(feed, json, &err), LEAT_OK);
			trace_take(&plain, feed, 0);
			trace_compare_samples(&all, &plain, spec_of(rest));
			leat_close(feed);
			trace_free(&plain);
			free(json);
		}
		trace_free(&all);
	}
}

static void
shuffle_of_all_needs_a_cache(void **state)
{
	struct bytes plain = {0}, packed = {0};
	struct leat_options options;
	struct trace trace;

	(void)state;
	for (size_t i = 0; i < 50; i++)
		add_record(&plain, i, i * 10);
	pack(&packed, plain.data, plain.len, GZIP, 6);
	put("x", &packed);
	expect_refused(spec_of(" | shuffle"), LEAT_SPEC, "use shuffle(window) or shuffle(block=..., window=...)");
	expect_refused(spec_of(" | take(5) | shuffle(0)"), LEAT_SPEC, "put cache before it");
	trace_options(&options);
	trace_run(&trace, spec_of(" | shuffle(10) | batch(4)"), &options);
	assert_int_equal(trace.samples, 50);
	trace_free(&trace);
	promise_same(spec_of(" | cache"));
	free(plain.data);
	free(packed.data);
}

static void
the_least_memory_is_enough(void **state)
{
	struct leat_options options;
	struct trace trace;

	(void)state;
	put_mixed();
	for (unsigned threads = 1; threads <= 4; threads += 3) {
		trace_options(&options);
		options.threads = threads;
		options.memory = trace_least_memory(spec_of(" | shuffle(window=30) | batch(8)"), &options);
		/* Blocks, the one record that takes two of them among them. */
		assert_in_range(options.memory, 10 * 1000 * 1000 * threads, 120 * 1000 * 1000 * threads);
		trace_run(&trace, spec_of(" | shuffle(window=30) | batch(8)"), &options);
		assert_int_equal(trace.status, LEAT_DONE);
		assert_int_equal(trace.samples, LARGE + 80);
		trace_free(&trace);
	}
}

/* ---- many threads ---- */

struct readers {
	struct leat_extent extent[LARGE];
	atomic_int wrong;
};

static void
read_many(void *arg, unsigned thread)
{
	struct readers *readers = arg;
	struct leat_scratch own;
	struct leat_mem own_mem;

	leat_mem_init(&own_mem, SIZE_MAX);
	if (leat_scratch_open(&own, &own_mem, source.max_scratch + 4096) != 0)
		return;
	for (uint64_t k = 0; k < 2 * LARGE; k++) {
		uint64_t i = thread % 2 ? k % LARGE : (k * 31 + thread * 40) % LARGE;
		struct leat_sample sample;
		struct leat_err e;

		if (read_with(&own, i, &readers->extent[i], &sample, &e) != LEAT_OK ||
		    !is_record(&sample, i, large_size(i)))
			atomic_fetch_add(&readers->wrong, 1);
	}
	free(in.bytes);
	leat_scratch_close(&own, &own_mem);
}

static void
many_threads_decode_units(void **state)
{
	struct bytes packed = large_file(GZIP, 1, 1);
	struct readers readers = {.wrong = 0};
	struct leat_threads group;

	(void)state;
	put("x", &packed);
	assert_int_equal(open_source("x", 1), LEAT_OK);
	for (uint64_t i = 0; i < LARGE; i++)
		source.kind->locate(&source, i, &readers.extent[i]);
	assert_int_equal(leat_threads_start(&group, &mem, 5, "reader", read_many, &readers, &err), LEAT_OK);
	leat_threads_join(&group);
	assert_int_equal(readers.wrong, 0);
	leat_source_close(&source);
	free(packed.data);
}

/* ---- damage ---- */

enum { SMALL = 40 };

static size_t
small_size(size_t i)
{
	return i % 6 == 2 ? 0 : i * 13 % 90;
}

static struct bytes
small_file(int window_bits)
{
	struct bytes plain = {0}, packed = {0};

	for (size_t i = 0; i < SMALL; i++)
		add_record(&plain, i, small_size(i));
	pack(&packed, plain.data, plain.len / 2, window_bits, 6);
	pack(&packed, plain.data + plain.len / 2, plain.len - plain.len / 2, window_bits, 6);
	free(plain.data);
	return packed;
}

/* How many samples are the records that were made; all others are to be told of. (A flipped bit can make two of an
 * empty record, right in themselves: then only the member's checksum tells.) */
static uint64_t
check_damaged(bool *told)
{
	uint64_t good = 0;

	*told = false;
	for (uint64_t i = 0; i < source.count; i++) {
		struct leat_extent extent;
		struct leat_sample sample;

		source.kind->locate(&source, i, &extent);
		if (read_with(&scratch, i, &extent, &sample, &err) == LEAT_OK) {
			good += is_record(&sample, i, small_size(i));
		} else {
			assert_int_equal(err.status, LEAT_DATA);
			assert_true(err.text[0]);
			assert_true(!extent.damaged || i == source.count - 1);
			*told = true;
		}
	}
	return good;
}

static void
a_file_cut_anywhere_gives_its_whole_records_and_tells_of_the_rest(void **state)
{
	(void)state;
	for (int way = 0; way < 2; way++) {
		struct bytes packed = small_file(way ? ZLIB : GZIP), part = packed;
		uint64_t last = 0;

		for (part.len = 1; part.len < packed.len; part.len++) {
			uint64_t good;
			bool told;

			put("x", &part);
			logged.warn = 0;
			if (open_source("x", 1) != LEAT_OK) {
				assert_int_equal(err.status, LEAT_DATA);
				assert_int_equal(last, 0);
				continue;
			}
			assert_int_equal(leat_scratch_open(&scratch, &mem, source.max_scratch + 4096), 0);
			good = check_damaged(&told);
			assert_true(good >= last);
			/* Between the two members nothing can be seen to be missing. */
			assert_true(told || good < SMALL);
			assert_int_equal(logged.warn, told);
			if (told)
				check_bad(source.count - 1, "ends inside");
			last = good;
			close_source();
		}
		assert_int_equal(last, SMALL);
		free(packed.data);
	}
}

static void
any_flipped_bit_that_changes_a_record_is_told(void **state)
{
	struct bytes packed = small_file(GZIP);

	(void)state;
	for (size_t bit = 0; bit < 8 * packed.len; bit += TEST_SLOW ? 7 : 1) {
		packed.data[bit / 8] ^= (unsigned char)(1 << bit % 8);
		put("x", &packed);
		if (open_source("x", 1) == LEAT_OK) {
			bool told;

			assert_int_equal(leat_scratch_open(&scratch, &mem, source.max_scratch + 4096), 0);
			/* Times and names in a member's header are not protected. */
			if (check_damaged(&told) < SMALL)
				assert_true(told);
			close_source();
		} else {
			assert_int_equal(err.status, LEAT_DATA);
			assert_true(err.text[0]);
		}
		packed.data[bit / 8] ^= (unsigned char)(1 << bit % 8);
	}
	free(packed.data);
}

static void
an_error_names_file_compressed_offset_and_reason(void **state)
{
	struct bytes packed = small_file(GZIP);
	size_t whole = packed.len;
	char want[600];

	(void)state;
	packed.data[whole - 8] ^= 1; /* the member's checksum */
	put("x", &packed);
	must_open("x");
	assert_int_equal(source.count, SMALL + 1);
	snprintf(want, sizeof(want), "%s at compressed offset %zu: incorrect data check (records from inflated offset ",
	         temp_path(&temp, "x"), whole - 4);
	check_bad(SMALL, want);
	snprintf(want, sizeof(want), "'%s' is damaged at compressed offset %zu; the rest is lost: incorrect data check",
	         temp_path(&temp, "x"), whole - 4);
	assert_string_equal(logged.text, want);
	close_source();
	packed.data[whole - 8] ^= 1;
	memcpy(more(&packed, 5), "other", 5);
	put("x", &packed);
	must_open("x");
	check_bad(SMALL, "incorrect header check");
	close_source();
	free(packed.data);
}

static void
a_wrong_record_in_a_right_stream_is_told(void **state)
{
	struct bytes plain = {0}, packed = {0};

	(void)state;
	for (size_t i = 0; i < 3; i++)
		add_record(&plain, i, 100);
	plain.data[50] ^= 1;
	pack(&packed, plain.data, plain.len, ZLIB, 6);
	put("x", &packed);
	must_open("x");
	assert_int_equal(source.count, 3);
	check_bad(0, "record's checksum does not match (100 bytes)");
	check_record(2, 2, 100);
	close_source();
	plain.data[116 + 3] ^= 1; /* the second one's header */
	packed.len = 0;
	pack(&packed, plain.data, plain.len, ZLIB, 6);
	put("x", &packed);
	must_open("x");
	assert_int_equal(source.count, 2);
	check_bad(1, "record header's checksum does not match (records from inflated offset 116 on are lost)");
	close_source();
	free(plain.data);
	free(packed.data);
}

static void
a_file_that_changed_after_it_was_indexed_is_noticed(void **state)
{
	struct bytes packed = large_file(GZIP, 1, 1);
	int fd;

	(void)state;
	put("x", &packed);
	must_open("x");
	check_record(0, 0, large_size(0));
	fd = open(temp_path(&temp, "x"), O_WRONLY);
	memset(packed.data, 0xff, packed.len);
	assert_int_equal(write(fd, packed.data, packed.len), (ssize_t)packed.len);
	close(fd);
	for (uint64_t i = LARGE - 10; i < LARGE; i++)
		check_bad(i, "x at ");
	close_source();
	free(packed.data);
}

/* ---- the index ---- */

/* Makes the checksum right again. */
static void
sum_again(unsigned char *bytes, size_t len)
{
	struct leat_index_head *head = (void *)bytes;

	head->crc = leat_crc32c(0, head, 12);
	head->crc = leat_crc32c(head->crc, bytes + 16, len - 16);
}

static void
an_index_that_is_wrong_anywhere_is_made_again_or_does_no_harm(void **state)
{
	struct bytes packed = large_file(GZIP, 1, 1);
	unsigned char *index;
	size_t len;

	(void)state;
	put("x", &packed);
	must_open("x");
	close_source();
	index = temp_read(temp_path(&temp, ".x.leatidx"), &len);
	assert_true(len > 2 * LEAT_POINT_WINDOW);
	for (size_t at = 64; at < 64 + 8 * (LARGE + 1) + 96 + 4 * 32; at += at < 64 + 8 * (LARGE + 1) ? 101 : 3) {
		for (int with_sum = 0; with_sum < 2; with_sum++) {
			struct leat_sample sample;
			struct leat_extent extent;

			if (!with_sum && at % 16)
				continue; /* making it again takes a while */
			index[at] ^= 0x10;
			if (with_sum)
				sum_again(index, len);
			temp_write(&temp, ".x.leatidx", index, len);
			if (open_source("x", 1) == LEAT_OK) {
				assert_int_equal(leat_scratch_open(&scratch, &mem, source.max_scratch + 4096), 0);
				source.kind->locate(&source, at % source.count, &extent);
				if (!with_sum)
					check_record(at % LARGE, at % LARGE, large_size(at % LARGE));
				else if (read_with(&scratch, at % source.count, &extent, &sample, &err) == LEAT_OK)
					assert_true(
						is_record(&sample, at % source.count, large_size(at % source.count)));
				close_source();
			} else {
				assert_true(with_sum);
			}
			index[at] ^= 0x10;
			sum_again(index, len);
		}
	}
	free(index);
	free(packed.data);
}

static void
every_failing_allocation_is_survived(void **state)
{
	struct bytes packed = large_file(GZIP, 2, 1);

	(void)state;
	for (int with_index = 0; with_index < 2; with_index++) {
		long n = 0;

		put("x", &packed);
		if (with_index) {
			must_open("x");
			close_source();
		}
		for (;; n++) {
			enum leat_status status;

			if (!with_index)
				unlink(temp_path(&temp, ".x.leatidx"));
			logged.warn = 0;
			atomic_store(&mem.fail_after, n);
			status = open_source("x", 2);
			atomic_store(&mem.fail_after, -1);
			if (status == LEAT_OK) {
				assert_int_equal(source.count, LARGE);
				leat_source_close(&source);
				if (!logged.warn)
					break;
			} else {
				assert_int_equal(status, LEAT_NOMEM);
				assert_int_equal(err.status, LEAT_NOMEM);
			}
			assert_int_equal(mem.used, 0);
		}
		assert_true(n > 10);
	}
	free(packed.data);
}

static void
every_failing_allocation_of_a_feed_is_survived(void **state)
{
	struct bytes plain = {0}, packed = {0};

	(void)state;
	for (size_t i = 0; i < 50; i++)
		add_record(&plain, i, i * 10);
	pack(&packed, plain.data, plain.len, GZIP, 6);
	put("x", &packed);
	promise_memory_errors(spec_of(" | shuffle(5) | batch(4)"), NULL);
	free(plain.data);
	free(packed.data);
}

int
main(int argc, char **argv) /* with a pattern: only the tests that match it */
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(records_come_in_any_order_from_gzip_and_zlib),
		CASE(empty_members_and_empty_files_hold_nothing),
		CASE(files_of_tensorflow_are_read),
		CASE(plain_and_compressed_files_go_together),
		CASE(feeds_give_the_same_with_any_threads_and_after_stopping),
		CASE(shuffle_of_all_needs_a_cache),
		CASE(the_least_memory_is_enough),
		CASE(many_threads_decode_units),
		CASE(a_file_cut_anywhere_gives_its_whole_records_and_tells_of_the_rest),
		CASE(any_flipped_bit_that_changes_a_record_is_told),
		CASE(an_error_names_file_compressed_offset_and_reason),
		CASE(a_wrong_record_in_a_right_stream_is_told),
		CASE(a_file_that_changed_after_it_was_indexed_is_noticed),
		CASE(an_index_that_is_wrong_anywhere_is_made_again_or_does_no_harm),
		CASE(every_failing_allocation_is_survived),
		CASE(every_failing_allocation_of_a_feed_is_survived),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
