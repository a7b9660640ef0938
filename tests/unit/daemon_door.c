/* SPDX-License-Identifier: MIT. daemon_door.c: who stands before the daemon's sockets while it does
 * not look: it does not end for want of them, and those that come after keep none of them waiting.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <check.h>

#include "config.h"
#include "conn.h"
#include "home.h"
#include "host_clock.h"
#include "idle.h"
#include "intake.h"
#include "log.h"
#include "loop.h"
#include "rendezvous.h"
#include "store.h"
#include "verbs.h"

#define SECOND_NS 1000000000ull
#define MANY      400 /* more than are accepted at once */

static char dir[64];
static struct protond p;

static void setup(void)
{
	struct err e = {0};
	char db[128];

	(void)snprintf(dir, sizeof(dir), "/dev/shm/protond-door-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	(void)snprintf(db, sizeof(db), "%s/p.db", dir);
	(void)setenv("PROTOND_RUNTIME_DIR", dir, 1);
	(void)setenv("PROTOND_DB", db, 1);
	log_set_level(LOG_ERR);
	protond_bind(&p);
	p.d.private = true;
	p.d.verbs = verb_table;
	ck_assert_msg(config_load(&p.config, NULL, true, &e) == 0 && home_open(&p.d, &e) == 0 &&
			      protond_init(&p, &e) == 0,
		"%s", e.text);
	while (store_queued(p.d.store) != 0)
		(void)uv_run(&p.d.loop, UV_RUN_ONCE);
}

static void teardown(void)
{
	char command[96];

	protond_fini(&p);
	(void)snprintf(command, sizeof(command), "rm -r %s", dir);
	ck_assert_int_eq(system(command), 0);
}

static int knock(const char *name, int type)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	const int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	ck_assert_int_ge(fd, 0);
	(void)snprintf(a.sun_path, sizeof(a.sun_path), "%s/%s", dir, name);
	ck_assert_int_eq(connect(fd, (const struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

START_TEST(a_daemon_that_slept_does_not_end_before_it_looks)
{
	const char *const name[] = {RV_AGENT_SOCK, RV_CONTROL_SOCK};
	const int type[] = {SOCK_SEQPACKET, SOCK_STREAM};
	const uint64_t now = mono_ns();
	int fd;

	p.d.idle_exit_s = 60;
	p.idle_since_ns = now - 61 * SECOND_NS;
	fd = knock(name[_i], type[_i]);
	ck_assert(!idle_is_over(&p, now));
	ck_assert(!idle_is_over(&p, now + 61 * SECOND_NS));
	(void)close(fd);
}
END_TEST

START_TEST(a_daemon_that_nobody_wants_ends)
{
	const uint64_t now = mono_ns();

	p.d.idle_exit_s = 60;
	ck_assert(!idle_is_over(&p, now));
	ck_assert(!idle_is_over(&p, now + 59 * SECOND_NS));
	ck_assert(idle_is_over(&p, now + 60 * SECOND_NS));
	p.d.idle_exit_s = 0;
	ck_assert(!idle_is_over(&p, now + 3600 * SECOND_NS));
}
END_TEST

/* The queue is never empty; of those who are accepted only the number is not real. */
START_TEST(who_connects_without_end_hides_nobody)
{
	struct intake *in = p.d.intake;
	const uint64_t first = mono_ns();
	int fd[MANY], i;

	for (i = 0; i < MANY; i++)
		fd[i] = knock(RV_AGENT_SOCK, SOCK_SEQPACKET);
	for (i = 0; i < 2; i++) {
		ck_assert(!intake_is_clear(in, mono_ns()));
		ck_assert(!intake_was_clear(in, first));
		in->serial += 1u << 16;
	}
	intake_hear(in);
	ck_assert(intake_was_clear(in, first));
	ck_assert(!intake_was_clear(in, mono_ns()));
	for (i = 0; i < MANY; i++)
		(void)close(fd[i]);
}
END_TEST

Suite *suite(void);

Suite *suite(void)
{
	Suite *s = suite_create("daemon_door");
	TCase *t = tcase_create("door");

	suite_add_tcase(s, t);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, a_daemon_that_slept_does_not_end_before_it_looks, 0, 2);
	tcase_add_test(t, a_daemon_that_nobody_wants_ends);
	tcase_add_test(t, who_connects_without_end_hides_nobody);
	return s;
}
