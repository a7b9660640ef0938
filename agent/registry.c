/* SPDX-License-Identifier: MIT. registry.c: the backends of this build, from the list of all. */
#include "registry.h"

#include <stddef.h>

static const struct backend *const all[BACKEND_COUNT] = {
#define X(name, vendor, caps, injection) &backend_##name,
	BACKENDS(X)
#undef X
};

/* The next after `b` that can do what `cap` says; after NULL, the first. */
static const struct backend *next_with(const struct backend *b, enum backend_caps cap)
{
	bool past = b == NULL;

	for (uint32_t i = 0; i < BACKEND_COUNT; i++) {
		if (past && (all[i]->term->caps & cap) != 0)
			return all[i];
		past = past || all[i] == b;
	}
	return NULL;
}

static bool is_usable(const struct backend *b)
{
	struct backend_status s;
	struct backend_error e;

	return b->probe(&s, &e) >= 0;
}

const struct backend *registry_gpu(void)
{
	const struct backend *first = next_with(NULL, CAP_KERNEL), *b = first;

	if (first == NULL || next_with(first, CAP_KERNEL) == NULL)
		return first;
	while (b != NULL && !is_usable(b))
		b = next_with(b, CAP_KERNEL);
	return b != NULL ? b : first;
}

const struct backend *registry_marker(void)
{
	return next_with(NULL, CAP_MARKER);
}
