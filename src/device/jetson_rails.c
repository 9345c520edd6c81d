/* SPDX-License-Identifier: MIT
 *
 * Rails of a Jetson.
 *
 * What cannot be read is left out: a board has carriers of other makers, with chips of theirs, and
 * a missing file must cost its own rail only.
 *
 * Owns: nothing.    Threads: any thread.
 */
#include "device/jetson_rails.h"

#include <string.h>

#include "device/sysfs.h"

#define I2C_FOLDER "/sys/bus/i2c/drivers"

enum { CHANNELS = 3, RAILS_MAX = 48, LABEL_SIZE = 64 };

static const char *const totals[] = {"VDD_IN", "POM_5V_IN", "VIN"};

struct scan {
    const char *root;
    struct wg_arena *arena;
    struct wg_jetson_rail *rails; /* room for RAILS_MAX */
    size_t count;
    bool is_out_of_memory;
};

static const char *path_of(struct scan *scan, const char *folder, const char *name, unsigned number,
                           const char *end)
{
    const char *path = wg__sysfs_path(scan->arena, "%s/%s%u%s", folder, name, number, end);
    scan->is_out_of_memory |= path == NULL;
    return path;
}

static bool has_file(struct scan *scan, const char *folder, const char *name, unsigned number,
                     const char *end)
{
    const char *path = path_of(scan, folder, name, number, end);
    return path != NULL && wg__sysfs_exists(scan->root, path);
}

/* The label in a file; false when there is none or nothing is connected. */
static bool read_label(struct scan *scan, const char *path, char out[static LABEL_SIZE])
{
    if (path == NULL || wg__sysfs_text(scan->root, path, out, LABEL_SIZE, NULL) != WG_OK)
        return false;
    for (char *p = out; *p != '\0'; p++) {
        if (*p == ' ')
            *p = '_';
    }
    return out[0] != '\0' && strcmp(out, "NC") != 0 && strstr(out, "shunt") == NULL;
}

static void add_rail(struct scan *scan, const char *label, const struct wg_jetson_rail *rail)
{
    if (scan->count == RAILS_MAX)
        return;
    struct wg_jetson_rail *kept = &scan->rails[scan->count++];
    *kept = *rail;
    kept->label = wg__arena_strdup(scan->arena, label);
    scan->is_out_of_memory |= kept->label == NULL;
}

static void add_hwmon(struct scan *scan, const char *chip, const char *folder)
{
    char label[LABEL_SIZE];
    for (unsigned i = 1; i <= CHANNELS; i++) {
        const struct wg_jetson_rail rail = {
            .chip = chip, .folder = folder, .channel = i, .layout = WG_RAIL_HWMON};
        if (read_label(scan, path_of(scan, folder, "in", i, "_label"), label) &&
            has_file(scan, folder, "in", i, "_input") &&
            has_file(scan, folder, "curr", i, "_input"))
            add_rail(scan, label, &rail);
    }
}

static void add_iio(struct scan *scan, const char *chip, const char *folder)
{
    char label[LABEL_SIZE];
    for (unsigned i = 0; i < CHANNELS; i++) {
        const struct wg_jetson_rail rail = {
            .chip = chip, .folder = folder, .channel = i, .layout = WG_RAIL_IIO};
        if (read_label(scan, path_of(scan, folder, "rail_name_", i, ""), label) &&
            has_file(scan, folder, "in_power", i, "_input"))
            add_rail(scan, label, &rail);
    }
}

/* The supply of an AGX Thor's carrier: one channel, which measures power itself. */
static void add_ina238(struct scan *scan, const char *chip, const char *folder)
{
    const struct wg_jetson_rail rail = {
        .chip = chip, .folder = folder, .channel = 1, .layout = WG_RAIL_INA238};
    if (has_file(scan, folder, "power", 1, "_input"))
        add_rail(scan, "VIN", &rail);
}

