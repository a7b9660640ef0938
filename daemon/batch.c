/* SPDX-License-Identifier: MIT. batch.c: the rows that travel between fold and store. Owns the
 * strings that fold.h calls owned. No thread of its own, no I/O. */
#include "fold.h"

#include <stdlib.h>
#include <string.h>

/* Makes room for one more row. NULL: out of memory, and the old rows still stand. */
static void *rows_grow(void *row, uint32_t n, uint32_t *cap, size_t row_bytes)
{
	uint32_t want;
	void *grown;

	if (n < *cap)
		return row;
	if (*cap > UINT32_MAX / 2)
		return NULL;
	want = *cap == 0 ? 8 : *cap * 2;
	grown = reallocarray(row, want, row_bytes);
	if (grown != NULL)
		*cap = want;
	return grown;
}

#define X(t)                                                                            \
	struct row_##t *batch_##t(struct batch *b)                                      \
	{                                                                               \
		struct row_##t *row =                                                   \
			rows_grow(b->t.row, b->t.n, &b->t.cap, sizeof(struct row_##t)); \
                                                                                        \
		if (row == NULL)                                                        \
			return NULL;                                                    \
		b->t.row = row;                                                         \
		row += b->t.n++;                                                        \
		memset(row, 0, sizeof(*row));                                           \
		return row;                                                             \
	}
ROWS(X)
#undef X

void batch_free(struct batch *b)
{
	uint32_t i;

	if (b == NULL)
		return;
	for (i = 0; i < b->process.n; i++) {
		free(b->process.row[i].command);
		free(b->process.row[i].exe);
		free(b->process.row[i].cwd);
	}
	for (i = 0; i < b->node.n; i++)
		free(b->node.row[i].name);
	for (i = 0; i < b->metric.n; i++) {
		free(b->metric.row[i].name);
		free(b->metric.row[i].text);
	}
	for (i = 0; i < b->trace.n; i++)
		free(b->trace.row[i].bytes);
	for (i = 0; i < b->pending.n; i++)
		free(b->pending.row[i].bytes);
#define X(t) free(b->t.row);
	ROWS(X)
#undef X
	free(b->deleted);
	*b = (struct batch){0};
}
