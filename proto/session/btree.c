/* SPDX-License-Identifier: MIT. btree.c: an SQLite file read page by page.
 *
 *   file, WAL ──► page ──► cell ──► payload, with its overflow pages ──► record ──► row()
 */
#include "btree.h"

#include <endian.h>
#include <fcntl.h>
#include <sqlite3.h>
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
#define PAD           8u /* behind a page, and a payload */
#define KEY_FIELDS    3u /* the first two */
#define BEFORE        1  /* of a walk: what was looked at is before what is wanted, */
#define BEHIND        2  /* or behind */
#define LOST          "%s: its first page, which says where all else is, cannot be read"

/* Of a WAL's index: parts, and words of the first. */
#define INDEX_PART    32768
#define INDEX_VERSION 3007000u
#define INDEX_HEAD    12u
#define INDEX_FRAMES  4u
#define INDEX_SIZE    5u
#define INDEX_FIRST   34u   /* then the page of each frame, */
#define INDEX_PAGES   4096u /* of so many words before a part's hash table */

struct index_head {
	uint32_t word[INDEX_HEAD];
	uint32_t in_file; /* frames that have been copied to the file */
};

_Static_assert(BTREE_FIELDS_MAX == 64, "a bit each");

struct from { /* ours, or SQLite's */
	int fd;
	sqlite3_file *file;
};

