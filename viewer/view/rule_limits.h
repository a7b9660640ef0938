/* SPDX-License-Identifier: MIT. rule_limits.h: the rules' limits as this machine and this user have them: lines
 * `bottlenecks.RULE.threshold = NUMBER` of /etc/protond.conf, then of the user's protond.conf. */
#ifndef PROTOND_VIEWER_RULE_LIMITS_H
#define PROTOND_VIEWER_RULE_LIMITS_H

#include "bottlenecks.h"

/* *ret: the table's, and what those files say. -EINVAL with file, line and remedy; a file that is not there says nothing. */
int rule_limits_usual(struct rule_settings *ret, struct err *e);
/* As --set has it: "KEY=V,…", or "@FILE", whose lines are as in protond.conf, also without `bottlenecks.`. */
int rule_limits_set(struct rule_settings *s, const char *words, struct err *e);

#endif
