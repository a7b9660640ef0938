/* SPDX-License-Identifier: MIT. gen.c: makes small raw dumps by hand, where no GPU was there to
 * record.
 *
 * gen CASE LIBRARY FILE. CASE: eager threads graph midcapture copies running unload many failed
 * waits critical overhead allocs leak steps
 * LIBRARY: 10.2 11.1 11.4 11.8 12.4 13.0, whose strides and fields the records have.
 * A synthetic dump says what we believe of CUPTI; only a recorded one says what CUPTI does.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../agent/backend/cupti/cupti_abi.h"
#include "../../agent/backend/cupti/cupti_dump_file.h"
#include "../../proto/abi/ring.h"

#define BUFFER_BYTES (1u << 20)
#define PATH_STEPS   8u

/* clang-format off */
static const struct library {
	const char *name;
	uint32_t version;
	uint16_t copy, set, kernel, peer, overhead, memory, pool;
} libraries[] = {
	{"10.2", 12, 64, 64, 144, 72, 40, 0, 0},        {"11.1", 14, 80, 80, 160, 88, 40, 0, 0},
	{"11.4", 14, 80, 80, 168, 88, 40, 112, 64},     {"11.8", 18, 88, 88, 200, 96, 40, 120, 72},
	{"12.4", 22, 88, 88, 208, 96, 56, 120, 72},     {"13.0", 130001, 96, 88, 216, 96, 56, 128, 80},
};
/* clang-format on */

enum cbid {
	LAUNCH = 307,
	LAUNCH_EX = 652,
	GRAPH_LAUNCH = 514,
	H2D = 277,
	D2H = 279,
	D2D = 281,
	PEER = 319,
	SET8 = 216,
	BATCH = 776,
	BEGIN = 539,
	END = 497,
};

static struct {
	FILE *f;
	const struct library *lib;
	uint64_t seq;
	uint64_t clock;
	const char *text[256];
	uint32_t n_text;
	uint8_t bytes[BUFFER_BYTES];
	size_t used;
	struct dump_fixup fixup[16384];
	uint32_t n_fixups;
	uint32_t correlation;
	uint32_t thread;
	struct dump_step path[PATH_STEPS];
	uint32_t n_path;
} g = {.clock = 1700000000000000000ull};

static void put(const void *p, size_t n)
{
	if (fwrite(p, 1, n, g.f) != n) {
		(void)fprintf(stderr, "gen: write: %s\n", strerror(errno));
		exit(1);
	}
}

static void chunk(enum dump_type type, size_t bytes)
{
	const struct dump_chunk c = {type, (uint32_t)bytes, g.seq++};

	put(&c, sizeof(c));
}

static void pad(size_t bytes)
{
	put("\0\0\0\0\0\0\0", (8 - bytes % 8) % 8);
}

static uint32_t text(const char *t)
{
	struct dump_string s = {.bytes = (uint32_t)strlen(t)};
	uint32_t i;

	for (i = 0; i < g.n_text; i++)
		if (strcmp(g.text[i], t) == 0)
			return i + 1;
	if (g.n_text == sizeof(g.text) / sizeof(g.text[0]))
		exit(1);
	g.text[g.n_text++] = strdup(t);
	s.id = g.n_text;
	chunk(DUMP_STRING, sizeof(s) + s.bytes);
	put(&s, sizeof(s));
	put(t, s.bytes);
	pad(sizeof(s) + s.bytes);
	return s.id;
}

/* "a/b/!state/@op": where the thread stands from now on. */
static void stand(const char *path)
{
	char part[64];
	size_t n, sign;
	const char *p;

	g.n_path = 0;
	for (p = path; *p != '\0'; p += n + (p[n] == '/')) {
		n = strcspn(p, "/");
		sign = *p == '!' || *p == '@';
		g.path[g.n_path].kind = *p == '!' ? STEP_STATE : *p == '@' ? STEP_OP : STEP_SCOPE;
		(void)snprintf(part, sizeof(part), "%.*s", (int)(n - sign), p + sign);
		g.path[g.n_path++].name = text(part);
	}
}

static void callback(struct dump_callback c)
{
	const size_t n = sizeof(c) + g.n_path * sizeof(g.path[0]);

	c.thread = g.thread;
	c.n_path = g.n_path;
	c.realtime_ns = g.clock += 1000;
	chunk(DUMP_CALLBACK, n);
	put(&c, sizeof(c));
	put(g.path, g.n_path * sizeof(g.path[0]));
	pad(n);
}

