/* sandbox_env.c - the environment of a command: what leat.yaml declares, and little else
 *
 * Names are set once, so what comes first wins. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "step/sandbox.h"

/* The value of a variable that is set already; NULL: there is none. */
static const char *
value_of(const struct leat_sandbox *s, const char *name, size_t len)
{
	const char *text = s->text.text, *end = text == NULL ? NULL : text + s->text.len;

	for (; text < end; text += strlen(text) + 1)
		if (strncmp(text, name, len) == 0 && text[len] == '=')
			return text + len + 1;
	return NULL;
}

static void
set(struct leat_sandbox *s, const char *name, const char *value)
{
	if (value_of(s, name, strlen(name)) != NULL)
		return;
	leat_str_add(&s->text, name);
	leat_str_add(&s->text, "=");
	leat_str_addn(&s->text, value, strlen(value) + 1);
	s->variables++;
}

static void
set_path(struct leat_sandbox *s, const char *name, const char *entry)
{
	char path[PATH_MAX + 32];

	snprintf(path, sizeof(path), "%s/%s", s->path, entry);
	set(s, name, path);
}

static void
set_number(struct leat_sandbox *s, const char *name, uint64_t number)
{
	char text[24];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)number);
	set(s, name, text);
}

static void
set_declared(struct leat_sandbox *s)
{
	const struct leat_order *order = s->order;

	for (size_t i = 0; i < order->inputs; i++)
		set(s, order->input[i].name, s->link[i]);
	for (size_t i = 0; i < order->params; i++)
		set(s, order->param[i].name, order->param[i].value);
	for (size_t i = 0; i < order->slices; i++)
		set(s, order->slice[i].name, order->slice[i].value);
	set_number(s, "seed", order->seed);
	set_number(s, "cpus", order->cpus);
	if (s->checkpoint != NULL)
		set(s, "checkpoint", s->checkpoint);
}

static size_t
name_length(const char *text)
{
	size_t len = 0;

	while ((text[len] >= 'a' && text[len] <= 'z') || (text[len] >= 'A' && text[len] <= 'Z') || text[len] == '_' ||
	       (len > 0 && text[len] >= '0' && text[len] <= '9'))
		len++;
	return len;
}

/* A feed's spec reads what the step reads: $NAME and ${NAME} in it are replaced as a shell does. What is not declared
 * stays as it is. */
static void
expand_feed(struct leat_sandbox *s)
{
	const char *text = s->order->feed;

	while (*text != '\0') {
		size_t plain = strcspn(text, "$"), brace, len;
		const char *value;

		leat_str_addn(&s->feed, text, plain);
		text += plain;
		if (*text == '\0')
			break;
		brace = text[1] == '{';
		len = name_length(text + 1 + brace);
		value = len == 0 || (brace && text[2 + len] != '}') ? NULL : value_of(s, text + 1 + brace, len);
		if (value == NULL) {
			leat_str_addn(&s->feed, text++, 1);
			continue;
		}
		leat_str_add(&s->feed, value);
		text += 1 + 2 * brace + len;
	}
}

static void
set_env_key(struct leat_sandbox *s)
{
	for (size_t i = 0; i < s->order->envs; i++)
		if (strcmp(s->order->env[i].name, "PYTHONPATH") != 0)
			set(s, s->order->env[i].name, s->order->env[i].value);
}

