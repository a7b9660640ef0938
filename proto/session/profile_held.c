/* SPDX-License-Identifier: MIT. profile_held.c: what a session's GPUs read on the whole, and whether
 * something held their clocks. */
#include <math.h>
#include <stdio.h>

#include "profile_rows.h"
#include "reading.h"
#include "text.h"

#define HELD_MIN 0.01         /* of the time: what is less is not worth a line */
#define HOST     "4294967295" /* READING_HOST */
#define ROWS \
	"SELECT gpu, bytes FROM reading WHERE session=?1 AND gpu<>" HOST " ORDER BY gpu, number"

static const struct {
	enum device_quantity q;
	const char *words;
} causes[] = {{DEVICE_held_by_power, "by power"}, {DEVICE_held_by_heat, "by heat"},
	{DEVICE_held_by_sync, "by sync boost"}, {DEVICE_held_by_board, "by the board's limit"},
	{DEVICE_held_by_reliability, "by the voltage's reliability"}};
#define CAUSES (sizeof(causes) / sizeof(*causes))

struct gpu_held {
	int64_t gpu;         /* -1: none yet */
	double clock_max;    /* MHz */
	double ns, clock;    /* since the counters were read; its sum of MHz × ns */
	double whole_ns;     /* that the counters tell about */
	double held[CAUSES]; /* ns */
	double at[CAUSES];   /* sum of MHz × ns held */
};

/* --- on the whole: of all GPUs together */

static const enum device_quantity means[] = {DEVICE_power, DEVICE_sm_clock, DEVICE_sm_active};
#define MEANS (sizeof(means) / sizeof(*means))

struct gpu_mean {
	double v[MEANS], ns[MEANS]; /* sums of value × ns, and of ns */
	double hottest, memory, memory_total;
};

struct all_means {
	double v[MEANS];
	uint32_t n[MEANS], gpus;
	double hottest, memory, memory_total; /* of any */
};

static void mean_add(struct gpu_mean *g, const struct reading_point *p)
{
	const double ns = (double)(p->end_ns - p->begin_ns);
	size_t i;

	for (i = 0; i < MEANS; i++) {
		if ((p->known >> means[i] & 1) == 0)
			continue;
		g->v[i] += ns * (double)p->value[means[i]];
		g->ns[i] += ns;
	}
	if ((p->known >> DEVICE_temperature & 1) != 0)
		g->hottest = fmax(g->hottest, (double)p->value[DEVICE_temperature]);
	if ((p->known >> DEVICE_memory_used & 1) != 0)
		g->memory = fmax(g->memory, (double)p->value[DEVICE_memory_used]);
	if ((p->known >> DEVICE_memory_total & 1) != 0)
		g->memory_total = (double)p->value[DEVICE_memory_total];
}

static void means_add(struct all_means *a, const struct gpu_mean *g)
{
	size_t i;

	a->gpus++;
	for (i = 0; i < MEANS; i++) {
		a->v[i] += g->ns[i] > 0 ? g->v[i] / g->ns[i] : 0;
		a->n[i] += g->ns[i] > 0;
	}
	a->hottest = fmax(a->hottest, g->hottest);
	a->memory = fmax(a->memory, g->memory);
	a->memory_total = fmax(a->memory_total, g->memory_total);
}

/* "GPU: 412 W, 1890 MHz, SMs active 87 %; at most 71 C, 45.2 of 80.0 GiB": what is known of it. */
static int means_tell(struct load *l, const struct all_means *a, held_fn *fn)
{
	static const double GIB = 1073741824;
	static const struct {
		const char *before, *after;
	} words[MEANS] = {{"", " W"}, {"", " MHz"}, {"SMs active ", " %"}};
	struct text t = {0};
	const char *between = a->gpus > 1 ? "GPUs: " : "GPU: ";
	size_t i;
	int r = 0;

	for (i = 0; i < MEANS; i++) {
		if (a->n[i] == 0)
			continue;
		text_fmt(&t, "%s%s%.0f%s%s", between, words[i].before,
			means[i] == DEVICE_power ? a->v[i] : a->v[i] / a->n[i], words[i].after,
			means[i] == DEVICE_power && a->gpus > 1 ? " together" : "");
		between = ", ";
	}
	if (t.n == 0)
		return 0;
	between = "; at most ";
	if (a->hottest > 0) {
		text_fmt(&t, "%s%.0f C", between, a->hottest);
		between = ", ";
	}
	if (a->memory > 0) {
		text_fmt(&t, "%s%.1f", between, a->memory / GIB);
		if (a->memory_total > 0)
			text_fmt(&t, " of %.1f", a->memory_total / GIB);
		text_str(&t, a->gpus > 1 ? " GiB of one" : " GiB");
	}
	text_char(&t, '\0');
	r = t.failed ? err_set(l->e, -ENOMEM, "out of memory") : fn(l, t.s);
	text_fini(&t);
	return r;
}

