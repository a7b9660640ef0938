/* SPDX-License-Identifier: MIT. judged.h: a source and the rules' verdicts on it, and how one is shown. protonview_bottlenecks.c
 * has it; for report_text.c, too. */
#ifndef PROTOND_VIEWER_JUDGED_H
#define PROTOND_VIEWER_JUDGED_H

#include "bottlenecks.h"
#include "protonview_verb.h"

struct judged {
	struct profile *p;
	struct facts *f;
	struct bottlenecks b;
};

/* The first source of the command line, by its options and this machine's limits. Freed by judged_free(), also where it fails. */
int judged_new(struct run *run, struct judged **ret);
void judged_free(struct judged *j); /* NULL is fine */
void judged_print(struct run *run, const struct judged *j, const struct verdict *v);
/* Rules that found nothing, and those that lack data, with the switch. */
void judged_print_rest(struct run *run, const struct judged *j);

#endif
