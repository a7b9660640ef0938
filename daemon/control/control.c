/* SPDX-License-Identifier: MIT. control.c: the server of control.sock: who may connect, and how
 * many. Loop thread. */
#include "control.h"

#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "client.h"
#include "daemon.h"
#include "host_clock.h"
#include "manager.h"
#include "must.h"
#include "rendezvous.h"
#include "share.h"
#include "shares.h"

#define CONTROL_MAGIC    0x43545254u
#define SWEEP_MS         1000u
#define ACCEPTS_PER_TICK 16
#define REQUESTS_MAX     2048u /* begun and not answered */
#define SOCK_NEW         RV_CONTROL_SOCK ".new"

struct control {
	uint32_t magic;
	struct daemon *d;
	uv_poll_t poll;
	uv_timer_t sweep; /* runs while some client has not said hello */
	uint32_t handles; /* of these and clients.serve, not yet closed */
	int fd, spare_fd; /* spare: given up for a moment when descriptors run out */
	gid_t group;      /* (gid_t)-1: there is none */
	bool inherited;   /* the socket is the service manager's: its name stays */
	struct clients clients;
	struct share share; /* of clients */
	bool freeing;
};

static struct control *control_of(void *p)
{
	struct control *control = p;

	MUST(control != NULL && control->magic == CONTROL_MAGIC);
	return control;
}

/* --- accepting --- */

static bool in_group(int fd, gid_t gid, gid_t group)
{
	gid_t groups[256];
	socklen_t n = sizeof(groups);
	size_t i;

	if (group == (gid_t)-1)
		return false;
	if (gid == group)
		return true;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &n) < 0)
		return false;
	for (i = 0; i < n / sizeof(groups[0]); i++)
		if (groups[i] == group)
			return true;
	return false;
}

static int peer_read(const struct control *control, int fd, struct asker *ret)
{
	struct ucred u;
	socklen_t n = sizeof(u);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &u, &n) < 0)
		return neg_errno();
	*ret = (struct asker){.uid = u.uid, .pid = (uint32_t)u.pid};
	ret->privileged = u.uid == 0 || u.uid == geteuid() || in_group(fd, u.gid, control->group);
	return 0;
}

static void control_on_sweep(uv_timer_t *t)
{
	if (clients_sweep(&control_of(t->data)->clients, mono_ns()) == 0)
		uv_timer_stop(t);
}

static int control_take(struct control *control, int fd, const struct asker *who)
{
	int r = client_new(&control->clients, fd, who);

	if (r == 0 && !uv_is_active((uv_handle_t *)&control->sweep))
		uv_timer_start(&control->sweep, control_on_sweep, SWEEP_MS, SWEEP_MS);
	return r;
}

static void control_admit(struct control *control, int fd)
{
	struct asker who;

	if (peer_read(control, fd, &who) < 0)
		close(fd);
	else if (control->d->private && !who.privileged) {
		client_refuse(fd, -EPERM, "this protond belongs to another user",
			"start your own: `protonctl run -- CMD`");
		close(fd);
	} else if (share_room(&control->share, control->clients.n,
			   fair_count(&control->clients.fair, who.uid), 1) == -EDQUOT) {
		control->d->refused_connections++;
		client_refuse(fd, -EBUSY, "you have as many clients as one user may",
			"close some protonctl or protonview, then try again");
		close(fd);
	} else if (share_left(&control->share, control->clients.n,
			   fair_count(&control->clients.fair, who.uid), 1) < 0 ||
		   control_take(control, fd, &who) < 0) {
		control->d->refused_connections++;
		client_refuse(fd, -EBUSY, "protond has too many clients",
			"close some protonctl or protonview, then try again");
		close(fd);
	}
}

/* Out of descriptors: the next connection is taken with the spare one and dropped, so that the
 * socket does not stay readable for ever. */
