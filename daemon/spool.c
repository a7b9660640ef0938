/* SPDX-License-Identifier: MIT. spool.c: taking up where a former daemon left off: rows of the
 * store, entries of the journal, rings and control files in rings/.
 *
 * The order is the proof that nothing is lost and nothing doubled. The store's rows hold everything
 * up to position P of the journal. So: rows into the fold; the rings' tables, for the words behind
 * the ids; entries from P on, once each; a lane's head is then where its last entry ended (or the
 * row's, if there is none since). What the job was told before may be less, never more, for heads
 * are told after the entry is flushed; where it is more all the same, the journal was cut
 * (ring_compare_heads()). The control files get these heads, and only then are jobs let in.
 */
#include "spool.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "adopt.h"
#include "below.h"
#include "closer.h"
#include "config.h"
#include "drain.h"
#include "entry.h"
#include "exited.h"
#include "fold.h"
#include "host_clock.h"
#include "intake.h"
#include "journal.h"
#include "kept.h"
#include "log.h"
#include "loop.h"
#include "offered.h"
#include "poison.h"
#include "record.h"
#include "ring_ctl.h"
#include "rings.h"
#include "store.h"

#define GRACE_NS  5000000000ull  /* a job that lived through our absence has come back by then */
#define YOUNG_NS  10000000000ull /* a ring's job says RING within this time of making it */
#define SCAN_MAX  2048u /* names of unknown rings, or none of ours, in one scan of a directory */
#define EMPTY_MAX (1u << 20) /* names of a directory that is to go */

/* The only opening of a file by a name that a job may have made: no link is followed, no mount is
 * entered, a FIFO does not hang. */
static int open_ring_file(const struct daemon *d, const char *file, uint32_t *ret_uid)
{
	char path[RING_NAME_BYTES_TEXT + 8];
	struct stat st;
	int fd;

	(void)snprintf(path, sizeof(path), "%s.ring", file);
	fd = below_open(d->rings_fd, path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		(void)close(fd);
		return -EBADMSG;
	}
	*ret_uid = st.st_uid;
	return fd;
}

/* A memfd has no name to find it by, but its job still has it open, and /proc shows that to those
 * who might look into the job anyway. Without it, what the journal holds of the job's last second
 * would lack its words until the job offers it again. */
static int open_memfd_of(const struct ring *r)
{
	static const char ours[] = "/memfd:protond-ring";
	char dir_path[40], link[64];
	struct ring_header h;
	struct dirent *e;
	ssize_t n;
	DIR *dir;
	int fd = -1;

	if (r->pid == 0 || process_start(r->pid) != r->pid_start)
		return -1;
	(void)snprintf(dir_path, sizeof(dir_path), "/proc/%u/fd", r->pid);
	dir = opendir(dir_path);
	while (dir != NULL && fd < 0 && (e = readdir(dir)) != NULL) {
		n = readlinkat(dirfd(dir), e->d_name, link, sizeof(link));
		if (n < (ssize_t)sizeof(ours) - 1 || memcmp(link, ours, sizeof(ours) - 1) != 0)
			continue;
		fd = below_memory(dirfd(dir), e->d_name); /* the words may be a mount's, too */
		if (fd >= 0 && (reader_peek(fd, &h) < 0 || memcmp(h.uuid, r->uuid, 16) != 0)) {
			(void)close(fd);
			fd = -1;
		}
	}
	if (dir != NULL)
		(void)closedir(dir);
	return fd;
}

/* As any ring that a job hands over: it is the job's still, which may have changed it since. */
static bool find_kept(struct ring *r, const struct reader_expect *x)
{
	int fd;

	while (!r->kept && (fd = kept_take(r->all, r->uuid)) >= 0) {
		r->kept = ring_open(r, fd, x, NULL) == 0;
		if (!r->kept)
			closer_take(r->all->closer, fd);
	}
	return r->kept;
}

/* Opens a known ring's file, if it can be found. */
static void find_file(struct ring *r)
{
	const struct reader_expect x = {.uid = r->uid,
		.uuid = r->uuid,
		.store = r->all->d->store_uuid,
		.boot_id = r->all->d->boot_id};
	struct err e = {0};
	char quoted[600];
	uint32_t uid;
	int fd;

	if (find_kept(r, &x))
		return;
	ring_name(r->uuid, r->file);
	fd = open_ring_file(r->all->d, r->file, &uid);
	if (fd < 0) {
		r->file[0] = '\0';
		fd = open_memfd_of(r); /* -1: perhaps its job offers it again */
	}
	if (fd < 0 || ring_open(r, fd, &x, &e) == 0)
		return;
	log_line(LOG_WARN, "ring_refused", "pid=%u error=%d text=%s", r->pid, -e.code,
		log_quote(quoted, sizeof(quoted), e.text));
	(void)close(fd);
	r->file[0] = '\0';
}

