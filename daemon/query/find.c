/* SPDX-License-Identifier: MIT. find.c: session references and the list of sessions.
 *
 * A search is made on the loop, asks the store on a thread of its, and goes on on the loop, where the
 * fold's live sessions are laid over what was found.
 */
#include "find.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "daemon.h"
#include "fold.h"
#include "host_clock.h"
#include "inquire.h"
#include "label.h"
#include "must.h"
#include "selector.h"
#include "store.h"
#include "store_ask.h"

#define SEARCH_MAGIC 0x53524348u
#define PREFIX_MIN   4u
#define RINGS_MAX    16u /* of one pid that are looked at */

_Static_assert(SELECTOR_BACK_MAX < STORE_ASK_ROWS, "that one is among those that the store gives");

/* A search for sessions: what is looked for, and what the store knows of it. */
struct search {
	uint32_t magic;
	struct daemon *d;
	struct asker who;
	struct store_wish wish;
	uint64_t back;               /* of a selector: how many before that one */
	char name[128];              /* STORE_BY_TEXT, STORE_TAG */
	char said[128];              /* for words */
	uint8_t ring[RINGS_MAX][16]; /* STORE_JOB: of processes that the fold has */
	uint32_t n_rings;
	char prefix[33]; /* STORE_BY_TEXT: of the uuid in hex, or "" */
	bool fell_back;  /* an id that was not there is tried as a name */
	store_done_fn *stored;
	session_found_fn *found_fn; /* one of the two */
	session_list_fn *list_fn;
	void *arg;
	uint32_t n, cap, left_out;
	struct session_ref *found;
};

static struct search *search_of(void *p)
{
	struct search *s = p;

	MUST(s != NULL && s->magic == SEARCH_MAGIC);
	return s;
}

static struct search *search_new(struct daemon *d, const struct asker *a, void *arg)
{
	struct search *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return NULL;
	*s = (struct search){.magic = SEARCH_MAGIC, .d = d, .who = *a, .arg = arg};
	s->wish.name = s->name;
	s->wish.prefix = s->prefix;
	return s;
}

static void search_free(struct search *s)
{
	s->magic = 0;
	free(s->found);
	free(s);
}

/* --- on the store's thread --- */

static struct session_ref *search_add(struct search *s)
{
	uint32_t cap;
	struct session_ref *grown;

	if (s->n == s->cap) {
		cap = s->cap == 0 ? 32 : s->cap * 2;
		grown = s->n < 2 * STORE_ASK_ROWS ? realloc(s->found, cap * sizeof(*grown)) : NULL;
		if (grown == NULL)
			return NULL;
		s->found = grown;
		s->cap = cap;
	}
	s->found[s->n] = (struct session_ref){.id = 0};
	return &s->found[s->n++];
}

static void copy_text(char *to, size_t n, const char *text)
{
	const char *from = text != NULL ? text : "";
	const size_t bytes = strnlen(from, n - 1);

	memcpy(to, from, bytes);
	to[bytes] = '\0';
}

static int search_row(void *arg, const struct stored_session *row)
{
	struct session_ref *r = search_add(search_of(arg));

	if (r == NULL)
		return -ENOMEM;
	*r = (struct session_ref){.id = row->id,
		.created_ns = row->created_ns,
		.ended_ns = row->finalized_ns,
		.empty = row->empty,
		.uid = row->uid,
		.source = row->source,
		.n_processes = row->n_processes,
		.state = row->state,
		.duration_ns = row->active_ns,
		.launches = row->launches,
		.matched = row->matched};
	memcpy(r->uuid, row->uuid, 16);
	copy_text(r->name, sizeof(r->name), row->name);
	copy_text(r->command, sizeof(r->command), row->command);
	copy_text(r->tags, sizeof(r->tags), row->tags);
	copy_text(r->note, sizeof(r->note), row->note);
	return 0;
}

static int search_work(struct sqlite3 *db, void *arg, struct err *e)
{
	struct search *s = search_of(arg);

	return store_ask_sessions(db, &s->wish, search_row, s, e);
}

/* --- the live sessions over the stored ones --- */

