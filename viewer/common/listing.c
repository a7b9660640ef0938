/* SPDX-License-Identifier: MIT. listing.c: which sessions there are, and which are wanted. */
#include "listing.h"

#include <fnmatch.h>
#include <pwd.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "arena.h"
#include "human.h"
#include "rpc.h"
#include "session_terms.h"
#include "sessions.h"

struct listing_of {
	const struct listing_wish *wish;
	struct listing *l;
	struct arena *texts;
	uint32_t cap, uid;
	int64_t since_ns;
};

/* --- what is wanted */

bool listing_age(const char *text, uint64_t *ret_s)
{
	static const char units[] = "dhm";
	static const uint64_t seconds[] = {86400, 3600, 60};
	const size_t digits = strspn(text, "0123456789");
	const char *unit = text[digits] != '\0' ? strchr(units, text[digits]) : NULL;
	char number[16];

	if (unit == NULL || text[digits + 1] != '\0' || digits >= sizeof(number))
		return false;
	snprintf(number, sizeof(number), "%.*s", (int)digits, text);
	if (!text_u64(number, UINT32_MAX, ret_s) || *ret_s == 0)
		return false;
	*ret_s *= seconds[unit - units];
	return true;
}

static int wish_user(struct listing_of *of, struct err *e)
{
	const char *user = of->wish->filter[FILTER_USER];
	const struct passwd *p;
	uint64_t uid;

	if (user == NULL)
		return 0;
	p = getpwnam(user);
	if (p == NULL && !text_u64(user, UINT32_MAX, &uid))
		return err_set(e, -EINVAL, "--user %s: there is no such user", user);
	of->uid = p != NULL ? p->pw_uid : (uint32_t)uid;
	return 0;
}

static int wish_since(struct listing_of *of, struct err *e)
{
	const char *since = of->wish->filter[FILTER_SINCE];
	struct timespec now;
	uint64_t s;

	if (since == NULL)
		return 0;
	if (!listing_age(since, &s))
		return err_set(
			e, -EINVAL, "--since %s: give a number and d, h or m, as in 30d", since);
	(void)clock_gettime(CLOCK_REALTIME, &now);
	of->since_ns = (now.tv_sec - (int64_t)s) * 1000000000;
	return 0;
}

static int wish_check(struct listing_of *of, struct err *e)
{
	const char *state = of->wish->filter[FILTER_STATE];
	int r = wish_user(of, e);

	if (r == 0)
		r = wish_since(of, e);
	if (r == 0 && state != NULL && strcmp(state, "recovered") != 0 &&
		strcmp(state, "incomplete") != 0 &&
		term_number(&term_session_states, state, 0) == 0)
		r = err_set(e, -EINVAL,
			"--state %s: use active, inactive, finalizing, finalized, interrupted, "
			"recovered or incomplete",
			state);
	return r;
}

static bool is_wanted(const struct listing_of *of, const struct pick_row *row)
{
	const char *const *f = of->wish->filter;

	return (f[FILTER_NAME] == NULL || fnmatch(f[FILTER_NAME], row->name, 0) == 0) &&
	       (f[FILTER_USER] == NULL || row->uid == of->uid) &&
	       (f[FILTER_SINCE] == NULL || row->created_ns >= of->since_ns) &&
	       (f[FILTER_STATE] == NULL || strcmp(row->state, f[FILTER_STATE]) == 0) &&
	       (f[FILTER_TAG] == NULL || label_has_tag(row->tags, f[FILTER_TAG]));
}

/* --- rows */

static bool keep(struct listing_of *of, const char **text)
{
	*text = arena_text(of->texts, *text, strlen(*text));
	return *text != NULL;
}

static struct pick_row *room_for_row(struct listing_of *of)
{
	struct listing *l = of->l;
	struct pick_row *grown;
	uint32_t cap = of->cap == 0 ? 64 : of->cap * 2;

	if (l->n == of->cap) {
		grown = realloc(l->row, cap * sizeof(*grown));
		if (grown == NULL)
			return NULL;
		l->row = grown;
		of->cap = cap;
	}
	return &l->row[l->n];
}

