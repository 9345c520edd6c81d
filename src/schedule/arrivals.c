/* SPDX-License-Identifier: MIT
 *
 * The stream of arrivals.
 *
 * Everything is made one moment at a time. Within a second of a trace of counts, k moments at
 * random and in order need no sorting: the least of k uniform numbers on the rest of the second is
 * drawn from its own distribution, then the least of k - 1 on what is left, and so on.
 *
 *     least of k on (0, 1):  1 - (1 - U)^(1/k)
 *
 * A scaled trace is the same trace with its time stretched. Even moments are multiples, not sums,
 * and passes of a trace begin at multiples of its length, so nothing drifts.
 *
 * Owns: see the header.    Threads: one at a time.
 */
#include "schedule/arrivals.h"

#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/alloc.h"
#include "base/number.h"
#include "schedule/arrival_trace.h"

enum { TEXT_SHOWN = 80 };

enum kind { UNIFORM, POISSON, TRACE };

struct wg_arrivals {
    enum kind kind;
    struct wg_rng rng;
    double rate; /* of what comes out */
    double now_s;
    uint64_t index; /* UNIFORM: of the next moment */

    struct wg_arrival_trace trace; /* owned */
    double stretch;                /* seconds of ours for one of the trace's */
    double begin_s;                /* of the present pass, in the trace's seconds */
    uint64_t passes;
    size_t next;       /* moment or second */
    uint32_t left;     /* COUNTS: moments to come in the present second */
    double position_s; /* COUNTS: of the last moment in it */
};

/* What the text asks for. */
struct wish {
    enum kind kind;
    double rate; /* 0: as the trace has it */
    char *path;  /* owned */
    struct wg_arrival_reading reading;
    bool has_window;
    bool is_burstiest;
    double from_s;
    double to_s;
    double spread_s;
};

/* -- The text ------------------------------------------------------------------------------ */

#define RATE_MIN 1e-6
#define RATE_MAX 1e9

static enum wg_code parse_rate(const char *text, double *out, struct wg_error *err)
{
    if (!wg__parse_double(text, out) || !(*out >= RATE_MIN && *out <= RATE_MAX))
        return wg__fail(err, WG_EINVAL,
                        "arrivals: rate '%.*s', expected requests per second from %g to %g",
                        TEXT_SHOWN, text, RATE_MIN, RATE_MAX);
    return WG_OK;
}

static enum wg_code parse_window(struct wish *wish, char *text, struct wg_error *err)
{
    wish->has_window = true;
    wish->is_burstiest = strcmp(text, "burstiest") == 0;
    if (wish->is_burstiest)
        return WG_OK;
    char *colon = strchr(text, ':');
    if (colon != NULL)
        *colon = '\0';
    const bool is_pair = colon != NULL && wg__parse_double(text, &wish->from_s) &&
                         wg__parse_double(colon + 1, &wish->to_s);
    if (colon != NULL)
        *colon = ':';
    if (!is_pair)
        return wg__fail(err, WG_EINVAL,
                        "arrivals: window '%.*s', expected burstiest or A:B in seconds of the "
                        "trace",
                        TEXT_SHOWN, text);
    return WG_OK;
}

static enum wg_code parse_seconds(const char *name, const char *text, double *out,
                                  struct wg_error *err)
{
    if (!wg__parse_double(text, out) || !(*out >= 0.0 && *out <= 1e9))
        return wg__fail(err, WG_EINVAL, "arrivals: %s '%.*s', expected seconds from 0 to 1e9", name,
                        TEXT_SHOWN, text);
    return WG_OK;
}

static enum wg_code parse_kind(const char *text, enum wg_arrival_kind *out, struct wg_error *err)
{
    static const char *const words[] = {
#define X(name, word) word,
        WG_ARRIVAL_KINDS(X)
#undef X
    };
    for (size_t i = 0; i < WG_ARRIVAL_KIND_COUNT; i++) {
        if (strcmp(text, words[i]) == 0) {
            *out = (enum wg_arrival_kind)i;
            return WG_OK;
        }
    }
    return wg__fail(err, WG_EINVAL, "arrivals: as '%.*s', expected auto, moments, counts or gaps",
                    TEXT_SHOWN, text);
}

