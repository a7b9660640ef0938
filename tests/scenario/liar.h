/* SPDX-License-Identifier: MIT. liar.h: a lying job's numbers, and how it meets the daemon: as any
 * job does, with a lawful ring, by rendezvous.h and ring.h alone. */
#ifndef LIAR_H
#define LIAR_H

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "record.h"
#include "rendezvous.h"
#include "ring.h"

#define WAIT_MS  60000
#define NAMES    64u
#define PATHS    200u
#define CROWD    1000
#define HOARD    80
#define FDS      253 /* the kernel takes no more with one message */
#define FLOOD    1000
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

struct liar {
	int sock, fd;
	bool mute; /* never says PONG */
	uint32_t session;
	struct rv_welcome w;
	struct ring_header h; /* as it was when the daemon took it */
	struct ring_layout at;
	uint8_t *mem;
	const struct ring_ctl *ctl;
	size_t ctl_bytes;
	char file[512]; /* the ring's name in rings/, or "" */
};

static char sock_path[108];
static uint64_t pid_start;
static uint8_t boot[16];
static unsigned met, refused, held;
static _Atomic bool racing;
static _Thread_local uint64_t seed;
static _Thread_local bool racer; /* this is the thread that lies while the other one talks */
static int to_parent = -1;       /* of a child: by this pipe it says that it ends */

__attribute__((noreturn)) static inline void leave(int status)
{
	if (to_parent >= 0)
		(void)!write(to_parent, "", 1);
	_exit(status);
}

/* --- numbers --- */

static inline uint64_t rnd(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static inline uint64_t below(uint64_t n)
{
	return n != 0 ? rnd() % n : 0;
}

static inline bool one_in(uint64_t n)
{
	return below(n) == 0;
}

static inline uint64_t now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Where arithmetic breaks, or anything. */
static inline uint64_t odd(void)
{
	static const uint64_t edge[] = {0, 1, 2, 7, 8, 63, 64, 65, 255, 256, 1023, 1024, 1025, 4095,
		4096, 65535, 65536, 1u << 20, INT32_MAX, UINT32_MAX, 1ull << 32, 1ull << 40,
		1ull << 62, INT64_MAX, 1ull << 63, UINT64_MAX - 7, UINT64_MAX - 1, UINT64_MAX};

	switch (below(4)) {
	case 0:
		return edge[below(COUNT(edge))];
	case 1:
		return rnd();
	case 2:
		return rnd() >> below(64);
	default:
		return below(256);
	}
}

static inline uint64_t odd_time(void)
{
	return one_in(3) ? odd() : now_ns() + below(2000000) - 1000000;
}

static inline void fill(void *to, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		((uint8_t *)to)[i] = (uint8_t)rnd();
}

/* Start time and boot, as a ring's header has them. */
static inline void who_am_i(void)
{
	char buf[1024] = "";
	int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
	const char *at;

	(void)!read(fd, buf, sizeof(buf) - 1);
	(void)close(fd);
	at = strrchr(buf, ')');
	for (int field = 2; at != NULL && field < 22; field++)
		at = strchr(at + 1, ' ');
	pid_start = at != NULL ? strtoull(at, NULL, 10) : 0;
	fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	(void)!read(fd, buf, sizeof(buf) - 1);
	(void)close(fd);
	at = buf;
	for (int i = 0; i < 16; i++, at += 2) {
		unsigned v = 0;

		at += *at == '-';
		(void)sscanf(at, "%2x", &v);
		boot[i] = (uint8_t)v;
	}
}

/* --- agent.sock --- */

static inline int dial(void)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	(void)snprintf(a.sun_path, sizeof(a.sun_path), "%s", sock_path);
	if (fd < 0 || connect(fd, (const struct sockaddr *)&a, sizeof(a)) < 0)
		leave(3);
	return fd;
}

