/* SPDX-License-Identifier: MIT. print.c: trees as screens: the head, the tree, the sorted list. */
#include "print.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "order.h"

void warning_add(struct warnings *w, const char *fmt, ...)
{
	va_list ap;

	if (w->n == sizeof(w->text) / sizeof(w->text[0]))
		return;
	va_start(ap, fmt);
	(void)vsnprintf(w->text[w->n++], sizeof(w->text[0]), fmt, ap);
	va_end(ap);
}

const char *class_word(uint8_t class)
{
	static const char *const words[CLASS_MAX] = {[CLASS_CPU] = "cpu",
		[CLASS_COMPUTE] = "compute",
		[CLASS_COMM] = "comm",
		[CLASS_H2D] = "h2d",
		[CLASS_D2H] = "d2h",
		[CLASS_D2D] = "d2d",
		[CLASS_P2P] = "p2p",
		[CLASS_MEMSET] = "memset",
		[CLASS_OTHER] = "other"};

	return class < CLASS_MAX ? words[class] : "other";
}

const char *kind_word(uint8_t kind)
{
	static const char *const words[] = {[NODE_ROOT] = "root",
		[NODE_SCOPE] = "scope",
		[NODE_STATE] = "state",
		[NODE_OP] = "op",
		[NODE_FRAME] = "frame",
		[NODE_KERNEL] = "kernel",
		[NODE_COPY] = "copy",
		[NODE_SET] = "set",
		[NODE_CAPTURED] = "captured"};

	return kind < sizeof(words) / sizeof(words[0]) ? words[kind] : "other";
}

/* --- names
 * ---------------------------------------------------------------------------------------- */

#define NAME_COLUMNS       100 /* where there is no terminal to fill */
#define NAME_COLUMNS_LEAST 24  /* however little is left of the line */

void print_name(struct text *t, const char *name, size_t line, const struct print_options *o)
{
	const struct term *term = o->term;
	uint32_t room = o->full ? 0 : NAME_COLUMNS, used;
	char buf[1024];

	if (term->width > 0 && !o->full) {
		used = term_line_width(t, line);
		room = used + NAME_COLUMNS_LEAST < term->width ? term->width - used
							       : NAME_COLUMNS_LEAST;
	}
	if (o->format != FRAME_FULL)
		name = frame_format(o->format, name, buf, sizeof(buf));
	term_name(term, t, names_show(o->names, name), room);
	text_char(t, '\n');
}

/* --- what the tree is worth
 * ----------------------------------------------------------------------- */

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
	for (i = 0; i < p->n_devices; i++)
		text_fmt(t, "%s%s %.1f%%", i == 0 ? " (" : ", ", p->device[i].id,
			(double)p->device[i].busy_ns / (double)p->head.duration_ns * 100);
	text_char(t, ')');
}

static void head_worth(struct text *t, const struct profile *p)
{
	const struct profile_head *h = &p->head;
	uint64_t lost = 0;
	uint32_t i;

	if (h->launches > 0) {
		text_str(t, "  ");
		term_count(t, h->launches, "launch", "launches");
		text_fmt(t, ", %llu unmatched", (unsigned long long)h->unmatched);
	}
	for (i = 0; i < h->n_losses; i++)
		lost += h->losses[i].count;
	text_fmt(t, "  drops %llu", (unsigned long long)lost);
	if (!isnan(h->overhead))
		text_fmt(t, "  overhead %.2f%% of a core", h->overhead * 100);
	if (!isnan(h->recording_cost))
		text_fmt(t, ", %+.1f%% for a step recorded", h->recording_cost * 100);
	text_char(t, '\n');
	for (i = 0; i < h->n_losses; i++)
		text_fmt(t, "dropped %llu: %s\n", (unsigned long long)h->losses[i].count,
			loss_words(h->losses[i].cause));
}

void print_head(struct text *t, const struct profile *p, const struct term *term)
{
	const struct profile_head *h = &p->head;
	uint32_t i;

	if (h->uuid == NULL)
		return;
	term_style(term, t, STYLE_BOLD);
	term_name(term, t, h->name, 0);
	term_style(term, t, STYLE_PLAIN);
	text_fmt(t, "  session %llu  %s  ", (unsigned long long)h->id, h->state);
	term_duration(t, (double)h->duration_ns);
	text_str(t, "  ");
	term_name(term, t, h->command == NULL ? "" : h->command, 60);
	text_char(t, '\n');
	term_count(t, h->n_processes, "process", "processes");
	if (h->ranked > 0 && h->rank_min == h->rank_max)
		text_fmt(t, ", rank %lld", (long long)h->rank_min);
	else if (h->ranked > 0)
		text_fmt(t, ", ranks %lld to %lld", (long long)h->rank_min, (long long)h->rank_max);
	head_devices(t, p, term);
	head_worth(t, p);
	if (strcmp(h->source, "replay") == 0)
		text_str(t, "source=replay: a recording was played back; no time here was measured "
			    "on this machine\n");
	for (i = 0; i < h->n_notes; i++) {
		text_str(t, "note: ");
		term_name(term, t, h->notes[i], 0);
		text_char(t, '\n');
	}
}

