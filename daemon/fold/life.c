/* SPDX-License-Identifier: MIT. life.c: a process comes when its ring is adopted, ends, and is
 * forgotten when the store has all of it. Owns what a process owns. */
#include "life.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "arena.h"
#include "correlate.h"
#include "journal.h"
#include "loss.h"
#include "member.h"
#include "node.h"
#include "nodehash.h"
#include "now.h"
#include "part.h"
#include "process.h"
#include "ring.h"
#include "session.h"
#include "state.h"
#include "sums.h"
#include "verb.h"
#include "words.h"

#define ENDED_SHARE 4u /* a part of so many, for ended processes that `top` still shows */

void process_free(struct process *p)
{
	if (p == NULL)
		return;
	MUST_PROCESS(p);
	MUST(p->fold->ending || p->n_parts == 0);
	MUST(p->member == NULL); /* a part's cells stand on its nodes */
	user_leave(p);
	node_fini(p);
	correlate_fini(&p->flight);
	free(p->name);
	free(p->path);
	free(p->config);
	free(p->lane);
	free(p->now);
	sums_forget(p);
	free(p->row.command);
	free(p->row.exe);
	free(p->row.cwd);
	arena_free(p->arena);
	p->magic = 0;
	free(p);
}

/* The entries that each ring's tables begin with. */
static bool tables_init(struct process *p)
{
	if (!ROOM_FOR(p->name, p->cap_names, 1) || !ROOM_FOR(p->path, p->cap_paths, 1))
		return false;
	p->name[NAME_NONE] = (struct name){.text = ""};
	p->name[NAME_OTHER] = (struct name){.text = "(other)", .bytes = 7};
	p->n_names = p->told_names = 2;
	p->path[PATH_ROOT] = (struct path){.node = NODE_ROOT_AT + 1};
	p->path[PATH_OTHER] = (struct path){
		.parent = PATH_ROOT, .name = NAME_OTHER, .depth = 1, .kind = PATH_KIND_SCOPE};
	p->n_paths = p->told_paths = 2;
	return true;
}

struct process *process_new(struct fold *f, const struct row_process *row)
{
	struct process *p = calloc(1, sizeof(*p));
	struct anchor created = {
		row->created_clock, row->created_monotonic_ns, row->created_realtime_ns, 0};

	if (p == NULL)
		return NULL;
	p->magic = PROCESS_MAGIC;
	p->fold = f;
	p->arena = arena_new();
	p->own = (struct anchors){.v = p->own_anchor, .cap = OWN_ANCHORS};
	p->flight.rounds = 1;
	p->row.uid = row->uid;
	if (!user_join(p) || p->arena == NULL || !tables_init(p) || !node_init(p) ||
		!ROOM_FOR(f->process, f->cap_processes, f->n_processes)) {
		process_free(p);
		return NULL;
	}
	p->row = *row;
	anchors_add(&p->own, &created);
	p->dirty = true;
	f->process[f->n_processes++] = p;
	process_use_clock(p);
	return p;
}

/* --- adoption --- */

static const char *info_get(const char *info, uint32_t bytes, const char *key)
{
	const char *at = info, *end = info + bytes;
	size_t n = strlen(key), len;

	for (; at < end; at += len + 1) {
		len = strnlen(at, (size_t)(end - at));
		if (at + len == end)
			return NULL; /* it lacks its NUL */
		if (len > n && memcmp(at, key, n) == 0 && at[n] == '=')
			return at + n + 1;
	}
	return NULL;
}

static char *info_text(const char *info, uint32_t bytes, const char *key)
{
	const char *v = info_get(info, bytes, key);
	size_t n = v == NULL ? 0 : strlen(v), cap = 3 * n + 1;
	char *text = malloc(cap);

	if (text != NULL)
		words_clean(text, cap, v == NULL ? "" : v, n);
	return text;
}

static int32_t info_number(const char *info, uint32_t bytes, const char *key)
{
	const char *v = info_get(info, bytes, key);
	int64_t n = 0;

	if (v == NULL || *v == '\0')
		return -1;
	for (; *v != '\0'; v++) {
		if (*v < '0' || *v > '9' || n > INT32_MAX / 10 - 1)
			return -1;
		n = n * 10 + (*v - '0');
	}
	return (int32_t)n;
}

