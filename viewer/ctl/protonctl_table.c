/* SPDX-License-Identifier: MIT. protonctl_table.c: the verbs of protonctl, in the order of
 * tool_verbs.h: parsing, help, completion and the man page read the table. */
#include "protonctl_table.h"

#include "tool_verbs.h"

/* clang-format off */
#define X(name) extern const struct command command_##name;
CTL_VERBS(X)
CTL_HIDDEN(X)
#undef X

const struct command *const commands[] = {
#define X(name) &command_##name,
	CTL_VERBS(X) CTL_HIDDEN(X)
#undef X
	NULL,
};
/* clang-format on */
