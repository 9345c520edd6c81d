/* SPDX-License-Identifier: MIT
 *
 * `wattgov tune`: the cheapest configuration under limits, live; `wattgov tune apply` is in
 * command_tune_apply.c.
 *
 * Trials are told on stderr as they come; the report goes to stdout at the end, after an
 * interruption too: then the best so far, and the exit status is that of the signal. What cannot be
 * written is an error of its own after the report.
 */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "cli/command.h"
#include "cli/command_tune_apply.h"
#include "cli/duration.h"
#include "cli/output_files.h"
#include "cli/table.h"
#include "cli/tune_report.h"
#include "live/tune_quantity.h"

/* -- While it runs ---------------------------------------------------------------------------- */

static void say(const char *line, void *context)
{
    (void)context;
    (void)fprintf(stderr, "wattgov tune: %s\n", line);
}

static void tell_asked(const struct wg_tuner_question *question, size_t number, void *context)
{
    const struct wg_tune_setup *setup = context;
    struct wg_buffer text;
    if (setup->args->quiet)
        return;
    wg__buffer_init(&text);
    wg__tune_configuration_text(&text, setup->knobs.space, question->configuration);
    (void)fprintf(stderr, "wattgov tune: trial %zu (%s): %s\n", number,
                  wg__tune_reason_text(question->reason),
                  text.data != NULL && !text.failed ? text.data : "");
    if (setup->args->explain && question->why[0] != '\0')
        (void)fprintf(stderr, "wattgov tune:   why: %s\n", question->why);
    wg__buffer_fini(&text);
}

static void tell_figures(const struct wg_tune_setup *setup, const struct wg_tune_trial *trial)
{
    const struct wg_trial *told = &trial->told;
    double largest_error = told->objective_error;
    char text[WG_TUNE_FIGURE_SIZE];
    wg__tune_figure_text(text, told->objective, told->objective_error);
    (void)fprintf(stderr, ": %s %s", setup->goal.objective.text, text);
    for (size_t i = 0; i < setup->goal.limit_count; i++) {
        wg__tune_figure_text(text, told->figures[i], told->figure_errors[i]);
        (void)fprintf(stderr, ", %s %s", setup->goal.limits[i].text, text);
        largest_error = fmax(largest_error, told->figure_errors[i]);
    }
    (void)fprintf(stderr, " (%u window%s, %.2f s", trial->windows, trial->windows == 1 ? "" : "s",
                  trial->time_s);
    if (largest_error > setup->args->precision)
        (void)fprintf(stderr, "; the %g %% asked for would take longer",
                      100 * setup->args->precision);
    (void)fprintf(stderr, ")");
}

static void tell_told(const struct wg_tune_trial *trial, size_t number, void *context)
{
    const struct wg_tune_setup *setup = context;
    const struct wg_trial *told = &trial->told;
    (void)number;
    if (setup->args->quiet)
        return;
    (void)fprintf(stderr, "wattgov tune:   %s", wg__trial_outcome_word(told->outcome));
    if (trial->failure[0] != '\0')
        (void)fprintf(stderr, ": %s", trial->failure);
    if (told->outcome == WG_TRIAL_MEASURED)
        tell_figures(setup, trial);
    (void)fprintf(stderr, "\n");
    if (strcmp(setup->args->server.statistics, "triton") == 0 &&
        wg__tune_server_lacks_batches(&setup->knobs, told->configuration, trial->figures,
                                      trial->figure_count))
        (void)fprintf(stderr, "wattgov tune:   no batch above 1 was seen, so what is told is that "
                              "of batch 1: more --concurrency makes batches\n");
}

/* -- The end ---------------------------------------------------------------------------------- */

static enum wg_code write_file(const char *path,
                               void (*make)(const struct wg_tune_report *, struct wg_buffer *),
                               const struct wg_tune_report *report, struct wg_error *err)
{
    struct wg_buffer text;
    if (path == NULL)
        return WG_OK;
    wg__buffer_init(&text);
    make(report, &text);
    const enum wg_code code = wg__write_output(path, false, &text, err);
    wg__buffer_fini(&text);
    return code;
}

static enum wg_code print_report(const struct wg_tune_report *report, struct wg_error *err)
{
    struct wg_buffer text;
    wg__buffer_init(&text);
    if (report->setup->args->json)
        wg__tune_json(report, &text);
    else
        wg__tune_text(report, wg__wants_color(stdout), &text);
    const enum wg_code code = wg__command_print(stdout, &text, err);
    wg__buffer_fini(&text);
    return code;
}

