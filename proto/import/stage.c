/* SPDX-License-Identifier: MIT. stage.c: what a reader found, kept until the session is made. */
#include "stage.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "arena.h"
#include "gpu_terms.h"
#include "nodehash.h"
#include "schema.h"

#define NAME_MAX_BYTES TRACE_TEXT_MAX
#define DEVICES_MAX    1024u
#define PROCESSES_MAX  4096u       /* further ones are the last one */
#define PID_MADE       0xc0000000u /* numbers for what a file calls by a word */

/* clang-format off */
static const char tables[] =
	"ATTACH '' AS scratch; PRAGMA scratch.journal_mode=OFF; PRAGMA scratch.synchronous=OFF;"
	"PRAGMA scratch.cache_size=-32768;"
	"BEGIN;"
	"CREATE TABLE scratch.slice(thread, begin, end, kind, name, node, correlation, flags, vals);"
	"CREATE TABLE scratch.arrow(thread, at, key, PRIMARY KEY(thread, at)) WITHOUT ROWID;"
	"CREATE TABLE scratch.edge(thread, at, begins, kind, name, node, flags);"
	"CREATE TABLE scratch.sync(process, correlation, class, begin, end, stream, event, unused,"
	" PRIMARY KEY(process, correlation, class, begin)) WITHOUT ROWID;"
	"CREATE TABLE scratch.op(process, device, context, stream, start, end, class, name, node,"
	" correlation, flags, bytes, config, track);";
/* clang-format on */

const char *const import_left_words[LEFT_MAX] = {
#define X(name, words) words,
	IMPORT_LEFT(X)
#undef X
};

int stage_wrong(struct stage *s)
{
	const int code = sqlite3_errcode(s->db);

	return err_set(s->e,
		code == SQLITE_FULL    ? -ENOSPC
		: code == SQLITE_NOMEM ? -ENOMEM
				       : -EIO,
		"the session cannot be written: %s%s", schema_errmsg(s->db),
		code == SQLITE_FULL || code == SQLITE_IOERR
			? "; events wait in a temporary file: SQLITE_TMPDIR names its folder"
			: "");
}

int stage_no_memory(struct stage *s)
{
	return err_set(s->e, -ENOMEM, "out of memory");
}

