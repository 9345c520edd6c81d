/* SPDX-License-Identifier: MIT
 *
 * Intel's discrete GPUs, through the files of the kernel's drivers i915 and xe.
 *
 *     /sys/class/drm/cardN/device/hwmon/hwmonM/
 *         energy1_input     uJ, the card since the driver was loaded
 *         power1_max        uW, the limit (PL1), 0 or none: switched off
 *         power1_rated_max  uW, what the card is made for
 *         temp2_input       0.001 C, the package (xe)
 *     /sys/class/drm/cardN/gt_act_freq_mhz, gt_max_freq_mhz, ..       i915
 *     .../device/tile0/gt0/freq0/act_freq, max_freq, ..               xe
 *
 * The register behind energy1_input has 32 bits; the driver adds up what it sees at each read, so
 * that one wrap between two reads is counted and a second one is not. How often it must be read
 * follows from the unit of the register (2^-14 J on Arc, 262 kJ in all) and the largest power.
 *
 * Graphics inside a processor have no hwmon: RAPL measures them, and they are not listed.
 *
 * Owns: its devices.    Threads: as struct wg_device.
 */
#include <limits.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "device/backend.h"
#include "device/drm_cards.h"
#include "device/kernel_device.h"

enum { HWMON, CLOCK }; /* folders; the first is gone when the device is */

static const uint64_t VENDOR_INTEL = 0x8086;
static const double MICRO = 1e-6;
static const double MHZ = 1e6;
static const double REGISTER_J = 262144.0;
static const double MOST_W = 1000.0;
static const double LEAST_W = 1.0;
static const char *const REMEDY = "run as root";

/* The files of the clock, by driver. */
static const struct clock_files {
    const char *driver;
    const char *folder; /* below the card's folder `device` */
    const char *now, *limit, *least, *most;
} clock_files[] = {
    {"i915", "..", "gt_act_freq_mhz", "gt_max_freq_mhz", "gt_RPn_freq_mhz", "gt_RP0_freq_mhz"},
    {"xe", "tile0/gt0/freq0", "act_freq", "max_freq", "rpn_freq", "rp0_freq"},
};

struct intel_device {
    struct wg_kernel_device kernel; /* first */
    const struct clock_files *files;
};

/* A number of a folder, times `scale`; NAN when it is not there. */
static double read_number(struct wg_kernel_device *kernel, unsigned folder, const char *name,
                          double scale)
{
    uint64_t number = 0;
    const char *path = kernel->folders[folder] != NULL
                           ? wg__sysfs_path(&kernel->paths, "%s/%s", kernel->folders[folder], name)
                           : NULL;
    if (path == NULL || wg__sysfs_uint(kernel->root, path, &number, NULL) != WG_OK)
        return NAN;
    return (double)number * scale;
}

static void probe_power(struct wg_kernel_device *kernel)
{
    const struct wg_kernel_gauge energy = {
        .folder = HWMON, .name = "energy1_input", .scale = MICRO};
    if (wg__kernel_add(kernel, WG_METRIC_ENERGY_J, &energy, REMEDY, NULL) == WG_OK)
        kernel->device.info.meters[WG_METRIC_ENERGY_J].wrap_s = REGISTER_J / MOST_W;
    const struct wg_kernel_gauge power = {.folder = HWMON, .name = "power1_input", .scale = MICRO};
    if (wg__kernel_add(kernel, WG_METRIC_POWER_W, &power, REMEDY, NULL) != WG_OK)
        wg__kernel_drop(kernel, WG_METRIC_POWER_W,
                        "the driver counts energy only: power is how fast energy_j grows", NULL);
}

