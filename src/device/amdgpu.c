/* SPDX-License-Identifier: MIT
 *
 * AMD GPUs, through the files of the kernel's driver amdgpu.
 *
 *     /sys/class/drm/cardN/device/      gpu_busy_percent, mem_busy_percent, mem_info_vram_*,
 *                                       unique_id, gpu_metrics (binary), pp_dpm_sclk, pp_dpm_mclk
 *     .../hwmon/hwmonM/                 power1_input (now), power1_average, power1_cap*, uW;
 *                                       freqK_input, Hz; tempK_input, 0.001 C
 *
 * Numbers here are not taken at their word: caps of 0, of all ones or without a range are no knob
 * (MI100; SR-IOV), a counter of all ones or 0 is no counter, and a die of 0 W is one whose twin
 * reports for both (MI200): it does not count in a total. Whether the counter keeps step with the
 * power is for measure/ to compare.
 *
 * A GPU that sleeps (laptops) is not woken: before anything else power/runtime_status is read,
 * which wakes nothing.
 *
 * Owns: its devices.    Threads: as struct wg_device.
 */
#include <limits.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/number.h"
#include "device/amdgpu_clock.h"
#include "device/backend.h"
#include "device/clock_table.h"
#include "device/drm_cards.h"
#include "device/gpu_metrics.h"
#include "device/kernel_device.h"
#include "device/rocm_smi.h"
#include "device/wrap.h"

enum { CARD, HWMON }; /* folders */

static const uint64_t VENDOR_AMD = 0x1002;
static const uint64_t MI200_DIES[] = {0x7408, 0x740c}; /* two on a board; 0x740f has one */
static const double MICRO = 1e-6;
static const double MOST_W = 2000.0;
static const double MOST_CAP_W = 1e5;
static const uint64_t REGISTER = UINT64_C(1) << 32;
static const char *const READ_REMEDY = "join the groups render and video: usermod -aG render,video "
                                       "USER, then log in anew";
static const char *const WRITE_REMEDY = "run as root";

struct amd_device {
    struct wg_kernel_device kernel; /* first */
    uint64_t device_id;
    const char *library;   /* the config's, of ROCm SMI */
    struct wg_wrap energy; /* in units of gpu_metrics */
    struct wg_rocm_smi smi;
    bool uses_smi;
    bool is_manual; /* this process has taken the clocks from the driver */
    struct wg_sysfs_file runtime_status;
};

static struct amd_device *amd_of(struct wg_kernel_device *kernel)
{
    return (struct amd_device *)kernel;
}

/* -- Energy ------------------------------------------------------------------------------------ */

static enum wg_code read_metrics(const struct wg_kernel_gauge *gauge, struct wg_gpu_metrics *out,
                                 struct wg_error *err)
{
    unsigned char bytes[WG_GPU_METRICS_BYTES];
    size_t length = 0;
    *out = (struct wg_gpu_metrics){0};
    const enum wg_code code = wg__sysfs_read_bytes(&gauge->file, bytes, sizeof bytes, &length, err);
    return code != WG_OK ? code : wg__gpu_metrics_parse(bytes, length, out, err);
}

static enum wg_code read_energy(struct wg_kernel_device *kernel,
                                const struct wg_kernel_gauge *gauge, double *out,
                                struct wg_error *err)
{
    struct amd_device *amd = amd_of(kernel);
    struct wg_gpu_metrics metrics;
    const enum wg_code code = read_metrics(gauge, &metrics, err);
    if (code != WG_OK)
        return code;
    if (!metrics.may_wrap || metrics.energy >= REGISTER)
        amd->energy.range = 0; /* it has its 64 bits */
    *out = NAN;
    if (wg__wrap_add(&amd->energy, metrics.energy, wg__clock_ns()))
        *out = (double)amd->energy.total * wg__gpu_metrics_unit_j();
    return WG_OK;
}

static enum wg_code read_smi_energy(struct wg_kernel_device *kernel,
                                    const struct wg_kernel_gauge *gauge, double *out,
                                    struct wg_error *err)
{
    (void)gauge; /* its file has a layout that we do not know */
    atomic_store(&kernel->device.call, "rsmi_dev_energy_count_get");
    return wg__rocm_smi_energy(&amd_of(kernel)->smi, out, err);
}

