/* SPDX-License-Identifier: MIT. daemon.c: protond's loop: the tick that drains, the second that
 * keeps house, entries on their way into journal and fold, the beginning and the end.
 *
 * The product in one function is tick(): rings → journal → fold → heads told → what jobs should do.
 */
#include "loop.h"

#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "closer.h"

#define SECOND_NS    1000000000ull
#define SPOOL_NS     (10 * SECOND_NS)
#define TICK_NS      10000000u /* for all rings; then sockets have their turn */
#define BEHIND_TIMES 2u        /* journal_mb that are not stored */
#define BEHIND_NS    32000000u /* between drains of a ring: a piece is to be worth it */
#define TRIM_BYTES   (4 << 20)

/* --- entries
 * --------------------------------------------------------------------------------------- */

int entry_begin(
	struct protond *p, uint16_t type, const uint8_t ring[16], uint32_t bytes, void **ret)
{
	static const uint8_t nobody[16];
	struct journal_entry *e = p->replayed;

	if (e == NULL)
		return p->journal_stuck ? -ENOSPC
					: journal_stage(p->d.journal, type,
						  ring != NULL ? ring : nobody, bytes, ret);
	if (bytes > JOURNAL_ENTRY_MAX - sizeof(*e))
		return -EMSGSIZE;
	*e = (struct journal_entry){.magic = JOURNAL_MAGIC, .type = type, .mono_ns = mono_ns()};
	if (ring != NULL)
		memcpy(e->ring, ring, 16);
	*ret = e + 1;
	return 0;
}

int entry_end(struct protond *p, uint32_t bytes)
{
	const struct journal_entry *e = p->replayed;
	int r;

	if (e == NULL) {
		e = journal_commit(p->d.journal, bytes);
		if (e == NULL)
			return -EMSGSIZE;
		p->staged += e->bytes;
	} else {
		const uint32_t whole = (uint32_t)sizeof(*e) + ((bytes + 7) & ~7u);

		memset((uint8_t *)(p->replayed + 1) + bytes, 0, whole - sizeof(*e) - bytes);
		p->replayed->bytes = whole;
	}
	r = fold_apply(p->d.fold, e);
	if (r == -ENOMEM)
		protond_fatal(p, "out_of_memory");
	return r;
}

int entry_put(struct protond *p, uint16_t type, const uint8_t ring[16], const void *payload,
	uint32_t bytes)
{
	void *to;
	int r = entry_begin(p, type, ring, bytes, &to);

	if (r < 0)
		return r;
	memcpy(to, payload, bytes);
	return entry_end(p, bytes);
}

/* What was drained is durable: the jobs may have the room back. */
static void release(struct protond *p)
{
	struct ring *r;

	p->staged = 0;
	for (r = p->rings; r != NULL; r = r->next) {
		if (r->state == RING_LIVE)
			ring_release(r);
		else if (r->state == RING_ENDED && r->end_position == 0)
			r->end_position = journal_position(p->d.journal);
	}
}

void protond_unstage(struct protond *p)
{
	p->stage_stored = p->journal_stuck = false;
	p->d.journal_trouble = 0;
	journal_unstage(p->d.journal);
	release(p);
	protond_hurry(p);
}

bool protond_flush(struct protond *p)
{
	static struct log_cause cause;
	int x;

	if (p->stage_stored)
		return false;
	x = journal_flush(p->d.journal);
	p->journal_stuck = x < 0;
	p->d.journal_trouble = x;
	if (x < 0) {
		log_cause(&cause, LOG_ERR, "journal_full",
			"error=%d dir=%s next=\"make room there\"", -x, p->d.runtime);
		return false;
	}
	if (p->staged != 0)
		release(p);
	return true;
}

int daemon_apply(struct daemon *d, uint16_t type, const uint8_t ring[16], const void *payload,
	uint32_t bytes)
{
	struct protond *p = protond_of(d);
	int r = entry_put(p, type, ring, payload, bytes);

	if (r < 0)
		return r;
	p->saw_session = true;
	if (!protond_flush(p))
		return -ENOSPC;
	if (d->intake != NULL)
		intake_wants(d->intake);
	return 0;
}

