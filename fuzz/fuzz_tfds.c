/* fuzz_tfds.c - whatever dataset_info.json, features.json and a record hold, a sample can be read or says why not
 *
 * The input is two lengths of two bytes, of dataset_info.json and features.json, then these texts, then a record,
 * which is framed as TFRecord files are and called s. */
#include "sources.h"

#include "format/record.h"
#include "format/tfds.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct leat_tfds_params params = {.folder = fuzz_folder(), .split = "train[:75%]+all", .crc = true};
	size_t info, features, len;
	uint8_t *record;
	char index[200];

	if (size < 4)
		return 0;
	info = (size_t)(data[0] | data[1] << 8);
	features = (size_t)(data[2] | data[3] << 8);
	if (info > size - 4 || features > size - 4 - info)
		return 0;
	len = size - 4 - info - features;
	record = malloc(len + LEAT_TFRECORD_FRAME);
	memcpy(record + LEAT_TFRECORD_HEAD, data + 4 + info + features, len);
	leat_store64(record, len);
	leat_store32(record + 8, leat_tfrecord_crc(record, 8));
	leat_store32(record + LEAT_TFRECORD_HEAD + len, leat_tfrecord_crc(record + LEAT_TFRECORD_HEAD, len));
	fuzz_write("dataset_info.json", data + 4, info);
	fuzz_write("features.json", data + 4 + info, features);
	fuzz_write("s", record, len + LEAT_TFRECORD_FRAME);
	snprintf(index, sizeof(index), "%s/.s.leatidx", fuzz_folder());
	unlink(index);
	fuzz_source("tfds", &params, NULL);
	free(record);
	return 0;
}
