/* test_tar.c - every sample of a tar file is found as WebDataset finds it, and damage is told, never lost in silence */
#include "support/archive.h"

#include "format/npy_write.h"
#include "format/tar.h"

static struct temp temp;
static struct archive archive;
static struct leat_tar_params params;
static const char *patterns[4], *fields[8];

static int
set_up(void **state)
{
	(void)state;
	temp_make(&temp);
	setenv("XDG_CACHE_HOME", temp_path(&temp, "cache"), 1);
	memset(&logged, 0, sizeof(logged));
	archive_init(&archive);
	params = (struct leat_tar_params){.patterns = {0, patterns}, .fields = {0, fields}};
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

/* ---- making archives ---- */

struct tar {
	size_t len;
	unsigned char data[128 * 1024];
};

static struct tar tar;

static void
put_checksum(unsigned char *header)
{
	unsigned sum = 0;

	memset(header + 148, ' ', 8);
	for (size_t i = 0; i < 512; i++)
		sum += header[i];
	snprintf((char *)header + 148, 8, "%06o", sum);
}

static unsigned char *
add_entry(char type, const char *name, const void *data, size_t size)
{
	unsigned char *header = tar.data + tar.len;

	assert_true(tar.len + 512 + size + 512 <= sizeof(tar.data));
	memset(header, 0, 512 + (size + 511) / 512 * 512);
	memcpy(header, name, strnlen(name, 100));
	snprintf((char *)header + 100, 8, "%07o", 0644);
	snprintf((char *)header + 124, 12, "%011o", (unsigned)size);
	snprintf((char *)header + 136, 12, "%011o", 0);
	header[156] = (unsigned char)type;
	memcpy(header + 257, "ustar\00000", 8);
	put_checksum(header);
	memcpy(header + 512, data, size);
	tar.len += 512 + (size + 511) / 512 * 512;
	return header;
}

static void
add(const char *name, const char *text)
{
	add_entry('0', name, text, strlen(text));
}

static void
add_end(void)
{
	memset(tar.data + tar.len, 0, 1024);
	tar.len += 1024;
}

/* Four samples of two files; number 2 has one more. */
static void
make_four(void)
{
	tar.len = 0;
	for (int i = 0; i < 4; i++) {
		char name[32], text[32];

		snprintf(name, sizeof(name), "s%d.txt", i);
		snprintf(text, sizeof(text), "text of %d", i);
		add(name, text);
		snprintf(name, sizeof(name), "s%d.cls", i);
		snprintf(text, sizeof(text), "%d", i);
		add(name, text);
		if (i == 2)
			add("s2.more", "and more");
	}
}

static void
put_tar(const char *name)
{
	temp_write(&temp, name, tar.data, tar.len);
}

/* ---- reading them ---- */

static enum leat_status
open_tar(const char *name)
{
	static char path[512];

	snprintf(path, sizeof(path), "%s/%s", temp.folder, name);
	patterns[0] = path;
	params.patterns.count = 1;
	return archive_open(&archive, "tar", &params);
}

static void
must_open(const char *name)
{
	if (open_tar(name) != LEAT_OK)
		fail_msg("%s", archive.err.text);
}

static void
must_refuse(const char *name, enum leat_status status, const char *part)
{
	assert_int_equal(open_tar(name), status);
	if (!strstr(archive.err.text, part))
		fail_msg("'%s' does not say '%s'", archive.err.text, part);
}

static void
check_field(const char *name, const char *want)
{
	int i = leat_schema_find(&archive.source.schema, name);
	const struct leat_datum *datum;

	assert_true(i >= 0);
	datum = &archive.sample.field[i];
	assert_int_equal(datum->shape[0], strlen(want));
	assert_memory_equal(datum->data, want, strlen(want));
}

static void
check_bad(uint64_t i, const char *part)
{
	assert_int_equal(archive_read(&archive, i), LEAT_DATA);
	if (!strstr(archive.err.text, part))
		fail_msg("'%s' does not say '%s'", archive.err.text, part);
}

/* How many samples are those of make_four, whole and in order. */
static unsigned
count_of_four(void)
{
	unsigned found = 0;
	int last = -1;

	for (uint64_t i = 0; i < archive.source.count; i++) {
		const struct leat_datum *text = &archive.sample.field[0], *number = &archive.sample.field[1];
		char want[32];
		int k;

		if (archive_read(&archive, i) != LEAT_OK || number->shape[0] != 1)
			continue;
		k = *(const char *)number->data - '0';
		snprintf(want, sizeof(want), "text of %d", k);
		if (k <= last || text->shape[0] != (int64_t)strlen(want) || memcmp(text->data, want, strlen(want)) != 0)
			continue;
		last = k;
		found++;
	}
	return found;
}

static void
choose(size_t count, const char *const *names)
{
	params.fields.count = count;
	memcpy(fields, names, count * sizeof(*names));
}

/* ---- golden ---- */

static void
golden_archives_are_read_as_webdataset_reads_them(void **state)
{
	(void)state;
	golden_check_all(&temp, GOLDEN "wds", 6);
}

/* ---- fields ---- */

static void
the_first_sample_says_which_fields_there_are(void **state)
{
	(void)state;
	make_four();
	add_end();
	put_tar("x.tar");
	must_open("x.tar");
	assert_int_equal(archive.source.count, 4);
	assert_int_equal(archive.source.schema.count, 2);
	assert_string_equal(archive.source.schema.entry[0].field.name, "txt");
	assert_string_equal(archive.source.schema.entry[1].field.name, "cls");
	assert_int_equal(count_of_four(), 4);
}

static void
fields_can_be_chosen_and_named(void **state)
{
	(void)state;
	make_four();
	add_end();
	put_tar("x.tar");
	choose(3, (const char *[]){"label=CLS", "__key__", "any=more;txt"});
	must_open("x.tar");
	for (uint64_t i = 0; i < 4; i++) {
		char key[8], label[8];

		snprintf(key, sizeof(key), "s%d", (int)i);
		snprintf(label, sizeof(label), "%d", (int)i);
		assert_int_equal(archive_read(&archive, i), LEAT_OK);
		check_field("label", label);
		check_field("__key__", key);
		if (i == 2)
			check_field("any", "and more"); /* named before txt, though it comes behind */
	}
}

static void
text_can_be_read_as_a_number(void **state)
{
	static const struct {
		const char *text;
		int64_t number;
	} good[] = {{"7", 7},
	            {"-12\n", -12},
	            {" \t+5\r\n", 5},
	            {"9223372036854775807", INT64_MAX},
	            {"007", 7},
	            {"-0", 0},
	            {"-9223372036854775808", INT64_MIN}};
	static const char *const bad[] = {"",
	                                  "\n",
	                                  "-",
	                                  "7a",
	                                  "1 2",
	                                  "0x10",
	                                  "1.0",
	                                  "9223372036854775808",
	                                  "-9223372036854775809",
	                                  "99999999999999999999",
	                                  "--1"};

	(void)state;
	tar.len = 0;
	for (size_t i = 0; i < sizeof(good) / sizeof(*good) + sizeof(bad) / sizeof(*bad); i++) {
		char name[32];

		snprintf(name, sizeof(name), "%zu.cls", i);
		add(name, i < sizeof(good) / sizeof(*good) ? good[i].text : bad[i - sizeof(good) / sizeof(*good)]);
	}
	put_tar("x.tar");
	choose(3, (const char *[]){"cls:int64", "text=cls", "label=num;cls:int64"});
	must_open("x.tar");
	assert_string_equal(archive.source.schema.entry[0].field.name, "cls");
	assert_int_equal(archive.source.schema.entry[2].field.dtype, LEAT_I64);
	assert_int_equal(archive.source.schema.entry[2].field.ndim, 0);
	for (uint64_t i = 0; i < archive.source.count; i++) {
		if (i < sizeof(good) / sizeof(*good)) {
			assert_int_equal(archive_read(&archive, i), LEAT_OK);
			assert_int_equal(*(int64_t *)archive.sample.field[0].data, good[i].number);
			assert_int_equal(*(int64_t *)archive.sample.field[2].data, good[i].number);
			check_field("text", good[i].text);
		} else {
			check_bad(i, "not an int64");
		}
	}
	check_bad(10, "sample '10': field cls is '7a', not an int64");
	archive_close(&archive);
	choose(1, (const char *[]){"x:int64"});
	must_open("x.tar");
	check_bad(0, "the sample '0' has no 'x'; it has 'cls'");
}

/* A .npy file of these floats, rows of two, at `key`.npy. */
static void
add_array(const char *key, int64_t rows, size_t cut)
{
	const int64_t shape[] = {rows, 2};
	char file[LEAT_NPY_HEAD + 64], name[32];
	size_t len = leat_npy_head(file, LEAT_F32, 2, shape, rows);

	for (int64_t i = 0; i < 2 * rows; i++)
		memcpy(file + len + 4 * i, &(float){(float)i + 0.5f}, 4);
	snprintf(name, sizeof(name), "%s.npy", key);
	add_entry('0', name, file, len + 8 * (size_t)rows - cut);
}

static void
arrays_are_of_the_type_that_the_spec_tells(void **state)
{
	(void)state;
	tar.len = 0;
	add_array("a", 1, 0);
	add_array("b", 3, 0);
	add_array("c", 0, 0);
	add_array("d", 2, 1);
	add("e.npy", "no array");
	put_tar("x.tar");
	choose(2, (const char *[]){"x=bin;npy:float32[?, 2]", "npy:float32[3,2]"});
	must_open("x.tar");
	assert_int_equal(archive.source.schema.entry[0].field.ndim, 2);
	assert_int_equal(archive.source.schema.entry[0].field.shape[0], -1);
	assert_string_equal(archive.source.schema.entry[1].field.name, "npy");
	check_bad(0, "sample 'a': cannot read array npy: it is float32[1, 2], expected float32[3, 2]");
	assert_int_equal(archive_read(&archive, 1), LEAT_OK);
	for (int f = 0; f < 2; f++) {
		assert_int_equal(archive.sample.field[f].shape[0], 3);
		for (int k = 0; k < 6; k++)
			assert_true(((const float *)archive.sample.field[f].data)[k] == (float)k + 0.5f);
	}
	archive_close(&archive);
	choose(1, (const char *[]){"npy:float32[?, 2]"});
	must_open("x.tar");
	assert_int_equal(archive_read(&archive, 2), LEAT_OK);
	assert_int_equal(archive.sample.field[0].shape[0], 0);
	check_bad(3, "truncated");
	check_bad(4, "it is not a .npy file");
}

static void
types_of_arrays_are_read_with_care(void **state)
{
	static const char *const good[] = {"float32", "uint8[3]", "int32[?,?]", "float16[ 1, 2 , ?]", "float64[0]"};
	static const char *const bad[] = {"",
	                                  "float",
	                                  "float32[",
	                                  "float32[]",
	                                  "float32[1",
	                                  "int64[1,]",
	                                  "int64[1]x",
	                                  "uint8[-1]",
	                                  "uint8[1 2]",
	                                  "uint8[??]",
	                                  "bfloat16[2]",
	                                  "int8[99999999999]",
	                                  "uint8[99999999999]",
	                                  "uint8[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]"};
	struct leat_field field;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
		if (!leat_tar_type(good[i], &field))
			fail_msg("%s is none", good[i]);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		if (leat_tar_type(bad[i], &field))
			fail_msg("%s is one", bad[i]);
}

static void
names_that_cannot_be_fields_are_refused(void **state)
{
	static char longest[80];

	(void)state;
	make_four();
	put_tar("x.tar");
	memset(longest, 'n', 64);
	choose(1, (const char *[]){longest});
	must_refuse("x.tar", LEAT_SPEC, "1 to 63 bytes");
	longest[63] = '\0';
	choose(1, (const char *[]){"=x:int64"});
	must_refuse("x.tar", LEAT_SPEC, "1 to 63 bytes");
	choose(1, (const char *[]){""});
	must_refuse("x.tar", LEAT_SPEC, "1 to 63 bytes");
	choose(2, (const char *[]){"cls", "cls=txt"});
	must_refuse("x.tar", LEAT_SPEC, "the name is a duplicate");
	choose(1, (const char *[]){longest}); /* just not there */
	must_open("x.tar");
	check_bad(0, "the sample 's0' has no");
}

static void
a_sample_that_lacks_a_field_is_bad_and_names_its_key(void **state)
{
	(void)state;
	make_four();
	add("lonely.cls", "5");
	add("last.cls", "6");
	add("last.txt", "six");
	put_tar("x.tar");
	must_open("x.tar");
	assert_int_equal(archive.source.count, 6);
	check_bad(4, "the sample 'lonely' has no 'txt'; it has 'cls'");
	assert_int_equal(archive_read(&archive, 5), LEAT_OK);
	check_field("txt", "six");
}

static void
a_file_that_comes_twice_makes_a_sample_bad(void **state)
{
	(void)state;
	make_four();
	add("a.txt", "1");
	add("a.cls", "2");
	add("a.TXT", "3");
	add("b.txt", "1");
	add("b.other", "2"); /* nobody asked for it */
	add("b.other", "3");
	add("b.cls", "4");
	put_tar("x.tar");
	must_open("x.tar");
	check_bad(4, "'a.TXT' appears twice");
	assert_int_equal(archive_read(&archive, 5), LEAT_OK);
}

static void
extensions_that_cannot_be_fields_are_left_out_with_a_warning(void **state)
{
	char name[100] = "a.";

	(void)state;
	tar.len = 0;
	memset(name + 2, 'x', 70);
	add(name, "too long");
	add("a.", "empty");
	add("a.new\nline", "control");
	add("a.\xff", "no text");
	add("a.ok", "fine");
	put_tar("x.tar");
	must_open("x.tar");
	assert_int_equal(logged.warn, 4);
	assert_int_equal(archive.source.schema.count, 1);
	assert_int_equal(archive_read(&archive, 0), LEAT_OK);
	check_field("ok", "fine");
	archive_close(&archive);
	tar.len = 0;
	add("a.", "empty");
	put_tar("y.tar");
	must_refuse("y.tar", LEAT_DATA, "is a valid field name");
}

/* ---- names ---- */

/* A name of `len` bytes, "nnn.txt", by GNU's 'L' or by pax. */
static void
add_long(char type, size_t len)
{
	static char name[8192], record[8300];

	memset(name, 'n', len);
	memcpy(name + len - 4, ".txt", 5);
	if (type == 'L')
		add_entry('L', "././@LongLink", name, len + 1);
	else
		add_entry('x', "PaxHeader", record,
		          (size_t)snprintf(record, sizeof(record), "%zu path=%s\n", len + 5 + 1 + 1 + 4, name));
	add_entry('0', "short", "text", 4);
}

static void
names_of_up_to_4095_bytes_are_whole(void **state)
{
	static const char types[] = {'L', 'x'};

	(void)state;
	choose(2, (const char *[]){"__key__", "txt"});
	for (size_t i = 0; i < 2; i++) {
		for (size_t len = 990; len <= 4095; len += 345) {
			tar.len = 0;
			add_long(types[i], len);
			add("b.txt", "b");
			add_end();
			put_tar("x.tar");
			must_open("x.tar");
			assert_int_equal(archive.source.count, 2);
			assert_int_equal(archive_read(&archive, 0), LEAT_OK);
			assert_int_equal(archive.sample.field[0].shape[0], len - 4);
			check_field("txt", "text");
			assert_int_equal(archive_read(&archive, 1), LEAT_OK);
			check_field("__key__", "b");
			archive_close(&archive);
		}
		tar.len = 0;
		add_long(types[i], 4096);
		add("b.txt", "b");
		put_tar("x.tar");
		must_open("x.tar");
		assert_int_equal(archive.source.count, 2);
		check_bad(0, "an extended header, or the header after it, is invalid");
		assert_int_equal(archive_read(&archive, 1), LEAT_OK);
		archive_close(&archive);
	}
}

static void
sizes_come_from_pax_and_from_large_numbers_too(void **state)
{
	unsigned char *header;

	(void)state;
	tar.len = 0;
	add_entry('x', "PaxHeader", "9 size=5\n", 9);
	header = add_entry('0', "a.txt", "12345", 5);
	memcpy(header + 124, "00000000000", 11);
	put_checksum(header);
	header = add_entry('0', "a.cls", "123456", 6);
	memcpy(header + 124, "\x80\0\0\0\0\0\0\0\0\0\0\x06", 12);
	put_checksum(header);
	add_end();
	put_tar("x.tar");
	must_open("x.tar");
	assert_int_equal(archive.source.count, 1);
	assert_int_equal(archive_read(&archive, 0), LEAT_OK);
	check_field("txt", "12345");
	check_field("cls", "123456");
}

static void
sums_of_signed_bytes_are_right_too(void **state)
{
	unsigned char *header;
	int sum = 0;

	(void)state;
	tar.len = 0;
	header = add_entry('0', "\xc3\xa4.txt", "a", 1);
	memset(header + 148, ' ', 8);
	for (size_t i = 0; i < 512; i++)
		sum += (signed char)header[i];
	snprintf((char *)header + 148, 8, "%06o", (unsigned)sum);
	put_tar("x.tar");
	must_open("x.tar");
	assert_int_equal(archive.source.count - count_of_four(), 1);
	assert_int_equal(archive_read(&archive, 0), LEAT_OK);
	check_field("txt", "a");
}

static void
pax_headers_that_make_no_sense_are_damage(void **state)
{
	static const char *const bad[] = {
		"x path=a\n", "5 path=a\n", "99 path=a\n",          "7 path\n",  "9 size=x\n",
		"8 size=\n",  "0 \n",       "12345678901 path=a\n", "9 path=a ", "29 size=99999999999999999999\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		tar.len = 0;
		add_entry('x', "PaxHeader", bad[i], strlen(bad[i]));
		add("a.txt", "never seen");
		add("b.txt", "seen");
		put_tar("x.tar");
		must_open("x.tar");
		assert_int_equal(archive.source.count, 2);
		check_bad(0, "is invalid");
		assert_int_equal(archive_read(&archive, 1), LEAT_OK);
		check_field("txt", "seen");
		archive_close(&archive);
	}
	tar.len = 0;
	add_entry('x', "PaxHeader", "19 path=a\0b.txt\nxx\n", 19);
	add("b.txt", "never seen");
	add("c.txt", "seen");
	put_tar("x.tar");
	must_open("x.tar");
	check_bad(0, "is invalid");
}

/* ---- ends and damage ---- */

static void
archives_without_samples_are_refused(void **state)
{
	(void)state;
	temp_write(&temp, "a.tar", "", 0);
	must_refuse("a.tar", LEAT_DATA, "has no samples");
	tar.len = 0;
	add_end();
	put_tar("b.tar");
	must_refuse("b.tar", LEAT_DATA, "has no samples");
	tar.len = 0;
	add_entry('5', "folder.x/", "", 0);
	add("README", "nothing");
	add(".hidden.txt", "nothing");
	add("folder/.hidden.txt", "nothing");
	add("__meta__/a.txt", "nothing");
	put_tar("c.tar");
	must_refuse("c.tar", LEAT_DATA, "has no samples");
	must_refuse("?.tar", LEAT_DATA, "no samples in 3 files");
	temp_write(&temp, "d.tar", "this is no archive, and longer than a few bytes", 47);
	must_refuse("d.tar", LEAT_DATA, "no tar file has a readable sample");
	assert_true(temp_exists(&temp, ".c.tar.leatidx"));
}

static void
an_empty_archive_among_others_is_fine(void **state)
{
	(void)state;
	tar.len = 0;
	add_end();
	put_tar("a.tar");
	make_four();
	put_tar("b.tar");
	must_open("?.tar");
	assert_int_equal(archive.source.count, 4);
	assert_int_equal(archive.source.first[1], 0);
	assert_int_equal(count_of_four(), 4);
}

static void
a_cut_at_any_place_loses_only_what_lies_behind_it(void **state)
{
	size_t whole, ends[5] = {0};

	(void)state;
	make_four();
	for (int i = 0; i < 4; i++)
		ends[i + 1] = ends[i] + (i == 2 ? 3 * 1024 : 2 * 1024);
	assert_int_equal(ends[4], tar.len);
	add_end();
	whole = tar.len;
	for (size_t cut = 0; cut <= whole; cut += cut + 64 > whole && cut < whole ? whole - cut : 64) {
		unsigned before = 0;

		while (before < 4 && ends[before + 1] <= cut)
			before++;
		tar.len = cut;
		put_tar("x.tar");
		choose(2, (const char *[]){"txt", "cls"});
		if (open_tar("x.tar") == LEAT_OK) {
			unsigned found = count_of_four();

			/* Padding may be missing, and s2 does without its last file. */
			assert_true(found >= before && found <= before + 1);
			if (cut % 1024 > 512 && cut % 1024 < 520 && cut < ends[4])
				assert_true(archive.source.count > found);
		} else {
			assert_int_equal(archive.err.status, LEAT_DATA);
			assert_int_equal(before, 0);
		}
		archive_close(&archive);
	}
}

static void
a_flipped_bit_in_a_header_hurts_one_sample_only(void **state)
{
	static unsigned char good[sizeof(tar.data)];

	(void)state;
	make_four();
	add_end();
	memcpy(good, tar.data, tar.len);
	choose(2, (const char *[]){"txt", "cls"});
	for (size_t byte = 0; byte < tar.len; byte++) {
		unsigned found;

		if (good[byte] == 0 && byte % 7) /* most are zero, and alike */
			continue;
		memcpy(tar.data, good, tar.len);
		tar.data[byte] ^= (unsigned char)(1 << byte % 8);
		put_tar("x.tar");
		must_open("x.tar");
		found = count_of_four();
		assert_true(found == 3 || (found == 4 && archive.source.count >= 4));
		archive_close(&archive);
	}
}

static void
damage_ends_at_the_next_header(void **state)
{
	struct leat_extent extent;

	(void)state;
	make_four();
	add_end();
	tar.data[2048 + 1024 + 10] ^= 1; /* the header of s1.cls */
	put_tar("x.tar");
	must_open("x.tar");
	assert_int_equal(archive.source.count, 5); /* s0, s1 without cls, damage, s2, s3 */
	check_bad(1, "the sample 's1' has no 'cls'");
	check_bad(2, "x.tar at offset 3072: a header's checksum does not match (1024 bytes damaged)");
	archive.source.kind->locate(&archive.source, 3, &extent);
	assert_int_equal(extent.offset, 4096);
	assert_int_equal(count_of_four(), 3);
	assert_int_equal(logged.warn, 1);
	assert_non_null(strstr(logged.warning, "damaged in 1 place, the first at offset 3072"));
}

static void
a_file_that_is_longer_than_the_archive_is_damage_to_its_end(void **state)
{
	unsigned char *header;

	(void)state;
	make_four();
	header = add_entry('0', "b.txt", "x", 1);
	memcpy(header + 124, "00000777777", 11);
	put_checksum(header);
	add("c.txt", "inside of it, so to speak");
	put_tar("x.tar");
	must_open("x.tar");
	assert_int_equal(archive.source.count, 5);
	check_bad(4, "the file ends inside an entry's data (2048 bytes damaged)");
}

static void
an_archive_ends_with_two_blocks_of_zeros(void **state)
{
	(void)state;
	make_four();
	add_end();
	memset(tar.data + tar.len, 0, 9000);
	tar.len += 9000;
	put_tar("a.tar");
	must_open("a.tar");
	assert_int_equal(archive.source.count, 4);
	assert_int_equal(logged.warn, 0);
	archive_close(&archive);

	add("behind.txt", "of another archive");
	put_tar("b.tar");
	must_open("b.tar");
	assert_int_equal(archive.source.count, 4);
	assert_int_equal(logged.warn, 1);
	assert_non_null(strstr(logged.warning, "ignoring the data after that"));
	archive_close(&archive);

	make_four(); /* no zeros at all */
	put_tar("c.tar");
	must_open("c.tar");
	assert_int_equal(count_of_four(), 4);
	archive_close(&archive);

	memset(tar.data + tar.len, 0, 512); /* one, at the end */
	tar.len += 512;
	put_tar("d.tar");
	must_open("d.tar");
	assert_int_equal(archive.source.count, 4);
	archive_close(&archive);

	add("a.txt", "a"); /* one, and more behind it */
	add("a.cls", "9");
	put_tar("e.tar");
	must_open("e.tar");
	assert_int_equal(archive.source.count, 6);
	check_bad(4, "found a zero block instead of a header (512 bytes damaged)");
	assert_int_equal(archive_read(&archive, 5), LEAT_OK);
}

static void
a_shard_ends_its_last_sample(void **state)
{
	(void)state;
	tar.len = 0;
	add("same.txt", "1");
	add_end();
	put_tar("a.tar");
	put_tar("b.tar");
	must_open("?.tar");
	assert_int_equal(archive.source.count, 2);
	assert_int_equal(archive_read(&archive, 1), LEAT_OK);
	check_field("txt", "1");
}

/* ---- refused ---- */

static void
compressed_archives_are_refused(void **state)
{
	static const struct {
		const char *magic, *name;
	} known[] = {{"\x1f\x8b\x08 and so on", "(gzip)"},
	             {"BZh91AY&SY", "(bzip2)"},
	             {"\xfd\x37zXZ\0....", "(xz)"},
	             {"\x28\xb5\x2f\xfd......", "(zstd)"},
	             {"\x04\x22\x4d\x18......", "(lz4)"}};

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		for (size_t size = 10; size < 3000; size += 2000) {
			memset(tar.data, 7, size);
			memcpy(tar.data, known[i].magic, 10);
			tar.len = size;
			put_tar("x.tar");
			must_refuse("x.tar", LEAT_UNSUPPORTED, known[i].name);
		}
	}
}

