/* SPDX-License-Identifier: MIT. nvtx.c: NVTX push and pop ranges as scopes, of every domain.
 *
 * NVTX v3 loads the library named by NVTX_INJECTION64_PATH at a program's first NVTX call and hands
 * it a function that gives tables of slots: pointers to function pointers, which we set. Slots that
 * are not ours stay NULL: their calls do nothing. Attached once, for good: while nothing is recorded
 * a push costs what a scope costs then.
 *
 * A range that is started, and ended on any thread, is a span below where it was started; its id is
 * all that is known of it until then. A mark is a scope of no length. A number in a range's or a
 * mark's attributes is its metric "payload".
 *
 * A pop closes a scope only if a push of NVTX's own is open on this thread: each push leaves a mark
 * of where it stands. One whose scope was closed by others, because they left what it stood in,
 * only takes its mark away. Registered strings are interned when they are registered; their handle
 * is the name's id.
 *
 * Extensions have tables of their own. Of payloads' we take what registers schemas, and the ranges
 * and marks that are made of payloads; nvtx_payload.c reads them.
 */
#include <stdatomic.h>
#include <string.h>
#include <strings.h>
#include <wchar.h>

#include "agent.h"
#include "nvtx_payload.h"

#define ETID_CALLBACKS 1u
#define MODULE_CORE    1
#define MODULE_CORE2   5
#define TEXT_MAX       4096u /* bytes of a message that are looked at */
#define NO_PUSH        (-2)  /* NVTX_NO_PUSH_POP_TRACKING */

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
};
enum core2_slot {
	CORE2_MARK_EX = 1,
	CORE2_START_EX = 2,
	CORE2_END = 3,
	CORE2_PUSH_EX = 4,
	CORE2_POP = 5,
	CORE2_STRING_A = 10,
	CORE2_STRING_W = 11,
	CORE2_DOMAIN_A = 12,
	CORE2_DOMAIN_W = 13,
};
#define MODULE_PAYLOAD 2 /* of the extensions */
enum payload_slot {
	PAYLOAD_SCHEMA = 0,
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
enum message_type { MESSAGE_ASCII = 1, MESSAGE_WIDE = 2, MESSAGE_REGISTERED = 3 };

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
	int32_t message_type;
	union {
		const char *ascii;
		const wchar_t *wide;
		const void *registered;
	} message;
};

static const struct protond_host *host; /* whose threads and names ranges are */
static uint32_t payload_name;
static const char *domains; /* those that are recorded; NULL: all */
static bool default_out;    /* the one without a name is not */

#define MARKS     16u /* deeper pushes are only counted */
#define NAME_BITS 16
#define MARK_TOP  UINT16_MAX /* as a depth: beyond what a mark can say */
_Static_assert(NAMES_MAX <= 1u << NAME_BITS && STACK_MAX < MARK_TOP, "a mark is one word");

static __thread struct {
	uint32_t pushed;
	uint32_t given;       /* bits: a mark whose payload was read when it was pushed */
	uint32_t mark[MARKS]; /* the depth that the scope was entered at, and its name */
} ranges __attribute__((tls_model("initial-exec")));

/* --- names ------------------------------------------------------------------------------------ */

