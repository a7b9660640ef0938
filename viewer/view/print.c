/* SPDX-License-Identifier: MIT. print.c: trees as screens: the head, the tree, the sorted list. */
#include "print.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "loss_terms.h"

void warning_add(struct warnings *w, const char *fmt, ...)
{
	va_list ap;
	size_t bytes;
	char *s;

	if (w->n == sizeof(w->text) / sizeof(w->text[0]))
		return;
	s = w->text[w->n++];
	va_start(ap, fmt);
	vsnprintf(s, sizeof(w->text[0]), fmt, ap);
	va_end(ap);
	for (; *s != '\0'; s += bytes) { /* an argument may be any bytes, and cut anywhere */
		bytes = json_utf8(s, strlen(s));
		if (bytes > 0)
			continue;
		*s = '?';
		bytes = 1;
	}
}

const char *class_word(uint8_t class)
{
	return gpu_classes[gpu_class_known(class)].word;
}

const char *kind_word(uint8_t kind)
{
	return kind < sizeof(node_kind_words) / sizeof(node_kind_words[0]) ? node_kind_words[kind]
									   : "other";
}

/* --- names */

#define NAME_COLUMNS_LEAST 24 /* what leads to it gives way */
#define NAME_COLUMNS_FLOOR 12 /* however little is left of the line */

void print_name(struct text *t, const char *name, size_t line, const struct print_options *o)
{
	const struct term *term = o->term;
	uint32_t room = 0, used;
	char buf[1024];

	if (term->width > 0 && !o->full) {
		used = term_line_width(t, line);
		room = used + NAME_COLUMNS_FLOOR < term->width ? term->width - used
							       : NAME_COLUMNS_FLOOR;
	}
	if (o->format != FRAME_FULL)
		name = frame_format(o->format, name, buf, sizeof(buf));
	term_name(term, t, names_show(o->names, name), room);
	text_char(t, '\n');
}

/* --- what the tree is worth */

static void head_devices(struct text *t, const struct profile *p, const struct term *term)
{
	double share, sum = 0;
	uint32_t i, same;

	for (i = 0; i < p->n_devices; i += same) {
		for (same = 1; i + same < p->n_devices; same++)
			if (strcmp(p->device[i].name, p->device[i + same].name) != 0)
				break;
		text_fmt(t, "  %u x ", same);
		term_name(term, t,
			p->device[i].name[0] != '\0' ? p->device[i].name : p->device[i].type, 0);
	}
	for (i = 0; i < p->n_devices; i++)
		sum += (double)p->device[i].busy_ns;
	if (sum <= 0 || p->head.duration_ns == 0)
		return; /* not known: a part of a session was asked for */
	share = sum / (double)p->head.duration_ns / p->n_devices * 100;
	text_fmt(t, "  GPU busy %.1f%% idle %.1f%%", share, 100 - share);
	if (p->n_devices == 1)
		return;
	for (i = 0; i < p->n_devices; i++) {
		text_str(t, i == 0 ? " (" : ", ");
		term_name(term, t, p->device[i].id, 0);
		text_fmt(t, " %.1f%%",
			(double)p->device[i].busy_ns / (double)p->head.duration_ns * 100);
	}
	text_char(t, ')');
}

/* A mean device's; nothing where one's is not known. */
static void head_parts(struct text *t, const struct profile *p, const struct term *term)
{
	static const char *const heads[PART_MAX] = {
#define X(name, column, head, words) head,
		GPU_PARTS(X)
#undef X
	};
	const size_t line = t->n;
	uint32_t i, k;

	for (i = 0; i < p->n_devices && p->device[i].has_parts; i++)
		;
	if (i == 0 || i < p->n_devices || p->head.duration_ns == 0)
		return;
	text_str(t, p->n_devices == 1 ? "GPU time:" : "GPUs' time:");
	for (k = 0; k < PART_MAX; k++) {
		double sum = 0;

		for (i = 0; i < p->n_devices; i++)
			sum += (double)p->device[i].part_ns[k];
		sum *= 100 / (double)p->head.duration_ns / p->n_devices;
		if (sum >= 0.05)
			text_fmt(t, "  %s %.1f%%", heads[k], sum);
	}
	term_wrap(term, t, line, 2);
	text_char(t, '\n');
}

