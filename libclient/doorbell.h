/* SPDX-License-Identifier: MIT. doorbell.h: libprotond's own state, shared by its files and by
 * nothing else.
 *
 *   pd_page     one page, MADV_WIPEONFORK: in a forked child it is 0, so the first call there wakes
 *               the library anew. `gate` is all that a hot function asks
 *   pd_thread   a thread's block (engine.h); only that thread writes it
 *   pd          what API calls and the parked thread say to each other
 *   (park.c)    what is the parked thread's alone: the connection
 */
#ifndef PROTOND_DOORBELL_H
#define PROTOND_DOORBELL_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "engine.h"
#include "place.h"
#include "ring.h"

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define PD_EXPORT   __attribute__((visibility("default")))

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
} pd_page;
#define HOT (&pd_page.hot)

extern __thread struct pd_thread *pd_self __attribute__((tls_model("initial-exec")));

#define PD_TEXT 256u

struct pd_block {
	struct pd_thread t;
	struct pd_block *next; /* while free */
	char error[PD_TEXT];
};

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
	_Atomic uint32_t asked, answered;
	_Atomic int32_t answer;    /* of the last one answered: 0 or -errno */
	_Atomic uint64_t alone_ms; /* no daemon was to be had since then; 0: there is one */
	_Atomic bool settled;      /* the first handshake is over, well or not */
	_Atomic uint32_t hints;    /* gpu_hint() is due with these */
	_Atomic bool give_back;    /* gpu_give_back() is due */
	_Atomic bool wake;         /* the daemon is to look at the ring */
	_Atomic bool main_gone;    /* the main thread has ended */
	_Atomic bool held;         /* GPU wishes that wait for InitializeInjection() */
	char words[PD_TEXT];       /* why answer is negative; written before answered is stored */

	_Atomic uint32_t sessions_lock, export_lock; /* in this order */
	_Atomic uint32_t lock;                       /* of all that follows */
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
	struct pd_gpu {
		bool news;
		uint32_t state, cupti, driver;
		int32_t code;
		char path[256], text[PD_TEXT];
	} gpu;
};
extern struct pd pd;

/* --- thread.c: waking, threads -------------------------------------------------------------------
 */

/* [any] The caller's block: wakes the library if need be; NULL when there is no memory. errno kept.
 */
struct pd_thread *pd_thread_cold(void);
struct pd_block *pd_block_self(void); /* NULL as above */
extern const struct protond_host pd_host;

static inline struct pd_thread *pd_thread_here(void)
{
	struct pd_thread *t = pd_self;

	/* acquire: pairs with the release in gate_set(): behind GATE_ON stand the engine's
	 * functions */
	if (likely(t != NULL) &&
		likely(atomic_load_explicit(&HOT->gate, memory_order_acquire) != GATE_WAKE))
		return t;
	return pd_thread_cold();
}

static inline bool pd_gate_on(void)
{
	/* acquire: as above */
	return atomic_load_explicit(&HOT->gate, memory_order_acquire) == GATE_ON;
}

/* --- name.c, context.c: process-local tables; lock-free -------------------------------------- */

#define NAME_OTHER_OP 1u /* "(other)" where 0 means none */

uint32_t pd_intern(const char *text, uint32_t bytes);
const char *pd_name(uint32_t id, uint32_t *ret_bytes);
uint64_t pd_context_child(uint64_t parent, uint32_t name);
uint32_t pd_context_name(uint64_t context, uint64_t *ret_parent);

/* --- wait.c ---------------------------------------------------------------------------------- */

uint64_t pd_now_ms(void);
void pd_lock(_Atomic uint32_t *lock);
void pd_unlock(_Atomic uint32_t *lock);
void pd_changed(void);
void pd_wake(_Atomic uint32_t *word); /* whoever waits for it */
/* Until *word differs from seen or deadline (pd_now_ms()) has passed; or (true) a signal's handler
 * has run on this thread. */
bool pd_wait(_Atomic uint32_t *word, uint32_t seen, uint64_t deadline);

/* --- park.c: the parked thread; link.c: its connection --------------------------------------- */

int pd_park(void);  /* starts it; idempotent */
void pd_ring(void); /* the bell: it looks at pd */
int pd_bell_make(void);
void pd_end_with_program(void); /* end.c: ends the process if only our threads are left */

/* --- load.c ---------------------------------------------------------------------------------- */

/* The engine's table, loaded but not opened; NULL and words. */
const struct protond_engine *pd_engine_load(char *text);
const char *pd_own_path(void); /* of this library, "" when it is linked into the program */
bool pd_is_elsewhere(void);    /* this library was loaded by dlmopen() */
/* `symbol` of the libprotond that was in this process before this one; NULL: this is the first. */
void *pd_first(const char *symbol);

/* --- info.c ---------------------------------------------------------------------------------- */

void pd_env_read(void); /* on a thread of the application's */
#define PD_STAT 1024
/* A field, from 3 on, of /proc/self/stat, in buf with what follows it; NULL: none. */
const char *pd_stat(char buf[PD_STAT], int field);
uint64_t pd_start_time(void);
bool pd_token(uint8_t ret[16]);
bool pd_is_named_in(const char *variable); /* this library, in LD_PRELOAD or CUDA's variables */

/* --- spawn.c --------------------------------------------------------------------------------- */

void pd_spawn_env_read(void); /* under pd.lock: what a daemon would be started with */
int pd_spawn_daemon(void);    /* a private protond, not our child; 0 when it was started */

/* --- export.c -------------------------------------------------------------------------------- */

/* Asks the daemon for a finished session and writes NAME.FORMAT into the caller's directory. */
struct pd_ask {
	uint32_t session, phases; /* phases: 0 all, else one, from 1 */
	const char *format;
	int how; /* enum protond_ask_how */
};
/* A descriptor of the whole text, or -errno and words. */
int pd_export(const struct pd_ask *ask, char *text);
int pd_export_file(const struct pd_ask *ask, const char *name, char *text);

static inline int pd_neg_errno(void)
{
	return errno > 0 ? -errno : -EIO;
}

#endif
