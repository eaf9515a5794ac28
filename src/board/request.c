/* request.c - see request.h */
#include "board/request.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { PARTS = 4 };

/* `words` tells what the rest of the path is: r(un), s(tep), a(ction), h(ash). */
static const struct {
	const char *area, *name, *words;
	enum leat_board_what what;
} paths[] = {
	{"api", "runs", "", LEAT_BOARD_RUNS},      {"api", "run", "r", LEAT_BOARD_RUN},
	{"api", "graph", "", LEAT_BOARD_GRAPH},    {"api", "step", "s", LEAT_BOARD_STEP},
	{"api", "action", "a", LEAT_BOARD_ACTION}, {"api", "compare", "rr", LEAT_BOARD_COMPARE},
	{"api", "events", "", LEAT_BOARD_EVENTS},  {"api", "events", "r", LEAT_BOARD_EVENTS},
	{"blob", NULL, "h", LEAT_BOARD_BLOB},
};

static bool
is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

/* "/a/b" into "a", "b". Returns their number; 0: one is empty, too long, or no word, or there are too many. */
static size_t
split(const char *path, char part[PARTS][LEAT_BOARD_WORD])
{
	size_t count = 0;

	while (*path == '/') {
		size_t len = 0;

		if (count == PARTS)
			return 0;
		for (path++; is_word(*path) && len < LEAT_BOARD_WORD - 1; path++)
			part[count][len++] = *path;
		part[count++][len] = '\0';
		if (!len)
			return 0;
	}
	return *path ? 0 : count;
}

static bool
parse_number(const char *digits, uint64_t *number)
{
	size_t len = strspn(digits, "0123456789");

	if (!len || len > 18 || digits[len])
		return false;
	*number = strtoull(digits, NULL, 10);
	return true;
}

/* "decode-42": the step's name may hold dashes, too. */
static bool
parse_action(const char *word, struct leat_board_request *request)
{
	const char *dash = strrchr(word, '-');

	if (!dash || dash == word || !parse_number(dash + 1, &request->number))
		return false;
	memcpy(request->word[0], word, (size_t)(dash - word));
	request->word[0][dash - word] = '\0';
	return true;
}

static bool
parse_word(char kind, const char *word, size_t i, struct leat_board_request *request)
{
	if (kind == 'a')
		return parse_action(word, request);
	if (kind == 'h')
		return leat_digest_parse(word, &request->digest);
	memcpy(request->word[i], word, strlen(word) + 1);
	return true;
}

static bool
parse_words(const char *kinds, char part[][LEAT_BOARD_WORD], size_t parts, struct leat_board_request *request)
{
	bool good = strlen(kinds) == parts;

	for (size_t i = 0; i < parts && good; i++)
		good = parse_word(kinds[i], part[i], i, request);
	return good;
}

void
leat_board_parse(const char *path, struct leat_board_request *request)
{
	char part[PARTS][LEAT_BOARD_WORD];
	size_t parts = split(path, part);

	*request = (struct leat_board_request){.what = strcmp(path, "/") == 0 ? LEAT_BOARD_PAGE : LEAT_BOARD_NOTHING};
	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths) && !request->what; i++) {
		size_t head = paths[i].name ? 2 : 1;

		if (parts < head || strcmp(part[0], paths[i].area) != 0 ||
		    (head == 2 && strcmp(part[1], paths[i].name) != 0))
			continue;
		if (parse_words(paths[i].words, &part[head], parts - head, request))
			request->what = paths[i].what;
	}
}

/* "" or ":8080" */
static bool
is_port(const char *text)
{
	uint64_t port;

	return !*text || (*text == ':' && parse_number(text + 1, &port) && port < 65536);
}

bool
leat_board_host_is_local(const char *host)
{
	char name[sizeof("255.255.255.255")];
	struct in_addr address;
	size_t len;

	if (!host)
		return false;
	if (strncmp(host, "[::1]", 5) == 0)
		return is_port(host + 5);
	len = strcspn(host, ":");
	if (len >= sizeof(name) || !is_port(host + len))
		return false;
	memcpy(name, host, len);
	name[len] = '\0';
	return strcasecmp(name, "localhost") == 0 ||
	       (inet_pton(AF_INET, name, &address) == 1 && ntohl(address.s_addr) >> 24 == 127);
}
