/* SPDX-License-Identifier: MIT. attach.c: what the messages of a job do: ATTACH, RING, EXPORT,
 * SESSION, STATE, PING. intake.c has the sockets, message.c the parser, rings.c what becomes of a
 * ring. */
#include "attach.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "adopt.h"
#include "below.h"
#include "config.h"
#include "conn.h"
#include "daemon.h"
#include "drain.h"
#include "drained.h"
#include "entry.h"
#include "export.h"
#include "finalize.h"
#include "fold.h"
#include "home.h"
#include "host_clock.h"
#include "journal.h"
#include "kept.h"
#include "log.h"
#include "offered.h"
#include "record.h"
#include "ring_ctl.h"
#include "rings.h"
#include "settle.h"
#include "turn.h"
#include "want.h"
#include "wants.h"
#include "words.h"

#define EXPORTS_MAX 16u /* of one job, not answered yet */
#define EXPORT_MS   10000u
#define ASKS_MAX    (2 * JOB_SESSIONS) /* likewise */
#define ASK_MS      2000u

static void read_gpu(struct conn *c)
{
	c->gpu_mask = UINT32_MAX;
	if (strcmp(c->attach.gpu, "none") == 0)
		c->gpu_mask = ~(uint32_t)(WANT_GPU | WANT_GPU_ARMED);
	else if (strcmp(c->attach.gpu, "armed") == 0)
		c->gpu_more = WANT_GPU_ARMED;
	else if (strcmp(c->attach.gpu, "on") == 0)
		c->gpu_on = true;
}

static void on_attach(struct conn *c, const struct message *m, struct err *e)
{
	const struct daemon *d = c->in->d;
	struct rv_welcome w = {.abi = RING_ABI};

	if (c->attached) {
		(void)err_set(e, -EALREADY, "ATTACH was said already");
		return;
	}
	if (m->attach.abi >> 16 != RING_ABI >> 16) {
		(void)err_set(e, -EPROTO, "libprotond has ABI %u, this protond %u; update %s",
			m->attach.abi >> 16, RING_ABI >> 16,
			m->attach.abi > RING_ABI ? "protond" : "the job's libprotond");
		return;
	}
	c->attach = m->attach;
	c->info_bytes = m->info_bytes;
	memcpy(c->info, m->info, sizeof(c->info));
	read_gpu(c);
	want_ring_sizes(d->config, &w);
	c->want = w.want = want_of_conn(c);
	c->want_known = true;
	memcpy(w.store, d->store_uuid, 16);
	(void)snprintf(w.version, sizeof(w.version), "%s", PROTOND_BUILD_VERSION);
	home_rings_of(d, c->uid, w.rings, sizeof(w.rings));
	/* Who offers its ring may be gone by now: RING lies behind, and is to be read. */
	if (conn_send(c, &w, sizeof(w), RV_WELCOME, -1) < 0 &&
		(c->attach.flags & RV_OFFERED) == 0) {
		conn_close(c);
		return;
	}
	c->attached = true;
}

/* The file's name below rings/, if it has one there: what is found again after a restart, and
 * removed after the end. */
static void find_name(struct ring *r, int fd)
{
	char name[RING_NAME_BYTES_TEXT], file[RING_NAME_BYTES_TEXT + 8];
	struct stat ours, there;
	int found;

	ring_name(r->uuid, name);
	(void)snprintf(file, sizeof(file), "%s.ring", name);
	found = below_open(r->all->d->rings_fd, file, O_PATH);
	if (found < 0)
		return;
	if (fstat(fd, &ours) == 0 && fstat(found, &there) == 0 && ours.st_dev == there.st_dev &&
		ours.st_ino == there.st_ino)
		memcpy(r->file, name, sizeof(r->file));
	(void)close(found);
}

/* execve keeps pid and start time: what the program before it recorded is complete. That is whoever connected
 * first, for what it said may be heard last. The start may be the header's word: nobody ends another user's. */
static void end_predecessor(struct ring *r)
{
	struct ring *o, *before;

	for (o = r->all->first; o != NULL; o = o->next) {
		if (o == r || o->pid != r->pid || o->pid == 0 || o->pid_start != r->pid_start ||
			o->uid != r->uid)
			continue;
		before = o->serial < r->serial ? o : r;
		before->execed = true;
		ring_died(before);
	}
}

