/* SPDX-License-Identifier: MIT
 *
 * Reading rows of the tables of GPUs and of compute capabilities: see gpu_row.h.
 */
#include "wave/gpu_row.h"

#include <math.h>
#include <string.h>

#include "base/number.h"

/* Of L2 beside one 64-bit channel of memory: 1,008 KiB (B200) to 16 MiB are whole ones. */
enum { L2_GRAIN_KIB = 16, CHANNEL_BITS = 64 };
/* Far beyond any GPU, so that no product overflows a double or an unsigned. */
enum { SMS_MAX = 4096, LANES_MAX = 4096, THREADS_MAX = 65536, REGISTERS_MAX = 1 << 24 };
static const double number_max = 1e9;
static const double contradiction = 0.025;

static enum wg_code read_text(const struct wg_csv *csv, const char *name, struct wg_arena *arena,
                              const char **out, struct wg_error *err)
{
    size_t column;
    enum wg_code code = wg__csv_column(csv, name, &column, err);
    if (code != WG_OK)
        return code;
    *out = wg__arena_strdup(arena, wg__csv_text(csv, column));
    return *out ? WG_OK : wg__fail(err, WG_ENOMEM, "out of memory");
}

static enum wg_code read_count(const struct wg_csv *csv, const char *name, unsigned most,
                               unsigned *out, struct wg_error *err)
{
    size_t column;
    enum wg_code code = wg__csv_column(csv, name, &column, err);
    return code == WG_OK ? wg__csv_uint(csv, column, 1, most, out, err) : code;
}

/* A number from `least` (0 may be asked for) to a billion; `absent` for an empty field. */
static enum wg_code read_number(const struct wg_csv *csv, const char *name, double absent,
                                double *out, struct wg_error *err)
{
    size_t column;
    enum wg_code code = wg__csv_column(csv, name, &column, err);
    if (code != WG_OK)
        return code;
    if (wg__csv_text(csv, column)[0] == '\0' && !isinf(absent)) {
        *out = absent;
        return WG_OK;
    }
    double value;
    code = wg__csv_double(csv, column, &value, err);
    if (code == WG_OK && !(value >= 0 && value <= number_max))
        code = wg__csv_fail(csv, column, err, "expected a number from 0 to 1e9, not %g", value);
    if (code == WG_OK && isinf(absent) && value == 0)
        code = wg__csv_fail(csv, column, err, "must be above 0");
    if (code == WG_OK)
        *out = value;
    return code;
}

/* A number above 0 that must be there. */
static enum wg_code read_positive(const struct wg_csv *csv, const char *name, double *out,
                                  struct wg_error *err)
{
    return read_number(csv, name, (double)INFINITY, out, err);
}

static enum wg_code read_capability(const struct wg_csv *csv, unsigned *major, unsigned *minor,
                                    struct wg_error *err)
{
    size_t column;
    enum wg_code code = wg__csv_column(csv, "cc", &column, err);
    if (code != WG_OK)
        return code;
    const char *text = wg__csv_text(csv, column), *dot = strchr(text, '.');
    char whole[8];
    uint64_t a, b;
    if (!dot || (size_t)(dot - text) >= sizeof whole || dot == text)
        return wg__csv_fail(csv, column, err, "expected a compute capability such as 8.6");
    memcpy(whole, text, (size_t)(dot - text));
    whole[dot - text] = '\0';
    if (!wg__parse_uint64(whole, &a) || !wg__parse_uint64(dot + 1, &b) || a > 99 || b > 9)
        return wg__csv_fail(csv, column, err, "expected a compute capability such as 8.6");
    *major = (unsigned)a;
    *minor = (unsigned)b;
    return WG_OK;
}

/* `told` (0: not told) beside what follows from the row's other numbers. */
static enum wg_code check(const struct wg_csv *csv, const char *name, double told, double follows,
                          struct wg_error *err)
{
    if (told <= 0 || fabs(follows / told - 1) <= contradiction)
        return WG_OK;
    size_t column;
    enum wg_code code = wg__csv_column(csv, name, &column, err);
    if (code != WG_OK)
        return code;
    return wg__csv_fail(csv, column, err, "is %g, but the row's other numbers give %.4g", told,
                        follows);
}

