/* order.c - see order.h */
#include "step/order.h"

#include <stdlib.h>
#include <string.h>

#include "step/kind.h"

enum { MAX_COMMAND = 16 << 20, MAX_SLICES_JSON = 256 << 20 };

/* ---- input_slices ---- */

/* A slice of an input, and where the name of its entry is. */
struct entry {
	size_t name;
	uint32_t slice;
};

/* 2 before 10. */
static int
by_name(const void *a, const void *b, void *names)
{
	const char *text = names;

	return strverscmp(text + ((const struct entry *)a)->name, text + ((const struct entry *)b)->name);
}

static void
add_entry(struct leat_str *json, const struct leat_input *input, uint32_t slice, const char *name)
{
	const struct leat_slices *slices = &input->step->slices;

	leat_str_add(json, "{\"entry\":");
	leat_str_add_json(json, name);
	leat_str_add(json, ",\"slice\":{");
	for (size_t i = 0; i < slices->variables; i++) {
		leat_str_add(json, i > 0 ? "," : "");
		leat_str_add_json(json, slices->variable[i].name);
		leat_str_add(json, ":");
		leat_str_add_json(json, leat_slice_value(slices, slice, i));
	}
	leat_str_add(json, "}}");
}

/* In the order of names: that of values in leat.yaml is not in the key, so a command must not see it. */
static void
add_entries(struct leat_str *json, const struct leat_input *input, struct leat_mem *mem)
{
	struct entry *entry = leat_alloc_array(mem, input->slices, sizeof(*entry));
	struct leat_str names;

	leat_str_init(&names, mem, MAX_SLICES_JSON);
	for (size_t k = 0; entry != NULL && k < input->slices; k++) {
		entry[k] = (struct entry){names.len, input->slice[k]};
		if (input->use != NULL) {
			leat_slice_entry(&input->step->slices, input->slice[k], input->use, &names);
			leat_str_add(&names, input->step->suffix);
		}
		leat_str_addn(&names, "", 1);
	}
	json->failed |= entry == NULL || names.failed;
	if (!json->failed)
		qsort_r(entry, input->slices, sizeof(*entry), by_name, names.text);
	for (size_t k = 0; !json->failed && k < input->slices; k++) {
		leat_str_add(json, k > 0 ? "," : "");
		add_entry(json, input, entry[k].slice, names.text + entry[k].name);
	}
	leat_str_free(&names);
	leat_free(mem, entry);
}

static enum leat_status
describe_slices(struct leat_order *order, const struct leat_action *action, struct leat_err *err)
{
	struct leat_str json;
	const char *separator = "";

	leat_str_init(&json, order->mem, MAX_SLICES_JSON);
	leat_str_add(&json, "{");
	for (size_t i = 0; i < action->inputs; i++) {
		const struct leat_input *input = &action->input[i];

		if (input->step == NULL || input->slices == 0)
			continue;
		leat_str_add(&json, separator);
		leat_str_add_json(&json, input->name);
		leat_str_add(&json, ":[");
		add_entries(&json, input, order->mem);
		leat_str_add(&json, "]");
		separator = ",";
	}
	leat_str_add(&json, "}");
	order->input_slices = json.failed ? NULL : leat_text_keep(&order->text, leat_str_text(&json), json.len);
	leat_str_free(&json);
	return order->input_slices == NULL ? leat_fail_mem(err, order->mem, 0, "the slices of an input") : LEAT_OK;
}

/* ---- the other parts ---- */

static enum leat_status
write_command(struct leat_order *order, const struct leat_action *action, struct leat_err *err)
{
	const struct leat_step *step = action->step;
	struct leat_str command;
	enum leat_status status;

	order->command = step->text;
	if (step->kind->command == NULL)
		return LEAT_OK;
	leat_str_init(&command, order->mem, MAX_COMMAND);
	status = step->kind->command(step, &command, err);
	if (status == LEAT_OK) {
		order->command =
			command.failed ? NULL : leat_text_keep(&order->text, leat_str_text(&command), command.len);
		if (order->command == NULL)
			status = leat_fail_mem(err, order->mem, command.len, "a command");
	}
	leat_str_free(&command);
	return status;
}

static enum leat_status
list_slice(struct leat_order *order, const struct leat_action *action, struct leat_err *err)
{
	const struct leat_slices *slices = &action->step->slices;
	struct leat_named *slice = leat_text_array(&order->text, slices->variables + 1, sizeof(*slice));

	if (slice == NULL)
		return leat_fail_mem(err, order->mem, slices->variables * sizeof(*slice), "the values of a slice");
	for (size_t i = 0; i < slices->variables; i++)
		slice[i] = (struct leat_named){slices->variable[i].name, leat_slice_value(slices, action->slice, i)};
	order->slice = slice;
	order->slices = slices->variables;
	return LEAT_OK;
}

