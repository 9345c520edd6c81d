/* SPDX-License-Identifier: MIT
 *
 * libFuzzer entry of arrivals: the first byte says what the file is taken for, the next two where a
 * window lies, the rest is the file. An input that begins with '=' is the text of an option
 * instead.
 *
 * A trace that was read has requests, moments in order within its length, and counts that add up;
 * parts of it keep that. An error is one printable line.
 *
 *     CC=clang-19 meson setup build/fuzz -Dfuzz=true && ninja -C build/fuzz
 * tests/fuzz/fuzz_arrivals build/fuzz/tests/fuzz/fuzz_arrivals -max_total_time=60 NEW_FOLDER
 * tests/fuzz/corpus/arrivals
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "schedule/arrival_trace.h"
#include "schedule/arrivals.h"

/* libFuzzer prescribes the name. NOLINTNEXTLINE(readability-identifier-naming) */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool fact)
{
    if (!fact)
        abort();
}

static void check_error(enum wg_code code, const struct wg_error *err)
{
    require(err->code == code && err->text[0] != '\0');
    require(strpbrk(err->text, "\n\r\x1B") == NULL);
}

static void check_trace(const struct wg_arrival_trace *trace)
{
    require(trace->requests >= 1.0 && trace->length_s > 0.0 && isfinite(trace->length_s));
    double requests = 0.0;
    for (size_t i = 0; i < trace->count; i++) {
        requests += trace->is_counts ? trace->counts[i] : 1;
        if (!trace->is_counts)
            require(trace->moments_s[i] >= (i == 0 ? 0.0 : trace->moments_s[i - 1]) &&
                    trace->moments_s[i] <= trace->length_s);
    }
    require(requests == trace->requests);
    require(!trace->is_counts || trace->length_s == (double)trace->count);
}

static void try_trace(const char *bytes, size_t length, const struct wg_arrival_reading *reading,
                      double from_s, double to_s)
{
    struct wg_arrival_trace trace = {0};
    struct wg_error err = {0};
    enum wg_code code = wg__arrival_trace_read_memory(&trace, "fuzz", bytes, length, reading, &err);
    if (code != WG_OK) {
        require(code == WG_EDATA);
        check_error(code, &err);
        return;
    }
    check_trace(&trace);
    code = wg__arrival_trace_burstiest(&trace, &from_s, &err);
    require(code != WG_OK || from_s + 60.0 <= trace.length_s);
    if (code == WG_OK && to_s <= from_s)
        to_s = from_s + 60.0;
    code = wg__arrival_trace_cut(&trace, from_s, to_s, &err);
    if (code != WG_OK)
        check_error(code, &err);
    check_trace(&trace);
    struct wg_rng rng;
    wg__rng_init(&rng, 1);
    wg__arrival_trace_spread(&trace, to_s, &rng);
    check_trace(&trace);
    if (trace.length_s < 1e6) {
        require(wg__arrival_trace_count(&trace, &err) == WG_OK && trace.is_counts);
        check_trace(&trace);
    }
    wg__arrival_trace_fini(&trace);
}

/* An option; whatever file it names is not there. */
static void try_text(const char *text)
{
    struct wg_arrivals *arrivals = NULL;
    struct wg_error err = {0};
    struct wg_rng rng;
    wg__rng_init(&rng, 1);
    const enum wg_code code = wg__arrivals_open(&arrivals, text, &rng, &err);
    if (code != WG_OK) {
        check_error(code, &err);
        return;
    }
    double last_s = 0.0;
    for (unsigned i = 0; i < 100; i++) {
        const double moment_s = wg__arrivals_next(arrivals);
        require(moment_s >= last_s);
        last_s = moment_s;
    }
    require(wg__arrivals_rate(arrivals) > 0.0);
    wg__arrivals_close(arrivals);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 3)
        return 0;
    if (data[0] == '=') {
        char text[256] = "";
        const size_t length = size - 1 < sizeof text - 1 ? size - 1 : sizeof text - 1;
        memcpy(text, data + 1, length);
        /* A trace may be any file of this machine: only those in a folder that is none. */
        if (strncmp(text, "trace:", 6) != 0 || strncmp(text, "trace:/nowhere/", 15) == 0)
            try_text(text);
        return 0;
    }
    const int skip_s = data[0] / WG_ARRIVAL_KIND_COUNT - 1;
    const struct wg_arrival_reading reading = {
        .as = (enum wg_arrival_kind)(data[0] % WG_ARRIVAL_KIND_COUNT),
        .skip_s = skip_s,
    };
    try_trace((const char *)data + 3, size - 3, &reading, data[1] / 4.0, data[2] / 2.0);
    return 0;
}
