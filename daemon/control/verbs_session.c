/* SPDX-License-Identifier: MIT. verbs_session.c: the control verbs that make, change, end and hand
 * out sessions. */
#include "verbs.h"

#include <stdio.h>
#include <unistd.h>

#include "backends.h"
#include "change.h"
#include "discard.h"
#include "handout.h"
#include "label.h"
#include "params.h"
#include "relabel.h"
#include "session_terms.h"
#include "start.h"
#include "status.h"

#define FINALIZE_MS 5000u

static void kv_db(struct request *q, struct wire_buf *b)
{
	struct daemon_identity d;

	query_identity(q->d, &d);
	wire_kv_str(b, "db", d.db);
}

/* --- start --- */

/* A word of a list → its number; unchanged when there is none. */
static int word_index(
	const msgpack_object *params, const char *key, const struct term_list *l, uint8_t *ret)
{
	char text[32] = "";
	uint32_t i;

	if (wire_get_str(params, key, text, sizeof(text)) < 0)
		return -EINVAL;
	if (*text == '\0')
		return 0;
	i = term_number(l, text, UINT32_MAX);
	if (i == UINT32_MAX)
		return -EINVAL;
	*ret = (uint8_t)i;
	return 0;
}

/* clang-format off */
static const char *const backend_words[] = {
#define X(name, vendor, caps, injection) #name,
	GPU_BACKENDS(X)
#undef X
	"none"};
/* clang-format on */
static const struct term_list backends = {
	backend_words, sizeof(backend_words) / sizeof(backend_words[0])};

/* What is recorded and how. NULL: fine; else which parameter is wrong, and what it may be. */
static const char *start_options(const msgpack_object *params, struct j_verb *v)
{
	uint8_t backend = 0, hook = 0, source = SOURCE_CONTROL, mode = MODE_NONE;
	char switches[64] = "";
	const char *wrong;

	if (wire_get_str(params, "name", v->name, sizeof(v->name)) < 0)
		return "name must be text of at most 127 bytes";
	wrong = label_name_wrong(v->name);
	if (wrong != NULL)
		return wrong;
	if (word_index(params, "data", &term_session_datas, &v->data) < 0)
		return "data must be tree, trace or both";
	if (word_index(params, "context", &term_session_contexts, &v->context) < 0)
		return "context must be shadow or python";
	if (word_index(params, "cpu", &term_session_cpus, &v->cpu) < 0)
		return "cpu must be on or off";
	if (word_index(params, "gpu", &term_session_gpus, &v->gpu) < 0)
		return "gpu must be on, armed or none";
	if (word_index(params, "backend", &backends, &backend) < 0)
		return "backend must be " BACKEND_WORDS;
	if (word_index(params, "hook", &term_session_hooks, &hook) < 0)
		return "hook must be triton, torch or none";
	if (word_index(params, "source", &term_session_sources, &source) < 0 ||
		(source != SOURCE_CONTROL && source != SOURCE_RUN))
		return "source must be control or run";
	if (word_index(params, "mode", &term_session_modes, &mode) < 0)
		return "mode must be empty, proton or proton-3.6: this version does not sample PCs";
	if (wire_get_str(params, "switches", switches, sizeof(switches)) < 0 ||
		(*switches != '\0' && !switches_read(switches, &v->switches)))
		return "switches must be words of: " SWITCH_WORDS;
	if (wire_get_str(params, "nvtx_domains", v->domains, sizeof(v->domains)) < 0)
		return "nvtx_domains must be words with commas, of at most 127 bytes";
	snprintf(v->mode, sizeof(v->mode), "%s", term_session_modes.word[mode]);
	snprintf(v->backend, sizeof(v->backend), "%s", backend_words[backend]);
	if (hook != 0)
		snprintf(v->hook, sizeof(v->hook), "%s", term_session_hooks.word[hook]);
	if (backend == backends.n - 1)
		v->gpu = SESSION_GPU_NONE;
	v->source = source;
	return NULL;
}

