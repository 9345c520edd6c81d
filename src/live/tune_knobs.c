/* SPDX-License-Identifier: MIT
 *
 * Knobs from texts; see tune_knobs.h. What devices offer is in tune_levels.c.
 */
#include "live/tune_knobs.h"

#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/number.h"
#include "live/tune_forbid.h"
#include "live/tune_levels.h"
#include "live/tune_quantity.h"

enum { PARTS_MAX = 8 };

/* A knob's text, taken apart. */
struct spec {
    char text[WG_TUNE_SPEC_SIZE];
    const char *whole; /* as it was given */
    const char *name;
    struct wg_tune_level_list levels;
    enum wg_tuning_role role;
    bool has_role;
    const char *preset; /* default=; NULL: none */
    double switch_s;
};

bool wg__tune_device_knob(const char *name, enum wg_tuning_role *role, enum wg_knob *knob)
{
    static const struct {
        const char *name;
        enum wg_tuning_role role;
        enum wg_knob knob;
    } known[] = {{"gpu_clock", WG_TUNING_GPU_CLOCK, WG_KNOB_GPU_CLOCK},
                 {"mem_clock", WG_TUNING_MEM_CLOCK, WG_KNOB_MEMORY_CLOCK},
                 {"cpu_clock", WG_TUNING_CPU_CLOCK, WG_KNOB_CPU_CLOCK},
                 {"power_limit", WG_TUNING_POWER_LIMIT, WG_KNOB_POWER_LIMIT}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(known[i].name, name) != 0)
            continue;
        *role = known[i].role;
        *knob = known[i].knob;
        return true;
    }
    return false;
}

enum wg_code wg__tune_devices_find(struct wg_tune_devices *out, const struct wg_machine *machine,
                                   struct wg_error *err)
{
    *out = (struct wg_tune_devices){.machine = machine};
    const size_t count = wg_machine_device_count(machine);
    for (size_t i = 0; i < count; i++) {
        const struct wg_device_info *info = wg_device_get_info(wg_machine_device(machine, i));
        const bool is_gpu = info->kind == WG_DEVICE_GPU;
        if (!is_gpu && info->kind != WG_DEVICE_CPU)
            continue;
        size_t *const number = is_gpu ? &out->gpu_count : &out->cpu_count;
        if (*number == WG_TUNE_DEVICES_MAX)
            return wg__fail(err, WG_EINVAL, "more than %d %s", WG_TUNE_DEVICES_MAX,
                            is_gpu ? "GPUs: choose some with --gpu" : "processors");
        (is_gpu ? out->gpus : out->cpus)[(*number)++] = i;
    }
    return WG_OK;
}

/* -- A text, taken apart ---------------------------------------------------------------------- */

static enum wg_code reject(const struct spec *spec, struct wg_error *err, const char *expected)
{
    return wg__fail(err, WG_EINVAL, "knob '%s': expected %s", spec->whole, expected);
}

static bool is_name(const char *text)
{
    if (!isalpha((unsigned char)text[0]) && text[0] != '_')
        return false;
    for (; *text != '\0'; text++)
        if (!isalnum((unsigned char)*text) && *text != '_')
            return false;
    return true;
}

/* default=..., switch_s=..., or a role. */
static enum wg_code take_part(struct spec *spec, const char *part, struct wg_error *err)
{
    if (strncmp(part, "default=", 8) == 0) {
        spec->preset = part + 8;
        return WG_OK;
    }
    if (strncmp(part, "switch_s=", 9) == 0) {
        if (!wg__parse_double(part + 9, &spec->switch_s) || spec->switch_s < 0 ||
            spec->switch_s > 86400)
            return reject(spec, err, "switch_s=SECONDS from 0 to 86400");
        return WG_OK;
    }
    if (!wg__tuning_role_parse(part, &spec->role))
        return wg__fail(err, WG_EINVAL,
                        "knob '%s': '%s' is no role (gpu_clock, mem_clock, cpu_clock, cores, "
                        "power_limit, batch, train_batch, replicas, delay, split, category), nor "
                        "default=LEVEL or switch_s=SECONDS",
                        spec->whole, part);
    spec->has_role = true;
    return WG_OK;
}

static bool begins_number(const char *text)
{
    return isdigit((unsigned char)text[0]) || text[0] == '.';
}

