/* SPDX-License-Identifier: MIT. job_nvtx.h: NVTX's tables as its headers make them, with the engine
 * behind them. */
#ifndef JOB_NVTX_H
#define JOB_NVTX_H

#include "job_engine.h"

static uint64_t child(uint64_t parent, uint32_t name)
{
	static uint32_t made;

	for (uint32_t i = 1; i <= made; i++)
		if (t_context[i].parent == parent && t_context[i].name == name)
			return i;
	made++;
	t_context[made].parent = parent;
	t_context[made].name = name;
	return made;
}

static uint64_t below(uint32_t name)
{
	const struct pd_thread *t = t_thread();
	uint64_t c = 0;

	for (uint32_t i = 0; i < t->depth; i++)
		c = child(c, t->frame[i].name);
	return child(c, name);
}

static void open_ring(void)
{
	t_host.context_below = below;
	t_open(NULL, true);
}

static void ready(void)
{
	open_ring();
	ck_assert_int_eq(t_e->want(WANT_ALL), 0);
}

static void (*slots[4][17])(void); /* of the modules 1, 5, 2 and 4 */
static void (**table[4][17])(void);

static int get_table(int module, void (****ret)(void), unsigned *ret_size)
{
	const int m = module == 1 ? 0 : module == 5 ? 1 : module == 2 ? 2 : 3;

	for (unsigned i = 1; i < 16; i++)
		table[m][i] = &slots[m][i];
	*ret = table[m];
	*ret_size = 16;
	return module == 1 || module == 5 || module == 2 || module == 4;
}

static const struct {
	size_t bytes;
	int (*table)(int, void (****)(void), unsigned *);
} callbacks = {sizeof(callbacks), get_table};

static const void *export_table(uint32_t id)
{
	return id == 1 ? &callbacks : NULL;
}

struct attributes {
	uint16_t version, size;
	uint32_t pad[3];
	int32_t payload_type, reserved;
	uint64_t payload;
	int32_t type, pad2;
	const void *message;
};

static struct {
	void (*mark_ex)(const void *), (*mark_a)(const char *), (*end)(uint64_t),
		(*domain_mark)(const void *, const void *), (*domain_end)(const void *, uint64_t);
	uint64_t (*start_a)(const char *), (*domain_start)(const void *, const void *);
	int (*push_ex)(const void *), (*push_a)(const char *), (*pop)(void),
		(*domain_push)(const void *, const void *);
	const void *(*domain)(const char *), *(*string)(const void *, const char *);
	void (*thread)(uint32_t, const char *);
} nvtx;

static uint32_t attach(void)
{
	const void *(*get)(uint32_t) = export_table;
	const struct {
		void *to;
		void (**from)(void);
	} all[] = {{&nvtx.mark_ex, &slots[0][1]}, {&nvtx.mark_a, &slots[0][2]},
		{&nvtx.start_a, &slots[0][5]}, {&nvtx.end, &slots[0][7]},
		{&nvtx.push_ex, &slots[0][8]}, {&nvtx.push_a, &slots[0][9]},
		{&nvtx.pop, &slots[0][11]}, {&nvtx.domain_mark, &slots[1][1]},
		{&nvtx.domain_start, &slots[1][2]}, {&nvtx.domain_end, &slots[1][3]},
		{&nvtx.domain_push, &slots[1][4]}, {&nvtx.domain, &slots[1][12]},
		{&nvtx.string, &slots[1][10]}, {&nvtx.thread, &slots[0][14]}};
	uint32_t r;
	void *fn;

	memcpy(&fn, &get, sizeof(fn));
	r = t_e->nvtx(fn);
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		memcpy(all[i].to, all[i].from, sizeof(fn));
	return r;
}

struct data {
	uint64_t schema;
	size_t bytes;
	const void *at;
};

static char told[4096];

static inline void told_fn(void *arg, const struct view *v, uint32_t lane, const uint64_t *rec)
{
	const struct rec_metric *m = (const struct rec_metric *)(const void *)rec;
	size_t used = strlen(told);
	double f;

	seen_fn(arg, v, lane, rec);
	if (REC_TYPE(*rec) != REC_METRIC)
		return;
	memcpy(&f, &m->value, sizeof(f));
	used += (size_t)snprintf(told + used, sizeof(told) - used, "%s@%s=", view_name(v, m->name),
		view_where(v, REC_ID(*rec)));
	if (REC_FLAGS(*rec) == METRIC_STR) {
		(void)snprintf(
			told + used, sizeof(told) - used, "%s;", view_name(v, (uint32_t)m->value));
		return;
	}
	(void)snprintf(told + used, sizeof(told) - used,
		REC_FLAGS(*rec) == METRIC_F64 ? "%.2f;" : "%.0f;",
		REC_FLAGS(*rec) == METRIC_F64   ? f
		: REC_FLAGS(*rec) == METRIC_I64 ? (double)(int64_t)m->value
						: (double)m->value);
}

#endif
