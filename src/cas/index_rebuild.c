/* index_rebuild.c - make the index from the manifests
 *
 * What only the index knew is lost: on which day results were used, hashes of the user's files, and numbers of actions
 * that failed. If it can be read, numbers and hashes are kept. */
#include "cas/index_inside.h"

enum { AT_ONCE = 1000 }; /* manifests in a transaction */

struct filler {
	struct leat_cas *cas;
	MDB_txn *txn;
	struct leat_held held;
	size_t in_txn;
};

static enum leat_status
commit(struct filler *filler, struct leat_err *err)
{
	MDB_txn *txn = filler->txn;

	filler->txn = NULL;
	filler->in_txn = 0;
	return txn ? leat_index_commit(filler->cas, txn, err) : LEAT_OK;
}

static enum leat_status
put_manifest(struct filler *filler, const struct leat_manifest *manifest, struct leat_err *err)
{
	enum leat_status status = leat_held_read(filler->cas, manifest, &filler->held, err);

	if (status != LEAT_OK)
		return status;
	status = filler->txn ? LEAT_OK : leat_index_begin(filler->cas, &filler->txn, err);
	if (status == LEAT_OK)
		status = leat_index_put(filler->cas, filler->txn, manifest, &filler->held, err);
	if (status == LEAT_OK && ++filler->in_txn == AT_ONCE)
		status = commit(filler, err);
	return status;
}

static enum leat_status
add_manifest(void *arg, const struct leat_digest *key, struct leat_err *err)
{
	struct filler *filler = arg;
	struct leat_manifest *manifest;
	enum leat_status status = leat_cas_manifest(filler->cas, key, &manifest, NULL);

	if (status == LEAT_DATA) /* damaged: fsck says so */
		return LEAT_OK;
	if (status != LEAT_OK)
		return leat_fail(err, status, "cannot read the manifests of '%s': %s", filler->cas->folder,
		                 leat_status_text(status));
	status = put_manifest(filler, manifest, err);
	leat_manifest_free(manifest, filler->cas->mem);
	return status;
}

enum leat_status
leat_index_fill(struct leat_cas *cas, struct leat_err *err)
{
	struct filler filler = {.cas = cas};
	enum leat_status status = leat_cas_each(cas, "act", add_manifest, &filler, err);

	if (status == LEAT_OK)
		status = commit(&filler, err);
	if (filler.txn)
		mdb_txn_abort(filler.txn);
	leat_free(cas->mem, filler.held.digest);
	return status;
}

static enum leat_status
empty(struct leat_cas *cas, struct leat_err *err)
{
	MDB_txn *txn;
	int failure = 0;
	enum leat_status status = leat_index_begin(cas, &txn, err);

	if (status != LEAT_OK)
		return status;
	for (enum leat_table i = 0; i < LEAT_TABLES && !failure; i++)
		if (i != LEAT_TABLE_NEXT && i != LEAT_TABLE_STAT && i != LEAT_TABLE_META)
			failure = mdb_drop(txn, cas->index->table[i], 0);
	if (!failure)
		return leat_index_commit(cas, txn, err);
	mdb_txn_abort(txn);
	return leat_index_fail(err, cas, failure, "make the index again");
}

enum leat_status
leat_index_rebuild(struct leat_cas *cas, struct leat_err *err)
{
	enum leat_status status;

	if (cas->mode != LEAT_CAS_WRITE)
		return leat_fail(err, LEAT_INVALID, "the store '%s' is open for reading", cas->folder);
	status = leat_index_distrust(cas, err);
	if (status == LEAT_OK)
		status = empty(cas, err);
	if (status == LEAT_OK)
		status = leat_index_fill(cas, err);
	if (status == LEAT_OK)
		leat_index_trust(cas);
	return status;
}
