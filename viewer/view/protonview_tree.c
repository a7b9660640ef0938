/* SPDX-License-Identifier: MIT. protonview_tree.c: the verb tree: a source, or a difference, as a
 * tree. */
#include <stdio.h>

#include "print_json.h"
#include "protonview_pair.h"

#define HIDDEN_WORDS "%u more node%s, with less, %s not shown; all: protonview %s "
#define HIDDEN(n, verb)                                    \
	(n), (n) == 1 ? "" : "s", (n) == 1 ? "is" : "are", \
		(verb) == VERB_flat ? "flat -n 0" : "tree"

int run_show_tree(struct run *run, const struct view *v, const struct profile *head)
{
	const enum verb_id verb = run->o.verb;
	int r = run_names(run, v->p);

	if (r < 0)
		return r;
	if (run_given(run, OPT_JSON)) {
		if (run->hidden > 0)
			warning_add(&run->warnings, HIDDEN_WORDS "%s", HIDDEN(run->hidden, verb),
				run->o.args[0]);
		run_note_depth(run, v);
		envelope_open(&run->out, verb == VERB_flat ? "flat" : "tree", head);
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
		text_fmt(&run->out, HIDDEN_WORDS, HIDDEN(run->hidden, verb));
		term_name(&run->term, &run->out, run->o.args[0], 0);
		text_char(&run->out, '\n');
	}
	run_note_depth(run, v);
	if (r == 0 && v->n_columns > 0 && run_given(run, OPT_SORTED))
		r = print_sorted(&run->out, v, &run->print);
	print_why(&run->out, head, &run->term);
	return r < 0 ? err_set(&run->e, r, "out of memory") : 0;
}

static int tree_of_diff(struct run *run)
{
	struct pair pair = {0};
	int r = pair_open(run, run->o.value[OPT_DIFF_PROFILE], run->o.args[0], &pair);

	if (r == 0)
		r = run_filter(run, pair.d->view);
	if (r == 0)
		r = run_show_tree(run, pair.d->view, pair.p[1]);
	pair_free(&pair);
	return r;
}

/* `protonview session`: a word that is neither a source nor quite a verb. */
static void guess_verb(struct run *run)
{
	const char *word = run->o.args[0];
	const struct verbs_question q =
		verbs_question(word, verbs_of_view, "protonctl", verbs_of_ctl);

	if (*word != '@' && *q.text != '\0') /* that is never a verb */
		err_set(&run->e, -ENOENT, "there is no session or verb '%s'%s", word, q.text);
}

static void show_list(struct run *run, const struct profile *p)
{
	if (!run_given(run, OPT_JSON)) {
		print_metrics(&run->out, p, &run->term);
		return;
	}
	envelope_open(&run->out, "metrics", p);
	envelope_metrics(&run->out, p);
	envelope_close(&run->out, &run->warnings);
}

int view_tree(struct run *run)
{
	struct profile *p = NULL;
	struct view *v = NULL;
	int r;

	if (run_given(run, OPT_DIFF_PROFILE) && !run_given(run, OPT_LIST))
		return tree_of_diff(run);
	r = run_source(run, run->o.args[0], true, &p);
	if (r == -ENOENT && run->o.implied)
		guess_verb(run);
	if (r == 0 && run_given(run, OPT_LIST)) {
		show_list(run, p);
		profile_free(p);
		return 0;
	}
	if (r == 0 && p->n_metrics == 0 && p->head.uuid == NULL)
		r = err_set(&run->e, -ENOENT, "no metrics found in %s", run->o.args[0]);
	if (r == 0)
		r = run_view(run, p, run->o.value[OPT_METRICS], &v);
	if (r == 0)
		r = run_filter(run, v);
	if (r == 0)
		r = run_show_tree(run, v, p);
	view_free(v);
	profile_free(p);
	return r;
}
