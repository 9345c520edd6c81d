/* SPDX-License-Identifier: MIT
 *
 * What a case costs: per epoch, and in expectation per recurrence.
 *
 * For a fixed arm and limit the attempts of a recurrence are independent draws of a recorded run:
 * it reaches the target with probability q after its epochs, or is paid for max_epochs and
 * repeated. By Wald's identity the expected epochs paid per recurrence are mean(epochs paid per
 * attempt) / q, so the oracle and the default need no simulation.
 *
 * Threads: pure, any thread.
 */
#include "simulate/training.h"

#include <math.h>

static double expected_epochs(const struct wg_training_arm *arm, unsigned max_epochs)
{
    double paid = 0;
    size_t reached = 0;
    for (size_t i = 0; i < arm->run_count; i++) {
        const unsigned epoch = arm->runs[i].target_epoch;
        const bool ok = epoch > 0 && epoch <= max_epochs;
        paid += ok ? epoch : max_epochs;
        reached += ok;
    }
    return reached ? paid / (double)reached : (double)INFINITY;
}

void wg__training_costs(const struct wg_training_case *training_case, double eta,
                        struct wg_training_costs *out)
{
    double least = INFINITY;
    *out = (struct wg_training_costs){0};
    for (size_t a = 0; a < training_case->arm_count; a++) {
        const struct wg_training_arm *arm = &training_case->arms[a];
        double *cost_j = out->epoch_cost_j[a];
        /* From the largest limit down, so that a tie goes to the faster setting, as in Zeus. */
        out->best_limit[a] = training_case->limit_count - 1;
        for (size_t l = training_case->limit_count; l-- > 0;) {
            const double price_w = eta * arm->power_w[l] + (1 - eta) * training_case->max_power_w;
            cost_j[l] = price_w * arm->epoch_time_s[l];
            if (cost_j[l] < cost_j[out->best_limit[a]])
                out->best_limit[a] = l;
            const double share = 1.0 / (double)training_case->limit_count;
            out->first_epoch_energy_j[a] += share * arm->power_w[l] * arm->epoch_time_s[l];
            out->first_epoch_time_s[a] += share * arm->epoch_time_s[l];
        }
        out->expected_epochs[a] = expected_epochs(arm, training_case->max_epochs);
        const double cost = cost_j[out->best_limit[a]] * out->expected_epochs[a];
        if (cost < least) {
            least = cost;
            out->oracle_arm = a;
            out->oracle_limit = out->best_limit[a];
        }
    }
}

struct wg_training_bill wg__training_expected(const struct wg_training_case *training_case,
                                              const struct wg_training_costs *costs, double eta,
                                              size_t arm, size_t limit)
{
    const struct wg_training_arm *it = &training_case->arms[arm];
    const double time_s = it->epoch_time_s[limit] * costs->expected_epochs[arm];
    const double energy_j = it->power_w[limit] * time_s;
    return (struct wg_training_bill){
        .energy_j = energy_j,
        .time_s = time_s,
        .cost_j = eta * energy_j + (1 - eta) * training_case->max_power_w * time_s,
    };
}

struct wg_training_bill wg__training_default(const struct wg_training_case *training_case,
                                             const struct wg_training_costs *costs, double eta)
{
    const size_t arm = training_case->default_arm, top = training_case->limit_count - 1;
    if (isfinite(costs->expected_epochs[arm]))
        return wg__training_expected(training_case, costs, eta, arm, top);
    const struct wg_training_arm *it = &training_case->arms[arm];
    struct wg_training_bill bill =
        wg__training_expected(training_case, costs, eta, costs->oracle_arm, costs->oracle_limit);
    const double epochs = (double)WG_ATTEMPTS_MAX * training_case->max_epochs;
    const double time_s = epochs * it->epoch_time_s[top];
    bill.time_s += time_s;
    bill.energy_j += time_s * it->power_w[top];
    bill.cost_j += epochs * costs->epoch_cost_j[arm][top];
    return bill;
}
