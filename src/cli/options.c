/* SPDX-License-Identifier: MIT
 *
 * Parsing by the option table; see options.h for the rules.
 *
 * The first pass over the arguments only looks for --help. Because a value that begins with `--`
 * must be written as --name=value, it can't mistake a value for an option.
 */
#include "cli/options.h"

#include <assert.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/number.h"
#include "base/utf8.h"
#include "cli/duration.h"

enum {
    WORD_MAX = 64,        /* longer words are never compared for likeness */
    NAMES_SHOWN_MAX = 12, /* of those that would have been known */
    VALUE_SHOWN_MAX = 80, /* bytes of a wrong value */
    RANGE_MAX = 128,      /* bytes of a range in words */
    LABEL_COLUMN = 30,    /* where the explanations in the help begin */
    HELP_COLUMN_MAX = 98,
};

/* Optimal string alignment: insertions, deletions, replacements, and swaps of neighbours. */
static size_t word_distance(const char *a, const char *b)
{
    const size_t a_length = strlen(a), b_length = strlen(b);
    size_t rows[3][WORD_MAX + 1];
    for (size_t j = 0; j <= b_length; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= a_length; i++) {
        size_t *row = rows[i % 3];
        const size_t *above = rows[(i + 2) % 3], *above_that = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            size_t best = above[j - 1] + (a[i - 1] != b[j - 1]);
            if (above[j] + 1 < best)
                best = above[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                above_that[j - 2] + 1 < best)
                best = above_that[j - 2] + 1;
            row[j] = best;
        }
    }
    return rows[a_length % 3][b_length];
}

const char *wg__nearest_word(const char *word, const char *const *words, size_t count)
{
    const size_t length = strlen(word);
    if (length == 0 || length > WORD_MAX)
        return NULL;
    /* A third of the letters may be wrong. More, and the suggestion is a guess. */
    const size_t limit = (length + 1) / 3;
    size_t best_distance = limit + 1;
    const char *best = NULL;
    for (size_t i = 0; i < count; i++) {
        if (strlen(words[i]) > WORD_MAX)
            continue;
        size_t distance = word_distance(word, words[i]);
        /* A beginning is as good as a slip of the finger: people try to abbreviate. */
        if (distance > 1 && length >= 2 && strncmp(word, words[i], length) == 0)
            distance = 1;
        if (distance < best_distance) {
            best = words[i];
            best_distance = distance;
        }
    }
    return best;
}

static double range_max(const struct wg_option *option)
{
    if (option->kind == WG_OPTION_KIND_UNSIGNED && !(option->max < (double)UINT_MAX))
        return (double)UINT_MAX;
    return option->max;
}

/* Appends what an option accepts: "a number in 0 .. 1", "a whole number in 1 .. 1000". */
static void describe_range(const struct wg_option *option, struct wg_buffer *out)
{
    const char *noun = option->kind == WG_OPTION_KIND_DOUBLE ? "a number" : "a whole number";
    const char *blank = option->unit != NULL ? " " : "", *unit = option->unit ? option->unit : "";
    const double max = range_max(option);
    wg__buffer_puts(out, noun);
    if (option->min_is_excluded) {
        wg__buffer_printf(out, " above %.10g", option->min);
        if (isfinite(max))
            wg__buffer_printf(out, " and at most %.10g", max);
    } else if (isfinite(max)) {
        wg__buffer_printf(out, " in %.10g .. %.10g", option->min, max);
    } else if (isfinite(option->min)) {
        wg__buffer_printf(out, " of at least %.10g", option->min);
    }
    wg__buffer_printf(out, "%s%s", blank, unit);
}

/* "a time in 1ms .. 1m, with its unit". */
static void describe_duration(const struct wg_option *option, struct wg_buffer *out)
{
    char min[WG_DURATION_TEXT_SIZE], max[WG_DURATION_TEXT_SIZE];
    wg__format_duration(min, option->min);
    wg__format_duration(max, option->max);
    if (isfinite(option->max))
        wg__buffer_printf(out, "a time in %s .. %s, with its unit", min, max);
    else
        wg__buffer_printf(out, "a time of at least %s, with its unit", min);
}

static void describe_choices(const struct wg_option *option, struct wg_buffer *out)
{
    for (size_t i = 0; option->choices[i] != NULL; i++) {
        const bool is_last = option->choices[i + 1] == NULL;
        wg__buffer_printf(out, "%s%s", i == 0 ? "" : is_last ? " or " : ", ", option->choices[i]);
    }
}

