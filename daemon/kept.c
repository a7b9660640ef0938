/* SPDX-License-Identifier: MIT. kept.c: rings without a name, kept by systemd while there is no
 * daemon (FDSTORE=1, sd_notify(3)).
 *
 * Such a ring is a memory file that the job and we have open, and nobody finds it again when we
 * were killed: the job may be gone, and another user's descriptors are not ours to look at. What
 * the journal holds of it would lack its words. So process 1 has a descriptor of it, too, from the
 * first sight of the ring until its END is stored, and hands it to the next daemon.
 *
 *   offered ──► kept ──► END stored: let go ──► a second later, or after the next commit: dropped
 *                └─ killed ─► received ─► its ring's ─► kept
 *                                └─ nobody's, or no ring any more ─► forgotten, closed
 *
 * It is the job's file, and process 1 must not suffer by it: what it gets is memory (reader_open)
 * that cannot grow (sealed), so that closing it takes no longer than RING_FILE_MAX lasts.
 */
#include "kept.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "below.h"
#include "closer.h"
#include "daemon.h"
#include "log.h"
#include "manager.h"
#include "ring_ctl.h"
#include "rings.h"

#define NAME_BYTES 64u

struct kept {
	uint32_t n, room;
	struct kept_fd {
		uint8_t uuid[16];
		int fd; /* -1: taken */
	} of[];
};

static void name_of(const uint8_t uuid[16], char ret[NAME_BYTES])
{
	size_t n = (size_t)snprintf(ret, NAME_BYTES, MANAGER_KEPT);
	int i;

	for (i = 0; i < 16; i++)
		n += (size_t)snprintf(ret + n, NAME_BYTES - n, "%02x", uuid[i]);
}

static bool may_be_kept(const struct ring *r)
{
	struct stat st;
	int seals;

	if (r->state != RING_LIVE || r->file[0] != '\0' || r->reader.lane == NULL)
		return false;
	seals = fcntl(r->reader.fd, F_GET_SEALS);
	/* After the seals: memory behind the end can be had before them only. */
	return seals >= 0 && (seals & F_SEAL_GROW) != 0 && fstat(r->reader.fd, &st) == 0 &&
	       (uint64_t)st.st_blocks * 512 <= RING_FILE_MAX;
}

/* False: no further one now. Whether there is room for it, systemd says to its own journal only. */
static bool offer(struct ring *r)
{
	static struct log_cause cause;
	char name[NAME_BYTES], state[NAME_BYTES + 32];
	int x;

	if (r->kept || !may_be_kept(r))
		return true;
	name_of(r->uuid, name);
	(void)snprintf(state, sizeof(state), "FDSTORE=1\nFDPOLL=0\nFDNAME=%s", name);
	x = manager_notify(state, r->reader.fd);
	r->kept = x == 0;
	if (x < 0)
		log_cause(&cause, LOG_WARN, "ring_not_kept", "pid=%u error=%d", r->pid, -x);
	return x == 0;
}

void kept_offer(struct ring *r)
{
	if (manager_keeps(r->all->d->private))
		(void)offer(r);
}

static int forget_name(const char *name)
{
	char state[NAME_BYTES + 32];

	(void)snprintf(state, sizeof(state), "FDSTOREREMOVE=1\nFDNAME=%s", name);
	return manager_notify(state, -1);
}

/* Its pages are freed by who closes it last: that is to be us, so we do it some time after this. */
static bool let_go(struct ring *r)
{
	char name[NAME_BYTES];

	if (!r->kept)
		return false;
	name_of(r->uuid, name);
	r->kept = forget_name(name) == -EAGAIN;
	r->let_go = true;
	return true;
}

static struct kept_fd *room_for_one(struct rings *all)
{
	const uint32_t n = all->kept != NULL ? all->kept->n : 0,
		       room = all->kept != NULL ? all->kept->room : 0;
	struct kept *grown = all->kept;

	if (n == room) {
		grown = realloc(all->kept, sizeof(*grown) + (2ull * n + 16) * sizeof(grown->of[0]));
		if (grown == NULL)
			return NULL;
		grown->room = 2 * n + 16;
		all->kept = grown;
	}
	grown->n = n + 1;
	return &grown->of[n];
}

struct receiving {
	struct rings *all;
	int r;
};

static void receive(void *arg, int fd, const char *name, size_t bytes)
{
	struct receiving *to = arg;
	char whole[NAME_BYTES] = "";
	struct kept_fd k = {.fd = fd}, *at = NULL;

	if (bytes < sizeof(whole))
		memcpy(whole, name, bytes);
	if (!ring_name_uuid(
		    whole + sizeof(MANAGER_KEPT) - 1, "", k.uuid)) { /* not our name, or cut */
		(void)forget_name(whole);
		closer_take(to->all->closer, fd);
		return;
	}
	if (to->r == 0)
		at = room_for_one(to->all);
	if (at == NULL) {
		to->r = -ENOMEM;
		closer_take(to->all->closer, fd);
		return;
	}
	*at = k;
}

int kept_receive(struct rings *all)
{
	struct receiving to = {all, 0};

	manager_kept(receive, &to);
	return to.r;
}

int kept_take(struct rings *all, const uint8_t uuid[16])
{
	uint32_t i;
	int fd;

	for (i = 0; all->kept != NULL && i < all->kept->n; i++) {
		fd = all->kept->of[i].fd;
		if (fd < 0 || memcmp(all->kept->of[i].uuid, uuid, 16) != 0)
			continue;
		all->kept->of[i].fd = -1;
		return fd;
	}
	return -1;
}

/* Of rings that ended just before we were killed, and what is no ring any more. One that came twice
 * is closed, and its name stays with the ring. What systemd cannot be told now, later. */
void kept_leave(struct rings *all)
{
	const uint32_t n = all->kept != NULL ? all->kept->n : 0;
	char name[NAME_BYTES];
	uint32_t i, left = 0;

	for (i = 0; i < n; i++) {
		struct kept_fd *k = &all->kept->of[i];
		const struct ring *r = ring_find(all, k->uuid);

		if (k->fd >= 0)
			closer_take(all->closer, k->fd);
		k->fd = -1;
		name_of(k->uuid, name);
		if ((r == NULL || !r->kept) && forget_name(name) == -EAGAIN)
			all->kept->of[left++] = *k;
	}
	if (all->kept != NULL)
		all->kept->n = left;
	if (left != 0)
		return;
	free(all->kept);
	all->kept = NULL;
}

void kept_again(struct rings *all)
{
	struct ring *r, *next;

	if (!manager_keeps(all->d->private))
		return;
	if (all->kept != NULL)
		kept_leave(all);
	for (r = all->first; r != NULL; r = next) {
		next = r->next;
		if (r->let_go && !r->closing && !let_go(r))
			ring_drop(r);
	}
	for (r = all->first; r != NULL && offer(r); r = r->next)
		;
}

void ring_files_remove(const struct ring *r)
{
	char ring[RING_NAME_BYTES_TEXT + 8];

	ring_control_remove(r);
	if (r->file[0] == '\0')
		return;
	(void)snprintf(ring, sizeof(ring), "%s.ring", r->file);
	below_unlink(r->all->d->rings_fd, ring);
}

void rings_stored(struct rings *all, uint64_t position)
{
	struct ring *r, *next;

	for (r = all->first; r != NULL; r = next) {
		next = r->next;
		if (r->state != RING_ENDED || r->end_position == 0 || r->end_position > position ||
			r->closing)
			continue;
		ring_files_remove(r);
		if (!let_go(r))
			ring_drop(r);
	}
}
