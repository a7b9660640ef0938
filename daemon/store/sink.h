/* SPDX-License-Identifier: MIT. sink.h: who gets what the fold collected. The SQLite store is the
 * first sink and must have everything: the journal is not forgotten before it has. Every other sink
 * gets the same batch by reference, from a queue that is bounded in batches and bytes, on a thread
 * of its own: it may be slow, hang or fail, and holds nobody up.
 *
 * What a queue has no room for, and what a sink fails to take, is lost to that sink: a gap, which
 * is said once when it begins, counted, and told to the sink with the next batch that it gets.
 *
 * CONTRACT (MUST): all of sinks_* on the loop thread; nothing is put after sinks_close(); a batch
 * that was put is nobody's to change.
 */
#ifndef PROTOND_STORE_SINK_H
#define PROTOND_STORE_SINK_H

#include <stdbool.h>
#include <stdint.h>

#include "batch.h"
#include "err.h"
#include "store.h"

#define SINKS_MAX 8u

/* Its functions run on its thread, one at a time; each may wait. Whole rows with absolute values:
 * what comes after a gap makes rows right again that come again, and says nothing of the others. */
struct sink {
	const char *name;
	int (*open)(void *arg, struct err *e); /* before the first batch; again after a failure */
	/* b is read-only, and there until put() returns; batch_ref() keeps it. lost: so many
	 * batches before it never came. On failure this one is lost, too. */
	int (*put)(void *arg, const struct batch *b, uint64_t lost, struct err *e);
	void (*close)(void *arg); /* after the last, where open() succeeded */
	void *arg;                /* the sink's own; it outlives a put() that never returns */
	uint32_t max_batches;     /* that wait; 0: 16 */
	uint64_t max_bytes;       /* of these; 0: 64 MiB */
};

/* How a sink does, for status and log. */
struct sink_state {
	const char *name;
	bool must_have;           /* the store */
	uint32_t queued;          /* batches; of the store calls, too */
	uint64_t queued_bytes;    /* of the store: 0, the commits count them */
	uint64_t put, gaps, lost; /* batches it took; gaps, and the batches lost in them */
	bool in_gap;
	struct err last; /* its last failure; code 0: none */
};

struct sinks;

/* A gap begins. On the loop thread. */
typedef void sink_say_fn(void *arg, const struct sink_state *s);

/* The store, which stays the caller's, and n others, which are copied. -ENOMEM, -EAGAIN. */
int sinks_open(struct store *store, const struct sink *sink, uint32_t n, sink_say_fn *say,
	void *arg, struct sinks **ret, struct err *e);
/* Takes *take (contents). done: as of store_submit(); it says nothing of the others. */
void sinks_put(struct sinks *s, struct batch *take, store_done_fn *done, void *arg);
/* The store first; returns how many there are. */
uint32_t sinks_state(struct sinks *s, struct sink_state *ret, uint32_t n);
/* Gives the others wait_ms altogether to take what waits for them; the rest is lost. One that still
 * is in put() then is left behind. The store is closed after it, by its owner. NULL is fine.
 * Returns how many were left behind. */
uint32_t sinks_close(struct sinks *s, uint32_t wait_ms);

#endif
