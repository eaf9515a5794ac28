/* kind_partition.c - a table that a sql step reads in partitions: one Parquet file for each
 *
 *	by: {events: user}        # makes the step events_by_user_64
 *
 * The output of an action is a folder with a file for each partition that has rows, in their order
 * (table/partition.h). A table that comes in slices, or is a pattern of Parquet files, is split slice by slice, so a
 *new file is split alone. The plan then turns these folders round (build_folder.c). Steps that split the same table by
 *the same column share one split. A result that is partitioned by the column already is not split again. */
#include <stdio.h>
#include <string.h>

#include "step/kind.h"
#include "step/project_read.h"
#include "table/duckdb.h"

/* ---- the step ---- */

/* One thread: with more, rows of a partition would be in another order every time. */
static enum leat_status
command(const struct leat_step *step, struct leat_str *text, struct leat_err *err)
{
	enum leat_status status = leat_duckdb_load(err);

	if (status != LEAT_OK)
		return status;
	leat_str_addf(text, "exec \"$LEAT_COMMAND\" sql --step --duckdb %s --split ", leat_duckdb_version());
	leat_str_add_word(text, step->text);
	leat_str_addf(text, " --partitions %u --table t=\"$%s\"", step->partitions,
	              step->edges ? step->edge[0].name : "file");
	leat_str_add(text, " --threads 1 ${LEAT_MEMORY:+--memory $LEAT_MEMORY} --output \"$out\" -- 'SELECT * FROM t'");
	return LEAT_OK;
}

const struct leat_step_kind leat_step_kind_partition = {
	.name = "partition",
	.version = 1,
	.doc = "Split a table into partitions.",
	.source = true,
	.command = command,
};

/* ---- making it ---- */

struct splitting {
	struct leat_reading *r;
	struct leat_project *project;
	size_t step; /* that reads the table in partitions */
	struct leat_edge *edge;
	const char *column;
};

static const struct leat_step *
reader(const struct splitting *s)
{
	return &s->project->step[s->step];
}

/* A shell name: events_by_user_64. */
static const char *
name_split(const struct splitting *s)
{
	char *name = leat_asprintf(s->r->mem, "%s_by_%s_%u", s->edge->name, s->column, reader(s)->partitions);
	const char *kept = NULL;

	for (char *c = name; c && *c; c++)
		if (!leat_is_name_character(*c))
			*c = '_';
	if (name)
		kept = leat_text_keep(s->r->text, name, strlen(name));
	else
		leat_fail_mem(s->r->err, s->r->mem, strlen(s->column), "the name of a step");
	leat_free(s->r->mem, name);
	return kept;
}

/* The same slices, but their files are those of the step that is read. */
static enum leat_status
copy_slices(const struct splitting *s, const struct leat_slices *from, struct leat_slices *to)
{
	struct leat_variable *variable = leat_text_array(s->r->text, from->variables, sizeof(*variable));

	if (!variable)
		return s->r->err->status;
	*to = *from;
	to->variable = variable;
	for (size_t i = 0; i < from->variables; i++) {
		variable[i] = from->variable[i];
		variable[i].is_file = false;
	}
	return LEAT_OK;
}

static bool
ends_in_parquet(const char *pattern)
{
	size_t len = strlen(pattern);

	return len > 8 && !strcasecmp(pattern + len - 8, ".parquet");
}

/* Types of a CSV or JSON file are found by looking at all files of the source, so these are not split one by one. */
static enum leat_status
slice_source(const struct splitting *s, const struct leat_raw_source *source, struct leat_step *split)
{
	const struct leat_yaml *node = s->r->source_at[source - s->project->source];
	struct leat_yaml pattern = *node;

	if (!strpbrk(source->pattern, "*?[{") || !ends_in_parquet(source->pattern) || !s->r->files)
		return LEAT_OK;
	pattern.text = source->pattern;
	pattern.kind = LEAT_YAML_TEXT;
	split->edges = 0;
	split->loads = source->pattern;
	return leat_slices_of_files(s->r, &pattern, source->name, &split->slices);
}

/* A step in partitions is split as one: its variable is also that of the reader. */
static enum leat_status
slice_split(const struct splitting *s, struct leat_step *split)
{
	const struct leat_step *up;

	if (s->edge->step == SIZE_MAX)
		return slice_source(s, &s->project->source[s->edge->source], split);
	up = &s->project->step[s->edge->step];
	if (leat_slice_variable(&up->slices, "partition") != SIZE_MAX) {
		split->edge[0].how = LEAT_EDGE_WHOLE;
		return LEAT_OK;
	}
	return up->slices.variables ? copy_slices(s, &up->slices, &split->slices) : LEAT_OK;
}

