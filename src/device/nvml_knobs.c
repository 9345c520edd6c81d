/* SPDX-License-Identifier: MIT
 *
 * What can be set on an NVIDIA GPU, found out by reading alone.
 *
 * The power limit has a range; where both ends are one number there is nothing to set. Clocks are
 * set by locking them. NVML has no call that reads a lock, so `current` is not a number: what is
 * locked must be remembered by who locks. Application clocks, the older way, are gone from
 * current drivers (error 26) and never used.
 *
 * Whether this process may set is asked of the kernel, not tried: the driver wants CAP_SYS_ADMIN.
 *
 * Owns: nothing but what it puts into the GPU's arena.    Threads: one at a time per GPU.
 */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device/nvml.h"
#include "device/sysfs.h"

enum { CAP_SYS_ADMIN_BIT = 21, CLOCKS_MOST = 4096, MHZ_MOST = 20000 };

static enum wg_code fail_memory(const struct nvml_gpu *gpu, struct wg_error *err)
{
    return wg__fail(err, WG_ENOMEM, "GPU %u: out of memory", gpu->index);
}

/* The effective capabilities, from /proc/self/status; without it, root counts. */
static bool may_set(const char *root)
{
    char text[WG_SYSFS_TEXT_MAX];
    const char *line = NULL;
    if (wg__sysfs_text(root, "/proc/self/status", text, sizeof text, NULL) == WG_OK)
        line = strstr(text, "CapEff:");
    if (line == NULL)
        return geteuid() == 0;
    uint64_t bits = 0;
    for (line += strcspn(line, "\t "); *line == '\t' || *line == ' ';)
        line++;
    for (; isxdigit((unsigned char)*line); line++) {
        const int digit = isdigit((unsigned char)*line) ? *line - '0' : (*line | 0x20) - 'a' + 10;
        bits = bits << 4 | (uint64_t)digit;
    }
    return (bits >> CAP_SYS_ADMIN_BIT & 1u) != 0;
}

static void set_absent(struct wg_knob_info *knob, const char *why_not, const char *remedy)
{
    knob->is_present = false;
    knob->min = knob->max = knob->step = knob->preset = knob->current = NAN;
    knob->why_not = why_not;
    knob->remedy = remedy;
}

static void set_writable(struct nvml_gpu *gpu, struct wg_knob_info *knob, bool has_call)
{
    knob->is_writable = has_call && may_set(gpu->root);
    if (knob->is_writable)
        return;
    knob->why_not = has_call ? "setting needs CAP_SYS_ADMIN, which this process lacks"
                             : "this driver's library has no such call";
    knob->remedy = has_call ? "run as root" : "install a newer driver";
}

static enum wg_code probe_limit(struct nvml_gpu *gpu, struct wg_error *err)
{
    struct wg_knob_info *knob = &gpu->base.info.knobs[WG_KNOB_POWER_LIMIT];
    unsigned min_mw = 0;
    unsigned max_mw = 0;
    knob->source = wg__nvml_names.set_limit;
    const int code = NVML_CALL(gpu, limit_range, gpu->handle, &min_mw, &max_mw);
    if (code != NVML_OK) {
        set_absent(knob, wg__nvml_why_not(gpu, wg__nvml_names.limit_range, code),
                   wg__nvml_code(code)->remedy);
        return knob->why_not != NULL ? WG_OK : fail_memory(gpu, err);
    }
    if (max_mw <= min_mw || max_mw * 1e-3 > gpu->power_most_w) {
        set_absent(knob,
                   max_mw == min_mw
                       ? wg__nvml_text(gpu, "the only power limit is %.0f W", max_mw * 1e-3)
                       : wg__nvml_text(gpu, "%s: from %u to %u mW is no range",
                                       wg__nvml_names.limit_range, min_mw, max_mw),
                   NULL);
        return knob->why_not != NULL ? WG_OK : fail_memory(gpu, err);
    }
    unsigned raw = 0;
    knob->is_present = true;
    knob->min = min_mw * 1e-3;
    knob->max = max_mw * 1e-3;
    knob->step = 1e-3;
    knob->preset =
        NVML_CALL(gpu, default_limit, gpu->handle, &raw) == NVML_OK ? raw * 1e-3 : (double)NAN;
    knob->current = NVML_CALL(gpu, limit, gpu->handle, &raw) == NVML_OK ? raw * 1e-3 : (double)NAN;
    if (knob->preset > gpu->power_most_w)
        knob->preset = NAN;
    if (knob->current > gpu->power_most_w)
        knob->current = NAN;
    set_writable(gpu, knob, gpu->library->calls.set_limit != NULL);
    return WG_OK;
}

