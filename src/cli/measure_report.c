/* SPDX-License-Identifier: MIT
 *
 * `wattgov measure` for people: one table, then the time, then what to know about the numbers.
 *
 * One run shows its own numbers; several show mean and spread. What is missing and what limits the
 * trust in a number stands below the table, once for all devices that share it, with the reason and
 * what to do.
 */
#include "cli/measure_report.h"

#include <math.h>
#include <string.h>

#include "base/buffer.h"
#include "cli/markup.h"
#include "cli/table.h"

enum { NOTE_WIDTH_MAX = 180 }; /* columns; a label and some words stand before it */

static const struct wg_window_result *result_of(const struct wg_measure_report *report, size_t run,
                                                int device)
{
    const struct wg_measure_run *of = &report->runs[run];
    return device == WG_MEASURE_TOTAL ? &of->total : &of->devices[device];
}

static double number_of(const struct wg_measure_report *report, size_t run, int device,
                        enum wg_measure_number number)
{
    switch (number) {
    case WG_MEASURE_ENERGY:
        return result_of(report, run, device)->energy_j;
    case WG_MEASURE_POWER:
        return result_of(report, run, device)->power_mean_w;
    case WG_MEASURE_TIME:
        break;
    }
    return report->runs[run].time_s;
}

/* The runs of statistics. One that stands alone is whatever it was. */
static bool is_counted(const struct wg_measure_report *report, size_t run)
{
    const struct wg_measure_run *it = &report->runs[run];
    const bool has_failed = it->has_child && (it->child.status != 0 || it->is_cut);
    return report->runs_wanted <= 1 || !has_failed;
}

struct wg_spread wg__measure_spread(const struct wg_measure_report *report, int device,
                                    enum wg_measure_number number)
{
    struct wg_spread spread = {.mean = NAN, .sd = NAN, .min = NAN, .max = NAN};
    double sum = 0;
    for (size_t i = 0; i < report->run_count; i++) {
        const double value = number_of(report, i, device, number);
        if (isnan(value) || !is_counted(report, i))
            continue;
        spread.count++;
        sum += value;
        spread.min = fmin(spread.min, value); /* fmin and fmax pass over NAN */
        spread.max = fmax(spread.max, value);
    }
    if (spread.count == 0)
        return spread;
    spread.mean = sum / (double)spread.count;
    if (spread.count < 2)
        return spread;
    double squares = 0;
    for (size_t i = 0; i < report->run_count; i++) {
        const double value = number_of(report, i, device, number);
        if (!isnan(value) && is_counted(report, i))
            squares += (value - spread.mean) * (value - spread.mean);
    }
    spread.sd = sqrt(squares / (double)(spread.count - 1));
    return spread;
}

/* Decimals that show four or more digits of a number, and of another that belongs to it. */
static int decimals(double value)
{
    const double size = fabs(value);
    return !(size < 1e5) ? 0 : size >= 1e3 ? 1 : size >= 10 ? 2 : 3;
}

/* "123.45 J"; "n/a" for what is unknown. */
static void number_cell(struct wg_table *table, double value, const char *unit)
{
    if (isnan(value))
        wg__table_cell(table, "n/a");
    else
        wg__table_cell(table, "%.*f %s", decimals(value), value, unit);
}

/* A half width or a deviation, with the decimals of what it belongs to. */
static void margin_cell(struct wg_table *table, double margin, double value, const char *unit)
{
    if (isnan(margin) || isnan(value))
        wg__table_cell(table, "%s", "");
    else
        wg__table_cell(table, "± %.*f %s", decimals(value), margin, unit);
}

static void share_cell(struct wg_table *table, double share)
{
    if (isnan(share))
        wg__table_cell(table, "n/a");
    else
        wg__table_cell(table, "%.0f %%", 100 * share);
}

