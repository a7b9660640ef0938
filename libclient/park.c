/* SPDX-License-Identifier: MIT. park.c: the parked thread: it waits, without timers, for a daemon,
 * for the daemon's messages, or for the bell that an API call rings.
 *
 * While there is no connection it watches, with inotify, each directory in which an agent.sock may
 * come to be, or the parent of one that does not exist. A socket that is there and refuses is one
 * that is about to listen, or a dead daemon's: it is tried again a few times, then left until it is
 * made anew. Behind a dead one of the system's the user's own daemon is found, unless a ring is the
 * other's already.
 *
 * The application may close descriptors that it does not know: each is looked at before it is used.
 * A program that closes the bell wakes the thread, which then opens nothing, lest it take a number
 * that the program is just about to use: it sleeps until somebody asks for something.
 */
#include "park.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon_link.h"
#include "end.h"
#include "futex.h"
#include "keep.h"

#define RETRIES    10    /* of a socket that refuses: 1 ms, 2 ms, ... 512 ms */
#define POLL_MS    30000 /* only where inotify cannot be had */
#define SILENT_MS  10000 /* whether the main thread ended without a word */
#define LOOK_MS    1000  /* while something is recorded, or the main thread has ended */
#define LASTED_MS  1000  /* a connection that held as long was a good one */
#define STACK_SIZE (512u << 10)
#define BELL_LEAST 60 /* the end that is polled, if there may be as many */

static struct {
	int inotify;           /* -1: none */
	int wd[PLACE_MAX + 1]; /* its watches */
	unsigned n_wd;
	int retry;     /* how often the socket has refused */
	bool watching; /* for a socket */
	bool try;      /* something happened: try to connect */
	bool named;    /* there is one candidate, with a name of any kind */
} park = {.inotify = -1};

/* --- the bell --------------------------------------------------------------------------------- */

static bool is_sock(int fd, ino_t ino)
{
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode) &&
	       (ino == 0 || st.st_ino == ino);
}

/* A parent's, or of a thread that could not be started. */
static void bell_close(void)
{
	if (is_sock(pd.bell.wr, pd.bell.ino))
		close(pd.bell.wr);
	if (is_sock(pd.bell.rd, pd.bell.rd_ino))
		close(pd.bell.rd);
	pd.bell = (struct pd_bell){-1, -1, 0, 0};
}

/* poll() looks a number up anew whenever it is woken: this one is not at once another file's when
 * the application has closed all and opens its own. Below 64 the table of descriptors need not
 * grow. */
static int bell_far(int fd)
{
	const int kept = fd_keep(fd), far = fcntl(kept, F_DUPFD_CLOEXEC, BELL_LEAST);

	if (kept < 0 || far < 0)
		return kept;
	close(kept);
	return far;
}

int pd_bell_make(void)
{
	struct stat rd, wr;
	int fd[2], r;

	bell_close();
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fd) < 0)
		return pd_neg_errno();
	fd[0] = bell_far(fd[0]);
	fd[1] = fd_keep(fd[1]);
	if (fstat(fd[0], &rd) < 0 || fstat(fd[1], &wr) < 0) {
		r = pd_neg_errno();
		close(fd[0]);
		close(fd[1]);
		return r;
	}
	pd.bell = (struct pd_bell){fd[0], fd[1], wr.st_ino, rd.st_ino};
	return 0;
}

void pd_ring(void)
{
	const int e = errno;

	if (is_sock(pd.bell.wr, pd.bell.ino)) {
		(void)send(pd.bell.wr, "!", 1,
			MSG_NOSIGNAL | MSG_DONTWAIT); /* full: it rings already */
	} else { /* the application closed it: whatever this is for, it is asked */
		atomic_fetch_add_explicit(&pd.asked, 1, memory_order_release);
		pd_wake(&pd.asked);
	}
	errno = e;
}

static bool bell_is_there(void)
{
	return is_sock(pd.bell.rd, pd.bell.rd_ino) && is_sock(pd.bell.wr, pd.bell.ino);
}

static void bell_hush(void)
{
	char buf[16];

	while (recv(pd.bell.rd, buf, sizeof(buf), MSG_DONTWAIT) > 0)
		;
}

/* --- watching --------------------------------------------------------------------------------- */

