/* SPDX-License-Identifier: MIT. protonview_steps.c: the verb steps: each step of each process, which are slow, and how fast they
 * went. */
#include <stdlib.h>
#include <string.h>

#include "sheet.h"
#include "step_pace.h"
#include "throughput.h"

#define ROWS      20u /* shown, without --rows: those that take longest */
#define PROCESSES 8u  /* of which a line tells */
#define HUNDRED   100u
#define VALUES    4u /* numbers shown on a screen */

/* clang-format off */
#define FIXED(X) /* key, head, as, leaves first, value of step s; NAN: none */                    \
	X("rank",     "rank",         SHEET_COUNT, 0,  OR_NONE(of->rank >= 0, of->rank))           \
	X("pid",      "pid",          SHEET_COUNT, 6,  of->pid)                                    \
	X("step",     "step",         SHEET_COUNT, 0,  s->number)                                  \
	X("steps",    "of",           SHEET_COUNT, 0,  s->of > 1 ? s->of : 1)                      \
	X("start",    "at/ms",        SHEET_MS,    5,  s->begin_ns)                                \
	X("duration", "time/ms",      SHEET_MS,    0,  step_ns(s))                                 \
	X("pace",     "pace/ms",      SHEET_MS,    4,  pace_of(k, i))                              \
	X("compute",  "compute/ms",   SHEET_MS,    0,  PART(COMPUTE))                              \
	X("comm",     "comm/ms",      SHEET_MS,    1,  PART(COMM))                                 \
	X("copy",     "copy/ms",      SHEET_MS,    2,  PART(COPY))                                 \
	X("idle_launch",  "launching/ms", SHEET_MS, 8, PART(LAUNCH))                               \
	X("idle_gap",     "gaps/ms",      SHEET_MS, 9, PART(GAP))                                  \
	X("idle_queued",  "queued/ms",    SHEET_MS, 10, PART(QUEUED))                              \
	X("idle_unknown", "unknown/ms",   SHEET_MS, 11, PART(UNKNOWN))                             \
	X("idle_host",    "host/ms",      SHEET_MS, 3, PART(HOST))                                 \
	X("ops",      "GPU work",     SHEET_COUNT, 7,  OR_NONE(!k->stored, s->ops))                \
	X("compile",  "compile/ms",   SHEET_MS,    3,  OR_NONE(s->compile_ns > 0, s->compile_ns))
#define OR_NONE(is, v) ((is) ? (double)(v) : (double)NAN)
#define PART(name)     OR_NONE(!k->stored && s->ops > 0, s->part_ns[PART_##name])
/* clang-format on */

enum {
#define X(key, ...) +1
	N_FIXED = 0 FIXED(X),
#undef X
	MARK = N_FIXED, /* "warm-up", "slow", "cut off" */
	N_COLUMNS
};

struct shown {
	struct run *run;
	const struct profile *p;
	struct steps *k;
	struct sheet_column column[N_COLUMNS + STEPS_VALUES_MAX];
	char key[STEPS_VALUES_MAX][160];
	uint32_t n_columns, n_told; /* n_told: numbers on the screen */
	uint8_t *row;               /* of a step: whether it is shown */
};

/* From the end of the step before it, of its process, to its own. */
static double pace_of(const struct steps *k, uint32_t i)
{
	const struct step *s = &k->step[i];

	return i > 0 && s[-1].process == s->process && s->of <= 1 && !s->open &&
			       s->end_ns >= s[-1].end_ns
		       ? (double)(s->end_ns - s[-1].end_ns)
		       : (double)NAN;
}

static void fixed_of(const struct steps *k, uint32_t i, double ret[N_FIXED])
{
	const struct step *s = &k->step[i];
	const struct steps_process *of = &k->process[s->process];
	uint32_t at = 0;

#define X(key, head, as, leaves, value) ret[at++] = (double)(value);
	FIXED(X)
#undef X
}

/* --- which columns, which rows */

static bool is_id(const char *bare)
{
	const size_t n = strlen(bare);

	return n > 3 && strcmp(bare + n - 3, "_id") == 0;
}

/* Flops are in what they come to a second; payloads of libraries (NVTX's) are of single calls, and have names in words; an
 * id (XLA's program_id) measures nothing. */
