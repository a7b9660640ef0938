/* SPDX-License-Identifier: MIT. journal.c: the daemon's own record of everything it took in. Owns
 * the segment files and the staging buffer. Loop thread only.
 *
 *   journal.3   | entry | entry | entry |            older segments: complete, never written again
 *   journal.4   | entry | entry |<- bytes            the last one: locked, appended to
 *   stage       | entry | entry | entry being made   in memory, written by one flush
 *
 * INVARIANT: the last segment's first `bytes` bytes are complete entries. A flush that fails leaves
 * `bytes` as it was, cuts the file back to it and keeps the stage, so the caller can simply flush
 * again. A flush never spans two segments: a new one begins before the write.
 *
 * No fsync: the files are in tmpfs, as the rings are, and live exactly as long.
 */
#include "journal.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "must.h"
#include "time_namespace.h"

#define STAGE_MIN    (256u << 10)
#define STAGE_KEEP   (1u << 20)  /* a larger buffer is given back after its flush */
#define STAGE_MAX    (64u << 20) /* the most that one flush can hold */
#define READ_BYTES   (4u << 20)
#define CRC_FROM     offsetof(struct journal_entry, type)
#define NAME_PREFIX  "journal."
#define MUST_OPEN(j) MUST((j) != NULL && (j)->magic == OPEN_MAGIC && (j)->n_seg > 0)
#define OPEN_MAGIC   0x4c4e524au /* "JRNL"; of a journal that is closed it is not */

_Static_assert(READ_BYTES >= 2 * JOURNAL_ENTRY_MAX, "an entry always fits the reader's window");

struct segment {
	uint32_t seq;
	uint32_t bytes; /* on disk; of the last one: what is flushed */
};

struct journal {
	uint32_t magic;
	int dir, fd;         /* fd: the last segment */
	struct segment *seg; /* seq ascending; the last is appended to */
	uint32_t n_seg, cap_seg;
	bool walked;   /* by a replay: nothing may change */
	bool torn;     /* bytes of a failed flush may stand behind the last segment's end */
	uint64_t lost; /* bytes cut off or skipped: they were not entries */
	uint8_t *stage;
	size_t used, cap; /* committed, room */
	uint32_t making;  /* bytes of the entry that is being made behind `used`; 0: none */
	int64_t ahead_ns; /* time_namespace.h */
};

static struct segment *last(const struct journal *j)
{
	return &j->seg[j->n_seg - 1];
}

static uint64_t now_ns(const struct journal *j)
{
	struct timespec t = {0};

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec - (uint64_t)j->ahead_ns;
}

/* --- reading --- */

/* A window on a segment: mem[pos] is file byte `at`, 8-aligned because entries are. */
struct reader {
	int fd;
	uint64_t at, end; /* the next entry; where the segment ends */
	uint8_t *mem;
	size_t cap, pos, have;
	uint32_t step; /* bytes of the entry last returned */
	int said;      /* what fn said when it stopped the walk */
};

/* Makes `want` bytes at `at` visible. -ENODATA: the segment has fewer. */
static int reader_need(struct reader *r, size_t want)
{
	size_t room;
	ssize_t n;

	if (r->have - r->pos >= want)
		return 0;
	if (r->end - r->at < want)
		return -ENODATA;
	memmove(r->mem, r->mem + r->pos, r->have - r->pos);
	r->have -= r->pos;
	r->pos = 0;
	while (r->have < want) {
		room = r->cap - r->have;
		if (room > r->end - r->at - r->have)
			room = (size_t)(r->end - r->at) - r->have;
		n = room == 0 ? 0 : pread(r->fd, r->mem + r->have, room, (off_t)(r->at + r->have));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return neg_errno();
		if (n == 0)
			return -ENODATA;
		r->have += (size_t)n;
	}
	return 0;
}

static bool entry_is_sane(const struct journal_entry *e)
{
	return e->magic == JOURNAL_MAGIC && e->bytes >= sizeof(*e) &&
	       e->bytes <= JOURNAL_ENTRY_MAX && e->bytes % 8 == 0;
}

static uint32_t entry_crc(const struct journal_entry *e)
{
	return crc32c(0, (const uint8_t *)e + CRC_FROM, e->bytes - CRC_FROM);
}

static const struct journal_entry *reader_entry(const struct reader *r)
{
	return (const struct journal_entry *)(const void *)(r->mem + r->pos);
}

