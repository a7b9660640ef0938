/* SPDX-License-Identifier: MIT. store_round_trip.c: what is stored is what is loaded, in every
 * table and at the edges of every type. */
#include "store_help.h"

#include <math.h>
#include <sys/stat.h>

#include <sqlite3.h>

#include "ring.h"

static void fill_process(struct batch *b)
{
	struct row_process *p = test_process(b, 7);
	uint32_t i;

	memset(p->boot_id, 2, 16);
	memset(p->parent, 3, 16);
	memset(p->token, 4, 16);
	p->pid = UINT32_MAX;
	p->ns_pid = 17;
	p->uid = 4294967294u;
	p->flags = 3;
	p->clock = 1;
	p->tsc_khz = 2900000;
	p->n_lanes = 256;
	p->lane_bytes = 262144;
	p->pid_start = 1ull << 60;
	p->created_clock = UINT64_MAX;
	p->created_monotonic_ns = 5;
	p->created_realtime_ns = 1700000000000000001;
	p->rank = 3;
	p->local_rank = 0;
	p->world_size = 64;
	p->source = 1;
	p->gpu_state = GPU_FAILED;
	p->gpu_code = -39;
	p->cupti_version = 26;
	p->driver_version = 13000;
	p->agent_ns = 123456789;
	(void)snprintf(p->host, sizeof(p->host), "node17");
	(void)snprintf(p->version, sizeof(p->version), "0.1.0");
	(void)snprintf(p->gpu_text, sizeof(p->gpu_text), "no permission \xe2\x86\x92 set it");
	(void)snprintf(p->cupti_path, sizeof(p->cupti_path), "/usr/lib/libcupti.so.13");
	(void)snprintf(p->job_id, sizeof(p->job_id), "4711");
	for (i = 0; i < 8; i++)
		p->counters[i] = UINT64_MAX - i;
	p = test_process(b, 8); /* a plain one: ended, killed */
	p->ended_ns = 1700000001000000000;
	p->end_reason = END_KILLED;
	p = test_process(b, 9); /* ended, of no live session: not loaded */
	p->ended_ns = 1;
	p->end_reason = END_EXITED;
}

static void fill_session(struct batch *b)
{
	static const uint8_t states[] = {1, 2, 3, 4};
	struct row_session *s;
	uint32_t i;

	for (i = 0; i < 4; i++) {
		s = test_session(b, 3 + i, states[i]);
		s->match = MATCH_PID + i;
		s->source = SOURCE_JOB + i;
		s->pid = s->match == MATCH_PID ? 99 : 0;
		s->data = (uint8_t)(i % 3);
		s->context = (uint8_t)(i % 2);
		s->cpu = (uint8_t)(i % 2);
		s->gpu = (uint8_t)(i % 3);
		s->job_number = i == 1 ? 0 : UINT32_MAX;
		s->active_ns = 1ull << 62;
		s->launches = 10 + i;
		s->matched = 9 + i;
		s->daemon_ns = 77;
		s->uid = 1000;
		if (i == 0)
			memset(s->token, 9, 16);
		if (i == 1)
			memset(s->owner, 7, 16);
		(void)snprintf(s->mode, sizeof(s->mode), "pcsampling:2");
		(void)snprintf(s->hook, sizeof(s->hook), "triton");
		(void)snprintf(s->command, sizeof(s->command), "*train*'\"%%");
	}
}

static void fill_small(struct batch *b)
{
	*batch_member(b) = (struct row_member){3, 7};
	*batch_member(b) = (struct row_member){4, 8};
	*batch_active(b) = (struct row_active){3, 1000, 2000};
	*batch_active(b) = (struct row_active){3, 3000, 0};
	*batch_segment(b) = (struct row_segment){3, 0, 1000, 1500};
	*batch_segment(b) = (struct row_segment){3, UINT32_MAX, 1500, 0};
	*batch_busy(b) = (struct row_busy){3, 7, 63, 5, 6, 7, 1, 2, 3, 4, 5, 6, UINT32_MAX + 1ull};
	*batch_loss(b) = (struct row_loss){3, 7, LOST_LANE_FULL, UINT32_MAX + 1ull};
	*batch_loss(b) = (struct row_loss){0, 7, LOST_BAD, 2};
	*batch_note(b) = (struct row_note){3, 7, 1, 123, "gap: torch.profiler had CUPTI"};
	*batch_lane(b) = (struct row_lane){7, 0, 1ull << 40};
	*batch_lane(b) = (struct row_lane){7, 1023, 8};
	*batch_anchor(b) = (struct row_anchor){1, 100, 200, 300, 4};
	*batch_anchor(b) = (struct row_anchor){2, 50, 201, 301, 5};
	*batch_pending(b) = (struct row_pending){7, malloc(5), 5};
	memcpy(b->pending.row[0].bytes, "\0\1\2\0\3", 5);
	*batch_pending(b) = (struct row_pending){8, NULL, 0};
	*batch_memory(b) = (struct row_memory){3, 7, malloc(3), 3};
	memcpy(b->memory.row[0].bytes, "\0\7\0", 3);
}

