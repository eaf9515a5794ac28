/* sidecar.h - arrays derived from the data and saved next to it, so that they are computed only once
 *
 * A sidecar holds a few arrays, *sections*, whose meaning is up to the source that writes it. The
 * file is stored where an index would be (beside.h). Numbers are in native byte order.
 * Layout: struct leat_sidecar_head, the size of each section (8 bytes each), then the
 * sections, each aligned to 8 bytes.
 *
 * A loaded sidecar has the right kind, key, lengths and checksum, and the source's `fault` has
 * validated it against the current data.
 *
 * All functions: any thread, on different sidecars. */
#ifndef LEAT_FORMAT_SIDECAR_H
#define LEAT_FORMAT_SIDECAR_H

#include "base/err.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "format/beside.h"
#include "store/store.h"

#define LEAT_SIDECAR_MAGIC "LEATSIDE"

enum { LEAT_SIDECAR_VERSION = 2, LEAT_SIDECAR_SECTIONS = 16 + 2 * LEAT_MAX_FIELDS };

struct leat_sidecar_head {
	char magic[8];
	uint32_t version;
	uint32_t crc; /* CRC-32C of everything after it */
	char kind[8]; /* padded with NUL */
	uint64_t sections;
	uint8_t key[LEAT_SHA256_BYTES]; /* hash of the inputs known in advance */
};

struct leat_sidecar {
	struct leat_mem *mem;
	size_t sections;
	struct leat_section {
		const void *data; /* 8-byte aligned */
		uint64_t bytes;
		void *block; /* owned memory; NULL if loaded */
	} section[LEAT_SIDECAR_SECTIONS];
	char *path;  /* of the file; NULL: not saved */
	void *bytes; /* contents of the loaded file */
};

/* Identifies a sidecar. */
struct leat_sidecar_of {
	const char *kind;         /* at most 8 characters; change it when the meaning of the sections changes */
	struct leat_store *store; /* of the data */
	const char *data;         /* an object or a folder */
	uint8_t key[LEAT_SHA256_BYTES];
	enum leat_beside_place place;
	/* Validates the sections: returns what is wrong in a few words, NULL if valid. *stale: they were valid for an
	 * earlier version of the data. */
	const char *(*fault)(void *arg, const struct leat_sidecar *sidecar, bool *stale);
	void *arg;
};

/* LEAT_AGAIN (no error text): no valid sidecar, build one; the reason is logged. */
enum leat_status leat_sidecar_load(struct leat_sidecar *sidecar, const struct leat_sidecar_of *of, struct leat_mem *mem,
                                   const struct leat_log *log, struct leat_err *err);

/* Building: init, then add each section in order. The sidecar takes ownership of each block, which may move. */
void leat_sidecar_init(struct leat_sidecar *sidecar, struct leat_mem *mem);
void leat_sidecar_add_take(struct leat_sidecar *sidecar, void *block, uint64_t bytes);

/* Saves the sidecar. A reader can carry on without; `err` says why saving failed. */
enum leat_status leat_sidecar_save(struct leat_sidecar *sidecar, const struct leat_sidecar_of *of,
                                   struct leat_err *err);

/* Removes the file of a sidecar that is out of date; `store` is the data's. False: it is still there. */
bool leat_sidecar_remove(const struct leat_sidecar *sidecar, struct leat_store *store);

void leat_sidecar_free(struct leat_sidecar *sidecar); /* accepts a zeroed one */

/* Points the sections into the bytes of a file, 8-byte aligned. Returns what is wrong, as `fault` does. */
const char *leat_sidecar_read(struct leat_sidecar *sidecar, const struct leat_sidecar_of *of, const void *bytes,
                              size_t len, bool *stale);
uint32_t leat_sidecar_crc(const void *bytes, size_t len); /* the header's crc for a file */

#endif
