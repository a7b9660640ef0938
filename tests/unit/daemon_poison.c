/* SPDX-License-Identifier: MIT. daemon_poison.c: an entry that ends the daemon when it is applied,
 * in starts and at work: the third daemon leaves it out, and has all the others.
 *
 * Linked with --wrap=fold_apply and fold_has_many: what is poison here is an entry that this file
 * says is.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "adopt.h"
#include "config.h"
#include "daemon_fake.h"
#include "drain.h"
#include "entry.h"
#include "fold.h"
#include "home.h"
#include "journal.h"
#include "leave.h"
#include "log.h"
#include "loop.h"
#include "poison.h"
#include "rings.h"
#include "verbs.h"

#define SKIPPED_AND_WELL 42

static char dir[64];
static struct protond p;

int __real_fold_apply(struct fold *f, const struct journal_entry *e);
int __wrap_fold_apply(struct fold *f, const struct journal_entry *e);

/* A dead process with more than one entry ends: LEAVE comes first, and is the poison then. */
static bool has_many, end_kills;
bool __wrap_fold_has_many(const struct fold *f, const uint8_t ring[16]);

bool __wrap_fold_has_many(const struct fold *f, const uint8_t ring[16])
{
	(void)f;
	(void)ring;
	return has_many;
}

int __wrap_fold_apply(struct fold *f, const struct journal_entry *e)
{
	const struct j_verb *v = (const void *)(e + 1);
	const struct j_lane *l = (const void *)(e + 1);

	if (e->type == J_VERB && strcmp(v->name, "poison") == 0)
		abort();
	if (e->type == J_LEAVE || (e->type == J_END && end_kills))
		abort();
	if (e->type == J_LANE && !has_many && !end_kills && l->from == 0 &&
		l->bytes > sizeof(struct rec_lost))
		abort();
	return __real_fold_apply(f, e);
}

/* Runs fn in a child; its exit status, or -1: it was aborted. */
static int in_child(int (*fn)(void))
{
	const struct rlimit none = {0, 0};
	int status;
	const pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		(void)setrlimit(RLIMIT_CORE, &none);
		(void)signal(SIGABRT, SIG_DFL);
		_exit(fn());
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	if (WIFSIGNALED(status)) {
		ck_assert_int_eq(WTERMSIG(status), SIGABRT);
		return -1;
	}
	return WEXITSTATUS(status);
}

static void setup(void)
{
	(void)snprintf(dir, sizeof(dir), "/dev/shm/protond-poison-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	log_set_level(LOG_ERR);
}

static void teardown(void)
{
	static const char *const names[] = {"journal.1", "journal.2", "journal.3", "applying",
		"store", "lock", "control.sock", "agent.sock", "p.db", "p.db-wal", "p.db-shm",
		"p.db.lock", "rings"};
	char path[128];
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		(void)remove(path);
	}
	ck_assert_int_eq(rmdir(dir), 0);
}

/* --- in starts --- */

static struct j_verb verb_named(const char *name)
{
	struct j_verb v = {.verb = VERB_START,
		.uid = (uint32_t)geteuid(),
		.mono_ns = 1000,
		.source = SOURCE_CONTROL,
		.match = MATCH_PID,
		.pid = 1,
		.gpu = SESSION_GPU_NONE};

	(void)snprintf(v.name, sizeof(v.name), "%s", name);
	(void)snprintf((char *)v.session, sizeof(v.session), "%s", name);
	return v;
}

static bool has(const char *name)
{
	const struct j_verb v = verb_named(name);
	struct fold_session s;

	return fold_get_session(p.d.fold, v.session, &s);
}

static int start(void)
{
	struct err e = {0};
	char db[128];
	int r;

	(void)snprintf(db, sizeof(db), "%s/p.db", dir);
	(void)setenv("PROTOND_RUNTIME_DIR", dir, 1);
	(void)setenv("PROTOND_DB", db, 1);
	protond_bind(&p);
	p.d.private = true;
	p.d.verbs = verb_table;
	if (config_load(&p.config, NULL, true, &e) < 0 || home_open(&p.d, &e) < 0 ||
		protond_init(&p, &e) < 0) {
		(void)fprintf(stderr, "daemon: %s\n", e.text);
		return 1;
	}
	r = p.d.skipped_entries == 0  ? 0
	    : !has("before")          ? 2
	    : !has("after")           ? 3
	    : has("poison")           ? 4
	    : p.d.skipped_entries > 1 ? 5
				      : SKIPPED_AND_WELL;
	protond_fini(&p);
	return r;
}

/* As a daemon that was killed before it stored them would have left them. */
static int journal_three(void)
{
	static const char *const names[] = {"before", "poison", "after"};
	static const uint8_t nobody[16];
	const int fd = open(dir, O_RDONLY | O_DIRECTORY);
	struct journal *j;
	struct err e = {0};
	struct j_verb v;
	void *to;
	size_t i;

	if (journal_open(fd, &j, &e) < 0)
		return 1;
	for (i = 0; i < 3; i++) {
		v = verb_named(names[i]);
		if (journal_stage(j, J_VERB, nobody, sizeof(v), &to) < 0)
			return 2;
		memcpy(to, &v, sizeof(v));
		(void)journal_commit(j, sizeof(v));
	}
	return journal_flush(j) < 0 ? 3 : 0;
}

START_TEST(an_entry_that_killed_two_starts_is_left_out)
{
	ck_assert_int_eq(in_child(start), 0); /* makes the database and the journal */
	ck_assert_int_eq(in_child(journal_three), 0);
	ck_assert_int_eq(in_child(start), -1);
	ck_assert_int_eq(in_child(start), -1);
	ck_assert_int_eq(in_child(start), SKIPPED_AND_WELL);
	ck_assert_int_eq(in_child(start), 0); /* stored without it */
}
END_TEST

