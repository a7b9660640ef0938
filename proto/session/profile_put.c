/* SPDX-License-Identifier: MIT. profile_put.c: what was read of a stored session becomes the values
 * of a profile. */
#include "profile_put.h"

#include <stdlib.h>
#include <string.h>

#include "session_terms.h"

/* The same metric of the same node from another process or segment. */
static struct value merged(const struct value *a, const struct value *b, uint8_t kind)
{
	struct value sum = *b;

	if (a->type == VALUE_NONE || kind == KIND_PROPERTY || a->type == VALUE_STR ||
		b->type == VALUE_STR)
		return sum;
	if (a->type == VALUE_I64 && b->type == VALUE_I64) {
		if (!__builtin_add_overflow(a->i, b->i, &sum.i))
			return sum;
	}
	sum.type = VALUE_F64;
	sum.f = (a->type == VALUE_I64 ? (double)a->i : a->f) +
		(b->type == VALUE_I64 ? (double)b->i : b->f);
	return sum;
}

int load_columns(struct tree_load *t)
{
	static const struct profile_metric columns[COL_MAX] = {
#define X(id, name, kind) {name, kind},
		COLUMNS(X)
#undef X
	};
	bool *const has = t->has;
	uint32_t i, k;

	has[COL_UNTIMED] &= t->l->p->head.files == MODE_NONE;
	has[COL_COUNT] = has[COL_TIME];
	has[COL_DEVICE_ID] = has[COL_DEVICE_TYPE] =
		(has[COL_TIME] || has[COL_COPY_TIME]) && !load_is_brief(t->l->select);
	has[COL_COPIES] = has[COL_COPY_TIME];
	has[COL_COPY_BYTES] = has[COL_COPY_TIME] && !load_is_brief(t->l->select);
	has[COL_CALLS] = has[COL_CPU_TIME];
	for (k = 0; k < CALLS_MAX; k++)
		has[COL_SYNCS + 2 * k] = has[COL_SYNC_TIME + 2 * k];
	for (i = 0; i < COL_MAX; i++) {
		t->column[i] = PROFILE_NONE;
		if (!has[i])
			continue;
		t->column[i] = profile_add_metric(t->l->p, columns[i].name, columns[i].kind);
		if (t->column[i] == PROFILE_NONE)
			return load_no_memory(t);
	}
	return 0;
}

static struct value *value_at(struct tree_load *t, uint32_t node, uint32_t metric)
{
	return &t->l->p->value[(size_t)node * t->l->p->n_metrics + metric];
}

/* A value that the job itself gave under one of our names stays: it is what the job measured. */
static void put(struct tree_load *t, const struct slot *s, uint32_t c, uint64_t v)
{
	struct value *at =
		t->column[c] == PROFILE_NONE ? NULL : value_at(t, s->local, t->column[c]);

	/* Not read where nothing can be yet: a page that is only written is mapped once. */
	if (at != NULL && (t->n_user == 0 || at->type == VALUE_NONE))
		*at = (struct value){.type = VALUE_U64, .u = v};
}

static void put_device(struct tree_load *t, const struct slot *s)
{
	const struct share *h, *most = s->share;
	const struct profile_device *d;

	if (most == NULL)
		return;
	for (h = most->next; h != NULL; h = h->next)
		if (h->ns > most->ns)
			most = h;
	d = &t->l->p->device[t->l->device[most->device].merged];
	*value_at(t, s->local, t->column[COL_DEVICE_ID]) =
		(struct value){.type = VALUE_STR, .s = d->id};
	*value_at(t, s->local, t->column[COL_DEVICE_TYPE]) =
		(struct value){.type = VALUE_STR, .s = d->type};
}

static void put_slot(struct tree_load *t, const struct slot *s)
{
	uint32_t k;

	t->l->p->node[s->local].class = s->class;
	if (s->has_gpu) {
		put(t, s, COL_TIME, s->time);
		put(t, s, COL_COUNT, s->count);
	}
	if (s->rare != NULL && s->rare->untimed > 0)
		put(t, s, COL_UNTIMED, s->rare->untimed);
	if (s->rare != NULL && s->rare->has_copy) {
		put(t, s, COL_COPY_TIME, s->rare->copy_time);
		put(t, s, COL_COPIES, s->rare->copies);
		put(t, s, COL_COPY_BYTES, s->rare->bytes);
	}
	for (k = 0; s->rare != NULL && k < CALLS_MAX; k++) {
		if (!s->rare->calls[k].has)
			continue;
		put(t, s, COL_SYNC_TIME + 2 * k, s->rare->calls[k].ns);
		put(t, s, COL_SYNCS + 2 * k, s->rare->calls[k].n);
	}
	if (s->has_cpu) {
		put(t, s, COL_CPU_TIME, s->cpu);
		put(t, s, COL_CALLS, s->calls);
	}
	put_device(t, s);
}

int load_values(struct tree_load *t)
{
	struct profile *p = t->l->p;
	struct slot *s;
	uint32_t i;

	for (i = 0; i < t->n_user; i++) {
		struct value *v = value_at(t, t->slot[t->user[i].slot].local, t->user[i].metric);

		*v = merged(v, &t->user[i].v, p->metric[t->user[i].metric].kind);
	}
	if (!t->l->select->lean) {
		p->durations = malloc(p->n_nodes * sizeof(*p->durations));
		if (p->durations == NULL)
			return load_no_memory(t);
		for (i = 0; i < p->n_nodes; i++)
			p->durations[i] = (struct profile_durations){.min_ns = UINT64_MAX};
	}
	for (s = t->slot; s < t->slot + t->n; s++) {
		put_slot(t, s);
		if (p->durations != NULL && s->durations != NULL)
			p->durations[s->local] = s->durations->sum;
	}
	return 0;
}
