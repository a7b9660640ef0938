/* SPDX-License-Identifier: MIT. rpc.c: the client of control.sock. One request at a time. */
#include "rpc.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "paths.h"
#include "place.h"

#define START_WORDS                                                                         \
	"start one with `protonctl daemon start`, or for all users with `systemctl enable " \
	"--now protond`"
#define HELLO_MS  5000
#define NOTICE_MS 1000 /* of silence, before people are told what is waited for */

#ifndef PROTOND_BUILD_VERSION
#define PROTOND_BUILD_VERSION "unknown"
#endif

struct rpc {
	int fd;
	uint32_t msgid;
	char method[32];
	struct wire_buf out;
	struct rpc_daemon daemon;
};

static int64_t now_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* --- bytes */

/* Waits until the socket is ready for `events`. */
static int wait_for(int fd, short events, int64_t until_ms)
{
	struct pollfd p = {.fd = fd, .events = events};
	int64_t left;
	int n;

	for (;;) {
		left = until_ms - now_ms();
		if (left < 0)
			return -ETIMEDOUT;
		n = poll(&p, 1, left > INT32_MAX ? INT32_MAX : (int)left);
		if (n > 0)
			return 0;
		if (n == 0)
			return -ETIMEDOUT;
		if (errno != EINTR)
			return neg_errno();
	}
}

static int send_all(int fd, const char *p, size_t n, int64_t until_ms)
{
	ssize_t k;
	int r;

	while (n > 0) {
		k = send(fd, p, n, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (k < 0 && errno == EAGAIN) {
			r = wait_for(fd, POLLOUT, until_ms);
			if (r < 0)
				return r;
			continue;
		}
		if (k < 0 && errno != EINTR)
			return neg_errno();
		p += k > 0 ? k : 0;
		n -= k > 0 ? (size_t)k : 0;
	}
	return 0;
}

/* Takes at most one descriptor; surplus ones are closed. */
static void take_fds(struct msghdr *m, int *fd)
{
	struct cmsghdr *c;
	size_t i, n;
	int got;

	for (c = CMSG_FIRSTHDR(m); c != NULL; c = CMSG_NXTHDR(m, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (i = 0; i < n; i++) {
			memcpy(&got, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
			if (*fd < 0)
				*fd = got;
			else
				(void)close(got);
		}
	}
}

static int recv_all(int fd, char *p, size_t n, int64_t until_ms, int *ret_fd)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(4 * sizeof(int))];
	} control;
	ssize_t k;
	int r;

	while (n > 0) {
		struct iovec iov = {.iov_base = p, .iov_len = n};
		struct msghdr m = {.msg_iov = &iov,
			.msg_iovlen = 1,
			.msg_control = control.bytes,
			.msg_controllen = sizeof(control.bytes)};

		k = recvmsg(fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
		if (k == 0)
			return -ENOTCONN;
		if (k > 0) {
			take_fds(&m, ret_fd);
			p += k;
			n -= (size_t)k;
			continue;
		}
		if (errno != EAGAIN && errno != EINTR)
			return neg_errno();
		r = wait_for(fd, POLLIN, until_ms);
		if (r < 0)
			return r;
	}
	return 0;
}

/* --- calls */

struct wire_buf *rpc_begin(struct rpc *r, const char *method)
{
	snprintf(r->method, sizeof(r->method), "%s", method);
	wire_request(&r->out, ++r->msgid, method);
	wire_map(&r->out);
	return &r->out;
}

void rpc_reply_free(struct rpc_reply *r)
{
	if (r->bytes == NULL)
		return;
	wire_msg_free(&r->msg);
	free(r->bytes);
	if (r->fd >= 0)
		(void)close(r->fd);
	*r = (struct rpc_reply){.fd = -1};
}

/* The daemon's error, as ours. */
static int take_error(const msgpack_object *error, struct err *e)
{
	char text[sizeof(e->text)], next[160];
	int64_t code = wire_i64_or(error, "code", -EPROTO);

	wire_text(error, "text", text, sizeof(text));
	wire_text(error, "next", next, sizeof(next));
	if (code >= 0 || code < -4095)
		code = -EPROTO;
	return err_set(e, (int)code, "%s%s%s", text, *next != '\0' ? "; " : "", next);
}

char rpc_daemon_state(int64_t pid)
{
	char path[64], state = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%lld/stat", (long long)pid);
	f = fopen(path, "re");
	if (f == NULL || fscanf(f, "%*d (protond) %c", &state) != 1)
		state = 0;
	if (f != NULL)
		(void)fclose(f);
	return state;
}

static bool is_stopped(char state)
{
	return state == 'T' || state == 't';
}

/* Who listens, where that is a protond that can be seen from here; else 0. */
static long peer(int fd, char *ret_state)
{
	struct ucred peer = {0};
	socklen_t n = sizeof(peer);

	*ret_state = 0;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) == 0)
		*ret_state = rpc_daemon_state(peer.pid);
	return *ret_state != 0 ? (long)peer.pid : 0;
}

