/* SPDX-License-Identifier: MIT
 *
 * What a job prints, read by regular expressions.
 *
 * PCRE2 backtracks, so time and memory of a match are bounded by its own limits, and it allocates
 * through our door to the heap. It is not compiled to machine code: that needs memory that may be
 * written and run, which hardened systems refuse, and its limits count otherwise.
 *
 * Owns: the compiled expressions.    Threads: one at a time.
 */
#include "live/progress_match.h"

#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/alloc.h"
#include "live/progress_line.h"

enum {
    MATCH_LIMIT = 20000, /* steps of backtracking: about a millisecond */
    HEAP_LIMIT_KIB = 1024,
    SLOW_LINES_MAX = 100,
};

struct expression {
    pcre2_code *code; /* NULL: none */
    bool has_group;
    bool is_given_up;
    unsigned slow_lines; /* in a row */
    double count;        /* of matches, without a group */
};

struct wg_progress_matcher {
    pcre2_general_context *memory;
    pcre2_match_context *limits;
    pcre2_match_data *found;
    struct expression expressions[WG_PROGRESS_BATCH_SIZE]; /* one a kind but the batch size */
    char text[WG_PROGRESS_TEXT_MAX];
};

static void *allocate(PCRE2_SIZE size, void *context)
{
    (void)context;
    return wg__alloc(size);
}

static void release(void *memory, void *context)
{
    (void)context;
    wg__free(memory);
}

static enum wg_code compile(struct wg_progress_matcher *matcher, enum wg_progress_kind kind,
                            const char *option, const char *pattern, struct wg_error *err)
{
    if (pattern == NULL)
        return WG_OK;
    pcre2_compile_context *context = pcre2_compile_context_create(matcher->memory);
    if (context == NULL)
        return wg__fail(err, WG_ENOMEM, "no memory for --%s", option);
    int number = 0;
    PCRE2_SIZE offset = 0;
    struct expression *expression = &matcher->expressions[kind];
    expression->code = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED,
                                     PCRE2_UTF | PCRE2_MATCH_INVALID_UTF | PCRE2_NEVER_BACKSLASH_C,
                                     &number, &offset, context);
    pcre2_compile_context_free(context);
    if (expression->code == NULL) {
        PCRE2_UCHAR text[128] = "";
        (void)pcre2_get_error_message(number, text, sizeof text);
        if (number == PCRE2_ERROR_HEAP_FAILED)
            return wg__fail(err, WG_ENOMEM, "no memory for --%s", option);
        return wg__fail(err, WG_EINVAL, "--%s '%s': %s, at character %zu", option, pattern,
                        (const char *)text, offset + 1);
    }
    uint32_t groups = 0;
    (void)pcre2_pattern_info(expression->code, PCRE2_INFO_CAPTURECOUNT, &groups);
    expression->has_group = groups > 0;
    if (kind == WG_PROGRESS_METRIC && groups == 0)
        return wg__fail(err, WG_EINVAL,
                        "--%s '%s': has no group; write its number in parentheses, such as (.*)",
                        option, pattern);
    return WG_OK;
}

enum wg_code wg__progress_matcher_new(struct wg_progress_matcher **out, const char *step_regex,
                                      const char *epoch_regex, const char *metric_regex,
                                      struct wg_error *err)
{
    struct wg_progress_matcher *matcher = wg__alloc_zeroed(1, sizeof *matcher);
    if (matcher == NULL)
        return wg__fail(err, WG_ENOMEM, "no memory for the regular expressions");
    enum wg_code code = WG_OK;
    matcher->memory = pcre2_general_context_create(allocate, release, NULL);
    if (matcher->memory != NULL) {
        matcher->limits = pcre2_match_context_create(matcher->memory);
        matcher->found = pcre2_match_data_create(2, matcher->memory);
    }
    if (matcher->limits == NULL || matcher->found == NULL) {
        code = wg__fail(err, WG_ENOMEM, "no memory for the regular expressions");
    } else {
        (void)pcre2_set_match_limit(matcher->limits, MATCH_LIMIT);
        (void)pcre2_set_heap_limit(matcher->limits, HEAP_LIMIT_KIB);
        code = compile(matcher, WG_PROGRESS_STEP, "step-regex", step_regex, err);
    }
    if (code == WG_OK)
        code = compile(matcher, WG_PROGRESS_EPOCH, "epoch-regex", epoch_regex, err);
    if (code == WG_OK)
        code = compile(matcher, WG_PROGRESS_METRIC, "metric-regex", metric_regex, err);
    if (code != WG_OK) {
        wg__progress_matcher_free(matcher);
        return code;
    }
    *out = matcher;
    return WG_OK;
}

void wg__progress_matcher_free(struct wg_progress_matcher *matcher)
{
    if (matcher == NULL)
        return;
    for (size_t i = 0; i < WG_PROGRESS_BATCH_SIZE; i++)
        pcre2_code_free(matcher->expressions[i].code);
    pcre2_match_data_free(matcher->found);
    pcre2_match_context_free(matcher->limits);
    pcre2_general_context_free(matcher->memory);
    wg__free(matcher);
}

