/* SPDX-License-Identifier: MIT. hello.h: the file that says beforehand what WELCOME would say. For
 * the loop. Loop thread. */
#ifndef PROTOND_DAEMON_HELLO_H
#define PROTOND_DAEMON_HELLO_H

#include "rendezvous.h"

struct daemon;

struct hello {
	struct rv_hello said; /* what stands in the file; zero: there is none */
};

/* Writes it anew if it would say something else. Without it jobs ask. */
void hello_tell(struct hello *h, const struct daemon *d);
void hello_forget(struct hello *h); /* the directory is another one */
void hello_remove(struct hello *h, const struct daemon *d);

#endif
