/* SPDX-License-Identifier: MIT. thread.c: waking up in a process, and the blocks of its threads.
 *
 * The library wakes in its constructor, or at the first call: if that comes before it, or if the
 * library was only preloaded. In a forked child the page is zero, so the child's first call wakes
 * it again, as a process of its own: what the parent's threads held is forgotten, the caller keeps
 * its open scopes.
 *
 * A block is made at a thread's first call and put away at its end. The main thread's is never
 * given to another thread: others follow it.
 */
#include "thread.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon_link.h"
#include "futex.h"
#include "info.h"
#include "load.h"
#include "names.h"
#include "park.h"
#include "protond.h"

#define WAIT_HANDSHAKE_MS 1000u

static struct {
	pthread_key_t key;
	bool have_key;
	_Atomic uint32_t busy; /* of `spare`: whoever finds it taken does without */
	struct pd_block *spare;
	_Atomic uint32_t strays;
	struct pd_thread *_Atomic main;
	struct pd_block *_Atomic newest; /* of all blocks: none is ever unmapped */
} threads;

static struct pd_block *block_of(struct pd_thread *t)
{
	return (struct pd_block *)(void *)((char *)t - offsetof(struct pd_block, t));
}

/* --- blocks ----------------------------------------------------------------------------------- */

static bool spare_try(void)
{
	uint32_t seen = 0;

	/* acquire: pairs with the release in spare_leave() */
	return atomic_compare_exchange_strong_explicit(
		&threads.busy, &seen, 1, memory_order_acquire, memory_order_relaxed);
}

static void spare_leave(void)
{
	atomic_store_explicit(&threads.busy, 0, memory_order_release);
}

static struct pd_block *newest(void)
{
	/* acquire: pairs with the release in block_new(): it is mapped, and `older` set */
	return atomic_load_explicit(&threads.newest, memory_order_acquire);
}

static struct pd_block *block_new(void)
{
	struct pd_block *b, *was;

	b = mmap(NULL, sizeof(*b), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (b == MAP_FAILED)
		return NULL;
	was = newest();
	do {
		b->older = was;
	} while (!atomic_compare_exchange_weak_explicit(
		&threads.newest, &was, b, memory_order_release, memory_order_acquire));
	return b;
}

/* One that was put back while another thread was at the spare ones. */
static struct pd_block *block_stray(void)
{
	struct pd_block *b;

	if (atomic_load(&threads.strays) == 0)
		return NULL;
	for (b = newest(); b != NULL && !atomic_exchange(&b->stray, false); b = b->older)
		;
	if (b != NULL)
		atomic_fetch_sub(&threads.strays, 1);
	return b;
}

static struct pd_block *block_take(void)
{
	struct pd_block *b = NULL;

	if (spare_try()) {
		b = threads.spare;
		if (b != NULL)
			threads.spare = b->next;
		spare_leave();
	}
	if (b == NULL)
		b = block_stray();
	if (b == NULL)
		return block_new();
	memset(b, 0, offsetof(struct pd_block, t.frame));
	return b;
}

static void block_put(struct pd_block *b)
{
	__atomic_store_n(&b->t.tid, 0, __ATOMIC_RELAXED); /* nobody's: the engine looks */
	if (!spare_try()) {
		atomic_fetch_add(&threads.strays, 1);
		atomic_store(&b->stray, true);
		return;
	}
	b->next = threads.spare;
	threads.spare = b;
	spare_leave();
}

/* From here on the process may have to be ended by us: see end.c. */
static void main_ends(void)
{
	atomic_store(&pd.main_gone, true);
	pd_ring();
}

/* The end of a thread. A call that comes later still, from another destructor, makes a new block.
 */
static void thread_gone(void *p)
{
	struct pd_block *b = p;
	const struct protond_engine *e = atomic_load_explicit(&HOT->engine, memory_order_acquire);

	if (p == &threads) { /* the main thread, which never called */
		main_ends();
		return;
	}
	if (pd_self != &b->t) /* a forked child's view of a thread that is not there */
		return;
	if (e != NULL)
		e->thread_exit(&b->t);
	b->t.depth = 0;
	b->t.states = 0;
	b->t.op = 0;
	b->t.context = 0;
	pd_self = NULL;
	if (b->t.is_main == 0)
		block_put(b);
	else
		main_ends();
}

static void thread_is(struct pd_thread *t)
{
	t->tid = (uint32_t)syscall(SYS_gettid);
	t->is_main = t->tid == (uint32_t)getpid();
}

static void main_is(struct pd_thread *t)
{
	if (t->is_main != 0)
		/* release: the block is filled; pairs with the acquire in main_thread() */
		atomic_store_explicit(&threads.main, t, memory_order_release);
}

static struct pd_thread *thread_make(void)
{
	struct pd_block *b = block_take();
	struct pd_thread *seen = NULL;

