/* SPDX-License-Identifier: MIT. rooms_fake.h: what daemon/query asks, for its tests: a made-up
 * fold, an SQLite in memory, and no jobs but three. The loop is the test's to turn. */
#ifndef ROOMS_FAKE_H
#define ROOMS_FAKE_H

#include "quick.h"
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <sqlite3.h>

#include "attached.h"
#include "daemon.h"
#include "export.h"
#include "fold.h"
#include "host_clock.h"
#include "journal.h"
#include "memfd.h"
#include "schema.h"
#include "sink.h"
#include "store.h"

#define FAKE_SESSIONS 8

struct store {
	sqlite3 *db;
};

struct call {
	struct call *next;
	store_work_fn *work;
	void *arg;
	store_done_fn *done;
	void *done_arg;
};

static struct fake {
	struct daemon d;
	struct lent lent;
	struct store store;
	char dir[64];
	uv_async_t kick;
	struct call *calls, **calls_last;
	struct fold_session live[FAKE_SESSIONS];
	struct fold_refused refused;
	uint64_t sink_lost; /* batches that a second sink did not get */
	char names[FAKE_SESSIONS][128];
	uint32_t n_live;
	bool gone;               /* the process that has a ring is dead */
	asked_fn *finalize_done; /* one finalize waits until somebody says resume */
	void *finalize_arg;
	struct fold_process liar;  /* another one, if it has events */
	uint32_t looks;            /* at attached jobs */
	struct store_prune pruned; /* as it was asked for last */
	_Atomic uint32_t drains, commits;
} fake;

/* --- what the rooms beyond query would give --- */

uint64_t mono_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

int64_t real_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static struct fold_session *fake_session(const uint8_t uuid[16])
{
	uint32_t i;

	for (i = 0; i < fake.n_live; i++)
		if (memcmp(fake.live[i].uuid, uuid, 16) == 0)
			return &fake.live[i];
	return NULL;
}

static int fake_start(const struct j_verb *v)
{
	struct fold_session *s = &fake.live[fake.n_live];

	if (fake.n_live == FAKE_SESSIONS)
		return -ENOSPC;
	(void)snprintf(fake.names[fake.n_live], 128, "%s", v->name);
	*s = (struct fold_session){.id = 100 + (int64_t)fake.n_live,
		.uid = v->uid,
		.source = v->source,
		.match = v->match,
		.pid = v->pid,
		.state = SESSION_IS_ACTIVE,
		.created_ns = real_ns(),
		.active_since_ns = mono_ns(),
		.name = fake.names[fake.n_live],
		.command = "",
		.first_command = ""};
	memcpy(s->uuid, v->session, 16);
	fake.n_live++;
	return 0;
}

int daemon_apply(struct daemon *d, uint16_t type, const uint8_t ring[16], const void *payload,
	uint32_t bytes)
{
	const struct j_verb *v = payload;
	struct fold_session *s = fake_session(v->session);

	(void)d;
	(void)ring;
	ck_assert(type == J_VERB && bytes == sizeof(*v));
	if (v->verb == VERB_START)
		return fake_start(v);
	if (s == NULL)
		abort();
	if (v->verb == VERB_DELETE)
		*s = fake.live[--fake.n_live];
	else if (v->verb < VERB_RENAME)
		s->state = v->verb == VERB_ACTIVATE ? SESSION_IS_ACTIVE : SESSION_IS_INACTIVE;
	return 0;
}

int daemon_when_drained(
	struct daemon *d, int64_t uid, uint32_t timeout_ms, drained_fn *fn, void *arg)
{
	(void)d;
	(void)uid;
	(void)timeout_ms;
	fake.drains++;
	fn(arg, false);
	return 0;
}

void daemon_settle(struct daemon *d, const struct settle_who *who, uint32_t timeout_ms,
	asked_fn *done, void *arg)
{
	static const struct err none;

	(void)d;
	(void)who;
	(void)timeout_ms;
	done(arg, 0, &none);
}

void daemon_commit(struct daemon *d, asked_fn *done, void *arg)
{
	static const struct err none;

	(void)d;
	fake.commits++;
	if (done != NULL)
		done(arg, 0, &none);
}

void daemon_finalize(
	struct daemon *d, const uint8_t session[16], uint32_t timeout_ms, asked_fn *done, void *arg)
{
	struct fold_session *s = fake_session(session);

	(void)d;
	(void)timeout_ms;
	if (s == NULL)
		abort();
	s->state = SESSION_IS_FINALIZING;
	fake.finalize_done = done;
	fake.finalize_arg = arg;
}

