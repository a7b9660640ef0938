/* SPDX-License-Identifier: MIT. protonview_verb.c: what protonview's verbs share: source → view →
 * filters. */
#include "protonview_verb.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "filter.h"
#include "spans.h"
#include "xla_shade.h"

#define EVERY_LEAST_NS 1000u

bool run_given(const struct run *run, enum option_id id)
{
	return run->o.value[id] != NULL;
}

int run_count(struct run *run, enum option_id id, const char *name, uint32_t *ret)
{
	const char *s = run->o.value[id];
	unsigned long v;
	char *end;

	if (s == NULL)
		return 0;
	errno = 0;
	v = strtoul(s, &end, 10);
	if (*s < '0' || *s > '9' || *end != '\0' || errno != 0 || v > UINT32_MAX)
		return err_set(&run->e, -EINVAL, "--%s '%s' is not a number", name, s);
	*ret = (uint32_t)v;
	return 0;
}

/* Verbs that tell what a part of a timeline was, not what lies in it. */
static bool run_is_judged(const struct run *run)
{
	return (1 << run->o.verb & ON_PARTS) != 0;
}

/* Whether more than the default columns is asked for. */
static bool wants_all(const struct run *run)
{
	return run->o.verb == VERB_export || run->o.verb == VERB_flat ||
	       run->o.verb == VERB_bottlenecks || run->o.verb == VERB_roofline ||
	       run->o.verb == VERB_report || run_given(run, OPT_LIST) ||
	       run_given(run, OPT_METRICS);
}

void run_note_left(struct run *run, const struct export_left *left)
{
	if (left->gone > 0)
		warning_add(&run->warnings,
			"%llu events had left the timeline (trace_mb and trace_s in protond.conf "
			"bound it); the tree counts them",
			(unsigned long long)left->gone);
	if (left->summed > 0)
		warning_add(&run->warnings,
			"%llu events came too fast to be kept one by one: they are in the tree, "
			"not in the timeline",
			(unsigned long long)left->summed);
}

void run_note_parts(struct run *run, const struct source *s)
{
	run->partial |= s->partial || s->away.code != 0;
	if (s->away.code != 0)
		warning_add(&run->warnings, "%s; what is shown was stored before", s->away.text);
}

/* "1.5", "20ms", "7us", "300ns": in nanoseconds; *ret_end: what stands behind. */
static bool read_time(const char *s, uint64_t *ret_ns, const char **ret_end)
{
	static const struct {
		const char *unit;
		double ns;
	} units[] = {{"ms", 1e6}, {"us", 1e3}, {"ns", 1}, {"s", 1e9}, {"", 1e9}};
	char digits[32], *end;
	const size_t n = strspn(s, "0123456789.");
	const char *dots = strstr(s, "..");
	const size_t whole = dots != NULL && (size_t)(dots - s) < n ? (size_t)(dots - s) : n;
	double v;

	if (whole == 0 || whole >= sizeof(digits))
		return false;
	memcpy(digits, s, whole);
	digits[whole] = '\0';
	v = strtod(digits, &end);
	s += whole;
	for (unsigned i = 0; i < sizeof(units) / sizeof(*units) && *end == '\0'; i++) {
		const size_t unit = strlen(units[i].unit);

		if (strncmp(s, units[i].unit, unit) != 0 || !(v * units[i].ns < 9e18))
			continue;
		*ret_ns = (uint64_t)(v * units[i].ns + 0.5);
		*ret_end = s + unit;
		return true;
	}
	return false;
}

static int read_window(struct run *run, struct profile_select *s)
{
	const char *window = run->o.value[OPT_WINDOW], *end;

	if (window == NULL)
		return 0;
	if (!read_time(window, &s->from_ns, &end) || strncmp(end, "..", 2) != 0 ||
		!read_time(end + 2, &s->to_ns, &end) || *end != '\0' || s->to_ns <= s->from_ns)
		return err_set(&run->e, -EINVAL,
			"--window '%s' is not A..B; write 1.5..2, 500ms..0.6s or 0..20us, B after "
			"A",
			window);
	return 0;
}

static int read_every(struct run *run, struct profile_select *s)
{
	const char *every = run->o.value[OPT_EVERY], *end;

	if (every == NULL)
		return 0;
	if (!read_time(every, &s->every_ns, &end) || *end != '\0' || s->every_ns < EVERY_LEAST_NS)
		return err_set(&run->e, -EINVAL,
			"--every '%s' is not a time; write 1, 0.5, 500ms or 20us, at least 1us",
			every);
	return 0;
}

