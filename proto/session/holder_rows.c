/* SPDX-License-Identifier: MIT. holder_rows.c: stored holders of memory. */
#include "holder_rows.h"

#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_terms.h"
#include "text.h"

#define ROWS                                                                        \
	"SELECT m.bytes, p.id, p.pid, coalesce(p.rank,-1), p.created_monotonic_ns," \
	" p.created_realtime_ns FROM memory m"                                      \
	" JOIN process p ON p.id=m.process WHERE m.session=?1 AND (?2 IS NULL OR"   \
	" (substr(?2,1,4)='pid:' AND p.pid=CAST(substr(?2,5) AS INTEGER)) OR"       \
	" (substr(?2,1,4)<>'pid:' AND p.rank=CAST(?2 AS INTEGER))) ORDER BY p.id"
#define ABOVE                                                                                   \
	"WITH RECURSIVE up(id,parent,name,depth) AS (SELECT id,parent,name,0 FROM node WHERE "  \
	"hash=?1 UNION ALL SELECT n.id,n.parent,n.name,up.depth+1 FROM node n JOIN up ON n.id=" \
	"up.parent WHERE up.depth<1000) SELECT name FROM up WHERE parent<>0 ORDER BY depth DESC"
#define DEVICES  "SELECT device, ordinal FROM device WHERE process=?1"
#define ORDINALS 256u

/* As far as the process told them. */
static void number_devices(sqlite3 *db, int64_t process, struct holders *h)
{
	sqlite3_stmt *q = NULL;
	uint32_t ordinal[ORDINALS], i;

	for (i = 0; i < ORDINALS; i++)
		ordinal[i] = i;
	if (sqlite3_prepare_v2(db, DEVICES, -1, &q, NULL) == SQLITE_OK) {
		(void)sqlite3_bind_int64(q, 1, process);
		while (sqlite3_step(q) == SQLITE_ROW) {
			const int64_t device = sqlite3_column_int64(q, 0);

			if (device >= 0 && device < ORDINALS)
				ordinal[device] = (uint32_t)sqlite3_column_int64(q, 1);
		}
	}
	(void)sqlite3_finalize(q);
	for (i = 0; i < h->n_accounts; i++)
		if (h->account[i]->device < ORDINALS && h->account[i]->kind < HELD_TORCH)
			h->account[i]->device = ordinal[h->account[i]->device];
}

int holder_each(struct sqlite3 *db, int64_t session, const char *process, holder_fn *fn, void *arg,
	struct err *e)
{
	sqlite3_stmt *q = NULL;
	struct holders h;
	int r = 0;

	if (sqlite3_prepare_v2(db, ROWS, -1, &q, NULL) != SQLITE_OK)
		return 0;
	(void)sqlite3_bind_int64(q, 1, session);
	if (process != NULL)
		(void)sqlite3_bind_text(q, 2, process, -1, SQLITE_STATIC);
	while (r == 0 && sqlite3_step(q) == SQLITE_ROW) {
		const struct holder_row row = {.process = sqlite3_column_int64(q, 1),
			.pid = sqlite3_column_int64(q, 2),
			.rank = sqlite3_column_int64(q, 3),
			.base_ns = sqlite3_column_int64(q, 4),
			.ahead_ns = (int64_t)((uint64_t)sqlite3_column_int64(q, 5) -
					      (uint64_t)sqlite3_column_int64(q, 4)),
			.h = &h};

		r = holders_unpack(
			sqlite3_column_blob(q, 0), (size_t)sqlite3_column_bytes(q, 0), &h, e);
		if (r == 0) {
			number_devices(db, row.process, &h);
			r = fn(arg, &row);
		}
		holders_fini(&h);
	}
	(void)sqlite3_finalize(q);
	return r;
}

void holder_device(const struct held_account *a, char ret[16])
{
	if (a->device == HELD_HOST || a->kind == HELD_PINNED)
		(void)snprintf(ret, 16, "host");
	else
		(void)snprintf(ret, 16, "cuda:%u", a->device);
}

size_t holder_name(const struct holder_row *r, const struct held_account *a, char ret[HOLDER_NAME])
{
	char device[16];

	holder_device(a, device);
	return (size_t)snprintf(ret, HOLDER_NAME, "pid %" PRId64 " %s %s memory (bytes)", r->pid,
		device, held_kind_words[a->kind]);
}

int holder_values(const struct held_account *a, holder_value_fn *fn, void *arg)
{
	uint32_t i;
	int r = 0;

	for (i = 0; i < a->n_points && r == 0; i++) {
		const struct held_point *p = &a->point[i];
		const uint64_t end = i + 1 < a->n_points ? a->point[i + 1].ns : p->ns;
		const uint64_t middle = p->ns + (end - p->ns) / 2;

		if (p->most != p->last && middle > p->ns)
			r = fn(arg, p->ns, middle, p->most);
		if (r == 0)
			r = fn(arg, p->most != p->last ? middle : p->ns, end, p->last);
	}
	return r;
}

/* --- scopes */

static bool is_other(const struct held_owner *o)
{
	static const uint8_t none[16];

	return memcmp(o->hash, none, sizeof(none)) == 0;
}

static char *scope_of(sqlite3_stmt *above, const struct held_owner *o)
{
	struct text t = {0};
	uint32_t seen = 0;
	char *ret;
	size_t n;

	(void)sqlite3_reset(above);
	(void)sqlite3_bind_blob(above, 1, o->hash, sizeof(o->hash), SQLITE_STATIC);
	for (; !is_other(o) && sqlite3_step(above) == SQLITE_ROW; seen++)
		text_fmt(&t, "%s%s", seen > 0 ? "/" : "",
			(const char *)sqlite3_column_text(above, 0));
	if (is_other(o))
		text_str(&t, "(other)");
	return text_take(&t, &ret, &n) == 0 ? ret : NULL;
}

int holder_scopes(struct sqlite3 *db, const struct holders *h, char ***ret, struct err *e)
{
	sqlite3_stmt *above = NULL;
	uint32_t i;
	int r = 0;

	*ret = calloc(h->n_owners + 1, sizeof(**ret));
	if (*ret == NULL)
		return err_set(e, -ENOMEM, "out of memory");
	if (sqlite3_prepare_v2(db, ABOVE, -1, &above, NULL) != SQLITE_OK)
		return err_set(e, -EBADMSG, "its nodes cannot be read: %s", sqlite3_errmsg(db));
	for (i = 0; i < h->n_owners && r == 0; i++) {
		(*ret)[i] = scope_of(above, &h->owner[i]);
		r = (*ret)[i] == NULL ? err_set(e, -ENOMEM, "out of memory") : 0;
	}
	(void)sqlite3_finalize(above);
	return r;
}

void holder_scopes_free(const struct holders *h, char **scope)
{
	uint32_t i;

	for (i = 0; scope != NULL && i < h->n_owners; i++)
		free(scope[i]);
	free(scope);
}
