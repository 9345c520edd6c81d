/* SPDX-License-Identifier: MIT
 *
 * The load generator: one loop that sends what is due, waits, and judges.
 *
 * Several times a second it looks up: did somebody ask to stop, has the server died or hung, is the
 * window precise enough or hopeless? Looking at percentiles sorts all latencies, so it is done when
 * a tenth more have come.
 *
 * Owns: attempts.    Threads: one at a time.
 */
#include "live/load_generator.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <sys/prctl.h>

#include "base/alloc.h"
#include "base/clock.h"

enum {
    LOOK_NS = 20000000,   /* between two looks */
    ERRORS_IN_A_ROW = 20, /* and twice what is under way: the server is taken for dead */
    REFUSED_IN_A_ROW = 3
};
static const double RAMP_SHARE = 0.2, RAMP_MIN_S = 0.05, RAMP_MAX_S = 2;
/* A window is not cut before a share of its least length, and with more than three standard errors,
 * for it is looked at again and again. */
static const double CUT_SHARE = 0.25, CUT_Z = 3.1;
enum { CUT_MIN_LATENCIES = 20 };

struct wg_load_generator {
    struct wg_load_config config;
    struct wg_load_attempt *attempts;
    size_t *free; /* a stack of indices */
    size_t free_count;
    double next_s;      /* the next arrival, in the stream's time */
    uint64_t origin_ns; /* when the stream's time 0 is */
    /* Of the present run: */
    const struct wg_workload_plan *plan;
    struct wg_load_result *result;
    uint64_t begin_ns, end_ns; /* of the window; 0: not yet */
    uint64_t progress_ns;      /* the last sign of life */
    size_t seen;               /* answers since the run began */
    size_t errors_in_a_row, refused_in_a_row;
    size_t waited_for; /* attempts under way that are counted */
    size_t checked;    /* latencies at the last look at percentiles */
    bool all_timed_out;
    bool is_dead; /* the outcome is set */
    char last_why[WG_WORKLOAD_WHY_SIZE];
    enum wg_code code; /* our own failure, met within a call */
    struct wg_error err;
};

/* -- Opening ---------------------------------------------------------------------------------- */

enum wg_code wg__load_generator_open(struct wg_load_generator **out,
                                     const struct wg_load_config *config, struct wg_error *err)
{
    assert(config->outstanding >= 1 && config->timeout_s > 0);
    struct wg_load_generator *generator = wg__alloc_zeroed(1, sizeof *generator);
    if (generator == NULL)
        return wg__fail(err, WG_ENOMEM, "a load generator: out of memory");
    generator->config = *config;
    generator->attempts = wg__alloc_zeroed(config->outstanding, sizeof *generator->attempts);
    generator->free = wg__alloc_zeroed(config->outstanding, sizeof *generator->free);
    if (generator->attempts == NULL || generator->free == NULL) {
        wg__load_generator_close(generator);
        return wg__fail(err, WG_ENOMEM, "a load of %zu requests: out of memory",
                        config->outstanding);
    }
    for (size_t i = config->outstanding; i-- > 0;) {
        generator->attempts[i].index = i;
        generator->attempts[i].generator = generator;
        generator->free[generator->free_count++] = i;
    }
    if (config->arrivals != NULL)
        generator->next_s = wg__arrivals_next(config->arrivals);
    *out = generator;
    return WG_OK;
}

void wg__load_generator_close(struct wg_load_generator *generator)
{
    if (generator == NULL)
        return;
    wg__free(generator->attempts);
    wg__free(generator->free);
    wg__free(generator);
}

void wg__load_generator_restart(struct wg_load_generator *generator, double from_s)
{
    do {
        generator->next_s = wg__arrivals_next(generator->config.arrivals);
    } while (generator->next_s < from_s);
}

/* -- Answers ---------------------------------------------------------------------------------- */

static void fail_ours(struct wg_load_generator *generator, enum wg_code code)
{
    if (generator->code == WG_OK)
        generator->code = code;
}

static void die(struct wg_load_generator *generator, enum wg_workload_outcome outcome,
                const char *why)
{
    if (generator->is_dead)
        return;
    generator->is_dead = true;
    generator->result->outcome = outcome;
    (void)snprintf(generator->result->why, sizeof generator->result->why, "%s", why);
}

static double seconds(uint64_t from_ns, uint64_t to_ns)
{
    return to_ns > from_ns ? (double)(to_ns - from_ns) * 1e-9 : 0;
}

static void add(struct wg_load_generator *generator, struct wg_load_window *window, double value)
{
    const enum wg_code code = wg__load_window_add(window, value, &generator->err);
    if (code != WG_OK)
        fail_ours(generator, code);
}

