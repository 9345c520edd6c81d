/* SPDX-License-Identifier: MIT
 *
 * `wattgov-vgpu fault`: what goes wrong on purpose, from another terminal.
 *
 * The kinds are those of VGPU_FAULTS (state.h); a table here says which settings each one takes, so
 * that a setting that would do nothing is refused.
 */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/number.h"
#include "cli/options.h"
#include "vgpu/program.h"

struct args {
    const char *machine_file;
    struct wg_option_list gpus; /* none: all */
    const char *function;
    unsigned from_call, calls, code;
    double value;
};

static const struct args defaults = {.from_call = 1, .calls = 0, .code = UINT_MAX, .value = NAN};

static const struct wg_option options[] = {
    {.name = "gpu",
     WG_OPTION_LIST(struct args, gpus),
     .value = "N",
     .fallback = "every GPU, and calls that concern none",
     .help = "The GPU that is hit; may be given several times."},
    {.name = "function",
     WG_OPTION_STRING(struct args, function),
     .value = "NAME",
     .fallback = "every function",
     .help = "The NVML function that is hit; 'nvmlDeviceGetFieldValues:186' is one field of it."},
    {.name = "from-call",
     WG_OPTION_UNSIGNED(struct args, from_call),
     .value = "K",
     .min = 1,
     .max = HUGE_VAL,
     .help = "Acts from the Kth such call on, counted from now."},
    {.name = "calls",
     WG_OPTION_UNSIGNED(struct args, calls),
     .value = "N",
     .max = HUGE_VAL,
     .help = "Acts on so many calls; 0: until it is cleared."},
    {.name = "code",
     WG_OPTION_UNSIGNED(struct args, code),
     .value = "N",
     .min = 1,
     .max = 9999,
     .fallback = "none",
     .help = "error: the NVML error code (999 is \"unknown\")."},
    {.name = "value",
     WG_OPTION_DOUBLE(struct args, value),
     .value = "X",
     .min = -HUGE_VAL,
     .max = HUGE_VAL,
     .fallback = "none",
     .help = "value: what is answered, in the call's own unit; cap: watts; delay: seconds; "
             "temperature: degrees Celsius."},
    VGPU_OPTION_MACHINE_FILE(struct args, machine_file),
};

static const struct wg_option_set set = {
    .command = "wattgov-vgpu fault",
    .word = "KIND|clear",
    .summary = "Makes a running virtual machine fail, or well again.",
    .options = options,
    .count = sizeof options / sizeof options[0],
    .epilog = "kinds:\n"
              "  hang         the call blocks until the fault is cleared\n"
              "  lost         everything that concerns the GPU answers \"GPU is lost\"\n"
              "  error        the call answers --code\n"
              "  value        the call answers --value, without an error\n"
              "  delay        the call takes --value seconds longer\n"
              "  reset        once: the energy counter restarts at 0\n"
              "  stuck        the energy counter stands still\n"
              "  revert       once: limit and clock locks fall back, as when a driver is reloaded\n"
              "  cap          somebody else enforces a limit of --value watts\n"
              "  temperature  the die is at --value degrees\n"
              "  clear        ends all faults\n\n"
              "examples:\n"
              "  wattgov-vgpu fault lost --gpu 3\n"
              "  wattgov-vgpu fault error --code 999 --function nvmlDeviceGetPowerUsage "
              "--from-call 5",
};

static const struct {
    const char *name;
    enum vgpu_fault_kind kind;
    bool needs_value, needs_code;
    double min, max; /* of the value */
} kinds[] = {
    {"hang", VGPU_FAULT_HANG, false, false, 0, 0},
    {"lost", VGPU_FAULT_LOST, false, false, 0, 0},
    {"error", VGPU_FAULT_ERROR, false, true, 0, 0},
    {"value", VGPU_FAULT_VALUE, true, false, -HUGE_VAL, HUGE_VAL},
    {"delay", VGPU_FAULT_DELAY, true, false, 0, 3600},
    {"reset", VGPU_FAULT_RESET, false, false, 0, 0},
    {"stuck", VGPU_FAULT_STUCK, false, false, 0, 0},
    {"revert", VGPU_FAULT_REVERT, false, false, 0, 0},
    {"cap", VGPU_FAULT_CAP, true, false, 1, 10000},
    {"temperature", VGPU_FAULT_TEMPERATURE, true, false, -40, 200},
};

enum { KINDS = sizeof kinds / sizeof kinds[0] };

/* Index in `kinds`; KINDS for "clear". */
static enum wg_code find_kind(const char *word, size_t *out, struct wg_error *err)
{
    const char *names[KINDS + 1];
    struct wg_buffer all;
    wg__buffer_init(&all);
    for (size_t i = 0; i < KINDS; i++) {
        names[i] = kinds[i].name;
        wg__buffer_printf(&all, "%s, ", names[i]);
    }
    names[KINDS] = "clear";
    wg__buffer_puts(&all, "clear");
    enum wg_code code = WG_OK;
    const char *nearest = word != NULL ? wg__nearest_word(word, names, KINDS + 1) : NULL;
    if (word == NULL)
        code = wg__fail(err, WG_EINVAL, "which fault? One of %s", all.failed ? "" : all.data);
    else if (nearest == NULL || strcmp(nearest, word) != 0)
        code = wg__fail(err, WG_EINVAL, "'%s' is no fault (%s)%s%s%s", word,
                        all.failed ? "" : all.data, nearest != NULL ? "; did you mean '" : "",
                        nearest != NULL ? nearest : "", nearest != NULL ? "'?" : "");
    for (size_t i = 0; i <= KINDS && code == WG_OK; i++)
        if (strcmp(names[i], word) == 0)
            *out = i;
    wg__buffer_fini(&all);
    return code;
}

