/* SPDX-License-Identifier: MIT. client.c: one client of control.sock: frames, requests, answers.
 *
 * no hello within 10 s, a frame over WIRE_REQUEST_MAX, bytes that are no message: told why, closed;
 * requests faster than answers are read: not read on until it catches up; too far behind: closed.
 * An answer may come long after its request; requests that outlive their client are let run out.
 *
 *   readable ─► in ─ a whole frame ─► fair.h ─ a turn of the loop ─► verb ─► answer ─► out
 *
 * A frame is taken from nowhere but clients_on_turn(), which nobody's callback calls: an answer sets
 * off no other request, and a question costs others the time of one, whoever asks how often.
 */
#include "client.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "container_of.h"
#include "host_clock.h"
#include "message.h"
#include "must.h"

#define CLIENT_MAGIC  0x434c4e54u
#define HELLO_NS      (10ull * 1000 * 1000 * 1000)
#define IN_FLIGHT_MAX 16u          /* unanswered requests of one client */
#define OUT_PAUSE     (256u << 10) /* answers unread: no further request is taken */
#define SERVE_NS      1000000u /* for requests in one turn of the loop; then rings have theirs */

/* A frame on its way out. */
struct out {
	struct out *next;
	size_t n, sent;
	int fd; /* travels with the first byte; -1: none */
	char *bytes;
};

struct client {
	uint32_t magic;
	struct clients *all;
	struct client *next, *prev;
	uv_poll_t poll;
	int fd;
	struct asker who;
	uint64_t since_ns;
	bool hello, closing;
	int events;              /* as the loop was asked for */
	struct fair_place place; /* waits: a whole frame is in `in` */
	char *in;                /* what came: the first frame, with its length, and more */
	size_t in_n, in_cap;
	struct out *out, **out_last;
	size_t out_bytes;
	struct request *requests;
	struct request *answered; /* the last one, empty: answered again, it is seen */
	uint32_t in_flight;
};

static void client_close(struct client *c);
static void client_go_on(struct client *c);
static void client_on_poll(uv_poll_t *h, int status, int events);
static void clients_on_turn(uv_idle_t *serve);

static struct client *client_of(void *p)
{
	struct client *c = p;

	MUST(c != NULL && c->magic == CLIENT_MAGIC);
	return c;
}

/* --- answers --- */

static void out_free(struct out *o)
{
	if (o->fd >= 0)
		close(o->fd);
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
		close(o->fd);
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
}

void client_refuse(int sock, int code, const char *text, const char *next)
{
	struct err e = {.code = 0};
	struct wire_buf b;

	wire_buf_init(&b, WIRE_REQUEST_MAX);
	err_set(&e, code, "%s", text);
	wire_failure(&b, 0, &e, next);
	if (wire_frame_end(&b) == 0)
		(void)send(sock, b.bytes, b.n, MSG_NOSIGNAL | MSG_DONTWAIT);
	wire_buf_free(&b);
}

/* --- requests --- */

/* Of what idles libuv calls first what began to last: a request has its turn before the rings, which
 * take milliseconds. */
static void clients_soon(struct clients *all)
{
	(void)uv_idle_stop(&all->serve);
	(void)uv_idle_start(&all->serve, clients_on_turn);
}

/* The user may begin another one, which may have waited for this, of whatever client. */
static void client_request_ended(struct request *q)
{
	struct fair *f = q->user != NULL ? fair_end(q->user) : NULL;
	struct clients *all = f != NULL ? container_of(f, struct clients, fair) : NULL;

	q->user = NULL;
	if (all != NULL && !uv_is_closing((uv_handle_t *)&all->serve))
		clients_soon(all);
}

