/* SPDX-License-Identifier: MIT. native.c: protond.h for Python, on the limited API: one binary for
 * CPython 3.8 and later. Here: states, contexts, spans, sessions, and the module. */
#include "native.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "binding.h"

static PyObject *native_name(PyObject *m, PyObject *text)
{
	uint32_t id;

	(void)m;
	return native_id_of(text, &id) == 0 ? PyLong_FromUnsignedLong(id) : NULL;
}

static PyObject *native_recording(PyObject *m, PyObject *unused)
{
	(void)m;
	(void)unused;
	return PyBool_FromLong(protond_recording());
}

static PyObject *native_enters(PyObject *name, void (*enter)(uint32_t name))
{
	uint32_t id;

	if (native_take_name(name, &id) < 0)
		return NULL;
	enter(id);
	Py_RETURN_NONE;
}

static PyObject *native_state_enter(PyObject *m, PyObject *name)
{
	(void)m;
	return native_enters(name, protond_state_enter);
}

static PyObject *native_state_enter_below(PyObject *m, PyObject *name)
{
	(void)m;
	return native_enters(name, protond_state_enter_below);
}

static PyObject *native_state_exit(PyObject *m, PyObject *unused)
{
	(void)m;
	(void)unused;
	protond_state_exit();
	Py_RETURN_NONE;
}

static PyObject *native_metrics(PyObject *m, PyObject *metrics)
{
	(void)m;
	if (native_put_metrics(metrics) < 0)
		return NULL;
	Py_RETURN_NONE;
}

