/* SPDX-License-Identifier: MIT. web_server.c: the page over HTTP.
 *
 * One loop owns all connections. An answer is made by a worker: the connection is suspended meanwhile,
 * so that a large tree holds up nobody's bytes. Whatever waits has a ceiling:
 * connections, questions, bytes that slow readers have not taken. */
#include "web_server.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <uv.h>
#include <zlib.h>

#include "web_assets.h"
#include "web_guard.h"
#include "web_http.h"
#include "web_listen.h"
#include "web_stream.h"

#define CONNECTIONS_MAX 1024u
#define QUESTIONS_MAX   64u                /* that wait for the worker */
#define HELD_MAX        ((size_t)64 << 20) /* bytes of answers that are not sent yet */
#define MEMORY_BYTES    ((size_t)16 << 10) /* of a connection: its headers */
#define STRANGER_S      5u                 /* a connection that has not asked anything; */
#define READER_S        60u                /* one that takes no more of its answer */
#define GZIP_FROM       1400u              /* what fits a packet is not worth it */

struct answer { /* shared by all that asked the same; freed when the last of them has it */
	struct web_server *s;
	struct web_answer a;
	char etag[24];
	bool packed;
	size_t held;
	uint32_t refs;
};

struct request {
	struct web_server *s;
	struct MHD_Connection *connection;
	char *uri;
	bool seen, gzip;
	struct answer *answer; /* NULL: not answered yet */
	struct request *next;  /* in the queue */
};

/* A thread's work, one thing at a time. What moves is never behind what is large: each pace has one. */
struct worker {
	struct web_server *s;
	struct web *w;
	uv_work_t work;
	bool works;
	struct request *first, *last, *at_hand; /* questions that wait; the one that is answered, */
	struct answer *making;                  /* and with what */
	struct stream_watch *looking;           /* or the session that is looked at */
	struct text frame;
	bool frame_over;
};

struct web_server {
	struct guard guard;
	struct MHD_Daemon *daemon;
	uv_loop_t loop;
	uv_poll_t poll;
	uv_timer_t timer;
	uv_signal_t interrupted, terminated;
	struct worker worker[PACE_N];
	uint32_t n_waiting;
	size_t held;
	struct streams streams;
	bool ends;
	uint32_t port;
	char url[512], path[WEB_PATH]; /* path: of a unix socket; "": there is none */
};

/* --- what is sent */

static void answer_put(void *of)
{
	struct answer *a = of;

	if (a == NULL || --a->refs > 0)
		return;
	a->s->held -= a->held;
	web_answer_fini(&a->a);
	free(a);
}

static void put(struct MHD_Response *r, const char *name, const char *value)
{
	(void)http.add_response_header(r, name, value);
}

static void put_common(struct MHD_Response *r, const char *type)
{
	put(r, "Content-Type", type);
	put(r, "Content-Security-Policy",
		"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: "
		"blob:; "
		"connect-src 'self'; font-src 'none'; base-uri 'none'; form-action 'none'; "
		"frame-ancestors 'self'");
	put(r, "X-Content-Type-Options", "nosniff");
	put(r, "Referrer-Policy", "no-referrer");
	put(r, "Cross-Origin-Resource-Policy", "same-origin");
	put(r, "Cross-Origin-Opener-Policy", "same-origin-allow-popups");
	put(r, "Cache-Control", "no-cache");
	put(r, "Vary", "Accept-Encoding, Cookie");
}

static enum MHD_Result send_response(
	struct MHD_Connection *c, unsigned status, struct MHD_Response *r)
{
	enum MHD_Result sent = r == NULL ? MHD_NO : http.queue_response(c, status, r);

	if (r != NULL)
		http.destroy_response(r);
	return sent;
}

static enum MHD_Result send_words(
	struct MHD_Connection *c, unsigned status, int code, const char *words)
{
	struct web_answer a = {.fd = -1};
	struct MHD_Response *r;
	char *bytes;
	size_t n;

