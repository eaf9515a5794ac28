/* merge.c - see merge.h
 *
 * The texts are not trusted: what is not of the expected type counts as missing, and what is needed and missing is an
 * error. Counts and times are added up; stages are matched by name, servers by host, epochs by number. */
#include "trace/merge.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/figures.h"

/* A rank is slow if its share of waiting exceeds that of the others by this, or if it has but this much of their rate.
 */
static const double waits_more = 0.05, has_less = 0.9;

static int
compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The median of a figure over all ranks but one. */
static double
median_of_others(const struct leat_rank_figures *rank, size_t count, size_t but,
                 double (*figure)(const struct leat_rank_figures *rank), double *room)
{
	size_t n = 0;

	for (size_t i = 0; i < count; i++)
		if (i != but)
			room[n++] = figure(&rank[i]);
	qsort(room, n, sizeof *room, compare);
	return n % 2 ? room[n / 2] : (room[n / 2 - 1] + room[n / 2]) / 2;
}

static double
wait_share(const struct leat_rank_figures *rank)
{
	return rank->wait_share;
}

static double
rate(const struct leat_rank_figures *rank)
{
	return rank->samples_per_s;
}

int
leat_slow_rank(const struct leat_rank_figures *rank, size_t count)
{
	double *room = count > 1 ? malloc(count * sizeof *room) : NULL;
	size_t waits = 0, slow = 0;
	int found = -1;

	if (!room)
		return -1;
	for (size_t i = 1; i < count; i++) {
		waits = rank[i].wait_share > rank[waits].wait_share ? i : waits;
		slow = rank[i].samples_per_s < rank[slow].samples_per_s ? i : slow;
	}
	if (rank[waits].wait_share > median_of_others(rank, count, waits, wait_share, room) + waits_more)
		found = (int)waits;
	else if (rank[slow].samples_per_s < median_of_others(rank, count, slow, rate, room) * has_less)
		found = (int)slow;
	free(room);
	return found;
}

/* ---- reading ---- */

static double
number(const json_t *object, const char *key)
{
	double value = json_number_value(json_object_get(object, key));

	return isfinite(value) && value > 0 ? value : 0;
}

static const char *
text(const json_t *object, const char *key)
{
	const char *value = json_string_value(json_object_get(object, key));

	return value ? value : "";
}

/* The figures of one rank; its number is 0 in the run of a process that knew of no others. */
static enum leat_status
read_rank(const json_t *run, const char *name, struct leat_rank_figures *rank, struct leat_err *err)
{
	static const char *const needed[] = {"samples", "seconds", "samples_per_s", "wait_share"};

	for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
		if (!json_is_number(json_object_get(run, needed[i])))
			return leat_fail(err, LEAT_DATA, "%s: not the figures of a run: '%s' is missing", name,
			                 needed[i]);
	*rank = (struct leat_rank_figures){
		.rank = number(run, "rank") < LEAT_MERGE_RANKS ? (int)number(run, "rank") : 0,
		.samples = number(run, "samples") < 1e18 ? (uint64_t)number(run, "samples") : 0,
		.seconds = number(run, "seconds"),
		.samples_per_s = number(run, "samples_per_s"),
		.wait_share = number(run, "wait_share"),
	};
	leat_show(rank->limit, sizeof rank->limit, text(run, "limit"), strlen(text(run, "limit")));
	leat_show(rank->sentence, sizeof rank->sentence, text(run, "sentence"), strlen(text(run, "sentence")));
	return LEAT_OK;
}

/* ---- merging; NULLs of a lack of memory are passed on, and show at the end ---- */

/* The entry of a list whose `key` is the same, added if there is none. NULL: the list has `most` others. */
static json_t *
entry(json_t *list, const json_t *like, const char *key, size_t most)
{
	json_t *one, *value = json_object_get(like, key), *added;
	size_t i;

	json_array_foreach(list, i, one) if (json_equal(json_object_get(one, key), value)) return one;
	if (json_array_size(list) >= most)
		return NULL;
	added = json_object();
	json_object_set(added, key, value ? value : json_null());
	json_array_append_new(list, added);
	return added;
}

