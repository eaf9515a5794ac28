/* cudart_stub.c - a stand-in for the CUDA runtime: notes which memory is registered, and fails when told to
 *
 * It refuses what CUDA refuses: to register memory twice, or to unregister what is not registered. Any thread. */
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MOST = 4096, INVALID = 1, NOT_ENOUGH = 2 };

int cudaHostRegister(void *at, size_t bytes, unsigned flags);
int cudaHostUnregister(void *at);
int cudaGetLastError(void);
const char *cudaGetErrorString(int error);
/* For tests. */
void stub_reset(void);
void stub_fail_after(int calls); /* that many more memory ranges can be registered; -1: any number */
int stub_ranges(void);           /* registered now */
size_t stub_bytes(void);
int stub_registered(void); /* calls that succeeded, ever */
int stub_errors(void);     /* calls that made no sense */
bool stub_is_pinned(const void *at);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	const char *at;
	size_t bytes;
} range[MOST];
static int ranges, registered, errors, allowed = -1, last_error;

static int
find(const void *at)
{
	for (int i = 0; i < ranges; i++)
		if ((const char *)at >= range[i].at && (const char *)at < range[i].at + range[i].bytes)
			return i;
	return -1;
}

static int
fail(int error)
{
	last_error = error;
	return error;
}

__attribute__((visibility("default"))) int
cudaHostRegister(void *at, size_t bytes, unsigned flags)
{
	int status = 0;

	pthread_mutex_lock(&lock);
	if (!at || bytes == 0 || (uintptr_t)at % 4096 || flags != 1 || find(at) >= 0 || ranges == MOST) {
		errors++;
		status = fail(INVALID);
	} else if (allowed == 0) {
		status = fail(NOT_ENOUGH);
	} else {
		allowed -= allowed > 0;
		range[ranges].at = at;
		range[ranges++].bytes = bytes;
		registered++;
	}
	pthread_mutex_unlock(&lock);
	return status;
}

__attribute__((visibility("default"))) int
cudaHostUnregister(void *at)
{
	int status = 0, i;

	pthread_mutex_lock(&lock);
	i = find(at);
	if (i < 0 || range[i].at != at) {
		errors++;
		status = fail(INVALID);
	} else {
		range[i] = range[--ranges];
	}
	pthread_mutex_unlock(&lock);
	return status;
}

__attribute__((visibility("default"))) int
cudaGetLastError(void)
{
	int error;

	pthread_mutex_lock(&lock);
	error = last_error;
	last_error = 0;
	pthread_mutex_unlock(&lock);
	return error;
}

#ifndef MISSING
__attribute__((visibility("default"))) const char *
cudaGetErrorString(int error)
{
	return error == NOT_ENOUGH ? "out of memory" : "invalid argument";
}
#endif

__attribute__((visibility("default"))) void
stub_reset(void)
{
	ranges = registered = errors = last_error = 0;
	allowed = -1;
}

__attribute__((visibility("default"))) void
stub_fail_after(int calls)
{
	allowed = calls;
}

__attribute__((visibility("default"))) int
stub_ranges(void)
{
	return ranges;
}

__attribute__((visibility("default"))) size_t
stub_bytes(void)
{
	size_t bytes = 0;

	pthread_mutex_lock(&lock);
	for (int i = 0; i < ranges; i++)
		bytes += range[i].bytes;
	pthread_mutex_unlock(&lock);
	return bytes;
}

__attribute__((visibility("default"))) int
stub_registered(void)
{
	return registered;
}

__attribute__((visibility("default"))) int
stub_errors(void)
{
	return errors;
}

__attribute__((visibility("default"))) bool
stub_is_pinned(const void *at)
{
	bool pinned;

	pthread_mutex_lock(&lock);
	pinned = find(at) >= 0;
	pthread_mutex_unlock(&lock);
	return pinned;
}