/* "throttled, gap" */
static void append_flags(uint32_t flags, struct wg_buffer *out)
{
    bool is_first = true;
    for (unsigned bit = 0; bit < 32; bit++) {
        const char *key = (flags >> bit & 1u) != 0 ? wg_window_flag_key(1u << bit) : NULL;
        if (key == NULL)
            continue;
        wg__buffer_printf(out, "%s%s", is_first ? "" : ", ", key);
        is_first = false;
    }
}

static void flags_cell(struct wg_table *table, uint32_t flags)
{
    struct wg_buffer words;
    wg__buffer_init(&words);
    append_flags(flags, &words);
    wg__table_cell(table, "%s", words.length > 0 ? words.data : "");
    table->failed |= words.failed;
    wg__buffer_fini(&words);
}

static void emphasize(struct wg_table *table, bool is_total)
{
    if (is_total)
        wg__table_emphasize(table);
}

static void add_result(struct wg_table *table, const char *label, bool is_total,
                       const struct wg_window_result *result)
{
    wg__table_cell(table, "%s", label);
    emphasize(table, is_total);
    number_cell(table, result->energy_j, "J");
    emphasize(table, is_total);
    margin_cell(table, result->energy_error_j, result->energy_j, "J");
    number_cell(table, result->power_mean_w, "W");
    number_cell(table, result->power_peak_w, "W");
    share_cell(table, result->idle_share);
    if (isnan(result->throttled_s))
        wg__table_cell(table, "n/a");
    else
        wg__table_cell(table, "%.2f s", result->throttled_s);
    wg__table_cell(table, "%s", wg_energy_source_key(result->source));
    share_cell(table, result->source == WG_ENERGY_NONE ? (double)NAN : result->coverage);
    flags_cell(table, result->flags);
}

static void append_run_table(const struct wg_measure_report *report, bool with_color,
                             struct wg_buffer *out)
{
    static const struct wg_table_column columns[] = {
        {"device", WG_ALIGN_LEFT},     {"energy", WG_ALIGN_RIGHT}, {"", WG_ALIGN_RIGHT},
        {"mean", WG_ALIGN_RIGHT},      {"peak", WG_ALIGN_RIGHT},   {"idle", WG_ALIGN_RIGHT},
        {"throttled", WG_ALIGN_RIGHT}, {"source", WG_ALIGN_LEFT},  {"coverage", WG_ALIGN_RIGHT},
        {"flags", WG_ALIGN_LEFT},
    };
    const struct wg_measure_run *run = &report->runs[0];
    struct wg_table table;
    wg__table_init(&table, columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < report->device_count; i++)
        add_result(&table, report->infos[i]->label, false, &run->devices[i]);
    if (report->device_count > 0)
        wg__table_separate(&table);
    add_result(&table, "total", true, &run->total);
    wg__table_write(&table, with_color, out);
    wg__table_fini(&table);
}

static void add_spread(struct wg_table *table, const char *label, int device,
                       const struct wg_measure_report *report)
{
    const bool is_total = device == WG_MEASURE_TOTAL;
    const struct wg_spread energy = wg__measure_spread(report, device, WG_MEASURE_ENERGY);
    wg__table_cell(table, "%s", label);
    emphasize(table, is_total);
    number_cell(table, energy.mean, "J");
    emphasize(table, is_total);
    margin_cell(table, energy.sd, energy.mean, "J");
    if (isnan(energy.sd) || energy.mean == 0)
        wg__table_cell(table, "%s", "");
    else
        wg__table_cell(table, "%.2f %%", 100 * energy.sd / energy.mean);
    number_cell(table, energy.min, "J");
    number_cell(table, energy.max, "J");
    number_cell(table, wg__measure_spread(report, device, WG_MEASURE_POWER).mean, "W");
    wg__table_cell(table, "%zu", energy.count);
    uint32_t flags = 0;
    for (size_t i = 0; i < report->run_count; i++)
        flags |= result_of(report, i, device)->flags;
    flags_cell(table, flags);
}

