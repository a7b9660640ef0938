/* SPDX-License-Identifier: MIT. daemon_query.c: questions asked of daemon/query without any socket,
 * as a front end of another kind would ask them. */
#include "rooms_fake.h"

#include "change.h"
#include "discard.h"
#include "ended.h"
#include "find.h"
#include "handout.h"
#include "inquire.h"
#include "jobs.h"
#include "start.h"
#include "status.h"
#include "top.h"
#include "where.h"

static struct asker me, stranger, root = {.privileged = true};

static void setup(void)
{
	fake_open();
	me = (struct asker){.uid = (uint32_t)getuid(), .pid = 1};
	stranger = (struct asker){.uid = (uint32_t)getuid() + 1, .pid = 2};
}

static void teardown(void)
{
	uv_close((uv_handle_t *)&fake.kick, NULL);
	fake_close();
}

/* An answer, as whoever asked keeps it. */
static struct answer {
	uint32_t times;
	int code;
	char text[512], next[128];
	struct session_ref session[8];
	uint32_t n;
	struct changed changed;
	struct ended_job ended;
	char note[64];
	int fd;
	uint64_t bytes;
} answer;

static void told(const struct refusal *no)
{
	answer.times++;
	answer.code = no != NULL ? no->err.code : 0;
	if (no != NULL) {
		ck_assert_ptr_nonnull(no->next);
		(void)snprintf(answer.text, sizeof(answer.text), "%s", no->err.text);
		(void)snprintf(answer.next, sizeof(answer.next), "%s", no->next);
	}
}

static void wait_for_it(void)
{
	while (answer.times == 0)
		(void)uv_run(&fake.d.loop, UV_RUN_ONCE);
	ck_assert_uint_eq(answer.times, 1);
}

/* --- which session --- */

static void found(void *arg, const struct refusal *no, const struct session_ref *s)
{
	ck_assert((no == NULL) == (s != NULL) && arg == &answer);
	told(no);
	if (s != NULL)
		answer.session[0] = *s;
}

static int64_t find(const struct asker *a, const char *ref)
{
	answer = (struct answer){.times = 0};
	query_session(&fake.d, a, ref, found, &answer);
	wait_for_it();
	return answer.code == 0 ? answer.session[0].id : answer.code;
}

static void store_some(void)
{
	store_session(1, "mine", "aabbccdd000000000000000000000001", "run", me.uid, 1000);
	store_session(2, "theirs", "aabbccee000000000000000000000002", "run", stranger.uid, 2000);
	store_session(3, "auto", "11110000000000000000000000000003", "auto", me.uid, 3000);
}

START_TEST(sessions_are_found_by_whoever_may_see_them)
{
	store_some();
	ck_assert_int_eq(find(&me, "@last"), 1);
	ck_assert_int_eq(find(&me, "mine"), 1);
	ck_assert_int_eq(find(&me, "aabb"), 1); /* the other one does not exist for me */
	ck_assert_int_eq(find(&root, "aabb"), -ENOTUNIQ);
	ck_assert_int_eq(find(&me, "theirs"), -ENOENT);
	ck_assert_ptr_nonnull(strstr(answer.text, "no session 'theirs'"));
	ck_assert_int_eq(find(&me, "2"), -ENOENT);
	ck_assert_int_eq(find(&root, "2"), 2);
	ck_assert_int_eq(find(&stranger, "@last"), 2);
	ck_assert_int_eq(find(&me, "@next"), -EINVAL);
	ck_assert_str_eq(answer.session[0].name, "");
}
END_TEST

static char letters[] = "abcde", order[sizeof(letters)];
static uint32_t n_order;

static int letter_of(struct sqlite3 *db, void *arg, struct err *e)
{
	(void)db;
	(void)e;
	return *(const char *)arg;
}

static void inquired(void *arg, int r, const struct err *e)
{
	(void)e;
	ck_assert_int_eq(r, *(const char *)arg);
	order[n_order++] = *(const char *)arg;
	if (n_order == 1) /* behind those that wait */
		inquire(&fake.d, 1, letter_of, &letters['e' - 'a'], inquired);
}

START_TEST(users_have_the_database_in_turn)
{
	n_order = 0;
	inquire(&fake.d, 1, letter_of, &letters['a' - 'a'], inquired);
	inquire(&fake.d, 1, letter_of, &letters['c' - 'a'], inquired);
	inquire(&fake.d, 1, letter_of, &letters['d' - 'a'], inquired);
	inquire(&fake.d, 2, letter_of, &letters['b' - 'a'], inquired);
	while (n_order < 5)
		(void)uv_run(&fake.d.loop, UV_RUN_ONCE);
	ck_assert_mem_eq(order, "abcde", 5);
	ck_assert_ptr_null(fake.d.inquiries);
}
END_TEST

