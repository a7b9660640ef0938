/* SPDX-License-Identifier: MIT. control.c: the server of control.sock: clients, frames, answers.
 *
 * Loop thread. A client is its socket, the bytes of at most one unfinished frame, and answers not
 * yet read by it; each of the three is bounded, so whatever a client does costs only itself: no
 * hello within 10 s, a frame over WIRE_REQUEST_MAX, bytes that are no message: told why, closed;
 *   requests faster than answers are read: not read on until it catches up; too far behind: closed;
 *   more than WIRE_CLIENTS_MAX clients: told why, closed.
 * An answer may come long after its request; requests that outlive their client are let run out.
 */
#include "control.h"

#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "message.h"
#include "rendezvous.h"

#define CLIENT_MAGIC     0x434c4e54u
#define HELLO_NS         (10ull * 1000 * 1000 * 1000)
#define SWEEP_MS         1000u
#define IN_FLIGHT_MAX    16u          /* unanswered requests of one client */
#define OUT_PAUSE        (256u << 10) /* answers unread: no further request is taken */
#define CLIENTS_PER_UID  (WIRE_CLIENTS_MAX / 2)
#define ACCEPTS_PER_TICK 16
#define READS_PER_TICK   4
#define SOCK_NEW         RV_CONTROL_SOCK ".new"

#define MUST(e) ((e) ? (void)0 : must_fail(#e, __LINE__))

/* A frame on its way out. */
struct out {
	struct out *next;
	size_t n, sent;
	int fd; /* travels with the first byte; -1: none */
	char *bytes;
};

struct client {
	uint32_t magic;
	struct control *control;
	struct client *next, *prev;
	uv_poll_t poll;
	int fd;
	struct peer peer;
	uint64_t since_ns;
	bool hello, closing;
	bool taking; /* client_take_frames() is at work */
	char *in;    /* the frame that is coming in, with its length */
	size_t in_n, in_cap;
	struct out *out, **out_last;
	size_t out_bytes;
	struct request *requests;
	uint32_t in_flight;
};

struct control {
	struct daemon *d;
	uv_poll_t poll;
	uv_timer_t sweep; /* runs while some client has not said hello */
	uint32_t handles; /* of the two, not yet closed */
	int fd, spare_fd; /* spare: given up for a moment when descriptors run out */
	gid_t group;      /* (gid_t)-1: there is none */
	bool inherited;   /* the socket is the service manager's: its name stays */
	struct client *clients;
	uint32_t n_clients, clients_max;
	bool freeing;
};

static void client_close(struct client *c);
static void client_arm(struct client *c);
static void client_take_frames(struct client *c);

static _Noreturn void must_fail(const char *what, int line)
{
	(void)fprintf(stderr, "level=fatal event=assertion file=control.c line=%d what=\"%s\"\n",
		line, what);
	abort();
}

/* --- answers
 * -------------------------------------------------------------------------------------- */

static void out_free(struct out *o)
{
	if (o->fd >= 0)
		(void)close(o->fd);
	free(o->bytes);
	free(o);
}

