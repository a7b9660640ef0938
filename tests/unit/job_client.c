/* SPDX-License-Identifier: MIT. job_client.c: tests of libprotond against a small daemon: the whole
 * way of a job, in one process. */
#include "job_daemon.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "doorbell.h"
#include "park.h"
#include "protond.h"
#include "thread.h"

#define RECORD ((uint32_t)(WANT_SCOPES | WANT_CPU_TIME | WANT_METRICS))

protond_engine_fn protond_engine_v1;
/* pulls the engine into this program, where load.c finds it */
extern protond_engine_fn *const job_engine;
protond_engine_fn *const job_engine = protond_engine_v1;

/* check forks each test, and libprotond's thread runs by then. */
__attribute__((visibility("default"))) const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
	return "die_after_fork=0";
}

static struct fake f;
static struct seen *seen;

static void on_record(void *arg, const struct view *v, uint32_t lane, const uint64_t *rec)
{
	(void)arg;
	if (seen != NULL)
		seen_fn(seen, v, lane, rec);
}

static void place(uint32_t want)
{
	fake_place(&f, want);
	f.on_record = on_record;
}

static void done(void)
{
	fake_clean(&f);
}

static const struct protond_options none = {.backend = "none"};

static uint64_t count(const struct seen *s)
{
	uint64_t n;

	pthread_mutex_lock(&f.lock);
	n = s->count;
	pthread_mutex_unlock(&f.lock);
	return n;
}

static void scope(const char *name)
{
	protond_scope_enter(protond_name(name));
	protond_scope_exit();
}

/* --- alone --- */

START_TEST(no_daemon)
{
	const uint32_t a = protond_name("a");

	place(0);
	errno = 4711;
	protond_scope_exit();
	protond_scope_enter(a);
	protond_scope_enter(a);
	ck_assert_uint_eq(protond_depth(), 2);
	protond_scope_unwind(1);
	ck_assert_uint_eq(protond_depth(), 1);
	protond_scope_exit();
	protond_scope_exit();
	ck_assert_uint_eq(protond_depth(), 0);
	protond_state_exit();
	protond_op_exit();
	protond_metric_f64(a, 1.5);
	ck_assert_int_eq(protond_start("x", &none), -ENOTCONN);
	ck_assert_ptr_nonnull(strstr(protond_error(), "no protond is running"));
	ck_assert_int_eq(protond_activate(3), -ENOENT);
	ck_assert_int_eq(protond_deactivate(3, 0), -ENOENT);
	ck_assert_int_eq(protond_finalize(3, NULL), -ENOENT);
	ck_assert_int_eq(protond_finalize(PROTOND_ALL, NULL), 0);
	ck_assert_str_eq(protond_error(), "");
	ck_assert_int_eq(protond_finalize(0, "xls"), -EINVAL);
	ck_assert_int_eq(errno, 4711);
	done();
}
END_TEST

static const struct option_case {
	const char *label;
	struct protond_options o;
} bad_options[] = {
	{"backend", {.backend = "nvprof"}},
	{"data", {.data = "bush"}},
	{"context", {.context = "light"}},
	{"hook", {.hook = "fish"}},
};

START_TEST(bad_option)
{
	ck_assert_int_eq(protond_start("x", &bad_options[_i].o), -EINVAL);
	ck_assert_ptr_nonnull(strstr(protond_error(), bad_options[_i].label));
	ck_assert_int_eq(protond_start_with("x", NULL, bad_options[_i].label), -EINVAL);
	ck_assert_ptr_nonnull(strstr(protond_error(), "sync"));
}
END_TEST

START_TEST(names)
{
	static char big[65536];
	uint32_t a, b;

	memset(big, 'n', sizeof(big) - 1);
	a = protond_name(big);
	big[60000] = 'm';
	b = protond_name(big);
	ck_assert_uint_ne(a, b); /* the hash at the end tells them apart */
	ck_assert_uint_eq(protond_name(big), b);
	ck_assert_uint_eq(protond_name("x"), protond_name("x"));
	ck_assert_uint_eq(protond_name(NULL), protond_name(""));
	ck_assert_uint_ne(protond_name_n("a\0b", 3), protond_name_n("a\0c", 3));
	ck_assert_uint_eq(protond_name("(other)"), 0);
	for (int i = 0; i < 70000; i++) {
		char n[32];

		(void)snprintf(n, sizeof(n), "step %d", i);
		a = protond_name(n);
	}
	ck_assert_uint_eq(a, 0);
	ck_assert_uint_eq(protond_name(big), b);
}
END_TEST