static void append_spread_table(const struct wg_measure_report *report, bool with_color,
                                struct wg_buffer *out)
{
    static const struct wg_table_column columns[] = {
        {"device", WG_ALIGN_LEFT},      {"mean energy", WG_ALIGN_RIGHT},
        {"deviation", WG_ALIGN_RIGHT},  {"", WG_ALIGN_RIGHT},
        {"least", WG_ALIGN_RIGHT},      {"most", WG_ALIGN_RIGHT},
        {"mean power", WG_ALIGN_RIGHT}, {"runs", WG_ALIGN_RIGHT},
        {"flags", WG_ALIGN_LEFT},
    };
    struct wg_table table;
    wg__table_init(&table, columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < report->device_count; i++)
        add_spread(&table, report->infos[i]->label, (int)i, report);
    if (report->device_count > 0)
        wg__table_separate(&table);
    add_spread(&table, "total", WG_MEASURE_TOTAL, report);
    wg__table_write(&table, with_color, out);
    wg__table_fini(&table);
}

/* As a shell takes it. */
static void append_command(const struct wg_measure_report *report, struct wg_buffer *out)
{
    for (size_t i = 0; report->command[i] != NULL; i++) {
        wg__buffer_puts(out, i > 0 ? " " : "");
        const char *word = report->command[i];
        const bool is_bare =
            word[0] != '\0' && word[strcspn(word, " \t\n'\"\\$`*?[]{}()<>|&;#~!")] == '\0';
        wg__buffer_puts(out, is_bare ? "" : "'");
        while (*word != '\0') {
            uint32_t code;
            word += wg__utf8_next(word, &code);
            if (code == '\'')
                wg__buffer_puts(out, "'\\''");
            else
                wg__append_code_point(out, code);
        }
        wg__buffer_puts(out, is_bare ? "" : "'");
    }
}

/* How long it took, and what the command used of processor and memory. */
static void append_time(const struct wg_measure_report *report, struct wg_buffer *out)
{
    const struct wg_measure_run *run = &report->runs[0];
    if (report->run_count > 1) {
        const struct wg_spread time = wg__measure_spread(report, 0, WG_MEASURE_TIME);
        if (time.count == report->runs_wanted)
            wg__buffer_printf(out, "\n%zu runs: ", time.count);
        else
            wg__buffer_printf(out, "\n%zu of %zu runs: ", time.count, report->runs_wanted);
        if (time.count > 1)
            wg__buffer_printf(out, "%.3f s ± %.3f s (%.2f %%) each\n", time.mean, time.sd,
                              time.mean > 0 ? 100 * time.sd / time.mean : 0);
        else if (time.count == 1)
            wg__buffer_printf(out, "%.3f s\n", time.mean);
        else
            wg__buffer_puts(out, "none succeeded\n");
        return;
    }
    wg__buffer_printf(out, "\n%.3f s", run->time_s);
    if (run->has_child)
        wg__buffer_printf(out, "; processor %.3f s user, %.3f s system; memory at most %.1f MiB",
                          run->child.user_s, run->child.system_s,
                          (double)run->child.peak_memory_bytes / 1048576.0);
    wg__buffer_puts(out, "\n");
}

/* "gpu0-gpu7: NVIDIA H100": neighbours of one name share a line. */
static void append_names(const struct wg_measure_report *report, struct wg_buffer *out)
{
    for (size_t i = 0; i < report->device_count;) {
        const struct wg_device_info *first = report->infos[i];
        size_t end = i + 1;
        while (end < report->device_count && report->infos[end]->kind == first->kind &&
               strcmp(report->infos[end]->name, first->name) == 0)
            end++;
        wg__append_plain(out, first->label);
        if (end > i + 1) {
            wg__buffer_puts(out, end > i + 2 ? " .. " : ", ");
            wg__append_plain(out, report->infos[end - 1]->label);
        }
        wg__buffer_puts(out, ": ");
        wg__append_plain(out, first->name);
        wg__buffer_puts(out, first->counts_in_total ? "\n"
                                                    : " (in another's energy, not in the "
                                                      "total)\n");
        i = end;
    }
}

