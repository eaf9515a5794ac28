/* set.c - manifests: names, reading, writing
 *
 * A manifest is JSON: {"leat_set": 1, "commands": [{"complete": true, "arguments": ["pack", ...], "files":
 * [{"name": "x-00000-of-00002.tar", "size": 123, "crc32c": "0a1b2c3d"}, ...]}, ...]}. JSON is Unicode and names of
 * files are bytes, so those outside of visible ASCII are written as %HH. Any thread. */
#include "store/set.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"

enum { MAX_MANIFEST = 64 << 20, MAX_COMMAND = 1 << 20, VERSION = 1 };

/* ---- names ---- */

/* The "-00003-of-00008" in a name; NULL: none. */
static const char *
shard_number(const char *name)
{
	static const char form[] = "-ddddd-of-ddddd";

	for (const char *at = name + strlen(name); at-- > name;) {
		size_t i = 0;

		while (form[i] && (form[i] == 'd' ? at[i] >= '0' && at[i] <= '9' : at[i] == form[i]))
			i++;
		if (!form[i])
			return at;
	}
	return NULL;
}

char *
leat_set_uri(const char *file, bool *shards, struct leat_mem *mem)
{
	const char *slash = strrchr(file, '/'), *name = slash ? slash + 1 : file;
	const char *number = shard_number(name), *dot = strrchr(name, '.');
	int folder = (int)(name - file);

	*shards = number != NULL;
	if (number)
		return leat_asprintf(mem, "%.*s.%.*s%s.leatset", folder, file, (int)(number - name), name,
		                     number + strlen("-00003-of-00008"));
	return leat_asprintf(mem, "%.*s%s.leatset", folder, file, dot ? dot : "");
}

void
leat_add_literal(struct leat_str *pattern, const char *name)
{
	for (; *name; name++)
		leat_str_addf(pattern, *name == '\\' ? "[\\%c]" : strchr("*?[", *name) ? "[%c]" : "%c", *name);
}

static void
add_escaped(struct leat_str *out, const char *name)
{
	leat_str_add(out, "\"");
	for (; *name; name++)
		leat_str_addf(out, *name > ' ' && *name < 0x7f && !strchr("%\"\\", *name) ? "%c" : "%%%02X",
		              (unsigned char)*name);
	leat_str_add(out, "\"");
}

/* In place. False: not valid. Only names of what is directly in the folder are. */
static bool
unescape(char *name)
{
	char *to = name;

	for (const char *from = name; *from; from++) {
		bool escaped = *from == '%';
		int high = escaped ? leat_hex_digit(from[1]) : 0;
		int low = escaped && high >= 0 ? leat_hex_digit(from[2]) : high;

		if (low < 0)
			return false;
		*to = escaped ? (char)((unsigned)high << 4 | (unsigned)low) : *from;
		if (*to == '/' || !*to)
			return false;
		to++;
		from += escaped ? 2 : 0;
	}
	*to = '\0';
	return true;
}

/* ---- sets in memory ---- */

void
leat_set_init(struct leat_set *set, struct leat_mem *mem)
{
	*set = (struct leat_set){.mem = mem};
}

void
leat_set_free(struct leat_set *set)
{
	for (size_t i = 0; i < set->runs; i++) {
		leat_free(set->mem, set->run[i].arguments);
		leat_free(set->mem, set->run[i].command);
	}
	for (size_t i = 0; i < set->files; i++)
		leat_free(set->mem, set->file[i].name);
	leat_free(set->mem, set->run);
	leat_free(set->mem, set->file);
	leat_set_init(set, set->mem);
}

static void
add_shell_word(struct leat_str *out, const char *word)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,+@%";

	leat_str_add(out, " ");
	if (*word && strspn(word, plain) == strlen(word)) {
		leat_str_add(out, word);
		return;
	}
	leat_str_add(out, "'");
	for (; *word; word++)
		leat_str_addf(out, *word == '\'' ? "'\\''" : "%c", *word);
	leat_str_add(out, "'");
}

/* Adds a URL, up to a quote, without user and query. Returns what follows. */
static const char *
add_public_url(struct leat_str *out, const char *url, size_t scheme)
{
	const char *host = url + scheme, *end = host + strcspn(host, "/?#'\""), *user = end;

	while (user > host && *user != '@')
		user--;
	leat_str_addn(out, url, scheme);
	if (*user == '@') {
		leat_str_add(out, "...");
		host = user;
	}
	end = host + strcspn(host, "?'\"");
	leat_str_addn(out, host, (size_t)(end - host));
	if (*end != '?')
		return end;
	leat_str_add(out, "?...");
	return end + strcspn(end, "'\"");
}

/* Adds an argument without what may be secret in its URLs: everyone who reads the data sees it. */
static void
add_public(struct leat_str *out, const char *word)
{
	while (*word) {
		if (strncmp(word, "https://", 8) == 0)
			word = add_public_url(out, word, 8);
		else if (strncmp(word, "http://", 7) == 0)
			word = add_public_url(out, word, 7);
		else
			leat_str_addn(out, word++, 1);
	}
}