/* The revision of gpu_metrics; zeros when it is not there. */
static struct wg_gpu_metrics read_revision(struct wg_kernel_device *kernel)
{
    struct wg_gpu_metrics metrics = {0};
    struct wg_kernel_gauge gauge = {.file = {.fd = -1}};
    const char *path = wg__sysfs_path(&kernel->paths, "%s/gpu_metrics", kernel->folders[CARD]);
    if (path == NULL || wg__sysfs_open(&gauge.file, kernel->root, path, NULL) != WG_OK)
        return metrics;
    (void)read_metrics(&gauge, &metrics, NULL);
    wg__sysfs_close(&gauge.file);
    return metrics;
}

static void probe_smi(struct amd_device *amd)
{
    struct wg_kernel_device *kernel = &amd->kernel;
    const char *why = kernel->device.info.meters[WG_METRIC_ENERGY_J].why_not;
    struct wg_error err;
    atomic_store(&kernel->device.call, "rsmi_init");
    enum wg_code code = wg__rocm_smi_open(&amd->smi, amd->library, kernel->device.info.pci, &err);
    atomic_store(&kernel->device.call, NULL);
    if (code == WG_OK) {
        const struct wg_kernel_gauge gauge = {
            .folder = CARD, .name = "gpu_metrics", .scale = MICRO, .read = read_smi_energy};
        code = wg__kernel_add(kernel, WG_METRIC_ENERGY_J, &gauge, NULL, &err);
    }
    amd->uses_smi = code == WG_OK;
    if (code == WG_OK) {
        kernel->device.info.meters[WG_METRIC_ENERGY_J].source = "rsmi_dev_energy_count_get";
        return;
    }
    wg__rocm_smi_close(&amd->smi);
    wg__kernel_absent(kernel, WG_METRIC_ENERGY_J, "gpu_metrics, rsmi_dev_energy_count_get",
                      wg__kernel_format(kernel, "%s; %s", why, err.text),
                      "install the ROCm SMI library (Debian: librocm-smi64-1)");
}

static void probe_energy(struct amd_device *amd)
{
    struct wg_kernel_device *kernel = &amd->kernel;
    const double unit_j = wg__gpu_metrics_unit_j();
    if (!amd->energy.has_last)
        wg__wrap_init(&amd->energy, REGISTER, MOST_W / unit_j);
    const struct wg_kernel_gauge gauge = {
        .folder = CARD, .name = "gpu_metrics", .scale = unit_j, .read = read_energy};
    const enum wg_code code = wg__kernel_add(kernel, WG_METRIC_ENERGY_J, &gauge, READ_REMEDY, NULL);
    if (code != WG_OK) {
        const struct wg_gpu_metrics metrics = read_revision(kernel);
        if (metrics.format == 1 && !metrics.is_known)
            probe_smi(amd);
        if (metrics.format > 1) /* graphics of a processor: a part of its package */
            kernel->device.info.counts_in_total = false;
        return;
    }
    kernel->device.info.meters[WG_METRIC_ENERGY_J].wrap_s = wg__wrap_period_s(&amd->energy);
    if (amd->energy.last == 0)
        wg__kernel_drop(kernel, WG_METRIC_ENERGY_J,
                        "gpu_metrics: the energy counter is 0: nobody fills it, as in many virtual "
                        "machines",
                        NULL);
}

/* -- Power ------------------------------------------------------------------------------------- */

static bool is_half_of_a_board(const struct amd_device *amd)
{
    for (size_t i = 0; i < sizeof MI200_DIES / sizeof MI200_DIES[0]; i++) {
        if (amd->device_id == MI200_DIES[i])
            return true;
    }
    return false;
}

