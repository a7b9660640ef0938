/* SPDX-License-Identifier: MIT. capture.c: numbers that a program gives while it captures a CUDA
 * graph: they count each time the graph runs, not once.
 *
 * Between the begin and the end of a capture a thread's metrics are kept as a list, which the next
 * kernel node that the thread makes takes. The backend keeps the list with the node and its copies;
 * with each record of such a node it gives the list's items to the daemon, as CAPTURED records: the
 * record's correlation id leads to the launch, and so to the sessions and the phase. What is left
 * at the end of a capture goes to a node that is there already.
 *
 * A number on the GPU is read by a kernel of ours in the graph, which writes it into its device's
 * ring: entry {tag, value}, tag = number << 32 | low half of the entry's place, written last and 0
 * meanwhile. A number's entries stand in the order of its runs, and so do the records: each record
 * takes the first one. What the device wrote over before it was read is counted.
 *
 * Nothing here is hot: a capture is milliseconds of driver work. One lock, taken with the guard held,
 * which keeps signal handlers of the same thread out; the lists belong to whoever holds it.
 */
#include "capture.h"

#include <string.h>
#include <sys/mman.h>

#include "agent.h"
#include "core.h"
#include "event.h"
#include "record.h"
#include "sync.h"

#define ITEMS    (1u << 16) /* numbered from 1 */
#define THREADS  32u
#define DEVICES  16u
#define ENTRIES  (1u << 20)
#define LOOK     4096u /* entries that one read looks through */
#define TAKEN    UINT64_MAX
#define RING_TOP 64u /* bytes before the entries; the first word is the device's own count */

struct item {
	uint64_t bits; /* of the value; read: device << 32 | which number of it */
	uint32_t path, name, next;
	uint32_t holders; /* of the list that begins here */
	uint8_t type;
	bool read;
};

struct list {
	uint32_t first, last;
};

struct capturing {
	const struct pd_thread *thread; /* NULL: free */
	uint32_t tid;                   /* a thread that ended gives its block to another */
	uint32_t open;                  /* captures that it began */
	struct list given;              /* since its last node */
	uint32_t node;                  /* the list that its last node took; held; 0: none */
};

struct entry {
	_Atomic uint64_t tag, value;
};

static struct {
	_Atomic uint32_t lock;
	struct item *item;
	uint32_t made, free;
	struct capturing thread[THREADS];
} lists;

static struct {
	uint8_t *_Atomic ring; /* RING_TOP, then ENTRIES of struct entry */
	uint64_t next;         /* agent's thread: the first entry that was not taken */
} device_[DEVICES];

/* Numbers rise. Those below `dead` are of graphs that are not watched any more, and run on. */
static _Atomic uint32_t highest, dead;

static void lock(void)
{
	(void)agent_lock_for(&lists.lock, UINT32_MAX);
}

static void unlock(void)
{
	agent_unlock(&lists.lock);
}

static _Atomic uint64_t untold; /* lost since the last LOST record */

static void lost(uint64_t n)
{
	atomic_fetch_add_explicit(&untold, n, memory_order_relaxed);
}

/* --- the lists; locked ------------------------------------------------------------------------ */

static void *space(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p != MAP_FAILED ? p : NULL;
}

/* 0: no room. */
static uint32_t item_new(void)
{
	uint32_t at = lists.free;

	if (at != 0) {
		lists.free = lists.item[at].next;
		return at;
	}
	if (lists.item == NULL)
		lists.item = space((ITEMS + 1) * sizeof(*lists.item));
	return lists.item != NULL && lists.made < ITEMS ? ++lists.made : 0;
}

static void list_add(struct list *l, const struct item *from)
{
	const uint32_t at = item_new();

	if (at == 0) {
		lost(1);
		return;
	}
	lists.item[at] = *from;
	if (l->first == 0) {
		l->first = at;
		lists.item[at].holders = 1;
	} else {
		lists.item[l->last].next = at;
	}
	l->last = at;
}

static void drop(uint32_t first)
{
	uint32_t at = first, next;

	if (at == 0 || --lists.item[at].holders > 0)
		return;
	for (; at != 0; at = next) {
		next = lists.item[at].next;
		lists.item[at].next = lists.free;
		lists.free = at;
	}
}

