/* SPDX-License-Identifier: MIT
 *
 * Samples as CSV; see measure_csv.h.
 */
#include "cli/measure_csv.h"

#include <errno.h>
#include <math.h>

#include "base/alloc.h"
#include "base/csv_write.h"
#include "base/error.h"
#include "base/number.h"
#include "device/sample.h"

static enum wg_code fail_write(struct wg_measure_csv *csv, struct wg_error *err)
{
    const int number = errno;
    if (csv->file != NULL)
        (void)fclose(csv->file);
    csv->file = NULL;
    return wg__fail_errno(err, number, "%s: cannot write", csv->path);
}

enum wg_code wg__measure_csv_open(struct wg_measure_csv *csv, const char *path, size_t device_count,
                                  struct wg_error *err)
{
    *csv = (struct wg_measure_csv){.path = path, .device_count = device_count};
    wg__buffer_init(&csv->rows);
    if (path == NULL)
        return WG_OK;
    csv->newest_ns = wg__alloc_zeroed(device_count + 1, sizeof *csv->newest_ns);
    if (csv->newest_ns == NULL)
        return wg__fail(err, WG_ENOMEM, "%s: out of memory", path);
    csv->file = fopen(path, "we");
    if (csv->file == NULL)
        return wg__fail_errno(err, errno, "%s: cannot open", path);
    wg__buffer_puts(&csv->rows, "run,t_s,device");
    for (int i = 0; i < WG_METRIC_COUNT; i++)
        wg__buffer_printf(&csv->rows, ",%s", wg_metric_key((enum wg_metric)i));
    wg__buffer_puts(&csv->rows, ",throttle\n");
    return wg__measure_csv_flush(csv, err);
}

static void append_throttle(struct wg_buffer *out, const struct wg_sample *sample)
{
    wg__buffer_puts(out, ",");
    if (!sample->has_throttle)
        return;
    bool is_first = true;
    for (unsigned bit = 0; bit < 32; bit++) {
        const char *text = (sample->throttle >> bit & 1u) != 0
                               ? wg_throttle_text((enum wg_throttle)(1u << bit))
                               : NULL;
        if (text == NULL)
            continue;
        wg__buffer_printf(out, "%s%s", is_first ? "" : ";", text);
        is_first = false;
    }
}

/* Drivers count in thousandths and millionths; in SI units those become binary fractions, with
 * digits at their end that nobody measured. */
static double without_noise(double value)
{
    const double per_unit = 1e6;
    return fabs(value) < 1e9 ? round(value * per_unit) / per_unit : round(value);
}

void wg__measure_csv_add(struct wg_measure_csv *csv, size_t run, size_t device, const char *label,
                         const struct wg_sample *sample)
{
    if (csv->file == NULL || sample->t_ns <= csv->newest_ns[device] || csv->start_ns == 0 ||
        sample->t_ns < csv->start_ns)
        return;
    csv->newest_ns[device] = sample->t_ns;
    struct wg_buffer *out = &csv->rows;
    wg__buffer_printf(out, "%zu,%.6f", run, (double)(sample->t_ns - csv->start_ns) / 1e9);
    wg__buffer_puts(out, ",");
    wg__csv_put(out, label);
    for (int i = 0; i < WG_METRIC_COUNT; i++) {
        char text[WG_DOUBLE_TEXT_SIZE] = "";
        if (wg__sample_has(sample, (enum wg_metric)i))
            wg__format_double(text, without_noise(sample->values[i]));
        wg__buffer_printf(out, ",%s", text);
    }
    append_throttle(out, sample);
    wg__buffer_puts(out, "\n");
}

enum wg_code wg__measure_csv_flush(struct wg_measure_csv *csv, struct wg_error *err)
{
    if (csv->file == NULL || (csv->rows.length == 0 && !csv->rows.failed))
        return WG_OK;
    if (csv->rows.failed) {
        errno = ENOMEM;
        return fail_write(csv, err);
    }
    if (fwrite(csv->rows.data, 1, csv->rows.length, csv->file) != csv->rows.length ||
        fflush(csv->file) != 0)
        return fail_write(csv, err);
    csv->rows.length = 0;
    return WG_OK;
}

enum wg_code wg__measure_csv_close(struct wg_measure_csv *csv, struct wg_error *err)
{
    enum wg_code code = wg__measure_csv_flush(csv, err);
    if (csv->file != NULL && fclose(csv->file) != 0) {
        csv->file = NULL;
        code = fail_write(csv, err);
    }
    csv->file = NULL;
    wg__free(csv->newest_ns);
    csv->newest_ns = NULL;
    wg__buffer_fini(&csv->rows);
    return code;
}
