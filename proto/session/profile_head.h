/* SPDX-License-Identifier: MIT. profile_head.h: what a stored session is, before what it measured.
 */
#ifndef PROTOND_SESSION_PROFILE_HEAD_H
#define PROTOND_SESSION_PROFILE_HEAD_H

#include "profile_rows.h"

int load_head(struct load *l);     /* session, processes, devices, losses, notes */
int load_head_end(struct load *l); /* what needs the cells: device list, why no GPU */

#endif
