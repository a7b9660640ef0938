/* SPDX-License-Identifier: MIT. view_rules.c: each rule on a made session in which it must speak, and on the clean one, of which
 * the faulty is a copy with one thing changed, in which all are silent. What is read out of a database is in view_facts.c. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "loss_terms.h"
#include "rules_made.h"

Suite *suite(void);

/* --- one thing is wrong */

/* The GPU has work for so many percent of each step. */
static void busy(struct made *m, double percent)
{
	uint32_t i;

	put(m, m->gemm, m->time, STEPS * (percent / 10 - 1.01) * MS);
	for (i = 0; i < STEPS; i++) {
		m->step_of[i].part_ns[PART_COMPUTE] = (uint64_t)((percent / 10 - 0.5) * MS);
		m->step_of[i].part_ns[PART_HOST] = (uint64_t)((10 - percent / 10) * MS);
	}
}

static void fault_data_loader(struct made *m)
{
	busy(m, 50);
	put(m, m->loader, m->cpu, STEPS * 4.5 * MS);
}

static void fault_cpu_gpu_sync(struct made *m)
{
	busy(m, 50);
	m->site[1].calls = STEPS * 50;
	m->site[1].blocked_ns = (uint64_t)(STEPS * 6 * MS);
	m->site[1].bubble_ns = (uint64_t)(STEPS * 4 * MS);
	m->site[1].sure_ns = m->site[1].gain_ns = (uint64_t)(STEPS * 3.9 * MS);
	put(m, m->wait, m->sync, STEPS * 6 * MS);
}

static void fault_sync_of_a_tree(struct made *m)
{
	fault_cpu_gpu_sync(m);
	m->no_waits = true;
}

static void fault_result_fetch(struct made *m)
{
	uint32_t i;

	busy(m, 50);
	put(m, m->d2h, m->copies, STEPS * 58);
	m->no_waits = true;
	for (i = 0; i < m->p->n_nodes; i++) /* no such switch */
		m->p->value[(size_t)i * m->p->n_metrics + m->sync].type = VALUE_NONE;
	m->p->metric[m->sync].name = "other";
}

static void fault_alloc_in_loop(struct made *m)
{
	busy(m, 81);
	(void)call(m, m->forward, CLASS_FREE, STEPS * 2, STEPS * 1.5 * MS);
}

static void fault_alloc_of_a_tree(struct made *m)
{
	busy(m, 60);
	fault_alloc_in_loop(m);
	m->no_waits = true;
}

static void fault_pin_in_loop(struct made *m)
{
	(void)call(m, m->forward, CLASS_REGISTER, STEPS * 2, STEPS * 0.5 * MS);
}

static void fault_host_alone(struct made *m)
{
	busy(m, 50);
	(void)scope(m, m->step, "augment", STEPS, STEPS * 4 * MS);
}

static void fault_launch_bound(struct made *m)
{
	uint32_t i;

	busy(m, 40);
	put(m, m->gemm, m->count, STEPS * 1000);
	for (i = 0; i < STEPS; i++)
		m->step_of[i].ops = 1007;
}

/* Much is launched, but idle time is the loader's, or that of a scope which launches nothing. */
static void fault_loader_of_many_launches(struct made *m)
{
	fault_launch_bound(m);
	put(m, m->loader, m->cpu, STEPS * 5 * MS);
}

static void fault_alone_of_many_launches(struct made *m)
{
	fault_launch_bound(m);
	(void)scope(m, m->step, "augment", STEPS, STEPS * 5 * MS);
}

/* The GPU is busy for half of the time, and the step is not shorter for it. */
static void fault_critical_host(struct made *m)
{
	busy(m, 50);
	m->critical.part_ns[CRITICAL_HOST] = (uint64_t)(6 * MS);
	m->critical.part_ns[CRITICAL_COMPUTE] = (uint64_t)(4 * MS);
	m->critical.row[1].ns = (uint64_t)(5 * MS);
	m->critical.row[1].gain_ns = 0.3 * MS;
}

static void fault_gpu_idle(struct made *m)
{
	busy(m, 30);
}

static void part(struct made *m, enum gpu_part p)
{
	uint32_t i;

	for (i = 0; i < STEPS; i++) {
		m->step_of[i].part_ns[PART_COMPUTE] -= (uint64_t)(2 * MS);
		m->step_of[i].part_ns[p] += (uint64_t)(2 * MS);
	}
	m->p->device[0].part_ns[PART_COMPUTE] -= (uint64_t)(200 * MS);
	m->p->device[0].part_ns[p] += (uint64_t)(200 * MS);
}

