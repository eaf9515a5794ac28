/* explain.c - leat_explain: how the engine runs a spec, as text and as JSON, see explain.h */
#include "feed/explain.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"

enum { MAX_TEXT = 64 << 20, LABEL = 9, NOTE = 48 };

/* ---- what is said either way ---- */

/* Does it write a field into the batch? */
static bool
is_final(const struct leat_stage *stage)
{
	for (int k = 0; k < stage->fields; k++)
		if (stage->output_slot[stage->field[k].number] >= 0)
			return true;
	return false;
}

/* The first stage whose results are in the batch; later ones work there in place. -1: none. */
static int
first_final(const struct leat_pipeline *p)
{
	for (int s = p->cache ? p->cached : 0; s < p->stages; s++)
		if (is_final(&p->stage[s]))
			return s;
	return -1;
}

/* Bytes of a field in one sample; -1: they vary. */
static int64_t
field_bytes(const struct leat_field *field)
{
	int64_t elements = leat_field_elements(field), size = (int64_t)leat_dtype_size(field->dtype);

	return elements < 0 || elements > INT64_MAX / size ? -1 : elements * size;
}

static int64_t
sample_bytes(const struct leat_schema *schema)
{
	int64_t sum = 0;

	for (int i = 0; i < schema->count; i++) {
		int64_t bytes = field_bytes(&schema->entry[i].field);

		if (bytes < 0 || __builtin_add_overflow(sum, bytes, &sum))
			return -1;
	}
	return sum;
}

static bool
same_field(const struct leat_field *a, const struct leat_field *b)
{
	return a->dtype == b->dtype && a->ndim == b->ndim && strcmp(a->name, b->name) == 0 &&
	       memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof *a->shape) == 0;
}

static bool
has_field(const struct leat_schema *schema, const struct leat_field *field)
{
	int i = leat_schema_find(schema, field->name);

	return i >= 0 && same_field(&schema->entry[i].field, field);
}

/* Samples after plan op `i`. */
static uint64_t
size_after(const struct leat_plan *plan, int i)
{
	return i + 1 < plan->ops ? plan->op[i + 1].in.size : plan->size;
}

/* The op of the spec that a step of the plan was made from. */
static const struct leat_bound *
bound_of(const struct leat_pipeline *p, const struct leat_plan_step *step)
{
	for (int i = 0; i < p->ops; i++)
		if (p->op[i].params == step->params && p->op[i].op == step->op)
			return &p->op[i];
	return NULL;
}

static void
add_call(const struct leat_pipeline *p, const struct leat_plan_step *step, struct leat_str *out)
{
	const struct leat_bound *bound = bound_of(p, step);

	if (bound)
		leat_bound_print(bound, out);
	else
		leat_str_add(out, step->op->name);
}

/* The first sentence of an op's doc, without its full stop. */
static int
sentence(const char *doc)
{
	const char *end = strstr(doc, ". ");
	size_t len = end ? (size_t)(end - doc) : strlen(doc);

	return (int)(len > 0 && doc[len - 1] == '.' ? len - 1 : len);
}

static const char *
cache_place(const struct leat_pipeline *p)
{
	return ((const struct leat_cache_params *)p->cache->params)->where == LEAT_CACHE_DISK ? "disk" : "memory";
}

static uint64_t
cache_bytes(const struct leat_feed *feed)
{
	struct leat_cache_stats stats;

	if (!feed->cache)
		return strcmp(cache_place(&feed->pipeline), "disk") == 0 ? feed->cache_size : 0;
	leat_cache_stats(feed->cache, &stats);
	return stats.capacity;
}

/* What was allocated before the budget was made, without the cache. */
static size_t
source_bytes(const struct leat_feed *feed)
{
	size_t cache = feed->cache ? (size_t)cache_bytes(feed) : 0;

	return feed->budget.used > cache ? feed->budget.used - cache : 0;
}

static size_t
reserved(const struct leat_feed *feed)
{
	struct leat_budget_part part[LEAT_BUDGET_PARTS];
	int parts = leat_budget_parts(&feed->budget, &feed->pipeline, part);
	size_t sum = feed->budget.used;

	for (int i = 0; i < parts; i++)
		sum += (size_t)part[i].count * part[i].each;
	return sum;
}

