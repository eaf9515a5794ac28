/* tar_write.c - see tar_write.h */
#include "format/tar_write.h"

#include <stdio.h>
#include <string.h>

enum { BLOCK = LEAT_TAR_MEMBER_HEAD, NAME = LEAT_TAR_MEMBER_NAME };

static const uint64_t max_size = (UINT64_C(1) << 33) - 1; /* eleven octal digits */

struct header {
	char name[NAME], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type, link[100], magic[6],
		version[2], user[32], group[32], major[8], minor[8], prefix[155], unused[12];
};

_Static_assert(sizeof(struct header) == BLOCK, "a header is one block");

static const char zeros[2 * BLOCK];

static void
fill_header(struct header *header, const char *name, uint64_t size)
{
	const unsigned char *byte = (const unsigned char *)header;
	unsigned sum = 0;

	memset(header, 0, sizeof(*header));
	memcpy(header->name, name, strlen(name));
	memcpy(header->mode, "0000644", 8);
	memcpy(header->uid, "0000000", 8);
	memcpy(header->gid, "0000000", 8);
	snprintf(header->size, sizeof(header->size), "%011llo", (unsigned long long)size);
	memcpy(header->mtime, "00000000000", 12);
	header->type = '0';
	memcpy(header->magic, "ustar", 6);
	memcpy(header->version, "00", 2);
	memset(header->checksum, ' ',
	       sizeof(header->checksum)); /* the checksum is computed with spaces in this field */
	for (size_t i = 0; i < sizeof(*header); i++)
		sum += byte[i];
	snprintf(header->checksum, sizeof(header->checksum), "%06o", sum); /* a space remains after the NUL */
}

enum leat_status
leat_tar_head(char head[LEAT_TAR_MEMBER_HEAD], const char *name, uint64_t size, struct leat_err *err)
{
	struct header header;

	if (strlen(name) > NAME)
		return leat_fail(err, LEAT_INVALID,
		                 "the name '%s' is too long for a tar file; at most %d bytes are allowed", name, NAME);
	if (size > max_size)
		return leat_fail(err, LEAT_LIMIT, "'%s' exceeds 8 GiB, the limit for a file in a tar archive", name);
	fill_header(&header, name, size);
	memcpy(head, &header, sizeof(header));
	return LEAT_OK;
}

enum leat_status
leat_tar_write(struct leat_writer *out, const char *name, const struct iovec *piece, int pieces, struct leat_err *err)
{
	char head[LEAT_TAR_MEMBER_HEAD];
	enum leat_status status;
	uint64_t size = 0;

	for (int i = 0; i < pieces; i++)
		size += piece[i].iov_len;
	status = leat_tar_head(head, name, size, err);
	if (status == LEAT_OK)
		status = leat_write(out, head, sizeof(head), err);
	for (int i = 0; i < pieces && status == LEAT_OK; i++)
		status = leat_write(out, piece[i].iov_base, piece[i].iov_len, err);
	if (status == LEAT_OK)
		status = leat_write(out, zeros, (size_t)(-size % BLOCK), err);
	return status;
}

enum leat_status
leat_tar_write_end(struct leat_writer *out, struct leat_err *err)
{
	return leat_write(out, zeros, sizeof(zeros), err);
}

/* ---- names ---- */

const char *const leat_tar_extensions[LEAT_TAR_EXTENSIONS] = {".jpg", ".png", ".webp", ".bin",
                                                              ".cls", ".npy", ".txt",  ""};

bool
leat_tar_is_file_name(const char *field)
{
	static const char *const known[] = {"jpg", "jpeg", "png", "webp", "bin", "cls", "txt", "json"};

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (strcmp(field, known[i]) == 0)
			return true;
	return strchr(field, '.') != NULL;
}

enum leat_tar_extension
leat_tar_extension_of(const char *field, const void *bytes, size_t len)
{
	if (leat_tar_is_file_name(field))
		return LEAT_TAR_OWN;
	if (len >= 3 && memcmp(bytes, "\xff\xd8\xff", 3) == 0)
		return LEAT_TAR_JPG;
	if (len >= 8 && memcmp(bytes, "\x89PNG\r\n\x1a\n", 8) == 0)
		return LEAT_TAR_PNG;
	if (len >= 12 && memcmp(bytes, "RIFF", 4) == 0 && memcmp((const char *)bytes + 8, "WEBP", 4) == 0)
		return LEAT_TAR_WEBP;
	return LEAT_TAR_BIN;
}

void
leat_tar_add_field(struct leat_str *out, const char *field, unsigned extensions)
{
	leat_str_addf(out, "%s=", field);
	for (int e = 0, n = 0; e < LEAT_TAR_EXTENSIONS; e++)
		if (extensions >> e & 1)
			leat_str_addf(out, "%s%s%s", n++ ? ";" : "", field, leat_tar_extensions[e]);
}
