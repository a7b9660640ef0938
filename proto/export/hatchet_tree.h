/* SPDX-License-Identifier: MIT. hatchet_tree.h: what the two readers of .hatchet share: the tree in
 * what a parser gave. */
#ifndef PROTOND_EXPORT_HATCHET_TREE_H
#define PROTOND_EXPORT_HATCHET_TREE_H

#include <jansson.h>

#include "profile.h"

#define HATCHET_FILE_MAX  ((size_t)1 << 30)
#define HATCHET_DEPTH_MAX (2u * PROFILE_DEPTH_MAX + 64) /* of lists and maps */

/* Takes the file's one value. -EBADMSG, -ENOMEM with words. */
int hatchet_tree_read(json_t *file, struct profile **ret_profile, struct err *e);

#endif
