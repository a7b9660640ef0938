/* SPDX-License-Identifier: MIT. verbs_session.c: the control verbs that make, change, end and hand
 * out sessions. Each becomes a VERB entry of the journal; nothing is changed past it. */
#include "control.h"

#include <ctype.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "backends.h"
#include "engine.h"

#define FINALIZE_MS     5000u
#define FINALIZE_MS_MAX 60000u
#define DRAIN_MS        2000u

static const uint8_t no_ring[16];

static void fail(struct request *q, int code, const char *text, const char *next)
{
	struct err e;

	(void)err_set(&e, code, "%s", text);
	request_fail(q, &e, next);
}

static int apply_verb(struct daemon *d, struct j_verb *v)
{
	v->mono_ns = mono_ns();
	v->realtime_ns = real_ns();
	return daemon_apply(d, J_VERB, no_ring, v, sizeof(*v));
}

/* Applies a verb without further words to q->session. */
static int apply_plain(struct request *q, enum verb verb)
{
	struct j_verb v = {.verb = verb, .uid = q->session.uid};

	memcpy(v.session, q->session.uuid, 16);
	return apply_verb(q->d, &v);
}

static void answer(struct request *q, int r, const char *what)
{
	struct err e;

	if (r < 0) {
		(void)err_set(&e, r, "could not %s '%s': %s", what, q->session.name, strerror(-r));
		request_fail(q, &e,
			r == -ENOSPC ? "the journal's tmpfs or a ceiling is full: protonctl status"
				     : "protonctl status");
		return;
	}
	(void)request_result(q);
	request_done(q, NULL);
}

/* --- start
 * ---------------------------------------------------------------------------------------- */

/* A word of a list → its number; unchanged when there is none. */
static int word_index(
	const msgpack_object *params, const char *key, const struct term_list *l, uint8_t *ret)
{
	char text[32] = "";
	uint32_t i;

	if (wire_get_str(params, key, text, sizeof(text)) < 0)
		return -EINVAL;
	if (*text == '\0')
		return 0;
	i = term_number(l, text, UINT32_MAX);
	if (i == UINT32_MAX)
		return -EINVAL;
	*ret = (uint8_t)i;
	return 0;
}

/* clang-format off */
static const char *const backend_words[] = {
#define X(name, vendor, caps, injection) #name,
	GPU_BACKENDS(X)
#undef X
	"none"};
/* clang-format on */
static const struct term_list backends = {
	backend_words, sizeof(backend_words) / sizeof(backend_words[0])};

static bool name_is_good(const char *name)
{
	const unsigned char *p;

	if (*name == '\0' || *name == '@')
		return false;
	for (p = (const unsigned char *)name; *p != '\0'; p++)
		if (*p < 0x20 || *p == 0x7f)
			return false;
	return true;
}

/* What is recorded and how. NULL: fine; else which parameter is wrong, and what it may be. */
static const char *start_options(const msgpack_object *params, struct j_verb *v)
{
	uint8_t backend = 0, hook = 0, source = SOURCE_CONTROL;

	if (wire_get_str(params, "name", v->name, sizeof(v->name)) < 0 || !name_is_good(v->name))
		return "name: 1 to 127 bytes, no control characters, not beginning with @";
	if (word_index(params, "data", &term_session_datas, &v->data) < 0)
		return "data: tree, trace or both";
	if (word_index(params, "context", &term_session_contexts, &v->context) < 0)
		return "context: shadow or python";
	if (word_index(params, "cpu", &term_session_cpus, &v->cpu) < 0)
		return "cpu: on or off";
	if (word_index(params, "gpu", &term_session_gpus, &v->gpu) < 0)
		return "gpu: on, armed or none";
	if (word_index(params, "backend", &backends, &backend) < 0)
		return "backend: " BACKEND_WORDS;
	if (word_index(params, "hook", &term_session_hooks, &hook) < 0)
		return "hook: triton, torch or none";
	if (word_index(params, "source", &term_session_sources, &source) < 0 ||
		(source != SOURCE_CONTROL && source != SOURCE_RUN))
		return "source: control or run";
	if (wire_get_str(params, "mode", v->mode, sizeof(v->mode)) < 0 || v->mode[0] != '\0')
		return "mode: there is none yet; PC sampling is not recorded by this version";
	(void)snprintf(v->backend, sizeof(v->backend), "%s", backend_words[backend]);
	if (hook != 0)
		(void)snprintf(v->hook, sizeof(v->hook), "%s", term_session_hooks.word[hook]);
	if (backend == backends.n - 1)
		v->gpu = SESSION_GPU_NONE;
	v->source = source;
	return NULL;
}

