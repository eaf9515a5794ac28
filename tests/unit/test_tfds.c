/* test_tfds.c - TFDS folders are read as tensorflow-datasets reads them, and whatever is in their files, nothing else
 * breaks */
#include "support/archive.h"

#include "format/example.h"
#include "format/record.h"
#include "format/tfds.h"

static struct temp temp;
static struct archive archive;
static struct leat_tfds_params params;
static const char *fields[8];

static int
set_up(void **state)
{
	(void)state;
	temp_make(&temp);
	setenv("XDG_CACHE_HOME", temp_path(&temp, "cache"), 1);
	memset(&logged, 0, sizeof(logged));
	archive_init(&archive);
	params = (struct leat_tfds_params){.folder = temp.folder, .split = "train", .fields = {0, fields}, .crc = true};
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

static void
put_text(const char *name, const char *text)
{
	temp_write(&temp, name, text, strlen(text));
}

/* features.json with one feature `x`, and x-train.tfrecord-00000-of-00001 with the records that `make` fills. */
static void
put_folder(const char *feature, int records, void (*make)(struct leat_example *example, int i))
{
	struct leat_tfrecord_writer writer;
	struct leat_example example;
	char text[2000];

	snprintf(text, sizeof(text), "{\"featuresDict\": {\"features\": {\"x\": %s}}}", feature);
	put_text("features.json", text);
	snprintf(text, sizeof(text),
	         "{\"name\": \"d\", \"splits\": [{\"name\": \"train\", \"shardLengths\": [\"%d\"]}]}", records);
	put_text("dataset_info.json", text);
	unlink(temp_path(&temp, ".d-train.tfrecord-00000-of-00001.leatidx"));
	assert_int_equal(leat_tfrecord_writer_open(&writer, temp_path(&temp, "d-train.tfrecord-00000-of-00001"),
	                                           &archive.mem, NULL),
	                 LEAT_OK);
	leat_example_init(&example, &archive.mem, 1 << 20);
	for (int i = 0; i < records; i++) {
		const void *record;
		size_t len;

		leat_example_begin(&example);
		make(&example, i);
		assert_int_equal(leat_example_finish(&example, &record, &len, NULL), LEAT_OK);
		assert_int_equal(leat_tfrecord_writer_append(&writer, record, len, NULL), LEAT_OK);
	}
	leat_example_free(&example);
	assert_int_equal(leat_tfrecord_writer_close(&writer, NULL), LEAT_OK);
}

#define TENSOR(dtype, dims) "{\"tensor\": {\"dtype\": \"" dtype "\", \"shape\": {\"dimensions\": [" dims "]}}}"
#define ENCODED(dtype, dims)                                                                                           \
	"{\"tensor\": {\"dtype\": \"" dtype "\", \"encoding\": \"bytes\", \"shape\": {\"dimensions\": [" dims "]}}}"

/* The golden folder, and one of its files with one text replaced by another. */
static void
put_golden(const char *folder, const char *file, const char *text, const char *by)
{
	char path[1000];
	unsigned char *old;
	char *at, *out;
	size_t len;

	snprintf(path, sizeof(path), GOLDEN "tfds/%s", folder);
	golden_copy(&temp, path);
	if (!file)
		return;
	old = temp_read(temp_path(&temp, file), &len);
	old[len] = '\0';
	at = strstr((char *)old, text);
	assert_non_null(at);
	out = malloc(len + strlen(by) + 1);
	len = (size_t)sprintf(out, "%.*s%s%s", (int)(at - (char *)old), (char *)old, by, at + strlen(text));
	temp_write(&temp, file, out, len);
	free(out);
	free(old);
}

static enum leat_status
open_tfds(void)
{
	return archive_open(&archive, "tfds", &params);
}

static void
must_open(void)
{
	if (open_tfds() != LEAT_OK)
		fail_msg("%s", archive.err.text);
}

static void
must_refuse(enum leat_status status, const char *part)
{
	if (open_tfds() != status)
		fail_msg("it says %s '%s', expected '%s'", leat_status_name(archive.err.status), archive.err.text,
		         part);
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
	for (size_t i = 0; i < count; i++)
		fields[i] = names[i];
}

/* ---- golden ---- */

static void
golden_folders_are_read_as_tfds_reads_them(void **state)
{
	(void)state;
	golden_check_all(&temp, GOLDEN "tfds", 18);
}

static void
samples_are_the_same_with_any_threads_and_ranks(void **state)
{
	(void)state;
	put_golden("small/1.0.0", NULL, NULL, NULL);
	promise_same(golden_spec(&temp, "tfds('@', split='train[1:]')"));
}

/* ---- splits ---- */

/* Two splits: `train` of 50 samples in shards of 20, 0, 25 and 5, and `test-a` of 7. */
static uint64_t lengths[] = {20, 0, 25, 5}, seven[] = {7};
static struct leat_tfds_split two[] = {{"train", NULL, 4, lengths, 50}, {"test-a", NULL, 1, seven, 7}};
static const struct leat_tfds_splits splits = {.count = 2, .split = two};

static void
parts_of_splits_are_those_of_tfds(void **state)
{
	static const struct {
		const char *text;
		size_t count;
		struct leat_tfds_part part[3];
	} cases[] = {
		{"train", 1, {{0, 0, 50}}},
		{"test-a", 1, {{1, 0, 7}}},
		{"all", 2, {{0, 0, 50}, {1, 0, 7}}},
		{" train + test-a[2:] +train[:1]", 3, {{0, 0, 50}, {1, 2, 7}, {0, 0, 1}}},
		{"train[10:20]", 1, {{0, 10, 20}}},
		{"train[:-45]", 1, {{0, 0, 5}}},
		{"train[-5:]", 1, {{0, 45, 50}}},
		{"train[-50:-49]", 1, {{0, 0, 1}}},
		{"train[1_0:2_0]", 1, {{0, 10, 20}}},
		{"train[20:10]", 1, {{0, 20, 20}}},
		{"train[0:0]", 1, {{0, 0, 0}}},
		{"train[:80%]", 1, {{0, 0, 40}}},
		{"train[-20%:]", 1, {{0, 40, 50}}},
		{"train[1%:3%]", 1, {{0, 0, 2}}}, /* halves go to the even one: 0.5 and 1.5 */
		{"train[5%:7%]", 1, {{0, 2, 4}}}, /* 2.5 and 3.5 */
		{"train[12.5%:33.3%]", 1, {{0, 6, 17}}},
		{"train[10:50%]", 1, {{0, 5, 25}}}, /* one unit is both sides' */
		{"train[50%:90]", 1, {{0, 25, 45}}},
		{"train[1shard:3shard]", 1, {{0, 20, 45}}},
		{"train[-1shard:]", 1, {{0, 45, 50}}},
		{"train[:-1shard]", 1, {{0, 0, 45}}},
		{"train[3shard]", 1, {{0, 45, 50}}},
		{"train[1shard]", 1, {{0, 20, 20}}},
		{"train[:99shard]", 1, {{0, 0, 50}}},
		{"train[:-99shard]", 1, {{0, 0, 0}}},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct leat_tfds_parts parts;
		struct leat_err err;

		leat_err_clear(&err);
		if (leat_tfds_choose(&parts, cases[i].text, &splits, &archive.mem, &err) != LEAT_OK)
			fail_msg("%s: %s", cases[i].text, err.text);
		assert_int_equal(parts.count, cases[i].count);
		for (size_t k = 0; k < parts.count; k++)
			if (parts.part[k].split != cases[i].part[k].split ||
			    parts.part[k].from != cases[i].part[k].from || parts.part[k].to != cases[i].part[k].to)
				fail_msg("%s: part %zu is %zu[%llu:%llu]", cases[i].text, k, parts.part[k].split,
				         (unsigned long long)parts.part[k].from, (unsigned long long)parts.part[k].to);
		leat_tfds_parts_free(&parts);
	}
}

static void
what_is_no_split_is_refused(void **state)
{
	static const struct {
		const char *text, *part;
	} cases[] = {
		{"", "is not a split"},
		{"+", "is not a split"},
		{"train+", "is not a split"},
		{"[1:2]", "is not a split"},
		{"train[", "is not a split"},
		{"train[]", "is not a split"},
		{"train[:]", "is not a split"},
		{"train[5]", "is not a split"},
		{"train[5%]", "is not a split"},
		{"train[1:2:3]", "is not a split"},
		{"train[1:2]x", "is not a split"},
		{"train[a:2]", "is not a split"},
		{"train[1.5:2]", "is not a split"},
		{"train[1.5shard]", "is not a split"},
		{"train[1.2.3%:]", "is not a split"},
		{"train[--1:]", "is not a split"},
		{"train[-:]", "is not a split"},
		{"train[.%:]", "is not a split"},
		{"train[1234567890123456:]", "is not a split"},
		{"all[:5]", "there is no split 'all'; the splits here are train, test-a"},
		{"trian", "there is no split 'trian', did you mean 'train'?"},
		{"train[:101%]", "percentages must be between"},
		{"train[-101%:]", "percentages must be between"},
		{"train[51:]", "goes beyond the 50 samples"},
		{"train[:51]", "goes beyond the 50 samples"},
		{"train[-51:]", "goes beyond the 50 samples"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct leat_tfds_parts parts;
		struct leat_err err;

		leat_err_clear(&err);
		assert_int_equal(leat_tfds_choose(&parts, cases[i].text, &splits, &archive.mem, &err), LEAT_SPEC);
		if (!strstr(err.text, cases[i].part))
			fail_msg("%s: '%s' does not say '%s'", cases[i].text, err.text, cases[i].part);
		leat_tfds_parts_free(&parts);
	}
	put_golden("plain/tiny/2.0.1", NULL, NULL, NULL);
	params.split = "train[50%:50%]";
	must_refuse(LEAT_DATA, "split 'train[50%:50%]' has no samples");
}

/* ---- dataset_info.json ---- */

static void
what_dataset_info_says_is_checked(void **state)
{
	static const struct {
		const char *text, *by;
		enum leat_status status;
		const char *part;
	} cases[] = {
		{"\"tfrecord\"", "\"array_record\"", LEAT_UNSUPPORTED, "files in array_record format"},
		{"\"splits\"", "\"split\"", LEAT_DATA, "lists no splits"},
		{"\"name\": \"train\"", "\"name\": 7", LEAT_DATA, "a split without a name"},
		{"\"name\": \"plain\"", "\"name\": \"../plain\"", LEAT_DATA,
	         "which is not a valid name in that folder"},
		{"\"name\": \"plain\"", "\"name\": \"/plain\"", LEAT_DATA, "which is not a valid name in that folder"},
		{"\"name\": \"plain\"", "\"name\": \"*\"", LEAT_DATA, "which is not a valid name in that folder"},
		{"\"name\": \"plain\"", "\"name\": \"none\"", LEAT_IO, "none-train.tfrecord-00000-of-00004"},
		{"{DATASET}-", "{DATABASE}-", LEAT_DATA, "unsupported file name template"},
		{"{SHARD_X_OF_Y}", "{SHARD_X_OF_Y", LEAT_DATA, "unsupported file name template"},
		{"{SHARD_X_OF_Y}", "{SHARD_INDEX}-of-{NUM_SHARDS}", LEAT_OK, ""},
		{"{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}", "", LEAT_OK, ""},
		{"\"shardLengths\": [", "\"shardLengths\": [0,", LEAT_IO, "-00001-of-00005"},
		{"\"9\"", "\"8\"", LEAT_DATA, "has 9 records, but dataset_info.json says 8"},
		{"\"9\"", "9", LEAT_OK, ""},
		{"\"9\"", "\"\"", LEAT_DATA, "without a valid length"},
		{"\"9\"", "\"-9\"", LEAT_DATA, "without a valid length"},
		{"\"9\"", "\"99999999999999999999\"", LEAT_DATA, "without a valid length"},
		{"\"9\"", "9.5", LEAT_DATA, "without a valid length"},
	};
	static char folder[80];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		put_golden("plain/tiny/2.0.1", "dataset_info.json", cases[i].text, cases[i].by);
		if (cases[i].status == LEAT_OK) {
			must_open();
			assert_int_equal(archive.source.count, 37);
			archive_close(&archive);
		} else {
			must_refuse(cases[i].status, cases[i].part);
		}
	}
	snprintf(folder, sizeof(folder), "%s/none", temp.folder);
	params.folder = folder;
	must_refuse(LEAT_IO, "tfds reads the folder of one version, such as '");
}

static void
json_cut_or_changed_anywhere_is_survived(void **state)
{
	static const char *const files[] = {"dataset_info.json", "features.json"};

	(void)state;
	put_golden("small/1.0.0", NULL, NULL, NULL);
	for (int f = 0; f < 2; f++) {
		size_t len;
		unsigned char *json = temp_read(temp_path(&temp, files[f]), &len);

		for (size_t cut = 0; cut < len - 1; cut += 13) {
			temp_write(&temp, files[f], json, cut);
			assert_int_equal(open_tfds(), LEAT_DATA);
		}
		for (size_t i = 0; i < len; i += json[i] == ' ' ? 5 : 2) {
			json[i] ^= (unsigned char)(1 << i % 8);
			temp_write(&temp, files[f], json, len);
			json[i] ^= (unsigned char)(1 << i % 8);
			if (open_tfds() == LEAT_OK)
				for (uint64_t k = 0; k < archive.source.count && k < 3; k++)
					archive_read(&archive, k);
			archive_close(&archive);
		}
		temp_write(&temp, files[f], json, len);
		free(json);
	}
}

/* ---- features ---- */

static void
features_that_cannot_be_fields_are_told(void **state)
{
	static const struct {
		const char *name, *part;
	} cases[] = {
		{"film", "cannot be a field: features of its kind are not supported"},
		{"names", "cannot be a field: it is a list of text or images"},
		{"packed", "cannot be a field: it is compressed"},
		{"rows", "cannot be a field: it is a sequence of sequences"},
		{"imgae", "there is no feature 'imgae', did you mean 'image'?"},
		{"object", "there is no feature 'object'"},
	};

	(void)state;
	put_golden("small/1.0.0", NULL, NULL, NULL);
	must_open();
	for (size_t i = 0; i < 4; i++)
		assert_non_null(strstr(logged.warning, cases[i].name));
	archive_close(&archive);
	logged.warn = 0;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		choose(2, (const char *[]){"label", cases[i].name});
		must_refuse(LEAT_SPEC, cases[i].part);
	}
	choose(2, (const char *[]){"label", "label"});
	must_refuse(LEAT_SPEC, "the name is a duplicate");
	assert_int_equal(logged.warn, 0);
}

