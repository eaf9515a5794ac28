/* groups.c - see groups.h
 *
 * Variables are added one by one. After each, a slice's group is known by a dense number; the next one makes groups of
 * pairs (group so far, value), which a table of 64-bit keys numbers anew. So nothing is compared but numbers, and no
 * two groups can be confused. */
#include "step/groups.h"

#include <string.h>

#include "base/hash.h"

/* ---- numbers for keys ---- */

struct table {
	struct leat_mem *mem;
	uint64_t *key;
	uint32_t *number; /* LEAT_NO_GROUP: empty */
	size_t mask;
	uint32_t count;
};

static enum leat_status
table_open(struct table *table, struct leat_mem *mem, size_t most, struct leat_err *err)
{
	size_t cap = 16;

	while (cap < most * 2)
		cap *= 2;
	*table = (struct table){.mem = mem, .mask = cap - 1};
	table->key = leat_alloc_array(mem, cap, sizeof(*table->key));
	table->number = leat_alloc_array(mem, cap, sizeof(*table->number));
	if (!table->key || !table->number)
		return leat_fail_mem(err, mem, cap * sizeof(*table->key), "the groups of slices");
	memset(table->number, 0xff, cap * sizeof(*table->number));
	return LEAT_OK;
}

static void
table_close(struct table *table)
{
	leat_free(table->mem, table->key);
	leat_free(table->mem, table->number);
}

static size_t
table_place(const struct table *table, uint64_t key)
{
	size_t i = leat_mix64(key + 1) & table->mask;

	while (table->number[i] != LEAT_NO_GROUP && table->key[i] != key)
		i = (i + 1) & table->mask;
	return i;
}

static uint32_t
table_number(struct table *table, uint64_t key)
{
	size_t i = table_place(table, key);

	if (table->number[i] == LEAT_NO_GROUP) {
		table->key[i] = key;
		table->number[i] = table->count++;
	}
	return table->number[i];
}

/* ---- values ---- */

/* Numbers for texts: their places in `text`, which a hash table finds. */
struct texts {
	struct leat_mem *mem;
	const char **text;
	uint32_t *place;
	size_t mask;
	uint32_t count;
};

static enum leat_status
texts_open(struct texts *texts, struct leat_mem *mem, size_t most, struct leat_err *err)
{
	size_t cap = 16;

	while (cap < most * 2)
		cap *= 2;
	*texts = (struct texts){.mem = mem, .mask = cap - 1};
	texts->text = leat_alloc_array(mem, most ? most : 1, sizeof(*texts->text));
	texts->place = leat_alloc_array(mem, cap, sizeof(*texts->place));
	if (!texts->text || !texts->place)
		return leat_fail_mem(err, mem, cap * sizeof(*texts->text), "the values of slices");
	memset(texts->place, 0xff, cap * sizeof(*texts->place));
	return LEAT_OK;
}

static void
texts_close(struct texts *texts)
{
	leat_free(texts->mem, texts->text);
	leat_free(texts->mem, texts->place);
}

static uint32_t
texts_number(struct texts *texts, const char *text, bool add)
{
	size_t i = leat_hash64(text) & texts->mask;

	while (texts->place[i] != LEAT_NO_GROUP && strcmp(texts->text[texts->place[i]], text) != 0)
		i = (i + 1) & texts->mask;
	if (texts->place[i] == LEAT_NO_GROUP && add) {
		texts->text[texts->count] = text;
		texts->place[i] = texts->count++;
	}
	return texts->place[i];
}

/* A variable of one side: the number of each of its values, and how to find the value of a slice. */
struct column {
	uint32_t *number;
	size_t stride, length;
};

static size_t
stride_of(const struct leat_slices *slices, size_t axis)
{
	size_t stride = 1;

	for (size_t i = axis + 1; i < slices->axes; i++)
		stride *= slices->length[i];
	return stride;
}

static enum leat_status
column_open(struct column *column, struct texts *texts, const struct leat_slices *slices, size_t variable, bool add,
            struct leat_err *err)
{
	const struct leat_variable *v = &slices->variable[variable];

	column->stride = stride_of(slices, v->axis);
	column->length = slices->length[v->axis];
	column->number = leat_alloc_array(texts->mem, v->values ? v->values : 1, sizeof(*column->number));
	if (!column->number)
		return leat_fail_mem(err, texts->mem, v->values * sizeof(*column->number), "the values of slices");
	for (size_t i = 0; i < v->values; i++)
		column->number[i] = texts_number(texts, v->value[i], add);
	return LEAT_OK;
}

static uint32_t
column_at(const struct column *column, size_t slice)
{
	return column->number[slice / column->stride % column->length];
}

/* ---- one more variable ---- */

