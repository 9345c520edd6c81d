/* SPDX-License-Identifier: MIT
 *
 * Reading the sizes, the kernel and the time of one measurement.
 *
 * Sizes are bounded so that no product of them overflows what counts thread blocks: the elements of
 * a result stay below 2^62.
 *
 * Threads: pure, any thread.
 */
#include "model/measurement_row.h"

#include <math.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "base/number.h"
#include "model/launch_dims.h"
#include "wave/gemm.h"
#include "wave/kernel.h"

static const double size_max = 2147483648.0;
/* Beyond these a unit or a column is wrong, and ratios would overflow. */
static const double time_least_s = 1e-9, time_most_s = 1e3;
static const double elements_max = 4611686018427387904.0; /* 2^62 */

enum { NONE = WG_MEASUREMENT_NO_COLUMN };

/* What the functions below share: a record and where its fields lie. */
struct row {
    const struct wg_csv *csv;
    const struct wg_measurement_columns *columns;
};

/* -- Fields -------------------------------------------------------------------------------- */

/* The text of a field; "" where there is no such column. */
static const char *text_of(const struct row *row, enum wg_measurement_key key)
{
    const int at = row->columns->at[key];
    return at == NONE ? "" : wg__csv_text(row->csv, (size_t)at);
}

/* A whole number, "3.0" too, from `least`; `*out` stays as it is where the field is missing or
 * empty. */
static enum wg_code whole(const struct row *row, enum wg_measurement_key key, double least,
                          uint64_t *out, struct wg_error *err)
{
    const char *text = text_of(row, key);
    double value = 0.0;
    if (*text == '\0')
        return WG_OK;
    if (!wg__parse_double(text, &value) || value < least || value > size_max ||
        value != floor(value))
        return wg__csv_fail(row->csv, (size_t)row->columns->at[key], err,
                            "'%.40s' is not a whole number from %.0f to 2^31", text, least);
    *out = (uint64_t)value;
    return WG_OK;
}

struct field {
    enum wg_measurement_key key;
    uint64_t *out;
    double least;
    bool is_needed;
};

static enum wg_code read_fields(const struct row *row, const struct field *fields, size_t count,
                                struct wg_error *err)
{
    for (size_t i = 0; i < count; i++) {
        const int at = row->columns->at[fields[i].key];
        if (fields[i].is_needed && *text_of(row, fields[i].key) == '\0')
            return wg__csv_fail(row->csv, (size_t)at, err, "is empty, expected a whole number");
        const enum wg_code code = whole(row, fields[i].key, fields[i].least, fields[i].out, err);
        if (code != WG_OK)
            return code;
    }
    return WG_OK;
}

#define READ_FIELDS(row, fields, err)                                                              \
    read_fields((row), (fields), sizeof(fields) / sizeof *(fields), (err))

static enum wg_code read_dtype(const struct row *row, const struct wg_measurements_opts *opts,
                               enum wg_dtype *out, struct wg_error *err)
{
    const char *text = text_of(row, WG_MEASUREMENT_DTYPE);
    if (*text == '\0' && opts->has_dtype) {
        *out = opts->dtype;
        return WG_OK;
    }
    struct wg_error cause;
    const int at = row->columns->at[WG_MEASUREMENT_DTYPE];
    if (wg__dtype_parse(text, out, &cause) != WG_OK)
        return wg__csv_fail(row->csv, (size_t)at, err, "%s", cause.text);
    return WG_OK;
}

static enum wg_code read_bias(const struct row *row, bool *out, struct wg_error *err)
{
    uint64_t value = 0;
    const enum wg_code code = whole(row, WG_MEASUREMENT_BIAS, 0.0, &value, err);
    *out = value != 0;
    return code;
}

/* -- What was multiplied ------------------------------------------------------------------- */

