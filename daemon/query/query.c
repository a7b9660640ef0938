/* SPDX-License-Identifier: MIT. query.c: what the control socket asks of the fold and the store
 * together: session references, listings, what ended jobs left.
 *
 * A query is made on the loop, runs its SQL on the store's worker (store_call), and goes on on the
 * loop, where the fold's live sessions are laid over the stored ones: the store may be a commit
 * behind, so the fold is right where both know a session. The worker touches nothing but its
 * struct.
 */
#include "control.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <sqlite3.h>

#include "schema.h"

#define ROWS_MAX   4096u
#define PREFIX_MIN 4u
#define LAST_MAX   4000u /* < ROWS_MAX */
#define ITEM_ROOM  4096u /* an item of a list is left out when less than this is left */

/* clang-format off */
#define COLUMNS "SELECT id, uuid, name, uid, created_ns, state, source, launches, matched, active_ns," \
                " (SELECT count(*) FROM member m WHERE m.session = s.id), " SCHEMA_SESSION_COMMAND " FROM session s "
#define QUERIES(X)                                                                                   \
        X(BY_ID,   COLUMNS "WHERE id = ?1")                                                          \
        X(BY_TEXT, COLUMNS "WHERE name = ?2 OR (?3 <> '' AND substr(lower(hex(uuid)), 1, length(?3)) = ?3)" \
                " ORDER BY id DESC LIMIT ?4")                                                        \
        X(LAST,    COLUMNS "WHERE uid = ?1 ORDER BY source = 'auto', id DESC LIMIT ?4")              \
        X(ALL,     COLUMNS "WHERE ?1 < 0 OR uid = ?1 ORDER BY id DESC LIMIT ?4")                     \
        X(ENDED,   "SELECT DISTINCT p.id, p.pid, p.rank, p.command, p.end_reason, p.ring, n.text"    \
                " FROM process p LEFT JOIN note n ON n.process = p.id"\
                " WHERE p.ended_ns IS NOT NULL AND (?2 < 0 OR p.uid = ?2)"                           \
                " AND (?1 = 0 OR p.id IN (SELECT process FROM member WHERE session = ?1))"           \
                " AND (?3 = 0 OR p.pid = ?3) ORDER BY p.id DESC, n.ns LIMIT ?4")
/* clang-format on */

enum query {
#define X(name, sql) Q_##name,
	QUERIES(X)
#undef X
};
static const char *const queries[] = {
#define X(name, sql) sql,
	QUERIES(X)
#undef X
};

/* A search for sessions: what is looked for, and what the store knows of it. */
struct search {
	struct request *q;
	enum query query;
	int64_t number;  /* id, or uid (-1: all) */
	uint64_t back;   /* LAST: how many before the last */
	char name[128];  /* BY_TEXT */
	char prefix[33]; /* BY_TEXT: of the uuid in hex, or "" */
	bool fell_back;  /* an id that was not there is tried as a name */
	store_done_fn *done;
	uint32_t n, cap, left_out;
	struct session_ref *found;
};

/* --- on the worker
 * -------------------------------------------------------------------------------- */

static struct session_ref *search_add(struct search *s)
{
	uint32_t cap;
	struct session_ref *grown;

	if (s->n == s->cap) {
		cap = s->cap == 0 ? 32 : s->cap * 2;
		grown = s->n < 2 * ROWS_MAX ? realloc(s->found, cap * sizeof(*grown)) : NULL;
		if (grown == NULL)
			return NULL;
		s->found = grown;
		s->cap = cap;
	}
	s->found[s->n] = (struct session_ref){.id = 0};
	return &s->found[s->n++];
}

static void copy_text(char *to, size_t n, const void *text)
{
	const char *from = text != NULL ? text : "";
	const size_t bytes = strnlen(from, n - 1);

	memcpy(to, from, bytes);
	to[bytes] = '\0';
}

static int search_row(struct search *s, sqlite3_stmt *st)
{
	struct session_ref *r;

	if (sqlite3_column_bytes(st, 1) != 16)
		return 0;
	r = search_add(s);
	if (r == NULL)
		return -ENOMEM;
	r->id = sqlite3_column_int64(st, 0);
	memcpy(r->uuid, sqlite3_column_blob(st, 1), 16);
	copy_text(r->name, sizeof(r->name), sqlite3_column_text(st, 2));
	r->uid = (uint32_t)sqlite3_column_int64(st, 3);
	r->created_ns = sqlite3_column_int64(st, 4);
	r->state = (uint8_t)term_number(
		&term_session_states, (const char *)sqlite3_column_text(st, 5), 0);
	r->source = term_number(&term_session_sources, (const char *)sqlite3_column_text(st, 6), 0);
	r->launches = (uint64_t)sqlite3_column_int64(st, 7);
	r->matched = (uint64_t)sqlite3_column_int64(st, 8);
	r->duration_ns = (uint64_t)sqlite3_column_int64(st, 9);
	r->n_processes = (uint32_t)sqlite3_column_int64(st, 10);
	copy_text(r->command, sizeof(r->command), sqlite3_column_text(st, 11));
	return 0;
}

