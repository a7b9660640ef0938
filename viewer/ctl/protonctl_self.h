/* SPDX-License-Identifier: MIT. protonctl_self.h: what lies beside this program, and the variables
 * that turn other programs on. For any verb. */
#ifndef PROTOND_PROTONCTL_SELF_H
#define PROTOND_PROTONCTL_SELF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "backends.h"
#include "err.h"

/* An executable or library of ours: beside us, in ../bin, ../lib and so on. -ENOENT. */
int self_find(const char *name, char *ret, size_t n);
/* The folder whose sitecustomize.py names what PyTorch does. -ENOENT: no Python package. */
int self_find_python(char *ret, size_t n);

/* One variable that turns a process on. */
struct env_var {
	const char *name;
	char value[2048];
	bool taken; /* the environment has another value, of another tool */
};
#define ENV_VARS_MAX (BACKEND_COUNT + 2)
/* The variables for jobs of the daemon in `dir`. Returns how many; 0 with words when the library is
 * nowhere. */
size_t env_vars(const char *dir, struct env_var ret[ENV_VARS_MAX], struct err *e);
void env_line(FILE *f, const char *dir); /* "eval \"$(protonctl env)\"" or the reason why not */

#endif
