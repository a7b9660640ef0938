/* SPDX-License-Identifier: MIT. loss.h: nothing is lost silently. */
#ifndef PROTOND_LOSS_H
#define PROTOND_LOSS_H

#include <stdbool.h>
#include <stdint.h>

#include "loss_terms.h"
#include "notes.h"

struct j_drop;
struct part;
struct process;
struct rec_lost;
struct ring_counts;
struct session;

void loss_bad(struct process *p, uint64_t n);
/* So many events of that process, or nanoseconds, cannot be, or it said such a thing before: nothing
 * that it counts is believed any more. */
bool loss_is_forged(struct process *p, uint64_t n);
void loss_now(struct process *p, enum lost_cause cause, uint64_t n);
void loss_part(struct part *part, enum lost_cause cause, uint64_t n);
/* The journal had these bytes of a lane's records, and lost them; whatever it was that they said was
 * done after since_ns. */
void loss_journal(struct process *p, uint64_t bytes, uint64_t since_ns);
void loss_told(struct process *p, uint32_t lane, const struct rec_lost *r);
void loss_counts(
	struct process *p, const struct ring_counts *c, const struct j_drop *d, uint32_t n);
/* A SESSION record: `bytes` behind struct rec_session, the counts as of it; then what it says is
 * done, for which loss_switched() is called; then loss_cut_end(). */
void loss_cut(struct process *p, const uint8_t *counts, uint32_t bytes);
void loss_cut_end(struct process *p);
void loss_switched(struct part *part, bool opened);
/* What an older agent's counters say and no record: once all records before it are applied. */
void loss_rest(struct process *p);

void note_count(struct part *part, enum note_kind kind, uint64_t n);
void note_add(struct session *s, int64_t process, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
const char *note_words(enum note_kind kind);

#endif
