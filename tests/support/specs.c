/* specs.c - see specs.h */
#include "specs.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "feed/pipeline.h"
#include "op/map.h"
#include "trace.h"

void
specs_init(struct specs *specs, struct sources *sources, uint64_t seed, uint64_t max_size)
{
	memset(specs, 0, sizeof *specs);
	leat_rng_init(&specs->rng, seed, 0, 0, leat_stream("specs", 0));
	specs->sources = sources;
	specs->max_size = max_size;
}

unsigned
specs_below(struct specs *specs, unsigned n)
{
	return (unsigned)leat_rng_below(&specs->rng, n);
}

/* ---- options ---- */

static double
number(struct specs *specs, const struct leat_opt *opt, double low, double high)
{
	low = fmax(low, opt->min);
	high = fmin(high, opt->max);
	return low + (high - low) * (double)leat_rng_uniform(&specs->rng, 0, 1);
}

/* One for all, one for each channel, or from one to another. */
static void
print_floats(struct specs *specs, const struct leat_opt *opt, char *out, size_t cap)
{
	double value[3];

	for (int i = 0; i < 3; i++)
		value[i] = (double)(float)number(specs, opt, -2, 2);
	switch (specs_below(specs, 3)) {
	case 0:
		snprintf(out, cap, "[%.9g]", value[0]);
		break;
	case 1:
		snprintf(out, cap, "[%.9g, %.9g]", fmin(value[0], value[1]), fmax(value[0], value[1]));
		break;
	default:
		snprintf(out, cap, "[%.9g, %.9g, %.9g]", value[0], value[1], value[2]);
	}
}

/* One option as text; false: nothing sensible can be drawn. */
static bool
print_value(struct specs *specs, const struct leat_opt *opt, char *out, size_t cap)
{
	const char *choice;
	size_t len;
	int choices = 0;

	switch (opt->type) {
	case LEAT_OPT_INT:
	case LEAT_OPT_SIZE:
		snprintf(out, cap, "%.0f", floor(number(specs, opt, opt->min, opt->min + 1 + specs_below(specs, 60))));
		return true;
	case LEAT_OPT_FLOAT:
		snprintf(out, cap, "%.9g", (double)(float)number(specs, opt, -2, 2));
		return true;
	case LEAT_OPT_ANGLE:
		snprintf(out, cap, "%.9grad", (double)(float)number(specs, opt, -4, 4));
		return true;
	case LEAT_OPT_FLOATS:
		print_floats(specs, opt, out, cap);
		return true;
	case LEAT_OPT_BOOL:
		snprintf(out, cap, "%s", specs_below(specs, 2) ? "true" : "false");
		return true;
	case LEAT_OPT_ENUM:
		while (leat_opt_choice(opt->choices, choices, &len))
			choices++;
		choice = leat_opt_choice(opt->choices, (int)specs_below(specs, (unsigned)choices), &len);
		snprintf(out, cap, "%.*s", (int)len, choice);
		return true;
	default:
		return false;
	}
}

static bool
print_options(struct specs *specs, const struct leat_opt *opts, char *out, size_t cap)
{
	size_t len = 0;

	out[0] = '\0';
	for (; opts && opts->type != LEAT_OPT_NONE; opts++) {
		struct leat_opt opt = *opts;
		char value[128];

		/* Drawn specs stay as they were, so that their checksums do: options that were added are left out, and
		 * sides that were required still are. */
		if (opt.flags & LEAT_OPT_NEW) {
			if (opt.flags & LEAT_OPT_NAMED)
				continue;
			opt.def = NULL;
			opt.min = 1;
		}
		if (opt.def && specs_below(specs, 2))
			continue;
		if (!print_value(specs, &opt, value, sizeof value)) {
			if (!opt.def)
				return false;
			continue;
		}
		len += (size_t)snprintf(out + len, cap - len, "%s%s=%s", len ? ", " : "", opt.name, value);
	}
	return true;
}

/* Names one or two of the fields that fit; without a name where there is no doubt, mostly. */
static bool
print_field(struct specs *specs, const struct leat_op *op, const struct leat_schema *schema, char *out, size_t cap)
{
	const char *fit[LEAT_MAX_FIELDS];
	unsigned n = 0, k;

	out[0] = '\0';
	if (op->kind == LEAT_OP_DECODE) { /* bytes are bytes to an op, but only these are a file */
		int image = leat_schema_find(schema, "image");

		return image >= 0 && op->on_field.accepts(&schema->entry[image].field, schema->entry[image].layout);
	}
	for (int i = 0; i < schema->count; i++)
		if (op->on_field.accepts(&schema->entry[i].field, schema->entry[i].layout))
			fit[n++] = schema->entry[i].field.name;
	if (n == 0)
		return false;
	if (n == 1 && specs_below(specs, 3))
		return true;
	k = specs_below(specs, n);
	if (n > 1 && specs_below(specs, 3) == 0)
		snprintf(out, cap, "field=[%s, %s]", fit[k], fit[(k + 1) % n]);
	else
		snprintf(out, cap, "field=%s", fit[k]);
	return true;
}

