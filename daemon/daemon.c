/* SPDX-License-Identifier: MIT. daemon.c: protond's loop: the tick that drains, the second that
 * keeps house, the beginning and the end.
 *
 * The product in one function is tick(): rings → journal → fold → heads told → what jobs should do.
 */
#include "loop.h"
#include "sink.h"

#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "attached.h"
#include "closer.h"
#include "commit.h"
#include "config.h"
#include "conn.h"
#include "control.h"
#include "device_link.h"
#include "drain.h"
#include "drained.h"
#include "entry.h"
#include "exited.h"
#include "export.h"
#include "finalize.h"
#include "fold.h"
#include "home.h"
#include "host_clock.h"
#include "idle.h"
#include "intake.h"
#include "journal.h"
#include "kept.h"
#include "leave.h"
#include "log.h"
#include "manager.h"
#include "offered.h"
#include "own_sessions.h"
#include "pace.h"
#include "poison.h"
#include "resident.h"
#include "retain.h"
#include "ring_clock.h"
#include "ring_ctl.h"
#include "rings.h"
#include "round.h"
#include "settle.h"
#include "share.h"
#include "shares.h"
#include "shed.h"
#include "spool.h"
#include "store.h"
#include "thrift.h"
#include "turn.h"
#include "twice.h"
#include "wants.h"

#define SECOND_NS    1000000000ull
#define SPOOL_NS     (10 * SECOND_NS)
#define TICK_NS      10000000u /* for all rings; then sockets have their turn */
#define GONE_NS      1000000u  /* of that at least, for those whose process is dead */
#define ASKED_NS     2000000u  /* before that, for those that somebody asks about */
#define BEHIND_TIMES 2u        /* journal_mb that are not stored */
#define BEHIND_NS    32000000u /* between drains of a ring: a piece is to be worth it */
#define STOP_NS      SECOND_NS /* for all rings, when the daemon ends */
#define TRIM_BYTES   (4 << 20)

static void ring_failed(struct ring *r, int64_t error)
{
	if (error == -ENOSPC || error == -ENOMEM)
		return; /* the daemon's trouble, not the ring's: again in the next tick */
	r->unreadable = true;
	r->all->d->bad_rings++;
	log_line(LOG_WARN, "ring_unreadable", "pid=%u error=%d", r->pid, (int)-error);
}

/* His lanes fill meanwhile, and count what they refuse. */
static bool has_his_share(struct protond *p, const struct ring *r)
{
	static struct log_cause cause;

	if (!owed_is_over(&p->entries.owed, r->uid))
		return false;
	p->d.held_back++;
	p->d.held_back_uid = r->uid;
	log_cause(&cause, LOG_WARN, "user_held_back", "uid=%u pid=%u", r->uid, r->pid);
	return true;
}

static uint64_t drain_whole(struct protond *p, struct ring *r, bool *more)
{
	bool ring_more = false;
	int64_t n;

	if (r->state == RING_GONE) {
		ring_leave(p, r);
		return FLOW_BYTES; /* until END is written */
	}
	if (r->unreadable || (!r->adopted && offered_look(r) < 0))
		return 0;
	n = drain_ring(r, &ring_more);
	if (n < 0)
		ring_failed(r, n);
	/* Half a lane came in one tick: the other half may be full before the next one. */
	*more |= (ring_more && n >= 0) || n >= r->reader.h.lane_bytes / 2;
	return n > 0 ? (uint64_t)n : 0;
}

static bool is_too_soon(const struct ring *r)
{
	return r->all->drain->behind && mono_ns() - r->taken_ns < BEHIND_NS;
}

static uint64_t drain_one(struct protond *p, struct ring *r, bool *more)
{
	const uint64_t before = p->entries.put;
	uint64_t n;

	if (is_too_soon(r) || has_his_share(p, r))
		return 0;
	n = drain_whole(p, r, more);
	owed_put(&p->entries.owed, r->uid, p->entries.put - before);
	return n;
}

/* Each ring in that state whose turn it is, beginning with another one each time; at least one, and
 * where the time is over, the next tick goes on. */
static uint64_t drain_those(
	struct protond *p, enum ring_state state, struct turns *t, uint64_t tick_ns, bool *more)
{
	uint64_t moved = 0, before = mono_ns(), now;
	const uint64_t deadline = before + 2 * tick_ns;
	struct ring *first = p->rings.first, *r, *next;
	uint32_t i, n = p->rings.n;