static bool is_within(const struct wg_load_generator *generator, uint64_t moment_ns)
{
    return generator->begin_ns != 0 && moment_ns >= generator->begin_ns &&
           (generator->end_ns == 0 || moment_ns <= generator->end_ns);
}

static void take_good(struct wg_load_generator *generator, const struct wg_load_attempt *attempt,
                      uint64_t now_ns)
{
    struct wg_load_result *result = generator->result;
    generator->errors_in_a_row = generator->refused_in_a_row = 0;
    generator->all_timed_out = true;
    if (is_within(generator, now_ns)) {
        result->answered++;
        result->tokens += (double)attempt->tokens;
    }
    if (!attempt->is_counted)
        return;
    add(generator, &result->latency, seconds(attempt->intended_ns, now_ns));
    if (generator->config.arrivals != NULL)
        add(generator, &result->lag, seconds(attempt->intended_ns, attempt->sent_ns));
    if (attempt->first_ns != 0)
        add(generator, &result->ttft, seconds(attempt->intended_ns, attempt->first_ns));
    if (attempt->first_ns != 0 && attempt->tokens > 1)
        add(generator, &result->tpot,
            seconds(attempt->first_ns, attempt->last_ns) / (double)(attempt->tokens - 1));
}

static void take_bad(struct wg_load_generator *generator, enum wg_http_end end, bool is_memory,
                     const char *why, uint64_t now_ns)
{
    if (is_within(generator, now_ns))
        generator->result->errors++;
    (void)snprintf(generator->last_why, sizeof generator->last_why, "%s", why);
    generator->errors_in_a_row++;
    generator->refused_in_a_row = end == WG_HTTP_REFUSED ? generator->refused_in_a_row + 1 : 0;
    generator->all_timed_out = generator->all_timed_out && end == WG_HTTP_TIMED_OUT;
    if (is_memory)
        die(generator, WG_WORKLOAD_OUT_OF_MEMORY, why);
    else if (generator->refused_in_a_row >= REFUSED_IN_A_ROW)
        die(generator, WG_WORKLOAD_CRASHED, why);
    const size_t under_way = wg__http_busy(generator->config.client);
    if (generator->errors_in_a_row >= ERRORS_IN_A_ROW + 2 * under_way)
        die(generator, generator->all_timed_out ? WG_WORKLOAD_HUNG : WG_WORKLOAD_CRASHED, why);
}

static void on_done(void *context, const struct wg_http_answer *answer)
{
    struct wg_load_attempt *attempt = context;
    struct wg_load_generator *generator = attempt->generator;
    struct wg_load_target *target = generator->config.target;
    char why[WG_WORKLOAD_WHY_SIZE] = "";
    attempt->is_sent = false;
    generator->free[generator->free_count++] = attempt->index;
    if (attempt->is_counted)
        generator->waited_for--;
    if (answer->end == WG_HTTP_CANCELLED)
        return;
    if (answer->end == WG_HTTP_NO_MEMORY) {
        fail_ours(generator, wg__fail(&generator->err, WG_ENOMEM, "an answer: out of memory"));
        return;
    }
    generator->seen++;
    enum wg_http_end end = answer->end;
    enum wg_load_verdict verdict = WG_LOAD_BAD;
    if (end == WG_HTTP_ANSWERED)
        verdict = target->ops->judge(target, attempt, answer, why);
    else
        (void)snprintf(why, sizeof why, "%s", answer->why);
    if (verdict == WG_LOAD_LATE)
        end = WG_HTTP_TIMED_OUT;
    if (end != WG_HTTP_TIMED_OUT && end != WG_HTTP_REFUSED)
        generator->progress_ns = answer->ended_ns;
    if (verdict == WG_LOAD_GOOD)
        take_good(generator, attempt, answer->ended_ns);
    else
        take_bad(generator, end, verdict == WG_LOAD_OUT_OF_MEMORY, why, answer->ended_ns);
}

static void on_data(void *context, const char *bytes, size_t length)
{
    struct wg_load_attempt *attempt = context;
    struct wg_load_generator *generator = attempt->generator;
    generator->progress_ns = wg__clock_ns();
    generator->config.target->ops->piece(generator->config.target, attempt, bytes, length);
}

/* -- Sending ---------------------------------------------------------------------------------- */

