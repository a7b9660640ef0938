/* SPDX-License-Identifier: MIT. daemon_evil.c: a real protond, hostile jobs of every kind, and a
 * good one beside them that must lose nothing. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "config.h"
#include "daemon_fake.h"
#include "draw.h"
#include "exited.h"
#include "home.h"
#include "host_clock.h"
#include "log.h"
#include "loop.h"
#include "rendezvous.h"
#include "verbs.h"

#ifndef EVIL_JOBS
#define EVIL_JOBS 60
#endif
#define MISCHIEF 40

static char dir[64], db[96], sock[96];
static pid_t daemon_pid;
/* --- the daemon --- */

static int run_daemon(void)
{
	static struct protond p;
	struct err e = {0};

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)signal(SIGPIPE, SIG_IGN);
	log_set_level(LOG_ERR);
	protond_bind(&p);
	p.d.private = true;
	p.d.verbs = verb_table;
	if (config_load(&p.config, NULL, true, &e) < 0 || home_open(&p.d, &e) < 0 ||
		protond_init(&p, &e) < 0) {
		(void)fprintf(stderr, "daemon: %s\n", e.text);
		return 1;
	}
	const int r = protond_run(&p);

	protond_fini(&p);
	return r;
}

static int dial(void)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	ck_assert_int_ge(fd, 0);
	(void)snprintf(a.sun_path, sizeof(a.sun_path), "%s", sock);
	if (connect(fd, (const struct sockaddr *)&a, sizeof(a)) == 0)
		return fd;
	(void)close(fd);
	return -1;
}

static void setup(void)
{
	int fd, i;

	(void)snprintf(dir, sizeof(dir), "/dev/shm/protond-evil-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	(void)snprintf(db, sizeof(db), "%s/protond.db", dir);
	(void)snprintf(sock, sizeof(sock), "%s/agent.sock", dir);
	ck_assert_int_eq(setenv("PROTOND_RUNTIME_DIR", dir, 1), 0);
	ck_assert_int_eq(setenv("PROTOND_DB", db, 1), 0);
	ck_assert_int_eq(setenv("PROTOND_COMMIT_MS", "50", 1), 0);
	ck_assert_int_eq(setenv("XDG_CONFIG_HOME", dir, 1), 0);
	daemon_pid = fork();
	if (daemon_pid == 0)
		_exit(run_daemon());
	for (i = 0; i < 2000; i++) {
		fd = dial();
		if (fd >= 0)
			break;
		(void)poll(NULL, 0, 10); /* there is nothing to wait on before there is a socket */
	}
	ck_assert_int_ge(fd, 0);
	(void)close(fd);
}

static void teardown(void)
{
	char command[128];
	int status;

	ck_assert_int_eq(kill(daemon_pid, SIGTERM), 0);
	ck_assert_int_eq(waitpid(daemon_pid, &status, 0), daemon_pid);
	ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the daemon ended with %x",
		(unsigned)status);
	(void)snprintf(command, sizeof(command), "rm -r %s", dir);
	(void)!system(command);
}

/* --- what a job says --- */

