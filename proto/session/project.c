/* SPDX-License-Identifier: MIT. project.c: which scopes GPU work is shown in. */
#include "project.h"

/* What stands above the work; of scopes below "<captured_at>" it is known that they are. */
static uint32_t scopes_above(const struct projecting *p, struct projected *ret)
{
	const struct known *v = p->names->v;
	uint32_t at = v[p->node].parent, n = 0, captured = 0, steps;

	for (steps = 0; at != PROFILE_NONE && steps < TRACE_DEPTH_MAX; at = v[at].parent, steps++) {
		if (trace_names_timed(p->names, at))
			ret[n++] = (struct projected){.node = at, .as = PROJECTED_OPEN};
		for (; v[at].kind == NODE_CAPTURED && captured < n; captured++)
			ret[captured].as = PROJECTED_LAUNCH;
	}
	return n;
}

/* A thread without scopes of its own is in the main thread's. */
static bool is_open(const struct projecting *p, struct projected *x)
{
	return p->find(p->arg, p->thread, x->node, p->launched, x) ||
	       (p->main != p->thread && p->find(p->arg, p->main, x->node, p->launched, x));
}

uint32_t project_scopes(const struct projecting *p, struct projected ret[TRACE_DEPTH_MAX])
{
	const uint32_t n = scopes_above(p, ret);
	uint32_t i, thread = p->thread;
	uint64_t in = 0; /* the instance around it */

	for (i = n; i-- > 0;) {
		struct projected *x = &ret[i];

		if (x->as == PROJECTED_OPEN && is_open(p, x)) {
			thread = x->thread;
			in = x->key;
			continue;
		}
		x->as = x->as == PROJECTED_OPEN ? PROJECTED_RUN : PROJECTED_LAUNCH;
		x->key = x->as == PROJECTED_LAUNCH ? p->launched : in;
		x->thread = thread;
	}
	return n;
}