/* -- Clocks ----------------------------------------------------------------------------------- */

struct clock_list {
    unsigned *mhz;
    unsigned count;
    int code; /* of the driver */
};

/* One of the two calls: the size first, then the list. */
static int ask_clocks(struct nvml_gpu *gpu, bool is_memory, unsigned memory_mhz, unsigned *count,
                      unsigned *out)
{
    return is_memory ? NVML_CALL(gpu, memory_clocks, gpu->handle, count, out)
                     : NVML_CALL(gpu, graphics_clocks, gpu->handle, memory_mhz, count, out);
}

static int compare_mhz(const void *left, const void *right)
{
    const unsigned a = *(const unsigned *)left;
    const unsigned b = *(const unsigned *)right;
    return (a > b) - (a < b);
}

/* Rising, each once; in the arena. */
static enum wg_code list_clocks(struct nvml_gpu *gpu, bool is_memory, unsigned memory_mhz,
                                struct clock_list *list, struct wg_error *err)
{
    *list = (struct clock_list){0};
    list->code = ask_clocks(gpu, is_memory, memory_mhz, &list->count, NULL);
    if (list->code != NVML_E_INSUFFICIENT_SIZE && list->code != NVML_OK)
        list->count = 0;
    if (list->count == 0)
        return WG_OK;
    if (list->count > CLOCKS_MOST)
        list->count = CLOCKS_MOST;
    const unsigned room = list->count;
    list->mhz = wg__arena_alloc(&gpu->base.arena, room, sizeof *list->mhz);
    if (list->mhz == NULL)
        return fail_memory(gpu, err);
    list->code = ask_clocks(gpu, is_memory, memory_mhz, &list->count, list->mhz);
    if (list->code != NVML_OK || list->count > room)
        list->count = 0;
    if (list->count > 1)
        qsort(list->mhz, list->count, sizeof *list->mhz, compare_mhz);
    unsigned kept = 0;
    for (unsigned i = 0; i < list->count; i++) {
        const bool is_clock = list->mhz[i] > 0 && list->mhz[i] <= MHZ_MOST;
        if (is_clock && (kept == 0 || list->mhz[kept - 1] != list->mhz[i]))
            list->mhz[kept++] = list->mhz[i];
    }
    list->count = kept;
    return WG_OK;
}

/* Fills a knob from a list of at least two clocks. */
static enum wg_code set_levels(struct nvml_gpu *gpu, struct wg_knob_info *knob,
                               const struct clock_list *list, struct wg_error *err)
{
    double *levels = wg__arena_alloc(&gpu->base.arena, list->count, sizeof *levels);
    if (levels == NULL)
        return fail_memory(gpu, err);
    for (unsigned i = 0; i < list->count; i++)
        levels[i] = list->mhz[i] * 1e6;
    knob->is_present = true;
    knob->levels = levels;
    knob->level_count = list->count;
    knob->min = levels[0];
    knob->max = levels[list->count - 1];
    knob->step = NAN;
    for (unsigned i = 1; i < list->count; i++)
        knob->step = fmin(knob->step, levels[i] - levels[i - 1]); /* of NAN and x: x */
    knob->current = NAN;
    return WG_OK;
}

