/* fuzz_data_index.c - whatever the index of a data set holds, it names only files that the patterns match
 *
 * The checksum, the kind and the key are made right, because otherwise nothing would get past them. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "format/data_index.h"
#include "format/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const patterns[] = {"http://a/x", "http://a/y"};

static void
must(bool holds)
{
	if (!holds)
		abort();
}

static struct leat_sidecar_head *
copy(const uint8_t *data, size_t size)
{
	struct leat_sidecar_head *head = aligned_alloc(8, (size + sizeof(*head) + 7) & ~(size_t)7);

	if (!head)
		return NULL;
	memcpy(head, data, size);
	if (size >= sizeof(*head)) {
		memcpy(head->magic, LEAT_SIDECAR_MAGIC, 8);
		head->version = LEAT_SIDECAR_VERSION;
		memcpy(head->kind, "dataset", 8);
		must(leat_sha256("http://a/x\0http://a/y", sizeof("http://a/x\0http://a/y"), head->key) == 0);
		head->crc = leat_sidecar_crc(head, size);
	}
	return head;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct leat_stores stores;
	static struct leat_mem mem;
	struct leat_sidecar_head *head = copy(data, size);
	struct leat_files *files;

	if (!head)
		return 0;
	if (!stores.mem) {
		leat_mem_init(&mem, SIZE_MAX);
		leat_stores_init(&stores, &mem);
	}
	if (leat_data_index_read(head, size, &files, &leat_tfrecord_index, &stores, patterns, 2, &mem) == NULL)
		must(leat_files_count(files) > 0);
	for (size_t i = 0; i < leat_files_count(files); i++) {
		const struct leat_object *object = leat_files_at(files, i);

		must(strcmp(object->uri, patterns[0]) == 0 || strcmp(object->uri, patterns[1]) == 0);
		must(object->size <= INT64_MAX && object->version.len <= LEAT_VERSION_BYTES);
	}
	leat_files_close(files);
	free(head);
	return 0;
}