static void
sparse_files_are_refused(void **state)
{
	(void)state;
	make_four();
	add_entry('S', "a.txt", "1", 1);
	put_tar("x.tar");
	must_refuse("x.tar", LEAT_UNSUPPORTED, "contains the sparse file 'a.txt'");
	make_four();
	add_entry('x', "PaxHeader", "22 GNU.sparse.major=1\n", 22);
	add("a.txt", "1");
	put_tar("x.tar");
	must_refuse("x.tar", LEAT_UNSUPPORTED, "contains the sparse file 'a.txt'");
}

static void
an_archive_that_changed_after_it_was_indexed_is_noticed(void **state)
{
	static const char zeros[5000];
	int fd;

	(void)state;
	make_four();
	put_tar("x.tar");
	must_open("x.tar");
	tar.len = 0;
	add("s0.txt", "text");
	add("t0.cls", "0");
	add_entry('0', "s1.txt", zeros, 5000);
	fd = open(temp_path(&temp, "x.tar"), O_WRONLY);
	assert_int_equal(write(fd, tar.data, 8192), 8192);
	close(fd);
	check_bad(0, "the entries have changed since the file was indexed");
	check_bad(1, "an entry has grown since the file was indexed");
	fd = open(temp_path(&temp, "x.tar"), O_WRONLY);
	memset(tar.data, 0, 8192);
	assert_int_equal(write(fd, tar.data, 8192), 8192);
	close(fd);
	check_bad(0, "the entries have changed since the file was indexed");
}

