/* SPDX-License-Identifier: MIT. reader.c: opening, checking and copying out of a ring file.
 *
 * The job may truncate, scribble on and lie in its file while we read it. So nothing is mapped (no
 * SIGBUS), the header is copied once and its sizes come from that copy for ever, offsets are
 * computed and not read, and a length or an id read from the file is compared with a bound before
 * its use. Two preads are ordered by an acquire fence between them: see read_fence().
 */
#include "reader.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "must.h"
#include "record.h"
#include "table.h"

#define TMPFS_MAGIC_NUMBER 0x01021994
#define LANES_AT_ONCE      8u
#define PAD_MAX            RING_LANE_BYTES_MIN /* a pad is shorter than the record it makes room for */

/* Pairs with the job's release stores (tail, counts): what a pread copied before this fence was in
 * memory before what a pread behind it copies. The kernel made the loads, but on this CPU, and a
 * fence orders a CPU's loads whoever asked for them. This step is outside the C model. */
static void read_fence(void)
{
	atomic_thread_fence(memory_order_acquire);
}

static int read_all(int fd, void *to, size_t bytes, uint64_t at)
{
	uint8_t *p = to;
	ssize_t n;

	while (bytes > 0) {
		n = pread(fd, p, bytes, (off_t)at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? neg_errno() : -EIO; /* V14: the file became shorter */
		p += n;
		at += (uint64_t)n;
		bytes -= (size_t)n;
	}
	return 0;
}

/* --- V1-V4: the header --- */

static bool is_zero(const uint8_t id[16])
{
	static const uint8_t zero[16];

	return memcmp(id, zero, 16) == 0;
}

static int check_identity(const struct ring_header *h, const struct reader_expect *x, struct err *e)
{
	if (is_zero(h->uuid))
		return err_set(e, -EBADMSG, "the ring has no uuid");
	if (x->uuid != NULL && memcmp(h->uuid, x->uuid, 16) != 0)
		return err_set(e, -EBADMSG, "the ring's uuid is not the one that was said");
	if (x->store != NULL && memcmp(h->store, x->store, 16) != 0)
		return err_set(e, -EXDEV, "the ring belongs to another protond's store");
	if (x->boot_id != NULL && memcmp(h->boot_id, x->boot_id, 16) != 0)
		return err_set(e, -ESTALE, "the ring is of another boot");
	if (h->uid != x->uid)
		return err_set(
			e, -EBADMSG, "the ring says uid %u, its owner is %u", h->uid, x->uid);
	if (x->pid_start != 0 && h->pid_start != x->pid_start)
		return err_set(e, -ESTALE, "the ring was made by a process that is gone");
	return 0;
}

int reader_check(const struct ring_header *h, uint64_t file_bytes, const struct reader_expect *x,
	struct ring_layout *ret, struct err *e)
{
	struct ring_layout l;

	if (h->magic != RING_MAGIC)
		return err_set(
			e, -EBADMSG, "this is no ring of protond, or one that is not finished");
	if (h->abi >> 16 != RING_ABI >> 16)
		return err_set(e, -EPROTO,
			"the ring has ABI %u, this protond reads %u; update the older of "
			"libprotond and protond",
			h->abi >> 16, RING_ABI >> 16);
	if (h->header_bytes < sizeof(*h) || h->header_bytes > RING_PAGE)
		return err_set(e, -EBADMSG, "the ring's header claims %u bytes", h->header_bytes);
	if (h->clock != RING_CLOCK_TSC && h->clock != RING_CLOCK_MONOTONIC)
		return err_set(e, -EBADMSG, "the ring has an unknown clock, %u", h->clock);
	if (!ring_layout(h, &l))
		return err_set(e, -EBADMSG, "a size in the ring's header is out of bounds");
	if (h->file_bytes != l.file_bytes || file_bytes != l.file_bytes)
		return err_set(e, -EBADMSG, "the ring is %llu bytes long and should be %llu",
			(unsigned long long)file_bytes, (unsigned long long)l.file_bytes);
	if (check_identity(h, x, e) < 0)
		return e != NULL ? e->code : -EBADMSG;
	*ret = l;
	return 0;
}

static int check_file(int fd, const struct reader_expect *x, uint64_t *ret_bytes, struct err *e)
{
	struct stat st;
	struct statx known;
	struct statfs fs;
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || (flags & O_PATH) != 0 || (flags & O_ACCMODE) == O_WRONLY)
		return err_set(e, -EBADF, "the ring's descriptor cannot be read from");
	/* fstat() of a FUSE file waits for whoever serves it, perhaps the job itself. What is known
	 * of a file is told without waiting, and so is whether it has seals: only memory files do.
	 */
	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &known) < 0)
		return err_set(e, neg_errno(), "the ring's descriptor cannot be looked at");
	if (!S_ISREG(known.stx_mode))
		return err_set(e, -EBADMSG, "the ring is not a regular file");
	if (!x->any_fs && fcntl(fd, F_GET_SEALS) < 0)
		return err_set(e, -EMEDIUMTYPE, "the ring is not on a tmpfs");
	if (fstat(fd, &st) < 0 || fstatfs(fd, &fs) < 0)
		return err_set(e, neg_errno(), "the ring's descriptor cannot be looked at");
	if (st.st_uid != x->uid)
		return err_set(e, -EACCES, "the ring's file belongs to uid %u, the job to %u",
			(unsigned)st.st_uid, x->uid);
	if (st.st_nlink > 1)
		return err_set(e, -EACCES, "the ring's file has %u names", (unsigned)st.st_nlink);
	/* A read from a network or FUSE file could wait for ever: only memory is read on the loop.
	 */
	if (!x->any_fs && (uint64_t)fs.f_type != TMPFS_MAGIC_NUMBER)
		return err_set(e, -EMEDIUMTYPE, "the ring is not on a tmpfs");
	if (st.st_size < 0 || (uint64_t)st.st_size > RING_FILE_MAX)
		return err_set(e, -EBADMSG, "the ring's file is too large");
	*ret_bytes = (uint64_t)st.st_size;
	return 0;
}

