/* SPDX-License-Identifier: MIT
 *
 * Progress of a training process, told to the governor that runs it (`wattgov train -- CMD`).
 *
 *     struct wg_train *train;
 *     wg_train_open(&train, NULL, NULL);
 *     for (unsigned epoch = 1; epoch <= 10; epoch++) {
 *         for (unsigned step = 0; step < steps; step++) {
 *             train_one_step();
 *             wg_train_step(train);
 *         }
 *         wg_train_metric(train, NULL, evaluate());
 *         wg_train_epoch(train);
 *     }
 *     wg_train_close(train);
 *
 * Where no governor runs ($WATTGOV_PROGRESS is not set) all of this does nothing and costs nothing
 * that could be measured. A governor that dies or hangs never blocks or ends the training: what it
 * cannot take is dropped. Steps are written at most every 5 ms, and where writing takes long every
 * 100 ms, so that it takes at most 0.1 % of the time; with the moment at which the last one ended.
 *
 * Threads: one reporter belongs to one thread. After fork, the child's calls do nothing.
 */
#ifndef WATTGOV_TRAIN_H
#define WATTGOV_TRAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wattgov/error.h"

#ifdef __cplusplus
extern "C" {
#endif

struct wg_train;

struct wg_train_opts {
    size_t size;
    const char *path;    /* of the file or socket; NULL: $WATTGOV_PROGRESS */
    unsigned rank;       /* used when has_rank */
    bool has_rank;       /* false: $RANK, $OMPI_COMM_WORLD_RANK, $SLURM_PROCID, $PMI_RANK, else 0 */
    uint64_t first_step; /* steps done before, by an earlier run that this one resumes */
    uint64_t first_epoch;
};

#define WG_TRAIN_OPTS(...)                                                                         \
    ((struct wg_train_opts){.size = sizeof(struct wg_train_opts), __VA_ARGS__})

/* Opens the reporter. Without a governor it is one that does nothing. WG_ENOENT, WG_EPERM, WG_EIO:
 * the path cannot be opened (the reporter then does nothing, and is given all the same);
 * WG_EINVAL, WG_ENOMEM: `*out` is NULL, which every other call takes for a reporter that does
 * nothing. `opts` may be NULL; no reference to its path is kept. */
WG_API enum wg_code wg_train_open(struct wg_train **out, const struct wg_train_opts *opts,
                                  struct wg_error *err);
/* Writes what is not written yet, and frees. */
WG_API void wg_train_close(struct wg_train *train);

/* Whether a governor listens. */
WG_API bool wg_train_is_active(const struct wg_train *train);

/* One more step is done. Device work that runs asynchronously need not be waited for: over many
 * steps the rate is right. */
WG_API void wg_train_step(struct wg_train *train);
WG_API void wg_train_steps(struct wg_train *train, uint64_t count);
/* One more epoch is done. */
WG_API void wg_train_epoch(struct wg_train *train);
/* The value of the target metric; `name` (at most 31 bytes without spaces, NULL: none) is copied.
 */
WG_API void wg_train_metric(struct wg_train *train, const char *name, double value);
/* The samples of one step, all ranks together. */
WG_API void wg_train_batch_size(struct wg_train *train, uint64_t count);

#ifdef __cplusplus
}
#endif

#endif
