/* SPDX-License-Identifier: MIT. drain_world.h: a daemon at work with one ring, and what its journal has: for tests of how
 * rings are drained. */
#ifndef PROTOND_TESTS_DRAIN_WORLD_H
#define PROTOND_TESTS_DRAIN_WORLD_H

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "adopt.h"
#include "daemon_fake.h"
#include "drain.h"
#include "drained.h"
#include "engine.h"
#include "entry.h"
#include "fold.h"
#include "host_clock.h"
#include "journal.h"
#include "log.h"
#include "loop.h"
#include "rings.h"

static struct protond p;
static struct ring *ring;
static struct fake f;
static char dir[64];

struct seen {
	uint16_t type;
	uint32_t lane, bytes, n; /* n: of a TABLE entry */
	uint64_t from;
	uint32_t which;
	uint32_t sessions, losses, first_id; /* records in a LANE entry */
};
static struct seen seen[4096];
static uint32_t n_seen;
static uint64_t looked;

static inline void look(void);

static inline void setup_sized(uint32_t lane_bytes)
{
	const struct reader_expect x = {
		.uid = (uint32_t)geteuid(), .store = fake_store, .boot_id = fake_boot};
	const struct ring_origin o = {NULL, 0, "test"};
	struct err e = {0};

	memset(&p, 0, sizeof(p));
	protond_bind(&p);
	looked = 0;
	(void)snprintf(dir, sizeof(dir), "/dev/shm/protond-drain-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	p.d.runtime_fd = open(dir, O_RDONLY | O_DIRECTORY);
	p.d.rings_fd = -1;
	p.drain.ns = 3600ull * 1000000000u; /* no test hangs on how busy the machine is */
	p.drain.arena = malloc(DRAIN_BYTES + READER_PIECE);
	ck_assert_msg(journal_open(p.d.runtime_fd, &p.d.journal, &e) == 0, "%s", e.text);
	ck_assert_int_eq(fold_new(NULL, &p.d.fold), 0);
	f = fake_new_sized(lane_bytes);
	fake_tables(&f);
	(void)fake_path(&f, 0, fake_name(&f, "step"));    /* 2 */
	(void)fake_path(&f, 2, fake_name(&f, "forward")); /* 3 */
	ring = ring_add(&p.rings, f.h.uuid);
	ck_assert_msg(ring_open(ring, dup(f.fd), &x, &e) == 0, "%s", e.text);
	ck_assert_int_eq(ring_adopt(ring, &o), 0);
	log_set_level(LOG_ERR);
	look();
}

static inline void setup(void)
{
	setup_sized(FAKE_BYTES);
}

static inline void setup_large(void)
{
	setup_sized(1u << 20);
}

static inline void teardown(void)
{
	char cmd_path[96];

	rings_free(&p.rings);
	fold_free(p.d.fold);
	journal_close(p.d.journal);
	free(p.drain.arena);
	fake_free(&f);
	(void)snprintf(cmd_path, sizeof(cmd_path), "%s/journal.1", dir);
	(void)unlink(cmd_path);
	(void)snprintf(cmd_path, sizeof(cmd_path), "%s/journal.2", dir);
	(void)unlink(cmd_path);
	(void)close(p.d.runtime_fd);
	(void)rmdir(dir);
}

static inline int note(void *arg, const struct journal_entry *e)
{
	const struct j_lane *l = (const void *)(e + 1);
	const struct j_table *t = (const void *)(e + 1);
	const uint8_t *b = (const uint8_t *)(l + 1);
	struct seen *s = &seen[n_seen++];
	uint32_t at, n;
	uint64_t h;

	(void)arg;
	*s = (struct seen){.type = e->type};
	if (e->type == J_TABLE) {
		s->which = t->which;
		s->n = t->n;
	}
	if (e->type == J_NOW)
		s->n = (e->bytes - (uint32_t)sizeof(*e)) / (uint32_t)sizeof(struct j_now);
	if (e->type != J_LANE)
		return 0;
	s->lane = l->lane;
	s->bytes = l->bytes;
	s->from = l->from;
	for (at = 0; at < l->bytes; at += n) {
		memcpy(&h, b + at, 8);
		if (at == 0)
			s->first_id = REC_ID(h);
		n = REC_TYPE(h) == REC_PAD ? REC_ID(h) : REC_BYTES(h);
		ck_assert_uint_gt(n, 0); /* walkable, always */
		s->sessions += REC_TYPE(h) == REC_SESSION;
		s->losses += REC_TYPE(h) == REC_LOST && REC_ID(h) == LOST_BAD;
	}
	ck_assert_uint_eq(at, l->bytes);
	return 0;
}

/* Everything in the journal since the last look. */
static inline void look(void)
{
	int gap;

	ck_assert(entry_flush(&p.entries));
	n_seen = 0;
	ck_assert_int_eq(journal_replay(p.d.journal, looked, note, NULL, &gap), 0);
	looked = journal_position(p.d.journal);
}

static inline int64_t drain(bool *more)
{
	const int64_t n = drain_ring(ring, more);

	look();
	return n;
}

/* The entries of one kind, in order. */
static inline uint32_t pick(uint16_t type, const struct seen **ret, uint32_t n)
{
	uint32_t i, k = 0;

	for (i = 0; i < n_seen && k < n; i++) {
		if (seen[i].type == type)
			ret[k++] = &seen[i];
	}
	return k;
}

#endif