/* Which jobs. NULL: fine. */
static const char *start_match(const msgpack_object *params, struct j_verb *v)
{
	uint64_t pid = 0;
	bool all = false;
	const bool token = wire_get(params, "token") != NULL;
	const bool match = wire_get(params, "match") != NULL;

	if (wire_get_u64(params, "pid", &pid) < 0 || pid > INT32_MAX)
		return "pid: a process id";
	if (wire_get_bool(params, "all", &all) < 0)
		return "all: true or false";
	if (wire_get_bin(params, "token", v->token, sizeof(v->token)) < 0)
		return "token: 16 bytes";
	if (wire_get_str(params, "match", v->command, sizeof(v->command)) < 0)
		return "match: at most 127 bytes";
	if ((pid != 0) + all + token + match != 1)
		return "which jobs: exactly one of pid, all, match, token";
	v->pid = (uint32_t)pid;
	v->match = pid != 0 ? MATCH_PID : all ? MATCH_USER : token ? MATCH_TOKEN : MATCH_COMMAND;
	return NULL;
}

/* Attached jobs that the new session is for. */
struct matching {
	const struct j_verb *v;
	uint32_t n, uid; /* uid: of the job, for pid */
};

static void matching_look(void *arg, const struct live_job *j)
{
	struct matching *m = arg;

	switch (m->v->match) {
	case MATCH_PID:
		if (j->pid != m->v->pid)
			return;
		m->uid = j->uid;
		break;
	case MATCH_USER:
		if (j->uid != m->v->uid)
			return;
		break;
	case MATCH_COMMAND:
		if (j->uid != m->v->uid || fnmatch(m->v->command, j->command, 0) != 0)
			return;
		break;
	default:
		return;
	}
	m->n++;
}

struct same_name {
	const struct j_verb *v;
	bool found;
};

static void same_name_look(void *arg, const struct fold_session *s)
{
	struct same_name *n = arg;

	if (s->uid == n->v->uid && s->state != SESSION_IS_FINALIZED &&
		s->state != SESSION_IS_FINALIZING && strcmp(s->name, n->v->name) == 0)
		n->found = true;
}

/* A name must say which live session is meant; a run has its token, and many may start at once. */
static bool name_is_taken(const struct request *q, const struct j_verb *v)
{
	struct same_name n = {.v = v};

	if (v->source == SOURCE_RUN)
		return false;
	fold_each_session(q->d->fold, same_name_look, &n);
	return n.found;
}

/* Whoever was there records, or did not say so in time. */
static void started(void *arg, int r, const struct err *e)
{
	struct request *q = arg;
	struct wire_buf *b = request_result(q);

	(void)e;
	wire_kv_i64(b, "id", q->session.id);
	wire_kv_bin(b, "uuid", q->session.uuid, 16);
	wire_kv_str(b, "name", q->session.name);
	wire_kv_u64(b, "jobs", q->session.n_processes);
	wire_kv_bool(b, "settled", r == 0);
	request_done(q, NULL);
}

static void start_failed(struct request *q, uint32_t uid, int r, bool refused)
{
	struct err e;

	if (!refused) {
		answer(q, r < 0 ? r : -ENOSPC, "start");
		return;
	}
	(void)fold_refused_words(q->d->fold, uid, r, &e);
	request_fail(q, &e, "protonctl sessions lists them; sessions_per_uid in protond.conf");
}

