/* SPDX-License-Identifier: MIT. process.c: the processes whose rings were adopted. Owns their
 * tables, nodes, lanes and launches in flight. */
#include "state.h"

#include <stdlib.h>
#include <string.h>

#include "words.h"

#define ENDED_SHARE 4u /* of the ceiling, for ended processes that are kept for `top` */

struct process *process_find(const struct fold *f, const uint8_t ring[16])
{
	uint32_t i;

	for (i = f->n_processes; i-- > 0;)
		if (hash_same(f->process[i]->row.ring, ring))
			return f->process[i];
	return NULL;
}

struct process *process_by_id(const struct fold *f, int64_t id)
{
	uint32_t i;

	for (i = f->n_processes; i-- > 0;)
		if (f->process[i]->row.id == id)
			return f->process[i];
	return NULL;
}

void process_free(struct process *p)
{
	if (p == NULL)
		return;
	p->fold->held -= p->held;
	node_fini(p);
	correlate_fini(&p->correlate);
	free(p->name);
	free(p->path);
	free(p->config);
	free(p->lane);
	free(p->now);
	free(p->row.command);
	free(p->row.exe);
	free(p->row.cwd);
	arena_free(p->arena);
	free(p);
}

/* Entries that every ring's tables begin with. */
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
	p->fold = f;
	p->arena = arena_new();
	p->own = (struct anchors){.v = p->own_anchor, .cap = OWN_ANCHORS};
	p->correlate.rounds = 1;
	if (p->arena == NULL || !tables_init(p) || !node_init(p) ||
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

bool process_lanes(struct process *p, uint32_t n)
{
	const bool ok = ZEROED_FOR(p->lane, p->cap_lanes, n);

	p->fold->no_memory |= !ok;
	return ok;
}

void process_use_clock(struct process *p)
{
	const struct fold *f = p->fold;

	if (p->row.clock == RING_CLOCK_MONOTONIC)
		clockmap_use(&p->clock, NULL, 0);
	else
		clockmap_use(&p->clock, f->tsc.n >= 2 ? &f->tsc : &p->own, p->row.tsc_khz);
}

/* The nearest anchor of the daemon's, else of the ring's. */
static const struct anchors *wall_anchors(const struct process *p)
{
	const struct fold *f = p->fold;

	return f->tsc.n > 0 ? &f->tsc : f->mono.n > 0 ? &f->mono : &p->own;
}

uint64_t real_to_mono(const struct process *p, uint64_t real_ns)
{
	int64_t ns;

	real_ns = real_ns > CLOCK_NS_MAX ? CLOCK_NS_MAX : real_ns;
	ns = (int64_t)real_ns - anchors_offset(wall_anchors(p), real_ns);
	return ns < 0 ? 0 : (uint64_t)ns;
}

uint64_t mono_to_real(const struct fold *f, uint64_t mono_ns)
{
	const struct anchors *a = f->tsc.n > 0 ? &f->tsc : &f->mono;

	if (a->n == 0)
		return mono_ns;
	return mono_ns + (a->v[a->n - 1].real_ns - a->v[a->n - 1].mono_ns);
}

/* --- adoption */

static const char *info_get(const char *info, uint32_t bytes, const char *key)
{
	const char *at = info, *end = info + bytes;
	size_t n = strlen(key), len;

	for (; at < end; at += len + 1) {
		len = strnlen(at, (size_t)(end - at));
		if (at + len == end)
			return NULL; /* no NUL behind it */
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
		(void)words_clean(text, cap, v == NULL ? "" : v, n);
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
	r->replay = j->replay;
	r->started_ns = (int64_t)(j->created_realtime_ns & INT64_MAX);
	(void)words_plain(r->version, sizeof(r->version), j->version, sizeof(j->version));
}

static void row_info(struct row_process *r, const char *info, uint32_t n)
{
	const char *host = info_get(info, n, "host"), *job = info_get(info, n, "job_id");

	r->rank = info_number(info, n, "rank");
	r->local_rank = info_number(info, n, "local_rank");
	r->world_size = info_number(info, n, "world_size");
	if (host != NULL)
		(void)words_clean(r->host, sizeof(r->host), host, strlen(host));
	if (job != NULL)
		(void)words_clean(r->job_id, sizeof(r->job_id), job, strlen(job));
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

	if (p != NULL) { /* again, after the daemon's restart */
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

uint64_t process_weigh(struct process *p)
{
	const struct correlate *c = &p->correlate;
	const uint64_t bytes =
		arena_bytes(p->arena) + p->cap_names * sizeof(*p->name) +
		p->cap_paths * sizeof(*p->path) + p->cap_configs * sizeof(*p->config) +
		p->cap_nodes * (sizeof(*p->node) + sizeof(*p->last_child)) +
		p->cap_children * sizeof(*p->child) + p->cap_lanes * sizeof(*p->lane) +
		c->cap_launches * sizeof(*c->launch) + c->cap_gpu * sizeof(*c->gpu) +
		table_bytes(&p->node_by_hash) + table_bytes(&p->child_by_key) +
		table_bytes(&c->by_key) + p->tree_bytes;

	p->fold->held += bytes - p->held;
	p->held = bytes;
	return bytes;
}

/* One has three quarters of it at most. Beyond the ceiling an even share is left to each, so that
 * who comes late, and asks for little, has what it needs: of a quarter more, and a least each. */
static bool has_room(struct process *p, uint64_t more)
{
	const struct fold *f = p->fold;
	const uint64_t own = process_weigh(p), all = f->held + f->waiting;
	const uint64_t most = f->limit.bytes + more, quarter = f->limit.bytes / 4;

	return f->restoring || own < f->limit.bytes / PROCESS_SHARE ||
	       (all < most && own < 3 * quarter + more) ||
	       (all < most + quarter && own < f->limit.bytes / (f->n_processes + 1));
}

bool process_has_room(struct process *p)
{
	return has_room(p, 0);
}

/* For launches in flight a quarter more, so that wide trees do not cost them their kernels. */
bool process_has_room_in_flight(struct process *p)
{
	return has_room(p, p->fold->limit.bytes / 4);
}

static uint32_t count_ended(struct fold *f, uint64_t *ret_bytes)
{
	struct process *p;
	uint32_t i, n = 0;

	*ret_bytes = 0;
	for (i = 0; i < f->n_processes; i++) {
		p = f->process[i];
		if (p->row.ended_ns == 0)
			continue;
		*ret_bytes += process_weigh(p);
		n++;
	}
	return n;
}

/* It may change yet, something of it is to be collected, or rows on their way refer to its names,
 * which would be there and not be counted. */
static bool process_is_needed(const struct fold *f, const struct process *p)
{
	const struct part *part;
	uint32_t s;

	if (p->row.ended_ns == 0 || p->dirty || arena_is_shared(p->arena))
		return true;
	for (s = 0; s < f->n_sessions; s++) {
		part = session_part(f->session[s], p);
		if (part != NULL && !part_is_clean(part))
			return true;
	}
	return false;
}

void process_evict(struct fold *f, uint32_t keep)
{
	uint64_t bytes;
	uint32_t i, s, n = 0, ended = count_ended(f, &bytes);
	struct process *p;

	for (i = 0; i < f->n_processes; i++) {
		p = f->process[i];
		if ((ended <= keep && bytes <= f->limit.bytes / ENDED_SHARE) ||
			process_is_needed(f, p)) {
			f->process[n++] = p;
			continue;
		}
		ended--;
		bytes -= p->held;
		for (s = 0; s < f->n_sessions; s++)
			session_drop_process(f->session[s], p);
		process_free(p);
	}
	f->n_processes = n;
}

/* --- what becomes of it */

void process_state(struct process *p, const struct j_state *s)
{
	struct row_process *r = &p->row;

	r->gpu_state = s->gpu;
	r->gpu_code = s->code;
	r->cupti_version = s->library_version;
	r->driver_version = s->driver_version;
	(void)words_plain(r->cupti_path, sizeof(r->cupti_path), s->path, sizeof(s->path));
	(void)words_plain(r->gpu_text, sizeof(r->gpu_text), s->words, sizeof(s->words));
	p->dirty = true;
}

static int now_by_lane(const void *a, const void *b)
{
	const struct j_now *x = a, *y = b;

	if (x->lane != y->lane)
		return x->lane < y->lane ? -1 : 1;
	return x->depth < y->depth ? -1 : x->depth > y->depth;
}

void process_now_set(struct process *p, struct j_now *take, uint32_t n)
{
	struct lane *l;
	uint32_t i;

	if (n > 1)
		qsort(take, n, sizeof(*take), now_by_lane);
	free(p->now);
	p->now = take;
	p->n_now = n;
	for (i = 0; i < p->cap_lanes; i++)
		p->lane[i].now_n = 0;
	for (i = 0; i < n; i++) {
		l = &p->lane[take[i].lane];
		l->now_first = l->now_n == 0 ? i : l->now_first;
		l->now_n += l->now_n < NOW_FRAMES;
	}
	p->dirty = true;
}

void process_now(struct process *p, const struct j_now *now, uint32_t n)
{
	struct j_now *copy = NULL;
	uint32_t i, kept = 0;

	n = n > NOW_MAX ? NOW_MAX : n;
	if (n > 0 && (copy = calloc(n, sizeof(*copy))) == NULL) {
		p->fold->no_memory = true;
		return;
	}
	for (i = 0; i < n; i++) {
		copy[kept] = now[i];
		copy[kept].path = table_path(p, now[i].path);
		if (now[i].lane >= p->row.n_lanes || copy[kept].path == TABLE_NONE)
			continue;
		if (!process_lanes(p, now[i].lane + 1)) {
			free(copy);
			return;
		}
		kept++;
	}
	if (kept < n)
		loss_bad(p, n - kept);
	process_now_set(p, copy, kept);
}

void process_now_left(struct process *p, uint32_t lane, uint32_t path, uint64_t begin)
{
	struct lane *l = &p->lane[lane];
	struct j_now *frame;
	uint32_t i;

	for (i = l->now_n; i-- > 0;) { /* the innermost is left first */
		frame = &p->now[l->now_first + i];
		if (frame->path == path && (frame->begin == begin || frame->begin == 0)) {
			frame->path = UINT32_MAX;
			return;
		}
	}
}

void process_end(struct process *p, const struct j_end *e, uint64_t mono_ns)
{
	uint64_t clock = clockmap_clock(&p->clock, mono_ns);

	if (p->row.ended_ns != 0)
		return;
	p->row.ended_ns = (int64_t)mono_to_real(p->fold, mono_ns);
	p->row.ended_ns = p->row.ended_ns == 0 ? 1 : p->row.ended_ns;
	p->row.end_reason = e->reason >= END_EXITED && e->reason <= END_LOST ? e->reason : END_LOST;
	p->dirty = true;
	session_process_ended(p, e, mono_ns);
	while (p->n_parts > 0) {
		part_set_active(p->part[0], false, clock);
		part_detach(p->part[0], clock);
	}
	correlate_fini(&p->correlate);
	free(p->now);
	p->now = NULL;
	p->n_now = 0;
}
