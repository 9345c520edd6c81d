/* SPDX-License-Identifier: MIT
 *
 * `wattgov-vgpu show`: the state of a running virtual machine, truths included.
 *
 * What a client of NVML can only estimate stands here as it is: the power now, and the true energy.
 * Tests compare with it.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/json.h"
#include "cli/options.h"
#include "cli/table.h"
#include "vgpu/program.h"

struct args {
    const char *machine_file;
    bool calls, json;
};

static const struct wg_option options[] = {
    {.name = "calls",
     WG_OPTION_FLAG(struct args, calls),
     .help = "Show how often each NVML function was called, by all processes."},
    {.name = "json", WG_OPTION_FLAG(struct args, json), .help = "Write JSON (with the calls)."},
    VGPU_OPTION_MACHINE_FILE(struct args, machine_file),
};

static const struct wg_option_set set = {
    .command = "wattgov-vgpu show",
    .summary = "Shows limits, clocks, power, true energy, loads and faults of a running virtual "
               "machine.",
    .options = options,
    .count = sizeof options / sizeof options[0],
};

/* One moment of a GPU, copied under its lock. */
struct moment {
    double limit_w, enforced_w, clock_hz, lock_min_hz, lock_max_hz, memory_lock_hz;
    double power_w, energy_j;
    double temperature_c, throttled_power_s, throttled_thermal_s;
    size_t load_count;
    struct vgpu_load loads[VGPU_LOADS_MAX];
};

static void look(struct vgpu_gpu *gpu, struct moment *out)
{
    vgpu_lock(gpu);
    vgpu_advance(gpu, wg__clock_ns());
    *out = (struct moment){
        .limit_w = gpu->limit_w,
        .enforced_w = vgpu_enforced_limit_w(gpu),
        .clock_hz = gpu->clock_hz,
        .lock_min_hz = gpu->lock_min_hz,
        .lock_max_hz = gpu->lock_max_hz,
        .memory_lock_hz = gpu->memory_lock_max_hz,
        .power_w = gpu->segments[(gpu->segment_count - 1) % VGPU_SEGMENTS_MAX].power_w,
        .energy_j = gpu->energy_j,
        .temperature_c = gpu->temperature_c,
        .throttled_power_s = gpu->throttled_power_s,
        .throttled_thermal_s = gpu->throttled_thermal_s,
    };
    for (size_t i = 0; i < VGPU_LOADS_MAX; i++)
        if (gpu->loads[i].pid != 0)
            out->loads[out->load_count++] = gpu->loads[i];
    vgpu_unlock(gpu);
}

static void write_calls(struct wg_json *json, const struct vgpu_machine *machine, int gpu)
{
    wg__json_key(json, "calls");
    wg__json_object(json);
    for (unsigned i = 0; vgpu_function_name(i) != NULL; i++) {
        const uint64_t count = vgpu_calls(machine, gpu, vgpu_function_name(i));
        if (count > 0)
            wg__json_member_uint(json, vgpu_function_name(i), count);
    }
    wg__json_close(json);
}

static void write_loads(struct wg_json *json, const struct moment *now)
{
    wg__json_key(json, "loads");
    wg__json_array(json);
    for (size_t i = 0; i < now->load_count; i++) {
        wg__json_object(json);
        wg__json_member_uint(json, "pid", now->loads[i].pid);
        wg__json_member_double(json, "utilization", now->loads[i].utilization);
        wg__json_member_double(json, "intensity", now->loads[i].intensity);
        wg__json_member_uint(json, "memory_bytes", now->loads[i].memory_bytes);
        wg__json_member_uint(json, "curve_points", now->loads[i].curve_count);
        wg__json_close(json);
    }
    wg__json_close(json);
}

/* 0 means "not locked": null. */
static void member_or_null(struct wg_json *json, const char *key, double value)
{
    wg__json_key(json, key);
    if (value > 0)
        wg__json_double(json, value);
    else
        wg__json_null(json);
}

