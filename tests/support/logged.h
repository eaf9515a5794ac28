/* logged.h - what a test's log received: how much, the last message and the last warning */
#ifndef TEST_LOGGED_H
#define TEST_LOGGED_H

#include "base/log.h"

struct logged {
	int info, warn;
	char text[1024], warning[1024];
};

extern struct logged logged;
extern const struct leat_log log_all;

void write_log(void *arg, enum leat_log_level level, const char *text);

#endif
