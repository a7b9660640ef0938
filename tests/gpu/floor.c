/* SPDX-License-Identifier: MIT. floor.c: the cheapest tool that CUPTI allows, to be measured
 * against.
 *
 * CUDA_INJECTION64_PATH=libfloor.so: kernel, copy and memset records on, a pool of prefaulted
 * buffers, a flush every 100 ms on a thread, buffers zeroed and given back unread. FLOOR_CALLBACK=1
 * adds an empty callback at driver launches. FLOOR_CUPTI names the library. No code of the agent in
 * it but its numbers of CUPTI.
 *
 * Loaded otherwise, it is switched: floor_on() (0: it is), floor_off(), and floor_is_gone() once a
 * call of the runtime has ended in which CUPTI was taken out of the process.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "../../agent/backend/cupti/cupti_abi.h"
#include "../../proto/abi/record.h"

#define BUFFERS 32u
#define BYTES   (1u << 20)

static struct cupti_api cupti;
static uint8_t *pool;
static _Atomic uint64_t stack; /* tag << 32 | index + 1, as the agent's */
static _Atomic uint32_t next[BUFFERS];
static _Atomic uint32_t done;
static _Atomic uint32_t length[BUFFERS];
static uint8_t spill[BYTES];
static _Atomic uint64_t spilled, buffers;
static void *subscriber;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of what follows */
static int on, leaving;

static void push(uint32_t i)
{
	uint64_t w = atomic_load(&stack);

	do
		atomic_store(&next[i], (uint32_t)w);
	while (!atomic_compare_exchange_weak(&stack, &w, ((w >> 32) + 1) << 32 | (i + 1)));
}

static void request(uint8_t **p, size_t *bytes, size_t *records)
{
	uint64_t w = atomic_load(&stack);

	*records = 0;
	*bytes = BYTES;
	while ((uint32_t)w != 0)
		if (atomic_compare_exchange_weak(&stack, &w,
			    ((w >> 32) + 1) << 32 | atomic_load(&next[(uint32_t)w - 1]))) {
			*p = pool + ((size_t)(uint32_t)w - 1) * BYTES;
			return;
		}
	atomic_fetch_add(&spilled, 1);
	*p = spill;
}

static void complete(void *context, uint32_t stream, uint8_t *p, size_t bytes, size_t valid)
{
	uint32_t i, head;

	(void)context;
	(void)stream;
	(void)bytes;
	if (p < pool || p >= pool + (size_t)BUFFERS * BYTES)
		return;
	i = (uint32_t)((size_t)(p - pool) / BYTES);
	atomic_store(&length[i], (uint32_t)valid);
	head = atomic_load(&done);
	do
		atomic_store(&next[i], head);
	while (!atomic_compare_exchange_weak(&done, &head, i + 1));
}

static void recycle(void)
{
	uint32_t i = atomic_exchange(&done, 0), after;

	for (; i != 0; i = after) {
		after = atomic_load(&next[i - 1]);
		memset(pool + ((size_t)i - 1) * BYTES, 0, atomic_load(&length[i - 1]));
		push(i - 1);
		atomic_fetch_add(&buffers, 1);
	}
}

static void *flusher(void *arg)
{
	const struct timespec t = {.tv_nsec = 100000000};

	for (;;) {
		(void)nanosleep(&t, NULL);
		(void)pthread_mutex_lock(&lock);
		if (on) {
			(void)cupti.flush_all(0);
			recycle();
		}
		(void)pthread_mutex_unlock(&lock);
	}
	return arg;
}

/* Nothing, but at the end of a call of the runtime that floor_off() waits for. */
static void on_call(void *user, uint32_t domain, uint32_t cbid, const void *d)
{
	(void)user;
	(void)cbid;
	if (domain != DOMAIN_RUNTIME || ((const struct cupti_callback *)d)->site != SITE_EXIT)
		return;
	(void)pthread_mutex_lock(&lock);
	if (leaving) {
		(void)cupti.unsubscribe(subscriber);
		(void)cupti.finalize();
		leaving = 0;
	}
	(void)pthread_mutex_unlock(&lock);
}

