/* SPDX-License-Identifier: MIT. zoom_rows.c: which row of its lane GPU work, tasks and syncs
 * have, over the seams of chunks.
 *
 * A chunk puts what overlaps in it side by side, and knows nothing of other chunks. What is in its
 * row r has row r of the lane, but what begins there before all is over that earlier chunks left:
 * that goes to the first row that is free all the time. So a stream that is busy throughout stays in
 * its row, and only what does overlap is beside it.
 *
 * INVARIANT: of single events no two lie over each other in a row, as long as LANES_MAX rows are
 * enough. What was merged stands in its chunk's row, unless it is over before the seam: there it
 * lies over others by less than what it was merged over. */
#include "trace_rows.h"
#include "zoom_int.h"

#include <stdlib.h>

#define MOVED_MAX 1024u            /* rows of a chunk; further ones stay */
#define ROWS_MAX  (2u * LANES_MAX) /* a chunk's own, and as many for what is moved */

static bool has_rows(const struct zoomed_lane *l)
{
	return l->kind == ZOOM_TASKS || l->kind == ZOOM_SYNCS || l->kind == ZOOM_STREAM;
}

/* Its track in the chunk, wherever it was put before. */
static uint32_t own_track(const struct trace_item *v, uint32_t n_tracks)
{
	return v->track < n_tracks ? v->track : v->track - n_tracks;
}

/* How many items of its track follow each other from here. */
static uint32_t track_length(const struct zoomed_part *p, uint32_t at, uint32_t n_tracks)
{
	uint32_t n = 1;

	while (at + n < p->n &&
		own_track(&p->item[at + n], n_tracks) == own_track(&p->item[at], n_tracks))
		n++;
	return n;
}

/* false: out of memory. */
static bool row_room(struct zoomed_lane *l, uint32_t row)
{
	uint64_t *grown;

	if (row < l->n_free_at)
		return true;
	grown = reallocarray(l->free_at, row + 1u, sizeof(*grown));
	if (grown == NULL)
		return false;
	l->free_at = grown;
	while (l->n_free_at <= row)
		grown[l->n_free_at++] = 0;
	return true;
}

static void take_row(struct zoomed_lane *l, uint16_t row, uint64_t to)
{
	l->free_at[row] = to > l->free_at[row] ? to : l->free_at[row];
	l->low = row < l->low ? row : l->low;
	l->high = row > l->high ? row : l->high;
}

struct early { /* from when to when what moves is there */
	uint64_t from, to;
};

/* The rows that the chunk's have, and which of them do not have all of it: (*early)[k->n_rows]. */
static int take_own(struct zoom *w, struct zoomed_chunk *k, const struct zoomed_part *p,
	struct early **early, struct err *e)
{
	uint32_t i, j, n, cap = 0, cap_early = 0;

	for (i = 0; i < p->n; i += n) {
		const struct zoomed_track *t = &p->track[own_track(&p->item[i], k->n_tracks)];
		struct zoomed_lane *l = &w->lane[t->lane];
		struct early x = {.from = UINT64_MAX};
		uint64_t to = 0, until;

		n = track_length(p, i, k->n_tracks);
		if (!has_rows(l) || t->depth >= ROWS_MAX)
			continue;
		if (!row_room(l, t->depth))
			return zoom_no_memory(e);
		until = l->free_at[t->depth];
		for (j = i; j < i + n; j++) {
			const struct trace_item *v = &p->item[j];

			to = v->end > to ? v->end : to;
			if (v->start >= until)
				continue;
			x.from = v->start < x.from ? v->start : x.from;
			x.to = v->end > x.to ? v->end : x.to;
		}
		take_row(l, t->depth, to);
		if (x.from == UINT64_MAX || k->n_rows == MOVED_MAX)
			continue;
		if (!ROOM_FOR(k->row, cap, k->n_rows) || !ROOM_FOR(*early, cap_early, k->n_rows))
			return zoom_no_memory(e);
		(*early)[k->n_rows] = x;
		k->row[k->n_rows++] = (struct zoomed_row){t->lane, t->depth, 0, until};
	}
	return 0;
}

int zoom_place_rows(
	struct zoom *w, struct zoomed_chunk *k, const struct zoomed_part *p, struct err *e)
{
	struct early *early = NULL;
	uint32_t i;
	int r = take_own(w, k, p, &early, e);

	for (i = 0; r == 0 && i < k->n_rows; i++) {
		struct zoomed_lane *l = &w->lane[k->row[i].lane];
		uint16_t row = 0;

		while (row < l->n_free_at && l->free_at[row] > early[i].from)
			row++;
		row = row < ROWS_MAX ? row : ROWS_MAX - 1;
		if (row_room(l, row))
			take_row(l, row, early[i].to);
		else
			r = zoom_no_memory(e);
		k->row[i].row = row;
	}
	free(early);
	return r;
}

static const struct zoomed_row *moved(const struct zoomed_chunk *k, const struct zoomed_track *t)
{
	uint32_t i;

	for (i = 0; i < k->n_rows; i++)
		if (k->row[i].lane == t->lane && k->row[i].of == t->depth)
			return &k->row[i];
	return NULL;
}

void zoom_settle(const struct zoomed_chunk *k, struct zoomed_part *p, struct zoomed_track *track,
	uint32_t n_tracks)
{
	const struct zoomed_row *to;
	uint32_t i, j, n, at;

	for (i = 0; i < p->n; i += n) {
		at = own_track(&p->item[i], n_tracks);
		n = track_length(p, i, n_tracks);
		to = moved(k, &track[at]);
		if (to != NULL)
			track[n_tracks + at] = (struct zoomed_track){to->lane, to->row};
		for (j = i; j < i + n; j++) {
			struct trace_item *v = &p->item[j];
			const bool moves = to != NULL && v->start < to->until &&
					   (v->count == 1 || v->end <= to->until);

			v->track = moves ? n_tracks + at : at;
		}
	}
}
