/* SPDX-License-Identifier: MIT. native_name.c: names and metrics.
 *
 * A name that is a string object is looked up by its address in a small table that holds a
 * reference to it: literals are the same object each time. */
#include "native.h"

#include <math.h>

#define KEPT     1024u /* names known by address */
#define KEPT_LEN 1024  /* longer ones are not held on to */

struct kept {
	PyObject *text; /* owned */
	uint32_t id;
};

static struct kept kept_name[KEPT], kept_metric[KEPT];
PyObject *native_convert, *native_check;

/* --- names ------------------------------------------------------------------------------------ */

/* As the bytes that it was made of; what no bytes are made to, half of a pair, is spelt out. */
static PyObject *encode(PyObject *text)
{
	PyObject *bytes = PyUnicode_AsEncodedString(text, "utf-8", "surrogateescape");

	if (bytes != NULL || !PyErr_ExceptionMatches(PyExc_UnicodeEncodeError))
		return bytes;
	PyErr_Clear();
	return PyUnicode_AsEncodedString(text, "utf-8", "backslashreplace");
}

static int intern(PyObject *text, uint32_t *ret)
{
	PyObject *bytes = encode(text);
	char *p;
	Py_ssize_t n;

	if (bytes == NULL || PyBytes_AsStringAndSize(bytes, &p, &n) < 0) {
		Py_XDECREF(bytes);
		return -1;
	}
	*ret = protond_name_n(p, n < INT32_MAX ? (uint32_t)n : INT32_MAX);
	Py_DECREF(bytes);
	return 0;
}

/* The id of a string; -1 with an exception set. */
static int lookup(PyObject *text, struct kept *table, uint32_t *ret)
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
	if (intern(text, ret) < 0)
		return -1;
	if (PyUnicode_GetLength(text) <= KEPT_LEN) {
		old = k->text;
		Py_INCREF(text);
		*k = (struct kept){.text = text, .id = *ret};
		Py_XDECREF(old);
	}
	return 0;
}

int native_id_of(PyObject *text, uint32_t *ret)
{
	return lookup(text, kept_name, ret);
}

/* A name, as a str or as the id that name() gave. */
int native_take_name(PyObject *o, uint32_t *ret)
{
	if (PyLong_Check(o)) {
		*ret = (uint32_t)PyLong_AsUnsignedLong(o);
		return PyErr_Occurred() != NULL ? -1 : 0;
	}
	return native_id_of(o, ret);
}

/* --- metrics ---------------------------------------------------------------------------------- */

static int put_number(uint32_t id, PyObject *value)
{
	int overflow = 0;
	const long long i = PyLong_AsLongLongAndOverflow(value, &overflow);
	double d;

	if (overflow == 0) {
		if (i == -1 && PyErr_Occurred() != NULL)
			return -1;
		protond_metric_i64(id, i);
		return 0;
	}
	d = PyLong_AsDouble(value);
	if (PyErr_Occurred() != NULL) {
		if (!PyErr_ExceptionMatches(PyExc_OverflowError))
			return -1;
		PyErr_Clear();
		d = overflow > 0 ? HUGE_VAL : -HUGE_VAL;
	}
	protond_metric_f64(id, d);
	return 0;
}

static int put_text(uint32_t id, PyObject *value)
{
	PyObject *bytes = encode(value);
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

static int metric_id(PyObject *key, PyObject *value, uint32_t *ret)
{
	PyObject *name;
	int r;

	if (likely(native_check == NULL))
		return lookup(key, kept_metric, ret);
	name = PyObject_CallFunctionObjArgs(native_check, key, value, NULL);
	r = name != NULL ? lookup(name, kept_metric, ret) : -1;
	Py_XDECREF(name);
	return r;
}

/* Anything else (a tensor, a NumPy number, a list) is made plain by Python first: a number, a str,
 * or a dict of them by names. */
static int put_one(PyObject *key, PyObject *value)
{
	PyObject *plain;
	uint32_t id;
	bool known;
	int r;

	if (metric_id(key, value, &id) < 0)
		return -1;
	r = put_plain(id, value, &known);
	if (known)
		return r;
	plain = PyObject_CallFunctionObjArgs(native_convert, key, value, NULL);
	if (plain == NULL)
		return -1;
	if (PyDict_Check(plain)) {
		r = native_put_metrics(plain);
		Py_DECREF(plain);
		return r;
	}
	r = put_plain(id, plain, &known);
	Py_DECREF(plain);
	if (r == 0 && !known)
		PyErr_Format(PyExc_TypeError, "metric %R: %R is no number and no str", key,
			Py_TYPE(value));
	return r == 0 && known ? 0 : -1;
}

int native_put_metrics(PyObject *metrics)
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
