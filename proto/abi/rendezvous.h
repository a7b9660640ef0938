/* SPDX-License-Identifier: MIT. rendezvous.h: how a job and protond meet.
 *
 * agent.sock is a SOCK_SEQPACKET Unix socket: one message, one packet, fixed structs,
 * little-endian. The peer's uid and host pid come from SO_PEERCRED and are the only ones believed.
 * A message that is too short, too long, of an unknown type or out of order closes the connection,
 * with REFUSED and words where possible. A message may grow at its end: a reader takes the prefix
 * that it knows.
 *
 *   job                                   protond
 *   ATTACH                            ->
 *                                     <-  WELCOME, or REFUSED
 *                                     <-  WANT, whenever what is wanted changes
 *   RING + fd                         ->      once the engine is loaded, and after every reconnect
 *                                     <-  CTL + fd     the control file, read-only
 *   EXPORT                            ->
 *                                     <-  EXPORTED + sealed memfd, or -errno and words
 *   SESSION                           ->      after its START or its FINALIZE went into a lane
 *                                     <-  SESSION_IS: 0, or -errno and words
 *   STATE                             ->      when the GPU state changed
 *   PING (any time)                  <->      answered by PONG once all before it is done
 *
 * A job that knows beforehand what WELCOME would say makes its ring at once and offers it: ATTACH
 * (RV_OFFERED) and RING in one go, on a connection that waits for nothing. The socket's queue keeps
 * both, and the ring with them, though the job be gone before protond looks.
 *
 * Socket names below the runtime directory, which docs/trust.md describes.
 */
#ifndef PROTOND_ABI_RENDEZVOUS_H
#define PROTOND_ABI_RENDEZVOUS_H

#include <stdint.h>

#include "gpu_report.h"

#define RV_AGENT_SOCK   "agent.sock"
#define RV_CONTROL_SOCK "control.sock"
#define RV_RINGS_DIR    "rings" /* rings/UUID.ring: the job's; rings/UUID.ctl: the daemon's */

#define RV_MAGIC       0x31565250u /* "PRV1" */
#define RV_MESSAGE_MAX 8192u
#define RV_TEXT_MAX    256u

enum rv_type {
	RV_ATTACH = 1,
	RV_WELCOME = 2,
	RV_REFUSED = 3,
	RV_WANT = 4,
	RV_RING = 5,
	RV_CTL = 6,
	RV_EXPORT = 7,
	RV_EXPORTED = 8,
	RV_STATE = 9,
	RV_PING = 10,
	RV_PONG = 11,
	RV_SESSION = 12, /* to a daemon from RING_ABI_ASKS on */
	RV_SESSION_IS = 13,
};

struct rv_head {
	uint32_t magic;
	uint16_t type;  /* enum rv_type */
	uint16_t bytes; /* of the whole message */
};

enum rv_attach_flags {
	RV_INJECTED = 1, /* by CUDA_INJECTION64_PATH, NVTX_INJECTION64_PATH or LD_PRELOAD */
	RV_FORKED = 2,   /* the child of an attached process */
	RV_OFFERED = 4,  /* RING follows at once: the job may be gone before it is answered */
};

struct rv_attach {
	struct rv_head head;
	uint32_t abi; /* RING_ABI of the library */
	uint32_t flags;
	uint32_t pid; /* in the job's namespace */
	uint32_t pad0;
	uint64_t pid_start; /* likewise */
	uint8_t token[16];  /* PROTOND_TOKEN: which `protonctl run` this belongs to; zero: none */
	uint8_t parent[16]; /* ring uuid of the parent, if forked */
	char version[32];   /* of libprotond */
	char gpu[16];       /* PROTOND_GPU: "", "none", "armed", "on" */
	/* Followed by the info text: NUL-separated KEY=VALUE, as in the ring's info page. */
};

struct rv_welcome {
	struct rv_head head;
	uint32_t abi;      /* the daemon's RING_ABI */
	uint32_t want;     /* enum ring_want */
	uint8_t store[16]; /* goes into the ring's header */
	char version[32];
	uint32_t n_lanes, lane_bytes; /* what the daemon wants rings to be; 0: the defaults */
	char rings[232];              /* directory for named rings; "": use a memfd */
};

/* The file beside agent.sock: what WELCOME would say to whoever comes. The daemon's; read once, by a
 * process that starts. Where there is none, WELCOME says it. */