/* Appends what an option accepts, in words. */
static void describe(const struct wg_option *option, struct wg_buffer *out)
{
    switch (option->kind) {
    case WG_OPTION_KIND_DOUBLE:
    case WG_OPTION_KIND_UNSIGNED:
        describe_range(option, out);
        break;
    case WG_OPTION_KIND_DURATION:
        describe_duration(option, out);
        break;
    case WG_OPTION_KIND_SEED:
        wg__buffer_printf(out, "a whole number in 0 .. %llu", (unsigned long long)UINT64_MAX);
        break;
    case WG_OPTION_KIND_STRING:
    case WG_OPTION_KIND_LIST:
        if (option->choices != NULL)
            describe_choices(option, out);
        else
            wg__buffer_puts(out, option->value);
        break;
    case WG_OPTION_KIND_FLAG:
    case WG_OPTION_KIND_COUNT:
        break;
    }
}

enum wg_code wg__option_reject(struct wg_error *err, const char *name, const char *value,
                               const char *accepted)
{
    /* A long value would leave no room for what is wrong with it. */
    const int shown = wg__utf8_cut(value, strnlen(value, VALUE_SHOWN_MAX + 1), VALUE_SHOWN_MAX);
    return wg__fail(err, WG_EINVAL, "--%s: '%.*s%s' is not %s", name, shown, value,
                    value[shown] != '\0' ? "..." : "", accepted);
}

enum wg_code wg__option_reject_name(const char *name, const char *value, const char *kind,
                                    const char *const *known, size_t count, struct wg_error *err)
{
    struct wg_buffer text;
    wg__buffer_init(&text);
    wg__buffer_printf(&text, "%s (", kind);
    for (size_t i = 0; i < count && i < NAMES_SHOWN_MAX; i++)
        wg__buffer_printf(&text, "%s%s", i > 0 ? ", " : "", known[i]);
    if (count > NAMES_SHOWN_MAX)
        wg__buffer_printf(&text, " and %zu more", count - NAMES_SHOWN_MAX);
    wg__buffer_puts(&text, ")");
    const char *nearest = wg__nearest_word(value, known, count);
    if (nearest != NULL)
        wg__buffer_printf(&text, "; did you mean '%s'?", nearest);
    const enum wg_code code = text.failed ? wg__fail(err, WG_ENOMEM, "out of memory")
                                          : wg__option_reject(err, name, value, text.data);
    wg__buffer_fini(&text);
    return code;
}

enum wg_code wg__option_check_name(const char *name, const char *value, const char *kind,
                                   const char *const *known, size_t count, struct wg_error *err)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(value, known[i]) == 0)
            return WG_OK;
    return wg__option_reject_name(name, value, kind, known, count, err);
}

/* As wg__option_reject, with what the table says. When memory has run out, the message ends early.
 */
static enum wg_code reject(const struct wg_option *option, const char *value, struct wg_error *err)
{
    struct wg_buffer accepted;
    wg__buffer_init(&accepted);
    describe(option, &accepted);
    const enum wg_code code = wg__option_reject(
        err, option->name, value, accepted.failed ? "an accepted value" : accepted.data);
    wg__buffer_fini(&accepted);
    return code;
}

static bool is_choice(const struct wg_option *option, const char *value)
{
    if (option->choices == NULL)
        return true;
    for (size_t i = 0; option->choices[i] != NULL; i++)
        if (strcmp(option->choices[i], value) == 0)
            return true;
    return false;
}

static bool is_in_range(const struct wg_option *option, double value)
{
    if (option->min_is_excluded ? !(value > option->min) : !(value >= option->min))
        return false;
    return value <= range_max(option);
}

static enum wg_code set_text(const struct wg_option *option, const char *value, void *field,
                             struct wg_error *err)
{
    if (value[0] == '\0')
        return wg__fail(err, WG_EINVAL, "--%s: the value is empty, expected %s (%s)", option->name,
                        option->value, option->help);
    if (!is_choice(option, value))
        return reject(option, value, err);
    if (option->kind == WG_OPTION_KIND_STRING) {
        *(const char **)field = value;
        return WG_OK;
    }
    struct wg_option_list *list = field;
    if (list->count == WG_OPTION_LIST_MAX)
        return wg__fail(err, WG_EINVAL, "--%s: '%s' is one too many, at most %d are accepted",
                        option->name, value, WG_OPTION_LIST_MAX);
    list->items[list->count++] = value;
    return WG_OK;
}

