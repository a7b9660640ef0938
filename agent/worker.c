/* SPDX-License-Identifier: MIT. worker.c: the agent's own thread: it brings finished GPU work into
 * the ring, says since when all is delivered, and ties the ring clock to the world's once a second.
 *
 * It sleeps for ever while nothing is recorded. All that touches the backend or the agent's lane is
 * done inside worker_in() and worker_out(), by this thread or by libprotond's.
 *
 * A flush every flush_ms. Behind one unfinished kernel an ordinary flush may hold back everything
 * that finished after it; so after stall_ms without a delivery while launches are pending one
 * forced flush is made. Only one: what it returns unfinished is never returned again.
 */
#include "worker.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "agent.h"
#include "clock.h"
#include "lane.h"
#include "named.h"
#include "proxy.h"
#include "ring_file.h"
#include "sampler.h"
#include "sync.h"

#define FLUSH_MS     100u
#define STALL_MS     30000u
#define CLOCK_MS     1000
#define EXIT_MS      2000u
#define FLUSH_NAP_MS 2
#define SAMPLER_MS   100u
#define NS_PER_MS    1000000ull
/* A graph's launch is known to be complete when so many flushes have brought nothing more of it:
 * GRAPH_ROUNDS of the daemon. */
#define GRAPH_FLUSHES 2u

static struct {
	uint64_t clock_at;     /* when the last CLOCK was written */
	uint64_t delivered_at; /* when a flush last brought something, or nothing was pending */
	uint64_t trimmed_at;   /* when memory was last given back */
	bool trims;            /* there may be more */
	bool stalled;          /* the forced flush of this stall was made */
	uint64_t flushed_at;   /* when the last flush began */
	uint32_t tid;
} state;

/* --- inside ----------------------------------------------------------------------------------- */

bool worker_in(uint32_t timeout_ms)
{
	if (!agent_lock_for(&core.backend_lock, timeout_ms))
		return false;
	if (core.agent == NULL) {
		void *l = NULL;

		lane_claim(state.tid, false, &l);
		core.agent = l;
	}
	agent_on_backend = true;
	agent_self = NULL;
	return true;
}

void worker_out(void)
{
	agent_on_backend = false;
	agent_unlock(&core.backend_lock);
}

void worker_clock(void)
{
	struct rec_clock r;

	agent_clock_record(&r);
	if (core.agent != NULL)
		(void)lane_put(core.agent, &r, sizeof(r));
	state.clock_at = agent_monotonic_ns();
}

static uint32_t epoch_now(void)
{
	return core.backend->epoch != NULL ? core.backend->epoch() : core.epoch;
}

void worker_delivered(bool force)
{
	const struct backend *b = core.backend;
	/* before the flush: what finished until now is in it */
	struct rec_delivered r = {.clock = agent_clock()};
	const uint64_t n = b->flush(force);

	r.pending = b->pending();
	r.hdr = REC_HDR(sizeof(r), REC_DELIVERED, 0, 0, epoch_now());
	if (n != 0 || r.pending == 0) {
		state.delivered_at = agent_monotonic_ns();
		state.stalled = false;
	}
	(void)agent_put_wait(&r, sizeof(r));
}

static bool gpu_is(enum gpu_state s)
{
	return atomic_load_explicit(&core.gpu, memory_order_relaxed) == (uint32_t)s;
}

static void flush_round(void)
{
	uint64_t now;

	state.flushed_at = agent_monotonic_ns();
	worker_delivered(false);
	now = agent_monotonic_ns();
	if (state.stalled || now - state.delivered_at < core.stall_ms * NS_PER_MS)
		return;
	state.stalled = true;
	worker_delivered(true);
}

static void own_time(void)
{
	struct timespec ts;

	if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts) == 0)
		atomic_store_explicit(&core.counts->agent_ns,
			(uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec + sampler_ns(),
			memory_order_relaxed);
}

/* Between flushes: a full buffer came. A flush each time would cost the job. */
static void drain_round(void)
{
	if (core.backend->drain == NULL || core.backend->drain() == 0)
		return;
	state.delivered_at = agent_monotonic_ns();
	state.stalled = false;
}

static int64_t left_ms(uint64_t until)
{
	const uint64_t now = agent_monotonic_ns();

	return now >= until ? 0 : (int64_t)((until - now) / NS_PER_MS + 1);
}

/* --- the thread ------------------------------------------------------------------------------- */

static uint64_t since_flush_ms(void)
{
	return (agent_monotonic_ns() - state.flushed_at) / NS_PER_MS;
}

static int64_t period_ms(void)
{
	const uint64_t since = since_flush_ms();

	if (core.ending_ns != 0)
		return -1;
	if (gpu_is(GPU_ON))
		return since < core.flush_ms ? (int64_t)(core.flush_ms - since) : 0;
	return HOT->generation != 0 || state.trims ? CLOCK_MS : -1;
}

