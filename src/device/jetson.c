/* SPDX-License-Identifier: MIT
 *
 * Jetson boards: rails of power, the GPU inside the chip, and its CPUs.
 *
 *     rails   INA3221 and INA238 chips (jetson_rails.h): power, no energy counter
 *     GPU     devfreq: its clock, the limit of it and the load; no power of its own: that is a rail
 *     CPUs    cpufreq (cpu_clock.h)
 *     memory  its clock (EMC) is in debugfs, for root only
 *
 * Every board and every release has other files. What is missing is missing by itself, with its
 * name: nothing here makes the rest fail. GPU and CPUs are parts of what a rail measures and do not
 * count in a total.
 *
 * Owns: its devices.    Threads: as struct wg_device.
 */
#include <limits.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "device/backend.h"
#include "device/cpu_clock.h"
#include "device/jetson_board.h"
#include "device/jetson_rails.h"
#include "device/kernel_device.h"
#include "device/select.h"

#define DEVFREQ_FOLDER "/sys/class/devfreq"
#define EMC_FOLDER     "/sys/kernel/debug/bpmp/debug/clk/emc"

enum { MAIN, THERMAL, EMC, NODE }; /* folders; NODE: of the GPU's own device */

static const double MILLI = 1e-3;
static const double MICRO = 1e-6;
static const char *const WRITE_REMEDY = "run as root";
static const char *const EMC_REMEDY =
    "debugfs is for root only: run as root, with debugfs mounted at /sys/kernel/debug";

struct jetson_device {
    struct wg_kernel_device kernel; /* first */
    const char *label;              /* a rail's; NULL: not a rail */
    const char *chip;
    struct wg_kernel_gauge power;
    const char *voltage_name; /* the other file of a product; NULL: power is one file */
    struct wg_sysfs_file voltage;
    struct wg_cpu_clock clock; /* of the CPUs */
};

static struct jetson_device *jetson_of(struct wg_kernel_device *kernel)
{
    return (struct jetson_device *)kernel;
}

static void release_rest(struct wg_kernel_device *kernel)
{
    struct jetson_device *device = jetson_of(kernel);
    wg__sysfs_close(&device->voltage);
    wg__cpu_clock_close(&device->clock);
}

static bool read_uint_below(struct wg_kernel_device *kernel, unsigned folder, const char *name,
                            uint64_t *out)
{
    const char *path = wg__sysfs_path(&kernel->paths, "%s/%s", kernel->folders[folder], name);
    return path != NULL && wg__sysfs_uint(kernel->root, path, out, NULL) == WG_OK;
}

/* The zone of a kind ("gpu", "cpu") in /sys/class/thermal: "GPU-therm", "gpu-thermal". */
static const char *find_zone(struct wg_kernel_device *kernel, const char *kind)
{
    const char *const *names = NULL;
    size_t count = 0;
    if (wg__sysfs_list(kernel->root, "/sys/class/thermal", "thermal_zone", &kernel->paths, &names,
                       &count, NULL) != WG_OK)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        char type[64];
        const char *path = wg__sysfs_path(&kernel->paths, "/sys/class/thermal/%s/type", names[i]);
        if (path != NULL && wg__sysfs_text(kernel->root, path, type, sizeof type, NULL) == WG_OK &&
            strncasecmp(type, kind, strlen(kind)) == 0 && strstr(type, "therm") != NULL)
            return wg__sysfs_path(&kernel->paths, "/sys/class/thermal/%s", names[i]);
    }
    return NULL;
}

static void probe_temperature(struct wg_kernel_device *kernel)
{
    const struct wg_kernel_gauge gauge = {.folder = THERMAL, .name = "temp", .scale = MILLI};
    if (kernel->folders[THERMAL] != NULL)
        (void)wg__kernel_add(kernel, WG_METRIC_TEMPERATURE_C, &gauge, NULL, NULL);
    else
        wg__kernel_absent(kernel, WG_METRIC_TEMPERATURE_C, "/sys/class/thermal",
                          "no thermal zone has its name", NULL);
}

/* -- Rails ------------------------------------------------------------------------------------- */

