/* SPDX-License-Identifier: MIT
 *
 * From the sums at two moments to a window's result, and from results to a total.
 *
 * Threads: pure, any thread.
 */
#ifndef WG_MEASURE_RESULT_H
#define WG_MEASURE_RESULT_H

#include "measure/account.h"
#include "wattgov/window.h"

/* All sums of a device at one moment. */
struct wg_mark {
    uint64_t t_ns;
    bool has_energy; /* the line of energy has begun */
    struct wg_line_moment energy, sides;
    double period_s; /* of the meter behind it; NAN: none */
    double power_w;  /* about then; NAN: unknown */
    double blind_w;  /* by how much power may be off at that, for good */
    double step_w;   /* resolution of a reading of power; 0: unknown */
};

/* The sums at `t_ns`, as far as they are known by now. */
void wg__mark_take(struct wg_mark *mark, const struct wg_account *account, uint64_t t_ns);

/* The window between two marks. `peak_w` is the largest sample within it; NAN: none. */
void wg__result_between(struct wg_window_result *out, const struct wg_mark *from,
                        const struct wg_mark *to, double peak_w);

/* A total: begin with `wg__result_nothing`, add each device that counts, then finish. */
void wg__result_nothing(struct wg_window_result *total, double time_s);
void wg__result_add(struct wg_window_result *total, const struct wg_window_result *device,
                    bool is_first);
void wg__result_finish(struct wg_window_result *total, double peak_w);

#endif
