/* SPDX-License-Identifier: MIT. ids.c: a ring's insert-only tables, checked once, when an entry
 * is copied. The same entries may come again, from any point: what is known is left alone. */
#include "ids.h"

#include <string.h>

#include "arena.h"
#include "domains.h"
#include "journal.h"
#include "loss.h"
#include "member.h"
#include "ring.h"
#include "state.h"
#include "words.h"

#define TABLE_LEAST 4096u  /* entries that each process may have, if need be without their text */
#define CATCH_UP    65536u /* entries added at a time for those that found no room before */

/* A path that breaks a law keeps its id, so that later ids hold, and stands for ROOT/(other).
 * Below a path without room there is none either. */
static bool path_check(const struct process *p, const struct ring_path *from, struct path *ret)
{
	const uint32_t id = p->n_paths;
	const bool ok =
		from->parent < id && from->name < p->told_names && from->kind > PATH_KIND_ROOT &&
		from->kind < PATH_KIND_MAX && from->kind != PATH_KIND_KERNEL && from->depth > 0 &&
		from->depth <= PATH_DEPTH_MAX && p->path[from->parent].kind != PATH_KIND_EXCEPT &&
		p->path[from->parent].kind != PATH_KIND_CALL;
	const uint32_t domain = from->domain < p->n_names && from->domain < PATH_DOMAIN_END
					? from->domain
					: NAME_NONE;
	const struct path *parent = ok ? &p->path[from->parent] : NULL;

	*ret = p->path[PATH_OTHER];
	ret->surplus = ok && parent->surplus;
	ret->bad = !ok || (!parent->surplus && from->depth != parent->depth + 1);
	if (!ret->bad && !ret->surplus)
		*ret = (struct path){.parent = from->parent,
			.name = from->name < p->n_names ? from->name : NAME_OTHER,
			.domain = domain & (PATH_DOMAIN_END - 1),
			.depth = from->depth & 511u,
			.kind = from->kind & 7u,
			.domains = (parent->domains != 0 || domain != NAME_NONE) & 1u};
	return !ret->bad;
}

/* From now on a session that did not ask for them must look. */
static void operators_begin(struct process *p)
{
	struct part *part;

	p->operators = true;
	for (part = p->member; part != NULL; part = part->next)
		part_set_picks(part);
}

/* Adds those from `first` on. Known ones are left alone; those that found no room before become
 * surplus. */
static uint32_t paths_add(struct process *p, uint32_t first, const uint8_t *bytes, uint32_t n)
{
	const uint32_t start = p->n_paths;
	struct ring_path from;
	uint32_t bad = 0;

	for (; p->n_paths < first + n; p->n_paths++) {
		if ((p->n_paths >= TABLE_LEAST && !process_has_room(p)) ||
			(p->n_paths < first && p->n_paths - start >= CATCH_UP))
			break;
		if (!ROOM_FOR(p->path, p->cap_paths, p->n_paths)) {
			p->fold->no_memory = true;
			break;
		}
		if (p->n_paths < first) {
			p->path[p->n_paths] = p->path[PATH_OTHER];
			p->path[p->n_paths].surplus = true;
			continue;
		}
		memcpy(&from, bytes + (size_t)(p->n_paths - first) * sizeof(from), sizeof(from));
		bad += !path_check(p, &from, &p->path[p->n_paths]);
		if (!p->operators && domains_are_operators(p, p->path[p->n_paths].domain))
			operators_begin(p);
	}
	return bad;
}

static bool name_put(struct process *p, const uint8_t *text, uint32_t bytes)
{
	char clean[3 * NAME_BYTES_MAX + 1];
	struct name *n;
	size_t len;

	if (!ROOM_FOR(p->name, p->cap_names, p->n_names))
		return false;
	n = &p->name[p->n_names];
	*n = p->name[NAME_OTHER];
	if (text != NULL && process_has_room(p)) {
		len = words_clean(clean, sizeof(clean), text, bytes);
		*n = (struct name){.bytes = (uint32_t)len};
		n->text = arena_text(p->arena, clean, len);
		if (n->text == NULL)
			return false;
	}
	p->name_bytes += bytes;
	p->n_names++;
	return true;
}

static bool name_has_room(struct process *p)
{
	return p->n_names < TABLE_LEAST || process_has_room(p);
}

/* Adds n × {u32 bytes, text, pad to 4} from `first` on. Returns how many were bad. */
static uint32_t names_add(
	struct process *p, uint32_t first, const uint8_t *at, uint32_t n, size_t left)
{
	const uint32_t start = p->n_names;
	uint32_t i, bytes;
	size_t whole;

