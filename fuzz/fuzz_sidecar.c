/* fuzz_sidecar.c - whatever a sidecar holds, its sections lie in it, and a list that is accepted lies in these
 *
 * The checksum and the key are made right, because otherwise nothing would get past them. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "format/file_table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
must(bool holds)
{
	if (!holds)
		abort();
}

static const char *
accept(void *arg, const struct leat_sidecar *sidecar, bool *stale)
{
	(void)arg, (void)sidecar, (void)stale;
	return NULL;
}

/* A name in a folder, by another rule than leat_is_plain_name's: "/NAME/" has no "//", "/./" or "/../", and no NUL. */
static bool
is_in_folder(const char *name, size_t len)
{
	char *text = malloc(len + 3);
	bool good;

	if (!text)
		return true;
	text[0] = '/';
	memcpy(text + 1, name, len);
	strcpy(text + 1 + len, "/");
	good = strlen(text) == len + 2 && !strstr(text, "//") && !strstr(text, "/./") && !strstr(text, "/../");
	free(text);
	return good;
}

/* Reads all that could be read, for the sanitizers to see. */
static void
read_list(const struct leat_sidecar *sidecar)
{
	struct leat_extent extent;
	struct leat_file_table files;
	struct leat_datum name;
	bool plain = true;

	if (!leat_file_table_read(&files, sidecar))
		return;
	for (uint64_t i = 0; i < files.count; i++) {
		leat_file_table_locate(&files, i, &extent);
		must(extent.damaged ? files.size[i] == LEAT_NO_FILE : extent.length <= files.max_size);
		leat_file_table_name(&files, i, &name);
		must((uint64_t)name.shape[0] <= files.longest);
		plain &= is_in_folder(name.data, (size_t)name.shape[0]);
	}
	must(leat_file_table_is_plain(&files) == plain);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct leat_sidecar_of of = {.kind = "fuzz", .fault = accept};
	struct leat_sidecar_head *head = aligned_alloc(8, (size + sizeof(*head) + 7) & ~(size_t)7);
	struct leat_sidecar sidecar = {0};
	uint64_t bytes = 0;
	bool stale;

	if (!head)
		return 0;
	memcpy(head, data, size);
	if (size >= sizeof(*head)) {
		memcpy(head->magic, LEAT_SIDECAR_MAGIC "\2\0\0", 12);
		memcpy(head->kind, "fuzz\0\0\0", 8);
		memset(head->key, 0, sizeof(head->key));
		head->crc = leat_sidecar_crc(head, size);
	}
	if (leat_sidecar_read(&sidecar, &of, head, size, &stale) == NULL) {
		for (size_t i = 0; i < sidecar.sections; i++)
			bytes += sidecar.section[i].bytes;
		must(bytes <= size);
		read_list(&sidecar);
	}
	free(head);
	return 0;
}
