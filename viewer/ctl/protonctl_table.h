/* SPDX-License-Identifier: MIT. protonctl_table.h: the verbs of protonctl, all of them. For main()
 * and tests; a verb gets the table with its command line. */
#ifndef PROTOND_PROTONCTL_TABLE_H
#define PROTOND_PROTONCTL_TABLE_H

#include "protonctl_line.h"

extern const struct command *const commands[]; /* as help lists them; NULL behind the last */

#endif