	web_answer_error(&a, (int)status, code, words);
	if (text_take(&a.body, &bytes, &n) < 0)
		return MHD_NO;
	r = http.create_response_from_buffer(n, bytes, MHD_RESPMEM_MUST_FREE);
	if (r != NULL)
		put_common(r, a.type);
	if (r != NULL && status == MHD_HTTP_METHOD_NOT_ALLOWED)
		put(r, "Allow", "GET, HEAD");
	if (r != NULL && status == MHD_HTTP_SERVICE_UNAVAILABLE)
		put(r, "Retry-After", "1");
	return send_response(c, status, r);
}

static const char *header(struct MHD_Connection *c, const char *name)
{
	return http.lookup_connection_value(c, MHD_HEADER_KIND, name);
}

/* "gzip, br;q=0.5"; a browser that does not want it says q=0. */
static bool takes_gzip(struct MHD_Connection *c)
{
	const char *s = header(c, "Accept-Encoding"), *at = s == NULL ? NULL : strstr(s, "gzip");

	return at != NULL && strncmp(at + 4, ";q=0,", 5) != 0 && strcmp(at + 4, ";q=0") != 0;
}

static bool has_etag(struct MHD_Connection *c, const char *etag)
{
	const char *s = header(c, "If-None-Match");

	return s != NULL && strstr(s, etag) != NULL;
}

static enum MHD_Result send_not_modified(
	struct MHD_Connection *c, const char *type, const char *etag)
{
	struct MHD_Response *r = http.create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);

	if (r != NULL) {
		put_common(r, type);
		put(r, "ETag", etag);
	}
	return send_response(c, MHD_HTTP_NOT_MODIFIED, r);
}

/* --- zlib */

