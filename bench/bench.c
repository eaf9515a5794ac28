/* bench.c - see bench.h */
#include "bench.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/rng.h"
#include "base/str.h"
#include "format/record.h"

void *
bench_alloc(size_t bytes)
{
	void *p = aligned_alloc(4096, (bytes + 4095) & ~(size_t)4095);

	if (!p)
		err(1, "no memory for %zu bytes", bytes);
	memset(p, 0, bytes);
	return p;
}

/* ---- data ---- */

void
bench_data_path(const struct bench_data *data, size_t file, char path[BENCH_PATH])
{
	if (snprintf(path, BENCH_PATH, "%s/%s-%03zu.tfrecord", data->folder, data->name, file) >= BENCH_PATH)
		errx(1, "the path of %s is too long", data->folder);
}

static bool
is_there(const struct bench_data *data, const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && (uint64_t)st.st_size == data->per_file * (data->length + BENCH_FRAME);
}

/* Noise, so that nothing below us can make the bytes less. */
static void
fill(unsigned char *bytes, size_t length, uint64_t key)
{
	for (size_t i = 0; i < length; i += 8) {
		uint64_t word = leat_mix64(key + i);

		memcpy(bytes + i, &word, length - i < 8 ? length - i : 8);
	}
}

static void
write_file(const struct bench_data *data, size_t file, const char *path)
{
	unsigned char *record = bench_alloc(data->length);
	struct leat_tfrecord_writer writer;
	struct leat_mem mem;
	struct leat_err why;

	leat_mem_init(&mem, SIZE_MAX);
	leat_err_clear(&why);
	if (leat_tfrecord_writer_open(&writer, path, &mem, &why) != LEAT_OK)
		errx(1, "%s", why.text);
	fill(record, data->length, file);
	for (uint64_t i = 0; i < data->per_file; i++) {
		leat_store64(record, leat_mix64(file << 32 | i)); /* no two records are the same */
		if (leat_tfrecord_writer_append(&writer, record, data->length, &why) != LEAT_OK)
			errx(1, "%s", why.text);
	}
	if (leat_tfrecord_writer_close(&writer, &why) != LEAT_OK)
		errx(1, "%s", why.text);
	free(record);
}

static void
index_files(const struct bench_data *data)
{
	char *spec = bench_data_spec(data, "batch(1)");
	struct leat_options options;
	struct leat_feed *feed;
	struct leat_err why;

	leat_options_init(&options);
	options.threads = 1;
	if (leat_open(spec, &options, &feed, &why) != LEAT_OK)
		errx(1, "%s", why.text);
	if (leat_samples(feed) != bench_records(data))
		errx(1, "%s holds other records than it should: remove it", data->folder);
	leat_close(feed);
	free(spec);
}

void
bench_data_make(struct bench_data *data, const char *folder)
{
	char path[BENCH_PATH];

	if (snprintf(data->folder, sizeof data->folder, "%s/%s", folder, data->name) >= (int)sizeof data->folder)
		errx(1, "the path of %s is too long", folder);
	if (mkdir(folder, 0777) != 0 && errno != EEXIST)
		err(1, "cannot make %s", folder);
	if (mkdir(data->folder, 0777) != 0 && errno != EEXIST)
		err(1, "cannot make %s", data->folder);
	for (size_t i = 0; i < data->files; i++) {
		bench_data_path(data, i, path);
		if (!is_there(data, path))
			write_file(data, i, path);
	}
	index_files(data);
}

char *
bench_data_spec(const struct bench_data *data, const char *rest)
{
	char *spec;

	if (asprintf(&spec, "tfrecord('%s/%s-*.tfrecord') | %s", data->folder, data->name, rest) < 0)
		errx(1, "no memory for a spec");
	return spec;
}

void
bench_data_unindex(const struct bench_data *data)
{
	char path[BENCH_PATH];

	for (size_t i = 0; i < data->files; i++) {
		if (snprintf(path, sizeof path, "%s/.%s-%03zu.tfrecord.leatidx", data->folder, data->name, i) >=
		    BENCH_PATH)
			errx(1, "the path of %s is too long", data->folder);
		if (unlink(path) != 0)
			err(1, "cannot remove %s", path);
	}
}

int *
bench_data_open(const struct bench_data *data)
{
	int *fds = bench_alloc(data->files * sizeof *fds);
	char path[BENCH_PATH];

	for (size_t i = 0; i < data->files; i++) {
		bench_data_path(data, i, path);
		fds[i] = open(path, O_RDONLY | O_CLOEXEC);
		if (fds[i] < 0)
			err(1, "cannot open %s", path);
	}
	return fds;
}

void
bench_data_close(const struct bench_data *data, int *fds)
{
	for (size_t i = 0; i < data->files; i++)
		close(fds[i]);
	free(fds);
}

/* ---- measuring ---- */

static uint64_t
cpu_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

struct bench_clock
bench_begin(void)
{
	return (struct bench_clock){.cpu_ns = cpu_now(), .wall_ns = leat_now()};
}

struct bench_time
bench_end(struct bench_clock begin)
{
	uint64_t wall = leat_now() - begin.wall_ns, cpu = cpu_now() - begin.cpu_ns;

	return (struct bench_time){.wall = (double)wall * 1e-9, .cpu = (double)cpu * 1e-9};
}

static int
by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static double
quantile(const double *sorted, int count, double q)
{
	double at = q * (count - 1);
	int i = (int)at;

	return i + 1 < count ? sorted[i] + (at - i) * (sorted[i + 1] - sorted[i]) : sorted[i];
}