/* --- with a daemon --- */

START_TEST(daemon_wants)
{
	struct seen s[] = {{"a", 0, 0}, {"a/b", 0, 0}, {NULL, 0, 0}};

	seen = s;
	place(RECORD);
	fake_start(&f);
	scope("early");
	ck_assert_int_eq(protond_start("s", &none), 0);
	ck_assert_int_eq(protond_start("s", &none), 0);
	protond_scope_enter(protond_name("a"));
	scope("b");
	protond_scope_exit();
	FAKE_WAIT(count(&s[0]) == 1 && count(&s[1]) == 1);
	ck_assert_uint_eq(f.attach.pid, (uint32_t)getpid());
	ck_assert_uint_eq(f.attach.abi, RING_ABI);
	ck_assert_ptr_nonnull(strstr(f.info, "command="));
	ck_assert_int_eq(protond_finalize(0, NULL), 0);
	ck_assert_int_eq(protond_finalize(0, NULL), -ENOENT);
	FAKE_WAIT(f.v.n[REC_SESSION] == 3);
	fake_stop(&f);
	done();
}
END_TEST

START_TEST(wants_nothing_loads_nothing)
{
	place(0);
	fake_start(&f);
	(void)protond_depth(); /* wakes, in this process that check has forked */
	FAKE_WAIT(f.attached == 1 && atomic_load(&pd.settled));
	ck_assert_ptr_null((const void *)atomic_load(&HOT->engine));
	ck_assert_uint_eq(f.rings, 0);
	ck_assert_uint_eq(HOT->gate, GATE_OFF);
	fake_want(&f, RECORD);
	FAKE_WAIT(HOT->gate == GATE_ON);
	FAKE_WAIT(f.rings == 1); /* counted after the answer */
	fake_want(&f, 0);
	FAKE_WAIT(HOT->gate == GATE_OFF);
	fake_stop(&f);
	done();
}
END_TEST

START_TEST(daemon_comes_later)
{
	struct seen s[] = {{"a", 0, 0}, {NULL, 0, 0}};

	seen = s;
	place(RECORD);
	ck_assert_int_eq(protond_start("s", &none), -ENOTCONN); /* now it watches this directory */
	protond_scope_enter(protond_name("a"));
	fake_start(&f);
	FAKE_WAIT(HOT->gate == GATE_ON);
	protond_scope_exit();
	FAKE_WAIT(count(&s[0]) == 1);
	ck_assert_uint_eq(s[0].flags, 1u << SCOPE_BEGAN_BEFORE);
	fake_stop(&f);
	done();
}
END_TEST

START_TEST(daemon_restarts)
{
	struct seen s[] = {{"a", 0, 0}, {"away", 0, 0}, {"b", 0, 0}, {NULL, 0, 0}};
	uint8_t uuid[16];

	seen = s;
	place(RECORD);
	fake_start(&f);
	ck_assert_int_eq(protond_start("s", &none), 0);
	scope("a");
	FAKE_WAIT(count(&s[0]) == 1);
	memcpy(uuid, f.uuid, 16);
	fake_stop(&f);
	scope("away"); /* kept in the ring */
	ck_assert_uint_eq(HOT->gate, GATE_ON);
	fake_start(&f);
	FAKE_WAIT(f.rings == 2);
	scope("b");
	FAKE_WAIT(count(&s[1]) == 1 && count(&s[2]) == 1);
	ck_assert_int_eq(memcmp(uuid, f.uuid, 16), 0);
	ck_assert_uint_eq(view_dropped(&f.v), 0);
	fake_stop(&f);
	done();
}
END_TEST

START_TEST(refused)
{
	place(RECORD);
	f.refuse = -EPERM;
	fake_start(&f);
	ck_assert_int_eq(protond_start("s", &none), -EACCES);
	ck_assert_str_eq(protond_error(), "not you");
	ck_assert_uint_eq(HOT->gate, GATE_OFF);
	f.refuse = 0;
	ck_assert_int_eq(protond_start("s", &none), 0);
	fake_stop(&f);
	done();
}
END_TEST

