/* SPDX-License-Identifier: MIT. options.h: what can be set for a job: one table for the variables
 * PROTOND_NAME, the lines `job.name = value` of protond.conf, Python's protond.configure() and
 * --protond-name arguments, `protonctl help options`, the man page and docs/options.md.
 *
 * The daemon's own settings are the CONFIG table of daemon/config.h.
 */
#ifndef PROTOND_TERMS_OPTIONS_H
#define PROTOND_TERMS_OPTIONS_H

#include "counter_terms.h"

/* clang-format off */
/* type: flag (0, 1), int (0 and up), share (0 to 1), word (one of `words`), words (several, with commas), dir (an absolute
 * path), text.
 * who: lib (any job, from the environment alone), torch (Python). */
#define JOB_OPTIONS(X) /* name  who  type  default  words  help */                                                      \
        X(disable,         lib,   flag,  "0",      "", "1: the library does nothing at all")                            \
        X(autostart,       lib,   flag,  "",       "", "start a private daemon when a session is started and none runs (C: 0, Python: 1)") \
        X(runtime_dir,     lib,   dir,   "",       "", "directory of sockets and rings; empty: the usual place")        \
        X(gpu,             lib,   word,  "none",   "none armed on", "armed: graphs captured before a session keep their scopes (keeps other tools out); on: record from the start") \
        X(inherit,         lib,   word,  "follow", "follow copy", "where a thread without scopes stands: where the main thread is now, or was at the thread's first event (Proton's rule)") \
        X(cupti_path,      lib,   text,  "",       "", "the libcupti to load, when the process has none")               \
        X(cupti_buffers,   lib,   int,   "0",      "", "activity buffers of 1 MiB that the pool begins with, 2 to 256; 0: 16")          \
        X(flush_ms,        lib,   int,   "100",    "", "time between two flushes of finished GPU work, ms")             \
        X(stall_ms,        lib,   int,   "30000",  "", "time without a delivery after which running kernels are asked for, ms") \
        X(api_all,         lib,   flag,  "0",      "", "1: -s api has calls that only read what the process knows, too (cudaGetDevice, cudaGetLastError, cudaPeekAtLastError, cudaDeviceGetAttribute); they cost more than they do") \
        X(raw_dump,        lib,   text,  "",       "", "for developers: directory that all of CUPTI's data is written to")                \
        X(nvtx_domains,    lib,   text,  "",       "", "NVTX: the domains whose ranges and marks are scopes, with commas; `default` is the one without a name; -NAME: all but that; empty: all") \
        X(counters,        lib,   words, COUNTERS_DEFAULT, COUNTER_WORDS, "what the switch counters counts of a thread, with commas, at most 8 at once") \
        X(cpu_native,      lib,   flag,  "0",      "", "1: -s cpu has native frames, too, below Python's, of x86-64")       \
        X(hook,            torch, words, "",       "torch triton none", "frameworks to name (set by `protonctl run -k`)") \
        X(as_proton,       lib,   flag,  "0",      "", "Python: `import triton.profiler` gives protond (set by `protonctl run --as-proton`)") \
        X(stacks,          lib,   flag,  "0",      "", "Python: stacks, operators and samples can be asked for (set by `protonctl run -c python`, `-s ops` and `-s cpu`; importing protond does it too)") \
        X(preset,          torch, word,  "",       "production development debug leak", "several of these at once: see docs/python.md") \
        X(torch_backward,  torch, word,  "phase",  "phase module", "module: backward work stands under the module it differentiates") \
        X(torch_ops,       torch, flag,  "0",      "", "operators in all sessions, as with the switch ops") \
        X(torch_shapes,    torch, flag,  "0",      "", "operators: Input Dims; of different ones they are different scopes") \
        X(torch_dtypes,    torch, flag,  "0",      "", "operators: Input type") \
        X(torch_strides,   torch, flag,  "0",      "", "operators: Input Strides") \
        X(torch_scalars,   torch, flag,  "0",      "", "operators: Concrete Inputs") \
        X(torch_kwargs,    torch, flag,  "0",      "", "operators: kwinputs, by the names of their schema; what torch.compile's kernels are called with, under its own names") \
        X(torch_stack,     torch, flag,  "0",      "", "operators: Call stack, FILE:LINE@FUNCTION") \
        X(torch_sequence,  torch, flag,  "0",      "", "operators: Sequence number, Fwd thread id, Record function id") \
        X(torch_flops,     torch, flag,  "0",      "", "operators: flops and bytes of matmul, attention and convolution, for util") \
        X(torch_memory,    torch, flag,  "0",      "", "allocated, reserved and peak bytes of the allocator, per step")  \
        X(sample_rate,     torch, share, "1",      "", "share of the steps whose GPU work is recorded; in between CUPTI is off") \
        X(sample_warmup,   torch, int,   "1",      "", "steps with CUPTI on before those that are recorded: they pay for switching on") \
        X(sample_active,   torch, int,   "10",     "", "steps recorded in one go")                                        \
        X(sample_overhead, torch, share, "0",      "", "adaptive: the rate is lowered until recording costs at most this share of the time; 0: off")
/* clang-format on */

#endif
