/* SPDX-License-Identifier: MIT
 *
 * libFuzzer entry of machine files: any bytes give GPUs that hold together or a one-line error.
 *
 * `like` finds nothing here: the folder of shipped machines does not exist.
 *
 *     CC=clang-19 meson setup build/fuzz -Dfuzz=true && ninja -C build/fuzz tests/fuzz/fuzz_machine
 *     build/fuzz/tests/fuzz/fuzz_machine -max_total_time=60 NEW_FOLDER tests/fuzz/corpus/machine
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "vgpu/machine.h"

/* libFuzzer prescribes the name. NOLINTNEXTLINE(readability-identifier-naming) */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool fact)
{
    if (!fact)
        abort();
}

static void check_gpu(const struct vgpu_description *machine, size_t index)
{
    const struct vgpu_model *gpu = &machine->models[index];
    require(gpu->clock_count >= 1 && gpu->clock_count <= VGPU_CLOCKS_MAX);
    require(gpu->memory_clock_count >= 1 && gpu->mig_count <= VGPU_MIG_MAX);
    for (size_t i = 1; i < gpu->clock_count; i++)
        require(gpu->clocks_hz[i] > gpu->clocks_hz[i - 1]);
    require(gpu->limit_min_w > 0 && gpu->limit_min_w <= gpu->limit_default_w);
    require(gpu->limit_default_w <= gpu->limit_max_w && gpu->idle_w < gpu->load_w);
    for (size_t i = 0; i < index; i++) {
        require(strcmp(machine->models[i].uuid, gpu->uuid) != 0);
        require(strcmp(machine->models[i].pci, gpu->pci) != 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct vgpu_description machine = {0};
    struct wg_error err = {0};
    const enum wg_code code =
        vgpu_machine_parse(&machine, "/nowhere", "m.yaml", (const char *)data, size, &err);
    if (code != WG_OK) {
        require(code == WG_EDATA && machine.models == NULL);
        require(err.text[0] != '\0' && strpbrk(err.text, "\n\r\x1B") == NULL);
        return 0;
    }
    require(machine.count >= 1 && machine.count <= VGPU_GPUS_MAX);
    for (size_t i = 0; i < machine.count; i++)
        check_gpu(&machine, i);
    vgpu_description_fini(&machine);
    return 0;
}