static void fault_queued_wait(struct made *m)
{
	part(m, PART_QUEUED);
}

static void fault_exposed_comm(struct made *m)
{
	part(m, PART_COMM);
}

static void fault_exposed_copy(struct made *m)
{
	part(m, PART_COPY);
}

/* Sums alone: of the session, as the steps have none. */
static void fault_copy_of_a_tree(struct made *m)
{
	part(m, PART_COPY);
	m->steps.n = 0;
}

/* And what is copied before the steps is not theirs. */
static void copies_before(struct made *m)
{
	m->p->device[0].part_ns[PART_COMPUTE] -= (uint64_t)(200 * MS);
	m->p->device[0].part_ns[PART_COPY] += (uint64_t)(200 * MS);
}

static void fault_small_copies(struct made *m)
{
	put(m, m->h2d, m->copies, STEPS * 80);
	put(m, m->h2d, m->bytes, STEPS * 80 * 1000.0);
}

static void fault_small_grid(struct made *m)
{
	m->p->config[0].grid[0] = 16;
}

static void fault_odd_blocks(struct made *m)
{
	m->p->config[0].block[0] = 33;
}

/* Kernels of another kind with the time of the first: 132 threads of an SM each. */
static void another_kernel(struct made *m, const char *name, uint32_t grid, uint32_t registers)
{
	const uint32_t at = kernel(m, m->forward, name, STEPS * 100, STEPS * 4 * MS);

	put(m, m->gemm, m->time, STEPS * 4 * MS);
	m->p->config[m->p->n_configs++] = (struct profile_config){
		at, {grid, 1, 1}, {128, 1, 1}, registers, 0, 0, STEPS * 100};
}

static void fault_low_occupancy(struct made *m)
{
	another_kernel(m, "solver", 132 * 30, 255); /* two blocks of four warps */
}

/* A block of eight warps for each half of an SM, and 40 more. */
static void fault_tail_effect(struct made *m)
{
	m->p->config[0].grid[0] = 264 + 40;
}

/* Fifty sizes, none of them in half of the steps. */
static void fault_shape_varies(struct made *m)
{
	struct profile_config *c = m->p->config;
	uint32_t i;

	for (i = 0; i < STEPS / 2; i++) {
		c[i] = c[0];
		c[i].grid[0] = 264 * (1 + i);
		c[i].count = 40;
	}
	m->p->n_configs = STEPS / 2;
	put(m, m->gemm, m->count, STEPS / 2 * 40);
}

/* A size for each step, of which the session knows the first: the others are launches without one. */
static void fault_more_shapes_than_are_told_apart(struct made *m)
{
	struct profile_config *c = m->p->config;
	uint32_t i;

	for (i = 0; i < CONFIGS_A_NODE; i++) {
		c[i] = c[0];
		c[i].grid[0] = 264 * (1 + i);
		c[i].count = 1;
	}
	m->p->n_configs = CONFIGS_A_NODE;
	put(m, m->gemm, m->count, STEPS);
}

static void fault_memory_layout(struct made *m)
{
	put(m, m->gemm, m->time, STEPS * 7 * MS);
	(void)kernel(
		m, m->forward, "cudnn::ops::nchwToNhwcKernel<float>", STEPS * 50, STEPS * 1 * MS);
}

static void fault_memory_bound(struct made *m)
{
	put(m, m->gemm, m->time, STEPS * 4 * MS);
	(void)kernel(m, m->forward, "vectorized_elementwise_kernel<4>", STEPS * 50, STEPS * 4 * MS);
}

static void fault_unfused_optimizer(struct made *m)
{
	put(m, m->adam, m->count, STEPS * 400);
}

static void fault_no_tensor_cores(struct made *m)
{
	gauge(m, 0, DEVICE_tensor_active, 0.01);
}

static void fault_uneven_gpus(struct made *m)
{
	m->p->n_devices = 2;
	m->p->device[1].busy_ns = (uint64_t)(400 * MS);
	m->p->device[1].part_ns[PART_COMPUTE] -= (uint64_t)(510 * MS);
	m->p->device[1].part_ns[PART_HOST] += (uint64_t)(510 * MS);
}

static void fault_slow_rank(struct made *m)
{
	m->row[0].max_ns = (uint64_t)(900 * MS);
	m->row[1].max_ns = (uint64_t)(690 * MS);
}

