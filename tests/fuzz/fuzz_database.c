/* SPDX-License-Identifier: MIT. fuzz_database.c: a database that anybody may have written, as the
 * daemon takes it up and as the viewer shows it. Nothing crashes, hangs or grows without end; what
 * is loaded is a sane tree, what is written is JSON; a fold that was restored goes on.
 *
 * The input's first byte says which database is at hand: one by the schema; one where any cell
 * holds anything (no types, keys or constraints); that without timelines, as before schema 2; or
 * the bytes of the file. The second says what is to be seen. The rest changes cells, rows and
 * pages, and makes timelines; all is rolled back.
 */
#include <errno.h>
#include <jansson.h>
#include <unistd.h>

#include "export_format.h"
#include "fuzz_database.h"
#include "pick.h"
#include "print.h"
#include "print_json.h"
#include "zoom.h"

#define OUT_MAX  (256u << 20)
#define JSON_MAX (1u << 20) /* longer ones are not parsed again */

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

/* Bits of the input's second byte. */
enum {
	SEE_VIEWER = 1,
	SEE_DAEMON = 2,
	SEE_TIMELINE = 4,
	SEE_FLAT = 8,
	SEE_HATCHET = 16,
	SEE_LEAN = 32,
	SEE_PHASE = 64,
	SEE_PROCESS = 128
};

/* The viewer asks a child for a C++ name: not here. */
pid_t fork(void)
{
	errno = EAGAIN;
	return -1;
}

/* --- the viewer's side */

struct out {
	char *p;
	size_t n, cap;
};

static ssize_t out_write(void *cookie, const char *p, size_t n)
{
	struct out *o = cookie;

	while (o->cap < o->n + n) {
		o->cap = o->cap == 0 ? 4096 : o->cap * 2;
		MUST(o->cap <= OUT_MAX);
		o->p = realloc(o->p, o->cap);
		MUST(o->p != NULL);
	}
	memcpy(o->p + o->n, p, n);
	o->n += n;
	return (ssize_t)n;
}

static void check_json(const char *p, size_t n)
{
	json_error_t e;
	json_t *j;

	if (n > JSON_MAX)
		return;
	j = json_loadb(p, n, JSON_DECODE_INT_AS_REAL | JSON_ALLOW_NUL, &e);
	if (j == NULL) {
		(void)fprintf(stderr, "%s at %d: %.*s\n", e.text, e.position, (int)n, p);
		abort();
	}
	json_decref(j);
}

static void see_timeline(sqlite3 *db, int64_t id, const struct profile_select *s)
{
	struct out o = {0};
	FILE *f = fopencookie(&o, "w", (cookie_io_functions_t){.write = out_write});
	struct err e = {0};
	struct export_left left;
	int r;

	MUST(f != NULL);
	r = chrome_trace_write(db, id, s, f, &left, &e);
	MUST(fclose(f) == 0);
	MUST(r == e.code && r <= 0 && (r == 0 || e.text[0] != '\0'));
	if (r == 0)
		check_json(o.p, o.n);
	free(o.p);
}

/* Two chunks of one number are only found when they are read. */
static bool answered(int r, const struct err *e)
{
	MUST(r == 0 || ((r == -ESTALE || r == -EBADMSG || r == -ENOENT) && e->text[0] != '\0'));
	return r == 0;
}

/* Answers of a timeline by window: what comes has a place and a name. */
static void see_window(struct zoom *w, uint64_t t0, uint64_t t1, uint32_t px)
{
	const struct zoom_ask a = {.t0 = t0, .t1 = t1 > t0 ? t1 : t0 + 1, .px = px};
	const struct zoom_lane *lane;
	struct zoom_tile t;
	struct zoom_arrows arrows;
	struct zoom_sums sums;
	struct zoom_event event;
	struct err e = {0};
	uint32_t i, n;

	lane = zoom_lanes(w, &n);
	if (!answered(zoom_slices(w, &a, &t, &e), &e))
		return;
	MUST(t.n <= ZOOM_SLICES_MAX);
	for (i = 0; i < t.n; i++) {
		MUST(t.slice[i].lane < n && t.slice[i].depth < lane[t.slice[i].lane].rows);
		MUST(t.slice[i].start_ns <= t.slice[i].end_ns && t.slice[i].count > 0);
		MUST(zoom_name(w, t.slice[i].name)[0] != '\xff');
		if (t.slice[i].event != 0 && i < 10)
			(void)answered(zoom_event(w, t.slice[i].event, &event, &e), &e);
	}
	zoom_tile_fini(&t);
	if (!answered(zoom_arrows(w, &a, &arrows, &e), &e))
		return;
	MUST(arrows.n <= ZOOM_ARROWS_MAX);
	for (i = 0; i < arrows.n; i++)
		MUST(arrows.arrow[i].from_lane < n && arrows.arrow[i].to_lane < n);
	zoom_arrows_fini(&arrows);
	if (!answered(zoom_sums(w, &a, &sums, &e), &e))
		return;
	MUST(sums.n <= ZOOM_SUMS_MAX);
	zoom_sums_fini(&sums);
}