/* Converts and stores one value. */
static enum wg_code set_value(const struct wg_option *option, const char *value, void *values,
                              struct wg_error *err)
{
    void *field = (char *)values + option->offset;
    double number;
    uint64_t whole;
    switch (option->kind) {
    case WG_OPTION_KIND_FLAG:
        *(bool *)field = true;
        return WG_OK;
    case WG_OPTION_KIND_STRING:
    case WG_OPTION_KIND_LIST:
        return set_text(option, value, field, err);
    case WG_OPTION_KIND_DOUBLE:
        if (!wg__parse_double(value, &number) || !is_in_range(option, number))
            return reject(option, value, err);
        *(double *)field = number;
        return WG_OK;
    case WG_OPTION_KIND_UNSIGNED:
        if (!wg__parse_uint64(value, &whole) || whole > UINT_MAX ||
            !is_in_range(option, (double)whole))
            return reject(option, value, err);
        *(unsigned *)field = (unsigned)whole;
        return WG_OK;
    case WG_OPTION_KIND_SEED:
        if (!wg__parse_uint64(value, &whole))
            return reject(option, value, err);
        *(uint64_t *)field = whole;
        return WG_OK;
    case WG_OPTION_KIND_DURATION:
        if (!wg__parse_duration(value, &number) || !is_in_range(option, number))
            return reject(option, value, err);
        *(double *)field = number;
        return WG_OK;
    case WG_OPTION_KIND_COUNT:
        break;
    }
    assert(false && "an option of an unknown kind");
    return WG_EINVAL;
}

/* The option whose name is the first `length` bytes of `name`. */
static const struct wg_option *find(const struct wg_option_set *set, const char *name,
                                    size_t length)
{
    for (size_t i = 0; i < set->count; i++) {
        const char *known = set->options[i].name;
        if (strncmp(known, name, length) == 0 && known[length] == '\0')
            return &set->options[i];
    }
    return NULL;
}

static enum wg_code reject_unknown(const struct wg_option_set *set, const char *argument,
                                   struct wg_error *err)
{
    enum { KNOWN_MAX = 128 };
    const char *known[KNOWN_MAX] = {"help"};
    size_t known_count = 1;
    for (size_t i = 0; i < set->count && known_count < KNOWN_MAX; i++)
        known[known_count++] = set->options[i].name;
    if (strncmp(argument, "--help=", 7) == 0)
        return wg__fail(err, WG_EINVAL, "--help takes no value, but got '%s'", argument + 7);
    const int shown = (int)strcspn(argument, "=");
    char word[WORD_MAX + 2];
    const size_t dashes = strspn(argument, "-");
    (void)snprintf(word, sizeof word, "%.*s", shown - (int)dashes > 0 ? shown - (int)dashes : 0,
                   argument + dashes);
    const char *nearest = wg__nearest_word(word, known, known_count);
    if (nearest != NULL)
        return wg__fail(err, WG_EINVAL, "unknown option '%.*s'; did you mean '--%s'?", shown,
                        argument, nearest);
    return wg__fail(err, WG_EINVAL, "unknown option '%.*s'; see '%s --help'", shown, argument,
                    set->command);
}

static enum wg_code reject_operand(const struct wg_option_set *set, const char *argument,
                                   struct wg_error *err)
{
    if (set->takes_command)
        return wg__fail(err, WG_EINVAL,
                        "unexpected argument '%s'; a command stands behind --: '%s "
                        "-- %s'",
                        argument, set->command, argument);
    return wg__fail(err, WG_EINVAL, "unexpected argument '%s'; see '%s --help'", argument,
                    set->command);
}

/* The option that `argument` names, "--name", "--name=value" or "-n", or NULL; and its value, when
 * that stands in the same word. */
static const struct wg_option *find_named(const struct wg_option_set *set, const char *argument,
                                          const char **value_out)
{
    *value_out = NULL;
    if (argument[1] == '-') {
        const char *name = argument + 2;
        const size_t length = strcspn(name, "=");
        if (name[length] == '=')
            *value_out = name + length + 1;
        return find(set, name, length);
    }
    for (size_t i = 0; i < set->count; i++)
        if (set->options[i].letter == argument[1] && argument[2] == '\0')
            return &set->options[i];
    return NULL;
}

static bool is_word(const char *argument)
{
    return argument[0] != '-' || argument[1] == '\0';
}

/* Whether argv[index], behind an option, is its value. */
static bool is_value(const struct wg_option *option, int argc, char *const argv[], int index)
{
    return option->kind != WG_OPTION_KIND_FLAG && index < argc &&
           strncmp(argv[index], "--", 2) != 0;
}