static void fault_shared_gpu(struct made *m)
{
	m->sharing = 2;
}

static void fault_jitter_of_a_tree(struct made *m)
{
	const uint32_t first = m->durations[m->step].first,
		       second = hist_bucket((uint64_t)(18 * MS));

	m->hist[0] = STEPS * 7 / 10;
	m->hist[second - first] = STEPS * 3 / 10;
	m->durations[m->step].n_buckets = (uint16_t)(second - first + 1);
	m->durations[m->step].max_ns = (uint64_t)(19 * MS);
	put(m, m->step, m->cpu, STEPS * 11 * MS);
	m->steps.left_out = 1; /* the timeline does not have them all */
}

static void longer(struct made *m, uint32_t step, double ms)
{
	m->step_of[step].end_ns += (uint64_t)(ms * MS);
}

static void fault_jitter(struct made *m)
{
	uint32_t i;

	busy(m, 85);
	for (i = 0; i < 3 * STEPS / 10; i++)
		longer(m, 3 * i + 5, 8);
}

/* Slow ones, but of two kinds, and that is how it is. */
static void fault_jitter_of_two_kinds(struct made *m)
{
	uint32_t i;

	busy(m, 85);
	for (i = 10; i < 30; i++)
		longer(m, 3 * i, 20);
}

static void fault_slow_steps(struct made *m)
{
	longer(m, 40, 60);
	longer(m, 80, 90);
}

static void compiles(struct made *m, uint32_t first, uint32_t every)
{
	uint32_t i;

	for (i = first; i < STEPS; i += every) {
		m->step_of[i].compiles = 2;
		m->step_of[i].compile_ns = (uint64_t)(3 * MS);
	}
}

static void fault_recompiles(struct made *m)
{
	compiles(m, 3, 4);
}

static void fault_warm_up(struct made *m)
{
	longer(m, 0, 300);
	longer(m, 1, 100);
}

static void fault_memory_leak(struct made *m)
{
	uint32_t i;

	for (i = 0; i < STEPS; i++)
		m->memory[i] += i * 1e6;
}

/* The driver's memory grows, and torch tells nothing of its own. */
static void fault_leak_of_the_driver(struct made *m)
{
	m->steps.n_values = 0;
	m->leak = (struct leak){.stored = true,
		.known = true,
		.g = {.known = true,
			.grows = true,
			.slope = 2e6,
			.low = 2e6,
			.high = 2e6,
			.last = 3e9},
		.steps = STEPS,
		.node = m->step,
		.share = 0.75};
}

static void fault_mem_pressure(struct made *m)
{
	gauge(m, 0, DEVICE_memory_used, 139e9);
}

/* Too short for the counters, which are read once a minute. */
static void fault_clock_by_power(struct made *m)
{
	m->device.one[0].of[DEVICE_held_by_power].known_ns = 0;
	gauge(m, 0, DEVICE_sm_clock, 1500);
}

static void fault_clock_throttle(struct made *m)
{
	gauge(m, 0, DEVICE_sm_clock, 1100);
	rises(m, 0, DEVICE_held_by_heat, 0.9e9);
}

static void fault_gpu_errors(struct made *m)
{
	rises(m, 0, DEVICE_xid_errors, 2);
}

static void fault_io_wait(struct made *m)
{
	rises(m, 1, DEVICE_io_wait, 0.4e9);
}

static void fault_host_pressure(struct made *m)
{
	rises(m, 1, DEVICE_cpu_wait, 0.6e9);
}

static void fault_dropped_records(struct made *m)
{
	m->p->head.losses = calloc(1, sizeof(*m->p->head.losses)); /* the profile's */
	ck_assert_ptr_nonnull(m->p->head.losses);
	m->p->head.losses[0] = (struct profile_loss){LOST_LANE_FULL, 5000, false};
	m->p->head.n_losses = 1;
}

static void fault_own_overhead(struct made *m)
{
	m->p->head.recording_cost = 0.2;
}

