/* SPDX-License-Identifier: MIT
 *
 * The tree of commands, exit statuses, and what happens when nobody reads the results.
 */
#include "cli/command.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/buffer.h"
#include "cli/options.h"
#include "support/check.h"

static int seen_argc;
static char *seen_name;

static int run_training(int argc, char *argv[])
{
    seen_argc = argc;
    seen_name = argv[0];
    return 7;
}

static const struct wg_command training = {
    .name = "training", .summary = "Replay training jobs", .run = run_training};
static const struct wg_command *const simulations[] = {&training, NULL};
static const struct wg_command simulate = {
    .name = "simulate", .summary = "Replay measured data", .children = simulations};
static const struct wg_command *const commands[] = {&simulate, NULL};
static const struct wg_command root = {
    .name = "wattgov", .summary = "Governs.", .children = commands};

/* Diverts a standard descriptor into memory, and back. */
struct capture {
    int fd;
    int saved;
    int memory;
    char text[4096];
};

static void capture_begin(struct capture *capture, int fd)
{
    (void)fflush(NULL);
    capture->fd = fd;
    capture->saved = dup(fd);
    capture->memory = memfd_create("capture", MFD_CLOEXEC);
    if (capture->saved < 0 || capture->memory < 0 || dup2(capture->memory, fd) != fd)
        fail_msg("descriptor %d cannot be diverted", fd);
}

static void capture_end(struct capture *capture)
{
    (void)fflush(NULL);
    if (capture->saved < 0 || dup2(capture->saved, capture->fd) != capture->fd)
        fail_msg("descriptor %d cannot be restored", capture->fd);
    const ssize_t length = pread(capture->memory, capture->text, sizeof capture->text - 1, 0);
    assert_true(length >= 0);
    capture->text[length < 0 ? 0 : length] = '\0';
    (void)close(capture->memory);
    (void)close(capture->saved);
}

struct result {
    int status;
    struct capture out;
    struct capture err;
};

/* Runs up to three words behind "wattgov". */
static void dispatch(struct result *result, const char *a, const char *b, const char *c)
{
    char words[4][64];
    const char *given[] = {"wattgov", a, b, c};
    char *argv[5] = {NULL};
    int argc = 0;
    for (; argc < 4 && given[argc] != NULL; argc++) {
        (void)snprintf(words[argc], sizeof words[argc], "%s", given[argc]);
        argv[argc] = words[argc];
    }
    capture_begin(&result->out, STDOUT_FILENO);
    capture_begin(&result->err, STDERR_FILENO);
    result->status = wg__command_dispatch(&root, argc, argv);
    capture_end(&result->err);
    capture_end(&result->out);
}

static void runs_the_nested_command(void **state)
{
    (void)state;
    struct result r;
    dispatch(&r, "simulate", "training", "--json");
    assert_int_equal(r.status, 7);
    assert_int_equal(seen_argc, 2);
    assert_non_null(seen_name);
    assert_string_equal(r.out.text, "");
    assert_string_equal(r.err.text, "");
}

static void explains_each_level_on_stdout(void **state)
{
    (void)state;
    struct result r;
    dispatch(&r, "--help", NULL, NULL);
    assert_int_equal(r.status, WG_EXIT_OK);
    assert_string_equal(r.out.text, "usage: wattgov COMMAND [OPTION]...\n\nGoverns.\n\ncommands:\n"
                                    "  simulate  Replay measured data\n\n"
                                    "'wattgov COMMAND --help' explains a command.\n");
    dispatch(&r, "simulate", "-h", NULL);
    assert_int_equal(r.status, WG_EXIT_OK);
    assert_non_null(strstr(r.out.text, "usage: wattgov simulate COMMAND"));
    assert_string_equal(r.err.text, "");
}

