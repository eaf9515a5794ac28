/* read.c - how fast records come from the page cache: `tfrecord | batch(256)` against a bare loop
 *
 *	bench_read FOLDER [--json FILE] [--repeats N] [--data 1k|75k] [--threads 1|2] [--only NAME] [--order NAME]
 *
 * The bare loop is the least that reading TFRecord with its checksums takes: each thread
 * has its share of the files, reads large blocks into one buffer that stays in its cache,
 * walks over the records and sums them where they lie. Nothing leaves the buffer.
 * `bare+copy` also copies the records, one behind the other, into a batch, as whoever wants
 * to use them has to. For shuffled records the bare loop reads each one by itself. */
#include <err.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/rng.h"
#include "bench.h"
#include "format/record.h"
#include "leat.h"

enum { BATCH = 256, MAX_THREADS = 64, MAX_BLOCK = 4 << 20, CALIBRATE = 5 };

static const double target = 0.75;

/* ---- bare ---- */

struct bare {
	const struct bench_data *data;
	const int *fds;
	unsigned threads;
	size_t block;
	bool copy, shuffled;
	pthread_barrier_t barrier;
	struct bare_thread {
		struct bare *bare;
		unsigned number;
		unsigned char *buffer; /* room for the beginning of a record, then the block */
		unsigned char *batch;
		size_t in_batch;
		uint64_t records;
		struct leat_perm perm;
		pthread_t thread;
	} thread[MAX_THREADS];
};

static void
check_record(struct bare_thread *t, const unsigned char *record, size_t length)
{
	const unsigned char *data = record + LEAT_TFRECORD_HEAD;

	if (leat_load32(record + 8) != leat_tfrecord_crc(record, 8) || leat_load64(record) != length ||
	    leat_load32(data + length) != leat_tfrecord_crc(data, length))
		errx(1, "the bare loop found a damaged record");
	if (t->bare->copy) {
		memcpy(t->batch + t->in_batch++ * length, data, length);
		t->in_batch %= BATCH;
	}
	t->records++;
}

static size_t
read_at(int fd, unsigned char *to, size_t bytes, uint64_t offset)
{
	ssize_t got = pread(fd, to, bytes, (off_t)offset);

	if (got < 0)
		err(1, "pread");
	return (size_t)got;
}

/* What a block cuts off goes before the next one, so that all reads are aligned. */
static void
bare_file(struct bare_thread *t, int fd)
{
	size_t length = t->bare->data->length, room = length + BENCH_FRAME;
	unsigned char *block = t->buffer + ((room + 4095) & ~(size_t)4095), *at = block;
	uint64_t offset = 0;
	size_t got;

	while ((got = read_at(fd, block, t->bare->block, offset)) > 0) {
		unsigned char *end = block + got;

		while ((size_t)(end - at) >= room) {
			check_record(t, at, length);
			at += room;
		}
		memcpy(block - (end - at), at, (size_t)(end - at));
		at = block - (end - at);
		offset += got;
	}
}

static void
bare_shuffled(struct bare_thread *t)
{
	const struct bench_data *data = t->bare->data;
	size_t room = data->length + BENCH_FRAME;

	for (uint64_t i = t->number; i < bench_records(data); i += t->bare->threads) {
		uint64_t record = leat_perm_at(&t->perm, i);

		if (read_at(t->bare->fds[record / data->per_file], t->buffer, room, record % data->per_file * room) !=
		    room)
			errx(1, "a file is too short");
		check_record(t, t->buffer, data->length);
	}
}

static void *
bare_body(void *arg)
{
	struct bare_thread *t = arg;

	pthread_barrier_wait(&t->bare->barrier);
	if (t->bare->shuffled) {
		bare_shuffled(t);
		return NULL;
	}
	for (size_t i = t->number; i < t->bare->data->files; i += t->bare->threads)
		bare_file(t, t->bare->fds[i]);
	return NULL;
}

