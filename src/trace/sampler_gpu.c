/* sampler_gpu.c - "gpu %" and "gpu memory MB", by way of NVML
 *
 * NVML comes with NVIDIA's driver and is loaded at run time, in the first round. LEAT_NVML names another library. Where
 * there is none, where a function is missing or fails, there is no track. Of several GPUs, the tracks are the mean and
 * the sum, and each has its own: "gpu 3 %". A GPU that is lost in the middle of a run has no more values.
 *
 * NVML numbers the GPUs of the machine and does not look at CUDA_VISIBLE_DEVICES, so this does. */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/proc.h"
#include "trace/sampler.h"

enum { MOST = 16, NVML_OK = 0, NVML_LOST = 15 };

/* As NVML's ABI has them. */
struct nvml_rates {
	unsigned gpu, memory; /* % of the time since NVML's last look */
};
struct nvml_memory {
	unsigned long long total, free, used;
};

#define FUNCTIONS(X)                                                                                                   \
	X(init, "nvmlInit_v2", (void))                                                                                 \
	X(shutdown, "nvmlShutdown", (void))                                                                            \
	X(count, "nvmlDeviceGetCount_v2", (unsigned *))                                                                \
	X(by_index, "nvmlDeviceGetHandleByIndex_v2", (unsigned, void **))                                              \
	X(by_uuid, "nvmlDeviceGetHandleByUUID", (const char *, void **))                                               \
	X(rates, "nvmlDeviceGetUtilizationRates", (void *, struct nvml_rates *))                                       \
	X(memory, "nvmlDeviceGetMemoryInfo", (void *, struct nvml_memory *))

struct nvml {
#define MEMBER(name, symbol, arguments) int(*name) arguments;
	FUNCTIONS(MEMBER)
#undef MEMBER
};

static const struct {
	const char *symbol;
	size_t at;
} functions[] = {
#define FUNCTION(name, symbol, arguments) {symbol, offsetof(struct nvml, name)},
	FUNCTIONS(FUNCTION)
#undef FUNCTION
};

struct gpu {
	bool tried;
	/* From the environment, which is read while the recorder is being opened: later, in the recorder's thread, the
	 * program might be changing it. */
	struct leat_gpu_choice choice;
	char name[PATH_MAX];
	void *library; /* NULL: not loaded, or of no use */
	struct nvml nvml;
	struct device {
		unsigned number; /* as CUDA counts */
		void *handle;    /* NULL: lost */
	} device[MOST];
	int devices;
};

/* What all GPUs did in a round. */
struct round {
	int rated, sized; /* GPUs that have said so */
	double rates, used, total;
};

/* ---- which GPUs ---- */

static bool
parse_index(const char *text, size_t len, unsigned *index)
{
	const char *at = text;
	int n = leat_proc_next_id(&at, text + len);

	if (len == 1 && *text == '0') {
		*index = 0;
		return true;
	}
	*index = (unsigned)n;
	return n > 0 && at == text + len;
}

/* As CUDA does: what is not the name of a GPU ends the list. */
static bool
add_choice(struct leat_gpu_choice *choice, const char *text, size_t len)
{
	if (choice->count == MOST)
		return false;
	choice->gpu[choice->count].uuid[0] = '\0';
	if (!parse_index(text, len, &choice->gpu[choice->count].index)) {
		if (len < 4 || memcmp(text, "GPU-", 4) != 0 || len >= sizeof(choice->gpu[0].uuid))
			return false;
		memcpy(choice->gpu[choice->count].uuid, text, len);
		choice->gpu[choice->count].uuid[len] = '\0';
	}
	choice->count++;
	return true;
}

void
leat_gpu_choose(struct leat_gpu_choice *choice, const char *visible, const char *local_rank)
{
	*choice = (struct leat_gpu_choice){.all = !visible};
	choice->by_rank = local_rank && parse_index(local_rank, strlen(local_rank), &choice->rank);
	while (visible) {
		size_t len = strcspn(visible, ",");

		if (!add_choice(choice, visible, len) || !visible[len])
			return;
		visible += len + 1;
	}
}

/* ---- NVML ---- */

static bool
find_functions(struct gpu *gpu)
{
	for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
		void *found = dlsym(gpu->library, functions[i].symbol);

		if (!found)
			return false;
		memcpy((char *)&gpu->nvml + functions[i].at, &found, sizeof(found));
	}
	return true;
}

