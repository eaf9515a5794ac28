/* curl.c - see curl.h */
#include "store/curl.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>

static const char *const names[] = {"libcurl.so.4", "libcurl-gnutls.so.4", "libcurl.so"};

/* Global because libcurl's own state is: filled once, then read-only. */
static struct leat_curl loaded;
static bool is_loaded;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static const struct {
	const char *name;
	size_t at;
} functions[] = {
#define FUNCTION(name) {"curl_" #name, offsetof(struct leat_curl, name)},
	LEAT_CURL_FUNCTIONS(FUNCTION)
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

		is_loaded = library && find_functions(library) && loaded.global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
		if (library && !is_loaded)
			dlclose(library);
	}
}

const struct leat_curl *
leat_curl_load(struct leat_err *err)
{
	pthread_once(&once, load);
	if (is_loaded)
		return &loaded;
	leat_fail(err, LEAT_UNSUPPORTED,
	          "remote storage needs libcurl, which is not installed (apt-get install libcurl4, or dnf install "
	          "libcurl)");
	return NULL;
}

void
leat_curl_set_way(const struct leat_curl *curl, CURL *easy, const struct leat_storage *storage)
{
	if (*storage->ca_bundle)
		curl->easy_setopt(easy, CURLOPT_CAINFO, storage->ca_bundle);
	if (*storage->proxy)
		curl->easy_setopt(easy, CURLOPT_PROXY, strcmp(storage->proxy, "none") == 0 ? "" : storage->proxy);
}