/* Sends what can be sent of the first frame: bytes sent, 0 would block, or -errno. */
static ssize_t out_send(int sock, struct out *o)
{
	struct message_fd room = {{0}};
	struct iovec iov = {.iov_base = o->bytes + o->sent, .iov_len = o->n - o->sent};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t n;

	message_put_fd(&m, &room, o->fd);
	do
		n = sendmsg(sock, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == EAGAIN ? 0 : neg_errno();
	if (o->fd >= 0) {
		(void)close(o->fd);
		o->fd = -1;
	}
	return n;
}

/* -errno: the client is to be closed. */
static int client_flush(struct client *c)
{
	while (c->out != NULL) {
		struct out *o = c->out;
		ssize_t n = out_send(c->fd, o);

		if (n <= 0)
			return (int)n;
		o->sent += (size_t)n;
		c->out_bytes -= (size_t)n;
		if (o->sent < o->n)
			continue;
		c->out = o->next;
		if (c->out == NULL)
			c->out_last = &c->out;
		out_free(o);
	}
	return 0;
}

/* Takes the finished frame out of b. */
static void client_send(struct client *c, struct wire_buf *b, int *fd)
{
	struct out *o = calloc(1, sizeof(*o));

	if (o == NULL || c->out_bytes + b->n > WIRE_OUT_MAX) {
		free(o);
		client_close(c);
		return;
	}
	*o = (struct out){.n = b->n, .bytes = b->bytes, .fd = *fd};
	*fd = -1;
	b->bytes = NULL;
	wire_buf_free(b);
	*c->out_last = o;
	c->out_last = &o->next;
	c->out_bytes += o->n;
	if (client_flush(c) < 0)
		client_close(c);
	else
		client_arm(c);
}

/* The last words to a client that breaks the rules, as far as its socket takes them at once. */
static void refuse(int sock, int code, const char *text, const char *next)
{
	struct err e = {.code = 0};
	struct wire_buf b;

	wire_buf_init(&b, WIRE_REQUEST_MAX);
	(void)err_set(&e, code, "%s", text);
	wire_failure(&b, 0, &e, next);
	if (wire_frame_end(&b) == 0)
		(void)send(sock, b.bytes, b.n, MSG_NOSIGNAL | MSG_DONTWAIT);
	wire_buf_free(&b);
}

/* --- requests
 * ------------------------------------------------------------------------------------- */

static int request_new(struct client *c, const char *p, size_t n, struct request **ret)
{
	struct request *q = calloc(1, sizeof(*q) + n);
	struct err e;
	int r;

	if (q == NULL)
		return -ENOMEM;
	memcpy(q->frame, p, n);
	r = wire_parse(q->frame, n, &q->msg, &e);
	if (r == 0 && q->msg.type != WIRE_REQUEST) {
		wire_msg_free(&q->msg);
		r = err_set(&e, -EBADMSG, "only requests are taken here");
	}
	if (r < 0) {
		refuse(c->fd, r, e.text, "see docs/protocol.md");
		free(q);
		return r;
	}
	q->params = q->msg.params;
	q->d = c->control->d;
	q->peer = c->peer;
	q->client = c;
	q->next = c->requests;
	if (q->next != NULL)
		q->next->prev = q;
	c->requests = q;
	c->in_flight++;
	wire_buf_init(&q->out, WIRE_FRAME_MAX);
	*ret = q;
	return 0;
}

static void request_free(struct request *q)
{
	struct client *c = q->client;

	if (c != NULL) {
		if (q->prev != NULL)
			q->prev->next = q->next;
		else
			c->requests = q->next;
		if (q->next != NULL)
			q->next->prev = q->prev;
		c->in_flight--;
	}
	wire_msg_free(&q->msg);
	wire_buf_free(&q->out);
	free(q->work);
	free(q);
}

struct wire_buf *request_result(struct request *q)
{
	wire_response(&q->out, q->msg.msgid);
	wire_map(&q->out);
	return &q->out;
}

/* Sends q->out and frees the request. */
static void request_end(struct request *q, int *fd)
{
	struct client *c = q->client;
	struct wire_buf out = q->out;

	q->out = (struct wire_buf){.max = 0};
	request_free(q);
	if (c != NULL && out.n > 0)
		client_send(c, &out, fd);
	wire_buf_free(&out);
	if (*fd >= 0)
		(void)close(*fd);
	*fd = -1;
	if (c != NULL)
		client_take_frames(c); /* a frame may have waited for this answer */
}

void request_done(struct request *q, int *fd)
{
	int none = -1, r = wire_frame_end(&q->out);
	struct err e;

	if (r == 0) {
		request_end(q, fd != NULL ? fd : &none);
		return;
	}
	if (fd != NULL && *fd >= 0)
		(void)close(*fd);
	(void)err_set(&e, r, "the answer is larger than a message may be");
	request_fail(q, &e, "ask for less: one session or one job");
}

void request_fail(struct request *q, const struct err *e, const char *next)
{
	int none = -1;

	wire_buf_free(&q->out);
	wire_buf_init(&q->out, WIRE_FRAME_MAX);
	wire_failure(&q->out, q->msg.msgid, e, next);
	if (wire_frame_end(&q->out) < 0)
		q->out.n = 0; /* out of memory: no answer; the client's timeout tells */
	request_end(q, &none);
}

void request_when_drained(struct request *q, uint32_t timeout_ms, drained_fn *fn)
{
	struct err e;

	if (daemon_when_drained(q->d, timeout_ms, fn, q) == 0)
		return;
	(void)err_set(&e, -ENOMEM, "out of memory");
	request_fail(q, &e, "");
}

bool request_may(const struct request *q, uint32_t owner)
{
	return q->peer.privileged || q->peer.uid == owner;
}

/* Runs one frame's request. -errno: the client is to be closed. */
static int client_request(struct client *c, const char *p, size_t n)
{
	struct request *q;
	struct err e;
	int verb, r = request_new(c, p, n, &q);

	if (r < 0)
		return r;
	verb = wire_verb_find(q->msg.method, q->msg.method_bytes);
	if (verb < 0) {
		(void)err_set(&e, -ENOSYS, "this daemon knows no method '%.*s'",
			(int)(q->msg.method_bytes < 64 ? q->msg.method_bytes : 64), q->msg.method);
		request_fail(q, &e,
			"protonctl and protond may be of different versions: protonctl version");
		return 0;
	}
	if (!c->hello && verb != WIRE_hello) {
		(void)err_set(&e, -EPROTO, "the first request must be hello");
		request_fail(q, &e, "see docs/protocol.md");
		return -EPROTO;
	}
	c->hello = true;
	q->verb = (enum wire_verb)verb;
	verb_table[verb](q);
	return 0;
}

/* --- clients
 * -------------------------------------------------------------------------------------- */

static void client_on_closed(uv_handle_t *h)
{
	struct client *c = h->data;
	struct control *control = c->control;

	MUST(c->magic == CLIENT_MAGIC && c->requests == NULL);
	(void)close(c->fd);
	if (c->prev != NULL)
		c->prev->next = c->next;
	else
		control->clients = c->next;
	if (c->next != NULL)
		c->next->prev = c->prev;
	control->n_clients--;
	c->magic = 0;
	free(c);
	if (control->freeing && control->n_clients == 0 && control->handles == 0)
		free(control);
}

/* Gives everything back but the handle, which closes on the loop's next turn. Idempotent. */
static void client_close(struct client *c)
{
	if (c->closing)
		return;
	c->closing = true;
	while (c->requests != NULL) {
		struct request *q = c->requests;

		c->requests = q->next;
		q->client = NULL;
		q->next = q->prev = NULL;
	}
	while (c->out != NULL) {
		struct out *o = c->out;

		c->out = o->next;
		out_free(o);
	}
	free(c->in);
	c->in = NULL;
	uv_close((uv_handle_t *)&c->poll, client_on_closed);
}

static bool client_is_busy(const struct client *c)
{
	return c->in_flight >= IN_FLIGHT_MAX || c->out_bytes > OUT_PAUSE;
}

static int client_grow(struct client *c, size_t want)
{
	size_t cap = c->in_cap == 0 ? 1024 : c->in_cap;
	char *grown;

	while (cap < want)
		cap *= 2;
	if (cap == c->in_cap)
		return 0;
	grown = realloc(c->in, cap);
	if (grown == NULL)
		return -ENOMEM;
	c->in = grown;
	c->in_cap = cap;
	return 0;
}

/* Takes one complete frame off the front of `in`. 1 taken, 0 not complete, -errno. */
static int client_take_frame(struct client *c)
{
	uint32_t n;
	int r;

	if (c->in_n < WIRE_HEADER)
		return 0;
	n = wire_frame_bytes(c->in);
	if (n == 0 || n > WIRE_REQUEST_MAX) {
		refuse(c->fd, -EMSGSIZE, "a request must have 1 to 65536 bytes",
			"see docs/protocol.md");
		return -EMSGSIZE;
	}
	if (c->in_n < WIRE_HEADER + n)
		return 0;
	r = client_request(c, c->in + WIRE_HEADER, n);
	if (r < 0 || c->closing)
		return r < 0 ? r : -ECONNRESET;
	c->in_n -= WIRE_HEADER + n;
	memmove(c->in, c->in + WIRE_HEADER + n, c->in_n);
	return 1;
}

static void client_take_frames(struct client *c)
{
	int r = 1;

	if (c->taking || c->closing)
		return;
	c->taking = true;
	while (r == 1 && !c->closing && !client_is_busy(c))
		r = client_take_frame(c);
	c->taking = false;
	if (r < 0)
		client_close(c);
	if (!c->closing)
		client_arm(c);
}

/* Bytes read, 0 nothing there, -errno. */
static ssize_t client_read(struct client *c)
{
	const size_t room = WIRE_HEADER + WIRE_REQUEST_MAX;
	ssize_t n;

	if (c->in_n == room)
		return 0; /* a whole frame waits for its turn */
	if (client_grow(c, c->in_n < room / 2 ? c->in_n * 2 + 1 : room) < 0)
		return -ENOMEM;
	n = recv(c->fd, c->in + c->in_n, (c->in_cap < room ? c->in_cap : room) - c->in_n,
		MSG_DONTWAIT);
	if (n == 0)
		return -ECONNRESET;
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : neg_errno();
	c->in_n += (size_t)n;
	return n;
}

static void client_on_poll(uv_poll_t *h, int status, int events)
{
	struct client *c = h->data;
	ssize_t n = 1;
	int i;

	MUST(c->magic == CLIENT_MAGIC);
	if (status < 0 || ((events & UV_WRITABLE) != 0 && client_flush(c) < 0) ||
		((events & UV_DISCONNECT) != 0 && client_is_busy(c))) {
		client_close(c);
		return;
	}
	for (i = 0; i < READS_PER_TICK && n > 0 && (events & UV_READABLE) != 0 && !c->closing &&
		    !client_is_busy(c);
		i++) {
		n = client_read(c);
		if (n < 0)
			client_close(c);
		else
			client_take_frames(c);
	}
	if (!c->closing)
		client_take_frames(c);
}

/* Asks the loop for what this client is waiting for. A disconnect is always seen. */
static void client_arm(struct client *c)
{
	int events = UV_DISCONNECT;

	if (c->closing)
		return;
	if (!client_is_busy(c))
		events |= UV_READABLE;
	if (c->out != NULL)
		events |= UV_WRITABLE;
	(void)uv_poll_start(&c->poll, events, client_on_poll);
}

/* --- accepting
 * ------------------------------------------------------------------------------------ */

static bool in_group(int fd, gid_t gid, gid_t group)
{
	gid_t groups[256];
	socklen_t n = sizeof(groups);
	size_t i;

	if (group == (gid_t)-1)
		return false;
	if (gid == group)
		return true;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &n) < 0)
		return false;
	for (i = 0; i < n / sizeof(groups[0]); i++)
		if (groups[i] == group)
			return true;
	return false;
}

