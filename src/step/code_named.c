/* code_named.c - which files of the code a text names
 *
 * A text is cut into words at white space and what shells and programming languages use as punctuation. A word names a
 * file if the file's path is it or ends with it, since a script may change its folder. Variables stand for anything
 * ("run_$kind.sh"), so too many files are rather named than too few: then an action runs again without need.
 *
 * A word may begin in the middle of a path: of "$DIR"/lib.sh it is "/lib.sh". Where the path begins is not known then,
 * so the folders at the beginning of a word that starts with a slash or a variable may be those above the project. */
#include <ctype.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "step/code_inside.h"

enum { MAX_WORD = 512 };

static bool
is_word(unsigned char c)
{
	return isalnum(c) || c >= 0x80 || (c && strchr("_-./+@%~*?$", c));
}

/* Does the path end with the word, at the beginning of a name? */
static bool
ends_with(const char *path, const char *word)
{
	size_t len = strlen(path), tail = strlen(word);

	return len >= tail && strcmp(path + len - tail, word) == 0 && (len == tail || path[len - tail - 1] == '/');
}

static void
mark_file(const struct leat_code *code, size_t i, bool from_python, bool *marked)
{
	if (!from_python || !leat_code_is_python(code->file[i].path))
		marked[i] = true;
}

/* A name alone is no pattern: "$epochs" is a folder of data. With `is_whole` only paths that are all of the word. */
static void
mark_pattern(const struct leat_code *code, const char *word, bool is_whole, bool from_python, bool *marked)
{
	const char *slash = strrchr(word, '/'), *dot = strrchr(slash ? slash : word, '.');
	char anywhere[MAX_WORD + 3];

	if (!dot || !isalpha((unsigned char)dot[1]))
		return;
	snprintf(anywhere, sizeof(anywhere), "*%s%s", *word == '.' ? "" : "/", word);
	for (size_t i = 0; i < code->files; i++)
		if (fnmatch(word, code->file[i].path, 0) == 0 ||
		    (!is_whole && fnmatch(anywhere, code->file[i].path, 0) == 0))
			mark_file(code, i, from_python, marked);
}

