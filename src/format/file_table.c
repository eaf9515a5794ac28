/* file_table.c - see file_table.h */
#include "format/file_table.h"

#include <string.h>
#include <time.h>

#include "base/array.h"
#include "base/threads.h"

/* Two changes within this time, in ns, may get the same timestamp. */
enum { SAME_TIME = 100000000 };

enum {
	LOOK_AT_ONCE = 1024, /* files a thread looks at per turn */
	REQUESTS = 256,      /* threads that look at files on a server: each waits for its answer */
};

/* ---- from a sidecar ---- */

static bool
read_names(struct leat_file_table *table)
{
	if (table->name_at[0] != 0 || table->name_at[table->count] != table->names_len)
		return false;
	for (uint64_t i = 0; i < table->count; i++) {
		uint64_t len = table->name_at[i + 1] - table->name_at[i];

		if (table->name_at[i + 1] < table->name_at[i])
			return false;
		if (len > table->longest)
			table->longest = len;
	}
	return true;
}

static void
read_sizes(struct leat_file_table *table)
{
	for (uint64_t i = 0; i < table->count; i++) {
		if (table->size[i] == LEAT_NO_FILE)
			table->missing++;
		else if (table->size[i] > table->max_size)
			table->max_size = table->size[i];
	}
}

bool
leat_file_table_read(struct leat_file_table *table, const struct leat_sidecar *sidecar)
{
	const struct leat_section *section = sidecar->section;

	*table = (struct leat_file_table){0};
	if (sidecar->sections < LEAT_FILE_TABLE_SECTIONS)
		return false;
	table->count = section[LEAT_FILE_TABLE_SIZES].bytes / sizeof(*table->size);
	table->name_at = section[LEAT_FILE_TABLE_NAME_AT].data;
	table->names = section[LEAT_FILE_TABLE_NAMES].data;
	table->names_len = section[LEAT_FILE_TABLE_NAMES].bytes;
	table->size = section[LEAT_FILE_TABLE_SIZES].data;
	table->token = section[LEAT_FILE_TABLE_TOKENS].data;
	table->digest = section[LEAT_FILE_TABLE_DIGEST].data;
	table->stamp = section[LEAT_FILE_TABLE_STAMP].data;
	if (table->count == 0 || table->count > UINT32_MAX ||
	    section[LEAT_FILE_TABLE_SIZES].bytes != table->count * sizeof(*table->size) ||
	    section[LEAT_FILE_TABLE_NAME_AT].bytes != (table->count + 1) * sizeof(*table->name_at) ||
	    section[LEAT_FILE_TABLE_TOKENS].bytes != table->count * sizeof(*table->token) ||
	    section[LEAT_FILE_TABLE_DIGEST].bytes != LEAT_SHA256_BYTES ||
	    section[LEAT_FILE_TABLE_STAMP].bytes != LEAT_SHA256_BYTES || !read_names(table))
		return false;
	read_sizes(table);
	return table->max_size <= INT64_MAX;
}

/* Whether two neighbouring bytes can be part of a name that is not plain. */
static bool
is_suspect(unsigned char a, unsigned char b)
{
	return ((a == '/') & ((b == '.') | (b == '/'))) | (a == 0);
}

/* Whether any two neighbouring bytes of all names are suspect: a scan without branches for each byte, because there may
 * be many million. */
static bool
has_suspects(const char *names, uint64_t len)
{
	enum { BLOCK = 4096 };
	const unsigned char *at = (const unsigned char *)names, *last = at + len - 1;

	if (len == 0 || *last == '/' || *last == '\0')
		return true;
	while (at < last) {
		size_t block = last - at < BLOCK ? (size_t)(last - at) : BLOCK;
		unsigned char found = 0;

		for (size_t i = 0; i < block; i++)
			found |= is_suspect(at[i], at[i + 1]);
		if (found)
			return true;
		at += block;
	}
	return false;
}

/* Whether no name begins with a dot or slash, ends in a slash or is empty. */
static bool
have_plain_ends(const struct leat_file_table *table)
{
	bool plain = true;

	for (uint64_t i = 0; i < table->count && plain; i++) {
		const char *begin = table->names + table->name_at[i], *end = table->names + table->name_at[i + 1];

		plain = begin < end && *begin != '/' && *begin != '.' && end[-1] != '/';
	}
	return plain;
}