static void driver(uint32_t cbid, enum cupti_site site, uint32_t correlation, const char *symbol)
{
	callback((struct dump_callback){.domain = DOMAIN_DRIVER,
		.cbid = cbid,
		.site = site,
		.correlation = correlation,
		.symbol = symbol != NULL ? text(symbol) : 0,
		.context = 1});
}

static uint32_t api(uint32_t cbid, const char *symbol)
{
	const uint32_t c = ++g.correlation;

	driver(cbid, SITE_ENTER, c, symbol);
	driver(cbid, SITE_EXIT, c, symbol);
	return c;
}

/* A call of the runtime with one of the driver's in it, which is part of it; of a stream (0: the default
 * one) and an event. */
static void runtime_of(uint32_t cbid, uint32_t inner, uint32_t stream, uint64_t event)
{
	const struct dump_callback c = {.domain = DOMAIN_RUNTIME,
		.cbid = cbid,
		.correlation = ++g.correlation,
		.context = 1};
	struct dump_callback end = c;

	end.site = SITE_EXIT;
	end.node = event;
	end.original = stream != 0 ? 0x7f0000000000u + stream : 0;
	end.graph = stream;
	end.flags = DUMP_PARAMS;
	callback(c);
	driver(inner, SITE_ENTER, c.correlation, NULL);
	driver(inner, SITE_EXIT, c.correlation, NULL);
	callback(end);
}

static void runtime(uint32_t cbid, uint32_t inner)
{
	runtime_of(cbid, inner, 0, 0);
}

static void resource(uint32_t cbid, uint64_t node, uint64_t original, uint32_t graph, uint32_t exec)
{
	callback((struct dump_callback){.domain = DOMAIN_RESOURCE,
		.cbid = cbid,
		.node = node,
		.original = original,
		.graph = graph,
		.exec = exec});
}

static void level(uint32_t l)
{
	const struct dump_level v = {.level = l};

	chunk(DUMP_LEVEL, sizeof(v));
	put(&v, sizeof(v));
}

static void buffer(bool forced)
{
	const struct dump_buffer b = {.valid = g.used, .forced = forced, .n_fixups = g.n_fixups};
	const size_t n = sizeof(b) + g.n_fixups * sizeof(g.fixup[0]) + g.used;

	if (g.used == 0)
		return;
	chunk(DUMP_BUFFER, n);
	put(&b, sizeof(b));
	put(g.fixup, g.n_fixups * sizeof(g.fixup[0]));
	put(g.bytes, g.used);
	pad(n);
	g.used = 0;
	g.n_fixups = 0;
}

static void flush(bool force)
{
	struct dump_flush f = {.force = force, .begin = 1};

	chunk(DUMP_FLUSH, sizeof(f));
	put(&f, sizeof(f));
	buffer(force);
	f.begin = 0;
	chunk(DUMP_FLUSH, sizeof(f));
	put(&f, sizeof(f));
}

static uint8_t *record(uint32_t kind, uint16_t bytes)
{
	uint8_t *p;

	if (g.used + bytes > sizeof(g.bytes))
		buffer(false);
	p = g.bytes + g.used;
	memset(p, 0, bytes);
	memcpy(p, &kind, sizeof(kind));
	g.used += bytes;
	return p;
}

static void set32(uint8_t *p, size_t at, uint32_t v)
{
	memcpy(p + at, &v, sizeof(v));
}

static void set64(uint8_t *p, size_t at, uint64_t v)
{
	memcpy(p + at, &v, sizeof(v));
}

static void kernel(uint32_t correlation, const char *name, uint64_t ns, uint64_t node)
{
	uint8_t *p = record(KIND_CONCURRENT_KERNEL, g.lib->kernel);

	set64(p, K_START, g.clock += 5000);
	set64(p, K_END, ns != 0 ? g.clock + ns : 0);
	set32(p, K_CONTEXT, 1);
	set32(p, K_STREAM, 7);
	set32(p, K_GRID, 4);
	set32(p, K_BLOCK, 128);
	set32(p, K_CORRELATION, correlation);
	if (g.lib->kernel >= K_GRAPH_STRIDE) {
		set64(p, K_GRAPH_NODE, node);
		set32(p, K_GRAPH, node != 0 ? 900 : 0);
	}
	g.fixup[g.n_fixups++] = (struct dump_fixup){(uint32_t)(p - g.bytes) + K_NAME, text(name)};
}

