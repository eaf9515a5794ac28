/* order_json.c - orders as JSON, for the machines that run them
 *
 * Texts are UTF-8: what is not, such as the name of a file in another encoding, cannot be sent. Stateless; any thread.
 */
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "base/utf8.h"
#include "step/order.h"

enum { MAX_ENTRIES = 1000000 };

/* ---- writing ---- */

static void
add_text(struct leat_str *json, const char *name, const char *text)
{
	leat_str_addf(json, ",\"%s\":", name);
	leat_str_add_json(json, text);
}

static void
add_content(struct leat_str *json, const char *name, const struct leat_content *content)
{
	char text[LEAT_CONTENT_TEXT];

	add_text(json, name, leat_content_text(content, text));
}

static void
add_named(struct leat_str *json, const char *name, const struct leat_named *named, size_t count)
{
	leat_str_addf(json, ",\"%s\":[", name);
	for (size_t i = 0; i < count; i++) {
		leat_str_add(json, i > 0 ? ",[" : "[");
		leat_str_add_json(json, named[i].name);
		leat_str_add(json, ",");
		leat_str_add_json(json, named[i].value);
		leat_str_add(json, "]");
	}
	leat_str_add(json, "]");
}

static void
add_inputs(struct leat_str *json, const struct leat_order *order)
{
	leat_str_add(json, ",\"inputs\":[");
	for (size_t i = 0; i < order->inputs; i++) {
		const struct leat_order_input *input = &order->input[i];

		leat_str_add(json, i > 0 ? ",{\"name\":" : "{\"name\":");
		leat_str_add_json(json, input->name);
		add_text(json, "suffix", input->suffix);
		add_content(json, "content", &input->content);
		if (input->path != NULL)
			add_text(json, "path", input->path);
		leat_str_add(json, "}");
	}
	leat_str_addf(json, "],\"input_slices\":%s", order->input_slices);
}

void
leat_order_write(const struct leat_order *order, struct leat_str *json)
{
	leat_str_add(json, "{\"order\":1");
	add_text(json, "step", order->step);
	add_text(json, "suffix", order->suffix);
	add_text(json, "command", order->command);
	add_text(json, "feed", order->feed);
	add_named(json, "params", order->param, order->params);
	add_named(json, "slice", order->slice, order->slices);
	add_named(json, "env", order->env, order->envs);
	add_inputs(json, order);
	if (order->has_code)
		add_content(json, "code", &order->code);
	if (order->makes_table)
		add_text(json, "last_id", order->last_id == NULL ? "" : order->last_id);
	if (order->makes_table && order->last_profile != NULL)
		add_text(json, "last_profile", order->last_profile);
	if (order->resume)
		add_text(json, "checkpoint", order->checkpoint);
	leat_str_addf(json, ",\"seed\":\"%" PRIu64 "\",\"memory\":\"%" PRIu64 "\",\"timeout\":%.17g,\"cpus\":%u}",
	              order->seed, order->memory_bytes, order->timeout_s, order->cpus);
}

/* ---- reading ---- */

struct reader {
	struct leat_order *order;
	const json_t *root;
	const char *bad; /* the first member that is missing or wrong */
};

static void
blame(struct reader *r, const char *name)
{
	if (r->bad == NULL)
		r->bad = name;
}

static const char *
text_of(struct reader *r, const json_t *value, const char *name)
{
	const char *text = json_string_value(value), *kept = NULL;

	if (text != NULL && strlen(text) == json_string_length(value))
		kept = leat_text_keep(&r->order->text, text, strlen(text));
	if (kept == NULL)
		blame(r, name);
	return kept == NULL ? "" : kept;
}

static const char *
member(struct reader *r, const char *name)
{
	return text_of(r, json_object_get(r->root, name), name);
}

/* The name of a file or variable: not a path. */
static const char *
plain_name(struct reader *r, const json_t *value, const char *name)
{
	const char *text = text_of(r, value, name);

	if (*text == '\0' || *text == '.' || strpbrk(text, "/=") != NULL)
		blame(r, name);
	return text;
}

static uint64_t
number(struct reader *r, const char *name)
{
	const char *text = member(r, name);
	char *end;
	unsigned long long value = strtoull(text, &end, 10);

	if (*text < '0' || *text > '9' || *end != '\0')
		blame(r, name);
	return value;
}

static struct leat_content
content_of(struct reader *r, const json_t *value, const char *name)
{
	struct leat_content content = {.kind = LEAT_CONTENT_NONE};

	if (leat_content_parse(text_of(r, value, name), &content, NULL) != LEAT_OK)
		blame(r, name);
	return content;
}

/* Room for `count` elements of a list; NULL: it is none, or too long. */
static void *
room_for(struct reader *r, const json_t *list, const char *name, size_t size)
{
	void *room = NULL;

	if (json_is_array(list) && json_array_size(list) <= MAX_ENTRIES)
		room = leat_text_array(&r->order->text, json_array_size(list) + 1, size);
	if (room == NULL)
		blame(r, name);
	return room;
}