/* The one thing that is said while a call is under way. An answer that takes its time is no news. */
static void say_waiting(int fd, bool is_hello, int timeout_ms)
{
	char state;
	const long pid = peer(fd, &state);

	if (!is_hello && !is_stopped(state))
		return;
	fprintf(stderr, "%s: ", program_invocation_short_name);
	if (pid != 0)
		fprintf(stderr, "protond (pid %ld)%s", pid,
			is_stopped(state) ? " is stopped and" : "");
	else
		fputs("what holds " PATHS_CONTROL_SOCK, stderr);
	fprintf(stderr, " does not answer; waiting up to %d s\n", timeout_ms / 1000);
}

static int no_answer(const struct rpc *r, struct err *e)
{
	char state;
	const long pid = peer(r->fd, &state);

	if (r->daemon.pid != 0 && !is_stopped(state))
		return err_set(e, -ETIMEDOUT,
			"protond (pid %ld) did not answer '%s' in time; see its log, or `protonctl "
			"status`",
			(long)r->daemon.pid, r->method);
	if (pid == 0)
		return err_set(e, -ETIMEDOUT,
			"what holds " PATHS_CONTROL_SOCK " did not answer in time; is it stopped? "
			"`protonctl doctor` says whose it is");
	if (is_stopped(state))
		return err_set(e, -ETIMEDOUT,
			"protond (pid %ld) is stopped; `kill -CONT %ld` lets it continue", pid,
			pid);
	return err_set(e, -ETIMEDOUT,
		"protond (pid %ld) did not answer in time; see its log, or end it: the next one "
		"continues where it stopped",
		pid);
}

static int call_failed(const struct rpc *r, int code, struct err *e)
{
	if (code == -ETIMEDOUT)
		return no_answer(r, e);
	return err_set(e, -ENOTCONN, "protond went away during '%s': %s; " START_WORDS, r->method,
		strerror(-code));
}

static int recv_reply(struct rpc *r, int64_t until_ms, struct rpc_reply *ret, struct err *e)
{
	char header[WIRE_HEADER];
	uint32_t n;
	int code = recv_all(r->fd, header, sizeof(header), until_ms, &ret->fd);

	if (code < 0)
		return call_failed(r, code, e);
	n = wire_frame_bytes(header);
	if (n == 0 || n > WIRE_FRAME_MAX)
		return err_set(e, -EPROTO,
			"what answered sent a message of %u bytes; is it really protond?", n);
	ret->bytes = malloc(n);
	if (ret->bytes == NULL)
		return err_set(e, -ENOMEM, "out of memory");
	code = recv_all(r->fd, ret->bytes, n, until_ms, &ret->fd);
	if (code < 0)
		return call_failed(r, code, e);
	return wire_parse(ret->bytes, n, &ret->msg, e);
}

int rpc_call(struct rpc *r, int timeout_ms, struct rpc_reply *ret, struct err *e)
{
	const int64_t until_ms = now_ms() + timeout_ms;
	const bool is_hello = r->daemon.pid == 0; /* which any daemon answers at once */
	struct rpc_reply reply = {.fd = -1};
	int sent, code = wire_frame_end(&r->out);

	if (code < 0)
		return err_set(e, code, "the request '%s' is too large", r->method);
	sent = send_all(r->fd, r->out.bytes, r->out.n, until_ms);
	if (sent == -ETIMEDOUT)
		return call_failed(r, sent, e);
	if (timeout_ms > NOTICE_MS && wait_for(r->fd, POLLIN, now_ms() + NOTICE_MS) == -ETIMEDOUT)
		say_waiting(r->fd, is_hello, timeout_ms);
	/* A daemon that refuses says why before it closes: read also when sending failed. */
	code = recv_reply(r, until_ms, &reply, e);
	if (code == 0 && reply.msg.type == WIRE_RESPONSE && reply.msg.error != NULL)
		code = take_error(reply.msg.error, e);
	else if (code == 0 && (reply.msg.type != WIRE_RESPONSE || reply.msg.msgid != r->msgid))
		code = err_set(e, -EPROTO,
			"protond's answer does not fit the request '%s'; `protonctl version` shows "
			"both versions",
			r->method);
	if (code < 0) {
		rpc_reply_free(&reply);
		return code;
	}
	reply.result = reply.msg.result;
	*ret = reply;
	return 0;
}

/* --- connections */

/* Through the directory's descriptor: no path is too long for sun_path. */
/* -EPERM: a stranger's socket. */
static int connect_in(const char *dir, int *ret_fd)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int r, fd, dirfd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct stat st;

	if (dirfd < 0)
		return neg_errno();
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0) {
		r = neg_errno();
		(void)close(dirfd);
		return r;
	}
	snprintf(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d/" PATHS_CONTROL_SOCK, dirfd);
	r = connect(fd, (const struct sockaddr *)&a, sizeof(a)) < 0      ? neg_errno()
	    : place_peer_is_fit(fd, fstat(dirfd, &st) == 0 ? &st : NULL) ? 0
									 : -EPERM;
	(void)close(dirfd);
	if (r < 0)
		(void)close(fd);
	else
		*ret_fd = fd;
	return r;
}

