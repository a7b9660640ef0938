/* SPDX-License-Identifier: MIT. native_ops.c: what sees PyTorch's operators is built on the user's
 * machine, for his torch, and loaded by Python (_ops.py). Here: what it calls of ours, and its
 * switch, which follows what sessions want. */
#include "native.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "binding.h"
#include "protond/ops_calls.h"
#include "ring.h"

static _Atomic(protond_ops_switch *) ops_switch; /* NULL: not loaded */
static _Atomic bool ops_always;                  /* whenever anything is recorded */
static _Atomic bool ops_asked;                   /* Python was told that they are wanted */
static PyObject *ops_load;                       /* Python's: loads it */

static bool wanted(uint32_t want)
{
	return (want & WANT_OPS) != 0 || ((want & WANT_SCOPES) != 0 && atomic_load(&ops_always));
}

/* On the main thread, between two of its instructions. */
static int call_load(void *unused)
{
	PyObject *r;

	(void)unused;
	if (ops_load == NULL)
		return 0;
	r = PyObject_CallFunctionObjArgs(ops_load, NULL);
	if (r == NULL)
		PyErr_WriteUnraisable(ops_load);
	Py_XDECREF(r);
	return 0;
}

/* On libprotond's thread, or that of whoever installs it. */
static void told(uint32_t want)
{
	protond_ops_switch *const turn = atomic_load(&ops_switch);
	const bool on = wanted(want);

	if (turn != NULL)
		turn(on);
	else if (on && !atomic_exchange(&ops_asked, true) && Py_AddPendingCall(call_load, NULL) < 0)
		atomic_store(&ops_asked, false); /* too many wait: the next change asks again */
}

/* ops_install(load), or None: load() is called, once, when a session wants operators. */
static PyObject *native_ops_install(PyObject *m, PyObject *load)
{
	(void)m;
	protond_on_want(NULL);
	native_replace(&ops_load, load != Py_None ? load : NULL);
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
	atomic_store(&ops_switch, (protond_ops_switch *)(uintptr_t)p);
	protond_on_want(told);
	Py_RETURN_NONE;
}

/* ops_wanted(): whether a session wants them, or did. */
static PyObject *native_ops_wanted(PyObject *m, PyObject *unused)
{
	(void)m;
	(void)unused;
	return PyBool_FromLong(atomic_load(&ops_asked));
}

/* ops_calls(): struct ops_calls, as bytes. */
static PyObject *native_ops_calls(PyObject *m, PyObject *unused)
{
	static const struct ops_calls calls = {
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
	(void)unused;
	return PyBytes_FromStringAndSize((const char *)&calls, sizeof(calls));
}

PyMethodDef native_ops_functions[] = {
	{"ops_install", native_ops_install, METH_O, NULL},
	{"ops_loaded", native_ops_loaded, METH_VARARGS, NULL},
	{"ops_wanted", native_ops_wanted, METH_NOARGS, NULL},
	{"ops_calls", native_ops_calls, METH_NOARGS, NULL},
	{NULL, NULL, 0, NULL},
};
