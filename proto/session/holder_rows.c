/* SPDX-License-Identifier: MIT. holder_rows.c: stored holders of memory. */
#include "holder_rows.h"

#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>

#include "gpu_terms.h"

#define ROWS                                                                                     \
	"SELECT m.bytes, p.id, p.pid, coalesce(p.rank,-1), p.created_monotonic_ns FROM memory m" \
	" JOIN process p ON p.id=m.process WHERE m.session=?1 AND (?2 IS NULL OR"                \
	" (substr(?2,1,4)='pid:' AND p.pid=CAST(substr(?2,5) AS INTEGER)) OR"                    \
	" (substr(?2,1,4)<>'pid:' AND p.rank=CAST(?2 AS INTEGER))) ORDER BY p.id"
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