START_TEST(exports)
{
	char cwd[] = "/tmp/protond-export.XXXXXX", got[64] = "";
	FILE *in;

	place(0);
	f.answer = "[{\"frame\": {}}]\n";
	fake_start(&f);
	ck_assert_ptr_nonnull(mkdtemp(cwd));
	ck_assert_int_eq(chdir(cwd), 0);
	ck_assert_int_eq(protond_start("run", &none), 0);
	ck_assert_msg(protond_finalize(0, "hatchet") == 0, "%s", protond_error());
	in = fopen("run.hatchet", "r");
	ck_assert_ptr_nonnull(in);
	ck_assert_ptr_nonnull(fgets(got, sizeof(got), in));
	(void)fclose(in);
	ck_assert_str_eq(got, f.answer);
	ck_assert_str_eq(f.export.format, "hatchet");
	f.answer = NULL;
	ck_assert_int_eq(protond_start("run", &none), 1);
	ck_assert_int_eq(protond_finalize(1, "hatchet"), -ENOENT);
	ck_assert_str_eq(protond_error(), "no such session");
	ck_assert_int_eq(protond_start("no/such/dir/run", &none), 2);
	f.answer = "x";
	ck_assert_int_eq(protond_finalize(PROTOND_ALL, "hatchet"), -ENOENT);
	ck_assert_int_eq(unlink("run.hatchet"), 0);
	ck_assert_int_eq(rmdir(cwd), 0); /* no half-written file is left */
	fake_stop(&f);
	done();
}
END_TEST

/* --- a daemon that has no room for a session --- */

START_TEST(no_room)
{
	place(0);
	f.began = -EDQUOT;
	fake_start(&f);
	ck_assert_int_eq(protond_start("s", &none), -EDQUOT);
	ck_assert_str_eq(protond_error(), "number 0: no");
	ck_assert_int_eq(protond_activate(0), -ENOENT);
	FAKE_WAIT(HOT->gate == GATE_OFF); /* nothing is recorded for it */
	f.began = 0;
	ck_assert_int_eq(protond_start("s", &none), 1);
	ck_assert_uint_eq(f.began_asks, 2);
	ck_assert_int_eq(protond_finalize(1, NULL), 0);
	ck_assert_uint_eq(f.began_asks, 3); /* whether it has the end */
	fake_stop(&f);
	done();
}
END_TEST

/* It did not say in time: at the end it does. */
START_TEST(no_room_is_said_later)
{
	place(0);
	f.named = true; /* the next daemon finds it */
	f.began = 1;
	fake_start(&f);
	ck_assert_int_eq(protond_start("s", &none), 0);
	ck_assert_str_eq(protond_error(), "");
	f.began = -EDQUOT;
	ck_assert_int_eq(protond_finalize(0, NULL), -EDQUOT);
	ck_assert_str_eq(protond_error(), "number 0: no");
	f.began = 1;
	ck_assert_int_eq(protond_start("s", &none), 1);
	ck_assert_int_eq(protond_finalize(PROTOND_ALL, NULL), 0); /* nor now: nobody knows */
	fake_stop(&f);
	done();
}
END_TEST

/* --- a daemon that does not answer --- */

static _Atomic int waited_for = 1; /* what the call gave that waits for the daemon */

static void *start_other(void *p)
{
	waited_for = protond_start("other", &none);
	return p;
}

static void *finalize_first(void *p)
{
	waited_for = protond_finalize(0, "hatchet");
	return p;
}

static const struct meanwhile_case {
	const char *label;
	void *(*fn)(void *);
	bool first; /* a session is live before */
	int gives;
} meanwhile_cases[] = {
	{"start", start_other, false, 0},
	{"finalize", finalize_first, true, -ENOENT},
};

/* No call that does not wait waits for one that does. */
START_TEST(meanwhile)
{
	const struct meanwhile_case *c = &meanwhile_cases[_i];
	pthread_t th;

	place(RECORD);
	f.mute = !c->first;
	fake_start(&f);
	if (c->first) {
		ck_assert_int_eq(protond_start("s", &none), 0);
		ck_assert_int_eq(protond_start("t", &none), 1);
		f.mute = true;
	}
	waited_for = 1;
	ck_assert_int_eq(pthread_create(&th, NULL, c->fn, NULL), 0);
	FAKE_WAIT(c->first ? f.exports == 1 : f.attached == 1);
	ck_assert_int_eq(protond_activate(1), c->first ? 0 : -ENOENT);
	ck_assert_int_eq(protond_deactivate(1, 0), c->first ? 0 : -ENOENT);
	ck_assert_int_eq(protond_advance_phase(1), c->first ? 1 : -ENOENT);
	ck_assert_int_eq(protond_finalize(1, NULL), c->first ? 0 : -ENOENT);
	ck_assert_int_eq(waited_for, 1); /* still */
	fake_speak(&f, c->first ? 'x' : 'a');
	ck_assert_int_eq(pthread_join(th, NULL), 0);
	ck_assert_int_eq(waited_for, c->gives);
	fake_stop(&f);
	done();
}
END_TEST

