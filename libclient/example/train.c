/* SPDX-License-Identifier: MIT. train.c: a program shaped like a training run, to try protond on.
 *
 * Three epochs of steps with forward, backward and optimizer scopes, a data loader thread, a few
 * metrics. With an NVIDIA GPU the layers are real CUDA kernels (driver API, found at run time, so
 * that nothing needs to be installed to build this); without one they are loops on the CPU.
 */
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <protond.h>

#define LAYERS 4
#define STEPS  8
#define EPOCHS 3
#define N      (1u << 20)

/* y[i] = a * x[i] + y[i], and the same with a tanh-like clamp: what nvcc makes of it, sm_52 and up.
 */
static const char kernels_ptx[] =
	".version 6.0\n.target sm_52\n.address_size 64\n"
	".visible .entry axpy(.param .u64 x, .param .u64 y, .param .f32 a, .param .u32 n)\n"
	"{ .reg .pred p; .reg .b32 r<6>; .reg .b64 d<6>; .reg .f32 f<4>;\n"
	"  ld.param.u64 d0, [x]; ld.param.u64 d1, [y]; ld.param.f32 f0, [a]; ld.param.u32 r0, "
	"[n];\n"
	"  mov.u32 r1, %ctaid.x; mov.u32 r2, %ntid.x; mov.u32 r3, %tid.x; mad.lo.s32 r4, r1, r2, "
	"r3;\n"
	"  setp.ge.u32 p, r4, r0; @p bra DONE; mul.wide.u32 d2, r4, 4; add.s64 d3, d0, d2;\n"
	"  add.s64 d4, d1, d2; ld.global.f32 f1, [d3]; ld.global.f32 f2, [d4];\n"
	"  fma.rn.f32 f3, f0, f1, f2; st.global.f32 [d4], f3;\nDONE: ret; }\n"
	".visible .entry activate(.param .u64 x, .param .u32 n)\n"
	"{ .reg .pred p; .reg .b32 r<6>; .reg .b64 d<6>; .reg .f32 f<4>;\n"
	"  ld.param.u64 d0, [x]; ld.param.u32 r0, [n];\n"
	"  mov.u32 r1, %ctaid.x; mov.u32 r2, %ntid.x; mov.u32 r3, %tid.x; mad.lo.s32 r4, r1, r2, "
	"r3;\n"
	"  setp.ge.u32 p, r4, r0; @p bra DONE; mul.wide.u32 d2, r4, 4; add.s64 d3, d0, d2;\n"
	"  ld.global.f32 f1, [d3]; max.f32 f2, f1, 0f00000000; min.f32 f3, f2, 0f3F800000;\n"
	"  st.global.f32 [d3], f3;\nDONE: ret; }\n";

struct gpu {
	void *axpy, *activate;
	uint64_t x, y;
	int (*launch)(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
		unsigned bz, unsigned shared, void *stream, void **params, void **extra);
	int (*sync)(void);
	int (*copy_in)(uint64_t dst, const void *src, size_t n);
	int (*clear)(uint64_t dst, unsigned value, size_t words);
};

static float host_x[N], host_y[N];

static void *sym(void *lib, const char *name)
{
	return dlsym(lib, name);
}

/* Fills *g, or says why not. */
static const char *gpu_open(struct gpu *g)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW);
	void *context, *module;
	int device;
	int (*init)(unsigned), (*get)(int *, int), (*retain)(void **, int), (*current)(void *);
	int (*load)(void **, const void *), (*function)(void **, void *, const char *);
	int (*alloc)(uint64_t *, size_t);

	if (lib == NULL)
		return "no CUDA driver is installed (libcuda.so.1 not found)";
	*(void **)&init = sym(lib, "cuInit");
	*(void **)&get = sym(lib, "cuDeviceGet");
	*(void **)&retain = sym(lib, "cuDevicePrimaryCtxRetain");
	*(void **)&current = sym(lib, "cuCtxSetCurrent");
	*(void **)&load = sym(lib, "cuModuleLoadData");
	*(void **)&function = sym(lib, "cuModuleGetFunction");
	*(void **)&alloc = sym(lib, "cuMemAlloc_v2");
	*(void **)&g->launch = sym(lib, "cuLaunchKernel");
	*(void **)&g->sync = sym(lib, "cuCtxSynchronize");
	*(void **)&g->copy_in = sym(lib, "cuMemcpyHtoD_v2");
	*(void **)&g->clear = sym(lib, "cuMemsetD32_v2");
	if (init == NULL || load == NULL || g->launch == NULL || g->clear == NULL)
		return "the CUDA driver lacks a function that this program needs";
	if (init(0) != 0 || get(&device, 0) != 0)
		return "the CUDA driver finds no GPU";
	if (retain(&context, device) != 0 || current(context) != 0)
		return "no CUDA context could be made";
	if (load(&module, kernels_ptx) != 0 || function(&g->axpy, module, "axpy") != 0 ||
		function(&g->activate, module, "activate") != 0)
		return "the GPU does not take this program's kernels";
	if (alloc(&g->x, sizeof(host_x)) != 0 || alloc(&g->y, sizeof(host_y)) != 0)
		return "no GPU memory";
	return NULL;
}

