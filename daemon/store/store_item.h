/* SPDX-License-Identifier: MIT. store_item.h: one thing that the store is asked for, and a list of
 * them. For store.c and store_reader.c. */
#ifndef PROTOND_STORE_ITEM_H
#define PROTOND_STORE_ITEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"
#include "store.h"

#define ITEM_MAGIC 0x4954454du

struct item {
	uint32_t magic;
	struct item *next;         /* in queue, kept, prunes or a reader */
	struct item *next_told;    /* in finished */
	const struct batch *batch; /* NULL once it is stored */
	store_work_fn *work;       /* NULL: store the batch, or prune */
	void *work_arg;
	struct store_prune *prune; /* NULL: none */
	store_done_fn *done;       /* NULL: nobody asks */
	void *arg;
	int r;
	struct err err;
	bool waited; /* somebody waits for `settled`, who owns the item; done() is not called */
	bool told, settled; /* under the store's lock; by the loop, by who worked on it */
};

struct list {
	struct item *head, **tail;
};

static inline void list_init(struct list *l)
{
	l->head = NULL;
	l->tail = &l->head;
}

static inline void list_add(struct list *l, struct item *i)
{
	i->next = NULL;
	*l->tail = i;
	l->tail = &i->next;
}

static inline struct item *list_take(struct list *l)
{
	struct item *i = l->head;

	if (i != NULL) {
		l->head = i->next;
		if (l->head == NULL)
			l->tail = &l->head;
	}
	return i;
}

#endif