	if (b == NULL)
		return NULL;
	b->t.bytes = sizeof(b->t);
	thread_is(&b->t);
	/* One instruction: the engine keeps what a signal handler that was quicker was given. */
	if (!__atomic_compare_exchange_n(
		    &pd_self, &seen, &b->t, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
		block_put(b);
		return seen;
	}
	main_is(pd_self); /* not before: a block that was put back is another thread's next */
	if (threads.have_key)
		(void)pthread_setspecific(threads.key, b);
	return &b->t;
}

/* --- waking ----------------------------------------------------------------------------------- */

static void page_wipe(void)
{
	memset(&pd_page, 0, sizeof(pd_page));
}

/* Where the kernel cannot wipe at fork(), fork()'s own hook does. */
static void page_prepare(void)
{
	static bool hooked;

	if (madvise(&pd_page, sizeof(pd_page), MADV_WIPEONFORK) != 0 && !hooked) {
		hooked = true;
		(void)pthread_atfork(NULL, NULL, page_wipe);
	}
}

static void forget_parent(struct pd_thread *t)
{
	const struct pd_export none = {.fd = -1, .request = pd.export.request};

	atomic_store(&threads.main, NULL);
	atomic_store(&threads.busy, 0);
	threads.spare = NULL; /* may have been in the middle of a change */
	atomic_store(&threads.strays, 0);
	atomic_store(&threads.newest, NULL);
	atomic_store(&pd.parked, false);
	atomic_store(&pd.injected, false);
	atomic_store(&pd.main_gone, false);
	atomic_store(&pd.held, false);
	atomic_store(&pd.hints, 0);
	atomic_store(&pd.give_back, false);
	atomic_store(&pd.wake, false);
	atomic_store(&pd.local_want, 0);
	atomic_store(&pd.full_want, 0);
	atomic_store(&pd.asked, 0);
	atomic_store(&pd.answered, 0);
	atomic_store(&pd.settled, false);
	atomic_store(&pd.alone_ms, 0);
	atomic_store(&pd.lock, 0);
	atomic_store(&pd.sessions_lock, 0);
	atomic_store(&pd.export_lock, 0);
	pd.export = none;
	memset(pd.began, 0, sizeof(pd.began));
	pd.gpu.news = false;
	pd.forked = true;
	if (t == NULL)
		return;
	block_of(t)->older = NULL; /* the others' are not here */
	atomic_store(&threads.newest, block_of(t));
	t->generation = 0;
	t->engine = NULL;
	t->path = 0;
	t->busy = 0;
	for (uint32_t i = 0; i < t->depth && i < STACK_MAX; i++) {
		t->frame[i].path = 0;
		t->frame[i].begin = FRAME_INHERITED;
	}
	thread_is(t);
	main_is(t);
}

static void wake_up(void)
{
	const char *disable;
	char text[PD_TEXT];

	page_prepare();
	if (pd.pid != 0)
		forget_parent(pd_self);
	else
		pd.elsewhere = pd_is_elsewhere();
	if (pd.pid == 0 && !pd.elsewhere)
		threads.have_key = pthread_key_create(&threads.key, thread_gone) == 0;
	if (threads.have_key && pd_self == NULL && syscall(SYS_gettid) == getpid())
		(void)pthread_setspecific(threads.key, &threads); /* until it has a block */
	pd.pid = (uint32_t)getpid();
	pd.inert = pd.elsewhere || getauxval(AT_SECURE) != 0;
	if (!pd.inert) {
		disable = getenv("PROTOND_DISABLE");
		pd.disabled = disable != NULL && disable[0] != '\0' && strcmp(disable, "0") != 0;
		pd.second = pd.forked ? pd.second : pd_first("InitializeInjection") != NULL;
		pd.inert = pd.disabled || pd.second;
	}
	if (!pd.inert && !pd.forked)
		pd.has_token = pd_token(pd.token);
	/* release: all of the above; pairs with the acquire of the hot functions */
	atomic_store_explicit(&HOT->gate, GATE_OFF, memory_order_release);
	atomic_store_explicit(&HOT->awake, AWAKE, memory_order_release);
	if (pd.inert)
		return;
	pd_env_read();
	/* Here and not on the parked thread: that would have to wait while a dlopen() of this
	 * library holds the loader's lock, and under `protonctl run` the constructor waits for it.
	 */
	if (pd.has_token && !pd.forked)
		(void)pd_engine_load(text);
	if (pd.forked)
		link_forget();
	link_offer(&pd_host);
	if (pd_park(&pd_host) < 0)
		atomic_store(&pd.settled, true); /* nobody is coming: on_load() need not wait */
}

__attribute__((cold, noinline)) struct pd_thread *pd_thread_cold(void)
{
	const int e = errno;
	uint32_t seen = ASLEEP;
	struct pd_thread *t;

	/* One thread wakes the library; others meanwhile go on with their stacks alone. */
	if (atomic_compare_exchange_strong(&HOT->awake, &seen, WAKING))
		wake_up();
	t = pd_self != NULL ? pd_self : pd.elsewhere ? NULL : thread_make();
	errno = e;
	return t;
}

struct pd_block *pd_block_self(void)
{
	struct pd_thread *t = pd_thread_here();