static int sql_fail(sqlite3 *db, struct err *e)
{
	return err_set(e, -EIO, "the database did not answer: %s", sqlite3_errmsg(db));
}

static int search_work(struct sqlite3 *db, void *arg, struct err *e)
{
	struct search *s = arg;
	sqlite3_stmt *st;
	int r = 0, step = SQLITE_ROW;

	if (sqlite3_prepare_v2(db, queries[s->query], -1, &st, NULL) != SQLITE_OK)
		return sql_fail(db, e);
	/* A query binds what it has; SQLITE_RANGE for the others is no fault. */
	(void)sqlite3_bind_int64(st, 1, s->number);
	(void)sqlite3_bind_text(st, 2, s->name, -1, SQLITE_STATIC);
	(void)sqlite3_bind_text(st, 3, s->prefix, -1, SQLITE_STATIC);
	(void)sqlite3_bind_int64(st, 4, ROWS_MAX);
	while (r == 0 && (step = sqlite3_step(st)) == SQLITE_ROW)
		r = search_row(s, st);
	(void)sqlite3_finalize(st);
	if (r < 0)
		return err_set(e, r, "out of memory");
	return step == SQLITE_DONE ? 0 : sql_fail(db, e);
}

/* --- the live sessions over the stored ones
 * --------------------------------------------------------- */

static void ref_from_fold(struct session_ref *r, const struct fold_session *f)
{
	const uint64_t now = mono_ns();

	*r = (struct session_ref){.id = f->id,
		.created_ns = f->created_ns,
		.uid = f->uid,
		.source = f->source,
		.n_processes = f->n_processes,
		.state = f->state,
		.live = true,
		.duration_ns = f->active_ns,
		.launches = f->launches,
		.matched = f->matched};
	if (f->active_since_ns != 0 && now > f->active_since_ns)
		r->duration_ns += now - f->active_since_ns;
	memcpy(r->uuid, f->uuid, 16);
	copy_text(r->name, sizeof(r->name), f->name);
}

static void hex16(const uint8_t uuid[16], char ret[33])
{
	static const char digits[] = "0123456789abcdef";
	int i;

	for (i = 0; i < 16; i++) {
		ret[2 * i] = digits[uuid[i] >> 4];
		ret[2 * i + 1] = digits[uuid[i] & 15];
	}
	ret[32] = '\0';
}

static bool has_prefix(const struct session_ref *r, const char *prefix)
{
	char hex[33];

	hex16(r->uuid, hex);
	return *prefix != '\0' && strncmp(hex, prefix, strlen(prefix)) == 0;
}

static bool search_wants(const struct search *s, const struct session_ref *r)
{
	switch (s->query) {
	case Q_BY_ID:
		return r->id == s->number;
	case Q_BY_TEXT:
		return strcmp(r->name, s->name) == 0 || has_prefix(r, s->prefix);
	case Q_LAST:
	case Q_ALL:
		return s->number < 0 || r->uid == (uint64_t)s->number;
	case Q_ENDED:
	default:
		return false;
	}
}

static void search_lay_over(void *arg, const struct fold_session *f)
{
	struct search *s = arg;
	struct session_ref live, *r = NULL;
	uint32_t i;

	ref_from_fold(&live, f);
	if (!search_wants(s, &live))
		return;
	for (i = 0; i < s->n && r == NULL; i++)
		if (memcmp(s->found[i].uuid, live.uuid, 16) == 0)
			r = &s->found[i];
	if (r == NULL)
		r = search_add(s);
	if (r == NULL) {
		s->left_out++;
		return;
	}
	memcpy(live.command, r->command, sizeof(live.command));
	*r = live;
}

/* Newest first, by id: a clock may have been set back. What somebody asked for before what is
 * automatic when `arg` says so. */
static int newest_first(const void *a, const void *b)
{
	const struct session_ref *x = a, *y = b;

	if (x->id != y->id)
		return x->id < y->id ? 1 : -1;
	return 0;
}

