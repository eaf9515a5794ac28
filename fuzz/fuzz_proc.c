/* fuzz_proc.c - any bytes are text of /proc, or refused; names of threads are printable and end */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "trace/proc.h"

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
	const char *text = (const char *)data, *at = text, *end = text + size;
	struct leat_proc_stat stat;
	struct leat_proc_net net;
	uint64_t value;

	if (!size)
		return 0;
	if (leat_proc_parse_stat(text, size, &stat)) {
		size_t len = strnlen(stat.name, sizeof(stat.name));

		must(len < sizeof(stat.name));
		for (size_t i = 0; i < len; i++)
			must(stat.name[i] >= ' ' && stat.name[i] <= '~');
	}
	(void)leat_proc_parse_statm(text, size, &value);
	(void)leat_proc_parse_net(text, size, &net);
	(void)leat_proc_find(text, size, "write_bytes", &value);
	(void)leat_proc_find(text, size, "nr_throttled", &value);
	for (int id = 1; id;) {
		const char *before = at;

		id = leat_proc_next_id(&at, end);
		must(id >= 0 && at >= before && at <= end && (!id || at > before));
	}
	return 0;
}
