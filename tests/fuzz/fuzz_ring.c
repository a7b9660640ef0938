/* SPDX-License-Identifier: MIT. fuzz_ring.c: a ring file that changes between any two reads of the
 * daemon.
 *
 * The input is a script of stores into a lawful ring; a few are made before it is opened, one
 * before each step after that. Whatever they are: every step ends, in bounds, and what comes out is
 * walkable.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
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

struct store { /* as in the input, packed by hand: 15 bytes */
	uint8_t where, bytes, lane;
	uint32_t offset;
	uint64_t value;
};
#define STORE_BYTES 15u

static int fd = -1;
static uint8_t *mem, *clean;
static struct ring_header header;
static struct ring_layout layout;
static struct {
	uint64_t offset, bytes;
} undo[512];
static uint32_t n_undo;
static const uint8_t *script;
static size_t script_left;

static void put_scopes(uint32_t lane, uint32_t n)
{
	struct ring_lane *l = (struct ring_lane *)(void *)(clean + layout.lanes) + lane;
	uint8_t *at = clean + layout.data + (uint64_t)lane * header.lane_bytes;
	struct rec_scope s = {REC_HDR(24, REC_SCOPE, 0, 0, 2), 1, 2};
	struct rec_session v = {.hdr = REC_HDR(64, REC_SESSION, 0, SESSION_START, 0), .clock = 1};
	uint32_t i;

	for (i = 0; i < n; i++)
		memcpy(at + i * 24, &s, 24);
	memcpy(at + n * 24, &v, 64);
	l->tail = n * 24 + 64;
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
	mem = mmap(NULL, layout.file_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	clean = calloc(1, layout.file_bytes);
	MUST(mem != MAP_FAILED && clean != NULL);
	memcpy(clean, &header, sizeof(header));
	c = (struct ring_counts *)(void *)(clean + layout.counts);
	names = (struct ring_name *)(void *)(clean + layout.names);
	for (i = 0; i < 40; i++)
		names[i] = (struct ring_name){i * 8, i % 20, 0};
	c->names = 40;
	c->paths = 30;
	c->configs = c->devices = 1;
	c->name_bytes = 400;
	for (i = 0; i < LANES; i++)
		put_scopes(i, i * 40);
	memcpy(mem, clean, layout.file_bytes);
}

/* The next store of the script, if there is one, where it says. */
static void disturb(void)
{
	struct store s = {0};
	uint64_t base, span, at;

	if (script_left < STORE_BYTES || n_undo >= sizeof(undo) / sizeof(undo[0]))
		return;
	s.where = script[0];
	s.bytes = (uint8_t)(1 + script[1] % 8);
	s.lane = script[2] % LANES;
	memcpy(&s.offset, script + 3, 4);
	memcpy(&s.value, script + 7, 8);
	script += STORE_BYTES;
	script_left -= STORE_BYTES;
	switch (s.where % 7) {
	case 0:
		base = 0, span = sizeof(header);
		break;
	case 1:
		base = layout.counts, span = sizeof(struct ring_counts);
		break;
	case 2:
		base = layout.lanes + s.lane * sizeof(struct ring_lane), span = 64;
		break;
	case 3:
		base = layout.lanes + s.lane * sizeof(struct ring_lane),
		span = sizeof(struct ring_lane);
		break;
	case 4:
		base = layout.names, span = 64 * sizeof(struct ring_name);
		break;
	case 5:
		base = layout.info, span = RING_INFO_BYTES;
		break;
	default:
		base = layout.data + (uint64_t)s.lane * header.lane_bytes, span = header.lane_bytes;
		break;
	}
	at = base + s.offset % (span - s.bytes + 1);
	memcpy(mem + at, &s.value, s.bytes);
	undo[n_undo].offset = at;
	undo[n_undo++].bytes = s.bytes;
}

static void walk_lane(const struct reader *r, uint32_t lane)
{
	static uint8_t piece[RING_LANE_BYTES_MIN];
	const struct reader_lane *l = &r->lane[lane];
	const uint32_t n = (uint32_t)(l->tail - l->head);
	struct reader_walk w, again;

	MUST(l->tail >= l->head && l->tail - l->head <= r->h.lane_bytes && l->tail % 8 == 0);
	disturb();
	MUST(reader_copy(r, lane, l->head, n, piece) == 0);
	w = reader_walk(piece, n, l->head, r->h.lane_bytes, n / 2);
	MUST(w.reached <= n && w.whole <= w.reached && w.whole <= n / 2 &&
		w.session_end <= w.reached);
	again = reader_walk(piece, w.reached, l->head, r->h.lane_bytes, w.reached);
	MUST(again.reached == w.reached && again.whole == w.reached && !again.broken);
}

static void read_table(struct reader *r, enum j_table_which which)
{
	static uint8_t out[READER_TABLE_BYTES];
	struct reader_extent x;
	struct j_table t;
	uint32_t bytes, pieces = 0, first = 0;

	MUST(reader_extent(r, &x) == 0);
	MUST(x.names <= r->h.name_cap && x.paths <= r->h.path_cap && x.configs <= r->h.config_cap &&
		x.devices <= r->h.device_cap);
	while (reader_has_new(r, which, &x)) {
		disturb();
		MUST(reader_table(r, which, &x, out, sizeof(out), &bytes) == 0);
		memcpy(&t, out, sizeof(t));
		MUST(bytes <= sizeof(out) && t.which == which && t.first == first && t.n > 0);
		first += t.n;
		MUST(++pieces < 100);
	}
}

static void read_all(struct reader *r)
{
	static struct j_now now[LANES * NOW_FRAMES];
	static char info[RING_INFO_BYTES];
	uint32_t i, k, bytes;
	bool moved;

	for (k = 0; k < PIECES; k++) {
		disturb();
		MUST(reader_lanes(r, k % 2, &moved) == 0);
		MUST(r->n_seen <= LANES);
		for (i = 0; i < r->n_seen; i++)
			walk_lane(r, i);
	}
	read_table(r, TABLE_NAMES);
	read_table(r, TABLE_PATHS);
	read_table(r, TABLE_CONFIGS);
	read_table(r, TABLE_DEVICES);
	for (i = 0; i < LANES; i++) {
		disturb();
		MUST(reader_now(r, i, now, LANES * NOW_FRAMES) <= NOW_FRAMES);
	}
	MUST(reader_info(r, info, &bytes) == 0 && bytes <= sizeof(info));
	MUST(bytes == 0 || info[bytes - 1] == '\0');
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	const struct reader_expect x = {.uid = (uint32_t)geteuid()};
	struct reader r;
	struct err e;
	uint32_t i;
	int copy;

	if (fd < 0)
		make_clean();
	if (n < 1)
		return 0;
	script = p + 1;
	script_left = n - 1;
	for (i = 0; i < p[0] % 8; i++)
		disturb();
	copy = dup(fd);
	if (reader_open(copy, &x, &r, &e) == 0) {
		read_all(&r);
		reader_close(&r);
	} else {
		MUST(e.code < 0 && e.text[0] != '\0');
		(void)close(copy);
	}
	while (n_undo > 0) {
		n_undo--;
		memcpy(mem + undo[n_undo].offset, clean + undo[n_undo].offset, undo[n_undo].bytes);
	}
	return 0;
}
