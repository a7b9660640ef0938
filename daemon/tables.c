/* SPDX-License-Identifier: MIT. tables.c: a ring's insert-only tables, checked once, when an entry
 * is copied. The same entries may come again, from any point: what is known is left alone. */
#include "state.h"

#include <string.h>

#include "words.h"

/* What breaks a law keeps its id, so that later ids hold, and stands for ROOT/(other). */
static bool path_check(const struct process *p, const struct ring_path *from, struct path *ret)
{
	uint32_t id = p->n_paths;
	bool ok = from->parent < id && from->name < p->n_names && from->kind > PATH_KIND_ROOT &&
		  from->kind < PATH_KIND_KERNEL && from->depth <= PATH_DEPTH_MAX &&
		  from->depth == p->path[from->parent].depth + 1;

	*ret = (struct path){PATH_ROOT, NAME_OTHER, 0, 1, PATH_KIND_SCOPE, true};
	if (ok)
		*ret = (struct path){
			from->parent, from->name, 0, from->depth, (uint8_t)from->kind, false};
	return ok;
}

static uint32_t paths_add(struct process *p, const uint8_t *bytes, uint32_t n)
{
	struct ring_path from;
	uint32_t i, bad = 0;

	for (i = 0; i < n && p->n_paths < RING_PATHS_MAX; i++) {
		if (p->n_paths >= TABLE_LEAST && !process_has_room(p))
			break;
		memcpy(&from, bytes + (size_t)i * sizeof(from), sizeof(from));
		if (!ROOM_FOR(p->path, p->cap_paths, p->n_paths)) {
			p->fold->no_memory = true;
			return bad;
		}
		bad += !path_check(p, &from, &p->path[p->n_paths]);
		p->n_paths++;
	}
	return bad + (n - i);
}

static bool name_put(struct process *p, const uint8_t *text, uint32_t bytes)
{
	char clean[3 * NAME_BYTES_MAX + 1];
	struct name *n;
	size_t len = words_clean(clean, sizeof(clean), text, bytes);

	if (!ROOM_FOR(p->name, p->cap_names, p->n_names))
		return false;
	n = &p->name[p->n_names];
	*n = p->name[NAME_OTHER];
	if (process_has_room(p)) {
		*n = (struct name){.bytes = (uint32_t)len};
		n->text = arena_text(p->arena, clean, len);
		if (n->text == NULL)
			return false;
	}
	p->name_bytes += bytes;
	p->n_names++;
	return true;
}

/* n × {u32 bytes, text, pad to 4}, of which the first `skip` are known. Returns how many were bad.
 */
static uint32_t names_add(
	struct process *p, const uint8_t *at, uint32_t n, uint32_t skip, size_t left)
{
	uint32_t i, bytes;
	size_t whole;

	for (i = 0; i < n; i++) {
		if (left < sizeof(bytes))
			break;
		memcpy(&bytes, at, sizeof(bytes));
		whole = sizeof(bytes) + (((size_t)bytes + 3) & ~(size_t)3);
		if (bytes > NAME_BYTES_MAX || whole > left || p->n_names >= RING_NAMES_MAX ||
			p->name_bytes > RING_NAME_BYTES_MAX)
			break;
		if (p->n_names >= TABLE_LEAST && !process_has_room(p))
			break;
		if (i >= skip && !name_put(p, at + sizeof(bytes), bytes)) {
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
		(void)words_field(name, sizeof(name), d->name, sizeof(d->name));
		memset(d->name, 0, sizeof(d->name));
		memcpy(d->name, name, strlen(name));
		p->devices_dirty = p->dirty = true;
	}
	return n - i;
}

/* The known count and entry size of a table; false: no such table. */
static bool table_shape(
	const struct process *p, uint32_t which, uint32_t *ret_known, size_t *ret_bytes)
{
	switch ((enum j_table_which)which) {
	case TABLE_PATHS:
		*ret_known = p->n_paths;
		*ret_bytes = sizeof(struct ring_path);
		return true;
	case TABLE_NAMES:
		*ret_known = p->n_names;
		*ret_bytes = 0;
		return true;
	case TABLE_CONFIGS:
		*ret_known = p->n_configs;
		*ret_bytes = sizeof(struct ring_config);
		return true;
	case TABLE_DEVICES:
		*ret_known = p->n_devices;
		*ret_bytes = sizeof(struct ring_device);
		return true;
	}
	return false;
}

void process_table(struct process *p, const struct j_table *t, const uint8_t *bytes, uint32_t n)
{
	uint32_t known, skip, bad;
	size_t each;

	if (!table_shape(p, t->which, &known, &each) || t->first > known ||
		(uint64_t)t->n * each > n) {
		loss_bad(p, 1);
		return;
	}
	skip = known - t->first;
	if (skip >= t->n)
		return;
	bytes += skip * each;
	if (t->which == TABLE_PATHS)
		bad = paths_add(p, bytes, t->n - skip);
	else if (t->which == TABLE_NAMES)
		bad = names_add(p, bytes, t->n, skip, n < t->text_bytes ? n : t->text_bytes);
	else if (t->which == TABLE_CONFIGS)
		bad = configs_add(p, bytes, t->n - skip);
	else
		bad = devices_add(p, bytes, t->n - skip);
	if (bad != 0)
		loss_bad(p, bad);
}
