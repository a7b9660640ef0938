/* SPDX-License-Identifier: MIT. correlate.c: launches and the GPU's records of them, joined by
 * (epoch, correlation id), whichever comes first.
 *
 * Work of a loop inside a graph (a conditional node) has no correlation id, only the executable
 * graph's. A likeness of the launch that other records of that graph came for last, keyed by this
 * id instead, takes it; it is no launch of its own in any count.
 *
 * INVARIANT: a key is in at most one of OPEN, GRAPH, JOINED, PASSED and WAITING. What leaves a list
 * has been counted: in a cell, or as lost. An ordinary launch leaves at its first record.
 */
#include "correlate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_terms.h"
#include "loss.h"
#include "metric.h"
#include "node.h"
#include "nodehash.h"
#include "part.h"
#include "process.h"
#include "record.h"
#include "ring.h"
#include "session.h"
#include "state.h"
#include "tree.h"

#define GRAPH_ROUNDS   2u     /* flushes without more of a graph launch: it is complete */
#define LAUNCHES_LEAST 4096u  /* open ones that every process may have, whatever the others use */
#define FLIGHT_KEPT    65536u /* places for launches that stay when none is in flight */
#define PASS_BUDGET    65536u /* graph launches looked at in one sweep */
#define RECORDS_MAX    16u    /* of an ordinary launch: it has one, and perhaps RUNNING before */
#define DETACH_LEAST   256u   /* records in flight that are counted when any part ends */

#define FULL_NS 1000000000u /* who came so long ago leaves for others where there is no room */

struct key {
	const struct launch *launch;
	uint32_t correlation;
	uint32_t graph_exec; /* where correlation is 0 */
	uint16_t epoch;
};

static bool launch_same(const void *arg, uint32_t at)
{
	const struct key *k = arg;

	return k->launch[at].correlation == k->correlation && k->launch[at].epoch == k->epoch &&
	       (k->correlation != 0 || k->launch[at].graph_exec == k->graph_exec);
}

/* Ids of one thread come nearly in order: neighbours share a cache line. */
static uint32_t key_hash(uint32_t correlation, uint32_t graph_exec)
{
	const uint32_t id = correlation != 0 ? correlation : graph_exec;

	return table_mix(id >> 3, 0) << 3 | (id & 7);
}

static struct launch *launch_find(
	struct flight *c, uint16_t epoch, uint32_t correlation, uint32_t graph_exec)
{
	struct key k = {c->launch, correlation, graph_exec, epoch};
	uint32_t at = table_find(&c->by_key, key_hash(correlation, graph_exec), launch_same, &k);

	return at == TABLE_NONE ? NULL : &c->launch[at];
}

/* With nothing in it: its memory is for others. What was counted so far stays. */
static void flight_empty(struct flight *c)
{
	free(c->launch);
	free(c->gpu);
	table_fini(&c->by_key);
	memset(c->list, 0, sizeof(c->list));
	c->launch = NULL;
	c->gpu = NULL;
	c->n_launches = c->cap_launches = c->n_gpu = c->cap_gpu = c->free_gpu = 0;
}

void correlate_fini(struct flight *c)
{
	flight_empty(c);
	*c = (struct flight){.rounds = 1};
}

/* --- lists --- */

static bool is_flying(const struct launch *l)
{
	return l->list == LIST_OPEN || l->list == LIST_GRAPH || l->list == LIST_JOINED;
}

static bool is_graph(const struct launch *l)
{
	return (l->flags & LAUNCH_GRAPH) != 0;
}

/* Keeps each part's count of launches in flight. */
static void parts_open(struct process *p, const struct launch *l, uint32_t more)
{
	uint64_t set;

	for (set = l->parts; set != 0; set &= set - 1)
		p->slot[__builtin_ctzll(set)]->n_open += more;
}

static void move_to(struct process *p, struct launch *l, enum launch_list list)
{
	if (is_flying(l))
		parts_open(p, l, UINT32_MAX); /* − 1 */
	flight_remove(&p->flight, l);
	flight_append(&p->flight, l, list);
	if (is_flying(l))
		parts_open(p, l, 1);
}