/* The next entry, valid until the next call. -ENODATA: the segment ends here. -EPIPE: it ends
 * inside an entry. -EBADMSG: what stands here is not an entry. Each time r->at says where. */
static int reader_next(struct reader *r, const struct journal_entry **ret)
{
	const struct journal_entry *e;
	int k;

	r->pos += r->step;
	r->at += r->step;
	r->step = 0;
	k = reader_need(r, sizeof(*e));
	if (k == -ENODATA)
		return r->at == r->end ? -ENODATA : -EPIPE;
	if (k < 0)
		return k;
	e = reader_entry(r);
	if (!entry_is_sane(e))
		return -EBADMSG;
	k = reader_need(r, e->bytes);
	if (k < 0)
		return k == -ENODATA ? -EPIPE : k;
	e = reader_entry(r); /* the window may have moved */
	if (entry_crc(e) != e->crc)
		return -EBADMSG;
	r->step = e->bytes;
	*ret = e;
	return 0;
}

/* Calls fn, if there is one, for each entry from r->at on. 0: fn stopped the walk with r->said;
 * else why the entries ended, as above, or -ENOMEM, -EIO. */
static int reader_walk(struct reader *r, journal_fn *fn, void *arg)
{
	const struct journal_entry *e;
	int k = 0;

	r->cap = r->end - r->at < READ_BYTES ? (size_t)(r->end - r->at) : READ_BYTES;
	r->mem = malloc(r->cap + 1);
	if (r->mem == NULL)
		return -ENOMEM;
	while (r->said == 0 && (k = reader_next(r, &e)) == 0)
		if (fn != NULL)
			r->said = fn(arg, e);
	free(r->mem);
	r->mem = NULL;
	return r->said != 0 ? 0 : k;
}

/* --- segments --- */

struct segment_name {
	char text[24]; /* "journal.4294967295" */
};

static struct segment_name segment_name(uint32_t seq)
{
	struct segment_name n;

	snprintf(n.text, sizeof(n.text), NAME_PREFIX "%" PRIu32, seq);
	return n;
}

/* "journal.12" → 12; 0: not one of ours. */
static uint32_t segment_parse(const char *name)
{
	uint64_t seq = 0;
	const char *s;

	if (strncmp(name, NAME_PREFIX, sizeof(NAME_PREFIX) - 1) != 0)
		return 0;
	s = name + sizeof(NAME_PREFIX) - 1;
	if (*s == '0')
		return 0;
	for (; *s >= '0' && *s <= '9' && seq <= UINT32_MAX; s++)
		seq = seq * 10 + (uint64_t)(*s - '0');
	return *s == '\0' && seq <= UINT32_MAX ? (uint32_t)seq : 0;
}

static int segment_add(struct journal *j, uint32_t seq, uint64_t bytes)
{
	uint32_t want = j->cap_seg == 0 ? 16 : j->cap_seg * 2;
	struct segment *grown;

	if (j->n_seg == j->cap_seg) {
		grown = reallocarray(j->seg, want, sizeof(*grown));
		if (grown == NULL)
			return -ENOMEM;
		j->seg = grown;
		j->cap_seg = want;
	}
	j->seg[j->n_seg++] =
		(struct segment){seq, bytes > UINT32_MAX ? UINT32_MAX : (uint32_t)bytes};
	return 0;
}

/* Opens and locks a segment: two daemons on one journal would cut off each other's tail. */
static int segment_open(const struct journal *j, uint32_t seq, int flags, int *ret_fd)
{
	int r, fd;

	fd = openat(j->dir, segment_name(seq).text, O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0600);
	if (fd < 0)
		return neg_errno();
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		r = errno == EWOULDBLOCK ? -EBUSY : neg_errno();
		close(fd);
		return r;
	}
	*ret_fd = fd;
	return 0;
}

/* Goes on in a new, empty segment. On failure nothing changed. */
static int segment_begin(struct journal *j, uint32_t seq)
{
	int r, fd;

	r = segment_open(j, seq, O_CREAT | O_EXCL, &fd);
	if (r < 0)
		return r;
	r = segment_add(j, seq, 0);
	if (r < 0) {
		(void)unlinkat(j->dir, segment_name(seq).text, 0);
		close(fd);
		return r;
	}
	if (j->fd >= 0)
		close(j->fd);
	j->fd = fd;
	j->torn = false;
	return 0;
}

