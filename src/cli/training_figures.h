/* SPDX-License-Identifier: MIT
 *
 * The charts of the training report, each made from a study.
 *
 * Colours are fixed, so that a policy looks the same in each figure: wattgov blue, zeus orange,
 * grid purple, the default vermilion, the oracle green. Default and oracle are drawn as expected,
 * without luck.
 *
 * Owns: nothing; scratch memory comes from the caller's arena.    Threads: one at a time.
 */
#ifndef WG_CLI_TRAINING_FIGURES_H
#define WG_CLI_TRAINING_FIGURES_H

#include <stdbool.h>
#include <stddef.h>

struct wg_arena;
struct wg_page;
struct wg_study;
struct wg_study_case;

/* Whether a policy decides, as the yardsticks default and oracle do not. */
bool wg__policy_decides(const char *policy);

/* The case of a world under the policy of a summary, both by their index. */
const struct wg_study_case *wg__study_case_at(const struct wg_study *study, size_t world,
                                              size_t policy);

/* Excess over the oracle against recurrences: the mean over all cases, and one small chart per
 * case. `with_floor`: beside what the best policy would pay that knows nothing but the default;
 * not for jobs that drift, where there is no such bound. */
void wg__figure_mean_excess(struct wg_page *page, const struct wg_study *study, bool with_floor,
                            struct wg_arena *scratch);
void wg__figures_excess(struct wg_page *page, const struct wg_study *study, const char *gpu,
                        struct wg_arena *scratch);

/* The figures of one world: cumulative cost, energy-time front, choices of each policy. */
void wg__figures_world(struct wg_page *page, const struct wg_study *study, size_t world,
                       struct wg_arena *scratch);

#endif