static const char *
name_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* The first file, by name, that is not before `name`. */
static size_t
first_named(const struct leat_code *code, const char *name)
{
	size_t low = 0, high = code->files;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(name_of(code->file[code->by_name[middle]].path), name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void
mark_path(const struct leat_code *code, const char *word, bool is_whole, bool from_python, bool *marked)
{
	const char *name = name_of(word);

	if (strpbrk(word, "*?") || *word == '.') { /* path + ".sql" */
		mark_pattern(code, word, is_whole, from_python, marked);
		return;
	}
	for (size_t i = *name ? first_named(code, name) : code->files; i < code->files; i++) {
		const char *path = code->file[code->by_name[i]].path;

		if (strcmp(name_of(path), name) != 0)
			break;
		if (is_whole ? strcmp(path, word) == 0 : ends_with(path, word))
			mark_file(code, code->by_name[i], from_python, marked);
	}
}

/* Removes empty names and "." from a path, and all that is before a "..". */
static void
tidy(char *word)
{
	char *up, *dot;

	while ((up = strstr(word, "../")) != NULL)
		memmove(word, up + 3, strlen(up + 3) + 1);
	while ((dot = strstr(word, "/./")) != NULL)
		memmove(dot, dot + 2, strlen(dot + 2) + 1);
	while ((dot = strstr(word, "//")) != NULL)
		memmove(dot, dot + 1, strlen(dot + 1) + 1);
	while (strncmp(word, "./", 2) == 0)
		memmove(word, word + 2, strlen(word + 2) + 1);
}

/* Cuts the beginning of a path that may be anywhere: "/", "~/", "$DIR/". */
static const char *
cut_root(const char *word)
{
	const char *rest = word;

	do {
		word = rest;
		rest += *rest == '*' || *rest == '~';
		rest += *rest == '/';
	} while (rest > word && rest[-1] == '/');
	return word;
}

static void
mark_word(const struct leat_code *code, char *word, bool from_python, bool *marked)
{
	const char *option, *path;

	tidy(word);
	path = cut_root(word);
	mark_path(code, path, false, from_python, marked);
	while (path > word && (path = strchr(path, '/')) != NULL)
		mark_path(code, ++path, true, from_python, marked);
	if (*word == '@') /* curl -d @query.sql */
		mark_path(code, cut_root(word + 1), false, from_python, marked);
	for (option = word; *word == '-' && (option == word || isalnum((unsigned char)*option)); option++)
		mark_path(code, cut_root(option + 1), false, from_python, marked); /* psql -fquery.sql */
}

/* The length of %s, %03d or %(kind)s. 0: it is a percent sign. */
static size_t
format(const char *at, const char *end)
{
	const char *from = at++;

	if (at < end && *at == '(')
		while (at < end && !strchr(")\n\"'", *at))
			at++;
	at += at < end && *at == ')';
	while (at < end && (isdigit((unsigned char)*at) || *at == '.'))
		at++;
	return at < end && *at && strchr("sdirfgxu", *at) ? (size_t)(at + 1 - from) : 0;
}

/* The length of what stands for anything: $kind, ${kind}, {kind} of Python or a shell's {a,b}, %s. 0: nothing. */
static size_t
placeholder(const char *at, const char *end)
{
	const char *from = at;

	if (*at == '%')
		return format(at, end);
	at += *at == '$';
	if (at < end && *at == '{') {
		while (at < end && !strchr("}\n\"'", *at))
			at++;
		return at < end && *at == '}' ? (size_t)(at + 1 - from) : 0;
	}
	while (*from == '$' && at < end && (isalnum((unsigned char)*at) || *at == '_'))
		at++;
	return (size_t)(at - from);
}

/* Copies a word, with '*' for what stands for anything. Returns where the text goes on. */
static const char *
next_word(const char *at, const char *end, char word[MAX_WORD + 1])
{
	size_t len = 0;

	while (at < end && (is_word((unsigned char)*at) || *at == '{')) {
		size_t skip = strchr("${%", *at) ? placeholder(at, end) : 0;

		if (*at == '{' && skip == 0)
			break;
		if (len < MAX_WORD)
			word[len++] = skip > 0 ? '*' : *at;
		at += skip > 0 ? skip : 1;
	}
	/* The end of a sentence. */
	while (len > 0 && word[len - 1] == '.')
		len--;
	word[len] = '\0';
	return at;
}

/* Names with spaces or punctuation are no words. */
static void
mark_odd(const struct leat_code *code, const char *text, size_t len, bool from_python, bool *marked)
{
	for (size_t i = 0; i < code->files; i++) {
		const char *name = name_of(code->file[i].path), *c = name;

		while (is_word((unsigned char)*c) && !strchr("*?$", *c))
			c++;
		if (*c && memmem(text, len, name, strlen(name)))
			mark_file(code, i, from_python, marked);
	}
}

void
leat_code_mark(const struct leat_code *code, const char *text, size_t len, bool from_python, bool *marked)
{
	size_t folder = strlen(code->project->folder);
	const char *end = text + len;
	char word[MAX_WORD + 1];

	for (const char *at = text; at < end;) {
		const char *next;

		/* It may have spaces. */
		if ((size_t)(end - at) > folder && at[folder] == '/' && memcmp(at, code->project->folder, folder) == 0)
			at += folder + 1;
		next = next_word(at, end, word);
		at = next > at ? next : at + 1;
		if (*word)
			mark_word(code, word, from_python, marked);
	}
	mark_odd(code, text, len, from_python, marked);
}

/* Remembers which files are marked as named by file `i`. */
static enum leat_status
keep_names(struct leat_code *code, size_t i, const bool *marked, struct leat_err *err)
{
	struct leat_code_file *file = &code->file[i];
	size_t count = 0;

	for (size_t k = 0; k < code->files; k++)
		count += marked[k];
	file->names = leat_alloc_array(code->mem, count + 1, sizeof(*file->names));
	if (!file->names)
		return leat_fail_mem(err, code->mem, count * sizeof(*file->names), "the list of code");
	for (size_t k = 0; k < code->files; k++)
		if (marked[k])
			file->names[file->name_count++] = k;
	file->is_read = true;
	return LEAT_OK;
}

static enum leat_status
read_names(struct leat_code *code, size_t i, struct leat_err *err)
{
	struct leat_code_file *file = &code->file[i];
	bool *marked = leat_alloc_array(code->mem, code->files + 1, sizeof(*marked));
	enum leat_status status = LEAT_OK;
	size_t len = 0;
	char *text = NULL;

	if (!marked)
		return leat_fail_mem(err, code->mem, code->files, "the list of code");
	status = leat_code_text(code, file, &text, &len, err);
	if (status == LEAT_OK && !memchr(text, '\0', len)) {
		leat_code_mark(code, text, len, leat_code_is_python(file->path), marked);
		file->hides_python = leat_code_hides_python(text);
	}
	if (status == LEAT_OK)
		status = keep_names(code, i, marked, err);
	leat_free(code->mem, text);
	leat_free(code->mem, marked);
	return status;
}

enum leat_status
leat_code_mark_all(struct leat_code *code, bool *marked, struct leat_err *err)
{
	bool *seen = leat_alloc_array(code->mem, code->files + 1, sizeof(*seen)), again = true;
	enum leat_status status = seen ? LEAT_OK : leat_fail_mem(err, code->mem, code->files, "the list of code");

	while (again && status == LEAT_OK) {
		again = false;
		for (size_t i = 0; i < code->files && status == LEAT_OK; i++) {
			const struct leat_code_file *file = &code->file[i];

			if (!marked[i] || seen[i])
				continue;
			again = seen[i] = true;
			if (!file->is_read)
				status = read_names(code, i, err);
			for (size_t k = 0; k < file->name_count; k++)
				marked[file->names[k]] = true;
		}
	}
	leat_free(code->mem, seen);
	return status;
}

enum leat_status
leat_code_named(struct leat_code *code, const char *command, struct leat_key_fields *fields, struct leat_err *err)
{
	bool *marked = leat_alloc_array(code->mem, code->files + 1, sizeof(*marked));
	enum leat_status status;

	if (!marked)
		return leat_fail_mem(err, code->mem, code->files, "the list of code");
	leat_code_mark(code, command, strlen(command), false, marked);
	status = leat_code_mark_all(code, marked, err);
	for (size_t i = 0; i < code->files && status == LEAT_OK; i++)
		if (marked[i])
			status = leat_key_fields_add_content(fields, "code.", code->file[i].path,
			                                     &code->file[i].content, err);
	leat_free(code->mem, marked);
	return status;
}
