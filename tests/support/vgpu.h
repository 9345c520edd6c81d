/* SPDX-License-Identifier: MIT
 *
 * A virtual machine in a scratch file, for tests: GPUs with round numbers, time moved by hand.
 *
 *     struct vgpu_stage stage;
 *     vgpu_stage_open(&stage, 2);
 *     vgpu_stage_load(&stage, 0, 1.0, 1.0);    from the stage's time on
 *     vgpu_stage_pass(&stage, 0, 0.5);         half a second later
 *     vgpu_stage_close(&stage);
 *
 * Time begins well ahead of the clock, so that no call that uses the clock moves a GPU.
 *
 * Owns: the file and the mapping.    Threads: one thread at a time.
 */
#ifndef WG_TESTS_SUPPORT_VGPU_H
#define WG_TESTS_SUPPORT_VGPU_H

#include <string.h>
#include <unistd.h>

#include "support/check.h"
#include "support/scratch.h"
#include "vgpu/state.h"

struct vgpu_stage {
    struct scratch scratch;
    char path[512];
    struct vgpu_machine *machine;
    uint64_t begin_ns;
};

/* 100 W idle, 500 W at most; clocks 300, 400, .. 2000 MHz; limits 150 to 500 W; a counter of 20 ms,
 * an instant sensor of 100 ms (25 ms of it seen), averages over a second. */
static inline struct vgpu_model vgpu_stage_model(int number)
{
    struct vgpu_model model = {
        .name = "NVIDIA Test 100",
        .pci_device_id = 0x123410de,
        .architecture = 9,
        .compute_major = 9,
        .cores = 1000,
        .memory_bus_bits = 512,
        .memory_bytes = 64ULL << 30,
        .idle_w = 100,
        .load_w = 500,
        .memory_idle_w = 20,
        .memory_load_w = 60,
        .limit_min_w = 150,
        .limit_max_w = 500,
        .limit_default_w = 500,
        .clock_idle_hz = 300e6,
        .clock_count = 18,
        .memory_clocks_hz = {800e6, 1600e6},
        .memory_clock_count = 2,
        .voltage_floor = 0.5,
        .instant = {true, 0.1, 0.025, 1.0, 0.0},
        .average = {true, 0.1, 1.0, 1.0, 0.0},
        .usage = {true, 0.1, 1.0, 1.0, 0.0},
        .memory = {true, 0.1, 1.0, 1.0, 0.0},
        .has_counter = true,
        .counter_period_s = 0.02,
        .ambient_c = 25,
        .kelvin_per_watt = 0.1,
        .thermal_s = 10,
        .slowdown_c = 90,
        .can_lock_gpu_clocks = true,
        .can_lock_memory_clocks = true,
    };
    (void)snprintf(model.uuid, sizeof model.uuid, "GPU-00000000-0000-0000-0000-%012d", number);
    (void)snprintf(model.pci, sizeof model.pci, "00000000:%02X:00.0", 0x1a + number);
    for (size_t i = 0; i < model.clock_count; i++)
        model.clocks_hz[i] = (3.0 + (double)i) * 100e6;
    return model;
}

/* At the time of the clock. */
static inline void vgpu_stage_open_now(struct vgpu_stage *stage, const struct vgpu_model *models,
                                       size_t count)
{
    struct wg_error err = {0};
    scratch_open(&stage->scratch);
    (void)snprintf(stage->path, sizeof stage->path, "%s", scratch_path(&stage->scratch, "machine"));
    if (vgpu_create(&stage->machine, stage->path, "test", models, count, &err) != WG_OK)
        fail_msg("%s", err.text);
    (void)snprintf(stage->machine->driver, sizeof stage->machine->driver, "580.65.06");
    (void)snprintf(stage->machine->nvml_version, sizeof stage->machine->nvml_version,
                   "13.580.65.06");
    stage->machine->cuda_version = 13000;
    stage->begin_ns = stage->machine->created_ns;
}

static inline void vgpu_stage_open_models(struct vgpu_stage *stage, const struct vgpu_model *models,
                                          size_t count)
{
    vgpu_stage_open_now(stage, models, count);
    stage->begin_ns += 1000000000000U;
    for (size_t i = 0; i < count; i++) {
        vgpu_lock(&stage->machine->gpus[i]);
        vgpu_advance(&stage->machine->gpus[i], stage->begin_ns);
        stage->machine->gpus[i].phase_ns = stage->begin_ns; /* a tick of all meters */
        vgpu_unlock(&stage->machine->gpus[i]);
    }
}

static inline void vgpu_stage_open(struct vgpu_stage *stage, size_t count)
{
    struct vgpu_model models[4];
    assert_in_range(count, 0, 4);
    for (size_t i = 0; i < count; i++)
        models[i] = vgpu_stage_model((int)i);
    vgpu_stage_open_models(stage, models, count);
}

static inline void vgpu_stage_close(struct vgpu_stage *stage)
{
    vgpu_unmap(stage->machine);
    scratch_close(&stage->scratch);
}

/* This process's load, from the GPU's time on. */
static inline void vgpu_stage_load(struct vgpu_stage *stage, size_t gpu, double utilization,
                                   double intensity)
{
    struct vgpu_load load = {
        .pid = (uint32_t)getpid(), .utilization = utilization, .intensity = intensity};
    vgpu_lock(&stage->machine->gpus[gpu]);
    assert_int_equal(vgpu_put_load(&stage->machine->gpus[gpu], &load, NULL), WG_OK);
    vgpu_unlock(&stage->machine->gpus[gpu]);
}

/* `seconds` pass on a GPU. */
static inline void vgpu_stage_pass(struct vgpu_stage *stage, size_t gpu, double seconds)
{
    vgpu_lock(&stage->machine->gpus[gpu]);
    vgpu_advance(&stage->machine->gpus[gpu],
                 stage->machine->gpus[gpu].t_ns + (uint64_t)llround(seconds * 1e9));
    vgpu_unlock(&stage->machine->gpus[gpu]);
}

#endif
