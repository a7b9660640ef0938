/* SPDX-License-Identifier: MIT. adopt.c: a ring becomes a process of the fold. */
#include "adopt.h"

#include <stdio.h>
#include <string.h>

#include "entry.h"
#include "journal.h"
#include "message.h"
#include "own_sessions.h"
#include "rendezvous.h"
#include "rings.h"

static void fill_process(const struct ring *r, const struct ring_origin *o, struct j_process *ret)
{
	const struct ring_header *h = &r->reader.h;

	*ret = (struct j_process){
		.pid = r->pid,
		.ns_pid = h->pid,
		.uid = r->uid,
		.clock = h->clock,
		.tsc_khz = h->tsc_khz,
		.n_lanes = h->n_lanes,
		.lane_bytes = h->lane_bytes,
		.flags = (o->flags & (RV_INJECTED | RV_FORKED | RV_OFFERED)) |
			 ((o->flags & RV_FORKED) != 0 ? PROCESS_JOINS : 0) |
			 ((h->abi & 0xffff) >= RING_ABI_CUTS ? PROCESS_CUTS : 0),
		.pid_start = r->pid_start,
		.created_clock = h->created_clock,
		.created_monotonic_ns = h->created_monotonic_ns,
		.created_realtime_ns = h->created_realtime_ns,
	};
	memcpy(ret->boot_id, h->boot_id, 16);
	memcpy(ret->parent, h->parent, 16);
	if (o->token != NULL)
		memcpy(ret->token, o->token, 16);
	(void)snprintf(
		ret->version, sizeof(ret->version), "%s", o->version != NULL ? o->version : "");
}

int ring_adopt(struct ring *r, const struct ring_origin *o)
{
	struct {
		struct j_process j;
		char info[RING_INFO_BYTES];
	} e;
	const char *command, *replay;
	int x;

	if (r->adopted)
		return 0;
	fill_process(r, o, &e.j);
	x = reader_info(&r->reader, e.info, &e.j.info_bytes);
	if (x < 0)
		return x;
	replay = message_info(e.info, e.j.info_bytes, "replay");
	e.j.replay = replay != NULL && replay[0] == '1';
	x = entry_put(
		r->all->entries, J_PROCESS, r->uuid, &e, (uint32_t)sizeof(e.j) + e.j.info_bytes);
	if (x < 0)
		return x;
	r->adopted = true;
	entry_anchor(r->all->entries, 0);
	command = message_info(e.info, e.j.info_bytes, "command");
	session_auto(r, command != NULL ? command : "");
	return 0;
}

bool ring_is_used(struct ring *r)
{
	struct ring_counts c;
	bool moved;

	/* What cannot be read is said where it is drained. */
	if (reader_lanes(&r->reader, false, &moved) < 0 || reader_counts(&r->reader, &c) < 0)
		return true;
	return r->reader.n_seen > 1 || c.paths > PATH_OTHER + 1 || c.drop_no_lane != 0;
}

int ring_put_state(const struct ring *r, const struct rv_state *state)
{
	const struct gpu_report *s = &state->gpu;
	struct j_state j = {
		.gpu = s->state,
		.code = s->code,
		.library_version = s->library_version,
		.driver_version = s->driver_version,
	};

	memcpy(j.path, s->path, sizeof(j.path));
	memcpy(j.words, s->words, sizeof(j.words));
	return entry_put(r->all->entries, J_STATE, r->uuid, &j, sizeof(j));
}
