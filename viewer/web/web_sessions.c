/* SPDX-License-Identifier: MIT. web_sessions.c: what can be looked at: the database's sessions, as
 * `protonview sessions --json` has them, and what the command line named. */
#include "protonview_sessions.h"
#include "web_ask.h"

int web_sessions(struct web_ask *a)
{
	struct text *t = &a->to->body;
	const char *id;
	int i, r = sessions_json(a->run);

	if (r < 0 && r != -ENOENT)
		return r;
	if (r == -ENOENT) { /* nothing was recorded yet: files can be looked at */
		text_str(t, "{\"protond\":\"1\",\"kind\":\"sessions\",\"columns\":[],\"rows\":[]");
		warning_add(&a->run->warnings, "%s", a->run->e.text);
		web_warnings(a);
	} else {
		text_add(t, a->run->out.s, a->run->out.n);
		while (t->n > 0 && t->s[t->n - 1] != '}')
			t->n--;
		t->n -= t->n > 0;
	}
	json_in(t, "open", '[');
	for (i = 0; (id = web_shown(a->w, i)) != NULL; i++)
		json_str(t, id);
	json_close(t, ']');
	json_close(t, '}');
	return 0;
}
