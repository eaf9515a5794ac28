/* example.c - reading tf.train.Example in place
 *
 * A message is a sequence of fields. next_field checks that each is within its message,
 * so that nothing nested can reach outside the record. */
#include "format/example.h"

#include <string.h>

#include "base/hash.h"

enum wire { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

enum { MAX_FIELD_NUMBER = (1 << 29) - 1 };

struct message {
	const unsigned char *at, *end;
	const char *fault; /* why reading stopped */
};

struct field {
	uint32_t number;
	unsigned wire;
	uint64_t value;             /* VARINT */
	const unsigned char *bytes; /* the others */
	size_t len;
};

const char *
leat_feature_kind_name(enum leat_feature_kind kind)
{
	static const char *const names[] = {"nothing", "bytes", "float", "int64"};

	return names[kind];
}

static inline bool
read_varint(struct message *message, uint64_t *value)
{
	uint64_t result = 0;

	if (message->at < message->end && *message->at < 0x80) {
		*value = *message->at++;
		return true;
	}
	for (unsigned shift = 0; shift < 64; shift += 7) {
		uint64_t byte;

		if (message->at == message->end) {
			message->fault = "a number is truncated";
			return false;
		}
		byte = *message->at++;
		if (shift == 63 && byte > 1)
			break;
		result |= (byte & 0x7f) << shift;
		if (byte < 0x80) {
			*value = result;
			return true;
		}
	}
	message->fault = "a number has more than 64 bits";
	return false;
}

/* Moves `len` bytes of the message into the field. */
static inline bool
take_bytes(struct message *message, uint64_t len, struct field *field)
{
	if (len > (size_t)(message->end - message->at)) {
		message->fault = "a length exceeds the message";
		return false;
	}
	field->bytes = message->at;
	field->len = (size_t)len;
	message->at += len;
	return true;
}

/* False at the end of the message, or with `fault` set if it is damaged. */
static inline bool
next_field(struct message *message, struct field *field)
{
	uint64_t tag;

	if (message->at == message->end || !read_varint(message, &tag))
		return false;
	field->wire = (unsigned)tag & 7;
	if (tag >> 3 == 0 || tag >> 3 > MAX_FIELD_NUMBER) {
		message->fault = "a field has no valid number";
		return false;
	}
	field->number = (uint32_t)(tag >> 3);
	switch (field->wire) {
	case WIRE_VARINT:
		return read_varint(message, &field->value);
	case WIRE_64:
		return take_bytes(message, 8, field);
	case WIRE_32:
		return take_bytes(message, 4, field);
	case WIRE_BYTES:
		return read_varint(message, &field->value) && take_bytes(message, field->value, field);
	}
	message->fault = "a field has no valid type";
	return false;
}

static struct message
message_of(const unsigned char *bytes, size_t len)
{
	return (struct message){.at = bytes, .end = bytes + len};
}

static enum leat_status
fail(const char *fault, struct leat_err *err)
{
	return leat_fail(err, LEAT_DATA, "the record is not a tf.train.Example: %s", fault);
}

/* One entry of the map: its key and its feature's message. Either may be omitted if empty. */
struct entry {
	const unsigned char *key, *feature; /* never NULL */
	size_t key_len, feature_len;
};

/* Returns NULL, or what is wrong. */
static inline const char *
read_entry(const struct field *field, struct entry *entry)
{
	struct message message = message_of(field->bytes, field->len);
	const unsigned char *nothing = field->bytes;
	struct field part;

	*entry = (struct entry){.key = nothing, .feature = nothing};
	while (next_field(&message, &part)) {
		if (part.number > 2)
			continue;
		if (part.wire != WIRE_BYTES)
			return "a key or feature has the wrong type";
		if ((part.number == 1 ? entry->key : entry->feature) != nothing)
			return "an entry has two keys or two features";
		if (part.number == 1) {
			entry->key = part.bytes;
			entry->key_len = part.len;
		} else {
			entry->feature = part.bytes;
			entry->feature_len = part.len;
		}
	}
	return message.fault;
}

/* Iterates over all entries of all `features` fields (normally one, but protobuf merges several). */
struct entries {
	struct message example, features;
};

static inline bool
next_entry(struct entries *walk, struct entry *entry, const char **fault)
{
	struct field field;

	*fault = NULL;
	for (;;) {
		while (next_field(&walk->features, &field)) {
			if (field.number != 1)
				continue;
			*fault = field.wire == WIRE_BYTES ? read_entry(&field, entry) : "a feature has the wrong type";
			return !*fault;
		}
		if (walk->features.fault || !next_field(&walk->example, &field))
			break;
		if (field.number == 1 && field.wire != WIRE_BYTES) {
			*fault = "its features have the wrong type";
			return false;
		}
		if (field.number == 1)
			walk->features = message_of(field.bytes, field.len);
	}
	*fault = walk->features.fault ? walk->features.fault : walk->example.fault;
	return false;
}

static const char *
read_feature(const struct entry *entry, struct leat_feature *feature)
{
	struct message message = message_of(entry->feature, entry->feature_len);
	struct field field;

	*feature = (struct leat_feature){0};
	while (next_field(&message, &field)) {
		if (field.number > LEAT_FEATURE_INT64)
			continue;
		if (field.wire != WIRE_BYTES)
			return "a list has the wrong type";
		if (feature->kind != LEAT_FEATURE_NONE)
			return "a feature has two lists";
		feature->kind = (enum leat_feature_kind)field.number;
		feature->list = field.bytes;
		feature->len = field.len;
	}
	return message.fault;
}

static inline bool
is_key(const struct leat_feature_key *key, const struct entry *entry)
{
	return key->len == entry->key_len && memcmp(key->text, entry->key, key->len) == 0;
}

/* The wanted feature that the entry at `place` is; `count`: none. */
static inline size_t
which(const struct entry *entry, size_t place, const struct leat_feature_key *key, size_t count,
      struct leat_example_order *order)
{
	atomic_ushort *hint = &order->wanted[place % LEAT_EXAMPLE_PLACES];
	size_t guess = atomic_load_explicit(hint, memory_order_relaxed), i = 0;

