/* SPDX-License-Identifier: MIT
 *
 * Command-line options as a table.
 *
 * A command keeps its settings in one struct, fills it with the defaults, and describes each option
 * by one row: name, the field that it sets, range, unit, help. The same rows parse the arguments
 * and write `--help`, where the default is read back from the struct, so the two can't disagree.
 *
 *     struct args { double eta; unsigned seeds; struct wg_option_list gpus; bool json; };
 *     static const struct wg_option options[] = {
 *         {.name = "eta", WG_OPTION_DOUBLE(struct args, eta), .value = "SHARE", .min = 0, .max = 1,
 *          .help = "Weight of energy against time"},
 *         {.name = "seeds", WG_OPTION_UNSIGNED(struct args, seeds), .value = "N", .min = 1,
 *          .max = 1000, .help = "Repetitions, each with its own random stream"},
 *         {.name = "gpu", WG_OPTION_LIST(struct args, gpus), .value = "NAME", .help = "GPU types"},
 *         {.name = "json", WG_OPTION_FLAG(struct args, json), .help = "Write JSON"},
 *     };
 *     static const struct wg_option_set set = {
 *         .command = "wattgov simulate training", .summary = "Replay training jobs.",
 *         .options = options, .count = sizeof options / sizeof options[0]};
 *
 * We don't use getopt_long: it accepts abbreviations, which break scripts when an option is added,
 * it prints for itself, and its state is global. The rules here:
 *   - `--name value` and `--name=value`; a value that begins with `--` needs the second form;
 *   - names are exact; an unknown name is answered with the nearest known one;
 *   - a list option collects its values in order; any other given twice takes the last value;
 *   - `--` ends the options; other arguments that are no options are refused. A set that takes a
 *     command gets the words behind `--`: "wattgov measure -- python train.py";
 *   - an option may have a letter too: `-o FILE`;
 *   - `--help` and `-h` are known to every command, and win over errors elsewhere on the line;
 *   - on an error the struct may hold the values that stood before it.
 * Errors are one line and name the option, the value and what is accepted.
 *
 * Owns: nothing; texts in the struct point into argv.    Threads: pure, any thread.
 */
#ifndef WG_CLI_OPTIONS_H
#define WG_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct wg_buffer;

enum { WG_OPTION_LIST_MAX = 64 };

/* The values of a repeatable option. Without a value on the command line it is empty. */
struct wg_option_list {
    size_t count;
    const char *items[WG_OPTION_LIST_MAX];
};

/* The words behind `--`, ended by NULL as argv is: fit for execvp. */
struct wg_option_command {
    size_t count;
    char *const *words;
};

enum wg_option_kind {
    WG_OPTION_KIND_FLAG,     /* bool */
    WG_OPTION_KIND_STRING,   /* const char *; never empty when given */
    WG_OPTION_KIND_LIST,     /* struct wg_option_list; repeatable */
    WG_OPTION_KIND_DOUBLE,   /* double in min .. max */
    WG_OPTION_KIND_UNSIGNED, /* unsigned in min .. max */
    WG_OPTION_KIND_SEED,     /* uint64_t, the whole range */
    WG_OPTION_KIND_DURATION, /* double, seconds in min .. max; written with a unit: "100ms" */
    WG_OPTION_KIND_COUNT,
};

/* Kind and field of an option in one; a field of the wrong type doesn't compile. */
#define WG_OPTION_FIELD(type, field, kind_, field_type)                                            \
    .kind = kind_, .offset = _Generic(((type *)0)->field, field_type: offsetof(type, field))
#define WG_OPTION_FLAG(type, field) WG_OPTION_FIELD(type, field, WG_OPTION_KIND_FLAG, bool)
#define WG_OPTION_STRING(type, field)                                                              \
    WG_OPTION_FIELD(type, field, WG_OPTION_KIND_STRING, const char *)
#define WG_OPTION_LIST(type, field)                                                                \
    WG_OPTION_FIELD(type, field, WG_OPTION_KIND_LIST, struct wg_option_list)
