/* fuzz_board_log.c - any bytes are the log of a run, and what they add up to is JSON */
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "board/tally.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
must(bool holds)
{
	if (!holds)
		abort();
}

/* In an event stream a line break ends the message. */
static void
check_line(void *arg, const struct leat_tally *tally)
{
	(void)arg;
	must(!tally->last || !strpbrk(tally->last, "\r\n"));
	must(tally->touched == SIZE_MAX || tally->touched < tally->steps);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("log", 0);
	struct leat_tally tally;
	struct leat_mem mem;
	struct leat_str text;
	uint64_t at = 0;
	json_t *json;

	if (fd < 0)
		return 0;
	must(write(fd, data, size) == (ssize_t)size);
	leat_mem_init(&mem, SIZE_MAX);
	leat_tally_init(&tally, &mem);
	leat_str_init(&text, &mem, SIZE_MAX);
	must(leat_tally_read(&tally, fd, &at, SIZE_MAX / 2, check_line, NULL, NULL) == LEAT_OK);
	must(at <= size);
	leat_tally_json(&tally, "RUN", false, &text);
	json = json_loads(leat_str_text(&text), 0, NULL);
	must(json_is_object(json));
	json_decref(json);
	leat_str_free(&text);
	leat_tally_free(&tally);
	must(mem.used == 0);
	close(fd);
	return 0;
}
