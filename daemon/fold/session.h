/* SPDX-License-Identifier: MIT. session.h: a named recording: its parts, its notes, and when it was
 * active. session.c keeps that state; verb.c decides when it changes. */
#ifndef PROTOND_SESSION_H
#define PROTOND_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "busy.h"
#include "chunks.h"
#include "must.h"
#include "notes.h"
#include "readings.h"
#include "tables.h"

struct fold;
struct part;
struct process;

#define SESSION_MAGIC 0x53534553u /* "SESS" */
#define SPANS_MAX     65536u      /* activations and phases of a session */
#define SPANS_LEAST   4096u       /* of all sessions that weigh on a job, whatever its room */

struct span_row {
	struct span span; /* monotonic ns; end 0: open */
	bool dirty;
};

struct spans {
	struct span_row *v;
	uint32_t n, cap, dirty; /* dirty: how many are, near the end */
};

struct session {
	struct fold *fold;
	struct row_session row;
	bool dirty, gpu_seen;
	uint32_t collected; /* the round of the last collect that had its row; 0: stored before */
	uint32_t magic;
	struct spans active, segment;
	struct part **part;
	uint32_t n_parts, cap_parts;
	uint32_t n_processes; /* members ever */
	struct note *note;
	uint32_t n_notes, cap_notes, notes_stored;
	uint64_t opened_ns, closed_ns; /* monotonic: active since (0: not); last end */
	struct chunks chunks;
	struct readings readings;
};

#define MUST_SESSION(s) MUST((s) != NULL && (s)->magic == SESSION_MAGIC)

struct session *session_find(const struct fold *f, const uint8_t uuid[16]); /* NULL */
struct session *session_by_id(const struct fold *f, int64_t id);
struct part *session_part(const struct session *s, const struct process *p);
uint64_t session_bytes(const struct session *s);  /* about: what its rows take of the database */
bool session_is_current(const struct session *s); /* not finalized */
/* The uuid of a job's own session: any daemon finds the same. */
void session_number_uuid(const uint8_t ring[16], uint32_t number, uint8_t ret[16]);

/* When it was active, and its phases; in CLOCK_MONOTONIC. */
void session_open(struct session *s, uint64_t ns);
void session_close(struct session *s, uint64_t ns);
bool session_has_room_for(const struct session *s, const struct spans *spans); /* one more */
bool session_span_add(struct session *s, struct spans *spans, uint64_t ns); /* false: no memory */
void session_span_end(struct session *s, struct spans *spans, uint64_t ns); /* of the last one */
/* The machine booted: it goes on at `ns` of the new clock. */
void session_boot(struct session *s, uint64_t ns);

#endif
