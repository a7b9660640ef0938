/* SPDX-License-Identifier: MIT. pipeline.c: drain → correlate → tree: what becomes of the bytes
 * of one lane. No byte is believed: a record that breaks a law is counted (LOST_BAD) and
 * skipped, and if its length does, so is the rest of the entry. */
#include "pipeline.h"

#include <string.h>

#include "allocs.h"
#include "blocks.h"
#include "correlate.h"
#include "counted.h"
#include "gpu_names.h"
#include "ids.h"
#include "journal.h"
#include "loss.h"
#include "metric.h"
#include "node.h"
#include "now.h"
#include "part.h"
#include "process.h"
#include "record.h"
#include "ring.h"
#include "state.h"
#include "sums.h"
#include "tree.h"
#include "verb.h"
#include "words.h"

/* A walk over the records of one lane. */
struct drain {
	struct process *process;
	const uint8_t *at, *end;
	const uint8_t *base;  /* of the bytes, which stand at position `from` */
	const uint8_t *ended; /* the last SCOPE; NULL */
	uint64_t from;
	uint32_t lane, lane_bytes, left; /* left: bytes from `at` to the end of the lap */
	uint8_t lap;                     /* low byte, as in the records */
	bool final;                      /* a sum in it does not grow any more */
};

/* The next record, and a copy of its header. NULL: no more. A broken one is counted and ends the
 * walk. */
static inline const uint8_t *drain_next(struct drain *d, uint64_t *ret_hdr)
{
	const uint8_t *record;
	uint32_t bytes;
	uint64_t hdr;

	while (d->at < d->end) {
		record = d->at;
		memcpy(&hdr, record, sizeof(hdr));
		bytes = REC_BYTES(hdr);
		if (bytes == 0 && REC_TYPE(hdr) == REC_PAD)
			bytes = REC_ID(hdr) == d->left ? d->left : 0;
		/* It ends within the lap and within what was drained, and its lap byte is right. */
		if (bytes == 0 || bytes > d->left || bytes > (uint64_t)(d->end - record) ||
			REC_LAP(hdr) != d->lap) {
			loss_bad(d->process, 1);
			d->at = d->end;
			return NULL;
		}
		d->at += bytes;
		d->left -= bytes;
		if (d->left == 0) {
			d->left = d->lane_bytes;
			d->lap++;
		}
		if (REC_TYPE(hdr) == REC_PAD)
			continue;
		*ret_hdr = hdr;
		return record;
	}
	return NULL;
}

/* --- one handler a layout: it gets a record that is long enough, and copies it --- */

typedef void record_fn(struct drain *d, const uint8_t *record);

/* Stores only if it differs: a store right before the reads costs a seventh of fold_bench. */
static inline void set_id(uint64_t *hdr, uint32_t id)
{
	if (id != REC_ID(*hdr))
		*hdr = REC_WITH_ID(*hdr, id);
}

static void on_scope(struct drain *d, const uint8_t *record)
{
	struct process *p = d->process;
	struct rec_scope r;
	uint64_t from, to;
	uint32_t path, i;

	memcpy(&r, record, sizeof(r));
	path = table_path(p, REC_ID(r.hdr));
	if (path == PATH_ROOT || path == TABLE_NONE || p->path[path].bad || r.end < r.begin) {
		loss_bad(p, 1);
		return;
	}
	set_id(&r.hdr, path);
	d->ended = record;
	from = clockmap_ns(&p->clock, r.begin);
	to = clockmap_ns(&p->clock, r.end);
	for (i = 0; i < p->n_parts; i++)
		tree_scope(p->part[i], &p->lane[d->lane], &r, to > from ? to - from : 0);
	if (p->n_now != 0)
		process_now_left(p, d->lane, path, r.begin);
}