/* One that is launched here, on that stream. */
static void kernel_on(uint32_t stream, const char *name)
{
	kernel(api(LAUNCH, name), name, 100, 0);
	set32(g.bytes + g.used - g.lib->kernel, K_STREAM, stream);
}

static void copy(uint32_t correlation, uint8_t kind, uint64_t bytes, uint64_t ns)
{
	uint8_t *p = record(KIND_MEMCPY, g.lib->copy);

	p[C_KIND] = kind;
	set64(p, C_BYTES, bytes);
	set64(p, C_START, g.clock += 5000);
	set64(p, C_END, g.clock + ns);
	set32(p, C_CORRELATION, correlation);
}

static void peer(uint32_t correlation, uint64_t bytes, uint64_t ns)
{
	uint8_t *p = record(KIND_MEMCPY_PEER, g.lib->peer);

	p[C_KIND] = 10;
	set64(p, C_BYTES, bytes);
	set64(p, C_START, g.clock += 5000);
	set64(p, C_END, g.clock + ns);
	set32(p, P_DST_DEVICE, 1);
	set32(p, P_CORRELATION, correlation);
}

static void set(uint32_t correlation, uint64_t bytes, uint64_t ns)
{
	uint8_t *p = record(KIND_MEMSET, g.lib->set);

	set64(p, S_BYTES, bytes);
	set64(p, S_START, g.clock += 5000);
	set64(p, S_END, g.clock + ns);
	set32(p, S_CORRELATION, correlation);
}

static const char gemm[] = "sm90_gemm_bf16<128, 128>";
static const char relu[] = "relu_kernel";
static const char adam[] = "adam(float*, int)";

static void launches(uint32_t n, const char *name)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		kernel(api(i % 2 ? LAUNCH_EX : LAUNCH, name), name, 100 + i, 0);
}

static void case_eager(void)
{
	stand("train/forward");
	launches(10, gemm);
	launches(4, relu);
	stand("train/backward");
	launches(6, gemm);
	flush(false);
	stand("train/optim/!metadata");
	launches(3, adam);
	stand("train/optim/@step");
	launches(5, adam);
	stand("");
	launches(2, relu);
	buffer(false);
}

static void case_threads(void)
{
	uint32_t i;

	for (i = 0; i < 400; i++) {
		g.thread = i % 8;
		stand(i % 3 ? "a/b" : "a");
		launches(3, i % 2 ? gemm : relu);
		if (i % 50 == 49)
			flush(false);
	}
}

/* Captures three nodes under capture/layer and capture/loss; instantiates. */
static void capture(uint32_t graph, bool seen)
{
	uint32_t i, c;

	stand("capture");
	if (seen)
		(void)api(BEGIN, NULL);
	for (i = 0; i < 3; i++) {
		stand(i < 2 ? "capture/layer" : "capture/loss");
		c = ++g.correlation;
		driver(LAUNCH, SITE_ENTER, c, gemm);
		resource(RES_NODE_CREATED, graph * 1000ull + i, 0, graph, 0);
		driver(LAUNCH, SITE_EXIT, c, gemm);
	}
	stand("capture");
	(void)api(END, NULL);
	for (i = 0; i < 3; i++) {
		resource(RES_NODE_CREATED, 900000ull + graph * 1000ull + i, 0, 900 + graph, 0);
		resource(RES_NODE_CLONED, 900000ull + graph * 1000ull + i, graph * 1000ull + i,
			900 + graph, 0);
	}
	resource(RES_EXEC_CREATED, 0, 0, 0, 900 + graph);
}

static void replay(uint32_t graph, uint32_t times)
{
	uint32_t i, k, c;

	for (i = 0; i < times; i++) {
		c = api(GRAPH_LAUNCH, NULL);
		for (k = 0; k < 3; k++)
			kernel(c, k == 2 ? relu : gemm, 1000 + k, 900000ull + graph * 1000ull + k);
	}
}

static void case_graph(void)
{
	capture(1, true);
	stand("step");
	replay(1, 5);
	launches(1, adam);
	flush(false);
	stand("step/again");
	replay(1, 2);
	flush(false);
	stand("");
	resource(RES_GRAPH_DESTROY_STARTING, 0, 0, 1, 0);
	resource(RES_EXEC_DESTROY_STARTING, 0, 0, 0, 901);
}

