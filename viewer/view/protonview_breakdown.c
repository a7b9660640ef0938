/* SPDX-License-Identifier: MIT. protonview_breakdown.c: the verb breakdown: what the time of each GPU is
 * made of. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "breakdown.h"
#include "grid.h"
#include "print_json.h"
#include "protonview_verb.h"
#include "queue_depth.h"

static const struct gpu_part_row {
	const char *column, *head, *words;
} rows[PART_MAX] = {
#define X(name, column, head, words) [PART_##name] = {#column, head, words},
	GPU_PARTS(X)
#undef X
};

static bool all_have_parts(const struct profile *p)
{
	uint32_t i;

	for (i = 0; i < p->n_devices && p->device[i].has_parts; i++)
		;
	return i == p->n_devices;
}

/* Why a device has no parts. */
static const char *lack_of(const struct profile *p)
{
	if (p->head.duration_ns == 0)
		return "parts are kept for a session, not for a file of a tree";
	return "not known: several processes shared the GPU, or it was recorded by a protond or "
	       "read "
	       "from a file that knows no parts";
}

/* NAN: of a session that was active for no time. */
static double share_of(const struct profile *p, uint64_t ns)
{
	return p->head.duration_ns > 0 ? (double)ns / (double)p->head.duration_ns : (double)NAN;
}

static void json(struct run *run, const struct profile *p)
{
	static const struct envelope_column columns[] = {{"gpu", NULL, "string"},
		{"part", NULL, "string"}, {"time", "ns", "integer"}, {"share", NULL, "number"}};
	const struct profile_device *d;
	struct text *t = &run->out;
	uint32_t k;

	if (!all_have_parts(p))
		warning_add(&run->warnings, "parts: %s", lack_of(p));
	envelope_open(t, "breakdown", p);
	envelope_columns(t, columns, sizeof(columns) / sizeof(*columns));
	for (d = p->device; d < p->device + p->n_devices; d++)
		for (k = 0; k < PART_MAX && d->has_parts; k++) {
			envelope_row(t);
			envelope_string(t, d->id);
			envelope_string(t, rows[k].column);
			envelope_integer(t, (int64_t)d->part_ns[k]);
			envelope_number(t, share_of(p, d->part_ns[k]));
		}
	envelope_close(t, &run->warnings);
}

static void device_rows(struct grid *g, const struct profile *p, const struct profile_device *d,
	const struct term *term)
{
	uint32_t k;

	for (k = 0; k < PART_MAX; k++) {
		if (d->part_ns[k] == 0)
			continue;
		grid_cell(g, term, d->id);
		grid_cell_fmt(g, "%s", rows[k].head);
		grid_cell_fmt(g, "%.3f", (double)d->part_ns[k] / 1e6);
		if (p->head.duration_ns > 0)
			grid_cell_fmt(g, "%.1f%%", 100 * share_of(p, d->part_ns[k]));
		else
			grid_cell_fmt(g, "-");
		grid_cell_fmt(g, "%s", rows[k].words);
	}
	if (!d->has_parts) {
		grid_cell(g, term, d->id);
		grid_cell_fmt(g, "busy");
		if (d->busy_ns > 0)
			grid_cell_fmt(g, "%.3f", (double)d->busy_ns / 1e6);
		else
			grid_cell_fmt(g, "-");
		grid_cell_fmt(g, "-");
		grid_cell_fmt(g, "%s", "");
	}
}

static void print(struct run *run, const struct profile *p)
{
	static const struct grid_column columns[] = {{"GPU", false, 0, 0}, {"part", false, 0, 0},
		{"time/ms", true, 0, 0}, {"share", true, 0, 0}, {"what it is", false, 16, 1}};
	struct grid g;
	uint32_t i;

	print_head(&run->out, p, &run->term);
	if (p->n_devices == 0) {
		text_str(&run->out, "(no work of a GPU was recorded)\n");
	} else {
		grid_init(&g, columns, sizeof(columns) / sizeof(*columns));
		for (i = 0; i < p->n_devices; i++)
			device_rows(&g, p, &p->device[i], &run->term);
		print_grid(&run->out, &run->term, &g);
		grid_fini(&g);
		if (!all_have_parts(p))
			print_words(&run->out, &run->term, "parts: ", lack_of(p));
	}
	print_why(&run->out, p, &run->term);
}

/* --- of a window, steps or a scope */

