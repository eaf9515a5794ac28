/* tfds_split.c - splits of TFDS datasets, and slices of them
 *
 *	train   train[:80%]   train[-100:]   train[25%:75%]+test[:1000]   train[2shard:4shard]   all
 *
 * Grammar and arithmetic are those of TFDS, so that "train[:80%]" selects the same samples. */
#include "format/tfds.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/names.h"
#include "format/catalog.h"

enum { MAX_SPLITS = 10000, MAX_SHARDS = 1000000 };

#define MAX_SAMPLES ((uint64_t)1 << 53) /* so that a double holds percentages of it exactly enough */

void
leat_tfds_splits_free(struct leat_tfds_splits *splits)
{
	for (size_t i = 0; i < splits->count; i++)
		leat_free(splits->mem, splits->split[i].length);
	if (splits->mem)
		leat_free(splits->mem, splits->split);
	*splits = (struct leat_tfds_splits){0};
}

static enum leat_status
read_split(struct leat_tfds_splits *splits, const json_t *json, struct leat_err *err)
{
	struct leat_tfds_split *split = &splits->split[splits->count];
	const json_t *lengths = json_object_get(json, "shardLengths");
	size_t shards = json_array_size(lengths);

	*split = (struct leat_tfds_split){
		.name = leat_json_text(json, "name", NULL),
		.template = leat_json_text(json, "filepathTemplate", NULL),
		.shards = shards,
	};
	if (!split->name)
		return leat_fail(err, LEAT_DATA, "dataset_info.json has a split without a name");
	if (shards > MAX_SHARDS)
		return leat_fail(err, LEAT_DATA, "dataset_info.json: split '%.80s' has %zu shards", split->name,
		                 shards);
	split->length = leat_alloc_array(splits->mem, shards, sizeof(*split->length));
	if (!split->length)
		return leat_fail_mem(err, splits->mem, shards * sizeof(*split->length), "the list of shards");
	splits->count++; /* from here on, leat_tfds_splits_free frees it */
	for (size_t i = 0; i < shards; i++) {
		if (!leat_json_count(json_array_get(lengths, i), MAX_SAMPLES - split->samples, &split->length[i]))
			return leat_fail(err, LEAT_DATA,
			                 "dataset_info.json: split '%.80s' has a shard without a valid length",
			                 split->name);
		split->samples += split->length[i];
	}
	return LEAT_OK;
}

enum leat_status
leat_tfds_splits_read(struct leat_tfds_splits *splits, const json_t *info, struct leat_mem *mem, struct leat_err *err)
{
	const json_t *list = json_object_get(info, "splits");
	size_t count = json_array_size(list);
	enum leat_status status = LEAT_OK;

	*splits = (struct leat_tfds_splits){.mem = mem};
	if (count == 0 || count > MAX_SPLITS)
		return leat_fail(err, LEAT_DATA, "dataset_info.json lists no splits");
	splits->split = leat_alloc_array(mem, count, sizeof(*splits->split));
	if (!splits->split)
		return leat_fail_mem(err, mem, count * sizeof(*splits->split), "the list of splits");
	for (size_t i = 0; i < count && status == LEAT_OK; i++)
		status = read_split(splits, json_array_get(list, i), err);
	return status;
}

/* ---- parts ---- */

void
leat_tfds_parts_free(struct leat_tfds_parts *parts)
{
	if (parts->mem)
		leat_free(parts->mem, parts->part);
	*parts = (struct leat_tfds_parts){0};
}

static enum leat_status
add_part(struct leat_tfds_parts *parts, size_t split, uint64_t from, uint64_t to, struct leat_err *err)
{
	enum leat_status status =
		LEAT_GROW(parts->mem, parts->part, parts->cap, parts->count + 1, SIZE_MAX, "the parts of a split", err);

	if (status == LEAT_OK)
		parts->part[parts->count++] = (struct leat_tfds_part){split, from, to};
	return status;
}

enum unit { NONE, SAMPLES, PERCENT, SHARDS };

/* One side of a slice. */
struct bound {
	bool given;
	enum unit unit; /* as written; NONE: not given */
	bool whole;
	double value;
};

/* Parses a bound such as "-12.5%" and moves past it. False: invalid. */
static bool
parse_bound(const char **text, struct bound *bound)
{
	bool negative = **text == '-';
	double scale = 0;
	size_t digits = 0;

	*bound = (struct bound){.whole = true};
	*text += negative;
	for (; isdigit((unsigned char)**text) || **text == '_' || **text == '.'; (*text)++) {
		if (**text == '_')
			continue;
		if (**text == '.') {
			if (scale > 0)
				return false;
			scale = 1;
			bound->whole = false;
			continue;
		}
		digits++;
		scale *= 10;
		bound->value = bound->value * 10 + (**text - '0');
	}
	bound->given = digits > 0;
	if (!bound->given)
		return !negative && bound->whole;
	if (scale > 1)
		bound->value /= scale;
	if (negative)
		bound->value = -bound->value;
	if (**text == '%') {
		bound->unit = PERCENT;
		(*text)++;
	} else if (strncmp(*text, "shard", 5) == 0) {
		bound->unit = SHARDS;
		*text += 5;
	}
	return digits <= 15;
}