/* One "name=value". */
static enum wg_code parse_option(struct wish *wish, const char *name, char *value,
                                 struct wg_error *err)
{
    if (strcmp(name, "rate") == 0)
        return parse_rate(value, &wish->rate, err);
    if (strcmp(name, "window") == 0)
        return parse_window(wish, value, err);
    if (strcmp(name, "as") == 0)
        return parse_kind(value, &wish->reading.as, err);
    if (strcmp(name, "skip") == 0)
        return parse_seconds(name, value, &wish->reading.skip_s, err);
    if (strcmp(name, "spread") == 0)
        return parse_seconds(name, value, &wish->spread_s, err);
    return wg__fail(err, WG_EINVAL,
                    "arrivals: no option '%.*s' of a trace; they are rate, window, as, skip and "
                    "spread",
                    TEXT_SHOWN, name);
}

/* Options are taken off the end, so that a path may hold commas (but no ",name="). */
static enum wg_code parse_trace(struct wish *wish, const char *text, struct wg_error *err)
{
    wish->path = wg__strdup(text);
    if (wish->path == NULL)
        return wg__fail(err, WG_ENOMEM, "arrivals: out of memory");
    for (;;) {
        char *comma = strrchr(wish->path, ',');
        char *equals = comma != NULL ? strchr(comma, '=') : NULL;
        if (equals == NULL)
            break;
        *comma = '\0';
        *equals = '\0';
        const enum wg_code code = parse_option(wish, comma + 1, equals + 1, err);
        if (code != WG_OK)
            return code;
    }
    if (wish->path[0] == '\0')
        return wg__fail(err, WG_EINVAL,
                        "arrivals '%.*s': expected a file behind trace:", TEXT_SHOWN, text);
    return WG_OK;
}

static const char *behind(const char *text, const char *prefix)
{
    const size_t length = strlen(prefix);
    return strncmp(text, prefix, length) == 0 ? text + length : NULL;
}

static enum wg_code parse_wish(struct wish *wish, const char *text, struct wg_error *err)
{
    *wish = (struct wish){.reading = {.as = WG_ARRIVAL_AUTO, .skip_s = -1.0}};
    const char *rest = behind(text, "uniform:");
    if (rest != NULL) {
        wish->kind = UNIFORM;
        return parse_rate(rest, &wish->rate, err);
    }
    rest = behind(text, "poisson:");
    if (rest != NULL) {
        wish->kind = POISSON;
        return parse_rate(rest, &wish->rate, err);
    }
    rest = behind(text, "trace:");
    if (rest != NULL) {
        wish->kind = TRACE;
        return parse_trace(wish, rest, err);
    }
    return wg__fail(err, WG_EINVAL,
                    "arrivals '%.*s': expected uniform:RATE, poisson:RATE or "
                    "trace:FILE[,rate=R][,window=burstiest|A:B]",
                    TEXT_SHOWN, text);
}

/* -- Opening ------------------------------------------------------------------------------- */

static enum wg_code open_trace(struct wg_arrivals *arrivals, const struct wish *wish,
                               struct wg_error *err)
{
    struct wg_arrival_trace *trace = &arrivals->trace;
    enum wg_code code = wg__arrival_trace_read(trace, wish->path, &wish->reading, err);
    if (code != WG_OK)
        return code;
    struct wg_rng rng = wg__rng_split(&arrivals->rng, 0);
    wg__arrival_trace_spread(trace, wish->spread_s, &rng);
    if (wish->has_window) {
        double from_s = wish->from_s;
        double to_s = wish->to_s;
        if (wish->is_burstiest) {
            code = wg__arrival_trace_burstiest(trace, &from_s, err);
            to_s = from_s + 60.0;
        }
        if (code == WG_OK)
            code = wg__arrival_trace_cut(trace, from_s, to_s, err);
        if (code != WG_OK)
            return code;
    }
    const double rate = trace->requests / trace->length_s;
    arrivals->rate = wish->rate != 0.0 ? wish->rate : rate;
    arrivals->stretch = rate / arrivals->rate;
    arrivals->left = trace->is_counts ? trace->counts[0] : 0;
    return WG_OK;
}

