/* shards.c - how fast rows become TFRecord shards, against a bare loop that copies and writes the same bytes
 *
 *	bench_shards FOLDER [--json FILE] [--repeats N] [--rows N]
 *
 * The bare loop has the finished records in memory; it copies each one to a buffer and writes the buffer when it is
 * full. Leat has columns: it makes the records (`rows`), and puts them into the order of a permutation before they are
 * written (`shuffled`). Nothing is synced, and what is in the files is compared once. Reading Parquet is not part of
 *it. */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/rng.h"
#include "bench.h"
#include "format/example_rows.h"
#include "format/record.h"
#include "format/reorder.h"

enum { BUFFER = 256 * 1024, INTS = 4, FLOATS = 4, TEXT = 24, MAX_ROW = 1024 };

static const double target = 0.75;

static struct leat_mem mem;
static char path[BENCH_PATH];

/* The columns, and what the bare loop writes: the same rows in order, and by the permutation. */
static struct {
	size_t rows, total;
	int64_t *ints[INTS];
	float *floats[FLOATS];
	char (*text)[TEXT];
	struct leat_row_feature of_ints[INTS], of_floats[FLOATS], of_text;
	unsigned char *bytes;
	size_t *offset; /* rows + 1 */
	size_t *order;  /* row at each position */
} table;

static void
must(enum leat_status status, const struct leat_err *why)
{
	if (status != LEAT_OK)
		errx(1, "%s", why->text);
}

static unsigned char *
put_row(size_t row, unsigned char *to)
{
	for (int i = 0; i < INTS; i++)
		to = leat_row_put_int64(&table.of_ints[i], to, table.ints[i][row]);
	for (int i = 0; i < FLOATS; i++)
		to = leat_row_put_float(&table.of_floats[i], to, table.floats[i][row]);
	return leat_row_put_bytes(&table.of_text, to, table.text[row], strlen(table.text[row]));
}

static unsigned char *
make_row(size_t row, unsigned char *buffer, size_t *len)
{
	return leat_row_end(buffer, put_row(row, leat_row_begin(buffer)), len);
}

/* ---- data ---- */

static void
make_columns(void)
{
	struct leat_rng rng;
	struct leat_err why;
	char name[16];

	leat_rng_init(&rng, 1, 0, 0, 0);
	table.text = bench_alloc(table.rows * sizeof(*table.text));
	must(leat_row_feature_init(&table.of_text, "name", LEAT_FEATURE_BYTES, &mem, &why), &why);
	for (int i = 0; i < INTS; i++) {
		snprintf(name, sizeof name, "count_%d", i);
		must(leat_row_feature_init(&table.of_ints[i], name, LEAT_FEATURE_INT64, &mem, &why), &why);
		snprintf(name, sizeof name, "amount_%d", i);
		must(leat_row_feature_init(&table.of_floats[i], name, LEAT_FEATURE_FLOAT, &mem, &why), &why);
		table.ints[i] = bench_alloc(table.rows * sizeof(int64_t));
		table.floats[i] = bench_alloc(table.rows * sizeof(float));
	}
	for (size_t row = 0; row < table.rows; row++) {
		for (int i = 0; i < INTS; i++) {
			table.ints[i][row] = (int64_t)leat_rng_below(&rng, (uint64_t)1 << (10 * i + 1));
			table.floats[i][row] = leat_rng_uniform(&rng, 0, 1);
		}
		snprintf(table.text[row], TEXT, "name %llu", (unsigned long long)leat_rng_below(&rng, 1000000));
	}
}

static void
make_records(void)
{
	unsigned char buffer[MAX_ROW];
	struct leat_perm perm;
	size_t len;

	table.offset = bench_alloc((table.rows + 1) * sizeof(size_t));
	table.order = bench_alloc(table.rows * sizeof(size_t));
	table.bytes = bench_alloc(table.rows * MAX_ROW / 4);
	leat_perm_init(&perm, table.rows, 1, 0, 0);
	for (size_t row = 0; row < table.rows; row++) {
		unsigned char *record = make_row(row, buffer, &len);

		if (table.total + len > table.rows * MAX_ROW / 4)
			errx(1, "records are longer than expected");
		memcpy(table.bytes + table.total, record, len);
		table.offset[row] = table.total;
		table.total += len;
		table.order[leat_perm_at(&perm, row)] = row;
	}
	table.offset[table.rows] = table.total;
}

/* ---- bare ---- */

struct bare {
	int fd;
	size_t used;
	unsigned char buffer[BUFFER];
};

static void
write_out(struct bare *bare)
{
	if (write(bare->fd, bare->buffer, bare->used) != (ssize_t)bare->used)
		err(1, "cannot write %s", path);
	bare->used = 0;
}

static struct bench_time
run_bare(void *arg)
{
	const size_t *order = arg ? table.order : NULL;
	static struct bare bare;
	struct bench_clock begin;

	unlink(path);
	begin = bench_begin();
	bare.fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	for (size_t i = 0; i < table.rows; i++) {
		size_t row = order ? order[i] : i, len = table.offset[row + 1] - table.offset[row];

		if (len > BUFFER - bare.used)
			write_out(&bare);
		memcpy(bare.buffer + bare.used, table.bytes + table.offset[row], len);
		bare.used += len;
	}
	write_out(&bare);
	close(bare.fd);
	return bench_end(begin);
}

