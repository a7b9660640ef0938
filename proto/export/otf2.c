/* SPDX-License-Identifier: MIT. otf2.c: the format otf2: an archive of the Open Trace Format 2, a folder
 * that Vampir, TAU, Scalasca and otf2-print read.
 *
 * A process is a location group, each thread a location of it, and what the thread summed another; each
 * GPU of it is a group, each lane of a stream a location. What overlaps another in part has a further
 * location beside it, for a location has a stack. The library is looked for when it is needed: it is for those who read such archives,
 * and no daemon loads it. */
#include "export_format.h"

#if !__has_include(<otf2/otf2.h>)

#include <errno.h>

int otf2_write(struct sqlite3 *db, int64_t id, const struct profile_select *s, const char *folder,
	struct export_left *ret_left, struct err *e)
{
	(void)db;
	(void)id;
	(void)s;
	(void)folder;
	(void)ret_left;
	return err_set(e, -ENOTSUP,
		"this protonview was built without OTF2's headers: install "
		"libopen-trace-format2-dev (Debian) and build it again");
}

#else

#include <dlfcn.h>
#include <inttypes.h>
#include <otf2/otf2.h>
#include <stdio.h>
#include <stdlib.h>

#include "name_set.h"
#include "sorted.h"

#define CHUNK_EVENTS   OTF2_CHUNK_SIZE_MIN
#define CHUNK_DEFS     (4u << 20)

/* clang-format off */
#define CALLS(X) \
	X(Error_RegisterCallback) X(Error_GetDescription) \
	X(Archive_Open) X(Archive_SetFlushCallbacks) X(Archive_SetMemoryCallbacks) X(Archive_SetSerialCollectiveCallbacks) \
	X(Archive_SetCreator) X(Archive_OpenEvtFiles) X(Archive_CloseEvtFiles) \
	X(Archive_OpenDefFiles) X(Archive_CloseDefFiles) X(Archive_GetEvtWriter) \
	X(Archive_CloseEvtWriter) X(Archive_GetDefWriter) X(Archive_CloseDefWriter) \
	X(Archive_GetGlobalDefWriter) X(Archive_Close) \
	X(EvtWriter_Enter) X(EvtWriter_Leave) \
	X(AttributeList_New) X(AttributeList_Delete) X(AttributeList_AddUint64) \
	X(GlobalDefWriter_WriteClockProperties) X(GlobalDefWriter_WriteString) \
	X(GlobalDefWriter_WriteSystemTreeNode) X(GlobalDefWriter_WriteLocationGroup) \
	X(GlobalDefWriter_WriteLocation) X(GlobalDefWriter_WriteRegion) \
	X(GlobalDefWriter_WriteAttribute)

#define ATTRIBUTES(X) /* what an operation says beside its times */ \
	X(correlation, "number that the launch and its work share")   \
	X(events,      "events that were summed, and are in no other place") \
	X(bytes,       "bytes copied or set")                         \
	X(context,     "number of the GPU's context")                 \
	X(grid_x, "blocks") X(grid_y, "blocks") X(grid_z, "blocks")   \
	X(block_x, "threads of a block") X(block_y, "threads of a block") X(block_z, "threads of a block") \
	X(registers, "registers of a thread")                         \
	X(static_shared, "bytes of shared memory") X(dynamic_shared, "bytes of shared memory")
/* clang-format on */
enum {
#define X(name, words) ATTRIBUTE_##name,
	ATTRIBUTES(X)
#undef X
		ATTRIBUTES_N
};

struct calls {
	void *lib;
#define X(name) __typeof__(OTF2_##name) *name;
	CALLS(X)
#undef X
};

#define SUMMED  LANES_MAX /* a thread's lane of bursts */
#define WRITERS (LANES_MAX + 1u)

struct location {
	uint64_t events;
	uint32_t thread, lane; /* of a stream: thread SORTED_NONE, lane in the list */
};

