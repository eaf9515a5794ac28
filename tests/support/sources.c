/* sources.c - see sources.h */
#include "sources.h"

#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <zlib.h>

#include "data.h"
#include "format/example.h"
#include "format/npy_write.h"
#include "format/record.h"
#include "format/source.h"
#include "format/tar_write.h"
#include "table/duckdb.h"

enum { HEIGHT = 24, WIDTH = 30, FILES = 4, CLASSES = 7 };

static struct leat_mem mem;

/* File f holds the samples [first[f], first[f + 1]): one is empty. */
static const size_t first[FILES + 1] = {0, 17, 17, 40, SOURCES_SAMPLES};

/* ---- files ---- */

/* "FOLDER/NAME", valid until the call after the next. */
static const char *
in(const char *folder, const char *format, ...)
{
	static char path[2][400];
	static int turn;
	va_list args;
	int len;

	turn = !turn;
	len = snprintf(path[turn], sizeof path[turn], "%s/", folder);
	va_start(args, format);
	vsnprintf(path[turn] + len, sizeof path[turn] - (size_t)len, format, args);
	va_end(args);
	return path[turn];
}

static FILE *
create(const char *path)
{
	FILE *file = fopen(path, "wb");

	assert_non_null(file);
	return file;
}

static void
put(const char *path, const void *bytes, size_t len)
{
	FILE *file = create(path);

	assert_int_equal(fwrite(bytes, 1, len, file), len);
	assert_int_equal(fclose(file), 0);
}

static unsigned char *
image_of(size_t sample, size_t *size)
{
	return data_jpeg(WIDTH + (int)(sample * 7 % 13), HEIGHT + (int)(sample * 5 % 11), (unsigned)sample, size);
}

static int64_t
label_of(size_t sample)
{
	return (int64_t)(sample % CLASSES);
}

/* ---- one function for each source ---- */

/* Examples, as the op `example` has them in its own example. */
static void
write_records(const char *path, size_t from, size_t to)
{
	struct leat_tfrecord_writer writer;
	struct leat_example example;

	assert_int_equal(leat_tfrecord_writer_open(&writer, path, &mem, NULL), LEAT_OK);
	leat_example_init(&example, &mem, 1 << 20);
	for (size_t i = from; i < to; i++) {
		int64_t label = label_of(i), tokens[5] = {(int64_t)i, -1, 1 << 20, 7, (int64_t)(i * i)};
		float box[4] = {(float)i / 4, 0, 1, 2};
		const void *record;
		size_t size, len;
		unsigned char *jpeg = image_of(i, &size);

		leat_example_begin(&example);
		leat_example_add_bytes(&example, "image", jpeg, size);
		leat_example_add_int64s(&example, "label", &label, 1);
		leat_example_add_int64s(&example, "tokens", tokens, i % 6);
		leat_example_add_floats(&example, "box", box, 4);
		assert_int_equal(leat_example_finish(&example, &record, &len, NULL), LEAT_OK);
		assert_int_equal(leat_tfrecord_writer_append(&writer, record, len, NULL), LEAT_OK);
		free(jpeg);
	}
	leat_example_free(&example);
	assert_int_equal(leat_tfrecord_writer_close(&writer, NULL), LEAT_OK);
}

static void
make_tfrecord(const char *folder)
{
	for (size_t f = 0; f < FILES; f++)
		write_records(in(folder, "%zu.tfrecord", f), first[f], first[f + 1]);
}

static void
make_packed(const char *folder)
{
	for (size_t f = 0; f < FILES; f++) {
		const char *plain = in(folder, "plain"), *path = in(folder, "%zu.tfrecord.gz", f);
		char bytes[4096];
		size_t n;
		FILE *from;
		gzFile to;

		write_records(plain, first[f], first[f + 1]);
		from = fopen(plain, "rb");
		to = gzopen(path, "wb");
		assert_true(from && to);
		while ((n = fread(bytes, 1, sizeof bytes, from)) > 0)
			assert_int_equal(gzwrite(to, bytes, (unsigned)n), n);
		fclose(from);
		assert_int_equal(gzclose(to), Z_OK);
		unlink(plain);
	}
}

