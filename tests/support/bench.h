/* bench.h - one sample on the bench: runs a chain of sample ops on it, as the engine would, one by one
 *
 * Every op is held to its contract on the way: what comes out is what `infer` said, an op that
 * works in place leaves the memory where it is, any other writes anew and leaves its input alone. */
#ifndef LEAT_TESTS_BENCH_H
#define LEAT_TESTS_BENCH_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "feed/spec.h"
#include "op/op.h"

enum { BENCH_SCRATCH = 8 << 20 };

struct bench {
	struct leat_mem mem;
	struct leat_scratch scratch;
	struct leat_sample sample; /* one field */
	struct leat_work work;
	enum leat_layout layout;
	bool ragged; /* what is on the bench are bytes, whose number no schema knows */
	uint64_t position;
	struct leat_err err;
};

void bench_open(struct bench *bench);
void bench_close(struct bench *bench);

/* Puts a copy of `data` on the bench. */
void bench_put(struct bench *bench, const void *data, enum leat_dtype dtype, int ndim, const int64_t *shape,
               enum leat_layout layout);
void bench_put_image(struct bench *bench, const void *data, enum leat_dtype dtype, int64_t height, int64_t width,
                     int64_t channels);
void bench_put_bytes(struct bench *bench, const void *data, size_t size);

enum leat_status bench_run_op(struct bench *bench, const struct leat_op *op, void *params);
/* Runs what `text` says on the sample; bench->err has the sentence when it fails. */
enum leat_status bench_run(struct bench *bench, const char *text);

/* A whole file, to be freed. */
unsigned char *bench_read(const char *path, size_t *size);

#endif
