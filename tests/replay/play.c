/* SPDX-License-Identifier: MIT. play.c: plays a raw dump's callbacks and buffers in recorded order.
 *
 * Each recorded thread is a thread here; the player hands every callback to its thread and waits,
 * so that the order is the recorded one. A buffer that came by itself is delivered at its place.
 * One that a FlushAll returned is held until the agent under test flushes: FlushAll(0) gives what
 * FlushAll(0) gave, the rest only FlushAll(1). When too much is held the player waits for the
 * agent.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpu_terms.h"
#include "replay.h"
#include "stub.h"

#define HELD_MAX   8u
#define WAIT_S     10
#define WRAP_BY    0xfffffff0u
#define DROP_EVERY 10u
#define ZERO_EVERY 7u
#define HOARD_MAX  4096u
#define POOL_BYTES (1u << 20) /* of the real buffers of the agent */
#define FAULT_KIND 63u
#define WAITS_MAX  4096u /* calls that waited, whose times are known */

struct held {
	struct held *next;
	uint8_t *bytes;
	size_t n;
	bool forced;
};

struct player {
	pthread_t thread;
	uint32_t number;
	const struct dump_item *todo; /* NULL: idle */
	bool end, started;
	struct dump_step open[DUMP_LEVELS_MAX];
	uint32_t n_open;
	uint64_t correlation_data;
};

static struct {
	struct held *first, **last; /* buffers that wait for a flush */
	uint32_t n_held;
	const struct replay_ops *ops;
	struct player *player;
	const char *fault;
	struct replay_told told;
	uint64_t seen; /* records, for the faults */
	bool in_flush;
	uint64_t called_ns[1 << 16]; /* CLOCK_REALTIME, by the low bits of the correlation id */
	bool live;                   /* PD_REPLAY_LIVE */
	struct {
		uint64_t begin_ns, end_ns;
	} wait[WAITS_MAX];
	uint32_t n_waits;
} play;

struct params { /* of a call, where it has them; 0 is no class */
	uint8_t class, stream, event;
};
/* clang-format off */
#define X(name, number, class, stream, event) [number] = {CLASS_##class, stream, event},
static const struct params of_driver[CBID_MAX] = {DRIVER_CALL_CBIDS(X)};
static const struct params of_runtime[CBID_MAX] = {RUNTIME_CALL_CBIDS(X)};
#undef X
static const bool blocks[CBID_MAX] = {
#define X(name, number) [number] = true,
	BLOCKING_COPY_CBIDS(X)
#undef X
};
/* clang-format on */

static bool fault(const char *which)
{
	return play.fault != NULL && strcmp(play.fault, which) == 0;
}

static uint32_t shifted(uint32_t correlation)
{
	return fault("wrap") && correlation != 0 ? correlation + WRAP_BY : correlation;
}

/* --- buffers --- */

static uint32_t stride_at(const uint8_t *p)
{
	uint32_t kind;

	memcpy(&kind, p, sizeof(kind));
	kind &= ~KIND_INCOMPLETE;
	return kind < KIND_MAX ? stub.dump.header.stride[kind] : 0;
}

/* Bytes of whole records, at most `room`. */
static size_t records_in(const uint8_t *p, size_t n, size_t room, uint64_t *ret_records)
{
	size_t at = 0;
	uint32_t stride;

	*ret_records = 0;
	while (at + 8 <= n) {
		stride = stride_at(p + at);
		if (stride == 0) /* the rest cannot be stepped through: goes as it is, if it fits */
			return n <= room ? n : at;
		if (stride > n - at || at + stride > room)
			break;
		at += stride;
		(*ret_records)++;
	}
	return at;
}

/* Takes buffers and never gives them back, until the agent's pool is empty. */
static void hoard(void)
{
	size_t bytes, max;
	uint8_t *p;
	uint32_t k;

	for (k = 0; stub.request != NULL && k < HOARD_MAX; k++) {
		bytes = max = 0;
		stub.request(&p, &bytes, &max);
		if (bytes < POOL_BYTES) { /* a spare: that is what all get from now on */
			stub.complete(NULL, 0, p, bytes, 0);
			return;
		}
	}
}

