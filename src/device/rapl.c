/* SPDX-License-Identifier: MIT
 *
 * CPU packages and their memory, through powercap (RAPL: Running Average Power Limit).
 *
 *     /sys/class/powercap/intel-rapl:0      name "package-1"       a package: CPU, counts
 *     /sys/class/powercap/intel-rapl:0:0    name "core", "uncore"  parts of the package above
 *     /sys/class/powercap/intel-rapl:0:1    name "dram"            its memory: DRAM, counts
 *     /sys/class/powercap/intel-rapl:2      name "psys"            the whole platform, a rail
 *     /sys/class/powercap/intel-rapl-mmio:0                        the package once more: skipped
 *
 * The name says what a zone is; its number says nothing, so devices stand in the order of packages.
 * Packages of AMD come under the same names. psys holds packages and memory, core and uncore are
 * held by a package: neither counts in a total.
 *
 * A zone has a counter of microjoules that wraps after minutes (wrap.h) and is readable by root
 * only since CVE-2020-8694. There is no power to read: power is the counter's slope. The kernel's
 * other way to the same registers, perf's power events, is not used: it needs a descriptor a CPU
 * and its rights are no easier to get.
 *
 * Owns: its devices.    Threads: as struct wg_device.
 */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/number.h"
#include "device/backend.h"
#include "device/cpu_clock.h"
#include "device/kernel_device.h"
#include "device/processor.h"
#include "device/wrap.h"

#define CLASS_FOLDER "/sys/class/powercap"

enum { ZONE, HWMON, POLICY }; /* folders */

enum role { ROLE_PACKAGE, ROLE_DRAM, ROLE_CORE, ROLE_UNCORE, ROLE_PSYS, ROLE_COUNT };

static const struct {
    const char *zone; /* name of a subzone */
    enum wg_device_kind kind;
    bool counts;
    double most_w; /* nothing of this kind draws more */
} roles[ROLE_COUNT] = {
    [ROLE_PACKAGE] = {"package", WG_DEVICE_CPU, true, 2000.0},
    [ROLE_DRAM] = {"dram", WG_DEVICE_DRAM, true, 2000.0},
    [ROLE_CORE] = {"core", WG_DEVICE_RAIL, false, 2000.0},
    [ROLE_UNCORE] = {"uncore", WG_DEVICE_RAIL, false, 2000.0},
    [ROLE_PSYS] = {"psys", WG_DEVICE_RAIL, false, 20000.0},
};

static const double MICRO = 1e-6;
static const double MOST_OF_MAX = 20.0;      /* times the power that a zone says it may draw */
static const double RANGE_UNKNOWN_UJ = 65e9; /* when the file is not there: the smallest in use */
static const double REGISTER_MAX = 4294967295.0; /* counters are registers of 32 bits */
static const double REGISTER_PERIOD_S = 1e-3;
static const double LIMIT_STEP_W = 0.125; /* the power unit of the registers */

static const char *const READ_REMEDY =
    "energy_uj is readable by root only (CVE-2020-8694): run as root, or give CAP_DAC_READ_SEARCH "
    "(setcap cap_dac_read_search+ep), or let a udev rule chmod it; in a container bind-mount "
    "/sys/class/powercap";
static const char *const LIMIT_REMEDY = "run as root";

/* What a zone is; lasting, unlike its number. */
struct zone {
    enum role role;
    unsigned package; /* UINT_MAX for psys */
    unsigned die;     /* UINT_MAX: the package has but one */
    const char *path;
};

struct rapl_device {
    struct wg_kernel_device kernel; /* first */
    struct zone zone;
    struct wg_wrap energy; /* microjoules */
    struct wg_cpu_clock clock;
    bool is_virtual;
    bool is_only_package;
};

static struct rapl_device *rapl_of(struct wg_kernel_device *kernel)
{
    return (struct rapl_device *)kernel;
}

/* Reads a small file; "" when that fails. */
static void read_below(struct wg_kernel_device *kernel, const char *folder, const char *name,
                       char *out, size_t size)
{
    out[0] = '\0';
    const char *path =
        folder != NULL ? wg__sysfs_path(&kernel->paths, "%s/%s", folder, name) : NULL;
    if (path == NULL || wg__sysfs_text(kernel->root, path, out, size, NULL) != WG_OK)
        out[0] = '\0';
}

