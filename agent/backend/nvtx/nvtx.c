/* SPDX-License-Identifier: MIT. nvtx.c: NVTX push and pop ranges as scopes, of every domain.
 *
 * NVTX v3 loads the library named by NVTX_INJECTION64_PATH at a program's first NVTX call and hands
 * it a function that gives tables of slots: pointers to function pointers, which we set. Slots that
 * are not ours stay NULL: their calls do nothing. Attached once, for good: while nothing is recorded
 * a push costs what a scope costs then.
 *
 * A range that is started, and ended on any thread, is a span below where it was started; its id is
 * all that is known of it until then. A mark is a scope of no length. A number in the attributes of
 * a range or a mark is its metric "payload". What they are called is nvtx_name.c's.
 *
 * A pop closes a scope only if a push of NVTX's own is open on this thread: each push leaves a mark
 * of where it stands. One whose scope was closed by others, because they left what it stood in,
 * only takes its mark away.
 *
 * Extensions have tables of their own. Of payloads' we take what registers schemas, and the ranges
 * and marks that are made of payloads; nvtx_payload.c reads them.
 */
#include <stdatomic.h>
#include <string.h>
#include <strings.h>
#include <wchar.h>

#include "agent.h"
#include "nvtx_name.h"
#include "nvtx_payload.h"

#define ETID_CALLBACKS 1u
#define MODULE_CORE    1
#define MODULE_CORE2   5
#define MODULE_DRIVER  2 /* objects of CUDA's driver, and of its runtime */
#define MODULE_RUNTIME 4
#define COLOR_ARGB     1
#define NO_PUSH        (-2) /* NVTX_NO_PUSH_POP_TRACKING */

enum core_slot {
	CORE_MARK_EX = 1,
	CORE_MARK_A = 2,
	CORE_MARK_W = 3,
	CORE_START_EX = 4,
	CORE_START_A = 5,
	CORE_START_W = 6,
	CORE_END = 7,
	CORE_PUSH_EX = 8,
	CORE_PUSH_A = 9,
	CORE_PUSH_W = 10,
	CORE_POP = 11,
	CORE_CATEGORY_A = 12,
	CORE_CATEGORY_W = 13,
	CORE_THREAD_A = 14,
	CORE_THREAD_W = 15,
};
enum core2_slot {
	CORE2_MARK_EX = 1,
	CORE2_START_EX = 2,
	CORE2_END = 3,
	CORE2_PUSH_EX = 4,
	CORE2_POP = 5,
	CORE2_CATEGORY_A = 8,
	CORE2_CATEGORY_W = 9,
	CORE2_STRING_A = 10,
	CORE2_STRING_W = 11,
	CORE2_DOMAIN_A = 12,
	CORE2_DOMAIN_W = 13,
};
enum driver_slot {
	DRIVER_DEVICE_A = 1,
	DRIVER_DEVICE_W = 2,
	DRIVER_CONTEXT_A = 3,
	DRIVER_CONTEXT_W = 4,
	DRIVER_STREAM_A = 5,
	DRIVER_STREAM_W = 6,
	DRIVER_EVENT_A = 7,
	DRIVER_EVENT_W = 8
};
enum runtime_slot {
	RUNTIME_DEVICE_A = 1,
	RUNTIME_DEVICE_W = 2,
	RUNTIME_STREAM_A = 3,
	RUNTIME_STREAM_W = 4,
	RUNTIME_EVENT_A = 5,
	RUNTIME_EVENT_W = 6
};
#define MODULE_PAYLOAD 2 /* of the extensions */
enum payload_slot {
	PAYLOAD_SCHEMA = 0,
	PAYLOAD_ENUM = 1,
	PAYLOAD_MARK = 2,
	PAYLOAD_PUSH = 3,
	PAYLOAD_POP = 4,
	PAYLOAD_START = 5,
	PAYLOAD_END = 6,
	PAYLOAD_SLOTS
};
enum payload_type {
	PAYLOAD_U64 = 1,
	PAYLOAD_I64 = 2,
	PAYLOAD_F64 = 3,
	PAYLOAD_U32 = 4,
	PAYLOAD_I32 = 5,
	PAYLOAD_F32 = 6,
	PAYLOAD_EXT = (int32_t)0xdfbd0009, /* struct payload_data, `reserved` of them */
};

