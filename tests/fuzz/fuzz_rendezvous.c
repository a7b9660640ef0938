/* SPDX-License-Identifier: MIT. fuzz_rendezvous.c: packets of agent.sock. Whatever comes in, what
 * goes out has a known type, ended texts and a description that can be searched. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "message.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

#define MUST(e)                  \
	do {                     \
		if (!(e))        \
			abort(); \
	} while (0)

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	static uint8_t packet[RV_MESSAGE_MAX + 16];
	static struct message m;
	struct rv_head h = {RV_MAGIC, 0, (uint16_t)(n + 6)};
	struct err e = {0};
	const char *v;
	int r;

	/* Two bytes of type, then the body: no execution is spent on finding the magic. */
	if (n < 2 || n + 6 > sizeof(packet))
		return 0;
	memcpy(&h.type, p, 2);
	memcpy(packet, &h, sizeof(h));
	memcpy(packet + sizeof(h), p + 2, n - 2);
	r = message_parse(packet, n + 6, &m, &e);
	MUST(r == e.code && r <= 0 && (r == 0) == (e.text[0] == '\0'));
	if (r < 0)
		return 0;
	if (m.type == RV_ATTACH) {
		MUST(memchr(m.attach.version, '\0', sizeof(m.attach.version)) != NULL);
		MUST(memchr(m.attach.gpu, '\0', sizeof(m.attach.gpu)) != NULL);
		MUST(m.info_bytes <= sizeof(m.info) &&
			(m.info_bytes == 0 || m.info[m.info_bytes - 1] == '\0'));
		v = message_info(m.info, m.info_bytes, "command");
		MUST(v == NULL || (v > m.info && v + strlen(v) < m.info + m.info_bytes));
	} else if (m.type == RV_EXPORT) {
		MUST(memchr(m.export.format, '\0', sizeof(m.export.format)) != NULL);
	} else if (m.type == RV_STATE) {
		MUST(memchr(m.state.gpu.words, '\0', sizeof(m.state.gpu.words)) != NULL);
		MUST(memchr(m.state.gpu.path, '\0', sizeof(m.state.gpu.path)) != NULL);
	} else {
		MUST(m.type == RV_RING || m.type == RV_SESSION || m.type == RV_PING ||
			m.type == RV_PONG);
	}
	return 0;
}
