/* SPDX-License-Identifier: MIT
 *
 * Which commands restore first, and what they say of each setting.
 */
#include "cli/stale_settings.h"

#include <string.h>

#include "base/buffer.h"
#include "support/check.h"

static void commands_on_devices_restore_first_and_questions_do_not(void **state)
{
    (void)state;
    static struct {
        char words[6][16]; /* argv is not const */
        bool wants;
    } cases[] = {
        {{"wattgov", "devices"}, true},
        {{"wattgov", "measure", "--", "cmd", "--help"}, true},
        {{"wattgov", "top", "--gpu", "0"}, true},
        {{"wattgov", "restore"}, false},
        {{"wattgov", "guard"}, false},
        {{"wattgov", "simulate", "training"}, false},
        {{"wattgov", "wave", "analyze"}, false},
        {{"wattgov", "devices", "--help"}, false},
        {{"wattgov", "measure", "-h"}, false},
        {{"wattgov", "--help"}, false},
        {{"wattgov", "--version"}, false},
        {{"wattgov"}, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *words[6];
        int count = 0;
        for (; count < 6 && cases[i].words[count][0] != '\0'; count++)
            words[count] = cases[i].words[count];
        if (wg__wants_stale_restored(count, words) != cases[i].wants)
            fail_msg("case %zu", i);
    }
}

static void each_outcome_says_value_holder_and_what_to_do(void **state)
{
    (void)state;
    const struct wg_error failed = {.code = WG_EIO, .text = "gpu0: fakeSet failed"};
    const struct wg_error newer = {.code = WG_EUNSUPPORTED, .text = "/x/1.journal is newer"};
    const struct {
        struct wg_restore_note note;
        const char *text;
    } cases[] = {
        {{.label = "gpu0",
          .knob = WG_KNOB_POWER_LIMIT,
          .original = 300,
          .found = 175,
          .outcome = WG_RESTORE_DONE,
          .holder = "wattgov train: a\nb"},
         "gpu0: power_limit is back at 300 W, was 175 W (left by 'wattgov train: a b')"},
        {{.label = "gpu0",
          .knob = WG_KNOB_GPU_CLOCK,
          .original = NAN,
          .found = NAN,
          .outcome = WG_RESTORE_DONE,
          .holder = "t"},
         "gpu0: gpu_clock is back at the driver's own choice (left by 't')"},
        {{.label = "gpu0",
          .knob = WG_KNOB_POWER_LIMIT,
          .original = 300,
          .found = 220,
          .outcome = WG_RESTORE_FOREIGN,
          .holder = "t"},
         "gpu0: power_limit is left at 220 W, which somebody else has set (left by 't')"},
        {{.label = "gpu0",
          .knob = WG_KNOB_POWER_LIMIT,
          .original = 300,
          .found = 220,
          .outcome = WG_RESTORE_FAILED,
          .holder = "t",
          .err = &failed},
         "gpu0: power_limit did not come back to 300 W: gpu0: fakeSet failed; to try again: "
         "wattgov restore (left by 't')"},
        {{.label = "/x/1.journal",
          .knob = WG_KNOB_COUNT,
          .original = NAN,
          .found = NAN,
          .outcome = WG_RESTORE_UNREADABLE,
          .holder = "?",
          .err = &newer},
         "/x/1.journal is newer; what it says is not restored: look at it, set the devices by "
         "hand (nvidia-smi) and remove it"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct wg_buffer text;
        wg__buffer_init(&text);
        wg__restore_note_text(&cases[i].note, &text);
        assert_string_equal(text.data, cases[i].text);
        wg__buffer_fini(&text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commands_on_devices_restore_first_and_questions_do_not),
        cmocka_unit_test(each_outcome_says_value_holder_and_what_to_do),
    };
    return run_tests(tests);
}
