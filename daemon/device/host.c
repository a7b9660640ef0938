/* SPDX-License-Identifier: MIT. host.c: pressure, network cards, InfiniBand ports and disks. */
#include "host.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Of the kernel, for ever: memory and files that stand for disks. */
#define MAJOR_RAM  1u
#define MAJOR_LOOP 7u

struct host_now {
	const struct host *h;
	uint64_t value[DEVICE_N], known;
};

static void add(struct host_now *n, enum device_quantity q, uint64_t v)
{
	n->value[q] += v;
	n->known |= 1ull << q;
}

static int open_in(const struct host *h, const char *path)
{
	char full[PATH_MAX];

	if (snprintf(full, sizeof(full), "%s%s", h->root, path) >= (int)sizeof(full))
		return -1;
	return open(full, O_RDONLY | O_CLOEXEC);
}

/* --- lines of a file of /proc */

typedef void line_fn(struct host_now *n, const char *line, enum device_quantity q);

/* A file stays open: /proc makes it anew for who reads at its begin, for less than half of what opening it takes. Of a line
 * longer than the room there are pieces. */
static void each_line(
	struct host_now *n, int *fd, const char *path, line_fn *fn, enum device_quantity q)
{
	char room[4096], *line, *end;
	size_t kept = 0;
	off_t at = 0;
	ssize_t got;

	if (*fd == 0)
		*fd = open_in(n->h, path);
	while (*fd > 0 && (got = pread(*fd, room + kept, sizeof(room) - 1 - kept, at)) > 0) {
		at += got;
		room[kept + (size_t)got] = '\0';
		for (line = room; (end = strchr(line, '\n')) != NULL; line = end + 1) {
			*end = '\0';
			fn(n, line, q);
		}
		kept = strlen(line);
		if (kept == sizeof(room) - 1)
			kept = 0;
		memmove(room, line, kept);
	}
}

/* "some avg10=… total=MICROSECONDS" */
static void read_pressure(struct host_now *n, const char *line, enum device_quantity q)
{
	const char *total = strstr(line, "total=");
	uint64_t us;

	if (strncmp(line, "some ", 5) == 0 && total != NULL &&
		sscanf(total, "total=%" SCNu64, &us) == 1)
		add(n, q, us * 1000);
}

static bool is_there(const struct host *h, const char *folder, const char *name, const char *file)
{
	char full[PATH_MAX];

	return strchr(name, '/') == NULL && name[0] != '.' &&
	       snprintf(full, sizeof(full), "%s%s/%s%s", h->root, folder, name, file) <
		       (int)sizeof(full) &&
	       access(full, F_OK) == 0;
}

/* Cards: what stands on them (bridges, tunnels) has the same bytes again. */
static void read_network(struct host_now *n, const char *line, enum device_quantity q)
{
	char name[64];
	uint64_t rx, tx;

	if (sscanf(line, " %63[^: ]: %" SCNu64 " %*u %*u %*u %*u %*u %*u %*u %" SCNu64, name, &rx,
		    &tx) != 3 ||
		!is_there(n->h, "/sys/class/net", name, "/device"))
		return;
	add(n, q, rx);
	add(n, DEVICE_net_tx, tx);
}

/* Whole disks that have a device: partitions, loops and mappings have the same bytes again. */
static void read_disk(struct host_now *n, const char *line, enum device_quantity q)
{
	char name[64];
	uint64_t in, out;
	uint32_t major;

	if (sscanf(line, " %" SCNu32 " %*u %63s %*u %*u %" SCNu64 " %*u %*u %*u %" SCNu64, &major,
		    name, &in, &out) != 4 ||
		major == MAJOR_RAM || major == MAJOR_LOOP ||
		!is_there(n->h, "/sys/block", name, "/device"))
		return;
	add(n, q, in * 512);
	add(n, DEVICE_disk_written, out * 512);
}

/* --- InfiniBand */

static bool read_number(const struct host *h, const char *path, uint64_t *ret)
{
	const int fd = open_in(h, path);
	char text[32];
	ssize_t n;

	if (fd < 0)
		return false;
	n = read(fd, text, sizeof(text) - 1);
	(void)close(fd);
	text[n > 0 ? n : 0] = '\0';
	return sscanf(text, "%" SCNu64, ret) == 1;
}

static DIR *folder_in(const struct host *h, const char *path)
{
	char full[PATH_MAX];

	if (snprintf(full, sizeof(full), "%s%s", h->root, path) >= (int)sizeof(full))
		return NULL;
	return opendir(full);
}

/* Their data counters count 32-bit words. */
static void read_port(struct host_now *n, const char *card, const char *port)
{
	static const struct {
		const char *file;
		enum device_quantity q;
	} counters[] = {{"port_rcv_data", DEVICE_ib_rx}, {"port_xmit_data", DEVICE_ib_tx}};
	char path[PATH_MAX];
	uint64_t words;
	size_t i;

	for (i = 0; i < 2; i++)
		if (snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/%s/counters/%s",
			    card, port, counters[i].file) < (int)sizeof(path) &&
			read_number(n->h, path, &words))
			add(n, counters[i].q, words * 4);
}

static void read_infiniband(struct host_now *n)
{
	DIR *cards = folder_in(n->h, "/sys/class/infiniband"), *ports;
	const struct dirent *card, *port;
	char path[PATH_MAX];

	while (cards != NULL && (card = readdir(cards)) != NULL) {
		if (card->d_name[0] == '.')
			continue;
		(void)snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports", card->d_name);
		ports = folder_in(n->h, path);
		while (ports != NULL && (port = readdir(ports)) != NULL)
			if (port->d_name[0] != '.')
				read_port(n, card->d_name, port->d_name);
		if (ports != NULL)
			(void)closedir(ports);
	}
	if (cards != NULL)
		(void)closedir(cards);
}

void host_read(struct host *h, struct device_reading *ret)
{
	static const struct {
		const char *path;
		line_fn *fn;
		enum device_quantity q; /* the first of those that are in a line */
	} files[HOST_FILES] = {{"/proc/pressure/cpu", read_pressure, DEVICE_cpu_wait},
		{"/proc/pressure/memory", read_pressure, DEVICE_memory_wait},
		{"/proc/pressure/io", read_pressure, DEVICE_io_wait},
		{"/proc/net/dev", read_network, DEVICE_net_rx},
		{"/proc/diskstats", read_disk, DEVICE_disk_read}};
	struct host_now n = {.h = h};
	uint32_t q, i;

	for (i = 0; i < HOST_FILES; i++)
		each_line(&n, &h->fd[i], files[i].path, files[i].fn, files[i].q);
	read_infiniband(&n);
	for (q = 0; q < DEVICE_N; q++) {
		if ((n.known & h->known & 1ull << q) == 0 || n.value[q] < h->before[q])
			continue; /* a card that left took its counts along */
		ret->known |= 1ull << q;
		ret->value[q] = (double)(n.value[q] - h->before[q]);
	}
	memcpy(h->before, n.value, sizeof(h->before));
	h->known = n.known;
}
