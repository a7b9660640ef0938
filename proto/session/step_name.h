/* SPDX-License-Identifier: MIT. step_name.h: which scopes are steps, by their name. Pure. */
#ifndef PROTOND_SESSION_STEP_NAME_H
#define PROTOND_SESSION_STEP_NAME_H

#include <stdbool.h>
#include <string.h>

/* A text that is set in a scope `step` of an import: its number in the file. */
#define STEP_OWN "ProfilerStep"

/* "step", "step 7", "ProfilerStep#7". */
static inline bool timeline_is_step(const char *name)
{
	const char *digits = strncmp(name, "ProfilerStep#", 13) == 0 ? name + 13
			     : strncmp(name, "step ", 5) == 0        ? name + 5
								     : NULL;

	return digits != NULL ? *digits >= '0' && *digits <= '9' : strcmp(name, "step") == 0;
}

#endif
