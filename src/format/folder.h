/* folder.h - finding the images of a folder with a sub-folder for each class (for folder.c) */
#ifndef LEAT_FORMAT_FOLDER_H
#define LEAT_FORMAT_FOLDER_H

#include "format/file_table.h"

/* What is told of those that are left out. */
#define LEAT_FOLDER_EXTENSIONS ".jpg, .jpeg, .png, .ppm, .bmp, .pgm, .tif, .tiff, .webp"

/* The sections of the sidecar, behind those of the table of files. */
enum {
	LEAT_FOLDER_CLASSES = LEAT_FILE_TABLE_SECTIONS, /* class i: samples [classes[i], classes[i + 1]) */
	LEAT_FOLDER_PLACE_AT, /* of all folders: where the names begin, and at last where they end */
	LEAT_FOLDER_PLACES,   /* their names, relative to the root, which is "" */
	LEAT_FOLDER_TIMES,    /* when each was changed last, in ns */
	LEAT_FOLDER_LEFT_OUT, /* one number: files that are no images; behind it the name of the first */
	LEAT_FOLDER_SECTIONS,
};

/* Walks over the folder `root` and fills an empty sidecar. *newest is the latest change of a folder. */
enum leat_status leat_folder_walk(struct leat_store *store, const char *root, unsigned threads, struct leat_mem *mem,
                                  struct leat_sidecar *sidecar, int64_t *newest, struct leat_err *err);

/* The files that are no images: how many, and the name of the first, relative to the root (not ended by a NUL). */
struct leat_folder_left_out {
	uint64_t count;
	const char *first;
	int len;
};

/* Of a sidecar that makes sense. */
void leat_folder_left_out(const struct leat_sidecar *sidecar, struct leat_folder_left_out *left_out);

#endif
