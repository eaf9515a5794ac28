/* index.c - how fast indexes are made, against a bare walk over the headers of the same files
 *
 *	bench_index FOLDER [--json FILE] [--repeats N] [--threads 1|2] [--only NAME]
 *
 * A bare walk is the least that finding the samples takes: each thread has its share of the
 * files, steps from header to header, checks each one's checksum and keeps nothing. It reads
 * whole blocks, or the headers alone, whichever is faster for the data at hand. Leat also keeps
 * where each sample lies, writes that to a file, and reads it back. */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench.h"
#include "format/indexed.h"
#include "format/record.h"
#include "format/tar.h"
#include "format/tar_write.h"

enum { FILES = 8, MAX_THREADS = 2, CALIBRATE = 3, LARGEST = 4 << 20, TAR_SIZE = 124, TAR_SUM = 148 };

static const double target = 0.75;

static struct leat_mem mem;

/* ---- formats ---- */

struct format {
	const char *name;
	const struct leat_index_kind *kind;
	size_t header;
	/* Bytes of the entry whose header this is; 0: it is the end. Checks it. */
	uint64_t (*step)(const unsigned char *header);
	void (*write)(const char *path, size_t length, uint64_t count);
};

static uint64_t
step_tfrecord(const unsigned char *header)
{
	if (leat_load32(header + 8) != leat_tfrecord_crc(header, 8))
		errx(1, "the bare walk found a damaged header");
	return leat_load64(header) + LEAT_TFRECORD_FRAME;
}

static uint64_t
octal(const unsigned char *text)
{
	uint64_t value = 0;

	for (; *text >= '0' && *text <= '7'; text++)
		value = value << 3 | (*text & 7u);
	return value;
}

static uint64_t
step_tar(const unsigned char *header)
{
	uint32_t sum = 8 * ' ';

	if (!header[0])
		return 0;
	for (size_t i = 0; i < LEAT_TAR_BLOCK; i++)
		sum += header[i];
	for (size_t i = TAR_SUM; i < TAR_SUM + 8; i++)
		sum -= header[i];
	if (octal(header + TAR_SUM) != sum)
		errx(1, "the bare walk found a damaged header");
	return LEAT_TAR_BLOCK + ((octal(header + TAR_SIZE) + LEAT_TAR_BLOCK - 1) & ~(uint64_t)(LEAT_TAR_BLOCK - 1));
}

static void
must(enum leat_status status, const struct leat_err *why)
{
	if (status != LEAT_OK)
		errx(1, "%s", why->text);
}

static void
write_tfrecord(const char *path, size_t length, uint64_t count)
{
	struct leat_tfrecord_writer writer;
	unsigned char *data = bench_alloc(length);
	struct leat_err why;

	must(leat_tfrecord_writer_open(&writer, path, &mem, &why), &why);
	while (count--)
		must(leat_tfrecord_writer_append(&writer, data, length, &why), &why);
	must(leat_tfrecord_writer_close(&writer, &why), &why);
	free(data);
}

static void
write_tar(const char *path, size_t length, uint64_t count)
{
	struct iovec piece = {bench_alloc(length), length};
	struct leat_stores stores;
	struct leat_writer *out;
	struct leat_err why;
	char name[32];

	leat_stores_init(&stores, &mem);
	must(leat_write_begin(&out, &stores, path, &why), &why);
	for (uint64_t i = 0; i < count; i++) {
		snprintf(name, sizeof name, "%08llu.bin", (unsigned long long)i);
		must(leat_tar_write(out, name, &piece, 1, &why), &why);
	}
	must(leat_tar_write_end(out, &why), &why);
	must(leat_write_commit(out, NULL, 0, &why), &why);
	leat_stores_close(&stores);
	free(piece.iov_base);
}

static const struct format formats[] = {
	{"tfrecord", &leat_tfrecord_index, LEAT_TFRECORD_HEAD, step_tfrecord, write_tfrecord},
	{"tar", &leat_tar_index, LEAT_TAR_BLOCK, step_tar, write_tar},
};

