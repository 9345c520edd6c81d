/* SPDX-License-Identifier: MIT
 *
 * What the numbers of a trace mean, and taking a part of it.
 *
 * Variance over a minute needs no second pass: the sums of counts and of their squares are whole
 * numbers, so adding the second that enters and subtracting the one that leaves is exact.
 *
 * Owns: see the header.    Threads: one at a time.
 */
#include "schedule/arrival_trace.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "math/statistics.h"
#include "schedule/arrival_reader.h"

enum { MINUTE = 60, YEAR = 366 * 86400 };

/* Beyond these a double no longer tells neighbours apart. */
#define LENGTH_MIN_S 1e-6
#define LENGTH_MAX_S 1e12

/* -- Making one ---------------------------------------------------------------------------- */

/* Takes over the values. */
static enum wg_code make_moments(struct wg_arrival_trace *trace, struct wg_arrival_numbers *numbers,
                                 const char *name, struct wg_error *err)
{
    double *moments_s = numbers->values;
    const size_t count = numbers->count;
    if (numbers->fall_line != 0)
        wg__sort(moments_s, count);
    const double first_s = moments_s[0];
    const double span_s = moments_s[count - 1] - first_s;
    if (!(span_s >= LENGTH_MIN_S && span_s <= LENGTH_MAX_S))
        return wg__fail(err, WG_EDATA,
                        "%s:%zu: %zu moment%s over %g s, expected two that differ by %g to %g s",
                        name, numbers->last_line, count, count == 1 ? "" : "s", span_s,
                        LENGTH_MIN_S, LENGTH_MAX_S);
    for (size_t i = 0; i < count; i++)
        moments_s[i] -= first_s;
    *trace = (struct wg_arrival_trace){
        .count = count,
        .moments_s = moments_s,
        .requests = (double)count,
        .length_s = span_s * (double)count / (double)(count - 1),
    };
    numbers->values = NULL;
    return WG_OK;
}

/* Gap i lies behind request i, so that the last one leads back to the first. */
static enum wg_code make_gaps(struct wg_arrival_trace *trace, struct wg_arrival_numbers *numbers,
                              const char *name, struct wg_error *err)
{
    if (numbers->negative_line != 0)
        return wg__fail(err, WG_EDATA,
                        "%s:%zu: %g is no time between two requests, expected 0 s or more", name,
                        numbers->negative_line, numbers->negative);
    double moment_s = 0.0;
    for (size_t i = 0; i < numbers->count; i++) {
        const double gap_s = numbers->values[i];
        numbers->values[i] = moment_s;
        moment_s += gap_s;
    }
    if (!(moment_s >= LENGTH_MIN_S && moment_s <= LENGTH_MAX_S))
        return wg__fail(err, WG_EDATA,
                        "%s:%zu: the times between requests add up to %g s, expected %g to %g s",
                        name, numbers->last_line, moment_s, LENGTH_MIN_S, LENGTH_MAX_S);
    *trace = (struct wg_arrival_trace){
        .count = numbers->count,
        .moments_s = numbers->values,
        .requests = (double)numbers->count,
        .length_s = moment_s,
    };
    numbers->values = NULL;
    return WG_OK;
}

/* Removes runs of at least `skip_s` zeros; the number of seconds left. */
static size_t skip_gaps(uint32_t *counts, size_t count, double skip_s)
{
    size_t kept = 0;
    size_t zeros = 0; /* of the run that ends at the present second: kept until it is too long */
    for (size_t i = 0; i <= count; i++) {
        if (i < count && counts[i] == 0) {
            zeros++;
        } else {
            if ((double)zeros >= skip_s)
                kept -= zeros;
            zeros = 0;
        }
        if (i < count)
            counts[kept++] = counts[i];
    }
    return kept;
}

static enum wg_code make_counts(struct wg_arrival_trace *trace, struct wg_arrival_numbers *numbers,
                                const struct wg_arrival_reading *reading, const char *name,
                                struct wg_error *err)
{
    if (numbers->not_count_line != 0)
        return wg__fail(
            err, WG_EDATA,
            "%s:%zu: %g is no count of requests in a second, expected a whole number from 0 to 1e9",
            name, numbers->not_count_line, numbers->not_count);
    uint32_t *counts = wg__alloc(numbers->count * sizeof *counts);
    if (counts == NULL)
        return wg__fail(err, WG_ENOMEM, "%s: out of memory", name);
    double requests = 0.0;
    for (size_t i = 0; i < numbers->count; i++) {
        counts[i] = (uint32_t)numbers->values[i];
        requests += numbers->values[i];
    }
    if (requests == 0.0) {
        wg__free(counts);
        return wg__fail(err, WG_EDATA, "%s:%zu: no second has a request, expected one at least",
                        name, numbers->last_line);
    }
    double skip_s = reading->skip_s;
    if (skip_s < 0.0)
        skip_s = fmax(10.0, 300.0 * (double)numbers->count / requests);
    size_t count = numbers->count;
    if (skip_s > 0.0 && !numbers->has_seconds)
        count = skip_gaps(counts, count, skip_s);
    *trace = (struct wg_arrival_trace){
        .is_counts = true,
        .count = count,
        .counts = counts,
        .requests = requests,
        .length_s = (double)count,
    };
    return WG_OK;
}