static int read_steps(struct run *run, struct profile_select *s)
{
	const char *step = run->o.value[OPT_STEP];
	unsigned first, last;
	int n = 0;

	if (step == NULL && s->every_ns != 0 && !run_is_judged(run))
		return err_set(&run->e, -EINVAL,
			"--every: give --step N or N..M, too: which of its windows");
	if (step == NULL)
		return 0;
	if (sscanf(step, "%9u..%9u%n", &first, &last, &n) != 2 || step[n] != '\0') {
		n = 0;
		if (sscanf(step, "%9u%n", &first, &n) != 1 || step[n] != '\0')
			n = -1;
		last = first;
	}
	if (n < 0 || *step < '0' || *step > '9' || first == 0 || last < first)
		return err_set(&run->e, -EINVAL,
			"--step '%s' is not a step; write 3, or 3..5; the first is 1", step);
	if (s->to_ns != 0)
		return err_set(&run->e, -EINVAL, "--step and --window cannot be used together");
	s->first_step = first;
	s->last_step = last;
	return 0;
}

void run_path(struct run *run, struct text *t, const struct profile *p, uint32_t node,
	const char *between)
{
	uint32_t up[PROFILE_DEPTH_MAX + 1], n = 0;

	for (; node != PROFILE_NONE && node != 0 && n <= PROFILE_DEPTH_MAX;
		node = p->node[node].parent)
		up[n++] = node;
	while (n-- > 0) {
		text_str(t, names_show(run->names, p->node[up[n]].name));
		if (n > 0)
			text_str(t, between);
	}
	text_char(t, '\0');
}

bool run_part(const struct run *run)
{
	return run_given(run, OPT_WINDOW) || run_given(run, OPT_STEP) ||
	       run_given(run, OPT_SCOPE) || run_given(run, OPT_EVERY) || run_given(run, OPT_PHASE);
}

/* Which part of a session: all that the command line says of it. */
static int read_part(struct run *run, struct profile_select *s)
{
	const char *process = run->o.value[OPT_PROCESS], *rank = run->o.value[OPT_RANK];
	int r = 0;

	if (process != NULL && rank != NULL)
		return err_set(&run->e, -EINVAL, "--process and --rank cannot be used together");
	s->process = process != NULL ? process : rank;
	if (rank != NULL && (*rank < '0' || *rank > '9'))
		r = err_set(&run->e, -EINVAL, "--rank '%s' is not a number", rank);
	s->one_phase = run_given(run, OPT_PHASE);
	s->scope = run->o.value[OPT_SCOPE];
	if (r == 0)
		r = run_count(run, OPT_PHASE, "phase", &s->phase);
	if (r == 0)
		r = read_window(run, s);
	if (r == 0)
		r = read_every(run, s);
	return r == 0 ? read_steps(run, s) : r;
}

static void warn_xla(struct run *run, const struct xla_named *x)
{
	if (x->named == 0)
		warning_add(&run->warnings,
			"--xla-dump: none of its %u operators, of %u modules, is in this session",
			x->operators, x->files);
	if (x->unsure > 0)
		warning_add(&run->warnings,
			"--xla-dump: %u name%s: several of its operators are called so", x->unsure,
			x->unsure == 1 ? " stays as it is" : "s stay as they are");
}

/* Of a file that is no database, whose tree is all there is. */
static int name_by_xla(struct run *run, struct profile *p, struct xla_named *ret)
{
	const int r = xla_dump_name(run->xla, p, ret, &run->e);

	if (r < 0)
		profile_free(p);
	return r;
}

static int open_by_xla(
	struct run *run, const char *ref, struct source_options *o, struct source *ret)
{
	struct xla_shade shade = {.dump = run->xla};
	int r;

	o->prepare = xla_shade;
	o->prepare_arg = &shade;
	r = source_open(ref, o, ret, &run->e);
	if (r == 0 && !shade.done)
		r = name_by_xla(run, ret->p, &shade.named);
	if (r == 0 && run_given(run, OPT_XLA_DUMP)) /* not of each question of the page */
		warn_xla(run, &shade.named);
	return r;
}

int run_xla(struct run *run)
{
	return run->xla != NULL || !run_given(run, OPT_XLA_DUMP)
		       ? 0
		       : xla_dump_open(run->o.value[OPT_XLA_DUMP], &run->xla, &run->e);
}

/* shade: names of an XLA dump stand before the database's. */
static int source_by(
	struct run *run, const char *ref, bool shade, struct source_options *o, struct source *ret)
{
	int r = run_xla(run);

	o->db = run->o.value[OPT_DB];
	o->session = run->session;
	o->select.brief = !wants_all(run);
	o->select.configs = run->o.verb == VERB_launches;
	if (r == 0)
		r = read_part(run, &o->select);
	if (r == 0 && run_is_judged(run))
		r = spans_check(&o->select, &run->e);
	if (r == 0 && *ref == '\0')
		r = err_set(&run->e, -EINVAL, "empty session name; is a shell variable unset?");
	if (r == 0)
		r = run->xla != NULL && shade ? open_by_xla(run, ref, o, ret)
					      : source_open(ref, o, ret, &run->e);
	if (r < 0)
		return r;
	run_note_parts(run, ret);
	if (ret->partial)
		warning_add(&run->warnings, "%s: the newest changes cannot be read from here", ref);
	run_note_left(run, &ret->left);
	return 0;
}