/* deflate, as a gzip file; *ret: the caller's. */
static int gzip(const char *bytes, size_t n, char **ret, size_t *ret_n)
{
	z_stream z = {.next_in = (Bytef *)(uintptr_t)bytes, .avail_in = (uInt)n};
	size_t most;

	if (n > UINT32_MAX / 2 ||
		deflateInit2(&z, 4, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		return -ENOMEM;
	most = deflateBound(&z, (uLong)n);
	*ret = malloc(most);
	z.next_out = (Bytef *)*ret;
	z.avail_out = (uInt)most;
	if (*ret == NULL || deflate(&z, Z_FINISH) != Z_STREAM_END) {
		free(*ret);
		(void)deflateEnd(&z);
		return -ENOMEM;
	}
	*ret_n = most - z.avail_out;
	(void)deflateEnd(&z);
	return 0;
}

/* --- the page's files */

static enum MHD_Result send_asset(struct MHD_Connection *c, const struct web_asset *a)
{
	const size_t n = (size_t)(a->gz_end - a->gz);
	struct MHD_Response *r;
	char etag[24], *plain;
	size_t bytes;

	snprintf(etag, sizeof(etag), "\"%.16s\"", a->sha256);
	if (has_etag(c, etag))
		return send_not_modified(c, a->type, etag);
	if (takes_gzip(c)) {
		r = http.create_response_from_buffer(
			n, (void *)(uintptr_t)a->gz, MHD_RESPMEM_PERSISTENT);
		if (r != NULL)
			put(r, "Content-Encoding", "gzip");
	} else {
		if (web_asset_plain(a, &plain, &bytes) < 0)
			return MHD_NO;
		r = http.create_response_from_buffer(bytes, plain, MHD_RESPMEM_MUST_FREE);
	}
	if (r != NULL) {
		put_common(r, a->type);
		put(r, "ETag", etag);
	}
	return send_response(c, MHD_HTTP_OK, r);
}

static const struct web_asset *asset_of(const char *path)
{
	unsigned i;

	if (*path == '\0')
		return &web_assets[ASSET_index_html];
	for (i = 0; i < ASSET_N; i++)
		if (strcmp(web_assets[i].file, path) == 0)
			return &web_assets[i];
	return NULL;
}

/* --- answers, made by the worker */

static void request_free(struct request *q)
{
	if (q == NULL)
		return;
	answer_put(q->answer);
	free(q->uri);
	free(q);
}

static void pump(struct web_server *s);

static void work(uv_work_t *of)
{
	struct worker *w = of->data;
	struct request *q = w->at_hand;
	struct answer *a = w->making;
	char *packed;
	size_t n;

	web_answer(w->w, q->uri, &a->a);
	snprintf(a->etag, sizeof(a->etag), "\"%08lx%08zx\"",
		crc32_z(0, (const Bytef *)a->a.body.s, a->a.body.n), a->a.body.n);
	if (!q->gzip || a->a.body.n < GZIP_FROM ||
		gzip(a->a.body.s, a->a.body.n, &packed, &n) < 0) {
		text_fit(&a->a.body);
		return;
	}
	text_fini(&a->a.body);
	a->a.body.s = packed;
	a->a.body.n = a->a.body.cap = n;
	a->packed = true;
}

static void give(struct answer *a, struct request *q)
{
	a->refs++;
	q->answer = a;
	http.resume_connection(q->connection);
}

/* Who waits for the same answer has it, too. */
static void give_all(struct worker *w, struct answer *a, const struct request *like)
{
	struct request **at = &w->first, *q;

	for (w->last = NULL; (q = *at) != NULL;) {
		if (strcmp(q->uri, like->uri) != 0 || q->gzip != like->gzip) {
			w->last = q;
			at = &q->next;
			continue;
		}
		*at = q->next;
		w->s->n_waiting--;
		give(a, q);
	}
}

static void worked(uv_work_t *of, int status)
{
	struct worker *w = of->data;
	struct request *q = w->at_hand;
	struct answer *a = w->making;

	(void)status;
	w->at_hand = NULL;
	w->making = NULL;
	w->works = false;
	a->held = a->a.body.n;
	w->s->held += a->held;
	give_all(w, a, q);
	give(a, q);
	answer_put(a);
	pump(w->s);
}

static void look(uv_work_t *of)
{
	struct worker *w = of->data;

	stream_look(w->w, w->looking, &w->frame, &w->frame_over);
}

static void looked(uv_work_t *of, int status)
{
	struct worker *w = of->data;

	(void)status;
	w->s->streams.now_ms = uv_now(&w->s->loop);
	stream_looked(&w->s->streams, w->looking, &w->frame, w->frame_over);
	w->looking = NULL;
	w->works = false;
	pump(w->s);
}

/* Fails on a NULL callback alone. */
static void start_work(struct worker *w, uv_work_cb fn, uv_after_work_cb after)
{
	w->works = true;
	w->work.data = w;
	(void)uv_queue_work(&w->s->loop, &w->work, fn, after);
}

static void next_question(struct worker *w)
{
	struct request *q = w->first;

	w->making = calloc(1, sizeof(*w->making));
	if (w->making == NULL)
		return; /* at the next turn of the loop */
	*w->making = (struct answer){.s = w->s, .a.fd = -1, .refs = 1};
	w->first = q->next;
	if (w->first == NULL)
		w->last = NULL;
	w->s->n_waiting--;
	w->at_hand = q;
	start_work(w, work, worked);
}

/* What the workers do next, if they are free: a look that is due, else a question. */
static void next_work(struct web_server *s)
{
	struct worker *w;

	for (w = s->worker; w < s->worker + PACE_N && !s->ends; w++) {
		if (w->works)
			continue;
		if (w == &s->worker[PACE_QUICK])
			w->looking = stream_due(&s->streams);
		if (w->looking != NULL)
			start_work(w, look, looked);
		else if (w->first != NULL)
			next_question(w);
	}
}

static enum MHD_Result ask(struct web_server *s, struct MHD_Connection *c, struct request *q)
{
	struct worker *w = &s->worker[web_pace_of(q->uri)];

	if (s->n_waiting >= QUESTIONS_MAX || s->held > HELD_MAX)
		return send_words(c, MHD_HTTP_SERVICE_UNAVAILABLE, -EBUSY,
			"too many questions at once; ask again in a second");
	q->gzip = takes_gzip(c);
	q->next = NULL;
	if (w->last != NULL)
		w->last->next = q;
	else
		w->first = q;
	w->last = q;
	s->n_waiting++;
	http.suspend_connection(c);
	next_work(s);
	return MHD_YES;
}

static enum MHD_Result send_answer(struct MHD_Connection *c, struct answer *a)
{
	struct MHD_Response *r;
	const bool is_file = a->a.fd >= 0;
	char attachment[200];
	int fd;

	if (!is_file && a->a.status == MHD_HTTP_OK && has_etag(c, a->etag))
		return send_not_modified(c, a->a.type, a->etag);
	fd = is_file ? dup(a->a.fd)
		     : -1; /* read by pread(): who shares it has a place of his own */
	r = is_file ? http.create_response_from_fd64(a->a.fd_bytes, fd)
		    : http.create_response_from_buffer_with_free_callback_cls(
			      a->a.body.n, a->a.body.s, answer_put, a);
	if (r == NULL) {
		if (fd >= 0)
			(void)close(fd);
		return MHD_NO;
	}
	a->refs += !is_file;
	put_common(r, a->a.type);
	if (a->packed)
		put(r, "Content-Encoding", "gzip");
	if (a->a.status == MHD_HTTP_OK && !is_file)
		put(r, "ETag", a->etag);
	if (a->a.file[0] != '\0') {
		snprintf(attachment, sizeof(attachment), "attachment; filename=\"%s\"", a->a.file);
		put(r, "Content-Disposition", attachment);
	}
	return send_response(c, (unsigned)a->a.status, r);
}

/* A stream of what goes on in a session. */
static enum MHD_Result send_stream(struct web_server *s, struct MHD_Connection *c)
{
	const char *id = http.lookup_connection_value(c, MHD_GET_ARGUMENT_KIND, "session");
	struct MHD_Response *r;

	if (id == NULL || strlen(id) >= sizeof(s->streams.watch[0].id))
		return send_words(c, MHD_HTTP_BAD_REQUEST, -EINVAL, "live takes session=ID");
	r = stream_open(&s->streams, c, id);
	if (r == NULL)
		return send_words(c, MHD_HTTP_SERVICE_UNAVAILABLE, -EBUSY,
			"too many pages look at live sessions; close one");
	put_common(r, "text/event-stream");
	put(r, "X-Accel-Buffering", "no");
	next_work(s);
	return send_response(c, MHD_HTTP_OK, r);
}

/* --- a request */

/* The token in the address is traded for a cookie, and the address is left behind: it stands in no
 * history and in no other program's list of arguments. No path: behind a proxy it is the proxy's. */
static enum MHD_Result trade(struct web_server *s, struct MHD_Connection *c, const char *token)
{
	struct MHD_Response *r;
	char cookie[160];

	if (!guard_same(s->guard.token, token))
		return send_words(c, MHD_HTTP_FORBIDDEN, -EACCES,
			"this token is not the one that `protonview web` printed when it was "
			"started; "
			"open the address that it printed last");
	r = http.create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
	if (r == NULL)
		return MHD_NO;
	put_common(r, "text/plain");
	snprintf(cookie, sizeof(cookie), "%s=%s; HttpOnly; SameSite=Strict", s->guard.cookie,
		s->guard.value);
	put(r, "Set-Cookie", cookie);
	put(r, "Location", "./");
	return send_response(c, MHD_HTTP_SEE_OTHER, r);
}

/* NULL: it may ask; else why not. */
static const char *stranger(const struct web_server *s, struct MHD_Connection *c)
{
	const char *site = header(c, "Sec-Fetch-Site");

	if (!guard_host(&s->guard, header(c, "Host")))
		return "this name is not one that `protonview web` goes by; if it is yours, start "
		       "it "
		       "with "
		       "--allow-host NAME";
	if (!guard_origin(&s->guard, header(c, "Origin")))
		return "another site's page asks; its name is allowed by --allow-host NAME";
	if (site != NULL && (strcmp(site, "cross-site") == 0 || strcmp(site, "same-site") == 0))
		return "another site's page asks; open the address that `protonview web` printed";
	return NULL;
}

static bool is_link(struct MHD_Connection *c)
{
	const char *mode = header(c, "Sec-Fetch-Mode"), *dest = header(c, "Sec-Fetch-Dest");

	return mode != NULL && dest != NULL && strcmp(mode, "navigate") == 0 &&
	       strcmp(dest, "document") == 0;
}

static enum MHD_Result route(
	struct web_server *s, struct MHD_Connection *c, struct request *q, const char *path)
{
	const char *token = http.lookup_connection_value(c, MHD_GET_ARGUMENT_KIND, "token");
	const struct web_asset *a;
	const char *why;

	if (!guard_host(&s->guard, header(c, "Host")))
		return send_words(c, MHD_HTTP_MISDIRECTED_REQUEST, -EACCES, stranger(s, c));
	path += *path == '/';
	if (*path == '\0' && token != NULL)
		return trade(s, c, token);
	a = asset_of(path);
	/* The page itself has nothing of anybody's, and is what a link from elsewhere leads to. */
	why = a == &web_assets[ASSET_index_html] && is_link(c) ? NULL : stranger(s, c);
	if (why != NULL)
		return send_words(c, MHD_HTTP_FORBIDDEN, -EACCES, why);
	if (a != NULL)
		return send_asset(c, a);
	if (!guard_same(s->guard.value,
		    http.lookup_connection_value(c, MHD_COOKIE_KIND, s->guard.cookie)))
		return send_words(c, MHD_HTTP_UNAUTHORIZED, -EACCES,
			"open the address that `protonview web` printed: it has the token");
	(void)http.set_connection_option(c, MHD_CONNECTION_OPTION_TIMEOUT, READER_S);
	return strcmp(path, "api/live") == 0 ? send_stream(s, c) : ask(s, c, q);
}

static void *on_uri(void *of, const char *uri, struct MHD_Connection *c)
{
	struct request *q = calloc(1, sizeof(*q));

	if (q == NULL)
		return NULL;
	q->s = of;
	q->connection = c;
	q->uri = strdup(uri);
	if (q->uri != NULL)
		return q;
	free(q);
	return NULL;
}

static enum MHD_Result on_request(void *of, struct MHD_Connection *c, const char *path,
	const char *method, const char *version, const char *upload, size_t *upload_bytes,
	void **con)
{
	struct request *q = *con;

	(void)version;
	(void)upload;
	(void)upload_bytes;
	if (q == NULL)
		return MHD_NO;
	if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
		return send_words(c, MHD_HTTP_METHOD_NOT_ALLOWED, -EINVAL, "only GET and HEAD");
	if (q->answer != NULL)
		return send_answer(c, q->answer);
	if (header(c, "Content-Length") != NULL || header(c, "Transfer-Encoding") != NULL)
		return send_words(c, MHD_HTTP_CONTENT_TOO_LARGE, -EINVAL, "a question has no body");
	if (!q->seen) { /* the library closes a connection that is answered at once */
		q->seen = true;
		return MHD_YES;
	}
	return route(of, c, q, path);
}

static void on_done(
	void *of, struct MHD_Connection *c, void **con, enum MHD_RequestTerminationCode code)
{
	(void)of;
	(void)c;
	(void)code;
	request_free(*con);
	*con = NULL;
}

/* --- the loop */

static void on_timer(uv_timer_t *t)
{
	pump(t->data);
}

static void on_readable(uv_poll_t *p, int status, int events)
{
	(void)status;
	(void)events;
	pump(p->data);
}

/* Lets the library do what is due, and says when it is due again. */
static void pump(struct web_server *s)
{
	MHD_UNSIGNED_LONG_LONG ms;
	int wait;

	stream_turn(&s->streams, uv_now(&s->loop));
	(void)http.run(s->daemon);
	next_work(s);
	if (s->ends)
		return;
	wait = stream_wait_ms(&s->streams, s->worker[PACE_QUICK].works);
	if (http.get_timeout(s->daemon, &ms) == MHD_YES && (wait < 0 || ms < (unsigned)wait))
		wait = ms < INT32_MAX ? (int)ms : INT32_MAX;
	if (wait >= 0)
		(void)uv_timer_start(&s->timer, on_timer, (uint64_t)wait, 0);
	else
		(void)uv_timer_stop(&s->timer);
}

static void on_signal(uv_signal_t *h, int number)
{
	struct web_server *s = h->data;

	(void)number;
	s->ends = true;
	uv_stop(&s->loop);
}

/* --- starting */

/* The descriptor that it listens on, and who may ask. */
static int open_listener(struct web_server *s, const struct web_server_options *o, struct err *e)
{
	const char *to = o->bind != NULL ? o->bind : "127.0.0.1";
	struct web_listener l = {.port = o->port, .port_fixed = o->port_fixed};
	int r = web_listen(to, CONNECTIONS_MAX, &l, e);

	if (r < 0)
		return r;
	s->port = l.port;
	snprintf(s->path, sizeof(s->path), "%s", l.path);
	r = guard_init(&s->guard, *l.path != '\0' ? "localhost" : to, o->allow, l.port, e);
	if (r < 0) {
		(void)close(l.fd);
		return r;
	}
	if (*l.path != '\0')
		snprintf(s->url, sizeof(s->url), "%s?token=%s", to, s->guard.token);
	else if (strcmp(to, "0.0.0.0") == 0 ||
		 strcmp(to, "::") == 0) /* whatever it is called there */
		snprintf(s->url, sizeof(s->url), "http://localhost:%u/?token=%s", l.port,
			s->guard.token);
	else
		snprintf(s->url, sizeof(s->url),
			strchr(to, ':') != NULL ? "http://[%s]:%u/?token=%s"
						: "http://%s:%u/?token=%s",
			to, l.port, s->guard.token);
	return l.fd;
}

/* A program that ends soon keeps what it freed; this one may stay for days. */
static void give_memory_back(void)
{
	(void)mallopt(M_ARENA_MAX, 2);
	(void)mallopt(M_TOP_PAD, 128 << 10);
	(void)mallopt(M_TRIM_THRESHOLD, 1 << 20);
	(void)mallopt(M_MMAP_THRESHOLD, 256 << 10);
	(void)malloc_trim(0);
}

/* As many descriptors as may be had: the connections and their answers need them. */
static void raise_descriptors(void)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l) == 0 && l.rlim_cur < l.rlim_max) {
		l.rlim_cur = l.rlim_max < 4096 ? l.rlim_max : 4096;
		(void)setrlimit(RLIMIT_NOFILE, &l);
	}
}

