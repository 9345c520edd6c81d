/* SPDX-License-Identifier: MIT
 *
 * Setting devices that are made of the kernel's files.
 *
 * Most knobs are one file with one number, which is written and read back through the folder where
 * the device is now: `info` names the file of the first probe, and numbers of folders change when a
 * driver is loaded again. What is set in another way (a table of clocks, a file for each core) is
 * the backend's own, by its `set` and `get`.
 *
 * The driver's own choice is the knob's preset, where there is one: files have no word for it.
 *
 * Owns: nothing.    Threads: as struct wg_device.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "device/cpu_clock.h"
#include "device/kernel_device.h"

void wg__kernel_knob_file(struct wg_kernel_device *kernel, enum wg_knob knob,
                          const struct wg_knob_info *knob_info,
                          const struct wg_kernel_handle *handle, const char *remedy)
{
    const char *path =
        wg__kernel_format(kernel, "%s/%s", kernel->folders[handle->folder], handle->name);
    wg__kernel_knob(kernel, knob, knob_info, path, remedy);
    kernel->handles[knob] = *handle;
}

/* A file of a folder, without root. */
static enum wg_code find_file(const char *folder, const char *name,
                              char out[static WG_SYSFS_PATH_MAX], struct wg_error *err)
{
    if (folder == NULL)
        return wg__fail(err, WG_ENOENT, "%s: its folder is not there", name);
    const int length = snprintf(out, WG_SYSFS_PATH_MAX, "%s/%s", folder, name);
    if (length < 0 || length >= WG_SYSFS_PATH_MAX)
        return wg__fail(err, WG_EINVAL, "%s/%s: the path is too long", folder, name);
    return WG_OK;
}

enum wg_code wg__kernel_get_text(struct wg_kernel_device *kernel, const char *folder,
                                 const char *name, char *out, size_t size, struct wg_error *err)
{
    char path[WG_SYSFS_PATH_MAX];
    enum wg_code code = find_file(folder, name, path, err);
    if (code != WG_OK)
        return code;
    atomic_store(&kernel->device.call, name);
    code = wg__sysfs_text(kernel->root, path, out, size, err);
    atomic_store(&kernel->device.call, NULL);
    return code;
}

enum wg_code wg__kernel_set_text(struct wg_kernel_device *kernel, const char *folder,
                                 const char *name, const char *text, struct wg_error *err)
{
    char path[WG_SYSFS_PATH_MAX];
    enum wg_code code = find_file(folder, name, path, err);
    if (code != WG_OK)
        return code;
    atomic_store(&kernel->device.call, name);
    code = wg__sysfs_write(kernel->root, path, text, err);
    atomic_store(&kernel->device.call, NULL);
    return code;
}

enum wg_code wg__kernel_get_number(struct wg_kernel_device *kernel,
                                   const struct wg_kernel_handle *handle, double *out,
                                   struct wg_error *err)
{
    char path[WG_SYSFS_PATH_MAX];
    uint64_t number = 0;
    enum wg_code code = find_file(kernel->folders[handle->folder], handle->name, path, err);
    if (code == WG_OK) {
        atomic_store(&kernel->device.call, handle->name);
        code = wg__sysfs_uint(kernel->root, path, &number, err);
        atomic_store(&kernel->device.call, NULL);
    }
    if (code == WG_OK)
        *out = (double)number * handle->scale;
    return code;
}

enum wg_code wg__kernel_set_number(struct wg_kernel_device *kernel,
                                   const struct wg_kernel_handle *handle, double value,
                                   struct wg_error *err)
{
    char text[32];
    const double number = value / handle->scale;
    if (!(number >= 0.0 && number < 1e15))
        return wg__fail(err, WG_EINVAL, "%s: %.6g cannot be written", handle->name, value);
    (void)snprintf(text, sizeof text, "%lld", llround(number));
    return wg__kernel_set_text(kernel, kernel->folders[handle->folder], handle->name, text, err);
}

static enum wg_code fail_knob(enum wg_knob knob, struct wg_error *err)
{
    return wg__fail(err, WG_EUNSUPPORTED, "%s: it is known, but not how to set it here",
                    wg_knob_key(knob));
}

enum wg_code wg__kernel_set(struct wg_device *device, enum wg_knob knob, double value,
                            struct wg_error *err)
{
    struct wg_kernel_device *kernel = wg__kernel_of(device);
    const struct wg_kernel_handle *handle = &kernel->handles[knob];
    if (knob == WG_KNOB_CPU_CLOCK && kernel->cpu_clock != NULL)
        return wg__cpu_clock_set_limit(kernel->cpu_clock, kernel, value, err);
    if (handle->name == NULL)
        return kernel->ops->set != NULL ? kernel->ops->set(kernel, knob, value, err)
                                        : fail_knob(knob, err);
    const double preset = device->info.knobs[knob].preset;
    if (isnan(value) && isnan(preset))
        return wg__fail(err, WG_EUNSUPPORTED, "%s: its driver does not tell what it starts with",
                        wg_knob_key(knob));
    return wg__kernel_set_number(kernel, handle, isnan(value) ? preset : value, err);
}

enum wg_code wg__kernel_get(struct wg_device *device, enum wg_knob knob, double *out,
                            struct wg_error *err)
{
    struct wg_kernel_device *kernel = wg__kernel_of(device);
    const struct wg_kernel_handle *handle = &kernel->handles[knob];
    if (knob == WG_KNOB_CPU_CLOCK && kernel->cpu_clock != NULL)
        return wg__cpu_clock_get_limit(kernel->cpu_clock, kernel, out, err);
    if (handle->name != NULL)
        return wg__kernel_get_number(kernel, handle, out, err);
    return kernel->ops->get != NULL ? kernel->ops->get(kernel, knob, out, err)
                                    : fail_knob(knob, err);
}
