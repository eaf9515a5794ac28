/* test_tfrecord.c - every record is found, and what is damaged is told, never lost in silence */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "format/record.h"
#include "format/source.h"
#include "format/tfrecord.h"
#include "support/logged.h"
#include "support/temp.h"

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

/* ---- a source ---- */

static struct leat_tfrecord_params params;
static const char *pattern;

static enum leat_status
open_source(const char *name)
{
	const struct leat_source_kind *kind = leat_source_find("tfrecord");
	static char path[512];

	assert_non_null(kind);
	snprintf(path, sizeof(path), "%s/%s", temp.folder, name);
	pattern = path;
	params = (struct leat_tfrecord_params){.patterns = {1, &pattern}, .crc = true};
	leat_err_clear(&err);
	return leat_source_open(&source, kind, &params, 2, UINT64_MAX, NULL, &mem, &log_all, &err);
}

static void
must_open(const char *name)
{
	if (open_source(name) != LEAT_OK)
		fail_msg("%s", err.text);
}

static void
must_refuse(const char *name, enum leat_status status, const char *part)
{
	assert_int_equal(open_source(name), status);
	assert_int_equal(err.status, status);
	if (!strstr(err.text, part))
		fail_msg("'%s' does not say '%s'", err.text, part);
	assert_int_equal(mem.used, 0);
}

/* What unpack_to copies is what unpack shows, and it refuses the same with the same words. */
static void
check_unpack_to(uint64_t i, const struct leat_extent *extent, const unsigned char *bytes, enum leat_status status,
                const char *reason)
{
	size_t payload = (size_t)extent->length - extent->head - extent->tail;
	struct leat_raw raw = {.index = i,
	                       .extent = *extent,
	                       .head = bytes,
	                       .payload = (unsigned char *)bytes + extent->head,
	                       .tail = bytes + extent->head + payload};
	unsigned char *to = malloc(payload + 1);
	struct leat_err why;

	for (int past_cache = 0; past_cache < 2; past_cache++) {
		leat_err_clear(&why);
		memset(to, 0xa5, payload + 1);
		assert_int_equal(source.kind->unpack_to(&source, &raw, to, past_cache, &why), status);
		if (status == LEAT_OK)
			assert_memory_equal(to, bytes + extent->head, payload);
		else
			assert_string_equal(why.text, reason);
		assert_int_equal(to[payload], 0xa5);
	}
	free(to);
}

/* Reads and unpacks one sample the way the engine does. The field's bytes, to be freed; NULL: an error. */
static unsigned char *
read_sample(uint64_t i, size_t *len)
{
	struct leat_extent extent;
	struct leat_sample sample;
	unsigned char *bytes, *field = NULL;
	size_t got, payload;
	struct iovec iov;

	leat_err_clear(&err);
	source.kind->locate(&source, i, &extent);
	if (extent.damaged) {
		assert_int_equal(source.kind->unpack(&source, &(struct leat_raw){.index = i, .extent = extent}, NULL,
		                                     &sample, &err),
		                 LEAT_DATA);
		return NULL;
	}
	assert_true(extent.length <= source.max_length);
	bytes = malloc((size_t)extent.length);
	iov = (struct iovec){bytes, (size_t)extent.length};
	assert_int_equal(leat_files_read(source.files, extent.file, extent.offset, &iov, 1, 0, &got, &err), LEAT_OK);
	payload = (size_t)extent.length - extent.head - extent.tail;
	if (source.kind->unpack(&source,
	                        &(struct leat_raw){.index = i,
	                                           .extent = extent,
	                                           .head = bytes,
	                                           .payload = bytes + extent.head,
	                                           .tail = bytes + extent.head + payload},
	                        NULL, &sample, &err) == LEAT_OK) {
		assert_int_equal(sample.count, 1);
		assert_int_equal(sample.field[0].dtype, LEAT_U8);
		assert_int_equal(sample.field[0].ndim, 1);
		assert_ptr_equal(sample.field[0].data, bytes + extent.head);
		*len = (size_t)sample.field[0].shape[0];
		field = malloc(*len + 1);
		memcpy(field, sample.field[0].data, *len);
		field[*len] = '\0';
	} else {
		assert_int_equal(err.status, LEAT_DATA);
	}
	check_unpack_to(i, &extent, bytes, err.status, err.text);
	free(bytes);
	return field;
}

