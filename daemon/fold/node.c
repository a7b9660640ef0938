/* SPDX-License-Identifier: MIT. node.c: the nodes of one process: ring paths, kernels below
 * them, and the fold's own words. A node is made when the first event needs it. */
#include "node.h"

#include <stdlib.h>
#include <string.h>

#include "arena.h"
#include "domains.h"
#include "nodehash.h"
#include "process.h"
#include "profile.h"
#include "ring.h"
#include "session_terms.h"
#include "state.h"
#include "step_name.h"
#include "step_series.h"
#include "words.h"

static const char *const word_text[] = {
#define X(name, text) text,
	WORDS(X)
#undef X
#define X(name, n, word, record, id, node, leaf, ...) [WORD_CLASS - WORD_FIRST + (n)] = (leaf),
		GPU_CLASSES(X)
#undef X
};

#define CHILDREN_LEAST 4096u /* that every process may have found */

/* A struct child of this kind is a whole captured path below <captured_at>. */
#define KIND_CAPTURED_PATH 0xffu
#define KIND_PATH_BELOW    0xfeu /* likewise, and there is nothing between */

const char *name_text(const struct process *p, uint32_t name, uint32_t *ret_bytes)
{
	const char *text;

	if (name >= WORD_FIRST) {
		text = word_text[name - WORD_FIRST];
		*ret_bytes = (uint32_t)strlen(text);
		return text;
	}
	*ret_bytes = p->name[name].bytes;
	return p->name[name].text;
}

struct hash_key {
	const struct node *node;
	const uint8_t *hash;
};

static bool node_same(const void *arg, uint32_t at)
{
	const struct hash_key *k = arg;

	return hash_same(k->node[at].hash, k->hash);
}

static uint32_t hash_low(const uint8_t hash[16])
{
	uint32_t low;

	memcpy(&low, hash, sizeof(low));
	return low;
}

uint32_t node_by_hash(const struct process *p, const uint8_t hash[16])
{
	struct hash_key k = {p->node, hash};

	return table_find(&p->node_by_hash, hash_low(hash), node_same, &k);
}

static bool nodes_grow(struct process *p)
{
	uint32_t cap = p->cap_nodes == 0 ? 16 : p->cap_nodes * 2;
	struct last_child *last = reallocarray(p->last_child, cap, sizeof(*last));
	struct node *node;

	if (last == NULL)
		return false;
	memset(last + p->n_nodes, 0, (cap - p->n_nodes) * sizeof(*last));
	p->last_child = last;
	node = reallocarray(p->node, cap, sizeof(*node));
	if (node == NULL)
		return false;
	p->node = node;
	p->cap_nodes = cap;
	return true;
}

/* Adds a node that is not there yet. NODE_NONE: over a ceiling. Its name lives as long as p. */
static uint32_t node_append(struct process *p, const struct node *n)
{
	uint32_t at = p->n_nodes;

	p->refused++;
	if (at >= RING_PATHS_MAX + 2 * p->fold->limit.nodes ||
		(at > NODE_ROOT_AT + 1 && !process_has_room(p)))
		return NODE_NONE;
	if (at == p->cap_nodes && !nodes_grow(p)) {
		p->fold->no_memory = true;
		return NODE_NONE;
	}
	p->node[at] = *n;
	switch (table_add(&p->node_by_hash, hash_low(n->hash), at)) {
	case 0:
		p->refused--;
		p->n_nodes++;
		p->fold->fresh += (uint32_t)sizeof(struct row_node) + n->bytes;
		return at;
	case -ENOMEM:
		p->fold->no_memory = true;
		break;
	default:
		break;
	}
	return NODE_NONE;
}

uint32_t node_add(
	struct process *p, uint32_t parent, uint8_t kind, const char *name, uint32_t bytes)
{
	struct node n = {.name = name, .bytes = bytes, .parent = parent, .kind = kind};
	uint32_t at;

	MUST(parent < p->n_nodes);
	node_hash(p->node[parent].hash, kind, name, bytes, n.hash);
	n.step = p->node[parent].step != STEP_NO                ? STEP_BELOW
		 : kind == NODE_SCOPE && timeline_is_step(name) ? STEP_IS
								: STEP_NO;
	at = node_by_hash(p, n.hash);
	return at != TABLE_NONE ? at : node_append(p, &n);
}

