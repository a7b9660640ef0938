/* SPDX-License-Identifier: MIT. hello.h: what the daemon says of itself in a file, to whoever has
 * not met it yet. daemon_link.c includes it. */
#ifndef PROTOND_HELLO_H
#define PROTOND_HELLO_H

#include <stdbool.h>

struct rv_welcome;

/* As if WELCOME had come from the daemon of that directory. False: there is no such file, or none to
 * believe. */
bool pd_hello(const char *dir, struct rv_welcome *ret);

#endif
