/* SPDX-License-Identifier: MIT. native.c: protond.h for Python, on the limited API: one binary for
 * CPython 3.8 and later.
 *
 * The hot calls are entering and leaving a scope. A name that is a string object is looked up by
 * its address in a small table that holds a reference to it: literals are the same object each
 * time. The interpreter's lock guards that table and all else here.
 *
 * On a thread that runs an asyncio loop scopes belong to tasks, not to the thread: there the calls
 * go to Python (_aio.py), which keeps them in a context variable.
 */
#define Py_LIMITED_API 0x03080000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>
#include <stdint.h>

#include "protond.h"

/* In the limited API since 3.10 by name; what it means has been the same since 3.7. */
#ifndef METH_FASTCALL
#define METH_FASTCALL 0x0080
#endif
#define FAST(f) ((PyCFunction)(void (*)(void))(f))

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

#define KEPT     1024u /* names known by address */
#define KEPT_LEN 1024  /* longer ones are not held on to */

typedef uint32_t intern_fn(const char *text, uint32_t bytes);

struct kept {
	PyObject *text; /* owned */
	uint32_t id;
};

static struct kept kept_name[KEPT], kept_metric[KEPT];
static PyObject *async_enter, *async_leave; /* called with a name's id */
static PyObject *decorate, *convert;        /* Python's part: see native_install() */

/* 1: this thread runs an asyncio loop. Then loop_depth is how deep its stack was when its task went
 * on: what is above was pushed since, by what cannot suspend (a module of torch), and scopes inside
 * that go on the stack too. */
static __thread uint32_t in_loop __attribute__((tls_model("initial-exec")));
static __thread uint32_t loop_depth __attribute__((tls_model("initial-exec")));

/* The name of torch.py's steps, and how many scopes of that name the program itself is in. A scope
 * is left by name, so the program's and a guessed one may not be open at once. */
static uint32_t step_id = UINT32_MAX;
static __thread uint32_t own_steps __attribute__((tls_model("initial-exec")));

/* --- names --------------------------------------------------------------------------------------
 */

static int intern(PyObject *text, intern_fn *fn, uint32_t *ret)
{
	PyObject *bytes = PyUnicode_AsEncodedString(text, "utf-8", "surrogateescape");
	char *p;
	Py_ssize_t n;

	if (bytes == NULL || PyBytes_AsStringAndSize(bytes, &p, &n) < 0) {
		Py_XDECREF(bytes);
		return -1;
	}
	*ret = fn(p, n < INT32_MAX ? (uint32_t)n : INT32_MAX);
	Py_DECREF(bytes);
	return 0;
}

/* The id of a string; -1 with an exception set. */
static int lookup(PyObject *text, struct kept *table, intern_fn *fn, uint32_t *ret)
{
	struct kept *k = &table[((uintptr_t)text >> 4) % KEPT];
	PyObject *old;

	if (likely(k->text == text)) {
		*ret = k->id;
		return 0;
	}
	if (!PyUnicode_Check(text)) {
		PyErr_Format(PyExc_TypeError, "a name is a str, not %R", Py_TYPE(text));
		return -1;
	}
	if (intern(text, fn, ret) < 0)
		return -1;
	if (PyUnicode_GetLength(text) <= KEPT_LEN) {
		old = k->text;
		Py_INCREF(text);
		*k = (struct kept){.text = text, .id = *ret};
		Py_XDECREF(old);
	}
	return 0;
}

static uint32_t metric_n(const char *text, uint32_t bytes)
{
	char name[1024];

	if (bytes >= sizeof(name))
		bytes = sizeof(name) - 1;
	memcpy(name, text, bytes);
	name[bytes] = '\0';
	return protond_metric(name);
}

/* A name, as a str or as the id that name() gave. */
static int take_name(PyObject *o, uint32_t *ret)
{
	if (PyLong_Check(o)) {
		*ret = (uint32_t)PyLong_AsUnsignedLong(o);
		return PyErr_Occurred() != NULL ? -1 : 0;
	}
	return lookup(o, kept_name, protond_name_n, ret);
}

/* --- metrics ------------------------------------------------------------------------------------
 */

static int put_number(uint32_t id, PyObject *value)
{
	int overflow = 0;
	const long long i = PyLong_AsLongLongAndOverflow(value, &overflow);

	if (overflow == 0) {
		if (i == -1 && PyErr_Occurred() != NULL)
			return -1;
		protond_metric_i64(id, i);
		return 0;
	}
	const double d = PyLong_AsDouble(value);

	if (PyErr_Occurred() != NULL)
		return -1;
	protond_metric_f64(id, d);
	return 0;
}

