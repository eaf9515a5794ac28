/* example_rows.c - see example_rows.h */
#include "format/example_rows.h"

#include <string.h>

#include "format/record.h"

enum { READY = 32, SHORT = 0x80 /* lengths below it are varints of 1 byte */ };

static inline size_t
varint_size(uint64_t value)
{
	return ((size_t)(63 - __builtin_clzll(value | 1)) * 9 + 73) / 64;
}

static inline unsigned char *
put_varint(unsigned char *to, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		*to++ = (unsigned char)(value | 0x80);
	*to++ = (unsigned char)value;
	return to;
}

/* The tag and length of field `number`, which is a message or a string. */
static inline unsigned char *
put_head(unsigned char *to, unsigned number, size_t len)
{
	*to++ = (unsigned char)(number << 3 | 2);
	return put_varint(to, len);
}

static inline size_t
field_size(size_t len)
{
	return 1 + varint_size(len) + len;
}

static inline unsigned char *
put_copy(unsigned char *to, const void *bytes, size_t len)
{
	if (len)
		memcpy(to, bytes, len);
	return to + len;
}

/* The bytes that precede a value. Copying more than needed is faster than a call: both sides have room. */
static inline unsigned char *
put_ready(const struct leat_row_feature *feature, size_t i, unsigned char *to)
{
	size_t len = feature->head[i].len;

	if (len <= READY)
		memcpy(to, feature->head[i].bytes, READY);
	else
		memcpy(to, feature->head[i].bytes, len);
	return to + len;
}

/* Everything of an entry before the list of its values, a message of `list` bytes. */
static unsigned char *
put_list_head(const struct leat_row_feature *feature, unsigned char *to, size_t list)
{
	size_t inner = field_size(list);

	to = put_head(to, 1, field_size(feature->key_len) + field_size(inner));
	to = put_head(to, 1, feature->key_len);
	to = put_copy(to, feature->key, feature->key_len);
	to = put_head(to, 2, inner);
	return put_head(to, feature->kind, list);
}

/* The same before values that are one field of the list. */
static unsigned char *
put_values_head(const struct leat_row_feature *feature, unsigned char *to, size_t len)
{
	return put_head(put_list_head(feature, to, field_size(len)), 1, len);
}

/* ---- entries ---- */

size_t
leat_row_feature_room(const struct leat_row_feature *feature, size_t count, size_t len)
{
	enum { TAGS = 6 };

	return TAGS * (1 + LEAT_MAX_VARINT) + feature->key_len + count * (1 + LEAT_MAX_VARINT) + len;
}

enum leat_status
leat_row_feature_init(struct leat_row_feature *feature, const char *key, enum leat_feature_kind kind,
                      struct leat_mem *mem, struct leat_err *err)
{
	size_t len = strlen(key), most;
	unsigned char *to;

	*feature = (struct leat_row_feature){.mem = mem, .kind = kind, .key_len = len};
	most = leat_row_feature_room(feature, 1, 0);
	feature->key = leat_strdup(mem, key);
	feature->heads = leat_alloc(mem, (LEAT_MAX_VARINT + 1) * most + READY);
	if (!feature->key || !feature->heads) {
		leat_row_feature_free(feature);
		return leat_fail_mem(err, mem, LEAT_MAX_VARINT * most, "the name of a feature");
	}
	to = feature->heads;
	for (size_t i = 0; i <= LEAT_MAX_VARINT; i++) {
		feature->head[i].bytes = to;
		to = put_values_head(feature, to, i);
		feature->head[i].len = (size_t)(to - feature->head[i].bytes);
	}
	/* With a text of that length, the whole entry has SHORT bytes; its tag and length are not counted. */
	len = feature->head[0].len - 2;
	feature->short_text = len < SHORT ? SHORT - len : 0;
	return LEAT_OK;
}

void
leat_row_feature_free(struct leat_row_feature *feature)
{
	if (!feature->mem)
		return;
	leat_free(feature->mem, feature->key);
	leat_free(feature->mem, feature->heads);
	*feature = (struct leat_row_feature){0};
}

/* ---- values ---- */