static void
add_up(json_t *to, const json_t *from, const char *const *keys)
{
	for (; *keys; keys++) {
		double sum = number(to, *keys) + number(from, *keys);

		if (isfinite(sum))
			json_object_set_new(to, *keys,
			                    sum == rint(sum) && sum < 1e15 ? json_integer((json_int_t)sum)
			                                                   : json_real(sum));
	}
}

static void
set_number(json_t *to, const char *key, double value)
{
	json_object_set_new(to, key, isfinite(value) ? json_real(value) : json_null());
}

/* Adds the buckets of a histogram, which stay in order. */
static void
merge_histogram(json_t *to, const json_t *from)
{
	json_t *bucket, *known;
	size_t i, k = 0;

	json_array_foreach(json_object_get(from, "histogram"), i, bucket)
	{
		json_t *list = json_object_get(to, "histogram");
		double end = json_number_value(json_array_get(bucket, 0));
		json_int_t count = json_integer_value(json_array_get(bucket, 1));

		if (!isfinite(end) || count <= 0 || count > (json_int_t)1 << 48 ||
		    json_array_size(list) > LEAT_HISTOGRAM_BUCKETS)
			continue;
		for (k = 0; (known = json_array_get(list, k)) && json_number_value(json_array_get(known, 0)) < end; k++)
			;
		if (known && json_number_value(json_array_get(known, 0)) == end) {
			count += json_integer_value(json_array_get(known, 1));
			if (count <= (json_int_t)1 << 62)
				json_array_set_new(known, 1, json_integer(count));
		} else
			json_array_insert_new(list, k, json_pack("[f, I]", end, count));
	}
}

/* The upper end of the bucket in which a share of the values ends. */
static double
quantile(const json_t *distribution, double share)
{
	const json_t *list = json_object_get(distribution, "histogram");
	double all = number(distribution, "count"), seen = 0, end = 0;
	json_t *bucket;
	size_t i;

	json_array_foreach(list, i, bucket)
	{
		if (seen >= share * all && seen > 0)
			break;
		seen += json_number_value(json_array_get(bucket, 1));
		end = json_number_value(json_array_get(bucket, 0));
	}
	return end < number(distribution, "max") ? end : number(distribution, "max");
}

static void
merge_distribution(json_t *object, const char *key, const json_t *from)
{
	static const char *const sums[] = {"count", NULL};
	json_t *to = json_object_get(object, key);
	double all, count;

	if (!json_is_object(from))
		return;
	if (!to) {
		to = json_object();
		json_object_set_new(object, key, to);
		json_object_set_new(to, "histogram", json_array());
	}
	count = number(to, "count") + number(from, "count");
	all = number(to, "mean") * number(to, "count") + number(from, "mean") * number(from, "count");
	add_up(to, from, sums);
	set_number(to, "mean", count > 0 ? all / count : 0);
	set_number(to, "max", fmax(number(to, "max"), number(from, "max")));
	merge_histogram(to, from);
	set_number(to, "p50", quantile(to, 0.5));
	set_number(to, "p99", quantile(to, 0.99));
}

static void
merge_stages(json_t *to, const json_t *run)
{
	static const char *const sums[] = {"threads", "busy_s", "starved_s", "blocked_s",
	                                   "items",   "bytes",  "errors",    NULL};
	static const char *const copied[] = {"tag", "waits_for", NULL};
	json_t *from;
	size_t i;

	json_array_foreach(json_object_get(run, "stages"), i, from)
	{
		json_t *stage = entry(to, from, "name", 2 * (size_t)LEAT_FIGURE_STAGES);
		double busy, all;

		if (!stage)
			continue;
		add_up(stage, from, sums);
		for (size_t k = 0; copied[k]; k++)
			if (!json_object_get(stage, copied[k]) && json_is_string(json_object_get(from, copied[k])))
				json_object_set(stage, copied[k], json_object_get(from, copied[k]));
		busy = number(stage, "busy_s");
		all = busy + number(stage, "starved_s") + number(stage, "blocked_s");
		set_number(stage, "share", all > 0 ? busy / all : 0);
		/* The ranks work side by side, so their rates add up. */
		set_number(stage, "rate_alone", number(stage, "rate_alone") + number(from, "rate_alone"));
	}
}

