/* SPDX-License-Identifier: MIT. stub.h: what the files of the stub libcupti share. */
#ifndef REPLAY_STUB_H
#define REPLAY_STUB_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../../agent/backend/cupti/cupti_abi.h"
#include "../../proto/abi/ring.h"
#include "dump.h"
#include "replay.h"

#define STUB_DOMAINS 8u
/* What CUPTI calls the default stream of a context; and, made up, the default one of a thread. */
#define STUB_DEFAULT_STREAM          7u
#define STUB_THREAD_STREAM           9u
#define STUB_STREAM(context, number) ((uint64_t)(context) << 36 | (uint64_t)(number) << 4)

struct stub {
	pthread_mutex_t lock; /* of everything below but dump, which is read once */
	pthread_cond_t changed;
	struct dump dump;
	int load_error, subscribe_error;
	bool storms;
	cupti_callback_fn *callback; /* the subscriber's */
	void *user;
	bool enabled[STUB_DOMAINS][CBID_MAX];
	bool kind[KIND_MAX];
	cupti_request_fn *request;
	cupti_complete_fn *complete;
	size_t dropped;
};
extern struct stub stub;

void stub_load(void);
void play_flush(bool force); /* delivers what a FlushAll would */

/* storm.c, where PD_REPLAY_STORM is set */
int storm_load(struct dump *d, const char *text); /* its devices; -EINVAL */
int storm_run(const struct replay_ops *ops, struct replay_told *ret);
void storm_flush(bool force);

#endif
