/* SPDX-License-Identifier: MIT
 *
 * The NVIDIA backend: which GPUs there are, and the handles of those that are chosen.
 *
 * What is not chosen is not touched: a query of one GPU can stutter another, and wakes one that
 * sleeps. So the selection is matched against what is known for nothing (the number of GPUs, PCI
 * addresses from the kernel, in which order NVML counts too), and a handle is gotten only for a
 * GPU that is chosen, by its probe, on a thread of its own. There are exceptions, and only they
 * ask every GPU that is awake: a selector by UUID needs the UUIDs, CUDA's order "fastest first"
 * needs the speeds, and a PCI address needs the addresses where the kernel lists other GPUs than
 * NVML (in a container, say).
 *
 *     kernel's list --all that is chosen sleeps--> listed, NVML is not loaded
 *           |
 *           v
 *     load, count --> candidates --> match --> one struct nvml_gpu each, without a handle
 *
 * Each GPU holds the library open from here to its release, so it is initialised once.
 *
 * Owns: the GPUs, until the list has them.    Threads: as backend.h.
 */
#include "device/nvml.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/number.h"
#include "device/select.h"

/* No machine has more; a driver that says so is not well, and its list is not asked for. */
enum { GPUS_MOST = 4096 };

static const struct wg_device_ops ops;

/* -- One GPU ---------------------------------------------------------------------------------- */

__attribute__((format(printf, 3, 4))) static void set_text(char *out, size_t size,
                                                           const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (wg__format(out, size, format, args) < 0)
        out[0] = '\0';
    va_end(args);
}

/* The label comes after `open`, from machine.c. */
const char *wg__nvml_name(struct nvml_gpu *gpu)
{
    const char *id = gpu->uuid[0] != '\0' ? gpu->uuid : gpu->pci;
    if (gpu->base.info.label != NULL)
        set_text(gpu->who, sizeof gpu->who, "%s", gpu->base.info.label);
    else if (id[0] != '\0')
        set_text(gpu->who, sizeof gpu->who, "GPU %u (%s)", gpu->index, id);
    else
        set_text(gpu->who, sizeof gpu->who, "GPU %u", gpu->index);
    return gpu->who;
}

enum wg_code wg__nvml_fail_gpu(struct nvml_gpu *gpu, struct wg_error *err, const char *call,
                               int code)
{
    const enum wg_code meaning = wg__nvml_fail(err, wg__nvml_name(gpu), call, code);
    wg__nvml_add_remedy(err, wg__nvml_code(code)->remedy); /* a device's state has no other place */
    return meaning;
}

static void free_gpu(struct nvml_gpu *gpu)
{
    if (gpu->has_library)
        wg__nvml_library_release(gpu->library);
    wg__nvml_library_unref(gpu->library);
    wg__free(gpu);
}

/* What can be said before the GPU is asked; the probe says more. */
static void fill_first_info(struct nvml_gpu *gpu)
{
    struct wg_device_info *info = &gpu->base.info;
    info->kind = WG_DEVICE_GPU;
    gpu->base.driver_index_plus_1 = gpu->index + 1;
    info->name = "NVIDIA GPU";
    info->backend = wg__backend_nvml.name;
    info->numa_node = UINT_MAX;
    info->counts_in_total = true;
    info->pci = gpu->pci[0] != '\0' ? gpu->pci : NULL;
    info->uuid = gpu->uuid[0] != '\0' ? gpu->uuid : NULL;
    info->id = info->uuid != NULL ? info->uuid : info->pci; /* machine.c knows another way */
}

/* Whether the handle is of the GPU that we knew. */
static bool is_same_gpu(struct nvml_gpu *gpu, nvml_device handle)
{
    char uuid[NVML_UUID_SIZE] = "";
    return NVML_CALL(gpu, uuid, handle, uuid, sizeof uuid) == NVML_OK &&
           strncmp(uuid, gpu->uuid, sizeof uuid) == 0;
}

/* The first time by the place in NVML's list, which the selection went by. Later by what lasts: the
 * address first, because NVML opens other GPUs too when it looks for a UUID. */
static enum wg_code find_handle(struct nvml_gpu *gpu, struct wg_error *err)
{
    nvml_device handle = NULL;
    const char *call = wg__nvml_names.by_index;
    const unsigned start = atomic_load(&gpu->library->starts); /* before: it may change meanwhile */
    int code = NVML_OK;
    const bool is_first = !gpu->is_known || gpu->uuid[0] == '\0';
    if (is_first) {
        code = NVML_CALL(gpu, by_index, gpu->index, &handle);
    } else if (gpu->pci[0] == '\0' || NVML_CALL(gpu, by_pci, gpu->pci, &handle) != NVML_OK ||
               !is_same_gpu(gpu, handle)) {
        call = wg__nvml_names.by_uuid;
        code = NVML_CALL(gpu, by_uuid, gpu->uuid, &handle);
    }
    if (code == NVML_E_NOT_FOUND)
        return wg__fail(err, WG_ELOST, "%s: %s: error %d: the GPU is not there any more",
                        wg__nvml_name(gpu), call, code);
    if (code != NVML_OK)
        return wg__nvml_fail_gpu(gpu, err, call, code);
    gpu->handle = handle;
    gpu->handle_pid = getpid();
    gpu->handle_start = start;
    return WG_OK;
}

