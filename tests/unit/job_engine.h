/* SPDX-License-Identifier: MIT. job_engine.h: the engine alone, with a host made for tests in
 * libprotond's place. */
#ifndef JOB_ENGINE_H
#define JOB_ENGINE_H

#include <pthread.h>
#include <sys/syscall.h>

#include "agent.h"
#include "clock.h"
#include "core.h"
#include "guard.h"
#include "job_read.h"
#include "lane.h"
#include "scope.h"
#include "sync.h"
#include "worker.h"

#define WANT_ALL ((uint32_t)(WANT_SCOPES | WANT_CPU_TIME | WANT_METRICS))

protond_engine_fn protond_engine_v1;

static __thread struct pd_thread *t_self;
static struct pd_thread *t_main;
static char t_names[4096][96];
static _Atomic uint32_t t_count = 2;
static struct {
	uint64_t parent;
	uint32_t name;
} t_context[1024];
static struct {
	uint32_t state, calls;
	int32_t code;
	char text[256];
} t_gpu;

static struct pd_thread *t_thread(void)
{
	if (t_self == NULL) {
		t_self = calloc(1, sizeof(*t_self));
		t_self->bytes = sizeof(*t_self);
		t_self->tid = (uint32_t)syscall(SYS_gettid);
		t_self->is_main = t_self->tid == (uint32_t)getpid();
		if (t_self->is_main)
			t_main = t_self;
	}
	return t_self;
}

static const char *t_name(uint32_t id, uint32_t *ret)
{
	*ret = (uint32_t)strlen(t_names[id % 4096]);
	return t_names[id % 4096];
}

/* Not interned: tests give each text its id themselves. */
static uint32_t t_new(const char *text)
{
	const uint32_t id = atomic_fetch_add(&t_count, 1);

	(void)snprintf(t_names[id % 4096], sizeof(t_names[0]), "%s", text);
	return id;
}

static uint32_t t_intern(const char *text, uint32_t bytes)
{
	char s[96];

	(void)snprintf(s, sizeof(s), "%.*s", (int)bytes, text);
	for (uint32_t i = 2; i < atomic_load(&t_count); i++)
		if (strcmp(t_names[i], s) == 0)
			return i;
	return t_new(s);
}

static uint32_t t_context_name(uint64_t c, uint64_t *ret_parent)
{
	*ret_parent = t_context[c % 1024].parent;
	return t_context[c % 1024].name;
}

static void t_gpu_report(const struct gpu_report *r)
{
	t_gpu.state = r->state;
	t_gpu.code = r->code;
	t_gpu.calls++;
	(void)snprintf(t_gpu.text, sizeof(t_gpu.text), "%s", r->words);
}

static const struct pd_thread *t_main_thread(void)
{
	return t_main;
}

static uint32_t t_stack_names[4], t_stack_n; /* innermost first */

static uint32_t t_stack(uint32_t *names, uint32_t cap)
{
	memcpy(names, t_stack_names, t_stack_n * sizeof(names[0]));
	return t_stack_n < cap ? t_stack_n : cap;
}

static unsigned t_wakes;

static void t_wake(void)
{
	t_wakes++;
}

static struct protond_host t_host = {
	.abi = ENGINE_ABI,
	.bytes = sizeof(t_host),
	.thread = t_thread,
	.name = t_name,
	.intern = t_intern,
	.context_name = t_context_name,
	.main_thread = t_main_thread,
	.stack = t_stack,
	.wake = t_wake,
	.gpu_report = t_gpu_report,
};

static const struct protond_engine *t_e;
static struct view t_v;
static uint32_t t_abi = RING_ABI_MAJOR | RING_ABI_ASKS; /* of the daemon: one without sums */

/* Opens the engine with a memfd ring and, when asked, a control page that view_walk() moves. */
static inline void t_open(const struct engine_open *o, bool control)
{
	static const char info[] = "command=test\0cwd=/";
	struct engine_open mine = o != NULL ? *o : (struct engine_open){0};
	char text[256];
	uint8_t uuid[16];
	uint32_t named;
	int fd;

	mine.info = mine.info != NULL ? mine.info : info;
	mine.info_bytes = mine.info_bytes != 0 ? mine.info_bytes : sizeof(info);
	t_e = protond_engine_v1();
	ck_assert_msg(t_e->open(&t_host, &mine, text) == 0, "%s", text);
	fd = t_e->ring_fd(uuid, &named);
	ck_assert_int_ge(fd, 0);
	view_open(&t_v, fd);
	if (!control)
		return;
	fd = memfd_create("ctl", MFD_CLOEXEC);
	ck_assert_int_eq(ftruncate(fd, (off_t)ring_ctl_bytes(t_v.h->n_lanes)), 0);
	struct ring_ctl *ctl = mmap(
		NULL, ring_ctl_bytes(t_v.h->n_lanes), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	ctl->magic = RING_CTL_MAGIC;
	ctl->abi = t_abi;
	t_v.ctl = &ctl->lane[0].head;
	ck_assert_int_eq(t_e->control(fd, t_v.h->n_lanes), 0);
}

static inline void t_enter(uint32_t name)
{
	t_e->scope_enter(t_thread(), name);
}

static inline void t_exit(void)
{
	if (t_thread()->depth > 0) /* as libprotond does */
		t_e->scope_exit(t_thread());
}

/* A thread, run to its end, its lane given back. */
static inline void *t_run_main(void *p)
{
	void (*fn)(void);

	memcpy(&fn, &p, sizeof(fn));
	fn();
	t_e->thread_exit(t_thread());
	free(t_self);
	return NULL;
}

static inline void t_run(void (*fn)(void))
{
	pthread_t th;
	void *p;

	memcpy(&p, &fn, sizeof(p));
	ck_assert_int_eq(pthread_create(&th, NULL, t_run_main, p), 0);
	ck_assert_int_eq(pthread_join(th, NULL), 0);
}

static inline Suite *t_suite(const char *name, void (*const *tests)(TCase *))
{
	Suite *s = suite_create(name);

	for (; *tests != NULL; tests++) {
		TCase *c = tcase_create(name);

		tcase_set_timeout(c, 60);
		(*tests)(c);
		suite_add_tcase(s, c);
	}
	return s;
}

#endif
