/* SPDX-License-Identifier: MIT. trace_differ.h: two chunks of a timeline, field by field. */
#ifndef TRACE_DIFFER_H
#define TRACE_DIFFER_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "trace.h"

/* clang-format off */
#define FIELDS(X)                                                                                \
	X(SCOPES, scope, begin) X(SCOPES, scope, end) X(SCOPES, scope, thread)                   \
	X(SCOPES, scope, node) X(SCOPES, scope, segment) X(SCOPES, scope, flags)                 \
	X(SCOPES, scope, call.event) X(SCOPES, scope, call.correlation)                          \
	X(SCOPES, scope, call.stream) X(SCOPES, scope, call.class)                               \
	X(OPS, op, launched) X(OPS, op, start) X(OPS, op, end) X(OPS, op, bytes)                 \
	X(OPS, op, correlation) X(OPS, op, thread) X(OPS, op, node) X(OPS, op, segment)          \
	X(OPS, op, stream) X(OPS, op, config) X(OPS, op, class) X(OPS, op, flags)                \
	X(METRICS, metric, clock) X(METRICS, metric, bits) X(METRICS, metric, thread)            \
	X(METRICS, metric, node) X(METRICS, metric, segment) X(METRICS, metric, name)            \
	X(METRICS, metric, type)
#define BURST_FIELDS(X) X(begin) X(end) X(n) X(thread) X(segment)
/* clang-format on */

/* The name of the first difference; NULL: there is none. */
static const char *differ(const struct trace_chunk *a, const struct trace_chunk *b)
{
	const uint32_t *n = a->n;
	uint32_t i;

	if (memcmp(n, b->n, sizeof(a->n)) != 0)
		return "a count";
	for (i = 0; i < n[TRACE_N_TEXTS]; i++)
		if (strcmp(a->text[i], b->text[i]) != 0)
			return "text";
#define X(count, list)                                                                  \
	if (n[TRACE_N_##count] > 0 &&                                                   \
		memcmp(a->list, b->list, n[TRACE_N_##count] * sizeof(a->list[0])) != 0) \
		return #list;
	X(NODES, node)
	X(THREADS, thread)
	X(STREAMS, stream)
	X(CONFIGS, config)
#undef X
#define X(count, list, field)                             \
	for (i = 0; i < n[TRACE_N_##count]; i++)          \
		if (a->list[i].field != b->list[i].field) \
			return #list "." #field;
	FIELDS(X)
#undef X
	if (a->n_bursts != b->n_bursts)
		return "how many bursts";
#define X(field)                                            \
	for (i = 0; i < a->n_bursts; i++)                   \
		if (a->burst[i].field != b->burst[i].field) \
			return "burst." #field;
	BURST_FIELDS(X)
#undef X
	return NULL;
}
#undef FIELDS
#undef BURST_FIELDS

#endif
