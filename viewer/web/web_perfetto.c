/* SPDX-License-Identifier: MIT. web_perfetto.c: one file, to one page, once. */
#include "web_perfetto.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "web_guard.h"

#define HEAD_MAX  8192u
#define ASKER_S   2u  /* for a whole request: others wait behind it */
#define READER_S  30u /* that takes nothing */
#define VALUE_MAX 256u
#define HOST      "127.0.0.1:9001"

_Static_assert(PERFETTO_PORT == 9001, "HOST");

/* A header's value; "": it is not there, or too long to be one of ours. */
static void header_of(const char *head, const char *name, char ret[VALUE_MAX])
{
	const size_t n = strlen(name);
	const char *line = strchr(head, '\n'), *end;

	ret[0] = '\0';
	for (; line != NULL; line = strchr(line, '\n')) {
		line++;
		if (strncasecmp(line, name, n) != 0 || line[n] != ':')
			continue;
		line += n + 1;
		line += strspn(line, " \t");
		end = line + strcspn(line, "\r\n");
		if (end - line < VALUE_MAX)
			snprintf(ret, VALUE_MAX, "%.*s", (int)(end - line), line);
		return;
	}
}

enum perfetto_reply perfetto_reply_to(const char *head, const char *token)
{
	const char *path = strchr(head, ' ');
	const size_t method = path != NULL ? (size_t)(path - head) : 0;
	char value[VALUE_MAX], given[GUARD_TOKEN] = "";

	header_of(head, "Host", value);
	if (strcmp(value, HOST) != 0)
		return PERFETTO_NAME;
	header_of(head, "Origin", value);
	if (strcmp(value, PERFETTO_PAGE) != 0)
		return PERFETTO_STRANGER;
	if (path == NULL || strlen(path) < GUARD_TOKEN + 1)
		return PERFETTO_NOTHING;
	snprintf(given, sizeof(given), "%s", path + 2);
	if (path[1] != '/' || !guard_same(token, given) ||
		strncmp(path + 1 + GUARD_TOKEN, ".pftrace ", 9) != 0)
		return PERFETTO_NOTHING;
	if (method == 7 && memcmp(head, "OPTIONS", 7) == 0)
		return PERFETTO_MAY;
	return method == 3 && memcmp(head, "GET", 3) == 0 ? PERFETTO_GIVE : PERFETTO_METHOD;
}

static uint64_t clock_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000u + (uint64_t)t.tv_nsec / 1000000u;
}

static bool wait_until(int fd, short what, uint64_t until_ms)
{
	const uint64_t now = clock_ms();
	struct pollfd p = {.fd = fd, .events = what};

	return poll(&p, 1, until_ms > now ? (int)(until_ms - now) : 0) > 0;
}

/* false: none came whole, in time. */
static bool read_head(int c, uint64_t until_ms, char head[HEAD_MAX])
{
	size_t n = 0;
	ssize_t got;

	for (head[0] = '\0'; n < HEAD_MAX - 1 && strstr(head, "\r\n\r\n") == NULL; head[n] = '\0') {
		if (!wait_until(c, POLLIN, until_ms))
			return false;
		got = recv(c, head + n, HEAD_MAX - 1 - n, MSG_DONTWAIT);
		if (got <= 0 || memchr(head + n, '\0', (size_t)got) != NULL)
			return false;
		n += (size_t)got;
	}
	return n < HEAD_MAX - 1;
}

/* Whether all of it was taken. */
static bool send_file(int c, int fd, uint64_t bytes)
{
	off_t at = 0;

	while ((uint64_t)at < bytes) {
		if (sendfile(c, fd, &at, (size_t)(bytes - (uint64_t)at)) > 0)
			continue;
		if ((errno != EAGAIN && errno != EINTR) ||
			!wait_until(c, POLLOUT, clock_ms() + READER_S * 1000u))
			return false;
	}
	return true;
}

/* Whether the file was given. */
static bool answer(int c, int fd, uint64_t bytes, const char *token, uint64_t until_ms)
{
	const uint64_t soon = clock_ms() + ASKER_S * 1000u;
	enum perfetto_reply reply;
	char head[HEAD_MAX];
	bool ours;
	int n;

	if (!read_head(c, soon < until_ms ? soon : until_ms, head))
		return false;
	reply = perfetto_reply_to(head, token);
	ours = reply == PERFETTO_GIVE || reply == PERFETTO_MAY;
	n = snprintf(head, sizeof(head),
		"HTTP/1.1 %d %s\r\nConnection: close\r\nCache-Control: no-store\r\n"
		"X-Content-Type-Options: nosniff\r\nContent-Type: application/octet-stream\r\n%s"
		"Content-Length: %llu\r\n\r\n",
		(int)reply, ours ? "OK" : "Refused",
		ours ? "Access-Control-Allow-Origin: " PERFETTO_PAGE "\r\nVary: Origin\r\n"
		       "Access-Control-Allow-Methods: GET\r\n"
		       "Access-Control-Allow-Private-Network: true\r\n"
		     : "",
		(unsigned long long)(reply == PERFETTO_GIVE ? bytes : 0));
	if (send(c, head, (size_t)n, MSG_NOSIGNAL) != n || reply != PERFETTO_GIVE)
		return false;
	return send_file(c, fd, bytes);
}

/* It closes when it has all of it: a reset would take away what is on its way. */
static void end_connection(int c, bool given)
{
	char rest[256];

	(void)shutdown(c, SHUT_WR);
	if (given && wait_until(c, POLLIN, clock_ms() + READER_S * 1000u))
		(void)recv(c, rest, sizeof(rest), MSG_DONTWAIT);
	(void)close(c);
}

int perfetto_give(
	int listener, int fd, uint64_t bytes, const char *token, uint32_t seconds, struct err *e)
{
	const uint64_t until_ms = clock_ms() + seconds * 1000ull;
	bool given = false;
	int c;

	while (!given && wait_until(listener, POLLIN, until_ms)) {
		c = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (c < 0)
			continue;
		given = answer(c, fd, bytes, token, until_ms);
		end_connection(c, given);
	}
	(void)close(listener);
	if (given)
		return 0;
	return err_set(e, -ETIMEDOUT,
		"Perfetto's page did not ask for it within %u s; open the address sooner, or "
		"`protonview export SOURCE -o run.pftrace` and drop the file there",
		seconds);
}