typedef void slot_fn(void);

struct export_callbacks { /* NvtxExportTableCallbacks */
	size_t bytes;
	int (*table)(int module, slot_fn ***ret_table[], unsigned *ret_size);
};

struct attributes { /* nvtxEventAttributes_t, version 1 and later */
	uint16_t version, bytes;
	uint32_t category;
	int32_t color_type;
	uint32_t color;
	int32_t payload_type, reserved;
	uint64_t payload;
	int32_t message_type; /* enum message_type */
	const void *message;
};

static const struct protond_host *host; /* whose threads and names ranges are */
static uint32_t payload_name, category_name, color_name;
static _Atomic uint64_t colors[NAMES_MAX]; /* by name: agent_cut() when it was told, and what */

#define MARKS     16u /* deeper pushes are only counted */
#define NAME_BITS 16
#define MARK_TOP  UINT16_MAX /* as a depth: beyond what a mark can say */
_Static_assert(NAMES_MAX <= 1u << NAME_BITS && STACK_MAX < MARK_TOP, "a mark is one word");

static __thread struct {
	uint32_t pushed;
	uint32_t given;       /* bits: a mark whose payload was read when it was pushed */
	uint32_t mark[MARKS]; /* the depth that the scope was entered at, and its name */
} ranges __attribute__((tls_model("initial-exec")));

/* --- what the slots are set to ---------------------------------------------------------------- */

/* A pass inside a pass. */
static bool is_folded(const struct pd_thread *t, uint32_t name)
{
	return nvtx_is_pass(name) && ranges.pushed < MARKS && t->depth > 0 &&
	       t->depth <= STACK_MAX && t->frame[t->depth - 1].name == name;
}

static int push(uint32_t name, bool out)
{
	struct pd_thread *t = host->thread();
	bool folded;
	uint32_t depth;

	if (t == NULL)
		return NO_PUSH;
	folded = out || agent_markers_off() || is_folded(t, name);
	depth = t->depth < MARK_TOP && !folded ? t->depth : MARK_TOP;
	/* Whose mark says so, whatever is on at its end; deeper ones have none, and stay scopes. */
	if (ranges.pushed < MARKS)
		ranges.mark[ranges.pushed] = depth << NAME_BITS | name;
	if (!folded)
		agent_scope_enter(t, name);
	return (int)ranges.pushed++;
}

/* Is the scope of the mark open? Of one that the stack did not keep only its depth is known. */
static bool is_open(const struct pd_thread *t, uint32_t mark)
{
	const uint32_t depth = mark >> NAME_BITS, name = mark & ((1u << NAME_BITS) - 1);

	return t->depth > depth && (depth >= STACK_MAX || t->frame[depth].name == name);
}

static bool is_whole(const struct attributes *a)
{
	return a != NULL && a->bytes >= sizeof(*a);
}

static struct title title_ex(const void *domain, const struct attributes *a)
{
	return is_whole(a) ? nvtx_title(domain, a->message_type, a->message)
			   : nvtx_title(domain, MESSAGE_NONE, NULL);
}