struct bench_spread
bench_spread_of(const double *value, int count)
{
	double sorted[BENCH_REPEATS];

	memcpy(sorted, value, (size_t)count * sizeof *sorted);
	qsort(sorted, (size_t)count, sizeof *sorted, by_value);
	return (struct bench_spread){
		.low = quantile(sorted, count, 0.25),
		.median = quantile(sorted, count, 0.5),
		.high = quantile(sorted, count, 0.75),
	};
}

static void
summarize(struct bench_result *result, int c, struct bench_time time[][BENCH_REPEATS])
{
	int repeats = result->repeats, last = result->contenders - 1;
	double wall[BENCH_REPEATS], cpu[BENCH_REPEATS], ratio[BENCH_REPEATS], cpu_ratio[BENCH_REPEATS];

	for (int r = 0; r < repeats; r++) {
		wall[r] = time[c][r].wall;
		cpu[r] = time[c][r].cpu;
		ratio[r] = time[last][r].wall / time[c][r].wall;
		cpu_ratio[r] = time[last][r].cpu / time[c][r].cpu;
	}
	result->wall[c] = bench_spread_of(wall, repeats);
	result->cpu[c] = bench_spread_of(cpu, repeats);
	result->ratio[c] = bench_spread_of(ratio, repeats);
	result->cpu_ratio[c] = bench_spread_of(cpu_ratio, repeats);
}

void
bench_compare(struct bench_result *result, const struct bench_contender *contender, int contenders, int repeats)
{
	static struct bench_time time[BENCH_CONTENDERS][BENCH_REPEATS];

	result->contender = contender;
	result->contenders = contenders;
	result->repeats = repeats;
	for (int r = -1; r < repeats; r++) {
		for (int k = 0; k < contenders; k++) {
			int c = (k + r + 1) % contenders;
			struct bench_time t = contender[c].run(contender[c].arg);

			if (r >= 0)
				time[c][r] = t;
		}
	}
	for (int c = 0; c < contenders; c++)
		summarize(result, c, time);
}

/* ---- telling ---- */

void
bench_print_head(FILE *out)
{
	fprintf(out, "%-24s %-12s %9s %8s %10s   %-24s %-9s %s\n", "what", "who", "ms", "GB/s", "records/s",
	        "ratio (quartiles)", "cpu ratio", "target");
}

void
bench_print(FILE *out, const struct bench_result *result, double target)
{
	for (int c = 0; c < result->contenders; c++) {
		double seconds = result->wall[c].median;
		const struct bench_spread *ratio = &result->ratio[c];
		char text[64];

		snprintf(text, sizeof text, "%.2f (%.2f .. %.2f)", ratio->median, ratio->low, ratio->high);
		fprintf(out, "%-24s %-12s %9.1f %8.2f %10.0f   %-24s %-9.2f", result->name, result->contender[c].name,
		        seconds * 1e3, result->bytes / seconds * 1e-9, result->items / seconds, text,
		        result->cpu_ratio[c].median);
		if (c == 0 && target > 0)
			fprintf(out, " %.2f %s", target, ratio->median >= target ? "reached" : "MISSED");
		fputc('\n', out);
	}
	fflush(out);
}

json_t *
bench_spread_json(const struct bench_spread *spread)
{
	return json_pack("{s:f, s:f, s:f}", "low", spread->low, "median", spread->median, "high", spread->high);
}

json_t *
bench_json(const struct bench_result *result, double target)
{
	json_t *json = json_pack("{s:s, s:f, s:f, s:i}", "what", result->name, "records", result->items, "bytes",
	                         result->bytes, "repeats", result->repeats);
	json_t *list = json_array();

	for (int c = 0; c < result->contenders; c++)
		json_array_append_new(list, json_pack("{s:s, s:o, s:o, s:o, s:o}", "who", result->contender[c].name,
		                                      "wall_s", bench_spread_json(&result->wall[c]), "cpu_s",
		                                      bench_spread_json(&result->cpu[c]), "ratio",
		                                      bench_spread_json(&result->ratio[c]), "cpu_ratio",
		                                      bench_spread_json(&result->cpu_ratio[c])));
	json_object_set_new(json, "contenders", list);
	if (target > 0) {
		json_object_set_new(json, "target", json_real(target));
		json_object_set_new(json, "reached", json_boolean(result->ratio[0].median >= target));
	}
	return json;
}

void
bench_save(json_t *json, const char *path)
{
	if (path && json_dump_file(json, path, JSON_INDENT(2) | JSON_REAL_PRECISION(6)) != 0)
		errx(1, "cannot write %s", path);
	json_decref(json);
}

static bool
set_option(const struct bench_option *options, const char *name, const char *value)
{
	for (; options->name; options++) {
		char *end = NULL;

		if (strcmp(options->name, name) != 0)
			continue;
		if (options->text)
			*options->text = value;
		else
			*options->number = strtoll(value, &end, 10);
		return options->text || (end != value && *end == '\0' && *options->number >= 0);
	}
	return false;
}

const char *
bench_arguments(int argc, char **argv, const char *usage, struct bench_common *common,
                const struct bench_option *options)
{
	const struct bench_option both[] = {{"json", &common->json, NULL}, {"repeats", NULL, &common->repeats}, {0}};
	const char *folder = NULL;
	bool good = true;

	for (int i = 1; i < argc && good; i++) {
		if (strncmp(argv[i], "--", 2) == 0 && i + 1 < argc) {
			good = set_option(both, argv[i] + 2, argv[i + 1]) ||
			       set_option(options, argv[i] + 2, argv[i + 1]);
			i++;
		} else {
			good = !folder && argv[i][0] != '-';
			folder = argv[i];
		}
	}
	if (!good || !folder || common->repeats < 1 || common->repeats > BENCH_REPEATS)
		errx(2, "usage: %s", usage);
	return folder;
}
