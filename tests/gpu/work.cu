/* SPDX-License-Identifier: MIT. work.cu: CUDA work whose launches are counted by the program
 * itself.
 *
 * work MODE [ARGS]; the same source with and without libprotond (WITH_PROTOND): without, scopes are
 * nothing. Prints key=value lines that tests/gpu/check.py and bench.py read. WORK_PAGE=FILE:
 * launches are counted in the first 8 bytes of that file as they are made, so that a kill does not
 * lose them.
 *
 *   loop N R        L of the peers: N empty kernels back to back, then one sync; best of R, ns each
 *   many THREADS N  N launches over THREADS threads, a stream each, a scope per 100
 *   eager           3 streams, 4 threads, three kernels, nested scopes
 *   graph N         one graph captured here (2 layers and a loss), replayed N times in scopes
 *   before N        the same; captured, then "ready" on stdout and a line awaited on stdin, then replayed
 *   copies          copies of each direction and memsets
 *   timed N         N kernels of some ms on one stream between two CUDA events
 *   gpus T S N      N launches over T threads with S streams on each GPU; then spins between two events and
 *                   copies from each GPU to the next
 *   hang S          a kernel that spins S seconds, 1 000 behind it on its stream, 1 000 beside it
 *   burst N         N launches with no pause, for forced loss
 *   grow N R        R rounds of N launches, memory of the process after each
 */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cuda_runtime.h>

#ifdef WITH_PROTOND
#include "protond.h"
#define ENTER(text) protond_scope_enter(protond_name(text))
#define EXIT()      protond_scope_exit()
#else
#define ENTER(text) ((void)(text))
#define EXIT()      ((void)0)
#endif

#define OK(call)                                                                          \
	do {                                                                              \
		const cudaError_t r_ = (call);                                            \
		if (r_ != cudaSuccess) {                                                  \
			fprintf(stderr, "work: %s: %s\n", #call, cudaGetErrorString(r_)); \
			exit(1);                                                          \
		}                                                                         \
	} while (0)

static uint64_t own_count;
static uint64_t *counter = &own_count;

__global__ void empty_kernel()
{
}

__global__ void add_kernel(float *x, int n)
{
	const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);

	if (i < n)
		x[i] += 1.0f;
}

__global__ void relu_kernel(float *x, int n)
{
	const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);

	if (i < n)
		x[i] = x[i] > 0 ? x[i] : 0;
}

__global__ void spin_kernel(long long cycles)
{
	const long long from = clock64();

	while (clock64() - from < cycles)
		;
}

static uint64_t now_ns()
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void page_open()
{
	const char *path = getenv("WORK_PAGE");
	int fd = path != nullptr ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
	void *p;

	if (fd < 0)
		return;
	p = ftruncate(fd, 4096) == 0
		    ? mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
		    : MAP_FAILED;
	if (p != MAP_FAILED)
		counter = static_cast<uint64_t *>(p);
	close(fd);
}

/* After a launch that succeeded. */
static void launched(uint64_t n = 1)
{
	__atomic_fetch_add(counter, n, __ATOMIC_RELAXED);
}

static float *floats(int n)
{
	float *x;

	OK(cudaMalloc(&x, sizeof(float) * (size_t)n));
	return x;
}

static long number(char **argv, int argc, int i, long otherwise)
{
	return i < argc ? strtol(argv[i], nullptr, 10) : otherwise;
}

static void loop(long n, long rounds)
{
	uint64_t best = UINT64_MAX, t;

	empty_kernel<<<1, 1>>>();
	OK(cudaDeviceSynchronize());
	launched();
	ENTER("loop");
	for (long r = 0; r < rounds; r++) {
		t = now_ns();
		for (long i = 0; i < n; i++)
			empty_kernel<<<1, 1>>>();
		OK(cudaDeviceSynchronize());
		t = now_ns() - t;
		launched((uint64_t)n);
		if (t < best)
			best = t;
	}
	EXIT();
	printf("ns_per_launch=%.1f\n", (double)best / (double)n);
}

struct part {
	pthread_t thread;
	long n;
};

