/* SPDX-License-Identifier: MIT. verbs.c: the control verbs that look at the daemon and its jobs. */
#include "control.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "record.h"
#include "words.h"

#define ITEM_ROOM   8192u /* no further item of a list when less than this is left */
#define TEXT_SHOWN  1024u
#define MEMBERS_MAX (1u << 18) /* sessions × processes looked at for one answer */

#ifndef PROTOND_BUILD_VERSION
#define PROTOND_BUILD_VERSION "unknown"
#endif

verb_fn *const verb_table[WIRE_VERB_MAX] = {
#define X(id, method, who, help) verb_##id,
	WIRE_VERBS(X)
#undef X
};

static void kv_text(struct wire_buf *b, const char *key, const char *text)
{
	wire_str(b, key);
	wire_strn(b, text != NULL ? text : "", text != NULL ? strnlen(text, TEXT_SHOWN) : 0);
}

static void kv_uuid(struct wire_buf *b, const char *key, const uint8_t uuid[16])
{
	wire_kv_bin(b, key, uuid, 16);
}

/* --- hello, status
 * -------------------------------------------------------------------------------- */

void verb_hello(struct request *q)
{
	struct wire_buf *b = request_result(q);

	wire_kv_u64(b, "version", WIRE_VERSION);
	wire_kv_str(b, "daemon", PROTOND_BUILD_VERSION);
	wire_kv_i64(b, "pid", getpid());
	kv_uuid(b, "store", q->d->store_uuid);
	wire_kv_str(b, "db", store_path(q->d->store));
	wire_kv_u64(b, "uid", geteuid());
	wire_kv_bool(b, "private", q->d->private);
	request_done(q, NULL);
}

struct totals {
	const struct request *q;
	uint32_t sessions, processes;
	uint64_t events, drops, kernels, agent_ns;
	uint32_t gpu[GPU_RESIDUAL + 1];
	char gpu_text[256]; /* of one that the peer may see */
};

static void totals_session(void *arg, const struct fold_session *s)
{
	struct totals *t = arg;

	t->sessions += s->state != SESSION_IS_FINALIZED ? 1 : 0;
}

static void totals_process(void *arg, const struct fold_process *p)
{
	struct totals *t = arg;

	t->events += p->events;
	t->drops += p->drops;
	t->kernels += p->kernels;
	t->agent_ns += p->agent_ns;
	if (p->ended)
		return;
	t->processes++;
	if (p->gpu_state <= GPU_RESIDUAL)
		t->gpu[p->gpu_state]++;
	if (p->gpu_state == GPU_FAILED && p->gpu_text != NULL && request_may(t->q, p->uid))
		(void)snprintf(t->gpu_text, sizeof(t->gpu_text), "%s", p->gpu_text);
}

