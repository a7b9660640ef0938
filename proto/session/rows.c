/* SPDX-License-Identifier: MIT. rows.c: how each kind of column is bound and read. The database may
 * be anybody's: every blob is bounded, every number cut to what holds it. */
#include "rows.h"

#include <endian.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "hist.h"
#include "metric_terms.h"
#include "profile.h"
#include "session_terms.h"

/* --- put: a bind that fails leaves NULL, which NOT NULL columns refuse when the statement runs ---
 */

static void bind_i64(sqlite3_stmt *q, int i, int64_t v)
{
	(void)sqlite3_bind_int64(q, i, v);
}

static void bind_maybe(sqlite3_stmt *q, int i, int64_t v, int64_t none)
{
	(void)(v == none ? sqlite3_bind_null(q, i) : sqlite3_bind_int64(q, i, v));
}

static void bind_text(sqlite3_stmt *q, int i, const char *s, size_t max)
{
	(void)sqlite3_bind_text(q, i, s, (int)strnlen(s, max), SQLITE_STATIC);
}

static void bind_string(sqlite3_stmt *q, int i, const char *s)
{
	(void)sqlite3_bind_text64(
		q, i, s == NULL ? "" : s, s == NULL ? 0 : strlen(s), SQLITE_STATIC, SQLITE_UTF8);
}

static void bind_blob(sqlite3_stmt *q, int i, const void *p, size_t n)
{
	(void)sqlite3_bind_blob64(q, i, p, n, SQLITE_STATIC); /* NULL: NULL */
}

static const uint8_t zeroes[16];

static bool is_zero(const uint8_t uuid[16])
{
	return memcmp(uuid, zeroes, sizeof(zeroes)) == 0;
}

static void bind_node(struct row_io *x, sqlite3_stmt *q, int i, const uint8_t hash[16])
{
	int64_t id = 0;

	if (x->r == SQLITE_OK)
		x->r = x->node_id(x->nodes, hash, &id);
	bind_i64(q, i, id);
}

static void bind_counters(sqlite3_stmt *q, int i, const uint64_t v[8])
{
	uint64_t le[8];
	uint32_t k;

	for (k = 0; k < 8; k++)
		le[k] = htole64(v[k]);
	(void)sqlite3_bind_blob(q, i, le, sizeof(le), SQLITE_TRANSIENT);
}

static void bind_match(sqlite3_stmt *q, int i, const struct row_session *s)
{
	const char *word = term_word(&term_session_matches, s->match, "unknown");
	char text[160];

	if (s->match == MATCH_PID)
		(void)snprintf(text, sizeof(text), "%s%u", word, s->pid);
	else
		(void)snprintf(text, sizeof(text), "%s%.*s", word,
			s->match == MATCH_COMMAND ? (int)sizeof(s->command) : 0, s->command);
	(void)sqlite3_bind_text(q, i, text, -1, SQLITE_TRANSIENT);
}

static void bind_buckets(struct row_io *x, sqlite3_stmt *q, int i, const struct row_cell *c)
{
	bind_blob(q, i, c->buckets_n == 0 ? NULL : x->from->buckets + c->buckets, c->buckets_n);
}

/* INTEGER, REAL or TEXT, so that a reader sees the type. What does not fit: an unsigned over
 * 2^63 - 1 becomes REAL; NaN, which SQLite takes for NULL, becomes the text "nan", or, of a property,
 * which may be such a text, an empty BLOB. */
static void bind_value(sqlite3_stmt *q, int i, const struct row_metric *m)
{
	double f;

	memcpy(&f, &m->bits, sizeof(f));
	if (m->type == METRIC_STR)
		bind_string(q, i, m->text);
	else if (m->type == METRIC_F64 && isnan(f) && m->kind == KIND_PROPERTY)
		(void)sqlite3_bind_zeroblob(q, i, 0);
	else if (m->type == METRIC_F64 && isnan(f))
		bind_string(q, i, "nan");
	else if (m->type == METRIC_F64)
		(void)sqlite3_bind_double(q, i, f);
	else if (m->type == METRIC_U64 && m->bits > INT64_MAX)
		(void)sqlite3_bind_double(q, i, (double)m->bits);
	else
		bind_i64(q, i, (int64_t)m->bits);
}