/* As the whole session has it, where that GPU is known there. */
static void gpu_name(const struct profile *p, const struct breakdown_row *b, char ret[24])
{
	static const uint8_t unknown[16];
	uint32_t i;

	snprintf(ret, 24, "%u", b->gpu);
	for (i = 0; i < p->n_devices && memcmp(b->uuid, unknown, sizeof(unknown)) != 0; i++)
		if (memcmp(p->device[i].uuid, b->uuid, sizeof(unknown)) == 0)
			snprintf(ret, 24, "%s", p->device[i].id);
}

static bool any_shared(const struct breakdown *b)
{
	uint32_t i;

	for (i = 0; i < b->n && !b->row[i].shared; i++)
		;
	return i < b->n;
}

static const char shared_words[] =
	"several processes shared the GPU: what one waits for the other may fill, so they are not "
	"told";

static void json_window(struct run *run, const struct profile *p, const struct breakdown *b)
{
	static const struct envelope_column columns[] = {{"gpu", NULL, "string"},
		{"part", NULL, "string"}, {"time", "ns", "integer"}, {"share", NULL, "number"},
		{"pid", NULL, "integer"}, {"rank", NULL, "integer"}, {"times", NULL, "integer"}};
	const struct breakdown_row *row;
	struct text *t = &run->out;
	char gpu[24];
	uint32_t k;

	if (any_shared(b))
		warning_add(&run->warnings, "parts: %s", shared_words);
	envelope_open(t, "breakdown", p);
	envelope_columns(t, columns, sizeof(columns) / sizeof(*columns));
	for (row = b->row; row < b->row + b->n; row++)
		for (k = 0; k < PART_MAX && !row->shared; k++) {
			gpu_name(p, row, gpu);
			envelope_row(t);
			envelope_string(t, gpu);
			envelope_string(t, rows[k].column);
			envelope_integer(t, (int64_t)row->part_ns[k]);
			envelope_number(t, (double)row->part_ns[k] / (double)row->window_ns);
			envelope_integer(t, row->pid);
			if (row->rank >= 0)
				envelope_integer(t, row->rank);
			else
				envelope_string(t, NULL);
			envelope_integer(t, row->times);
		}
	envelope_close(t, &run->warnings);
}

static void window_row(
	struct grid *g, const struct profile *p, const struct breakdown_row *row, enum gpu_part k)
{
	const uint64_t ns = k < PART_MAX ? row->part_ns[k] : row->window_ns;
	char gpu[24];

	gpu_name(p, row, gpu);
	if (row->rank >= 0)
		grid_cell_fmt(g, "rank %lld", (long long)row->rank);
	else
		grid_cell_fmt(g, "pid %lld", (long long)row->pid);
	grid_cell_fmt(g, "%s", gpu);
	grid_cell_fmt(g, "%s", k < PART_MAX ? rows[k].head : "all");
	grid_cell_fmt(g, "%.3f", (double)ns / 1e6);
	grid_cell_fmt(g, "%.1f%%", (double)ns * 100 / (double)row->window_ns);
	if (k < PART_MAX)
		grid_cell_fmt(g, "%s", rows[k].words);
	else if (row->times > 0)
		grid_cell_fmt(g, "%u time%s", row->times, row->times == 1 ? "" : "s");
	else
		grid_cell_fmt(g, "%s", "");
}

static void print_window(struct run *run, const struct profile *p, const struct breakdown *b)
{
	static const struct grid_column columns[] = {{"of", false, 0, 2}, {"GPU", false, 0, 0},
		{"part", false, 0, 0}, {"time/ms", true, 0, 0}, {"share", true, 0, 0},
		{"what it is", false, 16, 1}};
	const struct breakdown_row *row;
	struct grid g;
	uint32_t k;

	print_head(&run->out, p, &run->term);
	grid_init(&g, columns, sizeof(columns) / sizeof(*columns));
	for (row = b->row; row < b->row + b->n; row++) {
		for (k = 0; k < PART_MAX; k++)
			if (row->part_ns[k] > 0 && !row->shared)
				window_row(&g, p, row, (enum gpu_part)k);
		window_row(&g, p, row, PART_MAX);
	}
	print_grid(&run->out, &run->term, &g);
	grid_fini(&g);
	if (any_shared(b))
		print_words(&run->out, &run->term, "parts: ", shared_words);
}

static int window(struct run *run, const struct profile *p)
{
	struct breakdown b = {.row = NULL};
	struct source_options o = {.timeline = breakdown_read, .arg = &b};
	struct source s;
	int r = run_source_by(run, run->o.args[0], &o, &s);

	if (r == 0 && run_given(run, OPT_JSON))
		json_window(run, p, &b);
	else if (r == 0)
		print_window(run, p, &b);
	breakdown_fini(&b);
	return r;
}

