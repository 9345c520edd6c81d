/* SPDX-License-Identifier: MIT
 *
 * libFuzzer entry of profiles of served models: any bytes give a profile that holds together or a
 * one-line error.
 *
 *     CC=clang-19 meson setup build/fuzz -Dfuzz=true
 *     ninja -C build/fuzz tests/fuzz/fuzz_serving_profile
 *     build/fuzz/tests/fuzz/fuzz_serving_profile -max_total_time=60 NEW_FOLDER \
 *         tests/fuzz/corpus/serving_profile
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cli/serving_profile_file.h"

/* libFuzzer prescribes the name. NOLINTNEXTLINE(readability-identifier-naming) */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool fact)
{
    if (!fact)
        abort();
}

/* Every time that the simulator may ask for is one. */
static void check_times(const struct wg_serving_profile *profile)
{
    for (size_t rung = 0; rung < profile->ladder.count; rung++) {
        double before_s = 0;
        for (unsigned rows = 1; rows <= profile->max_batch; rows++) {
            const double time_s = wg__profile_batch_s(profile, rung, rows);
            require(time_s > 0 && isfinite(time_s) && time_s >= before_s * (1 - 1e-12));
            before_s = time_s;
            if (profile->has_finetune)
                require(wg__profile_step_s(profile, rung, rows, rows % 2 == 0) > 0);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wg_serving_profile profile;
    struct wg_error err = {0};
    const enum wg_code code =
        wg__serving_profile_parse(&profile, "p.yaml", (const char *)data, size, &err);
    if (code != WG_OK) {
        require(code == WG_EDATA && strncmp(err.text, "p.yaml:", 7) == 0);
        require(strpbrk(err.text, "\n\r\x1B") == NULL);
        return 0;
    }
    require(wg__profile_check(&profile, &err) == WG_OK);
    require(profile.name[0] != '\0' && profile.ladder.count >= 1);
    require(profile.noise >= 0 && profile.noise <= 1);
    check_times(&profile);
    return 0;
}