int reader_peek(int fd, struct ring_header *ret)
{
	int r = read_all(fd, ret, sizeof(*ret), 0);

	if (r < 0)
		return r;
	if (ret->magic != RING_MAGIC)
		return -EBADMSG;
	read_fence(); /* the magic is stored last: with it, the second copy has all the rest */
	return read_all(fd, ret, sizeof(*ret), 0);
}

int reader_have(struct reader *r, uint32_t n)
{
	return ZEROED_FOR(r->lane, r->cap, n) ? 0 : -ENOMEM;
}

int reader_open(int fd, const struct reader_expect *x, struct reader *ret, struct err *e)
{
	struct reader r = {.fd = fd};
	struct err words = {0};
	uint64_t file_bytes = 0;
	int n;

	n = check_file(fd, x, &file_bytes, &words);
	if (n == 0 && reader_peek(fd, &r.h) < 0)
		n = err_set(&words, -EBADMSG,
			"this is no ring of protond, or one that is not finished");
	if (n == 0)
		n = reader_check(&r.h, file_bytes, x, &r.l, &words);
	if (n == 0) {
		n = reader_have(&r, 1);
		if (n < 0)
			n = err_set(&words, n, "no memory for a ring");
	}
	if (n < 0) {
		if (e != NULL)
			*e = words;
		return n;
	}
	*ret = r;
	return 0;
}

void reader_close(struct reader *r)
{
	if (r->lane == NULL)
		return; /* never opened */
	(void)close(r->fd);
	free(r->lane);
	*r = (struct reader){.fd = -1};
}

/* --- V6: tails --- */

