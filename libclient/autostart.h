/* SPDX-License-Identifier: MIT. autostart.h: starting a private daemon. info.c and session.c include
 * it. */
#ifndef PROTOND_AUTOSTART_H
#define PROTOND_AUTOSTART_H

void pd_spawn_env_read(void); /* under pd.lock: what a daemon would be started with */
int pd_spawn_daemon(void);    /* a private protond, not our child; 0 when it was started */

#endif
