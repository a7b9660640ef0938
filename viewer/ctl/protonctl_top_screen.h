/* SPDX-License-Identifier: MIT. protonctl_top_screen.h: top on a whole screen. For protonctl_top.c. */
#ifndef PROTOND_PROTONCTL_TOP_SCREEN_H
#define PROTOND_PROTONCTL_TOP_SCREEN_H

#include "name.h"
#include "protonctl_line.h"
#include "rpc.h"

/* Runs until the user ends it. session NULL: the newest live one. 1: this terminal takes none, and
 * nothing was shown. -errno with words in c->err. */
int top_screen(struct ctl *c, struct rpc *rpc, const char *session, double interval_s);

#endif
