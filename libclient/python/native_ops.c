/* SPDX-License-Identifier: MIT. native_ops.c: what sees PyTorch's operators, and the blocks of its
 * allocator, is built on the user's machine, for his torch, and loaded by Python (_ops.py, _blocks.py).
 * Here: what they call of ours, and their switches, which follow what sessions want. */
#include "native.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "binding.h"
#include "engine.h"
#include "longname.h"
#include "op_terms.h"
#include "protond/blocks_calls.h"
#include "protond/ops_calls.h"
#include "ring.h"

struct sight {
	_Atomic(protond_ops_switch *) turn; /* NULL: not loaded */
	_Atomic bool asked;                 /* Python was told that they are wanted */
	_Atomic uint32_t turns;             /* odd: wanted now */
	PyObject *load;                     /* Python's: loads it */
};

static struct sight ops, blocks;
static _Atomic bool ops_always; /* whenever anything is recorded */
static _Atomic(protond_blocks_teller *) blocks_tell;

/* On the main thread, between two of its instructions. */
static int call_load(void *of)
{
	struct sight *s = of;
	PyObject *r;

	if (s->load == NULL)
		return 0;
	r = PyObject_CallFunctionObjArgs(s->load, NULL);
	if (r == NULL)
		PyErr_WriteUnraisable(s->load);
	Py_XDECREF(r);
	return 0;
}

static void turn_to(struct sight *s, bool on)
{
	protond_ops_switch *const turn = atomic_load(&s->turn);

	if ((atomic_load(&s->turns) & 1) != on)
		atomic_fetch_add(&s->turns, 1);
	if (turn != NULL)
		turn(on);
	else if (on && !atomic_exchange(&s->asked, true) && Py_AddPendingCall(call_load, s) < 0)
		atomic_store(&s->asked, false); /* too many wait: the next change asks again */
}

/* On libprotond's thread, or that of whoever installs it. */
static void told(uint32_t want)
{
	turn_to(&ops,
		(want & WANT_OPS) != 0 || ((want & WANT_SCOPES) != 0 && atomic_load(&ops_always)));
	turn_to(&blocks, (want & WANT_ALLOC) != 0);
}

/* ops_install(load, load_blocks), or Nones: each is called, once, when a session wants operators, or
 * allocations. */
static PyObject *native_ops_install(PyObject *m, PyObject *args)
{
	PyObject *load, *load_blocks;

	(void)m;
	if (!PyArg_ParseTuple(args, "OO:ops_install", &load, &load_blocks))
		return NULL;
	protond_on_want(NULL);
	native_replace(&ops.load, load != Py_None ? load : NULL);
	native_replace(&blocks.load, load_blocks != Py_None ? load_blocks : NULL);
	if (load != Py_None)
		protond_on_want(told);
	Py_RETURN_NONE;
}

/* ops_loaded(address of its switch, always) */
static PyObject *native_ops_loaded(PyObject *m, PyObject *args)
{
	PyObject *address;
	int always;
	void *p;

	(void)m;
	if (!PyArg_ParseTuple(args, "Op:ops_loaded", &address, &always))
		return NULL;
	p = PyLong_AsVoidPtr(address);
	if (p == NULL)
		return NULL;
	atomic_store(&ops_always, always);
	atomic_store(&ops.turn, (protond_ops_switch *)(uintptr_t)p);
	protond_on_want(told);
	Py_RETURN_NONE;
}

/* ops_wanted(): whether a session wants them, or did. */
static PyObject *native_ops_wanted(PyObject *m, PyObject *unused)
{
	(void)m;
	(void)unused;
	return PyBool_FromLong(atomic_load(&ops.asked));
}

static PyObject *native_blocks_wanted(PyObject *m, PyObject *unused)
{
	(void)m;
	(void)unused;
	return PyBool_FromLong(atomic_load(&blocks.asked));
}

/* blocks_turns(): how often they were switched; odd: they are wanted now. */
static PyObject *native_blocks_turns(PyObject *m, PyObject *unused)
{
	(void)m;
	(void)unused;
	return PyLong_FromUnsignedLong(atomic_load(&blocks.turns));
}

/* blocks_anew(): what is allocated now is said again, to a session that begins as another one ends. */
static PyObject *native_blocks_anew(PyObject *m, PyObject *unused)
{
	(void)m;
	(void)unused;
	if ((atomic_load(&blocks.turns) & 1) != 0) {
		turn_to(&blocks, false);
		turn_to(&blocks, true);
	}
	Py_RETURN_NONE;
}

/* block(op, device, address, bytes, reserved, active, split, requested), as in struct blocks_event. */
static PyObject *native_block(PyObject *m, PyObject *args)
{
	unsigned long long address, bytes, reserved, active, split, requested;
	struct engine_block b = {0};

	(void)m;
	if (!PyArg_ParseTuple(args, "IIKKKKKK:block", &b.op, &b.device, &address, &bytes, &reserved,
		    &active, &split, &requested))
		return NULL;
	b.address = address;
	b.bytes = bytes;
	b.reserved = reserved;
	b.active = active;
	b.split = split;
	b.requested = requested;
	protond_block(&b);
	Py_RETURN_NONE;
}

