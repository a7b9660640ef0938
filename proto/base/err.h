/* SPDX-License-Identifier: MIT. err.h: an error with words for people, owned by the caller. */
#ifndef PROTOND_BASE_ERR_H
#define PROTOND_BASE_ERR_H

#include <errno.h>

struct err {
	int code; /* -errno; 0: none */
	char text[512];
};

/* Sets both and returns code, so that `return err_set(e, -ENOENT, "no session '%s'", name);` works.
 * e may be NULL. */
int err_set(struct err *e, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

static inline int neg_errno(void)
{
	return errno > 0 ? -errno : -EIO;
}

#endif
