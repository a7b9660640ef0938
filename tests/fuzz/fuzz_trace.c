/* SPDX-License-Identifier: MIT. fuzz_trace.c: any bytes as a chunk of the timeline. What is read
 * has every place in range; packed and read again it is the same, and so are the bytes of it.
 *
 * Most inputs are changed behind their compression: one column is unpacked, changed, packed again.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "../unit/trace_differ.h"
#include "trace.h"

#define MUST(e)  ((e) ? (void)0 : (void)(fprintf(stderr, "not true: %s\n", #e), abort()))
#define PART_MAX 4096u

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t n, size_t max, unsigned int seed);
size_t LLVMFuzzerMutate(uint8_t *bytes, size_t n, size_t max);

/* --- the test */

static void check_ops(const struct trace_chunk *c)
{
	const struct trace_op *o = c->op;
	uint32_t i;

	for (i = 0; i < c->n[TRACE_N_OPS]; i++, o++) {
		MUST(o->node < c->n[TRACE_N_NODES] && o->stream < c->n[TRACE_N_STREAMS]);
		MUST((o->flags & TRACE_UNLAUNCHED) != 0 ? o->thread == TRACE_NONE
							: o->thread < c->n[TRACE_N_THREADS]);
		MUST(o->config == TRACE_NONE ||
			(o->config < c->n[TRACE_N_CONFIGS] && gpu_class_is_kernel(o->class)));
		MUST(o->class > CLASS_CPU && o->class < CLASS_MAX && o->start <= o->end);
	}
}

static void check_places(const struct trace_chunk *c)
{
	const struct trace_scope *s = c->scope;
	const struct trace_metric *m = c->metric;
	const uint32_t *n = c->n;
	uint32_t i;

	for (i = 0; i < TRACE_COUNT_MAX; i++)
		MUST(n[i] <= TRACE_COUNT_LIMIT);
	for (i = 0; i < n[TRACE_N_TEXTS]; i++)
		MUST(strlen(c->text[i]) < SIZE_MAX);
	for (i = 0; i < n[TRACE_N_THREADS]; i++)
		MUST(c->thread[i].name == TRACE_NONE || c->thread[i].name < n[TRACE_N_TEXTS]);
	for (i = 0; i < n[TRACE_N_SCOPES]; i++, s++)
		MUST(s->thread < n[TRACE_N_THREADS] && s->node < n[TRACE_N_NODES] &&
			s->begin <= s->end);
	for (i = 0; i < n[TRACE_N_METRICS]; i++, m++) {
		MUST(m->thread < n[TRACE_N_THREADS] && m->node < n[TRACE_N_NODES]);
		MUST(m->name < n[TRACE_N_TEXTS] && m->type <= VALUE_STR);
		MUST(m->type != VALUE_STR || m->bits < n[TRACE_N_TEXTS]);
	}
	for (i = 0; i < c->n_bursts; i++)
		MUST(c->burst[i].thread < n[TRACE_N_THREADS] &&
			c->burst[i].begin <= c->burst[i].end);
	MUST(c->n_bursts <= TRACE_COUNT_LIMIT);
	check_ops(c);
}

static void pack(struct trace_pack *k, const struct trace_chunk *c)
{
	uint32_t i;

	for (i = 0; i < c->n[TRACE_N_NODES]; i++)
		MUST(trace_pack_node(k, c->node[i]));
	for (i = 0; i < c->n[TRACE_N_THREADS]; i++)
		MUST(trace_pack_thread(k, &c->thread[i]));
	for (i = 0; i < c->n[TRACE_N_STREAMS]; i++)
		MUST(trace_pack_stream(k, &c->stream[i]));
	for (i = 0; i < c->n[TRACE_N_CONFIGS]; i++)
		MUST(trace_pack_config(k, &c->config[i]));
	for (i = 0; i < c->n[TRACE_N_TEXTS]; i++)
		MUST(trace_pack_text(k, c->text[i], (uint32_t)strlen(c->text[i])));
	for (i = 0; i < c->n[TRACE_N_SCOPES]; i++)
		MUST(trace_pack_scope(k, &c->scope[i]));
	for (i = 0; i < c->n[TRACE_N_OPS]; i++)
		MUST(trace_pack_op(k, &c->op[i]));
	for (i = 0; i < c->n[TRACE_N_METRICS]; i++)
		MUST(trace_pack_metric(k, &c->metric[i]));
	for (i = 0; i < c->n_bursts; i++)
		MUST(trace_pack_burst(k, &c->burst[i]));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	struct trace_pack k = {.raw = 0};
	struct trace_chunk a, b;
	struct err e = {.code = 0};
	void *once, *twice;
	uint32_t n_once, n_twice;

	if (trace_chunk_read(bytes, n, &a, &e) < 0) {
		MUST(e.code == -EBADMSG && e.text[0] != '\0');
		return 0;
	}
	check_places(&a);
	pack(&k, &a);
	MUST(trace_pack_seal(&k, &once, &n_once) == 0);
	MUST(trace_chunk_read(once, n_once, &b, &e) == 0);
	MUST(differ(&a, &b) == NULL);
	trace_pack_clear(&k);
	pack(&k, &b);
	MUST(trace_pack_seal(&k, &twice, &n_twice) == 0);
	MUST(n_once == n_twice && memcmp(once, twice, n_once) == 0);
	trace_pack_fini(&k);
	trace_chunk_fini(&a);
	trace_chunk_fini(&b);
	free(once);
	free(twice);
	return 0;
}

