/* SPDX-License-Identifier: MIT. ctl_fake.h: a daemon for the control socket's tests: the real
 * server, verbs and queries over rooms_fake.h. It runs on a thread of its own; the test is its
 * client. */
#ifndef CTL_FAKE_H
#define CTL_FAKE_H

#include "rooms_fake.h"
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "control.h"
#include "verbs.h"

static pthread_t fake_thread;
static uv_async_t fake_stop;

static void fake_on_stop(uv_async_t *a)
{
	control_free(fake.d.control);
	uv_close((uv_handle_t *)a, NULL);
	uv_close((uv_handle_t *)&fake.kick, NULL);
}

static void *fake_main(void *arg)
{
	(void)uv_run(&fake.d.loop, UV_RUN_DEFAULT);
	return arg;
}

/* verbs: the real ones, or broken ones. */
static void fake_start_with(verb_fn *const verbs[WIRE_VERB_MAX])
{
	struct err e;

	fake_open();
	(void)uv_async_init(&fake.d.loop, &fake_stop, fake_on_stop);
	ck_assert_msg(control_new(&fake.d, verbs, &fake.d.control, &e) == 0, "%s", e.text);
	ck_assert_int_eq(pthread_create(&fake_thread, NULL, fake_main, NULL), 0);
}

static inline void fake_start_daemon(void)
{
	fake_start_with(verb_table);
}

static inline void fake_stop_daemon(void)
{
	char path[128];

	(void)uv_async_send(&fake_stop);
	(void)pthread_join(fake_thread, NULL);
	(void)snprintf(path, sizeof(path), "%s/control.sock", fake.dir);
	ck_assert_int_lt(access(path, F_OK), 0);
	fake_close();
}

#endif
