/* SPDX-License-Identifier: MIT. web_perfetto.h: a timeline handed to Perfetto's public page, once: for protonview web
 * --perfetto. */
#ifndef PROTOND_WEB_WEB_PERFETTO_H
#define PROTOND_WEB_WEB_PERFETTO_H

#include <stdint.h>

#include "err.h"

#define PERFETTO_PORT \
	9001u /* that page's policy lets it ask 127.0.0.1:9001, and no other port of ours */
#define PERFETTO_PAGE "https://ui.perfetto.dev"

enum perfetto_reply {
	PERFETTO_GIVE = 200,
	PERFETTO_MAY = 204, /* a browser asks whether that page may ask */
	PERFETTO_STRANGER = 403,
	PERFETTO_NOTHING = 404,
	PERFETTO_METHOD = 405,
	PERFETTO_NAME = 421, /* another site's name that leads here */
};
/* Of the lines of a request, up to the empty one, NUL-terminated. Pure. */
enum perfetto_reply perfetto_reply_to(const char *head, const char *token);
/* Gives `bytes` of fd to the first of that page who has the token. `listener` is ours to close, as web_listen() opened it.
 * -ETIMEDOUT: nobody came. -errno with words. */
int perfetto_give(
	int listener, int fd, uint64_t bytes, const char *token, uint32_t seconds, struct err *e);

#endif
