/* cache.c - how fast samples come out of cache(memory), against copying as many bytes
 *
 *	bench_cache FOLDER [--json FILE] [--repeats N] [--size BYTES] [--threads N]
 *
 * The least that delivering samples from memory takes is to copy them into a batch. The
 * yardstick does that and nothing else: its threads take batches in turns and copy each
 * with one memcpy from where the samples lie one behind the other into a ring of as many
 * buffers as the feed has. `rows` copies each sample by itself, in an order like the feed's.
 * Batches are not looked at, here nor there. */
#include <err.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/rng.h"
#include "bench.h"
#include "format/npy_write.h"
#include "leat.h"

enum { MAX_THREADS = 16, RING = 17 };

static const double target = 0.8;
static const size_t total = (size_t)192 << 20; /* more than any cache of a CPU */

struct shape {
	size_t bytes; /* of a sample */
	size_t batch; /* samples */
	bool ragged;  /* of a length that the feed does not know beforehand */
};

/* ---- data: one array, a row is a sample ---- */

static void
write_array(const char *path, const struct shape *shape)
{
	int64_t dims[] = {(int64_t)(total / shape->bytes), (int64_t)shape->bytes};
	unsigned char *row = bench_alloc(shape->bytes);
	FILE *file = fopen(path, "wb");
	char head[LEAT_NPY_HEAD];
	size_t len = leat_npy_head(head, LEAT_U8, 2, dims, dims[0]);

	if (!file || fwrite(head, 1, len, file) != len)
		err(1, "cannot write %s", path);
	for (int64_t i = 0; i < dims[0]; i++) {
		memset(row, (int)(i & 0xff), shape->bytes);
		if (fwrite(row, 1, shape->bytes, file) != shape->bytes)
			err(1, "cannot write %s", path);
	}
	if (fclose(file) != 0)
		err(1, "cannot write %s", path);
	free(row);
}

/* ---- leat ---- */

struct fed {
	struct leat_feed *feed;
	const char *field;
	uint64_t epochs, batches; /* of an epoch */
	size_t bytes;
};

/* Takes so many batches, of whatever epochs. */
static void
drain(struct fed *fed, uint64_t batches)
{
	uint64_t samples = 0, bytes = 0;
	struct leat_batch *batch;
	struct leat_err why;

	while (batches > 0) {
		enum leat_status status = leat_next(fed->feed, &batch, &why);
		struct leat_tensor x;

		if (status == LEAT_END)
			continue;
		if (status != LEAT_OK)
			errx(1, "%s", why.text);
		leat_batch_field(batch, fed->field, &x, NULL);
		samples += (uint64_t)leat_batch_count(batch);
		bytes += x.bytes;
		leat_release(batch);
		batches--;
	}
	if (bytes != samples * fed->bytes)
		errx(1, "leat missed bytes");
}

/* While others were measured the feed has filled its buffers: these batches are not counted. */
static struct bench_time
run_fed(void *arg)
{
	struct fed *fed = arg;
	struct bench_clock begin;

	drain(fed, RING);
	begin = bench_begin();
	drain(fed, fed->epochs * fed->batches);
	return bench_end(begin);
}

static void
open_fed(struct fed *fed, const char *source, const struct shape *shape, bool shuffled, unsigned threads,
         uint64_t epochs)
{
	struct leat_options options;
	struct leat_err why;
	char *spec;

	if (asprintf(&spec, "%s%s | cache(memory) | batch(%zu) | prefetch(%d)", source, shuffled ? " | shuffle" : "",
	             shape->batch, RING - 1) < 0)
		errx(1, "no memory for a spec");
	leat_options_init(&options);
	options.threads = threads;
	options.memory = (size_t)3 << 30;
	if (leat_open(spec, &options, &fed->feed, &why) != LEAT_OK)
		errx(1, "%s", why.text);
	free(spec);
	fed->field = leat_field_at(fed->feed, 0)->name;
	fed->bytes = shape->bytes;
	fed->epochs = epochs;
	fed->batches = leat_batches(fed->feed);
	drain(fed, fed->batches);
}

/* ---- bare ---- */

struct bare {
	unsigned char *from, *ring;
	size_t bytes, batch, samples, epochs;
	unsigned threads;
	bool rows, shuffled; /* one by one */
	struct leat_perm perm;
	pthread_barrier_t barrier;
	struct bare_thread {
		struct bare *bare;
		unsigned number;
		pthread_t thread;
	} thread[MAX_THREADS];
};

static void
copy_batch(struct bare *bare, size_t first, unsigned char *to)
{
	size_t count = bare->samples - first < bare->batch ? bare->samples - first : bare->batch;

	if (!bare->rows) {
		memcpy(to, bare->from + first * bare->bytes, count * bare->bytes);
		return;
	}
	for (size_t i = 0; i < count; i++) {
		size_t at = bare->shuffled ? (size_t)leat_perm_at(&bare->perm, first + i) : first + i;

		memcpy(to + i * bare->bytes, bare->from + at * bare->bytes, bare->bytes);
	}
}

static void *
bare_body(void *arg)
{
	struct bare_thread *t = arg;
	struct bare *bare = t->bare;
	size_t batches = (bare->samples + bare->batch - 1) / bare->batch, n = 0;

	pthread_barrier_wait(&bare->barrier);
	for (size_t epoch = 0; epoch < bare->epochs; epoch++)
		for (size_t b = 0; b < batches; b++, n++)
			if (n % bare->threads == t->number)
				copy_batch(bare, b * bare->batch, bare->ring + n % RING * bare->batch * bare->bytes);
	return NULL;
}

