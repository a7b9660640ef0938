/* SPDX-License-Identifier: MIT. trace.c: a session's timeline, in chunks of columns.
 *
 * A chunk: "PTC1" or "PTC2", the counts, then each column: its bytes before and after compression, and the
 * bytes. Numbers are of 7 bits a byte, low first; differences have their sign in bit 0. */
#include "trace.h"

#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "arena.h"
#include "leb.h"
#include "table.h"

#define MAGIC        "PTC1"
#define MAGIC_BURSTS "PTC2" /* with a column of bursts */
#define MAGIC_BYTES  4u
#define LEVEL        3
#define HEAD_MAX     (MAGIC_BYTES + LEB_MAX * (TRACE_COUNT_MAX + 2 * TRACE_COLUMN_MAX))
/* A reader takes no more than this: a chunk is full far before. */
#define READ_RAW_MAX (16u << 20)

struct trace_last {
	uint64_t scope_end, launched, metric_clock; /* of a thread */
	uint64_t op_end;                            /* of a stream */
	uint32_t correlation;
};

/* --- numbers */

static uint64_t fold_sign(uint64_t difference)
{
	return difference << 1 ^ (uint64_t)((int64_t)difference >> 63);
}

static uint64_t unfold_sign(uint64_t v)
{
	return v >> 1 ^ (0 - (v & 1));
}

/* --- writing */

void trace_pack_fini(struct trace_pack *k)
{
	uint32_t i;

	for (i = 0; i < TRACE_COLUMN_MAX; i++)
		free(k->column[i].p);
	free(k->last_thread);
	free(k->last_stream);
	free(k->burst);
	*k = (struct trace_pack){0};
}

void trace_pack_clear(struct trace_pack *k)
{
	uint32_t i;

	for (i = 0; i < TRACE_COLUMN_MAX; i++)
		k->column[i].n = 0;
	memset(k->n, 0, sizeof(k->n));
	k->raw = k->n_bursts = 0;
}

bool trace_pack_is_full(const struct trace_pack *k)
{
	uint32_t i;

	for (i = TRACE_N_NODES; i <= TRACE_N_TEXTS; i++)
		if (k->n[i] >= TRACE_COUNT_LIMIT / 2)
			return true;
	return trace_pack_events(k) >= TRACE_EVENTS_MAX || k->raw >= TRACE_RAW_MAX ||
	       k->n_bursts >= TRACE_BURSTS_MAX;
}

static bool column_room(struct trace_column *c, uint32_t bytes)
{
	uint32_t want = c->cap == 0 ? 256 : c->cap;
	uint8_t *grown;

	while (want - c->n < bytes)
		want *= 2;
	if (want == c->cap)
		return true;
	grown = realloc(c->p, want);
	if (grown == NULL)
		return false;
	c->p = grown;
	c->cap = want;
	return true;
}

/* Room for one number in each of these columns, so that an event is there whole or not at all. */
static bool columns_room(struct trace_pack *k, uint32_t first, uint32_t last)
{
	for (; first <= last; first++)
		if (!column_room(&k->column[first], LEB_MAX))
			return false;
	return true;
}

static void put(struct trace_pack *k, enum trace_column_id column, uint64_t v)
{
	struct trace_column *c = &k->column[column];
	uint32_t before = c->n;

	c->n = (uint32_t)(leb_put(c->p + before, v) - c->p);
	k->raw += c->n - before;
}

static void put_difference(
	struct trace_pack *k, enum trace_column_id column, uint64_t v, uint64_t *last)
{
	put(k, column, fold_sign(v - *last));
	*last = v;
}

static bool lasts_room(struct trace_last **v, uint32_t *cap, uint32_t n)
{
	uint32_t want = *cap == 0 ? 16 : *cap * 2;
	struct trace_last *grown;

	if (n == *cap) {
		grown = reallocarray(*v, want, sizeof(*grown));
		if (grown == NULL)
			return false;
		*v = grown;
		*cap = want;
	}
	(*v)[n] = (struct trace_last){0};
	return true;
}

bool trace_pack_node(struct trace_pack *k, const uint8_t hash[16])
{
	struct trace_column *c = &k->column[TRACE_NODES];

	if (!column_room(c, 16))
		return false;
	memcpy(c->p + c->n, hash, 16);
	c->n += 16;
	k->raw += 16;
	k->n[TRACE_N_NODES]++;
	return true;
}

