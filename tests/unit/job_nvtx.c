/* SPDX-License-Identifier: MIT. job_nvtx.c: NVTX's ranges, marks and domains. */
#include "job_nvtx.h"

#include "cupti_state.h"
#include "named.h"

#include <sys/wait.h>
#include <wchar.h>

START_TEST(nvtx_ranges)
{
	static wchar_t wide[5000];
	struct seen s[] = {{"a", 0, 0}, {"a/\xc3\xa9t\xc3\xa9", 0, 0}, {"a/ex", 0, 0},
		{"a/ex/reg", 0, 0}, {"a/aten::mm", 0, 0}, {NULL, 0, 0}};
	const struct {
		uint16_t version, size;
		uint32_t pad[3];
		int32_t payload_type, reserved;
		uint64_t payload;
		int32_t type;
		const void *message;
	} ex = {3, 48, {0}, 0, 0, 0, 1, "ex"};
	const void *(*get)(uint32_t) = export_table;
	void *fn;
	int (*push_a)(const char *), (*push_w)(const wchar_t *), (*push_ex)(const void *),
		(*pop)(void);
	int (*domain_push)(const void *, const void *), (*domain_pop)(const void *);
	const void *(*string_a)(const void *, const char *);
	const void *domain;

	_Static_assert(sizeof(ex) == 48, "as NVTX has it");
	t_open(NULL, true);
	memcpy(&fn, &get, sizeof(fn));
	ck_assert_uint_eq(t_e->nvtx(fn), 1);
	memcpy(&push_ex, &slots[0][8], sizeof(fn));
	memcpy(&push_a, &slots[0][9], sizeof(fn));
	memcpy(&push_w, &slots[0][10], sizeof(fn));
	memcpy(&pop, &slots[0][11], sizeof(fn));
	memcpy(&domain_push, &slots[1][4], sizeof(fn));
	memcpy(&domain_pop, &slots[1][5], sizeof(fn));
	memcpy(&string_a, &slots[1][10], sizeof(fn));
	ck_assert_int_eq(pop(), -2);
	ck_assert_int_eq(push_a("a"), 0); /* before anything is recorded */
	ck_assert_int_eq(t_e->want(WANT_ALL), 0);
	ck_assert_int_eq(push_w(L"\u00e9t\u00e9"), 1);
	ck_assert_int_eq(pop(), 1);
	ck_assert_int_eq(push_ex(&ex), 1);
	domain = string_a(NULL, "domain");
	{
		struct {
			unsigned char first[40];
			const void *message;
		} reg;

		memcpy(reg.first, &ex, 40);
		reg.first[32] = 3;
		reg.message = string_a(domain, "reg");
		ck_assert_int_eq(domain_push(domain, &reg), 2);
	}
	ck_assert_int_eq(domain_pop(domain), 2);
	ck_assert_int_eq(pop(), 1);
	ck_assert_int_eq(push_a("aten::mm, seq = 17, op_id = 4, sizes = [[2, 3], [3, 2]]"), 1);
	ck_assert_int_eq(pop(), 1);
	ck_assert_int_eq(push_w(L"aten::mm, op_id = 5"), 1);
	ck_assert_int_eq(pop(), 1);
	wmemset(wide, 0x1f600, 4999); /* cut */
	ck_assert_int_eq(push_w(wide), 1);
	ck_assert_int_eq(pop(), 1);
	ck_assert_int_eq(pop(), 0);
	(void)view_walk(&t_v, seen_fn, s);
	for (int i = 0; i < 4; i++)
		ck_assert_uint_eq(s[i].count, 1);
	ck_assert_uint_eq(s[4].count, 2);
	ck_assert_uint_eq(t_e->nvtx(NULL), 0);
}
END_TEST

/* JAX compiles: passes are one scope, wherever they stand in one another, and programs of one name
 * are one. */