static uint32_t utf8(uint32_t c, char ret[4])
{
	if (c < 0x80) {
		ret[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		ret[0] = (char)(0xc0 | c >> 6);
		ret[1] = (char)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c < 0x10000) {
		ret[0] = (char)(0xe0 | c >> 12);
		ret[1] = (char)(0x80 | (c >> 6 & 0x3f));
		ret[2] = (char)(0x80 | (c & 0x3f));
		return 3;
	}
	ret[0] = (char)(0xf0 | (c >> 18 & 7));
	ret[1] = (char)(0x80 | (c >> 12 & 0x3f));
	ret[2] = (char)(0x80 | (c >> 6 & 0x3f));
	ret[3] = (char)(0x80 | (c & 0x3f));
	return 4;
}

/* PyTorch's emit_nvtx() puts numbers behind an operator's name, "aten::mm, seq = 17, op_id = 4,
 * sizes =
 * ...": each range would be a name of its own. */
static uint32_t without_numbers(const char *s, uint32_t n)
{
	static const char seq[] = ", seq = ", op[] = ", op_id = ";
	const char *at = s, *end = s + n;

	while ((at = memchr(at, ',', (size_t)(end - at))) != NULL) {
		const size_t left = (size_t)(end - at);

		if ((left > sizeof(seq) - 1 && memcmp(at, seq, sizeof(seq) - 1) == 0) ||
			(left > sizeof(op) - 1 && memcmp(at, op, sizeof(op) - 1) == 0))
			return (uint32_t)(at - s);
		at++;
	}
	return n;
}

/* XLA compiles by thousands of ranges, "XlaPass:#name=fusion,module=jit_f,program_id=3#" and
 * "XlaPassPipeline:#...", inside one another. All are one name, and where one stands in another
 * they are one scope. Else it is the program's number that would make each a name of its own. */
static _Atomic uint32_t xla_pass; /* the name's id, once it was seen */

static bool begins(const char *s, uint32_t n, const char *with)
{
	return n >= strlen(with) && memcmp(s, with, strlen(with)) == 0;
}

static uint32_t name_xla(const char *s, uint32_t n)
{
	static const char number[] = ",program_id=", pass[] = "XlaPass";
	const char *at;
	uint32_t id;

	if (!begins(s, n, pass)) {
		at = memmem(s, n, number, sizeof(number) - 1);
		return host->intern(s, at != NULL ? (uint32_t)(at - s) : n);
	}
	id = host->intern(pass, sizeof(pass) - 1);
	atomic_store_explicit(&xla_pass, id, memory_order_relaxed);
	return id;
}

static uint32_t name_a(const char *s)
{
	const uint32_t n = s != NULL ? (uint32_t)strnlen(s, TEXT_MAX) : 0;

	if (n > 0 && begins(s, n, "Xla"))
		return name_xla(s, n);
	return host->intern(s != NULL ? s : "", n > 0 ? without_numbers(s, n) : 0);
}

static uint32_t name_w(const wchar_t *s)
{
	char text[TEXT_MAX];
	uint32_t n = 0;

	while (s != NULL && *s != L'\0' && n + 4 < sizeof(text))
		n += utf8((uint32_t)*s++, text + n);
	text[n] = '\0';
	return name_a(text);
}

/* A handle is 2 * id + 1: never NULL, and not to be mistaken for a pointer of somebody else's. */
static uint32_t name_registered(const void *handle)
{
	const uintptr_t h = (uintptr_t)handle;

	return (h & 1) != 0 && h / 2 < NAMES_MAX ? (uint32_t)(h / 2) : 0;
}

static uint32_t name_of(const struct attributes *a)
{
	if (a == NULL || a->bytes < sizeof(*a))
		return host->intern("", 0);
	switch (a->message_type) {
	case MESSAGE_ASCII:
		return name_a(a->message.ascii);
	case MESSAGE_WIDE:
		return name_w(a->message.wide);
	case MESSAGE_REGISTERED:
		return name_registered(a->message.registered);
	default:
		return host->intern("", 0);
	}
}

/* --- domains ---------------------------------------------------------------------------------- */

static bool is_listed(const char *name, size_t n)
{
	const char *at = domains, *end;

	for (; at != NULL; at = *end != '\0' ? end + 1 : NULL) {
		end = strchrnul(at, ',');
		if ((size_t)(end - at) == n && memcmp(at, name, n) == 0)
			return true;
	}
	return domains == NULL;
}

#define OUT ((uintptr_t)NAMES_MAX << 1) /* in the handle of a domain that is not listed */

/* NULL is the default domain. */
static bool is_out(const void *domain)
{
	return domain != NULL ? ((uintptr_t)domain & OUT) != 0 : default_out;
}

/* --- what the slots are set to ---------------------------------------------------------------- */

/* A pass inside a pass. */
static bool is_folded(const struct pd_thread *t, uint32_t name)
{
	return name != 0 && name == atomic_load_explicit(&xla_pass, memory_order_relaxed) &&
	       ranges.pushed < MARKS && t->depth > 0 && t->depth <= STACK_MAX &&
	       t->frame[t->depth - 1].name == name;
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

/* A number that the attributes have: of the scope, or the span's thread, that the caller stands in. */
static void give_payload(struct pd_thread *t, const void *domain, const struct attributes *a)
{
	uint32_t type = METRIC_U64;
	uint64_t bits;
	float f32;
	double f64;

	if (t == NULL || a == NULL || a->bytes < sizeof(*a))
		return;
	bits = a->payload;
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
	case PAYLOAD_EXT:
		nvtx_payload_give(t, domain, (const struct payload_data *)(uintptr_t)bits,
			a->reserved > 0 ? (size_t)a->reserved : 0);
		return;
	default:
		return;
	}
	agent_metric(t, payload_name, type, bits);
}

/* Of the range that was pushed last: a pop does not bring its numbers once more. */
static void is_given(bool yes)
{
	const uint32_t at = ranges.pushed - 1;

	if (at < MARKS)
		ranges.given = (ranges.given & ~(1u << at)) | (yes ? 1u << at : 0);
}

static int push_with(const void *domain, const struct attributes *a)
{
	const bool out = is_out(domain);
	const int depth = push(name_of(a), out);

	if (depth == NO_PUSH)
		return depth;
	is_given(a != NULL && a->bytes >= sizeof(*a) && a->payload_type == PAYLOAD_EXT);
	if (!out && !agent_markers_off())
		give_payload(host->thread(), domain, a);
	return depth;
}

static int push_ex(const struct attributes *a)
{
	return push_with(NULL, a);
}

static int push_text(uint32_t name)
{
	const int depth = push(name, is_out(NULL));

	if (depth != NO_PUSH)
		is_given(false);
	return depth;
}

static int push_a(const char *s)
{
	return push_text(name_a(s));
}

static int push_w(const wchar_t *s)
{
	return push_text(name_w(s));
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
	return push_with(domain, a);
}

static int domain_pop(const void *domain)
{
	(void)domain;
	return pop();
}

static int payload_push(const void *domain, const struct payload_data *p, size_t n)
{
	const bool out = is_out(domain);
	const int depth = push(name_a(nvtx_payload_message(domain, p, n)), out);

	if (depth == NO_PUSH)
		return depth;
	is_given(true);
	if (!out && !agent_markers_off())
		nvtx_payload_give(host->thread(), domain, p, n);
	return depth;
}

/* NCCL ends so what it pushed with a payload, or without. */
static int payload_pop(const void *domain, const struct payload_data *p, size_t n)
{
	struct pd_thread *t = host->thread();
	const uint32_t at = ranges.pushed - 1;

	if (t != NULL && at < MARKS && (ranges.given & 1u << at) == 0 &&
		is_open(t, ranges.mark[at]))
		nvtx_payload_give(t, domain, p, n);
	return pop();
}

/* --- marks, and ranges that are on no stack --- */

static void mark(const void *domain, uint32_t name, const struct attributes *a,
	const struct payload_data *p, size_t n)
{
	struct pd_thread *t = host->thread();

	if (t == NULL || is_out(domain) || agent_markers_off())
		return;
	agent_scope_enter(t, name);
	give_payload(t, domain, a);
	nvtx_payload_give(t, domain, p, n);
	agent_scope_exit(t);
}

static void mark_ex(const struct attributes *a)
{
	mark(NULL, name_of(a), a, NULL, 0);
}

static void mark_a(const char *s)
{
	mark(NULL, name_a(s), NULL, NULL, 0);
}

static void mark_w(const wchar_t *s)
{
	mark(NULL, name_w(s), NULL, NULL, 0);
}

static void domain_mark_ex(const void *domain, const struct attributes *a)
{
	mark(domain, name_of(a), a, NULL, 0);
}

static void payload_mark(const void *domain, const struct payload_data *p, size_t n)
{
	mark(domain, name_a(nvtx_payload_message(domain, p, n)), NULL, p, n);
}

/* An id has all of it: the place, and when it began, of the clock's last day or so. */
#define BEGIN_BITS 48
#define BEGIN_MASK ((1ull << BEGIN_BITS) - 1)
_Static_assert(CONTEXTS_MAX <= 1u << (64 - BEGIN_BITS), "a place is the rest of an id");

static uint64_t start(uint32_t name, bool out)
{
	uint64_t begin;

	if (out || agent_markers_off() || host->thread() == NULL ||
		!HOST_HAS(host, context_below) || host->context_below == NULL)
		return 0;
	begin = agent_span_begin();
	return host->context_below(name) << BEGIN_BITS |
	       (begin == 0                        ? 0
		       : (begin & BEGIN_MASK) > 0 ? begin & BEGIN_MASK
						  : 1);
}

static void end(uint64_t id)
{
	struct pd_thread *t = host->thread();
	const uint64_t now = agent_clock(), age = (now - id) & BEGIN_MASK;

	if (t != NULL)
		agent_span(
			t, id >> BEGIN_BITS, (id & BEGIN_MASK) != 0 && age <= now ? now - age : 0);
}

static uint64_t start_ex(const struct attributes *a)
{
	return start(name_of(a), is_out(NULL));
}

static uint64_t start_a(const char *s)
{
	return start(name_a(s), is_out(NULL));
}

static uint64_t start_w(const wchar_t *s)
{
	return start(name_w(s), is_out(NULL));
}

static uint64_t domain_start_ex(const void *domain, const struct attributes *a)
{
	return start(name_of(a), is_out(domain));
}

static void domain_end(const void *domain, uint64_t id)
{
	(void)domain;
	end(id);
}

static uint64_t payload_start(const void *domain, const struct payload_data *p, size_t n)
{
	return start(name_a(nvtx_payload_message(domain, p, n)), is_out(domain));
}

static void payload_end(const void *domain, uint64_t id, const void *p, size_t n)
{
	(void)p;
	(void)n;
	domain_end(domain, id);
}

static uint64_t payload_schema(const void *domain, const struct payload_schema *s)
{
	return nvtx_schema(host, domain, s);
}

/* --- names that are made before they are used --- */

static const void *handle_of(uint32_t name)
{
	return (const void *)((uintptr_t)name * 2 + 1);
}

static const void *string_a(const void *domain, const char *s)
{
	(void)domain;
	return handle_of(name_a(s));
}

static const void *string_w(const void *domain, const wchar_t *s)
{
	(void)domain;
	return handle_of(name_w(s));
}

/* A domain must have a handle other than NULL, which is the default domain's. */
static const void *domain(uint32_t name)
{
	uint32_t n;
	const char *text = host->name(name, &n);

	return (const void *)((uintptr_t)handle_of(name) | (is_listed(text, n) ? 0 : OUT));
}

static const void *domain_a(const char *s)
{
	return domain(name_a(s));
}

static const void *domain_w(const wchar_t *s)
{
	return domain(name_w(s));
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
	};
	static const struct slot second[] = {
		SLOT(CORE2_MARK_EX, domain_mark_ex),
		SLOT(CORE2_START_EX, domain_start_ex),
		SLOT(CORE2_END, domain_end),
		SLOT(CORE2_PUSH_EX, domain_push_ex),
		SLOT(CORE2_POP, domain_pop),
		SLOT(CORE2_STRING_A, string_a),
		SLOT(CORE2_STRING_W, string_w),
		SLOT(CORE2_DOMAIN_A, domain_a),
		SLOT(CORE2_DOMAIN_W, domain_w),
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
	domains = agent_env("PROTOND_NVTX_DOMAINS");
	if (domains != NULL && *domains == '\0')
		domains = NULL;
	default_out = !is_listed("default", 7);
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
	x->segment->slot[PAYLOAD_SCHEMA] = (intptr_t)payload_schema;
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