/* ---- data ---- */

struct set {
	const struct format *format;
	size_t length;
	uint64_t per_file;
	char folder[BENCH_PATH - 64];
	unsigned threads;
	size_t block; /* that the bare walk reads at once; 0: headers alone */
};

static const char *
set_path(const struct set *set, int file, bool index)
{
	static char path[BENCH_PATH];

	snprintf(path, sizeof path, index ? "%s/.%d.leatidx" : "%s/%d", set->folder, file);
	return path;
}

static void
make_set(struct set *set, const char *folder)
{
	if (snprintf(set->folder, sizeof set->folder, "%s/index-%s-%zu", folder, set->format->name, set->length) >=
	    (int)sizeof set->folder)
		errx(1, "the path of %s is too long", folder);
	if ((mkdir(folder, 0777) != 0 && errno != EEXIST) || (mkdir(set->folder, 0777) != 0 && errno != EEXIST))
		err(1, "cannot make %s", set->folder);
	for (int i = 0; i < FILES; i++)
		if (access(set_path(set, i, false), F_OK) != 0)
			set->format->write(set_path(set, i, false), set->length, set->per_file);
}

/* ---- bare ---- */

struct walker {
	const struct set *set;
	pthread_t thread;
	int number;
	uint64_t samples;
	unsigned char *buffer;
};

static size_t
read_at(int fd, unsigned char *to, size_t bytes, uint64_t offset)
{
	ssize_t got = pread(fd, to, bytes, (off_t)offset);

	if (got < 0)
		err(1, "pread");
	return (size_t)got;
}

static void
walk_file(struct walker *walker, const char *path)
{
	const struct format *format = walker->set->format;
	size_t block = walker->set->block ? walker->set->block : format->header, have = 0;
	uint64_t at = 0, offset = 0, step;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		err(1, "cannot open %s", path);
	for (;;) {
		if (offset + format->header > at + have) {
			at = offset;
			have = read_at(fd, walker->buffer, block, at);
			if (have < format->header)
				break;
		}
		step = format->step(walker->buffer + (offset - at));
		if (!step)
			break;
		offset += step;
		walker->samples++;
	}
	close(fd);
}

static void *
walk_share(void *arg)
{
	struct walker *walker = arg;
	char path[BENCH_PATH];

	for (int i = walker->number; i < FILES; i += (int)walker->set->threads) {
		snprintf(path, sizeof path, "%s/%d", walker->set->folder, i);
		walk_file(walker, path);
	}
	return NULL;
}

static struct bench_time
run_bare(void *arg)
{
	const struct set *set = arg;
	struct walker walker[MAX_THREADS];
	struct bench_clock begin;
	struct bench_time time;
	uint64_t samples = 0;

	for (unsigned i = 0; i < set->threads; i++)
		walker[i] = (struct walker){.set = set, .number = (int)i, .buffer = bench_alloc(LARGEST)};
	begin = bench_begin();
	for (unsigned i = 1; i < set->threads; i++)
		if (pthread_create(&walker[i].thread, NULL, walk_share, &walker[i]) != 0)
			errx(1, "cannot start a thread");
	walk_share(&walker[0]);
	for (unsigned i = 1; i < set->threads; i++)
		pthread_join(walker[i].thread, NULL);
	time = bench_end(begin);
	for (unsigned i = 0; i < set->threads; i++) {
		samples += walker[i].samples;
		free(walker[i].buffer);
	}
	if (samples != FILES * set->per_file)
		errx(1, "the bare walk missed samples");
	return time;
}

/* What to read at once that suits this data on this machine best: the yardstick should be as long as it can be. */
static void
calibrate(struct set *set)
{
	static const size_t sizes[] = {0, 4096, 64 << 10, 128 << 10, 256 << 10, 1 << 20, LARGEST};
	double best = 1e9;
	size_t chosen = 0;

	for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
		double time[CALIBRATE];

		if (sizes[s] && sizes[s] < set->format->header)
			continue;
		set->block = sizes[s];
		for (int r = 0; r < CALIBRATE; r++)
			time[r] = run_bare(set).wall;
		if (bench_spread_of(time, CALIBRATE).median < best) {
			best = bench_spread_of(time, CALIBRATE).median;
			chosen = sizes[s];
		}
	}
	set->block = chosen;
}

