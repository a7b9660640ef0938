/* SPDX-License-Identifier: MIT. place.c: where each event stands: a scope in what is open on its
 * thread, GPU work in what was open where it was launched.
 *
 * SQLite sorts, by files where memory is not enough: a thread's slices by when they begin, then GPU
 * work by when it starts. */
#include "placing.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "calls.h"
#include "gpu_terms.h"
#include "json_stream.h"
#include "profile.h"

#define OPEN_MAX    65536u
#define GPUS_MAX    1024u
#define ROUNDING_NS 1000 /* of a file with whole microseconds */

/* clang-format off */
static const char tables[] =
	"CREATE TABLE scratch.scope(process, thread, begin, end, node, flags, stream, class,"
	" correlation, event);"
	"CREATE TABLE scratch.work(process, device, context, stream, start, end, class, node,"
	" correlation, flags, bytes, config, thread, launched);"
	"CREATE TABLE scratch.value(process, thread, at, node, type, name, bits);"
	"CREATE TABLE scratch.memory(process, at, node, args);"
	"CREATE TABLE scratch.launch(correlation, process, thread, at, node, counts, used DEFAULT 0,"
	" PRIMARY KEY(correlation, process)) WITHOUT ROWID;";
/* clang-format on */

struct open { /* on one thread; what is below ends later, or overlaps */
	struct stage_slice x;
	uint32_t node, caller; /* caller: without the vendor's library on top */
	uint8_t class;         /* of a call that waits; else CLASS_CPU */
	bool in_call;          /* it is one, or in one: a call in it is a part of it */
};

struct walk {
	struct place *p;
	struct stage *s;
	struct open *open;
	uint32_t n, cap, thread;
	sqlite3_stmt *from, *put, *launch, *find, *use, *arrow, *value, *metric, *sync, *found,
		*memory;
	struct text word;
};

/* Each row of w->from, which is closed. */
typedef int roopfn(struct walk *w);

static int each_row(struct walk *w, const char *sql, roopfn *row)
{
	int rc = SQLITE_DONE, r = stage_prepare(w->s, sql, &w->from);

	w->n = 0;
	w->thread = STAGE_NONE;
	while (r == 0 && (rc = sqlite3_step(w->from)) == SQLITE_ROW) {
		stage_placed(w->s);
		r = row(w);
	}
	if (r == 0 && rc != SQLITE_DONE)
		r = stage_wrong(w->s);
	(void)sqlite3_finalize(w->from);
	w->from = NULL;
	return r;
}

static int push(struct walk *w, const struct open *o)
{
	if (w->n == OPEN_MAX) {
		w->s->taken.left[LEFT_OPEN]++;
		return 0;
	}
	if (!ROOM_FOR(w->open, w->cap, w->n))
		return stage_no_memory(w->s);
	w->open[w->n++] = *o;
	return 0;
}

static void seen(struct place *p, int64_t begin, int64_t end)
{
	p->low = begin < p->low ? begin : p->low;
	p->high = end > p->high ? end : p->high;
}

/* From the times of a process' file to those of the first file. */
static int64_t shift_of(const struct stage *s, uint32_t process)
{
	return s->file[s->process[process].file].base_ns - s->file[0].base_ns;
}

/* What stands for whichever process of its file. */
static int64_t any_of(const struct stage *s, uint32_t process)
{
	return -1 - (int64_t)s->process[process].file;
}

/* --- beginnings and ends, in the order of time, then of the file */

#define EDGES                                                                                    \
	"SELECT thread, at, begins, kind, name, node, flags FROM scratch.edge ORDER BY thread, " \
	"at, rowid"

static int on_edge(struct walk *w)
{
	struct open o = {.x = {.thread = (uint32_t)sqlite3_column_int64(w->from, 0),
				 .begin = sqlite3_column_int64(w->from, 1),
				 .kind = (uint8_t)sqlite3_column_int(w->from, 3),
				 .name = (uint32_t)sqlite3_column_int64(w->from, 4),
				 .node = (uint32_t)sqlite3_column_int64(w->from, 5),
				 .flags = (uint8_t)sqlite3_column_int(w->from, 6),
				 .correlation = -1}};

	if (o.x.thread != w->thread) {
		w->s->taken.left[LEFT_OPEN] += w->n;
		w->n = 0;
	}
	w->thread = o.x.thread;
	if (sqlite3_column_int(w->from, 2) != 0)
		return push(w, &o);
	if (w->n == 0) {
		w->s->taken.left[LEFT_OPEN]++;
		return 0;
	}
	w->n--;
	w->open[w->n].x.end = o.x.begin;
	return stage_slice(w->s, &w->open[w->n].x);
}

