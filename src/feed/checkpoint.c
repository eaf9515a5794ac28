/* checkpoint.c - save and restore a feed's position as a few hundred bytes of JSON
 *
 * A checkpoint identifies the pipeline and the data by hash, not by location: the feed can
 * resume with the data on another disk and with other threads or ranks. Seeking is arithmetic
 * and reads nothing. A mismatch is refused with an error that says what differs. If only ops differ
 * that do not affect the order of samples, leat_restore_loose resumes at the same sample.
 * Consumer thread. */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "feed/changes.h"
#include "feed/contents.h"
#include "feed/feed.h"

enum { VERSION = 1, MAX_JSON = 1024 * 1024 };

/* ---- save ---- */

enum leat_status
leat_save(const struct leat_feed *feed, char **json, struct leat_err *err)
{
	const struct leat_pipeline *p = &feed->pipeline;
	enum leat_status status = LEAT_OK;
	struct leat_mem mem;
	struct leat_str out;

	leat_err_clear(err);
	*json = NULL;
	if (feed->options.fingerprint == LEAT_FINGERPRINT_FULL)
		status = leat_contents(feed, feed->contents, err);
	if (status != LEAT_OK)
		return status;
	leat_mem_init(&mem, SIZE_MAX); /* the caller owns the text: not counted as the feed's memory */
	leat_str_init(&out, &mem, MAX_JSON);
	leat_str_addf(&out, "{\"leat_checkpoint\": %d, \"pipeline\": \"%s\", \"data\": \"%s\", ", VERSION, p->hash,
	              p->data);
	leat_str_addf(&out, "\"seed\": \"%" PRIu64 "\", \"epoch\": %" PRIu64 ", \"position\": %" PRIu64 ", ",
	              feed->seed, feed->epoch, feed->position);
	if (feed->options.fingerprint == LEAT_FINGERPRINT_FULL)
		leat_str_addf(&out, "\"contents\": \"%s\", ", feed->contents);
	leat_str_addf(&out, "\"files\": %zu, \"samples\": %" PRIu64 ", \"ops\": ", p->source.file_count,
	              p->source.count);
	leat_str_add_json(&out, p->identity);
	leat_str_add(&out, "}");
	*json = out.failed ? NULL : strdup(leat_str_text(&out));
	leat_str_free(&out);
	return *json ? LEAT_OK : leat_fail(err, LEAT_NOMEM, "no memory for a checkpoint");
}

/* ---- restore ---- */

struct checkpoint {
	const char *pipeline, *data, *ops; /* borrowed from the JSON */
	const char *contents;              /* NULL: saved without fingerprint=full */
	uint64_t seed, epoch, position, files, samples;
};

static enum leat_status
get_number(const json_t *root, const char *name, uint64_t *value, struct leat_err *err)
{
	const json_t *item = json_object_get(root, name);

	if (!json_is_integer(item) || json_integer_value(item) < 0)
		return leat_fail(err, LEAT_DATA, "the checkpoint is damaged: \"%s\" is not a non-negative integer",
		                 name);
	*value = (uint64_t)json_integer_value(item);
	return LEAT_OK;
}

static enum leat_status
get_text(const json_t *root, const char *name, const char **value, struct leat_err *err)
{
	*value = json_string_value(json_object_get(root, name));
	return *value ? LEAT_OK : leat_fail(err, LEAT_DATA, "the checkpoint is damaged: it has no string \"%s\"", name);
}

/* A string, because JSON numbers may not hold all 64 bits. */
static enum leat_status
get_seed(const json_t *root, uint64_t *seed, struct leat_err *err)
{
	const char *text;
	char *end;
	enum leat_status status = get_text(root, "seed", &text, err);

	if (status != LEAT_OK)
		return status;
	errno = 0;
	*seed = strtoull(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || errno)
		return leat_fail(err, LEAT_DATA, "the checkpoint is damaged: its seed is not a number");
	return LEAT_OK;
}

static enum leat_status
decode(const json_t *root, struct checkpoint *c, struct leat_err *err)
{
	uint64_t version = 0;
	enum leat_status status;

	if (!json_is_object(root) || !json_object_get(root, "leat_checkpoint"))
		return leat_fail(err, LEAT_DATA, "this is not a leat checkpoint");
	status = get_number(root, "leat_checkpoint", &version, err);
	if (status == LEAT_OK && version != VERSION)
		status = leat_fail(err, LEAT_DATA, "the checkpoint has version %" PRIu64 "; this leat reads version %d",
		                   version, VERSION);
	if (status == LEAT_OK)
		status = get_text(root, "pipeline", &c->pipeline, err);
	if (status == LEAT_OK)
		status = get_text(root, "data", &c->data, err);
	if (status == LEAT_OK)
		status = get_text(root, "ops", &c->ops, err);
	if (status == LEAT_OK)
		status = get_seed(root, &c->seed, err);
	if (status == LEAT_OK && json_object_get(root, "contents"))
		status = get_text(root, "contents", &c->contents, err);
	if (status == LEAT_OK)
		status = get_number(root, "epoch", &c->epoch, err);
	if (status == LEAT_OK)
		status = get_number(root, "position", &c->position, err);
	if (status == LEAT_OK)
		status = get_number(root, "files", &c->files, err);
	return status == LEAT_OK ? get_number(root, "samples", &c->samples, err) : status;
}

