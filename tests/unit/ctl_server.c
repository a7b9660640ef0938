/* SPDX-License-Identifier: MIT. ctl_server.c: the control socket against clients that know the
 * protocol, and against clients that do not. */
#include "ctl_fake.h"

#include "rpc.h"

static struct rpc *dial(void)
{
	struct rpc *r;
	struct err e;

	ck_assert_msg(rpc_open_at(fake.dir, &r, &e) == 0, "%s", e.text);
	return r;
}

/* A call that must succeed. */
static struct rpc_reply call(struct rpc *r)
{
	struct rpc_reply reply;
	struct err e;

	ck_assert_msg(rpc_call(r, 5000, &reply, &e) == 0, "%s", e.text);
	return reply;
}

/* A call that must fail with this code, and words. */
static void refused(struct rpc *r, int code, const char *words)
{
	struct rpc_reply reply;
	struct err e = {.code = 0};

	ck_assert_int_eq(rpc_call(r, 5000, &reply, &e), code);
	ck_assert_msg(strstr(e.text, words) != NULL, "'%s' is not in: %s", words, e.text);
}

static int raw(void)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)snprintf(a.sun_path, sizeof(a.sun_path), "%s/control.sock", fake.dir);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

/* Reads until the end of the stream: the daemon closed it. Returns how many bytes came. */
static size_t until_closed(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	char buf[4096];
	size_t n = 0;
	ssize_t k;

	for (;;) {
		ck_assert_msg(poll(&p, 1, 20000) == 1, "the daemon did not close it");
		k = read(fd, buf, sizeof(buf));
		if (k <= 0)
			break;
		n += (size_t)k;
	}
	(void)close(fd);
	return n;
}

/* The daemon still answers somebody else. */
static void still_well(void)
{
	struct rpc *r = dial();
	struct rpc_reply reply;

	(void)rpc_begin(r, "status");
	reply = call(r);
	ck_assert_uint_eq(wire_u64_or(reply.result, "jobs", 0), 1);
	rpc_reply_free(&reply);
	rpc_close(r);
}

static void start(struct rpc *r, const char *name)
{
	struct wire_buf *b = rpc_begin(r, "start");

	wire_kv_str(b, "name", name);
	wire_kv_bool(b, "all", true);
}

static int64_t started(struct rpc *r, const char *name)
{
	struct rpc_reply reply;
	int64_t id;

	start(r, name);
	reply = call(r);
	id = wire_i64_or(reply.result, "id", -1);
	rpc_reply_free(&reply);
	return id;
}

static int64_t resolved(struct rpc *r, const char *ref)
{
	struct rpc_reply reply;
	int64_t id;

	wire_kv_str(rpc_begin(r, "sync"), "session", ref);
	reply = call(r);
	id = wire_i64_or(reply.result, "id", -1);
	rpc_reply_free(&reply);
	return id;
}

/* --- verbs --- */

START_TEST(hello_says_who)
{
	struct rpc *r = dial();

	ck_assert_int_eq(rpc_daemon(r)->pid, getpid());
	ck_assert_uint_eq(rpc_daemon(r)->uid, getuid());
	ck_assert_str_eq(rpc_daemon(r)->db, "/nowhere/protond.db");
	rpc_close(r);
}
END_TEST

START_TEST(session_lives)
{
	struct rpc *r = dial();
	struct rpc_reply reply;
	struct wire_buf *b;
	int64_t id = started(r, "one");

	ck_assert_int_eq(id, 100);
	start(r, "one");
	refused(r, -EEXIST, "live");
	wire_kv_str(rpc_begin(r, "stop"), "session", "one");
	reply = call(r);
	rpc_reply_free(&reply);
	ck_assert_int_eq(fake.live[0].state, SESSION_IS_INACTIVE);
	wire_kv_str(rpc_begin(r, "activate"), "session", "@last");
	reply = call(r);
	rpc_reply_free(&reply);
	ck_assert_int_eq(fake.live[0].state, SESSION_IS_ACTIVE);
	wire_kv_str(rpc_begin(r, "delete"), "session", "100");
	refused(r, -EBUSY, "session 100 'one' is still recording; finalize it first, or use");
	ck_assert_uint_eq(fake.n_live, 1);
	b = rpc_begin(r, "delete");
	wire_kv_str(b, "session", "100");
	wire_kv_bool(b, "force", true);
	reply = call(r);
	rpc_reply_free(&reply);
	ck_assert_uint_eq(fake.n_live, 0);
	wire_kv_str(rpc_begin(r, "stop"), "session", "one");
	refused(r, -ENOENT, "no session 'one'");
	rpc_close(r);
}
END_TEST

