/* SPDX-License-Identifier: MIT. web_meta.c: what a session is, what it has, and what it lacks. */
#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "print_json.h"
#include "spread.h"
#include "timeline.h"
#include "web_ask.h"

#define PROCESSES_SHOWN 1024u

struct found {
	struct web_ask *a;
	struct text processes;
	uint32_t n_processes, n_ranked;
	bool timeline;
};

/* --- of the database */

/* Bytes of a database are anybody's. */
static void put_clean(
	struct text *t, const char *key, const unsigned char *bytes, struct profile *texts)
{
	const char *s = bytes == NULL ? NULL
				      : profile_text(texts, (const char *)bytes,
						strlen((const char *)bytes));

	json_key_str(t, key, s);
}

static void put_column(struct text *t, const char *key, sqlite3_stmt *st, int column)
{
	json_key(t, key);
	if (sqlite3_column_type(st, column) == SQLITE_NULL)
		text_str(t, "null");
	else
		text_fmt(t, "%lld", (long long)sqlite3_column_int64(st, column));
}

static int read_processes(struct found *f, sqlite3 *db, int64_t id, struct err *e)
{
	static const char sql[] =
		"SELECT p.pid, p.rank, p.local_rank, p.host, p.command, p.started_ns, p.ended_ns,"
		" p.end_reason, p.gpu_text FROM member m JOIN process p ON p.id = m.process"
		" WHERE m.session = ?1 ORDER BY p.rank IS NULL, p.rank, m.process";
	struct profile *texts = profile_new();
	struct text *t = &f->processes;
	sqlite3_stmt *st;
	int more = SQLITE_ROW;

	if (texts == NULL)
		return err_set(e, -ENOMEM, "out of memory");
	if (sqlite3_prepare_v2(db, sql, -1, &st, NULL) != SQLITE_OK) {
		profile_free(texts);
		return err_set(e, -EBADMSG, "the database cannot be read: %s", sqlite3_errmsg(db));
	}
	(void)sqlite3_bind_int64(st, 1, id);
	while ((more = sqlite3_step(st)) == SQLITE_ROW) {
		f->n_ranked += sqlite3_column_type(st, 1) != SQLITE_NULL;
		if (++f->n_processes > PROCESSES_SHOWN)
			continue;
		json_open(t, '{');
		put_column(t, "pid", st, 0);
		put_column(t, "rank", st, 1);
		put_column(t, "local_rank", st, 2);
		put_clean(t, "host", sqlite3_column_text(st, 3), texts);
		put_clean(t, "command", sqlite3_column_text(st, 4), texts);
		put_column(t, "started_ns", st, 5);
		put_column(t, "ended_ns", st, 6);
		put_clean(t, "end", sqlite3_column_text(st, 7), texts);
		put_clean(t, "gpu", sqlite3_column_text(st, 8), texts);
		json_close(t, '}');
	}
	(void)sqlite3_finalize(st);
	profile_free(texts);
	return more == SQLITE_DONE ? 0
				   : err_set(e, -EBADMSG, "the database cannot be read: %s",
					     sqlite3_errmsg(db));
}

/* A file of schema 1 has no such table. */
static bool has_timeline(sqlite3 *db, int64_t id)
{
	sqlite3_stmt *st;
	bool any;

	if (sqlite3_prepare_v2(db, "SELECT 1 FROM trace WHERE session = ?1 AND bytes IS NOT NULL",
		    -1, &st, NULL) != SQLITE_OK)
		return false;
	(void)sqlite3_bind_int64(st, 1, id);
	any = sqlite3_step(st) == SQLITE_ROW;
	(void)sqlite3_finalize(st);
	return any;
}

static int on_db(void *arg, struct sqlite3 *db, int64_t id, const struct profile_select *s,
	struct export_left *ret_left, struct err *e)
{
	struct found *f = arg;

	(void)s;
	(void)ret_left;
	f->timeline = has_timeline(db, id);
	return read_processes(f, db, id, e);
}

/* --- of the tree */

struct sums {
	uint64_t steps;
	double compute_ns, comm_ns, copy_ns; /* of all devices; what ran at once counts twice */
	struct spread step;
};

static double number(const struct profile *p, uint32_t node, uint32_t metric)
{
	const double v = metric == PROFILE_NONE ? 0 : value_number(profile_value(p, node, metric));

	return v > 0 ? v : 0;
}

static void add_up(const struct profile *p, struct sums *ret)
{
	const uint32_t calls = profile_find_metric(p, "calls"),
		       time = profile_find_metric(p, "time (ns)"),
		       copy = profile_find_metric(p, "copy_time (ns)");
	uint32_t i;

	*ret = (struct sums){.steps = 0};
	spread_init(&ret->step);
	for (i = 0; i < p->n_nodes; i++) {
		*(p->node[i].class == CLASS_COMM ? &ret->comm_ns : &ret->compute_ns) +=
			number(p, i, time);
		ret->copy_ns += number(p, i, copy);
		if (!timeline_is_step(p->node[i].name) || number(p, i, calls) < 1)
			continue;
		ret->steps += (uint64_t)number(p, i, calls);
		spread_add(&ret->step, p, i);
	}
}

