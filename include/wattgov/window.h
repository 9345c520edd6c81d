/* SPDX-License-Identifier: MIT
 *
 * Windows: energy and time between two moments, with how far they can be trusted.
 *
 *     struct wg_machine *machine;
 *     struct wg_meter *meter;
 *     struct wg_window *epoch;
 *     struct wg_window_result total;
 *     struct wg_error err;
 *     if (wg_machine_open(&machine, NULL, &err) != WG_OK ||
 *         wg_meter_open(&meter, machine, NULL, &err) != WG_OK ||
 *         wg_window_begin(&epoch, meter, "epoch", NULL, 0, &err) != WG_OK)
 *         return fprintf(stderr, "%s\n", err.text), 1;
 *     train_one_epoch();
 *     wg_window_end(epoch);
 *     if (wg_window_read(epoch, &total, NULL, 0, &err) == WG_OK)
 *         printf("%.1f J in %.2f s\n", total.energy_j, total.time_s);
 *     wg_window_free(epoch);
 *     wg_meter_close(meter);
 *     wg_machine_close(machine);
 *
 * A meter samples its devices in the background (10 Hz by default, one thread a device). `begin`
 * and `end` note the moment and wake those threads: they call no driver and wait for nothing, so
 * they can stand inside a training loop. `read` waits for the sample that closes the window (at
 * most one update of the slowest counter, some 100 ms) and computes.
 *
 * Windows nest and overlap at will, over any set of devices, and may be begun and ended by
 * different threads. Device work that runs asynchronously (CUDA kernels) must be waited for by the
 * caller before `begin` and `end`: wattgov does not call CUDA.
 *
 * Threads: any thread, but one window is used by one thread at a time. After fork, the child has
 * neither the meter's threads nor its windows: it opens a meter of its own; calls on the parent's
 * answer WG_ESTATE.
 */
#ifndef WATTGOV_WINDOW_H
#define WATTGOV_WINDOW_H

#include <stddef.h>
#include <stdint.h>

#include "wattgov/device.h"
#include "wattgov/error.h"

