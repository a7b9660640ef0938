/* SPDX-License-Identifier: MIT. rings.c: the rings that this daemon drains, from the first sight of
 * a file to its removal, and the control file beside each.
 *
 * Liveness is a pidfd, never a socket (a forked child may hold it) and never a header. The files of
 * an ended process go only after a transaction that holds its END: until then a crash starts over
 * with them.
 */
#include "loop.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "closer.h"
#include "message.h"
#include "record.h"
#include "rendezvous.h"

#define BEAT_NS 100000000u
#define EXIT_NS \
	100000000u /* so long a dead process may take to be reaped: its status is read then */
#define EXIT_STATUS 1u

/* linux/pidfd.h of 6.15; older headers lack it, and older kernels answer ENOTTY or without the bit.
 */
struct pidfd_exit {
	uint64_t mask, cgroup;
	uint32_t ids[11];
	int32_t exit_code;
};
_Static_assert(sizeof(struct pidfd_exit) == 64, "PIDFD_INFO_SIZE_VER0");
#define PIDFD_GET_EXIT _IOWR(0xff, 11, struct pidfd_exit)
#define PIDFD_EXIT_BIT (1u << 3)

struct ring *ring_find(const struct protond *p, const uint8_t uuid[16])
{
	struct ring *r;

	for (r = p->rings; r != NULL; r = r->next) {
		if (memcmp(r->uuid, uuid, 16) == 0)
			return r;
	}
	return NULL;
}

uint64_t rings_of(const struct protond *p, uint32_t uid)
{
	const struct ring *r;
	uint64_t n = 0;

	for (r = p->rings; r != NULL; r = r->next)
		n += r->uid == uid && r->state != RING_ENDED;
	return n;
}

struct ring *ring_add(struct protond *p, const uint8_t uuid[16])
{
	struct ring *r = calloc(1, sizeof(*r));

	if (r == NULL)
		return NULL;
	r->p = p;
	memcpy(r->uuid, uuid, 16);
	r->reader.fd = r->ctl_fd = r->pidfd = -1;
	r->gpu_mask = UINT32_MAX;
	r->joining = true; /* what is restored may be */
	r->next = p->rings;
	p->rings = r;
	p->n_rings++;
	return r;
}

int ring_take_heads(struct ring *r)
{
	const uint32_t n = r->n_heads < r->reader.h.n_lanes ? r->n_heads : r->reader.h.n_lanes;
	struct reader_lane *l;
	uint32_t i;

	if (reader_have(&r->reader, n) < 0)
		return -ENOMEM;
	for (i = 0; i < n; i++) {
		l = &r->reader.lane[i];
		l->head = l->tail = l->goal = l->first = l->scanned = r->head[i];
	}
	r->reader.n_seen = r->reader.n_seen > n ? r->reader.n_seen : n;
	return 0;
}

int ring_open(struct ring *r, int fd, const struct reader_expect *x, struct err *e)
{
	int n = reader_open(fd, x, &r->reader, e);

	if (n < 0)
		return n;
	n = ring_take_heads(r);
	if (n < 0) {
		free(r->reader.lane);
		r->reader = (struct reader){.fd = -1};
		return err_set(e, n, "no memory for a ring");
	}
	r->uid = x->uid;
	r->ns_pid = r->reader.h.pid;
	r->state = RING_LIVE;
	return 0;
}

/* --- the control file
 * ----------------------------------------------------------------------------- */

static void ctl_name(const struct ring *r, char ret[RING_NAME_BYTES_TEXT])
{
	size_t n = 0;
	int i;

	for (i = 0; i < 16; i++)
		n += (size_t)snprintf(ret + n, RING_NAME_BYTES_TEXT - n, "%02x", r->uuid[i]);
	(void)snprintf(ret + n, RING_NAME_BYTES_TEXT - n, ".ctl");
}

static bool ctl_write(int fd, const void *p, size_t n, uint64_t at)
{
	/* A pwrite of an aligned word stores it at once; pairs with the job's acquire of the same
	 * word. */
	return pwrite(fd, p, n, (off_t)at) == (ssize_t)n;
}

