/* SPDX-License-Identifier: MIT
 *
 * Random setups of a scheduler, and the chance that they are made of: a seed, or a fuzzer's bytes.
 *
 * Setups are all valid, and few of them are sensible: times from microseconds to minutes, samples
 * that contradict each other, an SLO below what one row takes.
 */
#ifndef WG_TESTS_SUPPORT_SCHEDULER_SETUPS_H
#define WG_TESTS_SUPPORT_SCHEDULER_SETUPS_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"
#include "schedule/scheduler.h"

enum { STAGE_MODELS = 4, STAGE_SAMPLES = 6, STAGE_STEP_SAMPLES = 3 };

/* With bytes, those are what is drawn first. */
struct chance {
    struct wg_rng rng;
    const uint8_t *bytes;
    size_t left; /* of the bytes; 0: the generator */
};

static inline uint32_t draw_below(struct chance *chance, uint32_t bound)
{
    if (chance->left == 0)
        return wg__rng_below(&chance->rng, bound);
    uint32_t value = 0;
    for (uint32_t reach = 1; reach < bound && chance->left > 0; reach <<= 8) {
        value = value << 8 | *chance->bytes++;
        chance->left--;
        if (reach >= 1U << 16)
            break;
    }
    return value % bound;
}

static inline bool draw_is(struct chance *chance, uint32_t percent)
{
    return draw_below(chance, 100) < percent;
}

static inline double draw_between(struct chance *chance, double least, double most)
{
    return least + (most - least) * (double)draw_below(chance, 10007) / 10006.0;
}

/* Even in the logarithm. */
static inline double draw_scale(struct chance *chance, double least, double most)
{
    return exp(draw_between(chance, log(least), log(most)));
}

struct stage_setup {
    struct wg_scheduler_setup setup; /* points into this */
    struct wg_serving_model models[STAGE_MODELS];
    struct wg_predictor_sample samples[STAGE_MODELS][STAGE_SAMPLES];
    struct wg_predictor_sample step_samples[STAGE_STEP_SAMPLES];
    double pace_s; /* about what a batch takes: the world's measure of time */
};

static inline void draw_samples(struct chance *chance, struct wg_predictor_sample *samples,
                                size_t count, double scale_s)
{
    const bool is_wild = draw_is(chance, 15);
    const bool is_apart = draw_is(chance, 50); /* clocks and company, too */
    const double fixed_s = scale_s * draw_between(chance, 0.0, 1.0);
    const double per_row_s = scale_s * draw_scale(chance, 1e-3, 1.0);
    for (size_t i = 0; i < count; i++) {
        struct wg_predictor_point point = {
            .rows = 1 + draw_below(chance, 64), .gpu_clock = 1.0, .mem_clock = 1.0};
        double time_s = fixed_s + per_row_s * point.rows;
        if (is_apart) {
            point.gpu_clock = draw_between(chance, 0.1, 1.0);
            point.mem_clock = draw_between(chance, 0.1, 1.0);
            point.finetune_rows = draw_is(chance, 30) ? draw_below(chance, 64) : 0;
            time_s = time_s / point.gpu_clock + per_row_s * point.finetune_rows;
        }
        if (is_wild)
            time_s = draw_scale(chance, 1e-6, 1e3);
        samples[i] = (struct wg_predictor_sample){
            .point = point, .time_s = time_s * draw_between(chance, 0.7, 1.3)};
    }
}