static void fill_device(struct batch *b)
{
	struct row_device *d = batch_device(b);

	d->process = 7;
	d->device = 2;
	memset(d->uuid, 0xaa, 16);
	d->ordinal = 1;
	d->type = DEVICE_CUDA;
	d->pci_domain = 0x1;
	d->pci_bus = 0xfe;
	d->pci_device = 0x1f;
	d->arch = 90;
	d->num_sms = 132;
	d->clock_khz = 1980000;
	d->memory_clock_khz = 3201000;
	d->bus_width = 6144;
	d->memory_bytes = 150754820096;
	(void)snprintf(d->name, sizeof(d->name), "NVIDIA H200");
	(void)snprintf(d->label, sizeof(d->label), "left");
	(void)snprintf(d->streams, sizeof(d->streams), "7 copies\n");
}

static void fill_tree(struct batch *b)
{
	struct row_cell *c;
	struct row_config *f;
	struct hist_counts h = {.n = HIST_BUCKETS, .coarse = true};
	uint32_t i;

	test_node(b, 0, UINT32_MAX);
	test_node(b, 1, 0);
	test_node(b, 2, 1);
	test_node(b, 3, 2);
	b->node.row[3].kind = NODE_KERNEL;
	c = test_cell(b, 3, 3);
	c->process = 7;
	c->segment = UINT32_MAX;
	c->device = 2;
	c->class = CLASS_COMPUTE;
	c->count = 1ull << 50;
	c->sum_ns = 1ull << 61;
	c->min_ns = UINT64_MAX;
	c->bytes = 12;
	c->untimed = 13;
	c->open = 14;
	for (i = 0; i < HIST_BUCKETS; i++)
		h.count[i] = i % 5 < 2 ? 0 : UINT64_MAX - i;
	ck_assert(batch_hist(b, c, &h));
	c = test_cell(b, 3, 1);
	c->process = 7;
	c->buckets_n = 0;
	f = batch_config(b);
	f->session = 3;
	f->process = 7;
	test_hash(f->node, 3);
	f->config = UINT32_MAX;
	f->count = 5;
	f->grid_x = 1;
	f->grid_y = 2;
	f->grid_z = 3;
	f->block_x = 4;
	f->block_y = 5;
	f->block_z = UINT32_MAX;
	f->registers = 255;
	f->static_shared = 1;
	f->dynamic_shared = 232448;
}

struct metric_case {
	const char *name;
	uint8_t type, want_type;
	uint64_t bits, want_bits;
	const char *text;
};

static uint64_t bits_of(double f)
{
	uint64_t u;

	memcpy(&u, &f, sizeof(u));
	return u;
}

#define N_METRICS 11u

static void metric_cases(struct metric_case ret[N_METRICS])
{
	const struct metric_case cases[N_METRICS] = {
		{"i64", METRIC_I64, METRIC_I64, (uint64_t)INT64_MIN, (uint64_t)INT64_MIN, NULL},
		{"u64", METRIC_U64, METRIC_I64, INT64_MAX, INT64_MAX, NULL},
		{"u64 big", METRIC_U64, METRIC_F64, UINT64_MAX, bits_of(18446744073709551616.0),
			NULL},
		{"f64", METRIC_F64, METRIC_F64, bits_of(0.1), bits_of(0.1), NULL},
		{"f64 whole", METRIC_F64, METRIC_F64, bits_of(3.0), bits_of(3.0), NULL},
		{"f64 inf", METRIC_F64, METRIC_F64, bits_of(-HUGE_VAL), bits_of(-HUGE_VAL), NULL},
		{"f64 nan", METRIC_F64, METRIC_STR, bits_of((double)NAN), 0, "nan"},
		{"str", METRIC_STR, METRIC_STR, 0, 0, "fp8 \xe2\x9c\x93"},
		{"nan of a property", METRIC_F64, METRIC_F64, bits_of((double)NAN),
			bits_of((double)NAN), NULL},
		{"str empty", METRIC_STR, METRIC_STR, 0, 0, ""},
		{"str number", METRIC_STR, METRIC_STR, 0, 0, "12"},
	};

	memcpy(ret, cases, sizeof(cases));
}