static bool is_for_people(const struct steps *k, uint32_t c)
{
	const enum step_rate rate = step_rate_of(k->value_name[c]);
	char bare[256];
	uint32_t i, n = 0;

	metric_bare(k->value_name[c], bare, sizeof(bare));
	if ((rate >= RATE_FLOPS8 && rate < RATE_MAX) || strchr(bare, ' ') != NULL || is_id(bare))
		return false;
	for (i = 0; i < k->n; i++)
		n += isnan(k->value[c][i]) ? 0 : 1;
	return 2 * n >= k->n;
}

/* A screen leaves out what no step has. */
static void choose_columns(struct shown *w)
{
	static const struct sheet_column fixed[N_FIXED] = {
#define X(key, head, as, leaves, value) {key, head, as, 0, (leaves) > 0 ? (leaves) + VALUES : 0},
		FIXED(X)
#undef X
	};
	bool any[N_FIXED] = {false};
	double v[N_FIXED];
	uint32_t i, c;

	for (i = 0; i < w->k->n; i++) {
		fixed_of(w->k, i, v);
		for (c = 0; c < N_FIXED; c++)
			any[c] |= !isnan(v[c]) && v[c] != 0;
	}
	memcpy(w->column, fixed, sizeof(fixed));
	any[0] = w->p->head.ranked > 0;            /* rank */
	any[1] = w->k->n_processes > 1 || !any[0]; /* pid */
	any[3] = w->k->thinned;                    /* of */
	for (c = 0; c < N_FIXED; c++)
		if (!any[c])
			w->column[c].head = NULL;
	w->column[MARK] = (struct sheet_column){"mark", "mark", SHEET_TEXT, 0, 0};
	w->n_columns = N_COLUMNS;
	for (c = 0; c < w->k->n_values; c++) {
		const bool is_shown = is_for_people(w->k, c) && w->n_told < VALUES;

		(void)snprintf(w->key[c], sizeof(w->key[c]), "told.%s", w->k->value_name[c]);
		w->column[w->n_columns++] = (struct sheet_column){w->key[c],
			is_shown ? w->key[c] + strlen("told.") : NULL, SHEET_NUMBER, 0,
			(uint8_t)(w->n_told + 1)};
		w->n_told += is_shown;
	}
}

struct lasting {
	double ns;
	uint32_t at;
};

static int by_length(const void *a, const void *b)
{
	const struct lasting *x = a, *y = b;

	return x->ns != y->ns ? (x->ns > y->ns ? -1 : 1) : (x->at > y->at) - (x->at < y->at);
}

/* Those that take longest; they are shown as they came. -ENOMEM. */
static int choose_rows(struct shown *w, uint32_t most)
{
	struct lasting *order = malloc((w->k->n + (size_t)1) * sizeof(*order));
	uint32_t i;

	w->row = calloc(w->k->n + (size_t)1, 1);
	if (order == NULL || w->row == NULL) {
		free(order);
		return -ENOMEM;
	}
	for (i = 0; i < w->k->n; i++)
		order[i] = (struct lasting){step_ns(&w->k->step[i]), i};
	if (most > 0 && most < w->k->n)
		qsort(order, w->k->n, sizeof(*order), by_length);
	for (i = 0; i < w->k->n && (most == 0 || i < most); i++)
		w->row[order[i].at] = 1;
	free(order);
	return 0;
}

/* --- rows */

static const char *mark_of(const struct steps *k, uint32_t i)
{
	return k->step[i].cut                 ? "cut off"
	       : k->step[i].warm              ? "warm-up"
	       : pace_is_slow(k, &k->step[i]) ? "slow"
					      : NULL;
}

static void put_row(struct shown *w, struct sheet *s, uint32_t i)
{
	double v[N_FIXED];
	const char *mark = mark_of(w->k, i);
	uint32_t c;

	fixed_of(w->k, i, v);
	for (c = 0; c < N_FIXED; c++)
		sheet_number(s, v[c]);
	sheet_text(s, mark);
	for (c = 0; c < w->k->n_values; c++)
		sheet_number(s, w->k->value[c][i]);
}

/* --- of each process */