/* clang-format off */
static const struct { const char *key, *value, *words; } wrong[] = {
	{"name", "", "name"}, {"name", "@x", "name"}, {"name", "a\nb", "name"}, {"data", "all", "data"},
	{"context", "x", "context"}, {"cpu", "maybe", "cpu"}, {"gpu", "x", "gpu"}, {"backend", "rocm", "backend"},
	{"hook", "x", "hook"}, {"source", "auto", "source"}, {"match", "*", "exactly one"}, {"token", "x", "token"},
};
/* clang-format on */

START_TEST(start_says_what_is_wrong)
{
	struct rpc *r = dial();
	struct wire_buf *b = rpc_begin(r, "start");

	wire_kv_str(b, wrong[_i].key, wrong[_i].value); /* the first of two keys counts */
	wire_kv_str(b, "name", "good");
	wire_kv_bool(b, "all", true);
	refused(r, -EINVAL, wrong[_i].words);
	ck_assert_uint_eq(fake.n_live, 0);
	rpc_close(r);
}
END_TEST

START_TEST(start_on_a_pid)
{
	struct rpc *r = dial();
	struct wire_buf *b = rpc_begin(r, "start");
	struct rpc_reply reply;

	wire_kv_str(b, "name", "p");
	wire_kv_u64(b, "pid", 4242);
	reply = call(r);
	ck_assert_uint_eq(wire_u64_or(reply.result, "jobs", 0), 1);
	rpc_reply_free(&reply);
	b = rpc_begin(r, "start");
	wire_kv_str(b, "name", "r");
	wire_kv_u64(b, "pid", 777); /* it has a ring */
	reply = call(r);
	ck_assert_uint_eq(wire_u64_or(reply.result, "jobs", 0), 1);
	rpc_reply_free(&reply);
	b = rpc_begin(r, "start");
	wire_kv_str(b, "name", "q");
	wire_kv_u64(b, "pid", 1);
	refused(r, -ESRCH, "protonctl env");
	rpc_close(r);
}
END_TEST

START_TEST(references)
{
	struct rpc *r = dial();
	const unsigned me = (unsigned)getuid();
	struct wire_buf *b;

	store_session(1, "old", "aabbccdd000000000000000000000001", "control", me, 1000);
	store_session(2, "new", "aabbccee000000000000000000000002", "run", me, 2000);
	store_session(3, "auto", "11110000000000000000000000000003", "auto", me, 3000);
	store_session(4, "theirs", "22220000000000000000000000000004", "run", me + 1, 4000);
	store_session(
		5, "1", "33330000000000000000000000000005", "run", me, 500); /* by its clock */
	ck_assert_int_eq(resolved(r, "@last"), 5); /* neither automatic ones nor others' */
	ck_assert_int_eq(resolved(r, ""), 5);
	ck_assert_int_eq(resolved(r, "@-1"), 2);
	ck_assert_int_eq(resolved(r, "@-2"), 1);
	ck_assert_int_eq(resolved(r, "old"), 1);
	ck_assert_int_eq(resolved(r, "1"), 1); /* an id before a name */
	ck_assert_int_eq(resolved(r, "aabbccee"), 2);
	ck_assert_int_eq(resolved(r, "AABB-CCEE"), 2);
	ck_assert_int_eq(resolved(r, "theirs"), 4); /* this daemon's own user sees all */
	wire_kv_str(rpc_begin(r, "sync"), "session", "aabb");
	refused(r, -ENOTUNIQ, "more than one");
	wire_kv_str(rpc_begin(r, "sync"), "session", "@-9");
	refused(r, -ENOENT, "@-9");
	wire_kv_str(rpc_begin(r, "sync"), "session", "@next");
	refused(r, -EINVAL, "@last");
	wire_kv_str(rpc_begin(r, "sync"), "session", "x'; DROP TABLE session; --");
	refused(r, -ENOENT, "DROP");
	ck_assert_int_eq(started(r, "old"), 100); /* live before stored */
	ck_assert_int_eq(resolved(r, "old"), 100);
	ck_assert_int_eq(resolved(r, "@last"), 100);
	ck_assert_int_eq(resolved(r, "@-1"), 5);
	b = rpc_begin(r, "label");
	wire_kv_str(b, "session", "@last");
	refused(r, -EINVAL, "exactly one of");
	b = rpc_begin(r, "label");
	wire_kv_str(b, "session", "@last");
	wire_kv_str(b, "tag", "x");
	wire_kv_str(b, "note", "y");
	refused(r, -EINVAL, "exactly one of");
	b = rpc_begin(r, "label");
	wire_kv_str(b, "session", "@last");
	wire_kv_u64(b, "tag", 7);
	refused(r, -EINVAL, "text of at most");
	ck_assert_uint_ge(fake.drains, 2); /* live ones are brought up to date */
	rpc_close(r);
}
END_TEST

