/* SPDX-License-Identifier: MIT
 *
 * Collects launches and makes layers of them.
 *
 * A profile of a training run repeats a hundred kernel names a million times, so each is kept once.
 *
 * Owns: see the header.    Threads: one thread at a time.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "model/profile_reader.h"

enum { SLOTS_FIRST = 64, LAUNCHES_FIRST = 16, SHORT_NAME_SIZE = 64, THREADS_MAX = 1024 };

void wg__collector_init(struct wg_profile_collector *collector, struct wg_profile *profile,
                        const char *file_name)
{
    *collector = (struct wg_profile_collector){.profile = profile, .file_name = file_name};
    profile->device = "";
}

void wg__collector_fini(struct wg_profile_collector *collector)
{
    wg__free(collector->names);
    *collector = (struct wg_profile_collector){0};
}

enum wg_code wg__collector_out_of_memory(const struct wg_profile_collector *collector,
                                         struct wg_error *err)
{
    return wg__fail(err, WG_ENOMEM, "%s: out of memory", collector->file_name);
}

/* -- Names --------------------------------------------------------------------------------- */

static size_t slot_of(const char *const *names, size_t slots, const char *text)
{
    size_t slot = (size_t)wg__hash_mix(wg__hash_text(WG_HASH_START, text)) & (slots - 1);
    while (names[slot] != NULL && strcmp(names[slot], text) != 0)
        slot = (slot + 1) & (slots - 1);
    return slot;
}

static bool grow_names(struct wg_profile_collector *collector)
{
    const size_t slots = collector->name_slots == 0 ? SLOTS_FIRST : collector->name_slots * 2;
    const char **names = wg__alloc_zeroed(slots, sizeof *names);
    if (names == NULL)
        return false;
    for (size_t i = 0; i < collector->name_slots; i++)
        if (collector->names[i] != NULL)
            names[slot_of(names, slots, collector->names[i])] = collector->names[i];
    wg__free(collector->names);
    collector->names = names;
    collector->name_slots = slots;
    return true;
}

enum wg_code wg__collector_name(struct wg_profile_collector *collector, const char *text,
                                const char **out, struct wg_error *err)
{
    if (collector->name_count * 2 >= collector->name_slots && !grow_names(collector))
        return wg__collector_out_of_memory(collector, err);
    const char **slot = &collector->names[slot_of(collector->names, collector->name_slots, text)];
    if (*slot == NULL) {
        const char *copy = wg__arena_strdup(&collector->profile->network.arena, text);
        if (copy == NULL)
            return wg__collector_out_of_memory(collector, err);
        *slot = copy;
        collector->name_count++;
    }
    *out = *slot;
    return WG_OK;
}

/* -- Launches ------------------------------------------------------------------------------ */

struct wg_launch wg__launch_unknown(void)
{
    return (struct wg_launch){.name = "",
                              .layer = "",
                              .registers_per_thread = NAN,
                              .shared_memory_bytes = NAN,
                              .waves_per_sm = NAN,
                              .time_s = NAN};
}

enum wg_code wg__collector_launch(struct wg_profile_collector *collector,
                                  const struct wg_launch *launch, struct wg_error *err)
{
    struct wg_profile *profile = collector->profile;
    if (profile->launch_count == WG_PROFILE_LAUNCHES_MAX)
        return wg__fail(err, WG_EDATA, "%s: more than %d kernels", collector->file_name,
                        WG_PROFILE_LAUNCHES_MAX);
    if (profile->launch_count == collector->launch_room) {
        const size_t room =
            collector->launch_room == 0 ? LAUNCHES_FIRST : 2 * profile->launch_count;
        struct wg_launch *launches =
            wg__arena_alloc(&profile->network.arena, room, sizeof *launches);
        if (launches == NULL)
            return wg__collector_out_of_memory(collector, err);
        if (profile->launch_count != 0)
            memcpy(launches, profile->launches, profile->launch_count * sizeof *launches);
        profile->launches = launches;
        collector->launch_room = room;
    }
    profile->launches[profile->launch_count++] = *launch;
    return WG_OK;
}

