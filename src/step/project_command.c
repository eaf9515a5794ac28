/* project_command.c - a command uses only variables that it gets
 *
 * A shell replaces $epochs by nothing if `in: epochs` was forgotten, and the command fails much later, or not at all.
 * So leat.yaml is refused if a command uses a name that nothing gives it. What is not certain is accepted: the command
 * may set variables itself, and ${x:-} says that x may be missing. */
#include <stdio.h>
#include <string.h>

#include "base/names.h"
#include "step/project_read.h"

enum {
	MAX_NESTING = 32,
	MAX_KNOWN = 1100,
	MAX_COMMAND = 100 * 1024,
	MAX_LOOK_BACK = 200,
	LONGEST_NAME = 128,
	MAX_SET = 200
};

/* What a part of a command is in; each ends at another character. */
enum context { PLAIN, QUOTED, GROUP, BRACES, BACKTICKS };

struct scan {
	struct leat_reading *r;
	const struct leat_step *step;
	const struct leat_yaml *at;
	const char *text, *now;
	bool collects; /* first pass: names that the command sets; second: names that it uses */
	struct {
		const char *name;
		size_t len;
	} set[MAX_SET];
	size_t sets;
	enum context stack[MAX_NESTING];
	bool may_set_before[MAX_NESTING]; /* `may_set` around each */
	size_t depth;
	bool begins_word; /* the last character ended a word */
	bool may_set;     /* words so far are NAME=VALUE or keywords, so the next may be one */
	const char *here; /* delimiter of a here-document that begins with the next line; NULL: none */
	size_t here_len;
	bool here_quoted;
};

static enum context
context(const struct scan *s)
{
	return s->stack[s->depth];
}

/* False: too deep to follow. */
static bool
enter(struct scan *s, enum context context)
{
	if (s->depth + 1 == MAX_NESTING)
		return false;
	s->stack[++s->depth] = context;
	s->may_set_before[s->depth] = s->may_set;
	s->may_set = context == GROUP || context == BACKTICKS;
	s->begins_word = true;
	return true;
}

static void
leave(struct scan *s)
{
	s->may_set = s->may_set_before[s->depth--];
	s->begins_word = false;
}

static size_t
name_length(const char *text)
{
	size_t len = 0;

	if (*text >= '0' && *text <= '9')
		return 0;
	while (leat_is_name_character(text[len]))
		len++;
	return len;
}

/* ---- names ---- */

static bool
is_name(const char *name, const char *text, size_t len)
{
	return !strncmp(name, text, len) && !name[len];
}

static bool
is_declared(const struct leat_step *step, const char *name, size_t len)
{
	for (size_t i = 0; i < step->edges; i++)
		if (is_name(step->edge[i].name, name, len))
			return true;
	for (size_t i = 0; i < step->params; i++)
		if (is_name(step->param[i].name, name, len))
			return true;
	for (size_t i = 0; i < step->envs; i++)
		if (is_name(step->env[i].name, name, len))
			return true;
	for (size_t i = 0; i < step->slices.variables; i++)
		if (is_name(step->slices.variable[i].name, name, len))
			return true;
	return leat_is_given_name(name, len);
}

/* Is the word at `name` among those after `for`, `read` or the like? */
static bool
is_after_builtin(const char *text, const char *name)
{
	static const char *const builtins[] = {"for ", "read ", "getopts ", "mapfile "};
	const char *first = name - text > MAX_LOOK_BACK ? name - MAX_LOOK_BACK : text;

	for (const char *word = name; word > first && (strchr(" -", word[-1]) || leat_is_name_character(word[-1]));) {
		word--;
		for (size_t i = 0; i < sizeof(builtins) / sizeof(*builtins); i++)
			if (!strncmp(word, builtins[i], strlen(builtins[i])))
				return true;
	}
	return false;
}

/* Does a builtin set it: `for NAME`, `read NAME`? */
static bool
is_set_by_builtin(const char *text, const char *name, size_t len)
{
	for (const char *found = strstr(text, name); found; found = strstr(found + 1, name)) {
		char before = found > text ? found[-1] : ' ';

		if (before == ' ' && !leat_is_name_character(found[len]) && is_after_builtin(text, found))
			return true;
	}
	return false;
}