static void bind_pci(sqlite3_stmt *q, int i, const struct row_device *d)
{
	char text[32];

	(void)snprintf(
		text, sizeof(text), "%04x:%02x:%02x", d->pci_domain, d->pci_bus, d->pci_device);
	(void)sqlite3_bind_text(q, i, text, -1, SQLITE_TRANSIENT);
}

/* clang-format off */
#define PUT_I64(c, a)        bind_i64(q, i, r->c)
#define PUT_U64(c, a)        bind_i64(q, i, (int64_t)r->c)
#define PUT_I32(c, a)        bind_i64(q, i, r->c)
#define PUT_U32(c, a)        bind_i64(q, i, r->c)
#define PUT_U8(c, a)         bind_i64(q, i, r->c)
#define PUT_I32_MAYBE(c, a)  bind_maybe(q, i, r->c, -1)
#define PUT_U32_MAYBE(c, a)  bind_maybe(q, i, r->c, UINT32_MAX)
#define PUT_I64_MAYBE(c, a)  bind_maybe(q, i, r->c, 0)
#define PUT_U64_MAYBE(c, a)  bind_maybe(q, i, (int64_t)r->c, 0)
#define PUT_UUID(c, a)       bind_blob(q, i, r->c, 16)
#define PUT_UUID_MAYBE(c, a) bind_blob(q, i, is_zero(r->c) ? NULL : r->c, 16)
#define PUT_TEXT(c, n)       bind_text(q, i, r->c, n)
#define PUT_TEXT_MAYBE(c, n) r->c[0] == '\0' ? (void)sqlite3_bind_null(q, i) : bind_text(q, i, r->c, n)
#define PUT_STRING(c, a)     bind_string(q, i, r->c)
#define PUT_NAME(c, a)       bind_string(q, i, r->c)
#define PUT_WORD(c, l)       bind_string(q, i, term_word(&(l), r->c, "unknown"))
#define PUT_WORD_MAYBE(c, l) r->c == 0 ? (void)sqlite3_bind_null(q, i) : PUT_WORD(c, l)
#define PUT_NODE(c, a)       bind_node(x, q, i, r->c)
#define PUT_ROWID(c, a)      (void)sqlite3_bind_null(q, i)
#define PUT_ABOVE(c, a)      is_zero(r->c) ? bind_i64(q, i, 0) : bind_node(x, q, i, r->c)
#define PUT_COUNTERS(c, a)   bind_counters(q, i, r->c)
#define PUT_MATCH(c, a)      bind_match(q, i, r)
#define PUT_DEVICE(c, a)     bind_i64(q, i, r->c == UINT32_MAX ? -1 : (int64_t)r->c)
#define PUT_HIST(c, a)       (void)sqlite3_bind_null(q, i)
#define PUT_BUCKETS(c, a)    bind_buckets(x, q, i, r)
#define PUT_VALUE(c, a)      bind_value(q, i, r)
#define PUT_PCI(c, a)        bind_pci(q, i, r)
#define PUT_CHUNK(c, a)      bind_blob(q, i, r->c, r->n)
#define PUT_SUMMARY(c, a)    bind_blob(q, i, r->c, r->c##_n)
#define PUT_LAUNCHES(c, a)   bind_blob(q, i, r->bytes, r->n)
/* clang-format on */

#define PUT(c, kind, a, sql) i++, PUT_##kind(c, a);
#define X(t, key, options)                                                          \
	int row_put_##t(struct row_io *x, sqlite3_stmt *q, const struct row_##t *r) \
	{                                                                           \
		int i = 0;                                                          \
                                                                                    \
		x->r = SQLITE_OK;                                                   \
		COLUMNS_##t(PUT) return x->r;                                       \
	}