/* --- records that wait --- */

/* False: no room. */
static bool gpu_keep(struct process *p, struct launch *l, const struct gpu *g)
{
	struct flight *c = &p->flight;
	uint32_t at = c->free_gpu;

	if (c->held_gpu >= p->fold->limit.launches ||
		(at == 0 && c->n_gpu == c->cap_gpu && c->n_gpu >= LAUNCHES_LEAST &&
			!process_has_room_in_flight(p)))
		return false;
	if (at != 0) {
		c->free_gpu = c->gpu[at - 1].next;
	} else {
		if (!ROOM_FOR(c->gpu, c->cap_gpu, c->n_gpu)) {
			p->fold->no_memory = true;
			return false;
		}
		at = ++c->n_gpu;
	}
	c->gpu[at - 1] = (struct gpu_wait){*g, l->records, flight_records(c, l->records) + 1};
	l->records = at;
	c->held_gpu++;
	c->waiting += l->list == LIST_WAITING;
	return true;
}

/* Takes the newest of its records. */
static bool gpu_take(struct flight *c, struct launch *l, struct gpu *ret)
{
	uint32_t at = l->records;

	if (at == 0)
		return false;
	*ret = c->gpu[at - 1].gpu;
	l->records = c->gpu[at - 1].next;
	c->gpu[at - 1].next = c->free_gpu;
	c->free_gpu = at;
	c->waiting -= l->list == LIST_WAITING;
	if (--c->held_gpu == 0)
		c->n_gpu = c->free_gpu = 0; /* those that come next lie in order again */
	return true;
}

/* --- to the trees --- */

static uint32_t trees(const struct process *p)
{
	return p->n_parts == 0 ? 1 : p->n_parts;
}

/* What is left of limit.sweep; a launch or record costs once for each tree of its process. */
static void spend(const struct process *p, uint32_t *budget)
{
	*budget -= *budget < trees(p) ? *budget : trees(p);
}

/* Whether it was captured while this session of the job's own was inactive: "0,3" is a list of such. */
__attribute__((cold, noinline)) static bool is_excepted(
	const struct part *part, const struct gpu *g)
{
	const struct process *p = part->process;
	const struct row_session *s = &part->session->row;
	const char *at;
	char number[16];
	uint32_t bytes;
	size_t n;

	if (s->source != SOURCE_JOB || !hash_same(s->owner, p->row.ring))
		return false;
	n = (size_t)snprintf(number, sizeof(number), "%u", s->job_number);
	at = name_text(p, p->path[g->captured].name, &bytes);
	while (bytes >= n && (memcmp(at, number, n) != 0 || (bytes > n && at[n] != ','))) {
		const char *comma = memchr(at, ',', bytes);

		if (comma == NULL)
			return false;
		bytes -= (uint32_t)(comma + 1 - at);
		at = comma + 1;
	}
	return bytes >= n;
}

static inline void count_one(struct part *part, const struct launch *l, const struct gpu *g)
{
	const struct process *p = part->process;

	if (g->captured != PATH_ROOT && g->captured < p->n_paths &&
		p->path[g->captured].kind == PATH_KIND_EXCEPT && is_excepted(part, g))
		return;
	if (gpu_is_metric(g->type)) {
		tree_captured(part, l, g);
		return;
	}
	if (g->type == REC_OVERHEAD) {
		if ((part->switches & SWITCH_OVERHEAD) != 0)
			tree_overhead(part, l, g);
		return;
	}
	tree_gpu(part, l, g);
	if ((l->flags & LAUNCH_ENDS) != 0 && (part->switches & SWITCH_QUEUE) != 0)
		tree_launch_delay(part, l, g);
	if ((part->switches & SWITCH_SYNC) != 0 && g->type == REC_COPY &&
		(l->flags & LAUNCH_TIMED) != 0 &&
		((l->flags & LAUNCH_BLOCKS) != 0 || (g->flags & GPU_FLAG_PAGED) != 0))
		tree_copy_call(part, l);
}

