/* SPDX-License-Identifier: MIT. web_stream.c: streams of events, and the looks that fill them. */
#include "web_stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "web_http.h"

#define LOOK_MS  500u   /* between two looks at least, */
#define SHARE    4u     /* and so many times what one takes: a fifth of a core at most */
#define AGAIN_MS 2000u  /* after one that failed */
#define BEAT_MS  15000u /* a word to whoever heard nothing: proxies let go of a silent connection */
#define BLOCK    16384u
#define AT_HAND  UINT64_MAX /* due_ms: the worker looks */

struct stream_client {
	struct streams *s;
	struct stream_watch *w;
	struct MHD_Connection *c;
	struct text sending;
	size_t sent;
	uint64_t seen, beat_ms; /* the last frame it was given; when it was last told something */
	bool waits, told_end, ends;
};

/* --- sending */

static bool has_news(const struct stream_client *k)
{
	return k->ends || k->w->number != k->seen || (k->w->over && !k->told_end) ||
	       k->s->now_ms - k->beat_ms >= BEAT_MS;
}

static void next_words(struct stream_client *k)
{
	struct text *t = &k->sending;

	t->n = k->sent = 0;
	k->beat_ms = k->s->now_ms;
	if (k->w->number != k->seen) {
		k->seen = k->w->number;
		text_fmt(t, "id: %llu\ndata: ", (unsigned long long)k->seen);
		text_add(t, k->w->frame.s, k->w->frame.n);
		text_str(t, "\n\n");
	} else if (k->w->over && !k->told_end) {
		k->told_end = true;
		text_str(t, "event: end\ndata: {}\n\n");
	} else {
		text_str(t, ": still here\n\n");
	}
}

static ssize_t on_room(void *of, uint64_t at, char *buf, size_t most)
{
	struct stream_client *k = of;
	size_t n;

	(void)at;
	if (k->sent == k->sending.n) {
		if (k->ends || k->told_end)
			return MHD_CONTENT_READER_END_OF_STREAM;
		if (!has_news(k)) {
			k->waits = true;
			http.suspend_connection(k->c);
			return 0;
		}
		next_words(k);
	}
	if (k->sending.failed)
		return MHD_CONTENT_READER_END_WITH_ERROR;
	n = k->sending.n - k->sent < most ? k->sending.n - k->sent : most;
	memcpy(buf, k->sending.s + k->sent, n);
	k->sent += n;
	return (ssize_t)n;
}

static void watch_fini(struct stream_watch *w)
{
	web_look_free(w->look);
	text_fini(&w->frame);
	*w = (struct stream_watch){.number = 0};
}

static void on_gone(void *of)
{
	struct stream_client *k = of;
	unsigned i;

	for (i = 0; i < STREAMS_MAX; i++)
		if (k->s->client[i] == k)
			k->s->client[i] = NULL;
	if (--k->w->clients == 0 && k->w->due_ms != AT_HAND)
		watch_fini(k->w);
	text_fini(&k->sending);
	free(k);
}

/* --- sessions that are looked at */

/* One of this id, else a free place: there are as many as there are clients. */
static struct stream_watch *watch_of(struct streams *s, const char *id)
{
	struct stream_watch *w, *free_one = NULL;

	for (w = s->watch; w < s->watch + STREAMS_MAX; w++) {
		if (w->clients > 0 && strcmp(w->id, id) == 0)
			return w;
		if (w->clients == 0 && w->due_ms != AT_HAND)
			free_one = w;
	}
	if (free_one == NULL)
		return NULL;
	watch_fini(free_one);
	snprintf(free_one->id, sizeof(free_one->id), "%s", id);
	return free_one;
}

struct MHD_Response *stream_open(struct streams *s, struct MHD_Connection *c, const char *id)
{
	struct stream_client *k = NULL;
	struct stream_watch *w = NULL;
	struct MHD_Response *r;
	unsigned i;

	for (i = 0; i < STREAMS_MAX && s->client[i] != NULL; i++)
		;
	if (i < STREAMS_MAX)
		w = watch_of(s, id);
	if (w != NULL)
		k = calloc(1, sizeof(*k));
	if (k == NULL)
		return NULL;
	*k = (struct stream_client){.s = s, .w = w, .c = c, .beat_ms = s->now_ms};
	text_str(&k->sending, "retry: 3000\n\n");
	r = http.create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK, on_room, k, on_gone);
	if (r == NULL) {
		text_fini(&k->sending);
		free(k);
		return NULL;
	}
	w->clients++;
	s->client[i] = k;
	return r;
}

struct stream_watch *stream_due(struct streams *s)
{
	struct stream_watch *w;

	for (w = s->watch; w < s->watch + STREAMS_MAX; w++)
		if (w->clients > 0 && !w->over && w->due_ms <= s->now_ms) {
			w->took_ms = s->now_ms;
			w->due_ms = AT_HAND;
			return w;
		}
	return NULL;
}

int stream_wait_ms(const struct streams *s, bool busy)
{
	uint64_t wait = UINT64_MAX;
	unsigned i;

	for (i = 0; i < STREAMS_MAX; i++) {
		const struct stream_watch *w = &s->watch[i];

		if (w->clients == 0)
			continue;
		wait = wait < BEAT_MS ? wait : BEAT_MS;
		if (!busy && !w->over && w->due_ms != AT_HAND)
			wait = w->due_ms <= s->now_ms         ? 0
			       : w->due_ms - s->now_ms < wait ? w->due_ms - s->now_ms
							      : wait;
	}
	return wait == UINT64_MAX ? -1 : (int)wait;
}

void stream_look(struct web *w, struct stream_watch *of, struct text *ret, bool *ret_over)
{
	web_live_look(w, of->id, &of->look, ret, ret_over);
}

void stream_looked(struct streams *s, struct stream_watch *of, struct text *take, bool over)
{
	const uint64_t took = s->now_ms - of->took_ms;

	if (of->clients == 0) {
		text_fini(take);
		watch_fini(of);
		return;
	}
	text_fini(&of->frame);
	of->frame = *take;
	*take = (struct text){0};
	of->number++;
	of->over = over;
	of->due_ms = s->now_ms + (took * SHARE > LOOK_MS ? took * SHARE : LOOK_MS);
	if (of->frame.n > 2 && strncmp(of->frame.s, "{\"away\"", 7) == 0)
		of->due_ms = s->now_ms + AGAIN_MS;
}

void stream_turn(struct streams *s, uint64_t now_ms)
{
	unsigned i;

	s->now_ms = now_ms;
	for (i = 0; i < STREAMS_MAX; i++) {
		struct stream_client *k = s->client[i];

		if (k == NULL || !k->waits || !has_news(k))
			continue;
		k->waits = false;
		http.resume_connection(k->c);
	}
}

void stream_end(struct streams *s)
{
	unsigned i;

	for (i = 0; i < STREAMS_MAX; i++)
		if (s->client[i] != NULL)
			s->client[i]->ends = true;
	stream_turn(s, s->now_ms);
}

void stream_fini(struct streams *s)
{
	unsigned i;

	for (i = 0; i < STREAMS_MAX; i++)
		watch_fini(&s->watch[i]);
}