/* The ranks go through an epoch together: its time is that of the slowest. */
static void
merge_epochs(json_t *to, const json_t *run)
{
	static const char *const sums[] = {"samples", "wait_s", "all_s", NULL};
	json_t *from;
	size_t i;

	json_array_foreach(json_object_get(run, "epochs"), i, from)
	{
		json_t *epoch = entry(to, from, "epoch", LEAT_FIGURE_EPOCHS);
		json_t *part = json_pack("{s:f, s:f, s:f}", "samples", number(from, "samples"), "wait_s",
		                         number(from, "wait_share") * number(from, "seconds"), "all_s",
		                         number(from, "seconds"));

		if (epoch && part) {
			add_up(epoch, part, sums);
			set_number(epoch, "seconds", fmax(number(epoch, "seconds"), number(from, "seconds")));
			set_number(epoch, "wait_share",
			           number(epoch, "all_s") > 0 ? number(epoch, "wait_s") / number(epoch, "all_s") : 0);
		}
		json_decref(part);
	}
}

static void
merge_endpoints(json_t *to, const json_t *run)
{
	static const char *const sums[] = {"requests", "retries", "hedges", "refused", "failures", "bytes", NULL};
	json_t *from;
	size_t i;

	json_array_foreach(json_object_get(run, "endpoints"), i, from)
	{
		json_t *endpoint = entry(to, from, "host", 4 * (size_t)LEAT_FIGURE_ENDPOINTS);

		if (!endpoint)
			continue;
		add_up(endpoint, from, sums);
		merge_distribution(endpoint, "latency_ms", json_object_get(from, "latency_ms"));
	}
}

static void
merge_one(json_t *merged, const json_t *run)
{
	static const char *const sums[] = {"samples", "batches", "mb_per_s", "bad_count", NULL};

	add_up(merged, run, sums);
	set_number(merged, "seconds", fmax(number(merged, "seconds"), number(run, "seconds")));
	set_number(merged, "first_batch_ms", fmax(number(merged, "first_batch_ms"), number(run, "first_batch_ms")));
	merge_distribution(merged, "batch_ms", json_object_get(run, "batch_ms"));
	merge_epochs(json_object_get(merged, "epochs"), run);
	merge_stages(json_object_get(merged, "stages"), run);
	merge_endpoints(json_object_get(merged, "endpoints"), run);
}

/* ---- the result ---- */

static void
add_ranks(json_t *merged, const struct leat_rank_figures *rank, size_t count, int slow)
{
	json_t *list = json_array();

	for (size_t i = 0; i < count; i++)
		json_array_append_new(list,
		                      json_pack("{s:i, s:I, s:f, s:f, s:f, s:s, s:b}", "rank", rank[i].rank, "samples",
		                                (json_int_t)rank[i].samples, "seconds", rank[i].seconds,
		                                "samples_per_s", rank[i].samples_per_s, "wait_share",
		                                rank[i].wait_share, "limit", rank[i].limit, "slow", (int)i == slow));
	json_object_set_new(merged, "ranks", list);
}

