/* SPDX-License-Identifier: MIT. native_stack.c: the Python stack of a thread that launches GPU
 * work, as names "file:line@function".
 *
 * Called from inside a launch, with the interpreter's lock held or not, so it is taken. An
 * instruction of a code object always has the same name: a table keeps it, and the code object with
 * it. What CPython has functions for outside of the limited API is looked up at run time; else
 * attributes give the same.
 */
#include "native.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SITES_BITS 13
#define SITES      (1u << SITES_BITS)
#define SITES_FULL (SITES / 4 * 3)
#define SITE_TEXT  1024

struct site {
	PyObject *code; /* owned; NULL: free */
	int lasti;
	uint32_t name;
	bool ours; /* code of this package */
};

static struct {
	struct site site[SITES];
	uint32_t n;
	PyObject *(*get_back)(PyObject *frame); /* 3.9: a new reference, or NULL */
	PyObject *(*get_code)(PyObject *frame); /* 3.9 */
	int (*get_lasti)(PyObject *frame);      /* 3.11 */
	PyObject *f_back, *f_code, *f_lasti;    /* interned names of the attributes */
	char *folder;                           /* of this package; NULL until stacks() */
	void *(*interpreter)(void), *(*next_interpreter)(void *);
} st;

static PyObject *back_of(PyObject *frame)
{
	PyObject *back;

	if (st.get_back != NULL)
		return st.get_back(frame);
	back = PyObject_GetAttr(frame, st.f_back);
	if (back != Py_None)
		return back;
	Py_DECREF(back);
	return NULL;
}

static int lasti_of(PyObject *frame)
{
	PyObject *n;
	long r;

	if (st.get_lasti != NULL)
		return st.get_lasti(frame);
	n = PyObject_GetAttr(frame, st.f_lasti);
	r = n != NULL ? PyLong_AsLong(n) : -1;
	Py_XDECREF(n);
	return (int)r;
}

/* The bytes of a str attribute, or "?"; *ret_holder keeps them. */
static const char *text_of(PyObject *o, const char *attribute, PyObject **ret_holder)
{
	PyObject *s = PyObject_GetAttrString(o, attribute);
	char *p = NULL;

	*ret_holder = s != NULL ? PyUnicode_AsEncodedString(s, "utf-8", "surrogateescape") : NULL;
	Py_XDECREF(s);
	if (*ret_holder == NULL || PyBytes_AsStringAndSize(*ret_holder, &p, NULL) < 0)
		return "?";
	return p;
}

static struct site site_read(PyObject *frame, PyObject *code)
{
	PyObject *line = PyObject_GetAttrString(frame, "f_lineno"), *file, *function;
	const char *file_text = text_of(code, "co_filename", &file);
	const char *function_text = text_of(code, "co_name", &function);
	struct site s = {
		.ours = st.folder != NULL && strncmp(file_text, st.folder, strlen(st.folder)) == 0};
	char text[SITE_TEXT];

	(void)snprintf(text, sizeof(text), "%.700s:%ld@%.250s", file_text,
		line != NULL && line != Py_None ? PyLong_AsLong(line) : 0, function_text);
	Py_XDECREF(line);
	Py_XDECREF(file);
	Py_XDECREF(function);
	PyErr_Clear();
	s.name = protond_name(text);
	return s;
}

/* Code that is made again and again (exec, notebooks) must not stay for ever. */
static void forget(void)
{
	uint32_t i;

	for (i = 0; i < SITES; i++)
		Py_CLEAR(st.site[i].code);
	st.n = 0;
}

static struct site site_of(PyObject *frame)
{
	PyObject *code =
		st.get_code != NULL ? st.get_code(frame) : PyObject_GetAttr(frame, st.f_code);
	const int lasti = lasti_of(frame);
	uint64_t h = ((uintptr_t)code >> 4) * 0x9e3779b97f4a7c15ull +
		     (uint32_t)lasti * 0x85ebca6bull * 0x9e3779b97f4a7c15ull;
	struct site *s = &st.site[h >> (64 - SITES_BITS)], new;