static void on_launch(struct drain *d, const uint8_t *record)
{
	struct process *p = d->process;
	struct rec_launch r;
	struct rec_launch_ended ended;
	uint32_t path, name, i;

	memcpy(&r, record, sizeof(r));
	ended.end = r.clock;
	if ((REC_FLAGS(r.hdr) & LAUNCH_ENDS) != 0 && REC_BYTES(r.hdr) >= sizeof(ended))
		memcpy(&ended, record, sizeof(ended));
	else
		r.hdr &= ~((uint64_t)LAUNCH_ENDS << 24);
	path = table_path(p, REC_ID(r.hdr));
	r.python = table_path(p, r.python);
	name = (REC_FLAGS(r.hdr) & LAUNCH_TIMED) == 0 ? table_name(p, r.name) : NAME_NONE;
	if (path == TABLE_NONE || name == TABLE_NONE || r.python == TABLE_NONE ||
		ended.end < r.clock) {
		loss_bad(p, 1);
		return;
	}
	if (name != NAME_NONE)
		r.name = name;
	set_id(&r.hdr, path);
	for (i = 0; (REC_FLAGS(r.hdr) & LAUNCH_ENDS) != 0 && i < p->n_parts; i++)
		if ((p->part[i]->switches & SWITCH_QUEUE) != 0)
			tree_launch_call(p->part[i], &p->lane[d->lane], &r, ended.end);
	correlate_launch(p, &r, ended.end, p->lane[d->lane].tid);
}

/* With impossible times the record counts, but without a time. */
static void gpu_check_time(struct process *p, struct gpu *g)
{
	if ((g->flags & GPU_FLAG_RUNNING) == 0 &&
		(g->start == 0 || g->end < g->start || g->end > CLOCK_NS_MAX))
		g->flags |= GPU_FLAG_UNTIMED;
	g->captured = table_path(p, g->captured);
	if (g->captured == TABLE_NONE) {
		g->captured = PATH_ROOT;
		loss_bad(p, 1);
	}
}

static void on_kernel(struct drain *d, const uint8_t *record)
{
	struct process *p = d->process;
	struct rec_kernel r;
	struct gpu g;
	uint32_t name;

	memcpy(&r, record, sizeof(r));
	name = table_name(p, REC_ID(r.hdr));
	if (name == TABLE_NONE || r.device >= RING_DEVICES_MAX) {
		loss_bad(p, 1);
		return;
	}
	g = (struct gpu){.start = r.start,
		.end = r.end,
		.correlation = r.correlation,
		.name = name,
		.captured = r.captured,
		.config = r.config,
		.stream = r.stream,
		.context = r.context,
		.graph_exec = r.graph_exec,
		.epoch = r.epoch,
		.device = r.device,
		.type = REC_TYPE(r.hdr),
		.class = gpu_class_of(REC_TYPE(r.hdr), 0),
		.flags = REC_FLAGS(r.hdr)};
	gpu_check_time(p, &g);
	correlate_gpu(p, &g);
}

static void on_copy(struct drain *d, const uint8_t *record)
{
	struct process *p = d->process;
	struct rec_copy r;
	struct gpu g;
	uint8_t class;

	memcpy(&r, record, sizeof(r));
	if (REC_TYPE(r.hdr) != REC_COPY)
		r.hdr &= UINT32_MAX; /* only COPY uses its id */
	class = gpu_class_of(REC_TYPE(r.hdr), REC_ID(r.hdr));
	if (class == CLASS_CPU || r.device >= RING_DEVICES_MAX || r.bytes > INT64_MAX) {
		loss_bad(p, 1);
		return;
	}
	g = (struct gpu){.start = r.start,
		.end = r.end,
		.bytes = r.bytes,
		.correlation = r.correlation,
		.captured = r.captured,
		.config = UINT32_MAX,
		.stream = r.stream,
		.context = r.context,
		.graph_exec = r.graph_exec,
		.epoch = r.epoch,
		.device = r.device,
		.type = REC_TYPE(r.hdr),
		.flags = REC_FLAGS(r.hdr),
		.id = (uint8_t)REC_ID(r.hdr),
		.class = class};
	gpu_check_time(p, &g);
	correlate_gpu(p, &g);
}

static bool is_of_memory(uint8_t class)
{
	return class == CLASS_ALLOC || class == CLASS_FREE || class == CLASS_REGISTER;
}

