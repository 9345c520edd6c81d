/* SPDX-License-Identifier: MIT
 *
 * An import for people; see wave_import.h.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "cli/table.h"
#include "cli/wave_import.h"

enum { CELL_SIZE = 64, NAME_MAX_SHOWN = 48 };

/* -- Cells --------------------------------------------------------------------------------- */

static void put_count(struct wg_table *table, uint64_t value)
{
    if (value == 0)
        wg__table_cell(table, "-");
    else
        wg__table_cell(table, "%" PRIu64, value);
}

static void put_number(struct wg_table *table, double value, int digits, const char *unit)
{
    if (isnan(value))
        wg__table_cell(table, "-");
    else
        wg__table_cell(table, "%.*f%s", digits, value, unit);
}

static void put_name(struct wg_table *table, const char *name)
{
    const size_t length = strlen(name);
    if (length <= NAME_MAX_SHOWN)
        wg__table_cell(table, "%s", name);
    else
        wg__table_cell(table, "%.*s...", NAME_MAX_SHOWN - 3, name);
}

static const char *type_of(const struct wg_wave_import_row *row)
{
    return row->has_gemm ? wg__dtype_name(row->gemm.dtype) : "-";
}

static void put_product(struct wg_table *table, const struct wg_wave_import_row *row)
{
    const struct wg_gemm none = {0};
    const struct wg_gemm *gemm = row->has_gemm ? &row->gemm : &none;
    put_count(table, gemm->batch);
    put_count(table, gemm->m);
    put_count(table, gemm->n);
    put_count(table, gemm->k);
}

static void put_tile(struct wg_table *table, const struct wg_kernel *kernel)
{
    if (kernel->tile_m == 0)
        wg__table_cell(table, "-");
    else if (kernel->split_k > 1)
        wg__table_cell(table, "%ux%u /%u", kernel->tile_m, kernel->tile_n, kernel->split_k);
    else
        wg__table_cell(table, "%ux%u", kernel->tile_m, kernel->tile_n);
}

/* -- Profiles ------------------------------------------------------------------------------ */

static int by_time(const void *a, const void *b)
{
    const struct wg_wave_import_row *const *one = a, *const *two = b;
    const double first = (*one)->layer->measured_s, second = (*two)->layer->measured_s;
    if (first != second)
        return first > second ? -1 : 1;
    return *one < *two ? -1 : *one > *two;
}

/* Rows in the order in which they are shown; NULL: no memory. */
static const struct wg_wave_import_row **order_of(const struct wg_wave_import *import,
                                                  bool is_sorted)
{
    const struct wg_wave_import_row **order = wg__alloc_zeroed(import->count, sizeof *order);
    if (order == NULL)
        return NULL;
    for (size_t i = 0; i < import->count; i++)
        order[i] = &import->rows[i];
    if (is_sorted)
        qsort(order, import->count, sizeof *order, by_time);
    return order;
}

static void profile_row(struct wg_table *table, const struct wg_wave_import_row *row)
{
    const struct wg_layer *layer = row->layer;
    put_name(table, layer->name);
    wg__table_cell(table, "%s", type_of(row));
    put_product(table, row);
    put_tile(table, &layer->kernel);
    put_count(table, row->blocks);
    put_number(table, row->per_sm, 2, "");
    put_number(table, row->waves, 2, "");
    put_number(table, 100.0 * row->tail, 0, " %");
    put_number(table, layer->measured_s > 0.0 ? 1e3 * layer->measured_s : (double)NAN, 4, "");
}

