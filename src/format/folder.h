/* folder.h - find the images of a folder with one subfolder per class (for folder.c) */
#ifndef LEAT_FORMAT_FOLDER_H
#define LEAT_FORMAT_FOLDER_H

#include "format/file_table.h"

/* Sections of the sidecar, after those of the file table. */
enum {
	LEAT_FOLDER_CLASSES = LEAT_FILE_TABLE_SECTIONS, /* class i: samples [classes[i], classes[i + 1]) */
	LEAT_FOLDER_PLACE_AT,                           /* folder i's name is at [at[i], at[i + 1]) of the names */
	LEAT_FOLDER_PLACES,                             /* folder names, relative to the root, which is "" */
	LEAT_FOLDER_TIMES,                              /* mtime of each folder, in ns */
	LEAT_FOLDER_LEFT_OUT, /* number of files that are not images, then the name of the first */
	LEAT_FOLDER_SECTIONS,
};

/* Walks the folder of `confine` and fills an empty sidecar. *newest is the latest folder mtime. */
enum leat_status leat_folder_walk(const struct leat_confine *confine, unsigned threads, struct leat_mem *mem,
                                  struct leat_sidecar *sidecar, int64_t *newest, struct leat_err *err);

/* Files that are not images: their count, and the first one's name relative to the root (not NUL-terminated). */
struct leat_folder_left_out {
	uint64_t count;
	const char *first;
	int len;
};

/* Lists a folder and saves the listing, for `leat index`. */
struct leat_folder_report {
	uint64_t files, bytes;
	char *path; /* of the listing; freed by the caller */
};

enum leat_status leat_folder_index(const char *dir, unsigned threads, const struct leat_storage *storage,
                                   struct leat_mem *mem, const struct leat_log *log, struct leat_folder_report *report,
                                   struct leat_err *err);

/* The sidecar must have passed validation. */
void leat_folder_left_out(const struct leat_sidecar *sidecar, struct leat_folder_left_out *left_out);

#endif