static bool is_about(const struct profile_head *h)
{
	uint32_t i;

	for (i = 0; i < h->n_losses && !h->losses[i].about; i++)
		;
	return i < h->n_losses;
}

static const char *about_words(bool about)
{
	return about ? "about " : "";
}

static void head_worth(struct text *t, const struct profile *p, const struct term *term)
{
	const struct profile_head *h = &p->head;
	const uint64_t lost = profile_lost(h, false);

	if (h->launches > 0) {
		text_str(t, "  ");
		term_count(t, h->launches, "launch", "launches");
		text_fmt(t, ", %llu unmatched", (unsigned long long)h->unmatched);
	}
	text_str(t, "  ");
	term_style(term, t, lost > 0 ? STYLE_BAD : STYLE_PLAIN);
	text_fmt(t, "drops %s%llu", about_words(is_about(h)), (unsigned long long)lost);
	term_style(term, t, STYLE_PLAIN);
	if (!isnan(h->overhead))
		text_fmt(t, "  overhead %.2f%% of a core", h->overhead * 100);
	if (!isnan(h->recording_cost))
		text_fmt(t, ", %+.1f%% for a step recorded", h->recording_cost * 100);
}

bool overhead_read(const struct profile *p, struct overhead_sums *ret)
{
	const uint32_t m = profile_find_metric(p, "overhead_time (ns)");
	bool any = false;
	uint32_t i;
	double ns;

	*ret = (struct overhead_sums){0};
	for (i = 0; m != PROFILE_NONE && i < p->n_nodes; i++) {
		ns = value_number(profile_value(p, i, m));
		if (isnan(ns))
			continue;
		any = true;
		if (gpu_class_is_ours(p->node[i].class))
			ret->ours_ns += ns;
		else if (p->node[i].class == CLASS_OVERHEAD) /* a newer CUPTI's */
			ret->other_ns += ns;
		else
			ret->driver_ns += ns;
	}
	return any;
}

static void head_overhead(struct text *t, const struct profile *p)
{
	struct overhead_sums s;

	if (!overhead_read(p, &s))
		return;
	text_str(t, "overhead in calls: the driver ");
	term_duration(t, s.driver_ns);
	text_str(t, ", CUPTI ");
	term_duration(t, s.ours_ns);
	if (s.other_ns > 0) {
		text_str(t, ", of kinds not known ");
		term_duration(t, s.other_ns);
	}
	text_char(t, '\n');
}

static void head_losses(struct text *t, const struct profile *p, const struct term *term)
{
	const struct profile_head *h = &p->head;
	char before[48];
	uint32_t i;

	for (i = 0; i < h->n_losses; i++) {
		snprintf(before, sizeof(before),
			"dropped %s%llu: ", about_words(h->losses[i].about),
			(unsigned long long)h->losses[i].count);
		term_style(term, t, STYLE_BAD);
		print_words(t, term, before, loss_words(h->losses[i].cause));
		term_style(term, t, STYLE_PLAIN);
	}
}

/* Name, session and state stand; of the name as much as fits beside them. */
static void head_name(struct text *t, const struct profile *p, const struct term *term)
{
	const struct profile_head *h = &p->head;
	struct text more = {0};
	uint32_t room;

	text_fmt(&more, "  session %llu  ", (unsigned long long)h->id);
	term_name(term, &more, h->state, 0);
	text_str(&more, "  ");
	term_duration(&more, (double)h->duration_ns);
	room = term->width > more.n + 8 ? term->width - (uint32_t)more.n : 8;
	term_style(term, t, STYLE_BOLD);
	term_name(term, t, h->name, term->width > 0 ? room : 0);
	term_style(term, t, STYLE_PLAIN);
	text_add(t, more.s, more.n);
	t->failed |= more.failed;
	text_fini(&more);
}

