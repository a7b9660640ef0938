/* SPDX-License-Identifier: MIT. native_scope.c: the hot calls: entering and leaving a scope.
 *
 * On a thread that runs an asyncio loop scopes belong to tasks, not to the thread: there the calls
 * go to Python (_aio.py), which keeps them in a context variable. */
#include "native.h"

#include <stddef.h>
#include <string.h>
#include <structmember.h>

PyObject *native_async_enter, *native_async_leave, *native_decorate;

/* 1: this thread runs an asyncio loop. Then loop_depth is how deep its stack was when its task went
 * on: what is above was pushed since, by what cannot suspend (a module of torch), and scopes inside
 * that go on the stack too. */
static __thread uint32_t in_loop __attribute__((tls_model("initial-exec")));
static __thread uint32_t loop_depth __attribute__((tls_model("initial-exec")));

/* Scopes and operations that were entered and have a number, by all of Python together. */
static uint64_t numbers;

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

typedef PyObject *vector_call(PyObject *self, PyObject *const *args, size_t n, PyObject *names);

struct scope_object {
	PyObject_HEAD vector_call *call;
	PyObject *name, *metrics; /* metrics: NULL or a dict */
	uint64_t number;          /* of its last entry while something was recorded; 0 none */
	uint32_t id;
	uint32_t is_manager; /* 1: a `with` has asked for its methods */
};

static PyTypeObject *scope_type;  /* protond.scope */
static PyTypeObject *vector_type; /* the same, where calls come by scope_vector(), or NULL */
static vector_call scope_vector;

/* scope(name, metrics=None) */
static PyObject *scope_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	static char name_word[] = "name", metrics_word[] = "metrics";
	static char *words[] = {name_word, metrics_word, NULL};
	const Py_ssize_t n = PyTuple_Size(args);
	PyObject *name = NULL, *metrics = NULL;
	struct scope_object *s;
	uint32_t id;

	if (likely(kwargs == NULL && (n == 1 || n == 2))) {
		name = PyTuple_GetItem(args, 0);
		metrics = n == 2 ? PyTuple_GetItem(args, 1) : NULL;
	} else if (!PyArg_ParseTupleAndKeywords(
			   args, kwargs, "O|O:scope", words, &name, &metrics)) {
		return NULL;
	}
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
	s->call = scope_vector;
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
	struct scope_object *s = (struct scope_object *)self;

	(void)unused;
	if (enter(s->id) < 0)
		return NULL;
	if (protond_recording() != 0)
		s->number = ++numbers;
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

static PyObject *scope_get_name(PyObject *self, void *unused)
{
	PyObject *name = ((struct scope_object *)self)->name;

	(void)unused;
	Py_INCREF(name);
	return name;
}

static PyObject *scope_get_id(PyObject *self, void *unused)
{
	const uint64_t number = ((struct scope_object *)self)->number;

	(void)unused;
	if (number == 0)
		Py_RETURN_NONE;
	return PyLong_FromUnsignedLongLong(number - 1);
}

static PyObject *scope_get_metrics(PyObject *self, void *unused)
{
	PyObject *metrics = ((struct scope_object *)self)->metrics;

	(void)unused;
	metrics = metrics != NULL ? metrics : Py_None;
	Py_INCREF(metrics);
	return metrics;
}

/* For copy and pickle. */
static PyObject *scope_getnewargs(PyObject *self, PyObject *unused)
{
	(void)unused;
	return Py_BuildValue("(NN)", scope_get_name(self, NULL), scope_get_metrics(self, NULL));
}

/* --- what `with` calls --------------------------------------------------------------------------
 *
 * Asking a type's instance for a method makes an object that binds the two: twice for each `with`,
 * half of what it costs. So the attributes __enter__ and __exit__ of the type are descriptors that
 * give the scope itself, and the scope, when it is called, tells by the number of arguments what is
 * meant. What a program derives from scope gets bound methods, for it may define __call__; so does
 * CPython 3.8, which knows no vectors for such types. */

static PyMethodDef enter_method = {"__enter__", scope_enter, METH_NOARGS, NULL};
static PyMethodDef exit_method = {"__exit__", FAST(scope_exit), METH_FASTCALL, NULL};

static PyObject *scope_called(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
	const uint32_t is_manager = ((struct scope_object *)self)->is_manager;

	if (n == 0 && is_manager != 0)
		return scope_enter(self, NULL);
	if (n == 3 && is_manager != 0)
		return scope_exit(self, args, n);
	if (n == 1)
		return PyObject_CallFunctionObjArgs(native_decorate, self, args[0], NULL);
	PyErr_Format(PyExc_TypeError,
		"a scope is called with the function that it decorates, not with %zd arguments", n);
	return NULL;
}

static PyObject *no_names(void)
{
	PyErr_SetString(PyExc_TypeError, "a scope is called without keyword arguments");
	return NULL;
}

static PyObject *scope_vector(PyObject *self, PyObject *const *args, size_t n, PyObject *names)
{
	if (unlikely(names != NULL && PyTuple_Size(names) > 0))
		return no_names();
	return scope_called(
		self, args, (Py_ssize_t)(n & (SIZE_MAX >> 1))); /* the top bit is a flag */
}