static void count_in(struct process *p, const struct launch *l, const struct gpu *g)
{
	uint64_t set;

	for (set = l->parts; set != 0; set &= set - 1)
		count_one(p->slot[__builtin_ctzll(set)], l, g);
}

static void count_matched(struct process *p, const struct launch *l)
{
	struct session *s;
	uint64_t set;

	for (set = l->parts; set != 0; set &= set - 1) {
		s = p->slot[__builtin_ctzll(set)]->session;
		s->row.matched++;
		s->dirty = true;
	}
}

/* A record without its launch counts in the sessions that were active when it ran. */
static void count_unlaunched(struct process *p, const struct launch *waiting, const struct gpu *g,
	const struct part *only)
{
	struct launch l = *waiting;
	struct part *part;
	uint32_t i;

	l.clock = clockmap_clock(&p->clock, real_to_mono(p, g->start));
	for (i = 0; i < p->n_parts; i++) {
		part = p->part[i];
		if ((only != NULL && only != part) || !part->gpu ||
			!window_has(&part->window, l.clock))
			continue;
		count_one(part, &l, g);
		if (gpu_is_work(g->type))
			note_count(part, NOTE_NO_LAUNCH, 1);
	}
}

static void launch_free(struct process *p, struct launch *l)
{
	struct flight *c = &p->flight;

	table_del(&c->by_key, key_hash(l->correlation, l->graph_exec), (uint32_t)(l - c->launch));
	if (is_flying(l))
		parts_open(p, l, UINT32_MAX); /* − 1 */
	flight_remove(c, l);
	l->list = LIST_FREE;
	l->next = c->list[LIST_FREE].first;
	c->list[LIST_FREE].first = (uint32_t)(l - c->launch) + 1;
	c->list[LIST_FREE].n++;
}

/* No (more) records came, or can be waited for: what was said to be running counts without a time, the
 * rest is lost. What the budget does not cover goes next time. */
static void launch_give_up(
	struct process *p, struct launch *l, enum lost_cause why, uint32_t *budget)
{
	bool matched = l->round != 0;
	struct gpu g;
	uint64_t set;

	for (; l->list == LIST_WAITING && *budget > 0 && gpu_take(&p->flight, l, &g);
		spend(p, budget))
		count_unlaunched(p, l, &g, NULL);
	if (!matched && l->list != LIST_WAITING && l->records != 0) {
		matched = true;
		count_matched(p, l);
		l->round = 1;
	}
	for (; *budget > 0 && gpu_take(&p->flight, l, &g); spend(p, budget))
		count_in(p, l, &g);
	if (l->records != 0) {
		if (l->list != LIST_WAITING)
			move_to(p, l, LIST_PASSED);
		return;
	}
	for (set = matched || l->list == LIST_WAITING ? 0 : l->parts; set != 0; set &= set - 1)
		loss_part(p->slot[__builtin_ctzll(set)], why, 1);
	spend(p, budget);
	launch_free(p, l);
}

/* --- coming in --- */

void correlate_begin(struct process *p)
{
	p->flight.left = p->fold->limit.sweep;
}

static const enum launch_list leaving[] = {
	LIST_PASSED, LIST_JOINED, LIST_OPEN, LIST_WAITING, LIST_GRAPH};
#define LEAVING (sizeof(leaving) / sizeof(leaving[0]))

/* Of these lists, the first n. */
static struct launch *oldest(struct flight *c, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		if (c->list[leaving[i]].first != 0)
			return flight_first(c, leaving[i]);
	return NULL;
}

/* Who leaves for one of that list where there is no room: who has all it can get, then, for a launch, a record
 * without one, else who has waited for long. NULL: nobody. The oldest launch is the next to be
 * answered: if each newcomer took its place, none of many would be, and their records, which find
 * no launch, would take the places of others. */
static struct launch *leaver(const struct process *p, struct flight *c, enum launch_list comes)
{
	struct launch *l = oldest(c, 2);
	uint32_t i;

	if (l == NULL && comes != LIST_WAITING)
		l = flight_first(c, LIST_WAITING);
	for (i = 2; l == NULL && i < LEAVING; i++) {
		l = flight_first(c, leaving[i]);
		if (l != NULL && p->fold->now_ns - l->seen_ns < FULL_NS)
			l = NULL;
	}
	return l;
}

