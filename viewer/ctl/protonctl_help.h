/* SPDX-License-Identifier: MIT. protonctl_help.h: help, from a table of verbs. For main() and
 * tests. */
#ifndef PROTOND_PROTONCTL_HELP_H
#define PROTOND_PROTONCTL_HELP_H

#include <stdio.h>

#include "protonctl_line.h"

void help_all(FILE *f, const struct command *const *table);
void help_command(FILE *f, const struct command *cmd);
/* Says that there is no such verb, and which one may be meant. */
void help_unknown(FILE *f, const struct command *const *table, const char *name);

#endif
