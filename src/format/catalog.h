/* catalog.h - data folders that a JSON file describes: reading it, and the files that it names
 *
 * What the JSON says is hostile: names that would lead out of the folder are refused, numbers have ranges.
 * The JSON library allocates by itself, for the time of open only. One thread. */
#ifndef LEAT_FORMAT_CATALOG_H
#define LEAT_FORMAT_CATALOG_H

#include <jansson.h>

#include "base/opt.h"
#include "store/store.h"

struct leat_catalog {
	struct leat_mem *mem;
	struct leat_stores *stores;
	char *base; /* what stands before the names of files: "path/" or "" */
	struct leat_strings paths;
	size_t cap;
};

void leat_catalog_init(struct leat_catalog *folder, struct leat_stores *stores, struct leat_mem *mem);
void leat_catalog_free(struct leat_catalog *folder);

/* Reads FOLDER/NAME. The first one read also says what `base` is. json_decref it. */
enum leat_status leat_catalog_json(struct leat_catalog *folder, const char *path, const char *name, json_t **root,
                                   struct leat_err *err);
/* Adds the file NAME of the folder to `paths`; names that are absolute, go up or are patterns are refused. */
enum leat_status leat_catalog_add(struct leat_catalog *folder, const char *name, struct leat_err *err);
/* Opens all that were added, in order. */
enum leat_status leat_catalog_open(const struct leat_catalog *folder, struct leat_files **files, struct leat_err *err);

/* A number of 0 to `most`, written as a number or, as protobuf does, as text. False: it is none. */
bool leat_json_count(const json_t *value, uint64_t most, uint64_t *count);
/* The text under `key`, or `otherwise` when there is none. */
const char *leat_json_text(const json_t *object, const char *key, const char *otherwise);

#endif
