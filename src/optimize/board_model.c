/* SPDX-License-Identifier: MIT
 *
 * Random boards: the formulas of the header, level by level.
 *
 * Almost all that a configuration does to a board is a product or a sum over its knobs, each factor
 * of one level. So the factors of all levels are worked out first (a few dozen powers and
 * logarithms), and a configuration costs one power, three logarithms and some products, in single
 * precision: prior guesses need no more.
 *
 * Owns: nothing.    Threads: pure.
 */
#include "optimize/board_model.h"

#include <math.h>
#include <string.h>

#include "base/hash.h"
#include "math/normal.h"
#include "optimize/tuner_constants.h"

/* The order of the numbers in z. */
enum {
    Z_OVERLAP,
    Z_FIXED_TIME,
    Z_PARALLEL,
    Z_CORE_POWER,
    Z_LOW_VOLTAGE,
    Z_VOLTAGE_FROM,
    Z_BASE_POWER,
    Z_STEEPNESS,
    Z_DEMAND,
    Z_FLOOR,
    Z_IDLE,
    Z_SCALING,
    Z_COMM,
    Z_DELAY,
    Z_LOWEST_CORE_T,
    Z_LOWEST_CORE_E,
    Z_VIRTUAL_FIXED, /* of the main part where no clock is tuned */
    Z_VIRTUAL_POWER,
    Z_VIRTUAL_IDLE,
    Z_CROWDING,
    Z_MEMORY_WORK, /* of a memory whose clock is not tuned */
    Z_MEMORY_FIXED,
    Z_GLOBALS
};
enum { Z_TILT_T, Z_TILT_E, Z_WORK, Z_FIXED, Z_POWER, Z_IDLE_SHARE, Z_PER_KNOB };
_Static_assert((size_t)Z_GLOBALS <= WG_BOARD_GLOBALS, "the header has too little room");
_Static_assert((size_t)Z_PER_KNOB <= WG_BOARD_PER_KNOB, "the header has too little room");

/* What one level of one knob does. */
struct wg_board_effect {
    float tau[WG_BOARD_PARTS_MAX];   /* factor of the busy time of each part */
    float tau_p[WG_BOARD_PARTS_MAX]; /* the same to the power p */
    float pace, pace_p;              /* 1/f of the main part; of a clock and of a limit */
    float draw;                      /* watts of a clock or the memory at full use */
    float busy;                      /* f^g under a limit */
    float core_power;                /* factor of the cores */
    float bound;                     /* what a limit lets through */
    float stretch;                   /* factor of the time: communication */
    float delay;
    float log_t, log_e; /* tilts and counts */
};

void wg__board_draw(const struct wg_board_axes *axes, const struct wg_rng *rng, float *z)
{
    struct wg_rng own = wg__rng_split(rng, 0);
    for (size_t i = 0; i < WG_BOARD_GLOBALS; i++)
        z[i] = (float)wg__rng_normal(&own);
    for (size_t k = 0; k < axes->space->knob_count; k++) {
        struct wg_rng stream =
            wg__rng_split(rng, 1 + wg__hash_text(WG_HASH_START, axes->space->knobs[k].name));
        for (size_t i = 0; i < WG_BOARD_PER_KNOB; i++)
            z[WG_BOARD_GLOBALS + k * WG_BOARD_PER_KNOB + i] = (float)wg__rng_normal(&stream);
    }
}

/* A log-normal number of this median. */
static double around(double median, double sd, float z)
{
    return median * exp(sd * wg__tuner_constants.widening * (double)z);
}

/* A number between two bounds. */
static double between(double lo, double hi, float z)
{
    return lo + (hi - lo) / (1 + exp(-1.6 * wg__tuner_constants.widening * (double)z));
}

