/* SPDX-License-Identifier: MIT. job_daemon.h: a protond small enough for tests: one connection, one
 * ring, and every message counted. */
#ifndef JOB_DAEMON_H
#define JOB_DAEMON_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

#include "job_read.h"
#include "rendezvous.h"

struct fake {
	char dir[64];
	int listen, conn, bell[2];
	pthread_t thread;
	_Atomic uint32_t want;
	_Atomic bool stop, hold;    /* hold: heads stay where they are */
	_Atomic bool mute;          /* WELCOME and EXPORTED wait for fake_speak() */
	bool named;                 /* rings as files */
	uint32_t lanes, lane_bytes; /* as the daemon wishes them */
	_Atomic uint32_t attached, rings, exports, states, pongs;
	struct rv_attach attach;
	char info[4096];
	struct rv_export export;
	_Atomic int began;           /* answer to a SESSION; 1: none */
	_Atomic uint32_t began_asks; /* how many came */
	struct rv_state state;
	uint8_t uuid[16];
	int ctl_fd; /* kept over a restart, as the daemon's file would be */
	struct view v;
	bool have_view;
	view_fn *on_record;
	void *arg;
	const char *answer;   /* content of an export; NULL: refused */
	_Atomic int refuse;   /* -errno: connections are refused in words */
	pthread_mutex_t lock; /* of v */
};

static inline void fake_send(struct fake *f, const void *msg, size_t n, int fd)
{
	struct iovec iov = {.iov_len = n};
	union {
		char buf[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} c = {0};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};

	memcpy(&iov.iov_base, &msg, sizeof(msg));
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
	(void)sendmsg(f->conn, &m, MSG_NOSIGNAL);
}

#define FAKE_HEAD(type, m)                            \
	{                                             \
		RV_MAGIC, (type), (uint16_t)sizeof(m) \
	}

static inline void fake_send_want(struct fake *f)
{
	const struct rv_want w = {.head = FAKE_HEAD(RV_WANT, w), .want = f->want};

	fake_send(f, &w, sizeof(w), -1);
}

static inline void fake_on_ring(struct fake *f, const struct rv_ring *r, int fd)
{
	struct rv_ctl c = {.head = FAKE_HEAD(RV_CTL, c)};

	pthread_mutex_lock(&f->lock);
	if (!f->have_view || memcmp(f->uuid, r->uuid, 16) != 0) {
		struct ring_ctl *ctl;

		memcpy(f->uuid, r->uuid, 16);
		view_open(&f->v, fd);
		f->ctl_fd = memfd_create("ctl", MFD_CLOEXEC);
		(void)!ftruncate(f->ctl_fd, (off_t)ring_ctl_bytes(f->v.h->n_lanes));
		ctl = mmap(NULL, ring_ctl_bytes(f->v.h->n_lanes), PROT_READ | PROT_WRITE,
			MAP_SHARED, f->ctl_fd, 0);
		ctl->magic = RING_CTL_MAGIC;
		ctl->abi = RING_ABI;
		f->v.ctl = &ctl->lane[0].head;
		f->have_view = true;
	}
	c.n_lanes = f->v.h->n_lanes;
	pthread_mutex_unlock(&f->lock);
	fake_send(f, &c, sizeof(c), f->ctl_fd);
	f->rings++;
}

static inline void fake_welcome(struct fake *f)
{
	struct rv_welcome w = {.head = FAKE_HEAD(RV_WELCOME, w),
		.abi = RING_ABI,
		.want = f->want,
		.version = "fake",
		.n_lanes = f->lanes,
		.lane_bytes = f->lane_bytes};

	memset(w.store, 0x5a, sizeof(w.store));
	if (f->named)
		(void)snprintf(w.rings, sizeof(w.rings), "%s", f->dir);
	fake_send(f, &w, sizeof(w), -1);
}

static inline void fake_on_attach(struct fake *f, const unsigned char *p, size_t n)
{
	struct rv_refused no = {
		.head = FAKE_HEAD(RV_REFUSED, no), .code = f->refuse, .text = "not you"};

	memcpy(&f->attach, p, sizeof(f->attach));
	memset(f->info, 0, sizeof(f->info));
	memcpy(f->info, p + sizeof(f->attach), n - sizeof(f->attach));
	if (f->refuse != 0)
		fake_send(f, &no, sizeof(no), -1);
	else if (!f->mute)
		fake_welcome(f);
	f->attached++;
}

static inline void fake_on_export(struct fake *f)
{
	struct rv_exported x = {.head = FAKE_HEAD(RV_EXPORTED, x), .request = f->export.request};
	int fd = -1;

	f->exports++;
	if (f->mute)
		return;
	if (f->answer != NULL) {
		fd = memfd_create("export", MFD_CLOEXEC);
		x.bytes = strlen(f->answer);
		(void)!write(fd, f->answer, x.bytes);
	} else {
		x.code = -ENOENT;
		(void)snprintf(x.text, sizeof(x.text), "no such session");
	}
	fake_send(f, &x, sizeof(x), fd);
	if (fd >= 0)
		(void)close(fd);
}

static inline void fake_on_session(struct fake *f, const struct rv_session *s)
{
	struct rv_session_is x = {
		.head = FAKE_HEAD(RV_SESSION_IS, x), .request = s->request, .code = f->began};

	f->began_asks++;
	(void)snprintf(x.text, sizeof(x.text), "number %u: no", s->session);
	if (x.code <= 0)
		fake_send(f, &x, sizeof(x), -1);
}