unsigned char *
leat_row_put_float(const struct leat_row_feature *feature, unsigned char *to, float value)
{
	uint32_t bits;

	to = put_ready(feature, sizeof(bits), to);
	memcpy(&bits, &value, sizeof(bits));
	leat_store32(to, bits);
	return to + sizeof(bits);
}

unsigned char *
leat_row_put_int64(const struct leat_row_feature *feature, unsigned char *to, int64_t value)
{
	size_t len = varint_size((uint64_t)value);

	return put_varint(put_ready(feature, len, to), (uint64_t)value);
}

unsigned char *
leat_row_put_floats(const struct leat_row_feature *feature, unsigned char *to, const float *values, size_t count)
{
	to = put_values_head(feature, to, count * sizeof(*values));
	for (size_t i = 0; i < count; i++, to += sizeof(*values)) {
		uint32_t bits;

		memcpy(&bits, &values[i], sizeof(bits));
		leat_store32(to, bits);
	}
	return to;
}

unsigned char *
leat_row_put_int64s(const struct leat_row_feature *feature, unsigned char *to, const int64_t *values, size_t count)
{
	size_t len = 0;

	for (size_t i = 0; i < count; i++)
		len += varint_size((uint64_t)values[i]);
	to = put_values_head(feature, to, len);
	for (size_t i = 0; i < count; i++)
		to = put_varint(to, (uint64_t)values[i]);
	return to;
}

unsigned char *
leat_row_put_bytes(const struct leat_row_feature *feature, unsigned char *to, const void *bytes, size_t len)
{
	const unsigned char *ready;
	unsigned char *end;

	if (len >= feature->short_text)
		return put_copy(put_values_head(feature, to, len), bytes, len);
	/* The lengths of entry, feature, list and text, each after its tag; not read from where they were just written. */
	end = put_ready(feature, 0, to);
	ready = feature->head[0].bytes + feature->head[0].len;
	to[1] = (unsigned char)(feature->head[0].bytes[1] + len);
	end[-5] = (unsigned char)(ready[-5] + len);
	end[-3] = (unsigned char)(ready[-3] + len);
	end[-1] = (unsigned char)(ready[-1] + len);
	return put_copy(end, bytes, len);
}

unsigned char *
leat_row_put_texts(const struct leat_row_feature *feature, unsigned char *to, const void *const *bytes,
                   const size_t *len, size_t count)
{
	size_t list = 0;

	for (size_t i = 0; i < count; i++)
		list += field_size(len[i]);
	to = put_list_head(feature, to, list);
	for (size_t i = 0; i < count; i++)
		to = put_copy(put_head(to, 1, len[i]), bytes[i], len[i]);
	return to;
}

/* ---- records ---- */

/* What precedes and follows the features, `len` bytes at `features`. Returns the beginning of the record. */
static inline unsigned char *
put_frame(unsigned char *features, size_t len, size_t digits)
{
	unsigned char *data = features - digits - 1, *record = data - LEAT_TFRECORD_HEAD;

	put_head(data, 1, len);
	leat_store64(record, 1 + digits + len);
	leat_store32(record + 8, leat_tfrecord_crc(record, 8));
	leat_store32(features + len, leat_tfrecord_crc(data, 1 + digits + len));
	return record;
}

unsigned char *
leat_row_end(unsigned char *buffer, unsigned char *to, size_t *len)
{
	unsigned char *features = buffer + LEAT_ROW_GAP;
	size_t features_len = (size_t)(to - features), digits = varint_size(features_len);

	*len = LEAT_TFRECORD_FRAME + 1 + digits + features_len;
	return put_frame(features, features_len, digits);
}

unsigned char *
leat_row_end_at(unsigned char *begin, unsigned char *to, size_t *digits)
{
	unsigned char *features = leat_row_begin_at(begin, *digits);
	size_t len = (size_t)(to - features), needed = varint_size(len);

	if (needed != *digits) {
		memmove(leat_row_begin_at(begin, needed), features, len);
		features = leat_row_begin_at(begin, needed);
		*digits = needed;
	}
	put_frame(features, len, needed);
	return features + len + LEAT_TFRECORD_TAIL;
}