struct sums {
	uint32_t n, slow, cut; /* cut: more than these n, that began before or did not end */
	double p50, p90, p99, least, most, between_ns, whole_ns;
	uint32_t slowest; /* its number */
	struct step_rates rates;
	struct throughput t;
};

static int by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static double at_share(const double *v, uint32_t n, double share)
{
	return v[(uint32_t)fmax(1, ceil(share * n)) - 1];
}

/* Of its steps without the warm-up, where there are others. v: room for all. */
static void sums_of(const struct shown *w, uint32_t process, double *v, struct sums *ret)
{
	const struct steps *k = w->k;
	const struct step *first = NULL, *last = NULL;
	double in_steps = 0;
	uint32_t i, n = 0;

	*ret = (struct sums){0};
	for (i = 0; i < k->n; i++) {
		const struct step *s = &k->step[i];

		if (s->process != process)
			continue;
		ret->cut += s->cut;
		if (s->cut)
			continue;
		first = first == NULL ? s : first;
		last = s;
		ret->n += s->of > 1 ? s->of : 1;
		ret->slow += pace_is_slow(k, s);
		in_steps += step_ns(s) * (s->of > 1 ? s->of : 1);
		if (!s->warm && step_ns(s) > ret->most) {
			ret->most = step_ns(s);
			ret->slowest = s->number;
		}
		if (!s->warm)
			v[n++] = step_ns(s);
	}
	if (n == 0)
		return;
	qsort(v, n, sizeof(*v), by_value);
	ret->least = v[0];
	ret->p50 = at_share(v, n, 0.5);
	ret->p90 = at_share(v, n, 0.9);
	ret->p99 = at_share(v, n, 0.99);
	ret->whole_ns = (double)(last->end_ns - first->begin_ns);
	ret->between_ns = fmax(0, ret->whole_ns - in_steps);
	throughput_rates(k, process, &ret->rates);
	throughput_of(w->p, &ret->rates, &ret->t);
}

static void put_json_process(struct text *t, const struct steps_process *p, const struct sums *s)
{
	text_fmt(t, "{\"rank\":");
	if (p->rank >= 0)
		text_fmt(t, "%lld", (long long)p->rank);
	else
		text_str(t, "null");
	text_fmt(t, ",\"pid\":%lld,\"steps\":%u,\"warm_up\":%llu,\"slow\":%u,\"cut_off\":%u",
		(long long)p->pid, s->n, (unsigned long long)s->rates.warm, s->slow, s->cut);
	text_fmt(t,
		",\"least_ns\":%.0f,\"p50_ns\":%.0f,\"p90_ns\":%.0f,\"p99_ns\":%.0f,\"most_ns\":%."
		"0f,"
		"\"slowest\":%u,\"between_ns\":%.0f,\"throughput\":",
		s->least, s->p50, s->p90, s->p99, s->most, s->slowest, s->between_ns);
	envelope_throughput(t, &s->t);
	text_char(t, '}');
}

static void note_process(struct sheet *s, const struct steps *k, uint32_t i, const struct sums *u)
{
	const struct steps_process *p = &k->process[i];
	const bool windows = run_given(s->run, OPT_EVERY);
	struct text t = {0};

	if (u->n + u->cut == 0)
		return;
	text_fmt(&t, "%s %lld: ", p->rank >= 0 ? "rank" : "pid",
		(long long)(p->rank >= 0 ? p->rank : p->pid));
	term_count(&t, u->n, windows ? "window" : "step", windows ? "windows" : "steps");
	if (!windows && u->n > 0) {
		text_str(&t, ": half take ");
		term_duration(&t, u->p50);
		text_str(&t, " or less, nine of ten ");
		term_duration(&t, u->p90);
		text_fmt(&t, ", the slowest (%u) ", u->slowest);
		term_duration(&t, u->most);
	}
	if (!windows && u->n >= HUNDRED) {
		text_str(&t, ", 99 of 100 ");
		term_duration(&t, u->p99);
	}
	if (u->rates.warm == 1)
		text_str(&t, "; the first is warm-up");
	else if (u->rates.warm > 1)
		text_fmt(&t, "; the first %llu are warm-up", (unsigned long long)u->rates.warm);
	if (u->slow > 0)
		text_fmt(&t, "; %u slow", u->slow);
	if (u->cut > 0)
		text_fmt(&t, "; %u more cut off, so that nobody knows how long %s", u->cut,
			u->cut == 1 ? "it takes" : "they take");
	if (u->whole_ns > 0 && u->between_ns >= 0.01 * u->whole_ns)
		text_fmt(&t, "; %.0f%% of the time lies between steps",
			100 * u->between_ns / u->whole_ns);
	text_str(&t, u->rates.told[RATE_STEPS] > 0 ? "; " : "");
	print_rates(&t, &u->t, ", ");
	text_str(&t, ".");
	sheet_note(s, "%.*s", (int)t.n, t.n > 0 ? t.s : "");
	text_fini(&t);
}

