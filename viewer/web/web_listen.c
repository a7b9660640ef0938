/* SPDX-License-Identifier: MIT. web_listen.c: sockets that listen. */
#include "web_listen.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define PORTS_TRIED 50u

_Static_assert(sizeof(((struct sockaddr_un *)0)->sun_path) == WEB_PATH, "a path fits");

static int listen_unix(struct web_listener *l, const char *path, int backlog, struct err *e)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	mode_t before;
	int r;

	if (fd < 0)
		return err_set(e, neg_errno(), "no socket: %s", strerror(errno));
	if (strlen(path) == 0 || strlen(path) >= sizeof(a.sun_path)) {
		(void)close(fd);
		return err_set(
			e, -EINVAL, "--bind unix:PATH: a path below %zu bytes", sizeof(a.sun_path));
	}
	memcpy(a.sun_path, path, strlen(path));
	before = umask(0077); /* this user's alone */
	r = bind(fd, (const struct sockaddr *)&a, sizeof(a)) < 0 || listen(fd, backlog) < 0 ? -errno
											    : 0;
	(void)umask(before);
	if (r < 0) {
		(void)close(fd);
		return err_set(e, r, "%s: %s", path,
			r == -EADDRINUSE ? "is there already; remove it if nobody listens there"
					 : strerror(-r));
	}
	snprintf(l->path, sizeof(l->path), "%s", path);
	return fd;
}

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

static int bind_port(const union address *a, socklen_t n, int backlog)
{
	const int fd = socket(a->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0),
		  on = 1;
	int r = fd < 0 ? -errno : 0;

	if (r == 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0)
		r = -errno;
	if (r == 0 && (bind(fd, &a->any, n) < 0 || listen(fd, backlog) < 0))
		r = -errno;
	if (r == 0)
		return fd;
	if (fd >= 0)
		(void)close(fd);
	return r;
}

static int listen_port(struct web_listener *l, const char *bind_to, int backlog, struct err *e)
{
	union address a = {.v4 = {.sin_family = AF_INET}};
	socklen_t n = sizeof(a.v4);
	uint32_t port;
	int fd = -1;

	if (inet_pton(AF_INET, bind_to, &a.v4.sin_addr) != 1) {
		a = (union address){.v6 = {.sin6_family = AF_INET6}};
		n = sizeof(a.v6);
		if (inet_pton(AF_INET6, bind_to, &a.v6.sin6_addr) != 1)
			return err_set(e, -EINVAL,
				"--bind '%s' is no address; give one of this machine as numbers "
				"(0.0.0.0 is all of them), or unix:PATH",
				bind_to);
	}
	for (port = l->port; port <= 65535 && port < l->port + PORTS_TRIED; port++) {
		if (n == sizeof(a.v4))
			a.v4.sin_port = htons((uint16_t)port);
		else
			a.v6.sin6_port = htons((uint16_t)port);
		fd = bind_port(&a, n, backlog);
		if (fd != -EADDRINUSE || l->port_fixed)
			break;
	}
	if (fd < 0)
		return err_set(e, fd, "%s port %u: %s", bind_to, l->port, strerror(-fd));
	if (getsockname(fd, &a.any, &n) == 0)
		port = ntohs(a.any.sa_family == AF_INET ? a.v4.sin_port : a.v6.sin6_port);
	l->port = port;
	return fd;
}

int web_listen(const char *to, uint32_t backlog, struct web_listener *l, struct err *e)
{
	l->path[0] = '\0';
	if (strncmp(to, "unix:", 5) == 0) {
		l->port = 0;
		l->fd = listen_unix(l, to + 5, (int)backlog, e);
	} else {
		l->fd = listen_port(l, to, (int)backlog, e);
	}
	return l->fd < 0 ? l->fd : 0;
}
