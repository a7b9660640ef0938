/* SPDX-License-Identifier: MIT. conn.h: a job's connection to agent.sock: what it said, and sending
 * to it. For the loop. Loop thread.
 *
 * A connection is not a process: it may close while the job lives on, and come again.
 */
#ifndef PROTOND_DAEMON_CONN_H
#define PROTOND_DAEMON_CONN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include <uv.h>

#include "message.h"
#include "rendezvous.h"

struct closer;
struct daemon;
struct intake;
struct protond;
struct ring;
struct rings;
struct settlers;

#define CONN_IS_ALIVE 0x4e4e4f43u /* "CONN"; 0 when it is freed */

struct conn {
	uint32_t magic;
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
	bool dead;                   /* the peer was, when it was accepted */
	bool again;                  /* its ring was refused for a while: it is asked once more */
	uint32_t want;               /* as last said */
	uint32_t gpu_mask, gpu_more; /* what PROTOND_GPU of the job leaves, and adds */
	bool gpu_on;                 /* PROTOND_GPU=on: its automatic session has GPU */
	struct rv_attach attach;
	struct rv_state state; /* as last said, or zero */
	bool state_known;
	struct ring *ring;      /* borrowed */
	uint32_t exports, asks; /* not answered yet: EXPORT, SESSION */
	uint32_t pings, pongs;  /* sent, answered: see settle.c */
	uint32_t info_bytes;
	char info[MESSAGE_INFO_MAX + 1];
};

struct intake {
	struct protond *p;
	struct daemon *d;
	struct rings *rings;
	struct settlers *settlers;
	uv_poll_t poll;
	int fd;
	struct conn *conns;
	uint32_t n_conns;
	uint32_t fds; /* descriptors that jobs may take */
	bool shed;    /* a job was refused for want of them: it is called when there are some */
	uint64_t serial;
	uint64_t clear_ns;             /* all that had connected by then were accepted and heard */
	uint64_t mark_ns, mark_serial; /* when the connection of that serial was accepted */
	bool clearing;
	uint32_t older; /* calls of the one below that are under way */
	/* Hears those that connected before it, of its user, and have no ring yet: intake.c. */
	void (*hear_older)(const struct conn *young);
	bool inherited; /* the socket is the service manager's: its name stays */
};

#define CONN_FDS_MAX 253 /* the kernel lets no more come with one packet */

struct packet {
	uint8_t bytes[RV_MESSAGE_MAX + 1]; /* one too many: so that it is seen */
	ssize_t n;
	int flags;
	int fd, n_fds; /* the first descriptor that came, or -1; the others are closed */
	bool came;     /* with SO_PASSCRED: this is a packet, though it be empty, and not the end */
};

void conn_receive(const struct conn *c, struct packet *ret);
/* Fills in the head. fd: -1 none; stays the caller's. -EAGAIN: the job does not read. */
int conn_send(struct conn *c, void *message, uint16_t bytes, enum rv_type type, int fd);
void conn_ping(struct conn *c); /* the job handles what came before, then answers */
void conn_want(struct conn *c, uint32_t want);
void conn_refuse(struct conn *c, const struct err *e); /* says why, and closes */
void conn_close(struct conn *c);
struct conn *conn_by_serial(const struct daemon *d, uint64_t serial); /* NULL: it is gone */

#endif
