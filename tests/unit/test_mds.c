/* test_mds.c - MDS folders are read as MosaicML reads them, and whatever is in their files, nothing else breaks */
#include "support/archive.h"

#include "base/hash.h"
#include "format/mds.h"

static struct temp temp;
static struct archive archive;
static struct leat_mds_params params;
static const char *fields[8];

static int
set_up(void **state)
{
	(void)state;
	temp_make(&temp);
	memset(&logged, 0, sizeof(logged));
	archive_init(&archive);
	params = (struct leat_mds_params){.folder = temp.folder, .fields = {0, fields}};
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	archive_close(&archive);
	temp_remove(&temp);
	return archive.mem.used != 0;
}

/* ---- making folders ---- */

static unsigned char shard[65536];
static size_t shard_len;

static void
add_u32(uint32_t value)
{
	leat_store32(shard + shard_len, value);
	shard_len += 4;
}

/* A shard of two columns: "a" of the encoding given, of variable length, and "b", a number of one byte. Sample i has
 * the value of `lengths[i]` bytes at `values`. */
static void
put_folder(const char *encoding, const void *values, const size_t *lengths, size_t samples)
{
	char json[1024];
	size_t at = 0;

	shard_len = 0;
	add_u32((uint32_t)samples);
	for (size_t i = 0; i <= samples; i++) {
		add_u32((uint32_t)(4 * (samples + 2) + at + 5 * i));
		at += i < samples ? lengths[i] : 0;
	}
	at = 0;
	for (size_t i = 0; i < samples; i++) {
		add_u32((uint32_t)lengths[i]);
		memcpy(shard + shard_len, (const char *)values + at, lengths[i]);
		at += lengths[i];
		shard_len += lengths[i];
		shard[shard_len++] = (unsigned char)i;
	}
	temp_write(&temp, "s.mds", shard, shard_len);
	snprintf(json, sizeof(json),
	         "{\"version\": 2, \"shards\": [{\"version\": 2, \"format\": \"mds\", \"compression\": null, "
	         "\"column_names\": [\"a\", \"b\"], \"column_encodings\": [\"%s\", \"uint8\"], "
	         "\"column_sizes\": [null, 1], \"samples\": %zu, \"raw_data\": {\"basename\": \"s.mds\", \"bytes\": "
	         "%zu}}]}",
	         encoding, samples, shard_len);
	temp_write(&temp, "index.json", json, strlen(json));
}

/* The golden folder, and its index.json with one text replaced by another. */
static void
put_golden(const char *name, const char *text, const char *by)
{
	char path[1000];
	unsigned char *json;
	char *at, *out;
	size_t len;

	snprintf(path, sizeof(path), GOLDEN "mds/%s", name);
	golden_copy(&temp, path);
	if (!text)
		return;
	json = temp_read(temp_path(&temp, "index.json"), &len);
	json[len] = '\0';
	at = strstr((char *)json, text);
	assert_non_null(at);
	out = malloc(len + strlen(by) + 1);
	len = (size_t)sprintf(out, "%.*s%s%s", (int)(at - (char *)json), (char *)json, by, at + strlen(text));
	temp_write(&temp, "index.json", out, len);
	free(out);
	free(json);
}

static enum leat_status
open_mds(void)
{
	return archive_open(&archive, "mds", &params);
}

static void
must_open(void)
{
	if (open_mds() != LEAT_OK)
		fail_msg("%s", archive.err.text);
}

static void
must_refuse(enum leat_status status, const char *part)
{
	if (open_mds() != status)
		fail_msg("it says %s '%s'", leat_status_name(archive.err.status), archive.err.text);
	if (!strstr(archive.err.text, part))
		fail_msg("'%s' does not say '%s'", archive.err.text, part);
}

static void
check_bad(uint64_t i, const char *part)
{
	assert_int_equal(archive_read(&archive, i), LEAT_DATA);
	if (!strstr(archive.err.text, part))
		fail_msg("'%s' does not say '%s'", archive.err.text, part);
}

