/* SPDX-License-Identifier: MIT. request.c: one request, from its frame to its answer. */
#include "request.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "must.h"

int request_new(const char *frame, size_t n, struct request **ret, struct err *e)
{
	struct request *q = calloc(1, sizeof(*q));
	int r;

	if (q == NULL || (q->frame = malloc(n)) == NULL) {
		free(q);
		return err_set(e, -ENOMEM, "out of memory");
	}
	memcpy(q->frame, frame, n);
	r = wire_parse(q->frame, n, &q->msg, e);
	if (r == 0 && q->msg.type != WIRE_REQUEST)
		r = err_set(e, -EBADMSG, "this socket takes requests only");
	if (r < 0) {
		request_free(q);
		return r;
	}
	q->magic = REQUEST_MAGIC;
	q->loop = uv_thread_self();
	q->params = q->msg.params;
	wire_buf_init(&q->out, WIRE_FRAME_MAX);
	*ret = q;
	return 0;
}

void request_empty(struct request *q)
{
	wire_msg_free(&q->msg);
	q->msg = (struct wire_msg){.type = WIRE_REQUEST};
	q->params = NULL;
	wire_buf_free(&q->out);
	free(q->frame);
	q->frame = NULL;
}

void request_free(struct request *q)
{
	if (q == NULL)
		return;
	request_empty(q);
	q->magic = 0;
	free(q);
}

struct request *request_of(void *p)
{
	struct request *q = p;
	const uv_thread_t self = uv_thread_self();

	MUST(q != NULL && q->magic == REQUEST_MAGIC); /* once only: answering clears it */
	MUST(uv_thread_equal(&self, &q->loop));
	return q;
}

struct wire_buf *request_result(struct request *q)
{
	request_of(q);
	MUST(q->out.n == 0);
	wire_response(&q->out, q->msg.msgid);
	wire_map(&q->out);
	return &q->out;
}

static void request_end(struct request *q, int *fd)
{
	int mine = *fd;

	q->magic = 0;
	*fd = -1;
	q->answer(q, &mine);
	if (mine >= 0)
		close(mine);
}

void request_done(struct request *q, int *fd)
{
	int none = -1, r = wire_frame_end(&request_of(q)->out);
	struct err e;

	if (r == 0) {
		request_end(q, fd != NULL ? fd : &none);
		return;
	}
	if (fd != NULL && *fd >= 0)
		close(*fd);
	err_set(&e, r, "the answer is too long for one message");
	request_fail(q, &e, "ask for less: one session or one job");
}

void request_fail(struct request *q, const struct err *e, const char *next)
{
	int none = -1;

	request_of(q);
	wire_buf_free(&q->out);
	wire_buf_init(&q->out, WIRE_FRAME_MAX);
	wire_failure(&q->out, q->msg.msgid, e, next);
	if (wire_frame_end(&q->out) < 0)
		q->out.n = 0; /* out of memory: no answer; the client's timeout tells */
	request_end(q, &none);
}

void request_refuse(struct request *q, const struct refusal *no)
{
	request_fail(q, &no->err, no->next);
}

void request_wrong(struct request *q, const char *what, const char *next)
{
	struct err e;

	err_set(&e, -EINVAL, "%s", what);
	request_fail(q, &e, next);
}
