/* pack_list.h - the samples that `leat pack` packs: files with labels
 *
 * Which files there are, in which order, is what the sources `folder` and `list` say: their listers find
 * them. Here they get labels and the names of their classes. Listing: one thread; the rest: any. */
#ifndef LEAT_CLI_PACK_LIST_H
#define LEAT_CLI_PACK_LIST_H

#include "format/csv_table.h"
#include "format/file_table.h"

struct leat_pack_class {
	const char *name;
	size_t len, samples;
};

struct leat_pack_list {
	struct leat_mem *mem;
	size_t count;
	uint64_t bytes;                /* of all files */
	struct leat_pack_class *class; /* by label; none when the list gives labels as numbers */
	size_t classes;
	uint64_t left_out; /* files that are no images */
	char *left_out_first;

	char *root;                   /* the folder that names are relative to */
	struct leat_sidecar sidecar;  /* what `files` points into */
	struct leat_file_table files; /* names and sizes */
	struct leat_csv_table table;  /* of a CSV file: what its labels say */
	int64_t *label;               /* by sample */
};

/* A sample. Texts do not end with a NUL. */
struct leat_pack_sample {
	struct leat_object object;
	const char *name; /* as in the list, or below the folder */
	size_t name_len;
	const char *class_name;
	size_t class_len;
	int64_t label;
};

void leat_pack_list_init(struct leat_pack_list *list, struct leat_mem *mem);
void leat_pack_list_free(struct leat_pack_list *list); /* after a failure too */

/* A folder whose folders are the classes, as folder('FOLDER') lists it. */
enum leat_status leat_pack_list_folder(struct leat_pack_list *list, struct leat_store *store, const char *uri,
                                       unsigned threads, struct leat_err *err);
/* A CSV file with a path and a label in every row, as list('FILE') reads it, but that the first row need not name the
 * columns. Labels that are all whole numbers are taken as they are, others are numbered in the order of their names. */
enum leat_status leat_pack_list_csv(struct leat_pack_list *list, struct leat_store *store, const char *uri,
                                    unsigned threads, struct leat_err *err);

void leat_pack_sample(const struct leat_pack_list *list, uint64_t i, struct leat_pack_sample *sample);

/* The whole content of a file, in memory that is used again for the next one. */
struct leat_content {
	struct leat_mem *mem;
	char *bytes; /* freed with leat_free */
	size_t len, cap;
};

enum leat_status leat_content_read(struct leat_content *content, const struct leat_object *object,
                                   struct leat_err *err);

#endif