/* Splits at the colons: levels first, a range being three numbers. */
static enum wg_code take_parts(struct spec *spec, char *text, struct wg_error *err)
{
    char *parts[PARTS_MAX] = {text};
    size_t count = 1;
    for (char *colon = strchr(text, ':'); colon != NULL && count < PARTS_MAX; count++) {
        *colon = '\0';
        parts[count] = colon + 1;
        colon = strchr(colon + 1, ':');
    }
    size_t next = 1;
    if (count >= 3 && begins_number(parts[0]) && begins_number(parts[1]) &&
        begins_number(parts[2])) {
        spec->levels.low = parts[0];
        spec->levels.high = parts[1];
        spec->levels.step = parts[2];
        next = 3;
    } else {
        spec->levels.list = parts[0];
    }
    enum wg_code code = WG_OK;
    for (; next < count && code == WG_OK; next++)
        code = take_part(spec, parts[next], err);
    return code;
}

static enum wg_code spec_parse(struct spec *spec, const char *text, struct wg_error *err)
{
    *spec = (struct spec){.whole = text};
    const size_t length = strlen(text);
    if (length >= sizeof spec->text)
        return wg__fail(err, WG_EINVAL, "knob '%.40s...': longer than %d bytes", text,
                        WG_TUNE_SPEC_SIZE - 1);
    memcpy(spec->text, text, length + 1);
    spec->name = spec->text;
    char *equals = strchr(spec->text, '=');
    if (equals != NULL)
        *equals = '\0';
    if (!is_name(spec->name) || strlen(spec->name) >= WG_TUNE_NAME_SIZE)
        return reject(spec, err, "a name of letters, digits and _, as in batch=1,2,4:batch");
    return equals != NULL ? take_parts(spec, equals + 1, err) : WG_OK;
}

/* -- Workload knobs --------------------------------------------------------------------------- */

bool wg__tune_role_of_name(const char *name, enum wg_tuning_role *out)
{
    static const struct {
        const char *name;
        enum wg_tuning_role role;
    } known[] = {{"batch_size", WG_TUNING_BATCH},
                 {"instances", WG_TUNING_REPLICAS},
                 {"threads", WG_TUNING_CORES},
                 {"precision", WG_TUNING_CATEGORY},
                 {"engine", WG_TUNING_CATEGORY}};
    if (wg__tuning_role_parse(name, out))
        return true;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(known[i].name, name) == 0) {
            *out = known[i].role;
            return true;
        }
    }
    return false;
}

static enum wg_code take_category(const struct spec *spec, struct wg_tune_knob *knob,
                                  struct wg_error *err)
{
    size_t capacity = 1;
    for (const char *at = spec->levels.list; *at != '\0'; at++)
        capacity += *at == ',';
    knob->labels = wg__alloc_zeroed(capacity + 1, sizeof *knob->labels);
    knob->levels = wg__alloc_zeroed(capacity, sizeof *knob->levels);
    if (knob->labels == NULL || knob->levels == NULL)
        return wg__fail(err, WG_ENOMEM, "out of memory");
    for (const char *at = spec->levels.list; at != NULL;) {
        const size_t length = strcspn(at, ",");
        char label[WG_TUNE_NAME_SIZE];
        if (length == 0 || length >= sizeof label)
            return reject(spec, err, "words between the commas, as in fp16,fp32");
        memcpy(label, at, length);
        label[length] = '\0';
        for (size_t i = 0; i < knob->count; i++)
            if (strcmp(knob->labels[i], label) == 0)
                return reject(spec, err, "each level once");
        knob->labels[knob->count] = wg__strdup(label);
        if (knob->labels[knob->count] == NULL)
            return wg__fail(err, WG_ENOMEM, "out of memory");
        knob->levels[knob->count] = (double)knob->count;
        knob->count++;
        at = at[length] == ',' ? at + length + 1 : NULL;
    }
    return WG_OK;
}

/* `default=` or, for a workload's knob, the level that is written first. */
static enum wg_code take_default(const struct spec *spec, struct wg_tune_knob *knob,
                                 double first_written, struct wg_error *err)
{
    double wanted = first_written;
    if (spec->preset != NULL && knob->labels != NULL) {
        for (size_t i = 0; i < knob->count; i++) {
            if (strcmp(knob->labels[i], spec->preset) == 0) {
                knob->default_level = i;
                return WG_OK;
            }
        }
        return reject(spec, err, "default= to name one of its levels");
    }
    if (spec->preset != NULL && !wg__tune_quantity_parse(spec->preset, knob->role, &wanted))
        return reject(spec, err, "default= to name one of its levels");
    if (!isfinite(wanted))
        return WG_OK; /* a device's: chosen already */
    assert(knob->levels != NULL && knob->count > 0);
    size_t best = 0;
    for (size_t i = 1; i < knob->count; i++)
        if (fabs(knob->levels[i] - wanted) < fabs(knob->levels[best] - wanted))
            best = i;
    /* Devices round; what the workload gets must be meant exactly. */
    const double slack = knob->is_device ? 0.02 : 1e-9;
    if (fabs(knob->levels[best] - wanted) > slack * fabs(wanted))
        return reject(spec, err, "default= to name one of its levels");
    knob->default_level = best;
    return WG_OK;
}