/* ---- leat index, memory ---- */

static struct leat_index_report report;

static void
tell(void *arg, const struct leat_index_report *told)
{
	(void)arg;
	report = *told;
}

static const struct leat_index_kind *
kind_of(const char *uri)
{
	(void)uri;
	return &leat_tar_index;
}

static void
archives_can_be_indexed_ahead(void **state)
{
	const char *path = NULL;

	(void)state;
	make_four();
	tar.data[10] ^= 1;
	put_tar("x.tar");
	path = temp_path(&temp, "x.tar");
	for (int again = 0; again < 2; again++) {
		assert_int_equal(
			leat_index_files(&path, 1, kind_of, 1, NULL, &archive.mem, NULL, tell, NULL, NULL, NULL),
			LEAT_OK);
		assert_int_equal(report.state, again ? LEAT_INDEX_FRESH : LEAT_INDEX_BUILT);
		assert_int_equal(report.samples, 4);
		assert_int_equal(report.damaged, 1);
		assert_int_equal(report.damaged_bytes, 1024);
	}
}

static void
forget_index(void)
{
	unlink(temp_path(&temp, ".x.tar.leatidx"));
}

static void
every_failing_allocation_is_survived(void **state)
{
	(void)state;
	make_four();
	put_tar("x.tar");
	promise_memory_errors(golden_spec(&temp, "tar('@/x.tar', fields=[txt, __key__]) | batch(2)"), forget_index);
	promise_memory_errors(golden_spec(&temp, "tar('@/x.tar') | batch(2)"), NULL);
}