static void *many_thread(void *arg)
{
	const part *p = static_cast<part *>(arg);
	cudaStream_t s;

	OK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
	ENTER("worker");
	for (long i = 0; i < p->n; i++) {
		if (i % 100 == 0)
			ENTER(i / 100 % 2 ? "odd" : "even");
		empty_kernel<<<1, 1, 0, s>>>();
		launched();
		if (i % 100 == 99 || i + 1 == p->n)
			EXIT();
	}
	EXIT();
	OK(cudaStreamSynchronize(s));
	return nullptr;
}

static void many(long threads, long n)
{
	part *p = static_cast<part *>(calloc((size_t)threads, sizeof(*p)));
	const uint64_t t = now_ns();

	OK(cudaFree(nullptr));
	for (long i = 0; i < threads; i++) {
		p[i].n = n / threads + (i < n % threads);
		if (pthread_create(&p[i].thread, nullptr, many_thread, &p[i]) != 0)
			exit(1);
	}
	for (long i = 0; i < threads; i++)
		pthread_join(p[i].thread, nullptr);
	printf("ns_per_launch=%.1f\n", (double)(now_ns() - t) / (double)n);
	free(p);
}

static void *eager_thread(void *)
{
	const int n = 1 << 16;
	float *x = floats(n);
	cudaStream_t s[3];

	for (auto &one : s)
		OK(cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking));
	for (int step = 0; step < 10; step++) {
		ENTER("step");
		for (int layer = 0; layer < 3; layer++) {
			ENTER(layer == 0 ? "embed" : layer == 1 ? "mlp" : "head");
			add_kernel<<<n / 256, 256, 0, s[layer]>>>(x, n);
			relu_kernel<<<n / 256, 256, 0, s[layer]>>>(x, n);
			launched(2);
			EXIT();
		}
		empty_kernel<<<1, 1, 0, s[0]>>>();
		launched();
		EXIT();
	}
	for (auto &one : s)
		OK(cudaStreamSynchronize(one));
	return nullptr;
}

static void eager()
{
	pthread_t t[4];

	OK(cudaFree(nullptr));
	for (auto &one : t)
		if (pthread_create(&one, nullptr, eager_thread, nullptr) != 0)
			exit(1);
	for (auto &one : t)
		pthread_join(one, nullptr);
	printf("step/embed/add_kernel=40\nstep/mlp/relu_kernel=40\nstep/empty_kernel=40\n");
}

static cudaGraphExec_t capture(cudaStream_t s, float *x, int n)
{
	cudaGraph_t g;
	cudaGraphExec_t e;

	ENTER("capture");
	OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
	for (int layer = 0; layer < 2; layer++) {
		ENTER(layer == 0 ? "layer0" : "layer1");
		add_kernel<<<n / 256, 256, 0, s>>>(x, n);
		relu_kernel<<<n / 256, 256, 0, s>>>(x, n);
		EXIT();
	}
	ENTER("loss");
	empty_kernel<<<1, 1, 0, s>>>();
	OK(cudaMemsetAsync(x, 0, 64, s));
	EXIT();
	OK(cudaStreamEndCapture(s, &g));
	OK(cudaGraphInstantiate(&e, g, 0));
	OK(cudaGraphDestroy(g));
	EXIT();
	return e;
}

static void graph(long replays, bool wait)
{
	const int n = 1 << 12;
	float *x = floats(n);
	cudaStream_t s;
	cudaGraphExec_t e;
	char line[16];

	OK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
	e = capture(s, x, n);
	if (wait) {
		printf("ready\n");
		fflush(stdout);
		if (fgets(line, sizeof(line), stdin) == nullptr)
			exit(1);
	}
	for (long i = 0; i < replays; i++) {
		ENTER(i % 2 ? "odd" : "even");
		OK(cudaGraphLaunch(e, s));
		launched();
		EXIT();
	}
	OK(cudaStreamSynchronize(s));
	ENTER("alone");
	empty_kernel<<<1, 1, 0, s>>>();
	launched();
	EXIT();
	OK(cudaStreamSynchronize(s));
	OK(cudaGraphExecDestroy(e));
	printf("nodes=5\nmemsets=1\nreplays=%ld\n", replays);
}

