/* SPDX-License-Identifier: MIT. profile_head.c: what a stored session is: its processes, devices,
 * losses and notes. */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "arena.h"
#include "loss_terms.h"
#include "process_terms.h"
#include "profile_head.h"
#include "rows.h"
#include "schema.h"
#include "session_terms.h"
#include "text.h"
#include "time_namespace.h"

#define PROCESSES_MAX 65536u
#define DEVICES_MAX   65536u
#define NOTES_MAX     256u
#define PARTS_MORE_NS 1000000000u
#define COST_MAX      1000 /* times as long */
#define LOST_WORK     0.05 /* of a GPU's work: what looks idle may be that */

/* clang-format off */
#define PART(name, column, ...) "," #column
#define PARTS GPU_PARTS_STORED(PART)
/* Of one process, by its number, or of all from ?3 to ?4. */
#define ONE(process) " AND " process " BETWEEN ?3 AND ?4"
#define STATEMENTS(X)                                                                              \
	X(PROCESS, "SELECT p.id, p.command, p.agent_ns, p.gpu_state, p.gpu_text, p.pid, p.rank,"   \
		" p.end_reason, p.source, p.boot_id, coalesce(p.ended_ns,"                         \
		" CAST((julianday('now') - 2440587.5) * 86400e9 AS INTEGER)) - p.created_realtime_ns," \
		" p.world_size"                                                                    \
		" FROM member m JOIN process p ON p.id = m.process"                                \
		" WHERE m.session = ?1" ONE("m.process") " ORDER BY p.id")                         \
	X(DEVICE, "SELECT d.process, d.device, d.uuid, d.type, d.name, d.arch, d.num_sms,"         \
		" d.clock_khz, d.memory_clock_khz, d.bus_width FROM member m"                      \
		" JOIN device d ON d.process = m.process WHERE m.session = ?1"                     \
		ONE("m.process") " ORDER BY d.process, d.device")                                  \
	X(BUSY, "SELECT process, device, busy_ns, last_ns" PARTS " FROM busy WHERE session = ?1"   \
		ONE("process"))                                                                    \
	X(ACTIVE, "SELECT begin_ns, end_ns FROM active WHERE session = ?1")                        \
	X(SEGMENT, "SELECT begin_ns, end_ns FROM segment WHERE session = ?1 AND segment = ?2")     \
	X(COST, "SELECT process, value FROM metric WHERE session = ?1"                             \
		ONE("process") " AND name = 'recording_cost'")                                     \
	X(LOSS, "SELECT l.process, l.cause, l.count, p.flags FROM loss l"                          \
		" LEFT JOIN process p ON p.id = l.process WHERE l.session = ?1"                    \
		ONE("l.process"))                                                                  \
	X(NOTE, "SELECT process, text FROM note WHERE session = ?1" ONE("process")                 \
		" ORDER BY ns, process, number")
/* clang-format on */

enum {
#define X(name, sql) SQL_##name,
	STATEMENTS(X)
#undef X
};
static const char *const statements[] = {
#define X(name, sql) sql,
	STATEMENTS(X)
#undef X
};

/* Calls row() for each row of a statement. */
typedef int row_fn(struct load *l, sqlite3_stmt *st);

static int each_row(struct load *l, int which, row_fn *row)
{
	sqlite3_stmt *st;
	int r, more;

	r = load_prepare(l, statements[which], &st);
	if (r < 0)
		return r;
	if (which == SQL_SEGMENT)
		(void)sqlite3_bind_int64(st, 2, l->select->phase);
	if (sqlite3_bind_parameter_count(st) >= 4) {
		(void)sqlite3_bind_int64(st, 3, l->select->id != 0 ? l->select->id : INT64_MIN);
		(void)sqlite3_bind_int64(st, 4, l->select->id != 0 ? l->select->id : INT64_MAX);
	}
	while ((more = load_step(l, st)) > 0) {
		r = row(l, st);
		if (r < 0)
			break;
	}
	(void)sqlite3_finalize(st);
	return more < 0 ? more : r;
}

static int no_memory(struct load *l)
{
	return err_set(l->e, -ENOMEM, "out of memory");
}

/* --- session */