/* --- at work --- */

static struct ring *ring;
static struct fake f;

static int drain(void)
{
	struct fold_process did;
	bool more;
	int i;

	poison_open(&p.entries.poison, &p.d);
	for (i = 0; i < 3; i++)
		if (drain_ring(ring, &more) < 0)
			return 1;
	if (!fold_get_process(p.d.fold, ring->uuid, &did) || did.drops == 0)
		return 2;
	return p.d.skipped_entries == 1 &&
			       ring->reader.lane[0].head == atomic_load(&fake_lane(&f, 0)->tail)
		       ? SKIPPED_AND_WELL
		       : 3;
}

/* A daemon at work with one ring, whose thread has done two scopes. */
static void work(void)
{
	const struct reader_expect x = {
		.uid = (uint32_t)geteuid(), .store = fake_store, .boot_id = fake_boot};
	const struct ring_origin o = {NULL, 0, "test"};
	struct err e = {0};

	p.d.runtime_fd = open(dir, O_RDONLY | O_DIRECTORY);
	protond_bind(&p);
	p.d.rings_fd = -1;
	p.drain.ns = 3600ull * 1000000000u;
	p.drain.arena = malloc(DRAIN_BYTES + READER_PIECE);
	ck_assert_msg(journal_open(p.d.runtime_fd, &p.d.journal, &e) == 0, "%s", e.text);
	ck_assert_int_eq(fold_new(NULL, &p.d.fold), 0);
	f = fake_new_sized(FAKE_BYTES);
	fake_tables(&f);
	(void)fake_path(&f, 0, fake_name(&f, "step"));
	ring = ring_add(&p.rings, f.h.uuid);
	ck_assert_msg(ring_open(ring, dup(f.fd), &x, &e) == 0, "%s", e.text);
	ck_assert_int_eq(ring_adopt(ring, &o), 0);
	fake_scope(&f, 0, 2, 10, 20);
	fake_scope(&f, 0, 2, 30, 40);
	p.d.intake = (void *)&f; /* not a start: nobody looks into it */
}

static void no_work(void)
{
	p.d.intake = NULL;
	rings_free(&p.rings);
	fold_free(p.d.fold);
	journal_close(p.d.journal);
	free(p.drain.arena);
	fake_free(&f);
	(void)close(p.d.runtime_fd);
}

START_TEST(an_entry_that_killed_two_daemons_at_work_is_left_out)
{
	work();
	ck_assert_int_eq(in_child(drain), -1);
	ck_assert_int_eq(in_child(drain), -1);
	ck_assert_int_eq(in_child(drain), SKIPPED_AND_WELL);
	no_work();
}
END_TEST

static int leave(void)
{
	struct fold_process did;
	int ticks;

	poison_open(&p.entries.poison, &p.d);
	has_many = true;
	p.drain.ns = 100000000u; /* a tick ends, also where its loop would not */
	ring->state = RING_GONE;
	for (ticks = 0; ticks < 10 && ring->state == RING_GONE; ticks++)
		ring_leave(&p, ring);
	if (ring->state != RING_ENDED)
		return 1;
	return fold_get_process(p.d.fold, ring->uuid, &did) && p.d.skipped_entries > 0
		       ? SKIPPED_AND_WELL
		       : 2;
}

/* All of a ring's are alike: that each is left out must not keep its END waiting. */
START_TEST(a_leave_that_is_left_out_does_not_hold_its_end_up)
{
	work();
	ck_assert_int_eq(in_child(leave), -1);
	ck_assert_int_eq(in_child(leave), -1);
	ck_assert_int_eq(in_child(leave), SKIPPED_AND_WELL);
	no_work();
}
END_TEST

static int end(void)
{
	struct j_verb v = verb_named("of the ring");
	struct fold_process did;
	struct fold_session s;
	struct j_now open = {.lane = 0, .tid = 1, .path = 2};

	poison_open(&p.entries.poison, &p.d);
	end_kills = true;
	v.match = MATCH_RING;
	memcpy(v.ring, ring->uuid, 16);
	if (entry_put(&p.entries, J_VERB, NULL, &v, sizeof(v)) < 0 ||
		entry_put(&p.entries, J_NOW, ring->uuid, &open, sizeof(open)) < 0)
		return 1;
	ring->state = RING_GONE;
	for (int ticks = 0; ticks < 10 && ring->state == RING_GONE; ticks++)
		ring_leave(&p, ring);
	if (ring->state != RING_ENDED || p.d.skipped_entries != 1)
		return 2;
	if (!fold_get_process(p.d.fold, ring->uuid, &did) || !did.ended)
		return 3;
	return fold_get_session(p.d.fold, v.session, &s) && s.state == SESSION_IS_FINALIZED &&
			       s.n_live == 0
		       ? SKIPPED_AND_WELL
		       : 4;
}

START_TEST(an_end_that_is_left_out_ends_its_sessions)
{
	work();
	ck_assert_int_eq(in_child(end), -1);
	ck_assert_int_eq(in_child(end), -1);
	ck_assert_int_eq(in_child(end), SKIPPED_AND_WELL);
	no_work();
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("daemon_poison");
	TCase *t = tcase_create("entries");

	suite_add_tcase(s, t);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, an_entry_that_killed_two_starts_is_left_out);
	tcase_add_test(t, an_entry_that_killed_two_daemons_at_work_is_left_out);
	tcase_add_test(t, a_leave_that_is_left_out_does_not_hold_its_end_up);
	tcase_add_test(t, an_end_that_is_left_out_ends_its_sessions);
	return s;
}
