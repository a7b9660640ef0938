/* SPDX-License-Identifier: MIT. cfi.c: call frame information as the x86-64 psABI and LSB have it: a sorted table that leads
 * to a function's entry (FDE), which with what it shares with others (CIE) is a small program that says for each
 * instruction where the caller's registers are.
 *
 * Of DWARF's expressions those that are a register, a number and at most one load: realigned stacks and the kernel's
 * signal frames are of that kind; and the one that linkers write for the stubs of a PLT.
 */
#include "cfi.h"

#include <errno.h>
#include <string.h>

#define ENTRY_MOST  2560u /* bytes of an entry that are followed */
#define STATES_KEPT 8u
#define SEARCH_MOST 40u
#define OFFSET_MOST (1 << 28)
#define POINTER_END 2u /* a frame pointer points at two words: the caller's, and where it goes on */

enum encoding {
	ENC_ABSOLUTE = 0x00,
	ENC_U2 = 0x02,
	ENC_U4 = 0x03,
	ENC_U8 = 0x04,
	ENC_S2 = 0x0a,
	ENC_S4 = 0x0b,
	ENC_S8 = 0x0c,
	ENC_FORMAT = 0x0f,
	ENC_PC_RELATIVE = 0x10,
	ENC_TABLE = 0x3b, /* from the header on, 4 bytes */
	ENC_FRAME = 0x1b
};

/* --- bytes ------------------------------------------------------------------------------------ */

struct cursor {
	const uint8_t *p, *end;
	bool bad;
};

static uint64_t fixed(struct cursor *c, uint32_t n)
{
	uint64_t v = 0;

	if (c->bad || (size_t)(c->end - c->p) < n) {
		c->bad = true;
		return 0;
	}
	memcpy(&v, c->p, n);
	c->p += n;
	return v;
}

static uint64_t leb(struct cursor *c, bool is_signed)
{
	uint64_t v = 0, b = 0x80;
	uint32_t shift;

	for (shift = 0; (b & 0x80) != 0 && shift < 63; shift += 7) {
		b = fixed(c, 1);
		v |= (b & 0x7f) << shift;
	}
	c->bad |= (b & 0x80) != 0;
	if (is_signed && (b & 0x40) != 0)
		v |= UINT64_MAX << shift;
	return v;
}

static void skip(struct cursor *c, uint64_t n)
{
	if (c->bad || (uint64_t)(c->end - c->p) < n)
		c->bad = true;
	else
		c->p += n;
}

/* at: where c's next byte is in the process. */
static uint64_t pointer(struct cursor *c, uint8_t encoding, uint64_t at)
{
	uint64_t v;

	switch (encoding & ENC_FORMAT) {
	case ENC_ABSOLUTE:
	case ENC_U8:
	case ENC_S8:
		v = fixed(c, 8);
		break;
	case ENC_U4:
		v = fixed(c, 4);
		break;
	case ENC_S4:
		v = (uint64_t)(int64_t)(int32_t)fixed(c, 4);
		break;
	case ENC_U2:
		v = fixed(c, 2);
		break;
	case ENC_S2:
		v = (uint64_t)(int64_t)(int16_t)fixed(c, 2);
		break;
	default:
		c->bad = true;
		return 0;
	}
	if ((encoding & ~ENC_FORMAT) == ENC_PC_RELATIVE)
		return v + at;
	c->bad |= (encoding & ~ENC_FORMAT) != 0;
	return v;
}

/* --- entries ---------------------------------------------------------------------------------- */

/* As it was when it was read. */
struct entry {
	uint64_t at; /* of its first byte behind the length */
	uint32_t n;
	bool cut; /* it is longer */
	uint8_t bytes[ENTRY_MOST];
};

static bool entry_read(struct memory *m, uint64_t at, struct entry *ret)
{
	uint32_t n;

	if (!m->read(m, at, &n, sizeof(n)) || n < 8 || n == UINT32_MAX)
		return false;
	ret->at = at + sizeof(n);
	ret->cut = n > ENTRY_MOST;
	ret->n = ret->cut ? ENTRY_MOST : n;
	return m->read(m, ret->at, ret->bytes, ret->n);
}

static uint64_t place(const struct entry *e, const struct cursor *c)
{
	return e->at + (uint64_t)(c->p - e->bytes);
}

/* What a CIE says. */
struct common {
	uint64_t code_unit;
	int64_t data_unit;
	struct cursor program;
	uint8_t encoding; /* of a function's address */
	bool sized;       /* its entries have a part of a length that they say */
	bool signal;
};

