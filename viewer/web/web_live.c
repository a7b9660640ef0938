/* SPDX-License-Identifier: MIT. web_live.c: what a session did since it was looked at before. */
#include "web_live.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "flat.h"
#include "print_json.h"
#include "web_ask.h"

struct web_look {
	struct profile *p; /* f borrows its names */
	struct flat *f;    /* NULL: nothing has run yet; by name */
	uint64_t at_ns, steps;
};

static void look_fini(struct web_look *l)
{
	flat_free(l->f);
	profile_free(l->p);
	*l = (struct web_look){0};
}

void web_look_free(struct web_look *l)
{
	if (l == NULL)
		return;
	look_fini(l);
	free(l);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int look_take(struct web_ask *a, struct web_look *ret)
{
	struct view *v = NULL;
	int r = web_load(a, a->id, &ret->p);

	if (r < 0)
		return r;
	r = names_read(a->run->print.names, ret->p);
	if (r == 0)
		r = view_new(ret->p, &v);
	if (r == 0)
		r = flat_new(v, FLAT_BY_name, &ret->f);
	view_free(v);
	if (r < 0 && r != -ENODATA)
		return err_set(&a->run->e, r, "out of memory");
	ret->at_ns = now_ns();
	ret->steps = web_steps_done(ret->p);
	return 0;
}

/* --- what was done since */

struct done {
	const struct flat_row *row;
	double ns, count;
};

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct flat_row *)a)->name, ((const struct flat_row *)b)->name);
}

static int by_time(const void *a, const void *b)
{
	const struct done *x = a, *y = b;

	if (x->ns < y->ns || x->ns > y->ns)
		return x->ns < y->ns ? 1 : -1;
	return strcmp(x->row->name, y->row->name);
}

static uint32_t rows_since(const struct flat *now, const struct flat *before, struct done *ret)
{
	const struct flat_row *was;
	uint32_t i, n = 0;

	for (i = 0; i < now->n; i++) {
		const struct flat_row *r = &now->row[i];

		was = before == NULL ? NULL
				     : bsearch(r, before->row, before->n, sizeof(*r), by_name);
		ret[n] = (struct done){r, r->sum_ns - (was != NULL ? was->sum_ns : 0),
			r->count - (was != NULL ? was->count : 0)};
		n += ret[n].ns > 0 || ret[n].count > 0;
	}
	if (n > 1)
		qsort(ret, n, sizeof(*ret), by_time);
	return n;
}

static void put_top(
	struct text *t, struct web_ask *a, struct web_look *now, const struct web_look *before)
{
	struct done *done = now->f == NULL ? NULL : calloc(now->f->n + (size_t)1, sizeof(*done));
	uint32_t i, n = done == NULL ? 0 : rows_since(now->f, before->f, done);

	json_in(t, "top", '[');
	for (i = 0; i < n && i < LIVE_TOP; i++) {
		json_open(t, '{');
		json_key_str(t, "name", names_show(a->run->print.names, done[i].row->name));
		json_key_str(t, "class", class_word(done[i].row->class));
		json_key_f64(t, "time", done[i].ns);
		json_key_f64(t, "count", done[i].count);
		json_key_f64(t, "p50", done[i].row->p50_ns);
		json_key_f64(t, "p99", done[i].row->p99_ns);
		json_close(t, '}');
	}
	json_close(t, ']');
	free(done);
	if (now->f != NULL)
		qsort(now->f->row, now->f->n, sizeof(*now->f->row), by_name);
}

static uint64_t busy_ns(const struct profile *p)
{
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; p != NULL && i < p->n_devices; i++)
		sum += p->device[i].busy_ns;
	return sum;
}

static void put_frame(
	struct text *t, struct web_ask *a, struct web_look *now, const struct web_look *before)
{
	const struct profile *p = now->p;
	const double dt = before->at_ns != 0 ? (double)(now->at_ns - before->at_ns) : (double)NAN;
	const double busy = (double)(busy_ns(p) - busy_ns(before->p));

	json_key_str(t, "state", p->head.state);
	json_key_u64(t, "duration_ns", p->head.duration_ns);
	json_key_f64(t, "dt_ns", dt);
	json_key_u64(t, "steps", now->steps);
	json_key_f64(t, "step_rate", (double)(now->steps - before->steps) * 1e9 / dt);
	json_key_f64(t, "busy", p->n_devices > 0 ? busy / dt / p->n_devices : (double)NAN);
	json_key_u64(t, "drops", profile_lost(&p->head, false));
	json_key_f64(t, "overhead", p->head.overhead);
	put_top(t, a, now, before);
}

/* --- a frame */

static void look(struct web_ask *a, struct web_look *before, struct text *t, bool *ret_over)
{
	struct web_look now = {0};
	const int r = look_take(a, &now);

	text_char(t, '{');
	if (r == 0)
		put_frame(t, a, &now, before);
	*ret_over = r == 0 && profile_is_over(&now.p->head);
	/* The words of a daemon that does not answer stand among the warnings. */
	json_key_str(t, "away",
		r < 0                    ? a->run->e.text
		: a->run->warnings.n > 0 ? a->run->warnings.text[0]
					 : NULL);
	text_char(t, '}');
	if (r < 0) {
		look_fini(&now);
		return;
	}
	look_fini(before);
	*before = now;
}

void web_live_look(
	struct web *w, const char *id, struct web_look **l, struct text *ret_frame, bool *ret_over)
{
	struct web_ask *a = web_ask_new(w, id);

	*ret_over = false;
	if (*l == NULL)
		*l = calloc(1, sizeof(**l));
	if (a != NULL && *l != NULL)
		look(a, *l, ret_frame, ret_over);
	else
		text_str(ret_frame, "{\"away\":\"out of memory\"}");
	web_ask_free(a);
}
