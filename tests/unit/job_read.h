/* SPDX-License-Identifier: MIT. job_read.h: a reader of ring files for the tests, written from
 * ring.h and record.h alone. */
#ifndef JOB_READ_H
#define JOB_READ_H

#ifndef JOB_PLAIN
#include "quick.h"
#else /* in a program that is no test: check's own end in its reports */
#define ck_assert(e)             ((e) ? (void)0 : abort())
#define ck_assert_msg(e, ...)    ck_assert(e)
#define ck_assert_int_eq(a, b)   ck_assert((a) == (b))
#define ck_assert_int_ge(a, b)   ck_assert((a) >= (b))
#define ck_assert_uint_eq(a, b)  ck_assert((a) == (b))
#define ck_assert_uint_lt(a, b)  ck_assert((a) < (b))
#define ck_assert_uint_le(a, b)  ck_assert((a) <= (b))
#define ck_assert_uint_ge(a, b)  ck_assert((a) >= (b))
#define ck_assert_ptr_nonnull(p) ck_assert((p) != NULL)
#define ck_assert_str_eq(a, b)   ck_assert(strcmp((a), (b)) == 0)
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "record.h"
#include "ring.h"

struct view {
	const unsigned char *p;
	struct ring_layout at;
	const struct ring_header *h;
	const struct ring_counts *c;
	uint64_t head[RING_LANES_MAX]; /* what was walked */
	_Atomic uint64_t *ctl;         /* heads, 8 words apart; NULL: none are told */
	uint64_t n[REC_MAX];           /* records by type */
	uint64_t lost;                 /* sum of LOST.count */
	uint64_t bad;
};

static inline void view_open(struct view *v, int fd)
{
	struct stat st;

	memset(v, 0, sizeof(*v));
	ck_assert_int_eq(fstat(fd, &st), 0);
	v->p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	ck_assert(v->p != MAP_FAILED);
	v->h = (const struct ring_header *)(const void *)v->p;
	ck_assert_uint_eq(v->h->magic, RING_MAGIC);
	ck_assert(ring_layout(v->h, &v->at));
	ck_assert_uint_eq(v->at.file_bytes, v->h->file_bytes);
	ck_assert_int_eq(st.st_size, (off_t)v->at.file_bytes);
	v->c = (const struct ring_counts *)(const void *)(v->p + v->at.counts);
}

static inline const struct ring_lane *view_lane(const struct view *v, uint32_t i)
{
	return (const struct ring_lane *)(const void *)(v->p + v->at.lanes) + i;
}

static inline const struct ring_path *view_path(const struct view *v, uint32_t id)
{
	ck_assert_uint_lt(id, v->c->paths);
	return (const struct ring_path *)(const void *)(v->p + v->at.paths) + id;
}

/* A name as a string; from a few buffers in turn. */
static inline const char *view_name(const struct view *v, uint32_t id)
{
	static char buf[8][NAME_BYTES_MAX + 1];
	static unsigned turn;
	char *b = buf[turn++ % 8];
	const struct ring_name *n =
		(const struct ring_name *)(const void *)(v->p + v->at.names) + id;

	ck_assert_uint_lt(id, v->c->names);
	ck_assert_uint_le(n->bytes, NAME_BYTES_MAX);
	ck_assert_uint_le(n->offset + n->bytes, v->c->name_bytes);
	memcpy(b, v->p + v->at.bytes + n->offset, n->bytes);
	b[n->bytes] = '\0';
	return b;
}

/* "a/b/[state]/{op}". */
static inline const char *view_where(const struct view *v, uint32_t path)
{
	static char buf[4][8192];
	static unsigned turn;
	char *b = buf[turn++ % 4], tmp[8192];

	b[0] = '\0';
	while (path != PATH_ROOT) {
		const struct ring_path *p = view_path(v, path);
		const char *n = view_name(v, p->name);
		static const char *const open[] = {"", "", "[", "{"}, *const close[] = {
									      "", "", "]", "}"};

		ck_assert_uint_lt(p->parent, path);
		ck_assert_int_ge(snprintf(tmp, sizeof(tmp), "%s%s%s%s%s", open[p->kind % 4], n,
					 close[p->kind % 4], b[0] != '\0' ? "/" : "", b),
			0);
		memcpy(b, tmp, sizeof(tmp));
		path = p->parent;
	}
	return b;
}