enum wg_code wg__arrivals_open(struct wg_arrivals **out, const char *text, const struct wg_rng *rng,
                               struct wg_error *err)
{
    struct wish wish;
    struct wg_arrivals *arrivals = NULL;
    enum wg_code code = parse_wish(&wish, text, err);
    if (code != WG_OK)
        goto out;
    arrivals = wg__alloc_zeroed(1, sizeof *arrivals);
    if (arrivals == NULL) {
        code = wg__fail(err, WG_ENOMEM, "arrivals: out of memory");
        goto out;
    }
    arrivals->kind = wish.kind;
    arrivals->rng = *rng;
    arrivals->rate = wish.rate;
    if (wish.kind == TRACE)
        code = open_trace(arrivals, &wish, err);
    if (code == WG_OK) {
        *out = arrivals;
        arrivals = NULL;
    }
out:
    wg__arrivals_close(arrivals);
    wg__free(wish.path);
    return code;
}

void wg__arrivals_close(struct wg_arrivals *arrivals)
{
    if (arrivals == NULL)
        return;
    wg__arrival_trace_fini(&arrivals->trace);
    wg__free(arrivals);
}

void wg__arrivals_restart(struct wg_arrivals *arrivals, const struct wg_rng *rng)
{
    arrivals->rng = *rng;
    arrivals->now_s = arrivals->begin_s = arrivals->position_s = 0.0;
    arrivals->index = arrivals->passes = 0;
    arrivals->next = 0;
    arrivals->left =
        arrivals->kind == TRACE && arrivals->trace.is_counts ? arrivals->trace.counts[0] : 0;
}

bool wg__arrivals_is_steady(const struct wg_arrivals *arrivals)
{
    return arrivals->kind != TRACE;
}

/* -- The stream ---------------------------------------------------------------------------- */

double wg__arrivals_rate(const struct wg_arrivals *arrivals)
{
    return arrivals->rate;
}

/* To the next moment or second of the trace; behind the last one its next pass begins. */
static void advance(struct wg_arrivals *arrivals)
{
    if (++arrivals->next < arrivals->trace.count)
        return;
    arrivals->next = 0;
    arrivals->passes++;
    arrivals->begin_s = (double)arrivals->passes * arrivals->trace.length_s;
}

static double next_counted(struct wg_arrivals *arrivals)
{
    while (arrivals->left == 0) { /* ends: a trace has a request at least */
        advance(arrivals);
        arrivals->left = arrivals->trace.counts[arrivals->next];
        arrivals->position_s = 0.0;
    }
    const double u = wg__rng_uniform(&arrivals->rng);
    const double least = -expm1(log1p(-u) / arrivals->left);
    arrivals->position_s += (1.0 - arrivals->position_s) * least;
    arrivals->left--;
    return arrivals->begin_s + (double)arrivals->next + arrivals->position_s;
}

static double next_moment(struct wg_arrivals *arrivals)
{
    const double moment_s = arrivals->begin_s + arrivals->trace.moments_s[arrivals->next];
    advance(arrivals);
    return moment_s;
}

double wg__arrivals_next(struct wg_arrivals *arrivals)
{
    double moment_s = 0.0;
    switch (arrivals->kind) {
    case UNIFORM:
        moment_s = (double)arrivals->index++ / arrivals->rate;
        break;
    case POISSON:
        moment_s = arrivals->now_s - log(wg__rng_uniform(&arrivals->rng)) / arrivals->rate;
        break;
    case TRACE:
        moment_s = arrivals->stretch *
                   (arrivals->trace.is_counts ? next_counted(arrivals) : next_moment(arrivals));
        break;
    }
    if (moment_s > arrivals->now_s) /* rounding may let the first of a pass fall by a bit */
        arrivals->now_s = moment_s;
    return arrivals->now_s;
}
