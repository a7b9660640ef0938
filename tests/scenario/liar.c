/* SPDX-License-Identifier: MIT. liar.c: a job that lies. It meets protond as a job does, then
 * writes what it likes into its ring, does what it likes to the ring's file, or says what it likes
 * on agent.sock.
 *
 * Usage: liar list; liar KIND SEED ROUNDS, with PROTOND_RUNTIME_DIR set. A round is one lie, after
 * which it waits until the daemon has looked. In every other round of a kind that has a ring, the
 * lie is told by a thread, at full speed, while the daemon looks. It prints how often it met the
 * daemon, how often it was sent away, and how many rings its children had at once, and ends by exit
 * or by SIGKILL. Exit status 2: usage; 3: no daemon is there; 4: the daemon does not answer.
 */
#include "liar_ring.h"

/* --- lies about a file --- */

static void lie_truncate(struct liar *l)
{
	const uint64_t to[] = {0, RING_PAGE, l->at.lanes, l->at.data, l->at.file_bytes - 1,
		below(l->at.file_bytes), l->at.file_bytes, l->at.file_bytes};

	lie_records(l);
	(void)!ftruncate(l->fd, (off_t)to[below(COUNT(to))]);
}

static void lie_grow(struct liar *l)
{
	lie_records(l);
	(void)!ftruncate(l->fd, one_in(2) ? 1ll << 40 : (off_t)l->at.file_bytes + 1);
}

static void lie_hole(struct liar *l)
{
	lie_records(l);
	(void)!fallocate(l->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		(off_t)below(l->at.file_bytes), (off_t)(1 + below(l->at.file_bytes)));
	(void)fcntl(l->fd, F_ADD_SEALS, one_in(2) ? F_SEAL_GROW : F_SEAL_FUTURE_WRITE);
}

/* Another job's ring; false: there is none with a name. */
static bool find_other(const struct liar *l, char ret[800])
{
	DIR *dir = opendir(l->w.rings);
	const struct dirent *e;
	bool found = false;

	while (dir != NULL && !found && (e = readdir(dir)) != NULL) {
		(void)snprintf(ret, 800, "%s/%s", l->w.rings, e->d_name);
		found = e->d_type == DT_REG && strstr(e->d_name, ".ring") != NULL &&
			strcmp(ret, l->file) != 0;
	}
	if (dir != NULL)
		(void)closedir(dir);
	return found;
}

/* Something under this name that is no ring. */
static void make_odd(const struct liar *l, const char *path)
{
	char other[800];
	int fd = -1;

	switch (below(7)) {
	case 0:
		(void)!mkfifo(path, 0666);
		break;
	case 1:
		(void)!symlink("/etc/passwd", path);
		break;
	case 2:
		if (find_other(l, other))
			(void)!symlink(other, path);
		break;
	case 3:
		(void)!mkdir(path, 0700);
		break;
	case 4:
		(void)!mknod(path, S_IFCHR | 0666, makedev(1, 5)); /* /dev/zero, for root */
		break;
	case 5:
		if (find_other(l, other))
			(void)!link(other, path);
		break;
	default:
		fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (fd >= 0)
			(void)!ftruncate(fd, 1ll << 40);
	}
	if (fd >= 0)
		(void)close(fd);
}

static void lie_replace(struct liar *l)
{
	lie_records(l);
	if (l->file[0] == '\0')
		return;
	(void)unlink(l->file);
	make_odd(l, l->file);
}

/* Under names of rings that were never offered: found by the daemon's own look. */
static void lie_litter(struct liar *l)
{
	char path[600];

	for (int i = 0; i < 50; i++) {
		(void)snprintf(path, sizeof(path), "%s/%016llx%016llx.ring", l->w.rings,
			(unsigned long long)rnd(), (unsigned long long)rnd());
		make_odd(l, path);
	}
}

static int odd_file(const struct liar *l)
{
	static const char *const path[] = {"/etc/passwd", "/dev/zero", "/dev/null", "/dev/full",
		"/proc/self/mem", "/proc/self/environ", "/proc/kmsg", "/"};
	char other[800];
	int two[2] = {-1, -1}, fd;

	switch (below(8)) {
	case 0:
		(void)!pipe2(two, O_CLOEXEC);
		break;
	case 1:
		(void)!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, two);
		break;
	case 2:
		return one_in(2) ? epoll_create1(EPOLL_CLOEXEC) : eventfd(0, EFD_CLOEXEC);
	case 3:
		return find_other(l, other) ? open(other, O_RDONLY | O_NONBLOCK | O_CLOEXEC) : -1;
	case 4:
		return open(path[below(COUNT(path))],
			O_CLOEXEC | O_NONBLOCK | (one_in(3) ? O_PATH : O_RDONLY));
	case 5:
		return open(l->w.rings, O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
	default:
		fd = memfd_create("protond-ring", MFD_CLOEXEC);
		(void)!pwrite(fd, &l->h, sizeof(l->h), 0);
		(void)!ftruncate(fd, (off_t)(odd() >> 1));
		return fd;
	}
	if (one_in(2) && two[0] >= 0) {
		fd = two[0];
		two[0] = two[1];
		two[1] = fd;
	}
	if (two[1] >= 0)
		(void)close(two[1]);
	return two[0];
}

