/* logged.c - see logged.h */
#include "logged.h"

#include <pthread.h>
#include <stdio.h>

struct logged logged;
const struct leat_log log_all = {write_log, NULL};

void
write_log(void *arg, enum leat_log_level level, const char *text)
{
	static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

	(void)arg;
	pthread_mutex_lock(&one_at_a_time);
	logged.info += level == LEAT_LOG_INFO;
	logged.warn += level == LEAT_LOG_WARN;
	snprintf(logged.text, sizeof(logged.text), "%s", text);
	if (level == LEAT_LOG_WARN)
		snprintf(logged.warning, sizeof(logged.warning), "%s", text);
	pthread_mutex_unlock(&one_at_a_time);
}