static void give_number(struct pd_thread *t, const struct attributes *a, uint64_t context)
{
	uint32_t type = METRIC_U64;
	uint64_t bits = a->payload;
	float f32;
	double f64;

	switch (a->payload_type) {
	case PAYLOAD_U64:
		break;
	case PAYLOAD_U32:
		bits = (uint32_t)bits;
		break;
	case PAYLOAD_I64:
		type = METRIC_I64;
		break;
	case PAYLOAD_I32:
		type = METRIC_I64;
		bits = (uint64_t)(int64_t)(int32_t)(uint32_t)bits;
		break;
	case PAYLOAD_F32:
		memcpy(&f32, &a->payload, sizeof(f32));
		f64 = (double)f32;
		memcpy(&bits, &f64, sizeof(bits));
		type = METRIC_F64;
		break;
	case PAYLOAD_F64:
		type = METRIC_F64;
		break;
	default:
		return;
	}
	agent_metric_at(t, context, payload_name, type, bits);
}

/* Its name, or its number where it has none. */
static void give_category(
	struct pd_thread *t, const void *domain, uint32_t category, uint64_t context)
{
	const uint32_t name = nvtx_category(domain, category);

	if (name != 0)
		agent_metric_at(t, context, category_name, METRIC_STR, name);
	else
		agent_metric_at(t, context, category_name, METRIC_U64, category);
}

/* Once for a name and what sessions there are, and when it changes: a name has one colour, and its
 * events need not say it again. */
static void give_color(
	struct pd_thread *t, const struct title *title, uint32_t argb, uint64_t context)
{
	static const char digit[] = "0123456789abcdef";
	const uint64_t is = (uint64_t)agent_cut() << 32 | argb;
	_Atomic uint64_t *at = &colors[title->name % NAMES_MAX];
	char text[7] = "#";
	uint32_t i, value;

	if (atomic_load_explicit(at, memory_order_relaxed) == is)
		return;
	atomic_store_explicit(at, is, memory_order_relaxed);
	for (i = 0; i < 6; i++)
		text[1 + i] = digit[argb >> (20 - 4 * i) & 15];
	value = nvtx_text(text, sizeof(text));
	if (value != 0)
		agent_metric_at(t, context, color_name, METRIC_STR, value);
	else
		agent_lost(t, LOST_NVTX, 1);
}

/* All that a range or a mark says: of the scope that the thread stands in, or of `context`. */
static void give(
	const struct title *title, const void *domain, const struct attributes *a, uint64_t context)
{
	struct pd_thread *t = host->thread();
	struct payloads p;

	if (t == NULL || !agent_metrics_on())
		return;
	nvtx_title_give(t, title, context);
	if (!is_whole(a))
		return;
	if (a->color_type == COLOR_ARGB)
		give_color(t, title, a->color, context);
	if (a->category != 0)
		give_category(t, domain, a->category, context);
	if (a->payload_type != PAYLOAD_EXT) {
		give_number(t, a, context);
		return;
	}
	p = (struct payloads){domain, (const struct payload_data *)(uintptr_t)a->payload,
		a->reserved > 0 ? (size_t)a->reserved : 0};
	nvtx_payload_give(t, &p, context);
}

/* Of the range that was pushed last: a pop does not bring its numbers once more. */
static void is_given(bool yes)
{
	const uint32_t at = ranges.pushed - 1;

	if (at < MARKS)
		ranges.given = (ranges.given & ~(1u << at)) | (yes ? 1u << at : 0);
}

static int push_with(const void *domain, const struct attributes *a, struct title title)
{
	const bool out = nvtx_is_out(domain);
	const int depth = push(title.name, out);

	if (depth == NO_PUSH)
		return depth;
	is_given(is_whole(a) && a->payload_type == PAYLOAD_EXT);
	if (!out && !agent_markers_off())
		give(&title, domain, a, 0);
	return depth;
}

static int push_ex(const struct attributes *a)
{
	return push_with(NULL, a, title_ex(NULL, a));
}

static int push_a(const char *s)
{
	return push_with(NULL, NULL, nvtx_title(NULL, MESSAGE_ASCII, s));
}

static int push_w(const wchar_t *s)
{
	return push_with(NULL, NULL, nvtx_title(NULL, MESSAGE_WIDE, s));
}