static const struct fold_process fake_process = {.id = 1,
	.ring = {9},
	.pid = 777,
	.ns_pid = 777,
	.command = "./train \033[31m",
	.cwd = "/",
	.gpu_text = "",
	.cupti_path = "",
	.version = "0.1.0",
	.rank = 0,
	.local_rank = 0,
	.world_size = 1,
	.gpu_state = 2,
	.events = 10,
	.drops = 1};

uint32_t attached_jobs(const struct intake *i)
{
	(void)i;
	return 1;
}

bool attached_lives(const struct intake *i, const uint8_t ring[16])
{
	(void)i;
	(void)ring;
	return !fake.gone;
}

void attached_each(const struct intake *i, attached_fn *fn, void *arg)
{
	static const char info[] = "command=./train --fast\0cwd=/tmp\0rank=3";

	(void)i;
	fake.looks++;
	fn(arg, 4242, (uint32_t)getuid(), NULL, info, sizeof(info), 0, "");
	fn(arg, 4242, 12345, NULL, info, 7, 0,
		""); /* another user's of that number, its info cut */
	fn(arg, 777, (uint32_t)getuid(), fake_process.ring, info, sizeof(info), 0,
		""); /* the fold has it */
}

uint32_t fold_open_scopes(
	const struct fold *x, const uint8_t ring[16], struct j_now *ret, uint32_t n)
{
	(void)x;
	(void)ring;
	ck_assert_uint_ge(n, 3);
	ret[0] = (struct j_now){.lane = 0, .tid = 7, .depth = 1, .path = 1, .begin = 1};
	ret[1] = (struct j_now){.lane = 0, .tid = 7, .depth = 2, .path = 2, .begin = 0};
	ret[2] = (struct j_now){.lane = 1, .tid = 8, .depth = 1, .path = 3, .begin = 1};
	return 3;
}

/* Also: lets the finalize that waits end. */
uint32_t attached_pause(struct intake *i, uint32_t pid, uint32_t uid, bool pause)
{
	static const struct err none;
	asked_fn *done = fake.finalize_done;

	(void)i;
	(void)pid;
	(void)uid;
	if (!pause && done != NULL) {
		fake.finalize_done = NULL;
		done(fake.finalize_arg, 0, &none);
	}
	return 1;
}

void export_session(struct daemon *d, uint32_t uid, const uint8_t session[16], const char *format,
	uint32_t phases, export_done_fn *done, void *arg)
{
	struct export_result x = {
		.fd = memfd_create("x", MFD_CLOEXEC), .bytes = 3, .name = "x.hatchet"};
	struct err e = {.code = 0};

	(void)d;
	(void)uid;
	(void)session;
	(void)phases;
	if (strcmp(format, "hatchet") != 0) {
		(void)close(x.fd);
		done(arg, err_set(&e, -EINVAL, "no format '%s'", format), &e, NULL);
		return;
	}
	ck_assert_int_eq(write(x.fd, "abc", 3), 3);
	done(arg, 0, &e, &x);
}

void fold_each_session(const struct fold *f, fold_session_fn *fn, void *arg)
{
	uint32_t i;

	(void)f;
	for (i = 0; i < fake.n_live; i++)
		fn(arg, &fake.live[i]);
}

struct fold_refused fold_refused(const struct fold *f)
{
	(void)f;
	return fake.refused;
}

int fold_refused_words(const struct fold *f, uint32_t uid, int code, struct err *e)
{
	(void)f;
	return err_set(e, code, "user %u has 256 sessions", uid);
}

void fold_each_process(const struct fold *f, fold_process_fn *fn, void *arg)
{
	struct fold_process p = fake_process;

	(void)f;
	p.uid = (uint32_t)getuid();
	fn(arg, &p);
	if (fake.liar.events > 0)
		fn(arg, &fake.liar);
}

bool fold_get_session(const struct fold *f, const uint8_t uuid[16], struct fold_session *ret)
{
	const struct fold_session *s = fake_session(uuid);

	(void)f;
	if (s != NULL)
		*ret = *s;
	return s != NULL;
}

bool fold_get_process(const struct fold *f, const uint8_t ring[16], struct fold_process *ret)
{
	(void)f;
	*ret = fake_process;
	return memcmp(ring, fake_process.ring, 16) == 0;
}

void fold_each_memory(
	const struct fold *f, const uint8_t session[16], fold_memory_fn *fn, void *arg)
{
	(void)f;
	(void)session;
	(void)fn;
	(void)arg;
}

