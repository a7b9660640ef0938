/* SPDX-License-Identifier: MIT. daemon_link.c: what the parked thread and protond say to each other, and
 * what the engine is told then.
 *
 *   ATTACH -> WELCOME   want == 0: done, nothing is loaded
 *                       want != 0: load and open the engine,
 *                                  RING + fd -> CTL + fd: control(), want(), gate up
 *   WANT                want(), gate up or down
 *   connection lost     what is recorded goes on into the ring; the next daemon gets ATTACH and
 *                       RING again, with the same ring
 *
 * Whatever the daemon says that is not understood ends the connection, not the job.
 */
#include "daemon_link.h"
#include "known.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "futex.h"
#include "info.h"
#include "keep.h"
#include "load.h"
#include "protond.h"
#include "record.h"

#define GPU_BITS ((uint32_t)(WANT_GPU | WANT_GPU_ARMED))
#define FDS_MAX  8

struct link link_ = {.sock = -1};

static const struct protond_engine *engine(void)
{
	return atomic_load_explicit(&HOT->engine, memory_order_acquire);
}

/* Perhaps it is not open. */
static const struct protond_engine *engine_loaded(void)
{
	char text[PD_TEXT];

	return pd_engine_load(text);
}

/* --- the socket ------------------------------------------------------------------------------- */

static bool ours(void)
{
	struct stat st;

	return link_.sock >= 0 && fstat(link_.sock, &st) == 0 && S_ISSOCK(st.st_mode) &&
	       st.st_ino == link_.ino;
}

void link_close(void)
{
	if (ours())
		close(link_.sock);
	link_.sock = -1;
	link_.attached = false;
	link_.ring_sent = false;
	pd_lock(&pd.lock);
	/* asked again of the next daemon, while somebody waits */
	if (pd.export.state == EXPORT_SENT)
		pd.export.state = EXPORT_ASKED;
	for (uint32_t i = 0; i < JOB_SESSIONS; i++)
		if (pd.began[i].state == EXPORT_SENT)
			pd.began[i].state = EXPORT_ASKED;
	pd_unlock(&pd.lock);
}

void link_forget(void)
{
	if (ours())
		close(link_.sock);
	link_ = (struct link){.sock = -1};
	/* heard 0, as asked and answered begin in the child */
}