/* --- slices */

#define SLICES                                                                                     \
	"SELECT thread, begin, end, kind, name, node, correlation, flags, vals FROM scratch.slice" \
	" ORDER BY thread, begin, end DESC, rowid"

/* The innermost one that is open over all of x; NULL: none. *ret_overlaps: one ends within x. */
static const struct open *around(struct walk *w, const struct stage_slice *x, bool *ret_overlaps)
{
	const int64_t more = w->s->whole_micros ? ROUNDING_NS : 0;
	uint32_t i;

	*ret_overlaps = false;
	while (w->n > 0 && w->open[w->n - 1].x.end <= x->begin)
		w->n--;
	for (i = w->n; i-- > 0;) {
		if (w->open[i].x.end <= x->begin)
			continue;
		if (w->open[i].x.end + more >= x->end)
			return &w->open[i];
		*ret_overlaps = true;
	}
	return NULL;
}

static bool is_launch(const struct stage *s, const struct stage_slice *x)
{
	static const char *const words[] = {"Launch", "Memcpy", "Memset"};
	size_t i;

	for (i = 0; i < sizeof(words) / sizeof(*words) && x->kind == SLICE_API; i++)
		if (strstr(s->name[x->name].s, words[i]) != NULL)
			return true;
	return x->kind == SLICE_LAUNCH;
}

static int put_launch(struct walk *w, const struct open *o)
{
	const int64_t v[] = {o->x.correlation, w->s->thread[o->x.thread].process, o->x.thread,
		o->x.begin, o->caller, is_launch(w->s, &o->x)};

	return o->x.correlation > 0 ? stage_put(w->s, w->launch, v, 6) : 0;
}

/* Its record of process `of`, or of whichever: any_of(). 1: it has one. */
static int find_sync(struct walk *w, const struct open *o, int64_t of, struct trace_call *ret)
{
	sqlite3_stmt *q = w->sync;
	const int64_t shift = shift_of(w->s, w->s->thread[o->x.thread].process);
	int64_t key[4] = {of, o->x.correlation, o->class, 0};
	bool found;
	int r;

	(void)sqlite3_bind_int64(q, 1, key[0]);
	(void)sqlite3_bind_int64(q, 2, key[1]);
	(void)sqlite3_bind_int64(q, 3, key[2]);
	(void)sqlite3_bind_int64(q, 4, o->x.end - shift);
	found = sqlite3_step(q) == SQLITE_ROW && sqlite3_column_int64(q, 1) >= o->x.begin - shift;
	if (found) {
		key[3] = sqlite3_column_int64(q, 0);
		ret->stream = (uint32_t)sqlite3_column_int64(q, 2);
		ret->event = (uint64_t)sqlite3_column_int64(q, 3);
	}
	(void)sqlite3_reset(q);
	if (!found)
		return 0;
	r = stage_put(w->s, w->found, key, 4);
	if (r == 0)
		w->s->taken.left[LEFT_WAITS] -= (uint64_t)sqlite3_changes(w->s->db);
	return r < 0 ? r : 1;
}

static int put_scope(struct walk *w, const struct open *o)
{
	const bool call = o->class != CLASS_CPU;
	struct trace_call c = {.stream = UINT32_MAX, .class = o->class};
	int64_t v[] = {w->s->thread[o->x.thread].process, o->x.thread, o->x.begin, o->x.end,
		o->node, o->x.flags, 0, 0, 0, 0};
	int r = 0;

	if (call && o->x.correlation > 0) {
		c.correlation = o->x.correlation <= UINT32_MAX ? (uint32_t)o->x.correlation : 0;
		r = find_sync(w, o, v[0], &c);
		if (r == 0)
			r = find_sync(w, o, any_of(w->s, (uint32_t)v[0]), &c);
		if (r < 0)
			return r;
	}
	if (call) {
		v[5] |= TRACE_CALL;
		v[6] = c.stream;
		v[7] = c.class;
		v[8] = c.correlation;
		v[9] = (int64_t)c.event;
	}
	w->s->taken.calls += call;
	w->s->taken.scopes++;
	w->s->process[v[0]].id = (uint32_t)v[0] + 1;
	seen(w->p, o->x.begin, o->x.end);
	return stage_put(w->s, w->put, v, 10);
}