static void layer(const struct gpu *g, float a)
{
	static const unsigned blocks = N / 256;
	unsigned n = N;
	uint64_t x = g->x, y = g->y;
	void *axpy[] = {&x, &y, &a, &n};
	void *activate[] = {&y, &n};

	if (g->launch != NULL) {
		g->launch(g->axpy, blocks, 1, 1, 256, 1, 1, 0, NULL, axpy, NULL);
		g->launch(g->activate, blocks, 1, 1, 256, 1, 1, 0, NULL, activate, NULL);
		return;
	}
	for (unsigned i = 0; i < N / 16; i++)
		host_y[i] = fminf(1.0f, fmaxf(0.0f, a * host_x[i] + host_y[i]));
}

static void pass(const struct gpu *g, const char *direction, const uint32_t *names)
{
	const uint32_t flops = protond_metric("flops32"), bytes = protond_metric("bytes");

	protond_scope_enter(protond_name(direction));
	for (int i = 0; i < LAYERS; i++) {
		protond_scope_enter(names[i]);
		layer(g, 0.1f * (float)(i + 1));
		protond_metric_f64(flops, 3.0 * N);
		protond_metric_u64(bytes, 20ull * N);
		protond_scope_exit();
	}
	protond_scope_exit();
}

static void step(const struct gpu *g, const uint32_t *names, int number)
{
	PROTOND_SCOPE("step");
	if (g->launch != NULL) {
		PROTOND_SCOPE("batch to device");
		g->copy_in(g->x, host_x, sizeof(host_x));
	}
	pass(g, "forward", names);
	pass(g, "backward", names);
	{
		PROTOND_SCOPE("optimizer");
		layer(g, 0.01f);
		if (g->launch != NULL)
			g->clear(g->y, 0, N);
	}
	protond_metric_f64(protond_metric("loss (pty)"), 1.0 / (1.0 + number));
	if (g->launch != NULL)
		g->sync();
}

static pthread_barrier_t loader_ready;

static void *loader(void *unused)
{
	static float batch[N / 64];

	/* Entered before the first epoch: a scope of a thread stands below where the main thread
	 * is. */
	PROTOND_SCOPE("data loader");
	pthread_barrier_wait(&loader_ready);
	for (int i = 0; i < EPOCHS * STEPS; i++) {
		PROTOND_SCOPE("decode batch");
		for (unsigned k = 0; k < N / 64; k++)
			batch[k] += sinf((float)(k + (unsigned)i));
	}
	return unused;
}

int main(void)
{
	static struct gpu gpu;
	const char *why = gpu_open(&gpu);
	uint32_t names[LAYERS];
	char name[32];
	pthread_t thread;
	int number = 0;

	if (why != NULL) {
		memset(&gpu, 0, sizeof(gpu));
		printf("training on the CPU: %s\n", why);
	} else {
		printf("training on the GPU\n");
	}
	for (int i = 0; i < LAYERS; i++) {
		snprintf(name, sizeof(name), "layer %d", i);
		names[i] = protond_name(name);
	}
	if (pthread_barrier_init(&loader_ready, NULL, 2) != 0 ||
		pthread_create(&thread, NULL, loader, NULL) != 0)
		return EXIT_FAILURE;
	pthread_barrier_wait(&loader_ready);
	for (int e = 0; e < EPOCHS; e++) {
		PROTOND_SCOPE("epoch");
		for (int s = 0; s < STEPS; s++)
			step(&gpu, names, number++);
	}
	pthread_join(thread, NULL);
	printf("trained %d steps\n", number);
	return EXIT_SUCCESS;
}
