/* SPDX-License-Identifier: MIT
 *
 * The clock of a CPU package: cpufreq's policies, read and as a knob.
 *
 * A policy is a group of cores that share a clock, often one core each. Reading the present clock
 * of one may interrupt that core for some microseconds, so of a package with many of them a few,
 * evenly spread, stand for all.
 *
 * Owns: open files.    Threads: one thread at a time.
 */
#ifndef WG_DEVICE_CPU_CLOCK_H
#define WG_DEVICE_CPU_CLOCK_H

#include "device/kernel_device.h"

enum { WG_CPU_CLOCK_FILES = 8 };

struct wg_cpu_clock {
    struct wg_sysfs_file files[WG_CPU_CLOCK_FILES];
    const char *policies[WG_CPU_CLOCK_FILES]; /* "/sys/devices/system/cpu/cpufreq/policy0" */
    size_t count;
    const char *const *all; /* the policies of the package, each one; as long as `paths` */
    size_t all_count;
};

/* Opens the clocks of a package and die (UINT_MAX: any); texts go to `paths`. Without cpufreq, in a
 * virtual machine for one, there are none, which is WG_OK. WG_ENOMEM. */
enum wg_code wg__cpu_clock_open(struct wg_cpu_clock *clock, const char *root, unsigned package,
                                unsigned die, struct wg_arena *paths, struct wg_error *err);
void wg__cpu_clock_close(struct wg_cpu_clock *clock);

/* The mean of what the files say now, in Hz; those that cannot be read are left out. */
enum wg_code wg__cpu_clock_read(const struct wg_cpu_clock *clock, double *out,
                                struct wg_error *err);

/* Sets or reads scaling_max_freq of every policy. A policy gets at most its own cpuinfo_max_freq,
 * so that one number fits processors with two kinds of cores; one that fails stops no other.
 * WG_EDATA: the policies have different limits. NAN: the largest that each can do. */
enum wg_code wg__cpu_clock_set_limit(const struct wg_cpu_clock *clock,
                                     struct wg_kernel_device *kernel, double limit_hz,
                                     struct wg_error *err);
enum wg_code wg__cpu_clock_get_limit(const struct wg_cpu_clock *clock,
                                     struct wg_kernel_device *kernel, double *out,
                                     struct wg_error *err);

/* Fills the knob WG_KNOB_CPU_CLOCK (scaling_max_freq) of `kernel`, which keeps `clock` to set it.
 */
void wg__cpu_clock_describe(const struct wg_cpu_clock *clock, struct wg_kernel_device *kernel);

#endif
