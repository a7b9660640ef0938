/* SPDX-License-Identifier: MIT. protonctl_table.c: the verbs of protonctl, once. A verb is its
 * file, which has its code, its options and its words (command_NAME), and a row here: parsing,
 * help, completion and the man page read the table. */
#include "protonctl_table.h"

/* clang-format off */
/* As help lists them. The last row it does not: those are for the build and for completion. */
#define VERBS(X) \
	X(run) X(start) X(stop) X(activate) X(finalize) X(pause) X(resume) \
	X(sessions) X(jobs) X(where) X(top) X(status) X(env) X(backends) \
	X(doctor) X(delete) X(prune) X(daemon) X(shutdown) X(version) X(completion) X(help) \
	X(man) X(complete)

#define X(name) extern const struct command command_##name;
VERBS(X)
#undef X

const struct command *const commands[] = {
#define X(name) &command_##name,
	VERBS(X)
#undef X
	NULL,
};
/* clang-format on */
