/* SPDX-License-Identifier: MIT
 *
 * One GPU of a machine file: each key that is written, then what holds between them.
 *
 * The GPU is checked as a whole after the keys are taken, whoever gave them (the file or what it
 * names as `like`), so a partial override cannot make a GPU that no driver would have.
 */
#include "vgpu/machine_gpu.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "device/nvml_abi.h"

static const double clock_max_mhz = 10000, sensor_period_max_ms = 10000,
                    sensor_window_max_ms = 5000;

static const struct {
    const char *word;
    int value;
} architectures[] = {
    {"kepler", NVML_ARCH_KEPLER},
    {"maxwell", NVML_ARCH_MAXWELL},
    {"pascal", NVML_ARCH_PASCAL},
    {"volta", NVML_ARCH_VOLTA},
    {"turing", NVML_ARCH_TURING},
    {"ampere", NVML_ARCH_AMPERE},
    {"ada", NVML_ARCH_ADA},
    {"hopper", NVML_ARCH_HOPPER},
    {"blackwell", NVML_ARCH_BLACKWELL},
};

static enum wg_code check_range(const struct vgpu_file_place *context, const char *key,
                                double value, double min, double max, struct wg_error *err)
{
    if (value >= min && value <= max)
        return WG_OK;
    return vgpu_file_reject(context->file, context->gpu, key, err, "%.10g is not in %.10g .. %.10g",
                            value, min, max);
}