/* The store's last answers come when jobs and clients are gone. */
START_TEST(nothing_is_found_when_the_daemon_ends)
{
	store_some();
	answer = (struct answer){.times = 0};
	query_session(&fake.d, &me, "mine", found, &answer);
	ck_assert_uint_eq(answer.times, 0);
	fake.d.ends = true;
	wait_for_it();
	ck_assert_int_eq(answer.code, -ESHUTDOWN);
	ck_assert_int_eq(find(&me, "1"), -ESHUTDOWN);
}
END_TEST

static void listed(void *arg, const struct refusal *no, const struct session_list *l)
{
	ck_assert(arg == &answer);
	told(no);
	ck_assert_uint_le(l->n, 8);
	answer.n = l->n;
	memcpy(answer.session, l->session, l->n * sizeof(*l->session));
}

static uint32_t list(const struct asker *a)
{
	answer = (struct answer){.times = 0};
	query_sessions(&fake.d, a, listed, &answer);
	wait_for_it();
	return answer.n;
}

/* --- changes --- */

static void changed(void *arg, const struct refusal *no, const struct changed *c)
{
	ck_assert((no == NULL) == (c != NULL) && arg == &answer);
	told(no);
	if (c != NULL)
		answer.changed = *c;
}

static void ready(void *arg, const struct refusal *no)
{
	ck_assert(arg == &answer);
	told(no);
}

static int start(const struct asker *a, const char *name, uint32_t pid)
{
	struct j_verb wish = {
		.source = SOURCE_CONTROL, .match = pid != 0 ? MATCH_PID : MATCH_USER, .pid = pid};

	(void)snprintf(wish.name, sizeof(wish.name), "%s", name);
	answer = (struct answer){.times = 0};
	query_start(&fake.d, a, &wish, changed, &answer);
	wait_for_it();
	return answer.code;
}

START_TEST(list_lays_the_live_over_the_stored)
{
	store_some();
	ck_assert_int_eq(start(&me, "live", 0), 0);
	ck_assert_uint_eq(answer.changed.jobs, 2);
	ck_assert(answer.changed.settled);
	ck_assert_uint_eq(list(&me), 3);
	ck_assert_int_eq(answer.session[0].id, 100); /* newest first */
	ck_assert(answer.session[0].live && answer.session[0].state == SESSION_IS_ACTIVE);
	ck_assert(!answer.session[1].live && answer.session[1].id == 3);
	ck_assert_uint_eq(list(&stranger), 1);
	ck_assert_uint_eq(list(&root), 4);
}
END_TEST

/* The jobs of a command are counted for a session that there is, and for no other. */
START_TEST(what_is_refused_looks_at_no_job)
{
	struct j_verb wish = {.source = SOURCE_CONTROL,
		.match = MATCH_COMMAND,
		.name = "fast",
		.command = "*tr[a-c]in*fast"};

	answer = (struct answer){.times = 0};
	query_start(&fake.d, &me, &wish, changed, &answer);
	ck_assert_int_eq(answer.code, 0);
	ck_assert_uint_eq(answer.changed.jobs, 1); /* mine without a ring */
	ck_assert_uint_eq(fake.looks, 1);
	query_start(&fake.d, &me, &wish, changed, &answer);
	ck_assert_int_eq(answer.code, -EEXIST);
	while (fake.n_live < FAKE_SESSIONS) {
		(void)snprintf(wish.name, sizeof(wish.name), "fast%u", fake.n_live);
		query_start(&fake.d, &me, &wish, changed, &answer);
		ck_assert_int_eq(answer.code, 0);
	}
	ck_assert_uint_eq(fake.looks, FAKE_SESSIONS);
	(void)snprintf(wish.name, sizeof(wish.name), "surplus");
	query_start(&fake.d, &me, &wish, changed, &answer);
	ck_assert_int_eq(answer.code, -ENOSPC);
	ck_assert_uint_eq(fake.looks, FAKE_SESSIONS);
}
END_TEST

/* Neither another user's job of that number nor what a dead process left stands for the asker's. */
START_TEST(a_pid_is_of_the_askers_that_live)
{
	ck_assert_int_eq(start(&me, "mine", 4242), 0);
	ck_assert_uint_eq(answer.changed.session.uid, me.uid);
	ck_assert_uint_eq(answer.changed.jobs, 1);
	ck_assert_int_eq(start(&me, "theirs", 4243), -ESRCH);
	ck_assert_int_eq(start(&me, "living", 777), 0);
	fake.gone = true;
	ck_assert_int_eq(start(&me, "dead", 777), -ESRCH);
}
END_TEST