static int peer_read(const struct control *control, int fd, struct peer *ret)
{
	struct ucred u;
	socklen_t n = sizeof(u);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &u, &n) < 0)
		return neg_errno();
	*ret = (struct peer){.uid = u.uid, .gid = u.gid, .pid = u.pid};
	ret->privileged = u.uid == 0 || u.uid == geteuid() || in_group(fd, u.gid, control->group);
	return 0;
}

static uint32_t clients_of(const struct control *control, uid_t uid)
{
	const struct client *c;
	uint32_t n = 0;

	for (c = control->clients; c != NULL; c = c->next)
		n += c->peer.uid == uid ? 1 : 0;
	return n;
}

static void control_on_sweep(uv_timer_t *t)
{
	struct control *control = t->data;
	const uint64_t now = mono_ns();
	struct client *c;
	uint32_t waiting = 0;

	for (c = control->clients; c != NULL; c = c->next) {
		if (c->hello || c->closing)
			continue;
		if (now - c->since_ns < HELLO_NS) {
			waiting++;
			continue;
		}
		refuse(c->fd, -ETIMEDOUT, "no hello within 10 seconds", "see docs/protocol.md");
		client_close(c);
	}
	if (waiting == 0)
		(void)uv_timer_stop(t);
}

static int client_new(struct control *control, int fd, const struct peer *peer)
{
	struct client *c = calloc(1, sizeof(*c));

	if (c == NULL)
		return -ENOMEM;
	c->magic = CLIENT_MAGIC;
	c->control = control;
	c->fd = fd;
	c->peer = *peer;
	c->since_ns = mono_ns();
	c->out_last = &c->out;
	if (uv_poll_init(&control->d->loop, &c->poll, fd) < 0) {
		free(c);
		return -ENOMEM;
	}
	c->poll.data = c;
	c->next = control->clients;
	if (c->next != NULL)
		c->next->prev = c;
	control->clients = c;
	control->n_clients++;
	client_arm(c);
	if (!uv_is_active((uv_handle_t *)&control->sweep))
		(void)uv_timer_start(&control->sweep, control_on_sweep, SWEEP_MS, SWEEP_MS);
	return 0;
}

