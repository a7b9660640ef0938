/* SPDX-License-Identifier: MIT. session.c: the sessions that a program makes itself. They alone may
 * wait.
 *
 * A session is a number of this process and a name. Its verbs are records in the caller's lane, in
 * order with what the caller does. From start to finalize the process asks for what the session
 * needs, whether or not the daemon also does.
 *
 * The lock guards the table of sessions and the order of their records. Nobody holds it while
 * waiting for the daemon: a slot that somebody waits over is STARTING or ENDING, and is his alone.
 */
#include "thread.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "autostart.h"
#include "backends.h"
#include "binding.h"
#include "export_file.h"
#include "formats.h"
#include "futex.h"
#include "info.h"
#include "park.h"
#include "protond.h"
#include "range_name.h"
#include "record.h"

#define SESSION_NAME 512u
#define START_MS     10000u
#define SPAWN_MS     2000u
#define FLUSH_MS     5000u
#define PAUSE_MS     2000u
#define BEGAN_MS     2000u
#define ENDED_MS     10000u
#define HELD_MS \
	2000u /* the daemon keeps a finalized session for a second: its files may be asked for */

enum slot { SLOT_FREE, SLOT_STARTING, SLOT_LIVE, SLOT_ENDING };

static struct session {
	enum slot slot;
	int32_t id; /* from LIVE on */
	uint32_t want, phase;
	bool unsure;      /* the daemon has not said that it has begun it */
	uint64_t held_ms; /* FREE: the daemon may have it until then */
	char name[SESSION_NAME];
} sessions[JOB_SESSIONS];
static int32_t next_id;
static uint32_t pauses;       /* protond_gpu_pause() without its resume */
static uint32_t sessions_pid; /* whose they are: a forked child has none */

/* --- words ------------------------------------------------------------------------------------ */

/* -EPERM is -1, which is PROTOND_ALL: it is -EACCES here. */
__attribute__((format(printf, 2, 3))) static int fail(int code, const char *format, ...)
{
	struct pd_block *b = pd_block_self();
	va_list ap;

	va_start(ap, format);
	if (b != NULL)
		vsnprintf(b->error, sizeof(b->error), format, ap);
	va_end(ap);
	return code == -EPERM ? -EACCES : code;
}

PD_EXPORT const char *protond_error(void)
{
	const struct pd_block *b = pd_block_self();

	if (b == NULL && pd.elsewhere)
		return "libprotond was loaded into a namespace of its own (dlmopen), where it "
		       "cannot "
		       "tell its thread data from the program's: load it with dlopen";
	return b != NULL ? b->error : "no memory";
}

static void lock(void)
{
	pd_lock(&pd.sessions_lock);
}

static void unlock(void)
{
	pd_unlock(&pd.sessions_lock);
}

/* Until something has changed since `was`, or the deadline has passed. */
static void wait_unlocked(uint32_t was, uint64_t deadline)
{
	unlock();
	(void)pd_wait(&pd.change, was, deadline);
	lock();
}

static void begin(void)
{
	(void)fail(0, "%s", "");
	lock();
	if (sessions_pid != pd.pid) {
		memset(sessions, 0, sizeof(sessions));
		pauses = 0;
		sessions_pid = pd.pid;
		next_id = 0;
	}
}

/* --- options ---------------------------------------------------------------------------------- */

struct choice {
	const char *word;
	uint8_t value;
};

static bool choose(const struct choice *c, const char *word, uint8_t *ret)
{
	if (word == NULL || word[0] == '\0')
		word = c->word;
	for (; c->word != NULL; c++)
		if (strcmp(c->word, word) == 0) {
			*ret = c->value;
			return true;
		}
	return false;
}

static uint32_t optional(const char *s)
{
	return s != NULL && s[0] != '\0' ? protond_name(s) : 0;
}

struct more { /* than protond_start() has; NULL: nothing */
	const char *switches, *domains;
};