/* The request of another connection is taken, whenever that is: as the answers say, for the daemon is
 * another thread. */
static void until_finalizing(struct rpc *r)
{
	char state[16] = "";
	struct rpc_reply reply;
	const msgpack_object *all;

	while (strcmp(state, "finalizing") != 0) {
		(void)rpc_begin(r, "sessions");
		reply = call(r);
		all = wire_get(reply.result, "sessions");
		ck_assert(all != NULL && all->via.array.size > 0);
		(void)wire_text(&all->via.array.ptr[0], "state", state, sizeof(state));
		rpc_reply_free(&reply);
	}
}

START_TEST(finalize_answers_when_stored)
{
	struct rpc *a = dial(), *b = dial();
	struct rpc_reply reply;
	struct pollfd p = {.events = POLLIN};
	struct wire_buf *w;

	(void)started(a, "f");
	w = rpc_begin(a, "finalize");
	wire_kv_str(w, "session", "f");
	ck_assert_int_eq(wire_frame_end(w), 0);
	p.fd = rpc_fd(a);
	ck_assert_int_eq(send(p.fd, w->bytes, w->n, 0), (ssize_t)w->n);
	until_finalizing(b);
	ck_assert_int_eq(poll(&p, 1, 0), 0); /* not stored: no answer */
	fake.live[0].launches = 7;
	fake.live[0].matched = 5;
	(void)rpc_begin(b, "resume");
	reply = call(b);
	rpc_reply_free(&reply);
	ck_assert_int_eq(poll(&p, 1, 5000), 1);
	rpc_close(a);
	rpc_close(b);
}
END_TEST

START_TEST(client_leaves_while_it_waits)
{
	struct rpc *a = dial(), *b = dial();
	struct rpc_reply reply;
	struct wire_buf *w;

	(void)started(a, "f");
	w = rpc_begin(a, "finalize");
	wire_kv_str(w, "session", "f");
	ck_assert_int_eq(wire_frame_end(w), 0);
	ck_assert_int_eq(send(rpc_fd(a), w->bytes, w->n, 0), (ssize_t)w->n);
	until_finalizing(b);
	rpc_close(a);
	still_well();
	(void)rpc_begin(b, "resume"); /* the answer has nobody to go to */
	reply = call(b);
	rpc_reply_free(&reply);
	rpc_close(b);
	still_well();
}
END_TEST