static bool uses_tsc(const struct protond *p)
{
	const struct ring *r;

	for (r = p->rings; r != NULL; r = r->next) {
		if (r->reader.lane != NULL && r->reader.h.clock == RING_CLOCK_TSC)
			return true;
	}
	return false;
}

void protond_anchor(struct protond *p, uint64_t at_most_every_ns)
{
	const uint64_t now = mono_ns();
	const bool tsc = uses_tsc(p);
	struct j_anchor a;

	if (p->anchor_ns != 0 && now - p->anchor_ns < at_most_every_ns)
		return;
	clock_anchor(
		tsc ? &clock_tsc : &clock_mono, tsc ? RING_CLOCK_TSC : RING_CLOCK_MONOTONIC, &a);
	if (entry_put(p, J_ANCHOR, NULL, &a, sizeof(a)) == 0)
		p->anchor_ns = now;
}

/* --- the tick
 * --------------------------------------------------------------------------------------- */

static void ring_failed(struct ring *r, int64_t error)
{
	if (error == -ENOSPC || error == -ENOMEM)
		return; /* the daemon's trouble, not the ring's: again in the next tick */
	r->unreadable = true;
	r->p->d.bad_rings++;
	log_line(LOG_WARN, "ring_unreadable", "pid=%u error=%d", r->pid, (int)-error);
}

static uint64_t drain_one(struct ring *r, bool *more)
{
	bool ring_more = false;
	int64_t n;

	if (r->p->behind && mono_ns() - r->taken_ns < BEHIND_NS)
		return 0;
	if (r->state == RING_GONE) {
		ring_gone(r);
		return FLOW_BYTES; /* until END is written */
	}
	if (!r->adopted || r->unreadable)
		return 0;
	n = drain_ring(r, DRAIN_TICK, &ring_more);
	if (n < 0)
		ring_failed(r, n);
	/* Half a lane came in one tick: the other half may be full before the next one. */
	*more |= (ring_more && n >= 0) || n >= r->reader.h.lane_bytes / 2;
	return n > 0 ? (uint64_t)n : 0;
}

/* Each ring in that state once, beginning with another one each time; at least one, and where the
 * time is over, the next tick goes on. */
static uint64_t drain_those(
	struct protond *p, enum ring_state state, uint32_t *cursor, uint64_t deadline, bool *more)
{
	struct ring *first = p->rings, *r, *next;
	uint64_t moved = 0;
	uint32_t i, n = p->n_rings;

	for (i = 0; i < *cursor && first != NULL; i++)
		first = first->next;
	if (first == NULL) {
		first = p->rings;
		*cursor = 0;
	}
	for (r = first; r != NULL && n > 0 && !p->journal_stuck; r = next, n--) {
		next = r->next != NULL ? r->next : p->rings;
		if (r->state != state)
			continue;
		moved += drain_one(r, more);
		if (mono_ns() >= deadline) {
			*cursor += p->n_rings - n; /* this one, and one more below */
			*more |= n > 1;
			break;
		}
	}
	*cursor = p->n_rings != 0 ? (*cursor + 1) % p->n_rings : 0;
	return moved;
}

/* The living first: what the dead have does not become more. */
static uint64_t drain_rings(struct protond *p, bool *more)
{
	const uint64_t deadline = mono_ns() + TICK_NS;
	const uint64_t moved = drain_those(p, RING_LIVE, &p->next_ring, deadline, more);

	return moved + drain_those(p, RING_GONE, &p->next_gone, deadline, more);
}

static void tick_on_timer(uv_timer_t *t);
static void tick_on_idle(uv_idle_t *i);

/* At once is the next turn of the loop: sockets and the store have theirs in between. A timer of 0
 * ms that is set in a timer's callback has none with libuv 1.44: it runs again before anything
 * else. */
static void tick_again(struct protond *p, uint64_t ms)
{
	if (ms == 0) {
		(void)uv_timer_stop(&p->tick);
		(void)uv_idle_start(&p->again, tick_on_idle);
		return;
	}
	(void)uv_idle_stop(&p->again);
	uv_update_time(&p->d.loop);
	(void)uv_timer_start(&p->tick, tick_on_timer, ms, 0);
}