static void write_gpu(struct wg_json *json, struct vgpu_machine *machine, size_t index)
{
    struct vgpu_gpu *gpu = &machine->gpus[index];
    struct moment now;
    look(gpu, &now);
    wg__json_object(json);
    wg__json_member_uint(json, "index", index);
    wg__json_member_string(json, "name", gpu->model.name);
    wg__json_member_string(json, "uuid", gpu->model.uuid);
    wg__json_member_string(json, "pci", gpu->model.pci);
    wg__json_member_double(json, "limit_w", now.limit_w);
    wg__json_member_double(json, "enforced_limit_w", now.enforced_w);
    wg__json_member_double(json, "clock_hz", now.clock_hz);
    member_or_null(json, "clock_lock_min_hz", now.lock_min_hz);
    member_or_null(json, "clock_lock_max_hz", now.lock_max_hz);
    member_or_null(json, "memory_clock_lock_hz", now.memory_lock_hz);
    wg__json_member_double(json, "power_w", now.power_w);
    wg__json_member_double(json, "energy_j", now.energy_j);
    wg__json_member_double(json, "temperature_c", now.temperature_c);
    wg__json_member_double(json, "throttled_power_s", now.throttled_power_s);
    wg__json_member_double(json, "throttled_thermal_s", now.throttled_thermal_s);
    write_loads(json, &now);
    write_calls(json, machine, (int)index);
    wg__json_close(json);
}

static const char *kind_name(enum vgpu_fault_kind kind)
{
    static const char *const names[] = {
#define X(name, text) text,
        VGPU_FAULTS(X)
#undef X
    };
    return (size_t)kind < sizeof names / sizeof names[0] ? names[kind] : "?";
}

static void write_faults(struct wg_json *json, const struct vgpu_machine *machine)
{
    wg__json_key(json, "faults");
    wg__json_array(json);
    for (size_t i = 0; i < VGPU_FAULTS_MAX; i++) {
        const struct vgpu_fault *fault = &machine->faults[i];
        if (!fault->is_set)
            continue;
        wg__json_object(json);
        wg__json_member_string(json, "kind", kind_name(fault->kind));
        wg__json_key(json, "gpu");
        if (fault->gpu >= 0)
            wg__json_uint(json, (uint64_t)fault->gpu);
        else
            wg__json_null(json);
        wg__json_member_string(json, "function",
                               fault->function[0] != '\0' ? fault->function : NULL);
        wg__json_member_uint(json, "from_call", fault->from_call);
        wg__json_member_uint(json, "calls", fault->calls);
        wg__json_member_uint(json, "code", (uint64_t)fault->code);
        wg__json_member_double(json, "value", fault->value);
        wg__json_close(json);
    }
    wg__json_close(json);
}

static void write_json(struct wg_buffer *out, struct vgpu_machine *machine, const char *path)
{
    struct wg_json json;
    wg__json_init(&json, out);
    wg__json_object(&json);
    wg__json_member_string(&json, "schema", "wattgov.vgpu.show/1");
    wg__json_member_string(&json, "machine", machine->id);
    wg__json_member_string(&json, "file", path);
    wg__json_member_string(&json, "driver", machine->driver);
    wg__json_member_string(&json, "nvml_version", machine->nvml_version);
    wg__json_member_uint(&json, "cuda_version", (uint64_t)machine->cuda_version);
    wg__json_member_bool(&json, "anyone_may_set", machine->anyone_may_set);
    wg__json_member_double(&json, "age_s", (double)(wg__clock_ns() - machine->created_ns) * 1e-9);
    wg__json_key(&json, "gpus");
    wg__json_array(&json);
    for (size_t i = 0; i < machine->gpu_count; i++)
        write_gpu(&json, machine, i);
    wg__json_close(&json);
    write_faults(&json, machine);
    write_calls(&json, machine, -1);
    wg__json_close(&json);
    wg__buffer_puts(out, "\n");
}

