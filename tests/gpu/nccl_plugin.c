/* SPDX-License-Identifier: MIT. nccl_plugin.c: a profiler plugin of NCCL that counts: events by kind, and what
 * their fields say. nccl_check.py sets that beside what NCCL's NVTX payloads say.
 *
 * NCCL_PROFILER_PLUGIN=FILE loads it; NCCL 2.27 takes ncclProfiler_v4, later ones ncclProfiler_v5. It
 * writes $PD_NCCL_OUT/PID.json whenever a communicator ends, and at the process's end. Nothing is kept
 * of a single event, so it costs about the least that a plugin can: NCCL's own work for the events.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Bits of the activation mask, and types of events: X(name, bit). The last four are v5's. */
/* clang-format off */
#define EVENTS(X)                                                                                    \
	X(group, 0) X(coll, 1) X(p2p, 2) X(proxy_op, 3) X(proxy_step, 4) X(proxy_ctrl, 5)             \
	X(kernel_ch, 6) X(net_plugin, 7) X(group_api, 8) X(coll_api, 9) X(p2p_api, 10)                \
	X(kernel_launch, 11)
/* clang-format on */
enum event {
#define X(name, bit) EVENT_##name = (bit),
	EVENTS(X)
#undef X
		EVENT_MAX
};
enum {
	STATE_SEND_WAIT = 9,
	STATE_RECV_WAIT = 10,
	STATE_KERNEL_STOP = 22
}; /* of those that say more */

/* The fields of both versions lie alike; v4's type is one byte. */
struct descr {
	uint64_t type;
	void *parent;
	int rank;
	union {
		struct {
			uint64_t number;
			const char *func;
			const void *from;
			void *to;
			size_t count;
			int root;
			const char *datatype;
			uint8_t channels, warps;
			const char *algorithm, *protocol;
		} coll;
		struct {
			const char *func;
			void *buffer;
			const char *datatype;
			size_t count;
			int peer;
			uint8_t channels;
		} p2p;
		struct {
			pid_t pid;
			uint8_t channel;
			int peer, steps, chunk, is_send;
		} proxy_op;
		struct {
			uint8_t channel;
			uint64_t timer; /* of the GPU */
		} kernel_ch;
	} of;
};
union state_args {
	size_t step_bytes;
	uint64_t timer;
};

struct profiler_v4 {
	const char *name;
	int (*init)(void **context, int *mask, const char *comm, uint64_t hash, int nodes,
		int ranks, int rank, void *log);
	int (*start)(void *context, void **handle, struct descr *d);
	int (*stop)(void *handle);
	int (*state)(void *handle, int state, union state_args *args);
	int (*finalize)(void *context);
};
struct profiler_v5 {
	const char *name;
	int (*init)(void **context, uint64_t id, int *mask, const char *comm, int nodes, int ranks,
		int rank, void *log);
	int (*start)(void *context, void **handle, struct descr *d);
	int (*stop)(void *handle);
	int (*state)(void *handle, int state, union state_args *args);
	int (*finalize)(void *context);
};

#define OPS_MAX   64u
#define COMMS_MAX 16u

struct op { /* all calls that say the same of themselves */
	const char *func, *datatype, *algorithm, *protocol;
	size_t count;
	uint8_t channels;
	int peer; /* of p2p; else −1 */
	uint64_t n;
};

static struct {
	pthread_mutex_t lock; /* of op and comm */
	int abi;
	struct op op[OPS_MAX];
	struct comm {
		char name[64];
		uint64_t id;
		int nodes, ranks, rank;
	} comm[COMMS_MAX];
	uint32_t n_ops, n_comms, left_out;
	/* handles: one for each kind, for NCCL gives back what start() gave */
	struct kind {
		_Atomic uint64_t starts, stops, states, bytes, steps, timer;
	} kind[EVENT_MAX];
} seen = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const char *text(const char *s)
{
	return s != NULL ? s : "";
}

static bool same(const struct op *a, const struct op *b)
{
	return strcmp(a->func, b->func) == 0 && strcmp(a->datatype, b->datatype) == 0 &&
	       strcmp(a->algorithm, b->algorithm) == 0 && strcmp(a->protocol, b->protocol) == 0 &&
	       a->count == b->count && a->channels == b->channels && a->peer == b->peer;
}

/* Texts are NCCL's constants. */
static void count_op(const struct op *o)
{
	uint32_t i;

	(void)pthread_mutex_lock(&seen.lock);
	for (i = 0; i < seen.n_ops && !same(&seen.op[i], o); i++)
		;
	if (i == seen.n_ops && i < OPS_MAX)
		seen.op[seen.n_ops++] = *o;
	if (i < OPS_MAX)
		seen.op[i].n++;
	else
		seen.left_out++;
	(void)pthread_mutex_unlock(&seen.lock);
}

static void fields(enum event which, const struct descr *d)
{
	struct kind *k = &seen.kind[which];

	if (which == EVENT_coll)
		count_op(&(struct op){text(d->of.coll.func), text(d->of.coll.datatype),
			text(d->of.coll.algorithm), text(d->of.coll.protocol), d->of.coll.count,
			d->of.coll.channels, -1, 0});
	else if (which == EVENT_p2p)
		count_op(&(struct op){text(d->of.p2p.func), text(d->of.p2p.datatype), "", "",
			d->of.p2p.count, d->of.p2p.channels, d->of.p2p.peer, 0});
	else if (which == EVENT_proxy_op)
		atomic_fetch_add(&k->steps, (uint64_t)d->of.proxy_op.steps);
	else if (which == EVENT_kernel_ch)
		atomic_fetch_sub(&k->timer, d->of.kernel_ch.timer);
}

