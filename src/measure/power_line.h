/* SPDX-License-Identifier: MIT
 *
 * Energy from power readings, as far as the sensor lets it be known.
 *
 * A reading is a mean over the sensor's window that ended at its last update, half a period ago on
 * average. Three cases, by device/sensor.h:
 *
 *  - The window fills the period or less: a reading stands for the power at the middle of its
 *    window, and the energy is the trapezium between readings. Time weighs, not change: a sensor
 *    that repeats itself for three seconds adds three seconds of energy. What lies between the
 *    windows is never seen; it goes into the variance.
 *  - The window spans several periods (1000 of 100 ms): the readings overlap. From
 *    P(t) = (E(t) - E(t - T)) / T follows E(t) = E(t - T) + T * P(t), a recursion that undoes the
 *    averaging. Errors of a reading stay in its chain for good, so a feedback pulls the mean of E
 *    over the last T to the plain integral of the readings, to which it is equal.
 *  - No window known: as the first, with readings of the moment.
 *
 * Sums of the line: WG_POWER_ENERGY_J, WG_POWER_VARIANCE_J2, WG_POWER_SEEN_S (seconds that readings
 * stand for; a gap adds none).
 *
 * Threads: pure, one at a time.
 */
#ifndef WG_MEASURE_POWER_LINE_H
#define WG_MEASURE_POWER_LINE_H

#include "device/sensor.h"
#include "measure/line.h"

enum { WG_POWER_ENERGY_J, WG_POWER_VARIANCE_J2, WG_POWER_SEEN_S };

struct wg_power_line {
    struct wg_line line;
    struct wg_sensor sensor;
    uint64_t delay_ns; /* a reading at t is worth for t - delay */
    bool is_averaged;  /* undone by the recursion */
    double gap_s;      /* readings further apart leave a gap */
    double last_w;     /* the reading of the last point */
    double plain_j;    /* integral of the readings themselves (is_averaged) */
    double change_w2;  /* running mean square of the change between readings */
    double prior_w;    /* change to reckon with before there are readings; 0: none */
    double step_w;     /* resolution of a reading */
    /* The highest and lowest of this second and of the one before. */
    struct {
        double high_w, low_w;
    } now, before;
    uint64_t now_from_ns;
};

void wg__power_line_init(struct wg_power_line *power, const struct wg_sensor *sensor, double gap_s);

/* A reading. One that is not newer than the last adds nothing. */
void wg__power_line_add(struct wg_power_line *power, uint64_t t_ns, double power_w);

/* How widely the readings of the last one or two seconds differ; 0: none yet. */
double wg__power_line_range(const struct wg_power_line *power);

/* What a load that is in step with the sensor hides from every reading, however many and whenever:
 * a bound on the error of the mean power. */
double wg__power_line_blind_w(const struct wg_power_line *power);

/* Energy and variance between two moments, the ends extended by the nearest reading where the line
 * does not reach; false: no reading yet. `seen_s_out` is what readings stand for. */
bool wg__power_line_between(const struct wg_power_line *power, uint64_t from_ns, uint64_t to_ns,
                            double *energy_j_out, double *variance_j2_out, double *seen_s_out);

#endif