/* Samples in the first `shards` shards; negative numbers count from the end. */
static double
samples_of_shards(const struct leat_tfds_split *split, double shards)
{
	uint64_t sum = 0;

	if (shards < 0)
		shards += (double)split->shards;
	for (size_t i = 0; i < split->shards && (double)i < shards; i++)
		sum += split->length[i];
	return (double)sum;
}

/* A bound in samples; it may be negative or past the end. */
static double
place_of(const struct bound *bound, enum unit unit, const struct leat_tfds_split *split, bool is_end)
{
	double count = (double)split->samples, value = bound->value;

	if (!bound->given)
		return is_end ? count : 0;
	if (unit == PERCENT)
		return rint(value * count / 100.0);
	if (unit == SHARDS) {
		/* An end of 0 means after the last, as in TFDS. */
		if (is_end && value <= 0)
			value += (double)split->shards;
		return samples_of_shards(split, value);
	}
	return value;
}

static enum leat_status
fail_syntax(const char *text, size_t len, struct leat_err *err)
{
	return leat_fail(
		err, LEAT_SPEC,
		"'%.*s' is not a split; write NAME, NAME[from:to], NAME[from%%:to%%] or NAME[from shard:to shard], "
		"joined with +",
		(int)(len < 200 ? len : 200), text);
}

/* Parses "[from:to]" or "[3shard]", up to the end of the term. */
static enum leat_status
parse_slice(const char *term, size_t len, const char *slice, const struct leat_tfds_split *split, double *from,
            double *to, struct leat_err *err)
{
	struct bound begin = {.given = false}, end = {.given = false};
	const char *at = slice + 1;
	enum unit unit;
	bool good = parse_bound(&at, &begin);

	if (good && *at == ':') {
		at++;
		good = parse_bound(&at, &end) && (begin.given || end.given);
	} else if (good) {
		good = begin.given && begin.unit == SHARDS && begin.whole; /* one shard */
		end = begin;
		end.value += 1;
	}
	unit = begin.unit != NONE ? begin.unit : end.unit != NONE ? end.unit : SAMPLES;
	if (!good || at[0] != ']' || at + 1 != term + len || (unit != PERCENT && !(begin.whole && end.whole)))
		return fail_syntax(term, len, err);
	if (unit == PERCENT && (fabs(begin.value) > 100 || fabs(end.value) > 100))
		return leat_fail(err, LEAT_SPEC, "'%.*s': percentages must be between -100 and 100", (int)len, term);
	*from = place_of(&begin, unit, split, false);
	*to = place_of(&end, unit, split, true);
	return LEAT_OK;
}

static enum leat_status
fail_unknown(const char *name, size_t len, const struct leat_tfds_splits *splits, struct leat_err *err)
{
	struct leat_unknown unknown = {.what = "split"};
	const char *names[64];
	char text[100];

	for (; unknown.count < splits->count && unknown.count < sizeof(names) / sizeof(names[0]); unknown.count++)
		names[unknown.count] = splits->split[unknown.count].name;
	unknown.name = leat_show(text, sizeof(text), name, len);
	unknown.known = names;
	return leat_fail_unknown(err, LEAT_SPEC, &unknown);
}

static enum leat_status
choose_term(struct leat_tfds_parts *parts, const char *term, size_t len, const struct leat_tfds_splits *splits,
            struct leat_err *err)
{
	const char *slice = memchr(term, '[', len);
	size_t name = slice ? (size_t)(slice - term) : len, i = 0;
	const struct leat_tfds_split *split;
	enum leat_status status = LEAT_OK;
	double from = 0, to, count;

	if (name == 3 && memcmp(term, "all", 3) == 0 && !slice) {
		for (i = 0; i < splits->count && status == LEAT_OK; i++)
			status = add_part(parts, i, 0, splits->split[i].samples, err);
		return status;
	}
	while (i < splits->count &&
	       (strlen(splits->split[i].name) != name || memcmp(splits->split[i].name, term, name) != 0))
		i++;
	if (name == 0)
		return fail_syntax(term, len, err);
	if (i == splits->count)
		return fail_unknown(term, name, splits, err);
	split = &splits->split[i];
	to = count = (double)split->samples;
	if (slice)
		status = parse_slice(term, len, slice, split, &from, &to, err);
	if (status != LEAT_OK)
		return status;
	if (fabs(from) > count || fabs(to) > count)
		return leat_fail(err, LEAT_SPEC, "'%.*s' goes beyond the %llu samples of the split", (int)len, term,
		                 (unsigned long long)split->samples);
	from = from < 0 ? from + count : from;
	to = to < 0 ? to + count : to;
	return add_part(parts, i, (uint64_t)from, to > from ? (uint64_t)to : (uint64_t)from, err);
}

enum leat_status
leat_tfds_choose(struct leat_tfds_parts *parts, const char *text, const struct leat_tfds_splits *splits,
                 struct leat_mem *mem, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	*parts = (struct leat_tfds_parts){.mem = mem};
	while (status == LEAT_OK) {
		size_t len = strcspn(text, "+"), begin = 0, end = len;

		while (begin < end && isspace((unsigned char)text[begin]))
			begin++;
		while (end > begin && isspace((unsigned char)text[end - 1]))
			end--;
		status = choose_term(parts, text + begin, end - begin, splits, err);
		if (!text[len])
			break;
		text += len + 1;
	}
	return status;
}
