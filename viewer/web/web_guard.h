/* SPDX-License-Identifier: MIT. web_guard.h: who may ask: whoever has the token, from a page of our
 * own, by a name that is ours. Pure but for the random numbers. */
#ifndef PROTOND_WEB_WEB_GUARD_H
#define PROTOND_WEB_WEB_GUARD_H

#include <stdbool.h>
#include <stdint.h>

#include "err.h"

#define GUARD_NAMES_MAX 16u
#define GUARD_TOKEN     33u

struct guard {
	char token[GUARD_TOKEN]; /* in the address that is printed */
	char value[GUARD_TOKEN]; /* of the cookie, which the token is traded for */
	char cookie[32];         /* its name: cookies do not know ports */
	char name[GUARD_NAMES_MAX][256];
	uint32_t n;
};

/* bind: the address that is listened on; allow: "a,b" or NULL. -EINVAL, -errno with words. */
int guard_init(struct guard *g, const char *bind, const char *allow, uint32_t port, struct err *e);
/* "localhost:8051", "[::1]". Another site whose name leads here (DNS rebinding) is not ours. */
bool guard_host(const struct guard *g, const char *host);
/* Of a request that a page made: "http://localhost:8051". NULL: there is none. */
bool guard_origin(const struct guard *g, const char *origin);
/* In the same time, whatever differs. */
bool guard_same(const char *secret, const char *given);

#endif
