/* SPDX-License-Identifier: MIT. cupti_state.c: where the state of the CUPTI backend lies. */
#include "cupti_state.h"

struct cupti cupti;