	while (p->n_names < first && p->n_names - start < CATCH_UP && name_has_room(p)) {
		if (!name_put(p, NULL, 0)) {
			p->fold->no_memory = true;
			return 0;
		}
	}
	for (i = 0; i < n; i++) {
		if (left < sizeof(bytes))
			break;
		memcpy(&bytes, at, sizeof(bytes));
		whole = sizeof(bytes) + (((size_t)bytes + 3) & ~(size_t)3);
		if (bytes > NAME_BYTES_MAX || whole > left || p->name_bytes > RING_NAME_BYTES_MAX)
			break;
		if (p->n_names < first || (first + i >= p->n_names && !name_has_room(p)))
			return 0;
		if (first + i >= p->n_names && !name_put(p, at + sizeof(bytes), bytes)) {
			p->fold->no_memory = true;
			return 0;
		}
		at += whole;
		left -= whole;
	}
	return n - i;
}

static uint32_t configs_add(struct process *p, const uint8_t *bytes, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n && p->n_configs < RING_CONFIGS_MAX; i++) {
		if (!ROOM_FOR(p->config, p->cap_configs, p->n_configs)) {
			p->fold->no_memory = true;
			return 0;
		}
		memcpy(&p->config[p->n_configs++], bytes + (size_t)i * sizeof(*p->config),
			sizeof(*p->config));
	}
	return n - i;
}

static uint32_t devices_add(struct process *p, const uint8_t *bytes, uint32_t n)
{
	struct ring_device *d;
	char name[sizeof(d->name)];
	uint32_t i;

	if (p->device == NULL)
		p->device = arena_take(p->arena, RING_DEVICES_MAX * sizeof(*p->device));
	if (p->device == NULL) {
		p->fold->no_memory = true;
		return 0;
	}
	for (i = 0; i < n && p->n_devices < RING_DEVICES_MAX; i++) {
		d = &p->device[p->n_devices++];
		memcpy(d, bytes + (size_t)i * sizeof(*d), sizeof(*d));
		words_field(name, sizeof(name), d->name, sizeof(d->name));
		memset(d->name, 0, sizeof(d->name));
		memcpy(d->name, name, strlen(name));
		p->devices_dirty = p->dirty = true;
	}
	return n - i;
}

/* How many entries a table has, may have, and the bytes of each. False: no such table. */
static bool table_shape(struct process *p, uint32_t which, uint32_t *ret_told, uint32_t *ret_most,
	size_t *ret_bytes)
{
	switch ((enum j_table_which)which) {
	case TABLE_PATHS:
		*ret_told = p->told_paths;
		*ret_most = RING_PATHS_MAX;
		*ret_bytes = sizeof(struct ring_path);
		return true;
	case TABLE_NAMES:
		*ret_told = p->told_names;
		*ret_most = RING_NAMES_MAX;
		*ret_bytes = 0;
		return true;
	case TABLE_CONFIGS:
		*ret_told = p->n_configs;
		*ret_most = RING_CONFIGS_MAX;
		*ret_bytes = sizeof(struct ring_config);
		return true;
	case TABLE_DEVICES:
		*ret_told = p->n_devices;
		*ret_most = RING_DEVICES_MAX;
		*ret_bytes = sizeof(struct ring_device);
		return true;
	}
	return false;
}

void process_table(struct process *p, const struct j_table *t, const uint8_t *bytes, uint32_t n)
{
	const uint32_t first = t->first;
	uint32_t told, most, skip, bad;
	size_t each;

	MUST_PROCESS(p);
	if (!table_shape(p, t->which, &told, &most, &each) || first > told || t->n > most - first ||
		(uint64_t)t->n * each > n) {
		if (!p->bare) /* else it goes on where the ring's, which is gone, ended */
			loss_bad(p, 1);
		return;
	}
	p->bare = p->bare && t->which != TABLE_PATHS;
	skip = told - first;
	if (skip >= t->n)
		return;
	if (t->which == TABLE_PATHS) {
		bad = paths_add(p, first, bytes, t->n);
		p->told_paths = first + t->n;
	} else if (t->which == TABLE_NAMES) {
		bad = names_add(p, first, bytes, t->n, n < t->text_bytes ? n : t->text_bytes);
		p->told_names = first + t->n - bad;
	} else if (t->which == TABLE_CONFIGS)
		bad = configs_add(p, bytes + skip * each, t->n - skip);
	else
		bad = devices_add(p, bytes + skip * each, t->n - skip);
	if (bad != 0)
		loss_bad(p, bad);
}

uint32_t table_surplus(struct process *p, enum lost_cause cause, uint32_t id, uint32_t told)
{
	_Static_assert((int)PATH_OTHER == (int)NAME_OTHER, "one id for both");
	if (id >= told)
		return TABLE_NONE;
	loss_now(p, cause, 1);
	return PATH_OTHER;
}
