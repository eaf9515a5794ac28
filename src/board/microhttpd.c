/* microhttpd.c - see microhttpd.h */
#include "board/microhttpd.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>

static const char *const names[] = {"libmicrohttpd.so.12", "libmicrohttpd.so"};

/* Filled once, then read-only. */
static struct leat_mhd loaded;
static bool is_loaded;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static const struct {
	const char *name;
	size_t at;
} functions[] = {
#define FUNCTION(name) {"MHD_" #name, offsetof(struct leat_mhd, name)},
	LEAT_MHD_FUNCTIONS(FUNCTION)
#undef FUNCTION
};

static bool
find_functions(void *library)
{
	for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
		void *found = dlsym(library, functions[i].name);

		if (!found)
			return false;
		memcpy((char *)&loaded + functions[i].at, &found, sizeof(found));
	}
	return true;
}

static void
load(void)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(*names) && !is_loaded; i++) {
		void *library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);

		is_loaded = library && find_functions(library);
		if (library && !is_loaded)
			dlclose(library);
	}
}

const struct leat_mhd *
leat_mhd_load(struct leat_err *err)
{
	pthread_once(&once, load);
	if (is_loaded)
		return &loaded;
	leat_fail(err, LEAT_UNSUPPORTED,
	          "the board needs libmicrohttpd, which is not installed (apt-get install libmicrohttpd12, or dnf "
	          "install libmicrohttpd)");
	return NULL;
}