START_TEST(export_brings_a_file)
{
	struct rpc *r = dial();
	struct rpc_reply reply;
	struct wire_buf *b;
	char text[4] = "";

	(void)started(r, "x");
	b = rpc_begin(r, "export");
	wire_kv_str(b, "session", "x");
	wire_kv_str(b, "format", "hatchet");
	reply = call(r);
	ck_assert_int_ge(reply.fd, 0);
	ck_assert_int_eq(pread(reply.fd, text, 4, 0), 3);
	ck_assert_str_eq(text, "abc");
	ck_assert(fcntl(reply.fd, F_GETFD) & FD_CLOEXEC);
	rpc_reply_free(&reply);
	b = rpc_begin(r, "export");
	wire_kv_str(b, "session", "x");
	wire_kv_str(b, "format", "tar");
	refused(r, -EINVAL, "no format 'tar'");
	rpc_close(r);
}
END_TEST

START_TEST(where_reads_threads)
{
	struct rpc *r = dial();
	struct rpc_reply reply;
	const msgpack_object *jobs, *threads, *open;

	(void)rpc_begin(r, "where");
	reply = call(r);
	jobs = wire_get(reply.result, "jobs");
	ck_assert_uint_eq(jobs->via.array.size, 1);
	threads = wire_get(&jobs->via.array.ptr[0], "threads");
	ck_assert_uint_eq(threads->via.array.size, 2);
	ck_assert_uint_eq(wire_get(&threads->via.array.ptr[0], "open")->via.array.size, 2);
	ck_assert_uint_eq(wire_get(&threads->via.array.ptr[1], "open")->via.array.size, 1);
	open = wire_get(&threads->via.array.ptr[0], "open")->via.array.ptr;
	ck_assert_ptr_null(wire_get(&open[0], "properties"));
	ck_assert_ptr_nonnull(wire_get(&open[1], "properties"));
	ck_assert_uint_eq(wire_get(&open[1], "properties")->via.str.size, strlen("seq=17"));
	rpc_reply_free(&reply);
	wire_kv_u64(rpc_begin(r, "where"), "pid", 4711);
	reply = call(r);
	ck_assert_uint_eq(wire_get(reply.result, "jobs")->via.array.size, 0);
	rpc_reply_free(&reply);
	rpc_close(r);
}
END_TEST

START_TEST(where_of_the_dead_is_stored)
{
	struct rpc *r = dial();
	struct rpc_reply reply;
	const msgpack_object *job;

	sql("INSERT INTO process VALUES(5, x'0505', 'h', x'00', 4711, 1, 4711, 0, NULL, NULL, "
	    "'./dead', '', '/',"
	    " NULL, 2, NULL, NULL, 1, 2, 'killed', 'live', '', 0, 0, '', 0, 0, '', 0, 0, 1, 0, 1, "
	    "65536, 0, 0, 0, x'')");
	sql("INSERT INTO note VALUES(1, 5, 0, 9, 'was in step/forward'), (1, 5, 1, 10, 'kernel "
	    "spin ran'),"
	    " (2, 5, 0, 9, 'was in step/forward')");
	wire_kv_u64(rpc_begin(r, "where"), "pid", 4711);
	reply = call(r);
	ck_assert_uint_eq(wire_get(reply.result, "jobs")->via.array.size, 1);
	job = &wire_get(reply.result, "jobs")->via.array.ptr[0];
	ck_assert_int_eq(wire_i64_or(job, "rank", -1), 2);
	ck_assert_uint_eq(wire_get(job, "notes")->via.array.size, 2); /* said once */
	rpc_reply_free(&reply);
	rpc_close(r);
}
END_TEST

START_TEST(long_answer_is_cut_not_lost)
{
	struct rpc *r = dial();
	struct rpc_reply reply;
	uint64_t shown;

	(void)started(r, "t");
	wire_kv_u64(rpc_begin(r, "top"), "n", 5000);
	reply = call(r);
	shown = wire_get(reply.result, "cells")->via.array.size;
	ck_assert_uint_gt(shown, 900);
	ck_assert_uint_eq(shown + wire_u64_or(reply.result, "left_out", 0), 5000);
	rpc_reply_free(&reply);
	rpc_close(r);
}
END_TEST

