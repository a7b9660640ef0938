/* SPDX-License-Identifier: MIT. intake.c: agent.sock: jobs come, say what they are, hand over their
 * ring, and are told what is wanted of them.
 *
 *   accepted ─ ATTACH ─► attached ─ RING ─► with a ring ─┐
 *      └──────── garbage, silence, a cap ────────────────┴─► closed
 *
 * A connection is not a process: it may close while the job lives on, and come again. The ring
 * (rings.c) knows whether the process lives. Only uid and pid of the peer's credentials are
 * believed.
 */
#include "intake.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "attach.h"
#include "closer.h"
#include "config.h"
#include "conn.h"
#include "container_of.h"
#include "exited.h"
#include "host_clock.h"
#include "log.h"
#include "loop.h"
#include "manager.h"
#include "must.h"
#include "rings.h"
#include "share.h"
#include "shares.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

#define CONNS_MAX   4096u
#define SILENCE_NS  10000000000ull /* a connection that has not said ATTACH by then is closed */
#define AT_ONCE     64             /* packets of one job, or new jobs, in one turn of the loop */
#define AT_ONCE_NS  1000000u       /* likewise, of all that is heard with one look */
#define FDS_TAKEN   4              /* with more than these a packet is refused */
#define OLDER_DEPTH 16u            /* forebears whose rings are looked for */
#define QUEUE_MOST  65536u         /* more do not wait at a socket */

/* False: nothing more now, or the connection is over. */
static bool hear(struct conn *c)
{
	struct packet packet;
	struct err e = {0};

	conn_receive(c, &packet);
	/* ECONNRESET: it left without reading what it was told, and its last words come after. */
	if (packet.n < 0 && (errno == EAGAIN || errno == EINTR || errno == ECONNRESET))
		return errno != EAGAIN;
	if (packet.n <= 0)
		conn_close(c);
	else if ((packet.flags & MSG_TRUNC) != 0)
		(void)err_set(&e, -EMSGSIZE, "a message is longer than %u bytes", RV_MESSAGE_MAX);
	else if ((packet.flags & MSG_CTRUNC) != 0) /* there was room for all that can come */
		(void)err_set(&e, -EMFILE, "protond is out of descriptors; raise its LimitNOFILE");
	else if (packet.n_fds > FDS_TAKEN)
		(void)err_set(&e, -EMSGSIZE, "too many descriptors came with a message");
	else
		attach_message(c, packet.bytes, (size_t)packet.n, &packet.fd, &e);
	if (packet.fd >= 0)
		closer_take(c->closer, packet.fd);
	if (e.code < 0 && !c->closing)
		conn_refuse(c, &e);
	return !c->closing;
}

static void conn_on_poll(uv_poll_t *h, int status, int events)
{
	struct conn *c = container_of(h, struct conn, poll);
	const uint64_t until = mono_ns() + AT_ONCE_NS;
	bool more;
	int i = 0;

	(void)events;
	MUST(c->magic == CONN_IS_ALIVE && !c->closing);
	do {
		more = hear(c);
		i += more;
	} while (more && i < AT_ONCE && mono_ns() < until);
	if (status >= 0 || c->closing)
		return;
	/* An error stops the watch, and was told with the first of what was heard. */
	if (i == 0)
		conn_close(c);
	else
		(void)uv_poll_start(&c->poll, UV_READABLE, conn_on_poll);
}

static bool has(int fd, short events)
{
	struct pollfd p = {.fd = fd, .events = events};

	return poll(&p, 1, 0) > 0 && (p.revents & events) != 0;
}

/* Who connected, so that the number cannot have been given to another meanwhile: the kernel's own
 * pidfd, or one opened from the number while the peer is seen to hold the connection. Where the
 * peer is dead by now, what /proc says of its number may be another's: its start is unknown. */
static void conn_identify(struct conn *c)
{
	socklen_t n = sizeof(c->pidfd);
	const bool told = getsockopt(c->fd, SOL_SOCKET, SO_PEERPIDFD, &c->pidfd, &n) == 0;

	if (!told)
		c->pidfd = c->pid != 0 ? (int)syscall(SYS_pidfd_open, (pid_t)c->pid, 0) : -1;
	if (c->pid != 0)
		c->pid_start = process_start(c->pid);
	if (!(told ? has(c->pidfd, POLLIN) : has(c->fd, POLLHUP))) /* after both */
		return;
	c->dead = true;
	c->pid_start = 0;
	if (!told && c->pidfd >= 0) {
		(void)close(c->pidfd);
		c->pidfd = -1;
	}
}

#define FDS_RING 3u /* ring, control file, pidfd; the connection is one more */

/* What all have, and one user of it; a connection has the descriptors of the ring that it may bring. */
struct have {
	uint64_t conns, own_conns, fds, own_fds;
};

static struct have have_of(const struct intake *in, uint32_t uid)
{
	const struct conn *c;
	const struct ring *r;
	struct have ret = {0};
	uint64_t fds;

