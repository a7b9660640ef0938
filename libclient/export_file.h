/* SPDX-License-Identifier: MIT. export_file.h: a finished session, written where the caller stands.
 * session.c includes it. */
#ifndef PROTOND_EXPORT_H
#define PROTOND_EXPORT_H

#include <stdint.h>

/* Asks the daemon for a finished session and writes NAME.FORMAT into the caller's directory. */
struct pd_ask {
	uint32_t session, phases; /* phases: 0 all, else one, from 1 */
	const char *format;
	int how; /* enum protond_ask_how */
};
/* A descriptor of the whole text, or -errno and words. */
int pd_export(const struct pd_ask *ask, char *text);
int pd_export_file(const struct pd_ask *ask, const char *name, char *text);

#endif
