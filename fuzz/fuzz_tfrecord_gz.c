/* fuzz_tfrecord_gz.c - any bytes as a compressed TFRecord file, and any bytes compressed
 *
 * Of the first nothing is known but that every sample is right or bad with a reason. Of the second: the samples are
 * the records up to the first header that is wrong, and one that says so. Both with and without a limit on bytes, which
 * leaves holes in units and changes no other record. */
#include <zlib.h>

#include "format/record.h"
#include "format/tfrecord.h"
#include "sources.h"

static struct leat_scratch scratch;

/* The unit of a sample, fetched and decoded for it alone; to be freed with its bytes. */
static enum leat_status
read_unit(const struct leat_source *of, const struct leat_extent *extent, struct leat_unit *unit,
          struct leat_scratch *s, struct leat_err *e)
{
	struct leat_extent bytes;
	struct iovec iov;
	enum leat_status status;
	size_t got;

	*unit = (struct leat_unit){.number = extent->unit, .bytes = malloc(of->max_unit + 1)};
	of->kind->unit(of, extent->unit, &bytes);
	iov = (struct iovec){malloc((size_t)bytes.length + 1), (size_t)bytes.length};
	status = leat_files_read(of->files, bytes.file, bytes.offset, &iov, 1, 0, &got, e);
	if (status == LEAT_OK)
		status = of->kind->decode(of, &bytes, iov.iov_base, unit, s, e);
	free(iov.iov_base);
	return status;
}

/* LEAT_OK or LEAT_DATA. */
static enum leat_status
read_sample(const struct leat_source *source, uint64_t i, struct leat_extent *extent, struct leat_sample *sample)
{
	static struct leat_unit unit;
	struct leat_raw raw = {.index = i};
	enum leat_status status = LEAT_OK;
	struct leat_err err;

	leat_err_clear(&err);
	leat_scratch_reset(&scratch);
	leat_source_locate(source, i, extent);
	must(extent->damaged || (!extent->length && extent->lent <= source->max_payload), "an extent with bytes");
	must(!extent->damaged || extent->oversized || i == source->count - 1, "damage before the end");
	must(extent->oversized == (extent->lent > source->max_bytes), "the limit is another");
	raw.extent = *extent;
	free(unit.bytes);
	unit.bytes = NULL;
	if (extent->in_unit && !extent->damaged) {
		status = read_unit(source, extent, &unit, &scratch, &err);
		raw.unit = &unit;
	}
	if (status == LEAT_OK)
		status = leat_source_unpack(source, &raw, &scratch, sample, &err);
	must(status == LEAT_OK || (status == LEAT_DATA && err.text[0]), "bad without a reason");
	must(status != LEAT_OK || (!extent->damaged && (uint64_t)sample->field[0].shape[0] == extent->lent),
	     "a sample has another length");
	return status;
}

static bool
is_right(const uint8_t *record, uint64_t length)
{
	return leat_load32(record + LEAT_TFRECORD_HEAD + length) ==
	       leat_tfrecord_crc(record + LEAT_TFRECORD_HEAD, (size_t)length);
}

/* `plain`: what was compressed; NULL: not known. */
static void
check_samples(const struct leat_source *source, const uint8_t *plain, size_t size)
{
	uint64_t at = 0, length = 0;

	for (uint64_t i = 0; i < source->count && i < 10000; i++) {
		struct leat_extent extent;
		struct leat_sample sample;
		enum leat_status status = read_sample(source, i, &extent, &sample);

		if (!plain)
			continue;
		must(extent.offset == at, "a sample lies elsewhere");
		must((extent.damaged && !extent.oversized) ==
		             (leat_tfrecord_header_fault(plain + at, size - at, &length) != NULL),
		     "a header is seen otherwise");
		if (extent.damaged && !extent.oversized)
			return;
		must(extent.oversized || (status == LEAT_OK) == is_right(plain + at, length),
		     "a checksum is not looked at");
		must(status != LEAT_OK ||
		             (extent.lent == length &&
		              memcmp(sample.field[0].data, plain + at + LEAT_TFRECORD_HEAD, (size_t)length) == 0),
		     "a record has other bytes");
		at += LEAT_TFRECORD_FRAME + length;
	}
	must(!plain || at == size || source->count > 10000, "records are lost");
}

static void
check_file(const uint8_t *bytes, size_t len, const uint8_t *plain, size_t size, uint64_t max_bytes)
{
	char path[200];
	const char *pattern = path;
	struct leat_tfrecord_params params = {.patterns = {1, &pattern}, .crc = true};
	struct leat_source source;
	struct leat_mem mem;
	struct leat_err err;

	fuzz_write("x", bytes, len);
	snprintf(path, sizeof(path), "%s/.x.leatidx", fuzz_folder());
	unlink(path);
	snprintf(path, sizeof(path), "%s/x", fuzz_folder());
	leat_mem_init(&mem, SIZE_MAX);
	leat_err_clear(&err);
	if (leat_source_open(&source, leat_source_find("tfrecord"), &params, 1, max_bytes, NULL, &mem, NULL, &err) ==
	    LEAT_OK) {
		if (source.units && source.max_unit < (size_t)1 << 28) {
			must(leat_scratch_open(&scratch, &mem, source.max_scratch + 4096) == 0,
			     "no memory for scratch");
			check_samples(&source, plain, size);
			leat_scratch_close(&scratch, &mem);
		}
		leat_source_close(&source);
	} else {
		must(err.text[0] && err.status == LEAT_DATA, "refused without a reason");
	}
	must(mem.used == 0, "memory is left over");
}

static void
check_both(const uint8_t *bytes, size_t len, const uint8_t *plain, size_t size)
{
	check_file(bytes, len, plain, size, UINT64_MAX);
	if (len > 0)
		check_file(bytes, len, plain, size, bytes[len / 2]);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uLongf len = compressBound(size);
	uint8_t *packed;

	if (size >= 3 && leat_tfrecord_packing(data, size, size) != LEAT_PACKED_NOT)
		check_both(data, size, NULL, 0);
	packed = malloc(len);
	must(packed && compress2(packed, &len, data, size, 6) == Z_OK, "no memory");
	check_both(packed, len, data, size);
	free(packed);
	return 0;
}
