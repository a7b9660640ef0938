/* SPDX-License-Identifier: MIT. protonctl_call.h: what a verb asks the daemon, and the answer as
 * JSON. For verbs. */
#ifndef PROTOND_PROTONCTL_CALL_H
#define PROTOND_PROTONCTL_CALL_H

#include <stdint.h>
#include <stdio.h>

#include "protonctl_line.h"
#include "rpc.h"

/* 0, or -errno in c->err. */
int ctl_open(struct ctl *c, struct rpc **ret);
int ctl_call(struct ctl *c, struct rpc *r, struct rpc_reply *ret);
/* Opens, calls `method` with no further params, closes. 0, or -errno in c->err. */
int ctl_ask(struct ctl *c, const char *method, struct rpc_reply *ret);
#define CTL_DB_WORDS 4200
/* "PROTOND_DB=FILE ", to put before a protonview command that would look for another database
 * than the daemon's; else "" */
void ctl_db_words(const struct rpc *rpc, char *buf, size_t n);

/* With --json: the envelope around the answer. True: that is all there is to print. */
bool ctl_json(struct ctl *c, const struct rpc_reply *r);
/* With --json: a list of that key, and how many more there are. */
void ctl_json_list(
	struct ctl *c, const char *key, const msgpack_object *item, uint32_t n, uint64_t more);
/* The end of an envelope, with the warnings so far. */
void ctl_json_end(const struct ctl *c, FILE *f);

/* What a verb has to say is text: with --json as {"text"}. */
void ctl_text(struct ctl *c, const char *text);

#endif