static void
choose(size_t count, const char *const *names)
{
	params.fields.count = count;
	memcpy(fields, names, count * sizeof(*names));
}

/* ---- golden ---- */

static void
golden_folders_are_read_as_mosaicml_reads_them(void **state)
{
	(void)state;
	golden_check_all(&temp, GOLDEN "mds", 4);
}

static void
a_folder_may_be_written_as_a_uri_or_with_a_slash(void **state)
{
	char spec[300];

	(void)state;
	put_golden("scalars", NULL, NULL);
	snprintf(spec, sizeof(spec), "%s/", temp.folder);
	params.folder = spec;
	must_open();
	archive_close(&archive);
	snprintf(spec, sizeof(spec), "file://%s", temp.folder);
	must_open();
	assert_int_equal(archive.source.count, 3);
}

/* ---- columns ---- */

static void
columns_that_cannot_be_fields_are_told(void **state)
{
	(void)state;
	put_golden("scalars", "\"float16\"", "\"complex\"");
	must_open(); /* left out */
	assert_int_equal(logged.warn, 1);
	assert_non_null(strstr(logged.warning, "skipping column 'float16': unknown encoding 'complex'"));
	assert_int_equal(archive.source.schema.count, 13);
	assert_int_equal(archive_read(&archive, 2), LEAT_OK);
	archive_close(&archive);
	choose(2, (const char *[]){"word", "float16"});
	must_refuse(LEAT_SPEC, "column 'float16' cannot be a field: unknown encoding 'complex'");
	choose(1, (const char *[]){"words"});
	must_refuse(LEAT_SPEC, "there is no column 'words', did you mean 'word'?");
	choose(1, (const char *[]){"something else"});
	must_refuse(LEAT_SPEC, "there is no column 'something else'");
	choose(2, (const char *[]){"word", "word"});
	must_refuse(LEAT_SPEC, "the name is a duplicate");
}

static void
arrays_are_like_the_first_ones(void **state)
{
	/* uint16 of [2], of [1, 2], of [3]; then uint8 of [2] */
	static const unsigned char values[] = {16, 1 << 2, 2, 1, 2, 3, 4, 16, 2 << 2, 1, 2, 1, 2, 3, 4,
	                                       16, 4,      3, 1, 0, 2, 0, 3,  0xff,   8, 4, 2, 1, 2};

	(void)state;
	put_folder("ndarray", values, (size_t[]){7, 8, 9, 5}, 4);
	must_open();
	assert_int_equal(archive.source.schema.entry[0].field.dtype, LEAT_I32);
	assert_int_equal(archive.source.schema.entry[0].field.ndim, 1);
	assert_int_equal(archive_read(&archive, 0), LEAT_OK);
	assert_int_equal(((int32_t *)archive.sample.field[0].data)[1], 0x403);
	check_bad(1, "the sample's column 'a' has an array whose number of dimensions differs");
	assert_int_equal(archive_read(&archive, 2), LEAT_OK);
	assert_int_equal(archive.sample.field[0].shape[0], 3);
	assert_int_equal(((int32_t *)archive.sample.field[0].data)[2], 0xff03);
	check_bad(3, "has an array whose type differs from the first sample's");
}

static void
arrays_that_make_no_sense_are_bad_samples(void **state)
{
	static const struct {
		unsigned char value[20];
		size_t len;
		const char *part;
	} bad[] = {
		{{16, 4, 2, 1, 2, 3}, 6, "contradict"},
		{{16, 4, 2, 1, 2, 3, 4, 5}, 8, "contradict"},
		{{16, 4}, 2, "truncated"},
		{{16}, 1, "truncated"},
		{{0}, 0, "of an unknown type"},
		{{77, 4, 1, 1}, 4, "of an unknown type"},
		{{16, 1 << 2 | 3, 2}, 3, "truncated"},
		{{16, 1 << 2 | 3, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 2}, 12, "too many values"},
		{{16, 1 << 2 | 3, 1, 0, 0, 0, 0, 0, 0, 0x40, 1, 2}, 12, "contradict"},
	};
	unsigned char values[64] = {16, 4, 1, 7, 7};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		memcpy(values + 5, bad[i].value, bad[i].len);
		put_folder("ndarray", values, (size_t[]){5, bad[i].len}, 2);
		must_open();
		assert_int_equal(archive_read(&archive, 0), LEAT_OK);
		check_bad(1, bad[i].part);
		archive_close(&archive);
	}
	memcpy(values, (unsigned char[]){8, 5 << 2, 1, 1, 1, 1, 1, 9}, 8);
	put_folder("ndarray", values, (size_t[]){8}, 1);
	must_refuse(LEAT_DATA, "more than 4 dimensions");
}

