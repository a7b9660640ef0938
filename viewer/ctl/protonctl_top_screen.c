/* SPDX-License-Identifier: MIT. protonctl_top_screen.c: top on a whole screen: asks the daemon twice a
 * second, takes keys. Nothing of it reaches a job or its GPU. */
#include "protonctl_top_screen.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "protonctl_answer.h"
#include "protonctl_call.h"
#include "protonctl_self.h"
#include "protonctl_top_state.h"
#include "tool_verbs.h"

static _Atomic int ended; /* by this signal */

static void on_end(int sig)
{
	ended = sig;
}

/* --- asking */

static void forget_looks(struct screen *s)
{
	while (s->n_looks > 0)
		look_free(&s->look[--s->n_looks]);
	s->n_trend = 0;
	top_rows_free(&s->rows);
}

static void look_keep(struct screen *s, const struct look *l)
{
	const struct look *last = newest(s);
	uint64_t steps;

	if (last != NULL && last->id != l->id)
		forget_looks(s);
	last = newest(s);
	if (last != NULL && look_steps(last, l, &steps) && look_seconds(last, l) > 0) {
		if (s->n_trend == TREND)
			memmove(s->trend, s->trend + 1, --s->n_trend * sizeof(*s->trend));
		s->trend[s->n_trend++] = (double)steps / look_seconds(last, l);
	}
	while (s->n_looks == LOOKS || (s->n_looks > 1 && l->now_ns > s->look[1].now_ns &&
					      l->now_ns - s->look[1].now_ns >= WINDOW_NS)) {
		look_free(&s->look[0]);
		memmove(s->look, s->look + 1, --s->n_looks * sizeof(*s->look));
	}
	s->look[s->n_looks++] = *l;
}

static void say(struct screen *s, bool bad, const char *words)
{
	snprintf(s->words, sizeof(s->words), "%s", words);
	s->bad = bad;
}

static int make_rows(struct screen *s)
{
	top_rows_free(&s->rows);
	if (newest(s) == NULL)
		return 0;
	if (!s->sorted) /* until the user says by what */
		s->view.sort = look_has_gpu(newest(s)) ? TOP_BY_GPU : TOP_BY_CPU;
	return top_rows_new(oldest(s), newest(s), &s->view, &s->rows);
}

/* One look. -errno: that ends the screen. */
static int ask(struct screen *s)
{
	struct wire_buf *b = rpc_begin(s->rpc, "top");
	struct rpc_reply r = {.fd = -1};
	struct look l;
	int code;

	if (s->session[0] != '\0')
		wire_kv_str(b, "session", s->session);
	wire_kv_u64(b, "n", LOOK_CELLS);
	wire_kv_bool(b, "detail", true);
	if (s->pid != 0)
		wire_kv_u64(b, "pid", s->pid);
	if (s->of_device)
		wire_kv_bin(b, "device", s->device, sizeof(s->device));
	code = ctl_call(s->c, s->rpc, &r);
	if (code == -ENOENT || code == -EALREADY) { /* it is over: what was seen stays */
		say(s, true, s->c->err.text);
		return newest(s) == NULL ? code : 0;
	}
	if (code == 0 && (answer_names(s->names, r.result) < 0 || names_demangle(s->names) < 0 ||
				 look_take(r.result, &l) < 0))
		code = err_set(&s->c->err, -ENOMEM, "out of memory");
	if (code == 0) {
		look_keep(s, &l);
		if (strcmp(l.state, "finalized") == 0 && s->words[0] == '\0')
			say(s, false, "this session is over; n shows the next one that goes on");
		snprintf(s->session, sizeof(s->session), "%ld", l.id);
		if (make_rows(s) < 0)
			code = err_set(&s->c->err, -ENOMEM, "out of memory");
	}
	rpc_reply_free(&r);
	return code;
}

/* --- other sessions, jobs, devices */

static bool is_live(const msgpack_object *session)
{
	char state[16];

	wire_text(session, "state", state, sizeof(state));
	return strcmp(state, "active") == 0 || strcmp(state, "inactive") == 0 ||
	       strcmp(state, "finalizing") == 0;
}

