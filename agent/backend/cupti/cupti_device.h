/* SPDX-License-Identifier: MIT. cupti_device.h: GPUs by CUDA's ordinal. cupti.c and cupti_walk.c
 * include it. */
#ifndef PROTOND_CUPTI_DEVICE_H
#define PROTOND_CUPTI_DEVICE_H

#include <stdint.h>

uint16_t cupti_device(uint32_t ordinal); /* [agent] index in the ring's device table */
void cupti_devices_ask(void); /* [agent] keeps the facts of all, once they are to be had */

#endif