static uint32_t length(uint32_t at)
{
	uint32_t n = 0;

	for (; at != 0; at = lists.item[at].next)
		n++;
	return n;
}

/* t NULL: a free one. */
static struct capturing *find(const struct pd_thread *t)
{
	for (uint32_t i = 0; i < THREADS; i++)
		if (lists.thread[i].thread == t && (t == NULL || lists.thread[i].tid == t->tid))
			return &lists.thread[i];
	return NULL;
}

/* --- what the program gives ------------------------------------------------------------------- */

bool capture_open(const struct pd_thread *t)
{
	bool yes;

	if (atomic_load_explicit(&core.captures, memory_order_relaxed) == 0)
		return false;
	lock();
	yes = find(t) != NULL;
	unlock();
	return yes;
}

bool capture_metric(const struct pd_thread *t, const struct rec_metric *r, bool read)
{
	const struct item item = {.bits = r->value,
		.path = event_captured_path(REC_ID(r->hdr)),
		.name = r->name,
		.type = REC_FLAGS(r->hdr),
		.read = read};
	struct capturing *c;

	lock();
	c = find(t);
	if (c != NULL)
		list_add(&c->given, &item);
	if (read && (uint32_t)r->value > atomic_load(&highest))
		atomic_store(&highest, (uint32_t)r->value);
	unlock();
	return c != NULL;
}

/* --- what the backend sees of a capture ------------------------------------------------------- */

void agent_capture_began(void)
{
	const struct pd_thread *t = !agent_on_backend ? core.host->thread() : NULL;
	struct capturing *c;

	if (t == NULL)
		return;
	lock();
	c = find(t);
	if (c == NULL) {
		c = find(NULL);
		if (c != NULL) {
			*c = (struct capturing){.thread = t, .tid = t->tid};
			atomic_fetch_add_explicit(&core.captures, 1, memory_order_relaxed);
		}
	}
	if (c != NULL)
		c->open++;
	unlock();
}

static uint32_t ended(struct capturing *c)
{
	uint32_t rest = c->given.first, at = c->node;

	if (rest != 0 && at != 0) {
		while (lists.item[at].next != 0)
			at = lists.item[at].next;
		lists.item[at].next = rest;
		rest = 0;
	}
	drop(c->node);
	*c = (struct capturing){0};
	atomic_fetch_sub_explicit(&core.captures, 1, memory_order_relaxed);
	return rest;
}

/* One that another thread ended leaves its own thread behind: until none is open. */
uint32_t agent_capture_ended(bool last)
{
	const struct pd_thread *t = !agent_on_backend ? core.host->thread() : NULL;
	struct capturing *c;
	uint32_t rest = 0, others;

	lock();
	c = t != NULL ? find(t) : NULL;
	if (c != NULL && --c->open == 0)
		rest = ended(c);
	for (c = lists.thread; last && c < lists.thread + THREADS; c++) {
		if (c->thread == NULL)
			continue;
		others = ended(c);
		lost(length(others));
		drop(others);
	}
	unlock();
	return rest;
}

uint32_t agent_capture_given(void)
{
	const struct pd_thread *t;
	struct capturing *c;
	uint32_t given = 0;

	if (atomic_load_explicit(&core.captures, memory_order_relaxed) == 0 || agent_on_backend)
		return 0;
	t = core.host->thread();
	lock();
	c = t != NULL ? find(t) : NULL;
	if (c != NULL && c->given.first != 0) {
		given = c->given.first;
		drop(c->node);
		c->node = given;
		lists.item[given].holders++;
		c->given = (struct list){0};
	}
	unlock();
	return given;
}

void agent_given_hold(uint32_t given)
{
	if (given == 0)
		return;
	lock();
	lists.item[given].holders++;
	unlock();
}

void agent_given_drop(uint32_t given)
{
	if (given == 0)
		return;
	lock();
	drop(given);
	unlock();
}

void agent_given_lost(uint32_t given)
{
	if (given == 0)
		return;
	lock();
	lost(length(given));
	drop(given);
	unlock();
}

void agent_capture_forget(void)
{
	lock();
	if (lists.item != NULL)
		(void)madvise(lists.item, (ITEMS + 1) * sizeof(*lists.item), MADV_DONTNEED);
	memset(lists.thread, 0, sizeof(lists.thread));
	lists.made = lists.free = 0;
	atomic_store(&dead, atomic_load(&highest) + 1);
	atomic_store_explicit(&core.captures, 0, memory_order_relaxed);
	unlock();
}

