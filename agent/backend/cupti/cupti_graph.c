/* SPDX-License-Identifier: MIT. cupti_graph.c: which path each node of a CUDA graph was captured
 * under.
 *
 * NODE_CREATED (on the capturing thread) keeps the path it stands on; NODE_CLONED (instantiation,
 * after a NODE_CREATED of the copy) copies the original's to the new node, which is the one that
 * activity records name. A node is
 * freed when it, its graph or its executable graph is destroyed, and not before what was launched
 * from it has been delivered: destroyed nodes wait on a list until a flush that began later is
 * over.
 *
 * Two chained hash tables over a fixed pool each: nodes by id, graphs by id; a graph heads the list
 * of its nodes, so that destroying one costs its own size. The memory is address space until used.
 * One spinlock: only graph building, which is milliseconds of driver work, and the agent's lookups
 * take it, never a launch; the agent's re-entry guard keeps signal handlers out. The agent
 * remembers the last lookups, so that replaying a graph takes the lock only after a change.
 */
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>

#include "agent.h"
#include "cupti_graph.h"

#define NODES   (1u << 20)
#define GRAPHS  (1u << 16)
#define CACHE   4096u
#define SPINS   200u
#define REAP_NS 60000000000ull
#define NONE    0u /* entries are numbered from 1 */

struct node {
	uint64_t id;
	uint32_t path, graph; /* graph: entry number; NONE: dying */
	uint32_t chain;       /* next in its bucket, or in the free list */
	uint32_t prev, next;  /* in its graph's list; next: in the list of the dying */
	uint32_t given;       /* see agent_capture_given(); held */
};

struct graph {
	uint32_t id, head;
	uint32_t chain;
	uint32_t pad0;
};

static struct {
	atomic_flag lock;
	_Atomic uint32_t changes; /* of the map; the agent's cache is good within one value */
	_Atomic uint32_t live;
	uint32_t *node_bucket, *graph_bucket;
	struct node *node;
	struct graph *graph;
	uint32_t node_made, graph_made;
	uint32_t node_free, graph_free;
	uint32_t dying, dying_old; /* destroyed since, and before, the last reap */
	uint64_t last_kernel;      /* the kernel node that was created last */
	uint64_t old_since;        /* when dying_old was filled */
} map;

static struct {
	uint64_t id;
	struct cupti_node node;
	uint32_t changes;
} cache[CACHE]; /* agent's thread */

static void lock(void)
{
	uint32_t n = 0;

	/* Acquire: pairs with the release in unlock(). */
	while (atomic_flag_test_and_set_explicit(&map.lock, memory_order_acquire))
		if (++n % SPINS == 0)
			sched_yield(); /* its holder was preempted */
}

static void unlock(void)
{
	atomic_flag_clear_explicit(&map.lock, memory_order_release);
}

static void changed(void)
{
	atomic_fetch_add_explicit(&map.changes, 1, memory_order_release);
}

static void *space(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p != MAP_FAILED ? p : NULL;
}

int cupti_graph_init(void)
{
	if (map.graph != NULL)
		return 0;
	map.node_bucket = space(NODES * sizeof(uint32_t));
	map.graph_bucket = space(GRAPHS * sizeof(uint32_t));
	map.node = space((NODES + 1) * sizeof(struct node));
	map.graph = space((GRAPHS + 1) * sizeof(struct graph));
	if (map.node_bucket == NULL || map.graph_bucket == NULL || map.node == NULL) {
		map.graph = NULL;
		return -ENOMEM;
	}
	return map.graph != NULL ? 0 : -ENOMEM;
}

static uint32_t hash(uint64_t id, uint32_t slots)
{
	return (uint32_t)((id * 0x9e3779b97f4a7c15ull) >> 32) & (slots - 1);
}

static uint32_t *node_link(uint64_t id)
{
	uint32_t *p = &map.node_bucket[hash(id, NODES)];

	while (*p != NONE && map.node[*p].id != id)
		p = &map.node[*p].chain;
	return p;
}