/* Rows of this rank in the last batch of an epoch. */
static uint64_t
last_batch(const struct leat_feed *feed)
{
	uint64_t batches = leat_batches(feed), first;

	return batches ? leat_batch_samples(feed, batches - 1, &first) : 0;
}

static size_t
file_count(const struct leat_source *source)
{
	return source->file_count ? source->file_count : source->files ? leat_files_count(source->files) : 0;
}

/* ---- text ---- */

/* Begins a line of a section; its label is only on the first one. */
static void
begin_line(struct leat_str *out, const char **label)
{
	leat_str_addf(out, "%-*s", LABEL, *label);
	*label = "";
}

/* Pads the line that began at `begin` to a column. */
static void
pad(struct leat_str *out, size_t begin, size_t column)
{
	size_t used = out->len - begin;

	leat_str_addf(out, "%*s", used < column ? (int)(column - used) : 2, "");
}

static void
text_field(const struct leat_field *field, struct leat_str *out)
{
	size_t begin = out->len;
	char type[160], name[2 * LEAT_MAX_NAME], size[32];
	int64_t bytes = field_bytes(field);

	leat_str_addf(out, "%*s  %s", LABEL, "", leat_show(name, sizeof name, field->name, strlen(field->name)));
	pad(out, begin, LABEL + 18);
	leat_str_add(out, leat_field_format(field, type, sizeof type));
	pad(out, begin, LABEL + NOTE);
	leat_str_addf(out, "%s\n", bytes < 0 ? "varies" : leat_format_size(size, sizeof size, (uint64_t)bytes));
}

/* The fields that are new, or not as they were. */
static void
text_fields(const struct leat_schema *schema, const struct leat_schema *before, struct leat_str *out)
{
	for (int i = 0; i < schema->count; i++)
		if (!before || !has_field(before, &schema->entry[i].field))
			text_field(&schema->entry[i].field, out);
}

static void
text_source(const struct leat_feed *feed, struct leat_str *out)
{
	const struct leat_source *source = &feed->pipeline.source;
	const char *label = "source";
	size_t files = file_count(source);

	begin_line(out, &label);
	leat_str_addf(out, "%s: %" PRIu64 " sample%s", source->kind->name, source->count, leat_plural(source->count));
	if (files)
		leat_str_addf(out, " in %zu file%s", files, leat_plural(files));
	leat_str_add(out, "\n");
	text_fields(&source->schema, NULL, out);
}

static void
text_order(const struct leat_feed *feed, struct leat_str *out)
{
	const struct leat_plan *plan = &feed->pipeline.plan;
	const char *label = "order";

	if (plan->ops == 0) {
		begin_line(out, &label);
		leat_str_add(out, "as stored\n");
	}
	for (int i = 0; i < plan->ops; i++) {
		const struct leat_op *op = plan->op[i].op;

		begin_line(out, &label);
		add_call(&feed->pipeline, &plan->op[i], out);
		leat_str_addf(out, ": %.*s; %" PRIu64 " sample%s\n", sentence(op->doc), op->doc, size_after(plan, i),
		              leat_plural(size_after(plan, i)));
	}
}

struct text_pass {
	struct leat_str *out;
	const char **label;
	int left; /* ops of the stage after this pass */
	bool final;
};

static void
text_pass(void *arg, const struct leat_explained_pass *pass)
{
	struct text_pass *t = arg;
	struct leat_str *out = t->out;
	size_t begin = out->len;
	const char *comma = "";

	begin_line(out, t->label);
	for (int k = 0; k < pass->ops; k++)
		leat_str_addf(out, "%s%s", k ? " + " : "", pass->op[k]->op->name);
	t->left -= pass->ops;
	if (pass->ops > 1 || pass->cropped || pass->reduced || (t->final && t->left == 0))
		pad(out, begin, LABEL + NOTE);
	if (pass->ops > 1) {
		leat_str_add(out, "one pass");
		comma = ", ";
	}
	if (pass->cropped || pass->reduced) {
		leat_str_addf(out, "%sdecodes%s%s", comma, pass->cropped ? " only the crop" : "",
		              pass->reduced ? " at 1/2 to 1/8 size if enough" : "");
		comma = ", ";
	}
	if (t->final && t->left == 0)
		leat_str_addf(out, "%sinto the batch", comma);
	leat_str_add(out, "\n");
}