static void lie_offer(struct liar *l)
{
	struct rv_ctl ctl = {0};
	const int fd = odd_file(l);
	int got = -1;

	shape(&l->h);
	memcpy(l->h.store, l->w.store, 16);
	(void)offer(l, &fd, fd >= 0, &ctl, &got);
	if (got >= 0)
		(void)close(got);
	if (fd >= 0)
		(void)close(fd);
}

/* Another job's ring as one's own, by its file or by its uuid. */
static void lie_borrow(struct liar *l)
{
	struct ring_header h = {0};
	struct rv_ctl ctl;
	char other[800];
	int mine, fd = find_other(l, other) ? open(other, O_RDONLY | O_NONBLOCK | O_CLOEXEC) : -1,
		  got = -1;

	if (fd < 0)
		return;
	(void)!pread(fd, &h, sizeof(h), 0);
	mine = memfd_create("protond-ring", MFD_CLOEXEC);
	(void)!ftruncate(mine, (off_t)h.file_bytes);
	l->h = h;
	h.pid_start = one_in(2) ? pid_start : h.pid_start;
	(void)!pwrite(mine, &h, sizeof(h), 0);
	if (one_in(4))
		fill(l->h.uuid, 16);
	(void)offer(l, one_in(2) ? &fd : &mine, 1, &ctl, &got);
	if (got >= 0)
		(void)close(got);
	(void)close(fd);
	(void)close(mine);
}

/* A TCP socket with unsent bytes, whose last close() waits for them. */
static int lingering(int listener)
{
	const struct linger long_time = {1, 3600};
	struct sockaddr_in a = {0};
	socklen_t n = sizeof(a);
	static char bytes[65536];
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), little = 4096;

	(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &little, sizeof(little));
	if (getsockname(listener, (struct sockaddr *)&a, &n) < 0 ||
		connect(fd, (const struct sockaddr *)&a, sizeof(a)) < 0)
		return fd; /* no loopback here: it does not linger */
	while (send(fd, bytes, sizeof(bytes), MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
		;
	(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &long_time, sizeof(long_time));
	return fd;
}

/* Offered as a ring, as surplus, and in messages that the daemon will not read any more. By a
 * child: where the daemon was quicker, it is the child whose close() waits, and a signal ends that.
 */
static void linger_child(const struct liar *l, int listener)
{
	struct rv_ring m = {.named = 0};
	uint64_t junk = 0;
	int fds[24][4];
	size_t n, i, k;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (k = 0; k < COUNT(fds); k++)
		for (i = 0; i < COUNT(fds[k]); i++)
			fds[k][i] = lingering(listener);
	for (k = 0; k < COUNT(fds); k++) {
		n = one_in(2) ? 1 : COUNT(fds[k]);
		if (one_in(48)) /* it hangs up, and what comes behind this is not read */
			(void)send_raw(l->sock, &junk, below(2) * sizeof(junk), NULL, 0);
		(void)say(l->sock, &m, sizeof(m), one_in(2) ? RV_RING : RV_PING, fds[k], n);
		for (i = 0; i < n; i++)
			(void)close(fds[k][i]);
	}
	leave(0);
}

static void lie_linger(struct liar *l)
{
	const struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct pollfd said = {.fd = -1, .events = POLLIN};
	const uint64_t other = rnd();
	const int little = 4096;
	const int noise = dial();
	struct rv_head ping;
	int two[2], pings = 0;
	pid_t pid;

	(void)setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &little, sizeof(little));
	if (bind(listener, (const struct sockaddr *)&a, sizeof(a)) < 0 ||
		listen(listener, 128) < 0 || pipe2(two, O_CLOEXEC) < 0)
		leave(3);
	pid = fork();
	if (pid == 0) {
		seed = other * 0x9e3779b97f4a7c15ull | 1;
		to_parent = two[1];
		linger_child(l, listener);
	}
	/* Meanwhile the daemon has other things to read: so the child closes first. */
	for (said.fd = two[0]; pings < 64 * FLOOD && poll(&said, 1, 0) == 0; pings++)
		(void)say(noise, &ping, sizeof(ping), RV_PING, NULL, 0);
	(void)nudge(l); /* the other ends stay open as long, and read nothing */
	(void)kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	(void)close(noise);
	(void)close(listener);
	(void)close(two[0]);
	(void)close(two[1]);
}

