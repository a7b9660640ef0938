/* SPDX-License-Identifier: MIT. name_set.c: names by number. */
#include "name_set.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct sought {
	const struct name_set *set;
	const char *name;
};

static bool same(const void *arg, uint32_t at)
{
	const struct sought *s = arg;

	return strcmp(s->set->name[at], s->name) == 0;
}

static uint32_t hash_of(const char *s)
{
	uint64_t h = 14695981039346656037u;

	for (; *s != '\0'; s++)
		h = (h ^ (unsigned char)*s) * 1099511628211u;
	return table_mix(h, 0);
}

uint32_t name_set_add(struct name_set *s, const char *name)
{
	const struct sought sought = {s, name};
	const uint32_t hash = hash_of(name), at = table_find(&s->index, hash, same, &sought);

	if (at != TABLE_NONE)
		return at;
	if (!ROOM_FOR(s->name, s->cap, s->n) || table_add(&s->index, hash, s->n) == -ENOMEM)
		return TABLE_NONE;
	s->name[s->n] = name;
	return s->n++;
}

void name_set_fini(struct name_set *s)
{
	free(s->name);
	table_fini(&s->index);
	*s = (struct name_set){0};
}