static bool is_inotify(int fd)
{
	char link[64], to[32];
	ssize_t n;

	if (fd < 0)
		return false;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, to, sizeof(to));
	return n == 18 && memcmp(to, "anon_inode:inotify", 18) == 0;
}

/* The descriptor stays: the kernel lets whoever closes an inotify wait, 10 ms on a quiet machine
 * and many seconds on a busy one, and the daemon's messages do not. */
static void unwatch(void)
{
	char buf[4096];

	park.watching = false;
	if (is_inotify(park.inotify)) {
		while (park.n_wd > 0)
			(void)inotify_rm_watch(park.inotify, park.wd[--park.n_wd]);
		while (read(park.inotify, buf, sizeof(buf)) > 0)
			;
	} else {
		park.inotify = -1;
	}
	park.n_wd = 0;
}

/* A parent's. */
static void watch_close(void)
{
	if (is_inotify(park.inotify))
		close(park.inotify);
	park.inotify = -1;
	park.n_wd = 0;
	park.watching = false;
}

/* ours: it may be watched itself, and not only its parent. */
static void watch_one(const char *dir, bool ours)
{
	int wd = ours ? inotify_add_watch(park.inotify, dir,
				IN_CREATE | IN_MOVED_TO | IN_ATTRIB | IN_DELETE_SELF | IN_ONLYDIR)
		      : -1;
	char parent[PLACE_PATH_MAX];
	char *slash;

	if (wd < 0) {
		snprintf(parent, sizeof(parent), "%s", dir);
		slash = strrchr(parent, '/');
		if (slash == NULL || slash == parent)
			return;
		*slash = '\0';
		wd = inotify_add_watch(park.inotify, parent, IN_CREATE | IN_MOVED_TO | IN_ONLYDIR);
	}
	if (wd >= 0)
		park.wd[park.n_wd++] = wd;
}

