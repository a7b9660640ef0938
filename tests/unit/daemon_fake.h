/* SPDX-License-Identifier: MIT. daemon_fake.h: a job for the daemon's tests: a ring in a memfd,
 * written from ring.h and record.h alone, lawful until a test says otherwise. */
#ifndef DAEMON_FAKE_H
#define DAEMON_FAKE_H

#include "quick.h"
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "record.h"
#include "ring.h"

#define FAKE_LANES 20u
#define FAKE_BYTES RING_LANE_BYTES_MIN

static const uint8_t fake_store[16] = "store of a test", fake_boot[16] = "boot of a test.";

struct fake {
	int fd;
	uint8_t *mem;
	struct ring_header h; /* as written */
	struct ring_layout l;
};

static inline struct ring_header fake_header(void)
{
	struct ring_header h = {
		.magic = RING_MAGIC,
		.abi = RING_ABI,
		.header_bytes = sizeof(h),
		.uuid = "uuid of a ring.",
		.pid = (uint32_t)getpid(),
		.uid = (uint32_t)geteuid(),
		.pid_start = 4711,
		.clock = RING_CLOCK_MONOTONIC,
		.n_lanes = FAKE_LANES,
		.lane_bytes = FAKE_BYTES,
		.path_cap = 2 * PATH_OTHER_RESERVE,
		.name_cap = 1024,
		.name_bytes_cap = 65536,
		.config_cap = 16,
		.device_cap = 4,
	};
	struct ring_layout l;

	memcpy(h.store, fake_store, 16);
	memcpy(h.boot_id, fake_boot, 16);
	ck_assert(ring_layout(&h, &l));
	h.file_bytes = l.file_bytes;
	return h;
}

static inline void fake_map(struct fake *f, int fd, const struct ring_header *h)
{
	f->fd = fd;
	f->h = *h;
	ck_assert(ring_layout(h, &f->l));
	ck_assert_int_eq(ftruncate(fd, (off_t)f->l.file_bytes), 0);
	f->mem = mmap(NULL, f->l.file_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	ck_assert(f->mem != MAP_FAILED);
	memcpy(f->mem, h, sizeof(*h));
}

static inline struct fake fake_new_sized(uint32_t lane_bytes)
{
	struct fake f;
	struct ring_header h = fake_header();
	struct ring_layout l;

	h.lane_bytes = lane_bytes;
	ck_assert(ring_layout(&h, &l));
	h.file_bytes = l.file_bytes;
	fake_map(&f, memfd_create("ring", MFD_CLOEXEC), &h);
	return f;
}

static inline struct fake fake_new(void)
{
	return fake_new_sized(FAKE_BYTES);
}

static inline void fake_free(struct fake *f)
{
	ck_assert_int_eq(munmap(f->mem, f->l.file_bytes), 0);
	(void)close(f->fd);
}

static inline struct ring_lane *fake_lane(const struct fake *f, uint32_t lane)
{
	return (struct ring_lane *)(void *)(f->mem + f->l.lanes) + lane;
}

static inline struct ring_counts *fake_counts(const struct fake *f)
{
	return (struct ring_counts *)(void *)(f->mem + f->l.counts);
}

static inline uint8_t *fake_at(const struct fake *f, uint32_t lane, uint64_t pos)
{
	return f->mem + f->l.data + (uint64_t)lane * f->h.lane_bytes + pos % f->h.lane_bytes;
}

/* Writes one record behind tail, with a pad where the lap ends, as a job does. No test for room. */
static inline void fake_put(struct fake *f, uint32_t lane, const void *rec, uint32_t bytes)
{
	struct ring_lane *l = fake_lane(f, lane);
	const uint32_t cap = f->h.lane_bytes;
	uint64_t tail = l->tail, h;

	if (tail % cap + bytes > cap) {
		h = REC_HDR(0, REC_PAD, tail / cap, 0, cap - tail % cap);
		memcpy(fake_at(f, lane, tail), &h, 8);
		tail += cap - tail % cap;
	}
	memcpy(fake_at(f, lane, tail), rec, bytes);
	memcpy(&h, rec, 8);
	h |= (uint64_t)(uint8_t)(tail / cap) << 16;
	memcpy(fake_at(f, lane, tail), &h, 8);
	if (l->generation == 0) {
		l->generation = 1;
		l->tid = (uint32_t)getpid() + lane;
		l->state = LANE_LIVE;
	}
	l->tail = tail + bytes;
}

static inline void fake_scope(
	struct fake *f, uint32_t lane, uint32_t path, uint64_t begin, uint64_t end)
{
	const struct rec_scope r = {REC_HDR(sizeof(r), REC_SCOPE, 0, 0, path), begin, end};

	fake_put(f, lane, &r, sizeof(r));
}

static inline void fake_session(struct fake *f, uint32_t lane, enum session_verb verb,
	uint32_t number, uint32_t name, uint64_t clock)
{
	const struct rec_session r = {.hdr = REC_HDR(sizeof(r), REC_SESSION, 0, verb, number),
		.clock = clock,
		.name = name};

	fake_put(f, lane, &r, sizeof(r));
}

static inline void fake_goes_on(struct fake *f, uint32_t lane, uint64_t clock)
{
	const struct rec_thread r = {
		.hdr = REC_HDR(sizeof(r), REC_THREAD, 0, THREAD_GOES_ON, 0), .clock = clock};

	fake_put(f, lane, &r, sizeof(r));
}

static inline uint32_t fake_name(struct fake *f, const char *text)
{
	struct ring_counts *c = fake_counts(f);
	struct ring_name *n = (struct ring_name *)(void *)(f->mem + f->l.names);
	const uint32_t bytes = (uint32_t)strlen(text), id = c->names;

	memcpy(f->mem + f->l.bytes + c->name_bytes, text, bytes);
	n[id] = (struct ring_name){c->name_bytes, bytes, 0};
	c->name_bytes += bytes;
	c->names = id + 1;
	return id;
}

static inline uint32_t fake_path(struct fake *f, uint32_t parent, uint32_t name)
{
	struct ring_counts *c = fake_counts(f);
	struct ring_path *p = (struct ring_path *)(void *)(f->mem + f->l.paths);
	const uint32_t id = c->paths;

	p[id] = (struct ring_path){parent, name, id == 0 ? PATH_KIND_ROOT : PATH_KIND_SCOPE,
		id == 0 ? 0 : (uint16_t)(p[parent].depth + 1), 0};
	c->paths = id + 1;
	return id;
}

/* "" and "(other)", ROOT and (other): what every ring begins with. */
static inline void fake_tables(struct fake *f)
{
	(void)fake_name(f, "");
	(void)fake_name(f, "(other)");
	(void)fake_path(f, 0, NAME_NONE);
	(void)fake_path(f, 0, NAME_OTHER);
}

#endif