static void refuses_unknown_commands_in_one_line(void **state)
{
    (void)state;
    static const struct {
        const char *words[2];
        const char *message;
    } cases[] = {
        {{"simluate", NULL}, "wattgov: unknown command 'simluate'; did you mean 'simulate'?\n"},
        {{"simulate", "trainig"},
         "wattgov simulate: unknown command 'trainig'; did you mean 'training'?\n"},
        {{"zzzzzz", NULL}, "wattgov: unknown command 'zzzzzz'; see 'wattgov --help'\n"},
        {{"--json", NULL}, "wattgov: unknown option '--json'; see 'wattgov --help'\n"},
        {{"a\nb\033", NULL}, "wattgov: unknown command 'a?b?'; see 'wattgov --help'\n"},
        {{NULL, NULL}, "wattgov: which command? See 'wattgov --help'\n"},
        {{"simulate", NULL}, "wattgov simulate: which command? See 'wattgov simulate --help'\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct result r;
        dispatch(&r, cases[i].words[0], cases[i].words[1], NULL);
        assert_int_equal(r.status, WG_EXIT_USAGE);
        assert_string_equal(r.out.text, "");
        assert_string_equal(r.err.text, cases[i].message);
    }
}

struct args {
    unsigned seeds;
};

static const struct wg_option options[] = {{.name = "seeds",
                                            WG_OPTION_UNSIGNED(struct args, seeds),
                                            .value = "N",
                                            .min = 1,
                                            .max = 9,
                                            .help = "Repetitions"}};
static const struct wg_option_set set = {
    .command = "wattgov x", .summary = "Does x.", .options = options, .count = 1};

static bool begin(struct result *result, struct args *args, const char *word)
{
    char name[] = "x", copy[64];
    (void)snprintf(copy, sizeof copy, "%s", word);
    char *argv[] = {name, copy, NULL};
    capture_begin(&result->out, STDOUT_FILENO);
    capture_begin(&result->err, STDERR_FILENO);
    const bool goes_on = wg__command_begin(&set, 2, argv, args, &result->status);
    capture_end(&result->err);
    capture_end(&result->out);
    return goes_on;
}

static void begins_only_with_good_options(void **state)
{
    (void)state;
    struct result r;
    struct args args = {.seeds = 3};
    assert_true(begin(&r, &args, "--seeds=5"));
    assert_int_equal(args.seeds, 5);
    assert_false(begin(&r, &args, "--seeds=0"));
    assert_int_equal(r.status, WG_EXIT_USAGE);
    assert_string_equal(r.err.text, "wattgov x: --seeds: '0' is not a whole number in 1 .. 9\n");
    args.seeds = 3;
    assert_false(begin(&r, &args, "--help"));
    assert_int_equal(r.status, WG_EXIT_OK);
    assert_non_null(strstr(r.out.text, "default: 3"));
    assert_string_equal(r.err.text, "");
}

static void tells_usage_from_failure(void **state)
{
    (void)state;
    struct capture err;
    capture_begin(&err, STDERR_FILENO);
    const int usage = wg__command_fail(&set, &(struct wg_error){.code = WG_EINVAL, .text = "bad"});
    const int failed =
        wg__command_fail(&set, &(struct wg_error){.code = WG_ENOENT, .text = "no file"});
    capture_end(&err);
    assert_int_equal(usage, WG_EXIT_USAGE);
    assert_int_equal(failed, WG_EXIT_FAILED);
    assert_string_equal(err.text, "wattgov x: bad\nwattgov x: no file\n");
}

static void reports_a_full_disk(void **state)
{
    (void)state;
    FILE *full = fopen("/dev/full", "w");
    if (full == NULL)
        skip();
    struct wg_buffer text;
    struct wg_error err;
    wg__buffer_init(&text);
    wg__buffer_puts(&text, "results\n");
    assert_int_equal(wg__command_print(full, &text, &err), WG_EIO);
    assert_string_equal(err.text, "cannot write the results: No space left on device");
    wg__buffer_fini(&text);
    if (full != NULL)
        (void)fclose(full);
}

static void reports_a_reader_who_left(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    (void)close(ends[0]);
    FILE *stream = fdopen(ends[1], "w");
    assert_non_null(stream);
    struct wg_buffer text;
    struct wg_error err;
    wg__buffer_init(&text);
    wg__buffer_puts(&text, "results\n");
    assert_true(signal(SIGPIPE, SIG_IGN) != SIG_ERR);
    assert_int_equal(wg__command_print(stream, &text, &err), WG_EIO);
    assert_string_equal(err.text, "cannot write the results: Broken pipe");
    wg__buffer_fini(&text);
    if (stream != NULL)
        (void)fclose(stream);
}

static void refuses_to_print_a_broken_buffer(void **state)
{
    (void)state;
    const struct wg_buffer text = {.failed = true};
    struct wg_error err;
    assert_int_equal(wg__command_print(stdout, &text, &err), WG_ENOMEM);
    const struct wg_buffer empty = {0};
    assert_int_equal(wg__command_print(stdout, &empty, &err), WG_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_the_nested_command),
        cmocka_unit_test(explains_each_level_on_stdout),
        cmocka_unit_test(refuses_unknown_commands_in_one_line),
        cmocka_unit_test(begins_only_with_good_options),
        cmocka_unit_test(tells_usage_from_failure),
        cmocka_unit_test(reports_a_full_disk),
        cmocka_unit_test(reports_a_reader_who_left),
        cmocka_unit_test(refuses_to_print_a_broken_buffer),
    };
    return run_tests(tests);
}
