/* project_names.c - names that can be shell variables, and those that commands get anyway */
#include <string.h>

#include "step/project_read.h"

enum { LONGEST = 100 }; /* out/NAME has to be a file name */

/* What Leat sets for every command. */
static const char *const of_leat[] = {"out", "seed", "feed", "cpus", "checkpoint", NULL};
/* The number of threads of each library, set from `cpus`. */
static const char *const of_threads[] = {
	"OMP_NUM_THREADS",        "OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS",  "MKL_NUM_THREADS",   "BLIS_NUM_THREADS",
	"VECLIB_MAXIMUM_THREADS", "NUMEXPR_NUM_THREADS",  "NUMBA_NUM_THREADS", "RAYON_NUM_THREADS", NULL};
/* What passes from the environment. A step may declare these in `env`, which keys them. */
static const char *const of_user[] = {
	"PATH", "HOME", "USER", "LANG", "TZ", "VIRTUAL_ENV", "CONDA_PREFIX", "LD_LIBRARY_PATH", "PYTHONPATH", NULL};
/* What a shell sets, dash or bash. */
static const char *const of_shell[] = {"IFS",    "PWD",    "OLDPWD", "PPID",     "PS1",  "PS2",    "PS4",     "OPTIND",
                                       "OPTARG", "OPTERR", "ENV",    "UID",      "EUID", "RANDOM", "SECONDS", "LINENO",
                                       "SHLVL",  "SHELL",  "TMPDIR", "HOSTNAME", "_",    NULL};

static bool
is_in(const char *const *list, const char *name, size_t len)
{
	for (; *list; list++)
		if (!strncmp(*list, name, len) && !(*list)[len])
			return true;
	return false;
}

static bool
begins(const char *name, size_t len, const char *prefix)
{
	return len > strlen(prefix) && !strncmp(name, prefix, strlen(prefix));
}

bool
leat_is_given_name(const char *name, size_t len)
{
	return is_in(of_leat, name, len) || is_in(of_threads, name, len) || is_in(of_user, name, len) ||
	       is_in(of_shell, name, len) || begins(name, len, "LC_") || begins(name, len, "LEAT_") ||
	       begins(name, len, "BASH");
}

bool
leat_is_name_character(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

bool
leat_is_shell_name(const char *name)
{
	if (!*name || (*name >= '0' && *name <= '9'))
		return false;
	while (leat_is_name_character(*name))
		name++;
	return !*name;
}

static enum leat_status
check_form(struct leat_reading *r, const struct leat_yaml *node, const char *what)
{
	if (node->kind != LEAT_YAML_TEXT)
		return leat_yaml_fail(&r->file, node, "expected the name of %s", what);
	if (strchr(node->text, ':'))
		return leat_yaml_fail(&r->file, node, "'%s' cannot be the name of %s; is a space missing after ':'?",
		                      node->text, what);
	if (!leat_is_shell_name(node->text))
		return leat_yaml_fail(
			&r->file, node,
			"'%s' cannot be the name of %s, because names become shell variables; use letters, "
			"digits and _, and begin with a letter",
			node->text, what);
	if (strlen(node->text) > LONGEST)
		return leat_yaml_fail(&r->file, node, "the name of %s has more than %d characters", what, LONGEST);
	return LEAT_OK;
}

enum leat_status
leat_name_check(struct leat_reading *r, const struct leat_yaml *node, const char *what)
{
	enum leat_status status = check_form(r, node, what);

	if (status == LEAT_OK && leat_is_given_name(node->text, strlen(node->text)))
		status = leat_yaml_fail(&r->file, node,
		                        "$%s means something else in every command; give %s another name", node->text,
		                        what);
	return status;
}

enum leat_status
leat_env_name_check(struct leat_reading *r, const struct leat_yaml *node)
{
	enum leat_status status = check_form(r, node, "an environment variable");
	const char *name = node->text;

	if (status != LEAT_OK)
		return status;
	if (is_in(of_threads, name, strlen(name)))
		return leat_yaml_fail(&r->file, node, "%s is set from 'cpus'; use that key", name);
	if (leat_is_given_name(name, strlen(name)) && !is_in(of_user, name, strlen(name)) &&
	    !begins(name, strlen(name), "LC_"))
		return leat_yaml_fail(&r->file, node, "%s is set for every command and cannot be changed", name);
	return LEAT_OK;
}
