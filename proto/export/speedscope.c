/* SPDX-License-Identifier: MIT. speedscope.c: the format speedscope: a file of speedscope's own
 * schema (https://www.speedscope.app/file-format-schema.json), a profile each for GPU time, CPU
 * time and that of samples, of events: a node opens, what is below it follows, it closes. `at` counts nanoseconds of
 * cost, not of the clock. No I/O. */
#include <stdlib.h>

#include "cost.h"
#include "export_format.h"
#include "name_set.h"
#include "text.h"

struct writer {
	const struct profile *p;
	struct costs c;
	struct name_set names;
	uint32_t *frame; /* [n_nodes]: number of its name */
	struct text out;
};

static int find_frames(struct writer *w)
{
	uint32_t i;

	w->frame = calloc(w->p->n_nodes, sizeof(*w->frame));
	if (w->frame == NULL)
		return -ENOMEM;
	for (i = 0; i < w->p->n_nodes; i++) {
		w->frame[i] = name_set_add(&w->names, w->p->node[i].name);
		if (w->frame[i] == TABLE_NONE)
			return -ENOMEM;
	}
	return 0;
}

static void put_event(struct writer *w, char type, uint32_t node, uint64_t at, bool *any)
{
	text_fmt(&w->out, "%s{\"type\":\"%c\",\"frame\":%u,\"at\":%llu}", *any ? ",\n" : "\n", type,
		w->frame[node], (unsigned long long)at);
	*any = true;
}

/* The nodes of the tree that cost anything, opened and closed; what a node costs by itself comes
 * before its children. */
static void put_events(struct writer *w, enum cost k)
{
	const uint64_t end = w->c.all[0][k];
	uint64_t at = w->c.self[0][k];
	uint32_t node = 0, next, up;
	bool any = false;

	for (;;) {
		next = cost_next(w->p, node, &up);
		for (; up > 0 && node != 0; up--, node = w->p->node[node].parent)
			if (w->c.all[node][k] > 0)
				put_event(w, 'C', node, at, &any);
		if (next == PROFILE_NONE)
			return;
		node = next;
		if (w->c.all[node][k] > 0)
			put_event(w, 'O', node, at, &any);
		at = w->c.self[node][k] > end - at ? end : at + w->c.self[node][k];
	}
}

static void put_profile(struct writer *w, enum cost k, bool *any)
{
	if (w->c.all[0][k] == 0)
		return;
	text_fmt(&w->out,
		"%s\n{\"type\":\"evented\",\"name\":\"%s\",\"unit\":\"nanoseconds\",\"startValue\":"
		"0,"
		"\"endValue\":%llu,\"events\":[",
		*any ? "," : "", cost_names[k], (unsigned long long)w->c.all[0][k]);
	put_events(w, k);
	text_str(&w->out, "]}");
	*any = true;
}

static void put_file(struct writer *w)
{
	bool any = false;
	uint32_t i;

	text_str(&w->out, "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\","
			  "\"exporter\":\"protond " PROTOND_BUILD_VERSION "\",\"name\":");
	text_json(&w->out, w->p->head.name != NULL ? w->p->head.name : "protond");
	text_str(&w->out, ",\"activeProfileIndex\":0,\"shared\":{\"frames\":[");
	for (i = 0; i < w->names.n; i++) {
		text_str(&w->out, i > 0 ? ",\n{\"name\":" : "\n{\"name\":");
		text_json(&w->out, w->names.name[i]);
		text_char(&w->out, '}');
	}
	text_str(&w->out, "]},\"profiles\":[");
	put_profile(w, COST_gpu_time, &any);
	put_profile(w, COST_cpu_time, &any);
	put_profile(w, COST_sample_time, &any);
	text_str(&w->out, "]}\n");
}

int speedscope_write(const struct profile *p, char **ret_text, size_t *ret_bytes)
{
	struct writer w = {.p = p};
	int r = costs_new(p, &w.c);

	if (r == 0)
		r = find_frames(&w);
	if (r == 0) {
		put_file(&w);
		r = text_take(&w.out, ret_text, ret_bytes);
	}
	costs_free(&w.c);
	name_set_fini(&w.names);
	free(w.frame);
	return r;
}