static bool common_more(
	const struct entry *e, const char *letters, struct cursor c, struct common *k)
{
	for (; *letters != '\0' && !c.bad; letters++) {
		uint8_t encoding;

		switch (*letters) {
		case 'R':
			k->encoding = (uint8_t)fixed(&c, 1);
			break;
		case 'P':
			encoding = (uint8_t)fixed(&c, 1);
			(void)pointer(&c, encoding & (ENC_FORMAT | ENC_PC_RELATIVE), place(e, &c));
			break;
		case 'L':
			skip(&c, 1);
			break;
		case 'S':
			k->signal = true;
			break;
		default:
			return false;
		}
	}
	return !c.bad;
}

static bool common_of(const struct entry *e, struct common *ret)
{
	struct cursor c = {.p = e->bytes, .end = e->bytes + e->n};
	char letters[8];
	uint64_t version, column, n;
	uint32_t i;

	*ret = (struct common){.encoding = ENC_ABSOLUTE};
	if (fixed(&c, 4) != 0)
		return false;
	version = fixed(&c, 1);
	for (i = 0; i < sizeof(letters); i++) {
		letters[i] = (char)fixed(&c, 1);
		if (letters[i] == '\0')
			break;
	}
	if ((version != 1 && version != 3) || i == sizeof(letters))
		return false;
	ret->code_unit = leb(&c, false);
	ret->data_unit = (int64_t)leb(&c, true);
	column = version == 1 ? fixed(&c, 1) : leb(&c, false);
	if (column != CFI_PC || c.bad || (letters[0] != 'z' && letters[0] != '\0'))
		return false;
	ret->sized = letters[0] == 'z';
	if (ret->sized) {
		n = leb(&c, false);
		if (!common_more(e, letters + 1, c, ret))
			return false;
		skip(&c, n);
	}
	ret->program = c;
	return !c.bad;
}

/* --- programs --------------------------------------------------------------------------------- */

struct program {
	const struct common *of;
	const struct entry *e;
	uint64_t at, pc; /* where the row begins; the one that is asked for */
	struct cfi_row row, first, kept[STATES_KEPT];
	uint32_t n_kept;
	bool bad;
};

static int32_t offset_of(struct program *p, uint64_t n, int64_t unit)
{
	int64_t v;

	if (__builtin_mul_overflow((int64_t)n, unit, &v) || v > OFFSET_MOST || v < -OFFSET_MOST) {
		p->bad = true;
		return 0;
	}
	return (int32_t)v;
}

static void set_rule(struct program *p, uint64_t r, struct cfi_rule rule)
{
	if (r < CFI_REGISTERS) /* others hold no address */
		p->row.rule[r] = rule;
}

static void set_base(struct program *p, uint64_t r)
{
	p->row.base = r < CFI_REGISTERS ? (uint8_t)r : CFI_REGISTERS;
	p->row.indirect = false;
}

/* bregN offset [deref]; false: it is another. */
static bool expression(struct program *p, struct cursor *c, struct cfi_rule *ret, bool *ret_load)
{
	enum { OP_DEREF = 0x06, OP_BREG0 = 0x70 };
	const uint64_t n = leb(c, false);
	struct cursor x = *c;
	uint64_t op;

	skip(c, n);
	if (c->bad)
		return false;
	x.end = c->p;
	op = fixed(&x, 1);
	if (op < OP_BREG0 || op >= OP_BREG0 + CFI_REGISTERS)
		return false;
	*ret = (struct cfi_rule){.kind = CFI_BY_REGISTER,
		.base = (uint8_t)(op - OP_BREG0),
		.offset = offset_of(p, leb(&x, true), 1)};
	*ret_load = x.p < x.end && *x.p == OP_DEREF;
	return !x.bad && !p->bad && x.p + *ret_load == x.end;
}

/* rsp + 8, and 8 more behind the stub's push, which is its 11th byte or so: breg7 8, breg16 0, lit15, and, lit11, ge,
 * lit3, shl, plus. */
static bool is_stub(struct program *p, const struct cursor *c)
{
	static const uint8_t is[] = {
		11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x30, 0x2a, 0x33, 0x24, 0x22};
	enum {
		AT = 7 /* lit0 to lit15 */
	};

	if (c->bad || (size_t)(c->end - c->p) < sizeof(is) || memcmp(c->p, is, AT) != 0 ||
		(c->p[AT] & 0xf0) != is[AT] ||
		memcmp(c->p + AT + 1, is + AT + 1, sizeof(is) - AT - 1) != 0)
		return false;
	set_base(p, CFI_RSP);
	p->row.offset = (p->pc & 15) >= (c->p[AT] & 15u) ? 16 : 8;
	return true;
}