static bool tail_is_lawful(const struct reader *r, const struct reader_lane *l, uint64_t tail)
{
	return tail % 8 == 0 && tail >= l->tail && tail >= l->head &&
	       tail - l->head <= r->h.lane_bytes;
}

static uint64_t sums_end(const struct reader *r, const struct reader_lane *l, uint64_t sums)
{
	return sums % 8 == 0 && sums > l->tail && sums - l->head <= r->h.lane_bytes ? sums
										    : l->tail;
}

/* From the private copy of a lane's header. Returns whether the lane was ever claimed. */
static bool take_lane(
	const struct reader *r, struct reader_lane *l, struct ring_lane *copy, bool *moved)
{
	const uint64_t tail = atomic_load_explicit(&copy->tail, memory_order_relaxed);

	l->generation = atomic_load_explicit(&copy->generation, memory_order_relaxed);
	l->tid = atomic_load_explicit(&copy->tid, memory_order_relaxed);
	l->state = atomic_load_explicit(&copy->state, memory_order_relaxed);
	l->moves = atomic_load_explicit(&copy->moves, memory_order_relaxed);
	l->drop_full = atomic_load_explicit(&copy->drop_full, memory_order_relaxed);
	l->drop_nested = atomic_load_explicit(&copy->drop_nested, memory_order_relaxed);
	if (l->quarantined)
		return true;
	if (!tail_is_lawful(r, l, tail)) {
		l->bad |= READER_BAD_TAIL; /* counted once per tick, by the drain */
		return true;
	}
	l->bad &= (uint8_t)~READER_BAD_TAIL; /* read again, and lawful now */
	if (tail != l->tail) {
		l->tail = tail;
		*moved = true;
	}
	l->sums = sums_end(r, l, atomic_load_explicit(&copy->sums, memory_order_relaxed));
	return l->generation != 0 || tail != 0;
}

int reader_lanes(struct reader *r, bool all, bool *ret_moved)
{
	static const struct ring_lane none;
	struct ring_lane copy[LANES_AT_ONCE];
	bool moved = false, more = true;
	uint32_t at, i, n;
	int x;

	MUST(r->lane != NULL && r->fd >= 0); /* reader_open() gave it */
	/* Lanes are claimed from below: a look at the one beyond the last claimed finds the next,
	 * and the sweep with `all` what that misses. */
	for (at = 0; at < r->h.n_lanes && (all || more); at += n) {
		n = all || r->n_seen == 0 ? LANES_AT_ONCE : r->n_seen + 1 - at;
		n = n < LANES_AT_ONCE ? n : LANES_AT_ONCE;
		n = r->h.n_lanes - at < n ? r->h.n_lanes - at : n;
		x = read_all(r->fd, copy, n * sizeof(copy[0]),
			r->l.lanes + (uint64_t)at * sizeof(copy[0]));
		if (x < 0)
			return x;
		for (i = 0; i < n; i++) {
			if (at + i >= r->cap) {
				if (memcmp(&copy[i], &none, offsetof(struct ring_lane, now)) == 0)
					continue; /* never claimed: it takes no memory */
				x = reader_have(r, at + i + 1);
				if (x < 0)
					return x;
			}
			if (take_lane(r, &r->lane[at + i], &copy[i], &moved) && at + i >= r->n_seen)
				r->n_seen = at + i + 1;
		}
		more = at + n <=
		       r->n_seen; /* the last one looked at was claimed: there may be more */
	}
	read_fence(); /* pairs with the release of each tail: the bytes below it are there to be
			 copied */
	*ret_moved = moved;
	return 0;
}

int reader_lane_again(struct reader *r, uint32_t lane)
{
	struct ring_lane copy;
	bool moved;
	int x;

	MUST(lane < r->n_seen);
	x = read_all(r->fd, &copy, sizeof(copy), r->l.lanes + (uint64_t)lane * sizeof(copy));
	if (x < 0)
		return x;
	(void)take_lane(r, &r->lane[lane], &copy, &moved);
	read_fence(); /* as in reader_lanes() */
	return 0;
}