/* The extents of each file follow one another from its begin to its end. */
static void
check_nothing_is_left_out(void)
{
	for (size_t f = 0; f < leat_files_count(source.files); f++) {
		uint64_t end = 0;

		for (uint64_t i = source.first[f]; i < source.first[f + 1]; i++) {
			struct leat_extent extent;

			source.kind->locate(&source, i, &extent);
			assert_int_equal(extent.file, f);
			assert_int_equal(extent.offset, end);
			end += extent.length;
		}
		assert_int_equal(end, leat_files_at(source.files, f)->size);
	}
	assert_int_equal(source.first[leat_files_count(source.files)], source.count);
}

static uint64_t
count_damaged(void)
{
	uint64_t damaged = 0;

	for (uint64_t i = 0; i < source.count; i++) {
		struct leat_extent extent;

		source.kind->locate(&source, i, &extent);
		damaged += extent.damaged;
	}
	return damaged;
}

static void
check_sample(uint64_t i, const char *want)
{
	size_t len;
	unsigned char *bytes = read_sample(i, &len);

	if (!bytes)
		fail_msg("sample %llu: %s", (unsigned long long)i, err.text);
	assert_int_equal(len, strlen(want));
	assert_memory_equal(bytes, want, len);
	free(bytes);
}

static void
check_bad(uint64_t i, const char *part)
{
	size_t len;

	assert_null(read_sample(i, &len));
	if (!strstr(err.text, part))
		fail_msg("'%s' does not say '%s'", err.text, part);
}

/* ---- bytes ---- */

struct bytes {
	unsigned char data[4096];
	size_t len;
};

static void
add_bytes(struct bytes *bytes, const void *data, size_t len)
{
	assert_true(len <= sizeof(bytes->data) - bytes->len);
	memcpy(bytes->data + bytes->len, data, len);
	bytes->len += len;
}

static void
add_header(struct bytes *bytes, uint64_t length)
{
	unsigned char head[LEAT_TFRECORD_HEAD];

	leat_store64(head, length);
	leat_store32(head + 8, leat_tfrecord_crc(head, 8));
	add_bytes(bytes, head, sizeof(head));
}

static void
add_record(struct bytes *bytes, const char *text)
{
	unsigned char tail[LEAT_TFRECORD_TAIL];

	add_header(bytes, strlen(text));
	add_bytes(bytes, text, strlen(text));
	leat_store32(tail, leat_tfrecord_crc(text, strlen(text)));
	add_bytes(bytes, tail, sizeof(tail));
}

/* Another index may lie there from before, of the same size and second. */
static void
put_file(const char *name, const struct bytes *bytes)
{
	char index[300];

	temp_write(&temp, name, bytes->data, bytes->len);
	snprintf(index, sizeof(index), ".%s.leatidx", name);
	unlink(temp_path(&temp, index));
}

static const char *const texts[] = {"first", "", "the third", "a somewhat longer fourth one", "5"};
enum { TEXTS = 5 };

static struct bytes
five_records(void)
{
	struct bytes bytes = {.len = 0};

	for (int i = 0; i < TEXTS; i++)
		add_record(&bytes, texts[i]);
	return bytes;
}

/* ---- good files ---- */

