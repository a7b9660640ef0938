/* SPDX-License-Identifier: MIT. web_ops.c: a row for each name that ran, or kind of work, as
 * `protonview flat` has it, in columns. */
#include <stddef.h>
#include <string.h>

#include "family.h"
#include "name_set.h"
#include "print_json.h"
#include "web_ask.h"

static void put_numbers(struct text *t, const char *name, const struct flat *f, size_t at)
{
	uint32_t i;
	double v;

	json_in(t, name, '[');
	for (i = 0; i < f->n; i++) {
		memcpy(&v, (const char *)&f->row[i] + at, sizeof(v));
		json_f64(t, v);
	}
	json_close(t, ']');
}

/* One number of a configuration; null where none is known. */
static void put_config(struct text *t, const char *name, const struct flat *f, size_t at)
{
	uint32_t i, v;

	json_in(t, name, '[');
	for (i = 0; i < f->n; i++) {
		json_next(t);
		if (f->row[i].config == NULL) {
			text_str(t, "null");
			continue;
		}
		memcpy(&v, (const char *)f->row[i].config + at, sizeof(v));
		text_fmt(t, "%u", v);
	}
	json_close(t, ']');
}

/* clang-format off */
#define NUMBERS(X) /* column, member of struct flat_row */ \
	X(count, count) X(total, sum_ns) X(self, self_ns) X(share, share) \
	X(avg, avg_ns) X(min, min_ns) X(p50, p50_ns) X(p99, p99_ns) X(max, max_ns)
#define CONFIGS(X) /* column, member of struct profile_config */ \
	X(grid_x, grid[0]) X(grid_y, grid[1]) X(grid_z, grid[2]) \
	X(block_x, block[0]) X(block_y, block[1]) X(block_z, block[2]) \
	X(registers, registers) X(static_shared, static_shared) X(dynamic_shared, dynamic_shared)
/* clang-format on */

/* [[from, …, to], [count, …]] of each row; null: not known. */
static void put_bars(struct text *t, const struct flat *f)
{
	const struct flat_bars *b;
	uint32_t i, k;

	json_in(t, "hist", '[');
	for (i = 0; i < f->n; i++) {
		b = f->row[i].bars;
		if (b == NULL) {
			json_str(t, NULL);
			continue;
		}
		json_open(t, '[');
		json_open(t, '[');
		for (k = 0; k <= b->n; k++)
			json_f64(t, b->from_ns[k]);
		json_close(t, ']');
		json_open(t, '[');
		for (k = 0; k < b->n; k++)
			json_f64(t, (double)b->count[k]);
		json_close(t, ']');
		json_close(t, ']');
	}
	json_close(t, ']');
}

static const char *family_in(const struct flat *f, const struct flat_row *r)
{
	return f->by == FLAT_BY_name     ? family_of(r->name, r->class)
	       : f->by == FLAT_BY_family ? r->name
					 : "";
}

static int put_columns(struct text *t, const struct flat *f, struct name_set *names)
{
	uint32_t i;

	json_in(t, "column", '{');
	json_in(t, "name", '[');
	for (i = 0; i < f->n; i++)
		json_u64(t, name_set_add(names, f->row[i].name));
	json_close(t, ']');
	json_in(t, "class", '[');
	for (i = 0; i < f->n; i++)
		json_str(t, class_word(f->row[i].class));
	json_close(t, ']');
	json_in(t, "family", '[');
	for (i = 0; i < f->n; i++)
		json_str(t, family_in(f, &f->row[i]));
	json_close(t, ']');
	json_in(t, "names", '[');
	for (i = 0; i < f->n; i++)
		json_u64(t, f->row[i].names);
	json_close(t, ']');
	json_in(t, "paths", '[');
	for (i = 0; i < f->n; i++)
		json_u64(t, f->row[i].paths);
	json_close(t, ']');
	json_in(t, "configs", '[');
	for (i = 0; i < f->n; i++)
		json_u64(t, f->row[i].configs);
	json_close(t, ']');
#define X(column, member) put_numbers(t, #column, f, offsetof(struct flat_row, member));
	NUMBERS(X)
#undef X
#define X(column, member) put_config(t, #column, f, offsetof(struct profile_config, member));
	CONFIGS(X)
#undef X
	put_bars(t, f);
	json_close(t, '}');
	return names->n == f->n ? 0 : -ENOMEM;
}

int web_ops(struct web_ask *a)
{
	static const struct flat none;
	struct text *t = &a->to->body;
	struct name_set names = {0};
	const struct profile *p;
	struct flat *f = NULL;
	struct view *v = NULL;
	const char *word = web_query_get(&a->q, "by");
	const int by = flat_by(word != NULL ? word : "name");
	int r = by < 0 ? err_set(&a->run->e, by, "by is one of " FLAT_BY_WORDS)
		       : web_profile(a, &p);

	if (r < 0)
		return r;
	r = run_view(a->run, p, flat_metrics(p), &v);
	if (r == 0)
		r = flat_new(v, (enum flat_by)by, &f);
	if (r == 0 || r == -ENODATA) {
		text_char(t, '{');
		json_key_bool(t, "is_cpu", f != NULL && f->is_cpu);
		json_key_f64(t, "total", f != NULL ? f->total_ns : 0);
		json_key_str(t, "accuracy", f != NULL && f->has_hist ? flat_accuracy(f) : NULL);
		r = put_columns(t, f != NULL ? f : &none, &names);
		web_names(a, &names);
		web_warnings(a);
		text_char(t, '}');
	}
	name_set_fini(&names);
	flat_free(f);
	view_free(v);
	return r;
}