/* As it is; false: the daemon has hung up. */
static inline bool send_raw(int sock, const void *m, size_t bytes, const int *fds, size_t n)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(FDS * sizeof(int))] = {0};
	const struct cmsghdr c = {.cmsg_len = CMSG_LEN(n * sizeof(int)),
		.cmsg_level = SOL_SOCKET,
		.cmsg_type = SCM_RIGHTS};
	struct iovec v = {(void *)(uintptr_t)m, bytes};
	struct msghdr h = {.msg_iov = &v, .msg_iovlen = 1};
	struct pollfd ready = {.fd = sock, .events = POLLOUT};

	if (n > 0) {
		h.msg_control = control;
		h.msg_controllen = CMSG_SPACE(n * sizeof(int));
		memcpy(control, &c, sizeof(c));
		memcpy(control + CMSG_LEN(0), fds, n * sizeof(int));
	}
	for (;;) {
		if (sendmsg(sock, &h, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0)
			return true;
		if (errno != EAGAIN && errno != EINTR)
			return false;
		if (poll(&ready, 1, WAIT_MS) != 1)
			leave(4);
	}
}

static inline bool say(int sock, void *m, size_t bytes, unsigned type, const int *fds, size_t n)
{
	const struct rv_head head = {RV_MAGIC, (uint16_t)type, (uint16_t)bytes};

	memcpy(m, &head, sizeof(head));
	return send_raw(sock, m, bytes, fds, n);
}

/* The next message, its descriptor in *ret_fd. False: the daemon hung up. */
static inline bool hear(
	const struct liar *l, uint8_t to[RV_MESSAGE_MAX], struct rv_head *ret, int *ret_fd)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))];
	struct iovec v = {to, RV_MESSAGE_MAX};
	struct msghdr h = {.msg_iov = &v,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control)};
	struct pollfd ready = {.fd = l->sock, .events = POLLIN};
	struct rv_head pong;

	*ret_fd = -1;
	if (poll(&ready, 1, WAIT_MS) != 1)
		leave(4);
	if (recvmsg(l->sock, &h, MSG_CMSG_CLOEXEC) < (ssize_t)sizeof(*ret))
		return false;
	memcpy(ret, to, sizeof(*ret));
	if (CMSG_FIRSTHDR(&h) != NULL)
		memcpy(ret_fd, CMSG_DATA(CMSG_FIRSTHDR(&h)), sizeof(int));
	if (ret->type == RV_PING && !l->mute)
		(void)say(l->sock, &pong, sizeof(pong), RV_PONG, NULL, 0);
	return true;
}

/* The next message of this type, in `to`. */
static inline bool wait_for(
	const struct liar *l, unsigned type, void *to, size_t bytes, int *ret_fd)
{
	uint8_t packet[RV_MESSAGE_MAX];
	struct rv_head head;
	int fd;

	while (hear(l, packet, &head, &fd)) {
		if (head.type == type && head.bytes >= bytes) {
			memcpy(to, packet, bytes);
			if (ret_fd != NULL)
				*ret_fd = fd;
			return true;
		}
		if (fd >= 0)
			(void)close(fd);
	}
	return false;
}

/* A PONG makes the daemon's next turn a tick; a second one says that this was. */
static inline bool nudge(const struct liar *l)
{
	struct rv_head m;

	for (int i = 0; i < 2; i++) {
		if (!say(l->sock, &m, sizeof(m), RV_PING, NULL, 0) ||
			!wait_for(l, RV_PONG, &m, sizeof(m), NULL))
			return false;
	}
	return true;
}

/* --- a lawful ring --- */

static inline struct ring_counts *counts_of(const struct liar *l)
{
	return (struct ring_counts *)(void *)(l->mem + l->at.counts);
}

static inline struct ring_lane *lane_of(const struct liar *l, uint64_t lane)
{
	return (struct ring_lane *)(void *)(l->mem + l->at.lanes) + lane % l->h.n_lanes;
}