/* ---- leat ---- */

static const struct leat_index_kind *wanted;

static const struct leat_index_kind *
kind_of(const char *uri)
{
	(void)uri;
	return wanted;
}

static void
count(void *arg, const struct leat_index_report *report)
{
	uint64_t *samples = arg;

	if (report->state != LEAT_INDEX_BUILT)
		errx(1, "%s: no index was made: %s", report->uri, report->reason ? report->reason : "it was there");
	*samples += report->samples;
}

static struct bench_time
run_leat(void *arg)
{
	const struct set *set = arg;
	struct bench_clock begin;
	struct bench_time time;
	char pattern[BENCH_PATH];
	const char *patterns[] = {pattern};
	struct leat_err why;
	uint64_t samples = 0;

	for (int i = 0; i < FILES; i++)
		if (unlink(set_path(set, i, true)) != 0 && errno != ENOENT)
			err(1, "cannot remove %s", set_path(set, i, true));
	snprintf(pattern, sizeof pattern, "%s/*", set->folder);
	wanted = set->format->kind;
	leat_err_clear(&why);
	begin = bench_begin();
	must(leat_index_files(patterns, 1, kind_of, set->threads, NULL, &mem, NULL, count, &samples, NULL, &why), &why);
	time = bench_end(begin);
	if (samples != FILES * set->per_file)
		errx(1, "leat missed samples");
	return time;
}

/* ---- the cases ---- */

struct choice {
	const char *only;
	int64_t threads;
	struct bench_common common;
	json_t *results;
};

static void
bench_set(struct set *set, const struct choice *choice)
{
	const struct bench_contender contender[] = {{"leat", run_leat, set}, {"bare", run_bare, set}};
	struct bench_result result = {.items = (double)(FILES * set->per_file),
	                              .bytes = (double)(FILES * set->per_file) * (double)set->length};
	char name[64];

	snprintf(name, sizeof name, "%s %zu, %u thread%s", set->format->name, set->length, set->threads,
	         set->threads == 1 ? "" : "s");
	result.name = name;
	calibrate(set);
	if (set->block)
		printf("(%s: blocks of %zu KiB)\n", name, set->block >> 10);
	else
		printf("(%s: headers alone)\n", name);
	bench_compare(&result, contender, 2, (int)choice->common.repeats);
	bench_print(stdout, &result, target);
	json_array_append_new(choice->results, bench_json(&result, target));
}

int
main(int argc, char **argv)
{
	static const size_t lengths[] = {100, 1024, 10000}, file_sizes[] = {32 << 20, 32 << 20, 64 << 20};
	struct choice choice = {.common = {.repeats = 15}, .results = json_array()};
	const struct bench_option options[] = {{"threads", NULL, &choice.threads}, {"only", &choice.only, NULL}, {0}};
	const char *folder = bench_arguments(
		argc, argv, "bench_index FOLDER [--json FILE] [--repeats N] [--threads 1|2] [--only tfrecord|tar]",
		&choice.common, options);

	leat_mem_init(&mem, SIZE_MAX);
	bench_print_head(stdout);
	for (size_t f = 0; f < sizeof formats / sizeof *formats; f++) {
		for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
			struct set set = {.format = &formats[f], .length = lengths[i]};

			if (choice.only && strcmp(choice.only, formats[f].name) != 0)
				continue;
			set.per_file = file_sizes[i] / (lengths[i] + formats[f].header);
			make_set(&set, folder);
			for (set.threads = 1; set.threads <= MAX_THREADS; set.threads++)
				if (!choice.threads || choice.threads == set.threads)
					bench_set(&set, &choice);
		}
	}
	bench_save(choice.results, choice.common.json);
	return 0;
}