/* Captured before the session, while armed. */
static void case_armed(void)
{
	capture(1, true);
	level(2);
	stand("step");
	replay(1, 3);
	flush(false);
}

/* The session began inside a capture: BeginCapture was not seen. */
static void case_midcapture(void)
{
	capture(2, false);
	stand("step");
	replay(2, 2);
	flush(false);
}

static void case_copies(void)
{
	uint32_t c;

	stand("io");
	copy(api(H2D, NULL), 1, 4096, 900);
	copy(api(H2D, NULL), 1, 4096, 800);
	copy(api(D2H, NULL), 2, 128, 300);
	stand("io/inner");
	copy(api(D2D, NULL), 8, 1u << 20, 2000);
	set(api(SET8, NULL), 512, 100);
	peer(api(PEER, NULL), 777, 50);
	(void)api(D2D, NULL); /* of 0 bytes: makes no record */
	c = api(BATCH, NULL);
	copy(c, 1, 10, 11);
	copy(c, 1, 20, 22);
	flush(false);
}

static void case_running(void)
{
	uint32_t spin, i, c[20];

	stand("hang");
	spin = api(LAUNCH, "spin");
	stand("hang/behind");
	for (i = 0; i < 20; i++)
		c[i] = api(LAUNCH, relu);
	flush(false); /* gives nothing: all stand behind the spinner */
	kernel(spin, "spin", 0, 0);
	for (i = 0; i < 20; i++)
		kernel(c[i], relu, 100, 0);
	flush(true);
}

static void case_unload(void)
{
	stand("jit");
	launches(4, gemm);
	flush(false);
	resource(RES_MODULE_UNLOAD_STARTING, 0, 0, 0, 0);
	launches(4, relu);
	flush(false);
}

static void case_many(void)
{
	uint32_t i;

	for (i = 0; i < 20000; i++) {
		stand(i % 5 ? "many/x" : "many/y");
		launches(1, i % 2 ? gemm : relu);
		if (i % 4000 == 3999)
			flush(false);
	}
}

/* Each kind of call that waits, in two scopes; of one copy the host's memory is pageable, of one the
 * call comes back when it is done. */
static void case_waits(void)
{
	stand("waits");
	launches(2, gemm);
	runtime(131, 126); /* cudaStreamSynchronize */
	runtime(131, 126);
	runtime(137, 121); /* cudaEventSynchronize */
	runtime(165, 17);  /* cudaDeviceSynchronize */
	copy(api(276, NULL), 1, 4096, 900);
	copy(api(D2H, NULL), 2, 128, 300);
	stand("waits/inner");
	runtime(135, 119); /* cudaEventRecord */
	runtime(147, 295); /* cudaStreamWaitEvent */
	(void)api(126, NULL);
	runtime(20, 243);  /* cudaMalloc */
	runtime(22, 245);  /* cudaFree */
	runtime(152, 379); /* cudaHostRegister */
	flush(false);
}

/* Each kind of call that waits, behind the work that it waits for; with other work beside the first. */
static void case_critical(void)
{
	stand("step");
	kernel_on(15, "of_nobody");
	kernel_on(7, "of_default");
	runtime_of(131, 126, 0, 0); /* cudaStreamSynchronize */
	kernel_on(9, "of_thread");
	runtime_of(239, 440, 0, 0); /* cudaStreamSynchronize_ptsz */
	kernel_on(13, "of_stream");
	runtime_of(131, 126, 13, 0);
	kernel_on(7, "before_record");
	runtime_of(135, 119, 0, 0xe1); /* cudaEventRecord */
	kernel_on(7, "behind_record");
	runtime_of(137, 121, 0, 0xe1); /* cudaEventSynchronize */
	kernel_on(14, "of_device");
	runtime_of(165, 17, 0, 0); /* cudaDeviceSynchronize */
	copy(api(278, NULL), 2, 4096, 900);
	flush(false);
}

/* 24 steps: kernels, a wait, and a copy that blocks, in whose call scope fetch ends: who stops the job at its
 * (3 n + 1)th scope has it in the middle of a step, at its (3 n + 2)th in the middle of a copy. */
