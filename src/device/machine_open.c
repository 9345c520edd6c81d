/* SPDX-License-Identifier: MIT
 *
 * Finding the devices of a machine.
 *
 *     options, environment --> selection, config
 *     each backend's `open`, one after the other on a worker: cheap, but nvmlInit may hang
 *     each device's `probe`, all at once: the whole takes as long as the slowest, at most a timeout
 *
 * A backend that fails and a device that hangs are facts to report, no reasons to fail: the other
 * GPUs are there. What the caller got wrong (a selector, a recording's path) is an error.
 *
 * Owns: the machine until it is handed out.    Threads: one.
 */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "device/machine_parts.h"
#include "device/sysfs.h"

enum { CALL_TIMEOUT_MS = 5000, LABEL_MAX = 32 };

static enum wg_code fail_memory(struct wg_error *err)
{
    return wg__fail(err, WG_ENOMEM, "cannot open the machine: out of memory");
}

static const char *or_else(const char *text, const char *other)
{
    return text != NULL && text[0] != '\0' ? text : other;
}

/* -- Options ---------------------------------------------------------------------------------- */

/* Options of an older or newer caller: what we do not know must be zero. */
static enum wg_code copy_opts(struct wg_machine_opts *out, const struct wg_machine_opts *opts,
                              struct wg_error *err)
{
    *out = (struct wg_machine_opts){.size = sizeof *out};
    if (opts == NULL)
        return WG_OK;
    if (opts->size < sizeof opts->size)
        return wg__fail(err, WG_EINVAL, "wg_machine_opts.size is %zu, expected %zu", opts->size,
                        sizeof *out);
    const size_t known = opts->size < sizeof *out ? opts->size : sizeof *out;
    const char *bytes = (const char *)opts;
    for (size_t i = known; i < opts->size; i++) {
        if (bytes[i] != 0)
            return wg__fail(err, WG_EINVAL,
                            "wg_machine_opts has something set at byte %zu, this library knows %zu",
                            i, sizeof *out);
    }
    memcpy(out, opts, known);
    return WG_OK;
}

static enum wg_code read_device_option(struct wg_machine *machine, const char *device,
                                       struct wg_error *err)
{
    static const char replay[] = "replay:";
    if (device == NULL)
        return WG_OK;
    if (strncmp(device, replay, sizeof replay - 1) != 0 || device[sizeof replay - 1] == '\0')
        return wg__fail(err, WG_EINVAL, "device '%s': expected 'replay:FILE'", device);
    machine->config.replay_path = wg__arena_strdup(&machine->arena, device + sizeof replay - 1);
    return machine->config.replay_path != NULL ? WG_OK : fail_memory(err);
}

static enum wg_code read_root(struct wg_machine *machine, const char *root, struct wg_error *err)
{
    char *copy = wg__arena_strdup(&machine->arena, root != NULL ? root : "");
    if (copy == NULL)
        return fail_memory(err);
    size_t length = strlen(copy);
    while (length > 0 && copy[length - 1] == '/')
        copy[--length] = '\0';
    if (!wg__sysfs_exists(copy, "/"))
        return wg__fail(err, WG_ENOENT, "root '%s': no such folder", copy);
    machine->config.root = copy;
    return WG_OK;
}

static enum wg_code read_opts(struct wg_machine *machine, const struct wg_machine_opts *opts,
                              const struct wg_machine_setup *setup, struct wg_error *err)
{
    const unsigned timeout_ms =
        opts->call_timeout_ms != 0 ? opts->call_timeout_ms : CALL_TIMEOUT_MS;
    machine->call_timeout_ns = (uint64_t)timeout_ms * 1000000U;
    machine->gpus_only = opts->gpus_only;
    machine->config.nvml_library = or_else(setup->nvml_library, "libnvidia-ml.so.1");
    machine->config.rocm_smi_library = or_else(setup->rocm_smi_library, "librocm_smi64.so");
    machine->config.replay_now_ns = setup->replay_now_ns;
    machine->config.replay_context = setup->replay_context;
    enum wg_code code = read_root(machine, opts->root, err);
    if (code == WG_OK)
        code = read_device_option(machine, opts->device, err);
    return code;
}

/* The environment speaks of this machine's GPUs, not of a recording's. It is read in programs with
 * more rights than their caller too: all that it can do is to leave GPUs out. */