static int options_read(const struct protond_options *o, const struct more *more,
	struct session_options *ret, uint32_t *ret_want)
{
	/* clang-format off */
	static const struct choice backend[] = {
#define X(name, vendor, caps, injection) {#name, 1},
		GPU_BACKENDS(X)
#undef X
		{"none", 0}, {NULL, 0}};
	/* clang-format on */
	static const struct choice data[] = {{"tree", SESSION_TREE}, {"trace", SESSION_TRACE},
		{"both", SESSION_BOTH}, {NULL, 0}};
	static const struct choice context[] = {
		{"shadow", SESSION_SHADOW}, {"python", SESSION_PYTHON}, {NULL, 0}};
	static const struct choice hook[] = {{"none", 0}, {"triton", 1}, {"torch", 1}, {NULL, 0}};
	static const struct protond_options none;
	uint8_t gpu, hooked;

	o = o != NULL ? o : &none;
	*ret = (struct session_options){.backend = optional(o->backend),
		.mode = optional(o->mode),
		.hook = optional(o->hook),
		.cpu = o->cpu_off != 0 ? SESSION_CPU_OFF : SESSION_CPU_ON,
		.flags = SESSION_DOMAINS,
		.domains = optional(more->domains)};
	if (!choose(backend, o->backend, &gpu))
		return fail(-EINVAL, "unknown backend '%.40s': use " BACKEND_WORDS, o->backend);
	if (!choose(data, o->data, &ret->data))
		return fail(-EINVAL, "unknown data '%.40s': use tree, trace or both", o->data);
	if (o->mode != NULL && term_number(&term_session_modes, o->mode, UINT32_MAX) == UINT32_MAX)
		return fail(
			-EINVAL, "unknown mode '%.40s': use proton, proton-3.6, or none", o->mode);
	if (!choose(context, o->context, &ret->context))
		return fail(-EINVAL, "unknown context '%.40s': use shadow or python", o->context);
	if (!choose(hook, o->hook, &hooked))
		return fail(-EINVAL, "unknown hook '%.40s': use triton or torch", o->hook);
	if (more->switches != NULL && *more->switches != '\0' &&
		!switches_read(more->switches, &ret->switches))
		return fail(
			-EINVAL, "unknown switch in '%.40s': use " SWITCH_WORDS, more->switches);
	if (more->domains != NULL && strlen(more->domains) >= DOMAINS_BYTES)
		return fail(-EINVAL, "NVTX domains: at most %u bytes", DOMAINS_BYTES - 1);
	*ret_want = WANT_SCOPES | WANT_METRICS;
	*ret_want |= want_of_switches(ret->switches, gpu != 0);
	*ret_want |= o->cpu_off == 0 ? (uint32_t)WANT_CPU_TIME : 0;
	*ret_want |= gpu != 0 ? (uint32_t)WANT_GPU : 0;
	*ret_want |= ret->context == SESSION_PYTHON ? (uint32_t)WANT_PYTHON : 0;
	return 0;
}

/* --- asking the parked thread ----------------------------------------------------------------- */

static void want_all(void)
{
	uint32_t want = pauses > 0 ? (uint32_t)WANT_GPU_PAUSE : 0;

	for (uint32_t i = 0; i < JOB_SESSIONS; i++)
		want |= sessions[i].slot != SLOT_FREE ? sessions[i].want : 0;
	atomic_store(&pd.local_want, want);
}

/* Of the last question that was answered, which says of ours, too, what it says. */
static int answer(void)
{
	char words[PD_TEXT];
	int r;

	pd_lock(&pd.lock);
	r = pd.answer;
	memcpy(words, pd.words, sizeof(words));
	pd_unlock(&pd.lock);
	return r < 0 ? fail(r, "%s", words) : 0;
}

