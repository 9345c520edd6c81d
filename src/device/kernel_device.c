/* SPDX-License-Identifier: MIT
 *
 * Devices made of the kernel's files.
 *
 * A number that no device can mean is a sentinel (all bits set, blanks of a driver) and counts as
 * not reported: `largest` has a generous bound for each metric. Power and energy are read first and
 * next to each other, and their moment is the sample's.
 *
 * Owns: see struct wg_kernel_device.    Threads: as struct wg_device.
 */
#include "device/kernel_device.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/number.h"

#define POWER_MOST_W  1e5
#define CLOCK_MOST_HZ 1e11

/* What is beyond is no reading; 0: any number may be one. */
static const double largest[WG_METRIC_COUNT] = {
    [WG_METRIC_POWER_W] = POWER_MOST_W,        [WG_METRIC_POWER_AVERAGE_W] = POWER_MOST_W,
    [WG_METRIC_MEMORY_POWER_W] = POWER_MOST_W, [WG_METRIC_MODULE_POWER_W] = POWER_MOST_W,
    [WG_METRIC_CLOCK_HZ] = CLOCK_MOST_HZ,      [WG_METRIC_MEMORY_CLOCK_HZ] = CLOCK_MOST_HZ,
    [WG_METRIC_TEMPERATURE_C] = 250.0,         [WG_METRIC_UTILIZATION] = 1.0,
    [WG_METRIC_MEMORY_UTILIZATION] = 1.0,      [WG_METRIC_MEMORY_USED_BYTES] = 1e15,
    [WG_METRIC_POWER_LIMIT_W] = POWER_MOST_W,  [WG_METRIC_ENFORCED_POWER_LIMIT_W] = POWER_MOST_W,
};

static const uint32_t TIMED = 1u << WG_METRIC_POWER_W | 1u << WG_METRIC_POWER_AVERAGE_W |
                              1u << WG_METRIC_MEMORY_POWER_W | 1u << WG_METRIC_MODULE_POWER_W |
                              1u << WG_METRIC_ENERGY_J;

/* -- Texts ------------------------------------------------------------------------------------- */

const char *wg__kernel_keep(struct wg_kernel_device *kernel, const char *text)
{
    if (text == NULL)
        return NULL;
    const char *copy = wg__arena_strdup(&kernel->device.arena, text);
    if (copy != NULL)
        return copy;
    kernel->is_out_of_memory = true;
    return "";
}

const char *wg__kernel_format(struct wg_kernel_device *kernel, const char *format, ...)
{
    char text[WG_SYSFS_PATH_MAX];
    va_list args;
    va_start(args, format);
    if (wg__format(text, sizeof text, format, args) < 0)
        text[0] = '\0';
    va_end(args);
    return wg__kernel_keep(kernel, text);
}

void wg__kernel_absent(struct wg_kernel_device *kernel, enum wg_metric metric, const char *source,
                       const char *why, const char *remedy)
{
    kernel->device.info.meters[metric] =
        (struct wg_meter_info){.source = wg__kernel_keep(kernel, source),
                               .why_not = wg__kernel_keep(kernel, why),
                               .remedy = wg__kernel_keep(kernel, remedy)};
}

void wg__kernel_no_knob(struct wg_kernel_device *kernel, enum wg_knob knob, const char *source,
                        const char *why, const char *remedy)
{
    kernel->device.info.knobs[knob] =
        (struct wg_knob_info){.preset = NAN,
                              .current = NAN,
                              .source = wg__kernel_keep(kernel, source),
                              .why_not = wg__kernel_keep(kernel, why),
                              .remedy = wg__kernel_keep(kernel, remedy)};
}

