/* SPDX-License-Identifier: MIT
 *
 * The published method, against its formulas written out here: the process by Gauss's elimination,
 * PF and EI in plain numbers.
 */
#include "support/check.h"
#include "support/tuner_stage.h"

#include <string.h>

#include "math/kernel.h"

enum { SEEN_MAX = 16 };

/* Solves a x = b for a small dense a, and returns log |a|. */
static double solve(double a[SEEN_MAX][SEEN_MAX], const double *b, double *x, size_t n)
{
    double m[SEEN_MAX][SEEN_MAX + 1], log_determinant = 0;

    for (size_t i = 0; i < n; i++) {
        memcpy(m[i], a[i], n * sizeof *a[i]);
        m[i][n] = b[i];
    }
    for (size_t i = 0; i < n; i++) {
        log_determinant += log(m[i][i]);
        for (size_t r = i + 1; r < n; r++) {
            const double factor = m[r][i] / m[i][i];

            for (size_t k = i; k <= n; k++)
                m[r][k] -= factor * m[i][k];
        }
    }
    for (size_t i = n; i-- > 0;) {
        x[i] = m[i][n];
        for (size_t k = i + 1; k < n; k++)
            x[i] -= m[i][k] * x[k];
        x[i] /= m[i][i];
    }
    return log_determinant;
}

struct process {
    size_t n;
    double x[SEEN_MAX], y[SEEN_MAX], mean, sd, length;
    double k[SEEN_MAX][SEEN_MAX];
};

static double covariances(struct process *process, double length)
{
    double weights[SEEN_MAX], likelihood = 0;

    process->length = length;
    for (size_t i = 0; i < process->n; i++)
        for (size_t j = 0; j < process->n; j++)
            process->k[i][j] =
                wg__matern52(fabs(process->x[i] - process->x[j]) / length) + (i == j ? 1e-6 : 0);
    likelihood -= solve(process->k, process->y, weights, process->n) / 2;
    for (size_t i = 0; i < process->n; i++)
        likelihood -= process->y[i] * weights[i] / 2;
    return likelihood;
}

static void make_process(struct process *process)
{
    double mean = 0, squares = 0, best = 0, best_likelihood = -1e300;

    for (size_t i = 0; i < process->n; i++)
        mean += process->y[i] / (double)process->n;
    for (size_t i = 0; i < process->n; i++)
        squares += (process->y[i] - mean) * (process->y[i] - mean) / (double)process->n;
    process->mean = mean;
    process->sd = sqrt(squares);
    for (size_t i = 0; i < process->n; i++)
        process->y[i] = (process->y[i] - mean) / process->sd;
    for (int i = 0; i < 14; i++) {
        const double likelihood = covariances(process, 0.05 * pow(1.4, i));

        if (likelihood > best_likelihood) {
            best_likelihood = likelihood;
            best = process->length;
        }
    }
    (void)covariances(process, best);
}

static void predict(struct process *process, double x, double *mean, double *sd)
{
    double k[SEEN_MAX] = {0}, solved[SEEN_MAX], m = 0, v = 1;

    for (size_t i = 0; i < process->n; i++)
        k[i] = wg__matern52(fabs(x - process->x[i]) / process->length);
    (void)solve(process->k, process->y, solved, process->n);
    for (size_t i = 0; i < process->n; i++)
        m += k[i] * solved[i];
    (void)solve(process->k, k, solved, process->n);
    for (size_t i = 0; i < process->n; i++)
        v -= k[i] * solved[i];
    *mean = process->mean + process->sd * m;
    *sd = process->sd * sqrt(v);
}

/* PF(x) EI(x), or PF alone, at each level of the one knob; the largest of the untried ones. */
static size_t expected_next(const struct wg_trial *trials, size_t n, double bound, double xi,
                            double *score_out)
{
    struct process energy = {.n = n}, time = {.n = n};
    double incumbent = 1e300;
    bool is_tried[TUNING_CLOCKS] = {false};
    size_t best = 0;

    for (size_t i = 0; i < n; i++) {
        energy.x[i] = time.x[i] = (double)trials[i].configuration / (TUNING_CLOCKS - 1);
        energy.y[i] = trials[i].objective;
        time.y[i] = trials[i].figures[0];
        is_tried[trials[i].configuration] = true;
        if (trials[i].figures[0] <= bound)
            incumbent = fmin(incumbent, trials[i].objective);
    }
    make_process(&energy);
    make_process(&time);
    *score_out = -1;
    for (size_t c = 0; c < TUNING_CLOCKS; c++) {
        double m, s, mt, st;

        predict(&energy, (double)c / (TUNING_CLOCKS - 1), &m, &s);
        predict(&time, (double)c / (TUNING_CLOCKS - 1), &mt, &st);
        const double u = (incumbent - m - xi) / s;
        const double ei = s * (u * wg__normal_cdf(u) + wg__normal_pdf(u));
        const double score = wg__normal_cdf((bound - mt) / st) * (incumbent < 1e300 ? ei : 1);

        if (is_tried[c] || score <= *score_out)
            continue;
        *score_out = score;
        best = c;
    }
    return best;
}