/* Of a session whose switch is off it is nothing. */
static void call_of(struct drain *d, struct rec_call r, uint8_t class)
{
	struct process *p = d->process;
	uint32_t path, i;

	path = table_path(p, REC_ID(r.hdr));
	r.python = table_path(p, r.python);
	r.name = (REC_FLAGS(r.hdr) & CALL_API) != 0 ? table_name(p, r.name) : NAME_NONE;
	if (path == TABLE_NONE || r.python == TABLE_NONE || r.name == TABLE_NONE ||
		class == CLASS_CPU || r.end < r.begin ||
		(class == CLASS_API && (REC_FLAGS(r.hdr) & CALL_API) == 0)) {
		loss_bad(p, 1);
		return;
	}
	set_id(&r.hdr, path);
	for (i = 0; i < p->n_parts; i++) {
		if ((p->part[i]->switches & SWITCH_SYNC) != 0 &&
			(REC_FLAGS(r.hdr) & CALL_ONLY_MEMORY) == 0 && class != CLASS_API)
			tree_call(p->part[i], &p->lane[d->lane], &r, class);
		if ((p->part[i]->switches & SWITCH_ALLOC) != 0 && is_of_memory(class))
			allocs_call(p->part[i], &r, clockmap_ns(&p->clock, r.end));
		if ((p->part[i]->switches & SWITCH_API) != 0 && (REC_FLAGS(r.hdr) & CALL_API) != 0)
			tree_api(p->part[i], &p->lane[d->lane], &r);
	}
}

static void on_call(struct drain *d, const uint8_t *record)
{
	struct rec_call r;

	memcpy(&r, record, sizeof(r));
	call_of(d, r, gpu_class_of(REC_CALL, r.kind));
}

static void on_called(struct drain *d, const uint8_t *record)
{
	struct rec_called r;

	memcpy(&r, record, sizeof(r));
	call_of(d,
		(struct rec_call){.hdr = REC_HDR(sizeof(r), REC_CALL, 0, CALL_API, REC_ID(r.hdr)),
			.begin = r.begin,
			.end = r.begin + r.took,
			.correlation = r.correlation,
			.stream = UINT32_MAX,
			.python = PATH_ROOT,
			.epoch = r.epoch,
			.name = r.name},
		CLASS_API);
}

#define MEMORY_BYTES_MAX (1ull << 50) /* no block and no pool has more */

static void on_memory(struct drain *d, const uint8_t *record)
{
	struct process *p = d->process;
	struct rec_memory r;
	uint64_t ns;
	uint32_t i;

	memcpy(&r, record, sizeof(r));
	if (REC_FLAGS(r.hdr) < MEMORY_ALLOC || REC_FLAGS(r.hdr) >= MEMORY_OP_MAX ||
		REC_ID(r.hdr) >= HELD_MAX || r.time == 0 || r.time > CLOCK_NS_MAX ||
		(r.device >= RING_DEVICES_MAX && r.device != MEMORY_NO_DEVICE) ||
		r.bytes > MEMORY_BYTES_MAX || r.reserved > MEMORY_BYTES_MAX ||
		r.used > MEMORY_BYTES_MAX) {
		loss_bad(p, 1);
		return;
	}
	ns = real_to_mono(p, r.time);
	for (i = 0; i < p->n_parts; i++)
		if (p->part[i]->gpu && (p->part[i]->switches & SWITCH_ALLOC) != 0)
			allocs_event(p->part[i], &r, ns);
}

