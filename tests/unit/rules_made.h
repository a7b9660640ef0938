/* SPDX-License-Identifier: MIT. rules_made.h: the made session of view_rules.c, in which nothing is wrong. */
#ifndef PROTOND_RULES_MADE_H
#define PROTOND_RULES_MADE_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bottlenecks.h"
#include "buckets.h"
#include "quick.h"
#include "session_terms.h"
#include "step_pace.h"

#define MS     1e6
#define STEPS  100u
#define RANKED 3u

/* A hundred steps of 10 ms of one process with three ranks beside it, on a GPU that is busy for nine tenths. */
struct made {
	struct profile *p;
	uint32_t cpu, calls, time, count, copy, copies, bytes, sync, syncs;
	uint32_t step, loader, forward, gemm, h2d, d2h, wait, optimizer, adam, nccl;
	struct steps steps;
	struct step step_of[STEPS];
	struct steps_process process;
	double memory[STEPS];
	struct leak leak; /* not stored: of memory that the driver gave nothing is known */
	struct waits waits;
	struct critical critical;
	struct wait_site site[3];
	struct ranks ranks;
	struct ranks_process rank[RANKED];
	struct ranks_row row[3];
	uint32_t rank_step, rank_forward, rank_nccl;
	struct device_sums device;
	struct profile_durations *durations;
	uint64_t hist[2000];
	uint32_t sharing;
	bool no_waits;
};

static void put(struct made *m, uint32_t node, uint32_t metric, double v)
{
	ck_assert_int_eq(profile_set(m->p, node, metric,
				 (struct value){.type = VALUE_U64, .u = (uint64_t)v}),
		0);
}

static uint32_t scope(struct made *m, uint32_t up, const char *name, double calls, double ns)
{
	const uint32_t i = profile_add_node(m->p, up, name, NODE_SCOPE);

	put(m, i, m->calls, calls);
	put(m, i, m->cpu, ns);
	return i;
}

static uint32_t kernel(struct made *m, uint32_t up, const char *name, double n, double ns)
{
	const uint32_t i = profile_add_node(m->p, up, name, NODE_KERNEL);

	m->p->node[i].class = gpu_kernel_is_comm(name) ? CLASS_COMM : CLASS_COMPUTE;
	put(m, i, m->count, n);
	put(m, i, m->time, ns);
	return i;
}

static uint32_t copy(struct made *m, uint32_t up, uint8_t class, double n, double ns, double bytes)
{
	const uint32_t i = profile_add_node(m->p, up, gpu_classes[class].leaf, NODE_COPY);

	m->p->node[i].class = class;
	put(m, i, m->copies, n);
	put(m, i, m->copy, ns);
	put(m, i, m->bytes, bytes);
	return i;
}

static uint32_t call(struct made *m, uint32_t up, uint8_t class, double n, double ns)
{
	const uint32_t i = profile_add_node(m->p, up, gpu_classes[class].leaf, NODE_CALL);

	m->p->node[i].class = class;
	put(m, i, m->syncs, n);
	put(m, i, m->sync, ns);
	return i;
}

static void make_tree(struct made *m)
{
	m->p = profile_new();
	ck_assert_ptr_nonnull(m->p);
	m->cpu = profile_add_metric(m->p, "cpu_time (ns)", KIND_EXCLUSIVE);
	m->calls = profile_add_metric(m->p, "calls", KIND_EXCLUSIVE);
	m->time = profile_add_metric(m->p, "time (ns)", KIND_INCLUSIVE);
	m->count = profile_add_metric(m->p, "count", KIND_INCLUSIVE);
	m->copy = profile_add_metric(m->p, "copy_time (ns)", KIND_INCLUSIVE);
	m->copies = profile_add_metric(m->p, "copies", KIND_INCLUSIVE);
	m->bytes = profile_add_metric(m->p, "copy_bytes", KIND_INCLUSIVE);
	m->sync = profile_add_metric(m->p, "sync_time (ns)", KIND_INCLUSIVE);
	m->syncs = profile_add_metric(m->p, "syncs", KIND_INCLUSIVE);
	m->step = scope(m, 0, "step", STEPS, STEPS * 10 * MS);
	m->loader = scope(m, m->step, "dataloader", STEPS, STEPS * 0.2 * MS);
	m->forward = scope(m, m->step, "forward", STEPS, STEPS * 3 * MS);
	m->gemm = kernel(m, m->forward, "sm90_xmma_gemm_bf16", STEPS * 100, STEPS * 8 * MS);
	m->h2d = copy(m, m->step, CLASS_H2D, STEPS, STEPS * 0.2 * MS, STEPS * 4e6);
	m->d2h = copy(m, m->step, CLASS_D2H, STEPS, STEPS * 0.01 * MS, STEPS * 4);
	m->wait = call(m, m->step, CLASS_COPY_WAIT, STEPS, STEPS * 0.3 * MS);
	m->optimizer = scope(m, m->step, "optimizer.step (AdamW)", STEPS, STEPS * 0.5 * MS);
	m->adam = kernel(
		m, m->optimizer, "multi_tensor_apply_kernel<AdamW>", STEPS * 4, STEPS * 0.5 * MS);
	m->nccl = kernel(m, m->step, "ncclDevKernel_AllReduce_Sum", STEPS, STEPS * 0.3 * MS);
}