START_TEST(nvtx_passes_of_xla)
{
	struct seen s[] = {{"XlaCompile: jit_f", 0, 0}, {"XlaCompile: jit_f/XlaPass", 0, 0},
		{"XlaCompile: jit_f/XlaPass/own", 0, 0},
		{"XlaCompile: jit_f/XlaPass/own/XlaPass", 0, 0},
		{"XlaCompile: jit_f/XlaPass/XlaPass", 0, 0}, {NULL, 0, 0}};
	const void *(*get)(uint32_t) = export_table;
	int (*push_a)(const char *), (*pop)(void);
	char text[80];
	void *fn;

	t_open(NULL, true);
	memcpy(&fn, &get, sizeof(fn));
	ck_assert_uint_eq(t_e->nvtx(fn), 1);
	memcpy(&push_a, &slots[0][9], sizeof(fn));
	memcpy(&pop, &slots[0][11], sizeof(fn));
	ck_assert_int_eq(t_e->want(WANT_ALL), 0);
	for (int i = 0; i < 300; i++) {
		(void)snprintf(text, sizeof(text), "XlaCompile:#module=jit_f,program_id=%d#", i);
		ck_assert_int_eq(push_a(text), 0);
		(void)snprintf(text, sizeof(text),
			"XlaPassPipeline:#name=%d,module=m,program_id=%d#", i, i);
		ck_assert_int_eq(push_a(text), 1);
		(void)snprintf(
			text, sizeof(text), "XlaPass:#name=p%d,module=m,program_id=%d#", i, i);
		for (int k = 2; k < 5; k++)
			ck_assert_int_eq(push_a(text), k);
		ck_assert_int_eq(pop(), 4);
		ck_assert_int_eq(push_a("own"), 4);
		ck_assert_int_eq(push_a(text), 5);
		for (int k = 5; k >= 0; k--)
			ck_assert_int_eq(pop(), k);
	}
	ck_assert_uint_eq(t_thread()->depth, 0);
	(void)view_walk(&t_v, seen_fn, s);
	for (int i = 0; i < 4; i++)
		ck_assert_uint_eq(s[i].count, 300);
	ck_assert_uint_eq(s[4].count, 0);
}
END_TEST

static void unwind(uint32_t depth)
{
	t_e->scope_unwind(t_thread(), depth);
}

/* Scopes are left by name or by depth: ranges that were open in them are closed then, and their
 * pops, which come all the same, close nothing else. */
START_TEST(nvtx_ranges_that_were_unwound)
{
	struct seen s[] = {{"b", 0, 0}, {"b/in b", 0, 0}, {"in b", 0, 0}, {NULL, 0, 0}};
	const void *(*get)(uint32_t) = export_table;
	int (*push_a)(const char *), (*pop)(void);
	uint32_t a = t_new("a"), b = t_new("b"), in_b = t_new("in b");
	void *fn;

	ready();
	memcpy(&fn, &get, sizeof(fn));
	ck_assert_uint_eq(t_e->nvtx(fn), 1);
	memcpy(&push_a, &slots[0][9], sizeof(fn));
	memcpy(&pop, &slots[0][11], sizeof(fn));
	t_enter(a);
	ck_assert_int_eq(push_a("over the end of a"), 0);
	unwind(0);
	t_enter(b);
	ck_assert_int_eq(pop(), 0);
	ck_assert_uint_eq(t_thread()->depth, 1);
	t_enter(in_b);
	t_exit();
	ck_assert_int_eq(push_a("outer"), 0);
	ck_assert_int_eq(push_a("inner"), 1);
	unwind(1);
	t_enter(in_b); /* where "outer" was */
	ck_assert_int_eq(push_a("last"), 2);
	ck_assert_int_eq(pop(), 2);
	ck_assert_uint_eq(t_thread()->depth, 2);
	ck_assert_int_eq(pop(), 1);
	ck_assert_int_eq(pop(), 0);
	ck_assert_int_eq(pop(), -2);
	ck_assert_uint_eq(t_thread()->depth, 2);
	for (int i = 0; i < 20; i++) /* deeper than there are marks */
		ck_assert_int_eq(push_a("deep"), i);
	for (int i = 20; i-- > 0;)
		ck_assert_int_eq(pop(), i);
	ck_assert_uint_eq(t_thread()->depth, 2);
	unwind(0);
	(void)view_walk(&t_v, seen_fn, s);
	ck_assert_uint_eq(s[0].count, 1);
	ck_assert_uint_eq(s[1].count, 2);
	ck_assert_uint_eq(s[2].count, 0);
}
END_TEST

