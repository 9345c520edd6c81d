/* SPDX-License-Identifier: MIT
 *
 * Walking the tree of commands, and the few places where a command talks to the terminal.
 *
 * Errors are printed with one write of one line, so that lines of several processes don't mix.
 */
#include "cli/command.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/buffer.h"
#include "cli/markup.h"
#include "cli/options.h"

enum { PATH_MAX_BYTES = 128, CHILDREN_MAX = 32 };

/* One line on stderr. Line ends and control characters in arguments become blanks. */
static void print_error(const char *path, const char *text)
{
    struct wg_buffer line;
    wg__buffer_init(&line);
    wg__append_plain(&line, path);
    wg__buffer_puts(&line, ": ");
    wg__append_plain(&line, text);
    /* Nobody can be told when stderr fails. */
    if (line.failed)
        (void)fprintf(stderr, "%s: out of memory\n", path);
    else
        (void)fprintf(stderr, "%s\n", line.data);
    wg__buffer_fini(&line);
}

enum wg_code wg__command_print(FILE *stream, const struct wg_buffer *text, struct wg_error *err)
{
    if (text->failed)
        return wg__fail(err, WG_ENOMEM, "out of memory while writing the results");
    errno = 0;
    if ((text->length > 0 && fwrite(text->data, 1, text->length, stream) != text->length) ||
        fflush(stream) != 0)
        return wg__fail(err, WG_EIO, "cannot write the results: %s",
                        errno != 0 ? strerror(errno) : "unknown cause");
    return WG_OK;
}

/* Prints a help text on stdout; returns the exit status. */
static int print_help(const char *path, const struct wg_buffer *text)
{
    struct wg_error err;
    if (wg__command_print(stdout, text, &err) == WG_OK)
        return WG_EXIT_OK;
    print_error(path, err.text);
    return WG_EXIT_FAILED;
}

int wg__command_fail(const struct wg_option_set *set, const struct wg_error *err)
{
    print_error(set->command, err->text);
    return err->code == WG_EINVAL ? WG_EXIT_USAGE : WG_EXIT_FAILED;
}

bool wg__command_begin(const struct wg_option_set *set, int argc, char *argv[], void *values,
                       int *status_out)
{
    struct wg_error err;
    bool wants_help = false;
    if (wg__options_parse(set, argc, argv, values, &wants_help, &err) != WG_OK) {
        *status_out = wg__command_fail(set, &err);
        return false;
    }
    if (!wants_help)
        return true;
    struct wg_buffer text;
    wg__buffer_init(&text);
    wg__options_help(set, values, &text);
    *status_out = print_help(set->command, &text);
    wg__buffer_fini(&text);
    return false;
}

void wg__command_help(const struct wg_command *command, const char *path, struct wg_buffer *out)
{
    size_t widest = 0;
    for (size_t i = 0; command->children[i] != NULL; i++)
        if (!command->children[i]->is_hidden && strlen(command->children[i]->name) > widest)
            widest = strlen(command->children[i]->name);
    wg__buffer_printf(out, "usage: %s COMMAND [OPTION]...\n\n%s\n\ncommands:\n", path,
                      command->summary);
    for (size_t i = 0; command->children[i] != NULL; i++)
        if (!command->children[i]->is_hidden)
            wg__buffer_printf(out, "  %-*s  %s\n", (int)widest, command->children[i]->name,
                              command->children[i]->summary);
    wg__buffer_printf(out, "\n'%s COMMAND --help' explains a command.\n", path);
    if (command->epilog != NULL)
        wg__buffer_printf(out, "\n%s\n", command->epilog);
}

static int help(const struct wg_command *command, const char *path)
{
    struct wg_buffer text;
    wg__buffer_init(&text);
    wg__command_help(command, path, &text);
    const int status = print_help(path, &text);
    wg__buffer_fini(&text);
    return status;
}

static int reject(const struct wg_command *command, const char *path, const char *word)
{
    const char *names[CHILDREN_MAX];
    size_t count = 0;
    for (size_t i = 0; command->children[i] != NULL; i++) {
        assert(count < CHILDREN_MAX);
        if (!command->children[i]->is_hidden)
            names[count++] = command->children[i]->name;
    }
    const char *kind = word[0] == '-' ? "option" : "command";
    const char *nearest = word[0] == '-' ? NULL : wg__nearest_word(word, names, count);
    struct wg_error err;
    if (nearest != NULL)
        (void)wg__fail(&err, WG_EINVAL, "unknown command '%s'; did you mean '%s'?", word, nearest);
    else
        (void)wg__fail(&err, WG_EINVAL, "unknown %s '%s'; see '%s --help'", kind, word, path);
    print_error(path, err.text);
    return WG_EXIT_USAGE;
}

const char *wg__command_word(int *argc, char ***argv)
{
    if (*argc < 2 || (*argv)[1][0] == '-')
        return NULL;
    ++*argv;
    --*argc;
    return (*argv)[0];
}

int wg__command_dispatch(const struct wg_command *root, int argc, char *argv[])
{
    const struct wg_command *command = root;
    char path[PATH_MAX_BYTES];
    (void)snprintf(path, sizeof path, "%s", root->name);
    while (command->run == NULL) {
        if (argc < 2) {
            struct wg_error err;
            (void)wg__fail(&err, WG_EINVAL, "which command? See '%s --help'", path);
            print_error(path, err.text);
            return WG_EXIT_USAGE;
        }
        argc--;
        argv++;
        if (strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0)
            return help(command, path);
        const struct wg_command *child = NULL;
        for (size_t i = 0; command->children[i] != NULL && child == NULL; i++)
            if (strcmp(command->children[i]->name, argv[0]) == 0)
                child = command->children[i];
        if (child == NULL)
            return reject(command, path, argv[0]);
        const size_t length = strlen(path);
        (void)snprintf(path + length, sizeof path - length, " %s", child->name);
        command = child;
    }
    return command->run(argc, argv);
}

/* -- What was called --------------------------------------------------------------------------- */

void wg__command_line(const char *name, int argc, char *const *argv, struct wg_buffer *out)
{
    static const char plain_characters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_=./:,@%+";
    wg__buffer_puts(out, name);
    for (int i = 1; i < argc; i++) {
        const bool is_plain =
            argv[i][0] != '\0' && strspn(argv[i], plain_characters) == strlen(argv[i]);
        wg__buffer_puts(out, is_plain ? " " : " '");
        for (const char *c = argv[i]; *c != '\0'; c++)
            wg__buffer_append(out, *c == '\'' ? "'\\''" : c, *c == '\'' ? 4 : 1);
        wg__buffer_puts(out, is_plain ? "" : "'");
    }
}
