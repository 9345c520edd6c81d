/* SPDX-License-Identifier: MIT
 *
 * One line of progress. Words are cut out one after the other and copied before they are read as
 * numbers, since the line has no zero at its end.
 *
 * Owns: nothing.    Threads: pure, any thread.
 */
#include "live/progress_line.h"

#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/number.h"

static const double counts_max = 9007199254740992.0; /* 2^53: beyond, doubles skip numbers */

struct words {
    const char *at, *end;
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* The next word; its length, 0 at the end. */
static size_t next_word(struct words *words, const char **out)
{
    while (words->at < words->end && is_blank(*words->at))
        words->at++;
    const char *begin = words->at;
    while (words->at < words->end && !is_blank(*words->at))
        words->at++;
    *out = begin;
    return (size_t)(words->at - begin);
}

static bool is_word(const char *text, size_t length, const char *word)
{
    return length == strlen(word) && memcmp(text, word, length) == 0;
}

/* The spellings of C, Python, JavaScript and Julia. */
static bool parse_special(double *out, const char *text)
{
    const bool negative = *text == '-';
    const char *bare = *text == '-' || *text == '+' ? text + 1 : text;
    if (strcasecmp(bare, "nan") == 0)
        *out = NAN;
    else if (strcasecmp(bare, "inf") == 0 || strcasecmp(bare, "infinity") == 0)
        *out = negative ? -INFINITY : INFINITY;
    else
        return false;
    return true;
}

bool wg__progress_parse_value(double *out, enum wg_progress_kind kind, const char *text,
                              size_t length)
{
    char word[64];
    if (length == 0 || length >= sizeof word || memchr(text, '\0', length) != NULL)
        return false;
    memcpy(word, text, length);
    word[length] = '\0';
    double value = 0;
    if (!wg__parse_double(word, &value)) {
        if (kind != WG_PROGRESS_METRIC || !parse_special(&value, word))
            return false;
    }
    if (kind != WG_PROGRESS_METRIC && !(value >= 0 && value <= counts_max))
        return false;
    if ((kind == WG_PROGRESS_STEP || kind == WG_PROGRESS_BATCH_SIZE) && value != floor(value))
        return false;
    if (kind == WG_PROGRESS_BATCH_SIZE && !(value > 0))
        return false;
    *out = value;
    return true;
}

static bool parse_whole(struct words *words, uint64_t max, uint64_t *out)
{
    const char *text;
    char word[24];
    const size_t length = next_word(words, &text);
    if (length == 0 || length >= sizeof word)
        return false;
    memcpy(word, text, length);
    word[length] = '\0';
    uint64_t value = 0;
    if (!wg__parse_uint64(word, &value) || value > max)
        return false;
    *out = value;
    return true;
}

static bool parse_kind(struct words *words, enum wg_progress_kind *out)
{
    static const char *const names[] = {
#define X(name, word) [WG_PROGRESS_##name] = (word),
        WG_PROGRESS_KINDS(X)
#undef X
    };
    const char *text;
    const size_t length = next_word(words, &text);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (is_word(text, length, names[i])) {
            *out = (enum wg_progress_kind)i;
            return true;
        }
    }
    return false;
}

/* What stands behind the number. */
static bool parse_rest(struct words *words, struct wg_progress_line *line)
{
    bool has_name = line->kind != WG_PROGRESS_METRIC, has_rank = false;
    for (;;) {
        const char *text;
        const size_t length = next_word(words, &text);
        uint64_t number = 0;
        if (length == 0)
            return true;
        if (!has_rank && is_word(text, length, "rank")) {
            if (!parse_whole(words, UINT32_MAX, &number))
                return false;
            line->rank = (unsigned)number;
            has_rank = true;
        } else if (!line->has_t && is_word(text, length, "at")) {
            if (!parse_whole(words, UINT64_MAX, &line->t_ns))
                return false;
            line->has_t = true;
        } else if (!has_name && !has_rank && !line->has_t) {
            const size_t kept = length < sizeof line->name ? length : sizeof line->name - 1;
            memcpy(line->name, text, kept);
            has_name = true;
        } else {
            return false;
        }
    }
}

bool wg__progress_parse(struct wg_progress_line *out, const char *text, size_t length)
{
    if (length > 0 && text[length - 1] == '\r')
        length--;
    if (length > WG_PROGRESS_LINE_MAX)
        return false;
    for (size_t i = 0; i < length; i++) {
        const unsigned char byte = (unsigned char)text[i];
        if ((byte < 0x20 && byte != '\t') || byte == 0x7F)
            return false;
    }
    struct words words = {.at = text, .end = text + length};
    struct wg_progress_line line = {0};
    const char *number;
    if (!parse_kind(&words, &line.kind))
        return false;
    const size_t number_length = next_word(&words, &number);
    if (!wg__progress_parse_value(&line.value, line.kind, number, number_length) ||
        !parse_rest(&words, &line))
        return false;
    *out = line;
    return true;
}
