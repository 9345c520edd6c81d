/* SPDX-License-Identifier: MIT
 *
 * Boards to tune in tests: spaces, two analytic figures over them, and the loop of ask and tell.
 *
 * The board's time is a sum of a part of the GPU clock, a part of the memory clock and a fixed one;
 * its power rises with the third power of the GPU clock. Plain enough to list all by hand, and with
 * a minimum inside.
 */
#ifndef WG_TESTS_SUPPORT_TUNER_STAGE_H
#define WG_TESTS_SUPPORT_TUNER_STAGE_H

#include "support/check.h"

#include "base/alloc.h"
#include "base/rng.h"
#include "math/normal.h"
#include "optimize/tuner.h"

static const double tuning_clocks[] = {300, 450, 600, 750, 900, 1050, 1200, 1350, 1500};
static const double tuning_batches[] = {1, 2, 4, 8};
static const double tuning_engines[] = {0, 1, 2};

enum { TUNING_CLOCKS = 9, TUNING_BATCHES = 4, TUNING_ENGINES = 3 };

static const struct wg_tuning_knob tuning_knobs[] = {
    {"clock", WG_TUNING_GPU_CLOCK, tuning_clocks, NULL, TUNING_CLOCKS, TUNING_CLOCKS - 1, 0.02},
    {"batch", WG_TUNING_BATCH, tuning_batches, NULL, TUNING_BATCHES, 0, 0},
    {"engine", WG_TUNING_CATEGORY, tuning_engines, NULL, TUNING_ENGINES, 0, 60},
};

/* The space of the first `knobs` of these. */
static inline struct wg_tuning_space *tuning_space(size_t knobs)
{
    struct wg_tuning_space *space = NULL;

    assert_int_equal(wg__tuning_space_box(&space, tuning_knobs, knobs, NULL, NULL, NULL), WG_OK);
    return space;
}

/* Seconds and joules a request of a configuration of tuning_space. */
static inline void tuning_truth(const struct wg_tuning_space *space, size_t c, double *time_s,
                                double *energy_j)
{
    const double f = wg__tuning_value(space, c, 0) / 1500;
    const double b = space->knob_count > 1 ? wg__tuning_value(space, c, 1) : 1;
    const double engine = space->knob_count > 2 ? wg__tuning_value(space, c, 2) : 0;

    *time_s = (0.02 + 0.03 * b / f) * (1 + 0.15 * engine);
    *energy_j = *time_s * (20 + 60 * f * f * f) * (1 - 0.1 * engine) / b;
}

static inline struct wg_tuner_config tuning_config(const struct wg_tuning_space *space,
                                                   enum wg_tuner_policy policy, double bound_s)
{
    return (struct wg_tuner_config){
        .space = space,
        .goal = {.objective = WG_TUNING_ENERGY,
                 .limit_count = 1,
                 .limits = {{.name = "time_s", .kind = WG_TUNING_TIME, .bound = bound_s}}},
        .policy = policy,
        .xi = (double)NAN,
        .seed = 1,
    };
}

static inline struct wg_tuner *tuning_tuner(const struct wg_tuner_config *config)
{
    struct wg_tuner *tuner = NULL;
    struct wg_error err = {0};

    if (wg__tuner_new(&tuner, config, &err) != WG_OK)
        fail_msg("%s", err.text);
    return tuner;
}

static inline struct wg_tuner_question tuning_ask(struct wg_tuner *tuner)
{
    struct wg_tuner_question question;

    assert_int_equal(wg__tuner_ask(tuner, &question, NULL), WG_OK);
    return question;
}

static inline struct wg_tuner_result tuning_result(struct wg_tuner *tuner)
{
    struct wg_tuner_result result;

    assert_int_equal(wg__tuner_result(tuner, &result, NULL), WG_OK);
    return result;
}

/* The trial that the board gives, with relative noise (`rng` may be NULL: none). */
static inline struct wg_trial tuning_trial(const struct wg_tuning_space *space, size_t c,
                                           double noise, struct wg_rng *rng)
{
    struct wg_trial trial = {.configuration = c};

    tuning_truth(space, c, &trial.figures[0], &trial.objective);
    if (rng != NULL) {
        trial.figures[0] *= exp(noise * wg__rng_normal(rng));
        trial.objective *= exp(noise * wg__rng_normal(rng));
    }
    return trial;
}

static inline void tuning_tell(struct wg_tuner *tuner, const struct wg_trial *trial)
{
    struct wg_error err = {0};

    if (wg__tuner_tell(tuner, trial, &err) != WG_OK)
        fail_msg("%s", err.text);
}

/* The least energy within the bound, and where. */
static inline double tuning_optimum(const struct wg_tuning_space *space, double bound_s,
                                    size_t *where_out)
{
    double least = (double)INFINITY;

    for (size_t c = 0; c < space->count; c++) {
        double time_s, energy_j;

        tuning_truth(space, c, &time_s, &energy_j);
        if (time_s > bound_s || energy_j >= least)
            continue;
        least = energy_j;
        *where_out = c;
    }
    return least;
}

/* Lets each allocation of a short search fail, and all behind it: the tell that needed it says so,
 * and the tuner goes on once there is memory again. */
static inline void tuning_check_allocations(enum wg_tuner_policy policy)
{
    struct wg_tuning_space *space = tuning_space(2);
    const struct wg_tuner_config config = tuning_config(space, policy, 0.12);
    enum wg_code code = WG_ENOMEM;
    size_t failures = 0;

    for (size_t nth = 1; code != WG_OK; nth++) {
        struct wg_tuner *tuner = NULL;

        wg__alloc_fail_from(nth);
        code = wg__tuner_new(&tuner, &config, NULL);
        for (size_t c = 0; code == WG_OK && c < 12; c++) {
            const struct wg_trial trial = tuning_trial(space, c, 0, NULL);

            code = wg__tuner_tell(tuner, &trial, NULL);
        }
        wg__alloc_fail_from(0);
        if (tuner != NULL)
            assert_int_equal(tuning_ask(tuner).kind, WG_TUNER_MEASURE);
        wg__tuner_free(tuner);
        assert_true(code == WG_OK || code == WG_ENOMEM);
        failures += code != WG_OK;
    }
    assert_in_range(failures, 25, 120);
    wg__tuning_space_free(space);
}

#endif
