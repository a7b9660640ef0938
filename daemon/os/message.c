/* SPDX-License-Identifier: MIT. message.c: the parser of what a job says on agent.sock. Hostile
 * bytes come in; a checked copy goes out. And the descriptor beside an answer. No I/O, no
 * allocation. */
#include "message.h"

#include <stdbool.h>
#include <string.h>

static const struct message_form {
	uint16_t type;
	uint16_t least, bytes; /* an older library's, and what we know of it */
	bool tail;             /* a text of any length follows */
} forms[] = {
	{RV_ATTACH, sizeof(struct rv_attach), sizeof(struct rv_attach), true},
	{RV_RING, sizeof(struct rv_ring), sizeof(struct rv_ring), false},
	{RV_EXPORT, sizeof(struct rv_export), sizeof(struct rv_export), false},
	{RV_SESSION, RV_SESSION_LEAST, sizeof(struct rv_session), false},
	{RV_STATE, sizeof(struct rv_state), sizeof(struct rv_state), false},
	{RV_PING, sizeof(struct rv_head), sizeof(struct rv_head), false},
	{RV_PONG, sizeof(struct rv_head), sizeof(struct rv_head), false},
};

static const struct message_form *form_of(uint16_t type)
{
	size_t i;

	for (i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		if (forms[i].type == type)
			return &forms[i];
	}
	return NULL;
}

#define END_TEXT(field) ((field)[sizeof(field) - 1] = '\0')

static void end_texts(struct message *m)
{
	switch (m->type) {
	case RV_ATTACH:
		END_TEXT(m->attach.version);
		END_TEXT(m->attach.gpu);
		break;
	case RV_EXPORT:
		END_TEXT(m->export.format);
		break;
	case RV_STATE:
		END_TEXT(m->state.gpu.path);
		END_TEXT(m->state.gpu.words);
		break;
	default:
		break;
	}
}

static int take_info(struct message *m, const uint8_t *p, size_t n, struct err *e)
{
	if (n > MESSAGE_INFO_MAX)
		return err_set(e, -EMSGSIZE,
			"the job's description is %zu bytes, at most %u are taken", n,
			MESSAGE_INFO_MAX);
	memcpy(m->info, p, n);
	while (n > 0 && m->info[n - 1] == '\0')
		n--;
	m->info[n] = '\0';
	m->info_bytes = n > 0 ? (uint32_t)n + 1 : 0;
	return 0;
}

int message_parse(const void *p, size_t n, struct message *ret, struct err *e)
{
	const struct message_form *f;
	struct rv_head head;

	if (n < sizeof(head))
		return err_set(e, -EMSGSIZE, "a message of %zu bytes is too short", n);
	memcpy(&head, p, sizeof(head));
	if (head.magic != RV_MAGIC)
		return err_set(e, -EPROTO, "this is not protond's protocol");
	if (head.bytes != n || n > RV_MESSAGE_MAX)
		return err_set(e, -EMSGSIZE, "a message says %u bytes and has %zu", head.bytes, n);
	f = form_of(head.type);
	if (f == NULL)
		return err_set(
			e, -EBADMSG, "a message of type %u is not one that a job sends", head.type);
	if (n < f->least)
		return err_set(e, -EMSGSIZE, "a message of type %u has %zu bytes and needs %u",
			head.type, n, f->least);
	memset(ret, 0, offsetof(struct message, info));
	ret->type = head.type;
	memcpy(&ret->attach, p,
		n < f->bytes ? n
			     : f->bytes); /* every struct of the union starts where attach does */
	end_texts(ret);
	return f->tail ? take_info(ret, (const uint8_t *)p + f->bytes, n - f->bytes, e) : 0;
}

const char *message_info(const char *info, uint32_t bytes, const char *key)
{
	const size_t k = strlen(key);
	uint32_t at = 0;

	while (at < bytes) {
		const char *s = info + at;
		const size_t n = strnlen(s, bytes - at);

		if (at + n >= bytes)
			return NULL; /* no terminator: not ours to read */
		if (n > k && s[k] == '=' && memcmp(s, key, k) == 0)
			return s + k + 1;
		at += (uint32_t)n + 1;
	}
	return NULL;
}

void message_put_fd(struct msghdr *m, struct message_fd *room, int fd)
{
	struct cmsghdr *h;

	if (fd < 0)
		return;
	m->msg_control = room->bytes;
	m->msg_controllen = sizeof(room->bytes);
	h = CMSG_FIRSTHDR(m);
	h->cmsg_level = SOL_SOCKET;
	h->cmsg_type = SCM_RIGHTS;
	h->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(h), &fd, sizeof(int));
}
