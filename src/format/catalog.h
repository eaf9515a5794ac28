/* catalog.h - data folders described by a JSON file: read it, and open the files it lists
 *
 * The JSON is untrusted: names that lead out of the folder are rejected, numbers are range-checked.
 * The JSON library uses its own allocator, but only during open. One thread. */
#ifndef LEAT_FORMAT_CATALOG_H
#define LEAT_FORMAT_CATALOG_H

#include <jansson.h>

#include "base/opt.h"
#include "store/store.h"

struct leat_catalog {
	struct leat_mem *mem;
	struct leat_stores *stores;
	char *base;     /* prefix of file names: "path/" or "" */
	uint64_t token; /* of the JSON files read so far */
	struct leat_strings paths;
	size_t cap;
};

void leat_catalog_init(struct leat_catalog *folder, struct leat_stores *stores, struct leat_mem *mem);
void leat_catalog_free(struct leat_catalog *folder);

/* Reads FOLDER/NAME. The first call also sets `base`. The caller calls json_decref on *root. */
enum leat_status leat_catalog_json(struct leat_catalog *folder, const char *path, const char *name, json_t **root,
                                   struct leat_err *err);
/* Adds file NAME of the folder to `paths`. Absolute names, "..", and patterns are rejected. */
enum leat_status leat_catalog_add(struct leat_catalog *folder, const char *name, struct leat_err *err);
/* Opens all added files, in order. */
enum leat_status leat_catalog_open(const struct leat_catalog *folder, struct leat_files **files, struct leat_err *err);

/* Reads a number in [0, most], written as a number or, as protobuf does, as text. False: it isn't one. */
bool leat_json_count(const json_t *value, uint64_t most, uint64_t *count);
/* The text under `key`, or `otherwise` if there is none. */
const char *leat_json_text(const json_t *object, const char *key, const char *otherwise);

#endif
