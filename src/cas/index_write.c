/* index_write.c - enter manifests, give numbers, remember stats and uses
 *
 * Every manifest is its own transaction: without syncing that takes some microseconds, and what is recorded can be
 * found at once by all processes, also if this one is killed. Stats and uses wait until there are many of them. */
#include <errno.h>

#include "base/array.h"
#include "cas/index_inside.h"

enum { MAX_HOLDS = 4096 }; /* digests in a row of `holds`; of larger folders the trees are read */

enum leat_status
leat_index_begin(struct leat_cas *cas, MDB_txn **txn, struct leat_err *err)
{
	int failure = mdb_txn_begin(cas->index->env, NULL, 0, txn);

	return failure ? leat_index_fail(err, cas, failure, "write to the index") : LEAT_OK;
}

enum leat_status
leat_index_commit(struct leat_cas *cas, MDB_txn *txn, struct leat_err *err)
{
	int failure = mdb_txn_commit(txn);

	if (cas->run_fd >= 0)
		leat_sync_mark(cas);
	return failure ? leat_index_fail(err, cas, failure, "write to the index") : LEAT_OK;
}

/* One transaction, and the first failure in it. */
struct writer {
	struct leat_index *index;
	MDB_txn *txn;
	int failure;
};

static void
put(struct writer *w, enum leat_table table, const void *key, size_t key_len, const void *bytes, size_t len)
{
	MDB_val name = {key_len, (void *)(uintptr_t)key}, value = {len, (void *)(uintptr_t)bytes};

	if (!w->failure)
		w->failure = mdb_put(w->txn, w->index->table[table], &name, &value, 0);
}

static bool
get(struct writer *w, enum leat_table table, const void *key, size_t key_len, MDB_val *value)
{
	MDB_val name = {key_len, (void *)(uintptr_t)key};

	return !w->failure && mdb_get(w->txn, w->index->table[table], &name, value) == 0;
}

static bool
get_row(struct writer *w, enum leat_table table, const void *key, size_t key_len, void *row, size_t size)
{
	MDB_val value;
	bool found = get(w, table, key, key_len, &value) && value.mv_size >= size;

	if (found)
		memcpy(row, value.mv_data, size);
	return found;
}

static void
drop(struct writer *w, enum leat_table table, const void *key, size_t key_len)
{
	MDB_val name = {key_len, (void *)(uintptr_t)key};
	int failure = w->failure ? 0 : mdb_del(w->txn, w->index->table[table], &name, NULL);

	if (failure && failure != MDB_NOTFOUND)
		w->failure = failure;
}

static void
put_maker(struct writer *w, const struct leat_digest *digest, const struct leat_maker_row *row)
{
	struct leat_maker_row there;

	if (get_row(w, LEAT_TABLE_MAKER, digest, sizeof(*digest), &there, sizeof(there)) &&
	    (there.is_output > row->is_output || (there.is_output == row->is_output && there.begun_s <= row->begun_s)))
		return;
	put(w, LEAT_TABLE_MAKER, digest, sizeof(*digest), row, sizeof(*row));
}

static void
put_makers(struct writer *w, const struct leat_manifest *m, const struct leat_held *held)
{
	struct leat_maker_row row, there;

	memset(&row, 0, sizeof(row));
	row.key = m->key;
	row.begun_s = m->begun_s;
	row.is_output = 1;
	if (get_row(w, LEAT_TABLE_MAKER, &m->output.digest, sizeof(m->output.digest), &there, sizeof(there)) &&
	    there.is_output && there.begun_s <= row.begun_s)
		return; /* and so is all in it */
	put_maker(w, &m->output.digest, &row);
	row.is_output = 0;
	for (size_t i = 0; i < held->count; i++)
		put_maker(w, &held->digest[i], &row);
}

/* A row must name all in the folder, or the folder would count as there when it is not. */
static void
put_holds(struct writer *w, const struct leat_content *output, const struct leat_held *held)
{
	if (output->kind != LEAT_CONTENT_FOLDER)
		return;
	if (held->complete && held->count <= MAX_HOLDS)
		put(w, LEAT_TABLE_HOLDS, &output->digest, sizeof(output->digest), held->digest,
		    held->count * sizeof(*held->digest));
	else
		drop(w, LEAT_TABLE_HOLDS, &output->digest, sizeof(output->digest));
}

