/* SPDX-License-Identifier: MIT. launch_bench.c: what CUPTI's callbacks of a launch cost in us, less
 * those of a function that does nothing, in turns.
 *
 * Between two launches a program runs through other code and data, which push ours out of the
 * caches: cases with none of it, with little, and with more than the caches hold. Behind each
 * callback comes a locked instruction, as the driver has some, which waits for our stores. Printed
 * are medians of rounds; nothing is dropped. No CUPTI is in it: its own part of a launch is
 * measured on a GPU (tests/gpu).
 */
#include "job_engine.h"

#include <x86intrin.h>

#include "cupti_callback.h"
#include "cupti_name.h"

#define ROUNDS   15
#define BLOCK    128u /* bytes of code: two cache lines */
#define BLOCKS   8192u
#define DATA     (64u << 20)
#define LAUNCHES 100000u /* of a round, at most: a lane of 4 MiB holds them */
#define KERNELS  64u

static const struct {
	const char *name;
	uint32_t launches, blocks, lines;
} cases[] = {
	{"nothing between", LAUNCHES, 0, 0},
	{"25 KiB of code and 13 KiB of data", 20000, 200, 200},
	{"125 KiB of code and 63 KiB of data", 4000, 1000, 1000},
	{"1 MiB of code and 4 MiB of data", 400, 8192, 65536},
};

static unsigned char *code, *data;
static _Atomic int locked;
static int32_t result;

static void nothing(void *user, uint32_t domain, uint32_t cbid, const void *d)
{
	(void)user;
	(void)domain;
	(void)cbid;
	(void)d;
}

static void prepare(void)
{
	code = mmap(NULL, BLOCKS * BLOCK, PROT_READ | PROT_WRITE | PROT_EXEC,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	data = mmap(NULL, DATA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert(code != MAP_FAILED && data != MAP_FAILED);
	memset(code, 0x90, BLOCKS * BLOCK); /* nop */
	for (size_t i = BLOCK - 1; i < BLOCKS * BLOCK; i += BLOCK)
		code[i] = 0xc3; /* ret */
	memset(data, 1, DATA);
}

static uint32_t any(void)
{
	static uint64_t x = 1;

	x = x * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(x >> 32);
}

static void other_work(uint32_t blocks, uint32_t lines)
{
	void (*fn)(void);
	void *p;

	for (uint32_t i = 0; i < blocks; i++) {
		p = code + any() % BLOCKS * BLOCK;
		memcpy(&fn, &p, sizeof(fn));
		fn();
	}
	for (uint32_t i = 0; i < lines; i++)
		data[any() % DATA]++;
}

static uint64_t launch(cupti_callback_fn *fn, uint32_t n)
{
	static char kernel[KERNELS][64];
	struct cupti_callback d = {.site = SITE_ENTER,
		.symbol = kernel[n % KERNELS],
		.ret_value = &result,
		.correlation = n + 1};
	uint64_t began;

	if (kernel[n % KERNELS][0] == '\0')
		(void)snprintf(kernel[n % KERNELS], 64, "elementwise_kernel<%u>", n % KERNELS);
	_mm_lfence();
	began = __rdtsc();
	_mm_lfence();
	fn(NULL, DOMAIN_DRIVER, 307, &d);
	atomic_fetch_add(&locked, 1);
	d.site = SITE_EXIT;
	fn(NULL, DOMAIN_DRIVER, 307, &d);
	atomic_fetch_add(&locked, 1);
	_mm_lfence();
	return __rdtsc() - began;
}

static double ticks_of_one(
	cupti_callback_fn *fn, uint32_t launches, uint32_t blocks, uint32_t lines)
{
	uint64_t ticks = 0;

	for (uint32_t i = 0; i < launches; i++) {
		other_work(blocks, lines);
		ticks += launch(fn, i);
	}
	(void)view_walk(&t_v, NULL, NULL);
	return (double)ticks / launches;
}

static int by_size(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* ENTER and EXIT of a call, with what it calls of the driver: 0, nothing. */
static void call(uint32_t domain, uint32_t cbid, const char *name, uint32_t inside)
{
	static uint32_t correlation;
	struct cupti_callback d = {.site = SITE_ENTER,
		.function = name,
		.ret_value = &result,
		.correlation = ++correlation};
	struct cupti_callback in = d;

	cupti_on_callback(NULL, domain, cbid, &d);
	in.symbol = "elementwise_kernel";
	for (in.site = SITE_ENTER; inside != 0 && in.site <= SITE_EXIT; in.site++)
		cupti_on_callback(NULL, DOMAIN_DRIVER, inside, &in);
	d.site = SITE_EXIT;
	cupti_on_callback(NULL, domain, cbid, &d);
}

/* With the switch api: launches by the runtime, then calls that launch nothing. For valgrind, which
 * counts instructions of them (tests/scenario/test_pins.py); nothing is measured here. */
static int calls_only(uint32_t launches, uint32_t calls)
{
	static const struct engine_open o = {.n_lanes = 2, .lane_bytes = 4u << 20};

	t_open(&o, true);
	ck_assert_int_eq(t_e->want(WANT_ALL | WANT_API), 0);
	ck_assert_int_eq(cupti_name_init(), 0);
	atomic_store(&cupti.level, LEVEL_ON);
	cupti_set_odd(ODD_API, true);
	t_enter(t_new("step"));
	for (uint32_t i = 0; i < launches; i++)
		call(DOMAIN_RUNTIME, 211, "cudaLaunchKernel_v7000", 307);
	for (uint32_t i = 0; i < calls; i++)
		call(DOMAIN_RUNTIME, 317, "cudaStreamIsCapturing_v10000", 0);
	(void)view_walk(&t_v, NULL, NULL);
	ck_assert_uint_eq(view_dropped(&t_v), 0);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct engine_open o = {.n_lanes = 2, .lane_bytes = 4u << 20};
	const uint64_t ns = agent_monotonic_ns(), ticks = __rdtsc();
	double took[sizeof(cases) / sizeof(cases[0])][ROUNDS], a, b, ns_of_tick;

	if (argc == 4 && strcmp(argv[1], "calls") == 0)
		return calls_only((uint32_t)atoi(argv[2]), (uint32_t)atoi(argv[3]));
	t_open(&o, true);
	ck_assert_int_eq(t_e->want(WANT_ALL), 0);
	ck_assert_int_eq(cupti_name_init(), 0);
	atomic_store(&cupti.level, LEVEL_ON);
	prepare();
	t_enter(t_new("step"));
	for (int r = -1; r < ROUNDS; r++) /* the first is for the names */
		for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
			a = ticks_of_one(
				nothing, cases[i].launches, cases[i].blocks, cases[i].lines);
			b = ticks_of_one(cupti_on_callback, cases[i].launches, cases[i].blocks,
				cases[i].lines);
			if (r >= 0)
				took[i][r] = b - a;
		}
	ns_of_tick = (double)(agent_monotonic_ns() - ns) / (double)(__rdtsc() - ticks);
	ck_assert_uint_eq(view_dropped(&t_v), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		qsort(took[i], ROUNDS, sizeof(double), by_size);
		(void)printf("launch, %-36s median %5.1f ns, least %.1f, most %.1f\n",
			cases[i].name, took[i][ROUNDS / 2] * ns_of_tick, took[i][0] * ns_of_tick,
			took[i][ROUNDS - 1] * ns_of_tick);
	}
	return 0;
}
