/* SPDX-License-Identifier: MIT. protonview_run.c: protonview's verbs: source → view → filters →
 * text. */
#include "protonview_run.h"

#include <errno.h>
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "complete.h"
#include "formats.h"
#include "guess.h"
#include "output.h"
#include "pick.h"
#include "print.h"
#include "protonview_options.h"
#include "sessions.h"
#include "source.h"

#ifndef PROTOND_BUILD_VERSION
#define PROTOND_BUILD_VERSION "unknown"
#endif

/* One run of the program. */
struct run {
	struct options o;
	struct term term;
	struct print_options print;
	struct names *names;
	struct warnings warnings;
	struct text out;
	struct err e;
	uint32_t hidden; /* nodes, by --rows */
	bool partial, failed_gate;
	int write_error; /* of standard output */
};

typedef int verb_fn(struct run *run); /* 0, or -errno with words in run->e */

static bool given(const struct run *run, enum option_id id)
{
	return run->o.value[id] != NULL;
}

/* --- options
 * -------------------------------------------------------------------------------------- */

static int parse_count(struct run *run, enum option_id id, const char *name, uint32_t *ret)
{
	const char *s = run->o.value[id];
	unsigned long v;
	char *end;

	if (s == NULL)
		return 0;
	errno = 0;
	v = strtoul(s, &end, 10);
	if (*s < '0' || *s > '9' || *end != '\0' || errno != 0 || v > UINT32_MAX)
		return err_set(&run->e, -EINVAL, "--%s '%s' is no number", name, s);
	*ret = (uint32_t)v;
	return 0;
}

static int parse_sort(struct run *run)
{
	const char *s = run->o.value[OPT_SORT];

	if (s == NULL || strcmp(s, "seen") == 0)
		return 0;
	if (strcmp(s, "value") != 0 && strcmp(s, "name") != 0)
		return err_set(&run->e, -EINVAL, "--sort '%s' is none of seen, value, name", s);
	run->print.sort = *s == 'v' ? SORT_VALUE : SORT_NAME;
	return 0;
}

/* A write that fails ends the output: what comes after it is thrown away. */
static void flush(void *arg, struct text *t)
{
	struct run *run = arg;

	if (run->write_error == 0)
		run->write_error = term_write(STDOUT_FILENO, t->s, t->n);
	t->n = 0;
}

static int prepare(struct run *run)
{
	const char *format = run->o.value[OPT_FORMAT];
	int r;

	term_init(&run->term, STDOUT_FILENO, given(run, OPT_NO_COLOR) || given(run, OPT_JSON));
	run->print = (struct print_options){.term = &run->term,
		.depth = 100,
		.wide = given(run, OPT_WIDE),
		.full = given(run, OPT_FULL_NAMES)};
	if (names_new(run->print.full, &run->names) < 0)
		return err_set(&run->e, -ENOMEM, "out of memory");
	run->print.names = run->names;
	run->print.flush = flush;
	run->print.flush_arg = run;
	if (run->o.verb == VERB_flat)
		run->print.rows = 50;
	if (given(run, OPT_INCLUDE) && given(run, OPT_EXCLUDE))
		return err_set(&run->e, -EINVAL, "-i and -e cannot be given together");
	r = parse_count(run, OPT_DEPTH, "depth", &run->print.depth);
	if (r == 0)
		r = parse_count(run, OPT_ROWS, "rows", &run->print.rows);
	if (r == 0)
		r = parse_sort(run);
	if (r == 0 && run->o.verb == VERB_export && format != NULL &&
		format_of(format) == FORMAT_COUNT)
		r = err_set(&run->e, -EINVAL, "export: format '%s' is not known; use " FORMAT_WORDS,
			format);
	else if (r == 0 && run->o.verb != VERB_export && format != NULL)
		r = frame_format_parse(format, &run->print.format, &run->e);
	return r;
}

/* --- sources and views
 * ---------------------------------------------------------------------------- */

/* Whether more than the default columns is asked for. */
static bool wants_all(const struct run *run)
{
	return run->o.verb == VERB_export || run->o.verb == VERB_flat || given(run, OPT_LIST) ||
	       given(run, OPT_METRICS);
}

