/* SPDX-License-Identifier: MIT. client.h: the clients of a server of control.sock: frames in,
 * requests, answers out.
 *
 * A client is its socket, the bytes of at most one unfinished frame, and answers not yet read by
 * it; each of the three is bounded, so whatever a client does costs only itself. Loop thread.
 */
#ifndef PROTOND_CONTROL_CLIENT_H
#define PROTOND_CONTROL_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include "fair.h"
#include "request.h"

struct client;

/* Embedded in the server, which outlives its clients. */
struct clients {
	struct daemon *d;
	uv_loop_t *loop;
	verb_fn *const *verbs; /* [WIRE_VERB_MAX] */
	void (*gone)(struct clients *);
	uv_idle_t serve;  /* the server's to close; runs while a frame waits */
	struct fair fair; /* who waits */
	struct client *first;
	uint32_t n; /* with those that are closing: gone() comes when one is freed */
};

/* Takes fd on success. -ENOMEM. */
int client_new(struct clients *all, int fd, const struct asker *who);
/* Closes those that have not said hello in time, with a word. Returns how many may yet. */
uint32_t clients_sweep(struct clients *all, uint64_t now_ns);
/* The daemon ends: whoever waits for it learns that this is no crash. */
void clients_close(struct clients *all);

/* The last words to whoever breaks the rules, as far as its socket takes them at once. */
void client_refuse(int sock, int code, const char *text, const char *next);

#endif