#define WG_OPTION_DOUBLE(type, field) WG_OPTION_FIELD(type, field, WG_OPTION_KIND_DOUBLE, double)
#define WG_OPTION_UNSIGNED(type, field)                                                            \
    WG_OPTION_FIELD(type, field, WG_OPTION_KIND_UNSIGNED, unsigned)
#define WG_OPTION_SEED(type, field) WG_OPTION_FIELD(type, field, WG_OPTION_KIND_SEED, uint64_t)
#define WG_OPTION_DURATION(type, field)                                                            \
    WG_OPTION_FIELD(type, field, WG_OPTION_KIND_DURATION, double)

/* For a set that takes a command: where its words go. */
#define WG_OPTION_COMMAND(type, field)                                                             \
    .takes_command = true, .command_offset = _Generic(((type *)0)->field,                          \
                               struct wg_option_command: offsetof(type, field))

struct wg_option {
    const char *name; /* without the dashes */
    char letter;      /* "-o" beside "--output"; 0: none */
    enum wg_option_kind kind;
    size_t offset;
    const char *value;    /* the placeholder in the help: "N", "FILE"; NULL for flags */
    const char *help;     /* one sentence; wrapped as needed */
    const char *unit;     /* of the number, for the help and the errors; NULL: none */
    double min;           /* DOUBLE, UNSIGNED, DURATION: the range, ends included; */
    double max;           /*   HUGE_VAL: no upper end. UNSIGNED stops at UINT_MAX */
    bool min_is_excluded; /* DOUBLE: the value must be more than min */
    bool is_required;     /* STRING, LIST: must be given */
    const char *const
        *choices;         /* STRING, LIST: the accepted words, ended by NULL; NULL: any text */
    const char *fallback; /* what the help calls the default; NULL: read from the struct */
};

struct wg_option_set {
    const char *command; /* the whole of it: "wattgov simulate training" */
    const char *word; /* for the help: the word beside the options ("JOB"), which the command takes
                         from argv itself; NULL: none */
    const char *summary; /* one or more sentences below the usage line */
    const struct wg_option *options;
    size_t count;
    const char *epilog; /* shown last, as it is (examples); NULL: nothing */
    bool takes_command; /* words may follow `--`; see WG_OPTION_COMMAND */
    size_t command_offset;
};

/* Reads argv[1] .. argv[argc - 1] into `values`, the command's struct. `*wants_help` says whether
 * --help was among them; then nothing else was looked at. WG_EINVAL: see `err`; its text lacks the
 * command's name. */
enum wg_code wg__options_parse(const struct wg_option_set *set, int argc, char *const argv[],
                               void *values, bool *wants_help, struct wg_error *err);

/* For a set with a `word`: moves the words that stand among or behind the options before them, up
 * to `--` and in their order. Ends at an option that is unknown: it may have a value. */
void wg__options_words_first(const struct wg_option_set *set, int argc, char *argv[]);

/* Appends the text of `--help`. `values` holds the defaults. */
void wg__options_help(const struct wg_option_set *set, const void *values, struct wg_buffer *out);

/* The error for a text that the table can't judge alone: "--drift: 'x' is not JOB@RECURRENCE".
 * `name` without the dashes; `accepted` completes "'x' is not ...". Returns WG_EINVAL. */
enum wg_code wg__option_reject(struct wg_error *err, const char *name, const char *value,
                               const char *accepted);

/* The same for a name that is not one of `count` known ones, which are listed, the nearest one as a
 * suggestion: "--gpu: 'h100' is not a GPU of the trace (a40, v100)". The second compares first, by
 * case, and returns WG_OK when the name is known. */
enum wg_code wg__option_reject_name(const char *name, const char *value, const char *kind,
                                    const char *const *known, size_t count, struct wg_error *err);
enum wg_code wg__option_check_name(const char *name, const char *value, const char *kind,
                                   const char *const *known, size_t count, struct wg_error *err);

/* The one of `count` words that is nearest to `word` (optimal string alignment distance), or NULL
 * when none is near enough to be a typing error. */
const char *wg__nearest_word(const char *word, const char *const *words, size_t count);

#endif