static void probe_limit(struct wg_kernel_device *kernel)
{
    const struct wg_kernel_gauge limit = {.folder = HWMON, .name = "power1_max", .scale = MICRO};
    const char *path = wg__kernel_format(kernel, "%s/power1_max", kernel->folders[HWMON]);
    struct wg_error err;
    if (wg__kernel_add(kernel, WG_METRIC_POWER_LIMIT_W, &limit, REMEDY, &err) != WG_OK) {
        wg__kernel_no_knob(kernel, WG_KNOB_POWER_LIMIT, path, err.text, NULL);
        return;
    }
    const double rated_w = read_number(kernel, HWMON, "power1_rated_max", MICRO);
    if (!(rated_w > LEAST_W && rated_w < MOST_W)) {
        wg__kernel_no_knob(kernel, WG_KNOB_POWER_LIMIT, path,
                           "power1_rated_max says no largest limit", NULL);
        return;
    }
    const double current_w = read_number(kernel, HWMON, "power1_max", MICRO);
    const struct wg_knob_info knob = {.min = LEAST_W,
                                      .max = rated_w,
                                      .step = 0.125,
                                      .preset = NAN,
                                      .current = current_w > 0.0 ? current_w : (double)NAN};
    const struct wg_kernel_handle handle = {.folder = HWMON, .name = "power1_max", .scale = MICRO};
    wg__kernel_knob_file(kernel, WG_KNOB_POWER_LIMIT, &knob, &handle, REMEDY);
}

static void probe_clock(struct intel_device *intel)
{
    struct wg_kernel_device *kernel = &intel->kernel;
    const struct clock_files *files = intel->files;
    const struct wg_kernel_gauge now = {.folder = CLOCK, .name = files->now, .scale = MHZ};
    struct wg_error err;
    (void)wg__kernel_add(kernel, WG_METRIC_CLOCK_HZ, &now, NULL, &err);
    const struct wg_knob_info knob = {.min = read_number(kernel, CLOCK, files->least, MHZ),
                                      .max = read_number(kernel, CLOCK, files->most, MHZ),
                                      .step = MHZ,
                                      .preset = read_number(kernel, CLOCK, files->most, MHZ),
                                      .current = read_number(kernel, CLOCK, files->limit, MHZ)};
    const char *path = wg__kernel_format(kernel, "%s/%s", kernel->folders[CLOCK], files->limit);
    const struct wg_kernel_handle handle = {.folder = CLOCK, .name = files->limit, .scale = MHZ};
    if (knob.min < knob.max)
        wg__kernel_knob_file(kernel, WG_KNOB_GPU_CLOCK, &knob, &handle, REMEDY);
    else
        wg__kernel_no_knob(kernel, WG_KNOB_GPU_CLOCK, path, "its files leave no range", NULL);
}

static enum wg_code locate(struct wg_kernel_device *kernel, struct wg_error *err)
{
    const struct intel_device *intel = (const struct intel_device *)kernel;
    const char *pci = kernel->device.info.pci;
    const char *card = NULL;
    enum wg_code code = wg__drm_card_find(kernel->root, pci, &kernel->paths, &card, err);
    if (code != WG_OK)
        return code;
    if (card == NULL)
        return wg__fail(err, WG_ELOST, "/sys/class/drm has no card at %s any more", pci);
    code = wg__drm_card_hwmon(kernel->root, card, &kernel->paths, &kernel->folders[HWMON], err);
    if (code != WG_OK)
        return code;
    if (kernel->folders[HWMON] == NULL)
        return wg__fail(err, WG_ELOST, "the card at %s has no hwmon any more", pci);
    /* `device` is a link: ".." behind it would not lead back to the card. */
    const bool is_card = strcmp(intel->files->folder, "..") == 0;
    const int length = (int)(strlen(card) - (is_card ? sizeof "/device" - 1 : 0));
    kernel->folders[CLOCK] =
        wg__sysfs_path(&kernel->paths, "%.*s%s%s", length, card, is_card ? "" : "/",
                       is_card ? "" : intel->files->folder);
    return kernel->folders[CLOCK] != NULL ? WG_OK : wg__fail(err, WG_ENOMEM, "out of memory");
}

