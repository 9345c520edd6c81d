/* SPDX-License-Identifier: MIT
 *
 * Small measured grids for tests: a file, and the request that reads it.
 *
 * Threads: one thread at a time.
 */
#ifndef WG_TESTS_SUPPORT_TUNING_STAGE_H
#define WG_TESTS_SUPPORT_TUNING_STAGE_H

#include "simulate/tuning_grid.h"
#include "simulate/tuning_study.h"
#include "support/check.h"
#include "support/scratch.h"

/* Latency and energy by batch and clock; the last row is a replicate. */
static const char stage_text[] = "kind,batch,clock_hz,t,e,name\n"
                                 "a,1,100,2,8,x\n"
                                 "a,1,200,1,9,x\n"
                                 "a,4,100,4,3,y\n"
                                 "a,4,200,3,4,y\n"
                                 "b,4,200,3,1,y\n"
                                 "a,4,200.0,5,4.4,y\n";

struct stage {
    struct scratch scratch;
    const char *path;
    struct wg_tuning_grid_request request;
};

static inline void stage_open(struct stage *stage, const char *text)
{
    scratch_open(&stage->scratch);
    stage->path = scratch_path(&stage->scratch, "grid.csv");
    scratch_write(stage->path, text, strlen(text));
    stage->request = (struct wg_tuning_grid_request){
        .path = stage->path,
        .match_count = 1,
        .matches = {{"kind", "a"}},
        .axis_count = 2,
        .axes = {{"batch", WG_TUNING_BATCH}, {"clock_hz", WG_TUNING_GPU_CLOCK}},
        .objective = "e",
        .objective_kind = WG_TUNING_ENERGY,
        .limit_count = 1,
        .limits = {{.expression = "t", .is_relative = true, .value = 4}},
    };
}

static inline void stage_close(struct stage *stage)
{
    scratch_close(&stage->scratch);
}

static inline struct wg_tuning_grid *stage_grid(const struct stage *stage)
{
    struct wg_tuning_grid *grid = NULL;
    struct wg_error err = {0};
    if (wg__tuning_grid_open(&grid, &stage->request, &err) != WG_OK)
        fail_msg("%s", err.text);
    return grid;
}

#endif
