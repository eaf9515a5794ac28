/* err.c - status names and error messages
 *
 * Functions touch nothing but the caller's leat_err, so any thread may call them. A message
 * that does not fit is cut at a character boundary and ends in "...". Messages quote file names
 * and other untrusted text: what is not visible in them is escaped when they are made. */
#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/mem.h"
#include "base/size.h"
#include "base/str.h"

#define TEXT_OF(number) #number
#define VERSION_TEXT(major, minor, patch) TEXT_OF(major) "." TEXT_OF(minor) "." TEXT_OF(patch)

const char *
leat_version(void)
{
	return VERSION_TEXT(LEAT_VERSION_MAJOR, LEAT_VERSION_MINOR, LEAT_VERSION_PATCH);
}

const char *
leat_status_name(enum leat_status status)
{
	switch (status) {
#define STATUS_NAME(name, text)                                                                                        \
	case LEAT_##name:                                                                                              \
		return #name;
		LEAT_STATUSES(STATUS_NAME)
#undef STATUS_NAME
	}
	return "UNKNOWN";
}

const char *
leat_status_text(enum leat_status status)
{
	switch (status) {
#define STATUS_TEXT(name, text)                                                                                        \
	case LEAT_##name:                                                                                              \
		return text;
		LEAT_STATUSES(STATUS_TEXT)
#undef STATUS_TEXT
	}
	return "unknown status";
}

void
leat_err_clear(struct leat_err *err)
{
	if (err == NULL)
		return;
	err->status = LEAT_OK;
	err->text[0] = '\0';
}

/* The first failure wins. */
static bool
is_unset(const struct leat_err *err)
{
	return err != NULL && err->status == LEAT_OK;
}

void
leat_err_set(struct leat_err *err, enum leat_status status, const char *fmt, ...)
{
	va_list ap;

	if (is_unset(err)) {
		err->status = status;
		va_start(ap, fmt);
		leat_vformat(err->text, sizeof(err->text), fmt, ap);
		va_end(ap);
	}
}

enum leat_status
leat_fail_lines(struct leat_err *err, enum leat_status status, const char *text)
{
	if (is_unset(err)) {
		err->status = status;
		snprintf(err->text, sizeof(err->text), "%s", text);
	}
	return status;
}

enum leat_status
leat_fail_as(struct leat_err *err, const struct leat_err *why)
{
	return leat_fail_lines(err, why->status, why->text);
}

enum leat_status
leat_errno_status(int errnum)
{
	return errnum == ENOMEM ? LEAT_NOMEM : LEAT_IO;
}

/* Errno's text, and what to do about it. */
static const char *
describe_errno(int errnum, char *buf, size_t cap)
{
	char text[128];
	struct rlimit limit;

	if (errnum != EMFILE || getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return strerror_r(errnum, buf, cap);
	snprintf(buf, cap, "%s (limit %llu); raise 'ulimit -n'", strerror_r(errnum, text, sizeof(text)),
	         (unsigned long long)limit.rlim_cur);
	return buf;
}

static void
fail_errno(struct leat_err *err, enum leat_status status, int errnum, const char *fmt, va_list ap)
{
	char reason[192], what[sizeof(err->text)];

	if (is_unset(err)) {
		leat_vformat(what, sizeof(what), fmt, ap);
		leat_fail(err, status, "%s: %s", what, describe_errno(errnum, reason, sizeof(reason)));
	}
}

enum leat_status
leat_fail_errno_as(struct leat_err *err, enum leat_status status, int errnum, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fail_errno(err, status, errnum, fmt, ap);
	va_end(ap);
	return status;
}

enum leat_status
leat_fail_errno(struct leat_err *err, int errnum, const char *fmt, ...)
{
	enum leat_status status = leat_errno_status(errnum);
	va_list ap;

	va_start(ap, fmt);
	fail_errno(err, status, errnum, fmt, ap);
	va_end(ap);
	return status;
}

enum leat_status
leat_fail_mem(struct leat_err *err, const struct leat_mem *mem, size_t wanted, const char *what)
{
	size_t used = mem == NULL ? 0 : atomic_load(&mem->used);
	size_t limit = mem == NULL ? SIZE_MAX : mem->limit;
	size_t left = used < limit ? limit - used : 0;
	char want_text[32], left_text[32], limit_text[32], enough[32];

	leat_format_size(want_text, sizeof(want_text), wanted);
	if (limit == SIZE_MAX || wanted <= left)
		return leat_fail(err, LEAT_NOMEM, "out of memory: cannot allocate %s for %s", want_text, what);
	return leat_fail(
		err, LEAT_LIMIT,
		"%s needs %s, but only %s of the memory limit of %s is left; raise memory= to at least %s", what,
		want_text, leat_format_size(left_text, sizeof(left_text), left),
		leat_format_size(limit_text, sizeof(limit_text), limit),
		leat_format_size_up(enough, sizeof(enough), wanted > SIZE_MAX - used ? SIZE_MAX : used + wanted));
}

enum leat_status
leat_err_in(struct leat_err *err, const char *fmt, ...)
{
	char where[sizeof(err->text)], what[sizeof(err->text)];
	enum leat_status status;
	va_list ap;

	if (err == NULL)
		return LEAT_INTERNAL;
	va_start(ap, fmt);
	leat_vformat(where, sizeof(where), fmt, ap);
	va_end(ap);
	memcpy(what, err->text, sizeof(what));
	status = err->status;
	leat_err_clear(err);
	leat_fail(err, status, "%s: %s", where, what);
	return status;
}

enum leat_status
leat_fail_scratch(struct leat_err *err, const struct leat_scratch *scratch, size_t wanted)
{
	char want[32], left[32], all[32];

	return leat_fail(err, LEAT_LIMIT, "a sample needs %s more, but only %s of its %s is left",
	                 leat_format_size_up(want, sizeof(want), wanted),
	                 leat_format_size(left, sizeof(left), scratch->size - scratch->used),
	                 leat_format_size(all, sizeof(all), scratch->size));
}