int reader_copy(const struct reader *r, uint32_t lane, uint64_t from, uint32_t bytes, void *to)
{
	const uint32_t size = r->h.lane_bytes;
	const uint64_t base = r->l.data + (uint64_t)lane * size;
	const uint32_t offset = (uint32_t)(from & (size - 1));
	const uint32_t n = bytes < size - offset ? bytes : size - offset;
	int x;

	MUST(lane < r->h.n_lanes && bytes <= size);
	x = read_all(r->fd, to, n, base + offset);
	if (x == 0 && n < bytes)
		x = read_all(r->fd, (uint8_t *)to + n, bytes - n, base);
	return x;
}

bool reader_has_still(const struct reader *r, uint32_t lane, uint64_t from)
{
	struct ring_lane copy;
	uint64_t tail, sums;

	MUST(lane < r->h.n_lanes);
	read_fence(); /* what was copied was read before the tail is */
	if (read_all(r->fd, &copy, sizeof(copy), r->l.lanes + (uint64_t)lane * sizeof(copy)) < 0)
		return false;
	tail = atomic_load_explicit(&copy.tail, memory_order_relaxed);
	sums = atomic_load_explicit(&copy.sums, memory_order_relaxed);
	tail = sums > tail ? sums : tail;
	/* One record, and the rest of a lap before it, may be half written behind the tail. */
	return tail >= from && tail - from <= r->h.lane_bytes &&
	       r->h.lane_bytes - (tail - from) >= 2 * REC_BYTES_MAX;
}

/* --- V7-V10: records --- */

static const uint8_t record_bytes[REC_MAX] = {
#define X(name, number, bytes, ...) [number] = (bytes),
	RECORDS(X)
#undef X
};

/* Length of the lawful record whose first word is h, at position `at`; 0: it breaks a law. */
static uint32_t record_length(uint64_t h, uint64_t at, uint32_t lane_bytes)
{
	const uint32_t room = lane_bytes - (uint32_t)(at & (lane_bytes - 1));
	const uint8_t type = REC_TYPE(h);
	uint32_t n = REC_BYTES(h);

	if (REC_LAP(h) != (uint8_t)(at / lane_bytes))
		return 0;
	if (type == REC_PAD)
		return n == 0 && REC_ID(h) == room && room <= PAD_MAX ? room : 0;
	if (n < 8 || n > room || (type < REC_MAX && n < record_bytes[type]))
		return 0;
	return n;
}

struct reader_walk reader_walk(
	const void *p, uint32_t bytes, uint64_t from, uint32_t lane_bytes, uint32_t upto)
{
	struct reader_walk w = {0};
	const uint8_t *b = p;
	uint32_t n;
	uint64_t h;

	while (bytes - w.reached >= 8) { /* V9: each step advances by 8 at least */
		memcpy(&h, b + w.reached, 8);
		n = record_length(h, from + w.reached, lane_bytes);
		if (n == 0) {
			w.broken = true;
			break;
		}
		if (n > bytes - w.reached)
			break; /* cut by the end of this piece */
		w.reached += n;
		w.last = REC_TYPE(h);
		w.sessions |= REC_TYPE(h) == REC_SESSION;
		if (REC_IS_MARK(h)) {
			w.mark_end = w.reached;
			if (w.start_end == 0 && REC_TYPE(h) == REC_SESSION &&
				REC_FLAGS(h) == SESSION_START)
				w.start_end = w.reached;
		}
		if (w.reached <= upto)
			w.whole = w.reached;
	}
	return w;
}