/* A program with this environment, for the agent reads it as the kernel has it. */
START_TEST(nvtx_can_be_off)
{
	static const struct {
		const char *set;
		int attached;
	} cases[] = {{"TRITON_ENABLE_NVTX=0", 0}, {"TRITON_ENABLE_NVTX=False", 0},
		{"TRITON_ENABLE_NVTX=Yes", 1}, {"TRITON_ENABLE_NVTX=", 1}, {"OTHER=0", 1}};
	const pid_t child = fork();
	int status = -1;

	if (child == 0) {
		(void)execle("/proc/self/exe", "job_nvtx", NULL,
			(const char *const[]){cases[_i].set, "PD_JOB_NVTX=1", NULL});
		_exit(9);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), cases[_i].attached);
}
END_TEST

/* --- marks, spans, numbers, domains --- */

static void *ends(void *id)
{
	nvtx.end(*(uint64_t *)id);
	free(t_self);
	return NULL;
}

/* Started below a scope, ended on another thread when that scope is long gone. */
START_TEST(started_and_ended)
{
	struct seen s[] = {{"a/request", 0, 0}, {"request", 0, 0}, {"a/in a", 0, 0}, {NULL, 0, 0}};
	const uint32_t a = t_new("a"), in_a = t_new("in a");
	uint64_t id, before;
	pthread_t thread;

	open_ring();
	ck_assert_uint_eq(attach(), 1);
	before = nvtx.start_a("request"); /* before anything is recorded */
	ck_assert_int_eq(t_e->want(WANT_ALL), 0);
	t_enter(a);
	id = nvtx.start_a("request");
	ck_assert_uint_ne(id, 0);
	t_enter(in_a); /* not below the range: that is on no stack */
	t_exit();
	t_exit();
	ck_assert_int_eq(pthread_create(&thread, NULL, ends, &id), 0);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	nvtx.domain_end(NULL, before);
	nvtx.end(0); /* of none */
	nvtx.end(UINT64_MAX);
	(void)view_walk(&t_v, seen_fn, s);
	ck_assert_uint_eq(s[0].count, 1);
	ck_assert_uint_eq(s[1].count, 1);
	ck_assert_uint_eq(s[2].count, 1);
	ck_assert_uint_eq(t_v.bad, 0);
}
END_TEST

static struct {
	uint32_t n, type[8];
	uint64_t value[8];
	char where[8][64];
} payload;

static void payload_fn(void *arg, const struct view *v, uint32_t lane, const uint64_t *rec)
{
	const struct rec_metric *m = (const struct rec_metric *)(const void *)rec;
	const uint32_t i = payload.n;

	seen_fn(arg, v, lane, rec);
	if (REC_TYPE(*rec) != REC_METRIC || i == 8)
		return;
	ck_assert_str_eq(view_name(v, m->name), "payload");
	payload.type[i] = REC_FLAGS(*rec);
	payload.value[i] = m->value;
	(void)snprintf(payload.where[i], 64, "%s", view_where(v, REC_ID(*rec)));
	payload.n++;
}

