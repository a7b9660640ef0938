/* SPDX-License-Identifier: MIT. storm.c: no recording: many threads that launch tiny kernels on many
 * streams of many GPUs, as fast as they can.
 *
 * PD_REPLAY_STORM="THREADS STREAMS GPUS LAUNCHES LAG RATE": each thread has STREAMS streams on each GPU and goes
 * round them, in a scope "worker". Each has an activity buffer of its own, as in CUPTI from 12.3 on, whose
 * records become whole when LAG more launches were made (half as many, or none, in other threads: so
 * buffers come out of order), or when all were. Full buffers come by themselves, the others with a
 * flush. RATE is launches a second of all threads; 0: as many as they can.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "stub.h"

#define THREADS_MAX 64u
#define GPUS_MAX    16u
#define CBID_LAUNCH 307u /* cuLaunchKernel */
#define KERNEL_NS   300u
#define LOOK_EVERY  64u /* launches of a thread between two looks at what is whole */

struct full {
	struct full *next;
	uint8_t *bytes;
	size_t room, n;
	uint64_t whole_at; /* so many launches */
};

struct thread {
	pthread_t thread;
	pthread_mutex_t lock; /* of its buffer */
	uint32_t number;
	uint8_t *bytes;
	size_t room, n;
	uint64_t last; /* the launch of its last record */
};

static struct {
	unsigned threads, streams, gpus;
	uint64_t launches, lag, rate, begin_ns;
	const struct replay_ops *ops;
	struct thread thread[THREADS_MAX];
	pthread_mutex_t lock; /* of the full ones */
	struct full *first;
	_Atomic uint64_t launched, records;
	_Atomic bool done;
} storm = {.lock = PTHREAD_MUTEX_INITIALIZER};

int storm_load(struct dump *d, const char *text)
{
	static struct ring_device device[GPUS_MAX];
	static struct dump_item item[GPUS_MAX];
	uint32_t i;

	if (sscanf(text, "%u %u %u %" SCNu64 " %" SCNu64 " %" SCNu64, &storm.threads,
		    &storm.streams, &storm.gpus, &storm.launches, &storm.lag, &storm.rate) != 6 ||
		storm.threads - 1 >= THREADS_MAX || storm.gpus - 1 >= GPUS_MAX ||
		storm.streams == 0)
		return -EINVAL;
	for (i = 0; i < storm.gpus; i++) {
		device[i] = (struct ring_device){.ordinal = i, .num_sms = 132, .arch = 90};
		(void)snprintf(device[i].name, sizeof(device[i].name), "storm");
		device[i].uuid[0] = (uint8_t)(i + 1);
		item[i] = (struct dump_item){.type = DUMP_DEVICE,
			.bytes = (const uint8_t *)&device[i],
			.n = sizeof(device[i])};
	}
	d->item = item;
	d->n_items = storm.gpus;
	return 0;
}

static uint64_t lag_of(const struct thread *t)
{
	return storm.lag * (t->number % 3) / 2;
}

static bool is_whole(uint64_t at)
{
	return atomic_load(&storm.done) || at <= atomic_load(&storm.launched);
}

static void complete(uint8_t *bytes, size_t room, size_t n)
{
	atomic_fetch_add(&storm.records, n / stub.dump.header.stride[KIND_CONCURRENT_KERNEL]);
	stub.complete(NULL, 0, bytes, room, n);
}

/* Those that are whole, or all. */
static void give_full(bool all)
{
	struct full **at, *f, *give = NULL;

	(void)pthread_mutex_lock(&storm.lock);
	for (at = &storm.first; *at != NULL;) {
		f = *at;
		if (!all && !is_whole(f->whole_at)) {
			at = &f->next;
			continue;
		}
		*at = f->next;
		f->next = give;
		give = f;
	}
	(void)pthread_mutex_unlock(&storm.lock);
	while (give != NULL) {
		f = give;
		give = f->next;
		complete(f->bytes, f->room, f->n);
		free(f);
	}
}

/* With the thread's lock. */
static void set_aside(struct thread *t)
{
	struct full *f = malloc(sizeof(*f));

	if (f == NULL)
		abort();
	*f = (struct full){
		.bytes = t->bytes, .room = t->room, .n = t->n, .whole_at = t->last + lag_of(t)};
	t->bytes = NULL;
	(void)pthread_mutex_lock(&storm.lock);
	f->next = storm.first;
	storm.first = f;
	(void)pthread_mutex_unlock(&storm.lock);
}