/* Field report 13: of the two dies of an MI250 one reports 0 W, the other for both. */
static void drop_silent_die(struct amd_device *amd)
{
    struct wg_kernel_device *kernel = &amd->kernel;
    struct wg_device_info *info = &kernel->device.info;
    struct wg_sample sample;
    const enum wg_metric metrics[] = {WG_METRIC_POWER_W, WG_METRIC_POWER_AVERAGE_W};
    const bool has_any = info->meters[metrics[0]].is_present || info->meters[metrics[1]].is_present;
    if (wg__kernel_read(&kernel->device, 1u << metrics[0] | 1u << metrics[1], &sample, NULL) !=
        WG_OK)
        return;
    const bool is_silent = !(sample.values[metrics[0]] > 0.0 || sample.values[metrics[1]] > 0.0);
    if (!is_silent || (!has_any && !is_half_of_a_board(amd)))
        return;
    const bool is_half = is_half_of_a_board(amd);
    const char *why = is_half ? "reads 0 W: the other die of the board reports for both"
                              : "reads 0 W, which no GPU that answers draws";
    for (size_t i = 0; i < 2; i++) {
        if (info->meters[metrics[i]].is_present)
            wg__kernel_drop(kernel, metrics[i], why, NULL);
    }
    if (!is_half)
        return;
    wg__kernel_drop(kernel, WG_METRIC_ENERGY_J, "the other die of the board counts for both", NULL);
    info->counts_in_total = false;
}

static void probe_power(struct amd_device *amd)
{
    struct wg_kernel_device *kernel = &amd->kernel;
    const struct wg_kernel_gauge now = {.folder = HWMON, .name = "power1_input", .scale = MICRO};
    const struct wg_kernel_gauge mean = {.folder = HWMON, .name = "power1_average", .scale = MICRO};
    if (wg__kernel_add(kernel, WG_METRIC_POWER_W, &now, READ_REMEDY, NULL) != WG_OK)
        (void)wg__kernel_add(kernel, WG_METRIC_POWER_W, &mean, READ_REMEDY, NULL);
    (void)wg__kernel_add(kernel, WG_METRIC_POWER_AVERAGE_W, &mean, READ_REMEDY, NULL);
    const struct wg_kernel_gauge cap = {.folder = HWMON, .name = "power1_cap", .scale = MICRO};
    (void)wg__kernel_add(kernel, WG_METRIC_POWER_LIMIT_W, &cap, READ_REMEDY, NULL);
}

static double read_cap_w(struct wg_kernel_device *kernel, const char *name)
{
    uint64_t number_uw = 0;
    const char *path = wg__sysfs_path(&kernel->paths, "%s/%s", kernel->folders[HWMON], name);
    if (path == NULL || wg__sysfs_uint(kernel->root, path, &number_uw, NULL) != WG_OK)
        return NAN;
    return (double)number_uw * MICRO;
}

/* Field reports 28 and 30. */
static void probe_limit(struct wg_kernel_device *kernel)
{
    const char *folder = kernel->folders[HWMON];
    if (folder == NULL || !kernel->device.info.meters[WG_METRIC_POWER_LIMIT_W].is_present) {
        wg__kernel_no_knob(kernel, WG_KNOB_POWER_LIMIT, "power1_cap",
                           kernel->device.info.meters[WG_METRIC_POWER_LIMIT_W].why_not, NULL);
        return;
    }
    const struct wg_knob_info knob = {.min = fmax(read_cap_w(kernel, "power1_cap_min"), 0.0),
                                      .max = read_cap_w(kernel, "power1_cap_max"),
                                      .step = 1.0,
                                      .preset = read_cap_w(kernel, "power1_cap_default"),
                                      .current = read_cap_w(kernel, "power1_cap")};
    const char *path = wg__kernel_format(kernel, "%s/power1_cap", folder);
    const bool is_sane = knob.max > 0.0 && knob.max < MOST_CAP_W && knob.min < MOST_CAP_W;
    if (is_sane && knob.min < knob.max) {
        const struct wg_kernel_handle handle = {
            .folder = HWMON, .name = "power1_cap", .scale = MICRO};
        wg__kernel_knob_file(kernel, WG_KNOB_POWER_LIMIT, &knob, &handle, WRITE_REMEDY);
        return;
    }
    const char *why = wg__kernel_format(
        kernel, "power1_cap_min is %.6g W and power1_cap_max %.6g W: %s", knob.min, knob.max,
        is_sane ? "nothing to choose from" : "no limits that hold, as in virtual machines");
    wg__kernel_no_knob(kernel, WG_KNOB_POWER_LIMIT, path, why, NULL);
    if (!is_sane)
        wg__kernel_drop(kernel, WG_METRIC_POWER_LIMIT_W, why, NULL);
}