/* Runtimes that would else start a thread per processor in each of the actions that run at a time. */
static void
set_threads(struct leat_sandbox *s)
{
	static const char *const names[] = {"OMP_NUM_THREADS",     "OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS",
	                                    "MKL_NUM_THREADS",     "BLIS_NUM_THREADS",     "VECLIB_MAXIMUM_THREADS",
	                                    "NUMEXPR_NUM_THREADS", "NUMBA_NUM_THREADS",    "RAYON_NUM_THREADS"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		set_number(s, names[i], s->order->cpus);
}

static const char *
python_path(const struct leat_order *order)
{
	for (size_t i = 0; i < order->envs; i++)
		if (strcmp(order->env[i].name, "PYTHONPATH") == 0)
			return order->env[i].value;
	return getenv("PYTHONPATH");
}

static enum leat_status
set_python(struct leat_sandbox *s, struct leat_err *err)
{
	const char *path = python_path(s->order);
	char hook[PATH_MAX] = "", *both;
	enum leat_status status = !s->order->has_code ? LEAT_OK : leat_code_hook(s->runner->cas, hook, err);

	if (status != LEAT_OK)
		return status;
	both = leat_asprintf(s->mem, "%s%s%s", hook, *hook != '\0' && path != NULL && *path != '\0' ? ":" : "",
	                     path == NULL ? "" : path);
	if (both == NULL)
		return leat_fail_mem(err, s->mem, PATH_MAX, "PYTHONPATH");
	if (*both != '\0')
		set(s, "PYTHONPATH", both);
	leat_free(s->mem, both);
	set_path(s, "LEAT_IMPORTS", "imports");
	set(s, "PYTHONHASHSEED", "0"); /* sets in the same order every time, so equal inputs give equal bytes */
	set(s, "PYTHONDONTWRITEBYTECODE", "1"); /* modules are links into a snapshot that others use */
	set(s, "PYTHONUNBUFFERED", "1");        /* what it prints is seen at once, and not lost in a crash */
	return LEAT_OK;
}

/* For kinds of steps that run this program, and are not to be in the key: where it is, and how much memory it may use.
 */
static void
set_command(struct leat_sandbox *s)
{
	char path[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 1);

	if (len > 0) {
		path[len] = '\0';
		set(s, "LEAT_COMMAND", path);
	}
	if (s->order->memory_bytes > 0)
		set_number(s, "LEAT_MEMORY", s->order->memory_bytes);
}

static void
pass_on(struct leat_sandbox *s)
{
	static const char *const names[] = {
#ifdef __SANITIZE_THREAD__
		"TSAN_OPTIONS", /* DuckDB, which actions run in this program, is not built for it */
#endif
		"PATH",         "HOME", "USER", "LANG", "TZ", "VIRTUAL_ENV", "CONDA_PREFIX", "LD_LIBRARY_PATH",
		"LEAT_DUCKDB"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		const char *value = getenv(names[i]);

		if (value != NULL)
			set(s, names[i], value);
	}
	set(s, "PATH", "/usr/local/bin:/usr/bin:/bin");
	for (char **variable = environ; *variable != NULL; variable++) {
		size_t len = strcspn(*variable, "=");

		if (strncmp(*variable, "LC_", 3) != 0 || (*variable)[len] != '=' || value_of(s, *variable, len) != NULL)
			continue;
		leat_str_addn(&s->text, *variable, strlen(*variable) + 1);
		s->variables++;
	}
}

static enum leat_status
point_at(struct leat_sandbox *s, struct leat_err *err)
{
	char *text = s->text.text;

	if (s->text.failed || s->feed.failed)
		return leat_fail_mem(err, s->mem, s->text.len, "the environment of a command");
	s->environment = leat_alloc_array(s->mem, s->variables + 1, sizeof(*s->environment));
	if (s->environment == NULL)
		return leat_fail_mem(err, s->mem, s->variables * sizeof(char *), "the environment of a command");
	for (size_t i = 0; i < s->variables; i++, text += strlen(text) + 1)
		s->environment[i] = text;
	return LEAT_OK;
}

enum leat_status
leat_sandbox_set_environment(struct leat_sandbox *s, struct leat_err *err)
{
	enum leat_status status;

	set(s, "out", s->out);
	set_path(s, "LEAT_STEP", "step.json");
	set_path(s, "TMPDIR", "tmp");
	set_declared(s);
	expand_feed(s);
	if (s->feed.len > 0)
		set(s, "feed", leat_str_text(&s->feed));
	set_env_key(s);
	set_threads(s);
	set_command(s);
	status = set_python(s, err);
	if (status != LEAT_OK)
		return status;
	pass_on(s);
	return point_at(s, err);
}
