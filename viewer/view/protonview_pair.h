/* SPDX-License-Identifier: MIT. protonview_pair.h: two sources and their difference. For the verbs
 * that show one. */
#ifndef PROTOND_VIEWER_PROTONVIEW_PAIR_H
#define PROTOND_VIEWER_PROTONVIEW_PAIR_H

#include "protonview_verb.h"

/* Two sources seen through the same metrics: those asked for, else the first's. */
struct pair {
	struct profile *p[2];
	struct view *v[2];
	struct diff *d;
};

/* *ret is zero before; free it whatever this returns. */
int pair_open(struct run *run, const char *before, const char *after, struct pair *ret);
void pair_free(struct pair *pair);

#endif