/* Which jobs. NULL: fine. */
static const char *start_match(const msgpack_object *params, struct j_verb *v)
{
	uint64_t pid = 0;
	bool all = false;
	const bool token = wire_get(params, "token") != NULL;
	const bool match = wire_get(params, "match") != NULL;

	if (wire_get_u64(params, "pid", &pid) < 0 || pid > INT32_MAX)
		return "pid must be the number of a process";
	if (wire_get_bool(params, "all", &all) < 0)
		return "all must be true or false";
	if (wire_get_bin(params, "token", v->token, sizeof(v->token)) < 0)
		return "token must be 16 bytes";
	if (wire_get_str(params, "match", v->command, sizeof(v->command)) < 0)
		return "match must be at most 127 bytes";
	if ((pid != 0) + all + token + match != 1)
		return "say which jobs: exactly one of pid, all, match and token";
	v->pid = (uint32_t)pid;
	v->match = pid != 0 ? MATCH_PID : all ? MATCH_USER : token ? MATCH_TOKEN : MATCH_COMMAND;
	return NULL;
}

static void started(void *arg, const struct refusal *no, const struct changed *c)
{
	struct request *q = request_of(arg);
	struct wire_buf *b;

	if (no != NULL) {
		request_refuse(q, no);
		return;
	}
	b = request_result(q);
	kv_session(b, &c->session);
	wire_kv_u64(b, "jobs", c->jobs);
	wire_kv_bool(b, "settled", c->settled);
	request_done(q, NULL);
}

void verb_start(struct request *q)
{
	struct j_verb wish = {.verb = VERB_START};
	const char *wrong = start_options(q->params, &wish);

	if (wrong == NULL)
		wrong = start_match(q->params, &wish);
	if (wrong != NULL)
		request_wrong(q, wrong, "--help says more");
	else
		query_start(q->d, &q->who, &wish, started, q);
}

/* --- activate, stop --- */

static void answer(struct request *q, int r, const struct refusal *no)
{
	if (r < 0) {
		request_refuse(q, no);
		return;
	}
	kv_session(request_result(q), &q->session);
	request_done(q, NULL);
}

static void activate_found(struct request *q)
{
	struct refusal no;

	answer(q, query_activate(q->d, &q->session, &no), &no);
}

static void stop_found(struct request *q)
{
	struct refusal no;

	answer(q, query_deactivate(q->d, &q->session, &no), &no);
}

void verb_activate(struct request *q)
{
	param_session(q, activate_found);
}

void verb_stop(struct request *q)
{
	param_session(q, stop_found);
}

/* --- switch --- */

static void switch_found(struct request *q)
{
	char on[64] = "", off[64] = "";
	uint8_t more = 0, less = 0;
	struct refusal no;

	if (wire_get_str(q->params, "on", on, sizeof(on)) < 0 ||
		wire_get_str(q->params, "off", off, sizeof(off)) < 0 ||
		(*on != '\0' && !switches_read(on, &more)) ||
		(*off != '\0' && !switches_read(off, &less)) || (more | less) == 0) {
		request_wrong(q, "only these are switched on and off: " SWITCH_WORDS,
			"see `protonctl help set`");
		return;
	}
	answer(q, query_switch(q->d, &q->session, more, less, &no), &no);
}

void verb_switch(struct request *q)
{
	param_session(q, switch_found);
}

/* --- finalize --- */

static void finalized(void *arg, const struct refusal *no, const struct changed *c)
{
	struct request *q = request_of(arg);
	const struct session_ref *s;
	struct wire_buf *b;

	if (no != NULL) {
		request_refuse(q, no);
		return;
	}
	s = &c->session;
	b = request_result(q);
	kv_session(b, s);
	wire_kv_u64(b, "processes", s->n_processes);
	wire_kv_u64(b, "launches", s->launches);
	wire_kv_u64(b, "unmatched", s->launches > s->matched ? s->launches - s->matched : 0);
	kv_db(q, b);
	request_done(q, NULL);
}

