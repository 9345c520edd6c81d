/* SPDX-License-Identifier: MIT
 *
 * cpufreq policies of a package.
 *
 * The number in a policy's name is that of its first core, whose topology says the package and the
 * die. On processors with two kinds of cores the knob spans both: from the lowest clock of any to
 * the highest of any.
 *
 * Owns: see struct wg_cpu_clock.    Threads: one thread at a time.
 */
#include "device/cpu_clock.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>

#include "base/number.h"

#define CPU_FOLDER "/sys/devices/system/cpu"

static const double KHZ = 1e3;
static const char *const REMEDY = "run as root: the file is writable by root only";

/* Whether a number in a file is the one that is looked for. A kernel without the file has but one.
 */
static bool is_number(const char *root, struct wg_arena *paths, const char *cpu, const char *name,
                      unsigned wanted)
{
    if (wanted == UINT_MAX)
        return true;
    const char *path = wg__sysfs_path(paths, CPU_FOLDER "/cpu%s/topology/%s", cpu, name);
    uint64_t number = 0;
    if (path == NULL || wg__sysfs_uint(root, path, &number, NULL) != WG_OK)
        return wanted == 0;
    return number == wanted;
}

/* Keeps those names that belong to the package, in place. */
static size_t filter(const char *root, unsigned package, unsigned die, struct wg_arena *paths,
                     const char *const *names, size_t count, const char **kept)
{
    size_t kept_count = 0;
    for (size_t i = 0; i < count; i++) {
        const char *cpu = names[i] + sizeof "policy" - 1;
        if (is_number(root, paths, cpu, "physical_package_id", package) &&
            is_number(root, paths, cpu, "die_id", die))
            kept[kept_count++] = names[i];
    }
    return kept_count;
}

enum wg_code wg__cpu_clock_open(struct wg_cpu_clock *clock, const char *root, unsigned package,
                                unsigned die, struct wg_arena *paths, struct wg_error *err)
{
    *clock = (struct wg_cpu_clock){0};
    const char *const *names = NULL;
    size_t count = 0;
    const enum wg_code code =
        wg__sysfs_list(root, CPU_FOLDER "/cpufreq", "policy", paths, &names, &count, err);
    if (code == WG_ENOMEM)
        return code;
    if (code != WG_OK || count == 0)
        return WG_OK;
    const char **kept = wg__arena_alloc(paths, count, sizeof *kept);
    if (kept == NULL)
        return wg__fail(err, WG_ENOMEM, "cpufreq: out of memory");
    const size_t kept_count = filter(root, package, die, paths, names, count, kept);
    if (kept_count == 0)
        return WG_OK;
    for (size_t i = 0; i < kept_count; i++) {
        kept[i] = wg__sysfs_path(paths, CPU_FOLDER "/cpufreq/%s", kept[i]);
        if (kept[i] == NULL)
            return wg__fail(err, WG_ENOMEM, "cpufreq: out of memory");
    }
    clock->all = kept;
    clock->all_count = kept_count;
    size_t used = WG_CPU_CLOCK_FILES;
    if (kept_count < used)
        used = kept_count;
    for (size_t i = 0; i < used; i++) {
        const char *policy = kept[i * kept_count / used];
        const char *path = wg__sysfs_path(paths, "%s/scaling_cur_freq", policy);
        if (path == NULL) {
            wg__cpu_clock_close(clock);
            return wg__fail(err, WG_ENOMEM, "cpufreq: out of memory");
        }
        struct wg_sysfs_file file;
        if (wg__sysfs_open(&file, root, path, NULL) != WG_OK)
            continue;
        clock->policies[clock->count] = policy;
        clock->files[clock->count++] = file;
    }
    return WG_OK;
}

void wg__cpu_clock_close(struct wg_cpu_clock *clock)
{
    for (size_t i = 0; i < clock->count; i++)
        wg__sysfs_close(&clock->files[i]);
    clock->count = 0;
}

enum wg_code wg__cpu_clock_read(const struct wg_cpu_clock *clock, double *out, struct wg_error *err)
{
    double sum_khz = 0.0;
    size_t count = 0;
    enum wg_code code = WG_OK;
    for (size_t i = 0; i < clock->count; i++) {
        uint64_t khz = 0;
        const enum wg_code one = wg__sysfs_read_uint(&clock->files[i], &khz, err);
        if (one != WG_OK) {
            code = one;
            continue;
        }
        sum_khz += (double)khz;
        count++;
    }
    if (count == 0)
        return code != WG_OK ? code : wg__fail(err, WG_ENOENT, CPU_FOLDER "/cpufreq: no policy");
    *out = sum_khz / (double)count * KHZ;
    return WG_OK;
}

/* The policy's file, which holds kHz. No allocation: the way back must work without memory. */
static enum wg_code read_policy(const struct wg_kernel_device *kernel, const char *policy,
                                const char *name, double *out_hz, struct wg_error *err)
{
    char path[WG_SYSFS_PATH_MAX];
    uint64_t khz = 0;
    (void)snprintf(path, sizeof path, "%s/%s", policy, name);
    const enum wg_code code = wg__sysfs_uint(kernel->root, path, &khz, err);
    if (code == WG_OK)
        *out_hz = (double)khz * KHZ;
    return code;
}