static void
put_numbers(struct writer *w, const struct leat_manifest *m, const struct leat_made *made)
{
	struct leat_index_key key;
	struct leat_made last;
	uint64_t next = 0;

	leat_index_key(&key, m->step, m->slice);
	if (!get_row(w, LEAT_TABLE_LAST, key.byte, key.len, &last, sizeof(last)) || last.number <= made->number)
		put(w, LEAT_TABLE_LAST, key.byte, key.len, made, sizeof(*made));
	leat_index_number_key(&key, m->step, m->number);
	put(w, LEAT_TABLE_NUMBER, key.byte, key.len, &m->key, sizeof(m->key));
	leat_index_key(&key, m->step, "");
	get_row(w, LEAT_TABLE_NEXT, key.byte, key.len, &next, sizeof(next));
	if (next <= m->number && m->number < LEAT_NUMBER_MAX / 2) {
		next = m->number + 1;
		put(w, LEAT_TABLE_NEXT, key.byte, key.len, &next, sizeof(next));
	}
}

static void
put_learned(struct writer *w, const struct leat_manifest *m, const struct leat_digest *learned, struct leat_str *text)
{
	MDB_val there;

	if (m->learned == 0 || get(w, LEAT_TABLE_LEARNED, learned, sizeof(*learned), &there))
		return;
	for (size_t i = m->fields - m->learned; i < m->fields; i++) {
		leat_str_addn(text, m->field[i].name, strlen(m->field[i].name) + 1);
		leat_str_addn(text, m->field[i].value, strlen(m->field[i].value) + 1);
	}
	if (text->failed)
		w->failure = w->failure ? w->failure : ENOMEM;
	else
		put(w, LEAT_TABLE_LEARNED, learned, sizeof(*learned), text->text, text->len);
}

static void
put_made(struct writer *w, const struct leat_manifest *m, const struct leat_made_row *row, struct leat_str *text)
{
	text->len = 0;
	leat_str_addn(text, row, sizeof(*row));
	leat_str_addn(text, m->step, strlen(m->step) + 1);
	leat_str_addn(text, m->slice, strlen(m->slice) + 1);
	if (text->failed)
		w->failure = w->failure ? w->failure : ENOMEM;
	else
		put(w, LEAT_TABLE_MADE, &m->key, sizeof(m->key), text->text, text->len);
}

static enum leat_status
fill_row(const struct leat_manifest *m, struct leat_made_row *row, struct leat_err *err)
{
	size_t before = m->fields - m->learned;
	enum leat_status status;

	memset(row, 0, sizeof(*row)); /* padding, too */
	row->made.key = m->key;
	row->made.output.digest = m->output.digest;
	row->made.output.bytes = m->output.bytes;
	row->made.output.kind = m->output.kind;
	row->made.number = m->number;
	row->made.seconds = (float)m->seconds;
	row->log = m->log;
	row->begun_s = m->begun_s;
	status = leat_key_of(m->field, before, &row->stem, err);
	if (status == LEAT_OK && m->learned > 0)
		status = leat_key_of(m->field + before, m->learned, &row->made.learned, err);
	return status;
}

enum leat_status
leat_index_put(struct leat_cas *cas, MDB_txn *txn, const struct leat_manifest *m, const struct leat_held *held,
               struct leat_err *err)
{
	struct writer w = {cas->index, txn, 0};
	struct leat_made_row row, old;
	struct leat_stem_row stem_row;
	struct leat_stem_key stem;
	struct leat_str text;
	enum leat_status status = fill_row(m, &row, err);

	if (status != LEAT_OK)
		return status;
	if (get_row(&w, LEAT_TABLE_MADE, &m->key, sizeof(m->key), &old, sizeof(old)) && memcmp(&old, &row, sizeof(row)))
		w.failure = leat_index_unput(cas->index, txn, &m->key); /* it was replaced */
	leat_str_init(&text, cas->mem, LEAT_MANIFEST_MAX);
	memset(&stem_row, 0, sizeof(stem_row));
	stem_row.made = row.made;
	stem_row.used_day = (uint32_t)(m->begun_s > 0 && m->begun_s < 1e14 ? m->begun_s / 86400 : 0);
	leat_stem_key(&stem, &row.stem, m->number, &m->key);
	put(&w, LEAT_TABLE_STEM, &stem, sizeof(stem), &stem_row, sizeof(stem_row));
	put_learned(&w, m, &row.made.learned, &text);
	put_made(&w, m, &row, &text);
	put_numbers(&w, m, &row.made);
	put_makers(&w, m, held);
	put_holds(&w, &m->output, held);
	leat_str_free(&text);
	return w.failure ? leat_index_fail(err, cas, w.failure, "write to the index") : LEAT_OK;
}