static const char *hex_text(struct profile *p, const uint8_t uuid[16])
{
	char hex[33];
	int i;

	for (i = 0; i < 16; i++)
		(void)snprintf(hex + 2 * i, 3, "%02x", uuid[i]);
	return profile_text(p, hex, 32);
}

static int session_head(struct load *l)
{
	struct profile_head *h = &l->p->head;
	const struct row_session *row = &h->row;

	h->id = (uint64_t)l->session;
	h->name = profile_text(l->p, row->name, strlen(row->name));
	h->uuid = hex_text(l->p, row->uuid);
	h->state = term_word(&term_session_states, row->state, "unknown");
	h->files = l->select->file ? term_number(&term_session_modes, row->mode, MODE_NONE)
				   : MODE_NONE;
	h->created_ns = row->created_ns;
	l->active_ns = (int64_t)load_plausible(l, (int64_t)row->active_ns, DAMAGED_ACTIVE);
	h->launches = load_plausible(l, (int64_t)row->launches, DAMAGED_LAUNCHES);
	h->matched = load_plausible(l, (int64_t)row->matched, DAMAGED_LAUNCHES);
	h->unmatched = h->launches > h->matched ? h->launches - h->matched : 0;
	l->daemon_ns = (int64_t)load_plausible(l, (int64_t)row->daemon_ns, DAMAGED_OVERHEAD);
	h->command = profile_text(l->p, row->command, strlen(row->command));
	h->tags = profile_text(l->p, row->tags, strlen(row->tags));
	h->note = profile_text(l->p, row->note, strlen(row->note));
	h->source = "live";
	l->gpu_wanted = row->gpu == SESSION_GPU_WANTED;
	return h->name == NULL || h->uuid == NULL || h->command == NULL || h->tags == NULL ||
			       h->note == NULL
		       ? no_memory(l)
		       : 0;
}

static int load_session(struct load *l)
{
	struct row_io x = {0};
	struct text sql = {0};
	sqlite3_stmt *st;
	char *select;
	size_t n;
	int r;

	text_str(&sql, "SELECT ");
	schema_select(&sql, TABLE_session);
	text_str(&sql, " FROM session WHERE id = ?1");
	if (text_take(&sql, &select, &n) < 0)
		return no_memory(l);
	r = load_prepare(l, select, &st);
	free(select);
	if (r < 0)
		return r;
	r = load_step(l, st);
	if (r > 0)
		r = row_get_session(&x, st, &l->p->head.row) < 0 ? no_memory(l) : session_head(l);
	else if (r == 0)
		r = err_set(l->e, -ENOENT, "no session with id %lld", (long long)l->session);
	(void)sqlite3_finalize(st);
	return r;
}

static int note(struct load *l, const char *text)
{
	struct profile_head *h = &l->p->head;
	const char **notes;
	uint32_t i;

	for (i = 0; i < h->n_notes; i++)
		if (strcmp(h->notes[i], text) == 0)
			return 0;
	if (h->n_notes == NOTES_MAX)
		return 0;
	if ((h->n_notes & (h->n_notes - 1)) == 0) {
		notes = realloc(h->notes, (h->n_notes == 0 ? 1 : h->n_notes * 2u) * sizeof(*notes));
		if (notes == NULL)
			return no_memory(l);
		h->notes = notes;
	}
	h->notes[h->n_notes] = profile_text(l->p, text, strlen(text));
	if (h->notes[h->n_notes] == NULL)
		return no_memory(l);
	h->n_notes++;
	return 0;
}

/* --- processes */

/* "pid:N" or a rank. */
static bool is_selected(const struct profile_select *s, sqlite3_stmt *st)
{
	char number[32];

	if (s->process == NULL)
		return true;
	if (strncmp(s->process, "pid:", 4) == 0) {
		snprintf(number, sizeof(number), "%lld", sqlite3_column_int64(st, 5));
		return strcmp(s->process + 4, number) == 0;
	}
	if (sqlite3_column_type(st, 6) == SQLITE_NULL)
		return false;
	snprintf(number, sizeof(number), "%lld", sqlite3_column_int64(st, 6));
	return strcmp(s->process, number) == 0;
}