bool trace_pack_thread(struct trace_pack *k, const struct trace_thread *t)
{
	if (!column_room(&k->column[TRACE_THREADS], 2 * LEB_MAX) ||
		!lasts_room(&k->last_thread, &k->cap_threads, k->n[TRACE_N_THREADS]))
		return false;
	put(k, TRACE_THREADS, t->tid);
	put(k, TRACE_THREADS, t->name == TRACE_NONE ? 0 : (uint64_t)t->name + 1);
	k->n[TRACE_N_THREADS]++;
	return true;
}

bool trace_pack_stream(struct trace_pack *k, const struct trace_stream *s)
{
	if (!column_room(&k->column[TRACE_STREAMS], 3 * LEB_MAX) ||
		!lasts_room(&k->last_stream, &k->cap_streams, k->n[TRACE_N_STREAMS]))
		return false;
	put(k, TRACE_STREAMS, s->device);
	put(k, TRACE_STREAMS, s->context);
	put(k, TRACE_STREAMS, s->stream);
	k->n[TRACE_N_STREAMS]++;
	return true;
}

bool trace_pack_config(struct trace_pack *k, const struct trace_config *c)
{
	int i;

	if (!column_room(&k->column[TRACE_CONFIGS], 9 * LEB_MAX))
		return false;
	for (i = 0; i < 3; i++) {
		put(k, TRACE_CONFIGS, c->grid[i]);
		put(k, TRACE_CONFIGS, c->block[i]);
	}
	put(k, TRACE_CONFIGS, c->registers);
	put(k, TRACE_CONFIGS, c->static_shared);
	put(k, TRACE_CONFIGS, c->dynamic_shared);
	k->n[TRACE_N_CONFIGS]++;
	return true;
}

bool trace_pack_text(struct trace_pack *k, const char *text, uint32_t bytes)
{
	struct trace_column *c = &k->column[TRACE_TEXTS];

	bytes = (uint32_t)strnlen(text, bytes < TRACE_TEXT_MAX ? bytes : TRACE_TEXT_MAX);
	if (!column_room(c, bytes + 1))
		return false;
	memcpy(c->p + c->n, text, bytes);
	c->p[c->n + bytes] = '\0';
	c->n += bytes + 1;
	k->raw += bytes + 1;
	k->n[TRACE_N_TEXTS]++;
	return true;
}

#define CALL_NUMBERS 4u

bool trace_pack_scope(struct trace_pack *k, const struct trace_scope *s)
{
	if (!columns_room(k, TRACE_SCOPE_THREAD, TRACE_SCOPE_LENGTH) ||
		((s->flags & TRACE_CALL) != 0 &&
			!column_room(&k->column[TRACE_CALLS], CALL_NUMBERS * LEB_MAX)))
		return false;
	put(k, TRACE_SCOPE_THREAD, s->thread);
	put(k, TRACE_SCOPE_NODE, s->node);
	put(k, TRACE_SCOPE_SEGMENT, s->segment);
	put(k, TRACE_SCOPE_FLAGS, s->flags);
	put_difference(k, TRACE_SCOPE_END, s->end, &k->last_thread[s->thread].scope_end);
	put(k, TRACE_SCOPE_LENGTH, s->end - s->begin);
	if ((s->flags & TRACE_CALL) != 0) {
		put(k, TRACE_CALLS, s->call.class);
		put(k, TRACE_CALLS, s->call.stream + 1u);
		put(k, TRACE_CALLS, s->call.correlation);
		put(k, TRACE_CALLS, s->call.event);
	}
	k->n[TRACE_N_SCOPES]++;
	return true;
}