/* A file of a former life that the job has mapped already, or a new one. */
static int ctl_file(const struct ring *r, uint64_t bytes, bool *ret_new)
{
	char name[RING_NAME_BYTES_TEXT];
	struct stat st;
	int fd;

	*ret_new = false;
	ctl_name(r, name);
	fd = openat(r->p->d.rings_fd, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	if (fd >= 0) {
		if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
			st.st_nlink == 1 && (uint64_t)st.st_size == bytes)
			return fd;
		(void)close(fd);
		(void)unlinkat(r->p->d.rings_fd, name, 0);
	}
	fd = openat(
		r->p->d.rings_fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd < 0)
		return neg_errno();
	*ret_new = true;
	/* Backed at once: a later pwrite must not find the tmpfs full. */
	if (fchmod(fd, 0644) == 0 && ftruncate(fd, (off_t)bytes) == 0 &&
		fallocate(fd, 0, 0, (off_t)bytes) == 0)
		return fd;
	bytes = (uint64_t)neg_errno();
	(void)unlinkat(r->p->d.rings_fd, name, 0);
	(void)close(fd);
	return (int)(int64_t)bytes;
}

int ring_control_open(struct ring *r)
{
	struct ring_ctl c = {.magic = RING_CTL_MAGIC, .abi = RING_ABI};
	bool is_new;
	uint32_t i;
	int fd;

	if (r->ctl_fd >= 0)
		return 0;
	fd = ctl_file(r, ring_ctl_bytes(r->reader.h.n_lanes), &is_new);
	if (fd < 0)
		return fd;
	for (i = 0; i < r->reader.h.n_lanes; i++) {
		struct reader_lane *l = i < r->reader.cap ? &r->reader.lane[i] : NULL;
		const uint64_t head = l != NULL ? l->head : 0;

		if (is_new && head == 0)
			continue;
		if (!ctl_write(fd, &head, sizeof(head), sizeof(c) + 64ull * i))
			break;
		if (l != NULL)
			l->told = head;
	}
	r->want = fold_want(r->p->d.fold, r->uuid) & r->gpu_mask;
	atomic_init(&c.want, r->want);
	atomic_init(&c.beat_ns, mono_ns());
	/* Without the magic, then with it: nobody has it before it is whole, but for a job that
	 * mapped the same file in the daemon's former life, and that only sees equal or newer
	 * heads. */
	if (i < r->reader.h.n_lanes || !ctl_write(fd, (const char *)&c + 8, sizeof(c) - 8, 8) ||
		!ctl_write(fd, &c, 8, 0)) {
		i = (uint32_t)errno;
		(void)close(fd);
		return i != 0 ? -(int)i : -EIO;
	}
	r->ctl_fd = fd;
	return 0;
}

int ring_control_fd(const struct ring *r)
{
	char path[40];
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", r->ctl_fd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd >= 0 ? fd : neg_errno();
}

void ring_release(struct ring *r)
{
	const uint64_t now = mono_ns();
	uint32_t i;

	if (r->ctl_fd < 0)
		return;
	for (i = 0; i < r->reader.n_seen; i++) {
		struct reader_lane *l = &r->reader.lane[i];

		if (l->told != l->head && !l->quarantined &&
			ctl_write(r->ctl_fd, &l->head, sizeof(l->head),
				sizeof(struct ring_ctl) + 64ull * i))
			l->told = l->head;
	}
	if (now - r->beat_ns >= BEAT_NS &&
		ctl_write(r->ctl_fd, &now, sizeof(now), offsetof(struct ring_ctl, beat_ns)))
		r->beat_ns = now;
}

bool ring_is_recording(const struct ring *r)
{
	return r->state == RING_LIVE && (r->want & ~(uint32_t)WANT_GPU_PAUSE) != 0;
}

bool ring_wakes(const struct ring *r)
{
	return r->conn != NULL && r->ctl_fd >= 0 && (r->reader.h.abi & 0xffff) >= RING_ABI_RINGS;
}

