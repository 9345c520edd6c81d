/* SPDX-License-Identifier: MIT
 *
 * A recorded machine, answering as it did.
 *
 * The recording's second 0 is the moment of opening. A read gives the last answer that was recorded
 * by now, whole and unchanged: its values, its moment (moved to this clock) and its errors; nothing
 * is interpolated, for the real devices do not interpolate either. Before the first answer the
 * first is given, as of now. Behind the end the device answers WG_ESTATE: to repeat the last sample
 * for ever would be a lie, a device that draws constant power.
 *
 * All of this happens in memory: nothing here hangs, whatever hung when it was recorded.
 *
 * Owns: the recording, shared by its devices; the last one frees it.
 * Threads: as every backend; a recording does not change.
 */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "device/backend.h"
#include "device/recording.h"
#include "device/select.h"

struct replay {
    struct wg_recording *recording;
    uint64_t opened_ns;
    uint64_t (*now_ns)(void *context);
    void *context;
    atomic_size_t refs;
};

struct replayed_device {
    struct wg_device device;
    struct replay *replay;
    size_t position; /* in the recording */
};

static void replay_unref(struct replay *replay)
{
    if (atomic_fetch_sub(&replay->refs, 1) != 1)
        return;
    wg__recording_close(replay->recording);
    wg__free(replay);
}

static uint64_t replay_now_ns(const struct replay *replay)
{
    return replay->now_ns != NULL ? replay->now_ns(replay->context) : wg__clock_ns();
}

/* -- A device -----------------------------------------------------------------------------------
 */

static enum wg_code probe(struct wg_device *device, struct wg_error *err)
{
    const struct replayed_device *replayed = (const struct replayed_device *)device;
    const struct wg_device_info *info =
        &replayed->replay->recording->devices[replayed->position].info;
    if (info->state != WG_OK)
        return wg__fail(err, info->state, "%s", info->state_text);
    return WG_OK;
}

static enum wg_code read_recorded(struct wg_device *device, uint32_t wanted, struct wg_sample *out,
                                  struct wg_error *err)
{
    const struct replayed_device *replayed = (const struct replayed_device *)device;
    const struct replay *replay = replayed->replay;
    const uint64_t now_ns = replay_now_ns(replay);
    const uint64_t t_ns = now_ns - replay->opened_ns;
    const struct wg_recorded_answer *answer =
        wg__recording_at(replay->recording, replayed->position, t_ns);
    if (answer == NULL && t_ns > replay->recording->end_ns)
        return wg__fail(err, WG_ESTATE, "the recording has ended after %.3f s",
                        (double)replay->recording->end_ns * 1e-9);
    if (answer == NULL)
        return wg__fail(err, WG_ESTATE, "the recording has no answers of it");
    if (answer->code != WG_OK)
        return wg__fail(err, answer->code, "%s", answer->text);
    *out = answer->sample;
    out->present &= wanted;
    out->t_ns = answer->sample.t_ns < t_ns ? replay->opened_ns + answer->sample.t_ns : now_ns;
    return WG_OK;
}

static void destroy(struct wg_device *device)
{
    struct replayed_device *replayed = (struct replayed_device *)device;
    replay_unref(replayed->replay);
    wg__free(replayed);
}

static const struct wg_device_ops ops = {
    .probe = probe,
    .read = read_recorded,
    .destroy = destroy,
};

/* -- Opening ------------------------------------------------------------------------------------
 */

/* Which devices are chosen. GPUs are candidates at their recorded numbers, so that "2" means gpu2
 * also where gpu0 and gpu1 were not recorded. */
