/* compare.c - /api/compare/RUN/RUN: params and metrics of the actions of two runs, step by step
 *
 * Of a sliced step all slices have the same params, so those of one are shown; metrics that are numbers are summed up
 * over its slices: mean, least and most. */
#include <jansson.h>
#include <string.h>
#include <unistd.h>

#include "board/runs.h"
#include "board/tally.h"
#include "cas/index.h"

enum { MOST_PER_STEP = 400 };

struct side {
	struct leat_board *board;
	struct leat_cas *cas;
	json_t *steps; /* by name */
	bool failed;   /* out of memory */
};

static void
set(struct side *side, json_t *object, const char *name, json_t *value_take)
{
	side->failed = json_object_set_new(object, name, value_take) != 0 || side->failed;
}

/* The object of this name in `object`, made if it is not there. */
static json_t *
object_in(struct side *side, json_t *object, const char *name)
{
	if (!json_object_get(object, name))
		set(side, object, name, json_object());
	return json_object_get(object, name);
}

static double
number_in(const json_t *object, const char *name, double otherwise)
{
	const json_t *value = json_object_get(object, name);

	return value ? json_number_value(value) : otherwise;
}

static void
add_number(struct side *side, json_t *sum, double value)
{
	double least = number_in(sum, "min", value), most = number_in(sum, "max", value);

	set(side, sum, "n", json_real(number_in(sum, "n", 0) + 1));
	set(side, sum, "sum", json_real(number_in(sum, "sum", 0) + value));
	set(side, sum, "min", json_real(least < value ? least : value));
	set(side, sum, "max", json_real(most > value ? most : value));
}

static void
add_metrics(struct side *side, json_t *step, const char *metrics)
{
	json_t *all = json_loads(metrics, 0, NULL), *value;
	const char *name;

	json_object_foreach(all, name, value)
	{
		json_t *sum = object_in(side, object_in(side, step, "metrics"), name);

		if (json_is_number(value))
			add_number(side, sum, json_number_value(value));
		else
			set(side, sum, "text", json_incref(value));
	}
	json_decref(all);
}

/* Those of the first slice: what belongs to a slice alone is left out. */
static void
add_fields(struct side *side, json_t *step, const struct leat_manifest *manifest)
{
	json_t *fields = object_in(side, step, "fields");

	for (size_t i = 0; i < manifest->fields; i++) {
		const struct leat_key_field *field = &manifest->field[i];

		if (strncmp(field->name, "slice.", 6) != 0 &&
		    !(*manifest->slice && strncmp(field->name, "input.", 6) == 0))
			set(side, fields, field->name, json_string(field->value));
	}
}

static void
add_action(struct side *side, json_t *step, const struct leat_digest *key)
{
	struct leat_manifest *manifest;

	if (leat_cas_manifest(side->cas, key, &manifest, NULL) != LEAT_OK)
		return; /* evicted since */
	if (!json_object_get(step, "fields")) {
		add_fields(side, step, manifest);
		set(side, step, "number", json_integer((json_int_t)manifest->number));
	}
	set(side, step, "counted", json_real(number_in(step, "counted", 0) + 1));
	set(side, step, "seconds", json_real(number_in(step, "seconds", 0) + manifest->seconds));
	add_metrics(side, step, manifest->metrics);
	leat_manifest_free(manifest, side->board->mem);
}

/* Called for each line of the log: those with a key made something, or found it. */
static void
add_line(void *arg, const struct leat_tally *tally)
{
	struct side *side = arg;
	json_t *line = tally->last ? json_loads(tally->last, 0, NULL) : NULL, *step;
	const char *name = json_string_value(json_object_get(line, "step"));
	const char *hex = json_string_value(json_object_get(line, "key"));
	const char *event = json_string_value(json_object_get(line, "event"));
	struct leat_digest key;

	if (name && hex && leat_digest_parse(hex, &key)) {
		step = object_in(side, side->steps, name);
		set(side, step, "actions", json_real(number_in(step, "actions", 0) + 1));
		if (event && strcmp(event, "cached") == 0)
			set(side, step, "reused", json_real(number_in(step, "reused", 0) + 1));
		if (number_in(step, "actions", 0) <= MOST_PER_STEP)
			add_action(side, step, &key);
	}
	json_decref(line);
}

static int
append(const char *text, size_t len, void *out)
{
	leat_str_addn(out, text, len);
	return 0;
}

/* Steps of which results were reused: several at once are one line of the log, which names no keys. */
static void
add_reused(const struct leat_tally *tally, struct leat_str *json)
{
	size_t listed = 0;

	leat_str_add(json, ",\"reused\":{");
	for (size_t i = 0; i < tally->steps; i++) {
		if (!tally->step[i].cached)
			continue;
		leat_str_add(json, listed++ ? "," : "");
		leat_str_add_json(json, tally->step[i].name);
		leat_str_addf(json, ":%llu", (unsigned long long)tally->step[i].cached);
	}
	leat_str_add(json, "}");
}

/* Appends one run: {"run":..., "steps":{"decode":{"actions":..., "counted":..., "fields":{...}, "metrics":{...}}},
 * "reused":{"epochs":3}}. Metrics are those of the first `counted` actions. */
static enum leat_status
add_side(struct leat_board *board, const char *run, struct leat_str *json, struct leat_err *err)
{
	struct side side = {.board = board};
	struct leat_tally tally;
	char name[LEAT_BOARD_WORD];
	uint64_t at = 0;
	bool alive;
	int fd;
	enum leat_status status = leat_board_open_run(board, run, name, &side.cas, &fd, err);

	if (status != LEAT_OK)
		return status;
	leat_tally_init(&tally, &board->answers);
	alive = leat_run_is_alive(side.cas, name);
	side.steps = json_object();
	status = leat_tally_read(&tally, fd, &at, SIZE_MAX / 2, add_line, &side, err);
	leat_str_add(json, "{\"run\":");
	leat_str_add_json(json, name);
	leat_str_addf(json, ",\"alive\":%s,\"begin\":%s,\"end\":%s,\"steps\":", alive ? "true" : "false",
	              tally.begin ? tally.begin : "null", tally.end ? tally.end : "null");
	if (side.failed || !side.steps || json_dump_callback(side.steps, append, json, JSON_COMPACT) != 0)
		json->failed = true;
	add_reused(&tally, json);
	leat_str_add(json, "}");
	json_decref(side.steps);
	leat_tally_free(&tally);
	close(fd);
	return status;
}

enum leat_status
leat_board_compare(struct leat_board *board, const struct leat_board_request *request, struct leat_str *json,
                   struct leat_err *err)
{
	enum leat_status status;

	leat_str_add(json, "{\"a\":");
	status = add_side(board, request->word[0], json, err);
	leat_str_add(json, ",\"b\":");
	if (status == LEAT_OK)
		status = add_side(board, request->word[1], json, err);
	leat_str_add(json, "}");
	return status;
}