static uint32_t *graph_link(uint32_t id)
{
	uint32_t *p = &map.graph_bucket[hash(id, GRAPHS)];

	while (*p != NONE && map.graph[*p].id != id)
		p = &map.graph[*p].chain;
	return p;
}

static uint32_t graph_get(uint32_t id)
{
	uint32_t *p = graph_link(id), g = *p;

	if (g != NONE)
		return g;
	g = map.graph_free;
	if (g != NONE)
		map.graph_free = map.graph[g].chain;
	else if (map.graph_made < GRAPHS)
		g = ++map.graph_made;
	else
		return NONE;
	map.graph[g] = (struct graph){.id = id};
	*p = g;
	return g;
}

static uint32_t node_new(void)
{
	uint32_t n = map.node_free;

	if (n != NONE) {
		map.node_free = map.node[n].chain;
		return n;
	}
	return map.node_made < NODES ? ++map.node_made : NONE;
}

static void unlist(uint32_t n)
{
	struct node *v = &map.node[n];

	if (v->prev != NONE)
		map.node[v->prev].next = v->next;
	else if (v->graph != NONE)
		map.graph[v->graph].head = v->next;
	if (v->next != NONE)
		map.node[v->next].prev = v->prev;
	v->prev = v->next = v->graph = NONE;
}

static uint32_t node_add(uint64_t id, uint32_t g, uint32_t path, uint32_t given)
{
	uint32_t *bucket = &map.node_bucket[hash(id, NODES)], n = node_new();

	if (n == NONE)
		return NONE;
	map.node[n] = (struct node){.id = id,
		.path = path,
		.graph = g,
		.chain = *bucket,
		.next = map.graph[g].head,
		.given = given};
	if (map.graph[g].head != NONE)
		map.node[map.graph[g].head].prev = n;
	map.graph[g].head = n;
	*bucket = n; /* before one of the same id that is dying */
	atomic_fetch_add_explicit(&map.live, 1, memory_order_relaxed);
	return n;
}

/* Locked. False: no room. *given: what the caller is to drop. A copy is created first, where its
 * graph is instantiated, and then said to be one. */
static bool put(uint64_t id, uint32_t graph, uint32_t path, uint32_t *given)
{
	uint32_t n = *node_link(id), g, was;

	if (n != NONE && map.node[n].graph != NONE) {
		was = map.node[n].given;
		map.node[n].path = path;
		map.node[n].given = *given;
		*given = was;
		return true;
	}
	g = graph_get(graph);
	if (g == NONE || node_add(id, g, path, *given) == NONE)
		return false;
	*given = 0;
	return true;
}

static void insert(uint64_t node, uint32_t graph, uint32_t path, bool kernel, uint32_t given)
{
	bool ok;

	lock();
	ok = put(node, graph, path, &given);
	if (ok && kernel)
		map.last_kernel = node;
	changed();
	unlock();
	agent_given_lost(given);
	if (!ok) /* its kernels will stand under the launch alone */
		agent_count(&agent_counts()->paths_refused, 1);
}

void cupti_node_created(uint64_t node, uint32_t graph, uint32_t path, bool kernel, uint32_t given)
{
	insert(node, graph, path, kernel, given);
}

void cupti_node_cloned(uint64_t node, uint64_t original, uint32_t graph)
{
	uint32_t n, path = PATH_ROOT, given = 0;

	lock();
	n = *node_link(original);
	if (n != NONE) {
		path = map.node[n].path;
		given = map.node[n].given;
		agent_given_hold(given); /* before the original can go */
	}
	unlock();
	if (n != NONE)
		insert(node, graph, path, false, given);
}

void cupti_node_give(uint32_t given)
{
	uint32_t n;

	if (given == 0)
		return;
	lock();
	n = map.last_kernel != 0 ? *node_link(map.last_kernel) : NONE;
	if (n != NONE && map.node[n].graph != NONE && map.node[n].given == 0) {
		map.node[n].given = given;
		given = 0;
	}
	changed();
	unlock();
	agent_given_lost(given);
}

