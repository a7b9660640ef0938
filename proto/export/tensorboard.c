/* SPDX-License-Identifier: MIT. tensorboard.c: the format tensorboard: an event file of TensorBoard's,
 * with scalars for each step: how long it took, what it launched on the GPU, and the metrics that the
 * job set in it, added up.
 *
 * A file is records of TensorFlow's kind: length, masked CRC-32C of it, an Event
 * (tensorflow/core/util/event.proto), masked CRC-32C of that. A scalar is a float. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "name_set.h"
#include "protobuf.h"
#include "sorted.h"

/* Numbers of fields. */
enum {
	EVENT_WALL_TIME = 1,
	EVENT_STEP = 2,
	EVENT_FILE_VERSION = 3,
	EVENT_SUMMARY = 5,
	SUMMARY_VALUE = 1,
	VALUE_TAG = 1,
	VALUE_SIMPLE = 2,
};

/* clang-format off */
#define SCALARS(X) /* of each step, whatever the job set */ \
	X(time_ms) X(kernel_time_ms) X(copy_time_ms) X(kernels) X(copies) \
	X(events_summed) /* of bursts that began in it; where the session has any */
/* clang-format on */
enum {
#define X(name) SCALAR_##name,
	SCALARS(X)
#undef X
		SCALARS_N
};

struct step { /* that is open, or ended on a thread that had no event since */
	int64_t number;
	uint64_t end_ns;
	uint32_t thread, process;
	double scalar[SCALARS_N];
	double *metric; /* [n_metrics], as names has them */
	bool *set;
	uint32_t n_metrics, cap_metrics, cap_set;
	struct step *older;
};

struct board {
	struct step *open; /* the newest */
	struct name_set names;
	struct text event, summary, value;
	uint32_t crc[256];
	uint64_t steps;
};

static struct board *board(struct sorted *s)
{
	return s->mine;
}

/* --- records */

static void crc_init(uint32_t table[256])
{
	for (uint32_t i = 0; i < 256; i++) {
		table[i] = i;
		for (int k = 0; k < 8; k++)
			table[i] = table[i] >> 1 ^ (0x82f63b78u & -(table[i] & 1));
	}
}

static uint32_t masked_crc(const uint32_t table[256], const char *bytes, size_t n)
{
	uint32_t c = UINT32_MAX;

	for (size_t i = 0; i < n; i++)
		c = c >> 8 ^ table[(c ^ (unsigned char)bytes[i]) & 255];
	c = ~c;
	return (c >> 15 | c << 17) + 0xa282ead8u;
}

static void little(struct text *t, uint64_t v, unsigned bytes)
{
	for (; bytes > 0; bytes--, v >>= 8)
		text_char(t, (char)(v & 255));
}

static void put_record(struct sorted *s)
{
	struct board *b = board(s);
	struct text *t = &s->w->out;
	const size_t at = t->n;

	s->w->out.failed |= b->event.failed;
	little(t, b->event.n, 8);
	if (!t->failed)
		little(t, masked_crc(b->crc, t->s + at, 8), 4);
	text_add(t, b->event.s, b->event.n);
	little(t, masked_crc(b->crc, b->event.s, b->event.n), 4);
	b->event.n = 0;
}

/* --- a step's scalars */

static void put_double(struct text *t, uint32_t field, double v)
{
	uint64_t bits;

	memcpy(&bits, &v, sizeof(bits));
	pb_fixed64(t, field, bits);
}

/* "rank 3/step/time_ms"; of one process without what it is. */
static void put_scalar(
	struct sorted *s, const struct step *x, const char *group, const char *name, double v)
{
	const struct sorted_process *p = &s->process[x->process];
	struct board *b = board(s);
	struct text tag = {0};
	const float simple = (float)v;
	uint32_t bits;

	if (s->n_processes > 1)
		text_fmt(&tag, "%s %" PRId64 "/", p->ranked ? "rank" : "pid",
			p->ranked ? p->rank : p->pid);
	text_fmt(&tag, "%s/%s", group, name);
	text_char(&tag, '\0');
	b->value.failed |= tag.failed;
	pb_string(&b->value, VALUE_TAG, tag.failed ? "" : tag.s);
	memcpy(&bits, &simple, sizeof(bits));
	pb_fixed32(&b->value, VALUE_SIMPLE, bits);
	pb_message(&b->summary, SUMMARY_VALUE, &b->value);
	text_fini(&tag);
}

static void put_step(struct sorted *s, const struct step *x)
{
	static const char *const scalars[SCALARS_N] = {
#define X(name) [SCALAR_##name] = #name,
		SCALARS(X)
#undef X
	};
	struct board *b = board(s);
	uint32_t i;

	for (i = 0; i < SCALARS_N - (s->w->left.summed == 0); i++)
		put_scalar(s, x, "step", scalars[i], x->scalar[i]);
	for (i = 0; i < x->n_metrics; i++)
		if (x->set[i])
			put_scalar(s, x, "metric", b->names.name[i], x->metric[i]);
	put_double(&b->event, EVENT_WALL_TIME, (double)(s->w->zero_ns + (int64_t)x->end_ns) / 1e9);
	pb_number(&b->event, EVENT_STEP, (uint64_t)x->number);
	pb_message(&b->event, EVENT_SUMMARY, &b->summary);
	put_record(s);
	b->steps++;
}