/* Where it stands: as the file says, or in what is open. */
static int find_node(struct walk *w, struct open *o, bool *ret_overlaps)
{
	const struct open *above = around(w, &o->x, ret_overlaps);
	const uint32_t parent = above == NULL               ? 0
				: above->class != CLASS_CPU ? above->caller
							    : above->node;
	uint8_t kind = o->x.kind == SLICE_FRAME ? NODE_FRAME : NODE_SCOPE;
	const char *leaf;

	o->caller = above != NULL ? above->caller : 0;
	o->in_call = above != NULL && above->in_call;
	o->node = o->x.node;
	if (o->x.kind >= SLICE_VALUE && o->node == STAGE_NONE)
		o->node = parent;
	if (o->x.kind >= SLICE_LAUNCH)
		return 0;
	if (o->x.kind == SLICE_API && !o->in_call)
		o->class = call_class(w->s->name[o->x.name].s);
	if (o->class != CLASS_CPU) {
		o->in_call = true;
		kind = NODE_CALL;
		leaf = gpu_classes[o->class].leaf;
		if (!stage_name(w->s, leaf, strlen(leaf), &o->x.name))
			return stage_no_memory(w->s);
	}
	if (o->node == STAGE_NONE && !stage_child(w->s, parent, kind, o->x.name, &o->node))
		return stage_no_memory(w->s);
	w->s->taken.left[LEFT_OVERLAPS] += o->x.node == STAGE_NONE && *ret_overlaps;
	o->caller = o->x.kind == SLICE_API ? o->caller : o->node;
	return 0;
}

/* --- values that were set in a scope */

/* As a job's own metrics are kept: numbers add up, of words the last one stands. */
#define METRIC                                                                         \
	"INSERT INTO main.metric(session,process,segment,node,name,kind,value,count)"  \
	" VALUES(1,?1,0,?2,?3,?4,?5,1) ON CONFLICT DO UPDATE SET count=count+1,value=" \
	"iif(kind=2 OR excluded.kind=2,excluded.value,value+excluded.value)"

/* A number of JSON: whole where it is written so. false: none. */
static bool number_of(struct json_slice v, struct value *ret)
{
	char digits[64], *end;
	const bool sign = v.n > 0 && v.s[0] == '-';

	if (v.n == 0 || v.n >= sizeof(digits) || ((v.s[0] < '0' || v.s[0] > '9') && !sign))
		return false;
	memcpy(digits, v.s, v.n);
	digits[v.n] = '\0';
	errno = 0;
	if (digits[strcspn(digits, ".eE")] == '\0') {
		if (sign) {
			*ret = (struct value){.type = VALUE_I64, .i = strtoll(digits, &end, 10)};
		} else {
			*ret = (struct value){.type = VALUE_U64, .u = strtoull(digits, &end, 10)};
			if (ret->u <= INT64_MAX)
				*ret = (struct value){.type = VALUE_I64, .i = (int64_t)ret->u};
		}
		if (errno == 0)
			return *end == '\0';
	}
	*ret = (struct value){.type = VALUE_F64, .f = strtod(digits, &end)};
	return *end == '\0' && ret->f - ret->f == 0; /* it is finite */
}

