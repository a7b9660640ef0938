/* SPDX-License-Identifier: MIT. web_sessions.c: what can be looked at: the database's sessions, as
 * `protonview sessions --json` has them, and what the command line named. */
#include "print_json.h"
#include "protonview_sessions.h"
#include "web_ask.h"

int web_sessions(struct web_ask *a)
{
	struct text *t = &a->to->body, *rows = &a->run->out;
	const char *id;
	int i, r;

	text_char(rows, '{');
	r = sessions_rows(a->run);
	if (r < 0 && r != -ENOENT)
		return r;
	if (r == 0) {
		envelope_rows_end(rows);
		text_add(t, rows->s, rows->n);
	} else { /* nothing was recorded yet: files can be looked at */
		text_str(t, "{\"columns\":[],\"rows\":[]");
		warning_add(&a->run->warnings, "%s", a->run->e.text);
	}
	json_in(t, "open", '[');
	for (i = 0; (id = web_shown(a->w, i)) != NULL; i++)
		json_str(t, id);
	json_close(t, ']');
	web_warnings(a);
	text_char(t, '}');
	return 0;
}