/* The function must be one of the library; a part behind ':' is not looked at. */
static enum wg_code check_function(const char *name, struct wg_error *err)
{
    const char *known[VGPU_FUNCTIONS_MAX];
    char plain[VGPU_TEXT_MAX];
    (void)snprintf(plain, sizeof plain, "%.*s", (int)strcspn(name, ":"), name);
    unsigned count = 0;
    for (; count < VGPU_FUNCTIONS_MAX && vgpu_function_name(count) != NULL; count++) {
        known[count] = vgpu_function_name(count);
        if (strcmp(known[count], plain) == 0)
            return WG_OK;
    }
    const char *nearest = wg__nearest_word(plain, known, count);
    return wg__fail(err, WG_EINVAL, "--function: '%s' is no function of NVML%s%s%s", name,
                    nearest != NULL ? "; did you mean '" : "", nearest != NULL ? nearest : "",
                    nearest != NULL ? "'?" : "");
}

static enum wg_code check_args(const struct args *args, size_t kind, struct wg_error *err)
{
    const char *name = kinds[kind].name;
    if (kinds[kind].needs_value != !isnan(args->value))
        return wg__fail(err, WG_EINVAL, "%s %s --value", name,
                        kinds[kind].needs_value ? "needs a" : "takes no");
    if (kinds[kind].needs_value &&
        !(args->value >= kinds[kind].min && args->value <= kinds[kind].max))
        return wg__fail(err, WG_EINVAL,
                        "--value: '%.10g' is not a number in %.10g .. %.10g, as %s "
                        "needs it",
                        args->value, kinds[kind].min, kinds[kind].max, name);
    if (kinds[kind].needs_code != (args->code != UINT_MAX))
        return wg__fail(err, WG_EINVAL, "%s %s --code", name,
                        kinds[kind].needs_code ? "needs a" : "takes no");
    return args->function != NULL ? check_function(args->function, err) : WG_OK;
}

/* The number of a GPU; what the machine has not is refused when the fault is added. */
static enum wg_code parse_gpu(const char *text, int *out, struct wg_error *err)
{
    uint64_t number = 0;
    if (!wg__parse_uint64(text, &number) || number >= VGPU_GPUS_MAX)
        return wg__option_reject(err, "gpu", text, "the number of a GPU");
    *out = (int)number;
    return WG_OK;
}

static enum wg_code inject(struct vgpu_machine *machine, const struct args *args, size_t kind,
                           struct wg_error *err)
{
    if (kind == KINDS) {
        vgpu_fault_clear(machine);
        return WG_OK;
    }
    struct vgpu_fault fault = {
        .is_set = true,
        .kind = kinds[kind].kind,
        .gpu = -1,
        .from_call = args->from_call,
        .calls = args->calls,
        .code = args->code == UINT_MAX ? 0 : (int)args->code,
        .value = isnan(args->value) ? 0 : args->value,
    };
    if (args->function != NULL)
        (void)snprintf(fault.function, sizeof fault.function, "%s", args->function);
    if (args->gpus.count == 0)
        return vgpu_fault_add(machine, &fault, err);
    /* All of them or none: each number is looked at before the first fault is set. */
    enum wg_code code = WG_OK;
    for (size_t i = 0; i < args->gpus.count && code == WG_OK; i++) {
        code = parse_gpu(args->gpus.items[i], &fault.gpu, err);
        if (code == WG_OK)
            code = vgpu_fault_check(machine, &fault, err);
    }
    for (size_t i = 0; i < args->gpus.count && code == WG_OK; i++) {
        code = parse_gpu(args->gpus.items[i], &fault.gpu, err);
        if (code == WG_OK)
            code = vgpu_fault_add(machine, &fault, err);
    }
    return code;
}

static int run(int argc, char *argv[])
{
    struct args args = defaults;
    const char *word = wg__command_word(&argc, &argv);
    int status = WG_EXIT_OK;
    if (!wg__command_begin(&set, argc, argv, &args, &status))
        return status;
    struct wg_error err;
    size_t kind = 0;
    enum wg_code code = find_kind(word, &kind, &err);
    if (code == WG_OK && kind < KINDS)
        code = check_args(&args, kind, &err);
    char path[VGPU_PATH_MAX];
    struct vgpu_machine *machine = NULL;
    if (code == WG_OK)
        code = vgpu_find_running(&machine, path, args.machine_file, &err);
    if (code == WG_OK)
        code = inject(machine, &args, kind, &err);
    vgpu_unmap(machine);
    return code == WG_OK ? WG_EXIT_OK : wg__command_fail(&set, &err);
}

const struct wg_command vgpu_command_fault = {
    .name = "fault", .summary = "Inject a fault into a running virtual machine", .run = run};