/* -- Zones ------------------------------------------------------------------------------------- */

/* Reads "package-1" or "package-1-die-0". */
static bool parse_package(const char *name, struct zone *zone)
{
    static const char head[] = "package-";
    static const char middle[] = "-die-";
    char text[32];
    if (strncmp(name, head, sizeof head - 1) != 0 || strlen(name) >= sizeof text)
        return false;
    memcpy(text, name, strlen(name) + 1);
    char *package = text + sizeof head - 1;
    char *die = strstr(package, middle);
    uint64_t number = 0;
    zone->die = UINT_MAX;
    if (die != NULL) {
        if (!wg__parse_uint64(die + sizeof middle - 1, &number) || number >= UINT_MAX)
            return false;
        zone->die = (unsigned)number;
        *die = '\0';
    }
    if (!wg__parse_uint64(package, &number) || number >= UINT_MAX)
        return false;
    zone->package = (unsigned)number;
    zone->role = ROLE_PACKAGE;
    return true;
}

/* What the zone in `path` is; `parent` is the zone above it, or NULL. */
static bool read_zone(const char *root, const char *path, const struct zone *parent,
                      struct wg_arena *arena, struct zone *out)
{
    char name[64];
    const char *file = wg__sysfs_path(arena, "%s/name", path);
    if (file == NULL || wg__sysfs_text(root, file, name, sizeof name, NULL) != WG_OK)
        return false;
    *out = (struct zone){.path = path};
    if (parent == NULL) {
        out->role = ROLE_PSYS;
        out->package = UINT_MAX;
        out->die = UINT_MAX;
        return strcmp(name, roles[ROLE_PSYS].zone) == 0 || parse_package(name, out);
    }
    out->package = parent->package;
    out->die = parent->die;
    for (size_t i = ROLE_DRAM; i <= ROLE_UNCORE; i++) {
        if (strcmp(name, roles[i].zone) == 0) {
            out->role = (enum role)i;
            return parent->role == ROLE_PACKAGE;
        }
    }
    return false;
}

static int compare_numbers(unsigned left, unsigned right)
{
    return (left > right) - (left < right);
}

static int compare_zones(const void *left, const void *right)
{
    const struct zone *a = left;
    const struct zone *b = right;
    const int package = compare_numbers(a->package, b->package);
    const int die = compare_numbers(a->die, b->die);
    return package != 0 ? package : die != 0 ? die : compare_numbers(a->role, b->role);
}

/* All zones, in order, each once; texts and array in `arena`. */
static enum wg_code find_zones(const char *root, struct wg_arena *arena, struct zone **out,
                               size_t *count_out, struct wg_error *err)
{
    static const char prefix[] = "intel-rapl:";
    const char *const *names = NULL;
    size_t count = 0;
    const enum wg_code code =
        wg__sysfs_list(root, CLASS_FOLDER, prefix, arena, &names, &count, err);
    if (code != WG_OK)
        return code;
    struct zone *zones = wg__arena_alloc(arena, count, sizeof *zones);
    if (zones == NULL)
        return wg__fail(err, WG_ENOMEM, CLASS_FOLDER ": out of memory");
    struct zone top = {.role = ROLE_COUNT};
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        const bool is_part = strchr(names[i] + sizeof prefix - 1, ':') != NULL;
        const char *path = wg__sysfs_path(arena, CLASS_FOLDER "/%s", names[i]);
        if (path == NULL)
            return wg__fail(err, WG_ENOMEM, CLASS_FOLDER ": out of memory");
        struct zone zone;
        const bool is_known = read_zone(root, path, is_part ? &top : NULL, arena, &zone);
        if (!is_part) /* names are sorted: parts follow */
            top = is_known ? zone : (struct zone){.role = ROLE_COUNT};
        if (is_known)
            zones[found++] = zone;
    }
    qsort(zones, found, sizeof *zones, compare_zones);
    size_t kept = 0;
    for (size_t i = 0; i < found; i++) {
        if (kept == 0 || compare_zones(&zones[kept - 1], &zones[i]) != 0)
            zones[kept++] = zones[i];
    }
    *out = zones;
    *count_out = kept;
    return WG_OK;
}

