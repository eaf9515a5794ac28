/* index_find.c - questions to the index
 *
 * Nothing is called back while the index is locked: answers are copied first. */
#include <errno.h>
#include <time.h>

#include "cas/index_inside.h"

enum { AT_ONCE = 16 };

uint32_t
leat_today(void)
{
	return (uint32_t)(time(NULL) / 86400);
}

static void
store_big_endian(uint8_t *to, uint64_t value)
{
	for (int i = 7; i >= 0; i--, value >>= 8)
		to[i] = (uint8_t)value;
}

void
leat_stem_key(struct leat_stem_key *key, const struct leat_digest *stem, uint64_t number,
              const struct leat_digest *made)
{
	memcpy(key->byte, stem->byte, sizeof(stem->byte));
	store_big_endian(key->byte + sizeof(stem->byte), ~number);
	memcpy(key->byte + sizeof(stem->byte) + 8, made->byte, sizeof(made->byte));
}

void
leat_index_key(struct leat_index_key *key, const char *step, const char *rest)
{
	size_t step_len = strlen(step) + 1, len = step_len + strlen(rest);

	if (len <= LEAT_INDEX_KEY) {
		memcpy(key->byte, step, step_len);
		memcpy(key->byte + step_len, rest, len - step_len);
		key->len = len;
		return;
	}
	/* The hash is of both texts, so it does not matter where they are cut. */
	struct leat_digest digest;
	const struct leat_key_field both = {step, rest};

	memset(key->byte, 0, LEAT_INDEX_KEY);
	memcpy(key->byte, step, step_len < LEAT_INDEX_KEY ? step_len : LEAT_INDEX_KEY);
	if (leat_key_of(&both, 1, &digest, NULL) != LEAT_OK)
		memset(&digest, 0, sizeof(digest));
	memcpy(key->byte + LEAT_INDEX_KEY, digest.byte, sizeof(digest.byte));
	key->len = LEAT_INDEX_KEY + sizeof(digest.byte);
}

void
leat_index_number_key(struct leat_index_key *key, const char *step, uint64_t number)
{
	leat_index_key(key, step, "");
	store_big_endian(key->byte + key->len, number);
	key->len += 8;
}

struct found {
	struct leat_stem_key key;
	struct leat_stem_row row;
};

/* Copies rows of the stem that come after `last` (NULL: all). */
static size_t
copy_rows(struct leat_cas *cas, const struct leat_digest *stem, const struct leat_stem_key *last,
          struct found found[AT_ONCE], struct leat_err *err)
{
	struct leat_index *index = cas->index;
	MDB_val key = {last ? sizeof(*last) : sizeof(*stem), (void *)(uintptr_t)(last ? (const void *)last : stem)},
		value;
	MDB_cursor *cursor;
	size_t count = 0;
	int failure;

	if (!leat_index_look(cas, err))
		return 0;
	failure = mdb_cursor_open(index->read, index->table[LEAT_TABLE_STEM], &cursor);
	if (!failure) {
		failure = mdb_cursor_get(cursor, &key, &value, MDB_SET_RANGE);
		if (!failure && last && !memcmp(key.mv_data, last, sizeof(*last)))
			failure = mdb_cursor_get(cursor, &key, &value, MDB_NEXT);
		for (; !failure && count < AT_ONCE && key.mv_size == sizeof(found->key) &&
		       value.mv_size == sizeof(found->row) && !memcmp(key.mv_data, stem, sizeof(*stem));
		     count++) {
			memcpy(&found[count].key, key.mv_data, sizeof(found->key));
			memcpy(&found[count].row, value.mv_data, sizeof(found->row));
			failure = mdb_cursor_get(cursor, &key, &value, MDB_NEXT);
		}
		mdb_cursor_close(cursor);
	}
	leat_index_looked(cas);
	return count;
}

/* gc goes by the day on which a result was used last. */
static void
note_use(struct leat_cas *cas, const struct found *found)
{
	struct leat_index *index = cas->index;
	bool full;

	if (found->row.used_day == leat_today() || cas->run_fd < 0)
		return;
	pthread_mutex_lock(&index->waiting_lock);
	full = index->uses == LEAT_WAITING;
	if (!full)
		index->used[index->uses++] = found->key;
	pthread_mutex_unlock(&index->waiting_lock);
	if (full) {
		leat_index_flush(cas);
		note_use(cas, found);
	}
}

enum leat_status
leat_index_find(struct leat_cas *cas, const struct leat_digest *stem,
                bool (*accept)(void *arg, const struct leat_made *made), void *arg, struct leat_err *err)
{
	struct found found[AT_ONCE];
	struct leat_err failed;
	size_t count;

	leat_err_clear(&failed);
	for (const struct leat_stem_key *last = NULL;; last = &found[AT_ONCE - 1].key) {
		count = copy_rows(cas, stem, last, found, &failed);
		if (failed.status != LEAT_OK)
			return leat_fail_as(err, &failed);
		for (size_t i = 0; i < count; i++)
			if (accept(arg, &found[i].row.made)) {
				note_use(cas, &found[i]);
				return LEAT_OK;
			}
		if (count < AT_ONCE)
			return LEAT_OK;
	}
}