static void set_part(const struct wg_board_axes *axes, const float *z, size_t j,
                     struct wg_board_part *part)
{
    const size_t knob = axes->knob_of[j];
    const bool is_main = j == axes->main_part;
    const bool is_memory = j == axes->memory_part;
    const float *own = z + WG_BOARD_GLOBALS + knob * WG_BOARD_PER_KNOB;
    const float virtual_own[] = {
        0, 0, 0, z[Z_VIRTUAL_FIXED], z[Z_VIRTUAL_POWER], z[Z_VIRTUAL_IDLE]};
    const float untuned[] = {0, 0, z[Z_MEMORY_WORK], z[Z_MEMORY_FIXED], 0, 0};
    if (knob == WG_BOARD_NONE)
        own = is_main ? virtual_own : untuned;
    part->work = is_main     ? 1
                 : is_memory ? around(0.35, 0.9, own[Z_WORK])
                             : around(0.5, 1.2, own[Z_WORK]);
    part->fixed = axes->is_training ? around(wg__tuner_constants.train_fixed,
                                             wg__tuner_constants.train_fixed_sd, own[Z_FIXED])
                                    : around(0.5, 1, own[Z_FIXED]);
    part->power = is_memory && knob == WG_BOARD_NONE ? 0 /* part of the base power */
                  : is_main                          ? around(0.6, 0.6, own[Z_POWER])
                  : is_memory                        ? around(0.12, 0.6, own[Z_POWER])
                                                     : around(0.25, 0.6, own[Z_POWER]);
    part->idle_share = is_memory ? 0.5 : between(0.05, 0.7, own[Z_IDLE_SHARE]);
}

void wg__board_from(const struct wg_board_axes *axes, const float *z, struct wg_board *out)
{
    *out = (struct wg_board){
        .overlap = between(1, 5, z[Z_OVERLAP]),
        .fixed_time = around(0.1, 0.8, z[Z_FIXED_TIME]),
        .parallel = between(0, 0.8, z[Z_PARALLEL]),
        .core_power = between(0, 0.9, z[Z_CORE_POWER]),
        .low_voltage = between(0.45, 0.9, z[Z_LOW_VOLTAGE]),
        .voltage_from = between(0.15, 0.65, z[Z_VOLTAGE_FROM]),
        .base_power = around(0.25, 0.5, z[Z_BASE_POWER]),
        .steepness = between(1.5, 3.2, z[Z_STEEPNESS]),
        .demand = between(0.5, 1.6, z[Z_DEMAND]),
        .floor = between(0.05, 0.3, z[Z_FLOOR]),
        .idle = between(0.08, 0.4, z[Z_IDLE]),
        .scaling = between(0.3, 1.05, z[Z_SCALING]),
        .comm = around(0.05, 1, z[Z_COMM]),
        .delay = around(0.5, 1, z[Z_DELAY]),
        .roomy = around(wg__tuner_constants.crowd_at, wg__tuner_constants.crowd_sd, z[Z_CROWDING]),
        .lowest_core_t = 0.05 * wg__tuner_constants.widening * (double)z[Z_LOWEST_CORE_T],
        .lowest_core_e = 0.3 * wg__tuner_constants.widening * (double)z[Z_LOWEST_CORE_E],
    };
    for (size_t j = 0; j < axes->part_count; j++)
        set_part(axes, z, j, &out->parts[j]);
    for (size_t k = 0; k < axes->space->knob_count; k++) {
        const float *own = z + WG_BOARD_GLOBALS + k * WG_BOARD_PER_KNOB;
        out->tilt_t[k] = axes->tilts_t[k] * wg__tuner_constants.widening * (double)own[Z_TILT_T];
        out->tilt_e[k] = axes->tilts_e[k] * wg__tuner_constants.widening * (double)own[Z_TILT_E];
        if (axes->follows_t[k])
            out->tilt_e[k] += out->tilt_t[k];
    }
}