/* The hwmon folder of a package's temperature; NULL when it is in doubt which one that is. */
static const char *find_temperature(struct wg_kernel_device *kernel, unsigned package,
                                    bool is_only_package)
{
    char wanted[32];
    (void)snprintf(wanted, sizeof wanted, "Package id %u", package);
    const char *const *names = NULL;
    size_t count = 0;
    if (wg__sysfs_list(kernel->root, "/sys/class/hwmon", "hwmon", &kernel->paths, &names, &count,
                       NULL) != WG_OK)
        return NULL;
    const char *found = NULL;
    size_t dies = 0; /* k10temp, of AMD: one a die, and no name of the package */
    for (size_t i = 0; i < count; i++) {
        char name[64] = "";
        char label[64] = "";
        const char *folder = wg__sysfs_path(&kernel->paths, "/sys/class/hwmon/%s", names[i]);
        read_below(kernel, folder, "name", name, sizeof name);
        read_below(kernel, folder, "temp1_label", label, sizeof label);
        const bool is_amd = strcmp(name, "k10temp") == 0 && is_only_package;
        const bool is_intel = strcmp(name, "coretemp") == 0 && strcmp(label, wanted) == 0;
        dies += is_amd;
        if (is_intel || is_amd)
            found = folder;
    }
    return dies > 1 ? NULL : found;
}

/* -- Meters and knobs -------------------------------------------------------------------------- */

static enum wg_code read_energy(struct wg_kernel_device *kernel,
                                const struct wg_kernel_gauge *gauge, double *out,
                                struct wg_error *err)
{
    struct rapl_device *rapl = rapl_of(kernel);
    uint64_t energy_uj = 0;
    const enum wg_code code = wg__sysfs_read_uint(&gauge->file, &energy_uj, err);
    if (code != WG_OK)
        return code;
    *out = NAN;
    if (wg__wrap_add(&rapl->energy, energy_uj, wg__clock_ns()))
        *out = (double)rapl->energy.total * MICRO;
    return WG_OK;
}

static enum wg_code read_clock(struct wg_kernel_device *kernel, const struct wg_kernel_gauge *gauge,
                               double *out, struct wg_error *err)
{
    (void)gauge; /* its file only tells whether there are clocks */
    return wg__cpu_clock_read(&rapl_of(kernel)->clock, out, err);
}

/* A number of the zone's folder; 0 when it is not there. */
static double read_number(struct wg_kernel_device *kernel, const char *name)
{
    char text[32];
    uint64_t number = 0;
    read_below(kernel, kernel->folders[ZONE], name, text, sizeof text);
    return wg__parse_uint64(text, &number) ? (double)number : 0.0;
}

/* What the zone says it may draw; 0: it does not say. */
static double max_power_w(struct wg_kernel_device *kernel)
{
    const double first_uw = read_number(kernel, "constraint_0_max_power_uw");
    const double second_uw = read_number(kernel, "constraint_1_max_power_uw");
    return fmax(first_uw, second_uw) * MICRO;
}

static enum wg_code probe_energy(struct rapl_device *rapl, struct wg_error *err)
{
    struct wg_kernel_device *kernel = &rapl->kernel;
    double most_w = roles[rapl->zone.role].most_w;
    const double max_w = max_power_w(kernel);
    if (max_w > 0.0)
        most_w = fmin(most_w, MOST_OF_MAX * max_w);
    const double range_uj = read_number(kernel, "max_energy_range_uj");
    if (!rapl->energy.has_last) /* a later probe must not let the total fall */
        wg__wrap_init(&rapl->energy, (uint64_t)range_uj, most_w / MICRO);
    const struct wg_kernel_gauge gauge = {
        .folder = ZONE, .name = "energy_uj", .scale = MICRO, .read = read_energy};
    const enum wg_code code = wg__kernel_add(kernel, WG_METRIC_ENERGY_J, &gauge, READ_REMEDY, err);
    if (code != WG_OK)
        return code;
    struct wg_meter_info *meter = &kernel->device.info.meters[WG_METRIC_ENERGY_J];
    const double known_uj = range_uj > 0.0 ? range_uj : RANGE_UNKNOWN_UJ;
    meter->resolution = known_uj / REGISTER_MAX * MICRO;
    meter->update_period_s = REGISTER_PERIOD_S;
    meter->wrap_s = known_uj * MICRO / most_w;
    if (!rapl->is_virtual)
        return WG_OK;
    if (rapl->energy.last == 0) /* field report 76 */
        wg__kernel_drop(kernel, WG_METRIC_ENERGY_J,
                        "energy_uj says 0: this virtual machine does not get the counter", NULL);
    else
        meter->source =
            wg__kernel_format(kernel, "%s (of a virtual machine: may stand still)", meter->source);
    return WG_OK;
}