static int add_metric(struct walk *w, uint32_t process, const struct open *o, uint32_t name,
	const struct value *v)
{
	sqlite3_stmt *q = w->metric;
	int rc;

	(void)sqlite3_bind_int64(q, 1, (int64_t)process + 1);
	(void)sqlite3_bind_int64(q, 2, (int64_t)o->node + 1);
	(void)sqlite3_bind_text(q, 3, w->s->name[name].s, (int)w->s->name[name].n, SQLITE_STATIC);
	(void)sqlite3_bind_int(q, 4, v->type == VALUE_STR ? KIND_PROPERTY : KIND_INCLUSIVE);
	if (v->type == VALUE_I64)
		(void)sqlite3_bind_int64(q, 5, v->i);
	else if (v->type == VALUE_STR)
		(void)sqlite3_bind_text(q, 5, v->s, -1, SQLITE_STATIC);
	else
		(void)sqlite3_bind_double(q, 5, v->type == VALUE_U64 ? (double)v->u : v->f);
	rc = sqlite3_step(q);
	(void)sqlite3_reset(q);
	return rc == SQLITE_DONE ? 0 : stage_wrong(w->s);
}

/* A number or a text; what is neither is counted. */
static int put_value(struct walk *w, const struct open *o, uint32_t name, struct json_slice of)
{
	const uint32_t process = w->s->thread[o->x.thread].process;
	struct value v = {.type = VALUE_STR};
	uint64_t bits = 0;
	uint32_t text;
	int r;

	w->word.n = 0;
	if (number_of(of, &v)) {
		memcpy(&bits, v.type == VALUE_F64 ? (void *)&v.f : (void *)&v.u, sizeof(bits));
	} else if (json_string(of, &w->word) && !w->word.failed) {
		if (!stage_name(w->s, w->word.n > 0 ? w->word.s : "", w->word.n, &text))
			return stage_no_memory(w->s);
		v.s = w->s->name[text].s;
		bits = text;
	} else {
		w->s->taken.left[LEFT_VALUES]++;
		return 0;
	}
	w->s->taken.values++;
	w->s->process[process].id = process + 1;
	seen(w->p, o->x.begin, o->x.begin);
	r = stage_put(w->s, w->value,
		(int64_t[]){process, o->x.thread, o->x.begin, o->node, v.type, name, (int64_t)bits},
		7);
	return r < 0 ? r : add_metric(w, process, o, name, &v);
}

static int put_values(struct walk *w, const struct open *o)
{
	const char *values = (const char *)sqlite3_column_text(w->from, 8);
	struct json all, list;
	struct json_slice key, v, one;
	uint32_t name;
	int r = 0;

	if (values == NULL)
		return 0;
	all = json_of((struct json_slice){values, strlen(values)});
	if (!json_open(&all, '{'))
		return 0;
	while (r == 0 && json_next(&all, '}', &key, &v)) {
		w->word.n = 0;
		if (!json_string(key, &w->word) || w->word.failed ||
			!stage_name(w->s, w->word.n > 0 ? w->word.s : "", w->word.n, &name))
			return stage_no_memory(w->s);
		list = json_of(v);
		if (!json_open(&list, '['))
			r = put_value(w, o, name, v);
		else
			while (r == 0 && json_next(&list, ']', NULL, &one))
				r = put_value(w, o, name, one);
	}
	return r;
}

static int put_memory(struct walk *w, const struct open *o)
{
	const uint32_t process = w->s->thread[o->x.thread].process;

	w->s->process[process].id = process + 1;
	seen(w->p, o->x.begin, o->x.begin);
	(void)sqlite3_bind_value(w->memory, 4, sqlite3_column_value(w->from, 8));
	return stage_put(w->s, w->memory, (int64_t[]){process, o->x.begin, o->node}, 3);
}

static int on_slice(struct walk *w)
{
	struct open o = {.x = {.thread = (uint32_t)sqlite3_column_int64(w->from, 0),
				 .begin = sqlite3_column_int64(w->from, 1),
				 .end = sqlite3_column_int64(w->from, 2),
				 .kind = (uint8_t)sqlite3_column_int(w->from, 3),
				 .name = (uint32_t)sqlite3_column_int64(w->from, 4),
				 .node = (uint32_t)sqlite3_column_int64(w->from, 5),
				 .correlation = sqlite3_column_int64(w->from, 6),
				 .flags = (uint8_t)sqlite3_column_int(w->from, 7)}};
	int64_t shift;
	bool overlaps;
	int r;

	if (o.x.thread != w->thread)
		w->n = 0;
	w->thread = o.x.thread;
	shift = shift_of(w->s, w->s->thread[o.x.thread].process);
	o.x.begin += shift;
	o.x.end += shift;
	r = find_node(w, &o, &overlaps);
	if (r == 0)
		r = put_launch(w, &o);
	if (r == 0)
		r = o.x.kind == SLICE_MEMORY ? put_memory(w, &o) : put_values(w, &o);
	if (r < 0 || o.x.kind >= SLICE_LAUNCH)
		return r;
	r = put_scope(w, &o);
	return r < 0 || (o.x.flags & TRACE_SPAN) != 0 ? r : push(w, &o);
}