static enum wg_code probe_clock(struct nvml_gpu *gpu, enum wg_knob which, const char *list_call,
                                const struct clock_list *list, bool has_call, struct wg_error *err)
{
    struct wg_knob_info *knob = &gpu->base.info.knobs[which];
    const bool is_memory = which == WG_KNOB_MEMORY_CLOCK;
    if (list->count < 2) {
        const char *why =
            list->count == 1        ? wg__nvml_text(gpu, "the only %s clock is %u MHz",
                                             is_memory ? "memory" : "GPU", list->mhz[0])
            : list->code != NVML_OK ? wg__nvml_why_not(gpu, list_call, list->code)
                                    : wg__nvml_text(gpu, "%s: an empty list", list_call);
        set_absent(knob, why, list->count == 1 ? NULL : wg__nvml_code(list->code)->remedy);
        return why != NULL ? WG_OK : fail_memory(gpu, err);
    }
    const enum wg_code code = set_levels(gpu, knob, list, err);
    if (code != WG_OK)
        return code;
    /* A GPU clock that is locked to at most the largest is as good as not locked; the memory's
     * choice of its own has no such number. */
    knob->preset = is_memory ? (double)NAN : knob->max;
    set_writable(gpu, knob, has_call);
    return WG_OK;
}

/* Locked GPU clocks came with Volta, locked memory clocks with Ampere. */
static bool is_one_of(const char *architecture, const char *const *words, size_t count)
{
    for (size_t i = 0; architecture != NULL && i < count; i++) {
        if (strcmp(architecture, words[i]) == 0)
            return true;
    }
    return false;
}

static enum wg_code probe_clocks(struct nvml_gpu *gpu, struct wg_error *err)
{
    static const char *const old[] = {"kepler", "maxwell", "pascal", "volta", "turing"};
    enum { WITHOUT_GPU_LOCK = 3, WITHOUT_MEMORY_LOCK = 5 };
    struct wg_device_info *info = &gpu->base.info;
    const struct nvml_calls *calls = &gpu->library->calls;
    struct wg_knob_info *gpu_knob = &info->knobs[WG_KNOB_GPU_CLOCK];
    struct wg_knob_info *memory_knob = &info->knobs[WG_KNOB_MEMORY_CLOCK];
    gpu_knob->source = wg__nvml_names.lock_gpu_clocks;
    memory_knob->source = wg__nvml_names.lock_memory_clocks;

    struct clock_list memory;
    struct clock_list graphics = {0};
    enum wg_code code = list_clocks(gpu, true, 0, &memory, err);
    if (code != WG_OK)
        return code;
    graphics.code = memory.code;
    const char *graphics_call = wg__nvml_names.memory_clocks;
    if (memory.count > 0) {
        graphics_call = wg__nvml_names.graphics_clocks;
        code = list_clocks(gpu, false, memory.mhz[memory.count - 1], &graphics, err);
    }
    if (code != WG_OK)
        return code;
    if (is_one_of(info->architecture, old, WITHOUT_GPU_LOCK))
        set_absent(gpu_knob, "GPU clocks can be locked from Volta on", NULL);
    else
        code = probe_clock(gpu, WG_KNOB_GPU_CLOCK, graphics_call, &graphics,
                           calls->lock_gpu_clocks != NULL && calls->unlock_gpu_clocks != NULL, err);
    if (code != WG_OK)
        return code;
    if (is_one_of(info->architecture, old, WITHOUT_MEMORY_LOCK)) {
        set_absent(memory_knob, "memory clocks can be locked from Ampere on", NULL);
        return WG_OK;
    }
    return probe_clock(gpu, WG_KNOB_MEMORY_CLOCK, wg__nvml_names.memory_clocks, &memory,
                       calls->lock_memory_clocks != NULL && calls->unlock_memory_clocks != NULL,
                       err);
}

enum wg_code wg__nvml_probe_knobs(struct nvml_gpu *gpu, struct wg_error *err)
{
    struct wg_knob_info *cpu = &gpu->base.info.knobs[WG_KNOB_CPU_CLOCK];
    cpu->source = "cpufreq";
    set_absent(cpu, "not a knob of a GPU", NULL);
    const enum wg_code code = probe_limit(gpu, err);
    return code == WG_OK ? probe_clocks(gpu, err) : code;
}