static enum wg_code read_selectors(struct wg_machine *machine, const struct wg_machine_opts *opts,
                                   struct wg_error *err)
{
    const bool is_live = machine->config.replay_path == NULL;
    const enum wg_code code = wg__selection_new(&machine->selection, opts->gpus, opts->gpu_count,
                                                is_live ? getenv("CUDA_VISIBLE_DEVICES") : NULL,
                                                is_live ? getenv("CUDA_DEVICE_ORDER") : NULL, err);
    machine->config.selection = machine->selection;
    return code;
}

/* What may hide the GPU that a selector means: a driver that failed; where there is no GPU at all,
 * the first backend that found nothing (NVML cannot be loaded, say). NULL: nothing hides any. */
static const struct wg_backend_info *find_cause(const struct wg_machine *machine)
{
    const struct wg_backend_info *nothing = NULL;
    for (size_t i = 0; i < machine->opening_count; i++) {
        const struct wg_backend_info *info = &machine->openings[i].info;
        if (info->state != WG_OK && info->state != WG_ENODEV)
            return info;
        if (info->state == WG_ENODEV && nothing == NULL)
            nothing = info;
    }
    return wg__selection_gpu_count(machine->selection) == 0 ? nothing : NULL;
}

/* A selector that fits no GPU is the caller's mistake, unless a driver that failed hides the GPU:
 * its words are added. */
static enum wg_code check_selectors(const struct wg_machine *machine, struct wg_error *err)
{
    struct wg_error own = {0};
    const enum wg_code code = wg__selection_check(machine->selection, &own);
    if (code == WG_OK)
        return WG_OK;
    const struct wg_backend_info *cause = find_cause(machine);
    if (cause == NULL)
        return wg__fail(err, code, "%s", own.text);
    /* The list of the GPUs may be long; what hides one must not be cut off. */
    struct wg_error why = {.code = code};
    (void)wg__fail(&why, code, "%s%s%s", cause->text, cause->remedy != NULL ? "; " : "",
                   or_else(cause->remedy, ""));
    const size_t room = sizeof own.text - 8;
    const size_t taken = strlen(why.text) < room / 2 ? strlen(why.text) : room / 2;
    return wg__fail(err, code, "%.*s (%s)", (int)(room - taken), own.text, why.text);
}

/* -- Backends --------------------------------------------------------------------------------- */

static void run_open(void *context)
{
    struct wg_opening *opening = context;
    opening->code =
        opening->backend->open(&opening->config, &opening->list, &opening->remedy, &opening->err);
}

/* `open` has returned after all: what it found is not wanted any more. */
static void drop_open(void *context)
{
    struct wg_opening *opening = context;
    wg__device_list_fini(&opening->list);
    wg__machine_unref(opening->machine);
}

/* Runs a backend's `open` with a deadline; `*worker` is replaced when it hangs. */
static enum wg_code call_open(struct wg_opening *opening, struct wg_worker **worker,
                              struct wg_error *err)
{
    struct wg_machine *machine = opening->machine;
    if (machine->config.replay_path != NULL) { /* a file, however long, is no driver */
        run_open(opening);
        return WG_OK;
    }
    wg__machine_ref(machine);
    enum wg_code code =
        wg__worker_call(*worker, run_open, drop_open, opening, machine->call_timeout_ns);
    if (code != WG_ETIMEOUT)
        wg__machine_unref(machine);
    if (code == WG_OK)
        return WG_OK;
    if (code != WG_ETIMEOUT)
        return wg__fail(err, code, "cannot start a thread for %s: %s", opening->backend->name,
                        wg_code_text(code));
    const char *call = atomic_load(&opening->call);
    (void)wg__fail(err, code, "%s: %s has not returned for %.3g s", opening->backend->name,
                   call != NULL ? call : "finding its devices",
                   (double)machine->call_timeout_ns * 1e-9);
    wg__worker_free(*worker);
    *worker = NULL;
    return code;
}

/* Whether an error of a backend is the caller's, or one that leaves nothing to go on with. */
static bool is_fatal(const struct wg_machine *machine, enum wg_code code)
{
    if (machine->config.replay_path != NULL)
        return code != WG_OK && code != WG_ENODEV;
    return code == WG_EINVAL || code == WG_ENOMEM;
}