/* Behind the bytes from `low` to `high` at `at`. */
static size_t skip_range(const char *text, size_t at, size_t length, char low, char high)
{
    while (at < length && text[at] >= low && text[at] <= high)
        at++;
    return at;
}

/* Behind the text of an OSC and its like, which BEL or ESC \ ends. */
static size_t skip_string(const char *text, size_t at, size_t length)
{
    while (at < length && text[at] != '\a' && text[at] != 0x1B)
        at++;
    return at + (at < length && text[at] == 0x1B) + 1;
}

/* Behind the escape sequence that begins at `text[at]` (ECMA-48). */
static size_t skip_escape(const char *text, size_t at, size_t length)
{
    const char kind = at + 1 < length ? text[at + 1] : '\0';
    at += 2;
    if (kind == '[')
        at = skip_range(text, at, length, 0x20, 0x3F) + 1;
    else if (kind != '\0' && strchr("]PX^_", kind) != NULL)
        at = skip_string(text, at, length);
    else if (kind >= 0x20 && kind <= 0x2F)
        at = skip_range(text, at, length, 0x20, 0x2F) + 1;
    return at;
}

size_t wg__terminal_strip(char *text, size_t length)
{
    size_t kept = 0;
    for (size_t at = 0; at < length;) {
        const unsigned char byte = (unsigned char)text[at];
        if (byte == 0x1B) {
            at = skip_escape(text, at, length);
            continue;
        }
        if ((byte >= 0x20 && byte != 0x7F) || byte == '\t')
            text[kept++] = text[at];
        at++;
    }
    return kept;
}

/* One match from `from` on: 1, 0 (none), or -1 (it took too long). */
static int match(struct wg_progress_matcher *matcher, const struct expression *expression,
                 size_t length, size_t from)
{
    const int found = pcre2_match(expression->code, (PCRE2_SPTR)matcher->text, length, from, 0,
                                  matcher->found, matcher->limits);
    if (found >= 0)
        return 1;
    return found == PCRE2_ERROR_NOMATCH ? 0 : -1;
}

/* The number in the first group. */
static bool take_number(struct wg_progress_matcher *matcher, struct wg_progress_feed *feed,
                        enum wg_progress_kind kind)
{
    const PCRE2_SIZE *ends = pcre2_get_ovector_pointer(matcher->found);
    double value = 0;
    if (ends[2] == PCRE2_UNSET || ends[3] < ends[2] ||
        !wg__progress_parse_value(&value, kind, matcher->text + ends[2], ends[3] - ends[2]))
        return false;
    return wg__progress_feed_value(feed, kind, value);
}

/* How many matches there are; -1: it took too long. */
static int count_matches(struct wg_progress_matcher *matcher, const struct expression *expression,
                         size_t length)
{
    int count = 0;
    for (size_t from = 0; from <= length;) {
        const int found = match(matcher, expression, length, from);
        if (found <= 0)
            return found < 0 ? -1 : count;
        count++;
        const PCRE2_SIZE *ends = pcre2_get_ovector_pointer(matcher->found);
        from = ends[1] > from ? ends[1] : from + 1;
    }
    return count;
}

static void look(struct wg_progress_matcher *matcher, struct wg_progress_feed *feed,
                 enum wg_progress_kind kind, size_t length)
{
    struct expression *expression = &matcher->expressions[kind];
    if (expression->code == NULL || expression->is_given_up)
        return;
    const int count = expression->has_group ? match(matcher, expression, length, 0)
                                            : count_matches(matcher, expression, length);
    if (count < 0) {
        static const char hint[] = "(a regular expression is too slow for what the job prints)";
        expression->is_given_up = ++expression->slow_lines >= SLOW_LINES_MAX;
        if (expression->is_given_up)
            wg__progress_feed_reject(feed, hint, sizeof hint - 1);
        else
            wg__progress_feed_reject(feed, matcher->text, length);
        return;
    }
    expression->slow_lines = 0;
    if (count == 0)
        return;
    if (!expression->has_group) {
        expression->count += count;
        (void)wg__progress_feed_value(feed, kind, expression->count);
    } else if (!take_number(matcher, feed, kind)) {
        wg__progress_feed_reject(feed, matcher->text, length);
    }
}

void wg__progress_matcher_line(struct wg_progress_matcher *matcher, struct wg_progress_feed *feed,
                               const char *line, size_t length)
{
    const size_t kept = length < sizeof matcher->text ? length : sizeof matcher->text;
    memcpy(matcher->text, line, kept);
    const size_t left = wg__terminal_strip(matcher->text, kept);
    for (unsigned kind = 0; kind < WG_PROGRESS_BATCH_SIZE; kind++)
        look(matcher, feed, (enum wg_progress_kind)kind, left);
}
