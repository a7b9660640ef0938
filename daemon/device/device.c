/* SPDX-License-Identifier: MIT. device.c: protond-device, which measures GPUs and their host for
 * protond, and by hand. A program of its own, because protond has neither devices nor a network, and
 * because a driver may hang: then this one hangs, and nobody waits for it.
 *
 * With --print it writes a line a reading and asks nobody. Else descriptor 3 is a SEQPACKET socket:
 * WANT comes in, TROUBLE and READING go out; at its end it ends.
 */
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "host.h"
#include "nvml.h"
#include "time_namespace.h"

#define SECOND_NS  1000000000ull
#define EXIT_USAGE 2
#define SOCKET     3 /* where protond, or systemd, puts it */

struct device {
	int fd; /* -1: --print */
	uint32_t hz;
	uint64_t left; /* readings of --print; UINT64_MAX: until it is ended */
	struct nvml *nvml;
	struct host host;
	uint64_t last_ns, slow_ns, slow_every_ns;
	bool ended;
};

static int64_t ahead_ns;

static uint64_t now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * SECOND_NS + (uint64_t)t.tv_nsec - (uint64_t)ahead_ns;
}

static uint64_t cpu_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * SECOND_NS + (uint64_t)t.tv_nsec;
}

/* --- what is said */

static const char *words_of(uint32_t trouble, const char **ret_help)
{
	switch (trouble) {
#define X(name, number, words, help) \
	case number:                 \
		*ret_help = help;    \
		return words;
		DEVICE_TROUBLES(X)
#undef X
	default:
		*ret_help = "";
		return "";
	}
}

