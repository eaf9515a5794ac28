/* proto.h - protobuf messages spelled out byte by byte, and the Example that the oracle writes too */
#ifndef TEST_PROTO_H
#define TEST_PROTO_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/example.h"

struct bytes {
	unsigned char data[512];
	size_t len;
};

static inline struct bytes
raw(const char *text, size_t len)
{
	struct bytes bytes = {.len = len};

	assert_true(len <= sizeof(bytes.data));
	memcpy(bytes.data, text, len);
	return bytes;
}
#define RAW(literal) raw(literal, sizeof(literal) - 1)

static inline struct bytes
join(struct bytes a, struct bytes b)
{
	assert_true(a.len + b.len <= sizeof(a.data));
	memcpy(a.data + a.len, b.data, b.len);
	a.len += b.len;
	return a;
}

/* A field with a length; the number is below 16. */
static inline struct bytes
field(int number, struct bytes payload)
{
	struct bytes head = {.data = {(unsigned char)(number << 3 | 2), (unsigned char)payload.len}, .len = 2};

	if (payload.len >= 128) {
		head.data[1] |= 0x80;
		head.data[2] = (unsigned char)(payload.len >> 7);
		head.len = 3;
	}
	return join(head, payload);
}

static inline struct bytes
entry(const char *key, struct bytes feature)
{
	return field(1, join(field(1, raw(key, strlen(key))), field(2, feature)));
}

static inline struct bytes
one_int64(char value)
{
	return field(LEAT_FEATURE_INT64, field(1, raw(&value, 1)));
}

/* The features of record `i` of tests/tfrecord_oracle.py; record 0 has none. */
static inline void
add_known(struct leat_example *example, int64_t i)
{
	unsigned char image[200];
	int64_t label = i % 2 ? -i * i : i * i, tokens[40];
	float box[] = {(float)i, (float)i / 4, -(float)i / 8, (float)i * 1024};

	for (int64_t k = 0; k < i * 5; k++)
		image[k] = (unsigned char)(i * 7 + k);
	for (int64_t k = 0; k < i; k++)
		tokens[k] = ((int64_t)1 << k) - i;
	leat_example_begin(example);
	if (i == 0)
		return;
	leat_example_add_bytes(example, "image", image, (size_t)(i * 5));
	leat_example_add_int64s(example, "label", &label, 1);
	leat_example_add_int64s(example, "tokens", tokens, (size_t)i);
	leat_example_add_floats(example, "box", box, 4);
}

/* Runs the oracle. */
static inline void
run_oracle(const char *command, const char *argument, const char *output)
{
	char line[1200];

	snprintf(line, sizeof(line), "python3 tests/tfrecord_oracle.py %s '%s' > '%s'", command, argument, output);
	assert_int_equal(system(line), 0);
}

#endif