START_TEST(marks_and_numbers)
{
	static const float quarter = 0.25f;
	struct seen s[] = {{"a", 0, 0}, {"a/here", 0, 0}, {"a/ex", 0, 0}, {NULL, 0, 0}};
	const struct {
		int32_t type;
		uint64_t given;
		uint32_t as;
		uint64_t value;
	} numbers[] = {{1, 1ull << 63, METRIC_U64, 1ull << 63},
		{2, UINT64_MAX, METRIC_I64, UINT64_MAX},
		{3, 0x4004000000000000, METRIC_F64, 0x4004000000000000},
		{4, 0xdead00000007, METRIC_U64, 7}, {5, 0xfffffff9, METRIC_I64, (uint64_t)-7},
		{6, 0, METRIC_F64, 0x3fd0000000000000}, {0, 5, 0, 0}, {99, 5, 0, 0}};
	struct attributes ex = {.version = 3, .size = sizeof(ex), .type = 1, .message = "ex"};

	_Static_assert(sizeof(ex) == 48, "as NVTX has it");
	ready();
	ck_assert_uint_eq(attach(), 1);
	t_enter(t_new("a"));
	nvtx.mark_a("here");
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		ex.payload_type = numbers[i].type;
		ex.payload = numbers[i].given;
		if (numbers[i].type == 6)
			memcpy(&ex.payload, &quarter, sizeof(quarter));
		if (i % 2 == 0) {
			nvtx.mark_ex(&ex);
		} else {
			ck_assert_int_eq(nvtx.push_ex(&ex), 0);
			ck_assert_int_eq(nvtx.pop(), 0);
		}
	}
	ex.size = 40; /* shorter than what is read of it: neither name nor number */
	nvtx.domain_mark(NULL, &ex);
	t_exit();
	(void)view_walk(&t_v, payload_fn, s);
	ck_assert_uint_eq(s[0].count, 2); /* and the last mark, below it, which has no name */
	ck_assert_uint_eq(s[1].count, 1);
	ck_assert_uint_eq(s[2].count, 8);
	ck_assert_uint_eq(payload.n, 6);
	for (uint32_t i = 0; i < 6; i++) {
		ck_assert_uint_eq(payload.type[i], numbers[i].as);
		ck_assert_uint_eq(payload.value[i], numbers[i].value);
		ck_assert_str_eq(payload.where[i], "a/ex");
	}
}
END_TEST

/* A program with this environment. Its status: bits of what was recorded. */
static int in_domains(void)
{
	struct seen s[] = {{"plain", 0, 0}, {"ours", 0, 0}, {"theirs", 0, 0}, {"span", 0, 0},
		{"mark", 0, 0}, {NULL, 0, 0}};
	struct attributes ex = {.version = 3, .size = sizeof(ex), .type = 1};
	const void *ours, *theirs;
	int ret = 0;

	ready();
	ck_assert_uint_eq(attach(), 1);
	ours = nvtx.domain("ours");
	theirs = nvtx.domain("theirs");
	ck_assert_int_eq(nvtx.push_a("plain"), 0);
	ck_assert_int_eq(nvtx.pop(), 0);
	ex.message = "ours";
	ck_assert_int_eq(nvtx.domain_push(ours, &ex), 0);
	ck_assert_int_eq(nvtx.pop(), 0);
	ex.message = "theirs";
	ck_assert_int_eq(nvtx.domain_push(theirs, &ex), 0);
	ck_assert_int_eq(nvtx.pop(), 0);
	ex.message = "span";
	nvtx.domain_end(theirs, nvtx.domain_start(theirs, &ex));
	ex.message = "mark";
	nvtx.domain_mark(theirs, &ex);
	(void)view_walk(&t_v, seen_fn, s);
	for (int i = 0; i < 5; i++)
		ret |= s[i].count == 1 ? 1 << i : 0;
	return ret;
}

START_TEST(domains_that_are_listed)
{
	static const struct {
		const char *set;
		int seen;
	} cases[] = {{"PROTOND_NVTX_DOMAINS=", 31}, {"PROTOND_NVTX_DOMAINS=ours", 2},
		{"PROTOND_NVTX_DOMAINS=default,theirs", 29},
		{"PROTOND_NVTX_DOMAINS=our,oursx,", 0}};
	const pid_t child = fork();
	int status = -1;

	if (child == 0) {
		(void)execle("/proc/self/exe", "job_nvtx", NULL,
			(const char *const[]){cases[_i].set, "PD_JOB_NVTX=domains", NULL});
		_exit(99);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), cases[_i].seen);
}
END_TEST

/* THREAD records: the name of each; the first is the agent's. */
static void threads_fn(void *arg, const struct view *v, uint32_t lane, const uint64_t *rec)
{
	char *to = arg;

	seen_fn(&(struct seen){NULL, 0, 0}, v, lane, rec);
	if (REC_TYPE(*rec) == REC_THREAD)
		(void)snprintf(
			to + strlen(to), 256 - strlen(to), "%s;", view_name(v, REC_ID(*rec)));
}