static void control_admit(struct control *control, int fd)
{
	struct peer peer;

	if (peer_read(control, fd, &peer) < 0)
		(void)close(fd);
	else if (control->d->private && !peer.privileged) {
		refuse(fd, -EPERM, "this protond belongs to another user",
			"start your own: protonctl run");
		(void)close(fd);
	} else if (control->n_clients >= control->clients_max ||
		   clients_of(control, peer.uid) >= CLIENTS_PER_UID ||
		   client_new(control, fd, &peer) < 0) {
		control->d->refused_connections++;
		refuse(fd, -EBUSY, "protond has too many clients",
			"end some protonctl or protonview, then try again");
		(void)close(fd);
	}
}

/* Out of descriptors: the next connection is taken with the spare one and dropped, so that the
 * socket does not stay readable for ever. */
static void control_shed(struct control *control)
{
	int fd;

	(void)close(control->spare_fd);
	fd = accept4(control->fd, NULL, NULL, SOCK_CLOEXEC);
	if (fd >= 0) {
		refuse(fd, -EMFILE, "protond is out of file descriptors",
			"raise LimitNOFILE of protond");
		(void)close(fd);
	}
	control->d->refused_connections++;
	control->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void control_on_poll(uv_poll_t *h, int status, int events)
{
	struct control *control = h->data;
	int i, fd;

	(void)events;
	if (status < 0)
		return;
	for (i = 0; i < ACCEPTS_PER_TICK; i++) {
		fd = accept4(control->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd >= 0)
			control_admit(control, fd);
		else if (errno == EMFILE || errno == ENFILE)
			control_shed(control);
		else if (errno != EINTR && errno != ECONNABORTED)
			return;
	}
}

/* --- the socket
 * ----------------------------------------------------------------------------------- */

/* Binds below the runtime directory, through its descriptor: no path is too long for sun_path.
 * Bound under another name and renamed when it listens, so that whoever sees it can connect. */
static int control_listen(struct daemon *d, int *ret_fd, struct err *e)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int r, fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return err_set(e, neg_errno(), "no socket: %s", strerror(errno));
	(void)snprintf(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d/" SOCK_NEW, d->runtime_fd);
	(void)unlinkat(d->runtime_fd, SOCK_NEW, 0);
	if (bind(fd, (const struct sockaddr *)&a, sizeof(a)) < 0)
		goto fail;
	/* A service's users are told apart by SO_PEERCRED; a private daemon is its user's alone. */
	if (fchmodat(d->runtime_fd, SOCK_NEW, d->private ? 0600 : 0666, 0) < 0)
		goto fail;
	if (listen(fd, 128) < 0 ||
		renameat(d->runtime_fd, SOCK_NEW, d->runtime_fd, RV_CONTROL_SOCK) < 0)
		goto fail;
	*ret_fd = fd;
	return 0;
fail:
	r = err_set(e, neg_errno(), "cannot listen on %s/" RV_CONTROL_SOCK ": %s", d->runtime,
		strerror(errno));
	(void)close(fd);
	return r;
}

static gid_t group_id(void)
{
	struct group g, *found = NULL;
	char buf[4096];

	if (getgrnam_r("protond", &g, buf, sizeof(buf), &found) != 0 || found == NULL)
		return (gid_t)-1;
	return found->gr_gid;
}

int control_new(struct daemon *d, struct control **ret, struct err *e)
{
	struct control *control = calloc(1, sizeof(*control));
	int r;

	if (control == NULL)
		return err_set(e, -ENOMEM, "out of memory");
	control->d = d;
	control->clients_max = home_descriptors().clients;
	if (control->clients_max > WIRE_CLIENTS_MAX)
		control->clients_max = WIRE_CLIENTS_MAX;
	control->group = group_id();
	control->fd = home_inherited(RV_CONTROL_SOCK, SOCK_STREAM);
	control->inherited = control->fd >= 0;
	r = control->inherited ? 0 : control_listen(d, &control->fd, e);
	if (r < 0) {
		free(control);
		return r;
	}
	r = uv_poll_init(&d->loop, &control->poll, control->fd);
	if (r < 0) {
		(void)close(control->fd);
		free(control);
		return err_set(e, r, "the loop takes no further handle: %s", uv_strerror(r));
	}
	control->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	(void)uv_timer_init(&d->loop, &control->sweep);
	uv_unref((uv_handle_t *)&control->sweep);
	control->poll.data = control->sweep.data = control;
	control->handles = 2;
	(void)uv_poll_start(&control->poll, UV_READABLE, control_on_poll);
	*ret = control;
	return 0;
}

static void control_on_closed(uv_handle_t *h)
{
	struct control *control = h->data;

	if (--control->handles == 0 && control->n_clients == 0)
		free(control);
}

/* Stops listening and closes every client. The memory goes when the loop has run the close
 * callbacks: the owner runs the loop once more afterwards. */
void control_free(struct control *control)
{
	struct client *c;

	if (control == NULL || control->freeing)
		return;
	control->freeing = true;
	if (!control->inherited)
		(void)unlinkat(control->d->runtime_fd, RV_CONTROL_SOCK, 0);
	uv_close((uv_handle_t *)&control->poll, control_on_closed);
	uv_close((uv_handle_t *)&control->sweep, control_on_closed);
	(void)close(control->fd);
	(void)close(control->spare_fd);
	for (c = control->clients; c != NULL; c = c->next) {
		/* Who waits for us learns that this is no crash. */
		if (c->hello && !c->closing && c->out == NULL)
			refuse(c->fd, -ESHUTDOWN, "protond is ending", "what was recorded is kept");
		client_close(c);
	}
}

uint32_t control_clients(const struct control *control)
{
	return control->n_clients;
}
