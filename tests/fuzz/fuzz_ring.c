/* SPDX-License-Identifier: MIT. fuzz_ring.c: a ring file that changes between any two reads of the
 * daemon, and within one.
 *
 * The input is a script of stores into a lawful ring, which also may become shorter; a few are made
 * before it is opened, the others before each read, or when half of it is done. Whatever they are:
 * every step ends, in bounds, and what comes out is walkable.
 *
 * pread() is ours and copies from memory: a store can come between any two reads, and an execution
 * makes a handful of system calls.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "reader.h"
#include "record.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

#define MUST(e)                  \
	do {                     \
		if (!(e))        \
			abort(); \
	} while (0)

#define LANES  3u
#define PIECES 4
#define NEAR   128u /* a multiple of 8, and not of 24: a pad is needed */

struct store { /* as in the input, packed by hand: 15 bytes */
	uint8_t where, bytes, lane;
	uint32_t offset;
	uint64_t value;
};
#define STORE_BYTES 15u

static int fd = -1; /* a file of the right length, never read */
static int open_fd = -1;
static uint8_t *mem, *clean;
static uint64_t file_bytes;
static bool was_short;
static struct ring_header header;
static struct ring_layout layout;
static struct {
	uint64_t offset, bytes;
} undo[512];
static uint32_t n_undo;
static const uint8_t *script;
static size_t script_left;

/* Where a lane is begun to be read: the last one shortly before its first lap ends. */
static uint64_t start_of(uint32_t lane)
{
	return lane == LANES - 1 ? header.lane_bytes - NEAR : 0;
}

static void put(uint32_t lane, const void *record, uint32_t bytes)
{
	struct ring_lane *l = (struct ring_lane *)(void *)(clean + layout.lanes) + lane;
	const uint64_t at = l->tail, off = at % header.lane_bytes;
	uint64_t hdr;

	MUST(off + bytes <= header.lane_bytes);
	memcpy(&hdr, record, 8);
	hdr |= (at / header.lane_bytes & 0xff) << 16;
	memcpy(clean + layout.data + (uint64_t)lane * header.lane_bytes + off, record, bytes);
	memcpy(clean + layout.data + (uint64_t)lane * header.lane_bytes + off, &hdr, 8);
	l->tail = at + (bytes != 8 ? bytes : REC_ID(hdr));
}

/* Some records; in the last lane they go over the end of the lap. */
static void put_records(uint32_t lane)
{
	struct ring_lane *l = (struct ring_lane *)(void *)(clean + layout.lanes) + lane;
	const struct rec_scope s = {REC_HDR(24, REC_SCOPE, 0, 0, 2), 1, 2};
	const struct rec_session v = {
		.hdr = REC_HDR(64, REC_SESSION, 0, SESSION_START, 0), .clock = 1};
	uint64_t pad;
	uint32_t i;

	l->tail = start_of(lane);
	for (i = 0; i < 4 * lane; i++) {
		put(lane, &s, sizeof(s));
		pad = header.lane_bytes - l->tail % header.lane_bytes;
		if (pad < sizeof(s)) {
			pad = REC_HDR(0, REC_PAD, 0, 0, pad);
			put(lane, &pad, sizeof(pad));
		}
	}
	put(lane, &v, sizeof(v));
	l->generation = 1;
	l->state = LANE_LIVE;
	l->now.depth = lane;
}