static inline bool fake_read(struct fake *f)
{
	unsigned char buf[RV_MESSAGE_MAX];
	struct rv_head h;
	struct iovec iov = {buf, sizeof(buf)};
	union {
		char buf[CMSG_SPACE(4 * sizeof(int))];
		struct cmsghdr align;
	} c;
	struct msghdr m = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = c.buf,
		.msg_controllen = sizeof(c)};
	const ssize_t n = recvmsg(f->conn, &m, MSG_CMSG_CLOEXEC);
	int fd = -1;

	if (n <= 0)
		return false;
	if (CMSG_FIRSTHDR(&m) != NULL)
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(fd));
	memcpy(&h, buf, sizeof(h));
	if (h.type == RV_ATTACH)
		fake_on_attach(f, buf, (size_t)n);
	if (h.type == RV_RING && fd >= 0) {
		struct rv_ring r;

		memcpy(&r, buf, sizeof(r));
		fake_on_ring(f, &r, fd);
	}
	if (h.type == RV_EXPORT) {
		memcpy(&f->export, buf, sizeof(f->export));
		fake_on_export(f);
	}
	if (h.type == RV_SESSION) {
		struct rv_session s;

		memcpy(&s, buf, sizeof(s));
		fake_on_session(f, &s);
	}
	if (h.type == RV_STATE) {
		memcpy(&f->state, buf, sizeof(f->state));
		f->states++;
	}
	f->pongs += h.type == RV_PONG;
	if (fd >= 0)
		(void)close(fd);
	return true;
}

static inline void fake_drain(struct fake *f)
{
	pthread_mutex_lock(&f->lock);
	if (f->have_view && !f->hold)
		(void)view_walk(&f->v, f->on_record, f->arg);
	pthread_mutex_unlock(&f->lock);
}

static inline void fake_on_bell(struct fake *f, char c)
{
	if (c == 'w')
		fake_send_want(f);
	if (c == 'a')
		fake_welcome(f);
	if (c == 'x')
		fake_on_export(f);
}

static inline void *fake_main(void *p)
{
	struct fake *f = p;

	while (!f->stop) {
		struct pollfd w[3] = {
			{f->listen, POLLIN, 0}, {f->conn, POLLIN, 0}, {f->bell[0], POLLIN, 0}};
		char c;

		(void)poll(w, 3, f->have_view ? 1 : -1);
		if (w[0].revents != 0 && f->conn < 0)
			f->conn = accept4(f->listen, NULL, NULL, SOCK_CLOEXEC);
		if (w[1].revents != 0 && f->conn >= 0 && !fake_read(f)) {
			(void)close(f->conn);
			f->conn = -1;
		}
		if (w[2].revents != 0 && read(f->bell[0], &c, 1) == 1 && f->conn >= 0)
			fake_on_bell(f, c);
		fake_drain(f);
	}
	return NULL;
}

static inline void fake_ring(struct fake *f, char c)
{
	(void)!write(f->bell[1], &c, 1);
}

static inline void fake_want(struct fake *f, uint32_t want)
{
	f->want = want;
	fake_ring(f, 'w');
}

/* What it was silent about: 'a' an ATTACH, 'x' an EXPORT. */
static inline void fake_speak(struct fake *f, char c)
{
	f->mute = false;
	fake_ring(f, c);
}

/* Opens the socket and serves. The directory is made by fake_place(). */
static inline void fake_start(struct fake *f)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	char tmp[108];

	f->conn = -1;
	f->stop = false;
	(void)snprintf(a.sun_path, sizeof(a.sun_path), "%s/new.sock", f->dir);
	f->listen = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(bind(f->listen, (struct sockaddr *)&a, sizeof(a)), 0);
	ck_assert_int_eq(listen(f->listen, 64), 0);
	(void)snprintf(tmp, sizeof(tmp), "%s/%s", f->dir, RV_AGENT_SOCK);
	ck_assert_int_eq(rename(a.sun_path, tmp), 0);
	ck_assert_int_eq(pipe2(f->bell, O_CLOEXEC), 0);
	ck_assert_int_eq(pthread_create(&f->thread, NULL, fake_main, f), 0);
}

static inline void fake_stop(struct fake *f)
{
	f->stop = true;
	fake_ring(f, 'q');
	ck_assert_int_eq(pthread_join(f->thread, NULL), 0);
	if (f->conn >= 0)
		(void)close(f->conn);
	(void)close(f->listen);
	(void)close(f->bell[0]);
	(void)close(f->bell[1]);
}

static inline void fake_place(struct fake *f, uint32_t want)
{
	memset(f, 0, sizeof(*f));
	pthread_mutex_init(&f->lock, NULL);
	f->want = want;
	(void)snprintf(f->dir, sizeof(f->dir), "/dev/shm/protond-test.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(f->dir));
	ck_assert_int_eq(setenv("PROTOND_RUNTIME_DIR", f->dir, 1), 0);
}

/* A daemon removes the rings that have names, this one here. */
static inline void fake_clean(struct fake *f)
{
	DIR *dir = opendir(f->dir);
	const struct dirent *file;

	ck_assert_ptr_nonnull(dir);
	while ((file = readdir(dir)) != NULL)
		(void)unlinkat(dirfd(dir), file->d_name, 0);
	(void)closedir(dir);
	ck_assert_int_eq(rmdir(f->dir), 0);
}

/* Looks at a condition each millisecond, at most 10 s: for what another thread does in its own time
 * and tells nobody. */
#define FAKE_WAIT(condition)                                           \
	do {                                                           \
		struct timespec fw_ = {.tv_nsec = 1000000};            \
		int fw_n_ = 0;                                         \
		while (!(condition) && fw_n_++ < 10000)                \
			(void)nanosleep(&fw_, NULL);                   \
		ck_assert_msg((condition), "in vain: %s", #condition); \
	} while (0)

#endif