static void
no_values(struct leat_example *example, int i)
{
	(void)i;
	leat_example_add_int64s(example, "y", NULL, 0);
}

static void
features_json_is_checked(void **state)
{
	static const struct {
		const char *feature, *part;
	} cases[] = {
		{TENSOR("complex64", ""), "its type is unknown"},
		{TENSOR("int64", "\"-1\", \"-1\""), "more than one of its dimensions is variable"},
		{TENSOR("int64", "1, 1, 1, 1, 1"), "it has more than 4 dimensions"},
		{TENSOR("int64", "\"x\""), "its shape is invalid"},
		{TENSOR("int64", "-2"), "its shape is invalid"},
		{TENSOR("int64", "\"99999999999\""), "its shape is invalid"},
		{TENSOR("int64", "2000000000, 2000000000, 2000000000"), "too many values"},
		{TENSOR("string", "3"), "it is a list of text"},
		{"{\"tensor\": {\"dtype\": \"int64\", \"encoding\": \"zlib\"}}", "it is compressed"},
		{"{\"tensor\": {}}", "features of its kind are not supported"},
		{"{\"audio\": {\"dtype\": \"int64\"}}", "features of its kind are not supported"},
		{"{\"sequence\": {\"feature\": {\"image\": {}}}}", "it is a list of text or images"},
		{"{\"sequence\": {\"feature\": " ENCODED("int64", "2") "}}", "it is a list of encoded tensors"},
		{"{\"sequence\": {\"feature\": {\"sequence\": {\"feature\": {}}}}}", "it is a sequence of sequences"},
		{"{\"sequence\": {}}", "features of its kind are not supported"},
		{"7", "features of its kind are not supported"},
	};
	static char deep[40000];
	size_t used = 0;

	(void)state;
	choose(1, (const char *[]){"x"});
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		put_folder(cases[i].feature, 1, no_values);
		must_refuse(LEAT_SPEC, cases[i].part);
	}
	choose(0, NULL);
	must_refuse(LEAT_UNSUPPORTED, "no feature can be a field");
	put_folder("{\"sequence\": {\"feature\": {}, \"length\": \"y\"}}", 1, no_values);
	must_refuse(LEAT_DATA, "sequence 'x' has an invalid length");
	put_text("features.json", "{\"type\": \"tensorflow_datasets.core.features.FeaturesDict\", \"content\": {}}");
	must_refuse(LEAT_UNSUPPORTED, "written by an old version of TFDS");
	put_text("features.json", "{\"tensor\": {}}");
	must_refuse(LEAT_DATA, "does not describe the features");
	for (int i = 0; i < 30; i++)
		used += (size_t)sprintf(deep + used, "{\"featuresDict\": {\"features\": {\"x\": ");
	used += (size_t)sprintf(deep + used, "{}");
	for (int i = 0; i < 30; i++)
		used += (size_t)sprintf(deep + used, "}}}");
	put_text("features.json", deep);
	must_refuse(LEAT_DATA, "nested more than 16 deep");
}