/* A first sample that is bad does not hide what the others are. */
static void
arrays_are_learnt_from_the_first_good_sample(void **state)
{
	static const unsigned char values[] = {99, 99, 8, 4, 2, 1, 2};

	(void)state;
	put_folder("ndarray", values, (size_t[]){2, 5}, 2);
	must_open();
	check_bad(0, "of an unknown type");
	assert_int_equal(archive_read(&archive, 1), LEAT_OK);
	assert_int_equal(archive.sample.field[0].shape[0], 2);
}

static void
empty_arrays_have_no_values(void **state)
{
	static const unsigned char values[] = {2 << 2, 2, 1, 5, 6, 2 << 2, 0, 200};

	(void)state;
	put_folder("ndarray:uint8", values, (size_t[]){5, 3}, 2);
	must_open();
	assert_int_equal(archive_read(&archive, 1), LEAT_OK);
	assert_int_equal(archive.sample.field[0].shape[0], 0);
	assert_int_equal(archive.sample.field[0].shape[1], 200);
}

static void
numbers_beyond_int64_are_bad_samples(void **state)
{
	static const unsigned char values[] = {4, 1, 0, 0, 0, 0, 0, 0, 0, 0x7f, 4, 1, 0, 0, 0, 0, 0, 0, 0, 0x80};

	(void)state;
	put_folder("ndarray:uint64", values, (size_t[]){10, 10}, 2);
	must_open();
	assert_int_equal(archive_read(&archive, 0), LEAT_OK);
	check_bad(1, "has a uint64 that does not fit int64");
}

/* ---- index.json ---- */