static int start_http(struct web_server *s, int fd, struct err *e)
{
	const union MHD_DaemonInfo *info;

	raise_descriptors();
	give_memory_back();
	s->daemon = http.start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL,
		on_request, s, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
		CONNECTIONS_MAX, MHD_OPTION_CONNECTION_MEMORY_LIMIT, MEMORY_BYTES,
		MHD_OPTION_CONNECTION_TIMEOUT, STRANGER_S, MHD_OPTION_URI_LOG_CALLBACK, on_uri, s,
		MHD_OPTION_NOTIFY_COMPLETED, on_done, s, MHD_OPTION_END);
	if (s->daemon == NULL) {
		(void)close(fd);
		return err_set(e, -EIO, "the HTTP library did not start");
	}
	info = http.get_daemon_info(s->daemon, MHD_DAEMON_INFO_EPOLL_FD);
	if (info == NULL || uv_poll_init(&s->loop, &s->poll, info->epoll_fd) < 0)
		return err_set(e, -EIO, "the HTTP library cannot be polled");
	s->poll.data = s->timer.data = s->interrupted.data = s->terminated.data = s;
	return 0;
}

/* The first has the caller's sources, each other its own. */
static int hire(struct web_server *s, struct web *w, struct err *e)
{
	for (uint32_t i = 0; i < PACE_N; i++) {
		s->worker[i] = (struct worker){.s = s, .w = i == 0 ? w : NULL};
		if (i > 0 && web_twin(w, &s->worker[i].w) < 0)
			return err_set(e, -ENOMEM, "out of memory");
	}
	return 0;
}

