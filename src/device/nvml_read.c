/* SPDX-License-Identifier: MIT
 *
 * One look at a GPU: one batch of fields, then the few calls that the caller asked for.
 *
 * NVML's calls queue on one lock of the driver and disturb the work on the GPU, so a look costs one
 * nvmlDeviceGetFieldValues for everything that comes as a field, plus one call each for clocks,
 * temperature, utilisation and memory, and only where `wanted` says so. The throttle reasons are
 * read when any of clock, throttled times or power limits is wanted.
 *
 * Units of the driver (mW, mJ, MHz, percent, ns) end here. The driver's own time stamp is of the
 * wall clock, which may be set at any moment, so it is ignored: t_ns is the middle of the call on
 * CLOCK_MONOTONIC, known to half of its length.
 *
 * A number is taken only if it can be one: drivers answer "blank" as 0xFFFFFFFF, as the largest
 * integers, or as watts that no cable carries.
 *
 * Owns: nothing; allocates nothing.    Threads: one at a time per GPU.
 */
#include <math.h>

#include "base/clock.h"
#include "device/nvml.h"

#define BIT(metric) (1u << WG_METRIC_##metric)

/* DCGM's and NVML's blanks are the sixteen largest signed numbers; -1 is "not available". */
#define BLANK32 0x7FFFFFF0u
#define BLANK64 0x7FFFFFFFFFFFFFF0u

/* -- Numbers ---------------------------------------------------------------------------------- */

static bool from_u32(uint32_t raw, double *out)
{
    *out = raw;
    return raw < BLANK32; /* above are blanks, -1, and what was negative */
}

static bool from_u64(uint64_t raw, double *out)
{
    *out = (double)raw;
    return raw < BLANK64;
}

static bool from_i64(int64_t raw, double *out)
{
    return raw >= 0 && from_u64((uint64_t)raw, out);
}

static bool get_number(const struct nvml_field_value *value, double *out)
{
    switch (value->value_type) {
    case NVML_TYPE_DOUBLE:
        *out = value->value.as_double;
        return isfinite(*out) && *out >= 0;
    case NVML_TYPE_UINT:
        return from_u32(value->value.as_uint, out);
    case NVML_TYPE_ULONG:
        return from_u64(value->value.as_ulong, out);
    case NVML_TYPE_ULONG_LONG:
        return from_u64(value->value.as_ull, out);
    case NVML_TYPE_LONG_LONG:
        return from_i64(value->value.as_ll, out);
    case NVML_TYPE_INT:
        return value->value.as_int >= 0 && from_u32((uint32_t)value->value.as_int, out);
    case NVML_TYPE_USHORT:
        *out = value->value.as_ushort;
        return value->value.as_ushort != UINT16_MAX;
    default:
        return false;
    }
}

static bool is_power(enum wg_metric metric)
{
    const uint32_t powers = BIT(POWER_W) | BIT(POWER_AVERAGE_W) | BIT(MEMORY_POWER_W) |
                            BIT(MODULE_POWER_W) | BIT(POWER_LIMIT_W) | BIT(ENFORCED_POWER_LIMIT_W);
    return (powers >> metric & 1u) != 0;
}

bool wg__nvml_field_number(const struct nvml_gpu *gpu, const struct nvml_field_plan *plan,
                           const struct nvml_field_value *value, double *out)
{
    double number = 0;
    if (value->result != NVML_OK || !get_number(value, &number))
        return false;
    number *= plan->scale;
    if (is_power(plan->metric) && number > gpu->power_most_w)
        return false;
    *out = number;
    return true;
}

/* -- Calls of their own -------------------------------------------------------------------------
 */

/* A number that fails its check counts as no data. */
static int set_if(bool is_good, struct wg_sample *out, enum wg_metric metric, double value)
{
    if (!is_good)
        return NVML_E_NO_DATA;
    wg__sample_set(out, metric, value);
    return NVML_OK;
}