static bool is_full(struct process *p)
{
	const struct flight *c = &p->flight;

	return c->n_launches - c->list[LIST_FREE].n >= p->fold->limit.launches ||
	       (c->list[LIST_FREE].n == 0 && c->n_launches == c->cap_launches &&
		       c->n_launches >= LAUNCHES_LEAST && !process_has_room_in_flight(p));
}

/* Adds one to this list. NULL: out of memory, no room, or the index refused its key. */
static struct launch *launch_new(
	struct process *p, const struct launch *from, enum launch_list list)
{
	struct flight *c = &p->flight;
	struct launch *l;
	uint32_t at;
	int r;

	if (is_full(p)) {
		l = leaver(p, c, list);
		if (l != NULL)
			launch_give_up(p, l, LOST_FLIGHT, &c->left);
		if (c->list[LIST_FREE].n == 0)
			return NULL; /* none left, or only some of its many records */
	}
	at = c->list[LIST_FREE].first != 0 ? c->list[LIST_FREE].first - 1 : c->n_launches;
	if (!ROOM_FOR(c->launch, c->cap_launches, at)) {
		p->fold->no_memory = true;
		return NULL;
	}
	r = table_add(&c->by_key, key_hash(from->correlation, from->graph_exec), at);
	if (r < 0) {
		p->fold->no_memory |= r == -ENOMEM;
		return NULL;
	}
	l = &c->launch[at];
	if (at == c->n_launches) {
		c->n_launches++;
	} else {
		c->list[LIST_FREE].first = l->next;
		c->list[LIST_FREE].n--;
	}
	*l = *from;
	l->records = 0;
	flight_append(c, l, list);
	if (is_flying(l))
		parts_open(p, l, 1);
	return l;
}

static uint64_t sessions_at(struct process *p, uint64_t clock)
{
	struct part *part;
	uint64_t set = 0;
	uint32_t i;

	for (i = 0; i < p->n_parts; i++) {
		part = p->part[i];
		if (!part->gpu || !window_has(&part->window, clock))
			continue;
		set |= 1ull << part->slot;
		part->session->row.launches++;
		part->session->dirty = true;
	}
	return set;
}

static void graph_known(struct process *p, const struct launch *l);

/* A record whose launch is here. The launches may lie elsewhere afterwards. */
static void launch_record(struct process *p, struct launch *l, const struct gpu *g)
{
	struct gpu old;

	if (g->type == REC_OVERHEAD) {
		count_in(p, l, g);
		return;
	}
	if ((g->flags & GPU_FLAG_RUNNING) != 0) { /* an ordinary launch has one */
		if ((l->records != 0 && !is_graph(l)) || !gpu_keep(p, l, g))
			count_unlaunched(p, &(struct launch){.list = LIST_WAITING}, g, NULL);
		return;
	}
	if (l->round == 0)
		count_matched(p, l);
	count_in(p, l, g);
	if (!is_graph(l)) {
		while (gpu_take(&p->flight, l, &old)) /* RUNNING ones: it is done now */
			;
		launch_free(p, l);
		return;
	}
	l->round = p->flight.rounds;
	l->seen_ns = p->fold->now_ns;
	if (l->list == LIST_PASSED) /* to the end: the list is in order of seen_ns */
		move_to(p, l, LIST_PASSED);
	if (l->graph_exec == 0 && l->correlation != 0 && g->graph_exec != 0) {
		l->graph_exec = g->graph_exec;
		graph_known(p, l);
	}
}

/* Counts some records that waited for their graph launch. A RUNNING one counts without a time,
 * as it would later. */
static void joined_count(struct process *p, struct launch *l, uint32_t *budget)
{
	struct gpu g;

	for (; *budget > 0 && gpu_take(&p->flight, l, &g); spend(p, budget)) {
		if (g.type == REC_OVERHEAD) {
			count_in(p, l, &g);
			continue;
		}
		if (l->round == 0)
			count_matched(p, l);
		count_in(p, l, &g); /* round 0: the launch counts with it */
		l->round = p->flight.rounds;
		l->seen_ns = p->fold->now_ns;
	}
	if (l->records == 0)
		move_to(p, l, LIST_GRAPH);
}