static void
records_are_framed_as_the_format_says(void **state)
{
	/* By tests/tfrecord_oracle.py. */
	static const unsigned char golden[] = {
		0x05, 0,    0,    0, 0, 0, 0, 0, 0xea, 0xb2, 0x04, 0x3e, 'h',  'e',  'l',  'l',  'o',  0xbb, 0x1f,
		0x1c, 0x19, 0x00, 0, 0, 0, 0, 0, 0,    0,    0x29, 0x03, 0x98, 0x07, 0xd8, 0xea, 0x82, 0xa2,
	};
	struct leat_tfrecord_writer writer;
	unsigned char *bytes;
	size_t len;

	(void)state;
	temp_write(&temp, "golden", golden, sizeof(golden));
	must_open("golden");
	assert_int_equal(source.count, 2);
	assert_int_equal(source.max_length, 21);
	assert_int_equal(source.max_payload, 5);
	check_sample(0, "hello");
	check_sample(1, "");
	leat_source_close(&source);

	assert_int_equal(leat_tfrecord_writer_open(&writer, temp_path(&temp, "ours"), &mem, &err), LEAT_OK);
	assert_int_equal(leat_tfrecord_writer_append(&writer, "hello", 5, &err), LEAT_OK);
	assert_int_equal(leat_tfrecord_writer_append(&writer, NULL, 0, &err), LEAT_OK);
	assert_int_equal(writer.records, 2);
	assert_false(temp_exists(&temp, "ours"));
	assert_int_equal(leat_tfrecord_writer_close(&writer, &err), LEAT_OK);
	bytes = temp_read(temp_path(&temp, "ours"), &len);
	assert_int_equal(len, sizeof(golden));
	assert_memory_equal(bytes, golden, len);
	free(bytes);
}

static void
a_writer_that_is_given_up_leaves_no_file(void **state)
{
	struct leat_tfrecord_writer writer = {0};

	(void)state;
	leat_tfrecord_writer_abort(&writer);
	assert_int_equal(leat_tfrecord_writer_open(&writer, temp_path(&temp, "x"), &mem, &err), LEAT_OK);
	assert_int_equal(leat_tfrecord_writer_append(&writer, "hello", 5, &err), LEAT_OK);
	leat_tfrecord_writer_abort(&writer);
	assert_int_equal(rmdir(temp.folder), 0);
}

static void
samples_of_many_files_are_numbered_in_order(void **state)
{
	static const uint64_t first[] = {0, 3, 3, 8, 8, 9};
	struct bytes empty = {.len = 0}, three = {.len = 0}, one = {.len = 0}, five = five_records();

	(void)state;
	for (int i = 0; i < 3; i++)
		add_record(&three, texts[i]);
	add_record(&one, "alone");
	put_file("a", &three);
	put_file("b", &empty);
	put_file("c", &five);
	put_file("d", &empty);
	put_file("e", &one);
	must_open("?");
	assert_int_equal(source.count, 9);
	assert_memory_equal(source.first, first, sizeof(first));
	assert_int_equal(source.schema.count, 1);
	assert_string_equal(source.schema.entry[0].field.name, "record");
	assert_true(source.schema.entry[0].field.dtype == LEAT_U8 && source.schema.entry[0].field.ndim == 1);
	assert_int_equal(source.schema.entry[0].field.shape[0], -1);
	check_nothing_is_left_out();
	for (uint64_t k = 0; k < 100; k++) {
		uint64_t i = k < 9 ? k : k < 18 ? 17 - k : k * 5 % 9; /* forwards, backwards, and across */

		check_sample(i, i < 3 ? texts[i] : i < 8 ? texts[i - 3] : "alone");
	}
	leat_source_close(&source);
}

static void
large_and_small_records_are_found(void **state)
{
	enum { COUNT = 60, LARGEST = 700000 };
	struct leat_tfrecord_writer writer;
	unsigned char *data = malloc(LARGEST);
	size_t size[COUNT], len;

	(void)state;
	for (size_t i = 0; i < LARGEST; i++)
		data[i] = (unsigned char)(i * 131 >> 3);
	assert_int_equal(leat_tfrecord_writer_open(&writer, temp_path(&temp, "x"), &mem, &err), LEAT_OK);
	for (size_t i = 0; i < COUNT; i++) {
		size[i] = i % 7 == 3 ? LARGEST - i : i % 5 == 1 ? 40000 + 100 * i : i * i % 300;
		assert_int_equal(leat_tfrecord_writer_append(&writer, data + i, size[i] - i % 2 * (size[i] > 0), &err),
		                 LEAT_OK);
		size[i] -= i % 2 * (size[i] > 0);
	}
	assert_int_equal(leat_tfrecord_writer_close(&writer, &err), LEAT_OK);
	must_open("x");
	assert_int_equal(source.count, COUNT);
	check_nothing_is_left_out();
	for (size_t i = 0; i < COUNT; i++) {
		unsigned char *bytes = read_sample(i, &len);

		assert_non_null(bytes);
		assert_int_equal(len, size[i]);
		assert_memory_equal(bytes, data + i, len);
		free(bytes);
	}
	leat_source_close(&source);
	free(data);
}