static void
text_cache(const struct leat_feed *feed, const char **label, struct leat_str *out)
{
	uint64_t bytes = cache_bytes(feed);
	char size[32];

	begin_line(out, label);
	if (bytes == 0)
		leat_str_add(out, "cache: nothing, there is no room for it\n");
	else
		leat_str_addf(out, "cache: the ops above run once per sample; up to %s %s %s\n",
		              leat_format_size(size, sizeof size, bytes),
		              strcmp(cache_place(&feed->pipeline), "disk") == 0 ? "on" : "of",
		              cache_place(&feed->pipeline));
}

static void
text_stages(const struct leat_feed *feed, struct leat_str *out)
{
	const struct leat_pipeline *p = &feed->pipeline;
	const struct leat_schema *before = &p->source.schema;
	const char *label = "stages";
	int final = first_final(p);

	if (p->stages == 0) {
		begin_line(out, &label);
		leat_str_add(out, "samples are copied into the batch unchanged\n");
	}
	for (int s = 0; s < p->stages; s++) {
		struct text_pass t = {out, &label, p->stage[s].ops, s == final};

		if (p->cache && p->cached == s)
			text_cache(feed, &label, out);
		leat_explain_passes(&p->stage[s], text_pass, &t);
		text_fields(&p->stage[s].after, before, out);
		before = &p->stage[s].after;
	}
	if (p->cache && p->cached == p->stages)
		text_cache(feed, &label, out);
	for (int m = 0; m < p->mixes; m++) {
		begin_line(out, &label);
		leat_str_addf(out, "%s, on whole batches\n", p->mix[m]->op->name);
	}
}

static void
text_batches(const struct leat_feed *feed, struct leat_str *out)
{
	uint64_t batches = leat_batches(feed), last = last_batch(feed), rows = (uint64_t)feed->budget.form.rows;
	int64_t each = sample_bytes(&feed->pipeline.schema);
	const char *label = "batches";
	char size[32];

	begin_line(out, &label);
	leat_str_addf(out, "%" PRIu64 " per epoch, of %" PRIu64 " sample%s", batches, rows, leat_plural(rows));
	if (batches && last != rows)
		leat_str_addf(out, ", the last with %" PRIu64 " (tail=%s)", last, leat_tail_name(feed));
	if (feed->options.world > 1)
		leat_str_addf(out, "; rank %d of %d, %" PRId64 " over all", feed->options.rank, feed->options.world,
		              feed->global_rows);
	if (each < 0)
		leat_str_add(out, "; samples vary in size\n");
	else
		leat_str_addf(out, "; %s per sample\n", leat_format_size(size, sizeof size, (uint64_t)each));
}

static void
text_reads(const struct leat_feed *feed, const struct leat_reads *reads, struct leat_str *out)
{
	const char *label = "reads", *about = reads->estimated ? "about " : "";
	const struct leat_budget *b = &feed->budget;
	char size[32];

	begin_line(out, &label);
	leat_format_size(size, sizeof size, reads->bytes);
	if (strcmp(reads->way, "none") == 0)
		leat_str_add(out, "none");
	else if (strcmp(reads->way, "mapped") == 0)
		leat_str_addf(out, "mapped: %s%s per epoch, paged in as needed", about, size);
	else
		leat_str_addf(out, "%s: %s%" PRIu64 " request%s, %s per epoch; up to %d in flight", reads->way, about,
		              reads->requests, leat_plural(reads->requests), size,
		              b->stretches && b->stretches < b->requests ? b->stretches : b->requests);
	if (b->gathers)
		leat_str_add(out, "; gathered while in the page cache");
	if (feed->pipeline.cache && cache_bytes(feed) > 0)
		leat_str_add(out, "; later epochs read only what is not cached");
	leat_str_add(out, "\n");
}