void verb_start(struct request *q)
{
	const uint64_t refused = fold_refused(q->d->fold).n;
	struct j_verb v = {.verb = VERB_START, .uid = (uint32_t)q->peer.uid};
	struct matching m = {.v = &v};
	struct fold_session s;
	const char *wrong = start_options(q->params, &v);
	char text[64];
	int r;

	if (wrong == NULL)
		wrong = start_match(q->params, &v);
	if (wrong != NULL) {
		fail(q, -EINVAL, wrong, "protonctl help start");
		return;
	}
	jobs_each_live(q->d, matching_look, &m);
	if (v.match == MATCH_PID && (m.n == 0 || !request_may(q, m.uid))) {
		(void)snprintf(
			text, sizeof(text), "process %u was not started with protond", v.pid);
		fail(q, -ESRCH, text,
			"start it with `protonctl run`, link libprotond, or set the variables that "
			"`protonctl env` prints");
		return;
	}
	if (v.source == SOURCE_RUN && v.match != MATCH_PID)
		v.pid = (uint32_t)q->peer.pid; /* who will end it */
	if (v.match == MATCH_PID)
		v.uid = m.uid; /* root's look at a user's job is that user's to see */
	if (name_is_taken(q, &v)) {
		fail(q, -EEXIST, "a session of that name is live",
			"protonctl finalize it, or take another name");
		return;
	}
	r = getrandom(v.session, sizeof(v.session), 0) == (ssize_t)sizeof(v.session) ? 0 : -EIO;
	if (r == 0)
		r = apply_verb(q->d, &v);
	memcpy(q->session.uuid, v.session, 16);
	(void)snprintf(q->session.name, sizeof(q->session.name), "%s", v.name);
	if (r < 0 || !fold_get_session(q->d->fold, v.session, &s)) {
		start_failed(q, v.uid, r, fold_refused(q->d->fold).n != refused);
		return;
	}
	q->session.id = s.id;
	q->session.n_processes = m.n;
	daemon_settle(q->d, &(struct settle_who){v.uid, v.match == MATCH_PID ? v.pid : 0},
		JOBS_ANSWER_MS, started, q);
}

/* --- activate, stop
 * ------------------------------------------------------------------------------- */

static void change(struct request *q, enum verb verb, const char *what)
{
	if (!q->session.live || q->session.state == SESSION_IS_FINALIZING ||
		q->session.state == SESSION_IS_FINALIZED) {
		fail(q, -EALREADY, "that session has been finalized",
			"protonctl start NAME begins another; protonview shows this one");
		return;
	}
	answer(q, apply_plain(q, verb), what);
}

static void activate_found(struct request *q)
{
	change(q, VERB_ACTIVATE, "activate");
}

static void stop_found(struct request *q)
{
	change(q, VERB_DEACTIVATE, "stop");
}

void verb_activate(struct request *q)
{
	query_session(q, activate_found);
}

void verb_stop(struct request *q)
{
	query_session(q, stop_found);
}

/* --- finalize
 * ------------------------------------------------------------------------------------- */

static void finalize_result(struct request *q)
{
	const struct session_ref *s = &q->session;
	struct wire_buf *b = request_result(q);

	wire_kv_i64(b, "id", s->id);
	wire_kv_bin(b, "uuid", s->uuid, 16);
	wire_kv_str(b, "name", s->name);
	wire_kv_u64(b, "processes", s->n_processes);
	wire_kv_u64(b, "launches", s->launches);
	wire_kv_u64(b, "unmatched", s->launches > s->matched ? s->launches - s->matched : 0);
	wire_kv_str(b, "db", store_path(q->d->store));
	request_done(q, NULL);
}

static void finalize_on_done(void *arg, int r, const struct err *e)
{
	struct request *q = arg;
	struct fold_session s;

	if (r < 0) {
		request_fail(q, e,
			"what was recorded is in the journal and will be stored: protonctl status");
		return;
	}
	if (fold_get_session(q->d->fold, q->session.uuid, &s)) {
		q->session.launches = s.launches;
		q->session.matched = s.matched;
		q->session.n_processes = s.n_processes;
		finalize_result(q);
		return;
	}
	/* The fold let go of it: the store's figures are the last ones. */
	query_again(q, finalize_result);
}

static void finalize_found(struct request *q)
{
	uint64_t ms = FINALIZE_MS;

	if (wire_get_u64(q->params, "timeout_ms", &ms) < 0 || ms > FINALIZE_MS_MAX) {
		fail(q, -EINVAL, "timeout_ms: at most 60000", "");
		return;
	}
	if (!q->session.live || q->session.state == SESSION_IS_FINALIZED) {
		finalize_result(q); /* said twice is said once */
		return;
	}
	daemon_finalize(q->d, q->session.uuid, (uint32_t)ms, finalize_on_done, q);
}

void verb_finalize(struct request *q)
{
	query_session(q, finalize_found);
}

/* --- sync, export
 * --------------------------------------------------------------------------------- */