static void *start_same(void *p)
{
	*(int *)p = protond_start("same", &none);
	return NULL;
}

/* Each of the threads gets the same session, whoever began it. */
START_TEST(one_name_from_many_threads)
{
	pthread_t th[4];
	int id[4];

	place(RECORD);
	f.mute = true;
	fake_start(&f);
	(void)protond_depth(); /* wakes, in this process that check has forked */
	for (unsigned i = 0; i < 4; i++)
		ck_assert_int_eq(pthread_create(&th[i], NULL, start_same, &id[i]), 0);
	FAKE_WAIT(f.attached == 1);
	fake_speak(&f, 'a');
	for (unsigned i = 0; i < 4; i++) {
		ck_assert_int_eq(pthread_join(th[i], NULL), 0);
		ck_assert_int_eq(id[i], 0);
	}
	ck_assert_int_eq(protond_start("next", &none), 1);
	fake_stop(&f);
	done();
}
END_TEST

/* --- hostile or odd messages --- */

static const struct odd_case {
	const char *label;
	uint32_t magic;
	uint16_t type, bytes, sent;
	bool ends; /* the connection */
} odd[] = {
	{"unknown type", RV_MAGIC, 999, 8, 8, false},
	{"a stray WELCOME", RV_MAGIC, RV_WELCOME, sizeof(struct rv_welcome),
		sizeof(struct rv_welcome), true},
	{"a short WANT", RV_MAGIC, RV_WANT, 8, 8, true},
	{"wrong length", RV_MAGIC, RV_PING, 64, 8, true},
	{"no magic", 1, RV_PING, 8, 8, true},
	{"CTL without a file", RV_MAGIC, RV_CTL, sizeof(struct rv_ctl), sizeof(struct rv_ctl),
		false},
	{"EXPORTED nobody asked for", RV_MAGIC, RV_EXPORTED, sizeof(struct rv_exported),
		sizeof(struct rv_exported), false},
	{"a word", RV_MAGIC, RV_PING, 3, 3, true},
};

START_TEST(odd_message)
{
	const struct odd_case *c = &odd[_i];
	unsigned char buf[RV_MESSAGE_MAX] = {0};
	const struct rv_head h = {c->magic, c->type, c->bytes};
	const struct rv_head ping = {RV_MAGIC, RV_PING, sizeof(ping)};

	place(RECORD);
	fake_start(&f);
	ck_assert_int_eq(protond_start("s", &none), 0);
	memcpy(buf, &h, sizeof(h));
	ck_assert_int_ge(send(f.conn, buf, c->sent, MSG_NOSIGNAL), 0);
	if (c->ends)
		FAKE_WAIT(f.attached == 2); /* it came back */
	ck_assert_uint_eq(HOT->gate, GATE_ON);
	FAKE_WAIT(f.conn >= 0);
	fake_send(&f, &ping, sizeof(ping), -1);
	FAKE_WAIT(f.pongs >= 1);
	fake_stop(&f);
	done();
}
END_TEST

/* --- fork --- */