enum wg_code wg__nvml_get_handle(struct nvml_gpu *gpu, struct wg_error *err)
{
    if (!gpu->has_library) {
        const enum wg_code code = wg__nvml_library_acquire(gpu->library, gpu->note, NULL, err);
        if (code != WG_OK)
            return code;
        gpu->has_library = true;
    }
    if (gpu->handle != NULL && gpu->handle_pid == getpid() &&
        gpu->handle_start == atomic_load(&gpu->library->starts))
        return WG_OK;
    const enum wg_code code = wg__nvml_library_check_process(gpu->library, gpu->note, err);
    return code == WG_OK ? find_handle(gpu, err) : code;
}

static void release(struct wg_device *device)
{
    struct nvml_gpu *gpu = wg__nvml_gpu(device);
    gpu->handle = NULL;
    gpu->retry = (struct nvml_retry){0};
    if (gpu->has_library)
        wg__nvml_library_release(gpu->library);
    gpu->has_library = false;
}

static enum wg_code reopen(struct wg_device *device, struct wg_error *err)
{
    struct nvml_gpu *gpu = wg__nvml_gpu(device);
    const enum wg_code code = wg__nvml_get_handle(gpu, err);
    if (code != WG_OK)
        release(device);
    return code;
}

static void destroy(struct wg_device *device)
{
    free_gpu(wg__nvml_gpu(device));
}

static const struct wg_device_ops ops = {
    .probe = wg__nvml_probe,
    .read = wg__nvml_read,
    .read_processes = wg__nvml_read_processes,
    .set = wg__nvml_set,
    .get = wg__nvml_get,
    .release = release,
    .reopen = reopen,
    .destroy = destroy,
};

/* -- Finding the GPUs -------------------------------------------------------------------------- */

struct finder {
    const struct wg_backend_config *config;
    struct nvml_library *library;
    struct wg_arena arena; /* dies with the search */
    struct nvml_pci_gpu *kernel;
    size_t kernel_count;
    struct wg_candidate *candidates;
    bool *chosen;
    size_t count;
    bool is_mapped;  /* candidate i is kernel[i] */
    bool is_matched; /* `chosen` is final */
};

static enum wg_code fail_memory(struct wg_error *err)
{
    return wg__fail(err, WG_ENOMEM, "listing the NVIDIA GPUs: out of memory");
}

static enum wg_code make_candidates(struct finder *finder, size_t count, struct wg_error *err)
{
    finder->count = count;
    finder->candidates = wg__arena_alloc(&finder->arena, count, sizeof *finder->candidates);
    finder->chosen = wg__arena_alloc(&finder->arena, count, sizeof *finder->chosen);
    if (finder->candidates == NULL || finder->chosen == NULL)
        return fail_memory(err);
    finder->is_mapped = count == finder->kernel_count;
    for (size_t i = 0; finder->is_mapped && i < count; i++) {
        finder->candidates[i].pci = finder->kernel[i].address;
        finder->candidates[i].uuid = finder->kernel[i].uuid;
    }
    return WG_OK;
}

static bool is_suspended(const struct finder *finder, size_t i)
{
    return finder->is_mapped && finder->kernel[i].is_suspended;
}

/* A GPU that answers nothing stays unknown: its probe will say why. */
static enum wg_code ask_gpu(struct finder *finder, unsigned index, bool wants_uuid,
                            bool wants_speed, bool wants_pci, struct wg_error *err)
{
    struct nvml_gpu gpu = {
        .note = finder->config->call, .library = finder->library, .index = index};
    struct wg_candidate *candidate = &finder->candidates[index];
    if (NVML_CALL(&gpu, by_index, index, &gpu.handle) != NVML_OK)
        return WG_OK;
    char uuid[NVML_UUID_SIZE];
    if (wants_uuid && NVML_CALL(&gpu, uuid, gpu.handle, uuid, sizeof uuid) == NVML_OK) {
        uuid[sizeof uuid - 1] = '\0';
        candidate->uuid = wg__arena_strdup(&finder->arena, uuid);
        if (candidate->uuid == NULL)
            return fail_memory(err);
        const enum wg_code code = wg__nvml_mig_uuids(&gpu, &finder->arena, &candidate->mig_uuids,
                                                     &candidate->mig_count, err);
        if (code != WG_OK)
            return code;
    }
    unsigned cores = 0;
    unsigned clock_mhz = 0;
    if (wants_speed && NVML_CALL(&gpu, cores, gpu.handle, &cores) == NVML_OK &&
        NVML_CALL(&gpu, max_clock, gpu.handle, NVML_CLK_SM, &clock_mhz) == NVML_OK)
        candidate->speed = (double)cores * clock_mhz;
    struct nvml_pci_info info = {0};
    if (wants_pci && NVML_CALL(&gpu, pci, gpu.handle, &info) == NVML_OK) {
        char address[NVML_PCI_SIZE];
        wg__nvml_pci_address(&info, address);
        candidate->pci = wg__arena_strdup(&finder->arena, address);
        if (candidate->pci == NULL)
            return fail_memory(err);
    }
    return WG_OK;
}