void protond_hurry(struct protond *p)
{
	if (p->stopping)
		return;
	p->quiet_since_ns = mono_ns();
	tick_again(p, 0);
}

/* Much is journaled, or new, that the store did not take yet. */
static bool is_behind(const struct protond *p)
{
	return journal_bytes_since(p->d.journal, p->d.stored_position) / BEHIND_TIMES >
		       p->d.config.journal_mb << 20 ||
	       fold_fresh(p->d.fold) >= 2 * FRESH_MAX;
}

/* Bytes that the system gave us and nothing of ours is in, and a constant: our code. */
static int64_t unused(void)
{
	const struct mallinfo2 m = mallinfo2();
	FILE *f = fopen("/proc/self/statm", "re");
	long pages = 0;

	if (f == NULL)
		return 0;
	if (fscanf(f, "%*u %ld", &pages) != 1)
		pages = 0;
	(void)fclose(f);
	return (int64_t)pages * sysconf(_SC_PAGESIZE) - (int64_t)(m.uordblks + m.hblkhd);
}

static bool trim(struct protond *p)
{
	int64_t now;

	if (!p->trim_due)
		return false;
	p->trim_due = false;
	now = unused();
	if (now < p->trimmed)
		p->trimmed = now;
	if (now < p->trimmed + TRIM_BYTES)
		return false;
	(void)malloc_trim(0);
	p->trimmed = unused();
	return true;
}

void protond_turn(struct protond *p)
{
	if (!p->stopping)
		tick_again(p, 0);
}

void protond_trim(struct protond *p)
{
	p->trim_due = true;
	protond_turn(p);
}

/* What takes milliseconds has a turn of the loop for itself, and the rings the one behind it. */
static void tick(struct protond *p)
{
	bool works, more = false;
	uint64_t moved, ms;

	p->apart = !p->apart && (trim(p) || commit_next(p));
	if (p->apart) {
		tick_again(p, 0);
		return;
	}
	if (p->journal_stuck)
		(void)protond_flush(p);
	p->behind = is_behind(p);
	moved = drain_rings(p, &more);
	works = p->saw_session; /* somebody does */
	(void)protond_flush(p);
	if (p->saw_session) {
		sessions_close(p);
		intake_wants(p->d.intake);
	}
	drained_check(p);
	finalize_check(p);
	(void)protond_flush(p);
	commit_if_large(p);
	ms = pace_ms(p, moved, works, more);
	if (ms != PACE_PARKED)
		tick_again(p, ms);
	if (commit_is_due(p))
		tick_again(p, 0);
}

static void tick_on_timer(uv_timer_t *t)
{
	struct protond *p = t->data;

	if (!p->stopping && p->d.intake != NULL) /* not yet: the start ends with a tick */
		tick(p);
}

static void tick_on_idle(uv_idle_t *i)
{
	struct protond *p = i->data;

	(void)uv_idle_stop(i);
	tick_on_timer(&p->tick);
}

void protond_note(struct protond *p)
{
	struct ring *r;

	for (r = p->rings; r != NULL; r = r->next) {
		if (!drain_goes_on(r))
			continue;
		(void)drain_now_block(r);
		(void)drain_counts(r);
	}
	protond_anchor(p, 10000000);
	(void)protond_flush(p);
}

/* All at once: nobody waits for the loop any more. */
static void drain_at_end(struct protond *p)
{
	struct ring *r;
	int64_t n;
	bool more;

	for (r = p->rings; r != NULL; r = r->next) {
		n = drain_goes_on(r) ? drain_ring(r, DRAIN_ALL, &more) : 0;
		if (n < 0)
			ring_failed(r, n);
	}
	protond_note(p);
}

/* --- the second
 * --------------------------------------------------------------------------------------- */