/* What text without a header holds. */
static enum wg_code guess_kind(const struct wg_arrival_numbers *numbers, const char *name,
                               enum wg_arrival_kind *out, struct wg_error *err)
{
    const bool differs = numbers->values[0] != numbers->values[numbers->count - 1];
    if (numbers->fall_line == 0 && (differs || numbers->not_count_line != 0))
        *out = WG_ARRIVAL_MOMENTS;
    else if (numbers->not_count_line == 0)
        *out = WG_ARRIVAL_COUNTS;
    else
        return wg__fail(err, WG_EDATA,
                        "%s:%zu: numbers that fall, and %g on line %zu that is no count: say "
                        "as=moments or as=gaps",
                        name, numbers->fall_line, numbers->not_count, numbers->not_count_line);
    return WG_OK;
}

static enum wg_code read_input(struct wg_arrival_trace *out, const struct wg_arrival_input *input,
                               const struct wg_arrival_reading *reading, struct wg_error *err)
{
    struct wg_arrival_numbers numbers;
    enum wg_code code = wg__arrival_numbers_read(&numbers, input, err);
    if (code != WG_OK)
        return code;
    enum wg_arrival_kind kind = reading->as != WG_ARRIVAL_AUTO ? reading->as : numbers.kind;
    if (kind == WG_ARRIVAL_AUTO)
        code = guess_kind(&numbers, input->path, &kind, err);
    if (code == WG_OK && kind == WG_ARRIVAL_COUNTS)
        code = make_counts(out, &numbers, reading, input->path, err);
    else if (code == WG_OK && kind == WG_ARRIVAL_GAPS)
        code = make_gaps(out, &numbers, input->path, err);
    else if (code == WG_OK)
        code = make_moments(out, &numbers, input->path, err);
    wg__arrival_numbers_fini(&numbers);
    return code;
}

enum wg_code wg__arrival_trace_read(struct wg_arrival_trace *out, const char *path,
                                    const struct wg_arrival_reading *reading, struct wg_error *err)
{
    return read_input(out, &(struct wg_arrival_input){.path = path}, reading, err);
}

enum wg_code wg__arrival_trace_read_memory(struct wg_arrival_trace *out, const char *name,
                                           const char *bytes, size_t length,
                                           const struct wg_arrival_reading *reading,
                                           struct wg_error *err)
{
    const struct wg_arrival_input input = {.path = name, .bytes = bytes, .length = length};
    return read_input(out, &input, reading, err);
}

void wg__arrival_trace_fini(struct wg_arrival_trace *trace)
{
    wg__free(trace->moments_s);
    wg__free(trace->counts);
    *trace = (struct wg_arrival_trace){0};
}

/* -- Taking a part ------------------------------------------------------------------------- */