static void
make_tar(const char *folder)
{
	struct leat_stores stores;

	leat_stores_init(&stores, &mem);
	for (size_t f = 0; f < FILES; f++) {
		struct leat_writer *out;

		assert_int_equal(leat_write_begin(&out, &stores, in(folder, "%zu.tar", f), NULL), LEAT_OK);
		for (size_t i = first[f]; i < first[f + 1]; i++) {
			struct iovec piece;
			char name[32], text[16];
			unsigned char *jpeg = image_of(i, &piece.iov_len);

			piece.iov_base = jpeg;
			snprintf(name, sizeof name, "%03zu.jpg", i);
			assert_int_equal(leat_tar_write(out, name, &piece, 1, NULL), LEAT_OK);
			piece = (struct iovec){text,
			                       (size_t)snprintf(text, sizeof text, "%lld", (long long)label_of(i))};
			snprintf(name, sizeof name, "%03zu.cls", i);
			assert_int_equal(leat_tar_write(out, name, &piece, 1, NULL), LEAT_OK);
			free(jpeg);
		}
		assert_int_equal(leat_tar_write_end(out, NULL), LEAT_OK);
		assert_int_equal(leat_write_commit(out, NULL, 0, NULL), LEAT_OK);
	}
	leat_stores_close(&stores);
}

/* Returns how long it is. */
static size_t
write_shard(const char *path, size_t from, size_t to)
{
	uint32_t count = (uint32_t)(to - from), at = 4 + 4 * (count + 1);
	FILE *shard = create(path);
	size_t size;

	fwrite(&count, 4, 1, shard);
	fwrite(&at, 4, 1, shard);
	for (size_t i = from; i < to; i++) {
		free(image_of(i, &size));
		at += (uint32_t)(4 + size + 8);
		fwrite(&at, 4, 1, shard);
	}
	for (size_t i = from; i < to; i++) {
		unsigned char *jpeg = image_of(i, &size);

		fwrite(&(uint32_t){(uint32_t)size}, 4, 1, shard);
		fwrite(jpeg, 1, size, shard);
		fwrite(&(int64_t){label_of(i)}, 8, 1, shard);
		free(jpeg);
	}
	assert_int_equal(fclose(shard), 0);
	return at;
}

static void
make_mds(const char *folder)
{
	FILE *json = create(in(folder, "index.json"));

	fprintf(json, "{\"version\": 2, \"shards\": [");
	for (size_t f = 0; f < FILES; f++) {
		size_t bytes = write_shard(in(folder, "shard.%05zu.mds", f), first[f], first[f + 1]);

		fprintf(json,
		        "%s{\"column_encodings\": [\"jpeg\", \"int64\"], \"column_names\": [\"image\", \"label\"], "
		        "\"column_sizes\": [null, 8], \"compression\": null, \"format\": \"mds\", \"hashes\": [], "
		        "\"raw_data\": {\"basename\": \"shard.%05zu.mds\", \"bytes\": %zu, \"hashes\": {}}, "
		        "\"samples\": %zu, \"size_limit\": 2000, \"version\": 2, \"zip_data\": null}",
		        f ? ", " : "", f, bytes, first[f + 1] - first[f]);
	}
	fprintf(json, "]}\n");
	assert_int_equal(fclose(json), 0);
}

static void
make_tfds(const char *folder)
{
	static const char features[] =
		"{\"featuresDict\": {\"features\": {"
		"\"image\": {\"image\": {\"dtype\": \"uint8\", \"encodingFormat\": \"jpeg\", \"shape\": "
		"{\"dimensions\": "
		"[\"-1\", \"-1\", \"3\"]}}}, \"label\": {\"classLabel\": {\"numClasses\": \"7\"}}, "
		"\"box\": {\"tensor\": {\"dtype\": \"float32\", \"shape\": {\"dimensions\": [\"4\"]}}}}}}\n";
	static const char info[] = "{\"name\": \"d\", \"splits\": [{\"name\": \"train\", \"shardLengths\": [\"17\", "
				   "\"0\", \"23\", \"8\"]}]}\n";

	put(in(folder, "features.json"), features, strlen(features));
	put(in(folder, "dataset_info.json"), info, strlen(info));
	for (size_t f = 0; f < FILES; f++)
		write_records(in(folder, "d-train.tfrecord-%05zu-of-%05d", f, FILES), first[f], first[f + 1]);
}

static void
make_folder(const char *folder)
{
	for (size_t i = 0; i < SOURCES_SAMPLES; i++) {
		size_t size;
		unsigned char *jpeg = image_of(i, &size);

		mkdir(in(folder, "class-%lld", (long long)label_of(i)), 0777);
		put(in(folder, "class-%lld/%03zu.jpg", (long long)label_of(i), i), jpeg, size);
		free(jpeg);
	}
}

static void
make_list(const char *folder)
{
	FILE *csv = create(in(folder, "list.csv"));

	make_folder(folder);
	fprintf(csv, "path,label,name\n");
	for (size_t i = 0; i < SOURCES_SAMPLES; i++)
		fprintf(csv, "class-%lld/%03zu.jpg,%lld,\"n %zu\"\n", (long long)label_of(i), i, (long long)label_of(i),
		        i * i);
	assert_int_equal(fclose(csv), 0);
}