static bool has_energy(const struct wg_measure_report *report, size_t device)
{
    return wg__measure_spread(report, (int)device, WG_MEASURE_ENERGY).count > 0;
}

/* Why a device has no energy. */
static const char *reason_of(const struct wg_measure_report *report, size_t device)
{
    const struct wg_device_info *info = report->infos[device];
    const struct wg_meter_info *energy = &info->meters[WG_METRIC_ENERGY_J];
    const struct wg_meter_info *power = &info->meters[WG_METRIC_POWER_W];
    if (info->state != WG_OK && info->state_text != NULL)
        return info->state_text;
    if (report->troubles[device] != NULL)
        return report->troubles[device];
    if (!energy->is_present && !power->is_present) {
        if (energy->why_not != NULL)
            return energy->why_not;
        if (power->why_not != NULL)
            return power->why_not;
    }
    return "no sample came in the time";
}

static const char *remedy_of(const struct wg_device_info *info)
{
    const struct wg_meter_info *energy = &info->meters[WG_METRIC_ENERGY_J];
    return energy->remedy != NULL ? energy->remedy : info->meters[WG_METRIC_POWER_W].remedy;
}

/* At most so many columns of a text; "..." stands for the rest. */
static void append_cut(struct wg_buffer *out, const char *text, size_t columns)
{
    size_t width = wg__text_width(text);
    const size_t room = width > columns ? columns - 3 : columns;
    for (width = 0; *text != '\0';) {
        uint32_t code;
        const size_t length = wg__utf8_next(text, &code);
        width += wg__code_point_width(code);
        if (width > room) {
            wg__buffer_puts(out, "...");
            return;
        }
        wg__append_code_point(out, code);
        text += length;
    }
}

/* On a machine without GPUs each backend has one line: what is too long for it is told by
 * `wattgov devices`. */
static void append_short_reason(struct wg_buffer *out, const char *text, const char *remedy)
{
    static const char more[] = "; see 'wattgov devices'";
    const bool has_remedy = remedy != NULL && strstr(text, remedy) == NULL;
    const size_t width = wg__text_width(text) + (has_remedy ? 2 + wg__text_width(remedy) : 0);
    if (width <= NOTE_WIDTH_MAX) {
        wg__append_reason(out, text, remedy);
    } else {
        append_cut(out, text, NOTE_WIDTH_MAX - (sizeof more - 1));
        wg__buffer_puts(out, more);
    }
    wg__buffer_puts(out, "\n");
}

static void append_note(struct wg_buffer *out, const char *text, const char *remedy)
{
    wg__append_reason(out, text, remedy);
    wg__buffer_puts(out, "\n");
}

/* Devices without energy, those with the same reason in one line. */
static void append_missing(const struct wg_measure_report *report, struct wg_buffer *out)
{
    for (size_t i = 0; i < report->device_count; i++) {
        if (has_energy(report, i))
            continue;
        const char *reason = reason_of(report, i);
        bool is_said = false;
        for (size_t j = 0; j < i && !is_said; j++)
            is_said = !has_energy(report, j) && strcmp(reason, reason_of(report, j)) == 0;
        if (is_said)
            continue;
        wg__append_plain(out, report->infos[i]->label);
        for (size_t j = i + 1; j < report->device_count; j++) {
            if (!has_energy(report, j) && strcmp(reason, reason_of(report, j)) == 0) {
                wg__buffer_puts(out, ", ");
                wg__append_plain(out, report->infos[j]->label);
            }
        }
        wg__buffer_puts(out, ": energy n/a: ");
        append_note(out, reason, remedy_of(report->infos[i]));
    }
}

