/* file_table.h - what sources share whose samples are files: their names and sizes, kept in a sidecar
 *
 * To open a million files takes seconds, to ask for their sizes too. So both are found
 * out once and kept: a table of names and sizes over any store. A file that was not there when it was looked
 * for has the size LEAT_NO_FILE: its sample is damaged, and says why. One whose size has
 * changed since is refused when it is read, because a part of it would be no sample.
 *
 * Opening and closing: one thread. The rest: any thread, once it is open. */
#ifndef LEAT_FORMAT_FILE_TABLE_H
#define LEAT_FORMAT_FILE_TABLE_H

#include "base/str.h"
#include "format/sidecar.h"
#include "format/source.h"

#define LEAT_NO_FILE UINT64_MAX

/* The sections of the sidecar that are the table's; those of the source follow. */
enum {
	LEAT_FILE_TABLE_NAME_AT, /* count + 1 numbers */
	LEAT_FILE_TABLE_NAMES,   /* name i: [name_at[i], name_at[i + 1]), relative to the folder */
	LEAT_FILE_TABLE_SIZES,   /* count numbers */
	LEAT_FILE_TABLE_DIGEST,  /* SHA-256 of what tells this data from other data */
	LEAT_FILE_TABLE_STAMP,   /* SHA-256 of when the files were written last */
	LEAT_FILE_TABLE_SECTIONS,
};

struct leat_file_table {
	uint64_t count;
	const uint64_t *name_at;
	const char *names;
	uint64_t names_len, longest; /* bytes of all names, and of the longest */
	const uint64_t *size;
	uint64_t max_size;
	uint64_t missing; /* files */
	const uint8_t *digest, *stamp;

	/* Set by leat_file_table_open: */
	struct leat_store *store;
	const char *folder, *remedy;
	int64_t opened_ns;
};

/* Takes the table from a sidecar, all checked; false: it makes no sense. */
bool leat_file_table_read(struct leat_file_table *table, const struct leat_sidecar *sidecar);
/* Is there now a file that was missing? */
bool leat_file_table_found(const struct leat_file_table *table, struct leat_store *store, const char *folder);

/* Where the files are. `folder` and `remedy` (what to do about a file that has changed) are borrowed. */
void leat_file_table_place(struct leat_file_table *table, struct leat_store *store, const char *folder,
                           const char *remedy);
/* As the samples of a source: sets what follows from the table. */
void leat_file_table_open(struct leat_file_table *table, struct leat_source *source, struct leat_store *store,
                          const char *folder, const char *remedy);
/* The source's `locate`: sample i is file i; and its `object`. */
void leat_file_table_locate(const struct leat_file_table *table, uint64_t i, struct leat_extent *extent);
void leat_file_table_object(const struct leat_file_table *table, uint64_t i, struct leat_object *object);
/* Why a file is missing: LEAT_IO or LEAT_DATA. */
enum leat_status leat_file_table_describe_missing(const struct leat_object *object, struct leat_err *err);
/* For unpack: field `datum` is the file's bytes. An error for a file that was missing. */
enum leat_status leat_file_table_unpack(const struct leat_source *source, const struct leat_extent *extent,
                                        unsigned char *payload, struct leat_datum *datum, struct leat_err *err);

/* Field `datum` is the file's name, in the table. */
void leat_file_table_name(const struct leat_file_table *table, uint64_t i, struct leat_datum *datum);

/* Keeps what was made of `name`, and tells the log. If what it was made of was changed so late, `newest`, before it was
 * looked at, `begin`, that another change could come with the same time, it is not kept, and made again next time. */
void leat_file_table_keep(const struct leat_source *source, struct leat_sidecar *sidecar,
                          const struct leat_sidecar_of *of, const char *name, int64_t newest, int64_t begin);
int64_t leat_file_table_now(void); /* as files are stamped, in ns */

/* What to do about a file that has changed, as a sentence to be freed; NULL: no memory. */
char *leat_file_table_remedy(const struct leat_sidecar *sidecar, struct leat_mem *mem);

/* ---- making one ---- */

struct leat_file_table_build {
	struct leat_mem *mem;
	struct leat_str names;
	uint64_t *name_at, *size; /* count + 1, count */
	uint64_t *time;           /* when each was written last, in ns */
	size_t count, cap;
};

void leat_file_table_build_init(struct leat_file_table_build *build, struct leat_mem *mem);
void leat_file_table_build_free(struct leat_file_table_build *build); /* takes a zeroed one */
enum leat_status leat_file_table_add(struct leat_file_table_build *build, const char *name, size_t len,
                                     struct leat_err *err);
/* All of `from`, which is then empty. */
enum leat_status leat_file_table_append(struct leat_file_table_build *build, struct leat_file_table_build *from,
                                        struct leat_err *err);
/* Adds files by their names below `folder`, and looks at each. */
enum leat_status leat_file_table_add_all(struct leat_file_table_build *build, const char *const *names, size_t count,
                                         struct leat_store *store, const char *folder, unsigned threads,
                                         struct leat_err *err);
/* Makes the table's sections of it, in an empty sidecar. The digest covers names, sizes and `more`. */
enum leat_status leat_file_table_finish(struct leat_file_table_build *build, const void *more, size_t more_len,
                                        struct leat_sidecar *sidecar, struct leat_err *err);

#endif
