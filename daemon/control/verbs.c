/* SPDX-License-Identifier: MIT. verbs.c: the control verbs that look at the daemon, and those that
 * list what there is. */
#include "verbs.h"

#include <signal.h>
#include <unistd.h>

#include "change.h"
#include "control.h"
#include "daemon.h"
#include "fold.h"
#include "jobs.h"
#include "params.h"
#include "status.h"

#define JOB_ROOM     8192u /* no further item of a list when less than this is left */
#define SESSION_ROOM 4096u

void verb_hello(struct request *q)
{
	struct wire_buf *b = request_result(q);
	struct daemon_identity d;

	query_identity(q->d, &d);
	wire_kv_u64(b, "version", WIRE_VERSION);
	wire_kv_str(b, "daemon", d.version);
	wire_kv_i64(b, "pid", d.pid);
	kv_uuid(b, "store", d.store);
	wire_kv_str(b, "db", d.db);
	wire_kv_u64(b, "uid", d.uid);
	wire_kv_bool(b, "private", d.private);
	request_done(q, NULL);
}

/* --- status --- */

static void status_gpu(struct wire_buf *b, const struct daemon_status *s)
{
	uint32_t i;

	wire_str(b, "gpu");
	wire_map(b);
	for (i = 0; i <= GPU_RESIDUAL; i++)
		wire_kv_u64(b, term_word(&term_gpu_states, i, ""), s->gpu[i]);
	wire_close(b);
}

static void status_warnings(struct wire_buf *b, const struct daemon_status *s)
{
	uint32_t i;

	wire_str(b, "warnings");
	wire_array(b);
	for (i = 0; i < s->n_warnings; i++)
		wire_str(b, s->warning[i]);
	wire_close(b);
}

void verb_status(struct request *q)
{
	struct wire_buf *b = request_result(q);
	struct daemon_identity d;
	struct daemon_status s;

	query_identity(q->d, &d);
	query_status(q->d, &q->who, &s);
	wire_kv_str(b, "daemon", d.version);
	wire_kv_i64(b, "pid", d.pid);
	wire_kv_bool(b, "private", d.private);
	wire_kv_f64(b, "uptime_s", s.uptime_s);
	wire_kv_u64(b, "idle_exit_s", s.idle_exit_s);
	wire_kv_bool(b, "unstored", s.unstored);
	wire_kv_u64(b, "jobs", s.jobs);
	wire_kv_u64(b, "sessions", s.sessions);
	wire_kv_u64(b, "clients", control_clients(q->d->control));
	wire_kv_u64(b, "events", s.events);
	wire_kv_u64(b, "kernels", s.kernels);
	wire_kv_u64(b, "journal_bytes", s.journal_bytes);
	wire_kv_u64(b, "rss_bytes", s.rss_bytes);
	wire_kv_f64(b, "cpu_s", s.cpu_s);
	wire_kv_f64(b, "agents_cpu_s", s.agents_cpu_s);
	wire_kv_u64(b, "drops", s.drops);
	wire_kv_str(b, "runtime_dir", s.runtime_dir);
	wire_kv_str(b, "db", d.db);
	wire_kv_u64(b, "db_bytes", s.db_bytes);
	wire_kv_str(b, "auto_session", s.auto_session);
	status_gpu(b, &s);
	status_warnings(b, &s);
	request_done(q, NULL);
}

void verb_backends(struct request *q)
{
	struct backend_state backend[BACKENDS_MAX];
	const uint32_t n = query_backends(q->d, &q->who, backend);
	struct wire_buf *b = request_result(q);
	uint32_t i;

	wire_str(b, "backends");
	wire_array(b);
	for (i = 0; i < n; i++) {
		wire_map(b);
		wire_kv_str(b, "name", backend[i].name);
		wire_kv_str(b, "state", backend[i].state);
		kv_text(b, "text", backend[i].text);
		wire_close(b);
	}
	wire_close(b);
	request_done(q, NULL);
}

/* --- jobs --- */

struct job_items {
	struct wire_buf *b;
	uint64_t left_out;
};

static void job_sessions(struct wire_buf *b, const struct job_view *j)
{
	uint32_t i;

	wire_str(b, "sessions");
	wire_array(b);
	for (i = 0; i < j->n_sessions; i++)
		wire_i64(b, j->sessions[i]);
	wire_close(b);
}

