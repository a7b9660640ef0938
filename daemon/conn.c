/* SPDX-License-Identifier: MIT. conn.c: a job's connection to agent.sock. */
#include "conn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "closer.h"
#include "container_of.h"
#include "daemon.h"
#include "log.h"
#include "must.h"
#include "rings.h"
#include "settle.h"
#include "words.h"

/* -EAGAIN: the job does not read. */
int conn_send(struct conn *c, void *message, uint16_t bytes, enum rv_type type, int fd)
{
	struct rv_head head = {RV_MAGIC, (uint16_t)type, bytes};
	struct iovec v = {message, bytes};
	struct message_fd room = {{0}};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};

	memcpy(message, &head, sizeof(head));
	message_put_fd(&m, &room, fd);
	return sendmsg(c->fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)bytes ? 0 : neg_errno();
}

static void take_fds(const struct conn *c, const struct cmsghdr *h, struct packet *ret)
{
	const size_t bytes = h->cmsg_len - CMSG_LEN(0);
	size_t i;
	int fd;

	for (i = 0; i + sizeof(int) <= bytes; i += sizeof(int)) {
		memcpy(&fd, CMSG_DATA(h) + i, sizeof(fd));
		if (ret->n_fds++ == 0)
			ret->fd = fd;
		else
			closer_take(c->closer, fd);
	}
}

/* With room for all descriptors that can come: recvmsg() closes itself what it has no room for. */
void conn_receive(const struct conn *c, struct packet *ret)
{
	_Alignas(struct cmsghdr) char
		control[CMSG_SPACE(CONN_FDS_MAX * sizeof(int)) + CMSG_SPACE(sizeof(struct ucred))];
	struct iovec v = {ret->bytes, sizeof(ret->bytes)};
	struct msghdr m = {.msg_iov = &v,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control)};
	struct cmsghdr *h;

	ret->n = recvmsg(c->fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	ret->flags = m.msg_flags;
	ret->fd = -1;
	ret->n_fds = 0;
	ret->came = false;
	for (h = ret->n >= 0 ? CMSG_FIRSTHDR(&m) : NULL; h != NULL; h = CMSG_NXTHDR(&m, h)) {
		if (h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_RIGHTS)
			take_fds(c, h, ret);
		ret->came = true;
	}
}

/* What was not read is received, so that its descriptors are not closed by close(), here. */
static void conn_on_closed(uv_handle_t *h)
{
	struct conn *c = container_of(h, struct conn, poll);
	const int yes = 1;
	struct packet packet;

	MUST(c->magic == CONN_IS_ALIVE && c->closing);
	c->magic = 0;
	(void)shutdown(c->fd, SHUT_RD); /* nothing more comes */
	(void)setsockopt(c->fd, SOL_SOCKET, SO_PASSCRED, &yes, sizeof(yes));
	do {
		conn_receive(c, &packet);
		if (packet.fd >= 0)
			closer_take(c->closer, packet.fd);
	} while (packet.came);
	(void)close(c->fd);
	if (c->pidfd >= 0)
		(void)close(c->pidfd);
	free(c);
}

void conn_close(struct conn *c)
{
	struct intake *in = c->in;
	struct conn **at = &in->conns;

	MUST(c->magic == CONN_IS_ALIVE);
	MUST_LOOP(in->d);
	if (c->closing)
		return;
	c->closing = true;
	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	in->n_conns--;
	if (c->ring != NULL) {
		c->ring->conn = NULL;
		/* Nothing else says when such a job ends. */
		if (c->ring->pidfd < 0 && c->ring->pid == 0)
			ring_died(c->ring);
	}
	uv_close((uv_handle_t *)&c->poll, conn_on_closed);
	settle_check(in->settlers);
}

void conn_refuse(struct conn *c, const struct err *e)
{
	static struct log_cause cause;
	struct rv_refused m = {.code = e->code, .abi = RING_ABI};
	char quoted[600];

	(void)snprintf(m.text, sizeof(m.text), "%.255s", e->text);
	(void)conn_send(c, &m, sizeof(m), RV_REFUSED, -1);
	c->in->d->refused_connections++;
	c->in->d->refused_uid = c->uid;
	(void)words_plain(
		c->in->d->refused_text, sizeof(c->in->d->refused_text), e->text, sizeof(e->text));
	log_cause(&cause, LOG_WARN, "refused", "pid=%u uid=%u error=%d text=%s", c->pid, c->uid,
		-e->code, log_quote(quoted, sizeof(quoted), e->text));
	conn_close(c);
}

/* The job handles what came before, then answers. */
void conn_ping(struct conn *c)
{
	struct rv_head m;

	if (conn_send(c, &m, sizeof(m), RV_PING, -1) == 0)
		c->pings++;
}

void conn_want(struct conn *c, uint32_t want)
{
	struct rv_want m = {.want = want};

	if (!c->attached || c->closing || (c->want_known && c->want == want))
		return;
	if (conn_send(c, &m, sizeof(m), RV_WANT, -1) < 0)
		return; /* said again in a second */
	c->want = want;
	c->want_known = true;
	conn_ping(c);
}

struct conn *conn_by_serial(const struct daemon *d, uint64_t serial)
{
	struct conn *c;

	for (c = d->intake != NULL ? d->intake->conns : NULL; c != NULL; c = c->next) {
		if (c->serial == serial)
			return c;
	}
	return NULL;
}
