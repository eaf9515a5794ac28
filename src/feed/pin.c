/* pin.c - see pin.h */
#include "feed/pin.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

#include "feed/feed.h"
#include "feed/spans.h"

enum { PORTABLE = 1 /* pinned for all GPUs, not only the current one */ };

static const char *const names[] = {"libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0", "libcudart.so"};

static const struct {
	const char *name;
	size_t at;
} functions[] = {
	{"cudaHostRegister", offsetof(struct leat_cudart, host_register)},
	{"cudaHostUnregister", offsetof(struct leat_cudart, host_unregister)},
	{"cudaGetLastError", offsetof(struct leat_cudart, get_last_error)},
	{"cudaGetErrorString", offsetof(struct leat_cudart, error_string)},
};

/* ---- the runtime ---- */

/* Frameworks bring their own runtime, under names such as libcudart-1b2c3d4e.so.12. Its path is copied: to call dlopen
 * in here, under a lock of the linker's, could wait for ever. */
static int
find_loaded(struct dl_phdr_info *info, size_t size, void *arg)
{
	const char *slash = strrchr(info->dlpi_name, '/'), *name = slash ? slash + 1 : info->dlpi_name;
	char *path = arg;

	(void)size;
	return strncmp(name, "libcudart", strlen("libcudart")) == 0 && strlen(info->dlpi_name) < PATH_MAX &&
	       strcpy(path, info->dlpi_name) != NULL;
}

static void *
open_runtime(void)
{
	const char *given = getenv("LEAT_CUDART");
	char path[PATH_MAX];
	void *library = NULL;

	if (given && *given)
		return dlopen(given, RTLD_NOW | RTLD_LOCAL);
	if (dl_iterate_phdr(find_loaded, path) != 0)
		library = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
	for (size_t i = 0; i < sizeof(names) / sizeof(*names) && !library; i++)
		library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
	return library;
}

enum leat_status
leat_cudart_load(struct leat_cudart *cudart, struct leat_err *err)
{
	void *library = open_runtime();
	struct leat_cudart all;

	if (!library)
		return leat_fail(err, LEAT_UNSUPPORTED, "there is no CUDA runtime (libcudart) on this system");
	for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
		void *found = dlsym(library, functions[i].name);

		if (!found) {
			dlclose(library);
			return leat_fail(err, LEAT_UNSUPPORTED, "the CUDA runtime has no %s", functions[i].name);
		}
		memcpy((char *)&all + functions[i].at, &found, sizeof(found));
	}
	*cudart = all;
	return LEAT_OK;
}

/* ---- slots ---- */

static void
register_slot(struct leat_feed *feed, struct leat_batch *slot)
{
	struct leat_pin *pin = &feed->pin;
	int error = pin->cudart.host_register(slot->base, slot->form->bytes, PORTABLE);

	if (error == 0) {
		slot->cudart = &pin->cudart;
		atomic_fetch_add(&feed->pinned, slot->form->bytes);
		return;
	}
	pin->failed = true;
	pin->cudart.get_last_error(); /* or the program's next call of CUDA would seem to fail */
	leat_log(&feed->log, LEAT_LOG_WARN,
	         "batches are not in pinned memory: CUDA cannot register %zu bytes: %s; copies to the device take "
	         "longer",
	         slot->form->bytes, pin->cudart.error_string(error));
}

void
leat_unpin_slot(struct leat_batch *slot)
{
	if (!slot->cudart)
		return;
	if (slot->cudart->host_unregister(slot->base) != 0) /* at the program's end, CUDA may be gone already */
		slot->cudart->get_last_error();
	slot->cudart = NULL;
	atomic_fetch_sub(&slot->feed->pinned, slot->form->bytes);
}

void
leat_pin_slot(struct leat_feed *feed, struct leat_batch *slot)
{
	if (!feed->pin.on)
		leat_unpin_slot(slot);
	else if (!slot->cudart && !feed->pin.failed)
		register_slot(feed, slot);
}

/* ---- for the consumer ---- */

enum leat_status
leat_pin(struct leat_feed *feed, bool on, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	leat_err_clear(err);
	feed->pin.failed = feed->pin.failed && !on; /* asked for again: what failed is tried again */
	if (on && !feed->pin.cudart.host_register)
		status = leat_cudart_load(&feed->pin.cudart, err);
	feed->pin.on = on && status == LEAT_OK;
	return status;
}

void
leat_to_device(struct leat_feed *feed, uint64_t begin_ns, uint64_t end_ns, uint64_t bytes, uint64_t staged)
{
	struct leat_counters *count = &feed->trace.consumer->count;

	leat_count(&count->to_device_ns, end_ns > begin_ns ? end_ns - begin_ns : 0);
	leat_count(&count->to_device_bytes, bytes);
	leat_count(&count->staged, staged);
	if (feed->spans)
		leat_spans_to_device(feed, begin_ns, end_ns);
}