/* The laws of the tables. */
static inline void view_check_tables(const struct view *v)
{
	uint32_t *children = calloc(v->h->path_cap, sizeof(*children));

	ck_assert_ptr_nonnull(children);
	ck_assert_str_eq(view_name(v, NAME_NONE), "");
	ck_assert_str_eq(view_name(v, NAME_OTHER), "(other)");
	ck_assert_uint_le(v->c->paths, v->h->path_cap);
	for (uint32_t i = 1; i < v->c->paths; i++) {
		const struct ring_path *p = view_path(v, i);

		ck_assert_uint_lt(p->parent, i);
		ck_assert_uint_eq(p->depth, view_path(v, p->parent)->depth + 1u);
		ck_assert_uint_le(p->depth, PATH_DEPTH_MAX);
		ck_assert_uint_lt(p->name, v->c->names);
		ck_assert(p->kind > PATH_KIND_ROOT && p->kind < PATH_KIND_MAX);
		if (p->name != NAME_OTHER)
			ck_assert_uint_le(++children[p->parent], PATH_CHILDREN_MAX);
	}
	ck_assert_uint_eq(view_path(v, PATH_OTHER)->parent, PATH_ROOT);
	ck_assert_uint_eq(view_path(v, PATH_OTHER)->name, NAME_OTHER);
	free(children);
}

typedef void view_fn(void *arg, const struct view *v, uint32_t lane, const uint64_t *rec);

static inline void view_one(struct view *v, uint32_t lane, const uint64_t *rec)
{
	const uint8_t type = REC_TYPE(*rec);

	v->n[type]++;
	if (type == REC_LOST)
		v->lost += ((const struct rec_lost *)(const void *)rec)->count;
	(void)lane;
}

/* Walks what is new in every lane; each record is checked and given to fn. Returns bytes. */
static inline uint64_t view_walk(struct view *v, view_fn *fn, void *arg)
{
	const uint64_t cap = v->h->lane_bytes;
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < v->h->n_lanes; i++) {
		const unsigned char *data = v->p + v->at.data + i * cap;
		const uint64_t tail =
			atomic_load_explicit(&view_lane(v, i)->tail, memory_order_acquire);

		ck_assert_uint_le(tail - v->head[i], cap);
		ck_assert_uint_eq(tail % 8, 0);
		while (v->head[i] < tail) {
			const uint64_t at = v->head[i];
			const uint64_t *rec = (const uint64_t *)(const void *)(data + at % cap);
			const uint32_t n = REC_BYTES(*rec) != 0 ? REC_BYTES(*rec) : REC_ID(*rec);

			ck_assert_uint_eq(REC_LAP(*rec), at / cap % 256);
			ck_assert_uint_ge(n, 8);
			ck_assert_uint_le(at + n, tail);
			ck_assert_uint_le(at % cap + n, cap);
			ck_assert_uint_lt(REC_TYPE(*rec), REC_MAX);
			view_one(v, i, rec);
			if (fn != NULL && REC_TYPE(*rec) != REC_PAD)
				fn(arg, v, i, rec);
			v->head[i] += n;
			bytes += n;
		}
		if (v->ctl != NULL)
			atomic_store_explicit(&v->ctl[8 * i], v->head[i], memory_order_release);
	}
	return bytes;
}

static inline uint64_t view_dropped(const struct view *v)
{
	uint64_t n = v->c->drop_no_lane;

	for (uint32_t i = 0; i < v->h->n_lanes; i++)
		n += view_lane(v, i)->drop_full + view_lane(v, i)->drop_nested;
	return n;
}

/* What was recorded of one path. */
struct seen {
	const char *path;
	uint64_t count, flags;
};

static inline void seen_fn(void *arg, const struct view *v, uint32_t lane, const uint64_t *rec)
{
	(void)lane;
	if (REC_TYPE(*rec) != REC_SCOPE)
		return;
	for (struct seen *s = arg; s->path != NULL; s++)
		if (strcmp(view_where(v, REC_ID(*rec)), s->path) == 0) {
			s->count++;
			s->flags |= 1ull << REC_FLAGS(*rec);
		}
	ck_assert_uint_ge(((const struct rec_scope *)(const void *)rec)->end,
		((const struct rec_scope *)(const void *)rec)->begin);
}

#endif