/* ---- values ---- */

static void
make_bytes_and_ints(struct leat_example *example, int i)
{
	static const int64_t values[][3] = {{0, 255, 9}, {0, 256, 9}, {0, -1, 9}};
	static const float floats[] = {1, 2};

	if (i < 3)
		leat_example_add_int64s(example, "x", values[i], 2);
	if (i == 3)
		leat_example_add_int64s(example, "x", values[0], 3);
	if (i == 4)
		leat_example_add_floats(example, "x", floats, 2);
	if (i == 5)
		leat_example_add_bytes(example, "x", "ab", 2);
	if (i == 6)
		leat_example_add_int64s(example, "y", values[0], 2);
}

static void
records_that_are_not_what_features_json_says_are_bad_samples(void **state)
{
	(void)state;
	put_folder(TENSOR("uint8", "2"), 7, make_bytes_and_ints);
	must_open();
	assert_int_equal(archive_read(&archive, 0), LEAT_OK);
	assert_memory_equal(archive.sample.field[0].data, ((uint8_t[]){0, 255}), 2);
	check_bad(1, "feature 'x' has a value out of range for uint8");
	check_bad(2, "feature 'x' has a value out of range for uint8");
	check_bad(3, "feature 'x' has 3 values, which do not fit uint8[2]");
	check_bad(4, "feature 'x' is float, expected int64");
	check_bad(5, "feature 'x' is bytes, expected int64");
	check_bad(6, "the record has no feature 'x'");
	archive_close(&archive);

	put_folder(TENSOR("int64", "\"-1\", \"2\""), 7, make_bytes_and_ints);
	must_open();
	assert_int_equal(archive_read(&archive, 0), LEAT_OK);
	assert_int_equal(archive.sample.field[0].shape[0], 1);
	check_bad(3, "feature 'x' has 3 values, which do not fit int64[?, 2]");
	assert_int_equal(archive_read(&archive, 6), LEAT_OK); /* none, of any number */
	assert_int_equal(archive.sample.field[0].shape[0], 0);
	archive_close(&archive);

	put_folder(TENSOR("bool", "2"), 7, make_bytes_and_ints);
	must_open();
	check_bad(0, "feature 'x' has a value out of range for bool");
	archive_close(&archive);

	put_folder("{\"text\": {}}", 7, make_bytes_and_ints);
	must_open();
	check_bad(0, "feature 'x' is int64, expected bytes");
	assert_int_equal(archive_read(&archive, 5), LEAT_OK);
	archive_close(&archive);

	put_folder(TENSOR("int64", "\"-1\", 0"), 7, make_bytes_and_ints);
	must_open();
	check_bad(0, "feature 'x' has 2 values");
	assert_int_equal(archive_read(&archive, 6), LEAT_OK);
}