static int pop(void)
{
	struct pd_thread *t = host->thread();

	if (t == NULL || ranges.pushed == 0)
		return NO_PUSH;
	ranges.pushed--;
	if (ranges.pushed >= MARKS || is_open(t, ranges.mark[ranges.pushed]))
		agent_scope_exit(t);
	return (int)ranges.pushed;
}

static int domain_push_ex(const void *domain, const struct attributes *a)
{
	return push_with(domain, a, title_ex(domain, a));
}

static int domain_pop(const void *domain)
{
	(void)domain;
	return pop();
}

static struct title title_payload(const struct payloads *p)
{
	return nvtx_title(p->domain, MESSAGE_ASCII, nvtx_payload_message(p));
}

static int payload_push(const void *domain, const struct payload_data *at, size_t n)
{
	const struct payloads p = {domain, at, n};
	const int depth = push_with(domain, NULL, title_payload(&p));

	if (depth == NO_PUSH)
		return depth;
	is_given(n > 0);
	if (!nvtx_is_out(domain) && !agent_markers_off())
		nvtx_payload_give(host->thread(), &p, 0);
	return depth;
}

/* NCCL ends so what it pushed with a payload, or without. */
static int payload_pop(const void *domain, const struct payload_data *p, size_t n)
{
	struct pd_thread *t = host->thread();
	const uint32_t at = ranges.pushed - 1;

	if (t != NULL && at < MARKS && (ranges.given & 1u << at) == 0 &&
		is_open(t, ranges.mark[at]))
		nvtx_payload_give(t, &(struct payloads){domain, p, n}, 0);
	return pop();
}

/* --- marks, and ranges that are on no stack --- */

static void mark(const void *domain, const struct title *title, const struct attributes *a,
	const struct payloads *p)
{
	struct pd_thread *t = host->thread();

	if (t == NULL || nvtx_is_out(domain) || agent_markers_off())
		return;
	agent_scope_enter(t, title->name);
	give(title, domain, a, 0);
	if (p != NULL)
		nvtx_payload_give(t, p, 0);
	agent_scope_exit(t);
}

static void domain_mark_ex(const void *domain, const struct attributes *a)
{
	const struct title title = title_ex(domain, a);

	mark(domain, &title, a, NULL);
}

static void mark_ex(const struct attributes *a)
{
	domain_mark_ex(NULL, a);
}

static void mark_a(const char *s)
{
	const struct title title = nvtx_title(NULL, MESSAGE_ASCII, s);

	mark(NULL, &title, NULL, NULL);
}

static void mark_w(const wchar_t *s)
{
	const struct title title = nvtx_title(NULL, MESSAGE_WIDE, s);

	mark(NULL, &title, NULL, NULL);
}

static void payload_mark(const void *domain, const struct payload_data *at, size_t n)
{
	const struct payloads p = {domain, at, n};
	const struct title title = title_payload(&p);

	mark(domain, &title, NULL, &p);
}

/* An id has all of it: the place, and when it began, of the clock's last day or so. Its last bit is
 * not the clock's: the range's payload was read at the start. */
#define BEGIN_BITS 48
#define BEGIN_MASK ((1ull << BEGIN_BITS) - 2)
_Static_assert(CONTEXTS_MAX <= 1u << (64 - BEGIN_BITS), "a place is the rest of an id");

static uint64_t start(const void *domain, const struct title *title, const struct attributes *a,
	const struct payloads *p)
{
	uint64_t begin, context;

	if (nvtx_is_out(domain) || agent_markers_off() || host->thread() == NULL ||
		!HOST_HAS(host, context_below) || host->context_below == NULL)
		return 0;
	begin = agent_span_begin();
	if (begin != 0 && (begin &= BEGIN_MASK) == 0)
		begin = 2;
	context = host->context_below(title->name);
	if (context != 0)
		give(title, domain, a, context);
	if (context != 0 && p != NULL)
		nvtx_payload_give(host->thread(), p, context);
	return context << BEGIN_BITS | begin |
	       ((p != NULL && p->n > 0) || (is_whole(a) && a->payload_type == PAYLOAD_EXT));
}