static int set_milliwatts(const struct nvml_gpu *gpu, int code, unsigned raw, enum wg_metric metric,
                          struct wg_sample *out)
{
    double milliwatts = 0;
    if (code != NVML_OK)
        return code;
    const bool is_good = from_u32(raw, &milliwatts) && milliwatts * 1e-3 <= gpu->power_most_w;
    return set_if(is_good, out, metric, milliwatts * 1e-3);
}

static int read_usage(struct nvml_gpu *gpu, struct wg_sample *out)
{
    unsigned raw = 0;
    const int code = NVML_CALL(gpu, power_usage, gpu->handle, &raw);
    return set_milliwatts(gpu, code, raw, WG_METRIC_POWER_W, out);
}

static int read_energy(struct nvml_gpu *gpu, struct wg_sample *out)
{
    unsigned long long raw = 0;
    const int code = NVML_CALL(gpu, energy, gpu->handle, &raw);
    double millijoules = 0;
    if (code != NVML_OK)
        return code;
    const bool is_good = from_u64(raw, &millijoules);
    return set_if(is_good, out, WG_METRIC_ENERGY_J, millijoules * 1e-3);
}

static int read_limit(struct nvml_gpu *gpu, struct wg_sample *out)
{
    unsigned raw = 0;
    const int code = NVML_CALL(gpu, limit, gpu->handle, &raw);
    return set_milliwatts(gpu, code, raw, WG_METRIC_POWER_LIMIT_W, out);
}

static int read_enforced_limit(struct nvml_gpu *gpu, struct wg_sample *out)
{
    unsigned raw = 0;
    const int code = NVML_CALL(gpu, enforced_limit, gpu->handle, &raw);
    return set_milliwatts(gpu, code, raw, WG_METRIC_ENFORCED_POWER_LIMIT_W, out);
}

static int read_one_clock(struct nvml_gpu *gpu, int clock, enum wg_metric metric,
                          struct wg_sample *out)
{
    enum { MHZ_MOST = 20000 };
    unsigned mhz = 0;
    const int code = NVML_CALL(gpu, clock, gpu->handle, clock, &mhz);
    return code != NVML_OK ? code : set_if(mhz <= MHZ_MOST, out, metric, mhz * 1e6);
}

static int read_clock(struct nvml_gpu *gpu, struct wg_sample *out)
{
    return read_one_clock(gpu, NVML_CLK_SM, WG_METRIC_CLOCK_HZ, out);
}

static int read_memory_clock(struct nvml_gpu *gpu, struct wg_sample *out)
{
    return read_one_clock(gpu, NVML_CLK_MEMORY, WG_METRIC_MEMORY_CLOCK_HZ, out);
}

static int set_temperature(int celsius, struct wg_sample *out)
{
    return set_if(celsius > -50 && celsius < 200, out, WG_METRIC_TEMPERATURE_C, celsius);
}

static int read_temperature_v(struct nvml_gpu *gpu, struct wg_sample *out)
{
    struct nvml_temperature raw = {.version = NVML_VERSION_WORD(struct nvml_temperature, 1),
                                   .sensor = NVML_TEMPERATURE_DIE};
    const int code = NVML_CALL(gpu, temperature_v, gpu->handle, &raw);
    return code != NVML_OK ? code : set_temperature(raw.temperature_c, out);
}

static int read_temperature(struct nvml_gpu *gpu, struct wg_sample *out)
{
    unsigned raw = 0;
    const int code = NVML_CALL(gpu, temperature, gpu->handle, NVML_TEMPERATURE_DIE, &raw);
    return code != NVML_OK ? code : set_temperature((int)raw, out);
}

static int read_utilization(struct nvml_gpu *gpu, struct wg_sample *out)
{
    struct nvml_utilization raw = {0};
    const int code = NVML_CALL(gpu, utilization, gpu->handle, &raw);
    if (code != NVML_OK)
        return code;
    if (raw.memory_percent <= 100)
        wg__sample_set(out, WG_METRIC_MEMORY_UTILIZATION, raw.memory_percent / 100.0);
    return set_if(raw.gpu_percent <= 100, out, WG_METRIC_UTILIZATION, raw.gpu_percent / 100.0);
}