/* Does the command set it: NAME=VALUE? More than there is room for is anything. */
static bool
is_set(const struct scan *s, const char *name, size_t len)
{
	for (size_t i = 0; i < s->sets; i++)
		if (s->set[i].len == len && !strncmp(s->set[i].name, name, len))
			return true;
	return s->sets == MAX_SET;
}

static bool
is_keyword(const char *word)
{
	static const char *const keywords[] = {"if",      "then",    "else",   "elif",  "while",
	                                       "until",   "do",      "export", "local", "readonly",
	                                       "declare", "typeset", "time",   "{",     "!"};
	size_t len = strcspn(word, " \t\n;&|()");

	for (size_t i = 0; i < sizeof(keywords) / sizeof(*keywords); i++)
		if (len == strlen(keywords[i]) && !strncmp(word, keywords[i], len))
			return true;
	return false;
}

/* At the first character of a word. */
static void
begin_word(struct scan *s)
{
	size_t len = name_length(s->now);
	const char *after = s->now + len;
	bool sets = len && (*after == '=' || (*after == '+' && after[1] == '='));

	if (sets && s->may_set && s->collects && s->sets < MAX_SET) {
		s->set[s->sets].name = s->now;
		s->set[s->sets++].len = len;
	}
	s->may_set = s->may_set && (sets || is_keyword(s->now));
}

/* Variables may come from elsewhere: another script, or text that is run. */
static bool
reads_variables(const char *text)
{
	static const char *const words[] = {". ", "source ", "eval ", "declare ", "let "};

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		for (const char *found = strstr(text, words[i]); found; found = strstr(found + 1, words[i]))
			if (found == text || strchr(" \t\n;&|(", found[-1]))
				return true;
	return false;
}

/* ---- errors ---- */

/* Where "$name" or "${name" is in the file. */
static size_t
find_use(const struct scan *s, const char *name, size_t len)
{
	size_t from = leat_yaml_offset(&s->r->file, s->at->line, s->at->column);
	size_t to = leat_yaml_offset(&s->r->file, s->at->end_line, s->at->end_column);
	const char *text = s->r->file.text;

	for (size_t i = from; i + len < to; i++) {
		const char *before = text + i; /* the name */

		if (strncmp(text + i + 1, name, len) || leat_is_name_character(text[i + 1 + len]))
			continue;
		before -= *before == '#' && i > from;
		if (*before == '$' || (*before == '{' && (before[-1] == '$' || text[i + 1 + len] == '}')))
			return i + 1;
	}
	return from;
}

static const char *
nearest_declared(const struct scan *s, const char *name)
{
	const struct leat_step *step = s->step;
	const char *known[MAX_KNOWN];
	size_t n = 0;

	for (size_t i = 0; i < step->edges && n < MAX_KNOWN; i++)
		known[n++] = step->edge[i].name;
	for (size_t i = 0; i < step->params && n < MAX_KNOWN; i++)
		known[n++] = step->param[i].name;
	for (size_t i = 0; i < step->slices.variables && n < MAX_KNOWN; i++)
		known[n++] = step->slices.variable[i].name;
	if (n < MAX_KNOWN)
		known[n++] = "out";
	return leat_nearest(name, known, n);
}

static bool
is_source(const struct leat_project *project, const char *name)
{
	for (size_t i = 0; i < project->sources; i++)
		if (!strcmp(project->source[i].name, name))
			return true;
	return false;
}

static enum leat_status
not_in_feed(const struct scan *s, const char *use, size_t len)
{
	return leat_yaml_fail_at(&s->r->file, find_use(s, use, len), len,
	                         "the feed of step '%s' gets no variable $%.*s, only inputs, parameters, slice "
	                         "variables, $seed, $cpus, $out and $checkpoint; make it a parameter",
	                         s->step->name, (int)len, use);
}

static enum leat_status
undeclared(const struct scan *s, const char *use, size_t len)
{
	const struct leat_yaml_file *file = &s->r->file;
	size_t at = find_use(s, use, len);
	const char *near;
	char name[LONGEST_NAME];

	snprintf(name, sizeof(name), "%.*s", (int)len, use);
	if (is_source(s->r->project, name) || leat_project_step(s->r->project, name))
		return leat_yaml_fail_at(file, at, len, "step '%s' uses $%s, but does not read it; add 'in: %s'",
		                         s->step->name, name, name);
	near = nearest_declared(s, name);
	if (near)
		return leat_yaml_fail_at(file, at, len, "step '%s' gets no variable $%s, did you mean $%s?",
		                         s->step->name, name, near);
	if (s->text == s->step->feed)
		return not_in_feed(s, use, len);
	return leat_yaml_fail_at(
		file, at, len,
		"step '%s' gets no variable $%s; declare it under 'params' or 'env', or write ${%s:-} if "
		"it may be empty",
		s->step->name, name, name);
}

