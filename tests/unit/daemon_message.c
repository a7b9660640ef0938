/* SPDX-License-Identifier: MIT. daemon_message.c: what a job may say on agent.sock, and what it may
 * not. */
#include "quick.h"
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "message.h"
#include "ring.h"

static uint8_t packet[RV_MESSAGE_MAX + 64];

static void make(uint16_t type, size_t bytes)
{
	const struct rv_head h = {RV_MAGIC, type, (uint16_t)bytes};

	memset(packet, 'x', sizeof(packet));
	memcpy(packet, &h, sizeof(h));
}

#define ATTACH sizeof(struct rv_attach)
static const struct parse_case {
	const char *label;
	uint16_t type;
	size_t said, sent;
	int want;
} cases[] = {
	{"attach alone", RV_ATTACH, ATTACH, ATTACH, 0},
	{"attach with text", RV_ATTACH, ATTACH + 100, ATTACH + 100, 0},
	{"attach too short", RV_ATTACH, ATTACH - 1, ATTACH - 1, -EMSGSIZE},
	{"attach with too much text", RV_ATTACH, ATTACH + MESSAGE_INFO_MAX + 1,
		ATTACH + MESSAGE_INFO_MAX + 1, -EMSGSIZE},
	{"attach with all the text", RV_ATTACH, ATTACH + MESSAGE_INFO_MAX,
		ATTACH + MESSAGE_INFO_MAX, 0},
	{"says more than it has", RV_ATTACH, ATTACH + 8, ATTACH, -EMSGSIZE},
	{"says less than it has", RV_ATTACH, ATTACH, ATTACH + 8, -EMSGSIZE},
	{"ring", RV_RING, sizeof(struct rv_ring), sizeof(struct rv_ring), 0},
	{"ring of a newer library", RV_RING, sizeof(struct rv_ring) + 64,
		sizeof(struct rv_ring) + 64, 0},
	{"ring too short", RV_RING, sizeof(struct rv_ring) - 4, sizeof(struct rv_ring) - 4,
		-EMSGSIZE},
	{"export", RV_EXPORT, sizeof(struct rv_export), sizeof(struct rv_export), 0},
	{"export too short", RV_EXPORT, 12, 12, -EMSGSIZE},
	{"session", RV_SESSION, sizeof(struct rv_session), sizeof(struct rv_session), 0},
	{"session too short", RV_SESSION, 12, 12, -EMSGSIZE},
	{"state", RV_STATE, sizeof(struct rv_state), sizeof(struct rv_state), 0},
	{"ping", RV_PING, sizeof(struct rv_head), sizeof(struct rv_head), 0},
	{"what only the daemon says", RV_WELCOME, sizeof(struct rv_welcome),
		sizeof(struct rv_welcome), -EBADMSG},
	{"type 0", 0, 100, 100, -EBADMSG},
	{"unknown type", 999, 100, 100, -EBADMSG},
	{"half a head", RV_PING, sizeof(struct rv_head), 7, -EMSGSIZE},
	{"nothing", RV_PING, 0, 0, -EMSGSIZE},
	{"beyond the ceiling", RV_RING, RV_MESSAGE_MAX + 8, RV_MESSAGE_MAX + 8, -EMSGSIZE},
};

START_TEST(test_parse)
{
	const struct parse_case *c = &cases[_i];
	struct message m;
	struct err e = {0};

	make(c->type, c->said);
	ck_assert_msg(message_parse(packet, c->sent, &m, &e) == c->want, "%s: %d %s", c->label,
		e.code, e.text);
	ck_assert_int_eq(e.code, c->want);
	if (c->want == 0)
		ck_assert_uint_eq(m.type, c->type);
}
END_TEST

START_TEST(test_magic)
{
	struct message m;
	struct err e = {0};

	make(RV_PING, sizeof(struct rv_head));
	packet[0] ^= 1;
	ck_assert_int_eq(message_parse(packet, sizeof(struct rv_head), &m, &e), -EPROTO);
}
END_TEST

/* No text that goes on without an end comes out, whatever stood in the packet. */
START_TEST(test_texts_end)
{
	struct message m;
	struct err e = {0};

	make(RV_ATTACH, ATTACH + 5);
	ck_assert_int_eq(message_parse(packet, ATTACH + 5, &m, &e), 0);
	ck_assert_uint_eq(strlen(m.attach.version), sizeof(m.attach.version) - 1);
	ck_assert_uint_eq(strlen(m.attach.gpu), sizeof(m.attach.gpu) - 1);
	ck_assert_uint_eq(m.info_bytes, 6);
	ck_assert_str_eq(m.info, "xxxxx");
	make(RV_STATE, sizeof(struct rv_state));
	ck_assert_int_eq(message_parse(packet, sizeof(struct rv_state), &m, &e), 0);
	ck_assert_uint_eq(strlen(m.state.gpu.words), sizeof(m.state.gpu.words) - 1);
	ck_assert_uint_eq(strlen(m.state.gpu.path), sizeof(m.state.gpu.path) - 1);
	make(RV_EXPORT, sizeof(struct rv_export));
	ck_assert_int_eq(message_parse(packet, sizeof(struct rv_export), &m, &e), 0);
	ck_assert_uint_eq(strlen(m.export.format), sizeof(m.export.format) - 1);
}
END_TEST

START_TEST(test_info)
{
	static const char info[] = "command=python train.py\0rank=3\0empty=\0=x\0cwd";
	const uint32_t n = sizeof(info);

	ck_assert_str_eq(message_info(info, n, "command"), "python train.py");
	ck_assert_str_eq(message_info(info, n, "rank"), "3");
	ck_assert_str_eq(message_info(info, n, "empty"), "");
	ck_assert_ptr_null(message_info(info, n, "cwd"));
	ck_assert_ptr_null(message_info(info, n, "ran"));
	ck_assert_ptr_null(message_info(info, n, "rank=3"));
	ck_assert_ptr_null(message_info(info, 10, "command")); /* not ended within */
	ck_assert_ptr_null(message_info(info, 0, "command"));
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("daemon_message");
	TCase *t = tcase_create("message");

	suite_add_tcase(s, t);
	tcase_add_loop_test(t, test_parse, 0, (int)(sizeof(cases) / sizeof(cases[0])));
	tcase_add_test(t, test_magic);
	tcase_add_test(t, test_texts_end);
	tcase_add_test(t, test_info);
	return s;
}
