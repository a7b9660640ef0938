/* SPDX-License-Identifier: MIT. below.h: files below a directory of ours that others write in: no
 * link is followed there, and no mount entered. A user may mount a FUSE of his own over a directory
 * or a file of his, and that may never answer. And a memory file of another process. For daemon/. */
#ifndef PROTOND_JOBS_BELOW_H
#define PROTOND_JOBS_BELOW_H

/* As openat(), on dir's file system; O_CLOEXEC always. -EXDEV: a mount is in the way. Else -errno. */
int below_open(int dir, const char *path, int flags);
void below_unlink(int dir, const char *path); /* if it is there */
/* For reading, by its name in /proc/PID/fd. -EXDEV: it is no memfd, whatever its link says. */
int below_memory(int dir, const char *name);

#endif