START_TEST(jobs_of_others_are_not_shown)
{
	struct rpc *r = dial();
	struct rpc_reply reply;
	char text[64];

	(void)rpc_begin(r, "jobs");
	reply = call(r);
	/* This daemon is ours: we see both jobs without a ring and the one with. */
	ck_assert_uint_eq(wire_get(reply.result, "jobs")->via.array.size, 3);
	ck_assert_str_eq(
		wire_text(&wire_get(reply.result, "jobs")->via.array.ptr[1], "command", text, 64),
		"./train --fast");
	rpc_reply_free(&reply);
	rpc_close(r);
}
END_TEST

START_TEST(prune_and_unknown)
{
	struct rpc *r = dial();
	struct rpc_reply reply;
	const msgpack_object *gone;
	struct wire_buf *b;
	char name[16];

	(void)rpc_begin(r, "prune");
	refused(r, -EINVAL, "age_s");
	wire_kv_u64(rpc_begin(r, "prune"), "slice_ms", 100000);
	refused(r, -EINVAL, "age_s");
	fake.d.private = false;
	wire_kv_u64(rpc_begin(r, "prune"), "age_s", 86400); /* one's own */
	reply = call(r);
	fake.d.private = true;
	ck_assert_int_eq(fake.pruned.uid, getuid());
	ck_assert_int_gt(fake.pruned.before_ns, 0);
	rpc_reply_free(&reply);
	b = rpc_begin(r, "prune");
	wire_kv_u64(b, "keep", 5);
	wire_kv_bool(b, "all_users", true);
	wire_kv_bool(b, "dry_run", true);
	wire_kv_u64(b, "slice_ms", 200);
	reply = call(r);
	ck_assert_int_eq(fake.pruned.uid, -1);
	ck_assert_uint_eq(fake.pruned.keep, 5);
	ck_assert_uint_eq(fake.pruned.slice_ms, 200);
	ck_assert(fake.pruned.dry && fake.pruned.before_ns == INT64_MAX);
	rpc_reply_free(&reply);
	wire_kv_u64(rpc_begin(r, "prune"), "older_than_s", 86400); /* an older tool: everybody's */
	reply = call(r);
	ck_assert_int_eq(fake.pruned.uid, -1);
	ck_assert_uint_eq(wire_u64_or(reply.result, "deleted", 0), 2);
	gone = wire_get(reply.result, "sessions");
	ck_assert(gone != NULL && gone->via.array.size == 2);
	ck_assert_int_eq(wire_i64_or(&gone->via.array.ptr[1], "id", 0), 9);
	ck_assert_str_eq(wire_text(&gone->via.array.ptr[1], "name", name, sizeof(name)), "older");
	rpc_reply_free(&reply);
	(void)rpc_begin(r, "frobnicate");
	refused(r, -ENOSYS, "frobnicate");
	(void)rpc_begin(r, "status"); /* and goes on */
	reply = call(r);
	rpc_reply_free(&reply);
	rpc_close(r);
}
END_TEST

/* --- clients that cost only themselves --- */

/* clang-format off */
#define BYTES(s) (s), sizeof(s) - 1
static const struct { const char *label, *bytes; size_t n; } hostile[] = {
	{"text", BYTES("GET / HTTP/1.1\r\n\r\n")},
	{"length 0", BYTES("\0\0\0\0")},
	{"length 4 GiB", BYTES("\xff\xff\xff\xff")},
	{"length over a request's", BYTES("\x01\0\x01\0")},
	{"no MessagePack", BYTES("\x03\0\0\0\xc1\xc1\xc1")},
	{"map of 2 G", BYTES("\x06\0\0\0\xdf\xff\xff\xff\xff\xc0")},
	{"a response", BYTES("\x05\0\0\0\x94\x01\x01\xc0\x80")},
	{"not hello first", BYTES("\x0b\0\0\0\x94\x00\x01\xa6status\x80")},
};
/* clang-format on */

START_TEST(hostile_is_told_and_closed)
{
	int fd = raw();

	ck_assert_int_eq(
		send(fd, hostile[_i].bytes, hostile[_i].n, MSG_NOSIGNAL), (ssize_t)hostile[_i].n);
	ck_assert_msg(until_closed(fd) > 20, "%s: no words", hostile[_i].label);
	still_well();
}
END_TEST