static void
text_threads(const struct leat_feed *feed, struct leat_str *out)
{
	const struct leat_budget *b = &feed->budget;
	const char *label = "threads";

	begin_line(out, &label);
	leat_str_addf(out, "%u for ops", b->threads);
	if (feed->pipeline.in_processes)
		leat_str_addf(out, ", each with a process for functions");
	if (b->io_threads)
		leat_str_addf(out, ", up to %u for reads", b->io_threads);
	leat_str_add(out, "\n");
}

/* What a part of the memory is for. */
static void
add_purpose(const struct leat_feed *feed, const char *what, struct leat_str *out)
{
	const struct leat_budget *b = &feed->budget;

	if (strcmp(what, "batches") == 0 && b->depth == 0)
		leat_str_add(out, "none ahead");
	else if (strcmp(what, "batches") == 0)
		leat_str_addf(out, "up to %d ahead, and those that the program holds", b->depth);
	else if (strcmp(what, "window") == 0)
		leat_str_add(out, "bytes that were read and not used yet");
	else if (strcmp(what, "runs") == 0)
		leat_str_addf(out, "up to %d sample%s each", b->run_rows, leat_plural((unsigned)b->run_rows));
	else if (strcmp(what, "units") == 0)
		leat_str_add(out, "decoded blocks that samples share");
	else if (strcmp(what, "scratch") == 0)
		leat_str_add(out, "intermediate results of each thread");
	else if (strcmp(what, "large samples") == 0)
		leat_str_add(out, "one sample that does not fit a thread's scratch");
	else if (strcmp(what, "processes") == 0 || strcmp(what, "large exchange") == 0)
		leat_str_add(out, "samples on their way to functions and back");
	else if (strcmp(what, "counters") == 0)
		leat_str_add(out, "statistics of each thread");
	else if (strcmp(what, "bad samples") == 0)
		leat_str_add(out, "their list, and small things");
	else if (strcmp(what, "source") == 0)
		leat_str_add(out, "names, indexes, the plan");
	else
		leat_str_add(out, "samples between epochs");
}

static void
text_part(const struct leat_feed *feed, const struct leat_budget_part *part, struct leat_str *out)
{
	size_t begin = out->len;
	char each[32], sum[32];

	leat_str_addf(out, "%*s  %s", LABEL, "", part->what);
	pad(out, begin, LABEL + 18);
	leat_format_size(sum, sizeof sum, part->count * part->each);
	leat_str_addf(out, "%10s", sum);
	if (part->count > 1)
		leat_str_addf(out, " = %" PRIu64 " x %s", part->count, leat_format_size(each, sizeof each, part->each));
	pad(out, begin, LABEL + NOTE);
	add_purpose(feed, part->what, out);
	leat_str_add(out, "\n");
}

/* All parts, with the source and a cache in memory. */
static int
all_parts(const struct leat_feed *feed, struct leat_budget_part part[LEAT_BUDGET_PARTS + 2])
{
	int parts = leat_budget_parts(&feed->budget, &feed->pipeline, part);

	if (feed->cache)
		part[parts++] = (struct leat_budget_part){"cache", 1, (size_t)cache_bytes(feed)};
	part[parts++] = (struct leat_budget_part){"source", 1, source_bytes(feed)};
	return parts;
}

static void
text_memory(const struct leat_feed *feed, struct leat_str *out)
{
	struct leat_budget_part part[LEAT_BUDGET_PARTS + 2];
	int parts = all_parts(feed, part);
	const char *label = "memory";
	char sum[32], limit[32];

	begin_line(out, &label);
	leat_str_addf(out, "%s reserved, of %s%s\n", leat_format_size(sum, sizeof sum, reserved(feed)),
	              leat_format_size(limit, sizeof limit, feed->options.memory),
	              feed->budget.frugal ? " by default" : "");
	for (int i = 0; i < parts; i++)
		text_part(feed, &part[i], out);
}

void
leat_explain_add_text(struct leat_feed *feed, const struct leat_reads *reads, struct leat_str *out)
{
	text_source(feed, out);
	text_order(feed, out);
	text_stages(feed, out);
	text_batches(feed, out);
	text_reads(feed, reads, out);
	text_threads(feed, out);
	text_memory(feed, out);
}

/* ---- JSON ---- */

