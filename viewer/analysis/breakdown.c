/* SPDX-License-Identifier: MIT. breakdown.c: parts of GPUs' time in windows, steps and scopes. */
#include "breakdown.h"

#include <stdlib.h>
#include <string.h>

#include "parts.h"
#include "spans.h"
#include "table.h"
#include "timeline_reading.h"

struct reading {
	struct breakdown *b;
	struct parts parts;
	struct spans spans;
	bool failed;
};

/* --- the timeline */

static void on_open(struct timeline *w)
{
	struct reading *r = w->mine;

	r->failed |= parts_open(&r->parts, w) < 0;
	spans_open(&r->spans, w);
}

static void on_process(struct timeline *w)
{
	struct reading *r = w->mine;

	parts_process(&r->parts);
	spans_process(&r->spans);
}

static void on_scope(struct timeline *w, const struct timeline_scope *s)
{
	struct reading *r = w->mine;

	parts_seen(&r->parts, s->end_ns);
	spans_scope(&r->spans, w, s);
}

static void on_op(struct timeline *w, const struct timeline_op *o)
{
	struct reading *r = w->mine;

	r->failed |= !parts_op(&r->parts, o);
}

static void add_row(
	struct reading *r, struct timeline *w, const struct parts_gpu *g, uint32_t times)
{
	const struct gpu_seen *seen = timeline_gpu(w, g->device);
	struct breakdown *b = r->b;
	struct breakdown_row *row;
	uint32_t i;

	if (seen == NULL || !ROOM_FOR(b->row, b->cap, b->n)) {
		r->failed = true;
		return;
	}
	row = &b->row[b->n++];
	*row = (struct breakdown_row){.pid = w->at.pid,
		.rank = w->at.ranked ? w->at.rank : -1,
		.gpu = seen->ordinal,
		.times = times};
	memcpy(row->uuid, seen->uuid, sizeof(row->uuid));
	for (i = 0; i < r->spans.of.n; i++)
		row->window_ns += parts_window(&r->parts, g, &r->spans.of.v[i], row->part_ns);
	if (row->window_ns == 0)
		b->n--;
}

static void on_process_end(struct timeline *w)
{
	struct reading *r = w->mine;
	const uint32_t times = spans_settle(&r->spans);
	uint32_t i;

	r->failed |= r->spans.failed || !parts_settle(&r->parts, w);
	for (i = 0; i < r->parts.n_gpus && !r->failed; i++)
		add_row(r, w, &r->parts.gpu[i], times);
}

/* --- all */

/* What one process waits for another may fill. */
static void mark_shared(struct breakdown *b)
{
	static const uint8_t unknown[16];
	uint32_t i, k;

	for (i = 0; i < b->n; i++)
		for (k = 0; k < b->n && !b->row[i].shared; k++)
			b->row[i].shared =
				k != i && b->row[k].pid != b->row[i].pid &&
				memcmp(b->row[i].uuid, unknown, sizeof(unknown)) != 0 &&
				memcmp(b->row[i].uuid, b->row[k].uuid, sizeof(unknown)) == 0;
}

int breakdown_read(void *arg, struct sqlite3 *db, int64_t id, const struct profile_select *s,
	struct export_left *ret_left, struct err *e)
{
	static const struct timeline_form form = {.open = on_open,
		.process = on_process,
		.scope = on_scope,
		.op = on_op,
		.process_end = on_process_end};
	const struct profile_select all = spans_whole(s);
	struct breakdown *b = arg;
	struct reading r = {.b = b};
	int status, verdict;

	spans_begin(&r.spans, s);
	status = reading_run(&form, &r, &r.failed, db, id, &all, ret_left, e);
	if (status == 0 || r.spans.many) {
		verdict = spans_verdict(&r.spans, b->n > 0, e);
		status = verdict < 0 ? verdict : status;
	}
	mark_shared(b);
	parts_fini(&r.parts);
	spans_fini(&r.spans);
	return status;
}

void breakdown_fini(struct breakdown *b)
{
	free(b->row);
	b->row = NULL;
	b->n = b->cap = 0;
}