static void search_sort(struct search *s)
{
	fold_each_session(s->q->d->fold, search_lay_over, s);
	if (s->n > 1)
		qsort(s->found, s->n, sizeof(*s->found), newest_first);
}

/* --- references
 * ----------------------------------------------------------------------------------- */

static const struct session_ref *pick_last(const struct search *s, bool automatic)
{
	uint64_t back = s->back;
	uint32_t i;

	for (i = 0; i < s->n; i++)
		if ((s->found[i].source == SOURCE_AUTO) == automatic && back-- == 0)
			return &s->found[i];
	return NULL;
}

static bool has_asked_for(const struct search *s)
{
	uint32_t i;

	for (i = 0; i < s->n; i++)
		if (s->found[i].source != SOURCE_AUTO)
			return true;
	return false;
}

/* How well a session fits a name: the own before others', the live before the stored. */
static int rank_name(const struct search *s, const struct session_ref *r)
{
	if (!request_may(s->q, r->uid) || strcmp(r->name, s->name) != 0)
		return 0;
	return 1 + (r->uid == s->q->peer.uid ? 2 : 0) + (r->live ? 1 : 0);
}

static const struct session_ref *pick_text(const struct search *s, bool *ret_ambiguous)
{
	const struct session_ref *best = NULL;
	int rank = 0;
	uint32_t i;

	for (i = 0; i < s->n; i++)
		if (rank_name(s, &s->found[i]) > rank) {
			best = &s->found[i];
			rank = rank_name(s, best);
		}
	for (i = 0; rank == 0 && i < s->n; i++) {
		if (!request_may(s->q, s->found[i].uid))
			continue;
		*ret_ambiguous = best != NULL;
		best = &s->found[i];
	}
	return best;
}

static const struct session_ref *search_pick(const struct search *s, bool *ret_ambiguous)
{
	*ret_ambiguous = false;
	switch (s->query) {
	case Q_BY_ID:
		return s->n > 0 && request_may(s->q, s->found[0].uid) ? &s->found[0] : NULL;
	case Q_BY_TEXT:
		return pick_text(s, ret_ambiguous);
	case Q_LAST:
		return pick_last(s, !has_asked_for(s));
	case Q_ALL:
	case Q_ENDED:
	default:
		return NULL;
	}
}

static void search_free(struct search *s)
{
	free(s->found);
	free(s);
}

static void search_drained(void *arg, bool ends)
{
	struct search *s = arg;

	(void)ends;
	store_call(s->q->d->store, search_work, s, s->done);
}

/* Behind what jobs wrote before: one may have started a session just now. */
static void search_begin(struct search *s, store_done_fn *done)
{
	s->done = done;
	if (daemon_when_drained(s->q->d, LOOK_MS, search_drained, s) < 0)
		search_drained(s, false); /* with what is known */
}

static void search_on_done(void *arg, int r, const struct err *e)
{
	struct search *s = arg;
	struct request *q = s->q;
	const struct session_ref *found = NULL;
	bool ambiguous = false;
	struct err mine;

	if (r == 0) {
		search_sort(s);
		found = search_pick(s, &ambiguous);
	}
	if (r == 0 && found == NULL && s->query == Q_BY_ID && !s->fell_back) {
		s->fell_back = true; /* a name may be all digits */
		s->query = Q_BY_TEXT;
		s->n = 0;
		store_call(q->d->store, search_work, s, search_on_done);
		return;
	}
	if (r == 0 && found != NULL && !ambiguous) {
		q->session = *found;
		search_free(s);
		q->then(q);
		return;
	}
	if (r < 0)
		request_fail(q, e, "protonctl doctor looks at the database");
	else if (ambiguous) {
		(void)err_set(&mine, -ENOTUNIQ, "more than one session begins with '%s'", s->name);
		request_fail(q, &mine, "give more digits; protonctl sessions lists them");
	} else {
		(void)err_set(&mine, -ENOENT, "no session '%s'", s->name);
		request_fail(q, &mine, "protonctl sessions lists what there is");
	}
	search_free(s);
}

static bool is_number(const char *text, uint64_t max, uint64_t *ret)
{
	char *end;
	unsigned long long v;

	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	v = strtoull(text, &end, 10);
	if (errno != 0 || *end != '\0' || v > max)
		return false;
	*ret = v;
	return true;
}

/* A uuid's beginning, dashes left out; "" when the text cannot be one. */
static void take_prefix(const char *text, char ret[33])
{
	size_t n = 0;

	for (; *text != '\0'; text++) {
		if (*text == '-')
			continue;
		if (n == 32 || !isxdigit((unsigned char)*text)) {
			ret[0] = '\0';
			return;
		}
		ret[n++] = (char)tolower((unsigned char)*text);
	}
	ret[n < PREFIX_MIN ? 0 : n] = '\0';
}