bool trace_pack_op(struct trace_pack *k, const struct trace_op *o)
{
	struct trace_last *stream = &k->last_stream[o->stream], *thread;

	if (!columns_room(k, TRACE_OP_THREAD, TRACE_OP_LENGTH))
		return false;
	put(k, TRACE_OP_NODE, o->node);
	put(k, TRACE_OP_SEGMENT, o->segment);
	put(k, TRACE_OP_STREAM, o->stream);
	put(k, TRACE_OP_CLASS, o->class);
	put(k, TRACE_OP_FLAGS, o->flags);
	put(k, TRACE_OP_START, fold_sign(o->start - stream->op_end));
	put(k, TRACE_OP_LENGTH, o->end - o->start);
	stream->op_end = o->end;
	if (gpu_class_is_kernel(o->class))
		put(k, TRACE_OP_CONFIG, o->config == TRACE_NONE ? 0 : (uint64_t)o->config + 1);
	else
		put(k, TRACE_OP_BYTES, o->bytes);
	if ((o->flags & TRACE_UNLAUNCHED) == 0) {
		thread = &k->last_thread[o->thread];
		put(k, TRACE_OP_THREAD, o->thread);
		put_difference(k, TRACE_OP_LAUNCHED, o->launched, &thread->launched);
		put(k, TRACE_OP_CORRELATION,
			fold_sign((uint64_t)((int64_t)o->correlation - thread->correlation)));
		thread->correlation = o->correlation;
	}
	k->n[TRACE_N_OPS]++;
	return true;
}

bool trace_pack_metric(struct trace_pack *k, const struct trace_metric *m)
{
	if (!columns_room(k, TRACE_METRIC_THREAD, TRACE_METRIC_BITS))
		return false;
	put(k, TRACE_METRIC_THREAD, m->thread);
	put(k, TRACE_METRIC_NODE, m->node);
	put(k, TRACE_METRIC_SEGMENT, m->segment);
	put(k, TRACE_METRIC_NAME, m->name);
	put(k, TRACE_METRIC_TYPE, m->type);
	put_difference(k, TRACE_METRIC_CLOCK, m->clock, &k->last_thread[m->thread].metric_clock);
	put(k, TRACE_METRIC_BITS, m->bits);
	k->n[TRACE_N_METRICS]++;
	return true;
}

bool trace_pack_burst(struct trace_pack *k, const struct trace_burst *b)
{
	if (!ROOM_FOR(k->burst, k->cap_bursts, k->n_bursts))
		return false;
	k->burst[k->n_bursts++] = *b;
	return true;
}

#define BURST_NUMBERS 5u

/* The column of the bursts as they stand: how many, then each, its begin as the difference to the one
 * before. Empty where there are none. */
static bool bursts_column(const struct trace_pack *k, struct trace_column *ret)
{
	const size_t most = (BURST_NUMBERS * (size_t)k->n_bursts + 1) * LEB_MAX;
	const struct trace_burst *b;
	uint64_t last = 0;
	uint8_t *at;

	*ret = (struct trace_column){.n = 0};
	if (k->n_bursts == 0)
		return true;
	ret->p = at = malloc(most);
	if (at == NULL)
		return false;
	at = leb_put(at, k->n_bursts);
	for (b = k->burst; b < k->burst + k->n_bursts; b++) {
		at = leb_put(at, b->thread);
		at = leb_put(at, b->segment);
		at = leb_put(at, fold_sign(b->begin - last));
		at = leb_put(at, b->end - b->begin);
		at = leb_put(at, b->n);
		last = b->begin;
	}
	ret->n = (uint32_t)(at - ret->p);
	return true;
}

/* The last ones are left out where there is nothing in them. */
static uint32_t columns_written(const struct trace_column *const column[TRACE_COLUMN_MAX])
{
	if (column[TRACE_BURSTS]->n > 0)
		return TRACE_COLUMN_MAX;
	return column[TRACE_CALLS]->n > 0 ? TRACE_BURSTS : TRACE_CALLS;
}

