/* SPDX-License-Identifier: MIT. protonview_flat.c: the verb flat: a row for each name. */
#include "print_json.h"
#include "protonview_verb.h"

static int show_flat(struct run *run, const struct view *v)
{
	const struct profile *p = v->p;
	struct flat *f = NULL;
	int r = run_names(run, p);

	if (r == 0)
		r = flat_new(v, &f);
	if (r < 0 && r != -ENODATA)
		return err_set(&run->e, r, "out of memory");
	if (f != NULL && run_given(run, OPT_SORT) && flat_sort(f, run->o.value[OPT_SORT]) < 0) {
		flat_free(f);
		return err_set(&run->e, -EINVAL, "--sort '%s': of flat one of " FLAT_SORTS,
			run->o.value[OPT_SORT]);
	}
	if (run_given(run, OPT_JSON)) {
		if (f != NULL && f->coarse)
			warning_add(&run->warnings, "%s", flat_accuracy(f));
		envelope_open(&run->out, "flat", p);
		if (f != NULL)
			envelope_flat(&run->out, f, &run->print);
		else
			envelope_columns(&run->out, NULL, 0);
		envelope_close(&run->out, &run->warnings);
	} else {
		print_head(&run->out, p, &run->term);
		if (f != NULL)
			print_flat(&run->out, f, &run->print);
		else
			text_str(&run->out, "(no times were recorded)\n");
		print_why(&run->out, p, &run->term);
	}
	flat_free(f);
	return 0;
}

int view_flat(struct run *run)
{
	struct profile *p = NULL;
	struct view *v = NULL;
	int r = run_source(run, run->o.args[0], false, &p);

	if (r == 0)
		r = run_view(run, p, flat_metrics(p), &v);
	if (r == 0)
		r = run_filter(run, v);
	if (r == 0)
		r = show_flat(run, v);
	view_free(v);
	profile_free(p);
	return r;
}