static void
refine(struct leat_groups *groups, struct table *table, const struct column *down, size_t downs,
       const struct column *up, size_t ups)
{
	for (size_t i = 0; i < downs; i++)
		groups->down[i] = table_number(table, (uint64_t)groups->down[i] << 32 | column_at(down, i));
	for (size_t i = 0; i < ups; i++) {
		uint32_t value = column_at(up, i);
		bool none = groups->up[i] == LEAT_NO_GROUP || value == LEAT_NO_GROUP;

		groups->up[i] =
			none ? LEAT_NO_GROUP : table->number[table_place(table, (uint64_t)groups->up[i] << 32 | value)];
	}
	groups->count = table->count;
}

static enum leat_status
add_variable(struct leat_groups *groups, const struct leat_slices *down, size_t variable, const struct leat_slices *up,
             struct leat_err *err)
{
	const struct leat_variable *v = &down->variable[variable];
	struct column mine = {0}, other = {0};
	struct texts texts = {0};
	struct table table = {0};
	enum leat_status status;

	status = texts_open(&texts, groups->mem, v->values, err);
	if (status == LEAT_OK)
		status = column_open(&mine, &texts, down, variable, true, err);
	if (status == LEAT_OK && up)
		status = column_open(&other, &texts, up, leat_slice_variable(up, v->name), false, err);
	if (status == LEAT_OK)
		status = table_open(&table, groups->mem, down->count, err);
	if (status == LEAT_OK)
		refine(groups, &table, &mine, down->count, &other, up ? up->count : 0);
	leat_free(groups->mem, mine.number);
	leat_free(groups->mem, other.number);
	if (table.mem)
		table_close(&table);
	if (texts.mem)
		texts_close(&texts);
	return status;
}

/* ---- groups ---- */

/* Frees a list that says the obvious: slice i is in group i. */
static void
shorten(struct leat_groups *groups, uint32_t **of, size_t slices)
{
	if (!*of || slices != groups->count)
		return;
	for (size_t i = 0; i < slices; i++)
		if ((*of)[i] != i)
			return;
	leat_free(groups->mem, *of);
	*of = NULL;
}

static enum leat_status
group_all(struct leat_groups *groups, const struct leat_slices *down, const bool *by, const struct leat_slices *up,
          struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	groups->count = 1;
	groups->down = leat_alloc_array(groups->mem, down->count, sizeof(*groups->down));
	if (up)
		groups->up = leat_alloc_array(groups->mem, up->count, sizeof(*groups->up));
	if (!groups->down || (up && !groups->up))
		return leat_fail_mem(err, groups->mem, down->count * sizeof(*groups->down), "the groups of slices");
	for (size_t i = 0; status == LEAT_OK && i < down->variables; i++)
		if (by[i])
			status = add_variable(groups, down, i, up, err);
	return status;
}

enum leat_status
leat_groups_open(struct leat_groups *groups, struct leat_mem *mem, const struct leat_slices *down, const bool *by,
                 const struct leat_slices *up, struct leat_err *err)
{
	enum leat_status status;

	*groups = (struct leat_groups){.mem = mem};
	if (down->count >= LEAT_NO_GROUP || (up && up->count >= LEAT_NO_GROUP))
		return leat_fail(err, LEAT_LIMIT, "a step has more than 4 billion slices; use fewer");
	status = group_all(groups, down, by, up, err);
	if (status != LEAT_OK) {
		leat_groups_close(groups);
		return status;
	}
	shorten(groups, &groups->down, down->count);
	if (up)
		shorten(groups, &groups->up, up->count);
	return LEAT_OK;
}

void
leat_groups_close(struct leat_groups *groups)
{
	if (!groups->mem)
		return;
	leat_free(groups->mem, groups->down);
	leat_free(groups->mem, groups->up);
	*groups = (struct leat_groups){0};
}

/* ---- members ---- */

enum leat_status
leat_members_open(struct leat_members *members, struct leat_mem *mem, const uint32_t *of, size_t slices,
                  uint32_t groups, struct leat_err *err)
{
	*members = (struct leat_members){0};
	if (!of)
		return LEAT_OK;
	members->start = leat_alloc_array(mem, (size_t)groups + 2, sizeof(*members->start));
	members->slice = leat_alloc_array(mem, slices ? slices : 1, sizeof(*members->slice));
	if (!members->start || !members->slice) {
		leat_members_close(members, mem);
		return leat_fail_mem(err, mem, slices * sizeof(*members->slice), "the groups of slices");
	}
	/* Counted two places further on, so that after filling, start[g] is where group g begins. */
	for (size_t i = 0; i < slices; i++)
		if (of[i] != LEAT_NO_GROUP)
			members->start[of[i] + 2]++;
	for (size_t g = 2; g < (size_t)groups + 2; g++)
		members->start[g] += members->start[g - 1];
	for (size_t i = 0; i < slices; i++)
		if (of[i] != LEAT_NO_GROUP)
			members->slice[members->start[of[i] + 1]++] = (uint32_t)i;
	return LEAT_OK;
}

void
leat_members_close(struct leat_members *members, struct leat_mem *mem)
{
	leat_free(mem, members->start);
	leat_free(mem, members->slice);
	*members = (struct leat_members){0};
}
