/* record.h - LEAT_RECORD=FOLDER: tests keep what they open, for tests/check_checksums
 *
 * Every spec that a test program opens, or runs on the bench (bench.h), becomes a line of
 * FOLDER/specs.txt as tests/tools/checksums.c reads them; the data it reads is copied to FOLDER/HASH, named by its
 * contents. Test programs are linked with --wrap for it. Without LEAT_RECORD nothing happens. */
#ifndef TEST_RECORD_H
#define TEST_RECORD_H

#include "format/sample.h"

/* Before `ops` run on one sample with this one field; `bytes`: it is an encoded image, else an array. */
void record_bench(const struct leat_datum *datum, bool bytes, const char *ops);

/* Told each spec that is opened, with or without LEAT_RECORD. */
extern void (*record_opened)(const char *spec);

#endif
