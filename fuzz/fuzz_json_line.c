/* fuzz_json_line.c - any text is members of an object or refused, and jansson agrees on which */
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "table/json_line.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct leat_json_line line;
	struct leat_mem mem;
	const char *why;
	size_t bytes = 0;
	json_t *json;

	leat_mem_init(&mem, SIZE_MAX);
	line = (struct leat_json_line){.mem = &mem};
	if (leat_json_line_read(&line, (const char *)data, size, &why, NULL) != LEAT_OK)
		abort();
	for (size_t i = 0; !why && i < line.members; i++)
		bytes += line.member[i].name_len + line.member[i].len;
	if (bytes > size)
		abort();
	/* We accept what UTF-8 has not been checked of, and numbers of any size; jansson deeper nesting, and NUL bytes,
	 * which do not get here. */
	json = memchr(data, 0, size) ? NULL : json_loadb((const char *)data, size, 0, NULL);
	if (json && json_is_object(json) && why && strcmp(why, "nested too deeply") != 0)
		abort();
	json_decref(json);
	leat_json_line_free(&line);
	if (mem.used)
		abort();
	return 0;
}