struct reader_marks reader_marks(
	const void *p, uint32_t bytes, uint64_t from, uint32_t lane_bytes, uint64_t until)
{
	struct reader_marks s = {0};
	const uint8_t *b = p;
	uint64_t h[3] = {0};
	uint32_t n;

	while (bytes - s.reached >= 8) {
		memcpy(h, b + s.reached, bytes - s.reached < sizeof(h) ? 8 : sizeof(h));
		n = record_length(h[0], from + s.reached, lane_bytes);
		if (n == 0 || n > bytes - s.reached)
			break;
		s.mixed |= REC_TYPE(h[0]) == REC_THREAD && !REC_IS_MARK(h[0]) && s.end == 0;
		if (REC_IS_MARK(h[0])) { /* of n bytes at least are its three first words */
			if (s.end != 0 && h[1] > until)
				break;
			s.tid = s.end == 0 ? (uint32_t)h[2] : s.tid;
			s.clock = s.end == 0 ? h[1] : s.clock;
			s.end = s.reached + n;
		}
		s.reached += n;
	}
	s.reached = s.end != 0 ? s.end : s.reached;
	return s;
}

uint32_t reader_only(
	const void *p, uint32_t bytes, uint64_t from, uint32_t lane_bytes, uint64_t types)
{
	const uint8_t *b = p;
	uint32_t at = 0, n;
	uint64_t h;

	while (bytes - at >= 8) {
		memcpy(&h, b + at, 8);
		n = record_length(h, from + at, lane_bytes);
		if (n == 0 || n > bytes - at || REC_TYPE(h) >= REC_MAX ||
			(types & 1ull << REC_TYPE(h)) == 0)
			break;
		at += n;
	}
	return at;
}

int reader_redo(const struct reader *r, uint32_t lane, uint64_t from, uint32_t bytes, void *p)
{
	const uint64_t base = r->l.lanes + (uint64_t)lane * sizeof(struct ring_lane);
	struct ring_redo x;
	uint8_t *b = p;
	uint32_t at = 0, n;
	uint64_t h, pos;
	int e;

	MUST(lane < r->h.n_lanes);
	e = read_all(r->fd, &x, sizeof(x), base + offsetof(struct ring_lane, redo));
	pos = atomic_load_explicit(&x.pos, memory_order_relaxed);
	if (e < 0 || pos <= from || pos - 1 - from >= bytes)
		return e;
	while (bytes - at >= 8 && at < pos - 1 - from) {
		memcpy(&h, b + at, 8);
		n = record_length(h, from + at, r->h.lane_bytes);
		if (n == 0 || n > bytes - at)
			return 0;
		at += n;
	}
	if (at != pos - 1 - from || bytes - at < 8)
		return 0;
	memcpy(&h, b + at, 8);
	n = record_length(h, from + at, r->h.lane_bytes);
	if (n != 0 && n <= bytes - at)
		rec_redo(b + at, atomic_load_explicit(&x.count, memory_order_relaxed),
			atomic_load_explicit(&x.sum, memory_order_relaxed),
			atomic_load_explicit(&x.value, memory_order_relaxed),
			atomic_load_explicit(&x.last, memory_order_relaxed));
	return 0;
}

/* --- V11: tables --- */

int reader_counts(const struct reader *r, struct ring_counts *ret)
{
	return read_all(r->fd, ret, sizeof(*ret), r->l.counts);
}

int reader_info(const struct reader *r, char ret[RING_INFO_BYTES], uint32_t *ret_bytes)
{
	uint32_t n = RING_INFO_BYTES;
	int x = read_all(r->fd, ret, RING_INFO_BYTES, r->l.info);

	if (x < 0)
		return x;
	while (n > 0 && ret[n - 1] == '\0')
		n--;
	if (n < RING_INFO_BYTES)
		n += n > 0; /* keep the last one's terminator */
	else
		ret[RING_INFO_BYTES - 1] = '\0';
	*ret_bytes = n;
	return 0;
}

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

