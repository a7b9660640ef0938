/* SPDX-License-Identifier: MIT. protonctl_complaints.c: what the daemon complains of between two
 * moments: the warnings of its status. */
#include "protonctl_complaints.h"

#include <string.h>

#include "protonctl_answer.h"

void complaints_note(struct rpc *r, struct rpc_reply *ret)
{
	struct err e;

	*ret = (struct rpc_reply){.fd = -1};
	(void)rpc_begin(r, "status");
	(void)rpc_call(r, RPC_TIMEOUT_MS, ret, &e);
}

static uint32_t warnings_of(const struct rpc_reply *status, const msgpack_object **ret)
{
	return status->result != NULL ? answer_items(status->result, "warnings", ret) : 0;
}

static bool was_there(const struct rpc_reply *before, const msgpack_object *warning)
{
	const msgpack_object *w;
	const uint32_t n = warnings_of(before, &w);
	uint32_t i;

	for (i = 0; i < n && !msgpack_object_equal(w[i], *warning); i++)
		;
	return i < n;
}

/* By the daemon's words: its status has no code for a complaint. */
static bool is_mismatch(const char *text)
{
	return strstr(text, "has ABI ") != NULL || strstr(text, "is of another version") != NULL;
}

void complaints_since(struct rpc *r, const struct rpc_reply *before, complaint_fn *each, void *arg)
{
	struct rpc_reply now;
	const msgpack_object *w;
	char text[640];
	uint32_t i, n;

	complaints_note(r, &now);
	n = warnings_of(&now, &w);
	for (i = 0; i < n; i++) {
		if (was_there(before, &w[i]))
			continue;
		(void)answer_text(&w[i], text, sizeof(text));
		each(arg, text, is_mismatch(text));
	}
	rpc_reply_free(&now);
}
