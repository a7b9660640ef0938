/* SPDX-License-Identifier: MIT. web_http.h: libmicrohttpd, loaded when there is a page to serve: eight
 * libraries of TLS come along, which took 12 ms of each start of a tool that starts in 4. For
 * web_*.c. */
#ifndef PROTOND_WEB_WEB_HTTP_H
#define PROTOND_WEB_WEB_HTTP_H

#include <microhttpd.h>

#include "err.h"

/* clang-format off */
#define HTTP_FUNCTIONS(X) \
	X(add_response_header) \
	X(create_response_from_buffer) \
	X(create_response_from_buffer_with_free_callback_cls) \
	X(create_response_from_callback) \
	X(create_response_from_fd64) \
	X(destroy_response) \
	X(get_daemon_info) \
	X(get_timeout) \
	X(lookup_connection_value) \
	X(queue_response) \
	X(resume_connection) \
	X(run) \
	X(set_connection_option) \
	X(start_daemon) \
	X(stop_daemon) \
	X(suspend_connection)
/* clang-format on */

struct web_http {
#define X(name) __typeof__(MHD_##name) *name;
	HTTP_FUNCTIONS(X)
#undef X
};
extern struct web_http http; /* set by web_http_load(), once */

int web_http_load(struct err *e); /* -ENOENT with words: it is not installed */

#endif