static void
drop_maker(struct writer *w, const struct leat_digest *digest, const struct leat_digest *key)
{
	struct leat_maker_row there;

	if (get_row(w, LEAT_TABLE_MAKER, digest, sizeof(*digest), &there, sizeof(there)) &&
	    leat_digest_equal(&there.key, key))
		drop(w, LEAT_TABLE_MAKER, digest, sizeof(*digest));
}

static void
drop_makers(struct writer *w, const struct leat_made *made)
{
	MDB_val held;

	drop_maker(w, &made->output.digest, &made->key);
	for (size_t i = 0;; i += LEAT_SHA256_BYTES) {
		struct leat_digest digest;

		/* Asked for each time, because a transaction moves its values. */
		if (!get(w, LEAT_TABLE_HOLDS, &made->output.digest, sizeof(made->output.digest), &held) ||
		    i + sizeof(digest) > held.mv_size)
			return;
		memcpy(digest.byte, (char *)held.mv_data + i, sizeof(digest));
		drop_maker(w, &digest, &made->key);
	}
}

const char *
leat_row_names(const MDB_val *row)
{
	const char *text = (const char *)row->mv_data + sizeof(struct leat_made_row);
	size_t len = row->mv_size - sizeof(struct leat_made_row);
	const char *end = row->mv_size > sizeof(struct leat_made_row) ? memchr(text, '\0', len) : NULL;

	return end && text[len - 1] == '\0' && end + 1 < text + len ? text : NULL;
}

int
leat_index_unput(struct leat_index *index, MDB_txn *txn, const struct leat_digest *key)
{
	struct writer w = {index, txn, 0};
	struct leat_index_key last_key, number_key;
	struct leat_made_row row;
	struct leat_made last;
	struct leat_digest numbered;
	struct leat_stem_key stem;
	const char *step;
	MDB_val value;

	if (!get(&w, LEAT_TABLE_MADE, key, sizeof(*key), &value) || !(step = leat_row_names(&value)))
		return 0;
	memcpy(&row, value.mv_data, sizeof(row));
	leat_index_key(&last_key, step, step + strlen(step) + 1);
	leat_index_number_key(&number_key, step, row.made.number);
	if (get_row(&w, LEAT_TABLE_LAST, last_key.byte, last_key.len, &last, sizeof(last)) &&
	    leat_digest_equal(&last.key, key))
		drop(&w, LEAT_TABLE_LAST, last_key.byte, last_key.len);
	if (get_row(&w, LEAT_TABLE_NUMBER, number_key.byte, number_key.len, &numbered, sizeof(numbered)) &&
	    leat_digest_equal(&numbered, key))
		drop(&w, LEAT_TABLE_NUMBER, number_key.byte, number_key.len);
	leat_stem_key(&stem, &row.stem, row.made.number, key);
	drop(&w, LEAT_TABLE_STEM, &stem, sizeof(stem));
	drop_makers(&w, &row.made);
	drop(&w, LEAT_TABLE_MADE, key, sizeof(*key));
	return w.failure;
}

static enum leat_status
add_held(void *arg, const struct leat_content *content, struct leat_err *err)
{
	struct {
		struct leat_mem *mem;
		struct leat_held *held;
	} *to = arg;
	struct leat_held *held = to->held;
	enum leat_status status =
		LEAT_GROW(to->mem, held->digest, held->cap, held->count + 1, SIZE_MAX, "a folder", err);

	if (status == LEAT_OK)
		held->digest[held->count++] = content->digest;
	return status;
}

enum leat_status
leat_held_read(struct leat_cas *cas, const struct leat_manifest *manifest, struct leat_held *held, struct leat_err *err)
{
	struct {
		struct leat_mem *mem;
		struct leat_held *held;
	} to = {cas->mem, held};
	const struct leat_tree_walk walk = {cas, add_held, &to};
	struct leat_err why;
	enum leat_status status;

	held->count = 0;
	held->complete = true;
	leat_err_clear(&why);
	if (manifest->output.kind != LEAT_CONTENT_FOLDER)
		return LEAT_OK;
	status = leat_tree_walk(&walk, &manifest->output.digest, &why);
	held->complete = status == LEAT_OK;
	return status == LEAT_NOMEM ? leat_fail_as(err, &why) : LEAT_OK;
}

