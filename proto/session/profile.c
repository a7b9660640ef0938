/* SPDX-License-Identifier: MIT. profile.c: one session as a tree of named nodes with metrics: the
 * building of it. Owns every string. Single-threaded. No I/O. */
#include "profile.h"

#include <stdlib.h>
#include <string.h>

#include "arena.h"
#include "pages.h"
#include "utf8.h"

#define VALUES_MAX ((size_t)64 << 20)
#define ELLIPSIS   "\xe2\x80\xa6"

/* INVARIANT: value has cap_nodes * n_metrics elements, zero (VALUE_NONE) from n_nodes on. */
struct profile_own {
	struct profile p; /* first: a struct profile * is one of these */
	uint32_t cap_nodes, cap_metrics;
	uint32_t *last_child; /* [cap_nodes], PROFILE_NONE: no child */
};

static struct profile_own *own(struct profile *p)
{
	return (struct profile_own *)(void *)p;
}

/* Bytes of the valid UTF-8 character at s, 0 when it is none; NUL counts as none. */
static size_t utf8_char(const unsigned char *s, size_t n)
{
	static const uint32_t least[5] = {0, 1, 0x80, 0x800, 0x10000};
	uint32_t c = s[0];
	size_t len = c < 0x80 ? 1 : c >> 5 == 6 ? 2 : c >> 4 == 14 ? 3 : c >> 3 == 30 ? 4 : 0, i;

	if (len == 0 || len > n)
		return 0;
	c &= len == 1 ? 0x7fu : 0xffu >> (len + 1);
	for (i = 1; i < len; i++) {
		if (s[i] >> 6 != 2)
			return 0;
		c = c << 6 | (s[i] & 0x3fu);
	}
	if (c < least[len] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
		return 0;
	return len;
}

const char *profile_text(struct profile *p, const char *text, size_t bytes)
{
	const unsigned char *s = (const unsigned char *)text;
	const bool cut = bytes > PROFILE_TEXT_MAX;
	size_t i = 0, n = 0, len;
	char *out;

	if (cut) /* not within a character, if it has any */
		for (bytes = PROFILE_TEXT_MAX, i = 0; i < 3 && s[bytes] >> 6 == 2; i++)
			bytes--;
	for (i = utf8_plain(text, bytes); i < bytes && (len = utf8_char(s + i, bytes - i)) != 0;
		i += len)
		;
	if (i == bytes && !cut)
		return arena_text(p->arena, text, bytes);
	/* Not clean: each bad byte becomes U+FFFD and NUL becomes U+2400, both three bytes long. */
	out = arena_take(p->arena, bytes * 3 + sizeof(ELLIPSIS));
	if (out == NULL)
		return NULL;
	for (i = 0; i < bytes; i += len) {
		len = utf8_char(s + i, bytes - i);
		if (len != 0) {
			memcpy(out + n, s + i, len);
			n += len;
			continue;
		}
		memcpy(out + n, s[i] == 0 ? "\xe2\x90\x80" : "\xef\xbf\xbd", 3);
		n += 3;
		len = 1;
	}
	if (cut)
		memcpy(out + n, ELLIPSIS, sizeof(ELLIPSIS));
	return out;
}

int profile_reserve(struct profile *p, uint32_t nodes)
{
	struct profile_own *o = own(p);
	uint32_t cap = nodes > PROFILE_NODES_MAX ? PROFILE_NODES_MAX : nodes;
	struct profile_node *node;
	struct value *value;
	uint32_t *last;

	if (cap <= o->cap_nodes)
		return 0;
	if (p->n_metrics > 0 && cap > VALUES_MAX / p->n_metrics)
		return -ENOMEM;
	/* calloc, not realloc: what a large tree does not fill costs no page. */
	value = calloc((size_t)cap * (p->n_metrics > 0 ? p->n_metrics : 1), sizeof(*value));
	if (value == NULL)
		return -ENOMEM;
	pages_large(value, (size_t)cap * p->n_metrics * sizeof(*value));
	memcpy(value, p->value, (size_t)p->n_nodes * p->n_metrics * sizeof(*value));
	free(p->value);
	p->value = value;
	node = realloc(p->node, cap * sizeof(*node));
	if (node == NULL)
		return -ENOMEM;
	p->node = node;
	pages_large(node, cap * sizeof(*node));
	last = realloc(o->last_child, cap * sizeof(*last));
	if (last == NULL)
		return -ENOMEM;
	o->last_child = last;
	o->cap_nodes = cap;
	return 0;
}

struct profile *profile_new(void)
{
	struct profile_own *o = calloc(1, sizeof(*o));

	if (o == NULL)
		return NULL;
	o->p.arena = arena_new();
	o->p.value = calloc(1, sizeof(*o->p.value));
	o->p.head.overhead = o->p.head.recording_cost = __builtin_nan("");
	if (o->p.arena == NULL || o->p.value == NULL || profile_reserve(&o->p, 64) < 0) {
		profile_free(&o->p);
		return NULL;
	}
	o->p.node[0] = (struct profile_node){.name = "ROOT",
		.parent = PROFILE_NONE,
		.first_child = PROFILE_NONE,
		.next_sibling = PROFILE_NONE,
		.kind = NODE_ROOT};
	o->last_child[0] = PROFILE_NONE;
	o->p.n_nodes = 1;
	return &o->p;
}

void profile_free(struct profile *p)
{
	if (p == NULL)
		return;
	arena_free(p->arena);
	free(p->node);
	free(p->metric);
	free(p->value);
	free(p->device);
	free(p->durations);
	free(p->config);
	free(p->head.losses);
	free(p->head.notes);
	free(own(p)->last_child);
	free(own(p));
}

uint32_t profile_add_node(struct profile *p, uint32_t parent, const char *name, uint8_t kind)
{
	const char *copy = profile_text(p, name, strlen(name));

	return copy == NULL ? PROFILE_NONE : profile_adopt_node(p, parent, copy, kind);
}

uint32_t profile_adopt_node(struct profile *p, uint32_t parent, const char *owned, uint8_t kind)
{
	struct profile_own *o = own(p);
	uint32_t at = p->n_nodes;

	if (at >= PROFILE_NODES_MAX || parent >= at || p->node[parent].depth >= PROFILE_DEPTH_MAX)
		return PROFILE_NONE;
	if (at == o->cap_nodes && profile_reserve(p, at * 2) < 0)
		return PROFILE_NONE;
	p->node[at] = (struct profile_node){.name = owned,
		.parent = parent,
		.first_child = PROFILE_NONE,
		.next_sibling = PROFILE_NONE,
		.depth = p->node[parent].depth + 1,
		.kind = kind};
	if (o->last_child[parent] == PROFILE_NONE)
		p->node[parent].first_child = at;
	else
		p->node[o->last_child[parent]].next_sibling = at;
	o->last_child[parent] = at;
	o->last_child[at] = PROFILE_NONE;
	p->n_nodes++;
	return at;
}

uint32_t profile_find_metric(const struct profile *p, const char *name)
{
	uint32_t i;

	for (i = 0; i < p->n_metrics; i++)
		if (strcmp(p->metric[i].name, name) == 0)
			return i;
	return PROFILE_NONE;
}

/* One more column: rows move apart, from the last to the first. */
static int widen(struct profile *p)
{
	struct profile_own *o = own(p);
	uint32_t m = p->n_metrics, i;
	struct value *wide;

	if (o->cap_nodes > VALUES_MAX / (m + 1))
		return -ENOMEM;
	wide = calloc((size_t)o->cap_nodes * (m + 1), sizeof(*wide));
	if (wide == NULL)
		return -ENOMEM;
	for (i = 0; i < p->n_nodes && m > 0; i++)
		memcpy(wide + (size_t)i * (m + 1), p->value + (size_t)i * m, m * sizeof(*wide));
	free(p->value);
	p->value = wide;
	return 0;
}

uint32_t profile_add_metric(struct profile *p, const char *name, uint8_t kind)
{
	struct profile_own *o = own(p);
	uint32_t at = profile_find_metric(p, name), cap;
	struct profile_metric *metric;
	const char *copy;

	if (at != PROFILE_NONE)
		return at;
	at = p->n_metrics;
	if (at >= PROFILE_METRICS_MAX)
		return PROFILE_NONE;
	if (at == o->cap_metrics) {
		cap = at == 0 ? 16 : at * 2;
		metric = realloc(p->metric, cap * sizeof(*metric));
		if (metric == NULL)
			return PROFILE_NONE;
		p->metric = metric;
		o->cap_metrics = cap;
	}
	copy = profile_text(p, name, strlen(name));
	if (copy == NULL || widen(p) < 0)
		return PROFILE_NONE;
	p->metric[at] = (struct profile_metric){.name = copy, .kind = kind};
	p->n_metrics++;
	return at;
}

int profile_set(struct profile *p, uint32_t node, uint32_t metric, struct value v)
{
	double *copy;

	if (v.type == VALUE_STR) {
		v.s = profile_text(p, v.s, strlen(v.s));
		if (v.s == NULL)
			return -ENOMEM;
	} else if (v.type == VALUE_VECTOR) {
		copy = arena_take(p->arena, v.n * sizeof(*copy));
		if (copy == NULL)
			return -ENOMEM;
		if (v.n > 0)
			memcpy(copy, v.v, v.n * sizeof(*copy));
		v.v = copy;
	}
	p->value[(size_t)node * p->n_metrics + metric] = v;
	return 0;
}