/* f V(f)^2: power of a part at a clock, over that at the highest. */
static double draw_at(const struct wg_board *board, double f)
{
    const double rise = (f - board->voltage_from) / (1 - board->voltage_from);
    const double voltage = board->low_voltage + (1 - board->low_voltage) * fmax(0, rise);
    return f * voltage * voltage;
}

/* The clock of the main part that a limit lets through, over the highest. */
static double clock_under(const struct wg_board *board, double limit)
{
    const double spare =
        (limit - board->demand * board->idle) / (board->demand * (1 - board->idle));
    return fmin(1, fmax(board->floor, pow(fmax(0, spare), 1 / board->steepness)));
}

/* What cores make of a time that they share. */
static double core_time(const struct wg_board *board, double cores, double most)
{
    return (1 - board->parallel + board->parallel / cores) /
           (1 - board->parallel + board->parallel / most);
}

/* Cores work for the parts that are not the main one; where that is the only one, for it. */
static bool has_cores(const struct wg_board_axes *axes, size_t part)
{
    return axes->main_part == 0 ? part == 0 : part < axes->main_part;
}

static void set_clock(const struct wg_board_axes *axes, const struct wg_board *board, size_t knob,
                      double f, struct wg_board_effect *effect)
{
    const size_t part = axes->part_of[knob];
    if (knob == axes->memory) {
        effect->draw = (float)(board->parts[part].power * f);
        effect->tau[part] = (float)(board->parts[part].work / f);
        return;
    }
    effect->draw = (float)(board->parts[part].power * draw_at(board, f));
    if (knob == axes->main_clock)
        effect->pace = (float)(1 / f);
    else
        effect->tau[part] = (float)(board->parts[part].work / f);
}

static void set_cores(const struct wg_board_axes *axes, const struct wg_board *board, double cores,
                      struct wg_board_effect *effect)
{
    const struct wg_tuning_knob *knob = &axes->space->knobs[axes->cores];
    const double most = knob->levels[knob->count - 1];
    for (size_t j = 0; j < axes->part_count; j++)
        if (has_cores(axes, j))
            effect->tau[j] = (float)core_time(board, cores, most);
    effect->core_power = (float)(1 - board->core_power + board->core_power * cores / most);
    if (cores <= knob->levels[0] && knob->count > 1) {
        effect->log_t += (float)board->lowest_core_t;
        effect->log_e += (float)board->lowest_core_e;
    }
}

static void set_batch(const struct wg_board_axes *axes, const struct wg_board *board, double batch,
                      struct wg_board_effect *effect)
{
    const struct wg_tuning_knob *knob = &axes->space->knobs[axes->batch];
    const double most = axes->levels[axes->first[axes->batch] + knob->count - 1].value;
    /* Padding, caches, memory that runs short: large batches lose some of what they win. */
    const double work = batch * (1 + batch / (most * board->roomy));
    for (size_t j = 0; j < axes->part_count; j++)
        effect->tau[j] = (float)((board->parts[j].fixed + work) / (board->parts[j].fixed + 1));
    effect->log_e -= (float)log(batch);
    if (axes->is_training)
        effect->log_t -= (float)log(batch); /* per epoch */
}

static void set_replicas(const struct wg_board_axes *axes, const struct wg_board *board,
                         double replicas, struct wg_board_effect *effect)
{
    for (size_t j = 0; j < axes->part_count; j++)
        effect->tau[j] = (float)pow(replicas, -board->scaling);
    effect->stretch = (float)(1 + board->comm * (replicas - 1));
    effect->log_e += (float)log(replicas);
}

static void set_limit(const struct wg_board_axes *axes, const struct wg_board *board, double limit,
                      struct wg_board_effect *effect)
{
    const double f = clock_under(board, limit);
    const double power = board->parts[axes->main_part].power;
    effect->pace = (float)(1 / f);
    effect->busy = (float)pow(f, board->steepness);
    effect->draw = (float)(power * draw_at(board, f));
    effect->bound = (float)((board->base_power + power) * limit / board->demand);
}

