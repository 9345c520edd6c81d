/* SPDX-License-Identifier: MIT
 *
 * The load on a server, and what it felt like.
 *
 *     closed loop   always `outstanding` requests under way: the next starts when one has ended
 *     open loop     requests start when the arrivals say, whatever the server does
 *
 * A latency of an open loop counts from the moment the request was meant to start, also when it
 * started late since all slots were taken (no coordinated omission: a server that stalls is felt
 * by everybody who would have come meanwhile). How late we ourselves were is told as `lag`.
 *
 *     ramp (thrown away) | mark | window: begins .. ends | mark | the load goes on until every
 *                                                               request meant for the window ended
 *
 * So slow requests at the end of a window are not lost. Those that don't end within a bound count
 * with the time that they took so far: `unanswered`, then percentiles are lower bounds.
 *
 * Owns: the latencies.    Threads: one at a time.
 */
#ifndef WG_LIVE_LOAD_GENERATOR_H
#define WG_LIVE_LOAD_GENERATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "live/load_result.h"
#include "live/workload.h"
#include "net/http_client.h"
#include "schedule/arrivals.h"

/* A request under way. */
struct wg_load_attempt {
    uint64_t intended_ns, sent_ns; /* wg__clock_ns() */
    uint64_t first_ns, last_ns;    /* of its tokens; 0: none yet */
    uint64_t tokens;
    size_t index; /* of its slot, 0 .. outstanding - 1 */
    bool is_sent;
    bool is_counted; /* meant for the window */
    struct wg_load_generator *generator;
};

enum wg_load_verdict {
    WG_LOAD_GOOD,
    WG_LOAD_BAD,
    WG_LOAD_LATE, /* the server, or its library, gave up at the deadline that we told */
    WG_LOAD_OUT_OF_MEMORY
};

/* What is asked of the server. */
struct wg_load_target {
    const struct wg_load_target_ops *ops;
};
struct wg_load_target_ops {
    /* Fills all of `out` but its calls, timeout and context. */
    void (*begin)(struct wg_load_target *target, struct wg_load_attempt *attempt,
                  struct wg_http_request *out);
    /* A piece of an answer; NULL: answers are kept whole. Sets the attempt's tokens. */
    void (*piece)(struct wg_load_target *target, struct wg_load_attempt *attempt, const char *bytes,
                  size_t length);
    /* Of an answer that ended as ANSWERED; `why` is one line when it is not good. */
    enum wg_load_verdict (*judge)(struct wg_load_target *target, struct wg_load_attempt *attempt,
                                  const struct wg_http_answer *answer,
                                  char why[static WG_WORKLOAD_WHY_SIZE]);
};

struct wg_load_config {
    struct wg_http_client *client; /* with at least `outstanding` slots free; must outlive us */
    struct wg_load_target *target; /* must outlive us */
    struct wg_arrivals *arrivals;  /* NULL: closed loop; must outlive us */
    size_t outstanding;            /* at most at once; >= 1 */
    double timeout_s;              /* of a request */
};

struct wg_load_generator;

/* WG_ENOMEM. */
enum wg_code wg__load_generator_open(struct wg_load_generator **out,
                                     const struct wg_load_config *config, struct wg_error *err);
void wg__load_generator_close(struct wg_load_generator *generator);

/* After the arrivals were restarted: the next run begins with their first moment from `from_s` on.
 */
void wg__load_generator_restart(struct wg_load_generator *generator, double from_s);

/* One window, as the plan says. `out` was initialized, its memory is used again. Nothing is under
 * way when it returns. WG_ENOMEM, WG_EIO: ours; all else is an outcome. */
enum wg_code wg__load_generator_run(struct wg_load_generator *generator,
                                    const struct wg_workload_plan *plan, struct wg_load_result *out,
                                    struct wg_error *err);

/* `count` requests at once, each until it ended: to warm up a batch. Outcome and `why` as above. */
enum wg_code wg__load_generator_burst(struct wg_load_generator *generator, size_t count,
                                      const struct wg_workload_plan *plan,
                                      struct wg_load_result *out, struct wg_error *err);

#endif
