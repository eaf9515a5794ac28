/* fuzz_board_request.c - any path is a request whose words are words, or nothing; and any bytes are some kind of file
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "board/media.h"
#include "board/request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
must(bool holds)
{
	if (!holds)
		abort();
}

static void
is_word(const char *word)
{
	must(strlen(word) < LEAT_BOARD_WORD);
	must(strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == strlen(word));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct leat_board_request request;
	char *path = malloc(size + 1);

	if (!path)
		return 0;
	memcpy(path, data, size);
	path[size] = '\0';
	leat_board_parse(path, &request);
	is_word(request.word[0]);
	is_word(request.word[1]);
	if (request.what != LEAT_BOARD_NOTHING)
		must(path[0] == '/' && !strpbrk(path, ".%\\ "));
	if (leat_board_host_is_local(path))
		must(strlen(path) < 24 && !strpbrk(path, "/@"));
	must(leat_media_of(data, size)->policy != NULL);
	free(path);
	return 0;
}