static const struct leat_named *
named_of(struct reader *r, const char *name, size_t *count)
{
	const json_t *list = json_object_get(r->root, name), *pair;
	struct leat_named *named = room_for(r, list, name, sizeof(*named));
	size_t i;

	*count = 0;
	if (named == NULL)
		return NULL;
	json_array_foreach(list, i, pair)
	{
		named[i].name = plain_name(r, json_array_get(pair, 0), name);
		named[i].value = text_of(r, json_array_get(pair, 1), name);
	}
	*count = json_array_size(list);
	return named;
}

static void
read_input(struct reader *r, const json_t *value, struct leat_order_input *input)
{
	const json_t *path = json_object_get(value, "path");

	input->name = plain_name(r, json_object_get(value, "name"), "inputs");
	input->suffix = text_of(r, json_object_get(value, "suffix"), "inputs");
	input->content = content_of(r, json_object_get(value, "content"), "inputs");
	if (path != NULL)
		input->path = text_of(r, path, "inputs");
	if (strchr(input->suffix, '/') != NULL || (input->path != NULL && *input->path != '/'))
		blame(r, "inputs");
}

static void
read_inputs(struct reader *r)
{
	const json_t *list = json_object_get(r->root, "inputs"), *value;
	struct leat_order_input *input = room_for(r, list, "inputs", sizeof(*input));
	size_t i;

	if (input == NULL)
		return;
	json_array_foreach(list, i, value) read_input(r, value, &input[i]);
	r->order->input = input;
	r->order->inputs = json_array_size(list);
}

static void
read_slices(struct reader *r)
{
	const json_t *slices = json_object_get(r->root, "input_slices");
	char *text = json_is_object(slices) ? json_dumps(slices, JSON_COMPACT) : NULL;

	r->order->input_slices = text == NULL ? NULL : leat_text_keep(&r->order->text, text, strlen(text));
	if (r->order->input_slices == NULL)
		blame(r, "input_slices");
	free(text);
}

static void
read_code(struct reader *r)
{
	const json_t *code = json_object_get(r->root, "code"), *checkpoint = json_object_get(r->root, "checkpoint");
	struct leat_digest digest;

	r->order->snapshot = "";
	r->order->checkpoint = "";
	if (code != NULL) {
		r->order->has_code = true;
		r->order->code = content_of(r, code, "code");
		r->order->snapshot = NULL;
		if (r->order->code.kind != LEAT_CONTENT_FOLDER)
			blame(r, "code");
	}
	if (checkpoint != NULL) {
		r->order->resume = true;
		r->order->checkpoint = text_of(r, checkpoint, "checkpoint");
		if (!leat_digest_parse(r->order->checkpoint, &digest))
			blame(r, "checkpoint");
	}
}

static void
read_last(struct reader *r)
{
	const json_t *id = json_object_get(r->root, "last_id"), *profile = json_object_get(r->root, "last_profile");

	r->order->makes_table = id != NULL;
	if (id != NULL && profile != NULL) {
		r->order->last_id = text_of(r, id, "last_id");
		r->order->last_profile = text_of(r, profile, "last_profile");
	}
}

static void
read_limits(struct reader *r)
{
	const json_t *cpus = json_object_get(r->root, "cpus"), *timeout = json_object_get(r->root, "timeout");

	r->order->seed = number(r, "seed");
	r->order->memory_bytes = number(r, "memory");
	r->order->timeout_s = json_number_value(timeout);
	r->order->cpus = (unsigned)json_integer_value(cpus);
	if (!json_is_number(timeout) || !isfinite(r->order->timeout_s) || r->order->timeout_s < 0)
		blame(r, "timeout");
	if (!json_is_integer(cpus) || json_integer_value(cpus) < 1 || json_integer_value(cpus) > 65536)
		blame(r, "cpus");
}

static void
read_all(struct reader *r)
{
	struct leat_order *order = r->order;

	if (json_integer_value(json_object_get(r->root, "order")) != 1)
		blame(r, "order");
	order->step = plain_name(r, json_object_get(r->root, "step"), "step");
	order->suffix = member(r, "suffix");
	if (strchr(order->suffix, '/') != NULL)
		blame(r, "suffix");
	order->command = member(r, "command");
	order->feed = member(r, "feed");
	order->param = named_of(r, "params", &order->params);
	order->slice = named_of(r, "slice", &order->slices);
	order->env = named_of(r, "env", &order->envs);
	read_inputs(r);
	read_slices(r);
	read_code(r);
	read_last(r);
	read_limits(r);
}

enum leat_status
leat_order_read(struct leat_order *order, struct leat_mem *mem, const char *json, size_t len, struct leat_err *err)
{
	struct reader r = {.order = order};
	json_error_t why;
	json_t *root = json_loadb(json, len, JSON_REJECT_DUPLICATES, &why);
	enum leat_status status = LEAT_OK;

	*order = (struct leat_order){.mem = mem};
	leat_text_init(&order->text, mem, NULL);
	if (root == NULL)
		return leat_fail(err, LEAT_DATA, "an order is not JSON: %s", why.text);
	r.root = root;
	read_all(&r);
	json_decref(root);
	if (r.bad != NULL) {
		status = leat_fail(err, LEAT_DATA,
		                   "'%s' of an order is missing or wrong; are all machines on the same "
		                   "version of Leat?",
		                   r.bad);
		leat_order_free(order);
	}
	return status;
}