static void process_rank(struct load *l, sqlite3_stmt *st)
{
	struct profile_head *h = &l->p->head;
	const int64_t rank = sqlite3_column_int64(st, 6), world = sqlite3_column_int64(st, 11);

	if (sqlite3_column_type(st, 6) == SQLITE_NULL)
		return;
	if (rank < 0 || rank > INT32_MAX || world < 0 || world > INT32_MAX) {
		l->damaged |= 1u << DAMAGED_RANKS;
		return;
	}
	h->rank_min = h->ranked == 0 || rank < h->rank_min ? rank : h->rank_min;
	h->rank_max = h->ranked == 0 || rank > h->rank_max ? rank : h->rank_max;
	h->ranked++;
	h->world = world > h->world ? world : h->world;
}

static int process_row(struct load *l, sqlite3_stmt *st)
{
	struct load_process *q;
	const char *why;
	uint32_t source;
	int64_t state = sqlite3_column_int64(st, 3);

	if (!is_selected(l->select, st))
		return 0;
	if (l->n_processes == PROCESSES_MAX)
		return err_set(l->e, -EBADMSG, "session %lld has more than %u processes",
			(long long)l->session, PROCESSES_MAX);
	if ((l->n_processes & (l->n_processes - 1)) == 0) {
		q = realloc(
			l->process, (l->n_processes == 0 ? 1 : l->n_processes * 2u) * sizeof(*q));
		if (q == NULL)
			return no_memory(l);
		l->process = q;
	}
	q = &l->process[l->n_processes++];
	*q = (struct load_process){.id = sqlite3_column_int64(st, 0),
		.agent_ns =
			(int64_t)load_plausible(l, sqlite3_column_int64(st, 2), DAMAGED_OVERHEAD),
		.lived_ns = sqlite3_column_int64(st, 10),
		/* The daemon writes words with every state; those of failure explain an empty tree.
		 */
		.refused = state == 0 || state == 3 || state == 4};
	why = load_text(l, st, 4);
	if (why == NULL)
		return no_memory(l);
	snprintf(q->why, sizeof(q->why), "%s", why);
	if (sqlite3_column_bytes(st, 9) == (int)sizeof(q->boot_id))
		memcpy(q->boot_id, sqlite3_column_blob(st, 9), sizeof(q->boot_id));
	source = term_number(
		&term_process_sources, (const char *)sqlite3_column_text(st, 8), FROM_LIVE);
	if (source != FROM_LIVE)
		l->p->head.source = term_word(&term_process_sources, source, "live");
	if (l->n_processes == 1 && sqlite3_column_bytes(st, 1) > 0)
		l->p->head.command = load_text(l, st, 1);
	if (l->p->head.command == NULL)
		return no_memory(l);
	process_rank(l, st);
	return 0;
}

static int process_order(const void *a, const void *b)
{
	const int64_t id = *(const int64_t *)a, x = ((const struct load_process *)b)->id;

	return (id > x) - (id < x);
}

static bool is_process(const struct load *l, int64_t id)
{
	return l->n_processes > 0 &&
	       bsearch(&id, l->process, l->n_processes, sizeof(*l->process), process_order) != NULL;
}

/* --- devices */

static int device_row(struct load *l, sqlite3_stmt *st)
{
	struct load_device *d;
	char arch[24];

	if (!is_process(l, sqlite3_column_int64(st, 0)))
		return 0;
	if (l->n_devices == DEVICES_MAX)
		return err_set(l->e, -EBADMSG, "session %lld has more than %u devices",
			(long long)l->session, DEVICES_MAX);
	if ((l->n_devices & (l->n_devices - 1)) == 0) {
		d = realloc(l->device, (l->n_devices == 0 ? 1 : l->n_devices * 2u) * sizeof(*d));
		if (d == NULL)
			return no_memory(l);
		l->device = d;
	}
	d = &l->device[l->n_devices++];
	*d = (struct load_device){.process = sqlite3_column_int64(st, 0),
		.device = sqlite3_column_int64(st, 1),
		.d = {.type = load_text(l, st, 3),
			.name = load_text(l, st, 4),
			.arch = (uint32_t)load_u64(st, 5),
			.num_sms = load_u64(st, 6),
			.clock_khz = load_u64(st, 7),
			.memory_clock_khz = load_u64(st, 8),
			.bus_width = load_u64(st, 9)}};
	if (sqlite3_column_bytes(st, 2) == (int)sizeof(d->d.uuid))
		memcpy(d->d.uuid, sqlite3_column_blob(st, 2), sizeof(d->d.uuid));
	snprintf(arch, sizeof(arch), "%u", d->d.arch);
	d->d.arch_text = profile_text(l->p, arch, strlen(arch));
	if (d->d.type == NULL || d->d.name == NULL || d->d.arch_text == NULL)
		return no_memory(l);
	return 0;
}

