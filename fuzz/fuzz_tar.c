/* fuzz_tar.c - of any bytes, samples lie in the file one behind the other, and each can be read or says why not
 *
 * With an odd first byte, which is no part of the file, checksums of headers are made right, because
 * otherwise nothing would get past them. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "format/source.h"
#include "format/tar.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
must(int truth, const char *what)
{
	if (truth)
		return;
	fprintf(stderr, "fuzz_tar: %s\n", what);
	abort();
}

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

static void
check_fields(const struct leat_source *source, const struct leat_sample *sample, const uint8_t *payload, size_t len,
             const struct leat_scratch *scratch)
{
	must(sample->count == source->schema.count, "a sample has another number of fields");
	for (int f = 0; f < sample->count; f++) {
		const uint8_t *at = sample->field[f].data;
		size_t bytes = leat_datum_bytes(&sample->field[f]);

		must((at >= payload && bytes <= len && at + bytes <= payload + len) ||
		             (at >= scratch->base && at + bytes <= scratch->base + scratch->used),
		     "a field leaves its sample");
	}
}

static void
check_sample(const struct leat_source *source, uint64_t i, const uint8_t *data, size_t size, uint64_t *end,
             struct leat_scratch *scratch)
{
	struct leat_extent extent;
	struct leat_sample sample;
	struct leat_err err;
	enum leat_status status;
	uint8_t *bytes = NULL;

	leat_err_clear(&err);
	leat_scratch_reset(scratch);
	source->kind->locate(source, i, &extent);
	must(extent.offset >= *end && extent.offset < size && extent.length > 0 &&
	             extent.length <= size - extent.offset,
	     "extents overlap, or leave the file");
	*end = extent.offset + extent.length;
	if (!extent.damaged) {
		must(extent.length <= source->max_length, "a sample is longer than the longest");
		bytes = malloc((size_t)extent.length); /* of its own, so that sanitizers see its ends */
		memcpy(bytes, data + extent.offset, (size_t)extent.length);
	}
	status = source->kind->unpack(source, i, &extent, bytes, bytes, bytes, scratch, &sample, &err);
	must(status == LEAT_OK || (status == LEAT_DATA && err.text[0]), "bad without a reason");
	must(status != LEAT_OK || !extent.damaged, "damage can be read");
	if (status == LEAT_OK)
		check_fields(source, &sample, bytes, (size_t)extent.length, scratch);
	free(bytes);
}

static void
check_file(const char *path, const uint8_t *data, size_t size, size_t fields)
{
	static const char *names[] = {"any=txt;jpg;cls;bin", "__key__"};
	struct leat_tar_params params = {.patterns = {1, &path}, .fields = {fields, names}};
	struct leat_scratch scratch = {0};
	struct leat_source source;
	struct leat_mem mem;
	struct leat_err err;
	uint64_t end = 0;

	leat_mem_init(&mem, SIZE_MAX);
	leat_err_clear(&err);
	if (leat_source_open(&source, leat_source_find("tar"), &params, 1, &mem, NULL, &err) == LEAT_OK) {
		must(leat_scratch_open(&scratch, &mem, source.max_scratch) == 0, "no memory for scratch");
		for (uint64_t i = 0; i < source.count; i++)
			check_sample(&source, i, data, size, &end, &scratch);
		leat_scratch_close(&scratch, &mem);
		leat_source_close(&source);
	} else {
		must((err.status == LEAT_DATA || err.status == LEAT_UNSUPPORTED) && err.text[0],
		     "refused without a reason");
	}
	must(mem.used == 0, "memory is left over");
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *bytes;
	char path[64];
	int fd;

	if (size == 0)
		return 0;
	bytes = malloc(size);
	memcpy(bytes, data + 1, size - 1);
	if (data[0] & 1)
		correct_checksums(bytes, size - 1);
	fd = memfd_create("fuzz", 0);
	must(fd >= 0 && write(fd, bytes, size - 1) == (ssize_t)size - 1, "no memory for a file");
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	setenv("XDG_CACHE_HOME", "/proc/none", 1); /* indexes stay in memory */
	check_file(path, bytes, size - 1, 0);
	check_file(path, bytes, size - 1, 2);
	close(fd);
	free(bytes);
	return 0;
}
