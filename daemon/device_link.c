/* SPDX-License-Identifier: MIT. device_link.c: starts, asks, hears and ends protond-device. */
#include "device_link.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "config.h"
#include "daemon.h"
#include "device_msg.h"
#include "entry.h"
#include "fold.h"
#include "host_clock.h"
#include "log.h"

#define SECOND_NS    1000000000ull
#define HEALTHY_NS   (60 * SECOND_NS)
#define AT_ONCE      256u /* packets of one turn of the loop */
#define SERVICE_NAME "device.sock"

/* --- one that goes */

static void free_handle(uv_handle_t *h)
{
	free(h);
}

static void on_exit_of_child(uv_process_t *c, int64_t status, int sig)
{
	struct device_link *l = c->data;

	(void)status;
	(void)sig;
	if (l != NULL) {
		l->lives = false;
		l->child = NULL;
	}
	uv_close((uv_handle_t *)c, free_handle);
}

/* A child that hangs in the driver may outlive its SIGKILL: it is let go. */
static void let_go(struct device_link *l)
{
	if (l->poll != NULL) {
		(void)uv_poll_stop(l->poll);
		uv_close((uv_handle_t *)l->poll, free_handle);
		l->poll = NULL;
	}
	if (l->fd >= 0)
		(void)close(l->fd);
	l->fd = -1;
	l->hz = 0;
	if (l->child != NULL) {
		(void)uv_process_kill(l->child, SIGKILL);
		l->child->data = NULL;
		l->child = NULL;
	}
}

/* Again in 1, 2, 4, … seconds. */
static void lost(struct device_link *l, const char *why, uint64_t now_ns)
{
	if (now_ns - l->began_ns > HEALTHY_NS)
		l->tries = 0;
	let_go(l);
	l->retry_ns = now_ns + (SECOND_NS << l->tries);
	l->tries++;
	log_line(LOG_WARN, "device_lost", "reason=\"%s\" tries=%u next=\"%s\"", why, l->tries,
		l->tries < DEVICE_TRIES ? "it is started again; sessions go on without its readings"
					: "no more tries; sessions go on without its readings");
}

/* --- what it says */

static void take_trouble(struct device_link *l, const struct device_said *s)
{
	char quoted[600];
	const char *words = NULL, *help = "";

	switch (s->trouble) {
#define X(name, number, w, h) \
	case number:          \
		words = w;    \
		help = h;     \
		break;
		DEVICE_TROUBLES(X)
#undef X
	default:
		return; /* a newer helper's */
	}
	if ((l->said & 1u << s->trouble) != 0)
		return;
	l->said |= 1u << s->trouble;
	log_line(LOG_INFO, "device_trouble", "what=\"%s\" text=%s next=\"%s\"", words,
		log_quote(quoted, sizeof(quoted), s->text), help);
}

static void take(struct device_link *l, const void *packet, size_t n)
{
	static struct log_cause refused, dropped;
	static const uint8_t nobody[16];
	struct device_reading r;
	int put;

	if (device_said_is_sane(packet, n)) {
		take_trouble(l, packet);
	} else if (device_reading_is_sane(packet, n, mono_ns())) {
		memcpy(&r, packet, sizeof(r));
		put = entry_put(l->entries, J_DEVICE, nobody, &r, sizeof(r));
		if (put < 0) {
			l->d->readings_dropped++;
			log_cause(&dropped, LOG_WARN, "device_dropped", "error=%d", -put);
		}
	} else {
		l->d->readings_refused++;
		log_cause(&refused, LOG_WARN, "device_refused", "bytes=%zu", n);
	}
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
	struct device_link *l = poll->data;
	_Alignas(8) uint8_t packet[sizeof(struct device_reading) + 8];
	ssize_t n;
	bool ended = false;
	uint32_t i;

	(void)events;
	for (i = 0; i < AT_ONCE && status == 0; i++) {
		n = recv(l->fd, packet, sizeof(packet), MSG_DONTWAIT);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			break;
		if (n <= 0) {
			ended = true;
			break;
		}
		l->heard_ns = mono_ns();
		take(l, packet, (size_t)n);
	}
	(void)entry_flush(l->entries);
	if (ended || status != 0)
		lost(l, "it ended", mono_ns());
}

/* --- one that comes */

