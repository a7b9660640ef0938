/* SPDX-License-Identifier: MIT. fuzz_args.c: any words behind protonctl and protonview. They are
 * understood, or refused in words with the exit status of wrong usage.
 *
 * The input is words that end in NUL; its first byte says whose they are. A word of one byte above
 * 127 stands for one of the program's own: no execution is spent on spelling. protonview shows a
 * small file whatever source is named; commands of protonctl that ask a daemon find none, and those
 * that start a program or look at the machine are parsed and not run. */
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "pick.h"
#include "protonctl_file.h"
#include "protonctl_help.h"
#include "protonctl_session.h"
#include "protonctl_table.h"
#include "protonview_options.h"
#include "protonview_run.h"

#define MUST(e)   ((e) ? (void)0 : (void)(fprintf(stderr, "not true: %s\n", #e), abort()))
#define WORDS_MAX 24
#define OWN_MAX   128

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

struct words {
	int n;
	char *v[WORDS_MAX + 2]; /* the program's name first, NULL last */
	char text[8192];
};

static const struct view_option {
	const char *name, *argument;
} view_options[] = {
#define X(id, letter, name, argument, verbs, help) {name, argument},
	OPTIONS(X)
#undef X
};
static const char *const view_verbs[] = {
#define X(name, min, max, args, help) #name,
	VIEW_VERBS(X)
#undef X
};
static const char *const values[] = {"time/ms,util", "count", "time/%", "tflop16/s", "1%", "0.5",
	"[a-f].*", "(a+)+$", "function_line", "hatchet", "chrome_trace", "value", "man", "--",
	"30d", "2G", "@last", "bash", "zsh", "on", "rank%q{RANK}%h%p%%"};
#define N(a) (sizeof(a) / sizeof((a)[0]))

static char own_text[2][OWN_MAX][32]; /* of protonctl, of protonview */
static char source[40];

/* --- words */

static void own_add(char own[OWN_MAX][32], const char *dashes, const char *word)
{
	size_t i = 0;

	while (i < OWN_MAX && own[i][0] != '\0')
		i++;
	if (word != NULL && i < OWN_MAX)
		(void)snprintf(own[i], sizeof(own[i]), "%s%s", dashes, word);
}

static void own_make(void)
{
	const struct option_def *o;
	size_t i;

	for (i = 0; commands[i] != NULL; i++) {
		own_add(own_text[0], "", commands[i]->name);
		own_add(own_text[0], "", commands[i]->alias);
		for (o = commands[i]->options; o->name != NULL; o++)
			own_add(own_text[0], "--", o->name);
	}
	own_add(own_text[0], "--", "help");
	own_add(own_text[0], "--", "json");
	for (i = 0; i < N(view_verbs); i++)
		own_add(own_text[1], "", view_verbs[i]);
	for (i = 0; i < N(view_options); i++)
		own_add(own_text[1], "--", view_options[i].name);
	for (i = 0; i < N(values); i++) {
		own_add(own_text[0], "", values[i]);
		own_add(own_text[1], "", values[i]);
	}
}

static bool word_add(struct words *w, const char *word, size_t bytes)
{
	const size_t used =
		w->n == 0 ? 0 : (size_t)(w->v[w->n - 1] - w->text) + strlen(w->v[w->n - 1]) + 1;

	if (w->n > WORDS_MAX || used + bytes + 1 > sizeof(w->text))
		return false;
	w->v[w->n++] = memcpy(w->text + used, word, bytes);
	w->text[used + bytes] = '\0';
	w->v[w->n] = NULL;
	return true;
}

static void words_read(struct words *w, const uint8_t *p, size_t n, char own[OWN_MAX][32])
{
	const uint8_t *end = p + n, *stop;
	const char *word;
	size_t bytes;

	w->n = 0;
	MUST(word_add(w, "program", 7));
	for (; p < end; p = stop + 1) {
		stop = memchr(p, '\0', (size_t)(end - p));
		stop = stop != NULL ? stop : end;
		bytes = (size_t)(stop - p);
		word = bytes == 1 && *p >= 128 ? own[*p - 128] : (const char *)p;
		if (!word_add(w, word, word != (const char *)p ? strlen(word) : bytes))
			return;
	}
}

/* What an earlier line left of getopt's. */
static void getopt_anew(void)
{
	static char name[] = "x";
	char *argv[] = {name, NULL};

	optind = 0;
	(void)getopt(1, argv, "");
}

/* --- protonview */

/* The same options with a source that is there; what would be written goes to standard output. */
static void view_run(const struct options *o)
{
	static struct words w;
	char word[4200];
	int i, n;

	w.n = 0;
	(void)word_add(&w, "protonview", 10);
	(void)word_add(&w, view_verbs[o->verb], strlen(view_verbs[o->verb]));
	for (i = 0; i < OPT_MAX; i++) {
		const char *value = o->value[i];

		if (value == NULL || i == OPT_DB)
			continue;
		value = i == OPT_OUTPUT ? "-" : i == OPT_DIFF_PROFILE ? source : value;
		n = snprintf(word, sizeof(word), "--%s%s%s", view_options[i].name,
			view_options[i].argument != NULL ? "=" : "",
			view_options[i].argument != NULL ? value : "");
		if (!word_add(&w, word, (size_t)n < sizeof(word) ? (size_t)n : sizeof(word) - 1))
			return;
	}
	for (i = 0; i < o->n_args; i++)
		if (!word_add(&w, o->verb == VERB_help ? o->args[i] : source,
			    strlen(o->verb == VERB_help ? o->args[i] : source)))
			return;
	/* Its own place, a file, a server. */
	if (o->verb == VERB_sessions || o->verb == VERB_recover || o->verb == VERB_web)
		return;
	i = protonview_run(w.n, w.v);
	MUST(i >= EXIT_OK && i <= EXIT_PARTIAL);
}