void wg__options_words_first(const struct wg_option_set *set, int argc, char *argv[])
{
    int words = 1; /* those before argv[words] are */
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        char *argument = argv[i];
        if (is_word(argument)) {
            memmove(&argv[words + 1], &argv[words], (size_t)(i - words) * sizeof argv[0]);
            argv[words++] = argument;
            continue;
        }
        const char *value;
        const struct wg_option *option = find_named(set, argument, &value);
        if (option == NULL)
            return;
        i += value == NULL && is_value(option, argc, argv, i + 1);
    }
}

/* Reads the option at argv[*index], and its value, and moves the index beyond them. */
static enum wg_code parse_one(const struct wg_option_set *set, int argc, char *const argv[],
                              int *index, void *values, struct wg_error *err)
{
    const char *argument = argv[*index];
    if (is_word(argument))
        return reject_operand(set, argument, err);
    const char *value;
    const struct wg_option *option = find_named(set, argument, &value);
    if (option == NULL)
        return reject_unknown(set, argument, err);
    ++*index;
    if (option->kind == WG_OPTION_KIND_FLAG) {
        if (value != NULL)
            return wg__fail(err, WG_EINVAL, "--%s takes no value, but got '%s'", option->name,
                            value);
        return set_value(option, "", values, err);
    }
    if (value == NULL && is_value(option, argc, argv, *index))
        value = argv[(*index)++];
    if (value != NULL)
        return set_value(option, value, values, err);
    struct wg_buffer accepted;
    wg__buffer_init(&accepted);
    describe(option, &accepted);
    const enum wg_code code = wg__fail(err, WG_EINVAL, "--%s needs a value: %s", option->name,
                                       accepted.failed ? option->value : accepted.data);
    wg__buffer_fini(&accepted);
    return code;
}

static bool is_given(const struct wg_option *option, const void *values)
{
    const void *field = (const char *)values + option->offset;
    if (option->kind == WG_OPTION_KIND_LIST)
        return ((const struct wg_option_list *)field)->count > 0;
    assert(option->kind == WG_OPTION_KIND_STRING);
    return *(const char *const *)field != NULL;
}

/* What stands behind the `--` at `dashes`. */
static enum wg_code take_command(const struct wg_option_set *set, int argc, char *const argv[],
                                 int dashes, void *values, struct wg_error *err)
{
    if (dashes + 1 == argc && set->takes_command) /* "-- $CMD" with nothing in CMD, say */
        return wg__fail(err, WG_EINVAL, "there is no command behind --");
    if (dashes + 1 < argc && !set->takes_command)
        return wg__fail(err, WG_EINVAL, "unexpected argument '%s'; see '%s --help'",
                        argv[dashes + 1], set->command);
    if (set->takes_command) {
        struct wg_option_command *command = (void *)((char *)values + set->command_offset);
        command->count = (size_t)(argc - dashes - 1);
        command->words = argv + dashes + 1;
    }
    return WG_OK;
}

enum wg_code wg__options_parse(const struct wg_option_set *set, int argc, char *const argv[],
                               void *values, bool *wants_help, struct wg_error *err)
{
    *wants_help = false;
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            *wants_help = true;
            return WG_OK;
        }
    }
    int index = 1;
    while (index < argc && strcmp(argv[index], "--") != 0) {
        const enum wg_code code = parse_one(set, argc, argv, &index, values, err);
        if (code != WG_OK)
            return code;
    }
    if (index < argc) {
        const enum wg_code code = take_command(set, argc, argv, index, values, err);
        if (code != WG_OK)
            return code;
    }
    for (size_t i = 0; i < set->count; i++) {
        const struct wg_option *option = &set->options[i];
        if (option->is_required && !is_given(option, values))
            return wg__fail(err, WG_EINVAL, "--%s %s is required", option->name, option->value);
    }
    return WG_OK;
}

/* Appends `text` in lines of at most HELP_COLUMN_MAX, the later ones being indented. The cursor
 * stands at `column`. */
static void append_wrapped(struct wg_buffer *out, const char *text, size_t column, size_t indent)
{
    bool is_line_start = true;
    while (*text != '\0') {
        const size_t length = strcspn(text, " ");
        if (!is_line_start && column + 1 + length > HELP_COLUMN_MAX) {
            wg__buffer_printf(out, "\n%*s", (int)indent, "");
            column = indent;
            is_line_start = true;
        }
        if (!is_line_start) {
            wg__buffer_puts(out, " ");
            column++;
        }
        wg__buffer_append(out, text, length);
        column += length;
        is_line_start = false;
        text += length;
        text += strspn(text, " ");
    }
    wg__buffer_puts(out, "\n");
}

