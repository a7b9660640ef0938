/* SPDX-License-Identifier: MIT. pages.c: an SQLite file read page by page.
 *
 *   file, WAL ──► page ──► cell ──► payload, with its overflow pages ──► record ──► row()
 */
#include "pages.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEADER_BYTES  100u
#define DEPTH_MAX     20u /* of a b-tree: more than any file has */
#define WAL_HEADER    32u
#define FRAME_HEADER  24u
#define PTRMAP_ROOT   1u
#define PTRMAP_BTREE  5u
#define LEAF_TABLE    0x0d
#define LEAF_INDEX    0x0a
#define INNER_TABLE   0x05
#define INNER_INDEX   0x02
#define PAYLOAD_FIRST 4096u
#define LOST          "%s: its first page, which says where all else is, cannot be read"

struct pages {
	int fd, wal;
	uint32_t page_bytes, usable, n; /* n: pages, of the file or of its WAL */
	uint32_t application, user_version, free_pages;
	bool has_ptrmap;
	uint64_t *frame;           /* [n + 1]: where the page stands in the WAL; 0: it does not */
	uint8_t *seen;             /* [n + 1] */
	uint8_t *level[DEPTH_MAX]; /* a page each */
	uint8_t *overflow;         /* a page */
	uint8_t *payload;          /* of a record that has overflow pages */
	size_t cap;
};

static uint32_t be16(const uint8_t *b)
{
	return (uint32_t)b[0] << 8 | b[1];
}

static uint32_t be32(const uint8_t *b)
{
	return be16(b) << 16 | be16(b + 2);
}

static bool read_at(int fd, void *to, size_t n, uint64_t at)
{
	return pread(fd, to, n, (off_t)at) == (ssize_t)n;
}

/* --- the WAL: frames up to the last that ends a transaction */

struct sum {
	uint32_t a, b;
	bool big;
};

static void sum_add(struct sum *s, const uint8_t *p, size_t n)
{
	size_t i;

	for (i = 0; i + 8 <= n; i += 8) {
		s->a += (s->big ? be32(p + i) : __builtin_bswap32(be32(p + i))) + s->b;
		s->b += (s->big ? be32(p + i + 4) : __builtin_bswap32(be32(p + i + 4))) + s->a;
	}
}

static bool wal_begin(struct pages *p, uint8_t h[WAL_HEADER], struct sum *ret)
{
	uint32_t magic;

	if (!read_at(p->wal, h, WAL_HEADER, 0))
		return false;
	magic = be32(h);
	*ret = (struct sum){.big = (magic & 1) != 0};
	sum_add(ret, h, 24);
	return (magic & ~1u) == 0x377f0682 && be32(h + 8) == p->page_bytes &&
	       be32(h + 24) == ret->a && be32(h + 28) == ret->b;
}

/* A frame that follows those before it; *ret_size: pages of the database, where it is the last of a
 * transaction. */
static bool wal_frame(struct pages *p, const uint8_t wal[WAL_HEADER], uint64_t at, struct sum *s,
	uint32_t *ret_page, uint32_t *ret_size)
{
	uint8_t h[FRAME_HEADER];

	if (!read_at(p->wal, h, sizeof(h), at) || memcmp(h + 8, wal + 16, 8) != 0 ||
		!read_at(p->wal, p->overflow, p->page_bytes, at + FRAME_HEADER))
		return false;
	sum_add(s, h, 8);
	sum_add(s, p->overflow, p->page_bytes);
	*ret_page = be32(h);
	*ret_size = be32(h + 4);
	return be32(h + 16) == s->a && be32(h + 20) == s->b && *ret_page != 0;
}

/* Where its committed frames end, and how many pages the last commit counts; keep: their places. */
static uint64_t wal_scan(struct pages *p, uint64_t until, uint32_t *ret_pages)
{
	uint8_t h[WAL_HEADER];
	uint64_t at = WAL_HEADER, end = 0;
	uint32_t page, size;
	struct sum s;

	if (p->wal < 0 || !wal_begin(p, h, &s))
		return 0;
	while (at < until && wal_frame(p, h, at, &s, &page, &size)) {
		if (p->frame != NULL && page <= p->n)
			p->frame[page] = at + FRAME_HEADER;
		at += FRAME_HEADER + p->page_bytes;
		if (size > 0) {
			end = at;
			*ret_pages = size;
		}
	}
	return end;
}