/* L2 lies in slices at the memory controllers, and a GPU sold with some of them off loses the
 * slices too. Tables forget that: they give the whole chip's L2, or that of a variant with more or
 * fewer controllers. Such a figure is no whole number of grains a channel. */
static enum wg_code check_l2(const struct wg_csv *csv, double l2_mib, double bus_bits,
                             struct wg_error *err)
{
    const double grain_kib = L2_GRAIN_KIB, channel_bits = CHANNEL_BITS;
    const double grains = l2_mib * 1024 / grain_kib / (bus_bits / channel_bits);
    if (fabs(grains - nearbyint(grains)) <= 1e-6 * grains)
        return WG_OK;
    size_t column;
    enum wg_code code = wg__csv_column(csv, "l2_mib", &column, err);
    if (code != WG_OK)
        return code;
    return wg__csv_fail(csv, column, err,
                        "is %g: %.5g KiB beside each %d bits of the %g-bit memory bus, expected a "
                        "multiple of %d KiB (the L2 of another variant of the chip?)",
                        l2_mib, grains * grain_kib, CHANNEL_BITS, bus_bits, L2_GRAIN_KIB);
}

/* In a table that names sources, each number has one and no source stands beside nothing. */
static enum wg_code check_sources(const struct wg_csv *csv, struct wg_error *err)
{
    static const struct {
        const char *number, *source;
    } pairs[] = {{"sms", "core_source"},
                 {"boost_mhz", "clock_source"},
                 {"memory_gb", "memory_source"},
                 {"l2_mib", "l2_source"},
                 {"tdp_w", "tdp_source"},
                 {"idle_w", "idle_source"},
                 {"fp16_per_clock", "tensor_source"}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        if (!wg__csv_has_column(csv, pairs[i].source))
            continue;
        size_t number, source;
        enum wg_code code = wg__csv_column(csv, pairs[i].number, &number, err);
        if (code == WG_OK)
            code = wg__csv_column(csv, pairs[i].source, &source, err);
        if (code != WG_OK)
            return code;
        if ((wg__csv_text(csv, number)[0] == '\0') != (wg__csv_text(csv, source)[0] == '\0'))
            return wg__csv_fail(csv, source, err, "expected where %s is from, and only then",
                                pairs[i].number);
    }
    return WG_OK;
}

static enum wg_code read_power(const struct wg_csv *csv, struct wg_gpu_spec *out,
                               struct wg_error *err)
{
    enum wg_code code = read_positive(csv, "tdp_w", &out->tdp_w, err);
    if (code == WG_OK)
        code = read_number(csv, "idle_w", (double)NAN, &out->idle_w, err);
    if (code != WG_OK || isnan(out->idle_w) || out->idle_w < out->tdp_w)
        return code;
    size_t column;
    code = wg__csv_column(csv, "idle_w", &column, err);
    return code == WG_OK ? wg__csv_fail(csv, column, err, "is %g, expected less than tdp_w (%g)",
                                        out->idle_w, out->tdp_w)
                         : code;
}

static enum wg_code read_memory(const struct wg_csv *csv, struct wg_gpu_spec *out,
                                struct wg_error *err)
{
    double bus_bits, gbit, bandwidth, memory, l2;
    enum wg_code code = read_positive(csv, "memory_bus_bits", &bus_bits, err);
    if (code == WG_OK)
        code = read_positive(csv, "memory_gbit_per_pin", &gbit, err);
    if (code == WG_OK)
        code = read_positive(csv, "memory_bandwidth_gb_per_s", &bandwidth, err);
    if (code == WG_OK)
        code = check(csv, "memory_bandwidth_gb_per_s", bandwidth, bus_bits / 8 * gbit, err);
    if (code == WG_OK)
        code = read_positive(csv, "memory_gb", &memory, err);
    if (code == WG_OK)
        code = read_positive(csv, "l2_mib", &l2, err);
    if (code == WG_OK)
        code = check_l2(csv, l2, bus_bits, err);
    if (code != WG_OK)
        return code;
    out->memory_bandwidth_bytes_per_s = bandwidth * 1e9;
    out->memory_bytes = memory * 1e9;
    out->l2_bytes = l2 * 0x1p20;
    return WG_OK;
}