bool fold_is_member(const struct fold *f, const uint8_t session[16], const uint8_t ring[16])
{
	(void)f;
	(void)session;
	return memcmp(ring, fake_process.ring, 16) == 0;
}

/* It is in all of them. */
uint32_t fold_sessions_of(const struct fold_process *p, int64_t uid, int64_t *ret_ids, uint32_t n)
{
	uint32_t i, k = 0;

	ck_assert_mem_eq(p->ring, fake_process.ring, 16);
	for (i = 0; i < fake.n_live && k < n; i++)
		if (uid < 0 || fake.live[i].uid == (uint64_t)uid)
			ret_ids[k++] = fake.live[i].id;
	return k;
}

int fold_path_text(const struct fold *f, const uint8_t ring[16], uint32_t path, char *buf, size_t n)
{
	(void)f;
	(void)ring;
	return snprintf(buf, n, "path%u", path);
}

uint32_t fold_open_launches(
	const struct fold *f, const uint8_t ring[16], struct fold_launch *ret, uint32_t n)
{
	(void)f;
	(void)ring;
	ck_assert_uint_ge(n, 1);
	*ret = (struct fold_launch){
		.mono_ns = 5, .path = 4, .name = "spin", .running = true, .stream = 7};
	return 1;
}

size_t fold_properties_text(
	const struct fold *f, const uint8_t ring[16], uint32_t path, char *buf, size_t n)
{
	(void)f;
	(void)ring;
	return path == 2 ? (size_t)snprintf(buf, n, "seq=17") : 0;
}

uint64_t fold_mono_ns(const struct fold *f, const uint8_t ring[16], uint64_t clock)
{
	(void)f;
	(void)ring;
	return clock;
}

void fold_each_busy(const struct fold *f, const uint8_t session[16], fold_busy_fn *fn, void *arg)
{
	(void)f;
	(void)session;
	(void)fn;
	(void)arg;
}

void fold_each_told(const struct fold *f, const uint8_t session[16], fold_told_fn *fn, void *arg)
{
	(void)f;
	(void)session;
	(void)fn;
	(void)arg;
}

