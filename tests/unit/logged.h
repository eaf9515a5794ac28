/* logged.h - what a test's log received: how much, the last message and the last warning */
#ifndef TEST_LOGGED_H
#define TEST_LOGGED_H

#include <pthread.h>
#include <stdio.h>

#include "base/log.h"

static struct {
	int info, warn;
	char text[1024], warning[1024];
} logged;

static inline void
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

static const struct leat_log log_all = {write_log, NULL};

#endif
