/* err.h - how failures are reported
 *
 * The function that detects a failure writes the message with leat_fail. Its callers pass
 * the status up and may prepend where it happened (leat_err_in). The first failure wins:
 * a leat_err that is already set is not overwritten. */
#ifndef LEAT_BASE_ERR_H
#define LEAT_BASE_ERR_H

#include "leat.h"

/* Clears `err`; public functions do so on entry. Accepts NULL. */
void leat_err_clear(struct leat_err *err);

/* Fills `err`, which may be NULL, and evaluates to `status`. A macro, so the compiler sees that the
 * result is a failure and does not warn about variables that are only set on success. */
#define leat_fail(err, status, ...) (leat_err_set(err, status, __VA_ARGS__), leat_same_status(status))
static inline enum leat_status
leat_same_status(enum leat_status status)
{
	return status;
}
void leat_err_set(struct leat_err *err, enum leat_status status, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* For a text of several lines, or one that is complete: it is taken as it is, so what it quotes must be visible. */
enum leat_status leat_fail_lines(struct leat_err *err, enum leat_status status, const char *text);
/* Fails as `why` says. */
enum leat_status leat_fail_as(struct leat_err *err, const struct leat_err *why);

/* For a failed system call: appends ": " and errno's text. ENOMEM is LEAT_NOMEM, everything else LEAT_IO. */
enum leat_status leat_fail_errno(struct leat_err *err, int errnum, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
enum leat_status leat_errno_status(int errnum);
/* The same with another status. */
enum leat_status leat_fail_errno_as(struct leat_err *err, enum leat_status status, int errnum, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* Allocation failed: LEAT_LIMIT if the feed's memory limit was hit, LEAT_NOMEM if the system is out of memory. */
struct leat_mem;
struct leat_scratch;
enum leat_status leat_fail_mem(struct leat_err *err, const struct leat_mem *mem, size_t wanted, const char *what);
/* LEAT_LIMIT: the scratch has no room for `wanted` bytes. */
enum leat_status leat_fail_scratch(struct leat_err *err, const struct leat_scratch *scratch, size_t wanted);

/* Prepends "WHERE: " to the message and returns the error's status. If `err` is NULL it returns
 * LEAT_INTERNAL, so callers must keep the status of the call that failed. */
enum leat_status leat_err_in(struct leat_err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
