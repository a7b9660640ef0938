/* SPDX-License-Identifier: MIT. protond.h: name what a program does, for the profiler protond.
 *
 * Link with -lprotond (pkg-config protond). C99, C++11. Every function may be called from any
 * thread, at any time, also before main() and while nothing records; none of them exits, aborts,
 * throws or changes errno. Functions on hot paths (scopes, states, ops, metrics, contexts) take no
 * lock, allocate nothing and make no system call after a thread's first call. Only the session
 * functions may wait, and each says how long.
 *
 * Outcomes that are defined, so that no mistake breaks a profile:
 *   - an exit with nothing open is ignored;
 *   - longjmp() or a C++ exception over scopes: close them with protond_scope_unwind(depth);
 *   - an exit on another thread closes that thread's innermost scope, or is ignored;
 *   - scopes entered before a session counts from its start, scopes left after its end up to there;
 *   - finalize inside an open scope: its time so far is stored, marked as open;
 *   - a thread's open scopes are closed at its end;
 *   - names of any bytes, up to 1 024; a longer one is cut and ends in "~" and a hash;
 *   - more than 65 536 names or paths: the surplus is counted under "(other)";
 *   - more than 256 open scopes: the deeper ones count as the 256th; exits stay balanced;
 *   - more threads than lanes (256 by default): the events of the surplus are counted as lost;
 *   - after fork() the child is silent until its own first call, then a process of its own;
 *   - so is a program in which the library is only preloaded (LD_PRELOAD).
 *
 * Where a daemon runs and records every program, the library makes its ring as it is loaded, or at
 * its first call after fork(), and hands it over without waiting: all is recorded from there to
 * _exit(). Else it meets the daemon beside the program, in a few milliseconds.
 *
 * It has a thread that opens files and sockets beside the program's. Redirect with dup2()
 * alone, onto the open number: after a close() the number may be another's.
 */
#ifndef PROTOND_H
#define PROTOND_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PROTOND_VERSION "0.1.0"
#define PROTOND_ALL     (-1)

/* What to record. Zero-initialise; 0 and NULL mean the default. Borrowed during the call only. */
struct protond_options {
	const char *backend; /* "cupti" (default), "none" */
	const char *mode;    /* NULL; "proton", "proton-3.6": its files are as Triton's Proton's */
	const char *data;    /* "tree" (default); "trace" or "both": a timeline beside it */
	const char *context; /* "shadow" (default), "python" */
	const char *hook;    /* NULL, "triton" */
	int cpu_off;         /* 1: scopes cost less and have no CPU time */
	int autostart;       /* 1: as PROTOND_AUTOSTART=1, for this call */
};

/* Starts a session and makes it active. `name` (NULL: "protond") is also the file name, without
 * suffix, that protond_finalize() writes, as a path from the caller's directory. A name that is
 * live already gives the existing id and activates it. Waits, at most 10 s, until recording has
 * begun, so that whatever the caller does next is in the session. A process has 32 sessions at
 * most, those counted that it finalized without a file in the last two seconds: then this waits for
 * the oldest of them. Returns an id >= 0; -EMFILE when all are live; -EDQUOT when this user has as
 * many sessions as the daemon lets one user have, -ENOSPC when it has no room for another at all;
 * -ENOTCONN when no daemon runs (set PROTOND_AUTOSTART=1 to start a private one), -EINVAL for an
 * unknown option value, -EACCES when the daemon refuses or the library is inert, -ETIMEDOUT; never
 * -1, which is PROTOND_ALL. Where the daemon does not say in 2 s that it has begun the session,
 * protond_finalize() asks once more, and returns what protond_start() would have. */
int protond_start(const char *name, const struct protond_options *options);

/* As protond_start(); the session also records what `switches` says, words parted by commas: "sync",
 * calls that wait for the GPU; docs/options.md has the others. NULL: nothing more. Of a live session
 * it changes nothing. */
int protond_start_with(
	const char *name, const struct protond_options *options, const char *switches);

/* As protond_start_with(); of NVTX's ranges and marks the session has those of the domains in
 * `nvtx_domains`, parted by commas: "default" is the one without a name; "-NAME": all but that. NULL:
 * all. */
int protond_start_domains(const char *name, const struct protond_options *options,
	const char *switches, const char *nvtx_domains);

/* Resumes a session, or PROTOND_ALL. Idempotent. 0, or -ENOENT for an unknown id. Does not wait. */
int protond_activate(int session);

#define PROTOND_FLUSH 1 /* wait, at most 5 s, until everything launched so far is delivered */