/* --- GPU work */

#define OPS                                                                                    \
	"SELECT process, device, context, stream, start, end, class, name, node, correlation," \
	" flags, bytes, config, track FROM scratch.op ORDER BY start, rowid"

struct launch {
	uint32_t process, thread, node;
	int64_t at;
	bool used;
};

/* Of the owner of a GPU, or of whichever process of its file has one; *ret stays where there is none. */
static bool find_launch(struct walk *w, int64_t correlation, uint32_t gpu, struct launch *ret)
{
	const struct stage_process *p = &w->s->process[gpu];
	const bool owned = p->owner != STAGE_NONE;
	sqlite3_stmt *q = w->find;
	bool found;

	if (correlation <= 0)
		return false;
	(void)sqlite3_bind_int64(q, 1, correlation);
	(void)sqlite3_bind_int64(q, 2, owned ? p->owner : w->s->file[p->file].first_process);
	(void)sqlite3_bind_int64(q, 3, owned ? p->owner + 1 : stage_processes_end(w->s, p->file));
	found = sqlite3_step(q) == SQLITE_ROW;
	if (found)
		*ret = (struct launch){(uint32_t)sqlite3_column_int64(q, 0),
			(uint32_t)sqlite3_column_int64(q, 1), (uint32_t)sqlite3_column_int64(q, 2),
			sqlite3_column_int64(q, 3), sqlite3_column_int(q, 4) != 0};
	(void)sqlite3_reset(q);
	return found;
}

/* Where nothing has a correlation: by the arrow that ends where it begins. */
static bool follow_arrow(struct walk *w, int64_t v[14], struct launch *ret)
{
	sqlite3_stmt *q = w->arrow;
	bool found = false;

	(void)sqlite3_bind_int64(q, 1, sqlite3_column_int64(w->from, 13));
	(void)sqlite3_bind_int64(q, 2, v[4]);
	if (sqlite3_step(q) == SQLITE_ROW) {
		v[8] = sqlite3_column_int64(q, 0);
		found = find_launch(w, v[8], (uint32_t)v[0], ret);
	}
	(void)sqlite3_reset(q);
	return found;
}

/* Without its launch: of the GPU's owner, else of the one process of its file that has scopes. */
static uint32_t owner_of(const struct stage *s, uint32_t gpu)
{
	const uint32_t file = s->process[gpu].file, end = stage_processes_end(s, file);
	uint32_t i, only = STAGE_NONE, n = 0;

	if (s->process[gpu].owner != STAGE_NONE)
		return s->process[gpu].owner;
	for (i = s->file[file].first_process; i < end; i++)
		if (s->process[i].has_slices) {
			only = i;
			n++;
		}
	return n == 1 ? only : gpu;
}

static struct place_gpu *gpu_of(struct place *p, uint32_t process, uint32_t device)
{
	uint32_t i;

	for (i = 0; i < p->n_gpus; i++)
		if (p->gpu[i].process == process && p->gpu[i].busy->device == device)
			return &p->gpu[i];
	if (i == GPUS_MAX || !ROOM_FOR(p->gpu, p->cap_gpus, i))
		return NULL;
	p->gpu[i] = (struct place_gpu){.process = process, .busy = calloc(1, sizeof(struct busy))};
	if (p->gpu[i].busy == NULL)
		return NULL;
	p->gpu[i].busy->device = device;
	return &p->gpu[p->n_gpus++];
}

