/* SPDX-License-Identifier: MIT. facts.c: a tree added up for the rules, and what is read beside it. */
#include "facts.h"

#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "family.h"
#include "metrics.h"
#include "path_end.h"
#include "session_terms.h"
#include "spans.h"
#include "step_pace.h"
#include "table.h"
#include "timeline.h"
#include "warm_up.h"
#include "window.h"

#define SHARING                                                                            \
	"SELECT max(n) FROM (SELECT count(DISTINCT b.process) n FROM busy b JOIN device d" \
	" ON d.process = b.process AND d.device = b.device WHERE b.session = ?1 AND"       \
	" b.busy_ns > 0 GROUP BY d.uuid)"
#define USED                                                                                \
	"SELECT sum(n) FROM (SELECT max(last_ns) - min(first_ns) n FROM busy WHERE session" \
	" = ?1 AND busy_ns > 0 AND first_ns > 0 GROUP BY process)"
#define GPU_IN_STEPS 0.8 /* so much of its work: they tell how busy it was */

/* --- the tree */

static double number(const struct profile *p, uint32_t node, uint32_t metric)
{
	const double v = metric == PROFILE_NONE ? 0 : value_number(profile_value(p, node, metric));

	return v > 0 && isfinite(v) ? v : 0; /* a job may tell anything under our names */
}

static bool is_step(const struct facts *f, uint32_t node)
{
	const struct profile *p = f->p;
	enum path_end_is is = PATH_END_MORE;
	struct path_end e;
	uint32_t i;

	if (f->scope == NULL)
		return timeline_is_step(p->node[node].name);
	e = path_end_of(f->scope);
	for (i = node; is == PATH_END_MORE && i != 0; i = p->node[i].parent)
		if (i == node || node_is_scope(p->node[i].kind))
			is = path_end_take(&e, p->node[i].name);
	return is == PATH_END_YES;
}

static void own_numbers(struct facts *f)
{
	const struct profile *p = f->p;
	const uint32_t cpu = profile_find_metric(p, "cpu_time (ns)"),
		       calls = profile_find_metric(p, "calls"),
		       time = profile_find_metric(p, "time (ns)"),
		       count = profile_find_metric(p, "count"),
		       copy = profile_find_metric(p, "copy_time (ns)"),
		       copies = profile_find_metric(p, "copies"),
		       sync = profile_find_metric(p, "sync_time (ns)"),
		       syncs = profile_find_metric(p, "syncs");
	uint32_t i;

	for (i = 0; i < p->n_nodes; i++) {
		struct fact_node *n = &f->node[i];
		const uint8_t class = p->node[i].class;

		*n = (struct fact_node){.cpu_ns = number(p, i, cpu),
			.calls = number(p, i, calls),
			.gpu_ns = number(p, i, time) + number(p, i, copy),
			.gpu_count = number(p, i, count) + number(p, i, copies),
			.sync_ns = number(p, i, sync)};
		if (class == CLASS_ALLOC || class == CLASS_FREE) {
			n->alloc_ns = n->sync_ns;
			n->allocs = number(p, i, syncs);
		}
		if (class == CLASS_REGISTER) {
			n->pin_ns = n->sync_ns;
			n->pins = number(p, i, syncs);
		}
		n->wait_ns = n->sync_ns - n->alloc_ns - n->pin_ns;
		n->step = i == 0 ? PROFILE_NONE : f->node[p->node[i].parent].step;
		if (n->step == PROFILE_NONE && n->calls > 0 && f->every_ns == 0 && is_step(f, i))
			n->step = i;
		f->has_cpu |= n->cpu_ns > 0;
	}
	f->has_sync = sync != PROFILE_NONE ||
		      (p->head.uuid != NULL && (p->head.row.switches & SWITCH_SYNC) != 0);
}

struct same_name {
	const struct profile *p;
	const char *name;
};

static bool is_same(const void *arg, uint32_t at)
{
	const struct same_name *s = arg;

	return strcmp(s->p->node[at].name, s->name) == 0;
}

static uint32_t hash_of(const char *name)
{
	uint64_t h = 0xcbf29ce484222325u;

	for (; *name != '\0'; name++)
		h = (h ^ (unsigned char)*name) * 0x100000001b3u;
	return table_mix(h, 0);
}

