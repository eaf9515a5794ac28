/* fuzz_credentials.c - any bytes as a profile file, as the answer of a credential_process or of STS, and as settings */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "store/aws_config.h"
#include "store/credentials.h"
#include "store/credentials_fetch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
must(bool holds)
{
	if (!holds)
		abort();
}

/* A value is accepted and fits, or refused by an error that has one line and no memory behind. */
static void
fuzz_settings(const char *text, size_t size)
{
	char *value = malloc(size + 1);
	struct leat_storage storage;
	struct leat_mem mem;
	struct leat_err err;

	if (!value)
		return;
	memcpy(value, text, size);
	value[size] = '\0';
	leat_mem_init(&mem, SIZE_MAX);
	leat_storage_init(&storage);
	for (const struct leat_setting *s = leat_settings; s->opt.name; s++) {
		leat_err_clear(&err);
		if (leat_storage_put(&storage, s->opt.name, value, "fuzz", &mem, &err) != LEAT_OK)
			must(err.status == LEAT_INVALID && *err.text && !strchr(err.text, '\n'));
	}
	leat_err_clear(&err);
	if (leat_storage_parse(&storage, (const char *[]){value, NULL}, &mem, &err) != LEAT_OK)
		must(err.status == LEAT_INVALID && *err.text && !strchr(err.text, '\n'));
	must(strlen(storage.endpoint) < LEAT_SETTING && storage.timeout > 0 && storage.requests >= 0);
	must(mem.used == 0);
	free(value);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct leat_credentials found;
	struct leat_err err;
	char *text = malloc(size ? size : 1), value[16];

	if (!text)
		return 0;
	memcpy(text, data, size); /* without a NUL at its end */
	if (leat_aws_config_get(text, size, "default", "region", value, sizeof(value)))
		must(value[0] && strlen(value) < sizeof(value) && !strchr(value, '\n'));
	leat_err_clear(&err);
	if (leat_credentials_parse(&found, text, size, &err) != LEAT_OK)
		must(err.status == LEAT_INVALID);
	leat_err_clear(&err);
	if (leat_credentials_parse_sts(&found, text, size, &err) != LEAT_OK)
		must(err.status == LEAT_INVALID);
	fuzz_settings(text, size);
	free(text);
	return 0;
}