static void
add_argument(struct leat_str *json, struct leat_str *command, const char *argument)
{
	struct leat_str public;

	leat_str_init(&public, json->mem, MAX_COMMAND);
	add_public(&public, argument);
	leat_str_add_json(json, leat_str_text(&public));
	add_shell_word(command, leat_str_text(&public));
	json->failed |= public.failed;
	leat_str_free(&public);
}

enum leat_status
leat_set_add_run(struct leat_set *set, const char *const *arguments, size_t *run, struct leat_err *err)
{
	struct leat_str json, command;
	struct leat_set_run *added;
	enum leat_status status =
		LEAT_GROW(set->mem, set->run, set->run_cap, set->runs + 1, SIZE_MAX, "a list of files", err);

	if (status != LEAT_OK)
		return status;
	leat_str_init(&json, set->mem, MAX_COMMAND);
	leat_str_init(&command, set->mem, MAX_COMMAND);
	leat_str_add(&command, "leat");
	leat_str_add(&json, "[");
	for (; *arguments; arguments++) {
		add_argument(&json, &command, *arguments);
		leat_str_add(&json, arguments[1] ? ", " : "");
	}
	leat_str_add(&json, "]");
	added = &set->run[set->runs];
	*added = (struct leat_set_run){.arguments = leat_str_take(&json), .command = leat_str_take(&command)};
	leat_str_free(&json);
	leat_str_free(&command);
	if (added->arguments && added->command) {
		*run = set->runs++;
		return LEAT_OK;
	}
	leat_free(set->mem, added->arguments);
	leat_free(set->mem, added->command);
	return leat_fail_mem(err, set->mem, MAX_COMMAND, "a command");
}

static int
compare_names(const void *a, const void *b)
{
	return strcmp(((const struct leat_set_file *)a)->name, ((const struct leat_set_file *)b)->name);
}

void
leat_set_sort(struct leat_set *set)
{
	if (set->files)
		qsort(set->file, set->files, sizeof(*set->file), compare_names);
}

const struct leat_set_file *
leat_set_find(const struct leat_set *set, const char *name)
{
	struct leat_set_file key = {.name = (char *)name};

	return set->files ? bsearch(&key, set->file, set->files, sizeof(*set->file), compare_names) : NULL;
}

enum leat_status
leat_set_add_file(struct leat_set *set, const char *name, uint64_t size, uint32_t crc, size_t run, struct leat_err *err)
{
	enum leat_status status =
		LEAT_GROW(set->mem, set->file, set->file_cap, set->files + 1, SIZE_MAX, "a list of files", err);
	char *copy = status == LEAT_OK ? leat_strdup(set->mem, name) : NULL;

	if (!copy)
		return status == LEAT_OK ? leat_fail_mem(err, set->mem, strlen(name) + 1, "a list of files") : status;
	set->file[set->files++] = (struct leat_set_file){copy, size, crc, run};
	return LEAT_OK;
}

void
leat_set_remove_file(struct leat_set *set, const char *name)
{
	const struct leat_set_file *file = leat_set_find(set, name);
	size_t i = file ? (size_t)(file - set->file) : 0;

	if (!file)
		return;
	leat_free(set->mem, file->name);
	memmove(&set->file[i], &set->file[i + 1], (--set->files - i) * sizeof(*set->file));
}

bool
leat_set_is_complete(const struct leat_set *set)
{
	for (size_t i = 0; i < set->runs; i++)
		if (!set->run[i].complete)
			return false;
	return true;
}

/* ---- reading ---- */

/* These return false for what is not valid; `err` is only set if memory runs out. */
static bool
read_file(struct leat_set *set, const json_t *json, struct leat_err *err)
{
	const char *text = json_string_value(json_object_get(json, "name"));
	const char *crc = json_string_value(json_object_get(json, "crc32c"));
	const json_t *size = json_object_get(json, "size");
	bool good = text && crc && json_is_integer(size) && json_integer_value(size) >= 0;

	return good &&
	       leat_set_add_file(set, text, (uint64_t)json_integer_value(size), (uint32_t)strtoul(crc, NULL, 16),
	                         set->runs - 1, err) == LEAT_OK &&
	       unescape(set->file[set->files - 1].name);
}

static bool
read_command(struct leat_set *set, const json_t *arguments, struct leat_err *err)
{
	size_t count = json_array_size(arguments), run;
	const char **word = leat_alloc_array(set->mem, count + 1, sizeof(*word));
	bool good = true;

	if (!word) {
		leat_fail_mem(err, set->mem, count * sizeof(*word), "a command");
		return false;
	}
	for (size_t i = 0; good && i < count; i++)
		good = (word[i] = json_string_value(json_array_get(arguments, i))) != NULL;
	good = good && leat_set_add_run(set, word, &run, err) == LEAT_OK;
	leat_free(set->mem, word);
	return good;
}