static int put_text(uint32_t id, PyObject *value)
{
	PyObject *bytes = PyUnicode_AsEncodedString(value, "utf-8", "surrogateescape");
	const char *p = bytes != NULL ? PyBytes_AsString(bytes) : NULL;

	if (p != NULL)
		protond_metric_str(id, p);
	Py_XDECREF(bytes);
	return p != NULL ? 0 : -1;
}

static int put_plain(uint32_t id, PyObject *value, bool *ret_known)
{
	*ret_known = true;
	if (PyFloat_Check(value)) {
		protond_metric_f64(id, PyFloat_AsDouble(value));
		return 0;
	}
	if (PyLong_Check(value))
		return put_number(id, value);
	if (PyUnicode_Check(value))
		return put_text(id, value);
	*ret_known = false;
	return 0;
}

/* Anything else (a tensor, a NumPy number) is made plain by Python first. */
static int put_one(PyObject *key, PyObject *value)
{
	PyObject *plain;
	uint32_t id;
	bool known;
	int r;

	if (lookup(key, kept_metric, metric_n, &id) < 0)
		return -1;
	r = put_plain(id, value, &known);
	if (known)
		return r;
	plain = PyObject_CallFunctionObjArgs(convert, key, value, NULL);
	if (plain == NULL)
		return -1;
	r = put_plain(id, plain, &known);
	Py_DECREF(plain);
	if (r == 0 && !known)
		PyErr_Format(PyExc_TypeError, "metric %R: %R is no number and no str", key,
			Py_TYPE(value));
	return r == 0 && known ? 0 : -1;
}

static int put_all(PyObject *metrics)
{
	PyObject *key, *value;
	Py_ssize_t i = 0;

	if (!PyDict_Check(metrics)) {
		PyErr_SetString(PyExc_TypeError, "metrics is a dict of names and values");
		return -1;
	}
	while (PyDict_Next(metrics, &i, &key, &value)) {
		Py_INCREF(key); /* item() of a value may change the dict */
		Py_INCREF(value);
		const int r = put_one(key, value);

		Py_DECREF(key);
		Py_DECREF(value);
		if (r < 0)
			return -1;
	}
	return 0;
}

/* --- scopes -------------------------------------------------------------------------------------
 */

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
		return call_async(async_enter, id);
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
	return call_async(async_leave, id);
}

static inline int enter(uint32_t id)
{
	if (unlikely(in_loop != 0 && async_enter != NULL))
		return loop_enter(id);
	protond_scope_enter(id);
	own_steps += id == step_id;
	return 0;
}

static inline int leave(uint32_t id)
{
	if (unlikely(in_loop != 0 && async_leave != NULL))
		return loop_leave(id);
	protond_scope_leave(id);
	own_steps -= id == step_id && own_steps > 0;
	return 0;
}

typedef struct {
	PyObject_HEAD uint32_t id;
	PyObject *name, *metrics; /* metrics: NULL or a dict */
} scope_object;

/* scope(name, metrics=None) */
static PyObject *scope_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	static char name_word[] = "name", metrics_word[] = "metrics";
	static char *words[] = {name_word, metrics_word, NULL};
	const Py_ssize_t n = PyTuple_Size(args);
	PyObject *name = NULL, *metrics = NULL;
	scope_object *s;
	uint32_t id;

	if (likely(n == 1 && kwargs == NULL))
		name = PyTuple_GetItem(args, 0);
	else if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:scope", words, &name, &metrics))
		return NULL;
	if (lookup(name, kept_name, protond_name_n, &id) < 0)
		return NULL;
	if (metrics == Py_None)
		metrics = NULL;
	if (metrics != NULL && !PyDict_Check(metrics)) {
		PyErr_SetString(PyExc_TypeError, "metrics is a dict of names and values");
		return NULL;
	}
	s = (scope_object *)PyType_GenericAlloc(type, 0);
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
	scope_object *s = (scope_object *)self;
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
	const scope_object *s = (scope_object *)self;

	(void)unused;
	if (enter(s->id) < 0)
		return NULL;
	if (unlikely(s->metrics != NULL) && put_all(s->metrics) < 0) {
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
	if (leave(((scope_object *)self)->id) < 0)
		return NULL;
	Py_RETURN_NONE;
}

