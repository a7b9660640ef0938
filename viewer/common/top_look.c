/* SPDX-License-Identifier: MIT. top_look.c: what the daemon says of a live session at one instant. */
#include "top_look.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arena.h"
#include "gpu_terms.h"
#include "timeline.h"
#include "top_memory.h"

#define PARTS_MAX 1024u

static int by_path(const void *a, const void *b)
{
	const struct look_cell *x = a, *y = b;
	const int d = strcmp(x->path, y->path);

	return d != 0 ? d : (int)x->class - (int)y->class;
}

static const msgpack_object *list_of(const msgpack_object *map, const char *key, uint32_t *ret_n)
{
	const msgpack_object *o = wire_get(map, key);

	*ret_n = o != NULL && o->type == MSGPACK_OBJECT_ARRAY ? o->via.array.size : 0;
	return *ret_n > 0 ? o->via.array.ptr : NULL;
}

/* --- taking */

/* The path's parts, if they are what the path has. */
static int take_parts(struct arena *a, const msgpack_object *map, struct look_cell *c)
{
	uint32_t n, i, *part;
	const msgpack_object *from = list_of(map, "parts", &n);
	const size_t bytes = strlen(c->path);
	size_t at = 0;

	if (n == 0 || n > PARTS_MAX)
		return 0;
	part = arena_take(a, n * sizeof(*part));
	if (part == NULL)
		return -ENOMEM;
	for (i = 0; i < n; i++) {
		if (from[i].type != MSGPACK_OBJECT_POSITIVE_INTEGER || from[i].via.u64 > bytes)
			return 0;
		part[i] = (uint32_t)from[i].via.u64;
		if (i > 0 && (at >= bytes || c->path[at++] != '/'))
			return 0;
		at += part[i];
	}
	if (at != bytes) /* a path that was cut, too */
		return 0;
	c->part = part;
	c->n_parts = n;
	return 0;
}

static int take_cell(struct arena *a, const msgpack_object *map, struct look_cell *ret)
{
	const msgpack_object *path = wire_get(map, "path"), *hist = wire_get(map, "hist");
	const bool text = path != NULL && path->type == MSGPACK_OBJECT_STR;
	uint8_t *packed;

	*ret = (struct look_cell){.class = gpu_class_known(wire_u64_or(map, "class", 0)),
		.count = wire_u64_or(map, "count", 0),
		.sum_ns = wire_u64_or(map, "sum_ns", 0)};
	ret->path = arena_text(a, text ? path->via.str.ptr : "",
		text ? strnlen(path->via.str.ptr, path->via.str.size) : 0);
	if (ret->path == NULL)
		return -ENOMEM;
	if (hist != NULL && hist->type == MSGPACK_OBJECT_BIN && hist->via.bin.size > 0) {
		packed = arena_take(a, hist->via.bin.size);
		if (packed == NULL)
			return -ENOMEM;
		memcpy(packed, hist->via.bin.ptr, hist->via.bin.size);
		ret->hist = packed;
		ret->hist_bytes = hist->via.bin.size;
	}
	return take_parts(a, map, ret);
}

static int take_cells(struct look *l, const msgpack_object *answer)
{
	uint32_t n, i;
	const msgpack_object *from = list_of(answer, "cells", &n);
	int r = 0;

	l->cell = arena_take(l->arena, (n > 0 ? n : 1) * sizeof(*l->cell));
	if (l->cell == NULL)
		return -ENOMEM;
	for (i = 0; i < n && r == 0; i++)
		r = take_cell(l->arena, &from[i], &l->cell[i]);
	l->n = n;
	if (r == 0)
		qsort(l->cell, l->n, sizeof(*l->cell), by_path);
	return r;
}

static int by_rank(const void *a, const void *b)
{
	const struct look_job *x = a, *y = b;

	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return x->pid < y->pid ? -1 : x->pid > y->pid;
}

static int take_jobs(struct look *l, const msgpack_object *answer)
{
	uint32_t n, i;
	const msgpack_object *from = list_of(answer, "jobs", &n);

	l->job = arena_take(l->arena, LOOK_JOBS * sizeof(*l->job));
	if (l->job == NULL)
		return -ENOMEM;
	for (i = 0; i < n; i++) {
		bool member = true; /* an older daemon does not say */

		(void)wire_get_bool(&from[i], "member", &member);
		if (!member)
			continue;
		l->drops += wire_u64_or(&from[i], "drops", 0);
		l->resident += wire_u64_or(&from[i], "resident", 0);
		if (l->n_jobs < LOOK_JOBS)
			l->job[l->n_jobs++] =
				(struct look_job){(uint32_t)wire_u64_or(&from[i], "pid", 0),
					wire_i64_or(&from[i], "rank", -1)};
	}
	qsort(l->job, l->n_jobs, sizeof(*l->job), by_rank);
	return 0;
}