void print_words(struct text *t, const struct term *term, const char *before, const char *words)
{
	const size_t from = t->n;

	text_str(t, before);
	term_name(term, t, words, 0);
	term_wrap(term, t, from, (uint32_t)strlen(before));
	text_char(t, '\n');
}

void print_grid(struct text *t, const struct term *term, struct grid *g)
{
	char words[sizeof(g->left) + 40];

	grid_print(t, term, g);
	if (g->left[0] == '\0')
		return;
	(void)snprintf(words, sizeof(words), "%s; COLUMNS=400 shows all", g->left);
	print_words(t, term, "not in this width: ", words);
}

void print_head(struct text *t, const struct profile *p, const struct term *term)
{
	const struct profile_head *h = &p->head;
	char source[48];
	size_t line = t->n;
	uint32_t i, used;

	if (h->uuid == NULL)
		return;
	head_name(t, p, term);
	used = term_line_width(t, line) + 2;
	if (term->width == 0 || used + 8 <= term->width) {
		text_str(t, "  ");
		term_name(term, t, h->command == NULL ? "" : h->command,
			term->width == 0 || term->width - used > 60 ? 60 : term->width - used);
	}
	text_char(t, '\n');
	line = t->n;
	term_count(t, h->n_processes, "process", "processes");
	if (h->ranked > 0 && h->rank_min == h->rank_max)
		text_fmt(t, ", rank %lld", (long long)h->rank_min);
	else if (h->ranked > 0)
		text_fmt(t, ", ranks %lld to %lld", (long long)h->rank_min, (long long)h->rank_max);
	if (h->ranked > 0 && h->ranked < h->world) /* of other hosts, or not recorded */
		text_fmt(t, ", %u of %lld ranks", h->ranked, (long long)h->world);
	head_devices(t, p, term);
	head_worth(t, p, term);
	term_wrap(term, t, line, 2);
	text_char(t, '\n');
	head_parts(t, p, term);
	head_overhead(t, p);
	print_steps(t, p, term);
	if (h->tags != NULL && *h->tags != '\0')
		print_words(t, term, "tags: ", h->tags);
	if (h->note != NULL && *h->note != '\0')
		print_words(t, term, "noted: ", h->note);
	head_losses(t, p, term);
	if (strcmp(h->source, "replay") == 0)
		print_words(t, term, "source=replay: ",
			"a recording was played back; no time here was measured on this machine");
	else if (strcmp(h->source, "live") != 0) {
		(void)snprintf(source, sizeof(source), "source=%s: ", h->source);
		print_words(t, term, source, "imported from another profiler's file");
	}
	for (i = 0; i < h->n_notes; i++)
		print_words(t, term, "note: ", h->notes[i]);
}

void print_why(struct text *t, const struct profile *p, const struct term *term)
{
	if (p->head.gpu_why != NULL)
		print_words(t, term, "no GPU data: ", p->head.gpu_why);
}

/* --- the table beside a tree */

#define GAP "  "

struct cells {
	const char *head;
	const double *v;    /* [n_nodes], NAN: none */
	const char *scaled; /* "FLOP": shown as "1.20 TFLOP"; NULL: as it is */
	bool whole;         /* nothing but whole numbers without a unit */
	bool is_change, is_percent;
	uint32_t width;
};

struct columns {
	const struct view *v;
	const struct diff *d; /* NULL: the view's own columns */
	double total;         /* of the first column */
	uint32_t metric;      /* of d: the one that is shown */
	uint32_t n_columns;
	struct cells col[VIEW_COLUMNS_MAX];
};

