/* SPDX-License-Identifier: MIT. nvml.c: the GPUs' numbers. The library is loaded, never linked; a
 * function that it lacks costs the quantities that need it. */
#include "nvml.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nvml_abi.h"

#define XIDS_AT_ONCE 64u /* of a reading; the rest come with the next one */

struct calls {
#define X(member, symbol, needed, parameters) int(*member) parameters;
	NVML_CALLS(X)
#undef X
	const char *(*words)(int code);
};

struct gpu {
	struct nvml_device *device;
	struct device_reading known;    /* what seldom changes: name, place, slow gauges */
	struct nvml_gpm_sample *gpm[2]; /* the sample before, and the next one */
	bool has_gpm, sampled;
	uint64_t before[DEVICE_N], rises; /* counters, as they were; those that are known */
	uint64_t xids;
	uint32_t xid;
};

struct nvml {
	struct calls call;
	struct nvml_event_set *events;
	struct gpu gpu[DEVICE_GPUS_MAX];
	uint32_t n_gpus, said; /* said: bit per trouble */
	trouble_fn *say;
	void *arg;
};

static void say(struct nvml *n, enum device_trouble t, int code, const char *text)
{
	if ((n->said & 1u << t) != 0)
		return;
	n->said |= 1u << t;
	n->say(n->arg, t, code, text);
}

static void failed(struct nvml *n, enum device_trouble t, int code)
{
	const char *words = n->call.words != NULL ? n->call.words(code) : NULL;

	say(n, t, code, words != NULL ? words : "");
}

/* Whether it worked; of the codes that say more than "this GPU has it not", one is told. */
static bool ok(struct nvml *n, int code)
{
	if (code == NVML_NO_PERMISSION)
		failed(n, TROUBLE_NO_PERMISSION, code);
	return code == NVML_OK;
}

#define CALL(n, member, ...) ((n)->call.member != NULL && ok((n), (n)->call.member(__VA_ARGS__)))

static void put(struct device_reading *r, enum device_quantity q, double v)
{
	r->value[q] = v;
	r->known |= 1ull << q;
}

/* A counter: the first look at it is where it begins. */
static void rise(struct gpu *g, struct device_reading *r, enum device_quantity q, uint64_t now)
{
	if ((g->rises & 1ull << q) != 0 && now >= g->before[q])
		put(r, q, (double)(now - g->before[q]));
	g->before[q] = now;
	g->rises |= 1ull << q;
}

/* --- what is there */

/* dlsym() returns data, and a function is none: by its bytes. */
static bool find(struct nvml *n, void *library)
{
	static const struct {
		const char *symbol;
		size_t at;
		bool needed;
	} all[] = {
#define X(member, symbol, needed, parameters) {#symbol, offsetof(struct calls, member), needed},
		NVML_CALLS(X)
#undef X
			{"nvmlErrorString", offsetof(struct calls, words), false}};
	size_t i;
	bool whole = true;

	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		void *f = dlsym(library, all[i].symbol);

		memcpy((char *)&n->call + all[i].at, &f, sizeof(f));
		if (f == NULL)
			say(n, TROUBLE_OLD_DRIVER, 0, all[i].symbol);
		whole = whole && (f != NULL || !all[i].needed);
	}
	return whole;
}

static bool is_split(struct nvml *n, const struct gpu *g)
{
	uint32_t now = 0, later = 0;

	return CALL(n, mig, g->device, &now, &later) && now != 0;
}

static void find_activity(struct nvml *n, struct gpu *g)
{
	struct nvml_gpm_support s = {.version = NVML_GPM_VERSION};

	if (is_split(n, g)) {
		say(n, TROUBLE_MIG, 0, g->known.name);
		return;
	}
	g->has_gpm = CALL(n, gpm_support, g->device, &s) && s.supported != 0 &&
		     CALL(n, gpm_alloc, &g->gpm[0]) && CALL(n, gpm_alloc, &g->gpm[1]);
	if (!g->has_gpm)
		say(n, TROUBLE_NO_ACTIVITY, 0, g->known.name);
}