bool ring_nap(struct ring *r, uint32_t nap)
{
	if (!ctl_write(r->ctl_fd, &nap, sizeof(nap), offsetof(struct ring_ctl, nap)))
		return false;
	r->nap = nap;
	return true;
}

void ring_want(struct ring *r)
{
	uint32_t want;

	if (r->state != RING_LIVE || !r->adopted)
		return;
	want = (fold_want(r->p->d.fold, r->uuid) | r->gpu_more) & r->gpu_mask;
	if (r->paused)
		want = (want & ~(uint32_t)(WANT_GPU | WANT_GPU_ARMED)) | WANT_GPU_PAUSE;
	if (want != r->want && r->ctl_fd >= 0 &&
		ctl_write(r->ctl_fd, &want, sizeof(want), offsetof(struct ring_ctl, want)))
		r->want = want;
	if (r->conn != NULL)
		conn_want(r->conn, want);
}

/* --- adoption
 * -------------------------------------------------------------------------------------- */

static void fill_process(const struct ring *r, const struct ring_origin *o, struct j_process *ret)
{
	const struct ring_header *h = &r->reader.h;

	*ret = (struct j_process){
		.pid = r->pid,
		.ns_pid = h->pid,
		.uid = r->uid,
		.clock = h->clock,
		.tsc_khz = h->tsc_khz,
		.n_lanes = h->n_lanes,
		.lane_bytes = h->lane_bytes,
		.flags = o->flags,
		.pid_start = r->pid_start,
		.created_clock = h->created_clock,
		.created_monotonic_ns = h->created_monotonic_ns,
		.created_realtime_ns = h->created_realtime_ns,
	};
	memcpy(ret->boot_id, h->boot_id, 16);
	memcpy(ret->parent, h->parent, 16);
	if (o->token != NULL)
		memcpy(ret->token, o->token, 16);
	(void)snprintf(
		ret->version, sizeof(ret->version), "%s", o->version != NULL ? o->version : "");
}

int ring_adopt(struct ring *r, const struct ring_origin *o)
{
	struct {
		struct j_process j;
		char info[RING_INFO_BYTES];
	} e;
	const char *command, *replay;
	int x;

	if (r->adopted)
		return 0;
	fill_process(r, o, &e.j);
	x = reader_info(&r->reader, e.info, &e.j.info_bytes);
	if (x < 0)
		return x;
	replay = message_info(e.info, e.j.info_bytes, "replay");
	e.j.replay = replay != NULL && replay[0] == '1';
	x = entry_put(r->p, J_PROCESS, r->uuid, &e, (uint32_t)sizeof(e.j) + e.j.info_bytes);
	if (x < 0)
		return x;
	r->adopted = true;
	protond_anchor(r->p, 0);
	command = message_info(e.info, e.j.info_bytes, "command");
	session_auto(r, command != NULL ? command : "");
	return 0;
}

/* --- life and death
 * ---------------------------------------------------------------------------------- */

/* Fields of /proc/PID/stat, from the third on: `at` is behind the name of the command, which may
 * hold anything. NULL: no such process, or no such field. */
static const char *stat_read(uint32_t pid, char buf[1024])
{
	char path[40];
	ssize_t n;
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	n = read(fd, buf, 1023);
	(void)close(fd);
	buf[n > 0 ? n : 0] = '\0';
	return strrchr(buf, ')');
}

static const char *stat_field(const char *at, int number)
{
	int field;

	for (field = 2; at != NULL && field < number; field++) {
		at = strchr(at, ' ');
		at = at != NULL ? at + 1 : NULL;
	}
	return at;
}

uint64_t process_start(uint32_t pid)
{
	char buf[1024];
	const char *s = stat_field(stat_read(pid, buf), 22);

	return s != NULL ? strtoull(s, NULL, 10) : 0;
}

/* How a dead process ended that its parent has not waited for yet. -ENOENT: nobody's to tell. */
static int zombie_status(uint32_t pid, uint64_t start, int *ret)
{
	char buf[1024];
	const char *at = stat_read(pid, buf), *state = stat_field(at, 3),
		   *began = stat_field(at, 22), *code = stat_field(at, 52);

	if (state == NULL || *state != 'Z' || began == NULL || code == NULL ||
		strtoull(began, NULL, 10) != start)
		return -ENOENT;
	*ret = (int)strtol(code, NULL, 10);
	return 0;
}

