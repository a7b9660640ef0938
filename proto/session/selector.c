/* SPDX-License-Identifier: MIT. selector.c: the words that stand for a session. */
#include "selector.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "label.h"

static int number(const char *text, unsigned long max, uint32_t *ret)
{
	char *end;
	unsigned long v;

	if (!isdigit((unsigned char)*text))
		return -EINVAL;
	errno = 0;
	v = strtoul(text, &end, 10);
	if (errno != 0 || *end != '\0' || v > max)
		return -EINVAL;
	*ret = (uint32_t)v;
	return 0;
}

int selector_parse(const char *ref, struct selector *ret)
{
	*ret = (struct selector){.kind = SELECT_LAST, .tag = ""};
	if (strcmp(ref, "@last") == 0)
		return 0;
	if (strncmp(ref, "@-", 2) == 0)
		return number(ref + 2, SELECTOR_BACK_MAX, &ret->back);
	ret->kind = SELECT_AUTO;
	if (strcmp(ref, "@auto") == 0)
		return 0;
	ret->kind = SELECT_JOB;
	if (strncmp(ref, "@job:", 5) == 0)
		return number(ref + 5, INT32_MAX, &ret->pid);
	ret->kind = SELECT_TAG;
	if (strncmp(ref, "@tag:", 5) != 0)
		return -EINVAL;
	ret->tag = ref + 5;
	return label_tag_wrong(ret->tag) == NULL ? 0 : -EINVAL;
}
