/* SPDX-License-Identifier: MIT. ops.cpp: PyTorch's operators as scopes, by torch's RecordFunction:
 * what Kineto sees, under Kineto's names. Built by _ops.py on the user's machine, for his torch
 * (1.13 and later); it needs libtorch's headers, and of protond only ops_calls.h.
 *
 * With names alone an operator costs a look into a table by the address of its name. With shapes and
 * the like what is recorded is hashed, and only what is new is written out and interned: no memory is
 * had but a thread's tables, once. Two calls that differ are taken for one where 64 bits agree. What is
 * looked at each time stands in few lines, for torch leaves little of the caches to us. */
#include <ATen/core/function_schema.h>
#include <ATen/record_function.h>

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "op_terms.h"
#include "ops_calls.h"
#include "ops_flops.h"
#include "ops_words.h"

#define EXPORT      extern "C" __attribute__((visibility("default")))
#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

namespace
{

constexpr uint32_t THREADS = 256, FRAMES = 192, NAMES = 512, CALLS = 2048, WAYS = 4;
constexpr uint32_t NAME_KEPT = 113, STACK_CAP = 64;
constexpr uint64_t LIST_MAX = 30; /* longer ones have neither values nor dimensions: Kineto's */
constexpr int64_t TEXTS_MAX = 24576, TEXT_BYTES_MAX = 2 << 20; /* new ones, by all threads */
constexpr char EVALUATES[] = "autograd::engine::evaluate_function: ";

/* --- state --------------------------------------------------------------------------------------- */

struct frame {
	const at::RecordFunction *fn;
	uint32_t depth; /* of scopes, before it */
	bool evaluates; /* a node of autograd, which says next who it is */
};

struct alignas(64) known_name {
	const char *at; /* NULL: free */
	uint32_t id;
	uint8_t work; /* enum work */
	bool evaluates;
	bool odd; /* the name does not say that it is an operator's */
	char text[NAME_KEPT];
};
static_assert(sizeof(struct known_name) == 128, "short names are in one line");

/* What is recorded of a call; a name's id, 0: nothing. */
struct known_call {
	uint32_t scope, types, strides, scalars, kwargs;
	uint32_t flops_metric;
};

struct known_work {
	int64_t flops, bytes;
};

struct known_calls {
	alignas(64) uint64_t key[CALLS]; /* 0: free. Those of a set are in one line */
	struct known_call call[CALLS];
	struct known_work work[CALLS];
};

struct thread_state {
	uint32_t n; /* frames */
	struct frame frame[FRAMES];
	struct known_name name[NAMES];
	struct known_calls *calls; /* NULL: no details were wanted yet */
};

struct ops_calls calls;
std::atomic<uint32_t> details_now{0}; /* enum ops_detail */
char folders[2][1024];                /* frames of code below these are left out */
uint32_t m_types, m_strides, m_scalars, m_kwargs, m_stack, m_mark, m_sequence, m_forward, m_id,
	m_bytes;
uint32_t m_flops[4], more;
std::atomic<int64_t> texts_left{TEXTS_MAX}, text_bytes_left{TEXT_BYTES_MAX};
std::atomic<uint32_t> newest_text{0};
pthread_key_t thread_key;
std::atomic<uint32_t> threads{0}; /* that have a state */

__attribute__((tls_model("initial-exec"))) thread_local struct thread_state *self;
/* Of the operator at hand. */
__attribute__((tls_model("initial-exec"))) thread_local uint32_t details;

constexpr uint32_t INPUTS =
	OPS_SHAPES | OPS_DTYPES | OPS_STRIDES | OPS_SCALARS | OPS_KWARGS | OPS_FLOPS;

void leave_thread(void *p)
{
	self = NULL;
	free(static_cast<struct thread_state *>(p)->calls);
	free(p);
	threads.fetch_sub(1);
}

template <typename T> T *zeroed()
{
	void *p = aligned_alloc(alignof(T), sizeof(T));

	return static_cast<T *>(p != NULL ? memset(p, 0, sizeof(T)) : NULL);
}

__attribute__((cold, noinline)) struct thread_state *enter_thread()
{
	if (threads.fetch_add(1) < THREADS)
		self = zeroed<struct thread_state>();
	if (self != NULL && pthread_setspecific(thread_key, self) != 0) {
		free(self);
		self = NULL;
	}
	if (self == NULL)
		threads.fetch_sub(1);
	return self;
}

/* Without memory there are names alone. */
__attribute__((cold, noinline)) void enter_details(struct thread_state *t)
{
	t->calls = zeroed<struct known_calls>();
	if (t->calls == NULL)
		details &= ~INPUTS;
}

/* --- names -------------------------------------------------------------------------------------- */

uint64_t mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * 0x9e3779b97f4a7c15ull;
	return h ^ h >> 32;
}