static int search_parse(struct search *s, const char *text)
{
	uint64_t v;

	if (*text == '\0')
		text = "@last";
	copy_text(s->name, sizeof(s->name), text);
	if (*text == '@') {
		s->query = Q_LAST;
		s->number = (int64_t)s->q->peer.uid;
		if (strcmp(text, "@last") == 0)
			return 0;
		return text[1] == '-' && is_number(text + 2, LAST_MAX, &s->back) ? 0 : -EINVAL;
	}
	take_prefix(text, s->prefix);
	s->query = Q_BY_TEXT;
	if (is_number(text, INT64_MAX, &v)) {
		s->query = Q_BY_ID;
		s->number = (int64_t)v;
	}
	return 0;
}

void query_session(struct request *q, verb_fn *then)
{
	struct search *s = calloc(1, sizeof(*s));
	char text[128] = "";
	struct err e;

	if (s == NULL) {
		(void)err_set(&e, -ENOMEM, "out of memory");
		request_fail(q, &e, "");
		return;
	}
	s->q = q;
	q->then = then;
	if (wire_get_str(q->params, "session", text, sizeof(text)) < 0 ||
		search_parse(s, text) < 0) {
		(void)err_set(&e, -EINVAL, "not a session reference: '%s'", text);
		request_fail(q, &e,
			"a name, an id, the beginning of a uuid, @last, or @-1 for the one before");
		search_free(s);
		return;
	}
	search_begin(s, search_on_done);
}

void query_again(struct request *q, verb_fn *then)
{
	struct search *s = calloc(1, sizeof(*s));

	if (s == NULL) {
		then(q); /* with what is known */
		return;
	}
	s->q = q;
	q->then = then;
	s->query = Q_BY_TEXT;
	s->name[0] = '@'; /* no session has that name */
	hex16(q->session.uuid, s->prefix);
	store_call(q->d->store, search_work, s, search_on_done);
}

struct newest {
	const struct request *q;
	struct session_ref *ret;
	bool found;
};

static void newest_look(void *arg, const struct fold_session *f)
{
	struct newest *n = arg;
	struct session_ref r;
	bool worse;

	if (f->state == SESSION_IS_FINALIZED || !request_may(n->q, f->uid))
		return;
	ref_from_fold(&r, f);
	worse = n->found && ((r.source == SOURCE_AUTO && n->ret->source != SOURCE_AUTO) ||
				    ((r.source == SOURCE_AUTO) == (n->ret->source == SOURCE_AUTO) &&
					    newest_first(&r, n->ret) > 0));
	if (worse)
		return;
	*n->ret = r;
	n->found = true;
}

int query_newest_live(const struct request *q, struct session_ref *ret)
{
	struct newest n = {.q = q, .ret = ret};

	fold_each_session(q->d->fold, newest_look, &n);
	return n.found ? 0 : -ENOENT;
}

/* --- listing
 * -------------------------------------------------------------------------------------- */

static void list_item(struct wire_buf *b, const struct session_ref *r)
{
	wire_map(b);
	wire_kv_i64(b, "id", r->id);
	wire_kv_bin(b, "uuid", r->uuid, 16);
	wire_kv_str(b, "name", r->name);
	wire_kv_str(b, "command", r->command);
	wire_kv_str(b, "state", term_word(&term_session_states, r->state, ""));
	wire_kv_str(b, "source", term_word(&term_session_sources, r->source, ""));
	wire_kv_u64(b, "uid", r->uid);
	wire_kv_i64(b, "created_ns", r->created_ns);
	wire_kv_u64(b, "duration_ns", r->duration_ns);
	wire_kv_u64(b, "processes", r->n_processes);
	wire_kv_u64(b, "launches", r->launches);
	wire_kv_u64(b, "matched", r->matched);
	wire_close(b);
}

static void list_on_done(void *arg, int r, const struct err *e)
{
	struct search *s = arg;
	struct request *q = s->q;
	struct wire_buf *b;
	uint32_t i;

	if (r < 0) {
		search_free(s);
		request_fail(q, e, "protonctl doctor looks at the database");
		return;
	}
	search_sort(s);
	b = request_result(q);
	wire_str(b, "sessions");
	wire_array(b);
	for (i = 0; i < s->n && wire_buf_room(b) > ITEM_ROOM; i++)
		list_item(b, &s->found[i]);
	wire_close(b);
	wire_kv_u64(b, "more", s->n - i + s->left_out);
	search_free(s);
	request_done(q, NULL);
}

