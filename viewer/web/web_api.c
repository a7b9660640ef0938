/* SPDX-License-Identifier: MIT. web_api.c: what is shown, and one question about it. */
#include "web_api.h"

#include <malloc.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "human.h"
#include "print_json.h"
#include "web_ask.h"
#include "xla_shade.h"
#include "zoom.h"

#define SHOWN_MAX 64u
#define ID_MAX    24u

struct shown {
	char id[ID_MAX];
	char *path; /* of a file; NULL: a session of the database */
};

#define LINES_MAX 2u   /* timelines that are open */
#define FRESH_MS  500u /* so old may a live one be */

struct line {
	char key[256];
	struct sqlite3 *db;
	struct zoom *zoom; /* NULL: this place is free */
	struct names *names;
	bool over, stale;
	uint64_t read_ms, used; /* used: the higher, the later */
};

struct web {
	const char *db;
	struct xla_dump *xla; /* the caller's; NULL: none */
	struct line line[LINES_MAX];
	uint64_t uses;
	struct shown shown[SHOWN_MAX];
	uint32_t n_shown;
	/* The profile that was asked about last, while it cannot change. */
	struct profile *p;
	struct names *names;
	char key[256];
	bool partial;
};

/* --- one question's run of the tool */

static void run_free(struct run *run)
{
	if (run == NULL)
		return;
	text_fini(&run->out);
	names_free(run->names);
	free(run);
}

static struct run *run_new(void)
{
	struct run *run = calloc(1, sizeof(*run));

	if (run == NULL || names_new(false, &run->names) < 0) {
		run_free(run);
		return NULL;
	}
	run->o.verb = VERB_flat; /* all metrics, durations and configurations */
	run->print.names = run->names;
	return run;
}

struct web_ask *web_ask_new(struct web *w, const char *id)
{
	struct web_ask *a = calloc(1, sizeof(*a));

	if (a == NULL)
		return NULL;
	a->w = w;
	a->id = id;
	a->run = run_new();
	if (a->run != NULL) {
		a->run->xla = w->xla;
		return a;
	}
	free(a);
	return NULL;
}

void web_ask_free(struct web_ask *a)
{
	if (a != NULL)
		run_free(a->run);
	free(a);
}

/* --- which source an id means */

static const char *path_of(const struct web *w, const char *id)
{
	uint32_t i;

	for (i = 0; i < w->n_shown; i++)
		if (w->shown[i].path != NULL && strcmp(w->shown[i].id, id) == 0)
			return w->shown[i].path;
	return NULL;
}

/* *ret: what source_open() is to open. */
static int find(struct web_ask *a, const char *id, const char **ret)
{
	uint64_t number;

	*ret = path_of(a->w, id);
	a->run->session = *ret == NULL;
	a->run->o.value[OPT_DB] = *ret == NULL ? a->w->db : NULL; /* it has sessions alone */
	if (*ret != NULL)
		return 0;
	*ret = id;
	if (!text_u64(id, INT64_MAX, &number))
		return err_set(&a->run->e, -ENOENT, "there is no session '%.32s' here", id);
	return 0;
}

static int open_source(
	struct web_ask *a, const char *id, struct source_options *o, struct source *ret)
{
	const char *ref;
	int r;

	a->run->o.value[OPT_PROCESS] = web_query_get(&a->q, "process");
	a->run->o.value[OPT_PHASE] = web_query_get(&a->q, "phase");
	r = find(a, id, &ref);
	return r < 0 ? r : run_source_by(a->run, ref, o, ret);
}

static const char *given(const struct web_ask *a, const char *key)
{
	const char *v = web_query_get(&a->q, key);

	return v != NULL ? v : "";
}

int web_ref(struct web_ask *a, const char **ret)
{
	return find(a, a->id, ret);
}

static void forget(struct web *w)
{
	profile_free(w->p);
	names_free(w->names);
	w->p = NULL;
	w->names = NULL;
	(void)malloc_trim(0);
}

static void keep(struct web *w, const struct source *s, const char *key)
{
	w->p = s->p;
	w->partial = s->partial;
	snprintf(w->key, sizeof(w->key), "%s", key);
}

int web_profile(struct web_ask *a, const struct profile **ret)
{
	struct source_options o = {.select.lean = false};
	struct web *w = a->w;
	struct source s;
	char key[sizeof(w->key)];
	int r;

	if (snprintf(key, sizeof(key), "%s/%s/%s", a->id, given(a, "process"), given(a, "phase")) >=
		(int)sizeof(key))
		return err_set(&a->run->e, -EINVAL, "the address is too long");
	if (w->p == NULL || !profile_is_over(&w->p->head) || strcmp(key, w->key) != 0) {
		forget(w);
		r = open_source(a, a->id, &o, &s);
		if (r < 0)
			return r;
		keep(w, &s, key);
	} else if (w->partial) {
		warning_add(&a->run->warnings, "some of it could not be read");
	}
	if (w->names == NULL &&
		(names_new(false, &w->names) < 0 || names_read(w->names, w->p) < 0)) {
		forget(w);
		return err_set(&a->run->e, -ENOMEM, "out of memory");
	}
	a->run->print.names = w->names;
	*ret = w->p;
	return 0;
}