void read_name(struct known_name *k, const char *text)
{
	const size_t n = strlen(text);

	k->at = text;
	k->id = calls.scope(text, n < INT32_MAX ? (uint32_t)n : INT32_MAX);
	k->evaluates = strncmp(text, EVALUATES, sizeof(EVALUATES) - 1) == 0;
	k->odd = operator_bytes(text) == 0;
	k->work = NO_WORK;
	for (const struct work_name &w : works)
		if (strcmp(w.name, text) == 0)
			k->work = w.work;
	if (n < sizeof(k->text))
		memcpy(k->text, text, n + 1);
	else
		k->at = NULL;
}

/* An operator's name lies where it lies for ever; those of autograd and of the program come and go, so
 * the text is compared too. */
struct known_name *name_of(struct thread_state *t, const char *text)
{
	struct known_name *k = &t->name[mix(0, reinterpret_cast<uintptr_t>(text)) % NAMES];

	if (unlikely(k->at != text || strcmp(k->text, text) != 0))
		read_name(k, text);
	return k;
}

/* --- texts -------------------------------------------------------------------------------------- */

/* Programs without end of new shapes must leave room for others' names. */
uint32_t intern(struct words *w, decltype(ops_calls::name) name)
{
	uint32_t id, newest;

	if (w->cut) {
		w->cut = false;
		w->n = w->n < TEXT_MAX - 4 ? w->n : TEXT_MAX - 4;
		put(w, " ...");
	}
	if (texts_left.load(std::memory_order_relaxed) <= 0 ||
		text_bytes_left.load(std::memory_order_relaxed) <= 0)
		return more;
	id = name(w->s, w->n);
	newest = newest_text.load(std::memory_order_relaxed);
	if (id > newest) {
		newest_text.store(id, std::memory_order_relaxed);
		texts_left.fetch_sub(1, std::memory_order_relaxed);
		text_bytes_left.fetch_sub(w->n, std::memory_order_relaxed);
	}
	return id;
}

/* --- inputs ------------------------------------------------------------------------------------- */

bool has_strides(const at::Tensor &t)
{
	return t.layout() == at::kStrided;
}

bool is_short(const c10::IValue &list)
{
	return list.toListRef().size() <= LIST_MAX;
}

bool is_plain_list(const c10::IValue &v)
{
	return v.isList() && is_short(v) && (v.toListRef().empty() || v.toListRef()[0].isScalar());
}

uint64_t mix_tensor(uint64_t h, const at::Tensor &t)
{
	if (!has_sizes(t))
		return mix(h, 1);
	const auto sizes = t.sizes();

	h = mix(h, 2 + ((uint64_t)sizes.size() << 8) + ((uint64_t)t.scalar_type() << 32));
	for (const int64_t d : sizes)
		h = mix(h, (uint64_t)d);
	if ((details & OPS_STRIDES) != 0 && has_strides(t))
		for (const int64_t d : t.strides())
			h = mix(h, (uint64_t)d);
	return h;
}

uint64_t mix_scalar(uint64_t h, const c10::IValue &v)
{
	uint64_t bits = 0;
	double d;

	if (v.isInt())
		return mix(h, (uint64_t)v.toInt());
	if (v.isBool())
		return mix(h, v.toBool() ? 4 : 5);
	if (!v.isDouble())
		return mix(h, 6); /* complex numbers, and sizes that are symbols */
	d = v.toDouble();
	memcpy(&bits, &d, sizeof(bits));
	return mix(h, bits);
}

