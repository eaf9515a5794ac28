/* sample.h - a sample in progress, and its schema: what is known of its fields in advance */
#ifndef LEAT_FORMAT_SAMPLE_H
#define LEAT_FORMAT_SAMPLE_H

#include "base/err.h"
#include "base/mem.h"

/* Order of an image's dimensions; NONE: not an image. */
enum leat_layout { LEAT_LAYOUT_NONE, LEAT_HWC, LEAT_CHW };

/* What is known about a field before samples are read. */
struct leat_schema_entry {
	struct leat_field field;
	enum leat_layout layout;
	bool outside_payload;  /* no element comes from the payload; the source supplies them, such as a file name */
	bool unbounded;        /* ragged, and no length of the payload bounds its size: a function made it */
	size_t extra_elements; /* elements of a sample that may come from elsewhere, such as a default */
};

struct leat_schema {
	int count, capacity;
	struct leat_schema_entry *entry;
};

/* Empty, with room for `capacity` fields. */
enum leat_status leat_schema_init(struct leat_schema *schema, int capacity, struct leat_mem *mem, struct leat_err *err);
/* Copies the fields of `from`, with room for at least `capacity`. */
enum leat_status leat_schema_copy(struct leat_schema *to, const struct leat_schema *from, int capacity,
                                  struct leat_mem *mem, struct leat_err *err);
void leat_schema_trim(struct leat_schema *schema, struct leat_mem *mem); /* releases unused room */
void leat_schema_free(struct leat_schema *schema, struct leat_mem *mem); /* accepts a zeroed one */

int leat_schema_find(const struct leat_schema *schema, const char *name); /* -1: none */
/* Adds a scalar field. NULL: the name is a duplicate or too long, or the schema is full. */
struct leat_field *leat_schema_add(struct leat_schema *schema, const char *name, enum leat_dtype dtype);
void leat_schema_remove(struct leat_schema *schema, int i);
/* Finds a field by name. LEAT_SPEC if there is none; the error suggests the nearest name or lists them all. */
enum leat_status leat_schema_need(const struct leat_schema *schema, const char *name, int *i, struct leat_err *err);
bool leat_field_is_static(const struct leat_field *field);
int64_t leat_field_elements(const struct leat_field *field); /* per sample; -1: not static, or beyond int64 */
/* Is it an image? Three dimensions, of which the last, or else the first, is a plausible channel count. */
enum leat_layout leat_field_layout(const struct leat_field *field);
/* Formats a field as "uint8[?, ?, 3]"; returns buf. */
char *leat_field_format(const struct leat_field *field, char *buf, size_t cap);

/* One field of one sample. The data is in the fetched bytes, the worker's scratch or the slot, and only this sample
 * uses it; or it is `borrowed` from shared memory, such as a cache or a mapped file. The engine copies borrowed data
 * before an op works in place. */
struct leat_datum {
	void *data;
	enum leat_dtype dtype;
	int ndim;
	int64_t shape[LEAT_MAX_DIMS]; /* no unknown dims */
	bool borrowed;                /* shared memory: read-only */
};

int64_t leat_datum_elements(const struct leat_datum *datum); /* -1 beyond int64 */
size_t leat_datum_bytes(const struct leat_datum *datum);     /* SIZE_MAX on overflow */

struct leat_sample {
	int count;
	struct leat_datum field[LEAT_MAX_FIELDS]; /* as in the schema at this op */
};

/* A selection and reordering of fields: new field i is old field from[i]. Each is used at most once. */
struct leat_pick {
	int count, from[LEAT_MAX_FIELDS];
};

void leat_schema_pick(struct leat_schema *schema, const struct leat_pick *pick);
void leat_sample_pick(struct leat_sample *sample, const struct leat_pick *pick);

#endif
