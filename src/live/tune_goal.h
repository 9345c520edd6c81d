/* SPDX-License-Identifier: MIT
 *
 * What is wanted: an objective and limits over the figures of a trial, as texts.
 *
 *     energy_per_request_j            made least
 *     p99_s<=0.1    p99_s<=100ms      a bound
 *     mean_s<=1.5x                    1.5 times what the default configuration has (measured first)
 *     other:accuracy>=0.9             KIND:, where the names do not tell it
 *
 * The kind says what physics knows of a figure: `energy` for names that end in _j or _w, `time` for
 * those in _s (but not per_s), `other`: nothing. A text is an expression (base/expression.h).
 *
 * Owns: its expressions.    Threads: pure, any thread.
 */
#ifndef WG_LIVE_TUNE_GOAL_H
#define WG_LIVE_TUNE_GOAL_H

#include <stdbool.h>
#include <stddef.h>

#include "live/workload.h"
#include "optimize/tuner.h"

struct wg_expression;

enum { WG_TUNE_TERM_SIZE = 128, WG_TUNE_LABEL_SIZE = WG_TUNE_TERM_SIZE + 40 };

struct wg_tune_term {
    char text[WG_TUNE_TERM_SIZE];   /* the expression alone: "p99_s" */
    char label[WG_TUNE_LABEL_SIZE]; /* for titles: with the bound where another term has the same
                                       expression: "p99_s <= 1.5x" */
    struct wg_expression *expression;
    enum wg_tuning_kind kind;   /* as the tuner takes it */
    enum wg_tuning_kind nature; /* of the figure, by its names or as it was said */
    bool is_kind_said;          /* "time:p99_s" */
    bool is_minimum;            /* of limits, as the rest: >= */
    bool is_relative;           /* `bound` is a factor */
    double bound;
};

struct wg_tune_goal {
    struct wg_tune_term objective;
    size_t limit_count;
    struct wg_tune_term limits[WG_TUNING_LIMITS_MAX];
};

/* WG_EINVAL: a text, and what was expected. */
enum wg_code wg__tune_goal_init(struct wg_tune_goal *out, const char *objective,
                                const char *const *limits, size_t limit_count,
                                struct wg_error *err);
void wg__tune_goal_fini(struct wg_tune_goal *goal);

/* A bound as people write it: "0.1", "100ms", "1.5x". */
struct wg_tune_bound {
    double value;     /* > 0 */
    bool is_relative; /* a factor */
    bool has_unit;    /* of time, energy or power: `value` is in SI */
    const char *end;  /* of names with such a unit: "_s", "_j", "_w"; NULL: it has none */
};
bool wg__tune_bound_parse(const char *text, struct wg_tune_bound *out);

/* Whether an expression that is one figure alone tells by its name that it is something else than
 * the bound's unit measures: "p99_s" and 5J. */
bool wg__tune_bound_clashes(const struct wg_tune_bound *bound,
                            const struct wg_expression *expression, const char *text);

/* Whether the names tell that figures are in SI: some end in _s, _j or _w, and none in _ms, _kj or
 * such. Figures of files that others made are taken for SI on no other ground. */
bool wg__tune_names_tell_si(const struct wg_expression *expression);

/* "p99<=100ms" of --slo to the limit "p99_s<=100ms". WG_EINVAL. */
enum wg_code wg__tune_slo_limit(const char *slo, char out[static WG_TUNE_TERM_SIZE],
                                struct wg_error *err);

/* At a given load latency is no service time: it falls where a larger batch, one more replica or
 * another delay serves a queue that was long. What physics knows of service times must not be
 * believed of it, so limits on time become OTHER, unless their kind was said. */
void wg__tune_goal_at_load(struct wg_tune_goal *goal);

/* Whether a value can be: finite, and above 0 unless it is of a limit of another kind than time and
 * energy (an accuracy or a share of errors may be 0). */
bool wg__tune_term_can_be(const struct wg_tune_term *term, double value);

/* Its value on the figures, and the relative standard error that follows from theirs (0: one of
 * them is not known). WG_EDATA: a figure that it needs is not there; the text lists what is. */
enum wg_code wg__tune_term_evaluate(const struct wg_tune_term *term,
                                    const struct wg_workload_sample *figures, double *value_out,
                                    double *error_out, struct wg_error *err);

/* Whether the goal uses a figure of that name. */
bool wg__tune_goal_names(const struct wg_tune_goal *goal, const char *name);

/* Takes "KIND:" off the front of an expression; without one `*kind` stays as it is. */
const char *wg__tune_kind_take(const char *text, enum wg_tuning_kind *kind);

const char *wg__tuning_kind_word(enum wg_tuning_kind kind);

#endif