	if (guess < count && is_key(&key[guess], entry))
		return guess;
	while (i < count && !is_key(&key[i], entry))
		i++;
	if (i < count)
		atomic_store_explicit(hint, (unsigned short)i, memory_order_relaxed);
	return i;
}

enum leat_status
leat_example_find(const unsigned char *record, size_t len, const struct leat_feature_key *key, size_t count,
                  struct leat_example_order *order, struct leat_feature *found, struct leat_err *err)
{
	struct entries walk = {.example = message_of(record, len)};
	struct entry entry;
	const char *fault;

	memset(found, 0, count * sizeof(*found));
	for (size_t place = 0; next_entry(&walk, &entry, &fault); place++) {
		size_t i = which(&entry, place, key, count, order);

		if (i < count)
			fault = read_feature(&entry, &found[i]);
		if (fault)
			break;
	}
	return fault ? fail(fault, err) : LEAT_OK;
}

/* ---- lists ---- */

/* The wire type of a single number of a list; a packed run of them has WIRE_BYTES. */
static unsigned
single_wire(enum leat_feature_kind kind)
{
	return kind == LEAT_FEATURE_INT64 ? WIRE_VARINT : WIRE_32;
}

static const char *
run_fault(const struct leat_feature *feature, const struct field *run)
{
	if (feature->kind == LEAT_FEATURE_FLOAT && run->len % 4)
		return "a list of floats is truncated";
	if (feature->kind == LEAT_FEATURE_INT64 && run->len && run->bytes[run->len - 1] >= 0x80)
		return "a list of integers is truncated";
	return NULL;
}

/* The last byte of each number is below 0x80. */
static size_t
count_varints(const unsigned char *bytes, size_t len)
{
	size_t count = 0;

	for (size_t i = 0; i < len; i++)
		count += bytes[i] < 0x80;
	return count;
}

static size_t
run_count(const struct leat_feature *feature, const struct field *run)
{
	if (feature->kind == LEAT_FEATURE_BYTES)
		return 1;
	return feature->kind == LEAT_FEATURE_FLOAT ? run->len / 4 : count_varints(run->bytes, run->len);
}

/* Gets the next run of values in the list (a single value is a run, too). False at the end or with a fault. */
static bool
next_run(const struct leat_feature *feature, struct message *list, struct field *run)
{
	while (next_field(list, run)) {
		if (run->number != 1)
			continue;
		if (run->wire == WIRE_BYTES) {
			list->fault = run_fault(feature, run);
			return !list->fault;
		}
		if (feature->kind != LEAT_FEATURE_BYTES && run->wire == single_wire(feature->kind))
			return true;
		list->fault = "a value has the wrong type";
		return false;
	}
	return false;
}

enum leat_status
leat_feature_count(const struct leat_feature *feature, size_t *count, struct leat_err *err)
{
	struct message list = message_of(feature->list, feature->len);
	struct field run;

	*count = 0;
	while (next_run(feature, &list, &run))
		*count += run.wire == WIRE_BYTES ? run_count(feature, &run) : 1;
	return list.fault ? fail(list.fault, err) : LEAT_OK;
}

static void
copy_floats(float *to, const unsigned char *from, size_t count)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	memcpy(to, from, 4 * count);
#else
	for (size_t i = 0; i < count; i++) {
		uint32_t bits = leat_load32(from + 4 * i);

		memcpy(&to[i], &bits, 4);
	}
#endif
}