/* The fold still has it, and the store has it no more, or not yet. */
START_TEST(list_leaves_out_what_was_deleted)
{
	store_some();
	ck_assert_int_eq(start(&me, "ended", 0), 0);
	fake.live[0].state = SESSION_IS_FINALIZED;
	ck_assert_uint_eq(list(&me), 3);
	fake.live[0].stored = true;
	ck_assert_uint_eq(list(&me), 2);
	ck_assert_int_eq(find(&me, "ended"), -ENOENT);
}
END_TEST

START_TEST(a_session_is_made_and_ended)
{
	struct session_ref s;
	struct refusal no;

	ck_assert_int_eq(start(&me, "one", 4242), 0);
	s = answer.changed.session;
	ck_assert_int_eq(s.id, 100);
	ck_assert_str_eq(s.name, "one");
	ck_assert_int_eq(start(&me, "one", 0), -EEXIST);
	ck_assert_int_eq(start(&stranger, "x", 4242), -ESRCH); /* not his job */
	ck_assert_int_eq(query_deactivate(&fake.d, &s, &no), 0);
	ck_assert_int_eq(find(&me, "one"), 100);
	s = answer.session[0];
	ck_assert_int_eq(s.state, SESSION_IS_INACTIVE);
	answer = (struct answer){.times = 0};
	query_delete(&fake.d, &s, false, ready, &answer);
	ck_assert_int_eq(answer.code, -EBUSY);
	answer = (struct answer){.times = 0};
	query_delete(&fake.d, &s, true, ready, &answer);
	wait_for_it();
	ck_assert_int_eq(answer.code, 0);
	ck_assert_uint_eq(fake.n_live, 0);
	s.live = false;
	ck_assert_int_eq(query_activate(&fake.d, &s, &no), -EALREADY);
	ck_assert_int_eq(
		query_may_prune(&me, &(struct prune_wish){.all_users = true}, &no), -EPERM);
	ck_assert_int_eq(query_may_prune(&me, &(struct prune_wish){.keep = 1}, &no), 0);
	ck_assert_int_eq(query_may_stop(&stranger, &no), -EPERM);
}
END_TEST

START_TEST(a_finalize_answers_when_it_is_stored)
{
	ck_assert_int_eq(start(&me, "f", 0), 0);
	ck_assert_int_eq(find(&me, "f"), 100);
	answer.times = 0;
	query_finalize(&fake.d, &me, &answer.session[0], 1000, changed, &answer);
	ck_assert_uint_eq(answer.times, 0);
	fake.live[0].launches = 7;
	(void)attached_pause(NULL, 0, 0, false); /* now it is */
	ck_assert_uint_eq(answer.times, 1);
	ck_assert_uint_eq(answer.changed.session.launches, 7);
}
END_TEST

/* --- jobs, where, top, status --- */

struct seen {
	uint32_t n, ringless, in;
	char command[64];
};

static void job_seen(void *arg, const struct job_view *j)
{
	struct seen *s = arg;

	s->n++;
	s->ringless += j->process == NULL;
	s->in += j->n_sessions;
	(void)snprintf(s->command, sizeof(s->command), "%s", j->command);
}

START_TEST(jobs_are_shown_to_their_owner)
{
	struct seen s = {.n = 0};

	ck_assert_int_eq(start(&me, "live", 0), 0);
	ck_assert_int_eq(query_jobs(&fake.d, &me, false, job_seen, &s), 0);
	ck_assert_uint_eq(s.n, 2);
	ck_assert_uint_eq(s.ringless, 1);
	ck_assert_uint_eq(s.in, 1); /* the fake says that the one with a ring is */
	ck_assert_str_eq(s.command, "./train --fast");
	s = (struct seen){.n = 0};
	ck_assert_int_eq(query_jobs(&fake.d, &root, false, job_seen, &s), 0);
	ck_assert_uint_eq(s.n, 3);
	s = (struct seen){.n = 0};
	ck_assert_int_eq(query_jobs(&fake.d, &stranger, false, job_seen, &s), 0);
	ck_assert_uint_eq(s.n, 0);
}
END_TEST