static void follow(double bound, double xi, uint64_t seed, size_t *blind_out)
{
    struct wg_tuning_space *space = tuning_space(1);
    struct wg_tuner_config config = tuning_config(space, WG_TUNER_POLYTHROTTLE, bound);
    struct wg_trial trials[TUNING_CLOCKS];

    config.never_stops = true;
    config.seed = seed;
    config.xi = xi;
    config.default_objective = 4;
    struct wg_tuner *tuner = tuning_tuner(&config);
    for (size_t n = 0; n < TUNING_CLOCKS; n++) {
        const struct wg_tuner_question question = tuning_ask(tuner);
        double score;

        assert_int_equal(question.kind, WG_TUNER_MEASURE);
        *blind_out += question.reason == WG_TUNER_START;
        if (n >= 5) {
            const size_t next = expected_next(trials, n, bound, 4 * (isnan(xi) ? 0.1 : xi), &score);
            if (score > 1e-9) /* below the elimination here has no digits left */
                assert_int_equal(question.configuration, next);
        }
        trials[n] = tuning_trial(space, question.configuration, 0, NULL);
        tuning_tell(tuner, &trials[n]);
    }
    wg__tuner_free(tuner);
    wg__tuning_space_free(space);
}

static void asks_for_the_largest_product_of_feasibility_and_improvement(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        size_t blind = 0;

        follow(0.08, (double)NAN, seed, &blind);
        follow(0.08, 0, seed, &blind);
        follow(0.3, 0.02, seed, &blind);
        follow(0.01, (double)NAN, seed, &blind); /* nothing is within this */
        assert_int_equal(blind, 4 * 5);
    }
}

static void returns_the_cheapest_measurement_within_the_limit(void **state)
{
    struct wg_tuning_space *space = tuning_space(2);
    const struct wg_tuner_config config = tuning_config(space, WG_TUNER_POLYTHROTTLE, 0.12);
    struct wg_tuner *tuner = tuning_tuner(&config);
    double best = 1e300;
    size_t where = space->count, n = 0;
    struct wg_tuner_question question;

    (void)state;
    while (question = tuning_ask(tuner), question.kind == WG_TUNER_MEASURE) {
        const struct wg_trial trial = tuning_trial(space, question.configuration, 0, NULL);

        if (trial.figures[0] <= 0.12 && trial.objective < best) {
            best = trial.objective;
            where = question.configuration;
        }
        tuning_tell(tuner, &trial);
        n++;
    }
    const struct wg_tuner_result result = tuning_result(tuner);
    assert_int_equal(question.end, WG_TUNER_CONVERGED);
    assert_in_range(n, 6, 29);
    assert_int_equal(result.configuration, where);
    assert_true(result.is_feasible);
    assert_false(result.is_validated);
    assert_true(result.expected_saving < 0.003);
    check_close(result.forecast.objective, best, 1e-3); /* it goes through its data */
    wg__tuner_free(tuner);
    wg__tuning_space_free(space);
}

/* Two clocks: the CPU's alone while the GPU's stays at its default, then the GPU's at the level
 * found. */
static void tunes_the_cpu_clock_apart_and_first(void **state)
{
    static const double levels[] = {1, 2, 3, 4, 5, 6, 7};
    static const struct wg_tuning_knob knobs[] = {
        {"gpu", WG_TUNING_GPU_CLOCK, levels, NULL, 7, 6, 0},
        {"cpu", WG_TUNING_CPU_CLOCK, levels, NULL, 7, 6, 0},
    };
    struct wg_tuning_space *space = NULL;
    size_t second_phase = 0;

    (void)state;
    assert_int_equal(wg__tuning_space_box(&space, knobs, 2, NULL, NULL, NULL), WG_OK);
    struct wg_tuner_config config = tuning_config(space, WG_TUNER_POLYTHROTTLE, 100);
    config.never_stops = config.cpu_apart = true;
    struct wg_tuner *tuner = tuning_tuner(&config);
    struct wg_tuner_question question;
    for (size_t n = 0; question = tuning_ask(tuner), question.kind == WG_TUNER_MEASURE; n++) {
        const size_t gpu = wg__tuning_level(space, question.configuration, 0);
        const size_t cpu = wg__tuning_level(space, question.configuration, 1);
        /* least at the CPU's third level, and the GPU's fifth */
        const struct wg_trial trial = {.configuration = question.configuration,
                                       .objective =
                                           10 + pow((double)cpu - 2, 2) + pow((double)gpu - 4, 2),
                                       .figures = {1}};

        if (n < 6)
            assert_int_equal(gpu, 6);
        if (gpu != 6) {
            assert_int_equal(cpu, 2);
            second_phase++;
        }
        tuning_tell(tuner, &trial);
    }
    assert_int_equal(question.end, WG_TUNER_EXHAUSTED);
    assert_int_equal(second_phase, 6); /* and one was measured on the line */
    assert_int_equal(wg__tuning_level(space, tuning_result(tuner).configuration, 0), 4);
    wg__tuner_free(tuner);
    wg__tuning_space_free(space);
}

static void every_failing_allocation_is_reported_and_the_next_call_goes_on(void **state)
{
    (void)state;
    tuning_check_allocations(WG_TUNER_POLYTHROTTLE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(asks_for_the_largest_product_of_feasibility_and_improvement),
        cmocka_unit_test(returns_the_cheapest_measurement_within_the_limit),
        cmocka_unit_test(tunes_the_cpu_clock_apart_and_first),
        cmocka_unit_test(every_failing_allocation_is_reported_and_the_next_call_goes_on),
    };
    return run_tests(tests);
}