static void job_recorded(struct wire_buf *b, const struct job_view *j)
{
	const struct fold_process *p = j->process;

	wire_kv_u64(b, "pid", j->pid);
	kv_uuid(b, "ring", p->ring);
	wire_kv_u64(b, "uid", j->uid);
	kv_text(b, "command", j->command);
	kv_text(b, "cwd", j->cwd);
	wire_kv_i64(b, "rank", j->rank);
	wire_kv_i64(b, "world_size", p->world_size);
	wire_kv_i64(b, "started_ns", p->started_ns);
	wire_kv_str(b, "version", p->version);
	wire_kv_str(b, "gpu", term_word(&term_gpu_states, j->gpu_state, ""));
	wire_kv_i64(b, "gpu_code", p->gpu_code);
	kv_text(b, "gpu_text", j->gpu_text);
	wire_kv_u64(b, "cupti_version", p->cupti_version);
	wire_kv_u64(b, "driver_version", p->driver_version);
	kv_text(b, "cupti_path", p->cupti_path);
	wire_kv_u64(b, "events", p->events);
	wire_kv_u64(b, "launches", p->launches);
	wire_kv_u64(b, "kernels", p->kernels);
	wire_kv_u64(b, "drops", p->drops);
	wire_kv_bool(b, "forged", p->forged);
	wire_kv_str(b, "ended", p->ended ? term_word(&term_end_reasons, p->end_reason, "") : NULL);
}

static void job_attached(struct wire_buf *b, const struct job_view *j)
{
	wire_kv_u64(b, "pid", j->pid);
	wire_kv_u64(b, "uid", j->uid);
	wire_kv_str(b, "command", j->command);
	wire_kv_str(b, "cwd", j->cwd);
	wire_kv_i64(b, "rank", j->rank);
	wire_kv_str(b, "gpu", term_word(&term_gpu_states, j->gpu_state, ""));
	kv_text(b, "gpu_text", j->gpu_text);
	wire_kv_u64(b, "events", 0);
}

static void job_item(void *arg, const struct job_view *j)
{
	struct job_items *l = arg;

	if (wire_buf_room(l->b) < JOB_ROOM) {
		l->left_out++;
		return;
	}
	wire_map(l->b);
	if (j->process != NULL)
		job_recorded(l->b, j);
	else
		job_attached(l->b, j);
	job_sessions(l->b, j);
	wire_close(l->b);
}

void verb_jobs(struct request *q)
{
	struct job_items l = {.left_out = 0};
	struct refusal no;
	bool all = false;

	if (wire_get_bool(q->params, "all", &all) < 0) {
		request_wrong(q, "all must be true or false", "see `protonctl help jobs`");
		return;
	}
	l.b = request_result(q);
	wire_str(l.b, "jobs");
	wire_array(l.b);
	if (query_jobs(q->d, &q->who, all, job_item, &l) < 0) {
		refuse_memory(&no);
		request_refuse(q, &no);
		return;
	}
	wire_close(l.b);
	wire_kv_u64(l.b, "more", l.left_out);
	request_done(q, NULL);
}

/* --- sessions --- */

static void session_item(struct wire_buf *b, const struct session_ref *s)
{
	wire_map(b);
	kv_session(b, s);
	wire_kv_str(b, "command", s->command);
	wire_kv_u64(b, "duration_ns", s->duration_ns);
	wire_kv_u64(b, "processes", s->n_processes);
	wire_kv_u64(b, "launches", s->launches);
	wire_kv_u64(b, "matched", s->matched);
	wire_close(b);
}

static void sessions_listed(void *arg, const struct refusal *no, const struct session_list *l)
{
	struct request *q = request_of(arg);
	struct wire_buf *b;
	uint32_t i;

	if (no != NULL) {
		request_refuse(q, no);
		return;
	}
	b = request_result(q);
	wire_str(b, "sessions");
	wire_array(b);
	for (i = 0; i < l->n && wire_buf_room(b) > SESSION_ROOM; i++)
		session_item(b, &l->session[i]);
	wire_close(b);
	wire_kv_u64(b, "more", l->n - i + l->left_out);
	request_done(q, NULL);
}

void verb_sessions(struct request *q)
{
	query_sessions(q->d, &q->who, sessions_listed, q);
}

/* --- pause, resume, stop_daemon --- */

static void paused_or_resumed(void *arg, const struct refusal *no, const struct changed *c)
{
	struct request *q = request_of(arg);
	struct wire_buf *b;

	if (no != NULL) {
		request_refuse(q, no);
		return;
	}
	b = request_result(q);
	wire_kv_u64(b, "jobs", c->jobs);
	wire_kv_bool(b, "settled", c->settled);
	request_done(q, NULL);
}

static void pause_or_resume(struct request *q, bool pause)
{
	uint32_t pid = 0;

	if (param_pid(q, &pid, "`protonctl jobs` lists them"))
		query_pause(q->d, &q->who, pid, pause, paused_or_resumed, q);
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
	struct refusal no;

	if (query_may_stop(&q->who, &no) < 0) {
		request_refuse(q, &no);
		return;
	}
	request_result(q);
	request_done(q, NULL);
	(void)uv_kill(getpid(), SIGTERM); /* the daemon's own orderly end */
}