static enum wg_code read_product(struct wg_kernel_device *kernel,
                                 const struct wg_kernel_gauge *gauge, double *out,
                                 struct wg_error *err)
{
    int64_t current_ma = 0;
    int64_t voltage_mv = 0;
    enum wg_code code = wg__sysfs_read_int(&gauge->file, &current_ma, err);
    if (code == WG_OK)
        code = wg__sysfs_read_int(&jetson_of(kernel)->voltage, &voltage_mv, err);
    if (code == WG_OK)
        *out = (double)current_ma * (double)voltage_mv * MICRO;
    return code;
}

/* A file that did not open says so at each read. */
static enum wg_code open_voltage(struct wg_kernel_device *kernel, struct wg_error *err)
{
    struct jetson_device *rail = jetson_of(kernel);
    if (rail->voltage_name == NULL)
        return WG_OK;
    const char *path =
        wg__sysfs_path(&kernel->paths, "%s/%s", kernel->folders[MAIN], rail->voltage_name);
    if (path == NULL)
        return wg__fail(err, WG_ENOMEM, "out of memory");
    (void)wg__sysfs_open(&rail->voltage, kernel->root, path, NULL);
    return WG_OK;
}

static enum wg_code locate_rail(struct wg_kernel_device *kernel, struct wg_error *err)
{
    const struct jetson_device *device = jetson_of(kernel);
    struct wg_jetson_rail *rails = NULL;
    size_t count = 0;
    const enum wg_code code = wg__jetson_rails(kernel->root, &kernel->paths, &rails, &count, err);
    if (code != WG_OK)
        return code;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(rails[i].label, device->label) == 0 && strcmp(rails[i].chip, device->chip) == 0)
            kernel->folders[MAIN] = rails[i].folder;
    }
    if (kernel->folders[MAIN] == NULL)
        return wg__fail(err, WG_ELOST, "no power monitor has a rail %s any more", device->label);
    return open_voltage(kernel, err);
}

static enum wg_code probe_rail(struct wg_device *device, struct wg_error *err)
{
    struct wg_kernel_device *kernel = wg__kernel_of(device);
    enum wg_code code = wg__kernel_begin(kernel, err);
    if (code != WG_OK)
        return code;
    code = wg__kernel_add(kernel, WG_METRIC_POWER_W, &jetson_of(kernel)->power, NULL, err);
    struct wg_meter_info *meter = &device->info.meters[WG_METRIC_POWER_W];
    uint64_t period_ms = 0;
    if (code == WG_OK && jetson_of(kernel)->voltage_name != NULL) {
        meter->resolution = 0.0; /* of a product: it depends */
        if (read_uint_below(kernel, MAIN, "update_interval", &period_ms))
            meter->update_period_s = (double)period_ms * MILLI;
    }
    wg__kernel_absent(kernel, WG_METRIC_ENERGY_J, kernel->folders[MAIN],
                      "the chip measures power; it does not count energy", NULL);
    const enum wg_code finished =
        wg__kernel_finish(kernel, "a rail has power and nothing else", err);
    return finished != WG_OK ? finished : code;
}

/* -- The GPU ----------------------------------------------------------------------------------- */

static const struct {
    const char *node; /* name in the device tree */
    const char *architecture;
} chips[] = {
    {"gm20b", "maxwell"},   {"gp10b", "pascal"},        {"gv11b", "volta"}, {"ga10b", "ampere"},
    {"gb10b", "blackwell"}, {"gpu-gpc-0", "blackwell"}, {"gpu", NULL},
};

/* Whether a devfreq device is the GPU: by its node, or by "17000000.ga10b". */
static bool is_gpu(const char *root, const char *name, struct wg_arena *arena,
                   const char **architecture_out)
{
    char node[64] = "";
    const char *path = wg__sysfs_path(arena, DEVFREQ_FOLDER "/%s/device/of_node/name", name);
    if (path == NULL || wg__sysfs_text(root, path, node, sizeof node, NULL) != WG_OK)
        node[0] = '\0';
    const char *dot = strrchr(name, '.');
    const char *end = dot != NULL ? dot + 1 : name;
    for (size_t i = 0; i < sizeof chips / sizeof chips[0]; i++) {
        if (strcmp(node, chips[i].node) == 0 || strcmp(end, chips[i].node) == 0) {
            *architecture_out = chips[i].architecture;
            return true;
        }
    }
    return false;
}

