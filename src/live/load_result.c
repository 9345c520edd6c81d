/* SPDX-License-Identifier: MIT
 *
 * What a window under load felt like.
 *
 * Owns: see the header.    Threads: pure, one at a time.
 */
#include "live/load_result.h"

#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/number.h"

void wg__load_result_init(struct wg_load_result *result)
{
    *result = (struct wg_load_result){.outcome = WG_WORKLOAD_OK};
    wg__load_window_init(&result->latency);
    wg__load_window_init(&result->lag);
    wg__load_window_init(&result->ttft);
    wg__load_window_init(&result->tpot);
}

void wg__load_result_fini(struct wg_load_result *result)
{
    wg__load_window_fini(&result->latency);
    wg__load_window_fini(&result->lag);
    wg__load_window_fini(&result->ttft);
    wg__load_window_fini(&result->tpot);
}

void wg__load_result_clear(struct wg_load_result *result)
{
    wg__load_window_clear(&result->latency);
    wg__load_window_clear(&result->lag);
    wg__load_window_clear(&result->ttft);
    wg__load_window_clear(&result->tpot);
    result->outcome = WG_WORKLOAD_OK;
    result->why[0] = '\0';
    result->time_s = result->tokens = 0;
    result->answered = result->errors = result->unanswered = result->peak = 0;
}

/* "p999_s" and "p99.9_s" are 0.999, "mean_s" 0; NAN: none. */
static double share_named(const char *name)
{
    const size_t length = strlen(name);
    char digits[16];
    double percent = NAN;
    if (strcmp(name, "mean_s") == 0)
        return 0;
    if (strcmp(name, "p999_s") == 0)
        return 0.999;
    if (length < 4 || length - 3 >= sizeof digits || name[0] != 'p' ||
        strcmp(name + length - 2, "_s") != 0)
        return NAN;
    memcpy(digits, name + 1, length - 3);
    digits[length - 3] = '\0';
    if (!wg__parse_double(digits, &percent) || percent <= 0 || percent >= 100)
        return NAN;
    return percent / 100;
}

double wg__load_latency(struct wg_load_result *result, const char *name,
                        struct wg_load_window **window)
{
    *window = &result->latency;
    if (strncmp(name, "ttft_", 5) == 0)
        *window = &result->ttft;
    else if (strncmp(name, "tpot_", 5) == 0)
        *window = &result->tpot;
    return share_named(*window == &result->latency ? name : name + 5);
}

bool wg__load_figure(struct wg_load_result *result, const char *name, struct wg_load_estimate *out)
{
    const bool is_tokens = strcmp(name, "output_tokens_per_s") == 0;
    if (is_tokens || strcmp(name, "requests_per_s") == 0) {
        const double count = is_tokens ? result->tokens : (double)result->answered;
        const double error =
            result->answered > 0 ? 1 / sqrt((double)result->answered) : (double)INFINITY;
        *out = (struct wg_load_estimate){
            .value = result->time_s > 0 ? count / result->time_s : (double)NAN,
            /* As much as N/latency varies, and no more than a Poisson count. */
            .error = fmin(error, wg__load_window_mean(&result->latency).error),
        };
        return true;
    }
    struct wg_load_window *window = NULL;
    const double share = wg__load_latency(result, name, &window);
    if (isnan(share))
        return false;
    *out = share > 0 ? wg__load_window_percentile(window, share) : wg__load_window_mean(window);
    return true;
}

bool wg__is_out_of_memory(const char *text)
{
    static const char *const signs[] = {
        "out of memory",
        "out-of-memory",
        "OutOfMemory",
        "CUDA_ERROR_OUT_OF_MEMORY",
        "bad_alloc",
        "failed to allocate",
        "cannot allocate",
        "ENOMEM",
        "memory exhausted",
        "cudaErrorMemoryAllocation",
        "not enough memory",
        "insufficient memory",
        "OOM",
    };
    for (size_t i = 0; i < sizeof signs / sizeof signs[0]; i++) {
        const size_t length = strlen(signs[i]);
        for (const char *at = text; *at != '\0'; at++) {
            /* Short capital words only as they are: "room" is no OOM. */
            const bool is_it = length <= 6 ? strncmp(at, signs[i], length) == 0
                                           : strncasecmp(at, signs[i], length) == 0;
            if (is_it)
                return true;
        }
    }
    return false;
}