static void
json_fields(const struct leat_schema *schema, struct leat_str *out)
{
	leat_str_add(out, "[");
	for (int i = 0; i < schema->count; i++) {
		const struct leat_field *field = &schema->entry[i].field;
		int64_t bytes = field_bytes(field);

		leat_str_addf(out, "%s{\"name\": ", i ? ", " : "");
		leat_str_add_json(out, field->name);
		leat_str_addf(out, ", \"dtype\": \"%s\", \"shape\": [", leat_dtype_name(field->dtype));
		for (int d = 0; d < field->ndim; d++) {
			leat_str_add(out, d ? ", " : "");
			if (field->shape[d] < 0)
				leat_str_add(out, "null");
			else
				leat_str_addf(out, "%" PRId64, field->shape[d]);
		}
		if (bytes < 0)
			leat_str_add(out, "], \"bytes\": null}");
		else
			leat_str_addf(out, "], \"bytes\": %" PRId64 "}", bytes);
	}
	leat_str_add(out, "]");
}

static void
json_order(const struct leat_feed *feed, struct leat_str *out)
{
	const struct leat_plan *plan = &feed->pipeline.plan;
	char does[256];

	leat_str_add(out, "\"order\": [");
	for (int i = 0; i < plan->ops; i++) {
		struct leat_str call;

		leat_str_init(&call, out->mem, MAX_TEXT);
		add_call(&feed->pipeline, &plan->op[i], &call);
		leat_str_addf(out, "%s{\"op\": ", i ? ", " : "");
		leat_str_add_json(out, leat_str_text(&call));
		leat_str_free(&call);
		snprintf(does, sizeof does, "%.*s", sentence(plan->op[i].op->doc), plan->op[i].op->doc);
		leat_str_add(out, ", \"does\": ");
		leat_str_add_json(out, does);
		leat_str_addf(out, ", \"samples\": %" PRIu64 "}", size_after(plan, i));
	}
	leat_str_add(out, "],\n ");
}

struct json_pass {
	struct leat_str *out;
	int passes;
};

static void
json_pass(void *arg, const struct leat_explained_pass *pass)
{
	struct json_pass *j = arg;

	leat_str_addf(j->out, "%s{\"ops\": [", j->passes++ ? ", " : "");
	for (int k = 0; k < pass->ops; k++)
		leat_str_addf(j->out, "%s\"%s\"", k ? ", " : "", pass->op[k]->op->name);
	leat_str_addf(j->out, "], \"crop_only\": %s, \"reduced\": %s}", pass->cropped ? "true" : "false",
	              pass->reduced ? "true" : "false");
}

static void
json_stages(const struct leat_feed *feed, struct leat_str *out)
{
	const struct leat_pipeline *p = &feed->pipeline;
	int final = first_final(p);

	leat_str_add(out, "\"stages\": [");
	for (int s = 0; s < p->stages; s++) {
		struct json_pass j = {out, 0};

		leat_str_addf(out, "%s{\"passes\": [", s ? ",\n  " : "\n  ");
		leat_explain_passes(&p->stage[s], json_pass, &j);
		leat_str_addf(out, "], \"cached\": %s, \"into_batch\": %s, \"fields\": ",
		              p->cache && s < p->cached ? "true" : "false", s == final ? "true" : "false");
		json_fields(&p->stage[s].after, out);
		leat_str_add(out, "}");
	}
	leat_str_add(out, "],\n \"on_batches\": [");
	for (int m = 0; m < p->mixes; m++)
		leat_str_addf(out, "%s\"%s\"", m ? ", " : "", p->mix[m]->op->name);
	leat_str_add(out, "],\n ");
	if (p->cache)
		leat_str_addf(out, "\"cache\": {\"where\": \"%s\", \"bytes\": %" PRIu64 "},\n ", cache_place(p),
		              cache_bytes(feed));
}

static void
json_epoch(const struct leat_feed *feed, struct leat_str *out)
{
	int64_t bytes = sample_bytes(&feed->pipeline.schema);

	leat_str_addf(out,
	              "\"epoch\": {\"samples\": %" PRIu64 ", \"batches\": %" PRIu64 ", \"batch_size\": %" PRId64
	              ", \"global_batch_size\": %" PRId64 ", \"last_batch\": %" PRIu64 ", \"tail\": \"%s\", "
	              "\"rank\": %d, \"world\": %d, \"sample_bytes\": ",
	              leat_samples(feed), leat_batches(feed), feed->budget.form.rows, feed->global_rows,
	              last_batch(feed), leat_tail_name(feed), feed->options.rank, feed->options.world);
	if (bytes < 0)
		leat_str_add(out, "null},\n ");
	else
		leat_str_addf(out, "%" PRId64 "},\n ", bytes);
}