static void
make_encoded(struct leat_example *example, int i)
{
	static const unsigned char bytes[] = {1, 0, 2, 0, 3, 0, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0x80};
	static const int64_t shapes[][3] = {{2, 2}, {1, 4}, {2, 3}, {-2, -2}, {4}, {1, 2, 2}, {INT64_MAX, INT64_MAX}};

	leat_example_add_bytes(example, "x", bytes + (i == 9 ? 8 : 0), i == 8 ? 7 : 8);
	if (i != 7)
		leat_example_add_int64s(example, "x/shape", shapes[i < 7 ? i : 0], i == 4 ? 1 : i == 5 ? 3 : 2);
	leat_example_add_bytes(example, "x/value", bytes, i == 8 ? 7 : 8);
}

static void
encoded_tensors_have_to_fit_their_shapes(void **state)
{
	(void)state;
	put_folder(ENCODED("uint16", "2, 2"), 10, make_encoded);
	must_open();
	assert_int_equal(archive_read(&archive, 0), LEAT_OK);
	assert_memory_equal(archive.sample.field[0].data, ((int32_t[]){1, 2, 3, 65535}), 16);
	check_bad(8, "feature 'x' has 3 values, which do not fit int32[2, 2]");
	archive_close(&archive);

	put_folder(ENCODED("uint64", ""), 10, make_encoded);
	must_open();
	check_bad(0, "feature 'x' has a value that does not fit int64");
	archive_close(&archive);

	put_folder(ENCODED("uint16", "\"-1\", \"-1\""), 10, make_encoded);
	must_open();
	assert_int_equal(archive_read(&archive, 0), LEAT_OK);
	assert_int_equal(archive_read(&archive, 1), LEAT_OK);
	assert_int_equal(archive.sample.field[0].shape[1], 4);
	check_bad(2, "feature 'x' has 4 values, which do not fit int32[?, ?]");
	check_bad(3, "feature 'x' has a shape that contradicts features.json");
	check_bad(4, "feature 'x/shape' has 1 values, expected 2");
	check_bad(5, "feature 'x/shape' has 3 values, expected 2");
	check_bad(6, "feature 'x' has 4 values, which do not fit int32[?, ?]");
	check_bad(7, "feature 'x/shape' has 0 values, expected 2");
	check_bad(8, "feature 'x' has 3 values");
	archive_close(&archive);

	put_folder(ENCODED("uint16", "\"-1\", \"-1\", \"2\""), 10, make_encoded);
	must_open();
	check_bad(5 - 5, "feature 'x/shape' has 2 values, expected 3");
	assert_int_equal(archive_read(&archive, 5), LEAT_OK);
}

