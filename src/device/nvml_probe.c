/* SPDX-License-Identifier: MIT
 *
 * What a GPU is, and what it can be asked: found out once, by asking.
 *
 * Tables of what which GPU supports go stale, and a GPU in a virtual machine supports less than its
 * name promises. So each meter is read once here, in one batch of fields and one call each for the
 * rest; what answers is in the plan of every later look, what does not is never asked again, and
 * its code becomes the reason that `wattgov devices` shows.
 *
 * Two fields need care. Drivers before scopes existed ignore the scope, and then give the GPU's
 * power as that of the memory or of the module: equal milliwatts in one batch are taken for that.
 * And boards without a sensor for their memory (A40) answer 0.
 *
 * Owns: nothing but what it puts into the GPU's arena.    Threads: one at a time per GPU.
 */
#include <limits.h>
#include <math.h>
#include <string.h>

#include "base/number.h"
#include "device/jetson_board.h"
#include "device/jetson_rails.h"
#include "device/nvml.h"
#include "device/sensor.h"

#define BIT(metric)   (1u << WG_METRIC_##metric)
#define FIELD(number) "nvmlDeviceGetFieldValues(" #number ")"

static const double power_factor = 10;        /* of the largest limit */
static const double power_unlimited_w = 20e3; /* when no limit is known: no board draws that */
static const uint64_t memory_most_bytes = 1000000000000000; /* a petabyte is on no board */

/* In the order of preference for each metric. */
static const struct candidate {
    struct nvml_field_plan plan;
    const char *source;
} candidates[] = {
    {{WG_METRIC_ENERGY_J, NVML_FIELD_ENERGY_MJ, NVML_SCOPE_GPU, 1e-3}, FIELD(83)},
    {{WG_METRIC_POWER_W, NVML_FIELD_POWER_INSTANT_MW, NVML_SCOPE_GPU, 1e-3}, FIELD(186)},
    {{WG_METRIC_POWER_AVERAGE_W, NVML_FIELD_POWER_AVERAGE_MW, NVML_SCOPE_GPU, 1e-3}, FIELD(185)},
    {{WG_METRIC_MEMORY_POWER_W, NVML_FIELD_POWER_INSTANT_MW, NVML_SCOPE_MEMORY, 1e-3},
     FIELD(186 of memory)},
    {{WG_METRIC_MEMORY_POWER_W, NVML_FIELD_POWER_AVERAGE_MW, NVML_SCOPE_MEMORY, 1e-3},
     FIELD(185 of memory)},
    {{WG_METRIC_MODULE_POWER_W, NVML_FIELD_POWER_INSTANT_MW, NVML_SCOPE_MODULE, 1e-3},
     FIELD(186 of module)},
    {{WG_METRIC_MODULE_POWER_W, NVML_FIELD_POWER_AVERAGE_MW, NVML_SCOPE_MODULE, 1e-3},
     FIELD(185 of module)},
    {{WG_METRIC_POWER_LIMIT_W, NVML_FIELD_POWER_LIMIT_REQUESTED_MW, NVML_SCOPE_GPU, 1e-3},
     FIELD(192)},
    {{WG_METRIC_ENFORCED_POWER_LIMIT_W, NVML_FIELD_POWER_LIMIT_CURRENT_MW, NVML_SCOPE_GPU, 1e-3},
     FIELD(190)},
    {{WG_METRIC_THROTTLED_POWER_S, NVML_FIELD_THROTTLED_POWER_NS, NVML_SCOPE_GPU, 1e-9}, FIELD(74)},
    {{WG_METRIC_THROTTLED_THERMAL_S, NVML_FIELD_THROTTLED_SW_THERMAL_NS, NVML_SCOPE_GPU, 1e-9},
     FIELD(269)},
    {{WG_METRIC_THROTTLED_THERMAL_S, NVML_FIELD_THROTTLED_THERMAL_NS, NVML_SCOPE_GPU, 1e-9},
     FIELD(75)},
};
enum { CANDIDATES = sizeof candidates / sizeof candidates[0] };
_Static_assert(sizeof candidates / sizeof candidates[0] <= NVML_FIELDS_MAX,
               "the plan has room for all candidates");

