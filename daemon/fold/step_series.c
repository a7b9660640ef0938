/* SPDX-License-Identifier: MIT. step_series.c: steps of a process in a session, in rows. */
#include "step_series.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "batch.h"
#include "loss.h"
#include "part.h"
#include "process.h"
#include "profile.h"
#include "session.h"
#include "state.h"

static struct step_series *step_series_of(struct part *part)
{
	if (part->steps != NULL || !process_has_room(part->process))
		return part->steps;
	part->steps = calloc(1, sizeof(*part->steps));
	if (part->steps == NULL)
		part->process->fold->no_memory = true;
	else
		part_grew(part, sizeof(*part->steps));
	return part->steps;
}

/* --- numbers of steps that go on */

/* STEP_NAMES: there are too many. */
static uint8_t place_of(struct step_series *s, uint32_t name)
{
	uint32_t i;

	for (i = 0; i < s->n_names && s->name[i] != name; i++)
		;
	if (i == s->n_names && i < STEP_NAMES)
		s->name[s->n_names++] = name;
	return (uint8_t)i;
}

void step_series_tell(struct part *part, const struct step_number *x)
{
	struct step_series *s = step_series_of(part);
	struct step_told *t;
	uint8_t name;

	name = s != NULL ? place_of(s, x->name) : STEP_NAMES;
	if (name == STEP_NAMES || !isfinite(x->v)) {
		note_count(part, NOTE_STEPS, 1);
		return;
	}
	for (t = s->told; t < s->told + s->n_told && (t->name != name || t->lane != x->lane); t++)
		;
	if (t == s->told + STEP_TOLD_MAX) {
		note_count(part, NOTE_STEPS, 1);
		return;
	}
	if (t == s->told + s->n_told) {
		*t = (struct step_told){.lane = x->lane, .name = name};
		s->n_told++;
	}
	t->v = x->kind == KIND_PROPERTY ? x->v : t->v + x->v;
	t->kind = x->kind;
	t->clock = x->clock;
}

/* --- rows */

static void names_of(const struct part *part, struct step_names *ret)
{
	const struct step_series *s = part->steps;
	uint32_t i;

	memset(ret, 0, sizeof(*ret));
	ret->n = s->n_names;
	for (i = 0; i < s->n_names; i++)
		(void)strncat(ret->name[i], part->process->metric_name[s->name[i]].text,
			STEP_NAME_BYTES - 1);
}

/* -ENOMEM. */
static int pack(
	const struct part *part, const struct step_point *point, uint32_t n, struct row_step *ret)
{
	struct step_names names;

	*ret = (struct row_step){.session = part->session->row.id,
		.process = part->process->row.id,
		.number = part->steps->number,
		.steps = part->steps->ended,
		.begin_ns = n > 0 ? point[0].begin_ns : 0,
		.end_ns = n > 0 ? point[n - 1].end_ns : 0};
	names_of(part, &names);
	return step_row_pack(&names, point, n, &ret->bytes, &ret->n);
}

static void seal(struct part *part)
{
	struct step_series *s = part->steps;
	struct row_step *row = &s->sealed[s->n_sealed];

	if (s->n_sealed == STEP_SEALED)
		return;
	if (pack(part, s->point, s->n, row) < 0) {
		part->process->fold->no_memory = true;
		return;
	}
	part->process->fold->fresh += row->n;
	s->n_sealed++;
	s->number++;
	s->n = 0;
}

static void put_next(struct part *part)
{
	struct step_series *s = part->steps;

	if (s->n == STEP_ROW_POINTS) /* there was no room for it */
		seal(part);
	if (s->n == STEP_ROW_POINTS)
		return;
	s->point[s->n++] = s->next;
	s->next = (struct step_point){.n = 0};
	if (s->n == STEP_ROW_POINTS)
		seal(part);
}

/* With what is not yet as wide as it must be: nothing else has it after a restart. */
static int pack_open(const struct part *part, struct row_step *ret)
{
	const struct step_series *s = part->steps;
	struct step_point *point = malloc((STEP_ROW_POINTS + 1) * sizeof(*point));
	uint32_t n = s->n;
	int r;

	if (point == NULL)
		return -ENOMEM;
	memcpy(point, s->point, n * sizeof(*point));
	if (s->next.n > 0 && n < STEP_ROW_POINTS)
		point[n++] = s->next;
	r = pack(part, point, n, ret);
	free(point);
	return r;
}

