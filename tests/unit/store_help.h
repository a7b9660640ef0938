/* SPDX-License-Identifier: MIT. store_help.h: what the store's tests share: a database in a
 * directory of its own, batches with something in every table, and waiting for done(). */
#ifndef PROTOND_STORE_HELP_H
#define PROTOND_STORE_HELP_H

#include "quick.h"
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <uv.h>

#include "hist.h"
#include "profile.h"
#include "record.h"
#include "store.h"

static char test_dir[64], test_db[96];
static uv_loop_t test_loop;

struct told { /* what done() said */
	int calls, r;
	struct err err;
};

static inline void test_make_dir(void)
{
	(void)snprintf(test_dir, sizeof(test_dir), "%s/protond-store-XXXXXX",
		access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	ck_assert_ptr_nonnull(mkdtemp(test_dir));
	(void)snprintf(test_db, sizeof(test_db), "%s/protond.db", test_dir);
}

static inline void test_setup(void)
{
	test_make_dir();
	ck_assert_int_eq(uv_loop_init(&test_loop), 0);
}

static inline void test_remove(const char *path)
{
	DIR *d = opendir(path);
	struct dirent *f;
	char name[400];

	while (d != NULL && (f = readdir(d)) != NULL) {
		if (f->d_name[0] == '.')
			continue;
		(void)snprintf(name, sizeof(name), "%s/%s", path, f->d_name);
		(void)unlink(name);
	}
	if (d != NULL)
		(void)closedir(d);
	(void)rmdir(path);
}

static inline void test_teardown(void)
{
	(void)uv_run(&test_loop, UV_RUN_DEFAULT); /* handles are given back */
	ck_assert_int_eq(uv_loop_close(&test_loop), 0);
	test_remove(test_dir);
}

static inline struct store *test_open(void)
{
	struct store *s = NULL;
	struct err e = {0};
	int r = store_open(test_db, &test_loop, &s, &e);

	ck_assert_msg(r == 0, "%d %s", r, e.text);
	return s;
}

static inline void test_told(void *arg, int r, const struct err *e)
{
	struct told *t = arg;

	t->calls++;
	t->r = r;
	t->err = *e;
}

/* Stores a batch and waits for what became of it. */
static inline struct told test_submit(struct store *s, struct batch *b)
{
	struct told t = {0};

	store_submit(s, b, test_told, &t);
	ck_assert_uint_eq(b->cell.n, 0);
	while (t.calls == 0)
		(void)uv_run(&test_loop, UV_RUN_ONCE);
	ck_assert_int_eq(t.calls, 1);
	return t;
}

static inline void test_store(struct store *s, struct batch *b)
{
	struct told t = test_submit(s, b);

	ck_assert_msg(t.r == 0 && t.err.code == 0, "%d %s", t.r, t.err.text);
}

struct call {
	store_work_fn *work;
	void *arg;
	struct told told;
};

static inline int test_call_work(struct sqlite3 *db, void *arg, struct err *e)
{
	struct call *c = arg;

	return c->work(db, c->arg, e);
}

static inline void test_call_done(void *arg, int r, const struct err *e)
{
	test_told(&((struct call *)arg)->told, r, e);
}

/* Runs work on the worker and waits for it. */
static inline struct told test_call(struct store *s, store_work_fn *work, void *arg)
{
	struct call c = {.work = work, .arg = arg};

	store_call(s, test_call_work, &c, test_call_done);
	while (c.told.calls == 0)
		(void)uv_run(&test_loop, UV_RUN_ONCE);
	return c.told;
}

static inline struct batch test_load(struct store *s)
{
	struct batch b = {0};
	struct err e = {0};

	ck_assert_msg(store_load(s, &b, &e) == 0, "%s", e.text);
	return b;
}

static inline void test_hash(uint8_t ret[16], uint32_t n)
{
	uint64_t h = (n + 1) * 0x9e3779b97f4a7c15ull;

	memcpy(ret, &h, 8);
	h = ~h * 31;
	memcpy(ret + 8, &h, 8);
}

/* What makes rows does not ck_assert(): each of those writes to Check's own file, which the tests
 * of a full disk limit as any other.
 *
 * A node below `parent` (UINT32_MAX: it is the root); its name says who it is. */
static inline void test_node(struct batch *b, uint32_t n, uint32_t parent)
{
	struct row_node *row = batch_node(b);
	char name[32];

	if (row == NULL)
		abort();
	(void)snprintf(name, sizeof(name), "node %u", n);
	test_hash(row->hash, n);
	if (parent != UINT32_MAX)
		test_hash(row->parent, parent);
	row->kind = parent == UINT32_MAX ? NODE_ROOT : NODE_SCOPE;
	row->name = batch_text(b, name);
	if (row->name == NULL)
		abort();
}

static inline struct row_cell *test_cell(struct batch *b, int64_t session, uint32_t node)
{
	struct row_cell *c = batch_cell(b);
	struct hist_counts h = {.first = hist_bucket(100), .n = 1};

	if (c == NULL)
		abort();
	c->session = session;
	c->process = session;
	test_hash(c->node, node);
	c->device = UINT32_MAX;
	c->count = 1;
	c->sum_ns = c->min_ns = c->max_ns = 100;
	h.count[h.first] = 1;
	if (!batch_hist(b, c, &h))
		abort();
	return c;
}

static inline struct row_process *test_process(struct batch *b, int64_t id)
{
	struct row_process *p = batch_process(b);

	if (p == NULL)
		abort();
	p->id = id;
	p->started_ns = 1700000000000000000 + id;
	memset(p->ring, (int)id, sizeof(p->ring));
	p->command = strdup("python train.py");
	p->exe = strdup("/usr/bin/python3");
	p->cwd = strdup("/home/user");
	p->rank = p->local_rank = p->world_size = -1;
	return p;
}

static inline struct row_session *test_session(struct batch *b, int64_t id, uint8_t state)
{
	struct row_session *s = batch_session(b);

	if (s == NULL)
		abort();
	s->id = id;
	memset(s->uuid, (int)(0x80 | (id & 0x7f)), sizeof(s->uuid));
	s->created_ns = 1700000000000000000 + id * 1000000000;
	s->state = state;
	s->finalized_ns = state == 4 ? s->created_ns + 500 : 0;
	s->source = SOURCE_RUN;
	s->match = MATCH_PID;
	s->pid = 42;
	s->job_number = UINT32_MAX;
	(void)snprintf(s->name, sizeof(s->name), "session %d", (int)id);
	(void)snprintf(s->backend, sizeof(s->backend), "cupti");
	return s;
}

/* Session `id` with a process of the same id, and cells at the nodes from..to below node 0. */
static inline void test_whole(
	struct batch *b, int64_t id, uint8_t state, uint32_t from, uint32_t to)
{
	struct row_member *m = batch_member(b);

	if (m == NULL)
		abort();
	*m = (struct row_member){id, id};
	test_process(b, id)->ended_ns = state == 4 ? 1700000009000000000 : 0;
	(void)test_session(b, id, state);
	test_node(b, 0, UINT32_MAX);
	for (; from < to; from++) {
		test_node(b, from, 0);
		(void)test_cell(b, id, from);
	}
}

#endif
