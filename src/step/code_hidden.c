/* code_hidden.c - does a text start a Python that does not load the hook?
 *
 * Then nothing is known of what that process imports, even if other processes of the command left records. */
#include <ctype.h>
#include <string.h>

#include "step/code_inside.h"

/* What may be between the words of a command, in shells and in lists of Python. */
static const char *
skip_between(const char *at)
{
	while (*at && strchr(" \t\n\\\"',)]}", *at))
		at++;
	return at;
}

static const char *
skip_word(const char *at)
{
	while (*at && !strchr(" \t\n\"',)]}", *at))
		at++;
	return at;
}

/* One word of options, such as "-bS". *at goes on after it and its argument. */
static bool
has_hiding_option(const char **at, bool *is_last)
{
	for (++*at; isalpha((unsigned char)**at); ++*at) {
		if (strchr("IES", **at))
			return true;
		if (strchr("cm", **at)) {
			*is_last = true;
			return false;
		}
		if (strchr("WX", **at)) { /* with an argument, maybe in the next word */
			*at = skip_word((*at)[1] && !strchr(" \t\"',", (*at)[1]) ? *at : skip_between(*at + 1));
			return false;
		}
	}
	*at = skip_word(*at);
	return false;
}

/* After the name of a Python. */
static bool
has_hiding_options(const char *at)
{
	bool is_last = false;

	while (isalnum((unsigned char)*at) || *at == '.' || *at == '_')
		at++;
	for (at = skip_between(at); *at == '-' && !is_last; at = skip_between(at))
		if (has_hiding_option(&at, &is_last))
			return true;
	return false;
}

/* PYTHONPATH=lib, without the PYTHONPATH there was. */
static bool
sets_path(const char *at)
{
	size_t name = strlen("PYTHONPATH="), len;

	if (strncmp(at, "PYTHONPATH=", name) != 0)
		return false;
	len = strcspn(at + name, " \t\n;");
	return !memmem(at + name, len, "PYTHONPATH", name - 1);
}

bool
leat_code_hides_python(const char *text)
{
	if (strstr(text, "env -i") || strstr(text, "unset PYTHONPATH"))
		return true;
	for (const char *at = text; (at = strcasestr(at, "python")) != NULL; at += strlen("python"))
		if (sets_path(at) || has_hiding_options(at + strlen("python")))
			return true;
	for (const char *at = text; (at = strstr(at, "sys.executable")) != NULL; at += strlen("sys.executable"))
		if (has_hiding_options(at + strlen("sys.executable")))
			return true;
	return false;
}