static int seal(const struct trace_column *const column[TRACE_COLUMN_MAX],
	const uint32_t count[TRACE_COUNT_MAX], void **ret_bytes, uint32_t *ret_n)
{
	const uint32_t n_columns = columns_written(column);
	size_t cap = HEAD_MAX, n;
	uint8_t *bytes, *at, *packed;
	ZSTD_CCtx *z = ZSTD_createCCtx();
	uint32_t i;

	for (i = 0; i < TRACE_COLUMN_MAX; i++)
		cap += ZSTD_compressBound(column[i]->n) + LEB_MAX;
	bytes = z == NULL ? NULL : malloc(2 * cap);
	if (bytes == NULL)
		goto fail;
	packed = bytes + cap;
	memcpy(bytes, n_columns == TRACE_COLUMN_MAX ? MAGIC_BURSTS : MAGIC, MAGIC_BYTES);
	at = bytes + MAGIC_BYTES;
	for (i = 0; i < TRACE_COUNT_MAX; i++)
		at = leb_put(at, count[i]);
	for (i = 0; i < n_columns; i++) {
		n = 0;
		if (column[i]->n > 0) {
			n = ZSTD_compressCCtx(z, packed, cap, column[i]->p, column[i]->n, LEVEL);
			if (ZSTD_isError(n))
				goto fail;
		}
		at = leb_put(at, column[i]->n);
		at = leb_put(at, n);
		memcpy(at, packed, n);
		at += n;
	}
	(void)ZSTD_freeCCtx(z);
	*ret_n = (uint32_t)(at - bytes);
	*ret_bytes = realloc(bytes, *ret_n);
	if (*ret_bytes == NULL)
		*ret_bytes = bytes;
	return 0;
fail:
	(void)ZSTD_freeCCtx(z);
	free(bytes);
	return -ENOMEM;
}

int trace_pack_seal(const struct trace_pack *k, void **ret_bytes, uint32_t *ret_n)
{
	const struct trace_column *column[TRACE_COLUMN_MAX];
	struct trace_column bursts;
	uint32_t i;
	int r;

	if (!bursts_column(k, &bursts))
		return -ENOMEM;
	for (i = 0; i < TRACE_COLUMN_MAX; i++)
		column[i] = i == TRACE_BURSTS ? &bursts : &k->column[i];
	r = seal(column, k->n, ret_bytes, ret_n);
	free(bursts.p);
	return r;
}

/* --- reading */

struct columns {
	const uint8_t *at[TRACE_COLUMN_MAX], *end[TRACE_COLUMN_MAX];
	bool bad;
};

static uint64_t get(struct columns *c, enum trace_column_id column)
{
	return leb_get(&c->at[column], c->end[column], &c->bad);
}

/* A number below `limit`; 0 where it is not. */
static uint32_t get_below(struct columns *c, enum trace_column_id column, uint64_t limit)
{
	const uint64_t v = get(c, column);

	c->bad |= v >= limit;
	return v < limit ? (uint32_t)v : 0;
}

static uint32_t get_u32(struct columns *c, enum trace_column_id column)
{
	return get_below(c, column, 1ull << 32);
}

static uint64_t get_difference(struct columns *c, enum trace_column_id column, uint64_t *last)
{
	return *last += unfold_sign(get(c, column));
}

static void read_lists(struct columns *c, struct trace_chunk *k)
{
	const uint8_t *at, *nul;
	uint32_t i, name;
	int x;

	if (c->end[TRACE_NODES] - c->at[TRACE_NODES] == (ptrdiff_t)k->n[TRACE_N_NODES] * 16)
		memcpy(k->node, c->at[TRACE_NODES], (size_t)k->n[TRACE_N_NODES] * 16);
	else
		c->bad = true;
	c->at[TRACE_NODES] = c->end[TRACE_NODES];
	for (i = 0; i < k->n[TRACE_N_TEXTS] && !c->bad; i++) {
		at = c->at[TRACE_TEXTS];
		nul = memchr(at, 0, (size_t)(c->end[TRACE_TEXTS] - at));
		c->bad |= nul == NULL;
		c->at[TRACE_TEXTS] = nul == NULL ? at : nul + 1;
		k->text[i] = (const char *)at;
	}
	for (i = 0; i < k->n[TRACE_N_THREADS] && !c->bad; i++) {
		k->thread[i].tid = get_u32(c, TRACE_THREADS);
		name = get_below(c, TRACE_THREADS, (uint64_t)k->n[TRACE_N_TEXTS] + 1);
		k->thread[i].name = name == 0 ? TRACE_NONE : name - 1;
	}
	for (i = 0; i < k->n[TRACE_N_STREAMS] && !c->bad; i++) {
		k->stream[i].device = get_u32(c, TRACE_STREAMS);
		k->stream[i].context = get_u32(c, TRACE_STREAMS);
		k->stream[i].stream = get_u32(c, TRACE_STREAMS);
	}
	for (i = 0; i < k->n[TRACE_N_CONFIGS] && !c->bad; i++) {
		for (x = 0; x < 3; x++) {
			k->config[i].grid[x] = get_u32(c, TRACE_CONFIGS);
			k->config[i].block[x] = get_u32(c, TRACE_CONFIGS);
		}
		k->config[i].registers = get_u32(c, TRACE_CONFIGS);
		k->config[i].static_shared = get_u32(c, TRACE_CONFIGS);
		k->config[i].dynamic_shared = get_u32(c, TRACE_CONFIGS);
	}
}