static void end(uint64_t id)
{
	struct pd_thread *t = host->thread();
	const uint64_t now = agent_clock(), age = (now - (id & BEGIN_MASK)) & BEGIN_MASK;

	if (t != NULL)
		agent_span(
			t, id >> BEGIN_BITS, (id & BEGIN_MASK) != 0 && age <= now ? now - age : 0);
}

static uint64_t domain_start_ex(const void *domain, const struct attributes *a)
{
	const struct title title = title_ex(domain, a);

	return start(domain, &title, a, NULL);
}

static uint64_t start_ex(const struct attributes *a)
{
	return domain_start_ex(NULL, a);
}

static uint64_t start_a(const char *s)
{
	const struct title title = nvtx_title(NULL, MESSAGE_ASCII, s);

	return start(NULL, &title, NULL, NULL);
}

static uint64_t start_w(const wchar_t *s)
{
	const struct title title = nvtx_title(NULL, MESSAGE_WIDE, s);

	return start(NULL, &title, NULL, NULL);
}

static void domain_end(const void *domain, uint64_t id)
{
	(void)domain;
	end(id);
}

static uint64_t payload_start(const void *domain, const struct payload_data *at, size_t n)
{
	const struct payloads p = {domain, at, n};
	const struct title title = title_payload(&p);

	return start(domain, &title, NULL, &p);
}

static void payload_end(const void *domain, uint64_t id, const struct payload_data *p, size_t n)
{
	if ((id & 1) == 0 && id >> BEGIN_BITS != 0)
		nvtx_payload_give(
			host->thread(), &(struct payloads){domain, p, n}, id >> BEGIN_BITS);
	domain_end(domain, id);
}

/* --- what is registered before it is used --- */

static const void *string_a(const void *domain, const char *s)
{
	return nvtx_string(domain, MESSAGE_ASCII, s);
}

static const void *string_w(const void *domain, const wchar_t *s)
{
	return nvtx_string(domain, MESSAGE_WIDE, s);
}

static const void *domain_a(const char *s)
{
	return nvtx_domain(MESSAGE_ASCII, s);
}

static const void *domain_w(const wchar_t *s)
{
	return nvtx_domain(MESSAGE_WIDE, s);
}

static void category_put(const void *domain, uint32_t category, uint32_t name)
{
	struct pd_thread *t = host->thread();

	if (category != 0 && name != 0 && t != NULL && !nvtx_category_put(domain, category, name))
		agent_lost(t, LOST_NVTX, 1);
}

static void domain_category_a(const void *domain, uint32_t category, const char *s)
{
	category_put(domain, category, nvtx_plain(MESSAGE_ASCII, s));
}

static void domain_category_w(const void *domain, uint32_t category, const wchar_t *s)
{
	category_put(domain, category, nvtx_plain(MESSAGE_WIDE, s));
}

static void category_a(uint32_t category, const char *s)
{
	domain_category_a(NULL, category, s);
}

static void category_w(uint32_t category, const wchar_t *s)
{
	domain_category_w(NULL, category, s);
}

static void thread_a(uint32_t tid, const char *s)
{
	agent_thread_named(host->thread(), tid, nvtx_plain(MESSAGE_ASCII, s));
}

static void thread_w(uint32_t tid, const wchar_t *s)
{
	agent_thread_named(host->thread(), tid, nvtx_plain(MESSAGE_WIDE, s));
}

/* A device of the driver's is the number that the runtime's is. */
static void device_a(int device, const char *s)
{
	agent_gpu_named(host->thread(), (uint32_t)device, NAMED_GPU, nvtx_plain(MESSAGE_ASCII, s));
}

