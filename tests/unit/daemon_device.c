/* SPDX-License-Identifier: MIT. daemon_device.c: a helper that hangs, lies, or says more than the journal
 * takes costs readings and nothing else. The helper is this test's end of device.sock, the clock a number. */
#include "quick.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "config.h"
#include "daemon.h"
#include "device_link.h"
#include "device_msg.h"
#include "entry.h"
#include "fold.h"
#include "host_clock.h"

#define SECOND 1000000000ull

Suite *suite(void);

static struct daemon d;
static struct daemon_config config;
static struct device_link l;
static uint32_t put;
static int listening, put_error;
static uint64_t now;

void __wrap_fold_each_session(const struct fold *f, fold_session_fn *fn, void *arg);
void __wrap_fold_each_session(const struct fold *f, fold_session_fn *fn, void *arg)
{
	(void)f;
	fn(arg, &(struct fold_session){.state = SESSION_IS_ACTIVE, .n_live = 1});
}

int __wrap_entry_put(struct entries *s, uint16_t type, const uint8_t ring[16], const void *payload,
	uint32_t bytes);
int __wrap_entry_put(struct entries *s, uint16_t type, const uint8_t ring[16], const void *payload,
	uint32_t bytes)
{
	(void)s;
	(void)ring;
	(void)payload;
	ck_assert(type == J_DEVICE && bytes == sizeof(struct device_reading));
	put += put_error == 0;
	return put_error;
}

bool __wrap_entry_flush(struct entries *s);
bool __wrap_entry_flush(struct entries *s)
{
	(void)s;
	return true;
}

static void setup(void)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};

	d = (struct daemon){.config = &config};
	config = (struct daemon_config){.device_hz = 1};
	(void)snprintf(d.runtime, sizeof(d.runtime), "/tmp/protond-device-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(d.runtime));
	(void)snprintf(a.sun_path, sizeof(a.sun_path), "%.80s/device.sock", d.runtime);
	listening = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(bind(listening, (struct sockaddr *)&a, sizeof(a)), 0);
	ck_assert_int_eq(listen(listening, 8), 0);
	ck_assert_int_eq(uv_loop_init(&d.loop), 0);
	l = (struct device_link){.d = &d, .fd = -1};
	now = 1000 * SECOND;
	put = 0;
	put_error = 0;
}

static void teardown(void)
{
	char path[256];

	device_end(&l);
	(void)uv_run(&d.loop, UV_RUN_DEFAULT);
	ck_assert_int_eq(uv_loop_close(&d.loop), 0);
	(void)close(listening);
	(void)snprintf(path, sizeof(path), "%.80s/device.sock", d.runtime);
	(void)unlink(path);
	(void)rmdir(d.runtime);
}

static void look(uint64_t after_ns)
{
	now += after_ns;
	device_second(&l, now);
}

/* The daemon has come, and asks. */
static int come(void)
{
	const int fd = accept(listening, NULL, NULL);
	struct device_want w;

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(recv(fd, &w, sizeof(w), MSG_DONTWAIT), sizeof(w));
	ck_assert(w.head.magic == DEVICE_MAGIC && w.head.kind == DEVICE_WANT && w.hz == 1);
	return fd;
}

static bool is_let_go(int fd)
{
	char byte;

	return recv(fd, &byte, 1, MSG_DONTWAIT) == 0;
}

/* Nothing of the loop waits for it: the looks return, and after ten seconds it is let go. */
START_TEST(one_that_hangs)
{
	uint64_t wait = SECOND;
	uint32_t i;
	int fd;

	look(0);
	for (i = 0; i < DEVICE_TRIES; i++, wait *= 2) {
		fd = come();
		look(DEVICE_HANGS_NS);
		ck_assert(!is_let_go(fd));
		look(1);
		ck_assert(is_let_go(fd) && l.fd == -1 && l.tries == i + 1);
		(void)close(fd);
		look(wait - 1);
		ck_assert_int_eq(l.fd, -1); /* not yet again */
		look(1);
	}
	look(3600 * SECOND);
	ck_assert_int_eq(l.fd, -1); /* no more tries */
	ck_assert_uint_eq(d.readings_dropped + d.readings_refused + put, 0);
}
END_TEST

/* Its socket fills up while the daemon is busy: both ends go on. */
START_TEST(one_that_says_too_much_and_lies)
{
	struct device_reading r = {.head = {DEVICE_MAGIC, DEVICE_READING},
		.gpu = DEVICE_HOST,
		.begin_ns = 1,
		.end_ns = mono_ns()};
	uint32_t sent = 0;
	int fd;

	look(0);
	fd = come();
	while (send(fd, &r, sizeof(r), MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)sizeof(r))
		sent++;
	ck_assert_uint_gt(sent, 0);
	while (put < sent)
		(void)uv_run(&d.loop, UV_RUN_NOWAIT);
	ck_assert_uint_eq(put, sent);
	put_error = -ENOSPC;
	ck_assert_int_eq(send(fd, &r, sizeof(r), 0), sizeof(r));
	while (d.readings_dropped == 0)
		(void)uv_run(&d.loop, UV_RUN_NOWAIT);
	r.end_ns = UINT64_MAX; /* to come */
	ck_assert_int_eq(send(fd, &r, sizeof(r), 0), sizeof(r));
	ck_assert_int_eq(send(fd, "lies", 4, 0), 4);
	while (d.readings_refused < 2)
		(void)uv_run(&d.loop, UV_RUN_NOWAIT);
	ck_assert(put == sent && d.readings_dropped == 1 && l.fd >= 0);
	(void)close(fd);
	while (l.fd >= 0)
		(void)uv_run(&d.loop, UV_RUN_NOWAIT);
	ck_assert_uint_eq(l.tries, 1);
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("device link");
	TCase *c = tcase_create("device link");

	tcase_add_checked_fixture(c, setup, teardown);
	tcase_add_test(c, one_that_hangs);
	tcase_add_test(c, one_that_says_too_much_and_lies);
	suite_add_tcase(s, c);
	return s;
}