static struct look_device *device_of(struct look *l, const struct look_device *d)
{
	uint32_t i;

	for (i = 0; i < l->n_devices; i++)
		if (l->device[i].known == d->known &&
			(d->known ? memcmp(l->device[i].uuid, d->uuid, 16) == 0
				  : l->device[i].number == d->number))
			return &l->device[i];
	if (l->n_devices == LOOK_DEVICES)
		return NULL;
	l->device[l->n_devices] = *d;
	return &l->device[l->n_devices++];
}

static void take_device(struct look_device *to, const msgpack_object *from)
{
	const msgpack_object *reading = wire_get(from, "reading");
	uint32_t q;

	to->busy_ns += wire_u64_or(from, "busy_ns", 0);
	to->has_parts = to->jobs++ == 0 && wire_get(from, "compute_ns") != NULL;
#define X(name, column, ...) to->part_ns[PART_##name] = wire_u64_or(from, #column, 0);
	GPU_PARTS_STORED(X)
#undef X
	for (q = 0; q < DEVICE_N; q++)
		to->reading[q] =
			reading == NULL
				? (double)NAN
				: wire_f64_or(reading, device_words((enum device_quantity)q)->name,
					  (double)NAN);
}

static int take_devices(struct look *l, const msgpack_object *answer)
{
	uint32_t n, i;
	const msgpack_object *from = list_of(answer, "devices", &n);
	struct look_device d, *to;

	l->device = arena_take(l->arena, LOOK_DEVICES * sizeof(*l->device));
	if (l->device == NULL)
		return -ENOMEM;
	for (i = 0; i < n; i++) {
		d = (struct look_device){.number = (uint32_t)wire_u64_or(&from[i], "number", 0)};
		d.known = wire_get(&from[i], "uuid") != NULL &&
			  wire_get_bin(&from[i], "uuid", d.uuid, 16) == 0;
		(void)wire_text(&from[i], "name", d.name, sizeof(d.name));
		to = device_of(l, &d);
		if (to != NULL)
			take_device(to, &from[i]);
	}
	return 0;
}

static void take_told(struct look *l, const msgpack_object *answer)
{
	uint32_t n, i;
	const msgpack_object *from = list_of(answer, "told", &n);
	enum step_rate rate;
	char name[64];

	for (i = 0; i < n; i++) {
		*name = '\0';
		(void)wire_text(&from[i], "name", name, sizeof(name));
		rate = step_rate_of(name);
		if (rate < RATE_MAX)
			l->told[rate] += wire_f64_or(&from[i], "sum", 0);
	}
}

double look_rate(const struct look *before, const struct look *now, enum step_rate rate)
{
	const double was = before != NULL ? before->told[rate] : 0,
		     seconds = look_seconds(before, now);

	return now->told[rate] > 0 && now->told[rate] >= was && seconds > 0
		       ? (now->told[rate] - was) / seconds
		       : (double)NAN;
}

void look_rate_words(const struct look *before, const struct look *now, look_word_fn *fn, void *arg)
{
	const struct {
		enum step_rate rate;
		const char *unit;
	} shown[] = {{RATE_SAMPLES, "samples/s"}, {RATE_TOKENS, "tokens/s"}};
	char word[48];
	uint32_t i;
	double v;

	for (i = 0; i < sizeof(shown) / sizeof(*shown); i++) {
		v = look_rate(before, now, shown[i].rate);
		if (isnan(v))
			continue;
		(void)snprintf(word, sizeof(word), "%.*f %s",
			v < 10      ? 2
			: v < 10000 ? 1
				    : 0,
			v, shown[i].unit);
		if (!fn(arg, word))
			return;
	}
}