/* ThreadSanitizer loses count of threads in a child that makes some, and AddressSanitizer's allocator
 * may be locked by the parent's thread at the fork: a child that makes one then waits for ever. */
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#define CAN_FORK 1
START_TEST(fork_child_is_its_own)
{
	struct seen s[] = {{"a", 0, 0}, {"a/child", 0, 0}, {"child", 0, 0}, {NULL, 0, 0}};
	uint8_t parent[16];
	int status, pid;

	seen = s;
	place(RECORD);
	fake_start(&f);
	ck_assert_int_eq(protond_start("s", &none), 0);
	FAKE_WAIT(f.have_view);
	memcpy(parent, f.uuid, 16);
	protond_scope_enter(protond_name("a"));
	pthread_mutex_lock(&f.lock); /* else the fake's thread may be inside of Check, whose lock
					the child would find taken for ever */
	pid = fork();
	if (pid != 0)
		pthread_mutex_unlock(&f.lock);
	if (pid == 0) {
		struct fake g;
		struct seen mine[] = {{"a/child", 0, 0}, {NULL, 0, 0}};

		if (HOT->gate != GATE_WAKE)
			_exit(10); /* silent until its own first call */
		fake_place(&g, RECORD);
		g.on_record = seen_fn;
		g.arg = mine;
		fake_start(&g);
		protond_scope_enter(protond_name("child"));
		if (pd.pid != (uint32_t)getpid())
			_exit(11);
		if (protond_start("mine", &none) != 0)
			_exit(12);
		protond_scope_exit();
		FAKE_WAIT(mine[0].count == 1);
		if ((g.attach.flags & RV_FORKED) == 0 || memcmp(g.attach.parent, parent, 16) != 0)
			_exit(13);
		if (memcmp(g.uuid, parent, 16) == 0 || memcmp(g.v.h->parent, parent, 16) != 0)
			_exit(14);
		fake_stop(&g);
		fake_clean(&g);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "child: %x", (unsigned)status);
	protond_scope_exit();
	FAKE_WAIT(count(&s[0]) == 1);
	ck_assert_uint_eq(s[1].count + s[2].count, 0); /* nothing of the child's in our ring */
	fake_stop(&f);
	done();
}
END_TEST
#endif

/* --- threads --- */

static void *short_life(void *p)
{
	scope("t");
	return p;
}

START_TEST(ten_thousand_threads)
{
	struct seen s[] = {{"t", 0, 0}, {NULL, 0, 0}};
	const unsigned n = 10000;

	seen = s;
	place(RECORD);
	fake_start(&f);
	ck_assert_int_eq(protond_start("s", &none), 0);
	for (unsigned i = 0; i < n; i += 4) {
		pthread_t th[4];

		for (unsigned j = 0; j < 4; j++)
			ck_assert_int_eq(pthread_create(&th[j], NULL, short_life, NULL), 0);
		for (unsigned j = 0; j < 4; j++)
			ck_assert_int_eq(pthread_join(th[j], NULL), 0);
	}
	FAKE_WAIT(count(&s[0]) + view_dropped(&f.v) == n);
	ck_assert_uint_eq(view_dropped(&f.v), 0);
	ck_assert_uint_le(f.v.n[REC_THREAD], n + 8);
	fake_stop(&f);
	done();
}
END_TEST

static pthread_barrier_t all_here;

static void *long_life(void *p)
{
	scope("t");
	(void)pthread_barrier_wait(&all_here);
	return p;
}

START_TEST(more_threads_than_lanes)
{
	enum { N = 4000 };
	static pthread_t th[N];
	struct seen s[] = {{"t", 0, 0}, {NULL, 0, 0}};
	pthread_attr_t small;

	seen = s;
	place(RECORD);
	f.lane_bytes = RING_LANE_BYTES_MIN;
	fake_start(&f);
	ck_assert_int_eq(protond_start("s", &none), 0);
	(void)pthread_attr_init(&small);
	(void)pthread_attr_setstacksize(&small, 65536);
	(void)pthread_barrier_init(&all_here, NULL, N + 1);
	for (unsigned i = 0; i < N; i++)
		ck_assert_int_eq(pthread_create(&th[i], &small, long_life, NULL), 0);
	(void)pthread_barrier_wait(&all_here);
	for (unsigned i = 0; i < N; i++)
		ck_assert_int_eq(pthread_join(th[i], NULL), 0);
	FAKE_WAIT(count(&s[0]) + f.v.c->drop_no_lane == N);
	ck_assert_uint_ge(f.v.c->drop_no_lane, N - RING_LANES);
	fake_stop(&f);
	done();
}
END_TEST

/* --- the rest --- */

static uint64_t context;

static void *in_context(void *p)
{
	protond_context_set(context);
	scope("work");
	ck_assert(protond_context_get() == context);
	protond_context_set(0);
	return p;
}

START_TEST(context_across_threads)
{
	struct seen s[] = {{"a/b/work", 0, 0}, {NULL, 0, 0}};
	pthread_t th;

	seen = s;
	place(RECORD);
	fake_start(&f);
	ck_assert_int_eq(protond_start("s", &none), 0);
	ck_assert(protond_context_get() == 0);
	protond_scope_enter(protond_name("a"));
	protond_scope_enter(protond_name("b"));
	context = protond_context_get();
	ck_assert(context != 0);
	protond_scope_exit();
	protond_scope_exit();
	ck_assert_int_eq(pthread_create(&th, NULL, in_context, NULL), 0);
	ck_assert_int_eq(pthread_join(th, NULL), 0);
	FAKE_WAIT(count(&s[0]) == 1);
	fake_stop(&f);
	done();
}
END_TEST