static void
files_without_samples_are_an_empty_source(void **state)
{
	struct bytes empty = {.len = 0};

	(void)state;
	put_file("a", &empty);
	must_open("a");
	assert_int_equal(source.count, 0);
	leat_source_close(&source);
	put_file("b", &empty);
	must_open("?");
	assert_int_equal(source.count, 0);
	leat_source_close(&source);
}

static void
the_fingerprint_is_the_same_wherever_the_data_lies(void **state)
{
	char here[LEAT_SHA256_HEX], there[LEAT_SHA256_HEX], other[LEAT_SHA256_HEX];
	struct bytes bytes = five_records(), more = five_records();

	(void)state;
	assert_int_equal(mkdir(temp_path(&temp, "dir"), 0777), 0);
	put_file("a", &bytes);
	put_file("dir/a", &bytes);
	put_file("b", &bytes);
	must_open("a");
	assert_int_equal(leat_source_fingerprint(&source, here, &err), LEAT_OK);
	leat_source_close(&source);
	must_open("dir/a");
	assert_int_equal(leat_source_fingerprint(&source, there, &err), LEAT_OK);
	leat_source_close(&source);
	assert_string_equal(here, there);
	must_open("b");
	assert_int_equal(leat_source_fingerprint(&source, other, &err), LEAT_OK);
	leat_source_close(&source);
	assert_string_not_equal(here, other);
	add_record(&more, "x");
	put_file("a", &more);
	must_open("a");
	assert_int_equal(leat_source_fingerprint(&source, other, &err), LEAT_OK);
	leat_source_close(&source);
	assert_string_not_equal(here, other);
}

static void
the_index_is_made_once_and_again_when_the_data_changes(void **state)
{
	struct bytes bytes = five_records();
	struct timespec times[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};

	(void)state;
	put_file("a", &bytes);
	must_open("a");
	assert_int_equal(logged.info, 1);
	assert_string_equal(logged.text, "indexed 1 of 1 files");
	leat_source_close(&source);
	assert_true(temp_exists(&temp, ".a.leatidx"));
	must_open("a");
	assert_int_equal(logged.info, 1);
	leat_source_close(&source);
	add_record(&bytes, "one more");
	temp_write(&temp, "a", bytes.data, bytes.len);
	must_open("a");
	assert_int_equal(source.count, TEXTS + 1);
	leat_source_close(&source);
	assert_int_equal(utimensat(AT_FDCWD, temp_path(&temp, "a"), times, 0), 0);
	logged.info = 0;
	must_open("a");
	leat_source_close(&source);
	assert_int_equal(logged.info, 2); /* the old one is stale, a new one is made */
	assert_int_equal(logged.warn, 0);
}

/* ---- damaged files ---- */

static void
a_file_cut_at_any_byte_gives_all_whole_records_and_tells_of_the_rest(void **state)
{
	struct bytes whole = five_records();

	(void)state;
	for (size_t cut = 1; cut < whole.len; cut++) {
		struct bytes part = whole;
		uint64_t good = 0, end = 0;

		while (end + 16 + strlen(texts[good]) <= cut)
			end += 16 + strlen(texts[good++]);
		part.len = cut;
		put_file("cut", &part);
		if (good == 0) {
			must_refuse("cut", LEAT_DATA, "no TFRecord file has a readable record");
			continue;
		}
		logged.warn = 0;
		must_open("cut");
		assert_int_equal(source.count, good + (end < cut));
		assert_int_equal(count_damaged(), end < cut);
		assert_int_equal(logged.warn, end < cut);
		check_nothing_is_left_out();
		for (uint64_t i = 0; i < good; i++)
			check_sample(i, texts[i]);
		if (end < cut)
			check_bad(good, "the file ends inside a record");
		leat_source_close(&source);
	}
}

