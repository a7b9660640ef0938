/* SPDX-License-Identifier: MIT. protonctl_help.h: help, from a table of verbs. For main() and
 * tests. */
#ifndef PROTOND_PROTONCTL_HELP_H
#define PROTOND_PROTONCTL_HELP_H

#include <stdio.h>

#include "protonctl_line.h"

void help_all(FILE *f, const struct command *const *table);
void help_command(FILE *f, const struct command *cmd);
/* argv[1] is no verb: the line for protonview, if it is one there; else which one may be meant. */
void help_unknown(FILE *f, int argc, char *const *argv);
/* Says that on standard error, or as JSON; returns the exit code. */
int help_refuse(bool json, int argc, char *const *argv);

#endif