/* What a row says of a device, unless it was written by a protond that knew no parts. */
static void busy_parts_row(struct load *l, struct profile_device *d, sqlite3_stmt *st)
{
	uint32_t k;

	d->busy_ns = load_plausible(l, sqlite3_column_int64(st, 2), DAMAGED_BUSY);
	for (k = 0; k < PART_HOST; k++)
		d->part_ns[k] =
			load_plausible(l, sqlite3_column_int64(st, 4 + (int)k), DAMAGED_BUSY);
	d->has_parts = load_sum(load_sum(d->part_ns[PART_COMPUTE], d->part_ns[PART_COMM]),
			       d->part_ns[PART_COPY]) == d->busy_ns;
}

static int busy_row(struct load *l, sqlite3_stmt *st)
{
	int64_t process = sqlite3_column_int64(st, 0), device = sqlite3_column_int64(st, 1);
	uint64_t last = load_u64(st, 3);
	struct load_device *d = load_device(l, process, device);

	if (d == NULL)
		return 0;
	if (!l->select->one_phase) /* kept for the whole session only */
		busy_parts_row(l, &d->d, st);
	d->used = true;
	if (last > l->last_busy_ns)
		l->last_busy_ns = last;
	return 0;
}

static const struct profile_device *find_uuid(
	const struct profile *p, const struct profile_device *d)
{
	static const uint8_t unknown[16];
	uint32_t i;

	if (memcmp(d->uuid, unknown, sizeof(unknown)) == 0)
		return NULL;
	for (i = 0; i < p->n_devices; i++)
		if (memcmp(p->device[i].uuid, d->uuid, sizeof(d->uuid)) == 0)
			return &p->device[i];
	return NULL;
}

/* The rest of the time is the host's. Times that were measured by several clocks may be longer than the
 * session by a little: then the parts are not told. */
static void parts_whole(struct load *l, struct profile_device *d)
{
	const uint64_t duration = l->p->head.duration_ns;
	uint64_t sum = 0;
	uint32_t k;

	for (k = 0; k < PART_HOST; k++)
		sum = load_sum(sum, d->part_ns[k]);
	if (duration > 0 && sum > 2 * duration + PARTS_MORE_NS) { /* that is not little */
		l->damaged |= 1u << DAMAGED_BUSY;
		memset(d->part_ns, 0, sizeof(d->part_ns));
	}
	d->has_parts = d->has_parts && duration > 0 && sum <= duration;
	d->part_ns[PART_HOST] = d->has_parts ? duration - sum : 0;
}

/* The devices that did something, one entry for each whatever number its processes give it. */
static int merge_devices(struct load *l)
{
	struct profile *p = l->p;
	const struct profile_device *same, *added;
	struct profile_device *d;
	char id[16];
	uint32_t i;

	p->device = calloc(l->n_devices + 1u, sizeof(*p->device));
	if (p->device == NULL)
		return no_memory(l);
	for (i = 0; i < l->n_devices; i++) {
		if (!l->device[i].used)
			continue;
		same = find_uuid(p, &l->device[i].d);
		added = NULL;
		if (same == NULL) {
			d = &p->device[p->n_devices];
			*d = l->device[i].d;
			snprintf(id, sizeof(id), "%u", p->n_devices);
			d->id = profile_text(p, id, strlen(id));
			if (d->id == NULL)
				return no_memory(l);
			p->n_devices++;
			same = added = d;
		}
		l->device[i].merged = (uint32_t)(same - p->device);
		d = &p->device[l->device[i].merged];
		/* Two processes may be busy at once on it: never more than all of the time, and
		 * what one waits for the other may fill. */
		if (d != added) {
			d->busy_ns = load_sum(d->busy_ns, l->device[i].d.busy_ns);
			d->has_parts = false;
		}
		if (p->head.duration_ns > 0 && d->busy_ns > p->head.duration_ns)
			d->busy_ns = p->head.duration_ns;
	}
	for (i = 0; i < p->n_devices; i++)
		parts_whole(l, &p->device[i]);
	return 0;
}