static void
any_flipped_bit_costs_one_sample_and_is_told(void **state)
{
	struct bytes bytes = five_records();
	size_t begin = 0;

	(void)state;
	for (uint64_t hurt = 0; hurt < TEXTS; hurt++) {
		size_t end = begin + 16 + strlen(texts[hurt]);

		for (size_t bit = 8 * begin; bit < 8 * end; bit++) {
			size_t in_record = bit / 8 - begin;

			bytes.data[bit / 8] ^= (unsigned char)(1 << bit % 8);
			put_file("flip", &bytes);
			must_open("flip");
			assert_int_equal(source.count, TEXTS);
			assert_int_equal(count_damaged(), in_record < 12);
			check_nothing_is_left_out();
			for (uint64_t i = 0; i < TEXTS; i++) {
				if (i != hurt)
					check_sample(i, texts[i]);
				else
					check_bad(i, in_record < 12 ? "record header's checksum does not match"
					                            : "record's checksum does not match");
			}
			leat_source_close(&source);
			bytes.data[bit / 8] ^= (unsigned char)(1 << bit % 8);
		}
		begin = end;
	}
}

static void
an_error_names_file_offset_and_reason(void **state)
{
	struct bytes bytes = five_records();
	char want[600];

	(void)state;
	bytes.data[21 + 16 + 3] ^= 1; /* in the third record's header */
	put_file("x", &bytes);
	must_open("x");
	snprintf(want, sizeof(want), "%s at offset 37: record header's checksum does not match (25 bytes damaged)",
	         temp_path(&temp, "x"));
	check_bad(2, want);
	assert_string_equal(err.text, want);
	snprintf(want, sizeof(want), "'%s' is damaged in 1 place, the first at offset 37", temp_path(&temp, "x"));
	assert_string_equal(logged.text, want);
	logged.text[0] = '\0';
	leat_source_close(&source);
	must_open("x"); /* the index knows of the damage, too */
	assert_string_equal(logged.text, want);
	assert_int_equal(count_damaged(), 1);
	leat_source_close(&source);
}

/* A writer died in the middle of a record, and another one went on behind it. */
static void
records_appended_to_a_torn_file_are_found(void **state)
{
	(void)state;
	for (size_t torn = 1; torn < 16 + 28; torn++) {
		struct bytes bytes = {.len = 0};

		if (torn == 44 - 21)
			continue; /* the next record would fill the gap exactly, and count as part of the torn one */
		add_record(&bytes, "before");
		add_record(&bytes, texts[3]);
		bytes.len -= 16 + 28 - torn;
		for (int i = 0; i < TEXTS; i++)
			add_record(&bytes, texts[i]);
		put_file("torn", &bytes);
		must_open("torn");
		assert_int_equal(source.count, 1 + 1 + TEXTS);
		check_nothing_is_left_out();
		check_sample(0, "before");
		check_bad(1, "at offset 22: record");
		for (uint64_t i = 0; i < TEXTS; i++)
			check_sample(2 + i, texts[i]);
		leat_source_close(&source);
	}
}

static void
damage_longer_than_a_block_is_stepped_over(void **state)
{
	enum { JUNK = 1000000 };
	struct bytes bytes = five_records();
	unsigned char *all = malloc(2 * sizeof(bytes.data) + JUNK);
	uint32_t x = 1;

	(void)state;
	for (int zeros = 0; zeros < 2; zeros++) {
		memcpy(all, bytes.data, bytes.len);
		for (size_t i = 0; i < JUNK; i++) {
			x = x * 1664525 + 1013904223;
			all[bytes.len + i] = zeros ? 0 : (unsigned char)(x >> 24);
		}
		memcpy(all + bytes.len + JUNK, bytes.data, bytes.len);
		temp_write(&temp, zeros ? "zeros" : "junk", all, 2 * bytes.len + JUNK);
		must_open(zeros ? "zeros" : "junk");
		assert_int_equal(source.count, 2 * TEXTS + 1);
		check_nothing_is_left_out();
		check_bad(TEXTS, "(1000000 bytes damaged)");
		check_sample(TEXTS - 1, texts[TEXTS - 1]);
		check_sample(TEXTS + 1, texts[0]);
		leat_source_close(&source);
	}
	free(all);
}