static void probe_clock(struct rapl_device *rapl)
{
    struct wg_kernel_device *kernel = &rapl->kernel;
    wg__cpu_clock_describe(&rapl->clock, kernel);
    if (rapl->clock.count == 0) {
        wg__kernel_absent(kernel, WG_METRIC_CLOCK_HZ, "/sys/devices/system/cpu/cpufreq",
                          "no cpufreq policy here, as in most virtual machines", NULL);
        return;
    }
    const struct wg_kernel_gauge gauge = {
        .folder = POLICY, .name = "scaling_cur_freq", .scale = 1e3, .read = read_clock};
    (void)wg__kernel_add(kernel, WG_METRIC_CLOCK_HZ, &gauge, NULL, NULL);
}

static void probe_temperature(struct wg_kernel_device *kernel)
{
    const struct wg_kernel_gauge gauge = {.folder = HWMON, .name = "temp1_input", .scale = 1e-3};
    if (kernel->folders[HWMON] != NULL)
        (void)wg__kernel_add(kernel, WG_METRIC_TEMPERATURE_C, &gauge, NULL, NULL);
    else
        wg__kernel_absent(kernel, WG_METRIC_TEMPERATURE_C, "/sys/class/hwmon",
                          "no coretemp of this package, and not one k10temp for one package",
                          "modprobe coretemp (Intel) or k10temp (AMD)");
}

/* The kernel tells no least limit: the registers take any, and far too small ones are not kept. */
static void probe_limit(struct wg_kernel_device *kernel)
{
    static const char name[] = "constraint_0_power_limit_uw";
    const struct wg_kernel_gauge gauge = {.folder = ZONE, .name = name, .scale = MICRO};
    const char *path = wg__kernel_format(kernel, "%s/%s", kernel->folders[ZONE], name);
    struct wg_error err;
    if (wg__kernel_add(kernel, WG_METRIC_POWER_LIMIT_W, &gauge, LIMIT_REMEDY, &err) != WG_OK) {
        wg__kernel_no_knob(kernel, WG_KNOB_POWER_LIMIT, path, err.text, NULL);
        return;
    }
    const double max_w = read_number(kernel, "constraint_0_max_power_uw") * MICRO;
    if (max_w <= 1.0) {
        wg__kernel_no_knob(kernel, WG_KNOB_POWER_LIMIT, path,
                           "constraint_0_max_power_uw says no largest limit", NULL);
        return;
    }
    const struct wg_knob_info knob = {.min = 1.0,
                                      .max = max_w,
                                      .step = LIMIT_STEP_W,
                                      .preset = NAN,
                                      .current = read_number(kernel, name) * MICRO};
    const struct wg_kernel_handle handle = {.folder = ZONE, .name = name, .scale = MICRO};
    wg__kernel_knob_file(kernel, WG_KNOB_POWER_LIMIT, &knob, &handle, LIMIT_REMEDY);
}

/* -- The device -------------------------------------------------------------------------------- */

/* A package has a clock and a temperature; its parts have neither. */
static enum wg_code open_package(struct rapl_device *rapl, struct wg_error *err)
{
    struct wg_kernel_device *kernel = &rapl->kernel;
    const struct zone *zone = &rapl->zone;
    if (zone->role != ROLE_PACKAGE)
        return WG_OK;
    const enum wg_code code = wg__cpu_clock_open(&rapl->clock, kernel->root, zone->package,
                                                 zone->die, &kernel->paths, err);
    kernel->folders[POLICY] = rapl->clock.count != 0 ? rapl->clock.policies[0] : NULL;
    return code;
}

