/* SPDX-License-Identifier: MIT. trace_names.c: the nodes that a timeline's chunks name by hash. */
#include "trace_names.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "session_terms.h"
#include "table.h"

#define DEPTH_UNKNOWN UINT16_MAX

static int no_memory(struct err *e)
{
	return err_set(e, -ENOMEM, "out of memory for the timeline");
}

static int unreadable(const struct trace_names *t, struct err *e)
{
	return err_set(e, -EIO, "the database cannot be read: %s", sqlite3_errmsg(t->db));
}

int trace_names_open(struct trace_names *t, struct sqlite3 *db, struct profile *texts,
	const struct profile_select *select, struct err *e)
{
	*t = (struct trace_names){.db = db, .texts = texts, .select = select};
	if (sqlite3_prepare_v2(db,
		    "SELECT n.name, n.kind, p.hash FROM node n LEFT JOIN node p ON p.id=n.parent"
		    " WHERE n.hash=?1",
		    -1, &t->by_hash, NULL) != SQLITE_OK)
		return unreadable(t, e);
	return 0;
}

void trace_names_fini(struct trace_names *t)
{
	(void)sqlite3_finalize(t->by_hash);
	free(t->v);
	free(t->map);
	free(t->color);
	*t = (struct trace_names){.db = NULL};
}

/* "#rrggbb"; 0: it is none. */
static uint32_t color_read(const char *s)
{
	char *end;
	unsigned long v;

	if (s == NULL || strlen(s) != 7 || *s != '#' || !isxdigit((unsigned char)s[1]))
		return 0;
	v = strtoul(s + 1, &end, 16);
	return *end == '\0' ? NAMED_COLOR | (uint32_t)v : 0;
}

int trace_names_colors(struct trace_names *t, int64_t session, struct err *e)
{
	sqlite3_stmt *q;
	int rc = sqlite3_prepare_v2(t->db,
		"SELECT n.name, m.value FROM metric m JOIN node n ON n.id=m.node"
		" WHERE m.session=?1 AND m.name='" COLOR_PROPERTY
		"' GROUP BY n.name ORDER BY n.name",
		-1, &q, NULL);
	bool room = true;

	if (rc != SQLITE_OK)
		return unreadable(t, e);
	(void)sqlite3_bind_int64(q, 1, session);
	while (room && t->n_colors < NAMED_COLORS && (rc = sqlite3_step(q)) == SQLITE_ROW) {
		const char *name = (const char *)sqlite3_column_text(q, 0);
		const uint32_t color = color_read((const char *)sqlite3_column_text(q, 1));

		if (name == NULL || color == 0)
			continue;
		room = ROOM_FOR(t->color, t->cap_colors, t->n_colors);
		name = room ? profile_text(t->texts, name, strlen(name)) : NULL;
		room = name != NULL;
		if (room)
			t->color[t->n_colors++] = (struct named_color){name, color};
	}
	(void)sqlite3_finalize(q);
	if (!room)
		return no_memory(e);
	return rc == SQLITE_ROW || rc == SQLITE_DONE ? 0 : unreadable(t, e);
}

static int color_order(const void *name, const void *at)
{
	return strcmp(name, ((const struct named_color *)at)->name);
}

static uint32_t color_of(const struct trace_names *t, const char *name)
{
	const struct named_color *c = t->n_colors == 0 ? NULL
						       : bsearch(name, t->color, t->n_colors,
								 sizeof(*t->color), color_order);

	return c != NULL ? c->color : 0;
}

static uint32_t *map_at(struct trace_names *t, const uint8_t hash[16])
{
	uint64_t h;
	uint32_t i;

	memcpy(&h, hash, sizeof(h));
	for (i = (uint32_t)h & (t->map_cap - 1); t->map[i] != 0; i = (i + 1) & (t->map_cap - 1))
		if (memcmp(t->v[t->map[i] - 1].hash, hash, 16) == 0)
			break;
	return &t->map[i];
}

static bool map_room(struct trace_names *t)
{
	uint32_t i, cap, *map;

	if (t->n * 2 < t->map_cap)
		return true;
	cap = t->map_cap == 0 ? 1024 : t->map_cap * 2;
	map = calloc(cap, sizeof(*map));
	if (map == NULL)
		return false;
	free(t->map);
	t->map = map;
	t->map_cap = cap;
	for (i = 0; i < t->n; i++)
		*map_at(t, t->v[i].hash) = i + 1;
	return true;
}