static void row_fill(struct row_process *r, const struct j_process *j)
{
	memcpy(r->boot_id, j->boot_id, 16);
	memcpy(r->parent, j->parent, 16);
	memcpy(r->token, j->token, 16);
	r->pid = j->pid;
	r->ns_pid = j->ns_pid;
	r->uid = j->uid;
	r->flags = j->flags;
	r->clock = j->clock;
	r->tsc_khz = j->tsc_khz;
	r->n_lanes = j->n_lanes;
	r->lane_bytes = j->lane_bytes;
	r->pid_start = j->pid_start;
	r->created_clock = j->created_clock;
	r->created_monotonic_ns = j->created_monotonic_ns;
	r->created_realtime_ns = j->created_realtime_ns;
	r->source = j->replay ? FROM_REPLAY : FROM_LIVE;
	r->started_ns = (int64_t)(j->created_realtime_ns & INT64_MAX);
	words_plain(r->version, sizeof(r->version), j->version, sizeof(j->version));
}

static void row_info(struct row_process *r, const char *info, uint32_t n)
{
	const char *host = info_get(info, n, "host"), *job = info_get(info, n, "job_id");

	r->rank = info_number(info, n, "rank");
	r->local_rank = info_number(info, n, "local_rank");
	r->world_size = info_number(info, n, "world_size");
	if (host != NULL)
		words_clean(r->host, sizeof(r->host), host, strlen(host));
	if (job != NULL)
		words_clean(r->job_id, sizeof(r->job_id), job, strlen(job));
	r->command = info_text(info, n, "command");
	r->exe = info_text(info, n, "exe");
	r->cwd = info_text(info, n, "cwd");
}

int process_adopt(
	struct fold *f, const struct journal_entry *e, const struct j_process *j, uint32_t bytes)
{
	struct row_process row = {.id = f->next_process};
	const char *info = (const char *)(j + 1);
	struct process *p = process_find(f, e->ring);

	if (p != NULL) { /* once more, after a restart of the daemon */
		p->dirty = true;
		return 0;
	}
	if (j->n_lanes == 0 || j->n_lanes > RING_LANES_MAX || !ring_is_pow2(j->lane_bytes) ||
		j->lane_bytes < RING_LANE_BYTES_MIN || j->lane_bytes > RING_LANE_BYTES_MAX)
		return 0;
	if (f->n_processes >= f->limit.processes)
		process_evict(f, 0);
	if (f->n_processes >= f->limit.processes)
		return -ENOSPC;
	hash_copy(row.ring, e->ring);
	row_fill(&row, j);
	row_info(&row, info, j->info_bytes < bytes ? j->info_bytes : bytes);
	if (row.command == NULL || row.exe == NULL || row.cwd == NULL)
		f->no_memory = true;
	p = f->no_memory ? NULL : process_new(f, &row);
	if (p == NULL) {
		free(row.command);
		free(row.exe);
		free(row.cwd);
		return -ENOMEM;
	}
	f->next_process++;
	session_match_process(p, e->mono_ns);
	return 0;
}

void process_state(struct process *p, const struct j_state *s)
{
	struct row_process *r = &p->row;

	MUST_PROCESS(p);
	r->gpu_state = s->gpu;
	r->gpu_code = s->code;
	r->cupti_version = s->library_version;
	r->driver_version = s->driver_version;
	words_plain(r->cupti_path, sizeof(r->cupti_path), s->path, sizeof(s->path));
	words_plain(r->gpu_text, sizeof(r->gpu_text), s->words, sizeof(s->words));
	p->dirty = true;
}

/* --- the end --- */

/* ", in 'a/b'": the innermost scope of the first lane's thread that is in one, or "". */
static void last_place(const struct process *p, char ret[160])
{
	char text[144], clean[144];
	uint32_t i, at = UINT32_MAX, lane = 0;
	size_t n;

	ret[0] = '\0';
	for (i = 0; i < p->n_now; i++) {
		if (p->now[i].path >= p->n_paths)
			continue;
		if (at != UINT32_MAX && p->now[i].lane != lane)
			break;
		at = p->now[i].path;
		lane = p->now[i].lane;
	}
	if (at == UINT32_MAX)
		return;
	n = node_path_text(p, at, text, sizeof(text));
	if (n >= sizeof(text))
		snprintf(text, sizeof(text), ".../%s", p->name[p->path[at].name].text);
	words_field(clean, sizeof(clean), text, sizeof(text));
	snprintf(ret, 160, ", in '%s'", clean);
}

