/* parquet_footer.c - see parquet_footer.h
 *
 * The compact protocol: a struct is a sequence of fields, each with a header of its type and of its number's distance
 * from the one before, then a stop byte. So bytes between fields can be copied, as long as no field is left out. */
#include "format/parquet_footer.h"

#include <string.h>

#include "base/hash.h"

enum { DEPTH = 16 }; /* of nested structs and lists; Parquet has 6 */

enum type { STOP, TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT, UUID };

/* Reading past the end, or anything else that makes no sense, sets `bad`; further reads then give 0. */
struct cursor {
	const unsigned char *bytes;
	size_t at, end;
	bool bad;
};

static struct cursor
cursor_at(const struct leat_parquet_footer *footer, size_t at, size_t end)
{
	return (struct cursor){footer->bytes, at, end, false};
}

static unsigned char
next_byte(struct cursor *c)
{
	if (c->bad || c->at >= c->end) {
		c->bad = true;
		return 0;
	}
	return c->bytes[c->at++];
}

static uint64_t
varint(struct cursor *c)
{
	uint64_t value = 0;

	for (unsigned shift = 0; shift < 64; shift += 7) {
		unsigned char byte = next_byte(c);

		value |= (uint64_t)(byte & 127) << shift;
		if (!(byte & 128))
			return value;
	}
	c->bad = true;
	return 0;
}

static int64_t
zigzag(struct cursor *c)
{
	uint64_t value = varint(c);

	return (int64_t)(value >> 1 ^ (0 - (value & 1)));
}

static void
skip_bytes(struct cursor *c, uint64_t count)
{
	if (c->bad || count > c->end - c->at)
		c->bad = true;
	else
		c->at += (size_t)count;
}

/* The next field of a struct. False: there is none. */
static bool
next_field(struct cursor *c, int64_t *id, enum type *type)
{
	unsigned char byte = next_byte(c);

	*type = (enum type)(byte & 15);
	if (c->bad || *type == STOP)
		return false;
	if (byte >> 4)
		*id += byte >> 4;
	else
		*id = zigzag(c);
	if (*id < -32768 || *id > 32767)
		c->bad = true;
	return !c->bad;
}

/* Header of a list or set. Every element takes at least a byte, so a number beyond what is left is bad. */
static size_t
list_header(struct cursor *c, enum type *type)
{
	unsigned char byte = next_byte(c);
	uint64_t count = byte >> 4;

	*type = (enum type)(byte & 15);
	if (count == 15)
		count = varint(c);
	if (count > c->end - c->at)
		c->bad = true;
	return c->bad ? 0 : (size_t)count;
}

static void skip(struct cursor *c, enum type type, bool in_list, int depth);

static void
skip_list(struct cursor *c, int depth)
{
	enum type type;
	size_t count = list_header(c, &type);

	for (size_t i = 0; i < count && !c->bad; i++)
		skip(c, type, true, depth);
}

static void
skip_map(struct cursor *c, int depth)
{
	uint64_t count = varint(c);
	unsigned char types = count ? next_byte(c) : 0;

	for (uint64_t i = 0; i < count && !c->bad; i++) {
		skip(c, (enum type)(types >> 4), true, depth);
		skip(c, (enum type)(types & 15), true, depth);
	}
}

static void
skip_struct(struct cursor *c, int depth)
{
	enum type type;
	int64_t id = 0;

	while (next_field(c, &id, &type))
		skip(c, type, false, depth);
}

/* A bool in a struct is in the field's header. */
static void
skip(struct cursor *c, enum type type, bool in_list, int depth)
{
	if (depth > DEPTH) {
		c->bad = true;
		return;
	}
	switch (type) {
	case TRUE:
	case FALSE:
		skip_bytes(c, in_list ? 1 : 0);
		break;
	case BYTE:
		skip_bytes(c, 1);
		break;
	case I16:
	case I32:
	case I64:
		(void)varint(c);
		break;
	case DOUBLE:
		skip_bytes(c, 8);
		break;
	case BINARY:
		skip_bytes(c, varint(c));
		break;
	case LIST:
	case SET:
		skip_list(c, depth + 1);
		break;
	case MAP:
		skip_map(c, depth + 1);
		break;
	case STRUCT:
		skip_struct(c, depth + 1);
		break;
	case UUID:
		skip_bytes(c, 16);
		break;
	case STOP:
	default:
		c->bad = true;
	}
}