/* Whether the zone is still where it was found: then not all zones are read for each of them. */
static bool is_in_place(struct rapl_device *rapl)
{
    struct wg_kernel_device *kernel = &rapl->kernel;
    struct wg_arena *paths = &kernel->paths;
    struct zone top;
    struct zone zone;
    const char *part = strrchr(rapl->zone.path, ':');
    const char *first = strchr(rapl->zone.path, ':');
    const bool is_part = part != first;
    const char *above =
        wg__sysfs_path(paths, "%.*s", (int)(part - rapl->zone.path), rapl->zone.path);
    if (above == NULL ||
        !read_zone(kernel->root, is_part ? above : rapl->zone.path, NULL, paths, &top))
        return false;
    if (!is_part)
        return compare_zones(&top, &rapl->zone) == 0;
    return read_zone(kernel->root, rapl->zone.path, &top, paths, &zone) &&
           compare_zones(&zone, &rapl->zone) == 0;
}

static enum wg_code find_place(struct rapl_device *rapl, struct wg_error *err)
{
    struct wg_kernel_device *kernel = &rapl->kernel;
    struct zone *zones = NULL;
    size_t count = 0;
    if (is_in_place(rapl)) {
        kernel->folders[ZONE] = rapl->zone.path;
        return WG_OK;
    }
    const enum wg_code code = find_zones(kernel->root, &kernel->paths, &zones, &count, err);
    if (code != WG_OK)
        return code;
    for (size_t i = 0; i < count; i++) {
        if (compare_zones(&zones[i], &rapl->zone) == 0)
            kernel->folders[ZONE] = zones[i].path;
    }
    if (kernel->folders[ZONE] == NULL)
        return wg__fail(err, WG_ELOST, CLASS_FOLDER " has no such zone any more");
    return WG_OK;
}

static enum wg_code locate(struct wg_kernel_device *kernel, struct wg_error *err)
{
    struct rapl_device *rapl = rapl_of(kernel);
    const enum wg_code code = find_place(rapl, err);
    if (code != WG_OK)
        return code;
    if (rapl->zone.role == ROLE_PACKAGE)
        kernel->folders[HWMON] =
            find_temperature(kernel, rapl->zone.package, rapl->is_only_package);
    return open_package(rapl, err);
}

static void release(struct wg_kernel_device *kernel)
{
    wg__cpu_clock_close(&rapl_of(kernel)->clock);
}

/* A counter that root alone may read hides no clock and no temperature (field report 62): only a
 * zone of which nothing can be read has failed. */
static bool has_meter(const struct wg_device_info *info)
{
    for (size_t i = 0; i < WG_METRIC_COUNT; i++) {
        if (info->meters[i].is_present)
            return true;
    }
    return false;
}

static enum wg_code probe(struct wg_device *device, struct wg_error *err)
{
    struct wg_kernel_device *kernel = wg__kernel_of(device);
    struct rapl_device *rapl = rapl_of(kernel);
    enum wg_code code = wg__kernel_begin(kernel, err);
    if (code != WG_OK)
        return code;
    struct wg_error cause;
    const enum wg_code energy = probe_energy(rapl, &cause);
    wg__kernel_absent(kernel, WG_METRIC_POWER_W, kernel->folders[ZONE],
                      "RAPL counts energy only: power is how fast energy_j grows", NULL);
    probe_limit(kernel);
    if (rapl->zone.role == ROLE_PACKAGE) {
        probe_clock(rapl);
        probe_temperature(kernel);
    }
    code = wg__kernel_finish(kernel, "powercap has nothing of it", err);
    if (code != WG_OK || energy == WG_OK || has_meter(&kernel->device.info))
        return code;
    return wg__fail(err, energy, "%s", cause.text);
}

static const struct wg_kernel_ops kernel_ops = {.locate = locate, .release = release};

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

