/* SPDX-License-Identifier: MIT. known.c: what a process knows of the daemon before it asks. */
#include "known.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "doorbell.h"
#include "futex.h"
#include "hello.h"

struct known known;

int known_place(bool own, char ret[static PLACE_PATH_MAX])
{
	struct place_list l;

	pd_lock(&pd.lock);
	l = pd.env.places;
	pd_unlock(&pd.lock);
	return (own ? place_pick_private : place_pick)(&l, ret, PLACE_PATH_MAX);
}

/* The folder may have another name here (a bind mount): it lies beside the socket, if anywhere. */
void known_rings(const char *dir, char rings[static PLACE_PATH_MAX])
{
	char here[PLACE_PATH_MAX];

	if (rings[0] != '\0' &&
		(size_t)snprintf(here, sizeof(here), "%s/" RV_RINGS_DIR, dir) < sizeof(here) &&
		access(here, W_OK) == 0)
		memcpy(rings, here, sizeof(here));
}

void known_keep(const struct rv_welcome *w, const char dir[static PLACE_PATH_MAX], bool own)
{
	atomic_fetch_add(&known.seq, 1);
	known.welcome = *w;
	memcpy(known.dir, dir, sizeof(known.dir));
	known.own = own;
	atomic_store(&known.want, w->want);
	atomic_fetch_add(&known.seq, 1);
}

static bool records(uint32_t want)
{
	return (want & ~(uint32_t)(WANT_GPU | WANT_GPU_ARMED | WANT_GPU_PAUSE)) != 0;
}

/* Its parent's daemon is the one that a child would ask. */
bool known_of_parent(void)
{
	char dir[PLACE_PATH_MAX];

	return atomic_load(&known.seq) % 2 == 0 && records(atomic_load(&known.want)) &&
	       known_place(known.own, dir) == 0 && strcmp(dir, known.dir) == 0;
}

/* What `protonctl run` starts is recorded whatever others are. */
bool known_of_hello(void)
{
	struct rv_welcome w;
	char dir[PLACE_PATH_MAX];

	if (known_place(false, dir) < 0 || !pd_hello(dir, &w))
		return false;
	if (pd.has_token)
		w.want |= WANT_SCOPES | WANT_CPU_TIME | WANT_METRICS;
	known_keep(&w, dir, false);
	return records(w.want);
}
