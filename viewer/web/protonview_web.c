/* SPDX-License-Identifier: MIT. protonview_web.c: the verb web: the page, in a browser of this user. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "human.h"
#include "web_ask.h"
#include "web_guard.h"
#include "web_listen.h"
#include "web_perfetto.h"
#include "web_server.h"

#define PORT       8051
#define PERFETTO_S 120u

static bool has_display(void)
{
	const char *x = getenv("DISPLAY"), *wayland = getenv("WAYLAND_DISPLAY");

	return (x != NULL && *x != '\0') || (wayland != NULL && *wayland != '\0');
}

static void on_exit_of_opener(uv_process_t *p, int64_t status, int number)
{
	(void)status;
	(void)number;
	uv_close((uv_handle_t *)p, NULL);
}

/* The desktop's own way; whoever has none reads the address. */
static void open_browser(const char *url, uv_loop_t *loop, uv_process_t *child)
{
	char program[] = "xdg-open", *args[] = {program, strdup(url), NULL};
	uv_stdio_container_t none[3] = {
		{.flags = UV_IGNORE}, {.flags = UV_IGNORE}, {.flags = UV_IGNORE}};
	const uv_process_options_t o = {.file = program,
		.args = args,
		.exit_cb = on_exit_of_opener,
		.stdio = none,
		.stdio_count = 3};

	if (args[1] != NULL)
		(void)uv_spawn(loop, child, &o);
	free(args[1]);
}

static void say_where(
	struct run *run, const struct web_server *s, const struct web_server_options *o)
{
	const uint32_t port = web_server_port(s);
	char host[256] = "HOST";

	text_fmt(&run->out, "%s\n", web_server_url(s));
	(void)term_write(STDOUT_FILENO, run->out.s, run->out.n);
	run->out.n = 0;
	if (port == 0)
		return;
	if (port != o->port && o->port != 0)
		text_say("port %u is taken, so it is %u", o->port, port);
	if (o->bind != NULL && strncmp(o->bind, "127.", 4) != 0 && strcmp(o->bind, "::1") != 0)
		text_say("whoever reaches %s can try to get in, and reads along what goes by: "
			 "there is no "
			 "encryption; --bind 127.0.0.1 and ssh -L are safer",
			o->bind);
	else if (!has_display() && gethostname(host, sizeof(host) - 1) == 0)
		text_say("from another machine: ssh -L %u:127.0.0.1:%u %s, then open the address "
			 "there",
			port, port, host);
	text_say("Ctrl-C ends it");
}

/* --- --perfetto */

static int perfetto_file(struct run *run, struct web *w, struct web_answer *ret)
{
	struct web_ask *a = web_ask_new(w, web_shown(w, 0));
	int r;

	*ret = (struct web_answer){.fd = -1};
	if (a == NULL)
		return err_set(&run->e, -ENOMEM, "out of memory");
	a->to = ret;
	a->rest = "pftrace";
	r = web_export(a);
	run->e = a->run->e;
	web_ask_free(a);
	return r;
}

static void perfetto_open(struct run *run, const char *url)
{
	static uv_process_t opener; /* not waited for: some browsers are their own opener */
	static uv_loop_t loop;

	text_fmt(&run->out, "%s\n", url);
	(void)term_write(STDOUT_FILENO, run->out.s, run->out.n);
	run->out.n = 0;
	text_say("that page comes from the network; the timeline goes from this machine into the "
		 "browser on it, once, and to no "
		 "other machine. Waiting %u s for it; Ctrl-C ends it",
		PERFETTO_S);
	if (has_display() && !run_given(run, OPT_NO_OPEN) && uv_loop_init(&loop) == 0)
		open_browser(url, &loop, &opener);
}

/* One timeline, to Perfetto's own page. */
static int give_perfetto(struct run *run)
{
	struct web_listener l = {.port = PERFETTO_PORT, .port_fixed = true, .fd = -1};
	struct web_answer file = {.fd = -1};
	struct web *w = NULL;
	struct guard g;
	char url[160];
	int r;

	if (run->o.n_args != 1 || run_given(run, OPT_PORT) || run_given(run, OPT_BIND) ||
		run_given(run, OPT_ALLOW_HOST))
		return err_set(&run->e, -EINVAL,
			"--perfetto takes one SOURCE, and listens at 127.0.0.1 port %u, where that "
			"page may ask",
			PERFETTO_PORT);
	r = run_xla(run);
	if (r == 0)
		r = web_new(
			run->o.value[OPT_DB], run->xla, run->o.args, run->o.n_args, &w, &run->e);
	if (r == 0)
		r = perfetto_file(run, w, &file);
	if (r == 0)
		r = guard_init(&g, "127.0.0.1", NULL, PERFETTO_PORT, &run->e);
	if (r == 0)
		r = web_listen("127.0.0.1", 8, &l, &run->e);
	if (r == 0) {
		snprintf(url, sizeof(url), PERFETTO_PAGE "/#!/?url=http://127.0.0.1:%u/%s.pftrace",
			PERFETTO_PORT, g.token);
		perfetto_open(run, url);
		r = perfetto_give(l.fd, file.fd, file.fd_bytes, g.token, PERFETTO_S, &run->e);
	}
	web_answer_fini(&file);
	web_free(w);
	return r;
}

int view_web(struct run *run)
{
	struct web_server_options o = {.bind = run->o.value[OPT_BIND],
		.allow = run->o.value[OPT_ALLOW_HOST],
		.port = PORT,
		.port_fixed = run_given(run, OPT_PORT)};
	struct web_server *s = NULL;
	struct web *w = NULL;
	uv_process_t opener;
	int r;

	if (run_given(run, OPT_PERFETTO))
		return give_perfetto(run);
	r = run_count(run, OPT_PORT, "port", &o.port);
	if (r == 0 && o.port > 65535)
		r = err_set(&run->e, -EINVAL, "--port %u: at most 65535", o.port);
	if (r == 0)
		r = run_xla(run);
	if (r == 0)
		r = web_new(
			run->o.value[OPT_DB], run->xla, run->o.args, run->o.n_args, &w, &run->e);
	if (r == 0)
		r = web_server_new(w, &o, &s, &run->e);
	if (r == 0) {
		say_where(run, s, &o);
		if (has_display() && !run_given(run, OPT_NO_OPEN) && web_server_port(s) != 0)
			open_browser(web_server_url(s), web_server_loop(s), &opener);
		r = web_server_run(s, &run->e);
	}
	web_server_free(s);
	web_free(w);
	return r;
}
