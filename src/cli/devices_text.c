/* SPDX-License-Identifier: MIT
 *
 * `wattgov devices` for people: a block a device, then what was not found and why.
 *
 *     gpu0  NVIDIA H100 80GB HBM3
 *       GPU-..., 0000:1a:00.0, driver 550.54.15, hopper, 80.0 GiB
 *       meter    now      source     every   mean over
 *       knob     now      range      preset  may be set
 *       missing: module_power_w, ...: not supported (3)
 *
 * A device lacks many things for few reasons, so those are lines with the reason, once.
 */
#include "cli/devices_report.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "base/buffer.h"
#include "cli/duration.h"
#include "cli/markup.h"
#include "cli/quantity.h"
#include "cli/table.h"
#include "device/sample.h"

enum { LINE_COLUMNS = 98 };

static const char indent[] = "  ";

/* Appends the lines of `text`, each behind an indent. */
static void append_indented(struct wg_buffer *out, const struct wg_buffer *text)
{
    out->failed |= text->failed;
    for (const char *line = text->length > 0 ? text->data : ""; *line != '\0';) {
        const size_t length = strcspn(line, "\n");
        wg__buffer_puts(out, indent);
        wg__buffer_append(out, line, length);
        wg__buffer_puts(out, "\n");
        line += length + (line[length] == '\n');
    }
}

static void append_table(struct wg_table *table, bool with_color, struct wg_buffer *out)
{
    struct wg_buffer text;
    wg__buffer_init(&text);
    if (table->cell_count > 0 || table->failed) {
        wg__table_write(table, with_color, &text);
        wg__buffer_puts(out, "\n");
    }
    append_indented(out, &text);
    wg__buffer_fini(&text);
    wg__table_fini(table);
}

/* A fact of the line of identity, behind a comma. */
static void append_fact(struct wg_buffer *out, const char *before, const char *fact)
{
    if (fact == NULL)
        return;
    wg__buffer_puts(out, ", ");
    wg__buffer_puts(out, before);
    wg__append_plain(out, fact);
}

static void append_identity(const struct wg_device_info *info, struct wg_buffer *out)
{
    char text[WG_QUANTITY_TEXT_SIZE];
    wg__buffer_puts(out, indent);
    wg__append_plain(out, info->id);
    if (info->pci != NULL && strcmp(info->pci, info->id) != 0)
        append_fact(out, "", info->pci);
    append_fact(out, "driver ", info->driver);
    append_fact(out, "", info->architecture);
    if (info->memory_bytes != 0) {
        wg__bytes_text(text, (double)info->memory_bytes);
        append_fact(out, "", text);
    }
    if (info->numa_node != UINT_MAX)
        wg__buffer_printf(out, ", NUMA node %u", info->numa_node);
    append_fact(out, "by ", info->backend);
    if (strcmp(info->backend, "nvml") == 0)
        append_fact(out, "persistence ", info->is_persistent ? "on" : "off");
    if (!info->counts_in_total)
        append_fact(out, "", "part of another device, not counted in totals");
    wg__buffer_puts(out, "\n");
    if (info->is_mig) {
        wg__buffer_printf(out, "%sMIG: power and energy are those of all %zu instances together\n",
                          indent, info->mig_count);
        for (size_t i = 0; i < info->mig_count; i++) {
            wg__buffer_printf(out, "%s%s", indent, indent);
            wg__append_plain(out, info->mig_uuids[i]);
            wg__buffer_puts(out, "\n");
        }
    }
}

/* A span of time, or nothing where it is unknown. */
static void span_cell(struct wg_table *table, double seconds)
{
    char text[WG_DURATION_TEXT_SIZE] = "";
    if (seconds > 0)
        wg__format_duration(text, seconds);
    wg__table_cell(table, "%s", text);
}

static void add_meter(struct wg_table *table, enum wg_metric metric,
                      const struct wg_meter_info *meter, const struct wg_sample *sample)
{
    char value[WG_QUANTITY_TEXT_SIZE], step[WG_QUANTITY_TEXT_SIZE];
    const bool has_value = wg__sample_has(sample, metric);
    wg__metric_text(value, metric, has_value ? sample->values[metric] : (double)NAN);
    wg__metric_step_text(step, metric, meter->resolution);
    wg__table_cell(table, "%s", wg_metric_key(metric));
    wg__table_cell(table, "%s", value);
    wg__table_cell(table, "%s", step);
    span_cell(table, meter->update_period_s);
    span_cell(table, meter->averaging_window_s);
    wg__table_cell(table, "%s", meter->source);
}

static void append_meters(const struct wg_device_info *info, const struct wg_sample *sample,
                          bool with_color, struct wg_buffer *out)
{
    static const struct wg_table_column columns[] = {
        {"meter", WG_ALIGN_LEFT},  {"now", WG_ALIGN_RIGHT},       {"step", WG_ALIGN_RIGHT},
        {"every", WG_ALIGN_RIGHT}, {"mean over", WG_ALIGN_RIGHT}, {"source", WG_ALIGN_LEFT}};
    struct wg_table table;
    wg__table_init(&table, columns, sizeof columns / sizeof *columns);
    for (int i = 0; i < WG_METRIC_COUNT; i++)
        if (info->meters[i].is_present)
            add_meter(&table, (enum wg_metric)i, &info->meters[i], sample);
    append_table(&table, with_color, out);
}

