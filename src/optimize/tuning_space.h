/* SPDX-License-Identifier: MIT
 *
 * What may be tuned: named knobs, each a list of levels with a role, and the configurations that
 * are allowed.
 *
 * A configuration is one level of each knob. The space holds them as an explicit list, because real
 * spaces are no boxes: combinations are forbidden, measured grids have holes, a batch of 64 has no
 * engine. A configuration is known by its index in that list, everywhere.
 *
 *     level_of[c * knob_count + k]        the level of knob k in configuration c
 *
 * The role says what physics knows of a knob; a policy that knows no physics sees its axis only.
 * Levels are numbers, rising, in the unit of their source (Hz, W, requests); those of a category
 * are 0, 1, 2 ... with labels.
 *
 * Owns: copies of all that it was given.    Threads: pure; read by any thread once made.
 */
#ifndef WG_OPTIMIZE_TUNING_SPACE_H
#define WG_OPTIMIZE_TUNING_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum {
    WG_TUNING_KNOBS_MAX = 12,
    WG_TUNING_LEVELS_MAX = 1024,
    WG_TUNING_CONFIGURATIONS_MAX = 1000000
};

/* Role, and its word on command lines and in files. */
#define WG_TUNING_ROLES(X)                                                                         \
    X(GPU_CLOCK, "gpu_clock")     /* of the part that does the work; the last clock counts */      \
    X(MEM_CLOCK, "mem_clock")     /* memory */                                                     \
    X(CPU_CLOCK, "cpu_clock")     /* any other clock */                                            \
    X(CORES, "cores")             /* processor cores, threads */                                   \
    X(POWER_LIMIT, "power_limit") /* of the device */                                              \
    X(BATCH, "batch")             /* requests served together */                                   \
    X(TRAIN_BATCH, "train_batch") /* of a training job: time and energy are per epoch */           \
    X(REPLICAS, "replicas")       /* devices or instances side by side */                          \
    X(DELAY, "delay")             /* how long a request may wait for others */                     \
    X(SPLIT, "split")             /* degree of tensor, pipeline ... parallelism */                 \
    X(CATEGORY, "category")       /* precision, engine: no order */

enum wg_tuning_role {
#define X(name, word) WG_TUNING_##name,
    WG_TUNING_ROLES(X)
#undef X
        WG_TUNING_ROLE_COUNT
};

struct wg_tuning_knob {
    const char *name;
    enum wg_tuning_role role;
    const double *levels;      /* rising, finite; of all roles but category and delay > 0 */
    const char *const *labels; /* of a category, or NULL */
    size_t count;              /* 1 .. WG_TUNING_LEVELS_MAX */
    size_t default_level;
    double switch_s; /* what changing it costs beside a trial: 0.02 a clock, 600 an engine */
};

/* Whether a configuration is allowed: `levels` has one index a knob. */
typedef bool wg_tuning_allows(const size_t *levels, void *context);

struct wg_tuning_space {
    size_t knob_count;
    struct wg_tuning_knob knobs[WG_TUNING_KNOBS_MAX];
    size_t count; /* of configurations, at least 1 */
    const uint16_t *level_of;
    size_t default_configuration; /* each knob at its default level: always allowed */
};

/* The box of all levels less what `allows` (NULL: nothing) rejects. The order is that of the knobs:
 * the last one varies fastest. WG_EINVAL: a bad knob, or the default is forbidden, or there are
 * too many configurations; the text says which. WG_ENOMEM. */
enum wg_code wg__tuning_space_box(struct wg_tuning_space **out, const struct wg_tuning_knob *knobs,
                                  size_t knob_count, wg_tuning_allows *allows, void *context,
                                  struct wg_error *err);

/* The configurations listed: `level_of` as in the struct, each one once. */
enum wg_code wg__tuning_space_list(struct wg_tuning_space **out, const struct wg_tuning_knob *knobs,
                                   size_t knob_count, const uint16_t *level_of, size_t count,
                                   struct wg_error *err);
void wg__tuning_space_free(struct wg_tuning_space *space);

/* The configuration with these levels; `space->count` when it is none. */
size_t wg__tuning_space_find(const struct wg_tuning_space *space, const size_t *levels);

static inline size_t wg__tuning_level(const struct wg_tuning_space *space, size_t configuration,
                                      size_t knob)
{
    return space->level_of[configuration * space->knob_count + knob];
}

static inline double wg__tuning_value(const struct wg_tuning_space *space, size_t configuration,
                                      size_t knob)
{
    return space->knobs[knob].levels[wg__tuning_level(space, configuration, knob)];
}

/* Seconds that going from one configuration to another costs beside the trial. */
double wg__tuning_switch_s(const struct wg_tuning_space *space, size_t from, size_t to);

/* "gpu_clock"; a role from its word (false: none), NULL beyond the last. */
const char *wg__tuning_role_word(enum wg_tuning_role role);
bool wg__tuning_role_parse(const char *word, enum wg_tuning_role *out);

#endif