static void send(struct wg_load_generator *generator, uint64_t intended_ns)
{
    struct wg_load_attempt *attempt =
        &generator->attempts[generator->free[generator->free_count - 1]];
    struct wg_load_target *target = generator->config.target;
    const uint64_t now_ns = wg__clock_ns();
    attempt->intended_ns = intended_ns;
    attempt->sent_ns = now_ns;
    attempt->first_ns = attempt->last_ns = attempt->tokens = 0;
    attempt->is_counted = is_within(generator, intended_ns);
    struct wg_http_request request = {.url = NULL};
    target->ops->begin(target, attempt, &request);
    request.timeout_s = generator->config.timeout_s;
    request.on_data = target->ops->piece != NULL ? on_data : NULL;
    request.on_done = on_done;
    request.context = attempt;
    const enum wg_code code = wg__http_start(generator->config.client, &request, &generator->err);
    if (code != WG_OK) {
        fail_ours(generator, code);
        return;
    }
    if (generator->free_count == generator->config.outstanding) /* the first one: the clock of
                                                                   patience starts */
        generator->progress_ns = now_ns;
    attempt->is_sent = true;
    generator->waited_for += attempt->is_counted;
    generator->free_count--;
    const size_t under_way = generator->config.outstanding - generator->free_count;
    if (under_way > generator->result->peak)
        generator->result->peak = under_way;
}

static uint64_t next_ns(const struct wg_load_generator *generator)
{
    return generator->origin_ns + (uint64_t)(generator->next_s * 1e9);
}

/* Sends all that is due; how long to sleep then at most. */
static uint64_t send_due(struct wg_load_generator *generator)
{
    while (generator->free_count > 0 && generator->code == WG_OK && !generator->is_dead) {
        const uint64_t now_ns = wg__clock_ns();
        if (generator->config.arrivals == NULL) {
            send(generator, now_ns);
            continue;
        }
        const uint64_t intended_ns = next_ns(generator);
        if (intended_ns > now_ns)
            return intended_ns;
        send(generator, intended_ns);
        generator->next_s = wg__arrivals_next(generator->config.arrivals);
    }
    return UINT64_MAX;
}

/* -- Looking up ------------------------------------------------------------------------------- */

static size_t count_late(const struct wg_load_generator *generator, uint64_t now_ns, double limit_s)
{
    size_t late = 0;
    for (size_t i = 0; i < generator->config.outstanding; i++) {
        const struct wg_load_attempt *attempt = &generator->attempts[i];
        late += attempt->is_sent && attempt->is_counted &&
                seconds(attempt->intended_ns, now_ns) > limit_s;
    }
    return late;
}

static bool is_hopeless(struct wg_load_generator *generator, uint64_t now_ns)
{
    const struct wg_workload_plan *plan = generator->plan;
    if (plan->cut_name == NULL || seconds(generator->begin_ns, now_ns) < CUT_SHARE * plan->min_s)
        return false;
    struct wg_load_window *window = NULL;
    const double share = wg__load_latency(generator->result, plan->cut_name, &window);
    if (isnan(share))
        return false;
    /* Requests under way are latencies to be, of the whole answer only. */
    const size_t late = window == &generator->result->latency && share > 0
                            ? count_late(generator, now_ns, plan->cut_above)
                            : 0;
    if (window->count + late < CUT_MIN_LATENCIES)
        return false;
    return share > 0 ? wg__load_window_is_above(window, share, plan->cut_above, late, CUT_Z)
                     : wg__load_window_mean_is_above(window, plan->cut_above, CUT_Z);
}

static bool is_precise(struct wg_load_generator *generator, uint64_t now_ns)
{
    const struct wg_workload_plan *plan = generator->plan;
    const size_t count = generator->result->latency.count;
    if (!(plan->relative_error > 0) || plan->precise == NULL || count == 0 ||
        count < generator->checked + generator->checked / 10)
        return false;
    generator->checked = count;
    generator->result->time_s = seconds(generator->begin_ns, now_ns);
    for (size_t i = 0; plan->precise[i] != NULL; i++) {
        struct wg_load_estimate estimate;
        if (wg__load_figure(generator->result, plan->precise[i], &estimate) &&
            !(estimate.error <= plan->relative_error))
            return false;
    }
    return true;
}

/* Interrupted, hung: what ends a run at any moment. */
static void look_for_trouble(struct wg_load_generator *generator, uint64_t now_ns)
{
    const struct wg_workload_plan *plan = generator->plan;
    if (plan->should_stop != NULL && plan->should_stop(plan->context)) {
        die(generator, WG_WORKLOAD_INTERRUPTED, "interrupted");
        return;
    }
    const size_t under_way = generator->config.outstanding - generator->free_count;
    if (plan->hung_s > 0 && under_way > 0 &&
        seconds(generator->progress_ns, now_ns) > plan->hung_s) {
        char why[WG_WORKLOAD_WHY_SIZE];
        (void)snprintf(why, sizeof why, "no answer for %.3g s to %zu requests", plan->hung_s,
                       under_way);
        die(generator, WG_WORKLOAD_HUNG, why);
    }
}