static void case_steps(void)
{
	uint32_t i, c;

	for (i = 0; i < 24; i++) {
		stand("step/forward");
		launches(6, gemm);
		launches(2, relu);
		runtime(131, 126); /* cudaStreamSynchronize */
		stand("step/fetch");
		c = ++g.correlation;
		driver(278, SITE_ENTER, c, NULL);
		stand("step");
		driver(278, SITE_EXIT, c, NULL);
		copy(c, 2, 4096, 900);
		flush(false);
		stand("");
		runtime(135, 119); /* cudaEventRecord */
	}
}

static void overhead(uint32_t kind, uint32_t correlation, uint64_t ns)
{
	uint8_t *p = record(KIND_OVERHEAD, g.lib->overhead);

	set32(p, O_KIND, kind);
	set32(p, O_OBJECT_KIND, OBJECT_THREAD);
	set32(p, O_THREAD, 4711);
	set64(p, O_START, g.clock += 1000);
	set64(p, O_END, g.clock + ns);
	if (g.lib->overhead >= O_CORRELATION_STRIDE)
		set32(p, O_CORRELATION, correlation);
}

/* What the driver and CUPTI do for themselves: in a launch, and by no call. */
static void case_overhead(void)
{
	uint32_t c;

	stand("cold");
	c = api(LAUNCH, gemm);
	overhead(5u << 16, c, 40000); /* lazy load */
	overhead(6u << 16, c, 700);   /* queue full */
	overhead(6u << 16, c, 300);
	kernel(c, gemm, 100, 0);
	stand("warm");
	launches(3, gemm);
	overhead(7u << 16, 0, 50); /* buffer request */
	overhead(77u << 16, 0, 60);
	flush(false);
}

/* What the call of that id allocated or freed; reserved: of the pool that it is of, or 0. */
static void memory(uint32_t op, uint32_t kind, uint32_t correlation, uint64_t address,
	uint64_t bytes, uint64_t reserved)
{
	uint8_t *p;

	if (g.lib->memory == 0)
		return;
	p = record(KIND_MEMORY, g.lib->memory);
	set32(p, M_OPERATION, op);
	set32(p, M_KIND, kind);
	set32(p, M_CORRELATION, correlation);
	set64(p, M_ADDRESS, address);
	set64(p, M_BYTES, bytes);
	set64(p, M_TIME, g.clock += 1000);
	set32(p, M_CONTEXT, 1);
	set32(p, M_STREAM, reserved != 0 ? 7 : UINT32_MAX);
	if (reserved == 0)
		return;
	set32(p, M_ASYNC, 1);
	set32(p, M_POOL_TYPE, POOL_LOCAL);
	set64(p, M_POOL, 0x9000);
	if (g.lib->memory < M_POOL_USED_STRIDE)
		return;
	set64(p, M_POOL_SIZE, reserved);
	set64(p, M_POOL_USED, bytes);
}

/* Memory of each kind, in two scopes; one is freed by the other; one stays. The peak of the device's
 * is 3000: 1000 of load, 2000 of step. */
static void case_allocs(void)
{
	uint32_t c;

	stand("load");
	runtime(20, 243); /* cudaMalloc */
	memory(MEMORY_ALLOCATION, CUPTI_MEMORY_DEVICE, g.correlation, 0x1000, 1000, 0);
	runtime(27, 271); /* cudaHostAlloc */
	memory(MEMORY_ALLOCATION, CUPTI_MEMORY_PINNED, g.correlation, 0x2000, 500, 0);
	stand("step");
	launches(1, gemm);
	runtime(20, 243);
	memory(MEMORY_ALLOCATION, CUPTI_MEMORY_DEVICE, g.correlation, 0x3000, 2000, 0);
	runtime(22, 245); /* cudaFree, of what load allocated */
	memory(MEMORY_RELEASE, CUPTI_MEMORY_DEVICE, g.correlation, 0x1000, 1000, 0);
	c = api(598, NULL); /* cuMemAllocAsync */
	memory(MEMORY_ALLOCATION, CUPTI_MEMORY_DEVICE, c, 0x5000, 64, 4096);
	c = api(600, NULL);
	memory(MEMORY_RELEASE, CUPTI_MEMORY_DEVICE, c, 0x5000, 64, 4096);
	runtime(22, 245); /* of what was there before: nobody knows it */
	memory(MEMORY_RELEASE, CUPTI_MEMORY_DEVICE, g.correlation, 0x7000, 8, 0);
	flush(false);
}

