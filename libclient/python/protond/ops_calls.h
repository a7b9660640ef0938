/* SPDX-License-Identifier: MIT. ops_calls.h: between _native and ops.cpp, which is built on the
 * user's machine and links nothing of ours. C and C++. */
#ifndef PROTOND_OPS_CALLS_H
#define PROTOND_OPS_CALLS_H

#include <stdint.h>

/* As in protond.h and binding.h, by these names there: */
struct ops_calls {
	uint64_t bytes;                                      /* of this */
	uint32_t (*name)(const char *text, uint32_t bytes);  /* protond_name_n */
	uint32_t (*scope)(const char *text, uint32_t bytes); /* likewise, of an operator's scope */
	const char *(*text)(uint32_t name, uint32_t *ret_bytes); /* protond_name_text */
	void (*enter)(uint32_t name);                            /* protond_scope_enter */
	void (*exit)(void);                                      /* protond_scope_exit */
	void (*unwind)(uint32_t depth);                          /* protond_scope_unwind */
	uint32_t (*depth)(void);                                 /* protond_depth */
	uint32_t (*metric)(const char *name);                    /* protond_metric */
	void (*put_i64)(uint32_t metric, int64_t value);         /* protond_metric_i64 */
	void (*put_f64)(uint32_t metric, double value);          /* protond_metric_f64 */
	void (*put_name)(uint32_t metric, uint32_t name);        /* protond_metric_name */
	uint32_t (*stack)(uint32_t *names, uint32_t cap);        /* Python's, innermost first */
	uint64_t (*here)(void);                                  /* protond_context_get */
	uint64_t (*child)(uint64_t parent, uint32_t name);       /* protond_context_child */
	uint64_t (*span_begin)(void);                            /* protond_span_begin */
	void (*span_end)(uint64_t context, uint64_t begin);      /* protond_span_end */
};

/* What is recorded of an operator beside its name. */
enum ops_detail {
	OPS_SHAPES = 1, /* in its name */
	OPS_DTYPES = 2,
	OPS_STRIDES = 4,
	OPS_SCALARS = 8,
	OPS_KWARGS = 16,
	OPS_STACK = 32,
	OPS_SEQUENCE = 64,
	OPS_FLOPS = 128,
};

typedef void protond_ops_switch(int on); /* any thread */

#endif