static enum wg_code read_gemm(const struct row *row, struct wg_gemm *gemm, struct wg_error *err)
{
    gemm->batch = 1;
    const struct field fields[] = {{WG_MEASUREMENT_GEMM_B, &gemm->batch, 1.0, false},
                                   {WG_MEASUREMENT_GEMM_M, &gemm->m, 1.0, true},
                                   {WG_MEASUREMENT_GEMM_N, &gemm->n, 1.0, true},
                                   {WG_MEASUREMENT_GEMM_K, &gemm->k, 1.0, true}};
    const enum wg_code code = READ_FIELDS(row, fields, err);
    if (code != WG_OK)
        return code;
    if ((double)gemm->batch * (double)gemm->m * (double)gemm->n > elements_max)
        return wg__csv_fail(row->csv, (size_t)row->columns->at[WG_MEASUREMENT_GEMM_M], err,
                            "B * m * n is above 2^62");
    return WG_OK;
}

static enum wg_code read_conv(const struct row *row, struct wg_conv *conv, struct wg_error *err)
{
    uint64_t stride = 1, pad = 0, dilation = 1;
    conv->groups = 1;
    const struct field first[] = {{WG_MEASUREMENT_CONV_N, &conv->n, 1.0, true},
                                  {WG_MEASUREMENT_CONV_C, &conv->c, 1.0, true},
                                  {WG_MEASUREMENT_CONV_K, &conv->filters, 1.0, true},
                                  {WG_MEASUREMENT_CONV_R, &conv->r, 1.0, true},
                                  {WG_MEASUREMENT_CONV_H, &conv->h, 1.0, true},
                                  {WG_MEASUREMENT_STRIDE, &stride, 1.0, false},
                                  {WG_MEASUREMENT_PAD, &pad, 0.0, false},
                                  {WG_MEASUREMENT_DILATION, &dilation, 1.0, false},
                                  {WG_MEASUREMENT_GROUPS, &conv->groups, 1.0, false}};
    enum wg_code code = READ_FIELDS(row, first, err);
    if (code != WG_OK)
        return code;
    conv->s = conv->r;
    conv->w = conv->h;
    conv->stride_h = conv->stride_w = stride;
    conv->pad_top = conv->pad_left = pad;
    conv->dilation_h = conv->dilation_w = dilation;
    const struct field second[] = {{WG_MEASUREMENT_CONV_S, &conv->s, 1.0, false},
                                   {WG_MEASUREMENT_CONV_W, &conv->w, 1.0, false},
                                   {WG_MEASUREMENT_STRIDE_H, &conv->stride_h, 1.0, false},
                                   {WG_MEASUREMENT_STRIDE_W, &conv->stride_w, 1.0, false},
                                   {WG_MEASUREMENT_PAD_H, &conv->pad_top, 0.0, false},
                                   {WG_MEASUREMENT_PAD_W, &conv->pad_left, 0.0, false},
                                   {WG_MEASUREMENT_DILATION_H, &conv->dilation_h, 1.0, false},
                                   {WG_MEASUREMENT_DILATION_W, &conv->dilation_w, 1.0, false}};
    code = READ_FIELDS(row, second, err);
    if (code != WG_OK)
        return code;
    conv->pad_bottom = conv->pad_top;
    conv->pad_right = conv->pad_left;
    const struct field third[] = {{WG_MEASUREMENT_PAD_BOTTOM, &conv->pad_bottom, 0.0, false},
                                  {WG_MEASUREMENT_PAD_RIGHT, &conv->pad_right, 0.0, false}};
    return READ_FIELDS(row, third, err);
}

static const struct {
    const char *word;
    enum wg_conv_pass pass;
} pass_words[] = {
    {"fwd", WG_CONV_FORWARD},         {"forward", WG_CONV_FORWARD},
    {"dgrad", WG_CONV_DGRAD},         {"bwd_data", WG_CONV_DGRAD},
    {"backward_data", WG_CONV_DGRAD}, {"wgrad", WG_CONV_WGRAD},
    {"bwd_filter", WG_CONV_WGRAD},    {"backward_filter", WG_CONV_WGRAD},
    {"bwd_weight", WG_CONV_WGRAD},    {"backward_weight", WG_CONV_WGRAD},
};

