/* SPDX-License-Identifier: MIT. path_end.h: whether a path of scopes ends in names that were asked for, as "step/forward". Pure. */
#ifndef PROTOND_SESSION_PATH_END_H
#define PROTOND_SESSION_PATH_END_H

#include <stdbool.h>
#include <string.h>

struct path_end { /* what is left to be found, from its end */
	const char *words;
	size_t left;
};

static inline struct path_end path_end_of(const char *words)
{
	return (struct path_end){words, strlen(words)};
}

enum path_end_is { PATH_END_NOT, PATH_END_MORE, PATH_END_YES };

/* The next name on the way up from the innermost. Names may have a "/" of their own. */
static inline enum path_end_is path_end_take(struct path_end *e, const char *name)
{
	const size_t n = strlen(name);

	if (n >= e->left)
		return memcmp(name + n - e->left, e->words, e->left) == 0 &&
				       (n == e->left || name[n - e->left - 1] == '/')
			       ? PATH_END_YES
			       : PATH_END_NOT;
	if (e->words[e->left - n - 1] != '/' || memcmp(e->words + e->left - n, name, n) != 0)
		return PATH_END_NOT;
	e->left -= n + 1;
	return e->left > 0 ? PATH_END_MORE : PATH_END_NOT;
}

#endif
