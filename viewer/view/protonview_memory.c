/* SPDX-License-Identifier: MIT. protonview_memory.c: the verb memory: what a program holds of memory, who held it at
 * the peak and holds it at the end, and how it grows. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_terms.h"
#include "grid.h"
#include "holding.h"
#include "human.h"
#include "print_json.h"
#include "protonview_verb.h"
#include "session_terms.h"
#include "spark.h"

#define ROWS 10u /* of owners, without --rows */
#define BARS 16u

struct show {
	struct run *run;
	const char *scope; /* owners whose path has it; NULL: all */
	const char *device;
	uint32_t first, last, n; /* n: accounts shown */
	bool json;
};

static bool is_asked_for(const struct show *s, const struct held_account *a)
{
	char device[16];

	holder_device(a, device);
	return s->device == NULL || strcmp(s->device, device) == 0 ||
	       strcmp(s->device, device + strcspn(device, "0123456789")) == 0;
}

static bool owner_is_asked_for(const struct show *s, const struct holding *x, uint32_t owner)
{
	return s->scope == NULL || strstr(x->scope[owner], s->scope) != NULL;
}

static double seconds(const struct holding *x, uint64_t ns)
{
	return (double)((int64_t)ns - x->row.base_ns) * 1e-9;
}

static void bytes_cell(struct grid *g, uint64_t n)
{
	char text[32];

	text_bytes(n, text);
	grid_cell_fmt(g, "%s", text);
}

static void signed_bytes(double v, char ret[32])
{
	char text[32];

	text_bytes((uint64_t)(v < 0 ? -v : v), text);
	(void)snprintf(ret, 32, "%s%.30s", v < 0 ? "-" : "", text);
}

static const char *words_of(const char *scope)
{
	return *scope != '\0' ? scope : "(no scope)";
}

/* --- what there is */

static void bars_cell(struct grid *g, const struct term *term, const struct holding *x,
	const struct held_account *a)
{
	const uint64_t begin = a->point[0].ns, all = x->end_ns - begin + 1;
	double v[BARS];
	struct text t = {0};
	uint32_t i;

	for (i = 0; i < BARS; i++)
		v[i] = (double)holding_at(a, begin + (uint64_t)((double)all / BARS * (i + 1)));
	spark(&t, v, BARS, 0, (double)a->peak, term->utf8);
	grid_cell_fmt(g, "%.*s", (int)t.n, t.n > 0 ? t.s : "");
	text_fini(&t);
}

static void print_accounts(struct show *s, const struct holding *x)
{
	static const struct grid_column columns[] = {{"DEVICE", false, 0, 0}, {"KIND", false, 0, 0},
		{"NOW", true, 0, 0}, {"PEAK", true, 0, 0}, {"AT s", true, 0, 2},
		{"ALLOCS", true, 0, 0}, {"FREES", true, 0, 0}, {"BLOCKS", true, 0, 3},
		{"OVER TIME", false, 0, 1}};
	struct run *run = s->run;
	struct grid g;
	uint32_t i;

	grid_init(&g, columns, sizeof(columns) / sizeof(*columns));
	for (i = 0; i < x->h->n_accounts; i++) {
		const struct held_account *a = x->h->account[i];
		char device[16];

		if (!is_asked_for(s, a) || a->n_points == 0)
			continue;
		holder_device(a, device);
		grid_cell_fmt(&g, "%s", device);
		grid_cell_fmt(&g, "%s", held_kind_words[a->kind]);
		bytes_cell(&g, a->live);
		bytes_cell(&g, a->peak);
		grid_cell_fmt(&g, "%.3f", seconds(x, a->peak_ns));
		grid_cell_fmt(&g, "%" PRIu64, a->allocs);
		grid_cell_fmt(&g, "%" PRIu64, a->frees);
		grid_cell_fmt(&g, "%" PRIu64, a->blocks);
		bars_cell(&g, &run->term, x, a);
		s->n++;
	}
	print_grid(&run->out, &run->term, &g);
	grid_fini(&g);
}

/* --- who */

struct who {
	const struct holding *x;
	uint32_t owner;
	uint64_t peak, live;
};