START_TEST(half_frames_block_nobody)
{
	int fd[8], i;

	for (i = 0; i < 8; i++) {
		fd[i] = raw();
		ck_assert_int_eq(send(fd[i],
					 "\x00\x10\x00\x00"
					 "abc",
					 7, 0),
			7);
	}
	still_well();
	for (i = 0; i < 8; i++)
		(void)close(fd[i]);
	still_well();
}
END_TEST

START_TEST(bytes_may_come_one_by_one)
{
	static const char hello[] = "\x0a\0\0\0\x94\x00\x05\xa5hello\x80";
	int fd = raw();
	struct pollfd p = {.fd = fd, .events = POLLIN};
	size_t i;

	for (i = 0; i < sizeof(hello) - 1; i++)
		ck_assert_int_eq(send(fd, hello + i, 1, 0), 1);
	ck_assert_int_eq(poll(&p, 1, 5000), 1);
	(void)close(fd);
}
END_TEST

START_TEST(many_requests_in_one_write)
{
	static const char hello[] = "\x0a\0\0\0\x94\x00\x05\xa5hello\x80";
	static const char status[] = "\x0e\0\0\0\x94\x00\x05\xa8sessions\x80\xc0"; /* cut below */
	static char bytes[64 * 32], answer[65536];
	struct pollfd p = {.events = POLLIN};
	size_t n = 0, got = 0;
	ssize_t k;
	int i, frames = 0;

	memcpy(bytes, hello, sizeof(hello) - 1);
	n = sizeof(hello) - 1;
	for (i = 0; i < 60; i++) { /* more than may be in flight: each waits for the store */
		memcpy(bytes + n, status, 4 + 13);
		bytes[n] = 13;
		n += 4 + 13;
	}
	p.fd = raw();
	ck_assert_int_eq(send(p.fd, bytes, n, 0), (ssize_t)n);
	while (frames < 61) {
		size_t at = 0;

		ck_assert_msg(poll(&p, 1, 5000) == 1, "%d answers only", frames);
		k = read(p.fd, answer + got, sizeof(answer) - got);
		ck_assert_int_gt(k, 0);
		got += (size_t)k;
		for (frames = 0; got - at >= 4 && got - at >= 4 + wire_frame_bytes(answer + at);
			frames++)
			at += 4 + wire_frame_bytes(answer + at);
	}
	(void)close(p.fd);
}
END_TEST

/* Sends requests with long answers and reads none: is not read on, and disturbs nobody. */
START_TEST(slow_reader_is_bounded)
{
	static const char hello[] = "\x0a\0\0\0\x94\x00\x05\xa5hello\x80";
	static const char top[] = "\x08\0\0\0\x94\x00\x05\xa3top\x80";
	struct rpc *r = dial();
	size_t taken = 0;
	ssize_t k;
	int fd = raw(), i;

	(void)started(r, "t");
	ck_assert_int_eq(send(fd, hello, sizeof(hello) - 1, 0), (ssize_t)sizeof(hello) - 1);
	for (i = 0; i < 100000; i++) {
		k = send(fd, top, sizeof(top) - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (k != (ssize_t)sizeof(top) - 1)
			break;
		taken += (size_t)k;
		if (i % 64 == 0)
			still_well();
	}
	ck_assert_int_lt(i, 100000); /* its own socket is full: it was not read on */
	still_well();
	(void)close(fd);
	still_well();
	rpc_close(r);
	ck_assert_uint_gt(taken, 0);
}
END_TEST

START_TEST(silent_client_is_told_to_go)
{
	int fd = raw();
	struct rpc *quiet = dial(); /* said hello: may be silent for ever */
	struct rpc_reply reply;

	ck_assert_uint_gt(until_closed(fd), 20); /* after 10 s */
	(void)rpc_begin(quiet, "status");
	reply = call(quiet);
	rpc_reply_free(&reply);
	rpc_close(quiet);
}
END_TEST

START_TEST(descriptors_of_a_client_are_not_kept)
{
	static char hello[] = "\x0a\0\0\0\x94\x00\x05\xa5hello\x80";
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {.bytes = {0}};
	struct iovec iov = {.iov_base = hello, .iov_len = sizeof(hello) - 1};
	struct msghdr m = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	int pipes[2], fd = raw();
	struct pollfd p;

	ck_assert_int_eq(pipe(pipes), 0);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &pipes[1], sizeof(int));
	ck_assert_int_gt(sendmsg(fd, &m, 0), 0);
	(void)close(pipes[1]);
	still_well();
	p = (struct pollfd){.fd = pipes[0], .events = POLLIN};
	ck_assert_int_eq(poll(&p, 1, 5000), 1); /* hung up: nobody holds the other end */
	ck_assert(p.revents & POLLHUP);
	(void)close(pipes[0]);
	(void)close(fd);
}
END_TEST