/* Until what is wanted now is recorded, or cannot be. Without the lock. */
static int ask(uint64_t deadline)
{
	/* release: local_want is written; pairs with the acquire in link_serve() */
	const uint32_t mine = atomic_fetch_add_explicit(&pd.asked, 1, memory_order_release) + 1;

	pd_ring();
	for (;;) {
		/* acquire, both: pair with the releases in link_answer() and pd_changed() */
		const uint32_t was = atomic_load_explicit(&pd.change, memory_order_acquire);
		const uint32_t done = atomic_load_explicit(&pd.answered, memory_order_acquire);

		if ((int32_t)(done - mine) >= 0)
			break;
		if (pd_now_ms() >= deadline)
			return fail(-ETIMEDOUT, "protond did not answer in time");
		pd_wait(&pd.change, was, deadline);
	}
	return answer();
}

static bool autostart(const struct protond_options *o)
{
	bool by_env;

	pd_lock(&pd.lock);
	by_env = pd.env.autostart;
	pd_unlock(&pd.lock);
	return by_env || (o != NULL && o->autostart != 0);
}

static int spawn_and_ask(uint64_t deadline)
{
	const uint64_t until = pd_now_ms() + SPAWN_MS;
	const int r = pd_spawn_daemon();

	if (r == -ENOENT)
		return fail(-ENOTCONN,
			"no daemon runs, and no protond to start is beside the library or in PATH");
	if (r < 0)
		return fail(-ENOTCONN, "cannot start protond: %s", strerror(-r));
	while (pd_now_ms() < until) {
		if (ask(deadline) == 0)
			return fail(0, "%s", ""); /* not what was said before there was one */
		/* the parked thread sees the socket when it is made, and says so by `change` */
		pd_wait(&pd.change, atomic_load(&pd.change), pd_now_ms() + 20);
	}
	return fail(-ENOTCONN,
		"a private protond was started and did not open its socket in %u s; `protond "
		"--private --foreground` says why",
		SPAWN_MS / 1000);
}

static int record_ask(const struct protond_options *options, bool env_read, uint64_t deadline)
{
	const struct pd_thread *t = pd_thread_here(); /* which wakes the library */
	int r;

	if (pd.inert)
		return fail(-EACCES, "%s",
			pd.disabled ? "PROTOND_DISABLE is set"
			: pd.second ? "another libprotond was loaded before this one: use that"
				    : "a set-user-ID program is not profiled");
	if (t == NULL)
		return fail(-ENOMEM, "no memory");
	if (!env_read)
		pd_env_read();
	r = pd_park(&pd_host);
	if (r < 0)
		return fail(r, "cannot start the library's thread: %s", strerror(-r));
	r = ask(deadline);
	if (r == -ENOTCONN && autostart(options))
		r = spawn_and_ask(deadline);
	return r;
}

static int pause_by(int step, int flags)
{
	const int saved = errno;
	bool was, waits;
	int r = 0;

	(void)pd_thread_here();
	begin();
	was = pauses > 0;
	pauses = step < 0 && pauses == 0 ? 0 : pauses + (uint32_t)step;
	/* Before the wish, which the parked thread may see at once. Nobody is ended for a recording
	 * that may come some time. */
	if (was && pauses == 0 && (atomic_load(&pd.full_want) & WANT_GPU) != 0)
		atomic_fetch_or(&pd.hints, (uint32_t)GPU_HINT_TAKE);
	if (!was && pauses > 0)
		atomic_fetch_or(&pd.hints, (uint32_t)GPU_HINT_ASIDE);
	if (!was && pauses > 0 && (flags & PROTOND_GIVE_BACK) != 0)
		atomic_store(&pd.give_back, true);
	want_all();
	/* A second pause waits too: the first may be giving back. */
	waits = (was != (pauses > 0) || step > 0) && atomic_load(&pd.parked);
	unlock();
	if (waits)
		r = ask(pd_now_ms() + PAUSE_MS);
	errno = saved;
	return r == -ETIMEDOUT ? r : 0;
}

PD_EXPORT int protond_gpu_pause(int flags)
{
	return pause_by(1, flags);
}

PD_EXPORT int protond_gpu_resume(void)
{
	return pause_by(-1, 0);
}

