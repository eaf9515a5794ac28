/* set.h - the files of one command, which become visible together
 *
 * `leat convert` and `leat pack` write a *set* of files and, next to them, a hidden *manifest* that lists them. Files
 * appear one by one, but the manifest is replaced at once: while it says that a command is still putting its files in
 * place, Leat's readers refuse them. So a reader sees all files of the old set, all of the new one, or an error that
 * names the command to run again, even if that command was killed. Data without a manifest is read as it is.
 *
 * The manifest's name follows from that of any file. The shards PREFIX-00000-of-00008SUFFIX, of any count, belong to
 * `.PREFIXSUFFIX.leatset`; all other files with one extension in a folder to `.EXTENSION.leatset`. The latter lists
 * the files of several commands, each with its own state.
 *
 * Checking is done once, when a source opens its files: it takes one look for each set, and if there is a manifest,
 * another listing. */
#ifndef LEAT_STORE_SET_H
#define LEAT_STORE_SET_H

#include "base/str.h"
#include "store/store.h"

/* A command whose files are listed. */
struct leat_set_run {
	bool complete;   /* its files are all in place */
	char *arguments; /* of the command, as a JSON array */
	char *command;   /* the same, quoted for a shell */
};

struct leat_set_file {
	char *name;
	uint64_t size;
	uint32_t crc; /* CRC-32C */
	size_t run;   /* the command that wrote it */
};

struct leat_set {
	struct leat_mem *mem;
	struct leat_set_run *run;
	size_t runs, run_cap;
	struct leat_set_file *file; /* sorted by name */
	size_t files, file_cap;
};

/* The manifest of the set that a file belongs to, to be freed; NULL: out of memory. *shards: the file is a shard. */
char *leat_set_uri(const char *file, bool *shards, struct leat_mem *mem);
/* Escapes a name so that as a pattern it matches itself. */
void leat_add_literal(struct leat_str *pattern, const char *name);

void leat_set_init(struct leat_set *set, struct leat_mem *mem);
void leat_set_free(struct leat_set *set);
/* LEAT_AGAIN (no error text): there is no manifest. *version (may be NULL): that of the manifest. */
enum leat_status leat_set_load(struct leat_set *set, struct leat_store *store, const char *uri,
                               struct leat_version *version, struct leat_err *err);
/* Replaces the manifest, so that it survives a crash of the system. */
enum leat_status leat_set_save(const struct leat_set *set, struct leat_store *store, const char *uri,
                               struct leat_err *err);

/* Adds a command that is not complete; *run is its index. `arguments` ends with NULL. */
enum leat_status leat_set_add_run(struct leat_set *set, const char *const *arguments, size_t *run,
                                  struct leat_err *err);
/* Removes a file from the list, if it is there. The files are sorted. */
void leat_set_remove_file(struct leat_set *set, const char *name);
/* Adds a file whose name is not in the list. Sort the files when all have been added. */
enum leat_status leat_set_add_file(struct leat_set *set, const char *name, uint64_t size, uint32_t crc, size_t run,
                                   struct leat_err *err);
void leat_set_sort(struct leat_set *set);
const struct leat_set_file *leat_set_find(const struct leat_set *set, const char *name); /* NULL: not listed */
bool leat_set_is_complete(const struct leat_set *set);

/* ---- for readers (set_check.c) ---- */

/* The sets that the files of a source belong to. */
struct leat_sets {
	struct leat_mem *mem;
	struct leat_seen_set *seen;
	size_t count, cap;
	bool manifests; /* at least one has a manifest */
	bool fresh;     /* one was loaded since the last leat_sets_again */
};

void leat_sets_init(struct leat_sets *sets, struct leat_mem *mem);
void leat_sets_free(struct leat_sets *sets);
/* Finds and loads the set of each of these files. */
enum leat_status leat_sets_see(struct leat_sets *sets, const struct leat_object *object, size_t count,
                               struct leat_err *err);
/* True if a manifest has changed, or was seen for the first time since the last call: the files have to be listed
 * again, because a command may have replaced some of them in between. */
bool leat_sets_again(struct leat_sets *sets);
/* Checks the files that a pattern has matched, sorted by URI, against their sets. */
enum leat_status leat_sets_check(struct leat_sets *sets, const char *pattern, const struct leat_object *object,
                                 size_t count, struct leat_err *err);

#endif
