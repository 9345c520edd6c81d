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
 * A scaled trace is the same trace with its time stretched, or with other counts. Among requests of
 * which each is chosen with probability p, the number that are passed over before the next chosen
 * one is geometric, so thinning costs one draw a request that stays:
 *
 *     passed over = floor(log U / log(1 - p))
 *
 * Even moments are multiples, not sums, and passes of a trace begin at multiples of its length, so
 * nothing drifts.
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
    uint64_t whole;                /* each request becomes so many, */
    double chance;                 /* and one more with this probability */
    double passed;                 /* requests before the next one that does */
    double begin_s;                /* of the present pass, in the trace's seconds */
    double shift_s;                /* where the first pass begins */
    uint64_t passes;
    size_t next;       /* moment or second */
    uint64_t left;     /* COUNTS: moments to come in the present second */
    double position_s; /* COUNTS: of the last moment in it */
};

/* What the text asks for. */
struct wish {
    enum kind kind;
    double rate; /* 0: as the trace has it */
    bool is_by_count;
    char *path; /* owned */
    struct wg_arrival_reading reading;
    bool has_window;
    bool is_burstiest;
    double from_s;
    double to_s;
    double spread_s;
    unsigned given; /* bit i: option i of a trace */
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

static enum wg_code parse_by(const char *text, bool *is_by_count_out, struct wg_error *err)
{
    const bool is_by_count = strcmp(text, "count") == 0;
    if (!is_by_count && strcmp(text, "time") != 0)
        return wg__fail(err, WG_EINVAL, "arrivals: by '%.*s', expected time or count", TEXT_SHOWN,
                        text);
    *is_by_count_out = is_by_count;
    return WG_OK;
}

/* Each option of a trace once. */
static enum wg_code check_first(struct wish *wish, const char *name, struct wg_error *err)
{
    static const char *const names[] = {"rate", "by", "window", "as", "skip", "spread"};
    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(name, names[i]) != 0)
            continue;
        if ((wish->given >> i & 1) != 0)
            return wg__fail(err, WG_EINVAL, "arrivals: %s= is given twice", name);
        wish->given |= 1U << i;
        return WG_OK;
    }
    return wg__fail(err, WG_EINVAL,
                    "arrivals: no option '%.*s' of a trace; they are rate, by, window, as, skip "
                    "and spread",
                    TEXT_SHOWN, name);
}