static uint64_t rss_bytes(void)
{
	uint64_t size, pages = 0;
	FILE *f = fopen("/proc/self/statm", "re");

	if (f == NULL)
		return 0;
	if (fscanf(f, "%lu %lu", &size, &pages) != 2)
		pages = 0;
	(void)fclose(f);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static double cpu_s(void)
{
	struct rusage u;

	if (getrusage(RUSAGE_SELF, &u) < 0)
		return 0;
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

static uint64_t file_bytes(const char *path, const char *suffix)
{
	char name[4096];
	struct stat st;

	if (snprintf(name, sizeof(name), "%s%s", path, suffix) >= (int)sizeof(name) ||
		stat(name, &st) < 0)
		return 0;
	return (uint64_t)st.st_size;
}

static void sessions_refused(const struct request *q, struct wire_buf *b)
{
	const struct fold_refused r = fold_refused(q->d->fold);
	struct err e = {0};
	char text[400];

	if (r.n == 0)
		return;
	(void)fold_refused_words(q->d->fold, r.uid, r.code, &e);
	(void)snprintf(text, sizeof(text), "%lu session%s refused, the last: %.250s", r.n,
		r.n == 1 ? " was" : "s were", request_may(q, r.uid) ? e.text : "another user's");
	wire_str(b, text);
}

static void status_warnings(const struct request *q, struct wire_buf *b, const struct totals *t)
{
	const struct daemon *d = q->d;
	char text[400];

	wire_str(b, "warnings");
	wire_array(b);
	if (t->drops > 0) {
		(void)snprintf(text, sizeof(text),
			"%lu events were dropped; protonctl jobs --all says by whom, the tree of "
			"its session why",
			t->drops);
		wire_str(b, text);
	}
	if (t->gpu[GPU_FAILED] > 0) {
		(void)snprintf(text, sizeof(text), "%u job(s) without GPU data%s%s",
			t->gpu[GPU_FAILED], t->gpu_text[0] != '\0' ? ": " : "", t->gpu_text);
		wire_str(b, text);
	}
	if (d->bad_rings > 0) {
		(void)snprintf(text, sizeof(text),
			"%lu rings broke the ring's laws and were refused", d->bad_rings);
		wire_str(b, text);
	}
	if (d->skipped_entries > 0) {
		(void)snprintf(text, sizeof(text),
			"%lu entries of the journal are left out, for each had ended protond "
			"twice; "
			"please report it: its log says which",
			d->skipped_entries);
		wire_str(b, text);
	}
	if (d->unable_jobs > 0 && request_may(q, d->unable_uid)) {
		(void)snprintf(text, sizeof(text), "%lu job%s could not record, the last: %.250s",
			d->unable_jobs, d->unable_jobs == 1 ? "" : "s", d->unable_text);
		wire_str(b, text);
	}
	sessions_refused(q, b);
	if (d->refused_connections > 0) {
		const bool may = d->refused_text[0] != '\0' && request_may(q, d->refused_uid);

		(void)snprintf(text, sizeof(text), "%lu connections were refused%s%.250s",
			d->refused_connections, may ? ", the last: " : "",
			may ? d->refused_text : "");
		wire_str(b, text);
	}
	if (d->home_trouble.code < 0) {
		(void)snprintf(text, sizeof(text),
			"the journal has no place (%.200s): remove what is in its way; until then "
			"jobs are drained into the database",
			d->home_trouble.text);
		wire_str(b, text);
	}
	if (d->journal_trouble < 0) {
		(void)snprintf(text, sizeof(text),
			"the journal in %s cannot grow (%s): make room there; until then jobs are "
			"not drained",
			d->runtime, strerror(-d->journal_trouble));
		wire_str(b, text);
	}
	if (d->store_trouble.code < 0)
		wire_str(b, d->store_trouble.text);
	else if (store_queued(d->store) > 8)
		wire_str(b, "the database does not keep up: is its disk slow or full?");
	wire_close(b);
}

void verb_status(struct request *q)
{
	const struct daemon *d = q->d;
	const char *db = store_path(d->store);
	struct totals t = {.q = q};
	struct wire_buf *b = request_result(q);
	uint32_t i;

	fold_each_session(d->fold, totals_session, &t);
	fold_each_process(d->fold, totals_process, &t);
	wire_kv_str(b, "daemon", PROTOND_BUILD_VERSION);
	wire_kv_i64(b, "pid", getpid());
	wire_kv_bool(b, "private", d->private);
	wire_kv_f64(b, "uptime_s", (double)(mono_ns() - d->started_mono_ns) * 1e-9);
	wire_kv_u64(b, "jobs", intake_jobs(d->intake));
	wire_kv_u64(b, "sessions", t.sessions);
	wire_kv_u64(b, "clients", control_clients(d->control));
	wire_kv_u64(b, "events", t.events);
	wire_kv_u64(b, "kernels", t.kernels);
	wire_kv_u64(b, "journal_bytes", journal_bytes_since(d->journal, d->stored_position));
	wire_kv_u64(b, "rss_bytes", rss_bytes());
	wire_kv_f64(b, "cpu_s", cpu_s());
	wire_kv_f64(b, "agents_cpu_s", (double)t.agent_ns * 1e-9);
	wire_kv_u64(b, "drops", t.drops);
	wire_kv_str(b, "runtime_dir", d->runtime);
	wire_kv_str(b, "db", db);
	wire_kv_u64(b, "db_bytes", file_bytes(db, "") + file_bytes(db, "-wal"));
	wire_kv_str(b, "auto_session", d->config.auto_session);
	wire_str(b, "gpu");
	wire_map(b);
	for (i = 0; i <= GPU_RESIDUAL; i++)
		wire_kv_u64(b, term_word(&term_gpu_states, i, ""), t.gpu[i]);
	wire_close(b);
	status_warnings(q, b, &t);
	request_done(q, NULL);
}

/* --- jobs
 * ----------------------------------------------------------------------------------------- */

struct members {
	int64_t *id;
	uint8_t (*uuid)[16];
	uint32_t n, cap;
};

struct job_list {
	struct request *q;
	struct wire_buf *b;
	bool all;
	struct members sessions;
	uint64_t looked, left_out;
};

static void members_add(void *arg, const struct fold_session *s)
{
	struct job_list *l = arg;
	struct members *m = &l->sessions;

	if (m->n == m->cap || !request_may(l->q, s->uid))
		return;
	m->id[m->n] = s->id;
	memcpy(m->uuid[m->n++], s->uuid, 16);
}

static void job_sessions(struct job_list *l, const uint8_t ring[16])
{
	uint32_t i;

	wire_str(l->b, "sessions");
	wire_array(l->b);
	for (i = 0; i < l->sessions.n && l->looked < MEMBERS_MAX; i++, l->looked++)
		if (fold_is_member(l->q->d->fold, l->sessions.uuid[i], ring))
			wire_i64(l->b, l->sessions.id[i]);
	wire_close(l->b);
}

static void job_of_fold(void *arg, const struct fold_process *p)
{
	struct job_list *l = arg;
	struct wire_buf *b = l->b;
	uint8_t ring[16];

	if (!request_may(l->q, p->uid) || (p->ended && !l->all))
		return;
	if (wire_buf_room(b) < ITEM_ROOM) {
		l->left_out++;
		return;
	}
	memcpy(ring, p->ring, 16);
	wire_map(b);
	wire_kv_u64(b, "pid", p->pid);
	kv_uuid(b, "ring", p->ring);
	wire_kv_u64(b, "uid", p->uid);
	kv_text(b, "command", p->command);
	kv_text(b, "cwd", p->cwd);
	wire_kv_i64(b, "rank", p->rank);
	wire_kv_i64(b, "world_size", p->world_size);
	wire_kv_i64(b, "started_ns", p->started_ns);
	wire_kv_str(b, "version", p->version);
	wire_kv_str(b, "gpu", term_word(&term_gpu_states, p->gpu_state, ""));
	wire_kv_i64(b, "gpu_code", p->gpu_code);
	kv_text(b, "gpu_text", p->gpu_text);
	wire_kv_u64(b, "cupti_version", p->cupti_version);
	wire_kv_u64(b, "driver_version", p->driver_version);
	kv_text(b, "cupti_path", p->cupti_path);
	wire_kv_u64(b, "events", p->events);
	wire_kv_u64(b, "launches", p->launches);
	wire_kv_u64(b, "kernels", p->kernels);
	wire_kv_u64(b, "drops", p->drops);
	wire_kv_str(b, "ended", p->ended ? term_word(&term_end_reasons, p->end_reason, "") : NULL);
	job_sessions(l, ring);
	wire_close(b);
}

/* A value of the info text: NUL-separated KEY=VALUE. */
static const char *info_value(
	const char *info, uint32_t bytes, const char *key, char *buf, size_t n)
{
	const size_t key_n = strlen(key);
	uint32_t at = 0;

	buf[0] = '\0';
	while (at < bytes) {
		const size_t len = strnlen(info + at, bytes - at);

		if (len > key_n && memcmp(info + at, key, key_n) == 0 && info[at + key_n] == '=') {
			const size_t v = len - key_n - 1 < n ? len - key_n - 1 : n - 1;

			memcpy(buf, info + at + key_n + 1, v);
			buf[v] = '\0';
			return buf;
		}
		at += (uint32_t)len + 1;
	}
	return buf;
}

static void kv_info(struct wire_buf *b, const char *key, const char *info, uint32_t bytes)
{
	char text[TEXT_SHOWN], clean[TEXT_SHOWN];

	(void)info_value(info, bytes, key, text, sizeof(text));
	(void)words_field(clean, sizeof(clean), text, sizeof(text));
	wire_kv_str(b, key, clean);
}

/* A job that has no ring yet: nothing is recorded of it. */
static void job_of_intake(void *arg, uint32_t pid, uint32_t uid, const uint8_t ring[16],
	const char *info, uint32_t info_bytes, uint32_t gpu_state, const char *gpu_text)
{
	struct job_list *l = arg;
	struct wire_buf *b = l->b;
	struct fold_process known;
	char text[TEXT_SHOWN];

	if (!request_may(l->q, uid) ||
		(ring != NULL && fold_get_process(l->q->d->fold, ring, &known)))
		return;
	if (wire_buf_room(b) < ITEM_ROOM) {
		l->left_out++;
		return;
	}
	wire_map(b);
	wire_kv_u64(b, "pid", pid);
	wire_kv_u64(b, "uid", uid);
	kv_info(b, "command", info, info_bytes);
	kv_info(b, "cwd", info, info_bytes);
	info_value(info, info_bytes, "rank", text, sizeof(text));
	wire_kv_i64(b, "rank", *text != '\0' ? strtol(text, NULL, 10) : -1);
	wire_kv_str(b, "gpu", term_word(&term_gpu_states, gpu_state, ""));
	kv_text(b, "gpu_text", gpu_text);
	wire_kv_u64(b, "events", 0);
	wire_str(b, "sessions");
	wire_array(b);
	wire_close(b);
	wire_close(b);
}

struct each_live {
	const struct daemon *d;
	live_job_fn *fn;
	void *arg;
};

static void live_of_fold(void *arg, const struct fold_process *p)
{
	const struct each_live *l = arg;
	const struct live_job j = {.pid = p->pid != 0 ? p->pid : p->ns_pid,
		.uid = p->uid,
		.command = p->command != NULL ? p->command : ""};

	if (!p->ended)
		l->fn(l->arg, &j);
}

static void live_of_intake(void *arg, uint32_t pid, uint32_t uid, const uint8_t ring[16],
	const char *info, uint32_t info_bytes, uint32_t gpu_state, const char *gpu_text)
{
	const struct each_live *l = arg;
	struct fold_process known;
	char command[TEXT_SHOWN];
	const struct live_job j = {.pid = pid,
		.uid = uid,
		.command = info_value(info, info_bytes, "command", command, sizeof(command))};

	(void)gpu_state;
	(void)gpu_text;
	if (ring == NULL || !fold_get_process(l->d->fold, ring, &known))
		l->fn(l->arg, &j);
}

void jobs_each_live(const struct daemon *d, live_job_fn *fn, void *arg)
{
	struct each_live l = {.d = d, .fn = fn, .arg = arg};

	fold_each_process(d->fold, live_of_fold, &l);
	intake_each_job(d->intake, live_of_intake, &l);
}

static int members_new(struct members *m, uint32_t cap)
{
	*m = (struct members){.cap = cap};
	m->id = calloc(cap, sizeof(*m->id));
	m->uuid = calloc(cap, sizeof(*m->uuid));
	return m->id != NULL && m->uuid != NULL ? 0 : -ENOMEM;
}

void verb_jobs(struct request *q)
{
	struct job_list l = {.q = q};
	struct err e;

	if (wire_get_bool(q->params, "all", &l.all) < 0 || members_new(&l.sessions, 1024) < 0) {
		free(l.sessions.id);
		free(l.sessions.uuid);
		(void)err_set(&e, -EINVAL, "jobs takes {all: true or false}");
		request_fail(q, &e, "");
		return;
	}
	fold_each_session(q->d->fold, members_add, &l);
	l.b = request_result(q);
	wire_str(l.b, "jobs");
	wire_array(l.b);
	fold_each_process(q->d->fold, job_of_fold, &l);
	intake_each_job(q->d->intake, job_of_intake, &l);
	wire_close(l.b);
	wire_kv_u64(l.b, "more", l.left_out);
	free(l.sessions.id);
	free(l.sessions.uuid);
	request_done(q, NULL);
}

void verb_sessions(struct request *q)
{
	query_list(q);
}

/* --- backends
 * ------------------------------------------------------------------------------------- */

struct cupti_seen {
	const struct request *q;
	bool may; /* the words are of a job that the peer may see */
	uint32_t version, driver, state;
	char path[256], text[256];
};

static void cupti_look(void *arg, const struct fold_process *p)
{
	struct cupti_seen *c = arg;

	const bool may = request_may(c->q, p->uid);

	if ((p->cupti_version == 0 && p->gpu_state != GPU_FAILED) || (c->may && !may))
		return;
	if (c->may == may && c->version != 0 && p->cupti_version == 0)
		return; /* one job that works says more than one that does not */
	c->version = p->cupti_version;
	c->driver = p->driver_version;
	c->state = p->gpu_state;
	c->may = may;
	(void)snprintf(
		c->path, sizeof(c->path), "%s", may && p->cupti_path != NULL ? p->cupti_path : "");
	(void)snprintf(c->text, sizeof(c->text), "%s",
		!may                  ? "of another user's job"
		: p->gpu_text != NULL ? p->gpu_text
				      : "");
}

static void backend_item(struct wire_buf *b, const char *name, const char *state, const char *text)
{
	wire_map(b);
	wire_kv_str(b, "name", name);
	wire_kv_str(b, "state", state);
	kv_text(b, "text", text);
	wire_close(b);
}

/* The daemon itself loads no vendor library: it says what its jobs found. */
void verb_backends(struct request *q)
{
	struct cupti_seen c = {.q = q};
	struct wire_buf *b = request_result(q);
	char text[640];

	fold_each_process(q->d->fold, cupti_look, &c);
	wire_str(b, "backends");
	wire_array(b);
	if (c.version != 0) {
		(void)snprintf(text, sizeof(text), "CUPTI %u, driver %u%s%s", c.version, c.driver,
			c.path[0] != '\0' ? ", " : "", c.path);
		backend_item(b, "cupti", c.state == GPU_FAILED ? "failed" : "works",
			c.state == GPU_FAILED ? c.text : text);
	} else if (c.state == GPU_FAILED) {
		backend_item(b, "cupti", "failed", c.text);
	} else {
		backend_item(b, "cupti", "unknown",
			"no job has used it since this daemon started; protonctl doctor looks for "
			"the library");
	}
	backend_item(b, "none", "works", "CPU scopes only");
	wire_close(b);
	request_done(q, NULL);
}

/* --- pause, resume, stop_daemon
 * --------------------------------------------------------------------- */

struct owner {
	uint32_t pid, uid;
	bool found;
};

static void owner_look(void *arg, const struct live_job *j)
{
	struct owner *o = arg;

	if (j->pid == o->pid) {
		o->uid = j->uid;
		o->found = true;
	}
}

static void paused_or_resumed(void *arg, int r, const struct err *e)
{
	struct request *q = arg;
	struct wire_buf *b = request_result(q);

	(void)e;
	wire_kv_u64(b, "jobs", q->session.n_processes);
	wire_kv_bool(b, "settled", r == 0);
	request_done(q, NULL);
}

static void pause_or_resume(struct request *q, bool pause)
{
	uint64_t pid = 0;
	struct owner o;
	struct err e;

	if (wire_get_u64(q->params, "pid", &pid) < 0 || pid > INT32_MAX) {
		(void)err_set(&e, -EINVAL, "pid is not a process id");
		request_fail(q, &e, "");
		return;
	}
	o = (struct owner){.pid = (uint32_t)pid};
	if (pid != 0)
		jobs_each_live(q->d, owner_look, &o);
	if (pid != 0 && (!o.found || !request_may(q, o.uid))) {
		(void)err_set(&e, -ENOENT, "no job with pid %lu is attached", pid);
		request_fail(q, &e, "protonctl jobs lists them");
		return;
	}
	q->session.n_processes = intake_pause(q->d->intake, (uint32_t)pid,
		q->peer.privileged ? UINT32_MAX : (uint32_t)q->peer.uid, pause);
	daemon_settle(q->d,
		&(struct settle_who){q->peer.privileged ? 0 : (uint32_t)q->peer.uid, (uint32_t)pid},
		JOBS_ANSWER_MS, paused_or_resumed, q);
}

void verb_pause(struct request *q)
{
	pause_or_resume(q, true);
}

void verb_resume(struct request *q)
{
	pause_or_resume(q, false);
}

void verb_stop_daemon(struct request *q)
{
	struct err e;

	if (q->peer.uid != 0 && q->peer.uid != geteuid()) {
		(void)err_set(&e, -EPERM, "only the daemon's user and root may stop it");
		request_fail(q, &e, "systemctl stop protond.socket protond.service");
		return;
	}
	(void)request_result(q);
	request_done(q, NULL);
	(void)uv_kill(getpid(), SIGTERM); /* the daemon's own orderly end */
}
