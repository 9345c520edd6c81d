/* SPDX-License-Identifier: MIT
 *
 * `wattgov job show` and `wattgov job export`.
 *
 * Threads: the main thread.
 */
#include <math.h>
#include <stdio.h>

#include "base/buffer.h"
#include "base/json.h"
#include "cli/job_args.h"
#include "cli/job_summary.h"
#include "cli/output_files.h"
#include "cli/table.h"

struct show_args {
    const char *store;
    const char *html;
    bool json;
};

static const struct wg_option show_options[] = {
    {.name = "json", WG_OPTION_FLAG(struct show_args, json), .help = "Write JSON."},
    {.name = "html",
     WG_OPTION_STRING(struct show_args, html),
     .value = "FILE",
     .fallback = "none",
     .help = "Write a page with charts."},
    WG_JOB_OPTION_STORE(struct show_args, store),
};

static const struct wg_option_set show_set = {
    .command = "wattgov job show",
    .word = "NAME",
    .summary = "Shows what was learned of a job: each batch size's runs and expected cost, and "
               "what was saved against the default (marked *).",
    .options = show_options,
    .count = sizeof show_options / sizeof show_options[0],
};

/* Reads all that is known of the job, of one moment. */
static enum wg_code summarize(const char *path, const char *name, struct wg_job_summary *out,
                              struct wg_error *err)
{
    struct wg_store *store = NULL;
    struct wg_store_job job;
    enum wg_code code = wg__job_open_store_to_read(&store, path, err);
    if (code == WG_OK)
        code = store->ops->begin(store, false, err);
    if (code == WG_OK) {
        code = wg__job_find(store, name, &job, err);
        if (code == WG_OK)
            code = wg__job_summarize(store, &job, out, err);
        store->ops->rollback(store);
    }
    wg__store_close(store);
    return code;
}

static enum wg_code write_page(const struct wg_job_summary *summary, const char *path,
                               struct wg_error *err)
{
    struct wg_buffer page, command;
    wg__buffer_init(&page);
    wg__buffer_init(&command);
    wg__buffer_printf(&command, "wattgov job show %s --html FILE", summary->job.name);
    wg__job_summary_html(summary, command.failed ? NULL : command.data, &page);
    const enum wg_code code = wg__write_output(path, false, &page, err);
    wg__buffer_fini(&command);
    wg__buffer_fini(&page);
    return code;
}

static int run_show(int argc, char *argv[])
{
    struct show_args args = {0};
    struct wg_job_summary summary = {0};
    struct wg_buffer out;
    struct wg_error err;
    const char *name = NULL;
    int status = WG_EXIT_OK;
    enum wg_code code = wg__job_take_name(&show_set, &argc, &argv, &name, &err);
    if (!wg__command_begin(&show_set, argc, argv, &args, &status))
        return status;
    wg__buffer_init(&out);
    const struct wg_output_file file = {.option = "html", .path = args.html};
    if (code == WG_OK)
        code = wg__output_files_check(&file, 1, &err);
    if (code == WG_OK)
        code = summarize(args.store, name, &summary, &err);
    if (code == WG_OK) {
        if (args.json)
            wg__job_summary_json(&summary, &out);
        else
            wg__job_summary_text(&summary, wg__wants_color(stdout), &out);
        if (args.html != NULL)
            code = write_page(&summary, args.html, &err);
    }
    if (code == WG_OK)
        code = wg__command_print(stdout, &out, &err);
    wg__job_summary_fini(&summary);
    wg__buffer_fini(&out);
    return code == WG_OK ? WG_EXIT_OK : wg__command_fail(&show_set, &err);
}

const struct wg_command wg__command_job_show = {
    .name = "show",
    .summary = "Shows what was learned, and what was saved",
    .run = run_show,
};

struct export_args {
    const char *store;
};

static const struct wg_option export_options[] = {
    WG_JOB_OPTION_STORE(struct export_args, store),
};

static const struct wg_option_set export_set = {
    .command = "wattgov job export",
    .word = "NAME",
    .summary = "Writes all that is known of a job, one JSON object a line: the job, then what "
               "happened, in its order.",
    .options = export_options,
    .count = sizeof export_options / sizeof export_options[0],
};

static void export_job(const struct wg_store_job *job, struct wg_buffer *out)
{
    struct wg_json json;
    wg__json_init(&json, out);
    wg__json_object(&json);
    wg__json_member_string(&json, "schema", "wattgov.job.export/1");
    wg__json_member_string(&json, "job", job->name);
    wg__json_member_double(&json, "created_s", job->created_s);
    wg__json_key(&json, "batch_sizes");
    wg__json_array(&json);
    for (size_t i = 0; i < job->batch_count; i++)
        wg__json_uint(&json, job->batch_size[i]);
    wg__json_close(&json);
    wg__json_member_uint(&json, "default_batch_size", job->default_batch);
    wg__json_member_string(&json, "metric", job->metric);
    wg__json_member_bool(&json, "higher_is_better", job->higher_is_better);
    wg__json_member_double(&json, "target", job->target);
    wg__json_member_uint(&json, "max_epochs", job->max_epochs);
    wg__json_member_string(&json, "objective", job->objective);
    wg__json_member_double(&json, "max_power_w", job->max_power_w);
    wg__json_member_string(&json, "policy", job->policy);
    wg__json_member_string(&json, "optimizer", job->optimizer);
    wg__json_member_double(&json, "learning_rate", job->learning_rate);
    wg__json_member_uint(&json, "learning_rate_batch_size", job->learning_rate_batch);
    wg__json_member_double(&json, "lease_s", job->lease_s);
    wg__json_member_uint(&json, "seed", job->seed);
    wg__json_close(&json);
    wg__buffer_puts(out, "\n");
}