/* Pauses a session, or PROTOND_ALL. Idempotent. flags: 0 or PROTOND_FLUSH.
 * 0, -ENOENT for an unknown id, -ETIMEDOUT when PROTOND_FLUSH ran out. */
int protond_deactivate(int session, int flags);

/* Ends a session, or PROTOND_ALL. 0 means that all that was done in it is stored, or will be, though
 * process and daemon be killed right now. format NULL: nothing is written here; the daemon says within
 * milliseconds that it has the end, and is given 10 s, or 2 s where the ring is a file, which the next
 * daemon finds. "hatchet", "pprof" or any that `protonview help export` lists: also writes
 * NAME.FORMAT, as the caller, whole or not at all, over a file of that name; waits until it is
 * complete, at most 10 s, for a timeline 120 s; 2 s where no daemon is any more. Of PROTOND_ALL the
 * rest is hardly waited for once a daemon has left one unanswered. 0; -ENOENT; -EINVAL unknown format;
 * -ENODATA it kept no timeline; -ETIMEDOUT; -ENOTCONN no daemon; or the file's -errno. After one of the
 * last three it has ended all the same, and is stored if the process lives until a daemon has it. */
int protond_finalize(int session, const char *format);

/* Begins the next phase of a session: GPU work belongs to the phase of its launch, a scope to that
 * of its end. Returns the new phase's number, from 1; -ENOENT. Does not wait. */
int protond_advance_phase(int session);

/* A session of this process, live or finalized, as it is now: a descriptor of the whole file, which
 * the caller reads and closes. phase: one of it, or PROTOND_ALL. format as protond_finalize(). GPU
 * work that CUPTI has not handed over yet is not in it: see protond_flush(). Waits, at most 10 s.
 * A descriptor >= 0; -ENOENT, -EINVAL, -ETIMEDOUT, -ENOTCONN. */
int protond_export(int session, int phase, const char *format);

/* Waits, at most timeout_ms, until all GPU work launched so far has been handed over. 0;
 * -ETIMEDOUT. */
int protond_flush(int timeout_ms);

/* For language runtimes: what a launch stands in for sessions with context "python". fn is called
 * on threads that launch, inside the launch, and writes the names (protond_name()) of the thread's
 * stack, innermost first, at most `cap` of them; returns how many, 0 for a thread that has none:
 * its launches then stand where its scopes are. NULL ends that. */
#define PROTOND_STACK_MAX 255
typedef uint32_t protond_stack_fn(uint32_t *names, uint32_t cap);
void protond_stack(protond_stack_fn *fn);

/* Whether events of this process are recorded now: to spare what only serves a profile. A program
 * that a session is started on is recorded some milliseconds later. */
int protond_recording(void);

/* Lets go of the GPU's interfaces (CUPTI) in this process, for another tool or for a while; scopes
 * go on. protond_gpu_resume() takes them again, after as many calls as there were pauses: the other
 * tool must have done by then, for what it still holds is ended (cuptiFinalize; torch.profiler
 * never lets go by itself). PROTOND_GIVE_BACK: no other tool is coming; what CUPTI costs while
 * nobody uses it is given back too (cuptiFinalize), inside the process's next CUDA call, where one
 * comes within 250 ms and no CUDA graph is alive. Each waits, at most 2 s, until it holds. 0 (also
 * when nothing is recorded); -ETIMEDOUT. */
#define PROTOND_GIVE_BACK 1
int protond_gpu_pause(int flags);
int protond_gpu_resume(void);

/* Why the last session function of this thread failed, and what to do; "" after success. Valid
 * until the thread's next session function. */
const char *protond_error(void);

/* The id of a name, for the functions below. Interned once per process; the same text always has
 * the same id. NULL is "". Keep it in a static. 0, "(other)", when 65 535 names are in use. */
uint32_t protond_name(const char *name);
uint32_t protond_name_n(const char *name, uint32_t bytes); /* any bytes, NULs included */

/* A scope: everything that happens and is launched until its exit stands below it. */
void protond_scope_enter(uint32_t name);
void protond_scope_exit(void);
/* Closes the innermost open scope of that name and whatever is open inside it; none: ignored. For
 * languages in which scopes may be left in another order than entered. */
void protond_scope_leave(uint32_t name);
/* Closes scopes until `depth` are open. depth >= protond_depth(): nothing. */
void protond_scope_unwind(uint32_t depth);
uint32_t protond_depth(void); /* open scopes of this thread */