static enum wg_code ask_all(struct finder *finder, bool wants_uuid, bool wants_speed,
                            bool wants_pci, struct wg_error *err)
{
    for (size_t i = 0; i < finder->count; i++) {
        if (is_suspended(finder, i))
            continue;
        const enum wg_code code =
            ask_gpu(finder, (unsigned)i, wants_uuid, wants_speed, wants_pci, err);
        if (code != WG_OK)
            return code;
    }
    return WG_OK;
}

static enum wg_code match(struct finder *finder, struct wg_error *err)
{
    const struct wg_selection *selection = finder->config->selection;
    if (selection == NULL || wg__selection_is_all(selection)) {
        memset(finder->chosen, true, finder->count * sizeof *finder->chosen);
        return WG_OK;
    }
    return wg__selection_match(selection, finder->candidates, finder->count, finder->chosen, err);
}

/* With the library loaded: fills what the selection needs to know, and no more. */
static enum wg_code choose(struct finder *finder, const char **remedy, struct wg_error *err)
{
    struct nvml_gpu any = {.note = finder->config->call, .library = finder->library};
    unsigned count = 0;
    const int answer = NVML_CALL(&any, count, &count);
    if (answer != NVML_OK) {
        *remedy = wg__nvml_code(answer)->remedy;
        return wg__nvml_fail(err, finder->config->nvml_library, wg__nvml_names.count, answer);
    }
    if (count > GPUS_MOST)
        return wg__fail(err, WG_EDATA, "%s: %s says %u GPUs, more than the %d that can be",
                        finder->config->nvml_library, wg__nvml_names.count, count, GPUS_MOST);
    if (count == 0)
        return wg__fail(err, WG_ENODEV, "%s: the NVIDIA driver is loaded and has no GPU",
                        finder->config->nvml_library);
    if (finder->is_matched)
        return WG_OK;
    enum wg_code code = make_candidates(finder, count, err);
    if (code != WG_OK)
        return code;
    const struct wg_selection *selection = finder->config->selection;
    if (selection != NULL) {
        const bool wants_uuid = wg__selection_needs_uuids(selection);
        const bool wants_speed = wg__selection_needs_speeds(selection);
        const bool wants_pci = !finder->is_mapped && wg__selection_needs_addresses(selection);
        if (wants_uuid || wants_speed || wants_pci)
            code = ask_all(finder, wants_uuid, wants_speed, wants_pci, err);
    }
    return code == WG_OK ? match(finder, err) : code;
}

/* One that is awake holds the library open from now on. */
static enum wg_code add_gpu(const struct finder *finder, size_t i, bool is_awake,
                            struct wg_device_list *list, struct wg_error *err)
{
    struct nvml_gpu *gpu = wg__alloc_zeroed(1, sizeof *gpu);
    if (gpu == NULL)
        return fail_memory(err);
    const struct wg_selection *selection = finder->config->selection;
    const struct wg_candidate *known = &finder->candidates[i];
    gpu->base.ops = &ops;
    gpu->root = finder->config->root;
    gpu->is_picked = selection != NULL && !wg__selection_is_all(selection);
    gpu->is_on_bus = finder->is_mapped;
    gpu->index = (unsigned)i;
    gpu->note = &gpu->base.call;
    gpu->library = finder->library;
    wg__nvml_library_ref(gpu->library);
    wg__arena_init(&gpu->base.arena);
    if (known->uuid != NULL)
        set_text(gpu->uuid, sizeof gpu->uuid, "%s", known->uuid);
    if (known->pci != NULL)
        set_text(gpu->pci, sizeof gpu->pci, "%s", known->pci);
    fill_first_info(gpu);
    enum wg_code code = WG_OK;
    if (is_awake) {
        code = wg__nvml_library_acquire(gpu->library, NULL, NULL, err);
        gpu->has_library = code == WG_OK;
    }
    if (code == WG_OK)
        code = wg__device_list_add(list, &gpu->base, err);
    if (code != WG_OK) {
        wg__arena_fini(&gpu->base.arena);
        free_gpu(gpu);
    }
    return code;
}