static void dismiss(struct web_server *s)
{
	for (uint32_t i = 1; i < PACE_N; i++)
		web_free(s->worker[i].w);
}

int web_server_new(
	struct web *w, const struct web_server_options *o, struct web_server **ret, struct err *e)
{
	struct web_server *s = calloc(1, sizeof(*s));
	int fd, r;

	if (s == NULL)
		return err_set(e, -ENOMEM, "out of memory");
	r = web_http_load(e);
	if (r == 0)
		r = hire(s, w, e);
	fd = r == 0 ? open_listener(s, o, e) : r;
	if (fd < 0) {
		dismiss(s);
		free(s);
		return fd;
	}
	(void)uv_loop_init(&s->loop);
	(void)uv_timer_init(&s->loop, &s->timer);
	(void)uv_signal_init(&s->loop, &s->interrupted);
	(void)uv_signal_init(&s->loop, &s->terminated);
	r = start_http(s, fd, e);
	if (r == 0 && (uv_signal_start(&s->interrupted, on_signal, SIGINT) < 0 ||
			      uv_signal_start(&s->terminated, on_signal, SIGTERM) < 0))
		r = err_set(e, -EIO, "the loop does not start");
	if (r < 0)
		web_server_free(s);
	else
		*ret = s;
	return r;
}