static int set_memory(const struct nvml_gpu *gpu, unsigned long long used, struct wg_sample *out)
{
    double bytes = 0;
    const bool is_good =
        from_u64(used, &bytes) && (gpu->memory_most <= 0 || bytes <= gpu->memory_most);
    return set_if(is_good, out, WG_METRIC_MEMORY_USED_BYTES, bytes);
}

static int read_memory_v2(struct nvml_gpu *gpu, struct wg_sample *out)
{
    struct nvml_memory_v2 raw = {.version = NVML_VERSION_WORD(struct nvml_memory_v2, 2)};
    const int code = NVML_CALL(gpu, memory_v2, gpu->handle, &raw);
    return code != NVML_OK ? code : set_memory(gpu, raw.used, out);
}

static int read_memory(struct nvml_gpu *gpu, struct wg_sample *out)
{
    struct nvml_memory raw = {0};
    const int code = NVML_CALL(gpu, memory, gpu->handle, &raw);
    return code != NVML_OK ? code : set_memory(gpu, raw.used, out);
}

int wg__nvml_read_reasons(struct nvml_gpu *gpu, struct wg_sample *out)
{
    /* NVML's bits are in the order of ours, so no table is needed: */
    _Static_assert(+NVML_REASON_IDLE == +WG_THROTTLE_IDLE &&
                       +NVML_REASON_POWER_LIMIT == +WG_THROTTLE_POWER_LIMIT &&
                       +NVML_REASON_HW_THERMAL == +WG_THROTTLE_HARDWARE_THERMAL &&
                       +NVML_REASON_DISPLAY == +WG_THROTTLE_DISPLAY,
                   "the bits of enum wg_throttle are NVML's");
    enum { KNOWN = 0x1FF };
    unsigned long long raw = 0;
    const int code = NVML_CALL(gpu, reasons, gpu->handle, &raw);
    if (code != NVML_OK)
        return code;
    out->has_throttle = true;
    out->throttle = (uint32_t)(raw & KNOWN);
    return NVML_OK;
}

/* Of two readers of one metric, the first that answers the probe is used. */
const struct nvml_reader wg__nvml_readers[NVML_READERS] = {
    {BIT(POWER_W), &wg__nvml_names.power_usage, read_usage},
    {BIT(ENERGY_J), &wg__nvml_names.energy, read_energy},
    {BIT(POWER_LIMIT_W), &wg__nvml_names.limit, read_limit},
    {BIT(ENFORCED_POWER_LIMIT_W), &wg__nvml_names.enforced_limit, read_enforced_limit},
    {BIT(CLOCK_HZ), &wg__nvml_names.clock, read_clock},
    {BIT(MEMORY_CLOCK_HZ), &wg__nvml_names.clock, read_memory_clock},
    {BIT(TEMPERATURE_C), &wg__nvml_names.temperature_v, read_temperature_v},
    {BIT(TEMPERATURE_C), &wg__nvml_names.temperature, read_temperature},
    {BIT(UTILIZATION) | BIT(MEMORY_UTILIZATION), &wg__nvml_names.utilization, read_utilization},
    {BIT(MEMORY_USED_BYTES), &wg__nvml_names.memory_v2, read_memory_v2},
    {BIT(MEMORY_USED_BYTES), &wg__nvml_names.memory, read_memory},
};

/* -- A look -------------------------------------------------------------------------------------
 */

/* What failed first, for the case that nothing succeeds. */
struct outcome {
    const char *call;
    int code;
    bool is_lost;
};

static void note_code(struct outcome *outcome, const char *call, int code)
{
    if (code == NVML_OK)
        return;
    const bool is_lost = wg__nvml_code(code)->meaning == WG_ELOST;
    if (outcome->call == NULL || (is_lost && !outcome->is_lost)) {
        outcome->call = call;
        outcome->code = code;
    }
    outcome->is_lost = outcome->is_lost || is_lost;
}