void wg__kernel_knob(struct wg_kernel_device *kernel, enum wg_knob knob,
                     const struct wg_knob_info *knob_info, const char *path, const char *remedy)
{
    struct wg_knob_info *info = &kernel->device.info.knobs[knob];
    const double most = knob == WG_KNOB_POWER_LIMIT ? POWER_MOST_W : CLOCK_MOST_HZ;
    if (!(knob_info->max <= most)) {
        wg__kernel_no_knob(kernel, knob, path,
                           wg__kernel_format(kernel, "%s: up to %.4g is no %s", path,
                                             knob_info->max, wg_knob_key(knob)),
                           NULL);
        return;
    }
    *info = *knob_info;
    info->preset = info->preset <= most ? info->preset : (double)NAN;
    info->current = info->current <= most ? info->current : (double)NAN;
    info->is_present = true;
    info->source = wg__kernel_keep(kernel, path);
    info->is_writable = wg__sysfs_is_writable(kernel->root, path);
    info->why_not = NULL;
    info->remedy = NULL;
    if (info->is_writable)
        return;
    info->why_not = wg__kernel_format(kernel, "%s: this process may not write it", path);
    info->remedy = wg__kernel_keep(kernel, remedy);
}

static int compare_doubles(const void *left, const void *right)
{
    const double a = *(const double *)left;
    const double b = *(const double *)right;
    return (a > b) - (a < b);
}

/* Cuts the next number off a list that blanks part; false at its end or at something else. */
static bool next_number(char **cursor, uint64_t *out)
{
    char *word = *cursor + strspn(*cursor, " \n\t");
    char *end = word + strcspn(word, " \n\t");
    *cursor = *end != '\0' ? end + 1 : end;
    *end = '\0';
    return wg__parse_uint64(word, out);
}

void wg__kernel_levels(struct wg_kernel_device *kernel, const char *path, double scale,
                       struct wg_knob_info *knob_info)
{
    enum { LEVELS_MAX = WG_SYSFS_TEXT_MAX / 2 };
    char text[WG_SYSFS_TEXT_MAX];
    if (wg__sysfs_text(kernel->root, path, text, sizeof text, NULL) != WG_OK)
        return;
    uint64_t numbers[LEVELS_MAX];
    size_t count = 0;
    for (char *cursor = text; count < LEVELS_MAX && next_number(&cursor, &numbers[count]);)
        count++;
    if (count == 0)
        return;
    double *levels = wg__arena_alloc(&kernel->device.arena, count, sizeof *levels);
    if (levels == NULL) {
        kernel->is_out_of_memory = true;
        return;
    }
    for (size_t i = 0; i < count; i++)
        levels[i] = (double)numbers[i] * scale;
    qsort(levels, count, sizeof *levels, compare_doubles);
    knob_info->levels = levels;
    knob_info->level_count = 0;
    for (size_t i = 0; i < count; i++) { /* each once */
        if (i == 0 || levels[i] > levels[knob_info->level_count - 1])
            levels[knob_info->level_count++] = levels[i];
    }
}

enum wg_code wg__kernel_finish(struct wg_kernel_device *kernel, const char *why,
                               struct wg_error *err)
{
    struct wg_device_info *info = &kernel->device.info;
    for (size_t i = 0; i < WG_METRIC_COUNT; i++) {
        if (info->meters[i].source == NULL)
            wg__kernel_absent(kernel, (enum wg_metric)i, "none", why, NULL);
    }
    for (size_t i = 0; i < WG_KNOB_COUNT; i++) {
        if (info->knobs[i].source == NULL)
            wg__kernel_no_knob(kernel, (enum wg_knob)i, "none", why, NULL);
    }
    if (kernel->is_out_of_memory)
        return wg__fail(err, WG_ENOMEM, "out of memory");
    return WG_OK;
}

/* -- One meter --------------------------------------------------------------------------------- */

static enum wg_code open_gauge(struct wg_kernel_device *kernel, struct wg_kernel_gauge *gauge,
                               struct wg_error *err)
{
    const char *folder = kernel->folders[gauge->folder];
    const char *path =
        folder == NULL ? gauge->name : wg__sysfs_path(&kernel->paths, "%s/%s", folder, gauge->name);
    if (path == NULL) {
        kernel->is_out_of_memory = true;
        return wg__fail(err, WG_ENOMEM, "%s/%s: out of memory", folder, gauge->name);
    }
    gauge->file = (struct wg_sysfs_file){.fd = -1, .path = path};
    if (folder == NULL)
        return wg__fail(err, WG_ENOENT, "%s: its folder is not there", path);
    return wg__sysfs_open(&gauge->file, kernel->root, path, err);
}

