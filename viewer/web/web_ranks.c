/* SPDX-License-Identifier: MIT. web_ranks.c: the processes of a session side by side. */
#include "name_set.h"
#include "ranks.h"
#include "web_ask.h"

static int read_ranks(void *arg, struct sqlite3 *db, int64_t id, const struct profile_select *s,
	struct export_left *ret_left, struct err *e)
{
	(void)s;
	(void)ret_left;
	return ranks_read(db, id, arg, e);
}

static void put_processes(struct text *t, const struct ranks *r)
{
	uint32_t i;

	json_in(t, "processes", '[');
	for (i = 0; i < r->n; i++) {
		json_open(t, '{');
		json_key_i64(t, "pid", r->process[i].pid);
		json_key(t, "rank");
		if (r->process[i].rank >= 0)
			text_fmt(t, "%lld", (long long)r->process[i].rank);
		else
			text_str(t, "null");
		json_key_f64(t, "total", (double)r->process[i].total_ns);
		json_close(t, '}');
	}
	json_close(t, ']');
}

/* Numbers of names from the outermost scope down. */
static void put_path(struct text *t, const struct ranks *r, uint32_t node, struct name_set *names)
{
	uint32_t up[PROFILE_DEPTH_MAX + 1], n = 0;

	for (; node != 0 && n <= PROFILE_DEPTH_MAX; node = r->p->node[node].parent)
		up[n++] = node;
	json_open(t, '[');
	while (n-- > 0)
		json_u64(t, name_set_add(names, r->p->node[up[n]].name));
	json_close(t, ']');
}

#define COLUMN(key, value)                            \
	do {                                          \
		json_in(t, key, '[');                 \
		for (i = 0; i < r->n_rows; i++)       \
			json_f64(t, (double)(value)); \
		json_close(t, ']');                   \
	} while (0)

static void put_rows(struct text *t, const struct ranks *r, struct name_set *names)
{
	uint32_t i, k;

	json_in(t, "column", '{');
	json_in(t, "path", '[');
	for (i = 0; i < r->n_rows; i++)
		put_path(t, r, r->row[i].node, names);
	json_close(t, ']');
	COLUMN("class", r->p->node[r->row[i].node].class);
	COLUMN("in", r->row[i].in);
	COLUMN("min", r->row[i].min_ns);
	COLUMN("median", r->row[i].median_ns);
	COLUMN("max", r->row[i].max_ns);
	COLUMN("slowest", r->row[i].slowest);
	json_close(t, '}');
	json_in(t, "values", '[');
	for (i = 0; i < r->n_rows; i++) {
		json_open(t, '[');
		for (k = 0; k < r->n; k++)
			json_f64(t, (double)r->ns[(size_t)r->row[i].node * r->n + k]);
		json_close(t, ']');
	}
	json_close(t, ']');
}

int web_ranks(struct web_ask *a)
{
	struct text *t = &a->to->body;
	struct name_set names = {0};
	struct ranks *ranks = NULL;
	int r = web_db(a, read_ranks, &ranks, NULL);

	if (r == 0)
		r = names_read(a->run->print.names, ranks->p);
	if (r == 0) {
		if (ranks->left_out > 0)
			warning_add(&a->run->warnings, "%u further processes are left out",
				ranks->left_out);
		text_char(t, '{');
		put_processes(t, ranks);
		json_key_str(t, "metric", cost_names[ranks->cost]);
		put_rows(t, ranks, &names);
		web_names(a, &names);
		web_warnings(a);
		text_char(t, '}');
	}
	name_set_fini(&names);
	ranks_free(ranks);
	return r;
}