static void
say(json_t *merged, const struct leat_rank_figures *rank, size_t count, int slow)
{
	char sentence[1024];
	double wait = 0, all = 0, others = 0;

	for (size_t i = 0; i < count; i++) {
		wait += rank[i].wait_share * rank[i].seconds;
		all += rank[i].seconds;
		others += (int)i != slow ? rank[i].wait_share / (double)(count > 1 ? count - 1 : 1) : 0;
	}
	set_number(merged, "wait_share", all > 0 ? wait / all : 0);
	set_number(merged, "samples_per_s",
	           number(merged, "seconds") > 0 ? number(merged, "samples") / number(merged, "seconds") : 0);
	if (slow < 0)
		snprintf(sentence, sizeof sentence, "no rank is much slower than the others; rank %d: %s", rank[0].rank,
		         rank[0].sentence);
	else
		snprintf(sentence, sizeof sentence,
		         "rank %d is the slow one, limited by %s: it waited %.0f %% of the time, the others %.0f %%. "
		         "There, %s",
		         rank[slow].rank, rank[slow].limit, 100 * rank[slow].wait_share, 100 * others,
		         rank[slow].sentence);
	json_object_set_new(merged, "sentence", json_string(sentence));
	json_object_set_new(merged, "limit", json_string(rank[slow < 0 ? 0 : slow].limit));
	if (slow >= 0)
		json_object_set_new(merged, "slow_rank", json_integer(rank[slow].rank));
	else
		json_object_set_new(merged, "slow_rank", json_null());
}

static void
drop_helpers(json_t *merged)
{
	json_t *epoch;
	size_t i;

	json_array_foreach(json_object_get(merged, "epochs"), i, epoch)
	{
		json_object_del(epoch, "wait_s");
		json_object_del(epoch, "all_s");
	}
}

static enum leat_status
load(const char *text_of_run, const char *name, json_t **run, struct leat_err *err)
{
	json_error_t why;

	*run = json_loads(text_of_run, 0, &why);
	if (!*run || !json_is_object(*run))
		return leat_fail(err, LEAT_DATA, "%s: not the figures of a run: %s", name,
		                 *run ? "it is not a JSON object" : why.text);
	return LEAT_OK;
}

enum leat_status
leat_merge_runs(const char *const *json, const char *const *names, size_t count, struct leat_str *out,
                struct leat_err *err)
{
	struct leat_rank_figures *rank;
	enum leat_status status = LEAT_OK;
	char *dumped = NULL;
	json_t *merged;
	int slow;

	if (count == 0 || count > LEAT_MERGE_RANKS)
		return leat_fail(err, LEAT_INVALID, "between 1 and %d runs can be merged, not %zu", LEAT_MERGE_RANKS,
		                 count);
	rank = calloc(count, sizeof *rank);
	merged = json_pack("{s:I, s:[], s:[], s:[]}", "world", (json_int_t)count, "epochs", "stages", "endpoints");
	if (!rank || !merged)
		status = leat_fail(err, LEAT_NOMEM, "no memory for the figures of %zu ranks", count);
	for (size_t i = 0; i < count && status == LEAT_OK; i++) {
		const char *name = names ? names[i] : "a run";
		json_t *run = NULL;

		status = load(json[i], name, &run, err);
		if (status == LEAT_OK)
			status = read_rank(run, name, &rank[i], err);
		if (status == LEAT_OK)
			merge_one(merged, run);
		json_decref(run);
	}
	if (status == LEAT_OK) {
		slow = leat_slow_rank(rank, count);
		add_ranks(merged, rank, count, slow);
		say(merged, rank, count, slow);
		drop_helpers(merged);
		dumped = json_dumps(merged, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
		if (!dumped)
			status = leat_fail(err, LEAT_NOMEM, "no memory for the figures of %zu ranks", count);
		else
			leat_str_add(out, dumped);
	}
	free(dumped);
	json_decref(merged);
	free(rank);
	return status;
}

enum leat_status
leat_stats_merge(const char *const *json, size_t count, char **merged, struct leat_err *err)
{
	enum leat_status status;
	struct leat_mem mem;
	struct leat_str out;

	leat_err_clear(err);
	*merged = NULL;
	leat_mem_init(&mem, SIZE_MAX);
	leat_str_init(&out, &mem, (size_t)1 << 30);
	status = leat_merge_runs(json, NULL, count, &out, err);
	if (status == LEAT_OK)
		*merged = out.failed ? NULL : strdup(leat_str_text(&out));
	if (status == LEAT_OK && !*merged)
		status = leat_fail(err, LEAT_NOMEM, "no memory for the merged figures");
	leat_str_free(&out);
	return status;
}
