/* SPDX-License-Identifier: MIT
 *
 * Writes a calibration as JSON (schema "wattgov.wave.calibration/1").
 *
 * Tiles and points are arrays, not objects, to keep a document with thousands of points small:
 *
 *     tile
 *         tile_m, tile_n, tile_k, threads, cluster_m, cluster_n, persistent (0 or 1),
 *         winograd (0 or 1), slices, efficiency, fill, prologue_k, overlap, step,
 *         start_s
 *     option
 *         index of a tile, split_k
 *     node
 *         feature, threshold, index of the lower child; a leaf: its options as bits
 *     point
 *         batch, m, n, k, bytes, time_s
 *
 * Threads: one thread at a time.
 */
#include <math.h>

#include "base/json.h"
#include "wave/calibration_set.h"
#include "wave/forest_json.h"

/* To six digits: more are noise of the fit. */
static double rounded(double value)
{
    if (!(fabs(value) > 0.0) || !isfinite(value))
        return value;
    double unit = pow(10.0, 5.0 - floor(log10(fabs(value))));
    return round(value * unit) / unit;
}

static void write_error(struct wg_json *json, const char *key, const struct wg_kernel_error *error)
{
    wg__json_key(json, key);
    wg__json_object(json);
    wg__json_member_double(json, "mape", rounded(error->mape));
    wg__json_member_double(json, "low", rounded(error->low));
    wg__json_member_double(json, "high", rounded(error->high));
    wg__json_member_double(json, "rows", error->rows);
    wg__json_close(json);
}

static void write_tile(struct wg_json *json, const struct wg_tile_params *tile)
{
    const struct wg_kernel *kernel = &tile->kernel;
    const unsigned whole[] = {kernel->tile_m,        kernel->tile_n,    kernel->tile_k,
                              kernel->threads,       kernel->cluster_m, kernel->cluster_n,
                              kernel->is_persistent, tile->is_winograd, kernel->slices};
    const double real[] = {tile->efficiency, tile->fill, tile->prologue_k,
                           tile->overlap,    tile->step, tile->start_s};
    wg__json_array(json);
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
        wg__json_uint(json, whole[i]);
    for (size_t i = 0; i < sizeof real / sizeof *real; i++)
        wg__json_double(json, rounded(real[i]));
    wg__json_close(json);
}

static void write_tree(struct wg_json *json, const struct wg_kernel_params *params)
{
    wg__json_key(json, "options");
    wg__json_array(json);
    for (size_t i = 0; i < params->option_count; i++) {
        wg__json_array(json);
        wg__json_uint(json, params->options[i].tile);
        wg__json_uint(json, params->options[i].split_k);
        wg__json_close(json);
    }
    wg__json_close(json);
    wg__json_key(json, "tree");
    wg__json_array(json);
    for (size_t i = 0; i < params->node_count; i++) {
        const struct wg_tree_node *node = &params->nodes[i];
        wg__json_array(json);
        if (node->options != 0) {
            wg__json_uint(json, node->options);
        } else {
            wg__json_uint(json, node->feature);
            wg__json_double(json, rounded(node->threshold));
            wg__json_uint(json, node->below);
        }
        wg__json_close(json);
    }
    wg__json_close(json);
}

static void write_params(struct wg_json *json, const struct wg_kernel_params *params)
{
    wg__json_member_double(json, "flops_share", rounded(params->flops_share));
    wg__json_member_double(json, "bandwidth_share", rounded(params->bandwidth_share));
    wg__json_member_double(json, "floor_s", rounded(params->floor_s));
    wg__json_member_double(json, "start_s", rounded(params->start_s));
    wg__json_member_double(json, "split_s", rounded(params->split_s));
    wg__json_member_double(json, "norm", rounded(params->norm));
    wg__json_member_double(json, "split_traffic", rounded(params->split_traffic));
    wg__json_member_double(json, "long_k", rounded(params->long_k));
    wg__json_member_double(json, "long_power", rounded(params->long_power));
    wg__json_member_double(json, "long_cost", rounded(params->long_cost));
    wg__json_member_double(json, "reread", rounded(params->reread));
    wg__json_member_double(json, "straddle", rounded(params->straddle));
    wg__json_member_double(json, "l2_share", rounded(params->l2_share));
    wg__json_member_double(json, "hot_s", rounded(params->hot_s));
    wg__json_member_double(json, "hot_cost", rounded(params->hot_cost));
    wg__json_key(json, "splits");
    wg__json_array(json);
    for (size_t i = 0; i < params->split_count; i++)
        wg__json_uint(json, params->splits[i]);
    wg__json_close(json);
    wg__json_key(json, "tiles");
    wg__json_array(json);
    for (size_t i = 0; i < params->tile_count; i++)
        write_tile(json, &params->tiles[i]);
    wg__json_close(json);
    write_tree(json, params);
    write_error(json, "known", &params->known);
    write_error(json, "chosen", &params->chosen);
}

static void write_points(struct wg_json *json, const struct wg_calibrated *entry)
{
    wg__json_key(json, "points");
    wg__json_array(json);
    for (size_t i = 0; i < entry->point_count; i++) {
        const struct wg_point *point = &entry->points[i];
        wg__json_array(json);
        wg__json_uint(json, point->batch);
        wg__json_uint(json, point->m);
        wg__json_uint(json, point->n);
        wg__json_uint(json, point->k);
        wg__json_double(json, point->bytes);
        wg__json_double(json, point->time_s);
        wg__json_close(json);
    }
    wg__json_close(json);
}

void wg__calibration_write(const struct wg_calibration *calibration, struct wg_buffer *out)
{
    struct wg_json json;
    wg__json_init(&json, out);
    wg__json_object(&json);
    wg__json_member_string(&json, "schema", WG_CALIBRATION_SCHEMA);
    wg__json_key(&json, "entries");
    wg__json_array(&json);
    for (size_t i = 0; i < calibration->count; i++) {
        const struct wg_calibrated *entry = &calibration->entries[i];
        wg__json_object(&json);
        wg__json_member_string(&json, "gpu", entry->gpu);
        wg__json_member_string(&json, "arch", entry->arch);
        wg__json_member_string(&json, "dtype", wg__dtype_name(entry->dtype));
        wg__json_member_string(&json, "op", wg__op_class_name(entry->op));
        wg__json_member_double(&json, "dense_flops", entry->dense_flops);
        wg__json_member_double(&json, "memory_bandwidth_bytes_per_s",
                               entry->memory_bandwidth_bytes_per_s);
        wg__json_member_double(&json, "tdp_w", entry->tdp_w);
        write_params(&json, &entry->params);
        write_points(&json, entry);
        if (entry->correction != NULL) {
            wg__json_key(&json, "correction");
            wg__forest_write(&json, entry->correction);
        }
        wg__json_close(&json);
    }
    wg__json_close(&json);
    wg__json_close(&json);
}
