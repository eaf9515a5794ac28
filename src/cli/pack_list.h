/* pack_list.h - the samples that `leat pack` packs: files with labels */
#ifndef LEAT_CLI_PACK_LIST_H
#define LEAT_CLI_PACK_LIST_H

#include "base/err.h"
#include "base/mem.h"

struct leat_pack_sample {
	char *path; /* to open */
	char *name; /* as in the list, or below the folder */
	int64_t label;
	char *class_name; /* CSV only, until the labels are known */
	uint64_t size;
};

struct leat_pack_list {
	struct leat_mem *mem;
	struct leat_pack_sample *sample;
	size_t count, cap;
	char **class_name; /* by label, sorted; none when the list gives labels as numbers */
	size_t classes, class_cap;
	size_t left_out; /* files that are no images */
	char *left_out_first;
	uint64_t bytes;
};

/* A folder whose folders are the classes, their .jpg, .jpeg and .png files the samples; classes are
 * numbered and samples are listed in the order of their names. */
enum leat_status leat_pack_list_folder(struct leat_pack_list *list, const char *folder, struct leat_err *err);
/* A CSV file with a path and a label in every row, paths relative to the file's folder. Labels that are
 * all whole numbers are taken as they are, others are numbered in the order of their names. */
enum leat_status leat_pack_list_csv(struct leat_pack_list *list, const char *path, struct leat_err *err);
void leat_pack_list_free(struct leat_pack_list *list); /* after a failure too */

/* The whole content of a file, in memory that is used again for the next one. */
struct leat_content {
	struct leat_mem *mem;
	char *bytes; /* with a NUL behind them; freed with leat_free */
	size_t len, cap;
};

enum leat_status leat_content_read(struct leat_content *content, const char *path, struct leat_err *err);

#endif
