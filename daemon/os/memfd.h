/* SPDX-License-Identifier: MIT. memfd.h: results too long for a message, as files in memory that
 * nobody can change once they are sealed. */
#ifndef PROTOND_MEMFD_H
#define PROTOND_MEMFD_H

#include <stddef.h>
#include <stdint.h>

#include "err.h"
#include "share.h"

/* Any thread. */
int memfd_new(void);    /* empty; a descriptor, or -errno */
int memfd_seal(int fd); /* read-only from here on, and at its beginning; -errno */
int memfd_of(const void *bytes, size_t n); /* these bytes, sealed; a descriptor, or -errno */

/* What was given away is memory of this process as long as anybody has it open or mapped, so it is
 * kept account of. The loop's thread. */
#define LENT_HELP  "ls -l /proc/[0-9]*/fd shows who has a protond-export open"
#define LENT_BYTES (2ull << 30) /* the most that one user may hold, of four times as much */
struct lent {
	struct lent_one *first;
	uint64_t n;
	struct share share; /* of them, in number */
};

/* A sealed memfd to give to this user: *fd becomes the receiver's descriptor (caller closes), or
 * stays. -EDQUOT: it holds too much; -ENOMEM, -errno. */
int memfd_lend(struct lent *l, uint32_t uid, int *fd, struct err *e);
void memfd_returned(struct lent *l); /* forgets what nobody has any more: once a second */
void memfd_forget(struct lent *l);   /* all of it; theirs stay as they are */

#endif