static void begin_window(struct wg_load_generator *generator)
{
    if (generator->plan->mark != NULL)
        generator->plan->mark(true, generator->plan->context);
    generator->begin_ns = wg__clock_ns(); /* whoever marks may have asked somebody first */
}

static void end_window(struct wg_load_generator *generator, uint64_t now_ns)
{
    generator->end_ns = now_ns;
    generator->result->time_s = seconds(generator->begin_ns, now_ns);
    if (generator->plan->mark != NULL)
        generator->plan->mark(false, generator->plan->context);
}

static bool is_ramp_over(const struct wg_load_generator *generator, uint64_t run_ns,
                         uint64_t now_ns)
{
    const double ramp_s = fmin(fmax(RAMP_SHARE * generator->plan->min_s, RAMP_MIN_S), RAMP_MAX_S);
    const double time_s = seconds(run_ns, now_ns);
    if (time_s < ramp_s)
        return false;
    /* In a closed loop every request has been there once; a slow server need not keep us. */
    const bool is_filled =
        generator->config.arrivals != NULL || generator->seen >= generator->config.outstanding;
    return is_filled || time_s >= 10 * ramp_s;
}

/* Whether the window may end now; may set the outcome CUT. */
static bool is_window_over(struct wg_load_generator *generator, uint64_t now_ns)
{
    const struct wg_workload_plan *plan = generator->plan;
    if (is_hopeless(generator, now_ns)) {
        char why[WG_WORKLOAD_WHY_SIZE];
        (void)snprintf(why, sizeof why, "%s is above %.4g for sure", plan->cut_name,
                       plan->cut_above);
        die(generator, WG_WORKLOAD_CUT, why);
        return true;
    }
    const double time_s = seconds(generator->begin_ns, now_ns);
    if (wg__load_window_is_full(&generator->result->latency))
        return true;
    if (time_s < plan->min_s)
        return false;
    /* A window without any answer says nothing: patience (hung_s) ends it. */
    if (time_s >= plan->max_s)
        return generator->seen > 0 || plan->hung_s <= 0 || time_s > plan->max_s + plan->hung_s;
    return is_precise(generator, now_ns);
}

/* -- The run ---------------------------------------------------------------------------------- */

static void start_run(struct wg_load_generator *generator, const struct wg_workload_plan *plan,
                      struct wg_load_result *out)
{
    wg__load_result_clear(out);
    generator->plan = plan;
    generator->result = out;
    generator->begin_ns = generator->end_ns = 0;
    generator->seen = generator->checked = generator->waited_for = 0;
    generator->errors_in_a_row = generator->refused_in_a_row = 0;
    generator->all_timed_out = true;
    generator->is_dead = false;
    generator->last_why[0] = '\0';
    generator->code = WG_OK;
    generator->progress_ns = wg__clock_ns();
    /* The stream goes on where it was; what would have come meanwhile is not made up for. */
    generator->origin_ns = generator->progress_ns - (uint64_t)(generator->next_s * 1e9);
}

/* Waits for answers, but not for long. */
static void wait_a_while(struct wg_load_generator *generator, uint64_t wake_ns)
{
    const uint64_t look_ns = wg__clock_ns() + LOOK_NS;
    const enum wg_code code = wg__http_wait(generator->config.client,
                                            wake_ns < look_ns ? wake_ns : look_ns, &generator->err);
    if (code != WG_OK)
        fail_ours(generator, code);
}

static bool goes_on(const struct wg_load_generator *generator)
{
    return generator->code == WG_OK && !generator->is_dead;
}

/* Arrivals meant for the window whose turn did not come, and requests that did not end. */
static void take_unanswered(struct wg_load_generator *generator)
{
    const uint64_t now_ns = wg__clock_ns();
    for (size_t i = 0; i < generator->config.outstanding; i++) {
        const struct wg_load_attempt *attempt = &generator->attempts[i];
        if (!attempt->is_sent || !attempt->is_counted)
            continue;
        generator->result->unanswered++;
        add(generator, &generator->result->latency, seconds(attempt->intended_ns, now_ns));
    }
    while (generator->config.arrivals != NULL && is_within(generator, next_ns(generator)) &&
           generator->code == WG_OK && !wg__load_window_is_full(&generator->result->latency)) {
        generator->result->unanswered++;
        add(generator, &generator->result->latency, seconds(next_ns(generator), now_ns));
        generator->next_s = wg__arrivals_next(generator->config.arrivals);
    }
}

