/* SPDX-License-Identifier: MIT. binding.h: what our Python extension calls besides protond.h: not
 * installed.
 *
 * protond_start() reads variables, so a program in C must not set any meanwhile. In Python the
 * interpreter's lock guards them: they are read with it, and the session is started without. */
#ifndef PROTOND_BINDING_H
#define PROTOND_BINDING_H

#include "protond.h"

void protond_env_read(void); /* does not wait */
/* As protond_start_domains(), by what the last protond_env_read() found. */
int protond_start_by_env_read(const char *name, const struct protond_options *options,
	const char *switches, const char *nvtx_domains);

enum protond_ask_how {
	ASK_IMPATIENT = 1, /* the daemon has just left a call unanswered: it is given a moment */
	ASK_INTERRUPTIBLE = 2, /* -EINTR after a signal's handler has run on this thread, ... */
	ASK_RESUMED = 4 /* ... and the call is to be made again with this, to go on waiting */
};

/* As protond_finalize() of one session and protond_export(). A finalize that was interrupted and is
 * not to go on is to be resumed with no format. */
int protond_finalize_by(int session, const char *format, int how);
int protond_export_by(int session, int phase, const char *format, int how);

/* As protond_state_enter(), but shown below the state around it. */
void protond_state_enter_below(uint32_t name);

/* See struct protond_engine. protond_op(): the operation that this thread is in; 0: none. */
int protond_capturing(void);
int protond_captured(uint32_t metric, int whole, uint64_t which);
void *protond_captured_ring(uint32_t device, uint64_t *ret_bytes);
void protond_markers(int on);
uint32_t protond_op(void);
struct engine_block; /* engine.h */
void protond_block(const struct engine_block *b);

/* A metric whose value is a name, by its id. */
void protond_metric_name(uint32_t metric, uint32_t name);
/* The text of a name, for ever; no NUL behind it. */
const char *protond_name_text(uint32_t name, uint32_t *ret_bytes);
/* fn is called with what is wanted, enum ring_want: now, and after each change, on libprotond's own
 * thread, where no lock of an interpreter may be waited for. NULL: no more. One at a time. */
typedef void protond_want_fn(uint32_t want);
void protond_on_want(protond_want_fn *fn);

#endif