static enum wg_code read_rates(const struct wg_csv *csv, struct wg_gpu_spec *out,
                               struct wg_error *err)
{
    static const struct {
        enum wg_dtype dtype;
        const char *column;
    } rates[] = {{WG_DTYPE_TF32, "tf32_per_clock"},
                 {WG_DTYPE_FP16, "fp16_per_clock"},
                 {WG_DTYPE_BF16, "bf16_per_clock"},
                 {WG_DTYPE_FP8, "fp8_per_clock"},
                 {WG_DTYPE_INT8, "int8_per_clock"}};
    double boost_mhz, tensor_mhz, told;
    enum wg_code code = read_positive(csv, "boost_mhz", &boost_mhz, err);
    if (code == WG_OK)
        code = read_number(csv, "tensor_mhz", boost_mhz, &tensor_mhz, err);
    if (code != WG_OK)
        return code;
    out->boost_clock_hz = boost_mhz * 1e6;
    out->dense_flops[WG_DTYPE_FP32] = 2.0 * out->sms * out->fp32_lanes_per_sm * boost_mhz * 1e6;
    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++) {
        double per_clock;
        code = read_number(csv, rates[i].column, 0, &per_clock, err);
        if (code != WG_OK)
            return code;
        out->dense_flops[rates[i].dtype] = out->sms * per_clock * tensor_mhz * 1e6;
    }
    code = read_number(csv, "fp32_tflops", 0, &told, err);
    if (code == WG_OK)
        code = check(csv, "fp32_tflops", told, out->dense_flops[WG_DTYPE_FP32] / 1e12, err);
    if (code == WG_OK)
        code = read_number(csv, "fp16_tflops", 0, &told, err);
    if (code == WG_OK)
        code = check(csv, "fp16_tflops", told, out->dense_flops[WG_DTYPE_FP16] / 1e12, err);
    return code;
}

enum wg_code wg__gpu_row_read(const struct wg_csv *csv, struct wg_arena *arena,
                              struct wg_gpu_spec *out, const char **aliases_out,
                              struct wg_error *err)
{
    struct wg_gpu_spec spec = {0};
    const char *aliases;
    enum wg_code code = read_text(csv, "id", arena, &spec.id, err);
    if (code == WG_OK)
        code = read_text(csv, "name", arena, &spec.name, err);
    if (code == WG_OK)
        code = read_text(csv, "arch", arena, &spec.arch, err);
    if (code == WG_OK)
        code = read_text(csv, "aliases", arena, &aliases, err);
    if (code == WG_OK)
        code = read_capability(csv, &spec.cc_major, &spec.cc_minor, err);
    if (code == WG_OK)
        code = read_count(csv, "sms", SMS_MAX, &spec.sms, err);
    if (code == WG_OK)
        code = read_count(csv, "fp32_lanes_per_sm", LANES_MAX, &spec.fp32_lanes_per_sm, err);
    if (code == WG_OK)
        code = read_memory(csv, &spec, err);
    if (code == WG_OK)
        code = read_power(csv, &spec, err);
    if (code == WG_OK)
        code = read_rates(csv, &spec, err);
    if (code == WG_OK)
        code = check_sources(csv, err);
    if (code != WG_OK)
        return code;
    *out = spec;
    *aliases_out = aliases;
    return WG_OK;
}

enum wg_code wg__capability_row_read(const struct wg_csv *csv, struct wg_capability *out,
                                     struct wg_error *err)
{
    struct wg_capability capability;
    double of_sm, of_block;
    enum wg_code code = read_capability(csv, &capability.cc_major, &capability.cc_minor, err);
    if (code == WG_OK)
        code =
            read_count(csv, "max_threads_per_sm", THREADS_MAX, &capability.max_threads_per_sm, err);
    if (code == WG_OK)
        code =
            read_count(csv, "max_blocks_per_sm", THREADS_MAX, &capability.max_blocks_per_sm, err);
    if (code == WG_OK)
        code =
            read_count(csv, "registers_per_sm", REGISTERS_MAX, &capability.registers_per_sm, err);
    if (code == WG_OK)
        code = read_positive(csv, "shared_memory_per_sm_kib", &of_sm, err);
    if (code == WG_OK)
        code = read_positive(csv, "max_shared_memory_per_block_kib", &of_block, err);
    if (code != WG_OK)
        return code;
    capability.shared_memory_per_sm_bytes = of_sm * 1024;
    capability.max_shared_memory_per_block_bytes = of_block * 1024;
    *out = capability;
    return WG_OK;
}