void query_list(struct request *q)
{
	struct search *s = calloc(1, sizeof(*s));
	struct err e;

	if (s == NULL) {
		(void)err_set(&e, -ENOMEM, "out of memory");
		request_fail(q, &e, "");
		return;
	}
	s->q = q;
	s->query = Q_ALL;
	s->number = q->peer.privileged ? -1 : (int64_t)q->peer.uid;
	search_begin(s, list_on_done);
}

/* --- what ended jobs left
 * ---------------------------------------------------------------------------- */

struct ended {
	struct request *q;
	int64_t session, uid, pid;
	struct wire_buf items; /* a frame of its own with the array's items, made on the worker */
	uint32_t n;
	bool more; /* not all went in */
};

/* Rows of one process follow each other: a row per note. */
static void ended_rows(struct ended *x, sqlite3_stmt *st, int *step)
{
	struct wire_buf *b = &x->items;
	int64_t id = -1;

	while ((*step = sqlite3_step(st)) == SQLITE_ROW && wire_buf_room(b) > ITEM_ROOM) {
		const char *text = (const char *)sqlite3_column_text(st, 6);
		char command[1024];

		if (sqlite3_column_int64(st, 0) != id) {
			if (id >= 0) {
				wire_close(b);
				wire_close(b);
			}
			id = sqlite3_column_int64(st, 0);
			copy_text(command, sizeof(command), sqlite3_column_text(st, 3));
			wire_map(b);
			wire_kv_i64(b, "pid", sqlite3_column_int64(st, 1));
			wire_kv_i64(b, "rank",
				sqlite3_column_type(st, 2) == SQLITE_NULL
					? -1
					: sqlite3_column_int64(st, 2));
			wire_kv_str(b, "command", command);
			wire_kv_str(b, "ended", (const char *)sqlite3_column_text(st, 4));
			wire_kv_bin(b, "ring", sqlite3_column_blob(st, 5),
				(size_t)sqlite3_column_bytes(st, 5));
			wire_str(b, "notes");
			wire_array(b);
			x->n++;
		}
		if (text != NULL)
			wire_str(b, text);
	}
	if (id >= 0) {
		wire_close(b);
		wire_close(b);
	}
}

static int ended_work(struct sqlite3 *db, void *arg, struct err *e)
{
	struct ended *x = arg;
	sqlite3_stmt *st;
	int step = SQLITE_DONE;

	if (sqlite3_prepare_v2(db, queries[Q_ENDED], -1, &st, NULL) != SQLITE_OK)
		return sql_fail(db, e);
	(void)sqlite3_bind_int64(st, 1, x->session);
	(void)sqlite3_bind_int64(st, 2, x->uid);
	(void)sqlite3_bind_int64(st, 3, x->pid);
	(void)sqlite3_bind_int64(st, 4, ROWS_MAX);
	ended_rows(x, st, &step);
	x->more = step == SQLITE_ROW;
	(void)sqlite3_finalize(st);
	return step == SQLITE_DONE || step == SQLITE_ROW ? 0 : sql_fail(db, e);
}

static void ended_on_done(void *arg, int r, const struct err *e)
{
	struct ended *x = arg;
	struct request *q = x->q;
	struct wire_buf *b = &q->out;
	bool more = x->more;

	if (r == 0 && x->items.failed == 0 && wire_buf_room(b) > x->items.n)
		wire_raw(b, x->items.bytes, x->items.n, x->n);
	else
		more = true;
	wire_buf_free(&x->items);
	free(x);
	if (r < 0) {
		request_fail(q, e, "protonctl doctor looks at the database");
		return;
	}
	wire_close(b);
	wire_kv_bool(b, "more", more);
	request_done(q, NULL);
}

void query_ended(struct request *q, bool by_session, uint64_t pid)
{
	struct ended *x = calloc(1, sizeof(*x));
	struct err e;

	if (x == NULL) {
		(void)err_set(&e, -ENOMEM, "out of memory");
		request_fail(q, &e, "");
		return;
	}
	x->q = q;
	x->session = by_session ? q->session.id : 0;
	x->uid = q->peer.privileged ? -1 : (int64_t)q->peer.uid;
	x->pid = pid <= INT32_MAX ? (int64_t)pid : -1;
	wire_buf_init(&x->items, WIRE_FRAME_MAX / 4);
	store_call(q->d->store, ended_work, x, ended_on_done);
}