/* How the owner wants it shown. */
static const char *shown(struct trace_names *t, const char *name)
{
	const struct profile_select *s = t->select;

	if (s->show == NULL || t->texts->head.files != MODE_NONE)
		return name;
	name = s->show(s->show_arg, name);
	return profile_text(t->texts, name, strlen(name));
}

/* The row of one node; ret_parent: its parent's hash, all zero for a root. */
static int node_read(struct trace_names *t, const uint8_t hash[16], struct known *ret,
	uint8_t ret_parent[16], struct err *e)
{
	sqlite3_stmt *q = t->by_hash;
	const char *text = NULL;
	int rc;

	memset(ret_parent, 0, 16);
	*ret = (struct known){.parent = PROFILE_NONE,
		.name = "(unknown)",
		.kind = NODE_SCOPE,
		.depth = DEPTH_UNKNOWN};
	memcpy(ret->hash, hash, 16);
	(void)sqlite3_bind_blob(q, 1, hash, 16, SQLITE_STATIC);
	rc = sqlite3_step(q);
	if (rc == SQLITE_ROW) {
		text = (const char *)sqlite3_column_text(q, 0);
		ret->kind = (uint8_t)sqlite3_column_int(q, 1);
		if (sqlite3_column_bytes(q, 2) == 16)
			memcpy(ret_parent, sqlite3_column_blob(q, 2), 16);
	}
	t->n_unknown += text == NULL;
	if (text != NULL)
		ret->name = profile_text(t->texts, text, (size_t)sqlite3_column_bytes(q, 0));
	if (text != NULL && ret->name != NULL) {
		ret->color = node_is_scope(ret->kind) ? color_of(t, ret->name) : 0;
		ret->name = shown(t, ret->name);
	}
	(void)sqlite3_reset(q);
	if (ret->name == NULL)
		return no_memory(e);
	return rc == SQLITE_ROW || rc == SQLITE_DONE ? 0 : unreadable(t, e);
}

int trace_names_find(
	struct trace_names *t, const uint8_t hash[16], uint32_t *ret_place, struct err *e)
{
	static const uint8_t none[16];
	uint8_t at[16], parent[16];
	uint32_t *slot, below = PROFILE_NONE, depth;
	struct known k;
	int r;

	*ret_place = PROFILE_NONE;
	memcpy(at, hash, 16);
	for (depth = 0; depth < TRACE_DEPTH_MAX; depth++) {
		if (!map_room(t) || !ROOM_FOR(t->v, t->cap, t->n))
			return no_memory(e);
		if (t->n >= TRACE_NAMES_MAX)
			memset(at, 0, 16);
		slot = map_at(t, at);
		if (*slot != 0) {
			if (below == PROFILE_NONE)
				*ret_place = *slot - 1;
			else
				t->v[below].parent = *slot - 1;
			return 0;
		}
		r = node_read(t, at, &k, parent, e);
		if (r < 0)
			return r;
		t->v[t->n] = k;
		*slot = t->n + 1;
		if (below == PROFILE_NONE)
			*ret_place = t->n;
		else
			t->v[below].parent = t->n;
		below = t->n++;
		if (memcmp(parent, none, 16) == 0)
			return 0;
		memcpy(at, parent, 16);
	}
	return 0;
}

uint32_t trace_names_path(const struct trace_names *t, uint32_t node, uint32_t ret[TRACE_DEPTH_MAX])
{
	uint32_t n = 0;

	for (; node != PROFILE_NONE && n < TRACE_DEPTH_MAX; node = t->v[node].parent)
		ret[n++] = node;
	return n;
}

void trace_names_from(struct trace_names *t, const char *source)
{
	const uint32_t from = term_number(&term_process_sources, source, FROM_LIVE);
	const bool frames = from != FROM_LIVE && from != FROM_REPLAY;
	uint32_t i;

	for (i = 0; i < t->n && frames != t->frames; i++)
		t->v[i].depth = DEPTH_UNKNOWN;
	t->frames = frames;
}

uint16_t trace_names_depth(struct trace_names *t, uint32_t node)
{
	uint32_t at = t->v[node].parent, n = 0, steps = 0;

	if (t->v[node].depth != DEPTH_UNKNOWN)
		return t->v[node].depth;
	for (; at != PROFILE_NONE && steps < TRACE_DEPTH_MAX; at = t->v[at].parent, steps++)
		n += trace_names_timed(t, at);
	t->v[node].depth = (uint16_t)n;
	return (uint16_t)n;
}