static void make_device(struct made *m)
{
	static const double part[PART_MAX] = {[PART_COMPUTE] = 860,
		[PART_COMM] = 30,
		[PART_COPY] = 20,
		[PART_LAUNCH] = 40,
		[PART_GAP] = 10,
		[PART_QUEUED] = 10,
		[PART_HOST] = 30};
	struct profile *p = m->p;
	uint32_t k;

	p->device = calloc(2, sizeof(*p->device));
	p->config = calloc(STEPS, sizeof(*p->config));
	ck_assert(p->device != NULL && p->config != NULL);
	p->n_devices = 1;
	p->device[0] = (struct profile_device){.type = "CUDA",
		.arch = 90,
		.id = "0",
		.name = "NVIDIA H200",
		.num_sms = 132,
		.busy_ns = (uint64_t)(910 * MS),
		.has_parts = true};
	for (k = 0; k < PART_MAX; k++)
		p->device[0].part_ns[k] = (uint64_t)(part[k] * MS);
	p->device[1] = p->device[0];
	p->n_configs = 1;
	p->config[0] = (struct profile_config){
		m->gemm, {264, 1, 1}, {256, 1, 1}, 128, 0, 65536, STEPS * 100};
	p->head.uuid = "u";
	p->head.duration_ns = (uint64_t)(1000 * MS);
	p->head.n_processes = 1;
	p->head.row.switches = SWITCH_OPS; /* what compiles would be seen */
	p->head.overhead = 0.01;
	p->head.recording_cost = 0.01;
}

/* A hundred durations of 10 ms. */
static void make_durations(struct made *m)
{
	const uint32_t at = hist_bucket((uint64_t)(10 * MS));

	m->durations = calloc(m->p->n_nodes + 8u, sizeof(*m->durations));
	ck_assert_ptr_nonnull(m->durations);
	m->hist[0] = STEPS;
	m->durations[m->step] = (struct profile_durations){.n = STEPS,
		.min_ns = (uint64_t)(9.9 * MS),
		.max_ns = (uint64_t)(10.1 * MS),
		.count = m->hist,
		.first = (uint16_t)at,
		.n_buckets = 1};
	m->p->durations = m->durations;
}

static void make_steps(struct made *m)
{
	uint32_t i;

	for (i = 0; i < STEPS; i++) {
		m->step_of[i] = (struct step){.number = i + 1,
			.begin_ns = (uint64_t)(i * 10 * MS),
			.end_ns = (uint64_t)((i + 1) * 10 * MS),
			.part_ns = {[PART_COMPUTE] = (uint64_t)(8.6 * MS),
				[PART_COMM] = (uint64_t)(0.3 * MS),
				[PART_COPY] = (uint64_t)(0.2 * MS),
				[PART_HOST] = (uint64_t)(0.9 * MS)},
			.ops = 107};
		m->memory[i] = 5e9 + (i % 3) * 1e6;
	}
	m->process = (struct steps_process){1000, -1, (double)NAN, (double)NAN};
	m->steps = (struct steps){.step = m->step_of,
		.n = STEPS,
		.process = &m->process,
		.n_processes = 1,
		.n_values = 1,
		.value_name = {"allocated (bytes)"},
		.value = {m->memory}};
	m->site[0] = (struct wait_site){.parent = PROFILE_NONE, .name = "step"};
	m->site[1] = (struct wait_site){0, gpu_classes[CLASS_COPY_WAIT].leaf, STEPS,
		(uint64_t)(STEPS * 0.3 * MS), (uint64_t)(STEPS * 0.05 * MS),
		(uint64_t)(STEPS * 0.05 * MS), (uint64_t)(STEPS * 0.05 * MS)};
	m->waits = (struct waits){.site = m->site, .n = 2};
}

static uint64_t rank_ns[RANKED * 8];