static void deliver(const uint8_t *p, size_t n)
{
	uint64_t records;
	size_t room, part, max;
	uint8_t *to;

	if (fault("nullpool"))
		hoard();
	while (n > 0) {
		to = NULL;
		room = max = 0;
		stub.request(&to, &room, &max);
		part = to != NULL ? records_in(p, n, room, &records) : 0;
		if (part == 0)
			return;
		memcpy(to, p, part);
		stub.complete(NULL, 0, to, room, part);
		play.told.records += records;
		p += part;
		n -= part;
	}
}

/* Takes the first held buffer that a flush of this force returns. */
static struct held *take_held(bool force)
{
	struct held **at, *h;

	(void)pthread_mutex_lock(&stub.lock);
	for (at = &play.first; *at != NULL && (*at)->forced && !force; at = &(*at)->next)
		;
	h = *at;
	if (h != NULL) {
		*at = h->next;
		if (h->next == NULL)
			play.last = at;
		play.n_held -= !h->forced;
		(void)pthread_cond_broadcast(&stub.changed);
	}
	(void)pthread_mutex_unlock(&stub.lock);
	return h;
}

void play_flush(bool force)
{
	struct held *h;

	if (stub.request == NULL)
		return;
	if (stub.storms) {
		storm_flush(force);
		return;
	}
	while ((h = take_held(force)) != NULL) {
		deliver(h->bytes, h->n);
		free(h->bytes);
		free(h);
	}
}

/* Not longer than WAIT_S: a test that never flushes ends in wrong counts, not in a hang. */
static void hold(uint8_t *bytes, size_t n, bool forced)
{
	struct held *h = calloc(1, sizeof(*h));
	struct timespec until;
	int r = 0;

	if (h == NULL) {
		free(bytes);
		return;
	}
	*h = (struct held){.bytes = bytes, .n = n, .forced = forced};
	(void)clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += WAIT_S;
	(void)pthread_mutex_lock(&stub.lock);
	while (r == 0 && !forced && play.n_held >= HELD_MAX && !fault("destroyfirst"))
		r = pthread_cond_timedwait(&stub.changed, &stub.lock, &until);
	*play.last = h;
	play.last = &h->next;
	play.n_held += !forced;
	(void)pthread_mutex_unlock(&stub.lock);
}

static size_t correlation_at(const uint8_t *p)
{
	uint32_t kind;

	memcpy(&kind, p, sizeof(kind));
	switch (kind & ~KIND_INCOMPLETE) {
	case KIND_KERNEL:
	case KIND_CONCURRENT_KERNEL:
		return K_CORRELATION;
	case KIND_MEMCPY_PEER:
		return P_CORRELATION;
	default:
		return C_CORRELATION; /* KIND_MEMCPY, KIND_MEMSET */
	}
}

/* It counts where its own times are, not where its launch is: it ends now. */
static void play_overhead(uint8_t *p)
{
	struct timespec now;
	uint64_t start, end, ns;
	uint32_t corr;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	memcpy(&start, p + O_START, sizeof(start));
	memcpy(&end, p + O_END, sizeof(end));
	ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	start = ns - (end - start);
	memcpy(p + O_START, &start, sizeof(start));
	memcpy(p + O_END, &ns, sizeof(ns));
	if (stub.dump.header.stride[KIND_OVERHEAD] < O_CORRELATION_STRIDE)
		return;
	memcpy(&corr, p + O_CORRELATION, sizeof(corr));
	corr = shifted(corr);
	memcpy(p + O_CORRELATION, &corr, sizeof(corr));
}

static uint64_t real_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* With PD_REPLAY_LIVE: work ends in the middle of the first call that waits and comes back after it was
 * launched, whatever that waits for. */
static void play_live(uint8_t *p, uint32_t correlation)
{
	const uint64_t called = play.called_ns[correlation % (1 << 16)];
	uint64_t start, end;
	uint32_t i;

	for (i = 0; i < play.n_waits && play.wait[i].end_ns <= called; i++)
		;
	if (i == play.n_waits)
		return;
	start = play.wait[i].begin_ns > called ? play.wait[i].begin_ns : called;
	end = start + (play.wait[i].end_ns - start) / 2;
	start = called + (end - called) / 2;
	memcpy(p + K_START, &start, sizeof(start)); /* copies and sets have them there, too */
	memcpy(p + K_END, &end, sizeof(end));
}