static void launch_becomes(struct launch *l, const struct launch *from)
{
	l->clock = from->clock;
	l->end = from->end;
	l->parts = from->parts;
	l->path = from->path;
	l->name = from->name;
	l->python = from->python;
	l->tid = from->tid;
	l->flags = from->flags;
	l->round = from->round;
	l->seen_ns = from->seen_ns;
}

/* The launch of records that came first; of a graph there may be any number. */
static void launch_join(struct process *p, struct launch *w, const struct launch *from)
{
	struct launch *l = w;
	struct gpu wait[RECORDS_MAX];
	uint32_t n = 0, i;

	launch_becomes(l, from);
	if (is_graph(l)) {
		p->flight.waiting -= flight_records(&p->flight, l->records);
		move_to(p, l, LIST_JOINED);
		joined_count(p, l, &p->flight.left);
		if (l->correlation != 0 && l->graph_exec != 0)
			graph_known(p, l);
		return;
	}
	while (n < RECORDS_MAX && gpu_take(&p->flight, l, &wait[n]))
		n++;
	move_to(p, l, LIST_OPEN);
	for (i = 0; i < n; i++) /* before the launch goes with its work */
		if (wait[i].type == REC_OVERHEAD)
			count_in(p, l, &wait[i]);
	while (n-- > 0) { /* oldest first: running, then done */
		if (wait[n].type == REC_OVERHEAD)
			continue;
		if (l != NULL)
			launch_record(p, l, &wait[n]);
		else
			count_unlaunched(p, &(struct launch){.list = LIST_WAITING}, &wait[n], NULL);
		if (l != NULL && l->list == LIST_FREE)
			l = NULL;
	}
}

/* What a loop in this graph did, and does from now on, is this launch's. Where there is no room for
 * a likeness it stays without a launch, counted as such. */
static void graph_known(struct process *p, const struct launch *l)
{
	struct flight *c = &p->flight;
	struct launch like = *l, *w = launch_find(c, l->epoch, 0, l->graph_exec);

	like.correlation = 0;
	like.round = c->rounds; /* it is matched: the launch itself was */
	like.seen_ns = p->fold->now_ns;
	if (w != NULL && w->list == LIST_WAITING) {
		launch_join(p, w, &like);
	} else if (w != NULL && w->list == LIST_PASSED) {
		launch_becomes(w, &like);
		move_to(p, w, LIST_PASSED);
	} else if (w == NULL && !is_full(p)) {
		(void)launch_new(p, &like, LIST_PASSED);
	}
}

void correlate_launch(struct process *p, const struct rec_launch *r, uint64_t end, uint32_t tid)
{
	struct launch from = {.clock = r->clock,
		.end = end,
		.seen_ns = p->fold->now_ns,
		.correlation = r->correlation,
		.path = REC_ID(r->hdr),
		.name = r->name,
		.python = r->python,
		.tid = tid,
		.epoch = r->epoch,
		.flags = REC_FLAGS(r->hdr)};
	struct launch *l = launch_find(&p->flight, r->epoch, r->correlation, 0);
	bool joins = l != NULL && l->list == LIST_WAITING, lies;
	uint64_t set;

	p->launches++;
	from.parts = sessions_at(p, r->clock);
	lies = joins && !is_graph(&from) && /* an ordinary launch cannot have so many */
	       flight_records(&p->flight, l->records) > RECORDS_MAX;
	if (joins && !lies) {
		launch_join(p, l, &from);
		return;
	}
	if (l != NULL && !lies) /* ids wrap: this is the next one with it */
		launch_give_up(p, l, LOST_LAUNCHES, &p->flight.left);
	if ((l == NULL || l->list == LIST_FREE) &&
		launch_new(p, &from, is_graph(&from) ? LIST_GRAPH : LIST_OPEN) != NULL)
		return;
	for (set = from.parts; set != 0; set &= set - 1)
		loss_part(p->slot[__builtin_ctzll(set)], lies ? LOST_LAUNCHES : LOST_FLIGHT, 1);
}