static void
what_index_json_says_is_checked(void **state)
{
	static const struct {
		const char *text, *by;
		enum leat_status status;
		const char *part;
	} cases[] = {
		{"\"shard.00000.mds\"", "\"../shard.00000.mds\"", LEAT_DATA, "not a valid name in that folder"},
		{"\"shard.00000.mds\"", "\"/etc/passwd\"", LEAT_DATA, "not a valid name in that folder"},
		{"\"shard.00000.mds\"", "\"a/../../b\"", LEAT_DATA, "not a valid name in that folder"},
		{"\"shard.00000.mds\"", "\"./shard.00000.mds\"", LEAT_DATA, "not a valid name in that folder"},
		{"\"shard.00000.mds\"", "\"*\"", LEAT_DATA, "not a valid name in that folder"},
		{"\"shard.00000.mds\"", "\"\"", LEAT_DATA, "not a valid name in that folder"},
		{"\"shard.00000.mds\"", "\"s3://x/y\"", LEAT_DATA, "not a valid name in that folder"},
		{"\"shard.00000.mds\"", "\"none.mds\"", LEAT_IO, "none.mds"},
		{"\"shard.00000.mds\"", "7", LEAT_DATA, "shard 0 lacks a valid file name"},
		{"\"samples\": 3", "\"samples\": -3", LEAT_DATA, "shard 0 lacks a valid file name, sample count"},
		{"\"samples\": 3", "\"samples\": 4294967296", LEAT_DATA,
	         "shard 0 lacks a valid file name, sample count"},
		{"\"samples\": 3", "\"samples\": 3000", LEAT_DATA, "3000 samples in"},
		{"\"samples\": 3", "\"samples\": 0", LEAT_DATA, "lists no samples"},
		{"\"samples\": 3", "\"samples\": 4", LEAT_DATA, "does not begin with its sample count, 4"},
		{"\"format\": \"mds\"", "\"format\": \"json\"", LEAT_UNSUPPORTED, "format 'json', expected mds"},
		{"\"int8\", ", "", LEAT_DATA, "lists different numbers of column names"},
		{"\"int\"", "3", LEAT_DATA, "no valid name, encoding or size"},
		{"8, null", "9, null", LEAT_DATA, "contradicts its size of 9 bytes"},
		{"8, null", "null, null", LEAT_DATA, "contradicts its size of 0 bytes"},
		{"\"version\": 2, \"zip", "\"version\": 3, \"zip", LEAT_UNSUPPORTED, "shard 0 is not version 2"},
		{"], \"version\": 2", "], \"version\": 1", LEAT_UNSUPPORTED, "has version 1"},
		{"\"shards\"", "\"shard\"", LEAT_DATA, "does not describe MDS shards"},
		{"\"shards\": [", "\"shards\": [], \"x\": [", LEAT_DATA, "lists no shards"},
		{"\"shards\"", "\"shards", LEAT_DATA, "is not valid JSON: line 1"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		put_golden("scalars", cases[i].text, cases[i].by);
		must_refuse(cases[i].status, cases[i].part);
	}
	put_golden("arrays", "\"free\"", "\"fred\""); /* in the first shard only */
	must_refuse(LEAT_DATA, "the columns of shard 1 differ");
	put_golden("arrays", "ndarray:float32:3,4", "ndarray:float32:3,5");
	must_refuse(LEAT_DATA, "which contradicts its size of 48 bytes");
	unlink(temp_path(&temp, "index.json"));
	must_refuse(LEAT_IO, "index.json");
}

static void
index_json_cut_or_changed_anywhere_is_survived(void **state)
{
	unsigned char *json;
	size_t len;

	(void)state;
	put_golden("scalars", NULL, NULL);
	json = temp_read(temp_path(&temp, "index.json"), &len);
	for (size_t cut = 0; cut < len; cut += 7) {
		temp_write(&temp, "index.json", json, cut);
		assert_int_equal(open_mds(), LEAT_DATA);
	}
	for (size_t i = 0; i < len; i++) {
		json[i] ^= (unsigned char)(1 << i % 8);
		temp_write(&temp, "index.json", json, len);
		json[i] ^= (unsigned char)(1 << i % 8);
		if (open_mds() == LEAT_OK)
			for (uint64_t k = 0; k < archive.source.count; k++)
				archive_read(&archive, k);
		archive_close(&archive);
	}
	free(json);
}

static void
compressed_shards_are_refused_unless_they_lie_there_decompressed(void **state)
{
	(void)state;
	put_golden("packed", NULL, NULL);
	must_refuse(LEAT_UNSUPPORTED, "are compressed (zstd), which is not supported");
	put_golden("scalars", "\"compression\": null", "\"compression\": \"zstd:7\"");
	must_open();
	assert_int_equal(archive.source.count, 3);
}

/* ---- shards ---- */

static void
a_shard_cut_anywhere_loses_only_what_lies_behind_the_cut(void **state)
{
	unsigned char *bytes;
	size_t len;

	(void)state;
	put_golden("arrays", NULL, NULL);
	bytes = temp_read(temp_path(&temp, "shard.00000.mds"), &len);
	for (size_t cut = 0; cut < len; cut += 64) {
		temp_write(&temp, "shard.00000.mds", bytes, cut);
		must_open();
		assert_int_equal(archive.source.count, 5);
		for (uint64_t i = 0; i < 5; i++) {
			bool whole = i >= 2 || (cut >= 16 && leat_load32(bytes + 4 + 4 * (i + 1)) <= cut);

			assert_int_equal(archive_read(&archive, i), whole ? LEAT_OK : LEAT_DATA);
		}
		assert_true(logged.warn > 0);
		archive_close(&archive);
		logged.warn = 0;
	}
	free(bytes);
}

static void
a_flipped_bit_anywhere_in_a_shard_is_survived(void **state)
{
	unsigned char *bytes;
	size_t len;

	(void)state;
	put_golden("arrays", NULL, NULL);
	bytes = temp_read(temp_path(&temp, "shard.00000.mds"), &len);
	for (size_t i = 0; i < len; i++) {
		bytes[i] ^= (unsigned char)(1 << i % 8);
		temp_write(&temp, "shard.00000.mds", bytes, len);
		bytes[i] ^= (unsigned char)(1 << i % 8);
		if (open_mds() == LEAT_OK) /* not when it is the type that all others are compared with */
			for (uint64_t k = 0; k < archive.source.count; k++)
				archive_read(&archive, k);
		archive_close(&archive);
	}
	free(bytes);
}

static void
samples_and_columns_have_to_fit(void **state)
{
	(void)state;
	put_folder("bytes", "onetwothree", (size_t[]){3, 3, 5}, 3);
	must_open();
	assert_int_equal(archive_read(&archive, 2), LEAT_OK);
	archive_close(&archive);

	shard[4 * 5 + 3 + 5] = 2; /* the second one's length */
	temp_write(&temp, "s.mds", shard, shard_len);
	must_open();
	check_bad(1, "the sample has more bytes than its columns (8 bytes)");
	archive_close(&archive);
	shard[4 * 5 + 3 + 5] = 5;
	temp_write(&temp, "s.mds", shard, shard_len);
	must_open();
	check_bad(1, "the sample ends before its columns do");
	archive_close(&archive);

	shard[4 + 4] = 4 * 5 + 2; /* the first one has two bytes */
	temp_write(&temp, "s.mds", shard, shard_len);
	must_open();
	check_bad(0, "the sample ends before the lengths of its columns");
	archive_close(&archive);
	shard[4 + 4] = 4 * 5; /* none */
	temp_write(&temp, "s.mds", shard, shard_len);
	must_open();
	check_bad(0, "at offset 20: a sample that begins or ends here is outside the file");
	archive_close(&archive);
	shard[4] = 19; /* begins in the offsets */
	temp_write(&temp, "s.mds", shard, shard_len);
	must_open();
	check_bad(0, "at offset 19: a sample that begins or ends here is outside the file");
	archive_close(&archive);
	memset(shard + 4, 0xff, 16);
	temp_write(&temp, "s.mds", shard, shard_len);
	must_refuse(LEAT_DATA, "no shard has a readable sample");
}

static void
every_failing_allocation_is_survived(void **state)
{
	(void)state;
	put_golden("arrays", NULL, NULL);
	promise_memory_errors(golden_spec(&temp, "mds('@') | batch(2)"), NULL);
}

static void
samples_are_the_same_with_any_threads_and_ranks(void **state)
{
	(void)state;
	put_golden("arrays", NULL, NULL);
	promise_same(golden_spec(&temp, "mds('@')"));
}

int
main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(golden_folders_are_read_as_mosaicml_reads_them),
		CASE(a_folder_may_be_written_as_a_uri_or_with_a_slash),
		CASE(columns_that_cannot_be_fields_are_told),
		CASE(arrays_are_like_the_first_ones),
		CASE(arrays_that_make_no_sense_are_bad_samples),
		CASE(arrays_are_learnt_from_the_first_good_sample),
		CASE(empty_arrays_have_no_values),
		CASE(numbers_beyond_int64_are_bad_samples),
		CASE(what_index_json_says_is_checked),
		CASE(index_json_cut_or_changed_anywhere_is_survived),
		CASE(compressed_shards_are_refused_unless_they_lie_there_decompressed),
		CASE(a_shard_cut_anywhere_loses_only_what_lies_behind_the_cut),
		CASE(a_flipped_bit_anywhere_in_a_shard_is_survived),
		CASE(samples_and_columns_have_to_fit),
		CASE(every_failing_allocation_is_survived),
		CASE(samples_are_the_same_with_any_threads_and_ranks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