/* What no session of ours wants any more is given up; nobody waits for it. */
static void want_less(void)
{
	atomic_fetch_add_explicit(&pd.asked, 1, memory_order_release);
	pd_ring();
}

/* --- has the daemon begun it, or its end? ----------------------------------------------------- */

static void mark_ask(struct pd_began *b, int32_t id, uint32_t verb)
{
	static uint32_t last;

	pd_lock(&pd.lock);
	b->state = EXPORT_ASKED;
	b->request = ++last;
	b->session = (uint32_t)id;
	b->verb = verb;
	pd_unlock(&pd.lock);
	pd_ring();
}

static bool mark_done(struct pd_began *b, bool too_late, int *ret_code, char *text)
{
	bool done;

	pd_lock(&pd.lock);
	done = b->state == EXPORT_DONE;
	*ret_code = done ? b->code : -EAGAIN;
	memcpy(text, b->text, PD_TEXT);
	if (done || too_late)
		b->state = EXPORT_IDLE;
	pd_unlock(&pd.lock);
	return done || too_late;
}

/* *s is ours. 0: the daemon has that mark of it; -EAGAIN: it cannot say; -ENOSYS: it is too old to
 * be asked about an end; or why it has not begun it.
 * Without the lock. */
static int mark_taken(struct session *s, uint32_t verb, uint32_t timeout_ms)
{
	struct pd_began *b = &pd.began[s - sessions];
	const uint64_t deadline = pd_now_ms() + timeout_ms;
	char text[PD_TEXT];
	int r;

	mark_ask(b, s->id, verb);
	for (;;) {
		/* acquire: pairs with the release in pd_changed() */
		const uint32_t was = atomic_load_explicit(&pd.change, memory_order_acquire);

		if (mark_done(
			    b, atomic_load(&pd.alone_ms) != 0 || pd_now_ms() >= deadline, &r, text))
			break;
		pd_wait(&pd.change, was, deadline);
	}
	return r < 0 && r != -EAGAIN && r != -ENOSYS ? fail(r, "%s", text) : r;
}

static int began(struct session *s)
{
	const int r = mark_taken(s, SESSION_START, BEGAN_MS);

	s->unsure = r == -EAGAIN;
	return r;
}

/* Its end is in a lane: will it be stored if we die now? A ring that is a file outlives us, and so
 * does what it says; any other one is the daemon's to keep. Without the lock. */
static int ended(struct session *s, bool patient)
{
	const bool named = atomic_load(&pd.ring_named);
	const int r =
		patient ? mark_taken(s, SESSION_FINALIZE, named ? BEGAN_MS : ENDED_MS) : -EAGAIN;

	if (r != -EAGAIN || named)
		return r == -EAGAIN || r == -ENOSYS ? 0 : r;
	return atomic_load(&pd.alone_ms) != 0
		       ? fail(-ENOTCONN, "protond has ended: the session is stored if another one "
					 "comes while this program runs")
		       : fail(-ETIMEDOUT, "protond has not taken the session's end in time: it is "
					  "stored when it does while this program runs");
}

/* --- verbs ----------------------------------------------------------------------------------- */

static int say(uint32_t verb, uint32_t id, uint32_t name, const struct session_options *o)
{
	const struct protond_engine *e = atomic_load_explicit(&HOT->engine, memory_order_acquire);
	struct pd_thread *t = pd_thread_here();
	int r;

	if (e == NULL || t == NULL)
		return fail(-ENOTCONN, "nothing is recorded in this process");
	r = e->session(t, verb, id, name, o);
	if (r == -EBUSY)
		return fail(r, "a session function was called in a signal handler that "
			       "interrupted the library");
	if (r == -ENOTCONN)
		return fail(r, "nothing is recorded in this process");
	if (r == -ENOSPC)
		return fail(r, "no lane for this thread: too many threads, or the tmpfs is full");
	if (r < 0)
		return fail(
			r, "the session's mark was not recorded: protond does not drain the ring");
	return 0;
}