void correlate_gpu(struct process *p, const struct gpu *g)
{
	struct flight *c = &p->flight;
	struct launch *l = launch_find(c, g->epoch, g->correlation, g->graph_exec);
	struct launch from = {.correlation = g->correlation,
		.graph_exec = g->graph_exec,
		.epoch = g->epoch,
		.seen_ns = p->fold->now_ns,
		.list = LIST_WAITING};

	p->kernels += gpu_is_work(g->type);
	if (g->type == REC_OVERHEAD && g->correlation == 0) {
		count_unlaunched(p, &from, g, NULL);
		return;
	}
	if (l != NULL && l->list != LIST_WAITING) {
		launch_record(p, l, g);
		return;
	}
	if (l == NULL)
		l = launch_new(p, &from, LIST_WAITING);
	if (l == NULL) {
		count_unlaunched(p, &from, g, NULL);
		return;
	}
	if (!gpu_keep(p, l, g))
		count_unlaunched(p, &from, g, NULL);
}

/* --- time --- */

/* Whether a came before b; the counter wraps. */
static bool epoch_before(uint16_t a, uint16_t b)
{
	return a != b && (uint16_t)(b - a) < 0x8000;
}

/* A graph launch is complete when two flushes since its last record brought no more. */
static void graphs_pass(struct process *p)
{
	struct flight *c = &p->flight;
	struct launch *l, *next;
	uint32_t budget = PASS_BUDGET;

	for (l = flight_first(c, LIST_GRAPH); l != NULL && budget-- > 0; l = next) {
		next = flight_next(c, l);
		if (l->clock >= c->delivered_clock && !epoch_before(l->epoch, c->epoch))
			break;
		if (l->round != 0 && c->rounds >= l->round + GRAPH_ROUNDS)
			move_to(p, l, LIST_PASSED);
	}
}

void correlate_delivered(struct process *p, const struct rec_delivered *r, uint16_t epoch)
{
	struct flight *c = &p->flight;

	c->rounds++;
	c->epoch = epoch;
	c->delivered_clock = r->clock;
	if (r->pending == 0)
		c->idle_clock = r->clock;
	p->delivered_ns = clockmap_ns(&p->clock, r->clock);
	c->pass_due = true;
}

void correlate_gpu_off(struct process *p, uint64_t clock)
{
	struct flight *c = &p->flight;

	c->rounds += GRAPH_ROUNDS;
	c->delivered_clock = c->idle_clock = clock;
	c->pass_due = true;
}

/* A later flush left nothing pending: no record of it can come. */
static bool is_lost(const struct flight *c, const struct launch *l)
{
	return l->clock < c->idle_clock || epoch_before(l->epoch, c->epoch);
}

void correlate_sweep(struct process *p)
{
	struct flight *c = &p->flight;
	uint64_t now = p->fold->now_ns;
	uint32_t left = p->fold->limit.sweep;
	struct launch *l;

	while (left > 0 && (l = flight_first(c, LIST_JOINED)) != NULL)
		joined_count(p, l, &left);
	if (c->pass_due)
		graphs_pass(p);
	c->pass_due = false;
	while (left > 0 && (l = flight_first(c, LIST_WAITING)) != NULL &&
		now - l->seen_ns >= WAIT_NS)
		launch_give_up(p, l, LOST_LAUNCHES, &left);
	while (left > 0 && (l = flight_first(c, LIST_PASSED)) != NULL &&
		now - l->seen_ns >= WAIT_NS)
		launch_give_up(p, l, LOST_LAUNCHES, &left);
	while (left > 0 && (l = flight_first(c, LIST_OPEN)) != NULL &&
		now - l->seen_ns >= WAIT_NS && is_lost(c, l))
		launch_give_up(p, l, LOST_LAUNCHES, &left);
	while (left > 0 && (l = flight_first(c, LIST_GRAPH)) != NULL &&
		now - l->seen_ns >= WAIT_NS && is_lost(c, l) && l->round == 0)
		launch_give_up(p, l, LOST_LAUNCHES, &left);
	if (c->cap_launches > FLIGHT_KEPT && /* a burst is over */
		c->by_key.n == 0 && c->held_gpu == 0)
		flight_empty(c);
}

