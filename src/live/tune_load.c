/* SPDX-License-Identifier: MIT
 *
 * The load model over measured windows; see tune_load.h.
 */
#include "live/tune_load.h"

#include <math.h>
#include <string.h>

#include "live/workload_figures.h"
#include "schedule/load_model.h"

enum { REQUESTS = 200000 };

enum wg_code wg__tune_load_point(const struct wg_workload_sample *sample, double batch,
                                 unsigned replicas, double energy_j, double idle_w,
                                 struct wg_tune_load_point *out, struct wg_error *err)
{
    const double side_by_side = replicas > 0 ? replicas : 1;
    double service_s = wg__workload_figure_value(sample, "service_s");
    if (!(service_s > 0) && sample->requests > 0)
        service_s = batch * side_by_side * sample->time_s / sample->requests;
    if (!(service_s > 0))
        return wg__fail(err, WG_EDATA,
                        "the load model needs the time of a batch: the workload tells neither "
                        "service_s nor requests");
    double busy_s = wg__workload_figure_value(sample, "busy_s");
    if (!(busy_s > 0 && busy_s <= sample->time_s))
        busy_s = sample->time_s;
    const double idle_j = isfinite(idle_w) ? idle_w * (sample->time_s - busy_s) : 0;
    *out = (struct wg_tune_load_point){
        .batch = batch, .service_s = service_s, .busy_w = fmax(0, energy_j - idle_j) / busy_s};
    return WG_OK;
}

static void fill(const struct wg_tune_load *load, const struct wg_tune_load_point *points,
                 size_t count, struct wg_load_server *server)
{
    *server = (struct wg_load_server){.point_count = count,
                                      .idle_power_w = load->idle_w,
                                      .max_batch = (unsigned)lround(points[count - 1].batch),
                                      .replicas = load->replicas > 0 ? load->replicas : 1,
                                      .delay_s = load->delay_s};
    for (size_t i = 0; i < count; i++) {
        server->batch[i] = points[i].batch;
        /* More in a batch takes no less time: what says otherwise is noise. */
        server->service_s[i] =
            i > 0 ? fmax(points[i].service_s, server->service_s[i - 1]) : points[i].service_s;
        server->busy_power_w[i] = fmax(points[i].busy_w, load->idle_w);
    }
}

static bool put_all(struct wg_workload_sample *sample, struct wg_workload_sample *drawn,
                    const struct wg_load_result *result)
{
    static const double exact = 1e-9;
    const struct {
        const char *name;
        double value, error;
    } figures[] = {{"mean_s", result->mean_s, result->mean_error},
                   {"p50_s", result->p50_s, result->p50_error},
                   {"p90_s", result->p90_s, result->p90_error},
                   {"p95_s", result->p95_s, result->p95_error},
                   {"p99_s", result->p99_s, result->p99_error},
                   {"p999_s", result->p999_s, result->p999_error},
                   {"energy_per_request_j", result->energy_per_request_j, 0},
                   {"utilization", result->utilization, 0},
                   {"batch_mean", result->mean_batch, 0}};
    bool fits = true;
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
        fits = fits && wg__workload_figure_put(sample, figures[i].name, figures[i].value);
    if (!fits || drawn == NULL)
        return fits;
    *drawn = *sample;
    for (size_t k = 0; k < drawn->figure_count; k++)
        drawn->figures[k].error = exact;
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
        for (size_t k = 0; k < drawn->figure_count; k++)
            if (strcmp(drawn->figures[k].name, figures[i].name) == 0)
                drawn->figures[k].error = fmax(exact, figures[i].error);
    return true;
}

enum wg_code wg__tune_load_apply(const struct wg_tune_load *load,
                                 const struct wg_tune_load_point *points, size_t count,
                                 struct wg_workload_sample *sample,
                                 struct wg_workload_sample *drawn_out, bool *is_stable_out,
                                 struct wg_error *err)
{
    struct wg_load_server server;
    struct wg_load_result result;
    struct wg_arrivals *arrivals = NULL;
    struct wg_rng root;
    fill(load, points, count, &server);
    wg__rng_init(&root, load->seed);
    const struct wg_rng of_arrivals = wg__rng_split(&root, 1);
    struct wg_rng of_service = wg__rng_split(&root, 2);
    enum wg_code code = wg__arrivals_open(&arrivals, load->arrivals, &of_arrivals, err);
    if (code != WG_OK)
        return code;
    code = wg__load_simulate(&server, arrivals, load->requests > 0 ? load->requests : REQUESTS,
                             &of_service, &result, err);
    wg__arrivals_close(arrivals);
    if (code != WG_OK)
        return code;
    *is_stable_out = result.is_stable;
    return put_all(sample, drawn_out, &result)
               ? WG_OK
               : wg__fail(err, WG_EDATA, "more than %d figures", WG_WORKLOAD_FIGURES_MAX);
}