/* What was opened is not all that there is. */
static void note_parts(struct run *run, const struct source *s)
{
	run->partial |= s->partial || s->away.code != 0;
	if (s->away.code != 0)
		warning_add(&run->warnings, "%s; what is shown was stored before", s->away.text);
}

/* The profile; or, where `timeline` is given, the timeline, written there. */
static int open_source(
	struct run *run, const char *ref, bool lean, FILE *timeline, struct profile **ret)
{
	struct source_options so = {.db = run->o.value[OPT_DB], .timeline = timeline};
	struct source s;
	int r;

	so.select.process = run->o.value[OPT_PROCESS];
	so.select.one_phase = given(run, OPT_PHASE);
	so.select.lean = lean;
	so.select.brief = !wants_all(run);
	r = parse_count(run, OPT_PHASE, "phase", &so.select.phase);
	if (r == 0 && *ref == '\0')
		r = err_set(
			&run->e, -EINVAL, "an empty word is no session: is a variable not set?");
	if (r == 0)
		r = source_open(ref, &so, &s, &run->e);
	if (r < 0)
		return r;
	note_parts(run, &s);
	if (s.partial)
		warning_add(&run->warnings, "%s: the newest changes cannot be read from here", ref);
	if (s.gone > 0)
		warning_add(&run->warnings,
			"%llu events had left the timeline (trace_mb, trace_s in protond.conf); "
			"the tree has them",
			(unsigned long long)s.gone);
	if (ret != NULL)
		*ret = s.p;
	return 0;
}

static void warn_negative(struct run *run, const struct profile *p)
{
	uint32_t bytes = profile_find_metric(p, "bytes"), i;

	for (i = 0; bytes != PROFILE_NONE && i < p->n_nodes; i++) {
		if (!(value_number(profile_value(p, i, bytes)) < 0))
			continue;
		warning_add(&run->warnings, "Negative byte values detected, this is usually the "
					    "result of a datatype overflow");
		return;
	}
}

static int filter(struct run *run, struct view *v)
{
	int r = 0;

	if (given(run, OPT_INCLUDE))
		r = filter_include(v, run->o.value[OPT_INCLUDE], &run->e);
	if (r == 0 && given(run, OPT_EXCLUDE))
		r = filter_exclude(v, run->o.value[OPT_EXCLUDE], &run->e);
	if (r == 0 && given(run, OPT_THRESHOLD))
		r = filter_threshold(v, run->o.value[OPT_THRESHOLD], &run->e);
	if (r == 0 && run->o.verb == VERB_tree && run->print.rows > 0 && v->n_columns > 0 &&
		filter_rows(v, run->print.rows, &run->hidden) < 0)
		r = err_set(&run->e, -ENOMEM, "out of memory");
	if (r == 0 && filter_is_empty(v))
		r = err_set(&run->e, -ENOENT, "no node is left by the filters");
	return r;
}

static int new_view(
	struct run *run, const struct profile *p, const char *metrics, struct view **ret)
{
	struct view *v;
	int r = view_new(p, &v);

	if (r < 0)
		return err_set(&run->e, r, "out of memory");
	warn_negative(run, p);
	r = view_derive(v, metrics, &run->e);
	if (r < 0)
		view_free(v);
	else
		*ret = v;
	return r;
}

/* Two sources seen through the same metrics: those asked for, else the first's. */
struct pair {
	struct profile *p[2];
	struct view *v[2];
	struct diff *d;
};

static void pair_free(struct pair *pair)
{
	int i;

	diff_free(pair->d);
	for (i = 0; i < 2; i++) {
		view_free(pair->v[i]);
		profile_free(pair->p[i]);
	}
}

/* What both have by default, where the first has less: "a,b" of "a,b" and "a,b,c". */
static const char *default_of_both(const struct pair *pair)
{
	const char *before = view_default(pair->p[0]), *after = view_default(pair->p[1]);
	size_t n = before == NULL ? 0 : strlen(before);

	return n > 0 && after != NULL && strncmp(after, before, n) == 0 && after[n] == ',' ? before
											   : after;
}