struct btree {
	struct from db, wal;
	uint32_t page_bytes, usable, n; /* n: pages, of the file or of its WAL */
	uint32_t application, user_version, free_pages;
	bool has_ptrmap;
	uint64_t *frame;           /* [n + 1]: where the page stands in the WAL; 0: it does not */
	uint32_t *seen, walk;      /* [n + 1]: in which walk; 0: in none */
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

static bool read_at(const struct from *f, void *to, size_t n, uint64_t at)
{
	if (f->file != NULL)
		return f->file->pMethods->xRead(f->file, to, (int)n, (sqlite3_int64)at) ==
		       SQLITE_OK;
	return pread(f->fd, to, n, (off_t)at) == (ssize_t)n;
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

static bool wal_begin(struct btree *p, uint8_t h[WAL_HEADER], struct sum *ret)
{
	uint32_t magic;

	if (!read_at(&p->wal, h, WAL_HEADER, 0))
		return false;
	magic = be32(h);
	*ret = (struct sum){.big = (magic & 1) != 0};
	sum_add(ret, h, 24);
	return (magic & ~1u) == 0x377f0682 && be32(h + 8) == p->page_bytes &&
	       be32(h + 24) == ret->a && be32(h + 28) == ret->b;
}

/* A frame that follows those before it; *ret_size: pages of the database, where it is the last of a
 * transaction. */
static bool wal_frame(struct btree *p, const uint8_t wal[WAL_HEADER], uint64_t at, struct sum *s,
	uint32_t *ret_page, uint32_t *ret_size)
{
	uint8_t h[FRAME_HEADER];

	if (!read_at(&p->wal, h, sizeof(h), at) || memcmp(h + 8, wal + 16, 8) != 0 ||
		!read_at(&p->wal, p->overflow, p->page_bytes, at + FRAME_HEADER))
		return false;
	sum_add(s, h, 8);
	sum_add(s, p->overflow, p->page_bytes);
	*ret_page = be32(h);
	*ret_size = be32(h + 4);
	return be32(h + 16) == s->a && be32(h + 20) == s->b && *ret_page != 0;
}

/* Where its committed frames end, and how many pages the last commit counts; keep: their places. */
static uint64_t wal_scan(struct btree *p, uint64_t until, uint32_t *ret_pages)
{
	uint8_t h[WAL_HEADER];
	uint64_t at = WAL_HEADER, end = 0;
	uint32_t page, size;
	struct sum s;

	if (p->wal.fd < 0 || !wal_begin(p, h, &s))
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

static bool read_page(struct btree *p, uint32_t page, uint8_t *to)
{
	if (page == 0 || page > p->n)
		return false;
	if (p->frame[page] != 0)
		return read_at(&p->wal, to, p->page_bytes, p->frame[page]);
	return read_at(&p->db, to, p->page_bytes, (uint64_t)(page - 1) * p->page_bytes);
}

/* Of the first page. */
static int take_header(struct btree *p, const uint8_t *h, const char *path, struct err *e)
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

static bool make_room(struct btree *p, uint32_t n)
{
	uint32_t i;

	p->n = n;
	p->walk = 1;
	p->frame = calloc((size_t)n + 1, sizeof(*p->frame));
	p->seen = calloc((size_t)n + 1, sizeof(*p->seen));
	for (i = 0; i < DEPTH_MAX && p->frame != NULL && p->seen != NULL; i++) {
		p->level[i] = malloc(p->page_bytes + PAD);
		if (p->level[i] == NULL)
			break;
	}
	return i == DEPTH_MAX;
}

static int take_pages(struct btree *p, uint64_t bytes, const char *path, struct err *e)
{
	uint64_t n = bytes / p->page_bytes, end;
	uint32_t in_wal = 0;

	p->overflow = malloc(p->page_bytes);
	if (p->overflow == NULL)
		return err_set(e, -ENOMEM, "out of memory");
	end = wal_scan(p, UINT64_MAX, &in_wal);
	/* What the last commit says may be a lie: no more than file and WAL can hold together. */
	if (end > 0 && in_wal > n)
		n = in_wal < n + end / p->page_bytes ? in_wal : n + end / p->page_bytes;
	if (n > UINT32_MAX - 1)
		return err_set(e, -EFBIG, "%s has too many pages", path);
	if (!make_room(p, (uint32_t)n))
		return err_set(e, -ENOMEM, "out of memory");
	(void)wal_scan(p, end, &in_wal);
	if (!read_page(p, 1, p->level[0]))
		return err_set(e, -EBADMSG, LOST, path);
	return take_header(p, p->level[0], path, e); /* the WAL's is the newest */
}

int btree_open(const char *path, struct btree **ret, struct err *e)
{
	struct btree *p = calloc(1, sizeof(*p));
	char wal[4096 + 8];
	uint8_t h[HEADER_BYTES] = {0};
	struct stat st;
	int r = 0;

	if (p == NULL)
		return err_set(e, -ENOMEM, "out of memory");
	snprintf(wal, sizeof(wal), "%s-wal", path);
	p->wal.fd = -1;
	p->db.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (p->db.fd < 0 || fstat(p->db.fd, &st) < 0)
		r = err_set(e, -errno, "%s: %s", path, strerror(errno));
	else if (!S_ISREG(st.st_mode))
		r = err_set(e, -EBADMSG, "%s is not a file", path);
	if (r == 0) {
		p->wal.fd = open(wal, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
		(void)read_at(&p->db, h, sizeof(h), 0);
		r = take_header(p, h, path, e);
	}
	if (r == 0)
		r = take_pages(p, (uint64_t)st.st_size, path, e);
	if (r < 0)
		btree_close(p);
	else
		*ret = p;
	return r;
}

/* --- the file as SQLite reads it in a transaction
 *
 * The WAL's index tells where a transaction's pages are: sqlite.org/walformat.html. While it lasts, nobody overwrites
 * the frames that it may read, nor pages of the file that have none of them. */

static bool index_part(sqlite3_file *f, uint32_t part, uint32_t **ret)
{
	void *at = NULL;
	const int r = f->pMethods->iVersion >= 2 && f->pMethods->xShmMap != NULL
			      ? f->pMethods->xShmMap(f, (int)part, INDEX_PART, 0, (void *)&at)
			      : SQLITE_CANTOPEN;

	*ret = at;
	return (r == SQLITE_OK || r == SQLITE_READONLY) && at != NULL;
}

/* The index' head stands there twice: while it is written the two differ. */
static bool index_look(sqlite3_file *f, struct index_head *ret)
{
	uint32_t *at, twice[2][INDEX_HEAD], i;

	if (!index_part(f, 0, &at))
		return false;
	/* First: what is begun anew meanwhile has another head. */
	ret->in_file = __atomic_load_n(&at[2 * INDEX_HEAD], __ATOMIC_ACQUIRE);
	for (i = 0; i < 2 * INDEX_HEAD; i++)
		twice[i / INDEX_HEAD][i % INDEX_HEAD] = __atomic_load_n(&at[i], __ATOMIC_ACQUIRE);
	memcpy(ret->word, twice[0], sizeof(ret->word));
	return ret->word[0] == INDEX_VERSION && memcmp(twice[0], twice[1], sizeof(twice[0])) == 0;
}

static bool index_read(struct btree *p, const struct index_head *h)
{
	uint32_t f, part, last = UINT32_MAX, *at = NULL, page;

	for (f = h->in_file; f < h->word[INDEX_FRAMES]; f++) {
		part = (f + INDEX_FIRST) / INDEX_PAGES;
		if (part != last && !index_part(p->db.file, part, &at))
			return false;
		last = part;
		page = at[(f + INDEX_FIRST) % INDEX_PAGES];
		if (page <= p->n)
			p->frame[page] = WAL_HEADER + (uint64_t)f * (FRAME_HEADER + p->page_bytes) +
					 FRAME_HEADER;
	}
	return true;
}

static sqlite3_file *file_of(sqlite3 *db, int which)
{
	sqlite3_file *f = NULL;

	(void)sqlite3_file_control(db, "main", which, &f);
	return f != NULL && f->pMethods != NULL ? f : NULL;
}

/* Its transaction begins to read: that nobody wrote meanwhile, the index' head says. */
static bool begin(sqlite3 *db, struct btree *p, struct index_head *ret)
{
	struct index_head before;

	*ret = (struct index_head){{0}, 0};
	p->db.file = file_of(db, SQLITE_FCNTL_FILE_POINTER);
	p->wal.file = file_of(db, SQLITE_FCNTL_JOURNAL_POINTER);
	return sqlite3_get_autocommit(db) == 0 &&
	       sqlite3_txn_state(db, "main") == SQLITE_TXN_NONE && p->db.file != NULL &&
	       (p->wal.file == NULL || index_look(p->db.file, &before)) &&
	       sqlite3_exec(db, "SELECT 1 FROM sqlite_schema", NULL, NULL, NULL) == SQLITE_OK &&
	       sqlite3_txn_state(db, "main") == SQLITE_TXN_READ &&
	       p->wal.file == file_of(db, SQLITE_FCNTL_JOURNAL_POINTER) &&
	       (p->wal.file == NULL ||
		       (index_look(p->db.file, ret) &&
			       memcmp(before.word, ret->word, sizeof(before.word)) == 0));
}

static int take_file(struct btree *p, const struct index_head *index)
{
	uint8_t h[HEADER_BYTES];
	sqlite3_int64 bytes = 0;
	uint64_t n, most;
	struct err e;

	if (!read_at(&p->db, h, sizeof(h), 0) || take_header(p, h, "", &e) < 0 ||
		p->db.file->pMethods->xFileSize(p->db.file, &bytes) != SQLITE_OK)
		return -EAGAIN;
	n = (uint64_t)bytes / p->page_bytes;
	most = n + index->word[INDEX_FRAMES]; /* what the index says may be a lie */
	if (index->word[INDEX_SIZE] != 0)
		n = index->word[INDEX_SIZE];
	if (n > most || n > UINT32_MAX - 1)
		return -EAGAIN;
	p->overflow = malloc(p->page_bytes);
	if (p->overflow == NULL || !make_room(p, (uint32_t)n))
		return -ENOMEM;
	return index_read(p, index) && read_page(p, 1, p->level[0]) &&
			       take_header(p, p->level[0], "", &e) == 0
		       ? 0
		       : -EAGAIN;
}

int btree_of(struct sqlite3 *db, struct btree **ret)
{
	struct btree *p = calloc(1, sizeof(*p));
	struct index_head index;
	int r;

	if (p == NULL)
		return -ENOMEM;
	p->db.fd = p->wal.fd = -1;
	r = begin(db, p, &index) ? take_file(p, &index) : -EAGAIN;
	if (r < 0)
		btree_close(p);
	else
		*ret = p;
	return r;
}

void btree_close(struct btree *p)
{
	uint32_t i;

	if (p == NULL)
		return;
	if (p->db.fd >= 0)
		(void)close(p->db.fd);
	if (p->wal.fd >= 0)
		(void)close(p->wal.fd);
	for (i = 0; i < DEPTH_MAX; i++)
		free(p->level[i]);
	free(p->overflow);
	free(p->payload);
	free(p->frame);
	free(p->seen);
	free(p);
}

uint32_t btree_application(const struct btree *p)
{
	return p->application;
}

uint32_t btree_user_version(const struct btree *p)
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

/* Of 1 to 8 bytes; what it loads behind them is in the buffer's PAD. */
static int64_t integer(const uint8_t *p, uint64_t bytes)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return (int64_t)be64toh(v) >> (64 - 8 * bytes);
}

/* More than there can be where no value is of the type. */
static uint64_t bytes_of(uint64_t serial)
{
	static const uint64_t bytes[] = {0, 1, 2, 3, 4, 6, 8, 8, 0, 0, UINT64_MAX, UINT64_MAX};

	return serial >= 12 ? (serial - 12) / 2 : bytes[serial];
}

/* The value of a serial type at p. */
static void take_field(uint64_t serial, const uint8_t *p, uint64_t bytes, struct field *ret)
{
	*ret = (struct field){.type = FIELD_NULL};
	if (serial >= 12) {
		ret->type = (serial & 1) != 0 ? FIELD_TEXT : FIELD_BLOB;
		ret->p = p;
		ret->n = (uint32_t)bytes;
	} else if (serial > 0) {
		ret->type = serial == 7 ? FIELD_F64 : FIELD_I64;
		ret->i = bytes > 0 ? integer(p, bytes) : serial == 9;
	}
}

/* Up to the last of those wanted, a bit each. */
static bool take_record(const uint8_t *p, size_t n, uint64_t want, struct record *ret)
{
	const uint8_t *body;
	uint64_t head, serial, bytes;
	uint32_t at = varint(p, n, &head), one, i;
	size_t left;

	if (at == 0 || head < at || head > n)
		return false;
	body = p + head;
	left = n - head;
	for (i = 0; at < head && want != 0; i++, want >>= 1, at += one) {
		serial = p[at];
		one = serial < 0x80 ? 1 : varint(p + at, head - at, &serial);
		bytes = bytes_of(serial);
		if (one == 0 || bytes > left)
			return false;
		if ((want & 1) != 0)
			take_field(serial, body, bytes, &ret->field[i]);
		body += bytes;
		left -= bytes;
	}
	ret->n = i;
	return i > 0;
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
static bool first_time(struct btree *p, uint32_t page)
{
	if (page == 0 || page > p->n || p->seen[page] == p->walk)
		return false;
	p->seen[page] = p->walk;
	return true;
}

static bool grow(struct btree *p, size_t want)
{
	size_t cap = p->cap == 0 ? PAYLOAD_FIRST : p->cap;
	uint8_t *more;

	while (cap < want)
		cap *= 2;
	more = cap == p->cap ? p->payload : realloc(p->payload, cap + PAD);
	if (more == NULL)
		return false;
	p->payload = more;
	p->cap = cap;
	return true;
}

/* `local` bytes at `from` and the rest on overflow pages; memory grows with what is read, not with
 * what is claimed. */
static bool gather(struct btree *p, const uint8_t *from, size_t local, size_t n)
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
static size_t local_bytes(const struct btree *p, uint8_t type, uint64_t n)
{
	const uint64_t u = p->usable, most = type == LEAF_TABLE ? u - 35 : (u - 12) * 64 / 255 - 23,
		       least = (u - 12) * 32 / 255 - 23, k = least + (n - least) % (u - 4);

	return (size_t)(n <= most ? n : k <= most ? k : least);
}

/* The record of the cell at `at`; of its key alone as much as stands on the page. */
static bool take_cell(struct btree *p, const uint8_t *page, uint8_t type, uint32_t at,
	uint64_t want, struct record *ret)
{
	uint64_t n = 0, rowid = 0;
	uint32_t one;
	size_t local;

	at += is_leaf(type) ? 0 : 4;
	if (has_records(type)) {
		one = at < p->usable ? varint(page + at, p->usable - at, &n) : 0;
		at += one;
		if (one == 0 || n > (uint64_t)p->n * p->page_bytes)
			return false;
	}
	ret->has_rowid = type == LEAF_TABLE || type == INNER_TABLE;
	if (ret->has_rowid) {
		one = at < p->usable ? varint(page + at, p->usable - at, &rowid) : 0;
		at += one;
		if (one == 0)
			return false;
	}
	ret->rowid = (int64_t)rowid;
	ret->n = 0;
	if (!has_records(type))
		return true;
	local = local_bytes(p, type, n);
	if (at + local + (local < n ? 4 : 0) > p->usable)
		return false;
	if (local == n || want == KEY_FIELDS)
		return take_record(page + at, local, want, ret);
	return gather(p, page + at, local, n) && take_record(p->payload, n, want, ret);
}

/* --- trees */

static uint32_t head_of(uint32_t page) /* where a page's own header begins */
{
	return page == 1 ? HEADER_BYTES : 0;
}

static int walk(struct btree *p, uint32_t page, uint32_t depth, const struct btree_visit *v);

static int side_of(const struct btree_visit *v, const struct record *r)
{
	return v->side != NULL ? v->side(v->arg, r) : 0;
}

/* What is left of a cell, whose key is the greatest there or behind all of it. BEHIND: nothing further is wanted. */
static int walk_left(
	struct btree *p, uint32_t depth, uint8_t type, uint32_t at, const struct btree_visit *v)
{
	const uint8_t *b = p->level[depth];
	struct record key;
	const int side = v->side != NULL && take_cell(p, b, type, at, KEY_FIELDS, &key)
				 ? side_of(v, &key)
				 : 0;
	const int r = side < 0 ? BEFORE : walk(p, be32(b + at), depth + 1, v);

	return r == 0 && side > 0 ? BEHIND : r;
}

/* Cell i of a page, with what is left of it. */
static int walk_cell(
	struct btree *p, uint32_t page, uint32_t depth, uint32_t at, const struct btree_visit *v)
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
		r = walk_left(p, depth, type, at, v);
	if (r != 0 || !has_records(type))
		return r == BEFORE ? 0 : r;
	if (!take_cell(p, b, type, at, v->want, &record)) {
		v->lack(v->arg, false);
		return 0;
	}
	r = side_of(v, &record);
	return r < 0 ? 0 : r > 0 ? BEHIND : v->row(v->arg, &record);
}

static int walk_page(struct btree *p, uint32_t page, uint32_t depth, const struct btree_visit *v)
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

static int walk(struct btree *p, uint32_t page, uint32_t depth, const struct btree_visit *v)
{
	if (depth < DEPTH_MAX && first_time(p, page) && read_page(p, page, p->level[depth]))
		return walk_page(p, page, depth, v);
	v->lack(v->arg, true);
	return 0;
}

int btree_walk(struct btree *p, uint32_t root, const struct btree_visit *v)
{
	int r;

	p->walk += v->side != NULL;
	r = walk(p, root, 0, v);
	return r == BEHIND ? 0 : r;
}

/* --- pages that no tree leads to */

/* Whether the page is in use, by the map of pages that an auto_vacuum database has; without one,
 * where no page is free. */
static bool is_used(struct btree *p, uint32_t page)
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

bool btree_orphan(struct btree *p, uint32_t *at)
{
	for (; *at <= p->n; (*at)++)
		if (*at > 1 && p->seen[*at] == 0 && is_used(p, *at))
			return true;
	return false;
}