/* --- the end, of a session or of the job --- */

struct gone {
	uint32_t left;                           /* records that the tree may still take */
	uint64_t launches, undelivered, records; /* lost */
};

/* Takes the part out of one launch in flight. */
static void part_leaves(struct process *p, struct part *part, struct launch *l, struct gone *g)
{
	const struct flight *c = &p->flight;
	const uint32_t n = flight_records(c, l->records);
	uint32_t at;

	if ((l->parts & 1ull << part->slot) == 0)
		return;
	l->parts &= ~(1ull << part->slot);
	if (l->round == 0 && n == 0 && p->row.ended_ns != 0 && !is_lost(c, l))
		g->undelivered++;
	else
		g->launches += l->round == 0 && n == 0;
	if (l->round == 0 && n != 0) {
		part->session->row.matched++;
		part->session->dirty = true;
	}
	if (n > g->left) {
		g->records += n;
		return;
	}
	g->left -= n;
	for (at = l->records; at != 0; at = c->gpu[at - 1].next)
		count_one(part, l, &c->gpu[at - 1].gpu);
}

/* All that the part has in flight leaves at once, for this part alone. Records count up to its
 * share of what one entry may cost; a liar's are lost beyond it. */
void correlate_detach(struct process *p, struct part *part)
{
	struct flight *c = &p->flight;
	struct gone g = {.left = p->fold->limit.sweep / part->session->n_parts};
	struct launch *l;
	uint32_t list, at;

	MUST(part->attached && p->slot[part->slot] == part);
	g.left = g.left < DETACH_LEAST ? DETACH_LEAST : g.left;
	for (list = LIST_OPEN; list <= LIST_PASSED; list++)
		for (l = flight_first(c, list); l != NULL; l = flight_next(c, l))
			part_leaves(p, part, l, &g);
	if (part->gpu && c->waiting > g.left)
		g.records += c->waiting; /* an upper bound: some ran while it was not active */
	for (l = flight_first(c, LIST_WAITING); l != NULL && c->waiting <= g.left;
		l = flight_next(c, l))
		for (at = l->records; at != 0; at = c->gpu[at - 1].next)
			count_unlaunched(p, l, &c->gpu[at - 1].gpu, part);
	if (g.launches > 0)
		loss_part(part, LOST_LAUNCHES, g.launches);
	if (g.undelivered > 0)
		loss_part(part, LOST_UNDELIVERED, g.undelivered);
	if (g.records > 0)
		loss_part(part, LOST_FLIGHT, g.records);
	part->n_open = 0;
}

void correlate_leave(struct process *p)
{
	struct flight *c = &p->flight;
	uint32_t left = p->fold->limit.sweep;
	struct launch *l;

	while (left > 0 && (l = oldest(c, LEAVING)) != NULL)
		launch_give_up(p, l, is_lost(c, l) ? LOST_LAUNCHES : LOST_UNDELIVERED, &left);
}

bool correlate_has_many(const struct process *p)
{
	const uint32_t many = p->fold->limit.sweep / trees(p);

	return p->flight.by_key.n > many || p->flight.held_gpu > many;
}

void correlate_end(struct process *p)
{
	struct flight *c = &p->flight;
	uint32_t all = UINT32_MAX;
	struct launch *l;

	while ((l = flight_first(c, LIST_WAITING)) != NULL)
		launch_give_up(p, l, LOST_LAUNCHES, &all);
	MUST(c->waiting == 0);
}

/* --- restore --- */

struct launch *correlate_put(struct process *p, const struct launch *l)
{
	if (l->list >= LIST_FREE ||
		launch_find(&p->flight, l->epoch, l->correlation, l->graph_exec) != NULL)
		return NULL;
	correlate_begin(p);
	return launch_new(p, l, l->list);
}

bool correlate_put_gpu(struct process *p, struct launch *l, const struct gpu *g)
{
	return gpu_keep(p, l, g);
}
