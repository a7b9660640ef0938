/* SPDX-License-Identifier: MIT. doorbell.h: libprotond's own state, and nothing that acts on it.
 * The files of libclient include it.
 *
 *   pd_page     one page, MADV_WIPEONFORK: in a forked child it is 0, so the first call there wakes
 *               the library anew. `gate` is all that a hot function asks
 *   pd_thread   a thread's block (engine.h); only that thread writes it
 *   pd          what API calls and the parked thread say to each other
 *   (link.h)    what is the parked thread's alone: the connection
 *
 * The files stand in layers; each uses those before it: doorbell, futex, name, context, load, autostart,
 * info, end, hello, known, link, park, thread, export, session, api, inject.
 */
#ifndef PROTOND_DOORBELL_H
#define PROTOND_DOORBELL_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "binding.h"
#include "engine.h"
#include "place.h"
#include "record.h"
#include "ring.h"

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define PD_EXPORT   __attribute__((visibility("default")))
/* Of this library alone, so that no look at it goes by way of a table of addresses. */
#define PD_OWN __attribute__((visibility("hidden")))

#ifndef PROTOND_BUILD_VERSION
#define PROTOND_BUILD_VERSION "0.1.0"
#endif

enum gate { GATE_WAKE = 0, GATE_OFF = 1, GATE_ON = 2 };
enum awake { ASLEEP = 0, WAKING = 1, AWAKE = 2 };

struct pd_hot {
	_Atomic uint32_t gate;                       /* enum gate */
	_Atomic uint32_t awake;                      /* enum awake */
	const struct protond_engine *_Atomic engine; /* once it is open */
	void (*enter)(struct pd_thread *t, uint32_t name);
	void (*leave)(struct pd_thread *t);
};
extern union pd_page {
	struct pd_hot hot;
	unsigned char bytes[4096];
} pd_page PD_OWN;
#define HOT (&pd_page.hot)

extern __thread struct pd_thread *pd_self __attribute__((tls_model("initial-exec"))) PD_OWN;

#define PD_TEXT 256u

struct pd_block {
	struct pd_thread t;
	struct pd_block *next;  /* while free */
	struct pd_block *older; /* of all there are; set once */
	_Atomic bool stray;     /* free, and not among the spare ones */
	char error[PD_TEXT];
};

/* Of a question that the parked thread asks the daemon. */
enum export_state { EXPORT_IDLE = 0, EXPORT_ASKED = 1, EXPORT_SENT = 2, EXPORT_DONE = 3 };

struct pd {
	uint32_t pid;          /* whose state this is; 0: nobody's yet */
	bool inert;            /* a setuid program, disabled or second: no thread runs */
	bool disabled;         /* PROTOND_DISABLE=1 */
	bool second;           /* another libprotond was here before: all is left to it */
	bool elsewhere;        /* in a namespace of its own: no thread has a block */
	bool forked;           /* this process is the child of one that had woken */
	bool has_token;        /* started by `protonctl run` */
	_Atomic bool parked;   /* the parked thread was started */
	_Atomic bool injected; /* InitializeInjection was called */
	uint8_t token[16], parent[16];
	struct pd_bell {
		int rd, wr;
		ino_t ino, rd_ino; /* of wr, rd: the numbers may have become somebody else's */
	} bell;

	_Atomic uint32_t change;     /* futex: something below has changed */
	_Atomic uint32_t local_want; /* for sessions of this process */
	_Atomic uint32_t full_want;  /* what the engine is to do, GPU bits that wait included */
	_Atomic(protond_want_fn *) on_want;
	_Atomic uint32_t asked, answered;
	_Atomic bool ring_named;   /* the ring is a file, which outlives the process */
	_Atomic uint64_t alone_ms; /* no daemon was to be had since then; 0: there is one */
	_Atomic bool settled;      /* the first handshake is over, well or not */
	_Atomic uint32_t hints;    /* gpu_hint() is due with these */
	_Atomic bool give_back;    /* gpu_give_back() is due */
	_Atomic bool wake;         /* the daemon is to look at the ring */
	_Atomic bool main_gone;    /* the main thread has ended */
	_Atomic bool held;         /* GPU wishes that wait for InitializeInjection() */

	_Atomic uint32_t sessions_lock, export_lock; /* in this order */
	_Atomic uint32_t lock;                       /* of all that follows */
	int32_t answer;      /* of the last question answered: 0 or -errno; before `answered` */
	char words[PD_TEXT]; /* why it is negative */
	/* What the variables said. getenv() is for the application's threads alone: on ours it
	 * would race with their setenv(). */
	struct pd_env {
		struct place_list places;
		char gpu[16];
		bool injected;        /* one of the loading variables names us */
		bool await_injection; /* cuInit() will call InitializeInjection() */
		bool inherit_copy;
		bool autostart;
		uint32_t info_bytes;
		char info[RING_INFO_BYTES - 96];
	} env;
	struct pd_export {
		uint32_t state; /* enum export_state */
		uint32_t request, session, phase, timeout_ms;
		uint64_t begin_ms;
		char format[32];
		int32_t code;
		int fd;
		char text[PD_TEXT];
	} export;
	struct pd_began {       /* has the daemon begun it? One for each slot of session.c */
		uint32_t state; /* enum export_state */
		uint32_t request, session;
		uint32_t verb; /* SESSION_FINALIZE: has it its end? */
		int32_t code;
		char text[PD_TEXT];
	} began[JOB_SESSIONS];
	struct pd_gpu {
		bool news;
		struct gpu_report report;
	} gpu;
};
extern struct pd pd PD_OWN;

_Static_assert(offsetof(struct pd_block, t) == 0, "a thread's block is found by its thread");

static inline bool pd_gate_on(void)
{
	/* acquire: pairs with the release in gate_set(): behind GATE_ON stand the engine's
	 * functions */
	return atomic_load_explicit(&HOT->gate, memory_order_acquire) == GATE_ON;
}

static inline int pd_neg_errno(void)
{
	return errno > 0 ? -errno : -EIO;
}

#endif