/* The folder of the GPU's devfreq; NULL in `*out`: none. */
static enum wg_code find_gpu(const char *root, struct wg_arena *arena, const char **out,
                             const char **architecture_out, struct wg_error *err)
{
    const char *const *names = NULL;
    size_t count = 0;
    const enum wg_code code = wg__sysfs_list(root, DEVFREQ_FOLDER, "", arena, &names, &count, err);
    *out = NULL;
    if (code != WG_OK)
        return code;
    for (size_t i = 0; i < count && *out == NULL; i++) {
        if (!is_gpu(root, names[i], arena, architecture_out))
            continue;
        *out = wg__sysfs_path(arena, DEVFREQ_FOLDER "/%s", names[i]);
        if (*out == NULL)
            return wg__fail(err, WG_ENOMEM, "out of memory");
    }
    return WG_OK;
}

/* The first folder that has the file; NULL: none. */
static const char *folder_with(const struct wg_kernel_device *kernel, struct wg_arena *paths,
                               const char *const *folders, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        const char *path =
            folders[i] != NULL ? wg__sysfs_path(paths, "%s/%s", folders[i], name) : NULL;
        if (path != NULL && wg__sysfs_exists(kernel->root, path))
            return folders[i];
    }
    return NULL;
}

static enum wg_code locate_gpu(struct wg_kernel_device *kernel, struct wg_error *err)
{
    const char *architecture = NULL;
    const enum wg_code code =
        find_gpu(kernel->root, &kernel->paths, &kernel->folders[MAIN], &architecture, err);
    if (code != WG_OK)
        return code;
    if (kernel->folders[MAIN] == NULL)
        return wg__fail(err, WG_ELOST, DEVFREQ_FOLDER " has no GPU any more");
    const char *const nodes[] = {
        wg__sysfs_path(&kernel->paths, "%s/device", kernel->folders[MAIN]),
        "/sys/devices/gpu.0",
        "/sys/devices/platform/gpu.0",
    };
    kernel->folders[NODE] = folder_with(kernel, &kernel->paths, nodes, 3, "load");
    kernel->folders[THERMAL] = find_zone(kernel, "gpu");
    kernel->folders[EMC] = EMC_FOLDER;
    return nodes[0] != NULL ? WG_OK : wg__fail(err, WG_ENOMEM, "out of memory");
}

static void probe_gpu_clock(struct wg_kernel_device *kernel)
{
    const struct wg_kernel_gauge gauge = {.folder = MAIN, .name = "cur_freq", .scale = 1.0};
    (void)wg__kernel_add(kernel, WG_METRIC_CLOCK_HZ, &gauge, NULL, NULL);
    const char *path = wg__kernel_format(kernel, "%s/max_freq", kernel->folders[MAIN]);
    const char *list =
        wg__sysfs_path(&kernel->paths, "%s/available_frequencies", kernel->folders[MAIN]);
    struct wg_knob_info knob = {.preset = NAN, .current = NAN};
    if (list != NULL)
        wg__kernel_levels(kernel, list, 1.0, &knob);
    if (knob.level_count < 2) {
        wg__kernel_no_knob(kernel, WG_KNOB_GPU_CLOCK, path,
                           "available_frequencies lists fewer than two clocks", NULL);
        return;
    }
    knob.min = knob.levels[0];
    knob.max = knob.levels[knob.level_count - 1];
    uint64_t limit_hz = 0;
    if (read_uint_below(kernel, MAIN, "max_freq", &limit_hz))
        knob.current = (double)limit_hz;
    knob.preset = knob.max;
    const struct wg_kernel_handle handle = {.folder = MAIN, .name = "max_freq", .scale = 1.0};
    wg__kernel_knob_file(kernel, WG_KNOB_GPU_CLOCK, &knob, &handle, WRITE_REMEDY);
}

