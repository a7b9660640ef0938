/* SPDX-License-Identifier: MIT. native_stack.c: the native stack of another thread, which is neither stopped nor gets a
 * signal.
 *
 * Of one that waits the kernel says where its stack is (/proc/self/task/TID/syscall), which stays as it is meanwhile. One
 * that runs is given a clock of the kernel's, for as long as the look takes: it ticks once, 10 microseconds of the thread's
 * CPU time later, and the kernel copies registers and STACK_BYTES of the stack at that tick (perf_event_open(); the
 * thread's own rights do while kernel.perf_event_paranoid is 2 or less). No tick within WAIT_NS: it is in the kernel, or
 * has no CPU. Nothing is kept of it: no descriptor, no buffer.
 *
 * From the registers on it goes outwards by cfi.c. How a frame is left depends on the pc alone: what was found out is kept
 * by pc, and forgotten when an object is not what it was (objects_prove()).
 */
#include "native_stack.h"

#include <asm/perf_regs.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "agent.h"
#include "cfi.h"
#include "core.h"
#include "objects.h"

#define STACK_BYTES  16384u
#define RING_PAGES   8u /* holds one sample */
#define PAGE         4096u
#define TICK_NS      10000u
#define WAIT_NS      300000
#define FD_HIGH      2048u
#define ROWS_BITS    13
#define NAMES_BITS   12
#define NAMES_PROBED 4u
#define GUESSES_MOST 512u /* words that a guess looks at, and guesses: */
#define TRIES        8u
#define NAMELESS     UINT32_MAX
#define NAMING_NS    50000000u /* CPU time for finding names, and of the time one part in: */
#define NAMING_SHARE 20u
#define NO_OBJECT    "(unknown code)"

/* What is known of a pc. */
struct row {
	uint64_t pc;
	uint32_t round;  /* of the objects; another one: nothing */
	uint64_t object; /* where it begins; 0: it is in none */
	bool there;      /* else `is` is only a guess */
	struct cfi_row is;
};

struct frame {
	uint64_t function; /* where it begins, or as much as is known of that */
	uint64_t object;
};

/* A stack as it was; what is not in it is read from `under`, unless that is NULL. */
struct copied {
	struct memory m; /* first: it is read as one */
	struct memory *under;
	uint64_t at;
	size_t n;
	uint8_t bytes[STACK_BYTES];
};

struct named {
	uint64_t function;
	uint32_t round; /* likewise */
	uint32_t name;  /* of the ring */
};

struct native {
	struct memory *m;
	uint64_t eval;
	uint64_t began_ns, naming_ns;
	bool refused; /* perf_event_open() is, for good */
	bool cut;     /* the last stack goes on */
	uint32_t n, round;
	struct copied stack;
	struct frame frame[NATIVE_FRAMES];
	struct objects objects;
	struct named names[1u << NAMES_BITS];
	struct row rows[1u << ROWS_BITS];
};

static bool read_copied(struct memory *m, uint64_t at, void *ret, size_t n)
{
	const struct copied *c = (const struct copied *)(const void *)m;

	if (at >= c->at && at - c->at <= c->n && n <= c->n - (at - c->at)) {
		memcpy(ret, c->bytes + (at - c->at), n);
		return true;
	}
	return c->under != NULL && c->under->read(c->under, at, ret, n);
}

