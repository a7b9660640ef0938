/* SPDX-License-Identifier: MIT. intake.h: agent.sock: accepting jobs and hearing them. For the
 * loop; daemon.h has what verbs ask of it. */
#ifndef PROTOND_DAEMON_INTAKE_H
#define PROTOND_DAEMON_INTAKE_H

#include "daemon.h"

void intake_sweep(struct intake *i, uint64_t now_ns); /* once a second */
int intake_relisten(struct intake *i, struct err *e);

#endif