static int by_peak(const void *a, const void *b)
{
	const struct who *x = a, *y = b;

	if (x->peak != y->peak)
		return x->peak < y->peak ? 1 : -1;
	if (x->live != y->live)
		return x->live < y->live ? 1 : -1;
	return x->owner < y->owner ? -1 : x->owner > y->owner;
}

/* Of an account, those that held or hold some; the caller frees. */
static struct who *owners_of(
	struct show *s, const struct holding *x, uint32_t account, uint32_t *ret_n)
{
	struct who *w = malloc((x->h->n_owners + 1) * sizeof(*w));
	uint32_t i;

	*ret_n = 0;
	for (i = 0; w != NULL && i < x->h->n_owners; i++) {
		const struct held_owner *o = &x->h->owner[i];
		const struct who one = {x, i, held_at_peak(x->h, o), o->live};

		if (o->account == account && one.peak + one.live > 0 && owner_is_asked_for(s, x, i))
			w[(*ret_n)++] = one;
	}
	if (w != NULL && *ret_n > 1)
		qsort(w, *ret_n, sizeof(*w), by_peak);
	return w;
}

static void print_who(struct show *s, const struct holding *x, uint32_t account, const char *device)
{
	static const struct grid_column columns[] = {{"AT PEAK", true, 0, 0}, {"SHARE", true, 0, 0},
		{"BLOCKS", true, 0, 1}, {"NOW", true, 0, 0}, {"SCOPE", false, 12, 0}};
	const struct held_account *a = x->h->account[account];
	struct run *run = s->run;
	const uint32_t most = run_given(run, OPT_ROWS) ? run->print.rows : ROWS;
	uint32_t n, i;
	struct who *w = owners_of(s, x, account, &n);
	char peak[32];
	struct grid g;

	if (n == 0) {
		free(w);
		return;
	}
	text_bytes(a->peak, peak);
	text_fmt(&run->out, "\nwho held the peak of %s %s: %s, %.3f s in\n", device,
		held_kind_words[a->kind], peak, seconds(x, a->peak_ns));
	grid_init(&g, columns, sizeof(columns) / sizeof(*columns));
	for (i = 0; i < n && (most == 0 || i < most); i++) {
		bytes_cell(&g, w[i].peak);
		grid_cell_fmt(&g, "%.1f%%",
			a->peak > 0 ? 100.0 * (double)w[i].peak / (double)a->peak : 0);
		grid_cell_fmt(&g, "%" PRIu64, held_blocks_at_peak(x->h, &x->h->owner[w[i].owner]));
		bytes_cell(&g, w[i].live);
		grid_cell(&g, &run->term, words_of(x->scope[w[i].owner]));
	}
	print_grid(&run->out, &run->term, &g);
	grid_fini(&g);
	if (most != 0 && n > most)
		text_fmt(&run->out, "%u more; -n N shows N\n", n - most);
	free(w);
}

/* --- growth */

static void print_growth(struct show *s, const char *of, const struct holding_growth *g)
{
	char slope[32], error[32];

	if (g->steps < HOLDING_LEAST)
		return;
	signed_bytes(g->slope, slope);
	signed_bytes(g->error, error);
	text_fmt(&s->run->out, "%s: %s %s %s %s a step, of %u steps\n", of,
		g->g.grows   ? "GROWS by"
		: g->g.known ? "no steady growth:"
			     : "too few steps to call it growth:",
		slope, s->run->term.utf8 ? "±" : "+-", error, g->steps);
}

static void print_growths(struct show *s, const struct holding *x)
{
	struct holding_growth g;
	char device[16], of[48];
	uint32_t i;

	for (i = 0; i < x->h->n_accounts; i++) {
		const struct held_account *a = x->h->account[i];

		holder_device(a, device);
		(void)snprintf(of, sizeof(of), "%s %s", device, held_kind_words[a->kind]);
		holding_growth(x, a, s->first, s->last, &g);
		if (is_asked_for(s, a) &&
			(a->kind <= HELD_TORCH_RESERVED || a->kind == HELD_RESIDENT))
			print_growth(s, of, &g); /* others follow torch's */
	}
	if (holding_torch_growth(x, s->first, s->last, &g))
		print_growth(s, "torch's tensors", &g);
}