/* ---- ops ---- */

/* Ops behind batch name their fields by options of their own. */
static bool
print_mix(struct specs *specs, const struct leat_op *op, const struct leat_schema *schema, char *out, size_t cap)
{
	size_t len = (size_t)snprintf(out, cap, "%s(", op->name);
	const char *comma = "";

	for (const struct leat_opt *opt = op->opts; opt->type != LEAT_OPT_NONE; opt++) {
		const char *field = schema->entry[specs_below(specs, (unsigned)schema->count)].field.name;
		char value[128];

		if (opt->type != LEAT_OPT_STRING && !print_value(specs, opt, value, sizeof value))
			continue;
		len += (size_t)snprintf(out + len, cap - len, "%s%s=%s", comma, opt->name,
		                        opt->type == LEAT_OPT_STRING ? field : value);
		comma = ", ";
	}
	snprintf(out + len, cap - len, ")");
	return true;
}

/* Numbers and vectors, which nothing but the schema names. */
static bool
print_concat(struct specs *specs, const struct leat_schema *schema, char *out, size_t cap)
{
	const char *fit[LEAT_MAX_FIELDS];
	unsigned n = 0, first, second;

	for (int i = 0; i < schema->count; i++) {
		const struct leat_field *field = &schema->entry[i].field;

		if (field->ndim <= 1 && leat_field_is_static(field))
			fit[n++] = field->name;
	}
	if (n == 0)
		return false;
	first = specs_below(specs, n);
	second = (first + 1) % n;
	snprintf(out, cap, first == second ? "concat(joined=[%s])" : "concat(joined=[%s, %s])", fit[first],
	         fit[second]);
	return true;
}

/* A batch ends every spec anyway, and no text can name a function. */
static bool
is_drawn(const struct leat_op *op)
{
	return op->kind != LEAT_OP_BATCH && op->kind != LEAT_OP_HINT && op != &leat_op_map;
}

/* Options that the data has to fit are not drawn: the labels are classes. */
static bool
fits_by_example(const struct leat_op *op)
{
	return op->parse || strcmp(op->name, "one_hot") == 0;
}

static bool
print_op(struct specs *specs, const struct leat_op *op, const struct leat_schema *schema, char *out, size_t cap)
{
	char options[1024], field[256] = "";

	if (!is_drawn(op))
		return false;
	if (op->kind == LEAT_OP_MIX)
		return print_mix(specs, op, schema, out, cap);
	if (strcmp(op->name, "concat") == 0)
		return print_concat(specs, schema, out, cap);
	/* What no table describes, or no draw can give, is described by its example, which the data fits. */
	if (fits_by_example(op) || !print_options(specs, op->opts, options, sizeof options)) {
		snprintf(out, cap, "%s", op->example);
		return true;
	}
	if (leat_op_is_on_field(op) && !print_field(specs, op, schema, field, sizeof field))
		return false;
	snprintf(out, cap, "%s(%s%s%s)", op->name, options, options[0] && field[0] ? ", " : "", field);
	return true;
}

/* What the spec so far gives, its entries to be freed; false: it is not valid, and there are none. */
static bool
look_at(const char *text, struct leat_schema *schema, uint64_t *size)
{
	struct leat_pipeline *p = calloc(1, sizeof *p);
	struct leat_mem mem;
	struct leat_err err;
	enum leat_status status;

	assert_non_null(p);
	*schema = (struct leat_schema){0};
	leat_mem_init(&mem, SIZE_MAX);
	leat_err_clear(&err);
	status = leat_pipeline_open(p, text, LEAT_BATCH_OPTIONAL, 1, 1, NULL, NULL, NULL, &mem, NULL, &err);
	if (status == LEAT_OK) {
		size_t bytes = (size_t)p->schema.count * sizeof *schema->entry;

		*schema = p->schema;
		schema->entry = malloc(bytes);
		assert_non_null(schema->entry);
		memcpy(schema->entry, p->schema.entry, bytes);
		*size = p->plan.size;
	} else if (status != LEAT_SPEC) {
		fail_msg("%s\n%s", text, err.text);
	}
	leat_pipeline_close(p);
	free(p);
	assert_int_equal(mem.used, 0);
	return status == LEAT_OK;
}

/* Whether the op that was added works on all samples: a crop may be larger than an image of unknown size, and a
 * float image on another scale. */
static bool
suits_all(const char *text)
{
	char batched[sizeof((struct specs *)NULL)->text + 16];
	struct leat_options options;
	struct trace trace;
	bool suits;

	snprintf(batched, sizeof batched, "%s | batch(1)", text);
	trace_options(&options);
	trace_run(&trace, batched, &options);
	suits = trace.status != LEAT_DATA && trace.status != LEAT_SPEC;
	trace_free(&trace);
	return suits;
}

static bool
looks_at_samples(const struct leat_op *op)
{
	return op->kind == LEAT_OP_GEOMETRY || op->kind == LEAT_OP_COLOR || op->kind == LEAT_OP_STATISTICS;
}