int reader_extent(const struct reader *r, struct reader_extent *ret)
{
	struct ring_counts c;
	int x = reader_counts(r, &c);

	if (x < 0)
		return x;
	ret->paths = least(atomic_load_explicit(&c.paths, memory_order_relaxed), r->h.path_cap);
	ret->configs =
		least(atomic_load_explicit(&c.configs, memory_order_relaxed), r->h.config_cap);
	ret->devices =
		least(atomic_load_explicit(&c.devices, memory_order_relaxed), r->h.device_cap);
	read_fence(); /* pairs with the release of counts.paths: its names were counted before */
	x = reader_counts(r, &c);
	if (x < 0)
		return x;
	ret->names = least(atomic_load_explicit(&c.names, memory_order_relaxed), r->h.name_cap);
	read_fence(); /* pairs with the release of each count: the entries below it are complete */
	return 0;
}

/* Text of one name behind `to`: {u32 bytes, text, pad to 4}. Returns the space taken. */
static uint32_t put_name(uint8_t *to, const void *text, uint32_t bytes)
{
	const uint32_t padded = (bytes + 3) & ~3u;

	memcpy(to, &bytes, 4);
	memcpy(to + 4, text, bytes);
	memset(to + 4 + bytes, 0, padded - bytes);
	return 4 + padded;
}

static int read_names(
	struct reader *r, uint32_t first, uint32_t n, uint8_t *to, uint32_t *ret_bytes)
{
	static const char bad[] = "(bad name)";
	struct ring_name entry[READER_NAMES];
	char text[NAME_BYTES_MAX];
	uint32_t i, at = 0;
	int x;

	x = read_all(r->fd, entry, n * sizeof(entry[0]),
		r->l.names + (uint64_t)first * sizeof(entry[0]));
	for (i = 0; i < n && x == 0; i++) {
		if (entry[i].bytes > NAME_BYTES_MAX || entry[i].offset > r->h.name_bytes_cap ||
			entry[i].bytes > r->h.name_bytes_cap - entry[i].offset) {
			r->bad_names++;
			at += put_name(to + at, bad, sizeof(bad) - 1);
			continue;
		}
		x = read_all(r->fd, text, entry[i].bytes, r->l.bytes + entry[i].offset);
		at += put_name(to + at, text, entry[i].bytes);
	}
	*ret_bytes = at;
	return x;
}

struct table_place {
	uint64_t offset;
	uint32_t entry_bytes, end;
	uint32_t *taken;
};

static struct table_place table_place(
	struct reader *r, enum j_table_which which, const struct reader_extent *x)
{
	switch (which) {
	case TABLE_PATHS:
		return (struct table_place){
			r->l.paths, sizeof(struct ring_path), x->paths, &r->paths};
	case TABLE_CONFIGS:
		return (struct table_place){
			r->l.configs, sizeof(struct ring_config), x->configs, &r->configs};
	case TABLE_DEVICES:
		return (struct table_place){
			r->l.devices, sizeof(struct ring_device), x->devices, &r->devices};
	case TABLE_NAMES:
	default:
		return (struct table_place){r->l.names, 4 + NAME_BYTES_MAX, x->names, &r->names};
	}
}

bool reader_has_new(struct reader *r, enum j_table_which which, const struct reader_extent *x)
{
	const struct table_place t = table_place(r, which, x);

	return *t.taken < t.end;
}

int reader_table(struct reader *r, enum j_table_which which, const struct reader_extent *x,
	void *to, uint32_t bytes, uint32_t *ret_bytes)
{
	const struct table_place t = table_place(r, which, x);
	struct j_table head = {.which = which, .first = *t.taken};
	uint8_t *body = (uint8_t *)to + sizeof(head);
	uint32_t body_bytes;
	int e;

	if (*t.taken >= t.end || bytes < sizeof(head) + t.entry_bytes)
		return -ENODATA;
	head.n = least(t.end - *t.taken, (uint32_t)((bytes - sizeof(head)) / t.entry_bytes));
	if (which == TABLE_NAMES) {
		head.n = least(head.n, READER_NAMES);
		e = read_names(r, head.first, head.n, body, &body_bytes);
		head.text_bytes = body_bytes;
	} else {
		body_bytes = head.n * t.entry_bytes;
		e = read_all(
			r->fd, body, body_bytes, t.offset + (uint64_t)head.first * t.entry_bytes);
	}
	if (e < 0)
		return e;
	memcpy(to, &head, sizeof(head));
	*t.taken += head.n;
	*ret_bytes = (uint32_t)sizeof(head) + body_bytes;
	return 0;
}

