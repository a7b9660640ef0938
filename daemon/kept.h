/* SPDX-License-Identifier: MIT. kept.h: rings without a name, which systemd keeps for us while
 * there is no daemon. For the loop. Loop thread. */
#ifndef PROTOND_DAEMON_KEPT_H
#define PROTOND_DAEMON_KEPT_H

#include <stdbool.h>
#include <stdint.h>

struct ring;
struct rings;

void kept_offer(struct ring *r);    /* to systemd, unless it has it or may not have it */
void kept_again(struct rings *all); /* once a second: what could not be said before */
/* What systemd kept for us, at start: first all of it, then ring by ring, then the rest. */
int kept_receive(struct rings *all);                      /* -ENOMEM */
int kept_take(struct rings *all, const uint8_t uuid[16]); /* the caller's; -1: no further */
void kept_leave(struct rings *all);
void ring_files_remove(const struct ring *r);
/* The store has everything up to this position: ended rings and their files go. */
void rings_stored(struct rings *all, uint64_t position);

#endif