static void take_gpu(struct ring *r, const struct conn *c)
{
	r->gpu_mask = c->gpu_mask;
	r->gpu_more = c->gpu_more;
	r->gpu_on = c->gpu_on;
}

static struct reader_expect expect_of(const struct conn *c, const struct message *m)
{
	return (struct reader_expect){
		.uid = c->uid,
		.pid_start = c->pid_start,
		.uuid = m->ring.uuid,
		.store = c->in->d->store_uuid,
		.boot_id = c->in->d->boot_id,
	};
}

/* Its offer may be on its way: a child is in its parent's sessions. */
static bool parent_is_missing(const struct ring *r)
{
	static const uint8_t none[16];
	const uint8_t *parent = r->reader.h.parent;

	return memcmp(parent, none, 16) != 0 && ring_find(r->all, parent) == NULL;
}

/* A ring that is seen for the first time. */
static int ring_first(struct conn *c, const struct message *m, int *fd, struct err *e)
{
	const struct reader_expect x = expect_of(c, m);
	const struct ring_origin o = {c->attach.token, c->attach.flags, c->attach.version};
	struct fold_process known;
	struct ring *r;
	int n;

	if (fold_get_process(c->in->d->fold, m->ring.uuid, &known) && known.ended)
		return err_set(e, -ESTALE, "this ring was closed; make a new one");
	if (rings_of(c->in->rings, c->uid) >= c->in->d->config->jobs_per_uid)
		return err_set(e, -EMFILE, "uid %u has %llu rings; raise jobs_per_uid", c->uid,
			(unsigned long long)c->in->d->config->jobs_per_uid);
	r = ring_add(c->in->rings, m->ring.uuid);
	if (r == NULL)
		return err_set(e, -ENOMEM, "no memory for a ring");
	n = ring_open(r, *fd, &x, e);
	if (n == 0) {
		*fd = -1; /* the reader's now */
		r->pid = c->pid;
		r->pid_start = c->pid_start != 0 ? c->pid_start : r->reader.h.pid_start;
		take_gpu(r, c);
		r->is_new = true;
		find_name(r, r->reader.fd);
		offered_wait(r, &o, c->want);
		c->ring = r;
		r->conn = c;
		if (parent_is_missing(r))
			c->in->hear_older(c);
		if ((o.flags & RV_OFFERED) == 0 || want_is_awaited(c) || ring_is_used(r))
			n = offered_adopt(r);
		if (n < 0)
			(void)err_set(e, n, "the ring cannot be taken now (%s)", strerror(-n));
	}
	if (n < 0)
		ring_drop(r); /* c has none then */
	return n < 0 ? n : 0;
}

static bool same_file(int a, int b)
{
	struct stat x, y;

	return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_dev == y.st_dev &&
	       x.st_ino == y.st_ino;
}

/* A ring of a former connection, or of the daemon's former life. */
static int ring_again(
	struct ring *r, struct conn *c, const struct message *m, int *fd, struct err *e)
{
	const struct reader_expect x = expect_of(c, m);
	bool more;
	int n;

	if (r->state == RING_GONE || r->state == RING_ENDED)
		return err_set(e, -ESTALE, "this ring was closed; make a new one");
	if ((r->conn != NULL && r->conn != c) || r->uid != c->uid ||
		(r->pid != 0 && r->pid != c->pid))
		return err_set(e, -EPERM, "this ring is another process's");
	if (r->state == RING_LIVE) {
		if (!same_file(r->reader.fd, *fd))
			return err_set(e, -EEXIST, "this ring is known, with another file");
	} else {
		n = ring_open(r, *fd, &x, e);
		if (n < 0)
			return n;
		*fd = -1;
		n = drain_tables_again(r, &more);
		if (n < 0)
			return err_set(e, n, "the ring's tables cannot be read");
	}
	take_gpu(r, c);
	c->ring = r;
	r->conn = c;
	return 0;
}