void session_ref_of(struct session_ref *r, const struct fold_session *f)
{
	const uint64_t now = mono_ns();

	*r = (struct session_ref){.id = f->id,
		.created_ns = f->created_ns,
		.ended_ns = f->finalized_ns,
		.empty = f->empty,
		.uid = f->uid,
		.source = f->source,
		.n_processes = f->n_processes,
		.state = f->state,
		.live = true,
		.duration_ns = f->active_ns,
		.launches = f->launches,
		.matched = f->matched};
	if (f->active_since_ns != 0 && now > f->active_since_ns)
		r->duration_ns += now - f->active_since_ns;
	memcpy(r->uuid, f->uuid, 16);
	copy_text(r->name, sizeof(r->name), f->name);
	copy_text(r->command, sizeof(r->command),
		f->first_command[0] != '\0' ? f->first_command : f->command);
	copy_text(r->tags, sizeof(r->tags), f->tags);
	copy_text(r->note, sizeof(r->note), f->note);
}

static void hex16(const uint8_t uuid[16], char ret[33])
{
	static const char digits[] = "0123456789abcdef";
	int i;

	for (i = 0; i < 16; i++) {
		ret[2 * i] = digits[uuid[i] >> 4];
		ret[2 * i + 1] = digits[uuid[i] & 15];
	}
	ret[32] = '\0';
}

static bool has_prefix(const struct session_ref *r, const char *prefix)
{
	char hex[33];

	hex16(r->uuid, hex);
	return *prefix != '\0' && strncmp(hex, prefix, strlen(prefix)) == 0;
}

static void search_ring(void *arg, const struct fold_process *p)
{
	struct search *s = search_of(arg);

	if ((int64_t)p->pid == s->wish.id && s->n_rings < RINGS_MAX)
		memcpy(s->ring[s->n_rings++], p->ring, 16);
}

static bool search_has_job(const struct search *s, const struct session_ref *r)
{
	uint32_t i;

	for (i = 0; i < s->n_rings; i++)
		if (fold_is_member(s->d->fold, r->uuid, s->ring[i]))
			return true;
	return false;
}

static bool search_wants(const struct search *s, const struct session_ref *r)
{
	const bool own = s->wish.uid < 0 || r->uid == (uint64_t)s->wish.uid;

	switch (s->wish.which) {
	case STORE_BY_ID:
		return r->id == s->wish.id;
	case STORE_BY_TEXT:
		return strcmp(r->name, s->name) == 0 || has_prefix(r, s->prefix);
	case STORE_AUTO:
		return own && r->source == SOURCE_AUTO;
	case STORE_TAG:
		return own && label_has_tag(r->tags, s->name);
	case STORE_JOB:
		return own && search_has_job(s, r);
	case STORE_LAST:
	case STORE_ALL:
	default:
		return own;
	}
}

static void search_lay_over(void *arg, const struct fold_session *f)
{
	struct search *s = search_of(arg);
	struct session_ref live, *r = NULL;
	uint32_t i;

	session_ref_of(&live, f);
	if (!search_wants(s, &live))
		return;
	for (i = 0; i < s->n && r == NULL; i++)
		if (memcmp(s->found[i].uuid, live.uuid, 16) == 0)
			r = &s->found[i];
	if (r == NULL && f->stored)
		return; /* the store had it, and somebody has deleted it there */
	if (r == NULL)
		r = search_add(s);
	if (r == NULL) {
		s->left_out++;
		return;
	}
	if (r->command[0] != '\0') /* its first job may be forgotten here */
		memcpy(live.command, r->command, sizeof(live.command));
	*r = live;
}

/* By id: a clock may have been set back. */
static int newest_first(const void *a, const void *b)
{
	const struct session_ref *x = a, *y = b;

	if (x->id != y->id)
		return x->id < y->id ? 1 : -1;
	return 0;
}

static void search_sort(struct search *s)
{
	if (s->wish.which == STORE_JOB)
		fold_each_process(s->d->fold, search_ring, s);
	fold_each_session(s->d->fold, search_lay_over, s);
	if (s->n > 1)
		qsort(s->found, s->n, sizeof(*s->found), newest_first);
}

/* --- which of them is meant --- */

static int choice_of(const struct session_ref *r)
{
	return (r->empty ? CHOICE_ASKED_EMPTY : CHOICE_ASKED) +
	       (r->source == SOURCE_AUTO ? CHOICE_AUTO : CHOICE_ASKED);
}

static const struct session_ref *pick_selected(const struct search *s)
{
	int best = CHOICE_MAX;
	uint64_t back = s->back;
	uint32_t i;

	for (i = 0; i < s->n; i++)
		best = choice_of(&s->found[i]) < best ? choice_of(&s->found[i]) : best;
	for (i = 0; i < s->n; i++)
		if (choice_of(&s->found[i]) == best && back-- == 0)
			return &s->found[i];
	return NULL;
}