static void print_few_steps(struct show *s, const struct holding *x)
{
	struct holding_growth g;

	holding_growth(x, x->h->account[0], s->first, s->last, &g);
	if (g.steps < HOLDING_LEAST)
		text_fmt(&s->run->out,
			"growth is not known: that takes %u steps behind the first %u; there are "
			"%u\n",
			HOLDING_LEAST, HOLDING_WARM_UP, g.all);
}

/* --- the largest at the end */

struct left { /* of an owner: what is still held */
	uint32_t owner, blocks;
	uint64_t bytes, largest, oldest_ns;
};

static int by_bytes(const void *a, const void *b)
{
	const struct left *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? 1 : -1;
	return x->owner < y->owner ? -1 : x->owner > y->owner;
}

/* [n_owners], those with something first; the caller frees. */
static struct left *left_of(const struct holding *x, uint32_t *ret_n)
{
	struct left *l = calloc(x->h->n_owners + 1, sizeof(*l));
	uint32_t i;

	*ret_n = 0;
	for (i = 0; l != NULL && i < x->h->n_blocks; i++) {
		const struct held_block *b = &x->h->block[i];
		struct left *o = &l[b->owner];

		o->blocks++;
		o->bytes += b->bytes;
		o->largest = b->bytes > o->largest ? b->bytes : o->largest;
		o->oldest_ns = o->blocks == 1 || b->ns < o->oldest_ns ? b->ns : o->oldest_ns;
	}
	for (i = 0; l != NULL && i < x->h->n_owners; i++) {
		l[i].owner = i;
		*ret_n += l[i].blocks > 0;
	}
	if (l != NULL)
		qsort(l, x->h->n_owners, sizeof(*l), by_bytes);
	return l;
}

static void left_row(struct show *s, struct grid *g, const struct holding *x, const struct left *l)
{
	const struct held_account *a = x->h->account[x->h->owner[l->owner].account];
	char device[16];

	holder_device(a, device);
	bytes_cell(g, l->bytes);
	grid_cell_fmt(g, "%u", l->blocks);
	bytes_cell(g, l->largest);
	grid_cell_fmt(g, "%.3f", (double)(x->end_ns - l->oldest_ns) * 1e-9);
	grid_cell_fmt(g, "%s", device);
	grid_cell_fmt(g, "%s", held_kind_words[a->kind]);
	grid_cell(g, &s->run->term, words_of(x->scope[l->owner]));
}

static void print_left(struct show *s, const struct holding *x)
{
	static const struct grid_column columns[] = {{"LEFT", true, 0, 0}, {"BLOCKS", true, 0, 0},
		{"LARGEST", true, 0, 2}, {"OLDEST s", true, 0, 0}, {"DEVICE", false, 0, 3},
		{"KIND", false, 0, 1}, {"SCOPE", false, 12, 0}};
	struct run *run = s->run;
	const uint32_t most = run_given(run, OPT_ROWS) ? run->print.rows : ROWS;
	uint32_t n, i, shown = 0;
	struct left *l = left_of(x, &n);
	struct grid g;

	grid_init(&g, columns, sizeof(columns) / sizeof(*columns));
	for (i = 0; l != NULL && i < n && (most == 0 || shown < most); i++) {
		const struct held_owner *o = &x->h->owner[l[i].owner];

		if (!is_asked_for(s, x->h->account[o->account]) ||
			!owner_is_asked_for(s, x, l[i].owner))
			continue;
		left_row(s, &g, x, &l[i]);
		shown++;
	}
	if (shown > 0) {
		text_str(&run->out, "\nwhat is still held, and for how long\n");
		print_grid(&run->out, &run->term, &g);
	}
	grid_fini(&g);
	free(l);
}

/* --- what pools keep */

static const struct held_account *account_of(const struct holding *x, uint32_t device, uint8_t kind)
{
	uint32_t i;

	for (i = 0; i < x->h->n_accounts; i++)
		if (x->h->account[i]->device == device && x->h->account[i]->kind == kind)
			return x->h->account[i];
	return NULL;
}