static void
a_length_that_no_file_has_is_damage(void **state)
{
	static const uint64_t lengths[] = {1000, INT64_MAX, UINT64_MAX, UINT64_MAX - 15, UINT64_MAX - 16};

	(void)state;
	for (int i = 0; i < 5; i++) {
		struct bytes bytes = {.len = 0};

		add_record(&bytes, "before");
		add_header(&bytes, lengths[i]);
		add_record(&bytes, "behind");
		put_file("x", &bytes);
		must_open("x");
		assert_int_equal(source.count, 3);
		check_bad(1, "the file ends inside a record (12 bytes damaged)");
		check_sample(2, "behind");
		leat_source_close(&source);
	}
}

/* Each of many thousand headers is right and claims all the rest of the file: to sum up each one's
 * data would take minutes. */
static void
lookalikes_do_not_hold_up_the_search(void **state)
{
	enum { SIZE = 4000000 };
	unsigned char *all = calloc(1, SIZE);
	size_t at = 1;

	(void)state;
	for (; at + 16 < SIZE; at += 12) {
		leat_store64(all + at, SIZE - at - 16);
		leat_store32(all + at + 8, leat_tfrecord_crc(all + at, 8));
	}
	temp_write(&temp, "x", all, SIZE);
	must_refuse("x", LEAT_DATA, "no TFRecord file");
	assert_int_equal(logged.warn, 2);
	free(all);
}

static void
a_damaged_record_that_looks_like_a_compressed_file_is_none(void **state)
{
	char text[0x178 + 1];
	struct bytes bytes = {.len = 0};

	(void)state;
	/* A record of 376 bytes begins like a ZLIB stream. */
	memset(text, 'x', 0x178);
	text[0x178] = '\0';
	add_record(&bytes, text);
	add_record(&bytes, "second");
	bytes.data[9] ^= 1;
	put_file("plain", &bytes);
	must_open("plain");
	assert_int_equal(source.count, 2);
	check_sample(1, "second");
	leat_source_close(&source);
}

static void
what_is_no_tfrecord_is_refused(void **state)
{
	struct bytes bytes = five_records();

	(void)state;
	temp_write(&temp, "text", "This is not a TFRecord file, but it is long enough to be one.", 61);
	must_refuse("text", LEAT_DATA, "record header's checksum does not match (61 bytes damaged)");
	put_file("good", &bytes); /* among others it is one bad sample */
	must_open("*o*d");
	leat_source_close(&source);
	must_open("[gt]*");
	assert_int_equal(source.count, TEXTS + 1);
	check_bad(TEXTS, "/text at offset 0: ");
	leat_source_close(&source);
}

static void
checksums_are_not_looked_at_when_told_so(void **state)
{
	struct bytes bytes = five_records();

	(void)state;
	bytes.data[12] ^= 1;
	put_file("x", &bytes);
	must_open("x");
	check_bad(0, "record's checksum does not match (5 bytes)");
	params.crc = false;
	check_sample(0, "girst");
	leat_source_close(&source);
}

static void
a_file_that_changed_after_it_was_indexed_is_noticed(void **state)
{
	struct bytes bytes = five_records(), other = {.len = 0};
	int fd;

	(void)state;
	put_file("x", &bytes);
	must_open("x");
	params.crc = false;
	add_record(&other, "firsts");
	fd = open(temp_path(&temp, "x"), O_WRONLY);
	assert_int_equal(write(fd, other.data, other.len), (ssize_t)other.len);
	close(fd);
	check_bad(0, "the record's length has changed since the file was indexed");
	leat_source_close(&source);
}

/* ---- leat index ---- */

static struct leat_index_report reports[8];
static size_t told;

static void
tell(void *arg, const struct leat_index_report *report)
{
	assert_ptr_equal(arg, &told);
	reports[told++] = *report;
}

static const struct leat_index_kind *
kind_of(const char *uri)
{
	(void)uri;
	return &leat_tfrecord_index;
}