static inline uint32_t add_name(struct liar *l, const char *text, uint32_t bytes)
{
	struct ring_counts *c = counts_of(l);
	const uint32_t id = c->names % l->h.name_cap,
		       at = c->name_bytes % (l->h.name_bytes_cap - NAME_BYTES_MAX);

	memcpy(l->mem + l->at.bytes + at, text, bytes);
	((struct ring_name *)(void *)(l->mem + l->at.names))[id] = (struct ring_name){at, bytes, 0};
	c->name_bytes = at + bytes;
	c->names = id + 1;
	return id;
}

static inline void add_path(struct liar *l, uint32_t parent, uint32_t name)
{
	struct ring_counts *c = counts_of(l);
	struct ring_path *p = (struct ring_path *)(void *)(l->mem + l->at.paths);
	const uint32_t id = c->paths % l->h.path_cap;

	p[id] = (struct ring_path){parent, name,
		id == 0 ? PATH_KIND_ROOT : (uint16_t)(1 + below(PATH_KIND_FRAME)),
		id == 0 ? 0 : (uint16_t)(p[parent].depth + 1), 0};
	c->paths = id + 1;
}

/* Names that are bad for terminals, files and formats; metrics of every kind. */
static inline void add_names(struct liar *l)
{
	static const char *const text[] = {"", "(other)", "\033[2J\033]0;x\a", "a\nb\r\t",
		"\xff\xfe\xc0\x80", "<script>alert(1)</script>", "../../../etc/passwd", "%s%n%s",
		"flops8 (inc)", "flops8 (exc)", "time (ns)(exc)", "note (pty)", "(pty)", "(inc)",
		"hatchet", "chrome_trace", "none", "cupti", "shadow", "\"',;\\"};
	char any[NAME_BYTES_MAX];

	for (size_t i = 0; i < COUNT(text); i++)
		(void)add_name(l, text[i], (uint32_t)strlen(text[i]));
	while (counts_of(l)->names < NAMES) {
		fill(any, sizeof(any));
		(void)add_name(l, any, (uint32_t)below(one_in(4) ? sizeof(any) + 1 : 12));
	}
}

static inline void add_tables(struct liar *l)
{
	add_names(l);
	add_path(l, 0, NAME_NONE);
	add_path(l, 0, NAME_OTHER);
	for (uint32_t i = 2; i < PATHS; i++)
		add_path(l, one_in(3) ? i - 1 : (uint32_t)below(i), (uint32_t)below(NAMES));
	fill(l->mem + l->at.configs, 4 * sizeof(struct ring_config));
	fill(l->mem + l->at.devices, 2 * sizeof(struct ring_device));
	counts_of(l)->configs = 4;
	counts_of(l)->devices = 2;
}

static inline void shape(struct ring_header *h)
{
	static const uint32_t lanes[][2] = {{1, 64 << 10}, {20, 64 << 10}, {64, 256 << 10},
		{1024, 64 << 10}, {4, 16 << 20}, {RING_LANES, RING_LANE_BYTES}};
	const uint32_t *s = lanes[below(COUNT(lanes))];

	*h = (struct ring_header){.magic = RING_MAGIC,
		.abi = RING_ABI,
		.header_bytes = sizeof(*h),
		.pid = (uint32_t)getpid(),
		.uid = (uint32_t)geteuid(),
		.pid_start = pid_start,
		.clock = one_in(4) ? RING_CLOCK_TSC : RING_CLOCK_MONOTONIC,
		.tsc_khz = (uint32_t)odd(),
		.n_lanes = s[0],
		.lane_bytes = s[1],
		.path_cap = one_in(4) ? RING_PATHS << 2 * one_in(16) : 2 * PATH_OTHER_RESERVE,
		.name_cap = one_in(4) ? RING_NAMES << 2 * one_in(16) : 4096,
		.name_bytes_cap = one_in(8) ? RING_NAME_BYTES_MAX : RING_NAME_BYTES,
		.config_cap = RING_CONFIGS,
		.device_cap = RING_DEVICES,
		.created_clock = one_in(4) ? odd() : now_ns(),
		.created_monotonic_ns = one_in(4) ? odd() : now_ns(),
		.created_realtime_ns = odd()};
	fill(h->uuid, 16);
	memcpy(h->boot_id, boot, 16);
}