int run_source_by(struct run *run, const char *ref, struct source_options *o, struct source *ret)
{
	return source_by(run, ref, true, o, ret);
}

static const char *show_name(void *names, const char *name)
{
	return names_show(names, name);
}

int run_source(struct run *run, const char *ref, bool lean, struct profile **ret)
{
	struct source_options o = {.select.lean = lean};
	struct xla_named named;
	struct source s;
	int r = source_by(run, ref, false, &o, &s);

	if (r == 0 && run->xla != NULL) {
		r = name_by_xla(run, s.p, &named);
		if (r == 0)
			warn_xla(run, &named);
	}
	if (r == 0)
		*ret = s.p;
	return r;
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

int run_rows(struct run *run, struct view *v)
{
	if (run->print.rows == 0 || v->n_columns == 0 ||
		filter_rows(v, run->print.rows, &run->hidden) == 0)
		return 0;
	return err_set(&run->e, -ENOMEM, "out of memory");
}

int run_filter(struct run *run, struct view *v)
{
	int r = 0;

	if (run_given(run, OPT_INCLUDE))
		r = filter_include(v, run->o.value[OPT_INCLUDE], &run->e);
	if (r == 0 && run_given(run, OPT_EXCLUDE))
		r = filter_exclude(v, run->o.value[OPT_EXCLUDE], &run->e);
	if (r == 0 && run_given(run, OPT_THRESHOLD))
		r = filter_threshold(v, run->o.value[OPT_THRESHOLD], &run->e);
	if (r == 0 && run->o.verb == VERB_tree)
		r = run_rows(run, v);
	if (r == 0 && filter_is_empty(v))
		r = err_set(&run->e, -ENOENT, "the filters leave no nodes");
	return r;
}

int run_view(struct run *run, const struct profile *p, const char *metrics, struct view **ret)
{
	struct view *v;
	int r = view_new(p, &v);

	if (r < 0)
		return err_set(&run->e, r, "out of memory");
	warn_negative(run, p);
	r = view_derive(v, metrics, &run->e);
	if (r == 0 && v->missing[0] != '\0')
		warning_add(&run->warnings, "this profile has nothing for %s; -l lists what it has",
			v->missing);
	if (r < 0)
		view_free(v);
	else
		*ret = v;
	return r;
}

int run_names(struct run *run, const struct profile *p)
{
	int r = names_read(run->names, p);

	return r < 0 ? err_set(&run->e, r, "out of memory") : 0;
}

/* Names are demangled all at once, those of the tree: it has every node that the timeline has. */
int run_timeline(struct run *run, struct source_options *o, struct source *ret)
{
	struct profile *p = NULL;
	int r = run_source(run, run->o.args[0], true, &p);

	o->select.show = show_name;
	o->select.show_arg = run->names;
	if (r == 0)
		r = run_names(run, p);
	if (r == 0)
		r = run_source_by(run, run->o.args[0], o, ret);
	profile_free(p);
	return r;
}

/* One that could not be demangled says so: speedscope tries again, and its page runs out of memory
 * over a name that grows without end. */
static const char *name_for_people(struct run *run, struct profile *p, const char *name)
{
	const char *shown = names_show(run->names, name);
	struct text t = {0};
	const char *ret;

	if (strncmp(shown, "_Z", 2) == 0)
		text_str(&t, "[mangled] ");
	else if (strcmp(shown, name) == 0)
		return name;
	text_str(&t, shown);
	ret = t.failed ? NULL : profile_text(p, t.s, t.n);
	text_fini(&t);
	return ret;
}

/* What people read has the names that people read; what is read back has those that were recorded.
 */
int run_show_names(struct run *run, struct profile *p)
{
	uint32_t i;

	if (names_read(run->names, p) < 0)
		return -ENOMEM;
	for (i = 0; i < p->n_nodes; i++) {
		p->node[i].name = name_for_people(run, p, p->node[i].name);
		if (p->node[i].name == NULL)
			return -ENOMEM;
	}
	return 0;
}

void run_note_depth(struct run *run, const struct view *v)
{
	uint32_t deepest, n = filter_cut(v, run->print.depth, &deepest);
	char words[128];

	if (n == 0 || run_given(run, OPT_DEPTH))
		return;
	snprintf(words, sizeof(words),
		"%u more node%s, deeper than %u generations, %s not shown; -d %u shows all", n,
		n == 1 ? "" : "s", run->print.depth, n == 1 ? "is" : "are", deepest);
	if (run_given(run, OPT_JSON))
		warning_add(&run->warnings, "%s", words);
	else
		text_fmt(&run->out, "%s\n", words);
}
