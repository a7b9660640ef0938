/* SPDX-License-Identifier: MIT. owed.h: what each user has in the journal that the store does not
 * have yet: the journal's share of one user. For the loop. Loop thread.
 *
 * Who has his share there is not drained until the store has taken some of it. His lanes fill, and
 * what they refuse is his own loss, counted where it happens; all others find the journal's room as
 * it was.
 */
#ifndef PROTOND_DAEMON_OWED_H
#define PROTOND_DAEMON_OWED_H

#include <stdbool.h>
#include <stdint.h>

#include "share.h"

#define OWED_MARKS 4u /* more than there are transactions under way */

struct owed {
	struct owed_user *user;
	uint32_t n, cap;
	uint64_t put, stored, marks; /* of all users; marks set so far */
	struct share share;          /* bytes */
};

void owed_fini(struct owed *o);
void owed_put(struct owed *o, uint32_t uid, uint64_t bytes); /* no memory: is not counted */
bool owed_is_over(const struct owed *o, uint32_t uid);       /* he is to wait */
bool owed_is_large(const struct owed *o); /* somebody has half his share: let the store have it */
/* What was put so far goes into a transaction; and that is stored. */
uint64_t owed_mark(struct owed *o);
void owed_stored(struct owed *o, uint64_t mark);

#endif