static int start(void **handle, const struct descr *d, uint64_t type)
{
	const int bit = type != 0 ? __builtin_ctzll(type) : EVENT_MAX;

	*handle = NULL;
	if (bit >= EVENT_MAX)
		return 0;
	atomic_fetch_add(&seen.kind[bit].starts, 1);
	fields((enum event)bit, d);
	*handle = &seen.kind[bit];
	return 0;
}

static int start_v4(void *context, void **handle, struct descr *d)
{
	(void)context;
	return start(handle, d, d->type & 0xff);
}

static int start_v5(void *context, void **handle, struct descr *d)
{
	(void)context;
	return start(handle, d, d->type);
}

static int stop(void *handle)
{
	struct kind *k = handle;

	if (k != NULL)
		atomic_fetch_add(&k->stops, 1);
	return 0;
}

static int state(void *handle, int to, union state_args *args)
{
	struct kind *k = handle;

	if (k == NULL)
		return 0;
	atomic_fetch_add(&k->states, 1);
	if (args != NULL && k == &seen.kind[EVENT_proxy_step] && to == STATE_SEND_WAIT)
		atomic_fetch_add(&k->bytes, args->step_bytes);
	if (args != NULL && k == &seen.kind[EVENT_kernel_ch] && to == STATE_KERNEL_STOP)
		atomic_fetch_add(&k->timer, args->timer);
	return 0;
}

static int begin(void **context, int *mask, const struct comm *c, int abi)
{
	(void)pthread_mutex_lock(&seen.lock);
	seen.abi = abi;
	if (seen.n_comms < COMMS_MAX)
		seen.comm[seen.n_comms++] = *c;
	(void)pthread_mutex_unlock(&seen.lock);
	*mask = (1 << EVENT_MAX) - 1;
	*context = &seen;
	return 0;
}

static int init_v4(void **context, int *mask, const char *comm, uint64_t hash, int nodes, int ranks,
	int rank, void *log)
{
	struct comm c = {.id = hash, .nodes = nodes, .ranks = ranks, .rank = rank};

	(void)log;
	(void)snprintf(c.name, sizeof(c.name), "%s", text(comm));
	return begin(context, mask, &c, 4);
}

static int init_v5(void **context, uint64_t id, int *mask, const char *comm, int nodes, int ranks,
	int rank, void *log)
{
	struct comm c = {.id = id, .nodes = nodes, .ranks = ranks, .rank = rank};

	(void)log;
	(void)snprintf(c.name, sizeof(c.name), "%s", text(comm));
	return begin(context, mask, &c, 5);
}

static void put_all(FILE *f)
{
	static const char *const names[] = {
#define X(name, bit) [bit] = #name,
		EVENTS(X)
#undef X
	};
	uint32_t i;

	(void)fprintf(f, "{\"abi\":%d,\"left_out\":%u,\"comms\":[", seen.abi, seen.left_out);
	for (i = 0; i < seen.n_comms; i++)
		(void)fprintf(f, "%s{\"nodes\":%d,\"ranks\":%d,\"rank\":%d}", i == 0 ? "" : ",",
			seen.comm[i].nodes, seen.comm[i].ranks, seen.comm[i].rank);
	(void)fputs("],\"ops\":[", f);
	for (i = 0; i < seen.n_ops; i++) {
		const struct op *o = &seen.op[i];

		(void)fprintf(f,
			"%s{\"func\":\"%s\",\"datatype\":\"%s\",\"algorithm\":\"%s\",\"protocol\":"
			"\"%s\",\"count\":%zu,\"channels\":%u,\"peer\":%d,\"n\":%llu}",
			i == 0 ? "" : ",", o->func, o->datatype, o->algorithm, o->protocol,
			o->count, o->channels, o->peer, (unsigned long long)o->n);
	}
	(void)fputs("],\"events\":{", f);
	for (i = 0; i < EVENT_MAX; i++) {
		const struct kind *k = &seen.kind[i];

		(void)fprintf(f,
			"%s\"%s\":{\"starts\":%llu,\"stops\":%llu,\"states\":%llu,\"bytes\":%llu,"
			"\"steps\":%llu,\"gpu_ns\":%lld}",
			i == 0 ? "" : ",", names[i], (unsigned long long)k->starts,
			(unsigned long long)k->stops, (unsigned long long)k->states,
			(unsigned long long)k->bytes, (unsigned long long)k->steps,
			(long long)k->timer);
	}
	(void)fputs("}}\n", f);
}

static void put_file(void)
{
	const char *dir = getenv("PD_NCCL_OUT");
	char path[4096];
	FILE *f;

	if (dir == NULL || seen.abi == 0)
		return;
	(void)snprintf(path, sizeof(path), "%s/%ld.json", dir, (long)getpid());
	(void)pthread_mutex_lock(&seen.lock);
	f = fopen(path, "we");
	if (f != NULL) {
		put_all(f);
		(void)fclose(f);
	} else {
		perror(path);
	}
	(void)pthread_mutex_unlock(&seen.lock);
}

static int finalize(void *context)
{
	(void)context;
	put_file();
	return 0;
}

__attribute__((destructor)) static void end(void)
{
	put_file();
}

__attribute__((visibility("default"))) extern const struct profiler_v4 ncclProfiler_v4;
const struct profiler_v4 ncclProfiler_v4 = {
	"protond_counts", init_v4, start_v4, stop, state, finalize};
__attribute__((visibility("default"))) extern const struct profiler_v5 ncclProfiler_v5;
const struct profiler_v5 ncclProfiler_v5 = {
	"protond_counts", init_v5, start_v5, stop, state, finalize};
