/* SPDX-License-Identifier: MIT. export_format.h: foreign formats, one table of them. A format is a
 * file here and a row of FORMATS (proto/terms/formats.h), which declares its functions:
 * NAME_write(), and where it is read back NAME_sniff() and NAME_read(). One that is missing does
 * not link. */
#ifndef PROTOND_EXPORT_EXPORT_FORMAT_H
#define PROTOND_EXPORT_EXPORT_FORMAT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "err.h"
#include "formats.h"
#include "profile.h"

struct sqlite3;

/* A tree, into one malloc()ed buffer. -ENOMEM; -EFBIG: over EXPORT_TEXT_MAX, of a format that
 * writes paths out. */
#define EXPORT_TEXT_MAX ((size_t)256 << 20)
typedef int export_tree_fn(const struct profile *p, char **ret_text, size_t *ret_bytes);
struct export_left {     /* events that a timeline does not have */
	uint64_t gone;   /* they had left the store over a ceiling before */
	uint64_t summed; /* they came too fast to be kept one by one: bursts (trace.h) */
};
/* The timeline, or all, of session `id` of an open store, to a file which the caller opens, flushes and
 * closes. ret_left may be NULL. Words in e: -ENOENT no such session, -ENODATA it kept no timeline, -EBADMSG a damaged chunk, -ENOSPC
 * and other failures to write, -ENOMEM. */
typedef int export_timeline_fn(struct sqlite3 *db, int64_t id, const struct profile_select *s,
	FILE *to, struct export_left *ret_left, struct err *e);
/* Likewise into a folder, which is there and empty; each such has a file of this name. */
#define EXPORT_FOLDER_MARK "traces.otf2"
typedef int export_folder_fn(struct sqlite3 *db, int64_t id, const struct profile_select *s,
	const char *folder, struct export_left *ret_left, struct err *e);
/* Whether bytes begin like a file of this format. */
typedef bool export_sniff_fn(const char *bytes, size_t n);
/* The profile in a file. Believes no byte. -EBADMSG, -EFBIG over 1 GiB, -ENOMEM, with words. */
typedef int export_read_fn(const char *bytes, size_t n, struct profile **ret, struct err *e);

struct export_format {
	const char *name, *ending;    /* what a file's name ends in: the one or the other */
	bool protons;                 /* Proton writes it, too: see session_mode */
	export_tree_fn *tree;         /* how it is written: from a tree, */
	export_timeline_fn *timeline; /* from a session in its store, */
	export_folder_fn *folder;     /* or that as a folder; the others are NULL */
	export_sniff_fn *sniff;       /* NULL, both: it is not read back */
	export_read_fn *read;
};
extern const struct export_format export_formats[FORMAT_COUNT];

/* A file of whichever of the formats its bytes are. */
export_read_fn export_read;

#define FROM_TREE(name)     export_tree_fn name##_write;
#define FROM_TIMELINE(name) export_timeline_fn name##_write;
#define FROM_FOLDER(name)   export_folder_fn name##_write;
#define FROM_SESSION(name)  export_timeline_fn name##_write;
#define READ_BACK(name)               \
	export_sniff_fn name##_sniff; \
	export_read_fn name##_read;
#define READ_NOT(name)
#define X(name, from, read, ...) FROM_##from(name) READ_##read(name)
FORMATS(X)
#undef X
#undef FROM_TREE
#undef FROM_TIMELINE
#undef FROM_FOLDER
#undef FROM_SESSION
#undef READ_BACK
#undef READ_NOT

#endif