static bool send_with(const void *msg, size_t bytes, int fd)
{
	struct iovec iov = {.iov_len = bytes};
	union {
		char buf[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} c = {0};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t n;

	memcpy(&iov.iov_base, &msg, sizeof(msg)); /* sendmsg() only reads */
	if (fd >= 0) {
		struct cmsghdr *h;

		m.msg_control = c.buf;
		m.msg_controllen = sizeof(c.buf);
		h = CMSG_FIRSTHDR(&m);
		h->cmsg_level = SOL_SOCKET;
		h->cmsg_type = SCM_RIGHTS;
		h->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(h), &fd, sizeof(int));
	}
	if (!ours())
		return false;
	do {
		n = sendmsg(link_.sock, &m, MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	return n == (ssize_t)bytes;
}

#define HEAD(type, msg)                                 \
	{                                               \
		RV_MAGIC, (type), (uint16_t)sizeof(msg) \
	}

static bool send_attach(uint32_t flags)
{
	unsigned char buf[sizeof(struct rv_attach) + sizeof(pd.env.info)];
	struct rv_attach a = {.head = HEAD(RV_ATTACH, a),
		.abi = RING_ABI,
		.flags = flags,
		.pid = (uint32_t)getpid(),
		.pid_start = pd_start_time(),
		.version = PROTOND_BUILD_VERSION};
	uint32_t n;

	if (pd.forked)
		a.flags |= RV_FORKED;
	memcpy(a.token, pd.token, 16);
	memcpy(a.parent, pd.parent, 16);
	pd_lock(&pd.lock);
	if (pd.env.injected)
		a.flags |= RV_INJECTED;
	memcpy(a.gpu, pd.env.gpu, sizeof(a.gpu));
	n = pd.env.info_bytes;
	memcpy(buf + sizeof(a), pd.env.info, n);
	pd_unlock(&pd.lock);
	if (atomic_load(&pd.injected))
		a.flags |= RV_INJECTED;
	a.head.bytes = (uint16_t)(sizeof(a) + n);
	memcpy(buf, &a, sizeof(a));
	return send_with(buf, sizeof(a) + n, -1);
}

static bool peer_is_fit(const char *dir)
{
	struct stat st;

	return place_peer_is_fit(link_.sock, stat(dir, &st) == 0 ? &st : NULL);
}

/* flags: SOCK_NONBLOCK, or 0. */
static int connect_to(const char *dir, int flags)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	struct stat st;
	int r;

	if ((size_t)snprintf(a.sun_path, sizeof(a.sun_path), "%.96s/%s", dir, RV_AGENT_SOCK) >=
			sizeof(a.sun_path) ||
		strlen(dir) > 96)
		return -ENOTCONN;
	link_.sock = fd_keep(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | flags, 0));
	if (link_.sock < 0 || fstat(link_.sock, &st) < 0)
		return errno == EBUSY ? -EAGAIN : pd_neg_errno(); /* fd_keep(): soon again */
	link_.ino = st.st_ino;
	do {
		r = connect(link_.sock, (const struct sockaddr *)&a, sizeof(a));
	} while (r < 0 && errno == EINTR);
	if (r < 0)
		r = errno == ECONNREFUSED || errno == EAGAIN ? -EAGAIN
		    : errno == EACCES                        ? -EACCES
							     : -ENOTCONN;
	else if (!peer_is_fit(dir))
		r = -EPERM;
	else if (!send_attach(flags != 0 ? RV_OFFERED : 0) && errno != EPIPE)
		r = -EAGAIN; /* else it is closed already: its words are to be read */
	if (r < 0)
		link_close();
	return r;
}

int link_open(bool own)
{
	int r = known_place(own, link_.dir);

	if (r < 0)
		return -ENOTCONN;
	link_.refused = false;
	r = connect_to(link_.dir, 0);
	if (r == 0)
		link_.own = own;
	return r;
}

/* --- the engine ------------------------------------------------------------------------------- */

bool link_hear(void)
{
	/* acquire: whoever asked wrote local_want before */
	link_.heard = atomic_load_explicit(&pd.asked, memory_order_acquire);
	return link_.heard != atomic_load(&pd.answered);
}

void link_answer(int code, const char *words)
{
	const uint32_t asked = link_.heard;

	if (atomic_load(&pd.answered) != asked) {
		pd_lock(&pd.lock);
		(void)snprintf(pd.words, sizeof(pd.words), "%s", words);
		pd.answer = code;
		pd_unlock(&pd.lock);
		/* release: answer and words; pairs with the acquire in ask() */
		atomic_store_explicit(&pd.answered, asked, memory_order_release);
	}
	atomic_store(&pd.settled, true);
	pd_changed();
}

static void gate_set(bool on)
{
	const struct protond_engine *e = engine();

	if (on && e != NULL && HOT->enter == NULL) { /* once: they are read while the gate is on */
		HOT->enter = e->scope_enter;
		HOT->leave = e->scope_exit;
	}
	/* release: the engine's functions; pairs with the acquire of the hot functions */
	atomic_store_explicit(
		&HOT->gate, on && e != NULL ? GATE_ON : GATE_OFF, memory_order_release);
}

/* Registered when the engine opens, which is often after CUDA's own handlers: so it runs before
 * them. */
static void at_exit(void)
{
	const struct protond_engine *e = engine();

	if (e != NULL) /* NULL in a forked child */
		(*e->exit)();
}