/* -- Texts ------------------------------------------------------------------------------------ */

const char *wg__nvml_text(struct nvml_gpu *gpu, const char *format, ...)
{
    char text[sizeof((struct wg_error *)0)->text];
    va_list args;
    va_start(args, format);
    const int length = wg__format(text, sizeof text, format, args);
    va_end(args);
    return wg__arena_strdup(&gpu->base.arena, length >= 0 ? text : "");
}

const char *wg__nvml_why_not(struct nvml_gpu *gpu, const char *call, int code)
{
    return wg__nvml_text(gpu, "%s: error %d: %s", call, code, wg__nvml_code(code)->words);
}

static enum wg_code fail_memory(const struct nvml_gpu *gpu, struct wg_error *err)
{
    return wg__fail(err, WG_ENOMEM, "GPU %u: out of memory", gpu->index);
}

/* -- What it is ------------------------------------------------------------------------------- */

/* GA100 has another power sensor than the rest of Ampere. */
static const char *name_architecture(unsigned architecture, int major, int minor, const char *name)
{
    static const char *const words[] = {
        [NVML_ARCH_KEPLER] = "kepler",
        [NVML_ARCH_MAXWELL] = "maxwell",
        [NVML_ARCH_PASCAL] = "pascal",
        [NVML_ARCH_VOLTA] = "volta",
        [NVML_ARCH_TURING] = "turing",
        [NVML_ARCH_AMPERE] = "ampere",
        [NVML_ARCH_ADA] = "ada",
        [NVML_ARCH_HOPPER] = "hopper",
        [NVML_ARCH_BLACKWELL] = "blackwell",
    };
    const bool is_ampere = architecture == NVML_ARCH_AMPERE;
    if (is_ampere && major == 8 && minor == 0)
        return "ampere-ga100";
    if (is_ampere && major == 0 && strstr(name, "A100") != NULL)
        return "ampere-ga100";
    return architecture < sizeof words / sizeof words[0] ? words[architecture] : NULL;
}

/* For drivers without nvmlDeviceGetArchitecture (before branch 450). */
static unsigned architecture_of_capability(int major, int minor)
{
    static const struct {
        int version; /* and later ones */
        unsigned architecture;
    } table[] = {
        {100, NVML_ARCH_BLACKWELL}, {90, NVML_ARCH_HOPPER},  {89, NVML_ARCH_ADA},
        {80, NVML_ARCH_AMPERE},     {75, NVML_ARCH_TURING},  {70, NVML_ARCH_VOLTA},
        {60, NVML_ARCH_PASCAL},     {50, NVML_ARCH_MAXWELL}, {30, NVML_ARCH_KEPLER},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        if (major * 10 + minor >= table[i].version)
            return table[i].architecture;
    }
    return UINT_MAX;
}

static void read_architecture(struct nvml_gpu *gpu)
{
    unsigned architecture = UINT_MAX;
    int major = 0;
    int minor = 0;
    if (NVML_CALL(gpu, compute_capability, gpu->handle, &major, &minor) != NVML_OK)
        major = minor = 0;
    if (NVML_CALL(gpu, architecture, gpu->handle, &architecture) != NVML_OK)
        architecture = architecture_of_capability(major, minor);
    gpu->base.info.architecture =
        name_architecture(architecture, major, minor, gpu->base.info.name);
}

/* Whether a call gave a text; it is then ended. */
static bool is_text(char *text, size_t size, int code)
{
    text[size - 1] = '\0';
    return code == NVML_OK && text[0] != '\0';
}

static enum wg_code read_address(struct nvml_gpu *gpu, struct wg_error *err)
{
    struct nvml_pci_info pci = {0};
    if (NVML_CALL(gpu, pci, gpu->handle, &pci) != NVML_OK)
        return WG_OK;
    char address[NVML_PCI_SIZE];
    wg__nvml_pci_address(&pci, address);
    if (gpu->is_picked && gpu->pci[0] != '\0' && strcmp(gpu->pci, address) != 0)
        return wg__fail(err, WG_ESTATE,
                        "%s: is %s for the driver and %s for the kernel: choose it by its UUID",
                        wg__nvml_name(gpu), address, gpu->pci);
    memcpy(gpu->pci, address, sizeof gpu->pci);
    gpu->base.info.pci = gpu->pci;
    return WG_OK;
}