/* What a column counts, if people want that with a prefix. */
static const char *scale_of(const struct column *c)
{
	const bool is_share = strcmp(c->unit, "%") == 0;

	if (is_share || strncmp(c->name, "avg", 3) == 0)
		return NULL;
	if (strncmp(c->unit, "flop", 4) == 0)
		return "FLOP/s";
	if (strncmp(c->name, "flops", 5) == 0)
		return "FLOP";
	if (strcmp(c->unit, "byte/s") == 0)
		return "B/s";
	if (strcmp(c->unit, "bytes") == 0 || strcmp(c->unit, "B") == 0 ||
		strncmp(c->name, "bytes", 5) == 0 || strncmp(c->name, "copy_bytes", 10) == 0)
		return "B";
	return NULL;
}

/* width: at least, where that costs nothing. */
static void cell(struct text *t, const struct cells *c, double v, uint32_t width)
{
	if (c->is_percent) {
		text_fmt(t, "%+.1f%%", v);
		return;
	}
	if (c->scaled != NULL && isfinite(v)) {
		text_str(t, c->is_change && v >= 0 ? "+" : "");
		term_scaled(t, v, c->scaled);
		return;
	}
	if (c->is_change)
		text_fmt(t, "%+.*f", c->whole ? 0 : 3, v);
	else
		text_fixed(t, v, c->whole ? 0 : 3, width);
}

/* Why there is no number. */
static const char *no_cell(const struct columns *b, const struct cells *c, uint32_t node)
{
	if (!c->is_percent || b->d->side[node] == (SIDE_BEFORE | SIDE_AFTER))
		return "-";
	return b->d->side[node] == SIDE_AFTER ? "new" : "gone";
}

/* Moves what was written from `from` on, `used` columns, to the right end of its column. */
static void align_right(struct text *t, size_t from, uint32_t used, uint32_t width)
{
	const size_t n = t->n - from;
	const uint32_t pad = used < width ? width - used : 0;

	if (pad == 0 || text_reserve(t, pad) < 0)
		return;
	memmove(t->s + from + pad, t->s + from, n);
	memset(t->s + from, ' ', pad);
	t->n += pad;
}

static enum term_style cell_style(const struct columns *b, uint32_t c, uint32_t node)
{
	const struct column *metric = &b->v->col[b->metric];
	const double v = metric->v[node];

	if (b->d == NULL && c == 0)
		return term_heat(fabs(v / b->total));
	if (b->d == NULL || !b->col[c].is_change || v == 0 || isnan(v))
		return STYLE_FAINT;
	return (v > 0) == metric->more_is_better ? STYLE_MILD : STYLE_WARM;
}

static void table_row(
	struct text *t, const struct columns *b, uint32_t node, const struct term *term)
{
	const struct cells *c;
	size_t from;
	uint32_t i;

	for (i = 0; i < b->n_columns; i++) {
		c = &b->col[i];
		if (term->color)
			term_style(term, t, cell_style(b, i, node));
		from = t->n;
		if (isnan(c->v[node]))
			text_right(t, no_cell(b, c, node), c->width);
		else
			cell(t, c, c->v[node], c->width);
		if (t->n - from < c->width)
			align_right(t, from, (uint32_t)(t->n - from), c->width); /* all ASCII */
		term_style(term, t, STYLE_PLAIN);
		text_str(t, GAP);
	}
}

/* Proton's "(inc)" is for tables that other programs read: here it takes a third of the line. */
static void column_head(const struct term *term, struct text *t, const char *name)
{
	const size_t inc = strlen(" (inc)"), n = strlen(name);
	char head[160];

	snprintf(head, sizeof(head), "%.*s",
		(int)(n > inc && strcmp(name + n - inc, " (inc)") == 0 ? n - inc : n), name);
	term_name(term, t, head, 0);
}