	for (i = 0; i < t->cursor && first != NULL; i++)
		first = first->next;
	if (first == NULL) {
		first = p->rings.first;
		t->cursor = 0;
	}
	round_begin(&t->round, tick_ns);
	for (r = first; r != NULL && n > 0 && !p->entries.stuck; r = next, n--) {
		const uint32_t uid = r->uid;

		next = r->next != NULL ? r->next : p->rings.first;
		if (r->state != state || !round_may(&t->round, uid, r->taken_ns))
			continue;
		moved += drain_one(p, r, more);
		now = mono_ns();
		round_took(&t->round, uid, now - before);
		before = now;
		if (now >= deadline) {
			t->cursor += p->rings.n - n; /* this one, and one more below */
			*more |= n > 1;
			break;
		}
	}
	*more |= round_end(&t->round, before);
	t->cursor = p->rings.n != 0 ? (t->cursor + 1) % p->rings.n : 0;
	return moved;
}

/* The living first: what the dead have does not become more. */
static uint64_t drain_rings(struct protond *p, bool *more)
{
	const uint64_t begin = mono_ns();
	uint64_t moved = drain_those(p, RING_LIVE, &p->live, TICK_NS, more);
	const uint64_t took = mono_ns() - begin;

	return moved + drain_those(p, RING_GONE, &p->gone,
			       took < TICK_NS - GONE_NS ? TICK_NS - took : GONE_NS, more);
}

/* That somebody waits for: longest not drained; of another user than the last one, if there is one. */
static struct ring *next_asked(const struct protond *p)
{
	struct ring *r, *best = NULL;
	bool same, best_same = true;

	for (r = p->rings.first; r != NULL; r = r->next) {
		same = r->uid == p->asked_uid;
		if (drain_is_past(r, r->asked_ns) || is_too_soon(r) ||
			owed_is_over(&p->entries.owed, r->uid) ||
			(best != NULL &&
				(same != best_same ? same : r->taken_ns >= best->taken_ns)))
			continue;
		best = r;
		best_same = same;
	}
	return best;
}

/* Where one user's took that long, or the processor was another's, one of another is taken, too. */
static uint64_t drain_asked(struct protond *p, bool *more)
{
	const uint64_t deadline = mono_ns() + ASKED_NS;
	struct ring *r = next_asked(p);
	const uint32_t first = r != NULL ? r->uid : 0;
	uint64_t moved = 0;

	while (r != NULL && !p->entries.stuck) {
		p->asked_uid = r->uid;
		moved += drain_one(p, r, more);
		r = next_asked(p);
		if (mono_ns() >= deadline &&
			(p->asked_uid != first || r == NULL || r->uid == first))
			break;
	}
	*more |= r != NULL;
	return moved;
}

/* Much is journaled, or new, that the store did not take yet. */
static bool is_behind(const struct protond *p)
{
	return journal_bytes_since(p->d.journal, p->d.stored_position) / BEHIND_TIMES >
		       p->d.config->journal_mb << 20 ||
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

	if (!p->turn.trim_due)
		return false;
	p->turn.trim_due = false;
	now = unused();
	if (now < p->trimmed)
		p->trimmed = now;
	if (now < p->trimmed + TRIM_BYTES)
		return false;
	(void)malloc_trim(0);
	p->trimmed = unused();
	return true;
}

/* True: somebody did something with sessions. */
static bool look_at_sessions(struct protond *p)
{
	const bool any = p->entries.saw_session;

	(void)entry_flush(&p->entries);
	sessions_close(p);
	return any;
}

/* Whoever asks about jobs does not wait for all that those of others have. */
static uint64_t answer(struct protond *p, bool *ret_works, bool *more)
{
	const uint64_t moved = drain_asked(p, more);

	*more |= !drain_notes(&p->rings);
	*ret_works = look_at_sessions(p);
	drained_check(p);
	return moved;
}

/* What takes milliseconds has a turn of the loop for itself, and the rings the one behind it. */
static void tick(struct protond *p)
{
	bool works = false, more = false;
	uint64_t moved = 0, ms;

	if (p->d.intake == NULL) /* not yet: the start ends with a tick */
		return;
	p->apart = !p->apart && (trim(p) || commit_next(p));
	if (p->apart) {
		turn_in(&p->turn, 0);
		return;
	}
	if (p->entries.stuck)
		(void)entry_flush(&p->entries);
	p->drain.behind = is_behind(p);
	if (p->drained != NULL || p->finalizers != NULL)
		moved = answer(p, &works, &more);
	moved += drain_rings(p, &more);
	works |= look_at_sessions(p);
	if (works) {
		wants_tell(p->d.intake);
		hello_tell(&p->hello, &p->d);
	}
	(void)finalize_check(p, NULL);
	(void)entry_flush(&p->entries);
	commit_if_large(p);
	ms = pace_ms(p, moved, works, more);
	if (ms != PACE_PARKED)
		turn_in(&p->turn, ms);
	if (commit_is_due(p))
		turn_in(&p->turn, 0);
}

