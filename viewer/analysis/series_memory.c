/* SPDX-License-Identifier: MIT. series_memory.c: what is held of memory, as series: a curve for each device and kind. */
#include <errno.h>
#include <stdio.h>

#include "holder_rows.h"
#include "series.h"
#include "table.h"

struct adding {
	struct series *s;
	struct series_one *one;
	int64_t base_ns;
	uint32_t room;
	struct err *e;
};

static int no_memory(struct adding *a)
{
	return err_set(a->e, -ENOMEM, "out of memory");
}

static int add_value(void *arg, uint64_t begin_ns, uint64_t end_ns, uint64_t bytes)
{
	struct adding *a = arg;
	struct series_one *one = a->one;

	(void)end_ns;
	if (!ROOM_FOR(one->point, a->room, one->n))
		return no_memory(a);
	one->told++;
	one->point[one->n++] = (struct series_point){
		(int64_t)begin_ns > a->base_ns ? begin_ns - (uint64_t)a->base_ns : 0,
		(double)bytes};
	return 0;
}

static int add_process(void *arg, const struct holder_row *row)
{
	struct adding *a = arg;
	struct series *s = a->s;
	char name[64], device[16];
	uint32_t i;
	int n, r = 0;

	for (i = 0; i < row->h->n_accounts && r == 0; i++) {
		if (s->n == SERIES_MAX) {
			s->left_out++;
			continue;
		}
		if (!ROOM_FOR(s->one, s->cap, s->n))
			return no_memory(a);
		holder_device(row->h->account[i], device);
		n = snprintf(name, sizeof(name), "%s %s memory (bytes)", device,
			held_kind_words[row->h->account[i]->kind]);
		s->one[s->n] = (struct series_one){.name = profile_text(s->texts, name, (size_t)n),
			.pid = row->pid,
			.rank = row->rank};
		if (s->one[s->n].name == NULL)
			return no_memory(a);
		a->one = &s->one[s->n++];
		a->room = 0;
		r = holder_values(row->h->account[i], add_value, a);
	}
	return r;
}

int series_memory(struct series *s, struct sqlite3 *db, int64_t id, const char *process,
	int64_t base_ns, struct err *e)
{
	struct adding a = {.s = s, .base_ns = base_ns != 0 ? base_ns : series_base(db, id), .e = e};

	return holder_each(db, id, process, add_process, &a, e);
}
