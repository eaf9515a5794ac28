/* many.c - see many.h */
#include "many.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "format/example.h"
#include "format/npy_write.h"
#include "format/record.h"
#include "format/tar_write.h"

enum { SHARDS = 10, CLASS = 1000 /* samples of a class */ };

static struct leat_mem mem;
static struct leat_err why;

static void
must(enum leat_status status)
{
	if (status != LEAT_OK)
		errx(1, "%s", why.text);
}

static void
make_folder(const char *path)
{
	if (mkdir(path, 0777) != 0 && errno != EEXIST)
		err(1, "cannot make %s", path);
}

static FILE *
create(const char *path)
{
	FILE *file = fopen(path, "wb");

	if (!file)
		err(1, "cannot write %s", path);
	return file;
}

static void
finish(FILE *file, const char *path)
{
	if (ferror(file) || fclose(file) != 0)
		err(1, "cannot write %s", path);
}

static const char *
in(const char *folder, const char *format, ...)
{
	static char path[BENCH_PATH];
	int len = snprintf(path, sizeof path, "%s/", folder);
	va_list args;

	va_start(args, format);
	len += vsnprintf(path + len, sizeof path - (size_t)len, format, args);
	va_end(args);
	if (len >= BENCH_PATH)
		errx(1, "the path of %s is too long", folder);
	return path;
}

static uint64_t
per_shard(const struct many *many)
{
	return many->samples / SHARDS;
}

/* ---- one function a source: writes the data into `folder`, and the source with its arguments into many->spec ---- */

static void
make_tfrecord(struct many *many, const char *folder)
{
	struct leat_tfrecord_writer writer;

	for (int s = 0; s < SHARDS; s++) {
		must(leat_tfrecord_writer_open(&writer, in(folder, "%02d.tfrecord", s), &mem, &why));
		for (uint64_t i = 0; i < per_shard(many); i++)
			must(leat_tfrecord_writer_append(&writer, &i, sizeof i, &why));
		must(leat_tfrecord_writer_close(&writer, &why));
	}
}

static void
make_tar(struct many *many, const char *folder)
{
	struct leat_stores stores;
	struct leat_writer *out;
	char name[32];

	leat_stores_init(&stores, &mem);
	for (int s = 0; s < SHARDS; s++) {
		must(leat_write_begin(&out, &stores, in(folder, "%02d.tar", s), &why));
		for (uint64_t i = 0; i < per_shard(many); i++) {
			struct iovec piece = {&i, sizeof i};

			snprintf(name, sizeof name, "%08" PRIu64 ".bin", i);
			must(leat_tar_write(out, name, &piece, 1, &why));
		}
		must(leat_tar_write_end(out, &why));
		must(leat_write_commit(out, NULL, 0, &why));
	}
	leat_stores_close(&stores);
}

/* One column of a fixed size. The JSON that a shard repeats in itself is not looked at. */
static void
make_mds(struct many *many, const char *folder)
{
	uint32_t count = (uint32_t)per_shard(many), begin = 4 + 4 * (count + 1);
	char index[BENCH_PATH];
	FILE *json;

	snprintf(index, sizeof index, "%s", in(folder, "index.json"));
	json = create(index);
	fprintf(json, "{\"version\": 2, \"shards\": [");
	for (int s = 0; s < SHARDS; s++) {
		FILE *shard = create(in(folder, "shard.%05d.mds", s));

		fprintf(json,
		        "%s{\"column_encodings\": [\"int64\"], \"column_names\": [\"x\"], \"column_sizes\": [8], "
		        "\"compression\": null, \"format\": \"mds\", \"hashes\": [], \"raw_data\": {\"basename\": "
		        "\"shard.%05d.mds\", \"bytes\": %" PRIu64 ", \"hashes\": {}}, \"samples\": %u, "
		        "\"size_limit\": null, \"version\": 2, \"zip_data\": null}",
		        s ? ", " : "", s, begin + (uint64_t)8 * count, count);
		fwrite(&count, 4, 1, shard);
		for (uint32_t i = 0; i <= count; i++)
			fwrite(&(uint32_t){begin + 8 * i}, 4, 1, shard);
		for (uint64_t i = 0; i < count; i++)
			fwrite(&i, 8, 1, shard);
		finish(shard, folder);
	}
	fprintf(json, "]}\n");
	finish(json, index);
}

static void
make_folders(struct many *many, const char *folder)
{
	for (uint64_t i = 0; i < many->samples; i++) {
		int fd;

		if (i % CLASS == 0)
			make_folder(in(folder, "%05" PRIu64, i / CLASS));
		fd = open(in(folder, "%05" PRIu64 "/%03" PRIu64 ".jpg", i / CLASS, i % CLASS),
		          O_WRONLY | O_CREAT | O_TRUNC, 0666);
		if (fd < 0 || write(fd, &i, 1) != 1)
			err(1, "cannot write %s", folder);
		close(fd);
	}
}