bool step_series_put(const struct part *part, struct batch *b)
{
	const struct step_series *s = part->steps;
	struct row_step *row;
	uint32_t i;

	if (s == NULL || !s->dirty)
		return true;
	for (i = 0; i < s->n_sealed; i++) {
		row = batch_step(b);
		if (row == NULL)
			return false;
		*row = s->sealed[i];
		row->bytes = malloc(row->n);
		if (row->bytes == NULL)
			return false;
		memcpy(row->bytes, s->sealed[i].bytes, row->n);
	}
	if (s->n_sealed > 0 && s->n == 0 && s->next.n == 0)
		return true;
	row = batch_step(b);
	return row != NULL && pack_open(part, row) == 0;
}

static void free_sealed(struct step_series *s)
{
	while (s->n_sealed > 0)
		free(s->sealed[--s->n_sealed].bytes);
}

void step_series_clean(struct part *part)
{
	if (part->steps == NULL)
		return;
	part->steps->dirty = false;
	free_sealed(part->steps);
}

void step_series_restore(struct part *part, uint32_t number, uint64_t ended)
{
	struct step_series *s = number == UINT32_MAX ? NULL : step_series_of(part);

	if (s == NULL || number < s->number)
		return;
	s->number = number + 1;
	s->ended = ended;
}

void step_series_free(struct part *part)
{
	if (part->steps != NULL)
		free_sealed(part->steps);
	free(part->steps);
	part->steps = NULL;
}

/* --- a step ends */

static bool has_steps(const struct step_series *s, uint32_t lane)
{
	uint32_t i;

	for (i = 0; i < s->n_lanes && s->lane[i] != lane; i++)
		;
	return i < s->n_lanes;
}

static void add_value(struct step_value *v, double x)
{
	if (!isfinite(x))
		return;
	v->least = v->n == 0 || x < v->least ? x : v->least;
	v->most = v->n == 0 || x > v->most ? x : v->most;
	v->n++;
	v->mean += x / v->n - v->mean / v->n; /* the difference may be none */
}

/* What is its own, and what threads without steps were told since the last one: summed where both are. */
static void take_told(struct part *part, const struct step_ended *x)
{
	struct step_series *s = part->steps;
	double v[STEP_NAMES] = {0};
	bool has[STEP_NAMES] = {false};
	uint32_t i, n = 0;

	for (i = 0; i < s->n_told; i++) {
		const struct step_told *t = &s->told[i];
		const bool own = t->lane == x->lane;

		if (!own && has_steps(s, t->lane)) {
			s->told[n++] = *t;
			continue;
		}
		if (own && t->clock < x->begin) { /* its step's end is missing */
			note_count(part, NOTE_STEPS, 1);
			continue;
		}
		v[t->name] = t->kind == KIND_PROPERTY ? t->v : v[t->name] + t->v;
		s->total[t->name] += t->kind == KIND_PROPERTY ? 0 : t->v;
		has[t->name] = true;
	}
	s->n_told = n;
	for (i = 0; i < STEP_NAMES; i++)
		if (has[i])
			add_value(&s->next.v[i], v[i]);
}

static uint32_t width_of(const struct step_series *s)
{
	const uint32_t k = s->number / STEP_ROWS;

	return k < 31 ? 1u << k : 1u << 31;
}

void step_series_end(struct part *part, const struct step_ended *x)
{
	struct step_series *s = step_series_of(part);
	struct step_point *p;

	if (s == NULL)
		return;
	if (!has_steps(s, x->lane) && s->n_lanes < STEP_LANES)
		s->lane[s->n_lanes++] = x->lane;
	p = &s->next;
	s->ended++;
	if (p->n == 0)
		*p = (struct step_point){.first = s->ended, .begin_ns = x->begin_ns};
	p->n++;
	p->took_ns += x->ns;
	p->begin_ns = x->begin_ns < p->begin_ns ? x->begin_ns : p->begin_ns;
	p->end_ns = x->end_ns > p->end_ns ? x->end_ns : p->end_ns;
	take_told(part, x);
	s->dirty = true;
	if (p->n >= width_of(s))
		put_next(part);
}

void step_series_skip(struct part *part, uint64_t n)
{
	struct step_series *s = step_series_of(part);

	if (s == NULL || n == 0)
		return;
	if (s->next.n > 0) /* no point is of steps on both sides */
		put_next(part);
	s->ended += n;
	s->dirty = true;
}