/* "no: no permission (4); run as root" */
static void writable_cell(struct wg_table *table, const struct wg_knob_info *knob)
{
    if (knob->is_writable)
        wg__table_cell(table, "yes");
    else
        wg__table_cell(table, "no%s%s%s%s", knob->why_not != NULL ? ": " : "",
                       knob->why_not != NULL ? knob->why_not : "", knob->remedy != NULL ? "; " : "",
                       knob->remedy != NULL ? knob->remedy : "");
}

static void add_knob(struct wg_table *table, enum wg_knob key, const struct wg_knob_info *knob)
{
    char text[WG_QUANTITY_TEXT_SIZE], max[WG_QUANTITY_TEXT_SIZE];
    wg__table_cell(table, "%s", wg_knob_key(key));
    wg__knob_text(text, key, knob->current);
    wg__table_cell(table, "%s", text);
    wg__knob_text(text, key, knob->min);
    wg__knob_text(max, key, knob->max);
    if (knob->levels != NULL)
        wg__table_cell(table, "%s .. %s, %zu levels", text, max, knob->level_count);
    else
        wg__table_cell(table, "%s .. %s", text, max);
    wg__knob_text(text, key, knob->preset);
    wg__table_cell(table, "%s", text);
    writable_cell(table, knob);
}

static void append_knobs(const struct wg_device_info *info, bool with_color, struct wg_buffer *out)
{
    static const struct wg_table_column columns[] = {{"knob", WG_ALIGN_LEFT},
                                                     {"now", WG_ALIGN_RIGHT},
                                                     {"range", WG_ALIGN_RIGHT},
                                                     {"preset", WG_ALIGN_RIGHT},
                                                     {"may be set", WG_ALIGN_LEFT}};
    struct wg_table table;
    wg__table_init(&table, columns, sizeof columns / sizeof *columns);
    for (int i = 0; i < WG_KNOB_COUNT; i++)
        if (info->knobs[i].is_present)
            add_knob(&table, (enum wg_knob)i, &info->knobs[i]);
    append_table(&table, with_color, out);
}

/* What is missing: meters first, then knobs. */
#define MISSING_MAX ((size_t)WG_METRIC_COUNT + (size_t)WG_KNOB_COUNT)

struct missing {
    const char *key;
    const char *why_not;
    const char *remedy;
    bool is_said;
};

static size_t find_missing(const struct wg_device_info *info, struct missing *missing)
{
    size_t count = 0;
    for (int i = 0; i < WG_METRIC_COUNT; i++)
        if (!info->meters[i].is_present)
            missing[count++] = (struct missing){.key = wg_metric_key((enum wg_metric)i),
                                                .why_not = info->meters[i].why_not,
                                                .remedy = info->meters[i].remedy};
    for (int i = 0; i < WG_KNOB_COUNT; i++)
        if (!info->knobs[i].is_present)
            missing[count++] = (struct missing){.key = wg_knob_key((enum wg_knob)i),
                                                .why_not = info->knobs[i].why_not,
                                                .remedy = info->knobs[i].remedy};
    return count;
}

