/* SPDX-License-Identifier: MIT. member.c: one process in one session, from the first event to
 * the last. */
#include "member.h"

#include <stdlib.h>
#include <string.h>

#include "allocs.h"
#include "blocks.h"
#include "correlate.h"
#include "counted.h"
#include "journal.h"
#include "loss.h"
#include "part.h"
#include "process.h"
#include "session.h"
#include "session_terms.h"
#include "state.h"
#include "step_series.h"
#include "timeline.h"
#include "tree.h"

void part_set_picks(struct part *part)
{
	part->picky = part->domains != NULL ||
		      (part->process->operators && (part->switches & SWITCH_OPS) == 0);
	part->cpu_plain = part->cpu && !part->picky;
	part->odd_places = part->python || part->picky;
	part->domain_asked = NAME_NONE;
}

void part_set_switches(struct part *part)
{
	part->switches = part->session->row.switches;
	part_set_picks(part);
	counted_tell(part);
}

struct part *part_new(struct session *s, struct process *p)
{
	struct part *part, **at;

	MUST_SESSION(s);
	MUST_PROCESS(p);
	MUST(s->fold == p->fold);
	if (!ROOM_FOR(s->part, s->cap_parts, s->n_parts))
		return NULL;
	part = calloc(1, sizeof(*part));
	if (part == NULL)
		return NULL;
	part->magic = PART_MAGIC;
	part->session = s;
	part->process = p;
	part->cpu = s->row.cpu == 0;
	part->gpu = s->row.gpu == SESSION_GPU_WANTED && strcmp(s->row.backend, "none") != 0;
	part->python = s->row.context == 1;
	part->domains = *s->row.nvtx_domains != '\0' ? s->row.nvtx_domains : NULL;
	part_set_switches(part);
	if (s->row.data != SESSION_TREE) {
		part->timeline = calloc(1, sizeof(*part->timeline));
		if (part->timeline == NULL) {
			free(part);
			return NULL;
		}
	}
	s->part[s->n_parts++] = part;
	for (at = &p->member; *at != NULL; at = &(*at)->next)
		;
	*at = part;
	s->n_processes++;
	s->dirty = true;
	return part;
}

void part_free(struct part *part)
{
	struct part **at;

	if (part == NULL)
		return;
	MUST_PART(part);
	for (at = &part->process->member; *at != part; at = &(*at)->next)
		;
	*at = part->next;
	MUST(!part->attached || part->process->fold->ending);
	MUST(part->process->tree_bytes >= part->tree.bytes);
	part->process->tree_bytes -= part->tree.bytes;
	process_weigh(part->process);
	window_fini(&part->window);
	tree_fini(&part->tree);
	timeline_free(part);
	step_series_free(part);
	allocs_free(part);
	part->magic = 0;
	free(part);
}

void part_attach_at(struct part *part, uint8_t slot)
{
	struct process *p = part->process;

	MUST_PART(part);
	MUST(!part->attached && p->n_parts < PARTS_MAX);
	MUST(slot < PARTS_MAX && p->slot[slot] == NULL);
	part->slot = slot;
	part->attached = true;
	p->slot[slot] = part;
	p->part[p->n_parts++] = part;
	p->dirty = true;
}

bool part_attach(struct part *part)
{
	struct process *p = part->process;
	uint8_t slot;

	MUST_PART(part);
	MUST(!part->attached);
	if (p->n_parts == PARTS_MAX)
		return false;
	for (slot = 0; p->slot[slot] != NULL; slot++)
		;
	part->window.first_segment =
		part->session->segment.n == 0 ? 0 : part->session->segment.n - 1;
	part_set_segment(part, 0);
	part_attach_at(part, slot);
	return true;
}

static uint64_t window_bytes(const struct window *w)
{
	return w->cap_active * sizeof(*w->active) + w->cap_segments * sizeof(*w->segment);
}

void part_set_segment(struct part *part, uint64_t clock)
{
	const uint64_t before = window_bytes(&part->window);

	MUST_PART(part);
	part->process->dirty = true;
	if (window_segment_add(&part->window, clock) < 0)
		part->process->fold->no_memory = true;
	part_grew(part, window_bytes(&part->window) - before);
}

void part_set_active(struct part *part, bool active, uint64_t clock)
{
	struct process *p = part->process;
	const uint64_t before = window_bytes(&part->window);
	uint64_t forgotten = 0;

	MUST_PART(part);
	MUST(part->attached);
	p->dirty = true;
	if (!active)
		window_close(&part->window, clock);
	else if (window_open(&part->window, &p->clock, clock,
			 process_has_room(p) ? WINDOW_ACTIVE_MAX : WINDOW_ACTIVE_LEAST,
			 &forgotten) < 0)
		p->fold->no_memory = true;
	part_grew(part, window_bytes(&part->window) - before);
	if (forgotten > 0)
		note_count(part, NOTE_FORGOTTEN, forgotten);
}

void part_detach(struct part *part, uint64_t clock)
{
	struct process *p = part->process;
	uint32_t i;

	MUST_PART(part);
	MUST(part->attached && p->slot[part->slot] == part);
	for (i = 0; i < p->n_now; i++)
		if (p->now[i].path < p->n_paths)
			tree_open_scope(part, &p->lane[p->now[i].lane], p->now[i].path,
				p->now[i].begin, clock);
	correlate_detach(p, part);
	allocs_settle(part, UINT64_MAX);
	blocks_settle(part, UINT64_MAX);
	timeline_seal(part);
	for (i = 0; p->part[i] != part; i++)
		;
	memmove(p->part + i, p->part + i + 1, (p->n_parts - i - 1) * sizeof(p->part[0]));
	p->n_parts--;
	p->slot[part->slot] = NULL;
	p->dirty = true;
	part->attached = false;
	window_fini(&part->window);
}
