/* SPDX-License-Identifier: MIT. web_listen.h: a socket that a page is served on: of an address of this
 * machine, or in a file. */
#ifndef PROTOND_WEB_WEB_LISTEN_H
#define PROTOND_WEB_WEB_LISTEN_H

#include <stdbool.h>
#include <stdint.h>

#include "err.h"

#define WEB_PATH 108u /* sun_path, with its NUL */

struct web_listener {
	uint32_t port;   /* the first to be tried, 0: any; then the one that it has */
	bool port_fixed; /* that one or none; else the next of fifty that is free */
	int fd;
	char path[WEB_PATH]; /* "": it is a port */
};

/* to: "127.0.0.1", "::", "unix:PATH". backlog: connections that may wait. -errno with words. */
int web_listen(const char *to, uint32_t backlog, struct web_listener *l, struct err *e);

#endif
