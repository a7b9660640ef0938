/* SPDX-License-Identifier: MIT. web_memory.c: who holds memory: curves, and owners, of each account. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_terms.h"
#include "holding.h"
#include "web_ask.h"

#define OWNERS 300u /* of an account: those with the most at the peak */
#define LINES  7u   /* of them with a curve */

struct answer {
	struct text *t;
	bool failed;
};

struct who {
	uint32_t owner;
	uint64_t peak, most, seen; /* seen: the most of its frames */
};

static int by_peak(const void *a, const void *b)
{
	const struct who *x = a, *y = b;

	if (x->peak != y->peak)
		return x->peak < y->peak ? 1 : -1;
	if (x->most != y->most)
		return x->most < y->most ? 1 : -1;
	return x->owner < y->owner ? -1 : x->owner > y->owner;
}

static int by_seen(const void *a, const void *b)
{
	const struct who *x = a, *y = b;

	return x->seen != y->seen ? (x->seen < y->seen ? 1 : -1) : by_peak(a, b);
}

static double at(const struct holding *x, uint64_t ns)
{
	return (int64_t)ns > x->row.base_ns ? (double)(ns - (uint64_t)x->row.base_ns) : 0;
}

struct curve {
	const struct holding *x;
	struct text *t;
};

static int put_time(void *arg, uint64_t begin_ns, uint64_t end_ns, uint64_t bytes)
{
	const struct curve *p = arg;

	(void)end_ns;
	(void)bytes;
	json_f64(p->t, at(p->x, begin_ns));
	return 0;
}

static int put_bytes(void *arg, uint64_t begin_ns, uint64_t end_ns, uint64_t bytes)
{
	const struct curve *p = arg;

	(void)begin_ns;
	(void)end_ns;
	json_u64(p->t, bytes);
	return 0;
}

static void put_curve(struct text *t, const struct holding *x, const struct held_account *a)
{
	struct curve p = {x, t};

	json_in(t, "t", '[');
	(void)holder_values(a, put_time, &p);
	json_close(t, ']');
	json_in(t, "v", '[');
	(void)holder_values(a, put_bytes, &p);
	json_close(t, ']');
}

static uint64_t in_frame(const struct held_frame *f, uint32_t owner)
{
	uint32_t i;

	for (i = 0; i < f->n; i++)
		if (f->owner[i] == owner)
			return f->live[i];
	return 0;
}

/* Of the account; the caller frees. */
static struct who *who_of(const struct holding *x, uint32_t account, uint32_t *ret_n)
{
	const struct held_account *a = x->h->account[account];
	struct who *w = calloc(x->h->n_owners + 1, sizeof(*w));
	uint32_t i, k;

	*ret_n = 0;
	for (i = 0; w != NULL && i < x->h->n_owners; i++) {
		const struct held_owner *o = &x->h->owner[i];
		struct who *one = &w[*ret_n];

		if (o->account != account || o->most == 0)
			continue;
		*one = (struct who){i, held_at_peak(x->h, o), o->most, 0};
		for (k = 0; k < a->n_frames; k++) {
			const uint64_t live = in_frame(&a->frame[k], i);

			one->seen = live > one->seen ? live : one->seen;
		}
		++*ret_n;
	}
	return w;
}

/* [path, now, blocks, peak, most] each. */
static void put_owners(struct text *t, const struct holding *x, const struct who *w, uint32_t n)
{
	uint32_t i;

	json_in(t, "owners", '[');
	for (i = 0; i < n && i < OWNERS; i++) {
		const struct held_owner *o = &x->h->owner[w[i].owner];

		json_open(t, '[');
		json_str(t, x->scope[w[i].owner]);
		json_u64(t, o->live);
		json_u64(t, o->blocks);
		json_u64(t, w[i].peak);
		json_u64(t, w[i].most);
		json_close(t, ']');
	}
	json_close(t, ']');
}

/* Who held the most, at instants. */
static void put_lines(struct text *t, const struct holding *x, const struct held_account *a,
	const struct who *w, uint32_t n)
{
	uint32_t i, k;

	json_in(t, "at", '[');
	for (k = 0; k < a->n_frames; k++)
		json_f64(t, at(x, a->frame[k].ns));
	json_close(t, ']');
	json_in(t, "lines", '[');
	for (i = 0; i < n && i < LINES && w[i].seen > 0; i++) {
		json_open(t, '{');
		json_key_str(t, "path", x->scope[w[i].owner]);
		json_in(t, "v", '[');
		for (k = 0; k < a->n_frames; k++)
			json_u64(t, in_frame(&a->frame[k], w[i].owner));
		json_close(t, ']');
		json_close(t, '}');
	}
	json_close(t, ']');
}

static void put_account(struct answer *to, const struct holding *x, uint32_t account)
{
	const struct held_account *a = x->h->account[account];
	struct text *t = to->t;
	char device[16];
	uint32_t n;
	struct who *w = who_of(x, account, &n);

	to->failed |= w == NULL;
	holder_device(a, device);
	json_open(t, '{');
	json_key_i64(t, "process", x->row.pid);
	json_key_i64(t, "rank", x->row.rank);
	json_key_str(t, "device", device);
	json_key_str(t, "kind", held_kind_words[a->kind]);
	json_key_u64(t, "now", a->live);
	json_key_u64(t, "blocks", a->blocks);
	json_key_u64(t, "peak", a->peak);
	json_key_f64(t, "peak_t", at(x, a->peak_ns));
	json_key_u64(t, "allocs", a->allocs);
	json_key_u64(t, "frees", a->frees);
	put_curve(t, x, a);
	if (w != NULL && n > 1)
		qsort(w, n, sizeof(*w), by_peak);
	put_owners(t, x, w, held_is_sum(a->kind) ? 0 : n);
	if (w != NULL && n > 1)
		qsort(w, n, sizeof(*w), by_seen);
	put_lines(t, x, a, w, held_is_sum(a->kind) ? 0 : n);
	json_close(t, '}');
	free(w);
}

static int on_process(void *arg, const struct holding *x)
{
	struct answer *to = arg;
	uint32_t i;

	for (i = 0; i < x->h->n_accounts; i++)
		if (x->h->account[i]->n_points > 0)
			put_account(to, x, i);
	return 0;
}

static int read_memory(void *arg, struct sqlite3 *db, int64_t id, const struct profile_select *s,
	struct export_left *ret_left, struct err *e)
{
	(void)ret_left;
	return holding_each(db, id, s->process, on_process, arg, e);
}

int web_memory(struct web_ask *a)
{
	struct answer to = {.t = &a->to->body};
	int r;

	text_char(to.t, '{');
	json_in(to.t, "accounts", '[');
	r = web_db(a, read_memory, &to, NULL);
	if (r == -ENODATA) { /* a .hatchet file has none */
		a->run->e = (struct err){0};
		r = 0;
	}
	json_close(to.t, ']');
	text_char(to.t, '}');
	return to.failed ? -ENOMEM : r;
}