/* Size in bytes, and what "in use" can be at most. */
static void read_memory_size(struct nvml_gpu *gpu)
{
    struct nvml_memory_v2 newer = {.version = NVML_VERSION_WORD(struct nvml_memory_v2, 2)};
    struct nvml_memory older = {0};
    uint64_t total = 0;
    if (NVML_CALL(gpu, memory_v2, gpu->handle, &newer) == NVML_OK)
        total = newer.total;
    else if (NVML_CALL(gpu, memory, gpu->handle, &older) == NVML_OK)
        total = older.total;
    if (total > memory_most_bytes)
        total = 0;
    gpu->base.info.memory_bytes = total;
    gpu->memory_most = (double)total;
}

/* The GPU inside a Jetson: newer JetPacks bring an NVML that knows it too. The jetson backend lists
 * it already, with more knobs, and its rails hold what it draws: so it is marked, and counts once.
 */
static enum wg_code mark_integrated(struct nvml_gpu *gpu, struct wg_error *err)
{
    static const char *const words[] = {"nvgpu", "Tegra", "Xavier", "Orin", "Thor"};
    struct wg_device_info *info = &gpu->base.info;
    bool is_integrated = false;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        is_integrated = is_integrated || strstr(info->name, words[i]) != NULL;
    if (!is_integrated)
        return WG_OK;
    struct wg_arena arena;
    wg__arena_init(&arena);
    struct wg_jetson_board board;
    wg__jetson_board(gpu->root, &arena, &board);
    struct wg_jetson_rail *rails = NULL;
    size_t count = 0;
    enum wg_code code = WG_OK;
    if (board.is_jetson)
        code = wg__jetson_rails(gpu->root, &arena, &rails, &count, err);
    wg__arena_fini(&arena);
    if (code != WG_OK || !board.is_jetson)
        return code;
    info->counts_in_total = count == 0;
    info->name = wg__nvml_text(gpu, "%s (also listed as jetson:gpu)", info->name);
    return info->name != NULL ? WG_OK : fail_memory(gpu, err);
}

static enum wg_code read_identity(struct nvml_gpu *gpu, struct wg_error *err)
{
    struct wg_device_info *info = &gpu->base.info;
    char text[NVML_NAME_SIZE] = "";
    int code = NVML_CALL(gpu, uuid, gpu->handle, text, sizeof text);
    if (wg__nvml_code(code)->meaning == WG_ELOST)
        return wg__nvml_fail_gpu(gpu, err, wg__nvml_names.uuid, code);
    if (is_text(text, sizeof text, code))
        memcpy(gpu->uuid, text, sizeof gpu->uuid);
    const enum wg_code address = read_address(gpu, err);
    if (address != WG_OK)
        return address;
    info->uuid = gpu->uuid[0] != '\0' ? gpu->uuid : NULL;
    if (info->uuid != NULL || info->pci != NULL)
        info->id = info->uuid != NULL ? info->uuid : info->pci;

    code = NVML_CALL(gpu, name, gpu->handle, text, sizeof text);
    if (is_text(text, sizeof text, code))
        info->name = wg__arena_strdup(&gpu->base.arena, text);
    if (gpu->library->driver[0] != '\0')
        info->driver = wg__arena_strdup(&gpu->base.arena, gpu->library->driver);
    if (info->name == NULL || (gpu->library->driver[0] != '\0' && info->driver == NULL))
        return fail_memory(gpu, err);
    int is_persistent = 0;
    info->is_persistent =
        NVML_CALL(gpu, persistence, gpu->handle, &is_persistent) == NVML_OK && is_persistent != 0;
    if (info->pci != NULL)
        info->numa_node = wg__nvml_pci_numa_node(gpu->root, info->pci);
    read_memory_size(gpu);
    read_architecture(gpu);
    gpu->is_known = true;
    return mark_integrated(gpu, err);
}