/* Block by block: better than what was told by step. */
static bool has_torch(const struct holding *x)
{
	uint32_t i;

	for (i = 0; i < x->h->n_accounts; i++)
		if (x->h->account[i]->kind == HELD_TORCH)
			return true;
	return false;
}

/* Of what is reserved some is allocated: the rest is kept for later, and nobody else can have it. */
static void print_spare(struct show *s, const char *who, uint64_t reserved, uint64_t allocated)
{
	const uint64_t left = reserved > allocated ? reserved - allocated : 0;
	char all[32], used[32], spare[32];

	text_bytes(reserved, all);
	text_bytes(allocated, used);
	text_bytes(left, spare);
	text_fmt(&s->run->out, "%s: %s reserved, %s allocated, %s unused (%.0f%%)\n", who, all,
		used, spare, reserved > 0 ? 100.0 * (double)left / (double)reserved : 0.0);
}

/* Of what torch has and nobody uses, what is cut off within segments that are used cannot go back. */
static void print_fragments(struct show *s, const struct holding *x, uint32_t device)
{
	const struct held_account *all = account_of(x, device, HELD_TORCH);
	const struct held_account *split = account_of(x, device, HELD_TORCH_SPLIT);
	const struct held_account *asked = account_of(x, device, HELD_TORCH_REQUESTED);
	char cut[32], most[32], more[32];

	if (all == NULL || split == NULL || asked == NULL)
		return;
	text_bytes(split->live, cut);
	text_bytes(split->peak, most);
	text_bytes(all->live > asked->live ? all->live - asked->live : 0, more);
	text_fmt(&s->run->out,
		"  of it %s between blocks in use, %s at most; blocks are %s larger than asked "
		"for\n",
		cut, most, more);
}

static void print_spares(struct show *s, const struct holding *x)
{
	const struct held_account *used;
	char device[16], who[48];
	uint32_t i;

	for (i = 0; i < x->h->n_accounts; i++) {
		const struct held_account *a = x->h->account[i];
		const bool torch = a->kind == HELD_TORCH_RESERVED;

		if ((a->kind != HELD_RESERVED && !torch) || !is_asked_for(s, a))
			continue;
		used = account_of(x, a->device, torch ? HELD_TORCH : HELD_POOL);
		holder_device(a, device);
		(void)snprintf(who, sizeof(who), "%s %s", device, torch ? "torch" : "pools");
		print_spare(s, who, a->live, used != NULL ? used->live : 0);
		if (torch)
			print_fragments(s, x, a->device);
	}
	if (x->torch.reserved >= 0 && x->torch.allocated >= 0 && !has_torch(x))
		print_spare(s, "torch", (uint64_t)x->torch.reserved, (uint64_t)x->torch.allocated);
}

static void note_what_lacks(struct show *s, const struct holding *x)
{
	struct warnings *w = &s->run->warnings;
	uint64_t unknown = 0, unseen = 0, loose = 0;
	uint32_t i;

	for (i = 0; i < x->h->n_accounts; i++) {
		unknown += x->h->account[i]->unknown;
		unseen += x->h->account[i]->unseen;
		loose += x->h->account[i]->loose;
	}
	if (unknown > 0)
		warning_add(w,
			"memory: frees of what was allocated before the recording, which is in no "
			"number: %" PRIu64,
			unknown);
	if (unseen > 0)
		warning_add(w,
			"memory: blocks that were freed unseen, for their address was given again: "
			"%" PRIu64,
			unseen);
	if (loose > 0)
		warning_add(w,
			"memory: live blocks that are (other)'s, allocated before the recording or "
			"beyond %u: %" PRIu64,
			HELD_BLOCKS, loose);
	if (x->h->unplaced > 0)
		warning_add(w,
			"memory: events whose call is not known, under (no launch): %" PRIu64
			" of %" PRIu64,
			x->h->unplaced, x->h->events);
	if (x->h->refused > 0)
		warning_add(w,
			"memory: events of more devices or pools than there is room for: %" PRIu64,
			x->h->refused);
}