/* What is allocated was so in its call, when that was played. */
static void play_memory(uint8_t *p, size_t time, size_t correlation)
{
	uint64_t ns;
	uint32_t corr;

	memcpy(&corr, p + correlation, sizeof(corr));
	ns = play.called_ns[corr % (1 << 16)];
	memcpy(p + time, &ns, sizeof(ns));
	corr = shifted(corr);
	memcpy(p + correlation, &corr, sizeof(corr));
}

/* One record with the faults done to it. False: leave it out. */
static bool spoil(uint8_t *p)
{
	uint32_t corr, kind;

	memcpy(&kind, p, sizeof(kind));
	if (kind == KIND_MEMORY) {
		play_memory(p, M_TIME, M_CORRELATION);
		return stub.kind[KIND_MEMORY];
	}
	if (kind == KIND_MEMORY_POOL) {
		play_memory(p, PO_TIME, PO_CORRELATION);
		return stub.kind[KIND_MEMORY_POOL];
	}
	if (kind == KIND_OVERHEAD) {
		play_overhead(p);
		return stub.kind[KIND_OVERHEAD];
	}
	play.seen++;
	memcpy(&corr, p + correlation_at(p), sizeof(corr));
	if (play.live)
		play_live(p, corr);
	corr = shifted(corr);
	memcpy(p + correlation_at(p), &corr, sizeof(corr));
	if (fault("zero") && play.seen % ZERO_EVERY == 0)
		memset(p + K_START, 0, 16);
	if (fault("drop") && play.seen % DROP_EVERY == 0) {
		(void)pthread_mutex_lock(&stub.lock);
		stub.dropped++;
		(void)pthread_mutex_unlock(&stub.lock);
		play.told.dropped++;
		return false;
	}
	return true;
}

/* The recorded bytes with pointers into our strings, and with faults. */
static size_t prepare(const struct dump_item *i, uint8_t *out)
{
	const struct dump_buffer *b = (const void *)i->bytes;
	const struct dump_fixup *f = dump_fixups(i);
	uint8_t *copy = malloc(b->valid + 8);
	const char *text;
	size_t at, n = 0;
	uint32_t k, stride;

	if (copy == NULL)
		return 0;
	memcpy(copy, dump_bytes(i), b->valid);
	for (k = 0; k < b->n_fixups; k++) {
		text = stub.dump.string[f[k].string];
		memcpy(copy + f[k].offset, &text, sizeof(text));
	}
	for (at = 0; at + 8 <= b->valid; at += stride) {
		stride = stride_at(copy + at);
		if (stride == 0 || stride > b->valid - at) {
			play.told.unwalked += b->valid - at;
			memcpy(out + n, copy + at, b->valid - at);
			n += b->valid - at;
			break;
		}
		if (!spoil(copy + at))
			continue;
		memcpy(out + n, copy + at, stride);
		n += stride;
	}
	free(copy);
	return n;
}

static void play_buffer(const struct dump_item *i)
{
	const struct dump_buffer *b = (const void *)i->bytes;
	uint32_t kind = FAULT_KIND;
	uint8_t *bytes = calloc(1, b->valid + 64);
	bool forced = b->forced != 0;
	size_t n = bytes != NULL ? prepare(i, bytes) : 0;

	if (fault("running") && n >= stub.dump.header.stride[KIND_CONCURRENT_KERNEL]) {
		memset(bytes + K_END, 0, 8); /* the first record of each buffer never ended */
		forced = true;
	}
	if (fault("unknown") && bytes != NULL) {
		memcpy(bytes + n, &kind, sizeof(kind));
		n += 64;
		play.told.unwalked += 64;
	}
	if (n == 0 || stub.request == NULL) {
		free(bytes);
		return;
	}
	if (play.in_flush || forced || fault("destroyfirst")) {
		hold(bytes, n, forced);
		return;
	}
	deliver(bytes, n);
	free(bytes);
}

/* --- callbacks --- */

static enum replay_step step_kind(const struct dump_step *s)
{
	return s->kind == STEP_STATE ? REPLAY_STATE : s->kind == STEP_OP ? REPLAY_OP : REPLAY_SCOPE;
}