/* Locked. The node stays findable until it is reaped; the dying list runs through `next`. */
static void die(uint32_t n)
{
	unlist(n);
	map.node[n].next = map.dying;
	map.dying = n;
}

void cupti_node_gone(uint64_t node)
{
	uint32_t n;

	lock();
	n = *node_link(node);
	if (n != NONE && map.node[n].graph != NONE) /* else: dying already */
		die(n);
	unlock();
}

void cupti_graph_gone(uint32_t graph)
{
	uint32_t *p, g;

	lock();
	p = graph_link(graph);
	g = *p;
	if (g != NONE) {
		while (map.graph[g].head != NONE)
			die(map.graph[g].head);
		*p = map.graph[g].chain;
		map.graph[g].chain = map.graph_free;
		map.graph_free = g;
	}
	unlock();
}

struct cupti_node cupti_node(uint64_t node)
{
	uint32_t now = atomic_load_explicit(&map.changes, memory_order_acquire);
	uint32_t i = hash(node, CACHE), n;
	struct cupti_node found = {.path = PATH_ROOT};

	if (map.graph == NULL)
		return found;
	if (cache[i].id == node && cache[i].changes == now)
		return cache[i].node;
	lock();
	n = *node_link(node);
	if (n != NONE)
		found = (struct cupti_node){map.node[n].path, map.node[n].given};
	unlock();
	cache[i].id = node;
	cache[i].node = found;
	cache[i].changes = now;
	return found;
}

/* Frees a few at a time, so that a thread that builds a graph does not wait for all. */
static void reap_some(uint32_t *list)
{
	uint32_t k, n, *p, given[64], n_given = 0;

	lock();
	for (k = 0; k < sizeof(given) / sizeof(given[0]) && *list != NONE; k++) {
		n = *list;
		*list = map.node[n].next;
		p = &map.node_bucket[hash(map.node[n].id, NODES)];
		while (*p != n)
			p = &map.node[*p].chain;
		*p = map.node[n].chain;
		given[n_given++] = map.node[n].given;
		map.node[n].chain = map.node_free;
		map.node_free = n;
		atomic_fetch_sub_explicit(&map.live, 1, memory_order_relaxed);
	}
	changed();
	unlock();
	while (n_given > 0)
		agent_given_drop(given[--n_given]);
}

void cupti_graph_reap(bool idle)
{
	uint64_t now = agent_monotonic_ns();

	if (map.graph == NULL)
		return;
	if (map.dying_old != NONE && (idle || now - map.old_since > REAP_NS))
		while (map.dying_old != NONE)
			reap_some(&map.dying_old);
	if (map.dying_old == NONE) {
		lock();
		map.dying_old = map.dying;
		map.dying = NONE;
		unlock();
		map.old_since = now;
	}
}

void cupti_graph_clear(void)
{
	if (map.graph == NULL)
		return;
	lock();
	(void)madvise(map.node_bucket, NODES * sizeof(uint32_t), MADV_DONTNEED);
	(void)madvise(map.graph_bucket, GRAPHS * sizeof(uint32_t), MADV_DONTNEED);
	(void)madvise(map.node, (NODES + 1) * sizeof(struct node), MADV_DONTNEED);
	(void)madvise(map.graph, (GRAPHS + 1) * sizeof(struct graph), MADV_DONTNEED);
	map.node_made = map.graph_made = map.node_free = map.graph_free = NONE;
	map.dying = map.dying_old = NONE;
	map.last_kernel = 0;
	atomic_store_explicit(&map.live, 0, memory_order_relaxed);
	changed();
	unlock();
	agent_capture_forget();
}

uint32_t cupti_graph_nodes(void)
{
	return atomic_load_explicit(&map.live, memory_order_relaxed);
}