bool node_init(struct process *p)
{
	static const uint8_t none[16];
	struct node n = {.name = "ROOT", .bytes = 4, .kind = NODE_ROOT};

	node_hash(none, NODE_ROOT, "ROOT", 4, n.hash);
	return node_append(p, &n) == NODE_ROOT_AT && node_other(p, NODE_ROOT_AT) != NODE_ROOT_AT;
}

void node_fini(struct process *p)
{
	free(p->node);
	free(p->last_child);
	free(p->child);
	free(p->metric_name);
	table_fini(&p->node_by_hash);
	table_fini(&p->child_by_key);
	table_fini(&p->metric_by_text);
}

struct child_key {
	const struct child *child;
	struct child key;
};

static bool child_same(const void *arg, uint32_t at)
{
	const struct child_key *k = arg;
	const struct child *c = &k->child[at];

	return c->parent == k->key.parent && c->name == k->key.name && c->kind == k->key.kind;
}

static uint32_t child_hash(const struct child *c)
{
	return table_mix((uint64_t)c->parent << 8 | c->kind, c->name);
}

/* A cache: when it fails only speed is lost. */
static void child_keep(struct process *p, const struct child *c)
{
	if (!ROOM_FOR(p->child, p->cap_children, p->n_children))
		return;
	if (table_add(&p->child_by_key, child_hash(c), p->n_children) == 0)
		p->child[p->n_children++] = *c;
}

static uint32_t child_find(const struct process *p, const struct child *c)
{
	struct child_key k = {p->child, *c};
	uint32_t at = table_find(&p->child_by_key, child_hash(c), child_same, &k);

	return at == TABLE_NONE ? NODE_NONE : p->child[at].node;
}

/* The name itself found no room. */
static bool is_other(const struct process *p, uint32_t name, const char *text)
{
	return name != NAME_OTHER && name < WORD_FIRST && text == p->name[NAME_OTHER].text;
}

uint32_t node_other(struct process *p, uint32_t parent)
{
	uint32_t at;

	MUST(parent < p->n_nodes);
	if (p->node[parent].other != 0)
		return p->node[parent].other - 1;
	at = node_add(p, parent, NODE_SCOPE, word_text[WORD_OTHER - WORD_FIRST],
		(uint32_t)strlen(word_text[WORD_OTHER - WORD_FIRST]));
	if (at == NODE_NONE)
		return parent == NODE_ROOT_AT ? NODE_ROOT_AT : node_other(p, NODE_ROOT_AT);
	p->node[parent].other = at + 1;
	return at;
}

uint32_t node_child(struct process *p, uint32_t parent, uint8_t kind, uint32_t name)
{
	struct child c = {.parent = parent, .name = name, .kind = kind};
	uint32_t at = child_find(p, &c), bytes;
	const char *text;

	if (at != NODE_NONE)
		return at;
	text = name_text(p, name, &bytes);
	if (is_other(p, name, text)) {
		p->refused++;
		return node_other(p, parent);
	}
	c.node = node_add(p, parent, kind, text, bytes);
	if (c.node == NODE_NONE)
		return node_other(p, parent);
	child_keep(p, &c);
	return c.node;
}

uint32_t node_kernel(struct process *p, uint32_t parent, uint32_t name)
{
	struct last_child *last = &p->last_child[parent];
	uint32_t at;

	if (last->node != 0 && last->name == name)
		return last->node - 1;
	at = node_child(p, parent, NODE_KERNEL, name);
	/* Not through `last`: node_child() may have moved it. */
	p->last_child[parent] = (struct last_child){name, at + 1};
	return at;
}

/* The others have the same numbers. */
static uint8_t node_kind_of(const struct path *path)
{
	return path->kind == PATH_KIND_CALL ? NODE_CALL : path->kind;
}

/* A Python stack has no scopes in it, but what is on top of them: a state, an op. */
uint32_t node_of_stack(struct process *p, uint32_t python, uint32_t path)
{
	const struct path *top = &p->path[path], *state = top;
	uint32_t node = node_of_path(p, python);

	if (top->kind == PATH_KIND_OP)
		state = &p->path[top->parent];
	if (state->kind == PATH_KIND_STATE)
		node = node_child(p, node, NODE_STATE, state->name);
	if (top->kind == PATH_KIND_OP)
		node = node_child(p, node, NODE_OP, top->name);
	return node;
}