/* Live, or about to be. */
static struct session *find_name(const char *name)
{
	for (uint32_t i = 0; i < JOB_SESSIONS; i++)
		if ((sessions[i].slot == SLOT_LIVE || sessions[i].slot == SLOT_STARTING) &&
			strcmp(sessions[i].name, name) == 0)
			return &sessions[i];
	return NULL;
}

static struct session *find_id(int id)
{
	for (uint32_t i = 0; i < JOB_SESSIONS; i++)
		if (sessions[i].slot == SLOT_LIVE && sessions[i].id == id)
			return &sessions[i];
	return NULL;
}

/* The slot that the daemon has let go of, or lets go of first. *ret_until: when that is, or the
 * deadline where only slots that are just ending come in question. NULL and 0: there is none. */
static struct session *find_free(uint64_t deadline, uint64_t *ret_until)
{
	struct session *s = NULL;
	bool ending = false;

	for (uint32_t i = 0; i < JOB_SESSIONS; i++) {
		ending |= sessions[i].slot == SLOT_ENDING;
		if (sessions[i].slot == SLOT_FREE &&
			(s == NULL || sessions[i].held_ms < s->held_ms))
			s = &sessions[i];
	}
	*ret_until = s != NULL ? s->held_ms : ending ? deadline : 0;
	return s;
}

static void drop(struct session *s)
{
	s->slot = SLOT_FREE;
	want_all();
	pd_changed(); /* somebody may wait for the slot */
}

/* The live session of that name, or a free slot. Whoever starts and finalizes faster than the
 * daemon takes it waits, and so does who starts what another thread is just starting. */
static int find_slot(const char *name, uint64_t deadline, struct session **ret)
{
	for (;;) {
		/* acquire: pairs with the release in pd_changed() */
		const uint32_t was = atomic_load_explicit(&pd.change, memory_order_acquire);
		uint64_t until = deadline;

		*ret = find_name(name);
		if (*ret != NULL && (*ret)->slot == SLOT_LIVE)
			return 0;
		if (*ret == NULL)
			*ret = find_free(deadline, &until);
		if (until == 0 && *ret == NULL)
			return fail(-EMFILE, "%u sessions are live: finalize some", JOB_SESSIONS);
		if (*ret != NULL && (*ret)->slot == SLOT_FREE && until <= pd_now_ms())
			return 0;
		if (pd_now_ms() >= deadline)
			return fail(-ETIMEDOUT, "other threads are still starting or ending "
						"sessions of this process");
		wait_unlocked(was, until < deadline ? until : deadline);
	}
}

/* *s is ours, STARTING. The number is taken together with the record that says it: the daemon takes
 * numbers in their order. */
static int start_at(struct session *s, const struct protond_options *options,
	const struct session_options *o, bool env_read, uint64_t deadline)
{
	int r;

	want_all();
	unlock();
	r = record_ask(options, env_read, deadline);
	lock();
	if (r == 0)
		r = say(SESSION_START, (uint32_t)next_id, protond_name(s->name), o);
	if (r < 0) {
		drop(s);
		return r;
	}
	s->id = next_id++;
	unlock();
	r = began(s);
	lock();
	if (r < 0 && !s->unsure) {
		drop(s);
		want_less();
		return r;
	}
	s->slot = SLOT_LIVE;
	pd_changed();
	return s->id;
}

static int start(const char *name, const struct protond_options *options, const struct more *more,
	bool env_read)
{
	const uint64_t deadline = pd_now_ms() + START_MS;
	struct session_options o;
	struct session *s;
	uint32_t want = 0;
	int r = find_slot(name, deadline, &s);

	if (r < 0)
		return r;
	if (s->slot == SLOT_LIVE) {
		r = say(SESSION_ACTIVATE, (uint32_t)s->id, 0, NULL);
		return r < 0 ? r : s->id;
	}
	r = options_read(options, more, &o, &want);
	if (r < 0)
		return r;
	*s = (struct session){.slot = SLOT_STARTING, .want = want};
	(void)snprintf(s->name, sizeof(s->name), "%s", name);
	return start_at(s, options, &o, env_read, deadline);
}