/* A copy of the value of a key; false: there is none, or it has another size. */
static bool
copy_value(struct leat_cas *cas, enum leat_table table, const void *key, size_t len, void *out, size_t size)
{
	MDB_val value;
	bool found;

	if (!leat_index_look(cas, NULL))
		return false;
	found = leat_index_get(cas->index, table, key, len, &value) == 0 && value.mv_size == size;
	if (found)
		memcpy(out, value.mv_data, size);
	leat_index_looked(cas);
	return found;
}

bool
leat_index_last(struct leat_cas *cas, const char *step, const char *slice, struct leat_made *made)
{
	struct leat_index_key key;

	leat_index_key(&key, step, slice);
	return copy_value(cas, LEAT_TABLE_LAST, key.byte, key.len, made, sizeof(*made));
}

bool
leat_index_maker(struct leat_cas *cas, const struct leat_digest *content, struct leat_digest *key)
{
	struct leat_maker_row row;
	bool found = copy_value(cas, LEAT_TABLE_MAKER, content, sizeof(*content), &row, sizeof(row));

	if (found)
		*key = row.key;
	return found;
}

bool
leat_index_number(struct leat_cas *cas, const char *step, uint64_t number, struct leat_digest *key)
{
	struct leat_index_key name;

	leat_index_number_key(&name, step, number);
	return copy_value(cas, LEAT_TABLE_NUMBER, name.byte, name.len, key, sizeof(*key));
}

bool
leat_index_stat(struct leat_cas *cas, const struct leat_stat_key *key, struct leat_stat_value *value)
{
	return copy_value(cas, LEAT_TABLE_STAT, key, sizeof(*key), value, sizeof(*value));
}

/* A copy of a value of any size, freed with leat_free; NULL and LEAT_OK: there is none. */
static enum leat_status
copy_long(struct leat_cas *cas, enum leat_table table, const struct leat_digest *key, char **out, size_t *len,
          struct leat_err *err)
{
	MDB_val value;
	enum leat_status status = LEAT_OK;

	*out = NULL;
	if (!leat_index_look(cas, err))
		return LEAT_DATA;
	if (leat_index_get(cas->index, table, key, sizeof(*key), &value) == 0) {
		*len = value.mv_size;
		*out = leat_alloc(cas->mem, value.mv_size + 1);
		if (*out)
			memcpy(*out, value.mv_data, value.mv_size);
		else
			status = leat_fail_mem(err, cas->mem, value.mv_size + 1, "an entry of the index");
	}
	leat_index_looked(cas);
	return status;
}

bool
leat_index_holds(struct leat_cas *cas, const struct leat_digest *tree, bool *found)
{
	char *digests;
	size_t len = 0;

	if (copy_long(cas, LEAT_TABLE_HOLDS, tree, &digests, &len, NULL) != LEAT_OK || !digests)
		return false;
	*found = true;
	for (size_t i = 0; *found && i + LEAT_SHA256_BYTES <= len; i += LEAT_SHA256_BYTES) {
		struct leat_digest digest;

		memcpy(digest.byte, digests + i, sizeof(digest.byte));
		*found = leat_cas_has_blob(cas, &digest);
	}
	leat_free(cas->mem, digests);
	return true;
}

/* Names and values of fields, each ending with NUL, in one block with the array. */
static enum leat_status
split_fields(struct leat_cas *cas, const char *text, size_t len, struct leat_key_field **field, size_t *fields,
             struct leat_err *err)
{
	size_t texts = 0, head;
	char *copy;

	for (size_t i = 0; i < len; i++)
		texts += text[i] == '\0';
	if (len == 0 || text[len - 1] != '\0' || texts % 2)
		return leat_fail(err, LEAT_DATA, "the index of '%s' is damaged; 'leat fsck --repair' makes it again",
		                 cas->folder);
	*fields = texts / 2;
	head = *fields * sizeof(**field);
	*field = leat_alloc(cas->mem, head + len);
	if (!*field)
		return leat_fail_mem(err, cas->mem, head + len, "learned fields");
	copy = (char *)*field + head;
	memcpy(copy, text, len);
	for (size_t i = 0; i < *fields; i++) {
		(*field)[i].name = copy;
		copy += strlen(copy) + 1;
		(*field)[i].value = copy;
		copy += strlen(copy) + 1;
	}
	return LEAT_OK;
}

enum leat_status
leat_index_learned(struct leat_cas *cas, const struct leat_digest *learned, struct leat_key_field **field,
                   size_t *fields, struct leat_err *err)
{
	static const struct leat_digest none;
	char *text;
	size_t len = 0;
	enum leat_status status;

	*field = NULL;
	*fields = 0;
	if (leat_digest_equal(learned, &none))
		return LEAT_OK;
	status = copy_long(cas, LEAT_TABLE_LEARNED, learned, &text, &len, err);
	if (status == LEAT_OK && !text)
		status = leat_fail(err, LEAT_DATA,
		                   "the index of '%s' lacks a set of learned fields; 'leat fsck --repair' "
		                   "makes it again",
		                   cas->folder);
	if (status == LEAT_OK)
		status = split_fields(cas, text, len, field, fields, err);
	leat_free(cas->mem, text);
	return status;
}

void
leat_key_fields_free(struct leat_key_field *field, size_t fields, struct leat_mem *mem)
{
	(void)fields;
	leat_free(mem, field);
}