static void on_block(struct drain *d, const uint8_t *record)
{
	struct process *p = d->process;
	struct rec_block r;
	uint32_t path, i;

	memcpy(&r, record, sizeof(r));
	path = table_path(p, REC_ID(r.hdr));
	if (path == TABLE_NONE || REC_FLAGS(r.hdr) < BLOCK_ALLOC ||
		REC_FLAGS(r.hdr) >= BLOCK_OP_MAX || r.device >= RING_DEVICES_MAX ||
		r.bytes > MEMORY_BYTES_MAX || r.reserved > MEMORY_BYTES_MAX ||
		r.active > MEMORY_BYTES_MAX || r.split > MEMORY_BYTES_MAX ||
		r.requested > MEMORY_BYTES_MAX) {
		loss_bad(p, 1);
		return;
	}
	set_id(&r.hdr, path);
	for (i = 0; i < p->n_parts; i++)
		if ((p->part[i]->switches & SWITCH_ALLOC) != 0)
			blocks_event(p->part[i], &r, clockmap_ns(&p->clock, r.clock));
}

static void on_sample(struct drain *d, const uint8_t *record)
{
	struct process *p = d->process;
	struct rec_sample r;
	uint32_t path, i;

	memcpy(&r, record, sizeof(r));
	path = table_path(p, REC_ID(r.hdr));
	r.python = table_path(p, r.python);
	if (path == TABLE_NONE || r.python == TABLE_NONE || r.end < r.begin) {
		loss_bad(p, 1);
		return;
	}
	set_id(&r.hdr, path);
	for (i = 0; i < p->n_parts; i++)
		if ((p->part[i]->switches & SWITCH_CPU_SAMPLES) != 0)
			tree_sample(p->part[i], &r);
}

static void on_overhead(struct drain *d, const uint8_t *record)
{
	struct process *p = d->process;
	struct rec_overhead r;
	struct gpu g;

	memcpy(&r, record, sizeof(r));
	g = (struct gpu){.start = r.start,
		.end = r.end,
		.correlation = r.correlation,
		.name = NAME_NONE,
		.captured = PATH_ROOT,
		.config = UINT32_MAX,
		.stream = r.tid,
		.epoch = r.epoch,
		.type = REC_OVERHEAD,
		.id = (uint8_t)REC_ID(r.hdr),
		.class = gpu_class_of(REC_OVERHEAD, REC_ID(r.hdr))};
	if (g.class == CLASS_CPU || r.start == 0 || r.end < r.start || r.end > CLOCK_NS_MAX) {
		loss_bad(p, 1);
		return;
	}
	correlate_gpu(p, &g);
}

static inline bool metric_is_good(struct process *p, uint8_t type, uint32_t name, uint64_t *value)
{
	if (type == METRIC_STR)
		*value = table_name(p, *value < TABLE_NONE ? (uint32_t)*value : TABLE_NONE);
	return type >= METRIC_I64 && type <= METRIC_STR && name != TABLE_NONE &&
	       (type != METRIC_STR || *value != TABLE_NONE);
}

static void on_captured(struct drain *d, const uint8_t *record)
{
	struct process *p = d->process;
	struct rec_captured r;
	struct gpu g;

	memcpy(&r, record, sizeof(r));
	r.name = table_name(p, r.name);
	if (!metric_is_good(p, REC_FLAGS(r.hdr), r.name, &r.value)) {
		loss_bad(p, 1);
		return;
	}
	g = (struct gpu){.start = r.start,
		.end = r.start,
		.bytes = r.value,
		.correlation = r.correlation,
		.name = r.name,
		.captured = REC_ID(r.hdr),
		.config = UINT32_MAX,
		.epoch = r.epoch,
		.type = REC_CAPTURED,
		.flags = GPU_FLAG_GRAPH,
		.id = REC_FLAGS(r.hdr)};
	gpu_check_time(p, &g);
	correlate_gpu(p, &g);
}

static void on_metric(struct drain *d, const uint8_t *record)
{
	struct process *p = d->process;
	struct rec_metric r;
	uint8_t type;
	uint32_t path, i;

	memcpy(&r, record, sizeof(r));
	type = REC_FLAGS(r.hdr) & METRIC_TYPE_BITS;
	path = table_path(p, REC_ID(r.hdr));
	r.name = table_name(p, r.name);
	r.python = table_path(p, r.python);
	if (!metric_is_good(p, type, r.name, &r.value) || path == TABLE_NONE ||
		r.python == TABLE_NONE || !counted_is_good(REC_FLAGS(r.hdr))) {
		loss_bad(p, 1);
		return;
	}
	set_id(&r.hdr, path);
	for (i = 0; i < p->n_parts; i++)
		if (counted_is_for(p->part[i], REC_FLAGS(r.hdr)))
			tree_metric(p->part[i], &p->lane[d->lane], &r);
}