#ifdef __cplusplus
extern "C" {
#endif

struct wg_meter;
struct wg_window;

#define WG_ENERGY_SOURCES(X)                                                                       \
    X(NONE, "none")       /* nothing could be measured: energy_j is NAN */                         \
    X(COUNTER, "counter") /* difference of the device's energy counter, edges interpolated */      \
    X(POWER, "power")     /* power samples, integrated */                                          \
    X(MIXED, "mixed")     /* a total over devices of several sources */

enum wg_energy_source {
#define X(name, text) WG_ENERGY_##name,
    WG_ENERGY_SOURCES(X)
#undef X
        WG_ENERGY_SOURCE_COUNT
};

/* What limits the trust in a result; bits of wg_window_result.flags. */
#define WG_WINDOW_FLAGS(X)                                                                         \
    X(THROTTLED, 0, "throttled", "clocks were held down by a power limit or by temperature")       \
    X(COUNTER_RESET, 1, "counter reset",                                                           \
      "the energy counter restarted; the gap is integrated power")                                 \
    X(LOST, 2, "lost", "the device stopped answering for good, or was quiesced to the end")        \
    X(HUNG, 3, "hung", "a driver call did not return in time")                                     \
    X(BELOW_RESOLUTION, 4, "below resolution", "shorter than two updates of the sensor")           \
    X(CLOCK_STEP, 5, "clock step ignored", "the wall clock was set; times here are monotonic")     \
    X(EXTERNALLY_CAPPED, 6, "externally capped", "a lower power limit held than was asked for")    \
    X(GAP, 7, "gap", "for a part of the time there were no samples")                               \
    X(PARTIAL, 8, "partial", "a total that lacks a device whose energy is unknown")                \
    X(DISAGREES, 9, "meters disagree", "energy counter and integrated power differ by over 10 %")  \
    X(STUCK, 10, "stuck", "the energy counter did not move although power was drawn")              \
    X(SHARED, 11, "shared", "a MIG GPU: the energy is that of all its instances")                  \
    X(SUSPENDED, 12, "suspended", "the machine slept during the window")

enum wg_window_flag {
#define X(name, bit, key, help) WG_WINDOW_##name = 1u << (bit),
    WG_WINDOW_FLAGS(X)
#undef X
};

struct wg_window_result {
    double energy_j; /* NAN: unknown (wg_machine_explain tells why), never 0 for what could not be
                        measured */
    double energy_error_j; /* half width, meant to hold the truth in 95 % of windows, of what
                              sampling and resolution leave open; NAN: unknown. The sensor's own
                              gain error (about 5 %) is not in it */
    double time_s;
    double power_mean_w; /* of the time that is known; NAN: unknown */
    /* The largest sample within the window (a mean over the sensor's own window, so it may be below
     * power_mean_w); of a total the largest sum at one moment. The mean where no sample fell into
     * the window; NAN: unknown. */
    double power_peak_w;
    double idle_share;  /* of the time, without work on the device; NAN: unknown */
    double throttled_s; /* held down by power limit or temperature; NAN: unknown */
    double coverage; /* share of the time that the samples speak for, 0..1: gaps lessen it. What a
                        sensor never sees between its windows is in energy_error_j */
    double resolution_s; /* update period of the source, as tracked or else as published, however
                            often it was read; of a total the longest; NAN: unknown */
    size_t sample_count;
    uint32_t flags; /* bits of enum wg_window_flag */
    enum wg_energy_source source;
};

struct wg_meter_opts {
    size_t size;
    unsigned
        sample_period_ms; /* 0: 100. From 1 to 60000; counters that wrap are read often enough */
    bool without_edges; /* read nothing but the regular samples: windows are then known to a period
                         */
};
#define WG_METER_OPTS(...)                                                                         \
    ((struct wg_meter_opts){.size = sizeof(struct wg_meter_opts), __VA_ARGS__})

/* Starts sampling the devices of `machine`, which must outlive the meter. WG_EINVAL, WG_ENOMEM,
 * WG_EIO (no thread). Devices that are lost or hung do not make it fail. `opts` may be NULL. */
WG_API enum wg_code wg_meter_open(struct wg_meter **out, struct wg_machine *machine,
                                  const struct wg_meter_opts *opts, struct wg_error *err);

/* Stops and frees; windows that are still held turn useless but may be freed. NULL does nothing. */
WG_API void wg_meter_close(struct wg_meter *meter);

/* The newest sample of a device: WG_ESTATE before the first one; else the device's last error. */
WG_API enum wg_code wg_meter_latest(struct wg_meter *meter, size_t device, struct wg_sample *out,
                                    struct wg_error *err);

/* Waits until each device has a first sample or has failed, at most `timeout_ms`. WG_ETIMEOUT. */
WG_API enum wg_code wg_meter_wait_ready(struct wg_meter *meter, unsigned timeout_ms,
                                        struct wg_error *err);

/* Begins a window called `name` (copied, cut after 63 bytes) over `devices` (positions in the
 * machine; NULL and 0: all). WG_EINVAL: a position that is not there, or is given twice;
 * WG_ENOMEM; WG_ESTATE: after fork. */
WG_API enum wg_code wg_window_begin(struct wg_window **out, struct wg_meter *meter,
                                    const char *name, const size_t *devices, size_t device_count,
                                    struct wg_error *err);

/* Marks the end; a second end does nothing. */
WG_API void wg_window_end(struct wg_window *window);

/* Computes the result: `total` over the devices that count, and one a device into `devices` (room
 * for `capacity`, in the order of `begin`; may be NULL). Of an open window: up to now, by what is
 * known now; of an ended one the result is final, whatever comes later (but NAN may become known).
 * Parts never add up to more than the device: windows that share a moment of it split nothing,
 * windows that follow each other without a gap add up exactly. */
WG_API enum wg_code wg_window_read(struct wg_window *window, struct wg_window_result *total,
                                   struct wg_window_result *devices, size_t capacity,
                                   struct wg_error *err);

WG_API const char *wg_window_name(const struct wg_window *window);

/* The newest window of that name that is still open; NULL: none. */
WG_API struct wg_window *wg_window_find(struct wg_meter *meter, const char *name);

/* Ends it if need be and frees it. NULL does nothing. */
WG_API void wg_window_free(struct wg_window *window);

WG_API const char *wg_energy_source_key(enum wg_energy_source source);
WG_API const char *wg_window_flag_key(enum wg_window_flag bit);
WG_API const char *wg_window_flag_help(enum wg_window_flag bit);

#ifdef __cplusplus
}
#endif

#endif
