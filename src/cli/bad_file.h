/* bad_file.h - option --bad: a file with a line of JSON for each bad sample
 *
 * Lines are written as batches are delivered, so the file is good after ^C and failures too. */
#ifndef LEAT_CLI_BAD_FILE_H
#define LEAT_CLI_BAD_FILE_H

#include <stdio.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

struct leat_bad_file {
	FILE *file; /* NULL: none */
	const char *path;
	struct leat_mem *mem;
	int failure; /* errno of the first line that could not be written; 0: none */
};

/* A path of "" or NULL: no file. Sets `options` to write to it. */
enum leat_status leat_bad_file_open(struct leat_bad_file *bad, const char *path, struct leat_mem *mem,
                                    struct leat_options *options, struct leat_err *err);
enum leat_status leat_bad_file_close(struct leat_bad_file *bad, struct leat_err *err);

/* A bad sample as a JSON object. */
void leat_bad_add_json(const struct leat_bad *bad, struct leat_str *out);

#endif