uint32_t node_of_path(struct process *p, uint32_t path)
{
	uint32_t up[PATH_DEPTH_MAX + 1], n = 0, at, bytes;
	const char *text;

	MUST(path < p->n_paths);
	for (at = path; p->path[at].node == 0; at = p->path[at].parent)
		up[n++] = at; /* every depth is at most PATH_DEPTH_MAX, and ROOT has a node */
	at = p->path[at].node - 1;
	while (n-- > 0) {
		if (p->path[up[n]].kind == PATH_KIND_EXCEPT) {
			p->path[up[n]].node = at + 1;
			continue;
		}
		text = name_text(p, p->path[up[n]].name, &bytes);
		if (is_other(p, p->path[up[n]].name, text)) {
			p->refused++;
			return node_other(p, at);
		}
		at = node_add(p, at, node_kind_of(&p->path[up[n]]), text, bytes);
		if (at == NODE_NONE)
			return node_other(p, NODE_ROOT_AT);
		p->path[up[n]].node = at + 1;
		p->path[up[n]].step = p->node[at].step == STEP_IS;
	}
	return at;
}

uint32_t node_in_part(struct part *part, uint32_t path)
{
	struct process *p = part->process;
	uint32_t up[PATH_DEPTH_MAX + 1], n = 0, at = NODE_ROOT_AT;

	if (!domains_matter(part, path))
		return p->path[path].node != 0 ? p->path[path].node - 1 : node_of_path(p, path);
	for (; path != PATH_ROOT; path = p->path[path].parent)
		up[n++] = path;
	while (n-- > 0)
		if (p->path[up[n]].kind != PATH_KIND_EXCEPT && !domains_leave_out(part, up[n]))
			at = node_child(p, at, node_kind_of(&p->path[up[n]]), p->path[up[n]].name);
	return at;
}

uint32_t path_plain(const struct process *p, uint32_t path)
{
	return p->path[path].kind == PATH_KIND_EXCEPT ? p->path[path].parent : path;
}

uint32_t node_captured(struct part *part, uint32_t below, uint32_t path)
{
	struct process *p = part->process;
	const bool own = domains_matter(part, path);
	struct child c = {.parent = below, .name = path, .kind = KIND_CAPTURED_PATH};
	uint32_t up[PATH_DEPTH_MAX + 1], n = 0, at = own ? NODE_NONE : child_find(p, &c), i;

	if (at != NODE_NONE)
		return at;
	MUST(path < p->n_paths && p->path[path].kind != PATH_KIND_EXCEPT);
	if (p->n_children > CHILDREN_LEAST && !process_has_room(p)) {
		p->refused++; /* the way down is as long as a path is deep, for each tree */
		return node_other(p, below);
	}
	at = node_child(p, below, NODE_CAPTURED, WORD_CAPTURED);
	for (i = path; i != PATH_ROOT; i = p->path[i].parent)
		up[n++] = i;
	while (n-- > 0)
		if (!own || !domains_leave_out(part, up[n]))
			at = node_child(p, at, node_kind_of(&p->path[up[n]]), p->path[up[n]].name);
	c.node = at;
	if (!own)
		child_keep(p, &c);
	return at;
}

uint32_t node_below(struct process *p, uint32_t below, uint32_t path)
{
	struct child c = {.parent = below, .name = path, .kind = KIND_PATH_BELOW};
	uint32_t up[PATH_DEPTH_MAX + 1], n = 0, at = child_find(p, &c), i;

	if (at != NODE_NONE || path == PATH_ROOT)
		return path == PATH_ROOT ? below : at;
	MUST(path < p->n_paths);
	if (p->n_children > CHILDREN_LEAST && !process_has_room(p)) {
		p->refused++; /* as in node_captured() */
		return node_other(p, below);
	}
	for (i = path; i != PATH_ROOT; i = p->path[i].parent)
		up[n++] = i;
	for (at = below; n-- > 0;)
		at = node_child(p, at, p->path[up[n]].kind, p->path[up[n]].name);
	c.node = at;
	child_keep(p, &c);
	return at;
}