static struct bench_time
run_bare(void *arg)
{
	struct bare *bare = arg;
	struct bench_clock begin;
	struct bench_time time;

	pthread_barrier_init(&bare->barrier, NULL, bare->threads + 1);
	for (unsigned i = 0; i < bare->threads; i++) {
		bare->thread[i] = (struct bare_thread){.bare = bare, .number = i};
		if (pthread_create(&bare->thread[i].thread, NULL, bare_body, &bare->thread[i]) != 0)
			errx(1, "cannot start a thread");
	}
	begin = bench_begin();
	pthread_barrier_wait(&bare->barrier);
	for (unsigned i = 0; i < bare->threads; i++)
		pthread_join(bare->thread[i].thread, NULL);
	time = bench_end(begin);
	pthread_barrier_destroy(&bare->barrier);
	return time;
}

/* ---- the cases ---- */

static struct leat_mem mem;

/* On the same pages as the feed has. */
static unsigned char *
map(size_t bytes)
{
	unsigned char *p = leat_map(&mem, bytes);

	if (!p)
		err(1, "no memory for %zu bytes", bytes);
	memset(p, 1, bytes);
	return p;
}

struct choice {
	int64_t size;
	int64_t threads;
	struct bench_common common;
	json_t *results;
};

static void
bench_case(const char *source, const struct shape *shape, unsigned threads, bool shuffled, const struct choice *choice)
{
	const uint64_t epochs = 4;
	size_t samples = total / shape->bytes;
	struct bare whole = {.bytes = shape->bytes,
	                     .batch = shape->batch,
	                     .samples = samples,
	                     .epochs = epochs,
	                     .threads = threads},
		    rows;
	struct bench_result result = {.items = (double)(samples * epochs),
	                              .bytes = (double)(samples * epochs * shape->bytes)};
	struct fed fed;
	struct bench_contender contender[] = {
		{"leat", run_fed, &fed}, {"rows", run_bare, &rows}, {"memcpy", run_bare, &whole}};
	char name[64];

	whole.from = map(samples * shape->bytes);
	whole.ring = map(RING * shape->batch * shape->bytes);
	rows = whole;
	rows.rows = true;
	rows.shuffled = shuffled;
	leat_perm_init(&rows.perm, samples, 1, 0, 0);
	open_fed(&fed, source, shape, shuffled, threads, epochs);
	snprintf(name, sizeof name, "%zu %s%s, %u thread%s", shape->bytes, shape->ragged ? "ragged" : "dense",
	         shuffled ? " shuffled" : "", threads, threads == 1 ? "" : "s");
	result.name = name;
	bench_compare(&result, contender, sizeof contender / sizeof *contender, (int)choice->common.repeats);
	bench_print(stdout, &result, target);
	json_array_append_new(choice->results, bench_json(&result, target));
	leat_close(fed.feed);
	leat_unmap(&mem, whole.from, samples * shape->bytes);
	leat_unmap(&mem, whole.ring, RING * shape->batch * shape->bytes);
}

static void
bench_shape(const char *folder, const struct shape *shape, const struct choice *choice)
{
	struct bench_data records = {
		.name = "cached", .length = shape->bytes, .files = 1, .per_file = total / shape->bytes};
	char path[BENCH_PATH], source[BENCH_PATH + 32];

	if (snprintf(path, sizeof path, "%s/cached.npy", folder) >= BENCH_PATH)
		errx(1, "the path of %s is too long", folder);
	if (shape->ragged) {
		bench_data_make(&records, folder);
		bench_data_path(&records, 0, path);
		snprintf(source, sizeof source, "tfrecord('%s', crc=false)", path);
	} else {
		write_array(path, shape);
		snprintf(source, sizeof source, "npy(x='%s')", path);
	}
	for (unsigned threads = 1; threads <= 2; threads++) {
		if (choice->threads && choice->threads != threads)
			continue;
		bench_case(source, shape, threads, false, choice);
		bench_case(source, shape, threads, true, choice);
	}
	unlink(path);
}

int
main(int argc, char **argv)
{
	static const struct shape shapes[] = {
		{1024, 1024, false}, /* rows of numbers */
		{12288, 256, false}, /* 64 x 64 x 3 */
		{150528, 64, false}, /* 224 x 224 x 3 */
		{602112, 64, false}, /* the same as float32 */
		{20000, 64, true},   /* JPEG files */
		{150528, 64, true},
	};
	struct choice choice = {.common = {.repeats = 7}, .results = json_array()};
	const struct bench_option options[] = {{"size", NULL, &choice.size}, {"threads", NULL, &choice.threads}, {0}};
	const char *folder = bench_arguments(
		argc, argv, "bench_cache FOLDER [--json FILE] [--repeats N] [--size BYTES] [--threads 1|2]",
		&choice.common, options);

	if (mkdir(folder, 0777) != 0 && access(folder, W_OK) != 0)
		err(1, "cannot make %s", folder);
	leat_mem_init(&mem, SIZE_MAX);
	bench_print_head(stdout);
	for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
		if (!choice.size || (size_t)choice.size == shapes[i].bytes)
			bench_shape(folder, &shapes[i], &choice);
	bench_save(choice.results, choice.common.json);
	return 0;
}