static void export_start(struct wg_json *json, const struct wg_store_run *run)
{
    wg__json_member_bool(json, "is_survey", run->is_survey);
    wg__json_member_bool(json, "may_survey", run->may_survey);
    wg__json_member_uint(json, "recurrence", run->recurrence);
    wg__json_member_uint(json, "attempt", run->attempt);
    wg__json_member_uint(json, "batch_size", run->batch_size);
    wg__json_member_uint(json, "ticket", run->ticket);
    wg__json_member_string(json, "gpu_model", run->gpu_model);
    wg__json_member_uint(json, "gpu_count", run->gpu_count);
    wg__json_member_double(json, "max_power_w", run->max_power_w);
    wg__json_member_string(json, "host", run->host);
    wg__json_member_double(json, "started_s", run->started_s);
}

static void export_end(struct wg_json *json, const struct wg_store_run *run)
{
    wg__json_member_string(json, "state", wg__run_state_name(run->state));
    wg__json_member_double(json, "ended_s", run->ended_s);
    wg__json_member_double(json, "epochs", run->epochs);
    wg__json_member_double(json, "energy_j", run->energy_j);
    wg__json_member_double(json, "time_s", run->time_s);
    wg__json_member_double(json, "cost_j", run->cost_j);
    wg__json_member_double(json, "metric", run->metric);
    wg__json_member_double(json, "setting", run->setting);
}

static bool export_fact(void *context, const struct wg_store_fact *fact,
                        const struct wg_store_run *run)
{
    static const char *const kinds[WG_FACT_KIND_COUNT] = {
        [WG_FACT_STARTED] = "started",       [WG_FACT_PROFILED] = "profiled",
        [WG_FACT_EPOCH] = "epoch",           [WG_FACT_ENDED] = "ended",
        [WG_FACT_TAKEN_BACK] = "taken_back", [WG_FACT_REVIVED] = "revived",
    };
    struct wg_buffer *out = context;
    struct wg_json json;
    wg__json_init(&json, out);
    wg__json_object(&json);
    wg__json_member_uint(&json, "fact", fact->number);
    wg__json_member_string(&json, "kind",
                           (unsigned)fact->kind < WG_FACT_KIND_COUNT ? kinds[fact->kind] : NULL);
    wg__json_member_uint(&json, "run", (uint64_t)run->id);
    if (fact->kind == WG_FACT_STARTED)
        export_start(&json, run);
    if (fact->kind == WG_FACT_PROFILED) {
        wg__json_member_double(&json, "epoch_cost_j", run->epoch_cost_j);
        wg__json_member_double(&json, "epoch_cost_max_limit_j", run->epoch_cost_max_limit_j);
        wg__json_member_double(&json, "first_epoch_cost_j", run->first_epoch_cost_j);
    }
    if (fact->kind == WG_FACT_EPOCH) {
        wg__json_member_uint(&json, "epoch", fact->epoch);
        wg__json_member_double(&json, "metric", fact->metric);
    }
    if (fact->kind == WG_FACT_ENDED)
        export_end(&json, run);
    wg__json_close(&json);
    wg__buffer_puts(out, "\n");
    return !out->failed;
}

static enum wg_code export_all(struct wg_store *store, const char *name, struct wg_buffer *out,
                               struct wg_error *err)
{
    struct wg_store_job job;
    enum wg_code code = wg__job_find(store, name, &job, err);
    if (code != WG_OK)
        return code;
    export_job(&job, out);
    return store->ops->fact_each(store, job.id, 0, export_fact, out, err);
}

static int run_export(int argc, char *argv[])
{
    struct export_args args = {0};
    struct wg_store *store = NULL;
    struct wg_buffer out;
    struct wg_error err;
    const char *name = NULL;
    int status = WG_EXIT_OK;
    enum wg_code code = wg__job_take_name(&export_set, &argc, &argv, &name, &err);
    if (!wg__command_begin(&export_set, argc, argv, &args, &status))
        return status;
    wg__buffer_init(&out);
    if (code == WG_OK)
        code = wg__job_open_store_to_read(&store, args.store, &err);
    if (code == WG_OK)
        code = store->ops->begin(store, false, &err);
    if (code == WG_OK) {
        code = export_all(store, name, &out, &err);
        store->ops->rollback(store);
    }
    if (code == WG_OK)
        code = wg__command_print(stdout, &out, &err);
    wg__buffer_fini(&out);
    wg__store_close(store);
    return code == WG_OK ? WG_EXIT_OK : wg__command_fail(&export_set, &err);
}

const struct wg_command wg__command_job_export = {
    .name = "export",
    .summary = "Writes all that is known of a job",
    .run = run_export,
};