static void
make_npy(const char *folder)
{
	static const int64_t pixels[] = {SOURCES_SAMPLES, HEIGHT, WIDTH, 3}, labels[] = {SOURCES_SAMPLES};
	FILE *image = create(in(folder, "image.npy")), *label = create(in(folder, "label.npy"));
	char head[LEAT_NPY_HEAD];

	fwrite(head, 1, leat_npy_head(head, LEAT_U8, 4, pixels, pixels[0]), image);
	for (size_t i = 0; i < (size_t)SOURCES_SAMPLES * HEIGHT * WIDTH * 3; i++)
		fputc((int)(leat_mix64(i) & 255), image);
	fwrite(head, 1, leat_npy_head(head, LEAT_I64, 1, labels, labels[0]), label);
	for (size_t i = 0; i < SOURCES_SAMPLES; i++)
		fwrite(&(int64_t){label_of(i)}, 8, 1, label);
	assert_int_equal(fclose(image), 0);
	assert_int_equal(fclose(label), 0);
}

static void
make_tokens(const char *folder)
{
	for (size_t f = 0; f < FILES; f++) {
		FILE *file = create(in(folder, "%zu.bin", f));

		for (size_t i = 12 * first[f]; i < 12 * first[f + 1] + (first[f] < first[f + 1]); i++)
			fwrite(&(uint16_t){(uint16_t)(i * 31)}, 2, 1, file);
		assert_int_equal(fclose(file), 0);
	}
}

/* An array of numbers that depend on their place and `salt`. */
static void
write_numbers(const char *path, enum leat_dtype dtype, int ndim, const int64_t *shape, uint64_t salt)
{
	FILE *file = create(path);
	char head[LEAT_NPY_HEAD];
	size_t elements = 1;

	fwrite(head, 1, leat_npy_head(head, dtype, ndim, shape, shape[0]), file);
	for (int d = 0; d < ndim; d++)
		elements *= (size_t)shape[d];
	for (size_t i = 0; i < elements; i++) {
		uint64_t number = leat_mix64(salt + i) % 251;
		float single = (float)number / 8;

		fwrite(dtype == LEAT_F32 ? (void *)&single : (void *)&number, leat_dtype_size(dtype), 1, file);
	}
	assert_int_equal(fclose(file), 0);
}

/* Images, and types that only arrays have. No file is empty: its middle would be the header, which tests that damage
 * data leave alone. */
static void
make_npy_parts(const char *folder)
{
	for (size_t f = 0; f < FILES; f++) {
		int64_t rows = (int64_t)(first[f + 1] - first[f]);

		if (rows == 0)
			continue;
		write_numbers(in(folder, "image-%zu.npy", f), LEAT_U8, 4, (int64_t[]){rows, 9, 7, 3}, 100 * f);
		write_numbers(in(folder, "count-%zu.npy", f), LEAT_U64, 2, (int64_t[]){rows, 2}, 100 * f);
	}
	write_numbers(in(folder, "label.npy"), LEAT_I64, 1, (int64_t[]){SOURCES_SAMPLES}, 0);
}

/* Channels x time, as long as its windows, and a few steps more. */
static void
make_windows(const char *folder)
{
	for (size_t f = 0; f < FILES; f++) {
		int64_t windows = (int64_t)(first[f + 1] - first[f]), steps = 12 + 5 * (windows - 1) + 3;

		if (windows == 0)
			continue;
		write_numbers(in(folder, "x-%zu.npy", f), LEAT_I16, 2, (int64_t[]){3, steps}, 1000 * f);
		write_numbers(in(folder, "y-%zu.npy", f), LEAT_I64, 1, (int64_t[]){steps}, 1000 * f + 1);
	}
}

/* Time x channels. */
static void
make_events(const char *folder)
{
	for (size_t f = 0; f < FILES; f++) {
		FILE *csv = create(in(folder, "%zu.csv", f));

		write_numbers(in(folder, "%zu.npy", f), LEAT_F32, 2, (int64_t[]){80, 2}, 1000 * f);
		fprintf(csv, "start,label\n");
		for (size_t i = first[f]; i < first[f + 1]; i++)
			fprintf(csv, "%zu,%lld\n", 2 + i * 37 % 75, (long long)label_of(i));
		assert_int_equal(fclose(csv), 0);
	}
}