static bool engine_up(void)
{
	static bool registered;
	static struct pd_env env;
	const struct protond_engine *e = pd_engine_load(link_.words);
	struct engine_open o = {.n_lanes = link_.welcome.n_lanes,
		.lane_bytes = link_.welcome.lane_bytes,
		.rings_dir = link_.welcome.rings,
		.info = env.info};

	if (e == NULL) {
		link_.fault = -ELIBACC;
		return false;
	}
	pd_lock(&pd.lock);
	env = pd.env;
	pd_unlock(&pd.lock);
	o.info_bytes = env.info_bytes;
	o.inherit_copy = env.inherit_copy;
	memcpy(o.store, link_.welcome.store, 16);
	memcpy(o.parent, pd.parent, 16);
	link_.fault = e->open(link_.host, &o, link_.words);
	if (link_.fault < 0)
		return false;
	atomic_store_explicit(&HOT->engine, e, memory_order_release);
	if (!registered)
		registered = atexit(at_exit) == 0;
	return true;
}

static bool send_ring(void)
{
	struct rv_ring m = {.head = HEAD(RV_RING, m)};
	const int fd = engine()->ring_fd(m.uuid, &m.named);

	if (fd < 0) {
		snprintf(link_.words, sizeof(link_.words),
			"the program has closed libprotond's descriptors (closefrom(), "
			"close_range()): let it do so before it is recorded, and start it anew");
		link_.fault = fd;
		return false;
	}
	memcpy(pd.parent, m.uuid, 16); /* of the children to come */
	link_.ring_sent = send_with(&m, sizeof(m), fd);
	atomic_store(&pd.ring_named, m.named != 0);
	return link_.ring_sent;
}

/* With an injection that cuInit() will call, the GPU waits for it: it must be subscribed to there,
 * on that thread, and a program that never uses CUDA never loads it. */
static uint32_t gpu_can_wait(uint32_t want)
{
	bool await;

	pd_lock(&pd.lock);
	await = pd.env.await_injection && !atomic_load(&pd.injected);
	pd_unlock(&pd.lock);
	return await ? want & ~GPU_BITS : want;
}

static void engine_want(uint32_t full)
{
	const struct protond_engine *e = engine();
	const uint32_t want = gpu_can_wait(full), first = want & ~(GPU_BITS & ~link_.applied);
	protond_want_fn *told;

	atomic_store(&pd.full_want, full);
	atomic_store(&pd.held, want != full);
	if ((want & ~(uint32_t)WANT_GPU_PAUSE) == 0)
		gate_set(false);
	e->gpu_hint(atomic_exchange(&pd.hints, 0));
	if (first != link_.applied)
		(void)e->want(first); /* scopes need not wait for the GPU */
	gate_set((want & ~(uint32_t)WANT_GPU_PAUSE) != 0);
	told = atomic_load(&pd.on_want); /* behind full_want: whoever sets it looks at that */
	if (told != NULL)
		told(full);
	atomic_store(&pd.settled, true);
	pd_changed();
	if (want != first)
		(void)e->want(want);
	link_.applied = want;
}

/* Whether what this process records may not reach the daemon: its parent's ring counts that. */
static void owe(bool yes)
{
	if (link_.owes != yes && engine_loaded() != NULL)
		engine_loaded()->child_lost(yes ? 1 : -1);
	link_.owes = yes;
}

static void serve_gpu(void)
{
	struct rv_state m = {.head = HEAD(RV_STATE, m)};
	bool news;

	pd_lock(&pd.lock);
	news = pd.gpu.news;
	pd.gpu.news = false;
	m.gpu = pd.gpu.report;
	pd_unlock(&pd.lock);
	if (news)
		(void)send_with(&m, sizeof(m), -1);
}

/* At once: the program goes on now, and may be over soon. */
static void tell_fault(void)
{
	struct gpu_report r = {.state = GPU_FAILED, .code = link_.fault};

	snprintf(r.words, sizeof(r.words), "%s", link_.words);
	link_.host->gpu_report(&r);
	serve_gpu();
}