/* Keeps up the load until each request of the window has ended, within a bound; then lets the rest
 * of them end. */
static void settle(struct wg_load_generator *generator)
{
    const struct wg_workload_plan *plan = generator->plan;
    const double patience_s = fmin(generator->config.timeout_s, fmax(1, plan->min_s));
    const uint64_t until_ns = wg__clock_ns() + (uint64_t)(patience_s * 1e9);
    while (goes_on(generator) && wg__clock_ns() < until_ns &&
           (generator->waited_for > 0 ||
            (generator->config.arrivals != NULL && is_within(generator, next_ns(generator))))) {
        wait_a_while(generator, send_due(generator));
        look_for_trouble(generator, wg__clock_ns());
    }
    take_unanswered(generator);
}

static void drain(struct wg_load_generator *generator)
{
    const uint64_t until_ns = wg__clock_ns() + UINT64_C(1000000000);
    while (goes_on(generator) && generator->free_count < generator->config.outstanding &&
           wg__clock_ns() < until_ns)
        wait_a_while(generator, UINT64_MAX);
    if (generator->free_count < generator->config.outstanding)
        wg__http_cancel(generator->config.client);
}

/* The outcome of a run that was not ended by trouble. */
static void conclude(struct wg_load_generator *generator)
{
    const struct wg_load_result *result = generator->result;
    if (generator->is_dead)
        return;
    if (result->answered == 0 && result->errors == 0 && result->latency.count == 0)
        die(generator, WG_WORKLOAD_HUNG, "not one answer within the window");
    else if (result->errors > 0 && result->errors >= result->answered)
        die(generator,
            result->answered == 0 && generator->all_timed_out ? WG_WORKLOAD_HUNG
                                                              : WG_WORKLOAD_CRASHED,
            generator->last_why);
    else if (is_hopeless(generator, wg__clock_ns()) && result->unanswered > 0)
        die(generator, WG_WORKLOAD_CUT, "requests of the window were still waiting behind it");
}

enum wg_code wg__load_generator_run(struct wg_load_generator *generator,
                                    const struct wg_workload_plan *plan, struct wg_load_result *out,
                                    struct wg_error *err)
{
    start_run(generator, plan, out);
    /* Sleeps end when they should: by default the kernel may take 50 us more. */
    const int slack_ns = prctl(PR_GET_TIMERSLACK);
    (void)prctl(PR_SET_TIMERSLACK, 1UL);
    const uint64_t run_ns = wg__clock_ns();
    uint64_t looked_ns = run_ns;
    while (goes_on(generator)) {
        wait_a_while(generator, send_due(generator));
        const uint64_t now_ns = wg__clock_ns();
        if (now_ns - looked_ns < LOOK_NS && !wg__load_window_is_full(&out->latency))
            continue;
        looked_ns = now_ns;
        look_for_trouble(generator, now_ns);
        if (generator->begin_ns == 0) {
            if (is_ramp_over(generator, run_ns, now_ns))
                begin_window(generator);
        } else if (is_window_over(generator, now_ns)) {
            break;
        }
    }
    if (generator->begin_ns != 0)
        end_window(generator, wg__clock_ns());
    if (goes_on(generator))
        settle(generator);
    const bool was_cut = out->outcome == WG_WORKLOAD_CUT;
    drain(generator);
    if (slack_ns > 0)
        (void)prctl(PR_SET_TIMERSLACK, (unsigned long)slack_ns);
    if (!was_cut)
        conclude(generator);
    if (generator->code != WG_OK && err != NULL)
        *err = generator->err;
    return generator->code;
}

enum wg_code wg__load_generator_burst(struct wg_load_generator *generator, size_t count,
                                      const struct wg_workload_plan *plan,
                                      struct wg_load_result *out, struct wg_error *err)
{
    start_run(generator, plan, out);
    for (size_t i = 0; i < count && generator->free_count > 0 && goes_on(generator); i++)
        send(generator, wg__clock_ns());
    while (goes_on(generator) && generator->free_count < generator->config.outstanding) {
        wait_a_while(generator, UINT64_MAX);
        look_for_trouble(generator, wg__clock_ns());
    }
    drain(generator);
    if (goes_on(generator) && generator->errors_in_a_row >= count)
        die(generator, WG_WORKLOAD_CRASHED, generator->last_why);
    if (generator->code != WG_OK && err != NULL)
        *err = generator->err;
    return generator->code;
}
