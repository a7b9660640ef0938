/* SPDX-License-Identifier: MIT. stub.h: what the two files of the stub libcupti share. */
#ifndef REPLAY_STUB_H
#define REPLAY_STUB_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../../agent/backend/cupti/cupti_abi.h"
#include "../../proto/abi/ring.h"
#include "dump.h"

#define STUB_DOMAINS 8u

struct stub {
	pthread_mutex_t lock; /* of everything below but dump, which is read once */
	pthread_cond_t changed;
	struct dump dump;
	int load_error, subscribe_error;
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

#endif