static void read_call(struct columns *c, struct trace_call *call)
{
	call->class = (uint8_t)get_below(c, TRACE_CALLS, CLASS_MAX);
	call->stream = get_u32(c, TRACE_CALLS) - 1;
	call->correlation = get_u32(c, TRACE_CALLS);
	call->event = get(c, TRACE_CALLS);
	c->bad |= gpu_classes[call->class].node != NODE_CALL &&
		  !gpu_counts_samples(gpu_classes[call->class].counts);
}

static void read_scopes(struct columns *c, struct trace_chunk *k, struct trace_last *thread)
{
	struct trace_scope *s = k->scope;
	uint32_t i;

	for (i = 0; i < k->n[TRACE_N_SCOPES] && !c->bad; i++, s++) {
		s->thread = get_below(c, TRACE_SCOPE_THREAD, k->n[TRACE_N_THREADS]);
		s->node = get_below(c, TRACE_SCOPE_NODE, k->n[TRACE_N_NODES]);
		s->segment = get_u32(c, TRACE_SCOPE_SEGMENT);
		s->flags = (uint8_t)get_below(c, TRACE_SCOPE_FLAGS, 256);
		s->end = get_difference(c, TRACE_SCOPE_END, &thread[s->thread].scope_end);
		s->begin = s->end - get(c, TRACE_SCOPE_LENGTH);
		c->bad |= s->begin > s->end;
		s->call = (struct trace_call){.stream = UINT32_MAX};
		if ((s->flags & TRACE_CALL) != 0)
			read_call(c, &s->call);
	}
}

static void read_ops(struct columns *c, struct trace_chunk *k, struct trace_last *thread,
	struct trace_last *stream)
{
	struct trace_op *o = k->op;
	uint64_t correlation;
	uint32_t i, config;

	for (i = 0; i < k->n[TRACE_N_OPS] && !c->bad; i++, o++) {
		o->node = get_below(c, TRACE_OP_NODE, k->n[TRACE_N_NODES]);
		o->segment = get_u32(c, TRACE_OP_SEGMENT);
		o->stream = get_below(c, TRACE_OP_STREAM, k->n[TRACE_N_STREAMS]);
		o->class = (uint8_t)get_below(c, TRACE_OP_CLASS, CLASS_MAX);
		c->bad |= !gpu_class_is_work(o->class);
		o->flags = (uint8_t)get_below(c, TRACE_OP_FLAGS, 256);
		o->start = get_difference(c, TRACE_OP_START, &stream[o->stream].op_end);
		o->end = stream[o->stream].op_end += get(c, TRACE_OP_LENGTH);
		c->bad |= o->end < o->start;
		o->config = TRACE_NONE;
		if (gpu_class_is_kernel(o->class)) {
			config = get_below(c, TRACE_OP_CONFIG, (uint64_t)k->n[TRACE_N_CONFIGS] + 1);
			o->config = config == 0 ? TRACE_NONE : config - 1;
		} else {
			o->bytes = get(c, TRACE_OP_BYTES);
		}
		o->thread = TRACE_NONE;
		if ((o->flags & TRACE_UNLAUNCHED) != 0)
			continue;
		o->thread = get_below(c, TRACE_OP_THREAD, k->n[TRACE_N_THREADS]);
		o->launched = get_difference(c, TRACE_OP_LAUNCHED, &thread[o->thread].launched);
		correlation =
			thread[o->thread].correlation + unfold_sign(get(c, TRACE_OP_CORRELATION));
		c->bad |= correlation > UINT32_MAX;
		o->correlation = thread[o->thread].correlation = (uint32_t)correlation;
	}
}

