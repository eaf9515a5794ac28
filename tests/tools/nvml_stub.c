/* nvml_stub.c - a stand-in for NVML, with GPUs that do what a test says
 *
 * NVML_STUB is a script: "GPUS" and then, for each round, a letter or a digit: 0..9 is a utilization of 0, 10, .. 90 %,
 * x one of 100 %, n "not supported", l "the GPU is lost", which it then stays. The last one is repeated. Each GPU has
 * used 100 MB more than the one before, of 1000 MB, and in each round 1 MB more. NVML_STUB=init fails to start, and a
 * library compiled with MISSING lacks a function. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 16, OK = 0, UNINITIALIZED = 1, INVALID = 2, NOT_SUPPORTED = 3, LOST = 15, UNKNOWN = 999 };

struct rates {
	unsigned gpu, memory;
};
struct memory {
	unsigned long long total, free, used;
};

int nvmlInit_v2(void);
int nvmlShutdown(void);
int nvmlDeviceGetCount_v2(unsigned *count);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device);
int nvmlDeviceGetHandleByUUID(const char *uuid, void **device);
int nvmlDeviceGetUtilizationRates(void *device, struct rates *rates);
int nvmlDeviceGetMemoryInfo(void *device, struct memory *memory);
int stub_users(void); /* nvmlInit without nvmlShutdown */

static int users;
static struct {
	int rounds;
	bool lost;
} gpu[MOST];

static const char *
script(void)
{
	const char *text = getenv("NVML_STUB");

	return text ? text : "1 0";
}

__attribute__((visibility("default"))) int
nvmlInit_v2(void)
{
	if (strcmp(script(), "init") == 0)
		return UNKNOWN;
	users++;
	memset(gpu, 0, sizeof(gpu));
	return OK;
}

__attribute__((visibility("default"))) int
nvmlShutdown(void)
{
	users--;
	return OK;
}

__attribute__((visibility("default"))) int
stub_users(void)
{
	return users;
}

__attribute__((visibility("default"))) int
nvmlDeviceGetCount_v2(unsigned *count)
{
	*count = (unsigned)atoi(script());
	return users > 0 ? OK : UNINITIALIZED;
}

__attribute__((visibility("default"))) int
nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device)
{
	if (index >= (unsigned)atoi(script()))
		return INVALID;
	*device = &gpu[index];
	return OK;
}

/* GPU-0000000N. */
__attribute__((visibility("default"))) int
nvmlDeviceGetHandleByUUID(const char *uuid, void **device)
{
	return nvmlDeviceGetHandleByIndex_v2((unsigned)atoi(uuid + strlen("GPU-")), device);
}

static int
index_of(const void *device)
{
	for (int i = 0; i < MOST; i++)
		if (device == &gpu[i])
			return i;
	abort();
}

#ifndef MISSING
__attribute__((visibility("default"))) int
nvmlDeviceGetUtilizationRates(void *device, struct rates *rates)
{
	int i = index_of(device);
	const char *rounds = strchr(script(), ' ') + 1, *at = rounds + gpu[i].rounds++;

	if (at >= rounds + strlen(rounds))
		at = rounds + strlen(rounds) - 1;
	gpu[i].lost |= *at == 'l';
	if (gpu[i].lost || *at == 'n')
		return gpu[i].lost ? LOST : NOT_SUPPORTED;
	rates->gpu = *at == 'x' ? 100 : 10 * (unsigned)(*at - '0');
	return OK;
}
#endif

__attribute__((visibility("default"))) int
nvmlDeviceGetMemoryInfo(void *device, struct memory *memory)
{
	int i = index_of(device);

	if (gpu[i].lost)
		return LOST;
	memory->total = 1000000000;
	memory->used = 1000000ull * (100 * (unsigned)(i + 1) + (unsigned)gpu[i].rounds);
	memory->free = memory->total - memory->used;
	return OK;
}
