/* SPDX-License-Identifier: MIT. node.h: the nodes of one process, and the names beside its
 * ring's own. */
#ifndef PROTOND_NODE_H
#define PROTOND_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpu_terms.h"

struct part;
struct process;

#define NODE_NONE    UINT32_MAX
#define NODE_ROOT_AT 0u

/* Names that no ring has; ids beside the ring's own. */
/* clang-format off */
#define WORDS(X)                                                                                      \
        X(ROOT, "ROOT") X(OTHER, "(other)") X(NO_LAUNCH, "(no launch)") X(CAPTURED, NODE_CAPTURED_NAME)
/* clang-format on */
#define WORD_FIRST 0x40000000
enum word {
	WORD_BEFORE = WORD_FIRST - 1,
#define X(name, text) WORD_##name,
	WORDS(X)
#undef X
		WORD_CLASS, /* + enum cell_class: the leaf of its work */
	WORD_END = WORD_CLASS + CLASS_MAX,
};

bool node_init(struct process *p); /* ROOT and its (other); false: out of memory */
void node_fini(struct process *p);
const char *name_text(const struct process *p, uint32_t name, uint32_t *ret_bytes);
/* Finds or makes; NODE_NONE: a ceiling, or out of memory. `name` lives as long as p. */
uint32_t node_add(
	struct process *p, uint32_t parent, uint8_t kind, const char *name, uint32_t bytes);
uint32_t node_by_hash(const struct process *p, const uint8_t hash[16]); /* NODE_NONE */

/* These find or make too, and give (other) where there is no room. */
uint32_t node_of_path(struct process *p, uint32_t path);                   /* path < n_paths */
uint32_t node_of_stack(struct process *p, uint32_t python, uint32_t path); /* both < n_paths */
uint32_t node_child(struct process *p, uint32_t parent, uint8_t kind, uint32_t name);
uint32_t node_kernel(struct process *p, uint32_t parent, uint32_t name);
/* path: plain. part: it may leave domains of NVTX out. */
uint32_t node_captured(struct part *part, uint32_t below, uint32_t path);
/* As node_of_path(), in a session that may leave domains out: what stands below such a scope stands
 * where that one would. */
uint32_t node_in_part(struct part *part, uint32_t path);
/* The whole of a path below a node: what a thread ran, below the scope that it stood in. path < n_paths */
uint32_t node_below(struct process *p, uint32_t below, uint32_t path);
uint32_t node_other(struct process *p, uint32_t parent);

/* Without what says which sessions it is not for. path < n_paths */
uint32_t path_plain(const struct process *p, uint32_t path);

uint8_t name_class(struct process *p, uint32_t name);                         /* of the kernel */
uint32_t metric_name_of(struct process *p, uint32_t name, uint8_t *ret_kind); /* TABLE_NONE */
uint32_t metric_name_add(struct process *p, const char *text, uint32_t bytes);

/* "a/b/c", root first, as snprintf() does: the bytes that it has, cut to fit n. */
size_t node_path_text(const struct process *p, uint32_t path, char *buf, size_t n);
size_t node_text(const struct process *p, uint32_t node, char *buf, size_t n);

#endif