/* When and where alone, or where and how long. */
static void read_op_times(
	struct columns *c, struct trace_chunk *k, bool starts, struct trace_last *stream)
{
	struct trace_op *o = k->op;
	uint32_t i;

	for (i = 0; i < k->n[TRACE_N_OPS] && !c->bad; i++, o++) {
		o->node = get_below(c, TRACE_OP_NODE, k->n[TRACE_N_NODES]);
		o->stream = get_below(c, TRACE_OP_STREAM, k->n[TRACE_N_STREAMS]);
		o->start =
			starts ? get_difference(c, TRACE_OP_START, &stream[o->stream].op_end) : 0;
		o->end = stream[o->stream].op_end = o->start + get(c, TRACE_OP_LENGTH);
		c->bad |= o->end < o->start;
	}
}

static void read_metrics(struct columns *c, struct trace_chunk *k, struct trace_last *thread)
{
	struct trace_metric *m = k->metric;
	uint32_t i;

	for (i = 0; i < k->n[TRACE_N_METRICS] && !c->bad; i++, m++) {
		m->thread = get_below(c, TRACE_METRIC_THREAD, k->n[TRACE_N_THREADS]);
		m->node = get_below(c, TRACE_METRIC_NODE, k->n[TRACE_N_NODES]);
		m->segment = get_u32(c, TRACE_METRIC_SEGMENT);
		m->name = get_below(c, TRACE_METRIC_NAME, k->n[TRACE_N_TEXTS]);
		m->type = (uint8_t)get_below(c, TRACE_METRIC_TYPE, VALUE_STR + 1);
		m->clock = get_difference(c, TRACE_METRIC_CLOCK, &thread[m->thread].metric_clock);
		m->bits = get(c, TRACE_METRIC_BITS);
		c->bad |= m->type == VALUE_NONE ||
			  (m->type == VALUE_STR && m->bits >= k->n[TRACE_N_TEXTS]);
	}
}

static void read_bursts(struct columns *c, struct trace_chunk *k, uint32_t room)
{
	const uint32_t n = get_below(c, TRACE_BURSTS, (uint64_t)room + 1);
	struct trace_burst *b = k->burst;
	uint64_t last = 0;

	for (; k->n_bursts < n && !c->bad; k->n_bursts++, b++) {
		b->thread = get_below(c, TRACE_BURSTS, k->n[TRACE_N_THREADS]);
		b->segment = get_u32(c, TRACE_BURSTS);
		b->begin = get_difference(c, TRACE_BURSTS, &last);
		b->end = b->begin + get(c, TRACE_BURSTS);
		b->n = get(c, TRACE_BURSTS);
		c->bad |= b->end < b->begin;
	}
}

/* As many as so many bytes may hold. */
static uint32_t bursts_room(size_t bytes)
{
	const size_t most = bytes / BURST_NUMBERS;

	return most < TRACE_COUNT_LIMIT ? (uint32_t)most : TRACE_COUNT_LIMIT;
}

/* The counts and the columns' places in the chunk; false: it is not one. */
static bool read_head(const uint8_t *bytes, size_t n, struct trace_chunk *k,
	const uint8_t *packed[TRACE_COLUMN_MAX], size_t packed_n[TRACE_COLUMN_MAX],
	size_t raw_n[TRACE_COLUMN_MAX])
{
	const uint8_t *at, *end;
	uint64_t v, raw = 0;
	bool bad = false, bursts;
	uint32_t i;

	if (n < MAGIC_BYTES)
		return false;
	bursts = memcmp(bytes, MAGIC_BURSTS, MAGIC_BYTES) == 0;
	if (!bursts && memcmp(bytes, MAGIC, MAGIC_BYTES) != 0)
		return false;
	at = bytes + MAGIC_BYTES;
	end = bytes + n;

	for (i = 0; i < TRACE_COUNT_MAX && !bad; i++) {
		v = leb_get(&at, end, &bad);
		bad |= v > TRACE_COUNT_LIMIT;
		k->n[i] = (uint32_t)v;
	}
	for (i = 0; i < TRACE_COLUMN_MAX && !bad; i++) {
		raw_n[i] = packed_n[i] = 0;
		if (!bursts && (i == TRACE_BURSTS || (i == TRACE_CALLS && at == end)))
			continue;
		raw_n[i] = leb_get(&at, end, &bad);
		packed_n[i] = leb_get(&at, end, &bad);
		bad |= raw_n[i] > READ_RAW_MAX - raw || packed_n[i] > (size_t)(end - at);
		raw += raw_n[i];
		packed[i] = at;
		at += bad ? 0 : packed_n[i];
	}
	return !bad && at == end;
}