/* Each name is looked up once: that takes microseconds, and a kernel stands on thousands of paths. */
static int find_families(struct facts *f)
{
	const struct profile *p = f->p;
	struct table seen = {0};
	uint32_t i, at, hash;
	int r = 0;

	for (i = 1; i < p->n_nodes && r != -ENOMEM; i++) {
		if (!gpu_class_is_kernel(p->node[i].class))
			continue;
		hash = hash_of(p->node[i].name);
		at = table_find(&seen, hash, is_same, &(struct same_name){p, p->node[i].name});
		f->node[i].family = at != TABLE_NONE ? f->node[at].family
						     : family_of(p->node[i].name, p->node[i].class);
		if (at == TABLE_NONE)
			r = table_add(&seen, hash, i); /* -ENOSPC: it is looked up again */
	}
	table_fini(&seen);
	return r == -ENOMEM ? r : 0;
}

/* A parent comes before its children. */
static void add_up(struct facts *f)
{
	const struct profile *p = f->p;
	uint32_t i;

	for (i = p->n_nodes; i-- > 1;) {
		const struct fact_node *n = &f->node[i];
		struct fact_node *up = &f->node[p->node[i].parent];

		up->gpu_ns += n->gpu_ns;
		up->gpu_count += n->gpu_count;
		up->sync_ns += n->sync_ns;
		up->wait_ns += n->wait_ns;
		up->alloc_ns += n->alloc_ns;
		up->allocs += n->allocs;
		up->pin_ns += n->pin_ns;
		up->pins += n->pins;
	}
	for (i = 1; i < p->n_nodes; i++) {
		const struct fact_node *n = &f->node[i];

		if (n->step != i)
			continue;
		f->steps += n->calls;
		f->step_ns += n->cpu_ns;
		f->step_gpu_ns += n->gpu_ns;
		f->step_gpu_count += n->gpu_count;
		f->step_wait_ns += n->wait_ns;
	}
	f->has_gpu = f->node[0].gpu_count > 0;
	f->gpu_in_steps = f->step_ns > 0 && f->step_gpu_ns > GPU_IN_STEPS * f->node[0].gpu_ns;
}

static double parts_sum(const struct profile_device *d)
{
	double ns = 0;
	uint32_t k;

	for (k = 0; k < PART_MAX; k++)
		ns += (double)d->part_ns[k];
	return fmax(ns, 1);
}

static void add_parts(struct facts *f)
{
	const struct profile *p = f->p;
	uint32_t i, k, n = 0;

	f->has_parts = p->n_devices > 0 && p->head.duration_ns > 0;
	for (i = 0; i < p->n_devices; i++) {
		if (p->device[i].busy_ns == 0)
			continue;
		n++;
		f->has_parts &= p->device[i].has_parts;
		for (k = 0; k < PART_MAX; k++)
			f->part[k] += (double)p->device[i].part_ns[k] / parts_sum(&p->device[i]);
	}
	f->has_parts &= n > 0 && !f->lost_work;
	for (k = 0; k < PART_MAX && n > 0; k++)
		f->part[k] /= n;
}

/* A part in which no step is, as of a server: what a second of it takes. */
static void take_as_loop(struct facts *f)
{
	uint32_t i;

	f->whole = WHOLE_SESSION;
	f->whole_ns = f->step_ns = f->session_ns;
	f->steps = f->session_ns / (f->every_ns > 0 ? f->every_ns : 1e9);
	f->step_gpu_ns = f->node[0].gpu_ns;
	f->step_gpu_count = f->node[0].gpu_count;
	f->step_wait_ns = f->node[0].wait_ns;
	f->gpu_in_steps = true;
	for (i = 0; i < f->p->n_nodes; i++)
		f->node[i].step = 0;
}

static void find_whole(struct facts *f)
{
	const struct profile_head *h = &f->p->head;

	f->session_ns = (double)h->duration_ns * (h->n_processes > 1 ? h->n_processes : 1);
	if (f->step_ns > 0) {
		f->whole = WHOLE_STEPS;
		f->whole_ns = f->step_ns;
	} else if (f->is_part) {
		take_as_loop(f);
	} else if (h->duration_ns > 0) {
		f->whole = WHOLE_SESSION;
		f->whole_ns = f->session_ns;
	} else if (f->node[0].gpu_ns > 0) {
		f->whole = WHOLE_GPU;
		f->whole_ns = f->node[0].gpu_ns;
	}
}