static const struct {
	const char *rule;
	void (*make)(struct made *m);
	enum severity severity;
	const char *beside; /* rules that may speak, too: what they say is true of the same */
	const char *words;
} faults[] = {
#define SAME(id, severity, beside, words)                           \
	{                                                           \
#id, fault_##id, SEVERITY_##severity, beside, words \
	}
	SAME(data_loader, HIGH, "gpu_idle", "waits 45.0% of the steps"),
	SAME(cpu_gpu_sync, HIGH, "gpu_idle",
		"50.0 times a step the host waits for the GPU, 120.0 us each"),
	{"cpu_gpu_sync", fault_sync_of_a_tree, SEVERITY_HIGH, "gpu_idle",
		"waits 60.0% of the steps"},
	SAME(result_fetch, MEDIUM, "gpu_idle", "58.0 times a step"),
	SAME(alloc_in_loop, MEDIUM, "",
		"2.0 times a step device memory is allocated or freed: 15.0%"),
	{"alloc_in_loop", fault_alloc_of_a_tree, SEVERITY_MEDIUM, "gpu_idle cpu_gpu_sync",
		"15.0% of the steps"},
	SAME(pin_in_loop, LOW, "", "2.0 times a step"),
	SAME(host_alone, HIGH, "gpu_idle", "for 40.0% of the steps"),
	SAME(launch_bound, HIGH, "gpu_idle", "a CUDA graph can hold one"),
	{"data_loader", fault_loader_of_many_launches, SEVERITY_HIGH, "gpu_idle",
		"50.0% of the steps"},
	{"host_alone", fault_alone_of_many_launches, SEVERITY_HIGH, "gpu_idle",
		"50.0% of the steps"},
	SAME(critical_host, MEDIUM, "gpu_idle",
		"60.0% of the critical path of step 50, one of median length; with its largest "
		"part, "
		"50.0%, a tenth faster the step would be 3.0% shorter"),
	SAME(gpu_idle, MEDIUM, "", "had work for 30.0% of the time"),
	SAME(queued_wait, MEDIUM, "", "21.0% of the recorded time"),
	SAME(exposed_comm, MEDIUM, "", "23.0% of the steps"),
	SAME(exposed_copy, MEDIUM, "", "22.0% of the steps"),
	{"exposed_copy", fault_copy_of_a_tree, SEVERITY_MEDIUM, "", "22.0% of the recorded time"},
	SAME(small_copies, LOW, "", "80.0 copies a step"),
	SAME(small_grid, MEDIUM, "", "with fewer blocks than it has SMs"),
	SAME(odd_blocks, LOW, "", "no multiple of 32"),
	SAME(low_occupancy, LOW, "", "of the largest 12%, held back by registers"),
	SAME(tail_effect, MEDIUM, "", "1.15 waves"),
	SAME(shape_varies, LOW, "", "the largest kernel's in 50 of them"),
	{"shape_varies", fault_more_shapes_than_are_told_apart, SEVERITY_LOW, "",
		"the largest kernel's in more than 8 of them"},
	SAME(memory_layout, MEDIUM, "", "turns one order of axes"),
	SAME(memory_bound, LOW, "", "44.4% of the GPU's work"),
	SAME(unfused_optimizer, LOW, "", "launches 400 pieces of work, of 1.2 us"),
	SAME(no_tensor_cores, MEDIUM, "", "while SMs worked tensor cores did for 0.02%"),
	SAME(uneven_gpus, MEDIUM, "", "busy for 91.0% of the time, another for 40.0%"),
	SAME(slow_rank, HIGH, "", "Rank 2 takes 2.2 times the median here"),
	SAME(shared_gpu, LOW, "", "2 processes"),
	SAME(jitter, MEDIUM, "", "a tenth 18."),
	{"jitter", fault_jitter_of_a_tree, SEVERITY_LOW, "", "a tenth 18."},
	{"jitter", fault_jitter_of_two_kinds, SEVERITY_MEDIUM, "", "a tenth 30."},
	SAME(slow_steps, MEDIUM, "", "2 of 100 steps"),
	SAME(recompiles, LOW, "", "in 25 of 97 steps, 50 times: 7.5% of the steps"),
	SAME(warm_up, LOW, "", "The first 2 steps take over 1.5 times"),
	SAME(memory_leak, MEDIUM, "", "Memory leak: 1.00 MB a step"),
	{"memory_leak", fault_leak_of_the_driver, SEVERITY_MEDIUM, "",
		"2.00 MB a step (95%: 2.00 to 2.00), 3000 MB at the end; at that rate the GPU's "
		"memory is "
		"used up in 69000 steps; 75% of what stays was allocated here."},
	SAME(mem_pressure, LOW, "", "98.6% of a GPU's memory"),
	SAME(clock_throttle, HIGH, "", "held by heat; they were 1100 MHz of 1980"),
	{"clock_throttle", fault_clock_by_power, SEVERITY_MEDIUM, "",
		"took 690 W of the 700 W it may take, and its clocks were 1500 MHz of 1980"},
	SAME(gpu_errors, HIGH, "", "2 errors"),
	SAME(io_wait, LOW, "", "For 40.0% of the time"),
	SAME(host_pressure, LOW, "", "For 60.0% of the time"),
	SAME(dropped_records, MEDIUM, "", "5000 events were lost"),
	SAME(own_overhead, MEDIUM, "", "takes 20.0% longer"),
#undef SAME
};
#define FAULTS (sizeof(faults) / sizeof(*faults))

