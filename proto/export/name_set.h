/* SPDX-License-Identifier: MIT. name_set.h: names by number, each once, for formats that have a
 * table of them. Owns no text. */
#ifndef PROTOND_EXPORT_NAME_SET_H
#define PROTOND_EXPORT_NAME_SET_H

#include "table.h"

struct name_set { /* zero-initialised: empty */
	const char **name;
	uint32_t n, cap;
	struct table index;
};

/* Its number, from 0; TABLE_NONE: out of memory. A name that was chosen to collide may stand
 * twice. */
uint32_t name_set_add(struct name_set *s, const char *name);
void name_set_fini(struct name_set *s);

#endif