/* What other threads recorded because of it comes in a later entry: see drain.c. */
static void on_session(struct drain *d, const uint8_t *record)
{
	struct rec_session r;

	memcpy(&r, record, sizeof(r));
	loss_cut(d->process, record + sizeof(r), REC_BYTES(r.hdr) - (uint32_t)sizeof(r));
	session_record(d->process, &r);
	loss_cut_end(d->process);
}

static uint64_t position(const struct drain *d, const uint8_t *record)
{
	return d->from + (uint64_t)(record - d->base);
}

static void on_sum(struct drain *d, const uint8_t *record)
{
	sums_scopes(d->process, d->lane, position(d, record), record, d->final);
}

static void on_total(struct drain *d, const uint8_t *record)
{
	sums_metrics(d->process, d->lane, position(d, record), record, d->final);
}

static void on_thread(struct drain *d, const uint8_t *record)
{
	struct rec_thread r;

	memcpy(&r, record, sizeof(r));
	d->process->lane[d->lane].sums = (REC_FLAGS(r.hdr) & THREAD_SUMS) != 0;
	d->process->lane[d->lane].tid = r.tid;
	d->process->lane[d->lane].generation = r.generation;
	d->process->lane[d->lane].name = REC_ID(r.hdr);
	if (d->process->n_now != 0 && !d->process->lane[d->lane].sums)
		process_now_moved(d->process, d->lane, r.tid);
}

static void on_named(struct drain *d, const uint8_t *record)
{
	struct process *p = d->process;
	struct rec_named r;
	uint32_t name, bytes;

	memcpy(&r, record, sizeof(r));
	name = table_name(p, REC_ID(r.hdr));
	if (name == TABLE_NONE || name == NAME_NONE ||
		(r.stream == NAMED_OBJECT && (GPU_OBJECT(r.object) == GPU_OBJECT_STREAM ||
						     GPU_OBJECT(r.object) >= GPU_OBJECTS)))
		loss_bad(p, 1);
	else
		gpu_names_put(p, r.ordinal, r.stream == NAMED_OBJECT ? r.object : r.stream,
			name_text(p, name, &bytes));
}

static void on_clock(struct drain *d, const uint8_t *record)
{
	struct process *p = d->process;
	struct rec_clock r;
	struct anchor a;

	memcpy(&r, record, sizeof(r));
	a = (struct anchor){r.clock, r.monotonic_ns, r.realtime_ns, r.error};
	if (p->own.n > 0 && a.clock > p->own.v[p->own.n - 1].clock)
		anchors_add(&p->own, &a);
	process_use_clock(p);
}

static void on_lost(struct drain *d, const uint8_t *record)
{
	struct rec_lost r;

	memcpy(&r, record, sizeof(r));
	d->process->lane[d->lane].skipped |= REC_ID(r.hdr) == LOST_SKIPPED;
	loss_told(d->process, d->lane, &r);
}

#define MEMORY_LATEST_NS 10000000000ull /* then they count in whatever order they come */

/* Memory's events of before are here. Those of what was delivered by the time before are, and so are their calls,
 * whatever lane was read first; but a buffer comes when all of its kernels are done, so that one with a launch that is
 * open may have events of a flush before that. */
static uint64_t memory_known(const struct process *p, uint64_t before)
{
	const struct flight *c = &p->flight;
	const uint32_t first = c->list[LIST_OPEN].first;
	const uint64_t round = p->delivered_ns > before ? p->delivered_ns - before : 0;
	const uint64_t latest =
		p->delivered_ns > MEMORY_LATEST_NS ? p->delivered_ns - MEMORY_LATEST_NS : 0;
	struct clockmap m = p->clock; /* it keeps its place near the newest */
	uint64_t open;

	if (first == 0)
		return before;
	open = clockmap_ns(&m, c->launch[first - 1].clock);
	open = open > 2 * round ? open - 2 * round : 0;
	open = open > latest ? open : latest;
	return open < before ? open : before;
}

