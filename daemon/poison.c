/* SPDX-License-Identifier: MIT. poison.c: entries that end the daemon. */
#include "poison.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon.h"
#include "fold.h"
#include "journal.h"
#include "log.h"
#include "record.h"

#define POISON_FILE  "applying"
#define POISON_MAGIC 0x31534f50u /* "POS1" */
#define POISON_MAX   64u         /* left out; beyond, the oldest are tried again */

struct poison {
	uint32_t magic, n;   /* n: entries left out so far */
	_Atomic uint64_t at; /* key of the entry that is being applied; 0: none */
	uint64_t suspect;    /* key of the one that the last daemon died of */
	uint32_t starts;     /* that died of it, */
	uint32_t lives;      /* and daemons at work */
	uint32_t starting;   /* 1: during a start */
	uint32_t pad0;
	uint64_t key[POISON_MAX];
};

/* The same for an entry and its replay, and for a piece of a lane that is drained once more. */
static uint64_t key_of(const struct journal_entry *e)
{
	const struct j_lane *l = (const void *)(e + 1);
	const struct j_table *t = (const void *)(e + 1);
	const uint32_t bytes = e->bytes - (uint32_t)sizeof(*e);
	uint32_t crc = crc32c(0, e->ring, sizeof(e->ring));

	if ((e->type == J_LANE || e->type == J_SUMS) && bytes >= sizeof(*l)) {
		crc = crc32c(crc, &l->from, sizeof(l->from));
		return (uint64_t)e->type << 48 | (uint64_t)(l->lane & 0xffff) << 32 | crc;
	}
	if (e->type == J_TABLE && bytes >= sizeof(*t))
		crc = crc32c(crc, t, sizeof(*t));
	else
		crc = crc32c(crc, e + 1, bytes);
	return (uint64_t)e->type << 48 | 1ull << 47 | crc;
}

static bool is_left_out(const struct poison *o, uint64_t key)
{
	uint32_t i;

	for (i = 0; i < o->n && i < POISON_MAX; i++)
		if (o->key[i] == key)
			return true;
	return false;
}

/* What the daemon before us died of, if it died of one. */
static void judge(struct poison *o)
{
	const uint64_t at = atomic_load_explicit(&o->at, memory_order_relaxed);

	if (at != 0 && at != o->suspect) {
		o->suspect = at;
		o->starts = o->lives = 0;
	}
	if (at != 0) {
		o->starts += o->starting;
		o->lives += 1 - o->starting;
		log_line(LOG_WARN, "died_of_entry", "type=%u starts=%u lives=%u",
			(unsigned)(at >> 48), o->starts, o->lives);
	}
	if (at != 0 && (o->starts >= POISON_DEATHS || o->lives >= POISON_DEATHS) &&
		!is_left_out(o, at))
		o->key[o->n++ % POISON_MAX] = at;
	atomic_store_explicit(&o->at, 0, memory_order_relaxed);
}

void poison_open(struct poison **at, const struct daemon *d)
{
	const int fd =
		openat(d->runtime_fd, POISON_FILE, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	struct poison *o;
	void *m = MAP_FAILED;

	poison_close(at);
	/* Backed: a store into a mapping of a full tmpfs would be a SIGBUS. */
	if (fd >= 0 && ftruncate(fd, sizeof(struct poison)) == 0 &&
		posix_fallocate(fd, 0, sizeof(struct poison)) == 0)
		m = mmap(NULL, sizeof(struct poison), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (fd >= 0)
		(void)close(fd);
	if (m == MAP_FAILED) {
		log_line(LOG_WARN, "entries_not_guarded", "error=%d dir=%s", errno, d->runtime);
		return;
	}
	o = *at = m;
	if (o->magic != POISON_MAGIC || o->starting > 1)
		*o = (struct poison){.magic = POISON_MAGIC};
	judge(o);
	o->starting = d->intake == NULL;
}

void poison_close(struct poison **at)
{
	if (*at != NULL)
		(void)munmap(*at, sizeof(**at));
	*at = NULL;
}

/* A lane's bytes are said to be lost in their place; a process ends, whatever it had; the other types
 * leave nothing. */
static int apply_instead(struct daemon *d, const struct journal_entry *e)
{
	const struct j_lane *l = (const void *)(e + 1);
	struct {
		struct journal_entry head;
		struct j_lane j;
		struct rec_lost lost;
	} x = {.head = *e, .lost = {.count = 1, .last = INT64_MAX}};
	uint32_t lane_bytes;

	d->skipped_entries++;
	log_line(LOG_ERR, "entry_skipped",
		"type=%u bytes=%u next=\"it ended protond twice: please report it, with the "
		"journal\"",
		e->type, e->bytes);
	if (e->type == J_END)
		return fold_end_instead(d->fold, e);
	lane_bytes = fold_lane_bytes(d->fold, e->ring);
	if (e->type != J_LANE || e->bytes < sizeof(*e) + sizeof(*l) || lane_bytes == 0)
		return 0;
	x.head.bytes = sizeof(x);
	x.j = *l;
	x.j.bytes = sizeof(x.lost);
	x.lost.hdr = REC_HDR(sizeof(x.lost), REC_LOST, l->from / lane_bytes, 0, LOST_SKIPPED);
	return fold_apply(d->fold, &x.head);
}

int poison_apply(struct poison *o, struct daemon *d, const struct journal_entry *e)
{
	uint64_t key;
	int r;

	if (o == NULL)
		return fold_apply(d->fold, e);
	key = key_of(e);
	if (o->n != 0 && is_left_out(o, key))
		return apply_instead(d, e);
	o->starting = d->intake == NULL;
	atomic_store_explicit(&o->at, key, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst); /* before what may end us */
	r = fold_apply(d->fold, e);
	atomic_signal_fence(memory_order_seq_cst);
	atomic_store_explicit(&o->at, 0, memory_order_relaxed);
	return r;
}
