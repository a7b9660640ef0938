/* SPDX-License-Identifier: MIT. folded.c: the format folded: a line a path, "step;forward;sgemm
 * 1200", names from the root down and whole nanoseconds of the node alone: of GPU time if the
 * session has any, else of CPU time. What flamegraph.pl, inferno, samply and speedscope read. No
 * I/O. */
#include "cost.h"
#include "export_format.h"
#include "text.h"

/* A name is a word of a line: nothing in it ends the word or the line. */
static void put_name(struct text *t, const char *s)
{
	for (; *s != '\0'; s++)
		text_char(t, *s == ';' ? ':' : (unsigned char)*s <= ' ' || *s == 127 ? ' ' : *s);
}

/* *path: the names down to the node at hand, each with ";" behind it; *end: where each ends. */
static void put_line(struct text *to, const struct text *path, uint64_t ns)
{
	text_add(to, path->s, path->n - 1);
	text_fmt(to, " %llu\n", (unsigned long long)ns);
}

static int write_paths(const struct profile *p, const struct costs *c, size_t *end,
	struct text *path, struct text *to)
{
	uint32_t at = 0, up;

	if (c->self[0][c->main] > 0) /* of a foreign file */
		text_fmt(to, "ROOT %llu\n", (unsigned long long)c->self[0][c->main]);
	while ((at = cost_next(p, at, &up)) != PROFILE_NONE) {
		const uint32_t depth = p->node[at].depth;

		if (path->failed || to->failed)
			return -ENOMEM;
		if (to->n + path->n > EXPORT_TEXT_MAX)
			return -EFBIG;
		path->n = depth > 1 ? end[depth - 1] : 0;
		put_name(path, p->node[at].name[0] != '\0' ? p->node[at].name : "?");
		text_char(path, ';');
		end[depth] = path->n;
		if (c->self[at][c->main] > 0 && !path->failed)
			put_line(to, path, c->self[at][c->main]);
	}
	return 0;
}

int folded_write(const struct profile *p, char **ret_text, size_t *ret_bytes)
{
	size_t end[PROFILE_DEPTH_MAX + 2];
	struct text path = {0}, to = {0};
	struct costs c;
	int r = costs_new(p, &c);

	if (r < 0)
		return r;
	r = write_paths(p, &c, end, &path, &to);
	costs_free(&c);
	text_fini(&path);
	if (r == 0)
		r = text_take(&to, ret_text, ret_bytes);
	text_fini(&to);
	return r;
}