/* --- what is in a step */

/* The one that was open on this thread then, else the newest of its process. */
static struct step *step_of(
	const struct sorted *s, const struct board *b, uint32_t thread, uint64_t ns)
{
	struct step *x, *other = NULL;

	for (x = b->open; x != NULL; x = x->older) {
		if (x->end_ns < ns)
			continue;
		if (x->thread == thread)
			return x;
		if (other == NULL && x->process == s->thread[thread].process)
			other = x;
	}
	return other;
}

static void add_metric(struct sorted *s, struct step *x, const char *name, double v)
{
	const uint32_t at = name_set_add(&board(s)->names, name);

	if (at == TABLE_NONE || !ZEROED_FOR(x->metric, x->cap_metrics, at + 1) ||
		!ZEROED_FOR(x->set, x->cap_set, at + 1)) {
		s->w->out.failed = true;
		return;
	}
	x->n_metrics = at >= x->n_metrics ? at + 1 : x->n_metrics;
	x->metric[at] += v;
	x->set[at] = true;
}

/* Numbers; of a list, each. What is text or a list within a list has no place on a curve. */
static void add_value(struct sorted *s, struct step *x, const char *name, const json_t *v)
{
	const json_t *one;
	size_t i;

	if (json_is_number(v))
		add_metric(s, x, name, json_number_value(v));
	json_array_foreach(v, i, one)
	{
		if (json_is_number(one))
			add_metric(s, x, name, json_number_value(one));
	}
}

static void add_values(struct sorted *s, struct step *x, const char *values)
{
	struct text t = {0};
	json_t *all, *v;
	const char *name, *own;

	text_fmt(&t, "{%s}", values);
	all = t.failed ? NULL : json_loadb(t.s, t.n, JSON_DECODE_INT_AS_REAL, NULL);
	text_fini(&t);
	json_object_foreach(all, name, v)
	{
		own = profile_text(s->w->l.p, name, strlen(name));
		if (own != NULL)
			add_value(s, x, own, v);
		s->w->out.failed |= own == NULL;
	}
	s->w->out.failed |= all == NULL;
	json_decref(all);
}

static void board_scope(struct sorted *s, struct sorted_scope *x)
{
	struct board *b = board(s);
	const int64_t number = sorted_step(s, x);
	struct step *of;

	if (number >= 0) {
		of = calloc(1, sizeof(*of));
		if (of == NULL) {
			s->w->out.failed = true;
			return;
		}
		*of = (struct step){.number = number,
			.end_ns = x->end_ns,
			.thread = x->thread,
			.process = s->thread[x->thread].process,
			.scalar[SCALAR_time_ms] = (double)(x->end_ns - x->begin_ns) / 1e6,
			.older = b->open};
		b->open = of;
		x->mine = of;
	}
	of = x->values != NULL ? step_of(s, b, x->thread, x->begin_ns) : NULL;
	if (of != NULL)
		add_values(s, of, x->values);
}

static void board_scope_end(struct sorted *s, struct sorted_scope *x)
{
	struct board *b = board(s);
	struct step *of = x->mine, **at;

	if (of == NULL)
		return;
	for (at = &b->open; *at != of; at = &(*at)->older)
		;
	*at = of->older;
	put_step(s, of);
	free(of->metric);
	free(of->set);
	free(of);
}

static void board_op(struct sorted *s, const struct sorted_op *o)
{
	struct step *x =
		o->thread == SORTED_NONE ? NULL : step_of(s, board(s), o->thread, o->launch_ns);
	const bool kernel = gpu_class_is_kernel(o->class);

	if (x == NULL)
		return;
	x->scalar[kernel ? SCALAR_kernel_time_ms : SCALAR_copy_time_ms] +=
		(double)(o->end_ns - o->start_ns) / 1e6;
	x->scalar[kernel ? SCALAR_kernels : SCALAR_copies]++;
}

static void board_burst(struct sorted *s, const struct sorted_burst *b)
{
	struct step *x = step_of(s, board(s), b->thread, b->begin_ns);

	if (x != NULL)
		x->scalar[SCALAR_events_summed] += (double)b->n;
}

/* --- the file */

static void board_open(struct sorted *s)
{
	struct board *b = board(s);

	put_double(&b->event, EVENT_WALL_TIME, (double)(s->w->zero_ns) / 1e9);
	pb_string(&b->event, EVENT_FILE_VERSION, "brain.Event:2");
	put_record(s);
}

static void board_close(struct sorted *s)
{
	if (board(s)->steps == 0)
		s->r = err_set(s->w->l.e, -ENODATA,
			"it has no steps (scopes named `step`, `step N` or `ProfilerStep#N`), and "
			"TensorBoard shows a value a step");
}

int tensorboard_write(struct sqlite3 *db, int64_t id, const struct profile_select *s, FILE *to,
	struct export_left *ret_left, struct err *e)
{
	static const struct sorted_form form = {.open = board_open,
		.scope = board_scope,
		.scope_end = board_scope_end,
		.op = board_op,
		.burst = board_burst,
		.close = board_close};
	struct board b = {.open = NULL};
	int r;

	crc_init(b.crc);
	r = sorted_write(&form, &b, db, id, s, to, ret_left, e);
	name_set_fini(&b.names);
	text_fini(&b.event);
	text_fini(&b.summary);
	text_fini(&b.value);
	return r;
}