static void watch(void)
{
	char beside[PLACE_PATH_MAX];
	struct place_list l;
	uid_t by;

	unwatch();
	if (park.inotify < 0)
		park.inotify = fd_keep(inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
	if (park.inotify < 0)
		return;
	park.watching = true;
	pd_lock(&pd.lock);
	l = pd.env.places;
	pd_unlock(&pd.lock);
	park.named = l.n == 1;
	for (unsigned i = 0; i < l.n; i++)
		watch_one(l.path[i], !l.own[i] || place_is_private(l.path[i], geteuid()));
	if (place_taken(&l, &by) == NULL)
		return;
	place_beside(place_taken(&l, &by), beside);
	if (beside[0] != '\0')
		watch_one(beside, true);
}

/* Is it about us? Others make files in /dev/shm and /run all the time. */
static bool concerns(const struct inotify_event *e)
{
	if ((e->mask & (IN_DELETE_SELF | IN_IGNORED | IN_Q_OVERFLOW)) != 0)
		return true;
	return e->len > 0 && (strcmp(e->name, RV_AGENT_SOCK) == 0 ||
				     strncmp(e->name, "protond", 7) == 0 || park.named);
}

static void on_inotify(void)
{
	union {
		char bytes[4096];
		struct inotify_event align;
	} buf;
	bool ours = false;
	ssize_t n;

	if (!is_inotify(park.inotify)) {
		unwatch();
		park.try = true;
		return;
	}
	n = read(park.inotify, buf.bytes, sizeof(buf.bytes));
	for (ssize_t at = 0; at < n;) {
		struct inotify_event e;

		memcpy(&e, buf.bytes + at, sizeof(e));
		ours = ours ||
		       concerns((const struct inotify_event *)(const void *)(buf.bytes + at));
		at += (ssize_t)(sizeof(e) + e.len);
	}
	if (!ours)
		return;
	unwatch();
	park.try = true;
	park.retry = 0;
}

/* --- the loop --------------------------------------------------------------------------------- */

static void give_up(int code, const char *words)
{
	uint64_t none = 0;

	(void)atomic_compare_exchange_strong(&pd.alone_ms, &none, pd_now_ms());
	link_answer(code, words);
}

/* Watches first, then tries: a socket made in between is seen by the one or the other. */
static void seek(void)
{
	int r;

	if (!park.watching)
		watch();
	park.try = false;
	r = link_open(false);
	if (r != 0)
		park.retry = r == -EAGAIN ? park.retry + 1 : RETRIES;
	if (r == -EAGAIN && park.retry >= RETRIES && (link_.own || !link_.controlled))
		r = link_open(true);
	if (r == 0) {
		unwatch();
		return;
	}
	if (park.retry < RETRIES)
		return;
	if (r == -EMFILE || r == -ENFILE)
		give_up(r, "no descriptor is left for a connection to protond (ulimit -n)");
	else if (r == -EPERM)
		give_up(-EPERM,
			"what answers at agent.sock is not a protond of root's or of yours");
	else if (r == -EACCES)
		give_up(-EACCES, "agent.sock is not this user's to open: `protonctl doctor` says "
				 "whose it is");
	else
		give_up(-ENOTCONN,
			"no protond is running here: start one (`protonctl daemon start`, or "
			"`systemctl start protond`), or set PROTOND_AUTOSTART=1");
}

/* -1: for ever. */
static int patience_ms(void)
{
	if (link_.sock >= 0)
		return -1;
	if (park.retry > 0 && park.retry < RETRIES)
		return 1 << (park.retry - 1);
	return park.watching ? -1 : POLL_MS;
}

/* Once the main thread has ended somebody must see when the others have. It may end without a word. */
static int until_look_ms(int patience)
{
	const int look = atomic_load(&pd.main_gone) || pd_gate_on() ? LOOK_MS : SILENT_MS;

	return patience < 0 || patience > look ? look : patience;
}

/* A daemon that ends is looked for at once. One that takes connections and drops them is not asked
 * for ever. */
static void lost(void)
{
	const bool refused = link_.refused;
	const bool lasted = link_.attached && pd_now_ms() - link_.since_ms > LASTED_MS;

	link_close();
	park.retry = refused ? RETRIES : lasted ? 0 : park.retry + 1;
	park.try = park.retry == 0;
	if (!park.watching)
		watch();
	if (park.retry >= RETRIES)
		give_up(-ENOTCONN, "protond closed the connection: see its log");
}

/* The application has closed the bell, and most likely all there was. */
static void bell_lost(void)
{
	link_close();
	unwatch();
	while (!link_hear()) {
		pd_wait(&pd.asked, link_.heard, pd_now_ms() + (uint64_t)until_look_ms(POLL_MS));
		pd_end_with_program();
	}
	if (pd_bell_make() < 0)
		link_answer(-EMFILE,
			"the program has closed libprotond's descriptors, and no other "
			"can be had (ulimit -n)");
	park.try = true;
	park.retry = 0;
}

static void turn(void)
{
	struct pollfd p[3] = {{.fd = link_.sock, .events = POLLIN},
		{.fd = pd.bell.rd, .events = POLLIN},
		{.fd = park.watching ? park.inotify : -1, .events = POLLIN}};
	const int patience = patience_ms(), n = poll(p, 3, until_look_ms(patience));

	if (n < 0)
		return;
	if (n == 0 || atomic_load(&pd.main_gone))
		pd_end_with_program();
	if (n == 0 && patience >= 0)
		park.try = true;
	if (p[1].revents != 0 && bell_is_there())
		bell_hush();
	if (p[2].revents != 0)
		on_inotify();
	if (p[0].revents != 0 && !link_read())
		lost();
}

static void *park_main(void *unused)
{
	(void)unused;
	pthread_setname_np(pthread_self(), "protond");
	park.try = true;
	for (;;) {
		if (link_.sock < 0 && (link_hear() || park.try))
			seek();
		link_serve();
		if (bell_is_there())
			turn();
		else
			bell_lost();
	}
	return NULL;
}

/* Signals are the application's: this thread takes none. */
int pd_park(const struct protond_host *host)
{
	pthread_attr_t attr;
	sigset_t all, old;
	pthread_t thread;
	bool was = false;
	int r;

	if (pd.inert)
		return -EPERM;
	if (!atomic_compare_exchange_strong(&pd.parked, &was, true))
		return 0;
	link_.host = host;
	watch_close();
	park.retry = 0;
	r = pd_bell_make();
	if (r == 0)
		r = -pthread_attr_init(&attr);
	if (r < 0) {
		atomic_store(&pd.parked, false);
		return r;
	}
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, STACK_SIZE);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	r = -pthread_create(&thread, &attr, park_main, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	if (r < 0)
		atomic_store(&pd.parked, false);
	return r;
}
