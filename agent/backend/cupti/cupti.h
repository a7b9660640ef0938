/* SPDX-License-Identifier: MIT. cupti.h: what the files of the CUPTI backend share.
 *
 * [any], [agent] as in agent.h. [cupti]: on a thread of CUPTI's or wherever it calls its buffer
 * callbacks: no lock, malloc, system call or CUPTI call.
 */
#ifndef PROTOND_CUPTI_H
#define PROTOND_CUPTI_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent.h"
#include "cupti_abi.h"

enum cupti_level { LEVEL_NONE = 0, LEVEL_ARMED = 1, LEVEL_ON = 2 };

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
	_Atomic bool dumping;         /* PROTOND_RAW_DUMP */
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
extern struct cupti cupti;

/* --- cupti_load.c: which library, its functions, its strides ------------------------------------
 */

/* 0, or -errno and words. Once loaded stays loaded. */
int cupti_load(struct backend_error *e);
/* -errno and the words for a CUptiResult that a start ended with. */
int cupti_error(struct backend_error *e, int result, const char *call);
/* Fills `ret_stride` by asking next_record() of one library; 0 for what it does not know. */
void cupti_strides(int (*next)(uint8_t *, size_t, void **), uint16_t ret_stride[KIND_MAX]);

/* --- cupti_find.c: candidates for the library ---------------------------------------------------
 */

struct cupti_found {
	void *handle;
	char path[256];
	char tried[160]; /* where it was looked for, for people */
};
/* driver_major 0: unknown. 0, -ENOENT, or -ELIBBAD when the one asked for does not load. */
int cupti_find(uint32_t driver_major, struct cupti_found *ret);

/* --- cupti_device.c -----------------------------------------------------------------------------
 */

uint16_t cupti_device(uint32_t ordinal); /* [agent] index in the ring's device table */
void cupti_devices_ask(void); /* [agent] keeps the facts of all, once they are to be had */

/* --- cupti_name.c: names by pointer -------------------------------------------------------------
 */

#define SYMBOLS 16384u /* power of two */
struct cupti_symbol {
	_Atomic uintptr_t key;
	_Atomic uint64_t value; /* cupti.module << 32 | ring name; 0: not yet */
};
static inline uint32_t cupti_slot(uintptr_t key, uint32_t slots)
{
	return (uint32_t)((uint64_t)key * 0x9e3779b97f4a7c15ull >> 32) & (slots - 1);
}
uint32_t cupti_symbol(const char *symbol); /* [any] inside agent_enter(); valid now, in a launch */
/* [any] The same of one that was asked for before and stands in its own slot; else NAME_NONE. */
static inline uint32_t cupti_symbol_known(const char *symbol)
{
	const struct cupti_symbol *s = &cupti.symbols[cupti_slot((uintptr_t)symbol, SYMBOLS)];
	/* Acquire: an unload that this launch follows has moved it. */
	const uint32_t module = atomic_load_explicit(&cupti.module, memory_order_acquire);
	const uint64_t v = atomic_load_explicit(&s->value, memory_order_relaxed);

	if (atomic_load_explicit(&s->key, memory_order_relaxed) != (uintptr_t)symbol)
		return NAME_NONE;
	return v >> 32 == module ? (uint32_t)v : NAME_NONE;
}
uint32_t cupti_kernel_name(
	const char *name, uint32_t gen); /* [agent] gen: cupti.module at delivery */
/* [agent] Copies text that may be gone; bytes copied, 0 when unreadable. Ends in a NUL. */
size_t cupti_peek(const char *text, char *buf, size_t bytes);
int cupti_name_init(void);

/* --- cupti_callback.c: what the application's threads run ---------------------------------------
 */

cupti_callback_fn cupti_on_callback; /* [any] */
/* The callbacks of a level; from LEVEL_ON, for a new subscriber. */
void cupti_enable(enum cupti_level from, enum cupti_level to);
/* Unsubscribe and finalize at the end of an API call, as CUPTI wants it. False: no call came within
 * timeout_ms, and the subscriber is still there, to be unsubscribed. */
bool cupti_finalize_in_call(uint32_t timeout_ms);

/* --- cupti_graph.c: graph nodes and the paths they were captured under ---------------------------
 */

int cupti_graph_init(void);
void cupti_node_created(uint64_t node, uint32_t graph, uint32_t path);    /* [any] */
void cupti_node_cloned(uint64_t node, uint64_t original, uint32_t graph); /* [any] */
void cupti_node_gone(uint64_t node);                                      /* [any] */
void cupti_graph_gone(uint32_t graph);                                    /* [any] */
uint32_t cupti_node_path(uint64_t node); /* [agent] PATH_ROOT: unknown */
/* [agent] Frees what was destroyed before the previous call, or, unless `idle`, 60 s ago. */
void cupti_graph_reap(bool idle);
void cupti_graph_clear(void);     /* nobody watches graphs any more: forget them all */
uint32_t cupti_graph_nodes(void); /* live */

/* --- cupti_pool.c: activity buffers --------------------------------------------------------------
 */

struct cupti_buffer {
	uint8_t *bytes;
	uint64_t valid;
	uint64_t seq;    /* of the raw dump */
	uint32_t module; /* cupti.module when it was completed */
	bool forced;     /* completed while a forced flush ran */
};
int cupti_pool_init(void);           /* prefaults; idempotent */
cupti_request_fn cupti_on_request;   /* [cupti] */
cupti_complete_fn cupti_on_complete; /* [cupti] */
void cupti_pool_forcing(bool on);
/* [agent] Calls walk() on each completed buffer, oldest first, then zeroes and returns it. */
uint64_t cupti_pool_drain(uint64_t (*walk)(const struct cupti_buffer *));
void cupti_pool_grow(void);    /* [agent] makes more buffers when half of them are out */
bool cupti_pool_pressed(void); /* [agent] half of them are out and none can be made */
void cupti_pool_idle(void);    /* gives the memory back; while unsubscribed */

/* --- cupti_walk.c: activity records --------------------------------------------------------------
 */

uint64_t cupti_walk(const struct cupti_buffer *b); /* [agent] records written */
uint64_t cupti_delivered(void);                    /* first records so far */
void cupti_walk_reset(void);                       /* a new epoch */

/* --- cupti_path.c: a path read back (tests with a core of their own bring their own) -------------
 */

struct cupti_step {
	uint32_t parent, kind; /* kind: enum path_kind */
	const char *text;
	uint32_t bytes;
};
bool cupti_path_step(uint32_t path, struct cupti_step *ret); /* false: PATH_ROOT */

/* --- cupti_dump.c: PROTOND_RAW_DUMP
 * --------------------------------------------------------------- */

void cupti_dump_init(void);
uint64_t cupti_dump_seq(void); /* [any] */
struct cupti_dump_ids {
	uint64_t node, original;
	uint32_t graph, exec;
};
void cupti_dump_callback(uint32_t domain, uint32_t cbid, const struct cupti_callback *d,
	const struct cupti_dump_ids *g);              /* [any]; d or g may be NULL */
void cupti_dump_buffer(const struct cupti_buffer *b); /* [agent] */
void cupti_dump_flush(bool force, bool begin);        /* [agent] */
void cupti_dump_level(enum cupti_level level);
void cupti_dump_device(const struct ring_device *d); /* [agent] */
void cupti_dump_sync(void);                          /* what is buffered goes to the file */

#endif
