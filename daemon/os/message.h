/* SPDX-License-Identifier: MIT. message.h: one packet of agent.sock, copied and checked. */
#ifndef PROTOND_DAEMON_MESSAGE_H
#define PROTOND_DAEMON_MESSAGE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "err.h"
#include "rendezvous.h"

#define MESSAGE_INFO_MAX 4096u

struct message {
	uint16_t type; /* enum rv_type: ATTACH, RING, EXPORT, SESSION, STATE, PING or PONG */
	union {        /* every text in it ends in NUL */
		struct rv_attach attach;
		struct rv_ring ring;
		struct rv_export export;
		struct rv_session session;
		struct rv_state state;
	};
	uint32_t info_bytes; /* ATTACH: ends in NUL unless 0 */
	char info[MESSAGE_INFO_MAX + 1];
};

/* -EPROTO: not our protocol; -EMSGSIZE: too short or too long; -EBADMSG: a type that a job does not
 * send; with words. Bytes behind a struct that we know are a newer library's: left alone. */
int message_parse(const void *p, size_t n, struct message *ret, struct err *e);
/* The value of KEY in NUL-separated KEY=VALUE, or NULL. info[bytes - 1] is NUL. */
const char *message_info(const char *info, uint32_t bytes, const char *key);

/* Room for one descriptor beside what sendmsg() sends; zeroed. */
struct message_fd {
	_Alignas(struct cmsghdr) char bytes[CMSG_SPACE(sizeof(int))];
};
void message_put_fd(struct msghdr *m, struct message_fd *room, int fd); /* -1: none */

#endif