static void base_expression(struct program *p, struct cursor *c)
{
	struct cfi_rule rule;
	bool load;

	if (is_stub(p, c))
		skip(c, leb(c, false));
	else if (expression(p, c, &rule, &load)) {
		p->row.base = rule.base;
		p->row.offset = rule.offset;
		p->row.indirect = load;
	} else {
		p->row.base = CFI_REGISTERS;
	}
}

static void rule_expression(struct program *p, struct cursor *c)
{
	const uint64_t r = leb(c, false);
	struct cfi_rule rule;
	bool load;

	if (!expression(p, c, &rule, &load) || load)
		rule = (struct cfi_rule){.kind = CFI_LOST};
	set_rule(p, r, rule);
}

static void keep(struct program *p)
{
	if (p->n_kept == STATES_KEPT)
		p->bad = true;
	else
		p->kept[p->n_kept++] = p->row;
}

static void back(struct program *p)
{
	if (p->n_kept == 0)
		p->bad = true;
	else
		p->row = p->kept[--p->n_kept];
}

enum op {
	OP_SET_LOC = 0x01,
	OP_ADVANCE1 = 0x02,
	OP_ADVANCE2 = 0x03,
	OP_ADVANCE4 = 0x04,
	OP_OFFSET_EXTENDED = 0x05,
	OP_RESTORE_EXTENDED = 0x06,
	OP_UNDEFINED = 0x07,
	OP_SAME = 0x08,
	OP_REGISTER = 0x09,
	OP_REMEMBER = 0x0a,
	OP_BACK = 0x0b,
	OP_BASE = 0x0c,
	OP_BASE_REGISTER = 0x0d,
	OP_BASE_OFFSET = 0x0e,
	OP_BASE_EXPRESSION = 0x0f,
	OP_EXPRESSION = 0x10,
	OP_OFFSET_EXTENDED_SF = 0x11,
	OP_BASE_SF = 0x12,
	OP_BASE_OFFSET_SF = 0x13,
	OP_VAL_OFFSET = 0x14,
	OP_VAL_OFFSET_SF = 0x15,
	OP_VAL_EXPRESSION = 0x16,
	OP_ARGS_SIZE = 0x2e,
	OP_ADVANCE = 0x40,
	OP_OFFSET = 0x80,
	OP_RESTORE = 0xc0,
	OP_HIGH = 0xc0
};

static void do_rule(struct program *p, struct cursor *c, uint8_t op)
{
	const int64_t unit = p->of->data_unit;
	const uint64_t r = leb(c, false);
	const bool is_signed = op == OP_OFFSET_EXTENDED_SF;

	switch (op) {
	case OP_OFFSET_EXTENDED:
	case OP_OFFSET_EXTENDED_SF:
		set_rule(p, r,
			(struct cfi_rule){.kind = CFI_IN_FRAME,
				.offset = offset_of(p, leb(c, is_signed), unit)});
		break;
	case OP_RESTORE_EXTENDED:
		set_rule(p, r, p->first.rule[r < CFI_REGISTERS ? r : 0]);
		break;
	case OP_SAME:
		set_rule(p, r, (struct cfi_rule){.kind = CFI_SAME});
		break;
	case OP_UNDEFINED:
		set_rule(p, r, (struct cfi_rule){.kind = CFI_LOST});
		break;
	default: /* in another register, or a number: none that matters is */
		(void)leb(c, false);
		set_rule(p, r, (struct cfi_rule){.kind = CFI_LOST});
	}
}

static void do_base(struct program *p, struct cursor *c, uint8_t op)
{
	const int64_t unit = p->of->data_unit;

	switch (op) {
	case OP_BASE:
		set_base(p, leb(c, false));
		p->row.offset = offset_of(p, leb(c, false), 1);
		break;
	case OP_BASE_SF:
		set_base(p, leb(c, false));
		p->row.offset = offset_of(p, leb(c, true), unit);
		break;
	case OP_BASE_REGISTER:
		set_base(p, leb(c, false));
		break;
	case OP_BASE_OFFSET:
		p->row.offset = offset_of(p, leb(c, false), 1);
		break;
	default:
		p->row.offset = offset_of(p, leb(c, true), unit);
	}
}