static void write_table(struct wg_buffer *out, struct vgpu_machine *machine, const char *path)
{
    static const struct wg_table_column columns[] = {
        {"GPU", WG_ALIGN_RIGHT},   {"name", WG_ALIGN_LEFT},         {"power", WG_ALIGN_RIGHT},
        {"limit", WG_ALIGN_RIGHT}, {"enforced", WG_ALIGN_RIGHT},    {"clock", WG_ALIGN_RIGHT},
        {"temp.", WG_ALIGN_RIGHT}, {"true energy", WG_ALIGN_RIGHT}, {"loads", WG_ALIGN_RIGHT}};
    wg__buffer_printf(out, "%s, driver %s, %s\n", machine->id, machine->driver, path);
    struct wg_table table;
    wg__table_init(&table, columns, sizeof columns / sizeof columns[0]);
    for (size_t i = 0; i < machine->gpu_count; i++) {
        struct moment now;
        look(&machine->gpus[i], &now);
        wg__table_cell(&table, "%zu", i);
        wg__table_cell(&table, "%s", machine->gpus[i].model.name);
        wg__table_cell(&table, "%.1f W", now.power_w);
        wg__table_cell(&table, "%.0f W", now.limit_w);
        wg__table_cell(&table, "%.0f W", now.enforced_w);
        wg__table_cell(&table, "%.0f MHz", now.clock_hz * 1e-6);
        wg__table_cell(&table, "%.0f C", now.temperature_c);
        wg__table_cell(&table, "%.3f J", now.energy_j);
        wg__table_cell(&table, "%zu", now.load_count);
    }
    wg__table_write(&table, wg__wants_color(stdout), out);
    wg__table_fini(&table);
    for (size_t i = 0; i < VGPU_FAULTS_MAX; i++) {
        const struct vgpu_fault *fault = &machine->faults[i];
        if (!fault->is_set)
            continue;
        wg__buffer_printf(out, "fault: %s", kind_name(fault->kind));
        if (fault->gpu >= 0)
            wg__buffer_printf(out, " on GPU %d", fault->gpu);
        wg__buffer_printf(out, "%s%s\n", fault->function[0] != '\0' ? " in " : "", fault->function);
    }
}

static void write_call_table(struct wg_buffer *out, const struct vgpu_machine *machine)
{
    static const struct wg_table_column columns[] = {
        {"function", WG_ALIGN_LEFT}, {"GPU", WG_ALIGN_RIGHT}, {"calls", WG_ALIGN_RIGHT}};
    struct wg_table table;
    wg__table_init(&table, columns, sizeof columns / sizeof columns[0]);
    for (int gpu = -1; gpu < (int)machine->gpu_count; gpu++) {
        for (unsigned i = 0; vgpu_function_name(i) != NULL; i++) {
            const uint64_t count = vgpu_calls(machine, gpu, vgpu_function_name(i));
            if (count == 0)
                continue;
            wg__table_cell(&table, "%s", vgpu_function_name(i));
            if (gpu >= 0)
                wg__table_cell(&table, "%d", gpu);
            else
                wg__table_cell(&table, "-");
            wg__table_cell(&table, "%llu", (unsigned long long)count);
        }
    }
    wg__table_write(&table, wg__wants_color(stdout), out);
    wg__table_fini(&table);
}

static int run(int argc, char *argv[])
{
    struct args args = {0};
    int status = WG_EXIT_OK;
    if (!wg__command_begin(&set, argc, argv, &args, &status))
        return status;
    struct wg_error err;
    char path[VGPU_PATH_MAX];
    struct vgpu_machine *machine = NULL;
    struct wg_buffer text;
    wg__buffer_init(&text);
    enum wg_code code = vgpu_find_running(&machine, path, args.machine_file, &err);
    if (code == WG_OK && args.json)
        write_json(&text, machine, path);
    else if (code == WG_OK)
        write_table(&text, machine, path);
    if (code == WG_OK && args.calls && !args.json)
        write_call_table(&text, machine);
    if (code == WG_OK)
        code = wg__command_print(stdout, &text, &err);
    wg__buffer_fini(&text);
    vgpu_unmap(machine);
    return code == WG_OK ? WG_EXIT_OK : wg__command_fail(&set, &err);
}

const struct wg_command vgpu_command_show = {
    .name = "show", .summary = "Show the state of a running virtual machine", .run = run};