static void control_shed(struct control *control)
{
	int fd;

	close(control->spare_fd);
	fd = accept4(control->fd, NULL, NULL, SOCK_CLOEXEC);
	if (fd >= 0) {
		client_refuse(fd, -EMFILE, "protond is out of file descriptors",
			"raise LimitNOFILE in protond.service");
		close(fd);
	}
	control->d->refused_connections++;
	control->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void control_on_poll(uv_poll_t *h, int status, int events)
{
	struct control *control = control_of(h->data);
	int i, fd;

	(void)events;
	if (status < 0)
		return;
	for (i = 0; i < ACCEPTS_PER_TICK; i++) {
		fd = accept4(control->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd >= 0)
			control_admit(control, fd);
		else if (errno == EMFILE || errno == ENFILE)
			control_shed(control);
		else if (errno != EINTR && errno != ECONNABORTED)
			return;
	}
}

/* --- the socket --- */

/* Binds below the runtime directory, through its descriptor: no path is too long for sun_path.
 * Bound under another name and renamed when it listens, so that whoever sees it can connect. */
static int control_listen(struct daemon *d, int *ret_fd, struct err *e)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int r, fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return err_set(e, neg_errno(), "no socket: %s", strerror(errno));
	snprintf(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d/" SOCK_NEW, d->runtime_fd);
	(void)unlinkat(d->runtime_fd, SOCK_NEW, 0);
	if (bind(fd, (const struct sockaddr *)&a, sizeof(a)) < 0)
		goto fail;
	/* A service's users are told apart by SO_PEERCRED; a private daemon is its user's alone. */
	if (fchmodat(d->runtime_fd, SOCK_NEW, d->private ? 0600 : 0666, 0) < 0)
		goto fail;
	if (listen(fd, 128) < 0 ||
		renameat(d->runtime_fd, SOCK_NEW, d->runtime_fd, RV_CONTROL_SOCK) < 0)
		goto fail;
	*ret_fd = fd;
	return 0;
fail:
	r = err_set(e, neg_errno(), "cannot listen on %s/" RV_CONTROL_SOCK ": %s", d->runtime,
		strerror(errno));
	close(fd);
	return r;
}

static gid_t group_id(void)
{
	struct group g, *found = NULL;
	char buf[4096];

	if (getgrnam_r("protond", &g, buf, sizeof(buf), &found) != 0 || found == NULL)
		return (gid_t)-1;
	return found->gr_gid;
}

/* The last of its handles or clients is gone. */
static void control_gone(struct control *control)
{
	if (!control->freeing || control->handles != 0 || control->clients.n != 0)
		return;
	control->magic = 0;
	fair_fini(&control->clients.fair);
	free(control);
}

static void control_client_gone(struct clients *all)
{
	control_gone(control_of((char *)all - offsetof(struct control, clients)));
}

int control_new(
	struct daemon *d, verb_fn *const verbs[WIRE_VERB_MAX], struct control **ret, struct err *e)
{
	struct control *control = calloc(1, sizeof(*control));
	uint32_t max;
	int r;

	MUST(verbs != NULL);
	if (control == NULL)
		return err_set(e, -ENOMEM, "out of memory");
	control->magic = CONTROL_MAGIC;
	control->d = d;
	control->clients = (struct clients){
		.d = d, .loop = &d->loop, .verbs = verbs, .gone = control_client_gone};
	max = shares_of_limit().clients;
	control->share = share_of(max < WIRE_CLIENTS_MAX ? max : WIRE_CLIENTS_MAX, d->private);
	control->clients.fair.share = share_of(REQUESTS_MAX, d->private);
	control->group = group_id();
	control->fd = manager_inherited(RV_CONTROL_SOCK, SOCK_STREAM);
	control->inherited = control->fd >= 0;
	r = control->inherited ? 0 : control_listen(d, &control->fd, e);
	if (r < 0) {
		free(control);
		return r;
	}
	r = uv_poll_init(&d->loop, &control->poll, control->fd);
	if (r < 0) {
		close(control->fd);
		free(control);
		return err_set(e, r, "the loop takes no further handle: %s", uv_strerror(r));
	}
	control->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	uv_timer_init(&d->loop, &control->sweep);
	uv_unref((uv_handle_t *)&control->sweep);
	uv_idle_init(&d->loop, &control->clients.serve);
	control->poll.data = control->sweep.data = control->clients.serve.data = control;
	control->handles = 3;
	uv_poll_start(&control->poll, UV_READABLE, control_on_poll);
	*ret = control;
	return 0;
}

static void control_on_closed(uv_handle_t *h)
{
	struct control *control = control_of(h->data);

	MUST(control->handles > 0);
	control->handles--;
	control_gone(control);
}

void control_free(struct control *control)
{
	if (control == NULL || control_of(control)->freeing)
		return;
	control->freeing = true;
	if (!control->inherited)
		(void)unlinkat(control->d->runtime_fd, RV_CONTROL_SOCK, 0);
	uv_close((uv_handle_t *)&control->poll, control_on_closed);
	uv_close((uv_handle_t *)&control->sweep, control_on_closed);
	uv_close((uv_handle_t *)&control->clients.serve, control_on_closed);
	close(control->fd);
	close(control->spare_fd);
	clients_close(&control->clients);
}

uint32_t control_clients(const struct control *control)
{
	return control->clients.n;
}

int control_fd(const struct control *control)
{
	return control->fd;
}