static enum leat_status
use_name(const struct scan *s, const char *name, size_t len)
{
	char copy[LONGEST_NAME];

	if (s->collects || !len || len >= sizeof(copy) || is_declared(s->step, name, len) || is_set(s, name, len))
		return LEAT_OK;
	snprintf(copy, sizeof(copy), "%.*s", (int)len, name);
	return is_set_by_builtin(s->text, copy, len) ? LEAT_OK : undeclared(s, name, len);
}

/* ---- the shell's grammar, as much as decides where $ means something ---- */

/* After "${". */
static enum leat_status
scan_braces(struct scan *s)
{
	bool length = *s->now == '#' && name_length(s->now + 1);
	size_t len = name_length(s->now += length);
	const char *after = s->now + len;
	bool may_lack = *after && (strchr("-=+?", *after) || (*after == ':' && after[1] && strchr("-=+?", after[1])));
	enum leat_status status = may_lack ? LEAT_OK : use_name(s, s->now, len);

	if (!enter(s, BRACES))
		s->now += strlen(s->now);
	else
		s->now = len ? after : s->now + (*s->now && *s->now != '}');
	return status;
}

/* At a $. */
static enum leat_status
scan_dollar(struct scan *s)
{
	enum leat_status status = LEAT_OK;
	size_t len;

	s->now++;
	if (*s->now == '{') {
		s->now++;
		return scan_braces(s);
	}
	if (*s->now == '(') {
		s->now = enter(s, GROUP) ? s->now + 1 : s->now + strlen(s->now);
		return LEAT_OK;
	}
	len = name_length(s->now);
	status = use_name(s, s->now, len);
	s->now += len ? len : *s->now && strchr("@*#?$!-0123456789", *s->now);
	return status;
}

/* {subject} is for sources; a command that was written for other tools may have it. */
static enum leat_status
scan_word_brace(struct scan *s)
{
	size_t len = name_length(s->now + 1);

	if (!s->collects && len && s->now[1 + len] == '}' && context(s) != QUOTED &&
	    is_declared(s->step, s->now + 1, len))
		return leat_yaml_fail_at(&s->r->file, find_use(s, s->now + 1, len), len,
		                         "{%.*s} means nothing in a command; write \"$%.*s\"", (int)len, s->now + 1,
		                         (int)len, s->now + 1);
	s->now++;
	return LEAT_OK;
}

/* At "<<": remembers what ends the here-document. */
static void
scan_here(struct scan *s)
{
	const char *word = s->now + 2;

	if (*word == '<') {
		s->now += 3;
		return;
	}
	word += *word == '-';
	word += strspn(word, " \t");
	s->here_quoted = *word && strchr("'\"\\", *word);
	word += s->here_quoted;
	s->here_len = name_length(word);
	s->here = s->here_len ? word : NULL;
	s->now = word + s->here_len + (s->here_quoted && word[s->here_len] ? 1 : 0);
}

static bool
is_delimiter(const struct scan *s, const char *line)
{
	line += strspn(line, "\t");
	return !strncmp(line, s->here, s->here_len) && (!line[s->here_len] || line[s->here_len] == '\n');
}

/* At the first line of a here-document. Quotes mean nothing in it. */
static enum leat_status
skip_here(struct scan *s)
{
	enum leat_status status = LEAT_OK;

	while (*s->now && !is_delimiter(s, s->now) && status == LEAT_OK) {
		for (; *s->now && *s->now != '\n' && status == LEAT_OK;) {
			size_t depth = s->depth;

			if (*s->now == '\\' && s->now[1])
				s->now += 2;
			else if (*s->now == '$' && !s->here_quoted)
				status = scan_dollar(s);
			else
				s->now++;
			s->depth = depth;
		}
		s->now += *s->now == '\n';
	}
	s->now += strcspn(s->now, "\n");
	s->here = NULL;
	return status;
}