	for (c = in->conns; c != NULL; c = c->next) {
		fds = c->ring == NULL ? 1 + FDS_RING : 1;
		ret.conns++;
		ret.fds += fds;
		ret.own_conns += c->uid == uid;
		ret.own_fds += c->uid == uid ? fds : 0;
	}
	for (r = in->rings->first; r != NULL; r = r->next) {
		ret.fds += FDS_RING;
		ret.own_fds += r->uid == uid ? FDS_RING : 0;
	}
	return ret;
}

static void admit(struct intake *in, struct conn *c)
{
	const uint64_t cap = in->d->config->jobs_per_uid;
	const struct share conns = {CONNS_MAX, cap}, fds = share_of(in->fds, in->d->private);
	const struct have n = have_of(in, c->uid); /* with this one */
	struct err e = {0};

	if (in->d->private && c->uid != (uint32_t)geteuid() && c->uid != 0)
		(void)err_set(&e, -EPERM, "this protond is uid %u's own; start one of yours",
			(unsigned)geteuid());
	else if (n.own_conns > cap)
		(void)err_set(&e, -EMFILE, "uid %u has %llu jobs attached; raise jobs_per_uid",
			c->uid, (unsigned long long)cap);
	else if (share_left(&conns, n.conns, n.own_conns, 0) < 0)
		(void)err_set(&e, -EMFILE,
			"%llu jobs are attached, %llu of uid %u; this protond takes no more of it",
			(unsigned long long)n.conns, (unsigned long long)n.own_conns, c->uid);
	else if (share_room(&fds, n.fds, n.own_fds, 0) == -EDQUOT)
		(void)err_set(&e, -EMFILE,
			"the jobs of uid %u have a quarter of this protond's descriptors; raise "
			"its LimitNOFILE",
			c->uid);
	else if (share_left(&fds, n.fds, n.own_fds, 0) < 0) {
		in->shed = true;
		(void)err_set(&e, -EMFILE,
			"this protond has no descriptors for another job; raise its LimitNOFILE");
	}
	if (e.code < 0)
		conn_refuse(c, &e);
}

/* Whose ring is on its way, or there already: whoever just came is its child, and in its sessions.
 * What is heard may ask for this, too: line after line of descent, and no endless one. */
static void hear_older(const struct conn *young)
{
	struct intake *in = young->in;
	struct conn *c, *next;
	int i;

	if (in->older == OLDER_DEPTH)
		return;
	in->older++;
	for (c = young->next; c != NULL; c = next) {
		next = c->next;
		for (i = 0; i < AT_ONCE && !c->closing && c->ring == NULL && c->uid == young->uid &&
			    (!c->attached || c->want != 0) && hear(c);
			i++)
			;
	}
	in->older--;
}

/* First come, first served: with as many as can wait, all that had connected by the mark are there. */
static void mark(struct intake *in, uint64_t now)
{
	if (in->serial - in->mark_serial < QUEUE_MOST)
		return;
	in->clear_ns = in->clear_ns > in->mark_ns ? in->clear_ns : in->mark_ns;
	in->mark_serial = in->serial;
	in->mark_ns = now;
}

/* False: no further one now. */
static bool accept_one(struct intake *in, bool first)
{
	static struct log_cause cause;
	const uint64_t now = mono_ns();
	const int fd = accept4(in->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct ucred cred = {0};
	socklen_t n = sizeof(cred);
	struct conn *c;
	int i;

	if (fd < 0) {
		if (errno == EAGAIN)
			in->clear_ns = now;
		if (errno == EMFILE || errno == ENFILE) {
			if (first) /* nobody is just leaving: the loop would turn for nothing */
				(void)uv_poll_stop(&in->poll);
			log_cause(&cause, LOG_ERR, "no_descriptors", "jobs=%u", in->n_conns);
			return false;
		}
		return errno == EINTR || errno == ECONNABORTED;
	}
	c = calloc(1, sizeof(*c));
	if (c == NULL || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &n) < 0 ||
		uv_poll_init(&in->d->loop, &c->poll, fd) < 0) {
		free(c);
		(void)close(fd);
		return true;
	}
	c->magic = CONN_IS_ALIVE;
	c->in = in;
	c->closer = in->p->stray_closer;
	c->fd = fd;
	c->pidfd = -1;
	c->uid = cred.uid;
	c->pid = (uint32_t)cred.pid;
	c->serial = ++in->serial;
	c->since_ns = mono_ns();
	c->next = in->conns;
	in->conns = c;
	in->n_conns++;
	conn_identify(c);
	(void)uv_poll_start(&c->poll, UV_READABLE, conn_on_poll);
	admit(in, c);
	/* An offer is there already: whoever made it may be gone. */
	for (i = 0; !c->closing && i < AT_ONCE && hear(c); i++)
		;
	mark(in, now);
	return true;
}

/* Until all that had connected by then are there. */
static void accept_some(struct intake *in, uint64_t ns, bool woken)
{
	const uint64_t until = mono_ns() + AT_ONCE_NS;
	int i;

	for (i = 0; in->clear_ns < ns && i < AT_ONCE && accept_one(in, woken && i == 0); i++)
		if (mono_ns() >= until)
			break;
}