static bool is_same(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

/* Appends a line, in several where it is long: the later ones are indented twice. */
static void append_wrapped(const struct wg_buffer *text, struct wg_buffer *out)
{
    out->failed |= text->failed;
    size_t column = 0;
    for (const char *at = text->length > 0 ? text->data : ""; *at != '\0';) {
        const size_t length = strcspn(at, " ");
        struct wg_buffer word;
        wg__buffer_init(&word);
        wg__buffer_append(&word, at, length);
        const size_t width = word.failed ? length : wg__text_width(word.data);
        if (column == 0 || column + 1 + width > LINE_COLUMNS) {
            wg__buffer_printf(out, "%s%s%s", column > 0 ? "\n" : "", indent,
                              column > 0 ? indent : "");
            column = (column > 0 ? 2 : 1) * strlen(indent);
        } else {
            wg__buffer_puts(out, " ");
            column++;
        }
        wg__buffer_append(out, at, length);
        column += width;
        out->failed |= word.failed;
        wg__buffer_fini(&word);
        at += length;
        at += strspn(at, " ");
    }
    wg__buffer_puts(out, "\n");
}

static void append_reason(const struct missing *missing, struct wg_buffer *out)
{
    wg__buffer_puts(out, ": ");
    wg__append_reason(out, missing->why_not != NULL ? missing->why_not : "unknown cause",
                      missing->remedy);
}

static void append_missing(const struct wg_device_info *info, bool is_detailed,
                           struct wg_buffer *out)
{
    struct missing missing[MISSING_MAX];
    const size_t count = find_missing(info, missing);
    if (count > 0)
        wg__buffer_puts(out, "\n");
    for (size_t i = 0; i < count; i++) {
        if (missing[i].is_said)
            continue;
        struct wg_buffer line;
        wg__buffer_init(&line);
        wg__buffer_printf(&line, "missing: %s", missing[i].key);
        for (size_t j = i + 1; j < count && !is_detailed; j++) {
            if (is_same(missing[i].why_not, missing[j].why_not) &&
                is_same(missing[i].remedy, missing[j].remedy)) {
                missing[j].is_said = true;
                wg__buffer_printf(&line, ", %s", missing[j].key);
            }
        }
        append_reason(&missing[i], &line);
        append_wrapped(&line, out);
        wg__buffer_fini(&line);
    }
}

static void append_throttle(const struct wg_sample *sample, struct wg_buffer *out)
{
    if (!sample->has_throttle || sample->throttle == 0)
        return;
    wg__buffer_printf(out, "%sclock held down by: ", indent);
    bool is_first = true;
    for (unsigned bit = 0; bit < 32; bit++) {
        const char *text = (sample->throttle >> bit & 1u) != 0
                               ? wg_throttle_text((enum wg_throttle)(1u << bit))
                               : NULL;
        if (text != NULL)
            wg__buffer_printf(out, "%s%s", is_first ? "" : ", ", text);
        is_first &= text == NULL;
    }
    wg__buffer_puts(out, "\n");
}

static void append_processes(const struct wg_device_info *info, const struct wg_device_look *look,
                             bool with_color, struct wg_buffer *out)
{
    static const struct wg_table_column columns[] = {
        {"process", WG_ALIGN_RIGHT}, {"memory", WG_ALIGN_RIGHT}, {"name", WG_ALIGN_LEFT}};
    if (info->kind != WG_DEVICE_GPU)
        return;
    if (look->process_trouble != NULL || look->process_count == 0) {
        wg__buffer_printf(out, "\n%sprocesses: ", indent);
        wg__append_plain(out, look->process_trouble != NULL ? look->process_trouble : "none");
        wg__buffer_puts(out, "\n");
        return;
    }
    struct wg_table table;
    wg__table_init(&table, columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < look->process_count; i++) {
        const struct wg_process_line *line = &look->processes[i];
        char memory[WG_QUANTITY_TEXT_SIZE] = "n/a";
        if (line->process.memory_bytes != UINT64_MAX)
            wg__bytes_text(memory, (double)line->process.memory_bytes);
        wg__table_cell(&table, "%u", line->process.pid);
        wg__table_cell(&table, "%s", memory);
        wg__table_cell(&table, "%s", line->name);
    }
    append_table(&table, with_color, out);
}

static void append_device(const struct wg_devices_report *report, size_t position, bool with_color,
                          struct wg_buffer *out)
{
    const struct wg_device_info *info = report->infos[position];
    const struct wg_device_look *look = &report->looks[position];
    wg__buffer_puts(out, position > 0 ? "\n" : "");
    wg__buffer_puts(out, with_color ? "\033[1m" : "");
    wg__append_plain(out, info->label);
    wg__buffer_puts(out, with_color ? "\033[0m  " : "  ");
    wg__append_plain(out, info->name);
    wg__buffer_puts(out, "\n");
    append_identity(info, out);
    const char *trouble = info->state != WG_OK ? info->state_text : look->trouble;
    if (trouble != NULL) {
        wg__buffer_printf(out, "%snot answering: ", indent);
        wg__append_plain(out, trouble);
        wg__buffer_puts(out, "\n");
    }
    append_throttle(&look->sample, out);
    append_meters(info, &look->sample, with_color, out);
    append_knobs(info, with_color, out);
    append_missing(info, report->is_detailed, out);
    if (report->has_processes)
        append_processes(info, look, with_color, out);
}

/* Backends that found nothing, or failed. */
static void append_backends(const struct wg_devices_report *report, struct wg_buffer *out)
{
    bool is_first = true;
    for (size_t i = 0; i < report->backend_count; i++) {
        const struct wg_backend_info *backend = report->backends[i];
        if (backend->state == WG_OK)
            continue;
        wg__buffer_puts(out, is_first && report->device_count > 0 ? "\n" : "");
        is_first = false;
        wg__append_plain(out, backend->name);
        wg__buffer_puts(out, backend->state == WG_ENODEV ? ": none: " : ": failed: ");
        wg__append_reason(out, backend->text, backend->remedy);
        wg__buffer_puts(out, "\n");
    }
}

void wg__devices_text(const struct wg_devices_report *report, bool with_color,
                      struct wg_buffer *out)
{
    for (size_t i = 0; i < report->device_count; i++)
        append_device(report, i, with_color, out);
    if (report->device_count == 0)
        wg__buffer_puts(out, "Nothing on this machine can be measured:\n");
    append_backends(report, out);
}