static void leave(struct player *p, uint32_t keep)
{
	while (p->n_open > keep)
		play.ops->exit(play.ops->user, step_kind(&p->open[--p->n_open]));
}

/* Moves the thread to where the recorded one stood. A state or op stands last: scopes cannot be
 * entered below it, so it goes first. */
static void stand(struct player *p, const struct dump_step *want, uint32_t n)
{
	uint32_t same = 0;

	while (same < n && same < p->n_open && want[same].name == p->open[same].name &&
		want[same].kind == p->open[same].kind)
		same++;
	leave(p, same);
	for (; p->n_open < n; p->n_open++) {
		p->open[p->n_open] = want[p->n_open];
		play.ops->enter(play.ops->user, step_kind(&want[p->n_open]),
			stub.dump.string[want[p->n_open].name]);
	}
}

static void *handle_of(uint64_t id)
{
	return (void *)(uintptr_t)id;
}

static void call_resource(const struct dump_callback *c)
{
	struct cupti_graph g = {.graph = handle_of(c->graph),
		.node = handle_of(c->node),
		.original_node = handle_of(c->original),
		.exec = handle_of(c->exec)};
	struct cupti_resource r = {.descriptor = &g};

	stub.callback(stub.user, c->domain, c->cbid, &r);
}

/* A dump has no names of calls. */
static const char *function_of(uint32_t domain, uint32_t cbid)
{
	/* clang-format off */
	static const char *const driver[CBID_MAX] = {
#define X(name, number, ...) [number] = #name,
		LAUNCH_CBIDS(X) COPY_CBIDS(X) BATCH_CBIDS(X) SET_CBIDS(X) CAPTURE_CBIDS(X)
		DRIVER_CALL_CBIDS(X)
	};
	static const char *const runtime[CBID_MAX] = {RUNTIME_CALL_CBIDS(X)};
#undef X
	/* clang-format on */
	const char *name = domain == DOMAIN_DRIVER ? driver[cbid] : runtime[cbid];

	return name != NULL ? name : "";
}

static const struct params *params_of(const struct dump_callback *c)
{
	return c->domain == DOMAIN_RUNTIME ? &of_runtime[c->cbid] : &of_driver[c->cbid];
}

/* As the recorded call had them; a stream that is no default one by a handle of ours. */
static const void *params_put(const struct dump_callback *c, uint64_t params[2])
{
	const struct params *at = params_of(c);

	if ((c->flags & DUMP_PARAMS) == 0 || at->class == 0)
		return NULL;
	if (at->stream != NOT_THERE)
		params[at->stream / sizeof(*params)] = c->original <= STREAM_OF_THREAD
							       ? c->original
							       : STUB_STREAM(c->context, c->graph);
	if (at->event != NOT_THERE)
		params[at->event / sizeof(*params)] = c->node;
	return params;
}

static void call_driver(struct player *p, const struct dump_callback *c)
{
	uint64_t params[2] = {0};
	struct cupti_callback d = {.site = c->site,
		.function = function_of(c->domain, c->cbid),
		.params = params_put(c, params),
		.ret_value = &c->ret,
		.symbol = stub.dump.string != NULL ? stub.dump.string[c->symbol] : NULL,
		.context = handle_of(c->context),
		.context_uid = c->context,
		.correlation_data = &p->correlation_data,
		.correlation = shifted(c->correlation)};

	stub.callback(stub.user, c->domain, c->cbid, &d);
}

static void waited(const struct dump_callback *c)
{
	const uint8_t class = params_of(c)->class;

	if (play.n_waits < WAITS_MAX && (class == CLASS_STREAM_SYNC || class == CLASS_EVENT_SYNC ||
						class == CLASS_DEVICE_SYNC ||
						(c->domain == DOMAIN_DRIVER && blocks[c->cbid]))) {
		play.wait[play.n_waits].begin_ns = play.called_ns[c->correlation % (1 << 16)];
		play.wait[play.n_waits++].end_ns = real_ns();
	}
}