static void finalize_found(struct request *q)
{
	uint64_t ms = FINALIZE_MS;

	if (wire_get_u64(q->params, "timeout_ms", &ms) < 0 || ms > FINALIZE_MS_MAX) {
		request_wrong(
			q, "timeout_ms must be at most 60000", "see `protonctl help finalize`");
		return;
	}
	query_finalize(q->d, &q->who, &q->session, (uint32_t)ms, finalized, q);
}

void verb_finalize(struct request *q)
{
	param_session(q, finalize_found);
}

/* --- sync, export --- */

static void sync_portable(void *arg, const struct refusal *no, int fd, uint64_t bytes)
{
	struct request *q = request_of(arg);
	struct wire_buf *b;

	if (no != NULL) {
		request_refuse(q, no);
		return;
	}
	b = request_result(q);
	kv_session(b, &q->session);
	wire_kv_bool(b, "fd", true);
	wire_kv_u64(b, "bytes", bytes);
	request_done(q, &fd);
}

static void sync_stored(void *arg, const struct refusal *no)
{
	struct request *q = request_of(arg);
	struct wire_buf *b;
	bool timeline = false;

	if (no != NULL) {
		request_refuse(q, no);
		return;
	}
	if (query_needs_portable(&q->who)) {
		(void)wire_get_bool(q->params, "timeline", &timeline); /* no boolean: without it */
		query_portable(q->d, &q->who, &q->session, timeline, sync_portable, q);
		return;
	}
	b = request_result(q);
	kv_session(b, &q->session);
	kv_db(q, b);
	request_done(q, NULL);
}

static void sync_found(struct request *q)
{
	query_store(q->d, &q->session, sync_stored, q);
}

void verb_sync(struct request *q)
{
	bool all = false;

	(void)wire_get_bool(q->params, "all", &all); /* no boolean: of one session */
	if (all && !query_needs_portable(&q->who)) {
		q->session = (struct session_ref){.live = true};
		sync_found(q);
		return;
	}
	param_session(q, sync_found);
}

static void exported(void *arg, const struct refusal *no, const struct export_result *x)
{
	struct request *q = request_of(arg);
	struct wire_buf *b;
	int fd;

	if (no != NULL) {
		request_refuse(q, no);
		return;
	}
	fd = x->fd;
	b = request_result(q);
	wire_kv_i64(b, "id", q->session.id);
	wire_kv_bool(b, "fd", true);
	wire_kv_u64(b, "bytes", x->bytes);
	wire_kv_str(b, "name", x->name);
	request_done(q, &fd);
}

static void export_found(struct request *q)
{
	char format[32] = "hatchet";

	if (wire_get_str(q->params, "format", format, sizeof(format)) < 0)
		request_wrong(q, "format must be a name of at most 31 bytes",
			"`protonctl help finalize` lists the formats");
	else
		query_export(q->d, &q->who, &q->session, format, exported, q);
}

void verb_export(struct request *q)
{
	param_session(q, export_found);
}

/* --- delete --- */

static void deleted(void *arg, const struct refusal *no)
{
	struct request *q = request_of(arg);
	struct wire_buf *b;

	if (no != NULL) {
		request_refuse(q, no);
		return;
	}
	b = request_result(q);
	kv_session(b, &q->session);
	request_done(q, NULL);
}

static void delete_found(struct request *q)
{
	bool force = false;

	if (wire_get_bool(q->params, "force", &force) < 0)
		request_wrong(q, "force must be true or false", "see `protonctl help delete`");
	else
		query_delete(q->d, &q->session, force, deleted, q);
}

void verb_delete(struct request *q)
{
	param_session(q, delete_found);
}

/* --- label --- */

static void labelled(void *arg, const struct refusal *no, const struct session_ref *s)
{
	struct request *q = request_of(arg);

	if (no != NULL) {
		request_refuse(q, no);
		return;
	}
	kv_session(request_result(q), s);
	request_done(q, NULL);
}