	return t != NULL ? block_of(t) : NULL;
}

/* LD_PRELOAD reaches shells and all that they start. A shell that redirects closes an output and
 * duplicates onto the number, which a thread beside it that opens anything takes in between: the
 * shell's dup2() fails (EBUSY) or replaces what is about to be closed, and the output is lost. */
static bool only_preloaded(void)
{
	uint8_t token[16];

	return pd_is_named_in("LD_PRELOAD") && !pd_token(token);
}

/* Under `protonctl run` the first scope is to be recorded, so the program waits for the handshake.
 */
__attribute__((constructor)) static void on_load(void)
{
	const int e = errno;
	uint64_t deadline;
	uint32_t seen = ASLEEP;

	if (!only_preloaded() && atomic_compare_exchange_strong(&HOT->awake, &seen, WAKING))
		wake_up();
	if (!pd.inert && pd.has_token) {
		deadline = pd_now_ms() + WAIT_HANDSHAKE_MS;
		for (;;) {
			/* acquire: pairs with the release in pd_changed() */
			const uint32_t was = atomic_load_explicit(&pd.change, memory_order_acquire);

			if (atomic_load(&pd.settled) || pd_now_ms() >= deadline)
				break;
			pd_wait(&pd.change, was, deadline);
		}
	}
	errno = e;
}

/* --- what the engine may ask ------------------------------------------------------------------ */

static struct pd_thread *host_thread(void)
{
	return pd_thread_here();
}

static const struct pd_thread *host_main(void)
{
	/* acquire: pairs with the release in thread_is() */
	return atomic_load_explicit(&threads.main, memory_order_acquire);
}

static const struct pd_thread *host_next(const struct pd_thread *after)
{
	const struct pd_block *b = newest();

	if (after != NULL)
		b = ((const struct pd_block *)(const void *)after)->older;
	return b != NULL ? &b->t : NULL;
}

static void host_gpu_report(const struct gpu_report *r)
{
	pd_lock(&pd.lock);
	pd.gpu.news = true;
	pd.gpu.report = *r;
	pd_unlock(&pd.lock);
	pd_ring();
}

static void host_gpu_state(uint32_t state, int32_t code, uint32_t library, uint32_t driver,
	const char *path, const char *words)
{
	struct gpu_report r = {.state = (uint16_t)state,
		.code = code,
		.library_version = library,
		.driver_version = driver};

	snprintf(r.path, sizeof(r.path), "%s", path != NULL ? path : "");
	snprintf(r.words, sizeof(r.words), "%s", words != NULL ? words : "");
	host_gpu_report(&r);
}

static _Atomic(protond_stack_fn *) stack_of_runtime;

PD_EXPORT void protond_stack(protond_stack_fn *fn)
{
	atomic_store(&stack_of_runtime, fn);
}

PD_EXPORT void protond_on_want(protond_want_fn *fn)
{
	uint32_t want;

	atomic_store(&pd.on_want, fn);
	do { /* until nobody else has said another one meanwhile, before us */
		want = atomic_load(&pd.full_want);
		if (fn != NULL)
			fn(want);
	} while (atomic_load(&pd.full_want) != want);
}

static uint32_t host_stack(uint32_t *names, uint32_t cap)
{
	protond_stack_fn *const fn = atomic_load(&stack_of_runtime);

	return fn != NULL ? fn(names, cap) : 0;
}

static void host_wake(void)
{
	atomic_store(&pd.wake, true);
	pd_ring();
}

static uint64_t host_below(uint32_t name)
{
	return pd_context_child(protond_context_get(), name);
}

const struct protond_host pd_host = {
	.abi = ENGINE_ABI,
	.bytes = sizeof(pd_host),
	.thread = host_thread,
	.name = pd_name,
	.intern = pd_intern,
	.context_name = pd_context_name,
	.gpu_state = host_gpu_state,
	.main_thread = host_main,
	.stack = host_stack,
	.wake = host_wake,
	.gpu_report = host_gpu_report,
	.next_thread = host_next,
	.context_below = host_below,
};