static void say(int fd, void *m, size_t bytes, enum rv_type type, const int *fds, size_t n_fds)
{
	const struct rv_head head = {RV_MAGIC, (uint16_t)type, (uint16_t)bytes};
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(16 * sizeof(int))] = {0};
	struct iovec v = {m, bytes};
	struct msghdr h = {.msg_iov = &v, .msg_iovlen = 1};
	struct cmsghdr *c;

	memcpy(m, &head, sizeof(head));
	if (n_fds > 0) {
		h.msg_control = control;
		h.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
		c = CMSG_FIRSTHDR(&h);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
		memcpy(CMSG_DATA(c), fds, n_fds * sizeof(int));
	}
	(void)!sendmsg(fd, &h, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* The next packet of this type; its first descriptor in *ret_fd. False: the daemon hung up. */
static bool hear(int fd, enum rv_type type, void *to, size_t bytes, int *ret_fd)
{
	uint8_t packet[RV_MESSAGE_MAX];
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))];
	struct rv_head head = {0};
	struct pollfd ready = {.fd = fd, .events = POLLIN};

	while (head.type != type) {
		struct iovec v = {packet, sizeof(packet)};
		struct msghdr h = {.msg_iov = &v,
			.msg_iovlen = 1,
			.msg_control = control,
			.msg_controllen = sizeof(control)};

		if (poll(&ready, 1, 20000) != 1 ||
			recvmsg(fd, &h, MSG_CMSG_CLOEXEC) < (ssize_t)sizeof(head))
			return false;
		memcpy(&head, packet, sizeof(head));
		if (CMSG_FIRSTHDR(&h) != NULL && ret_fd != NULL)
			memcpy(ret_fd, CMSG_DATA(CMSG_FIRSTHDR(&h)), sizeof(int));
	}
	memcpy(to, packet, bytes);
	return true;
}

/* Attached, with a lawful ring offered and taken. */
static bool meet(struct fake *f, int fd, struct rv_ctl *ctl, int *ret_ctl)
{
	static const char info[] = "command=evil --job\0cwd=/";
	struct {
		struct rv_attach a;
		char info[sizeof(info)];
	} m = {.a = {.abi = RING_ABI, .pid = (uint32_t)getpid(), .version = "test"}};
	struct rv_welcome w;
	struct rv_ring r = {0};

	memcpy(m.info, info, sizeof(info));
	say(fd, &m, sizeof(m), RV_ATTACH, NULL, 0);
	if (!hear(fd, RV_WELCOME, &w, sizeof(w), NULL))
		return false;
	*f = fake_new();
	memcpy(f->h.store, w.store, 16);
	f->h.pid_start = process_start((uint32_t)getpid());
	for (int i = 0; i < 16; i++)
		f->h.uuid[i] = (uint8_t)draw();
	const int boot = open("/proc/sys/kernel/random/boot_id", O_RDONLY);
	char text[40] = "";

	(void)!read(boot, text, sizeof(text) - 1);
	(void)close(boot);
	for (int i = 0, at = 0; i < 16; i++, at += 2) {
		unsigned v;

		at += text[at] == '-';
		(void)sscanf(text + at, "%2x", &v);
		f->h.boot_id[i] = (uint8_t)v;
	}
	f->h.created_clock = f->h.created_monotonic_ns = mono_ns();
	f->h.created_realtime_ns = (uint64_t)real_ns();
	memcpy(f->mem, &f->h, sizeof(f->h));
	fake_tables(f);
	memcpy(r.uuid, f->h.uuid, 16);
	say(fd, &r, sizeof(r), RV_RING, &f->fd, 1);
	return hear(fd, RV_CTL, ctl, sizeof(*ctl), ret_ctl);
}

/* --- mischief --- */

static void scribble(struct fake *f)
{
	const uint64_t spans[][2] = {{0, 168}, {f->l.counts, 96},
		{f->l.lanes, 4 * sizeof(struct ring_lane)}, {f->l.paths, 4096}, {f->l.names, 4096},
		{f->l.data, 4096}, {0, f->l.file_bytes}};
	const uint64_t *s = spans[draw() % 7];
	uint64_t v = draw();
	int i;

	if (draw() % 3 == 0)
		v &= 0xff;
	for (i = 0; i < 8; i++)
		f->mem[s[0] + (draw() % (s[1] / 8)) * 8 + (uint64_t)i] = (uint8_t)(v >> 8 * i);
}

