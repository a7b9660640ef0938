/* SPDX-License-Identifier: MIT. rpc.h: a tool's connection to protond: call, wait, take the answer.
 *
 * Blocking, with a timeout per call; a daemon that is slow to say hello is waited for in words.
 * Words in err say what happened and what to do next. */
#ifndef PROTOND_RPC_H
#define PROTOND_RPC_H

#include <stdbool.h>
#include <stdint.h>

#include "codec.h"
#include "err.h"

#define RPC_TIMEOUT_MS 30000

struct rpc; /* opaque: only rpc.c looks inside */

/* What the daemon said of itself at hello. */
struct rpc_daemon {
	char version[32], db[4096], dir[4096]; /* dir: its runtime directory */
	int64_t pid;
	uint32_t uid;
	bool private; /* of one user, not the service */
};

/* An answer; the result points into it. */
struct rpc_reply {
	struct wire_msg msg;
	const msgpack_object *result; /* NULL before a call succeeded */
	int fd;                       /* the descriptor that came along; -1: none */
	char *bytes;
};

/* Connects to the daemon of this user's usual places, and says hello. -ENOTCONN: none is there;
 * -EPROTO: another version; -ETIMEDOUT. */
int rpc_open(struct rpc **ret, struct err *e);
int rpc_open_at(const char *dir, struct rpc **ret, struct err *e);
void rpc_close(struct rpc *r); /* NULL is fine */
const struct rpc_daemon *rpc_daemon(const struct rpc *r);
int rpc_fd(
	const struct rpc *r); /* to poll: readable outside a call means that the daemon has gone */

/* The state in /proc ('T': stopped) of the process with this pid, if its name is protond; else
 * 0. A daemon in another pid namespace has a pid there that is another process's here. */
char rpc_daemon_state(int64_t pid);

/* Begins a request; its params map is open in the buffer that is returned. */
struct wire_buf *rpc_begin(struct rpc *r, const char *method);
/* Sends it and waits. 0 and a reply to free; else the daemon's error, code and words; -ENOTCONN:
 * it went away. */
int rpc_call(struct rpc *r, int timeout_ms, struct rpc_reply *ret, struct err *e);
void rpc_reply_free(struct rpc_reply *r); /* zeroed (fd 0 is not closed) and freed ones are fine */

/* Has the daemon bring a session up to date and says where to read it: a database path and the id
 * in it, or, where the database is another user's, a portable file in *ret_memfd (else -1), with
 * its timeline if asked. -ENOTCONN: no daemon runs, the database is all there is; -ENOENT: no such
 * session. ret_db is the daemon's database also then, "" when none answers. */
int rpc_sync(const char *ref, bool timeline, char *ret_db, size_t n, int *ret_memfd,
	int64_t *ret_id, struct err *e);

#endif