/* --- of streams: launches outstanding */

static void queue_warnings(struct run *run, const struct queue_depth *d)
{
	if (d->unlaunched > 0)
		warning_add(&run->warnings,
			"queues: the launches of %llu operations are not known, and not counted",
			(unsigned long long)d->unlaunched);
	if (d->left_out > 0)
		warning_add(&run->warnings,
			"queues: %llu operations of processes with over %u are not counted",
			(unsigned long long)d->left_out, QUEUE_DEPTH_MAX);
}

static void json_queues(struct run *run, const struct profile *p, const struct queue_depth *d)
{
	static const struct envelope_column columns[] = {{"pid", NULL, "integer"},
		{"rank", NULL, "integer"}, {"gpu", NULL, "integer"}, {"context", NULL, "integer"},
		{"stream", NULL, "integer"}, {"launches", NULL, "integer"},
		{"mean", NULL, "number"}, {"max", NULL, "integer"}, {"full", NULL, "integer"}};
	const struct queue_depth_row *row;
	struct text *t = &run->out;

	envelope_open(t, "breakdown", p);
	envelope_columns(t, columns, sizeof(columns) / sizeof(*columns));
	for (row = d->row; row < d->row + d->n; row++) {
		envelope_row(t);
		envelope_integer(t, row->pid);
		if (row->rank >= 0)
			envelope_integer(t, row->rank);
		else
			envelope_string(t, NULL);
		envelope_integer(t, row->gpu);
		envelope_integer(t, row->context);
		envelope_integer(t, row->stream);
		envelope_integer(t, (int64_t)row->launches);
		envelope_number(t, (double)row->sum / (double)row->launches);
		envelope_integer(t, row->max);
		envelope_integer(t, (int64_t)row->full);
	}
	envelope_close(t, &run->warnings);
}

static void print_queues(struct run *run, const struct profile *p, const struct queue_depth *d)
{
	static const struct grid_column columns[] = {{"of", false, 0, 1}, {"GPU", false, 0, 0},
		{"context", false, 0, 2}, {"stream", false, 0, 0}, {"launches", true, 0, 0},
		{"mean before it", true, 0, 0}, {"most", true, 0, 0}, {"full", true, 0, 0}};
	const struct queue_depth_row *row;
	struct grid g;

	print_head(&run->out, p, &run->term);
	grid_init(&g, columns, sizeof(columns) / sizeof(*columns));
	for (row = d->row; row < d->row + d->n; row++) {
		if (row->rank >= 0)
			grid_cell_fmt(&g, "rank %lld", (long long)row->rank);
		else
			grid_cell_fmt(&g, "pid %lld", (long long)row->pid);
		grid_cell_fmt(&g, "%u", row->gpu);
		grid_cell_fmt(&g, "%u", row->context);
		grid_cell_fmt(&g, "%u", row->stream);
		grid_cell_fmt(&g, "%llu", (unsigned long long)row->launches);
		grid_cell_fmt(&g, "%.1f", (double)row->sum / (double)row->launches);
		grid_cell_fmt(&g, "%u", row->max);
		grid_cell_fmt(&g, "%llu", (unsigned long long)row->full);
	}
	print_grid(&run->out, &run->term, &g);
	grid_fini(&g);
}

static int queues(struct run *run, const struct profile *p)
{
	struct queue_depth d = {0};
	struct source_options o = {.timeline = queue_depth_read, .arg = &d};
	struct source s;
	int r = run_source_by(run, run->o.args[0], &o, &s);

	if (r == 0 && d.n == 0)
		r = err_set(&run->e, -ENOENT, "no launches of GPU work are in the timeline");
	if (r == 0)
		queue_warnings(run, &d);
	if (r == 0 && run_given(run, OPT_JSON))
		json_queues(run, p, &d);
	else if (r == 0)
		print_queues(run, p, &d);
	queue_depth_fini(&d);
	return r;
}

int view_breakdown(struct run *run)
{
	const bool part = run_part(run);
	struct profile *p = NULL;
	int r = part && run_given(run, OPT_QUEUES)
			? err_set(&run->e, -EINVAL,
				  "--queues is of the whole session: not with --window, --step, "
				  "--scope or --phase")
			: run_source(run, run->o.args[0], true, &p);

	if (r == 0 && run_given(run, OPT_QUEUES))
		r = queues(run, p);
	else if (r == 0 && part)
		r = window(run, p);
	else if (r == 0 && run_given(run, OPT_JSON))
		json(run, p);
	else if (r == 0)
		print(run, p);
	profile_free(p);
	return r;
}
