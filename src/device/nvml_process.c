/* SPDX-License-Identifier: MIT
 *
 * Who uses a GPU: a call that takes milliseconds, so only on request and never with a sample.
 *
 * One entry of the list was 16 bytes, then 24, and 32 in the drivers 535.43 to 535.86 only, without
 * a change of the call's name. A tool that trusts one size reads garbage or past its buffer. Here
 * each entry gets 32 bytes of room whatever the driver writes, the room is filled with a pattern
 * first, and how far the pattern is gone after the call tells the size of an entry:
 *
 *     3 entries     |0.........16..........32..........48......|....|72........96
 *     of 24 bytes   [ pid mem  i ][ pid mem  i ][ pid mem  i ] a5 a5 a5 ...
 *
 * Every layout begins with the pid, and the memory at byte 8.
 *
 * Owns: the room, during a call.    Threads: one at a time per GPU.
 */
#include <string.h>

#include "base/alloc.h"
#include "device/nvml.h"

enum {
    ENTRY_MOST = sizeof(struct nvml_process_r535),
    PATTERN = 0xA5,
    FIRST_ROOM = 64, /* entries */
    ROOM_MOST = 1 << 16,
    TRIES = 4, /* processes may come while we ask */
    VERSIONS = 3,
};

struct lister {
    int (*call)(nvml_device device, unsigned *count, void *out);
    const char *name;
    size_t entry_size; /* as its version has it */
};

/* The merged list: compute and graphics, each pid once. */
struct merged {
    struct wg_process *items;
    size_t count, capacity;
};

/* The size of an entry, by how much of the room was written. */
static size_t find_entry_size(const unsigned char *room, size_t room_size, size_t count,
                              size_t expected)
{
    size_t end = room_size;
    while (end > 0 && room[end - 1] == PATTERN)
        end--;
    if (end > count * sizeof(struct nvml_process))
        return sizeof(struct nvml_process_r535);
    if (end > count * sizeof(struct nvml_process_v1))
        return sizeof(struct nvml_process);
    /* Less than was expected: only what was written is read. */
    return expected < sizeof(struct nvml_process_v1) ? expected : sizeof(struct nvml_process_v1);
}

static enum wg_code add(struct merged *merged, const unsigned char *entry)
{
    struct nvml_process_v1 process;
    memcpy(&process, entry, sizeof process);
    const bool is_unknown = process.memory >= INT64_MAX; /* -1: not available */
    const uint64_t bytes = is_unknown ? UINT64_MAX : process.memory;
    for (size_t i = 0; i < merged->count; i++) {
        struct wg_process *known = &merged->items[i];
        if (known->pid != process.pid)
            continue;
        if (known->memory_bytes == UINT64_MAX || (!is_unknown && bytes > known->memory_bytes))
            known->memory_bytes = bytes;
        return WG_OK;
    }
    if (merged->count == merged->capacity) {
        const size_t capacity = merged->capacity != 0 ? merged->capacity * 2 : FIRST_ROOM;
        struct wg_process *items = wg__realloc_array(merged->items, capacity, sizeof *items);
        if (items == NULL)
            return WG_ENOMEM;
        merged->items = items;
        merged->capacity = capacity;
    }
    merged->items[merged->count++] = (struct wg_process){process.pid, bytes};
    return WG_OK;
}

/* One list. `*code_out` is the driver's answer. */
static enum wg_code ask(struct nvml_gpu *gpu, const struct lister *lister, struct merged *merged,
                        int *code_out)
{
    size_t entries = FIRST_ROOM;
    for (int i = 0; i < TRIES; i++) {
        const size_t room_size = entries * ENTRY_MOST;
        unsigned char *room = wg__alloc(room_size);
        if (room == NULL)
            return WG_ENOMEM;
        memset(room, PATTERN, room_size);
        unsigned count = (unsigned)entries;
        wg__nvml_enter(gpu, lister->name);
        *code_out = wg__nvml_leave(gpu, lister->call(gpu->handle, &count, room));
        enum wg_code code = WG_OK;
        if (*code_out == NVML_OK && count > entries) /* it cannot have written them */
            *code_out = NVML_E_INSUFFICIENT_SIZE;
        if (*code_out == NVML_OK) {
            const size_t size = find_entry_size(room, room_size, count, lister->entry_size);
            for (unsigned j = 0; j < count && code == WG_OK; j++)
                code = add(merged, room + j * size);
        }
        wg__free(room);
        if (code != WG_OK || *code_out != NVML_E_INSUFFICIENT_SIZE)
            return code;
        if (count >= ROOM_MOST)
            break;
        entries = count > entries ? count + count / 4 : entries * 2;
    }
    return WG_OK;
}