static void
indexing_by_hand_tells_of_each_file(void **state)
{
	struct bytes good = five_records(), hurt = five_records(), empty = {.len = 0};
	static const unsigned char gzip[20] = {0x1f, 0x8b, 8};
	const char *all = NULL;

	(void)state;
	hurt.data[0] ^= 1;
	put_file("a", &good);
	put_file("b", &hurt);
	put_file("c", &empty);
	temp_write(&temp, "d", gzip, sizeof(gzip));
	for (int again = 0; again < 2; again++) {
		told = 0;
		all = temp_path(&temp, "?");
		leat_err_clear(&err);
		assert_int_equal(leat_index_files(&all, 1, kind_of, 2, NULL, &mem, &log_all, tell, &told, NULL, &err),
		                 LEAT_OK);
		assert_int_equal(told, 4);
		assert_int_equal(reports[0].state, again ? LEAT_INDEX_FRESH : LEAT_INDEX_BUILT);
		assert_int_equal(reports[0].samples, TEXTS);
		assert_int_equal(reports[0].bytes, good.len);
		assert_int_equal(reports[0].damaged, 0);
		assert_int_equal(reports[1].state, again ? LEAT_INDEX_FRESH : LEAT_INDEX_BUILT);
		assert_int_equal(reports[1].samples, TEXTS - 1);
		assert_int_equal(reports[1].damaged, 1);
		assert_int_equal(reports[1].damaged_bytes, 21);
		assert_int_equal(reports[2].state, LEAT_INDEX_FRESH);
		assert_int_equal(reports[2].samples, 0);
		assert_int_equal(reports[3].state, again ? LEAT_INDEX_FRESH : LEAT_INDEX_BUILT);
		assert_int_equal(reports[3].samples, 0);
		assert_int_equal(reports[3].damaged, 1);
	}
	all = temp_path(&temp, "none*");
	assert_int_equal(leat_index_files(&all, 1, kind_of, 2, NULL, &mem, &log_all, tell, &told, NULL, &err), LEAT_IO);
}

/* ---- memory ---- */

static void
every_failing_allocation_is_survived(void **state)
{
	struct bytes bytes = five_records(), hurt = five_records();
	long n = 0;

	(void)state;
	hurt.data[0] ^= 1;
	for (int with_index = 0; with_index < 2; with_index++) {
		for (n = 0;; n++) {
			enum leat_status status;

			if (!with_index) {
				put_file("a", &bytes);
				put_file("b", &hurt);
			}
			atomic_store(&mem.fail_after, n);
			status = open_source("?");
			atomic_store(&mem.fail_after, -1);
			if (status == LEAT_OK) {
				bool done = mem.fail_after < 0 && source.count == 2 * TEXTS;

				leat_source_close(&source);
				assert_true(done);
				if (logged.warn == 1) /* only of the damage: nothing failed on the way */
					break;
			} else {
				assert_int_equal(status, LEAT_NOMEM);
				assert_int_equal(err.status, LEAT_NOMEM);
			}
			assert_int_equal(mem.used, 0);
			logged.warn = 0;
		}
		assert_true(n > 5);
		logged.warn = 0;
	}
}

int
main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(records_are_framed_as_the_format_says),
		CASE(a_writer_that_is_given_up_leaves_no_file),
		CASE(samples_of_many_files_are_numbered_in_order),
		CASE(large_and_small_records_are_found),
		CASE(files_without_samples_are_an_empty_source),
		CASE(the_fingerprint_is_the_same_wherever_the_data_lies),
		CASE(the_index_is_made_once_and_again_when_the_data_changes),
		CASE(a_file_cut_at_any_byte_gives_all_whole_records_and_tells_of_the_rest),
		CASE(any_flipped_bit_costs_one_sample_and_is_told),
		CASE(an_error_names_file_offset_and_reason),
		CASE(records_appended_to_a_torn_file_are_found),
		CASE(damage_longer_than_a_block_is_stepped_over),
		CASE(a_length_that_no_file_has_is_damage),
		CASE(lookalikes_do_not_hold_up_the_search),
		CASE(a_damaged_record_that_looks_like_a_compressed_file_is_none),
		CASE(what_is_no_tfrecord_is_refused),
		CASE(checksums_are_not_looked_at_when_told_so),
		CASE(a_file_that_changed_after_it_was_indexed_is_noticed),
		CASE(indexing_by_hand_tells_of_each_file),
		CASE(every_failing_allocation_is_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