size_t wg__arrival_trace_find(const struct wg_arrival_trace *trace, double at_s)
{
    size_t low = 0;
    size_t high = trace->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (trace->moments_s[middle] < at_s)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static enum wg_code fail_empty(double from_s, double to_s, struct wg_error *err)
{
    return wg__fail(err, WG_EINVAL, "window %g:%g: no request of the trace is in it", from_s, to_s);
}

static enum wg_code cut_counts(struct wg_arrival_trace *trace, double from_s, double to_s,
                               struct wg_error *err)
{
    if (from_s != floor(from_s) || to_s != floor(to_s))
        return wg__fail(err, WG_EINVAL,
                        "window %g:%g: the trace has counts a second, expected whole seconds",
                        from_s, to_s);
    const size_t first = (size_t)from_s;
    const size_t count = (size_t)to_s - first;
    double requests = 0.0;
    for (size_t i = 0; i < count; i++)
        requests += trace->counts[first + i];
    if (requests == 0.0)
        return fail_empty(from_s, to_s, err);
    memmove(trace->counts, trace->counts + first, count * sizeof *trace->counts);
    trace->count = count;
    trace->requests = requests;
    return WG_OK;
}

static enum wg_code cut_moments(struct wg_arrival_trace *trace, double from_s, double to_s,
                                struct wg_error *err)
{
    const size_t first = wg__arrival_trace_find(trace, from_s);
    const size_t count = wg__arrival_trace_find(trace, to_s) - first;
    if (count == 0)
        return fail_empty(from_s, to_s, err);
    for (size_t i = 0; i < count; i++)
        trace->moments_s[i] = trace->moments_s[first + i] - from_s;
    trace->count = count;
    trace->requests = (double)count;
    return WG_OK;
}

enum wg_code wg__arrival_trace_cut(struct wg_arrival_trace *trace, double from_s, double to_s,
                                   struct wg_error *err)
{
    if (!(from_s >= 0.0 && from_s < to_s && to_s <= ceil(trace->length_s)))
        return wg__fail(err, WG_EINVAL,
                        "window %g:%g: expected a part of 0:%g, the trace's seconds", from_s, to_s,
                        floor(trace->length_s));
    const enum wg_code code = trace->is_counts ? cut_counts(trace, from_s, to_s, err)
                                               : cut_moments(trace, from_s, to_s, err);
    if (code == WG_OK)
        trace->length_s = to_s - from_s;
    return code;
}

/* Of a trace of moments, in its first `seconds`. */
static uint32_t *count_seconds(const struct wg_arrival_trace *trace, size_t seconds)
{
    uint32_t *counts = wg__alloc_zeroed(seconds, sizeof *counts);
    if (counts == NULL)
        return NULL;
    const size_t count = wg__arrival_trace_find(trace, (double)seconds);
    for (size_t i = 0; i < count; i++)
        counts[(size_t)trace->moments_s[i]]++;
    return counts;
}

static size_t find_burstiest(const uint32_t *counts, size_t seconds)
{
    unsigned __int128 best = 0;
    uint64_t sum = 0;
    unsigned __int128 squares = 0;
    size_t at = 0;
    for (size_t i = 0; i < seconds; i++) {
        sum += counts[i];
        squares += (unsigned __int128)counts[i] * counts[i];
        if (i + 1 < MINUTE)
            continue;
        const size_t first = i + 1 - MINUTE;
        /* 60^2 times the variance. */
        const unsigned __int128 spread = MINUTE * squares - (unsigned __int128)sum * sum;
        if (spread > best) {
            best = spread;
            at = first;
        }
        sum -= counts[first];
        squares -= (unsigned __int128)counts[first] * counts[first];
    }
    return at;
}

enum wg_code wg__arrival_trace_burstiest(const struct wg_arrival_trace *trace, double *from_s_out,
                                         struct wg_error *err)
{
    if (trace->length_s < (double)MINUTE)
        return wg__fail(err, WG_EINVAL,
                        "window burstiest: the trace lasts %g s, expected a minute at least",
                        trace->length_s);
    if (trace->length_s > (double)YEAR)
        return wg__fail(err, WG_EINVAL,
                        "window burstiest: the trace lasts %g s, expected at most a year",
                        trace->length_s);
    const size_t seconds = (size_t)trace->length_s;
    uint32_t *counts = trace->is_counts ? trace->counts : count_seconds(trace, seconds);
    if (counts == NULL)
        return wg__fail(err, WG_ENOMEM, "window burstiest: out of memory");
    *from_s_out = (double)find_burstiest(counts, seconds);
    if (!trace->is_counts)
        wg__free(counts);
    return WG_OK;
}

enum wg_code wg__arrival_trace_count(struct wg_arrival_trace *trace, struct wg_error *err)
{
    if (trace->is_counts)
        return WG_OK;
    const double length_s = ceil(trace->length_s);
    if (length_s > (double)WG_ARRIVALS_MAX)
        return wg__fail(err, WG_EINVAL,
                        "by count: the trace lasts %g s, expected at most %d to multiply requests "
                        "in",
                        trace->length_s, WG_ARRIVALS_MAX);
    const size_t seconds = (size_t)length_s;
    uint32_t *counts = count_seconds(trace, seconds);
    if (counts == NULL)
        return wg__fail(err, WG_ENOMEM, "by count: out of memory");
    /* A moment may be the very end. */
    counts[seconds - 1] += (uint32_t)(trace->count - wg__arrival_trace_find(trace, length_s));
    wg__free(trace->moments_s);
    trace->moments_s = NULL;
    trace->counts = counts;
    trace->is_counts = true;
    trace->count = seconds;
    trace->length_s = length_s;
    return WG_OK;
}

void wg__arrival_trace_spread(struct wg_arrival_trace *trace, double spread_s, struct wg_rng *rng)
{
    if (trace->is_counts || !(spread_s > 0.0))
        return;
    const double last_s = trace->moments_s[trace->count - 1];
    for (size_t i = 0; i < trace->count; i++)
        trace->moments_s[i] += spread_s * wg__rng_uniform(rng);
    wg__sort(trace->moments_s, trace->count);
    trace->length_s = last_s + spread_s;
}