/* What is read of a chunk, beside its lists. */
#define BIT(column) (1ull << TRACE_##column)
/* clang-format off */
#define READ_LISTS      (BIT(NODES) | BIT(THREADS) | BIT(STREAMS) | BIT(CONFIGS) | BIT(TEXTS) | BIT(BURSTS))
#define READ_METRICS    (BIT(METRIC_THREAD) | BIT(METRIC_NODE) | BIT(METRIC_SEGMENT) | BIT(METRIC_NAME) | \
			 BIT(METRIC_TYPE) | BIT(METRIC_CLOCK) | BIT(METRIC_BITS))
#define READ_SCOPES     (BIT(SCOPE_THREAD) | BIT(SCOPE_NODE) | BIT(SCOPE_SEGMENT) | BIT(SCOPE_FLAGS) | \
			 BIT(SCOPE_END) | BIT(SCOPE_LENGTH) | BIT(CALLS))
#define READ_OP_LENGTHS (BIT(OP_NODE) | BIT(OP_STREAM) | BIT(OP_LENGTH))
#define READ_OP_START   BIT(OP_START)
#define READ_ALL        (BIT(COLUMN_MAX) - 1)
/* clang-format on */
_Static_assert(TRACE_COLUMN_MAX < 64, "a bit for each column");

/* All that a chunk with these counts needs, and `raw` bytes of columns behind it. */
static bool chunk_room(
	struct trace_chunk *k, size_t raw, uint32_t bursts, uint64_t columns, uint8_t **ret_raw)
{
	struct arena *a = arena_new();
	bool good;

	k->memory = a;
	if (a == NULL)
		return false;
	k->node = arena_take(a, (size_t)k->n[TRACE_N_NODES] * 16 + 1);
	k->thread = arena_take(a, k->n[TRACE_N_THREADS] * sizeof(*k->thread) + 1);
	k->stream = arena_take(a, k->n[TRACE_N_STREAMS] * sizeof(*k->stream) + 1);
	k->config = arena_take(a, k->n[TRACE_N_CONFIGS] * sizeof(*k->config) + 1);
	k->text = arena_take(a, k->n[TRACE_N_TEXTS] * sizeof(*k->text) + 1);
	k->burst = arena_take(a, bursts * sizeof(*k->burst) + 1);
	*ret_raw = arena_take(a, raw + 1);
	good = k->node != NULL && k->thread != NULL && k->stream != NULL && k->config != NULL &&
	       k->text != NULL && k->burst != NULL && *ret_raw != NULL;
	if (good && (columns & READ_SCOPES) != 0) {
		k->scope = arena_take(a, k->n[TRACE_N_SCOPES] * sizeof(*k->scope) + 1);
		good = k->scope != NULL;
	}
	if (good && (columns & READ_OP_LENGTHS) != 0) {
		k->op = arena_take(a, k->n[TRACE_N_OPS] * sizeof(*k->op) + 1);
		good = k->op != NULL;
	}
	if (good && (columns & READ_METRICS) != 0) {
		k->metric = arena_take(a, k->n[TRACE_N_METRICS] * sizeof(*k->metric) + 1);
		good = k->metric != NULL;
	}
	return good;
}

static void read_events(
	struct columns *c, struct trace_chunk *k, uint64_t columns, struct trace_last *last)
{
	if (k->scope != NULL)
		read_scopes(c, k, last);
	if (columns == READ_ALL)
		read_ops(c, k, last, last + k->n[TRACE_N_THREADS]);
	else if (k->op != NULL)
		read_op_times(c, k, (columns & READ_OP_START) != 0, last + k->n[TRACE_N_THREADS]);
	if (k->metric != NULL)
		read_metrics(c, k, last);
}

