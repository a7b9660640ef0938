/* SPDX-License-Identifier: MIT. native_scope.c: the hot calls: entering and leaving a scope.
 *
 * On a thread that runs an asyncio loop scopes belong to tasks, not to the thread: there the calls
 * go to Python (_aio.py), which keeps them in a context variable. */
#include "native.h"

#include <string.h>

PyObject *native_async_enter, *native_async_leave, *native_decorate;

/* 1: this thread runs an asyncio loop. Then loop_depth is how deep its stack was when its task went
 * on: what is above was pushed since, by what cannot suspend (a module of torch), and scopes inside
 * that go on the stack too. */
static __thread uint32_t in_loop __attribute__((tls_model("initial-exec")));
static __thread uint32_t loop_depth __attribute__((tls_model("initial-exec")));

/* The name of torch.py's steps, and how many scopes of that name the program itself is in. A scope
 * is left by name, so the program's and a guessed one may not be open at once. */
uint32_t native_step_id = UINT32_MAX;
static __thread uint32_t own_steps __attribute__((tls_model("initial-exec")));

static int call_async(PyObject *fn, uint32_t id)
{
	PyObject *n = PyLong_FromUnsignedLong(id);
	PyObject *r = n != NULL ? PyObject_CallFunctionObjArgs(fn, n, NULL) : NULL;

	Py_XDECREF(n);
	Py_XDECREF(r);
	return r != NULL ? 0 : -1;
}

__attribute__((cold, noinline)) static int loop_enter(uint32_t id)
{
	if (protond_depth() <= loop_depth)
		return call_async(native_async_enter, id);
	protond_scope_enter(id);
	return 0;
}

__attribute__((cold, noinline)) static int loop_leave(uint32_t id)
{
	const uint32_t depth = protond_depth();

	if (depth > loop_depth) {
		protond_scope_leave(id);
		if (protond_depth() < depth)
			return 0;
	}
	return call_async(native_async_leave, id);
}

static inline int enter(uint32_t id)
{
	if (unlikely(in_loop != 0 && native_async_enter != NULL))
		return loop_enter(id);
	protond_scope_enter(id);
	own_steps += id == native_step_id;
	return 0;
}

static inline int leave(uint32_t id)
{
	if (unlikely(in_loop != 0 && native_async_leave != NULL))
		return loop_leave(id);
	protond_scope_leave(id);
	own_steps -= id == native_step_id && own_steps > 0;
	return 0;
}

struct scope_object {
	PyObject_HEAD uint32_t id;
	PyObject *name, *metrics; /* metrics: NULL or a dict */
};

/* scope(name, metrics=None) */
static PyObject *scope_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	static char name_word[] = "name", metrics_word[] = "metrics";
	static char *words[] = {name_word, metrics_word, NULL};
	const Py_ssize_t n = PyTuple_Size(args);
	PyObject *name = NULL, *metrics = NULL;
	struct scope_object *s;
	uint32_t id;

	if (likely(n == 1 && kwargs == NULL))
		name = PyTuple_GetItem(args, 0);
	else if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:scope", words, &name, &metrics))
		return NULL;
	if (native_id_of(name, &id) < 0)
		return NULL;
	if (metrics == Py_None)
		metrics = NULL;
	if (metrics != NULL && !PyDict_Check(metrics)) {
		PyErr_SetString(PyExc_TypeError, "metrics is a dict of names and values");
		return NULL;
	}
	s = (struct scope_object *)PyType_GenericAlloc(type, 0);
	if (s == NULL)
		return NULL;
	s->id = id;
	Py_INCREF(name);
	s->name = name;
	Py_XINCREF(metrics);
	s->metrics = metrics;
	return (PyObject *)s;
}

static void scope_dealloc(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);
	struct scope_object *s = (struct scope_object *)self;
	freefunc free_it;
	void *slot = PyType_GetSlot(type, Py_tp_free);

	Py_XDECREF(s->name);
	Py_XDECREF(s->metrics);
	memcpy(&free_it, &slot, sizeof(free_it));
	free_it(self);
	Py_DECREF(type);
}

static PyObject *scope_enter(PyObject *self, PyObject *unused)
{
	const struct scope_object *s = (struct scope_object *)self;

	(void)unused;
	if (enter(s->id) < 0)
		return NULL;
	if (unlikely(s->metrics != NULL) && native_put_metrics(s->metrics) < 0) {
		(void)leave(s->id);
		return NULL;
	}
	Py_INCREF(self);
	return self;
}

static PyObject *scope_exit(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
	(void)args;
	(void)n;
	if (leave(((struct scope_object *)self)->id) < 0)
		return NULL;
	Py_RETURN_NONE;
}

static PyObject *scope_call(PyObject *self, PyObject *args, PyObject *kwargs)
{
	PyObject *fn;

	if (kwargs != NULL || !PyArg_ParseTuple(args, "O:scope", &fn))
		return NULL;
	return PyObject_CallFunctionObjArgs(native_decorate, self, fn, NULL);
}