static size_t
place_of(const char *name)
{
	size_t i = 0;

	while (leat_ops[i] && strcmp(leat_ops[i]->name, name) != 0)
		i++;
	assert_non_null(leat_ops[i]);
	return i;
}

/* `look`: what it does to samples is tried. */
static bool
append(struct specs *specs, const char *ops, bool look, struct leat_schema *schema)
{
	size_t len = strlen(specs->text);
	struct leat_schema next;
	uint64_t size;

	if (len + strlen(ops) + 64 > sizeof specs->text)
		return false;
	snprintf(specs->text + len, sizeof specs->text - len, " | %s", ops);
	if (!look_at(specs->text, &next, &size) || size == 0 || size > specs->max_size ||
	    (look && !suits_all(specs->text))) {
		specs->text[len] = '\0';
		free(next.entry);
		return false;
	}
	free(schema->entry);
	*schema = next;
	specs->size = size;
	return true;
}

static bool
append_op(struct specs *specs, size_t place, struct leat_schema *schema)
{
	char op[1500];

	if (!print_op(specs, leat_ops[place], schema, op, sizeof op) ||
	    !append(specs, op, looks_at_samples(leat_ops[place]), schema))
		return false;
	specs->used[place]++;
	return true;
}

/* Mostly with options that are drawn; now and then so that images are decoded smaller than they are. */
static void
append_decode(struct specs *specs, struct leat_schema *schema)
{
	static const char *const smaller[] = {
		"decode(fast=true) | resize(7, 9, mode=torch)",
		"decode(fast=true, channels=1) | random_resized_crop(3, 2, mode=torch, antialias=true)",
		"decode(fast=true) | random_crop(17, 19) | resize(4, 3, mode=torch, antialias=true)",
	};

	if (specs_below(specs, 4) == 0)
		append(specs, smaller[specs_below(specs, 3)], true, schema);
	else
		append_op(specs, place_of("decode"), schema);
}

/* Of two ops the one used less: some fit rarely. */
static size_t
draw_op(struct specs *specs, unsigned ops)
{
	unsigned a = specs_below(specs, ops), b = specs_below(specs, ops);

	return specs->used[a] <= specs->used[b] ? a : b;
}

/* A draw opens its source dozens of times: slow ones are drawn less often. */
static size_t
draw_source(struct specs *specs)
{
	unsigned count = (unsigned)specs->sources->count;
	size_t source = specs_below(specs, count);

	if (specs->sources->one[source].slow && specs_below(specs, 4) != 0)
		source = specs_below(specs, count);
	return source;
}

void
specs_draw(struct specs *specs)
{
	unsigned wanted = specs_below(specs, 8), tries = 0, ops = 0;
	struct leat_schema schema;

	while (leat_ops[ops])
		ops++;
	assert_true(ops < SPECS_MAX_OPS);
	specs->source = draw_source(specs);
	specs->sources->one[specs->source].used++;
	snprintf(specs->text, sizeof specs->text, "%s", specs->sources->one[specs->source].spec);
	assert_true(look_at(specs->text, &schema, &specs->size));
	if (specs_below(specs, 4) == 0) /* some plan ops work directly on a source only */
		append_op(specs, draw_op(specs, ops), &schema);
	/* Most specs are about images. */
	if (specs_below(specs, 8))
		append_op(specs, place_of("example"), &schema);
	if (specs_below(specs, 8) && leat_schema_find(&schema, "image") >= 0)
		append_decode(specs, &schema);
	for (unsigned added = 0; added < wanted && tries < 60; tries++)
		added += append_op(specs, draw_op(specs, ops), &schema);
	free(schema.entry);
}

void
specs_batch(struct specs *specs, unsigned size)
{
	size_t len = strlen(specs->text), op = 0;
	struct leat_schema schema;

	snprintf(specs->text + len, sizeof specs->text - len, " | batch(%u)", size);
	assert_true(look_at(specs->text, &schema, &specs->size));
	specs->unbounded = false;
	for (int i = 0; i < schema.count; i++)
		specs->unbounded |= schema.entry[i].field.ndim > 1 && !leat_field_is_static(&schema.entry[i].field);
	for (; leat_ops[op]; op++)
		for (int tries = 0; leat_ops[op]->kind == LEAT_OP_MIX && tries < 6; tries++)
			if (append_op(specs, op, &schema))
				break;
	free(schema.entry);
}

void
specs_check_drawn(const struct specs *specs)
{
	const struct sources *sources = specs->sources;

	for (size_t i = 0; i < sources->count; i++) {
		print_message("%4u from %s\n", sources->one[i].used, sources->one[i].name);
		if (!sources->one[i].used)
			fail_msg("nothing was drawn from %s", sources->one[i].name);
	}
	for (size_t i = 0; leat_ops[i]; i++) {
		if (!is_drawn(leat_ops[i]))
			continue;
		print_message("%4u with %s\n", specs->used[i], leat_ops[i]->name);
		if (!specs->used[i])
			fail_msg("%s was never drawn", leat_ops[i]->name);
	}
}
