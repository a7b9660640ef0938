/* SPDX-License-Identifier: MIT. floor.c: the cheapest tool that CUPTI allows, to be measured
 * against.
 *
 * CUDA_INJECTION64_PATH=libfloor.so: kernel, copy and memset records on, a pool of prefaulted
 * buffers, a flush every 100 ms on a thread, buffers zeroed and given back unread. FLOOR_CALLBACK=1
 * adds an empty callback at driver launches. FLOOR_CUPTI names the library. No code of the agent in
 * it but its numbers of CUPTI.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "../../agent/backend/cupti_abi.h"
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
		(void)cupti.flush_all(0);
		recycle();
	}
	return arg;
}

static void nothing(void *user, uint32_t domain, uint32_t cbid, const void *d)
{
	(void)user;
	(void)domain;
	(void)cbid;
	(void)d;
}

static int load(void)
{
	static const char *const names[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so"};
	const char *named = getenv("FLOOR_CUPTI");
	void *h = named != NULL ? dlopen(named, RTLD_NOW) : NULL, *p;
	size_t i;

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

__attribute__((visibility("default"))) int InitializeInjection(void);

int InitializeInjection(void)
{
	static const uint32_t kinds[] = {KIND_MEMCPY, KIND_MEMSET, KIND_CONCURRENT_KERNEL};
	uint8_t one = 1;
	size_t bytes = 1, i;
	pthread_t thread;
	void *subscriber;

	if (!load() || cupti.subscribe(&subscriber, nothing, NULL) != CUPTI_OK) {
		(void)fprintf(stderr, "floor: no CUPTI\n");
		return 1;
	}
	pool = mmap(NULL, (size_t)BUFFERS * BYTES, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (pool == MAP_FAILED)
		return 1;
	for (i = 0; i < BUFFERS; i++)
		push((uint32_t)i);
	(void)cupti.set_attribute(ATTR_ZEROED_OUT, &bytes, &one);
	(void)cupti.set_attribute(ATTR_PER_THREAD, &bytes, &one);
	(void)cupti.register_buffers(request, complete);
	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		(void)cupti.activity_enable(kinds[i]);
	if (getenv("FLOOR_CALLBACK") != NULL) {
#define X(name, cbid, flags) (void)cupti.enable_callback(1, subscriber, DOMAIN_DRIVER, cbid);
		LAUNCH_CBIDS(X)
#undef X
	}
	(void)pthread_create(&thread, NULL, flusher, NULL);
	return 1;
}
