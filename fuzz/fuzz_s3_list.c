/* fuzz_s3_list.c - any bytes are a list of objects or refused with a reason; the text of an error or an upload's id
 * stays inside its buffer */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "store/s3_list.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
must(bool holds)
{
	if (!holds)
		abort();
}

static enum leat_status
visit(void *arg, const struct leat_s3_entry *entry, struct leat_err *err)
{
	(void)err;
	must(strlen(entry->key) <= *(size_t *)arg && strlen(entry->etag) <= *(size_t *)arg && entry->size <= INT64_MAX);
	return LEAT_OK;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1), code[16], message[16], id[32];
	const char *next;
	struct leat_err err;

	if (!text)
		return 0;
	memcpy(text, data, size);
	leat_s3_error_parse(text, size, code, sizeof(code), message, sizeof(message));
	must(strlen(code) < sizeof(code) && strlen(message) < sizeof(message));
	if (leat_s3_upload_parse(text, size, id, sizeof(id)))
		must(*id && strlen(id) < sizeof(id) && !strchr(id, '<'));
	leat_err_clear(&err);
	if (leat_s3_list_parse(text, size, visit, &size, &next, &err) == LEAT_OK)
		must(!next || strlen(next) <= size);
	else
		must(err.status != LEAT_OK && err.text[0]);
	free(text);
	return 0;
}