static int load(void)
{
	static const char *const names[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so"};
	const char *named = getenv("FLOOR_CUPTI");
	void *h = named != NULL ? dlopen(named, RTLD_NOW) : NULL, *p;
	size_t i;

	for (i = 0; h == NULL && i < sizeof(names) / sizeof(names[0]); i++)
		h = dlopen(names[i], RTLD_NOW | RTLD_NOLOAD);
	for (i = 0; h == NULL && i < sizeof(names) / sizeof(names[0]); i++)
		h = dlopen(names[i], RTLD_NOW);
	if (h == NULL)
		return 0;
#define X(field, symbol, required, params)   \
	p = dlsym(h, symbol);                \
	memcpy(&cupti.field, &p, sizeof(p)); \
	if ((required) && p == NULL)         \
		return 0;
	CUPTI_SYMBOLS(X)
#undef X
	return 1;
}

__attribute__((destructor)) static void tell(void)
{
	if (getenv("FLOOR_TELL") != NULL)
		(void)fprintf(stderr, "floor: %llu buffers, %llu requests without one\n",
			(unsigned long long)buffers, (unsigned long long)spilled);
}

static const uint32_t kinds[] = {KIND_MEMCPY, KIND_MEMSET, KIND_CONCURRENT_KERNEL};
#define N_KINDS (sizeof(kinds) / sizeof(kinds[0]))

/* Once. */
static int prepare(void)
{
	pthread_t thread;

	if (pool != NULL)
		return 1;
	if (!load())
		return 0;
	pool = mmap(NULL, (size_t)BUFFERS * BYTES, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (pool == MAP_FAILED)
		return 0;
	for (uint32_t i = 0; i < BUFFERS; i++)
		push(i);
	return pthread_create(&thread, NULL, flusher, NULL) == 0;
}

#define EXPORT __attribute__((visibility("default")))
EXPORT int floor_on(int callback);
EXPORT void floor_off(void);
EXPORT int floor_is_gone(void);
EXPORT int InitializeInjection(void);

int floor_on(int callback)
{
	uint8_t one = 1;
	size_t bytes = 1, i;
	int r;

	if (!prepare())
		return -1;
	r = cupti.subscribe(&subscriber, on_call, NULL);
	if (r != CUPTI_OK)
		return r;
	(void)cupti.set_attribute(ATTR_ZEROED_OUT, &bytes, &one);
	(void)cupti.set_attribute(ATTR_PER_THREAD, &bytes, &one);
	(void)cupti.register_buffers(request, complete);
	for (i = 0; i < N_KINDS; i++)
		(void)cupti.activity_enable(kinds[i]);
	if (callback) {
#define X(name, cbid, flags) (void)cupti.enable_callback(1, subscriber, DOMAIN_DRIVER, cbid);
		LAUNCH_CBIDS(X)
#undef X
	}
	(void)pthread_mutex_lock(&lock);
	on = 1;
	(void)pthread_mutex_unlock(&lock);
	return 0;
}

void floor_off(void)
{
	size_t i;

	for (i = 0; i < N_KINDS; i++)
		(void)cupti.activity_disable(kinds[i]);
	(void)pthread_mutex_lock(&lock);
	(void)cupti.flush_all(1);
	recycle();
	on = 0;
	leaving = 1;
	(void)pthread_mutex_unlock(&lock);
	(void)cupti.enable_domain(1, subscriber, DOMAIN_RUNTIME);
}

int floor_is_gone(void)
{
	int gone;

	(void)pthread_mutex_lock(&lock);
	gone = !on && !leaving;
	(void)pthread_mutex_unlock(&lock);
	return gone;
}

int InitializeInjection(void)
{
	if (floor_on(getenv("FLOOR_CALLBACK") != NULL) != 0)
		(void)fprintf(stderr, "floor: no CUPTI\n");
	return 1;
}
