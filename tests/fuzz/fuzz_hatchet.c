/* SPDX-License-Identifier: MIT. fuzz_hatchet.c: any bytes as a .hatchet file. What is read is a
 * sane tree; what is written of it is read again as the same tree. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export_format.h"
#include "fuzz_profile.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	struct profile *p = NULL, *q = NULL;
	struct err e = {0};
	char *text, *again;
	size_t n_text, n_again;
	uint32_t i;

	if (export_read((const char *)bytes, n, &p, &e) < 0) {
		MUST(e.code < 0 && e.text[0] != '\0' && p == NULL);
		return 0;
	}
	check_tree(p);
	for (i = 0; i < p->n_devices; i++)
		MUST(p->device[i].type != NULL && p->device[i].id != NULL &&
			p->device[i].arch_text != NULL);
	MUST(hatchet_write(p, &text, &n_text) == 0);
	MUST(export_read(text, n_text, &q, &e) == 0);
	MUST(p->n_nodes == q->n_nodes);
	for (i = 0; i < p->n_nodes; i++)
		MUST(p->node[i].parent == q->node[i].parent &&
			strcmp(p->node[i].name, q->node[i].name) == 0);
	/* Hints and dropped nulls are settled by the first writing: the second is the same text. */
	MUST(hatchet_write(q, &again, &n_again) == 0);
	MUST(n_text == n_again && memcmp(text, again, n_text) == 0);
	free(text);
	free(again);
	profile_free(p);
	profile_free(q);
	return 0;
}
