/* SPDX-License-Identifier: MIT. verb_table.c: the table of verbs, as WIRE_VERBS lists them. */
#include "verbs.h"

verb_fn *const verb_table[WIRE_VERB_MAX] = {
#define X(id, method, who, help) verb_##id,
	WIRE_VERBS(X)
#undef X
};
