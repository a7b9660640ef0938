/* SPDX-License-Identifier: MIT. backends.h: what can record GPU work and markers, and how it gets
 * into a program: one list for the agent, libprotond and the tools. Anybody may include it.
 *
 * A new vendor is a row here and a folder agent/backend/NAME with its struct backend, backend_NAME.
 */
#ifndef PROTOND_TERMS_BACKENDS_H
#define PROTOND_TERMS_BACKENDS_H

#include <stdint.h>

/* The numbers are on the wire: 0 is also what an agent of 0.1 says, which knew NVIDIA alone. */
enum gpu_vendor { VENDOR_NVIDIA = 0, VENDOR_AMD = 1 };

enum backend_caps {
	CAP_KERNEL = 1, /* launches, and what they ran: kernels, copies, sets */
	CAP_GRAPH = 2,  /* knows where graphs were captured: can be armed for that alone */
	CAP_MARKER = 4, /* a program's own ranges, which become scopes */
};

/* clang-format off */
/* injection: the variable by which the vendor's loader brings libprotond into a program, or "". It
 * then knocks at a door of libclient/inject.c; recording with a CAP_KERNEL waits for that. */
#define GPU_BACKENDS(X) /* name  vendor  caps                  injection */ \
        X(cupti, NVIDIA, CAP_KERNEL | CAP_GRAPH, "CUDA_INJECTION64_PATH")
#define MARKER_BACKENDS(X) \
        X(nvtx,  NVIDIA, CAP_MARKER,             "NVTX_INJECTION64_PATH")
#define BACKENDS(X) GPU_BACKENDS(X) MARKER_BACKENDS(X)

/* What a session can ask for: "cupti none", and for messages "cupti or none". */
#define BACKEND_AND_(name, vendor, caps, injection) #name " "
#define BACKEND_OR_(name, vendor, caps, injection)  #name " or "
#define BACKEND_CHOICES GPU_BACKENDS(BACKEND_AND_) "none"
#define BACKEND_WORDS   GPU_BACKENDS(BACKEND_OR_) "none"
/* clang-format on */

enum backend_id {
#define X(name, vendor, caps, injection) BACKEND_##name,
	BACKENDS(X)
#undef X
		BACKEND_COUNT
};

struct backend_term {
	const char *name, *injection;
	uint8_t vendor; /* enum gpu_vendor */
	uint8_t caps;   /* enum backend_caps */
};

static const struct backend_term backend_terms[BACKEND_COUNT] = {
#define X(name, vendor, caps, injection) {#name, injection, VENDOR_##vendor, caps},
	BACKENDS(X)
#undef X
};

#endif
