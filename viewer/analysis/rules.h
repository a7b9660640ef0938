/* SPDX-License-Identifier: MIT. rules.h: what may be wrong with a job, and what to do about it: the one table of rules.
 * docs/bottlenecks.md has each formula and its caveats; the tests are in rules_*.c. A new rule is a row here, its rule_ID() and
 * its rows in tests/unit/view_rules.c. */
#ifndef PROTOND_VIEWER_RULES_H
#define PROTOND_VIEWER_RULES_H

/* clang-format off */
/* What a rule cannot do without, and what records it. */
#define RULE_NEEDS(X) /* name, words, switch */ \
	X(STEPS,    "steps",                          "protond.torch.step(), or a scope named step around each") \
	X(LOOP,     "steps, or a part of the session",  "protond.torch.step(), or a scope named step around each; of what has none, --window A..B or --scope NAME") \
	X(SCOPES,   "scopes",                         "protond.scope(\"NAME\"), or the switch `-k torch`") \
	X(GPU,      "work of a GPU",                  "a run whose kernels are recorded: `protonctl doctor` says what is in the way") \
	X(IDLE,     "how idle the GPU was",           "a scope named step around each, or a session in which no two processes share a GPU; one that lost little") \
	X(SYNC,     "calls that wait",                "protonctl run -s sync, or start -s sync") \
	X(TIMELINE, "a timeline",                     "protonctl run -d both") \
	X(PARTS,    "what idle time is made of",      "a session of its own, in which no two processes share a GPU; one that lost little") \
	X(COMPILES, "what compiles",                   "protonctl run -s ops, and for what the driver compiles -s overhead") \
	X(RANKS,    "two processes",                  "protonctl run -- torchrun --nproc-per-node N CMD; not of a part of a session") \
	X(READINGS, "readings of the GPU",            "protond-device beside protond: `protonctl doctor`") \
	X(MEMORY,   "memory by step",                 "protonctl run -s alloc; or -d both, and PROTOND_TORCH_MEMORY=1 or protond.memory.track()") \
	X(CONFIGS,  "launch configurations",          "a session, or its portable file") \
	X(HISTOGRAMS, "durations of steps",           "a session, or its portable file") \
	X(SESSION,  "a session's own counts",         "a whole session, or its portable file")

/* most: the highest severity that it may have: HIGH where the cause is measured, else MEDIUM or LOW. unit: of the threshold:
 * what a value must reach. advice: what to do; a verdict may have words of its own. */