static void tick_on_turn(struct turn *t)
{
	tick(container_of(t, struct protond, turn));
}

/* What is not taken in that time stays in the rings, for the next daemon. */
static void drain_at_end(struct protond *p)
{
	const uint32_t left = drained_whole(p, mono_ns() + STOP_NS);

	if (left != 0)
		log_line(LOG_WARN, "rings_left", "rings=%u next=\"the next start drains them\"",
			left);
}

/* Of a process that a session with allocations has. */
static void put_resident(struct protond *p, const struct ring *r)
{
	const struct j_resident j = {
		(fold_want(p->d.fold, r->uuid) & WANT_ALLOC) != 0 ? resident_bytes(r->pid) : 0};

	if (j.bytes != 0)
		(void)entry_put(&p->entries, J_RESIDENT, r->uuid, &j, sizeof(j));
}

static void count_rings(struct protond *p)
{
	struct ring *r;

	for (r = p->rings.first; r != NULL; r = r->next) {
		if (r->state != RING_LIVE || r->unreadable || offered_look(r) < 0)
			continue;
		(void)drain_counts(r);
		put_resident(p, r);
		/* No pidfd to be had: ask for the start time instead. */
		if (!r->polling && r->pid != 0 && process_start(r->pid) != r->pid_start)
			ring_died(r);
		/* Of another pid namespace, and it did not come back after our restart. */
		if (r->pid == 0 && r->pidfd < 0 && r->conn == NULL &&
			mono_ns() - p->d.started_mono_ns > SPOOL_NS)
			ring_died(r);
	}
}

/* A journal in the new directory, that goes on above the old one's positions. */
static int journal_move(struct protond *p, struct err *e)
{
	const uint64_t stored = p->d.stored_position;
	struct journal *old = p->d.journal;
	int r;

	p->d.stored_position = journal_position(old);
	r = spool_journal(p, e);
	if (r < 0) {
		p->d.journal = old;
		p->d.stored_position = stored;
		return r;
	}
	p->entries.stored = p->entries.stuck = p->entries.adrift =
		false; /* they go with the old one */
	journal_close(old);
	daemon_commit(&p->d, NULL, NULL);
	return 0;
}

static int sockets_move(struct protond *p, struct err *e)
{
	int r = intake_relisten(p->d.intake, e);

	if (r < 0)
		return r;
	control_free(p->d.control); /* first: it removes the socket's name */
	r = control_new(&p->d, p->d.verbs, &p->d.control, e);
	if (r < 0)
		turn_fatal(&p->turn, "no_control_socket");
	return r;
}

/* Everything that stood in the old directory, made in the new one. What the old journal holds alone
 * is stored at once. Sockets are made though the journal has no place: somebody may ask why. */
static int home_move(struct protond *p, struct err *e)
{
	bool is_new = false;
	int r = home_is_gone(&p->d) ? home_again(&p->d, &is_new, e) : 0, x = 0;

	if (r < 0)
		return r;
	if (is_new) {
		p->entries.adrift = true;
		daemon_commit(&p->d, NULL, NULL);
	}
	if (p->entries.adrift)
		x = journal_move(p, e);
	if (home_is_gone(&p->d))
		r = sockets_move(p, x < 0 ? NULL : e);
	return x < 0 ? x : r;
}

static void home_check(struct protond *p)
{
	static struct log_cause cause;
	struct err e = {0};
	char quoted[600];

	if (!home_is_gone(&p->d) && !p->entries.adrift)
		return;
	if (home_move(p, &e) == 0) {
		hello_forget(&p->hello);
		hello_tell(&p->hello, &p->d);
		p->d.home_trouble = (struct err){0};
		log_line(LOG_WARN, "home_made_again", "dir=%s", p->d.runtime);
		return;
	}
	p->d.home_trouble = e;
	log_cause(
		&cause, LOG_ERR, "home_gone", "text=%s", log_quote(quoted, sizeof(quoted), e.text));
	if (manager_restarts(p->d.private)) /* whoever starts us again makes it first */
		protond_stop(p, "home_gone");
}