uint64_t mix_value(uint64_t h, const c10::IValue &v, bool plain)
{
	if (v.isTensor())
		return mix_tensor(h, v.toTensor());
	if (v.isScalar())
		return plain ? mix_scalar(mix(h, 7), v) : mix(h, 7);
	if (!v.isList())
		return mix(h, 9 + (uint64_t)v.isNone());
	if (v.isTensorList()) {
		h = mix(h, 8);
		if (is_short(v))
			for (const c10::IValue &one : v.toListRef())
				h = mix_tensor(h, one.toTensor());
		return h;
	}
	if (!is_plain_list(v))
		return mix(h, 9);
	h = mix(h, 11);
	if (plain)
		for (const c10::IValue &one : v.toListRef())
			h = mix_scalar(h, one);
	return h;
}

void put_sizes(struct words *w, const at::Tensor &t, bool strides)
{
	const char *between = "";

	put(w, "[");
	if (has_sizes(t) && (!strides || has_strides(t)))
		for (const int64_t d : strides ? t.strides() : t.sizes()) {
			put(w, between);
			put_number(w, d);
			between = ", ";
		}
	put(w, "]");
}

void put_dims(struct words *w, values inputs, bool strides)
{
	const char *between = "";

	put(w, "[");
	for (const c10::IValue &v : inputs) {
		put(w, between);
		between = ", ";
		if (v.isTensor()) {
			put_sizes(w, v.toTensor(), strides);
			continue;
		}
		put(w, "[");
		if (v.isTensorList() && is_short(v)) {
			const char *inner = "";

			for (const c10::IValue &one : v.toListRef()) {
				put(w, inner);
				put_sizes(w, one.toTensor(), strides);
				inner = ", ";
			}
		}
		put(w, "]");
	}
	put(w, "]");
}

void put_types(struct words *w, values inputs)
{
	const char *between = "";

	put(w, "[");
	for (const c10::IValue &v : inputs) {
		put(w, between);
		between = ", ";
		if (v.isTensor() && has_sizes(v.toTensor())) {
			const auto type = v.toTensor().dtype().name();

			put_quoted(w, type.data(), type.size());
			continue;
		}
		put(w, v.isTensor()        ? "\"\""
			: v.isScalar()     ? "\"Scalar\""
			: v.isTensorList() ? "\"TensorList\""
			: is_plain_list(v) ? "\"ScalarList\""
					   : "\"\"");
	}
	put(w, "]");
}

bool has_value(const c10::IValue &v)
{
	return v.isScalar() || (!v.isTensorList() && is_plain_list(v));
}

void put_values(struct words *w, values inputs)
{
	const char *between = "";

	put(w, "[");
	for (const c10::IValue &v : inputs) {
		put(w, between);
		between = ", ";
		if (has_value(v))
			put_value(w, v);
		else
			put(w, "\"\"");
	}
	put(w, "]");
}

/* What is no tensor, by its name in the operator's schema; false: it has none. */
bool put_named(struct words *w, const at::RecordFunction &fn, values inputs)
{
	const auto schema = fn.operator_schema();
	const char *between = "";
	size_t i = 0;

	if (!schema)
		return false;
	put(w, "{");
	for (const auto &argument : schema->arguments()) {
		if (i >= inputs.size())
			break;
		const c10::IValue &v = inputs[i++];

		if (!has_value(v) && !v.isString())
			continue;
		put(w, between);
		between = ", ";
		put_quoted(w, argument.name().data(), argument.name().size());
		put(w, ": ");
		put_value(w, v);
	}
	put(w, "}");
	return w->n > 2;
}

void read_work(struct known_call *c, struct known_work *work, enum work of, values in)
{
	double out, bytes = 0;
	const double flops = flops_of(of, in, &out);
	size_t width;

	if (flops <= 0 || flops > 9e18)
		return;
	width = in[0].toTensor().element_size();
	for (const c10::IValue &v : in)
		if (v.isTensor() && has_sizes(v.toTensor()))
			bytes += (double)v.toTensor().numel() * (double)v.toTensor().element_size();
	bytes += out * (double)width;
	work->flops = (int64_t)flops;
	work->bytes = bytes < 9e18 ? (int64_t)bytes : 0;
	c->flops_metric = m_flops[width <= 1 ? 0 : width == 2 ? 1 : width == 4 ? 2 : 3];
}

/* --- calls -------------------------------------------------------------------------------------- */

