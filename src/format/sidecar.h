/* sidecar.h - arrays that were made of the data, kept beside it so that they need not be made again
 *
 * A sidecar is a few arrays, *sections*, whose meaning is their maker's. The file is
 * kept where an index is (beside.h). Numbers have the machine's byte order.
 * Layout: struct leat_sidecar_head, the bytes of each section (8 bytes each), then the
 * sections, each begun at a multiple of 8.
 *
 * What is loaded has the right kind, key, lengths and checksum, and its maker has seen that
 * it makes sense and fits the data as it is now.
 *
 * All functions: any thread, on different sidecars. */
#ifndef LEAT_FORMAT_SIDECAR_H
#define LEAT_FORMAT_SIDECAR_H

#include "base/err.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "store/store.h"

#define LEAT_SIDECAR_MAGIC "LEATSIDE"

enum { LEAT_SIDECAR_VERSION = 1, LEAT_SIDECAR_SECTIONS = 16 + 2 * LEAT_MAX_FIELDS };

struct leat_sidecar_head {
	char magic[8];
	uint32_t version;
	uint32_t crc; /* CRC-32C of all that follows */
	char kind[8]; /* padded with NUL */
	uint64_t sections;
	uint8_t key[LEAT_SHA256_BYTES]; /* of what it was made, as far as that is known beforehand */
};

struct leat_sidecar {
	struct leat_mem *mem;
	size_t sections;
	struct leat_section {
		const void *data; /* 8-byte aligned */
		uint64_t bytes;
		void *block; /* its memory, unless it was loaded */
	} section[LEAT_SIDECAR_SECTIONS];
	char *path;  /* where it is; NULL: nowhere yet */
	void *bytes; /* of the file it was loaded from */
};

/* What a sidecar belongs to. */
struct leat_sidecar_of {
	const char *kind;         /* at most 8 characters; another when the meaning of the sections changes */
	struct leat_store *store; /* of the data */
	const char *data;         /* an object or a folder */
	uint8_t key[LEAT_SHA256_BYTES];
	/* What is wrong with the sections, in a few words; NULL: nothing. *stale: they were right for the data as it
	 * was before. */
	const char *(*fault)(void *arg, const struct leat_sidecar *sidecar, bool *stale);
	void *arg;
};

/* LEAT_AGAIN (no error text): there is none that can be trusted, it has to be made; why is logged. */
enum leat_status leat_sidecar_load(struct leat_sidecar *sidecar, const struct leat_sidecar_of *of, struct leat_mem *mem,
                                   const struct leat_log *log, struct leat_err *err);

/* Making one: init, add each section in order. A block that is taken is freed with the sidecar. */
void leat_sidecar_init(struct leat_sidecar *sidecar, struct leat_mem *mem);
void leat_sidecar_add_take(struct leat_sidecar *sidecar, void *block, uint64_t bytes);

/* Writes it to its place. When it cannot be saved, which is no failure for a reader, `err` says why. */
enum leat_status leat_sidecar_save(struct leat_sidecar *sidecar, const struct leat_sidecar_of *of,
                                   struct leat_err *err);

void leat_sidecar_free(struct leat_sidecar *sidecar); /* takes a zeroed one */

/* Points the sections into the bytes of a file, 8-byte aligned, and says what is wrong with them, as `fault` does. */
const char *leat_sidecar_read(struct leat_sidecar *sidecar, const struct leat_sidecar_of *of, const void *bytes,
                              size_t len, bool *stale);
uint32_t leat_sidecar_crc(const void *bytes, size_t len); /* of a file, for its head */

#endif