static enum wg_code probe(struct wg_device *device, struct wg_error *err)
{
    struct wg_kernel_device *kernel = wg__kernel_of(device);
    const enum wg_code code = wg__kernel_begin(kernel, err);
    if (code != WG_OK)
        return code;
    probe_power(kernel);
    probe_limit(kernel);
    probe_clock((struct intel_device *)kernel);
    const struct wg_kernel_gauge package = {.folder = HWMON, .name = "temp2_input", .scale = 1e-3};
    (void)wg__kernel_add(kernel, WG_METRIC_TEMPERATURE_C, &package, REMEDY, NULL);
    return wg__kernel_finish(kernel, "i915 and xe have no file for it", err);
}

static const struct wg_kernel_ops kernel_ops = {.locate = locate};

static const struct wg_device_ops device_ops = {
    .probe = probe,
    .read = wg__kernel_read,
    .set = wg__kernel_set,
    .get = wg__kernel_get,
    .release = wg__kernel_release,
    .reopen = wg__kernel_reopen,
    .destroy = wg__kernel_destroy,
};

/* -- The backend ------------------------------------------------------------------------------- */

static const struct clock_files *files_of(const char *driver)
{
    for (size_t i = 0; i < sizeof clock_files / sizeof clock_files[0]; i++) {
        if (strcmp(driver, clock_files[i].driver) == 0)
            return &clock_files[i];
    }
    return NULL;
}

static enum wg_code add_card(const struct wg_backend_config *config, const struct wg_drm_card *card,
                             unsigned index, struct wg_device_list *list, struct wg_error *err)
{
    struct intel_device *intel = wg__alloc_zeroed(1, sizeof *intel);
    if (intel == NULL)
        return wg__fail(err, WG_ENOMEM, "%s: out of memory", card->pci);
    intel->files = files_of(card->driver);
    struct wg_kernel_device *kernel = &intel->kernel;
    kernel->ops = &kernel_ops;
    kernel->root = config->root;
    kernel->device.ops = &device_ops;
    kernel->device.driver_index_plus_1 = index + 1;
    const char *pci = wg__kernel_keep(kernel, card->pci);
    kernel->device.info =
        (struct wg_device_info){.kind = WG_DEVICE_GPU,
                                .id = pci,
                                .name = wg__kernel_format(kernel, "Intel GPU 0x%04llx",
                                                          (unsigned long long)card->device_id),
                                .backend = wg__backend_intel.name,
                                .pci = pci,
                                .numa_node = card->numa_node,
                                .counts_in_total = true};
    enum wg_code code = WG_OK;
    if (kernel->is_out_of_memory)
        code = wg__fail(err, WG_ENOMEM, "%s: out of memory", card->pci);
    if (code == WG_OK)
        code = wg__device_list_add(list, &kernel->device, err);
    if (code != WG_OK)
        wg__kernel_free(kernel);
    return code;
}

/* Keeps the cards that measure themselves. */
static enum wg_code filter(const char *root, struct wg_drm_card *cards, size_t *count,
                           struct wg_arena *arena, const char **remedy_out, struct wg_error *err)
{
    (void)remedy_out;
    size_t kept = 0;
    for (size_t i = 0; i < *count; i++) {
        const char *hwmon = NULL;
        const enum wg_code code = wg__drm_card_hwmon(root, cards[i].folder, arena, &hwmon, err);
        if (code != WG_OK)
            return code;
        if (hwmon != NULL && files_of(cards[i].driver) != NULL)
            cards[kept++] = cards[i];
    }
    *count = kept;
    if (kept > 0)
        return WG_OK;
    return wg__fail(err, WG_ENODEV,
                    "no Intel GPU: /sys/class/drm has no card of vendor 0x8086 with hwmon");
}

static enum wg_code open_backend(const struct wg_backend_config *config,
                                 struct wg_device_list *list, const char **remedy_out,
                                 struct wg_error *err)
{
    static const struct wg_drm_vendor intel = {
        .id = VENDOR_INTEL, .filter = filter, .add = add_card};
    return wg__drm_cards_open(&intel, config, list, remedy_out, err);
}

const struct wg_backend wg__backend_intel = {.name = "intel", .open = open_backend};
