/* fuzz_credentials.c - any bytes as a profile file, and as the answer of a credential_process or of STS */
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
	free(text);
	return 0;
}
