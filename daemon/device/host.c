/* SPDX-License-Identifier: MIT. host.c: pressure, network cards, InfiniBand ports and disks. */
#include "host.h"

#include <dirent.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct host_now {
	const struct host *h;
	uint64_t value[DEVICE_N], known;
};

static void add(struct host_now *n, enum device_quantity q, uint64_t v)
{
	n->value[q] += v;
	n->known |= 1ull << q;
}

static FILE *open_in(const struct host *h, const char *path)
{
	char full[PATH_MAX];

	if (snprintf(full, sizeof(full), "%s%s", h->root, path) >= (int)sizeof(full))
		return NULL;
	return fopen(full, "re");
}

/* "some avg10=… total=MICROSECONDS" */
static void read_pressure(struct host_now *n, const char *path, enum device_quantity q)
{
	FILE *f = open_in(n->h, path);
	char line[256];
	uint64_t us;

	if (f == NULL)
		return;
	while (fgets(line, sizeof(line), f) != NULL) {
		const char *total = strstr(line, "total=");

		if (strncmp(line, "some ", 5) == 0 && total != NULL &&
			sscanf(total, "total=%" SCNu64, &us) == 1)
			add(n, q, us * 1000);
	}
	(void)fclose(f);
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
static void read_network(struct host_now *n)
{
	FILE *f = open_in(n->h, "/proc/net/dev");
	char line[512], name[64];
	uint64_t rx, tx;

	if (f == NULL)
		return;
	while (fgets(line, sizeof(line), f) != NULL) {
		if (sscanf(line, " %63[^: ]: %" SCNu64 " %*u %*u %*u %*u %*u %*u %*u %" SCNu64,
			    name, &rx, &tx) != 3 ||
			!is_there(n->h, "/sys/class/net", name, "/device"))
			continue;
		add(n, DEVICE_net_rx, rx);
		add(n, DEVICE_net_tx, tx);
	}
	(void)fclose(f);
}

/* Whole disks that have a device: partitions, loops and mappings have the same bytes again. */
static void read_disks(struct host_now *n)
{
	FILE *f = open_in(n->h, "/proc/diskstats");
	char line[512], name[64];
	uint64_t in, out;

	if (f == NULL)
		return;
	while (fgets(line, sizeof(line), f) != NULL) {
		if (sscanf(line, " %*u %*u %63s %*u %*u %" SCNu64 " %*u %*u %*u %" SCNu64, name,
			    &in, &out) != 3 ||
			!is_there(n->h, "/sys/block", name, "/device"))
			continue;
		add(n, DEVICE_disk_read, in * 512);
		add(n, DEVICE_disk_written, out * 512);
	}
	(void)fclose(f);
}

static bool read_number(const struct host *h, const char *path, uint64_t *ret)
{
	FILE *f = open_in(h, path);
	bool ok;

	if (f == NULL)
		return false;
	ok = fscanf(f, "%" SCNu64, ret) == 1;
	(void)fclose(f);
	return ok;
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
	struct host_now n = {.h = h};
	uint32_t q;

	read_pressure(&n, "/proc/pressure/cpu", DEVICE_cpu_wait);
	read_pressure(&n, "/proc/pressure/memory", DEVICE_memory_wait);
	read_pressure(&n, "/proc/pressure/io", DEVICE_io_wait);
	read_network(&n);
	read_disks(&n);
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