static void profile_text(const struct wg_wave_import *import, unsigned top, bool with_color,
                         struct wg_buffer *out)
{
    static const struct wg_table_column columns[] = {
        {"layer", WG_ALIGN_LEFT},  {"type", WG_ALIGN_LEFT},    {"B", WG_ALIGN_RIGHT},
        {"m", WG_ALIGN_RIGHT},     {"n", WG_ALIGN_RIGHT},      {"k", WG_ALIGN_RIGHT},
        {"tile", WG_ALIGN_RIGHT},  {"blocks", WG_ALIGN_RIGHT}, {"per SM", WG_ALIGN_RIGHT},
        {"waves", WG_ALIGN_RIGHT}, {"tail", WG_ALIGN_RIGHT},   {"ms", WG_ALIGN_RIGHT}};
    const size_t shown = top != 0 && top < import->count ? top : import->count;
    const struct wg_wave_import_row **order = order_of(import, top != 0);
    if (order == NULL) {
        out->failed = true;
        return;
    }
    struct wg_table table;
    wg__table_init(&table, columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < shown; i++)
        profile_row(&table, order[i]);
    wg__table_write(&table, with_color, out);
    out->failed |= table.failed;
    wg__table_fini(&table);
    wg__free(order);
    if (shown < import->count)
        wg__buffer_printf(out, "... and %zu more, of less time.\n", import->count - shown);
}

/* -- Graphs -------------------------------------------------------------------------------- */

static void graph_text(const struct wg_wave_import *import, bool with_color, struct wg_buffer *out)
{
    static const struct wg_table_column columns[] = {
        {"layer", WG_ALIGN_LEFT},  {"op", WG_ALIGN_LEFT},          {"B", WG_ALIGN_RIGHT},
        {"m", WG_ALIGN_RIGHT},     {"n", WG_ALIGN_RIGHT},          {"k", WG_ALIGN_RIGHT},
        {"GFLOP", WG_ALIGN_RIGHT}, {"parameters", WG_ALIGN_RIGHT}, {"MB", WG_ALIGN_RIGHT}};
    struct wg_table table;
    double flops = 0.0, parameters = 0.0;
    wg__table_init(&table, columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < import->count; i++) {
        const struct wg_wave_import_row *row = &import->rows[i];
        put_name(&table, row->layer->name);
        wg__table_cell(&table, "%s", row->layer->op);
        put_product(&table, row);
        put_number(&table, row->has_gemm ? 1e-9 * row->flops : (double)NAN, 3, "");
        put_count(&table, row->layer->parameters);
        put_number(&table,
                   row->layer->kind == WG_LAYER_BYTES ? 1e-6 * row->layer->bytes : (double)NAN, 2,
                   "");
        flops += isnan(row->flops) ? 0.0 : row->flops;
        parameters += (double)row->layer->parameters;
    }
    wg__table_separate(&table);
    wg__table_cell(&table, "all");
    for (size_t i = 0; i < 5; i++)
        wg__table_cell(&table, "%s", "");
    wg__table_cell(&table, "%.3f", 1e-9 * flops);
    wg__table_cell(&table, "%.0f", parameters);
    wg__table_cell(&table, "%s", "");
    wg__table_write(&table, with_color, out);
    out->failed |= table.failed;
    wg__table_fini(&table);
}

void wg__wave_import_text(const struct wg_wave_import *import, unsigned top, bool with_color,
                          struct wg_buffer *out)
{
    const struct wg_wave_model *model = import->model;
    wg__buffer_printf(out, "%s: %s, ", model->name, model->kind);
    if (*import->device != '\0')
        wg__buffer_printf(out, "%s, ", import->device);
    if (import->sms != 0 && model->profile != NULL)
        wg__buffer_printf(out, "%u SMs, ", import->sms);
    if (model->batch != 0)
        wg__buffer_printf(out, "batch %" PRIu64 ", ", model->batch);
    wg__buffer_printf(out, "%zu layer%s", import->count, import->count == 1 ? "" : "s");
    if (import->measured_s > 0.0)
        wg__buffer_printf(out, ", %.4g ms", 1e3 * import->measured_s);
    wg__buffer_puts(out, "\n\n");
    if (model->profile != NULL)
        profile_text(import, top, with_color, out);
    else
        graph_text(import, with_color, out);
    struct wg_buffer note;
    wg__buffer_init(&note);
    if (wg__wave_left_out_text(model, &note) && !note.failed)
        wg__buffer_printf(out, "note: %s\n", note.data);
    out->failed |= note.failed;
    wg__buffer_fini(&note);
}

