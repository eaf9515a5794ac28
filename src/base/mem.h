/* mem.h - memory allocation with a limit, and with failures for tests
 *
 * A feed allocates everything from its leat_mem, so `memory=` is a hard limit and a test
 * can make the n-th allocation fail. A leat_mem may be used by any thread.
 *
 * Large blocks are mappings: growing one moves pages instead of copying them, so the old and the new block are never
 * resident at once, and freeing one returns its pages to the system. */
#ifndef LEAT_BASE_MEM_H
#define LEAT_BASE_MEM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct leat_mem {
	size_t limit; /* SIZE_MAX: none */
	/* To name the minimum, a feed that turns out too large is opened to the end before it is refused. Meanwhile,
	 * large blocks beyond the limit are mapped from a temporary file, and small ones have LEAT_MEM_ALLOWANCE. */
	bool lends;
	atomic_size_t used;     /* in memory, at most `limit` */
	atomic_size_t lent;     /* beyond it: in a file, or only counted */
	atomic_size_t peak;     /* of both together */
	atomic_long fail_after; /* tests: fail all allocations after this many; negative: never */
};

/* A block of this many bytes or more is a mapping. */
enum { LEAT_MEM_LARGE = 256 * 1024, LEAT_MEM_ALLOWANCE = 8 * 1024 * 1024 };

void leat_mem_init(struct leat_mem *mem, size_t limit);
size_t leat_mem_counted(const struct leat_mem *mem);   /* used and lent */
bool leat_mem_is_exceeded(const struct leat_mem *mem); /* more is counted than the limit: the feed will be refused */

/* Zeroed and 16-byte aligned. NULL: limit reached or out of memory. A size of 0 gives a valid pointer. */
void *leat_alloc(struct leat_mem *mem, size_t size);
void *leat_alloc_array(struct leat_mem *mem, size_t count, size_t size); /* NULL on overflow too */
/* New bytes are zeroed. On failure the old block is kept. `ptr` may be NULL. */
void *leat_realloc(struct leat_mem *mem, void *ptr, size_t size);
/* leat_realloc without zeroing, for very large arrays that are filled right away. */
void *leat_realloc_raw(struct leat_mem *mem, void *ptr, size_t size);
void leat_free(struct leat_mem *mem, void *ptr); /* accepts NULL */
/* leat_alloc for what is first used after opening. If it does not fit and `lends` is set, it is only counted, and the
 * block must not be used. */
void *leat_alloc_later(struct leat_mem *mem, size_t size);

char *leat_strdup(struct leat_mem *mem, const char *text);
char *leat_strndup(struct leat_mem *mem, const char *text, size_t len);
char *leat_asprintf(struct leat_mem *mem, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Large buffers, page-aligned and zeroed. All of `size` counts against the limit at once, although the
 * kernel allocates pages on first use. While `lends` is set, a buffer that does not fit is only counted. */
void *leat_map(struct leat_mem *mem, size_t size);
void leat_unmap(struct leat_mem *mem, void *ptr, size_t size); /* accepts NULL */
/* The same in a memfd, to share with other processes. leat_unmap ends it; the caller closes *fd. */
void *leat_map_shared(struct leat_mem *mem, size_t size, int *fd);

/* Destroys an object kept with a scratch. Also serves as the key to find it by. */
typedef void leat_end_kept(void *object, struct leat_mem *mem);
enum { LEAT_KEPT = 4 };

/* A bump allocator over one leat_map'ed region, for temporary buffers while a sample is processed.
 * One thread. Reset between samples; takes no locks and never grows. */
struct leat_scratch {
	unsigned char *base;
	size_t size, used, peak;
	size_t wanted;           /* most that a failed allocation needed of `size`; 0: none has failed */
	bool counting;           /* leat_scratch_count */
	struct leat_mem *mem;    /* it was allocated from */
	const atomic_bool *stop; /* set: give up long work, whose result nobody wants; NULL: never */
	struct leat_kept {
		void *object;
		leat_end_kept *end;
	} kept[LEAT_KEPT];
};

int leat_scratch_open(struct leat_scratch *scratch, struct leat_mem *mem, size_t size); /* 0, or -1: out of memory */
void leat_scratch_close(struct leat_scratch *scratch, struct leat_mem *mem);
void *leat_scratch_alloc(struct leat_scratch *scratch, size_t size); /* 64-byte aligned, not zeroed; NULL: full */
void leat_scratch_reset(struct leat_scratch *scratch);
/* For work on a large sample, to ask every few rows. */
static inline bool
leat_scratch_stopped(const struct leat_scratch *scratch)
{
	return scratch->stop && atomic_load_explicit(scratch->stop, memory_order_relaxed);
}

/* A scratch without memory, to measure how much a function needs. Every allocation succeeds and counts towards
 * `peak`, but the pointers must not be used: if `counting` is set, the function returns after its last allocation.
 * `peak` includes the worst-case alignment padding. Need not be closed. */
void leat_scratch_count(struct leat_scratch *scratch);

/* Objects that outlive a sample, such as decompressors: created on first use, reused for later samples, destroyed
 * when the scratch is closed. */
void *leat_scratch_kept(const struct leat_scratch *scratch, leat_end_kept *end);        /* NULL: none */
bool leat_scratch_keep(struct leat_scratch *scratch, void *object, leat_end_kept *end); /* false: no free entry */
/* Returns the block kept under `end`, or allocates a zeroed one from the scratch's leat_mem. `end` frees it. NULL: out
 * of memory, or no free entry. */
void *leat_scratch_keep_block(struct leat_scratch *scratch, size_t size, leat_end_kept *end);

#endif