static enum wg_code take_workload_knob(const struct spec *spec, struct wg_tune_knob *knob,
                                       struct wg_error *err)
{
    double first = NAN;
    if (spec->levels.list == NULL && spec->levels.low == NULL)
        return wg__fail(err, WG_EINVAL,
                        "knob '%s': a device has gpu_clock, mem_clock, cpu_clock and power_limit; "
                        "one of the workload needs its levels: %s=1,2,4",
                        spec->whole, spec->name);
    enum wg_tuning_role role = spec->role;
    if (!spec->has_role && !wg__tune_role_of_name(spec->name, &role)) {
        if (spec->levels.list == NULL || begins_number(spec->levels.list))
            return reject(spec, err, "a role behind the levels, as in rows=1,2,4:batch");
        role = WG_TUNING_CATEGORY;
    }
    knob->role = role;
    enum wg_code code = WG_OK;
    if (role == WG_TUNING_CATEGORY && spec->levels.list == NULL)
        code = reject(spec, err, "a list of words for a category");
    else if (role == WG_TUNING_CATEGORY)
        code = take_category(spec, knob, err);
    else
        code = wg__tune_levels_written(&spec->levels, spec->whole, knob, &first, err);
    if (role == WG_TUNING_CATEGORY)
        first = 0;
    return code == WG_OK ? take_default(spec, knob, first, err) : code;
}

/* -- All of them ------------------------------------------------------------------------------ */

static enum wg_code knob_init(struct wg_tune_knobs *knobs, struct wg_tune_knob *knob,
                              const char *text, struct wg_error *err)
{
    struct spec spec;
    enum wg_code code = spec_parse(&spec, text, err);
    if (code != WG_OK)
        return code;
    memcpy(knob->name, spec.text, strlen(spec.text) + 1); /* the name alone by now */
    knob->switch_s = spec.switch_s;
    knob->is_default_said = spec.preset != NULL;
    for (size_t i = 0; &knobs->knobs[i] != knob; i++)
        if (strcmp(knobs->knobs[i].name, knob->name) == 0)
            return wg__fail(err, WG_EINVAL, "knob '%s' is given twice", knob->name);
    enum wg_tuning_role role = WG_TUNING_CATEGORY;
    knob->is_device = wg__tune_device_knob(spec.text, &role, &knob->device_knob);
    if (!knob->is_device)
        return take_workload_knob(&spec, knob, err);
    if (spec.has_role && spec.role != role)
        return reject(&spec, err, "no role: it is known");
    knob->role = role;
    const bool is_cpu = knob->device_knob == WG_KNOB_CPU_CLOCK;
    knob->devices = is_cpu ? knobs->devices.cpus : knobs->devices.gpus;
    knob->device_count = is_cpu ? knobs->devices.cpu_count : knobs->devices.gpu_count;
    code = wg__tune_levels_of_devices(&spec.levels, spec.whole, &knobs->devices, knob, err);
    return code == WG_OK ? take_default(&spec, knob, NAN, err) : code;
}

struct forbids {
    size_t count;
    struct wg_tune_forbid items[WG_TUNE_FORBIDS_MAX];
    const struct wg_tuning_knob *knobs;
};

static bool allows(const size_t *levels, void *context)
{
    const struct forbids *forbids = context;
    for (size_t i = 0; i < forbids->count; i++)
        if (wg__tune_forbid_holds(&forbids->items[i], forbids->knobs, levels))
            return false;
    return true;
}