int web_load(struct web_ask *a, const char *id, struct profile **ret)
{
	struct source_options o = {.select.lean = false};
	struct source s;
	int r = open_source(a, id, &o, &s);

	if (r == 0)
		*ret = s.p;
	return r;
}

int web_db(struct web_ask *a, web_db_fn *fn, void *arg, struct export_left *ret_left)
{
	struct source_options o = {.timeline = fn, .arg = arg};
	struct source s;
	int r = open_source(a, a->id, &o, &s);

	if (r == 0 && ret_left != NULL)
		*ret_left = s.left;
	return r;
}

/* --- timelines */

static void line_close(struct line *l)
{
	zoom_free(l->zoom);
	(void)sqlite3_close(l->db);
	names_free(l->names);
	*l = (struct line){.used = 0};
}

static uint64_t now_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000u + (uint64_t)t.tv_nsec / 1000000u;
}

struct line_to {
	struct line *line;
	const char *process;
};

static bool is_stored_over(struct sqlite3 *db, int64_t id)
{
	sqlite3_stmt *st;
	bool over;

	if (sqlite3_prepare_v2(db,
		    "SELECT 1 FROM session WHERE id = ?1 AND state IN ('finalized', 'interrupted')",
		    -1, &st, NULL) != SQLITE_OK)
		return false;
	(void)sqlite3_bind_int64(st, 1, id);
	over = sqlite3_step(st) == SQLITE_ROW;
	(void)sqlite3_finalize(st);
	return over;
}

static int line_fill(void *arg, struct sqlite3 *db, int64_t id, const struct profile_select *s,
	struct export_left *ret_left, struct err *e)
{
	const struct line_to *to = arg;

	(void)s;
	(void)ret_left;
	to->line->over = is_stored_over(db, id);
	return zoom_open(db, id, to->process, &to->line->zoom, e);
}

static int line_open(struct web_ask *a, struct line *l)
{
	struct line_to to = {l, web_query_get(&a->q, "process")};
	struct source_options o = {.timeline = line_fill, .arg = &to, .keep = true};
	struct profile *p = NULL;
	struct source s;
	int r = open_source(a, a->id, &o, &s);

	if (r < 0)
		return r;
	l->db = s.db;
	l->read_ms = now_ms();
	r = web_load(a, a->id, &p); /* which has each name of the timeline */
	if (r == 0 && (names_new(false, &l->names) < 0 || names_read(l->names, p) < 0))
		r = err_set(&a->run->e, -ENOMEM, "out of memory");
	profile_free(p);
	return r;
}

static int no_line(void *arg, struct sqlite3 *db, int64_t id, const struct profile_select *s,
	struct export_left *ret_left, struct err *e)
{
	(void)s;
	(void)ret_left;
	(void)e;
	((struct line *)arg)->over = is_stored_over(db, id);
	return 0;
}

/* Has the daemon store what there is, then reads on. */
static int line_refresh(struct web_ask *a, struct line *l)
{
	bool changed;
	int r = web_db(a, no_line, l, NULL);

	if (r == 0)
		r = zoom_refresh(&l->zoom, &changed, &a->run->e);
	l->read_ms = now_ms();
	l->stale = false;
	return r;
}

/* The open one of this key; else the place of the one that was used least lately. */
static struct line *line_of(struct web *w, const char *key)
{
	struct line *l = &w->line[0];
	uint32_t i;

	for (i = 0; i < LINES_MAX; i++)
		if (w->line[i].zoom != NULL && strcmp(w->line[i].key, key) == 0)
			return &w->line[i];
	for (i = 1; i < LINES_MAX; i++)
		if (w->line[i].used < l->used)
			l = &w->line[i];
	line_close(l);
	snprintf(l->key, sizeof(l->key), "%s", key);
	return l;
}

int web_zoom(struct web_ask *a, struct zoom **ret)
{
	char key[sizeof(a->w->line[0].key)];
	struct line *l;
	int r = 0;

	if (snprintf(key, sizeof(key), "%s/%s", a->id, given(a, "process")) >= (int)sizeof(key))
		return err_set(&a->run->e, -EINVAL, "the address is too long");
	l = line_of(a->w, key);
	if (l->zoom == NULL)
		r = line_open(a, l);
	else if (l->stale || (!l->over && now_ms() - l->read_ms > FRESH_MS))
		r = line_refresh(a, l);
	if (r < 0) {
		line_close(l);
		return r;
	}
	l->used = ++a->w->uses;
	a->line = l;
	a->run->print.names = l->names;
	*ret = l->zoom;
	return 0;
}