static void one_mischief(struct fake *f, int fd)
{
	uint8_t junk[512];
	int fds[16], i;
	struct rv_export x = {.request = 1, .session = (uint32_t)draw() % 3, .format = "hatchet"};
	struct rv_state s = {.gpu = {.state = (uint16_t)draw()}};
	struct rv_ring r = {0};

	switch (draw() % 9) {
	case 0:
		fake_lane(f, (uint32_t)draw() % FAKE_LANES)->tail = draw() % 70000 * 8;
		break;
	case 1:
		for (i = 0; i < 500; i++)
			fake_scope(f, (uint32_t)draw() % 4, (uint32_t)draw() % 9, draw(), draw());
		break;
	case 2:
		fake_session(f, 0, (enum session_verb)(draw() % 6), (uint32_t)draw() % 3,
			(uint32_t)draw() % 9, mono_ns());
		break;
	case 3:
		say(fd, &x, sizeof(x), RV_EXPORT, NULL, 0);
		break;
	case 4:
		memset(s.gpu.words, 'x', sizeof(s.gpu.words));
		say(fd, &s, sizeof(s), RV_STATE, NULL, 0);
		break;
	case 5:
		if (draw() % 8 == 0) {
			for (i = 0; i < 16; i++)
				fds[i] = f->fd;
			memcpy(r.uuid, f->h.uuid, 16);
			say(fd, &r, sizeof(r), RV_RING, fds, 1 + draw() % 16);
		}
		break;
	case 6:
		if (draw() % 8 == 0) {
			for (i = 0; i < 512; i++)
				junk[i] = (uint8_t)draw();
			(void)!send(fd, junk, 8 + draw() % 500, MSG_NOSIGNAL | MSG_DONTWAIT);
		}
		break;
	default:
		scribble(f);
	}
}

static void evil_job(uint64_t number)
{
	const int fd = dial();
	struct fake f;
	struct rv_ctl ctl;
	int i;

	seed += number * 0x9e3779b97f4a7c15ull;
	if (fd < 0 || !meet(&f, fd, &ctl, NULL) || ctl.code != 0)
		_exit(1);
	for (i = 0; i < MISCHIEF; i++) {
		one_mischief(&f, fd);
		if (draw() % 8 == 0)
			(void)poll(NULL, 0, 2); /* so that the daemon looks in between */
	}
	/* The last of it: a file that is short, or long, or a signal. */
	switch (draw() % 4) {
	case 0:
		(void)!ftruncate(f.fd, (off_t)(draw() % f.l.file_bytes));
		(void)poll(NULL, 0, 5);
		break;
	case 1:
		(void)!ftruncate(f.fd, (off_t)f.l.file_bytes * 2);
		break;
	case 2:
		(void)raise(SIGKILL);
		break;
	default:
		break;
	}
	_exit(0);
}

/* --- the good one --- */

static uint64_t told_head(int ctl, uint32_t lane)
{
	uint64_t head = 0;

	ck_assert_int_eq(pread(ctl, &head, 8, (off_t)(sizeof(struct ring_ctl) + 64ull * lane)), 8);
	return head;
}

