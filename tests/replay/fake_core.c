/* SPDX-License-Identifier: MIT. fake_core.c: what agent.h promises to backends, with one big lock.
 */
#include "fake_core.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PATHS   65536u
#define CONFIGS 4096u
#define DEVICES 64u

struct stored {
	uint32_t type, bytes;
	union {
		struct rec_launch launch;
		struct rec_kernel kernel;
		struct rec_copy copy;
		struct rec_call call;
		struct rec_called called;
		uint8_t raw[72];
	} u;
};

struct leaf {
	char *path;
	uint64_t count, ns, untimed;
};

static pthread_mutex_t big = PTHREAD_MUTEX_INITIALIZER;
static struct {
	char *name[PATHS];
	uint32_t name_bytes[PATHS];
	uint32_t names;
	struct ring_path path[PATHS];
	uint32_t paths;
	struct ring_config config[CONFIGS];
	uint32_t configs;
	struct ring_device device[DEVICES];
	uint32_t devices;
	struct stored *rec;
	size_t recs;
	struct ring_counts counts;
	_Atomic uint64_t launches;
	uint32_t captures, given, held; /* see agent_capture_given() */
	_Atomic uint32_t given_lost;
} core = {.names = 2, .paths = 2};

static _Thread_local struct {
	uint32_t path;
	bool busy;
} me;

uint32_t agent_name(const char *text, size_t bytes)
{
	uint32_t i;

	(void)pthread_mutex_lock(&big);
	for (i = 2; i < core.names; i++)
		if (core.name_bytes[i] == bytes && memcmp(core.name[i], text, bytes) == 0)
			break;
	if (i == core.names && core.names < PATHS) {
		core.name[i] = strndup(text, bytes);
		core.name_bytes[i] = (uint32_t)bytes;
		core.names++;
	}
	(void)pthread_mutex_unlock(&big);
	return i;
}

uint32_t agent_path_child(uint32_t parent, enum path_kind kind, uint32_t name)
{
	uint32_t i;

	(void)pthread_mutex_lock(&big);
	for (i = 2; i < core.paths; i++)
		if (core.path[i].parent == parent && core.path[i].kind == kind &&
			core.path[i].name == name)
			break;
	if (i == core.paths && core.paths < PATHS) {
		core.path[i] =
			(struct ring_path){.parent = parent, .name = name, .kind = (uint16_t)kind};
		core.paths++;
	}
	(void)pthread_mutex_unlock(&big);
	return i;
}

uint32_t agent_config(const struct ring_config *c)
{
	uint32_t i;

	(void)pthread_mutex_lock(&big);
	for (i = 0; i < core.configs && memcmp(&core.config[i], c, sizeof(*c)) != 0; i++)
		;
	if (i == core.configs && core.configs < CONFIGS)
		core.config[core.configs++] = *c;
	(void)pthread_mutex_unlock(&big);
	return i;
}

uint16_t agent_device(const struct ring_device *d)
{
	uint32_t i;

	for (i = 0; i < core.devices && memcmp(core.device[i].uuid, d->uuid, 16) != 0; i++)
		;
	if (i == core.devices && core.devices < DEVICES)
		core.device[core.devices++] = *d;
	return (uint16_t)i;
}

static bool store(const void *rec, uint32_t bytes)
{
	uint64_t hdr;
	struct stored *more;
	bool ok = true;

	memcpy(&hdr, rec, sizeof(hdr));
	(void)pthread_mutex_lock(&big);
	if ((core.recs & (core.recs - 1)) == 0) {
		more = realloc(core.rec, (core.recs == 0 ? 1 : 2 * core.recs) * sizeof(*more));
		ok = more != NULL;
		core.rec = ok ? more : core.rec;
	}
	if (ok && bytes <= sizeof(core.rec->u)) {
		core.rec[core.recs] = (struct stored){.type = REC_TYPE(hdr), .bytes = bytes};
		memcpy(core.rec[core.recs++].u.raw, rec, bytes);
	}
	(void)pthread_mutex_unlock(&big);
	return ok;
}

