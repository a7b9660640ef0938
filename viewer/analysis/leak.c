/* SPDX-License-Identifier: MIT. leak.c: growth of driver's memory, and whose it is. */
#include "leak.h"

#include <stdlib.h>
#include <string.h>

#include "gpu_terms.h"
#include "holding.h"

#define LATE 3u /* steps at the end whose blocks may still be freed */

struct reading {
	const struct profile *p;
	struct leak *leak;
	uint32_t process; /* so far */
};

/* Whether it is the node of that path: names may have slashes of their own. */
static bool is_at(const struct profile *p, uint32_t node, const char *path, size_t n)
{
	const char *name = p->node[node].name;
	size_t bytes;

	for (; p->node[node].parent != PROFILE_NONE; node = p->node[node].parent) {
		name = p->node[node].name;
		bytes = strlen(name);
		if (bytes > n || memcmp(path + n - bytes, name, bytes) != 0)
			return false;
		n -= bytes;
		if (n > 0 && path[n - 1] != '/')
			return false;
		n -= n > 0;
	}
	return n == 0;
}

static uint32_t node_of(const struct profile *p, const char *path)
{
	uint32_t i;

	for (i = 0; i < p->n_nodes; i++)
		if (p->node[i].kind == NODE_SCOPE && is_at(p, i, path, strlen(path)))
			return i;
	return PROFILE_NONE;
}

/* Of the blocks that came behind the warm-up and before the last steps, those that are still there. */
static void find_site(const struct reading *r, const struct holding *x, uint32_t account)
{
	const uint64_t from = x->step[HOLDING_WARM_UP].begin_ns,
		       to = x->step[x->n_steps - LATE].begin_ns;
	uint64_t *bytes = calloc(x->h->n_owners + 1, sizeof(*bytes)), all = 0;
	uint32_t i, most = 0;

	for (i = 0; bytes != NULL && i < x->h->n_blocks; i++) {
		const struct held_block *b = &x->h->block[i];

		if (x->h->owner[b->owner].account != account || b->ns < from || b->ns >= to)
			continue;
		bytes[b->owner] += b->bytes;
		all += b->bytes;
		most = bytes[b->owner] > bytes[most] ? b->owner : most;
	}
	if (all > 0) {
		r->leak->node = node_of(r->p, x->scope[most]);
		r->leak->share = (double)bytes[most] / (double)all;
	}
	free(bytes);
}

static int on_process(void *arg, const struct holding *x)
{
	struct reading *r = arg;
	struct holding_growth g;
	uint32_t i;

	r->leak->stored = true;
	for (i = 0; i < x->h->n_accounts; i++) {
		if (held_is_sum(x->h->account[i]->kind))
			continue;
		holding_growth(x, x->h->account[i], 0, 0, &g);
		r->leak->known |= g.g.known;
		if (!g.g.grows || (r->leak->g.grows && g.g.slope <= r->leak->g.slope))
			continue;
		r->leak->g = g.g;
		r->leak->process = r->process;
		r->leak->steps = g.all;
		r->leak->node = PROFILE_NONE;
		if (x->n_steps > HOLDING_WARM_UP + LATE)
			find_site(r, x, i);
	}
	r->process++;
	return 0;
}

int leak_read(struct sqlite3 *db, int64_t session, const char *process, const struct profile *p,
	struct leak *ret, struct err *e)
{
	struct reading r = {.p = p, .leak = ret};

	*ret = (struct leak){.node = PROFILE_NONE};
	return holding_each(db, session, process, on_process, &r, e);
}
