/* SPDX-License-Identifier: MIT. inject.c: the doors by which CUDA and NVTX load this library
 * into programs that do not link it. In one that has another copy (a wheel's, say, and the variable
 * names an installed one) the call is handed on to that. */
#include "thread.h"

#include <string.h>

#include "futex.h"
#include "load.h"
#include "park.h"
#include "ring.h"

#define SETTLE_MS 2000u

PD_EXPORT int InitializeInjection(void);
PD_EXPORT int InitializeInjectionNvtx2(void *get_export_table);
PD_EXPORT int InitializeInjectionNvtxExtension(void *module);

/* Until `flag` is `to`, for a while. */
static void settle(const _Atomic bool *flag, bool to)
{
	const uint64_t deadline = pd_now_ms() + SETTLE_MS;

	for (;;) {
		/* acquire: pairs with the release in pd_changed() */
		const uint32_t was = atomic_load_explicit(&pd.change, memory_order_acquire);

		if (atomic_load(flag) == to || pd_now_ms() >= deadline)
			return;
		pd_wait(&pd.change, was, deadline);
	}
}

/* PROTOND_GPU=armed or on: what is captured or launched next must find CUPTI subscribed. */
static bool wants_gpu(void)
{
	bool yes;

	pd_lock(&pd.lock);
	yes = strcmp(pd.env.gpu, "armed") == 0 || strcmp(pd.env.gpu, "on") == 0;
	pd_unlock(&pd.lock);
	return yes;
}

/* Called by libcuda inside cuInit(). CUPTI is subscribed here, on this thread: another one might
 * have to wait for what cuInit() holds. From now on GPU wishes need not wait for us. */
PD_EXPORT int InitializeInjection(void)
{
	const int saved = errno;
	const struct protond_engine *e;
	const bool awake = pd_thread_here() != NULL; /* and second is known */
	uint32_t want;
	void *first = pd.second ? pd_first(__func__) : NULL;
	int (*fn)(void);

	if (first != NULL) {
		memcpy(&fn, &first, sizeof(fn));
		errno = saved;
		return fn();
	}
	if (!awake || pd.inert)
		return 1;
	if (pd.has_token || wants_gpu())
		settle(&pd.settled, true);
	e = atomic_load_explicit(&HOT->engine, memory_order_acquire);
	want = atomic_load(&pd.full_want);
	if (e != NULL && (want & (WANT_GPU | WANT_GPU_ARMED)) != 0)
		(void)e->want(want);
	atomic_store(&pd.injected, true);
	pd_ring();
	settle(&pd.held, false); /* what was kept back for us holds, and the gate is up */
	errno = saved;
	return 1;
}

/* Of NVTX. The slots stay ours for good, so the engine must be there also while nothing is recorded;
 * its ring is not made before something is. */
static int nvtx_door(const char *door, void *table, bool extension)
{
	const int saved = errno;
	const struct protond_engine *e;
	const bool awake = pd_thread_here() != NULL;
	char text[PD_TEXT];
	void *first = pd.second ? pd_first(door) : NULL;
	int (*fn)(void *), ok = 0;

	if (first != NULL) {
		memcpy(&fn, &first, sizeof(fn));
		errno = saved;
		return fn(table);
	}
	if (awake && !pd.inert) {
		e = pd_engine_load(text);
		if (e != NULL) {
			e->host(&pd_host);
			ok = (extension ? e->nvtx_extension(table) : e->nvtx(table)) != 0;
		}
	}
	errno = saved;
	return ok;
}

/* Called at a program's first NVTX call. */
PD_EXPORT int InitializeInjectionNvtx2(void *get_export_table)
{
	return nvtx_door(__func__, get_export_table, false);
}

/* Called at a program's first call of an NVTX extension, for each one; after the other. */
PD_EXPORT int InitializeInjectionNvtxExtension(void *module)
{
	return nvtx_door(__func__, module, true);
}
