/* SPDX-License-Identifier: MIT
 *
 * Nsight Compute's CSV: the details, a metric a row, or the raw page, a kernel a row.
 *
 *     details   "ID", .., "Kernel Name", .., "Block Size", "Grid Size", .., "Metric Name",
 *               "Metric Unit", "Metric Value", [rules]       rows of one ID follow each other
 *     raw       "ID", .., "Kernel Name", .., "launch__grid_size", ..; then a row of units
 *
 * Both are read through one table of what is wanted, by both names. Values have units that the tool
 * chooses, row by row.
 *
 * Threads: one thread at a time.
 */
#include <math.h>
#include <string.h>

#include "base/csv.h"
#include "model/launch_dims.h"
#include "model/profile_quantity.h"
#include "model/profile_reader.h"

enum want {
    WANT_TIME,
    WANT_BLOCKS,
    WANT_THREADS,
    WANT_REGISTERS,
    WANT_SHARED_DYNAMIC,
    WANT_SHARED_STATIC,
    WANT_WAVES,
    WANT_SMS,
    WANT_COUNT
};

enum unit_kind { UNIT_NONE, UNIT_TIME, UNIT_MEMORY };

static const struct {
    const char *detail, *raw;
    enum unit_kind unit;
} wanted[WANT_COUNT] = {
    [WANT_TIME] = {"Duration", "gpu__time_duration.sum", UNIT_TIME},
    [WANT_BLOCKS] = {"Grid Size", "launch__grid_size", UNIT_NONE},
    [WANT_THREADS] = {"Block Size", "launch__block_size", UNIT_NONE},
    [WANT_REGISTERS] = {"Registers Per Thread", "launch__registers_per_thread", UNIT_NONE},
    [WANT_SHARED_DYNAMIC] = {"Dynamic Shared Memory Per Block",
                             "launch__shared_mem_per_block_dynamic", UNIT_MEMORY},
    [WANT_SHARED_STATIC] = {"Static Shared Memory Per Block", "launch__shared_mem_per_block_static",
                            UNIT_MEMORY},
    [WANT_WAVES] = {"Waves Per SM", "launch__waves_per_multiprocessor", UNIT_NONE},
    [WANT_SMS] = {"# SMs", "launch__sm_count", UNIT_NONE},
};

struct reader {
    struct wg_profile_collector *collector;
    struct wg_csv *csv;
    int id, process, kernel, grid, block; /* columns; -1: none */
    double values[WANT_COUNT];            /* of the present kernel; NAN: not told */
    struct wg_launch launch;
    const char *present_id, *present_process; /* NULL: no kernel yet */
};

static const char *text_of(const struct reader *reader, int column)
{
    return column < 0 ? "" : wg__csv_text(reader->csv, (size_t)column);
}

/* -- Values -------------------------------------------------------------------------------- */

static enum wg_code take_value(struct reader *reader, enum want want, int column, const char *text,
                               const char *unit, struct wg_error *err)
{
    double value = 0.0, factor = 1.0;
    if (*text == '\0' || strcmp(text, "n/a") == 0 || strcmp(text, "N/A") == 0)
        return WG_OK;
    if (!wg__quantity_parse(text, &value))
        return wg__csv_fail(reader->csv, (size_t)column, err, "'%.40s' is not a number for %s",
                            text, wanted[want].detail);
    if (wanted[want].unit != UNIT_NONE) {
        factor = wanted[want].unit == UNIT_TIME ? wg__quantity_time_unit(unit)
                                                : wg__quantity_memory_unit(unit);
        if (factor == 0.0)
            return wg__csv_fail(reader->csv, (size_t)column, err, "'%.40s' is no unit of %s", unit,
                                wanted[want].detail);
    }
    reader->values[want] = value * factor;
    return WG_OK;
}

static enum wg_code begin_kernel(struct reader *reader, struct wg_error *err)
{
    struct wg_launch launch = wg__launch_unknown();
    for (size_t i = 0; i < WANT_COUNT; i++)
        reader->values[i] = NAN;
    enum wg_code code =
        wg__collector_name(reader->collector, text_of(reader, reader->kernel), &launch.name, err);
    const char *grid = text_of(reader, reader->grid), *block = text_of(reader, reader->block);
    if (code == WG_OK && *grid != '\0' && !wg__launch_dims_parse(grid, launch.grid, NULL))
        code = wg__csv_fail(reader->csv, (size_t)reader->grid, err, "'%.40s' is no grid", grid);
    if (code == WG_OK && *block != '\0' && !wg__launch_dims_parse(block, launch.block, NULL))
        code = wg__csv_fail(reader->csv, (size_t)reader->block, err, "'%.40s' is no block", block);
    reader->launch = launch;
    return code;
}

/* A count as three dimensions, where the dimensions themselves are not told. */
static void spread_count(uint64_t dims[3], double count)
{
    if (dims[0] == 0 && count >= 1.0 && count <= 9007199254740992.0) {
        dims[0] = (uint64_t)count;
        dims[1] = dims[2] = 1;
    }
}