bool agent_put(const void *rec, uint32_t bytes)
{
	return store(rec, bytes);
}

bool agent_put_wait(const void *rec, uint32_t bytes)
{
	return store(rec, bytes);
}

uint32_t agent_where(bool *ret_op)
{
	*ret_op = core.path[me.path].kind == PATH_KIND_OP;
	return me.path;
}

uint32_t agent_where_captured(void)
{
	bool op;

	return agent_where(&op);
}

/* A recording has no numbers of captures; tests give some. */
void agent_capture_began(void)
{
	core.captures++;
}

uint32_t agent_capture_ended(bool last)
{
	const uint32_t rest = core.given;

	(void)last;
	core.captures--;
	core.given = 0;
	return rest;
}

uint32_t agent_capture_given(void)
{
	const uint32_t given = core.given;

	core.given = 0;
	core.held += given != 0;
	return given;
}

void agent_given_hold(uint32_t given)
{
	core.held += given != 0;
}

void agent_given_drop(uint32_t given)
{
	core.held -= given != 0;
}

void agent_given_lost(uint32_t given)
{
	core.given_lost += given;
}

void agent_given_put(uint32_t given, uint32_t correlation, uint16_t epoch, uint64_t start)
{
	struct rec_captured r = {.hdr = REC_HDR(sizeof(r), REC_CAPTURED, 0, METRIC_I64, 0),
		.value = given,
		.correlation = correlation,
		.epoch = epoch,
		.start = start};

	(void)store(&r, sizeof(r));
}

void agent_given_tell(void)
{
}

void agent_capture_forget(void)
{
	core.given = 0;
	core.held = 0;
}

bool agent_markers_off(void)
{
	return false;
}

uint64_t agent_monotonic_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t agent_clock(void)
{
	return agent_monotonic_ns();
}

bool agent_enter(int *saved)
{
	if (me.busy)
		return false;
	*saved = errno;
	return me.busy = true;
}

void agent_leave(int saved)
{
	me.busy = false;
	errno = saved;
}

bool agent_launch(uint32_t flags, uint32_t correlation, uint32_t name, uint16_t epoch, uint16_t api,
	uint64_t clock)
{
	struct rec_launch r = {.clock = clock != 0 ? clock : agent_clock(),
		.correlation = correlation,
		.name = name,
		.epoch = epoch,
		.api = api};
	bool op;
	const uint32_t path = agent_where(&op);

	if (me.busy)
		return false;
	r.hdr = REC_HDR(sizeof(r), REC_LAUNCH, 0, flags | (op ? LAUNCH_OP : 0), path);
	(void)store(&r, sizeof(r));
	agent_count(&core.launches, 1);
	return true;
}

bool agent_launch_ended(uint32_t flags, const struct rec_launch *known)
{
	struct rec_launch_ended r = {.launch = *known, .end = agent_clock()};
	bool op;

	if (me.busy)
		return false;
	r.launch.hdr = REC_HDR(sizeof(r), REC_LAUNCH, 0, flags | LAUNCH_ENDS, agent_where(&op));
	(void)store(&r, sizeof(r));
	agent_count(&core.launches, 1);
	return true;
}

bool agent_call(const struct rec_call *call)
{
	struct rec_call r = *call;
	bool op;

	if (me.busy)
		return false;
	r.hdr = REC_HDR(sizeof(r), REC_CALL, 0, REC_FLAGS(call->hdr), agent_where(&op));
	return store(&r, sizeof(r));
}

bool agent_called(uint32_t correlation, uint32_t name, uint16_t epoch, uint64_t begin)
{
	struct rec_called r = {.begin = begin,
		.took = (uint32_t)(agent_clock() - begin),
		.correlation = correlation,
		.name = name,
		.epoch = epoch};
	bool op;

	if (me.busy)
		return false;
	r.hdr = REC_HDR(sizeof(r), REC_CALLED, 0, 0, agent_where(&op));
	return store(&r, sizeof(r));
}