static void work(void)
{
	const uint32_t asked = atomic_load_explicit(&core.flush_asked, memory_order_relaxed);

	if (HOT->generation != 0 &&
		agent_monotonic_ns() - state.clock_at >= (CLOCK_MS - 1) * NS_PER_MS) {
		worker_clock();
		proxy_look();
		lane_sweep();
		ring_budget();
		lane_retry();
	}
	if (HOT->generation != 0)
		named_tell();
	if (agent_monotonic_ns() - state.trimmed_at >= (CLOCK_MS - 1) * NS_PER_MS) {
		state.trims = lane_trim();
		state.trimmed_at = agent_monotonic_ns();
	}
	if (gpu_is(GPU_ON) && (since_flush_ms() >= core.flush_ms || asked != core.flush_done))
		flush_round();
	else if (gpu_is(GPU_ON))
		drain_round();
	else if (gpu_is(GPU_ARMED) && core.backend != NULL)
		(void)core.backend->flush(false);
	own_time();
	/* release: what was delivered is in the ring; pairs with the acquire in worker_flush() */
	atomic_store_explicit(&core.flush_done, asked, memory_order_release);
	agent_wake(&core.flush_done);
}

static void *worker_main(void *unused)
{
	uint32_t seen = atomic_load(&core.bell);

	(void)unused;
	pthread_setname_np(pthread_self(), "protond-agent");
	if (worker_in(UINT32_MAX)) {
		/* another thread may have been inside first and claimed the lane without it */
		state.tid = (uint32_t)syscall(SYS_gettid);
		if (core.agent != NULL)
			atomic_store_explicit(
				&core.agent->shared->tid, state.tid, memory_order_relaxed);
		worker_out();
	}
	for (;;) {
		if (core.ending_ns == 0 && worker_in(UINT32_MAX)) {
			if (core.ending_ns == 0)
				work();
			worker_out();
		}
		/* a bell that rang since `seen` was read makes this return at once */
		agent_wait(&core.bell, seen, period_ms());
		seen = atomic_load(&core.bell);
	}
	return NULL;
}

static uint32_t setting(const char *name, uint32_t fallback, uint32_t least)
{
	const char *s = agent_env(name);
	const unsigned long v = s != NULL ? strtoul(s, NULL, 10) : 0;

	if (v == 0 || v > 3600000)
		return fallback;
	return v < least ? least : (uint32_t)v;
}

int worker_start(void)
{
	pthread_attr_t attr;
	sigset_t all, old;
	pthread_t thread;
	int r;

	memset(&state, 0, sizeof(state));
	state.delivered_at = agent_monotonic_ns();
	core.flush_ms = setting("PROTOND_FLUSH_MS", FLUSH_MS, 1);
	core.stall_ms = setting("PROTOND_STALL_MS", STALL_MS, 10);
	r = pthread_attr_init(&attr);
	if (r != 0)
		return -r;
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	r = pthread_create(&thread, &attr, worker_main, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	return -r;
}

/* --- asked from outside ----------------------------------------------------------------------- */

void agent_ring(void)
{
	atomic_fetch_add(&core.bell, 1);
	agent_wake(&core.bell);
}

static bool flushed_once(uint64_t until)
{
	const uint32_t mine = atomic_fetch_add(&core.flush_asked, 1) + 1;

	agent_ring();
	for (;;) {
		/* acquire: pairs with the release in work() */
		const uint32_t done = atomic_load_explicit(&core.flush_done, memory_order_acquire);

		if ((int32_t)(done - mine) >= 0)
			return true;
		if (left_ms(until) == 0)
			return false;
		agent_wait(&core.flush_done, done, left_ms(until));
	}
}

static uint64_t launched(void)
{
	return core.backend->launched != NULL ? core.backend->launched() : 0;
}

/* What was launched before the call; others may go on launching. */
int worker_flush(uint32_t timeout_ms)
{
	const uint64_t until = agent_monotonic_ns() + timeout_ms * NS_PER_MS;
	const uint64_t before = gpu_is(GPU_ON) ? launched() : 0;
	uint32_t more = GRAPH_FLUSHES;
	uint64_t now;

	while (gpu_is(GPU_ON) && core.ending_ns == 0) {
		if (!flushed_once(until))
			return -ETIMEDOUT;
		now = launched(); /* a launch that failed is taken back */
		if (core.backend->pending() <= (now > before ? now - before : 0)) {
			if (more-- == 0)
				return 0;
			continue;
		}
		if (left_ms(until) == 0)
			return -ETIMEDOUT;
		agent_wait(&core.bell, atomic_load(&core.bell), FLUSH_NAP_MS);
	}
	return 0;
}

/* So that a launch without a record is told from one whose record CUPTI still held. */
static void all_delivered(uint64_t clock)
{
	const struct rec_delivered r = {
		.hdr = REC_HDR(sizeof(r), REC_DELIVERED, 0, 0, epoch_now()), .clock = clock};

	if (core.agent != NULL)
		(void)lane_put(core.agent, &r, sizeof(r));
}

/* The process ends: what can still be saved, in bounded time. Whoever holds the lock may be stuck
 * in a library: then all that was published until now is what there is. */
void worker_exit(void)
{
	const uint64_t until = agent_monotonic_ns() + EXIT_MS * NS_PER_MS;
	uint64_t clock;
	bool all;

	if (HOT->opened == 0 || core.ending_ns != 0)
		return;
	core.ending_ns = until;
	sampler_exit(SAMPLER_MS);
	if (worker_in(EXIT_MS / 2)) {
		clock = agent_clock();
		all = core.backend != NULL && (gpu_is(GPU_ON) || gpu_is(GPU_ARMED)) &&
		      (*core.backend->exit)((uint32_t)left_ms(until));
		if (HOT->generation != 0) {
			if (all)
				all_delivered(clock);
			named_tell();
			worker_clock();
		}
		worker_out();
	}
	generation_set(0);
}