enum wg_code wg__nvml_mig_uuids(struct nvml_gpu *gpu, struct wg_arena *arena,
                                const char *const **out, size_t *count_out, struct wg_error *err)
{
    *out = NULL;
    *count_out = 0;
    unsigned current = 0;
    unsigned pending = 0;
    unsigned most = 0;
    if (NVML_CALL(gpu, mig_mode, gpu->handle, &current, &pending) != NVML_OK || current != 1 ||
        NVML_CALL(gpu, mig_max, gpu->handle, &most) != NVML_OK || most == 0 || most > 1024)
        return WG_OK;
    const char **uuids = wg__arena_alloc(arena, most, sizeof *uuids);
    if (uuids == NULL)
        return fail_memory(gpu, err);
    size_t count = 0;
    for (unsigned i = 0; i < most; i++) {
        nvml_device instance = NULL;
        char uuid[NVML_UUID_SIZE] = "";
        if (NVML_CALL(gpu, mig_device, gpu->handle, i, &instance) != NVML_OK)
            continue; /* NOT_FOUND: this place is free */
        if (!is_text(uuid, sizeof uuid, NVML_CALL(gpu, uuid, instance, uuid, sizeof uuid)))
            continue;
        uuids[count] = wg__arena_strdup(arena, uuid);
        if (uuids[count++] == NULL)
            return fail_memory(gpu, err);
    }
    *out = uuids;
    *count_out = count;
    return WG_OK;
}

static enum wg_code read_mig(struct nvml_gpu *gpu, struct wg_error *err)
{
    struct wg_device_info *info = &gpu->base.info;
    unsigned current = 0;
    unsigned pending = 0;
    info->is_mig =
        NVML_CALL(gpu, mig_mode, gpu->handle, &current, &pending) == NVML_OK && current == 1;
    if (!info->is_mig)
        return WG_OK;
    return wg__nvml_mig_uuids(gpu, &gpu->base.arena, &info->mig_uuids, &info->mig_count, err);
}

/* -- What it measures ------------------------------------------------------------------------- */

/* Asks all candidates at once; where a driver refuses the batch for one of them, one by one. */
static void ask_candidates(struct nvml_gpu *gpu, struct nvml_field_value values[CANDIDATES])
{
    for (size_t i = 0; i < CANDIDATES; i++)
        values[i] = (struct nvml_field_value){.field_id = candidates[i].plan.field,
                                              .scope_id = candidates[i].plan.scope,
                                              .result = NVML_E_NO_DATA};
    const int code = NVML_CALL(gpu, fields, gpu->handle, CANDIDATES, values);
    if (code == NVML_OK)
        return;
    const bool is_final =
        code == NVML_E_FUNCTION_NOT_FOUND || wg__nvml_code(code)->meaning == WG_ELOST;
    for (size_t i = 0; i < CANDIDATES; i++) {
        const int alone = is_final ? code : NVML_CALL(gpu, fields, gpu->handle, 1, &values[i]);
        if (alone != NVML_OK)
            values[i].result = alone;
    }
}

/* See the header: a part whose number is the whole's, or 0, is not measured. */
static bool is_whole_or_zero(const struct nvml_gpu *gpu, size_t i,
                             const struct nvml_field_value values[CANDIDATES])
{
    double part = 0;
    double whole = 0;
    if (candidates[i].plan.scope == NVML_SCOPE_GPU ||
        !wg__nvml_field_number(gpu, &candidates[i].plan, &values[i], &part))
        return false;
    if (part <= 0)
        return true;
    for (size_t j = 0; j < CANDIDATES; j++) {
        if (candidates[j].plan.field == candidates[i].plan.field &&
            candidates[j].plan.scope == NVML_SCOPE_GPU &&
            wg__nvml_field_number(gpu, &candidates[j].plan, &values[j], &whole) && part == whole)
            return true;
    }
    return false;
}