int stage_run(struct stage *s, const char *sql)
{
	return sqlite3_exec(s->db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : stage_wrong(s);
}

int stage_prepare(struct stage *s, const char *sql, sqlite3_stmt **ret)
{
	return sqlite3_prepare_v2(s->db, sql, -1, ret, NULL) == SQLITE_OK ? 0 : stage_wrong(s);
}

/* --- names */

struct name_key {
	const struct stage *s;
	const char *text;
	size_t n;
};

static bool same_name(const void *arg, uint32_t at)
{
	const struct name_key *k = arg;
	const struct stage_name *x = &k->s->name[at];

	return x->n == k->n && memcmp(x->s, k->text, k->n) == 0;
}

static uint32_t hash_text(const char *text, size_t n)
{
	uint64_t h = 0xcbf29ce484222325u;

	while (n-- > 0)
		h = (h ^ (uint8_t)*text++) * 0x100000001b3u;
	return table_mix(h, 0);
}

/* Name 0 is what stands for names beyond the ceilings. */
static bool add_name(struct stage *s, const struct name_key *k, uint32_t hash, uint32_t *ret)
{
	char *copy;
	int r;

	*ret = 0;
	if (s->n_names == STAGE_NAMES_MAX || s->name_bytes + k->n > STAGE_NAMES_BYTES) {
		s->taken.left[LEFT_NODES]++;
		return true;
	}
	copy = arena_text(s->arena, k->text, k->n);
	if (copy == NULL || !ROOM_FOR(s->name, s->cap_names, s->n_names))
		return false;
	r = table_add(&s->names, hash, s->n_names);
	if (r == -ENOMEM)
		return false;
	if (r < 0) {
		s->taken.left[LEFT_NODES]++;
		return true;
	}
	s->name[s->n_names] = (struct stage_name){copy, (uint32_t)k->n};
	s->name_bytes += k->n;
	*ret = s->n_names++;
	return true;
}

bool stage_name(struct stage *s, const char *text, size_t bytes, uint32_t *ret)
{
	const struct name_key k = {s, text, bytes < NAME_MAX_BYTES ? bytes : NAME_MAX_BYTES};
	const uint32_t hash = hash_text(text, k.n), at = table_find(&s->names, hash, same_name, &k);

	if (at == TABLE_NONE)
		return add_name(s, &k, hash, ret);
	*ret = at;
	return true;
}

/* --- files, processes and threads */

bool stage_file(struct stage *s, const char *name)
{
	if (!ROOM_FOR(s->file, s->cap_files, s->n_files))
		return false;
	s->file[s->n_files++] = (struct stage_file){
		.name = name, .rank = -1, .world = -1, .first_process = s->n_processes};
	return true;
}

struct stage_file *stage_reading(const struct stage *s)
{
	return &s->file[s->n_files - 1];
}

uint32_t stage_processes_end(const struct stage *s, uint32_t file)
{
	return file + 1 < s->n_files ? s->file[file + 1].first_process : s->n_processes;
}

/* The number that a name is, or one made for it. */
static uint32_t number_of(const struct stage *s, uint32_t name, uint32_t made)
{
	const struct stage_name *x = &s->name[name];
	uint64_t v = 0;
	uint32_t i;

	for (i = 0; i < x->n && x->s[i] >= '0' && x->s[i] <= '9' && v < PID_MADE; i++)
		v = v * 10 + (uint64_t)(x->s[i] - '0');
	return x->n > 0 && i == x->n && v < PID_MADE ? (uint32_t)v : PID_MADE + made;
}

bool stage_process(struct stage *s, uint32_t key, uint32_t *ret)
{
	for (*ret = stage_reading(s)->first_process; *ret < s->n_processes; ++*ret)
		if (s->process[*ret].key == key)
			return true;
	if (s->n_processes == PROCESSES_MAX) {
		s->taken.left[LEFT_THREADS]++;
		--*ret;
		return true;
	}
	if (!ROOM_FOR(s->process, s->cap_processes, s->n_processes))
		return false;
	s->process[s->n_processes++] = (struct stage_process){.file = s->n_files - 1,
		.key = key,
		.pid = number_of(s, key, s->n_processes),
		.title = STAGE_NONE,
		.owner = STAGE_NONE,
		.rank = -1};
	return true;
}

struct key {
	const struct stage *s;
	uint32_t a, b, kind;
	const struct trace_config *config;
};

static bool same_thread(const void *arg, uint32_t at)
{
	const struct key *k = arg;

	return k->s->thread[at].process == k->a && k->s->thread[at].key == k->b;
}

bool stage_thread(struct stage *s, uint32_t process, uint32_t key, uint32_t *ret)
{
	const struct key k = {.s = s, .a = process, .b = key};
	const uint32_t hash = table_mix(process, key);
	int r;

	*ret = table_find(&s->threads, hash, same_thread, &k);
	if (*ret != TABLE_NONE)
		return true;
	r = s->n_threads == STAGE_THREADS_MAX ? -ENOSPC
					      : table_add(&s->threads, hash, s->n_threads);
	if (r == -ENOSPC) {
		s->taken.left[LEFT_THREADS]++;
		*ret = s->n_threads - 1;
		return true;
	}
	if (r < 0 || !ROOM_FOR(s->thread, s->cap_threads, s->n_threads))
		return false;
	s->thread[s->n_threads] = (struct stage_thread){.process = process,
		.key = key,
		.tid = number_of(s, key, s->n_threads),
		.title = STAGE_NONE};
	*ret = s->n_threads++;
	return true;
}

/* --- nodes */

static bool same_node(const void *arg, uint32_t at)
{
	const struct key *k = arg;
	const struct stage_node *n = &k->s->node[at];

	return n->parent == k->a && n->name == k->b && n->kind == k->kind;
}

static bool add_node(struct stage *s, uint32_t parent, uint8_t kind, uint32_t name, uint32_t *ret)
{
	static const uint8_t none[16];
	const struct stage_name *text = &s->name[name];
	struct stage_node *n;

	if (!ROOM_FOR(s->node, s->cap_nodes, s->n_nodes))
		return false;
	n = &s->node[s->n_nodes];
	*n = (struct stage_node){.parent = parent, .name = name, .kind = kind};
	n->depth = parent == STAGE_NONE ? 0 : (uint16_t)(s->node[parent].depth + 1);
	node_hash(parent == STAGE_NONE ? none : s->node[parent].hash, kind, text->s, text->n,
		n->hash);
	*ret = s->n_nodes++;
	return true;
}

/* Beyond a ceiling all that is left stands at one place, below ROOT. */
static bool other_node(struct stage *s, uint32_t *ret)
{
	s->taken.left[LEFT_NODES]++;
	*ret = 1;
	return true;
}

bool stage_child(struct stage *s, uint32_t parent, uint8_t kind, uint32_t name, uint32_t *ret)
{
	const struct key k = {.s = s, .a = parent, .b = name, .kind = kind};
	const uint32_t hash = table_mix((uint64_t)parent << 32 | name, kind);
	int r;

	*ret = table_find(&s->nodes, hash, same_node, &k);
	if (*ret != TABLE_NONE)
		return true;
	if (s->n_nodes == STAGE_NODES_MAX || s->node[parent].depth == STAGE_DEPTH_MAX)
		return other_node(s, ret);
	r = table_add(&s->nodes, hash, s->n_nodes);
	if (r == -ENOSPC)
		return other_node(s, ret);
	return r == 0 && add_node(s, parent, kind, name, ret);
}

/* --- launch configurations, devices */

static bool same_config(const void *arg, uint32_t at)
{
	const struct key *k = arg;

	return memcmp(&k->s->config[at], k->config, sizeof(*k->config)) == 0;
}

bool stage_config(struct stage *s, const struct trace_config *c, uint32_t *ret)
{
	const struct key k = {.s = s, .config = c};
	const uint32_t hash = hash_text((const char *)c, sizeof(*c));
	int r;

	*ret = table_find(&s->configs, hash, same_config, &k);
	if (*ret != TABLE_NONE)
		return true;
	r = s->n_configs == STAGE_CONFIGS_MAX ? -ENOSPC
					      : table_add(&s->configs, hash, s->n_configs);
	if (r == -ENOSPC) {
		s->taken.left[LEFT_CONFIGS]++;
		*ret = STAGE_NONE;
		return true;
	}
	if (r < 0 || !ROOM_FOR(s->config, s->cap_configs, s->n_configs))
		return false;
	s->config[s->n_configs] = *c;
	*ret = s->n_configs++;
	return true;
}

struct stage_device *stage_device(struct stage *s, uint32_t ordinal)
{
	uint32_t i;

	for (i = 0; i < s->n_devices; i++)
		if (s->device[i].ordinal == ordinal)
			return &s->device[i];
	if (s->n_devices == DEVICES_MAX || !ROOM_FOR(s->device, s->cap_devices, s->n_devices))
		return NULL;
	s->device[s->n_devices] = (struct stage_device){.ordinal = ordinal};
	return &s->device[s->n_devices++];
}

/* --- how far it is: a half is reading, by what was measured */

void stage_read_part(struct stage *s, double part)
{
	if (s->options->progress != NULL)
		s->options->progress(s->options->progress_arg,
			(s->n_files - 1 + part) / s->options->n_files / 2);
}

void stage_placed(struct stage *s)
{
	if (++s->placed % 4096 == 0 && s->options->progress != NULL && s->staged > 0)
		s->options->progress(
			s->options->progress_arg, 0.5 + (double)s->placed / (double)s->staged / 4);
}

/* --- events */

int stage_put(struct stage *s, sqlite3_stmt *q, const int64_t *v, int n)
{
	int i, rc;

	for (i = 0; i < n; i++)
		(void)sqlite3_bind_int64(q, i + 1, v[i]);
	rc = sqlite3_step(q);
	(void)sqlite3_reset(q);
	return rc == SQLITE_DONE ? 0 : stage_wrong(s);
}

/* Whether both are times, in this order. */
static bool is_span(struct stage *s, int64_t begin, int64_t end)
{
	const bool good = begin > -STAGE_TIME_MAX && begin <= end && end < STAGE_TIME_MAX;

	s->taken.left[LEFT_BROKEN] += !good;
	return good;
}

int stage_slice(struct stage *s, const struct stage_slice *x)
{
	const int64_t v[] = {
		x->thread, x->begin, x->end, x->kind, x->name, x->node, x->correlation, x->flags};

	if (!is_span(s, x->begin, x->end))
		return 0;
	s->thread[x->thread].has_slices = true;
	s->process[s->thread[x->thread].process].has_slices = true;
	s->staged++;
	if (x->n_values > 0)
		(void)sqlite3_bind_text(
			s->add_slice, 9, x->values, (int)x->n_values, SQLITE_STATIC);
	else
		(void)sqlite3_bind_null(s->add_slice, 9);
	return stage_put(s, s->add_slice, v, 8);
}

int stage_edge(struct stage *s, bool begins, const struct stage_slice *x)
{
	const int64_t v[] = {x->thread, x->begin, begins, x->kind, x->name, x->node, x->flags};

	return is_span(s, x->begin, x->begin) ? stage_put(s, s->add_edge, v, 7) : 0;
}

int stage_op(struct stage *s, const struct stage_op *x)
{
	const int64_t v[] = {x->process, x->device, x->context, x->stream, x->start, x->end,
		x->class, x->name, x->node, x->correlation, x->flags,
		(int64_t)(x->bytes < INT64_MAX ? x->bytes : INT64_MAX), x->config, x->thread};

	if (!is_span(s, x->start, x->end))
		return 0;
	s->staged++;
	return stage_put(s, s->add_op, v, 14);
}

/* Counted as left out until its call is found. */
int stage_sync(struct stage *s, const struct stage_sync *x)
{
	const int64_t v[] = {x->process, x->correlation, x->class, x->begin, x->end, x->stream,
		(int64_t)x->event, !x->hearsay};

	if (!is_span(s, x->begin, x->end))
		return 0;
	s->taken.left[LEFT_WAITS] += !x->hearsay;
	return x->correlation > 0 ? stage_put(s, s->add_sync, v, 8) : 0;
}

int stage_recorded(struct stage *s, const struct stage_sync *x)
{
	struct stage_sync record = *x;

	record.class = CLASS_EVENT_RECORD;
	record.begin = 1 - STAGE_TIME_MAX;
	record.end = STAGE_TIME_MAX - 1;
	return stage_sync(s, &record);
}

int stage_arrow(struct stage *s, uint32_t thread, int64_t at, int64_t key)
{
	return stage_put(s, s->add_arrow, (int64_t[]){thread, at, key}, 3);
}

/* --- the whole */

static int first_ones(struct stage *s)
{
	uint32_t other, root, node;

	if (!stage_name(s, "(other)", 7, &other) || !stage_name(s, "ROOT", 4, &root) ||
		!add_node(s, STAGE_NONE, NODE_ROOT, root, &node) ||
		!stage_child(s, 0, NODE_SCOPE, other, &node))
		return stage_no_memory(s);
	return 0;
}

int stage_open(struct stage *s, sqlite3 *to, const struct import_options *o, struct err *e)
{
	int r;

	*s = (struct stage){
		.db = to, .options = o, .e = e, .whole_micros = true, .arena = arena_new()};
	if (s->arena == NULL)
		return stage_no_memory(s);
	r = first_ones(s);
	if (r == 0)
		r = stage_run(s, tables);
	if (r == 0)
		r = stage_prepare(
			s, "INSERT INTO scratch.slice VALUES(?,?,?,?,?,?,?,?,?)", &s->add_slice);
	if (r == 0)
		r = stage_prepare(
			s, "INSERT INTO scratch.edge VALUES(?,?,?,?,?,?,?)", &s->add_edge);
	if (r == 0)
		r = stage_prepare(s, "INSERT INTO scratch.op VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
			&s->add_op);
	if (r == 0)
		r = stage_prepare(
			s, "INSERT OR IGNORE INTO scratch.arrow VALUES(?,?,?)", &s->add_arrow);
	if (r == 0)
		r = stage_prepare(s,
			"INSERT INTO scratch.sync VALUES(?,?,?,?,?,?,?,?) ON CONFLICT DO UPDATE SET"
			" unused=max(unused, excluded.unused)",
			&s->add_sync);
	return r;
}

void stage_close(struct stage *s)
{
	(void)sqlite3_finalize(s->add_slice);
	(void)sqlite3_finalize(s->add_edge);
	(void)sqlite3_finalize(s->add_op);
	(void)sqlite3_finalize(s->add_arrow);
	(void)sqlite3_finalize(s->add_sync);
	table_fini(&s->names);
	table_fini(&s->threads);
	table_fini(&s->nodes);
	table_fini(&s->configs);
	free(s->file);
	free(s->name);
	free(s->process);
	free(s->thread);
	free(s->node);
	free(s->config);
	free(s->device);
	arena_free(s->arena);
}