static void set_time(struct wg_sample *out, uint64_t begin_ns, uint64_t end_ns)
{
    out->span_ns = end_ns - begin_ns;
    out->t_ns = begin_ns + out->span_ns / 2;
}

static void read_fields(struct nvml_gpu *gpu, uint32_t wanted, struct wg_sample *out,
                        struct outcome *outcome)
{
    struct nvml_field_value values[NVML_FIELDS_MAX] = {0};
    const struct nvml_field_plan *plans[NVML_FIELDS_MAX];
    int count = 0;
    for (size_t i = 0; i < gpu->field_count; i++) {
        const struct nvml_field_plan *plan = &gpu->fields[i];
        if ((wanted >> plan->metric & 1u) == 0)
            continue;
        values[count].field_id = plan->field;
        values[count].scope_id = plan->scope;
        values[count].result = NVML_E_NO_DATA; /* until the driver says better */
        plans[count++] = plan;
    }
    if (count == 0)
        return;
    const uint64_t begin_ns = wg__clock_ns();
    const int code = NVML_CALL(gpu, fields, gpu->handle, count, values);
    set_time(out, begin_ns, wg__clock_ns());
    note_code(outcome, wg__nvml_names.fields, code);
    for (int i = 0; code == NVML_OK && i < count; i++) {
        double number = 0;
        if (wg__nvml_field_number(gpu, plans[i], &values[i], &number))
            wg__sample_set(out, plans[i]->metric, number);
        else
            note_code(outcome, wg__nvml_names.fields,
                      values[i].result != NVML_OK ? values[i].result : NVML_E_NO_DATA);
    }
}

static void read_calls(struct nvml_gpu *gpu, uint32_t wanted, struct wg_sample *out,
                       struct outcome *outcome)
{
    for (size_t i = 0; i < NVML_READERS && !outcome->is_lost; i++) {
        const struct nvml_reader *reader = &wg__nvml_readers[i];
        if ((gpu->readers >> i & 1u) == 0 || (reader->metrics & wanted) == 0)
            continue;
        const bool is_timed = (reader->metrics & (BIT(POWER_W) | BIT(ENERGY_J))) != 0;
        const uint64_t begin_ns = wg__clock_ns();
        note_code(outcome, *reader->call, reader->read(gpu, out));
        if (is_timed && out->t_ns == 0)
            set_time(out, begin_ns, wg__clock_ns());
    }
    const uint32_t about_throttling = BIT(CLOCK_HZ) | BIT(THROTTLED_POWER_S) |
                                      BIT(THROTTLED_THERMAL_S) | BIT(ENFORCED_POWER_LIMIT_W);
    if (gpu->has_throttle && (wanted & about_throttling) != 0 && !outcome->is_lost)
        note_code(outcome, wg__nvml_names.reasons, wg__nvml_read_reasons(gpu, out));
}

enum wg_code wg__nvml_read(struct wg_device *device, uint32_t wanted, struct wg_sample *out,
                           struct wg_error *err)
{
    struct nvml_gpu *gpu = wg__nvml_gpu(device);
    enum wg_code code = wg__nvml_retry_before(gpu, err);
    if (code == WG_OK)
        code = wg__nvml_get_handle(gpu, err);
    if (code != WG_OK)
        return code;
    struct outcome outcome = {0};
    struct wg_sample sample = {0};
    const uint64_t begin_ns = wg__clock_ns();
    read_fields(gpu, wanted, &sample, &outcome);
    read_calls(gpu, wanted, &sample, &outcome);
    if (sample.t_ns == 0)
        set_time(&sample, begin_ns, wg__clock_ns());
    const bool is_failed =
        outcome.is_lost || (outcome.call != NULL && sample.present == 0 && !sample.has_throttle);
    const int result = is_failed ? outcome.code : NVML_OK;
    wg__nvml_retry_after(gpu, result);
    if (is_failed)
        return wg__nvml_fail_gpu(gpu, err, outcome.call, result);
    /* One call may give more than was wanted. */
    sample.present &= wanted;
    *out = sample;
    return WG_OK;
}