/* Calls `add` for each folder below `parent` whose name begins with `prefix`. */
static void each_folder(struct scan *scan, const char *chip, const char *parent, const char *prefix,
                        void (*add)(struct scan *scan, const char *chip, const char *folder))
{
    const char *const *names = NULL;
    size_t count = 0;
    if (parent == NULL ||
        wg__sysfs_list(scan->root, parent, prefix, scan->arena, &names, &count, NULL) != WG_OK)
        count = 0;
    scan->is_out_of_memory |= parent == NULL;
    for (size_t i = 0; i < count; i++) {
        const char *folder = wg__sysfs_path(scan->arena, "%s/%s", parent, names[i]);
        scan->is_out_of_memory |= folder == NULL;
        if (folder != NULL)
            add(scan, chip, folder);
    }
}

static void scan_driver(struct scan *scan, const char *driver)
{
    const char *parent = wg__sysfs_path(scan->arena, I2C_FOLDER "/%s", driver);
    const char *const *chips = NULL;
    size_t count = 0;
    if (parent == NULL ||
        wg__sysfs_list(scan->root, parent, "", scan->arena, &chips, &count, NULL) != WG_OK)
        count = 0;
    scan->is_out_of_memory |= parent == NULL;
    const bool is_ina238 = strcmp(driver, "ina238") == 0;
    for (size_t i = 0; i < count; i++) {
        if (strchr(chips[i], '-') == NULL) /* bind, module, uevent, .. */
            continue;
        const char *folder = wg__sysfs_path(scan->arena, "%s/%s", parent, chips[i]);
        const char *hwmon = wg__sysfs_path(scan->arena, "%s/%s/hwmon", parent, chips[i]);
        each_folder(scan, chips[i], hwmon, "hwmon", is_ina238 ? add_ina238 : add_hwmon);
        if (!is_ina238)
            each_folder(scan, chips[i], folder, "iio:device", add_iio);
    }
}

/* By name alone, where the chips are not under their drivers. */
static void add_named(struct scan *scan, const char *chip, const char *folder)
{
    char name[LABEL_SIZE];
    const char *path = wg__sysfs_path(scan->arena, "%s/name", folder);
    scan->is_out_of_memory |= path == NULL;
    if (path != NULL && wg__sysfs_text(scan->root, path, name, sizeof name, NULL) == WG_OK &&
        strcmp(name, "ina3221") == 0)
        add_hwmon(scan, chip, folder);
}

static size_t find_label(const struct scan *scan, const char *label)
{
    size_t at = 0;
    while (at < scan->count && strcmp(scan->rails[at].label, label) != 0)
        at++;
    return at;
}

/* Says which rails count, and puts the one that holds the others first. */
static void find_total(struct scan *scan)
{
    size_t total = scan->count;
    for (size_t i = 0; i < sizeof totals / sizeof totals[0]; i++) {
        const size_t at = find_label(scan, totals[i]);
        if (at < scan->count)
            total = at; /* the last one named is nearest to the plug */
    }
    for (size_t i = 0; i < scan->count; i++)
        scan->rails[i].counts = total == scan->count;
    if (total < scan->count) {
        struct wg_jetson_rail first = scan->rails[total];
        first.counts = true;
        memmove(&scan->rails[1], &scan->rails[0], total * sizeof first);
        scan->rails[0] = first;
        return;
    }
    const size_t behind = find_label(scan, "VDDQ_VDD2_1V8AO");
    if (behind < scan->count && find_label(scan, "VIN_SYS_5V0") < scan->count)
        scan->rails[behind].counts = false;
}

enum wg_code wg__jetson_rails(const char *root, struct wg_arena *arena,
                              struct wg_jetson_rail **rails_out, size_t *count_out,
                              struct wg_error *err)
{
    struct scan scan = {.root = root, .arena = arena};
    scan.rails = wg__arena_alloc(arena, RAILS_MAX, sizeof *scan.rails);
    if (scan.rails == NULL)
        return wg__fail(err, WG_ENOMEM, I2C_FOLDER ": out of memory");
    static const char *const drivers[] = {"ina3221x", "ina3221", "ina238"};
    for (size_t i = 0; i < sizeof drivers / sizeof drivers[0]; i++)
        scan_driver(&scan, drivers[i]);
    if (scan.count == 0)
        each_folder(&scan, "", "/sys/class/hwmon", "hwmon", add_named);
    if (scan.is_out_of_memory)
        return wg__fail(err, WG_ENOMEM, I2C_FOLDER ": out of memory");
    find_total(&scan);
    *rails_out = scan.rails;
    *count_out = scan.count;
    return WG_OK;
}
