/* test_hash.c - SHA-256, CRC-32C and the 64-bit hashes against published values and each other */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/copy.h"
#include "base/hash.h"

enum { LONGEST = 4096, HUGE_LEN = 100003 };

static void
assert_sha256(const char *text, const char *expected)
{
	uint8_t digest[LEAT_SHA256_BYTES];
	char hex[LEAT_SHA256_HEX];

	assert_int_equal(leat_sha256(text, strlen(text), digest), 0);
	leat_hex(digest, sizeof(digest), hex);
	assert_string_equal(hex, expected);
}

/* FIPS 180-2, appendix B, and the empty message. */
static void
sha256_gives_the_published_digests(void **state)
{
	(void)state;
	assert_sha256("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	assert_sha256("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	assert_sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
	              "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

static void
sha256_in_pieces_equals_the_whole_and_can_be_reset(void **state)
{
	static const char text[] = "the quick brown fox jumps over the lazy dog, again and again and again and again";
	uint8_t whole[LEAT_SHA256_BYTES], pieces[LEAT_SHA256_BYTES];
	struct leat_sha256 *sha = leat_sha256_new();

	(void)state;
	assert_non_null(sha);
	assert_int_equal(leat_sha256(text, sizeof(text), whole), 0);
	for (size_t split = 0; split <= sizeof(text); split++) {
		leat_sha256_add(sha, text, split);
		leat_sha256_add(sha, text + split, sizeof(text) - split);
		leat_sha256_end(sha, pieces);
		assert_memory_equal(whole, pieces, sizeof(whole));
		leat_sha256_reset(sha);
	}
	leat_sha256_free(sha);
	leat_sha256_free(NULL);
}

static void
hex_is_lower_case_and_terminated(void **state)
{
	static const uint8_t bytes[] = {0x00, 0x0f, 0xa5, 0xff};
	char hex[9];

	(void)state;
	leat_hex(bytes, sizeof(bytes), hex);
	assert_string_equal(hex, "000fa5ff");
	leat_hex(bytes, 0, hex);
	assert_string_equal(hex, "");
}

static void
assert_crc(const void *bytes, size_t len, uint32_t expected)
{
	assert_int_equal(leat_crc32c(0, bytes, len), expected);
	assert_int_equal(leat_crc32c_portable(0, bytes, len), expected);
}

/* RFC 3720, appendix B.4, and the check value of the CRC catalogue. */
static void
crc32c_gives_the_published_values(void **state)
{
	uint8_t bytes[32];

	(void)state;
	assert_crc("", 0, 0);
	assert_crc("123456789", 9, 0xe3069283);
	memset(bytes, 0, sizeof(bytes));
	assert_crc(bytes, sizeof(bytes), 0x8a9136aa);
	memset(bytes, 0xff, sizeof(bytes));
	assert_crc(bytes, sizeof(bytes), 0x62a8ab43);
	for (uint8_t i = 0; i < 32; i++)
		bytes[i] = i;
	assert_crc(bytes, sizeof(bytes), 0x46dd794e);
	for (uint8_t i = 0; i < 32; i++)
		bytes[i] = (uint8_t)(31 - i);
	assert_crc(bytes, sizeof(bytes), 0x113fdb5c);
}

/* Exactly as long as needed, so that a sanitizer sees a byte read too many at either end. */
static uint8_t *
noise(size_t len)
{
	uint8_t *bytes = malloc(len);

	assert_non_null(bytes);
	for (size_t i = 0; i < len; i++)
		bytes[i] = (uint8_t)leat_mix64(i);
	return bytes;
}

/* The definition, bit by bit: what both variants are measured by. */
static uint32_t
crc_by_definition(uint32_t crc, const uint8_t *bytes, size_t len)
{
	crc = ~crc;
	while (len-- > 0) {
		crc ^= *bytes++;
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
	}
	return ~crc;
}

static void
crc32c_is_right_for_every_length_and_start_value(void **state)
{
	uint8_t *bytes = noise(LONGEST);
	uint32_t start = 0, expected = 0;

	(void)state;
	for (size_t len = 0; len <= LONGEST; len++) {
		assert_int_equal(leat_crc32c(0, bytes, len), expected);
		assert_int_equal(leat_crc32c_portable(0, bytes, len), expected);
		if (len < LONGEST)
			expected = crc_by_definition(expected, bytes + len, 1);
		start = (uint32_t)leat_mix64(len);
		assert_int_equal(leat_crc32c(start, bytes, len), leat_crc32c_portable(start, bytes, len));
	}
	free(bytes);
}

static void
crc32c_is_right_at_every_alignment_and_the_end_of_memory(void **state)
{
	(void)state;
	for (size_t len = 0; len <= 600; len += len < 40 ? 1 : 7) {
		for (size_t align = 0; align < 16; align++) {
			uint8_t *bytes = noise(align + len);

			assert_int_equal(leat_crc32c(7, bytes + align, len), crc_by_definition(7, bytes + align, len));
			assert_int_equal(leat_crc32c_portable(7, bytes + align, len),
			                 crc_by_definition(7, bytes + align, len));
			free(bytes);
		}
	}
}

static void
crc32c_in_pieces_equals_the_whole(void **state)
{
	uint8_t *bytes = noise(HUGE_LEN);
	uint32_t whole = crc_by_definition(0, bytes, HUGE_LEN);

	(void)state;
	assert_crc(bytes, HUGE_LEN, whole);
	for (size_t split = 0; split <= HUGE_LEN; split += 997)
		assert_int_equal(leat_crc32c(leat_crc32c(0, bytes, split), bytes + split, HUGE_LEN - split), whole);
	free(bytes);
}

/* Of `len` bytes at `from` to `to`, with one byte before and behind that must stay as they are. */
static void
assert_sum_and_copy(uint8_t *to, const uint8_t *from, size_t len, bool past_cache)
{
	to[-1] = to[len] = 0xa5;
	memset(to, 0, len);
	assert_int_equal(leat_crc32c_copy(9, to, from, len, past_cache), leat_crc32c_portable(9, from, len));
	leat_copy_fence();
	assert_memory_equal(to, from, len);
	assert_int_equal(to[-1], 0xa5);
	assert_int_equal(to[len], 0xa5);
}

static void
crc32c_copy_sums_and_copies_at_every_alignment(void **state)
{
	uint8_t *bytes = noise(HUGE_LEN), *room = noise(HUGE_LEN + 2 * LEAT_LINE + 2);
	uint8_t *line = room + 1 + -((uintptr_t)room + 1) % LEAT_LINE;

	(void)state;
	for (size_t len = 0; len <= 200; len += len < 70 ? 1 : 13)
		for (size_t align = 0; align < LEAT_LINE; align++)
			for (int past_cache = 0; past_cache < 2; past_cache++)
				assert_sum_and_copy(line + align, bytes + len % 3, len, past_cache);
	for (size_t align = 0; align < LEAT_LINE; align += 9)
		for (int past_cache = 0; past_cache < 2; past_cache++)
			assert_sum_and_copy(line + align, bytes + 1, HUGE_LEN - 1 - LEAT_LINE, past_cache);
	free(bytes);
	free(room);
}

/* The 16 bytes of a TFRecord file with one empty record, as TensorFlow writes it. */
static void
crc32c_mask_is_that_of_tfrecord(void **state)
{
	static const uint8_t file[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0x29, 0x03, 0x98, 0x07, 0xd8, 0xea, 0x82, 0xa2};

	(void)state;
	assert_int_equal(leat_crc32c_mask(leat_crc32c(0, file, 8)), leat_load32(file + 8));
	assert_int_equal(leat_crc32c_mask(leat_crc32c(0, "", 0)), leat_load32(file + 12));
}

/* Outputs 1 and 2 of splitmix64 with seed 0, whose states are multiples of the golden ratio. */
static void
mix64_is_splitmix64s(void **state)
{
	(void)state;
	assert_true(leat_mix64(0) == 0);
	assert_true(leat_mix64(0x9e3779b97f4a7c15u) == 0xe220a8397b1dcdafu);
	assert_true(leat_mix64(2 * 0x9e3779b97f4a7c15u) == 0x6e789e6aa1b965f4u);
}

static void
hash64_is_mixed_fnv1a(void **state)
{
	(void)state;
	assert_true(leat_hash64("") == leat_mix64(0xcbf29ce484222325u));
	assert_true(leat_hash64("a") == leat_mix64(0xaf63dc4c8601ec8cu));
	assert_true(leat_hash64("foobar") == leat_mix64(0x85944171f73967e8u));
}

static void
loads_and_stores_are_little_endian_at_any_address(void **state)
{
	uint8_t bytes[16];

	(void)state;
	for (size_t at = 0; at < 8; at++) {
		memset(bytes, 0xee, sizeof(bytes));
		leat_store64(bytes + at, 0x0807060504030201u);
		for (uint8_t i = 0; i < 8; i++)
			assert_int_equal(bytes[at + i], i + 1);
		assert_int_equal(bytes[at + 8], 0xee);
		assert_true(leat_load64(bytes + at) == 0x0807060504030201u);
		assert_int_equal(leat_load32(bytes + at), 0x04030201);
		leat_store32(bytes + at, 0xddccbbaau);
		assert_true(leat_load64(bytes + at) == 0x08070605ddccbbaau);
	}
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(sha256_gives_the_published_digests),
		cmocka_unit_test(sha256_in_pieces_equals_the_whole_and_can_be_reset),
		cmocka_unit_test(hex_is_lower_case_and_terminated),
		cmocka_unit_test(crc32c_gives_the_published_values),
		cmocka_unit_test(crc32c_is_right_for_every_length_and_start_value),
		cmocka_unit_test(crc32c_is_right_at_every_alignment_and_the_end_of_memory),
		cmocka_unit_test(crc32c_in_pieces_equals_the_whole),
		cmocka_unit_test(crc32c_copy_sums_and_copies_at_every_alignment),
		cmocka_unit_test(crc32c_mask_is_that_of_tfrecord),
		cmocka_unit_test(mix64_is_splitmix64s),
		cmocka_unit_test(hash64_is_mixed_fnv1a),
		cmocka_unit_test(loads_and_stores_are_little_endian_at_any_address),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