static bool interrupt;

/* In libc's place: a thread that asks for its number, as the first call does, is interrupted. */
long syscall(long number, ...)
{
	static long (*real)(long, ...);
	void *next;
	va_list list;
	long a[6];

	va_start(list, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(list, long);
	va_end(list);
	if (real == NULL) {
		next = dlsym(RTLD_NEXT, "syscall");
		memcpy(&real, &next, sizeof(real));
	}
	if (number == SYS_gettid && interrupt) {
		interrupt = false;
		(void)raise(SIGUSR1);
	}
	return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static void scope_of_handler(int sig)
{
	(void)sig;
	scope("handler");
}

static void *another(void *main)
{
	scope("another");
	ck_assert_ptr_ne(pd_self, main);
	ck_assert_ptr_eq(pd_host.main_thread(), main);
	return NULL;
}

START_TEST(a_handler_inside_the_main_threads_first_call)
{
	const struct sigaction sa = {.sa_handler = scope_of_handler};
	pthread_t th;

	place(0);
	ck_assert_int_eq(sigaction(SIGUSR1, &sa, NULL), 0);
	interrupt = true;
	scope("a");
	ck_assert(!interrupt);
	ck_assert_ptr_eq(pd_host.main_thread(), pd_self);
	ck_assert_int_eq(pthread_create(&th, NULL, another, pd_self), 0);
	ck_assert_int_eq(pthread_join(th, NULL), 0);
	done();
}
END_TEST

START_TEST(descriptors_closed_by_the_program)
{
	struct seen s[] = {{"a", 0, 0}, {NULL, 0, 0}};
	int rd, wr;

	seen = s;
	place(RECORD);
	fake_start(&f);
	ck_assert_int_eq(protond_start("s", &none), 0);
	scope("a");
	FAKE_WAIT(count(&s[0]) == 1);
	rd = pd.bell.rd; /* the parked thread makes others as soon as it sees that these are gone */
	wr = pd.bell.wr;
	(void)close(rd);
	ck_assert_int_eq(dup2(1, wr), wr); /* now the application's */
	pd_ring();
	scope("a");
	FAKE_WAIT(count(&s[0]) == 2);
	fake_stop(&f);
	done();
}
END_TEST

Suite *suite(void)
{
	const struct timespec ms = {.tv_nsec = 1000000};

	/* The library's thread began with the program. Check forks for each test, and a sanitizer's
	 * allocator does not survive a fork while another thread is inside of it. */
	while (atomic_load(&pd.parked) && !atomic_load(&pd.settled))
		(void)nanosleep(&ms, NULL);
	Suite *s = suite_create("job_client");
	TCase *c = tcase_create("client");

	tcase_set_timeout(c, 60);
	tcase_add_test(c, no_daemon);
	tcase_add_loop_test(c, bad_option, 0, (int)(sizeof(bad_options) / sizeof(*bad_options)));
	tcase_add_test(c, names);
	tcase_add_test(c, daemon_wants);
	tcase_add_test(c, wants_nothing_loads_nothing);
	tcase_add_test(c, daemon_comes_later);
	tcase_add_test(c, daemon_restarts);
	tcase_add_test(c, refused);
	tcase_add_test(c, exports);
	tcase_add_loop_test(
		c, meanwhile, 0, (int)(sizeof(meanwhile_cases) / sizeof(*meanwhile_cases)));
	tcase_add_test(c, no_room);
	tcase_add_test(c, no_room_is_said_later);
	tcase_add_test(c, one_name_from_many_threads);
	tcase_add_loop_test(c, odd_message, 0, (int)(sizeof(odd) / sizeof(*odd)));
#ifdef CAN_FORK
	tcase_add_test(c, fork_child_is_its_own);
#endif
	tcase_add_test(c, ten_thousand_threads);
	tcase_add_test(c, more_threads_than_lanes);
	tcase_add_test(c, context_across_threads);
	tcase_add_test(c, a_handler_inside_the_main_threads_first_call);
	tcase_add_test(c, descriptors_closed_by_the_program);
	suite_add_tcase(s, c);
	return s;
}