/* The live one behind this one, which the list has newest first; behind the last the first. */
static void next_session(struct screen *s)
{
	const int64_t now = newest(s) != NULL ? newest(s)->id : 0;
	const msgpack_object *list = NULL;
	struct rpc_reply r = {.fd = -1};
	int64_t first = 0, next = 0, id;
	bool passed = false;
	uint32_t i, n;

	(void)rpc_begin(s->rpc, "sessions");
	if (ctl_call(s->c, s->rpc, &r) < 0) {
		say(s, true, s->c->err.text);
		return;
	}
	n = answer_items(r.result, "sessions", &list);
	for (i = 0; i < n; i++) {
		id = wire_i64_or(&list[i], "id", 0);
		if (is_live(&list[i]) && first == 0)
			first = id;
		if (is_live(&list[i]) && passed && next == 0)
			next = id;
		passed |= id == now;
	}
	rpc_reply_free(&r);
	next = next != 0 ? next : first;
	if (next == 0 || next == now) {
		say(s, false, "no other session is live");
		return;
	}
	forget_looks(s);
	s->pid = 0;
	s->of_device = false;
	s->at = 0;
	snprintf(s->session, sizeof(s->session), "%ld", next);
}

static void next_job(struct screen *s)
{
	const struct look *l = newest(s);
	uint32_t i, next = 0;

	for (i = 0; l != NULL && i < l->n_jobs; i++)
		if (l->job[i].pid == s->pid)
			next = i + 1;
	if (l == NULL || l->n_jobs < 2) {
		say(s, false, "this session has no other job");
		return;
	}
	s->pid = next < l->n_jobs ? l->job[next].pid : 0;
	forget_looks(s);
}

static void next_device(struct screen *s)
{
	const struct look *l = newest(s);
	uint32_t i, next = 0;

	for (i = 0; l != NULL && s->of_device && i < l->n_devices; i++)
		if (memcmp(l->device[i].uuid, s->device, sizeof(s->device)) == 0)
			next = i + 1;
	while (l != NULL && next < l->n_devices && !l->device[next].known)
		next++;
	if (l == NULL || l->n_devices == 0) {
		say(s, false, "no GPU work was recorded in this session");
		return;
	}
	s->of_device = next < l->n_devices;
	if (s->of_device)
		memcpy(s->device, l->device[next].uuid, sizeof(s->device));
	forget_looks(s);
}

/* --- a report */