static void fill_metrics(struct batch *b)
{
	struct metric_case cases[N_METRICS];
	struct row_metric *m;
	uint32_t i;

	metric_cases(cases);
	for (i = 0; i < N_METRICS; i++) {
		m = batch_metric(b);
		m->session = 3;
		m->process = 7;
		test_hash(m->node, 2);
		m->kind = (uint8_t)(i % 3); /* the 9th is a property */
		m->type = cases[i].type;
		m->bits = cases[i].bits;
		m->count = i;
		m->name = cases[i].name;
		m->text = cases[i].text;
	}
}

static void fill(struct batch *b)
{
	*b = (struct batch){0};
	fill_process(b);
	fill_session(b);
	fill_small(b);
	fill_device(b);
	fill_tree(b);
	fill_metrics(b);
	b->next_process = 20;
	b->next_session = 30;
	b->journal = 5ull << 32 | 77;
}

static void same_process(const struct row_process *a, const struct row_process *b)
{
	struct row_process x = *a, y = *b;

	ck_assert_str_eq(a->command, b->command);
	ck_assert_str_eq(a->exe, b->exe);
	ck_assert_str_eq(a->cwd, b->cwd);
	x.command = x.exe = x.cwd = y.command = y.exe = y.cwd = NULL;
	ck_assert_mem_eq(&x, &y, sizeof(x));
}

static void same_metrics(const struct batch *b)
{
	struct metric_case cases[N_METRICS];
	const struct row_metric *m;
	uint32_t i, k, found = 0;

	metric_cases(cases);
	ck_assert_uint_eq(b->metric.n, N_METRICS);
	for (i = 0; i < N_METRICS; i++)
		for (k = 0; k < N_METRICS; k++) {
			m = &b->metric.row[k];
			if (strcmp(m->name, cases[i].name) != 0)
				continue;
			found++;
			ck_assert_uint_eq(m->type, cases[i].want_type);
			ck_assert_uint_eq(m->kind, i % 3);
			ck_assert_uint_eq(m->count, i);
			if (m->type == METRIC_STR)
				ck_assert_str_eq(m->text, cases[i].text);
			else
				ck_assert_uint_eq(m->bits, cases[i].want_bits);
		}
	ck_assert_uint_eq(found, N_METRICS);
}

/* Rows are zeroed before they are filled, so whole structs compare. */
#define SAME(t, n_want, i, k)                                                             \
	do {                                                                              \
		ck_assert_uint_eq(got->t.n, n_want);                                      \
		ck_assert_mem_eq(&got->t.row[i], &want->t.row[k], sizeof(got->t.row[i])); \
	} while (0)

static void same_small(const struct batch *got, const struct batch *want)
{
	SAME(member, 2, 0, 0);
	SAME(member, 2, 1, 1);
	SAME(active, 2, 0, 0);
	SAME(active, 2, 1, 1);
	SAME(segment, 2, 0, 0);
	SAME(segment, 2, 1, 1);
	SAME(busy, 1, 0, 0);
	SAME(loss, 2, 0, 1);
	SAME(loss, 2, 1, 0);
	SAME(note, 1, 0, 0);
	SAME(lane, 2, 0, 0);
	SAME(lane, 2, 1, 1);
	SAME(anchor, 2, 0, 0);
	SAME(anchor, 2, 1, 1);
	SAME(device, 1, 0, 0);
	SAME(config, 1, 0, 0);
	ck_assert_uint_eq(got->pending.n, 1);
	ck_assert_uint_eq(got->pending.row[0].n, 5);
	ck_assert_mem_eq(got->pending.row[0].bytes, "\0\1\2\0\3", 5);
	ck_assert_uint_eq(got->memory.n, 1);
	ck_assert_uint_eq(got->memory.row[0].n, 3);
	ck_assert_mem_eq(got->memory.row[0].bytes, "\0\7\0", 3);
}

static void same_cell(const struct batch *got, uint32_t i, const struct batch *want, uint32_t k)
{
	struct row_cell x = got->cell.row[i];
	const struct row_cell *y = &want->cell.row[k];

	ck_assert_mem_eq(got->buckets + x.buckets, want->buckets + y->buckets, x.buckets_n);
	x.buckets = y->buckets; /* where they stand */
	ck_assert_mem_eq(&x, y, sizeof(x));
}