static void ring_free(struct ring *r)
{
	struct ring **at = &r->p->rings;

	while (*at != r)
		at = &(*at)->next;
	*at = r->next;
	r->p->n_rings--;
	if (r->reader.lane != NULL) { /* its pages go with it, which takes as long as it is large */
		closer_take(r->p->closer, r->reader.fd);
		r->reader.fd = -1;
	}
	reader_close(&r->reader);
	if (r->ctl_fd >= 0)
		(void)close(r->ctl_fd);
	if (r->pidfd >= 0)
		(void)close(r->pidfd);
	free(r->head);
	free(r);
}

static void ring_on_closed(uv_handle_t *h)
{
	ring_free(container_of(h, struct ring, pid_poll));
}

void ring_drop(struct ring *r)
{
	if (r->closing)
		return;
	r->closing = true;
	if (r->conn != NULL)
		conn_ring_gone(r->conn);
	r->conn = NULL;
	if (r->polling)
		uv_close((uv_handle_t *)&r->pid_poll, ring_on_closed);
	else
		ring_free(r);
}

void ring_died(struct ring *r)
{
	if (r->state != RING_LIVE && r->state != RING_WAITING)
		return;
	r->state = RING_GONE;
	r->gone_ns = mono_ns();
	protond_hurry(r->p);
}

static void ring_on_exit(uv_poll_t *h, int status, int events)
{
	(void)status;
	(void)events;
	(void)uv_poll_stop(h);
	ring_died(container_of(h, struct ring, pid_poll));
}

bool ring_watch(struct ring *r, int pidfd)
{
	if (r->pidfd >= 0) {
		if (pidfd >= 0)
			(void)close(pidfd);
		return true;
	}
	if (pidfd < 0 && r->pid != 0) {
		pidfd = (int)syscall(SYS_pidfd_open, (pid_t)r->pid, 0);
		/* After the open: the number cannot have been given to another since. */
		if (pidfd >= 0 && r->pid_start != 0 && process_start(r->pid) != r->pid_start) {
			(void)close(pidfd);
			pidfd = -1;
		}
	}
	if (pidfd < 0)
		return false;
	r->pidfd = pidfd;
	if (uv_poll_init(&r->p->d.loop, &r->pid_poll, pidfd) < 0)
		return true; /* the sweep asks for the start time instead */
	r->polling = true;
	(void)uv_poll_start(&r->pid_poll, UV_READABLE, ring_on_exit);
	return true;
}

/* The kernel's word on how a process ended, where it has one for a process that is not our child.
 * -EAGAIN: perhaps later; -ENOTTY: never. */
static int exit_status(const struct ring *r, int *ret)
{
	struct pidfd_exit x = {.mask = PIDFD_EXIT_BIT};

	if (r->pidfd < 0)
		return -ENOTTY;
	if (ioctl(r->pidfd, PIDFD_GET_EXIT, &x) < 0)
		return errno == ESRCH ? -EAGAIN : -ENOTTY;
	if ((x.mask & PIDFD_EXIT_BIT) == 0)
		return -EAGAIN;
	*ret = x.exit_code;
	return 0;
}

/* Without that word: a process that left by its exit handler gave its main thread's lane back. One
 * that did not and was inside a scope was killed (or called _exit there: the same to us). */
static bool left_by_exit(const struct ring *r)
{
	bool main_exited = false, open = false;
	struct j_now now;
	uint32_t i;

	for (i = 0; i < r->reader.n_seen; i++) {
		const struct reader_lane *l = &r->reader.lane[i];

		if (l->state == LANE_EXITED && l->tid == r->ns_pid)
			main_exited = true;
		if (l->state == LANE_LIVE && reader_now(&r->reader, i, &now, 1) > 0)
			open = true;
	}
	return main_exited || !open;
}