static void on_delivered(struct drain *d, const uint8_t *record)
{
	struct rec_delivered r;
	struct process *p = d->process;
	const uint64_t before = p->delivered_ns;
	uint32_t i;

	memcpy(&r, record, sizeof(r));
	correlate_delivered(p, &r, (uint16_t)REC_ID(r.hdr));
	for (i = 0; i < p->n_parts; i++)
		if (p->part[i]->allocs != NULL)
			allocs_settle(p->part[i], memory_known(p, before));
}

/* No more comes. */
static void settle_all(struct process *p)
{
	uint32_t i;

	for (i = 0; i < p->n_parts; i++)
		allocs_settle(p->part[i], UINT64_MAX);
}

static void on_gpu(struct drain *d, const uint8_t *record)
{
	struct process *p = d->process;
	struct rec_gpu r;
	const char *text;
	uint32_t name, bytes;

	memcpy(&r, record, sizeof(r));
	name = table_name(p, REC_ID(r.hdr));
	if (name == TABLE_NONE) {
		loss_bad(p, 1);
		return;
	}
	if (p->row.gpu_state == GPU_ON && REC_FLAGS(r.hdr) != GPU_ON) {
		correlate_gpu_off(p, r.clock);
		settle_all(p);
	}
	p->row.gpu_state = REC_FLAGS(r.hdr);
	p->row.gpu_code = r.code;
	if (r.version != 0)
		p->row.cupti_version = r.version;
	p->row.source = r.replay == 1 ? FROM_REPLAY : p->row.source;
	text = name_text(p, name, &bytes);
	if (bytes > 0)
		words_plain(p->row.gpu_text, sizeof(p->row.gpu_text), text, bytes);
}

static void on_counters(struct drain *d, const uint8_t *record)
{
	struct rec_counters r;

	memcpy(&r, record, sizeof(r));
	if (!counted_said(d->process, &r))
		loss_bad(d->process, 1);
}

static void on_pad(struct drain *d, const uint8_t *record)
{
	(void)d; /* drain_next() skips these */
	(void)record;
}

static const struct {
	uint32_t bytes;
	record_fn *handle;
	bool event; /* what the program or the GPU did; the others are about the recording */
} handlers[REC_MAX] = {
/* clang-format off */
#define X(name, number, bytes, layout, event) [number] = {sizeof(struct rec_##layout), on_##layout, event},
	RECORDS(X)
#undef X
	/* clang-format on */
};

/* Its thread may have ended right there, and still say that it is in that scope. */
static void keep_left(struct drain *d)
{
	struct lane *l = &d->process->lane[d->lane];
	struct rec_scope r;

	if (d->ended == NULL)
		return;
	memcpy(&r, d->ended, sizeof(r));
	if ((REC_FLAGS(r.hdr) & SCOPE_SPAN) != 0) /* it is in no stack */
		return;
	l->left_path = REC_ID(r.hdr) < d->process->n_paths ? REC_ID(r.hdr) : PATH_OTHER;
	l->left_begin = (REC_FLAGS(r.hdr) & SCOPE_BEGAN_BEFORE) != 0 ? 0 : r.begin;
}

/* drain → correlate → tree. */
static void pipeline_run(struct drain d)
{
	const uint8_t *record;
	bool news = false;
	uint64_t hdr;

	correlate_begin(d.process);
	while ((record = drain_next(&d, &hdr)) != NULL) {
		news |= REC_TYPE(hdr) != REC_CLOCK;
		if (REC_TYPE(hdr) >= REC_MAX || handlers[REC_TYPE(hdr)].handle == NULL) {
			d.process->skipped++; /* a newer agent wrote it */
			continue;
		}
		d.process->events += handlers[REC_TYPE(hdr)].event;
		if (REC_BYTES(hdr) < handlers[REC_TYPE(hdr)].bytes)
			loss_bad(d.process, 1);
		else
			handlers[REC_TYPE(hdr)].handle(&d, record);
	}
	keep_left(&d);
	d.process->fold->news |= news;
	correlate_sweep(d.process);
}

