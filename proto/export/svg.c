/* SPDX-License-Identifier: MIT. svg.c: the format svg: a flame graph, root on top, as a picture
 * that any browser, wiki or image viewer shows; a browser's own search finds names in it. Width is
 * GPU time if the session has any, else CPU time. No I/O. */
#include <stdlib.h>

#include "cost.h"
#include "export_format.h"
#include "svg_draw.h"

#define FRAME_LEAST 0.1 /* px; what is narrower is not drawn */
#define LABEL_LEAST 4.0 /* px */
#define LABEL_BYTES 256u
#define TITLE_BYTES 1024u
#define TOP         40u /* px above the first row */

struct writer {
	const struct profile *p;
	struct costs c;
	uint64_t *begin; /* [n_nodes]: cost before it, from the left */
	struct text out;
	uint32_t rows, thin;
};

static double wide(const struct writer *w, uint64_t cost)
{
	const uint64_t whole = w->c.all[0][w->c.main];

	return whole > 0 ? (double)cost / (double)whole * (SVG_WIDTH - 2 * SVG_MARGIN) : 0;
}

/* A parent's own cost is on its right, where nothing stands below it. */
static int place(struct writer *w)
{
	const enum cost k = w->c.main;
	uint64_t *next = calloc(w->p->n_nodes, sizeof(*next));
	uint32_t i, parent;

	w->begin = calloc(w->p->n_nodes, sizeof(*w->begin));
	if (next == NULL || w->begin == NULL) {
		free(next);
		return -ENOMEM;
	}
	for (i = 0; i < w->p->n_nodes; i++) {
		parent = w->p->node[i].parent;
		w->begin[i] = next[i] = i == 0 ? 0 : next[parent];
		if (i > 0)
			next[parent] += w->c.all[i][k];
		if (wide(w, w->c.all[i][k]) < FRAME_LEAST)
			w->thin += w->c.all[i][k] > 0;
		else if (w->p->node[i].depth >= w->rows)
			w->rows = w->p->node[i].depth + 1;
	}
	free(next);
	return 0;
}

static void put_label(struct writer *w, const char *name, double x, uint64_t y, double width)
{
	if (width < LABEL_LEAST)
		return;
	text_fmt(&w->out,
		"<svg x=\"%.2f\" y=\"%llu\" width=\"%.2f\" height=\"%u\"><text x=\"3\" y=\"12\">",
		x, (unsigned long long)y, width - 1, SVG_ROW - 1);
	svg_text(&w->out, name, LABEL_BYTES);
	text_str(&w->out, "</text></svg>");
}

static void put_frame(struct writer *w, uint32_t i)
{
	const struct profile_node *n = &w->p->node[i];
	const enum cost k = w->c.main;
	const double x = SVG_MARGIN + wide(w, w->begin[i]), width = wide(w, w->c.all[i][k]);
	const uint64_t y = TOP + (uint64_t)n->depth * SVG_ROW;

	if (width < FRAME_LEAST)
		return;
	text_str(&w->out, "<g><title>");
	svg_text(&w->out, n->name, TITLE_BYTES);
	text_char(&w->out, '\n');
	svg_time(&w->out, w->c.all[i][k]);
	text_str(&w->out, ", ");
	svg_share(&w->out, w->c.all[i][k], w->c.all[0][k]);
	if (w->c.self[i][k] < w->c.all[i][k] && w->c.self[i][k] > 0) {
		text_str(&w->out, ", by itself ");
		svg_time(&w->out, w->c.self[i][k]);
	}
	text_fmt(&w->out,
		"</title><rect x=\"%.2f\" y=\"%llu\" width=\"%.2f\" height=\"%u\" fill=\"", x,
		(unsigned long long)y, width > 0.6 ? width - 0.5 : width, SVG_ROW - 1);
	svg_colour(&w->out, n->name, w->c.self[i][COST_gpu_time] > 0);
	text_str(&w->out, "\"/>");
	put_label(w, n->name, x, y, width);
	text_str(&w->out, "</g>\n");
}

static int put_picture(struct writer *w)
{
	const enum cost k = w->c.main;
	struct text words = {0};
	char *s;

	svg_time(&words, w->c.all[0][k]);
	text_str(&words, cost_words(k));
	if (w->thin > 0)
		text_fmt(&words, "; %u narrower than 0.1 px not drawn", w->thin);
	if (text_take(&words, &s, &(size_t){0}) < 0)
		return -ENOMEM;
	svg_open(&w->out, w->p, s, TOP + (uint64_t)w->rows * SVG_ROW + SVG_MARGIN);
	free(s);
	if (w->c.all[0][k] == 0)
		text_fmt(&w->out, "<text x=\"%u\" y=\"%u\">nothing was timed</text>\n", SVG_MARGIN,
			TOP + 12);
	for (uint32_t i = 0; i < w->p->n_nodes; i++)
		put_frame(w, i);
	svg_close(&w->out);
	return 0;
}

int svg_write(const struct profile *p, char **ret_text, size_t *ret_bytes)
{
	struct writer w = {.p = p};
	int r = costs_new(p, &w.c);

	if (r == 0)
		r = place(&w);
	if (r == 0)
		r = put_picture(&w);
	if (r == 0)
		r = text_take(&w.out, ret_text, ret_bytes);
	text_fini(&w.out);
	costs_free(&w.c);
	free(w.begin);
	return r;
}