/* Checks names one by one only if some could fail. */
bool
leat_file_table_is_plain(const struct leat_file_table *table)
{
	bool plain = true;

	if (have_plain_ends(table) && !has_suspects(table->names, table->names_len))
		return true;
	for (uint64_t i = 0; i < table->count && plain; i++)
		plain = leat_is_plain_name(table->names + table->name_at[i],
		                           (size_t)(table->name_at[i + 1] - table->name_at[i]));
	return plain;
}

/* What a look at a file finds. */
struct looked {
	uint64_t size, token; /* LEAT_NO_FILE and 0 if it is missing */
	bool is_link;
	char uri[LEAT_URI];
};

static enum leat_status
look(struct leat_store *store, const char *folder, const char *name, size_t len, struct looked *found,
     struct leat_err *err)
{
	struct leat_object object = {.folder = leat_is_uri(name, len) ? "" : folder, .uri = name, .uri_len = len};
	const char *uri = leat_object_uri(&object, found->uri);
	enum leat_status status = uri ? store->kind->look(store, uri, &object, err) : LEAT_DATA;
	bool is_there = status == LEAT_OK;

	found->size = is_there ? object.size : LEAT_NO_FILE;
	found->token = is_there ? leat_object_token(&object) : 0;
	found->is_link = is_there && object.is_link;
	if (status != LEAT_DATA && status != LEAT_INVALID)
		return status;
	leat_err_clear(err);
	return LEAT_OK;
}

/* How many threads look at files, and at how many in a turn. */
static unsigned
looking_threads(const struct leat_store *store, unsigned threads)
{
	return store->kind->remote && threads < REQUESTS ? REQUESTS : threads;
}

static size_t
files_per_turn(const struct leat_store *store)
{
	return store->kind->remote ? 1 : LOOK_AT_ONCE;
}

/* One that cannot be looked at counts as changed: listing the files again gives the reason. */
static bool
has_changed(const struct leat_file_table *table, struct leat_store *store, const char *folder, uint64_t i)
{
	uint64_t begin = table->name_at[i], len = table->name_at[i + 1] - begin;
	struct looked now;

	return look(store, folder, table->names + begin, (size_t)len, &now, NULL) != LEAT_OK ||
	       now.size != table->size[i] || now.token != table->token[i];
}

/* Shared by the threads that look at files. */
struct looks {
	const struct leat_file_table *table;
	struct leat_store *store;
	const char *folder;
	uint64_t step; /* between two files that are looked at */
	atomic_bool changed;
};

static enum leat_status
look_at_some(void *arg, size_t turn, struct leat_err *err)
{
	struct looks *looks = arg;
	const struct leat_file_table *table = looks->table;
	uint64_t files = files_per_turn(looks->store) * looks->step, first = turn * files, end = first + files;

	(void)err;
	for (uint64_t i = first; i < end && i < table->count && !looks->changed; i++)
		if ((i % looks->step == 0 || table->size[i] == LEAT_NO_FILE) &&
		    has_changed(table, looks->store, looks->folder, i))
			looks->changed = true;
	return LEAT_OK;
}

bool
leat_file_table_changed(const struct leat_file_table *table, struct leat_store *store, const char *folder,
                        unsigned threads, struct leat_mem *mem)
{
	uint64_t step = (table->count + LEAT_FILE_TABLE_LOOKS - 1) / LEAT_FILE_TABLE_LOOKS;
	struct looks looks = {.table = table, .store = store, .folder = folder, .step = step};
	size_t turns = (size_t)(table->count / step / files_per_turn(store)) + 1;

	return leat_parallel(mem, looking_threads(store, threads), turns, look_at_some, &looks, NULL) != LEAT_OK ||
	       looks.changed;
}

