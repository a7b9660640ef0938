/* SPDX-License-Identifier: MIT. intake.h: agent.sock: accepting jobs and hearing them. For
 * daemon.c; attached.h has what others ask of it. Loop thread. */
#ifndef PROTOND_DAEMON_INTAKE_H
#define PROTOND_DAEMON_INTAKE_H

#include <stdbool.h>
#include <stdint.h>

#include "err.h"

struct intake;
struct protond;

int intake_new(struct protond *p, struct intake **ret, struct err *e);
void intake_free(struct intake *in);
void intake_sweep(struct intake *in, uint64_t now_ns); /* once a second */
/* Whoever had connected by then has been heard, if it spoke at once; else hears some more of them. */
bool intake_is_clear(struct intake *in, uint64_t ns);        /* NULL is clear */
bool intake_was_clear(const struct intake *in, uint64_t ns); /* likewise, and hears nobody */
/* Takes what those without a ring have said by now, and some that have just connected. */
void intake_hear(struct intake *in);
int intake_relisten(struct intake *in, struct err *e);

#endif