void agent_launch_failed(void)
{
	(void)atomic_fetch_sub(&core.launches, 1);
}

uint64_t agent_launched(void)
{
	return core.launches;
}

void agent_ring(void)
{
}

struct ring_counts *agent_counts(void)
{
	return &core.counts;
}

const char *agent_env(const char *name)
{
	return getenv(name);
}

bool agent_path_step(uint32_t path, struct agent_step *ret)
{
	if (path < 2)
		return false;
	*ret = (struct agent_step){core.path[path].parent, core.path[path].kind,
		core.name[core.path[path].name], core.name_bytes[core.path[path].name]};
	return true;
}

void agent_report(const struct backend_status *s, uint32_t epoch)
{
	const struct rec_gpu r = {.hdr = REC_HDR(sizeof(r), REC_GPU, 0, s->gpu.state,
					  agent_name(s->gpu.words, strlen(s->gpu.words))),
		.code = s->gpu.code,
		.version = s->gpu.library_version,
		.epoch = epoch,
		.replay = s->replay};

	(void)store(&r, sizeof(r));
}

void fake_enter(enum path_kind kind, const char *name)
{
	me.path = agent_path_child(me.path, kind, agent_name(name, strlen(name)));
}

void fake_exit(void)
{
	me.path = core.path[me.path].parent;
}

const char *fake_name(uint32_t id)
{
	return id >= 2 && id < core.names ? core.name[id] : "";
}

const struct ring_device *fake_devices(uint32_t *ret_n)
{
	*ret_n = core.devices;
	return core.device;
}

uint64_t fake_records(enum record_type type)
{
	uint64_t n = 0;
	size_t i;

	for (i = 0; i < core.recs; i++)
		n += core.rec[i].type == type;
	return n;
}

uint64_t fake_flagged(uint32_t flag)
{
	uint64_t n = 0;
	size_t i;

	for (i = 0; i < core.recs; i++)
		n += core.rec[i].type == REC_KERNEL &&
		     (REC_FLAGS(core.rec[i].u.kernel.hdr) & flag) != 0;
	return n;
}

void fake_reset(void)
{
	uint32_t i;

	for (i = 0; i < core.names; i++)
		free(core.name[i]);
	free(core.rec);
	memset(&core, 0, sizeof(core));
	core.names = core.paths = 2;
}

/* --- the join --- */

static const struct rec_launch **by_key; /* sorted by epoch, correlation */
static size_t n_by_key;

static uint64_t key_of(const struct rec_launch *l)
{
	return (uint64_t)l->epoch << 32 | l->correlation;
}

static int by_launch(const void *a, const void *b)
{
	const uint64_t x = key_of(*(const struct rec_launch *const *)a),
		       y = key_of(*(const struct rec_launch *const *)b);

	return x < y ? -1 : x > y;
}

static void index_launches(void)
{
	size_t i;

	free(by_key);
	by_key = calloc(core.recs + 1, sizeof(*by_key));
	n_by_key = 0;
	for (i = 0; by_key != NULL && i < core.recs; i++)
		if (core.rec[i].type == REC_LAUNCH)
			by_key[n_by_key++] = &core.rec[i].u.launch;
	if (n_by_key > 0)
		qsort(by_key, n_by_key, sizeof(*by_key), by_launch);
}

static size_t find(uint16_t epoch, uint32_t correlation)
{
	const struct rec_launch want = {.epoch = epoch, .correlation = correlation}, *w = &want;
	const struct rec_launch **hit =
		n_by_key > 0 ? bsearch(&w, by_key, n_by_key, sizeof(*by_key), by_launch) : NULL;

	return hit != NULL ? (size_t)(hit - by_key) : SIZE_MAX;
}

