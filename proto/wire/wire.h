/* SPDX-License-Identifier: MIT. wire.h: the control protocol between protond and people's tools.
 *
 * control.sock is a Unix stream socket. A frame is a little-endian u32 length, then that many bytes
 * of one MessagePack-RPC message: request [0, msgid, method, params], response [1, msgid, error,
 * result], notification [2, method, params] (frames of `watch`). params and result are maps with
 * string keys; error is nil or {"code": -errno, "text": words, "next": what to do}. Descriptors (a
 * memfd) travel by SCM_RIGHTS with the first byte of the response that names them ("fd": true).
 *
 * The first request is "hello". Bounds: a frame WIRE_FRAME_MAX, depth WIRE_DEPTH_MAX, and per
 * client WIRE_OUT_MAX bytes not yet read; a client beyond one of them is told why, if it can be,
 * and closed. Changes are additive: unknown keys are ignored, missing ones have their default. */
#ifndef PROTOND_WIRE_H
#define PROTOND_WIRE_H

#include <stddef.h>
#include <stdint.h>

#define WIRE_VERSION     1
#define WIRE_FRAME_MAX   (1u << 20)
#define WIRE_DEPTH_MAX   16u
#define WIRE_OBJECTS_MAX (1u << 18) /* in one frame */
#define WIRE_OUT_MAX     (8u << 20)
#define WIRE_CLIENTS_MAX 512u /* under a service a quarter of them for one user */

/* Every verb: dispatch, help and tests derive from this list.
 * who: A anybody who may connect; O the owner of the session or job, root, group protond. */
/* clang-format off */
#define WIRE_VERBS(X) /* id  method  who  params → result */                                                      \
        X(hello,      "hello",      'A', "{version} → {version, daemon, pid, store, db, uid}")                    \
        X(status,     "status",     'A', "{} → {daemon, pid, uptime_s, jobs, sessions, journal_bytes, rss_bytes, cpu_s, drops, db, db_bytes, gpu, warnings}") \
        X(jobs,       "jobs",       'A', "{all?} → {jobs: [{pid, ring, uid, command, cwd, rank, started_ns, gpu, gpu_text, sessions, events, kernels, drops, ended}]}") \
        X(sessions,   "sessions",   'A', "{} → {sessions: [{id, uuid, name, command, state, source, uid, created_ns, ended_ns, duration_ns, processes, launches, matched, empty, tags, note}]}") \
        X(start,      "start",      'O', "{name, pid?, all?, match?, token?, source?, backend?, mode?, data?, context?, hook?, cpu?, gpu?, switches?, nvtx_domains?} → {id, uuid, jobs, settled}  (once those jobs record, at most 2 s)") \
        X(activate,   "activate",   'O', "{session} → {id, uuid}")                                                \
        X(stop,       "stop",       'O', "{session} → {id, uuid}")                                                \
        X(switch,     "switch",     'O', "{session, on?, off?} → {id, uuid}  (words parted by commas)")            \
        X(finalize,   "finalize",   'O', "{session, timeout_ms?} → {id, uuid, launches, unmatched}  (after it is stored)") \
        X(sync,       "sync",       'O', "{session} → {id, uuid, db} or, for another uid's daemon, {id, fd: portable file}; {all: true} → {db}") \
        X(export,     "export",     'O', "{session, format} → {fd, bytes, name}")                                 \
        X(delete,     "delete",     'O', "{session, force?} → {id, name}  (-EBUSY before it is finalized, unless forced)") \
        X(label,      "label",      'O', "{session, name? or note? or tag? or untag?} → {id, uuid, name, note, tags}")     \
        X(prune,      "prune",      'O', "{age_s?, size?, keep?, all_users?, dry_run?, slice_ms?} → {deleted, bytes, rows, more, sessions: [{id, name}]}  (by slice_ms it answers; while there is more, ask again)") \
        X(where,      "where",      'O', "{pid?, session?} → {jobs: [{pid, ring, rank, command, ended, delivered_ns, threads: [{tid, open: [{path, since_ns}]}], launches: [{kernel, path, since_ns, running, device, stream}]}]}") \
        X(top,        "top",        'O', "{session?, n?} → {session, now_ns, cells: [{path, kind, class, count, sum_ns, max_ns}], jobs: [{pid, drops, gpu}]}") \
        X(pause,      "pause",      'O', "{pid?} → {jobs, settled}  (once they let go of CUPTI, at most 2 s)")     \
        X(resume,     "resume",     'O', "{pid?} → {jobs, settled}  (once they have it again, at most 2 s)")       \
        X(backends,   "backends",   'A', "{} → {backends: [{name, state, text}]}")                                \
        X(stop_daemon,"stop_daemon",'O', "{} → {}")
/* clang-format on */

enum wire_verb {
#define X(id, method, who, help) WIRE_##id,
	WIRE_VERBS(X)
#undef X
		WIRE_VERB_MAX
};

struct wire_verb_info {
	const char *method, *help;
	char who; /* 'A' or 'O', as WIRE_VERBS says */
};
extern const struct wire_verb_info wire_verbs[WIRE_VERB_MAX];
int wire_verb_find(const char *method, size_t bytes); /* enum wire_verb, or -ENOENT */

/* Length of the frame that starts with these four bytes. */
uint32_t wire_frame_bytes(const void *header);

/* Walks one object that must fill p[0..n) exactly. 0; -EBADMSG; -E2BIG too deep or too many. */
int wire_check(const void *p, size_t n);

#endif
