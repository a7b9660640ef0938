/* SPDX-License-Identifier: MIT. cupti_device.c: facts about GPUs, asked of the driver once each.
 * Agent's thread: never inside a callback. */
#include <stdio.h>
#include <string.h>

#include "cupti_device.h"
#include "cupti_dump.h"
#include "cupti_state.h"

#define ORDINALS_MAX 256u

/* A short job's records come when it ends, and then the driver may not answer any more: so the
 * facts are asked as soon as there is a context, and a device enters the table when something ran
 * on it. */
static struct {
	uint16_t index[ORDINALS_MAX];
	bool known[ORDINALS_MAX];
	struct ring_device facts[RING_DEVICES_MAX];
	uint32_t n_facts;
} devices;

static uint32_t attribute(int device, enum device_attribute which)
{
	int v = 0;

	if (cupti.cuda.device_attr(&v, (int)which, device) != CUDA_OK || v < 0)
		return 0;
	return (uint32_t)v;
}

static void ask(int device, struct ring_device *d)
{
	size_t bytes = 0;

	if (cupti.cuda.device_uuid != NULL)
		(void)cupti.cuda.device_uuid(d->uuid, device);
	if (cupti.cuda.device_name != NULL)
		(void)cupti.cuda.device_name(d->name, (int)sizeof(d->name) - 1, device);
	if (cupti.cuda.device_mem != NULL && cupti.cuda.device_mem(&bytes, device) == CUDA_OK)
		d->memory_bytes = bytes;
	if (cupti.cuda.device_attr == NULL)
		return;
	d->pci_domain = attribute(device, DEV_PCI_DOMAIN);
	d->pci_bus = attribute(device, DEV_PCI_BUS);
	d->pci_device = attribute(device, DEV_PCI_DEVICE);
	d->arch = attribute(device, DEV_MAJOR) * 10 + attribute(device, DEV_MINOR);
	d->num_sms = attribute(device, DEV_SMS);
	d->clock_khz = attribute(device, DEV_CLOCK);
	d->memory_clock_khz = attribute(device, DEV_MEMORY_CLOCK);
	d->bus_width = attribute(device, DEV_BUS_WIDTH);
}

static struct ring_device facts_of(uint32_t ordinal)
{
	struct ring_device d = {.ordinal = ordinal, .type = DEVICE_CUDA};
	int device;

	if (ordinal < devices.n_facts)
		return devices.facts[ordinal];
	if (cupti.cuda.device != NULL && cupti.cuda.device(&device, (int)ordinal) == CUDA_OK)
		ask(device, &d);
	return d;
}

void cupti_devices_ask(void)
{
	int device;

	if (devices.n_facts != 0 || cupti.cuda.device == NULL)
		return;
	for (uint32_t i = 0; i < RING_DEVICES_MAX; i++) {
		if (cupti.cuda.device(&device, (int)i) != CUDA_OK)
			return;
		devices.facts[i] = (struct ring_device){.ordinal = i, .type = DEVICE_CUDA};
		ask(device, &devices.facts[i]);
		devices.n_facts = i + 1;
	}
}

static uint16_t find(uint32_t ordinal)
{
	static const uint8_t zero[16];
	struct ring_device d = facts_of(ordinal);

	if (memcmp(d.uuid, zero, sizeof(zero)) == 0) /* the table finds by uuid: make one up */
		snprintf((char *)d.uuid, sizeof(d.uuid), "ordinal-%u", ordinal);
	if (cupti_is_odd(ODD_DUMP))
		cupti_dump_device(&d);
	return agent_device(&d);
}

uint16_t cupti_device(uint32_t ordinal)
{
	if (ordinal >= ORDINALS_MAX)
		return UINT16_MAX;
	if (!devices.known[ordinal]) {
		devices.index[ordinal] = find(ordinal);
		devices.known[ordinal] = true;
	}
	return devices.index[ordinal];
}