/* NULL: it breaks a law, or there is no memory. */
static struct lane *lane_of(struct process *p, const struct j_lane *l)
{
	struct lane *lane;

	if (p->row.ended_ns != 0 || l->lane >= p->row.n_lanes || l->from % 8 != 0 ||
		l->bytes % 8 != 0 || l->from > INT64_MAX) {
		loss_bad(p, 1);
		return NULL;
	}
	if (!process_lanes(p, l->lane + 1))
		return NULL;
	lane = &p->lane[l->lane];
	/* Later owners say so in a THREAD record; the header may already be the next one's. */
	if (lane->generation == 0) {
		lane->tid = l->tid;
		lane->generation = l->generation;
	}
	return lane;
}

static struct drain drain_of(
	struct process *p, const struct j_lane *l, const uint8_t *bytes, uint64_t known)
{
	const uint32_t lane_bytes = p->row.lane_bytes;

	process_use_clock(p);
	return (struct drain){.process = p,
		.at = bytes + known,
		.end = bytes + l->bytes,
		.base = bytes,
		.from = l->from,
		.lane = l->lane,
		.lane_bytes = lane_bytes,
		.left = lane_bytes - (uint32_t)((l->from + known) % lane_bytes),
		.lap = (uint8_t)((l->from + known) / lane_bytes)};
}

/* Of the records there, those that are sums: the others come with their lane. */
void pipeline_sums(struct process *p, const struct j_lane *l, const uint8_t *bytes)
{
	struct lane *lane;
	struct drain d;
	const uint8_t *record;
	uint64_t hdr;

	MUST_PROCESS(p);
	lane = lane_of(p, l);
	if (lane == NULL || l->from < lane->head)
		return;
	d = drain_of(p, l, bytes, 0);
	while ((record = drain_next(&d, &hdr)) != NULL) {
		if (REC_TYPE(hdr) == REC_SUM && REC_BYTES(hdr) >= sizeof(struct rec_sum))
			on_sum(&d, record);
		else if (REC_TYPE(hdr) == REC_TOTAL && REC_BYTES(hdr) >= sizeof(struct rec_total))
			on_total(&d, record);
	}
}

/* A lane's entries follow each other without a gap, but for one that was left out. If one is
 * missing, the journal has lost it: it was cut, or is damaged. */
static void lane_reach(struct process *p, struct lane *lane, uint64_t from, uint64_t mono_ns)
{
	const struct fold *f = p->fold;
	uint64_t since = lane->taken_ns > f->restored_ns ? lane->taken_ns : f->restored_ns;

	since = since > p->row.created_monotonic_ns ? since : p->row.created_monotonic_ns;
	if (from > lane->head) {
		process_use_clock(p);
		if (!lane->skipped)
			loss_journal(p, from - lane->head, since < f->now_ns ? since : f->now_ns);
		lane->head = from;
		lane->dirty = p->dirty = true;
	}
	lane->skipped = false;
	lane->taken_ns = mono_ns;
}

void pipeline_lane(
	struct process *p, const struct j_lane *l, const uint8_t *bytes, uint64_t mono_ns)
{
	struct drain d;
	struct lane *lane;
	uint64_t known;
	uint32_t i;

	MUST_PROCESS(p);
	lane = lane_of(p, l);
	if (lane == NULL)
		return;
	lane_reach(p, lane, l->from, mono_ns);
	known = lane->head > l->from ? lane->head - l->from : 0; /* so much was applied before */
	if (known >= l->bytes)
		return;
	lane->head = l->from + l->bytes;
	lane->dirty = true;
	p->dirty = true;
	d = drain_of(p, l, bytes, known);
	d.final = true;
	pipeline_run(d);
	for (i = 0; i < p->n_parts; i++)
		blocks_reach(p->part[i], mono_ns);
}