static bool
read_run(struct leat_set *set, const json_t *json, struct leat_err *err)
{
	const json_t *files = json_object_get(json, "files"), *complete = json_object_get(json, "complete");
	bool good = json_is_array(files) && json_is_boolean(complete) &&
	            read_command(set, json_object_get(json, "arguments"), err);

	if (good)
		set->run[set->runs - 1].complete = json_is_true(complete);
	for (size_t i = 0; good && i < json_array_size(files); i++)
		good = read_file(set, json_array_get(files, i), err);
	return good;
}

static bool
has_duplicates(const struct leat_set *set)
{
	for (size_t i = 1; i < set->files; i++)
		if (compare_names(&set->file[i - 1], &set->file[i]) == 0)
			return true;
	return false;
}

static enum leat_status
read_manifest(struct leat_set *set, const char *bytes, size_t len, const char *uri, struct leat_err *err)
{
	json_t *root = json_loadb(bytes, len, JSON_REJECT_DUPLICATES, NULL);
	const json_t *version = json_object_get(root, "leat_set"), *runs = json_object_get(root, "commands");
	bool newer = json_integer_value(version) > VERSION;
	bool good = json_integer_value(version) == VERSION && json_is_array(runs);

	for (size_t i = 0; good && i < json_array_size(runs); i++)
		good = read_run(set, json_array_get(runs, i), err);
	json_decref(root);
	leat_set_sort(set);
	if (good && !has_duplicates(set))
		return LEAT_OK;
	if (newer)
		return leat_fail(err, LEAT_UNSUPPORTED, "'%s' was written by a newer version of Leat", uri);
	return leat_fail(err, LEAT_DATA, /* unless there already is a message */
	                 "'%s' is damaged: write its files again, or delete it if you know that they are complete",
	                 uri);
}

enum leat_status
leat_set_load(struct leat_set *set, struct leat_store *store, const char *uri, struct leat_version *version,
              struct leat_err *err)
{
	enum leat_status status;
	struct leat_object object;
	void *bytes;
	size_t len;

	status = store->kind->look(store, uri, &object, err);
	if (status == LEAT_DATA || (status == LEAT_IO && store->kind->hides)) {
		leat_err_clear(err);
		return LEAT_AGAIN;
	}
	if (status != LEAT_OK)
		return status;
	if (version)
		*version = object.version; /* of before: if it is replaced now, that is noticed later */
	status = leat_object_load(store, uri, MAX_MANIFEST, set->mem, &bytes, &len, err);
	if (status != LEAT_OK)
		return status;
	status = read_manifest(set, bytes, len, uri, err);
	leat_free(set->mem, bytes);
	return status == LEAT_OK || !err ? status : err->status;
}

/* ---- writing ---- */

static void
add_files(struct leat_str *out, const struct leat_set *set, size_t run)
{
	const char *between = "\n";

	for (size_t i = 0; i < set->files; i++) {
		const struct leat_set_file *file = &set->file[i];

		if (file->run != run)
			continue;
		leat_str_addf(out, "%s    {\"name\": ", between);
		add_escaped(out, file->name);
		leat_str_addf(out, ", \"size\": %" PRIu64 ", \"crc32c\": \"%08" PRIx32 "\"}", file->size, file->crc);
		between = ",\n";
	}
}

static bool
has_files(const struct leat_set *set, size_t run)
{
	for (size_t i = 0; i < set->files; i++)
		if (set->file[i].run == run)
			return true;
	return false;
}

/* Commands of which no file is left are not written. */
static void
add_runs(struct leat_str *out, const struct leat_set *set)
{
	const char *between = "\n";

	for (size_t i = 0; i < set->runs; i++) {
		if (!has_files(set, i))
			continue;
		leat_str_addf(out, "%s  {\"complete\": %s,\n   \"arguments\": %s,\n   \"files\": [", between,
		              set->run[i].complete ? "true" : "false", set->run[i].arguments);
		add_files(out, set, i);
		leat_str_add(out, "]}");
		between = ",\n";
	}
}

enum leat_status
leat_set_save(const struct leat_set *set, struct leat_store *store, const char *uri, struct leat_err *err)
{
	struct leat_writer *writer = NULL;
	enum leat_status status;
	struct leat_str text;

	leat_str_init(&text, set->mem, MAX_MANIFEST);
	leat_str_addf(&text, "{\"leat_set\": %d, \"commands\": [", VERSION);
	add_runs(&text, set);
	leat_str_add(&text, "]}\n");
	if (text.failed)
		status = leat_fail_mem(err, set->mem, text.len, "a list of files");
	else
		status = leat_store_begin(store, uri, &writer, err);
	if (status == LEAT_OK)
		status = leat_write(writer, leat_str_text(&text), text.len, err);
	if (status == LEAT_OK)
		status = leat_write_commit(writer, NULL, LEAT_COMMIT_SYNC, err);
	else
		leat_write_abort(writer);
	leat_str_free(&text);
	return status;
}
