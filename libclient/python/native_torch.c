/* SPDX-License-Identifier: MIT. native_torch.c: calls of torch's modules: see torch.py. */
#include "native.h"

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
	if (name == NULL || native_id_of(name, &id) < 0) {
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
	native_step_id = protond_name("step");
	native_replace(&module_namer, namer);
	native_replace(&module_first, first);
	Py_RETURN_NONE;
}

PyMethodDef native_torch_functions[] = {
	{"module_enter", native_module_enter, METH_O, NULL},
	{"module_leave", native_module_leave, METH_O, NULL},
	{"install_modules", native_install_modules, METH_VARARGS, NULL},
	{NULL, NULL, 0, NULL},
};
