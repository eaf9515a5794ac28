/* log.h - log messages go to the user's callback; the library itself never prints */
#ifndef LEAT_BASE_LOG_H
#define LEAT_BASE_LOG_H

#include "leat.h"

struct leat_log {
	void (*write)(void *arg, enum leat_log_level level, const char *text); /* NULL: silent */
	void *arg;
};

void leat_log(const struct leat_log *log, enum leat_log_level level, const char *fmt, ...)
	__attribute__((format(printf, 3, 4))); /* `log` may be NULL */

#endif
