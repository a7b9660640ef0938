/* SPDX-License-Identifier: MIT. protonctl_options.h: what can be set for a job, as people read it.
 * For any verb. */
#ifndef PROTOND_PROTONCTL_OPTIONS_H
#define PROTOND_PROTONCTL_OPTIONS_H

#include <stdio.h>

void job_options_help(FILE *f);
void job_options_man(void (*text)(const char *)); /* text() prints what troff must not read */
/* Each variable whose value the table does not permit, in words. */
typedef void job_option_wrong_fn(void *arg, const char *words);
void job_options_check(job_option_wrong_fn *fn, void *arg);

#endif
