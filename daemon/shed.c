/* SPDX-License-Identifier: MIT. shed.c: memory that jobs leave behind.
 *
 * A ring is memory of its job's. When the process is gone the daemon and systemd hold it, until it
 * is drained, and nothing bounds its user by it any more but this. A private daemon's user has only
 * himself.
 */
#include "shed.h"

#include <sys/stat.h>

#include "daemon.h"
#include "drain.h"
#include "log.h"
#include "rings.h"
#include "share.h"

#define LEFT_BYTES   (1ull << 30) /* a quarter is one user's */
#define SHED_AT_ONCE 64u

static bool is_left(const struct ring *r)
{
	return r->state == RING_GONE && r->reader.lane != NULL && !r->unreadable;
}

static uint64_t weigh(struct rings *all)
{
	uint64_t sum = 0;
	struct ring *r;
	struct stat st;

	for (r = all->first; r != NULL; r = r->next) {
		r->left_bytes = is_left(r) && fstat(r->reader.fd, &st) == 0
					? (uint64_t)st.st_blocks * 512
					: 0;
		sum += r->left_bytes;
	}
	return sum;
}

/* Of that user; *ret_oldest: of those with memory. */
static uint64_t left_of(const struct rings *all, uint32_t uid, struct ring **ret_oldest)
{
	struct ring *r, *oldest = NULL;
	uint64_t sum = 0;

	for (r = all->first; r != NULL; r = r->next) {
		if (r->uid != uid || r->left_bytes == 0)
			continue;
		sum += r->left_bytes;
		if (oldest == NULL || r->gone_ns < oldest->gone_ns)
			oldest = r;
	}
	*ret_oldest = oldest;
	return sum;
}

static struct ring *next_to_go(const struct rings *all, const struct share *s, uint64_t used)
{
	struct ring *r, *oldest;
	uint64_t own;

	for (r = all->first; r != NULL; r = r->next) {
		if (r->left_bytes == 0)
			continue;
		own = left_of(all, r->uid, &oldest);
		if (share_room(s, used, own, 0) != 0)
			return oldest;
	}
	return NULL;
}

void rings_shed(struct rings *all)
{
	static struct log_cause cause;
	const struct share s = share_of(LEFT_BYTES, false);
	struct daemon *d = all->d;
	uint64_t used = d->private ? 0 : weigh(all);
	struct ring *r;
	uint32_t n;

	for (n = 0; n < SHED_AT_ONCE && used > s.user; n++) {
		r = next_to_go(all, &s, used);
		if (r == NULL || drain_give_up(r) < 0)
			return;
		log_cause(&cause, LOG_WARN, "ring_given_up", "pid=%u uid=%u bytes=%llu", r->pid,
			r->uid, (unsigned long long)r->left_bytes);
		used -= r->left_bytes;
		r->left_bytes = 0;
		d->given_up++;
		d->given_up_uid = r->uid;
	}
}
