/* pack_list.h - the samples for `leat pack`: files with labels
 *
 * The sources `folder` and `list` determine the files and their order. Here they get labels and class names.
 * Listing: one thread; the rest: any. */
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
	struct leat_pack_class *class; /* by label; none if the list has numeric labels */
	size_t classes;
	uint64_t left_out; /* files that are not images */
	char *left_out_first;

	char *root;                   /* folder that names are relative to */
	struct leat_confine confine;  /* which files may be packed */
	struct leat_sidecar sidecar;  /* backs `files` */
	struct leat_file_table files; /* names and sizes */
	struct leat_csv_table table;  /* labels of a CSV file */
	int64_t *label;               /* by sample */
};

/* A sample. Strings are not NUL-terminated. */
struct leat_pack_sample {
	struct leat_object object;
	const char *name; /* as in the list, or relative to the folder */
	size_t name_len;
	const char *class_name;
	size_t class_len;
	int64_t label;
};

void leat_pack_list_init(struct leat_pack_list *list, struct leat_mem *mem);
void leat_pack_list_free(struct leat_pack_list *list); /* after a failure too */

/* A folder with one subfolder per class, listed as by folder('FOLDER', root=ROOT). */
enum leat_status leat_pack_list_folder(struct leat_pack_list *list, struct leat_store *store, const char *uri,
                                       const char *root, unsigned threads, struct leat_err *err);
/* A CSV file with a path and a label in every row, read as by list('FILE', root=ROOT), except that the header is
 * optional. If all labels are integers they are used as is; otherwise they are numbered in order of their names. */
enum leat_status leat_pack_list_csv(struct leat_pack_list *list, struct leat_store *store, const char *uri,
                                    const char *root, unsigned threads, struct leat_err *err);

void leat_pack_sample(const struct leat_pack_list *list, uint64_t i, struct leat_pack_sample *sample);

/* The content of a file; the buffer is reused for the next one. */
struct leat_content {
	struct leat_mem *mem;
	uint64_t max; /* longer files are errors */
	char *bytes;  /* freed with leat_free */
	size_t len, cap;
};

enum leat_status leat_content_read(struct leat_content *content, const struct leat_object *object,
                                   struct leat_err *err);

#endif
