/* log.c - format a message and pass it to the user's callback, on the calling thread */
#include "base/log.h"

#include <stdarg.h>

#include "base/str.h"

void
leat_log(const struct leat_log *log, enum leat_log_level level, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	if (log == NULL || log->write == NULL)
		return;
	va_start(ap, fmt);
	leat_vformat(text, sizeof(text), fmt, ap);
	va_end(ap);
	log->write(log->arg, level, text);
}
