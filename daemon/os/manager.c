/* SPDX-License-Identifier: MIT. manager.c: what a service manager hands over, hears and keeps, in
 * the variables and on the socket of sd_listen_fds(3) and sd_notify(3). */
#include "manager.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "err.h"
#include "message.h"

#define GIVEN_FIRST 3 /* SD_LISTEN_FDS_START */

static bool is_bound_to(int fd, const char *name, int type)
{
	struct sockaddr_un a = {.sun_family = AF_UNSPEC};
	socklen_t n = sizeof(a), type_n = sizeof(int);
	const char *last;
	int have = 0;

	if (getsockname(fd, (struct sockaddr *)&a, &n) < 0 || a.sun_family != AF_UNIX ||
		getsockopt(fd, SOL_SOCKET, SO_TYPE, &have, &type_n) < 0 || have != type)
		return false;
	a.sun_path[sizeof(a.sun_path) - 1] = '\0';
	last = strrchr(a.sun_path, '/');
	return last != NULL && strcmp(last + 1, name) == 0;
}

static bool is_our_pid(const char *variable)
{
	const char *pid = getenv(variable);

	return pid != NULL && strtol(pid, NULL, 10) == (long)getpid();
}

/* How many descriptors, from GIVEN_FIRST on, were handed over when we were started. */
static int given_n(void)
{
	const char *fds = getenv("LISTEN_FDS");

	return fds != NULL && is_our_pid("LISTEN_PID") ? (int)strtol(fds, NULL, 10) : 0;
}

/* The names, one after the other: *at is behind the one that is returned, of *ret_bytes. */
static const char *next_name(const char **at, size_t *ret_bytes)
{
	const char *name = *at;

	*ret_bytes = strcspn(name, ":");
	*at += *ret_bytes;
	*at += **at == ':';
	return name;
}

static bool is_kept(const char *name)
{
	return strncmp(name, MANAGER_KEPT, sizeof(MANAGER_KEPT) - 1) == 0;
}

void manager_kept(manager_kept_fn *fn, void *arg)
{
	const char *at = getenv("LISTEN_FDNAMES"), *name;
	const int n = given_n();
	size_t bytes;
	int i;

	for (i = 0; i < n && at != NULL && *at != '\0'; i++) {
		name = next_name(&at, &bytes);
		if (is_kept(name) && fcntl(GIVEN_FIRST + i, F_SETFD, FD_CLOEXEC) == 0)
			fn(arg, GIVEN_FIRST + i, name, bytes);
	}
}

/* Sockets are the first; their numbers are no other descriptor's, as those of what was kept may be
 * once it is closed. */
static int given_sockets(void)
{
	const char *at = getenv("LISTEN_FDNAMES");
	const int n = given_n() < 64 ? given_n() : 64;
	size_t bytes;
	int i;

	for (i = 0; i < n && at != NULL && *at != '\0'; i++) {
		if (is_kept(next_name(&at, &bytes)))
			return i;
	}
	return n;
}

int manager_inherited(const char *name, int type)
{
	static uint64_t given; /* bit per descriptor */
	const int first = GIVEN_FIRST, n = given_sockets();
	int i;

	for (i = 0; i < n; i++) {
		if ((given & 1ull << i) != 0 || !is_bound_to(first + i, name, type))
			continue;
		given |= 1ull << i;
		(void)fcntl(first + i, F_SETFD, FD_CLOEXEC);
		(void)fcntl(first + i, F_SETFL, O_NONBLOCK);
		return first + i;
	}
	return -1;
}

uint64_t manager_watchdog_ns(void)
{
	const char *pid = getenv("WATCHDOG_PID"), *us = getenv("WATCHDOG_USEC");

	if (us == NULL || (pid != NULL && strtol(pid, NULL, 10) != (long)getpid()))
		return 0;
	return strtoull(us, NULL, 10) * 1000;
}

bool manager_restarts(bool private)
{
	return !private && getenv("NOTIFY_SOCKET") != NULL;
}

bool manager_keeps(bool private)
{
	return getenv("NOTIFY_SOCKET") != NULL &&
	       (!private || is_our_pid("WATCHDOG_PID") || is_our_pid("SYSTEMD_EXEC_PID"));
}

static int notify_address(struct sockaddr_un *ret, socklen_t *ret_bytes)
{
	const char *where = getenv("NOTIFY_SOCKET");

	if (where == NULL || (where[0] != '/' && where[0] != '@') ||
		strlen(where) >= sizeof(ret->sun_path))
		return -ENOENT;
	*ret = (struct sockaddr_un){.sun_family = AF_UNIX};
	memcpy(ret->sun_path, where, strlen(where));
	if (where[0] == '@')
		ret->sun_path[0] = '\0';
	*ret_bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(where));
	return 0;
}

int manager_notify(const char *state, int fd)
{
	struct message_fd room = {{0}};
	struct iovec v = {(void *)(uintptr_t)state, strlen(state)};
	struct sockaddr_un a;
	struct msghdr m = {.msg_name = &a, .msg_iov = &v, .msg_iovlen = 1};
	int s, r = notify_address(&a, &m.msg_namelen);

	if (r < 0)
		return r;
	message_put_fd(&m, &room, fd);
	s = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (s < 0)
		return neg_errno();
	r = sendmsg(s, &m, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? neg_errno() : 0;
	(void)close(s);
	return r;
}