static int start_any(
	const char *name, const struct protond_options *options, struct more more, bool env_read)
{
	const int saved = errno;
	int r;

	if (name == NULL || name[0] == '\0')
		name = "protond";
	(void)pd_thread_here();
	begin();
	r = strlen(name) < SESSION_NAME - 16
		    ? start(name, options, &more, env_read)
		    : fail(-EINVAL, "a session's name has at most %u bytes", SESSION_NAME - 17);
	unlock();
	errno = saved;
	return r;
}

PD_EXPORT int protond_start(const char *name, const struct protond_options *options)
{
	return start_any(name, options, (struct more){0}, false);
}

PD_EXPORT int protond_start_with(
	const char *name, const struct protond_options *options, const char *switches)
{
	return start_any(name, options, (struct more){.switches = switches}, false);
}

PD_EXPORT int protond_start_domains(const char *name, const struct protond_options *options,
	const char *switches, const char *nvtx_domains)
{
	return start_any(name, options, (struct more){switches, nvtx_domains}, false);
}

PD_EXPORT int protond_start_by_env_read(const char *name, const struct protond_options *options,
	const char *switches, const char *nvtx_domains)
{
	return start_any(name, options, (struct more){switches, nvtx_domains}, true);
}

PD_EXPORT void protond_env_read(void)
{
	const int saved = errno;

	if (pd_thread_here() != NULL && !pd.inert)
		pd_env_read();
	errno = saved;
}

/* `all` with no session at all is fine: there is nothing to do. */
static int on_one(int id, uint32_t verb, const struct session_options *o)
{
	const struct session *s = find_id(id);

	if (id == PROTOND_ALL)
		return next_id == 0 ? 0 : say(verb, SESSION_ALL, 0, o);
	if (s == NULL)
		return fail(-ENOENT, "no session %d", id);
	return say(verb, (uint32_t)s->id, 0, o);
}

PD_EXPORT int protond_activate(int session)
{
	const int saved = errno;
	int r;

	begin();
	r = on_one(session, SESSION_ACTIVATE, NULL);
	unlock();
	errno = saved;
	return r;
}

static int flush(void)
{
	const struct protond_engine *e = atomic_load_explicit(&HOT->engine, memory_order_acquire);

	return e != NULL ? e->flush(FLUSH_MS) : 0;
}

PD_EXPORT int protond_deactivate(int session, int flags)
{
	const struct session_options o = {.flags = (uint64_t)(unsigned)flags};
	const int saved = errno;
	int r;

	begin();
	r = on_one(session, SESSION_DEACTIVATE, &o);
	unlock();
	if (r == 0 && (flags & PROTOND_FLUSH) != 0 && flush() < 0)
		r = fail(-ETIMEDOUT, "some launches were not delivered in %u s", FLUSH_MS / 1000);
	errno = saved;
	return r;
}

#define UNKNOWN_FORMAT "unknown format '%.40s': use " FORMAT_WORDS

/* The file, while others go on. */
static int finalize_file(struct session *s, const struct pd_ask *ask)
{
	char text[PD_TEXT] = "";
	int r;

	unlock();
	r = pd_export_file(ask, s->name, text);
	lock();
	if (r < 0 && r != -EINTR)
		r = fail(r, "%s", text[0] != '\0' ? text : strerror(-r));
	return r;
}

static int finalize(struct session *s, const char *format, int how)
{
	const struct pd_ask ask = {.session = (uint32_t)s->id, .format = format, .how = how};
	int r = 0;

	s->slot = SLOT_ENDING;
	if (s->unsure && format != NULL && (how & (ASK_RESUMED | ASK_IMPATIENT)) == 0) {
		unlock();
		r = began(s);
		lock();
		r = s->unsure ? 0 : r;
	}
	if (r == 0 && (how & ASK_RESUMED) == 0)
		r = say(SESSION_FINALIZE, (uint32_t)s->id,
			format != NULL ? protond_name(format) : 0, NULL);
	if (r == 0 && format == NULL && (how & ASK_RESUMED) == 0) {
		unlock();
		r = ended(s, (how & ASK_IMPATIENT) == 0);
		lock();
	}
	if (r == 0 && format != NULL)
		r = finalize_file(s, &ask);
	if (r == -EINTR) {
		s->slot = SLOT_LIVE; /* to be resumed */
		return r;
	}
	s->held_ms = r == 0 && format != NULL ? 0 : pd_now_ms() + HELD_MS;
	drop(s);
	return r;
}

