/* SPDX-License-Identifier: MIT. web_steps.c: a session's steps in columns. */
#include <malloc.h>
#include <stddef.h>
#include <string.h>

#include "steps.h"
#include "web_ask.h"

static int read_steps(void *arg, struct sqlite3 *db, int64_t id, const struct profile_select *s,
	struct export_left *ret_left, struct err *e)
{
	return steps_read(db, id, s, ret_left, arg, e);
}

/* clang-format off */
#define STEP_COLUMNS(X) /* column, of a struct step */               \
	X(process, s->process)        X(step, s->number)                 \
	X(tid, s->tid)                X(start, s->begin_ns)              \
	X(duration, s->end_ns - s->begin_ns)                             \
	X(gpu_busy, BUSY(s))          X(compute, PART(COMPUTE))          \
	X(comm, PART(COMM))           X(copy, PART(COPY))                \
	X(idle_launch, PART(LAUNCH))  X(idle_gap, PART(GAP))             \
	X(idle_queued, PART(QUEUED))  X(idle_unknown, PART(UNKNOWN))     \
	X(idle_host, PART(HOST))      X(ops, s->ops)
#define PART(name) s->part_ns[PART_##name]
#define BUSY(s) (PART(COMPUTE) + PART(COMM) + PART(COPY))
/* clang-format on */

static void put_processes(struct text *t, const struct steps *steps)
{
	uint32_t i;

	json_in(t, "processes", '[');
	for (i = 0; i < steps->n_processes; i++) {
		json_open(t, '{');
		json_key_i64(t, "pid", steps->process[i].pid);
		json_key(t, "rank");
		if (steps->process[i].rank >= 0)
			text_fmt(t, "%lld", (long long)steps->process[i].rank);
		else
			text_str(t, "null");
		json_close(t, '}');
	}
	json_close(t, ']');
}

static void put_columns(struct text *t, const struct steps *steps)
{
	const struct step *s;
	uint32_t i, k;

	json_in(t, "column", '{');
#define X(name, value)                                         \
	json_in(t, #name, '[');                                \
	for (s = steps->step; s < steps->step + steps->n; s++) \
		json_u64(t, (value));                          \
	json_close(t, ']');
	STEP_COLUMNS(X)
#undef X
	json_close(t, '}');
	json_in(t, "values", '[');
	for (k = 0; k < steps->n_values; k++) {
		json_open(t, '{');
		json_key_str(t, "name", steps->value_name[k]);
		json_in(t, "v", '[');
		for (i = 0; i < steps->n; i++)
			json_f64(t, steps->value[k][i]);
		json_close(t, ']');
		json_close(t, '}');
	}
	json_close(t, ']');
}

int web_steps(struct web_ask *a)
{
	struct text *t = &a->to->body;
	struct steps *steps;
	uint32_t i, cut = 0;
	int r;

	web_alone(a);
	r = web_db(a, read_steps, &steps, NULL);
	(void)malloc_trim(0);
	if (r < 0)
		return r;
	if (steps->left_out > 0)
		warning_add(&a->run->warnings, "%u steps more are left out", steps->left_out);
	for (i = 0; i < steps->n; i++)
		cut += steps->step[i].cut;
	if (cut > 0)
		warning_add(&a->run->warnings,
			"%u step%s began before the session, or did not end: nobody knows how long",
			cut, cut == 1 ? "" : "s");
	text_char(t, '{');
	put_processes(t, steps);
	put_columns(t, steps);
	web_warnings(a);
	text_char(t, '}');
	steps_free(steps);
	return 0;
}