/* NAN, which fmin and fmax leave behind: it cannot be read, or says nothing. */
static double policy_hz(const struct wg_kernel_device *kernel, const char *policy, const char *name)
{
    double hz = NAN;
    (void)read_policy(kernel, policy, name, &hz, NULL);
    return hz > 0.0 ? hz : (double)NAN;
}

void wg__cpu_clock_describe(const struct wg_cpu_clock *clock, struct wg_kernel_device *kernel)
{
    if (clock->count == 0) {
        wg__kernel_no_knob(kernel, WG_KNOB_CPU_CLOCK, CPU_FOLDER "/cpufreq",
                           "no cpufreq policy here, as in most virtual machines", NULL);
        return;
    }
    struct wg_knob_info knob = {.min = INFINITY, .step = KHZ, .preset = NAN, .current = NAN};
    for (size_t i = 0; i < clock->count; i++) {
        const char *policy = clock->policies[i];
        knob.min = fmin(knob.min, policy_hz(kernel, policy, "cpuinfo_min_freq"));
        knob.max = fmax(knob.max, policy_hz(kernel, policy, "cpuinfo_max_freq"));
        knob.current = fmax(knob.current, policy_hz(kernel, policy, "scaling_max_freq"));
    }
    const char *path = wg__kernel_format(kernel, "%s/scaling_max_freq", clock->policies[0]);
    if (!(knob.min < knob.max)) {
        wg__kernel_no_knob(kernel, WG_KNOB_CPU_CLOCK, path,
                           "cpuinfo_min_freq and cpuinfo_max_freq leave no range", NULL);
        return;
    }
    knob.preset = knob.max;
    const char *levels =
        wg__sysfs_path(&kernel->paths, "%s/scaling_available_frequencies", clock->policies[0]);
    if (levels != NULL)
        wg__kernel_levels(kernel, levels, KHZ, &knob);
    kernel->cpu_clock = clock;
    wg__kernel_knob(kernel, WG_KNOB_CPU_CLOCK, &knob, path, REMEDY);
}

/* -- Setting ---------------------------------------------------------------------------------- */

/* What the policy is to have where the package is to have `limit_hz`. */
static double limit_of(const struct wg_kernel_device *kernel, const char *policy, double limit_hz)
{
    double most_hz = NAN;
    (void)read_policy(kernel, policy, "cpuinfo_max_freq", &most_hz, NULL);
    return fmin(limit_hz, most_hz); /* of NAN and a number: the number */
}

enum wg_code wg__cpu_clock_set_limit(const struct wg_cpu_clock *clock,
                                     struct wg_kernel_device *kernel, double limit_hz,
                                     struct wg_error *err)
{
    if (clock->all_count == 0)
        return wg__fail(err, WG_ENOENT, CPU_FOLDER "/cpufreq: no policy");
    enum wg_code code = WG_OK;
    for (size_t i = 0; i < clock->all_count; i++) {
        char text[32];
        const double hz = limit_of(kernel, clock->all[i], limit_hz);
        if (!(hz > 0.0 && hz < 1e13)) {
            code = wg__fail(err, WG_EINVAL, "%s: %.6g Hz is no clock", clock->all[i], hz);
            continue;
        }
        (void)snprintf(text, sizeof text, "%lld", llround(hz / KHZ));
        const enum wg_code one =
            wg__kernel_set_text(kernel, clock->all[i], "scaling_max_freq", text, err);
        if (one != WG_OK)
            code = one;
    }
    return code;
}

enum wg_code wg__cpu_clock_get_limit(const struct wg_cpu_clock *clock,
                                     struct wg_kernel_device *kernel, double *out,
                                     struct wg_error *err)
{
    double most_hz = 0.0;
    for (size_t i = 0; i < clock->all_count; i++) {
        double hz = 0.0;
        const enum wg_code code = read_policy(kernel, clock->all[i], "scaling_max_freq", &hz, err);
        if (code != WG_OK)
            return code;
        most_hz = fmax(most_hz, hz);
    }
    for (size_t i = 0; i < clock->all_count; i++) {
        double hz = 0.0;
        const enum wg_code code = read_policy(kernel, clock->all[i], "scaling_max_freq", &hz, err);
        if (code != WG_OK)
            return code;
        if (fabs(hz - limit_of(kernel, clock->all[i], most_hz)) > KHZ)
            return wg__fail(err, WG_EDATA,
                            "%s/scaling_max_freq is %.0f MHz, of other cores %.0f MHz: the cores "
                            "have no limit in common",
                            clock->all[i], hz / 1e6, most_hz / 1e6);
    }
    if (clock->all_count == 0)
        return wg__fail(err, WG_ENOENT, CPU_FOLDER "/cpufreq: no policy");
    *out = most_hz;
    return WG_OK;
}