struct archive {
	struct calls call;
	const char *folder;
	OTF2_Archive *at;
	OTF2_EvtWriter *writer[WRITERS]; /* of the thread's lanes and bursts, or of a stream's */
	uint64_t open[WRITERS];          /* the location of each */
	OTF2_AttributeList *attributes;
	struct location *location;
	uint32_t n_locations, cap_locations;
	uint32_t stream;  /* the lane that writer[0] is of */
	uint32_t *region; /* [n_known + launches]: of a node, of a launch; 0: not told, else + 1 */
	struct name_set names; /* of regions: enum role, and the name */
	uint32_t n_strings;
	uint64_t last_ns;
	OTF2_ErrorCode first; /* what the library said */
	char words[160];
};

static struct archive *archive(struct sorted *s)
{
	return s->mine;
}

/* --- the library */

/* Debian's name of it, and its own. */
static int load(struct calls *c, struct err *e)
{
	static const char *const names[] = {"libopen-trace-format2.so.10", "libotf2.so.10"};
	void *at;
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(*names) && c->lib == NULL; i++)
		c->lib = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
	if (c->lib == NULL)
		return err_set(e, -ENOTSUP,
			"otf2 needs OTF2's library, version 3, which is not here (on Debian: "
			"apt-get install libopen-trace-format2-10)");