/* A state stands last in the path, below all scopes, whatever is entered inside it. Nested: the
 * inner one is shown, the outer one comes back. At most 16 deep. */
void protond_state_enter(uint32_t name);
void protond_state_exit(void);

/* An op names the launches inside it: their time is the op's, their own names are not shown.
 * Metrics inside an op are the op's. Ops do not nest: the inner one replaces, its exit ends both.
 */
void protond_op_enter(uint32_t name);
void protond_op_exit(void);

/* The id of a metric: "name (unit) (kind)". kind (inc), the default: summed, and parents show the
 * sum of their subtree; (exc): summed, for this scope alone; (pty): a property, the last one holds.
 * protond_metric("flops8"), ("bytes"), ("loss (pty)"), ("cpu (ns) (exc)"). */
uint32_t protond_metric(const char *name_unit_kind);

/* A value of a metric of the current op, else state, else scope. */
void protond_metric_i64(uint32_t metric, int64_t value);
void protond_metric_u64(uint32_t metric, uint64_t value);
void protond_metric_f64(uint32_t metric, double value);
void protond_metric_str(
	uint32_t metric, const char *value); /* interned: few distinct values only */

/* Where this thread is, to be set in another thread of this process (pools, tasks). 0 is "nowhere
 * of its own": such a thread stands wherever the main thread is. Setting a context hides the scopes
 * that are open now until context_set(0). A context may be set any number of times, anywhere. */
uint64_t protond_context_get(void);
void protond_context_set(uint64_t context);
/* The place below `parent` (0: the root) that scope `name` is; the parent when 65 535 are in use.
 */
uint64_t protond_context_child(uint64_t parent, uint32_t name);

/* A span: a scope that is on no thread's stack, for coroutines, fibers and requests that go from
 * thread to thread. It begins with protond_span_begin() and is recorded once, at its end, by
 * whatever thread ends it, standing where `context` is: of a request where it begins,
 * protond_context_child(protond_context_get(), protond_name("handle")). What runs inside it does so
 * between protond_context_set(context) and protond_context_set(0), on any thread.
 * protond_span_begin() gives 0 while nothing is recorded; such a span counts from the start of the
 * recording. */
uint64_t protond_span_begin(void);
void protond_span_end(uint64_t context, uint64_t begin);

/* PROTOND_SCOPE("literal"): a scope until the end of the block. */
#if defined(__GNUC__) && !defined(__cplusplus)
static inline void protond__scope_leave(const int *p)
{
	(void)p;
	protond_scope_exit();
}
#define PROTOND__CAT2(a, b) a##b
#define PROTOND__CAT(a, b)  PROTOND__CAT2(a, b)
/* The id is interned once per place; racing threads store the same value. */
#define PROTOND__SCOPE(id, scope, literal)                                         \
	static uint32_t id;                                                        \
	if (__atomic_load_n(&id, __ATOMIC_RELAXED) == 0)                           \
		__atomic_store_n(&id, protond_name("" literal), __ATOMIC_RELAXED); \
	protond_scope_enter(__atomic_load_n(&id, __ATOMIC_RELAXED));               \
	__attribute__((cleanup(protond__scope_leave), unused)) int scope = 0
#define PROTOND__SCOPE_N(n, literal) \
	PROTOND__SCOPE(PROTOND__CAT(protond__n, n), PROTOND__CAT(protond__s, n), literal)
#define PROTOND_SCOPE(literal) PROTOND__SCOPE_N(__COUNTER__, literal) /* several on a line */
#endif

#ifdef __cplusplus
} /* extern "C" */

namespace protond
{
/* protond::scope s("literal"): a scope until the end of the block, exceptions included. */
class scope
{
      public:
	explicit scope(const char *name)
	{
		protond_scope_enter(protond_name(name));
	}
	explicit scope(uint32_t name)
	{
		protond_scope_enter(name);
	}
	~scope()
	{
		protond_scope_exit();
	}
	scope(const scope &) = delete;
	scope &operator=(const scope &) = delete;
};
} // namespace protond

#define PROTOND__CAT2(a, b) a##b
#define PROTOND__CAT(a, b)  PROTOND__CAT2(a, b)
/* The id's variable is in a function of its own: an inline function is the same in each file,
 * whatever the counter is there. */
#define PROTOND_SCOPE(literal)                                                          \
	const ::protond::scope PROTOND__CAT(protond__s, __COUNTER__)([]() -> uint32_t { \
		static const uint32_t id = protond_name("" literal);                    \
		return id;                                                              \
	}())
#endif

#endif