static void
bare_open(struct bare *bare, const struct bench_data *data, const int *fds, unsigned threads, bool copy, bool shuffled)
{
	*bare = (struct bare){.data = data, .fds = fds, .threads = threads, .copy = copy, .shuffled = shuffled};
	bare->block = 1 << 20;
	for (unsigned i = 0; i < threads; i++) {
		struct bare_thread *t = &bare->thread[i];

		t->bare = bare;
		t->number = i;
		t->buffer = bench_alloc(data->length + BENCH_FRAME + 4096 + MAX_BLOCK);
		t->batch = copy ? bench_alloc(BATCH * data->length) : NULL;
		leat_perm_init(&t->perm, bench_records(data), 1, 0, 0);
	}
}

static void
bare_close(struct bare *bare)
{
	for (unsigned i = 0; i < bare->threads; i++) {
		free(bare->thread[i].buffer);
		free(bare->thread[i].batch);
	}
}

static struct bench_time
run_bare(void *arg)
{
	struct bare *bare = arg;
	struct bench_clock begin;
	struct bench_time time;
	uint64_t records = 0;

	pthread_barrier_init(&bare->barrier, NULL, bare->threads + 1);
	for (unsigned i = 0; i < bare->threads; i++) {
		bare->thread[i].records = 0;
		if (pthread_create(&bare->thread[i].thread, NULL, bare_body, &bare->thread[i]) != 0)
			errx(1, "cannot start a thread");
	}
	begin = bench_begin();
	pthread_barrier_wait(&bare->barrier);
	for (unsigned i = 0; i < bare->threads; i++)
		pthread_join(bare->thread[i].thread, NULL);
	time = bench_end(begin);
	pthread_barrier_destroy(&bare->barrier);
	for (unsigned i = 0; i < bare->threads; i++)
		records += bare->thread[i].records;
	if (records != bench_records(bare->data))
		errx(1, "the bare loop missed records");
	return time;
}

/* The size of a block that suits this machine best: the yardstick should be as long as it can be. */
static void
calibrate(struct bare *bare)
{
	static const size_t sizes[] = {64 << 10, 128 << 10, 256 << 10, 512 << 10, 1 << 20, 2 << 20, MAX_BLOCK};
	enum { SIZES = sizeof sizes / sizeof *sizes };
	double time[SIZES][CALIBRATE], best = 1e9;
	size_t chosen = bare->block;

	for (int r = 0; r < CALIBRATE; r++) {
		for (int s = 0; s < SIZES; s++) {
			bare->block = sizes[s];
			time[s][r] = run_bare(bare).wall;
		}
	}
	for (int s = 0; s < SIZES; s++) {
		struct bench_spread spread = bench_spread_of(time[s], CALIBRATE);

		if (spread.median < best) {
			best = spread.median;
			chosen = sizes[s];
		}
	}
	bare->block = chosen;
}

/* ---- leat ---- */

struct fed {
	const struct bench_data *data;
	char *spec;
	unsigned threads;
	bool whole; /* from before open to after close; else the second epoch of many, as the middle of a training is */
};

/* One epoch, and that nothing of it is missing. */
static void
drain(struct leat_feed *feed, const struct bench_data *data)
{
	struct leat_batch *batch;
	struct leat_err why;
	enum leat_status status;
	uint64_t records = 0, bytes = 0;

	while ((status = leat_next(feed, &batch, &why)) == LEAT_OK) {
		struct leat_tensor record;

		leat_batch_field(batch, "record", &record, NULL);
		records += (uint64_t)leat_batch_count(batch);
		bytes += record.bytes;
		leat_release(batch);
	}
	if (status != LEAT_END && status != LEAT_DONE)
		errx(1, "%s", why.text);
	if (records != bench_records(data) || bytes != records * data->length)
		errx(1, "leat missed records");
}

static struct bench_time
run_fed(void *arg)
{
	struct fed *fed = arg;
	struct leat_options options;
	struct leat_feed *feed;
	struct bench_clock begin = bench_begin();
	struct bench_time time;
	struct leat_err why;

	leat_options_init(&options);
	options.threads = fed->threads;
	options.epochs = fed->whole ? 1 : 0;
	options.seed = 1;
	if (leat_open(fed->spec, &options, &feed, &why) != LEAT_OK)
		errx(1, "%s", why.text);
	drain(feed, fed->data);
	if (!fed->whole) {
		begin = bench_begin();
		drain(feed, fed->data);
		time = bench_end(begin);
	}
	leat_close(feed);
	return fed->whole ? bench_end(begin) : time;
}

