/* mem.h - memory that is counted, limited, and can be made to fail
 *
 * Everything a feed holds is taken from its leat_mem, so that `memory=` is a hard
 * limit and a test can fail the n-th request. Any thread may call. */
#ifndef LEAT_BASE_MEM_H
#define LEAT_BASE_MEM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct leat_mem {
	size_t limit; /* SIZE_MAX: none */
	atomic_size_t used, peak;
	atomic_long fail_after; /* tests: this many requests succeed, then every one fails; negative: never */
};

void leat_mem_init(struct leat_mem *mem, size_t limit);
/* Can `size` bytes be had and `keep` be left? For what may be done without. */
bool leat_mem_spares(const struct leat_mem *mem, size_t size, size_t keep);

/* Zeroed, 16-byte aligned; NULL when the limit or the system says no. A size of 0 gives a valid pointer. */
void *leat_alloc(struct leat_mem *mem, size_t size);
void *leat_alloc_array(struct leat_mem *mem, size_t count, size_t size); /* NULL on overflow too */
/* Keeps the old block when it fails. New bytes are zero. `ptr` may be NULL. */
void *leat_realloc(struct leat_mem *mem, void *ptr, size_t size);
/* The same, but what was added to a block is not zeroed: for arrays of millions that are filled at once. */
void *leat_realloc_raw(struct leat_mem *mem, void *ptr, size_t size);
void leat_free(struct leat_mem *mem, void *ptr); /* takes NULL */

char *leat_strdup(struct leat_mem *mem, const char *text);
char *leat_strndup(struct leat_mem *mem, const char *text, size_t len);
char *leat_asprintf(struct leat_mem *mem, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Large buffers: page-aligned, zeroed, whole `size` counted at once though pages come with first use. */
void *leat_map(struct leat_mem *mem, size_t size);
void leat_unmap(struct leat_mem *mem, void *ptr, size_t size); /* takes NULL */

/* Ends what was kept with a scratch; also the name it is kept under. */
typedef void leat_end_kept(void *object, struct leat_mem *mem);
enum { LEAT_KEPT = 4 };

/* A bump allocator over one leat_map'ed region: what a sample needs while it is worked on.
 * One thread. Reset between samples; touches no lock and never grows. */
struct leat_scratch {
	unsigned char *base;
	size_t size, used, peak;
	bool counting;        /* leat_scratch_count */
	struct leat_mem *mem; /* where it is from */
	struct leat_kept {
		void *object;
		leat_end_kept *end;
	} kept[LEAT_KEPT];
};

int leat_scratch_open(struct leat_scratch *scratch, struct leat_mem *mem, size_t size); /* 0, or -1: no memory */
void leat_scratch_close(struct leat_scratch *scratch, struct leat_mem *mem);
void *leat_scratch_alloc(struct leat_scratch *scratch, size_t size); /* 64-byte aligned, not zeroed; NULL: full */
void leat_scratch_reset(struct leat_scratch *scratch);

/* A scratch without memory, to measure what a function takes: every request succeeds and is counted in `peak`, but the
 * pointers must not be used. The function returns after its last request when `counting` is set. `peak` is enough
 * wherever the function's first block begins in a real scratch. Holds nothing that has to be closed. */
void leat_scratch_count(struct leat_scratch *scratch);

/* Objects that are made with the first sample that needs them and serve all of them: closing the scratch ends them. */
void *leat_scratch_kept(const struct leat_scratch *scratch, leat_end_kept *end);        /* NULL: there is none */
bool leat_scratch_keep(struct leat_scratch *scratch, void *object, leat_end_kept *end); /* false: no place is left */
/* The same for a block of the scratch's memory: the one that is kept, or a new one, zeroed. NULL: none can be had.
 * `end` frees it. */
void *leat_scratch_keep_block(struct leat_scratch *scratch, size_t size, leat_end_kept *end);

#endif