/* Takes the first candidate of each metric that answers; notes why the first one of it does not. */
static enum wg_code choose_fields(struct nvml_gpu *gpu,
                                  const struct nvml_field_value values[CANDIDATES],
                                  struct wg_error *err)
{
    struct wg_meter_info *meters = gpu->base.info.meters;
    for (size_t i = 0; i < CANDIDATES; i++) {
        struct wg_meter_info *meter = &meters[candidates[i].plan.metric];
        double number = 0;
        if (meter->is_present)
            continue;
        const bool is_number = wg__nvml_field_number(gpu, &candidates[i].plan, &values[i], &number);
        if (is_number && !is_whole_or_zero(gpu, i, values)) {
            gpu->fields[gpu->field_count++] = candidates[i].plan;
            meter->is_present = true;
            meter->source = candidates[i].source;
            meter->resolution = candidates[i].plan.scale;
            meter->why_not = NULL;
            continue;
        }
        if (meter->why_not != NULL)
            continue;
        meter->source = candidates[i].source;
        if (is_number)
            meter->why_not = "the driver gives 0, or the power of the whole GPU";
        else if (values[i].result == NVML_OK)
            meter->why_not = wg__nvml_text(gpu, "%s: no sensible number", candidates[i].source);
        else
            meter->why_not = wg__nvml_why_not(gpu, candidates[i].source, values[i].result);
        if (meter->why_not == NULL)
            return fail_memory(gpu, err);
        meter->remedy = is_number ? NULL : wg__nvml_code(values[i].result)->remedy;
    }
    return WG_OK;
}

/* Marks what a reader gave as present. */
static void take_reader(struct nvml_gpu *gpu, size_t i, const struct wg_sample *sample)
{
    const struct nvml_reader *reader = &wg__nvml_readers[i];
    gpu->readers |= 1u << i;
    for (int metric = 0; metric < WG_METRIC_COUNT; metric++) {
        if (!wg__sample_has(sample, (enum wg_metric)metric))
            continue;
        struct wg_meter_info *meter = &gpu->base.info.meters[metric];
        meter->is_present = true;
        meter->source = *reader->call;
        meter->why_not = NULL;
        meter->remedy = NULL;
    }
}

/* Tries the calls for what no field gives. */
static enum wg_code choose_readers(struct nvml_gpu *gpu, struct wg_error *err)
{
    struct wg_meter_info *meters = gpu->base.info.meters;
    for (size_t i = 0; i < NVML_READERS; i++) {
        const struct nvml_reader *reader = &wg__nvml_readers[i];
        bool is_covered = true;
        for (int metric = 0; metric < WG_METRIC_COUNT; metric++)
            is_covered =
                is_covered && ((reader->metrics >> metric & 1u) == 0 || meters[metric].is_present);
        if (is_covered)
            continue;
        struct wg_sample sample = {0};
        const int code = reader->read(gpu, &sample);
        if (wg__nvml_code(code)->meaning == WG_ELOST)
            return wg__nvml_fail_gpu(gpu, err, *reader->call, code);
        if (sample.present != 0) {
            take_reader(gpu, i, &sample);
            continue;
        }
        for (int metric = 0; metric < WG_METRIC_COUNT; metric++) {
            if ((reader->metrics >> metric & 1u) == 0)
                continue;
            meters[metric].source = *reader->call;
            meters[metric].why_not = wg__nvml_why_not(gpu, *reader->call, code);
            meters[metric].remedy = wg__nvml_code(code)->remedy;
            if (meters[metric].why_not == NULL)
                return fail_memory(gpu, err);
        }
    }
    struct wg_sample sample = {0};
    gpu->has_throttle = wg__nvml_read_reasons(gpu, &sample) == NVML_OK;
    return WG_OK;
}