bool intake_was_clear(const struct intake *in, uint64_t ns)
{
	return in == NULL || in->clear_ns >= ns;
}

bool intake_is_clear(struct intake *in, uint64_t ns)
{
	if (intake_was_clear(in, ns))
		return true;
	if (in->clearing)
		return false;
	in->clearing = true; /* what is heard may ask for this */
	accept_some(in, ns, false);
	in->clearing = false;
	return in->clear_ns >= ns;
}

void intake_hear(struct intake *in)
{
	struct conn *c, *next;
	int i;

	for (c = in->conns; c != NULL; c = next) {
		next = c->next;
		for (i = 0; i < AT_ONCE && !c->closing && c->ring == NULL && hear(c); i++)
			;
	}
	(void)intake_is_clear(in, mono_ns());
}

static void intake_on_poll(uv_poll_t *h, int status, int events)
{
	(void)events;
	if (status >= 0)
		accept_some(container_of(h, struct intake, poll), UINT64_MAX, true);
}

static int listen_at(const struct daemon *d, int *ret_fd, struct err *e)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	const mode_t mode = d->private ? 0600 : 0666;
	int fd, r;

	if (snprintf(a.sun_path, sizeof(a.sun_path), "%s/" RV_AGENT_SOCK, d->runtime) >=
		(int)sizeof(a.sun_path))
		return err_set(e, -ENAMETOOLONG, "%s is too long a path for a socket", d->runtime);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return err_set(e, neg_errno(), "no socket: %s", strerror(errno));
	(void)unlink(a.sun_path); /* the lock is ours: whoever made it is gone */
	/* Nobody connects between bind and listen: connect() fails until then. */
	if (bind(fd, (const struct sockaddr *)&a, sizeof(a)) < 0 || chmod(a.sun_path, mode) < 0 ||
		listen(fd, SOMAXCONN) < 0) {
		r = err_set(e, neg_errno(), "%s: %s", a.sun_path, strerror(errno));
		(void)close(fd);
		return r;
	}
	*ret_fd = fd;
	return 0;
}

int intake_new(struct protond *p, struct intake **ret, struct err *e)
{
	struct intake *in = calloc(1, sizeof(*in));
	int r;

	if (in == NULL)
		return err_set(e, -ENOMEM, "no memory to start");
	in->p = p;
	in->hear_older = hear_older;
	in->d = &p->d;
	in->rings = &p->rings;
	in->settlers = &p->settlers;
	in->fds = shares_of_limit().jobs;
	in->fd = manager_inherited(RV_AGENT_SOCK, SOCK_SEQPACKET);
	in->inherited = in->fd >= 0;
	r = in->inherited ? 0 : listen_at(in->d, &in->fd, e);
	if (r == 0 && uv_poll_init(&p->d.loop, &in->poll, in->fd) < 0) {
		(void)close(in->fd);
		r = err_set(e, -EIO, "the loop does not take agent.sock");
	}
	if (r < 0) {
		free(in);
		return r;
	}
	(void)uv_poll_start(&in->poll, UV_READABLE, intake_on_poll);
	*ret = in;
	return 0;
}

static void intake_on_closed(uv_handle_t *h)
{
	struct intake *in = container_of(h, struct intake, poll);

	(void)close(in->fd);
	free(in);
}

/* The lock is still ours: the socket's name cannot be another daemon's. */
void intake_free(struct intake *in)
{
	if (!in->inherited)
		(void)unlinkat(in->d->runtime_fd, RV_AGENT_SOCK, 0);
	while (in->conns != NULL)
		conn_close(in->conns);
	in->d->intake = NULL;
	uv_close((uv_handle_t *)&in->poll, intake_on_closed);
}

int intake_relisten(struct intake *in, struct err *e)
{
	struct intake *other;
	struct conn *c;
	int r = intake_new(in->p, &other, e);

	if (r < 0)
		return r;
	other->conns = in->conns;
	other->n_conns = in->n_conns;
	other->serial = in->serial;
	for (c = other->conns; c != NULL; c = c->next)
		c->in = other;
	in->conns = NULL;
	in->n_conns = 0;
	other->d->intake = other;
	uv_close((uv_handle_t *)&in->poll, intake_on_closed);
	return 0;
}

void intake_sweep(struct intake *in, uint64_t now_ns)
{
	struct stat st;
	struct conn *c, *next;

	for (c = in->conns; c != NULL; c = next) {
		next = c->next;
		if (!c->attached && now_ns - c->since_ns > SILENCE_NS)
			conn_close(c);
		else if (c->again)
			c->again = c->want_known = false;
	}
	(void)uv_poll_start(&in->poll, UV_READABLE, intake_on_poll);
	/* Jobs that were refused watch the socket: a change of it makes them try again. */
	if (in->shed && have_of(in, 0).fds + FDS_RING + 1 <= in->fds) {
		in->shed = false;
		if (fstatat(in->d->runtime_fd, RV_AGENT_SOCK, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
			S_ISSOCK(st.st_mode)) /* the mode that it has, which may be the unit's */
			(void)fchmodat(in->d->runtime_fd, RV_AGENT_SOCK, st.st_mode & 07777, 0);
	}
}
