/* fuzz_tar.c - of any bytes, samples lie in the file one behind the other, and each can be read or says why not
 *
 * With an odd first byte, which is no part of the file, checksums of headers are made right, because
 * otherwise nothing would get past them. */
#include "sources.h"

#include "format/tar.h"

static void
correct_checksums(uint8_t *bytes, size_t size)
{
	for (size_t at = 0; at + 512 <= size; at += 512) {
		unsigned sum = 0;

		if (memcmp(bytes + at + 257, "ustar", 5) != 0)
			continue;
		memset(bytes + at + 148, ' ', 8);
		for (size_t i = 0; i < 512; i++)
			sum += bytes[at + i];
		snprintf((char *)bytes + at + 148, 8, "%06o", sum);
	}
}

/* Samples lie one behind the other. */
static void
check_order(const struct leat_source *source)
{
	uint64_t end = 0;

	for (uint64_t i = 0; i < source->count; i++) {
		struct leat_extent extent;

		source->kind->locate(source, i, &extent);
		must(extent.offset >= end && extent.length > 0, "extents overlap");
		end = extent.offset + extent.length;
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *names[] = {"any=txt;jpg;cls;bin", "__key__", "bin:int64", "x=npy;bin:float32[?, 2]"};
	char path[200];
	const char *pattern = path;
	struct leat_tar_params params = {.patterns = {1, &pattern}, .fields = {0, names}};
	uint8_t *bytes;

	if (size == 0)
		return 0;
	bytes = malloc(size);
	memcpy(bytes, data + 1, size - 1);
	if (data[0] & 1)
		correct_checksums(bytes, size - 1);
	fuzz_write("x.tar", bytes, size - 1);
	snprintf(path, sizeof(path), "%s/x.tar", fuzz_folder());
	for (size_t fields = 0; fields <= 4; fields++) {
		char index[200];

		snprintf(index, sizeof(index), "%s/.x.tar.leatidx", fuzz_folder());
		unlink(index);
		params.fields.count = fields;
		fuzz_source("tar", &params, check_order);
	}
	free(bytes);
	return 0;
}