static void sync_on_done(void *arg, int r, const struct err *e)
{
	struct request *q = arg;
	struct wire_buf *b;

	if (r < 0) {
		request_fail(q, e, "protonctl doctor looks at the database");
		return;
	}
	if (q->peer.uid != geteuid()) { /* the database's file is not this user's to open */
		query_portable(q);
		return;
	}
	b = request_result(q);
	wire_kv_i64(b, "id", q->session.id);
	wire_kv_bin(b, "uuid", q->session.uuid, 16);
	wire_kv_str(b, "db", store_path(q->d->store));
	request_done(q, NULL);
}

static void sync_drained(void *arg, bool ends)
{
	struct request *q = arg;

	(void)ends;
	daemon_commit(q->d, sync_on_done, q);
}

static void sync_found(struct request *q)
{
	static const struct err none;

	if (!q->session.live) {
		sync_on_done(q, 0, &none);
		return;
	}
	request_when_drained(q, DRAIN_MS, sync_drained);
}

void verb_sync(struct request *q)
{
	query_session(q, sync_found);
}

static void export_on_done(void *arg, int r, const struct err *e, const struct export_result *x)
{
	struct request *q = arg;
	struct wire_buf *b;
	int fd;

	if (r < 0) {
		request_fail(q, e,
			r == -EDQUOT ? LENT_HELP : "protonctl help finalize lists the formats");
		return;
	}
	fd = x->fd;
	b = request_result(q);
	wire_kv_i64(b, "id", q->session.id);
	wire_kv_bool(b, "fd", true);
	wire_kv_u64(b, "bytes", x->bytes);
	wire_kv_str(b, "name", x->name);
	request_done(q, &fd);
}

static void export_drained(void *arg, bool ends)
{
	struct request *q = arg;
	char format[32] = "hatchet";

	(void)ends;
	if (wire_get_str(q->params, "format", format, sizeof(format)) < 0)
		fail(q, -EINVAL, "format: a word of at most 31 bytes", "hatchet");
	else
		export_session(q->d, q->peer.uid, q->session.uuid, format, 0, export_on_done, q);
}

static void export_found(struct request *q)
{
	if (q->session.live)
		request_when_drained(q, DRAIN_MS, export_drained);
	else
		export_drained(q, false);
}

void verb_export(struct request *q)
{
	query_session(q, export_found);
}

/* --- delete, prune
 * -------------------------------------------------------------------------------- */

static void delete_on_commit(void *arg, int r, const struct err *e)
{
	struct request *q = arg;

	if (r < 0)
		request_fail(q, e, "protonctl doctor looks at the database");
	else
		query_delete(q);
}

/* What is deleted while it lives is lost, and whoever waits for its end finds none. */
static void delete_live_refused(struct request *q)
{
	const struct session_ref *s = &q->session;
	char text[192];

	(void)snprintf(text, sizeof(text), "session '%s' %s", s->name,
		s->state == SESSION_IS_ACTIVE ? "is still recording" : "has not been finalized");
	fail(q, -EBUSY, text, "finalize it first, or protonctl delete --force");
}

static void delete_found(struct request *q)
{
	const struct session_ref *s = &q->session;
	bool force = false;
	int r;

	if (wire_get_bool(q->params, "force", &force) < 0) {
		fail(q, -EINVAL, "force: true or false", "protonctl help delete");
		return;
	}
	if (s->live && s->state != SESSION_IS_FINALIZED && !force) {
		delete_live_refused(q);
		return;
	}
	if (!s->live) {
		query_delete(q);
		return;
	}
	r = apply_plain(q, VERB_DELETE);
	if (r < 0)
		answer(q, r, "delete");
	else
		daemon_commit(q->d, delete_on_commit, q);
}

void verb_delete(struct request *q)
{
	query_session(q, delete_found);
}

void verb_prune(struct request *q)
{
	uint64_t older_than_s = 0, max_bytes = 0;

	if (!q->peer.privileged) {
		fail(q, -EPERM,
			"prune deletes sessions of all users: root, the daemon's user and the "
			"group protond may",
			"protonctl delete removes your own");
		return;
	}
	if (wire_get_u64(q->params, "older_than_s", &older_than_s) < 0 ||
		wire_get_u64(q->params, "max_bytes", &max_bytes) < 0 ||
		(older_than_s == 0 && max_bytes == 0)) {
		fail(q, -EINVAL, "prune needs older_than_s or max_bytes", "protonctl help prune");
		return;
	}
	query_prune(q, older_than_s, max_bytes);
}
