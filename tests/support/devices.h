/* SPDX-License-Identifier: MIT
 *
 * Made-up devices for tests of reports and views: a GPU with everything, a processor whose counter
 * only root may read.
 */
#ifndef WG_TESTS_SUPPORT_DEVICES_H
#define WG_TESTS_SUPPORT_DEVICES_H

#include <limits.h>
#include <math.h>

#include "wattgov/device.h"

static inline void device_fill_absent(struct wg_device_info *info, const char *why_not,
                                      const char *remedy)
{
    for (int i = 0; i < WG_METRIC_COUNT; i++)
        info->meters[i] =
            (struct wg_meter_info){.source = "none", .why_not = why_not, .remedy = remedy};
    for (int i = 0; i < WG_KNOB_COUNT; i++)
        info->knobs[i] = (struct wg_knob_info){
            .source = "none", .preset = NAN, .current = NAN, .why_not = why_not, .remedy = remedy};
}

/* GPU number `index`, 0 .. 9, with counter, power and a power limit; it lacks the rest. */
static inline struct wg_device_info device_gpu(unsigned index)
{
    static const char *const labels[] = {"gpu0", "gpu1", "gpu2", "gpu3", "gpu4",
                                         "gpu5", "gpu6", "gpu7", "gpu8", "gpu9"};
    static const char *const uuids[] = {"GPU-00", "GPU-01", "GPU-02", "GPU-03", "GPU-04",
                                        "GPU-05", "GPU-06", "GPU-07", "GPU-08", "GPU-09"};
    struct wg_device_info info = {
        .kind = WG_DEVICE_GPU,
        .index = index,
        .label = labels[index],
        .id = uuids[index],
        .name = "NVIDIA H100 80GB HBM3",
        .backend = "nvml",
        .uuid = uuids[index],
        .pci = "0000:1a:00.0",
        .driver = "550.54.15",
        .architecture = "hopper",
        .numa_node = UINT_MAX,
        .memory_bytes = 85899345920,
        .counts_in_total = true,
    };
    device_fill_absent(&info, "nvmlDeviceGetFieldValues: not supported (3)", NULL);
    info.meters[WG_METRIC_POWER_W] = (struct wg_meter_info){.is_present = true,
                                                            .source = "field 186",
                                                            .resolution = 0.001,
                                                            .update_period_s = 0.1,
                                                            .averaging_window_s = 0.025};
    info.meters[WG_METRIC_ENERGY_J] = (struct wg_meter_info){
        .is_present = true, .source = "field 83", .resolution = 0.001, .update_period_s = 0.1};
    info.knobs[WG_KNOB_POWER_LIMIT] =
        (struct wg_knob_info){.is_present = true,
                              .min = 200,
                              .max = 700,
                              .step = 1,
                              .preset = 700,
                              .current = 500,
                              .source = "nvmlDeviceSetPowerManagementLimit",
                              .why_not = "no permission (4)",
                              .remedy = "run as root"};
    return info;
}

/* A processor that shows nothing to this user. */
static inline struct wg_device_info device_cpu(void)
{
    struct wg_device_info info = {
        .kind = WG_DEVICE_CPU,
        .label = "cpu0",
        .id = "rapl:package-0",
        .name = "package-0",
        .backend = "rapl",
        .numa_node = 0,
        .counts_in_total = true,
        .state = WG_OK,
    };
    device_fill_absent(&info, "no such file", NULL);
    info.meters[WG_METRIC_ENERGY_J] = (struct wg_meter_info){
        .source = "/sys/class/powercap/intel-rapl:0/energy_uj",
        .why_not = "/sys/class/powercap/intel-rapl:0/energy_uj: Permission denied",
        .remedy = "run as root"};
    info.meters[WG_METRIC_POWER_W].why_not = "derived from energy";
    return info;
}

#endif
