/* SPDX-License-Identifier: MIT
 *
 * Finding the GPU that `--gpu` names: see wave_gpu.h.
 */
#include "cli/wave_gpu.h"

#include <string.h>
#include <strings.h>

#include "cli/gpu_file.h"
#include "wattgov/device.h"

enum { NAME_SIZE = 128 };

static bool is_file(const char *word)
{
    const size_t length = strlen(word);
    return strchr(word, '/') != NULL ||
           (length > 5 && strcasecmp(word + length - 5, ".yaml") == 0) ||
           (length > 4 && strcasecmp(word + length - 4, ".yml") == 0);
}

enum wg_code wg__wave_gpu_of_device(const struct wg_gpu_table *table, const char *name,
                                    const struct wg_gpu_spec **out, struct wg_error *err)
{
    /* "NVIDIA Jetson AGX Orin Developer Kit GPU (nvpmodel 0: MAXN)" */
    static const char *const ends[] = {" Developer Kit", " GPU (", " GPU"};
    char board[NAME_SIZE];
    struct wg_error why;
    if (wg__gpu_table_find(table, name, out, &why) == WG_OK)
        return WG_OK;
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        const char *end = strstr(name, ends[i]);
        if (end == NULL || end == name || (size_t)(end - name) >= sizeof board)
            continue;
        memcpy(board, name, (size_t)(end - name));
        board[end - name] = '\0';
        if (wg__gpu_table_find(table, board, out, NULL) == WG_OK)
            return WG_OK;
    }
    return wg__fail(err, WG_ENODEV,
                    "%.130s; write what its data sheet says to a file (gpu.yaml: \"like: "
                    "NEAREST\", \"sms: ..\") and give --gpu gpu.yaml",
                    why.text);
}

/* The first GPU that the selection lets through. */
static enum wg_code find_live(const struct wg_machine *machine, const struct wg_gpu_table *table,
                              const struct wg_gpu_spec **out, struct wg_error *err)
{
    for (size_t i = 0; i < wg_machine_device_count(machine); i++) {
        const struct wg_device_info *info = wg_device_get_info(wg_machine_device(machine, i));
        if (info->kind == WG_DEVICE_GPU)
            return wg__wave_gpu_of_device(table, info->name, out, err);
    }
    for (size_t i = 0; i < wg_machine_backend_count(machine); i++) {
        const struct wg_backend_info *backend = wg_machine_backend(machine, i);
        if (strcmp(backend->name, "nvml") == 0)
            return wg__fail(err, WG_ENODEV, "--gpu live: no GPU here: %.120s", backend->text);
    }
    return wg__fail(err, WG_ENODEV, "--gpu live: no GPU here");
}

static enum wg_code open_live(struct wg_wave_gpu *gpu, const char *selector, struct wg_error *err)
{
    if (selector != NULL && *selector == '\0')
        return wg__fail(err, WG_EINVAL, "--gpu: 'live:' names no GPU; expected live or live:INDEX");
    struct wg_machine *machine = NULL;
    const struct wg_gpu_spec *found = NULL;
    const struct wg_machine_opts opts =
        WG_MACHINE_OPTS(.gpus = &selector, .gpu_count = selector != NULL ? 1 : 0,
                        .gpus_only = true);
    enum wg_code code = wg_machine_open(&machine, &opts, err);
    if (code == WG_OK)
        code = find_live(machine, gpu->table, &found, err);
    wg_machine_close(machine);
    if (code == WG_OK && found != NULL)
        gpu->spec = *found;
    return code;
}

enum wg_code wg__wave_gpu_open(struct wg_wave_gpu *out, const char *word, struct wg_error *err)
{
    const struct wg_gpu_spec *found = NULL;
    wg__arena_init(&out->arena);
    enum wg_code code = wg__gpu_table_open_built_in(&out->table, err);
    if (code != WG_OK)
        return code;
    if (strcmp(word, "live") == 0)
        return open_live(out, NULL, err);
    if (strncmp(word, "live:", 5) == 0)
        return open_live(out, word + 5, err);
    if (is_file(word))
        return wg__gpu_file_read(word, out->table, &out->arena, &out->spec, err);
    code = wg__gpu_table_find(out->table, word, &found, err);
    if (code == WG_OK)
        out->spec = *found;
    return code;
}

void wg__wave_gpu_close(struct wg_wave_gpu *gpu)
{
    if (gpu == NULL)
        return;
    wg__gpu_table_close(gpu->table);
    wg__arena_fini(&gpu->arena);
    *gpu = (struct wg_wave_gpu){0};
}
