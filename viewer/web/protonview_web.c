/* SPDX-License-Identifier: MIT. protonview_web.c: the verb web: the page, in a browser of this user. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "human.h"
#include "web_server.h"

#define PORT 8051

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
static void open_browser(const char *url, uv_process_t *child)
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
		(void)uv_spawn(web_server_loop(child->data), child, &o);
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

int view_web(struct run *run)
{
	struct web_server_options o = {.bind = run->o.value[OPT_BIND],
		.allow = run->o.value[OPT_ALLOW_HOST],
		.port = PORT,
		.port_fixed = run_given(run, OPT_PORT)};
	struct web_server *s = NULL;
	struct web *w = NULL;
	uv_process_t opener;
	int r = run_count(run, OPT_PORT, "port", &o.port);

	if (r == 0 && o.port > 65535)
		r = err_set(&run->e, -EINVAL, "--port %u: at most 65535", o.port);
	if (r == 0)
		r = web_new(run->o.value[OPT_DB], run->o.args, run->o.n_args, &w, &run->e);
	if (r == 0)
		r = web_server_new(w, &o, &s, &run->e);
	if (r == 0) {
		say_where(run, s, &o);
		opener.data = s;
		if (has_display() && !run_given(run, OPT_NO_OPEN) && web_server_port(s) != 0)
			open_browser(web_server_url(s), &opener);
		r = web_server_run(s, &run->e);
	}
	web_server_free(s);
	web_free(w);
	return r;
}
