/* file_table.h - names, sizes and tokens of files, saved in a sidecar, for sources with one file per sample
 *
 * Listing a million files and asking for their sizes takes seconds, so it is done once and the
 * result is saved. Works with any store. A file that was missing has the size LEAT_NO_FILE; its
 * sample is damaged and the error says why.
 *
 * A saved table must not hide that files were rewritten. Opening looks at LEAT_FILE_TABLE_LOOKS
 * files, spread evenly, and the table is built again if one has another token (leat_object_token).
 * In a larger table, the others are compared when they are read, and looked at before a sample
 * that an earlier process cached is used. A file that differs is an error; its table is removed,
 * so that the next open builds a new one.
 *
 * Open and close: one thread. Everything else: any thread, after open. */
#ifndef LEAT_FORMAT_FILE_TABLE_H
#define LEAT_FORMAT_FILE_TABLE_H

#include "base/str.h"
#include "format/confine.h"
#include "format/sidecar.h"
#include "format/source.h"

#define LEAT_NO_FILE UINT64_MAX

enum { LEAT_FILE_TABLE_LOOKS = 10000 }; /* takes some 10 ms */

/* The table's sections in the sidecar; the source's own follow. */
enum {
	LEAT_FILE_TABLE_NAME_AT, /* count + 1 numbers */
	LEAT_FILE_TABLE_NAMES,   /* name i: [name_at[i], name_at[i + 1]), relative to the folder */
	LEAT_FILE_TABLE_SIZES,   /* count numbers */
	LEAT_FILE_TABLE_TOKENS,  /* count numbers: leat_object_token of each file; 0: missing */
	LEAT_FILE_TABLE_DIGEST,  /* SHA-256 that identifies the data */
	LEAT_FILE_TABLE_STAMP,   /* SHA-256 of the tokens */
	LEAT_FILE_TABLE_SECTIONS,
};

struct leat_file_table {
	uint64_t count;
	const uint64_t *name_at;
	const char *names;
	uint64_t names_len, longest; /* bytes of all names; of the longest name */
	const uint64_t *size, *token;
	uint64_t max_size;
	uint64_t missing; /* files */
	const uint8_t *digest, *stamp;

	/* Set by leat_file_table_open: */
	struct leat_store *store;
	const char *folder, *remedy;
	const struct leat_sidecar *sidecar; /* NULL: not a feed's */
	bool is_current;                    /* all files were looked at when it was opened */
	bool has_uris;                      /* set by the source: some names are URIs, not relative to the folder */
	atomic_bool tried_remove, removed;  /* the sidecar's file */
};

/* Reads and validates the table from a sidecar. False: invalid. */
bool leat_file_table_read(struct leat_file_table *table, const struct leat_sidecar *sidecar);
/* Whether all names pass leat_is_plain_name. */
bool leat_file_table_is_plain(const struct leat_file_table *table);
/* Whether a file has changed, of those that opening looks at, or one that was missing exists now. */
bool leat_file_table_changed(const struct leat_file_table *table, struct leat_store *store, const char *folder,
                             unsigned threads, struct leat_mem *mem);

/* Sets where the files are. Borrows `folder` and `remedy` (what to do about a file that has changed). */
void leat_file_table_place(struct leat_file_table *table, struct leat_store *store, const char *folder,
                           const char *remedy);
/* Makes the files the samples of a source: sets the source's members that follow from the table. Borrows the sidecar,
 * loaded or built. */
void leat_file_table_open(struct leat_file_table *table, struct leat_source *source, struct leat_store *store,
                          const char *folder, const struct leat_sidecar *sidecar);
/* Looks at file `i`, unless that was done at open: is it as the table says? May block. */
bool leat_file_table_is_current(const struct leat_file_table *table, uint64_t i);
/* File `i` could not be read because it has changed: removes the saved table and says so in `err`. */
void leat_file_table_remove(struct leat_file_table *table, uint64_t i, struct leat_err *err);
/* The source's `locate`: sample i is file i; and its `object`. */
void leat_file_table_locate(const struct leat_file_table *table, uint64_t i, struct leat_extent *extent);
void leat_file_table_object(const struct leat_file_table *table, uint64_t i, struct leat_object *object);
/* Why a file is missing: LEAT_DATA, or whatever else prevents a look. */
enum leat_status leat_file_table_describe_missing(const struct leat_object *object, struct leat_err *err);
/* For unpack: sets `datum` to the file's bytes. Fails if the file was missing. */
enum leat_status leat_file_table_unpack(const struct leat_source *source, const struct leat_extent *extent,
                                        unsigned char *payload, struct leat_datum *datum, struct leat_err *err);

/* Points `datum` at the file's name, in the table. */
void leat_file_table_name(const struct leat_file_table *table, uint64_t i, struct leat_datum *datum);

/* Saves the sidecar built from `name`, and logs that. Not if the data's last change, `newest`, is so close to the start
 * of the scan, `begin`, that a later change could have the same timestamp; then it is rebuilt next time. */
void leat_file_table_keep(const struct leat_source *source, struct leat_sidecar *sidecar,
                          const struct leat_sidecar_of *of, const char *name, int64_t newest, int64_t begin);
int64_t leat_file_table_now(void); /* on the clock of file timestamps, in ns */

/* ---- building a table ---- */

struct leat_file_table_build {
	struct leat_mem *mem;
	struct leat_str names;
	uint64_t *name_at, *size; /* count + 1, count */
	uint64_t *token;
	size_t count, cap;
};

void leat_file_table_build_init(struct leat_file_table_build *build, struct leat_mem *mem);
void leat_file_table_build_free(struct leat_file_table_build *build); /* accepts a zeroed one */
enum leat_status leat_file_table_add(struct leat_file_table_build *build, const char *name, size_t len,
                                     struct leat_err *err);
/* Moves all entries of `from`. */
enum leat_status leat_file_table_append(struct leat_file_table_build *build, struct leat_file_table_build *from,
                                        struct leat_err *err);
/* Adds files by name, and gets the size and token of each. `confine` has checked the names; here, links are. */
enum leat_status leat_file_table_add_all(struct leat_file_table_build *build, const char *const *names, size_t count,
                                         const struct leat_confine *confine, unsigned threads, struct leat_err *err);
/* Turns the build into the table's sections of an empty sidecar. The digest covers names, sizes and `more`. */
enum leat_status leat_file_table_finish(struct leat_file_table_build *build, const void *more, size_t more_len,
                                        struct leat_sidecar *sidecar, struct leat_err *err);

#endif
