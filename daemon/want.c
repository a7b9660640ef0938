/* SPDX-License-Identifier: MIT. want.c: what is wanted of a job. */
#include "want.h"

#include <string.h>

#include "config.h"
#include "conn.h"
#include "daemon.h"
#include "fold.h"
#include "rings.h"
#include "words.h"

/* What a session may match a job by. */
struct job_face {
	uint32_t uid, pid;
	const uint8_t *token;
	const char *command;
};

struct wanting {
	const struct job_face *j;
	uint32_t want;
};

static bool matches(const struct fold_session *s, const struct job_face *j)
{
	static const uint8_t none[16];

	if (s->uid != j->uid && s->uid != 0)
		return false;
	switch ((enum match_kind)s->match) {
	case MATCH_PID:
		return s->pid == j->pid && j->pid != 0 && s->uid == j->uid;
	case MATCH_TOKEN:
		return memcmp(s->token, j->token, 16) == 0 && memcmp(j->token, none, 16) != 0;
	case MATCH_USER:
		return true;
	case MATCH_COMMAND:
		return words_match(s->command, j->command);
	case MATCH_RING:
	default:
		return false;
	}
}

static void wanting_each(void *arg, const struct fold_session *s)
{
	struct wanting *w = arg;
	bool gpu;

	if (s->state != SESSION_IS_ACTIVE || !matches(s, w->j))
		return;
	w->want |= WANT_SCOPES | WANT_METRICS;
	if (s->cpu == SESSION_CPU_ON)
		w->want |= WANT_CPU_TIME;
	gpu = s->gpu == SESSION_GPU_WANTED && strcmp(s->backend, "none") != 0;
	w->want |= (gpu ? (uint32_t)WANT_GPU : 0) | want_of_switches(s->switches, gpu);
	if (s->gpu == SESSION_GPU_ARMED)
		w->want |= WANT_GPU_ARMED;
	if (s->context == SESSION_PYTHON)
		w->want |= WANT_PYTHON;
}

static uint32_t want_before_ring(const struct daemon *d, const struct job_face *j)
{
	struct wanting w = {.j = j};

	if (d->config->mode != AUTO_OFF)
		w.want = WANT_SCOPES | WANT_CPU_TIME | WANT_METRICS;
	if (d->config->mode == AUTO_FULL)
		w.want |= WANT_GPU;
	fold_each_session(d->fold, wanting_each, &w);
	return w.want;
}

static struct job_face face_of(const struct conn *c)
{
	const char *command = message_info(c->info, c->info_bytes, "command");

	return (struct job_face){
		.uid = c->uid,
		.pid = c->pid,
		.token = c->attach.token,
		.command = command != NULL ? command : "",
	};
}

struct awaiting {
	const struct job_face *j;
	bool found;
};

static void awaiting_each(void *arg, const struct fold_session *s)
{
	struct awaiting *a = arg;

	if (s->state == SESSION_IS_ACTIVE && matches(s, a->j))
		a->found |=
			s->match == MATCH_PID || (s->match == MATCH_TOKEN && s->n_processes == 0);
}

bool want_is_awaited(const struct conn *c)
{
	const struct job_face j = face_of(c);
	struct awaiting a = {.j = &j};

	fold_each_session(c->in->d->fold, awaiting_each, &a);
	return a.found;
}

uint32_t want_of_conn(const struct conn *c)
{
	const struct job_face j = face_of(c);
	uint32_t want = want_before_ring(c->in->d, &j) | c->gpu_more;

	if (c->gpu_on && c->in->d->config->mode != AUTO_OFF)
		want |= WANT_GPU;
	return want & c->gpu_mask;
}

uint32_t want_of_ring(const struct ring *r)
{
	const uint32_t want = (fold_want(r->all->d->fold, r->uuid) | r->gpu_more) & r->gpu_mask;

	return r->paused ? (want & ~(uint32_t)(WANT_GPU | WANT_GPU_ARMED)) | WANT_GPU_PAUSE : want;
}

/* What the configuration says, with as many lanes as a ring file holds at that size. */
void want_ring_sizes(const struct daemon_config *config, struct rv_welcome *w)
{
	struct ring_header h = {
		.n_lanes = config->lanes != 0 ? (uint32_t)config->lanes : RING_LANES,
		.lane_bytes =
			config->lane_kb != 0 ? (uint32_t)config->lane_kb << 10 : RING_LANE_BYTES,
		.path_cap = RING_PATHS,
		.name_cap = RING_NAMES,
		.name_bytes_cap = RING_NAME_BYTES,
		.config_cap = RING_CONFIGS,
		.device_cap = RING_DEVICES,
	};
	struct ring_layout l;

	while (h.n_lanes > 1 && !ring_layout(&h, &l))
		h.n_lanes /= 2;
	w->n_lanes = h.n_lanes;
	w->lane_bytes = h.lane_bytes;
}

static void awaits_each(void *arg, const struct fold_session *s)
{
	*(bool *)arg |= s->state == SESSION_IS_ACTIVE &&
			(s->match == MATCH_USER || s->match == MATCH_COMMAND);
}

uint32_t want_of_any(const struct daemon *d)
{
	bool awaits = d->config->mode != AUTO_OFF;

	fold_each_session(d->fold, awaits_each, &awaits);
	return awaits ? WANT_SCOPES | WANT_CPU_TIME | WANT_METRICS : 0;
}