static void
samples_are_the_same_with_any_threads_and_ranks(void **state)
{
	(void)state;
	golden_copy(&temp, GOLDEN "wds");
	promise_same(golden_spec(&temp, "tar('@/plain-*.tar', fields=[jpg, __key__])"));
}

int
main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(golden_archives_are_read_as_webdataset_reads_them),
		CASE(the_first_sample_says_which_fields_there_are),
		CASE(fields_can_be_chosen_and_named),
		CASE(text_can_be_read_as_a_number),
		CASE(arrays_are_of_the_type_that_the_spec_tells),
		CASE(types_of_arrays_are_read_with_care),
		CASE(names_that_cannot_be_fields_are_refused),
		CASE(a_sample_that_lacks_a_field_is_bad_and_names_its_key),
		CASE(a_file_that_comes_twice_makes_a_sample_bad),
		CASE(extensions_that_cannot_be_fields_are_left_out_with_a_warning),
		CASE(names_of_up_to_4095_bytes_are_whole),
		CASE(sizes_come_from_pax_and_from_large_numbers_too),
		CASE(sums_of_signed_bytes_are_right_too),
		CASE(pax_headers_that_make_no_sense_are_damage),
		CASE(archives_without_samples_are_refused),
		CASE(an_empty_archive_among_others_is_fine),
		CASE(a_cut_at_any_place_loses_only_what_lies_behind_it),
		CASE(a_flipped_bit_in_a_header_hurts_one_sample_only),
		CASE(damage_ends_at_the_next_header),
		CASE(a_file_that_is_longer_than_the_archive_is_damage_to_its_end),
		CASE(an_archive_ends_with_two_blocks_of_zeros),
		CASE(a_shard_ends_its_last_sample),
		CASE(compressed_archives_are_refused),
		CASE(sparse_files_are_refused),
		CASE(an_archive_that_changed_after_it_was_indexed_is_noticed),
		CASE(archives_can_be_indexed_ahead),
		CASE(every_failing_allocation_is_survived),
		CASE(samples_are_the_same_with_any_threads_and_ranks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