#define RULES(X) /* id, needs, threshold, unit, most, what is looked for, advice */ \
	X(data_loader,      LOOP,               5,   "% of the steps",          HIGH,   "the loop waits for its batches", \
		"More workers (num_workers, persistent_workers), prefetch_factor, pinned memory; decode and augment less, or beforehand.") \
	X(cpu_gpu_sync,     SYNC|LOOP|GPU,      3,   "% of the steps",          HIGH,   "the host waits for the GPU, which then has nothing to do", \
		"Avoid .item(), .cpu(), torch.cuda.synchronize(), print and if on a tensor in the loop: keep results on the GPU and fetch them every so many steps. `-c python` names the lines, as torch.cuda.set_sync_debug_mode(\"warn\") does.") \
	X(result_fetch,     STEPS|GPU,          4,   "copies a step",           MEDIUM, "results are fetched from the GPU one by one", \
		"Each fetch waits until the GPU is done, as .item() and .cpu() do: collect them on the GPU and fetch them together. `-s sync` measures what they cost, `-c python` names the lines.") \
	X(alloc_in_loop,    SYNC|LOOP,          1,   "% of the steps",          HIGH,   "device memory is allocated or freed in each step", \
		"Allocate before the loop, or use an allocator that keeps what it has (torch's, cudaMallocAsync); in torch, look for empty_cache().") \
	X(pin_in_loop,      SYNC|STEPS,         1,   "calls a step",            MEDIUM, "host memory is pinned in each step", \
		"Pin buffers once, before the loop, and use them again.") \
	X(host_alone,       LOOP|GPU|IDLE,      10,  "% of the steps",          HIGH,   "the host works alone, and the GPU is idle meanwhile", \
		"Move it off the loop's thread, do it less often, or launch the GPU's next work before it.") \
	X(launch_bound,     GPU|IDLE,           20,  "% idle",                  HIGH,   "the GPU waits for the next launch, many times", \
		"Fewer, larger kernels: torch.compile, CUDA graphs (mode=\"reduce-overhead\"), a larger batch, fused or foreach optimizers.") \
	X(critical_host,    TIMELINE|STEPS|SYNC|GPU|IDLE, 50, "% of a step",       MEDIUM, "the host bounds the step, not the GPU", \
		"`protonview critical` has the path, and what the step would take with each part of it a tenth faster: mend what is on it, nothing else makes the step shorter.") \
	X(gpu_idle,         GPU|IDLE,           20,  "% idle",                  MEDIUM, "the GPU has nothing to do", \
		"Look at the verdicts beside this one for the cause; without one, record with `-d both -s sync` and look at the timeline.") \
	X(queued_wait,      PARTS,              10,  "% of the time",           HIGH,   "work waits in the queue, and nothing runs", \
		"It waits for an event, another stream or a dependency of its graph: fewer cross-stream waits and records; `-d both -s sync` shows them on the timeline.") \
	X(exposed_comm,     PARTS,              10,  "% of the time",           HIGH,   "communication that no computing hides", \
		"Overlap it: larger gradient buckets, reduce earlier in the backward, gradient accumulation, a faster link; see the ranks for one that comes late.") \
	X(exposed_copy,     PARTS,              10,  "% of the time",           HIGH,   "copies and memsets that nothing hides", \
		"Pinned memory and non_blocking copies on a stream of their own, one batch ahead; avoid copies between layouts and devices.") \
	X(small_copies,     STEPS|GPU,          50,  "copies a step",           LOW,    "many small copies to or on the GPU", \
		"Pack them into one buffer and copy once; keep constants on the GPU.") \
	X(small_grid,       CONFIGS|IDLE,       10,  "% of the GPU's time",     MEDIUM, "kernels with fewer blocks than the GPU has SMs", \
		"A larger batch, or more streams side by side; split the work along another axis (split-K, smaller tiles).") \
	X(odd_blocks,       CONFIGS|IDLE,       1,   "% of the GPU's time",     LOW,    "blocks that are no multiple of a warp", \
		"Launch with a multiple of 32 threads.") \
	X(low_occupancy,    CONFIGS|IDLE,       30,  "% of the GPU's time",     LOW,    "kernels of which an SM holds few warps", \
		"Fewer registers (smaller tiles, __launch_bounds__, maxnreg), less shared memory, or blocks of another size: `protonview launches` has each.") \
	X(tail_effect,      CONFIGS|IDLE,       10,  "% of the GPU's time",     MEDIUM, "grids whose last wave of blocks is nearly empty", \
		"A grid of whole waves, or of many (a larger batch, smaller tiles), or a persistent kernel: `protonview launches` has waves and tail.") \
	X(shape_varies,     CONFIGS|STEPS|GPU,  20,  "% of the launches",       LOW,    "sizes that differ from step to step", \
		"Bucket or pad lengths; mark what varies as dynamic for torch.compile. CUDA graphs, autotuning and caches of allocators need sizes that come again.") \
	X(memory_layout,    GPU|IDLE,           5,   "% of the GPU's time",     MEDIUM, "kernels that change the order of axes", \
		"channels_last for model and input (.to(memory_format=torch.channels_last)), fewer .contiguous() after transpose and permute.") \
	X(memory_bound,     GPU|IDLE,           30,  "% of the GPU's time",     LOW,    "kernels that move data and compute little", \
		"Fuse them (torch.compile, Triton), lower precision, channels_last where it avoids transposes.") \
	X(unfused_optimizer,SCOPES|GPU,         100, "launches a call",         MEDIUM, "an optimizer launches small kernels, parameter by parameter", \
		"fused=True, or foreach=True (torch's default on a GPU, unless it is turned off); of one's own torch.compile.") \
	X(no_tensor_cores,  READINGS|IDLE,      20,  "% of the GPU's time",     MEDIUM, "matrices are multiplied, and tensor cores rest", \
		"bf16 or fp16 autocast, or torch.set_float32_matmul_precision(\"high\"); sizes that are multiples of 8.") \
	X(uneven_gpus,      GPU,                25,  "% behind the busiest",        MEDIUM, "one GPU works much less than another", \
		"Balance what each gets; look at `breakdown` for what the idle one waits for.") \
	X(slow_rank,        RANKS,              10,  "% of a rank's time",      HIGH,   "one rank takes longer, and the others wait where they meet", \
		"Look at what that rank has more of: data, a slower GPU, another program on its host.") \
	X(shared_gpu,       RANKS|GPU,          2,   "processes",               LOW,    "several of its processes share a GPU", \
		"A GPU for each (CUDA_VISIBLE_DEVICES, LOCAL_RANK), or CUDA MPS; what one waits for the other is not told apart.") \
	X(jitter,           HISTOGRAMS|STEPS,   20,  "% beside the median",     MEDIUM, "steps take unevenly long", \
		"Lengths that differ (bucket or pad them), a loader that now and then is late, other programs on the host; `-d both` shows each step.") \
	X(slow_steps,       TIMELINE|STEPS,     5,   "% of the steps",          HIGH,   "a few steps take much longer than the others", \
		"Look at them on the timeline, or `protonview critical --step N`: checkpoints, validation, recompiles and logging show there as scopes.") \
	X(recompiles,       TIMELINE|STEPS|COMPILES, 5,   "% of the steps",          HIGH,   "something is compiled again and again", \
		"TORCH_LOGS=recompiles names the guard that failed: mark what varies as dynamic (torch.compile(dynamic=True), mark_dynamic), pad sizes, keep Python numbers out of compiled functions.") \
	X(warm_up,          TIMELINE|STEPS,     20,  "% of the steps",          LOW,    "the first steps take much longer", \
		"They compile, tune and allocate: judge the others alone (`--step`, or a session that begins later), keep compile caches between runs.") \
	X(memory_leak,      MEMORY|STEPS,       0.5, "MB a step",               HIGH,   "memory grows with every step", \
		"Check what outlives a step: tensors in lists and logs (append(loss) keeps its graph: .item() or .detach()), caches without an end; `-s alloc` names the scope.") \
	X(mem_pressure,     READINGS,           90,  "% of the memory",         LOW,    "the GPU's memory is nearly full", \
		"Checkpointing, a smaller batch, sharded optimizer states; an allocator without room frees and allocates anew.") \
	X(clock_throttle,   READINGS,           10,  "% of the time",           HIGH,   "heat or power hold the GPU's clocks down", \
		"Cooling and power limit (nvidia-smi -q -d PERFORMANCE); at a power limit, less work for the same result is the only gain.") \
	X(gpu_errors,       READINGS,           1,   "errors",                  HIGH,   "the GPU or its driver reported errors", \
		"See the kernel's log for Xid and ECC; results of such a run are suspect.") \
	X(io_wait,          READINGS,           20,  "% of the time",           LOW,    "tasks of the host wait for its disks", \
		"Faster or local storage, larger files, a cache in memory.") \
	X(host_pressure,    READINGS,           20,  "% of the time",           LOW,    "tasks of the host wait for a CPU or for memory", \
		"Fewer workers and threads (OMP_NUM_THREADS), more cores for this job, less beside it.") \
	X(dropped_records,  SESSION,            0,   "% of what was recorded",  MEDIUM, "something of this was lost: sums are too low by as much", \
		"The head says what was lost and why; `protonctl doctor` and docs/troubleshooting.md what helps.") \
	X(own_overhead,     SESSION,            10,  "% of a core, or a step",  MEDIUM, "recording itself costs much", \
		"Fewer switches (-s, -c python), windows in place of all steps (mode sampled), coarser scopes.")
/* clang-format on */

enum rule_id {
#define X(id, ...) RULE_##id,
	RULES(X)
#undef X
		RULE_N
};

#endif
