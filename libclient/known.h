/* SPDX-License-Identifier: MIT. known.h: what a process knows of the daemon before it asks: a forked
 * child what its parent was told, any other what the hello file says. daemon_link.c includes it. */
#ifndef PROTOND_KNOWN_H
#define PROTOND_KNOWN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "place.h"
#include "rendezvous.h"

/* Written by the parked thread, or before there is one; read by a forked child, where no other thread
 * is. */
struct known {
	_Atomic uint32_t seq;  /* odd: it is being written */
	_Atomic uint32_t want; /* the daemon's; 0: nothing is recorded, or there is no daemon */
	struct rv_welcome welcome;
	char dir[PLACE_PATH_MAX];
	bool own;
};
extern struct known known;

/* Where protond is to be looked for. As place_pick(). */
int known_place(bool own, char ret[static PLACE_PATH_MAX]);
/* protond's name for the folder of rings becomes ours, where it is beside the socket. */
void known_rings(const char *dir, char rings[static PLACE_PATH_MAX]);
void known_keep(const struct rv_welcome *w, const char dir[static PLACE_PATH_MAX], bool own);
/* True: something is recorded, and `known` says where and how. */
bool known_of_parent(void);
bool known_of_hello(void);

#endif