/* What throws leaves none. */
__attribute__((cold, noinline)) void read_call(struct known_calls *of, uint32_t at, uint64_t key,
	const struct known_name *k, const char *name, const at::RecordFunction &fn)
{
	struct known_call *c = &of->call[at];
	const values in = fn.inputs();
	struct words w;

	of->key[at] = 0;
	memset(c, 0, sizeof(*c));
	c->scope = k->id;
	if (in.empty()) {
		of->key[at] = key;
		return;
	}
#define TEXT(bit, to, name_by, ...)         \
	if ((details & (bit)) != 0) {       \
		w.n = 0;                    \
		w.cut = false;              \
		__VA_ARGS__;                \
		(to) = intern(&w, name_by); \
	}
	TEXT(OPS_SHAPES, c->scope, calls.scope, put(&w, name), put(&w, " "),
		put_dims(&w, in, false))
	TEXT(OPS_DTYPES, c->types, calls.name, put_types(&w, in))
	TEXT(OPS_STRIDES, c->strides, calls.name, put_dims(&w, in, true))
	TEXT(OPS_SCALARS, c->scalars, calls.name, put_values(&w, in))
	TEXT(OPS_KWARGS, c->kwargs, calls.name, if (!put_named(&w, fn, in)) w.n = 0)
#undef TEXT
	if (c->scope == more)
		c->scope = k->id;
	if ((details & OPS_KWARGS) != 0 && w.n == 0)
		c->kwargs = 0;
	if ((details & OPS_FLOPS) != 0 && k->work != NO_WORK)
		read_work(c, &of->work[at], (enum work)k->work, in);
	of->key[at] = key;
}

/* Where it is in of. */
uint32_t call_of(struct known_calls *of, const struct known_name *k, const char *name,
	const at::RecordFunction &fn)
{
	const bool plain = (details & (OPS_SCALARS | OPS_KWARGS)) != 0 || k->work == CONV ||
			   k->work == CONV_BACKWARD;
	uint64_t h = mix(details, k->id);
	uint32_t set, i;

	for (const c10::IValue &v : fn.inputs())
		h = mix_value(h, v, plain);
	h |= 1;
	set = (uint32_t)(h >> 40) % (CALLS / WAYS) * WAYS;
	for (i = set; i < set + WAYS; i++)
		if (likely(of->key[i] == h))
			return i;
	for (i = set; i < set + WAYS && of->key[i] != 0; i++)
		;
	if (i == set + WAYS)
		i = set + (uint32_t)(h >> 20) % WAYS;
	read_call(of, i, h, k, name, fn);
	return i;
}

/* --- what is recorded of one -------------------------------------------------------------------- */

bool below(const char *text, uint32_t n, const char *folder)
{
	const size_t f = strlen(folder);

	return f > 0 && n > f && memcmp(text, folder, f) == 0;
}

/* FILE:LINE@FUNCTION, outermost first, without torch's frames and ours. */
void put_stack()
{
	uint32_t name[255], n = calls.stack(name, sizeof(name) / sizeof(*name)), bytes, kept = 0, i;
	const char *text[STACK_CAP];
	uint32_t length[STACK_CAP];
	struct words w;

	for (i = 0; i < n && kept < STACK_CAP; i++) {
		text[kept] = calls.text(name[i], &bytes);
		length[kept] = bytes;
		if (!below(text[kept], bytes, folders[0]) && !below(text[kept], bytes, folders[1]))
			kept++;
	}
	if (kept == 0)
		return;
	w.n = 0;
	w.cut = false;
	while (kept-- > 0) {
		put_bytes(&w, text[kept], length[kept]);
		put(&w, kept > 0 ? ";" : "");
	}
	calls.put_name(m_stack, intern(&w, calls.name));
}

void put_sequence(const at::RecordFunction &fn)
{
	if (fn.seqNr() < 0)
		return;
	calls.put_i64(m_sequence, fn.seqNr());
	calls.put_i64(m_forward, (int64_t)fn.forwardThreadId());
}

/* Arguments by name of what is no operator: torch 2.2 and later. */
template <typename F> auto named_inputs(const F &fn, int) -> decltype(fn.kwinputs())
{
	return fn.kwinputs();
}

template <typename F> std::unordered_map<std::string, c10::IValue> named_inputs(const F &, long)
{
	return {};
}