/* What went wrong with devices that have some energy all the same. */
static void append_troubles(const struct wg_measure_report *report, struct wg_buffer *out)
{
    for (size_t i = 0; i < report->device_count; i++) {
        if (report->troubles[i] == NULL || !has_energy(report, i))
            continue;
        if (strstr(report->troubles[i], report->infos[i]->label) == NULL) {
            wg__append_plain(out, report->infos[i]->label);
            wg__buffer_puts(out, ": ");
        }
        append_note(out, report->troubles[i], NULL);
    }
}

static bool is_processor_backend(const struct wg_backend_info *backend)
{
    return strcmp(backend->name, "rapl") == 0;
}

/* Those that failed, and those that found nothing where nothing else of the kind is there: on a
 * machine with NVIDIA GPUs nobody asks why there are no AMD ones. */
static bool is_told(const struct wg_backend_info *backend, bool has_processor, bool has_other)
{
    const bool is_covered = is_processor_backend(backend) ? has_processor : has_other;
    return backend->state != WG_OK && !(backend->state == WG_ENODEV && is_covered);
}

/* Backends without devices, those with the same reason in one line. */
static void append_backends(const struct wg_measure_report *report, struct wg_buffer *out)
{
    bool has_processor = false, has_other = false;
    for (size_t i = 0; i < report->device_count; i++) {
        const enum wg_device_kind kind = report->infos[i]->kind;
        if (kind == WG_DEVICE_CPU || kind == WG_DEVICE_DRAM)
            has_processor = true;
        else
            has_other = true;
    }
    for (size_t i = 0; i < report->backend_count; i++) {
        const struct wg_backend_info *backend = report->backends[i];
        if (!is_told(backend, has_processor, has_other))
            continue;
        bool is_said = false;
        for (size_t j = 0; j < i && !is_said; j++)
            is_said = is_told(report->backends[j], has_processor, has_other) &&
                      strcmp(report->backends[j]->text, backend->text) == 0;
        if (is_said)
            continue;
        wg__append_plain(out, backend->name);
        for (size_t j = i + 1; j < report->backend_count; j++) {
            if (is_told(report->backends[j], has_processor, has_other) &&
                strcmp(report->backends[j]->text, backend->text) == 0) {
                wg__buffer_puts(out, ", ");
                wg__append_plain(out, report->backends[j]->name);
            }
        }
        wg__buffer_puts(out, ": n/a: ");
        append_short_reason(out, backend->text, backend->remedy);
    }
}

static uint32_t flags_of(const struct wg_measure_report *report, int device)
{
    uint32_t flags = 0;
    for (size_t i = 0; i < report->run_count; i++)
        flags |= result_of(report, i, device)->flags;
    return flags;
}

/* Each flag that is set somewhere, explained once. */
static void append_legend(const struct wg_measure_report *report, struct wg_buffer *out)
{
    uint32_t flags = flags_of(report, WG_MEASURE_TOTAL);
    for (size_t i = 0; i < report->device_count; i++)
        flags |= flags_of(report, (int)i);
    for (unsigned bit = 0; bit < 32; bit++)
        if ((flags >> bit & 1u) != 0 && wg_window_flag_key(1u << bit) != NULL)
            wg__buffer_printf(out, "%s: %s\n", wg_window_flag_key(1u << bit),
                              wg_window_flag_help(1u << bit));
}

void wg__measure_text(const struct wg_measure_report *report, bool with_color,
                      struct wg_buffer *out)
{
    wg__buffer_puts(out, "\nenergy of ");
    if (report->command != NULL)
        append_command(report, out);
    else
        wg__buffer_puts(out, "this machine");
    wg__buffer_puts(out, "\n\n");
    if (report->run_count > 1)
        append_spread_table(report, with_color, out);
    else if (report->run_count == 1)
        append_run_table(report, with_color, out);
    if (report->run_count > 0)
        append_time(report, out);
    wg__buffer_puts(out, "\n");
    append_names(report, out);
    append_troubles(report, out);
    append_missing(report, out);
    append_backends(report, out);
    append_legend(report, out);
}
