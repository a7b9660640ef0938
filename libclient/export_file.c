/* SPDX-License-Identifier: MIT. export_file.c: a finished session as a file of the caller's: asked of
 * the daemon, written by us, whole or not at all. */
#include "export_file.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "binding.h"
#include "formats.h"
#include "futex.h"
#include "keep.h"
#include "park.h"
#include "thread.h"

#define EXPORT_MS   10000u
#define TIMELINE_MS 120000u
#define ALONE_MS    2000u /* without any daemon; one may be starting anew */
#define MOMENT_MS   200u
#define CHUNK       (64u << 10)

/* Another thread may have asked for something else meanwhile. */
static bool is_asked(const struct pd_ask *ask)
{
	return pd.export.state != EXPORT_IDLE && pd.export.session == ask->session &&
	       pd.export.phase == ask->phases && strcmp(pd.export.format, ask->format) == 0;
}

static void export_ask(const struct pd_ask *ask)
{
	pd_lock(&pd.lock);
	if ((ask->how & ASK_RESUMED) != 0 && is_asked(ask)) {
		pd_unlock(&pd.lock);
		return;
	}
	if (pd.export.fd >= 0)
		close(pd.export.fd);
	pd.export.fd = -1;
	pd.export.state = EXPORT_ASKED;
	pd.export.request++;
	pd.export.begin_ms = pd_now_ms();
	pd.export.session = ask->session;
	pd.export.phase = ask->phases;
	pd.export.timeout_ms = EXPORT_MS / 2;
	snprintf(pd.export.format, sizeof(pd.export.format), "%s", ask->format);
	pd_unlock(&pd.lock);
	pd_ring();
}

static bool export_done(int *ret_code, int *ret_fd, char *text)
{
	bool done;

	pd_lock(&pd.lock);
	done = pd.export.state == EXPORT_DONE;
	if (done) {
		*ret_code = pd.export.code;
		*ret_fd = pd.export.fd;
		memcpy(text, pd.export.text, PD_TEXT);
		pd.export.fd = -1;
		pd.export.state = EXPORT_IDLE;
	}
	pd_unlock(&pd.lock);
	return done;
}

static uint64_t sooner(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static int export_wait(uint32_t timeout_ms, bool interruptible, int *ret_fd, char *text)
{
	const uint64_t begin = pd.export.begin_ms; /* export_lock is held */
	uint64_t alone = 0, deadline;
	int code = -ETIMEDOUT;

	for (;;) {
		/* acquire: pairs with the release in pd_changed() */
		const uint32_t was = atomic_load_explicit(&pd.change, memory_order_acquire);

		if (export_done(&code, ret_fd, text))
			return code;
		alone = atomic_load(&pd.alone_ms);
		deadline = begin + timeout_ms;
		if (alone != 0)
			deadline = sooner(deadline, (alone > begin ? alone : begin) + ALONE_MS);
		if (pd_now_ms() >= deadline)
			break;
		if (pd_wait(&pd.change, was, deadline) && interruptible)
			return -EINTR;
	}
	pd_lock(&pd.lock);
	pd.export.state = EXPORT_IDLE; /* what comes later is not taken */
	pd_unlock(&pd.lock);
	if (alone != 0) {
		snprintf(text, PD_TEXT,
			"protond has ended, and no other one is here to deliver the file: "
			"`protonview export` writes it once one runs again");
		return -ENOTCONN;
	}
	snprintf(text, PD_TEXT,
		"protond did not deliver the file in %u s; `protonview export` writes it once it "
		"answers",
		(timeout_ms + 999) / 1000);
	return -ETIMEDOUT;
}

static int write_all(int fd, const char *p, size_t n)
{
	while (n > 0) {
		const ssize_t w = write(fd, p, n);

		if (w < 0 && errno == EINTR)
			continue;
		if (w <= 0)
			return pd_neg_errno();
		p += w;
		n -= (size_t)w;
	}
	return 0;
}

static int copy(int from, int to)
{
	static char buf[CHUNK]; /* under export_lock */
	off_t at = 0;

	for (;;) {
		const ssize_t n = pread(from, buf, sizeof(buf), at);
		int r;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return pd_neg_errno();
		if (n == 0)
			return 0;
		r = write_all(to, buf, (size_t)n);
		if (r < 0)
			return r;
		at += n;
	}
}

static int write_file(int from, const char *path, const char *tmp)
{
	const int fd = fd_keep(open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
	int r;

	if (fd < 0)
		return pd_neg_errno();
	r = copy(from, fd);
	if (close(fd) < 0 && r == 0)
		r = pd_neg_errno();
	if (r == 0 && rename(tmp, path) < 0)
		r = pd_neg_errno();
	if (r < 0)
		(void)unlink(tmp);
	return r;
}

static int export_locked(const struct pd_ask *ask, char *text)
{
	const bool timeline = format_from(format_of(ask->format)) != FORMAT_FROM_TREE;
	const uint32_t ms = (ask->how & ASK_IMPATIENT) != 0 ? MOMENT_MS
			    : timeline                      ? TIMELINE_MS
							    : EXPORT_MS;
	int fd = -1, r;

	export_ask(ask);
	r = export_wait(ms, (ask->how & ASK_INTERRUPTIBLE) != 0, &fd, text);
	return r < 0 ? r : fd;
}

int pd_export(const struct pd_ask *ask, char *text)
{
	int r;

	pd_lock(&pd.export_lock);
	r = export_locked(ask, text);
	pd_unlock(&pd.export_lock);
	return r;
}

/* A name of the file's folder, which is no longer than the file's may be. */
static int temporary(const char *path, char tmp[PATH_MAX])
{
	const char *slash = strrchr(path, '/'), *base = slash != NULL ? slash + 1 : path;
	const int n = snprintf(
		tmp, PATH_MAX, "%.*s%.200s.tmp-%d", (int)(base - path), path, base, (int)getpid());

	return n < PATH_MAX ? 0 : -ENAMETOOLONG;
}

int pd_export_file(const struct pd_ask *ask, const char *name, char *text)
{
	char path[PATH_MAX], tmp[PATH_MAX];
	int fd, r = 0;

	if (snprintf(path, sizeof(path), "%s.%s", name, ask->format) >= PATH_MAX ||
		temporary(path, tmp) < 0)
		return -ENAMETOOLONG;
	pd_lock(&pd.export_lock);
	fd = export_locked(ask, text);
	if (fd >= 0)
		r = write_file(fd, path, tmp);
	pd_unlock(&pd.export_lock);
	if (fd < 0)
		return fd;
	if (r < 0)
		snprintf(text, PD_TEXT, "cannot write %.120s: %s", path, strerror(-r));
	close(fd);
	return r;
}