static void find_idle(struct facts *f)
{
	uint32_t k;

	f->idle = (struct facts_idle){.share = (double)NAN, .ns = (double)NAN};
	if (f->lost_work)
		return;
	if (f->whole == WHOLE_STEPS && f->gpu_in_steps) {
		f->idle.share = fmax(0, 1 - f->step_gpu_ns / f->step_ns);
		f->idle.ns = f->idle.share * f->step_ns;
		f->idle.count = f->step_gpu_count;
		f->idle.work_ns = f->step_gpu_ns;
		f->idle.of = WHOLE_STEPS;
	} else if (f->has_parts) {
		for (f->idle.share = 0, k = PART_IDLE; k < PART_MAX; k++)
			f->idle.share += f->part[k];
		f->idle.ns = f->idle.share * f->session_ns;
		f->idle.count = f->node[0].gpu_count;
		f->idle.work_ns = f->node[0].gpu_ns;
		f->idle.of = f->whole == WHOLE_USED ? WHOLE_USED : WHOLE_SESSION;
	}
}

int facts_new(const struct profile *p, const struct profile_select *s, struct facts **ret)
{
	struct facts *f = calloc(1, sizeof(*f));

	if (f == NULL)
		return -ENOMEM;
	f->p = p;
	f->leak.node = PROFILE_NONE;
	f->scope = s != NULL ? s->scope : NULL;
	f->every_ns = s != NULL ? (double)s->every_ns : 0;
	f->is_part = s != NULL && spans_asked(s);
	f->node = calloc(p->n_nodes, sizeof(*f->node));
	if (f->node != NULL)
		own_numbers(f);
	if (f->node == NULL || find_families(f) < 0) {
		facts_free(f);
		return -ENOMEM;
	}
	add_up(f);
	f->lost_work = p->head.lost_work || profile_lost_work(&p->head, f->node[0].gpu_count);
	add_parts(f);
	find_whole(f);
	find_idle(f);
	*ret = f;
	return 0;
}

/* --- the database */

/* What the first steps take over a median, and those that did not end, of which the tree has the time alone. */
static void leave_out_steps(struct facts *f)
{
	double ns = pace_warm_ns(f->step);
	uint32_t i;

	for (i = 0; i < f->step->n && !f->is_part; i++)
		ns += f->step->step[i].open ? step_ns(&f->step->step[i]) : 0;
	if (f->whole != WHOLE_STEPS || ns >= f->step_ns)
		return;
	f->step_ns -= ns;
	f->whole_ns -= ns;
}

/* Where steps are on a timeline they tell exactly how long each GPU was idle in them. */
static void idle_of_steps(struct facts *f)
{
	double all = 0, busy = 0, ops = 0, rest;
	uint32_t i;

	for (i = 0; i < f->step->n && !f->lost_work; i++) {
		const struct step *s = &f->step->step[i];

		const double ns = step_parts(s, 0, PART_MAX);

		if (s->part_ns[PART_UNKNOWN] > 0)
			return;
		if (ns <= 0 && s->ops > 0) /* it says nothing of when it was active */
			return;
		if (s->warm || s->open)
			continue;
		ops += s->ops;
		all += ns > 0 ? ns : (double)(s->end_ns - s->begin_ns);
		busy += step_parts(s, 0, PART_IDLE);
	}
	rest = f->steps > f->step->n ? f->steps / f->step->n : 1; /* taken to be like these */
	if (ops > 0 && all > 0 && f->whole == WHOLE_STEPS)
		f->idle = (struct facts_idle){fmax(0, 1 - busy / all), fmax(0, all - busy) * rest,
			ops * rest, busy * rest, WHOLE_STEPS};
}

/* Steps whose beginning has left the timeline are no process' first. */
static void none_is_warm(struct facts *f)
{
	uint32_t i;

	for (i = 0; i < f->step->n; i++)
		f->step->step[i].warm = false;
}