static int measure(const struct columns *b, struct cells *c, const struct print_options *o)
{
	const struct profile *p = b->v->p;
	struct text longest = {0};
	double least = 0, most = 0;
	uint32_t i;

	column_head(o->term, &longest, c->head);
	c->width = term_line_width(&longest, 0);
	for (i = 0; i < p->n_nodes; i++) {
		if (!b->v->keep[i] || p->node[i].depth >= o->depth)
			continue;
		if (isnan(c->v[i])) {
			const size_t n = strlen(no_cell(b, c, i));

			c->width = n > c->width ? (uint32_t)n : c->width;
			continue;
		}
		if (c->scaled != NULL) {
			longest.n = 0;
			cell(&longest, c, c->v[i], 0);
			c->width = longest.n > c->width ? (uint32_t)longest.n : c->width;
			continue;
		}
		least = c->v[i] < least ? c->v[i] : least;
		most = c->v[i] > most ? c->v[i] : most;
		if (c->whole)
			c->whole = c->v[i] == nearbyint(c->v[i]);
	}
	for (i = 0; i < 2; i++) {
		longest.n = 0;
		cell(&longest, c, i == 0 ? least : most, 0);
		if (longest.n > c->width)
			c->width = (uint32_t)longest.n;
	}
	text_fini(&longest);
	return longest.failed ? -ENOMEM : 0;
}

static int table_head(struct text *t, struct columns *b, const struct print_options *o)
{
	uint32_t i;
	size_t from;
	int r;

	term_style(o->term, t, STYLE_FAINT);
	for (i = 0; i < b->n_columns; i++) {
		r = measure(b, &b->col[i], o);
		if (r < 0)
			return r;
		if (i > 0)
			text_str(t, GAP);
		from = t->n;
		column_head(o->term, t, b->col[i].head);
		align_right(t, from, term_line_width(t, from), b->col[i].width);
	}
	term_style(o->term, t, STYLE_PLAIN);
	text_char(t, '\n');
	return 0;
}

/* --- the tree */

struct glyphs {
	const char *child, *last, *down, *blank;
};

static const struct glyphs utf8_glyphs = {"├─ ", "└─ ", "│  ", "   "};
static const struct glyphs ascii_glyphs = {"|- ", "`- ", "|  ", "   "};

#define FLUSH_BYTES ((size_t)64 << 10)

struct tree_printer {
	const struct profile *p;
	const struct order *order;
	const struct print_options *o;
	const struct columns *table;
	struct text prefix;
	size_t length[PROFILE_DEPTH_MAX + 2]; /* of the prefix, by depth */
};

#define GLYPH_COLUMNS 3u

/* What leads to a deep node, less its outermost generations where the line has no room for them. */
static void put_prefix(struct text *t, const struct tree_printer *w, uint32_t used, uint32_t depth)
{
	const uint32_t width = w->o->term->width, least = NAME_COLUMNS_LEAST + GLYPH_COLUMNS;
	const uint32_t room = width > used + least ? (width - used - least) / GLYPH_COLUMNS : 1;
	const uint32_t has = depth > 0 ? depth - 1 : 0;
	uint32_t skip = width == 0 || has <= room ? 0 : has - room + 1;

	if (skip > 0)
		text_str(t, w->o->term->utf8 ? "…  " : "~  ");
	text_add(t, w->prefix.s + w->length[skip + 1], w->prefix.n - w->length[skip + 1]);
}

static void print_node(struct text *t, struct tree_printer *w, uint32_t node, uint32_t depth)
{
	const struct glyphs *g = w->o->term->utf8 ? &utf8_glyphs : &ascii_glyphs;
	bool last = w->order->next[node] == PROFILE_NONE;
	size_t line = t->n;

	if (line >= FLUSH_BYTES && w->o->flush != NULL) {
		w->o->flush(w->o->flush_arg, t);
		line = t->n;
	}
	table_row(t, w->table, node, w->o->term);
	w->prefix.n = w->length[depth];
	put_prefix(t, w, w->o->term->width > 0 ? term_line_width(t, line) : 0, depth);
	if (depth > 0) {
		text_str(t, last ? g->last : g->child);
		text_str(&w->prefix, last ? g->blank : g->down);
	}
	w->length[depth + 1] = w->prefix.n;
	print_name(t, w->p->node[node].name, line, w->o);
}

