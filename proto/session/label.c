/* SPDX-License-Identifier: MIT. label.c: what people call a session. */
#include "label.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

static bool has_controls(const char *text)
{
	const unsigned char *p;

	for (p = (const unsigned char *)text; *p != '\0'; p++)
		if (*p < 0x20 || *p == 0x7f)
			return true;
	return false;
}

const char *label_name_wrong(const char *name)
{
	if (*name == '\0')
		return "empty session name; is a shell variable unset?";
	if (strlen(name) >= LABEL_NAME)
		return "name must be text of at most 127 bytes";
	if (*name == '@' || has_controls(name))
		return "name must not begin with @, and must not have control characters";
	return NULL;
}

const char *label_note_wrong(const char *note)
{
	if (strlen(note) >= LABEL_NOTE)
		return "note must be text of at most 127 bytes";
	return has_controls(note) ? "note must be one line, without control characters" : NULL;
}

const char *label_tag_wrong(const char *tag)
{
	const char *p;

	for (p = tag; *p != '\0' && (isalnum((unsigned char)*p) || strchr("._:+=/-", *p) != NULL);)
		p++;
	if (*tag == '\0' || *p != '\0' || p - tag >= LABEL_TAG)
		return "a tag must be 1 to 31 letters, digits or ._:+=/-";
	return NULL;
}

/* Where it stands; behind all of them: nowhere. */
static size_t find(const char *tags, const char *tag)
{
	const size_t n = strlen(tag);
	size_t at = 0;

	while (tags[at] != '\0' && (n == 0 || strncmp(tags + at, tag, n) != 0 ||
					   (tags[at + n] != '\0' && tags[at + n] != ' '))) {
		at += strcspn(tags + at, " ");
		at += strspn(tags + at, " ");
	}
	return at;
}

bool label_has_tag(const char *tags, const char *tag)
{
	return tags[find(tags, tag)] != '\0';
}

int label_add_tag(char tags[LABEL_TAGS], const char *tag)
{
	const size_t have = strlen(tags), n = strlen(tag);

	if (label_has_tag(tags, tag))
		return 0;
	if (have + 1 + n >= LABEL_TAGS)
		return -ENOSPC;
	if (have > 0)
		tags[have] = ' ';
	memcpy(tags + have + (have > 0), tag, n + 1);
	return 0;
}

void label_drop_tag(char tags[LABEL_TAGS], const char *tag)
{
	const size_t at = find(tags, tag);
	size_t rest = at;

	if (tags[at] == '\0')
		return;
	rest += strlen(tag);
	rest += strspn(tags + rest, " ");
	memmove(tags + at, tags + rest, strlen(tags + rest) + 1);
	if (tags[at] == '\0' && at > 0)
		tags[at - 1] = '\0';
}

const char *label_wrong(enum label_kind kind, const char *text)
{
	if (kind == LABEL_IS_NAME)
		return label_name_wrong(text);
	return kind == LABEL_IS_NOTE ? label_note_wrong(text) : label_tag_wrong(text);
}

int label_apply(char name[LABEL_NAME], char note[LABEL_NOTE], char tags[LABEL_TAGS],
	enum label_kind kind, const char *text)
{
	if (kind == LABEL_IS_NAME)
		snprintf(name, LABEL_NAME, "%s", text);
	else if (kind == LABEL_IS_NOTE)
		snprintf(note, LABEL_NOTE, "%s", text);
	else if (kind == LABEL_IS_TAG)
		return label_add_tag(tags, text);
	else
		label_drop_tag(tags, text);
	return 0;
}