/* 40 steps, each of which keeps a MB in step/grow and has two more in step/work for a while. */
static void case_leak(void)
{
	uint32_t i;

	for (i = 0; i < 40; i++) {
		stand("step/grow");
		runtime(20, 243);
		memory(MEMORY_ALLOCATION, CUPTI_MEMORY_DEVICE, g.correlation, 0x100000 + i * 64ull,
			1000000, 0);
		stand("step/work");
		runtime(20, 243);
		memory(MEMORY_ALLOCATION, CUPTI_MEMORY_DEVICE, g.correlation, 0x2000, 2000000, 0);
		runtime(22, 245);
		memory(MEMORY_RELEASE, CUPTI_MEMORY_DEVICE, g.correlation, 0x2000, 2000000, 0);
		flush(false);
		stand("");
		launches(1, relu);
	}
}

/* A launch that fails gives no record. */
static void case_failed(void)
{
	uint32_t c = ++g.correlation;

	stand("bad");
	driver(LAUNCH, SITE_ENTER, c, gemm);
	callback((struct dump_callback){.domain = DOMAIN_DRIVER,
		.cbid = LAUNCH,
		.site = SITE_EXIT,
		.correlation = c,
		.context = 1,
		.ret = 1});
	launches(2, gemm);
	flush(false);
}

/* clang-format off */
static const struct {
	const char *name;
	void (*fn)(void);
} cases[] = {
	{"eager", case_eager},   {"threads", case_threads}, {"graph", case_graph},
	{"copies", case_copies}, {"running", case_running}, {"unload", case_unload},
	{"many", case_many},     {"failed", case_failed},   {"midcapture", case_midcapture}, {"armed", case_armed},
	{"waits", case_waits},
	{"critical", case_critical},
	{"overhead", case_overhead},
	{"allocs", case_allocs},
	{"leak", case_leak},
	{"steps", case_steps},
};
/* clang-format on */

static void header(void)
{
	struct dump_header h = {.magic = DUMP_MAGIC,
		.version = DUMP_VERSION,
		.flags = DUMP_SYNTHETIC,
		.cupti_version = g.lib->version,
		.driver_version = g.lib->version > 1000 ? 13000 : 12040};

	h.stride[KIND_MEMCPY] = g.lib->copy;
	h.stride[KIND_MEMSET] = g.lib->set;
	h.stride[KIND_KERNEL] = h.stride[KIND_CONCURRENT_KERNEL] = g.lib->kernel;
	h.stride[KIND_MEMCPY_PEER] = g.lib->peer;
	h.stride[KIND_OVERHEAD] = g.lib->overhead;
	h.stride[KIND_MEMORY] = g.lib->memory;
	h.stride[KIND_MEMORY_POOL] = g.lib->pool;
	put(&h, sizeof(h));
}

static void device(uint32_t ordinal)
{
	struct ring_device d = {.ordinal = ordinal,
		.type = DEVICE_CUDA,
		.arch = 90,
		.num_sms = 132,
		.clock_khz = 1980000,
		.memory_clock_khz = 3201000,
		.bus_width = 6144,
		.pci_bus = 26 + ordinal,
		.memory_bytes = 150ull << 30};

	(void)snprintf((char *)d.uuid, sizeof(d.uuid), "synthetic-%u", ordinal);
	(void)snprintf(d.name, sizeof(d.name), "Synthetic GPU");
	chunk(DUMP_DEVICE, sizeof(d));
	put(&d, sizeof(d));
}

int main(int argc, char **argv)
{
	void (*fn)(void) = NULL;
	size_t i;

	for (i = 0; argc == 4 && i < sizeof(cases) / sizeof(cases[0]); i++)
		if (strcmp(argv[1], cases[i].name) == 0)
			fn = cases[i].fn;
	for (i = 0; argc == 4 && i < sizeof(libraries) / sizeof(libraries[0]); i++)
		if (strcmp(argv[2], libraries[i].name) == 0)
			g.lib = &libraries[i];
	if (fn == NULL || g.lib == NULL) {
		(void)fprintf(stderr, "usage: gen CASE LIBRARY FILE\n");
		return 2;
	}
	g.f = fopen(argv[3], "wbe");
	if (g.f == NULL) {
		(void)fprintf(stderr, "gen: %s: %s\n", argv[3], strerror(errno));
		return 1;
	}
	header();
	device(0);
	device(1);
	level(fn == case_armed ? 1 : 2);
	fn();
	flush(true);
	level(0);
	return fclose(g.f) == 0 ? 0 : 1;
}