enum wg_dtype wg__kernel_fp32(const char *kernel)
{
    static const char *const marks[] = {"tf32", "1688", "tensorop", "nvjet"};
    for (size_t i = 0; kernel != NULL && i < sizeof marks / sizeof *marks; i++)
        if (strstr(kernel, marks[i]) != NULL)
            return WG_DTYPE_TF32;
    return WG_DTYPE_FP32;
}

/* -- Layers -------------------------------------------------------------------------------- */

enum wg_code wg__collector_layers(struct wg_profile_collector *collector, size_t count,
                                  struct wg_error *err)
{
    struct wg_network *network = &collector->profile->network;
    network->layers = wg__arena_alloc(&network->arena, count, sizeof *network->layers);
    if (network->layers == NULL)
        return wg__collector_out_of_memory(collector, err);
    return WG_OK;
}

/* Which of some launches takes longest; those without a time count as none. */
static size_t longest_of(const struct wg_launch *launches, size_t count)
{
    size_t longest = 0;
    for (size_t i = 1; i < count; i++)
        if (launches[i].time_s > launches[longest].time_s || isnan(launches[longest].time_s))
            longest = i;
    return longest;
}

static uint64_t blocks_of(const struct wg_launch *launch)
{
    uint64_t blocks = 0;
    if (__builtin_mul_overflow(launch->grid[0], launch->grid[1], &blocks) ||
        __builtin_mul_overflow(blocks, launch->grid[2], &blocks))
        return 0; /* no GPU has run that */
    return blocks;
}

enum wg_code wg__collector_layer_of(struct wg_profile_collector *collector, const char *name,
                                    const char *op, size_t first, size_t count,
                                    struct wg_error *err)
{
    struct wg_network *network = &collector->profile->network;
    struct wg_launch *launches = &collector->profile->launches[first];
    const struct wg_launch *longest = &launches[longest_of(launches, count)];
    char text[128];
    (void)snprintf(text, sizeof text, "%.100s#%zu", name, network->layer_count + 1);
    struct wg_layer layer = {.name = wg__arena_strdup(&network->arena, text),
                             .op = op,
                             .kind = WG_LAYER_GEMM,
                             .kernel_name = longest->name,
                             .blocks = blocks_of(longest)};
    if (layer.name == NULL)
        return wg__collector_out_of_memory(collector, err);
    layer.kernel = (struct wg_kernel){.split_k = 1, .cluster_m = 1, .cluster_n = 1};
    struct wg_kernel named;
    if (wg__kernel_parse(longest->name, &named))
        layer.kernel = named;
    const double threads =
        (double)longest->block[0] * (double)longest->block[1] * (double)longest->block[2];
    if (threads >= 1.0 && threads <= (double)THREADS_MAX)
        layer.kernel.threads = (unsigned)threads;
    for (size_t i = 0; i < count; i++) {
        launches[i].layer = layer.name;
        layer.measured_s += isnan(launches[i].time_s) ? 0.0 : launches[i].time_s;
    }
    network->layers[network->layer_count++] = layer;
    return WG_OK;
}

/* "ampere_sgemm_128x64_tn" of "void ampere_sgemm_128x64_tn<float>(float const*, ...)". */
static void shorten(const char *kernel, char out[static SHORT_NAME_SIZE])
{
    if (strncmp(kernel, "void ", 5) == 0)
        kernel += 5;
    size_t length = strcspn(kernel, "<(");
    if (length == 0)
        length = strlen(kernel);
    (void)snprintf(out, SHORT_NAME_SIZE, "%.*s", (int)(length < 1000 ? length : 1000), kernel);
}

enum wg_code wg__collector_layers_of_launches(struct wg_profile_collector *collector,
                                              struct wg_error *err)
{
    const struct wg_profile *profile = collector->profile;
    if (profile->launch_count == 0)
        return wg__fail(err, WG_EDATA, "%s: no kernel in it", collector->file_name);
    enum wg_code code = wg__collector_layers(collector, profile->launch_count, err);
    for (size_t i = 0; i < profile->launch_count && code == WG_OK; i++) {
        char name[SHORT_NAME_SIZE];
        shorten(profile->launches[i].name, name);
        code = wg__collector_layer_of(collector, name, "kernel", i, 1, err);
    }
    return code;
}
