/* SPDX-License-Identifier: MIT. protonctl_ending.h: the wait at the end of `run`, which a user may end. For
 * protonctl_run.c, which has these signals blocked. */
#ifndef PROTOND_CTL_ENDING_H
#define PROTOND_CTL_ENDING_H

/* From here on the first SIGINT or SIGTERM says what is waited for, and one more ends protonctl; what is ignored
 * stays so. */
void ending_begin(void);
void ending_end(void);

#endif