static void device_w(int device, const wchar_t *s)
{
	agent_gpu_named(host->thread(), (uint32_t)device, NAMED_GPU, nvtx_plain(MESSAGE_WIDE, s));
}

static void stream_a(void *stream, const char *s)
{
	agent_object_named(host->thread(), GPU_OBJECT_STREAM, stream, nvtx_plain(MESSAGE_ASCII, s));
}

static void stream_w(void *stream, const wchar_t *s)
{
	agent_object_named(host->thread(), GPU_OBJECT_STREAM, stream, nvtx_plain(MESSAGE_WIDE, s));
}

static void context_a(void *context, const char *s)
{
	agent_object_named(
		host->thread(), GPU_OBJECT_CONTEXT, context, nvtx_plain(MESSAGE_ASCII, s));
}

static void context_w(void *context, const wchar_t *s)
{
	agent_object_named(
		host->thread(), GPU_OBJECT_CONTEXT, context, nvtx_plain(MESSAGE_WIDE, s));
}

static void event_a(void *event, const char *s)
{
	agent_object_named(host->thread(), GPU_OBJECT_EVENT, event, nvtx_plain(MESSAGE_ASCII, s));
}

static void event_w(void *event, const wchar_t *s)
{
	agent_object_named(host->thread(), GPU_OBJECT_EVENT, event, nvtx_plain(MESSAGE_WIDE, s));
}

/* --- attaching -------------------------------------------------------------------------------- */

struct slot {
	unsigned at;
	slot_fn *fn;
};

#define SLOT(at, fn)                \
	{                           \
		at, (slot_fn *)(fn) \
	}

static bool fill(const struct export_callbacks *e, int module, const struct slot *s, unsigned n)
{
	slot_fn ***table = NULL;
	unsigned size = 0;

	if (e->table(module, &table, &size) == 0 || table == NULL)
		return false;
	for (unsigned i = 0; i < n; i++)
		if (s[i].at < size && table[s[i].at] != NULL)
			*table[s[i].at] = s[i].fn;
	return true;
}

/* TRITON_ENABLE_NVTX, by Triton's rule: set to none of these words it is off. */
static bool is_wanted(void)
{
	static const char *const on[] = {"1", "true", "yes", "on", "y"};
	const char *v = agent_env("TRITON_ENABLE_NVTX");
	size_t i;

	if (v == NULL || *v == '\0')
		return true;
	for (i = 0; i < sizeof(on) / sizeof(*on); i++)
		if (strcasecmp(v, on[i]) == 0)
			return true;
	return false;
}