static void find_gpu(struct nvml *n, uint32_t i)
{
	struct gpu *g = &n->gpu[i];
	struct nvml_pci pci = {0};
	const int code = n->call.handle(i, &g->device);

	if (code != NVML_OK) {
		failed(n, code == NVML_NO_PERMISSION ? TROUBLE_NO_PERMISSION : TROUBLE_FAILED,
			code);
		g->device = NULL;
		return;
	}
	if (CALL(n, name, g->device, g->known.name, sizeof(g->known.name)))
		g->known.name[sizeof(g->known.name) - 1] = '\0';
	if (CALL(n, pci, g->device, &pci)) {
		g->known.pci_domain = pci.domain;
		g->known.pci_bus = pci.bus;
		g->known.pci_device = pci.device;
	}
	find_activity(n, g);
	if (n->events != NULL)
		(void)CALL(n, event_add, g->device, NVML_EVENT_XID, n->events);
}

struct nvml *nvml_open(trouble_fn *fn, void *arg)
{
	struct nvml *n = calloc(1, sizeof(*n));
	void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
	uint32_t i, count = 0;
	int code;

	if (n == NULL)
		return NULL;
	n->say = fn;
	n->arg = arg;
	if (library == NULL) {
		say(n, TROUBLE_NO_NVML, 0, dlerror());
	} else if (!find(n, library)) {
		/* said */
	} else if ((code = n->call.init()) != NVML_OK ||
		   (code = n->call.count(&count)) != NVML_OK) {
		failed(n, code == NVML_NO_PERMISSION ? TROUBLE_NO_PERMISSION : TROUBLE_FAILED,
			code);
	} else if (count == 0) {
		say(n, TROUBLE_NO_GPU, 0, "");
	} else {
		n->n_gpus = count < DEVICE_GPUS_MAX ? count : DEVICE_GPUS_MAX;
		if (n->call.event_wait == NULL || !CALL(n, event_set, &n->events))
			n->events = NULL;
		for (i = 0; i < n->n_gpus; i++)
			find_gpu(n, i);
		return n;
	}
	free(n);
	return NULL;
}

uint32_t nvml_gpus(const struct nvml *n)
{
	return n != NULL ? n->n_gpus : 0;
}

/* --- one reading */

static void read_power(struct nvml *n, const struct gpu *g, struct device_reading *r)
{
	struct nvml_field f = {.id = NVML_FIELD_POWER_INSTANT};
	uint32_t mw = 0;

	if (CALL(n, fields, g->device, 1, &f) && f.status == NVML_OK && f.type == NVML_VALUE_UINT)
		mw = f.value.u32;
	else if (!CALL(n, power, g->device, &mw)) /* a mean of a second, where there is no other */
		return;
	put(r, DEVICE_power, mw / 1e3);
}

static void read_clocks(struct nvml *n, const struct gpu *g, struct device_reading *r)
{
	uint32_t v = 0;

	if (CALL(n, clock, g->device, NVML_CLOCK_SM, &v))
		put(r, DEVICE_sm_clock, v);
	if (CALL(n, clock, g->device, NVML_CLOCK_MEM, &v))
		put(r, DEVICE_memory_clock, v);
	if (CALL(n, temperature, g->device, 0, &v))
		put(r, DEVICE_temperature, v);
}

static void read_memory(struct nvml *n, const struct gpu *g, struct device_reading *r)
{
	struct nvml_memory m = {0};

	if (!CALL(n, memory, g->device, &m))
		return;
	put(r, DEVICE_memory_used, (double)m.used);
	put(r, DEVICE_memory_total, (double)m.total);
}

static void read_processes(struct nvml *n, const struct gpu *g, struct device_reading *r)
{
	struct nvml_process p[DEVICE_PROCESSES] = {0};
	uint32_t count = DEVICE_PROCESSES, i;

	if (!CALL(n, processes, g->device, &count, p))
		return;
	for (i = 0; i < count && i < DEVICE_PROCESSES; i++)
		if (p[i].bytes != UINT64_MAX) /* not to be known */
			r->process[r->n_processes++] =
				(struct device_process){.pid = p[i].pid, .bytes = p[i].bytes};
}

static void read_held(struct nvml *n, struct gpu *g, struct device_reading *r)
{
	static const struct {
		int policy; /* NVML_PERF_POLICY_… */
		enum device_quantity q;
	} held[] = {{0, DEVICE_held_by_power}, {1, DEVICE_held_by_heat}, {2, DEVICE_held_by_sync},
		{3, DEVICE_held_by_board}, {5, DEVICE_held_by_reliability}};
	struct nvml_violation v = {0};
	size_t i;

	for (i = 0; i < sizeof(held) / sizeof(held[0]); i++)
		if (CALL(n, violation, g->device, held[i].policy, &v))
			rise(g, r, held[i].q, v.violation_ns);
}

