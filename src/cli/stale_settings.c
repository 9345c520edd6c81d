/* SPDX-License-Identifier: MIT
 *
 * Settings that a dead governor has left; see stale_settings.h.
 */
#include "cli/stale_settings.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "cli/markup.h"
#include "cli/quantity.h"

bool wg__wants_stale_restored(int argc, char *const argv[])
{
    static const char *const others[] = {"guard", "restore", "simulate", "wave"};
    if (argc < 2 || argv[1][0] == '-')
        return false;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(argv[1], others[i]) == 0)
            return false;
    for (int i = 2; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return false;
    return true;
}

void wg__append_setting(struct wg_buffer *out, enum wg_knob knob, double value)
{
    char text[WG_QUANTITY_TEXT_SIZE];
    wg__knob_text(text, knob, value);
    wg__buffer_puts(out, isnan(value) ? "the driver's own choice" : text);
}

void wg__restore_note_text(const struct wg_restore_note *note, struct wg_buffer *out)
{
    const enum wg_knob knob = note->knob;
    if (note->outcome == WG_RESTORE_UNREADABLE) {
        wg__append_plain(out, note->err->text);
        wg__buffer_puts(out, "; what it says is not restored: look at it, set the devices by hand "
                             "(nvidia-smi) and remove it");
        return;
    }
    wg__append_plain(out, note->label);
    wg__buffer_printf(out, ": %s ", wg_knob_key(knob));
    if (note->outcome == WG_RESTORE_DONE) {
        wg__buffer_puts(out, "is back at ");
        wg__append_setting(out, knob, note->original);
        if (!isnan(note->found)) {
            wg__buffer_puts(out, ", was ");
            wg__append_setting(out, knob, note->found);
        }
    } else if (note->outcome == WG_RESTORE_FOREIGN) {
        wg__buffer_puts(out, "is left at ");
        wg__append_setting(out, knob, note->found);
        wg__buffer_puts(out, ", which somebody else has set");
    } else {
        wg__buffer_puts(out, "did not come back to ");
        wg__append_setting(out, knob, note->original);
        wg__buffer_puts(out, ": ");
        wg__append_plain(out, note->err->text);
        wg__buffer_puts(out, "; to try again: wattgov restore");
    }
    wg__buffer_puts(out, " (left by '");
    wg__append_plain(out, note->holder);
    wg__buffer_puts(out, "')");
}

static void print_note(const struct wg_restore_note *note, void *context)
{
    (void)context;
    struct wg_buffer line;
    wg__buffer_init(&line);
    wg__restore_note_text(note, &line);
    (void)fprintf(stderr, "wattgov: %s\n", line.failed ? "out of memory" : line.data);
    wg__buffer_fini(&line);
}

void wg__restore_stale_settings(void)
{
    struct wg_restore_summary summary;
    struct wg_error err;
    if (wg__restore_stale(NULL, print_note, NULL, &summary, &err) != WG_OK)
        (void)fprintf(stderr, "wattgov: whether an earlier wattgov has left settings: %s\n",
                      err.text);
}