int64_t
leat_file_table_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void
leat_file_table_keep(const struct leat_source *source, struct leat_sidecar *sidecar, const struct leat_sidecar_of *of,
                     const char *name, int64_t newest, int64_t begin)
{
	struct leat_err unsaved;

	leat_err_clear(&unsaved);
	if (newest > begin - SAME_TIME)
		leat_log(source->log, LEAT_LOG_INFO, "'%s' has just changed; its index is not saved this time", name);
	else if (leat_sidecar_save(sidecar, of, &unsaved) != LEAT_OK)
		leat_log(source->log, LEAT_LOG_WARN,
		         "an index could not be saved and will be rebuilt at each start: %s", unsaved.text);
	else
		leat_log(source->log, LEAT_LOG_INFO, "indexed '%s'", name);
}

/* ---- as a source ---- */

void
leat_file_table_place(struct leat_file_table *table, struct leat_store *store, const char *folder, const char *remedy)
{
	table->store = store;
	table->folder = folder;
	table->remedy = remedy;
}

void
leat_file_table_open(struct leat_file_table *table, struct leat_source *source, struct leat_store *store,
                     const char *folder, const struct leat_sidecar *sidecar)
{
	leat_file_table_place(table, store, folder, NULL);
	table->sidecar = sidecar;
	table->is_current = !sidecar->bytes || table->count <= LEAT_FILE_TABLE_LOOKS;
	source->table = table;
	source->count = table->count;
	source->file_count = (size_t)table->count;
	leat_source_longest(source, table->max_size, table->max_size);
	source->stamp = table->stamp;
}

void
leat_file_table_object(const struct leat_file_table *table, uint64_t i, struct leat_object *object)
{
	const char *name = table->names + table->name_at[i];
	size_t len = (size_t)(table->name_at[i + 1] - table->name_at[i]);

	*object = (struct leat_object){
		.store = table->store,
		.folder = table->has_uris && leat_is_uri(name, len) ? "" : table->folder,
		.uri = name,
		.uri_len = len,
		.size = table->size[i],
		.token = table->token[i],
		.remedy = table->remedy,
	};
}

bool
leat_file_table_is_current(const struct leat_file_table *table, uint64_t i)
{
	return table->is_current || !has_changed(table, table->store, table->folder, i);
}

void
leat_file_table_remove(struct leat_file_table *table, uint64_t i, struct leat_err *err)
{
	struct leat_object then, now;
	char buf[LEAT_URI];
	const char *uri;

	leat_file_table_object(table, i, &then);
	uri = leat_object_uri(&then, buf);
	if (!uri || !table->sidecar->path || table->store->kind->look(table->store, uri, &now, NULL) != LEAT_OK ||
	    leat_object_token(&now) == then.token)
		return;
	if (table->remedy) {
		leat_err_clear(err);
		leat_fail(err, LEAT_DATA, "'%s' has changed since it was indexed; %s", uri, table->remedy);
		return;
	}
	if (!atomic_exchange(&table->tried_remove, true))
		table->removed = leat_sidecar_remove(table->sidecar, table->store);
	leat_err_clear(err);
	if (table->removed)
		leat_fail(err, LEAT_DATA,
		          "'%s' has changed since it was indexed; the index was removed, open the feed again", uri);
	else
		leat_fail(err, LEAT_DATA, "'%s' has changed since it was indexed; delete '%s' and open the feed again",
		          uri, table->sidecar->path);
}

void
leat_file_table_locate(const struct leat_file_table *table, uint64_t i, struct leat_extent *extent)
{
	uint64_t size = table->size[i];

	*extent = (struct leat_extent){.file = (uint32_t)i, .length = size};
	if (size == LEAT_NO_FILE) {
		extent->damaged = true;
		extent->length = 0;
	}
}

enum leat_status
leat_file_table_describe_missing(const struct leat_object *object, struct leat_err *err)
{
	char buf[LEAT_URI];
	const char *uri = leat_object_uri(object, buf);
	struct leat_object now;
	enum leat_status status;

	if (!uri)
		return leat_fail(err, LEAT_DATA, "the name of a file below '%s' is too long", object->folder);
	status = object->store->kind->look(object->store, uri, &now, err);
	switch (status) {
	case LEAT_OK:
		return leat_fail(err, LEAT_DATA, "'%s' was missing when the feed was opened", uri);
	case LEAT_INVALID: /* a folder, a pipe */
		leat_err_clear(err);
		return leat_fail(err, LEAT_DATA, "'%s' is not a regular file", uri);
	default:
		return status;
	}
}