static enum wg_code describe_opening(struct wg_opening *opening, const struct wg_error *err,
                                     struct wg_error *out)
{
    struct wg_backend_info *info = &opening->info;
    char text[sizeof err->text];
    if (info->state == WG_OK && err->text[0] == '\0')
        (void)snprintf(text, sizeof text, "%zu device%s", info->device_count,
                       info->device_count == 1 ? "" : "s");
    else
        (void)snprintf(text, sizeof text, "%s",
                       err->text[0] != '\0' ? err->text : wg_code_text(info->state));
    info->text = wg__arena_strdup(&opening->machine->arena, text);
    return info->text != NULL ? WG_OK : fail_memory(out);
}

static enum wg_code open_backend(struct wg_opening *opening, struct wg_worker **worker,
                                 struct wg_error *err)
{
    struct wg_error own = {0};
    if (*worker == NULL && wg__worker_new(worker, err) != WG_OK)
        return WG_ENOMEM;
    opening->config = opening->machine->config;
    opening->config.call = &opening->call;
    enum wg_code code = call_open(opening, worker, &own);
    if (code == WG_OK) {
        code = opening->code;
        own = opening->err;
        opening->info.remedy = opening->remedy;
        opening->info.device_count = opening->list.count;
    }
    if (is_fatal(opening->machine, code))
        return wg__fail(err, code, "%s", own.text[0] != '\0' ? own.text : wg_code_text(code));
    opening->info.name = opening->backend->name;
    opening->info.state = code;
    return describe_opening(opening, &own, err);
}

static enum wg_code open_backends(struct wg_machine *machine,
                                  const struct wg_backend *const *backends, struct wg_error *err)
{
    size_t count = 0;
    while (backends[count] != NULL)
        count++;
    machine->openings = wg__alloc_zeroed(count + 1, sizeof *machine->openings);
    if (machine->openings == NULL)
        return fail_memory(err);
    struct wg_worker *worker = NULL;
    enum wg_code code = WG_OK;
    for (size_t i = 0; i < count && code == WG_OK; i++) {
        machine->openings[i].machine = machine;
        machine->openings[i].backend = backends[i];
        machine->opening_count = i + 1;
        code = open_backend(&machine->openings[i], &worker, err);
    }
    wg__worker_free(worker);
    return code;
}

/* -- Names ------------------------------------------------------------------------------------ */

/* The number of a device among those of its kind. GPUs of the first vendor keep their driver's
 * numbers, whichever were chosen; those of the next one count on behind them. */
static unsigned index_of(const struct wg_machine *machine, size_t position, size_t backend_first)
{
    const struct wg_device *device = machine->slots[position].device;
    unsigned base = 0; /* behind the last one of the earlier backends */
    unsigned next = 0; /* behind the last one at all */
    for (size_t i = 0; i < position; i++) {
        const struct wg_device_info *info = &machine->slots[i].device->info;
        if (info->kind != device->info.kind)
            continue;
        if (info->index >= next)
            next = info->index + 1;
        if (i < backend_first)
            base = next;
    }
    if (device->driver_index_plus_1 == 0)
        return next;
    return base + device->driver_index_plus_1 - 1;
}

static bool is_label_taken(const struct wg_machine *machine, size_t position, const char *label)
{
    for (size_t i = 0; i < position; i++) {
        if (strcmp(machine->slots[i].device->info.label, label) == 0)
            return true;
    }
    return false;
}

static bool is_label_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
}

/* A rail goes by its own name, the others by kind and number. */
static void write_label(const struct wg_device_info *info, char out[static LABEL_MAX])
{
    if (info->kind != WG_DEVICE_RAIL || info->name == NULL || info->name[0] == '\0') {
        (void)snprintf(out, LABEL_MAX, "%s%u", wg_device_kind_key(info->kind), info->index);
        return;
    }
    size_t length = 0;
    for (const char *p = info->name; *p != '\0' && length < LABEL_MAX - 8; p++)
        out[length++] = is_label_byte(*p) ? *p : '_';
    out[length] = '\0';
}