static bool find_pass(const char *word, enum wg_conv_pass *out)
{
    for (size_t i = 0; i < sizeof pass_words / sizeof *pass_words; i++) {
        if (strcasecmp(word, pass_words[i].word) == 0) {
            *out = pass_words[i].pass;
            return true;
        }
    }
    return false;
}

/* "conv", "conv2d": forward; "conv_dgrad", ...: as the word behind says. A word that is not known
 * is no forward pass by guess. */
static enum wg_code read_pass(const struct row *row, enum wg_conv_pass *out, struct wg_error *err)
{
    *out = WG_CONV_FORWARD;
    const char *pass = text_of(row, WG_MEASUREMENT_PASS);
    const char *op = text_of(row, WG_MEASUREMENT_OP);
    if (*pass != '\0') {
        if (find_pass(pass, out))
            return WG_OK;
        return wg__csv_fail(row->csv, (size_t)row->columns->at[WG_MEASUREMENT_PASS], err,
                            "'%.40s' is no pass, expected fwd, dgrad or wgrad", pass);
    }
    const char *behind = strchr(op, '_');
    if (*op == '\0' || strcasecmp(op, "conv") == 0 || strcasecmp(op, "conv2d") == 0 ||
        find_pass(op, out) || (behind != NULL && find_pass(behind + 1, out)))
        return WG_OK;
    return wg__csv_fail(row->csv, (size_t)row->columns->at[WG_MEASUREMENT_OP], err,
                        "'%.40s' is not known, expected conv, conv_fwd, conv_dgrad or conv_wgrad",
                        op);
}

static bool is_conv(const struct row *row)
{
    if (!row->columns->has_gemms || !row->columns->has_convs)
        return row->columns->has_convs;
    const char *op = text_of(row, WG_MEASUREMENT_OP);
    if (*op != '\0')
        return strncasecmp(op, "conv", 4) == 0;
    return *text_of(row, WG_MEASUREMENT_CONV_C) != '\0';
}

/* -- The kernel ---------------------------------------------------------------------------- */

static enum wg_code read_dims(const struct row *row, enum wg_measurement_key key, uint64_t out[3],
                              size_t least, struct wg_error *err)
{
    const char *text = text_of(row, key);
    size_t count = 0;
    if (wg__launch_dims_parse(text, out, &count) && count >= least)
        return WG_OK;
    return wg__csv_fail(row->csv, (size_t)row->columns->at[key], err, "'%.40s' is not %s", text,
                        least == 2 ? "a tile like 128x64" : "a grid like 9x32x1");
}

/* The grid; all 0 where none is told. */
static enum wg_code read_grid(const struct row *row, uint64_t grid[3], struct wg_error *err)
{
    if (*text_of(row, WG_MEASUREMENT_GRID) != '\0')
        return read_dims(row, WG_MEASUREMENT_GRID, grid, 1, err);
    if (*text_of(row, WG_MEASUREMENT_GX) == '\0')
        return WG_OK;
    grid[0] = grid[1] = grid[2] = 1;
    const struct field fields[] = {{WG_MEASUREMENT_GX, &grid[0], 0.0, true},
                                   {WG_MEASUREMENT_GY, &grid[1], 0.0, false},
                                   {WG_MEASUREMENT_GZ, &grid[2], 0.0, false}};
    return READ_FIELDS(row, fields, err);
}

/* A tile as a name has it: its two numbers, in what order is not said. */
static enum wg_code read_tile(const struct row *row, uint64_t tile[3], struct wg_error *err)
{
    if (*text_of(row, WG_MEASUREMENT_TILE) != '\0') {
        uint64_t dims[3];
        const enum wg_code code = read_dims(row, WG_MEASUREMENT_TILE, dims, 2, err);
        if (code == WG_OK)
            memcpy(tile, dims, sizeof dims);
        return code;
    }
    const struct field fields[] = {{WG_MEASUREMENT_TILE1, &tile[0], 0.0, false},
                                   {WG_MEASUREMENT_TILE2, &tile[1], 0.0, false}};
    return READ_FIELDS(row, fields, err);
}

