/* SPDX-License-Identifier: MIT. cupti_state.h: the process's one CUPTI, and nothing that acts
 * on it. The files of agent/backend/cupti include it.
 *
 * [any], [agent] as in agent.h. [cupti]: on a thread of CUPTI's or wherever it calls its buffer
 * callbacks: no lock, malloc, system call or CUPTI call.
 *
 * The files stand in layers; each uses those before it: state, peek, find, load, name, graph, dump,
 * device, pool, walk, call, callback, cupti.
 */
#ifndef PROTOND_CUPTI_STATE_H
#define PROTOND_CUPTI_STATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent.h"
#include "cupti_abi.h"

enum cupti_level { LEVEL_NONE = 0, LEVEL_ARMED = 1, LEVEL_ON = 2 };

enum cupti_odd {
	ODD_DUMP = 1,  /* PROTOND_RAW_DUMP */
	ODD_QUEUE = 2, /* WANT_QUEUE: a LAUNCH is written when its call comes back */
	ODD_API = 4,   /* WANT_API: every call is a CALL record, launches too */
};

/* The process's one CUPTI. Written by the control verbs, which never run together, but for
 * captures, finalizing, module and failed, which callbacks write too. */
struct cupti {
	/* what each callback reads: one cache line */
	_Alignas(64) _Atomic uint32_t level; /* enum cupti_level */
	_Atomic uint32_t epoch;              /* subscriptions so far */
	_Atomic uint32_t
		module; /* modules unloaded so far: a name pointer is good within one value */
	_Atomic uint32_t finalizing;  /* enum finalize of cupti_callback.c */
	_Atomic int32_t captures;     /* open in the process, as far as seen */
	_Atomic uint8_t odd;          /* ODD_: not every callback is as usual */
	_Atomic bool waits;           /* WANT_SYNC */
	_Atomic bool allocs;          /* WANT_ALLOC */
	struct cupti_symbol *symbols; /* see cupti_name.c */

	struct cupti_api api;
	struct cuda_api cuda;
	uint32_t version;          /* cuptiGetVersion */
	uint32_t driver;           /* cuDriverGetVersion, 0 unknown */
	bool loaded, replay;       /* replay: the library is a stub that plays a recording */
	char path[256];            /* of the library */
	uint16_t stride[KIND_MAX]; /* bytes of a record of each kind; 0: unknown to the library */
	void *subscriber;
	_Atomic int32_t failed; /* CUPTI's fatal error, once */
};
extern struct cupti cupti __attribute__((visibility("hidden")));

static inline bool cupti_is_odd(uint8_t why)
{
	return (atomic_load_explicit(&cupti.odd, memory_order_relaxed) & why) != 0;
}

static inline void cupti_set_odd(uint8_t why, bool on)
{
	if (on)
		atomic_fetch_or_explicit(&cupti.odd, why, memory_order_relaxed);
	else
		atomic_fetch_and_explicit(&cupti.odd, (uint8_t)~why, memory_order_relaxed);
}

/* What CUPTI has filled and given back. */
struct cupti_buffer {
	uint8_t *bytes;
	uint64_t valid;
	uint64_t seq;    /* of the raw dump */
	uint32_t module; /* cupti.module when it was completed */
	bool forced;     /* completed while a forced flush ran */
};

#endif