/* ---- damage ---- */

static void
a_file_cut_anywhere_loses_only_what_lies_behind_the_cut(void **state)
{
	static const char name[] = "plain-train.tfrecord-00001-of-00004";
	unsigned char *bytes;
	size_t len;

	(void)state;
	put_golden("plain/tiny/2.0.1", NULL, NULL, NULL);
	bytes = temp_read(temp_path(&temp, name), &len);
	for (size_t cut = 0; cut < len; cut += 64) {
		size_t whole = 0, at = 0, good = 0;

		while (at + 16 + bytes[at] <= cut) {
			at += 16 + (size_t)bytes[at];
			whole++;
		}
		temp_write(&temp, name, bytes, cut);
		if (at == cut) { /* between two records: nothing is damaged, but some are missing */
			must_refuse(LEAT_DATA, "records, but dataset_info.json says 9");
			continue;
		}
		must_open();
		for (uint64_t i = 0; i < archive.source.count; i++)
			good += archive_read(&archive, i) == LEAT_OK;
		assert_int_equal(good, 28 + whole);
		assert_int_equal(archive.source.count, good + 1);
		archive_close(&archive);
	}
	free(bytes);
}

static void
a_part_of_a_damaged_file_is_what_is_left_of_it(void **state)
{
	static const char name[] = "plain-train.tfrecord-00001-of-00004";
	unsigned char *bytes;
	size_t len;

	(void)state;
	put_golden("plain/tiny/2.0.1", NULL, NULL, NULL);
	bytes = temp_read(temp_path(&temp, name), &len);
	temp_write(&temp, name, bytes, 300); /* two records, and damage */
	free(bytes);
	params.split = "train[12:15]"; /* [3:6] of that file, which has 3 */
	must_refuse(LEAT_DATA, "the files have none of the requested samples");
	params.split = "train[10:12]";
	must_open();
	assert_int_equal(archive.source.count, 2);
	assert_int_equal(archive_read(&archive, 0), LEAT_OK);
	check_bad(1, "the file ends inside a record");
	archive_close(&archive);
	params.split = "train[10:19]";
	must_open();
	assert_int_equal(archive.source.count, 3);
}