/* --- duration */

uint64_t profile_now(const uint8_t boot_id[16])
{
	char text[64], hex[3] = "";
	uint8_t id[16] = {0};
	struct timespec ts;
	ssize_t n;
	size_t i, at = 0;
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return 0;
	n = read(fd, text, sizeof(text));
	(void)close(fd);
	for (i = 0; n > 0 && i + 1 < (size_t)n && at < sizeof(id); i++) {
		if (text[i] == '-')
			continue;
		memcpy(hex, text + i++, 2);
		id[at++] = (uint8_t)strtoul(hex, NULL, 16);
	}
	if (memcmp(id, boot_id, sizeof(id)) != 0 || clock_gettime(CLOCK_MONOTONIC, &ts) < 0)
		return 0;
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec -
	       (uint64_t)time_namespace_ahead_ns();
}

static int interval_row(struct load *l, sqlite3_stmt *st)
{
	uint64_t begin = load_u64(st, 0), end = load_u64(st, 1);

	l->has_phase = true;
	if (sqlite3_column_type(st, 1) == SQLITE_NULL) {
		end = l->n_processes > 0 ? profile_now(l->process[0].boot_id) : 0;
		if (end == 0)
			end = l->last_busy_ns;
	}
	if (end < begin)
		l->damaged |= (uint32_t)(sqlite3_column_type(st, 1) != SQLITE_NULL)
			      << DAMAGED_ACTIVE;
	else
		l->p->head.duration_ns = load_sum(l->p->head.duration_ns,
			load_plausible(l, (int64_t)(end - begin), DAMAGED_ACTIVE));
	return 0;
}

/* What the Python package measured (_sampling.py); of several processes, the mean. */
static int cost_row(struct load *l, sqlite3_stmt *st)
{
	const double cost = sqlite3_column_double(st, 1);

	if (select_is_one(l->select) && !is_process(l, sqlite3_column_int64(st, 0)))
		return 0;
	if (!(cost > -1 && cost < COST_MAX)) { /* nothing takes less than no time */
		l->damaged |= 1u << DAMAGED_COST;
		return 0;
	}
	l->cost += cost;
	l->n_costs++;
	return 0;
}

/* --- losses and notes */

/* An older agent's SESSION does not say what was lost before it, and no child says when it was lost. */
static bool is_about(uint32_t cause, uint64_t process_flags)
{
	return cause == LOST_CHILDREN ||
	       (cause <= LOST_NAMES && (process_flags & PROCESS_CUTS) == 0);
}

static int loss_row(struct load *l, sqlite3_stmt *st)
{
	struct profile_head *h = &l->p->head;
	uint32_t cause = (uint32_t)load_u64(st, 1), i;
	const uint64_t count = load_plausible(l, sqlite3_column_int64(st, 2), DAMAGED_LOSSES);
	struct profile_loss *losses;

	if (count == 0 || (select_is_one(l->select) && !is_process(l, sqlite3_column_int64(st, 0))))
		return 0;
	for (i = 0; i < h->n_losses && h->losses[i].cause != cause; i++)
		;
	if (i == h->n_losses) {
		if (i == 64)
			return 0; /* causes are few; a file with more is not ours to list */
		losses = realloc(h->losses, (i + 1u) * sizeof(*losses));
		if (losses == NULL)
			return no_memory(l);
		h->losses = losses;
		h->losses[h->n_losses++] = (struct profile_loss){.cause = cause};
	}
	h->losses[i].count = load_sum(h->losses[i].count, count);
	h->losses[i].about |= is_about(cause, load_u64(st, 3));
	return 0;
}

static int note_row(struct load *l, sqlite3_stmt *st)
{
	const char *text = load_text(l, st, 1);

	if (text == NULL)
		return no_memory(l);
	if (select_is_one(l->select) && !is_process(l, sqlite3_column_int64(st, 0)))
		return 0;
	return note(l, text);
}