static inline int make_file(struct liar *l)
{
	size_t n;
	int fd;

	l->file[0] = '\0';
	if (l->w.rings[0] == '\0' || one_in(3))
		return memfd_create("protond-ring", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	n = (size_t)snprintf(l->file, sizeof(l->file), "%s/", l->w.rings);
	for (int i = 0; i < 16; i++)
		n += (size_t)snprintf(l->file + n, sizeof(l->file) - n, "%02x", l->h.uuid[i]);
	(void)snprintf(l->file + n, sizeof(l->file) - n, ".ring");
	fd = open(l->file, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	return fd;
}

static inline bool offer(struct liar *l, const int *fds, size_t n, struct rv_ctl *ret, int *ret_fd)
{
	struct rv_ring m = {.named = l->file[0] != '\0'};

	memcpy(m.uuid, l->h.uuid, 16);
	return say(l->sock, &m, sizeof(m), RV_RING, fds, n) &&
	       wait_for(l, RV_CTL, ret, sizeof(*ret), ret_fd);
}

static inline bool make_ring(struct liar *l)
{
	struct rv_ctl ctl;
	void *map;
	int fd;

	shape(&l->h);
	memcpy(l->h.store, l->w.store, 16);
	if (!ring_layout(&l->h, &l->at))
		leave(2);
	l->h.file_bytes = l->at.file_bytes;
	l->fd = make_file(l);
	if (l->fd < 0 || ftruncate(l->fd, (off_t)l->at.file_bytes) < 0)
		leave(3);
	l->mem = mmap(NULL, l->at.file_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, l->fd, 0);
	if (l->mem == MAP_FAILED)
		leave(3);
	(void)snprintf(
		(char *)l->mem + l->at.info, RING_INFO_BYTES, "command=liar%ccwd=/%crank=x", 0, 0);
	add_tables(l);
	memcpy(l->mem, &l->h, sizeof(l->h));
	if (!offer(l, &l->fd, 1, &ctl, &fd))
		return false;
	if (ctl.code != 0 || fd < 0)
		return false; /* too many, for example: it was said in words */
	l->ctl_bytes = ring_ctl_bytes(l->h.n_lanes);
	map = mmap(NULL, l->ctl_bytes, PROT_READ, MAP_SHARED, fd, 0);
	l->ctl = map;
	(void)close(fd);
	return map != MAP_FAILED;
}

static inline bool attach(struct liar *l)
{
	static const char info[] = "command=liar\0cwd=/\0rank=7";
	struct {
		struct rv_attach a;
		char info[sizeof(info)];
	} m = {.a = {.abi = RING_ABI, .pid = (uint32_t)getpid(), .version = "liar"}};

	memcpy(m.info, info, sizeof(info));
	l->sock = dial();
	l->mute = one_in(4);
	return say(l->sock, &m, sizeof(m), RV_ATTACH, NULL, 0) &&
	       wait_for(l, RV_WELCOME, &l->w, sizeof(l->w), NULL);
}

static inline void part(struct liar *l)
{
	if (l->ctl != NULL && l->ctl != MAP_FAILED)
		(void)munmap((void *)(uintptr_t)l->ctl, l->ctl_bytes);
	if (l->mem != NULL)
		(void)munmap(l->mem, l->at.file_bytes);
	if (l->fd >= 0)
		(void)close(l->fd);
	if (l->sock >= 0)
		(void)close(l->sock);
	*l = (struct liar){.sock = -1, .fd = -1};
}

/* A page that the file has no more becomes one of our own. */
static inline void on_bus(int sig, siginfo_t *i, void *context)
{
	(void)sig;
	(void)context;
	(void)mmap((void *)((uintptr_t)i->si_addr & ~(uintptr_t)(RING_PAGE - 1)), RING_PAGE,
		PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

#endif