void put_named_inputs(const at::RecordFunction &fn)
{
	struct words w;

	for (const auto &one : named_inputs(fn, 0)) {
		const uint32_t metric = calls.metric((one.first + " (pty)").c_str());

		w.n = 0;
		w.cut = false;
		if (one.second.isInt() || one.second.isBool()) {
			calls.put_i64(metric,
				one.second.isInt() ? one.second.toInt() : one.second.toBool());
			continue;
		}
		if (one.second.isDouble()) {
			calls.put_f64(metric, one.second.toDouble());
			continue;
		}
		if (!has_value(one.second) && !one.second.isString())
			continue;
		put_plain(&w, one.second);
		calls.put_name(metric, intern(&w, calls.name));
	}
}

void put_call(const struct known_call *c, const struct known_work *work)
{
	if (c->types != 0)
		calls.put_name(m_types, c->types);
	if (c->strides != 0)
		calls.put_name(m_strides, c->strides);
	if (c->scalars != 0)
		calls.put_name(m_scalars, c->scalars);
	if (c->kwargs != 0)
		calls.put_name(m_kwargs, c->kwargs);
	if (c->flops_metric != 0) {
		calls.put_i64(c->flops_metric, work->flops);
		calls.put_i64(m_bytes, work->bytes);
	}
}

__attribute__((noinline)) void enter_with_details(struct thread_state *t,
	const struct known_name *k, const char *name, const at::RecordFunction &fn)
{
	uint32_t at = 0;

	if (unlikely((details & INPUTS) != 0 && t->calls == NULL))
		enter_details(t);
	if ((details & OPS_SEQUENCE) != 0 && fn.scope() == at::RecordScope::BACKWARD_FUNCTION &&
		t->n > 1 && t->frame[t->n - 2].evaluates)
		put_sequence(fn); /* of what it stands in, too: Kineto's rule */
	if ((details & INPUTS) != 0)
		at = call_of(t->calls, k, name, fn);
	calls.enter((details & INPUTS) != 0 ? t->calls->call[at].scope : k->id);
	if ((details & INPUTS) != 0)
		put_call(&t->calls->call[at], &t->calls->work[at]);
	if ((details & OPS_KWARGS) != 0)
		put_named_inputs(fn);
	if ((details & OPS_SEQUENCE) != 0) {
		put_sequence(fn);
		calls.put_i64(m_id, (int64_t)fn.handle());
	}
	if ((details & OPS_STACK) != 0 && fn.scope() != at::RecordScope::BACKWARD_FUNCTION)
		put_stack();
}

/* --- torch's calls ------------------------------------------------------------------------------ */

/* What ends on any thread (collectives): a span. And, with its name alone, what is on one thread of too
 * many, or in too many others. */
struct apart : at::ObserverContext {
	uint64_t context, begin; /* of a span */
	uint32_t depth;          /* of scopes, before it */
	bool is_span;
};

__attribute__((cold, noinline)) std::unique_ptr<at::ObserverContext> begin_apart(
	const char *name, bool is_span)
{
	const uint32_t id = calls.scope(name, (uint32_t)strlen(name));
	std::unique_ptr<apart> a(new apart);

	a->is_span = is_span;
	a->depth = calls.depth();
	if (is_span) {
		a->begin = calls.span_begin();
		a->context = calls.child(calls.here(), id);
	} else {
		calls.enter(id);
	}
	return a;
}

__attribute__((cold, noinline)) void end_apart(const struct apart *a)
{
	if (a->is_span)
		calls.span_end(a->context, a->begin);
	else
		calls.unwind(a->depth);
}

std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction &fn)
{
	struct thread_state *t = likely(self != NULL) ? self : enter_thread();
	const char *name = fn.name();
	const struct known_name *k;
	uint32_t depth;

	if (unlikely(fn.isAsync()))
		return begin_apart(name, true);
	if (unlikely(t == NULL))
		return begin_apart(name, false);
	depth = calls.depth();
	while (unlikely(t->n > 0 && depth <= t->frame[t->n - 1].depth))
		t->n--; /* its scope was left meanwhile */
	if (unlikely(t->n == FRAMES))
		return begin_apart(name, false);
	k = name_of(t, name);
	details = details_now.load(std::memory_order_relaxed);
	t->frame[t->n++] = {&fn, depth, k->evaluates};
	if (likely(details == 0))
		calls.enter(k->id);
	else
		enter_with_details(t, k, name, fn);
	if (unlikely(k->odd) && fn.scope() != at::RecordScope::USER_SCOPE)
		calls.put_i64(m_mark, (int64_t)fn.scope());
	if (t->n > 1)
		t->frame[t->n - 2].evaluates = false;
	return nullptr;
}