START_TEST(all_are_silent_where_nothing_is_wrong)
{
	struct bottlenecks b;
	struct made *m = made();
	uint32_t i;

	judge(m, NULL, &b);
	for (i = 0; i < b.n; i++)
		ck_abort_msg("%s: %s", rule_rows[b.verdict[i].rule].id, b.verdict[i].words);
	for (i = 0; i < RULE_N; i++)
		ck_assert_msg(b.rule[i].state == RULE_CLEAN, "%s did not judge", rule_rows[i].id);
	made_free(m);
}
END_TEST

/* It speaks, and no other does; of rules that the fault blinds, none. */
START_TEST(a_fault)
{
	struct bottlenecks b;
	struct made *m = made();
	uint32_t i, n = 0;

	faults[_i].make(m);
	judge(m, NULL, &b);
	for (i = 0; i < b.n; i++) {
		const struct verdict *v = &b.verdict[i];
		const char *id = rule_rows[v->rule].id;

		if (strcmp(id, faults[_i].rule) == 0) {
			n++;
			ck_assert_msg(v->severity == faults[_i].severity, "%s: %s %s", id,
				severity_words[v->severity], v->words);
			ck_assert_msg(strstr(v->words, faults[_i].words) != NULL, "%s", v->words);
			ck_assert(*v->advice != '\0');
			/* The step that the page goes to: of a slow one the slowest, of the first ones the first. */
			ck_assert_uint_eq(v->step, v->rule == RULE_slow_steps ? 81u
						   : v->rule == RULE_warm_up  ? 1u
									      : 0u);
			ck_assert(
				isnan(v->gain_ns) || (v->gain_ns >= 0 && v->gain_ns <= 3000 * MS));
		} else {
			ck_assert_msg(strstr(faults[_i].beside, id) != NULL,
				"%s speaks beside %s: %s", id, faults[_i].rule, v->words);
		}
	}
	ck_assert_msg(n == 1, "%s: %u verdicts", faults[_i].rule, n);
	ck_assert_str_eq(rule_rows[b.verdict[0].rule].id, faults[_i].rule);
	made_free(m);
}
END_TEST

START_TEST(each_rule_has_a_fault)
{
	uint32_t i, k;

	for (i = 0; i < RULE_N; i++) {
		for (k = 0; k < FAULTS && strcmp(faults[k].rule, rule_rows[i].id) != 0; k++)
			;
		ck_assert_msg(k < FAULTS, "nothing here makes %s speak", rule_rows[i].id);
	}
}
END_TEST

/* --- what is near to a fault, and none */

static void late_only_in_what_waits(struct made *m)
{
	m->row[0].max_ns = (uint64_t)(900 * MS); /* a rank that waits for the slow one */
	m->row[0].slowest = m->row[2].slowest = 1;
	m->row[2].max_ns = (uint64_t)(500 * MS);
}

static void waits_that_cost_nothing(struct made *m)
{
	m->site[1].blocked_ns = (uint64_t)(STEPS * 8 * MS);
	put(m, m->wait, m->sync, STEPS * 8 * MS);
}

static void waits_of_a_busy_gpu(struct made *m)
{
	waits_that_cost_nothing(m);
	m->no_waits = true;
}

static void a_scope_that_waits(struct made *m)
{
	const uint32_t log = scope(m, m->step, "log", STEPS, STEPS * 3 * MS);

	(void)call(m, log, CLASS_STREAM_SYNC, STEPS, STEPS * 2.9 * MS);
	put(m, m->wait, m->sync, 0);
}

static void one_slow_step(struct made *m)
{
	longer(m, 50, 30);
}

/* Killed in a step: how long it would have taken nobody knows. */
static void a_step_that_was_cut_off(struct made *m)
{
	longer(m, STEPS - 1, 900);
	m->step_of[STEPS - 1].cut = true;
}

