/* SPDX-License-Identifier: MIT. params.c: parameters and values that several verbs share. */
#include "params.h"

#include <string.h>

#include "session_terms.h"

static void session_found(void *arg, const struct refusal *no, const struct session_ref *s)
{
	struct request *q = request_of(arg);

	if (no != NULL) {
		request_refuse(q, no);
		return;
	}
	q->session = *s;
	q->then(q);
}

void param_session(struct request *q, verb_fn *then)
{
	char text[128] = "";

	if (wire_get_str(q->params, "session", text, sizeof(text)) < 0) {
		request_wrong(q, "a session reference must be text of at most 127 bytes", NEXT_REF);
		return;
	}
	q->then = then;
	query_session(q->d, &q->who, text, session_found, q);
}

bool param_pid(struct request *q, uint32_t *ret, const char *next)
{
	uint64_t pid = *ret;

	if (wire_get_u64(q->params, "pid", &pid) < 0 || pid > INT32_MAX) {
		request_wrong(q, "pid must be the number of a process", next);
		return false;
	}
	*ret = (uint32_t)pid;
	return true;
}

void kv_text(struct wire_buf *b, const char *key, const char *text)
{
	wire_str(b, key);
	wire_strn(b, text != NULL ? text : "", text != NULL ? strnlen(text, TEXT_SHOWN) : 0);
}

void kv_uuid(struct wire_buf *b, const char *key, const uint8_t uuid[16])
{
	wire_kv_bin(b, key, uuid, 16);
}

void kv_session(struct wire_buf *b, const struct session_ref *s)
{
	wire_kv_i64(b, "id", s->id);
	kv_uuid(b, "uuid", s->uuid);
	wire_kv_str(b, "name", s->name);
	wire_kv_u64(b, "uid", s->uid);
	wire_kv_str(b, "state", term_word(&term_session_states, s->state, ""));
	wire_kv_str(b, "source", term_word(&term_session_sources, s->source, ""));
	wire_kv_i64(b, "created_ns", s->created_ns);
	wire_kv_i64(b, "ended_ns", s->ended_ns);
	wire_kv_bool(b, "empty", s->empty);
	wire_kv_str(b, "tags", s->tags);
	wire_kv_str(b, "note", s->note);
}