/* The client is NULL where it is gone. Takes the request. */
static void client_answer(struct request *q, int *fd)
{
	struct client *c = q->client;

	client_request_ended(q);
	if (c == NULL) {
		request_free(q);
		return;
	}
	MUST(client_of(c)->in_flight > 0);
	if (q->prev != NULL)
		q->prev->next = q->next;
	else
		c->requests = q->next;
	if (q->next != NULL)
		q->next->prev = q->prev;
	c->in_flight--;
	request_free(c->answered);
	c->answered = q;
	if (q->out.n > 0)
		client_send(c, &q->out, fd);
	request_empty(q);
	client_go_on(c); /* a frame may have waited for this answer */
}

static int client_request_new(struct client *c, const char *p, size_t n, struct request **ret)
{
	struct request *q;
	struct err e;
	int r = request_new(p, n, &q, &e);

	if (r == -ENOMEM)
		return r;
	if (r < 0) {
		client_refuse(c->fd, r, e.text, "see docs/protocol.md");
		return r;
	}
	q->d = c->all->d;
	q->who = c->who;
	q->client = c;
	q->answer = client_answer;
	q->user = fair_begin(&c->place);
	q->next = c->requests;
	if (q->next != NULL)
		q->next->prev = q;
	c->requests = q;
	c->in_flight++;
	*ret = q;
	return 0;
}

/* -errno: the client is to be closed. */
static int client_run(struct client *c, struct request *q)
{
	struct err e;
	const int verb = wire_verb_find(q->msg.method, q->msg.method_bytes);

	if (verb < 0) {
		err_set(&e, -ENOSYS, "this protond has no method '%.*s'",
			(int)(q->msg.method_bytes < 64 ? q->msg.method_bytes : 64), q->msg.method);
		request_fail(q, &e,
			"protonctl and protond may be of different versions; `protonctl version` "
			"shows both");
		return 0;
	}
	if (!c->hello && verb != WIRE_hello) {
		err_set(&e, -EPROTO, "the first request must be hello");
		request_fail(q, &e, "see docs/protocol.md");
		return -EPROTO;
	}
	c->hello = true;
	c->all->verbs[verb](q);
	return 0;
}

/* --- clients --- */