/* -- Clocks ------------------------------------------------------------------------------------ */

static enum wg_code read_table(struct wg_kernel_device *kernel, const struct wg_kernel_gauge *gauge,
                               double *out, struct wg_error *err)
{
    (void)kernel;
    char text[WG_SYSFS_TEXT_MAX];
    const enum wg_code code = wg__sysfs_read_text(&gauge->file, text, sizeof text, err);
    if (code != WG_OK)
        return code;
    struct wg_clock_table table;
    if (!wg__clock_table_parse(text, &table) || isnan(table.current_hz))
        return wg__fail(err, WG_EDATA, "%s: no clock is marked as the present one",
                        gauge->file.path);
    *out = table.current_hz;
    return WG_OK;
}

static void probe_clock(struct wg_kernel_device *kernel, enum wg_metric metric, enum wg_knob knob,
                        const char *sensor, const char *table_name)
{
    const struct wg_kernel_gauge now = {.folder = HWMON, .name = sensor, .scale = 1.0};
    const struct wg_kernel_gauge marked = {
        .folder = CARD, .name = table_name, .scale = 1e6, .read = read_table};
    if (wg__kernel_add(kernel, metric, &now, READ_REMEDY, NULL) != WG_OK)
        (void)wg__kernel_add(kernel, metric, &marked, READ_REMEDY, NULL);

    const char *path = wg__kernel_format(kernel, "%s/%s", kernel->folders[CARD], table_name);
    char text[WG_SYSFS_TEXT_MAX];
    struct wg_error err;
    struct wg_clock_table table = {.count = 0};
    if (wg__sysfs_text(kernel->root, path, text, sizeof text, &err) != WG_OK) {
        wg__kernel_no_knob(kernel, knob, path, err.text, NULL);
        return;
    }
    if (!wg__clock_table_parse(text, &table) || table.count < 2) {
        wg__kernel_no_knob(kernel, knob, path, "the table has fewer than two clocks", NULL);
        return;
    }
    double *levels = wg__arena_alloc(&kernel->device.arena, table.count, sizeof *levels);
    if (levels == NULL) {
        kernel->is_out_of_memory = true;
        return;
    }
    memcpy(levels, table.levels_hz, table.count * sizeof *levels);
    const struct wg_knob_info info = {.min = levels[0],
                                      .max = levels[table.count - 1],
                                      .preset = NAN,
                                      .current = NAN,
                                      .levels = levels,
                                      .level_count = table.count};
    wg__kernel_knob(kernel, knob, &info, path, WRITE_REMEDY);
}

/* -- The rest ---------------------------------------------------------------------------------- */

static void probe_others(struct wg_kernel_device *kernel)
{
    static const struct {
        enum wg_metric metric;
        struct wg_kernel_gauge gauge;
    } gauges[] = {
        {WG_METRIC_UTILIZATION, {.folder = CARD, .name = "gpu_busy_percent", .scale = 1e-2}},
        {WG_METRIC_MEMORY_UTILIZATION, {.folder = CARD, .name = "mem_busy_percent", .scale = 1e-2}},
        {WG_METRIC_MEMORY_USED_BYTES, {.folder = CARD, .name = "mem_info_vram_used", .scale = 1.0}},
    };
    for (size_t i = 0; i < sizeof gauges / sizeof gauges[0]; i++)
        (void)wg__kernel_add(kernel, gauges[i].metric, &gauges[i].gauge, READ_REMEDY, NULL);
    /* The edge of the die, or on accelerators without that sensor its hottest spot. */
    const struct wg_kernel_gauge edge = {.folder = HWMON, .name = "temp1_input", .scale = 1e-3};
    const struct wg_kernel_gauge spot = {.folder = HWMON, .name = "temp2_input", .scale = 1e-3};
    if (wg__kernel_add(kernel, WG_METRIC_TEMPERATURE_C, &edge, READ_REMEDY, NULL) != WG_OK)
        (void)wg__kernel_add(kernel, WG_METRIC_TEMPERATURE_C, &spot, READ_REMEDY, NULL);
    uint64_t total = 0;
    const char *path =
        wg__sysfs_path(&kernel->paths, "%s/mem_info_vram_total", kernel->folders[CARD]);
    if (path != NULL && wg__sysfs_uint(kernel->root, path, &total, NULL) == WG_OK)
        kernel->device.info.memory_bytes = total;
}

