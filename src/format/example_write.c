/* example_write.c - write tf.train.Example
 *
 * The outer tag and length are known only at the end, so a gap is left for them in front of
 * the features. Nothing is copied. */
#include "format/example.h"

#include <string.h>

#include "base/hash.h"

enum { GAP = 11 }; /* a tag and the longest varint */

static size_t
varint_size(uint64_t value)
{
	size_t size = 1;

	for (; value >= 0x80; value >>= 7)
		size++;
	return size;
}

static size_t
put_varint(unsigned char *to, uint64_t value)
{
	size_t size = 0;

	for (; value >= 0x80; value >>= 7)
		to[size++] = (unsigned char)(value | 0x80);
	to[size++] = (unsigned char)value;
	return size;
}

static void
add_varint(struct leat_str *str, uint64_t value)
{
	unsigned char bytes[10];

	leat_str_addn(str, bytes, put_varint(bytes, value));
}

/* The tag and length of field `number`, which is a message or a string. */
static void
add_head(struct leat_str *str, unsigned number, size_t len)
{
	add_varint(str, number << 3 | 2);
	add_varint(str, len);
}

static size_t
field_size(size_t len)
{
	return 1 + varint_size(len) + len;
}

/* Everything of an entry before its values, which take `len` encoded bytes. */
static void
begin_feature(struct leat_example *example, const char *key, enum leat_feature_kind kind, size_t len)
{
	struct leat_str *str = &example->bytes;
	size_t key_len = strlen(key), list = field_size(len), feature = field_size(list);

	add_head(str, 1, field_size(key_len) + field_size(feature));
	add_head(str, 1, key_len);
	leat_str_addn(str, key, key_len);
	add_head(str, 2, feature);
	add_head(str, kind, list);
	add_head(str, 1, len);
}

void
leat_example_init(struct leat_example *example, struct leat_mem *mem, size_t max)
{
	leat_str_init(&example->bytes, mem, max);
}

void
leat_example_begin(struct leat_example *example)
{
	static const char gap[GAP];

	example->bytes.len = 0;
	example->bytes.failed = false;
	leat_str_addn(&example->bytes, gap, sizeof(gap));
}

void
leat_example_free(struct leat_example *example)
{
	leat_str_free(&example->bytes);
}

void
leat_example_add_bytes(struct leat_example *example, const char *key, const void *bytes, size_t len)
{
	begin_feature(example, key, LEAT_FEATURE_BYTES, len);
	leat_str_addn(&example->bytes, bytes, len);
}

void
leat_example_add_floats(struct leat_example *example, const char *key, const float *values, size_t count)
{
	begin_feature(example, key, LEAT_FEATURE_FLOAT, 4 * count);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	leat_str_addn(&example->bytes, values, 4 * count);
#else
	for (size_t i = 0; i < count; i++) {
		unsigned char bytes[4];
		uint32_t bits;

		memcpy(&bits, &values[i], sizeof(bits));
		leat_store32(bytes, bits);
		leat_str_addn(&example->bytes, bytes, sizeof(bytes));
	}
#endif
}

void
leat_example_add_int64s(struct leat_example *example, const char *key, const int64_t *values, size_t count)
{
	size_t len = 0;

	for (size_t i = 0; i < count; i++)
		len += varint_size((uint64_t)values[i]);
	begin_feature(example, key, LEAT_FEATURE_INT64, len);
	for (size_t i = 0; i < count; i++)
		add_varint(&example->bytes, (uint64_t)values[i]);
}

enum leat_status
leat_example_finish(struct leat_example *example, const void **record, size_t *len, struct leat_err *err)
{
	struct leat_str *str = &example->bytes;
	unsigned char head[GAP] = {1 << 3 | 2};
	size_t features, head_len;

	if (str->failed)
		return leat_fail(err, LEAT_LIMIT, "an Example does not fit in memory or exceeds its limit of %zu bytes",
		                 str->max);
	features = str->len - GAP;
	head_len = 1 + put_varint(head + 1, features);
	memcpy(str->text + GAP - head_len, head, head_len);
	*record = str->text + GAP - head_len;
	*len = head_len + features;
	return LEAT_OK;
}