static void name_device(struct rapl_device *rapl, const struct wg_processor *processor)
{
    struct wg_kernel_device *kernel = &rapl->kernel;
    struct wg_device_info *info = &kernel->device.info;
    const struct zone *zone = &rapl->zone;
    if (zone->role == ROLE_PSYS) {
        info->id = "rapl:psys";
        info->name = roles[ROLE_PSYS].zone;
        return;
    }
    char place[64];
    if (zone->die == UINT_MAX)
        (void)snprintf(place, sizeof place, "package-%u", zone->package);
    else
        (void)snprintf(place, sizeof place, "package-%u-die-%u", zone->package, zone->die);
    if (zone->role == ROLE_PACKAGE) {
        info->id = wg__kernel_format(kernel, "rapl:%s", place);
        info->name = wg__kernel_format(kernel, "%s (%s)", processor->model, place);
        return;
    }
    const char *part = roles[zone->role].zone;
    info->id = wg__kernel_format(kernel, "rapl:%s:%s", place, part);
    /* A rail goes by its name: it must be short and its own. */
    if (zone->role == ROLE_DRAM)
        info->name = wg__kernel_format(kernel, "memory of %s", place);
    else if (zone->die == UINT_MAX)
        info->name = wg__kernel_format(kernel, "%s%u", part, zone->package);
    else
        info->name = wg__kernel_format(kernel, "%s%u.%u", part, zone->package, zone->die);
}

static enum wg_code add_device(const struct wg_backend_config *config, const struct zone *zone,
                               const struct wg_processor *processor, bool is_only_package,
                               struct wg_device_list *list, struct wg_error *err)
{
    struct rapl_device *rapl = wg__alloc_zeroed(1, sizeof *rapl);
    if (rapl == NULL)
        return wg__fail(err, WG_ENOMEM, CLASS_FOLDER ": out of memory");
    rapl->zone = *zone;
    rapl->is_virtual = processor->is_virtual;
    rapl->is_only_package = is_only_package;
    struct wg_kernel_device *kernel = &rapl->kernel;
    kernel->ops = &kernel_ops;
    kernel->root = config->root;
    kernel->device.ops = &device_ops;
    kernel->device.info = (struct wg_device_info){.kind = roles[zone->role].kind,
                                                  .backend = wg__backend_rapl.name,
                                                  .driver = NULL,
                                                  .numa_node = UINT_MAX,
                                                  .counts_in_total = roles[zone->role].counts};
    rapl->zone.path = wg__kernel_keep(kernel, zone->path); /* that one dies with the search */
    name_device(rapl, processor);
    enum wg_code code = WG_OK;
    if (kernel->is_out_of_memory)
        code = wg__fail(err, WG_ENOMEM, CLASS_FOLDER ": out of memory");
    if (code == WG_OK)
        code = wg__device_list_add(list, &kernel->device, err);
    if (code != WG_OK)
        wg__kernel_free(kernel);
    return code;
}

static enum wg_code add_devices(const struct wg_backend_config *config, const struct zone *zones,
                                size_t count, struct wg_device_list *list, struct wg_error *err)
{
    struct wg_processor processor;
    wg__processor_read(config->root, &processor);
    size_t packages = 0;
    for (size_t i = 0; i < count; i++)
        packages += zones[i].role == ROLE_PACKAGE;
    for (size_t i = 0; i < count; i++) {
        const enum wg_code code =
            add_device(config, &zones[i], &processor, packages == 1, list, err);
        if (code != WG_OK)
            return code;
    }
    return WG_OK;
}

/* Field report 59: no RAPL is a finding, not a failure. */
static enum wg_code fail_none(const struct wg_backend_config *config, const char **remedy_out,
                              struct wg_error *err)
{
    struct wg_processor processor;
    wg__processor_read(config->root, &processor);
    if (processor.is_virtual)
        return wg__fail(err, WG_ENODEV,
                        "no RAPL: " CLASS_FOLDER " has no zones, as usual in a virtual machine");
    *remedy_out = "modprobe intel_rapl_msr (Intel, and AMD since family 17h); in a container "
                  "bind-mount /sys/class/powercap";
    return wg__fail(err, WG_ENODEV, "no RAPL: " CLASS_FOLDER " has no zone intel-rapl:N");
}

static enum wg_code open_backend(const struct wg_backend_config *config,
                                 struct wg_device_list *list, const char **remedy_out,
                                 struct wg_error *err)
{
    struct wg_arena arena;
    wg__arena_init(&arena);
    struct zone *zones = NULL;
    size_t count = 0;
    enum wg_code code = find_zones(config->root, &arena, &zones, &count, err);
    if (code == WG_OK)
        code = count == 0 ? fail_none(config, remedy_out, err)
                          : add_devices(config, zones, count, list, err);
    wg__arena_fini(&arena);
    return code;
}

const struct wg_backend wg__backend_rapl = {.name = "rapl", .open = open_backend};
