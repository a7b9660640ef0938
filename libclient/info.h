/* SPDX-License-Identifier: MIT. info.h: what a job says about itself. The files of libclient
 * include it. */
#ifndef PROTOND_INFO_H
#define PROTOND_INFO_H

#include <stdbool.h>
#include <stdint.h>

void pd_env_read(void); /* on a thread of the application's */
#define PD_STAT 1024
/* A field, from 3 on, of /proc/self/stat, in buf with what follows it; NULL: none. */
const char *pd_stat(char buf[PD_STAT], int field);
uint64_t pd_start_time(void);
bool pd_token(uint8_t ret[16]);
bool pd_is_named_in(const char *variable); /* this library, in LD_PRELOAD or its like */

#endif