/* Resolution, period and window, as far as they are known. */
static void describe_meters(struct nvml_gpu *gpu)
{
    static const double resolutions[WG_METRIC_COUNT] = {
        [WG_METRIC_POWER_W] = 1e-3,
        [WG_METRIC_ENERGY_J] = 1e-3,
        [WG_METRIC_POWER_LIMIT_W] = 1e-3,
        [WG_METRIC_ENFORCED_POWER_LIMIT_W] = 1e-3,
        [WG_METRIC_CLOCK_HZ] = 1e6,
        [WG_METRIC_MEMORY_CLOCK_HZ] = 1e6,
        [WG_METRIC_TEMPERATURE_C] = 1,
        [WG_METRIC_UTILIZATION] = 0.01,
        [WG_METRIC_MEMORY_UTILIZATION] = 0.01,
    };
    static const enum wg_metric timed[] = {WG_METRIC_POWER_W, WG_METRIC_POWER_AVERAGE_W,
                                           WG_METRIC_ENERGY_J};
    struct wg_device_info *info = &gpu->base.info;
    for (size_t i = 0; i < WG_METRIC_COUNT; i++) {
        if (info->meters[i].is_present && info->meters[i].resolution == 0)
            info->meters[i].resolution = resolutions[i];
    }
    const unsigned branch = wg__sensor_driver_branch(info->driver);
    for (size_t i = 0; i < sizeof timed / sizeof timed[0]; i++) {
        struct wg_meter_info *meter = &info->meters[timed[i]];
        struct wg_sensor sensor;
        if (!meter->is_present)
            continue;
        const bool is_usage = meter->source == wg__nvml_names.power_usage;
        /* A field that answers is a field, however old the driver says that it is. */
        const bool is_found = is_usage
                                  ? wg__sensor_lookup_usage(info->architecture, branch, &sensor)
                                  : wg__sensor_lookup(info->architecture, 0, timed[i], &sensor);
        if (!is_found)
            continue;
        meter->update_period_s = sensor.update_period_s;
        meter->averaging_window_s = sensor.averaging_window_s;
    }
}

static enum wg_code probe_meters(struct nvml_gpu *gpu, struct wg_error *err)
{
    struct nvml_field_value values[CANDIDATES];
    ask_candidates(gpu, values);
    for (size_t i = 0; i < CANDIDATES; i++) {
        if (wg__nvml_code(values[i].result)->meaning == WG_ELOST)
            return wg__nvml_fail_gpu(gpu, err, candidates[i].source, values[i].result);
    }
    enum wg_code code = choose_fields(gpu, values, err);
    if (code == WG_OK)
        code = choose_readers(gpu, err);
    if (code == WG_OK)
        describe_meters(gpu);
    return code;
}

/* Ten times the largest limit: spikes of microseconds are below, nonsense is above. */
static void find_power_most(struct nvml_gpu *gpu)
{
    unsigned min_mw = 0;
    unsigned max_mw = 0;
    gpu->power_most_w = power_unlimited_w;
    if (NVML_CALL(gpu, limit_range, gpu->handle, &min_mw, &max_mw) == NVML_OK && max_mw > 0 &&
        max_mw * 1e-3 < power_unlimited_w / power_factor)
        gpu->power_most_w = power_factor * max_mw * 1e-3;
}

static enum wg_code probe(struct nvml_gpu *gpu, struct wg_error *err)
{
    if (gpu->is_on_bus && wg__nvml_pci_is_suspended(gpu->root, gpu->pci))
        return wg__fail(err, WG_ESTATE,
                        "%s: %s is suspended to save power, and not woken for being measured",
                        wg__nvml_name(gpu), gpu->pci);
    enum wg_code code = wg__nvml_get_handle(gpu, err);
    if (code == WG_OK)
        code = read_identity(gpu, err);
    if (code == WG_OK)
        code = read_mig(gpu, err);
    if (code != WG_OK)
        return code;
    find_power_most(gpu);
    code = probe_meters(gpu, err);
    return code == WG_OK ? wg__nvml_probe_knobs(gpu, err) : code;
}

enum wg_code wg__nvml_probe(struct wg_device *device, struct wg_error *err)
{
    struct nvml_gpu *gpu = wg__nvml_gpu(device);
    gpu->field_count = 0;
    gpu->readers = 0;
    gpu->has_throttle = false;
    for (size_t i = 0; i < WG_METRIC_COUNT; i++)
        device->info.meters[i] = (struct wg_meter_info){.source = "NVML"};
    for (size_t i = 0; i < WG_KNOB_COUNT; i++)
        device->info.knobs[i] = (struct wg_knob_info){.source = "NVML"};
    return probe(gpu, err);
}