static void make_clean(void)
{
	struct ring_counts *c;
	struct ring_name *names;
	uint32_t i;

	header = (struct ring_header){.magic = RING_MAGIC,
		.abi = RING_ABI,
		.header_bytes = sizeof(header),
		.uuid = "fuzz",
		.uid = (uint32_t)geteuid(),
		.clock = RING_CLOCK_TSC,
		.n_lanes = LANES,
		.lane_bytes = RING_LANE_BYTES_MIN,
		.path_cap = 2 * PATH_OTHER_RESERVE,
		.name_cap = 64,
		.name_bytes_cap = 4096,
		.config_cap = 8,
		.device_cap = 2};
	MUST(ring_layout(&header, &layout));
	header.file_bytes = layout.file_bytes;
	fd = memfd_create("fuzz", MFD_CLOEXEC);
	MUST(fd >= 0 && ftruncate(fd, (off_t)layout.file_bytes) == 0);
	mem = calloc(1, layout.file_bytes);
	clean = calloc(1, layout.file_bytes);
	MUST(mem != NULL && clean != NULL);
	memcpy(clean, &header, sizeof(header));
	c = (struct ring_counts *)(void *)(clean + layout.counts);
	names = (struct ring_name *)(void *)(clean + layout.names);
	for (i = 0; i < 40; i++)
		names[i] = (struct ring_name){i * 8, i % 20, 0};
	c->names = 40;
	c->paths = 30;
	c->configs = c->devices = 1;
	c->name_bytes = 400;
	memset(clean + layout.info, 'i', RING_INFO_BYTES - 2);
	for (i = 0; i < LANES; i++)
		put_records(i);
	memcpy(mem, clean, layout.file_bytes);
}

/* Where a store goes: `where` names a section, and the last one the file's length. */
static bool place(uint8_t where, uint8_t lane, uint64_t *ret_base, uint64_t *ret_span)
{
	const uint64_t lane_at = layout.lanes + lane * sizeof(struct ring_lane);
	const struct {
		uint64_t base, span;
	} sections[] = {
		{0, sizeof(header)},
		{layout.counts, sizeof(struct ring_counts)},
		{lane_at, 64},
		{lane_at, sizeof(struct ring_lane)},
		{layout.names, 64 * sizeof(struct ring_name)},
		{layout.info, RING_INFO_BYTES},
		{layout.data + (uint64_t)lane * header.lane_bytes + start_of(lane), NEAR},
		{layout.data + (uint64_t)lane * header.lane_bytes, 4 * NEAR},
	};

	if (where >= sizeof(sections) / sizeof(sections[0]))
		return false;
	*ret_base = sections[where].base;
	*ret_span = sections[where].span;
	return true;
}

/* The next store of the script, if there is one. */
static void disturb(void)
{
	struct store s = {0};
	uint64_t base, span, at;

	if (script_left < STORE_BYTES || n_undo >= sizeof(undo) / sizeof(undo[0]))
		return;
	s.where = script[0] % 9;
	s.bytes = (uint8_t)(1 + script[1] % 8);
	s.lane = script[2] % LANES;
	memcpy(&s.offset, script + 3, 4);
	memcpy(&s.value, script + 7, 8);
	script += STORE_BYTES;
	script_left -= STORE_BYTES;
	if (!place(s.where, s.lane, &base, &span)) {
		if (s.lane == 0) /* else: this read is left alone */
			file_bytes = s.offset % (layout.file_bytes + 1);
		was_short |= file_bytes < layout.file_bytes;
		return;
	}
	at = base + s.offset % (span - s.bytes + 1);
	memcpy(mem + at, &s.value, s.bytes);
	undo[n_undo].offset = at;
	undo[n_undo++].bytes = s.bytes;
}

static ssize_t copy_out(uint8_t *to, size_t n, uint64_t at)
{
	if (at >= file_bytes)
		return 0;
	n = n < file_bytes - at ? n : (size_t)(file_bytes - at);
	memcpy(to, mem + at, n);
	return (ssize_t)n;
}

/* Stands before the C library's. A store in the middle does not tear an aligned word. */
ssize_t pread(int from, void *to, size_t n, off_t at)
{
	const size_t half = n / 16 * 8;
	ssize_t a;

	if (from != open_fd)
		return syscall(SYS_pread64, from, to, n, at);
	disturb();
	a = copy_out(to, half, (uint64_t)at);
	if (script_left > 0 && (script[0] & 0x80) != 0)
		disturb();
	if (a < (ssize_t)half)
		return a;
	return a + copy_out((uint8_t *)to + half, n - half, (uint64_t)at + half);
}

