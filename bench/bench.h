/* bench.h - what the benchmarks share: records to read, repeated measurements, a table and JSON
 *
 * A benchmark is a list of contenders that do the same work. Each repetition runs all of
 * them, one after the other, beginning with another one each time; a ratio is taken within
 * a repetition, so that a machine that slows down for a while slows both of its sides. */
#ifndef LEAT_BENCH_BENCH_H
#define LEAT_BENCH_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

/* ---- data ---- */

enum { BENCH_PATH = 4096, BENCH_FRAME = 16 };

/* Files of records, all of one length, so that anyone can tell where each one lies. */
struct bench_data {
	const char *name;
	size_t length; /* of a record, without its frame */
	size_t files;
	uint64_t per_file;
	char folder[BENCH_PATH];
};

/* Makes the files in folder/name, unless they are there, and has them indexed. Exits when it cannot. */
void bench_data_make(struct bench_data *data, const char *folder);
void bench_data_path(const struct bench_data *data, size_t file, char path[BENCH_PATH]);
/* The spec `tfrecord(all files)`, followed by `rest`; to be freed. */
char *bench_data_spec(const struct bench_data *data, const char *rest);
/* Removes the index files. */
void bench_data_unindex(const struct bench_data *data);
/* Opens all files; *fds is to be freed after bench_data_close. */
int *bench_data_open(const struct bench_data *data);
void bench_data_close(const struct bench_data *data, int *fds);

static inline uint64_t
bench_records(const struct bench_data *data)
{
	return data->files * data->per_file;
}

static inline uint64_t
bench_bytes(const struct bench_data *data)
{
	return bench_records(data) * (data->length + BENCH_FRAME);
}

/* ---- measuring ---- */

struct bench_time {
	double wall, cpu; /* seconds */
};

struct bench_clock {
	uint64_t wall_ns, cpu_ns;
};

struct bench_clock bench_begin(void);
struct bench_time bench_end(struct bench_clock begin);

/* One way to do the work. `run` does it once and says how long it took, which need not be all of it. */
struct bench_contender {
	const char *name;
	struct bench_time (*run)(void *arg);
	void *arg;
};

struct bench_spread {
	double low, median, high; /* quartiles around the median */
};

struct bench_spread bench_spread_of(const double *value, int count);

enum { BENCH_CONTENDERS = 8, BENCH_REPEATS = 99 };

/* The times of all contenders, and their speed as a ratio to that of the last one, the yardstick. */
struct bench_result {
	const char *name;
	double items, bytes; /* that one run reads */
	int contenders, repeats;
	const struct bench_contender *contender;
	struct bench_spread wall[BENCH_CONTENDERS], cpu[BENCH_CONTENDERS];
	struct bench_spread ratio[BENCH_CONTENDERS], cpu_ratio[BENCH_CONTENDERS];
};

/* One round that does not count comes first. */
void bench_compare(struct bench_result *result, const struct bench_contender *contender, int contenders, int repeats);

/* ---- telling ---- */

void bench_print_head(FILE *out);
void bench_print(FILE *out, const struct bench_result *result, double target);
json_t *bench_json(const struct bench_result *result, double target); /* target 0: none */
json_t *bench_spread_json(const struct bench_spread *spread);
void bench_save(json_t *json, const char *path); /* NULL: nowhere; frees json */

/* Where an option's value goes: text to a const char *, a number to an int64_t. */
struct bench_option {
	const char *name;
	const char **text;
	int64_t *number;
};

/* Reads the arguments by the table, which ends with a nameless option; what it does not know, or not exactly one
 * operand, shows the usage and exits. Returns the operand, the folder. --json and --repeats are common to all. */
struct bench_common {
	const char *json;
	int64_t repeats;
};
const char *bench_arguments(int argc, char **argv, const char *usage, struct bench_common *common,
                            const struct bench_option *options);

/* Memory or an end. */
void *bench_alloc(size_t bytes);

#endif
