/* SPDX-License-Identifier: MIT
 *
 * What the processor is called, and whether it is one of a virtual machine, whose counters of
 * energy are missing or not to be taken at their word.
 *
 * Threads: any thread.
 */
#ifndef WG_DEVICE_PROCESSOR_H
#define WG_DEVICE_PROCESSOR_H

#include <stdbool.h>

struct wg_processor {
    char model[128]; /* "Intel(R) Xeon(R) Gold 6430"; "CPU": unknown */
    bool is_virtual;
};

void wg__processor_read(const char *root, struct wg_processor *out);

#endif