/* -- Shapes -------------------------------------------------------------------------------- */

static void put_shape(struct wg_table *table, const struct wg_shape *shape)
{
    struct wg_buffer text;
    wg__buffer_init(&text);
    wg__buffer_puts(&text, shape->is_known ? shape->rank == 0 ? "scalar" : "" : "?");
    for (size_t i = 0; shape->is_known && i < shape->rank; i++) {
        const struct wg_dim *dim = &shape->dims[i];
        wg__buffer_puts(&text, i == 0 ? "" : " x ");
        if (dim->value >= 0)
            wg__buffer_printf(&text, "%" PRId64, dim->value);
        else
            wg__buffer_puts(&text, dim->name != NULL ? dim->name : "?");
    }
    if (text.failed)
        table->failed = true;
    wg__table_cell(table, "%s", text.failed ? "?" : text.data);
    wg__buffer_fini(&text);
}

static const char *role_of(const struct wg_graph *graph, size_t index)
{
    for (size_t i = 0; i < graph->output_count; i++)
        if (graph->outputs[i] == (int32_t)index)
            return "output";
    for (size_t i = 0; i < graph->input_count; i++)
        if (graph->inputs[i] == (int32_t)index)
            return "input";
    const struct wg_tensor *tensor = &graph->tensors[index];
    if (tensor->producer >= 0)
        return graph->nodes[tensor->producer].op;
    return tensor->constant != NULL ? "constant" : "";
}

void wg__wave_shapes_text(const struct wg_wave_model *model, bool with_color, struct wg_buffer *out)
{
    static const struct wg_table_column columns[] = {{"tensor", WG_ALIGN_LEFT},
                                                     {"of", WG_ALIGN_LEFT},
                                                     {"type", WG_ALIGN_LEFT},
                                                     {"shape", WG_ALIGN_LEFT}};
    const struct wg_graph *graph = model->graph->graph;
    struct wg_table table;
    wg__table_init(&table, columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < graph->tensor_count; i++) {
        const struct wg_tensor *tensor = &graph->tensors[i];
        put_name(&table, tensor->name);
        wg__table_cell(&table, "%s", role_of(graph, i));
        wg__table_cell(&table, "%s", wg__elem_name(tensor->elem_type));
        put_shape(&table, &tensor->shape);
    }
    wg__table_write(&table, with_color, out);
    out->failed |= table.failed;
    wg__table_fini(&table);
}

void wg__wave_shapes_json(const struct wg_wave_model *model, struct wg_json *json)
{
    const struct wg_graph *graph = model->graph->graph;
    wg__json_array(json);
    for (size_t i = 0; i < graph->tensor_count; i++) {
        const struct wg_tensor *tensor = &graph->tensors[i];
        wg__json_object(json);
        wg__json_member_string(json, "name", tensor->name);
        wg__json_member_string(json, "of", role_of(graph, i));
        wg__json_member_string(json, "type",
                               tensor->elem_type != 0 ? wg__elem_name(tensor->elem_type) : NULL);
        wg__json_key(json, "shape");
        if (tensor->shape.is_known) {
            wg__json_array(json);
            for (size_t axis = 0; axis < tensor->shape.rank; axis++) {
                const struct wg_dim *dim = &tensor->shape.dims[axis];
                if (dim->value >= 0)
                    wg__json_uint(json, (uint64_t)dim->value);
                else
                    wg__json_string(json, dim->name);
            }
            wg__json_close(json);
        } else {
            wg__json_null(json);
        }
        wg__json_close(json);
    }
    wg__json_close(json);
}