static int chunk_read(
	const void *bytes, size_t n, uint64_t columns, struct trace_chunk *ret, struct err *e)
{
	const uint8_t *packed[TRACE_COLUMN_MAX];
	size_t packed_n[TRACE_COLUMN_MAX], raw_n[TRACE_COLUMN_MAX], raw = 0, got;
	struct columns c = {.bad = false};
	struct trace_chunk k = {.memory = NULL};
	struct trace_last *last;
	ZSTD_DCtx *z;
	uint8_t *at;
	uint32_t i;

	if (!read_head(bytes, n, &k, packed, packed_n, raw_n))
		return err_set(e, -EBADMSG, "a chunk of the timeline is damaged: bad header");
	k.calls = raw_n[TRACE_CALLS] > 0;
	for (i = 0; i < TRACE_COLUMN_MAX; i++) {
		raw_n[i] = (columns >> i & 1) != 0 ? raw_n[i] : 0; /* as if it were empty */
		raw += raw_n[i];
	}
	last = calloc((size_t)k.n[TRACE_N_THREADS] + k.n[TRACE_N_STREAMS] + 1, sizeof(*last));
	z = ZSTD_createDCtx();
	if (last == NULL || z == NULL ||
		!chunk_room(&k, raw, bursts_room(raw_n[TRACE_BURSTS]), columns, &at)) {
		(void)ZSTD_freeDCtx(z);
		free(last);
		trace_chunk_fini(&k);
		return err_set(e, -ENOMEM, "out of memory for a chunk of the timeline");
	}
	for (i = 0; i < TRACE_COLUMN_MAX && !c.bad; i++) {
		got = raw_n[i] == 0 ? 0
				    : ZSTD_decompressDCtx(z, at, raw_n[i], packed[i], packed_n[i]);
		c.bad = ZSTD_isError(got) || got != raw_n[i];
		c.at[i] = at;
		c.end[i] = at += raw_n[i];
	}
	(void)ZSTD_freeDCtx(z);
	if (!c.bad)
		read_lists(&c, &k);
	if (!c.bad && raw_n[TRACE_BURSTS] > 0)
		read_bursts(&c, &k, bursts_room(raw_n[TRACE_BURSTS]));
	if (!c.bad)
		read_events(&c, &k, columns, last);
	for (i = 0; i < TRACE_COLUMN_MAX && !c.bad; i++)
		c.bad = raw_n[i] > 0 && c.at[i] != c.end[i]; /* something is left over */
	free(last);
	if (c.bad) {
		trace_chunk_fini(&k);
		return err_set(e, -EBADMSG, "a chunk of the timeline is damaged");
	}
	*ret = k;
	return 0;
}

int trace_chunk_read(const void *bytes, size_t n, struct trace_chunk *ret, struct err *e)
{
	return chunk_read(bytes, n, READ_ALL, ret, e);
}

int trace_chunk_read_times(const void *bytes, size_t n, struct trace_chunk *ret, struct err *e)
{
	return chunk_read(
		bytes, n, READ_LISTS | READ_SCOPES | READ_OP_LENGTHS | READ_OP_START, ret, e);
}

int trace_chunk_read_lengths(const void *bytes, size_t n, struct trace_chunk *ret, struct err *e)
{
	return chunk_read(bytes, n, READ_LISTS | READ_SCOPES | READ_OP_LENGTHS, ret, e);
}

int trace_chunk_read_scopes(const void *bytes, size_t n, struct trace_chunk *ret, struct err *e)
{
	return chunk_read(bytes, n, READ_LISTS | READ_SCOPES | READ_METRICS, ret, e);
}

int trace_chunk_read_works(const void *bytes, size_t n, struct trace_chunk *ret, struct err *e)
{
	return chunk_read(bytes, n, READ_LISTS | READ_OP_LENGTHS | READ_OP_START, ret, e);
}

int trace_chunk_read_metrics(const void *bytes, size_t n, struct trace_chunk *ret, struct err *e)
{
	return chunk_read(bytes, n, READ_LISTS | READ_METRICS, ret, e);
}

void trace_chunk_fini(struct trace_chunk *c)
{
	arena_free(c->memory);
	*c = (struct trace_chunk){.memory = NULL};
}