/* --- the file */

static bool read_page(struct pages *p, uint32_t page, uint8_t *to)
{
	if (page == 0 || page > p->n)
		return false;
	if (p->frame[page] != 0)
		return read_at(p->wal, to, p->page_bytes, p->frame[page]);
	return read_at(p->fd, to, p->page_bytes, (uint64_t)(page - 1) * p->page_bytes);
}

/* Of the first page. */
static int take_header(struct pages *p, const uint8_t *h, const char *path, struct err *e)
{
	const uint32_t bytes = be16(h + 16) == 1 ? 65536 : be16(h + 16);

	if (memcmp(h, "SQLite format 3", 16) != 0 || bytes < 512 || (bytes & (bytes - 1)) != 0 ||
		bytes - h[20] < 480 || be32(h + 56) > 1 ||
		(p->page_bytes != 0 && p->page_bytes != bytes))
		return err_set(e, -EBADMSG, LOST, path);
	p->page_bytes = bytes;
	p->usable = bytes - h[20];
	p->free_pages = be32(h + 36);
	p->has_ptrmap = be32(h + 52) != 0;
	p->user_version = be32(h + 60);
	p->application = be32(h + 68);
	return 0;
}

static int take_pages(struct pages *p, uint64_t bytes, const char *path, struct err *e)
{
	uint64_t n = bytes / p->page_bytes, end;
	uint32_t in_wal = 0, i;

	p->overflow = malloc(p->page_bytes);
	if (p->overflow == NULL)
		return err_set(e, -ENOMEM, "out of memory");
	end = wal_scan(p, UINT64_MAX, &in_wal);
	/* What the last commit says may be a lie: no more than file and WAL can hold together. */
	if (end > 0 && in_wal > n)
		n = in_wal < n + end / p->page_bytes ? in_wal : n + end / p->page_bytes;
	if (n > UINT32_MAX - 1)
		return err_set(e, -EFBIG, "%s has too many pages", path);
	p->n = (uint32_t)n;
	p->frame = calloc((size_t)n + 1, sizeof(*p->frame));
	p->seen = calloc((size_t)n + 1, 1);
	for (i = 0; i < DEPTH_MAX && p->frame != NULL && p->seen != NULL; i++) {
		p->level[i] = malloc(p->page_bytes);
		if (p->level[i] == NULL)
			break;
	}
	if (i < DEPTH_MAX)
		return err_set(e, -ENOMEM, "out of memory");
	(void)wal_scan(p, end, &in_wal);
	if (!read_page(p, 1, p->level[0]))
		return err_set(e, -EBADMSG, LOST, path);
	return take_header(p, p->level[0], path, e); /* the WAL's is the newest */
}