static void put_notes(
	struct shown *w, struct sheet *s, const struct sums *of, const struct throughput *all)
{
	const struct steps *k = w->k;
	struct text t = {0};
	uint32_t i;

	for (i = 0; i < k->n_processes && i < PROCESSES && !s->json; i++)
		note_process(s, k, i, &of[i]);
	if (k->n_processes > PROCESSES && !s->json)
		sheet_note(s, "%u processes more; --rank N shows one", k->n_processes - PROCESSES);
	if (k->n_processes > 1 && !s->json) {
		print_rates(&t, all, ", ");
		sheet_note(s, "All together: %.*s.", (int)t.n, t.n > 0 ? t.s : "");
	}
	if (all->why.code != 0)
		sheet_note(s, "No MFU: %s.", all->why.text);
	if (k->stored)
		sheet_note(s, "No timeline of them is there, so what the GPU did in each step is "
			      "not known; "
			      "`-d both` keeps one.");
	if (k->thinned)
		sheet_note(s, "There are so many steps that rows with `of` stand for several, with "
			      "their mean.");
	if (k->left_out > 0)
		sheet_note(s, "%u steps more are left out.", k->left_out);
	if (k->told_left_out > 0)
		sheet_note(s,
			"%u numbers that steps were told are left out: too many, or of more "
			"than %u names.",
			k->told_left_out, STEPS_VALUES_MAX);
	if (w->n_told < k->n_values && !s->json)
		sheet_note(s, "%u more number%s told: `protonview series` shows %s.",
			k->n_values - w->n_told, k->n_values - w->n_told == 1 ? " was" : "s were",
			k->n_values - w->n_told == 1 ? "it" : "them");
	text_fini(&t);
}

/* --- all of it */

static int put(struct shown *w)
{
	struct run *run = w->run;
	const bool is_json = run_given(run, OPT_JSON);
	const uint32_t most = is_json ? 0 : run_given(run, OPT_ROWS) ? run->print.rows : ROWS;
	double *v = malloc((w->k->n + (size_t)1) * sizeof(*v));
	struct sums *of = calloc(w->k->n_processes + (size_t)1, sizeof(*of));
	struct step_rates rates;
	struct throughput all;
	struct text more = {0};
	struct sheet s;
	uint32_t i, shown = 0;

	if (v == NULL || of == NULL || choose_rows(w, most) < 0) {
		free(v);
		free(of);
		return err_set(&run->e, -ENOMEM, "out of memory");
	}
	choose_columns(w);
	throughput_rates(w->k, UINT32_MAX, &rates);
	throughput_of(w->p, &rates, &all);
	text_str(&more, "\"processes\":[");
	for (i = 0; i < w->k->n_processes; i++) {
		sums_of(w, i, v, &of[i]);
		text_str(&more, i > 0 ? "," : "");
		put_json_process(&more, &w->k->process[i], &of[i]);
	}
	text_str(&more, "],\"throughput\":");
	envelope_throughput(&more, &all);
	text_char(&more, '\0');
	sheet_open_with(&s, run, "steps", w->p, w->column, w->n_columns, more.s);
	for (i = 0; i < w->k->n; i++) {
		if (w->row[i] == 0)
			continue;
		put_row(w, &s, i);
		shown++;
	}
	if (shown < w->k->n)
		sheet_note(&s,
			"The slowest %u of %u rows; -n N shows N, -n 0 all, --step N..M these.",
			shown, w->k->n);
	put_notes(w, &s, of, &all);
	sheet_close(&s, w->p);
	text_fini(&more);
	free(v);
	free(of);
	return 0;
}