/* "lat" may be "lat (ms)" on one side and "lat (us)" on the other. */
static int same_units(struct run *run, const struct pair *pair)
{
	const struct column *a = pair->v[0]->col, *b = pair->v[1]->col;
	uint32_t i;

	for (i = 0; i < pair->v[0]->n_columns; i++)
		if (strcmp(a[i].unit, b[i].unit) != 0)
			return err_set(&run->e, -EINVAL,
				"'%.40s' before and '%.40s' after are of two units: no difference",
				a[i].name, b[i].name);
	return 0;
}

static int open_pair(struct run *run, const char *before, const char *after, struct pair *ret)
{
	const char *refs[2] = {before, after}, *metrics = run->o.value[OPT_METRICS];
	struct err e;
	int i, r = 0;

	for (i = 0; i < 2 && r == 0; i++)
		r = open_source(run, refs[i], true, NULL, &ret->p[i]);
	if (r == 0 && metrics == NULL)
		metrics = default_of_both(ret);
	if (r == 0 && metrics == NULL)
		return err_set(&run->e, -ENOENT, "%s has no metric", after);
	for (i = 0; i < 2 && r == 0; i++) {
		r = new_view(run, ret->p[i], metrics, &ret->v[i]);
		if (r == -ENOENT) {
			e = run->e;
			(void)err_set(&run->e, r, "%.80s: %s", refs[i], e.text);
		}
	}
	if (r == 0)
		r = same_units(run, ret);
	if (r < 0)
		return r;
	r = diff_new(ret->v[0], ret->v[1], &ret->d);
	return r < 0 ? err_set(&run->e, r, "out of memory") : 0;
}

/* --- verbs
 * ---------------------------------------------------------------------------------------- */

static int read_names(struct run *run, const struct profile *p)
{
	int r = names_read(run->names, p);

	return r < 0 ? err_set(&run->e, r, "out of memory") : 0;
}

/* What the depth cuts that nobody asked for: in the envelope, or the last line of the tree. */
static void note_depth(struct run *run, const struct view *v)
{
	uint32_t deepest, n = filter_cut(v, run->print.depth, &deepest);
	char words[128];

	if (n == 0 || given(run, OPT_DEPTH))
		return;
	(void)snprintf(words, sizeof(words),
		"%u more nodes, deeper than %u generations, are not shown; -d %u shows all", n,
		run->print.depth, deepest);
	if (given(run, OPT_JSON))
		warning_add(&run->warnings, "%s", words);
	else
		text_fmt(&run->out, "%s\n", words);
}

#define HIDDEN_WORDS "%u more nodes, with less, are not shown; all: protonview tree "

static int show_tree(struct run *run, const struct view *v, const struct profile *head)
{
	int r = read_names(run, v->p);

	if (r < 0)
		return r;
	if (given(run, OPT_JSON)) {
		if (run->hidden > 0)
			warning_add(&run->warnings, HIDDEN_WORDS "%s", run->hidden, run->o.args[0]);
		note_depth(run, v);
		envelope_open(&run->out, "tree", head);
		envelope_tree(&run->out, v, &run->print);
		envelope_close(&run->out, &run->warnings);
		return 0;
	}
	print_head(&run->out, head, &run->term);
	if (v->n_columns > 0)
		r = print_tree(&run->out, v, &run->print);
	else
		text_str(&run->out, "(nothing was recorded)\n");
	if (run->hidden > 0) {
		text_fmt(&run->out, HIDDEN_WORDS, run->hidden);
		term_name(&run->term, &run->out, run->o.args[0], 0);
		text_char(&run->out, '\n');
	}
	note_depth(run, v);
	if (r == 0 && v->n_columns > 0 && given(run, OPT_SORTED))
		r = print_sorted(&run->out, v, &run->print);
	print_why(&run->out, head, &run->term);
	return r < 0 ? err_set(&run->e, r, "out of memory") : 0;
}

static int tree_of_diff(struct run *run)
{
	struct pair pair = {0};
	int r = open_pair(run, run->o.value[OPT_DIFF_PROFILE], run->o.args[0], &pair);

	if (r == 0)
		r = filter(run, pair.d->view);
	if (r == 0)
		r = show_tree(run, pair.d->view, pair.p[1]);
	pair_free(&pair);
	return r;
}

