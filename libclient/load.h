/* SPDX-License-Identifier: MIT. load.h: finding the engine, and other copies of this library. The
 * files of libclient include it. */
#ifndef PROTOND_LOAD_H
#define PROTOND_LOAD_H

#include <stdbool.h>

struct protond_engine;

/* The engine's table, loaded but not opened; NULL and words. */
const struct protond_engine *pd_engine_load(char *text);
const char *pd_own_path(void); /* of this library, "" when it is linked into the program */
bool pd_is_elsewhere(void);    /* this library was loaded by dlmopen() */
/* `symbol` of the libprotond that was in this process before this one; NULL: this is the first. */
void *pd_first(const char *symbol);

#endif