static enum wg_code read_number(const struct wg_kernel_gauge *gauge, double *out,
                                struct wg_error *err)
{
    int64_t number = 0;
    const enum wg_code code = wg__sysfs_read_int(&gauge->file, &number, err);
    if (code == WG_OK)
        *out = (double)number * gauge->scale;
    return code;
}

static enum wg_code read_gauge(struct wg_kernel_device *kernel, enum wg_metric metric, double *out,
                               struct wg_error *err)
{
    const struct wg_kernel_gauge *gauge = &kernel->gauges[metric];
    atomic_store(&kernel->device.call, gauge->file.path);
    const enum wg_code code =
        gauge->read != NULL ? gauge->read(kernel, gauge, out, err) : read_number(gauge, out, err);
    atomic_store(&kernel->device.call, NULL);
    if (code != WG_OK)
        return code;
    const bool is_cold = metric == WG_METRIC_TEMPERATURE_C && *out > -100.0;
    if (largest[metric] > 0.0 && (*out > largest[metric] || (*out < 0.0 && !is_cold)))
        return wg__fail(err, WG_EDATA, "%s: %.4g is no %s", gauge->file.path, *out,
                        wg_metric_key(metric));
    return WG_OK;
}

enum wg_code wg__kernel_add(struct wg_kernel_device *kernel, enum wg_metric metric,
                            const struct wg_kernel_gauge *gauge, const char *remedy,
                            struct wg_error *err)
{
    struct wg_error local;
    if (err == NULL)
        err = &local;
    struct wg_kernel_gauge *kept = &kernel->gauges[metric];
    *kept = *gauge;
    double value = NAN;
    enum wg_code code = open_gauge(kernel, kept, err);
    if (code == WG_OK)
        code = read_gauge(kernel, metric, &value, err);
    if (code == WG_OK) {
        kernel->device.info.meters[metric] =
            (struct wg_meter_info){.is_present = true,
                                   .source = wg__kernel_keep(kernel, kept->file.path),
                                   .resolution = gauge->scale};
        return WG_OK;
    }
    wg__kernel_absent(kernel, metric, kept->file.path != NULL ? kept->file.path : gauge->name,
                      err->text, code == WG_EPERM ? remedy : NULL);
    wg__sysfs_close(&kept->file);
    kept->name = NULL;
    return code;
}

void wg__kernel_drop(struct wg_kernel_device *kernel, enum wg_metric metric, const char *why,
                     const char *remedy)
{
    struct wg_kernel_gauge *gauge = &kernel->gauges[metric];
    const char *source = kernel->device.info.meters[metric].source;
    wg__kernel_absent(kernel, metric, source != NULL ? source : "none", why, remedy);
    if (gauge->name != NULL)
        wg__sysfs_close(&gauge->file);
    gauge->name = NULL;
}

/* -- The device -------------------------------------------------------------------------------- */

/* Nothing at all came: whether the device has gone, or the first of the causes. */
static enum wg_code fail_all(const struct wg_kernel_device *kernel, const struct wg_error *first,
                             struct wg_error *err)
{
    const char *folder = kernel->folders[0];
    if (folder != NULL && !wg__sysfs_exists(kernel->root, folder))
        return wg__fail(err, WG_ELOST, "%s is gone", folder);
    return wg__fail(err, first->code, "%s", first->text);
}