static void do_other(struct program *p, struct cursor *c, uint8_t op)
{
	uint64_t r;

	switch (op) {
	case 0: /* nothing */
		break;
	case OP_REMEMBER:
		keep(p);
		break;
	case OP_BACK:
		back(p);
		break;
	case OP_BASE_EXPRESSION:
		base_expression(p, c);
		break;
	case OP_EXPRESSION:
		rule_expression(p, c);
		break;
	case OP_VAL_EXPRESSION:
		r = leb(c, false);
		skip(c, leb(c, false));
		set_rule(p, r, (struct cfi_rule){.kind = CFI_LOST});
		break;
	case OP_ARGS_SIZE:
		(void)leb(c, false);
		break;
	default:
		p->bad = true;
	}
}

/* Where the next row begins; p->at: this instruction is of the row at hand. */
static uint64_t advanced(struct program *p, struct cursor *c, uint8_t op)
{
	if ((op & OP_HIGH) == OP_ADVANCE)
		return p->at + (op & 0x3fu) * p->of->code_unit;
	switch (op) {
	case OP_SET_LOC:
		return pointer(c, p->of->encoding, place(p->e, c));
	case OP_ADVANCE1:
		return p->at + fixed(c, 1) * p->of->code_unit;
	case OP_ADVANCE2:
		return p->at + fixed(c, 2) * p->of->code_unit;
	default:
		return p->at + fixed(c, 4) * p->of->code_unit;
	}
}

static bool is_advance(uint8_t op)
{
	return (op & OP_HIGH) == OP_ADVANCE || (op >= OP_SET_LOC && op <= OP_ADVANCE4);
}

static void one(struct program *p, struct cursor *c, uint8_t op)
{
	const uint8_t low = op & 0x3f;

	if ((op & OP_HIGH) == OP_OFFSET)
		set_rule(p, low,
			(struct cfi_rule){.kind = CFI_IN_FRAME,
				.offset = offset_of(p, leb(c, false), p->of->data_unit)});
	else if ((op & OP_HIGH) == OP_RESTORE)
		set_rule(p, low, p->first.rule[low < CFI_REGISTERS ? low : 0]);
	else if (op == OP_VAL_OFFSET || op == OP_VAL_OFFSET_SF || op == OP_OFFSET_EXTENDED_SF ||
		 (op >= OP_OFFSET_EXTENDED && op <= OP_REGISTER))
		do_rule(p, c, op);
	else if (op == OP_BASE_SF || op == OP_BASE_OFFSET_SF ||
		 (op >= OP_BASE && op <= OP_BASE_OFFSET))
		do_base(p, c, op);
	else
		do_other(p, c, op);
}

/* True: the row of pc is p->row. cut: behind c there is more. */
static bool run(struct program *p, struct cursor c, bool cut)
{
	uint64_t next;
	uint8_t op;

	while (c.p < c.end && !c.bad && !p->bad) {
		op = (uint8_t)fixed(&c, 1);
		if (!is_advance(op)) {
			one(p, &c, op);
			continue;
		}
		next = advanced(p, &c, op);
		if (!c.bad && next > p->pc)
			return true;
		p->at = next;
	}
	return !c.bad && !p->bad && !cut;
}

/* --- a function's entry ----------------------------------------------------------------------- */

static bool run_both(struct program *p, struct cursor program, const struct cfi_row *function)
{
	p->row = *function;
	p->at = function->begin;
	if (!run(p, p->of->program, false))
		return false;
	p->first = p->row;
	p->at = function->begin;
	return run(p, program, p->e->cut);
}

/* Of a callee nothing is said about: what a function must keep it has kept. */
static void row_start(struct cfi_row *row)
{
	static const uint8_t same[] = {CFI_RBX, CFI_RBP, 12, 13, 14, 15};
	uint32_t i;

	memset(row, 0, sizeof(*row));
	row->base = CFI_REGISTERS;
	for (i = 0; i < sizeof(same); i++)
		row->rule[same[i]].kind = CFI_SAME;
}

static int function_row(struct memory *m, uint64_t at, uint64_t pc, struct cfi_row *ret)
{
	struct entry e, shared;
	struct common k;
	struct cursor c;
	struct cfi_row function;
	struct program p;
	uint64_t back_by;

	if (!entry_read(m, at, &e))
		return -EBADMSG;
	c = (struct cursor){.p = e.bytes, .end = e.bytes + e.n};
	back_by = fixed(&c, 4);
	if (back_by == 0 || !entry_read(m, e.at - back_by, &shared) || !common_of(&shared, &k))
		return -EBADMSG;
	row_start(&function);
	function.signal = k.signal;
	function.begin = pointer(&c, k.encoding, place(&e, &c));
	function.end = function.begin + pointer(&c, k.encoding & ENC_FORMAT, 0);
	if (k.sized)
		skip(&c, leb(&c, false));
	if (c.bad)
		return -EBADMSG;
	if (pc < function.begin || pc >= function.end)
		return -ENOENT;
	p = (struct program){.of = &k, .e = &e, .pc = pc};
	if (!run_both(&p, c, &function) || p.row.base >= CFI_REGISTERS)
		return -EBADMSG;
	*ret = p.row;
	return 0;
}