static void uneven_steps_of_a_busy_gpu(struct made *m)
{
	fault_jitter(m);
	busy(m, 99.9);
}

static void uneven_steps_around_their_median(struct made *m)
{
	uint32_t i;

	fault_jitter(m);
	for (i = 0; i < 4 * STEPS / 10; i++)
		m->step_of[2 * i + 4].end_ns -= (uint64_t)(6 * MS);
}

/* An optimizer that calls a closure has the passes below it, with all their small kernels. */
static void a_closure(struct made *m)
{
	const uint32_t forward = scope(m, m->optimizer, "forward", STEPS, STEPS * 0.3 * MS);

	(void)kernel(m, forward, "sm90_xmma_gemm_small", STEPS * 400, STEPS * 0.2 * MS);
}

/* Nearly as many blocks as SMs: what is lost is little. */
static void a_block_less_than_sms(struct made *m)
{
	m->p->config[0].grid[0] = 128;
}

static void fills_and_stays(struct made *m)
{
	uint32_t i;

	for (i = 0; i < STEPS; i++)
		m->memory[i] += (i < 30 ? i : 30) * 50e6;
}

static void a_kernel_outside(struct made *m)
{
	busy(m, 30); /* most of the work stands in a thread of its own: the steps' scopes do not say who was idle */
	(void)kernel(m, 0, "elsewhere_gemm", 1000, 900 * MS);
	(void)scope(m, m->step, "backward", STEPS, STEPS * 4 * MS);
}

/* All of the path is the host's where the GPU is busy beside it: nothing to mend. */
static void a_host_that_is_ahead(struct made *m)
{
	fault_critical_host(m);
	busy(m, 90);
}

static void compiled_first(struct made *m)
{
	m->step_of[0].compiles = m->step_of[2].compiles = 9;
	m->step_of[0].compile_ns = m->step_of[2].compile_ns = (uint64_t)(9 * MS);
}

/* A multiplication holds few warps by design; grids of whole waves, and of many, have no tail to speak of. */
static void a_kernel_that_holds_few(struct made *m)
{
	another_kernel(m, "nvjet_sm90_tst", 132 * 30, 255);
}

static void waves_that_are_many(struct made *m)
{
	m->p->config[0].grid[0] = 264 * 4 + 40;
}

/* Layers of many sizes, each of them in each step; and a last batch that is smaller. */
static void sizes_that_come_again(struct made *m)
{
	struct profile_config *c = m->p->config;
	uint32_t i;

	for (i = 0; i < 51; i++) {
		c[i] = c[0];
		c[i].grid[0] = 264 * (1 + i);
		c[i].count = i < 50 ? 2 * STEPS - 1 : 50;
	}
	m->p->n_configs = 51;
}

/* Sizes of a kernel that ran in graphs, too: those have none. */
static void few_sizes_and_some_unknown(struct made *m)
{
	fault_more_shapes_than_are_told_apart(m);
	m->p->n_configs = CONFIGS_A_NODE - 1;
}

static void a_matrix_that_is_transposed(struct made *m)
{
	put(m, m->gemm, m->time, STEPS * 7 * MS);
	(void)kernel(m, m->forward, "gemm_transposed_b", STEPS * 50, STEPS * 1 * MS);
}

static const struct {
	void (*make)(struct made *m);
	const char *note_of; /* a rule that says why it is silent; "": none */
	const char *words;   /* of that; NULL: any */
} twins[] = {
	{late_only_in_what_waits, "", NULL},
	{waits_that_cost_nothing, "cpu_gpu_sync", NULL},
	{waits_of_a_busy_gpu, "cpu_gpu_sync", NULL},
	{a_scope_that_waits, "", NULL},
	{one_slow_step, "", NULL},
	{a_step_that_was_cut_off, "slow_steps", NULL},
	{uneven_steps_of_a_busy_gpu, "jitter", "the GPU had work all the time"},
	{uneven_steps_around_their_median, "jitter", "others are shorter by as much"},
	{fills_and_stays, "", NULL},
	{a_closure, "", NULL},
	{a_block_less_than_sms, "", NULL},
	{a_host_that_is_ahead, "", NULL},
	{compiled_first, "", NULL},
	{a_kernel_that_holds_few, "", NULL},
	{waves_that_are_many, "", NULL},
	{sizes_that_come_again, "", NULL},
	{few_sizes_and_some_unknown, "", NULL},
	{a_matrix_that_is_transposed, "", NULL},
	{copies_before, "", NULL},
	{a_kernel_outside, "", NULL},
};