static void view(const uint8_t *p, size_t n)
{
	static struct words w, again;
	struct options o;
	struct err e = {0};
	int r, i;

	words_read(&w, p, n, own_text[1]);
	words_read(&again, p, n, own_text[1]);
	if (w.n > 3 && strcmp(w.v[1], "__complete") == 0) {
		MUST(protonview_run(w.n, w.v) == EXIT_OK);
		return;
	}
	r = options_parse(w.n, w.v, &o, &e);
	MUST(r == e.code && (r == 0 || (r == -EINVAL && e.text[0] != '\0')));
	if (r < 0) {
		MUST(protonview_run(again.n, again.v) == EXIT_USAGE);
		return;
	}
	MUST(o.n_args >= 0 && o.n_args < again.n);
	for (i = 0; i < o.n_args; i++)
		MUST(o.args[i] >= w.text && o.args[i] < w.text + sizeof(w.text));
	view_run(&o);
}

/* --- protonctl */

static bool may_run(const struct command *c)
{
	static const char *const harmless[] = {"stop", "activate", "finalize", "pause", "resume",
		"sessions", "jobs", "where", "top", "status", "delete", "prune", "start", "help",
		"completion", "__complete"};
	size_t i;

	for (i = 0; i < N(harmless); i++)
		if (strcmp(harmless[i], c->name) == 0)
			return true;
	return false;
}

/* What run and start make of their options. */
static void session_words(struct ctl *c)
{
	const char *name = ctl_option(c, "name");
	struct wire_buf b;
	struct err e = {0};
	char text[128];
	int r;

	wire_buf_init(&b, WIRE_FRAME_MAX);
	wire_map(&b);
	session_params(c, &b);
	wire_close(&b);
	wire_buf_free(&b);
	if (name == NULL)
		return;
	r = expand_name(name, 4711, text, sizeof(text), &e);
	MUST(r == e.code && (r == 0 ? strlen(text) < sizeof(text) : e.text[0] != '\0'));
}

static void ctl(const uint8_t *p, size_t n)
{
	static struct words w;
	static struct ctl c;
	int r;

	words_read(&w, p, n, own_text[0]);
	c = (struct ctl){.table = commands, .cmd = w.n > 1 ? command_find(commands, w.v[1]) : NULL};
	if (c.cmd == NULL) {
		if (w.n > 1)
			help_unknown(stderr, w.n, w.v);
		return;
	}
	getopt_anew();
	r = ctl_parse(&c, w.n - 1, w.v + 1);
	MUST(r == CTL_GO || r == CTL_HELP || r == (c.cmd->passes ? CTL_RUN_FAILED : CTL_USAGE));
	if (r != CTL_GO)
		return;
	MUST(c.argc >= c.cmd->min && (c.cmd->max < 0 || c.argc <= c.cmd->max));
	if (strcmp(c.cmd->name, "run") == 0 || strcmp(c.cmd->name, "start") == 0)
		session_words(&c);
	if (may_run(c.cmd)) {
		r = c.cmd->run(&c);
		MUST(r >= CTL_OK && r <= CTL_UNREACHABLE);
	}
}

/* --- */

static void source_make(void)
{
	static const char text[] =
		"[{\"frame\":{\"name\":\"ROOT\",\"type\":\"function\"},\"metrics\":{\"time "
		"(ns)\":0},"
		"\"children\":[{\"frame\":{\"name\":\"/a/b.py:12@f\",\"type\":\"function\"},"
		"\"metrics\":{\"time (ns)\":5,\"count\":2,\"flops8\":1e9,\"device_id\":\"0\","
		"\"device_type\":\"CUDA\"},\"children\":[]}]},{\"CUDA\":{\"0\":{\"arch\":\"90\","
		"\"bus_width\":6144,\"clock_rate\":1980000,\"memory_clock_rate\":3201000,"
		"\"num_sms\":132}}}]";
	const int fd = memfd_create("source", MFD_CLOEXEC);

	MUST(fd >= 0 && write(fd, text, sizeof(text) - 1) == (ssize_t)sizeof(text) - 1);
	(void)snprintf(source, sizeof(source), "/proc/self/fd/%d", fd);
}

/* What the programs print goes nowhere; libFuzzer has its own hold of standard error. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);

	(void)argc;
	(void)argv;
	MUST(nowhere >= 0 && dup2(nowhere, STDOUT_FILENO) == STDOUT_FILENO);
	stderr = fdopen(nowhere, "w");
	MUST(stderr != NULL && clearenv() == 0);
	MUST(setenv("PROTOND_RUNTIME_DIR", "/proc/self/no-daemon", 1) == 0);
	MUST(setenv("PROTOND_DB", "/proc/self/no-database", 1) == 0);
	MUST(setenv("RANK", "7", 1) == 0);
	own_make();
	source_make();
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	if (n < 1)
		return 0;
	if ((p[0] & 1) != 0)
		view(p + 1, n - 1);
	else
		ctl(p + 1, n - 1);
	return 0;
}
