/* SPDX-License-Identifier: MIT. device_terms.h: what is measured of a GPU and of its host, over time: one
 * list. Anybody may include it. */
#ifndef PROTOND_TERMS_DEVICE_TERMS_H
#define PROTOND_TERMS_DEVICE_TERMS_H

#include <stdbool.h>
#include <stdint.h>

/* How several readings of one quantity become one. */
enum device_merge {
	MERGE_MEAN, /* a gauge: weighted by time */
	MERGE_MAX,  /* a gauge of which the worst counts */
	MERGE_LAST, /* what is set, and seldom changes */
	MERGE_SUM,  /* of a counter, what it rose by since the reading before */
};

/* clang-format off */
/* Numbers stand in messages of protond-device: a further quantity goes to the end. slow: asked for
 * seldom, because the driver takes milliseconds for it. */
#define DEVICE_QUANTITIES(X) /* name          of    unit      merge  slow   what */                                \
        X(power,               GPU,  "W",      MEAN, false, "power now, of the whole board")                       \
        X(power_limit,         GPU,  "W",      LAST, true,  "power limit that is enforced")                        \
        X(sm_clock,            GPU,  "MHz",    MEAN, false, "clock of the SMs")                                    \
        X(sm_clock_max,        GPU,  "MHz",    LAST, true,  "highest clock of the SMs")                            \
        X(memory_clock,        GPU,  "MHz",    MEAN, false, "clock of the memory")                                 \
        X(memory_clock_max,    GPU,  "MHz",    LAST, true,  "highest clock of the memory")                         \
        X(temperature,         GPU,  "C",      MAX,  false, "temperature of the GPU")                              \
        X(memory_used,         GPU,  "bytes",  MAX,  false, "memory in use, by all processes")                     \
        X(memory_total,        GPU,  "bytes",  LAST, true,  "memory there is")                                     \
        X(held_by_power,       GPU,  "ns",     SUM,  true,  "time in which the power limit held the clocks")       \
        X(held_by_heat,        GPU,  "ns",     SUM,  true,  "time in which heat held the clocks")                  \
        X(held_by_sync,        GPU,  "ns",     SUM,  true,  "time in which sync boost held the clocks")            \
        X(held_by_board,       GPU,  "ns",     SUM,  true,  "time in which the board's limit held the clocks")     \
        X(held_by_reliability, GPU,  "ns",     SUM,  true,  "time in which the voltage's reliability held the clocks") \
        X(sm_active,           GPU,  "%",      MEAN, false, "time with a warp on an SM, over all SMs")             \
        X(sm_occupancy,        GPU,  "%",      MEAN, false, "warps on the SMs, of those that have room")           \
        X(tensor_active,       GPU,  "%",      MEAN, false, "time in which tensor cores worked")                   \
        X(dram_active,         GPU,  "%",      MEAN, false, "time in which the memory moved data")                 \
        X(pcie_tx,             GPU,  "MiB/s",  MEAN, false, "PCIe, sent by the GPU")                               \
        X(pcie_rx,             GPU,  "MiB/s",  MEAN, false, "PCIe, received by the GPU")                           \
        X(nvlink_tx,           GPU,  "MiB/s",  MEAN, false, "all NVLinks, sent by the GPU")                        \
        X(nvlink_rx,           GPU,  "MiB/s",  MEAN, false, "all NVLinks, received by the GPU")                    \
        X(ecc_corrected,       GPU,  "errors", SUM,  true,  "memory errors that ECC corrected")                    \
        X(ecc_uncorrected,     GPU,  "errors", SUM,  true,  "memory errors that it could not correct")             \
        X(xid_errors,          GPU,  "errors", SUM,  false, "errors that the driver reported as an Xid")           \
        X(xid,                 GPU,  "",       LAST, false, "the last Xid; not known: there was none")             \
        X(cpu_wait,            HOST, "ns",     SUM,  false, "time in which some task waited for a CPU (PSI)")      \
        X(memory_wait,         HOST, "ns",     SUM,  false, "time in which some task waited for memory (PSI)")     \
        X(io_wait,             HOST, "ns",     SUM,  false, "time in which some task waited for a disk (PSI)")     \
        X(net_rx,              HOST, "bytes",  SUM,  false, "received by network cards")                           \
        X(net_tx,              HOST, "bytes",  SUM,  false, "sent by network cards")                               \
        X(ib_rx,               HOST, "bytes",  SUM,  false, "received by InfiniBand ports")                        \
        X(ib_tx,               HOST, "bytes",  SUM,  false, "sent by InfiniBand ports")                            \
        X(disk_read,           HOST, "bytes",  SUM,  false, "read from disks")                                     \
        X(disk_written,        HOST, "bytes",  SUM,  false, "written to disks")

/* Why a helper measures less than it might. The words are followed by what the driver or the kernel said. */
#define DEVICE_TROUBLES(X) /* name  number  words, what helps */                                                   \
        X(NO_NVML,       1, "there is no libnvidia-ml.so.1: no NVIDIA driver here, or a container without it",     \
                            "in a container, start it with --gpus all or the capability `utility`")                \
        X(NO_GPU,        2, "NVML finds no GPU",                                                                   \
                            "in a container, start it with --gpus all; see `nvidia-smi -L`")                       \
        X(NO_PERMISSION, 3, "the driver keeps some counters for administrators",                                   \
                            "run protond-device as root, or load nvidia with NVreg_RestrictProfilingToAdminUsers=0") \
        X(OLD_DRIVER,    4, "this driver is too old for some quantities",                                          \
                            "a driver of release 530 or later has all of them")                                    \
        X(MIG,           5, "a GPU is split by MIG: its counters are those of the whole GPU, without activity",    \
                            "nothing; shares of one instance are not to be had this way")                          \
        X(NO_ACTIVITY,   6, "a GPU has no activity counters (GPM)",                                                \
                            "nothing; GPUs from Hopper on have them")                                              \
        X(FAILED,        7, "NVML failed",                                                                         \
                            "see `nvidia-smi` and the kernel's log")
/* clang-format on */

/* What is slow is asked for at the first look, after 10, 20 and 40 s, and then every minute. */
#define DEVICE_SLOW_NS     10000000000ull
#define DEVICE_SLOW_MAX_NS 60000000000ull

enum device_quantity {
#define X(name, of, unit, merge, slow, what) DEVICE_##name,
	DEVICE_QUANTITIES(X)
#undef X
		DEVICE_N
};

enum device_trouble {
#define X(name, number, words, help) TROUBLE_##name = (number),
	DEVICE_TROUBLES(X)
#undef X
};

enum device_of { DEVICE_OF_GPU, DEVICE_OF_HOST };
struct device_quantity_words {
	const char *name, *unit, *what;
	enum device_of of;
	enum device_merge merge;
	bool slow;
};

static inline const struct device_quantity_words *device_words(enum device_quantity q)
{
	static const struct device_quantity_words words[DEVICE_N] = {
#define X(name, of, unit, merge, slow, what) \
	{#name, unit, what, DEVICE_OF_##of, MERGE_##merge, slow},
		DEVICE_QUANTITIES(X)
#undef X
	};
	return &words[q];
}

#endif
