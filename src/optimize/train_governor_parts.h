/* SPDX-License-Identifier: MIT
 *
 * The governor's state and what its files ask of each other.
 *
 *     train_governor.c          the phases and the outside
 *     train_governor_steady.c   is the job warm, has the setting acted
 *     train_governor_measure.c  is the measurement long enough, is it sound, what does it say
 *
 * Threads: as train_governor.h.
 */
#ifndef WG_OPTIMIZE_TRAIN_GOVERNOR_PARTS_H
#define WG_OPTIMIZE_TRAIN_GOVERNOR_PARTS_H

#include "optimize/train_governor_book.h"
#include "optimize/train_governor_pace.h"
#include "optimize/train_governor_watch.h"

enum { WG_TRAIN_BLIND_TRIES = 4 }; /* measurements without steps until nothing is expected */

struct wg_train_governor {
    struct wg_train_book book;
    struct wg_train_pace pace;
    struct wg_train_watch watch;
    double warmup_s, measure_s, budget_s;
    enum wg_train_phase phase;
    size_t present, previous; /* `count`: as the device was found */
    size_t target;            /* what is measured, or held */
    double phase_s;           /* when it began */
    double start_s, set_s;    /* first tick; since when the present setting holds */
    double start_steps;       /* done before the first tick; NAN: not counted */
    double first_step_s;      /* NAN: no step has ended */
    double search_s;          /* the first measurement of this search; NAN: none yet */
    double power_before_w;    /* at the previous setting */
    double settle_least_s;    /* what settings have taken to act */
    double blind_s;           /* of a measurement without ends of steps */
    double throttled_at_s;    /* the last moment */
    double retry_at_s;        /* of a search that waits */
    double recheck_at_s, recheck_s;
    size_t held_before;
    unsigned tries;         /* measurements of the target that were lost in a row */
    unsigned drifts_in_row; /* those that were unlike from begin to end */
    unsigned pauses, blind_tries;
    unsigned drifts;
    bool is_frozen;     /* for good: somebody else writes the knob, or no setting is taken */
    bool is_waiting;    /* HOLD, but the search is not over: no steps came */
    bool is_checking;   /* the cached profile */
    bool is_agreed;     /* and it was found to hold */
    bool takes_pauses;  /* they are a part of the job's steps */
    double paused_at_s; /* the newest pause ended */
    bool was_told, was_refused;
    /* the measurement */
    bool is_measuring, is_awaiting;
    bool is_pace_uneven, is_power_uneven; /* its second half is unlike the first */
    bool is_reckoned; /* ends of steps are reckoned from a period: told with the newest one */
    double begin_s, begin_steps, throttled_s;
    size_t point_count;
    struct wg_train_point points[WG_POWER_LIMITS_MAX];
};

bool wg__train_is_warm(struct wg_train_governor *governor, const struct wg_train_tick *tick);
bool wg__train_has_settled(struct wg_train_governor *governor, const struct wg_train_tick *tick);

/* Where pauses are a part of the job a measurement runs from the end of one to the end of another,
 * or it would hold one more or less by chance. True: not here; but nobody waits for long after
 * `since_s`. */
bool wg__train_is_between_pauses(const struct wg_train_governor *governor,
                                 const struct wg_train_tick *tick, double since_s);

bool wg__train_is_long_enough(const struct wg_train_governor *governor,
                              const struct wg_train_tick *tick);
/* Whether the second half of the measurement is unlike the first. */
void wg__train_compare_halves(struct wg_train_governor *governor, double t_s);
/* One more measurement of the target is lost; a setting with too many is left out for now. */
void wg__train_lose(struct wg_train_governor *governor);
/* Brings `points` up to date. */
void wg__train_update_points(struct wg_train_governor *governor);

#endif