static void label_found(struct request *q)
{
	static const char *const keys[LABEL_KINDS] = {[LABEL_IS_NAME] = "name",
		[LABEL_IS_NOTE] = "note",
		[LABEL_IS_TAG] = "tag",
		[LABEL_IS_NO_TAG] = "untag"};
	enum label_kind kind = LABEL_KINDS;
	const char *wrong = "say exactly one of name, note, tag and untag";
	char text[LABEL_NAME] = "";
	int i, n = 0;

	for (i = 0; i < LABEL_KINDS; i++) {
		if (wire_get(q->params, keys[i]) == NULL)
			continue;
		kind = (enum label_kind)i;
		n++;
	}
	if (n == 1)
		wrong = wire_get_str(q->params, keys[kind], text, sizeof(text)) < 0
				? "it must be text of at most 127 bytes"
				: label_wrong(kind, text);
	if (wrong != NULL)
		request_wrong(q, wrong, "see `protonctl help tag`");
	else
		query_relabel(q->d, &q->session, kind, text, labelled, q);
}

void verb_label(struct request *q)
{
	param_session(q, label_found);
}

/* --- prune --- */

#define PRUNE_SLICE_MS 10000u /* at most */

static void pruned(void *arg, const struct refusal *no, const struct store_prune *gone)
{
	struct request *q = request_of(arg);
	struct wire_buf *b;
	uint32_t i;

	if (no != NULL) {
		request_refuse(q, no);
		return;
	}
	b = request_result(q);
	wire_kv_u64(b, "deleted", gone->went.n);
	wire_kv_u64(b, "bytes", gone->went.bytes);
	wire_kv_u64(b, "rows", gone->went.rows);
	wire_kv_bool(b, "dry_run", gone->dry);
	wire_kv_bool(b, "more", gone->more);
	wire_str(b, "sessions");
	wire_array(b);
	for (i = 0; i < gone->went.n && i < PRUNED_NAMED; i++) {
		wire_map(b);
		wire_kv_i64(b, "id", gone->first[i].id);
		wire_kv_str(b, "name", gone->first[i].name);
		wire_close(b);
	}
	wire_close(b);
	request_done(q, NULL);
}

/* Older tools ask for all users' sessions by older_than_s and max_bytes. The newer names are others,
 * so that an older protond refuses them: it would delete what it is not asked to. */
static int prune_params(const struct request *q, struct prune_wish *ret)
{
	uint64_t age = 0, size = 0, keep = 0, slice = 0;

	*ret = (struct prune_wish){.all_users = false};
	if (wire_get_u64(q->params, "older_than_s", &ret->older_than_s) < 0 ||
		wire_get_u64(q->params, "max_bytes", &ret->max_bytes) < 0 ||
		wire_get_u64(q->params, "age_s", &age) < 0 ||
		wire_get_u64(q->params, "size", &size) < 0 ||
		wire_get_u64(q->params, "keep", &keep) < 0 || keep > UINT32_MAX ||
		wire_get_u64(q->params, "slice_ms", &slice) < 0 || slice > PRUNE_SLICE_MS ||
		wire_get_bool(q->params, "all_users", &ret->all_users) < 0 ||
		wire_get_bool(q->params, "dry_run", &ret->dry) < 0)
		return -EINVAL;
	if (ret->older_than_s != 0 || ret->max_bytes != 0)
		ret->all_users = q->who.privileged;
	ret->older_than_s = age != 0 ? age : ret->older_than_s;
	ret->max_bytes = size != 0 ? size : ret->max_bytes;
	ret->keep = (uint32_t)keep;
	ret->slice_ms = (uint32_t)slice;
	return ret->older_than_s == 0 && ret->max_bytes == 0 && keep == 0 ? -EINVAL : 0;
}

void verb_prune(struct request *q)
{
	struct prune_wish w;
	struct refusal no;

	if (prune_params(q, &w) < 0)
		request_wrong(q, "prune needs age_s, size or keep", "see `protonctl help prune`");
	else if (query_may_prune(&q->who, &w, &no) < 0)
		request_refuse(q, &no);
	else
		query_prune(q->d, &q->who, &w, pruned, q);
}
