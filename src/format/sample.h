/* sample.h - a sample while it is worked on, and what is known of its fields beforehand */
#ifndef LEAT_FORMAT_SAMPLE_H
#define LEAT_FORMAT_SAMPLE_H

#include "base/err.h"
#include "base/mem.h"

/* How an image's dimensions are ordered; NONE is not an image. */
enum leat_layout { LEAT_LAYOUT_NONE, LEAT_HWC, LEAT_CHW };

/* All that is known of one field before samples are read. */
struct leat_schema_entry {
	struct leat_field field;
	enum leat_layout layout;
	bool outside_payload;  /* no element is from the payload: the source supplies them, such as a file's name */
	size_t extra_elements; /* elements a sample may have that are not from its payload, such as a default */
};

struct leat_schema {
	int count, capacity;
	struct leat_schema_entry *entry;
};

/* No fields yet, and room for `capacity`. */
enum leat_status leat_schema_init(struct leat_schema *schema, int capacity, struct leat_mem *mem, struct leat_err *err);
/* The fields of `from`, and room for `capacity`, or for as many as there are if that is more. */
enum leat_status leat_schema_copy(struct leat_schema *to, const struct leat_schema *from, int capacity,
                                  struct leat_mem *mem, struct leat_err *err);
void leat_schema_trim(struct leat_schema *schema, struct leat_mem *mem); /* gives unused room back */
void leat_schema_free(struct leat_schema *schema, struct leat_mem *mem); /* takes a zeroed one */

int leat_schema_find(const struct leat_schema *schema, const char *name); /* -1: none */
/* Adds a field with no dims; NULL when the name is taken, too long, or the table is full. */
struct leat_field *leat_schema_add(struct leat_schema *schema, const char *name, enum leat_dtype dtype);
void leat_schema_remove(struct leat_schema *schema, int i);
/* A field by its name; none is LEAT_SPEC, with the nearest name or those that there are. */
enum leat_status leat_schema_need(const struct leat_schema *schema, const char *name, int *i, struct leat_err *err);
bool leat_field_is_static(const struct leat_field *field);
int64_t leat_field_elements(const struct leat_field *field); /* of one sample; -1 when not static or beyond int64 */
/* "uint8[?, ?, 3]" into buf; returns buf. */
char *leat_field_format(const struct leat_field *field, char *buf, size_t cap);

/* One field of one sample. Lies in the fetched bytes, the worker's scratch or the slot, all the sample's own; or,
 * `borrowed`, in memory that many share: a cache, a mapped file. The engine copies it before an op works in place. */
struct leat_datum {
	void *data;
	enum leat_dtype dtype;
	int ndim;
	int64_t shape[LEAT_MAX_DIMS]; /* all known here */
	bool borrowed;                /* others read the same memory: it must not be written */
};

int64_t leat_datum_elements(const struct leat_datum *datum); /* -1 beyond int64 */
size_t leat_datum_bytes(const struct leat_datum *datum);     /* SIZE_MAX when there cannot be as many */

struct leat_sample {
	int count;
	struct leat_datum field[LEAT_MAX_FIELDS]; /* as in the schema at this point of the chain */
};

/* Some of the fields, each once, in another order: field i is what field from[i] was. */
struct leat_pick {
	int count, from[LEAT_MAX_FIELDS];
};

void leat_schema_pick(struct leat_schema *schema, const struct leat_pick *pick);
void leat_sample_pick(struct leat_sample *sample, const struct leat_pick *pick);

#endif