static void
json_memory(const struct leat_feed *feed, struct leat_str *out)
{
	struct leat_budget_part part[LEAT_BUDGET_PARTS + 2];
	int parts = all_parts(feed, part);

	leat_str_addf(out, "\"memory\": {\"limit\": %zu, \"default\": %s, \"minimum\": %zu, \"reserved\": %zu, ",
	              feed->options.memory, feed->budget.frugal ? "true" : "false", feed->budget.least, reserved(feed));
	leat_str_addf(out, "\"batches_ahead\": %d, \"window_bytes\": %zu, \"parts\": [", feed->budget.depth,
	              feed->budget.window);
	for (int i = 0; i < parts; i++) {
		leat_str_addf(out, "%s{\"what\": \"%s\", \"count\": %" PRIu64 ", \"each\": %zu, \"for\": ",
		              i ? ",\n  " : "\n  ", part[i].what, part[i].count, part[i].each);
		leat_str_add(out, "\"");
		add_purpose(feed, part[i].what, out); /* plain words: nothing to escape */
		leat_str_add(out, "\"}");
	}
	leat_str_add(out, "]}}\n");
}

void
leat_explain_add_json(struct leat_feed *feed, const struct leat_reads *reads, struct leat_str *out)
{
	const struct leat_source *source = &feed->pipeline.source;
	const struct leat_budget *b = &feed->budget;

	leat_str_add(out, "{\"spec\": ");
	leat_str_add_json(out, feed->pipeline.canonical);
	leat_str_addf(out, ",\n \"source\": {\"name\": \"%s\", \"samples\": %" PRIu64 ", \"files\": %zu, \"fields\": ",
	              source->kind->name, source->count, file_count(source));
	json_fields(&source->schema, out);
	leat_str_add(out, "},\n ");
	json_order(feed, out);
	json_stages(feed, out);
	json_epoch(feed, out);
	leat_str_addf(out,
	              "\"reads\": {\"way\": \"%s\", \"requests\": %" PRIu64 ", \"bytes\": %" PRIu64
	              ", \"estimated\": %s, \"in_flight\": %d, \"stretches\": %d, \"stretch_bytes\": %zu, \"gathers\": "
	              "%s},\n ",
	              reads->way, reads->requests, reads->bytes, reads->estimated ? "true" : "false", b->requests,
	              b->stretches, b->stretches ? b->stretch_bytes : 0, b->gathers ? "true" : "false");
	leat_str_addf(out, "\"threads\": {\"ops\": %u, \"reads\": %u, \"processes\": %u},\n ", b->threads,
	              b->io_threads, feed->pipeline.in_processes ? b->threads : 0);
	json_memory(feed, out);
}

/* ---- the call ---- */

enum leat_status
leat_explain(const char *spec, const struct leat_options *options, bool json, char **text, struct leat_err *err)
{
	struct leat_feed *feed = NULL;
	struct leat_reads reads;
	enum leat_status status;
	struct leat_str out;
	struct leat_mem mem;

	*text = NULL;
	status = leat_feed_open(spec, options, LEAT_BATCH_EXPLAINED, -1, &feed, err);
	if (status == LEAT_OK)
		status = leat_explain_reads(feed, &reads, err);
	if (status == LEAT_OK) {
		leat_mem_init(&mem, SIZE_MAX);
		leat_str_init(&out, &mem, MAX_TEXT);
		if (json)
			leat_explain_add_json(feed, &reads, &out);
		else
			leat_explain_add_text(feed, &reads, &out);
		if (!out.failed)
			*text = strdup(leat_str_text(&out)); /* the caller uses free(), not leat_free */
		leat_str_free(&out);
		if (!*text)
			status = leat_fail(err, LEAT_NOMEM, "out of memory");
	}
	leat_close(feed);
	return status;
}