/* -EAGAIN: the kernel will say in a moment. */
static int how_it_ended(const struct ring *r, struct j_end *ret)
{
	int x;

	*ret = (struct j_end){.status = -1};
	x = exit_status(r, &ret->status);
	if (x == -EAGAIN && zombie_status(r->pid, r->pid_start, &ret->status) == 0)
		x = 0;
	if (x == -EAGAIN && mono_ns() - r->gone_ns < EXIT_NS)
		return x;
	if (x == 0)
		ret->reason = (ret->status & 0x7f) == 0 ? END_EXITED : END_KILLED;
	else if (r->reader.lane == NULL || r->unreadable)
		ret->reason = END_LOST;
	else
		ret->reason = left_by_exit(r) ? END_EXITED : END_KILLED;
	return 0;
}

/* All that the dead process left, a tick's worth at a time. -EAGAIN: there was something, so look
 * again. */
static int drain_rest(struct ring *r)
{
	bool more = false;
	int64_t n;
	uint32_t i;

	/* As often as a lane that breaks the laws has tries. */
	for (i = 0; i < READER_BAD_TICKS && !r->unreadable; i++) {
		n = drain_ring(r, DRAIN_TICK, &more);
		if (n == -ENOSPC || n == -ENOMEM)
			return (int)n;
		if (n > 0 || (n == 0 && more))
			return -EAGAIN;
		if (n < 0)
			r->unreadable = true;
	}
	if (!r->unreadable && drain_tables(r, &more, mono_ns() + r->p->drain_ns) == 0 && more)
		return -EAGAIN;
	return 0;
}

/* Called in each tick until END is in the journal; nothing is given up before. */
void ring_gone(struct ring *r)
{
	const uint64_t deadline = mono_ns() + r->p->drain_ns;
	struct fold_process did = {0};
	struct j_end end;

	if (r->reader.lane != NULL && drain_rest(r) < 0)
		return;
	while (fold_has_many(r->p->d.fold, r->uuid)) {
		if (entry_put(r->p, J_LEAVE, r->uuid, "", 0) < 0 || mono_ns() >= deadline)
			return;
	}
	if (how_it_ended(r, &end) < 0)
		return;
	/* Once: its sessions may take some ticks to end. */
	if (!r->noted && r->reader.lane != NULL && !r->unreadable &&
		(drain_now_block(r) == -ENOSPC || drain_counts(r) == -ENOSPC))
		return;
	r->noted = true;
	if (!finalize_owner_gone(r->p, r->uuid))
		return;
	if (entry_put(r->p, J_END, r->uuid, &end, sizeof(end)) < 0)
		return;
	(void)fold_get_process(r->p->d.fold, r->uuid, &did);
	log_line(did.drops > 0 ? LOG_WARN : LOG_INFO, "job_ended",
		"process=%lld pid=%u reason=%u status=%d events=%llu dropped=%llu",
		(long long)did.id, r->pid, end.reason, end.status, (unsigned long long)did.events,
		(unsigned long long)did.drops);
	r->state = RING_ENDED;
	r->end_position = 0; /* known after the flush */
	r->p->saw_session = true;
}

/* --- after the store
 * ---------------------------------------------------------------------------------- */

static void remove_files(const struct ring *r)
{
	char name[RING_NAME_BYTES_TEXT];
	char ring[RING_NAME_BYTES_TEXT + 8];

	ctl_name(r, name);
	(void)unlinkat(r->p->d.rings_fd, name, 0);
	if (r->file[0] == '\0')
		return;
	(void)snprintf(ring, sizeof(ring), "%s.ring", r->file);
	(void)unlinkat(r->p->d.rings_fd, ring, 0);
}

void rings_stored(struct protond *p, uint64_t position)
{
	struct ring *r, *next;

	for (r = p->rings; r != NULL; r = next) {
		next = r->next;
		if (r->state != RING_ENDED || r->end_position == 0 || r->end_position > position ||
			r->closing)
			continue;
		remove_files(r);
		if (!kept_let_go(r))
			ring_drop(r);
	}
}

void rings_free(struct protond *p)
{
	struct ring *r, *next;

	for (r = p->rings; r != NULL; r = next) {
		next = r->next;
		ring_drop(r);
	}
}