static void apply(void)
{
	uint32_t want;

	link_hear();
	want = link_.want | atomic_load(&pd.local_want);
	if (!link_.attached)
		return;
	if (engine() == NULL && (want & ~(uint32_t)WANT_GPU_PAUSE) != 0 && !engine_up()) {
		tell_fault();
		link_answer(link_.fault, link_.words);
		return;
	}
	if (engine() == NULL) {
		link_answer(0, "");
		return;
	}
	if (!link_.ring_sent && !send_ring()) {
		link_answer(link_.fault != 0 ? link_.fault : -ENOTCONN, link_.words);
		return;
	}
	if (!link_.controlled)
		return; /* CTL will come */
	engine_want(want);
	link_answer(0, "");
	if (atomic_exchange(&pd.give_back, false))
		engine()->gpu_give_back();
}

/* --- the offer -------------------------------------------------------------------------------- */

static bool offer_ring(void)
{
	if (link_.sock < 0 || !send_ring())
		return false;
	(void)fcntl(link_.sock, F_SETFL, 0); /* from here on it is as any other */
	return true;
}

void link_offer(const struct protond_host *host)
{
	bool there;

	if (pd.forked ? !known_of_parent() : !known_of_hello())
		return;
	/* It never waits: the socket's queue keeps what is said. */
	there = connect_to(known.dir, SOCK_NONBLOCK) == 0;
	if (!there && !pd.forked)
		return; /* what was read is a dead daemon's */
	link_.host = host;
	link_.welcome = known.welcome;
	link_.own = known.own;
	memcpy(link_.dir, known.dir, sizeof(link_.dir));
	if (!engine_up()) {
		owe(pd.forked);
		return;
	}
	there = offer_ring();
	if (!there)
		link_close();
	owe(pd.forked && !there);
	engine_want(atomic_load(&known.want) & ~(GPU_BITS | WANT_GPU_PAUSE));
	/* The GPU is not recorded before CTL has come: for that, it is waited. */
	atomic_store(&pd.settled, !pd.has_token || !there);
}

/* --- what comes ------------------------------------------------------------------------------- */

struct message {
	union {
		struct rv_head head;
		struct rv_welcome welcome;
		struct rv_refused refused;
		struct rv_want want;
		struct rv_ctl ctl;
		struct rv_exported exported;
		struct rv_session_is session_is;
		unsigned char bytes[RV_MESSAGE_MAX];
	} u;
	size_t bytes;
	int fd; /* the first that came with it; -1 */
};

static int take_fds(struct msghdr *m)
{
	int first = -1;

	for (struct cmsghdr *h = CMSG_FIRSTHDR(m); h != NULL; h = CMSG_NXTHDR(m, h)) {
		size_t n;

		if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS)
			continue;
		n = (h->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(h) + i * sizeof(int), sizeof(int));
			if (first < 0)
				first = fd;
			else
				close(fd);
		}
	}
	return first;
}

/* 1: a message; 0: nothing now; -1: gone. */
static int receive(struct message *ret)
{
	struct iovec iov = {ret->u.bytes, sizeof(ret->u.bytes)};
	union {
		char buf[CMSG_SPACE(FDS_MAX * sizeof(int))];
		struct cmsghdr align;
	} c;
	struct msghdr m = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = c.buf,
		.msg_controllen = sizeof(c.buf)};
	ssize_t n;

	ret->fd = -1;
	if (!ours())
		return -1;
	do {
		n = recvmsg(link_.sock, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	} while (n < 0 && (errno == EINTR || errno == ECONNRESET)); /* its last words come after */
	if (n < 0 && errno == EAGAIN)
		return 0;
	if (n <= 0)
		return -1;
	ret->fd = fd_keep(take_fds(&m));
	ret->bytes = (size_t)n;
	if ((m.msg_flags & MSG_TRUNC) != 0 || ret->bytes < sizeof(struct rv_head) ||
		ret->u.head.magic != RV_MAGIC || ret->u.head.bytes != ret->bytes) {
		if (ret->fd >= 0)
			close(ret->fd);
		return -1;
	}
	return 1;
}

