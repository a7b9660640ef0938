/* SPDX-License-Identifier: MIT. cupti_path.c: a ring path read back as text, for the raw dump.
 * Reads the engine's own tables; entries never change once their id is out. Any thread. */
#include "core.h"
#include "cupti.h"

bool cupti_path_step(uint32_t path, struct cupti_step *ret)
{
	const unsigned char *base = (const unsigned char *)core.header;
	const struct ring_path *p;
	const struct ring_name *n;

	if (base == NULL || path == PATH_ROOT || path >= core.header->path_cap)
		return false;
	p = (const struct ring_path *)(const void *)(base + core.at.paths) + path;
	n = (const struct ring_name *)(const void *)(base + core.at.names) + p->name;
	*ret = (struct cupti_step){.parent = p->parent,
		.kind = p->kind,
		.text = (const char *)base + core.at.bytes + n->offset,
		.bytes = n->bytes};
	return true;
}