static void note_end(struct session *s, const struct process *p, const struct j_end *e)
{
	uint32_t flying = flight_open(&p->flight);
	uint32_t i, open = 0;
	char why[64] = "was killed", place[160];

	for (i = 0; i < p->n_now; i++)
		open += p->now[i].path < p->n_paths;
	if (e->reason == END_EXITED || (e->reason == END_EXEC && open + flying == 0)) {
		if (s->row.source == SOURCE_JOB)
			note_add(s, p->row.id, "process %u ended without finalizing the session",
				p->row.pid);
		return;
	}
	if (e->reason == END_KILLED && e->status >= 0 && WIFSIGNALED(e->status))
		snprintf(why, sizeof(why), "was killed (signal %d)", WTERMSIG(e->status));
	else if (e->reason != END_KILLED)
		snprintf(why, sizeof(why), e->reason == END_EXEC ? "called exec" : "was lost");
	last_place(p, place);
	note_add(s, p->row.id, "process %u %s with %u scope%s open and %u launch%s in flight%s",
		p->row.pid, why, open, open == 1 ? "" : "s", flying, flying == 1 ? "" : "es",
		place);
}

static void set_ended(struct process *p, const struct j_end *e, uint64_t mono_ns)
{
	MUST_PROCESS(p);
	MUST(p->row.ended_ns == 0);
	p->row.ended_ns = (int64_t)mono_to_real(p->fold, mono_ns);
	p->row.ended_ns = p->row.ended_ns == 0 ? 1 : p->row.ended_ns;
	p->row.end_reason = e->reason >= END_EXITED && e->reason <= END_EXEC ? e->reason : END_LOST;
	p->dirty = true;
	loss_rest(p);
}

static void leave_all(struct process *p, uint64_t mono_ns)
{
	uint64_t clock = clockmap_clock(&p->clock, mono_ns);

	session_owner_ended(p, mono_ns);
	while (p->n_parts > 0) {
		part_set_active(p->part[0], false, clock);
		part_detach(p->part[0], clock);
	}
	correlate_fini(&p->flight);
	process_now_forget(p);
	sums_forget(p);
}

void process_end(struct process *p, const struct j_end *e, uint64_t mono_ns)
{
	uint32_t i;

	set_ended(p, e, mono_ns);
	for (i = 0; i < p->n_parts; i++)
		note_end(p->part[i]->session, p, e);
	correlate_end(p);
	leave_all(p, mono_ns);
}

void process_end_instead(struct process *p, const struct j_end *e, uint64_t mono_ns)
{
	uint32_t i;

	set_ended(p, e, mono_ns);
	for (i = 0; i < p->n_parts; i++) {
		loss_part(p->part[i], LOST_SKIPPED, 1);
		if (p->part[i]->n_open > 0)
			loss_part(p->part[i], LOST_LAUNCHES, p->part[i]->n_open);
		p->part[i]->n_open = 0;
	}
	correlate_fini(&p->flight);
	process_now_forget(p);
	leave_all(p, mono_ns);
}

/* --- forgetting --- */

static uint32_t count_ended(struct fold *f, uint64_t *ret_bytes)
{
	struct process *p;
	uint32_t i, n = 0;

	*ret_bytes = 0;
	for (i = 0; i < f->n_processes; i++) {
		p = f->process[i];
		if (p->row.ended_ns == 0)
			continue;
		process_weigh(p);
		*ret_bytes += p->held[WEIGHT_REST] + p->held[WEIGHT_FLIGHT];
		n++;
	}
	return n;
}

/* It can still change, the store lacks something of it or has told nobody, or rows on their way point at its names:
 * they would stay in memory without being counted. */
static bool process_is_needed(const struct process *p)
{
	const struct part *part;

	if (p->row.ended_ns == 0 || p->dirty || p->collected > p->fold->seen ||
		arena_is_shared(p->arena))
		return true;
	for (part = p->member; part != NULL && part_is_clean(part); part = part->next)
		;
	return part != NULL;
}

void process_evict(struct fold *f, uint32_t keep)
{
	uint64_t bytes;
	uint32_t i, s, n = 0, ended = count_ended(f, &bytes);
	struct process *p;

	for (i = 0; i < f->n_processes; i++) {
		p = f->process[i];
		if ((ended <= keep && bytes <= f->limit.bytes / ENDED_SHARE) ||
			process_is_needed(p)) {
			f->process[n++] = p;
			continue;
		}
		ended--;
		bytes -= p->held[WEIGHT_REST] + p->held[WEIGHT_FLIGHT];
		for (s = 0; s < f->n_sessions; s++)
			session_drop_process(f->session[s], p);
		process_free(p);
	}
	f->n_processes = n;
}