void web_alone(struct web_ask *a)
{
	uint32_t i;

	for (i = 0; i < LINES_MAX; i++)
		line_close(&a->w->line[i]);
	(void)malloc_trim(0);
}

/* Chunks that a question needed have left or changed since they were listed. */
static int ask_again(struct web_ask *a, web_fn *fn)
{
	if (a->line == NULL)
		return -ESTALE;
	a->line->stale = true;
	text_fini(&a->to->body);
	return fn(a);
}

void web_warnings(struct web_ask *a)
{
	struct text *t = &a->to->body;
	uint32_t i;

	json_in(t, "warnings", '[');
	for (i = 0; i < a->run->warnings.n; i++)
		json_str(t, a->run->warnings.text[i]);
	json_close(t, ']');
}

/* --- answers */

void web_answer_fini(struct web_answer *a)
{
	text_fini(&a->body);
	if (a->fd >= 0)
		(void)close(a->fd);
	a->fd = -1;
}

void web_answer_error(struct web_answer *ret, int status, int code, const char *words)
{
	static const struct warnings none;

	web_answer_fini(ret);
	ret->status = status;
	ret->type = "application/json";
	ret->file[0] = '\0';
	envelope_error(&ret->body, "web", code, words, &none);
}

static int status_of(int r)
{
	return r == -EINVAL                                        ? 400
	       : r == -ENOENT || r == -ENODATA                     ? 404
	       : r == -ENOTCONN || r == -ETIMEDOUT || r == -ENOMEM ? 503
								   : 500;
}

static const struct answer {
	const char *name;
	bool of_session;
	enum web_pace pace;
	web_fn *fn;
} answers[] = {
#define X(name, of, pace, words) {#name, of, PACE_##pace, web_##name},
	WEB_ANSWERS(X)
#undef X
};

/* "api/sessions", "api/s/12/tree", "api/s/12/export.csv": which; *ret_id and *ret_rest: cut out of the
 * path. */
static const struct answer *route(struct web_query *q, const char **ret_id, const char **ret_rest)
{
	char *name = q->text + (q->path - q->text), *id = NULL;
	size_t i;

	if (strncmp(name, "api/", 4) != 0)
		return NULL;
	name += 4;
	if (strncmp(name, "s/", 2) == 0) {
		id = name + 2;
		name = strchr(id, '/');
		if (name == NULL)
			return NULL;
		*name++ = '\0';
	}
	*ret_id = id;
	*ret_rest = NULL;
	if (strncmp(name, "export.", 7) == 0) {
		*ret_rest = name + 7;
		name[6] = '\0';
	}
	for (i = 0; i < sizeof(answers) / sizeof(*answers); i++)
		if (answers[i].of_session == (id != NULL) && strcmp(answers[i].name, name) == 0)
			return &answers[i];
	return NULL;
}

enum web_pace web_pace_of(const char *uri)
{
	const size_t path = strcspn(uri, "?#");
	const char *slash = memrchr(uri, '/', path), *name = slash != NULL ? slash + 1 : uri;
	const size_t n = (size_t)(uri + path - name);
	size_t i;

	for (i = 0; i < sizeof(answers) / sizeof(*answers); i++)
		if (strlen(answers[i].name) == n && memcmp(answers[i].name, name, n) == 0)
			return answers[i].pace;
	return PACE_SLOW;
}

void web_answer(struct web *w, const char *uri, struct web_answer *ret)
{
	struct web_ask *a = web_ask_new(w, NULL);
	const struct answer *which;
	int r;

	*ret = (struct web_answer){.status = 200, .type = "application/json", .fd = -1};
	if (a == NULL) {
		web_answer_error(ret, 503, -ENOMEM, "out of memory");
	} else if (!web_query_parse(uri, &a->q)) {
		web_answer_error(ret, 400, -EINVAL, "this address cannot be read");
	} else if ((which = route(&a->q, &a->id, &a->rest)) == NULL) {
		web_answer_error(ret, 404, -ENOENT, "there is nothing at this address");
	} else {
		a->to = ret;
		r = which->fn(a);
		if (r == -ESTALE)
			r = ask_again(a, which->fn);
		if (r == 0 && ret->body.failed)
			r = err_set(&a->run->e, -ENOMEM, "out of memory");
		if (r < 0)
			web_answer_error(ret, status_of(r), r,
				a->run->e.text[0] != '\0' ? a->run->e.text : strerror(-r));
	}
	web_ask_free(a);
}