/* --- the now block --- */

/* A copy that no write ran through, if there is one in a few tries. A thread that died inside an
 * update leaves seq odd for ever: then its last state but for the innermost frame is what we have.
 */
static int copy_now(const struct reader *r, uint32_t lane, struct ring_now *ret)
{
	const uint64_t at = r->l.lanes + (uint64_t)lane * sizeof(struct ring_lane) +
			    offsetof(struct ring_lane, now);
	uint32_t seq, again;
	int x, tries;

	for (tries = 0; tries < 4; tries++) {
		x = read_all(r->fd, &seq, sizeof(seq), at);
		read_fence(); /* pairs with the release of seq (odd) before the frame is written */
		if (x == 0)
			x = read_all(r->fd, ret, sizeof(*ret), at);
		read_fence(); /* pairs with the release of seq (even) after it */
		if (x == 0)
			x = read_all(r->fd, &again, sizeof(again), at);
		if (x < 0)
			return x;
		if (seq == again && (seq & 1) == 0)
			return 0;
	}
	return 0;
}

bool reader_is_owned(const struct reader *r, uint32_t lane)
{
	const struct reader_lane *l = &r->lane[lane], *x;
	uint32_t i;

	MUST(lane < r->h.n_lanes);
	if (l->state != LANE_LIVE && l->state != LANE_LEFT)
		return false;
	for (i = 0; i < r->n_seen; i++) {
		x = &r->lane[i];
		if (x->moves > l->moves && x->tid == l->tid &&
			(x->state == LANE_LIVE || x->state == LANE_LEFT))
			return false;
	}
	return true;
}

uint64_t reader_summed(const struct reader *r, uint32_t lane)
{
	const uint64_t at = offsetof(struct ring_lane, redo);
	const struct reader_lane *l = &r->lane[lane];
	struct ring_redo x;
	uint32_t i;

	MUST(lane < r->h.n_lanes);
	for (i = 0; i < r->n_seen; i++)
		if (r->lane[i].state == LANE_SUMS && r->lane[i].tid == l->tid)
			break;
	if (i == r->n_seen ||
		read_all(r->fd, &x, sizeof(x), r->l.lanes + i * sizeof(struct ring_lane) + at) < 0)
		return 0;
	return atomic_load_explicit(&x.last, memory_order_relaxed) -
	       atomic_load_explicit(&x.value, memory_order_relaxed);
}

uint32_t reader_now(const struct reader *r, uint32_t lane, struct j_now *ret, uint32_t n)
{
	struct ring_now now;
	const uint32_t most = n < NOW_FRAMES ? n : NOW_FRAMES;
	uint32_t depth, d, k = 0;

	MUST(lane < r->h.n_lanes);
	if (copy_now(r, lane, &now) < 0)
		return 0;
	depth = atomic_load_explicit(&now.depth, memory_order_relaxed);
	for (d = depth > most ? depth - most : 0; d < depth; d++, k++) {
		ret[k] = (struct j_now){
			.lane = lane,
			.tid = r->lane[lane].tid,
			.depth = d,
			.path = atomic_load_explicit(
				&now.frame[d % NOW_FRAMES].path, memory_order_relaxed),
			.begin = atomic_load_explicit(
				&now.frame[d % NOW_FRAMES].begin, memory_order_relaxed),
		};
	}
	return k;
}
