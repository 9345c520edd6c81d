/* SPDX-License-Identifier: MIT
 *
 * libFuzzer entry of the reader of recordings: any bytes give a recording or a one-line error.
 *
 * Beyond what the sanitizers see, it checks of a recording that times never go back nor beyond the
 * end, that values are finite, that texts hold no control bytes, and that the answer at a moment is
 * the last one that is not later.
 *
 *     CC=clang-19 meson setup build/fuzz -Dfuzz=true && ninja -C build/fuzz
 * tests/fuzz/fuzz_recording build/fuzz/tests/fuzz/fuzz_recording -max_total_time=60 NEW_FOLDER
 * tests/fuzz/corpus/recording
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "device/recording.h"

/* libFuzzer prescribes the name. NOLINTNEXTLINE(readability-identifier-naming) */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool fact)
{
    if (!fact)
        abort();
}

static void check_text(const char *text)
{
    require(text != NULL);
    for (const char *p = text; *p != '\0'; p++)
        require((unsigned char)*p >= 0x20 && *p != 0x7F);
}

static void check_info(const struct wg_device_info *info)
{
    require(info->kind < WG_DEVICE_KIND_COUNT);
    check_text(info->label);
    check_text(info->id);
    check_text(info->name);
    check_text(info->backend);
    require((info->state == WG_OK) || info->state_text != NULL);
    for (size_t i = 0; i < WG_METRIC_COUNT; i++) {
        check_text(info->meters[i].source);
        require(info->meters[i].is_present || info->meters[i].why_not != NULL);
        require(isfinite(info->meters[i].resolution));
    }
    for (size_t i = 0; i < WG_KNOB_COUNT; i++) {
        check_text(info->knobs[i].source);
        require(info->knobs[i].min <= info->knobs[i].max);
    }
}

static void check_answers(const struct wg_recording *recording, size_t device)
{
    const struct wg_recorded_device *recorded = &recording->devices[device];
    uint64_t before_ns = 0;
    for (size_t i = 0; i < recorded->answer_count; i++) {
        const struct wg_recorded_answer *answer = &recorded->answers[i];
        require(answer->sample.t_ns >= before_ns && answer->sample.t_ns <= recording->end_ns);
        before_ns = answer->sample.t_ns;
        require((answer->code == WG_OK) == (answer->text == NULL));
        for (size_t metric = 0; metric < WG_METRIC_COUNT; metric++)
            require(isfinite(answer->sample.values[metric]));
        const struct wg_recorded_answer *found =
            wg__recording_at(recording, device, answer->sample.t_ns);
        require(found >= answer && found->sample.t_ns == answer->sample.t_ns);
        require(i == 0 || answer->sample.t_ns == recorded->answers[i - 1].sample.t_ns ||
                wg__recording_at(recording, device, answer->sample.t_ns - 1) == answer - 1);
    }
    require(wg__recording_at(recording, device, recording->end_ns + 1) == NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wg_recording *recording = NULL;
    struct wg_error err = {0};
    const enum wg_code code =
        wg__recording_open_memory(&recording, "fuzz.trace", (const char *)data, size, &err);
    if (code != WG_OK) {
        require(code == WG_EDATA && err.code == code && recording == NULL);
        require(strncmp(err.text, "fuzz.trace", 10) == 0);
        check_text(err.text);
        return 0;
    }
    size_t answers = 0;
    for (size_t i = 0; i < recording->device_count; i++) {
        check_info(&recording->devices[i].info);
        check_answers(recording, i);
        answers += recording->devices[i].answer_count;
    }
    require(answers == recording->answer_count);
    wg__recording_close(recording);
    return 0;
}