/* The files are those of `folder`, which is made first. */
static void
make_list(struct many *many, const char *folder)
{
	const char *path = in(folder, "list.csv");
	FILE *csv = create(path);

	fprintf(csv, "path,label\n");
	for (uint64_t i = 0; i < many->samples; i++)
		fprintf(csv, "../folder/%05" PRIu64 "/%03" PRIu64 ".jpg,%" PRIu64 "\n", i / CLASS, i % CLASS,
		        i / CLASS);
	finish(csv, path);
}

static void
make_npy(struct many *many, const char *folder)
{
	const char *path = in(folder, "x.npy");
	FILE *file = create(path);
	int64_t shape[] = {(int64_t)many->samples};
	char head[LEAT_NPY_HEAD];

	fwrite(head, 1, leat_npy_head(head, LEAT_I64, 1, shape, shape[0]), file);
	for (uint64_t i = 0; i < many->samples; i++)
		fwrite(&i, 8, 1, file);
	finish(file, path);
}

static void
make_tokens(struct many *many, const char *folder)
{
	for (int s = 0; s < SHARDS; s++) {
		const char *path = in(folder, "%02d.bin", s);
		FILE *file = create(path);

		for (uint64_t i = 0; i < 4 * per_shard(many); i++)
			fwrite(&(uint16_t){(uint16_t)i}, 2, 1, file);
		finish(file, path);
	}
}

static void
write_examples(const char *path, uint64_t count)
{
	struct leat_tfrecord_writer writer;
	struct leat_example example;

	must(leat_tfrecord_writer_open(&writer, path, &mem, &why));
	leat_example_init(&example, &mem, 1 << 20);
	for (uint64_t i = 0; i < count; i++) {
		int64_t x = (int64_t)i;
		const void *record;
		size_t len;

		leat_example_begin(&example);
		leat_example_add_int64s(&example, "x", &x, 1);
		must(leat_example_finish(&example, &record, &len, &why));
		must(leat_tfrecord_writer_append(&writer, record, len, &why));
	}
	leat_example_free(&example);
	must(leat_tfrecord_writer_close(&writer, &why));
}

static void
make_tfds(struct many *many, const char *folder)
{
	char path[BENCH_PATH];
	FILE *json;

	snprintf(path, sizeof path, "%s", in(folder, "features.json"));
	json = create(path);
	fprintf(json,
	        "{\"featuresDict\": {\"features\": {\"x\": {\"tensor\": {\"dtype\": \"int64\", \"shape\": {}}}}}}\n");
	finish(json, path);
	snprintf(path, sizeof path, "%s", in(folder, "dataset_info.json"));
	json = create(path);
	fprintf(json, "{\"name\": \"d\", \"splits\": [{\"name\": \"train\", \"shardLengths\": [");
	for (int s = 0; s < SHARDS; s++) {
		fprintf(json, "%s\"%" PRIu64 "\"", s ? ", " : "", per_shard(many));
		write_examples(in(folder, "d-train.tfrecord-%05d-of-%05d", s, SHARDS), per_shard(many));
	}
	fprintf(json, "]}]}\n");
	finish(json, path);
}

/* @ stands for the folder. */
static const struct maker {
	const char *source, *spec;
	void (*make)(struct many *many, const char *folder);
} makers[] = {
	{"tfrecord", "tfrecord('@/*.tfrecord')", make_tfrecord},
	{"tar", "tar('@/*.tar')", make_tar},
	{"mds", "mds('@')", make_mds},
	{"folder", "folder('@')", make_folders},
	{"list", "list('@/list.csv', root='/')", make_list},
	{"npy", "npy(x='@/x.npy')", make_npy},
	{"tokens", "tokens('@/*.bin', length=4)", make_tokens},
	{"tfds", "tfds('@')", make_tfds},
};

bool
many_make(struct many *many, const char *folder)
{
	const struct maker *maker = makers, *end = makers + sizeof makers / sizeof *makers;
	char path[BENCH_PATH], ready[BENCH_PATH];
	const char *at;

	while (maker < end && strcmp(maker->source, many->source) != 0)
		maker++;
	if (maker == end)
		return false;
	leat_mem_init(&mem, SIZE_MAX);
	make_folder(folder);
	snprintf(path, sizeof path, "%s", in(folder, "many-%" PRIu64, many->samples));
	make_folder(path);
	snprintf(path, sizeof path, "%s", in(folder, "many-%" PRIu64 "/%s", many->samples, many->source));
	make_folder(path);
	snprintf(ready, sizeof ready, "%s", in(folder, "many-%" PRIu64 "/.%s", many->samples, many->source));
	if (access(ready, F_OK) != 0) {
		maker->make(many, path);
		finish(create(ready), ready);
	}
	at = strchr(maker->spec, '@');
	if (snprintf(many->spec, sizeof many->spec, "%.*s%s%s", (int)(at - maker->spec), maker->spec, path, at + 1) >=
	    (int)sizeof many->spec)
		errx(1, "the path of %s is too long", folder);
	return true;
}