static int heads_room(struct ring *r)
{
	if (r->head == NULL)
		r->head = calloc(RING_LANES_MAX, sizeof(*r->head));
	return r->head != NULL ? 0 : -ENOMEM;
}

static int set_head(struct ring *r, uint32_t lane, uint64_t head)
{
	if (lane >= RING_LANES_MAX)
		return 0;
	if (heads_room(r) < 0)
		return -ENOMEM;
	if (head > r->head[lane])
		r->head[lane] = head;
	if (lane >= r->n_heads)
		r->n_heads = lane + 1;
	return 0;
}

static int row_ring(struct protond *p, const struct batch *b, const struct row_process *row)
{
	struct ring *r;
	uint32_t i;
	int x = 0;

	if (row->ended_ns != 0)
		return 0;
	r = ring_add(&p->rings, row->ring);
	if (r == NULL)
		return -ENOMEM;
	if (memcmp(row->boot_id, p->d.boot_id, 16) != 0)
		r->state = RING_GONE; /* the machine was started anew: lost, with its ring */
	r->pid = row->pid;
	r->ns_pid = row->ns_pid;
	r->uid = row->uid;
	r->pid_start = row->pid_start;
	r->adopted = true;
	for (i = 0; i < b->lane.n && x == 0; i++) {
		if (b->lane.row[i].process == row->id)
			x = set_head(r, b->lane.row[i].lane, b->lane.row[i].head);
	}
	return x;
}

static int restore_rows(struct protond *p, struct err *e)
{
	struct batch b = {0};
	uint32_t i;
	int r = store_load(p->d.store, &b, e);

	if (r < 0)
		return r;
	r = fold_restore(p->d.fold, &b);
	if (r < 0)
		(void)err_set(e, r,
			"what the database holds of running sessions cannot be taken up (%s)",
			strerror(-r));
	for (i = 0; i < b.process.n && r == 0; i++) {
		r = row_ring(p, &b, &b.process.row[i]);
		if (r < 0)
			(void)err_set(e, r, "no memory to start");
	}
	p->d.stored_position = b.journal;
	p->former_ns = fold_now_ns(p->d.fold);
	batch_free(&b);
	return r;
}

static int replay_process(struct protond *p, const struct journal_entry *e)
{
	const struct j_process *j = (const void *)(e + 1);
	struct ring *r;

	if (e->bytes < sizeof(*e) + sizeof(*j) || ring_find(&p->rings, e->ring) != NULL)
		return 0;
	r = ring_add(&p->rings, e->ring);
	if (r == NULL)
		return -ENOMEM;
	r->pid = j->pid;
	r->ns_pid = j->ns_pid;
	r->uid = j->uid;
	r->pid_start = j->pid_start;
	r->adopted = true;
	return 0;
}

/* Which rings there are, and how far each was drained. */
static int replay_note(struct protond *p, const struct journal_entry *e)
{
	const struct j_lane *l = (const void *)(e + 1);
	struct ring *r;

	if (e->type == J_PROCESS)
		return replay_process(p, e);
	r = ring_find(&p->rings, e->ring);
	if (r == NULL)
		return 0;
	if (e->type == J_END) {
		r->state = RING_ENDED;
		r->end_position =
			1; /* after the next transaction, which holds all that is replayed */
	}
	if (e->type == J_LANE && e->bytes >= sizeof(*e) + sizeof(*l))
		return set_head(r, l->lane, l->from + l->bytes);
	return 0;
}

static int replay_entry(void *arg, const struct journal_entry *e)
{
	struct protond *p = arg;
	int r = poison_apply(p->entries.poison, &p->d, e);

	if (r == -ENOMEM)
		return r;
	if (e->mono_ns > p->former_ns)
		p->former_ns = e->mono_ns;
	return replay_note(p, e);
}

static int replay(struct protond *p, struct err *e)
{
	int gap, r;

	r = journal_replay(p->d.journal, p->d.stored_position, replay_entry, p, &gap);
	if (r < 0)
		return err_set(e, r, "the journal in %s cannot be replayed: %s", p->d.runtime,
			strerror(-r));
	fold_replayed(p->d.fold);
	if (gap < 0)
		log_line(LOG_WARN, "journal_gap", "error=%d from=%llu", -gap,
			(unsigned long long)p->d.stored_position);
	if (journal_lost(p->d.journal) > 0)
		log_line(LOG_WARN, "journal_damaged", "bytes=%llu",
			(unsigned long long)journal_lost(p->d.journal));
	return 0;
}

