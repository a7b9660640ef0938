/* SPDX-License-Identifier: MIT. named.c: threads that the program gave a name, also before they have
 * a lane, and by others. So many are kept at a time; further ones have the system's name.
 *
 * GPUs, streams, contexts and events likewise: the agent's thread tells each recording of them. A handle
 * is looked up when it is named, for later it may be gone. */
#include "named.h"

#include <errno.h>
#include <stdatomic.h>

#include "agent.h"
#include "core.h"
#include "guard.h"
#include "intern.h"
#include "lane.h"
#include "registry.h"
#include "sync.h"

#define NAMED   64u
#define OBJECTS 64u

static struct {
	_Atomic uint32_t tid; /* 0: free */
	_Atomic uint32_t name;
} named[NAMED];

static struct object {
	uint64_t object;        /* gpu_terms.h, or NAMED_GPU */
	uint32_t ordinal, name; /* name: process-local */
	uint32_t told;          /* the recording that knows it; 0: none */
} objects[OBJECTS];
static _Atomic uint32_t n_objects; /* both are written under the lock of the tables */

const char *named_thread(uint32_t tid, uint32_t *ret_bytes)
{
	uint32_t name = 0;

	for (uint32_t i = 0; i < NAMED && name == 0; i++)
		if (atomic_load_explicit(&named[i].tid, memory_order_relaxed) == tid)
			name = atomic_load_explicit(&named[i].name, memory_order_relaxed);
	return name != 0 ? core.host->name(name, ret_bytes) : NULL;
}

void named_forget(uint32_t tid)
{
	for (uint32_t i = 0; i < NAMED; i++)
		if (atomic_load_explicit(&named[i].tid, memory_order_relaxed) == tid)
			atomic_store_explicit(&named[i].tid, 0, memory_order_relaxed);
}

/* Two at once may both find a place: the first one counts. */
static void keep(uint32_t tid, uint32_t name)
{
	uint32_t was;

	for (uint32_t i = 0; i < NAMED; i++) {
		was = atomic_load_explicit(&named[i].tid, memory_order_relaxed);
		if (was == 0)
			(void)atomic_compare_exchange_strong_explicit(&named[i].tid, &was, tid,
				memory_order_relaxed, memory_order_relaxed);
		if (was != 0 && was != tid)
			continue;
		atomic_store_explicit(&named[i].name, name, memory_order_relaxed);
		return;
	}
}

/* Of a thread that has a lane, and is the caller, from here on; of others, once they get one. */
void agent_thread_named(struct pd_thread *t, uint32_t tid, uint32_t name)
{
	const int e = errno;
	struct rec_thread r = {.tid = tid};
	struct lane *l;

	if (tid == 0 || name == 0)
		return;
	keep(tid, name);
	if (t == NULL || t->tid != tid || t->engine == NULL || (t->busy != 0 && !guard_heal(t)))
		return;
	guard_in(t);
	l = t->engine;
	l->name = table_name_of(name);
	r.hdr = REC_HDR(sizeof(r), REC_THREAD, 0, 0, l->name);
	r.clock = agent_clock();
	r.generation = atomic_load_explicit(&l->shared->generation, memory_order_relaxed);
	(void)lane_put(l, &r, sizeof(r));
	guard_out(t);
	errno = e;
}

/* False: there is no room. */
static bool keep_object(uint32_t ordinal, uint64_t object, uint32_t name)
{
	uint32_t n, i;
	sigset_t mask;

	agent_lock_tables(&mask);
	n = atomic_load_explicit(&n_objects, memory_order_relaxed);
	for (i = 0; i < n && (objects[i].ordinal != ordinal || objects[i].object != object); i++)
		;
	if (i < OBJECTS)
		objects[i] = (struct object){object, ordinal, name, 0};
	if (i == n && i < OBJECTS)
		atomic_store_explicit(&n_objects, n + 1, memory_order_relaxed);
	agent_unlock_tables(&mask);
	return i < OBJECTS;
}

void agent_gpu_named(struct pd_thread *t, uint32_t ordinal, uint64_t object, uint32_t name)
{
	const int e = errno;

	if (name != 0 && !keep_object(ordinal, object, name) && t != NULL)
		agent_lost(t, LOST_NVTX, 1);
	errno = e;
}

void agent_object_named(struct pd_thread *t, enum gpu_object what, void *handle, uint32_t name)
{
	const struct backend *b = registry_gpu();
	uint32_t ordinal;
	uint64_t object;

	if (b != NULL && b->object != NULL && b->object(what, handle, &ordinal, &object))
		agent_gpu_named(t, ordinal, object, name);
	else if (t != NULL)
		agent_lost(t, LOST_NVTX, 1);
}

void named_tell(void)
{
	const uint32_t n = atomic_load_explicit(&n_objects, memory_order_relaxed);
	struct rec_named r;
	sigset_t mask;
	bool tell;

	for (uint32_t i = 0; i < n; i++) {
		agent_lock_tables(&mask);
		tell = objects[i].told != HOT->generation;
		objects[i].told = HOT->generation;
		r = (struct rec_named){
			.ordinal = objects[i].ordinal, .stream = (uint32_t)objects[i].object};
		if (GPU_OBJECT(objects[i].object) != GPU_OBJECT_STREAM) {
			r.stream = NAMED_OBJECT;
			r.object = objects[i].object;
		}
		r.hdr = objects[i].name;
		agent_unlock_tables(&mask);
		if (!tell)
			continue;
		r.hdr = REC_HDR(sizeof(r), REC_NAMED, 0, 0, table_name_of((uint32_t)r.hdr));
		(void)agent_put_wait(&r, sizeof(r));
	}
}
