/* SPDX-License-Identifier: MIT. client.c: one client of control.sock: frames, requests, answers.
 *
 * no hello within 10 s, a frame over WIRE_REQUEST_MAX, bytes that are no message: told why, closed;
 * requests faster than answers are read: not read on until it catches up; too far behind: closed.
 * An answer may come long after its request; requests that outlive their client are let run out.
 */
#include "client.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "host_clock.h"
#include "message.h"
#include "must.h"

#define CLIENT_MAGIC   0x434c4e54u
#define HELLO_NS       (10ull * 1000 * 1000 * 1000)
#define IN_FLIGHT_MAX  16u          /* unanswered requests of one client */
#define OUT_PAUSE      (256u << 10) /* answers unread: no further request is taken */
#define READS_PER_TICK 4

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
	bool taking; /* client_take_frames() is at work */
	char *in;    /* the frame that is coming in, with its length */
	size_t in_n, in_cap;
	struct out *out, **out_last;
	size_t out_bytes;
	struct request *requests;
	struct request *answered; /* the last one, empty: answered again, it is seen */
	uint32_t in_flight;
};

static void client_close(struct client *c);
static void client_arm(struct client *c);
static void client_take_frames(struct client *c);

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
	else
		client_arm(c);
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

/* The client is NULL where it is gone. Takes the request. */
static void client_answer(struct request *q, int *fd)
{
	struct client *c = q->client;

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
	client_take_frames(c); /* a frame may have waited for this answer */
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
	q->next = c->requests;
	if (q->next != NULL)
		q->next->prev = q;
	c->requests = q;
	c->in_flight++;
	*ret = q;
	return 0;
}

/* Runs one frame's request. -errno: the client is to be closed. */
static int client_request(struct client *c, const char *p, size_t n)
{
	struct request *q;
	struct err e;
	int verb, r = client_request_new(c, p, n, &q);

	if (r < 0)
		return r;
	verb = wire_verb_find(q->msg.method, q->msg.method_bytes);
	if (verb < 0) {
		err_set(&e, -ENOSYS, "this protond has no method '%.*s'",
			(int)(q->msg.method_bytes < 64 ? q->msg.method_bytes : 64), q->msg.method);
		request_fail(q, &e,
			"protonctl and protond may be of different versions; protonctl version "
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

/* Takes one complete frame off the front of `in`. 1 taken, 0 not complete, -errno. */
static int client_take_frame(struct client *c)
{
	uint32_t n;
	int r;

	if (c->in_n < WIRE_HEADER)
		return 0;
	n = wire_frame_bytes(c->in);
	if (n == 0 || n > WIRE_REQUEST_MAX) {
		client_refuse(c->fd, -EMSGSIZE, "a request must be 1 to 65536 bytes long",
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
	struct client *c = client_of(h->data);
	ssize_t n = 1;
	int i;

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
	uv_poll_start(&c->poll, events, client_on_poll);
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
	if (uv_poll_init(all->loop, &c->poll, fd) < 0) {
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

uint32_t clients_of(const struct clients *all, uint32_t uid)
{
	const struct client *c;
	uint32_t n = 0;

	for (c = all->first; c != NULL; c = c->next)
		n += c->who.uid == uid ? 1 : 0;
	return n;
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
