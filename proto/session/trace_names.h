/* SPDX-License-Identifier: MIT. trace_names.h: the nodes that a timeline's chunks name by hash, each read
 * once, with all that stands above it. Single-threaded. */
#ifndef PROTOND_SESSION_TRACE_NAMES_H
#define PROTOND_SESSION_TRACE_NAMES_H

#include "profile.h"

struct sqlite3_stmt;

/* A cycle, which only a forged file has, ends there. */
#define TRACE_DEPTH_MAX 2048u
#define TRACE_NAMES_MAX (1u << 20) /* further nodes are one, of no name */

struct known { /* a node of the store */
	uint8_t hash[16];
	const char *name;
	uint32_t parent; /* place, PROFILE_NONE: a root */
	uint8_t kind;
	bool told;      /* the owner's: its name stands in the file */
	uint16_t depth; /* trace_names_depth() */
	uint32_t color; /* NAMED_COLOR and the program's, 0xrrggbb; 0: none */
};

#define NAMED_COLOR    (1u << 24)
#define NAMED_COLORS   4096u /* further ones are not known */
#define COLOR_PROPERTY "color"

struct named_color {
	const char *name; /* as it was recorded */
	uint32_t color;
};

struct trace_names { /* zero-initialise, then open */
	struct sqlite3 *db;
	struct sqlite3_stmt *by_hash;
	struct profile *texts; /* who owns the names */
	const struct profile_select *select;
	struct known *v;
	uint32_t n, cap, *map, map_cap;
	uint32_t n_unknown;        /* of them the database does not have */
	bool frames;               /* lines of a stack have times of their own */
	struct named_color *color; /* by name */
	uint32_t n_colors, cap_colors;
};

int trace_names_open(struct trace_names *t, struct sqlite3 *db, struct profile *texts,
	const struct profile_select *select, struct err *e);
void trace_names_fini(struct trace_names *t);
/* What colours the program of a session gave to scopes, by name: before the first node is found. */
int trace_names_colors(struct trace_names *t, int64_t session, struct err *e);
/* The place of a node in v, which may move. -ENOMEM, -EIO. */
int trace_names_find(
	struct trace_names *t, const uint8_t hash[16], uint32_t *ret_place, struct err *e);
/* The places of a node and of all above it, itself first; returns how many. */
uint32_t trace_names_path(
	const struct trace_names *t, uint32_t node, uint32_t ret[TRACE_DEPTH_MAX]);
/* Where the process at hand comes from (PROCESS_SOURCES; NULL: live): another profiler's file has times
 * of a stack's lines, we record none. */
void trace_names_from(struct trace_names *t, const char *source);
/* How many with times of their own stand above it: the row that it is shown in. */
uint16_t trace_names_depth(struct trace_names *t, uint32_t node);

static inline bool node_is_scope(uint8_t kind)
{
	return kind == NODE_SCOPE || kind == NODE_STATE || kind == NODE_OP;
}

/* It has times of its own. */
static inline bool trace_names_timed(const struct trace_names *t, uint32_t node)
{
	return node_is_scope(t->v[node].kind) || (t->frames && t->v[node].kind == NODE_FRAME);
}

#endif