static void take_up(struct ring *r)
{
	bool more;
	int x = 0;

	if (r->state == RING_ENDED)
		ring_name(r->uuid, r->file); /* to be removed */
	if (r->state == RING_ENDED || r->state == RING_GONE)
		return;
	if (r->reader.lane == NULL) {
		find_file(r); /* its PROCESS was in the journal, and so were its tables */
		if (r->reader.lane != NULL)
			x = drain_tables_again(r, &more);
	}
	if (x == 0 && r->reader.lane != NULL)
		x = ring_control_open(r);
	if (!ring_watch(r, -1) && (r->pid != 0 || r->reader.lane == NULL)) {
		if (x == 0 && r->reader.lane == NULL && r->adopted)
			x = ring_compare_heads(r);
		ring_died(r); /* dead: the first tick drains it and says END */
	}
	if (x < 0)
		log_line(LOG_WARN, "ring_not_taken_up", "pid=%u error=%d", r->pid, -x);
	log_line(LOG_INFO, "ring_taken_up", "pid=%u lanes=%u file=%d live=%d", r->pid, r->n_heads,
		r->reader.lane != NULL, r->state != RING_GONE);
}

static uint32_t last_segment(const struct protond *p, uint64_t *ret_bytes)
{
	const int fd = openat(p->d.runtime_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	unsigned long seq, last = 0;
	struct dirent *e;
	struct stat st;
	char *end;

	*ret_bytes = 0;
	while (dir != NULL && (e = readdir(dir)) != NULL) {
		if (strncmp(e->d_name, "journal.", 8) != 0 || e->d_name[8] < '1' ||
			e->d_name[8] > '9')
			continue;
		seq = strtoul(e->d_name + 8, &end, 10);
		if (*end != '\0' || seq > UINT32_MAX || seq <= last)
			continue;
		last = seq;
		*ret_bytes = fstatat(p->d.runtime_fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0
				     ? (uint64_t)st.st_size
				     : 0;
	}
	if (dir != NULL)
		(void)closedir(dir);
	return (uint32_t)last;
}

/* The file "store" in the runtime directory says which store the journal there belongs to. */
static bool is_our_journal(const struct protond *p)
{
	uint8_t uuid[16];
	const int fd = openat(p->d.runtime_fd, "store", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	bool same;

	if (fd < 0)
		return false;
	same = read(fd, uuid, 16) == 16 && memcmp(uuid, p->d.store_uuid, 16) == 0;
	(void)close(fd);
	return same;
}

static int claim_journal(const struct protond *p)
{
	const int fd = openat(p->d.runtime_fd, "store.new",
		O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	bool ok;

	if (fd < 0)
		return neg_errno();
	ok = write(fd, p->d.store_uuid, 16) == 16 &&
	     renameat(p->d.runtime_fd, "store.new", p->d.runtime_fd, "store") == 0;
	(void)close(fd);
	return ok ? 0 : neg_errno();
}

/* A store's positions only grow, whatever directories it is used with: where the journal found here
 * ends below the store's position, or is another store's, a new segment is begun above both, and
 * nothing of the old ones is replayed (the store has it, or another store should have had it). */
int spool_journal(struct protond *p, struct err *e)
{
	uint64_t bytes;
	const uint32_t last = last_segment(p, &bytes);
	const uint32_t stored = (uint32_t)(p->d.stored_position >> 32);
	const bool ours = is_our_journal(p);
	const uint32_t next = (last > stored ? last : stored) + 1;
	char name[24] = "";
	int fd, r;

	if ((!ours && last != 0) || ((uint64_t)last << 32) + bytes < p->d.stored_position) {
		(void)snprintf(name, sizeof(name), "journal.%u", next);
		fd = openat(p->d.runtime_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (fd < 0)
			return err_set(
				e, neg_errno(), "%s/%s: %s", p->d.runtime, name, strerror(errno));
		(void)close(fd);
		if (last != 0)
			log_line(
				LOG_WARN, "journal_of_another_life", "last=%u next=%u", last, next);
		p->d.stored_position = (uint64_t)next << 32;
	}
	r = claim_journal(p);
	if (r < 0 && name[0] != '\0') /* else there would be one more after each try */
		(void)unlinkat(p->d.runtime_fd, name, 0);
	if (r < 0)
		return err_set(e, r, "%s/store: %s", p->d.runtime, strerror(-r));
	poison_open(&p->entries.poison, &p->d);
	return journal_open(p->d.runtime_fd, &p->d.journal, e);
}

static void on_first_commit(void *arg, int r, const struct err *e)
{
	int *ret = arg;

	(void)e;
	*ret = r < 0 ? r : 1;
}

/* Before anybody is let in, the store knows this journal's positions. */
static int commit_now(struct protond *p, struct err *e)
{
	int done = 0;

	daemon_commit(&p->d, on_first_commit, &done);
	while (done == 0)
		(void)uv_run(&p->d.loop, UV_RUN_ONCE);
	return done < 0 ? err_set(e, done, "the database does not take what was recovered (%s)",
				  strerror(-done))
			: 0;
}

/* By its own word, which is all there is: a process of that number, start time and owner lives. */
static bool seems_alive(const struct ring_header *h, uint32_t uid)
{
	char path[40];
	struct stat st;

	(void)snprintf(path, sizeof(path), "/proc/%u", h->pid);
	return stat(path, &st) == 0 && st.st_uid == uid && process_start(h->pid) == h->pid_start;
}

/* Its job would have said RING, and been heard. What is of the future is of another clock. */
static bool is_old(const struct protond *p, uint64_t created_ns)
{
	return created_ns > mono_ns() || intake_was_clear(p->d.intake, created_ns + YOUNG_NS);
}

static void adopt_left(struct protond *p, const char *file, const uint8_t uuid[16])
{
	const struct ring_origin o = {NULL, 0, "unknown"};
	struct reader_expect x = {.uuid = uuid, .store = p->d.store_uuid, .boot_id = p->d.boot_id};
	struct ring_header h;
	struct ring *r;
	int fd = open_ring_file(&p->d, file, &x.uid);

	if (fd < 0)
		return;
	if (reader_peek(fd, &h) < 0 || memcmp(h.store, p->d.store_uuid, 16) != 0 ||
		seems_alive(&h, x.uid) || !is_old(p, h.created_monotonic_ns) ||
		rings_of(&p->rings, x.uid) >= p->d.config->jobs_per_uid) {
		(void)close(fd); /* being made, another protond's, or its job will come */
		return;
	}
	r = ring_add(&p->rings, uuid);
	if (r == NULL || ring_open(r, fd, &x, NULL) < 0) {
		(void)close(fd);
		if (r != NULL)
			ring_drop(r);
		return;
	}
	(void)snprintf(r->file, sizeof(r->file), "%s", file);
	if (offered_drop(r))
		return;
	r->pid = h.pid; /* its word, and perhaps another's by now: of the dead nobody asks */
	r->pid_start = h.pid_start;
	if (ring_compare_heads(r) < 0 || ring_adopt(r, &o) < 0) {
		ring_drop(r);
		return;
	}
	log_line(LOG_INFO, "ring_found", "pid=%u", r->pid);
	ring_died(r);
}

/* A control file of ours whose ring is gone. */
static void remove_orphan(const struct protond *p, const char *name, const uint8_t uuid[16])
{
	char ring[RING_NAME_BYTES_TEXT];
	struct stat st;

	(void)snprintf(ring, sizeof(ring), "%.32s.ring", name);
	if (ring_find(&p->rings, uuid) == NULL &&
		faccessat(p->d.rings_fd, ring, F_OK, AT_SYMLINK_NOFOLLOW) < 0 &&
		fstatat(p->d.rings_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		st.st_uid == geteuid())
		(void)unlinkat(p->d.rings_fd, name, 0);
}

/* What is done with a ring's file that no ring is known for. */
typedef void left_fn(struct protond *p, const char *file, const uint8_t uuid[16]);

static void scan_rings(struct protond *p, left_fn *on_left)
{
	const int fd = openat(p->d.rings_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	char file[RING_NAME_BYTES_TEXT];
	uint32_t left = SCAN_MAX;
	uint8_t uuid[16];
	struct dirent *e;
	bool is_ring;

	if (dir == NULL && fd >= 0)
		(void)close(fd);
	while (dir != NULL && left > 0 && (e = readdir(dir)) != NULL) {
		is_ring = ring_name_uuid(e->d_name, ".ring", uuid);
		if (!is_ring && !ring_name_uuid(e->d_name, ".ctl", uuid)) {
			left--;
			continue;
		}
		if (ring_find(&p->rings, uuid) != NULL)
			continue;
		left--;
		ring_name(uuid, file);
		if (is_ring)
			on_left(p, file, uuid);
		else
			remove_orphan(p, e->d_name, uuid);
	}
	if (dir != NULL)
		(void)closedir(dir);
}

/* Of our store, whole, and of that user. */
static bool is_ring_of(const struct protond *p, int dir, const char *name, unsigned long uid)
{
	struct ring_header h;
	uint8_t uuid[16];
	struct stat st;
	bool ours;
	int fd;

	if (!ring_name_uuid(name, ".ring", uuid))
		return false;
	fd = below_open(dir, name, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return false;
	ours = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == uid &&
	       reader_peek(fd, &h) == 0 && memcmp(h.store, p->d.store_uuid, 16) == 0;
	(void)close(fd);
	return ours;
}

/* False: a directory with something in it, or a mount. */
static bool empty_dir(const struct protond *p, const char *name)
{
	const int fd = below_open(p->d.rings_fd, name, O_RDONLY | O_DIRECTORY);
	const unsigned long uid = strtoul(name + 1, NULL, 10);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	uint32_t taken = 0, left = EMPTY_MAX;
	struct dirent *e;

	if (dir == NULL && fd >= 0)
		(void)close(fd);
	while (dir != NULL && left-- > 0 && (e = readdir(dir)) != NULL) {
		if (taken < SCAN_MAX && is_ring_of(p, fd, e->d_name, uid) &&
			renameat2(fd, e->d_name, p->d.rings_fd, e->d_name, RENAME_NOREPLACE) == 0)
			taken++;
		else
			(void)(unlinkat(fd, e->d_name, 0) < 0 &&
				unlinkat(fd, e->d_name, AT_REMOVEDIR));
	}
	if (dir != NULL)
		(void)closedir(dir);
	return unlinkat(p->d.rings_fd, name, AT_REMOVEDIR) == 0 || errno == ENOTDIR;
}

/* A protond before this one gave each user a directory below rings/, to make rings in. Those move
 * up, out of their user's reach, and are drained to their end; all else of it goes. */
static void take_dirs(struct protond *p)
{
	const int fd = openat(p->d.rings_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	uint32_t left = EMPTY_MAX;
	struct dirent *e;

	if (dir == NULL && fd >= 0)
		(void)close(fd);
	while (!p->d.private && dir != NULL && left-- > 0 && (e = readdir(dir)) != NULL) {
		if (e->d_name[0] == 'u' && strlen(e->d_name) < 12 && !empty_dir(p, e->d_name))
			log_line(LOG_WARN, "directory_left", "dir=%s/rings/%s next=\"remove it\"",
				p->d.runtime, e->d_name);
	}
	if (dir != NULL)
		(void)closedir(dir);
}

void spool_scan(struct protond *p)
{
	/* Whoever was stopped for long wakes to this before it has heard whose rings there are. */
	if (mono_ns() - p->d.started_mono_ns < GRACE_NS)
		return;
	intake_hear(p->d.intake);
	scan_rings(p, adopt_left);
}

/* Killed between the transaction that has a process's END and the removal of its files: to be
 * taken for a ring that nobody spoke for would count all that is in it once more. */
static void remove_ended(struct protond *p, const char *file, const uint8_t uuid[16])
{
	char path[RING_NAME_BYTES_TEXT + 8];

	if (!store_has_ended(p->d.store, uuid))
		return;
	(void)snprintf(path, sizeof(path), "%s.ring", file);
	below_unlink(p->d.rings_fd, path);
}

int spool_restore(struct protond *p, struct err *e)
{
	struct ring *r;
	bool more;
	int x = restore_rows(p, e);

	if (x == 0) {
		take_dirs(p);
		x = spool_journal(p, e);
	}
	if (x == 0 && kept_receive(&p->rings) < 0)
		x = err_set(e, -ENOMEM, "no memory to start");
	for (r = p->rings.first; r != NULL && x == 0; r = r->next) {
		if (r->state != RING_GONE)
			find_file(r);
		if (r->reader.lane != NULL && drain_tables_again(r, &more) == -ENOMEM)
			x = err_set(e, -ENOMEM, "no memory to start");
	}
	if (x == 0)
		x = replay(p, e);
	for (r = p->rings.first; r != NULL && x == 0; r = r->next) {
		if (r->reader.lane != NULL && ring_take_heads(r) < 0)
			x = err_set(e, -ENOMEM, "no memory to start");
		else
			take_up(r);
	}
	if (x == 0) {
		kept_leave(&p->rings);
		scan_rings(p, remove_ended);
	}
	p->entries.saw_session = true;
	return x == 0 ? commit_now(p, e) : x;
}