void end(const at::RecordFunction &fn, at::ObserverContext *context)
{
	struct thread_state *t = self;
	uint32_t i;

	if (unlikely(context != nullptr)) {
		end_apart(static_cast<const struct apart *>(context));
		return;
	}
	if (unlikely(t == NULL))
		return;
	for (i = t->n; i > 0 && unlikely(t->frame[i - 1].fn != &fn); i--)
		;
	if (unlikely(i == 0)) /* it began before operators were wanted, or on another thread */
		return;
	t->n = i - 1;
	if (likely(calls.depth() == t->frame[i - 1].depth + 1))
		calls.exit();
	else
		calls.unwind(t->frame[i - 1].depth);
}

/* What torch is to keep for a callback is fixed when that is added, so there is one for each: whether
 * inputs, and whether numbers. */
struct turn {
	std::mutex lock;
	at::CallbackHandle handle[4] = {}; /* none: at::INVALID_CALLBACK_HANDLE */
	uint32_t which = 0;
	bool on = false;
};

struct turn &turn_now()
{
	static struct turn *t = new struct turn; /* threads may come after the end of main() */

	return *t;
}

/* With the lock. */
void turn_to(struct turn *t, bool on)
{
	at::CallbackHandle *handle = &t->handle[t->which];

	t->on = on;
	if (!on)
		at::disableCallback(*handle);
	else if (*handle != at::INVALID_CALLBACK_HANDLE)
		at::reenableCallback(*handle);
	else
		*handle = at::addGlobalCallback(at::RecordFunctionCallback(begin, end)
							.needsInputs((t->which & 1) != 0)
							.needsIds((t->which & 2) != 0));
}

} // namespace

/* --- ours ----------------------------------------------------------------------------------------- */

EXPORT void protond_ops_turn(int on)
{
	struct turn &t = turn_now();
	const std::lock_guard<std::mutex> held(t.lock);

	if (t.on != (on != 0))
		turn_to(&t, on != 0);
}

/* What is recorded from now on, enum ops_detail. */
EXPORT void protond_ops_details(uint32_t wanted)
{
	struct turn &t = turn_now();
	const std::lock_guard<std::mutex> held(t.lock);
	const bool on = t.on;

	if (wanted == details_now.load())
		return;
	if (on)
		turn_to(&t, false);
	details_now.store(wanted);
	t.which = ((wanted & INPUTS) != 0 ? 1u : 0) | ((wanted & OPS_SEQUENCE) != 0 ? 2u : 0);
	if (on)
		turn_to(&t, true);
}

/* Once. folder: of torch and of protond, as files below them begin. NULL, or why not. */
EXPORT const char *protond_ops_open(
	const struct ops_calls *table, uint64_t bytes, const char *torch, const char *ours)
{
	if (bytes != sizeof(calls) || table->bytes != sizeof(calls))
		return "it was built for another protond";
	if (pthread_key_create(&thread_key, leave_thread) != 0)
		return "no thread-specific data is left (pthread_key_create)";
	calls = *table;
	snprintf(folders[0], sizeof(folders[0]), "%s", torch);
	snprintf(folders[1], sizeof(folders[1]), "%s", ours);
	more = calls.name("(more)", 6);
	m_types = calls.metric("Input type (pty)");
	m_strides = calls.metric("Input Strides (pty)");
	m_scalars = calls.metric("Concrete Inputs (pty)");
	m_kwargs = calls.metric("kwinputs (pty)");
	m_stack = calls.metric("Call stack (pty)");
	m_mark = calls.metric(OP_MARK " (pty)");
	m_sequence = calls.metric("Sequence number (pty)");
	m_forward = calls.metric("Fwd thread id (pty)");
	m_id = calls.metric("Record function id (pty)");
	m_bytes = calls.metric("bytes");
	m_flops[0] = calls.metric("flops8");
	m_flops[1] = calls.metric("flops16");
	m_flops[2] = calls.metric("flops32");
	m_flops[3] = calls.metric("flops64");
	return NULL;
}