static void same_tree(const struct batch *got, const struct batch *want)
{
	uint32_t i, k;

	ck_assert_uint_eq(got->node.n, 4);
	for (i = 0; i < 4; i++) {
		ck_assert_str_eq(got->node.row[i].name, want->node.row[i].name);
		ck_assert_mem_eq(got->node.row[i].hash, want->node.row[i].hash, 16);
		ck_assert_mem_eq(got->node.row[i].parent, want->node.row[i].parent, 16);
		ck_assert_uint_eq(got->node.row[i].kind, want->node.row[i].kind);
	}
	ck_assert_uint_eq(got->cell.n, 2);
	for (i = 0; i < 2; i++) {
		k = memcmp(got->cell.row[i].node, want->cell.row[0].node, 16) == 0 ? 0 : 1;
		same_cell(got, i, want, k);
	}
}

static void same(const struct batch *got, const struct batch *want)
{
	uint32_t i;

	ck_assert_uint_eq(got->process.n, 2); /* 9 ended and belongs to nothing that lives */
	for (i = 0; i < 2; i++)
		same_process(&got->process.row[i], &want->process.row[i]);
	ck_assert_uint_eq(got->session.n, 3); /* the finalized one stays where it is */
	for (i = 0; i < 3; i++)
		ck_assert_mem_eq(
			&got->session.row[i], &want->session.row[i], sizeof(struct row_session));
	same_small(got, want);
	same_tree(got, want);
	same_metrics(got);
	ck_assert_int_eq(got->next_process, 20);
	ck_assert_int_eq(got->next_session, 30);
	ck_assert_uint_eq(got->journal, 5ull << 32 | 77);
}

START_TEST(every_table)
{
	struct store *s = test_open();
	struct batch b, want, got;
	uint8_t uuid[16], again[16];
	struct stat st;
	int round;

	fill(&want);
	for (round = 0; round < 3; round++) { /* stored twice is stored once */
		fill(&b);
		test_store(s, &b);
		got = test_load(s);
		same(&got, &want);
		batch_free(&got);
	}
	store_uuid(s, uuid);
	ck_assert_str_eq(store_path(s), test_db);
	ck_assert_int_eq(stat(test_db, &st), 0);
	ck_assert_uint_eq(st.st_mode & 0777, 0600);
	store_close(s);

	s = test_open();
	got = test_load(s);
	same(&got, &want);
	store_uuid(s, again);
	ck_assert_mem_eq(uuid, again, 16);
	batch_free(&got);
	batch_free(&want);
	store_close(s);
}
END_TEST

START_TEST(empty)
{
	struct store *s = test_open();
	struct batch b = {0}, got;

	got = test_load(s);
	ck_assert_uint_eq(got.session.n + got.process.n + got.node.n + got.anchor.n, 0);
	ck_assert_int_eq(got.next_process, 1);
	ck_assert_int_eq(got.next_session, 1);
	ck_assert_uint_eq(got.journal, 0);
	batch_free(&got);
	test_store(s, &b);
	store_close(s);
}
END_TEST

START_TEST(absolute_values_and_positions)
{
	struct store *s = test_open();
	struct batch b = {0}, got;

	test_whole(&b, 1, 1, 1, 3);
	b.journal = 100;
	b.next_session = 5;
	test_store(s, &b);
	test_whole(&b, 1, 1, 2, 3);
	b.cell.row[0].count = 50;
	*batch_pending(&b) = (struct row_pending){1, malloc(1), 0}; /* no bytes: none */
	test_store(s, &b);
	got = test_load(s);
	ck_assert_uint_eq(got.journal, 100); /* a batch without a position moves none back */
	ck_assert_int_eq(got.next_session, 5);
	ck_assert_uint_eq(got.cell.n, 2);
	ck_assert_uint_eq(got.cell.row[0].count, 1);
	ck_assert_uint_eq(got.cell.row[1].count, 50);
	ck_assert_uint_eq(got.pending.n, 0);
	batch_free(&got);
	store_close(s);
}
END_TEST

static void chunk(struct batch *b, uint32_t number, uint32_t bytes)
{
	struct row_trace *t = batch_trace(b);

	*t = (struct row_trace){.session = 1,
		.process = 1,
		.first = number * 100ull,
		.end_ns = number,
		.number = number,
		.events = 100,
		.n = bytes,
		.bytes = bytes > 0 ? malloc(bytes) : NULL};
	if (bytes > 0)
		memset(t->bytes, (int)number, bytes);
}

/* A chunk that grows is one row; one that is gone tells of all before it; a start needs no bytes.
 */