static void count_rings(struct protond *p)
{
	struct ring *r;

	for (r = p->rings; r != NULL; r = r->next) {
		if (r->state != RING_LIVE || !r->adopted || r->unreadable)
			continue;
		(void)drain_counts(r);
		/* No pidfd to be had: ask for the start time instead. */
		if (!r->polling && r->pid != 0 && process_start(r->pid) != r->pid_start)
			ring_died(r);
		/* Of another pid namespace, and it did not come back after our restart. */
		if (r->pid == 0 && r->pidfd < 0 && r->conn == NULL &&
			mono_ns() - p->d.started_mono_ns > SPOOL_NS)
			ring_died(r);
	}
}

/* Everything that stood in the old directory, made in the new one: a journal that goes on above the
 * old one's positions, and sockets. What the old journal held alone is stored at once. */
static int home_move(struct protond *p, struct err *e)
{
	struct journal *old = p->d.journal;
	bool is_new;
	int r = home_again(p, &is_new, e);

	if (r == 0 && is_new) {
		(void)protond_flush(p);
		p->d.stored_position = journal_position(old);
		r = spool_journal(p, e);
		if (r < 0) {
			p->d.journal = old;
			return r;
		}
		p->stage_stored = false; /* it goes with the old one */
		journal_close(old);
		daemon_commit(&p->d, NULL, NULL);
	}
	if (r == 0)
		r = intake_relisten(p->d.intake, e);
	if (r < 0)
		return r;
	control_free(p->d.control); /* first: it removes the socket's name */
	r = control_new(&p->d, &p->d.control, e);
	if (r < 0)
		protond_fatal(p, "no_control_socket");
	return r;
}

static void home_check(struct protond *p)
{
	static struct log_cause cause;
	struct err e = {0};
	char quoted[600];

	if (!home_is_gone(p))
		return;
	if (home_move(p, &e) == 0) {
		log_line(LOG_WARN, "home_made_again", "dir=%s", p->d.runtime);
		return;
	}
	log_cause(
		&cause, LOG_ERR, "home_gone", "text=%s", log_quote(quoted, sizeof(quoted), e.text));
	if (home_is_managed(p)) /* whoever starts us again makes it first */
		protond_stop(p, "home_gone");
}

static void awaits_look(void *arg, const struct fold_session *s)
{
	*(bool *)arg =
		*(bool *)arg || (s->source == SOURCE_CONTROL &&
					(s->match == MATCH_USER || s->match == MATCH_COMMAND) &&
					s->state == SESSION_IS_ACTIVE);
}

/* A session that is for jobs to come. */
static bool awaits_jobs(const struct protond *p)
{
	bool found = false;

	fold_each_session(p->d.fold, awaits_look, &found);
	return found;
}

static void idle_check(struct protond *p, uint64_t now)
{
	const uint64_t s = p->d.config.idle_exit_s;
	const bool busy = p->n_rings != 0 || intake_jobs(p->d.intake) != 0 ||
			  control_clients(p->d.control) != 0 || p->finalizers != NULL ||
			  store_queued(p->d.store) != 0 || awaits_jobs(p);

	if (busy || !p->d.private || s == 0)
		p->idle_since_ns = 0;
	else if (p->idle_since_ns == 0)
		p->idle_since_ns = now;
	else if (now - p->idle_since_ns >= s * SECOND_NS)
		protond_stop(p, "idle");
}

static void second_on_timer(uv_timer_t *t)
{
	struct protond *p = t->data;
	const uint64_t now = mono_ns();

	if (p->stopping)
		return;
	count_rings(p);
	kept_again(p);
	intake_sweep(p->d.intake, now);
	memfd_returned(&p->d.lent);
	(void)protond_flush(p);
	intake_wants(p->d.intake);
	home_check(p);
	if (now - p->spool_ns >= SPOOL_NS) {
		p->spool_ns = now;
		spool_scan(p);
		sessions_sweep(p);
	}
	protond_trim(p);
	idle_check(p, now);
	if (p->watchdog_ns != 0 && now - p->alive_ns >= p->watchdog_ns / 4) {
		p->alive_ns = now;
		(void)home_notify("WATCHDOG=1", -1);
	}
}