void storm_flush(bool force)
{
	uint32_t i;

	for (i = 0; i < storm.threads; i++) {
		struct thread *t = &storm.thread[i];

		(void)pthread_mutex_lock(&t->lock);
		if (t->bytes != NULL && t->n != 0 && (force || is_whole(t->last + lag_of(t))))
			set_aside(t);
		(void)pthread_mutex_unlock(&t->lock);
	}
	give_full(force);
}

static void put32(uint8_t *p, size_t at, uint32_t v)
{
	memcpy(p + at, &v, sizeof(v));
}

/* With the thread's lock: its next record. */
static uint8_t *record_of(struct thread *t)
{
	const size_t stride = stub.dump.header.stride[KIND_CONCURRENT_KERNEL];
	size_t max;

	if (t->bytes != NULL && t->n + stride > t->room)
		set_aside(t);
	if (t->bytes == NULL) {
		stub.request(&t->bytes, &t->room, &max);
		t->n = 0;
	}
	t->n += stride;
	return t->bytes + t->n - stride;
}

static void launch(struct thread *t, uint32_t i, uint64_t *data)
{
	static _Atomic uint32_t correlation;
	static const char name[] = "empty_kernel";
	const uint32_t gpu = i % storm.gpus, stream = i % (storm.streams * storm.gpus);
	const char *text = name;
	struct cupti_callback d = {.site = SITE_ENTER,
		.function = "cuLaunchKernel",
		.symbol = name,
		.context_uid = gpu + 1,
		.correlation_data = data,
		.correlation = atomic_fetch_add(&correlation, 1) + 1};
	struct timespec now;
	uint64_t ns;
	uint8_t *p;

	stub.callback(stub.user, DOMAIN_DRIVER, CBID_LAUNCH, &d);
	(void)clock_gettime(CLOCK_REALTIME, &now);
	ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	(void)pthread_mutex_lock(&t->lock);
	p = record_of(t);
	put32(p, 0, KIND_CONCURRENT_KERNEL);
	memcpy(p + K_START, &ns, sizeof(ns));
	ns += KERNEL_NS;
	memcpy(p + K_END, &ns, sizeof(ns));
	put32(p, K_DEVICE, gpu);
	put32(p, K_CONTEXT, gpu + 1);
	put32(p, K_STREAM, 13 + t->number * storm.streams * storm.gpus + stream);
	put32(p, K_CORRELATION, d.correlation);
	memcpy(p + K_NAME, &text, sizeof(text));
	t->last = atomic_fetch_add(&storm.launched, 1) + 1;
	(void)pthread_mutex_unlock(&t->lock);
	d.site = SITE_EXIT;
	stub.callback(stub.user, DOMAIN_DRIVER, CBID_LAUNCH, &d);
}

static uint64_t mono_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Until this thread's i-th launch is due. */
static void keep_pace(uint64_t i)
{
	const uint64_t due =
		storm.rate == 0 ? 0 : storm.begin_ns + i * storm.threads * 1000000000 / storm.rate;
	const struct timespec until = {
		.tv_sec = (time_t)(due / 1000000000), .tv_nsec = (long)(due % 1000000000)};

	if (due > mono_ns())
		(void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
}

static void *storm_main(void *arg)
{
	struct thread *t = arg;
	const uint64_t n =
		storm.launches / storm.threads + (t->number < storm.launches % storm.threads);
	uint64_t data = 0, i;

	storm.ops->enter(storm.ops->user, REPLAY_SCOPE, "worker");
	for (i = 0; i < n; i++) {
		launch(t, (uint32_t)i, &data);
		if (i % LOOK_EVERY == 0) {
			give_full(false);
			keep_pace(i);
		}
	}
	storm.ops->exit(storm.ops->user, REPLAY_SCOPE);
	return NULL;
}

int storm_run(const struct replay_ops *ops, struct replay_told *ret)
{
	uint32_t i;

	storm.ops = ops;
	storm.begin_ns = mono_ns();
	if (stub.callback == NULL || stub.request == NULL)
		return -ENOTCONN;
	for (i = 0; i < storm.threads; i++) {
		struct thread *t = &storm.thread[i];

		t->number = i;
		(void)pthread_mutex_init(&t->lock, NULL);
		if (pthread_create(&t->thread, NULL, storm_main, t) != 0)
			return -EAGAIN;
	}
	for (i = 0; i < storm.threads; i++)
		(void)pthread_join(storm.thread[i].thread, NULL);
	atomic_store(&storm.done, true);
	give_full(true);
	ret->callbacks = 2 * storm.launches;
	ret->records = atomic_load(&storm.records);
	return 0;
}
