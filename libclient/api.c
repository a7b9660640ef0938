/* SPDX-License-Identifier: MIT. api.c: the hot functions of protond.h: ask the gate, move this
 * thread's stack or call the engine. */
#include "thread.h"

#include <string.h>

#include "binding.h"
#include "names.h"
#include "protond.h"
#include "record.h"

/* --- scopes ----------------------------------------------------------------------------------- */

typedef uint64_t __attribute__((may_alias)) pd_pair; /* name and path of a frame, little-endian */

/* Depth first: a signal handler in between then uses the frames above. */
static inline void quiet_enter(struct pd_thread *t, uint32_t name)
{
	const uint32_t depth = t->depth;

	__atomic_store_n(
		&t->depth, depth + 1, __ATOMIC_RELAXED); /* the engine may look from afar */
	atomic_signal_fence(memory_order_seq_cst);
	if (unlikely(depth >= STACK_MAX))
		return;
	/* name, and path 0, in one store */
	__atomic_store_n((pd_pair *)(void *)&t->frame[depth], name, __ATOMIC_RELAXED);
	t->frame[depth].begin = 0;
}

static inline void quiet_exit(struct pd_thread *t)
{
	const uint32_t depth = t->depth;

	if (unlikely(depth == 0))
		return;
	__atomic_store_n(&t->depth, depth - 1, __ATOMIC_RELAXED);
	if (unlikely(depth <= t->base_depth))
		t->base_depth = depth - 1;
}

/* A thread's first call, or the library's. Out of the way of the hot functions, which then need no
 * stack frame. */
__attribute__((cold, noinline)) static void enter_cold(uint32_t name)
{
	struct pd_thread *t = pd_thread_cold();

	if (t == NULL)
		return;
	if (pd_gate_on())
		HOT->enter(t, name);
	else
		quiet_enter(t, name);
}

PD_EXPORT void protond_scope_enter(uint32_t name)
{
	struct pd_thread *t = pd_self;
	/* acquire: pairs with the release in gate_set(): behind GATE_ON stand the engine's
	 * functions */
	const uint32_t gate = atomic_load_explicit(&HOT->gate, memory_order_acquire);

	if (unlikely(t == NULL))
		enter_cold(name);
	else if (gate == GATE_ON)
		HOT->enter(t, name);
	else if (likely(gate == GATE_OFF))
		quiet_enter(t, name);
	else
		enter_cold(name);
}

__attribute__((cold, noinline)) static void exit_cold(void)
{
	struct pd_thread *t = pd_thread_cold();
	const struct protond_engine *e = atomic_load(&HOT->engine);

	if (t == NULL && e != NULL)
		e->unkept();
	if (t == NULL || t->depth == 0)
		return;
	if (pd_gate_on())
		HOT->leave(t);
	else
		quiet_exit(t);
}

/* The engine and quiet_exit() leave a thread with nothing open alone. */
PD_EXPORT void protond_scope_exit(void)
{
	struct pd_thread *t = pd_self;
	/* acquire: as in protond_scope_enter() */
	const uint32_t gate = atomic_load_explicit(&HOT->gate, memory_order_acquire);

	if (unlikely(t == NULL))
		exit_cold();
	else if (gate == GATE_ON)
		HOT->leave(t);
	else if (likely(gate == GATE_OFF))
		quiet_exit(t);
	else
		exit_cold();
}

PD_EXPORT void protond_scope_unwind(uint32_t depth)
{
	struct pd_thread *t = pd_thread_here();

	if (t == NULL)
		return;
	if (pd_gate_on())
		atomic_load(&HOT->engine)->scope_unwind(t, depth);
	while (t->depth > depth)
		quiet_exit(t);
}

PD_EXPORT void protond_scope_leave(uint32_t name)
{
	const struct pd_thread *t = pd_thread_here();
	uint32_t i;

	if (t == NULL)
		return;
	if (unlikely(t->depth > STACK_MAX)) { /* names are not kept there: exits stay balanced */
		protond_scope_exit();
		return;
	}
	for (i = t->depth; i > t->base_depth; i--) {
		if (t->frame[i - 1].name != name)
			continue;
		if (likely(i == t->depth))
			protond_scope_exit();
		else
			protond_scope_unwind(i - 1);
		return;
	}
}

PD_EXPORT int protond_recording(void)
{
	return pd_thread_here() != NULL && pd_gate_on();
}

PD_EXPORT uint32_t protond_depth(void)
{
	const struct pd_thread *t = pd_thread_here();

	return t != NULL ? t->depth : 0;
}

/* --- states and ops --------------------------------------------------------------------------- */

static void states_moved(struct pd_thread *t)
{
	if (pd_gate_on())
		atomic_load(&HOT->engine)->state_changed(t);
}

static void state_enter(uint32_t name)
{
	struct pd_thread *t = pd_thread_here();

	if (t == NULL)
		return;
	if (t->states < STATES_MAX)
		t->state[t->states] = name;
	t->states++;
	states_moved(t);
}