/* Length of the first op in `ops`; *rest points after it. */
static size_t
first_op(const char *ops, const char **rest)
{
	static const char bar[] = " | ";
	const char *end = strstr(ops, bar);

	*rest = end ? end + sizeof bar - 1 : ops + strlen(ops);
	return end ? (size_t)(end - ops) : strlen(ops);
}

/* Names the first op that differs. */
static enum leat_status
fail_ops(const char *then, const char *now, struct leat_err *err)
{
	const char *then_rest = then, *now_rest = now;
	size_t then_len, now_len;

	do {
		then = then_rest;
		now = now_rest;
		then_len = first_op(then, &then_rest);
		now_len = first_op(now, &now_rest);
	} while (then_len > 0 && then_len == now_len && memcmp(then, now, now_len) == 0);
	if (then_len == 0 && now_len == 0)
		return leat_fail(err, LEAT_DATA,
		                 "the checkpoint is damaged: its pipeline matches, but its hash does not");
	return leat_fail(err, LEAT_MISMATCH,
	                 "the checkpoint is from another pipeline: it has %.*s where this one has %.*s",
	                 then_len ? (int)(then_len < 300 ? then_len : 300) : 7, then_len ? then : "nothing",
	                 now_len ? (int)(now_len < 300 ? now_len : 300) : 7, now_len ? now : "nothing");
}

static enum leat_status
check_data(const struct leat_feed *feed, const struct checkpoint *c, struct leat_err *err)
{
	const struct leat_pipeline *p = &feed->pipeline;
	size_t files = p->source.file_count;

	if (c->files != files || c->samples != p->source.count)
		return leat_fail(err, LEAT_MISMATCH,
		                 "the checkpoint is from other data: it has %" PRIu64 " samples in %" PRIu64
		                 " files, this feed has %" PRIu64 " in %zu",
		                 c->samples, c->files, p->source.count, files);
	if (strcmp(c->data, p->data) != 0)
		return leat_fail(
			err, LEAT_MISMATCH,
			"the checkpoint is from other data: as many files and samples, but some file names, sizes or "
			"sample counts differ");
	return LEAT_OK;
}

/* A checkpoint that has a hash of all bytes is compared with it, whatever this feed's fingerprint= is. */
static enum leat_status
check_contents(struct leat_feed *feed, const struct checkpoint *c, bool *same, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	*same = true;
	if (c->contents) {
		status = leat_contents(feed, feed->contents, err);
		*same = status == LEAT_OK && strcmp(c->contents, feed->contents) == 0;
	} else if (feed->options.fingerprint == LEAT_FINGERPRINT_FULL) {
		leat_log(&feed->log, LEAT_LOG_WARN,
		         "the checkpoint was saved without fingerprint=full: the contents of files are not compared");
	}
	return status;
}

#define LOOSE "; to resume at the same sample anyway, use strict=False in Python or --force with leat feed"

/* Appends how to resume if only the order of samples has to be the same. */
static enum leat_status
offer_loose(const struct leat_feed *feed, const struct checkpoint *c, struct leat_err *err)
{
	struct leat_err why = *err;
	struct leat_mem mem;
	struct leat_str ignored;

	leat_mem_init(&mem, SIZE_MAX);
	leat_str_init(&ignored, &mem, MAX_JSON);
	if (leat_changes(c->ops, feed->pipeline.identity, &ignored, NULL) == LEAT_OK &&
	    check_data(feed, c, NULL) == LEAT_OK) {
		leat_err_clear(err);
		leat_fail(err, why.status, "%s" LOOSE, why.text);
	}
	leat_str_free(&ignored);
	return why.status;
}

static enum leat_status
check(struct leat_feed *feed, const struct checkpoint *c, struct leat_err *err)
{
	const struct leat_pipeline *p = &feed->pipeline;
	struct leat_err why = {0};
	enum leat_status status = LEAT_OK;
	bool same;

	if (strcmp(c->pipeline, p->hash) != 0) {
		status = fail_ops(c->ops, p->identity, &why);
		if (status == LEAT_MISMATCH)
			offer_loose(feed, c, &why);
		return leat_fail_as(err, &why);
	}
	status = check_data(feed, c, err);
	if (status == LEAT_OK)
		status = check_contents(feed, c, &same, err);
	if (status == LEAT_OK && !same)
		status = leat_fail(err, LEAT_MISMATCH,
		                   "the checkpoint is from other data: the contents of some files have changed" LOOSE);
	return status;
}

