/* SPDX-License-Identifier: MIT. critical_label.c: labels of the graph's edges: one of each node and part, then of each name and part. */
#include "critical_label.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct label_key {
	const struct critical_label *of;
	uint32_t node;
	enum critical_part part;
	const char *name;
};

static bool label_is(const void *arg, uint32_t at)
{
	const struct label_key *k = arg;

	return k->of[at].part == k->part && k->of[at].node == k->node;
}

static bool name_is(const void *arg, uint32_t at)
{
	const struct label_key *k = arg;

	return k->of[at].part == k->part && strcmp(k->of[at].name, k->name) == 0;
}

uint32_t critical_label(
	struct critical_labels *l, struct critical_graph *g, enum critical_part part, uint32_t node)
{
	const struct label_key k = {g->label, node, part, NULL};
	const uint32_t hash = table_mix(node, part), at = table_find(&l->at, hash, label_is, &k);

	if (at != TABLE_NONE)
		return at;
	if (!ROOM_FOR(g->label, g->cap_labels, g->n_labels) ||
		table_add(&l->at, hash, g->n_labels) == -ENOMEM) {
		l->failed = true;
		return 0;
	}
	g->label[g->n_labels] =
		(struct critical_label){node != UINT32_MAX ? l->known[node].name : "", node, part};
	return g->n_labels++;
}

static uint32_t name_hash(const char *s, enum critical_part part)
{
	uint64_t h = 0xcbf29ce484222325u;

	for (; *s != '\0'; s++)
		h = (h ^ (unsigned char)*s) * 0x100000001b3u;
	return table_mix(h, part);
}

/* The same name in several places is one. Those that are merged keep no place of their own in the list. */
int critical_labels_merge(struct critical_graph *g)
{
	uint32_t *to = malloc((g->n_labels + 1u) * sizeof(*to)), i, n = 0, hash, at;
	struct table names = {0};
	bool failed = to == NULL;

	for (i = 0; i < g->n_labels && !failed; i++) {
		const struct critical_label l = g->label[i];
		const struct label_key k = {g->label, 0, l.part, l.name};

		hash = name_hash(l.name, l.part);
		at = table_find(&names, hash, name_is, &k);
		to[i] = at != TABLE_NONE ? at : n;
		if (at != TABLE_NONE)
			continue;
		failed |= table_add(&names, hash, n) == -ENOMEM;
		g->label[n++] = l;
	}
	for (i = 0; i < g->n_edges && !failed; i++)
		g->edge[i].label = to[g->edge[i].label];
	g->n_labels = n;
	table_fini(&names);
	free(to);
	return failed ? -ENOMEM : 0;
}