/* Is exactly this in the index, with all that its output holds? */
static bool
is_entered(struct leat_cas *cas, const struct leat_manifest *manifest)
{
	const struct leat_content *output = &manifest->output;
	struct leat_made_row row;
	MDB_val value;
	bool same;

	if (!leat_index_look(cas, NULL))
		return false;
	same = leat_index_get(cas->index, LEAT_TABLE_MADE, &manifest->key, sizeof(manifest->key), &value) == 0 &&
	       value.mv_size >= sizeof(row);
	if (same)
		memcpy(&row, value.mv_data, sizeof(row));
	if (same && output->kind == LEAT_CONTENT_FOLDER)
		same = leat_index_get(cas->index, LEAT_TABLE_HOLDS, &output->digest, sizeof(output->digest), &value) ==
		       0;
	leat_index_looked(cas);
	return same && row.made.number == manifest->number && leat_content_equal(&row.made.output, output);
}

enum leat_status
leat_index_enter(struct leat_cas *cas, const struct leat_manifest *manifest, struct leat_err *err)
{
	struct leat_held held = {0};
	MDB_txn *txn = NULL;
	enum leat_status status;

	if (is_entered(cas, manifest))
		return LEAT_OK;
	status = leat_held_read(cas, manifest, &held, err);
	if (status == LEAT_OK)
		status = leat_index_begin(cas, &txn, err);
	if (status == LEAT_OK) {
		status = leat_index_put(cas, txn, manifest, &held, err);
		if (status == LEAT_OK)
			status = leat_index_commit(cas, txn, err);
		else
			mdb_txn_abort(txn);
	}
	leat_free(cas->mem, held.digest);
	return status;
}

enum leat_status
leat_index_next_number(struct leat_cas *cas, const char *step, uint64_t *number, struct leat_err *err)
{
	struct writer w = {.index = cas->index};
	struct leat_index_key key;
	uint64_t next;
	enum leat_status status = leat_cas_need_run(cas, err);

	*number = 1;
	if (status == LEAT_OK)
		status = leat_index_begin(cas, &w.txn, err);
	if (status != LEAT_OK)
		return status;
	leat_index_key(&key, step, "");
	get_row(&w, LEAT_TABLE_NEXT, key.byte, key.len, number, sizeof(*number));
	next = *number + 1;
	put(&w, LEAT_TABLE_NEXT, key.byte, key.len, &next, sizeof(next));
	if (!w.failure)
		return leat_index_commit(cas, w.txn, err);
	mdb_txn_abort(w.txn);
	return leat_index_fail(err, cas, w.failure, "write to the index");
}

void
leat_index_stat_set(struct leat_cas *cas, const struct leat_stat_key *key, const struct leat_stat_value *value)
{
	struct leat_index *index = cas->index;
	bool full;

	if (cas->mode != LEAT_CAS_WRITE)
		return;
	pthread_mutex_lock(&index->waiting_lock);
	if (index->stats < LEAT_WAITING)
		index->stat[index->stats++] = (struct leat_waiting_stat){*key, *value};
	full = index->stats == LEAT_WAITING;
	pthread_mutex_unlock(&index->waiting_lock);
	if (full)
		leat_index_flush(cas);
}

static void
put_waiting(struct writer *w)
{
	struct leat_index *index = w->index;
	struct leat_stem_row row;

	for (size_t i = 0; i < index->stats; i++)
		put(w, LEAT_TABLE_STAT, &index->stat[i].key, sizeof(index->stat[i].key), &index->stat[i].value,
		    sizeof(index->stat[i].value));
	for (size_t i = 0; i < index->uses; i++)
		if (get_row(w, LEAT_TABLE_STEM, &index->used[i], sizeof(index->used[i]), &row, sizeof(row))) {
			row.used_day = leat_today();
			put(w, LEAT_TABLE_STEM, &index->used[i], sizeof(index->used[i]), &row, sizeof(row));
		}
}

void
leat_index_flush(struct leat_cas *cas)
{
	struct leat_index *index = cas->index;
	struct writer w = {.index = index};

	if (!index || cas->run_fd < 0)
		return;
	pthread_mutex_lock(&index->waiting_lock);
	if (index->stats + index->uses > 0 && leat_index_begin(cas, &w.txn, NULL) == LEAT_OK) {
		put_waiting(&w);
		if (w.failure)
			mdb_txn_abort(w.txn);
		else
			leat_index_commit(cas, w.txn, NULL);
	}
	/* What could not be written is only slower next time. */
	index->stats = index->uses = 0;
	pthread_mutex_unlock(&index->waiting_lock);
}