/* As many long cells as asked for: more than a frame takes. */
void fold_top(struct fold *f, const uint8_t session[16], const struct fold_top_wish *w,
	fold_cell_fn *fn, void *arg)
{
	char path[900];
	const struct fold_cell c = {
		.path = path, .kind = 1, .class = 1, .count = 2, .sum_ns = 3, .max_ns = 2};
	uint32_t i;

	(void)f;
	(void)session;
	memset(path, 'p', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	for (i = 0; i < w->n; i++)
		fn(arg, &c);
}

uint64_t journal_bytes_since(const struct journal *j, uint64_t position)
{
	(void)j;
	(void)position;
	return 0;
}

const char *store_path(const struct store *s)
{
	(void)s;
	return "/nowhere/protond.db";
}

uint32_t sinks_state(struct sinks *s, struct sink_state *ret, uint32_t n)
{
	(void)s;
	ck_assert_uint_ge(n, 2);
	ret[0] = (struct sink_state){.name = "sqlite", .must_have = true, .lost = 7};
	ret[1] = (struct sink_state){.name = "ship", .lost = fake.sink_lost, .in_gap = true};
	snprintf(ret[1].last.text, sizeof(ret[1].last.text), "nobody listens");
	return 2;
}

uint32_t store_queued(const struct store *s)
{
	(void)s;
	return 0;
}

static void fake_call(
	struct store *s, store_work_fn *work, void *arg, store_done_fn *done, void *done_arg)
{
	struct call *c = calloc(1, sizeof(*c));

	(void)s;
	ck_assert_ptr_nonnull(c);
	*c = (struct call){.work = work, .arg = arg, .done = done, .done_arg = done_arg};
	*fake.calls_last = c;
	fake.calls_last = &c->next;
	(void)uv_async_send(&fake.kick);
}

void store_call(struct store *s, store_work_fn *work, void *arg, store_done_fn *done)
{
	fake_call(s, work, arg, done, arg);
}

void store_ask(struct store *s, enum store_reader_kind kind, store_work_fn *work, void *arg,
	store_done_fn *done)
{
	(void)kind;
	fake_call(s, work, arg, done, arg);
}

int store_delete_session(struct sqlite3 *db, int64_t id, struct err *e)
{
	char sql[64];

	(void)snprintf(sql, sizeof(sql), "DELETE FROM session WHERE id=%ld", (long)id);
	return sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : err_set(e, -EIO, "no");
}

int store_label_session(
	struct sqlite3 *db, int64_t id, enum label_kind kind, const char *text, struct err *e)
{
	(void)db;
	(void)id;
	(void)kind;
	(void)text;
	return err_set(e, -EIO, "no");
}

static int fake_prune(struct sqlite3 *db, void *arg, struct err *e)
{
	struct store_prune *p = arg;

	(void)db;
	(void)e;
	fake.pruned = *p;
	p->went.n = p->before_ns > 0 ? 2 : 0;
	p->first[0].id = 7;
	p->first[1].id = 9;
	(void)snprintf(p->first[0].name, sizeof(p->first[0].name), "old");
	(void)snprintf(p->first[1].name, sizeof(p->first[1].name), "older");
	return 0;
}

void store_prune(struct store *s, struct store_prune *p, store_done_fn *done, void *arg)
{
	fake_call(s, fake_prune, p, done, arg);
}

int store_portable(struct sqlite3 *db, int64_t id, bool timeline, unsigned char **ret,
	int64_t *ret_bytes, struct err *e)
{
	(void)db;
	(void)id;
	(void)timeline;
	*ret = sqlite3_malloc(4);
	if (*ret == NULL)
		return err_set(e, -ENOMEM, "no");
	memcpy(*ret, "SQLi", 4);
	*ret_bytes = 4;
	return 0;
}

/* --- its life --- */

static void fake_on_kick(uv_async_t *a)
{
	struct err e;
	int r;

	(void)a;
	while (fake.calls != NULL) {
		struct call *c = fake.calls;

		fake.calls = c->next;
		if (fake.calls == NULL)
			fake.calls_last = &fake.calls;
		e = (struct err){.code = 0};
		r = c->work(fake.store.db, c->arg, &e);
		c->done(c->done_arg, r, &e);
		free(c);
	}
}

static void sql(const char *text)
{
	char *words = NULL;

	ck_assert_msg(sqlite3_exec(fake.store.db, text, NULL, NULL, &words) == SQLITE_OK, "%s: %s",
		text, words);
}

/* A stored session. */
static inline void store_session(
	int id, const char *name, const char *hex, const char *source, unsigned uid, int created)
{
	char text[1024];

	(void)snprintf(text, sizeof(text),
		"INSERT INTO session(id, uuid, name, uid, source, backend, mode, hook, data,"
		" context, cpu, state, match, pid, command, gpu, created_ns, finalized_ns,"
		" active_ns, launches, matched, daemon_ns)"
		" VALUES(%d, x'%s', '%s', %u, '%s', 'cupti', '', '', 'tree', 'shadow', 'on',"
		" 'finalized', 'all', 0, '', 'on', %d, %d, 5000, 10, 9, 0)",
		id, hex, name, uid, source, created, created + 1);
	sql(text);
}

static bool fake_is_service; /* from the next open on */

static void fake_open(void)
{
	bool fresh;

	fake = (struct fake){.n_live = 0};
	fake.calls_last = &fake.calls;
	(void)snprintf(fake.dir, sizeof(fake.dir), "/tmp/ctl.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(fake.dir));
	(void)snprintf(fake.d.runtime, sizeof(fake.d.runtime), "%s", fake.dir);
	fake.d.runtime_fd = open(fake.dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	fake.d.private = !fake_is_service;
	fake.d.started_mono_ns = mono_ns();
	fake.d.auto_session = "off";
	fake.d.store = &fake.store;
	fake.d.lent = &fake.lent;
	fake.lent.share = share_of(16, true);
	ck_assert_int_eq(sqlite3_open(":memory:", &fake.store.db), SQLITE_OK);
	ck_assert_int_eq(schema_mend(fake.store.db, false, &fresh), SQLITE_OK);
	ck_assert_int_eq(uv_loop_init(&fake.d.loop), 0);
	(void)uv_async_init(&fake.d.loop, &fake.kick, fake_on_kick);
}

/* Every handle must be closed, or closing: one that leaks fails the test by its timeout. */
static inline void fake_close(void)
{
	(void)uv_run(&fake.d.loop, UV_RUN_DEFAULT);
	ck_assert_int_eq(uv_loop_close(&fake.d.loop), 0);
	memfd_forget(&fake.lent);
	(void)close(fake.d.runtime_fd);
	(void)rmdir(fake.dir);
	(void)sqlite3_close(fake.store.db);
}

#endif