#define X(name)                                                                             \
	at = dlsym(c->lib, "OTF2_" #name);                                                  \
	if (at == NULL)                                                                     \
		return err_set(e, -ENOTSUP, "the OTF2 library here has no OTF2_%s", #name); \
	memcpy(&c->name, &at, sizeof(at));
	CALLS(X)
#undef X
	return 0;
}

/* It would print, and then go on. */
__attribute__((format(printf, 6, 0))) static OTF2_ErrorCode on_error(void *data, const char *file,
	uint64_t line, const char *function, OTF2_ErrorCode code, const char *format, va_list args)
{
	struct archive *a = data;

	(void)file;
	(void)line;
	(void)function;
	if (a->words[0] == '\0') {
		vsnprintf(a->words, sizeof(a->words), format, args);
		a->first = code;
	}
	return code;
}

/* Its first complaint is the cause; the others are what came of it. */
static int cannot(struct archive *a, OTF2_ErrorCode code, struct err *e)
{
	const OTF2_ErrorCode why = a->first != OTF2_SUCCESS ? a->first : code;

	return err_set(e, why == OTF2_ERROR_ENOSPC ? -ENOSPC : -EIO,
		"the archive cannot be written: %s (%s)", a->call.Error_GetDescription(why),
		a->words);
}

static void check(struct sorted *s, OTF2_ErrorCode code)
{
	struct archive *a = archive(s);

	if (code == OTF2_SUCCESS || s->r < 0)
		return;
	s->r = cannot(a, code, s->w->l.e);
}

static void check_is(struct sorted *s, const void *p)
{
	check(s, p != NULL ? OTF2_SUCCESS : OTF2_ERROR_MEM_FAULT);
}

static OTF2_FlushType flush_always(
	void *data, OTF2_FileType type, OTF2_LocationRef at, void *caller, bool final)
{
	(void)data;
	(void)type;
	(void)at;
	(void)caller;
	(void) final;
	return OTF2_FLUSH;
}

/* One chunk for each buffer: it is written when that is full. By itself the library keeps 128 MiB. */
static void *chunk_new(
	void *data, OTF2_FileType type, OTF2_LocationRef at, void **mine, uint64_t bytes)
{
	(void)data;
	(void)type;
	(void)at;
	if (*mine != NULL)
		return NULL;
	*mine = malloc(bytes);
	return *mine;
}

static void chunk_free(void *data, OTF2_FileType type, OTF2_LocationRef at, void **mine, bool final)
{
	(void)data;
	(void)type;
	(void)at;
	(void) final;
	free(*mine);
	*mine = NULL;
}

/* --- events */

static uint64_t wall(struct sorted *s, uint64_t ns)
{
	struct archive *a = archive(s);

	a->last_ns = ns > a->last_ns ? ns : a->last_ns;
	return (uint64_t)(s->w->zero_ns) + ns;
}

/* The writer of a lane; its location begins with its first event. */
static OTF2_EvtWriter *writer_of(struct sorted *s, uint32_t at, uint32_t thread, uint32_t lane)
{
	struct archive *a = archive(s);

	if (a->writer[at] != NULL || s->r < 0)
		return a->writer[at];
	if (!ROOM_FOR(a->location, a->cap_locations, a->n_locations)) {
		s->r = timeline_no_memory(s->w);
		return NULL;
	}
	a->open[at] = a->n_locations;
	a->location[a->n_locations] = (struct location){.thread = thread, .lane = lane};
	a->writer[at] = a->call.Archive_GetEvtWriter(a->at, a->n_locations++);
	check_is(s, a->writer[at]);
	return a->writer[at];
}

static void close_writers(struct sorted *s)
{
	struct archive *a = archive(s);
	uint32_t i;

	for (i = 0; i < WRITERS; i++) {
		if (a->writer[i] != NULL)
			check(s, a->call.Archive_CloseEvtWriter(a->at, a->writer[i]));
		a->writer[i] = NULL;
	}
}

static void enter(struct sorted *s, uint32_t at, OTF2_EvtWriter *to, uint64_t ns, uint32_t region)
{
	struct archive *a = archive(s);

	if (to == NULL || s->r < 0)
		return;
	check(s, a->call.EvtWriter_Enter(to, a->attributes, wall(s, ns), region));
	a->location[a->open[at]].events++;
}

static void leave(struct sorted *s, uint32_t at, OTF2_EvtWriter *to, uint64_t ns, uint32_t region)
{
	struct archive *a = archive(s);

	if (to == NULL || s->r < 0)
		return;
	check(s, a->call.EvtWriter_Leave(to, NULL, wall(s, ns), region));
	a->location[a->open[at]].events++;
}

static void attribute(struct sorted *s, uint32_t which, uint64_t v)
{
	struct archive *a = archive(s);

	check(s, a->call.AttributeList_AddUint64(a->attributes, which, v));
}

/* --- regions: what has one name and is of one kind is one, numbered as they come */

#define LAUNCHES (CLASS_MAX + 1u) /* of each class, and of a graph */

/* clang-format off */
#define ROLES(X) \
	X('s', CODE) /* a scope */ X('l', WRAPPER) /* a launch */ X('k', FUNCTION) /* a kernel */ \
	X('c', DATA_TRANSFER) X('b', ARTIFICIAL) /* a burst */
/* clang-format on */

static uint32_t region_of(struct sorted *s, uint32_t at, char role, const char *name)
{
	struct archive *a = archive(s);
	struct text words = {0};
	const char *key;

	if (a->region[at] != 0)
		return a->region[at] - 1;
	text_char(&words, role);
	text_str(&words, name);
	key = words.failed ? NULL : profile_text(s->w->l.p, words.s, words.n);
	text_fini(&words);
	a->region[at] = key == NULL ? 0 : name_set_add(&a->names, key) + 1;
	if (a->region[at] == 0) { /* TABLE_NONE + 1, too */
		s->r = timeline_no_memory(s->w);
		return 0;
	}
	return a->region[at] - 1;
}

static uint32_t node_region(struct sorted *s, uint32_t node)
{
	const struct known *k = &s->w->known[node];

	return region_of(s, node,
		k->kind == NODE_KERNEL                        ? 'k'
		: k->kind == NODE_COPY || k->kind == NODE_SET ? 'c'
							      : 's',
		k->name);
}

static uint32_t launch_region(struct sorted *s, const struct sorted_op *o)
{
	const bool graph = (o->flags & TRACE_GRAPH) != 0;

	return region_of(s, s->w->names.n + (graph ? CLASS_MAX : o->class), 'l',
		graph ? "launch graph" : gpu_classes[o->class].launch);
}

static uint32_t burst_region(struct sorted *s)
{
	return region_of(s, s->w->names.n + LAUNCHES, 'b', "events summed");
}

/* --- threads and streams */

static void otf2_scope(struct sorted *s, struct sorted_scope *x)
{
	enter(s, x->lane, writer_of(s, x->lane, x->thread, x->lane), x->begin_ns,
		node_region(s, x->node));
}

static void otf2_scope_end(struct sorted *s, struct sorted_scope *x)
{
	leave(s, x->lane, archive(s)->writer[x->lane], x->end_ns, node_region(s, x->node));
}

/* A launch has no length: its call is not timed. */
static void otf2_launch(struct sorted *s, const struct sorted_op *o)
{
	OTF2_EvtWriter *to;

	if ((o->flags & (TRACE_UNLAUNCHED | TRACE_MORE)) != 0)
		return;
	to = writer_of(s, 0, o->thread, 0);
	attribute(s, ATTRIBUTE_correlation, o->correlation);
	enter(s, 0, to, o->launch_ns, launch_region(s, o));
	leave(s, 0, to, o->launch_ns, launch_region(s, o));
}

static void otf2_burst(struct sorted *s, const struct sorted_burst *b)
{
	OTF2_EvtWriter *to = writer_of(s, SUMMED, b->thread, SUMMED);

	attribute(s, ATTRIBUTE_events, b->n);
	enter(s, SUMMED, to, b->begin_ns, burst_region(s));
	leave(s, SUMMED, to, b->end_ns, burst_region(s));
}

static void otf2_thread_end(struct sorted *s, uint32_t thread)
{
	(void)thread;
	close_writers(s);
}

static void otf2_op(struct sorted *s, const struct sorted_op *o)
{
	struct archive *a = archive(s);
	OTF2_EvtWriter *to;

	if (a->stream != o->lane)
		close_writers(s);
	a->stream = o->lane;
	to = writer_of(s, 0, SORTED_NONE, o->lane);
	if ((o->flags & TRACE_UNLAUNCHED) == 0)
		attribute(s, ATTRIBUTE_correlation, o->correlation);
	if (!gpu_class_is_kernel(o->class))
		attribute(s, ATTRIBUTE_bytes, o->bytes);
	attribute(s, ATTRIBUTE_context, o->context);
	if (o->configured) {
		for (uint32_t i = 0; i < 3; i++) {
			attribute(s, ATTRIBUTE_grid_x + i, o->config.grid[i]);
			attribute(s, ATTRIBUTE_block_x + i, o->config.block[i]);
		}
		attribute(s, ATTRIBUTE_registers, o->config.registers);
		attribute(s, ATTRIBUTE_static_shared, o->config.static_shared);
		attribute(s, ATTRIBUTE_dynamic_shared, o->config.dynamic_shared);
	}
	enter(s, 0, to, o->start_ns, node_region(s, o->node));
	leave(s, 0, to, o->end_ns, node_region(s, o->node));
}

/* --- definitions */

static uint32_t string(struct sorted *s, OTF2_GlobalDefWriter *to, const char *words)
{
	struct archive *a = archive(s);

	check(s, a->call.GlobalDefWriter_WriteString(to, a->n_strings, words));
	return a->n_strings++;
}

static void put_regions(struct sorted *s, OTF2_GlobalDefWriter *to)
{
	const bool hip = s->w->l.p->n_devices > 0 && strcmp(s->w->l.p->device[0].type, "HIP") == 0;
	const OTF2_Paradigm gpu = hip ? OTF2_PARADIGM_HIP : OTF2_PARADIGM_CUDA;
	struct archive *a = archive(s);
	uint32_t i;

	for (i = 0; i < a->names.n && s->r == 0; i++) {
		const char *name = a->names.name[i];
		const uint32_t words = string(s, to, name + 1);
		OTF2_RegionRole role = OTF2_REGION_ROLE_UNKNOWN;

#define X(letter, is)          \
	if (*name == (letter)) \
		role = OTF2_REGION_ROLE_##is;
		ROLES(X)
#undef X
		check(s, a->call.GlobalDefWriter_WriteRegion(to, i, words, words, 0, role,
				 *name == 's'   ? OTF2_PARADIGM_USER
				 : *name == 'b' ? OTF2_PARADIGM_MEASUREMENT_SYSTEM
						: gpu,
				 OTF2_REGION_FLAG_NONE, 0, 0, 0));
	}
}

/* Processes, then GPUs. */
static void put_groups(struct sorted *s, OTF2_GlobalDefWriter *to)
{
	struct archive *a = archive(s);
	struct text words = {0};
	uint32_t i;

	for (i = 0; i < s->n_processes + s->n_gpus; i++) {
		const bool is_gpu = i >= s->n_processes;
		const struct sorted_gpu *g = is_gpu ? &s->gpu[i - s->n_processes] : NULL;
		const struct sorted_process *p = &s->process[is_gpu ? g->process : i];

		words.n = 0;
		if (is_gpu)
			text_fmt(&words, "GPU %u %s of ", g->ordinal, g->name);
		if (p->ranked)
			text_fmt(&words, "rank %" PRId64 ", ", p->rank);
		text_fmt(&words, "pid %" PRId64 ": %s", p->pid, p->command);
		text_char(&words, '\0');
		if (words.failed) {
			s->r = timeline_no_memory(s->w);
			break;
		}
		check(s, a->call.GlobalDefWriter_WriteLocationGroup(to, i, string(s, to, words.s),
				 is_gpu ? OTF2_LOCATION_GROUP_TYPE_ACCELERATOR
					: OTF2_LOCATION_GROUP_TYPE_PROCESS,
				 0, is_gpu ? g->process : OTF2_UNDEFINED_LOCATION_GROUP));
	}
	text_fini(&words);
}

static void put_location(struct sorted *s, OTF2_GlobalDefWriter *to, uint32_t at)
{
	struct archive *a = archive(s);
	const struct location *l = &a->location[at];
	char words[128];

	if (l->thread == SORTED_NONE) {
		const struct sorted_lane *x = &s->lane[l->lane];

		gpu_stream_words(s->gpu[x->gpu].streams, x->stream, x->lane, words);
		check(s, a->call.GlobalDefWriter_WriteLocation(to, at, string(s, to, words),
				 OTF2_LOCATION_TYPE_ACCELERATOR_STREAM, l->events,
				 s->n_processes + x->gpu));
		return;
	}
	const struct sorted_thread *t = &s->thread[l->thread];
	const char *name = t->name != NULL ? t->name : "thread";

	snprintf(words, sizeof(words),
		l->lane == 0        ? "%.*s (%u)"
		: l->lane == SUMMED ? "%.*s (%u), summed"
				    : "%.*s (%u), %u",
		(int)text_cut(name, 64), name, t->tid, l->lane + 1);
	check(s, a->call.GlobalDefWriter_WriteLocation(to, at, string(s, to, words),
			 OTF2_LOCATION_TYPE_CPU_THREAD, l->events, t->process));
}

static void put_attributes(struct sorted *s, OTF2_GlobalDefWriter *to)
{
	static const struct {
		const char *name, *words;
	} attributes[ATTRIBUTES_N] = {
#define X(name, words) {#name, words},
		ATTRIBUTES(X)
#undef X
	};
	uint32_t i;

	for (i = 0; i < ATTRIBUTES_N; i++)
		check(s, archive(s)->call.GlobalDefWriter_WriteAttribute(to, i,
				 string(s, to, attributes[i].name),
				 string(s, to, attributes[i].words), OTF2_TYPE_UINT64));
}

/* Readers open the definitions of each location, although all of them are global. */
static void put_local(struct sorted *s)
{
	struct archive *a = archive(s);
	uint32_t i;

	check(s, a->call.Archive_OpenDefFiles(a->at));
	for (i = 0; i < a->n_locations && s->r == 0; i++) {
		OTF2_DefWriter *to = a->call.Archive_GetDefWriter(a->at, i);

		check_is(s, to);
		if (to != NULL)
			check(s, a->call.Archive_CloseDefWriter(a->at, to));
	}
	check(s, a->call.Archive_CloseDefFiles(a->at));
}

static void otf2_close(struct sorted *s)
{
	struct archive *a = archive(s);
	const uint64_t zero = (uint64_t)(s->w->zero_ns);
	OTF2_GlobalDefWriter *to;
	uint32_t i;

	close_writers(s);
	check(s, a->call.Archive_CloseEvtFiles(a->at));
	put_local(s);
	to = a->call.Archive_GetGlobalDefWriter(a->at);
	check_is(s, to);
	if (to == NULL)
		return;
	check(s, a->call.GlobalDefWriter_WriteClockProperties(
			 to, 1000000000, zero, a->last_ns + 1, zero));
	(void)string(s, to, "");
	check(s, a->call.GlobalDefWriter_WriteSystemTreeNode(to, 0, string(s, to, "node"),
			 string(s, to, "node"), OTF2_UNDEFINED_SYSTEM_TREE_NODE));
	put_attributes(s, to);
	put_regions(s, to);
	put_groups(s, to);
	for (i = 0; i < a->n_locations && s->r == 0; i++)
		put_location(s, to, i);
}

static void otf2_open(struct sorted *s)
{
	static const OTF2_FlushCallbacks flush = {.otf2_pre_flush = flush_always};
	static const OTF2_MemoryCallbacks memory = {chunk_new, chunk_free};
	struct archive *a = archive(s);

	a->at = a->call.Archive_Open(a->folder, "traces", OTF2_FILEMODE_WRITE, CHUNK_EVENTS,
		CHUNK_DEFS, OTF2_SUBSTRATE_POSIX, OTF2_COMPRESSION_NONE);
	a->attributes = a->call.AttributeList_New();
	check_is(s, a->at);
	check_is(s, a->attributes);
	a->region = calloc((size_t)s->w->names.n + LAUNCHES + 1, sizeof(*a->region));
	if (a->region == NULL)
		s->r = timeline_no_memory(s->w);
	if (s->r < 0)
		return;
	check(s, a->call.Archive_SetFlushCallbacks(a->at, &flush, NULL));
	check(s, a->call.Archive_SetMemoryCallbacks(a->at, &memory, NULL));
	check(s, a->call.Archive_SetSerialCollectiveCallbacks(a->at));
	check(s, a->call.Archive_SetCreator(a->at, "protond " PROTOND_BUILD_VERSION));
	check(s, a->call.Archive_OpenEvtFiles(a->at));
}

int otf2_write(struct sqlite3 *db, int64_t id, const struct profile_select *s, const char *folder,
	struct export_left *ret_left, struct err *e)
{
	static const struct sorted_form form = {.by_thread = true,
		.lanes = true,
		.open = otf2_open,
		.scope = otf2_scope,
		.scope_end = otf2_scope_end,
		.op = otf2_launch,
		.burst = otf2_burst,
		.thread_end = otf2_thread_end,
		.lane_op = otf2_op,
		.close = otf2_close};
	struct archive a = {.folder = folder, .stream = SORTED_NONE};
	int r = load(&a.call, e);

	if (r == 0) {
		(void)a.call.Error_RegisterCallback(on_error, &a);
		r = sorted_write(&form, &a, db, id, s, NULL, ret_left, e);
	}
	/* It writes the definitions, and returns success when they did not fit, having complained. */
	if (a.at != NULL &&
		(a.call.Archive_Close(a.at) != OTF2_SUCCESS || a.first != OTF2_SUCCESS) && r == 0)
		r = cannot(&a, a.first, e);
	if (a.attributes != NULL)
		(void)a.call.AttributeList_Delete(a.attributes);
	free(a.location);
	free(a.region);
	name_set_fini(&a.names);
	if (a.call.lib != NULL)
		dlclose(a.call.lib);
	return r;
}

#endif