/* Each output is tried, whatever becomes of the others. */
static int write_reports(const struct wg_tune_report *report)
{
    const struct wg_tune_args *args = report->setup->args;
    const bool has_best = report->result->best.configuration < report->setup->knobs.space->count;
    struct wg_error err;
    int status = WG_EXIT_OK;
    if (print_report(report, &err) != WG_OK)
        status = wg__command_fail(&wg__tune_options, &err);
    if (has_best && write_file(args->output, wg__tune_result_yaml, report, &err) != WG_OK)
        status = wg__command_fail(&wg__tune_options, &err);
    if (write_file(args->html, wg__tune_page, report, &err) != WG_OK)
        status = wg__command_fail(&wg__tune_options, &err);
    return status;
}

static void hint_resume(const struct wg_tune_setup *setup, const struct wg_tune_result *result)
{
    if (result->count > 0 && setup->request.state_path != NULL && result->unsaved == 0)
        (void)fprintf(stderr,
                      "wattgov tune: what was measured is kept in %s: the same command with "
                      "--resume goes on from there\n",
                      setup->request.state_path);
}

/* Whether it ended without an error, and yet not as it should. */
static bool is_poor(const struct wg_tune_setup *setup, const struct wg_tune_result *result)
{
    const bool has_best = result->best.configuration < setup->knobs.space->count;
    return result->not_restored > 0 || result->workload_not_restored || result->was_foreign ||
           result->was_held || result->unsaved > 0 || !has_best;
}

static int finish(const struct wg_tune_setup *setup, const struct wg_tune_result *result,
                  const char *command, enum wg_code code, const struct wg_error *err)
{
    char made_at[32] = "", host[256] = "";
    const time_t now = (time_t)wg__clock_wall_s();
    struct tm parts;
    if (gmtime_r(&now, &parts) != NULL)
        (void)strftime(made_at, sizeof made_at, "%Y-%m-%d %H:%M UTC", &parts);
    if (gethostname(host, sizeof host - 1) != 0)
        host[0] = '\0';
    const struct wg_tune_report report = {
        .setup = setup, .result = result, .command = command, .made_at = made_at, .host = host};
    int status = WG_EXIT_OK;
    if (code != WG_OK && result->count == 0)
        return wg__command_fail(&wg__tune_options, err);
    status = write_reports(&report);
    if (code != WG_OK)
        status = wg__command_fail(&wg__tune_options, err);
    if (status == WG_EXIT_OK && result->signal != 0)
        status = WG_EXIT_SIGNAL + result->signal;
    if (result->ended_by_time || code != WG_OK)
        hint_resume(setup, result);
    return status == WG_EXIT_OK && is_poor(setup, result) ? WG_EXIT_FAILED : status;
}

static int run(struct wg_tune_setup *setup, const char *command)
{
    struct wg_error err;
    struct wg_tune_result result;
    setup->request.say = say;
    setup->request.asked = tell_asked;
    setup->request.told = tell_told;
    setup->request.context = setup;
    const enum wg_code code = wg__tune_run(&setup->request, &result, &err);
    const int status = finish(setup, &result, command, code, &err);
    wg__tune_result_fini(&result);
    return status;
}

/* -- --dry-run -------------------------------------------------------------------------------- */

/* The load, and how many trials of which length there will be at most. */
static void describe_budget(const struct wg_tune_setup *setup, struct wg_buffer *out)
{
    const size_t asked = setup->request.max_trials;
    const size_t trials = asked > 0 ? asked : wg__tuner_usual_trials(setup->knobs.space);
    if (setup->args->arrivals != NULL)
        wg__buffer_printf(out, "load: %s\n", setup->args->arrivals);
    char longest[WG_DURATION_TEXT_SIZE];
    wg__format_duration(longest, (double)trials * setup->request.max_window_s);
    wg__buffer_printf(out,
                      "at most %zu trial%s, each measured for %g s at most: no longer than %s, "
                      "warming up and setting not counted\n",
                      trials, trials == 1 ? "" : "s", setup->request.max_window_s, longest);
}