static int count_op(struct walk *w, uint32_t process, uint8_t class, const int64_t *v)
{
	struct place_gpu *g;
	struct busy_work op;

	w->s->taken.kernels += gpu_class_is_kernel(class);
	w->s->taken.copies += !gpu_class_is_kernel(class);
	w->s->process[process].id = process + 1;
	seen(w->p, v[4], v[5]);
	g = gpu_of(w->p, process, (uint32_t)v[1]);
	if (g == NULL)
		return w->p->n_gpus < GPUS_MAX ? stage_no_memory(w->s) : 0;
	op = (struct busy_work){place_busy_time(v[4]), place_busy_time(v[5]),
		v[12] == STAGE_NONE ? 0 : place_busy_time(v[13]), part_of_class(class)};
	if (!busy_add(g->busy, &op, op.begin, true)) /* they come in this order */
		return stage_no_memory(w->s);
	return 0;
}

static int use_launch(struct walk *w, int64_t correlation, const struct launch *l)
{
	const int64_t v[] = {correlation, l->process};

	return l->used ? 0 : stage_put(w->s, w->use, v, 2);
}

static int put_work(struct walk *w, const int64_t v[14])
{
	int i;

	for (i = 0; i < 14; i++)
		(void)sqlite3_bind_int64(w->put, i + 1, v[i]);
	if (v[12] == STAGE_NONE) {
		(void)sqlite3_bind_null(w->put, 13);
		(void)sqlite3_bind_null(w->put, 14);
	}
	i = sqlite3_step(w->put);
	(void)sqlite3_reset(w->put);
	return i == SQLITE_DONE ? 0 : stage_wrong(w->s);
}

static int on_op(struct walk *w)
{
	int64_t v[14], shift;
	struct launch l = {.node = 0, .thread = STAGE_NONE};
	const uint8_t class = (uint8_t)sqlite3_column_int(w->from, 6);
	uint32_t node = (uint32_t)sqlite3_column_int64(w->from, 8);
	const uint32_t name = (uint32_t)sqlite3_column_int64(w->from, 7);
	bool found;
	int i, r;

	for (i = 0; i < 7; i++)
		v[i] = sqlite3_column_int64(w->from, i);
	for (i = 8; i < 13; i++)
		v[i - 1] = sqlite3_column_int64(w->from, i);
	shift = shift_of(w->s, (uint32_t)v[0]);
	found = find_launch(w, v[8], (uint32_t)v[0], &l) || follow_arrow(w, v, &l);
	v[4] += shift;
	v[5] += shift;
	v[0] = found ? l.process : owner_of(w->s, (uint32_t)v[0]);
	if (node == STAGE_NONE && !stage_child(w->s, l.node, gpu_classes[class].node, name, &node))
		return stage_no_memory(w->s);
	w->s->taken.left[LEFT_PATHS] += !found;
	v[7] = node;
	v[9] |= found ? (l.used ? TRACE_MORE : 0) : TRACE_UNLAUNCHED;
	v[12] = l.thread;
	v[13] = l.at;
	r = put_work(w, v);
	if (r == 0 && found)
		r = use_launch(w, v[8], &l);
	return r < 0 ? r : count_op(w, (uint32_t)v[0], class, v);
}

/* --- the whole */

/* Records of waiting that stand by their GPU are of its owner, else of whichever process. */
static int own_syncs(struct stage *s)
{
	sqlite3_stmt *q = NULL;
	uint32_t i;
	int r = stage_prepare(s, "UPDATE OR IGNORE scratch.sync SET process=? WHERE process=?", &q);

	for (i = 0; r == 0 && i < s->n_processes; i++) {
		const struct stage_process *p = &s->process[i];

		if (p->owner != STAGE_NONE ? p->owner != i : !p->has_slices)
			r = stage_put(s, q,
				(int64_t[]){p->owner != STAGE_NONE ? p->owner : any_of(s, i), i},
				2);
	}
	(void)sqlite3_finalize(q);
	return r;
}