static int add(void *arg, const struct pick_row *row)
{
	struct listing_of *of = arg;
	struct listing *l = of->l;
	struct pick_row *r;

	if (!is_wanted(of, row))
		return 0;
	if (row->empty && !of->wish->all) {
		l->empty++;
		return 0;
	}
	if (of->wish->rows > 0 && l->n == of->wish->rows) {
		l->older++;
		return 0;
	}
	r = room_for_row(of);
	if (r == NULL)
		return -ENOMEM;
	*r = *row;
	if (!keep(of, &r->uuid) || !keep(of, &r->name) || !keep(of, &r->state) ||
		!keep(of, &r->source) || !keep(of, &r->command) || !keep(of, &r->tags) ||
		!keep(of, &r->note))
		return -ENOMEM;
	l->users |= r->uid != l->row[0].uid;
	l->n++;
	return 0;
}

static int of_file(struct listing_of *of, struct source *how, struct err *e)
{
	sqlite3 *db;
	int r = source_open_db(of->wish->db, &db, how, e);

	if (r < 0)
		return r;
	r = pick_each(db, add, of, e);
	(void)sqlite3_close(db);
	return r == -ENOMEM ? err_set(e, r, "out of memory") : r;
}

static int of_daemon(struct listing_of *of, struct rpc *rpc, struct err *e)
{
	struct rpc_reply reply = {.fd = -1};
	const msgpack_object *list;
	struct session_answer s;
	uint32_t i;
	int r;

	(void)rpc_begin(rpc, "sessions");
	r = rpc_call(rpc, RPC_TIMEOUT_MS, &reply, e);
	if (r < 0)
		return r;
	list = wire_get(reply.result, "sessions");
	for (i = 0; r == 0 && list != NULL && list->type == MSGPACK_OBJECT_ARRAY &&
		    i < list->via.array.size;
		i++) {
		session_of_answer(&list->via.array.ptr[i], &s);
		r = add(of, &s.row);
	}
	of->l->more = wire_u64_or(reply.result, "more", 0);
	rpc_reply_free(&reply);
	return r < 0 ? err_set(e, r, "out of memory") : 0;
}

/* A running daemon is asked where its database is not to be read, or it is wanted so; but whoever
 * names a database reads that. */
static int read_all(struct listing_of *of, struct source *how, struct err *e)
{
	struct rpc *rpc = NULL;
	bool file = of->wish->db != NULL;
	int r = file ? 0 : rpc_open(&rpc, e);

	if (r < 0 && of->wish->ask && r != -ENOTCONN)
		return r;
	file = file || r < 0 || source_is_elsewhere(rpc_daemon(rpc)->db) ||
	       (!of->wish->ask && access(rpc_daemon(rpc)->db, R_OK) == 0);
	if (!file && rpc_daemon(rpc)->uid == geteuid())
		source_say_unusual(rpc_daemon(rpc)->db);
	if (!file)
		r = of_daemon(of, rpc, e);
	rpc_close(rpc);
	return file ? of_file(of, how, e) : r;
}

int listing_read(
	const struct listing_wish *w, struct listing *ret, struct source *how, struct err *e)
{
	struct listing_of *of = calloc(1, sizeof(*of));
	size_t i;
	int r;

	*how = (struct source){0};
	*ret = (struct listing){.of = of};
	for (i = 0; i < FILTER_MAX; i++)
		ret->filtered |= w->filter[i] != NULL;
	if (of == NULL)
		return err_set(e, -ENOMEM, "out of memory");
	*of = (struct listing_of){.wish = w, .l = ret, .texts = arena_new()};
	r = of->texts == NULL ? err_set(e, -ENOMEM, "out of memory") : wish_check(of, e);
	if (r == 0)
		r = read_all(of, how, e);
	if (r < 0)
		listing_free(ret);
	return r;
}

void listing_free(struct listing *l)
{
	if (l->of == NULL)
		return;
	arena_free(l->of->texts);
	free(l->of);
	free(l->row);
	*l = (struct listing){.n = 0};
}