/* `env: [NAME]` passes a variable of this process on, `env: {NAME: value}` sets one. */
static enum leat_status
list_env(struct leat_order *order, const struct leat_action *action, struct leat_err *err)
{
	const struct leat_step *step = action->step;
	struct leat_named *env = leat_text_array(&order->text, step->envs + 1, sizeof(*env));

	if (env == NULL)
		return leat_fail_mem(err, order->mem, step->envs * sizeof(*env), "variables of the environment");
	for (size_t i = 0; i < step->envs; i++) {
		const char *value = step->env[i].value == NULL ? getenv(step->env[i].name) : step->env[i].value;

		if (value != NULL)
			env[order->envs++] = (struct leat_named){step->env[i].name, value};
	}
	order->env = env;
	return LEAT_OK;
}

static enum leat_status
list_inputs(struct leat_order *order, const struct leat_action *action, struct leat_err *err)
{
	struct leat_order_input *list = leat_text_array(&order->text, action->inputs + 1, sizeof(*list));

	if (list == NULL)
		return leat_fail_mem(err, order->mem, action->inputs * sizeof(*list), "the inputs of an action");
	for (size_t i = 0; i < action->inputs; i++) {
		const struct leat_input *input = &action->input[i];
		const char *suffix = input->step != NULL && input->use == NULL ? input->step->suffix
		                     : input->suffix != NULL                   ? input->suffix
		                                                               : "";

		list[i] = (struct leat_order_input){.name = input->name,
		                                    .content = input->content,
		                                    .path = input->path,
		                                    .suffix = input->path == NULL ? suffix
		                                                                  : leat_path_extension(input->path)};
	}
	order->input = list;
	order->inputs = action->inputs;
	return LEAT_OK;
}

static enum leat_status
find_code(struct leat_order *order, const struct leat_action *action, struct leat_err *err)
{
	order->snapshot = "";
	if (action->code == NULL)
		return LEAT_OK;
	order->has_code = true;
	order->snapshot = leat_code_snapshot(action->code, err);
	if (order->snapshot == NULL)
		return err == NULL ? LEAT_INTERNAL : err->status;
	order->code = leat_code_content(action->code);
	return LEAT_OK;
}

/* By the stem of the action and the snapshot of the code, so a retry, and the next build after a crash, find the folder
 * again; with other inputs or other code the name differs, and training starts anew. The stem alone does not do: which
 * modules the command imports is known only when it has ended. */
static enum leat_status
name_checkpoint(struct leat_order *order, const struct leat_action *action, struct leat_err *err)
{
	struct leat_key_fields fields = {.mem = order->mem};
	const char *snapshot = strrchr(order->snapshot, '/'); /* ends with the digest, wherever the store is */
	char hex[LEAT_SHA256_HEX] = "";
	struct leat_digest name;
	enum leat_status status;

	if (!order->resume)
		return LEAT_OK;
	status = leat_action_fields(action, &fields, err);
	if (status == LEAT_OK)
		status = leat_key_fields_add(&fields, "snapshot", snapshot == NULL ? order->snapshot : snapshot + 1,
		                             err);
	if (status == LEAT_OK)
		status = leat_key_of(fields.field, fields.count, &name, err);
	if (status == LEAT_OK)
		leat_hex(name.byte, sizeof(name.byte), hex);
	leat_key_fields_clear(&fields);
	leat_free(order->mem, fields.field);
	order->checkpoint = leat_text_keep(&order->text, hex, strlen(hex));
	return status != LEAT_OK || order->checkpoint != NULL ? status
	                                                      : leat_fail_mem(err, order->mem, 65, "a checkpoint");
}

enum leat_status
leat_order_make(struct leat_order *order, const struct leat_action *action, unsigned cpus, struct leat_err *err)
{
	static enum leat_status (*const parts[])(struct leat_order *, const struct leat_action *, struct leat_err *) = {
		write_command, list_slice, list_env, list_inputs, describe_slices, find_code, name_checkpoint,
	};
	const struct leat_step *step = action->step;
	enum leat_status status = LEAT_OK;

	*order = (struct leat_order){.mem = action->project->mem,
	                             .step = step->name,
	                             .suffix = step->suffix,
	                             .feed = step->feed,
	                             .param = step->param,
	                             .params = step->params,
	                             .seed = step->seed,
	                             .memory_bytes = step->memory_bytes,
	                             .timeout_s = step->timeout_s,
	                             .cpus = cpus,
	                             .makes_table = step->kind->table,
	                             .resume = step->resume,
	                             .checkpoint = ""};
	leat_text_init(&order->text, order->mem, NULL);
	for (size_t i = 0; status == LEAT_OK && i < sizeof(parts) / sizeof(*parts); i++)
		status = parts[i](order, action, err);
	if (status != LEAT_OK)
		leat_order_free(order);
	return status;
}

void
leat_order_free(struct leat_order *order)
{
	if (order->mem != NULL)
		leat_text_free(&order->text);
	*order = (struct leat_order){0};
}