/* `protonview session`: a word that is neither a source nor quite a verb. */
static void guess_verb(struct run *run)
{
	struct guess g = {.word = run->o.args[0]};

	options_guess(&g);
	if (g.best[0] != '\0')
		(void)err_set(
			&run->e, -ENOENT, "there is no session or verb '%s'%s", g.word, g.question);
}

static void show_list(struct run *run, const struct profile *p)
{
	if (!given(run, OPT_JSON)) {
		metrics_list(p, &run->term, &run->out);
		return;
	}
	envelope_open(&run->out, "metrics", p);
	envelope_metrics(&run->out, p);
	envelope_close(&run->out, &run->warnings);
}

static int run_tree(struct run *run)
{
	struct profile *p = NULL;
	struct view *v = NULL;
	int r;

	if (given(run, OPT_DIFF_PROFILE) && !given(run, OPT_LIST))
		return tree_of_diff(run);
	r = open_source(run, run->o.args[0], true, NULL, &p);
	if (r == -ENOENT && run->o.implied)
		guess_verb(run);
	if (r == 0 && given(run, OPT_LIST)) {
		show_list(run, p);
		profile_free(p);
		return 0;
	}
	if (r == 0 && p->n_metrics == 0 && p->head.uuid == NULL)
		r = err_set(&run->e, -ENOENT, "no metrics found in %s", run->o.args[0]);
	if (r == 0)
		r = new_view(run, p, run->o.value[OPT_METRICS], &v);
	if (r == 0)
		r = filter(run, v);
	if (r == 0)
		r = show_tree(run, v, p);
	view_free(v);
	profile_free(p);
	return r;
}

static int show_flat(struct run *run, const struct view *v)
{
	const struct profile *p = v->p;
	struct flat *f = NULL;
	int r = read_names(run, p);

	if (r == 0)
		r = flat_new(v, &f);
	if (r < 0 && r != -ENODATA)
		return err_set(&run->e, r, "out of memory");
	if (given(run, OPT_JSON)) {
		envelope_open(&run->out, "flat", p);
		if (f != NULL)
			flat_json(&run->out, f, &run->print);
		else
			envelope_columns(&run->out, NULL, 0);
		envelope_close(&run->out, &run->warnings);
	} else {
		print_head(&run->out, p, &run->term);
		if (f != NULL)
			(void)flat_print(&run->out, f, &run->print);
		else
			text_str(&run->out, "(no times were recorded)\n");
		print_why(&run->out, p, &run->term);
	}
	flat_free(f);
	return 0;
}

static int run_flat(struct run *run)
{
	struct profile *p = NULL;
	struct view *v = NULL;
	int r = open_source(run, run->o.args[0], false, NULL, &p);

	if (r == 0)
		r = new_view(run, p, NULL, &v);
	if (r == 0)
		r = filter(run, v);
	if (r == 0)
		r = show_flat(run, v);
	view_free(v);
	profile_free(p);
	return r;
}

static int parse_gate(struct run *run, double *ret)
{
	const char *s = run->o.value[OPT_GATE];
	char *end;

	*ret = s == NULL ? HUGE_VAL : strtod(s, &end);
	if (s == NULL)
		return 0;
	if (end == s || (*end != '\0' && strcmp(end, "%") != 0) || !(*ret >= 0))
		return err_set(&run->e, -EINVAL, "--gate '%s' is no percentage", s);
	return 0;
}

/* The verdict goes to stderr, or into the envelope. */
static void judge(struct run *run, const struct diff *d, uint32_t metric, double gate)
{
	struct text name = {0};
	double percent = 0;
	uint32_t node = PROFILE_NONE;

	if (!diff_gate(d, metric, gate, &node, &percent))
		return;
	run->failed_gate = true;
	term_name(&run->term, &name,
		node == PROFILE_NONE ? "the total" : names_show(run->names, d->p->node[node].name),
		60);
	warning_add(&run->warnings, "gate failed: %s of %.*s changed by %+.1f%%, allowed is %g%%",
		d->view->col[metric].name, (int)name.n, name.s == NULL ? "" : name.s, percent,
		gate);
	text_fini(&name);
}