static void print(struct show *s, const struct holding *x)
{
	struct text *t = &s->run->out;
	char device[16];
	uint32_t i;

	if (x->row.rank >= 0)
		text_fmt(t, "\nrank %lld, pid %lld\n", (long long)x->row.rank,
			(long long)x->row.pid);
	else
		text_fmt(t, "\npid %lld\n", (long long)x->row.pid);
	print_accounts(s, x);
	for (i = 0; i < x->h->n_accounts; i++) {
		const struct held_account *a = x->h->account[i];

		holder_device(a, device);
		if (is_asked_for(s, a) && !held_is_sum(a->kind) && a->peak > 0)
			print_who(s, x, i, device);
	}
	text_char(t, '\n');
	if (x->h->n_accounts > 0)
		print_few_steps(s, x);
	print_growths(s, x);
	print_spares(s, x);
	print_left(s, x);
}

/* --- JSON: a row of each account, without a scope, and of each of its owners */

static void json_who(
	struct show *s, const struct holding *x, const struct held_account *a, const char *scope)
{
	struct text *t = &s->run->out;
	char device[16];

	holder_device(a, device);
	envelope_row(t);
	envelope_integer(t, x->row.pid);
	if (x->row.rank >= 0)
		envelope_integer(t, x->row.rank);
	else
		envelope_string(t, NULL);
	envelope_string(t, device);
	envelope_string(t, held_kind_words[a->kind]);
	envelope_string(t, scope);
}

static void json_account(struct show *s, const struct holding *x, const struct held_account *a)
{
	struct text *t = &s->run->out;
	struct holding_growth g;

	holding_growth(x, a, s->first, s->last, &g);
	json_who(s, x, a, NULL);
	envelope_integer(t, (int64_t)a->live);
	envelope_integer(t, (int64_t)a->blocks);
	envelope_integer(t, (int64_t)a->peak);
	envelope_integer(t, (int64_t)a->peak);
	envelope_integer(t, (int64_t)a->peak_ns - x->row.base_ns);
	envelope_integer(t, (int64_t)a->allocs);
	envelope_integer(t, (int64_t)a->alloc_bytes);
	envelope_integer(t, (int64_t)a->frees);
	envelope_integer(t, (int64_t)a->free_bytes);
	envelope_integer(t, (int64_t)a->unknown);
	envelope_integer(t, (int64_t)a->unseen);
	envelope_integer(t, (int64_t)a->loose);
	envelope_integer(t, g.steps);
	envelope_number(t, g.slope);
	envelope_number(t, g.error);
	envelope_boolean(t, g.g.grows);
}

static void json_owner(struct show *s, const struct holding *x, uint32_t owner)
{
	struct text *t = &s->run->out;
	const struct held_owner *o = &x->h->owner[owner];
	uint32_t i;

	json_who(s, x, x->h->account[o->account], x->scope[owner]);
	envelope_integer(t, (int64_t)o->live);
	envelope_integer(t, (int64_t)o->blocks);
	envelope_integer(t, (int64_t)held_at_peak(x->h, o));
	envelope_integer(t, (int64_t)o->most);
	for (i = 0; i < 12; i++)
		envelope_string(t, NULL);
}

/* What torch told, in the same columns. */
static void json_torch(
	struct show *s, const struct holding *x, const char *kind, double live, double peak)
{
	struct text *t = &s->run->out;
	struct holding_growth g = {0};
	uint32_t i;

	envelope_row(t);
	envelope_integer(t, x->row.pid);
	if (x->row.rank >= 0)
		envelope_integer(t, x->row.rank);
	else
		envelope_string(t, NULL);
	envelope_string(t, "cuda");
	envelope_string(t, kind);
	envelope_string(t, NULL);
	envelope_integer(t, (int64_t)live);
	envelope_string(t, NULL);
	for (i = 0; i < 2; i++)
		if (peak >= 0)
			envelope_integer(t, (int64_t)peak);
		else
			envelope_string(t, NULL);
	for (i = 0; i < 8; i++)
		envelope_string(t, NULL);
	if (peak >= 0)
		(void)holding_torch_growth(x, s->first, s->last, &g);
	envelope_integer(t, g.steps);
	envelope_number(t, g.slope);
	envelope_number(t, g.error);
	envelope_boolean(t, g.g.grows);
}

