/* SPDX-License-Identifier: MIT. protonview_run.c: protonview: options, the verb, what is said at
 * the end. */
#include "protonview_run.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "human.h"
#include "offer.h"
#include "print_json.h"
#include "protonview_verb.h"
#include "xla_dump.h"

#ifndef PROTOND_BUILD_VERSION
#define PROTOND_BUILD_VERSION "unknown"
#endif

typedef int view_fn(struct run *run);

/* --- options */

static int parse_sort(struct run *run)
{
	const char *s = run->o.value[OPT_SORT];

	if (s == NULL || strcmp(s, "seen") == 0 || run->o.verb == VERB_flat)
		return 0;
	if (strcmp(s, "value") != 0 && strcmp(s, "name") != 0)
		return err_set(&run->e, -EINVAL, "--sort '%s': use seen, value or name", s);
	run->print.sort = *s == 'v' ? SORT_VALUE : SORT_NAME;
	return 0;
}

/* A write that fails ends the output: what comes after it is thrown away. */
static void flush(void *arg, struct text *t)
{
	struct run *run = arg;

	if (run->write_error == 0)
		run->write_error = term_write(STDOUT_FILENO, t->s, t->n);
	run->flowing |= t->n > 0;
	t->n = 0;
}

static int prepare(struct run *run)
{
	const char *format = run->o.value[OPT_FORMAT];
	int r;

	term_init(&run->term, STDOUT_FILENO,
		run_given(run, OPT_NO_COLOR) || run_given(run, OPT_JSON));
	if (run_given(run, OPT_COLOR) && !term_color(&run->term, run->o.value[OPT_COLOR]))
		return err_set(&run->e, -EINVAL, "--color '%s': give auto, always or never",
			run->o.value[OPT_COLOR]);
	run->print = (struct print_options){.term = &run->term,
		.depth = 100,
		.wide = run_given(run, OPT_WIDE),
		.full = run_given(run, OPT_FULL_NAMES)};
	if (names_new(run->print.full, &run->names) < 0)
		return err_set(&run->e, -ENOMEM, "out of memory");
	run->print.names = run->names;
	run->print.flush = flush;
	run->print.flush_arg = run;
	if (run->o.verb == VERB_flat || run->o.verb == VERB_series)
		run->print.rows = 50;
	if (run_given(run, OPT_INCLUDE) && run_given(run, OPT_EXCLUDE))
		return err_set(&run->e, -EINVAL, "-i and -e cannot be used together");
	r = run_count(run, OPT_DEPTH, "depth", &run->print.depth);
	if (r == 0)
		r = run_count(run, OPT_ROWS, "rows", &run->print.rows);
	if (r == 0)
		r = parse_sort(run);
	if (r == 0 && run->o.verb == VERB_export && format != NULL &&
		format_of(format) == FORMAT_COUNT)
		r = err_set(
			&run->e, -EINVAL, "export: unknown format '%s'; use " FORMAT_WORDS, format);
	else if (r == 0 && run->o.verb != VERB_export && run->o.verb != VERB_report &&
		 format != NULL)
		r = frame_format_parse(format, &run->print.format, &run->e);
	return r;
}

int view_help(struct run *run)
{
	const char *word = run->o.n_args > 0 ? run->o.args[0] : NULL;

	if (word == NULL || strcmp(word, "man") != 0)
		return options_help(&run->out, word, &run->e);
	options_man(&run->out);
	return 0;
}

/* --- the program */

static int exit_status(const struct run *run, int r)
{
	if (r == -EINVAL)
		return EXIT_USAGE;
	if (r == -ENOTCONN || r == -ETIMEDOUT)
		return EXIT_DAEMON;
	if (r < 0 && r == run->write_error)
		return EXIT_PARTIAL;
	if (r < 0 || run->failed_gate)
		return EXIT_NOT;
	return run->partial ? EXIT_PARTIAL : EXIT_OK;
}

static const char *const names[VERB_MAX] = {
#define X(name, min, max, args, help) [VERB_##name] = #name,
	VIEW_VERBS(X)
#undef X
};