static void looked(void *arg, const struct refusal *no, struct where *w)
{
	char path[16];
	size_t n;

	ck_assert(arg == &answer);
	told(no);
	answer.n = w->n;
	if (w->n == 0)
		return;
	ck_assert_uint_eq(w->job[0].pid, 777);
	ck_assert_uint_eq(where_scopes(w, &w->job[0]), 3);
	ck_assert_uint_eq(w->scope[1].depth, 2);
	ck_assert_uint_eq(w->scope[1].since_ns, 0); /* begun before it was recorded */
	n = where_path(w, &w->job[0], w->scope[1].path, path, sizeof(path));
	ck_assert_uint_eq(n, 5);
	ck_assert_str_eq(path, "path2");
	ck_assert_uint_eq(where_path(w, &w->job[0], 1, path, 4), 3); /* cut */
	ck_assert_uint_eq(where_launches(w, &w->job[0]), 1);
	ck_assert_str_eq(w->launch[0].name, "spin");
}

START_TEST(where_reads_the_rings)
{
	const struct where_wish any = {.pid = 0}, other = {.pid = 4711};

	answer = (struct answer){.times = 0};
	query_where(&fake.d, &me, &any, looked, &answer);
	wait_for_it();
	ck_assert_uint_eq(answer.n, 1);
	answer = (struct answer){.times = 0};
	query_where(&fake.d, &me, &other, looked, &answer);
	ck_assert_uint_eq(answer.n, 0);
	answer = (struct answer){.times = 0};
	query_where(&fake.d, &stranger, &any, looked, &answer);
	ck_assert_uint_eq(answer.n, 0);
}
END_TEST

static void ended_told(void *arg, const struct refusal *no, const struct ended_list *l)
{
	ck_assert(arg == &answer && !l->more);
	told(no);
	answer.n = l->n;
	if (l->n == 0)
		return;
	answer.ended = l->job[0];
	ck_assert_uint_eq(l->job[0].n_notes, 2);
	ck_assert_str_eq(l->job[0].end, "killed");
	(void)snprintf(answer.note, sizeof(answer.note), "%s", l->job[0].note[1]);
}

START_TEST(what_the_dead_left_is_stored)
{
	sql("INSERT INTO process VALUES(5, x'0505', 'h', x'00', 4711, 1, 4711, 0, NULL, NULL, "
	    "'./dead', '', '/',"
	    " NULL, 2, NULL, NULL, 1, 2, 'killed', 'live', '', 0, 0, '', 0, 0, '', 0, 0, 1, 0, 1, "
	    "65536, 0, 0, 0, x'')");
	sql("INSERT INTO note VALUES(1, 5, 0, 9, 'was in step'), (1, 5, 1, 10, 'spin ran')");
	answer = (struct answer){.times = 0};
	query_ended(&fake.d, &root, 0, 4711, ended_told, &answer);
	wait_for_it();
	ck_assert_uint_eq(answer.n, 1);
	ck_assert_int_eq(answer.ended.rank, 2);
	ck_assert_str_eq(answer.note, "spin ran");
	answer = (struct answer){.times = 0};
	query_ended(&fake.d, &stranger, 0, 4711, ended_told, &answer);
	wait_for_it();
	ck_assert_uint_eq(answer.n, 0);
}
END_TEST

START_TEST(top_says_what_to_do_where_nothing_is_live)
{
	answer = (struct answer){.times = 0};
	query_top_session(&fake.d, &me, found, &answer);
	ck_assert_int_eq(answer.code, -ENOENT);
	ck_assert_ptr_nonnull(strstr(answer.next, "protonctl run"));
	ck_assert_int_eq(start(&me, "t", 0), 0);
	answer = (struct answer){.times = 0};
	query_top_session(&fake.d, &me, found, &answer);
	ck_assert_int_eq(answer.session[0].id, 100);
}
END_TEST

START_TEST(status_counts)
{
	struct backend_state backend[BACKENDS_MAX];
	struct daemon_status s;

	ck_assert_int_eq(start(&me, "t", 0), 0);
	fake.d.unable_jobs = 1;
	fake.d.unable_uid = me.uid;
	query_status(&fake.d, &me, &s);
	ck_assert_uint_eq(s.sessions, 1);
	ck_assert_uint_eq(s.events, 10);
	ck_assert_uint_eq(s.gpu[GPU_ON], 1);
	ck_assert_uint_eq(s.n_warnings, 2); /* drops, and the job that could not */
	query_status(&fake.d, &stranger, &s);
	ck_assert_uint_eq(s.n_warnings, 0);
	fake.sink_lost = 3; /* a second sink: the store's own are another matter */
	query_status(&fake.d, &stranger, &s);
	fake.sink_lost = 0;
	ck_assert_uint_eq(s.n_warnings, 1);
	ck_assert_str_eq(s.warning[0], "ship did not get 3 batches and is behind: nobody listens");
	fake.liar = (struct fold_process){
		.ring = {8}, .uid = stranger.uid, .events = UINT64_MAX, .drops = UINT64_MAX - 5};
	query_status(&fake.d, &me, &s);
	ck_assert_uint_eq(s.events, UINT64_MAX);
	ck_assert_uint_eq(s.drops, UINT64_MAX - 4);
	ck_assert_ptr_nonnull(strstr(s.warning[0], "1 events were dropped;"));
	ck_assert_ptr_eq(strstr(s.warning[0], "1 events"), s.warning[0]);
	fake.liar = (struct fold_process){.ended = true};
	ck_assert_uint_eq(query_backends(&fake.d, &me, backend), 2);
	ck_assert_str_eq(backend[0].state, "unknown");
}
END_TEST