/* --- what the GPU wrote ----------------------------------------------------------------------- */

void *capture_ring(uint32_t device, uint64_t *ret_bytes)
{
	uint8_t *p, *none = NULL;

	*ret_bytes = RING_TOP + ENTRIES * sizeof(struct entry);
	if (device >= DEVICES)
		return NULL;
	p = atomic_load(&device_[device].ring);
	if (p != NULL)
		return p;
	p = space(*ret_bytes);
	if (p == NULL || atomic_compare_exchange_strong(&device_[device].ring, &none, p))
		return p;
	(void)munmap(p, *ret_bytes);
	return none;
}

static struct entry *entry_at(uint8_t *ring, uint64_t place)
{
	return (struct entry *)(void *)(ring + RING_TOP) + place % ENTRIES;
}

/* How many the device has begun to write. */
static uint64_t begun(const uint8_t *ring)
{
	/* acquire: what is read of the entries comes after it */
	return __atomic_load_n((const uint64_t *)(const void *)ring, __ATOMIC_ACQUIRE);
}

/* Steps over what was taken, and what nobody takes. Of what the device has written over, and of what never came though half
 * a ring came behind it, nothing is left to wait for. */
static void step(uint32_t device, uint8_t *ring, uint64_t end)
{
	uint64_t next = device_[device].next, tag;
	struct entry *e;

	if (end > next + ENTRIES) {
		lost(end - ENTRIES - next);
		next = end - ENTRIES;
	}
	for (; next < end; next++) {
		e = entry_at(ring, next);
		tag = atomic_load(&e->tag);
		if ((tag == TAKEN || (tag != 0 && tag >> 32 < atomic_load(&dead))) &&
			atomic_compare_exchange_strong(&e->tag, &tag, 0))
			continue;
		if (end - next <= ENTRIES / 2)
			break;
		lost(1);
	}
	device_[device].next = next;
}

/* Takes the first value of a number. False: the device's kernel did not write it, or wrote over it. */
static bool take(uint64_t which, uint64_t *ret)
{
	const uint32_t device = (uint32_t)(which >> 32) % DEVICES, number = (uint32_t)which;
	uint8_t *ring = atomic_load(&device_[device].ring);
	uint64_t end, place, tag;
	struct entry *e;
	bool found = false;

	if (ring == NULL)
		return false;
	end = begun(ring);
	step(device, ring, end);
	for (place = device_[device].next; place < end && place - device_[device].next < LOOK;
		place++) {
		e = entry_at(ring, place);
		tag = ((uint64_t)number << 32) | (uint32_t)place;
		/* acquire: the value was written before the tag */
		if (atomic_load_explicit(&e->tag, memory_order_acquire) != tag)
			continue;
		*ret = atomic_load_explicit(&e->value, memory_order_acquire);
		/* Unless the device came round meanwhile. */
		found = atomic_compare_exchange_strong(&e->tag, &tag, TAKEN);
		break;
	}
	step(device, ring, end);
	return found;
}

/* [agent] An item that others add at the end of a list is seen or not: either is right. */
void agent_given_put(uint32_t given, uint32_t correlation, uint16_t epoch, uint64_t start)
{
	struct rec_captured r = {.start = start, .correlation = correlation, .epoch = epoch};
	struct item item;

	for (; given != 0; given = item.next) {
		lock();
		item = lists.item[given];
		unlock();
		r.hdr = REC_HDR(sizeof(r), REC_CAPTURED, 0, item.type, item.path);
		r.name = item.name;
		r.value = item.bits;
		if (item.read && !take(item.bits, &r.value))
			lost(1);
		else
			(void)agent_put_wait(&r, sizeof(r));
	}
}

/* [agent] */
void agent_given_tell(void)
{
	struct rec_lost r = {.hdr = REC_HDR(sizeof(r), REC_LOST, 0, 0, LOST_CAPTURED)};

	if (atomic_load_explicit(&untold, memory_order_relaxed) == 0)
		return;
	r.count = atomic_exchange_explicit(&untold, 0, memory_order_relaxed);
	r.first = r.last = agent_clock();
	(void)agent_put_wait(&r, sizeof(r));
}