int look_take(const msgpack_object *answer, struct look *ret)
{
	struct look l = {.arena = arena_new(),
		.id = wire_i64_or(answer, "id", 0),
		.now_ns = wire_u64_or(answer, "now_ns", 0),
		.duration_ns = wire_u64_or(answer, "duration_ns", 0),
		.cost_ns = wire_u64_or(answer, "cost_ns", 0),
		.left_out = wire_u64_or(answer, "left_out", 0)};
	int r = l.arena == NULL ? -ENOMEM : take_cells(&l, answer);

	if (r == 0)
		r = take_jobs(&l, answer);
	if (r == 0)
		r = take_devices(&l, answer);
	if (r == 0)
		take_told(&l, answer);
	if (r == 0)
		r = look_memory_take(&l, answer);
	(void)wire_text(answer, "session", l.name, sizeof(l.name));
	(void)wire_text(answer, "state", l.state, sizeof(l.state));
	if (r < 0)
		look_free(&l);
	else
		*ret = l;
	return r;
}

void look_free(struct look *l)
{
	arena_free(l->arena);
	*l = (struct look){.n = 0};
}

/* --- differences */

static const struct look_cell *find(const struct look *before, const struct look_cell *c)
{
	return before == NULL || before->n == 0
		       ? NULL
		       : bsearch(c, before->cell, before->n, sizeof(*c), by_path);
}

/* A sum that fell is of other jobs, since one that has ended is left out: it counts from zero. */
static const struct look_cell *basis(const struct look *before, const struct look_cell *c)
{
	const struct look_cell *was = find(before, c);

	return was == NULL || was->sum_ns > c->sum_ns || was->count > c->count ? NULL : was;
}

struct look_change look_since(const struct look *before, const struct look_cell *c)
{
	const struct look_cell *was = basis(before, c);

	if (was == NULL)
		return (struct look_change){c->count, c->sum_ns};
	return (struct look_change){c->count - was->count, c->sum_ns - was->sum_ns};
}

bool look_durations(const struct look *before, const struct look_cell *c, struct hist_counts *ret)
{
	const struct look_cell *was = basis(before, c);
	struct hist_counts *old;
	bool known = c->hist_bytes > 0 && hist_unpack(c->hist, c->hist_bytes, ret);
	uint32_t i;

	if (!known || was == NULL || was->hist_bytes == 0)
		return known;
	old = malloc(sizeof(*old));
	known = old != NULL && hist_unpack(was->hist, was->hist_bytes, old);
	for (i = 0; known && i < old->n; i++) {
		const uint32_t at = old->first + i;

		if (old->count[at] == 0)
			continue;
		known = at >= ret->first && at < ret->first + ret->n &&
			ret->count[at] >= old->count[at];
		if (known)
			ret->count[at] -= old->count[at];
	}
	free(old);
	return known;
}

static bool is_step(const struct look_cell *c)
{
	return c->class == CLASS_CPU && c->n_parts > 0 &&
	       timeline_is_step(c->path + strlen(c->path) - c->part[c->n_parts - 1]);
}

bool look_steps(const struct look *before, const struct look *now, uint64_t *ret)
{
	uint32_t i;
	bool any = false;

	*ret = 0;
	for (i = 0; i < now->n; i++) {
		if (!is_step(&now->cell[i]))
			continue;
		any = true;
		*ret += look_since(before, &now->cell[i]).count;
	}
	return any;
}

bool look_has_gpu(const struct look *l)
{
	uint32_t i;

	for (i = 0; i < l->n && l->cell[i].class == CLASS_CPU; i++)
		;
	return i < l->n;
}

double look_seconds(const struct look *before, const struct look *now)
{
	return before == NULL                 ? (double)now->duration_ns * 1e-9
	       : now->now_ns > before->now_ns ? (double)(now->now_ns - before->now_ns) * 1e-9
					      : 0;
}

const struct look_device *look_device_in(const struct look *l, const struct look_device *d)
{
	uint32_t i;

	for (i = 0; l != NULL && i < l->n_devices; i++)
		if (l->device[i].known == d->known &&
			(d->known ? memcmp(l->device[i].uuid, d->uuid, 16) == 0
				  : l->device[i].number == d->number))
			return &l->device[i];
	return NULL;
}

double look_busy(const struct look *before, const struct look *now, uint32_t device)
{
	const struct look_device *d = &now->device[device], *old = look_device_in(before, d);
	const double seconds = look_seconds(before, now);
	const uint64_t was = old != NULL ? old->busy_ns : 0;
	double share;

	if (seconds <= 0 || d->busy_ns < was)
		return 0;
	share = (double)(d->busy_ns - was) * 1e-9 / seconds;
	return share < 1 ? share : 1; /* several jobs may share it */
}
