/* SPDX-License-Identifier: MIT. label.h: what people call a session: its name, its tags, its note.
 * What may be in them, and a list of tags as text. */
#ifndef PROTOND_SESSION_LABEL_H
#define PROTOND_SESSION_LABEL_H

#include <stdbool.h>
#include <stddef.h>

#define LABEL_NAME 128 /* bytes, with the NUL; as session.name, session.note and session.tags */
#define LABEL_NOTE 128
#define LABEL_TAG  32
#define LABEL_TAGS 256 /* all tags of a session, with a space between them */

/* NULL: it may be one; else why not, in words. */
const char *label_name_wrong(const char *name); /* not "" */
const char *label_note_wrong(const char *note); /* "" is none */
const char *label_tag_wrong(const char *tag);

bool label_has_tag(const char *tags, const char *tag);
/* What is changed, by a text that may be one. */
enum label_kind { LABEL_IS_NAME, LABEL_IS_NOTE, LABEL_IS_TAG, LABEL_IS_NO_TAG, LABEL_KINDS };
const char *label_wrong(enum label_kind kind, const char *text); /* one of the three above */
/* -ENOSPC: no more tags go in. */
#define LABEL_FULL "its tags would take more than 255 bytes together"
int label_apply(char name[LABEL_NAME], char note[LABEL_NOTE], char tags[LABEL_TAGS],
	enum label_kind kind, const char *text);

/* -ENOSPC: no more go in. 0 also when it has it. */
int label_add_tag(char tags[LABEL_TAGS], const char *tag);
void label_drop_tag(char tags[LABEL_TAGS], const char *tag);

#endif