static PyObject *native_context_get(PyObject *m, PyObject *unused)
{
	(void)m;
	(void)unused;
	return PyLong_FromUnsignedLongLong(protond_context_get());
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

/* --- sessions: these wait, so the interpreter's lock is given away ---------------------------- */

static PyObject *native_start(PyObject *m, PyObject *args)
{
	struct protond_options o = {0};
	const char *name, *switches, *domains;
	int r;

	(void)m;
	if (!PyArg_ParseTuple(args, "szzzzziizz:start", &name, &o.backend, &o.mode, &o.data,
		    &o.context, &o.hook, &o.cpu_off, &o.autostart, &switches, &domains))
		return NULL;
	protond_env_read(); /* os.environ changes with the lock held */
	Py_BEGIN_ALLOW_THREADS;
	r = protond_start_by_env_read(name, &o, switches, domains);
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
	int id, impatient = 0, how, r;

	(void)m;
	if (!PyArg_ParseTuple(args, "iz|p:finalize", &id, &format, &impatient))
		return NULL;
	how = ASK_INTERRUPTIBLE | (impatient ? ASK_IMPATIENT : 0);
	do {
		Py_BEGIN_ALLOW_THREADS;
		r = protond_finalize_by(id, format, how);
		Py_END_ALLOW_THREADS;
		how |= ASK_RESUMED;
	} while (r == -EINTR && PyErr_CheckSignals() == 0);
	if (r == -EINTR) {
		Py_BEGIN_ALLOW_THREADS;
		(void)protond_finalize_by(id, NULL, how); /* it is over all the same */
		Py_END_ALLOW_THREADS;
		return NULL;
	}
	return PyLong_FromLong(r);
}

static PyObject *native_advance_phase(PyObject *m, PyObject *args)
{
	int id, r;

	(void)m;
	if (!PyArg_ParseTuple(args, "i:advance_phase", &id))
		return NULL;
	Py_BEGIN_ALLOW_THREADS;
	r = protond_advance_phase(id);
	Py_END_ALLOW_THREADS;
	return PyLong_FromLong(r);
}

static PyObject *native_export(PyObject *m, PyObject *args)
{
	const char *format;
	int id, phase, impatient = 0, how, r;

	(void)m;
	if (!PyArg_ParseTuple(args, "iis|p:export", &id, &phase, &format, &impatient))
		return NULL;
	how = ASK_INTERRUPTIBLE | (impatient ? ASK_IMPATIENT : 0);
	do {
		Py_BEGIN_ALLOW_THREADS;
		r = protond_export_by(id, phase, format, how);
		Py_END_ALLOW_THREADS;
		how |= ASK_RESUMED;
	} while (r == -EINTR && PyErr_CheckSignals() == 0);
	if (r == -EINTR)
		return NULL;
	return PyLong_FromLong(r);
}

static PyObject *native_flush(PyObject *m, PyObject *args)
{
	int ms, r;

	(void)m;
	if (!PyArg_ParseTuple(args, "i:flush", &ms))
		return NULL;
	Py_BEGIN_ALLOW_THREADS;
	r = protond_flush(ms);
	Py_END_ALLOW_THREADS;
	return PyLong_FromLong(r);
}

static PyObject *native_gpu_pause(PyObject *m, PyObject *args)
{
	int flags, r;

	(void)m;
	if (!PyArg_ParseTuple(args, "i:gpu_pause", &flags))
		return NULL;
	Py_BEGIN_ALLOW_THREADS;
	r = protond_gpu_pause(flags);
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

/* --- the module ------------------------------------------------------------------------------- */

/* What Python gives us to call belongs to an interpreter and ends with it: the first one that comes
 * is served, others (subinterpreters) are refused. -1 with an exception set. */
static int claim(void)
{
	static int64_t owner = -1;
	PyInterpreterState *(*here)(void);
	void *f = dlsym(RTLD_DEFAULT, "PyInterpreterState_Get"); /* in the limited API since 3.9 */
	int64_t id;

	f = f != NULL ? f : dlsym(RTLD_DEFAULT, "_PyInterpreterState_Get");
	if (f == NULL)
		return 0;
	memcpy(&here, &f, sizeof(f));
	id = PyInterpreterState_GetID(here());
	owner = owner < 0 ? id : owner;
	if (owner == id)
		return 0;
	PyErr_SetString(PyExc_ImportError,
		"protond serves one interpreter of a process, the first that imports it, and this "
		"is another one");
	return -1;
}

/* install(native_decorate, native_convert): decorate(scope, function), convert(name, value).
 * CPython may have copied the module for another interpreter, which PyInit__native() does not see.
 */
static PyObject *native_install(PyObject *m, PyObject *args)
{
	PyObject *d, *c;

	(void)m;
	if (!PyArg_ParseTuple(args, "OO:install", &d, &c) || claim() < 0)
		return NULL;
	native_replace(&native_decorate, d);
	native_replace(&native_convert, c);
	Py_RETURN_NONE;
}

/* Of libprotond, as it was loaded; None: not known. */
static PyObject *native_library(PyObject *m, PyObject *unused)
{
	Dl_info i;

	(void)m;
	(void)unused;
	if (dladdr((void *)(uintptr_t)protond_recording, &i) == 0 || i.dli_fname[0] != '/')
		Py_RETURN_NONE;
	return PyUnicode_DecodeFSDefault(i.dli_fname);
}

static PyObject *native_install_check(PyObject *m, PyObject *check)
{
	(void)m;
	native_replace(&native_check, check);
	Py_RETURN_NONE;
}

static PyObject *native_install_async(PyObject *m, PyObject *args)
{
	PyObject *in, *out;

	(void)m;
	if (!PyArg_ParseTuple(args, "OO:install_async", &in, &out))
		return NULL;
	native_replace(&native_async_enter, in);
	native_replace(&native_async_leave, out);
	Py_RETURN_NONE;
}

/* The kernel's: at most 15 bytes. */
static PyObject *native_thread_name(PyObject *m, PyObject *name)
{
	const char *s = PyBytes_AsString(name);

	(void)m;
	if (s == NULL)
		return NULL;
	(void)pthread_setname_np(pthread_self(), s);
	Py_RETURN_NONE;
}

static PyObject *native_op_enter(PyObject *m, PyObject *name)
{
	(void)m;
	return native_enters(name, protond_op_enter);
}

/* The name's id, for op_enter(); 0: none. */
static PyObject *native_op(PyObject *m, PyObject *unused)
{
	(void)m;
	(void)unused;
	return PyLong_FromUnsignedLong(protond_op());
}

static PyObject *native_capturing(PyObject *m, PyObject *unused)
{
	(void)m;
	(void)unused;
	return PyBool_FromLong(protond_capturing());
}

/* captured(metric, whole, which): whether it was taken. */
static PyObject *native_captured(PyObject *m, PyObject *args)
{
	unsigned long long which;
	PyObject *name;
	uint32_t id;
	int whole;

	(void)m;
	if (!PyArg_ParseTuple(args, "OpK:captured", &name, &whole, &which) ||
		native_id_of(name, &id) < 0)
		return NULL;
	return PyBool_FromLong(protond_captured(id, whole, which));
}

/* captured_ring(device): (address, bytes), or None. */
static PyObject *native_captured_ring(PyObject *m, PyObject *device)
{
	const unsigned long at = PyLong_AsUnsignedLong(device);
	uint64_t bytes = 0;
	void *p;

	(void)m;
	if (PyErr_Occurred() != NULL)
		return NULL;
	p = at <= UINT32_MAX ? protond_captured_ring((uint32_t)at, &bytes) : NULL;
	if (p == NULL)
		Py_RETURN_NONE;
	return Py_BuildValue("(NK)", PyLong_FromVoidPtr(p), (unsigned long long)bytes);
}

static PyObject *native_markers(PyObject *m, PyObject *on)
{
	const int yes = PyObject_IsTrue(on);

	(void)m;
	if (yes < 0)
		return NULL;
	protond_markers(yes);
	Py_RETURN_NONE;
}

static PyObject *native_op_exit(PyObject *m, PyObject *unused)
{
	(void)m;
	(void)unused;
	protond_op_exit();
	Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
	{"start", native_start, METH_VARARGS, NULL},
	{"activate", native_activate, METH_VARARGS, NULL},
	{"deactivate", native_deactivate, METH_VARARGS, NULL},
	{"finalize", native_finalize, METH_VARARGS, NULL},
	{"advance_phase", native_advance_phase, METH_VARARGS, NULL},
	{"export", native_export, METH_VARARGS, NULL},
	{"flush", native_flush, METH_VARARGS, NULL},
	{"gpu_pause", native_gpu_pause, METH_VARARGS, NULL},
	{"gpu_resume", native_gpu_resume, METH_NOARGS, NULL},
	{"error", native_error, METH_NOARGS, NULL},
	{"name", native_name, METH_O, NULL},
	{"recording", native_recording, METH_NOARGS, NULL},
	{"state_enter", native_state_enter, METH_O, NULL},
	{"state_enter_below", native_state_enter_below, METH_O, NULL},
	{"state_exit", native_state_exit, METH_NOARGS, NULL},
	{"thread_name", native_thread_name, METH_O, NULL},
	{"op_enter", native_op_enter, METH_O, NULL},
	{"op_exit", native_op_exit, METH_NOARGS, NULL},
	{"op", native_op, METH_NOARGS, NULL},
	{"capturing", native_capturing, METH_NOARGS, NULL},
	{"captured", native_captured, METH_VARARGS, NULL},
	{"captured_ring", native_captured_ring, METH_O, NULL},
	{"markers", native_markers, METH_O, NULL},
	{"metrics", native_metrics, METH_O, NULL},
	{"context_get", native_context_get, METH_NOARGS, NULL},
	{"context_child", native_context_child, METH_VARARGS, NULL},
	{"span_begin", native_span_begin, METH_NOARGS, NULL},
	{"span_end", native_span_end, METH_VARARGS, NULL},
	{"install", native_install, METH_VARARGS, NULL},
	{"install_async", native_install_async, METH_VARARGS, NULL},
	{"library", native_library, METH_NOARGS, NULL},
	{"install_check", native_install_check, METH_O, NULL},
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
	PyObject *m = claim() == 0 ? PyModule_Create(&module) : NULL;
	PyObject *type = m != NULL ? native_scope_type() : NULL;

	if (type == NULL || PyModule_AddObject(m, "scope", type) < 0) {
		Py_XDECREF(type);
		Py_XDECREF(m);
		return NULL;
	}
	if (PyModule_AddFunctions(m, native_scope_functions) < 0 ||
		PyModule_AddFunctions(m, native_torch_functions) < 0 ||
		PyModule_AddFunctions(m, native_ops_functions) < 0 ||
		PyModule_AddFunctions(m, native_stack_functions) < 0 || native_stack_init() < 0 ||
		PyModule_AddStringConstant(m, "version", PROTOND_VERSION) < 0 ||
		PyModule_AddIntConstant(m, "ALL", PROTOND_ALL) < 0 ||
		PyModule_AddIntConstant(m, "FLUSH", PROTOND_FLUSH) < 0 ||
		PyModule_AddIntConstant(m, "GIVE_BACK", PROTOND_GIVE_BACK) < 0) {
		Py_DECREF(m);
		return NULL;
	}
	(void)protond_depth(); /* wakes a library that was only preloaded: `start` finds us */
	return m;
}
