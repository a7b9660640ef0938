/* SPDX-License-Identifier: MIT. holders.h: who holds a program's memory, as the driver and torch gave it: what one process has in
 * one session, by device and kind, and as the bytes of a row of `memory`. Bounded: what is over a ceiling is counted
 * as other's. The fold makes it (allocs.c), viewers read it. Pure; any thread. */
#ifndef PROTOND_SESSION_HOLDERS_H
#define PROTOND_SESSION_HOLDERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"

#define HELD_BYTES_MAX (UINT64_MAX / 4) /* of any number */
#define HELD_ACCOUNTS  64u
#define HELD_OWNERS    2048u  /* an account's (other) among them */
#define HELD_BLOCKS    16384u /* live ones whose owner is known */
#define HELD_POINTS    512u   /* of an account; then each is of a longer time */
#define HELD_POOLS     64u
#define HELD_FRAMES    128u   /* of an account, as with points */
#define HELD_TOP       8u     /* owners of a frame */
#define HELD_WAITING   65536u /* events, and calls, that wait for each other */
#define HELD_HOST      UINT32_MAX
#define HELD_NOBODY    UINT32_MAX /* a node */

struct held_point {
	uint64_t ns; /* CLOCK_MONOTONIC: when it begins */
	uint64_t least, most, last;
};

/* Who held the most at an instant. */
struct held_frame {
	uint64_t ns;
	uint32_t n;
	uint32_t owner[HELD_TOP];
	uint64_t live[HELD_TOP]; /* the largest first */
};

struct held_account {
	uint32_t device; /* of the process's devices; HELD_HOST */
	uint32_t other;  /* place of the owner of what has none */
	uint8_t kind;    /* enum held_kind */
	uint64_t live, blocks, peak, peak_ns;
	uint64_t allocs, alloc_bytes, frees, free_bytes;
	uint64_t unknown; /* frees of what was not seen allocated */
	uint64_t unseen;  /* blocks whose address was given again, so that they were freed unseen */
	uint64_t loose;   /* live blocks that are in no table: (other) has them */
	uint64_t width_ns;
	uint32_t n_points;
	uint32_t version;  /* of the peak; of the fold */
	uint64_t frame_ns; /* between two frames */
	uint32_t n_frames;
	struct held_point point[HELD_POINTS];
	struct held_frame frame[HELD_FRAMES];
};

struct held_owner {
	uint8_t hash[16]; /* of its node; zeroes: (other) */
	uint32_t account;
	uint32_t node; /* of the fold */
	uint32_t
		version; /* of the account's peak that `peak` is of; another: it held then what it holds now */
	uint64_t live, blocks, peak, peak_blocks, most;
};

struct held_block {
	uint64_t address, bytes, ns; /* ns: when it was given */
	uint32_t owner;
};

struct held_pool {
	uint64_t address, reserved, used;
	uint32_t device;
};

struct held_event { /* a MEMORY record */
	uint64_t ns, address, bytes, pool, reserved;
	uint64_t used;
	uint32_t seq; /* as they stand, when they are sorted */
	uint32_t correlation, device;
	uint16_t epoch;
	uint8_t op, kind; /* enum memory_op, enum held_kind */
};

struct held_block_event { /* a BLOCK record */
	uint64_t ns, address, bytes, reserved, active, split, requested;
	uint32_t seq, path, device;
	uint8_t op; /* enum block_op */
};

struct held_call {          /* where events of that id are of */
	uint64_t clock, ns; /* of its end */
	uint32_t correlation, path, python;
	uint16_t epoch;
};

struct holders {
	struct held_account *account[HELD_ACCOUNTS];
	struct held_owner *owner;
	struct held_block *block;
	struct held_event *event;
	struct held_call *call;
	struct held_block_event *torch;
	uint32_t n_accounts, n_owners, cap_owners, n_blocks, cap_blocks, n_events, cap_events,
		n_calls, cap_calls, n_torch, cap_torch;
	struct held_pool pool[HELD_POOLS];
	uint32_t n_pools;
	uint64_t events;   /* so far */
	uint64_t unplaced; /* of them without a call: nobody knows which scope it was */
	uint64_t refused;  /* of accounts or pools over the ceiling */
};

void holders_fini(struct holders *h);
/* What an owner held at its account's peak. */
static inline uint64_t held_at_peak(const struct holders *h, const struct held_owner *o)
{
	return o->version == h->account[o->account]->version ? o->peak : o->live;
}
static inline uint64_t held_blocks_at_peak(const struct holders *h, const struct held_owner *o)
{
	return o->version == h->account[o->account]->version ? o->peak_blocks : o->blocks;
}

/* Sums stay below HELD_BYTES_MAX, and above 0. */
uint64_t held_plus(uint64_t a, uint64_t b);
uint64_t held_minus(uint64_t a, uint64_t b);
/* The owner holds so many bytes and blocks more, or less; before that it is kept what it held at the peak. */
void held_move(struct holders *h, uint32_t owner, uint64_t bytes, uint64_t blocks, bool more);
/* After what happened at ns has moved all that it moves. */
void held_changed(struct holders *h, struct held_account *a, uint64_t ns);
/* The account, held by nobody in particular, has so much now. */
void held_set(struct holders *h, struct held_account *a, uint64_t bytes, uint64_t ns);
/* One more change of what the account holds. */
void held_point_add(struct held_account *a, uint64_t ns);
/* Who holds it, now and then. */
void held_frame_add(const struct holders *h, struct held_account *a, uint64_t ns);

/* The caller frees *ret. -ENOMEM. */
int holders_pack(const struct holders *h, void **ret, uint32_t *ret_n);
/* Bytes of a stranger's database. -EBADMSG with words, -ENOMEM; then *ret is empty. */
int holders_unpack(const void *bytes, size_t n, struct holders *ret, struct err *e);

#endif
