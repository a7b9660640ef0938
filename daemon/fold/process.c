/* SPDX-License-Identifier: MIT. process.c: the processes whose rings were adopted. Owns their
 * tables, nodes, lanes and launches in flight. */
#include "process.h"

#include <stdlib.h>
#include <string.h>

#include "arena.h"
#include "clockmap.h"
#include "nodehash.h"
#include "record.h"
#include "ring.h"
#include "state.h"
#include "sums.h"

#define PROCESS_SHARE 192u /* each has one part of so many, whatever the others use */

struct process *process_find(const struct fold *f, const uint8_t ring[16])
{
	uint32_t i;

	MUST_FOLD(f);
	for (i = f->n_processes; i-- > 0;)
		if (hash_same(f->process[i]->row.ring, ring))
			return f->process[i];
	return NULL;
}

struct process *process_by_id(const struct fold *f, int64_t id)
{
	uint32_t i;

	for (i = f->n_processes; i-- > 0;)
		if (f->process[i]->row.id == id)
			return f->process[i];
	return NULL;
}

bool user_join(struct process *p)
{
	struct fold *f = p->fold;
	uint32_t i;

	for (i = 0; i < f->n_users && f->user[i]->uid != p->row.uid; i++)
		;
	if (i == f->n_users) {
		if (!ROOM_FOR(f->user, f->cap_users, i))
			return false;
		f->user[i] = calloc(1, sizeof(**f->user));
		if (f->user[i] == NULL)
			return false;
		f->user[i]->uid = p->row.uid;
		f->n_users++;
	}
	p->user = f->user[i];
	p->user->n++;
	return true;
}

static void weigh_anew(struct process *p, const uint64_t now[WEIGHT_MAX])
{
	uint32_t k;

	for (k = 0; k < WEIGHT_MAX; k++) {
		MUST(p->fold->held[k] >= p->held[k] && p->user->held[k] >= p->held[k]);
		p->fold->held[k] += now[k] - p->held[k];
		p->user->held[k] += now[k] - p->held[k];
		p->held[k] = now[k];
	}
}

void user_leave(struct process *p)
{
	struct fold *f = p->fold;
	struct user *u = p->user;
	uint32_t i;

	if (u == NULL)
		return;
	MUST(u->n > 0);
	weigh_anew(p, (uint64_t[WEIGHT_MAX]){0});
	p->user = NULL;
	if (--u->n > 0)
		return;
	MUST(u->held[WEIGHT_REST] == 0 && u->held[WEIGHT_FLIGHT] == 0 && u->sealed == 0);
	for (i = 0; f->user[i] != u; i++)
		;
	f->user[i] = f->user[--f->n_users];
	free(u);
}

uint64_t user_even(const struct fold *f, uint64_t bytes)
{
	return bytes / (f->n_users + 1);
}

bool process_lanes(struct process *p, uint32_t n)
{
	bool ok;

	MUST(n <= p->row.n_lanes);
	ok = ZEROED_FOR(p->lane, p->cap_lanes, n);
	p->fold->no_memory |= !ok;
	return ok;
}

void process_use_clock(struct process *p)
{
	const struct fold *f = p->fold;

	if (p->row.clock == RING_CLOCK_MONOTONIC)
		clockmap_use(&p->clock, NULL, 0);
	else
		clockmap_use(&p->clock, f->tsc.n >= 2 ? &f->tsc : &p->own, p->row.tsc_khz);
}

/* The daemon's anchors, or the ring's own if there are none. */
static const struct anchors *wall_anchors(const struct process *p)
{
	const struct fold *f = p->fold;

	return f->tsc.n > 0 ? &f->tsc : f->mono.n > 0 ? &f->mono : &p->own;
}

uint64_t real_to_mono(const struct process *p, uint64_t real_ns)
{
	int64_t ns;

	real_ns = real_ns > CLOCK_NS_MAX ? CLOCK_NS_MAX : real_ns;
	ns = (int64_t)real_ns - anchors_offset(wall_anchors(p), real_ns);
	return ns < 0 ? 0 : (uint64_t)ns;
}

uint64_t mono_to_real(const struct fold *f, uint64_t mono_ns)
{
	const struct anchors *a = f->tsc.n > 0 ? &f->tsc : &f->mono;

	if (a->n == 0)
		return mono_ns;
	return mono_ns + (a->v[a->n - 1].real_ns - a->v[a->n - 1].mono_ns);
}

void process_weigh(struct process *p)
{
	const struct flight *c = &p->flight;
	uint64_t now[WEIGHT_MAX];

	now[WEIGHT_REST] = arena_bytes(p->arena) + p->cap_names * sizeof(*p->name) +
			   p->cap_paths * sizeof(*p->path) + p->cap_configs * sizeof(*p->config) +
			   p->cap_nodes * (sizeof(*p->node) + sizeof(*p->last_child)) +
			   p->cap_children * sizeof(*p->child) + p->cap_lanes * sizeof(*p->lane) +
			   p->cap_sums * sizeof(*p->sum) + table_bytes(&p->sum_by_place) +
			   table_bytes(&p->node_by_hash) + table_bytes(&p->child_by_key) +
			   p->tree_bytes;
	now[WEIGHT_FLIGHT] = c->cap_launches * sizeof(*c->launch) + c->cap_gpu * sizeof(*c->gpu) +
			     table_bytes(&c->by_key);
	weigh_anew(p, now);
}

/* Of either kind: one user gets three quarters of the ceiling at most, and an even share of it whatever
 * the others have. Over the ceiling, up to a quarter more, each process may still grow to its even
 * share, and always to a least: whoever comes late and needs little has it. */
static bool has_room(struct process *p, enum weight kind)
{
	const struct fold *f = p->fold;
	const uint64_t most = f->limit.bytes, quarter = most / 4;
	uint64_t own, all, users;

	process_weigh(p);
	own = p->held[kind];
	users = p->user->held[kind];
	all = f->held[kind] + (kind == WEIGHT_REST ? f->waiting : 0);
	return f->restoring || own < most / PROCESS_SHARE || (all < most && users < 3 * quarter) ||
	       (f->n_users > 1 && users < user_even(f, most)) ||
	       (all < most + quarter && own < most / (f->n_processes + 1));
}

bool process_has_room(struct process *p)
{
	return has_room(p, WEIGHT_REST);
}

bool process_has_room_in_flight(struct process *p)
{
	return has_room(p, WEIGHT_FLIGHT);
}