/* ---- Leat ---- */

struct shard {
	struct leat_writer *out;
	size_t used;
	unsigned char buffer[BUFFER + MAX_ROW];
};

/* Whole buffers, as `leat shards` has it: smaller pieces would be copied once more. */
static enum leat_status
write_buffer(struct shard *shard, struct leat_err *why)
{
	enum leat_status status = leat_write(shard->out, shard->buffer, BUFFER, why);

	shard->used -= BUFFER;
	memcpy(shard->buffer, shard->buffer + BUFFER, shard->used);
	return status;
}

static enum leat_status
add_record(void *arg, const void *record, size_t len, struct leat_err *why)
{
	struct shard *shard = arg;

	memcpy(shard->buffer + shard->used, record, len);
	shard->used += len;
	return shard->used < BUFFER ? LEAT_OK : write_buffer(shard, why);
}

static void
shuffle(struct shard *shard)
{
	struct leat_reorder_options options = {.count = table.rows,
	                                       .groups = 1,
	                                       .bytes = table.total,
	                                       .memory = (size_t)1 << 40,
	                                       .read_memory = 64 << 20,
	                                       .threads = 1,
	                                       .folder = "/tmp",
	                                       .mem = &mem};
	enum { CHUNK = 2048 };
	uint64_t position[CHUNK];
	unsigned char buffer[MAX_ROW];
	struct leat_reorder *reorder;
	struct leat_perm perm;
	struct leat_err why;
	size_t len;

	must(leat_reorder_open(&reorder, &options, &why), &why);
	leat_perm_init(&perm, table.rows, 1, 0, 0);
	for (size_t row = 0; row < table.rows; row++) {
		unsigned char *record = make_row(row, buffer, &len);

		if (row % CHUNK == 0) {
			for (size_t i = 0; i < CHUNK; i++)
				position[i] = row + i < table.rows ? row + i : 0;
			leat_perm_many(&perm, position, CHUNK);
		}
		must(leat_reorder_add(reorder, position[row % CHUNK], record, len, &why), &why);
	}
	must(leat_reorder_read(reorder, 0, add_record, shard, &why), &why);
	leat_reorder_close(reorder);
}

static struct bench_time
run_leat(void *arg)
{
	static struct shard shard;
	struct leat_stores stores;
	struct bench_clock begin;
	struct leat_err why;
	size_t digits = 1;

	unlink(path);
	begin = bench_begin();
	shard.used = 0;
	leat_stores_init(&stores, &mem);
	must(leat_write_begin(&shard.out, &stores, path, &why), &why);
	if (arg)
		shuffle(&shard);
	for (size_t row = 0; !arg && row < table.rows; row++) {
		unsigned char *record = shard.buffer + shard.used;

		shard.used =
			(size_t)(leat_row_end_at(record, put_row(row, leat_row_begin_at(record, digits)), &digits) -
		                 shard.buffer);
		if (shard.used >= BUFFER)
			must(write_buffer(&shard, &why), &why);
	}
	must(leat_write(shard.out, shard.buffer, shard.used, &why), &why);
	must(leat_write_commit(shard.out, NULL, 0, &why), &why);
	leat_stores_close(&stores);
	return bench_end(begin);
}

/* ---- all of it ---- */

static uint32_t
checksum(void)
{
	unsigned char *buffer = bench_alloc(BUFFER);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint32_t crc = 0;
	ssize_t n;

	while ((n = read(fd, buffer, BUFFER)) > 0)
		crc = leat_crc32c(crc, buffer, (size_t)n);
	close(fd);
	free(buffer);
	return crc;
}

static void
check_same(void *shuffled)
{
	uint32_t bare;

	run_bare(shuffled);
	bare = checksum();
	run_leat(shuffled);
	if (checksum() != bare)
		errx(1, "the files differ");
}

int
main(int argc, char **argv)
{
	static char yes[] = "shuffled";
	struct bench_common common = {.repeats = 9};
	int64_t rows = 1000000;
	const struct bench_option options[] = {{"rows", NULL, &rows}, {0}};
	const char *folder = bench_arguments(argc, argv, "bench_shards FOLDER [--json FILE] [--repeats N] [--rows N]",
	                                     &common, options);
	json_t *json = json_array();

	leat_mem_init(&mem, SIZE_MAX);
	table.rows = (size_t)rows;
	if (mkdir(folder, 0777) != 0 && errno != EEXIST)
		err(1, "cannot make %s", folder);
	snprintf(path, sizeof path, "%s/shard.tfrecord", folder);
	make_columns();
	make_records();
	bench_print_head(stdout);
	for (int i = 0; i < 2; i++) {
		void *shuffled = i ? yes : NULL;
		const struct bench_contender contenders[] = {{"leat", run_leat, shuffled},
		                                             {"bare", run_bare, shuffled}};
		struct bench_result result = {
			.name = i ? "shuffled" : "rows", .items = (double)table.rows, .bytes = (double)table.total};

		check_same(shuffled);
		bench_compare(&result, contenders, 2, (int)common.repeats);
		bench_print(stdout, &result, target);
		json_array_append_new(json, bench_json(&result, target));
	}
	bench_save(json, common.json);
	unlink(path);
	return 0;
}