static void commit_on_timer(uv_timer_t *t)
{
	struct protond *p = t->data;

	if (!p->stopping)
		commit_periodic(p);
}

/* --- beginning and end
 * ----------------------------------------------------------------------------------- */

static void on_signal(uv_signal_t *s, int number)
{
	if (number != SIGHUP)
		protond_stop(s->data, number == SIGTERM ? "SIGTERM" : "SIGINT");
}

static int start_timers(struct protond *p)
{
	struct {
		uv_timer_t *t;
		uv_timer_cb cb;
		uint64_t ms;
	} timers[] = {{&p->second, second_on_timer, 1000},
		{&p->commit_timer, commit_on_timer, p->d.config.commit_ms}};
	struct {
		uv_signal_t *s;
		int number;
	} signals[] = {{&p->sig_term, SIGTERM}, {&p->sig_int, SIGINT}, {&p->sig_hup, SIGHUP}};
	size_t i;
	int r = 0;

	for (i = 0; i < 2 && r == 0; i++)
		r = uv_timer_start(timers[i].t, timers[i].cb, timers[i].ms, timers[i].ms);
	for (i = 0; i < 3 && r == 0; i++) {
		r = uv_signal_init(&p->d.loop, signals[i].s);
		signals[i].s->data = p;
		if (r == 0)
			r = uv_signal_start(signals[i].s, on_signal, signals[i].number);
	}
	return r;
}

static int init_timers(struct protond *p)
{
	uv_timer_t *const timers[] = {&p->tick, &p->second, &p->commit_timer};
	size_t i;
	int r = 0;

	for (i = 0; i < 3 && r == 0; i++) {
		r = uv_timer_init(&p->d.loop, timers[i]);
		timers[i]->data = p;
	}
	if (r == 0)
		r = uv_idle_init(&p->d.loop, &p->again);
	p->again.data = p;
	return r;
}

static int read_boot_id(uint8_t ret[16])
{
	char buf[64] = "";
	const int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	const char *s = buf;
	unsigned i, v;

	if (fd < 0)
		return neg_errno();
	(void)!read(fd, buf, sizeof(buf) - 1);
	(void)close(fd);
	for (i = 0; i < 16; i++) {
		char hex[3];

		s += *s == '-';
		memcpy(hex, s, 2);
		hex[2] = '\0';
		v = (unsigned)strtoul(hex, NULL, 16);
		ret[i] = (uint8_t)v;
		s += s[0] != '\0' && s[1] != '\0' ? 2 : 0;
	}
	return 0;
}

static int open_store(struct protond *p, struct err *e)
{
	struct daemon *d = &p->d;
	char path[512], quoted[600];
	int r = home_db(p, path, sizeof(path), e);

	if (r == 0)
		r = store_open(path, &d->loop, &d->store, e);
	if (r == -EREMOTE) { /* WAL needs shared memory, which a network file system has not */
		r = home_db_local(p, path, sizeof(path), e);
		if (r == 0)
			r = store_open(path, &d->loop, &d->store, e);
		if (r == 0)
			log_line(LOG_WARN, "db_moved", "reason=network_file_system db=%s",
				log_quote(quoted, sizeof(quoted), path));
	}
	if (r == 0)
		store_uuid(d->store, d->store_uuid);
	return r;
}

/* v × unit, or as much as there is. */
static uint64_t scaled(uint64_t v, uint64_t unit)
{
	return v > UINT64_MAX / unit ? UINT64_MAX : v * unit;
}

