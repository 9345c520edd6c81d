/* SPDX-License-Identifier: MIT
 *
 * Finding columns by their names: as they are written first, in any case then.
 *
 * Threads: pure, any thread.
 */
#include "model/measurement_columns.h"

#include <string.h>
#include <strings.h>

#include "wave/gemm.h"

enum { ALIASES = 3, NONE = WG_MEASUREMENT_NO_COLUMN };

static const char *const names[WG_MEASUREMENT_KEY_COUNT][ALIASES] = {
#define X(key, ...) [WG_MEASUREMENT_##key] = {__VA_ARGS__},
    WG_MEASUREMENT_KEYS(X) WG_MEASUREMENT_SIZES(X)
#undef X
};

static const struct {
    const char *name;
    double unit_s;
} times[] = {
    {"ms", 1e-3},      {"us", 1e-6},         {"median_ms", 1e-3}, {"median_us", 1e-6},
    {"time_ms", 1e-3}, {"time_us", 1e-6},    {"time_s", 1.0},     {"latency_ms", 1e-3},
    {"mean_ms", 1e-3}, {"latency_us", 1e-6}, {"mean_us", 1e-6},   {"min_ms", 1e-3},
    {"min_us", 1e-6},
};

static const struct {
    const char *name;
    double unit_s;
    enum wg_conv_pass pass;
} pass_times[] = {
    {"fwd_ms", 1e-3, WG_CONV_FORWARD}, {"dgrad_ms", 1e-3, WG_CONV_DGRAD},
    {"wgrad_ms", 1e-3, WG_CONV_WGRAD}, {"fwd_us", 1e-6, WG_CONV_FORWARD},
    {"dgrad_us", 1e-6, WG_CONV_DGRAD}, {"wgrad_us", 1e-6, WG_CONV_WGRAD},
};

/* The column of this name; in another case where `any_case`, and only one is. */
static int find(const struct wg_csv *csv, const char *name, bool any_case)
{
    int found = NONE;
    size_t similar = 0;
    for (size_t i = 0; i < wg__csv_column_count(csv); i++) {
        const char *column = wg__csv_column_name(csv, i);
        if (strcmp(column, name) == 0)
            return (int)i;
        if (any_case && strcasecmp(column, name) == 0) {
            found = (int)i;
            similar++;
        }
    }
    return similar == 1 ? found : NONE;
}

static int find_key(const struct wg_csv *csv, enum wg_measurement_key key, bool any_case)
{
    int found = NONE;
    for (size_t i = 0; i < ALIASES && names[key][i] != NULL && found == NONE; i++)
        found = find(csv, names[key][i], any_case);
    return found;
}

static bool has_pass(const struct wg_measurement_columns *columns, enum wg_conv_pass pass)
{
    for (size_t i = 0; i < columns->time_count; i++)
        if (columns->times[i].pass == (int)pass)
            return true;
    return false;
}

static void find_times(struct wg_measurement_columns *out, const struct wg_csv *csv)
{
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        const int column = find(csv, times[i].name, true);
        if (column != NONE) {
            out->times[0] = (struct wg_measurement_time){(size_t)column, times[i].unit_s, -1};
            out->time_count = 1;
            return;
        }
    }
    for (size_t i = 0; i < sizeof pass_times / sizeof *pass_times; i++) {
        const int column = find(csv, pass_times[i].name, true);
        if (column != NONE && !has_pass(out, pass_times[i].pass))
            out->times[out->time_count++] = (struct wg_measurement_time){
                (size_t)column, pass_times[i].unit_s, (int)pass_times[i].pass};
    }
}

static enum wg_code need(const struct wg_measurement_columns *columns, enum wg_measurement_key key,
                         const char *name, const char *rows, struct wg_error *err)
{
    if (columns->at[key] != NONE)
        return WG_OK;
    return wg__fail(err, WG_EDATA, "%s:1: no column '%s', expected %s", name, names[key][0], rows);
}

static enum wg_code check(const struct wg_measurement_columns *columns, const char *name,
                          struct wg_error *err)
{
    static const char gemm_rows[] = "m, n, k of GEMMs";
    static const char conv_rows[] = "N, C, K, R, H of convolutions";
    static const enum wg_measurement_key gemm_keys[] = {WG_MEASUREMENT_GEMM_N,
                                                        WG_MEASUREMENT_GEMM_K};
    static const enum wg_measurement_key conv_keys[] = {
        WG_MEASUREMENT_CONV_N, WG_MEASUREMENT_CONV_K, WG_MEASUREMENT_CONV_R, WG_MEASUREMENT_CONV_H};
    if (!columns->has_gemms && !columns->has_convs)
        return wg__fail(err, WG_EDATA, "%s:1: neither a column m (%s) nor C and H (%s)", name,
                        gemm_rows, conv_rows);
    for (size_t i = 0; columns->has_gemms && i < sizeof gemm_keys / sizeof *gemm_keys; i++)
        if (need(columns, gemm_keys[i], name, gemm_rows, err) != WG_OK)
            return WG_EDATA;
    for (size_t i = 0; columns->has_convs && i < sizeof conv_keys / sizeof *conv_keys; i++)
        if (need(columns, conv_keys[i], name, conv_rows, err) != WG_OK)
            return WG_EDATA;
    if (columns->time_count == 0)
        return wg__fail(err, WG_EDATA,
                        "%s:1: no column with a time, expected ms, us, median_ms, time_ms, "
                        "latency_ms, mean_ms, min_ms, or fwd_ms, dgrad_ms, wgrad_ms",
                        name);
    if (columns->times[0].pass >= 0 && columns->has_gemms)
        return wg__fail(err, WG_EDATA,
                        "%s:1: fwd_ms, dgrad_ms, wgrad_ms time convolutions, but "
                        "there is a column m",
                        name);
    return WG_OK;
}

enum wg_code wg__measurement_columns_find(struct wg_measurement_columns *out,
                                          const struct wg_csv *csv, const char *name,
                                          struct wg_error *err)
{
    struct wg_measurement_columns columns = {.has_gemms = find(csv, "m", true) != NONE,
                                             .has_convs = find(csv, "C", true) != NONE &&
                                                          find(csv, "H", true) != NONE};
    const bool is_mixed = columns.has_gemms && columns.has_convs;
    for (int key = 0; key < WG_MEASUREMENT_KEY_COUNT; key++) {
        const bool is_size = key >= WG_MEASUREMENT_GEMM_B;
        const bool is_gemm = key <= WG_MEASUREMENT_GEMM_K;
        const bool is_meant = !is_size || (is_gemm ? columns.has_gemms : columns.has_convs);
        columns.at[key] =
            is_meant ? find_key(csv, (enum wg_measurement_key)key, !is_size || !is_mixed) : NONE;
    }
    find_times(&columns, csv);
    const enum wg_code code = check(&columns, name, err);
    if (code == WG_OK)
        *out = columns;
    return code;
}