static void probe_memory_clock(struct wg_kernel_device *kernel)
{
    static const char path[] = EMC_FOLDER "/rate";
    const struct wg_kernel_gauge gauge = {.folder = EMC, .name = "rate", .scale = 1.0};
    struct wg_error err;
    const enum wg_code code =
        wg__kernel_add(kernel, WG_METRIC_MEMORY_CLOCK_HZ, &gauge, EMC_REMEDY, &err);
    uint64_t min_hz = 0;
    uint64_t max_hz = 0;
    if (code != WG_OK) {
        wg__kernel_no_knob(kernel, WG_KNOB_MEMORY_CLOCK, path, err.text,
                           code == WG_EPERM ? EMC_REMEDY : NULL);
        return;
    }
    if (!read_uint_below(kernel, EMC, "min_rate", &min_hz) ||
        !read_uint_below(kernel, EMC, "max_rate", &max_hz) || min_hz >= max_hz) {
        wg__kernel_no_knob(kernel, WG_KNOB_MEMORY_CLOCK, path,
                           "min_rate and max_rate leave no range", NULL);
        return;
    }
    const struct wg_knob_info knob = {
        .min = (double)min_hz, .max = (double)max_hz, .preset = NAN, .current = NAN};
    wg__kernel_knob(kernel, WG_KNOB_MEMORY_CLOCK, &knob, path, EMC_REMEDY);
}

/* The memory's clock stays where it is written only while its lock is on; off, the firmware chooses
 * by itself. */
static const struct wg_kernel_handle emc_lock = {
    .folder = EMC, .name = "mrq_rate_locked", .scale = 1.0};
static const struct wg_kernel_handle emc_rate = {.folder = EMC, .name = "rate", .scale = 1.0};

static enum wg_code set_memory_clock(struct wg_kernel_device *kernel, enum wg_knob knob,
                                     double value, struct wg_error *err)
{
    (void)knob; /* the only one without a file of its own */
    if (isnan(value))
        return wg__kernel_set_number(kernel, &emc_lock, 0.0, err);
    const enum wg_code code = wg__kernel_set_number(kernel, &emc_lock, 1.0, err);
    return code == WG_OK ? wg__kernel_set_number(kernel, &emc_rate, value, err) : code;
}

static enum wg_code get_memory_clock(struct wg_kernel_device *kernel, enum wg_knob knob,
                                     double *out, struct wg_error *err)
{
    (void)knob;
    double lock = 0.0;
    const enum wg_code code = wg__kernel_get_number(kernel, &emc_lock, &lock, err);
    if (code != WG_OK)
        return code;
    *out = NAN;
    return lock > 0.0 ? wg__kernel_get_number(kernel, &emc_rate, out, err) : WG_OK;
}

static enum wg_code probe_gpu(struct wg_device *device, struct wg_error *err)
{
    struct wg_kernel_device *kernel = wg__kernel_of(device);
    const enum wg_code code = wg__kernel_begin(kernel, err);
    if (code != WG_OK)
        return code;
    probe_gpu_clock(kernel);
    probe_memory_clock(kernel);
    probe_temperature(kernel);
    const struct wg_kernel_gauge load = {.folder = NODE, .name = "load", .scale = MILLI};
    (void)wg__kernel_add(kernel, WG_METRIC_UTILIZATION, &load, NULL, NULL);
    wg__kernel_absent(kernel, WG_METRIC_POWER_W, "ina3221",
                      "a Jetson measures rails, not the GPU: see the rail that supplies it", NULL);
    return wg__kernel_finish(kernel, "the GPU of a Jetson has no file for it", err);
}

/* -- The CPUs ---------------------------------------------------------------------------------- */

static enum wg_code locate_cpu(struct wg_kernel_device *kernel, struct wg_error *err)
{
    struct jetson_device *device = jetson_of(kernel);
    const enum wg_code code =
        wg__cpu_clock_open(&device->clock, kernel->root, UINT_MAX, UINT_MAX, &kernel->paths, err);
    if (device->clock.count != 0)
        kernel->folders[MAIN] = device->clock.policies[0];
    kernel->folders[THERMAL] = find_zone(kernel, "cpu");
    return code;
}

static enum wg_code read_cpu_clock(struct wg_kernel_device *kernel,
                                   const struct wg_kernel_gauge *gauge, double *out,
                                   struct wg_error *err)
{
    (void)gauge; /* its file only tells whether there are clocks */
    return wg__cpu_clock_read(&jetson_of(kernel)->clock, out, err);
}