static int finalize_which(int session, const char *format, int how)
{
	struct session *s = find_id(session);
	const int32_t before = next_id; /* others may start some meanwhile */
	int r = 0;

	if (session != PROTOND_ALL)
		return s != NULL ? finalize(s, format, how)
				 : fail(-ENOENT, "no session %d", session);
	for (uint32_t i = 0; i < JOB_SESSIONS; i++) {
		const bool is_live = sessions[i].slot == SLOT_LIVE && sessions[i].id < before;
		const int one = is_live ? finalize(&sessions[i], format, how) : 0;

		how |= one == -ETIMEDOUT || one == -ENOTCONN || (is_live && sessions[i].unsure)
			       ? ASK_IMPATIENT
			       : 0;
		r = r < 0 ? r : one;
	}
	return r;
}

PD_EXPORT int protond_finalize_by(int session, const char *format, int how)
{
	const int saved = errno;
	int r;

	if (format != NULL && format_of(format) == FORMAT_COUNT)
		return fail(-EINVAL, UNKNOWN_FORMAT, format);
	if ((how & ASK_RESUMED) == 0)
		(void)flush(); /* what is still in flight then shows as undelivered */
	begin();
	r = finalize_which(session, format, how);
	if (sessions_pid == pd.pid && next_id > 0)
		want_less();
	unlock();
	errno = saved;
	return r;
}

PD_EXPORT int protond_finalize(int session, const char *format)
{
	return protond_finalize_by(session, format, 0);
}

PD_EXPORT int protond_advance_phase(int session)
{
	const int saved = errno;
	struct session *s;
	int r;

	begin();
	s = find_id(session);
	if (s == NULL)
		r = fail(-ENOENT, "no session %d", session);
	else
		r = say(SESSION_PHASE, (uint32_t)s->id, 0, NULL);
	if (r == 0)
		r = (int)++s->phase;
	unlock();
	errno = saved;
	return r;
}

PD_EXPORT int protond_export_by(int session, int phase, const char *format, int how)
{
	const struct pd_ask ask = {.session = (uint32_t)session,
		.phases = phase < 0 ? 0 : (uint32_t)phase + 1,
		.format = format,
		.how = how};
	const int saved = errno;
	char text[PD_TEXT] = "";
	int r;

	if (format == NULL || format_of(format) == FORMAT_COUNT)
		return fail(-EINVAL, UNKNOWN_FORMAT, format != NULL ? format : "");
	begin();
	r = session < 0 || session >= next_id ? fail(-ENOENT, "no session %d", session) : 0;
	unlock(); /* others need not wait for the daemon */
	if (r == 0) {
		r = pd_export(&ask, text);
		if (r < 0 && r != -EINTR)
			r = fail(r, "%s", text[0] != '\0' ? text : strerror(-r));
	}
	errno = saved;
	return r;
}

PD_EXPORT int protond_export(int session, int phase, const char *format)
{
	return protond_export_by(session, phase, format, 0);
}

PD_EXPORT int protond_flush(int timeout_ms)
{
	const struct protond_engine *e = atomic_load_explicit(&HOT->engine, memory_order_acquire);

	int r;

	(void)pd_thread_here();
	r = e != NULL ? e->flush(timeout_ms < 0 ? 0 : (uint32_t)timeout_ms) : 0;
	return r < 0 ? fail(r, "not all that was launched was handed over in %d ms", timeout_ms)
		     : fail(0, "%s", "");
}