/* Names a device that is not probed yet. */
static enum wg_code name_device(struct wg_machine *machine, size_t position, size_t backend_first,
                                const char *backend, struct wg_error *err)
{
    struct wg_device_info *info = &machine->slots[position].device->info;
    if (info->kind >= WG_DEVICE_KIND_COUNT)
        info->kind = WG_DEVICE_RAIL;
    info->index = index_of(machine, position, backend_first);
    char label[LABEL_MAX];
    write_label(info, label);
    const size_t length = strlen(label);
    for (unsigned copy = 2; is_label_taken(machine, position, label); copy++)
        (void)snprintf(label + length, sizeof label - length, "-%u", copy);
    info->label = wg__arena_strdup(&machine->arena, label);
    if (info->backend == NULL)
        info->backend = backend;
    return info->label != NULL ? WG_OK : fail_memory(err);
}

/* -- Published infos -------------------------------------------------------------------------- */

static void complete_meters(struct wg_device_info *info, const char *why_not)
{
    for (size_t i = 0; i < WG_METRIC_COUNT; i++) {
        struct wg_meter_info *meter = &info->meters[i];
        meter->source = or_else(meter->source, "none");
        if (!meter->is_present)
            meter->why_not = or_else(meter->why_not, why_not);
    }
    for (size_t i = 0; i < WG_KNOB_COUNT; i++) {
        struct wg_knob_info *knob = &info->knobs[i];
        knob->source = or_else(knob->source, "none");
        if (knob->is_present)
            continue;
        knob->is_writable = false;
        knob->preset = knob->current = (double)NAN;
        knob->why_not = or_else(knob->why_not, why_not);
    }
}

/* An id that lasts as long as nobody adds or removes a device, for want of a better one. */
static const char *make_id(struct wg_machine *machine, const struct wg_device_info *info)
{
    char text[128];
    (void)snprintf(text, sizeof text, "%s/%s", info->backend,
                   info->kind == WG_DEVICE_RAIL ? info->name : info->label);
    return wg__arena_strdup(&machine->arena, text);
}

enum wg_code wg__machine_publish(struct wg_machine *machine, struct wg_slot *slot,
                                 const struct wg_device_info *info, enum wg_code state,
                                 const char *text, struct wg_error *err)
{
    const struct wg_device_info *before = atomic_load(&slot->info);
    struct wg_device_info *copy = wg__arena_alloc(&machine->arena, 1, sizeof *copy);
    if (copy == NULL)
        return fail_memory(err);
    *copy = *info;
    if (before != NULL) { /* a probe that begins with a clean info must not change the names */
        copy->index = before->index;
        copy->label = before->label;
        copy->backend = or_else(copy->backend, before->backend);
        copy->id = or_else(copy->id, before->id);
    }
    copy->name = or_else(copy->name, copy->label);
    copy->id = or_else(copy->id, or_else(copy->uuid, copy->pci));
    if (copy->id == NULL)
        copy->id = make_id(machine, copy);
    copy->state = state;
    copy->state_text = state != WG_OK ? wg__arena_strdup(&machine->arena, text) : NULL;
    if (copy->id == NULL || (state != WG_OK && copy->state_text == NULL))
        return fail_memory(err);
    char why_not[128];
    (void)snprintf(why_not, sizeof why_not, "%s has no such reading or setting", copy->backend);
    const char *reason =
        state != WG_OK ? copy->state_text : wg__arena_strdup(&machine->arena, why_not);
    if (reason == NULL)
        return fail_memory(err);
    complete_meters(copy, reason);
    atomic_store(&slot->info, copy);
    return WG_OK;
}

/* -- Devices ---------------------------------------------------------------------------------- */

/* Takes the devices of one backend over from its list. */
static enum wg_code admit(struct wg_machine *machine, struct wg_opening *opening,
                          struct wg_error *err)
{
    const size_t first = machine->slot_count;
    struct wg_device_list *list = &opening->list;
    for (size_t i = 0; i < list->count; i++) {
        struct wg_device *device = list->items[i];
        if (machine->gpus_only && device->info.kind != WG_DEVICE_GPU)
            continue;
        struct wg_slot *slot = &machine->slots[machine->slot_count];
        const enum wg_code code = wg__slot_init(slot, device, err);
        if (code != WG_OK)
            return code;
        list->items[i] = NULL;
        device->machine = machine;
        device->position = machine->slot_count++;
        if (name_device(machine, device->position, first, opening->backend->name, err) != WG_OK ||
            wg__machine_publish(machine, slot, &device->info, WG_OK, "", err) != WG_OK)
            return WG_ENOMEM;
    }
    wg__device_list_fini(list);
    return WG_OK;
}

