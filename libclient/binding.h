/* SPDX-License-Identifier: MIT. binding.h: what our Python extension calls besides protond.h: not
 * installed.
 *
 * protond_start() reads variables, so a program in C must not set any meanwhile. In Python the
 * interpreter's lock guards them: they are read with it, and the session is started without. */
#ifndef PROTOND_BINDING_H
#define PROTOND_BINDING_H

#include "protond.h"

void protond_env_read(void); /* does not wait */
/* As protond_start(), by what the last protond_env_read() found. */
int protond_start_by_env_read(const char *name, const struct protond_options *options);

/* As protond_finalize() and protond_export(); impatient: the daemon has just left such a call
 * unanswered, and is given a moment only. */
int protond_finalize_by(int session, const char *format, int impatient);
int protond_export_by(int session, int phase, const char *format, int impatient);

#endif
