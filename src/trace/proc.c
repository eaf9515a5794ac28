/* proc.c - see proc.h */
#include "trace/proc.h"

#include <limits.h>
#include <string.h>

static void
skip_blanks(const char **at, const char *end)
{
	while (*at < end && (**at == ' ' || **at == '\t'))
		(*at)++;
}

/* Takes a decimal number after blanks. False: there is none, or it needs more than 64 bits. */
static bool
take_number(const char **at, const char *end, uint64_t *number)
{
	const char *begin;

	skip_blanks(at, end);
	begin = *at;
	*number = 0;
	for (; *at < end && **at >= '0' && **at <= '9'; (*at)++)
		if (__builtin_mul_overflow(*number, 10u, number) ||
		    __builtin_add_overflow(*number, (uint64_t)(**at - '0'), number))
			return false;
	return *at > begin;
}

/* Skips `count` words. False: there are fewer. */
static bool
skip_words(const char **at, const char *end, int count)
{
	while (count-- > 0) {
		skip_blanks(at, end);
		if (*at == end || **at == '\n')
			return false;
		while (*at < end && **at != ' ' && **at != '\t' && **at != '\n')
			(*at)++;
	}
	return true;
}

static const char *
line_end(const char *at, const char *end)
{
	const char *newline = memchr(at, '\n', (size_t)(end - at));

	return newline ? newline : end;
}

static void
copy_name(char *to, const char *from, size_t len)
{
	size_t kept = len < LEAT_PROC_NAME - 1 ? len : LEAT_PROC_NAME - 1;

	for (size_t i = 0; i < kept; i++)
		to[i] = from[i] >= ' ' && from[i] <= '~' ? from[i] : '?';
	to[kept] = '\0';
}

/* "PID (NAME) STATE PPID ...": only numbers come after the last parenthesis, whatever the name is. */
bool
leat_proc_parse_stat(const char *text, size_t len, struct leat_proc_stat *stat)
{
	const char *end = text + len, *name = memchr(text, '(', len), *at = memrchr(text, ')', len);
	uint64_t user, system;

	if (!name || !at || at <= name)
		return false;
	copy_name(stat->name, name + 1, (size_t)(at - name - 1));
	at++;
	if (!skip_words(&at, end, 11) || !take_number(&at, end, &user) || !take_number(&at, end, &system) ||
	    !skip_words(&at, end, 6) || !take_number(&at, end, &stat->start))
		return false;
	return !__builtin_add_overflow(user, system, &stat->ticks);
}

bool
leat_proc_parse_statm(const char *text, size_t len, uint64_t *resident)
{
	const char *end = text + len;

	return skip_words(&text, end, 1) && take_number(&text, end, resident);
}

/* Interfaces that pass on what others count as well: bridges, and the host's ends of containers' links. */
static bool
is_relay(const char *name, size_t len)
{
	static const char *const prefix[] = {"veth", "docker", "br-", "virbr", "cni", "flannel", "cali", "bond", "ifb"};

	for (size_t i = 0; i < sizeof(prefix) / sizeof(*prefix); i++)
		if (len >= strlen(prefix[i]) && memcmp(name, prefix[i], strlen(prefix[i])) == 0)
			return true;
	return false;
}

/* "NAME: RECEIVED packets errs drop fifo frame compressed multicast SENT ..." */
static bool
add_interface(const char *at, const char *end, struct leat_proc_net *net)
{
	const char *colon = memrchr(at, ':', (size_t)(end - at)), *name;
	uint64_t received, sent;
	size_t len;

	if (!colon)
		return false;
	skip_blanks(&at, colon);
	name = at;
	len = (size_t)(colon - name);
	at = colon + 1;
	if (!take_number(&at, end, &received) || !skip_words(&at, end, 7) || !take_number(&at, end, &sent))
		return false;
	if (len == 2 && memcmp(name, "lo", 2) == 0)
		net->loopback += received;
	else if (!is_relay(name, len))
		net->bytes += received + sent; /* may wrap: only differences count */
	return true;
}

bool
leat_proc_parse_net(const char *text, size_t len, struct leat_proc_net *net)
{
	const char *end = text + len;
	bool found = false;

	*net = (struct leat_proc_net){0};
	while (text < end) {
		const char *line = line_end(text, end);

		if (line < end && add_interface(text, line, net)) /* a line without an end is cut off */
			found = true;
		text = line + (line < end);
	}
	return found;
}

bool
leat_proc_find(const char *text, size_t len, const char *key, uint64_t *value)
{
	const char *end = text + len;
	size_t key_len = strlen(key);

	while (text < end) {
		const char *line = line_end(text, end), *at = text + key_len;

		if ((size_t)(line - text) > key_len && memcmp(text, key, key_len) == 0 && (*at == ':' || *at == ' ')) {
			at++;
			return take_number(&at, line, value);
		}
		text = line + (line < end);
	}
	return false;
}

int
leat_proc_next_id(const char **text, const char *end)
{
	uint64_t id;

	if (!take_number(text, end, &id) || id == 0 || id > INT_MAX)
		return 0;
	return (int)id;
}