/* How well a session fits a name: the own before others', the live before the stored. */
static int rank_name(const struct search *s, const struct session_ref *r)
{
	if (!asker_may(&s->who, r->uid) || strcmp(r->name, s->name) != 0)
		return 0;
	return 1 + (r->uid == s->who.uid ? 2 : 0) + (r->live ? 1 : 0);
}

static const struct session_ref *pick_text(const struct search *s, bool *ret_ambiguous)
{
	const struct session_ref *best = NULL;
	int rank = 0;
	uint32_t i;

	for (i = 0; i < s->n; i++)
		if (rank_name(s, &s->found[i]) > rank) {
			best = &s->found[i];
			rank = rank_name(s, best);
		}
	for (i = 0; rank == 0 && i < s->n; i++) {
		if (!asker_may(&s->who, s->found[i].uid))
			continue;
		*ret_ambiguous = best != NULL;
		best = &s->found[i];
	}
	return best;
}

static const struct session_ref *search_pick(const struct search *s, bool *ret_ambiguous)
{
	*ret_ambiguous = false;
	switch (s->wish.which) {
	case STORE_BY_ID:
		return s->n > 0 && asker_may(&s->who, s->found[0].uid) ? &s->found[0] : NULL;
	case STORE_BY_TEXT:
		return pick_text(s, ret_ambiguous);
	case STORE_LAST:
	case STORE_AUTO:
	case STORE_TAG:
	case STORE_JOB:
		return pick_selected(s);
	case STORE_ALL:
	default:
		return NULL;
	}
}

/* --- the search itself --- */

static void search_ask(struct search *s, store_done_fn *stored)
{
	inquire(s->d, s->who.uid, search_work, s, stored);
}

static void search_drained(void *arg, bool ends)
{
	struct search *s = search_of(arg);

	(void)ends;
	search_ask(s, s->stored);
}

/* Behind what jobs wrote before: one may have started a session just now. */
static void search_begin(struct search *s, store_done_fn *stored)
{
	s->stored = stored;
	if (daemon_when_drained(s->d, asker_sees(&s->who), LOOK_MS, search_drained, s) < 0)
		search_drained(s, false); /* with what is known */
}

static void search_on_done(void *arg, int r, const struct err *e)
{
	struct search *s = search_of(arg);
	const struct session_ref *found = NULL;
	bool ambiguous = false;
	struct refusal no;

	if (s->d->ends) /* whoever asked is gone: nothing that he meant to do with it begins */
		r = -ESHUTDOWN;
	if (r == 0) {
		search_sort(s);
		found = search_pick(s, &ambiguous);
	}
	if (r == 0 && found == NULL && s->wish.which == STORE_BY_ID && !s->fell_back) {
		s->fell_back = true; /* a name may be all digits */
		s->wish.which = STORE_BY_TEXT;
		s->n = 0;
		search_ask(s, search_on_done);
		return;
	}
	if (r == -ESHUTDOWN)
		r = refuse(&no, r, "what was recorded is kept", "protond is shutting down");
	else if (r < 0)
		r = refuse_err(&no, e, NEXT_DOCTOR);
	else if (ambiguous)
		r = refuse(&no, -ENOTUNIQ, "give more digits; `protonctl sessions` lists them",
			"more than one session's uuid begins with '%s'", s->said);
	else if (found == NULL)
		r = refuse(&no, -ENOENT, "`protonctl sessions` lists what there is",
			"no session '%s'", s->said);
	s->found_fn(s->arg, r < 0 ? &no : NULL, r < 0 ? NULL : found);
	search_free(s);
}

static bool is_number(const char *text, uint64_t max, uint64_t *ret)
{
	char *end;
	unsigned long long v;

	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	v = strtoull(text, &end, 10);
	if (errno != 0 || *end != '\0' || v > max)
		return false;
	*ret = v;
	return true;
}

/* A uuid's beginning, dashes left out; "" when the text cannot be one. */
static void take_prefix(const char *text, char ret[33])
{
	size_t n = 0;

	for (; *text != '\0'; text++) {
		if (*text == '-')
			continue;
		if (n == 32 || !isxdigit((unsigned char)*text)) {
			ret[0] = '\0';
			return;
		}
		ret[n++] = (char)tolower((unsigned char)*text);
	}
	ret[n < PREFIX_MIN ? 0 : n] = '\0';
}

