/* yaml.c - see yaml.h
 *
 * Built from libyaml's events, not its documents: those would hold whole files before a limit could stop them, and
 * have no place for the line of a key. Open collections are on a stack as deep as files may nest. */
#include "step/yaml.h"

#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/str.h"

struct level {
	struct leat_yaml *node;
	struct leat_yaml **end; /* where the next item or key goes */
	struct leat_yaml *key;  /* that waits for its value */
	bool flow;              /* inside [ ] or { } */
};

struct builder {
	const struct leat_yaml_file *file;
	yaml_parser_t parser;
	struct level level[LEAT_YAML_DEPTH];
	size_t depth, nodes;
	struct leat_yaml *root;
	bool more; /* events to come */
};

bool
leat_yaml_is_empty(const struct leat_yaml *node)
{
	return node->kind == LEAT_YAML_TEXT && node->plain && !node->text[0];
}

/* ---- what libyaml refuses ---- */

/* What to do about it. Each stands for a trap that writers of commands fall into. */
static const char *
advice(const char *problem, char c)
{
	static const struct {
		const char *problem, *advice;
	} known[] = {
		{"mapping values are not allowed",
	         "a text that contains ': ' needs quotes, or put it on the next line, after |"},
		{"expected ',' or", "inside [ ] and { }, a text with any of {}[],:# needs quotes, such as '${x}'"},
		{"expected alphabetic or numeric", "a text that begins with * or & needs quotes, such as '*.csv'"},
		{"expected key", "check the indentation; a text that begins with a quote ends at the next one, so put "
	                         "such a command on the next line, after |"},
		{"expected the node content", "a value is missing here"},
		{"unexpected end of stream", "a quote is not closed"},
	};

	if (strstr(problem, "cannot start any token"))
		return c == '\t' ? "indent with spaces, not tabs" : "a text that begins with @, ` or % needs quotes";
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (strstr(problem, known[i].problem))
			return known[i].advice;
	return NULL;
}

static enum leat_status
refused_by_libyaml(struct builder *b)
{
	const struct leat_yaml_file *file = b->file;
	const char *problem = b->parser.problem ? b->parser.problem : "unknown problem", *todo;
	size_t offset = b->parser.problem_offset;
	const yaml_mark_t *mark;

	if (b->parser.error == YAML_MEMORY_ERROR)
		return leat_fail(file->err, LEAT_NOMEM, "out of memory: cannot read %s", file->name);
	if (b->parser.error == YAML_READER_ERROR)
		return leat_yaml_fail_at(file, offset < file->len ? offset : file->len, 1,
		                         "not UTF-8 text: %s; save the file as UTF-8", problem);
	/* What is not closed began at the context; the problem is the end of the file. */
	mark = strstr(problem, "unexpected end of stream") && b->parser.context ? &b->parser.context_mark
	                                                                        : &b->parser.problem_mark;
	offset = leat_yaml_offset(file, (uint32_t)mark->line + 1, (uint32_t)mark->column + 1);
	todo = advice(problem, file->text[offset]);
	return leat_yaml_fail_at(file, offset, 1, "not valid YAML: %s%s%s", problem, todo ? "; " : "",
	                         todo ? todo : "");
}

/* ---- what we refuse ---- */

static enum leat_status
refuse(struct builder *b, const yaml_event_t *event, const char *what)
{
	size_t offset =
		leat_yaml_offset(b->file, (uint32_t)event->start_mark.line + 1, (uint32_t)event->start_mark.column + 1);

	return leat_yaml_fail_at(b->file, offset, 1, "%s", what);
}

static enum leat_status
check_extras(struct builder *b, const yaml_event_t *event, const yaml_char_t *anchor, const yaml_char_t *tag)
{
	if (anchor)
		return refuse(b, event, "anchors (&name) are not supported; a text that begins with & needs quotes");
	if (tag)
		return refuse(b, event, "tags (!name) are not supported; a text that begins with ! needs quotes");
	return LEAT_OK;
}