static int watch(struct device_link *l, int fd)
{
	l->poll = calloc(1, sizeof(*l->poll));
	if (l->poll == NULL)
		return -ENOMEM;
	if (uv_poll_init(&l->d->loop, l->poll, fd) != 0) {
		free(l->poll);
		l->poll = NULL;
		return -ENOMEM;
	}
	l->poll->data = l;
	return uv_poll_start(l->poll, UV_READABLE | UV_DISCONNECT, on_readable);
}

/* Beside the daemon's own file. */
static int find_program(char *ret, size_t n)
{
	const ssize_t got = readlink("/proc/self/exe", ret, n - sizeof("-device"));

	if (got <= 0)
		return -ENOENT;
	memcpy(ret + got, "-device", sizeof("-device"));
	return access(ret, X_OK) < 0 ? -ENOENT : 0;
}

static int start_child(struct device_link *l, int *ret_fd)
{
	char program[4096];
	char *argv[] = {program, NULL};
	uv_stdio_container_t stdio[4] = {0};
	uv_process_options_t o = {.exit_cb = on_exit_of_child,
		.file = program,
		.args = argv,
		.stdio = stdio,
		.stdio_count = 4};
	int fd[2], r = find_program(program, sizeof(program));

	if (r < 0)
		return r;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fd) < 0)
		return -errno;
	stdio[3] = (uv_stdio_container_t){.flags = UV_INHERIT_FD, .data.fd = fd[1]};
	l->child = calloc(1, sizeof(*l->child));
	r = l->child == NULL ? -ENOMEM : uv_spawn(&l->d->loop, l->child, &o);
	(void)close(fd[1]);
	if (r != 0) {
		(void)close(fd[0]);
		if (l->child != NULL)
			uv_close((uv_handle_t *)l->child, free_handle);
		l->child = NULL;
		return r;
	}
	l->child->data = l;
	l->lives = true;
	*ret_fd = fd[0];
	return 0;
}

/* The service manager starts it when we come; who removed its unit wants none. */
static int find_service(const struct device_link *l, int *ret_fd)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	const int n =
		snprintf(a.sun_path, sizeof(a.sun_path), "%s/%s", l->d->runtime, SERVICE_NAME);
	const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int r;

	if (fd < 0)
		return -errno;
	if (n < (int)sizeof(a.sun_path) &&
		connect(fd, (const struct sockaddr *)&a, sizeof(a)) == 0) {
		*ret_fd = fd;
		return 0;
	}
	r = n < (int)sizeof(a.sun_path) ? -errno : -ENAMETOOLONG;
	(void)close(fd);
	return r;
}

static void start(struct device_link *l, uint64_t now_ns)
{
	int fd = -1, r = l->d->private ? start_child(l, &fd) : find_service(l, &fd);

	l->began_ns = l->heard_ns = now_ns;
	if (r == 0) {
		l->fd = fd;
		r = watch(l, fd);
	}
	if (r == -ENOENT && l->fd < 0)
		l->tries = DEVICE_TRIES - 1;
	if (r != 0)
		lost(l, r == -ENOENT ? "protond-device is not installed" : uv_strerror(r), now_ns);
}

static void ask(struct device_link *l, uint32_t hz, uint64_t now_ns)
{
	const struct device_want w = {.head = {DEVICE_MAGIC, DEVICE_WANT}, .hz = hz};

	if (send(l->fd, &w, sizeof(w), MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)sizeof(w))
		return; /* again in a second */
	l->hz = hz;
	l->heard_ns = now_ns;
}

static void look(void *arg, const struct fold_session *s)
{
	*(bool *)arg |= s->state == SESSION_IS_ACTIVE && s->n_live > 0;
}

void device_second(struct device_link *l, uint64_t now_ns)
{
	uint64_t hz = l->d->config->device_hz;
	bool wanted = false;

	if (hz != 0)
		fold_each_session(l->d->fold, look, &wanted);
	if (l->fd < 0) {
		if (wanted && l->tries < DEVICE_TRIES && now_ns >= l->retry_ns)
			start(l, now_ns);
		if (l->fd < 0)
			return;
	}
	hz = !wanted ? 0 : hz < DEVICE_HZ_MAX ? hz : DEVICE_HZ_MAX;
	if (l->hz != 0 && now_ns - l->heard_ns > DEVICE_HANGS_NS)
		lost(l, "no reading for 10 s: the driver hangs", now_ns);
	else if (l->hz != hz)
		ask(l, (uint32_t)hz, now_ns);
}

void device_end(struct device_link *l)
{
	let_go(l);
}
