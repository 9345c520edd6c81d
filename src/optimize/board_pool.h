/* SPDX-License-Identifier: MIT
 *
 * The random boards of a space, and what they say of its configurations.
 *
 * A board over all configurations is a row of numbers. Only few boards are ever needed whole: those
 * that fit the trials. So rows are worked out when they are asked for, and kept; at the
 * configurations that were tried, all boards are worked out (a column).
 *
 * A large space is not looked at whole: the candidates are a list of configurations, a part that
 * stays and a part that each decision refreshes.
 *
 *     candidates   [ fixed: all, or a random part | fresh: near the incumbent, tried ones ... ]
 *
 * Owns: boards, rows, columns.    Threads: one at a time.
 */
#ifndef WG_OPTIMIZE_BOARD_POOL_H
#define WG_OPTIMIZE_BOARD_POOL_H

#include "optimize/board_model.h"

struct wg_board_pool;

/* Boards whose curves are kept at once. */
enum { WG_BOARD_CURVES_KEPT = 512 };

struct wg_board_curves {
    const float *log_t;
    const float *log_e;
};

/* `count` boards of the space, drawn from children of `rng`; the candidates are `fixed`, with room
 * for `fresh_most` more. WG_ENOMEM. */
enum wg_code wg__board_pool_new(struct wg_board_pool **out, const struct wg_board_axes *axes,
                                size_t count, const struct wg_rng *rng, const uint32_t *fixed,
                                size_t fixed_count, size_t fresh_most, struct wg_error *err);
void wg__board_pool_free(struct wg_board_pool *pool);

/* Adds candidates behind the fixed ones, in place of those of the last call: at most the number
 * that room was made for. */
void wg__board_pool_refresh(struct wg_board_pool *pool, const uint32_t *fresh, size_t fresh_count);

size_t wg__board_pool_count(const struct wg_board_pool *pool); /* of boards */
const struct wg_board_axes *wg__board_pool_axes(const struct wg_board_pool *pool);
const uint32_t *wg__board_pool_candidates(const struct wg_board_pool *pool, size_t *count_out);
size_t wg__board_pool_freshness(const struct wg_board_pool *pool); /* grows with each refresh */
/* Which candidate a configuration is; SIZE_MAX: none. */
size_t wg__board_pool_candidate(const struct wg_board_pool *pool, size_t configuration);

/* One board at all candidates; valid until WG_BOARD_CURVES_KEPT others were asked for, or the
 * candidates are refreshed. WG_ENOMEM. */
enum wg_code wg__board_pool_row(struct wg_board_pool *pool, size_t board,
                                struct wg_board_curves *out, struct wg_error *err);

/* All boards at one configuration. WG_ENOMEM. */
enum wg_code wg__board_pool_column(struct wg_board_pool *pool, size_t configuration,
                                   struct wg_board_curves *out, struct wg_error *err);

#endif