static void see_zoom(sqlite3 *db, int64_t id, const struct profile_select *s)
{
	struct zoom_find f = {.part = "a"};
	struct zoom_slice slice;
	struct err e = {0};
	struct zoom *w;
	uint64_t t0, t1;
	int r = zoom_open(db, id, s->process, &w, &e);

	MUST(r == e.code && r <= 0 && (r == 0 || e.text[0] != '\0'));
	if (r < 0)
		return;
	zoom_range(w, &t0, &t1);
	see_window(w, t0, t1, 100);
	see_window(w, t0 + (t1 - t0) / 3, t0 + (t1 - t0) / 2, 1000);
	(void)answered(zoom_find(w, &f, &slice, &e), &e);
	f.back = true;
	f.from_ns = t1;
	(void)answered(zoom_find(w, &f, &slice, &e), &e);
	zoom_free(w);
}

static void see_hatchet(const struct profile *p)
{
	struct profile *q = NULL;
	struct err e = {0};
	char *text;
	size_t n;

	MUST(hatchet_write(p, &text, &n) == 0);
	MUST(export_read(text, n, &q, &e) == 0);
	MUST(p->n_nodes == q->n_nodes);
	profile_free(q);
	free(text);
	MUST(hatchet_msgpack_write(p, &text, &n) == 0);
	MUST(export_read(text, n, &q, &e) == 0);
	profile_free(q);
	free(text);
}

static void see_screens(struct view *v, const struct print_options *o, uint8_t what)
{
	struct warnings w = {0};
	struct flat *flat = NULL;
	struct text t = {0};

	print_head(&t, v->p, o->term);
	if (v->n_columns > 0)
		MUST(print_tree(&t, v, o) == 0 && print_sorted(&t, v, o) == 0);
	print_why(&t, v->p, o->term);
	MUST(!t.failed && memchr(t.s, '\x1b', t.n) == NULL); /* no colour was asked for */
	t.n = 0;
	envelope_open(&t, "tree", v->p);
	envelope_tree(&t, v, o);
	envelope_close(&t, &w);
	check_json(t.s, t.n);
	t.n = 0;
	if ((what & SEE_FLAT) != 0 && flat_new(v, FLAT_BY_name, &flat) == 0) {
		print_flat(&t, flat, o);
		t.n = 0;
		envelope_open(&t, "flat", v->p);
		envelope_flat(&t, flat, o);
		envelope_close(&t, &w);
		check_json(t.s, t.n);
	}
	flat_free(flat);
	text_fini(&t);
}

static void see_profile(sqlite3 *db, int64_t id, const struct profile_select *s, uint8_t what)
{
	const struct term term = {.utf8 = true, .width = 100};
	struct print_options o = {.term = &term, .depth = 100, .rows = 50, .wide = true};
	struct profile *p = NULL;
	struct view *v = NULL;
	struct err e = {0};
	int r = profile_load(db, id, s, &p, &e);

	MUST(r == e.code && r <= 0 && (r == 0 || e.text[0] != '\0'));
	if (r < 0)
		return;
	check_tree(p);
	MUST(p->head.name != NULL && p->head.uuid != NULL && p->head.state != NULL);
	MUST(names_new(false, &o.names) == 0 && names_read(o.names, p) == 0);
	MUST(view_new(p, &v) == 0);
	/* The columns that a session has by itself, or a metric by its name. */
	r = view_derive(v,
		p->n_metrics > 0 && (what & SEE_LEAN) != 0 ? p->metric[what % p->n_metrics].name
							   : NULL,
		&e);
	MUST(r == 0 || e.text[0] != '\0');
	if (r == 0)
		see_screens(v, &o, what);
	if ((what & SEE_HATCHET) != 0)
		see_hatchet(p);
	view_free(v);
	names_free(o.names);
	profile_free(p);
}