/* --- inputs that get behind the compression */

struct part {
	const uint8_t *packed;
	size_t raw_n, packed_n;
};

static uint8_t *number_put(uint8_t *p, uint64_t v)
{
	for (; v >= 0x80; v >>= 7)
		*p++ = (uint8_t)(v | 0x80);
	*p++ = (uint8_t)v;
	return p;
}

static bool number_get(const uint8_t **at, const uint8_t *end, size_t *ret)
{
	uint32_t shift;

	*ret = 0;
	for (shift = 0; shift < 64 && *at < end; shift += 7) {
		*ret |= (size_t)(**at & 0x7f) << shift;
		if (*(*at)++ < 0x80)
			return true;
	}
	return false;
}

static bool take_apart(const uint8_t *at, size_t n, size_t *count, struct part *part)
{
	const uint8_t *end = at + n;
	uint32_t i;

	if (n < 4)
		return false;
	at += 4;
	for (i = 0; i < TRACE_COUNT_MAX; i++)
		if (!number_get(&at, end, &count[i]))
			return false;
	for (i = 0; i < TRACE_COLUMN_MAX; i++) {
		part[i] = (struct part){.raw_n = 0};
		if (i >= TRACE_CALLS && at == end) /* it is left out */
			continue;
		if (!number_get(&at, end, &part[i].raw_n) ||
			!number_get(&at, end, &part[i].packed_n) ||
			part[i].packed_n > (size_t)(end - at))
			return false;
		part[i].packed = at;
		at += part[i].packed_n;
	}
	return true;
}

/* Another column, packed into `room`. */
static bool change(struct part *p, uint8_t *room, size_t cap)
{
	uint8_t raw[PART_MAX];
	size_t n = 0;

	if (p->packed_n > 0)
		n = ZSTD_decompress(raw, sizeof(raw), p->packed, p->packed_n);
	if (ZSTD_isError(n))
		return false;
	p->raw_n = LLVMFuzzerMutate(raw, n, sizeof(raw));
	p->packed_n = ZSTD_compress(room, cap, raw, p->raw_n, 1);
	p->packed = room;
	return !ZSTD_isError(p->packed_n);
}

size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t n, size_t max, unsigned int seed)
{
	static uint8_t room[2 * PART_MAX], whole[1u << 20];
	struct part part[TRACE_COLUMN_MAX];
	size_t count[TRACE_COUNT_MAX];
	uint8_t *at = whole + 4;
	uint32_t i, one = (seed >> 8) % TRACE_COUNT_MAX;

	if (seed % 8 == 0 || n > sizeof(whole) / 2 || !take_apart(bytes, n, count, part) ||
		!change(&part[(seed >> 16) % TRACE_COLUMN_MAX], room, sizeof(room)))
		return LLVMFuzzerMutate(bytes, n, max);
	if (seed % 8 < 3)
		count[one] += seed % 8 == 1 ? 1 : SIZE_MAX; /* one less */
	memcpy(whole, "PTC2", 4);                           /* with all columns */
	for (i = 0; i < TRACE_COUNT_MAX; i++)
		at = number_put(at, count[i]);
	for (i = 0; i < TRACE_COLUMN_MAX; i++) {
		at = number_put(at, part[i].raw_n);
		at = number_put(at, part[i].packed_n);
		if (part[i].packed_n > 0)
			memcpy(at, part[i].packed, part[i].packed_n);
		at += part[i].packed_n;
	}
	if ((size_t)(at - whole) > max)
		return LLVMFuzzerMutate(bytes, n, max);
	memcpy(bytes, whole, (size_t)(at - whole));
	return (size_t)(at - whole);
}