static void
add_row(struct leat_str *sql, size_t sample)
{
	size_t size;
	unsigned char *jpeg = image_of(sample, &size);

	leat_str_add(sql, "(unhex('");
	for (size_t i = 0; i < size; i++)
		leat_str_addf(sql, "%02x", jpeg[i]);
	leat_str_addf(sql, "'), %lld::BIGINT, range(%zu)::BIGINT[], %zu.5::FLOAT)", (long long)label_of(sample),
	              sample % 6, sample);
	free(jpeg);
}

static void
make_parquet(const char *folder)
{
	struct leat_tables *tables;

	assert_int_equal(leat_tables_open(&tables, &(struct leat_tables_options){.threads = 1}, NULL), LEAT_OK);
	for (size_t f = 0; f < FILES; f++) {
		struct leat_str sql;

		leat_str_init(&sql, &mem, SIZE_MAX);
		leat_str_addf(&sql, "COPY (SELECT * FROM (VALUES ");
		for (size_t i = first[f]; i < first[f + 1]; i++) {
			leat_str_add(&sql, i > first[f] ? ", " : "");
			add_row(&sql, i);
		}
		if (first[f] == first[f + 1])
			add_row(&sql, 0);
		leat_str_addf(&sql, ") t(image, label, tokens, x)%s) TO '%s' (FORMAT parquet)",
		              first[f] == first[f + 1] ? " WHERE false" : "", in(folder, "%zu.parquet", f));
		assert_int_equal(leat_tables_run(tables, leat_str_text(&sql), NULL), LEAT_OK);
		leat_str_free(&sql);
	}
	leat_tables_close(tables);
}

static void
make_csv(const char *folder)
{
	for (size_t f = 0; f < FILES; f++) {
		FILE *csv = create(in(folder, "%zu.csv", f));

		fprintf(csv, "label,x,name\n");
		for (size_t i = first[f]; i < first[f + 1]; i++)
			fprintf(csv, "%lld,%zu.5,\"name \"\"%zu\"\"\"\n", (long long)label_of(i), i, i % 7);
		assert_int_equal(fclose(csv), 0);
	}
}

/* The result of a step that is a folder of files. */
static void
make_step(const char *folder)
{
	char rows[400];

	assert_int_equal(fclose(create(in(folder, "leat.yaml"))), 0);
	assert_int_equal(mkdir(in(folder, "out"), 0777), 0);
	snprintf(rows, sizeof rows, "%s", in(folder, "out/rows"));
	assert_int_equal(mkdir(rows, 0777), 0);
	make_parquet(rows);
}

/* A source needs one maker at least; @ in its spec stands for the folder that it fills. Those that need DuckDB come
 * last: where there is none, they are left out. Those for local files only are the very last. */
static const struct maker {
	const char *name, *spec;
	void (*make)(const char *folder);
} makers[] = {
	{"tfrecord", "tfrecord('@/*.tfrecord')", make_tfrecord},
	{"tfrecord, compressed", "tfrecord('@/*.tfrecord.gz')", make_packed},
	{"tar", "tar('@/*.tar', fields=['image=jpg', 'label=cls:int64'])", make_tar},
	{"mds", "mds('@')", make_mds},
	{"tfds", "tfds('@')", make_tfds},
	{"folder", "folder('@')", make_folder},
	{"list", "list('@/list.csv')", make_list},
	{"npy", "npy(image='@/image.npy', label='@/label.npy')", make_npy},
	{"tokens", "tokens('@/*.bin', length=12, shift=1)", make_tokens},
	{"windows", "windows('@/x-*.npy', length=12, stride=5, axis=1, labels='@/y-*.npy')", make_windows},
	{"windows of events", "windows('@/*.npy', length=5, events='@/*.csv', offset=-2)", make_events},
	{"npy, several files", "npy(image='@/image-*.npy', label='@/label.npy', count='@/count-*.npy')",
         make_npy_parts},
	{"csv", "csv('@/*.csv', columns=['label int64', 'x float', 'name text'])", make_csv},
	{"parquet", "parquet('@/*.parquet')", make_parquet},
	{"parquet, by row group", "parquet('@', keep=never)", make_parquet},
	{"parquet, of a step", "table(rows, project='@')", make_step},
};

enum { MAKERS = sizeof makers / sizeof *makers, NEED_DUCKDB = 3 };

/* ---- all ---- */

static void
check_that_none_is_missing(void)
{
	for (size_t i = 0; leat_sources[i]; i++) {
		const char *name = leat_sources[i]->name;
		size_t len = strlen(name), m = 0;

		if (strcmp(name, "arrow") == 0) /* reads a table of the program: python/tests/test_arrow.py */
			continue;

		while (m < MAKERS && !(strncmp(makers[m].spec, name, len) == 0 && makers[m].spec[len] == '('))
			m++;
		if (m == MAKERS)
			fail_msg("no test draws from the source '%s': write a function that makes data for it, and "
			         "add it to makers[] in tests/support/sources.c",
			         name);
	}
}