/* 0: none. */
static int64_t number_of(struct sqlite3 *db, const char *sql, int64_t id)
{
	sqlite3_stmt *st;
	int64_t n = 0;

	if (sqlite3_prepare_v2(db, sql, -1, &st, NULL) != SQLITE_OK)
		return 0;
	(void)sqlite3_bind_int64(st, 1, id);
	if (sqlite3_step(st) == SQLITE_ROW)
		n = sqlite3_column_int64(st, 0);
	(void)sqlite3_finalize(st);
	return n;
}

/* What comes once is not judged: of steps the warm-up, of what has none the time in which no GPU was used yet, or no more. */
static void leave_out_start(struct facts *f, double used_ns)
{
	const double rest = 1 - used_ns / f->session_ns;
	uint32_t k;

	if (f->whole != WHOLE_SESSION || f->is_part || !f->has_parts || used_ns <= 0 || rest <= 0 ||
		f->part[PART_HOST] < rest)
		return;
	f->part[PART_HOST] -= rest;
	for (k = 0; k < PART_MAX; k++)
		f->part[k] /= 1 - rest;
	f->whole = WHOLE_USED;
	f->whole_ns = f->session_ns = used_ns;
	find_idle(f);
}

/* What it does not have is no error. */
static int lacks(int r, struct err *e)
{
	if (r != -ENODATA)
		return r;
	*e = (struct err){0};
	return 0;
}

int facts_read(struct facts *f, struct sqlite3 *db, int64_t id, const struct profile_select *s,
	int64_t base_ns, struct export_left *ret_left, struct err *e)
{
	const uint64_t zero = base_ns > 0 ? (uint64_t)base_ns : 0;
	const struct span in = {s->to_ns != 0 ? zero + s->from_ns : 0,
		s->to_ns != 0 ? zero + s->to_ns : UINT64_MAX};
	int r;

	f->stored = true;
	f->sharing = (uint32_t)number_of(db, SHARING, id);
	leave_out_start(f, (double)number_of(db, USED, id));
	r = lacks(steps_read(db, id, s, ret_left, &f->step, e), e);
	f->gone = r == 0 && f->step != NULL && !f->is_part ? ret_left->gone : 0;
	if (r == 0 && f->step != NULL) {
		if (f->gone > 0)
			none_is_warm(f);
		leave_out_steps(f);
		idle_of_steps(f);
		r = warm_up_leave_out(f, db, id, s, e);
	}
	if (r == 0 && f->step != NULL && f->has_sync && f->has_gpu && !f->lost_work)
		r = lacks(waits_read(db, id, s, f->is_part ? NULL : f->step, ret_left, &f->wait, e),
			e);
	if (r == 0 && f->wait != NULL)
		f->wait->left_out += f->gone;
	if (r == 0 && f->wait != NULL && facts_has_steps(f) && f->step->n > 0 && !f->is_part)
		r = lacks(critical_read(db, id, s, ret_left, &f->critical, e), e);
	if (r == 0 && f->p->head.n_processes > 1 && !f->is_part)
		r = lacks(ranks_read(db, id, &f->rank, e), e);
	if (r == 0 && !f->is_part)
		r = leak_read(db, id, s->process, f->p, &f->leak, e);
	if (r == 0)
		r = lacks(device_sums_read(db, id, &in, &f->device, e), e);
	return r;
}

int facts_load(struct facts **ret, struct profile **ret_p, struct sqlite3 *db, int64_t id,
	const struct profile_select *s, struct export_left *ret_left, struct err *e)
{
	struct profile_select in = spans_whole(s);
	struct window w = {.p = NULL};
	int r = profile_load(db, id, &in, ret_p, e);

	w.p = *ret_p;
	if (r == 0 && spans_asked(s)) {
		r = window_read(&w, db, id, s, ret_left, e);
		in.from_ns = w.from_ns;
		in.to_ns = w.to_ns;
	}
	if (r == 0 && facts_new(*ret_p, s, ret) < 0)
		r = err_set(e, -ENOMEM, "out of memory");
	return r < 0 ? r : facts_read(*ret, db, id, &in, w.base_ns, ret_left, e);
}

void facts_free(struct facts *f)
{
	if (f == NULL)
		return;
	free(f->node);
	steps_free(f->step);
	waits_free(f->wait);
	ranks_free(f->rank);
	free(f->device);
	critical_free(f->critical);
	free(f);
}