/* --- what held the clocks */

static int tell(struct load *l, const struct gpu_held *g, held_fn *fn)
{
	char text[160];
	size_t i;
	int r = 0;

	for (i = 0; i < CAUSES && g->gpu >= 0 && r == 0; i++) {
		if (g->whole_ns <= 0 || g->held[i] < HELD_MIN * g->whole_ns)
			continue;
		(void)snprintf(text, sizeof(text),
			"clocks of GPU %lld held at %.0f of %.0f MHz %s for %.0f %% of the run",
			(long long)g->gpu, g->at[i] / g->held[i], g->clock_max, causes[i].words,
			100 * g->held[i] / g->whole_ns);
		r = fn(l, text);
	}
	return r;
}

/* The counters of a reading tell about all readings since the one before that has them. */
static void add(struct gpu_held *g, const struct reading_point *p)
{
	const double ns = (double)(p->end_ns - p->begin_ns);
	bool told = false;
	size_t i;

	if ((p->known >> DEVICE_sm_clock_max & 1) != 0)
		g->clock_max = (double)p->value[DEVICE_sm_clock_max];
	if ((p->known >> DEVICE_sm_clock & 1) != 0) {
		g->ns += ns;
		g->clock += ns * (double)p->value[DEVICE_sm_clock];
	}
	for (i = 0; i < CAUSES && g->ns > 0; i++) {
		if ((p->known >> causes[i].q & 1) == 0)
			continue;
		told = true;
		g->held[i] += (double)p->value[causes[i].q];
		g->at[i] += (double)p->value[causes[i].q] * g->clock / g->ns;
	}
	if (told) {
		g->whole_ns += g->ns;
		g->ns = g->clock = 0;
	}
}

int load_held(struct load *l, held_fn *fn)
{
	struct gpu_held g = {.gpu = -1};
	struct all_means all = {.gpus = 0};
	struct gpu_mean mean = {.hottest = 0};
	struct reading_point p[READINGS_MAX];
	struct reading_gpu gpu;
	sqlite3_stmt *st;
	uint32_t n, i;
	int r = 0;

	/* A database of before has no such table. */
	if (sqlite3_prepare_v2(l->db, ROWS, -1, &st, NULL) != SQLITE_OK)
		return 0;
	(void)sqlite3_bind_int64(st, 1, l->session);
	while (r == 0 && sqlite3_step(st) == SQLITE_ROW) {
		const int64_t id = sqlite3_column_int64(st, 0);

		if (g.gpu != id) {
			r = tell(l, &g, fn);
			if (g.gpu >= 0)
				means_add(&all, &mean);
			mean = (struct gpu_mean){.hottest = 0};
			g = (struct gpu_held){.gpu = id};
		}
		if (reading_unpack(sqlite3_column_blob(st, 1), (size_t)sqlite3_column_bytes(st, 1),
			    &gpu, p, &n, NULL) < 0)
			continue; /* damaged: the series say so */
		for (i = 0; i < n; i++) {
			mean_add(&mean, &p[i]);
			add(&g, &p[i]);
		}
	}
	(void)sqlite3_finalize(st);
	if (r == 0)
		r = tell(l, &g, fn);
	if (g.gpu >= 0)
		means_add(&all, &mean);
	return r < 0 ? r : means_tell(l, &all, fn);
}