TABLES(X)
#undef X

/* --- get --- */

static int64_t get_i64(sqlite3_stmt *q, int i)
{
	return sqlite3_column_int64(q, i);
}

static int64_t get_maybe(sqlite3_stmt *q, int i, int64_t none)
{
	return sqlite3_column_type(q, i) == SQLITE_NULL ? none : sqlite3_column_int64(q, i);
}

static void get_blob(sqlite3_stmt *q, int i, void *ret, size_t cap)
{
	const void *p = sqlite3_column_blob(q, i);
	const size_t n = (size_t)sqlite3_column_bytes(q, i);

	memset(ret, 0, cap);
	if (p != NULL)
		memcpy(ret, p, n < cap ? n : cap);
}

static const char *get_text(sqlite3_stmt *q, int i)
{
	const unsigned char *p = sqlite3_column_text(q, i);

	return p == NULL ? "" : (const char *)p;
}

static char *get_string(struct row_io *x, sqlite3_stmt *q, int i)
{
	char *s = strdup(get_text(q, i));

	if (s == NULL)
		x->r = -ENOMEM;
	return s;
}

/* Of another type than text: what SQLite makes of it. */
static const char *get_name(struct row_io *x, sqlite3_stmt *q, int i)
{
	const char *s = batch_text(x->into, get_text(q, i));

	if (s == NULL)
		x->r = -ENOMEM;
	return s;
}

static void get_counters(sqlite3_stmt *q, int i, uint64_t ret[8])
{
	uint32_t k;

	get_blob(q, i, ret, 8 * sizeof(*ret));
	for (k = 0; k < 8; k++)
		ret[k] = le64toh(ret[k]);
}

/* The word that it begins with. */
static uint32_t get_match(sqlite3_stmt *q, int i)
{
	const char *text = get_text(q, i), *word;
	uint32_t m;

	for (m = 0; m < term_session_matches.n; m++) {
		word = term_session_matches.word[m];
		if (word != NULL && strncmp(text, word, strlen(word)) == 0)
			return m;
	}
	return 0;
}

static void get_hist(struct row_io *x, sqlite3_stmt *q, int i, struct row_cell *c)
{
	const void *bytes = sqlite3_column_blob(q, i);
	struct hist_counts h;

	if (bytes == NULL)
		return;
	hist_unpack_old(bytes, (size_t)sqlite3_column_bytes(q, i), c->min_ns, c->max_ns, &h);
	if (!batch_hist(x->into, c, &h))
		x->r = -ENOMEM;
}

/* Of what is not ours nothing is known. */
static void get_buckets(struct row_io *x, sqlite3_stmt *q, int i, struct row_cell *c)
{
	const void *bytes = sqlite3_column_blob(q, i);
	struct hist_counts h;

	if (bytes == NULL)
		return;
	(void)hist_unpack(bytes, (size_t)sqlite3_column_bytes(q, i), &h);
	if (!batch_hist(x->into, c, &h))
		x->r = -ENOMEM;
}

static void get_value(struct row_io *x, sqlite3_stmt *q, int i, struct row_metric *m)
{
	const int type = sqlite3_column_type(q, i);
	double f;

	if (type == SQLITE_INTEGER) {
		m->type = METRIC_I64;
		m->bits = (uint64_t)get_i64(q, i);
	} else if (type == SQLITE_FLOAT || type == SQLITE_BLOB) {
		m->type = METRIC_F64;
		f = type == SQLITE_FLOAT ? sqlite3_column_double(q, i) : (double)NAN;
		memcpy(&m->bits, &f, sizeof(f));
	} else {
		m->type = METRIC_STR;
		m->text = get_name(x, q, i);
	}
}

