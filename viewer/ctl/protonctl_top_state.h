/* SPDX-License-Identifier: MIT. protonctl_top_state.h: what top on a whole screen knows. For
 * protonctl_top_screen.c, which changes it, and protonctl_top_draw.c, which shows it. */
#ifndef PROTOND_PROTONCTL_TOP_STATE_H
#define PROTOND_PROTONCTL_TOP_STATE_H

#include <curses.h>

#include "name.h"
#include "protonctl_line.h"
#include "rpc.h"
#include "top_rows.h"

#define WINDOW_NS 5000000000u /* "now" is so long */
#define LOOKS     12u
#define TREND     24u

struct screen {
	struct ctl *c;
	struct rpc *rpc;
	struct names *names;
	struct term term;
	struct look look[LOOKS]; /* the newest last */
	uint32_t n_looks;
	struct top_view view;
	struct top_rows rows;
	uint32_t at, first; /* the row that is chosen; the first that is seen */
	uint64_t at_key;
	double trend[TREND]; /* steps a second, the newest last */
	uint32_t n_trend;
	char session[128]; /* as the daemon is asked; "": the newest live one */
	uint32_t pid;      /* 0: all jobs */
	uint8_t device[16];
	bool sorted, of_device, paused, help, typing, ends, bad;
	char typed[TOP_FILTER], words[512]; /* words: in place of the keys; bad: of what failed */
};

static inline const struct look *newest(const struct screen *s)
{
	return s->n_looks > 0 ? &s->look[s->n_looks - 1] : NULL;
}

/* What the newest is compared with; NULL: nothing, so it is all that was recorded. */
static inline const struct look *oldest(const struct screen *s)
{
	return s->n_looks > 1 ? &s->look[0] : NULL;
}

static inline bool has_color(const struct screen *s)
{
	return s->c->color && has_colors();
}

void top_draw(struct screen *s); /* in protonctl_top_draw.c */

#endif