static enum wg_code make_space(struct wg_tune_knobs *knobs, const char *const *texts, size_t count,
                               struct wg_error *err)
{
    struct wg_tuning_knob plain[WG_TUNING_KNOBS_MAX];
    for (size_t k = 0; k < knobs->count; k++) {
        const struct wg_tune_knob *knob = &knobs->knobs[k];
        plain[k] = (struct wg_tuning_knob){.name = knob->name,
                                           .role = knob->role,
                                           .levels = knob->levels,
                                           .labels = (const char *const *)knob->labels,
                                           .count = knob->count,
                                           .default_level = knob->default_level,
                                           .switch_s = knob->switch_s};
    }
    struct forbids *forbids = wg__alloc_zeroed(1, sizeof *forbids);
    if (forbids == NULL)
        return wg__fail(err, WG_ENOMEM, "out of memory");
    forbids->knobs = plain;
    enum wg_code code = WG_OK;
    if (count > WG_TUNE_FORBIDS_MAX)
        code = wg__fail(err, WG_EINVAL, "more than %d forbidden combinations", WG_TUNE_FORBIDS_MAX);
    for (; forbids->count < count && code == WG_OK; forbids->count++)
        code = wg__tune_forbid_parse(&forbids->items[forbids->count], texts[forbids->count], plain,
                                     knobs->count, err);
    if (code == WG_OK)
        code = wg__tuning_space_box(&knobs->space, plain, knobs->count, allows, forbids, err);
    wg__free(forbids);
    return code;
}

enum wg_code wg__tune_knobs_init(struct wg_tune_knobs *out, const struct wg_tune_devices *devices,
                                 const char *const *texts, size_t count, const char *const *forbids,
                                 size_t forbid_count, struct wg_error *err)
{
    *out = (struct wg_tune_knobs){.devices = *devices};
    enum wg_code code = WG_OK;
    if (count == 0)
        code = wg__fail(err, WG_EINVAL,
                        "nothing to tune: give at least one knob, as in gpu_clock or "
                        "batch=1,2,4,8:batch");
    if (count > WG_TUNING_KNOBS_MAX)
        code = wg__fail(err, WG_EINVAL, "%zu knobs, at most %d", count, WG_TUNING_KNOBS_MAX);
    for (size_t i = 0; i < count && code == WG_OK; i++) {
        out->count = i + 1;
        code = knob_init(out, &out->knobs[i], texts[i], err);
    }
    if (code == WG_OK)
        code = make_space(out, forbids, forbid_count, err);
    if (code != WG_OK)
        wg__tune_knobs_fini(out);
    return code;
}

void wg__tune_knobs_fini(struct wg_tune_knobs *knobs)
{
    for (size_t k = 0; k < knobs->count; k++) {
        struct wg_tune_knob *knob = &knobs->knobs[k];
        for (size_t i = 0; knob->labels != NULL && knob->labels[i] != NULL; i++)
            wg__free(knob->labels[i]);
        wg__free(knob->labels);
        wg__free(knob->levels);
        wg__free(knob->values);
    }
    wg__tuning_space_free(knobs->space);
    knobs->space = NULL;
    knobs->count = 0;
}

bool wg__tune_knobs_set_default(struct wg_tune_knobs *knobs, const size_t *levels)
{
    struct wg_tuning_space *space = knobs->space;
    const size_t configuration = wg__tuning_space_find(space, levels);
    if (configuration == space->count)
        return false;
    space->default_configuration = configuration;
    for (size_t k = 0; k < knobs->count; k++)
        knobs->knobs[k].default_level = space->knobs[k].default_level = levels[k];
    return true;
}

size_t wg__tune_workload_settings(const struct wg_tune_knobs *knobs, const uint16_t *levels,
                                  struct wg_workload_setting *out)
{
    size_t count = 0;
    for (size_t k = 0; k < knobs->count; k++) {
        const struct wg_tune_knob *knob = &knobs->knobs[k];
        if (!knob->is_device)
            out[count++] = (struct wg_workload_setting){
                .name = knob->name,
                .value = knob->levels[levels[k]],
                .label = knob->labels != NULL ? knob->labels[levels[k]] : NULL};
    }
    return count;
}

void wg__tune_knob_write(struct wg_json *json, const struct wg_tune_knob *knob)
{
    wg__json_member_string(json, "name", knob->name);
    wg__json_member_string(json, "role", wg__tuning_role_word(knob->role));
    wg__json_member_bool(json, "is_device", knob->is_device);
    wg__json_key(json, "levels");
    wg__json_array(json);
    for (size_t i = 0; i < knob->count; i++) {
        if (knob->labels != NULL)
            wg__json_string(json, knob->labels[i]);
        else
            wg__json_double(json, knob->levels[i]);
    }
    wg__json_close(json);
}
