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

#endif
