/* SPDX-License-Identifier: MIT. fuzz_summary.c: any bytes as a chunk's summary. What is read has every
 * place in range of its chunk; written and read again it is the same.
 *
 * The input's first byte says which chunk it is beside, the second whether the rest is the bytes
 * themselves or what stands in the two frames behind the compression: two bytes say how much of it
 * is in the first. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "../../proto/session/summary.h"
#include "leb.h"

#define MUST(e)   ((e) ? (void)0 : (void)(fprintf(stderr, "not true: %s\n", #e), abort()))
#define INPUT_MAX 65536u

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static void chunk_of(uint8_t which, struct trace_chunk *c)
{
	*c = (struct trace_chunk){.n = {[TRACE_N_NODES] = which % 4,
					  [TRACE_N_THREADS] = which / 4 % 4,
					  [TRACE_N_STREAMS] = which / 16 % 4,
					  [TRACE_N_SCOPES] = which / 64 * 300u,
					  [TRACE_N_OPS] = which * 7u}};
}

static void check(const struct summary *s, const struct trace_chunk *c)
{
	const uint32_t events = c->n[TRACE_N_SCOPES] + c->n[TRACE_N_OPS];
	uint32_t i, k, all = 0;

	for (i = 0; i < s->n_tracks; i++)
		MUST(s->track[i].kind < TRACK_KINDS &&
			s->track[i].place <
				c->n[s->track[i].kind == TRACK_STREAM ? TRACE_N_STREAMS
								      : TRACE_N_THREADS]);
	for (i = 0; i < s->n_levels; i++) {
		all += s->level[i].n;
		for (k = 0; k < s->level[i].n; k++) {
			const struct trace_item *v = &s->level[i].item[k];

			MUST(v->track < s->n_tracks && v->start <= v->end && v->count > 0);
			MUST(v->node < c->n[TRACE_N_NODES] && v->longest < c->n[TRACE_N_NODES]);
			MUST(v->thread == TRACE_NONE || v->thread < c->n[TRACE_N_THREADS]);
			MUST(v->count == 1 ? v->event < events : v->event == TRACE_NONE);
			MUST(k == 0 || v->track >= v[-1].track);
		}
	}
	MUST(all <= events);
}

static void same(const struct summary *a, const struct summary *b)
{
	uint32_t i;

	MUST(a->n_levels == b->n_levels && a->n_tracks == b->n_tracks && a->ns == b->ns &&
		a->ticks == b->ticks);
	for (i = 0; i < a->n_levels; i++)
		MUST(a->level[i].n == b->level[i].n &&
			memcmp(a->level[i].item, b->level[i].item,
				a->level[i].n * sizeof(*a->level[i].item)) == 0);
}

static size_t frame(uint8_t *to, const uint8_t *raw, size_t n)
{
	static uint8_t packed[2 * INPUT_MAX];
	const size_t got = ZSTD_compress(packed, sizeof(packed), raw, n, 1);
	uint8_t *at = leb_put(leb_put(to, n), got);

	MUST(!ZSTD_isError(got));
	memcpy(at, packed, got);
	return (size_t)(at - to) + got;
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	static uint8_t whole[4 * INPUT_MAX];
	struct trace_chunk c;
	struct summary s, again;
	uint32_t n_sealed;
	size_t first;
	void *sealed;

	if (n < 4 || n > INPUT_MAX)
		return 0;
	chunk_of(p[0], &c);
	if (p[1] % 2 == 0) {
		memcpy(whole, p + 2, n -= 2);
	} else {
		first = (size_t)p[2] << 8 | p[3];
		p += 4;
		n -= 4;
		first = first < n ? first : n;
		memcpy(whole, "PTS1", 4);
		p += first;
		n -= first;
		first = 4 + frame(whole + 4, p - first, first);
		n = first + frame(whole + first, p, n);
	}
	if (summary_read(whole, n, &c, 0, &s) < 0)
		return 0;
	check(&s, &c);
	MUST(summary_seal(&s, &sealed, &n_sealed) == 0);
	MUST(summary_read(sealed, n_sealed, &c, 0, &again) == 0);
	same(&s, &again);
	free(sealed);
	summary_fini(&again);
	summary_fini(&s);
	return 0;
}