/* Who says what cannot be is left out of the sums, and named to who may see it. */
START_TEST(status_leaves_out_what_is_forged)
{
	struct daemon_status honest, s;

	query_status(&fake.d, &root, &honest);
	fake.liar = (struct fold_process){
		.uid = me.uid + 1, .events = UINT64_MAX, .drops = UINT64_MAX, .forged = true};
	query_status(&fake.d, &root, &s);
	ck_assert_uint_eq(s.events, honest.events);
	ck_assert_uint_eq(s.drops, honest.drops);
	ck_assert_uint_eq(s.n_warnings, honest.n_warnings + 1);
	ck_assert_ptr_nonnull(strstr(s.warning[honest.drops > 0],
		"1 job claims more events than there was time for, and is not counted here"));
	query_status(&fake.d, &me, &s);
	ck_assert_uint_eq(s.n_warnings, honest.n_warnings);
}
END_TEST

static void handed_out(void *arg, const struct refusal *no, int fd, uint64_t bytes)
{
	ck_assert(arg == &answer);
	told(no);
	answer.fd = fd;
	answer.bytes = bytes;
}

START_TEST(a_session_is_handed_out_as_a_file)
{
	char text[8] = "";

	store_some();
	ck_assert_int_eq(find(&me, "mine"), 1);
	answer.times = 0;
	query_portable(&fake.d, &me, &answer.session[0], false, handed_out, &answer);
	wait_for_it();
	ck_assert_int_eq(pread(answer.fd, text, 8, 0), 4);
	ck_assert_uint_eq(answer.bytes, 4);
	(void)close(answer.fd);
}
END_TEST

/* --- callers that break the contract --- */

static void never(void *arg, const struct refusal *no, const struct store_prune *gone)
{
	(void)arg;
	(void)no;
	(void)gone;
}

START_TEST(a_prune_that_nobody_was_asked_about)
{
	(void)rmdir(fake.dir); /* nobody will */
	query_prune(
		&fake.d, &me, &(struct prune_wish){.max_bytes = 1, .all_users = true}, never, NULL);
}
END_TEST

START_TEST(scopes_of_a_question_that_was_never_asked)
{
	static struct {
		char before[1 << 18];
		struct where w;
	} mine;

	(void)rmdir(fake.dir);
	(void)where_scopes(&mine.w, &mine.w.job[0]);
}
END_TEST

static void add_tests(TCase *t)
{
	tcase_add_test(t, users_have_the_database_in_turn);
	tcase_add_test(t, sessions_are_found_by_whoever_may_see_them);
	tcase_add_test(t, nothing_is_found_when_the_daemon_ends);
	tcase_add_test(t, list_lays_the_live_over_the_stored);
	tcase_add_test(t, what_is_refused_looks_at_no_job);
	tcase_add_test(t, a_pid_is_of_the_askers_that_live);
	tcase_add_test(t, list_leaves_out_what_was_deleted);
	tcase_add_test(t, a_session_is_made_and_ended);
	tcase_add_test(t, a_finalize_answers_when_it_is_stored);
	tcase_add_test(t, jobs_are_shown_to_their_owner);
	tcase_add_test(t, where_reads_the_rings);
	tcase_add_test(t, what_the_dead_left_is_stored);
	tcase_add_test(t, top_says_what_to_do_where_nothing_is_live);
	tcase_add_test(t, status_counts);
	tcase_add_test(t, status_leaves_out_what_is_forged);
	tcase_add_test(t, a_session_is_handed_out_as_a_file);
	tcase_add_test_raise_signal(t, a_prune_that_nobody_was_asked_about, SIGABRT);
	tcase_add_test_raise_signal(t, scopes_of_a_question_that_was_never_asked, SIGABRT);
}

Suite *suite(void)
{
	Suite *s = suite_create("daemon_query");
	TCase *t = tcase_create("all");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	add_tests(t);
	suite_add_tcase(s, t);
	return s;
}
