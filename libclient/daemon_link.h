/* SPDX-License-Identifier: MIT. daemon_link.h: the parked thread's connection to protond: the thread alone
 * touches it, or whoever starts the thread, before. daemon_link.c, park.c and thread.c include it. */
#ifndef PROTOND_DAEMON_LINK_H
#define PROTOND_DAEMON_LINK_H

#include "doorbell.h"
#include "rendezvous.h"

struct link {
	const struct protond_host *host; /* what the engine may ask */
	int sock;                        /* -1: none */
	ino_t ino;         /* of sock: the application may have closed it and own the number now */
	bool attached;     /* WELCOME came */
	uint64_t since_ms; /* when */
	bool ring_sent;    /* RING is on its way, on this connection */
	bool controlled;   /* the engine has a control file; stays so over a lost connection */
	bool own;          /* the last connection was to the user's own */
	bool owes;         /* it is counted as a child whose events did not reach the daemon */
	char dir[PLACE_PATH_MAX]; /* where the last connection was to */
	bool refused;             /* until the socket is made anew */
	int32_t fault;            /* what keeps the engine from recording; 0 */
	uint32_t heard;           /* the last question that was seen: what an answer is to */
	uint32_t want;            /* the daemon's */
	uint32_t applied;         /* what the engine was told last */
	struct rv_welcome welcome;
	char words[RV_TEXT_MAX];
};
extern struct link link_;

/* Connects and sends ATTACH, to the daemon of the place that place_pick() says, or (own) of the
 * user's own. 0; -ENOTCONN: no daemon; -EAGAIN: a socket, and nobody accepts (yet); -EPERM: not a
 * daemon that this process may talk to. */
int link_open(bool own);
/* Before the parked thread runs: where a forked child knows from its parent what it needs, makes
 * and offers its ring at once, and records. Waits for nobody. */
void link_offer(const struct protond_host *host);
void link_close(void);
/* Reads what has come. False: the connection is gone. */
bool link_read(void);
/* Sends what is waiting: GPU state, an export, an answer to who asked. */
void link_serve(void);
/* Looks for a question; true: there is one. What is wanted must be read after it. */
bool link_hear(void);
/* Says to whoever was heard how it went, and to who waits for the first handshake that it is over.
 */
void link_answer(int code, const char *words);
void link_forget(void); /* in a forked child */

#endif
