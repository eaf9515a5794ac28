/* process.h - run functions in other processes, one for each worker thread
 *
 * A worker copies the sample into memory that it shares with its process, sends a message, sleeps until the answer
 * comes, and copies the result back. The processes are the caller's: he starts them, gives each a socket
 * (SOCK_SEQPACKET), and ends them after the feed is closed. docs/C-API.md describes the messages for those who write
 * the other side.
 *
 * Nothing that comes from a process is trusted: offsets and lengths are checked before use. A process that ends is an
 * error of the feed, never a wait.
 *
 * Threads: each worker calls for its own process. One thread opens, interrupts and closes. */
#ifndef LEAT_FEED_PROCESS_H
#define LEAT_FEED_PROCESS_H

#include "base/err.h"
#include "base/mem.h"

/* What is sent through the socket. All numbers are native. */
enum leat_message_kind {
	/* to the process */
	LEAT_MESSAGE_OPEN = 1, /* with two descriptors: its own memory (`a` bytes), and that for large samples (`b`) */
	LEAT_MESSAGE_CALL = 2, /* `where` says which memory holds the sample; `a`: bytes in use */
	/* from the process */
	LEAT_MESSAGE_DONE = 3,      /* `count` fields, described at offset `a` */
	LEAT_MESSAGE_FAILED = 4,    /* the function failed for this sample: `b` bytes of text at offset `a` */
	LEAT_MESSAGE_WRONG = 5,     /* its result is not what was declared: same */
	LEAT_MESSAGE_TOO_LARGE = 6, /* the result needs `a` bytes in all */
};

struct leat_message {
	uint32_t kind, where, count, zero;
	uint64_t a, b;
};

/* At the start of the memory, followed by the fields it has. */
struct leat_exchange_call {
	uint64_t seed, epoch, position, sample, random[2];
	uint32_t number, count;
};

struct leat_exchange_field {
	char name[LEAT_MAX_NAME + 1]; /* ignored in results: they come in the order of leat_function.gives */
	int32_t dtype, ndim;
	int64_t shape[LEAT_MAX_DIMS];
	uint64_t at; /* offset of the data */
};

struct leat_processes;

/* Memory needed besides the data itself, in both directions. */
size_t leat_exchange_overhead(int fields);

/* Are there as many processes as threads? */
enum leat_status leat_processes_check(const struct leat_options *options, struct leat_err *err);
/* Shares `each` bytes with each process, and `large` with all of them. */
enum leat_status leat_processes_open(struct leat_processes **processes, const struct leat_options *options, size_t each,
                                     size_t large, struct leat_mem *mem, struct leat_err *err);
void leat_processes_close(struct leat_processes *processes); /* accepts NULL */

/* Runs the call's function in the process of its thread. `large`: in the memory for large samples, which one thread at
 * a time may use. LEAT_LIMIT: the memory is too small. LEAT_CANCELLED: interrupted. */
enum leat_status leat_processes_call(struct leat_processes *processes, const struct leat_map_call *call, bool large,
                                     struct leat_err *err);
/* Ends calls under way and refuses new ones, or ends that again. A process may still be busy with an interrupted call;
 * its next call waits for it. Accepts NULL. */
void leat_processes_interrupt(struct leat_processes *processes, bool interrupt);

#endif
