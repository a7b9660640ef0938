/* SPDX-License-Identifier: MIT. nvtx_name.h: what ranges and marks are called, and the handles of
 * strings and domains. The files of this folder include it. [any], all of it. */
#ifndef PROTOND_NVTX_NAME_H
#define PROTOND_NVTX_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent.h"

enum message_type { MESSAGE_NONE = 0, MESSAGE_ASCII = 1, MESSAGE_WIDE = 2, MESSAGE_REGISTERED = 3 };

/* What a range is called: the name's id, and where its values are to be read. */
struct title {
	uint32_t name;
	int32_t type; /* enum message_type; MESSAGE_NONE: there are no values */
	const void *message;
};

void nvtx_names_begin(const struct protond_host *host); /* before all others */

struct title nvtx_title(const void *domain, int32_t type, const void *message);
/* The values in it become properties of where the thread stands; context: or there. */
void nvtx_title_give(struct pd_thread *t, const struct title *title, uint64_t context);
/* A pass of XLA's compiler: all of them are one name. */
bool nvtx_is_pass(uint32_t name);

const void *nvtx_string(const void *domain, int32_t type, const void *text);
/* The id of a registered string's text; 0: none of ours. */
uint32_t nvtx_string_text(const void *handle);

const void *nvtx_domain(int32_t type, const void *text);
bool nvtx_is_out(const void *domain); /* Not one of PROTOND_NVTX_DOMAINS. NULL: the default one. */

/* What a domain's category is called from now on: nvtx_plain(). False: there is no room. */
bool nvtx_category_put(const void *domain, uint32_t category, uint32_t name);
uint32_t nvtx_category(const void *domain, uint32_t category); /* 0: it has no name */

/* A name that stands by itself, of a thread or the like. */
uint32_t nvtx_plain(int32_t type, const void *text);
/* A property's text as a name's id. There is room for so many different ones; 0: no more. */
uint32_t nvtx_text(const char *s, size_t n);

#endif