static inline void draw_model(struct chance *chance, struct wg_serving_model *model,
                              struct wg_predictor_sample *samples, double pace_s)
{
    *model =
        (struct wg_serving_model){.max_rows = 1 + draw_below(chance, draw_is(chance, 50) ? 8 : 64),
                                  .slo_s = pace_s * draw_scale(chance, 0.2, 20.0),
                                  .samples = samples,
                                  .sample_count = 1 + draw_below(chance, STAGE_SAMPLES)};
    draw_samples(chance, samples, model->sample_count, pace_s);
    struct wg_predictor_setup *predictor = &model->predictor;
    predictor->kind = draw_is(chance, 75) ? WG_PREDICTOR_PHYSICAL : WG_PREDICTOR_POLYTHROTTLE;
    predictor->window = 1 + draw_below(chance, 100);
    predictor->margin = draw_is(chance, 50) ? 0.0 : draw_scale(chance, 1e-3, 2.0);
    predictor->forgetting = draw_is(chance, 50) ? 0.0 : draw_between(chance, 0.5, 0.999);
    if (draw_is(chance, 30))
        predictor->inference =
            (struct wg_work_shape){draw_scale(chance, 1.0, 1e12), draw_scale(chance, 1.0, 1e12),
                                   draw_scale(chance, 1.0, 1e12), draw_scale(chance, 1.0, 1e12)};
}

static inline void draw_ladder(struct chance *chance, struct wg_clock_setup *clocks)
{
    clocks->max_rows = 1 + draw_below(chance, 64);
    clocks->hold_s = draw_is(chance, 50) ? 0.0 : draw_scale(chance, 1e-3, 10.0);
    clocks->ladder.count = 1 + draw_below(chance, 5);
    clocks->ladder.change_s = draw_is(chance, 50) ? 0.0 : draw_scale(chance, 1e-4, 1.0);
    clocks->ladder.change_j = draw_is(chance, 50) ? 0.0 : draw_scale(chance, 1e-3, 10.0);
    for (size_t i = 0; i < clocks->ladder.count; i++)
        clocks->ladder.rungs[i] =
            (struct wg_rung){.gpu_clock = i == 0 ? 1.0 : draw_between(chance, 0.05, 1.0),
                             .mem_clock = i == 0 ? 1.0 : draw_between(chance, 0.05, 1.0),
                             .busy_power_w = draw_between(chance, 0.0, 400.0),
                             .idle_power_w = draw_between(chance, 0.0, 100.0),
                             .finetune_power_w = draw_between(chance, 0.0, 400.0)};
}

static inline double draw_share(struct chance *chance)
{
    return draw_is(chance, 40) ? 0.0 : draw_between(chance, 0.0, 1.0);
}

static inline void draw_setup(struct chance *chance, struct stage_setup *stage)
{
    const double pace_s = draw_scale(chance, 1e-4, 10.0);
    stage->pace_s = pace_s;
    stage->setup = (struct wg_scheduler_setup){
        .model_count = 1 + draw_below(chance, draw_is(chance, 60) ? 1 : STAGE_MODELS),
        .models = stage->models,
        .queue_capacity = 1 + draw_below(chance, draw_is(chance, 90) ? 50 : 300),
        .batcher = (enum wg_batcher_kind)draw_below(chance, WG_BATCHER_COUNT),
        .batch_delay_s = draw_is(chance, 60) ? 0.0 : pace_s * draw_between(chance, 0.0, 4.0),
        .drop = (enum wg_drop_kind)draw_below(chance, WG_DROP_COUNT),
        .finetune = (enum wg_finetune_policy)draw_below(chance, WG_FINETUNE_COUNT),
        .step_samples = stage->step_samples,
        .step_sample_count = draw_is(chance, 90) ? STAGE_STEP_SAMPLES : 0,
        .update_s = draw_is(chance, 50) ? 0.0 : pace_s * draw_between(chance, 0.0, 2.0),
        .step_share = draw_share(chance),
        .deadline_share = draw_share(chance),
        .min_share = draw_is(chance, 20) ? -1.0 : draw_share(chance),
        .clocks = draw_is(chance, 50) ? WG_CLOCKS_FIXED : WG_CLOCKS_GOVERNED};
    for (size_t m = 0; m < stage->setup.model_count; m++)
        draw_model(chance, &stage->models[m], stage->samples[m], pace_s);
    draw_samples(chance, stage->step_samples, STAGE_STEP_SAMPLES, pace_s);
    draw_ladder(chance, &stage->setup.clock_setup);
    stage->setup.first_rung = draw_below(chance, (uint32_t)stage->setup.clock_setup.ladder.count);
}

#endif