static int segment_compare(const void *a, const void *b)
{
	const struct segment *x = a, *y = b;

	return x->seq < y->seq ? -1 : x->seq > y->seq;
}

static int segments_list(struct journal *j)
{
	struct dirent *d;
	struct stat st;
	uint32_t seq;
	DIR *dir;
	int r = 0, fd = openat(j->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return neg_errno();
	dir = fdopendir(fd);
	if (dir == NULL) {
		r = neg_errno();
		close(fd);
		return r;
	}
	while (r == 0 && (d = readdir(dir)) != NULL) {
		seq = segment_parse(d->d_name);
		if (seq != 0 && fstatat(j->dir, d->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
			S_ISREG(st.st_mode))
			r = segment_add(j, seq, (uint64_t)st.st_size);
	}
	closedir(dir);
	if (j->n_seg > 1)
		qsort(j->seg, j->n_seg, sizeof(*j->seg), segment_compare);
	return r;
}

/* Goes on in the last segment found; what a killed daemon left half written is cut off. Damage
 * before the end stays, for replay to stop at, and a new segment begins. */
static int segment_resume(struct journal *j)
{
	struct reader r = {0};
	struct segment *s = last(j);
	struct stat st;
	int k;

	k = segment_open(j, s->seq, 0, &j->fd);
	if (k < 0)
		return k;
	if (fstat(j->fd, &st) < 0) /* again: now that it is locked, it does not grow */
		return neg_errno();
	s->bytes = st.st_size > UINT32_MAX ? UINT32_MAX : (uint32_t)st.st_size;
	r.fd = j->fd;
	r.end = (uint64_t)st.st_size;
	k = reader_walk(&r, NULL, NULL);
	if (k == -ENODATA)
		return 0;
	if (k == -EBADMSG)
		return s->seq == UINT32_MAX ? -EOVERFLOW : segment_begin(j, s->seq + 1);
	if (k != -EPIPE)
		return k;
	if (ftruncate(j->fd, (off_t)r.at) < 0)
		return neg_errno();
	j->lost += r.end - r.at;
	s->bytes = (uint32_t)r.at;
	return 0;
}

/* --- the contract --- */

static void journal_free(struct journal *j)
{
	if (j->fd >= 0)
		close(j->fd);
	if (j->dir >= 0)
		close(j->dir);
	free(j->seg);
	free(j->stage);
	j->magic = 0;
	free(j);
}

static int open_failed(struct journal *j, int r, struct err *e)
{
	const struct segment_name name = segment_name(j->n_seg > 0 ? last(j)->seq : 1);

	if (r == -EBUSY)
		err_set(e, r,
			"%s in the runtime directory is in use: another protond runs here; stop "
			"it, or "
			"give this one another PROTOND_RUNTIME_DIR",
			name.text);
	else
		err_set(e, r, "cannot open %s in the runtime directory: %s", name.text,
			strerror(-r));
	journal_free(j);
	return r;
}

int journal_open(int dir, struct journal **ret, struct err *e)
{
	struct journal *j = calloc(1, sizeof(*j));
	int r;

	if (j == NULL)
		return err_set(e, -ENOMEM, "cannot open the journal: out of memory");
	j->fd = -1;
	j->ahead_ns = time_namespace_ahead_ns();
	j->dir = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (j->dir < 0)
		return open_failed(j, neg_errno(), e);
	r = segments_list(j);
	if (r == 0)
		r = j->n_seg == 0 ? segment_begin(j, 1) : segment_resume(j);
	if (r < 0)
		return open_failed(j, r, e);
	j->magic = OPEN_MAGIC;
	*ret = j;
	return 0;
}

void journal_close(struct journal *j)
{
	if (j == NULL)
		return;
	MUST_OPEN(j);
	MUST(!j->walked);
	journal_free(j);
}

struct replay {
	journal_fn *fn;
	void *arg;
	int gap; /* the first reason why entries are missing */
};

static void replay_gap(struct replay *p, int why)
{
	if (p->gap == 0)
		p->gap = why;
}

/* 0, what fn returned, or -errno. If a segment breaks off, its rest is lost, and counted; the
 * others are not. */
static int replay_segment(struct journal *j, uint32_t i, uint64_t from, struct replay *p)
{
	const bool is_last = i + 1 == j->n_seg;
	struct reader r = {.fd = j->fd, .at = from, .end = j->seg[i].bytes};
	int k;

	if (from > r.end) {
		replay_gap(p, -EBADMSG);
		return 0;
	}
	if (!is_last)
		r.fd = openat(j->dir, segment_name(j->seg[i].seq).text,
			O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (r.fd < 0 && errno == ENOENT) {
		replay_gap(p, -ESTALE);
		return 0;
	}
	if (r.fd < 0)
		return neg_errno();
	k = reader_walk(&r, p->fn, p->arg);
	if (!is_last)
		close(r.fd);
	if (k == -EPIPE || k == -EBADMSG) {
		j->lost += r.end - r.at;
		replay_gap(p, -EBADMSG);
		return 0;
	}
	if (k == 0)
		return r.said;
	return k == -ENODATA ? 0 : k;
}

/* The store is ahead of the journal, whose files are gone (a reboot). What comes now must lie
 * behind the store's position, or the next restart would take it for stored. */
static int replay_leap(struct journal *j, uint32_t seq)
{
	return seq == UINT32_MAX ? -EOVERFLOW : segment_begin(j, seq + 1);
}

int journal_replay(struct journal *j, uint64_t position, journal_fn *fn, void *arg, int *ret_gap)
{
	const uint32_t seq = (uint32_t)(position >> 32), n = j->n_seg;
	struct replay p = {fn, arg, 0};
	uint32_t i, expect = seq == 0 ? 1 : seq;
	int k = 0;

	MUST_OPEN(j);
	MUST(!j->walked && fn != NULL && ret_gap != NULL);
	if (position > journal_position(j)) {
		k = replay_leap(j, seq);
		if (k == 0)
			*ret_gap = -ESTALE;
		return k;
	}
	j->walked = true;
	for (i = 0; i < n && k == 0; i++) {
		if (j->seg[i].seq < seq)
			continue;
		if (j->seg[i].seq != expect)
			replay_gap(&p, -ESTALE);
		expect = j->seg[i].seq + 1;
		k = replay_segment(j, i, j->seg[i].seq == seq ? (uint32_t)position : 0, &p);
	}
	j->walked = false;
	if (k == 0)
		*ret_gap = p.gap;
	return k;
}

/* Makes room for `need` bytes after what is committed. */
static int stage_room(struct journal *j, size_t need)
{
	size_t cap = j->cap == 0 ? STAGE_MIN : j->cap;
	uint8_t *grown;

	if (j->used + need <= j->cap)
		return 0;
	if (j->used + need > STAGE_MAX)
		return -ENOMEM;
	while (cap < j->used + need)
		cap *= 2;
	grown = realloc(j->stage, cap);
	if (grown == NULL)
		return -ENOMEM;
	j->stage = grown;
	j->cap = cap;
	return 0;
}

static uint32_t entry_bytes(uint32_t payload)
{
	return (uint32_t)sizeof(struct journal_entry) + ((payload + 7) & ~7u);
}

int journal_stage(struct journal *j, uint16_t type, const uint8_t ring[16], uint32_t payload,
	void **ret_payload)
{
	struct journal_entry *e;
	int r;

	MUST_OPEN(j);
	MUST(!j->walked && type != 0 && ret_payload != NULL);
	if (payload > JOURNAL_ENTRY_MAX - sizeof(*e))
		return -EMSGSIZE;
	j->making = 0;
	r = stage_room(j, entry_bytes(payload));
	if (r < 0)
		return r;
	e = (struct journal_entry *)(void *)(j->stage + j->used);
	*e = (struct journal_entry){.bytes = entry_bytes(payload), .type = type};
	e->mono_ns = now_ns(j);
	if (ring != NULL)
		memcpy(e->ring, ring, sizeof(e->ring));
	j->making = e->bytes;
	*ret_payload = e + 1;
	return 0;
}

const struct journal_entry *journal_commit(struct journal *j, uint32_t payload)
{
	struct journal_entry *e;

	MUST_OPEN(j);
	MUST(j->making != 0 && payload <= j->making - sizeof(*e));
	e = (struct journal_entry *)(void *)(j->stage + j->used);
	e->magic = JOURNAL_MAGIC; /* not before: nobody takes an unfinished one for an entry */
	e->bytes = entry_bytes(payload);
	memset((uint8_t *)(e + 1) + payload, 0, e->bytes - sizeof(*e) - payload);
	e->crc = entry_crc(e);
	j->used += e->bytes;
	j->making = 0;
	return e;
}

static int segment_write(struct journal *j)
{
	const off_t from = last(j)->bytes;
	size_t done = 0;
	ssize_t n;

	while (done < j->used) {
		n = pwrite(j->fd, j->stage + done, j->used - done, from + (off_t)done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return neg_errno();
		if (n == 0)
			return -ENOSPC;
		done += (size_t)n;
	}
	return 0;
}

static int segment_untear(struct journal *j)
{
	if (j->torn && ftruncate(j->fd, (off_t)last(j)->bytes) < 0)
		return neg_errno();
	j->torn = false;
	return 0;
}

int journal_flush(struct journal *j)
{
	uint8_t *small;
	int r = 0;

	MUST_OPEN(j);
	MUST(!j->walked && j->used <= j->cap);
	if (j->used == 0)
		return 0;
	if (last(j)->bytes > 0 && last(j)->bytes + j->used > JOURNAL_SEGMENT_BYTES) {
		r = segment_untear(j);
		if (r == 0)
			r = last(j)->seq == UINT32_MAX ? -EOVERFLOW
						       : segment_begin(j, last(j)->seq + 1);
		if (r < 0)
			return r;
	}
	r = segment_write(j);
	if (r < 0) {
		j->torn = true;
		(void)segment_untear(j); /* else before the next segment begins */
		return r;
	}
	j->torn = false; /* a successful write covers what a failed one left */
	last(j)->bytes += (uint32_t)j->used;
	j->used = 0;
	j->making = 0;
	if (j->cap > STAGE_KEEP) {
		small = realloc(j->stage, STAGE_KEEP);
		j->stage = small != NULL ? small : j->stage;
		j->cap = small != NULL ? STAGE_KEEP : j->cap;
	}
	return 0;
}

bool journal_is_whole(const struct journal *j)
{
	return !j->torn;
}

void journal_unstage(struct journal *j)
{
	MUST_OPEN(j);
	j->used = 0;
	j->making = 0;
}

uint64_t journal_position(const struct journal *j)
{
	MUST_OPEN(j);
	return (uint64_t)last(j)->seq << 32 | last(j)->bytes;
}

uint64_t journal_bytes_since(const struct journal *j, uint64_t position)
{
	const uint32_t seq = (uint32_t)(position >> 32), offset = (uint32_t)position;
	uint64_t sum = 0;
	uint32_t i;

	for (i = j->n_seg; i > 0 && j->seg[i - 1].seq >= seq; i--) {
		sum += j->seg[i - 1].bytes;
		if (j->seg[i - 1].seq == seq)
			sum -= offset < j->seg[i - 1].bytes ? offset : j->seg[i - 1].bytes;
	}
	return sum;
}

uint64_t journal_lost(const struct journal *j)
{
	return j->lost;
}

static bool forget(const struct journal *j, uint32_t seq, journal_close_fn *close_fn, void *arg)
{
	const struct segment_name name = segment_name(seq);
	const int fd = openat(j->dir, name.text, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	const bool gone = unlinkat(j->dir, name.text, 0) == 0 || errno == ENOENT;

	if (fd >= 0 && close_fn != NULL)
		close_fn(arg, fd);
	else if (fd >= 0)
		close(fd);
	return gone;
}

/* The segment that position names stays, even if position is its end: a replay from there must tell
 * "nothing is missing" from "the segment is gone". */
void journal_forget(struct journal *j, uint64_t position, uint64_t keep_bytes,
	journal_close_fn *close_fn, void *arg)
{
	uint64_t younger = 0;
	uint32_t i, gone = 0;

	MUST_OPEN(j);
	MUST(!j->walked);
	for (i = j->n_seg; i > 0; i--) {
		if (j->seg[i - 1].seq < position >> 32 && younger >= keep_bytes)
			break;
		younger += j->seg[i - 1].bytes;
	}
	MUST(i < j->n_seg);      /* the last one is appended to */
	for (; gone < i; gone++) /* oldest first: a crash in between leaves no hole */
		if (!forget(j, j->seg[gone].seq, close_fn, arg))
			break;
	memmove(j->seg, j->seg + gone, (j->n_seg - gone) * sizeof(*j->seg));
	j->n_seg -= gone;
}