/* --- what is shown */

static int take_id(void *arg, struct sqlite3 *db, int64_t id, const struct profile_select *s,
	struct export_left *ret_left, struct err *e)
{
	(void)db;
	(void)s;
	(void)ret_left;
	(void)e;
	*(int64_t *)arg = id;
	return 0;
}

static int show(struct web *w, const char *ref, struct err *e)
{
	struct shown *s = &w->shown[w->n_shown];
	struct xla_shade shade = {.dump = w->xla};
	struct source_options o = {
		.db = w->db, .prepare = w->xla != NULL ? xla_shade : NULL, .prepare_arg = &shade};
	struct source from;
	char key[ID_MAX + 2];
	int64_t id = 0;
	int r;

	if (w->n_shown == SHOWN_MAX)
		return err_set(e, -EINVAL, "more than %u at once", SHOWN_MAX);
	if (strcmp(ref, "-") == 0)
		return err_set(
			e, -EINVAL, "standard input cannot be read more than once; give a file");
	if (source_is_file(ref) && w->db == NULL) {
		r = source_open(ref, &o, &from, e);
		if (r == 0 && w->xla != NULL && !shade.done)
			r = xla_dump_name(w->xla, from.p, &shade.named, e);
		if (r < 0)
			return r;
		snprintf(s->id, sizeof(s->id), "f%u", ++w->n_shown);
		snprintf(key, sizeof(key), "%s//", s->id);
		forget(w);
		keep(w, &from, key);
		s->path = strdup(ref);
		if (s->path == NULL)
			return err_set(e, -ENOMEM, "out of memory");
		return 0;
	}
	o.timeline = take_id;
	o.arg = &id;
	r = source_open(ref, &o, &from, e);
	if (r < 0)
		return r;
	snprintf(s->id, sizeof(s->id), "%lld", (long long)id);
	w->n_shown++;
	return 0;
}

int web_new(const char *db, struct xla_dump *xla, char *const *refs, int n, struct web **ret,
	struct err *e)
{
	struct web *w = calloc(1, sizeof(*w));
	int i, r = 0;

	if (w == NULL)
		return err_set(e, -ENOMEM, "out of memory");
	w->db = db;
	w->xla = xla;
	for (i = 0; i < n && r == 0; i++)
		r = show(w, refs[i], e);
	if (r < 0)
		web_free(w);
	else
		*ret = w;
	return r;
}

int web_twin(const struct web *w, struct web **ret)
{
	struct web *twin = calloc(1, sizeof(*twin));
	uint32_t i;

	if (twin == NULL)
		return -ENOMEM;
	twin->db = w->db;
	twin->xla = w->xla;
	for (i = 0; i < w->n_shown; i++) {
		twin->shown[i] = w->shown[i];
		if (w->shown[i].path != NULL)
			twin->shown[i].path = strdup(w->shown[i].path);
		if (w->shown[i].path != NULL && twin->shown[i].path == NULL) {
			web_free(twin);
			return -ENOMEM;
		}
		twin->n_shown++;
	}
	*ret = twin;
	return 0;
}

void web_free(struct web *w)
{
	uint32_t i;

	if (w == NULL)
		return;
	forget(w);
	for (i = 0; i < LINES_MAX; i++)
		line_close(&w->line[i]);
	for (i = 0; i < w->n_shown; i++)
		free(w->shown[i].path);
	free(w);
}

const char *web_shown(const struct web *w, int i)
{
	return i >= 0 && (uint32_t)i < w->n_shown ? w->shown[i].id : NULL;
}

bool web_range(struct web *w, const char *id, uint64_t *ret_t0, uint64_t *ret_t1)
{
	struct web_ask *a = web_ask_new(w, id);
	struct zoom *z;
	const bool has = a != NULL && web_zoom(a, &z) == 0;

	if (has)
		zoom_range(z, ret_t0, ret_t1);
	web_ask_free(a);
	return has && *ret_t1 > *ret_t0;
}

void web_title(struct web *w, const char *id, char *ret, size_t n)
{
	const char *path = path_of(w, id), *slash, *name;
	const struct profile *p = NULL;
	struct web_ask *a = web_ask_new(w, id);

	if (a != NULL)
		(void)web_profile(a, &p);
	slash = path != NULL ? strrchr(path, '/') : NULL;
	name = p != NULL && p->head.name != NULL ? p->head.name
	       : slash != NULL                   ? slash + 1
	       : path != NULL                    ? path
						 : "protond";
	snprintf(ret, n, "%.*s", (int)text_cut(name, n - 1), name);
	web_ask_free(a);
}