static int search_select(struct search *s, const char *text)
{
	static const enum store_which which[] = {[SELECT_LAST] = STORE_LAST,
		[SELECT_AUTO] = STORE_AUTO,
		[SELECT_JOB] = STORE_JOB,
		[SELECT_TAG] = STORE_TAG};
	struct selector sel;

	if (selector_parse(text, &sel) < 0)
		return -EINVAL;
	s->wish.which = which[sel.kind];
	s->wish.uid = sel.kind == SELECT_JOB ? asker_sees(&s->who) : (int64_t)s->who.uid;
	s->wish.id = sel.pid;
	s->back = sel.back;
	copy_text(s->name, sizeof(s->name), sel.tag);
	return 0;
}

static int search_parse(struct search *s, const char *text)
{
	uint64_t v;

	if (*text == '\0')
		text = "@last";
	if (strlen(text) >= sizeof(s->name))
		return -EINVAL;
	copy_text(s->said, sizeof(s->said), text);
	if (*text == '@')
		return search_select(s, text);
	copy_text(s->name, sizeof(s->name), text);
	take_prefix(text, s->prefix);
	s->wish.which = STORE_BY_TEXT;
	if (is_number(text, INT64_MAX, &v)) {
		s->wish.which = STORE_BY_ID;
		s->wish.id = (int64_t)v;
	}
	return 0;
}

void query_session(
	struct daemon *d, const struct asker *a, const char *ref, session_found_fn *done, void *arg)
{
	struct search *s = search_new(d, a, arg);
	struct refusal no;

	if (s == NULL) {
		refuse_memory(&no);
		done(arg, &no, NULL);
		return;
	}
	s->found_fn = done;
	if (search_parse(s, ref) < 0) {
		search_free(s);
		refuse(&no, -EINVAL, NEXT_REF, "'%s' is not a session reference", ref);
		done(arg, &no, NULL);
		return;
	}
	search_begin(s, search_on_done);
}

void query_session_again(struct daemon *d, const struct asker *a, const uint8_t uuid[16],
	session_found_fn *done, void *arg)
{
	struct search *s = search_new(d, a, arg);
	struct refusal no;

	if (s == NULL) {
		refuse_memory(&no);
		done(arg, &no, NULL);
		return;
	}
	s->found_fn = done;
	s->wish.which = STORE_BY_TEXT;
	s->name[0] = '@'; /* no session has that name */
	hex16(uuid, s->prefix);
	search_ask(s, search_on_done);
}

struct newest {
	const struct asker *who;
	struct session_ref *ret;
	bool found;
};

static void newest_look(void *arg, const struct fold_session *f)
{
	struct newest *n = arg;
	struct session_ref r;
	bool worse;

	if (session_is_over(f->state) || !asker_may(n->who, f->uid))
		return;
	session_ref_of(&r, f);
	worse = n->found && ((r.source == SOURCE_AUTO && n->ret->source != SOURCE_AUTO) ||
				    ((r.source == SOURCE_AUTO) == (n->ret->source == SOURCE_AUTO) &&
					    newest_first(&r, n->ret) > 0));
	if (worse)
		return;
	*n->ret = r;
	n->found = true;
}

bool query_newest_live(const struct daemon *d, const struct asker *a, struct session_ref *ret)
{
	struct newest n = {.who = a, .ret = ret};

	fold_each_session(d->fold, newest_look, &n);
	return n.found;
}

static void list_on_done(void *arg, int r, const struct err *e)
{
	struct search *s = search_of(arg);
	struct session_list l = {.n = 0};
	struct refusal no;

	if (r < 0) {
		refuse_err(&no, e, NEXT_DOCTOR);
	} else {
		search_sort(s);
		l = (struct session_list){.session = s->found, .n = s->n, .left_out = s->left_out};
	}
	s->list_fn(s->arg, r < 0 ? &no : NULL, r < 0 ? NULL : &l);
	search_free(s);
}

void query_sessions(struct daemon *d, const struct asker *a, session_list_fn *done, void *arg)
{
	struct search *s = search_new(d, a, arg);
	struct refusal no;

	if (s == NULL) {
		refuse_memory(&no);
		done(arg, &no, NULL);
		return;
	}
	s->list_fn = done;
	s->wish.which = STORE_ALL;
	s->wish.uid = asker_sees(a);
	search_begin(s, list_on_done);
}