static int hello(struct rpc *r, struct err *e)
{
	struct rpc_reply reply = {.fd = -1};
	int code;

	wire_kv_u64(rpc_begin(r, "hello"), "version", WIRE_VERSION);
	code = rpc_call(r, HELLO_MS, &reply, e);
	if (code < 0)
		return code;
	wire_text(reply.result, "daemon", r->daemon.version, sizeof(r->daemon.version));
	wire_text(reply.result, "db", r->daemon.db, sizeof(r->daemon.db));
	r->daemon.pid = wire_i64_or(reply.result, "pid", 0);
	r->daemon.uid = (uint32_t)wire_u64_or(reply.result, "uid", UINT32_MAX);
	(void)wire_get_bool(reply.result, "private", &r->daemon.private);
	if (wire_u64_or(reply.result, "version", 0) < 1)
		code = err_set(e, -EPROTO,
			"the daemon in %s and this tool have no protocol in common; install one "
			"version of both (`protonctl version` shows them)",
			r->daemon.dir);
	rpc_reply_free(&reply);
	return code;
}

int rpc_open_at(const char *dir, struct rpc **ret, struct err *e)
{
	struct rpc *r = calloc(1, sizeof(*r));
	int code;

	if (r == NULL)
		return err_set(e, -ENOMEM, "out of memory");
	wire_buf_init(&r->out, WIRE_REQUEST_MAX + WIRE_HEADER);
	snprintf(r->daemon.dir, sizeof(r->daemon.dir), "%s", dir);
	r->fd = -1;
	code = connect_in(dir, &r->fd);
	if (code == -EPERM)
		err_set(e, code,
			"what answers at %s/" PATHS_CONTROL_SOCK
			" is neither root's protond nor your own; `protonctl doctor` says whose it "
			"is",
			dir);
	else if (code == -EACCES)
		err_set(e, code,
			"%s/" PATHS_CONTROL_SOCK
			" may not be opened by you: %s; `protonctl doctor` says whose it is",
			dir, strerror(-code));
	else if (code < 0)
		code = err_set(e, -ENOTCONN, "no protond runs in %s; " START_WORDS, dir);
	else
		code = hello(r, e);
	if (code < 0) {
		rpc_close(r);
		return code;
	}
	*ret = r;
	return 0;
}

int rpc_open(struct rpc **ret, struct err *e)
{
	char dir[4096];
	int r, first = 0;
	struct err other;
	uint32_t i;

	for (i = 0; paths_runtime(i, dir, sizeof(dir)) == 0; i++) {
		r = rpc_open_at(dir, ret, first == 0 ? e : &other);
		if (r == 0)
			return 0;
		if (first == 0)
			first = r;
	}
	if (first == 0)
		return err_set(e, -ENOTCONN,
			"no directory for protond's sockets; set PROTOND_RUNTIME_DIR");
	return first;
}

void rpc_close(struct rpc *r)
{
	if (r == NULL)
		return;
	if (r->fd >= 0)
		(void)close(r->fd);
	wire_buf_free(&r->out);
	free(r);
}

const struct rpc_daemon *rpc_daemon(const struct rpc *r)
{
	return &r->daemon;
}

int rpc_fd(const struct rpc *r)
{
	return r->fd;
}

int rpc_sync(const char *ref, bool timeline, char *ret_db, size_t n, int *ret_memfd,
	int64_t *ret_id, struct err *e)
{
	struct wire_buf *b;
	struct rpc *r;
	struct rpc_reply reply = {.fd = -1};
	int code = rpc_open(&r, e);

	*ret_db = '\0';
	if (code < 0)
		return code;
	snprintf(ret_db, n, "%s", r->daemon.db);
	b = rpc_begin(r, "sync");
	wire_kv_str(b, "session", ref != NULL ? ref : "@last"); /* what older daemons know */
	wire_kv_bool(b, "all", ref == NULL);
	wire_kv_bool(b, "timeline", timeline);
	code = rpc_call(r, RPC_TIMEOUT_MS, &reply, e);
	rpc_close(r);
	if (code < 0)
		return code;
	*ret_id = wire_i64_or(reply.result, "id", 0);
	*ret_memfd = reply.fd;
	reply.fd = -1;
	if (*ret_memfd < 0)
		wire_text(reply.result, "db", ret_db, n);
	if (*ret_memfd < 0 && *ret_db == '\0')
		code = err_set(e, -EPROTO, "protond's answer to 'sync' names no database");
	rpc_reply_free(&reply);
	return code;
}