/* blocks_loaded(address of its switch, and of what tells how things stand) */
static PyObject *native_blocks_loaded(PyObject *m, PyObject *args)
{
	PyObject *turn, *tell;
	void *p, *q;

	(void)m;
	if (!PyArg_ParseTuple(args, "OO:blocks_loaded", &turn, &tell))
		return NULL;
	p = PyLong_AsVoidPtr(turn);
	q = PyLong_AsVoidPtr(tell);
	if (p == NULL || q == NULL)
		return NULL;
	atomic_store(&blocks_tell, (protond_blocks_teller *)(uintptr_t)q);
	atomic_store(&blocks.turn, (protond_blocks_switch *)(uintptr_t)p);
	protond_on_want(told);
	Py_RETURN_NONE;
}

/* blocks_told(): how torch's allocator stands now is recorded. */
static PyObject *native_blocks_told(PyObject *m, PyObject *unused)
{
	protond_blocks_teller *const tell = atomic_load(&blocks_tell);

	(void)m;
	(void)unused;
	if (tell != NULL)
		tell();
	Py_RETURN_NONE;
}

#define AS(a, b) \
	_Static_assert(offsetof(struct engine_block, a) == offsetof(struct blocks_event, b), #a)
AS(address, address);
AS(requested, requested);
AS(device, device);
AS(op, op);
_Static_assert(sizeof(struct engine_block) == sizeof(struct blocks_event), "blocks_calls.h");

static void block_put(const struct blocks_event *e)
{
	struct engine_block b;

	memcpy(&b, e, sizeof(b));
	protond_block(&b);
}

/* blocks_calls(): struct blocks_calls, as bytes. */
static PyObject *native_blocks_calls(PyObject *m, PyObject *unused)
{
	static const struct blocks_calls calls = {.bytes = sizeof(calls), .block = block_put};

	(void)m;
	(void)unused;
	return PyBytes_FromStringAndSize((const char *)&calls, sizeof(calls));
}

/* Of the domain that sessions without the switch leave out. */
static uint32_t ops_scope(const char *name, uint32_t bytes)
{
	static const char domain[] = OP_DOMAIN;
	char text[sizeof(domain) + 1 + NAME_BYTES_MAX];
	const uint32_t n = bytes < NAME_BYTES_MAX ? bytes : NAME_BYTES_MAX;

	text[0] = text[sizeof(domain)] = (char)NAME_DOMAIN_MARK;
	memcpy(text + 1, domain, sizeof(domain) - 1);
	if (bytes <= NAME_BYTES_MAX)
		memcpy(text + 1 + sizeof(domain), name, n);
	else
		name_cut(name, bytes, text + 1 + sizeof(domain));
	return protond_name_n(text, (uint32_t)sizeof(domain) + 1 + n);
}

/* ops_calls(always): struct ops_calls, as bytes. always: operators in all sessions. */
static PyObject *native_ops_calls(PyObject *m, PyObject *args)
{
	int always;
	struct ops_calls calls = {
		.bytes = sizeof(calls),
		.name = protond_name_n,
		.text = protond_name_text,
		.enter = protond_scope_enter,
		.exit = protond_scope_exit,
		.unwind = protond_scope_unwind,
		.depth = protond_depth,
		.metric = protond_metric,
		.put_i64 = protond_metric_i64,
		.put_f64 = protond_metric_f64,
		.put_name = protond_metric_name,
		.stack = native_stack_walk,
		.here = protond_context_get,
		.child = protond_context_child,
		.span_begin = protond_span_begin,
		.span_end = protond_span_end,
	};

	(void)m;
	if (!PyArg_ParseTuple(args, "p:ops_calls", &always))
		return NULL;
	calls.scope = always ? protond_name_n : ops_scope;
	return PyBytes_FromStringAndSize((const char *)&calls, sizeof(calls));
}

PyMethodDef native_ops_functions[] = {
	{"ops_install", native_ops_install, METH_VARARGS, NULL},
	{"ops_loaded", native_ops_loaded, METH_VARARGS, NULL},
	{"ops_wanted", native_ops_wanted, METH_NOARGS, NULL},
	{"ops_calls", native_ops_calls, METH_VARARGS, NULL},
	{"blocks_loaded", native_blocks_loaded, METH_VARARGS, NULL},
	{"blocks_told", native_blocks_told, METH_NOARGS, NULL},
	{"blocks_wanted", native_blocks_wanted, METH_NOARGS, NULL},
	{"blocks_turns", native_blocks_turns, METH_NOARGS, NULL},
	{"blocks_anew", native_blocks_anew, METH_NOARGS, NULL},
	{"block", native_block, METH_VARARGS, NULL},
	{"blocks_calls", native_blocks_calls, METH_NOARGS, NULL},
	{NULL, NULL, 0, NULL},
};
