/* SPDX-License-Identifier: MIT
 *
 * A file of measurements by GPU, operator and type; see wave_import.h.
 */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "cli/table.h"
#include "cli/wave_import.h"

enum { GROUPS_FIRST = 16 };

static const char *const passes[WG_CONV_PASS_COUNT] = {"forward", "dgrad", "wgrad"};

/* Equal names are one pointer in measurements. */
static bool is_of(const struct wg_wave_import_group *group, const struct wg_measured *row)
{
    return group->gpu == row->gpu && group->op == row->op && group->dtype == row->gemm.dtype &&
           group->is_conv == row->is_conv && group->pass == row->pass;
}

/* Its index; -1: no memory. Rows come in runs, so the last one is looked at first. */
static ptrdiff_t group_of(struct wg_wave_import_measured *measured, const struct wg_measured *row,
                          size_t last)
{
    if (last < measured->count && is_of(&measured->groups[last], row))
        return (ptrdiff_t)last;
    for (size_t i = 0; i < measured->count; i++)
        if (is_of(&measured->groups[i], row))
            return (ptrdiff_t)i;
    if (measured->count == measured->capacity) {
        const size_t capacity = measured->capacity == 0 ? GROUPS_FIRST : 2 * measured->capacity;
        struct wg_wave_import_group *groups =
            wg__realloc_array(measured->groups, capacity, sizeof *groups);
        if (groups == NULL)
            return -1;
        measured->groups = groups;
        measured->capacity = capacity;
    }
    measured->groups[measured->count] = (struct wg_wave_import_group){.gpu = row->gpu,
                                                                      .op = row->op,
                                                                      .dtype = row->gemm.dtype,
                                                                      .is_conv = row->is_conv,
                                                                      .pass = row->pass,
                                                                      .least_s = row->time_s};
    return (ptrdiff_t)measured->count++;
}

static void add_row(struct wg_wave_import_group *group, const struct wg_measured *row)
{
    const double flops = row->is_conv ? wg__conv_flops(&row->conv) : wg__gemm_flops(&row->gemm);
    group->rows++;
    group->tiles += row->kernel.tile_m != 0;
    group->grids += row->blocks != 0;
    group->least_s = fmin(group->least_s, row->time_s);
    group->most_s = fmax(group->most_s, row->time_s);
    group->best_flops_per_s = fmax(group->best_flops_per_s, flops / row->time_s);
}

enum wg_code wg__wave_import_measured(struct wg_wave_import_measured *out, const char *path,
                                      const struct wg_measurements_opts *opts, struct wg_error *err)
{
    struct wg_wave_import_measured measured = {.count = 0};
    const enum wg_code code = wg__measurements_read(&measured.measurements, path, opts, err);
    if (code != WG_OK)
        return code;
    ptrdiff_t at = 0;
    for (size_t i = 0; i < measured.measurements.count; i++) {
        const struct wg_measured *row = &measured.measurements.rows[i];
        at = group_of(&measured, row, (size_t)at);
        if (at < 0) {
            wg__wave_import_measured_fini(&measured);
            return wg__fail(err, WG_ENOMEM, "%s: out of memory", path);
        }
        add_row(&measured.groups[at], row);
    }
    *out = measured;
    return WG_OK;
}

void wg__wave_import_measured_fini(struct wg_wave_import_measured *measured)
{
    wg__measurements_fini(&measured->measurements);
    wg__free(measured->groups);
    measured->groups = NULL;
    measured->count = measured->capacity = 0;
}

/* -- Writing ------------------------------------------------------------------------------- */

void wg__wave_import_measured_text(const struct wg_wave_import_measured *measured, const char *name,
                                   bool with_color, struct wg_buffer *out)
{
    static const struct wg_table_column columns[] = {
        {"GPU", WG_ALIGN_LEFT},      {"op", WG_ALIGN_LEFT},     {"type", WG_ALIGN_LEFT},
        {"rows", WG_ALIGN_RIGHT},    {"tiles", WG_ALIGN_RIGHT}, {"grids", WG_ALIGN_RIGHT},
        {"ms from", WG_ALIGN_RIGHT}, {"to", WG_ALIGN_RIGHT},    {"best TFLOP/s", WG_ALIGN_RIGHT}};
    const char *slash = strrchr(name, '/');
    wg__buffer_printf(out, "%s: measurements, %zu", slash != NULL ? slash + 1 : name,
                      measured->measurements.count);
    if (measured->measurements.unmeasured != 0)
        wg__buffer_printf(out, " (and %zu without a time)", measured->measurements.unmeasured);
    wg__buffer_puts(out, "\n\n");
    struct wg_table table;
    wg__table_init(&table, columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < measured->count; i++) {
        const struct wg_wave_import_group *group = &measured->groups[i];
        const char *op = group->op != NULL ? group->op : group->is_conv ? "conv" : "-";
        wg__table_cell(&table, "%s", group->gpu != NULL ? group->gpu : "-");
        if (group->is_conv && group->pass != WG_CONV_FORWARD)
            wg__table_cell(&table, "%s (%s)", op, passes[group->pass]);
        else
            wg__table_cell(&table, "%s", op);
        wg__table_cell(&table, "%s", wg__dtype_name(group->dtype));
        wg__table_cell(&table, "%zu", group->rows);
        wg__table_cell(&table, "%zu", group->tiles);
        wg__table_cell(&table, "%zu", group->grids);
        wg__table_cell(&table, "%.4g", 1e3 * group->least_s);
        wg__table_cell(&table, "%.4g", 1e3 * group->most_s);
        wg__table_cell(&table, "%.4g", 1e-12 * group->best_flops_per_s);
    }
    wg__table_write(&table, with_color, out);
    out->failed |= table.failed;
    wg__table_fini(&table);
}

void wg__wave_import_measured_json(const struct wg_wave_import_measured *measured,
                                   struct wg_json *json)
{
    wg__json_member_string(json, "kind", "measurements");
    wg__json_member_uint(json, "rows", measured->measurements.count);
    wg__json_member_uint(json, "unmeasured", measured->measurements.unmeasured);
    wg__json_key(json, "groups");
    wg__json_array(json);
    for (size_t i = 0; i < measured->count; i++) {
        const struct wg_wave_import_group *group = &measured->groups[i];
        wg__json_object(json);
        wg__json_member_string(json, "gpu", group->gpu);
        wg__json_member_string(json, "op", group->op);
        wg__json_member_string(json, "pass", group->is_conv ? passes[group->pass] : NULL);
        wg__json_member_string(json, "dtype", wg__dtype_name(group->dtype));
        wg__json_member_uint(json, "rows", group->rows);
        wg__json_member_uint(json, "tiles", group->tiles);
        wg__json_member_uint(json, "grids", group->grids);
        wg__json_member_double(json, "least_s", group->least_s);
        wg__json_member_double(json, "most_s", group->most_s);
        wg__json_member_double(json, "best_flops_per_s", group->best_flops_per_s);
        wg__json_close(json);
    }
    wg__json_close(json);
}
