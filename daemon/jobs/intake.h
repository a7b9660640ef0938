/* SPDX-License-Identifier: MIT. intake.h: a connection of agent.sock, between intake.c (sockets)
 * and attach.c (what the messages do). */
#ifndef PROTOND_DAEMON_INTAKE_H
#define PROTOND_DAEMON_INTAKE_H

#include <sys/socket.h>

#include "loop.h"
#include "message.h"
#include "rendezvous.h"

struct conn {
	struct conn *next;
	struct intake *in;
	struct closer *closer; /* of what it hands over in vain; outlives the intake */
	uv_poll_t poll;
	int fd, pidfd;      /* pidfd: -1 none, or the ring has it */
	uint32_t uid, pid;  /* of the peer's credentials; pid 0: not in our namespace */
	uint64_t pid_start; /* by /proc; 0 unknown */
	uint64_t serial;    /* names it for those who may outlive it */
	uint64_t since_ns;
	bool attached, closing, want_known;
	bool again;                  /* its ring was refused for a while: it is asked once more */
	uint32_t want;               /* as last said */
	uint32_t gpu_mask, gpu_more; /* what PROTOND_GPU of the job leaves, and adds */
	bool gpu_on;                 /* PROTOND_GPU=on: its automatic session has GPU */
	struct rv_attach attach;
	struct rv_state state; /* as last said, or zero */
	bool state_known;
	struct ring *ring;     /* borrowed */
	uint32_t exports;      /* not answered yet */
	uint32_t pings, pongs; /* sent, answered: see settle.c */
	uint32_t info_bytes;
	char info[MESSAGE_INFO_MAX + 1];
};

struct intake {
	struct protond *p;
	uv_poll_t poll;
	int fd;
	struct conn *conns;
	uint32_t n_conns;
	uint32_t fds; /* descriptors that jobs may take */
	bool shed;    /* a job was refused for want of them: it is called when there are some */
	uint64_t serial;
	bool inherited; /* the socket is the service manager's: its name stays */
};

/* One packet. Takes *fd when it has a use for it (then -1). e->code < 0: refuse and close. */
void intake_message(struct conn *c, const void *packet, size_t n, int *fd, struct err *e);
uint32_t conn_wanted(const struct conn *c); /* of a job without a ring */

void conn_ping(struct conn *c);
int conn_send(struct conn *c, void *message, uint16_t bytes, enum rv_type type, int fd);
void conn_refuse(struct conn *c, const struct err *e);
void conn_close(struct conn *c);

#endif