static int ring_offered(struct conn *c, const struct message *m, int *fd, struct err *e)
{
	struct ring *r = ring_find(c->in->rings, m->ring.uuid);
	int n;

	if (*fd < 0)
		return err_set(e, -EBADF, "RING came without a descriptor");
	n = r != NULL ? ring_again(r, c, m, fd, e) : ring_first(c, m, fd, e);
	if (n < 0)
		return n;
	r = c->ring;
	/* Of the dead the number is all that is known, which may be another's by now. */
	if ((c->dead && c->pidfd < 0) || !ring_watch(r, c->pidfd))
		ring_died(r);
	c->pidfd = -1; /* the ring's now */
	r->serial = c->serial;
	end_predecessor(r);
	n = ring_control_open(r);
	if (n < 0)
		return err_set(e, n, "the control file cannot be made: %s", strerror(-n));
	if (c->state_known)
		(void)ring_put_state(c->ring, &c->state);
	return 0;
}

/* For status. */
static void note_bad_ring(struct daemon *d, const struct conn *c, const struct err *why)
{
	d->bad_rings++;
	d->bad_ring_uid = c->uid;
	(void)snprintf(
		d->bad_ring_text, sizeof(d->bad_ring_text), "pid %u: %.180s", c->pid, why->text);
}

static void on_ring(struct conn *c, const struct message *m, int *fd, struct err *e)
{
	static struct log_cause cause = {.each = 100};
	struct rings *all = c->in->rings;
	struct rv_ctl reply = {0};
	struct err words = {0};
	char quoted[600];
	int ctl = -1;

	if (!c->attached || (c->ring != NULL && memcmp(c->ring->uuid, m->ring.uuid, 16) != 0)) {
		(void)err_set(e, -EPROTO, "RING comes after ATTACH, and one ring for each process");
		return;
	}
	reply.code = ring_offered(c, m, fd, &words);
	if (reply.code == 0) {
		(void)entry_flush(all->entries);
		if (c->ring->adopted)
			kept_offer(c->ring);
		ctl = ring_control_fd(c->ring);
		reply.n_lanes = c->ring->reader.h.n_lanes;
		reply.code =
			ctl < 0 ? err_set(&words, ctl, "the control file cannot be opened") : 0;
	}
	if (reply.code < 0) {
		c->again = reply.code == -ENOSPC || reply.code == -EMFILE ||
			   reply.code == -ENFILE || reply.code == -ENOMEM;
		if (!c->again)
			note_bad_ring(all->d, c, &words);
		log_cause(&cause, LOG_WARN, "ring_refused", "pid=%u uid=%u error=%d text=%s",
			c->pid, c->uid, -reply.code, log_quote(quoted, sizeof(quoted), words.text));
	}
	(void)snprintf(reply.text, sizeof(reply.text), "%.255s", words.text);
	if (conn_send(c, &reply, sizeof(reply), RV_CTL, ctl) < 0)
		conn_close(c);
	else
		conn_ping(c);
	if (ctl >= 0)
		(void)close(ctl);
	if (c->ring != NULL && !c->closing)
		ring_want(c->ring);
	all->entries->saw_session = true;
	turn_hurry(all->turn);
}

/* The connection may be gone when the answer is there: it is found again by its number, or not. */
struct export_job {
	struct protond *p;
	struct daemon *d;
	uint64_t serial, deadline_ns;
	uint32_t request, number; /* number: the job's own of the session */
	uint32_t uid;
	uint8_t ring[16];
	uint8_t session[16];
	uint32_t phases;
	char format[32];
};

static void exported(void *arg, int r, const struct err *e, const struct export_result *x)
{
	struct export_job *j = arg;
	struct conn *c = conn_by_serial(j->d, j->serial);
	struct rv_exported m = {.request = j->request, .code = r};

	if (r < 0 && e != NULL)
		(void)snprintf(m.text, sizeof(m.text), "%.255s", e->text);
	if (r == 0)
		m.bytes = x->bytes;
	if (c != NULL) {
		c->exports--;
		if (conn_send(c, &m, sizeof(m), RV_EXPORTED, r == 0 ? x->fd : -1) < 0)
			conn_close(c);
	}
	if (r == 0)
		(void)close(x->fd);
	free(j);
}