struct native *native_new(struct memory *m)
{
	struct native *n = mmap(NULL, sizeof(*n), PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (n == MAP_FAILED)
		return NULL;
	(void)madvise(n, sizeof(*n), MADV_DONTFORK);
	n->m = m;
	n->began_ns = agent_monotonic_ns();
	n->objects.m = m;
	n->objects.round = 1; /* 0: of what was never filled */
	n->stack.m.read = read_copied;
	return n;
}

void native_free(struct native *n)
{
	if (n != NULL)
		(void)munmap(n, sizeof(*n));
}

void native_python(struct native *n, uint64_t eval)
{
	n->eval = eval;
}

#if defined(__x86_64__)

/* --- a thread that waits ---------------------------------------------------------------------- */

/* False: it does not wait. The line is "running", or ends in the stack pointer and the pc. */
static bool waits_at(uint32_t shown, uint64_t *ret_sp, uint64_t *ret_pc)
{
	char path[48], line[256], *pc, *sp;
	ssize_t got;
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/self/task/%u/syscall", shown);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	got = fd >= 0 ? read(fd, line, sizeof(line) - 1) : -1;
	if (fd >= 0)
		(void)close(fd);
	line[got > 0 ? got : 0] = '\0';
	pc = strrchr(line, ' ');
	if (pc == NULL)
		return false;
	*pc = '\0';
	sp = strrchr(line, ' ');
	if (sp == NULL)
		return false;
	*ret_sp = strtoull(sp + 1, NULL, 16);
	*ret_pc = strtoull(pc + 1, NULL, 16);
	return *ret_sp != 0;
}

static bool look_waiting(struct native *n, uint32_t shown, struct cfi_registers *ret)
{
	struct copied *c = &n->stack;
	uint64_t sp, pc;
	size_t part;

	if (!waits_at(shown, &sp, &pc))
		return false;
	*ret = (struct cfi_registers){.known = 1u << CFI_RSP | 1u << CFI_PC};
	ret->value[CFI_RSP] = sp;
	ret->value[CFI_PC] = pc;
	c->at = sp;
	c->n = sizeof(c->bytes);
	c->under = n->m;
	if (n->m->read(n->m, sp, c->bytes, c->n))
		return true;
	for (c->n = 0; c->n < sizeof(c->bytes); c->n += part) { /* it ends before */
		part = PAGE - (size_t)((sp + c->n) & (PAGE - 1));
		part = part < sizeof(c->bytes) - c->n ? part : sizeof(c->bytes) - c->n;
		if (!n->m->read(n->m, sp + c->n, c->bytes + c->n, part))
			break;
	}
	return c->n != 0;
}

/* --- a thread that runs ----------------------------------------------------------------------- */

/* Registers in the order of their bits, as a sample has them. */
static const uint8_t sampled[] = {CFI_RBX, CFI_RBP, CFI_RSP, CFI_PC, 12, 13, 14, 15};
#define SAMPLED                                                                           \
	(1u << PERF_REG_X86_BX | 1u << PERF_REG_X86_BP | 1u << PERF_REG_X86_SP |          \
		1u << PERF_REG_X86_IP | 1u << PERF_REG_X86_R12 | 1u << PERF_REG_X86_R13 | \
		1u << PERF_REG_X86_R14 | 1u << PERF_REG_X86_R15)

/* What the kernel writes; `n` bytes of the stack follow, and then how many of them are there. */
struct sample {
	struct perf_event_header header;
	uint64_t abi, registers[sizeof(sampled)], n;
};

/* The descriptor of the look at hand. */
static struct {
	_Atomic int fd; /* + 1; 0: none */
	_Atomic uint64_t id;
} ticking;

/* The program may have closed it, and have another file there. */
static void fd_close(int fd, uint64_t id)
{
	uint64_t is = 0;

	if (ioctl(fd, PERF_EVENT_IOC_ID, &is) == 0 && is == id)
		(void)close(fd);
}

/* At a number that a program's next file does not get. */
static int high(int fd)
{
	struct rlimit r = {0};
	uint64_t to = FD_HIGH;
	int moved;

	if (getrlimit(RLIMIT_NOFILE, &r) == 0 && r.rlim_cur / 2 < FD_HIGH)
		to = r.rlim_cur / 2;
	moved = fcntl(fd, F_DUPFD_CLOEXEC, (int)to);
	if (moved < 0)
		return fd;
	(void)close(fd);
	return moved;
}

/* -errno. A clock that does not tick yet. */
static int tick_open(uint32_t tid, uint64_t *ret_id)
{
	struct perf_event_attr a = {.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(a),
		.config = PERF_COUNT_SW_TASK_CLOCK,
		.sample_period = TICK_NS,
		.sample_type = PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER,
		.sample_regs_user = SAMPLED,
		.sample_stack_user = STACK_BYTES,
		.disabled = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.wakeup_events = 1};
	int fd = (int)syscall(SYS_perf_event_open, &a, (int)tid, -1, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		return -errno;
	fd = high(fd);
	if (ioctl(fd, PERF_EVENT_IOC_ID, ret_id) != 0) {
		(void)close(fd);
		return -EIO;
	}
	atomic_store(&ticking.id, *ret_id);
	atomic_store(&ticking.fd, fd + 1);
	return fd;
}

/* Ticks once. */
static bool tick(int fd)
{
	const struct timespec most = {.tv_nsec = WAIT_NS};
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return ioctl(fd, PERF_EVENT_IOC_REFRESH, 1) == 0 && ppoll(&p, 1, &most, NULL) == 1;
}

static bool take_sample(
	struct native *n, const struct perf_event_mmap_page *page, struct cfi_registers *ret)
{
	/* acquire: what is before the head is written */
	const uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
	const uint8_t *data = (const uint8_t *)page + PAGE;
	struct copied *c = &n->stack;
	struct sample s;
	uint64_t there;
	uint32_t i;

	if (head < sizeof(s) || head > RING_PAGES * PAGE)
		return false;
	memcpy(&s, data, sizeof(s));
	if (s.header.type != PERF_RECORD_SAMPLE || s.header.size > head ||
		s.abi != PERF_SAMPLE_REGS_ABI_64 || s.n > sizeof(c->bytes) ||
		s.header.size != sizeof(s) + s.n + (s.n != 0 ? sizeof(there) : 0) || s.n == 0)
		return false;
	memcpy(&there, data + sizeof(s) + s.n, sizeof(there));
	*ret = (struct cfi_registers){.known = 0};
	for (i = 0; i < sizeof(sampled); i++) {
		ret->value[sampled[i]] = s.registers[i];
		ret->known |= 1u << sampled[i];
	}
	c->under = NULL;
	c->at = ret->value[CFI_RSP];
	c->n = there < s.n ? there : s.n;
	memcpy(c->bytes, data + sizeof(s), c->n);
	return true;
}

/* Of what may be another time. */
static bool passes(int e)
{
	return e == ESRCH || e == EMFILE || e == ENFILE || e == ENOMEM || e == EINTR;
}

static enum native_what look_running(struct native *n, uint32_t tid, struct cfi_registers *ret)
{
	enum native_what what = NATIVE_NONE;
	uint64_t id;
	void *page;
	int fd;

	if (n->refused)
		return NATIVE_REFUSED;
	fd = tick_open(tid, &id);
	if (fd < 0) {
		n->refused = !passes(-fd);
		return fd == -ESRCH ? NATIVE_NONE : NATIVE_REFUSED;
	}
	page = mmap(NULL, (1 + RING_PAGES) * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED) {
		what = NATIVE_REFUSED;
	} else {
		if (tick(fd) && take_sample(n, page, ret))
			what = NATIVE_FOUND;
		(void)munmap(page, (1 + RING_PAGES) * PAGE);
	}
	if (atomic_exchange(&ticking.fd, 0) != 0)
		fd_close(fd, id);
	return what;
}

void native_forked(void)
{
	const int e = errno, fd = atomic_exchange(&ticking.fd, 0) - 1;

	if (fd >= 0)
		fd_close(fd, atomic_load(&ticking.id));
	errno = e;
}

/* --- frames ----------------------------------------------------------------------------------- */

/* NULL: it is not known this time. */
static const struct row *row_of(struct native *n, uint64_t pc)
{
	struct row *r = &n->rows[pc * 0x9e3779b97f4a7c15ull >> (64 - ROWS_BITS)];
	const struct object *o;
	bool later;
	int got = -ENOENT;

	if (r->pc == pc && r->round == n->round)
		return r;
	o = objects_find(&n->objects, pc, &later);
	if (later || n->objects.round != n->round)
		return NULL;
	if (o != NULL && o->frames != 0)
		got = cfi_find(n->m, o->frames, pc, &r->is);
	r->there = got == 0;
	r->object = o != NULL ? o->begin : 0;
	r->pc = pc;
	r->round = n->round;
	if (got != 0)
		cfi_by_frame_pointer(&r->is);
	if (got == -EBADMSG)
		r->is.base = CFI_REGISTERS; /* it has another way, which is not known */
	return r;
}

/* Where an object has no tables a frame pointer is believed that leads from code to code. */
static bool leads_to_code(struct native *n, const struct cfi_registers *r)
{
	const struct row *to = row_of(n, r->value[CFI_PC] - 1);

	return to != NULL && to->object != 0;
}

/* Does the instruction before `pc` call this function, as far as it says which one it calls? */
static bool called_from(struct native *n, uint64_t pc, uint64_t function)
{
	const struct row *to;
	uint8_t before[7];
	int32_t by;
	uint64_t target;
	uint32_t i;

	if (!n->m->read(n->m, pc - sizeof(before), before, sizeof(before)))
		return false;
	if (before[2] == 0xe8) {
		memcpy(&by, before + 3, sizeof(by));
		target = pc + (uint64_t)(int64_t)by;
		if (target == function)
			return true;
		to = row_of(n, target); /* a stub is no function */
		return to != NULL && (!to->there || to->is.begin != target);
	}
	for (i = 0; i < sizeof(before) - 1; i++) /* none has five bytes */
		if (before[i] == 0xff && (before[i + 1] >> 3 & 7) == 2 && i != 2)
			return true;
	return false;
}

/* Of a thread that waits rbp is not known before a frame has kept it. A frame that is told by rbp returns to an address
 * further out that follows a call of it: the first such from the word *from on; whether it is the one the rest of the stack
 * must show. False: nothing is to be guessed, or there is none. */
static bool guess(struct native *n, const struct row *row, struct cfi_registers *r, uint32_t *from)
{
	const struct cfi_row is = row->is;
	uint64_t at, pc;

	if (!row->there || is.base != CFI_RBP || is.indirect || (r->known >> CFI_RBP & 1) != 0)
		return false;
	while (*from < GUESSES_MOST) {
		at = r->value[CFI_RSP] + *from * sizeof(pc);
		++*from;
		if (!n->stack.m.read(&n->stack.m, at, &pc, sizeof(pc)))
			return false;
		if (objects_known(&n->objects, pc - 1) == NULL || !called_from(n, pc, is.begin))
			continue;
		r->value[CFI_RBP] = at + sizeof(pc) - (uint64_t)(int64_t)is.offset;
		r->known |= 1u << CFI_RBP;
		return true;
	}
	return false;
}

/* Is `place` in this frame? Else another run of the interpreter has begun or ended since Python's frames were read. */
static bool holds(struct native *n, const struct row *row, struct cfi_registers r, uint64_t place)
{
	const uint64_t from = r.value[CFI_RSP];
	bool end;

	return cfi_step(&row->is, &n->stack.m, &r, &end) && place >= from &&
	       place < r.value[CFI_RSP];
}

enum walked {
	WALK_LATER, /* not all is known yet */
	WALK_LOST,  /* it ends in nothing */
	WALK_DEEP,  /* there are more */
	WALK_WHOLE,
	WALK_PYTHON, /* to the interpreter's frame that was looked for */
};

/* From r on outwards. python: to the interpreter's frame that holds `place`. *from: where the first guess begins, and then
 * where another one would. *ret_sure: how many frames no guess has led to. */
static enum walked walk_once(struct native *n, struct cfi_registers r, bool python, uint64_t place,
	uint32_t *from, uint32_t *ret_sure)
{
	const struct row *row;
	uint32_t later = 0;
	bool called = false, end, there;

	*ret_sure = 0;
	for (n->n = 0; n->n < NATIVE_FRAMES;) {
		row = row_of(n, r.value[CFI_PC] - called);
		if (row == NULL)
			return WALK_LATER;
		there = row->there;
		called = !row->is.signal;
		if (python && n->eval != 0 && there && row->is.begin == n->eval)
			return holds(n, row, r, place) ? WALK_PYTHON : WALK_LOST;
		n->frame[n->n++] = (struct frame){there ? row->is.begin : row->pc, row->object};
		if (guess(n, row, &r, *ret_sure == 0 ? from : &later) && *ret_sure == 0)
			*ret_sure = n->n;
		if (!cfi_step(&row->is, &n->stack.m, &r, &end))
			return end ? WALK_WHOLE : WALK_LOST;
		if (!there && !leads_to_code(n, &r)) /* row may be another one from here on */
			return WALK_LOST;
	}
	return WALK_DEEP;
}

static enum native_what walk(
	struct native *n, const struct cfi_registers *r, bool python, uint64_t place)
{
	uint32_t from = 0, sure, try = 0;
	enum walked w;

	do {
		w = walk_once(n, *r, python, place, &from, &sure);
	} while (w == WALK_LOST && sure != 0 && ++try < TRIES);
	if (w == WALK_LOST && sure != 0)
		n->n = sure;
	n->cut = w == WALK_LOST || w == WALK_DEEP;
	return w == WALK_LATER || python != (w == WALK_PYTHON) ? NATIVE_NONE : NATIVE_FOUND;
}

static bool is_proved(struct native *n)
{
	uint64_t begin[NATIVE_FRAMES];
	uint32_t i, j, all = 0;

	for (i = 0; i < n->n; i++) {
		for (j = 0; j < all && begin[j] != n->frame[i].object; j++)
			;
		if (j == all && n->frame[i].object != 0)
			begin[all++] = n->frame[i].object;
	}
	return objects_prove(&n->objects, begin, all) && n->objects.round == n->round;
}

enum native_what native_look(
	struct native *n, uint32_t tid, uint32_t shown, bool python, uint64_t place)
{
	struct cfi_registers r;
	enum native_what what;
	uint64_t sp, pc;
	const bool waits = look_waiting(n, shown, &r);

	n->round = n->objects.round;
	what = waits ? NATIVE_FOUND : look_running(n, tid, &r);
	if (what != NATIVE_FOUND)
		return what;
	what = walk(n, &r, python, place);
	/* It may have gone on while its stack was read. */
	if (waits &&
		(!waits_at(shown, &sp, &pc) || sp != r.value[CFI_RSP] || pc != r.value[CFI_PC]))
		return NATIVE_NONE;
	return is_proved(n) ? what : NATIVE_NONE;
}

#else

enum native_what native_look(
	struct native *n, uint32_t tid, uint32_t shown, bool python, uint64_t place)
{
	(void)n;
	(void)tid;
	(void)shown;
	(void)python;
	(void)place;
	return NATIVE_REFUSED;
}

void native_forked(void)
{
}

#endif

/* --- names ------------------------------------------------------------------------------------ */

static uint64_t own_ns(void)
{
	struct timespec ts = {0};

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* NAMELESS: later. */
static uint32_t name_of(struct native *n, struct stacks *s, const struct frame *f)
{
	const uint32_t at = (uint32_t)(f->function * 0x9e3779b97f4a7c15ull >> (64 - NAMES_BITS));
	const struct object *o = objects_known(&n->objects, f->object);
	char text[MEMORY_NAME];
	struct named *k;
	uint64_t began;
	uint32_t i;

	if (o == NULL)
		return stacks_name(s, NO_OBJECT);
	for (i = 0; i < NAMES_PROBED; i++) {
		k = &n->names[(at + i) % (1u << NAMES_BITS)];
		if (k->round != n->round)
			break;
		if (k->function == f->function)
			return k->name;
	}
	if (i == NAMES_PROBED)
		k = &n->names[at];
	if (n->naming_ns > NAMING_NS + (agent_monotonic_ns() - n->began_ns) / NAMING_SHARE)
		return NAMELESS;
	began = own_ns();
	object_function(n->m, o, f->function, text, sizeof(text));
	n->naming_ns += own_ns() - began;
	*k = (struct named){f->function, n->round, stacks_name(s, text)};
	return k->name;
}

uint32_t native_below(struct native *n, struct stacks *s, uint32_t path)
{
	uint32_t name[NATIVE_FRAMES], i;

	for (i = 0; i < n->n; i++) {
		name[i] = name_of(n, s, &n->frame[i]);
		if (name[i] == NAMELESS)
			return path;
	}
	if (n->cut)
		path = stacks_below(s, path, stacks_name(s, STACK_CUT));
	while (i-- > 0)
		path = stacks_below(s, path, name[i]);
	return path;
}
