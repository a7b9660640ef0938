/* SPDX-License-Identifier: MIT. protonview_diff.c: the verb diff: what changed, and the gate. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "print_json.h"
#include "protonview_pair.h"

static int parse_gate(struct run *run, double *ret)
{
	const char *s = run->o.value[OPT_GATE];
	char *end;

	*ret = s == NULL ? HUGE_VAL : strtod(s, &end);
	if (s == NULL)
		return 0;
	if (end == s || (*end != '\0' && strcmp(end, "%") != 0) || !(*ret >= 0))
		return err_set(&run->e, -EINVAL, "--gate '%s' is not a percentage", s);
	return 0;
}

/* The verdict goes to stderr, or into the envelope. */
static void judge(struct run *run, const struct diff *d, uint32_t metric, double gate)
{
	const char *what = d->view->col[metric].name;
	struct text name = {0};
	struct diff_verdict v;
	const enum diff_fault fault = diff_gate(d, metric, gate, &v);

	if (fault == DIFF_FINE)
		return;
	run->failed_gate = true;
	if (fault == DIFF_UNRELATED) {
		warning_add(&run->warnings, "gate failed: the two have no scope in common; compare "
					    "runs of one program");
		return;
	}
	term_name(&run->term, &name,
		v.node == PROFILE_NONE ? "the total"
				       : names_show(run->names, d->p->node[v.node].name),
		60);
	if (fault == DIFF_NEW)
		warning_add(&run->warnings,
			"gate failed: %.*s is new: its %s is %.1f%% of what the total was, allowed "
			"is %g%%",
			(int)name.n, name.s == NULL ? "" : name.s, what, v.percent, gate);
	else
		warning_add(&run->warnings,
			"gate failed: %s of %.*s changed by %+.1f%%, allowed is %g%%", what,
			(int)name.n, name.s == NULL ? "" : name.s, v.percent, gate);
	text_fini(&name);
}

int view_diff(struct run *run)
{
	struct pair pair = {0};
	uint32_t i, n = 0;
	double gate;
	int r = parse_gate(run, &gate);

	if (r == 0)
		r = pair_open(run, run->o.args[0], run->o.args[1], &pair);
	if (r == 0)
		r = run_names(run, pair.d->p);
	if (r == 0) {
		n = run_given(run, OPT_METRICS) ? pair.d->view->n_columns : 1;
		for (i = 0; i < n && run_given(run, OPT_GATE); i++)
			judge(run, pair.d, i, gate);
		r = run_filter(run, pair.d->view);
	}
	if (r == 0 && run_given(run, OPT_JSON)) {
		run_note_depth(run, pair.d->view);
		envelope_open(&run->out, "diff", pair.p[1]);
		envelope_diff(&run->out, pair.d, &run->print);
		envelope_close(&run->out, &run->warnings);
	} else if (r == 0) {
		r = print_diff(&run->out, pair.d, n, &run->print);
		run_note_depth(run, pair.d->view);
	}
	pair_free(&pair);
	return r;
}