static enum wg_code end_kernel(struct reader *reader, struct wg_error *err)
{
    const double *values = reader->values;
    struct wg_launch *launch = &reader->launch;
    struct wg_profile *profile = reader->collector->profile;
    spread_count(launch->grid, values[WANT_BLOCKS]);
    spread_count(launch->block, values[WANT_THREADS]);
    launch->registers_per_thread = values[WANT_REGISTERS];
    launch->shared_memory_bytes = values[WANT_SHARED_DYNAMIC] + values[WANT_SHARED_STATIC];
    launch->waves_per_sm = values[WANT_WAVES];
    launch->time_s = values[WANT_TIME];
    if (values[WANT_SMS] >= 1.0 && values[WANT_SMS] <= 65536.0)
        launch->sms = (unsigned)values[WANT_SMS];
    if (profile->sms == 0)
        profile->sms = launch->sms;
    return wg__collector_launch(reader->collector, launch, err);
}

/* -- Pages --------------------------------------------------------------------------------- */

static bool is_same_kernel(const struct reader *reader)
{
    return reader->present_id != NULL &&
           strcmp(reader->present_id, text_of(reader, reader->id)) == 0 &&
           strcmp(reader->present_process, text_of(reader, reader->process)) == 0;
}

static enum wg_code read_detail(struct reader *reader, int name, int unit, int value,
                                struct wg_error *err)
{
    enum wg_code code = WG_OK;
    if (!is_same_kernel(reader)) {
        if (reader->present_id != NULL)
            code = end_kernel(reader, err);
        if (code == WG_OK)
            code = begin_kernel(reader, err);
        if (code == WG_OK)
            code = wg__collector_name(reader->collector, text_of(reader, reader->id),
                                      &reader->present_id, err);
        if (code == WG_OK)
            code = wg__collector_name(reader->collector, text_of(reader, reader->process),
                                      &reader->present_process, err);
    }
    for (size_t i = 0; i < WANT_COUNT && code == WG_OK; i++) /* a section may repeat a metric */
        if (strcmp(text_of(reader, name), wanted[i].detail) == 0 && isnan(reader->values[i]))
            code = take_value(reader, (enum want)i, value, text_of(reader, value),
                              text_of(reader, unit), err);
    return code;
}

static enum wg_code read_details(struct reader *reader, struct wg_error *err)
{
    const int name = wg__profile_column(reader->csv, "Metric Name");
    const int unit = wg__profile_column(reader->csv, "Metric Unit");
    const int value = wg__profile_column(reader->csv, "Metric Value");
    enum wg_code code = WG_OK;
    for (bool has_record = true; code == WG_OK && has_record;) {
        code = wg__csv_next(reader->csv, &has_record, err);
        if (code == WG_OK && has_record && *text_of(reader, reader->kernel) != '\0')
            code = read_detail(reader, name, unit, value, err);
    }
    if (code == WG_OK && reader->present_id != NULL)
        code = end_kernel(reader, err);
    return code;
}

/* The units are a record of their own, without a kernel. */
static enum wg_code read_raw_units(struct reader *reader, const int columns[WANT_COUNT],
                                   const char *units[WANT_COUNT], struct wg_error *err)
{
    for (size_t i = 0; i < WANT_COUNT; i++) {
        const enum wg_code code =
            wg__collector_name(reader->collector, text_of(reader, columns[i]), &units[i], err);
        if (code != WG_OK)
            return code;
    }
    return WG_OK;
}

static enum wg_code read_raw_kernel(struct reader *reader, const int columns[WANT_COUNT],
                                    const char *const units[WANT_COUNT], struct wg_error *err)
{
    enum wg_code code = begin_kernel(reader, err);
    for (size_t i = 0; i < WANT_COUNT && code == WG_OK; i++)
        code = take_value(reader, (enum want)i, columns[i], text_of(reader, columns[i]), units[i],
                          err);
    return code == WG_OK ? end_kernel(reader, err) : code;
}

static enum wg_code read_raw(struct reader *reader, struct wg_error *err)
{
    int columns[WANT_COUNT];
    const char *units[WANT_COUNT];
    for (size_t i = 0; i < WANT_COUNT; i++) {
        columns[i] = wg__profile_column(reader->csv, wanted[i].raw);
        units[i] = "";
    }
    if (columns[WANT_SMS] < 0)
        columns[WANT_SMS] =
            wg__profile_column(reader->csv, "device__attribute_multiprocessor_count");
    enum wg_code code = WG_OK;
    for (bool has_record = true; code == WG_OK && has_record;) {
        code = wg__csv_next(reader->csv, &has_record, err);
        if (code != WG_OK || !has_record)
            break;
        code = *text_of(reader, reader->kernel) == '\0'
                   ? read_raw_units(reader, columns, units, err)
                   : read_raw_kernel(reader, columns, units, err);
    }
    return code;
}

enum wg_code wg__profile_ncu(struct wg_profile_collector *collector, struct wg_csv *csv,
                             struct wg_error *err)
{
    struct reader reader = {.collector = collector,
                            .csv = csv,
                            .id = wg__profile_column(csv, "ID"),
                            .process = wg__profile_column(csv, "Process ID"),
                            .kernel = wg__profile_column(csv, "Kernel Name"),
                            .grid = wg__profile_column(csv, "Grid Size"),
                            .block = wg__profile_column(csv, "Block Size")};
    collector->profile->kind = WG_PROFILE_NCU;
    if (wg__profile_column(csv, "Metric Name") >= 0)
        return read_details(&reader, err);
    return read_raw(&reader, err);
}