static uint32_t worker;

static void *named_by_another(void *arg)
{
	pthread_barrier_t *both = arg;

	worker = t_thread()->tid;
	(void)pthread_barrier_wait(both);
	(void)pthread_barrier_wait(both);
	ck_assert_int_eq(nvtx.push_a("x"), 0);
	ck_assert_int_eq(nvtx.pop(), 0);
	t_e->thread_exit(t_thread());
	free(t_self);
	return NULL;
}

/* By itself while it has a lane, before that, and by another; too many, and of no number. */
START_TEST(names_of_threads)
{
	char told_names[256] = "";
	pthread_barrier_t both;
	pthread_t thread;

	open_ring();
	ck_assert_uint_eq(attach(), 1);
	nvtx.thread((uint32_t)getpid(), "before");
	ck_assert_int_eq(t_e->want(WANT_ALL), 0);
	ck_assert_int_eq(nvtx.push_a("x"), 0);
	nvtx.thread((uint32_t)getpid(), "main");
	ck_assert_int_eq(nvtx.pop(), 0);
	nvtx.thread(0, "nobody");
	ck_assert_int_eq(pthread_barrier_init(&both, NULL, 2), 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, named_by_another, &both), 0);
	(void)pthread_barrier_wait(&both);
	nvtx.thread(worker, "worker");
	for (uint32_t i = 0; i < 100; i++)
		nvtx.thread(UINT32_MAX - i, "far away");
	(void)pthread_barrier_wait(&both);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	(void)view_walk(&t_v, threads_fn, told_names);
	ck_assert_str_eq(told_names, "protond;before;main;worker;");
}
END_TEST

static int device_of_context(int *ret)
{
	*ret = 3;
	return CUDA_OK;
}

static char current_context;

/* The default one is the thread's context's, and has no handle. */
static int stream_of_handle(void *context, void *handle, uint8_t of_thread, uint32_t *ret)
{
	*ret = handle != NULL ? (uint32_t)(uintptr_t)handle : 1;
	return context == (handle == NULL ? &current_context : NULL) && of_thread == 0
		       ? CUPTI_OK
		       : CUPTI_INVALID_STREAM;
}

static int context_of_thread(void **ret)
{
	*ret = &current_context;
	return CUDA_OK;
}

static void gpu_names_fn(void *arg, const struct view *v, uint32_t lane, const uint64_t *rec)
{
	const struct rec_named *r = (const void *)rec;
	const size_t used = strlen(arg);

	(void)lane;
	if (REC_TYPE(*rec) == REC_NAMED)
		(void)snprintf((char *)arg + used, 4096 - used, "%u.%lld=%s;", r->ordinal,
			r->stream == NAMED_OBJECT ? (long long)r->object : (int)r->stream,
			view_name(v, REC_ID(*rec)));
}

static void tell_them(char told_names[4096])
{
	told_names[0] = '\0';
	ck_assert(worker_in(1000));
	named_tell();
	worker_out();
	(void)view_walk(&t_v, gpu_names_fn, told_names);
}