static void set_effect(const struct wg_board_axes *axes, const struct wg_board *board, size_t knob,
                       const struct wg_board_level *level, struct wg_board_effect *effect)
{
    *effect = (struct wg_board_effect){.core_power = 1, .stretch = 1};
    for (size_t j = 0; j < axes->part_count; j++)
        effect->tau[j] = 1;
    effect->log_t = (float)(board->tilt_t[knob] * level->tilt);
    effect->log_e = (float)(board->tilt_e[knob] * level->tilt);
    if (axes->part_of[knob] != WG_BOARD_NONE)
        set_clock(axes, board, knob, level->value, effect);
    else if (knob == axes->cores)
        set_cores(axes, board, level->value, effect);
    else if (knob == axes->batch)
        set_batch(axes, board, level->value, effect);
    else if (knob == axes->replicas)
        set_replicas(axes, board, level->value, effect);
    else if (knob == axes->limit)
        set_limit(axes, board, level->value, effect);
    else if (knob == axes->delay)
        effect->delay = (float)(board->delay * level->value);
    const float p = (float)board->overlap;
    for (size_t j = 0; j < axes->part_count; j++)
        effect->tau_p[j] = effect->tau[j] == 1 ? 1 : powf(effect->tau[j], p);
    effect->pace_p = powf(effect->pace, p);
}

/* What all configurations of a board share, in single precision. */
struct shared {
    size_t parts, main, knobs;
    float overlap_inverse, fixed_time, base_power, demand, idle;
    float work[WG_BOARD_PARTS_MAX], work_p[WG_BOARD_PARTS_MAX]; /* of parts without a knob */
    float power[WG_BOARD_PARTS_MAX], idle_share[WG_BOARD_PARTS_MAX];
    bool has_cores[WG_BOARD_PARTS_MAX];
    size_t knob_of[WG_BOARD_PARTS_MAX];
    size_t limit, cores;
    bool is_limit_alone;
};

static void set_shared(const struct wg_board_axes *axes, const struct wg_board *board,
                       struct shared *out)
{
    *out = (struct shared){.parts = axes->part_count,
                           .main = axes->main_part,
                           .knobs = axes->space->knob_count,
                           .overlap_inverse = (float)(1 / board->overlap),
                           .fixed_time = (float)board->fixed_time,
                           .base_power = (float)board->base_power,
                           .demand = (float)board->demand,
                           .idle = (float)board->idle,
                           .limit = axes->limit,
                           .cores = axes->cores,
                           .is_limit_alone =
                               axes->limit != WG_BOARD_NONE && axes->main_clock == WG_BOARD_NONE};
    for (size_t j = 0; j < axes->part_count; j++) {
        const bool is_fixed = axes->knob_of[j] == WG_BOARD_NONE;
        out->work[j] = is_fixed ? (float)board->parts[j].work : 1;
        out->work_p[j] = powf(out->work[j], (float)board->overlap);
        out->power[j] = (float)board->parts[j].power;
        out->idle_share[j] = (float)board->parts[j].idle_share;
        out->has_cores[j] = axes->cores != WG_BOARD_NONE && has_cores(axes, j);
        out->knob_of[j] = axes->knob_of[j];
    }
}

/* Power, given what each part is busy for and how long it all takes. */
static float power_of(const struct shared *shared, const struct wg_board_effect *const *effects,
                      const float *tau, float time)
{
    const size_t main = shared->main;
    if (shared->is_limit_alone) {
        const float use = 0.3F + 0.7F * fminf(1, tau[main] / time);
        return shared->demand *
               (shared->idle + (1 - shared->idle) * effects[shared->limit]->busy * use);
    }
    float power = shared->base_power;
    for (size_t j = 0; j < shared->parts; j++) {
        const size_t knob = shared->knob_of[j];
        float draw = knob == WG_BOARD_NONE ? shared->power[j] : effects[knob]->draw;
        if (j == main && shared->limit != WG_BOARD_NONE)
            draw = fminf(draw, effects[shared->limit]->draw);
        if (shared->has_cores[j])
            draw *= effects[shared->cores]->core_power;
        const float use = fminf(1, tau[j] / time);
        power += draw * (shared->idle_share[j] + (1 - shared->idle_share[j]) * use);
    }
    return shared->limit == WG_BOARD_NONE ? power : fminf(power, effects[shared->limit]->bound);
}