static void
add_device(struct gpu *gpu, unsigned number, unsigned index, const char *uuid)
{
	struct device *device = &gpu->device[gpu->devices];
	int status = *uuid ? gpu->nvml.by_uuid(uuid, &device->handle) : gpu->nvml.by_index(index, &device->handle);

	device->number = number;
	if (status == NVML_OK && device->handle)
		gpu->devices++;
}

static void
add_devices(struct gpu *gpu)
{
	struct leat_gpu_choice choice = gpu->choice;
	unsigned count = 0;

	if (gpu->nvml.count(&count) != NVML_OK)
		return;
	if (!choice.all)
		count = (unsigned)choice.count;
	/* If each rank sees only its own GPU, that is number 0 to all of them. */
	choice.by_rank = choice.by_rank && choice.rank < count;
	for (unsigned i = 0; i < count && gpu->devices < MOST; i++)
		if (!choice.by_rank || i == choice.rank)
			add_device(gpu, i, choice.all ? i : choice.gpu[i].index, choice.all ? "" : choice.gpu[i].uuid);
}

static void
load(struct gpu *gpu)
{
	gpu->library = dlopen(gpu->name, RTLD_NOW | RTLD_LOCAL);
	if (!gpu->library)
		return;
	if (find_functions(gpu) && gpu->nvml.init() == NVML_OK) {
		add_devices(gpu);
		return;
	}
	dlclose(gpu->library);
	gpu->library = NULL;
}

/* ---- sampling ---- */

static bool
gpu_open(void *state, struct leat_sampling *s)
{
	const char *name = getenv("LEAT_NVML");
	struct gpu *gpu = state;

	(void)s;
	snprintf(gpu->name, sizeof(gpu->name), "%s", name && *name ? name : "libnvidia-ml.so.1");
	leat_gpu_choose(&gpu->choice, getenv("CUDA_VISIBLE_DEVICES"), getenv("LOCAL_RANK"));
	return true;
}

static void
put_device(const struct gpu *gpu, struct leat_sampling *s, const struct device *device, const char *what, double value)
{
	char track[LEAT_SAMPLER_TRACK];

	if (gpu->devices < 2)
		return;
	snprintf(track, sizeof(track), "gpu %u %s", device->number, what);
	leat_sampling_put(s, track, value);
}

static void
ask(struct gpu *gpu, struct leat_sampling *s, struct device *device, struct round *round)
{
	struct nvml_rates rates = {0};
	struct nvml_memory memory = {0};
	int rated = gpu->nvml.rates(device->handle, &rates), sized = gpu->nvml.memory(device->handle, &memory);

	if (rated == NVML_OK) {
		double percent = rates.gpu < 100 ? rates.gpu : 100;

		round->rated++;
		round->rates += percent;
		put_device(gpu, s, device, "%", percent);
	}
	if (sized == NVML_OK) {
		round->sized++;
		round->used += (double)memory.used;
		round->total += (double)memory.total;
		put_device(gpu, s, device, "memory MB", (double)memory.used / 1e6);
	}
	if (rated == NVML_LOST || sized == NVML_LOST)
		device->handle = NULL;
}

static void
note(struct leat_sampling *s, const struct round *round)
{
	struct leat_device *sum = &s->device;
	double percent = round->rates / round->rated;

	pthread_mutex_lock(&s->lock);
	sum->devices = (unsigned)round->rated;
	sum->samples++;
	sum->utilization += percent;
	sum->memory += round->used;
	if (round->used > sum->memory_peak)
		sum->memory_peak = round->used;
	sum->memory_total = round->total;
	if (percent >= 1) {
		s->used++;
		sum->utilization_used += percent;
	}
	pthread_mutex_unlock(&s->lock);
}

static void
gpu_take(void *state, struct leat_sampling *s)
{
	struct gpu *gpu = state;
	struct round round = {0};

	if (s->seconds == 0) /* NVML may take its time to start: not while a recorder is being opened */
		return;
	if (!gpu->tried)
		load(gpu);
	gpu->tried = true;
	for (int i = 0; i < gpu->devices; i++)
		if (gpu->device[i].handle)
			ask(gpu, s, &gpu->device[i], &round);
	if (round.sized)
		leat_sampling_put(s, "gpu memory MB", round.used / 1e6);
	if (!round.rated)
		return;
	leat_sampling_put(s, "gpu %", round.rates / round.rated);
	note(s, &round);
}

static void
gpu_close(void *state)
{
	struct gpu *gpu = state;

	if (!gpu->library)
		return;
	gpu->nvml.shutdown();
	dlclose(gpu->library);
}

const struct leat_sampler leat_sampler_gpu = {sizeof(struct gpu), gpu_open, gpu_take, gpu_close};
