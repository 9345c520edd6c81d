/* SPDX-License-Identifier: MIT
 *
 * Nsight Systems' list of what ran on the GPU, as CSV.
 *
 *     Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Reg/Trd,StcSMem (MB),
 *     DymSMem (MB),Bytes (MB),Throughput (MBps),SrcMemKd,DstMemKd,Device,Ctx,Strm,Name
 *
 * or with "Duration:dur_ns", "StcSMem:mem_B" where the script was run without its formatter. Rows
 * without a grid are copies. Megabytes have three decimals, so that shared memory is not known to a
 * kilobyte: it counts as not told, unless it is none.
 *
 * Threads: one thread at a time.
 */
#include <math.h>
#include <string.h>

#include "base/csv.h"
#include "model/profile_quantity.h"
#include "model/profile_reader.h"

enum { UNIT_SIZE = 16 };

struct measure {
    int column; /* -1: none */
    double factor;
};

struct reader {
    struct wg_profile_collector *collector;
    struct wg_csv *csv;
    int name, device, registers;
    int dims[6]; /* GrdX .. BlkZ */
    struct measure duration, shared_static, shared_dynamic;
};

/* The unit behind a column's name: "Duration (ns)" or "Duration:dur_ns". */
static void unit_of(const char *rest, char out[static UNIT_SIZE])
{
    const char *from = strchr(rest, '(');
    if (from == NULL)
        from = strrchr(rest, '_');
    from = from != NULL ? from + 1 : "";
    size_t length = strcspn(from, ")");
    if (length >= UNIT_SIZE)
        length = UNIT_SIZE - 1;
    memcpy(out, from, length);
    out[length] = '\0';
}

/* The column that is called `name` and a unit. */
static struct measure find_measure(const struct wg_csv *csv, const char *name,
                                   double (*factor_of)(const char *unit))
{
    const size_t length = strlen(name);
    for (size_t i = 0; i < wg__csv_column_count(csv); i++) {
        const char *column = wg__csv_column_name(csv, i);
        char unit[UNIT_SIZE];
        if (strncmp(column, name, length) != 0 ||
            (column[length] != ' ' && column[length] != ':' && column[length] != '('))
            continue;
        unit_of(column + length, unit);
        return (struct measure){(int)i, factor_of(unit)};
    }
    return (struct measure){.column = -1};
}

static enum wg_code read_number(const struct reader *reader, int column, double *out,
                                struct wg_error *err)
{
    const char *text = column < 0 ? "" : wg__csv_text(reader->csv, (size_t)column);
    *out = NAN;
    if (*text == '\0' || wg__quantity_parse(text, out))
        return WG_OK;
    return wg__csv_fail(reader->csv, (size_t)column, err, "'%.40s' is not a number", text);
}

static enum wg_code read_dims(const struct reader *reader, struct wg_launch *launch,
                              struct wg_error *err)
{
    for (size_t i = 0; i < 6; i++) {
        double value = 0.0;
        const enum wg_code code = read_number(reader, reader->dims[i], &value, err);
        if (code != WG_OK)
            return code;
        if (!(value >= 1.0 && value <= 2147483647.0 && value == floor(value)))
            return wg__csv_fail(reader->csv, (size_t)reader->dims[i], err,
                                "'%.40s' is not a whole number from 1 to 2^31 - 1",
                                wg__csv_text(reader->csv, (size_t)reader->dims[i]));
        uint64_t *dims = i < 3 ? &launch->grid[i] : &launch->block[i - 3];
        *dims = (uint64_t)value;
    }
    return WG_OK;
}