static enum wg_code probe_cpu(struct wg_device *device, struct wg_error *err)
{
    struct wg_kernel_device *kernel = wg__kernel_of(device);
    const enum wg_code code = wg__kernel_begin(kernel, err);
    if (code != WG_OK)
        return code;
    const struct wg_kernel_gauge clock = {
        .folder = MAIN, .name = "scaling_cur_freq", .scale = 1e3, .read = read_cpu_clock};
    (void)wg__kernel_add(kernel, WG_METRIC_CLOCK_HZ, &clock, NULL, NULL);
    wg__cpu_clock_describe(&jetson_of(kernel)->clock, kernel);
    probe_temperature(kernel);
    wg__kernel_absent(kernel, WG_METRIC_POWER_W, "ina3221",
                      "a Jetson measures rails, not the CPUs: see the rail that supplies them",
                      NULL);
    return wg__kernel_finish(kernel, "the CPUs of a Jetson have no file for it", err);
}

/* -- The backend ------------------------------------------------------------------------------- */

static const struct wg_kernel_ops rail_kernel = {.locate = locate_rail, .release = release_rest};
static const struct wg_kernel_ops gpu_kernel = {
    .locate = locate_gpu, .set = set_memory_clock, .get = get_memory_clock};
static const struct wg_kernel_ops cpu_kernel = {.locate = locate_cpu, .release = release_rest};

#define JETSON_OPS(first)                                                                          \
    {.probe = (first),                                                                             \
     .read = wg__kernel_read,                                                                      \
     .set = wg__kernel_set,                                                                        \
     .get = wg__kernel_get,                                                                        \
     .release = wg__kernel_release,                                                                \
     .reopen = wg__kernel_reopen,                                                                  \
     .destroy = wg__kernel_destroy}

static const struct wg_device_ops rail_ops = JETSON_OPS(probe_rail);
static const struct wg_device_ops gpu_ops = JETSON_OPS(probe_gpu);
static const struct wg_device_ops cpu_ops = JETSON_OPS(probe_cpu);

/* What the functions below add to. */
struct finder {
    const struct wg_backend_config *config;
    struct wg_arena arena;
    struct wg_jetson_board board;
    struct wg_device_list *list;
};

static struct jetson_device *new_device(const struct finder *finder, enum wg_device_kind kind,
                                        const struct wg_device_ops *ops,
                                        const struct wg_kernel_ops *kernel_ops)
{
    struct jetson_device *device = wg__alloc_zeroed(1, sizeof *device);
    if (device == NULL)
        return NULL;
    device->voltage.fd = -1;
    struct wg_kernel_device *kernel = &device->kernel;
    kernel->ops = kernel_ops;
    kernel->root = finder->config->root;
    kernel->device.ops = ops;
    kernel->device.info = (struct wg_device_info){
        .kind = kind, .backend = wg__backend_jetson.name, .numa_node = UINT_MAX};
    if (finder->board.driver[0] != '\0')
        kernel->device.info.driver = wg__kernel_keep(kernel, finder->board.driver);
    return device;
}

/* Takes the device; `device` NULL: there was no memory for it. */
static enum wg_code list_device(struct finder *finder, struct jetson_device *device,
                                struct wg_error *err)
{
    enum wg_code code = WG_OK;
    if (device == NULL || device->kernel.is_out_of_memory)
        code = wg__fail(err, WG_ENOMEM, "out of memory");
    if (code == WG_OK)
        code = wg__device_list_add(finder->list, &device->kernel.device, err);
    if (code != WG_OK && device != NULL)
        wg__kernel_free(&device->kernel);
    return code;
}

/* "NVIDIA Jetson Orin Nano GPU (nvpmodel 0: 15W)" */
static const char *name_part(const struct finder *finder, struct jetson_device *device,
                             const char *part)
{
    const struct wg_jetson_board *board = &finder->board;
    if (board->mode[0] == '\0')
        return wg__kernel_format(&device->kernel, "%s %s", board->model, part);
    return wg__kernel_format(&device->kernel, "%s %s (%s)", board->model, part, board->mode);
}

static enum wg_code add_part(struct finder *finder, struct jetson_device *device, const char *id,
                             const char *part, bool has_rails, struct wg_error *err)
{
    if (device != NULL) {
        struct wg_device_info *info = &device->kernel.device.info;
        info->id = id;
        info->name = name_part(finder, device, part);
        info->counts_in_total = !has_rails;
    }
    return list_device(finder, device, err);
}

