/* SPDX-License-Identifier: MIT
 *
 * Why there is no energy, in words for whoever gets a NAN.
 *
 * A device without meters speaks for itself. The backends speak only where no device has a meter:
 * on a machine with NVIDIA GPUs nobody asks why there are no AMD ones.
 *
 * Owns: nothing.    Threads: any thread.
 */
#include <stdbool.h>
#include <string.h>

#include "device/backend.h"

/* The text so far; `length` goes on counting when the room is used up. */
struct explanation {
    char *out;
    size_t size;
    size_t length;
};

static void append(struct explanation *text, const char *piece)
{
    const size_t length = strlen(piece);
    if (text->length + 1 < text->size) {
        const size_t room = text->size - 1 - text->length;
        memcpy(text->out + text->length, piece, length < room ? length : room);
    }
    text->length += length;
}

/* `who`: NULL where the reason says it itself. */
static void append_line(struct explanation *text, const char *who, const char *reason,
                        const char *remedy)
{
    if (text->length > 0)
        append(text, "\n");
    if (who != NULL) {
        append(text, who);
        append(text, ": ");
    }
    append(text, reason);
    if (remedy != NULL) {
        append(text, "; ");
        append(text, remedy);
    }
}

static void explain_device(struct explanation *text, const struct wg_device_info *info)
{
    const struct wg_meter_info *energy = &info->meters[WG_METRIC_ENERGY_J];
    const struct wg_meter_info *power = &info->meters[WG_METRIC_POWER_W];
    const struct wg_meter_info *speaker = energy->why_not != NULL ? energy : power;
    if (info->state != WG_OK)
        append_line(text, NULL, info->state_text, speaker->remedy);
    else
        append_line(text, info->label,
                    speaker->why_not != NULL ? speaker->why_not : "it has no meter",
                    speaker->remedy);
}

static bool has_meter(const struct wg_device_info *info)
{
    return info->state == WG_OK && (info->meters[WG_METRIC_ENERGY_J].is_present ||
                                    info->meters[WG_METRIC_POWER_W].is_present);
}

size_t wg_machine_explain(const struct wg_machine *machine, char *out, size_t size)
{
    struct explanation text = {.out = out, .size = size};
    bool has_any = false;
    for (size_t i = 0; i < wg_machine_device_count(machine); i++) {
        const struct wg_device_info *info = wg_device_get_info(wg_machine_device(machine, i));
        if (has_meter(info))
            has_any = true;
        else
            explain_device(&text, info);
    }
    for (size_t i = 0; i < wg_machine_backend_count(machine) && !has_any; i++) {
        const struct wg_backend_info *backend = wg_machine_backend(machine, i);
        if (backend->device_count == 0)
            append_line(&text, backend->name, backend->text, backend->remedy);
    }
    if (size > 0)
        out[text.length < size ? text.length : size - 1] = '\0';
    return text.length;
}