static enum wg_code set_numbers(struct vgpu_model *model, const struct vgpu_file_place *context,
                                struct wg_error *err)
{
#define X(key, member, factor, min, max, required)                                                 \
    if (context->given->key != NULL) {                                                             \
        const double value = *context->given->key;                                                 \
        if (check_range(context, #key, value, min, max, err) != WG_OK)                             \
            return WG_EDATA;                                                                       \
        model->member = (__typeof__(model->member))(value * (factor));                             \
    } else if ((required) && !((double)model->member > 0)) {                                       \
        return vgpu_file_reject(context->file, context->gpu, #key, err,                            \
                                "is missing, expected a number in %.10g .. %.10g", (double)(min),  \
                                (double)(max));                                                    \
    }
    VGPU_FILE_NUMBERS(X)
#undef X
    model->has_counter = model->counter_period_s > 0;
#define X(key)                                                                                     \
    if (context->given->key != NULL)                                                               \
        model->key = *context->given->key;
    VGPU_FILE_SWITCHES(X)
#undef X
    return WG_OK;
}

static enum wg_code set_sensor(struct vgpu_sensor *sensor, const struct vgpu_file_sensor *given,
                               const char *key, const struct vgpu_file_place *context,
                               struct wg_error *err)
{
    if (given == NULL)
        return WG_OK;
    if (!sensor->is_present)
        *sensor = (struct vgpu_sensor){.gain = 1};
    if (given->period_ms != NULL) {
        if (check_range(context, key, *given->period_ms, 0, sensor_period_max_ms, err) != WG_OK)
            return WG_EDATA;
        sensor->period_s = *given->period_ms * 1e-3;
    }
    if (given->window_ms != NULL) {
        if (check_range(context, key, *given->window_ms, 0, sensor_window_max_ms, err) != WG_OK)
            return WG_EDATA;
        sensor->window_s = *given->window_ms * 1e-3;
    }
    if (given->gain != NULL)
        sensor->gain = *given->gain;
    if (given->offset_w != NULL)
        sensor->offset_w = *given->offset_w;
    if (!(sensor->gain > 0 && sensor->gain < 10 && fabs(sensor->offset_w) < 1000))
        return vgpu_file_reject(context->file, context->gpu, key, err,
                                "gain must be in 0 .. 10 and offset_w in -1000 .. 1000");
    sensor->is_present = sensor->period_s > 0; /* period_ms: 0 takes a sensor away */
    return WG_OK;
}

static enum wg_code set_sensors(struct vgpu_model *model, const struct vgpu_file_place *context,
                                struct wg_error *err)
{
#define X(key)                                                                                     \
    if (set_sensor(&model->key, context->given->key, #key, context, err) != WG_OK)                 \
        return WG_EDATA;
    VGPU_FILE_SENSORS(X)
#undef X
    return WG_OK;
}

static enum wg_code set_clock_list(double *clocks_hz, size_t *count, const double *given_mhz,
                                   size_t given_count, const char *key,
                                   const struct vgpu_file_place *context, struct wg_error *err)
{
    for (size_t i = 0; i < given_count; i++) {
        if (check_range(context, key, given_mhz[i], 1, clock_max_mhz * 10, err) != WG_OK)
            return WG_EDATA;
        if (i > 0 && !(given_mhz[i] > given_mhz[i - 1]))
            return vgpu_file_reject(context->file, context->gpu, key, err,
                                    "must rise, but %.10g follows %.10g", given_mhz[i],
                                    given_mhz[i - 1]);
        clocks_hz[i] = given_mhz[i] * 1e6;
    }
    *count = given_count;
    return WG_OK;
}

/* clock_min_mhz, clock_max_mhz and clock_step_mhz, all three. */
static enum wg_code set_clock_steps(struct vgpu_model *model, const struct vgpu_file_place *context,
                                    struct wg_error *err)
{
    const struct vgpu_file_gpu *given = context->given;
    if (given->clock_min_mhz == NULL || given->clock_max_mhz == NULL ||
        given->clock_step_mhz == NULL)
        return vgpu_file_reject(context->file, context->gpu, "clock_min_mhz", err,
                                "clock_min_mhz, clock_max_mhz and clock_step_mhz need each other");
    const double min = *given->clock_min_mhz, max = *given->clock_max_mhz;
    const double step = *given->clock_step_mhz;
    if (check_range(context, "clock_min_mhz", min, 1, clock_max_mhz, err) != WG_OK ||
        check_range(context, "clock_max_mhz", max, min, clock_max_mhz, err) != WG_OK ||
        check_range(context, "clock_step_mhz", step, 0.1, clock_max_mhz, err) != WG_OK)
        return WG_EDATA;
    const double steps = (max - min) / step;
    if (fabs(steps - round(steps)) > 1e-6)
        return vgpu_file_reject(context->file, context->gpu, "clock_step_mhz", err,
                                "%.10g does not lead from %.10g to %.10g", step, min, max);
    if (steps >= (double)VGPU_CLOCKS_MAX)
        return vgpu_file_reject(context->file, context->gpu, "clock_step_mhz", err,
                                "%.10g makes more than %d clocks", step, VGPU_CLOCKS_MAX);
    model->clock_count = (size_t)lround(steps) + 1;
    for (size_t i = 0; i < model->clock_count; i++)
        model->clocks_hz[i] = (min + (double)i * step) * 1e6;
    return WG_OK;
}

static enum wg_code set_clocks(struct vgpu_model *model, const struct vgpu_file_place *context,
                               struct wg_error *err)
{
    const struct vgpu_file_gpu *given = context->given;
    const bool has_steps = given->clock_min_mhz != NULL || given->clock_max_mhz != NULL ||
                           given->clock_step_mhz != NULL;
    if (given->clocks_mhz != NULL && has_steps)
        return vgpu_file_reject(context->file, context->gpu, "clocks_mhz", err,
                                "a list and clock_min_mhz .. clock_max_mhz exclude each other");
    if (has_steps && set_clock_steps(model, context, err) != WG_OK)
        return WG_EDATA;
    if (given->clocks_mhz != NULL &&
        set_clock_list(model->clocks_hz, &model->clock_count, given->clocks_mhz,
                       given->clocks_mhz_count, "clocks_mhz", context, err) != WG_OK)
        return WG_EDATA;
    if (given->memory_clocks_mhz == NULL)
        return WG_OK;
    return set_clock_list(model->memory_clocks_hz, &model->memory_clock_count,
                          given->memory_clocks_mhz, given->memory_clocks_mhz_count,
                          "memory_clocks_mhz", context, err);
}

static void copy_text(char *out, size_t size, const char *text)
{
    if (text != NULL)
        (void)snprintf(out, size, "%s", text);
}

static enum wg_code set_architecture(struct vgpu_model *model,
                                     const struct vgpu_file_place *context, struct wg_error *err)
{
    const char *word = context->given->architecture;
    if (word != NULL) {
        model->architecture = 0;
        for (size_t i = 0; i < sizeof architectures / sizeof architectures[0]; i++)
            if (strcmp(word, architectures[i].word) == 0)
                model->architecture = architectures[i].value;
        if (model->architecture == 0)
            return vgpu_file_reject(context->file, context->gpu, "architecture", err,
                                    "'%s' is not kepler, maxwell, pascal, volta, turing, ampere, "
                                    "ada, hopper or blackwell",
                                    word);
    }
    const char *capability = context->given->compute_capability;
    if (capability == NULL)
        return WG_OK;
    uint64_t major = 0, minor = 0;
    char digits[8] = "";
    const char *point = strchr(capability, '.');
    if (point != NULL)
        (void)snprintf(digits, sizeof digits, "%.*s", (int)(point - capability), capability);
    if (point == NULL || !wg__parse_uint64(digits, &major) || major < 1 || major > 99 ||
        !wg__parse_uint64(point + 1, &minor) || minor > 9)
        return vgpu_file_reject(context->file, context->gpu, "compute_capability", err,
                                "'%s' is not of the form 8.0", capability);
    model->compute_major = (int)major;
    model->compute_minor = (int)minor;
    return WG_OK;
}

/* "1A:00.0", "0000:1a:00.0" or the driver's own "00000000:1A:00.0", as the last. */
static bool read_pci(const char *text, char out[static 32])
{
    char full[32];
    const char *fill = strlen(text) == 7 ? "00000000:" : strlen(text) == 12 ? "0000" : "";
    (void)snprintf(full, sizeof full, "%s%s", fill, text);
    static const char form[] = "xxxxxxxx:xx:xx.x";
    if (strlen(full) != sizeof form - 1)
        return false;
    for (size_t i = 0; form[i] != '\0'; i++) {
        const bool is_hex = full[i] != '\0' && strchr("0123456789abcdefABCDEF", full[i]) != NULL;
        if (form[i] == 'x' ? !is_hex : full[i] != form[i])
            return false;
        out[i] = (char)(full[i] >= 'a' && full[i] <= 'f' ? full[i] - 'a' + 'A' : full[i]);
    }
    out[sizeof form - 1] = '\0';
    return true;
}

static enum wg_code set_identity(struct vgpu_model *model, const struct vgpu_file_place *context,
                                 struct wg_error *err)
{
    const struct vgpu_file_gpu *given = context->given;
    copy_text(model->name, sizeof model->name, given->name);
    if (given->uuid != NULL && strncmp(given->uuid, "GPU-", 4) != 0)
        return vgpu_file_reject(context->file, context->gpu, "uuid", err,
                                "'%s' does not begin with GPU-", given->uuid);
    copy_text(model->uuid, sizeof model->uuid, given->uuid);
    if (given->pci_address != NULL && !read_pci(given->pci_address, model->pci))
        return vgpu_file_reject(context->file, context->gpu, "pci_address", err,
                                "'%s' is not of the form 00000000:1A:00.0", given->pci_address);
    if (given->count != NULL && *given->count > 1 &&
        (given->uuid != NULL || given->pci_address != NULL))
        return vgpu_file_reject(context->file, context->gpu, "count", err,
                                "%u GPUs can't have one uuid or pci_address", *given->count);
    if (given->mig == NULL)
        return WG_OK;
    model->mig_count = given->mig_count;
    model->is_mig = given->mig_count > 0;
    for (size_t i = 0; i < given->mig_count; i++) {
        copy_text(model->mig_profiles[i], sizeof model->mig_profiles[i], given->mig[i].profile);
        copy_text(model->mig_uuids[i], sizeof model->mig_uuids[i], given->mig[i].uuid);
    }
    return WG_OK;
}

/* What holds between the keys, whoever gave them. */
static enum wg_code check_model(const struct vgpu_model *model,
                                const struct vgpu_file_place *context, struct wg_error *err)
{
    const double max_hz = model->clock_count > 0 ? model->clocks_hz[model->clock_count - 1] : 0;
    const struct {
        bool is_broken;
        const char *key, *what;
    } rules[] = {
        {model->name[0] == '\0', "name", "is missing"},
        {model->architecture == 0, "architecture", "is missing"},
        {model->compute_major == 0, "compute_capability", "is missing"},
        {model->clock_count == 0, "clocks_mhz", "is missing, a list or min, max and step"},
        {model->memory_clock_count == 0, "memory_clocks_mhz", "is missing"},
        {!(model->clock_idle_hz <= max_hz), "clock_idle_mhz", "is above the largest clock"},
        {!(model->load_w > model->idle_w), "load_w", "must be above idle_w"},
        {!(model->memory_idle_w <= model->idle_w), "memory_idle_w", "is above idle_w"},
        {!(model->memory_load_w >= model->memory_idle_w), "memory_load_w",
         "is below memory_idle_w"},
        {!(model->memory_load_w <= model->load_w), "memory_load_w", "is above load_w"},
        {!(model->limit_min_w <= model->limit_default_w), "limit_default_w",
         "is below limit_min_w"},
        {!(model->limit_default_w <= model->limit_max_w), "limit_default_w",
         "is above limit_max_w"},
        {!(model->slowdown_c > model->ambient_c), "slowdown_c", "must be above ambient_c"},
        {model->memory.is_present && !(model->memory_load_w > 0), "memory",
         "needs memory_idle_w and memory_load_w"},
        {!model->usage.is_present, "usage", "is missing: what nvmlDeviceGetPowerUsage shows"},
    };
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (rules[i].is_broken)
            return vgpu_file_reject(context->file, context->gpu, rules[i].key, err, "%s",
                                    rules[i].what);
    return WG_OK;
}

enum wg_code vgpu_model_fill(struct vgpu_model *model, const struct vgpu_file_place *context,
                             struct wg_error *err)
{
    enum wg_code code = set_identity(model, context, err);
    if (code == WG_OK)
        code = set_architecture(model, context, err);
    if (code == WG_OK)
        code = set_numbers(model, context, err);
    if (code == WG_OK)
        code = set_sensors(model, context, err);
    if (code == WG_OK)
        code = set_clocks(model, context, err);
    if (code == WG_OK)
        code = check_model(model, context, err);
    return code;
}
