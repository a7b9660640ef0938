/* SPDX-License-Identifier: MIT. op_terms.h: how the scopes of PyTorch's operators are told from others:
 * by their names, "aten::mm", or "aten::mm [[2, 3], [3, 4]]" where the inputs' dimensions are in it. An
 * operator of another namespace, or of none, is one where it has dimensions, or OP_MARK. C and C++. */
#ifndef PROTOND_TERMS_OP_TERMS_H
#define PROTOND_TERMS_OP_TERMS_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* clang-format off */
#define OP_NAMESPACES(X) \
        X("aten::") X("autograd::") X("torch::") X("prim::") X("prims::") X("inductor::") X("quantized::") \
        X("c10d::") X("_c10d_functional::") X("nccl:")
/* clang-format on */

/* What the path of an operator's scope has for a domain of NVTX: a session without the switch ops leaves
 * it out. Where all sessions are to have operators (the option torch_ops) their paths have none. */
#define OP_DOMAIN "(operators)"

/* The numbers of work that are counted in an operator, by the option torch_flops. */
#define OP_WORK(X) X("flops8") X("flops16") X("flops32") X("flops64") X("bytes")

/* A property of an operator whose name does not tell: torch's number of what kind of scope it is. */
#define OP_MARK "Record scope"

#define OP_DIMS "Input Dims" /* Kineto's key of what stands behind the name */

/* What Kineto has as arrays, and a session as text. */
#define OP_ARRAYS(X) X("Input type") X("Input Strides") X("Concrete Inputs")

/* A JSON array of numbers, plain strings and such arrays, at *s; then *s is behind it. */
static inline bool operator_array_read(const char **s, unsigned depth)
{
	const char *p = *s;

	if (*p++ != '[' || depth == 0)
		return false;
	for (p += strspn(p, " "); *p != ']'; p += strspn(p, " ")) {
		if (*p == '[') {
			if (!operator_array_read(&p, depth - 1))
				return false;
		} else if (*p == '"') {
			for (p++; *p != '"'; p++)
				if ((unsigned char)*p < 0x20 || (unsigned char)*p >= 0x7f ||
					*p == '\\')
					return false;
			p++;
		} else {
			const size_t sign = *p == '-', digits = strspn(p + sign, "0123456789");

			if (digits == 0 || (digits > 1 && p[sign] == '0'))
				return false;
			p += sign + digits;
		}
		p += strspn(p, " ");
		if (*p == ',' && p[1 + strspn(p + 1, " ")] != ']')
			p++;
		else if (*p != ']')
			return false;
	}
	*s = p + 1;
	return true;
}

/* Whether the text is one such array, and nothing else. */
static inline bool operator_is_array(const char *text)
{
	return operator_array_read(&text, 3) && *text == '\0';
}

/* Where the dimensions stand in a name, an array for each input; NULL: nowhere. */
static inline const char *operator_dims(const char *name)
{
	const char *p;

	for (p = strstr(name, " [["); p != NULL; p = strstr(p + 1, " [["))
		if (operator_is_array(p + 1))
			return p + 1;
	return NULL;
}

/* "MmBackward0", "Backward": a node of autograd. */
static inline bool operator_is_node(const char *name, size_t n)
{
	static const char word[] = "Backward";
	const size_t w = sizeof(word) - 1;

	while (n > 0 && name[n - 1] >= '0' && name[n - 1] <= '9')
		n--;
	return n >= w && memcmp(name + n - w, word, w) == 0 && memchr(name, ' ', n) == NULL;
}

/* The bytes of an operator's own name; 0: it is none. */
static inline size_t operator_bytes(const char *name)
{
	const char *dims = operator_dims(name);
	const size_t n = dims != NULL ? (size_t)(dims - name) - 1 : strlen(name);

	if (dims != NULL && n > 0)
		return n;
#define X(space)                                          \
	if (strncmp(name, space, sizeof(space) - 1) == 0) \
		return n;
	OP_NAMESPACES(X)
#undef X
	return operator_is_node(name, n) ? n : 0;
}

#endif