/* --- the whole */

#define OVERHEAD_MIN_NS  100000000u /* the daemon's share comes in pieces of 1 ms */
#define OVERHEAD_THREADS 8          /* that neither an agent nor the daemon has */

/* CPU time for a second of the session, all processes together. An agent's is of all that its
 * process has lived, of which the session may be a part. */
static double overhead(struct load *l)
{
	const double duration = (double)l->p->head.duration_ns;
	double share = (double)l->daemon_ns / duration, lived;
	uint32_t i;

	if (duration < OVERHEAD_MIN_NS)
		return (double)NAN;
	for (i = 0; i < l->n_processes; i++) {
		lived = (double)l->process[i].lived_ns;
		share += (double)l->process[i].agent_ns / (lived > duration ? lived : duration);
	}
	if (share <= OVERHEAD_THREADS * (l->n_processes + 1.))
		return share;
	l->damaged |= 1u << DAMAGED_OVERHEAD;
	return (double)NAN;
}

static int load_rates(struct load *l)
{
	struct profile_head *h = &l->p->head;
	struct err e = {0};
	const int r = step_rates_load(l->db, l->session, l->select->process, &h->rates, &e);

	if (r != -EBADMSG)
		return r < 0 ? err_set(l->e, r, "%s", e.text) : r;
	h->rates = (struct step_rates){0};
	return note(l, "rows of steps are damaged: how fast they went is not known");
}

static bool is_no_work(uint32_t cause)
{
	return cause == LOST_PATHS || cause == LOST_NAMES || cause == LOST_NODES ||
	       cause == LOST_CAPTURED || cause == LOST_NVTX || cause == LOST_SAMPLES;
}