START_TEST(chunks)
{
	static const struct row_trace want[] = {{1, 1, 2, 200, 100, 2, NULL, 5000, NULL, 0},
		{1, 1, 3, 300, 100, 3, NULL, 7, NULL, 0}, {1, 1, 1, 100, 100, 1, NULL, 0, NULL, 0}};
	struct store *s = test_open();
	struct batch b = {0}, got;
	uint32_t i;

	test_whole(&b, 1, 1, 1, 3);
	for (i = 0; i < 4; i++)
		chunk(&b, i, i == 2 ? 5000 : 100);
	test_store(s, &b);
	chunk(&b, 3, 7);
	chunk(&b, 0, 0);
	test_store(s, &b);
	chunk(&b, 1, 0);
	test_store(s, &b);
	got = test_load(s);
	ck_assert_uint_eq(got.trace.n, 3);
	for (i = 0; i < 3; i++)
		ck_assert_mem_eq(&got.trace.row[i], &want[i], sizeof(want[i]));
	batch_free(&got);
	store_close(s);
}
END_TEST

/* A row that refers to a node nobody described keeps its counts; the description may come later,
 * and its parent later still. */
START_TEST(node_described_late)
{
	struct store *s = test_open();
	struct batch b = {0}, got;
	struct told t;
	uint32_t i;

	(void)test_session(&b, 1, 1);
	(void)test_cell(&b, 1, 5);
	t = test_submit(s, &b);
	ck_assert_int_eq(t.r, 0);
	ck_assert_int_eq(t.err.code, -EBADMSG);
	ck_assert_ptr_nonnull(strstr(t.err.text, "not described"));
	got = test_load(s);
	ck_assert_uint_eq(got.cell.n, 1);
	ck_assert_str_eq(got.node.row[0].name, "(unknown)");
	batch_free(&got);

	test_node(&b, 5, 4); /* its parent is unknown in turn */
	ck_assert_int_eq(test_submit(s, &b).r, 0);
	test_node(&b, 4, 0);
	test_node(&b, 0, UINT32_MAX);
	ck_assert_int_eq(test_submit(s, &b).r, 0);
	got = test_load(s);
	ck_assert_uint_eq(got.node.n, 3);
	for (i = 0; i < 3; i++) /* parents first, whatever their row ids */
		ck_assert_str_eq(got.node.row[i].name, i == 0   ? "node 0"
						       : i == 1 ? "node 4"
								: "node 5");
	ck_assert_mem_eq(got.node.row[2].parent, got.node.row[1].hash, 16);
	batch_free(&got);
	store_close(s);
}
END_TEST

/* A row that breaks a law is refused in words; the rest of its batch is stored. */
START_TEST(bad_row)
{
	struct store *s = test_open();
	struct batch b = {0}, got;
	struct told t;

	(void)test_process(&b, 1);
	memcpy(test_process(&b, 2)->ring, b.process.row[0].ring, 16);
	(void)test_process(&b, 3);
	t = test_submit(s, &b);
	ck_assert_int_eq(t.r, 0);
	ck_assert_int_eq(t.err.code, -EBADMSG);
	ck_assert_ptr_nonnull(strstr(t.err.text, "process.ring"));
	got = test_load(s);
	ck_assert_uint_eq(got.process.n, 2);
	ck_assert_int_eq(got.process.row[1].id, 3);
	batch_free(&got);
	store_close(s);
}
END_TEST

/* More nodes than the cache holds. */
START_TEST(many_nodes)
{
	struct store *s = test_open();
	struct batch b = {0}, got;
	uint32_t i, n = 200000;

	(void)test_session(&b, 1, 1);
	test_node(&b, 0, UINT32_MAX);
	for (i = 1; i < n; i++) {
		test_node(&b, i, (i - 1) / 2);
		if (i % 1000 == 0)
			(void)test_cell(&b, 1, i);
	}
	test_store(s, &b);
	for (i = 1; i < n; i += 777)
		(void)test_cell(&b, 1, i);
	test_store(s, &b);
	got = test_load(s);
	ck_assert_uint_ge(got.cell.n, 199 + 257);
	ck_assert_str_eq(got.node.row[0].name, "node 0");
	batch_free(&got);
	store_close(s);
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("store_round_trip");
	TCase *c = tcase_create("store");

	tcase_add_checked_fixture(c, test_setup, test_teardown);
	tcase_set_timeout(c, 120);
	tcase_add_test(c, every_table);
	tcase_add_test(c, empty);
	tcase_add_test(c, absolute_values_and_positions);
	tcase_add_test(c, chunks);
	tcase_add_test(c, node_described_late);
	tcase_add_test(c, bad_row);
	tcase_add_test(c, many_nodes);
	suite_add_tcase(s, c);
	return s;
}
