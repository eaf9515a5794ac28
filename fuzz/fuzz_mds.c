/* fuzz_mds.c - whatever index.json and a shard hold, samples lie in the file, and each can be read or says why not
 *
 * The input is two bytes, the length of index.json, then that text, then the shard, which is called s. */
#include "sources.h"

#include "format/mds.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t json = size < 2 ? 0 : (size_t)(data[0] | data[1] << 8);
	struct leat_mds_params params = {.folder = fuzz_folder()};

	if (size < 2 || json > size - 2)
		return 0;
	fuzz_write("index.json", data + 2, json);
	fuzz_write("s", data + 2 + json, size - 2 - json);
	fuzz_source("mds", &params, NULL);
	return 0;
}