static int run_diff(struct run *run)
{
	struct pair pair = {0};
	uint32_t i, n = 0;
	double gate;
	int r = parse_gate(run, &gate);

	if (r == 0)
		r = open_pair(run, run->o.args[0], run->o.args[1], &pair);
	if (r == 0)
		r = read_names(run, pair.d->p);
	if (r == 0) {
		n = given(run, OPT_METRICS) ? pair.d->view->n_columns : 1;
		for (i = 0; i < n && given(run, OPT_GATE); i++)
			judge(run, pair.d, i, gate);
		r = filter(run, pair.d->view);
	}
	if (r == 0 && given(run, OPT_JSON)) {
		note_depth(run, pair.d->view);
		envelope_open(&run->out, "diff", pair.p[1]);
		envelope_diff(&run->out, pair.d, &run->print);
		envelope_close(&run->out, &run->warnings);
	} else if (r == 0) {
		r = print_diff(&run->out, pair.d, n, &run->print);
		note_depth(run, pair.d->view);
	}
	pair_free(&pair);
	return r;
}

/* --- sessions
 * ------------------------------------------------------------------------------------- */

struct listing {
	struct run *run;
	uint32_t n;
};

/* Borrowed for its sanitising: bytes of a database are anybody's. */
static void clean_string(struct text *t, const char *any_bytes)
{
	struct profile *p = profile_new();

	envelope_string(t, p == NULL ? NULL : profile_text(p, any_bytes, strlen(any_bytes)));
	profile_free(p);
}

static int session_row(void *arg, const struct pick_row *row)
{
	struct listing *l = arg;
	struct text *t = &l->run->out;

	if (l->run->print.rows > 0 && l->n == l->run->print.rows)
		return -ECANCELED;
	if (l->n++ == 0 && !given(l->run, OPT_JSON))
		sessions_head(t, &l->run->term);
	if (!given(l->run, OPT_JSON)) {
		sessions_row(t, &l->run->term, row);
		return 0;
	}
	envelope_row(t);
	envelope_integer(t, row->id);
	envelope_string(t, row->uuid);
	clean_string(t, row->name);
	clean_string(t, row->state);
	clean_string(t, row->source);
	clean_string(t, row->command);
	envelope_integer(t, row->created_ns);
	if (row->active_ns >= 0)
		envelope_integer(t, row->active_ns);
	else
		envelope_string(t, NULL);
	envelope_integer(t, row->processes);
	envelope_integer(t, row->launches);
	return 0;
}

static int run_sessions(struct run *run)
{
	static const struct envelope_column columns[] = {{"id", "", "integer"},
		{"uuid", "", "string"}, {"name", "", "string"}, {"state", "", "string"},
		{"source", "", "string"}, {"command", "", "string"}, {"created", "ns", "integer"},
		{"active", "ns", "integer"}, {"processes", "", "integer"},
		{"launches", "", "integer"}};
	struct listing l = {.run = run};
	struct source how;
	sqlite3 *db;
	int r = source_open_db(run->o.value[OPT_DB], &db, &how, &run->e);

	if (r < 0)
		return r;
	note_parts(run, &how);
	if (given(run, OPT_JSON)) {
		envelope_open(&run->out, "sessions", NULL);
		envelope_columns(&run->out, columns, sizeof(columns) / sizeof(columns[0]));
	}
	r = pick_each(db, session_row, &l, &run->e);
	(void)sqlite3_close(db);
	if (r == 0 || r == -ECANCELED) {
		if (given(run, OPT_JSON))
			envelope_close(&run->out, &run->warnings);
		else if (l.n == 0)
			text_str(&run->out, SESSIONS_NONE);
		return 0;
	}
	return r;
}

/* --- export
 * --------------------------------------------------------------------------------------- */

static int export_tree(struct run *run, enum format format, FILE *to)
{
	struct profile *p = NULL;
	char *text;
	size_t n;
	int r = open_source(run, run->o.args[0], true, NULL, &p);

	if (r < 0)
		return r;
	r = (format == FORMAT_hatchet_msgpack ? hatchet_write_msgpack : hatchet_write)(
		p, &text, &n);
	profile_free(p);
	if (r < 0)
		return err_set(&run->e, r, "out of memory");
	r = fwrite(text, 1, n, to) == n ? 0 : -errno;
	free(text);
	return r;
}