static void copies()
{
	const size_t n = 1 << 20;
	char *a, *b, *host, *pageable = static_cast<char *>(malloc(n));
	cudaStream_t s;

	OK(cudaMalloc(&a, n));
	OK(cudaMalloc(&b, n));
	OK(cudaMallocHost(&host, n));
	memset(host, 1, n);
	memset(pageable, 1, n);
	OK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
	ENTER("io");
	for (int i = 0; i < 10; i++) {
		OK(cudaMemcpyAsync(a, host, n, cudaMemcpyHostToDevice, s));
		OK(cudaMemcpyAsync(b, a, n, cudaMemcpyDeviceToDevice, s));
		OK(cudaMemcpyAsync(host, b, n, cudaMemcpyDeviceToHost, s));
		OK(cudaMemsetAsync(a, i, n, s));
		launched(4);
	}
	OK(cudaStreamSynchronize(s));
	OK(cudaMemcpy(a, pageable, n, cudaMemcpyHostToDevice));
	OK(cudaMemcpy(pageable, a, n, cudaMemcpyDeviceToHost));
	OK(cudaMemcpy2D(a, 256, b, 512, 128, 64, cudaMemcpyDeviceToDevice));
	OK(cudaMemset(a, 0, 4096));
	launched(4);
	EXIT();
	OK(cudaDeviceSynchronize());
	printf("h2d=11\nd2h=11\nd2d=11\nmemset=11\n");
}

static void timed(long n)
{
	cudaEvent_t from, to;
	float ms;
	int khz;

	int gpu;

	OK(cudaGetDevice(&gpu));
	OK(cudaDeviceGetAttribute(&khz, cudaDevAttrClockRate, gpu));
	OK(cudaEventCreate(&from));
	OK(cudaEventCreate(&to));
	spin_kernel<<<1, 1>>>(1000);
	OK(cudaDeviceSynchronize());
	launched();
	ENTER("timed");
	OK(cudaEventRecord(from));
	for (long i = 0; i < n; i++)
		spin_kernel<<<1, 32>>>((long long)khz * 3); /* about 3 ms */
	OK(cudaEventRecord(to));
	launched((uint64_t)n);
	EXIT();
	OK(cudaEventSynchronize(to));
	OK(cudaEventElapsedTime(&ms, from, to));
	printf("events_ns_%d=%.0f\nkernels=%ld\n", gpu, (double)ms * 1e6, n);
}

struct gpus_part {
	pthread_t thread;
	long streams, n;
	int gpus;
};

static void *gpus_thread(void *arg)
{
	const gpus_part *p = static_cast<gpus_part *>(arg);
	const long all = p->streams * p->gpus;
	cudaStream_t *s = static_cast<cudaStream_t *>(calloc((size_t)all, sizeof(cudaStream_t)));

	for (long i = 0; i < all; i++) {
		OK(cudaSetDevice((int)(i % p->gpus)));
		OK(cudaStreamCreateWithFlags(&s[i], cudaStreamNonBlocking));
	}
	ENTER("worker");
	for (long i = 0; i < p->n; i++) {
		OK(cudaSetDevice((int)(i % p->gpus)));
		empty_kernel<<<1, 1, 0, s[i % all]>>>();
		launched();
	}
	EXIT();
	for (long i = 0; i < all; i++)
		OK(cudaStreamSynchronize(s[i]));
	free(s);
	return nullptr;
}

static void gpus(long threads, long streams, long n)
{
	const size_t bytes = 1 << 20;
	gpus_part *p = static_cast<gpus_part *>(calloc((size_t)threads, sizeof(*p)));
	int count;

	OK(cudaGetDeviceCount(&count));
	for (long i = 0; i < threads; i++) {
		p[i].streams = streams, p[i].gpus = count;
		p[i].n = n / threads + (i < n % threads);
		if (pthread_create(&p[i].thread, nullptr, gpus_thread, &p[i]) != 0)
			exit(1);
	}
	for (long i = 0; i < threads; i++)
		pthread_join(p[i].thread, nullptr);
	free(p);
	for (int g = 0; g < count; g++) {
		void *from, *to;
		int direct = 0;

		OK(cudaSetDevice(g));
		if (count > 1)
			OK(cudaDeviceCanAccessPeer(&direct, g, (g + 1) % count));
		if (direct) /* else each copy is two, through the host */
			OK(cudaDeviceEnablePeerAccess((g + 1) % count, 0));
		timed(20);
		OK(cudaMalloc(&from, bytes));
		OK(cudaSetDevice((g + 1) % count));
		OK(cudaMalloc(&to, bytes));
		ENTER("peer");
		for (int i = 0; i < 10; i++)
			OK(cudaMemcpyPeerAsync(to, (g + 1) % count, from, g, bytes));
		EXIT();
		OK(cudaDeviceSynchronize());
	}
	printf("gpus=%d\n", count);
}

