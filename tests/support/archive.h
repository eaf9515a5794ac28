/* archive.h - for tests of sources: golden archives through leat_open, and single samples as the engine reads them
 *
 * A golden folder holds archives and cases.json: specs (@ stands for the folder) and what the original
 * library read, each value with dtype, shape and bytes. */
#ifndef TEST_ARCHIVE_H
#define TEST_ARCHIVE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <jansson.h>

#include "feed/feed.h"
#include "format/source.h"
#include "logged.h"
#include "support/source.h"
#include "temp.h"

/* ---- golden archives ---- */

/* A copy of a folder of GOLDEN in the temporary folder, because indexes are written beside the data. */
void golden_copy(struct temp *temp, const char *folder);

/* `spec` with the folder in place of each @. */
const char *golden_spec(const struct temp *temp, const char *spec);

/* Every case of a golden folder, twice: without and with indexes. */
void golden_check_all(struct temp *temp, const char *folder, size_t least);

/* ---- one sample at a time ---- */

struct archive {
	struct leat_mem mem;
	struct leat_source source;
	struct leat_err err;
	struct leat_scratch scratch;
	struct leat_sample sample; /* of the last read, until the next */
	unsigned char *bytes;
	bool open;
};

void archive_init(struct archive *a);
enum leat_status archive_open(struct archive *a, const char *kind, const void *params);
void archive_close(struct archive *a);

/* Reads and unpacks one sample the way the engine does. What comes out is checked against the schema. */
enum leat_status archive_read(struct archive *a, uint64_t i);

#endif