static void export_after(void *arg, int r, const struct err *e)
{
	struct export_job *j = arg;

	if (r < 0)
		exported(j, r, e, NULL);
	else
		export_session(j->d, j->uid, j->session, j->format, j->phases, exported, j);
}

/* The job's SESSION record is in its lane, before the message, and by now in the fold. */
static void export_begin(void *arg, bool ends)
{
	struct export_job *j = arg;
	const struct fold *f = j->d->fold;
	struct fold_session s;
	struct err words = {0};

	if (ends)
		free(j);
	else if (!fold_job_session(f, j->ring, j->number, j->session))
		exported(j, err_set(&words, -ENOENT, "the job has no session %u", j->number),
			&words, NULL);
	else if (fold_get_session(f, j->session, &s) && s.state == SESSION_IS_FINALIZING)
		finalize_soon(j->p, j->session, j->deadline_ns, export_after, j);
	else
		export_after(j, 0, NULL); /* it goes on, or is stored: as it stands now */
}

static void on_export(struct conn *c, const struct message *m, struct err *e)
{
	struct protond *p = c->in->p;
	const uint64_t now = mono_ns(),
		       ms = m->export.timeout_ms < EXPORT_MS ? m->export.timeout_ms : EXPORT_MS;
	struct export_job *j;

	if (c->ring == NULL || c->exports >= EXPORTS_MAX) {
		(void)err_set(
			e, -EPROTO, "EXPORT comes after RING, at most %u at once", EXPORTS_MAX);
		return;
	}
	j = calloc(1, sizeof(*j));
	if (j == NULL) {
		(void)err_set(e, -ENOMEM, "no memory for an export");
		return;
	}
	*j = (struct export_job){.p = p,
		.d = c->in->d,
		.serial = c->serial,
		.deadline_ns = now + ms * 1000000,
		.uid = c->uid,
		.request = m->export.request,
		.number = m->export.session,
		.phases = m->export.phase};
	memcpy(j->ring, c->ring->uuid, 16);
	(void)snprintf(j->format, sizeof(j->format), "%s", m->export.format);
	if (when_drained(p, j->ring, j->deadline_ns, export_begin, j) < 0) {
		free(j);
		(void)err_set(e, -ENOMEM, "no memory for an export");
		return;
	}
	c->exports++;
}

struct ask_job {
	struct daemon *d;
	uint64_t serial, deadline_ns;
	uint32_t uid, request, number; /* as of struct export_job */
	uint32_t verb;
	uint8_t ring[16];
};

static bool goes_on(const struct fold *f, const uint8_t session[16])
{
	struct fold_session s;

	return fold_get_session(f, session, &s) &&
	       (s.state == SESSION_IS_ACTIVE || s.state == SESSION_IS_INACTIVE);
}

/* Its record is in a lane, before the message, and by now in the fold: or it could not be brought.
 */
static int asked(const struct ask_job *j, struct err *e)
{
	const struct fold *f = j->d->fold;
	const int code = fold_job_refused(f, j->ring, j->number);
	const bool end = j->verb == SESSION_FINALIZE;
	uint8_t session[16];

	if (code < 0)
		return fold_refused_words(f, j->uid, code, e);
	if (fold_job_session(f, j->ring, j->number, session) && (!end || !goes_on(f, session)))
		return 0;
	if (mono_ns() >= j->deadline_ns)
		return err_set(e, -EAGAIN, "protond is behind with the job's events");
	return err_set(e, -ENOENT, "the session's %s did not reach protond", end ? "end" : "start");
}

static void ask_send(struct ask_job *j, const struct err *words)
{
	struct conn *c = conn_by_serial(j->d, j->serial);
	struct rv_session_is m = {.request = j->request, .code = words->code};

	(void)snprintf(m.text, sizeof(m.text), "%.255s", words->text);
	if (c != NULL) {
		c->asks--;
		if (conn_send(c, &m, sizeof(m), RV_SESSION_IS, -1) < 0)
			conn_close(c);
	}
	free(j);
}

static void ask_stored(void *arg, int r, const struct err *e)
{
	struct err words = {0};

	if (r < 0)
		(void)err_set(&words, -EAGAIN, "it is not stored yet: %.200s", e->text);
	ask_send(arg, &words);
}

