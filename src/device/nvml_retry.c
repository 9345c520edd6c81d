/* SPDX-License-Identifier: MIT
 *
 * Coming back to a driver that was there and is gone.
 *
 * A container can lose its devices while it runs (systemctl daemon-reload rewrites the rules of its
 * cgroup), a driver can be replaced below us: every call that answered before then answers 999 or
 * 17, and goes on doing so after the devices are back, until NVML is started anew. A program that
 * measures for days must not need to be told. So the reads themselves do it:
 *
 *     reads succeed -- 1, 17, 999 --> refused -- 1 s --> start anew --+--> a read succeeds: well
 *                                        ^                            |
 *                                        +--- 2 s, 4 s, .. 60 s ------+
 *
 * Between two tries a read costs what it costs and fails with its cause. NVML is one for all GPUs
 * of the process: where another GPU has answered since this one is refused, NVML is well, and only
 * the handle is gotten anew.
 *
 * Owns: nothing.    Threads: one at a time per GPU; the library's lock guards its start.
 */
#include "base/clock.h"
#include "device/nvml.h"

static const uint64_t first_wait_ns = 1000000000;
static const uint64_t longest_wait_ns = 60000000000;

/* What a container without its devices, or a library without its driver, answers to all. */
static bool is_refusal(int code)
{
    return code == NVML_E_UNKNOWN || code == NVML_E_OPERATING_SYSTEM ||
           code == NVML_E_UNINITIALIZED;
}

enum wg_code wg__nvml_retry_before(struct nvml_gpu *gpu, struct wg_error *err)
{
    struct nvml_retry *retry = &gpu->retry;
    const uint64_t now_ns = wg__clock_ns();
    if (retry->since_ns == 0 || now_ns < retry->next_ns || !gpu->has_library)
        return WG_OK;
    retry->wait_ns = 2 * retry->wait_ns < longest_wait_ns ? 2 * retry->wait_ns : longest_wait_ns;
    retry->next_ns = now_ns + retry->wait_ns;
    gpu->handle = NULL;
    if (atomic_load(&gpu->library->well_ns) > retry->since_ns)
        return WG_OK;
    const enum wg_code code =
        wg__nvml_library_restart(gpu->library, gpu->handle_start, gpu->note, err);
    return code;
}

void wg__nvml_retry_after(struct nvml_gpu *gpu, int code)
{
    const uint64_t now_ns = wg__clock_ns();
    if (code == NVML_OK) {
        gpu->retry = (struct nvml_retry){0};
        atomic_store_explicit(&gpu->library->well_ns, now_ns, memory_order_relaxed);
    } else if (is_refusal(code) && gpu->retry.since_ns == 0) {
        gpu->retry = (struct nvml_retry){
            .since_ns = now_ns, .next_ns = now_ns + first_wait_ns, .wait_ns = first_wait_ns};
    }
}
