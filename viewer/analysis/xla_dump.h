/* SPDX-License-Identifier: MIT. xla_dump.h: operators of JAX by the names that XLA's dump has for them: what
 * `--xla_dump_to=DIR --xla_dump_hlo_as_text` wrote. Verbs that print a tree include it. */
#ifndef PROTOND_ANALYSIS_XLA_DUMP_H
#define PROTOND_ANALYSIS_XLA_DUMP_H

#include <stdint.h>

#include "err.h"

struct profile;

struct xla_named {
	uint32_t files, operators; /* read of the dump */
	uint32_t named, unsure;    /* nodes; unsure: the dump has several of that name */
};

struct xla_dump; /* opaque; once open it is only read, from any thread */

/* -ENOENT, with words: there is no dump; -ENOMEM. */
int xla_dump_open(const char *dir, struct xla_dump **ret, struct err *e);
void xla_dump_free(struct xla_dump *d); /* NULL is fine */

/* A scope or a kernel that has an operator's name is called "fusion.3: dot_general (train.py:17)", and has the
 * properties op_name and source. Below a scope that has a module's name, of that module. -ENOMEM. */
int xla_dump_name(
	const struct xla_dump *d, struct profile *p, struct xla_named *ret, struct err *e);

#endif
