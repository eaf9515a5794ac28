/* clock_shift.c - a library to preload: the time of day is LEAT_CLOCK_SHIFT seconds later, or earlier
 *
 * Times of files still come from the kernel, and so are at odds with the clock, as after a clock was set back. */
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static time_t
shift(void)
{
	const char *text = getenv("LEAT_CLOCK_SHIFT");

	return text ? atoll(text) : 0;
}

#pragma GCC visibility push(default)

int
clock_gettime(clockid_t clock, struct timespec *t)
{
	int status = (int)syscall(SYS_clock_gettime, clock, t);

	if (status == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
		t->tv_sec += shift();
	return status;
}

int
gettimeofday(struct timeval *restrict t, void *restrict zone)
{
	struct timespec now;
	int status = clock_gettime(CLOCK_REALTIME, &now);

	(void)zone;
	*t = (struct timeval){now.tv_sec, now.tv_nsec / 1000};
	return status;
}

time_t
time(time_t *t)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	if (t)
		*t = now.tv_sec;
	return now.tv_sec;
}
