/* SPDX-License-Identifier: MIT
 *
 * The tree of sub-commands: `wattgov simulate training`.
 *
 * A command either runs or has children; the dispatcher walks the tree by the first words of argv.
 * Exit status: 0 done, 1 failed, 2 wrong usage. Results go to stdout, talk to stderr. SIGPIPE is
 * ignored, so a closed pipe is an error like a full disk, and main checks stdout at the end.
 *
 * A command's `run` looks like this:
 *
 *     static int run(int argc, char *argv[])
 *     {
 *         struct args args = {.eta = 0.5, .seeds = 20};
 *         int status = WG_EXIT_OK;
 *         if (!wg__command_begin(&set, argc, argv, &args, &status))
 *             return status;
 *         ...
 *         return wg__command_fail(&set, &err);
 *     }
 *
 * Threads: the main thread.
 */
#ifndef WG_CLI_COMMAND_H
#define WG_CLI_COMMAND_H

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"

struct wg_buffer;
struct wg_option_set;

enum { WG_EXIT_OK = 0, WG_EXIT_FAILED = 1, WG_EXIT_USAGE = 2 };

struct wg_command {
    const char *name;
    const char *summary;                      /* one line for the list of commands */
    int (*run)(int argc, char *argv[]);       /* argv[0] is the command's own name */
    const struct wg_command *const *children; /* ended by NULL; `run` is NULL then */
    const char *epilog; /* of the list of children: shown last, as it is; NULL: nothing */
    bool is_hidden;     /* not listed: programs call it, no user */
};

extern const struct wg_command wg__command_devices;
extern const struct wg_command wg__command_guard;
extern const struct wg_command wg__command_job;
extern const struct wg_command wg__command_measure;
extern const struct wg_command wg__command_record;
extern const struct wg_command wg__command_restore;
extern const struct wg_command wg__command_simulate;
extern const struct wg_command wg__command_simulate_serving;
extern const struct wg_command wg__command_simulate_tuning;
extern const struct wg_command wg__command_top;
extern const struct wg_command wg__command_train;
extern const struct wg_command wg__command_tune;
extern const struct wg_command wg__command_wave;

/* Runs what argv asks for, below `root`; returns the exit status. Answers --help at each level. */
int wg__command_dispatch(const struct wg_command *root, int argc, char *argv[]);

/* The list of a command's children, for --help. `path` is the whole command: "wattgov simulate". */
void wg__command_help(const struct wg_command *command, const char *path, struct wg_buffer *out);

/* For a command whose first argument is a word, not an option: takes it out of argv, so that the
 * options follow. NULL: there is none (an option or nothing). */
const char *wg__command_word(int *argc, char ***argv);

/* Parses the options. False: the command ends now with `*status_out`, help or error being printed.
 */
bool wg__command_begin(const struct wg_option_set *set, int argc, char *argv[], void *values,
                       int *status_out);

/* Prints one line "wattgov simulate training: TEXT" on stderr; returns the exit status:
 * WG_EXIT_USAGE for WG_EINVAL (what the user gave), WG_EXIT_FAILED for everything else. */
int wg__command_fail(const struct wg_option_set *set, const struct wg_error *err);

/* Appends the command line as a shell takes it, words in quotes where that is needed; `argv[0]` is
 * left out for `name`: "wattgov tune". */
void wg__command_line(const char *name, int argc, char *const *argv, struct wg_buffer *out);

/* Writes a command's results to `stream` (stdout) and flushes. WG_ENOMEM for a failed buffer,
 * WG_EIO with the cause for a closed pipe or a full disk. */
enum wg_code wg__command_print(FILE *stream, const struct wg_buffer *text, struct wg_error *err);

#endif