static int run_export(struct run *run)
{
	const char *path = run->o.value[OPT_OUTPUT], *asked = run->o.value[OPT_FORMAT];
	enum format format;
	struct output o;
	int r;

	if (path == NULL || *path == '\0')
		return err_set(&run->e, -EINVAL, "export needs -o FILE (- is standard output)");
	format = asked != NULL            ? format_of(asked)
		 : strcmp(path, "-") == 0 ? FORMAT_hatchet
					  : format_of_file(path);
	if (format == FORMAT_COUNT)
		return err_set(&run->e, -EINVAL,
			"%s ends in no format that is known: " FORMAT_FILES "; or say it with -f",
			path);
	if (strcmp(path, "-") != 0 && !given(run, OPT_FORCE) && access(path, F_OK) == 0 &&
		!output_is_special(path))
		return err_set(&run->e, -EEXIST, "%s exists; --force overwrites it", path);
	r = output_open(path, &o, &run->e);
	if (r < 0)
		return r;
	r = format == FORMAT_chrome_trace ? open_source(run, run->o.args[0], true, o.file, NULL)
					  : export_tree(run, format, o.file);
	r = output_close(path, &o, given(run, OPT_FORCE), r, &run->e);
	if (strcmp(path, "-") == 0 && ferror(stdout))
		run->write_error = r;
	return r;
}

static int run_help(struct run *run)
{
	const char *word = run->o.n_args > 0 ? run->o.args[0] : NULL;

	if (word == NULL || strcmp(word, "man") != 0)
		return options_help(&run->out, word, &run->e);
	options_man(&run->out);
	return 0;
}

/* --- the program
 * ---------------------------------------------------------------------------------- */

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

static int dispatch(struct run *run)
{
	static verb_fn *const verbs[VERB_MAX] = {
#define X(name, bit, min, max, args, help) [VERB_##name] = run_##name,
		VERBS(X)
#undef X
	};

	static const char *const names[VERB_MAX] = {
#define X(name, bit, min, max, args, help) [VERB_##name] = #name,
		VERBS(X)
#undef X
	};
	int r;

	if (given(run, OPT_VERSION)) {
		text_str(&run->out, "protonview " PROTOND_BUILD_VERSION "\n");
		return 0;
	}
	if (given(run, OPT_MAN)) {
		options_man(&run->out);
		return 0;
	}
	if (given(run, OPT_HELP)) {
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

static int complete_row(void *arg, const struct pick_row *row)
{
	const char *const *begin = arg;

	complete_put(*begin, row->name, NULL);
	return 0;
}

static void complete_sessions(const char *begin)
{
	struct source how;
	sqlite3 *db;
	struct err e;

	complete_put(begin, "@last", "the newest");
	if (source_open_db(NULL, &db, &how, &e) < 0)
		return;
	(void)pick_each(db, complete_row, &begin, &e);
	(void)sqlite3_close(db);
}

int protonview_run(int argc, char **argv)
{
	struct run *run;
	int r, status;
	uint32_t i;

	if (argc > 3 && strcmp(argv[1], "__complete") == 0) { /* -- WORD... */
		options_complete(argc - 3, argv + 3, complete_sessions);
		return EXIT_OK;
	}
	run = calloc(1, sizeof(*run));
	if (run == NULL)
		return EXIT_NOT;
	r = options_parse(argc, argv, &run->o, &run->e);
	if (r == 0)
		r = dispatch(run);
	if (r == 0 && run->out.failed)
		r = err_set(&run->e, -ENOMEM, "out of memory");
	for (i = 0; i < run->warnings.n && !given(run, OPT_JSON); i++)
		complain("warning: ", run->warnings.text[i]);
	if (r == 0) {
		flush(run, &run->out);
		r = run->write_error;
	}
	if (r == -EPIPE)
		r = 0; /* the reader has seen enough */
	else if (r < 0 && r == run->write_error)
		(void)err_set(&run->e, r, "standard output: %s", strerror(-r));
	if (r < 0)
		complain("", run->e.text[0] != '\0' ? run->e.text : strerror(-r));
	status = exit_status(run, r);
	text_fini(&run->out);
	names_free(run->names);
	free(run);
	return status;
}