#define RV_HELLO      "hello"
#define RV_HELLO_MAX  4096u                 /* bytes; a file may have grown at its end */
#define RV_HELLO_MARK 0x314f4c4c45485250ull /* "PRHELLO1" */
enum rv_hello_flags {
	RV_HELLO_NAMED = 1, /* rings of the daemon's own user have names, below rings/ */
};
struct rv_hello {
	uint64_t mark;
	uint32_t abi;
	uint32_t
		want; /* enum ring_want, of any job; of one with a token at least scopes, with time */
	uint8_t store[16];
	uint32_t n_lanes, lane_bytes;
	uint32_t flags; /* enum rv_hello_flags */
	uint32_t pad0;
};

struct rv_refused { /* and any error on the connection */
	struct rv_head head;
	int32_t code; /* -errno */
	uint32_t abi;
	char text[RV_TEXT_MAX]; /* what happened and what to do, NUL-terminated */
};

struct rv_want {
	struct rv_head head;
	uint32_t want;
	uint32_t pad0;
};

struct rv_ring {
	struct rv_head head;
	uint8_t uuid[16];
	uint32_t named; /* 1: rings/UUID.ring; 0: memfd. The descriptor travels with either */
	uint32_t pad0;
};

struct rv_ctl {
	struct rv_head head;
	int32_t code; /* 0 and a descriptor, or -errno and text */
	uint32_t n_lanes;
	char text[RV_TEXT_MAX];
};

struct rv_export {
	struct rv_head head;
	uint32_t request;    /* echoed */
	uint32_t session;    /* the job's own number */
	uint32_t phase;      /* 0: all of them; else one, counted from 1 */
	uint32_t timeout_ms; /* how long the daemon may wait for launches still in flight */
	char format[32];     /* "hatchet", "hatchet_msgpack", "chrome_trace" */
};

struct rv_exported {
	struct rv_head head;
	uint32_t request;
	int32_t code; /* 0 and a sealed memfd, or -errno and text */
	uint64_t bytes;
	char text[RV_TEXT_MAX];
};

/* Has the daemon begun it? Or has it its end, so that it is stored whatever becomes of the job? */
struct rv_session {
	struct rv_head head;
	uint32_t request; /* echoed */
	uint32_t session; /* the job's own number */
	uint32_t verb; /* SESSION_FINALIZE: its end; else its beginning. Older libraries end here */
	uint32_t pad0;
};
#define RV_SESSION_LEAST 16u

struct rv_session_is {
	struct rv_head head;
	uint32_t request;
	int32_t code; /* 0, or -errno and text; -EAGAIN: not known yet */
	char text[RV_TEXT_MAX];
};

struct rv_state {
	struct rv_head head;
	struct gpu_report gpu;
};

_Static_assert(sizeof(struct rv_attach) == 112, "rendezvous ABI");
_Static_assert(sizeof(struct rv_welcome) == 304, "rendezvous ABI");
_Static_assert(sizeof(struct rv_hello) == 48, "rendezvous ABI");
_Static_assert(sizeof(struct rv_refused) == 272, "rendezvous ABI");
_Static_assert(sizeof(struct rv_export) == 56, "rendezvous ABI");
_Static_assert(sizeof(struct rv_exported) == 280, "rendezvous ABI");
_Static_assert(sizeof(struct rv_session) == 24, "rendezvous ABI");
_Static_assert(sizeof(struct rv_session_is) == 272, "rendezvous ABI");
_Static_assert(sizeof(struct rv_state) == 536, "rendezvous ABI");

/* Keys of the info text. */
/* clang-format off */
#define RV_INFO_KEYS(X) /* key        environment variables it is taken from, first set wins */ \
        X(command,    "")            /* argv, shell-quoted */                                    \
        X(exe,        "")                                                                        \
        X(cwd,        "")                                                                        \
        X(host,       "")                                                                        \
        X(rank,       "RANK SLURM_PROCID OMPI_COMM_WORLD_RANK PMI_RANK")                         \
        X(local_rank, "LOCAL_RANK SLURM_LOCALID OMPI_COMM_WORLD_LOCAL_RANK PMI_LOCAL_RANK")      \
        X(world_size, "WORLD_SIZE SLURM_NTASKS OMPI_COMM_WORLD_SIZE PMI_SIZE")                   \
        X(job_id,     "SLURM_JOB_ID")                                                            \
        X(visible,    "CUDA_VISIBLE_DEVICES")
/* clang-format on */

#endif