enum leat_status
leat_file_table_unpack(const struct leat_source *source, const struct leat_extent *extent, unsigned char *payload,
                       struct leat_datum *datum, struct leat_err *err)
{
	if (extent->damaged) {
		struct leat_object object;

		leat_source_object(source, extent->file, &object);
		return leat_file_table_describe_missing(&object, err);
	}
	*datum = (struct leat_datum){
		.data = payload,
		.dtype = LEAT_U8,
		.ndim = 1,
		.shape = {(int64_t)extent->length},
	};
	return LEAT_OK;
}

void
leat_file_table_name(const struct leat_file_table *table, uint64_t i, struct leat_datum *datum)
{
	uint64_t begin = table->name_at[i], len = table->name_at[i + 1] - begin;

	*datum = (struct leat_datum){
		.data = (void *)(table->names + begin),
		.dtype = LEAT_U8,
		.ndim = 1,
		.shape = {(int64_t)len},
		.borrowed = true,
	};
}

/* ---- building a table ---- */

void
leat_file_table_build_init(struct leat_file_table_build *build, struct leat_mem *mem)
{
	*build = (struct leat_file_table_build){.mem = mem};
	leat_str_init(&build->names, mem, SIZE_MAX / 4);
}

void
leat_file_table_build_free(struct leat_file_table_build *build)
{
	if (!build->mem)
		return;
	leat_str_free(&build->names);
	leat_free(build->mem, build->name_at);
	leat_free(build->mem, build->size);
	leat_free(build->mem, build->token);
	*build = (struct leat_file_table_build){0};
}

/* Makes room for `more` files. */
static enum leat_status
grow(struct leat_file_table_build *build, size_t more, struct leat_err *err)
{
	uint64_t **array[] = {&build->name_at, &build->size, &build->token};
	enum leat_status status = LEAT_OK;
	size_t cap = build->cap;

	for (size_t i = 0; i < 3 && status == LEAT_OK; i++) {
		cap = build->cap; /* all arrays share one capacity */
		status = LEAT_GROW(build->mem, *array[i], cap, build->count + more + 1, SIZE_MAX, "the list of files",
		                   err);
	}
	if (status == LEAT_OK)
		build->cap = cap;
	return status;
}

enum leat_status
leat_file_table_add(struct leat_file_table_build *build, const char *name, size_t len, struct leat_err *err)
{
	enum leat_status status = grow(build, 1, err);

	if (status != LEAT_OK)
		return status;
	leat_str_addn(&build->names, name, len);
	if (build->names.failed)
		return leat_fail_mem(err, build->mem, build->names.len + len, "the names of the files");
	build->name_at[++build->count] = build->names.len;
	return LEAT_OK;
}

enum leat_status
leat_file_table_append(struct leat_file_table_build *build, struct leat_file_table_build *from, struct leat_err *err)
{
	enum leat_status status = grow(build, from->count, err);
	uint64_t begin = build->names.len;

	if (status != LEAT_OK)
		return status;
	leat_str_addn(&build->names, leat_str_text(&from->names), from->names.len);
	if (build->names.failed)
		return leat_fail_mem(err, build->mem, build->names.len + from->names.len, "the names of the files");
	for (size_t i = 0; i < from->count; i++) {
		build->size[build->count] = from->size[i];
		build->token[build->count++] = from->token[i];
		build->name_at[build->count] = begin + from->name_at[i + 1];
	}
	leat_file_table_build_free(from);
	return LEAT_OK;
}

/* Shared by the threads that get sizes. */
struct sizes {
	struct leat_file_table_build *build;
	const char *const *names;
	size_t first, end; /* in the build */
	const struct leat_confine *confine;
};