/* Only what the order of samples depends on. */
static enum leat_status
check_loose(struct leat_feed *feed, const struct checkpoint *c, struct leat_str *changes, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;
	bool same;

	if (strcmp(c->pipeline, feed->pipeline.hash) != 0)
		status = leat_changes(c->ops, feed->pipeline.identity, changes, err);
	if (status == LEAT_OK)
		status = check_data(feed, c, err);
	if (status == LEAT_OK)
		status = check_contents(feed, c, &same, err);
	if (status == LEAT_OK && !same)
		leat_str_addf(changes, "%sthe contents of some files have changed", changes->len ? "; " : "");
	return status;
}

/* Fails if the position is inside a group of samples that are mixed with each other. */
static enum leat_status
check_group(const struct leat_feed *feed, uint64_t position, struct leat_err *err)
{
	const struct leat_pipeline *p = &feed->pipeline;
	uint64_t row = position % (uint64_t)feed->global_rows, group = (uint64_t)p->row_group;

	if (row % group == 0 || position == p->plan.size)
		return LEAT_OK;
	return leat_fail(err, LEAT_INVALID,
	                 "position %" PRIu64 " separates samples that %s mixes with each other; start at %" PRIu64
	                 " instead",
	                 position, p->mix[0]->op->name, position - row % group);
}

static enum leat_status
check_position(const struct leat_feed *feed, const struct checkpoint *c, struct leat_err *err)
{
	if (c->position > feed->pipeline.plan.size)
		return leat_fail(err, LEAT_DATA,
		                 "the checkpoint is damaged: position %" PRIu64 " of %" PRIu64 " samples", c->position,
		                 feed->pipeline.plan.size);
	return check_group(feed, c->position, err);
}

/* If the engine cannot be restarted, the feed has failed for good. */
static enum leat_status
seek_to(struct leat_feed *feed, const struct checkpoint *c, struct leat_err *err)
{
	leat_engine_stop(feed);
	feed->seed = c->seed;
	feed->bad_of_epoch = 0;
	leat_plan_reseed(&feed->pipeline.plan, c->seed);
	leat_engine_seek(feed, c->epoch, c->position);
	leat_err_clear(&feed->failure);
	if (leat_feed_open_cache(feed, 0, &feed->failure) == LEAT_OK &&
	    leat_engine_start(feed, &feed->failure) == LEAT_OK)
		return LEAT_OK;
	return leat_fail_as(err, &feed->failure);
}

/* `changes` is NULL if nothing may differ. */
static enum leat_status
restore(struct leat_feed *feed, const char *json, struct leat_str *changes, struct leat_err *err)
{
	struct checkpoint c = {0};
	json_error_t why;
	json_t *root;
	enum leat_status status;

	leat_err_clear(err);
	if (strlen(json) > MAX_JSON)
		return leat_fail(err, LEAT_DATA, "this is not a leat checkpoint: it is too long");
	root = json_loads(json, JSON_REJECT_DUPLICATES, &why);
	if (!root)
		return leat_fail(err, LEAT_DATA, "this is not a leat checkpoint: line %d, column %d: %s", why.line,
		                 why.column, why.text);
	status = decode(root, &c, err);
	if (status == LEAT_OK)
		status = changes ? check_loose(feed, &c, changes, err) : check(feed, &c, err);
	if (status == LEAT_OK)
		status = check_position(feed, &c, err);
	if (status == LEAT_OK && changes && changes->failed)
		status = leat_fail(err, LEAT_NOMEM, "no memory to say what has changed");
	if (status == LEAT_OK)
		status = seek_to(feed, &c, err);
	json_decref(root);
	return status;
}

enum leat_status
leat_restore(struct leat_feed *feed, const char *json, struct leat_err *err)
{
	return restore(feed, json, NULL, err);
}

enum leat_status
leat_restore_loose(struct leat_feed *feed, const char *json, char **changes, struct leat_err *err)
{
	struct leat_mem mem;
	struct leat_str text;
	enum leat_status status;

	*changes = NULL;
	leat_mem_init(&mem, SIZE_MAX); /* the caller owns the text */
	leat_str_init(&text, &mem, MAX_JSON);
	status = restore(feed, json, &text, err);
	if (status == LEAT_OK && text.len > 0) {
		*changes = strdup(leat_str_text(&text));
		if (!*changes)
			status = leat_fail(err, LEAT_NOMEM, "no memory to say what has changed");
	}
	leat_str_free(&text);
	return status;
}

enum leat_status
leat_seek(struct leat_feed *feed, uint64_t epoch, uint64_t position, struct leat_err *err)
{
	struct checkpoint c = {.seed = feed->seed, .epoch = epoch, .position = position};
	enum leat_status status;

	leat_err_clear(err);
	if (position > feed->pipeline.plan.size)
		return leat_fail(err, LEAT_INVALID,
		                 "position %" PRIu64 " is outside the epoch, which has %" PRIu64 " samples", position,
		                 feed->pipeline.plan.size);
	status = check_group(feed, position, err);
	return status == LEAT_OK ? seek_to(feed, &c, err) : status;
}