/* ---- the footer ---- */

const char *
leat_parquet_tail(const unsigned char *tail, uint64_t file_size, uint64_t *footer)
{
	*footer = leat_load32(tail);
	if (memcmp(tail + 4, "PARE", 4) == 0)
		return "it is encrypted, which is not supported";
	if (memcmp(tail + 4, "PAR1", 4) != 0)
		return "it does not end with PAR1: it is not a Parquet file, or was cut off";
	if (*footer == 0 || *footer > file_size - LEAT_PARQUET_TAIL)
		return "its footer would begin before the file";
	return NULL;
}

/* The fields of FileMetaData that matter. */
static bool
read_file_field(struct leat_parquet_footer *footer, struct cursor *c, int64_t id, enum type type)
{
	size_t at = c->at;

	if (id == 2 && type == LIST) {
		skip(c, type, false, 0);
		footer->schema = at;
		footer->schema_end = c->at;
	} else if (id == 3 && type == I64) {
		int64_t rows = zigzag(c);

		footer->rows_at = at;
		footer->rows_end = c->at;
		footer->rows = (uint64_t)rows;
		c->bad |= rows < 0;
	} else if (id == 4 && type == LIST) {
		enum type of;

		footer->groups = at;
		footer->group_count = list_header(c, &of);
		footer->groups_first = c->at;
		c->bad |= footer->group_count > 0 && of != STRUCT;
		for (size_t i = 0; i < footer->group_count && !c->bad; i++)
			skip(c, STRUCT, true, 1);
		footer->groups_end = c->at;
	} else {
		skip(c, type, false, 0);
	}
	return !c->bad;
}

const char *
leat_parquet_footer_read(struct leat_parquet_footer *footer, const unsigned char *bytes, size_t len)
{
	struct cursor c = {bytes, 0, len, false};
	unsigned seen = 0;
	enum type type;
	int64_t id = 0;

	*footer = (struct leat_parquet_footer){.bytes = bytes, .len = len};
	while (next_field(&c, &id, &type)) {
		if (!read_file_field(footer, &c, id, type))
			break;
		if (id >= 2 && id <= 4 && seen & 1u << id)
			return "its footer lists a field twice";
		seen |= id >= 2 && id <= 4 ? 1u << id : 0;
	}
	if (c.bad)
		return "its footer is damaged";
	/* A file without rows may leave out the list of row groups. */
	if (!footer->schema_end || !footer->rows_end || (!footer->groups_end && footer->rows))
		return "its footer lacks columns, rows or row groups";
	return NULL;
}

/* ---- row groups ---- */

const char *
leat_parquet_group_read(const struct leat_parquet_footer *footer, size_t at, struct leat_parquet_group *group)
{
	struct cursor c = cursor_at(footer, at, footer->groups_end);
	int64_t id = 0, rows = -1;
	enum type type;

	*group = (struct leat_parquet_group){.at = at};
	while (next_field(&c, &id, &type)) {
		if (id == 1 && type == LIST)
			group->chunks = c.at;
		if (id == 3 && type == I64)
			rows = zigzag(&c);
		else
			skip(&c, type, false, 1);
	}
	if (c.bad || rows < 0 || !group->chunks)
		return "the footer's entry of a row group is damaged";
	group->end = c.at;
	group->rows = (uint64_t)rows;
	return NULL;
}

void
leat_parquet_chunks_begin(struct leat_parquet_chunks *walk, const struct leat_parquet_footer *footer,
                          const struct leat_parquet_group *group)
{
	struct cursor c = cursor_at(footer, group->chunks, group->end);
	enum type type;
	size_t count = list_header(&c, &type);

	*walk = (struct leat_parquet_chunks){footer, c.at, group->end, type == STRUCT ? count : 0};
}