/* --- lies on the socket --- */

static void lie_attach(struct liar *l)
{
	uint8_t m[RV_MESSAGE_MAX];
	struct rv_attach *a = (void *)m;
	const size_t bytes = sizeof(*a) + below(sizeof(m) - sizeof(*a) + 1);

	fill(m, sizeof(m));
	a->abi = one_in(2) ? RING_ABI : (uint32_t)odd();
	l->sock = dial();
	(void)say(l->sock, m, one_in(4) ? 8 + below(200) : bytes, RV_ATTACH, NULL, 0);
	(void)nudge(l);
}

static void lie_junk(struct liar *l)
{
	uint8_t m[RV_MESSAGE_MAX + 512];
	struct rv_head h = {RV_MAGIC, (uint16_t)below(14), 0};
	const size_t bytes = one_in(4) ? below(16) : below(sizeof(m));

	fill(m, sizeof(m));
	h.bytes = (uint16_t)(one_in(2) ? bytes : odd());
	if (!one_in(4) && bytes >= sizeof(h))
		memcpy(m, &h, sizeof(h));
	(void)send_raw(l->sock, m, bytes, NULL, 0);
}

static void lie_flood(struct liar *l)
{
	static const struct {
		uint16_t type, bytes;
	} kind[] = {{RV_PING, sizeof(struct rv_head)}, {RV_PONG, sizeof(struct rv_head)},
		{RV_STATE, sizeof(struct rv_state)}, {RV_EXPORT, sizeof(struct rv_export)},
		{RV_ATTACH, sizeof(struct rv_attach)}};
	const uint64_t k = below(COUNT(kind));
	struct rv_state m;

	fill(&m, sizeof(m));
	for (int i = 0; i < FLOOD; i++)
		if (!say(l->sock, &m, kind[k].bytes, kind[k].type, NULL, 0))
			return;
}

/* Asked for and never received. */
static void lie_deaf(struct liar *l)
{
	struct rv_export x = {.session = (uint32_t)below(2), .format = "hatchet"};
	struct rv_head ping;

	for (int i = 0; i < FLOOD; i++)
		if (!say(l->sock, &x, sizeof(x), RV_EXPORT, NULL, 0) ||
			!say(l->sock, &ping, sizeof(ping), RV_PING, NULL, 0))
			return;
}

static void lie_hundreds(struct liar *l)
{
	struct rv_ring m = {.named = 0};
	int fds[FDS];

	for (int i = 0; i < FDS; i++)
		fds[i] = l->sock;
	if (!one_in(3))
		fds[0] = odd_file(l);
	for (int i = 0; i < 20; i++)
		(void)say(l->sock, &m, sizeof(m), one_in(2) ? RV_RING : RV_PING, fds,
			fds[0] < 0 ? 0 : 1 + below(FDS));
	if (fds[0] != l->sock && fds[0] >= 0)
		(void)close(fds[0]);
}

static void lie_half(struct liar *l)
{
	struct rv_head m;

	(void)say(l->sock, &m, sizeof(m), RV_PING, NULL, 0);
	(void)shutdown(l->sock, (int)below(3));
	(void)say(l->sock, &m, sizeof(m), RV_PING, NULL, 0);
}

/* Silent, attached, or waiting for the answer, all at once. */
static void lie_crowd(struct liar *l)
{
	static int sock[CROWD];
	struct rv_attach a = {.abi = RING_ABI, .version = "crowd"};

	for (int i = 0; i < CROWD; i++) {
		sock[i] = dial();
		if (one_in(2))
			(void)say(sock[i], &a, sizeof(a), RV_ATTACH, NULL, 0);
	}
	for (int i = 0; i < CROWD; i++)
		(void)close(sock[i]);
	l->sock = dial();
}

/* Processes that hand in a ring, hang up and live on. */
static void hoard_one(uint64_t number, const int hold[2])
{
	struct liar l = {.sock = -1, .fd = -1};
	char byte, taken;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)close(hold[1]);
	seed = number * 0x9e3779b97f4a7c15ull | 1; /* another sequence */
	who_am_i();
	taken = attach(&l) && make_ring(&l);
	part(&l);
	(void)!write(to_parent, &taken, 1);
	to_parent = -1;
	leave(read(hold[0], &byte, 1) == 0 ? 0 : 1);
}

static void lie_hoard(struct liar *l)
{
	int said[2], hold[2], alive = 0;
	unsigned taken = 0;
	char byte;

	l->sock = dial();
	if (pipe2(said, O_CLOEXEC) < 0 || pipe2(hold, O_CLOEXEC) < 0)
		leave(3);
	for (int i = 0; i < HOARD; i++) {
		const uint64_t number = rnd();
		const pid_t pid = fork();

		to_parent = pid == 0 ? said[1] : -1;
		if (pid == 0)
			hoard_one(number, hold);
		alive += pid > 0;
	}
	for (int i = 0; i < alive; i++)
		taken += read(said[0], &byte, 1) == 1 && byte != 0;
	held = taken > held ? taken : held;
	for (int i = 0; i < 2; i++) {
		(void)close(said[i]);
		(void)close(hold[i]);
	}
	while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
		;
}