PD_EXPORT void protond_state_enter(uint32_t name)
{
	state_enter(name & ~STATE_BELOW);
}

PD_EXPORT void protond_state_enter_below(uint32_t name)
{
	state_enter(name | STATE_BELOW);
}

PD_EXPORT void protond_state_exit(void)
{
	struct pd_thread *t = pd_thread_here();

	if (t == NULL || t->states == 0)
		return;
	t->states--;
	states_moved(t);
}

PD_EXPORT void protond_op_enter(uint32_t name)
{
	struct pd_thread *t = pd_thread_here();

	if (t == NULL)
		return;
	t->op = name != 0 ? name : NAME_OTHER_OP;
	states_moved(t);
}

PD_EXPORT void protond_op_exit(void)
{
	struct pd_thread *t = pd_thread_here();

	if (t == NULL || t->op == 0)
		return;
	t->op = 0;
	states_moved(t);
}

/* --- metrics ---------------------------------------------------------------------------------- */

static void metric(uint32_t id, uint32_t type, uint64_t bits)
{
	struct pd_thread *t = pd_thread_here();

	if (t != NULL && pd_gate_on())
		atomic_load(&HOT->engine)->metric(t, id, type, bits);
}

PD_EXPORT void protond_metric_i64(uint32_t id, int64_t value)
{
	metric(id, METRIC_I64, (uint64_t)value);
}

PD_EXPORT void protond_metric_u64(uint32_t id, uint64_t value)
{
	metric(id, METRIC_U64, value);
}

PD_EXPORT void protond_metric_f64(uint32_t id, double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	metric(id, METRIC_F64, bits);
}

PD_EXPORT void protond_metric_str(uint32_t id, const char *value)
{
	metric(id, METRIC_STR, protond_name(value));
}

/* --- what our Python extension alone calls: binding.h ------------------------------------------ */

PD_EXPORT int protond_capturing(void)
{
	const struct pd_thread *t = pd_thread_here();

	return t != NULL && pd_gate_on() && atomic_load(&HOT->engine)->capturing(t) != 0;
}

PD_EXPORT void protond_block(const struct engine_block *b)
{
	struct pd_thread *t = pd_thread_here();

	if (t != NULL && pd_gate_on())
		atomic_load(&HOT->engine)->block(t, b);
}

PD_EXPORT int protond_captured(uint32_t id, int whole, uint64_t which)
{
	struct pd_thread *t = pd_thread_here();

	return t != NULL && pd_gate_on() &&
	       atomic_load(&HOT->engine)
			       ->captured(t, id, whole != 0 ? METRIC_I64 : METRIC_F64, which) != 0;
}

PD_EXPORT void *protond_captured_ring(uint32_t device, uint64_t *ret_bytes)
{
	return pd_thread_here() != NULL && pd_gate_on()
		       ? atomic_load(&HOT->engine)->captured_ring(device, ret_bytes)
		       : NULL;
}

PD_EXPORT void protond_markers(int on)
{
	if (pd_thread_here() != NULL && pd_gate_on())
		atomic_load(&HOT->engine)->markers(on != 0);
}

PD_EXPORT void protond_metric_name(uint32_t id, uint32_t name)
{
	metric(id, METRIC_STR, name);
}

PD_EXPORT const char *protond_name_text(uint32_t name, uint32_t *ret_bytes)
{
	return pd_name(name, ret_bytes);
}

PD_EXPORT uint32_t protond_op(void)
{
	const struct pd_thread *t = pd_thread_here();

	return t != NULL ? t->op : 0;
}

/* --- contexts --------------------------------------------------------------------------------- */

PD_EXPORT uint64_t protond_context_get(void)
{
	const struct pd_thread *t = pd_thread_here();
	uint64_t c;

	if (t == NULL)
		return 0;
	c = t->context;
	for (uint32_t i = t->base_depth; i < t->depth && i < STACK_MAX; i++)
		c = pd_context_child(c, t->frame[i].name);
	return c;
}

PD_EXPORT void protond_context_set(uint64_t context)
{
	struct pd_thread *t = pd_thread_here();

	if (t == NULL)
		return;
	t->context = context;
	t->base_depth = context != 0 ? (t->depth < STACK_MAX ? t->depth : STACK_MAX) : 0;
	if (pd_gate_on())
		atomic_load(&HOT->engine)->context_changed(t);
	else
		t->generation = 0;
}

PD_EXPORT uint64_t protond_context_child(uint64_t parent, uint32_t name)
{
	return pd_context_child(parent, name);
}

/* --- spans ------------------------------------------------------------------------------------ */

PD_EXPORT uint64_t protond_span_begin(void)
{
	return pd_thread_here() != NULL && pd_gate_on() ? atomic_load(&HOT->engine)->clock() : 0;
}

PD_EXPORT void protond_span_end(uint64_t context, uint64_t begin)
{
	struct pd_thread *t = pd_thread_here();

	if (t != NULL && pd_gate_on())
		atomic_load(&HOT->engine)->span(t, context, begin);
}
