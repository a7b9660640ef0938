/* SPDX-License-Identifier: MIT. protonctl_file.h: the file that a session is written to. For `run`
 * and `finalize`. */
#ifndef PROTOND_PROTONCTL_FILE_H
#define PROTOND_PROTONCTL_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats.h"
#include "protonctl_line.h"
#include "rpc.h"

/* For help: what its name may end in. */
#define OUTPUT_FILES FORMAT_FILES ", or .html, a page to look at"

/* Expands %h %p %q{VAR} %%. -EINVAL, -ENAMETOOLONG with words. */
int expand_name(const char *text, int64_t pid, char *ret, size_t n, struct err *e);
/* Whether -o FILE can be written, before there is anything to write. -EINVAL, -EEXIST, ... in
 * c->err. */
int output_check(struct ctl *c, const char *path);
/* Exports a session in the format of the file's name; the file is complete or not there. force:
 * replaces an old one. */
int export_file(struct rpc *r, const char *session, const char *path, bool force, struct err *e);

#endif
