/* err.h - statuses and the one error type
 *
 * The function that detects a failure writes the sentence with leat_fail; every
 * caller above passes the status on and may add where it happened in front
 * (leat_err_in). The first failure wins: a filled leat_err is not overwritten. */
#ifndef LEAT_BASE_ERR_H
#define LEAT_BASE_ERR_H

#include "leat.h"

/* Makes `err` hold no failure. Public functions do it at entry. Takes NULL. */
void leat_err_clear(struct leat_err *err);

/* Fills `err` (NULL: only the status counts) and is `status`. A macro, so that the compiler sees which
 * status comes out and does not warn of what only success sets. */
#define leat_fail(err, status, ...) (leat_err_set(err, status, __VA_ARGS__), leat_same_status(status))
static inline enum leat_status
leat_same_status(enum leat_status status)
{
	return status;
}
void leat_err_set(struct leat_err *err, enum leat_status status, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* The same for a failed system call: adds ": " and errno's text. ENOMEM is LEAT_NOMEM, all else LEAT_IO. */
enum leat_status leat_fail_errno(struct leat_err *err, int errnum, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Out of memory, in the words of the limit that was hit. */
struct leat_mem;
struct leat_scratch;
enum leat_status leat_fail_mem(struct leat_err *err, const struct leat_mem *mem, size_t wanted, const char *what);
/* LEAT_LIMIT, when a scratch has no room for `wanted` bytes. */
enum leat_status leat_fail_scratch(struct leat_err *err, const struct leat_scratch *scratch, size_t wanted);

/* Puts "WHERE: " in front of the sentence of a failure on its way up, and returns the error's status.
 * Without an error there is none to return (LEAT_INTERNAL): keep the status of the call that failed. */
enum leat_status leat_err_in(struct leat_err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
