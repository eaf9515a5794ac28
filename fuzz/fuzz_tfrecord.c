/* fuzz_tfrecord.c - of any bytes, all are accounted for: as records that can be read, or as damage that holds none */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "format/record.h"
#include "format/source.h"
#include "format/tfrecord.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
must(int truth, const char *what)
{
	if (truth)
		return;
	fprintf(stderr, "fuzz_tfrecord: %s\n", what);
	abort();
}

/* The search gives up on files made to hold it up, and says so. */
static void
note_giving_up(void *arg, enum leat_log_level level, const char *text)
{
	if (level == LEAT_LOG_WARN && strstr(text, "looks like a record"))
		*(int *)arg = 1;
}

static int
is_record(const uint8_t *data, size_t size)
{
	uint64_t length;

	return !leat_tfrecord_header_fault(data, size, &length) &&
	       leat_load32(data + LEAT_TFRECORD_HEAD + length) ==
	               leat_tfrecord_crc(data + LEAT_TFRECORD_HEAD, (size_t)length);
}

static void
check_sample(const struct leat_source *source, uint64_t i, const uint8_t *data, size_t size, uint64_t *end, int gave_up)
{
	struct leat_extent extent;
	struct leat_sample sample;
	struct leat_err err;
	enum leat_status status;
	const uint8_t *record;
	uint64_t length;

	leat_err_clear(&err);
	source->kind->locate(source, i, &extent);
	must(extent.offset == *end && extent.length > 0 && extent.length <= size - *end,
	     "extents do not fill the file");
	*end += extent.length;
	record = data + extent.offset;
	if (extent.damaged) {
		must(source->kind->unpack(source, &(struct leat_raw){.index = i, .extent = extent}, NULL, &sample,
		                          &err) == LEAT_DATA &&
		             err.text[0],
		     "damage without a reason");
		for (uint64_t at = extent.offset + 1; !gave_up && at < *end; at++)
			must(!is_record(data + at, size - at), "a record is lost in damage");
		return;
	}
	must(extent.length <= source->max_length, "a sample is longer than the longest");
	must(!leat_tfrecord_header_fault(record, size - extent.offset, &length), "a bad header counts as good");
	status = source->kind->unpack(source,
	                              &(struct leat_raw){.index = i,
	                                                 .extent = extent,
	                                                 .head = record,
	                                                 .payload = (unsigned char *)record + extent.head,
	                                                 .tail = record + extent.length - extent.tail},
	                              NULL, &sample, &err);
	must(is_record(record, size - extent.offset) ? status == LEAT_OK : status == LEAT_DATA && err.text[0],
	     "a checksum is not looked at");
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *path;
	struct leat_tfrecord_params params = {.patterns = {1, &path}, .crc = true};
	struct leat_source source;
	struct leat_mem mem;
	struct leat_err err;
	char name[64];
	int gave_up = 0, fd = memfd_create("fuzz", 0);
	struct leat_log log = {note_giving_up, &gave_up};
	uint64_t end = 0;

	must(fd >= 0 && write(fd, data, size) == (ssize_t)size, "no memory for a file");
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	path = name;
	setenv("XDG_CACHE_HOME", "/proc/none", 1); /* indexes stay in memory */
	leat_mem_init(&mem, SIZE_MAX);
	leat_err_clear(&err);
	if (leat_source_open(&source, leat_source_find("tfrecord"), &params, 1, UINT64_MAX, NULL, &mem, &log, &err) ==
	    LEAT_OK) {
		for (uint64_t i = 0; i < source.count; i++)
			check_sample(&source, i, data, size, &end, gave_up);
		must(end == size, "extents do not fill the file");
		leat_source_close(&source);
	} else {
		must((err.status == LEAT_DATA || err.status == LEAT_UNSUPPORTED) && err.text[0],
		     "refused without a reason");
	}
	must(mem.used == 0, "memory is left over");
	close(fd);
	return 0;
}