/* What a ring holds that nobody else does ends with the job and us: then the store must have it. */
static bool outlives_us(const struct conn *c)
{
	return c->ring != NULL && (c->ring->file[0] != '\0' || c->ring->kept);
}

static void ask_answer(void *arg, bool ends)
{
	struct ask_job *j = arg;
	const struct conn *c = ends ? NULL : conn_by_serial(j->d, j->serial);
	struct err words = {0};

	if (c == NULL)
		free(j);
	else if (asked(j, &words) < 0 || j->verb != SESSION_FINALIZE || outlives_us(c))
		ask_send(j, &words);
	else
		daemon_commit(j->d, ask_stored, j);
}

static void on_session(struct conn *c, const struct message *m, struct err *e)
{
	struct ask_job *j;

	if (c->asks >= ASKS_MAX) {
		(void)err_set(e, -EPROTO, "SESSION: at most %u at once", ASKS_MAX);
		return;
	}
	if (c->ring == NULL) { /* refused for a while, on a new connection */
		struct rv_session_is no = {.request = m->session.request, .code = -EAGAIN};

		if (conn_send(c, &no, sizeof(no), RV_SESSION_IS, -1) < 0)
			conn_close(c);
		return;
	}
	j = calloc(1, sizeof(*j));
	if (j != NULL) {
		*j = (struct ask_job){.d = c->in->d,
			.serial = c->serial,
			.deadline_ns = mono_ns() + ASK_MS * 1000000ull,
			.uid = c->uid,
			.request = m->session.request,
			.number = m->session.session,
			.verb = m->session.verb};
		memcpy(j->ring, c->ring->uuid, 16);
	}
	if (j == NULL || when_drained(c->in->p, j->ring, j->deadline_ns, ask_answer, j) < 0) {
		free(j);
		(void)err_set(e, -ENOMEM, "no memory for a question");
		return;
	}
	c->asks++;
}

static void on_state(struct conn *c, const struct message *m, struct err *e)
{
	struct daemon *d = c->in->d;
	struct rv_state s = m->state;

	if (!c->attached) {
		(void)err_set(e, -EPROTO, "STATE comes after ATTACH");
		return;
	}
	(void)words_plain(
		s.gpu.words, sizeof(s.gpu.words), m->state.gpu.words, sizeof(m->state.gpu.words));
	(void)words_plain(
		s.gpu.path, sizeof(s.gpu.path), m->state.gpu.path, sizeof(m->state.gpu.path));
	/* No engine, or no room for a ring; said with each question. */
	if (c->ring == NULL && s.gpu.state == GPU_FAILED && c->state.gpu.state != GPU_FAILED) {
		d->unable_jobs++;
		d->unable_uid = c->uid;
		(void)snprintf(d->unable_text, sizeof(d->unable_text), "pid %u: %.230s", c->pid,
			s.gpu.words);
	}
	c->state = s;
	c->state_known = true;
	if (c->ring != NULL && c->ring->adopted)
		(void)ring_put_state(c->ring, &c->state);
	(void)entry_flush(c->in->rings->entries);
}

static void on_ping(struct conn *c)
{
	struct turn *turn = c->in->rings->turn;
	struct rv_head pong = {0};

	turn->nap = 0; /* it wakes us once for each */
	turn_hurry(turn);
	(void)conn_send(c, &pong, sizeof(pong), RV_PONG, -1);
}

static void on_pong(struct conn *c)
{
	if (c->pongs < c->pings)
		c->pongs++;
	settle_check(c->in->settlers);
}

void attach_message(struct conn *c, const void *packet, size_t n, int *fd, struct err *e)
{
	struct message m;

	if (message_parse(packet, n, &m, e) < 0)
		return;
	switch (m.type) {
	case RV_ATTACH:
		on_attach(c, &m, e);
		break;
	case RV_RING:
		on_ring(c, &m, fd, e);
		break;
	case RV_EXPORT:
		on_export(c, &m, e);
		break;
	case RV_SESSION:
		on_session(c, &m, e);
		break;
	case RV_STATE:
		on_state(c, &m, e);
		break;
	case RV_PONG:
		on_pong(c);
		break;
	default:
		on_ping(c);
		break;
	}
}
