/* SPDX-License-Identifier: MIT. svg_bars.c: the format svg_bars: what took longest by itself, a bar
 * a name, as a picture: of kernels, copies and memsets if the session has any, else of scopes. No
 * I/O. */
#include <stdlib.h>

#include "cost.h"
#include "export_format.h"
#include "name_set.h"
#include "svg_draw.h"

#define BARS        40u
#define TOP         44u
#define BAR_LEFT    460u
#define BAR_WIDTH   500u
#define LABEL_BYTES 56u

struct bar {
	uint32_t node; /* the first of the name */
	uint64_t ns, count;
};

struct writer {
	const struct profile *p;
	struct costs c;
	struct name_set names;
	struct bar *bar;
	uint32_t cap;
	struct text out;
};

static int by_time(const void *a, const void *b)
{
	const struct bar *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns < y->ns ? 1 : -1;
	return x->node < y->node ? -1 : x->node > y->node;
}

static int collect(struct writer *w)
{
	const enum cost k = w->c.main, how_often = k == COST_gpu_time   ? COST_count
						   : k == COST_cpu_time ? COST_calls
									: COST_cpu_samples;
	uint32_t i, at, before;

	for (i = 0; i < w->p->n_nodes; i++) {
		if (w->c.self[i][k] == 0)
			continue;
		before = w->names.n;
		at = name_set_add(&w->names, w->p->node[i].name);
		if (at == TABLE_NONE || !ZEROED_FOR(w->bar, w->cap, w->names.n))
			return -ENOMEM;
		if (w->names.n > before)
			w->bar[at].node = i;
		w->bar[at].ns += w->c.self[i][k];
		w->bar[at].count += w->c.self[i][how_often];
	}
	if (w->names.n > 1)
		qsort(w->bar, w->names.n, sizeof(*w->bar), by_time);
	return 0;
}

static void put_bar(struct writer *w, uint32_t i)
{
	const struct bar *b = &w->bar[i];
	const struct profile_node *n = &w->p->node[b->node];
	const uint32_t y = TOP + i * SVG_ROW;
	const double width = (double)b->ns / (double)w->bar[0].ns * BAR_WIDTH;

	text_str(&w->out, "<g><title>");
	svg_text(&w->out, n->name, 1024);
	text_fmt(&w->out, "</title><text x=\"%u\" y=\"%u\" text-anchor=\"end\">", BAR_LEFT - 8,
		y + 12);
	svg_text(&w->out, n->name, LABEL_BYTES);
	text_fmt(&w->out,
		"</text><rect x=\"%u\" y=\"%u\" width=\"%.2f\" height=\"%u\" rx=\"2\" fill=\"",
		BAR_LEFT, y + 1, width < 1 ? 1 : width, SVG_ROW - 4);
	svg_colour(&w->out, n->name, w->c.main == COST_gpu_time);
	text_fmt(&w->out, "\"/><text x=\"%.2f\" y=\"%u\">", BAR_LEFT + width + 8, y + 12);
	svg_time(&w->out, b->ns);
	text_str(&w->out, "<tspan class=\"n\" dx=\"8\">");
	svg_share(&w->out, b->ns, w->c.all[0][w->c.main]);
	text_fmt(&w->out, ", %llu \xc3\x97</tspan></text></g>\n", (unsigned long long)b->count);
}

static int put_picture(struct writer *w)
{
	const uint32_t n = w->names.n < BARS ? w->names.n : BARS;
	struct text words = {0};
	char *s;

	text_fmt(&words, "what took longest by itself, %u of %u names; the whole is ", n,
		w->names.n);
	svg_time(&words, w->c.all[0][w->c.main]);
	text_str(&words, cost_words(w->c.main));
	if (text_take(&words, &s, &(size_t){0}) < 0)
		return -ENOMEM;
	svg_open(&w->out, w->p, s, TOP + (uint64_t)(n > 0 ? n : 1) * SVG_ROW + SVG_MARGIN);
	free(s);
	if (n == 0)
		text_fmt(&w->out, "<text x=\"%u\" y=\"%u\">nothing was timed</text>\n", SVG_MARGIN,
			TOP + 12);
	for (uint32_t i = 0; i < n; i++)
		put_bar(w, i);
	svg_close(&w->out);
	return 0;
}

int svg_bars_write(const struct profile *p, char **ret_text, size_t *ret_bytes)
{
	struct writer w = {.p = p};
	int r = costs_new(p, &w.c);

	if (r == 0)
		r = collect(&w);
	if (r == 0)
		r = put_picture(&w);
	if (r == 0)
		r = text_take(&w.out, ret_text, ret_bytes);
	text_fini(&w.out);
	costs_free(&w.c);
	name_set_fini(&w.names);
	free(w.bar);
	return r;
}