/* Each recording is told of them once. A stream that CUPTI does not know is counted. */
START_TEST(names_of_gpus_and_streams)
{
	void (*device_a)(int, const char *), (*stream_w)(void *, const wchar_t *),
		(*stream_a)(void *, const char *);
	char told_names[4096];

	open_ring();
	ck_assert_uint_eq(attach(), 1);
	memcpy(&device_a, &slots[3][1], sizeof(device_a));
	memcpy(&stream_w, &slots[3][4], sizeof(stream_w));
	memcpy(&stream_a, &slots[2][5], sizeof(stream_a));
	device_a(1, "right");
	ck_assert_int_eq(t_e->want(WANT_ALL), 0);
	tell_them(told_names);
	ck_assert_str_eq(told_names, "1.-1=right;");
	cupti.api.stream_id = stream_of_handle;
	cupti.cuda.context_device = device_of_context;
	stream_a((void *)7, "nobody records"); /* what it is cannot be asked */
	atomic_store(&cupti.level, LEVEL_ON);
	stream_a((void *)7, "copies");
	stream_w((void *)17, L"compute");
	stream_a(NULL, "of no context");
	tell_them(told_names);
	ck_assert_str_eq(told_names, "3.7=copies;3.17=compute;");
	cupti.cuda.context = context_of_thread;
	stream_a(NULL, "default");
	tell_them(told_names);
	ck_assert_str_eq(told_names, "3.1=default;");
	stream_a((void *)7, "more");
	tell_them(told_names);
	ck_assert_str_eq(told_names, "3.7=more;");
	ck_assert_int_eq(t_e->want(0), 0);
	ck_assert_int_eq(t_e->want(WANT_ALL), 0);
	tell_them(told_names);
	ck_assert_str_eq(told_names, "1.-1=right;3.7=more;3.17=compute;3.1=default;");
	for (int i = 0; i < 100; i++)
		device_a(100 + i, "one of many");
	tell_them(told_names);
	ck_assert_ptr_nonnull(strstr(told_names, "159.-1=one of many;"));
	ck_assert_ptr_null(strstr(told_names, "160."));
	atomic_store(&cupti.level, LEVEL_NONE);
}
END_TEST

static int id_of_context(void *context, uint32_t *ret)
{
	*ret = (uint32_t)(uintptr_t)context + 1;
	return context != NULL ? CUPTI_OK : 1;
}

/* By the driver's calls and the runtime's. */
START_TEST(names_of_contexts_and_events)
{
	void (*context_a)(void *, const char *), (*event_w)(void *, const wchar_t *),
		(*event_a)(void *, const char *);
	char told_names[4096], want[128];

	open_ring();
	ck_assert_uint_eq(attach(), 1);
	memcpy(&context_a, &slots[2][3], sizeof(context_a));
	memcpy(&event_w, &slots[2][8], sizeof(event_w));
	memcpy(&event_a, &slots[3][5], sizeof(event_a));
	ck_assert_int_eq(t_e->want(WANT_ALL), 0);
	cupti.cuda.context_device = device_of_context;
	cupti.api.context_id = NULL;
	event_a((void *)0x70, "nobody records");
	atomic_store(&cupti.level, LEVEL_ON);
	context_a((void *)6, "it has no number");
	cupti.api.context_id = id_of_context;
	context_a((void *)6, "serving");
	context_a(NULL, "none");
	event_a((void *)0x70, "ready");
	event_w((void *)0x7f00000000f0, L"done");
	event_a(NULL, "none");
	tell_them(told_names);
	(void)snprintf(want, sizeof(want), "3.%lld=serving;3.%lld=ready;3.%lld=done;",
		(long long)GPU_CONTEXT(7), (long long)GPU_EVENT(0x70),
		(long long)GPU_EVENT(0x7f00000000f0));
	ck_assert_str_eq(told_names, want);
	atomic_store(&cupti.level, LEVEL_NONE);
}
END_TEST

static void ranges(TCase *c)
{
	tcase_add_test(c, nvtx_ranges);
	tcase_add_test(c, nvtx_passes_of_xla);
	tcase_add_test(c, nvtx_ranges_that_were_unwound);
	tcase_add_loop_test(c, nvtx_can_be_off, 0, 5);
	tcase_add_test(c, started_and_ended);
	tcase_add_test(c, names_of_threads);
	tcase_add_test(c, names_of_gpus_and_streams);
	tcase_add_test(c, names_of_contexts_and_events);
	tcase_add_test(c, marks_and_numbers);
	tcase_add_loop_test(c, domains_that_are_listed, 0, 4);
}

Suite *suite(void)
{
	void (*const all[])(TCase *) = {ranges, NULL};
	const char *as = getenv("PD_JOB_NVTX"); /* of those that start themselves */

	if (as != NULL && *as == 'd')
		exit(in_domains());
	if (as != NULL) {
		t_e = protond_engine_v1();
		t_e->host(&t_host);
		exit((int)attach());
	}
	return t_suite("job_nvtx", all);
}