static uint64_t most_of(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* A launch without a record is in flight as long as the session goes on: it may have been work, and is not lost. */
uint64_t profile_lost(const struct profile_head *h, bool work)
{
	uint64_t launches = 0, records = 0, others = 0;
	uint32_t i;

	for (i = 0; i < h->n_losses; i++) {
		const struct profile_loss *l = &h->losses[i];

		if (loss_is_unmatched(l->cause))
			launches += l->count;
		else if (loss_is_record(l->cause))
			records = most_of(records, l->count);
		else if (!work || !is_no_work(l->cause))
			others += l->count;
	}
	if (work || profile_is_over(h))
		launches = most_of(launches, h->unmatched);
	return others + most_of(launches, records);
}

bool profile_lost_work(const struct profile_head *h, double pieces)
{
	const double lost = (double)profile_lost(h, true);

	return lost > LOST_WORK * (lost + pieces);
}

int load_head(struct load *l)
{
	static const struct {
		int which;
		row_fn *row;
	} steps[] = {{SQL_PROCESS, process_row}, {SQL_DEVICE, device_row}, {SQL_BUSY, busy_row},
		{SQL_COST, cost_row}, {SQL_LOSS, loss_row}, {SQL_NOTE, note_row}};
	struct profile_head *h = &l->p->head;
	size_t i;
	int r;

	r = load_session(l);
	if (r < 0)
		return r;
	for (i = 0; i < sizeof(steps) / sizeof(steps[0]) && r == 0; i++)
		r = each_row(l, steps[i].which, steps[i].row);
	if (r < 0)
		return r;
	if (l->select->process != NULL && l->n_processes == 0)
		return err_set(l->e, -ENOENT,
			"session '%s' has no process '%s'; give a rank, or pid:N", h->name,
			l->select->process);
	h->n_processes = l->n_processes;
	r = each_row(l, l->select->one_phase ? SQL_SEGMENT : SQL_ACTIVE, interval_row);
	if (r == 0 && l->select->one_phase && !l->has_phase)
		return err_set(
			l->e, -ENOENT, "session '%s' has no phase %u", h->name, l->select->phase);
	if (r == 0 && h->duration_ns == 0 && !l->select->one_phase)
		h->duration_ns = (uint64_t)l->active_ns;
	l->unmatched = h->unmatched;
	h->lost_work = l->gpu_wanted && h->launches > 0 && profile_lost_work(h, (double)h->matched);
	if (select_is_one(l->select) || l->select->one_phase)
		h->launches = h->matched = h->unmatched =
			0; /* counted for all of it, not for the part */
	h->overhead = l->select->one_phase ? (double)NAN : overhead(l);
	h->recording_cost = l->n_costs > 0 ? l->cost / l->n_costs : (double)NAN;
	return r == 0 && !l->select->one_phase && !l->select->file && l->select->id == 0
		       ? load_rates(l)
		       : r;
}

static int note_damage(struct load *l)
{
	static const char *const words[] = {
#define X(id, words) words,
		DAMAGES(X)
#undef X
	};
	struct text t = {0};
	uint32_t i;
	int r;

	for (i = 0; i < sizeof(words) / sizeof(*words); i++)
		if ((l->damaged >> i & 1) != 0)
			text_fmt(&t, "%s%s", t.n > 0 ? ", " : "", words[i]);
	if (t.n == 0)
		return 0;
	text_str(&t, ": some of these are damaged in the store and count as 0, so that what is "
		     "made of them is wrong");
	text_char(&t, '\0');
	r = t.failed ? no_memory(l) : note(l, t.s);
	text_fini(&t);
	return r;
}

/* It launched, and nothing of that has come. */
static int say_unmatched(struct load *l)
{
	struct profile_head *h = &l->p->head;
	char text[256];

	(void)snprintf(text, sizeof(text),
		profile_is_over(h)
			? "%llu launches have no GPU record: the head of `protonview tree` says "
			  "what was "
			  "lost, and why"
			: "%llu launches have no GPU record yet: CUPTI gives them in buffers, when "
			  "one "
			  "is full or flushed; `protonctl where` shows what is in flight",
		(unsigned long long)l->unmatched);
	h->gpu_why = profile_text(l->p, text, strlen(text));
	return h->gpu_why == NULL ? no_memory(l) : 0;
}

int load_head_end(struct load *l)
{
	struct profile_head *h = &l->p->head;
	char text[96];
	uint32_t i;
	int r = merge_devices(l);

	if (r == 0)
		r = note_damage(l);
	if (r == 0 && h->lost_work)
		r = note(l, profile_is_over(h)
				    ? "much of the GPU's work was lost: where it looks idle it may "
				      "have worked"
				    : "much of the GPU's work has no record yet: where it looks "
				      "idle it may have worked");
	if (r == 0 && !select_is_one(l->select) && !l->select->one_phase)
		r = load_held(l, note);

	if (r == 0 && l->open_scopes > 0) {
		snprintf(text, sizeof(text),
			"%llu scope%s still open at the end: timed, not counted",
			(unsigned long long)l->open_scopes,
			l->open_scopes == 1 ? " was" : "s were");
		r = note(l, text);
	}
	if (r == 0 && l->only_open > 0) {
		snprintf(text, sizeof(text), "%llu scope%s open, and will be timed and counted",
			(unsigned long long)l->only_open, l->only_open == 1 ? " is" : "s are");
		r = note(l, text);
	}
	if (r == 0 && l->skipped_values > 0) {
		snprintf(text, sizeof(text), "%llu metric values of an unknown type were skipped",
			(unsigned long long)l->skipped_values);
		r = note(l, text);
	}
	if (r == 0 && l->surplus_values > 0) {
		snprintf(text, sizeof(text), "%llu value%s of metrics beyond %u names %s left out",
			(unsigned long long)l->surplus_values, l->surplus_values == 1 ? "" : "s",
			USER_METRICS_MAX, l->surplus_values == 1 ? "is" : "are");
		r = note(l, text);
	}
	if (r < 0 || !l->gpu_wanted || profile_find_metric(l->p, "count") != PROFILE_NONE ||
		profile_find_metric(l->p, "copies") != PROFILE_NONE)
		return r;
	if (l->unmatched > 0)
		return say_unmatched(l);
	h->gpu_why = PROFILE_NO_KERNEL;
	if (l->n_processes == 0)
		h->gpu_why = "no process took part in the session";
	for (i = 0; i < l->n_processes; i++) {
		if (!l->process[i].refused || l->process[i].why[0] == '\0')
			continue;
		h->gpu_why = profile_text(l->p, l->process[i].why, strlen(l->process[i].why));
		return h->gpu_why == NULL ? no_memory(l) : 0;
	}
	return 0;
}