static enum wg_code add_chosen(const struct finder *finder, bool has_library,
                               struct wg_device_list *list, struct wg_error *err)
{
    enum wg_code code = WG_OK;
    for (size_t i = 0; i < finder->count && code == WG_OK; i++) {
        if (finder->chosen[i])
            code = add_gpu(finder, i, has_library && !is_suspended(finder, i), list, err);
    }
    return code;
}

/* Whether the kernel knows of its GPUs what the selection needs to. */
static bool is_enough(const struct finder *finder)
{
    const struct wg_selection *selection = finder->config->selection;
    if (selection == NULL || wg__selection_is_all(selection))
        return true;
    if (wg__selection_needs_speeds(selection))
        return false;
    for (size_t i = 0; wg__selection_needs_uuids(selection) && i < finder->kernel_count; i++) {
        if (finder->kernel[i].uuid == NULL)
            return false;
    }
    return true;
}

/* Where some GPU sleeps: matches by the kernel's list alone, if that is enough, or if they all
 * sleep. `*is_done`: nothing is chosen that is awake, so NVML need not be loaded. A selection is
 * matched once only (select.h), so the choice stands. */
static enum wg_code choose_asleep(struct finder *finder, bool *is_done, struct wg_error *err)
{
    size_t asleep = 0;
    for (size_t i = 0; i < finder->kernel_count; i++)
        asleep += finder->kernel[i].is_suspended;
    *is_done = false;
    if (asleep == 0 || (asleep < finder->kernel_count && !is_enough(finder)))
        return WG_OK;
    enum wg_code code = make_candidates(finder, finder->kernel_count, err);
    if (code == WG_OK)
        code = match(finder, err);
    if (code != WG_OK)
        return code;
    *is_done = true;
    for (size_t i = 0; i < finder->count; i++)
        *is_done = *is_done && (!finder->chosen[i] || is_suspended(finder, i));
    finder->is_matched =
        finder->config->selection != NULL && !wg__selection_is_all(finder->config->selection);
    return WG_OK;
}

static enum wg_code open_awake(struct finder *finder, struct wg_device_list *list,
                               const char **remedy, struct wg_error *err)
{
    enum wg_code code =
        wg__nvml_library_acquire(finder->library, finder->config->call, remedy, err);
    if (code == WG_ENODEV && finder->kernel_count > 0) {
        /* With a GPU on the bus this is a fault to be mended, no machine of another kind. */
        code = WG_EIO;
        if (err != NULL)
            err->code = code;
    }
    if (code != WG_OK)
        return code;
    code = choose(finder, remedy, err);
    if (code == WG_OK)
        code = add_chosen(finder, true, list, err);
    wg__nvml_library_release(finder->library);
    return code;
}

/* Virtual GPUs (wattgov-vgpu) are on no bus, and those of the host are not behind their NVML. */
static enum wg_code list_kernel(struct finder *finder, struct wg_error *err)
{
    if (getenv("WATTGOV_VGPU") != NULL)
        return WG_OK;
    return wg__nvml_pci_list(finder->config->root, &finder->arena, &finder->kernel,
                             &finder->kernel_count, err);
}

enum wg_code wg__nvml_open(const struct wg_backend_config *config, const struct nvml_loader *loader,
                           struct wg_device_list *list, const char **remedy_out,
                           struct wg_error *err)
{
    if (config->selection != NULL && wg__selection_is_none(config->selection))
        return wg__selection_fail_none(config->selection, 0, remedy_out, err);
    struct finder finder = {.config = config};
    enum wg_code code = wg__nvml_library_new(&finder.library, config->nvml_library, loader, err);
    if (code != WG_OK)
        return code;
    wg__arena_init(&finder.arena);
    bool is_done = false;
    code = list_kernel(&finder, err);
    if (code == WG_OK)
        code = choose_asleep(&finder, &is_done, err);
    if (code == WG_OK && is_done)
        code = add_chosen(&finder, false, list, err);
    else if (code == WG_OK)
        code = open_awake(&finder, list, remedy_out, err);
    if (code == WG_OK && list->count == 0) /* another backend may have the one that is meant */
        code = wg__selection_fail_none(config->selection, finder.count, remedy_out, err);
    wg__arena_fini(&finder.arena);
    wg__nvml_library_unref(finder.library);
    return code;
}

static enum wg_code open_backend(const struct wg_backend_config *config,
                                 struct wg_device_list *list, const char **remedy_out,
                                 struct wg_error *err)
{
    return wg__nvml_open(config, NULL, list, remedy_out, err);
}

const struct wg_backend wg__backend_nvml = {.name = "nvml", .open = open_backend};
