/* names.c - error messages for unknown names, with a suggestion */
#include "base/names.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

static unsigned char
lower(char c)
{
	return (unsigned char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

static unsigned
min3(unsigned a, unsigned b, unsigned c)
{
	unsigned least = a < b ? a : b;

	return least < c ? least : c;
}

enum { MAX_NEAR = 63, MAX_SHOWN = 80 }; /* longer names get no suggestion; longer ones are truncated */

/* Damerau-Levenshtein distance, ignoring case. */
static unsigned
edit_distance(const char *a, const char *b)
{
	unsigned row[3][MAX_NEAR + 1];
	unsigned *before = row[0], *last = row[1], *now = row[2], *spare;
	size_t a_len = strlen(a), b_len = strlen(b);

	for (unsigned j = 0; j <= b_len; j++)
		last[j] = j;
	for (unsigned i = 1; i <= a_len; i++) {
		now[0] = i;
		for (unsigned j = 1; j <= b_len; j++) {
			unsigned change = lower(a[i - 1]) != lower(b[j - 1]);

			now[j] = min3(last[j] + 1, now[j - 1] + 1, last[j - 1] + change);
			if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
			    lower(a[i - 2]) == lower(b[j - 1]) && before[j - 2] + 1 < now[j])
				now[j] = before[j - 2] + 1;
		}
		spare = before;
		before = last;
		last = now;
		now = spare;
	}
	return last[b_len];
}

/* Up to a third of the letters may differ: 'resise' suggests 'resize', but 'path' does not suggest 'cat'. */
const char *
leat_nearest(const char *name, const char *const *known, size_t count)
{
	size_t len = strnlen(name, MAX_NEAR + 1);
	const char *nearest = NULL;
	unsigned least = MAX_NEAR;

	if (len == 0 || len > MAX_NEAR)
		return NULL;
	for (size_t i = 0; i < count; i++) {
		size_t other = strnlen(known[i], MAX_NEAR + 1);
		unsigned distance;

		if (other > MAX_NEAR)
			continue;
		distance = edit_distance(name, known[i]);
		if (distance > (len > other ? len : other) / 3 || distance >= least)
			continue;
		least = distance;
		nearest = known[i];
	}
	return nearest;
}

static void __attribute__((format(printf, 2, 3))) add(char buf[LEAT_UNKNOWN_TEXT], const char *fmt, ...)
{
	size_t used = strlen(buf);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(buf + used, LEAT_UNKNOWN_TEXT - used, fmt, ap);
	va_end(ap);
}

static void
add_name(char buf[LEAT_UNKNOWN_TEXT], const char *prefix, const char *name)
{
	char shown[MAX_SHOWN + 1];

	add(buf, "%s%s", prefix, leat_show(shown, sizeof(shown), name, strlen(name)));
}

#define MORE " and 18446744073709551615 more"

/* "a, b, c", or as many as fit: "a, b and 3 more". */
static void
add_known(const struct leat_unknown *u, char buf[LEAT_UNKNOWN_TEXT], const char *prefix)
{
	size_t i = 0, room = LEAT_UNKNOWN_TEXT - sizeof(", ") - strlen(prefix) - MAX_SHOWN - sizeof(MORE);

	for (; i < u->count && strlen(buf) < room; i++) {
		add(buf, "%s", i ? ", " : "");
		add_name(buf, prefix, u->known[i]);
	}
	if (i < u->count + u->more)
		add(buf, " and %zu more", u->count - i + u->more);
}

char *
leat_unknown_text(const struct leat_unknown *u, char buf[LEAT_UNKNOWN_TEXT])
{
	const char *near = leat_nearest(u->name, u->known, u->count), *prefix = u->prefix ? u->prefix : "";

	buf[0] = '\0';
	add(buf, "%.100s %s no %s '", u->owner ? u->owner : "there", u->owner ? "has" : "is", u->what);
	add_name(buf, prefix, u->name);
	if (near) {
		add(buf, "', did you mean '");
		add_name(buf, prefix, near);
		add(buf, "'?");
	} else if (u->hint) {
		add(buf, "'; %s", u->hint);
	} else if (u->count == 0) {
		add(buf, "'");
	} else {
		if (u->owner)
			add(buf, "'; it has ");
		else
			add(buf, "'; the %ss here are ", u->what);
		add_known(u, buf, prefix);
	}
	return buf;
}

enum leat_status
leat_fail_unknown(struct leat_err *err, enum leat_status status, const struct leat_unknown *unknown)
{
	char text[LEAT_UNKNOWN_TEXT];

	return leat_fail(err, status, "%s", leat_unknown_text(unknown, text));
}