static PyObject *scope_call(PyObject *self, PyObject *args, PyObject *kwargs)
{
	PyObject *fn;

	if (kwargs != NULL || !PyArg_ParseTuple(args, "O:scope", &fn))
		return NULL;
	return PyObject_CallFunctionObjArgs(decorate, self, fn, NULL);
}

static PyObject *scope_get_name(PyObject *self, void *unused)
{
	PyObject *name = ((scope_object *)self)->name;

	(void)unused;
	Py_INCREF(name);
	return name;
}

static PyObject *scope_get_metrics(PyObject *self, void *unused)
{
	PyObject *metrics = ((scope_object *)self)->metrics;

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

static PyType_Spec scope_spec = {
	.name = "protond.scope",
	.basicsize = sizeof(scope_object),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
	.slots = scope_slots,
};

/* --- modules of torch: see torch.py -------------------------------------------------------------
 */

static PyObject *module_attribute;            /* "_protond_name" */
static PyObject *module_namer, *module_first; /* name a module; before the outermost one */

/* How many modules this thread is inside of. */
static __thread uint32_t modules __attribute__((tls_model("initial-exec")));

/* A class may answer for attributes that it does not have, in any way. */
static PyObject *name_of_module(PyObject *module)
{
	PyObject *name = PyObject_GetAttr(module, module_attribute);

	if (name != NULL && PyUnicode_Check(name))
		return name;
	if (name == NULL && !PyErr_ExceptionMatches(PyExc_Exception))
		return NULL;
	PyErr_Clear();
	Py_XDECREF(name);
	return PyObject_CallFunctionObjArgs(
		module_namer, module, modules == 0 ? Py_True : Py_False, NULL);
}

/* Returns the depth that module_leave() goes back to. A module runs from its beginning to its end
 * on one thread, so this never goes by way of asyncio's tasks. */
static PyObject *native_module_enter(PyObject *m, PyObject *module)
{
	PyObject *name = name_of_module(module), *r;
	uint32_t id, depth;

	(void)m;
	if (name == NULL || lookup(name, kept_name, protond_name_n, &id) < 0) {
		Py_XDECREF(name);
		return NULL;
	}
	Py_DECREF(name);
	if (unlikely(modules == 0)) {
		r = PyObject_CallFunctionObjArgs(module_first, module, NULL);
		if (r == NULL)
			return NULL;
		Py_DECREF(r);
	}
	depth = protond_depth();
	if (modules++ == 0)
		protond_scope_enter(protond_name("forward"));
	protond_scope_enter(id);
	return PyLong_FromUnsignedLong(depth);
}

static PyObject *native_module_leave(PyObject *m, PyObject *depth)
{
	const uint32_t to = (uint32_t)PyLong_AsUnsignedLong(depth);
	uint32_t n;

	(void)m;
	if (PyErr_Occurred() != NULL)
		return NULL;
	modules -= modules > 0;
	for (n = protond_depth(); n > to; n--)
		protond_scope_exit();
	Py_RETURN_NONE;
}

/* --- functions ----------------------------------------------------------------------------------
 */

static PyObject *native_name(PyObject *m, PyObject *text)
{
	uint32_t id;

	(void)m;
	return lookup(text, kept_name, protond_name_n, &id) == 0 ? PyLong_FromUnsignedLong(id)
								 : NULL;
}

static PyObject *native_enter(PyObject *m, PyObject *name)
{
	uint32_t id;

	(void)m;
	if (take_name(name, &id) < 0 || enter(id) < 0)
		return NULL;
	Py_RETURN_NONE;
}

static PyObject *native_leave(PyObject *m, PyObject *name)
{
	uint32_t id;

	(void)m;
	if (take_name(name, &id) < 0 || leave(id) < 0)
		return NULL;
	Py_RETURN_NONE;
}

/* As enter() and leave() where nothing in between suspends: on the thread's own stack always. */
static PyObject *native_push(PyObject *m, PyObject *name)
{
	uint32_t id;

	(void)m;
	if (take_name(name, &id) < 0)
		return NULL;
	protond_scope_enter(id);
	Py_RETURN_NONE;
}

static PyObject *native_pop(PyObject *m, PyObject *name)
{
	uint32_t id;

	(void)m;
	if (take_name(name, &id) < 0)
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

static PyObject *native_recording(PyObject *m, PyObject *unused)
{
	(void)m;
	(void)unused;
	return PyBool_FromLong(protond_recording());
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

static PyObject *native_state_enter(PyObject *m, PyObject *name)
{
	uint32_t id;

	(void)m;
	if (take_name(name, &id) < 0)
		return NULL;
	protond_state_enter(id);
	Py_RETURN_NONE;
}

static PyObject *native_state_exit(PyObject *m, PyObject *unused)
{
	(void)m;
	(void)unused;
	protond_state_exit();
	Py_RETURN_NONE;
}

static PyObject *native_op_enter(PyObject *m, PyObject *name)
{
	uint32_t id;

	(void)m;
	if (take_name(name, &id) < 0)
		return NULL;
	protond_op_enter(id);
	Py_RETURN_NONE;
}

static PyObject *native_op_exit(PyObject *m, PyObject *unused)
{
	(void)m;
	(void)unused;
	protond_op_exit();
	Py_RETURN_NONE;
}

static PyObject *native_metrics(PyObject *m, PyObject *metrics)
{
	(void)m;
	if (put_all(metrics) < 0)
		return NULL;
	Py_RETURN_NONE;
}

static PyObject *native_context_get(PyObject *m, PyObject *unused)
{
	(void)m;
	(void)unused;
	return PyLong_FromUnsignedLongLong(protond_context_get());
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

static PyObject *native_context_child(PyObject *m, PyObject *args)
{
	unsigned long long parent;
	unsigned int name;

	(void)m;
	if (!PyArg_ParseTuple(args, "KI:context_child", &parent, &name))
		return NULL;
	return PyLong_FromUnsignedLongLong(protond_context_child(parent, name));
}

static PyObject *native_span_begin(PyObject *m, PyObject *unused)
{
	(void)m;
	(void)unused;
	return PyLong_FromUnsignedLongLong(protond_span_begin());
}

static PyObject *native_span_end(PyObject *m, PyObject *args)
{
	unsigned long long context, begin;

	(void)m;
	if (!PyArg_ParseTuple(args, "KK:span_end", &context, &begin))
		return NULL;
	protond_span_end(context, begin);
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

/* --- sessions: these wait, so the interpreter's lock is given away ---------------------------- */

static PyObject *native_start(PyObject *m, PyObject *args)
{
	struct protond_options o = {0};
	const char *name;
	int r;

	(void)m;
	if (!PyArg_ParseTuple(args, "szzzzzii:start", &name, &o.backend, &o.mode, &o.data,
		    &o.context, &o.hook, &o.cpu_off, &o.autostart))
		return NULL;
	Py_BEGIN_ALLOW_THREADS;
	r = protond_start(name, &o);
	Py_END_ALLOW_THREADS;
	return PyLong_FromLong(r);
}

static PyObject *native_activate(PyObject *m, PyObject *args)
{
	int id, r;

	(void)m;
	if (!PyArg_ParseTuple(args, "i:activate", &id))
		return NULL;
	Py_BEGIN_ALLOW_THREADS;
	r = protond_activate(id);
	Py_END_ALLOW_THREADS;
	return PyLong_FromLong(r);
}

static PyObject *native_deactivate(PyObject *m, PyObject *args)
{
	int id, flags, r;

	(void)m;
	if (!PyArg_ParseTuple(args, "ii:deactivate", &id, &flags))
		return NULL;
	Py_BEGIN_ALLOW_THREADS;
	r = protond_deactivate(id, flags);
	Py_END_ALLOW_THREADS;
	return PyLong_FromLong(r);
}

static PyObject *native_finalize(PyObject *m, PyObject *args)
{
	const char *format;
	int id, r;

	(void)m;
	if (!PyArg_ParseTuple(args, "iz:finalize", &id, &format))
		return NULL;
	Py_BEGIN_ALLOW_THREADS;
	r = protond_finalize(id, format);
	Py_END_ALLOW_THREADS;
	return PyLong_FromLong(r);
}

static PyObject *native_gpu_pause(PyObject *m, PyObject *unused)
{
	int r;

	(void)m;
	(void)unused;
	Py_BEGIN_ALLOW_THREADS;
	r = protond_gpu_pause();
	Py_END_ALLOW_THREADS;
	return PyLong_FromLong(r);
}

static PyObject *native_gpu_resume(PyObject *m, PyObject *unused)
{
	int r;

	(void)m;
	(void)unused;
	Py_BEGIN_ALLOW_THREADS;
	r = protond_gpu_resume();
	Py_END_ALLOW_THREADS;
	return PyLong_FromLong(r);
}

static PyObject *native_error(PyObject *m, PyObject *unused)
{
	const char *text = protond_error();

	(void)m;
	(void)unused;
	return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
}

static void replace(PyObject **slot, PyObject *with)
{
	PyObject *old = *slot;

	Py_XINCREF(with);
	*slot = with;
	Py_XDECREF(old);
}

/* install(decorate, convert): decorate(scope, function), convert(name, value). */
static PyObject *native_install(PyObject *m, PyObject *args)
{
	PyObject *d, *c;

	(void)m;
	if (!PyArg_ParseTuple(args, "OO:install", &d, &c))
		return NULL;
	replace(&decorate, d);
	replace(&convert, c);
	Py_RETURN_NONE;
}

static PyObject *native_install_async(PyObject *m, PyObject *args)
{
	PyObject *in, *out;

	(void)m;
	if (!PyArg_ParseTuple(args, "OO:install_async", &in, &out))
		return NULL;
	replace(&async_enter, in);
	replace(&async_leave, out);
	Py_RETURN_NONE;
}

/* install_modules(namer, first): namer(module, outermost) gives and keeps its name,
 * first(module) is called before the outermost module of a thread is entered. */
static PyObject *native_install_modules(PyObject *m, PyObject *args)
{
	PyObject *namer, *first;

	(void)m;
	if (!PyArg_ParseTuple(args, "OO:install_modules", &namer, &first))
		return NULL;
	if (module_attribute == NULL &&
		(module_attribute = PyUnicode_InternFromString("_protond_name")) == NULL)
		return NULL;
	step_id = protond_name("step");
	replace(&module_namer, namer);
	replace(&module_first, first);
	Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
	{"start", native_start, METH_VARARGS, NULL},
	{"activate", native_activate, METH_VARARGS, NULL},
	{"deactivate", native_deactivate, METH_VARARGS, NULL},
	{"finalize", native_finalize, METH_VARARGS, NULL},
	{"gpu_pause", native_gpu_pause, METH_NOARGS, NULL},
	{"gpu_resume", native_gpu_resume, METH_NOARGS, NULL},
	{"error", native_error, METH_NOARGS, NULL},
	{"name", native_name, METH_O, NULL},
	{"enter", native_enter, METH_O, NULL},
	{"leave", native_leave, METH_O, NULL},
	{"push", native_push, METH_O, NULL},
	{"pop", native_pop, METH_O, NULL},
	{"depth", native_depth, METH_NOARGS, NULL},
	{"own_steps", native_own_steps, METH_NOARGS, NULL},
	{"recording", native_recording, METH_NOARGS, NULL},
	{"unwind", native_unwind, METH_O, NULL},
	{"state_enter", native_state_enter, METH_O, NULL},
	{"state_exit", native_state_exit, METH_NOARGS, NULL},
	{"op_enter", native_op_enter, METH_O, NULL},
	{"op_exit", native_op_exit, METH_NOARGS, NULL},
	{"metrics", native_metrics, METH_O, NULL},
	{"context_get", native_context_get, METH_NOARGS, NULL},
	{"context_set", native_context_set, METH_O, NULL},
	{"context_child", native_context_child, METH_VARARGS, NULL},
	{"span_begin", native_span_begin, METH_NOARGS, NULL},
	{"span_end", native_span_end, METH_VARARGS, NULL},
	{"loop", native_loop, METH_O, NULL},
	{"install", native_install, METH_VARARGS, NULL},
	{"module_enter", native_module_enter, METH_O, NULL},
	{"module_leave", native_module_leave, METH_O, NULL},
	{"install_modules", native_install_modules, METH_VARARGS, NULL},
	{"install_async", native_install_async, METH_VARARGS, NULL},
	{NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
	PyModuleDef_HEAD_INIT,
	.m_name = "protond._native",
	.m_doc = "protond.h; see protond for what to call.",
	.m_size = -1,
	.m_methods = functions,
};

PyMODINIT_FUNC PyInit__native(void);

PyMODINIT_FUNC PyInit__native(void)
{
	PyObject *m = PyModule_Create(&module);
	PyObject *type = m != NULL ? PyType_FromSpec(&scope_spec) : NULL;

	if (type == NULL || PyModule_AddObject(m, "scope", type) < 0) {
		Py_XDECREF(type);
		Py_XDECREF(m);
		return NULL;
	}
	if (PyModule_AddStringConstant(m, "version", PROTOND_VERSION) < 0 ||
		PyModule_AddIntConstant(m, "ALL", PROTOND_ALL) < 0 ||
		PyModule_AddIntConstant(m, "FLUSH", PROTOND_FLUSH) < 0) {
		Py_DECREF(m);
		return NULL;
	}
	return m;
}