START_TEST(too_many_clients_are_told)
{
	static int fd[WIRE_CLIENTS_MAX / 4 + 1];
	struct rpc *r;
	struct err e;
	size_t i, n = WIRE_CLIENTS_MAX / 4;

	fake_stop_daemon();
	fake_is_service = true;
	fake_start_daemon();
	for (i = 0; i < n; i++)
		fd[i] = raw();
	ck_assert_int_lt(rpc_open_at(fake.dir, &r, &e), 0);
	ck_assert_msg(strstr(e.text, "as many clients as one user may") != NULL, "%s", e.text);
	for (i = 0; i < n; i++)
		(void)close(fd[i]);
	while (rpc_open_at(fake.dir, &r, &e) < 0) /* as soon as they are gone it works again */
		ck_assert_msg(
			strstr(e.text, "as many clients as one user may") != NULL, "%s", e.text);
	rpc_close(r);
	fake_is_service = false;
}
END_TEST

START_TEST(daemon_ends_with_clients)
{
	struct rpc *r = dial();
	int half = raw();

	ck_assert_int_eq(send(half, "\x00\x10\x00\x00", 4, 0), 4);
	still_well();
	fake_stop_daemon();
	(void)rpc_begin(r, "status");
	refused(r, -ESHUTDOWN, "shutting down");
	ck_assert_uint_eq(until_closed(half), 0);
	rpc_close(r);
	fake_start_daemon(); /* for the teardown */
}
END_TEST

static void add_tests(TCase *t)
{
	tcase_add_test(t, hello_says_who);
	tcase_add_test(t, session_lives);
	tcase_add_loop_test(
		t, start_says_what_is_wrong, 0, (int)(sizeof(wrong) / sizeof(wrong[0])));
	tcase_add_test(t, start_on_a_pid);
	tcase_add_test(t, references);
	tcase_add_test(t, finalize_answers_when_stored);
	tcase_add_test(t, client_leaves_while_it_waits);
	tcase_add_test(t, export_brings_a_file);
	tcase_add_test(t, where_reads_threads);
	tcase_add_test(t, where_of_the_dead_is_stored);
	tcase_add_test(t, long_answer_is_cut_not_lost);
	tcase_add_test(t, jobs_of_others_are_not_shown);
	tcase_add_test(t, prune_and_unknown);
	tcase_add_loop_test(
		t, hostile_is_told_and_closed, 0, (int)(sizeof(hostile) / sizeof(hostile[0])));
	tcase_add_test(t, half_frames_block_nobody);
	tcase_add_test(t, bytes_may_come_one_by_one);
	tcase_add_test(t, many_requests_in_one_write);
	tcase_add_test(t, slow_reader_is_bounded);
	tcase_add_test(t, silent_client_is_told_to_go);
	tcase_add_test(t, descriptors_of_a_client_are_not_kept);
	tcase_add_test(t, too_many_clients_are_told);
	tcase_add_test(t, daemon_ends_with_clients);
}

Suite *suite(void)
{
	Suite *s = suite_create("ctl_server");
	TCase *t = tcase_create("all");

	tcase_add_checked_fixture(t, fake_start_daemon, fake_stop_daemon);
	tcase_set_timeout(t, 60);
	add_tests(t);
	suite_add_tcase(s, t);
	return s;
}
