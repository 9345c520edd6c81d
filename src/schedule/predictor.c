/* SPDX-License-Identifier: MIT
 *
 * The predictor's door: checks what is asked and told, and keeps the margin of the bound.
 *
 * The two kinds are predictor_physical.h and predictor_polythrottle.h.
 *
 * Owns: its state.    Threads: one at a time.
 */
#include "schedule/predictor.h"

#include <math.h>
#include <stdbool.h>

#include "base/alloc.h"
#include "schedule/conformal.h"
#include "schedule/predictor_physical.h"
#include "schedule/predictor_polythrottle.h"

static const double default_forgetting = 0.98;
static const double default_miss = 0.02;
static const double default_margin = 0.1;
enum { DEFAULT_WINDOW = 200, WINDOW_MAX = 65536 };

/* Squares of what is left stay far from what a double can't hold. */
static const double least_clock = 1e-3;
static const double most_rows = 1e6;
static const double least_time_s = 1e-9;
static const double most_time_s = 1e9;

/* A prediction of nothing is exceeded by any share: this one stands for all. */
static const double most_residual = 1e6;

struct wg_predictor {
    enum wg_predictor_kind kind;
    double margin;
    size_t told;
    struct wg_conformal residuals;
    union {
        struct wg_physical physical;
        struct wg_polythrottle polythrottle;
    } as;
};

/* -- Checks ---------------------------------------------------------------------------------- */

static enum wg_code check_shape(const struct wg_work_shape *shape, const char *whose,
                                struct wg_error *err)
{
    const struct {
        const char *name;
        double value;
    } fields[] = {
        {"operations_fixed", shape->operations_fixed},
        {"operations_per_row", shape->operations_per_row},
        {"bytes_fixed", shape->bytes_fixed},
        {"bytes_per_row", shape->bytes_per_row},
    };
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        if (!(fields[i].value >= 0.0 && fields[i].value <= 1e30))
            return wg__fail(err, WG_EINVAL, "predictor: %s.%s is %g, expected 0 .. 1e30", whose,
                            fields[i].name, fields[i].value);
    }
    return WG_OK;
}

static enum wg_code check_setup(const struct wg_predictor_setup *setup, struct wg_error *err)
{
    if (setup->kind != WG_PREDICTOR_PHYSICAL && setup->kind != WG_PREDICTOR_POLYTHROTTLE)
        return wg__fail(err, WG_EINVAL, "predictor: no kind %d", (int)setup->kind);
    if (setup->forgetting != 0.0 && !(setup->forgetting >= 0.5 && setup->forgetting < 1.0))
        return wg__fail(err, WG_EINVAL, "predictor: forgetting is %g, expected 0.5 to less than 1",
                        setup->forgetting);
    if (setup->miss != 0.0 && !(setup->miss > 0.0 && setup->miss <= 0.5))
        return wg__fail(err, WG_EINVAL, "predictor: miss is %g, expected more than 0 to 0.5",
                        setup->miss);
    if (setup->window > WINDOW_MAX)
        return wg__fail(err, WG_EINVAL, "predictor: window is %zu, expected 1 .. %d", setup->window,
                        WINDOW_MAX);
    if (!(setup->margin >= 0.0 && setup->margin <= most_residual))
        return wg__fail(err, WG_EINVAL, "predictor: margin is %g, expected 0 .. %g", setup->margin,
                        most_residual);
    const enum wg_code code = check_shape(&setup->inference, "inference", err);
    return code != WG_OK ? code : check_shape(&setup->finetune, "finetune", err);
}

/* The first field of a sample that can't be; NULL: none. */
static const char *bad_field(const struct wg_predictor_sample *sample, double *value_out,
                             const char **expected_out)
{
    const struct wg_predictor_point *point = &sample->point;
    const struct {
        const char *name;
        double value;
        bool is_good;
        const char *expected;
    } fields[] = {
        {"rows", point->rows, point->rows > 0.0 && point->rows <= most_rows, "more than 0 to 1e6"},
        {"gpu_clock", point->gpu_clock, point->gpu_clock >= least_clock && point->gpu_clock <= 1.0,
         "0.001 .. 1"},
        {"mem_clock", point->mem_clock, point->mem_clock >= least_clock && point->mem_clock <= 1.0,
         "0.001 .. 1"},
        {"finetune_rows", point->finetune_rows,
         point->finetune_rows >= 0.0 && point->finetune_rows <= most_rows, "0 .. 1e6"},
        {"time_s", sample->time_s, sample->time_s >= least_time_s && sample->time_s <= most_time_s,
         "1e-9 .. 1e9"},
    };
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        if (fields[i].is_good)
            continue;
        *value_out = fields[i].value;
        *expected_out = fields[i].expected;
        return fields[i].name;
    }
    return NULL;
}