static void combine(const struct shared *shared, const struct wg_board_effect *const *effects,
                    float *log_t, float *log_e)
{
    float tau[WG_BOARD_PARTS_MAX];
    float sum = 0, pace = 0, pace_p = 0, stretch = 1, delay = 0, tilt_t = 0, tilt_e = 0;
    if (shared->knob_of[shared->main] == WG_BOARD_NONE)
        pace = pace_p = 1;
    for (size_t k = 0; k < shared->knobs; k++) {
        pace = fmaxf(pace, effects[k]->pace);
        pace_p = fmaxf(pace_p, effects[k]->pace_p);
        stretch *= effects[k]->stretch;
        delay += effects[k]->delay;
        tilt_t += effects[k]->log_t;
        tilt_e += effects[k]->log_e;
    }
    for (size_t j = 0; j < shared->parts; j++) {
        float busy = j == shared->main ? pace : shared->work[j];
        float busy_p = j == shared->main ? pace_p : shared->work_p[j];
        for (size_t k = 0; k < shared->knobs; k++) {
            busy *= effects[k]->tau[j];
            busy_p *= effects[k]->tau_p[j];
        }
        tau[j] = busy;
        sum += busy_p;
    }
    const float time = (shared->fixed_time + powf(sum, shared->overlap_inverse)) * stretch;
    const float log_time = logf(time);
    /* A request that waits for others costs time, but keeps no part busy. */
    *log_t = (delay > 0 ? logf(time + delay) : log_time) + tilt_t;
    *log_e = logf(power_of(shared, effects, tau, time)) + log_time + tilt_e;
}

size_t wg__board_table_size(const struct wg_board_axes *axes)
{
    return axes->first[axes->space->knob_count] * sizeof(struct wg_board_effect);
}

void wg__board_row(const struct wg_board_axes *axes, const struct wg_board *board,
                   const uint32_t *configurations, size_t count, struct wg_board_effect *table,
                   float *log_t, float *log_e)
{
    const size_t knobs = axes->space->knob_count;
    for (size_t k = 0; k < knobs; k++)
        for (size_t i = axes->first[k]; i < axes->first[k + 1]; i++)
            set_effect(axes, board, k, &axes->levels[i], &table[i]);
    struct shared shared;
    set_shared(axes, board, &shared);
    const struct wg_board_effect *effects[WG_TUNING_KNOBS_MAX] = {NULL};
    for (size_t i = 0; i < count; i++) {
        const uint16_t *levels = axes->space->level_of + configurations[i] * knobs;
        for (size_t k = 0; k < shared.knobs; k++)
            effects[k] = &table[axes->first[k] + levels[k]];
        combine(&shared, effects, &log_t[i], &log_e[i]);
    }
}

void wg__board_point(const struct wg_board_axes *axes, const struct wg_board *board,
                     size_t configuration, float *log_t, float *log_e)
{
    struct wg_board_effect own[WG_TUNING_KNOBS_MAX];
    const struct wg_board_effect *effects[WG_TUNING_KNOBS_MAX] = {NULL};
    struct shared shared;
    set_shared(axes, board, &shared);
    for (size_t k = 0; k < shared.knobs; k++) {
        set_effect(axes, board, k, wg__board_level(axes, configuration, k), &own[k]);
        effects[k] = &own[k];
    }
    combine(&shared, effects, log_t, log_e);
}