static uint64_t stored_count(const char *name)
{
	sqlite3 *s = NULL;
	sqlite3_stmt *q = NULL;
	uint64_t n = 0;

	if (sqlite3_open_v2(db, &s, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK &&
		sqlite3_prepare_v2(s,
			"SELECT sum(c.count) FROM cell c JOIN node n ON n.id = c.node WHERE n.name "
			"= ?1",
			-1, &q, NULL) == SQLITE_OK &&
		sqlite3_bind_text(q, 1, name, -1, SQLITE_STATIC) == SQLITE_OK &&
		sqlite3_step(q) == SQLITE_ROW)
		n = (uint64_t)sqlite3_column_int64(q, 0);
	(void)sqlite3_finalize(q);
	(void)sqlite3_close(s);
	return n;
}

START_TEST(test_neighbour)
{
	struct fake good;
	struct rv_ctl ctl;
	int ctl_fd = -1, status, i, fd = dial();
	uint64_t wrote = 0, tries;
	uint32_t path;
	pid_t pid;

	ck_assert(meet(&good, fd, &ctl, &ctl_fd));
	ck_assert_msg(ctl.code == 0, "%s", ctl.text);
	path = fake_path(&good, 0, fake_name(&good, "the good one"));
	for (i = 0; i < EVIL_JOBS; i++) {
		pid = fork();
		if (pid == 0)
			evil_job((uint64_t)i + 1);
		for (tries = 0; waitpid(pid, &status, WNOHANG) == 0; tries++) {
			ck_assert_uint_lt(tries, 20000);
			if (fake_lane(&good, 0)->tail - told_head(ctl_fd, 0) < FAKE_BYTES / 2) {
				const uint64_t now = mono_ns();

				fake_scope(&good, 0, path, now - 100, now);
				wrote++;
			}
			(void)poll(NULL, 0, 1);
		}
		ck_assert_msg(WIFSIGNALED(status) || WEXITSTATUS(status) == 0,
			"job %d was not let in", i);
	}
	for (tries = 0; told_head(ctl_fd, 0) != fake_lane(&good, 0)->tail; tries++) {
		ck_assert_uint_lt(tries, 5000);
		(void)poll(NULL, 0, 2);
	}
	for (tries = 0; stored_count("the good one") != wrote; tries++) {
		ck_assert_msg(tries < 2500, "%llu of %llu",
			(unsigned long long)stored_count("the good one"),
			(unsigned long long)wrote);
		(void)poll(NULL, 0, 4);
	}
	ck_assert_uint_gt(wrote, 100);
	(void)close(ctl_fd);
	(void)close(fd);
	fake_free(&good);
}
END_TEST

/* Rings that must not be taken, each for its reason; the connection lives on. */
START_TEST(test_refused_rings)
{
	struct fake f;
	struct rv_ctl ctl;
	struct rv_head ping;
	int fd = dial();

	ck_assert(meet(&f, fd, &ctl, NULL));
	ck_assert_int_eq(ctl.code, 0);
	(void)close(fd);
	/* Another job offers this ring as its own. */
	const pid_t pid = fork();
	int status;

	if (pid == 0) {
		struct fake mine;
		struct rv_ring r = {0};
		const int s = dial();

		if (!meet(&mine, s, &ctl, NULL) || ctl.code != 0)
			_exit(1);
		memcpy(r.uuid, f.h.uuid, 16);
		say(s, &r, sizeof(r), RV_RING, &f.fd, 1);
		_exit(hear(s, RV_REFUSED, &ping, sizeof(ping), NULL) ? 0 : 2);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	/* A descriptor of no regular file; then the connection still answers. */
	fd = dial();
	struct rv_ring r = {0};
	struct rv_attach a = {.abi = RING_ABI};
	int p[2];

	say(fd, &a, sizeof(a), RV_ATTACH, NULL, 0);
	ck_assert_int_eq(pipe(p), 0);
	r.uuid[0] = 1;
	say(fd, &r, sizeof(r), RV_RING, p, 1);
	ck_assert(hear(fd, RV_CTL, &ctl, sizeof(ctl), NULL));
	ck_assert_int_eq(ctl.code, -EBADMSG);
	ck_assert_ptr_nonnull(strstr(ctl.text, "regular file"));
	say(fd, &r, sizeof(r), RV_RING, NULL, 0);
	ck_assert(hear(fd, RV_CTL, &ctl, sizeof(ctl), NULL));
	ck_assert_int_eq(ctl.code, -EBADF);
	say(fd, &ping, sizeof(ping), RV_PING, NULL, 0);
	ck_assert(hear(fd, RV_PONG, &ping, sizeof(ping), NULL));
	/* Twice ATTACH: out of order, refused in words, closed. */
	say(fd, &a, sizeof(a), RV_ATTACH, NULL, 0);
	ck_assert(hear(fd, RV_REFUSED, &ping, sizeof(ping), NULL));
	ck_assert(!hear(fd, RV_PONG, &ping, sizeof(ping), NULL));
	(void)close(fd);
	fake_free(&f);
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("daemon_evil");
	TCase *t = tcase_create("evil");

	suite_add_tcase(s, t);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 120);
	tcase_add_test(t, test_neighbour);
	tcase_add_test(t, test_refused_rings);
	return s;
}
