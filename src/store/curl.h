/* curl.h - libcurl, loaded when the first remote URI is opened
 *
 * libcurl resolves names, connects, speaks TLS and handles proxies; Leat does the rest itself.
 * It is loaded at run time, so feeds of local files start without it and its twenty libraries,
 * and a wheel uses the system's, which knows where the system keeps its CA certificates.
 *
 * Threads: any; a handle belongs to one thread at a time. */
#ifndef LEAT_STORE_CURL_H
#define LEAT_STORE_CURL_H

#include <curl/curl.h>

#include "store/settings.h"

/* Without the type checks, which call the functions by their names. */
#undef curl_easy_setopt
#undef curl_easy_getinfo
#undef curl_multi_setopt

#define LEAT_CURL_FUNCTIONS(X)                                                                                         \
	X(global_init)                                                                                                 \
	X(easy_init)                                                                                                   \
	X(easy_setopt)                                                                                                 \
	X(easy_getinfo)                                                                                                \
	X(easy_cleanup)                                                                                                \
	X(easy_send)                                                                                                   \
	X(easy_recv)                                                                                                   \
	X(easy_strerror) X(multi_init) X(multi_setopt) X(multi_add_handle) X(multi_remove_handle)                      \
		X(multi_socket_action) X(multi_info_read) X(multi_cleanup) X(easy_perform) X(slist_append)             \
			X(slist_free_all)

struct leat_curl {
#define LEAT_CURL_MEMBER(name) __typeof__(curl_##name) *name;
	LEAT_CURL_FUNCTIONS(LEAT_CURL_MEMBER)
#undef LEAT_CURL_MEMBER
};

/* NULL: there is no libcurl on this system; `err` says how to get it. Never unloaded. */
const struct leat_curl *leat_curl_load(struct leat_err *err);
/* Certificates and proxy. */
void leat_curl_set_way(const struct leat_curl *curl, CURL *easy, const struct leat_storage *storage);

#endif