/* The one GPU is CUDA's number 0. */
static enum wg_code add_gpu(struct finder *finder, bool has_rails, struct wg_error *err)
{
    const struct wg_selection *selection = finder->config->selection;
    const char *folder = NULL;
    const char *architecture = NULL;
    enum wg_code code = find_gpu(finder->config->root, &finder->arena, &folder, &architecture, err);
    if (code != WG_OK || folder == NULL)
        return code == WG_ENOMEM ? code : WG_OK;
    bool is_chosen = true;
    if (selection != NULL && !wg__selection_is_all(selection)) {
        const struct wg_candidate gpu = {.uuid = NULL};
        code = wg__selection_match(selection, &gpu, 1, &is_chosen, err);
    }
    if (code != WG_OK || !is_chosen)
        return code;
    struct jetson_device *device = new_device(finder, WG_DEVICE_GPU, &gpu_ops, &gpu_kernel);
    if (device != NULL) {
        device->kernel.device.driver_index_plus_1 = 1;
        device->kernel.device.info.architecture = architecture;
    }
    return add_part(finder, device, "jetson:gpu", "GPU", has_rails, err);
}

/* Its texts must outlive the search. */
static void describe_rail(struct jetson_device *device, const struct wg_jetson_rail *rail)
{
    struct wg_kernel_device *kernel = &device->kernel;
    struct wg_device_info *info = &kernel->device.info;
    device->label = wg__kernel_keep(kernel, rail->label);
    device->chip = wg__kernel_keep(kernel, rail->chip);
    info->name = device->label;
    info->id = rail->chip[0] != '\0'
                   ? wg__kernel_format(kernel, "jetson:%s:%s", rail->chip, rail->label)
                   : wg__kernel_format(kernel, "jetson:%s", rail->label);
    info->counts_in_total = rail->counts;
    struct wg_kernel_gauge *power = &device->power;
    switch (rail->layout) {
    case WG_RAIL_HWMON:
        power->name = wg__kernel_format(kernel, "curr%u_input", rail->channel);
        power->scale = MILLI;
        power->read = read_product;
        device->voltage_name = wg__kernel_format(kernel, "in%u_input", rail->channel);
        break;
    case WG_RAIL_IIO:
        power->name = wg__kernel_format(kernel, "in_power%u_input", rail->channel);
        power->scale = MILLI;
        break;
    case WG_RAIL_INA238:
        power->name = "power1_input";
        power->scale = MICRO;
        break;
    }
}

static enum wg_code add_rails(struct finder *finder, const struct wg_jetson_rail *rails,
                              size_t count, struct wg_error *err)
{
    for (size_t i = 0; i < count; i++) {
        struct jetson_device *device = new_device(finder, WG_DEVICE_RAIL, &rail_ops, &rail_kernel);
        if (device != NULL)
            describe_rail(device, &rails[i]);
        const enum wg_code code = list_device(finder, device, err);
        if (code != WG_OK)
            return code;
    }
    return WG_OK;
}

static enum wg_code add_all(struct finder *finder, struct wg_error *err)
{
    struct wg_jetson_rail *rails = NULL;
    size_t count = 0;
    enum wg_code code = wg__jetson_rails(finder->config->root, &finder->arena, &rails, &count, err);
    if (code == WG_OK)
        code = add_gpu(finder, count != 0, err);
    if (code == WG_OK)
        code = add_part(finder, new_device(finder, WG_DEVICE_CPU, &cpu_ops, &cpu_kernel),
                        "jetson:cpu", "CPUs", count != 0, err);
    return code == WG_OK ? add_rails(finder, rails, count, err) : code;
}

static enum wg_code open_backend(const struct wg_backend_config *config,
                                 struct wg_device_list *list, const char **remedy_out,
                                 struct wg_error *err)
{
    (void)remedy_out;
    struct finder finder = {.config = config, .list = list};
    wg__arena_init(&finder.arena);
    wg__jetson_board(config->root, &finder.arena, &finder.board);
    enum wg_code code = WG_OK;
    if (finder.board.is_jetson)
        code = add_all(&finder, err);
    else
        code = wg__fail(err, WG_ENODEV,
                        "no Jetson: there is no /etc/nv_tegra_release, and /proc/device-tree/model "
                        "names none");
    wg__arena_fini(&finder.arena);
    return code;
}

const struct wg_backend wg__backend_jetson = {.name = "jetson", .open = open_backend};