static uint32_t nvtx_attach(const struct protond_host *whose, void *get_export_table)
{
	static const struct slot first[] = {
		SLOT(CORE_MARK_EX, mark_ex),
		SLOT(CORE_MARK_A, mark_a),
		SLOT(CORE_MARK_W, mark_w),
		SLOT(CORE_START_EX, start_ex),
		SLOT(CORE_START_A, start_a),
		SLOT(CORE_START_W, start_w),
		SLOT(CORE_END, end),
		SLOT(CORE_PUSH_EX, push_ex),
		SLOT(CORE_PUSH_A, push_a),
		SLOT(CORE_PUSH_W, push_w),
		SLOT(CORE_POP, pop),
		SLOT(CORE_CATEGORY_A, category_a),
		SLOT(CORE_CATEGORY_W, category_w),
		SLOT(CORE_THREAD_A, thread_a),
		SLOT(CORE_THREAD_W, thread_w),
	};
	static const struct slot second[] = {
		SLOT(CORE2_MARK_EX, domain_mark_ex),
		SLOT(CORE2_START_EX, domain_start_ex),
		SLOT(CORE2_END, domain_end),
		SLOT(CORE2_PUSH_EX, domain_push_ex),
		SLOT(CORE2_POP, domain_pop),
		SLOT(CORE2_CATEGORY_A, domain_category_a),
		SLOT(CORE2_CATEGORY_W, domain_category_w),
		SLOT(CORE2_STRING_A, string_a),
		SLOT(CORE2_STRING_W, string_w),
		SLOT(CORE2_DOMAIN_A, domain_a),
		SLOT(CORE2_DOMAIN_W, domain_w),
	};
	static const struct slot driver[] = {
		SLOT(DRIVER_DEVICE_A, device_a),
		SLOT(DRIVER_DEVICE_W, device_w),
		SLOT(DRIVER_STREAM_A, stream_a),
		SLOT(DRIVER_STREAM_W, stream_w),
		SLOT(DRIVER_CONTEXT_A, context_a),
		SLOT(DRIVER_CONTEXT_W, context_w),
		SLOT(DRIVER_EVENT_A, event_a),
		SLOT(DRIVER_EVENT_W, event_w),
	};
	static const struct slot runtime[] = {
		SLOT(RUNTIME_DEVICE_A, device_a),
		SLOT(RUNTIME_DEVICE_W, device_w),
		SLOT(RUNTIME_STREAM_A, stream_a),
		SLOT(RUNTIME_STREAM_W, stream_w),
		SLOT(RUNTIME_EVENT_A, event_a),
		SLOT(RUNTIME_EVENT_W, event_w),
	};
	const void *(*get)(uint32_t) = NULL;
	const struct export_callbacks *e;
	bool ok;

	if (get_export_table == NULL || !is_wanted())
		return 0;
	memcpy(&get, &get_export_table, sizeof(get));
	e = get(ETID_CALLBACKS);
	if (e == NULL || e->bytes < sizeof(*e) || e->table == NULL)
		return 0;
	host = whose; /* before a slot is set */
	payload_name = host->intern("payload", 7);
	category_name = host->intern("category (pty)", 14);
	color_name = host->intern("color (pty)", 11);
	nvtx_names_begin(host);
	nvtx_payloads_begin(host);
	(void)fill(e, MODULE_DRIVER, driver, sizeof(driver) / sizeof(*driver));
	(void)fill(e, MODULE_RUNTIME, runtime, sizeof(runtime) / sizeof(*runtime));
	ok = fill(e, MODULE_CORE, first, sizeof(first) / sizeof(*first));
	return (uint32_t)(fill(e, MODULE_CORE2, second, sizeof(second) / sizeof(*second)) && ok);
}

struct extension_segment { /* nvtxExtModuleSegment_t */
	size_t id, slots;
	intptr_t *slot;
};

struct extension { /* nvtxExtModuleInfo_t */
	uint16_t nvtx, bytes, module, compat;
	size_t segments;
	struct extension_segment *segment;
};

/* Slots that stay 0 are no-ops: those of an older or a newer extension, too. */
static uint32_t nvtx_extend(void *module)
{
	const struct extension *x = module;

	if (host == NULL || x == NULL || x->bytes < sizeof(*x) || x->module != MODULE_PAYLOAD ||
		x->segments == 0 || x->segment->slots < PAYLOAD_SLOTS)
		return 0;
	x->segment->slot[PAYLOAD_SCHEMA] = (intptr_t)nvtx_schema;
	x->segment->slot[PAYLOAD_ENUM] = (intptr_t)nvtx_enum;
	x->segment->slot[PAYLOAD_MARK] = (intptr_t)payload_mark;
	x->segment->slot[PAYLOAD_PUSH] = (intptr_t)payload_push;
	x->segment->slot[PAYLOAD_POP] = (intptr_t)payload_pop;
	x->segment->slot[PAYLOAD_START] = (intptr_t)payload_start;
	x->segment->slot[PAYLOAD_END] = (intptr_t)payload_end;
	return 1;
}

const struct backend backend_nvtx = {
	.term = &backend_terms[BACKEND_nvtx],
	.attach = nvtx_attach,
	.extend = nvtx_extend,
};