static int see_row(void *arg, const struct pick_row *row)
{
	uint32_t *n = arg;

	MUST(row->uuid != NULL && row->name != NULL && row->command != NULL);
	return ++*n > 100 ? -ECANCELED : 0;
}

static void see_all(sqlite3 *db, uint8_t what)
{
	static const char *const refs[] = {"@last", "@-1", "train", "0101", "1"};
	const struct profile_select s = {.lean = (what & SEE_LEAN) != 0,
		.brief = (what & SEE_LEAN) != 0,
		.one_phase = (what & SEE_PHASE) != 0,
		.process = (what & SEE_PROCESS) != 0 ? "pid:4711" : NULL};
	struct err e = {0};
	int64_t id = 1, only;
	uint32_t n = 0;

	(void)pick_each(db, see_row, &n, &e);
	(void)pick_only(db, &only, &e);
	(void)pick_session(db, refs[what % (sizeof(refs) / sizeof(refs[0]))], &id, &e);
	see_profile(db, id, &s, what);
	if ((what & SEE_TIMELINE) != 0)
		see_timeline(db, id, &s);
	if ((what & SEE_TIMELINE) != 0)
		see_zoom(db, id, &s);
}

/* --- the daemon's side */

/* The tables come again, the job goes on, and ends. */
static void go_on(struct fold *f, const struct batch *b)
{
	const struct j_end end = {END_KILLED, 9};
	uint32_t i;

	for (i = 0; i < b->process.n && i < 4; i++) {
		const struct row_process *p = &b->process.row[i];

		if (p->lane_bytes < RING_LANE_BYTES_MIN || p->lane_bytes > RING_LANE_BYTES_MAX)
			continue;
		apply_tables(f, p->ring);
		apply_lane(f, p->ring, RING_LANE_BYTES_MAX, p->lane_bytes);
		apply(f, J_END, p->ring, &end, sizeof(end));
	}
	for (i = 0; i < b->session.n && i < 4; i++) {
		apply_verb(f, VERB_FINALIZE, b->session.row[i].uuid, 0);
		apply_verb(f, VERB_FINALIZED, b->session.row[i].uuid, 0);
	}
}

static void take_up(struct copy *c)
{
	const struct fold_limits small = {
		.nodes = 64, .launches = 32, .sessions = 16, .processes = 16};
	struct fold *f = NULL;
	struct batch b = {0}, more = {0};
	struct err e = {0};
	int r = store_rows_load(&c->store, &b, &e);

	MUST(r <= 0 && r != -ENOMEM && (r == 0 || e.text[0] != '\0'));
	if (r < 0)
		return;
	MUST(fold_new(&small, &f) == 0);
	MUST(fold_restore(f, &b) == 0);
	go_on(f, &b);
	MUST(fold_collect(f, &more) == 0);
	MUST(!fold_is_dirty(f));
	batch_free(&more);
	batch_free(&b);
	fold_free(f);
}

/* --- the game */

static void pages(struct input *in, uint8_t what)
{
	uint8_t *copy = malloc(image_bytes);
	const uint8_t *p;
	struct err e = {0};
	sqlite3 *db;
	size_t at, n;

	MUST(copy != NULL);
	memcpy(copy, image, image_bytes);
	while (in->n >= 5) {
		at = input_take(in, 4) % image_bytes;
		n = input_bytes(in, &p);
		memcpy(copy + at, p, n < image_bytes - at ? n : image_bytes - at);
	}
	if (pick_open_image(copy, image_bytes, &db, &e) == 0) {
		see_all(db, what);
		MUST(sqlite3_close(db) == SQLITE_OK);
	} else {
		MUST(e.code < 0 && e.text[0] != '\0');
	}
	free(copy);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	MUST(clearenv() == 0);
	copies_make();
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct input in = {.p = p, .n = n};
	const uint8_t which = input_u8(&in) % (COPIES + 1), what = input_u8(&in);
	struct copy *c = &copies[which % COPIES];
	uint32_t i;

	if (which == COPIES) {
		pages(&in, what);
		return 0;
	}
	must_exec(c->db, "BEGIN");
	for (i = 0; i < 64 && in.n > 0; i++)
		change(c, &in);
	if ((what & SEE_VIEWER) != 0)
		see_all(c->db, what);
	if ((what & SEE_DAEMON) != 0 && which != COPY_OLD)
		take_up(c);
	must_exec(c->db, "ROLLBACK");
	return 0;
}
