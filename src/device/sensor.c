/* SPDX-License-Identifier: MIT
 *
 * The table of NVIDIA's power sensors, as others measured them.
 *
 * The rows are the result matrix of Yang, Adamek, Armour, "Part-time Power Measurements:
 * nvidia-smi's Lack of Attention" (SC 2024, arXiv 2312.02741; data: GPU_Power_Benchmark, MIT),
 * found with square waves of known length against an external meter. Three numbers can be asked
 * for, and what each one means changed with driver branch 530:
 *
 *     usage     nvmlDeviceGetPowerUsage, "power.draw" of nvidia-smi
 *     instant   field 186, since branch 530
 *     average   field 185, since branch 530; absent on Turing, GA100 and older
 *
 * Kepler and Maxwell filter their readings (the answer to a step is logarithmic), which is no mean
 * over a window: their period is in the table, their window is unknown. Blackwell came after the
 * paper. The energy counter is not in the matrix: it steps every 20 ms on Volta and every 100 ms
 * later, as users of it found (zeus, pynvml #18).
 *
 * A window of 0 counts as "all of the time is seen", because nothing better is known.
 *
 * Threads: pure, any thread.
 */
#include "device/sensor.h"

#include <stddef.h>
#include <string.h>

enum { INSTANT_SINCE = 530 };

/* Milliseconds as in the paper; a period of 0: the field is not there. */
struct timing {
    unsigned window_ms, period_ms;
};

struct row {
    const char *architecture;
    struct timing usage_before, usage_530, usage_after; /* the branch 530 itself is its own case */
    struct timing instant, average;
    unsigned counter_period_ms; /* 0: no energy counter */
    bool is_instant_old;        /* field 186 answers before branch 530, too */
};

/* clang-format off */
static const struct row rows[] = {
    /* architecture    usage: <530     530         >530         instant     average    counter */
    {"kepler",        {0, 15},     {0, 15},    {0, 15},     {0, 0},     {0, 0},      0, false},
    {"maxwell",       {0, 100},    {0, 100},   {0, 100},    {0, 100},   {0, 0},      0, false},
    {"pascal",        {10, 20},    {10, 20},   {10, 20},    {10, 20},   {0, 0},      0, false},
    {"volta",         {10, 20},    {10, 20},   {10, 20},    {10, 20},   {0, 0},     20, false},
    {"turing",        {100, 100},  {100, 100}, {100, 100},  {100, 100}, {0, 0},    100, false},
    {"ampere-ga100",  {25, 100},   {25, 100},  {25, 100},   {25, 100},  {0, 0},    100, false},
    {"ampere",        {1000, 100}, {100, 100}, {1000, 100}, {100, 100}, {1000, 100}, 100, false},
    {"ada",           {1000, 100}, {100, 100}, {1000, 100}, {100, 100}, {1000, 100}, 100, false},
    {"hopper",        {1000, 100}, {1000, 100}, {1000, 100}, {25, 100}, {1000, 100}, 100, true},
    {"blackwell",     {0, 0},      {0, 0},     {0, 0},      {0, 0},     {0, 0},    100, false},
};
/* clang-format on */

static const struct row *find_row(const char *architecture)
{
    if (architecture == NULL)
        return NULL;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (strcmp(rows[i].architecture, architecture) == 0)
            return &rows[i];
    }
    return NULL;
}

static double seen_share(double window_s, double period_s)
{
    if (window_s <= 0 || period_s <= 0 || window_s >= period_s)
        return 1;
    return window_s / period_s;
}

static bool from_timing(struct timing timing, struct wg_sensor *out)
{
    if (timing.period_ms == 0)
        return false;
    const double window_s = timing.window_ms / 1e3;
    const double period_s = timing.period_ms / 1e3;
    *out = (struct wg_sensor){.update_period_s = period_s,
                              .averaging_window_s = window_s,
                              .seen_share = seen_share(window_s, period_s),
                              .is_known = timing.window_ms != 0};
    return true;
}

bool wg__sensor_lookup_usage(const char *architecture, unsigned driver_major, struct wg_sensor *out)
{
    const struct row *row = find_row(architecture);
    if (row == NULL)
        return false;
    if (driver_major == INSTANT_SINCE)
        return from_timing(row->usage_530, out);
    /* An unknown driver is taken for a new one. */
    const bool is_before = driver_major != 0 && driver_major < INSTANT_SINCE;
    return from_timing(is_before ? row->usage_before : row->usage_after, out);
}

bool wg__sensor_lookup(const char *architecture, unsigned driver_major, enum wg_metric metric,
                       struct wg_sensor *out)
{
    const struct row *row = find_row(architecture);
    if (row == NULL)
        return false;
    const bool has_fields =
        driver_major == 0 || driver_major >= INSTANT_SINCE || row->is_instant_old;
    switch (metric) {
    case WG_METRIC_POWER_W:
        if (has_fields && from_timing(row->instant, out))
            return true;
        return wg__sensor_lookup_usage(architecture, driver_major, out);
    case WG_METRIC_POWER_AVERAGE_W:
        return has_fields && from_timing(row->average, out);
    case WG_METRIC_ENERGY_J:
        if (row->counter_period_ms == 0)
            return false;
        *out = (struct wg_sensor){
            .update_period_s = row->counter_period_ms / 1e3, .seen_share = 1, .is_known = true};
        return true;
    default:
        return false;
    }
}

unsigned wg__sensor_driver_branch(const char *version)
{
    unsigned branch = 0;
    for (; version != NULL && *version >= '0' && *version <= '9' && branch < 100000; version++)
        branch = branch * 10 + (unsigned)(*version - '0');
    return branch;
}

struct wg_sensor wg__sensor_of(const struct wg_device_info *info, enum wg_metric metric)
{
    const struct wg_meter_info *meter = &info->meters[metric];
    if (meter->is_present && (meter->update_period_s > 0 || meter->averaging_window_s > 0)) {
        const double window_s = meter->averaging_window_s;
        return (struct wg_sensor){.update_period_s = meter->update_period_s,
                                  .averaging_window_s = window_s,
                                  .seen_share = seen_share(window_s, meter->update_period_s),
                                  .is_known = true};
    }
    struct wg_sensor sensor;
    if (wg__sensor_lookup(info->architecture, wg__sensor_driver_branch(info->driver), metric,
                          &sensor))
        return sensor;
    return (struct wg_sensor){.update_period_s = 0.1, .seen_share = 1};
}