static enum wg_code admit_all(struct wg_machine *machine, struct wg_error *err)
{
    size_t count = 0;
    for (size_t i = 0; i < machine->opening_count; i++)
        count += machine->openings[i].info.device_count;
    machine->slots = wg__alloc_zeroed(count + 1, sizeof *machine->slots);
    if (machine->slots == NULL)
        return fail_memory(err);
    for (size_t i = 0; i < machine->opening_count; i++) {
        if (machine->openings[i].info.state != WG_OK)
            continue; /* its list may still be written to */
        const enum wg_code code = admit(machine, &machine->openings[i], err);
        if (code != WG_OK)
            return code;
    }
    return WG_OK;
}

struct probing {
    struct wg_machine *machine;
    enum wg_code code; /* the first failure that fails the whole */
};

static void end_probe(struct wg_slot *slot, enum wg_code code, bool is_late,
                      const struct wg_error *err, void *context)
{
    struct probing *probing = context;
    const struct wg_device_info *info = is_late ? atomic_load(&slot->info) : &slot->device->info;
    if (code == WG_ENOMEM ||
        wg__machine_publish(probing->machine, slot, info, code, err->text, NULL) != WG_OK)
        probing->code = WG_ENOMEM;
}

static enum wg_code probe_all(struct wg_machine *machine, struct wg_error *err)
{
    struct probing probing = {.machine = machine};
    wg__machine_run_batch(
        machine, &(struct wg_batch){.kind = WG_JOB_PROBE, .end = end_probe, .context = &probing});
    return probing.code == WG_OK ? WG_OK : fail_memory(err);
}

/* -- The whole -------------------------------------------------------------------------------- */

static const struct wg_backend *const *choose_backends(const struct wg_machine *machine,
                                                       const struct wg_machine_setup *setup)
{
    if (setup->backends != NULL)
        return setup->backends;
    return machine->config.replay_path != NULL ? wg__backends_replay : wg__backends;
}

static enum wg_code machine_new(struct wg_machine **out, struct wg_error *err)
{
    struct wg_machine *machine = wg__alloc_zeroed(1, sizeof *machine);
    if (machine == NULL || pthread_mutex_init(&machine->lock, NULL) != 0) {
        wg__free(machine);
        return fail_memory(err);
    }
    wg__arena_init(&machine->arena);
    atomic_store(&machine->refs, 1);
    atomic_store(&machine->pid, getpid());
    *out = machine;
    return WG_OK;
}

enum wg_code wg__machine_open_setup(struct wg_machine **out, const struct wg_machine_setup *setup,
                                    const struct wg_machine_opts *opts, struct wg_error *err)
{
    if (out == NULL)
        return wg__fail(err, WG_EINVAL, "opening the machine: no place for it (out is NULL)");
    struct wg_machine_opts all;
    struct wg_machine *machine = NULL;
    enum wg_code code = copy_opts(&all, opts, err);
    if (code == WG_OK)
        code = machine_new(&machine, err);
    if (machine == NULL)
        return code;
    if (code == WG_OK)
        code = read_opts(machine, &all, setup, err);
    if (code == WG_OK)
        code = read_selectors(machine, &all, err);
    if (code == WG_OK)
        code = open_backends(machine, choose_backends(machine, setup), err);
    if (code == WG_OK)
        code = check_selectors(machine, err);
    if (code == WG_OK)
        code = admit_all(machine, err);
    if (code == WG_OK)
        code = probe_all(machine, err);
    if (code != WG_OK) {
        wg_machine_close(machine);
        return code;
    }
    *out = machine;
    return WG_OK;
}

enum wg_code wg__machine_open_with(struct wg_machine **out,
                                   const struct wg_backend *const *backends,
                                   const struct wg_machine_opts *opts, struct wg_error *err)
{
    const struct wg_machine_setup setup = {.backends = backends};
    return wg__machine_open_setup(out, &setup, opts, err);
}

enum wg_code wg_machine_open(struct wg_machine **out, const struct wg_machine_opts *opts,
                             struct wg_error *err)
{
    return wg__machine_open_setup(out, &(struct wg_machine_setup){0}, opts, err);
}