/* A text of the card's folder in the device's arena; NULL when there is none. */
static const char *read_kept(struct wg_kernel_device *kernel, const char *path)
{
    char text[128];
    if (path == NULL || wg__sysfs_text(kernel->root, path, text, sizeof text, NULL) != WG_OK ||
        text[0] == '\0')
        return NULL;
    return wg__kernel_keep(kernel, text);
}

/* -- Life -------------------------------------------------------------------------------------- */

/* WG_ESTATE when the GPU sleeps: reading anything else would wake it. */
static enum wg_code check_awake(struct amd_device *amd, struct wg_error *err)
{
    char text[32];
    if (amd->runtime_status.fd < 0 ||
        wg__sysfs_read_text(&amd->runtime_status, text, sizeof text, NULL) != WG_OK ||
        strcmp(text, "suspended") != 0)
        return WG_OK;
    return wg__fail(err, WG_ESTATE, "%s says suspended: the GPU sleeps and is not woken",
                    amd->runtime_status.path);
}

static enum wg_code locate(struct wg_kernel_device *kernel, struct wg_error *err)
{
    struct amd_device *amd = amd_of(kernel);
    const char *pci = kernel->device.info.pci;
    enum wg_code code =
        wg__drm_card_find(kernel->root, pci, &kernel->paths, &kernel->folders[CARD], err);
    if (code != WG_OK)
        return code;
    if (kernel->folders[CARD] == NULL)
        return wg__fail(err, WG_ELOST, "/sys/class/drm has no card at %s any more", pci);
    code = wg__drm_card_hwmon(kernel->root, kernel->folders[CARD], &kernel->paths,
                              &kernel->folders[HWMON], err);
    if (code != WG_OK)
        return code;
    const char *path =
        wg__sysfs_path(&kernel->paths, "%s/power/runtime_status", kernel->folders[CARD]);
    if (path == NULL)
        return wg__fail(err, WG_ENOMEM, "out of memory");
    (void)wg__sysfs_open(&amd->runtime_status, kernel->root, path, NULL);
    return WG_OK;
}

static void release_rest(struct wg_kernel_device *kernel)
{
    struct amd_device *amd = amd_of(kernel);
    wg__sysfs_close(&amd->runtime_status);
    wg__rocm_smi_close(&amd->smi);
}

static enum wg_code reopen_rest(struct wg_kernel_device *kernel, struct wg_error *err)
{
    struct amd_device *amd = amd_of(kernel);
    if (!amd->uses_smi)
        return WG_OK;
    return wg__rocm_smi_open(&amd->smi, amd->library, kernel->device.info.pci, err);
}

static enum wg_code probe(struct wg_device *device, struct wg_error *err)
{
    struct wg_kernel_device *kernel = wg__kernel_of(device);
    struct amd_device *amd = amd_of(kernel);
    amd->uses_smi = false;
    enum wg_code code = wg__kernel_begin(kernel, err);
    if (code == WG_OK)
        code = check_awake(amd, err);
    if (code != WG_OK)
        return code;
    device->info.counts_in_total = true;
    device->info.driver = read_kept(kernel, "/sys/module/amdgpu/version");
    const char *name =
        read_kept(kernel, wg__sysfs_path(&kernel->paths, "%s/product_name", kernel->folders[CARD]));
    if (name != NULL)
        device->info.name = name;
    probe_power(amd);
    probe_energy(amd);
    drop_silent_die(amd);
    probe_limit(kernel);
    probe_clock(kernel, WG_METRIC_CLOCK_HZ, WG_KNOB_GPU_CLOCK, "freq1_input", "pp_dpm_sclk");
    probe_clock(kernel, WG_METRIC_MEMORY_CLOCK_HZ, WG_KNOB_MEMORY_CLOCK, "freq2_input",
                "pp_dpm_mclk");
    probe_others(kernel);
    return wg__kernel_finish(kernel, "amdgpu has no file for it", err);
}