const char *web_server_url(const struct web_server *s)
{
	return s->url;
}

uint32_t web_server_port(const struct web_server *s)
{
	return s->port;
}

struct uv_loop_s *web_server_loop(struct web_server *s)
{
	return &s->loop;
}

int web_server_run(struct web_server *s, struct err *e)
{
	if (uv_poll_start(&s->poll, UV_READABLE, on_readable) < 0)
		return err_set(e, -EIO, "the loop does not start");
	pump(s);
	if (!s->ends)
		(void)uv_run(&s->loop, UV_RUN_DEFAULT);
	return 0;
}

static void on_walk(uv_handle_t *h, void *arg)
{
	(void)arg;
	if (!uv_is_closing(h))
		uv_close(h, NULL);
}

void web_server_free(struct web_server *s)
{
	struct request *q;
	struct worker *w;

	if (s == NULL)
		return;
	s->ends = true;
	stream_end(&s->streams);
	for (w = s->worker; w < s->worker + PACE_N; w++) {
		for (q = w->first; q != NULL; q = q->next)
			http.resume_connection(q->connection);
		w->first = NULL;
	}
	uv_walk(&s->loop, on_walk, NULL);
	(void)uv_run(&s->loop, UV_RUN_DEFAULT); /* also what the worker is at */
	if (s->daemon != NULL)
		http.stop_daemon(s->daemon);
	stream_fini(&s->streams);
	dismiss(s);
	(void)uv_loop_close(&s->loop);
	if (s->path[0] != '\0')
		(void)unlink(s->path);
	free(s);
}