static int slices(struct walk *w)
{
	int r = stage_prepare(
		w->s, "INSERT INTO scratch.scope VALUES(?,?,?,?,?,?,?,?,?,?)", &w->put);

	if (r == 0)
		r = stage_prepare(w->s,
			"INSERT OR IGNORE INTO scratch.launch(correlation, process, thread, at, "
			"node,"
			" counts) VALUES(?,?,?,?,?,?)",
			&w->launch);
	if (r == 0)
		r = stage_prepare(
			w->s, "INSERT INTO scratch.value VALUES(?,?,?,?,?,?,?)", &w->value);
	if (r == 0)
		r = stage_prepare(w->s, METRIC, &w->metric);
	if (r == 0)
		r = stage_prepare(w->s, "INSERT INTO scratch.memory VALUES(?,?,?,?)", &w->memory);
	if (r == 0)
		r = stage_prepare(w->s,
			"SELECT begin, end, stream, event FROM scratch.sync WHERE process=? AND"
			" correlation=? AND class=? AND begin<=? ORDER BY begin DESC LIMIT 1",
			&w->sync);
	if (r == 0)
		r = stage_prepare(w->s,
			"UPDATE scratch.sync SET unused=0 WHERE process=? AND correlation=? AND"
			" class=? AND begin=? AND unused",
			&w->found);
	if (r == 0)
		r = own_syncs(w->s);
	if (r == 0)
		r = each_row(w, SLICES, on_slice);
	(void)sqlite3_finalize(w->put);
	(void)sqlite3_finalize(w->launch);
	(void)sqlite3_finalize(w->value);
	(void)sqlite3_finalize(w->metric);
	(void)sqlite3_finalize(w->memory);
	(void)sqlite3_finalize(w->sync);
	(void)sqlite3_finalize(w->found);
	w->put = w->launch = NULL;
	return r < 0 ? r : stage_run(w->s, "DROP TABLE scratch.slice");
}

static int ops(struct walk *w)
{
	int r = stage_prepare(
		w->s, "INSERT INTO scratch.work VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?)", &w->put);

	if (r == 0)
		r = stage_prepare(w->s,
			"SELECT process, thread, node, at, used FROM scratch.launch WHERE"
			" correlation=?1 AND process >= ?2 AND process < ?3 LIMIT 1",
			&w->find);
	if (r == 0)
		r = stage_prepare(w->s,
			"UPDATE scratch.launch SET used=1 WHERE correlation=?1 AND process=?2",
			&w->use);
	if (r == 0)
		r = stage_prepare(
			w->s, "SELECT key FROM scratch.arrow WHERE thread=? AND at=?", &w->arrow);
	if (r == 0)
		r = each_row(w, OPS, on_op);
	(void)sqlite3_finalize(w->arrow);
	(void)sqlite3_finalize(w->put);
	(void)sqlite3_finalize(w->find);
	(void)sqlite3_finalize(w->use);
	return r < 0 ? r : stage_run(w->s, "DROP TABLE scratch.op");
}

static int on_launches(struct walk *w)
{
	w->s->taken.matched = (uint64_t)sqlite3_column_int64(w->from, 0);
	w->s->taken.unmatched = (uint64_t)sqlite3_column_int64(w->from, 1);
	return 0;
}

static int devices_of_tree(struct place *p)
{
	uint32_t i;

	p->low = p->high = 0;
	for (i = 0; i < p->s->n_devices && i < GPUS_MAX; i++)
		if (gpu_of(p, 0, p->s->device[i].ordinal) == NULL)
			return stage_no_memory(p->s);
	return 0;
}

int stage_place(struct stage *s, const struct import_options *o)
{
	struct place p = {.s = s, .low = INT64_MAX, .high = INT64_MIN};
	struct walk w = {.p = &p, .s = s};
	int r = stage_run(s, tables);

	if (r == 0)
		r = each_row(&w, EDGES, on_edge);
	s->taken.left[LEFT_OPEN] += w.n;
	if (r == 0)
		r = slices(&w);
	if (r == 0)
		r = ops(&w);
	if (r == 0)
		r = each_row(&w,
			"SELECT total(used), total(counts AND NOT used) FROM scratch.launch",
			on_launches);
	if (s->source == FROM_HATCHET) /* a tree has no times; its devices are seen as they are */
		r = r < 0 ? r : devices_of_tree(&p);
	else if (r == 0 && p.low > p.high)
		r = err_set(s->e, -ENODATA, "%s holds no scope and no GPU work", o->in->file);
	if (r == 0)
		r = session_write(&p, o);
	text_fini(&w.word);
	free(w.open);
	while (p.n_gpus-- > 0) {
		busy_fini(p.gpu[p.n_gpus].busy);
		free(p.gpu[p.n_gpus].busy);
	}
	free(p.gpu);
	return r;
}