uint8_t name_class(struct process *p, uint32_t name)
{
	struct name *n;

	if (name >= WORD_FIRST)
		return CLASS_COMPUTE;
	n = &p->name[name];
	if (n->class == 0)
		n->class = gpu_kernel_is_comm(n->text) ? CLASS_COMM : CLASS_COMPUTE;
	return n->class;
}

struct text_key {
	const struct metric_name *name;
	const char *text;
	uint32_t bytes;
};

static bool text_same(const void *arg, uint32_t at)
{
	const struct text_key *k = arg;

	return k->name[at].bytes == k->bytes && memcmp(k->name[at].text, k->text, k->bytes) == 0;
}

uint32_t metric_name_add(struct process *p, const char *text, uint32_t bytes)
{
	struct text_key k = {p->metric_name, text, bytes};
	uint64_t h = 14695981039346656037u;
	uint32_t i, at, hash;
	const char *copy;
	int r;

	for (i = 0; i < bytes; i++)
		h = (h ^ (uint8_t)text[i]) * 1099511628211u;
	hash = table_mix(h, bytes);
	at = table_find(&p->metric_by_text, hash, text_same, &k);
	if (at != TABLE_NONE)
		return at;
	copy = arena_text(p->arena, text, bytes);
	if (copy == NULL || !ROOM_FOR(p->metric_name, p->cap_metric_names, p->n_metric_names)) {
		p->fold->no_memory = true;
		return TABLE_NONE;
	}
	r = table_add(&p->metric_by_text, hash, p->n_metric_names);
	if (r < 0) {
		p->fold->no_memory |= r == -ENOMEM;
		return TABLE_NONE;
	}
	p->metric_name[p->n_metric_names] = (struct metric_name){copy, bytes};
	return p->n_metric_names++;
}

uint32_t metric_name_of(struct process *p, uint32_t name, uint8_t *ret_kind)
{
	struct name *n = &p->name[name];
	struct metric_words w;
	uint32_t at;

	MUST(name < p->n_names);
	if (n->metric == 0) {
		words_metric(n->text, &w);
		at = metric_name_add(p, w.name, (uint32_t)w.n);
		if (at == TABLE_NONE)
			return TABLE_NONE;
		n->metric = at + 1;
		n->metric_kind = w.kind;
	}
	*ret_kind = n->metric_kind;
	return n->metric - 1;
}

/* --- in words --- */

struct room { /* written as snprintf() does */
	char *buf;
	size_t n, at;
};

static void room_add(struct room *r, const char *text, size_t bytes)
{
	size_t left = r->at < r->n ? r->n - r->at : 0;

	if (left > 1) {
		left = bytes < left - 1 ? bytes : left - 1;
		memcpy(r->buf + r->at, text, left);
		r->buf[r->at + left] = '\0';
	}
	r->at += bytes;
}

size_t node_path_text(const struct process *p, uint32_t path, char *buf, size_t n)
{
	uint32_t up[PATH_DEPTH_MAX + 1], depth = 0, bytes;
	struct room r = {buf, n, 0};
	const char *text;

	MUST(path < p->n_paths);
	if (n > 0)
		*buf = '\0';
	for (path = path_plain(p, path); path != PATH_ROOT; path = p->path[path].parent)
		up[depth++] = path;
	while (depth-- > 0) {
		text = name_text(p, p->path[up[depth]].name, &bytes);
		if (r.at > 0)
			room_add(&r, "/", 1);
		room_add(&r, text, bytes);
	}
	return r.at;
}

size_t node_text(const struct process *p, uint32_t node, char *buf, size_t n)
{
	uint32_t up[2 * PATH_DEPTH_MAX + 8], depth = 0;
	struct room r = {buf, n, 0};

	MUST(node < p->n_nodes);
	if (n > 0)
		*buf = '\0';
	for (; node != NODE_ROOT_AT && depth < sizeof(up) / sizeof(up[0]);
		node = p->node[node].parent)
		up[depth++] = node;
	while (depth-- > 0) {
		if (r.at > 0)
			room_add(&r, "/", 1);
		room_add(&r, p->node[up[depth]].name, p->node[up[depth]].bytes);
	}
	return r.at;
}
