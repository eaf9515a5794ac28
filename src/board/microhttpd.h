/* microhttpd.h - libmicrohttpd, loaded when a board is opened, so that nothing else of Leat needs it
 *
 * Threads: any. */
#ifndef LEAT_BOARD_MICROHTTPD_H
#define LEAT_BOARD_MICROHTTPD_H

#include <microhttpd.h>

#include "base/err.h"

#define LEAT_MHD_FUNCTIONS(X)                                                                                          \
	X(start_daemon)                                                                                                \
	X(stop_daemon)                                                                                                 \
	X(queue_response)                                                                                              \
	X(create_response_from_buffer)                                                                                 \
	X(create_response_from_callback)                                                                               \
	X(create_response_from_fd_at_offset64) X(add_response_header) X(destroy_response) X(lookup_connection_value)

struct leat_mhd {
#define LEAT_MHD_MEMBER(name) __typeof__(MHD_##name) *name;
	LEAT_MHD_FUNCTIONS(LEAT_MHD_MEMBER)
#undef LEAT_MHD_MEMBER
};

/* NULL: there is no libmicrohttpd on this system; `err` says how to get it. Never unloaded. */
const struct leat_mhd *leat_mhd_load(struct leat_err *err);

#endif