static void read_slow(struct nvml *n, struct gpu *g, struct device_reading *r)
{
	struct device_reading *k = &g->known;
	uint64_t errors = 0;
	uint32_t v = 0;

	if (CALL(n, power_limit, g->device, &v))
		put(k, DEVICE_power_limit, v / 1e3);
	if ((k->known & 1ull << DEVICE_sm_clock_max) == 0) { /* they stay, and take 1 ms each */
		if (CALL(n, clock_max, g->device, NVML_CLOCK_SM, &v))
			put(k, DEVICE_sm_clock_max, v);
		if (CALL(n, clock_max, g->device, NVML_CLOCK_MEM, &v))
			put(k, DEVICE_memory_clock_max, v);
	}
	read_held(n, g, r);
	read_processes(n, g, r);
	if (CALL(n, ecc, g->device, NVML_ECC_CORRECTED, NVML_ECC_VOLATILE, &errors))
		rise(g, r, DEVICE_ecc_corrected, errors);
	if (CALL(n, ecc, g->device, NVML_ECC_UNCORRECTED, NVML_ECC_VOLATILE, &errors))
		rise(g, r, DEVICE_ecc_uncorrected, errors);
}

/* Between the sample before and one that is taken now. */
static void read_activity(struct nvml *n, struct gpu *g, struct device_reading *r)
{
	static const struct {
		uint32_t id; /* NVML_GPM_METRIC_… */
		enum device_quantity q;
	} metrics[] = {{2, DEVICE_sm_active}, {3, DEVICE_sm_occupancy}, {5, DEVICE_tensor_active},
		{10, DEVICE_dram_active}, {20, DEVICE_pcie_tx}, {21, DEVICE_pcie_rx},
		{61, DEVICE_nvlink_tx}, {60, DEVICE_nvlink_rx}};
	struct nvml_gpm_sample *next = g->gpm[1];
	struct nvml_gpm_get get = {.version = NVML_GPM_VERSION, .from = g->gpm[0], .to = next};
	uint32_t i;

	if (!g->has_gpm || !CALL(n, gpm_sample, g->device, next)) {
		g->sampled = false;
		return;
	}
	get.n = sizeof(metrics) / sizeof(metrics[0]);
	_Static_assert(sizeof(metrics) / sizeof(metrics[0]) <= NVML_GPM_METRICS, "room");
	for (i = 0; i < get.n; i++)
		get.metric[i].id = metrics[i].id;
	if (g->sampled && CALL(n, gpm_metrics, &get))
		for (i = 0; i < get.n; i++)
			if (get.metric[i].status == NVML_OK)
				put(r, metrics[i].q, get.metric[i].value);
	g->gpm[1] = g->gpm[0];
	g->gpm[0] = next;
	g->sampled = true;
}

/* Those that came since the last reading, of whichever GPU. */
static void take_xids(struct nvml *n)
{
	struct nvml_event e = {0};
	uint32_t i, k;

	for (k = 0; k < XIDS_AT_ONCE && n->events != NULL; k++) {
		if (n->call.event_wait(n->events, &e, 0) != NVML_OK)
			return;
		for (i = 0; i < n->n_gpus; i++) {
			if (n->gpu[i].device != e.device || e.type != NVML_EVENT_XID)
				continue;
			n->gpu[i].xids++;
			n->gpu[i].xid = (uint32_t)e.data;
		}
	}
}

void nvml_read(struct nvml *n, uint32_t i, bool slow, struct device_reading *ret)
{
	struct gpu *g = &n->gpu[i];
	uint32_t q;

	if (g->device == NULL)
		return;
	take_xids(n);
	read_power(n, g, ret);
	read_clocks(n, g, ret);
	read_memory(n, g, ret);
	read_activity(n, g, ret);
	if (slow)
		read_slow(n, g, ret);
	for (q = 0; q < DEVICE_N; q++)
		if ((g->known.known & 1ull << q) != 0)
			put(ret, q, g->known.value[q]);
	if (n->events != NULL)
		rise(g, ret, DEVICE_xid_errors, g->xids);
	if (g->xids != 0)
		put(ret, DEVICE_xid, g->xid);
	memcpy(ret->name, g->known.name, sizeof(ret->name));
	ret->pci_domain = g->known.pci_domain;
	ret->pci_bus = g->known.pci_bus;
	ret->pci_device = g->known.pci_device;
}

void nvml_close(struct nvml *n)
{
	free(n);
}
