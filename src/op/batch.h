/* batch.h - options of `batch` and `prefetch`; the engine reads them */
#ifndef LEAT_OP_BATCH_H
#define LEAT_OP_BATCH_H

#include <stdint.h>

enum leat_tail {
	LEAT_TAIL_AUTO,
	LEAT_TAIL_SHORT,
	LEAT_TAIL_DROP,
	LEAT_TAIL_PAD,
	LEAT_TAIL_WRAP,
	LEAT_TAIL_EXACT,
};

struct leat_batch_params {
	int64_t size;     /* of the global batch; 0: per_rank is given */
	int64_t per_rank; /* 0: size is given */
	int tail;         /* enum leat_tail; AUTO: short with one rank, wrap with more */
};

struct leat_prefetch_params {
	int64_t batches; /* ready ahead of the consumer; 0: none; -1: chosen by the engine */
};

#endif