static enum wg_code read(struct wg_device *device, uint32_t wanted, struct wg_sample *out,
                         struct wg_error *err)
{
    const enum wg_code code = check_awake(amd_of(wg__kernel_of(device)), err);
    return code != WG_OK ? code : wg__kernel_read(device, wanted, out, err);
}

static enum wg_code set_clock(struct wg_kernel_device *kernel, enum wg_knob knob, double value,
                              struct wg_error *err)
{
    return wg__amdgpu_clock_set(kernel, kernel->folders[CARD], knob, value,
                                &amd_of(kernel)->is_manual, err);
}

/* The table tells which clock runs, not which are allowed. */
static enum wg_code get_clock(struct wg_kernel_device *kernel, enum wg_knob knob, double *out,
                              struct wg_error *err)
{
    (void)kernel;
    (void)knob;
    (void)err;
    *out = NAN;
    return WG_OK;
}

static const struct wg_kernel_ops kernel_ops = {.locate = locate,
                                                .release = release_rest,
                                                .reopen = reopen_rest,
                                                .set = set_clock,
                                                .get = get_clock};

static const struct wg_device_ops device_ops = {
    .probe = probe,
    .read = read,
    .set = wg__kernel_set,
    .get = wg__kernel_get,
    .release = wg__kernel_release,
    .reopen = wg__kernel_reopen,
    .destroy = wg__kernel_destroy,
};

/* -- The backend ------------------------------------------------------------------------------- */

static enum wg_code add_card(const struct wg_backend_config *config, const struct wg_drm_card *card,
                             unsigned index, struct wg_device_list *list, struct wg_error *err)
{
    struct amd_device *amd = wg__alloc_zeroed(1, sizeof *amd);
    if (amd == NULL)
        return wg__fail(err, WG_ENOMEM, "%s: out of memory", card->pci);
    amd->device_id = card->device_id;
    amd->library = config->rocm_smi_library;
    amd->runtime_status.fd = -1;
    struct wg_kernel_device *kernel = &amd->kernel;
    kernel->ops = &kernel_ops;
    kernel->root = config->root;
    kernel->device.ops = &device_ops;
    kernel->device.driver_index_plus_1 = index + 1;
    const char *number =
        read_kept(kernel, wg__sysfs_path(&kernel->paths, "%s/unique_id", card->folder));
    if (number != NULL && strspn(number, "0") == strlen(number))
        number = NULL; /* none was burnt in */
    const char *pci = wg__kernel_keep(kernel, card->pci);
    const char *uuid = number != NULL ? wg__kernel_format(kernel, "GPU-%s", number) : NULL;
    kernel->device.info = (struct wg_device_info){
        .kind = WG_DEVICE_GPU,
        .id = uuid != NULL ? uuid : pci,
        .name = wg__kernel_format(kernel, "AMD GPU 0x%04llx", (unsigned long long)card->device_id),
        .backend = wg__backend_amdgpu.name,
        .uuid = uuid,
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

static enum wg_code filter(const char *root, struct wg_drm_card *cards, size_t *count,
                           struct wg_arena *arena, const char **remedy_out, struct wg_error *err)
{
    (void)root;
    (void)arena;
    if (*count == 0)
        return wg__fail(err, WG_ENODEV, "no AMD GPU: /sys/class/drm has no card of vendor 0x1002");
    size_t driven = 0;
    for (size_t i = 0; i < *count; i++) {
        if (strcmp(cards[i].driver, "amdgpu") == 0)
            cards[driven++] = cards[i];
    }
    if (driven == 0) {
        *remedy_out = "load the kernel's driver amdgpu for it: modprobe amdgpu";
        return wg__fail(err, WG_ENODEV, "the AMD GPU at %s is driven by %s, not by amdgpu",
                        cards[0].pci, cards[0].driver);
    }
    *count = driven;
    return WG_OK;
}

static enum wg_code open_backend(const struct wg_backend_config *config,
                                 struct wg_device_list *list, const char **remedy_out,
                                 struct wg_error *err)
{
    static const struct wg_drm_vendor amd = {.id = VENDOR_AMD, .filter = filter, .add = add_card};
    return wg__drm_cards_open(&amd, config, list, remedy_out, err);
}

const struct wg_backend wg__backend_amdgpu = {.name = "amdgpu", .open = open_backend};