static PyObject *scope_get_name(PyObject *self, void *unused)
{
	PyObject *name = ((struct scope_object *)self)->name;

	(void)unused;
	Py_INCREF(name);
	return name;
}

static PyObject *scope_get_metrics(PyObject *self, void *unused)
{
	PyObject *metrics = ((struct scope_object *)self)->metrics;

	(void)unused;
	metrics = metrics != NULL ? metrics : Py_None;
	Py_INCREF(metrics);
	return metrics;
}

static PyMethodDef scope_methods[] = {
	{"__enter__", scope_enter, METH_NOARGS, NULL},
	{"__exit__", FAST(scope_exit), METH_FASTCALL, NULL},
	{NULL, NULL, 0, NULL},
};

static PyGetSetDef scope_members[] = {
	{"name", scope_get_name, NULL, "The scope's name.", NULL},
	{"metrics", scope_get_metrics, NULL, "What is recorded at each entry, or None.", NULL},
	{NULL, NULL, NULL, NULL, NULL},
};

static char scope_doc[] =
	"scope(name, metrics=None)\n--\n\n"
	"Names what happens inside: everything that runs and is launched until its exit\n"
	"stands below it. A context manager, and a decorator of functions, coroutine functions,\n"
	"generators and asynchronous generators. May be reused and entered again while open.\n\n"
	"metrics: {\"name (unit) (kind)\": int, float or str}, recorded at each entry; kind is\n"
	"(inc), the default: summed over the subtree; (exc): summed; (pty): the last one holds.";

static PyType_Slot scope_slots[] = {
	{Py_tp_new, scope_new},
	{Py_tp_dealloc, scope_dealloc},
	{Py_tp_call, scope_call},
	{Py_tp_methods, scope_methods},
	{Py_tp_getset, scope_members},
	{Py_tp_doc, scope_doc},
	{0, NULL},
};

PyType_Spec native_scope_spec = {
	.name = "protond.scope",
	.basicsize = sizeof(struct scope_object),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
	.slots = scope_slots,
};

/* --- functions ----------------------------------------------------------------------------------
 */

static PyObject *native_enter(PyObject *m, PyObject *name)
{
	uint32_t id;

	(void)m;
	if (native_take_name(name, &id) < 0 || enter(id) < 0)
		return NULL;
	Py_RETURN_NONE;
}

static PyObject *native_leave(PyObject *m, PyObject *name)
{
	uint32_t id;

	(void)m;
	if (native_take_name(name, &id) < 0 || leave(id) < 0)
		return NULL;
	Py_RETURN_NONE;
}

/* As enter() and leave() where nothing in between suspends: on the thread's own stack always. */
static PyObject *native_push(PyObject *m, PyObject *name)
{
	uint32_t id;

	(void)m;
	if (native_take_name(name, &id) < 0)
		return NULL;
	protond_scope_enter(id);
	Py_RETURN_NONE;
}

static PyObject *native_pop(PyObject *m, PyObject *name)
{
	uint32_t id;

	(void)m;
	if (native_take_name(name, &id) < 0)
		return NULL;
	protond_scope_leave(id);
	Py_RETURN_NONE;
}

static PyObject *native_depth(PyObject *m, PyObject *unused)
{
	(void)m;
	(void)unused;
	return PyLong_FromUnsignedLong(protond_depth());
}

static PyObject *native_own_steps(PyObject *m, PyObject *unused)
{
	(void)m;
	(void)unused;
	return PyLong_FromUnsignedLong(own_steps);
}

static PyObject *native_unwind(PyObject *m, PyObject *depth)
{
	const unsigned long n = PyLong_AsUnsignedLong(depth);

	(void)m;
	if (PyErr_Occurred() != NULL)
		return NULL;
	protond_scope_unwind((uint32_t)n);
	Py_RETURN_NONE;
}

static PyObject *native_loop(PyObject *m, PyObject *runs)
{
	const int yes = PyObject_IsTrue(runs);

	(void)m;
	if (yes < 0)
		return NULL;
	in_loop = (uint32_t)yes;
	Py_RETURN_NONE;
}

static PyObject *native_context_set(PyObject *m, PyObject *context)
{
	const unsigned long long c = PyLong_AsUnsignedLongLong(context);

	(void)m;
	if (PyErr_Occurred() != NULL)
		return NULL;
	protond_context_set(c);
	loop_depth = protond_depth();
	Py_RETURN_NONE;
}

PyMethodDef native_scope_functions[] = {
	{"enter", native_enter, METH_O, NULL},
	{"leave", native_leave, METH_O, NULL},
	{"push", native_push, METH_O, NULL},
	{"pop", native_pop, METH_O, NULL},
	{"depth", native_depth, METH_NOARGS, NULL},
	{"own_steps", native_own_steps, METH_NOARGS, NULL},
	{"unwind", native_unwind, METH_O, NULL},
	{"loop", native_loop, METH_O, NULL},
	{"context_set", native_context_set, METH_O, NULL},
	{NULL, NULL, 0, NULL},
};