void print_why(struct text *t, const struct profile *p, const struct term *term)
{
	if (p->head.gpu_why == NULL)
		return;
	text_str(t, "no GPU data: ");
	term_name(term, t, p->head.gpu_why, 0);
	text_char(t, '\n');
}

/* --- the tree
 * ------------------------------------------------------------------------------------- */

struct glyphs {
	const char *child, *last, *down, *blank;
};

static const struct glyphs utf8_glyphs = {"├─ ", "└─ ", "│  ", "   "};
static const struct glyphs ascii_glyphs = {"|- ", "`- ", "|  ", "   "};

#define FLUSH_BYTES ((size_t)64 << 10)

/* Writes the numbers of one node, before its name or, in a table, before its branches. */
typedef void numbers_fn(struct text *t, const void *arg, uint32_t node, const struct term *term);

struct tree_printer {
	const struct profile *p;
	const struct order *order;
	const struct print_options *o;
	numbers_fn *numbers;
	const void *arg;
	bool table;
	struct text prefix;
	size_t length[PROFILE_DEPTH_MAX + 2]; /* of the prefix, by depth */
};

static void print_node(struct text *t, struct tree_printer *w, uint32_t node, uint32_t depth)
{
	const struct glyphs *g = w->o->term->utf8 ? &utf8_glyphs : &ascii_glyphs;
	bool last = w->order->next[node] == PROFILE_NONE;
	size_t line = t->n;

	if (line >= FLUSH_BYTES && w->o->flush != NULL) {
		w->o->flush(w->o->flush_arg, t);
		line = t->n;
	}
	if (w->table)
		w->numbers(t, w->arg, node, w->o->term);
	w->prefix.n = w->length[depth];
	text_add(t, w->prefix.s, w->prefix.n);
	if (depth > 0) {
		text_str(t, last ? g->last : g->child);
		text_str(&w->prefix, last ? g->blank : g->down);
	}
	w->length[depth + 1] = w->prefix.n;
	if (!w->table)
		w->numbers(t, w->arg, node, w->o->term);
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

static numbers_fn table_numbers;

static int print_nodes_of(struct text *t, const struct view *v, const struct print_options *o,
	numbers_fn *numbers, const void *arg)
{
	struct tree_printer *w = calloc(1, sizeof(*w));
	struct order *order = NULL;
	int r = w == NULL ? -ENOMEM : order_new(v, o, &order);

	if (r == 0) {
		*w = (struct tree_printer){.p = v->p,
			.order = order,
			.o = o,
			.numbers = numbers,
			.arg = arg,
			.table = numbers == table_numbers};
		if (text_reserve(&w->prefix, (PROFILE_DEPTH_MAX + 2) * 8) == 0)
			print_nodes(t, w);
		text_fini(&w->prefix);
	}
	order_free(order);
	free(w);
	return r;
}

/* --- the tree beside a table
 * ---------------------------------------------------------------------- */

#define GAP "  "

struct table {
	const struct view *v;
	double whole; /* of the first column */
	uint32_t width[VIEW_COLUMNS_MAX];
	bool counts[VIEW_COLUMNS_MAX]; /* a column of nothing but whole numbers without a unit */
};

static void table_cell(struct text *t, const struct table *b, uint32_t c, double v)
{
	if (isnan(v)) {
		text_char(t, '-');
		return;
	}
	text_fixed3(t, v);
	if (b->counts[c] && isfinite(v) && !t->failed)
		t->n -= strlen(".000");
}

/* Moves what was written from `from` on to the right end of its column. */
static void align_right(struct text *t, size_t from, uint32_t width)
{
	size_t n = t->n - from;

	if (n >= width || text_reserve(t, width - n) < 0)
		return;
	memmove(t->s + from + width - n, t->s + from, n);
	memset(t->s + from, ' ', width - n);
	t->n = from + width;
}

static void table_numbers(struct text *t, const void *arg, uint32_t node, const struct term *term)
{
	const struct table *b = arg;
	size_t from;
	uint32_t c;

	for (c = 0; c < b->v->n_columns; c++) {
		term_style(term, t,
			c > 0 ? STYLE_FAINT : term_heat(fabs(b->v->col[0].v[node] / b->whole)));
		from = t->n;
		table_cell(t, b, c, b->v->col[c].v[node]);
		align_right(t, from, b->width[c]);
		term_style(term, t, STYLE_PLAIN);
		text_str(t, GAP);
	}
}

static int measure(struct table *b, uint32_t c, uint32_t depth)
{
	const struct column *col = &b->v->col[c];
	const struct profile *p = b->v->p;
	struct text longest = {0};
	double least = 0, most = 0;
	uint32_t i;

	b->counts[c] = col->unit[0] == '\0';
	for (i = 0; i < p->n_nodes; i++) {
		if (!b->v->keep[i] || p->node[i].depth >= depth || isnan(col->v[i]))
			continue;
		least = col->v[i] < least ? col->v[i] : least;
		most = col->v[i] > most ? col->v[i] : most;
		b->counts[c] &= col->v[i] == nearbyint(col->v[i]);
	}
	b->width[c] = term_width(col->name);
	for (i = 0; i < 2; i++) {
		longest.n = 0;
		table_cell(&longest, b, c, i == 0 ? least : most);
		if (longest.n > b->width[c])
			b->width[c] = (uint32_t)longest.n;
	}
	text_fini(&longest);
	return longest.failed ? -ENOMEM : 0;
}

int print_tree(struct text *t, const struct view *v, const struct print_options *o)
{
	struct table b = {.v = v, .whole = v->n_columns > 0 ? view_total(v, 0) : 0};
	uint32_t c;
	size_t from;
	int r;

	term_style(o->term, t, STYLE_FAINT);
	for (c = 0; c < v->n_columns; c++) {
		r = measure(&b, c, o->depth);
		if (r < 0)
			return r;
		if (c > 0)
			text_str(t, GAP);
		from = t->n;
		term_name(o->term, t, v->col[c].name, 0);
		align_right(t, from, b.width[c]);
	}
	term_style(o->term, t, STYLE_PLAIN);
	text_char(t, '\n');
	return print_nodes_of(t, v, o, table_numbers, &b);
}

/* --- differences
 * ---------------------------------------------------------------------------------- */

static void diff_numbers(struct text *t, const void *arg, uint32_t node, const struct term *term)
{
	const struct diff *d = arg;
	double a = d->after[0][node], b = d->before[0][node], percent = diff_percent(b, a);
	double delta = d->view->col[0].v[node];
	bool worse = d->view->col[0].more_is_better ? delta < 0 : delta > 0;

	term_style(term, t,
		delta == 0 || isnan(delta) ? STYLE_FAINT
		: worse                    ? STYLE_HOT
					   : STYLE_MILD);
	if (isnan(delta))
		text_str(t, "- ");
	else
		text_fmt(t, "%+.3f ", delta);
	term_style(term, t, STYLE_PLAIN);
	term_style(term, t, STYLE_FAINT);
	if (d->side[node] == SIDE_AFTER)
		text_str(t, "new ");
	else if (d->side[node] == SIDE_BEFORE)
		text_str(t, "gone ");
	else if (!isnan(percent))
		text_fmt(t, "%+.1f%% ", percent);
	term_style(term, t, STYLE_PLAIN);
}

int print_diff(struct text *t, const struct diff *d, const struct print_options *o)
{
	double b = d->before_total[0], a = d->after_total[0], percent = diff_percent(b, a);

	term_name(o->term, t, d->view->col[0].name, 0);
	text_fmt(t, "  %.3f -> %.3f  %+.3f", b, a, a - b);
	if (!isnan(percent))
		text_fmt(t, "  %+.1f%%", percent);
	text_char(t, '\n');
	return print_nodes_of(t, d->view, o, diff_numbers, d);
}

/* --- sorted
 * --------------------------------------------------------------------------------------- */

/* Python's format(v, ".4"): four digits, fixed below 1000 and with at least one decimal. */
static void python_g4(struct text *t, double v)
{
	char buf[32];
	char *dot, *end;

	if (!isfinite(v)) {
		text_str(t, isnan(v) ? "-" : v > 0 ? "inf" : "-inf");
		return;
	}
	(void)snprintf(buf, sizeof(buf), "%.3e", v);
	end = strchr(buf, 'e');
	if (v != 0 && (strtol(end + 1, NULL, 10) >= 3 || strtol(end + 1, NULL, 10) < -4)) {
		for (dot = end; dot[-1] == '0'; dot--)
			;
		text_add(t, buf, (size_t)((dot[-1] == '.' ? dot - 1 : dot) - buf));
		text_str(t, end);
		return;
	}
	(void)snprintf(buf, sizeof(buf), "%.4g", v);
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
	uint32_t n, i, *row = order_by_value(v, &n);

	if (row == NULL)
		return -ENOMEM;
	text_fmt(t, "Sorted kernels by metric %s\n", v->col[0].name);
	/* The first row is ROOT or ties with it, and is left out, as Proton does. */
	for (i = 1; i < n && (o->rows == 0 || i <= o->rows); i++) {
		sorted_name(t, v->p->node[row[i]].name, o);
		python_g4(t, v->col[0].v[row[i]]);
		text_char(t, '\n');
	}
	free(row);
	return 0;
}