static void get_pci(sqlite3_stmt *q, int i, struct row_device *d)
{
	(void)sscanf(get_text(q, i), "%x:%x:%x", &d->pci_domain, &d->pci_bus, &d->pci_device);
}

static void get_launches(
	struct row_io *x, sqlite3_stmt *q, int i, void **ret_bytes, uint32_t *ret_n)
{
	const int n = sqlite3_column_bytes(q, i);

	*ret_bytes = malloc(n > 0 ? (size_t)n : 1);
	if (*ret_bytes == NULL) {
		x->r = -ENOMEM;
		return;
	}
	*ret_n = (uint32_t)n;
	get_blob(q, i, *ret_bytes, *ret_n);
}

/* clang-format off */
#define GET_I64(c, a)        r->c = get_i64(q, i)
#define GET_U64(c, a)        r->c = (uint64_t)get_i64(q, i)
#define GET_I32(c, a)        r->c = (int32_t)get_i64(q, i)
#define GET_U32(c, a)        r->c = (uint32_t)get_i64(q, i)
#define GET_U8(c, a)         r->c = (uint8_t)get_i64(q, i)
#define GET_I32_MAYBE(c, a)  r->c = (int32_t)get_maybe(q, i, -1)
#define GET_U32_MAYBE(c, a)  r->c = (uint32_t)get_maybe(q, i, UINT32_MAX)
#define GET_I64_MAYBE(c, a)  r->c = get_i64(q, i) /* NULL reads as 0 */
#define GET_U64_MAYBE(c, a)  r->c = (uint64_t)get_i64(q, i)
#define GET_UUID(c, a)       get_blob(q, i, r->c, 16)
#define GET_UUID_MAYBE(c, a) get_blob(q, i, r->c, 16)
#define GET_TEXT(c, n)       (void)snprintf(r->c, n, "%s", get_text(q, i))
#define GET_TEXT_MAYBE(c, n) (void)snprintf(r->c, n, "%s", get_text(q, i))
#define GET_STRING(c, a)     r->c = get_string(x, q, i)
#define GET_NAME(c, a)       r->c = get_name(x, q, i)
#define GET_WORD(c, l)       r->c = term_number(&(l), get_text(q, i), 0)
#define GET_WORD_MAYBE(c, l) r->c = term_number(&(l), get_text(q, i), 0)
#define GET_NODE(c, a)       x->node_hash(x->nodes, get_i64(q, i), r->c)
#define GET_ROWID(c, a)      x->id = get_i64(q, i)
#define GET_ABOVE(c, a)      x->above = get_i64(q, i)
#define GET_COUNTERS(c, a)   get_counters(q, i, r->c)
#define GET_MATCH(c, a)      r->c = get_match(q, i)
#define GET_DEVICE(c, a)     r->c = (uint32_t)get_i64(q, i)
#define GET_HIST(c, a)       get_hist(x, q, i, r)
#define GET_BUCKETS(c, a)    get_buckets(x, q, i, r)
#define GET_VALUE(c, a)      get_value(x, q, i, r)
#define GET_PCI(c, a)        get_pci(q, i, r)
#define GET_CHUNK(c, a)      r->n = (uint32_t)get_i64(q, i) /* schema_select() gives its length */
#define GET_SUMMARY(c, a)    r->c = NULL
#define GET_LAUNCHES(c, a)   get_launches(x, q, i, &r->bytes, &r->n)
/* clang-format on */

#define GET(c, kind, a, sql) GET_##kind(c, a), i++;
#define X(t, key, options)                                                    \
	int row_get_##t(struct row_io *x, sqlite3_stmt *q, struct row_##t *r) \
	{                                                                     \
		int i = 0;                                                    \
                                                                              \
		x->r = 0;                                                     \
		COLUMNS_##t(GET) return x->r;                                 \
	}
TABLES(X)
#undef X

_Static_assert(HIST_PACKED_MAX(HIST_BUCKETS) <= UINT16_MAX, "a cell's histogram is a small blob");