static void hang(long seconds)
{
	cudaStream_t a, b;
	int khz;

	OK(cudaDeviceGetAttribute(&khz, cudaDevAttrClockRate, 0));
	OK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
	OK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
	empty_kernel<<<1, 1, 0, a>>>(); /* modules are loaded at the first launch, with a sync */
	spin_kernel<<<1, 1, 0, b>>>(1);
	OK(cudaDeviceSynchronize());
	launched(2);
	ENTER("stuck");
	spin_kernel<<<1, 1, 0, a>>>((long long)khz * 1000 * seconds);
	launched();
	EXIT();
	ENTER("behind");
	for (int i = 0; i < 1000; i++)
		empty_kernel<<<1, 1, 0, a>>>();
	launched(1000);
	EXIT();
	ENTER("beside");
	for (int i = 0; i < 1000; i++)
		empty_kernel<<<1, 1, 0, b>>>();
	launched(1000);
	EXIT();
	OK(cudaStreamSynchronize(b));
	printf("beside_done=1\n");
	fflush(stdout);
	ENTER("waiting");
	OK(cudaDeviceSynchronize());
	EXIT();
}

static void burst(long n)
{
	ENTER("burst");
	for (long i = 0; i < n; i++)
		empty_kernel<<<1, 1>>>();
	launched((uint64_t)n);
	EXIT();
	OK(cudaDeviceSynchronize());
}

static long memory_kib(const char *key)
{
	FILE *f = fopen("/proc/self/smaps_rollup", "r");
	char line[256];
	long v = 0;

	while (f != nullptr && fgets(line, sizeof(line), f) != nullptr)
		if (strncmp(line, key, strlen(key)) == 0)
			v = strtol(line + strlen(key), nullptr, 10);
	if (f != nullptr)
		fclose(f);
	return v;
}

static void grow(long n, long rounds)
{
	for (long r = 0; r < rounds; r++) {
		for (long i = 0; i < n; i++) {
			if (i % 1000 == 0)
				ENTER("round");
			empty_kernel<<<1, 1>>>();
			if (i % 1000 == 999 || i + 1 == n)
				EXIT();
		}
		OK(cudaDeviceSynchronize());
		launched((uint64_t)n);
		printf("launches=%ld rss_kib=%ld\n", (r + 1) * n, memory_kib("Rss:"));
		fflush(stdout);
	}
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";

	page_open();
	if (strcmp(mode, "loop") == 0)
		loop(number(argv, argc, 2, 200000), number(argv, argc, 3, 5));
	else if (strcmp(mode, "many") == 0)
		many(number(argv, argc, 2, 1), number(argv, argc, 3, 1000000));
	else if (strcmp(mode, "eager") == 0)
		eager();
	else if (strcmp(mode, "graph") == 0 || strcmp(mode, "before") == 0)
		graph(number(argv, argc, 2, 10), mode[0] == 'b');
	else if (strcmp(mode, "copies") == 0)
		copies();
	else if (strcmp(mode, "timed") == 0)
		timed(number(argv, argc, 2, 50));
	else if (strcmp(mode, "gpus") == 0)
		gpus(number(argv, argc, 2, 8), number(argv, argc, 3, 4),
			number(argv, argc, 4, 1000000));
	else if (strcmp(mode, "hang") == 0)
		hang(number(argv, argc, 2, 3600));
	else if (strcmp(mode, "burst") == 0)
		burst(number(argv, argc, 2, 500000));
	else if (strcmp(mode, "grow") == 0)
		grow(number(argv, argc, 2, 5000000), number(argv, argc, 3, 10));
	else {
		fprintf(stderr,
			"usage: work loop|many|eager|graph|before|copies|timed|gpus|hang|burst|grow\n");
		return 2;
	}
	printf("launched=%llu\n", (unsigned long long)__atomic_load_n(counter, __ATOMIC_RELAXED));
	return 0;
}