/* How well a tile explains a grid: 0 not at all, 1 by split-K, 2 by the number of blocks, 3 by its
 * first two dimensions as well. Split-K explains GEMMs only: a Winograd convolution's z counts the
 * products of its transform. */
static int explains(const struct wg_gemm *gemm, uint64_t tile_m, uint64_t tile_n,
                    const uint64_t grid[3], bool x_is_n, bool is_conv_row)
{
    const uint64_t over_m = wg__tiles_over(gemm->m, tile_m),
                   over_n = wg__tiles_over(gemm->n, tile_n);
    const uint64_t x = x_is_n ? over_n : over_m, y = x_is_n ? over_m : over_n;
    const double tiles = (double)over_m * (double)over_n * (double)gemm->batch;
    const double blocks = (double)grid[0] * (double)grid[1] * (double)grid[2];
    const bool is_split = blocks > tiles && fmod(blocks, tiles) == 0.0 && !is_conv_row;
    if (grid[0] == x && grid[1] == y && (blocks == tiles || is_split))
        return 3;
    if (blocks == tiles)
        return 2;
    return is_split ? 1 : 0;
}

/* Takes a tile of unknown order; see measurements.h. */
static void place_tile(struct wg_kernel *kernel, const struct wg_gemm *gemm, bool is_conv_row,
                       const uint64_t tile[3], const uint64_t grid[3])
{
    bool first_is_m = true;
    if (tile[0] == 0 || tile[1] == 0)
        return;
    if (grid[0] != 0) {
        const int as_m = explains(gemm, tile[0], tile[1], grid, false, is_conv_row);
        const int as_n = explains(gemm, tile[1], tile[0], grid, true, is_conv_row);
        if (as_m == 0 && as_n == 0)
            return;
        first_is_m = as_m >= as_n;
    }
    kernel->tile_m = (unsigned)(first_is_m ? tile[0] : tile[1]);
    kernel->tile_n = (unsigned)(first_is_m ? tile[1] : tile[0]);
    if (tile[2] > 1)
        kernel->tile_k = (unsigned)tile[2];
}

/* Thread blocks that share a tile's k follow from the grid where they divide it. */
static void infer_split_k(struct wg_kernel *kernel, const struct wg_gemm *gemm, uint64_t blocks)
{
    kernel->split_k = 1;
    const uint64_t tiles = wg__kernel_blocks(kernel, gemm);
    if (tiles != 0 && blocks > tiles && blocks % tiles == 0 && blocks / tiles <= gemm->k)
        kernel->split_k = (unsigned)(blocks / tiles);
}

/* The columns that leave no doubt go over what name and grid said. */
static enum wg_code read_certain(const struct row *row, struct wg_kernel *kernel,
                                 struct wg_error *err)
{
    uint64_t tile_m = kernel->tile_m, tile_n = kernel->tile_n, tile_k = kernel->tile_k;
    uint64_t threads = kernel->threads, split_k = kernel->split_k;
    const struct field fields[] = {{WG_MEASUREMENT_TILE_M, &tile_m, 0.0, false},
                                   {WG_MEASUREMENT_TILE_N, &tile_n, 0.0, false},
                                   {WG_MEASUREMENT_TILE_K, &tile_k, 0.0, false},
                                   {WG_MEASUREMENT_THREADS, &threads, 0.0, false},
                                   {WG_MEASUREMENT_SPLIT_K, &split_k, 1.0, false}};
    const enum wg_code code = READ_FIELDS(row, fields, err);
    kernel->tile_m = (unsigned)tile_m;
    kernel->tile_n = (unsigned)tile_n;
    kernel->tile_k = (unsigned)tile_k;
    kernel->threads = (unsigned)threads;
    kernel->split_k = (unsigned)split_k;
    return code;
}

