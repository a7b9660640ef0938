/* SPDX-License-Identifier: MIT. native.h: what the files of the extension share. The interpreter's
 * lock guards it all, but for what is a thread's own. */
#ifndef PROTOND_PYTHON_NATIVE_H
#define PROTOND_PYTHON_NATIVE_H

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

/* The headers of 3.8 leave the module's entry to the default */
#pragma GCC visibility push(hidden)

/* --- native_name.c: names and metrics --------------------------------------------------------- */

extern PyObject *native_convert; /* Python's: (name, value) -> int, float or str */
/* Python's, or NULL: (name, value) -> the name to record it by, or an exception */
extern PyObject *native_check;

/* The id of a str, or of the id that it may be already; -1 with an exception set. */
int native_take_name(PyObject *o, uint32_t *ret);
int native_id_of(PyObject *text, uint32_t *ret); /* of a str alone */
/* Records {"name (unit) (kind)": value} on the current scope. -1 with an exception set. */
int native_put_metrics(PyObject *metrics);

/* --- native_scope.c: scopes of threads and of asyncio's tasks --------------------------------- */

/* Python's: called with a name's id; (scope, function). */
extern PyObject *native_async_enter, *native_async_leave, *native_decorate;
extern uint32_t native_step_id;    /* of "step": see native_scope.c */
PyObject *native_scope_type(void); /* a new reference, or NULL with an exception set */
extern PyMethodDef native_scope_functions[];

/* --- native_torch.c: modules of torch --------------------------------------------------------- */

extern PyMethodDef native_torch_functions[];

/* --- native_stack.c: where launches stand with context="python" ------------------------------- */

extern PyMethodDef native_stack_functions[];
int native_stack_init(void); /* -1 with an exception set */
/* The names of the caller's frames, innermost first; takes the interpreter's lock. */
uint32_t native_stack_walk(uint32_t *names, uint32_t cap);

/* --- native_ops.c: operators of torch --------------------------------------------------------- */

extern PyMethodDef native_ops_functions[];

static inline void native_replace(PyObject **slot, PyObject *with)
{
	PyObject *old = *slot;

	Py_XINCREF(with);
	*slot = with;
	Py_XDECREF(old);
}

#pragma GCC visibility pop

#endif