static enum leat_status
ask_sizes(void *arg, size_t i, struct leat_err *err)
{
	const struct sizes *s = arg;
	struct leat_outside outside = {0};
	size_t files = files_per_turn(s->confine->files), begin = s->first + i * files;
	enum leat_status status = LEAT_OK, ended;

	for (size_t k = begin; k < begin + files && k < s->end && status == LEAT_OK; k++) {
		const char *name = s->names[k - s->first];
		struct looked found;

		status = look(s->confine->files, s->confine->folder, name, strlen(name), &found, err);
		s->build->size[k] = found.size;
		s->build->token[k] = found.token;
		if (status == LEAT_OK && found.is_link)
			status = leat_confine_link(s->confine, found.uri, &outside, err);
	}
	ended = leat_confine_end_links(s->confine, &outside, err);
	return status == LEAT_OK ? ended : status;
}

enum leat_status
leat_file_table_add_all(struct leat_file_table_build *build, const char *const *names, size_t count,
                        const struct leat_confine *confine, unsigned threads, struct leat_err *err)
{
	struct sizes sizes = {build, names, build->count, build->count + count, confine};
	size_t files = files_per_turn(confine->files), turns = (count + files - 1) / files;
	enum leat_status status = LEAT_OK;

	for (size_t i = 0; i < count && status == LEAT_OK; i++)
		status = leat_file_table_add(build, names[i], strlen(names[i]), err);
	return status == LEAT_OK ? leat_parallel(build->mem, looking_threads(confine->files, threads), turns, ask_sizes,
	                                         &sizes, err)
	                         : status;
}

/* Digest of names, sizes and `more`; stamp of tokens. */
static enum leat_status
make_digests(const struct leat_file_table_build *build, const void *more, size_t more_len, uint8_t *digest,
             uint8_t *stamp, struct leat_err *err)
{
	struct leat_sha256 *sha = leat_sha256_new();
	const char *names = leat_str_text(&build->names);

	if (!sha || leat_sha256(build->token, build->count * sizeof(*build->token), stamp) != 0) {
		leat_sha256_free(sha);
		return leat_fail(err, LEAT_NOMEM, "no memory for the fingerprint of the data");
	}
	leat_fingerprint_number(sha, build->count);
	for (size_t i = 0; i < build->count; i++) {
		leat_fingerprint_text(sha, names + build->name_at[i],
		                      (size_t)(build->name_at[i + 1] - build->name_at[i]));
		leat_fingerprint_number(sha, build->size[i]);
	}
	leat_fingerprint_text(sha, more, more_len);
	leat_sha256_end(sha, digest);
	leat_sha256_free(sha);
	return LEAT_OK;
}

enum leat_status
leat_file_table_finish(struct leat_file_table_build *build, const void *more, size_t more_len,
                       struct leat_sidecar *sidecar, struct leat_err *err)
{
	uint8_t *digest = leat_alloc(build->mem, LEAT_SHA256_BYTES), *stamp = leat_alloc(build->mem, LEAT_SHA256_BYTES);
	uint64_t names_len = build->names.len;
	enum leat_status status;
	char *names = NULL;

	if (digest && stamp)
		status = make_digests(build, more, more_len, digest, stamp, err);
	else
		status = leat_fail_mem(err, build->mem, LEAT_SHA256_BYTES, "the fingerprint of the data");
	if (status == LEAT_OK) {
		names = leat_str_take(&build->names);
		if (!names)
			status = leat_fail_mem(err, build->mem, names_len, "the names of the files");
	}
	if (status != LEAT_OK) {
		leat_free(build->mem, digest);
		leat_free(build->mem, stamp);
		return status;
	}
	leat_sidecar_add_take(sidecar, build->name_at, (build->count + 1) * sizeof(*build->name_at));
	leat_sidecar_add_take(sidecar, names, names_len);
	leat_sidecar_add_take(sidecar, build->size, build->count * sizeof(*build->size));
	leat_sidecar_add_take(sidecar, build->token, build->count * sizeof(*build->token));
	leat_sidecar_add_take(sidecar, digest, LEAT_SHA256_BYTES);
	leat_sidecar_add_take(sidecar, stamp, LEAT_SHA256_BYTES);
	build->name_at = build->size = build->token = NULL;
	return LEAT_OK;
}