static void
checksums_are_looked_at_unless_told_otherwise(void **state)
{
	static const char name[] = "plain-train.tfrecord-00000-of-00004";
	unsigned char *bytes;
	size_t len, at;

	(void)state;
	put_golden("plain/tiny/2.0.1", NULL, NULL, NULL);
	bytes = temp_read(temp_path(&temp, name), &len);
	for (at = 12; memcmp(bytes + at, "IHDR", 4) != 0; at++)
		;
	bytes[at] ^= 1; /* in the image, which nobody looks into here */
	temp_write(&temp, name, bytes, len);
	free(bytes);
	must_open();
	check_bad(0, "record's checksum does not match");
	archive_close(&archive);
	params.crc = false;
	must_open();
	assert_int_equal(archive_read(&archive, 0), LEAT_OK);
}

static void
forget_indexes(void)
{
	char command[200];

	snprintf(command, sizeof(command), "rm -f '%s'/.*.leatidx", temp.folder);
	assert_int_equal(system(command), 0);
}

static void
every_failing_allocation_is_survived(void **state)
{
	(void)state;
	put_golden("small/1.0.0", NULL, NULL, NULL);
	promise_memory_errors(golden_spec(&temp, "tfds('@', fields=[text, free, 'objects/box']) | batch(2)"),
	                      forget_indexes);
	promise_memory_errors(golden_spec(&temp, "tfds('@', split='train[:3]+test') | batch(2)"), NULL);
}

int
main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(golden_folders_are_read_as_tfds_reads_them),
		CASE(samples_are_the_same_with_any_threads_and_ranks),
		CASE(parts_of_splits_are_those_of_tfds),
		CASE(what_is_no_split_is_refused),
		CASE(what_dataset_info_says_is_checked),
		CASE(json_cut_or_changed_anywhere_is_survived),
		CASE(features_that_cannot_be_fields_are_told),
		CASE(features_json_is_checked),
		CASE(records_that_are_not_what_features_json_says_are_bad_samples),
		CASE(encoded_tensors_have_to_fit_their_shapes),
		CASE(a_file_cut_anywhere_loses_only_what_lies_behind_the_cut),
		CASE(a_part_of_a_damaged_file_is_what_is_left_of_it),
		CASE(checksums_are_looked_at_unless_told_otherwise),
		CASE(every_failing_allocation_is_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
