/* SPDX-License-Identifier: MIT. protonctl_top_draw.c: top on a whole screen: what it shows. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "gpu_terms.h"
#include "grid.h"
#include "human.h"
#include "protonctl_top_state.h"
#include "spark.h"
#include "top_memory.h"

#define LINES_MIN 6
#define COLS_MIN  20

/* Of a line that another one may follow, what fits into the screen's width. */
static void put_line(const struct screen *s, int y, const struct text *t, attr_t how)
{
	const uint32_t room = s->term.width;
	mbstate_t state = {0};
	uint32_t used = 0;
	size_t at = 0, n;
	wchar_t wide;
	int w;

	while (at < t->n) {
		n = mbrtowc(&wide, t->s + at, t->n - at, &state);
		if (n == 0 || n > t->n - at) {
			memset(&state, 0, sizeof(state));
			n = 1;
			wide = L'?';
		}
		w = wcwidth(wide);
		if (used + (w > 0 ? (uint32_t)w : 0) > room)
			break;
		used += w > 0 ? (uint32_t)w : 0;
		at += n;
	}
	(void)attr_set(how & ~A_COLOR, (short)PAIR_NUMBER((int)how), NULL);
	(void)mvaddnstr(y, 0, t->s != NULL ? t->s : "", (int)at);
	if (how & A_REVERSE)
		for (; used < room; used++)
			(void)addch(' ');
	(void)attr_set(A_NORMAL, 0, NULL);
}