static enum wg_code choose(const struct wg_recording *recording,
                           const struct wg_selection *selection, bool *chosen, struct wg_error *err)
{
    size_t count = 0;
    for (size_t i = 0; i < recording->device_count; i++) {
        const struct wg_device_info *info = &recording->devices[i].info;
        chosen[i] = true;
        if (info->kind == WG_DEVICE_GPU && info->index >= count)
            count = (size_t)info->index + 1;
    }
    if (selection == NULL || wg__selection_is_all(selection))
        return WG_OK;
    struct wg_candidate *candidates = wg__alloc_zeroed(count + 1, sizeof *candidates);
    bool *is_chosen = wg__alloc_zeroed(count + 1, sizeof *is_chosen);
    if (candidates == NULL || is_chosen == NULL) {
        wg__free(candidates);
        wg__free(is_chosen);
        return wg__fail(err, WG_ENOMEM, "cannot select GPUs: out of memory");
    }
    for (size_t i = 0; i < recording->device_count; i++) {
        const struct wg_device_info *info = &recording->devices[i].info;
        if (info->kind == WG_DEVICE_GPU)
            candidates[info->index] = (struct wg_candidate){.uuid = info->uuid,
                                                            .pci = info->pci,
                                                            .mig_uuids = info->mig_uuids,
                                                            .mig_count = info->mig_count};
    }
    const enum wg_code code = wg__selection_match(selection, candidates, count, is_chosen, err);
    for (size_t i = 0; i < recording->device_count && code == WG_OK; i++) {
        const struct wg_device_info *info = &recording->devices[i].info;
        if (info->kind == WG_DEVICE_GPU)
            chosen[i] = is_chosen[info->index];
    }
    wg__free(candidates);
    wg__free(is_chosen);
    return code;
}

static enum wg_code add_device(struct replay *replay, size_t position, struct wg_device_list *list,
                               struct wg_error *err)
{
    struct replayed_device *replayed = wg__alloc_zeroed(1, sizeof *replayed);
    if (replayed == NULL)
        return wg__fail(err, WG_ENOMEM, "cannot replay device %zu: out of memory", position);
    replayed->device.ops = &ops;
    replayed->device.info = replay->recording->devices[position].info;
    replayed->device.driver_index_plus_1 = replayed->device.info.index + 1;
    replayed->replay = replay;
    replayed->position = position;
    const enum wg_code code = wg__device_list_add(list, &replayed->device, err);
    if (code != WG_OK) {
        wg__free(replayed);
        return code;
    }
    (void)atomic_fetch_add(&replay->refs, 1);
    return WG_OK;
}

static enum wg_code add_devices(struct replay *replay, const struct wg_selection *selection,
                                struct wg_device_list *list, struct wg_error *err)
{
    const size_t count = replay->recording->device_count;
    bool *chosen = wg__alloc_zeroed(count + 1, sizeof *chosen);
    if (chosen == NULL)
        return wg__fail(err, WG_ENOMEM, "cannot replay %zu devices: out of memory", count);
    enum wg_code code = choose(replay->recording, selection, chosen, err);
    for (size_t i = 0; i < count && code == WG_OK; i++) {
        if (chosen[i])
            code = add_device(replay, i, list, err);
    }
    wg__free(chosen);
    return code;
}

/* What was found, and what of the file was left out: not an error, but worth a line. */
static void describe(const struct wg_recording *recording, size_t count, struct wg_error *out)
{
    char cut[64] = "";
    char unknown[96] = "";
    if (recording->cut_line != 0)
        (void)snprintf(cut, sizeof cut, "; line %zu is torn and was left out", recording->cut_line);
    if (recording->unknown_keys != 0)
        (void)snprintf(unknown, sizeof unknown,
                       "; %zu values of kinds that this version does not know were left out",
                       recording->unknown_keys);
    (void)wg__fail(out, WG_OK,
                   "%zu device%s, %zu answers over %.3f s, recorded by wattgov %.40s%s%s", count,
                   count == 1 ? "" : "s", recording->answer_count, (double)recording->end_ns * 1e-9,
                   recording->version, cut, unknown);
}

static enum wg_code open_replay(const struct wg_backend_config *config, struct wg_device_list *list,
                                const char **remedy_out, struct wg_error *err)
{
    (void)remedy_out;
    if (config->replay_path == NULL)
        return wg__fail(err, WG_ENODEV, "no recording is replayed");
    struct replay *replay = wg__alloc_zeroed(1, sizeof *replay);
    if (replay == NULL)
        return wg__fail(err, WG_ENOMEM, "%s: out of memory", config->replay_path);
    atomic_store(&replay->refs, 1);
    replay->now_ns = config->replay_now_ns;
    replay->context = config->replay_context;
    enum wg_code code = wg__recording_open(&replay->recording, config->replay_path, err);
    if (code == WG_OK) {
        replay->opened_ns = replay_now_ns(replay);
        code = add_devices(replay, config->selection, list, err);
    }
    if (code == WG_OK)
        describe(replay->recording, list->count, err);
    replay_unref(replay);
    return code;
}

const struct wg_backend wg__backend_replay = {.name = "replay", .open = open_replay};