/* 0; or the file was shorter, and nothing else can be wrong. */
static bool is_there(int r)
{
	MUST(r == 0 || (r == -EIO && was_short));
	return r == 0;
}

static void walk_lane(const struct reader *r, uint32_t lane)
{
	static uint8_t piece[RING_LANE_BYTES_MIN];
	struct reader_lane *l = &r->lane[lane];
	const uint32_t n = (uint32_t)(l->tail - l->head);
	struct reader_walk w, again;

	MUST(l->tail >= l->head && l->tail - l->head <= r->h.lane_bytes && l->tail % 8 == 0);
	if (!is_there(reader_copy(r, lane, l->head, n, piece)))
		return;
	w = reader_walk(piece, n, l->head, r->h.lane_bytes, n / 2);
	MUST(w.reached <= n && w.whole <= w.reached && w.whole <= n / 2 && w.mark_end <= w.reached);
	again = reader_walk(piece, w.reached, l->head, r->h.lane_bytes, w.reached);
	MUST(again.reached == w.reached && again.whole == w.reached && !again.broken);
	l->head += w.reached;
}

static void read_table(struct reader *r, enum j_table_which which)
{
	static uint8_t out[READER_TABLE_BYTES];
	struct reader_extent x;
	struct j_table t;
	uint32_t bytes, pieces = 0, first = 0;

	if (!is_there(reader_extent(r, &x)))
		return;
	MUST(x.names <= r->h.name_cap && x.paths <= r->h.path_cap && x.configs <= r->h.config_cap &&
		x.devices <= r->h.device_cap);
	while (reader_has_new(r, which, &x)) {
		if (!is_there(reader_table(r, which, &x, out, sizeof(out), &bytes)))
			return;
		memcpy(&t, out, sizeof(t));
		MUST(bytes <= sizeof(out) && t.which == which && t.first == first && t.n > 0);
		first += t.n;
		MUST(++pieces < 100);
	}
}

static void read_rest(struct reader *r)
{
	static struct j_now now[LANES * NOW_FRAMES];
	static char info[RING_INFO_BYTES];
	uint32_t i, bytes;

	read_table(r, TABLE_NAMES);
	read_table(r, TABLE_PATHS);
	read_table(r, TABLE_CONFIGS);
	read_table(r, TABLE_DEVICES);
	for (i = 0; i < r->h.n_lanes && i < LANES; i++)
		MUST(reader_now(r, i, now, LANES * NOW_FRAMES) <= NOW_FRAMES);
	if (is_there(reader_info(r, info, &bytes)))
		MUST(bytes <= sizeof(info) && (bytes == 0 || info[bytes - 1] == '\0'));
}

static void read_all(struct reader *r)
{
	uint32_t i, k;
	bool moved;

	r->lane[LANES - 1].head = r->lane[LANES - 1].tail = start_of(LANES - 1);
	for (k = 0; k < PIECES; k++) {
		if (!is_there(reader_lanes(r, k % 2, &moved)))
			continue;
		MUST(r->n_seen <= LANES);
		for (i = 0; i < r->n_seen; i++)
			walk_lane(r, i);
	}
	read_rest(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	const struct reader_expect x = {.uid = (uint32_t)geteuid()};
	struct reader r;
	struct err e;
	uint32_t i;

	if (fd < 0)
		make_clean();
	if (n < 1)
		return 0;
	script = p + 1;
	script_left = n - 1;
	file_bytes = layout.file_bytes;
	was_short = false;
	for (i = 0; i < p[0] % 8; i++)
		disturb();
	open_fd = dup(fd);
	if (reader_open(open_fd, &x, &r, &e) == 0) {
		read_all(&r);
		reader_close(&r);
	} else {
		MUST(e.code < 0 && e.text[0] != '\0');
		(void)close(open_fd);
	}
	open_fd = -1;
	while (n_undo > 0) {
		n_undo--;
		memcpy(mem + undo[n_undo].offset, clean + undo[n_undo].offset, undo[n_undo].bytes);
	}
	return 0;
}
