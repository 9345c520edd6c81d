/* SPDX-License-Identifier: MIT
 *
 * Sources of energy; see tune_energy.h.
 */
#include "live/tune_energy.h"

#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "live/tune_knobs.h"

const char *wg__tune_energy_word(enum wg_tune_energy_kind kind)
{
    static const char *const words[] = {
#define X(name, word) word,
        WG_TUNE_ENERGIES(X)
#undef X
    };
    return (unsigned)kind < WG_TUNE_ENERGY_KIND_COUNT ? words[kind] : "auto";
}

static bool parse_watts(const char *text, const char *key, double *out)
{
    const char *at = strstr(text, key);
    char number[48];
    if (at == NULL)
        return false;
    at += strlen(key);
    const size_t length = strcspn(at, ",");
    if (length == 0 || length >= sizeof number)
        return false;
    memcpy(number, at, length);
    number[length] = '\0';
    return wg__parse_double(number, out) && *out >= 0;
}

enum wg_code wg__tune_energy_parse(const char *text, struct wg_tune_energy *out,
                                   struct wg_error *err)
{
    *out = (struct wg_tune_energy){.kind = WG_TUNE_ENERGY_KIND_COUNT};
    for (int kind = 0; kind < WG_TUNE_ENERGY_MODEL; kind++)
        if (strcmp(text, wg__tune_energy_word((enum wg_tune_energy_kind)kind)) == 0)
            out->kind = (enum wg_tune_energy_kind)kind;
    if (strncmp(text, "model:", 6) == 0 && parse_watts(text, "busy=", &out->busy_w) &&
        parse_watts(text, "idle=", &out->idle_w) && out->busy_w > 0 && out->busy_w >= out->idle_w)
        out->kind = WG_TUNE_ENERGY_MODEL;
    if (out->kind != WG_TUNE_ENERGY_KIND_COUNT)
        return WG_OK;
    return wg__fail(err, WG_EINVAL,
                    "'%s' is no source of energy: expected auto, gpu, cpu, all, command, or "
                    "model:busy=WATTS,idle=WATTS with busy above 0 and not below idle",
                    text);
}

bool wg__tune_energy_is_metered(const struct wg_tune_energy *energy)
{
    return energy->kind == WG_TUNE_ENERGY_GPU || energy->kind == WG_TUNE_ENERGY_CPU ||
           energy->kind == WG_TUNE_ENERGY_ALL;
}

static bool has_meter(const struct wg_device_info *info)
{
    return info->state == WG_OK && (info->meters[WG_METRIC_ENERGY_J].is_present ||
                                    info->meters[WG_METRIC_POWER_W].is_present ||
                                    info->meters[WG_METRIC_POWER_AVERAGE_W].is_present);
}

static bool is_wanted(const struct wg_device_info *info, enum wg_tune_energy_kind kind)
{
    switch (kind) {
    case WG_TUNE_ENERGY_GPU:
        return info->kind == WG_DEVICE_GPU;
    case WG_TUNE_ENERGY_CPU:
        return info->kind == WG_DEVICE_CPU || info->kind == WG_DEVICE_DRAM;
    default:
        return info->counts_in_total;
    }
}

/* The devices of that kind that can be measured; a GPU that cannot makes the sum worthless. */
static bool find_devices(struct wg_tune_energy *energy, const struct wg_tune_devices *devices,
                         enum wg_tune_energy_kind kind)
{
    const size_t count = wg_machine_device_count(devices->machine);
    energy->device_count = 0;
    for (size_t i = 0; i < count; i++) {
        const struct wg_device_info *info =
            wg_device_get_info(wg_machine_device(devices->machine, i));
        if (!is_wanted(info, kind))
            continue;
        if (!has_meter(info) && info->kind == WG_DEVICE_GPU)
            return false;
        if (has_meter(info) &&
            energy->device_count < sizeof energy->devices / sizeof *energy->devices)
            energy->devices[energy->device_count++] = i;
    }
    if (energy->device_count > 0)
        energy->kind = kind;
    return energy->device_count > 0;
}

enum wg_code wg__tune_energy_resolve(struct wg_tune_energy *energy,
                                     const struct wg_tune_devices *devices, struct wg_error *err)
{
    const enum wg_tune_energy_kind asked = energy->kind;
    if (asked == WG_TUNE_ENERGY_COMMAND || asked == WG_TUNE_ENERGY_MODEL)
        return WG_OK;
    if (asked == WG_TUNE_ENERGY_AUTO) {
        if (find_devices(energy, devices, WG_TUNE_ENERGY_GPU) ||
            find_devices(energy, devices, WG_TUNE_ENERGY_CPU))
            return WG_OK;
        energy->kind = WG_TUNE_ENERGY_COMMAND;
        return WG_OK;
    }
    if (find_devices(energy, devices, asked))
        return WG_OK;
    char why[300];
    (void)wg_machine_explain(devices->machine, why, sizeof why);
    why[strcspn(why, "\n")] = '\0';
    return wg__fail(err, WG_EUNSUPPORTED,
                    "no energy of '%s' can be measured here: %s; else: --energy command, or "
                    "--energy model:busy=WATTS,idle=WATTS",
                    wg__tune_energy_word(asked), why[0] != '\0' ? why : "there is no such device");
}

void wg__tune_energy_text(char out[static WG_TUNE_ENERGY_TEXT_SIZE],
                          const struct wg_tune_energy *energy,
                          const struct wg_tune_devices *devices, enum wg_energy_source source)
{
    if (energy->kind == WG_TUNE_ENERGY_MODEL) {
        (void)snprintf(out, WG_TUNE_ENERGY_TEXT_SIZE, "a stated model: %.4g W busy, %.4g W idle",
                       energy->busy_w, energy->idle_w);
        return;
    }
    if (!wg__tune_energy_is_metered(energy)) {
        (void)snprintf(out, WG_TUNE_ENERGY_TEXT_SIZE, "what the workload tells (energy_j)");
        return;
    }
    const char *how = source == WG_ENERGY_COUNTER ? "energy counter"
                      : source == WG_ENERGY_POWER ? "power samples"
                                                  : "meters";
    char labels[96] = "";
    for (size_t i = 0; i < energy->device_count; i++) {
        const struct wg_device_info *info =
            wg_device_get_info(wg_machine_device(devices->machine, energy->devices[i]));
        const size_t used = strlen(labels);
        (void)snprintf(labels + used, sizeof labels - used, "%s%s", i > 0 ? ", " : "", info->label);
    }
    (void)snprintf(out, WG_TUNE_ENERGY_TEXT_SIZE, "the %s of %s", how, labels);
}