/* A part of a line, left out where it does not fit any more. */
static bool part(const struct screen *s, struct text *t, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static bool part(const struct screen *s, struct text *t, const char *fmt, ...)
{
	char words[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(words, sizeof(words), fmt, ap);
	va_end(ap);
	if (term_line_width(t, 0) + 2 + term_width(words) > s->term.width)
		return false;
	text_str(t, t->n > 0 ? "  " : "");
	text_str(t, words);
	return true;
}

static void head_of_whom(const struct screen *s, const struct look *l, struct text *t)
{
	char active[32];
	uint32_t i;

	text_duration((double)l->duration_ns * 1e-9, active);
	term_name(&s->term, t, l->name, s->term.width / 3 < 8 ? 8 : s->term.width / 3);
	part(s, t, "session %ld", l->id);
	if (s->paused)
		part(s, t, "PAUSED");
	part(s, t, "%s %s", l->state, active);
	for (i = 0; i < l->n_jobs; i++) {
		if (l->job[i].pid != s->pid)
			continue;
		if (l->job[i].rank >= 0)
			part(s, t, "rank %ld", l->job[i].rank);
		part(s, t, "pid %u", s->pid);
	}
	if (s->pid == 0)
		part(s, t, "%u job%s", l->n_jobs, l->n_jobs == 1 ? "" : "s");
	for (i = 0; s->of_device && i < l->n_devices; i++)
		if (memcmp(l->device[i].uuid, s->device, sizeof(s->device)) == 0)
			part(s, t, "GPU %u alone", l->device[i].number);
	if (s->view.filter[0] != '\0')
		part(s, t, "/%s", s->view.filter);
	if (l->left_out > 0)
		part(s, t, "%lu paths left out", l->left_out);
}

static void trend(const struct screen *s, struct text *t)
{
	double most = 0;
	uint32_t i;

	for (i = 0; i < s->n_trend; i++)
		most = s->trend[i] > most ? s->trend[i] : most;
	if (most > 0)
		spark(t, s->trend, s->n_trend, 0, most, s->term.utf8);
	text_char(t, '\0');
}

/* Three digits or more. */
static void rate(double v, char ret[24])
{
	snprintf(ret, 24, "%.*f", v < 10 ? 2 : v < 10000 ? 1 : 0, v);
}

struct head_line {
	const struct screen *s;
	struct text *t;
};

static bool head_word(void *arg, const char *word)
{
	const struct head_line *h = arg;

	return part(h->s, h->t, "%s", word);
}

static void head_of_what(const struct screen *s, const struct look *l, struct text *t)
{
	const struct look *before = oldest(s);
	const double seconds = look_seconds(before, l);
	struct text bars = {0};
	char each[128] = "";
	double busy = 0, one;
	uint64_t steps;
	uint32_t i;
	size_t at = 0;

	if (look_steps(before, l, &steps) && seconds > 0) {
		rate((double)steps / seconds, each);
		trend(s, &bars);
		if (bars.n <= 1 || bars.failed || !part(s, t, "%s steps/s %s", each, bars.s))
			part(s, t, "%s steps/s", each);
		text_fini(&bars);
		*each = '\0';
	}
	look_rate_words(before, l, head_word, &(struct head_line){s, t});
	for (i = 0; i < l->n_devices; i++) {
		one = look_busy(before, l, i) * 100;
		busy += one / l->n_devices;
		if (l->n_devices > 1 && at + 24 < sizeof(each))
			at += (size_t)snprintf(each + at, sizeof(each) - at, "%s%u: %.0f%%",
				at > 0 ? " " : "", l->device[i].number, one);
	}
	if (l->n_devices > 0 && (*each == '\0' || !part(s, t, "GPU busy %.1f%% (%s)", busy, each)))
		part(s, t, "GPU busy %.1f%%", busy);
	part(s, t, "drops %lu", l->drops);
	if (seconds > 0 && l->cost_ns >= (before != NULL ? before->cost_ns : 0))
		part(s, t, "overhead %.2f%%",
			(double)(l->cost_ns - (before != NULL ? before->cost_ns : 0)) * 1e-7 /
				seconds);
	if (before != NULL)
		part(s, t, "last %.1f s", seconds);
	else
		part(s, t, "since it began");
}

/* Nothing where nothing is known. */
static void head_of_gpus(const struct screen *s, const struct look *l, struct text *t)
{
	look_gpu_words(oldest(s), l, head_word, &(struct head_line){s, t});
}

static const struct grid_column list_columns[] = {{"GPU ms/s", true, 0, 0},
	{"CPU ms/s", true, 0, 1}, {"CALLS/s", true, 0, 3}, {"P50", true, 0, 4}, {"P99", true, 0, 2},
	{"CLASS", false, 0, 5}, {"SCOPE OR KERNEL", false, 28, 0}};
#define N_COLUMNS (sizeof(list_columns) / sizeof(list_columns[0]))

static void duration_cell(struct grid *g, double ns)
{
	struct text t = {0};

	if (isnan(ns)) {
		grid_cell_fmt(g, "-");
		return;
	}
	term_duration(&t, ns);
	grid_cell_fmt(g, "%.*s", (int)t.n, t.s != NULL ? t.s : "");
	text_fini(&t);
}

static void rate_cell(struct grid *g, double v)
{
	char text[24] = "-";

	if (v > 0)
		rate(v, text);
	grid_cell_fmt(g, "%s", text);
}

static void name_cell(struct screen *s, struct grid *g, const struct top_row *row)
{
	const char *open = s->term.utf8 ? "▾ " : "- ", *closed = s->term.utf8 ? "▸ " : "+ ";
	char name[1100];
	struct text t = {0};
	uint32_t i;

	snprintf(name, sizeof(name), "%.*s", (int)row->name_bytes, row->name);
	for (i = 0; s->view.tree && i < row->depth && i < 64; i++)
		text_str(&t, "  ");
	if (s->view.tree)
		text_str(&t, !row->has_children ? "  " : row->is_open ? open : closed);
	text_str(&t, s->view.tree ? names_show(s->names, name) : names_show_path(s->names, name));
	text_char(&t, '\0');
	grid_cell(g, &s->term, t.failed ? "" : t.s);
	text_fini(&t);
}

static void row_cells(struct screen *s, struct grid *g, const struct top_row *row, double seconds)
{
	if (s->rows.has_gpu)
		rate_cell(g, seconds > 0 ? row->gpu_ns * 1e-6 / seconds : 0);
	rate_cell(g, seconds > 0 ? row->cpu_ns * 1e-6 / seconds : 0);
	rate_cell(g, seconds > 0 ? (double)row->calls / seconds : 0);
	duration_cell(g, row->p50_ns);
	duration_cell(g, row->p99_ns);
	grid_cell_fmt(g, "%s",
		row->calls > 0 || row->cpu_ns > 0 ? gpu_classes[gpu_class_known(row->class)].word
						  : "");
	name_cell(s, g, row);
}

/* The chosen row stays the same one where it still is, and is seen. */
static void settle_choice(struct screen *s, uint32_t room)
{
	uint32_t i;

	for (i = 0; i < s->rows.n; i++)
		if (s->at_key != 0 && s->rows.row[i].key == s->at_key) {
			s->at = i;
			break;
		}
	if (s->at >= s->rows.n)
		s->at = s->rows.n > 0 ? s->rows.n - 1 : 0;
	if (s->at < s->first)
		s->first = s->at;
	if (s->at >= s->first + room)
		s->first = s->at - room + 1;
	if (s->first + room > s->rows.n)
		s->first = s->rows.n > room ? s->rows.n - room : 0;
}

static void draw_rows(struct screen *s, int y, uint32_t room)
{
	const uint32_t skip = s->rows.has_gpu ? 0 : 1, n = (uint32_t)N_COLUMNS - skip;
	struct grid_column columns[N_COLUMNS];
	const double seconds = newest(s) != NULL ? look_seconds(oldest(s), newest(s)) : 0;
	struct text all = {0}, line;
	struct grid g;
	uint32_t i;
	size_t at = 0;

	settle_choice(s, room);
	memcpy(columns, list_columns + skip, n * sizeof(*columns));
	if (s->term.width < 60) /* numbers first */
		columns[n - 1].least = 12;
	grid_init(&g, columns, n);
	for (i = s->first; i < s->rows.n && i < s->first + room; i++)
		row_cells(s, &g, &s->rows.row[i], seconds);
	grid_print(&all, &s->term, &g);
	for (i = 0; at < all.n && !all.failed && i <= room; i++) {
		const char *end = memchr(all.s + at, '\n', all.n - at);
		const size_t bytes = end != NULL ? (size_t)(end - all.s) - at : all.n - at;

		line = (struct text){.s = all.s + at, .n = bytes};
		put_line(s, y + (int)i, &line,
			i == 0                      ? A_BOLD
			: s->first + i - 1 == s->at ? A_REVERSE
						    : A_NORMAL);
		at += bytes + 1;
	}
	if (s->rows.n == 0) {
		line = (struct text){0};
		text_str(&line, s->view.filter[0] != '\0' ? "nothing matches; / and Enter show all"
							  : "nothing happened in this time");
		put_line(s, y + 1, &line, A_NORMAL);
		text_fini(&line);
	}
	text_fini(&all);
	grid_fini(&g);
}

static const struct key_help {
	const char *keys, *short_words, *words;
} key_helps[] = {{"q", "quit", "quit (also Ctrl-C)"}, {"?", "help", "this help; any key ends it"},
	{"s", "sort", "sort by GPU time, CPU time, calls, p99, name; S: the other way round"},
	{"/", "filter", "show paths with this text in them; empty: all"},
	{"e", "tree", "a list of paths, or the tree; E: all of it, or its first names"},
	{"p", "pause", "hold the picture (also Space)"},
	{"r", "rank", "the next rank or job of the session, then all"},
	{"d", "device", "what ran on the next GPU, then everything"},
	{"n", "session", "the next live session"},
	{"w", "report", "write a report of the session as a page"},
	{"Enter", "open", "open or close a name of the tree (also Left, Right)"},
	{"Up, Down", "choose", "choose a row (also j, k, PgUp, PgDn, Home, End)"}};
#define N_KEYS (sizeof(key_helps) / sizeof(key_helps[0]))

#define HELP_COLS 74

/* Where a line each does not fit, a word each. */
static void draw_help_words(struct screen *s, int y, int end)
{
	struct text t = {0};
	uint32_t i;

	for (i = 0; i < N_KEYS && y < end; i++) {
		if (part(s, &t, "%s %s", key_helps[i].keys, key_helps[i].short_words))
			continue;
		put_line(s, y++, &t, A_NORMAL);
		t.n = 0;
		(void)part(s, &t, "%s %s", key_helps[i].keys, key_helps[i].short_words);
	}
	if (y < end)
		put_line(s, y, &t, A_NORMAL);
	text_fini(&t);
}

static void draw_help(struct screen *s, int y, int end)
{
	struct text t = {0};
	uint32_t i;

	if (end - y < (int)N_KEYS || s->term.width < HELP_COLS) {
		draw_help_words(s, y, end);
		return;
	}
	for (i = 0; i < N_KEYS; i++) {
		t.n = 0;
		text_fmt(&t, "  %-9s %s", key_helps[i].keys, key_helps[i].words);
		put_line(s, y + (int)i, &t, A_NORMAL);
	}
	text_fini(&t);
}

static void draw_foot(struct screen *s, int y)
{
	const attr_t bad = has_color(s) ? (attr_t)COLOR_PAIR(1) | A_BOLD : A_BOLD;
	struct text t = {0};
	uint32_t i;

	if (s->typing) {
		text_str(&t, "filter: ");
		term_name(&s->term, &t, s->typed, s->term.width - 9); /* its end is seen */
		text_char(&t, '_');
	} else if (s->words[0] != '\0') {
		term_name(&s->term, &t, s->words, 0);
	} else {
		for (i = 0; i < N_KEYS; i++)
			if (*key_helps[i].keys == 's')
				part(s, &t, "s sort:%s", top_sort_words[s->view.sort]);
			else
				part(s, &t, "%s %s", key_helps[i].keys,
					*key_helps[i].keys == 'e' && s->view.tree
						? "list"
						: key_helps[i].short_words);
	}
	put_line(s, y, &t, s->words[0] != '\0' && s->bad && !s->typing ? bad : A_DIM);
	text_fini(&t);
}

void top_draw(struct screen *s)
{
	const struct look *l = newest(s);
	struct text t = {0};
	int lines, columns, head = 2;

	getmaxyx(stdscr, lines, columns);
	s->term.width = columns > 0 ? (uint32_t)columns : 1;
	(void)erase();
	if (lines < LINES_MIN || columns < COLS_MIN) {
		text_str(&t, "too small");
		put_line(s, 0, &t, A_BOLD);
		text_fini(&t);
		(void)refresh();
		return;
	}
	if (l != NULL) {
		head_of_whom(s, l, &t);
		put_line(s, 0, &t, A_BOLD);
		t.n = 0;
		head_of_what(s, l, &t);
		put_line(s, 1, &t,
			l->drops > 0 ? (has_color(s) ? (attr_t)COLOR_PAIR(1) : A_BOLD) : A_NORMAL);
		t.n = 0;
		head_of_gpus(s, l, &t);
		if (t.n > 0 && lines > LINES_MIN)
			put_line(s, head++, &t, A_NORMAL);
		t.n = 0;
		look_memory_words(l, head_word, &(struct head_line){s, &t});
		if (t.n > 0 && lines > LINES_MIN + 1)
			put_line(s, head++, &t, A_NORMAL);
	}
	text_fini(&t);
	if (s->help)
		draw_help(s, head, lines - 1);
	else
		draw_rows(s, head, (uint32_t)(lines - head - 2));
	draw_foot(s, lines - 1);
	(void)refresh();
}