/* A character that ends the innermost context, or begins another. True: it did. */
static bool
change_context(struct scan *s)
{
	static const char ends[] = {[QUOTED] = '"', [GROUP] = ')', [BRACES] = '}', [BACKTICKS] = '`'};
	char c = *s->now;

	if (s->depth && c == ends[context(s)]) {
		leave(s);
	} else if (c == '"') {
		if (!enter(s, QUOTED))
			s->now += strlen(s->now) - 1;
		s->begins_word = false;
	} else if (c == '`' || (c == '(' && context(s) != QUOTED && context(s) != BRACES)) {
		if (!enter(s, c == '`' ? BACKTICKS : GROUP))
			s->now += strlen(s->now) - 1;
	} else {
		return false;
	}
	s->now++;
	return true;
}

static enum leat_status
scan_next(struct scan *s)
{
	char c = *s->now;
	bool quoted = context(s) == QUOTED;

	if (s->begins_word && !quoted && context(s) != BRACES && !strchr(" \t\n;&|()", c))
		begin_word(s);
	if (c == '\\' && s->now[1]) {
		s->now += 2;
	} else if (c == '$') {
		s->begins_word = false;
		return scan_dollar(s);
	} else if (c == '\'' && !quoted) {
		s->now++;
		s->now += strcspn(s->now, "'");
		s->now += *s->now != '\0';
	} else if (c == '#' && !quoted && s->begins_word && context(s) != BRACES) {
		s->now += strcspn(s->now, "\n");
	} else if (c == '<' && s->now[1] == '<' && !quoted) {
		scan_here(s);
	} else if (c == '{') {
		return scan_word_brace(s);
	} else if (c == '\n' && s->here) {
		s->now++;
		s->begins_word = true;
		s->may_set = true;
		return skip_here(s);
	} else if (!change_context(s)) {
		s->begins_word = strchr(" \t\n;&|()", c) != NULL;
		s->may_set |= !quoted && strchr("\n;&|()", c) != NULL;
		s->now++;
	}
	return LEAT_OK;
}

static enum leat_status
scan_all(struct scan *s)
{
	enum leat_status status = LEAT_OK;

	s->now = s->text;
	s->depth = 0;
	s->here = NULL;
	s->begins_word = true;
	s->may_set = true;
	while (*s->now && status == LEAT_OK)
		status = scan_next(s);
	return status;
}

enum leat_status
leat_shell_command_check(struct leat_reading *r, const struct leat_step *step, const struct leat_yaml *text)
{
	struct scan s = {.r = r, .step = step, .at = text, .text = step->text, .collects = true};

	if (strlen(step->text) > MAX_COMMAND)
		return leat_yaml_fail(&r->file, text,
		                      "the command of step '%s' has more than %d KiB; put it into a script", step->name,
		                      MAX_COMMAND >> 10);
	if (reads_variables(step->text))
		return LEAT_OK;
	scan_all(&s);
	s.collects = false;
	return scan_all(&s);
}

/* Is it replaced in a feed's spec? Of what a command gets, a feed gets what is known before the environment is set. */
static bool
is_fed(const struct leat_step *step, const char *name, size_t len)
{
	static const char *const given[] = {"out", "seed", "cpus", "checkpoint", "LEAT_STEP", "TMPDIR"};

	for (size_t i = 0; i < step->envs; i++)
		if (is_name(step->env[i].name, name, len))
			return false;
	for (size_t i = 0; i < sizeof(given) / sizeof(*given); i++)
		if (is_name(given[i], name, len))
			return true;
	return !leat_is_given_name(name, len);
}

/* Names in a feed's spec are replaced before the command gets it. */
enum leat_status
leat_feed_check(struct leat_reading *r, const struct leat_step *step, const struct leat_yaml *text)
{
	struct scan s = {.r = r, .step = step, .at = text, .text = step->feed};
	enum leat_status status = LEAT_OK;

	for (s.now = strchr(s.text, '$'); s.now && status == LEAT_OK; s.now = strchr(s.now, '$')) {
		size_t len;

		s.now += s.now[1] == '{' ? 2 : 1;
		len = name_length(s.now);
		if (len && len < LONGEST_NAME && !is_declared(step, s.now, len))
			status = undeclared(&s, s.now, len);
		else if (len && len < LONGEST_NAME && !is_fed(step, s.now, len))
			status = not_in_feed(&s, s.now, len);
		s.now += len;
	}
	return status;
}
