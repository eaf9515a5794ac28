/* tar_header.c - parse the headers of tar files, and names
 *
 * Everything in a header is fixed-width text. All of it is checked here, except whether the
 * data is within the file, which the caller checks. */
#include "format/tar.h"

#include <string.h>

#include "base/hash.h"

/* Offsets in a header. */
enum {
	NAME = 0,
	NAME_LEN = 100,
	SIZE = 124,
	SIZE_LEN = 12,
	CHECKSUM = 148,
	CHECKSUM_LEN = 8,
	TYPE = 156,
	MAGIC = 257,
	PREFIX = 345,
	PREFIX_LEN = 155,
};

#define MOST ((uint64_t)1 << 62) /* so that sums with offsets do not overflow */

/* Reads octal digits with leading spaces, ended by a space, a NUL or the end of the field. */
static bool
read_octal(const unsigned char *text, size_t len, uint64_t *value)
{
	size_t i = 0;

	*value = 0;
	while (i < len && text[i] == ' ')
		i++;
	for (; i < len && text[i] >= '0' && text[i] <= '7'; i++)
		*value = *value << 3 | (unsigned)(text[i] - '0'); /* 12 digits at most */
	return i == len || text[i] == ' ' || text[i] == '\0';
}

/* Octal or, if the highest bit is set, an 11-byte binary number (GNU). */
static bool
read_size(const unsigned char *text, uint64_t *value)
{
	if (text[0] != 0x80)
		return !(text[0] & 0x80) && read_octal(text, SIZE_LEN, value);
	*value = 0;
	for (size_t i = 1; i < SIZE_LEN; i++) {
		if (*value >> 56)
			return false;
		*value = *value << 8 | text[i];
	}
	return true;
}

/* Sums all bytes, 8 at a time: the sum of 128 bytes fits each quarter of a word. */
static uint32_t
sum_bytes(const unsigned char *block)
{
	const uint64_t even = 0x00ff00ff00ff00ff;
	uint64_t sums = 0;

	for (size_t i = 0; i < LEAT_TAR_BLOCK; i += 8) {
		uint64_t word = leat_load64(block + i);

		sums += (word & even) + (word >> 8 & even);
	}
	return (uint32_t)((sums & 0xffff) + (sums >> 16 & 0xffff) + (sums >> 32 & 0xffff) + (sums >> 48));
}

static uint32_t
count_high(const unsigned char *block)
{
	uint32_t high = 0;

	for (size_t i = 0; i < LEAT_TAR_BLOCK; i++)
		if (i < CHECKSUM || i >= CHECKSUM + CHECKSUM_LEN)
			high += block[i] >> 7;
	return high;
}

/* The checksum is the sum of all bytes, with its own field as spaces. Some writers add signed bytes. */
static bool
checksum_is_right(const unsigned char *block)
{
	uint32_t sum = sum_bytes(block);
	uint64_t stored;

	for (size_t i = CHECKSUM; i < CHECKSUM + CHECKSUM_LEN; i++)
		sum += ' ' - (uint32_t)block[i];
	return read_octal(block + CHECKSUM, CHECKSUM_LEN, &stored) &&
	       (stored == sum || (int64_t)stored == (int64_t)sum - 256 * (int64_t)count_high(block));
}

static bool
is_zero(const unsigned char *block)
{
	return block[0] == 0 && memcmp(block, block + 1, LEAT_TAR_BLOCK - 1) == 0;
}

/* "prefix/name"; GNU's format uses the prefix field for something else. */
static void
take_name(struct leat_tar *tar, const unsigned char *block)
{
	size_t prefix = strnlen((const char *)block + PREFIX, PREFIX_LEN);
	size_t name = strnlen((const char *)block + NAME, NAME_LEN);

	tar->len = 0;
	if (prefix && memcmp(block + MAGIC, "ustar", 6) == 0) {
		memcpy(tar->name, block + PREFIX, prefix);
		tar->name[prefix] = '/';
		tar->len = prefix + 1;
	}
	memcpy(tar->name + tar->len, block + NAME, NAME_LEN); /* a fixed length is copied with a few moves */
	tar->len += name;
	tar->name[tar->len] = '\0';
}

static bool
describes_next(char type)
{
	return type == 'L' || type == 'K' || type == 'x' || type == 'X' || type == 'g';
}

static enum leat_tar_kind
kind_of(const struct leat_tar *tar)
{
	switch (tar->type) {
	case '\0':
		/* Before there were types, a trailing slash marked a folder. */
		if (tar->len && tar->name[tar->len - 1] == '/')
			return LEAT_TAR_OTHER;
		return LEAT_TAR_FILE;
	case '0':
	case '7':
		return tar->sparse ? LEAT_TAR_SPARSE : LEAT_TAR_FILE;
	case 'S':
		return LEAT_TAR_SPARSE;
	default:
		return LEAT_TAR_OTHER;
	}
}