static void call(struct player *p, const struct dump_item *i)
{
	const struct dump_callback *c = (const void *)i->bytes;
	bool wanted;

	stand(p, dump_steps(i), c->n_path);
	if (c->site == SITE_ENTER)
		play.called_ns[c->correlation % (1 << 16)] = real_ns();
	else if (c->cbid < CBID_MAX && c->domain != DOMAIN_RESOURCE)
		waited(c);
	(void)pthread_mutex_lock(&stub.lock);
	wanted = stub.callback != NULL && c->domain < STUB_DOMAINS && c->cbid < CBID_MAX &&
		 stub.enabled[c->domain][c->cbid];
	play.told.callbacks++;
	play.told.skipped += !wanted;
	(void)pthread_mutex_unlock(&stub.lock);
	if (wanted && c->domain == DOMAIN_RESOURCE)
		call_resource(c);
	else if (wanted)
		call_driver(p, c);
}

static void *player_main(void *arg)
{
	struct player *p = arg;

	for (;;) {
		(void)pthread_mutex_lock(&stub.lock);
		while (p->todo == NULL && !p->end)
			(void)pthread_cond_wait(&stub.changed, &stub.lock);
		(void)pthread_mutex_unlock(&stub.lock);
		if (p->todo == NULL)
			break;
		call(p, p->todo);
		(void)pthread_mutex_lock(&stub.lock);
		p->todo = NULL;
		(void)pthread_cond_broadcast(&stub.changed);
		(void)pthread_mutex_unlock(&stub.lock);
	}
	leave(p, 0);
	return NULL;
}

static int play_callback(const struct dump_item *i)
{
	const struct dump_callback *c = (const void *)i->bytes;
	struct player *p = &play.player[c->thread];

	if (!p->started) {
		p->number = c->thread;
		if (pthread_create(&p->thread, NULL, player_main, p) != 0)
			return -EAGAIN;
		p->started = true;
	}
	(void)pthread_mutex_lock(&stub.lock);
	p->todo = i;
	(void)pthread_cond_broadcast(&stub.changed);
	while (p->todo != NULL)
		(void)pthread_cond_wait(&stub.changed, &stub.lock);
	(void)pthread_mutex_unlock(&stub.lock);
	return 0;
}

static void end_players(void)
{
	uint32_t k;

	for (k = 0; k < stub.dump.n_threads; k++) {
		if (!play.player[k].started)
			continue;
		(void)pthread_mutex_lock(&stub.lock);
		play.player[k].end = true;
		(void)pthread_cond_broadcast(&stub.changed);
		(void)pthread_mutex_unlock(&stub.lock);
		(void)pthread_join(play.player[k].thread, NULL);
		play.player[k].started = play.player[k].end = false;
	}
}

static int play_item(const struct dump_item *i)
{
	const struct dump_flush *f = (const void *)i->bytes;
	const struct dump_level *l = (const void *)i->bytes;

	switch (i->type) {
	case DUMP_CALLBACK:
		return play_callback(i);
	case DUMP_BUFFER:
		play_buffer(i);
		return 0;
	case DUMP_FLUSH:
		play.in_flush = f->begin != 0;
		return 0;
	case DUMP_LEVEL:
		if (l->level == 0)
			end_players();
		play.ops->level(play.ops->user, l->level);
		return 0;
	case DUMP_STRING:
	case DUMP_DEVICE:
	default:
		return 0;
	}
}

__attribute__((visibility("default"))) pd_replay_run_fn pd_replay_run;

int pd_replay_run(const struct replay_ops *ops, struct replay_told *ret)
{
	size_t i;
	int r;

	stub_load();
	if (stub.storms && stub.load_error == 0)
		return storm_run(ops, ret);
	r = stub.load_error;
	play.ops = ops;
	play.last = &play.first;
	play.fault = getenv("PD_REPLAY_FAULT");
	play.live = getenv("PD_REPLAY_LIVE") != NULL;
	play.player = calloc(stub.dump.n_threads + 1, sizeof(*play.player));
	if (r == 0 && play.player == NULL)
		r = -ENOMEM;
	for (i = 0; r == 0 && i < stub.dump.n_items; i++)
		r = play_item(&stub.dump.item[i]);
	if (play.player != NULL)
		end_players();
	free(play.player);
	play.player = NULL;
	*ret = play.told;
	return r;
}