/* ---- the cases ---- */

struct choice {
	const char *data, *only, *order;
	int64_t threads;
	struct bench_common common;
	json_t *results;
};

static void
compare(const struct bench_data *data, const struct bench_contender *contender, int contenders, unsigned threads,
        bool shuffled, const struct choice *choice)
{
	struct bench_result result = {.items = (double)bench_records(data), .bytes = (double)bench_bytes(data)};
	double wanted = shuffled ? 0 : target;
	struct bench_contender one;
	char name[64];

	snprintf(name, sizeof name, "%s %s, %u thread%s", data->name, shuffled ? "shuffled" : "in order", threads,
	         threads == 1 ? "" : "s");
	result.name = name;
	for (int c = 0; choice->only && c < contenders; c++) {
		if (strcmp(choice->only, contender[c].name) == 0) {
			one = contender[c];
			contender = &one;
			contenders = 1;
			wanted = 0;
		}
	}
	bench_compare(&result, contender, contenders, (int)choice->common.repeats);
	bench_print(stdout, &result, wanted);
	json_array_append_new(choice->results, bench_json(&result, wanted));
}

static void
bench_case(const struct bench_data *data, unsigned threads, bool shuffled, const struct choice *choice)
{
	int *fds = bench_data_open(data);
	struct bare bare, copy;
	struct fed epoch = {.data = data, .threads = threads}, whole;
	struct bench_contender contender[] = {
		{"leat", run_fed, &epoch},
		{"leat whole", run_fed, &whole},
		{"bare+copy", run_bare, &copy},
		{"bare", run_bare, &bare},
	};

	epoch.spec = bench_data_spec(data, shuffled ? "shuffle | batch(256)" : "batch(256)");
	whole = epoch;
	whole.whole = true;
	bare_open(&bare, data, fds, threads, false, shuffled);
	bare_open(&copy, data, fds, threads, true, shuffled);
	if (!shuffled && !choice->only) {
		calibrate(&bare);
		calibrate(&copy);
		printf("(%s, %u threads: blocks of %zu KiB; with the copy, %zu KiB)\n", data->name, threads,
		       bare.block >> 10, copy.block >> 10);
	}
	compare(data, contender, sizeof contender / sizeof *contender, threads, shuffled, choice);
	bare_close(&bare);
	bare_close(&copy);
	bench_data_close(data, fds);
	free(epoch.spec);
}

static void
bench_data_set(const struct bench_data *data, const struct choice *choice)
{
	for (unsigned threads = 1; threads <= 2; threads++) {
		if (choice->threads && choice->threads != threads)
			continue;
		if (!choice->order || strcmp(choice->order, "in") == 0)
			bench_case(data, threads, false, choice);
		if (!choice->order || strcmp(choice->order, "shuffled") == 0)
			bench_case(data, threads, true, choice);
	}
}

int
main(int argc, char **argv)
{
	struct bench_data data[] = {
		{.name = "1k", .length = 1024, .files = 16, .per_file = 32256},
		{.name = "75k", .length = 75000, .files = 16, .per_file = 880},
	};
	struct choice choice = {.common = {.repeats = 9}, .results = json_array()};
	const struct bench_option options[] = {{"data", &choice.data, NULL},
	                                       {"threads", NULL, &choice.threads},
	                                       {"only", &choice.only, NULL},
	                                       {"order", &choice.order, NULL},
	                                       {0}};
	const char *folder = bench_arguments(argc, argv,
	                                     "bench_read FOLDER [--json FILE] [--repeats N] [--data 1k|75k] "
	                                     "[--threads 1|2] [--only NAME] [--order in|shuffled]",
	                                     &choice.common, options);

	bench_print_head(stdout);
	for (size_t i = 0; i < sizeof data / sizeof *data; i++) {
		if (choice.data && strcmp(choice.data, data[i].name) != 0)
			continue;
		bench_data_make(&data[i], folder);
		bench_data_set(&data[i], &choice);
	}
	bench_save(choice.results, choice.common.json);
	return 0;
}