static void print_nodes(struct text *t, struct tree_printer *w)
{
	uint32_t at = 0, depth = 0;

	if (w->o->depth == 0 || w->order->first[0] == ORDER_DROPPED)
		return;
	print_node(t, w, 0, 0);
	for (;;) {
		if (depth + 1 < w->o->depth && w->order->first[at] != PROFILE_NONE) {
			at = w->order->first[at];
			print_node(t, w, at, ++depth);
			continue;
		}
		while (at != 0 && w->order->next[at] == PROFILE_NONE) {
			at = w->p->node[at].parent;
			depth--;
		}
		if (at == 0)
			return;
		at = w->order->next[at];
		print_node(t, w, at, depth);
	}
}

static int print_table(struct text *t, struct columns *b, const struct print_options *o)
{
	struct tree_printer *w = calloc(1, sizeof(*w));
	struct order *order = NULL;
	int r = w == NULL ? -ENOMEM : order_new(b->v, o->sort, &order);

	if (r == 0)
		r = table_head(t, b, o);
	if (r == 0) {
		*w = (struct tree_printer){.p = b->v->p, .order = order, .o = o, .table = b};
		if (text_reserve(&w->prefix, (PROFILE_DEPTH_MAX + 2) * 8) == 0)
			print_nodes(t, w);
		text_fini(&w->prefix);
	}
	order_free(order);
	free(w);
	return r;
}

int print_tree(struct text *t, const struct view *v, const struct print_options *o)
{
	struct columns b = {.v = v, .n_columns = v->n_columns, .total = view_total(v, 0)};
	uint32_t i;

	for (i = 0; i < v->n_columns; i++)
		b.col[i] = (struct cells){.head = v->col[i].name,
			.v = v->col[i].v,
			.scaled = scale_of(&v->col[i]),
			.whole = v->col[i].unit[0] == '\0'};
	return print_table(t, &b, o);
}

/* --- differences */

/* "8192.000 -> 9999.000  +1807.000", each as its column has it. */
static void print_totals(struct text *t, const struct cells column[3], double before, double after)
{
	const double v[3] = {before, after, after - before};
	static const char *const gaps[3] = {"  ", " -> ", "  "};
	const bool whole = before == nearbyint(before) && after == nearbyint(after);
	uint32_t i;

	for (i = 0; i < 3; i++) {
		struct cells c = column[i];

		c.whole &= whole;
		text_str(t, gaps[i]);
		cell(t, &c, v[i], 0);
	}
}

/* The totals, and of each node this metric on both sides. */
static int print_change(
	struct text *t, const struct diff *d, uint32_t metric, const struct print_options *o)
{
	const struct column *it = &d->view->col[metric];
	const double *before = d->before[metric], *after = d->after[metric];
	const double b = d->before_total[metric], a = d->after_total[metric];
	const bool whole = it->unit[0] == '\0';
	/* util is a share, of which there is no sum. */
	const bool has_total = !isnan(a - b) && (it->inclusive || !it->more_is_better);
	const char *scaled = scale_of(it);
	double *percent = malloc(d->p->n_nodes * sizeof(*percent));
	struct columns table = {.v = d->view,
		.d = d,
		.metric = metric,
		.n_columns = 4,
		.col = {{.head = "before", .v = before, .scaled = scaled, .whole = whole},
			{.head = "after", .v = after, .scaled = scaled, .whole = whole},
			{.head = "change",
				.v = it->v,
				.scaled = scaled,
				.whole = whole,
				.is_change = true},
			{.head = "%", .v = percent, .is_change = true, .is_percent = true}}};
	uint32_t i;
	int r;

	if (percent == NULL)
		return -ENOMEM;
	for (i = 0; i < d->p->n_nodes; i++)
		percent[i] = diff_percent(before[i], after[i]);
	column_head(o->term, t, it->name);
	if (has_total)
		print_totals(t, table.col, b, a);
	if (has_total && !isnan(diff_percent(b, a)))
		text_fmt(t, "  %+.1f%%", diff_percent(b, a));
	text_char(t, '\n');
	r = print_table(t, &table, o);
	free(percent);
	return r;
}