static bool on_welcome(struct message *m)
{
	struct rv_welcome *w = &m->u.welcome;

	if (link_.attached)
		return false;
	w->rings[sizeof(w->rings) - 1] = '\0';
	if (w->abi >> 16 != RING_ABI >> 16) {
		link_.refused = true;
		link_answer(-EPROTO, w->abi > RING_ABI
					     ? "protond speaks another version of the ring: update "
					       "libprotond, and start the program anew"
					     : "protond speaks another version of the ring: update "
					       "protond");
		return false;
	}
	link_.attached = true;
	atomic_store(&pd.alone_ms, 0);
	link_.since_ms = pd_now_ms();
	link_.welcome = *w;
	known_rings(link_.dir, link_.welcome.rings);
	link_.want = w->want;
	known_keep(&link_.welcome, link_.dir, link_.own);
	apply();
	return true;
}

static bool on_refused(struct message *m)
{
	struct rv_refused *r = &m->u.refused;

	r->text[sizeof(r->text) - 1] = '\0';
	link_.refused = true;
	link_answer(r->code < 0 && r->code > -4096 ? r->code : -EPERM, r->text);
	return false;
}

static bool on_want(struct message *m)
{
	if (!link_.attached)
		return false;
	link_.want = m->u.want.want;
	atomic_store(&known.want, link_.want);
	apply();
	return true;
}

static bool on_ctl(struct message *m)
{
	struct rv_ctl *c = &m->u.ctl;
	int r;

	c->text[sizeof(c->text) - 1] = '\0';
	if (!link_.ring_sent || engine() == NULL)
		return false;
	if (c->code >= 0 && m->fd < 0) {
		c->code = -EMFILE;
		snprintf(c->text, sizeof(c->text),
			"no descriptor was left for the daemon's control file (ulimit -n)");
	}
	if (c->code < 0) {
		link_.ring_sent = false; /* offered again with the next question */
		owe(pd.forked);
		link_answer(c->code > -4096 ? c->code : -EPROTO, c->text);
		return true;
	}
	r = engine()->control(m->fd, c->n_lanes); /* closes it */
	m->fd = -1;
	if (r < 0) {
		link_answer(r, "protond sent a control file that does not fit the ring");
		return false;
	}
	link_.controlled = true;
	owe(false);
	apply();
	return true;
}

static bool on_exported(struct message *m)
{
	const struct rv_exported *x = &m->u.exported;
	const bool cut = x->code >= 0 && m->fd < 0; /* the kernel had no number to give it */

	pd_lock(&pd.lock);
	if (pd.export.state == EXPORT_SENT && pd.export.request == x->request) {
		pd.export.state = EXPORT_DONE;
		pd.export.code = cut ? -EMFILE : x->code < 0 ? x->code : 0;
		pd.export.fd = m->fd;
		m->fd = -1;
		if (cut)
			snprintf(pd.export.text, sizeof(pd.export.text),
				"no descriptor is left for the file (ulimit -n); `protonview "
				"export` writes it");
		else
			snprintf(pd.export.text, sizeof(pd.export.text), "%.*s",
				(int)strnlen(x->text, sizeof(x->text)), x->text);
	}
	pd_unlock(&pd.lock);
	pd_changed();
	return true;
}

static bool on_session_is(struct message *m)
{
	const struct rv_session_is *x = &m->u.session_is;

	pd_lock(&pd.lock);
	for (uint32_t i = 0; i < JOB_SESSIONS; i++) {
		struct pd_began *b = &pd.began[i];

		if (b->state != EXPORT_SENT || b->request != x->request)
			continue;
		b->state = EXPORT_DONE;
		b->code = x->code < 0 && x->code > -4096 ? x->code : 0;
		(void)snprintf(b->text, sizeof(b->text), "%.*s",
			(int)strnlen(x->text, sizeof(x->text)), x->text);
	}
	pd_unlock(&pd.lock);
	pd_changed();
	return true;
}