enum leat_status
leat_feature_floats(const struct leat_feature *feature, float *values, size_t count, struct leat_err *err)
{
	struct message list = message_of(feature->list, feature->len);
	struct field run;

	while (count && next_run(feature, &list, &run)) {
		size_t n = run.len / 4 < count ? run.len / 4 : count; /* an unpacked one has 4 bytes, too */

		copy_floats(values, run.bytes, n);
		values += n;
		count -= n;
	}
	return list.fault ? fail(list.fault, err) : LEAT_OK;
}

enum leat_status
leat_feature_int64s(const struct leat_feature *feature, int64_t *values, size_t count, struct leat_err *err)
{
	struct message list = message_of(feature->list, feature->len);
	struct field run;

	while (count && next_run(feature, &list, &run)) {
		if (run.wire == WIRE_VARINT) {
			*values++ = (int64_t)run.value;
			count--;
			continue;
		}
		for (struct message packed = message_of(run.bytes, run.len); count && packed.at < packed.end; count--) {
			uint64_t value;

			if (!read_varint(&packed, &value))
				return fail(packed.fault, err);
			*values++ = (int64_t)value;
		}
	}
	return list.fault ? fail(list.fault, err) : LEAT_OK;
}

enum leat_status
leat_feature_bytes(const struct leat_feature *feature, const unsigned char **bytes, size_t *len, struct leat_err *err)
{
	struct message list = message_of(feature->list, feature->len);
	struct field run;

	if (!next_run(feature, &list, &run))
		return fail(list.fault ? list.fault : "a list of byte strings is empty", err);
	*bytes = run.bytes;
	*len = run.len;
	return LEAT_OK;
}

/* ---- for messages ---- */

void
leat_example_list(const unsigned char *record, size_t len, struct leat_example_names *names)
{
	struct entries walk = {.example = message_of(record, len)};
	struct entry entry;
	const char *fault;

	names->count = names->more = 0;
	while (next_entry(&walk, &entry, &fault)) {
		if (names->count < sizeof(names->name) / sizeof(names->name[0]))
			leat_show(names->name[names->count++], sizeof(names->name[0]), entry.key, entry.key_len);
		else
			names->more++;
	}
}
