/* describe.c - list every source and op with its options, from the tables that the build collects */
#include "feed/describe.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "format/source.h"
#include "op/op.h"
#include "trace/stats.h"

enum { MAX_DESCRIPTION = 4 << 20 };

/* Accepted by every op on one field; handled by the engine, not by the ops. */
static const struct leat_opt field_option = {
	.name = "field",
	.type = LEAT_OPT_STRINGS,
	.def = "[]",
	.doc = "field or fields to work on; [] means image, or else the only field that fits",
	.flags = LEAT_OPT_NAMED,
};

static const char *
kind_name(enum leat_op_kind kind)
{
	switch (kind) {
	case LEAT_OP_DECODE:
		return "decode";
	case LEAT_OP_GEOMETRY:
		return "geometry";
	case LEAT_OP_POINTWISE:
		return "pointwise";
	case LEAT_OP_STATISTICS:
		return "statistics";
	case LEAT_OP_COLOR:
		return "color";
	case LEAT_OP_FIELDS:
		return "fields";
	case LEAT_OP_CONVERT:
		return "convert";
	case LEAT_OP_PLAN:
		return "plan";
	case LEAT_OP_BATCH:
		return "batch";
	case LEAT_OP_MIX:
		return "mix";
	case LEAT_OP_CACHE:
		return "cache";
	case LEAT_OP_HINT:
		return "hint";
	}
	return "unknown";
}

static void
add_options(struct leat_item *item, const struct leat_opt *opts, bool has_field)
{
	size_t n = 0;

	for (; opts && opts->type != LEAT_OPT_NONE && n < LEAT_MAX_OPTS; opts++)
		item->opts[n++] = *opts;
	if (has_field)
		item->opts[n] = field_option;
}

bool
leat_item_at(size_t i, struct leat_item *item)
{
	size_t sources = 0;
	const struct leat_op *op = NULL;

	memset(item, 0, sizeof(*item));
	while (leat_sources[sources])
		sources++;
	if (i < sources) {
		const struct leat_source_kind *source = leat_sources[i];

		item->name = source->name;
		item->doc = source->doc;
		item->example = source->example;
		item->kind = "source";
		item->version = source->version;
		item->free_form = source->parse != NULL;
		add_options(item, source->opts, false);
		return true;
	}
	for (size_t k = 0; k <= i - sources; k++)
		if (!(op = leat_ops[k]))
			return false;
	item->name = op->name;
	item->doc = op->doc;
	item->example = op->example;
	item->kind = kind_name(op->kind);
	item->wants = op->on_field.wants;
	item->version = op->version;
	item->random = op->random;
	item->free_form = op->parse != NULL;
	add_options(item, op->opts, leat_op_is_on_field(op));
	return true;
}

static void
add_member(struct leat_str *out, const char *name, const char *value)
{
	leat_str_addf(out, ",\"%s\":", name);
	if (value)
		leat_str_add_json(out, value);
	else
		leat_str_add(out, "null");
}

static void
add_item(const struct leat_item *item, struct leat_str *out)
{
	leat_str_add(out, "{\"name\":");
	leat_str_add_json(out, item->name);
	add_member(out, "kind", item->kind);
	add_member(out, "doc", item->doc);
	add_member(out, "example", item->example);
	add_member(out, "wants", item->wants);
	leat_str_addf(out, ",\"version\":%d,\"random\":%s,\"free_form\":%s,\"options\":", item->version,
	              item->random ? "true" : "false", item->free_form ? "true" : "false");
	leat_opts_json(item->opts, out);
	leat_str_add(out, "}");
}

static void
add_stats(struct leat_str *out)
{
	for (const struct leat_stat *s = leat_stat_list; s->name; s++) {
		leat_str_addf(out, "%s{\"name\":\"%s\"", s == leat_stat_list ? "\n" : ",\n", s->name);
		add_member(out, "unit", s->unit);
		add_member(out, "doc", s->doc);
		leat_str_add(out, "}");
	}
}

char *
leat_describe(void)
{
	struct leat_item item;
	struct leat_mem mem;
	struct leat_str out;
	char *text = NULL;

	leat_mem_init(&mem, SIZE_MAX);
	leat_str_init(&out, &mem, MAX_DESCRIPTION);
	leat_str_addf(&out, "{\"version\":\"%s\",\"items\":[", leat_version());
	for (size_t i = 0; leat_item_at(i, &item); i++) {
		leat_str_add(&out, i ? ",\n" : "\n");
		add_item(&item, &out);
	}
	leat_str_add(&out, "\n],\"stats\":[");
	add_stats(&out);
	leat_str_add(&out, "\n]}\n");
	if (!out.failed)
		text = strdup(leat_str_text(&out)); /* the caller uses free(), not leat_free */
	leat_str_free(&out);
	return text;
}