/* The newest version that the driver has and answers. */
static enum wg_code ask_versions(struct nvml_gpu *gpu, const struct lister listers[VERSIONS],
                                 struct merged *merged, const char **call_out, int *code_out)
{
    *code_out = NVML_E_FUNCTION_NOT_FOUND;
    *call_out = listers[VERSIONS - 1].name;
    for (size_t i = 0; i < VERSIONS; i++) {
        if (listers[i].call == NULL)
            continue;
        *call_out = listers[i].name;
        const enum wg_code code = ask(gpu, &listers[i], merged, code_out);
        if (code != WG_OK)
            return code;
        if (*code_out == NVML_E_NOT_FOUND) { /* nobody */
            *code_out = NVML_OK;
            return WG_OK;
        }
        if (*code_out != NVML_E_FUNCTION_NOT_FOUND && *code_out != NVML_E_DEPRECATED &&
            *code_out != NVML_E_ARGUMENT_VERSION_MISMATCH)
            return WG_OK;
    }
    return WG_OK;
}

static enum wg_code list_processes(struct nvml_gpu *gpu, struct merged *merged,
                                   struct wg_error *err)
{
    const struct nvml_calls *calls = &gpu->library->calls;
    const struct lister kinds[2][VERSIONS] = {
        {{calls->compute_v3, wg__nvml_names.compute_v3, sizeof(struct nvml_process)},
         {calls->compute_v2, wg__nvml_names.compute_v2, sizeof(struct nvml_process)},
         {calls->compute_v1, wg__nvml_names.compute_v1, sizeof(struct nvml_process_v1)}},
        {{calls->graphics_v3, wg__nvml_names.graphics_v3, sizeof(struct nvml_process)},
         {calls->graphics_v2, wg__nvml_names.graphics_v2, sizeof(struct nvml_process)},
         {calls->graphics_v1, wg__nvml_names.graphics_v1, sizeof(struct nvml_process_v1)}},
    };
    const char *failed = NULL;
    int first = NVML_OK;
    size_t answered = 0;
    for (size_t i = 0; i < 2; i++) {
        const char *call = NULL;
        int answer = NVML_OK;
        if (ask_versions(gpu, kinds[i], merged, &call, &answer) != WG_OK)
            return wg__fail(err, WG_ENOMEM, "%s: out of memory", call);
        if (answer == NVML_OK)
            answered++;
        else if (failed == NULL) {
            failed = call;
            first = answer;
        }
    }
    /* A GPU of a data centre knows no graphics; one of the two lists is enough. */
    return answered > 0 ? WG_OK : wg__nvml_fail_gpu(gpu, err, failed, first);
}

enum wg_code wg__nvml_read_processes(struct wg_device *device, struct wg_process *out,
                                     size_t capacity, size_t *count_out, struct wg_error *err)
{
    struct nvml_gpu *gpu = wg__nvml_gpu(device);
    enum wg_code code = wg__nvml_get_handle(gpu, err);
    if (code != WG_OK)
        return code;
    struct merged merged = {0};
    code = list_processes(gpu, &merged, err);
    if (code == WG_OK) {
        const size_t given = merged.count < capacity ? merged.count : capacity;
        if (given > 0)
            memcpy(out, merged.items, given * sizeof *out);
        *count_out = merged.count;
    }
    wg__free(merged.items);
    return code;
}
