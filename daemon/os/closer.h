/* SPDX-License-Identifier: MIT. closer.h: closes what a job handed over, on a thread of its own:
 * the close() of a socket that lingers, or of a file that the job itself serves (FUSE), waits as
 * long as the job likes, and that of a large memory file as long as its pages take. */
#ifndef PROTOND_CLOSER_H
#define PROTOND_CLOSER_H

struct closer;

int closer_new(struct closer **ret); /* -errno; it lasts as long as the process */
/* Takes fd, and does not wait. While the thread is held up, descriptors wait in line. Without a
 * thread (NULL), or memory, it is closed here. */
void closer_take(struct closer *c, int fd);

#endif