/* [clip(a, b), log] is three texts, of which none is what was meant. */
static bool
is_torn(const char *text)
{
	int open = 0;

	for (; *text && open >= 0; text++)
		open += (*text == '(') - (*text == ')');
	return open != 0;
}

static enum leat_status
check_text(struct builder *b, const yaml_event_t *event, const struct leat_yaml *node)
{
	const char *text = (const char *)event->data.scalar.value;
	bool flow = b->depth && b->level[b->depth - 1].flow;

	if (strlen(text) != event->data.scalar.length)
		return leat_yaml_fail(b->file, node, "a text cannot contain the character NUL");
	if (node->plain && flow && is_torn(text))
		return leat_yaml_fail(
			b->file, node,
			"'%s' has a parenthesis without its pair: inside [ ] and { } a comma ends a text; "
			"put quotes around it",
			text);
	return LEAT_OK;
}

/* ---- building ---- */

static struct leat_yaml *
add_node(struct builder *b, const yaml_event_t *event, enum leat_yaml_kind kind)
{
	struct leat_yaml *node;

	if (++b->nodes > LEAT_YAML_NODES) {
		leat_fail(b->file->err, LEAT_SPEC, "%s has more than %d values; name a file of them with {lines: FILE}",
		          b->file->name, LEAT_YAML_NODES);
		return NULL;
	}
	node = leat_text_alloc(b->file->nodes, sizeof(*node));
	if (!node)
		return NULL;
	node->kind = kind;
	node->line = (uint32_t)event->start_mark.line + 1;
	node->column = (uint32_t)event->start_mark.column + 1;
	node->end_line = (uint32_t)event->end_mark.line + 1;
	node->end_column = (uint32_t)event->end_mark.column + 1;
	return node;
}

/* Puts a node where it belongs: a key, the value of one, an item, or the root. */
static enum leat_status
place(struct builder *b, struct leat_yaml *node)
{
	struct level *level = b->depth ? &b->level[b->depth - 1] : NULL;

	if (!level) {
		b->root = node;
	} else if (level->key) {
		level->key->value = node;
		level->key = NULL;
	} else {
		if (level->node->kind == LEAT_YAML_MAP && node->kind != LEAT_YAML_TEXT)
			return leat_yaml_fail(b->file, node, "a key must be a text; [ and { need quotes here");
		if (level->node->kind == LEAT_YAML_MAP)
			level->key = node;
		*level->end = node;
		level->end = &node->next;
		level->node->count++;
	}
	return LEAT_OK;
}

static enum leat_status
failed(const struct builder *b)
{
	return b->file->err && b->file->err->status != LEAT_OK ? b->file->err->status : LEAT_NOMEM;
}

static enum leat_status
add_text(struct builder *b, const yaml_event_t *event)
{
	struct leat_yaml *node = add_node(b, event, LEAT_YAML_TEXT);
	enum leat_status status;

	if (!node)
		return failed(b);
	node->plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
	status = check_text(b, event, node);
	if (status != LEAT_OK)
		return status;
	node->text =
		leat_text_keep(b->file->strings, (const char *)event->data.scalar.value, event->data.scalar.length);
	return node->text ? place(b, node) : failed(b);
}

static enum leat_status
begin(struct builder *b, const yaml_event_t *event, enum leat_yaml_kind kind, bool flow)
{
	struct leat_yaml *node = add_node(b, event, kind);
	enum leat_status status;

	if (!node)
		return failed(b);
	if (b->depth == LEAT_YAML_DEPTH)
		return leat_yaml_fail(b->file, node, "nested more than %d levels deep", LEAT_YAML_DEPTH);
	status = place(b, node);
	b->level[b->depth++] = (struct level){.node = node, .end = &node->first, .flow = flow};
	return status;
}

/* ---- keys that are given twice ---- */

static int
by_text(const void *a, const void *b)
{
	const struct leat_yaml *x = *(struct leat_yaml *const *)a, *y = *(struct leat_yaml *const *)b;
	int order = strcmp(x->text, y->text);

	return order ? order : (x->line > y->line) - (x->line < y->line);
}