/* The fields of ColumnMetaData that matter. Offsets that are not given, or negative, are 0 or huge. */
static void
read_chunk_meta(struct cursor *c, struct leat_parquet_chunk *chunk)
{
	uint64_t data = UINT64_MAX, dictionary = 0;
	enum type type;
	int64_t id = 0;

	while (next_field(c, &id, &type)) {
		if (id == 6 && type == I64)
			chunk->unpacked = (uint64_t)zigzag(c);
		else if (id == 7 && type == I64)
			chunk->length = (uint64_t)zigzag(c);
		else if (id == 9 && type == I64)
			data = (uint64_t)zigzag(c);
		else if (id == 11 && type == I64)
			dictionary = (uint64_t)zigzag(c);
		else
			skip(c, type, false, 3);
	}
	/* Some writers give 0 for "no dictionary". */
	chunk->offset = dictionary > 0 && dictionary < data ? dictionary : data;
}

bool
leat_parquet_chunks_next(struct leat_parquet_chunks *walk, struct leat_parquet_chunk *chunk)
{
	struct cursor c = cursor_at(walk->footer, walk->at, walk->end);
	enum type type;
	int64_t id = 0;

	*chunk = (struct leat_parquet_chunk){.offset = UINT64_MAX};
	if (!walk->left)
		return false;
	while (next_field(&c, &id, &type)) {
		if (id == 3 && type == STRUCT) {
			read_chunk_meta(&c, chunk);
		} else {
			chunk->elsewhere |= id == 1;
			skip(&c, type, false, 2);
		}
	}
	walk->at = c.at;
	walk->left--;
	return !c.bad;
}

/* ---- columns ---- */

/* Number of children of the next SchemaElement; 0: a leaf. */
static size_t
read_children(struct cursor *c)
{
	int64_t id = 0, children = 0;
	enum type type;

	while (next_field(c, &id, &type)) {
		if (id == 5 && type == I32)
			children = zigzag(c);
		else
			skip(c, type, false, 2);
	}
	if (children < 0 || children > LEAT_PARQUET_LEAVES)
		c->bad = true;
	return c->bad ? 0 : (size_t)children;
}

/* The schema is a tree, listed depth first. Of a column below the root, `open` counts the elements still to come. */
const char *
leat_parquet_leaves(const struct leat_parquet_footer *footer, uint16_t *column, size_t *leaves)
{
	struct cursor c = cursor_at(footer, footer->schema, footer->schema_end);
	enum type type;
	size_t count = list_header(&c, &type), columns = type == STRUCT && count ? read_children(&c) : 0, seen = 1;

	*leaves = 0;
	for (size_t i = 0; i < columns && !c.bad; i++)
		for (size_t open = 1; open > 0 && !c.bad; open--, seen++) {
			size_t children = read_children(&c);

			if (seen >= count || *leaves >= LEAT_PARQUET_LEAVES)
				c.bad = true;
			if (!children && !c.bad && column)
				column[*leaves] = (uint16_t)i;
			*leaves += !children;
			open += children;
		}
	return c.bad || !columns || seen != count ? "the footer's list of columns is damaged" : NULL;
}

/* ---- a footer of one group ---- */

static size_t
put(unsigned char *to, size_t at, const void *bytes, size_t len)
{
	memcpy(to + at, bytes, len);
	return at + len;
}

static size_t
put_zigzag(unsigned char *to, size_t at, uint64_t value)
{
	for (value <<= 1; value > 127; value >>= 7)
		to[at++] = (unsigned char)(value | 128);
	to[at++] = (unsigned char)value;
	return at;
}

size_t
leat_parquet_footer_cut(const struct leat_parquet_footer *footer, const struct leat_parquet_group *group,
                        unsigned char *to)
{
	const unsigned char one_struct = 1 << 4 | STRUCT, *from = footer->bytes;
	bool rows_first = footer->rows_at < footer->groups;
	size_t at = 0, done = 0;

	for (int step = 0; step < 2; step++) {
		if ((step == 0) == rows_first) {
			at = put(to, at, from + done, footer->rows_at - done);
			at = put_zigzag(to, at, group->rows);
			done = footer->rows_end;
		} else {
			at = put(to, at, from + done, footer->groups - done);
			at = put(to, at, &one_struct, 1);
			at = put(to, at, from + group->at, group->end - group->at);
			done = footer->groups_end;
		}
	}
	at = put(to, at, from + done, footer->len - done);
	leat_store32(to + at, (uint32_t)at);
	at = put(to, at + 4, "PAR1", 4);
	return at;
}
