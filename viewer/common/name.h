/* SPDX-License-Identifier: MIT. name.h: names of kernels as people read them: demangled, and
 * without what says nothing. */
#ifndef PROTOND_VIEWER_NAME_H
#define PROTOND_VIEWER_NAME_H

#include <stdbool.h>

#include "profile.h"

struct names; /* opaque: only name.c looks inside */

int names_new(bool full, struct names **ret); /* full: nothing is left out; -ENOMEM */
void names_free(struct names *n);             /* NULL is fine */

/* Demangles the names of a profile; those not read before are shown as they are. -ENOMEM */
int names_read(struct names *n, const struct profile *p);
/* Likewise in two steps, of paths: names with "/" between them. */
int names_add(struct names *n, const char *path);
int names_demangle(struct names *n); /* those added since the last time */

/* What to show for a name; valid until the next call. n may be NULL: the name itself. */
const char *names_show(struct names *n, const char *name);
/* Likewise for each name of a path. */
const char *names_show_path(struct names *n, const char *path);

/* In place: drops a leading "void ", "(anonymous namespace)::" and the list of parameters. */
void name_shorten(char *demangled);

#endif