static enum wg_code read_shared(const struct reader *reader, struct wg_launch *launch,
                                struct wg_error *err)
{
    const struct measure *parts[] = {&reader->shared_static, &reader->shared_dynamic};
    double bytes = 0.0;
    for (size_t i = 0; i < 2; i++) {
        double value = 0.0;
        const enum wg_code code = read_number(reader, parts[i]->column, &value, err);
        if (code != WG_OK)
            return code;
        const bool is_exact = value == 0.0 || (parts[i]->factor > 0.0 && parts[i]->factor < 1e3);
        bytes += is_exact ? value * parts[i]->factor : (double)NAN;
    }
    launch->shared_memory_bytes = bytes;
    return WG_OK;
}

static enum wg_code read_row(const struct reader *reader, struct wg_error *err)
{
    struct wg_launch launch = wg__launch_unknown();
    struct wg_profile *profile = reader->collector->profile;
    double duration = 0.0;
    enum wg_code code = read_dims(reader, &launch, err);
    if (code == WG_OK)
        code = read_number(reader, reader->duration.column, &duration, err);
    launch.time_s = duration * reader->duration.factor;
    if (code == WG_OK)
        code = read_number(reader, reader->registers, &launch.registers_per_thread, err);
    if (code == WG_OK)
        code = read_shared(reader, &launch, err);
    if (code == WG_OK)
        code = wg__collector_name(
            reader->collector, wg__csv_text(reader->csv, (size_t)reader->name), &launch.name, err);
    if (code == WG_OK && reader->device >= 0 && *profile->device == '\0')
        code =
            wg__collector_name(reader->collector, wg__csv_text(reader->csv, (size_t)reader->device),
                               &profile->device, err);
    return code == WG_OK ? wg__collector_launch(reader->collector, &launch, err) : code;
}

/* "NVIDIA A100-SXM4-40GB (0)" without the device's number. */
static enum wg_code trim_device(struct wg_profile_collector *collector, struct wg_error *err)
{
    struct wg_profile *profile = collector->profile;
    const char *bracket = strrchr(profile->device, '(');
    if (bracket == NULL || bracket == profile->device || bracket[-1] != ' ')
        return WG_OK;
    char name[128];
    const size_t length = (size_t)(bracket - 1 - profile->device);
    if (length >= sizeof name)
        return WG_OK;
    memcpy(name, profile->device, length);
    name[length] = '\0';
    return wg__collector_name(collector, name, &profile->device, err);
}

enum wg_code wg__profile_nsys(struct wg_profile_collector *collector, struct wg_csv *csv,
                              struct wg_error *err)
{
    static const char *const dims[] = {"GrdX", "GrdY", "GrdZ", "BlkX", "BlkY", "BlkZ"};
    struct reader reader = {.collector = collector,
                            .csv = csv,
                            .name = wg__profile_column(csv, "Name"),
                            .device = wg__profile_column(csv, "Device"),
                            .registers = wg__profile_column(csv, "Reg/Trd"),
                            .duration = find_measure(csv, "Duration", wg__quantity_time_unit),
                            .shared_static = find_measure(csv, "StcSMem", wg__quantity_memory_unit),
                            .shared_dynamic =
                                find_measure(csv, "DymSMem", wg__quantity_memory_unit)};
    enum wg_code code = WG_OK;
    size_t column = 0;
    collector->profile->kind = WG_PROFILE_NSYS;
    for (size_t i = 0; i < 6 && code == WG_OK; i++) {
        code = wg__csv_column(csv, dims[i], &column, err);
        reader.dims[i] = (int)column;
    }
    if (code == WG_OK)
        code = wg__csv_column(csv, "Name", &column, err);
    if (code == WG_OK && (reader.duration.column < 0 || reader.duration.factor == 0.0))
        code = wg__fail(err, WG_EDATA, "%s: no column Duration with a unit, as in 'Duration (ns)'",
                        collector->file_name);
    for (bool has_record = true; code == WG_OK && has_record;) {
        code = wg__csv_next(csv, &has_record, err);
        if (code == WG_OK && has_record && *wg__csv_text(csv, (size_t)reader.dims[0]) != '\0')
            code = read_row(&reader, err);
    }
    return code == WG_OK ? trim_device(collector, err) : code;
}
