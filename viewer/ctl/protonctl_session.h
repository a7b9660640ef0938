/* SPDX-License-Identifier: MIT. protonctl_session.h: what a session is started with. For `run` and
 * `start`. */
#ifndef PROTOND_PROTONCTL_SESSION_H
#define PROTOND_PROTONCTL_SESSION_H

#include "backends.h"
#include "codec.h"
#include "protonctl_line.h"

/* clang-format off */
#define SESSION_OPTIONS \
	{'b', "backend", "BACKEND", "what records the GPU: cupti (default) or none", BACKEND_CHOICES}, \
	{'c', "context", "CONTEXT", "where a launch stands: shadow (scopes, default) or python (stack)", "shadow python"}, \
	{'d', "data",    "DATA",    "what is kept: tree (default), trace or both", "tree trace both"}, \
	{'k', "hook",    "HOOK",    "names from a framework: torch (default of run), triton or none", "triton torch none"}, \
	{'m', "mode",    "MODE",    "proton: its files are exactly as Triton's Proton writes them", "proton proton-3.6"}, \
	{0,   "cpu",     "on|off",  "time of scopes on the CPU (default on)", "on off"}, \
	{'s', "switches", "WORDS", "what else is recorded, parted by commas: sync (calls that wait for the GPU), overhead (of driver and CUPTI), queue (time in launches and to the GPU), api (every CUDA call), cpu (what threads are in, by samples), alloc (memory that is given), ops (operators of PyTorch), counters (what the CPU counts in scopes)", "sync,queue"}, \
	{0,   "nvtx-domains", "NAMES", "domains of NVTX in it, with commas; `default` has no name; -NAME: all but that", NULL}
/* clang-format on */

/* Those that were given, into the open params. */
void session_params(const struct ctl *c, struct wire_buf *b);

#endif