/* One "name=value" of a known name. */
static enum wg_code parse_option(struct wish *wish, const char *name, char *value,
                                 struct wg_error *err)
{
    if (strcmp(name, "rate") == 0)
        return parse_rate(value, &wish->rate, err);
    if (strcmp(name, "by") == 0)
        return parse_by(value, &wish->is_by_count, err);
    if (strcmp(name, "window") == 0)
        return parse_window(wish, value, err);
    if (strcmp(name, "as") == 0)
        return parse_kind(value, &wish->reading.as, err);
    if (strcmp(name, "skip") == 0)
        return parse_seconds(name, value, &wish->reading.skip_s, err);
    return parse_seconds(name, value, &wish->spread_s, err);
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
        enum wg_code code = check_first(wish, comma + 1, err);
        if (code == WG_OK)
            code = parse_option(wish, comma + 1, equals + 1, err);
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

/* -- More and fewer requests --------------------------------------------------------------- */

/* How many requests are passed over before one is chosen. */
static double draw_passed(struct wg_arrivals *arrivals)
{
    return floor(log(wg__rng_uniform(&arrivals->rng)) / log1p(-arrivals->chance));
}

/* What becomes of `count` requests that follow each other. */
static uint64_t scale(struct wg_arrivals *arrivals, uint64_t count)
{
    uint64_t scaled = count * arrivals->whole;
    if (arrivals->chance == 0.0)
        return scaled;
    double rest = (double)count;
    while (arrivals->passed < rest) {
        scaled++;
        rest -= arrivals->passed + 1.0;
        arrivals->passed = draw_passed(arrivals);
    }
    arrivals->passed -= rest;
    return scaled;
}

/* -- Opening ------------------------------------------------------------------------------- */

/* To the beginning of the trace. */
static void rewind_trace(struct wg_arrivals *arrivals)
{
    arrivals->now_s = arrivals->begin_s = arrivals->shift_s = arrivals->position_s = 0.0;
    arrivals->index = arrivals->passes = 0;
    arrivals->next = 0;
    arrivals->left = 0;
    if (arrivals->kind != TRACE)
        return;
    if (arrivals->chance > 0.0)
        arrivals->passed = draw_passed(arrivals);
    if (arrivals->trace.is_counts)
        arrivals->left = scale(arrivals, arrivals->trace.counts[0]);
}

/* Bursts of the trace's own length: requests are thinned or multiplied. What becomes several must
 * be spread, and those of one second are: moments become counts for it. */
static enum wg_code scale_by_count(struct wg_arrivals *arrivals, struct wg_error *err)
{
    struct wg_arrival_trace *trace = &arrivals->trace;
    if (!trace->is_counts && arrivals->rate * trace->length_s > trace->requests) {
        const enum wg_code code = wg__arrival_trace_count(trace, err);
        if (code != WG_OK)
            return code;
    }
    const double factor = arrivals->rate * trace->length_s / trace->requests;
    arrivals->whole = (uint64_t)factor; /* at most 1e9 requests/s times 1e8 s */
    arrivals->chance = factor - floor(factor);
    arrivals->stretch = 1.0;
    return WG_OK;
}

static enum wg_code choose_window(struct wg_arrival_trace *trace, const struct wish *wish,
                                  struct wg_error *err)
{
    if (!wish->has_window)
        return WG_OK;
    double from_s = wish->from_s;
    double to_s = wish->to_s;
    if (wish->is_burstiest) {
        const enum wg_code code = wg__arrival_trace_burstiest(trace, &from_s, err);
        if (code != WG_OK)
            return code;
        to_s = from_s + 60.0;
    }
    return wg__arrival_trace_cut(trace, from_s, to_s, err);
}

static enum wg_code open_trace(struct wg_arrivals *arrivals, const struct wish *wish,
                               struct wg_error *err)
{
    struct wg_arrival_trace *trace = &arrivals->trace;
    enum wg_code code = wg__arrival_trace_read(trace, wish->path, &wish->reading, err);
    if (code != WG_OK)
        return code;
    struct wg_rng rng = wg__rng_split(&arrivals->rng, 0);
    wg__arrival_trace_spread(trace, wish->spread_s, &rng);
    code = choose_window(trace, wish, err);
    if (code != WG_OK)
        return code;
    const double rate = trace->requests / trace->length_s;
    arrivals->rate = wish->rate != 0.0 ? wish->rate : rate;
    arrivals->stretch = rate / arrivals->rate;
    arrivals->whole = 1;
    if (wish->is_by_count && wish->rate != 0.0)
        code = scale_by_count(arrivals, err);
    if (code == WG_OK)
        rewind_trace(arrivals);
    return code;
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
    rewind_trace(arrivals);
}

/* Its first moment or second is next. */
static void begin_pass(struct wg_arrivals *arrivals, uint64_t pass)
{
    arrivals->next = 0;
    arrivals->passes = pass;
    arrivals->begin_s = (double)pass * arrivals->trace.length_s;
}

void wg__arrivals_seek(struct wg_arrivals *arrivals, double share)
{
    assert(share >= 0.0 && share < 1.0);
    if (arrivals->kind != TRACE)
        return;
    struct wg_arrival_trace *trace = &arrivals->trace;
    if (trace->is_counts) {
        arrivals->next = (size_t)(share * (double)trace->count);
        arrivals->shift_s = (double)arrivals->next;
        arrivals->left = scale(arrivals, trace->counts[arrivals->next]);
        return;
    }
    arrivals->shift_s = share * trace->length_s;
    arrivals->next = wg__arrival_trace_find(trace, arrivals->shift_s);
    if (arrivals->next == trace->count)
        begin_pass(arrivals, 1);
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
    if (++arrivals->next == arrivals->trace.count)
        begin_pass(arrivals, arrivals->passes + 1);
}

static double next_counted(struct wg_arrivals *arrivals)
{
    while (arrivals->left == 0) { /* ends: a trace has a request at least */
        advance(arrivals);
        arrivals->left = scale(arrivals, arrivals->trace.counts[arrivals->next]);
        arrivals->position_s = 0.0;
    }
    const double u = wg__rng_uniform(&arrivals->rng);
    const double least = -expm1(log1p(-u) / (double)arrivals->left);
    arrivals->position_s += (1.0 - arrivals->position_s) * least;
    arrivals->left--;
    return arrivals->begin_s + (double)arrivals->next + arrivals->position_s;
}

/* Each moment is one, or stays by chance; several would be counts. */
static double next_moment(struct wg_arrivals *arrivals)
{
    if (arrivals->whole == 0) {
        const double count = (double)arrivals->trace.count;
        const double next = (double)arrivals->next + arrivals->passed;
        arrivals->passed = draw_passed(arrivals);
        if (next >= count)
            begin_pass(arrivals, arrivals->passes + (uint64_t)(next / count));
        arrivals->next = (size_t)fmod(next, count);
    }
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
        moment_s = arrivals->trace.is_counts ? next_counted(arrivals) : next_moment(arrivals);
        moment_s = arrivals->stretch * (moment_s - arrivals->shift_s);
        break;
    }
    if (moment_s > arrivals->now_s) /* rounding may let the first of a pass fall by a bit */
        arrivals->now_s = moment_s;
    return arrivals->now_s;
}