static void json(struct show *s, const struct holding *x)
{
	uint32_t i, k;

	for (i = 0; i < x->h->n_accounts; i++) {
		if (!is_asked_for(s, x->h->account[i]))
			continue;
		s->n++;
		json_account(s, x, x->h->account[i]);
		for (k = 0; k < x->h->n_owners; k++)
			if (x->h->owner[k].account == i && x->h->owner[k].most > 0 &&
				owner_is_asked_for(s, x, k))
				json_owner(s, x, k);
	}
	if (x->torch.allocated >= 0 && s->device == NULL && !has_torch(x))
		json_torch(s, x, "torch_allocated", x->torch.allocated, x->torch.peak);
	if (x->torch.reserved >= 0 && s->device == NULL && !has_torch(x))
		json_torch(s, x, "torch_reserved", x->torch.reserved, -1);
}

static void json_open(struct run *run, const struct profile *p)
{
	static const struct envelope_column columns[] = {{"pid", NULL, "integer"},
		{"rank", NULL, "integer"}, {"device", NULL, "string"}, {"kind", NULL, "string"},
		{"scope", NULL, "string"}, {"live", "bytes", "integer"},
		{"blocks", NULL, "integer"}, {"peak", "bytes", "integer"},
		{"most", "bytes", "integer"}, {"peak_time", "ns", "integer"},
		{"allocs", NULL, "integer"}, {"allocated", "bytes", "integer"},
		{"frees", NULL, "integer"}, {"freed", "bytes", "integer"},
		{"unknown_frees", NULL, "integer"}, {"freed_unseen", NULL, "integer"},
		{"untracked", NULL, "integer"}, {"steps", NULL, "integer"},
		{"slope", "bytes/step", "number"}, {"slope_error", "bytes/step", "number"},
		{"grows", NULL, "boolean"}};

	envelope_open(&run->out, "memory", p);
	envelope_columns(&run->out, columns, sizeof(columns) / sizeof(*columns));
}

/* --- the verb */

static int on_process(void *arg, const struct holding *x)
{
	struct show *s = arg;

	if (s->json)
		json(s, x);
	else
		print(s, x);
	note_what_lacks(s, x);
	return 0;
}

static int read_memory(void *arg, struct sqlite3 *db, int64_t id, const struct profile_select *sel,
	struct export_left *ret_left, struct err *e)
{
	struct show *s = arg;

	(void)ret_left;
	s->first = sel->first_step;
	s->last = sel->last_step;
	return holding_each(db, id, sel->process, on_process, s, e);
}

int view_memory(struct run *run)
{
	struct show s = {.run = run,
		.scope = run->o.value[OPT_SCOPE],
		.device = run->o.value[OPT_DEVICE],
		.json = run_given(run, OPT_JSON)};
	struct source_options o = {.timeline = read_memory, .arg = &s};
	struct profile *p = NULL;
	struct source source;
	int r = run_source(run, run->o.args[0], true, &p);

	if (r == 0 && s.json)
		json_open(run, p);
	else if (r == 0)
		print_head(&run->out, p, &run->term);
	if (r == 0)
		r = run_source_by(run, run->o.args[0], &o, &source);
	if (r == -ENODATA)
		r = err_set(&run->e, r,
			"%s is a tree alone; who held memory is in a session that was recorded "
			"with "
			"`protonctl run -s alloc -- CMD`",
			run->o.args[0]);
	if (r == 0 && s.n == 0) {
		text_fini(&run->out);
		r = err_set(&run->e, -ENOENT,
			s.device != NULL
				? "no memory of that device is in it; without --device it shows all"
			: (p->head.row.switches & SWITCH_ALLOC) != 0
				? "no allocation is in it: the switch alloc was on, and none was "
				  "made"
				: "no allocation is in it; `protonctl run -s alloc -- CMD` records "
				  "them, `protonctl set NAME +alloc` on a running session");
	}
	if (r == 0 && s.json)
		envelope_close(&run->out, &run->warnings);
	profile_free(p);
	return r;
}
