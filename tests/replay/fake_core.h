/* SPDX-License-Identifier: MIT. fake_core.h: the engine's core, small and slow, so that a backend
 * can be tested alone; and a join of what it wrote. */
#ifndef REPLAY_FAKE_CORE_H
#define REPLAY_FAKE_CORE_H

#include <stdint.h>
#include <stdio.h>

#include "../../agent/backend/agent.h"

void fake_enter(enum path_kind kind, const char *name); /* on the calling thread */
void fake_exit(void);
uint64_t fake_records(enum record_type type);
/* Sorted lines "path TAB count TAB total ns TAB untimed", as tests/replay/expected prints them. */
void fake_tree(FILE *to);
uint64_t fake_unanswered(void);       /* LAUNCH records without an activity record */
uint64_t fake_flagged(uint32_t flag); /* KERNEL records with this GPU_FLAG_ */
const struct ring_device *fake_devices(uint32_t *ret_n);
const char *fake_name(uint32_t id);
void fake_reset(void); /* records, counts and tables; threads must stand at the root */

#endif