const char *
leat_tar_header(struct leat_tar *tar, const unsigned char *block)
{
	const char *fault = NULL;

	if (is_zero(block)) {
		tar->kind = LEAT_TAR_ZERO;
		fault = tar->has_name || tar->has_size ? "an extended header has no entry after it" : NULL;
		goto out;
	}
	if (!checksum_is_right(block)) {
		fault = "a header's checksum does not match";
		goto out;
	}
	if (!read_size(block + SIZE, &tar->size)) {
		fault = "a header's size is not a number";
		goto out;
	}
	tar->type = (char)block[TYPE];
	if (describes_next(tar->type)) {
		tar->kind = LEAT_TAR_EXTENSION;
		if (tar->size <= LEAT_TAR_MAX_EXTENSION)
			return NULL; /* keep what earlier ones set for the next entry */
		fault = "an extended header is too long";
		goto out;
	}
	if (tar->has_size)
		tar->size = tar->next_size;
	if (!tar->has_name)
		take_name(tar, block);
	tar->kind = kind_of(tar);
	/* Links and folders may have a size but no data. */
	if (tar->type >= '1' && tar->type <= '6')
		tar->size = 0;
	if (tar->size > MOST)
		fault = "a header's size is too large";
out:
	tar->has_name = tar->has_size = tar->sparse = false;
	return fault;
}

static const char *
set_name(struct leat_tar *tar, const unsigned char *name, size_t len)
{
	if (len >= LEAT_TAR_NAME)
		return "a name is longer than 4095 bytes";
	if (memchr(name, '\0', len))
		return "a name contains a zero byte";
	memcpy(tar->name, name, len);
	tar->name[len] = '\0';
	tar->len = len;
	tar->has_name = true;
	return NULL;
}

static bool
read_decimal(const unsigned char *text, size_t len, uint64_t *value)
{
	*value = 0;
	for (size_t i = 0; i < len; i++) {
		if (text[i] < '0' || text[i] > '9' || *value > MOST / 10)
			return false;
		*value = *value * 10 + (unsigned)(text[i] - '0');
	}
	return len > 0;
}

static bool
key_is(const unsigned char *key, size_t len, const char *name)
{
	return len == strlen(name) && memcmp(key, name, len) == 0;
}

static const char *
take_pax_value(struct leat_tar *tar, const unsigned char *key, size_t key_len, const unsigned char *value, size_t len)
{
	if (key_is(key, key_len, "path"))
		return set_name(tar, value, len);
	if (key_is(key, key_len, "size")) {
		tar->has_size = read_decimal(value, len, &tar->next_size);
		return tar->has_size ? NULL : "a pax header's size is not a number";
	}
	if (key_is(key, key_len, "GNU.sparse.major") || key_is(key, key_len, "GNU.sparse.map") ||
	    key_is(key, key_len, "GNU.sparse.size"))
		tar->sparse = true;
	return NULL;
}

/* Records are "LENGTH KEY=VALUE\n"; the length is that of the whole record. */
static const char *
read_pax(struct leat_tar *tar, const unsigned char *data, size_t size)
{
	const char *fault = NULL;

	while (size && *data && !fault) {
		const unsigned char *space = memchr(data, ' ', size < 8 ? size : 8), *equals;
		uint64_t len;

		if (!space || !read_decimal(data, (size_t)(space - data), &len) || len > size ||
		    len < (size_t)(space - data) + 3 || data[len - 1] != '\n')
			return "a pax header has an invalid record";
		equals = memchr(space + 1, '=', (size_t)(data + len - 1 - (space + 1)));
		if (!equals)
			return "a pax header's record has no '='";
		fault = take_pax_value(tar, space + 1, (size_t)(equals - space - 1), equals + 1,
		                       (size_t)(data + len - 1 - (equals + 1)));
		data += len;
		size -= (size_t)len;
	}
	return fault;
}

const char *
leat_tar_extension(struct leat_tar *tar, const unsigned char *data)
{
	switch (tar->type) {
	case 'L':
		return set_name(tar, data, strnlen((const char *)data, (size_t)tar->size));
	case 'x':
	case 'X': /* Solaris, before pax was a standard */
		return read_pax(tar, data, (size_t)tar->size);
	default: /* a link's target, or global attributes, which have neither path nor size */
		return NULL;
	}
}

/* __LIKE_THIS__, up to a slash or the end. */
static bool
is_meta(const char *name, size_t len)
{
	const char *slash = memchr(name, '/', len);
	size_t first = slash ? (size_t)(slash - name) : len;

	return first >= 4 && memcmp(name, "__", 2) == 0 && memcmp(name + first - 2, "__", 2) == 0;
}

bool
leat_tar_split(const char *name, size_t len, size_t *key)
{
	const char *slash = memrchr(name, '/', len), *base = slash ? slash + 1 : name;
	const char *dot = memchr(base, '.', len - (size_t)(base - name));

	if (!dot || dot == base || is_meta(name, len))
		return false;
	*key = (size_t)(dot - name);
	return true;
}