/* Those of --step alone; medians and warm-up are of all. */
static void keep_asked(struct steps *k, const struct profile_select *s)
{
	uint32_t i, c, n = 0;

	for (i = 0; i < k->n && s->first_step != 0; i++) {
		if (k->step[i].number + (k->step[i].of > 1 ? k->step[i].of - 1 : 0) <
				s->first_step ||
			k->step[i].number > s->last_step)
			continue;
		k->step[n] = k->step[i];
		for (c = 0; c < k->n_values; c++)
			k->value[c][n] = k->value[c][i];
		n++;
	}
	k->n = s->first_step != 0 ? n : k->n;
}

static int stored(struct sqlite3 *db, int64_t id, const struct profile_select *s,
	struct steps **ret, struct err *e)
{
	const int r = steps_stored(db, id, s, ret, e);

	return r == -ENODATA
		       ? err_set(e, r,
				 s->first_step != 0 || s->to_ns != 0
					 ? "no step lies there"
					 : "it has no steps (scopes named `step`, `step N` or "
					   "`ProfilerStep#N`), and kept no timeline (`-d both`), "
					   "of which --scope and --every take others")
		       : r;
}

/* They left the timeline: what is stored of them beside the tree, if anything is. */
static int stored_instead(struct sqlite3 *db, int64_t id, const struct profile_select *s,
	struct steps **to, struct err *e)
{
	struct steps *instead = NULL;
	const int r = steps_stored(db, id, s, &instead, e);

	if (r == -ENODATA)
		return 0;
	if (r == 0) {
		steps_free(*to);
		*to = instead;
	}
	return r;
}

static int read_it(void *arg, struct sqlite3 *db, int64_t id, const struct profile_select *s,
	struct export_left *ret_left, struct err *e)
{
	const bool windows = s->scope != NULL || s->every_ns != 0;
	struct steps **to = arg;
	int r = steps_read(db, id, s, ret_left, to, e);

	if (r == 0 && !windows && (*to)->n == 0 && ret_left->gone > 0)
		r = stored_instead(db, id, s, to, e);
	if (r == -ENODATA && !windows)
		r = stored(db, id, s, to, e);
	else if (r == -ENODATA)
		r = err_set(e, r,
			"it kept no timeline, of which --scope and --every need one: record with "
			"`-d both`");
	if (r == 0)
		keep_asked(*to, s);
	return r;
}

/* The outermost scope that was entered the most often: it may be the loop. */
static uint32_t often(const struct profile *p, double *ret_calls)
{
	const uint32_t calls = profile_find_metric(p, "calls");
	uint32_t i, most = PROFILE_NONE;

	*ret_calls = 2;
	for (i = calls == PROFILE_NONE ? p->n_nodes : 1; i < p->n_nodes; i++) {
		const double n = value_number(profile_value(p, i, calls));

		if (p->node[i].depth == 1 && p->node[i].kind == NODE_SCOPE && n > *ret_calls) {
			most = i;
			*ret_calls = n;
		}
	}
	return most;
}

static int found_none(struct run *run, const struct profile *p)
{
	double calls;
	const uint32_t most = often(p, &calls);

	if (run_part(run))
		return err_set(&run->e, -ENOENT,
			"no step lies there; without --window, --step, --scope and --every all "
			"steps are shown");
	if (most == PROFILE_NONE)
		return err_set(&run->e, -ENOENT,
			"it has no steps (scopes named `step`, `step N` or `ProfilerStep#N`); "
			"--scope NAME takes others, --every 1 each second of a timeline");
	return err_set(&run->e, -ENOENT,
		"it has no steps (scopes named `step`, `step N` or `ProfilerStep#N`); --scope NAME "
		"takes others (--scope '%s': entered %.0f times), --every 1 each second of a "
		"timeline",
		p->node[most].name, calls);
}

int view_steps(struct run *run)
{
	struct shown w = {.run = run};
	struct profile *p = NULL;
	int r = sheet_source(run, read_it, &w.k, &p);

	w.p = p;
	if (r == 0 && w.k->n == 0)
		r = found_none(run, p);
	if (r == 0)
		r = put(&w);
	free(w.row);
	steps_free(w.k);
	profile_free(p);
	return r;
}