	if (code == NULL)
		return (struct site){.name = protond_name("?")};
	while (s->code != NULL && (s->code != code || s->lasti != lasti))
		s = s + 1 < st.site + SITES ? s + 1 : st.site;
	if (likely(s->code != NULL)) {
		Py_DECREF(code);
		return *s;
	}
	new = site_read(frame, code);
	new.code = code;
	new.lasti = lasti;
	if (st.n >= SITES_FULL) {
		forget();
		s = &st.site[h >> (64 - SITES_BITS)];
	}
	*s = new;
	st.n++;
	return new;
}

/* The innermost frames are the program's: what this package does there is nobody's business. */
static uint32_t walk(uint32_t *names, uint32_t cap)
{
	PyObject *frame = (PyObject *)PyEval_GetFrame(), *back;
	struct site s;
	uint32_t n = 0;

	Py_XINCREF(frame);
	while (frame != NULL && n < cap) {
		s = site_of(frame);
		if (n > 0 || !s.ours)
			names[n++] = s.name;
		back = back_of(frame);
		Py_DECREF(frame);
		frame = back;
	}
	Py_XDECREF(frame);
	return n;
}

uint32_t native_stack_walk(uint32_t *names, uint32_t cap)
{
	PyObject *type, *value, *traceback;
	PyGILState_STATE held;
	uint32_t n;

	if (!Py_IsInitialized() || PyGILState_GetThisThreadState() == NULL)
		return 0; /* a thread of C's own, autograd's for instance */
	if (st.interpreter == NULL || st.next_interpreter(st.interpreter()) != NULL)
		return 0; /* this thread may hold the lock by another interpreter's state */
	held = PyGILState_Ensure();
	PyErr_Fetch(&type, &value, &traceback);
	n = walk(names, cap);
	PyErr_Restore(type, value, traceback);
	PyGILState_Release(held);
	return n;
}

/* stacks(folder of the package, or None): at the interpreter's end there are none. */
static PyObject *native_stacks(PyObject *m, PyObject *folder)
{
	PyObject *bytes;

	(void)m;
	protond_stack(NULL);
	if (folder == Py_None)
		Py_RETURN_NONE;
	bytes = PyUnicode_AsEncodedString(folder, "utf-8", "surrogateescape");
	if (bytes == NULL)
		return NULL;
	free(st.folder);
	st.folder = strdup(PyBytes_AsString(bytes));
	Py_DECREF(bytes);
	protond_stack(native_stack_walk);
	Py_RETURN_NONE;
}

/* stack_names(): the names of the caller's stack, innermost first, as launches have them. */
static PyObject *native_stack_names(PyObject *m, PyObject *unused)
{
	uint32_t names[PROTOND_STACK_MAX], i;
	const uint32_t n = native_stack_walk(names, PROTOND_STACK_MAX);
	PyObject *list = PyList_New(0), *one;

	(void)m;
	(void)unused;
	for (i = 0; list != NULL && i < n; i++) {
		one = PyLong_FromUnsignedLong(names[i]);
		if (one == NULL || PyList_Append(list, one) < 0)
			Py_CLEAR(list);
		Py_XDECREF(one);
	}
	return list;
}

PyMethodDef native_stack_functions[] = {
	{"stacks", native_stacks, METH_O, NULL},
	{"stack_names", native_stack_names, METH_NOARGS, NULL},
	{NULL, NULL, 0, NULL},
};

int native_stack_init(void)
{
	void *f = dlsym(RTLD_DEFAULT, "PyFrame_GetBack");

	memcpy(&st.get_back, &f, sizeof(f));
	f = dlsym(RTLD_DEFAULT, "PyFrame_GetCode");
	memcpy(&st.get_code, &f, sizeof(f));
	f = dlsym(RTLD_DEFAULT, "PyFrame_GetLasti");
	memcpy(&st.get_lasti, &f, sizeof(f));
	f = dlsym(RTLD_DEFAULT, "PyInterpreterState_Next");
	memcpy(&st.next_interpreter, &f, sizeof(f));
	f = f != NULL ? dlsym(RTLD_DEFAULT, "PyInterpreterState_Head") : NULL;
	memcpy(&st.interpreter, &f, sizeof(f));
	st.f_back = PyUnicode_InternFromString("f_back");
	st.f_code = PyUnicode_InternFromString("f_code");
	st.f_lasti = PyUnicode_InternFromString("f_lasti");
	return st.f_back != NULL && st.f_code != NULL && st.f_lasti != NULL ? 0 : -1;
}