/* Runs it without a word on the screen. Its last words; "": none. */
static bool run_quietly(const char *path, char *const *argv, char *ret, size_t n)
{
	posix_spawn_file_actions_t actions;
	ssize_t got = 0, more = 1;
	int to[2], status = -1;
	pid_t pid;

	*ret = '\0';
	if (pipe2(to, O_CLOEXEC) < 0)
		return false;
	if (posix_spawn_file_actions_init(&actions) == 0) {
		(void)posix_spawn_file_actions_addopen(
			&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
		(void)posix_spawn_file_actions_adddup2(&actions, to[1], STDOUT_FILENO);
		(void)posix_spawn_file_actions_adddup2(&actions, to[1], STDERR_FILENO);
		if (posix_spawn(&pid, path, &actions, NULL, argv, environ) != 0)
			pid = -1;
		(void)posix_spawn_file_actions_destroy(&actions);
		(void)close(to[1]);
		while (pid > 0 && more > 0 && (size_t)got < n - 1) {
			more = read(to[0], ret + got, n - 1 - (size_t)got);
			got += more > 0 ? more : 0;
		}
		ret[got] = '\0';
		(void)close(to[0]);
		if (pid > 0)
			(void)waitpid(pid, &status, 0);
	}
	ret[strcspn(ret, "\n")] = '\0';
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void write_report(struct screen *s)
{
	const struct look *l = newest(s);
	char path[4096], id[24], file[64], words[256], said[400];
	char *const argv[] = {
		(char[]){"protonview"}, (char[]){"report"}, id, (char[]){"-o"}, file, NULL};

	if (l == NULL)
		return;
	if (!verbs_have(verbs_of_view, "report")) {
		snprintf(said, sizeof(said),
			"this protonview writes no reports; `protonview tree %ld` shows the "
			"session",
			l->id);
		say(s, true, said);
		return;
	}
	snprintf(id, sizeof(id), "%ld", l->id);
	snprintf(file, sizeof(file), "session-%ld.html", l->id);
	if (self_find("protonview", path, sizeof(path)) < 0) {
		say(s, true, "there is no protonview beside protonctl to write a report");
		return;
	}
	(void)unsetenv("PROTOND_DB"); /* the daemon's own, whatever it says */
	if (run_quietly(path, argv, words, sizeof(words)))
		snprintf(said, sizeof(said), "written to %s", file);
	else
		snprintf(said, sizeof(said), "%s was not written: %s", file, words);
	say(s, strncmp(said, "written", 7) != 0, said);
}

/* --- keys */

static void choose(struct screen *s, int64_t at)
{
	const int64_t last = s->rows.n > 0 ? (int64_t)s->rows.n - 1 : 0;

	s->at = (uint32_t)(at < 0 ? 0 : at > last ? last : at);
	s->at_key = s->rows.n > 0 ? s->rows.row[s->at].key : 0;
}

static void move_choice(struct screen *s, int key)
{
	const int page = LINES > 6 ? LINES - 5 : 1;

	if (key == KEY_UP || key == 'k')
		choose(s, (int64_t)s->at - 1);
	else if (key == KEY_DOWN || key == 'j')
		choose(s, (int64_t)s->at + 1);
	else if (key == KEY_PPAGE)
		choose(s, (int64_t)s->at - page);
	else if (key == KEY_NPAGE)
		choose(s, (int64_t)s->at + page);
	else if (key == KEY_HOME)
		choose(s, 0);
	else if (key == KEY_END)
		choose(s, INT64_MAX);
}

static void open_row(struct screen *s, int key)
{
	const struct top_row *row = s->rows.n > 0 ? &s->rows.row[s->at] : NULL;

	if (row == NULL || !s->view.tree || !row->has_children ||
		(key == KEY_LEFT && !row->is_open) || (key == KEY_RIGHT && row->is_open))
		return;
	s->at_key = row->key;
	if (!top_toggle(&s->view, row->key))
		say(s, true, "no more names can be opened by hand; E opens all");
}

static void type_key(struct screen *s, int key)
{
	const size_t n = strlen(s->typed);

	if (key == '\n' || key == '\r' || key == KEY_ENTER) {
		memcpy(s->view.filter, s->typed, sizeof(s->view.filter));
		s->typing = false;
		s->at_key = 0;
		s->at = s->first = 0;
	} else if (key == 27) {
		s->typing = false;
	} else if ((key == KEY_BACKSPACE || key == 127 || key == 8) && n > 0) {
		s->typed[text_cut(s->typed, n - 1)] = '\0';
	} else if (key >= 32 && key < 256 && key != 127 && n + 1 < sizeof(s->typed)) {
		s->typed[n] = (char)key;
		s->typed[n + 1] = '\0';
	}
}

static void switch_view(struct screen *s, bool all)
{
	if (all)
		s->view.all_open = !s->view.tree || !s->view.all_open;
	s->view.tree = all || !s->view.tree;
	if (all)
		s->view.n_toggled = 0;
	s->at_key = 0;
	s->at = s->first = 0;
}

static void next_sort(struct screen *s, uint32_t by)
{
	s->view.sort = (enum top_sort)((s->view.sort + by) % TOP_SORTS);
	s->sorted = true;
}

static void take_key(struct screen *s, int key)
{
	s->words[0] = '\0';
	if (s->typing) {
		type_key(s, key);
		return;
	}
	if (s->help) {
		s->help = false;
		return;
	}
	if (key == 'q')
		s->ends = true;
	else if (key == '?' || key == 'h')
		s->help = true;
	else if (key == 's' || key == 'S')
		next_sort(s, key == 's' ? 1 : TOP_SORTS - 1);
	else if (key == 'e' || key == 'E')
		switch_view(s, key == 'E');
	else if (key == 'p' || key == ' ')
		s->paused = !s->paused;
	else if (key == 'r')
		next_job(s);
	else if (key == 'd')
		next_device(s);
	else if (key == 'n')
		next_session(s);
	else if (key == 'w')
		write_report(s);
	else if (key == '\n' || key == '\r' || key == KEY_ENTER || key == KEY_LEFT ||
		 key == KEY_RIGHT)
		open_row(s, key);
	else
		move_choice(s, key);
	if (key == '/') {
		s->typing = true;
		memcpy(s->typed, s->view.filter, sizeof(s->typed));
	}
}

/* --- the loop */

static bool begin(struct screen *s)
{
	struct sigaction end = {.sa_handler = on_end};
	SCREEN *made;

	(void)sigaction(SIGINT, &end, NULL); /* before curses puts its own there */
	(void)sigaction(SIGTERM, &end, NULL);
	(void)sigaction(SIGHUP, &end, NULL);
	made = newterm(NULL, stdout, stdin);
	if (made == NULL)
		return false;
	(void)set_term(made);
	(void)cbreak();
	(void)noecho();
	(void)keypad(stdscr, TRUE);
	(void)nodelay(stdscr, TRUE);
	(void)set_escdelay(50);
	(void)curs_set(0);
	if (has_color(s)) {
		(void)start_color();
		(void)use_default_colors();
		(void)init_pair(1, COLOR_RED, -1);
	}
	return true;
}

static uint64_t now_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* Waits for keys, for a look's time, or for the daemon's end. */
static int loop(struct screen *s, uint64_t every_ms)
{
	struct pollfd p[2] = {
		{.fd = STDIN_FILENO, .events = POLLIN}, {.fd = rpc_fd(s->rpc), .events = POLLIN}};
	uint64_t next = now_ms() + every_ms, now;
	bool asks;
	int key, code = 0;

	while (code == 0 && !s->ends && ended == 0) {
		top_draw(s);
		now = now_ms();
		(void)poll(p, 2, next > now ? (int)(next - now) : 0);
		asks = (p[0].revents & (POLLHUP | POLLERR)) != 0;
		s->ends |= asks; /* the terminal has gone */
		while (!asks && (key = getch()) != ERR) {
			const uint32_t had = s->n_looks;

			if (key == KEY_RESIZE)
				continue;
			take_key(s, key);
			asks |= had > 0 && s->n_looks == 0; /* of another session, job, device */
			code = code == 0 && make_rows(s) < 0
				       ? err_set(&s->c->err, -ENOMEM, "out of memory")
				       : code;
		}
		if (code == 0 && !s->ends &&
			(asks || (p[1].revents != 0) || (now_ms() >= next && !s->paused)))
			code = ask(s);
		if (now_ms() >= next)
			next = now_ms() + every_ms;
	}
	return code;
}

int top_screen(struct ctl *c, struct rpc *rpc, const char *session, double interval_s)
{
	struct screen *s = calloc(1, sizeof(*s));
	int code;

	if (s == NULL || names_new(false, &s->names) < 0) {
		free(s);
		return err_set(&c->err, -ENOMEM, "out of memory");
	}
	s->c = c;
	s->rpc = rpc;
	s->term = c->term;
	s->term.color = false; /* curses does that */
	snprintf(s->session, sizeof(s->session), "%s", session != NULL ? session : "");
	code = ask(s); /* what fails at once is said on the plain screen */
	if (code == 0 && !begin(s))
		code = 1;
	if (code == 0) {
		code = loop(s, (uint64_t)(interval_s * 1e3));
		(void)endwin();
	}
	forget_looks(s);
	free(s->view.toggled);
	names_free(s->names);
	free(s);
	if (ended == SIGTERM || ended == SIGHUP) { /* the shell is to see it */
		(void)signal(ended, SIG_DFL);
		(void)raise(ended);
	}
	return code;
}