START_TEST(near_and_none)
{
	struct bottlenecks b;
	struct made *m = made();
	uint32_t i;

	twins[_i].make(m);
	judge(m, NULL, &b);
	for (i = 0; i < b.n; i++)
		ck_abort_msg("%s: %s", rule_rows[b.verdict[i].rule].id, b.verdict[i].words);
	for (i = 0; i < RULE_N; i++)
		ck_assert_int_eq(
			*b.rule[i].note != '\0', strcmp(rule_rows[i].id, twins[_i].note_of) == 0);
	for (i = 0; twins[_i].words != NULL && i < RULE_N; i++)
		if (*b.rule[i].note != '\0')
			ck_assert_msg(strstr(b.rule[i].note, twins[_i].words) != NULL, "%s",
				b.rule[i].note);
	made_free(m);
}
END_TEST

/* --- limits, order, and what is not there */

START_TEST(limits)
{
	static const char *const wrong[] = {"", "x", "x=1", "data_loader=1",
		"data_loader.threshold=", "data_loader.threshold=x", "data_loader.threshold=-1",
		"data_loader.threshold=inf", "severity.low=3", "preset=hard", "jitter.threshold=1,",
		"=", "=1", ".threshold=1", "preset"};
	struct rule_settings s;
	struct bottlenecks b;
	struct made *m = made();
	struct err e;
	uint32_t i;

	for (i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		rule_defaults(&s);
		ck_assert_msg(rule_set(&s, wrong[i], &e) == -EINVAL, "'%s'", wrong[i]);
		ck_assert_str_ne(e.text, "");
	}
	judge(m, "data_loader.threshold=1,exposed_comm.threshold=2.5", &b);
	ck_assert_uint_eq(b.n, 2);
	ck_assert_int_eq(b.verdict[0].severity, SEVERITY_LOW);
	judge(m, "data_loader.threshold=1,severity.medium=1.5,severity.high=1.9", &b);
	ck_assert_uint_eq(b.n, 1);
	ck_assert_int_eq(b.verdict[0].severity, SEVERITY_HIGH);
	rule_defaults(&s);
	ck_assert_int_eq(rule_set(&s, "preset=strict", &e), 0);
	ck_assert(s.high == 20 && s.medium == 5 && s.threshold[RULE_memory_leak] == 5);
	ck_assert_int_eq(rule_set(&s, "preset=default,jitter.threshold=7", &e), 0);
	ck_assert(s.high == 30 && s.threshold[RULE_jitter] == 7);
	made_free(m);
}
END_TEST

/* Of another profiler's file a launch is a scope, and its work stands beside it; why the GPU was idle it may not say. */
START_TEST(what_a_file_has)
{
	static const char *const calls[] = {
		"cudaLaunchKernel_v7000", "cuLaunchKernel", "hipLaunchKernel"};
	struct bottlenecks b;
	struct made *m = made();
	uint32_t i;

	busy(m, 50);
	for (i = 0; i < 3; i++)
		(void)scope(m, m->step, calls[i], STEPS, STEPS * 2 * MS);
	judge(m, NULL, &b);
	ck_assert_int_eq(b.rule[RULE_host_alone].state, RULE_CLEAN);
	(void)scope(m, m->step, "cudnn tuning", STEPS, STEPS * 2 * MS);
	judge(m, NULL, &b);
	ck_assert_int_eq(b.rule[RULE_host_alone].state, RULE_FOUND);
	part(m, PART_UNKNOWN);
	judge(m, NULL, &b);
	ck_assert_int_eq(b.rule[RULE_queued_wait].state, RULE_UNSURE);
	ck_assert_ptr_nonnull(strstr(b.rule[RULE_queued_wait].note, "is not known"));
	made_free(m);
}
END_TEST

/* What slow steps take is made of what others say, too; of a LOW nobody cares. */
START_TEST(claimed_twice)
{
	struct bottlenecks b;
	struct made *m = made();
	uint32_t i;

	fault_slow_steps(m);
	fault_exposed_copy(m);
	judge(m, "severity.medium=1,severity.high=2", &b);
	ck_assert_ptr_nonnull(
		strstr(b.rule[RULE_slow_steps].note, "exposed_copy may give back the same time"));
	ck_assert_ptr_nonnull(strstr(b.rule[RULE_exposed_copy].note, "slow_steps may give back"));
	judge(m, "severity.medium=99,severity.high=99", &b);
	ck_assert_str_eq(b.rule[RULE_slow_steps].note, "");
	made_free(m);
	m = made(); /* with a timeline and `sync` there is nothing more to record */
	busy(m, 50);
	judge(m, NULL, &b);
	for (i = 0; i < b.n && b.verdict[i].rule != RULE_gpu_idle; i++)
		;
	ck_assert(i < b.n && strstr(b.verdict[i].advice, "record with") == NULL);
	made_free(m);
}
END_TEST

