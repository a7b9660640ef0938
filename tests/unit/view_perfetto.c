/* SPDX-License-Identifier: MIT. view_perfetto.c: who gets the timeline of `protonview web --perfetto`: whoever comes
 * from Perfetto's page with the token, once, and nobody else. */
#include "quick.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "web_listen.h"
#include "web_perfetto.h"

Suite *suite(void);

#define TOKEN  "0123456789abcdef0123456789abcdef"
#define HOST   "Host: 127.0.0.1:9001\r\n"
#define ORIGIN "Origin: https://ui.perfetto.dev\r\n"
#define GET    "GET /" TOKEN ".pftrace HTTP/1.1\r\n"

static const struct {
	const char *head;
	enum perfetto_reply reply;
} asked[] = {
	{GET HOST ORIGIN "\r\n", PERFETTO_GIVE},
	{GET "origin:  https://ui.perfetto.dev\r\nhost:127.0.0.1:9001\r\n\r\n", PERFETTO_GIVE},
	{"OPTIONS /" TOKEN ".pftrace HTTP/1.1\r\n" HOST ORIGIN "\r\n", PERFETTO_MAY},
	{"POST /" TOKEN ".pftrace HTTP/1.1\r\n" HOST ORIGIN "\r\n", PERFETTO_METHOD},
	{GET HOST "\r\n", PERFETTO_STRANGER},
	{GET HOST "Origin: null\r\n\r\n", PERFETTO_STRANGER},
	{GET HOST "Origin: https://ui.perfetto.dev.evil.example\r\n\r\n", PERFETTO_STRANGER},
	{GET HOST "Origin: http://ui.perfetto.dev\r\n\r\n", PERFETTO_STRANGER},
	{GET "Host: evil.example:9001\r\n" ORIGIN "\r\n", PERFETTO_NAME},
	{GET ORIGIN "\r\n", PERFETTO_NAME},
	{"GET /0123456789abcdef0123456789abcdee.pftrace HTTP/1.1\r\n" HOST ORIGIN "\r\n",
		PERFETTO_NOTHING},
	{"GET /" TOKEN " HTTP/1.1\r\n" HOST ORIGIN "\r\n", PERFETTO_NOTHING},
	{"GET /" TOKEN ".pftrace.x HTTP/1.1\r\n" HOST ORIGIN "\r\n", PERFETTO_NOTHING},
	{"GET / HTTP/1.1\r\n" HOST ORIGIN "\r\n", PERFETTO_NOTHING},
	{"GET\r\n" HOST ORIGIN "\r\n", PERFETTO_NOTHING},
	{"", PERFETTO_NAME},
	{"\n\n:\n", PERFETTO_NAME},
};

START_TEST(who)
{
	ck_assert_msg(
		perfetto_reply_to(asked[_i].head, TOKEN) == asked[_i].reply, "%s", asked[_i].head);
}
END_TEST

#define FILE_BYTES (1u << 20)

static int ask(uint32_t port, const char *head)
{
	const struct sockaddr_in a = {.sin_family = AF_INET,
		.sin_port = htons((uint16_t)port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const int c = socket(AF_INET, SOCK_STREAM, 0);

	ck_assert_int_eq(connect(c, (const struct sockaddr *)&a, sizeof(a)), 0);
	ck_assert_int_eq(send(c, head, strlen(head), 0), (ssize_t)strlen(head));
	return c;
}

/* What it was answered; n: how much of it came. */
static void answered(int c, char *to, size_t room, size_t *ret_n)
{
	ssize_t got = 1;

	for (*ret_n = 0; got > 0 && *ret_n<room - 1; *ret_n += got> 0 ? (size_t)got : 0)
		got = recv(c, to + *ret_n, room - 1 - *ret_n, 0);
	to[*ret_n] = '\0';
	(void)close(c);
}

/* Those who wait in line are asked one after the other: a stranger, then the page, which ends it. */
START_TEST(once)
{
	static char got[FILE_BYTES + 4096];
	struct web_listener l = {.port = 0};
	struct err e = {0};
	int fd, stranger, page, late, child, pipes[2];
	const char *body;
	size_t n;

	fd = memfd_create("timeline", 0);
	ck_assert(fd >= 0 && ftruncate(fd, FILE_BYTES) == 0 &&
		  pwrite(fd, "end", 3, FILE_BYTES - 3) == 3);
	ck_assert_int_eq(web_listen("127.0.0.1", 8, &l, &e), 0);
	stranger = ask(l.port, GET HOST "Origin: https://evil.example\r\n\r\n");
	page = ask(l.port, GET HOST ORIGIN "\r\n");
	ck_assert_int_eq(pipe(pipes), 0);
	child = fork();
	if (child == 0) {
		(void)close(stranger);
		(void)close(page);
		const char done =
			perfetto_give(l.fd, fd, FILE_BYTES, TOKEN, 60, &e) == 0 ? 'y' : 'n';

		_exit(write(pipes[1], &done, 1) != 1);
	}
	(void)close(l.fd);
	answered(stranger, got, sizeof(got), &n);
	ck_assert(strncmp(got, "HTTP/1.1 403 ", 13) == 0 && strstr(got, "Allow-Origin") == NULL);
	answered(page, got, sizeof(got), &n);
	ck_assert(strncmp(got, "HTTP/1.1 200 ", 13) == 0);
	ck_assert(strstr(got, "\r\nAccess-Control-Allow-Origin: https://ui.perfetto.dev\r\n") !=
		  NULL);
	body = strstr(got, "\r\n\r\n");
	ck_assert(body != NULL && n - (size_t)(body + 4 - got) == FILE_BYTES);
	ck_assert_mem_eq(got + n - 3, "end", 3);
	ck_assert(read(pipes[0], got, 1) == 1 && got[0] == 'y');
	late = socket(AF_INET, SOCK_STREAM, 0);
	ck_assert_int_lt(
		connect(late,
			(const struct sockaddr *)&(struct sockaddr_in){.sin_family = AF_INET,
				.sin_port = htons((uint16_t)l.port),
				.sin_addr.s_addr = htonl(INADDR_LOOPBACK)},
			sizeof(struct sockaddr_in)),
		0);
	(void)close(late);
}
END_TEST

START_TEST(nobody)
{
	struct web_listener l = {.port = 0};
	struct err e = {0};

	ck_assert_int_eq(web_listen("127.0.0.1", 8, &l, &e), 0);
	ck_assert_int_eq(perfetto_give(l.fd, -1, 0, TOKEN, 0, &e), -ETIMEDOUT);
	ck_assert(strstr(e.text, "protonview export") != NULL);
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("perfetto");
	TCase *c = tcase_create("perfetto");

	tcase_add_loop_test(c, who, 0, sizeof(asked) / sizeof(*asked));
	tcase_add_test(c, once);
	tcase_add_test(c, nobody);
	suite_add_tcase(s, c);
	return s;
}