int pages_open(const char *path, struct pages **ret, struct err *e)
{
	struct pages *p = calloc(1, sizeof(*p));
	char wal[4096 + 8];
	uint8_t h[HEADER_BYTES] = {0};
	struct stat st;
	int r = 0;

	if (p == NULL)
		return err_set(e, -ENOMEM, "out of memory");
	snprintf(wal, sizeof(wal), "%s-wal", path);
	p->wal = -1;
	p->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (p->fd < 0 || fstat(p->fd, &st) < 0)
		r = err_set(e, -errno, "%s: %s", path, strerror(errno));
	else if (!S_ISREG(st.st_mode))
		r = err_set(e, -EBADMSG, "%s is not a file", path);
	if (r == 0) {
		p->wal = open(wal, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
		(void)read_at(p->fd, h, sizeof(h), 0);
		r = take_header(p, h, path, e);
	}
	if (r == 0)
		r = take_pages(p, (uint64_t)st.st_size, path, e);
	if (r < 0)
		pages_close(p);
	else
		*ret = p;
	return r;
}

void pages_close(struct pages *p)
{
	uint32_t i;

	if (p == NULL)
		return;
	if (p->fd >= 0)
		(void)close(p->fd);
	if (p->wal >= 0)
		(void)close(p->wal);
	for (i = 0; i < DEPTH_MAX; i++)
		free(p->level[i]);
	free(p->overflow);
	free(p->payload);
	free(p->frame);
	free(p->seen);
	free(p);
}

uint32_t pages_application(const struct pages *p)
{
	return p->application;
}

uint32_t pages_user_version(const struct pages *p)
{
	return p->user_version;
}

/* --- records */

/* Bytes of it; 0: it is cut off. */
static uint32_t varint(const uint8_t *p, size_t n, uint64_t *ret)
{
	uint64_t v = 0;
	uint32_t i;

	for (i = 0; i < 9 && i < n; i++) {
		if (i == 8) {
			*ret = v << 8 | p[i];
			return 9;
		}
		v = v << 7 | (p[i] & 0x7f);
		if (p[i] < 0x80) {
			*ret = v;
			return i + 1;
		}
	}
	return 0;
}

static int64_t integer(const uint8_t *p, uint32_t n)
{
	uint64_t v = (p[0] & 0x80) != 0 ? UINT64_MAX : 0;

	while (n-- > 0)
		v = v << 8 | *p++;
	return (int64_t)v;
}

/* The value of a serial type at p, of which n bytes are there. False: it is not whole. */
static bool take_field(uint64_t serial, const uint8_t **p, size_t *n, struct field *ret)
{
	static const uint8_t bytes[] = {0, 1, 2, 3, 4, 6, 8, 8, 0, 0};
	uint64_t size;

	if (serial == 10 || serial == 11)
		return false;
	size = serial >= 12 ? (serial - 12) / 2 : bytes[serial];
	if (size > *n)
		return false;
	*ret = (struct field){.type = FIELD_NULL};
	if (serial >= 12) {
		ret->type = (serial & 1) != 0 ? FIELD_TEXT : FIELD_BLOB;
		ret->p = *p;
		ret->n = (uint32_t)size;
	} else if (serial == 7) {
		ret->type = FIELD_F64;
		ret->i = integer(*p, 8);
		memcpy(&ret->f, &ret->i, sizeof(ret->f));
	} else if (serial > 0) {
		ret->type = FIELD_I64;
		ret->i = size > 0 ? integer(*p, (uint32_t)size) : serial == 9;
	}
	*p += size;
	*n -= size;
	return true;
}

static bool take_record(const uint8_t *p, size_t n, struct record *ret)
{
	const uint8_t *body;
	uint64_t head, serial;
	uint32_t at = varint(p, n, &head), one;
	size_t left;

	if (at == 0 || head < at || head > n)
		return false;
	body = p + head;
	left = n - head;
	for (ret->n = 0; at < head && ret->n < PAGES_FIELDS_MAX; at += one) {
		one = varint(p + at, head - at, &serial);
		if (one == 0 || !take_field(serial, &body, &left, &ret->field[ret->n++]))
			return false;
	}
	return ret->n > 0;
}

/* --- cells */

static bool is_leaf(uint8_t type)
{
	return type == LEAF_TABLE || type == LEAF_INDEX;
}

static bool has_records(uint8_t type)
{
	return is_leaf(type) || type == INNER_INDEX;
}

/* A page is of one tree, or one record, only. */
static bool first_time(struct pages *p, uint32_t page)
{
	if (page == 0 || page > p->n || p->seen[page] != 0)
		return false;
	p->seen[page] = 1;
	return true;
}

static bool grow(struct pages *p, size_t want)
{
	size_t cap = p->cap == 0 ? PAYLOAD_FIRST : p->cap;
	uint8_t *more;

	while (cap < want)
		cap *= 2;
	more = cap == p->cap ? p->payload : realloc(p->payload, cap);
	if (more == NULL)
		return false;
	p->payload = more;
	p->cap = cap;
	return true;
}

/* `local` bytes at `from` and the rest on overflow pages; memory grows with what is read, not with
 * what is claimed. */
static bool gather(struct pages *p, const uint8_t *from, size_t local, size_t n)
{
	uint32_t next = be32(from + local);
	size_t have = local, some;

	if (!grow(p, local))
		return false;
	memcpy(p->payload, from, local);
	while (have < n) {
		if (!first_time(p, next) || !read_page(p, next, p->overflow))
			return false;
		some = n - have < p->usable - 4 ? n - have : p->usable - 4;
		if (!grow(p, have + some))
			return false;
		memcpy(p->payload + have, p->overflow + 4, some);
		have += some;
		next = be32(p->overflow);
	}
	return true;
}

/* Bytes of a payload of n that stand on the page itself. */
static size_t local_bytes(const struct pages *p, uint8_t type, uint64_t n)
{
	const uint64_t u = p->usable, most = type == LEAF_TABLE ? u - 35 : (u - 12) * 64 / 255 - 23,
		       least = (u - 12) * 32 / 255 - 23, k = least + (n - least) % (u - 4);

	return (size_t)(n <= most ? n : k <= most ? k : least);
}

/* The record of the cell at `at`. */
static bool take_cell(
	struct pages *p, const uint8_t *page, uint8_t type, uint32_t at, struct record *ret)
{
	uint64_t n = 0, rowid = 0;
	uint32_t one;
	size_t local;

	at += type == INNER_INDEX ? 4 : 0;
	one = at < p->usable ? varint(page + at, p->usable - at, &n) : 0;
	at += one;
	if (one == 0 || n > (uint64_t)p->n * p->page_bytes)
		return false;
	ret->has_rowid = type == LEAF_TABLE;
	if (ret->has_rowid) {
		one = at < p->usable ? varint(page + at, p->usable - at, &rowid) : 0;
		at += one;
		if (one == 0)
			return false;
	}
	ret->rowid = (int64_t)rowid;
	local = local_bytes(p, type, n);
	if (at + local + (local < n ? 4 : 0) > p->usable)
		return false;
	if (local == n)
		return take_record(page + at, n, ret);
	return gather(p, page + at, local, n) && take_record(p->payload, n, ret);
}

/* --- trees */

static uint32_t head_of(uint32_t page) /* where a page's own header begins */
{
	return page == 1 ? HEADER_BYTES : 0;
}

static int walk(struct pages *p, uint32_t page, uint32_t depth, const struct pages_visit *v);

/* Cell i of a page, with what is left of it. */
static int walk_cell(
	struct pages *p, uint32_t page, uint32_t depth, uint32_t at, const struct pages_visit *v)
{
	const uint8_t *b = p->level[depth];
	const uint8_t type = b[head_of(page)];
	struct record record;
	int r = 0;

	if (at < head_of(page) + 8 || at + 4 > p->usable) {
		v->lack(v->arg, !is_leaf(type));
		return 0;
	}
	if (!is_leaf(type))
		r = walk(p, be32(b + at), depth + 1, v);
	if (r < 0 || !has_records(type))
		return r;
	if (take_cell(p, b, type, at, &record))
		return v->row(v->arg, &record);
	v->lack(v->arg, false);
	return 0;
}

static int walk_page(struct pages *p, uint32_t page, uint32_t depth, const struct pages_visit *v)
{
	const uint8_t *h = p->level[depth] + head_of(page);
	const bool leaf = is_leaf(h[0]);
	const uint32_t first = head_of(page) + (leaf ? 8 : 12), n = be16(h + 3);
	uint32_t i;
	int r = 0;

	if ((!has_records(h[0]) && h[0] != INNER_TABLE) || first + 2 * n > p->usable) {
		v->lack(v->arg, true);
		return 0;
	}
	for (i = 0; r == 0 && i < n; i++)
		r = walk_cell(p, page, depth, be16(p->level[depth] + first + 2 * i), v);
	return r == 0 && !leaf ? walk(p, be32(h + 8), depth + 1, v) : r;
}

static int walk(struct pages *p, uint32_t page, uint32_t depth, const struct pages_visit *v)
{
	if (depth < DEPTH_MAX && first_time(p, page) && read_page(p, page, p->level[depth]))
		return walk_page(p, page, depth, v);
	v->lack(v->arg, true);
	return 0;
}

int pages_walk(struct pages *p, uint32_t root, const struct pages_visit *v)
{
	return walk(p, root, 0, v);
}

/* --- pages that no tree leads to */

/* Whether the page is in use, by the map of pages that an auto_vacuum database has; without one,
 * where no page is free. */
static bool is_used(struct pages *p, uint32_t page)
{
	const uint32_t per_map = p->usable / 5 + 1, map = (page - 2) / per_map * per_map + 2;
	uint8_t kind;

	if (!p->has_ptrmap)
		return p->free_pages == 0;
	if (page == map || !read_page(p, map, p->overflow))
		return false;
	kind = p->overflow[5 * (page - map - 1)];
	return kind == PTRMAP_ROOT || kind == PTRMAP_BTREE;
}

bool pages_orphan(struct pages *p, uint32_t *at)
{
	for (; *at <= p->n; (*at)++)
		if (*at > 1 && p->seen[*at] == 0 && is_used(p, *at))
			return true;
	return false;
}
