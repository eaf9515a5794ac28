/* index_inside.h - the tables of the index, for the files that read and write them */
#ifndef LEAT_CAS_INDEX_INSIDE_H
#define LEAT_CAS_INDEX_INSIDE_H

#include <lmdb.h>

#include "cas/inside.h"

/*	made      KEY                            struct leat_made_row, step NUL slice NUL
 *	stem      STEM, ~number, KEY             struct leat_stem_row: in this order, the newest comes first
 *	last      step NUL slice                 struct leat_made
 *	number    step NUL number                KEY
 *	next      step                           the next number
 *	maker     DIGEST                         struct leat_maker_row
 *	holds     DIGEST of a tree               digests of all in it
 *	learned   DIGEST of learned fields       name NUL value NUL ...
 *	stat      struct leat_stat_key           struct leat_stat_value
 *	meta      "version"                      text
 *
 * Numbers in keys are big-endian, so that they sort; rows are as this machine has them in memory. A name that is too
 * long for a key is cut, and its hash follows. */
enum leat_table {
	LEAT_TABLE_MADE,
	LEAT_TABLE_STEM,
	LEAT_TABLE_LAST,
	LEAT_TABLE_NUMBER,
	LEAT_TABLE_NEXT,
	LEAT_TABLE_MAKER,
	LEAT_TABLE_HOLDS,
	LEAT_TABLE_LEARNED,
	LEAT_TABLE_STAT,
	LEAT_TABLE_META,
	LEAT_TABLES
};

extern const char *const leat_table_names[LEAT_TABLES];
#define LEAT_INDEX_MAP ((size_t)16 << 30) /* of addresses; the file is as large as what is in it */

struct leat_made_row {
	struct leat_made made;
	struct leat_digest stem, log;
	double begun_s;
};
struct leat_stem_row {
	struct leat_made made;
	uint32_t used_day; /* since 1970 */
};
struct leat_maker_row {
	struct leat_digest key;
	double begun_s;    /* the first maker counts */
	uint8_t is_output; /* itself, not something in it */
};

struct leat_stem_key {
	uint8_t byte[2 * LEAT_SHA256_BYTES + 8];
};
void leat_stem_key(struct leat_stem_key *key, const struct leat_digest *stem, uint64_t number,
                   const struct leat_digest *made);

enum { LEAT_INDEX_KEY = 400 };
struct leat_index_key {
	uint8_t byte[LEAT_INDEX_KEY + LEAT_SHA256_BYTES + 9];
	size_t len;
};
/* step NUL rest */
void leat_index_key(struct leat_index_key *key, const char *step, const char *rest);
void leat_index_number_key(struct leat_index_key *key, const char *step, uint64_t number);

enum { LEAT_WAITING = 1024 };

struct leat_index {
	struct leat_mem *mem;
	MDB_env *env;
	MDB_dbi table[LEAT_TABLES];
	pthread_mutex_t lock; /* guards all that follows, and `env` of a reader, who may open another one */
	MDB_txn *read;        /* renewed for each look-up */
	bool is_temporary;    /* made from the manifests, in another folder */
	bool is_remade;       /* it was damaged, and was made again when it was opened */
	dev_t device;
	ino_t inode; /* of data.mdb */
	uint64_t checked_ns;

	/* Rows that wait to be written. */
	pthread_mutex_t waiting_lock;
	struct leat_waiting_stat {
		struct leat_stat_key key;
		struct leat_stat_value value;
	} stat[LEAT_WAITING];
	struct leat_stem_key used[LEAT_WAITING];
	size_t stats, uses;
};

/* Between these, `read` is a view of the index as it is now. False: there is none (*err). */
bool leat_index_look(struct leat_cas *cas, struct leat_err *err);
void leat_index_looked(struct leat_cas *cas);
int leat_index_get(struct leat_index *index, enum leat_table table, const void *key, size_t len, MDB_val *value);

enum leat_status leat_index_fail(struct leat_err *err, const struct leat_cas *cas, int failure, const char *doing);
enum leat_status leat_index_begin(struct leat_cas *cas, MDB_txn **txn, struct leat_err *err);
enum leat_status leat_index_commit(struct leat_cas *cas, MDB_txn *txn, struct leat_err *err);
/* Puts a manifest into an open transaction. `held` are the digests in its output, if that is a folder. */
struct leat_held {
	struct leat_digest *digest;
	size_t count, cap;
	bool complete; /* no tree in it is missing or damaged */
};
enum leat_status leat_index_put(struct leat_cas *cas, MDB_txn *txn, const struct leat_manifest *manifest,
                                const struct leat_held *held, struct leat_err *err);
enum leat_status leat_held_read(struct leat_cas *cas, const struct leat_manifest *manifest, struct leat_held *held,
                                struct leat_err *err);
/* Takes what a manifest put out again. The rows of numbers that were given stay. */
int leat_index_unput(struct leat_index *index, MDB_txn *txn, const struct leat_digest *key);
/* The step of a row of `made`; its slice follows. NULL: the row is damaged. */
const char *leat_row_names(const MDB_val *row);
uint32_t leat_today(void);

/* Fills an empty index from the manifests. */
enum leat_status leat_index_fill(struct leat_cas *cas, struct leat_err *err);
/* Throws the file away, and makes a new one from the manifests. Needs a store that nobody else uses. */
enum leat_status leat_index_remake(struct leat_cas *cas, struct leat_err *err);
/* Can LMDB read all of the index in `folder`? Another process tries. */
bool leat_index_is_sound(const char *folder);
/* A file that says: make the index again. Before changes that a kill could cut in half. */
enum leat_status leat_index_distrust(struct leat_cas *cas, struct leat_err *err);
void leat_index_trust(struct leat_cas *cas);
void leat_index_remove(struct leat_cas *cas);

#endif
