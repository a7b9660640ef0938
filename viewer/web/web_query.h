/* SPDX-License-Identifier: MIT. web_query.h: what a page asks for: the path and the parameters of an
 * address, taken apart. Believes no byte. Pure. */
#ifndef PROTOND_WEB_QUERY_H
#define PROTOND_WEB_QUERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEB_URI_MAX    4096u
#define WEB_PARAMS_MAX 16u

struct web_query {
	char text[WEB_URI_MAX]; /* decoded, in place; what is below points into it */
	const char *path;       /* without the "/" in front */
	uint32_t n;
	struct {
		const char *key, *value;
	} param[WEB_PARAMS_MAX];
};

/* "/api/s/12/tree?phase=1". False: too long, too many parameters, a NUL or a broken %XX. */
bool web_query_parse(const char *uri, struct web_query *ret);
/* NULL: not given. */
const char *web_query_get(const struct web_query *q, const char *key);
/* *ret stays where it is not given; false: not a number, or beyond max. */
bool web_query_u64(const struct web_query *q, const char *key, uint64_t max, uint64_t *ret);

#endif
