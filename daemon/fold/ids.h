/* SPDX-License-Identifier: MIT. ids.h: what the ids of a ring mean. */
#ifndef PROTOND_IDS_H
#define PROTOND_IDS_H

#include <stdint.h>

#include "process.h"

struct j_table;

void process_table(struct process *p, const struct j_table *t, const uint8_t *bytes, uint32_t n);
uint32_t table_surplus(struct process *p, enum lost_cause cause, uint32_t id, uint32_t told);

/* The id, (other) for what there was no room for, counted, or TABLE_NONE: the tables never had it.
 */
/* The id, (other) for what there was no room for, counted, or TABLE_NONE: the tables never had it.
 */
static inline uint32_t table_path(struct process *p, uint32_t path)
{
	if (__builtin_expect(path < p->n_paths && !p->path[path].surplus, 1))
		return path;
	return table_surplus(p, LOST_PATHS, path, p->told_paths);
}

static inline uint32_t table_name(struct process *p, uint32_t name)
{
	if (__builtin_expect(name < p->n_names, 1))
		return name;
	return table_surplus(p, LOST_NAMES, name, p->told_names);
}

#endif