static int dispatch(struct run *run)
{
	static view_fn *const verbs[VERB_MAX] = {
#define X(name, min, max, args, help) [VERB_##name] = view_##name,
		VIEW_VERBS(X)
#undef X
	};
	int r;

	if (run_given(run, OPT_VERSION)) {
		text_str(&run->out, "protonview " PROTOND_BUILD_VERSION "\n");
		return 0;
	}
	if (run_given(run, OPT_MAN)) {
		options_man(&run->out);
		return 0;
	}
	if (run_given(run, OPT_HELP)) {
		return options_help(&run->out, run->o.implied ? NULL : names[run->o.verb], &run->e);
	}
	r = prepare(run);
	return r < 0 ? r : verbs[run->o.verb](run);
}

/* The words may hold an argument, or a name from a job. */
static void complain(const char *kind, const char *words)
{
	struct text t = {0};
	struct term term;

	term_init(&term, STDERR_FILENO, true);
	text_fmt(&t, "protonview: %s", kind);
	term_name(&term, &t, words, 0);
	text_str(&t, "\n");
	(void)term_write(STDERR_FILENO, t.s, t.n);
	text_fini(&t);
}

/* What was not printed as an envelope becomes one: a text, the name of a file, an error. */
static void seal(struct run *run, int r)
{
	const char *kind = names[run->o.verb];
	const bool is_file = (run->o.verb == VERB_export || run->o.verb == VERB_report) &&
			     run_given(run, OPT_OUTPUT);
	struct text out = {0};

	if (run->flowing || (r == 0 && run->out.n > 0 && run->out.s[0] == '{'))
		return;
	text_char(&run->out, '\0');
	if (r < 0)
		envelope_error(&out, kind, r, run->e.text[0] != '\0' ? run->e.text : strerror(-r),
			&run->warnings);
	else if (run->out.s != NULL)
		envelope_data(&out, kind, is_file ? "file" : "text",
			is_file ? run->o.value[OPT_OUTPUT] : run->out.s, &run->warnings);
	text_fini(&run->out);
	run->out = out;
}

int protonview_run(int argc, char **argv)
{
	const bool json = words_have(argc, argv, "--json");
	char ctl[400] = ""; /* the line, if protonctl has such a verb */
	struct run *run;
	bool usage;
	int r, status;
	uint32_t i;

	if (argc > 3 && strcmp(argv[1], "__complete") == 0) { /* -- WORD... */
		options_complete(argc - 3, argv + 3, offer_sessions);
		return EXIT_OK;
	}
	(void)signal(
		SIGXFSZ, SIG_IGN); /* a limit of a file's size is an error of writing, with words */
	run = calloc(1, sizeof(*run));
	if (run == NULL)
		return EXIT_NOT;
	if (argc > 1 && verbs_have(verbs_of_ctl, argv[1]))
		verbs_line("protonctl", argc, argv, ctl, sizeof(ctl));
	r = options_parse(argc, argv, &run->o, &run->e); /* moves argv's words */
	usage = r < 0 && (!run->o.implied || run->o.n_args <= 1);
	if (r == 0)
		r = dispatch(run);
	if ((r == -EINVAL || r == -ENOENT) && run->o.implied && *ctl != '\0') {
		r = err_set(&run->e, -EINVAL, "that is protonctl's: `%s`", ctl);
		usage = false;
	}
	if (r == 0 && run->out.failed)
		r = err_set(&run->e, -ENOMEM, "out of memory");
	for (i = 0; i < run->warnings.n && !json; i++)
		complain("warning: ", run->warnings.text[i]);
	if (json && run->write_error == 0)
		seal(run, r);
	if (r == 0 || json) {
		flush(run, &run->out);
		r = run->write_error != 0 ? run->write_error : r;
	}
	if (r == -EPIPE)
		r = 0; /* the reader has seen enough */
	else if (r < 0 && r == run->write_error)
		err_set(&run->e, r, "standard output: %s", strerror(-r));
	if (r < 0 && (!json || r == run->write_error))
		complain("", run->e.text[0] != '\0' ? run->e.text : strerror(-r));
	if (usage && !json)
		options_usage(stderr, run->o.verb);
	status = exit_status(run, r);
	text_fini(&run->out);
	names_free(run->names);
	xla_dump_free(run->xla);
	free(run);
	return status;
}
