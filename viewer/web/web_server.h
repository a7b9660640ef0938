/* SPDX-License-Identifier: MIT. web_server.h: the page and its answers over HTTP, to this user's own
 * browser: libmicrohttpd on a libuv loop. */
#ifndef PROTOND_WEB_WEB_SERVER_H
#define PROTOND_WEB_WEB_SERVER_H

#include "web_api.h"

struct web_server_options {
	const char *bind;  /* NULL: 127.0.0.1; an address, or "unix:PATH" */
	const char *allow; /* NULL, or further names that a browser may know it by: "a,b" */
	uint32_t port;     /* the first that is free from here on */
	bool port_fixed;   /* this one or none: somebody asked for it */
};

struct web_server; /* opaque: only web_server.c looks inside */

/* Listens. w: borrowed. -errno with words. */
int web_server_new(
	struct web *w, const struct web_server_options *o, struct web_server **ret, struct err *e);
/* Where it is: "http://127.0.0.1:8051/?token=…", or "unix:PATH". */
const char *web_server_url(const struct web_server *s);
uint32_t web_server_port(const struct web_server *s); /* 0: of a unix socket */
struct uv_loop_s *web_server_loop(struct web_server *s);
/* Until a signal ends it. */
int web_server_run(struct web_server *s, struct err *e);
void web_server_free(struct web_server *s); /* NULL is fine */

#endif