static enum leat_status
check_keys(struct builder *b, const struct leat_yaml *map)
{
	struct leat_mem *mem = b->file->nodes->mem;
	struct leat_yaml **key = leat_alloc_array(mem, map->count + 1, sizeof(struct leat_yaml *));
	enum leat_status status = LEAT_OK;
	size_t n = 0;

	if (!key)
		return leat_fail_mem(b->file->err, mem, map->count * sizeof(struct leat_yaml *), b->file->name);
	for (struct leat_yaml *k = map->first; k; k = k->next)
		key[n++] = k;
	qsort(key, n, sizeof(*key), by_text);
	for (size_t i = 1; i < n && status == LEAT_OK; i++)
		if (!strcmp(key[i - 1]->text, key[i]->text))
			status = leat_yaml_fail(b->file, key[i], "'%s' is here twice: first in line %u", key[i]->text,
			                        key[i - 1]->line);
	leat_free(mem, key);
	return status;
}

static enum leat_status
end(struct builder *b)
{
	const struct leat_yaml *node = b->level[--b->depth].node;

	return node->kind == LEAT_YAML_MAP ? check_keys(b, node) : LEAT_OK;
}

/* ---- events ---- */

static enum leat_status
begin_list(struct builder *b, const yaml_event_t *event)
{
	enum leat_status status =
		check_extras(b, event, event->data.sequence_start.anchor, event->data.sequence_start.tag);

	return status != LEAT_OK
	               ? status
	               : begin(b, event, LEAT_YAML_LIST, event->data.sequence_start.style == YAML_FLOW_SEQUENCE_STYLE);
}

static enum leat_status
begin_map(struct builder *b, const yaml_event_t *event)
{
	enum leat_status status =
		check_extras(b, event, event->data.mapping_start.anchor, event->data.mapping_start.tag);

	return status != LEAT_OK
	               ? status
	               : begin(b, event, LEAT_YAML_MAP, event->data.mapping_start.style == YAML_FLOW_MAPPING_STYLE);
}

static enum leat_status
take_event(struct builder *b, const yaml_event_t *event)
{
	enum leat_status status;

	switch (event->type) {
	case YAML_SCALAR_EVENT:
		status = check_extras(b, event, event->data.scalar.anchor, event->data.scalar.tag);
		return status == LEAT_OK ? add_text(b, event) : status;
	case YAML_SEQUENCE_START_EVENT:
		return begin_list(b, event);
	case YAML_MAPPING_START_EVENT:
		return begin_map(b, event);
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT:
		return end(b);
	case YAML_ALIAS_EVENT:
		return refuse(b, event,
		              "aliases (*name) are not supported; write the value again, or put quotes around a text "
		              "that begins with *");
	case YAML_DOCUMENT_START_EVENT:
		return b->root ? refuse(b, event, "a second document begins here; a file has one") : LEAT_OK;
	case YAML_STREAM_END_EVENT:
		b->more = false;
		return LEAT_OK;
	default:
		return LEAT_OK;
	}
}

enum leat_status
leat_yaml_parse(const struct leat_yaml_file *file, struct leat_yaml **root)
{
	struct builder b = {.file = file, .more = true};
	enum leat_status status = LEAT_OK;
	yaml_event_t event;

	*root = NULL;
	if (file->len > LEAT_YAML_BYTES)
		return leat_fail(file->err, LEAT_SPEC, "%s has more than %d MiB", file->name, LEAT_YAML_BYTES >> 20);
	if (!yaml_parser_initialize(&b.parser))
		return leat_fail(file->err, LEAT_NOMEM, "out of memory: cannot read %s", file->name);
	yaml_parser_set_encoding(&b.parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&b.parser, (const unsigned char *)file->text, file->len);
	while (b.more && status == LEAT_OK) {
		if (!yaml_parser_parse(&b.parser, &event)) {
			status = refused_by_libyaml(&b);
			break;
		}
		status = take_event(&b, &event);
		yaml_event_delete(&event);
	}
	yaml_parser_delete(&b.parser);
	*root = status == LEAT_OK ? b.root : NULL;
	return status;
}