/* Jobs hear of it by wants_tell(). */
static void thrift_check(struct protond *p, uint64_t now)
{
	struct rusage u;
	uint64_t cpu;

	if (getrusage(RUSAGE_SELF, &u) < 0)
		return;
	cpu = (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * SECOND_NS +
	      (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000;
	if (thrift_look(&p->thrift, now, cpu, p->d.config->cpu_percent))
		log_line(LOG_INFO, p->thrift.over ? "cpu_over" : "cpu_enough", "percent=%llu",
			(unsigned long long)p->d.config->cpu_percent);
}

static void second_on_timer(uv_timer_t *t)
{
	struct protond *p = t->data;
	const uint64_t now = mono_ns();

	if (p->turn.stopping)
		return;
	count_rings(p);
	sessions_interrupted(p);
	rings_shed(&p->rings);
	rings_ask_twice(&p->rings);
	kept_again(&p->rings);
	intake_sweep(p->d.intake, now);
	thrift_check(p, now);
	memfd_returned(&p->lent);
	device_second(&p->device, now);
	(void)entry_flush(&p->entries);
	wants_tell(p->d.intake);
	home_check(p);
	if (now - p->spool_ns >= SPOOL_NS) {
		p->spool_ns = now;
		spool_scan(p);
		sessions_sweep(p);
	}
	turn_trim(&p->turn);
	if (idle_is_over(p, now))
		protond_stop(p, "idle");
	if (p->watchdog_ns != 0 && now - p->alive_ns >= p->watchdog_ns / 4) {
		p->alive_ns = now;
		(void)manager_notify("WATCHDOG=1", -1);
	}
}

static void commit_on_timer(uv_timer_t *t)
{
	struct protond *p = t->data;

	if (!p->turn.stopping)
		commit_periodic(p);
}

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
		{&p->commit_timer, commit_on_timer, p->d.config->commit_ms}};
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
	uv_timer_t *const timers[] = {&p->second, &p->commit_timer};
	size_t i;
	int r = turn_init(&p->turn, &p->d.loop);

	for (i = 0; i < 2 && r == 0; i++) {
		r = uv_timer_init(&p->d.loop, timers[i]);
		timers[i]->data = p;
	}
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

#define SINKS_CLOSE_MS 2000u

static void sink_say(void *arg, const struct sink_state *s)
{
	char quoted[600];

	(void)arg;
	log_line(LOG_WARN, "sink_gap", "sink=%s gaps=%llu lost=%llu queued=%u text=%s", s->name,
		(unsigned long long)s->gaps, (unsigned long long)s->lost, s->queued,
		log_quote(quoted, sizeof(quoted), s->last.text));
}

static int open_store(struct protond *p, struct err *e)
{
	struct daemon *d = &p->d;
	char path[512], quoted[600];
	int r = home_db(&p->d, path, sizeof(path), e);

	if (r == 0)
		r = store_open(path, &d->loop, &d->store, e);
	if (r == -EREMOTE) { /* WAL needs shared memory, which a network file system has not */
		r = home_db_local(path, sizeof(path), e);
		if (r == 0)
			r = store_open(path, &d->loop, &d->store, e);
		if (r == 0)
			log_line(LOG_WARN, "db_moved", "reason=network_file_system db=%s",
				log_quote(quoted, sizeof(quoted), path));
	}
	if (r == 0)
		r = sinks_open(d->store, NULL, 0, sink_say, NULL, &d->sinks, e);
	if (r == 0) {
		store_uuid(d->store, d->store_uuid);
		retain_limit(d->config, d->private, d->store);
	}
	return r;
}

/* v × unit, or as much as there is. */
static uint64_t scaled(uint64_t v, uint64_t unit)
{
	return v > UINT64_MAX / unit ? UINT64_MAX : v * unit;
}

/* Of one user. 0: the fold's own, a quarter. */
static uint32_t session_share(const struct daemon *d)
{
	const uint64_t n = d->config->sessions_per_uid;

	if (n == 0)
		return d->private ? UINT32_MAX : 0;
	return n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
}

void protond_bind(struct protond *p)
{
	p->d.thread = pthread_self();
	p->d.config = &p->config;
	p->d.lent = &p->lent;
	p->rings.d = p->entries.d = p->settlers.d = &p->d;
	p->rings.turn = p->entries.turn = &p->turn;
	p->rings.drain = &p->drain;
	p->rings.entries = &p->entries;
	p->entries.rings = &p->rings;
	p->rings.thrift = &p->thrift;
	p->device.entries = &p->entries;
	p->device.d = &p->d;
	p->device.fd = -1;
	p->told.share = (struct share){UINT32_MAX, UINT32_MAX}; /* nobody is refused */
}

int protond_init(struct protond *p, struct err *e)
{
	struct daemon *d = &p->d;
	struct store_limits kept;
	struct fold_limits limits;
	int r;

	p->turn.on_tick = tick_on_turn;
	d->auto_session = p->config.auto_session;
	d->idle_exit_s = d->private ? p->config.idle_exit_s : 0;
	d->started_mono_ns = mono_ns();
	p->spool_ns = d->started_mono_ns;
	p->drain.ns = DRAIN_NS;
	p->watchdog_ns = manager_watchdog_ns();
	p->entries.owed.share =
		share_of(scaled(d->config->journal_mb, BEHIND_TIMES << 20), d->private);
	p->lent.share = share_of(shares_of_limit().lent, d->private);
	p->drain.arena = malloc(DRAIN_BYTES + READER_PIECE);
	p->looping = p->drain.arena != NULL && uv_loop_init(&d->loop) == 0;
	if (!p->looping)
		return err_set(e, -ENOMEM, "no memory to start");
	r = config_auto(&p->config, &p->config.mode, e);
	if (r == 0 && init_timers(p) < 0)
		r = err_set(e, -ENOMEM, "no timers to be had");
	if (r == 0 && read_boot_id(d->boot_id) < 0)
		r = err_set(e, -ENOENT, "/proc is not mounted");
	if (r == 0)
		r = open_store(p, e);
	if (r == 0 && (closer_new(&p->rings.closer) < 0 || closer_new(&p->stray_closer) < 0))
		r = err_set(e, -EAGAIN, "no thread to be had");
	kept = retain_limits(d->config, d->private);
	limits = (struct fold_limits){.bytes = scaled(d->config->memory_mb, 1 << 20),
		.trace_bytes = scaled(d->config->trace_mb, 1 << 20),
		.trace_bytes_per_uid = kept.bytes_per_uid != 0 ? kept.bytes_per_uid : kept.bytes,
		.trace_ns = scaled(d->config->trace_s, SECOND_NS),
		.sessions_per_uid = session_share(d)};
	limits.bytes += limits.bytes == 0; /* 0 would be the default */
	limits.trace_bytes += limits.trace_bytes == 0;
	if (r == 0 && fold_new(&limits, &d->fold) < 0)
		r = err_set(e, -ENOMEM, "no memory to start");
	if (r == 0)
		r = spool_restore(p, e);
	if (r == 0)
		r = control_new(d, d->verbs, &d->control, e);
	if (r == 0)
		r = intake_new(p, &d->intake, e);
	if (r == 0)
		hello_tell(&p->hello, d);
	if (r == 0 && start_timers(p) < 0)
		r = err_set(e, -ENOMEM, "no timers to be had");
	return r;
}

int protond_run(struct protond *p)
{
	char db[600];

	log_line(LOG_INFO, "ready", "dir=%s db=%s rings=%u", p->d.runtime,
		log_quote(db, sizeof(db), store_path(p->d.store)), p->rings.n);
	(void)manager_notify("READY=1", -1);
	turn_hurry(&p->turn);
	(void)uv_run(&p->d.loop, UV_RUN_DEFAULT);
	return p->turn.ok ? 0 : 1;
}

static void stop_on_stored(void *arg, int r, const struct err *e)
{
	struct protond *p = arg;

	(void)e;
	if (r < 0)
		p->turn.ok = false;
	uv_stop(&p->d.loop);
}

/* Jobs go on without us, their rings stay: the next daemon takes up where this one leaves. */
void protond_stop(struct protond *p, const char *why)
{
	if (p->turn.stopping)
		return;
	p->turn.stopping = true;
	log_line(LOG_INFO, "stop", "reason=%s", why);
	(void)manager_notify("STOPPING=1", -1);
	(void)uv_timer_stop(&p->turn.tick);
	(void)uv_idle_stop(&p->turn.again);
	settle_end(&p->settlers);
	drain_at_end(p);
	drained_end(p);
	daemon_commit(&p->d, stop_on_stored, p);
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

	d->ends = true;
	device_end(&p->device);
	drained_end(p);
	settle_end(&p->settlers);
	export_stop(d);
	if (d->control != NULL)
		control_free(d->control);
	if (d->intake != NULL) {
		if (!d->intake->inherited) /* else its queue goes on, and so does what it says */
			hello_remove(&p->hello, d);
		intake_free(d->intake);
	}
	memfd_forget(&p->lent);
	rings_free(&p->rings);
	commit_end(p);
	(void)sinks_close(d->sinks, SINKS_CLOSE_MS); /* who is left behind ends with the process */
	d->sinks = NULL;
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
	free(p->rings.kept);
	free(p->drain.arena);
	poison_close(&p->entries.poison);
	owed_fini(&p->entries.owed);
	round_fini(&p->live.round);
	round_fini(&p->gone.round);
	home_close(&p->d);
	config_free(&p->config);
}