static enum wg_code check_samples(const struct wg_predictor_sample *samples, size_t count,
                                  struct wg_error *err)
{
    if (count == 0)
        return wg__fail(err, WG_EINVAL, "predictor: no sample to fit");
    for (size_t i = 0; i < count; i++) {
        double value = 0.0;
        const char *expected = NULL;
        const char *name = bad_field(&samples[i], &value, &expected);
        if (name != NULL)
            return wg__fail(err, WG_EINVAL, "predictor: sample %zu: %s is %g, expected %s", i + 1,
                            name, value, expected);
    }
    return WG_OK;
}

/* -- Open and close -------------------------------------------------------------------------- */

static struct wg_predictor_setup with_defaults(const struct wg_predictor_setup *setup)
{
    struct wg_predictor_setup full = *setup;
    full.forgetting = full.forgetting > 0.0 ? full.forgetting : default_forgetting;
    full.miss = full.miss > 0.0 ? full.miss : default_miss;
    full.window = full.window > 0 ? full.window : DEFAULT_WINDOW;
    full.margin = full.margin > 0.0 ? full.margin : default_margin;
    return full;
}

enum wg_code wg__predictor_open(struct wg_predictor **out, const struct wg_predictor_setup *setup,
                                const struct wg_predictor_sample *samples, size_t count,
                                struct wg_error *err)
{
    enum wg_code code = check_setup(setup, err);
    if (code == WG_OK)
        code = check_samples(samples, count, err);
    if (code != WG_OK)
        return code;
    const struct wg_predictor_setup full = with_defaults(setup);
    struct wg_predictor *predictor = wg__alloc_zeroed(1, sizeof *predictor);
    if (predictor == NULL || !wg__conformal_init(&predictor->residuals, full.window, full.miss)) {
        wg__predictor_close(predictor);
        return wg__fail(err, WG_ENOMEM, "predictor: out of memory");
    }
    predictor->kind = full.kind;
    predictor->margin = full.margin;
    if (full.kind == WG_PREDICTOR_PHYSICAL)
        wg__physical_init(&predictor->as.physical, &full, samples, count);
    else
        wg__polythrottle_init(&predictor->as.polythrottle, &full, samples, count);
    *out = predictor;
    return WG_OK;
}

void wg__predictor_close(struct wg_predictor *predictor)
{
    if (predictor == NULL)
        return;
    wg__conformal_fini(&predictor->residuals);
    wg__free(predictor);
}

/* -- Ask and tell ---------------------------------------------------------------------------- */

/* To the nearest that can be; what isn't a number becomes `otherwise`. */
static double within(double value, double least, double most, double otherwise)
{
    if (isnan(value))
        return otherwise;
    return value < least ? least : value > most ? most : value;
}

double wg__predictor_time(const struct wg_predictor *predictor,
                          const struct wg_predictor_point *point)
{
    const struct wg_predictor_point valid = {
        .rows = within(point->rows, 0.0, most_rows, 0.0),
        .gpu_clock = within(point->gpu_clock, least_clock, 1.0, 1.0),
        .mem_clock = within(point->mem_clock, least_clock, 1.0, 1.0),
        .finetune_rows = within(point->finetune_rows, 0.0, most_rows, 0.0),
    };
    const double time_s = predictor->kind == WG_PREDICTOR_PHYSICAL
                              ? wg__physical_time(&predictor->as.physical, &valid)
                              : wg__polythrottle_time(&predictor->as.polythrottle, &valid);
    return fmax(time_s, least_time_s); /* callers divide by it */
}

double wg__predictor_margin(const struct wg_predictor *predictor)
{
    if (predictor->kind == WG_PREDICTOR_POLYTHROTTLE)
        return 0.0;
    return wg__conformal_margin(&predictor->residuals, predictor->margin);
}

void wg__predictor_tell(struct wg_predictor *predictor, const struct wg_predictor_sample *sample)
{
    double value = 0.0;
    const char *expected = NULL;
    if (predictor->kind == WG_PREDICTOR_POLYTHROTTLE ||
        bad_field(sample, &value, &expected) != NULL)
        return;
    const double predicted_s = wg__physical_time(&predictor->as.physical, &sample->point);
    const double over_s = sample->time_s - predicted_s;
    wg__conformal_tell(&predictor->residuals,
                       over_s < predicted_s * most_residual ? over_s / predicted_s : most_residual);
    wg__physical_tell(&predictor->as.physical, sample, predicted_s);
    predictor->told++;
}

size_t wg__predictor_version(const struct wg_predictor *predictor)
{
    return predictor->told;
}