struct table_head {
	uint8_t version, frame, count, table;
	int32_t frame_at;
	uint32_t n;
};
struct table_row {
	int32_t function, entry; /* from the header on */
};

int cfi_find(struct memory *m, uint64_t header, uint64_t pc, struct cfi_row *ret)
{
	struct table_head h;
	struct table_row t;
	uint64_t entry = 0;
	uint32_t low = 0, high, middle, step;

	if (!m->read(m, header, &h, sizeof(h)) || h.version != 1 || h.frame != ENC_FRAME ||
		h.count != ENC_U4 || h.table != ENC_TABLE)
		return -ENOENT;
	high = h.n;
	for (step = 0; low < high && step < SEARCH_MOST; step++) {
		middle = low + (high - low) / 2;
		if (!m->read(m, header + sizeof(h) + middle * UINT64_C(8), &t, sizeof(t)))
			return -EBADMSG;
		if (header + (uint64_t)(int64_t)t.function > pc) {
			high = middle;
		} else {
			entry = header + (uint64_t)(int64_t)t.entry;
			low = middle + 1;
		}
	}
	return entry != 0 ? function_row(m, entry, pc, ret) : -ENOENT;
}

void cfi_by_frame_pointer(struct cfi_row *ret)
{
	row_start(ret);
	ret->base = CFI_RBP;
	ret->offset = 8 * (int32_t)POINTER_END;
	ret->rule[CFI_RBP] = (struct cfi_rule){.kind = CFI_IN_FRAME, .offset = -16};
	ret->rule[CFI_PC] = (struct cfi_rule){.kind = CFI_IN_FRAME, .offset = -8};
	ret->rule[CFI_RBX].kind = CFI_LOST;
	for (uint32_t i = 12; i < CFI_PC; i++)
		ret->rule[i].kind = CFI_LOST;
}

/* --- one frame outwards ----------------------------------------------------------------------- */

static bool knows(const struct cfi_registers *r, uint32_t which)
{
	return (r->known >> which & 1) != 0;
}

static bool frame_end(const struct cfi_row *row, struct memory *stack,
	const struct cfi_registers *r, uint64_t *ret)
{
	if (row->base >= CFI_REGISTERS || !knows(r, row->base))
		return false;
	*ret = r->value[row->base] + (uint64_t)(int64_t)row->offset;
	return !row->indirect || stack->read(stack, *ret, ret, sizeof(*ret));
}

/* False: not to be had. */
static bool caller_has(const struct cfi_rule *rule, uint64_t cfa, struct memory *stack,
	const struct cfi_registers *r, uint32_t which, uint64_t *ret)
{
	uint64_t at = cfa;

	switch ((enum cfi_kind)rule->kind) {
	case CFI_SAME:
		*ret = r->value[which];
		return knows(r, which);
	case CFI_BY_REGISTER:
		if (!knows(r, rule->base))
			return false;
		at = r->value[rule->base];
		break;
	case CFI_IN_FRAME:
		break;
	case CFI_LOST:
	default:
		return false;
	}
	return stack->read(stack, at + (uint64_t)(int64_t)rule->offset, ret, sizeof(*ret));
}

bool cfi_step(
	const struct cfi_row *row, struct memory *stack, struct cfi_registers *r, bool *ret_end)
{
	struct cfi_registers of = {.known = 0};
	uint64_t cfa;
	uint32_t i;

	*ret_end = row->rule[CFI_PC].kind == CFI_LOST;
	if (*ret_end || !frame_end(row, stack, r, &cfa) ||
		(cfa <= r->value[CFI_RSP] && !row->signal))
		return false;
	for (i = 0; i < CFI_REGISTERS; i++)
		if (caller_has(&row->rule[i], cfa, stack, r, i, &of.value[i]))
			of.known |= 1u << i;
	of.value[CFI_RSP] = cfa;
	of.known |= 1u << CFI_RSP;
	if (!knows(&of, CFI_PC))
		return false;
	*ret_end = of.value[CFI_PC] == 0;
	*r = of;
	return !*ret_end;
}