START_TEST(the_worst_comes_first)
{
	struct bottlenecks b;
	struct made *m = made();
	uint32_t i;

	fault_alloc_in_loop(m);
	fault_data_loader(m);
	fault_shared_gpu(m);
	fault_gpu_errors(m);
	judge(m, NULL, &b);
	ck_assert_uint_eq(b.n, 5);
	ck_assert_int_eq(b.verdict[0].rule, RULE_data_loader);
	ck_assert_int_eq(b.verdict[4].rule, RULE_shared_gpu);
	for (i = 1; i < b.n; i++)
		ck_assert(b.verdict[i].severity <= b.verdict[i - 1].severity);
	ck_assert_ptr_nonnull(strstr(b.rule[RULE_data_loader].note, "alloc_in_loop may give back"));
	made_free(m);
}
END_TEST

/* A job may give its metrics our names: what is no number of nanoseconds does not count. */
START_TEST(what_a_job_tells)
{
	static const double lies[] = {INFINITY, -INFINITY, (double)NAN, -1e300};
	struct bottlenecks b;
	struct made *m = made();
	uint32_t i, k;

	for (i = 0; i < sizeof(lies) / sizeof(*lies); i++) {
		ck_assert_int_eq(profile_set(m->p, m->step, m->cpu,
					 (struct value){.type = VALUE_F64, .f = lies[i]}),
			0);
		judge(m, NULL, &b);
		for (k = 0; k < b.n; k++)
			ck_assert_msg(strstr(b.verdict[k].words, "inf") == NULL &&
					      strstr(b.verdict[k].words, "nan") == NULL,
				"%s", b.verdict[k].words);
	}
	ck_assert_int_eq(
		profile_set(m->p, m->step, m->cpu, (struct value){.type = VALUE_STR, .s = "long"}),
		0);
	judge(m, NULL, &b);
	made_free(m);
}
END_TEST

START_TEST(times_in_words)
{
	struct time_words t;

	ck_assert_str_eq(time_words(0, &t), "0 ns");
	ck_assert_str_eq(time_words(999, &t), "999 ns");
	ck_assert_str_eq(time_words(1500, &t), "1.5 us");
	ck_assert_str_eq(time_words(12.3456e6, &t), "12.346 ms");
	ck_assert_str_eq(time_words(90e9, &t), "90.00 s");
	ck_assert_str_eq(time_words(1e18, &t), "1000000000.00 s");
}
END_TEST

/* Of an empty tree nothing is said, and each rule that judges nothing says what it lacks. */
START_TEST(nothing_at_all)
{
	struct rule_settings s;
	struct bottlenecks b;
	struct profile *p = profile_new();
	struct facts *f;
	uint32_t i;

	p->head.overhead = p->head.recording_cost = (double)NAN;
	rule_defaults(&s);
	ck_assert_int_eq(facts_new(p, NULL, &f), 0);
	bottlenecks_find(f, &s, &b);
	ck_assert_uint_eq(b.n, 0);
	for (i = 0; i < RULE_N; i++)
		ck_assert_msg(b.rule[i].state == RULE_LACKS && b.rule[i].lacks != 0, "%s",
			rule_rows[i].id);
	facts_free(f);
	profile_free(p);
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("view_rules");
	TCase *t = tcase_create("rules");

	tcase_add_test(t, all_are_silent_where_nothing_is_wrong);
	tcase_add_loop_test(t, a_fault, 0, FAULTS);
	tcase_add_test(t, each_rule_has_a_fault);
	tcase_add_loop_test(t, near_and_none, 0, sizeof(twins) / sizeof(*twins));
	tcase_add_test(t, limits);
	tcase_add_test(t, what_a_file_has);
	tcase_add_test(t, claimed_twice);
	tcase_add_test(t, the_worst_comes_first);
	tcase_add_test(t, what_a_job_tells);
	tcase_add_test(t, times_in_words);
	tcase_add_test(t, nothing_at_all);
	suite_add_tcase(s, t);
	return s;
}