int protond_init(struct protond *p, struct err *e)
{
	struct daemon *d = &p->d;
	struct fold_limits limits;
	int r;

	p->ok = true;
	d->started_mono_ns = mono_ns();
	p->spool_ns = d->started_mono_ns;
	p->drain_ns = DRAIN_NS;
	p->watchdog_ns = home_watchdog_ns();
	d->lent.max = home_descriptors().lent;
	p->arena = malloc(DRAIN_BYTES + READER_PIECE);
	p->looping = p->arena != NULL && uv_loop_init(&d->loop) == 0;
	if (!p->looping)
		return err_set(e, -ENOMEM, "no memory to start");
	r = config_auto(&d->config, &p->auto_mode, e);
	if (r == 0 && init_timers(p) < 0)
		r = err_set(e, -ENOMEM, "no timers to be had");
	if (r == 0 && read_boot_id(d->boot_id) < 0)
		r = err_set(e, -ENOENT, "/proc is not mounted");
	if (r == 0)
		r = open_store(p, e);
	if (r == 0 && (closer_new(&p->closer) < 0 || closer_new(&p->stray_closer) < 0))
		r = err_set(e, -EAGAIN, "no thread to be had");
	limits = (struct fold_limits){.bytes = scaled(d->config.memory_mb, 1 << 20),
		.trace_bytes = scaled(d->config.trace_mb, 1 << 20),
		.trace_ns = scaled(d->config.trace_s, SECOND_NS)};
	limits.bytes += limits.bytes == 0; /* 0 would be the default */
	limits.trace_bytes += limits.trace_bytes == 0;
	if (r == 0 && fold_new(&limits, &d->fold) < 0)
		r = err_set(e, -ENOMEM, "no memory to start");
	if (r == 0)
		r = spool_restore(p, e);
	if (r == 0)
		r = control_new(d, &d->control, e);
	if (r == 0)
		r = intake_new(d, &d->intake, e);
	if (r == 0 && start_timers(p) < 0)
		r = err_set(e, -ENOMEM, "no timers to be had");
	return r;
}

int protond_run(struct protond *p)
{
	char db[600];

	log_line(LOG_INFO, "ready", "dir=%s db=%s rings=%u", p->d.runtime,
		log_quote(db, sizeof(db), store_path(p->d.store)), p->n_rings);
	(void)home_notify("READY=1", -1);
	protond_hurry(p);
	(void)uv_run(&p->d.loop, UV_RUN_DEFAULT);
	return p->ok ? 0 : 1;
}

static void stop_on_stored(void *arg, int r, const struct err *e)
{
	struct protond *p = arg;

	(void)e;
	if (r < 0)
		p->ok = false;
	uv_stop(&p->d.loop);
}

/* Jobs go on without us, their rings stay: the next daemon takes up where this one leaves. */
void protond_stop(struct protond *p, const char *why)
{
	if (p->stopping)
		return;
	p->stopping = true;
	log_line(LOG_INFO, "stop", "reason=%s", why);
	(void)home_notify("STOPPING=1", -1);
	(void)uv_timer_stop(&p->tick);
	(void)uv_idle_stop(&p->again);
	settle_end(p);
	drain_at_end(p);
	drained_end(p);
	daemon_commit(&p->d, stop_on_stored, p);
}

void protond_fatal(struct protond *p, const char *why)
{
	log_line(LOG_ERR, "fatal",
		"reason=%s next=\"the journal has everything; the next start goes on\"", why);
	p->ok = false;
	p->stopping = true;
	uv_stop(&p->d.loop);
}

static void close_handle(uv_handle_t *h, void *arg)
{
	(void)arg;
	if (!uv_is_closing(h))
		uv_close(h, NULL);
}

void protond_fini(struct protond *p)
{
	struct daemon *d = &p->d;
	struct finalizer *f;

	drained_end(p);
	export_stop(d);
	if (d->control != NULL)
		control_free(d->control);
	if (d->intake != NULL)
		intake_free(d->intake);
	memfd_forget(&d->lent);
	rings_free(p);
	commit_end(p);
	store_close(d->store);
	d->store = NULL;
	if (p->looping) {
		(void)uv_run(&d->loop, UV_RUN_NOWAIT);
		uv_walk(&d->loop, close_handle, NULL);
		(void)uv_run(&d->loop, UV_RUN_DEFAULT);
		(void)uv_loop_close(&d->loop);
	}
	while ((f = p->finalizers) != NULL) {
		p->finalizers = f->next;
		free(f);
	}
	journal_close(d->journal);
	fold_free(d->fold);
	free(p->kept);
	free(p->arena);
	home_close(p);
	config_free(&d->config);
}
