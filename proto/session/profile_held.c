/* SPDX-License-Identifier: MIT. profile_held.c: whether something held the clocks of a session's GPUs. */
#include <stdio.h>

#include "profile_rows.h"
#include "reading.h"

#define HELD_MIN 0.01 /* of the time: what is less is not worth a line */
#define HOST     "4294967295"
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
			g = (struct gpu_held){.gpu = id};
		}
		if (reading_unpack(sqlite3_column_blob(st, 1), (size_t)sqlite3_column_bytes(st, 1),
			    &gpu, p, &n, NULL) < 0)
			continue; /* damaged: the series say so */
		for (i = 0; i < n; i++)
			add(&g, &p[i]);
	}
	(void)sqlite3_finalize(st);
	return r < 0 ? r : tell(l, &g, fn);
}