static void describe(const struct wg_tune_setup *setup, const struct wg_tuner_question *question,
                     struct wg_buffer *out)
{
    const struct wg_tuning_space *space = setup->knobs.space;
    char energy[WG_TUNE_ENERGY_TEXT_SIZE], text[WG_TUNE_QUANTITY_SIZE];
    for (size_t k = 0; k < space->knob_count; k++) {
        const struct wg_tuning_knob *knob = &space->knobs[k];
        wg__buffer_printf(out, "%s (%s%s):", knob->name,
                          setup->knobs.knobs[k].is_device ? "device, " : "",
                          wg__tuning_role_word(knob->role));
        for (size_t i = 0; i < knob->count; i++) {
            wg__tune_level_text(text, knob, i);
            wg__buffer_printf(out, "%s %s%s", i > 0 ? "," : "", text,
                              i == knob->default_level ? " (default)" : "");
        }
        wg__buffer_puts(out, "\n");
    }
    wg__tune_energy_text(energy, &setup->energy, &setup->devices, WG_ENERGY_NONE);
    wg__buffer_printf(out, "%zu configuration%s\nleast: %s\n", space->count,
                      space->count == 1 ? "" : "s", setup->goal.objective.text);
    for (size_t i = 0; i < setup->goal.limit_count; i++) {
        const struct wg_tune_term *limit = &setup->goal.limits[i];
        wg__buffer_printf(out, "limit: %s %s %.4g%s\n", limit->text,
                          limit->is_minimum ? ">=" : "<=", limit->bound,
                          limit->is_relative ? " times the default's" : "");
    }
    for (size_t i = 0; i < setup->args->forbids.count; i++)
        wg__buffer_printf(out, "forbidden: %s\n", setup->args->forbids.items[i]);
    describe_budget(setup, out);
    wg__buffer_printf(out, "energy: %s\nfirst trial: ", energy);
    wg__tune_configuration_text(out, space, question->configuration);
    wg__buffer_printf(out, "\n    why: %s\n", question->why);
    if (setup->args->server.url != NULL && setup->args->command.count == 0)
        wg__buffer_puts(out, "a dry run asks no server: what the model has is the default "
                             "instead, where it is one of the levels\n");
}

/* The first question, of a tuner whose relative bounds are still unknown: any do. */
static enum wg_code ask_first(const struct wg_tune_setup *setup, struct wg_tuner_question *out,
                              struct wg_error *err)
{
    struct wg_tuner_config config = {
        .space = setup->knobs.space,
        .goal = {.objective = setup->goal.objective.kind, .limit_count = setup->goal.limit_count},
        .policy = setup->request.policy,
        .seed = setup->request.seed,
        .xi = NAN};
    struct wg_tuner *tuner = NULL;
    for (size_t i = 0; i < setup->goal.limit_count; i++)
        config.goal.limits[i] =
            (struct wg_tuning_limit){.name = setup->goal.limits[i].text,
                                     .kind = setup->goal.limits[i].kind,
                                     .bound = setup->goal.limits[i].bound,
                                     .is_minimum = setup->goal.limits[i].is_minimum};
    enum wg_code code = wg__tuner_new(&tuner, &config, err);
    if (code == WG_OK)
        code = wg__tuner_ask(tuner, out, err);
    wg__tuner_free(tuner);
    return code;
}

static int dry_run(const struct wg_tune_setup *setup)
{
    struct wg_error err;
    struct wg_tuner_question question;
    struct wg_buffer text;
    enum wg_code code = ask_first(setup, &question, &err);
    if (code != WG_OK)
        return wg__command_fail(&wg__tune_options, &err);
    wg__buffer_init(&text);
    describe(setup, &question, &text);
    code = wg__command_print(stdout, &text, &err);
    wg__buffer_fini(&text);
    return code == WG_OK ? WG_EXIT_OK : wg__command_fail(&wg__tune_options, &err);
}

/* -- The command ------------------------------------------------------------------------------ */

static int tune(const struct wg_tune_args *args, const char *command)
{
    struct wg_error err;
    struct wg_signals signals;
    struct wg_tune_setup *setup = wg__alloc_zeroed(1, sizeof *setup);
    if (setup == NULL) {
        (void)wg__fail(&err, WG_ENOMEM, "out of memory");
        return wg__command_fail(&wg__tune_options, &err);
    }
    wg__signals_block(&signals, true);
    wg__signals_add(&signals, SIGCONT);
    int status = WG_EXIT_OK;
    if (wg__tune_setup_open(setup, args, &signals, &err) != WG_OK)
        status = wg__command_fail(&wg__tune_options, &err);
    else
        status = args->dry_run ? dry_run(setup) : run(setup, command);
    wg__tune_setup_close(setup);
    wg__signals_restore(&signals);
    wg__free(setup);
    return status;
}

static int run_tune(int argc, char *argv[])
{
    if (argc > 1 && strcmp(argv[1], "apply") == 0)
        return wg__command_tune_apply(argc - 1, argv + 1);
    struct wg_error err;
    struct wg_option_file file = {0};
    int status = WG_EXIT_OK;
    struct wg_tune_args *args = wg__alloc_zeroed(1, sizeof *args);
    if (args == NULL) {
        (void)wg__fail(&err, WG_ENOMEM, "out of memory");
        return wg__command_fail(&wg__tune_options, &err);
    }
    struct wg_buffer command;
    wg__buffer_init(&command);
    wg__command_line("wattgov tune", argc, argv, &command);
    if (wg__tune_args_read(argc, argv, args, &file, &status))
        status = tune(args, command.failed ? NULL : command.data);
    wg__buffer_fini(&command);
    wg__option_file_fini(&file);
    wg__free(args);
    return status;
}

const struct wg_command wg__command_tune = {
    .name = "tune",
    .summary = "Find the cheapest configuration of devices and a served model within limits",
    .run = run_tune};