void
sources_leave_local(struct sources *sources)
{
	while (sources->count > 0 && strncmp(sources->one[sources->count - 1].spec, "table(", 6) == 0)
		sources->count--;
}

static int
remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

static void
fill_spec(struct sources_one *one, const char *spec)
{
	size_t len = 0;

	for (; *spec; spec++) {
		if (*spec == '@')
			len += (size_t)snprintf(one->spec + len, sizeof one->spec - len, "%s", one->folder);
		else
			one->spec[len++] = *spec;
		assert_true(len < sizeof one->spec - 1);
	}
	one->spec[len] = '\0';
}

void
sources_make_one(struct sources *sources, size_t i)
{
	nftw(sources->one[i].folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	assert_int_equal(mkdir(sources->one[i].folder, 0777), 0);
	makers[i].make(sources->one[i].folder);
	assert_int_equal(mem.used, 0);
}

void
sources_make(struct sources *sources)
{
	const char *where = getenv("TMPDIR");

	check_that_none_is_missing();
	leat_mem_init(&mem, SIZE_MAX);
	*sources = (struct sources){.count = leat_duckdb_load(NULL) == LEAT_OK ? MAKERS : MAKERS - NEED_DUCKDB};
	snprintf(sources->folder, sizeof sources->folder, "%.150s/leat-test-XXXXXX", where && *where ? where : "/tmp");
	assert_non_null(mkdtemp(sources->folder));
	for (size_t i = 0; i < sources->count; i++) {
		struct sources_one *one = &sources->one[i];

		one->name = makers[i].name;
		one->slow = i >= MAKERS - NEED_DUCKDB;
		/* One letter, so that folders that are added come last: what is damaged at random stays the same. */
		assert_true(i < 36);
		snprintf(one->folder, sizeof one->folder, "%s/%c", sources->folder,
		         (char)(i < 10 ? '0' + i : 'a' + i - 10));
		fill_spec(one, makers[i].spec);
		sources_make_one(sources, i);
	}
}

void
sources_remove(struct sources *sources)
{
	if (sources->folder[0])
		nftw(sources->folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	*sources = (struct sources){0};
}

static int
forget_index(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	const char *dot = strrchr(path, '.');

	(void)st, (void)type, (void)ftw;
	return dot && strcmp(dot, ".leatidx") == 0 ? unlink(path) : 0;
}

void
sources_forget_indexes(const struct sources *sources)
{
	assert_int_equal(nftw(sources->folder, forget_index, 16, FTW_PHYS), 0);
}

/* ---- damage ---- */

/* nftw hands no argument on. */
static unsigned files_seen, file_wanted;
static char file_found[400];

static int
count_file(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	if (type == FTW_F && path[ftw->base] != '.' && st->st_size > 0 && files_seen++ == file_wanted)
		snprintf(file_found, sizeof file_found, "%s", path);
	return 0;
}

void
sources_spoil_one(const struct sources *sources, size_t i, struct leat_rng *rng)
{
	unsigned char byte;
	struct stat st;
	off_t at;
	int fd;

	files_seen = 0;
	file_wanted = ~0u;
	nftw(sources->one[i].folder, count_file, 16, FTW_PHYS);
	assert_true(files_seen > 0);
	file_wanted = (unsigned)leat_rng_below(rng, files_seen);
	files_seen = 0;
	nftw(sources->one[i].folder, count_file, 16, FTW_PHYS);
	fd = open(file_found, O_RDWR);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	at = (off_t)leat_rng_below(rng, (uint64_t)st.st_size);
	if (leat_rng_below(rng, 8) == 0) {
		assert_int_equal(ftruncate(fd, at), 0);
	} else {
		assert_int_equal(pread(fd, &byte, 1, at), 1);
		byte ^= (unsigned char)(1 + leat_rng_below(rng, 255));
		assert_int_equal(pwrite(fd, &byte, 1, at), 1);
	}
	close(fd);
}

void
sources_elsewhere(const struct sources *from, const struct sources *to, const char *spec, char *out, size_t cap)
{
	size_t here = strlen(from->folder), len = 0;

	while (*spec) {
		assert_true(len + sizeof to->folder < cap);
		if (strncmp(spec, from->folder, here) == 0) {
			len += (size_t)snprintf(out + len, cap - len, "%s", to->folder);
			spec += here;
		} else {
			out[len++] = *spec++;
		}
	}
	out[len] = '\0';
}