static enum leat_status
make_split(const struct splitting *s, const char *name)
{
	static const char *const no_code[] = {NULL};
	struct leat_step *split = &s->project->step[s->project->steps];

	*split = (struct leat_step){.name = name,
	                            .kind = &leat_step_kind_partition,
	                            .text = s->column,
	                            .line = reader(s)->line,
	                            .edge = leat_text_array(s->r->text, 1, sizeof(*split->edge)),
	                            .edges = 1,
	                            .slices = {.count = 1},
	                            .code = no_code,
	                            .suffix = "",
	                            .feed = "",
	                            .format = "",
	                            .partitions = reader(s)->partitions,
	                            .memory_bytes = reader(s)->memory_bytes,
	                            .cpus = 1};
	if (!split->edge)
		return s->r->err->status;
	split->edge[0] = *s->edge;
	s->r->at[s->project->steps++] = s->r->at[s->step];
	return slice_split(s, split);
}

/* SIZE_MAX: there is none yet. */
static size_t
find_split(const struct splitting *s, const char *name)
{
	for (size_t i = 0; i < s->project->steps; i++)
		if (!strcmp(s->project->step[i].name, name))
			return i;
	return SIZE_MAX;
}

static bool
is_same_split(const struct splitting *s, const struct leat_step *split, const char *table)
{
	return split->kind == &leat_step_kind_partition && !strcmp(split->text, s->column) &&
	       !strncmp(split->name, table, strlen(table));
}

static enum leat_status
fail_name(const struct splitting *s, const char *name)
{
	return leat_yaml_fail(
		&s->r->file, s->r->at[s->step].name,
		"'%s' is the name of what splits '%s' by '%s' for step '%s'; rename the step or source that "
		"has it",
		name, s->edge->name, s->column, reader(s)->name);
}

static enum leat_status
read_split(struct splitting *s)
{
	const char *name = name_split(s), *table = s->edge->name;
	enum leat_status status = LEAT_OK;
	size_t i;

	if (!name)
		return s->r->err->status;
	for (i = 0; i < s->project->sources; i++)
		if (!strcmp(s->project->source[i].name, name))
			return fail_name(s, name);
	i = find_split(s, name);
	if (i != SIZE_MAX && !is_same_split(s, &s->project->step[i], table))
		return fail_name(s, name);
	if (i == SIZE_MAX) {
		i = s->project->steps;
		status = make_split(s, name);
	}
	*s->edge =
		(struct leat_edge){.name = name, .table = table, .how = LEAT_EDGE_ENTRY, .step = i, .source = SIZE_MAX};
	return status;
}

/* ---- which tables ---- */

/* Is it in the same partitions already? */
static bool
is_aligned(const struct leat_step *step, const struct leat_step *up, const char *column)
{
	for (size_t i = 0; up->carried && up->carried[i]; i++)
		if (!strcasecmp(up->carried[i], column))
			return up->partitions == step->partitions;
	return false;
}

static enum leat_status
split_edge(struct leat_reading *r, size_t step, size_t edge)
{
	struct leat_step *reads = &r->project->step[step];
	struct splitting s = {.r = r, .project = r->project, .step = step, .edge = &reads->edge[edge]};
	const struct leat_step *up = s.edge->step == SIZE_MAX ? NULL : &r->project->step[s.edge->step];

	for (size_t i = 0; i < reads->bys; i++)
		if (!strcmp(reads->by[i].name, s.edge->name))
			s.column = reads->by[i].value;
	if (s.column && up && is_aligned(reads, up, s.column))
		return LEAT_OK;
	if (s.column)
		return read_split(&s);
	if (up)
		s.edge->how = LEAT_EDGE_WHOLE;
	return LEAT_OK;
}

/* Room for all that may come. */
static enum leat_status
grow(struct leat_reading *r, size_t more)
{
	struct leat_project *project = r->project;
	struct leat_step *step = leat_text_array(r->text, project->steps + more, sizeof(*step));
	struct leat_step_nodes *at = leat_text_array(r->file.nodes, project->steps + more, sizeof(*at));

	if (!step || !at)
		return r->err->status;
	memcpy(step, project->step, project->steps * sizeof(*step));
	memcpy(at, r->at, project->steps * sizeof(*at));
	project->step = step;
	r->at = at;
	return LEAT_OK;
}

enum leat_status
leat_project_split(struct leat_reading *r)
{
	size_t steps = r->project->steps, more = 0;
	enum leat_status status;

	for (size_t i = 0; i < steps; i++)
		more += r->project->step[i].bys;
	if (!more)
		return LEAT_OK;
	status = grow(r, more);
	for (size_t i = 0; i < steps && status == LEAT_OK; i++)
		for (size_t e = 0; r->project->step[i].bys && e < r->project->step[i].edges && status == LEAT_OK; e++)
			status = split_edge(r, i, e);
	return status;
}