uint64_t web_steps_done(const struct profile *p)
{
	struct sums sums;

	add_up(p, &sums);
	return sums.steps;
}

static void put_parts(struct text *t, const struct profile_device *d)
{
	static const char *const word[] = {
#define X(name, column, head, ...) head,
		GPU_PARTS(X)
#undef X
	};
	uint32_t k;

	json_in(t, "parts", '[');
	for (k = 0; k < PART_MAX && d->has_parts; k++) {
		json_open(t, '[');
		json_str(t, word[k]);
		json_u64(t, d->part_ns[k]);
		json_close(t, ']');
	}
	json_close(t, ']');
}

static void put_summary(struct text *t, const struct profile *p, const struct sums *sums)
{
	const double duration = (double)p->head.duration_ns;
	const struct profile_device *d;

	json_in(t, "summary", '{');
	json_key_f64(t, "window_ns", duration);
	json_in(t, "devices", '[');
	for (d = p->device; d < p->device + p->n_devices && duration > 0; d++) {
		json_open(t, '{');
		json_key_str(t, "device", d->id);
		json_key_u64(t, "busy_ns", d->busy_ns);
		json_key_f64(t, "idle_ns", fmax(duration - (double)d->busy_ns, 0));
		put_parts(t, d);
		json_close(t, '}');
	}
	json_close(t, ']');
	json_key_f64(t, "compute_ns", sums->compute_ns);
	json_key_f64(t, "comm_ns", sums->comm_ns);
	json_key_f64(t, "copy_ns", sums->copy_ns);
	json_key_f64(t, "steps_per_s",
		duration > 0 && sums->steps > 0 ? (double)sums->steps * 1e9 / duration
						: (double)NAN);
	json_key_f64(t, "step_p50_ns", round(spread_quantile(&sums->step, 0.5)));
	json_key_f64(t, "step_p99_ns", round(spread_quantile(&sums->step, 0.99)));
	json_close(t, '}');
}

/* --- the answer */

static void put_lack(struct text *t, const char *what, const char *words, const char *how)
{
	json_open(t, '{');
	json_key_str(t, "what", what);
	json_key_str(t, "words", words);
	json_key_str(t, "switch", how);
	json_close(t, '}');
}

static void put_lacks(
	struct text *t, const struct profile *p, const struct found *f, uint64_t steps)
{
	const bool stored = p->head.uuid != NULL;

	json_in(t, "lacks", '[');
	if (!f->timeline)
		put_lack(t, "timeline",
			stored ? "This session kept sums, and no single events."
			       : "A .hatchet file has sums, and no single events.",
			"protonctl run -d both -- CMD");
	if (stored && p->head.gpu_why != NULL)
		put_lack(t, "gpu", p->head.gpu_why, NULL);
	if (steps == 0)
		put_lack(t, "steps", "No scope was named `step`, `step N` or `ProfilerStep#N`.",
			"protond.torch.step(), or a scope named step around each");
	if (f->n_processes < 2)
		put_lack(t, "ranks", "One process is in it.",
			"protonctl run -- torchrun --nproc-per-node N CMD");
	json_close(t, ']');
}

static void put_meta(struct web_ask *a, const struct profile *p, struct found *f)
{
	const struct term plain = {.utf8 = true};
	struct sums sums;
	struct text *t = &a->to->body, head = {0};
	char *words;

	add_up(p, &sums);
	text_char(t, '{');
	envelope_session(t, p);
	json_key_str(t, "ref", a->id);
	json_key_bool(t, "live", !profile_is_over(&p->head));
	json_key_u64(t, "lost", profile_lost(&p->head, false));
	json_key_u64(t, "steps", sums.steps);
	json_in(t, "has", '{');
	json_key_bool(t, "timeline", f->timeline);
	json_key_bool(t, "steps", f->timeline && sums.steps > 0);
	json_key_bool(t, "series", f->timeline);
	json_key_bool(t, "ranks", f->n_processes > 1);
	json_key_bool(t, "gpu", p->n_devices > 0 || p->head.launches > 0);
	json_close(t, '}');
	json_in(t, "processes", '[');
	text_add(t, f->processes.s, f->processes.n);
	json_close(t, ']');
	json_key_u64(t, "ranked", f->n_ranked);
	put_summary(t, p, &sums);
	put_lacks(t, p, f, sums.steps);
	print_head(&head, p, &plain);
	if (text_take(&head, &words, &(size_t){0}) == 0) {
		json_key_str(t, "head", words);
		free(words);
	}
	if (f->n_processes > PROCESSES_SHOWN)
		warning_add(&a->run->warnings, "%u of %u processes are listed", PROCESSES_SHOWN,
			f->n_processes);
	web_warnings(a);
	text_char(t, '}');
}

int web_meta(struct web_ask *a)
{
	struct found f = {.a = a};
	const struct profile *p;
	int r = web_profile(a, &p);

	if (r == 0)
		r = web_db(a, on_db, &f, NULL);
	if (r == -ENODATA)
		r = 0; /* a .hatchet file */
	if (r == 0)
		put_meta(a, p, &f);
	text_fini(&f.processes);
	return r;
}