/* Appends "; default X", if the option has a default. */
static void append_default(const struct wg_option *option, const void *values,
                           struct wg_buffer *out)
{
    const void *field = (const char *)values + option->offset;
    const char *blank = option->unit != NULL ? " " : "", *unit = option->unit ? option->unit : "";
    char duration[WG_DURATION_TEXT_SIZE];
    if (option->fallback != NULL) {
        wg__buffer_printf(out, "; default: %s", option->fallback);
        return;
    }
    switch (option->kind) {
    case WG_OPTION_KIND_STRING:
        if (is_given(option, values))
            wg__buffer_printf(out, "; default: %s", *(const char *const *)field);
        break;
    case WG_OPTION_KIND_DOUBLE:
        wg__buffer_printf(out, "; default: %.10g%s%s", *(const double *)field, blank, unit);
        break;
    case WG_OPTION_KIND_UNSIGNED:
        wg__buffer_printf(out, "; default: %u%s%s", *(const unsigned *)field, blank, unit);
        break;
    case WG_OPTION_KIND_SEED:
        wg__buffer_printf(out, "; default: %llu", (unsigned long long)*(const uint64_t *)field);
        break;
    case WG_OPTION_KIND_DURATION:
        wg__format_duration(duration, *(const double *)field);
        wg__buffer_printf(out, "; default: %s", duration);
        break;
    case WG_OPTION_KIND_FLAG:
    case WG_OPTION_KIND_LIST:
    case WG_OPTION_KIND_COUNT:
        break;
    }
}

/* Appends what the option accepts and its default: " (a number in 0 .. 1; default: 0.5)". */
static void append_note(const struct wg_option *option, const void *values, struct wg_buffer *out)
{
    struct wg_buffer note;
    wg__buffer_init(&note);
    if (option->kind == WG_OPTION_KIND_SEED)
        wg__buffer_puts(&note, "; a whole number");
    else if (option->kind == WG_OPTION_KIND_DOUBLE || option->kind == WG_OPTION_KIND_UNSIGNED ||
             option->kind == WG_OPTION_KIND_DURATION || option->choices != NULL) {
        wg__buffer_puts(&note, "; ");
        describe(option, &note);
    }
    if (option->kind == WG_OPTION_KIND_LIST)
        wg__buffer_puts(&note, "; repeatable");
    if (option->is_required)
        wg__buffer_puts(&note, "; required");
    append_default(option, values, &note);
    out->failed |= note.failed;
    if (!note.failed && note.length > 2)
        wg__buffer_printf(out, " (%s)", note.data + 2);
    wg__buffer_fini(&note);
}

static void append_option(const struct wg_option *option, const void *values, struct wg_buffer *out)
{
    const size_t start = out->length;
    wg__buffer_puts(out, "  ");
    if (option->letter != 0)
        wg__buffer_printf(out, "-%c, ", option->letter);
    wg__buffer_printf(out, "--%s%s%s", option->name, option->value ? " " : "",
                      option->value ? option->value : "");
    if (out->length - start + 2 > LABEL_COLUMN)
        wg__buffer_printf(out, "\n%*s", LABEL_COLUMN, "");
    else
        wg__buffer_printf(out, "%*s", (int)(LABEL_COLUMN - (out->length - start)), "");
    struct wg_buffer text;
    wg__buffer_init(&text);
    wg__buffer_puts(&text, option->help);
    append_note(option, values, &text);
    out->failed |= text.failed;
    if (!text.failed)
        append_wrapped(out, text.data, LABEL_COLUMN, LABEL_COLUMN);
    wg__buffer_fini(&text);
}

void wg__options_help(const struct wg_option_set *set, const void *values, struct wg_buffer *out)
{
    wg__buffer_printf(out, "usage: %s", set->command);
    if (set->word != NULL)
        wg__buffer_printf(out, " %s", set->word);
    for (size_t i = 0; i < set->count; i++)
        if (set->options[i].is_required)
            wg__buffer_printf(out, " --%s %s", set->options[i].name, set->options[i].value);
    wg__buffer_printf(out, " [OPTION]...%s\n\n", set->takes_command ? " [-- CMD [ARG]...]" : "");
    append_wrapped(out, set->summary, 0, 0);
    wg__buffer_puts(out, "\noptions:\n");
    for (size_t i = 0; i < set->count; i++)
        append_option(&set->options[i], values, out);
    wg__buffer_printf(out, "  --help%*sShow this text\n", LABEL_COLUMN - 8, "");
    if (set->epilog != NULL)
        wg__buffer_printf(out, "\n%s\n", set->epilog);
}
