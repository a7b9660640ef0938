/* SPDX-License-Identifier: MIT. zoom_refresh.c: what a live session has got since it was opened.
 *
 * Chunks that are as they were keep their place in memory; read are those that are new, that have
 * grown, and those whose end lies behind the last moment at which the clocks were read beside each
 * other: their times move when that is done again. Lanes, rows and ranges come anew from what is in
 * memory. What is no such step forward (chunks that left, a process that came, bursts that may have
 * grown) is opened afresh; and so is it now and then, since words of before stay until then. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "zoom_int.h"

#define REFRESHED_MAX 128u

#define LIST                                                                      \
	"SELECT number, first, events, length(bytes) FROM trace WHERE session=?1" \
	" AND process=?2 ORDER BY number"
#define ONE     ZOOM_CHUNKS " AND number=?3"
#define MEMBERS "SELECT process FROM member WHERE session=?1"

struct refreshing {
	struct zoom *w;
	struct trace_time time; /* as it is now */
	struct zoomed_chunk *old;
	uint32_t n_old, at; /* at: the next one of old */
	uint64_t settled;   /* what is over before keeps its times */
	struct sqlite3_stmt *list, *one;
};

/* --- the clocks */

/* *ret: when the last was read, or what was before, if that is earlier. */
static bool goes_on(const struct anchors *was, const struct anchors *is, const struct trace_time *t,
	uint64_t *ret)
{
	int64_t last;

	if (is->n < was->n || was->n_back != is->n_back ||
		(was->n > 0 && memcmp(was->v, is->v, was->n * sizeof(*was->v)) != 0))
		return false;
	if (is->n == was->n)
		return true;
	if (was->n < 2) /* they had no slope yet */
		return false;
	last = (int64_t)was->v[was->n - 1].mono_ns - t->base_ns;
	*ret = last <= 0 ? 0 : (uint64_t)last < *ret ? (uint64_t)last : *ret;
	return true;
}

static bool time_goes_on(struct refreshing *r)
{
	const struct trace_time *was = &r->w->time, *is = &r->time;

	r->settled = UINT64_MAX;
	return was->base_ns == is->base_ns && was->ahead_ns == is->ahead_ns &&
	       goes_on(&was->tsc, &is->tsc, was, &r->settled) &&
	       goes_on(&was->mono, &is->mono, was, &r->settled);
}

/* Processes point into it. */
static int use_time(struct refreshing *r, struct err *e)
{
	struct zoom *w = r->w;
	uint32_t i;
	int rc = 0;

	trace_time_fini(&w->time);
	w->time = r->time;
	w->time.wall = w->time.tsc.n > 0 ? &w->time.tsc : &w->time.mono;
	r->time = (struct trace_time){.base_ns = 0};
	for (i = 0; i < w->l.n_processes && rc == 0; i++)
		rc = zoom_load_process(w, i, e);
	return rc;
}

/* --- chunks */

static bool is_settled(const struct zoomed_chunk *k, uint64_t ns)
{
	return (k->t0 > k->t1 || k->t1 < ns) && (k->launch0 > k->launch1 || k->launch1 < ns) &&
	       (k->told0 > k->told1 || k->told1 < ns);
}

static bool has_process(const struct zoom *w, int64_t id)
{
	uint32_t i;

	for (i = 0; i < w->l.n_processes; i++)
		if (w->shown_process[i].id == id)
			return true;
	return false;
}

static bool same_members(struct refreshing *r, int *rc)
{
	const struct zoom *w = r->w;
	sqlite3_stmt *st;
	uint32_t n = 0;
	int more;

	*rc = load_prepare(&r->w->l, MEMBERS, &st);
	if (*rc < 0)
		return false;
	while ((more = load_step(&r->w->l, st)) > 0 && has_process(w, sqlite3_column_int64(st, 0)))
		n++;
	(void)sqlite3_finalize(st);
	*rc = more < 0 ? more : 0;
	return more == 0 && n == w->l.n_processes;
}

/* Whether each chunk of before is there, and none of them says what cannot be taken back. */
static bool is_longer(struct refreshing *r, uint32_t process, int *rc)
{
	const struct zoom *w = r->w;
	const struct zoomed_chunk *k = w->chunk + r->at, *end = w->chunk + w->n_chunks;
	int more;

	(void)sqlite3_bind_int64(r->list, 2, w->shown_process[process].id);
	while ((more = load_step(&r->w->l, r->list)) > 0 && k < end && k->process == process) {
		if (sqlite3_column_type(r->list, 3) == SQLITE_NULL)
			continue;
		if (k->number != load_u64(r->list, 0) || k->events > load_u64(r->list, 2))
			break;
		if (k->n_levels == 0)
			break;
		if ((k->bytes != load_u64(r->list, 3) || !is_settled(k, r->settled)) && k->bursts)
			break;
		k++;
	}
	*rc = more < 0 ? more : 0;
	(void)sqlite3_reset(r->list);
	r->at = (uint32_t)(k - w->chunk);
	return *rc == 0 && (k == end || k->process != process);
}

static bool can_go_on(struct refreshing *r, int *rc)
{
	struct zoom *w = r->w;
	uint32_t i;

	if (w->refreshed >= REFRESHED_MAX || w->names.n_unknown > 0 ||
		w->n_lanes == ZOOM_LANES_MAX || !time_goes_on(r) || !same_members(r, rc))
		return false;
	for (i = 0; i < w->l.n_processes; i++)
		if (!is_longer(r, i, rc))
			return false;
	return r->at == w->n_chunks;
}