static bool on_ping(struct message *m)
{
	const struct rv_head pong = {RV_MAGIC, RV_PONG, sizeof(pong)};

	(void)m;
	return send_with(&pong, sizeof(pong), -1);
}

static const struct incoming {
	uint16_t type;
	size_t least; /* bytes: a message may have grown at its end */
	bool (*on)(struct message *m);
} incoming[] = {
	{RV_WELCOME, sizeof(struct rv_welcome), on_welcome},
	{RV_REFUSED, sizeof(struct rv_refused), on_refused},
	{RV_WANT, sizeof(struct rv_want), on_want},
	{RV_CTL, sizeof(struct rv_ctl), on_ctl},
	{RV_EXPORTED, sizeof(struct rv_exported), on_exported},
	{RV_SESSION_IS, sizeof(struct rv_session_is), on_session_is},
	{RV_PING, sizeof(struct rv_head), on_ping},
};

static bool dispatch(struct message *m)
{
	for (size_t i = 0; i < sizeof(incoming) / sizeof(*incoming); i++)
		if (incoming[i].type == m->u.head.type)
			return m->bytes >= incoming[i].least && incoming[i].on(m);
	return true; /* a newer daemon's: not for us */
}

bool link_read(void)
{
	static struct message m;
	bool ok = true;
	int r;

	while (ok && (r = receive(&m)) != 0) {
		if (r < 0)
			return false;
		ok = dispatch(&m);
		if (m.fd >= 0)
			close(m.fd);
	}
	return ok;
}

/* --- what is waiting -------------------------------------------------------------------------- */

static void serve_export(void)
{
	struct rv_export m = {.head = HEAD(RV_EXPORT, m)};
	bool asked;

	pd_lock(&pd.lock);
	asked = pd.export.state == EXPORT_ASKED;
	m.request = pd.export.request;
	m.session = pd.export.session;
	m.phase = pd.export.phase;
	m.timeout_ms = pd.export.timeout_ms;
	memcpy(m.format, pd.export.format, sizeof(m.format));
	if (asked)
		pd.export.state = EXPORT_SENT;
	pd_unlock(&pd.lock);
	if (asked)
		(void)send_with(&m, sizeof(m), -1);
}

/* The next that is asked about. An older daemon does not know the question, and leaves it open. */
static bool next_began(struct rv_session *ret)
{
	const bool knows = (link_.welcome.abi & 0xffff) >= RING_ABI_ASKS;
	bool found = false, open = false;

	pd_lock(&pd.lock);
	for (uint32_t i = 0; i < JOB_SESSIONS && !found; i++) {
		struct pd_began *b = &pd.began[i];

		if (b->state != EXPORT_ASKED)
			continue;
		found = knows;
		open = !knows;
		b->state = knows ? EXPORT_SENT : EXPORT_DONE;
		b->code = knows ? 0 : b->verb == SESSION_FINALIZE ? -ENOSYS : -EAGAIN;
		ret->request = b->request;
		ret->session = b->session;
		ret->verb = b->verb;
	}
	pd_unlock(&pd.lock);
	if (open)
		pd_changed();
	return found;
}

static void serve_began(void)
{
	struct rv_session m = {.head = HEAD(RV_SESSION, m)};

	while (next_began(&m) && send_with(&m, sizeof(m), -1))
		;
}

/* Whatever asks a daemon for a PONG makes it look first. */
static void serve_wake(void)
{
	const struct rv_head ping = {RV_MAGIC, RV_PING, sizeof(ping)};

	if (atomic_exchange(&pd.wake, false))
		(void)send_with(&ping, sizeof(ping), -1);
}

void link_serve(void)
{
	if (!link_.attached)
		return;
	if (link_hear() || (atomic_load(&pd.held) && atomic_load(&pd.injected)))
		apply();
	serve_gpu();
	if (link_.controlled) {
		serve_export();
		serve_wake();
	}
	if (link_.controlled && link_.ring_sent)
		serve_began();
}