int print_diff(struct text *t, const struct diff *d, uint32_t n, const struct print_options *o)
{
	uint32_t i;
	int r = 0;

	for (i = 0; r == 0 && i < n; i++) {
		if (i > 0)
			text_char(t, '\n');
		r = print_change(t, d, i, o);
	}
	return r;
}

/* --- sorted */

/* Python's format(v, ".4"): four digits, fixed below 1000 and with at least one decimal. */
static void python_g4(struct text *t, double v)
{
	char buf[32];
	char *dot, *end;

	if (!isfinite(v)) {
		text_str(t, isnan(v) ? "-" : v > 0 ? "inf" : "-inf");
		return;
	}
	snprintf(buf, sizeof(buf), "%.3e", v);
	end = strchr(buf, 'e');
	if (v != 0 && (strtol(end + 1, NULL, 10) >= 3 || strtol(end + 1, NULL, 10) < -4)) {
		for (dot = end; dot[-1] == '0'; dot--)
			;
		text_add(t, buf, (size_t)((dot[-1] == '.' ? dot - 1 : dot) - buf));
		text_str(t, end);
		return;
	}
	snprintf(buf, sizeof(buf), "%.4g", v);
	text_str(t, buf);
	if (strchr(buf, '.') == NULL)
		text_str(t, ".0");
}

#define SORTED_COLUMNS 100

/* As Proton does: the first hundred characters, then dots. */
static void sorted_name(struct text *t, const char *node_name, const struct print_options *o)
{
	char buf[1024];
	const char *name =
		names_show(o->names, frame_format(o->format, node_name, buf, sizeof(buf)));
	struct text shown = {0};
	size_t chars = 0, bytes = 0;

	while (name[bytes] != '\0' && (chars < SORTED_COLUMNS || o->full)) {
		for (bytes++; ((unsigned char)name[bytes] & 0xc0) == 0x80; bytes++)
			;
		chars++;
	}
	text_add(&shown, name, bytes);
	text_str(&shown, name[bytes] != '\0' ? "..." : "");
	text_char(&shown, '\0');
	if (shown.failed) {
		t->failed = true;
		return;
	}
	term_name(o->term, t, shown.s, 0);
	text_fini(&shown);
	for (chars += name[bytes] != '\0' ? 3 : 0; chars < SORTED_COLUMNS + 5; chars++)
		text_char(t, ' ');
	text_char(t, ' ');
}

int print_sorted(struct text *t, const struct view *v, const struct print_options *o)
{
	uint32_t n, shown = 0, i, *row = order_by_value(v, &n);

	if (row == NULL)
		return -ENOMEM;
	text_str(t, "Sorted kernels by metric ");
	term_name(o->term, t, v->col[0].name, 0);
	text_char(t, '\n');
	for (i = 0; i < n && (o->rows == 0 || shown < o->rows); i++) {
		if (row[i] == 0)
			continue; /* ROOT is no kernel */
		sorted_name(t, v->p->node[row[i]].name, o);
		python_g4(t, v->col[0].v[row[i]]);
		text_char(t, '\n');
		shown++;
	}
	free(row);
	return 0;
}

/* --- metrics */

void print_metrics(struct text *t, const struct profile *p, const struct term *term)
{
	const char *shape;
	char bare[256];
	uint32_t pass, i;

	for (pass = 0; pass < 2; pass++) {
		text_str(t, pass == 0 ? "Available inclusive metrics:\n"
				      : "Available exclusive metrics:\n");
		for (i = 0; i < p->n_metrics; i++) {
			if ((p->metric[i].kind == KIND_INCLUSIVE) != (pass == 0))
				continue;
			shape = metric_shape(p, i);
			metric_bare(p->metric[i].name, bare, sizeof(bare));
			text_str(t, "- ");
			term_name(term, t, bare, 0);
			if (strcmp(shape, "number") != 0)
				text_fmt(t, " (%s, not for -m)", shape);
			text_str(t, "\n");
		}
	}
}