enum wg_code wg__kernel_read(struct wg_device *device, uint32_t wanted, struct wg_sample *out,
                             struct wg_error *err)
{
    struct wg_kernel_device *kernel = wg__kernel_of(device);
    struct wg_error first = {.code = WG_OK};
    bool is_answered = false;
    uint64_t timed_ns[2] = {0, 0};
    uint32_t present = 0;
    const uint64_t start_ns = wg__clock_ns();
    *out = (struct wg_sample){0};
    for (int pass = 0; pass < 2; pass++) {
        const uint32_t metrics = wanted & (pass == 0 ? TIMED : ~TIMED);
        for (size_t i = 0; i < WG_METRIC_COUNT; i++) {
            if ((metrics >> i & 1u) == 0 || kernel->gauges[i].name == NULL)
                continue;
            double value = NAN;
            struct wg_error cause;
            const enum wg_code code = read_gauge(kernel, (enum wg_metric)i, &value, &cause);
            is_answered |= code == WG_OK;
            if (code == WG_OK && !isnan(value))
                wg__sample_set(out, (enum wg_metric)i, value);
            if (code != WG_OK && first.code == WG_OK)
                first = cause;
        }
        timed_ns[pass] = wg__clock_ns();
        if (pass == 0)
            present = out->present;
    }
    const uint64_t end_ns = timed_ns[present != 0 ? 0 : 1];
    out->span_ns = end_ns - start_ns;
    out->t_ns = start_ns + out->span_ns / 2;
    return is_answered || first.code == WG_OK ? WG_OK : fail_all(kernel, &first, err);
}

void wg__kernel_release(struct wg_device *device)
{
    struct wg_kernel_device *kernel = wg__kernel_of(device);
    for (size_t i = 0; i < WG_METRIC_COUNT; i++) {
        if (kernel->gauges[i].name != NULL)
            wg__sysfs_close(&kernel->gauges[i].file);
    }
    if (kernel->ops->release != NULL)
        kernel->ops->release(kernel);
}

/* Closes all and searches the folders anew. */
static enum wg_code relocate(struct wg_kernel_device *kernel, struct wg_error *err)
{
    wg__kernel_release(&kernel->device);
    wg__arena_reset(&kernel->paths);
    kernel->is_out_of_memory = false;
    for (size_t i = 0; i < WG_KERNEL_FOLDERS; i++)
        kernel->folders[i] = NULL;
    for (size_t i = 0; i < WG_METRIC_COUNT; i++) /* their paths are gone */
        kernel->gauges[i].file = (struct wg_sysfs_file){.fd = -1, .path = kernel->gauges[i].name};
    return kernel->ops->locate(kernel, err);
}

enum wg_code wg__kernel_begin(struct wg_kernel_device *kernel, struct wg_error *err)
{
    const enum wg_code code = relocate(kernel, err);
    struct wg_device_info *info = &kernel->device.info;
    for (size_t i = 0; i < WG_METRIC_COUNT; i++) {
        kernel->gauges[i].name = NULL;
        info->meters[i] = (struct wg_meter_info){0};
    }
    kernel->cpu_clock = NULL;
    for (size_t i = 0; i < WG_KNOB_COUNT; i++) {
        info->knobs[i] = (struct wg_knob_info){0};
        kernel->handles[i] = (struct wg_kernel_handle){0};
    }
    return code;
}

/* A meter whose file did not come back stays closed: its reads say so. */
enum wg_code wg__kernel_reopen(struct wg_device *device, struct wg_error *err)
{
    struct wg_kernel_device *kernel = wg__kernel_of(device);
    enum wg_code code = relocate(kernel, err);
    for (size_t i = 0; code == WG_OK && i < WG_METRIC_COUNT; i++) {
        if (kernel->gauges[i].name != NULL)
            (void)open_gauge(kernel, &kernel->gauges[i], NULL);
    }
    if (code == WG_OK && kernel->ops->reopen != NULL)
        code = kernel->ops->reopen(kernel, err);
    if (code == WG_OK && kernel->is_out_of_memory)
        code = wg__fail(err, WG_ENOMEM, "out of memory");
    if (code != WG_OK)
        wg__kernel_release(device);
    return code;
}

void wg__kernel_destroy(struct wg_device *device)
{
    struct wg_kernel_device *kernel = wg__kernel_of(device);
    wg__arena_fini(&kernel->paths);
    wg__free(kernel);
}

void wg__kernel_free(struct wg_kernel_device *kernel)
{
    if (kernel == NULL)
        return;
    wg__kernel_release(&kernel->device);
    wg__arena_fini(&kernel->device.arena);
    wg__kernel_destroy(&kernel->device);
}