/* --- all of them --- */

enum meets { ALONE, ATTACHED, RING, NEW_RING }; /* NEW_RING: another one for each round */

typedef void lie_fn(struct liar *l);

/* clang-format off */
#define LIES(X) /* kind  how it meets the daemon */                                              \
	X(header, RING) X(counts, RING) X(tails, RING) X(lanes, RING) X(torn, RING)              \
	X(records, RING) X(times, RING) X(metrics, RING) X(sessions, RING) X(gpu, RING) X(memory, RING) \
	X(late, RING) X(leave, RING) X(paths, RING) X(names, RING) X(now, RING)                  \
	X(scribble, NEW_RING) X(firehose, RING) X(exports, RING) X(full, NEW_RING)               \
	X(truncate, NEW_RING) X(grow, NEW_RING) X(hole, NEW_RING) X(replace, NEW_RING)           \
	X(litter, ATTACHED) X(offer, ATTACHED) X(borrow, ATTACHED) X(linger, ATTACHED)           \
	X(attach, ALONE) X(junk, ATTACHED) X(flood, ATTACHED) X(deaf, ATTACHED)                  \
	X(hundreds, ATTACHED) X(half, ATTACHED) X(crowd, ALONE) X(hoard, ALONE)
/* clang-format on */

static const struct lie {
	const char *name;
	lie_fn *tell;
	enum meets meets;
} lies[] = {
#define X(kind, how) {#kind, lie_##kind, how},
	LIES(X)
#undef X
};

struct race {
	lie_fn *tell;
	struct liar l;
	uint64_t seed;
};

static void *race(void *arg)
{
	struct race *r = arg;

	seed = r->seed;
	racer = true;
	while (racing)
		r->tell(&r->l);
	return NULL;
}

/* Told by a thread, over and over, while the daemon looks a few times. */
static bool at_full_speed(const struct lie *lie, struct liar *l)
{
	struct race r = {lie->tell, *l, rnd() | 1};
	pthread_t id;
	bool ok = true;

	racing = true;
	if (pthread_create(&id, NULL, race, &r) != 0)
		leave(3);
	for (int i = 0; i < 4 && ok; i++)
		ok = nudge(l);
	racing = false;
	(void)pthread_join(id, NULL);
	l->session = r.l.session;
	return ok;
}

static bool meet(const struct lie *lie, struct liar *l)
{
	const bool ok = lie->meets == ALONE || (attach(l) && (lie->meets < RING || make_ring(l)));

	*(ok ? &met : &refused) += 1;
	return ok;
}

static void tell_round(const struct lie *lie, struct liar *l, unsigned round)
{
	if (l->sock < 0 && !meet(lie, l)) {
		part(l);
		return;
	}
	if (lie->meets >= RING && round % 2 != 0) {
		if (at_full_speed(lie, l) && lie->meets == RING)
			return;
	} else {
		lie->tell(l);
		if (nudge(l) && (lie->meets == RING || lie->meets == ATTACHED))
			return;
	}
	part(l); /* the daemon hung up, or the next round begins anew */
}

int main(int argc, char **argv)
{
	const struct sigaction bus = {.sa_sigaction = on_bus, .sa_flags = SA_SIGINFO};
	const char *dir = getenv("PROTOND_RUNTIME_DIR");
	struct liar l = {.sock = -1, .fd = -1};
	const struct lie *lie = NULL;
	struct rlimit files;
	size_t i;

	for (i = 0; i < COUNT(lies); i++) {
		if (argc == 2 && strcmp(argv[1], "list") == 0)
			(void)puts(lies[i].name);
		else if (argc == 4 && strcmp(argv[1], lies[i].name) == 0)
			lie = &lies[i];
	}
	if (lie == NULL || dir == NULL)
		return argc == 2 ? 0 : 2;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)sigaction(SIGBUS, &bus, NULL);
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &files);
	}
	(void)snprintf(sock_path, sizeof(sock_path), "%s/" RV_AGENT_SOCK, dir);
	seed = (strtoull(argv[2], NULL, 10) + 1) * 0x9e3779b97f4a7c15ull + (uint64_t)(lie - lies);
	who_am_i();
	for (i = 0; i < strtoul(argv[3], NULL, 10); i++)
		tell_round(lie, &l, (unsigned)i);
	(void)printf("%u %u %u\n", met, refused, held);
	(void)fflush(stdout);
	if (one_in(3))
		(void)raise(SIGKILL);
	return 0;
}
