/* sources.h - for fuzzers of sources: files in memory, and a look at every sample */
#ifndef FUZZ_SOURCES_H
#define FUZZ_SOURCES_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/source.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline void
must(int truth, const char *what)
{
	if (truth)
		return;
	fprintf(stderr, "a fuzzer's promise is broken: %s\n", what);
	abort();
}

static char fuzz_path[64];

static inline void
fuzz_remove(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf '%s'", fuzz_path);
	if (system(command) != 0)
		fprintf(stderr, "%s is left over\n", fuzz_path);
}

/* A folder of this process, in memory if there is one, removed at exit. */
static inline const char *
fuzz_folder(void)
{
	if (!fuzz_path[0]) {
		snprintf(fuzz_path, sizeof(fuzz_path), "%s/leat-fuzz-XXXXXX",
		         access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
		must(mkdtemp(fuzz_path) != NULL, "no folder");
		atexit(fuzz_remove);
		setenv("XDG_CACHE_HOME", "/proc/none", 1);
	}
	return fuzz_path;
}

static inline void
fuzz_write(const char *name, const void *bytes, size_t len)
{
	char path[200];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", fuzz_folder(), name);
	file = fopen(path, "wb");
	must(file && fwrite(bytes, 1, len, file) == len && fclose(file) == 0, "no file");
}

static inline void
fuzz_check_fields(const struct leat_source *source, const struct leat_sample *sample, const uint8_t *bytes, size_t len,
                  const struct leat_scratch *scratch)
{
	must(sample->count == source->schema.count, "a sample has another number of fields");
	for (int f = 0; f < sample->count; f++) {
		const struct leat_field *field = &source->schema.entry[f].field;
		const struct leat_datum *datum = &sample->field[f];
		const uint8_t *at = datum->data;
		size_t size = leat_datum_bytes(datum);

		must(datum->dtype == field->dtype && datum->ndim == field->ndim, "a field is of another type");
		for (int d = 0; d < field->ndim; d++)
			must(datum->shape[d] >= 0 && (field->shape[d] < 0 || field->shape[d] == datum->shape[d]),
			     "a field has another shape");
		must((uintptr_t)at % leat_dtype_size(datum->dtype) == 0, "a field is not aligned");
		must((at >= bytes && size <= len && at + size <= bytes + len) ||
		             (at >= scratch->base && size <= scratch->used &&
		              at + size <= scratch->base + scratch->used),
		     "a field leaves its sample");
	}
}

static inline void
fuzz_check_sample(const struct leat_source *source, uint64_t i, struct leat_scratch *scratch)
{
	struct leat_extent e;
	struct leat_sample sample;
	struct leat_err err;
	enum leat_status status;
	uint8_t *bytes = NULL;

	leat_err_clear(&err);
	leat_scratch_reset(scratch);
	source->kind->locate(source, i, &e);
	must(e.file < leat_files_count(source->files), "a sample has no file");
	if (!e.damaged) {
		uint64_t size = leat_files_at(source->files, e.file)->size;
		struct iovec iov;
		size_t got;

		must(e.length <= source->max_length && e.offset <= size && e.length <= size - e.offset,
		     "a sample leaves the file");
		must((uint64_t)e.head + e.tail <= e.length && e.length - e.head - e.tail <= source->max_payload,
		     "a payload is longer than the longest");
		bytes = malloc((size_t)e.length); /* of its own, so that sanitizers see its ends */
		iov = (struct iovec){bytes, (size_t)e.length};
		must(leat_files_read(source->files, e.file, e.offset, &iov, 1, 0, &got, &err) == LEAT_OK, "no bytes");
	}
	status = source->kind->unpack(source,
	                              &(struct leat_raw){.index = i,
	                                                 .extent = e,
	                                                 .head = bytes,
	                                                 .payload = bytes + e.head,
	                                                 .tail = bytes + e.length - e.tail},
	                              scratch, &sample, &err);
	must(status == LEAT_OK || (status == LEAT_DATA && err.text[0]), "bad without a reason");
	must(status != LEAT_OK || !e.damaged, "damage can be read");
	if (status == LEAT_OK)
		fuzz_check_fields(source, &sample, bytes, (size_t)e.length, scratch);
	free(bytes);
}

/* Opens the source and looks at its samples, `also` at what else it promises; or it is refused with a reason. */
static inline void
fuzz_source(const char *kind, const void *params, void (*also)(const struct leat_source *source))
{
	struct leat_scratch scratch = {0};
	struct leat_source source;
	struct leat_mem mem;
	struct leat_err err;

	leat_mem_init(&mem, SIZE_MAX);
	leat_err_clear(&err);
	if (leat_source_open(&source, leat_source_find(kind), params, 1, UINT64_MAX, NULL, &mem, NULL, &err) ==
	    LEAT_OK) {
		if (source.max_scratch < (size_t)1 << 30) {
			must(leat_scratch_open(&scratch, &mem, source.max_scratch + 1) == 0, "no memory for scratch");
			for (uint64_t i = 0; i < source.count && i < 1000; i++)
				fuzz_check_sample(&source, i, &scratch);
			leat_scratch_close(&scratch, &mem);
		}
		if (also)
			also(&source);
		leat_source_close(&source);
	} else {
		must(err.text[0] && err.status != LEAT_INTERNAL && err.status != LEAT_NOMEM,
		     "refused without a reason");
	}
	must(mem.used == 0, "memory is left over");
}

#endif