/* Where calls come by a tuple: CPython 3.8, and derived types before 3.12. */
static PyObject *scope_call(PyObject *self, PyObject *args, PyObject *kwargs)
{
	PyObject *all[3] = {NULL, NULL, NULL};
	const Py_ssize_t n = PyTuple_Size(args);
	Py_ssize_t i;

	if (kwargs != NULL && PyDict_Size(kwargs) > 0)
		return no_names();
	for (i = 0; i < n && i < 3; i++)
		all[i] = PyTuple_GetItem(args, i);
	return scope_called(self, all, n);
}

struct method_object {
	PyObject_HEAD bool enters; /* __enter__, else __exit__ */
};

static int check_scope(PyObject *o)
{
	if (o != NULL && PyObject_TypeCheck(o, scope_type))
		return 0;
	PyErr_SetString(PyExc_TypeError, "not a scope");
	return -1;
}

static PyObject *method_get(PyObject *self, PyObject *scope, PyObject *type)
{
	const bool enters = ((struct method_object *)self)->enters;

	(void)type;
	if (likely(scope != NULL && Py_TYPE(scope) == vector_type)) {
		((struct scope_object *)scope)->is_manager = 1;
		Py_INCREF(scope);
		return scope;
	}
	if (scope == NULL) {
		Py_INCREF(self);
		return self;
	}
	if (check_scope(scope) < 0)
		return NULL;
	return PyCFunction_NewEx(enters ? &enter_method : &exit_method, scope, NULL);
}

/* scope.__enter__(s) and scope.__exit__(s, type, value, traceback), as ExitStack calls them. */
static PyObject *method_call(PyObject *self, PyObject *args, PyObject *kwargs)
{
	PyObject *scope = PyTuple_Size(args) > 0 ? PyTuple_GetItem(args, 0) : NULL;

	(void)kwargs;
	if (check_scope(scope) < 0)
		return NULL;
	return ((struct method_object *)self)->enters ? scope_enter(scope, NULL)
						      : scope_exit(scope, NULL, 0);
}

static PyType_Slot method_slots[] = {
	{Py_tp_descr_get, method_get},
	{Py_tp_call, method_call},
	{0, NULL},
};

static PyType_Spec method_spec = {
	.name = "protond.scope_method",
	.basicsize = sizeof(struct method_object),
	.flags = Py_TPFLAGS_DEFAULT,
	.slots = method_slots,
};

static PyMemberDef scope_fields[] = {
	{"__vectorcalloffset__", T_PYSSIZET, offsetof(struct scope_object, call), READONLY, NULL},
	{NULL, 0, 0, 0, NULL},
};

static PyMethodDef scope_methods[] = {
	{"__getnewargs__", scope_getnewargs, METH_NOARGS, NULL},
	{NULL, NULL, 0, NULL},
};

static PyGetSetDef scope_members[] = {
	{"name", scope_get_name, NULL, "The scope's name.", NULL},
	{"id", scope_get_id, NULL, "The number of its last entry that was recorded, or None.",
		NULL},
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
	{Py_tp_members, scope_fields},
	{Py_tp_methods, scope_methods},
	{Py_tp_getset, scope_members},
	{Py_tp_doc, scope_doc},
	{0, NULL},
};

#define HAVE_VECTORCALL \
	(1ul << 11) /* in the limited API since 3.12 by name, the same since 3.9 \
		     */

static PyType_Spec scope_spec = {
	.name = "protond.scope",
	.basicsize = sizeof(struct scope_object),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
	.slots = scope_slots,
};

static int add_method(PyObject *type, PyObject *method_type, const char *name, bool enters)
{
	PyObject *method = PyObject_CallObject(method_type, NULL);
	int r;

	if (method == NULL)
		return -1;
	((struct method_object *)method)->enters = enters;
	r = PyObject_SetAttrString(type, name, method);
	Py_DECREF(method);
	return r;
}

PyObject *native_scope_type(void)
{
	const bool has_vectors = strncmp(Py_GetVersion(), "3.8.", 4) != 0;
	PyObject *method_type = PyType_FromSpec(&method_spec), *type = NULL;

	if (has_vectors)
		scope_spec.flags |= HAVE_VECTORCALL;
	if (method_type != NULL)
		type = PyType_FromSpec(&scope_spec);
	if (type != NULL && (add_method(type, method_type, "__enter__", true) < 0 ||
				    add_method(type, method_type, "__exit__", false) < 0))
		Py_CLEAR(type);
	Py_XDECREF(method_type);
	scope_type = (PyTypeObject *)type;
	vector_type = has_vectors ? scope_type : NULL;
	return type;
}

/* --- functions -------------------------------------------------------------------------------- */

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

static PyObject *native_number(PyObject *m, PyObject *unused)
{
	(void)m;
	(void)unused;
	return PyLong_FromUnsignedLongLong(numbers++);
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
	{"number", native_number, METH_NOARGS, NULL},
	{"own_steps", native_own_steps, METH_NOARGS, NULL},
	{"unwind", native_unwind, METH_O, NULL},
	{"loop", native_loop, METH_O, NULL},
	{"context_set", native_context_set, METH_O, NULL},
	{NULL, NULL, 0, NULL},
};