static int read_one(
	struct refreshing *r, uint32_t process, const struct zoomed_chunk *before, struct err *e)
{
	struct zoom *w = r->w;
	int more, rc = 0;

	(void)sqlite3_bind_int64(r->one, 2, w->shown_process[process].id);
	(void)sqlite3_bind_int64(r->one, 3, sqlite3_column_int64(r->list, 0));
	more = load_step(&w->l, r->one);
	if (more > 0)
		rc = zoom_add_chunk(w, process, r->one, before, e);
	(void)sqlite3_reset(r->one);
	return more < 0 ? more : rc;
}

static int take_process(struct refreshing *r, uint32_t process, struct err *e)
{
	struct zoom *w = r->w;
	uint64_t all = 0, kept = 0;
	int more, rc = 0;

	(void)sqlite3_bind_int64(r->list, 2, w->shown_process[process].id);
	while (rc == 0 && (more = load_step(&w->l, r->list)) != 0) {
		struct zoomed_chunk *k = r->at < r->n_old ? &r->old[r->at] : NULL;

		if (more < 0) {
			rc = more;
			break;
		}
		all = load_u64(r->list, 1) + load_u64(r->list, 2);
		if (sqlite3_column_type(r->list, 3) == SQLITE_NULL)
			continue;
		kept += load_u64(r->list, 2);
		if (k == NULL || k->process != process) {
			rc = read_one(r, process, NULL, e);
			continue;
		}
		r->at++;
		if (k->bytes == load_u64(r->list, 3) && is_settled(k, r->settled)) {
			rc = zoom_keep_chunk(w, k, e);
			continue;
		}
		rc = read_one(r, process, k, e);
		zoom_drop_chunk(w, k);
	}
	(void)sqlite3_reset(r->list);
	w->gone += all > kept ? all - kept : 0;
	return rc;
}

/* --- all of it */

static void begin_again(struct refreshing *r)
{
	struct zoom *w = r->w;
	uint32_t i;

	zoom_cache_clear(w);
	r->old = w->chunk;
	r->n_old = w->n_chunks;
	r->at = 0;
	w->chunk = NULL;
	w->n_chunks = w->cap_chunks = 0;
	free(w->show);
	w->show = NULL;
	w->n_rows = 0;
	w->events = w->gone = 0;
	w->t0 = UINT64_MAX;
	w->t1 = 0;
	for (i = 0; i < w->n_bursts; i++) {
		w->t0 = w->burst[i].start < w->t0 ? w->burst[i].start : w->t0;
		w->t1 = w->burst[i].end > w->t1 ? w->burst[i].end : w->t1;
	}
	for (i = 0; i < w->n_lanes; i++) {
		struct zoomed_lane *l = &w->lane[i];

		if (l->kind == ZOOM_SUMMED)
			continue;
		l->n_free_at = 0;
		if (l->events == 0 || l->kind == ZOOM_TASKS || l->kind == ZOOM_STREAM) {
			l->low = UINT16_MAX; /* it was shown with a row for what it lacked */
			l->high = 0;
		}
		l->events = 0;
	}
}

static int go_on(struct refreshing *r, struct err *e)
{
	struct zoom *w = r->w;
	uint32_t i;
	int rc = use_time(r, e);

	begin_again(r);
	for (i = 0; i < w->l.n_processes && rc == 0; i++)
		rc = take_process(r, i, e);
	for (i = 0; i < r->n_old; i++)
		zoom_chunk_fini(&r->old[i]);
	free(r->old);
	if (rc == 0)
		rc = zoom_order_counters(w, e);
	w->refreshed++;
	return rc < 0 ? rc : zoom_order_lanes(w, e);
}

/* *ret_done: it is as if it had been opened afresh. */
static int refresh(struct zoom *w, bool *ret_done, struct err *e)
{
	struct refreshing r = {.w = w};
	int rc = trace_time_load(&r.time, &w->l);

	if (rc == 0)
		rc = load_prepare(&w->l, LIST, &r.list);
	if (rc == 0)
		rc = load_prepare(&w->l, ONE, &r.one);
	*ret_done = rc == 0 && can_go_on(&r, &rc);
	if (*ret_done)
		rc = go_on(&r, e);
	trace_time_fini(&r.time);
	(void)sqlite3_finalize(r.list);
	(void)sqlite3_finalize(r.one);
	return rc;
}

int zoom_refresh(struct zoom **w, bool *ret_changed, struct err *e)
{
	int64_t now[4] = {0};
	struct zoom *fresh;
	sqlite3 *db = (*w)->l.db;
	const bool own_transaction = sqlite3_get_autocommit(db) != 0;
	bool done = false;
	int r = 0;

	*ret_changed = false;
	if (own_transaction && sqlite3_exec(db, "BEGIN", NULL, NULL, NULL) != SQLITE_OK)
		return err_set(e, -EIO, "the database cannot be read: %s", sqlite3_errmsg(db));
	(*w)->l.e = e;
	r = zoom_newest(*w, now);
	*ret_changed = r == 0 && memcmp(now, (*w)->newest, sizeof(now)) != 0;
	if (*ret_changed)
		r = refresh(*w, &done, e);
	if (r == 0 && *ret_changed && !done)
		r = zoom_open(db, (*w)->l.session, (*w)->select.process, &fresh, e);
	if (r == 0 && *ret_changed && !done) {
		zoom_free(*w);
		*w = fresh;
	}
	if (own_transaction)
		(void)sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
	(*w)->l.e = NULL;
	if (r == 0)
		memcpy((*w)->newest, now, sizeof(now));
	return r;
}