static enum wg_code read_kernel(const struct row *row, const struct wg_gemm *gemm,
                                struct wg_measured *out, struct wg_error *err)
{
    uint64_t grid[3] = {0, 0, 0}, tile[3] = {0, 0, 0};
    struct wg_kernel kernel = {.split_k = 1, .cluster_m = 1, .cluster_n = 1};
    struct wg_kernel named = kernel;
    if (read_grid(row, grid, err) != WG_OK || read_tile(row, tile, err) != WG_OK)
        return WG_EDATA;
    const double blocks = (double)grid[0] * (double)grid[1] * (double)grid[2];
    if (blocks > elements_max)
        return wg__csv_fail(
            row->csv,
            (size_t)
                row->columns->at[*text_of(row, WG_MEASUREMENT_GRID) != '\0' ? WG_MEASUREMENT_GRID
                                                                            : WG_MEASUREMENT_GX],
            err, "the grid has more than 2^62 thread blocks");
    out->blocks = grid[0] * grid[1] * grid[2];
    if (wg__kernel_parse(text_of(row, WG_MEASUREMENT_KERNEL), &named))
        kernel = named;
    else
        place_tile(&kernel, gemm, out->is_conv, tile, out->blocks != 0 ? grid : (uint64_t[3]){0});
    if (!out->is_conv && !kernel.is_persistent)
        infer_split_k(&kernel, gemm, out->blocks);
    out->kernel = kernel;
    return read_certain(row, &out->kernel, err);
}

/* -- A row --------------------------------------------------------------------------------- */

static enum wg_code read_product(const struct row *row, struct wg_measured *out,
                                 struct wg_error *err)
{
    if (!out->is_conv)
        return read_gemm(row, &out->gemm, err);
    enum wg_code code = read_conv(row, &out->conv, err);
    if (code == WG_OK)
        code = read_pass(row, &out->pass, err);
    if (code != WG_OK)
        return code;
    struct wg_error cause;
    if (wg__conv_gemm(&out->conv, out->pass, &out->gemm, &cause) != WG_OK)
        return wg__csv_fail(row->csv, (size_t)row->columns->at[WG_MEASUREMENT_CONV_C], err, "%s",
                            cause.text);
    return WG_OK;
}

enum wg_code wg__measurement_row(const struct wg_csv *csv,
                                 const struct wg_measurement_columns *columns,
                                 const struct wg_measurements_opts *opts, struct wg_measured *out,
                                 struct wg_error *err)
{
    const struct row row = {csv, columns};
    struct wg_measured measured = {0};
    enum wg_dtype dtype = WG_DTYPE_FP32;
    bool has_bias = false;
    measured.is_conv = is_conv(&row);
    enum wg_code code = read_dtype(&row, opts, &dtype, err);
    if (code == WG_OK)
        code = read_bias(&row, &has_bias, err);
    measured.gemm.dtype = measured.conv.dtype = dtype;
    measured.gemm.has_bias = measured.conv.has_bias = has_bias;
    if (code == WG_OK)
        code = read_product(&row, &measured, err);
    if (code == WG_OK)
        code = read_kernel(&row, &measured.gemm, &measured, err);
    if (code == WG_OK)
        *out = measured;
    return code;
}

enum wg_code wg__measurement_time(const struct wg_csv *csv, const struct wg_measurement_time *time,
                                  double *out_s, struct wg_error *err)
{
    static const char *const nothing[] = {"", "nan", "na", "n/a", "n/a*", "null", "none", "-"};
    const char *text = wg__csv_text(csv, time->column);
    for (size_t i = 0; i < sizeof nothing / sizeof *nothing; i++) {
        if (strcasecmp(text, nothing[i]) == 0) {
            *out_s = NAN;
            return WG_OK;
        }
    }
    double value = 0.0;
    const enum wg_code code = wg__csv_double(csv, time->column, &value, err);
    if (code != WG_OK)
        return code;
    const double time_s = value * time->unit_s;
    if (time_s < time_least_s || time_s > time_most_s)
        return wg__csv_fail(csv, time->column, err,
                            "'%.40s' is no time of a kernel, expected 1 ns to 1000 s", text);
    *out_s = time_s;
    return WG_OK;
}