static void make_ranks(struct made *m)
{
	uint32_t k, i;

	m->ranks = (struct ranks){.p = profile_new(),
		.process = m->rank,
		.n = RANKED,
		.row = m->row,
		.n_rows = 3,
		.ns = rank_ns,
		.cost = COST_gpu_time};
	ck_assert_ptr_nonnull(m->ranks.p);
	m->rank_step = profile_add_node(m->ranks.p, 0, "step", NODE_SCOPE);
	m->rank_forward = profile_add_node(m->ranks.p, m->rank_step, "forward", NODE_SCOPE);
	m->rank_nccl = profile_add_node(
		m->ranks.p, m->rank_step, "ncclDevKernel_AllReduce_Sum", NODE_KERNEL);
	for (k = 0; k < RANKED; k++)
		m->rank[k] = (struct ranks_process){k + 1, 1000 + k, k, (uint64_t)(1000 * MS)};
	for (i = 0; i < 3; i++)
		m->row[i] = (struct ranks_row){m->rank_step + i, 2, RANKED,
			(uint64_t)((500 - 200 * i) * MS), (uint64_t)((510 - 200 * i) * MS),
			(uint64_t)((520 - 200 * i) * MS)};
}

static void gauge(struct made *m, uint32_t at, enum device_quantity q, double v)
{
	m->device.one[at].of[q] = (struct device_sum){1e9, 0, v, v, v};
}

static void rises(struct made *m, uint32_t at, enum device_quantity q, double sum)
{
	m->device.one[at].of[q] = (struct device_sum){1e9, sum, 0, 0, 0};
}

static void make_readings(struct made *m)
{
	m->device = (struct device_sums){.n = 2};
	m->device.one[1].gpu = UINT32_MAX;
	gauge(m, 0, DEVICE_sm_clock, 1900);
	gauge(m, 0, DEVICE_sm_clock_max, 1980);
	gauge(m, 0, DEVICE_memory_used, 60e9);
	gauge(m, 0, DEVICE_memory_total, 141e9);
	gauge(m, 0, DEVICE_tensor_active, 30);
	gauge(m, 0, DEVICE_sm_active, 60);
	gauge(m, 0, DEVICE_power, 690);
	gauge(m, 0, DEVICE_power_limit, 700);
	rises(m, 0, DEVICE_held_by_power, 0.02e9);
	rises(m, 0, DEVICE_held_by_heat, 0);
	rises(m, 0, DEVICE_xid_errors, 0);
	rises(m, 0, DEVICE_ecc_uncorrected, 0);
	rises(m, 1, DEVICE_io_wait, 0.01e9);
	rises(m, 1, DEVICE_cpu_wait, 0.02e9);
	rises(m, 1, DEVICE_memory_wait, 0);
}

static struct made *made(void)
{
	struct made *m = calloc(1, sizeof(*m));

	ck_assert_ptr_nonnull(m);
	make_tree(m);
	make_device(m);
	make_durations(m);
	make_steps(m);
	make_ranks(m);
	make_readings(m);
	m->sharing = 1;
	m->critical = (struct critical){.step = 50,
		.end_ns = (uint64_t)(10 * MS),
		.part_ns =
			{[CRITICAL_HOST] = (uint64_t)MS, [CRITICAL_COMPUTE] = (uint64_t)(9 * MS)},
		.row = {{"sm90_xmma_gemm_bf16", CRITICAL_COMPUTE, (uint64_t)(9 * MS), 100,
				0.9 * MS},
			{"forward", CRITICAL_HOST, (uint64_t)MS, 1, 0.1 * MS}},
		.n_rows = 2};
	return m;
}

/* What facts_read() would have read. The parts stay the made one's. */
static void judge(struct made *m, const char *set, struct bottlenecks *ret)
{
	struct rule_settings s;
	struct err e;
	struct facts *f;

	rule_defaults(&s);
	ck_assert(set == NULL || rule_set(&s, set, &e) == 0);
	ck_assert_int_eq(facts_new(m->p, NULL, &f), 0);
	f->stored = true;
	f->step = &m->steps;
	ck_assert_int_eq(pace_mark(&m->steps), 0);
	f->wait = m->no_waits ? NULL : &m->waits;
	f->rank = &m->ranks;
	f->device = &m->device;
	f->critical = &m->critical;
	f->sharing = m->sharing;
	if (m->leak.stored)
		f->leak = m->leak;
	bottlenecks_find(f, &s, ret);
	f->step = NULL;
	f->wait = NULL;
	f->rank = NULL;
	f->device = NULL;
	f->critical = NULL;
	facts_free(f);
}

static void made_free(struct made *m)
{
	m->p->durations = NULL;
	profile_free(m->p);
	profile_free(m->ranks.p);
	free(m->durations);
	free(m);
}

#endif
