/* SPDX-License-Identifier: MIT. entry.h: entries on their way into journal and fold. For the loop.
 * Loop thread.
 *
 * An entry is staged, applied to the fold, and written with all others of its tick by one flush;
 * only then are jobs told that they have the room back, and clients answered.
 */
#ifndef PROTOND_DAEMON_ENTRY_H
#define PROTOND_DAEMON_ENTRY_H

#include <stdbool.h>
#include <stdint.h>

#include "owed.h"

struct daemon;
struct journal_entry;
struct poison;
struct rings;
struct turn;

struct entries {
	struct daemon *d;
	struct turn *turn;
	struct rings *rings;   /* who gets room back */
	struct poison *poison; /* mapped, or NULL */
	struct journal_entry
		*replayed;  /* entries made while the journal is not written to, or NULL */
	uint64_t staged;    /* bytes since the last flush */
	uint64_t put;       /* bytes since the start */
	struct owed owed;   /* of each user, that are not stored */
	uint64_t anchor_ns; /* when the last one was appended */
	bool begun;         /* entry_begin() was called, and not yet entry_end() */
	bool stuck;         /* a flush failed: nothing is drained until one works */
	bool adrift; /* the journal's directory is gone, and it has no place in the new one yet */
	bool stored; /* what could not be flushed is in a transaction: it is not to be flushed */
	bool saw_session; /* one may have changed a session since the sessions were looked at */
};

/* begin gives space for `bytes` of payload; end takes as many as were used, and applies it. While
 * s->replayed is set the journal is left out. -ENOSPC, -EMSGSIZE, -ENOMEM. */
int entry_begin(
	struct entries *s, uint16_t type, const uint8_t ring[16], uint32_t bytes, void **ret);
int entry_end(struct entries *s, uint32_t bytes);
int entry_put(struct entries *s, uint16_t type, const uint8_t ring[16], const void *payload,
	uint32_t bytes);
/* Writes what is staged; then heads may be told. False: not now (said once). */
bool entry_flush(struct entries *s);
void entry_unstage(struct entries *s); /* what is staged is stored: as if it were written */
void entry_anchor(struct entries *s, uint64_t at_most_every_ns);

#endif
