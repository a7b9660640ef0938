/* SPDX-License-Identifier: MIT. relabel.c: another name, note or tag for a session: by a verb of the
 * journal while the fold has it, else in the store. */
#include "relabel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "change.h"
#include "daemon.h"
#include "fold.h"
#include "must.h"
#include "start.h"
#include "store.h"

#define RELABEL_MAGIC 0x524c4142u

#define NEXT_UNTAG "protonctl tag --remove takes some away"

struct relabel {
	uint32_t magic;
	struct session_ref s;
	enum label_kind kind;
	char text[LABEL_NAME];
	session_found_fn *done;
	void *arg;
};

static struct relabel *relabel_of(void *p)
{
	struct relabel *x = p;

	MUST(x != NULL && x->magic == RELABEL_MAGIC);
	return x;
}

static int relabel_work(struct sqlite3 *db, void *arg, struct err *e)
{
	const struct relabel *x = relabel_of(arg);

	return store_label_session(db, x->s.id, x->kind, x->text, e);
}

static void relabel_on_done(void *arg, int r, const struct err *e)
{
	struct relabel *x = relabel_of(arg);
	struct refusal no;

	if (r < 0)
		refuse_err(&no, e, NEXT_DOCTOR);
	x->done(x->arg, r < 0 ? &no : NULL, r < 0 ? NULL : &x->s);
	x->magic = 0;
	free(x);
}

/* The fold has it. */
static int relabel_live(struct daemon *d, const struct session_ref *s, enum label_kind kind,
	const char *text, struct refusal *no)
{
	struct j_verb v = {.verb = VERB_RENAME + (uint32_t)kind, .uid = s->uid};
	int r = 0;

	if (kind == LABEL_IS_NAME && !session_is_over(s->state) && strcmp(s->name, text) != 0)
		r = query_name_is_free(d, s->uid, text, no);
	if (r < 0)
		return r;
	memcpy(v.session, s->uuid, 16);
	snprintf(v.name, sizeof(v.name), "%s", text);
	r = change_apply(d, &v);
	return r < 0 ? change_failed(no, r, "label", s->name) : 0;
}

void query_relabel(struct daemon *d, const struct session_ref *s, enum label_kind kind,
	const char *text, session_found_fn *done, void *arg)
{
	struct session_ref after = *s;
	struct relabel *x = NULL;
	struct refusal no;
	int r = 0;

	if (label_apply(after.name, after.note, after.tags, kind, text) < 0)
		r = refuse(&no, -ENOSPC, NEXT_UNTAG, LABEL_FULL);
	else if (s->live)
		r = relabel_live(d, s, kind, text, &no);
	else if ((x = calloc(1, sizeof(*x))) == NULL)
		r = refuse_memory(&no);
	if (x == NULL) {
		done(arg, r < 0 ? &no : NULL, r < 0 ? NULL : &after);
		return;
	}
	*x = (struct relabel){
		.magic = RELABEL_MAGIC, .s = after, .kind = kind, .done = done, .arg = arg};
	snprintf(x->text, sizeof(x->text), "%s", text);
	store_call(d->store, relabel_work, x, relabel_on_done);
}