/* A full socket drops a packet: readings say from when they are, so what is missed is seen. */
static void send_packet(struct device *d, const void *p, size_t n)
{
	if (send(d->fd, p, n, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno != EAGAIN &&
		errno != ENOBUFS)
		d->ended = true;
}

static void say(void *arg, enum device_trouble trouble, int code, const char *text)
{
	struct device *d = arg;
	struct device_said s = {.head = {DEVICE_MAGIC, DEVICE_TROUBLE}, .trouble = trouble};
	const char *help, *words = words_of(trouble, &help);

	s.code = code;
	(void)snprintf(s.text, sizeof(s.text), "%s", text);
	if (d->fd >= 0)
		send_packet(d, &s, sizeof(s));
	else
		(void)fprintf(stderr, "protond-device: %s%s%s%s; what helps: %s\n", words,
			*text != '\0' ? " (" : "", text, *text != '\0' ? ")" : "", help);
}

/* {"gpu":0,"seconds":1.000,"cpu_percent":0.05,"power":700.1,…}: what is not known is not there. A
 * name is letters that JSON has no meaning for, or a space. */
static void print_reading(const struct device_reading *r, uint64_t began_ns)
{
	uint32_t q, i;

	if (r->gpu == DEVICE_HOST)
		(void)printf("{\"gpu\":null");
	else
		(void)printf("{\"gpu\":%u,\"pci\":\"%04x:%02x:%02x\",\"name\":\"", r->gpu,
			r->pci_domain, r->pci_bus, r->pci_device);
	for (i = 0; r->gpu != DEVICE_HOST && r->name[i] != '\0'; i++)
		(void)putchar(r->name[i] >= ' ' && r->name[i] < 127 && r->name[i] != '"' &&
					      r->name[i] != '\\'
				      ? r->name[i]
				      : ' ');
	(void)printf("%s,\"seconds\":%.6f,\"cpu_percent\":%.4f", r->gpu != DEVICE_HOST ? "\"" : "",
		(double)(r->end_ns - r->begin_ns) / 1e9,
		100.0 * (double)cpu_ns() / (double)(now_ns() - began_ns));
	for (q = 0; q < DEVICE_N; q++)
		if ((r->known >> q & 1) != 0)
			(void)printf(",\"%s\":%.12g", device_words(q)->name, r->value[q]);
	(void)printf(",\"processes\":{");
	for (i = 0; i < r->n_processes; i++)
		(void)printf("%s\"%u\":%llu", i > 0 ? "," : "", r->process[i].pid,
			(unsigned long long)r->process[i].bytes);
	(void)printf("}}\n");
	(void)fflush(stdout);
}

/* --- readings */

static void one(struct device *d, uint32_t gpu, bool slow, uint64_t began_ns)
{
	struct device_reading r = {.head = {DEVICE_MAGIC, DEVICE_READING}, .gpu = gpu};

	r.begin_ns = d->last_ns;
	if (gpu == DEVICE_HOST)
		host_read(&d->host, &r);
	else
		nvml_read(d->nvml, gpu, slow, &r);
	r.end_ns = now_ns();
	if (r.begin_ns == 0)
		return; /* the first look is where counters begin */
	if (d->fd >= 0)
		send_packet(d, &r, sizeof(r));
	else
		print_reading(&r, began_ns);
}

static void all(struct device *d, uint64_t began_ns)
{
	const uint64_t now = now_ns();
	const bool slow = d->slow_ns == 0 || now - d->slow_ns >= d->slow_every_ns || d->left == 0;
	uint32_t i;

	for (i = 0; i < nvml_gpus(d->nvml); i++)
		one(d, i, slow, began_ns);
	one(d, DEVICE_HOST, slow, began_ns);
	d->last_ns = now;
	if (!slow)
		return;
	d->slow_every_ns = d->slow_ns == 0                             ? DEVICE_SLOW_NS
			   : d->slow_every_ns * 2 < DEVICE_SLOW_MAX_NS ? d->slow_every_ns * 2
								       : DEVICE_SLOW_MAX_NS;
	d->slow_ns = now;
}

static void take_want(struct device *d)
{
	struct device_want w;
	const ssize_t n = recv(d->fd, &w, sizeof(w), MSG_DONTWAIT);

	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		d->ended = true;
	if (n != (ssize_t)sizeof(w) || w.head.magic != DEVICE_MAGIC || w.head.kind != DEVICE_WANT)
		return;
	d->hz = w.hz < DEVICE_HZ_MAX ? w.hz : DEVICE_HZ_MAX;
	d->last_ns = 0; /* what was not asked for is in no reading */
	d->slow_ns = 0;
}

/* Until `ns`; for ever: 0. */
static void wait_until(struct device *d, uint64_t ns)
{
	struct pollfd p = {.fd = d->fd, .events = POLLIN};
	const uint64_t now = now_ns(), left = ns > now ? ns - now : 0;
	const struct timespec t = {(time_t)(left / SECOND_NS), (long)(left % SECOND_NS)};

	if (ppoll(&p, d->fd >= 0, ns == 0 ? NULL : &t, NULL) > 0)
		take_want(d);
}

static void serve(struct device *d)
{
	const uint64_t began = now_ns();
	uint64_t next = began;

	while (!d->ended) {
		const uint32_t hz = d->hz;

		if (hz == 0) {
			wait_until(d, 0);
			next = now_ns();
			continue;
		}
		wait_until(d, next);
		if (d->hz != hz || now_ns() < next)
			continue;
		all(d, began);
		next += SECOND_NS / hz;
		if (next < now_ns()) /* a slow driver: no readings are made up for */
			next = now_ns() + SECOND_NS / hz;
		if (d->left != UINT64_MAX && d->left-- == 0)
			d->ended = true;
	}
}

/* --- the program */

/* clang-format off */
#define OPTIONS(X) /* name    argument   what */                                                       \
	X(print,   no_argument,       "",        "writes a line of JSON for each reading; nobody is asked")   \
	X(count,   required_argument, " N",      "with --print: so many readings, then it ends")          \
	X(hz,      required_argument, " N",      "with --print: so many a second, 1 to 10; default 1")    \
	X(root,    required_argument, " DIR",    "/proc and /sys are read below this folder")             \
	X(version, no_argument,       "",        "the version")                                           \
	X(help,    no_argument,       "",        "this text")                                             \
	X(man,     no_argument,       "",        "protond-device(8)")
/* clang-format on */

enum option_id {
#define X(name, has, argument, help) OPTION_##name,
	OPTIONS(X)
#undef X
		OPTION_MAX
};

static void print_help(void)
{
	(void)printf(
		"usage: protond-device --print [--count N] [--hz N]\n\nMeasures GPUs (by NVML and "
		"its GPM) and their host. protond starts it; --print is for people.\n\n");
#define X(name, has, argument, help) (void)printf("  --%-12s %s\n", #name argument, help);
	OPTIONS(X)
#undef X
	(void)printf("\nQuantities, where the GPU, its driver and the rights of this process have "
		     "them:\n\n");
#define X(name, of, unit, merge, slow, what) (void)printf("  %-20s %-7s %s\n", #name, unit, what);
	DEVICE_QUANTITIES(X)
#undef X
}

static void print_man(void)
{
	(void)printf(
		".TH PROTOND-DEVICE 8 \"\" \"protond %s\"\n.SH NAME\nprotond-device \\- measures "
		"GPUs and their host for protond\n.SH SYNOPSIS\n.B protond-device \\-\\-print\n"
		"[\\-\\-count N] [\\-\\-hz N]\n.SH DESCRIPTION\nReads power, clocks, "
		"temperature, memory, what held the clocks, activity and errors of each GPU by "
		"NVML and its GPM,\nand the host's pressure, network cards, InfiniBand ports "
		"and disks. A program of its own: a driver\nthat hangs takes nobody along. "
		"Errors are said once, on standard error.\n.SH OPTIONS\n",
		PROTOND_BUILD_VERSION);
#define X(name, has, argument, help) (void)printf(".TP\n.B \\-\\-%s\n%s\n", #name argument, help);
	OPTIONS(X)
#undef X
	(void)printf(".SH QUANTITIES\n");
#define X(name, of, unit, merge, slow, what) \
	(void)printf(".TP\n.B %s\n%s%s%s\n", #name, what, *unit != '\0' ? "; " : "", unit);
	DEVICE_QUANTITIES(X)
#undef X
	(void)printf(".SH EXIT STATUS\n0 it was ended, or the readings are printed; 2 usage\n"
		     ".SH SEE ALSO\n.BR protond (8)\n");
}

/* Exit status. */
static int printed(void)
{
	return fflush(stdout) == 0 ? 0 : 1;
}

static bool number(const char *s, uint64_t least, uint64_t most, uint64_t *ret)
{
	char *end;

	errno = 0;
	*ret = strtoull(s, &end, 10);
	return errno == 0 && end != s && *end == '\0' && *s != '-' && *ret >= least && *ret <= most;
}

static int usage(const char *what)
{
	(void)fprintf(stderr, "protond-device: %s; see `protond-device --help`\n", what);
	return EXIT_USAGE;
}

/* Exit status, or -1 to go on. */
static int parse(int argc, char **argv, struct device *d)
{
	static const struct option longs[] = {
#define X(name, has, argument, help) {#name, has, NULL, OPTION_##name},
		OPTIONS(X)
#undef X
			{NULL, 0, NULL, 0}};
	uint64_t n;
	int c;

	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		if (c == OPTION_print) {
			d->fd = -1;
			d->hz = d->hz == 0 ? 1 : d->hz;
		} else if (c == OPTION_count) {
			if (!number(optarg, 1, UINT32_MAX, &d->left))
				return usage("--count wants a number, 1 or more");
		} else if (c == OPTION_hz) {
			if (!number(optarg, 1, DEVICE_HZ_MAX, &n))
				return usage("--hz wants a number, 1 to 10");
			d->hz = (uint32_t)n;
		} else if (c == OPTION_root) {
			d->host.root = optarg;
		} else if (c == OPTION_version) {
			(void)printf("protond-device %s\n", PROTOND_BUILD_VERSION);
			return printed();
		} else if (c == OPTION_help) {
			print_help();
			return printed();
		} else if (c == OPTION_man) {
			print_man();
			return printed();
		} else {
			return usage("unknown option");
		}
	}
	if (optind < argc)
		return usage("it takes options only");
	if (d->fd >= 0 && (d->hz != 0 || d->left != UINT64_MAX))
		return usage("--count and --hz go with --print");
	return -1;
}

int main(int argc, char **argv)
{
	struct device d = {.fd = SOCKET, .left = UINT64_MAX, .host = {.root = ""}};
	int type = 0, r = parse(argc, argv, &d);
	socklen_t n = sizeof(type);

	if (r >= 0)
		return r;
	if (d.fd >= 0 &&
		(getsockopt(d.fd, SOL_SOCKET, SO_TYPE, &type, &n) < 0 || type != SOCK_SEQPACKET))
		return usage("protond starts it; by hand it wants --print");
	ahead_ns = time_namespace_ahead_ns();
	d.nvml = nvml_open(say, &d);
	serve(&d);
	nvml_close(d.nvml);
	return 0;
}