static void add_path(char *to, size_t bytes, uint32_t path)
{
	if (path < 2)
		return;
	add_path(to, bytes, core.path[path].parent);
	(void)snprintf(to + strlen(to), bytes - strlen(to), "/%s", fake_name(core.path[path].name));
}

static void leaf_path(const struct stored *s, char *to, size_t bytes)
{
	static const char *const copies[] = {
		"[copy other]", "[copy h2d]", "[copy d2h]", "[copy d2d]", "[copy p2p]"};
	const bool kernel = s->type == REC_KERNEL;
	const uint32_t captured = kernel ? s->u.kernel.captured : s->u.copy.captured;
	const uint32_t id = REC_ID(s->u.kernel.hdr);
	size_t l = find(s->u.kernel.epoch, s->u.kernel.correlation);
	bool op = l != SIZE_MAX && (REC_FLAGS(by_key[l]->hdr) & LAUNCH_OP) != 0;

	to[0] = '\0';
	if (l == SIZE_MAX)
		(void)snprintf(to, bytes, "/(no launch)");
	else
		add_path(to, bytes, REC_ID(by_key[l]->hdr));
	if (captured != PATH_ROOT) {
		(void)snprintf(to + strlen(to), bytes - strlen(to), "/<captured_at>");
		add_path(to, bytes, captured);
		op = core.path[captured].kind == PATH_KIND_OP;
	}
	if (!op)
		(void)snprintf(to + strlen(to), bytes - strlen(to), "/%s",
			kernel                ? fake_name(id)
			: s->type == REC_COPY ? copies[id < 5 ? id : 0]
					      : "[memset]");
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct leaf *)a)->path, ((const struct leaf *)b)->path);
}

static size_t collect(struct leaf *leaf)
{
	char path[8192];
	size_t i, k, n = 0;

	for (i = 0; i < core.recs; i++) {
		const struct stored *s = &core.rec[i];

		if (s->type != REC_KERNEL && s->type != REC_COPY && s->type != REC_SET)
			continue;
		leaf_path(s, path, sizeof(path));
		for (k = 0; k < n && strcmp(leaf[k].path, path) != 0; k++)
			;
		if (k == n)
			leaf[n++].path = strdup(path);
		leaf[k].count++;
		if ((REC_FLAGS(s->u.kernel.hdr) & (GPU_FLAG_RUNNING | GPU_FLAG_UNTIMED)) != 0)
			leaf[k].untimed++;
		else
			leaf[k].ns += s->u.kernel.end - s->u.kernel.start;
	}
	return n;
}

void fake_tree(FILE *to)
{
	struct leaf *leaf = calloc(core.recs + 1, sizeof(*leaf));
	size_t i, n;

	if (leaf == NULL)
		return;
	index_launches();
	n = collect(leaf);
	qsort(leaf, n, sizeof(*leaf), by_path);
	for (i = 0; i < n; i++) {
		(void)fprintf(to, "%s\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\n", leaf[i].path,
			leaf[i].count, leaf[i].ns, leaf[i].untimed);
		free(leaf[i].path);
	}
	free(leaf);
	free(by_key);
	by_key = NULL;
}

uint64_t fake_unanswered(void)
{
	uint8_t *seen;
	uint64_t n = 0;
	size_t i, l;

	index_launches();
	seen = calloc(n_by_key + 1, 1);
	for (i = 0; seen != NULL && i < core.recs; i++) {
		if (core.rec[i].type != REC_KERNEL && core.rec[i].type != REC_COPY &&
			core.rec[i].type != REC_SET)
			continue;
		l = find(core.rec[i].u.kernel.epoch, core.rec[i].u.kernel.correlation);
		if (l != SIZE_MAX)
			seen[l] = 1;
	}
	for (i = 0; seen != NULL && i < n_by_key; i++)
		n += seen[i] == 0;
	free(seen);
	free(by_key);
	by_key = NULL;
	return n;
}
