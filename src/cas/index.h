/* index.h - fast answers about manifests: an LMDB environment that can be made again from them
 *
 * Read by planning for each action, so a look-up costs about a microsecond and touches no file. */
#ifndef LEAT_CAS_INDEX_H
#define LEAT_CAS_INDEX_H

#include "cas/manifest.h"

/* What planning needs of a manifest. */
struct leat_made {
	struct leat_digest key;
	struct leat_digest learned; /* names the set of learned fields; all zero: none */
	struct leat_content output;
	uint64_t number;
	float seconds;
};

/* Calls `found` for the actions with this stem, newest first, until it returns true. */
enum leat_status leat_index_find(struct leat_cas *cas, const struct leat_digest *stem,
                                 bool (*found)(void *arg, const struct leat_made *made), void *arg,
                                 struct leat_err *err);
/* The learned fields of a set; free with leat_key_fields_free. Many actions share one. */
enum leat_status leat_index_learned(struct leat_cas *cas, const struct leat_digest *learned,
                                    struct leat_key_field **field, size_t *fields, struct leat_err *err);
void leat_key_fields_free(struct leat_key_field *field, size_t fields, struct leat_mem *mem);

/* The last action of a step and slice. False: there is none. */
bool leat_index_last(struct leat_cas *cas, const char *step, const char *slice, struct leat_made *made);
/* The action that made a blob or folder, or a folder in which it is. False: none did. */
bool leat_index_maker(struct leat_cas *cas, const struct leat_digest *content, struct leat_digest *key);
/* By step and number. */
bool leat_index_number(struct leat_cas *cas, const char *step, uint64_t number, struct leat_digest *key);
/* The next number for an action of this step, never given before. */
enum leat_status leat_index_next_number(struct leat_cas *cas, const char *step, uint64_t *number, struct leat_err *err);

/* Makes it again from the manifests. */
enum leat_status leat_index_rebuild(struct leat_cas *cas, struct leat_err *err);

#endif