static void client_on_closed(uv_handle_t *h)
{
	struct client *c = client_of(h->data);
	struct clients *all = c->all;

	MUST(c->requests == NULL);
	fair_leave(&c->place);
	close(c->fd);
	if (c->prev != NULL)
		c->prev->next = c->next;
	else
		all->first = c->next;
	if (c->next != NULL)
		c->next->prev = c->prev;
	all->n--;
	c->magic = 0;
	request_free(c->answered);
	free(c);
	all->gone(all);
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

/* Whole, or such that none can follow. */
static bool client_has_frame(const struct client *c)
{
	uint32_t n;

	if (c->in_n < WIRE_HEADER)
		return false;
	n = wire_frame_bytes(c->in);
	return n > WIRE_REQUEST_MAX || c->in_n >= WIRE_HEADER + n;
}

/* Takes the frame off the front of `in` and runs it. -errno: the client is to be closed. */
static int client_take_frame(struct client *c)
{
	const uint32_t n = wire_frame_bytes(c->in);
	struct request *q;
	int r;

	if (n == 0 || n > WIRE_REQUEST_MAX) {
		client_refuse(c->fd, -EMSGSIZE, "a request must be 1 to 65536 bytes long",
			"see docs/protocol.md");
		return -EMSGSIZE;
	}
	r = client_request_new(c, c->in + WIRE_HEADER, n, &q);
	if (r < 0)
		return r;
	c->in_n -= WIRE_HEADER + n;
	memmove(c->in, c->in + WIRE_HEADER + n, c->in_n);
	return client_run(c, q);
}

/* Asks the loop for what this client is waiting for. A disconnect is seen when no frame is left. */
static void client_arm(struct client *c)
{
	int events = c->out != NULL ? UV_WRITABLE : 0;

	if (!c->place.waits)
		events |= UV_DISCONNECT | (client_is_busy(c) ? 0 : UV_READABLE);
	if (events != c->events)
		uv_poll_start(&c->poll, events, client_on_poll);
	c->events = events;
}

/* Something came, or went: it waits for its turn, or for the socket. */
static void client_go_on(struct client *c)
{
	if (c->closing)
		return;
	if (!client_is_busy(c) && client_has_frame(c)) {
		fair_wait(&c->place);
		clients_soon(c->all);
	}
	client_arm(c);
}

static void client_serve(struct client *c)
{
	if (c->closing)
		return;
	if (!client_is_busy(c) && client_take_frame(c) < 0)
		client_close(c);
	client_go_on(c);
}

/* At least one, of whoever's turn it is. */
static void clients_on_turn(uv_idle_t *serve)
{
	struct clients *all = container_of(serve, struct clients, serve);
	const uint64_t until = mono_ns() + SERVE_NS;
	struct fair_place *p;

	do {
		p = fair_next(&all->fair);
		if (p == NULL) {
			uv_idle_stop(serve);
			return;
		}
		client_serve(container_of(p, struct client, place));
	} while (mono_ns() < until);
}

/* -errno: the client is to be closed. */
static int client_read(struct client *c)
{
	const size_t room = WIRE_HEADER + WIRE_REQUEST_MAX;
	ssize_t n;

	if (client_grow(c, c->in_n < room / 2 ? c->in_n * 2 + 1 : room) < 0)
		return -ENOMEM;
	n = recv(c->fd, c->in + c->in_n, (c->in_cap < room ? c->in_cap : room) - c->in_n,
		MSG_DONTWAIT);
	if (n == 0)
		return -ECONNRESET;
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : neg_errno();
	c->in_n += (size_t)n;
	return 0;
}

static void client_on_poll(uv_poll_t *h, int status, int events)
{
	struct client *c = client_of(h->data);
	const bool busy = client_is_busy(c);

	if (status < 0 || ((events & UV_WRITABLE) != 0 && client_flush(c) < 0) ||
		((events & UV_DISCONNECT) != 0 && busy) ||
		((events & UV_READABLE) != 0 && !busy && !c->place.waits && client_read(c) < 0))
		client_close(c);
	client_go_on(c);
}

/* --- all of them --- */

int client_new(struct clients *all, int fd, const struct asker *who)
{
	struct client *c = calloc(1, sizeof(*c));

	if (c == NULL)
		return -ENOMEM;
	c->magic = CLIENT_MAGIC;
	c->all = all;
	c->fd = fd;
	c->who = *who;
	c->since_ns = mono_ns();
	c->out_last = &c->out;
	if (fair_join(&all->fair, &c->place, who->uid) < 0) {
		free(c);
		return -ENOMEM;
	}
	if (uv_poll_init(all->loop, &c->poll, fd) < 0) {
		fair_leave(&c->place);
		free(c);
		return -ENOMEM;
	}
	c->poll.data = c;
	c->next = all->first;
	if (c->next != NULL)
		c->next->prev = c;
	all->first = c;
	all->n++;
	client_arm(c);
	return 0;
}

uint32_t clients_sweep(struct clients *all, uint64_t now_ns)
{
	struct client *c;
	uint32_t waiting = 0;

	for (c = all->first; c != NULL; c = c->next) {
		if (c->hello || c->closing)
			continue;
		if (now_ns - c->since_ns < HELLO_NS) {
			waiting++;
			continue;
		}
		client_refuse(c->fd, -ETIMEDOUT, "no hello came within 10 seconds",
			"see docs/protocol.md");
		client_close(c);
	}
	return waiting;
}

void clients_close(struct clients *all)
{
	struct client *c;

	for (c = all->first; c != NULL; c = c->next) {
		if (c->hello && !c->closing && c->out == NULL)
			client_refuse(c->fd, -ESHUTDOWN, "protond is shutting down",
				"what was recorded is kept");
		client_close(c);
	}
}
