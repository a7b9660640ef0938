/* SPDX-License-Identifier: MIT. offer.c: the sessions and jobs that a shell may complete. */
#include "offer.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "complete.h"
#include "label.h"
#include "listing.h"
#include "rpc.h"

void offer_jobs(const char *begin, const char *before)
{
	struct rpc_reply r = {.fd = -1};
	const msgpack_object *jobs;
	char word[64], command[256];
	struct rpc *rpc;
	struct err e;
	uint32_t i;

	if (rpc_open(&rpc, &e) < 0)
		return;
	(void)rpc_begin(rpc, "jobs");
	if (rpc_call(rpc, RPC_TIMEOUT_MS, &r, &e) == 0) {
		jobs = wire_get(r.result, "jobs");
		for (i = 0; jobs != NULL && jobs->type == MSGPACK_OBJECT_ARRAY &&
			    i < jobs->via.array.size;
			i++) {
			const msgpack_object *job = &jobs->via.array.ptr[i];

			snprintf(word, sizeof(word), "%s%lu", before, wire_u64_or(job, "pid", 0));
			complete_put(
				begin, word, wire_text(job, "command", command, sizeof(command)));
		}
		rpc_reply_free(&r);
	}
	rpc_close(rpc);
}

/* "@tag:NAME" of each of a session's. */
static void put_tags(const char *begin, const struct pick_row *row)
{
	char word[LABEL_TAGS + 8];
	const char *at;
	size_t n;

	for (at = row->tags; *at != '\0'; at += n + (at[n] == ' ')) {
		n = strcspn(at, " ");
		snprintf(word, sizeof(word), "@tag:%.*s", (int)n, at);
		if (n > 0)
			complete_put(begin, word, row->name);
	}
}

/* Whether the newest one of the user's that somebody asked for, or automatic one, goes on. */
static bool newest_is_live(const struct listing *l, bool automatic)
{
	uint32_t i;

	for (i = 0; i < l->n; i++)
		if (!l->row[i].empty && l->row[i].uid == geteuid() &&
			(strcmp(l->row[i].source, "auto") == 0) == automatic)
			return l->row[i].ended_ns == 0;
	return false;
}

static void offer(const char *begin, bool live)
{
	const struct listing_wish all = {.all = true, .ask = live};
	struct listing l = {.n = 0};
	struct source how;
	struct err e;
	uint32_t i;

	(void)listing_read(&all, &l, &how, &e);
	if (!live || newest_is_live(&l, false))
		complete_put(begin, "@last", "the newest that somebody asked for");
	if (!live || newest_is_live(&l, true))
		complete_put(begin, "@auto", "the newest automatic one");
	for (i = 0; i < l.n; i++) {
		if (live && l.row[i].ended_ns != 0)
			continue;
		complete_put(begin, l.row[i].name, l.row[i].command);
		put_tags(begin, &l.row[i]);
	}
	listing_free(&l);
	if (*begin == '\0' || *begin == '@')
		offer_jobs(begin, "@job:");
}

void offer_sessions(const char *begin)
{
	offer(begin, false);
}

void offer_live_sessions(const char *begin)
{
	offer(begin, true);
}
